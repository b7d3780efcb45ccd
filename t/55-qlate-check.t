#!/bin/sh
# qlate --check: each alarm made to happen, and its silence; --every tells again only what is new, or after a while.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:100000000

noon=1780401600000
fresh() { rm -f q.db*; qinit "$@"; }
write() { printf '%s\n' 'PRAGMA wal_autocheckpoint=0; BEGIN;' "$1" ';COMMIT;' | sqlite3 -bail q.db >made; }
# ledger: a line "N QUEUE TYPE AGO LATE OUTCOME STATE ATTEMPT COUNT": N attempts that ended AGO before noon, LATE after they were due; ms
ledger() {
	awk -v n=$noon -v q="'" '
		{ f = n - $4; s = f - 10; o = $6 == "" ? "done" : $6; st = $7 == "" ? "done" : $7; a = $8 == "" ? 1 : $8; c = $9 == "" ? "NULL" : $9
		for (i = 0; i < $1; i++)
			printf "INSERT INTO q_attempt(job, generation, attempt, fence, queue, type, due_ms, started_ms, finished_ms, outcome, state, count) " \
			    "VALUES(%d, 1, %d, 1, %s, %s, %.0f, %.0f, %.0f, %s, %s, %s);\n", NR, a, q $2 q, q ($3 == "-" ? "" : $3) q, s - $5, s, f, q o q, q st q, c }' >ledger.sql
	write "$(cat ledger.sql)"
}
# alarm NAME WANT [ARG...]: the blocks, and 1; quiet NAME [ARG...]: nothing, and 0; both change nothing
alarm() { _w=$2; _m=$1; shift 2; exits 1 "$_m" qlate --check "$@"; is "$(cat out err)" "$_w" '... is told'; }
quiet() { _m=$1; shift; exits 0 "$_m" qlate --check "$@"; is "$(cat out err)" '' '... silently'; }
kinds() { qlate --check | sed -n 's/^qlate: \([A-Z0-9 ]*\) \([^ ]*\): .*/\1 \2/p' | tr '\n' ,; }
at() { export Q_NOW="$1"; }
back() { at 2026-06-02T12:00:00Z; }

exits 66 'no file' qlate --check
fresh
quiet 'an empty file'
exits 66 'a queue that nobody has' qlate --check none
is "$(cat out err)" "qlate: no queue 'none': it never had a job, and nothing is set or expected for it" '... is no good news'
qset expect.none/reset=1d
quiet '... unless something is expected' none
qset expect.none/reset= queue.none.keep=1d
quiet '... or set' none
qset queue.none.keep=

# ---- dead jobs ----

id=$(qadd mail x)
qadd -q other x
qfail --dead -m "$(printf 'no such\033[31m user')" "$(qclaim mail | claim_of)"
qfail --dead "$(qclaim other | claim_of)"
at 2026-06-02T12:04:12Z
alarm 'dead jobs' "qlate: DEAD mail: 1 job is dead
  since 2026-06-02T12:00:00Z (4m12s); job 1: no such\\x1b[31m user
  next: qls --state dead mail; mend the cause; qreplay mail, or qcancel what is to be dropped
qlate: DEAD other: 1 job is dead
  since 2026-06-02T12:00:00Z (4m12s)
  next: qls --state dead other; mend the cause; qreplay other, or qcancel what is to be dropped"
is "$(qlate --check other | head -n 1)" 'qlate: DEAD other: 1 job is dead' '... of the queues that are named'
unchanged 1 '... by reading alone' qlate --check
qcancel -q "$(sql "SELECT id FROM q_job WHERE queue = 'other'")"
is "$(kinds)" 'DEAD mail,' '... until it is cancelled'
qreplay -q "$id"
quiet '... or replayed'
qfail --dead -m again "$(qclaim mail | claim_of)"
is "$(kinds)" 'DEAD mail,' '... and dead again'
exits 3 'a run of qjob' qjob export -- sh -c 'exit 3'
like "$(qlate --check export)" 'next: qls 3; mend the cause; start the crontab line again' '... is not replayed, since nobody would take it'
back

# ---- due and not started ----

fresh
qadd -q mail x
qdone "$(qclaim mail | claim_of)"
qadd -q mail x
at 2026-06-02T12:14:59.999Z
quiet 'due for less than 15 minutes'
at 2026-06-02T12:15:00Z
alarm 'due for 15 minutes: the worker is stopped' "qlate: WAITS mail: 1 due, the oldest for 15m00s and not started: no worker
  since 2026-06-02T12:00:00Z (15m00s)
  next: start a worker: qwork mail -- CMD, or see why the one of the crontab does not run"
qpause mail 'no ink'
like "$(qlate --check)" 'started: paused: no ink$' 'a pause that somebody forgot is told, too, with its reason'
like "$(qlate --check)" 'next: qpause -r mail' '... with the way out'
qpause -r mail
qpause --all
like "$(qlate --check)" 'started: paused$' '... of all queues'
like "$(qlate --check)" 'next: qpause -r --all' '... with another way out'
qpause -r --all
qset queue.mail.limit=partner rate.partner=5/s
qrate --block 2h partner
alarm 'a rate that is blocked' "qlate: WAITS mail: 1 due, the oldest for 15m00s and not started: rate: partner is blocked until 2026-06-02T14:15:00Z
  since 2026-06-02T12:00:00Z (15m00s)
  next: wait for the end of the block, or qrate --block 0 partner"
qrate --block 0 partner
qset queue.mail.limit= rate.partner=
# Claimed 61 and 60 minutes before; with what the table says.
for n in 3660001 3600000; do
	at 2026-06-02T13:20:00Z
	write "UPDATE q_job SET due_ms = 1, ready_ms = 1, event_ms = 1 WHERE state = 'pending'; UPDATE q_attempt SET started_ms = $noon + 4800000 - $n + 1, finished_ms = $noon + 4800000 - $n + 10"
	is "$(qlate --check | sed -n 's/.*not started: //p') $(qlate --since 7d -j | jq -r .why) $(qlate --since 5m -j | jq -r .why)" \
	    "$([ $n = 3600000 ] && echo backlog backlog backlog || echo no worker no worker no worker)" "why it waits, $n ms after a claim, is the same in each report"
done
write "UPDATE q_job SET due_ms = $noon, ready_ms = $noon, event_ms = $noon WHERE state = 'pending'"
at 2026-06-02T12:15:00Z
qset queue.mail.slo=1h/95%
quiet 'a target of an hour says that it may wait'
qset queue.mail.slo=
qlock ana -- true
qclaim mail >claims
quiet 'a worker came'
claim_of claims | qdone -
qadd -q --in 1h mail later
quiet 'a delayed job'
qadd -q mial x
back
at 2026-06-02T12:16:59.999Z
quiet 'a mistyped queue, less than two minutes ago'
at 2026-06-02T12:17:00Z
alarm '... two minutes ago' "qlate: NOBODY mial: 1 due, and nobody ever claimed from this queue; was 'mail' meant?
  since 2026-06-02T12:15:00Z (2m00s)
  next: start a worker: qwork mial -- CMD; or qls mial, and qcancel what went to the wrong queue"
exits 66 'a queue that is mistyped where it is looked at' qlate --check maik
is "$(cat err)" "qlate: no queue 'maik': it never had a job, and nothing is set or expected for it; was 'mail' meant?" '... has one like it'
qclaim mial >claims
quiet '... and somebody claims from it'
claim_of claims | qfail --in 0s -
at 2026-06-02T12:20:00Z
quiet '... and fails: it is no unknown queue'
back

fresh
qadd -q mail x
qclaim mail | claim_of | qfail --defer 2h -
at 2026-06-02T14:03:00Z
quiet 'a job whose only claim put it off: somebody claimed'
fresh
back
seq 1100 | qadd -q --lines mail
qclaim mail | claim_of | qfail --defer 1m -
at 2026-06-02T12:04:00Z
quiet '... also before a backlog'
back

# ---- leases that are over ----

fresh
qadd -q mail x
qclaim -l 1m mail >claims
export Q_BOOT=b1:100959999
quiet 'a lease that is over, not yet 15 minutes'
export Q_BOOT=b1:100960000
at 2026-06-02T12:16:00Z
alarm '... 15 minutes: a worker died, and no other came' "qlate: LOST mail: 1 claimed, their leases are over, and nobody has come to take them back
  since 2026-06-02T12:00:00Z (16m00s); claimed then; job 1 is one
  next: start a worker: qwork mail -- CMD takes them back"
export Q_BOOT=b2:899999
quiet 'after a boot, not yet 15 minutes'
export Q_BOOT=b2:900000
is "$(kinds)" 'LOST mail,' '... 15 minutes'
qclaim mail >claims
quiet '... and somebody came'
export Q_BOOT=b1:100000000
back

# ---- behind a job of the entity ----

fresh
qadd -q -e ana mail 1
qadd -q -e ana mail 2
qadd -q -e ana --in 3h mail 3
qfail --in 3d -m 'no such user' "$(qclaim mail | claim_of)"
at 2026-06-02T12:59:59Z
quiet 'behind a retry, not yet an hour'
at 2026-06-02T13:00:00Z
alarm '... an hour' "qlate: BLOCKED mail: 1 due, the oldest for 1h00m, behind job 1 of entity ana, which is not due before 2026-06-05T12:00:00Z
  since 2026-06-02T12:00:00Z (1h00m)
  next: qls 1 tells why; qcancel 1 lets the others go; qreplay 1 after that tries it again at once"
is "$(qlate -j mail | jq -r .why)" blocked '... as the table says'
back
qadd -q -e bo mail 4
qfail --defer 3d "$(qclaim mail | claim_of)"
qadd -q -e bo mail 5
at 2026-06-02T13:00:00Z
like "$(qlate --check)" '\(1h00m\); 2 entities are held up like this$' '... also behind what was deferred'
qcancel -q 4
qcancel -q 1
qreplay -q 1
is "$(qclaim -l 1s -c 3 mail | jq -r .payload | xargs)" '5 1' 'what the alarm says lets it go on, and the first comes first'
quiet '... behind what runs'
export Q_BOOT=b1:100001000
is "$(qlate --check)" "qlate: BLOCKED mail: 1 due, the oldest for 1h00m, behind job 1 of entity ana, whose lease is over
  since 2026-06-02T12:00:00Z (1h00m)
  next: start a worker: qwork mail -- CMD takes it back" '... behind what ran'
export Q_BOOT=b1:100000000
back

# ---- targets ----

fresh
qset queue.mail.slo=30s/99% queue.mail/reset.slo=1s/99% queue.bulk.slo=1h/90%
printf '%s\n' '900 mail - 1000 5' '90 mail reset 1000 5' '9 mail - 1000 99999' | ledger
quiet 'a target that is kept, though nine are late'
printf '%s\n' '200 mail - 1000 99999' | ledger
alarm 'a target that burns' "qlate: LATE mail: 82.56% within 30s over 1h, wanted 99%; it burns 17.4 times what is allowed
  nothing is due now
  next: qlate --since 24h --by hour mail tells when it was late"
is "$(Q_NOW=2026-06-02T12:06:00Z kinds)" 'LATE mail,' '... six minutes later it is 6h and 30m'
is "$(Q_NOW=2026-06-02T12:06:00Z qlate --check | head -n 1)" 'qlate: LATE mail: 82.56% within 30s over 6h, wanted 99%; it burns 17.4 times what is allowed' '... as told'
is "$(Q_NOW=2026-06-02T17:30:00Z qlate --check | head -n 1)" 'qlate: LATE mail: 82.56% within 30s over 3d, wanted 99%; it burns 17.4 times what is allowed' '... then the budget of three days'
is "$(Q_NOW=2026-06-02T18:30:00Z kinds)" '' '... and over'
printf '%s\n' '20 mail reset 500 2000' | ledger
is "$(kinds)" 'LATE mail,LATE mail/reset,' 'a type has a target of its own'
qadd -q bulk x
qdone "$(qclaim bulk | claim_of)"
qadd -q bulk x
is "$(Q_NOW=2026-06-02T14:59:59Z kinds)" 'LATE mail,LATE mail/reset,' 'work that waits up to three times the target'
is "$(Q_NOW=2026-06-02T15:00:01Z qlate --check bulk)" "qlate: LATE bulk: 0.00% within 1h over 1h, wanted 90%
  since 2026-06-02T12:00:00Z (3h00m); 1 due, the oldest for 3h00m: no worker
  next: start a worker: qwork bulk -- CMD, or see why the one of the crontab does not run" '... and longer: LATE at once'

# ---- expectations ----

fresh
at 2026-06-01T00:00:00Z
qset expect.nightly=26h expect.mail/reset=1h
at 2026-06-01T00:59:59Z
quiet 'expected since less than the time'
at 2026-06-01T01:00:01Z
is "$(kinds)" 'ABSENT mail/reset,' '... and longer'
at 2026-06-02T02:00:01Z
alarm 'a nightly export that was never enqueued' "qlate: ABSENT nightly: expected at least every 26h, and no success is on record
  since 2026-06-02T02:00:00Z (1.0s)
  next: qls --state all nightly; if there is no job, see why nothing adds one" nightly
back
printf '%s\n' '1 nightly - 93600000 0' '1 mail - 10 0' '1 mail reset 3600001 0' | ledger
is "$(kinds)" 'ABSENT mail/reset,' 'a success 26 hours ago is one; of another type it is none'
is "$(Q_NOW=2026-06-02T12:00:00.001Z kinds)" 'ABSENT mail/reset,ABSENT nightly,' '... and a millisecond later'
printf '%s\n' '1 mail reset 10 0' '1 nightly - 5 0 failed failed' | ledger
is "$(Q_NOW=2026-06-02T12:00:00.001Z kinds)" 'ABSENT nightly,' 'a failure is none'
for now in 03T00 09T12; do
	is "$(Q_NOW=2026-06-$now:00:00Z qlate --check nightly | sed 's/ (.*//' | head -n 2)" 'qlate: ABSENT nightly: expected at least every 26h, the last success was 2026-06-01T10:00:00Z
  since 2026-06-02T12:00:00Z' '... the last success, and since when it is missed, whenever one asks'
done
write "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 101000) INSERT INTO q_attempt(job, generation, attempt, fence, queue, type, due_ms, started_ms, finished_ms, outcome, state)
    SELECT i, 1, 1, 1, 'other', '', 1, 1, $noon - 93000000, 'done', 'done' FROM c"
is "$(Q_NOW=2026-06-09T12:00:00Z qlate --check nightly | head -n 1)" 'qlate: ABSENT nightly: expected at least every 26h, the last success was before 2026-06-01T10:10:00Z' '... not looked for through the whole history'
fresh
at 2026-05-01T00:00:00Z
qset 'expect.export=by 06:00 Europe/Berlin'
back
printf '%s\n' '1 export - 113400000 0' | ledger		# 06:30 in Berlin, the day before
at 2026-06-02T03:59:59Z
quiet 'by six in Berlin: not yet'
at 2026-06-02T04:00:00Z
quiet '... the run of yesterday half past six was in that day'
at 2026-06-03T04:00:00Z
alarm '... and none in the next' "qlate: ABSENT export: expected by 06:00 Europe/Berlin, the last success was 2026-06-01T04:30:00Z
  since 2026-06-03T04:00:00Z (0s)
  next: qls --state all export; if there is no job, see why nothing adds one"
is "$(Q_NOW=2026-06-09T04:00:00Z qlate --check | sed -n 2p)" '  since 2026-06-03T04:00:00Z (6d00h)' '... since then, a week later, too'
qset expect.export=
qset 'expect.export=by 06:00 Europe/Berlin'
quiet 'what was expected after that time is not missed'
back

# ---- credentials ----

fresh
qset credential.partner.expires=2026-07-02T12:00:00.001Z 'credential.partner.owner=Ana' 'credential.partner.for=orders' credential.none.owner=Bo
quiet 'a credential with 30 days and a bit'
qset credential.partner.expires=2026-07-02T12:00:00Z
alarm '... with 30 days' "qlate: 30 DAYS partner: this credential, of Ana, for orders ends in 30d00h
  it ends 2026-07-02T12:00:00Z
  next: renew it; then qset credential.partner.expires=DAY"
qset credential.partner.expires=2026-06-09
is "$(kinds)" '7 DAYS partner,' '... with less than 7'
qset credential.partner.expires=2026-06-02
alarm '... that is over' "qlate: EXPIRED partner: this credential, of Ana, for orders is over
  since 2026-06-02T00:00:00Z (12h00m); it ends 2026-06-02T00:00:00Z
  next: renew it; then qset credential.partner.expires=DAY"

# ---- counts ----

fresh
# clean: a run a night; the newest last
nights() { for n in "$@"; do i=$((i - 1)); echo "1 clean $type $((i * 86400000 + 3600000)) 0 done done 1 $n"; done >rows; ledger <rows; }
type=- i=40
nights 500 510 490 500 505 0 500 510 500 0 0
quiet 'two empty nights'
nights 0
alarm 'three empty nights of a source that usually has hundreds' "qlate: EMPTY clean: 3 runs in a row produced nothing; usual is 500
  since 2026-05-03T11:00:00Z (30d01h)
  next: qls --state done clean; is that meant?"
nights 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
is "$(qlate --check | head -n 1)" 'qlate: EMPTY clean: 29 runs in a row produced nothing; usual is 500' '... a month of them'
nights 7
quiet '... and something again'
type=other i=4
nights 0 0 0
quiet 'one that never had anything'
fresh
type=- i=10
nights 10 10 11 9 10 10 101
alarm 'ten times the usual' "qlate: COUNT clean: the last run produced 101, more than ten times the usual 10
  since 2026-05-30T11:00:00Z (3d01h)
  next: qls --state done clean; is that meant?"
nights 100
quiet '... just ten times'
fresh
i=10 type=a
nights 1 1 1 1 1 1 10
quiet 'ten and not more are no crowd'
fresh
# each 10 minutes by day, nothing by night: the longest gap is 12 hours
perl -e 'for my $k (reverse 1 .. 1000) { my $h = ($k / 6) % 24; printf "1 poll - %d 0 done done 1 %d\n", $k * 600000, $h < 12 ? 3 : 0 }' | ledger
quiet 'a quiet night of what runs each ten minutes'
is "$(Q_NOW=2026-06-02T23:00:00Z kinds)" '' '... nothing after it is no run'

fresh
write "$(cat "$t/../lib/purge.sql"); WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 60)
 INSERT INTO q_purge(queue, as_of_ms, cutoff_ms, marked_ms, marked) SELECT '', $noon - i * 86400000, 1, 1, iif(i > 31, 200, iif(i > 29, 150, 0)) FROM c"
is "$(qlate --check)" "qlate: EMPTY qpurge: 29 runs in a row produced nothing; usual is 200
  since 2026-05-04T12:00:00Z (29d00h)
  next: qset shows what is kept how long; is that meant?" 'a cleanup that deleted nothing for a month'
write "UPDATE q_purge SET marked = 190 WHERE as_of_ms = $noon - 86400000"
quiet '... and something again'

# ---- sources ----

fresh
write "$(cat "$t/../lib/poll.sql")"
# runs: a line "AGO OUTCOME FRESH" of the source orders
runs() {
	awk -v n=$noon -v q="'" '{ printf "INSERT INTO q_poll_run(name, started_ms, finished_ms, outcome, exit, pages, items, fresh, repeated, late, future, bytes, waited_ms, note) " \
	    "VALUES(%s, %.0f, %.0f, %s, 0, 1, 0, %d, 0, 0, 0, 0, 0, %s);\n", q "orders" q, n - $1, n - $1, q $2 q, $3, q "HTTP 401" q }' >runs.sql
	write "$(cat runs.sql)"
}
write "INSERT INTO q_poll(name, gen, config) VALUES('orders', 1, 'x')"
printf '%s\n' '3600000 new 5' '3300000 nothing 0' '3000000 unmodified 0' '2700000 new 1' '2400000 new 1' '2100000 new 2' '1800000 limited 0' '1500000 stopped 0' '1200000 failed 0' '900000 failed 0' | runs
quiet 'two failures in a row, limits and stops'
printf '%s\n' '600000 limited 0' '300000 failed 0' | runs
alarm 'three failures' "qlate: POLL orders: the last 3 runs of this source failed
  since 2026-06-02T11:40:00Z (20m00s); HTTP 401
  next: qpoll --status FILE, with the file of this source"
printf '%s\n' '0 nothing 0' | runs
quiet '... and a good answer'
is "$(Q_NOW=2026-06-02T12:25:00Z kinds)" '' 'no run for five times the interval'
is "$(Q_NOW=2026-06-02T12:25:01Z qlate --check)" "qlate: POLL orders: no run of this source for 25m01s; usually there is one each 5m00s
  since 2026-06-02T12:00:00Z (25m01s)
  next: see why its line of the crontab does not run, or whether a run hangs" '... and longer'
qset expect.orders=10m
is "$(Q_NOW=2026-06-02T12:10:00Z kinds)" '' 'a source can be expected'
is "$(Q_NOW=2026-06-02T12:10:01Z kinds)" 'ABSENT orders,' '... and be absent'
qset expect.orders=
write 'DELETE FROM q_poll_run'
perl -e 'print $_ * 86400000, " new ", 200 + $_, "\n" for reverse 3 .. 20; print $_ * 86400000 + 5000, " nothing 0\n" for 2, 1' | runs
quiet 'two empty nights of a source'
echo '5000 nothing 0' | runs
is "$(qlate --check)" "qlate: EMPTY orders: 3 runs of this source in a row brought nothing new; usual is 211
  since 2026-05-31T11:59:55Z (2d00h)
  next: ask it by hand: does it still show what it did, to this credential?" 'green, and syncing nothing'

# ---- first attempts ----

fresh
# Before: 99 of 100; now 70 of 100, and the retries still do it.
firsts() { perl -e 'my ($ok, $all, $ago, $step) = @ARGV; for (0 .. $all - 1) { my $at = $ago + ($all - $_) * $step; my $good = $_ * $ok % $all < $ok;
	print "1 pay - $at 0 ", $good ? "done done 1\n" : "failed failed 1\n1 pay - $at 0 done done 2\n" }' "$@" | ledger; }
firsts 990 1000 25000000 500000
quiet 'first attempts as ever'
firsts 70 100 1000 100000
write "UPDATE q_attempt SET reason = 'HTTP 503' WHERE outcome = 'failed'"
alarm 'first attempts from 99 % to 70 %, behind 100 % in the end' "qlate: FIRST pay: first attempts succeed at 70.0%, they did at 99.0%; in the end it is 100.0%
  30 of the last 100 first attempts failed, and retries hide it; job 127: HTTP 503
  next: qls 127 shows its attempts; what it calls is ill"
is "$(Q_NOW=2026-06-02T20:00:00Z kinds)" '' '... until that is six hours ago'
fresh
firsts 990 1000 25000000 500000
firsts 13 19 1000 100000
quiet 'nineteen are too few'
fresh
firsts 700 1000 25000000 500000
firsts 70 100 1000 100000
quiet 'what always failed as often is no news'

# ---- qonce ----

fresh
qonce charge:7 -- sh -c 'kill -9 $$' 2>/dev/null
Q_NOW=2026-06-02T12:14:59Z quiet 'an unknown key'
Q_NOW=2026-06-02T12:15:00Z qlate --check >out 2>err
is "$?$(cat out)" "1qlate: UNKNOWN charge:7: qonce: nobody knows whether it happened
  since 2026-06-02T12:00:00Z (15m00s); signal 9
  next: find out, then qonce --done or --forget with this key" '... for 15 minutes'
qonce --done charge:7
Q_NOW=2026-06-02T12:15:00Z quiet '... until somebody says'

# ---- locks, log, disk ----

fresh
qlock -l 2d nas -- qlate --check >out 2>err
is "$?$(cat out err)" 0 'a lock'
qlock -l 2d nas -- sh -c 'Q_NOW=2026-06-03T11:59:59Z qlate --check' >out 2>err
is "$?$(cat out err)" 0 '... of less than a day'
qlock -l 2d nas -- sh -c 'Q_NOW=2026-06-03T12:00:00Z qlate --check' >out 2>err
is "$?$(sed 's/by .*/by W/' out)" "1qlate: LOCK nas: this lock is held for 1d00h, by W
  since 2026-06-02T12:00:00Z (1d00h)
  next: see whether that still runs; qlock --break frees it" '... of a day'
qadd -q x x
sqlite3 q.db 'PRAGMA journal_mode' >made
qdone "$(qclaim x | claim_of)"
[ -e q.db-wal ] || : >q.db-wal
truncate -s 268435457 q.db-wal 2>made
like "$(qlate --check)" '^qlate: LOG file: the log of /.*/q.db has 256 MiB' 'a log that grows'
rm -f q.db*
if [ "$(id -u)" -eq 0 ] && mkdir small && mount -t tmpfs -o size=40m none small 2>/dev/null; then
	qinit small/q.db
	like "$(qlate -d small/q.db --check)" '^qlate: DISK file: the disk of /.*/small/q.db has [0-9]* MiB left$' 'a disk that is nearly full'
	umount small
fi

# ---- what can be told by nobody but a person ----

fresh
qset 'expect.export=by 06:00 Europe/Berlin'
Q_NOW=2026-06-09T12:00:00Z
TZDIR=$PWD
export TZDIR
alarm 'the zones have gone' 'qlate: ABSENT export: expected by 06:00 Europe/Berlin, of which no time can be told: its zone is not here
  next: install the zones, most often as tzdata, or see TZDIR in q(7)'
unset TZDIR
back
if [ "$(id -u)" -eq 0 ] && setpriv --reuid=4001 --regid=4001 --clear-groups true 2>/dev/null; then
	qbackup copy.db
	chmod 755 .
	chmod 644 copy.db
	exits 77 'a copy that nobody has opened yet' setpriv --reuid=4001 --regid=4001 --clear-groups qlate -d copy.db --check
	is "$(cat err)" "qlate: $PWD/copy.db-wal: not there, and you may not make it; next: qinit '$PWD/copy.db', by somebody who may write to it" '... says what helps'
	qls -d copy.db
	exits 0 '... indeed' setpriv --reuid=4001 --regid=4001 --clear-groups qlate -d copy.db --check
fi

# ---- again only if it is news ----

fresh
exits 0 'nothing to tell' qlate --check --every 1h --id ops
is "$(cat out err; sql "SELECT name FROM sqlite_schema WHERE name = 'q_told'")" '' '... and nothing to remember'
qadd -q mail x
qfail --dead "$(qclaim mail | claim_of)"
exits 1 'a problem' qlate --check --every 1h --id ops
is "$(head -n 1 out)" 'qlate: new: DEAD mail: 1 job is dead' '... is told'
exits 1 '... and again' env Q_NOW=2026-06-02T12:59:59Z qlate --check --every 1h --id ops
is "$(cat out err)" '' '... not within the hour, with the same status'
exits 1 '... by another' qlate --check --every 1h --id dev
is "$(wc -l <out | tr -d ' ')" 3 '... is told'
exits 1 '... after an hour' env Q_NOW=2026-06-02T13:00:00Z qlate --check --every 1h --id ops
is "$(wc -l <out | tr -d ' ') $(head -n 1 out)" '3 qlate: DEAD mail: 1 job is dead' '... is told, and no news'
qadd -q mail y
qfail --dead "$(qclaim mail | claim_of)"
exits 1 'one more of the same' env Q_NOW=2026-06-02T13:01:00Z qlate --check --every 1h --id ops
is "$(cat out)" '' '... is no other problem'
qadd -q new y
qfail --dead "$(qclaim new | claim_of)"
exits 1 'another problem' env Q_NOW=2026-06-02T13:02:00Z qlate --check --every 1h --id ops
is "$(grep '^qlate' out)" 'qlate: new: DEAD new: 1 job is dead
qlate: DEAD mail: 2 jobs are dead' '... is told first, and marked'
if [ "$(id -u)" -eq 0 ] && setpriv --reuid=4001 --regid=4001 --clear-groups true 2>/dev/null; then
	chmod 755 .
	chmod 644 q.db*
	exits 1 'who may only read' setpriv --reuid=4001 --regid=4001 --clear-groups qlate --check --every 1h --id ops
	is "$(grep '^qlate' out; cat err)" "qlate: DEAD mail: 2 jobs are dead
qlate: DEAD new: 1 job is dead
qlate: $PWD/q.db: no permission to write; check its owner and mode, and the mount; until then this is not remembered, and told each time" '... is told all the same'
	chmod 600 q.db*
fi
qcancel -q "$(sql "SELECT id FROM q_job WHERE queue = 'new'")"
exits 1 'one less' env Q_NOW=2026-06-02T13:03:00Z qlate --check --every 1h --id ops
is "$(grep '^qlate' out)" 'qlate: over: DEAD new
qlate: DEAD mail: 2 jobs are dead' '... is told, and which'
exits 0 'of other queues' qlate --check --every 1h --id ops new
is "$(cat out err)" '' '... nothing was told'
exits 1 '... and what was told of all' env Q_NOW=2026-06-02T13:04:00Z qlate --check --every 1h --id ops
is "$(cat out err)" '' '... is not over by that'
exits 1 '... nor new' env Q_NOW=2026-06-02T13:04:00Z qlate --check --every 1h --id ops mail
is "$(head -n 1 out)" 'qlate: new: DEAD mail: 2 jobs are dead' '... but for who asks for less'
exits 74 'a disk that is full' sh -c 'Q_NOW=2026-06-02T15:00:00Z qlate --check --every 1h --id ops >/dev/full'
exits 1 '... was not told' env Q_NOW=2026-06-02T15:00:01Z qlate --check --every 1h --id ops
is "$(wc -l <out | tr -d ' ')" 3 '... and is now'
exits 1 'a clock that was set back' env Q_NOW=2026-06-02T11:00:00Z qlate --check --every 1h --id ops
is "$(wc -l <out | tr -d ' ')" 3 '... tells rather than hides'
sql 'SELECT id FROM q_job' | qcancel -q - 2>made
exits 0 'all is well' qlate --check --every 1h --id ops
is "$(cat out err)" 'qlate: over: nothing is left of what was told last, at 2026-06-02T11:00:00Z' '... is told'
exits 0 '... once' qlate --check --every 1h --id ops
is "$(cat out err)" '' '... silently then'
exits 1 '... and no more' sh -c 'qadd -q mail z; qfail --dead "$(qclaim mail | jq -r .claim)"; qlate --check --every 1h --id ops'
is "$(wc -l <out | tr -d ' ')" 3 '... is told at once'

# ---- hostile names ----

fresh
write "INSERT INTO q_job(queue, event_ms, due_ms, added_ms, state, finished_ms) VALUES(CAST(x'1b5b33316dff0a6d' AS TEXT), 1, 1, 1, 'dead', 1);
INSERT INTO q_attempt(job, generation, attempt, fence, queue, type, due_ms, started_ms, finished_ms, outcome, state, count)
 SELECT 1, 1, 1, 1, 'q', CAST(x'1b' AS TEXT), $noon, $noon, $noon - column1, 'done', 'done', iif(column1 > 3, 10, 0) FROM (VALUES(9), (8), (7), (3), (2), (1))"
exits 1 'names of other programs' qlate --check
is "$(grep -c "$(printf '\033')" out) $(wc -l <out | tr -d ' ') $(head -n 1 out)" '0 3 qlate: DEAD \x1b[31m\xff\x0am: 1 job is dead' '... are made safe'

done_testing
