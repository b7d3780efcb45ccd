#!/bin/sh
# qls: what is listed and in which order, one job whole, counts; for people and for pipes.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000
unset COLUMNS

word() { sed 's/.*"claim":"\([^"]*\)".*/\1/'; }
claim() { qclaim -c "${2:-1}" "$1" | word; }
ids() { cut -f1 | tr '\n' ' ' | sed 's/ $//'; }
fresh() { rm -f q.db*; qinit "$@"; }
# lists NAME WANT ARGS...: the ids
lists() {
	name=$1 want=$2
	shift 2
	exits 0 "qls $*" qls "$@"
	is "$(ids <out)$(cat err)" "$want" "... $name"
}
# terminal COLUMNS CMD: what a terminal of that width would show
terminal() { script -qec "stty cols $1 rows 50; $2" /dev/null </dev/null | tr -d '\r'; }

exits 66 'no file' qls
qinit
exits 0 'an empty file' qls
is "$(cat out err)" '' '... is listed as nothing'
exits 0 'a queue that is not there' qls none
is "$(cat out err)" '' '... likewise'

# ---- what is listed, in which order ----

qadd -q -t t1 -k k/1 -p 9 mail one
qadd -q -t t2 --in 1h mail two
qadd -q -e ana mail three
qadd -q -e ana mail four
qadd -q -k k/5 mail five
qadd -q mail six
qadd -q mail seven
qadd -q sms eight
qadd -q -p 0 --in 1m mail nine
qadd -q bulk ten
qadd -q bulk eleven
c=$(claim mail); qdone "$c"				# 3, so that 4 is free
c=$(claim mail); qfail --in 2h -m 'connection refused' "$c"	# 4
qadd -q -e ana mail twelve					# 12 waits for 4
c=$(claim mail); qfail --dead -m '100% _wrong_: "x"' "$c"	# 5
c=$(claim mail)							# 6 stays claimed
c=$(claim bulk); qfail --in 0s -m first "$c"; c=$(claim bulk); qfail --in 1s -m second "$c"	# 10
sqlite3 q.db "UPDATE q_job SET state = 'cancelled', ready_ms = NULL, finished_ms = 1780401600000 WHERE id = 8"

lists 'the open ones of a queue: claimed, then as they would be claimed, then what waits' '6 9 7 2 4 1 12' mail
lists 'all open ones: no queue is forgotten' '11 10 6 9 7 2 4 1 12'
lists 'the queues in the order named' '6 9 7 2 4 1 12 11 10' mail bulk
lists 'each once' '11 10' bulk bulk
lists 'one state' '11 9 7 2 1 12' --state pending
lists '...' '6' --state claimed
lists '...' '10 4' --state failed
lists '...' '5' --state dead
lists '...' '3' --state done
lists '...' '8' --state cancelled
lists 'the default by name' '11 10 6 9 7 2 4 1 12' --state open
lists 'several' '5 3 8' --state dead,done,cancelled
lists '...' '10 6 4' --state failed,claimed
lists 'all of them' '11 10 6 9 7 2 4 1 12 5 3 8' --state all
lists 'all of some queues' '11 10 8' --state all bulk sms
lists 'a state and open' '11 10 6 9 7 2 4 1 12 5' --state dead,open
for s in '' x Dead 'dead,' ',dead' 'dead,x' 'dead dead'; do
	exits 64 "--state '$s' is refused" qls --state "$s"
done

# ---- filters ----

lists 'of one type' 1 -t t1
lists '... of another' 2 --type t2 mail
lists '... in another queue: none' '' -t t2 bulk
lists 'of one key' 1 -k k/1
lists '... dead' 5 --key k/5 --state all
lists 'of one entity' '4 12' -e ana
lists '... in all states' '4 12 3' --entity ana --state all
lists 'filters add up' 12 -e ana --state pending
lists 'by a part of the last reason' '4' --reason refused
lists '...' 5 --reason '100% _wrong_: "x"' --state all
lists '... which is no pattern' '' --reason '100%_'
lists '... and minds case' '' --reason Refused
lists '... not by the reason before' '' --reason first
lists '...' 10 --reason second
export Q_NOW=2026-06-02T13:00:00Z
qadd -q late thirteen
lists 'by age' '11 10 6 9 7 2 4 1 12' --older-than 1s
lists '... exactly as old is not older' '' --older-than 1h
lists '...' 13 --newer-than 59m
lists '... as new as that' '11 10 13 6 9 7 2 4 1 12' --newer-than 1h
lists 'between' '' --older-than 10m --newer-than 50m
exits 64 '--older-than without a unit' qls --older-than 5
export Q_NOW=2026-06-02T12:00:00Z
lists 'so many' '11 10 13 6' --limit 4
lists '... none' '' --limit 0
lists '... more than there are' 5 --limit 99 --state dead
for n in -1 x ''; do exits 64 "--limit '$n' is refused" qls --limit "$n"; done

exits 0 '--exists' qls --exists -k k/1 mail
is "$(cat out err)" '' '... is silent'
exits 1 '--exists, and there is none' qls --exists -k k/1 bulk
is "$(cat out err)" '' '... is silent, too'
exits 1 '--exists looks at open jobs' qls --exists -k k/5
exits 0 '... unless told' qls --exists -k k/5 --state dead
exits 1 '--exists in a queue that is not there' qls --exists none
exits 0 '--exists with -j' qls -j --exists
is "$(cat out)" '' '... prints nothing'

# ---- for pipes: TSV ----

fresh
qadd -q -k "$(printf 'k\\e\303\251y')" mail "$(printf 'tab\tnl\nback\\cr\resc\033bell\007del\177\303\274 end ')"
printf 'nul\0ff\377bidi\342\200\256x\302\205y' | qadd -q --in 1h --attempts 3 mail
qadd -q --empty mail ''
exits 0 'a pipe' qls
is "$(cat out)" "$(printf '%s\t' 1 mail pending 2026-06-02T12:00:00Z 0/20 'k\\e'"$(printf '\303\251')"y)"'tab\tnl\nback\\cr\resc\x1bbell\x07del\x7f'"$(printf '\303\274')"' end 
'"$(printf '3\tmail\tpending\t2026-06-02T12:00:00Z\t0/20\t\t\n')"'
'"$(printf '%s\t' 2 mail pending 2026-06-02T13:00:00Z 0/3 '')"'nul\x00ff\xffbidi\xe2\x80\xaex\xc2\x85y' 'seven fields, no head, everything escaped'
is "$(tail -n 1 out | cut -f7 | perl -pe 's/\\x(..)/chr hex $1/ge' | od -An -tx1 -v | tr -d ' \n')" \
    "$(printf 'nul\0ff\377bidi\342\200\256x\302\205y\n' | od -An -tx1 -v | tr -d ' \n')" '... and can be turned back'
is "$(awk -F'\t' '{ print NF }' out | sort -u)" 7 '... seven in each'

# ---- one job ----

fresh
qadd -q -k k/1 -t reset -e ana --at '2026-06-02 14:00' --tz Europe/Berlin --event-time 2026-06-01T00:00:00Z --attempts 5 mail "$(printf 'a\033[1mb\n')"
qadd -q -e ana mail second
export Q_NOW=2026-06-02T12:00:01.500Z
qfail --in 1s -m "$(printf 'no\nroute')" "$(claim mail)"
export Q_NOW=2026-06-02T12:01:02.750Z
qfail --defer 10s "$(claim mail)"
export Q_NOW=2026-06-02T12:02:00Z
c=$(claim mail)
export Q_BOOT=b1:1300000 Q_NOW=2026-06-02T12:07:30Z
c=$(claim mail)
export Q_NOW=2026-06-02T12:07:31.001Z
qdone --count 3 -r '{"sent": 3}' "$c"
export Q_NOW=2026-06-03T15:10:00Z
exits 0 'qls ID' qls 1
me=$(uname -n)
is "$(sed "s/$me:[0-9]*/WORKER/" out)" 'job         1
queue       mail
state       done
type        reset
key         k/1
entity      ana
priority    5
attempts    2 of 5 spent, generation 1
added       2026-06-02T12:00:00.000Z (1d3h ago)
due         2026-06-02T12:01:12.750Z (1d3h ago)
zone        Europe/Berlin
event       2026-06-01T00:00:00.000Z (2d15h ago)
claimed     2026-06-02T12:07:30.000Z (1d3h ago)
settled     2026-06-02T12:07:31.001Z (1d3h ago)
worker      WORKER
payload     (6 bytes) a\x1b[1mb
attempts, the newest first:
  1.3 done -> done  2026-06-02T12:07:30.000Z  late 6m17s250ms  ran 1s1ms  count 3  by WORKER
      result: {"sent": 3}
  1.2 lost -> failed  2026-06-02T12:02:00.000Z  late 47s250ms  ran 5m30s  by WORKER
      reason: the lease ended before the job was settled
  1.2 deferred -> pending  2026-06-02T12:01:02.750Z  late 1m250ms  ran 0s  by WORKER
  1.1 failed -> failed  2026-06-02T12:00:01.500Z  late 1s500ms  ran 0s  by WORKER
      reason: no\x0aroute' '... the whole history, control bytes visible'
exits 0 'one that has none yet' qls 2
is "$(cat out)" 'job         2
queue       mail
state       pending
entity      ana
priority    5
attempts    0 of 20 spent, generation 1
added       2026-06-02T12:00:00.000Z (1d3h ago)
due         2026-06-02T12:00:00.000Z (1d3h ago)
payload     (6 bytes) second' '... is told shortly'
exits 0 'qls -j ID' qls -j 1
attempt() {	# ATTEMPT FENCE OUTCOME STATE DUE STARTED FINISHED REST, the times as TIME MS
	printf '{"generation":1,"attempt":%d,"fence":%d,"outcome":"%s","state":"%s","due_at":"%s","due_ms":%s,"zone":"Europe/Berlin",' "$1" "$2" "$3" "$4" "$5" "$6"
	printf '"started_at":"%s","started_ms":%s,"finished_at":"%s","finished_ms":%s,"exit":null,"signal":null,"worker":"WORKER",%s}' "$7" "$8" "$9" "${10}" "${11}"
}
want='{"id":1,"claim":null,"queue":"mail","type":"reset","key":"k/1","entity":"ana","priority":5,"state":"done","attempt":3,"generation":1,"attempts":5,"backoff_ms":null,"backoff_cap_ms":null,"window_ms":null,"payload":"a\u001b[1mb","added_at":"2026-06-02T12:00:00Z","added_ms":1780401600000,"due_at":"2026-06-02T12:01:12Z","due_ms":1780401672750,"zone":"Europe/Berlin","event_at":"2026-06-01T00:00:00Z","event_ms":1780272000000,"claimed_at":"2026-06-02T12:07:30Z","claimed_ms":1780402050000,"settled_at":"2026-06-02T12:07:31Z","settled_ms":1780402051001,"outcome":"done","exit":null,"signal":null,"worker":"WORKER","count":3,"reason":null,"result":{"sent":3},"blocked_by":null,"history":['
want=$want$(attempt 3 4 'done' 'done' 2026-06-02T12:01:12Z 1780401672750 2026-06-02T12:07:30Z 1780402050000 2026-06-02T12:07:31Z 1780402051001 \
    '"count":3,"reason":null,"result":{"sent":3}'),
want=$want$(attempt 2 3 lost failed 2026-06-02T12:01:12Z 1780401672750 2026-06-02T12:02:00Z 1780401720000 2026-06-02T12:07:30Z 1780402050000 \
    '"count":null,"reason":"the lease ended before the job was settled","result":null'),
want=$want$(attempt 2 2 deferred pending 2026-06-02T12:00:02Z 1780401602500 2026-06-02T12:01:02Z 1780401662750 2026-06-02T12:01:02Z 1780401662750 \
    '"count":null,"reason":null,"result":null'),
want=$want$(attempt 1 1 failed failed 2026-06-02T12:00:00Z 1780401600000 2026-06-02T12:00:01Z 1780401601500 2026-06-02T12:00:01Z 1780401601500 \
    '"count":null,"reason":"no\nroute","result":null')]}
is "$(sed "s/$me:[0-9]*/WORKER/g" out)" "$want" '... the record, with its history'
is "$(jq -r '[.history[].outcome] | join(" ")' out)" 'done lost deferred failed' '... as jq reads it'
exits 0 '... and as qadd does' sh -c 'qls -j 1 | qadd --jsonl copy'
is "$(qls -j copy | jq -c '[.key, .entity, .attempts, .zone]')" '["k/1","ana",5,"Europe/Berlin"]' '... which copies it'

qadd -q -p 0 --attempts 3 --backoff 1s..1m30s --window 2h now x
export Q_BOOT=b1:1000000 Q_NOW=2026-06-03T15:10:02Z
c=$(qclaim -l 90s now | word)
exits 0 'one that is claimed' qls 4
is "$(sed "s/$me:[0-9]*/WORKER/" out)" "job         4
queue       now
state       claimed
priority    0
attempts    0 of 3 spent, generation 1
backoff     1s..1m30s
window      2h
added       2026-06-03T15:10:00.000Z (2s ago)
due         2026-06-03T15:10:00.000Z (2s ago)
claimed     2026-06-03T15:10:02.000Z (now)
worker      WORKER
claim       $c
lease       ends in 1m30s
payload     (1 bytes) x" '... has its claim and its policy'
like "$(Q_BOOT=b1:1090000 qls 4)" '^lease       over; the next claimer takes the job$' '... whose lease ends'
like "$(Q_BOOT=b2:1 qls 4)" '^lease       over; the next claimer takes the job$' '... with the boot, too'
is "$(qls -j 4 | word)" "$c" '... and can be settled by who knows better'
qdone "$c"
is "$(qls -j 4 | jq .claim) $(qls 4 | grep -c -e ^claim -e ^lease)" 'null 1' '... once'
exits 66 'a job that is not there' qls 99
is "$(cat err)" "qls: no job 99 in $PWD/q.db; see qls --state all, -d and Q_DB" '... is told'
exits 66 '... in JSON' qls -j 99
exits 66 '... raw' qls --raw 99
for args in '1 2' '--limit 1 1' '--counts 1' '--raw' '--raw mail' '--raw 1 2' '--raw -j 1' '--counts --limit 1' '--counts --state dead'; do
	# shellcheck disable=SC2086
	qls $args >out 2>err
	like "$? $(cat out)" '^6[45] $' "qls $args is refused"
done

# The payload, byte for byte.
perl -e 'print pack("C*", map { $_ % 256 } 0 .. 999_999)' >bytes
qadd -q mail <bytes
qls --raw 5 | cmp -s - bytes
ok $? '--raw: a megabyte of all bytes'
is "$(qls --raw 1 | od -An -tx1)" "$(printf 'a\033[1mb\n' | od -An -tx1 | sed 's/ 0a$//')" '... of a job that is done'
exits 74 '--raw to a full disk' sh -c 'qls --raw 5 >/dev/full'

# ---- counts ----

truth() {	# by GROUP BY, as --counts prints it
	sql "SELECT queue, sum(state = 'pending'), sum(state = 'claimed'), sum(state = 'failed'), sum(state = 'done'), sum(state = 'dead'), sum(state = 'cancelled'),
	     sum(entity IS NOT NULL AND state IN ('pending', 'failed') AND ready_ms IS NULL) FROM q_job GROUP BY queue ORDER BY queue" | tr '|' '\t'
}
fresh
exits 0 '--counts of nothing' qls --counts
is "$(cat out err)" '' '... is nothing'
cat >random.pl <<'END'
srand($ENV{SEED} // 7);
for (1 .. 400) {
	my $e = rand() < .5 ? ',"entity":"e' . int(rand 9) . '"' : '';
	printf qq({"queue":"q%d","due_ms":%d,"priority":%d,"payload":"%d"%s}\n), rand 6, 1780401600000 + 1000 * int(rand 20) - 15000, rand 10, $_, $e;
}
END
perl random.pl | qadd -q --jsonl
qclaim -c 170 q0 q1 q2 q3 q4 | word >words
sed -n 1,60p words | qdone -
sed -n 61,80p words | qfail --dead -
sed -n 81,110p words | qfail --in 1h -
sed -n 111,120p words | qfail --release -
sqlite3 q.db "UPDATE q_job SET state = 'cancelled', ready_ms = NULL, finished_ms = 1 WHERE id IN (SELECT id FROM q_job WHERE ready_ms IS NOT NULL AND entity IS NULL LIMIT 9)"
exits 0 '--counts' qls --counts
is "$(cat out)" "$(truth)" '... are those of GROUP BY'
exits 0 '--counts of some' qls --counts q3 q1 none
is "$(cat out)" "$(truth | grep -E '^q[13]')" '... only those'
exits 0 '--counts -j' qls --counts -j
is "$(jq -r '[.queue, .pending, .claimed, .failed, .done, .dead, .cancelled, .blocked] | @tsv' out)" "$(truth)" '... with names'
is "$(head -n 1 out | jq -r 'keys_unsorted | join(" ")')" 'queue pending claimed failed done dead cancelled blocked' '... these'

# ---- thousands: pages ----

# Nothing may be missing or come twice where one page of 1,000 ends and the next begins, in any lane, level or not.
fresh -m 0644
perl -e 'for (1 .. 6000) {
	my $lane = $_ % 6;
	my $due = 1780401600000 - ($_ % 4 == 0 ? $_ % 50 : 0);
	my $event = ",\"event_ms\":" . ($_ % 12 < 6 ? 5 : $_ % 100);
	my $entity = $lane == 2 ? ",\"entity\":\"" . ($_ % 5 ? "big" : "e" . $_ % 7) . "\"$event" : "";
	my $queue = qw(run ready wait dead done ready)[$lane];
	printf qq({"queue":"$queue","due_ms":$due,"priority":%d,"payload":"%s"$entity}\n), $lane == 5 ? 1 : 5, "p" x 200;
}' | qadd -q --jsonl
qclaim -c 1000 run dead >/dev/null
qclaim -c 2000 done | qdone -
sqlite3 q.db "BEGIN; UPDATE q_job SET lease_ms = lease_ms + id % 3 WHERE state = 'claimed';
 UPDATE q_job SET state = 'dead', lease_ms = NULL, ready_ms = NULL, finished_ms = 1 WHERE queue = 'dead'; COMMIT"
qclaim -c 500 run >/dev/null
exits 0 '6,000 jobs in all lanes' qls --state all
is "$(wc -l <out | tr -d ' ') $(cut -f1 out | sort -nu | wc -l | tr -d ' ')" '6000 6000' '... none missing, none twice'
is "$(cut -f1 out | cksum)" "$(sql "SELECT id FROM (
 SELECT id, queue AS q, 1 AS lane, 0 AS p, '' AS e, lease_ms AS at FROM q_job WHERE state = 'claimed'
 UNION ALL SELECT id, queue, 2, priority, '', ready_ms FROM q_job WHERE ready_ms IS NOT NULL
 UNION ALL SELECT id, queue, 3, 0, entity, event_ms FROM q_job WHERE state IN ('pending', 'failed') AND ready_ms IS NULL
 UNION ALL SELECT id, queue, 4, 0, '', 0 FROM q_job WHERE state = 'dead'
 UNION ALL SELECT id, '~', 5, 0, '', 0 FROM q_job WHERE state IN ('done', 'cancelled')) ORDER BY q, lane, p, e, at, id" | cksum)" '... in their order'
is "$(sql "SELECT sum(state = 'claimed') || ' ' || sum(ready_ms IS NOT NULL) || ' ' || sum(state = 'pending' AND ready_ms IS NULL) || ' ' || sum(state = 'dead') || ' ' || sum(state = 'done') FROM q_job")" \
    '1000 2008 992 1000 1000' '... with a page or more in each'
for n in 999 1000 1001 2000 2001; do
	is "$(qls --limit $n ready | wc -l | tr -d ' ')" "$((n < 2000 ? n : 2000))" "--limit $n"
done
is "$(qls -j --state all | jq -r .id | cksum)" "$(cut -f1 out | cksum)" 'the same list as JSON'

# ---- a reader that leaves, a disk that is full ----

{ qls --state all 2>err; echo "$?" >rc; } | head -n 1 >first
is "$(wc -l <first | tr -d ' ') $(cat rc) $(cat err)" '1 141 ' 'qls | head dies by SIGPIPE, silently'
exits 74 'qls to a full disk' sh -c 'qls --state all >/dev/full'
is "$(cat err)" 'qls: standard output: No space left on device; the output is not complete' '... is told'
exits 74 '... with little to say, too' sh -c 'qls --limit 1 >/dev/full'
exits 74 'qls with standard output closed' sh -c 'qls --limit 1 >&-'
for args in '--counts' '-j --limit 1' '1' '-j 1'; do
	exits 74 "qls $args to a full disk" sh -c "qls $args >/dev/full"
done

# ---- while the output blocks, nothing is held ----

checkpoint() { sqlite3 q.db 'PRAGMA wal_checkpoint(TRUNCATE)'; }
mkfifo pipe
qadd -q other x
qls --state all >pipe 2>err &
pid=$!
exec 5<pipe
IFS= read -r _ <&5
until_ok eval '[ "$(checkpoint)" = "0|0|0" ]'	# it may still be reading what the pipe takes
ok $? 'while a reader of qls is slow the log can be copied'
qadd -q other y
cat <&5 >rest
exec 5<&-
wait "$pid"
is "$? $(wc -l <rest | tr -d ' ') $(cat err)" '0 6001 ' '... and the list goes on'
qadd -q other x
is "$(sqlite3 q.db 'BEGIN; SELECT min(id) FROM q_job;' '.shell sqlite3 q.db "PRAGMA wal_checkpoint(TRUNCATE)"' | cut -d'|' -f1 | tr '\n' ' ')" '1 1 ' \
    'which a reader that stays would prevent'

# ---- without permission to write ----

qadd -q other x		# an SQLite shell that leaves last takes the log away, and only a writer can make it anew
cp "$(command -v qls)" "$(command -v qclaim)" .
chmod 755 .
if [ "$(id -u)" -eq 0 ]; then
	other() { setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nowhere "$@"; }
else
	chmod 444 q.db*
	chmod 555 .
	other() { "$@"; }
fi
skip=
[ "$(id -u)" -ne 0 ] || command -v setpriv >/dev/null || skip=1
if [ -z "$skip" ]; then
	got=$(other ./qls --state all | wc -l | tr -d ' ')
	is "$got" 6004 'somebody who may only read sees all'
	got=$(other ./qls --counts run)
	is "$got" "$(qls --counts run)" '... and the counts'
	got=$(other ./qclaim ready 2>&1; echo "$?")
	like "$got" 'no permission to write' '... but does not claim'
	is "$(echo "$got" | tail -n 1)" 77 '... which is 77'
fi
chmod 755 .
chmod 644 q.db*

# ---- for people ----

export Q_NOW=2026-06-02T12:00:00Z
fresh
qadd -q -k order-7 mail '{"to":"ana"}'
qadd -q -e ana -k a-very-long-key-indeed a-queue-with-a-long-name x
qadd -q -e ana a-queue-with-a-long-name "$(printf 'esc \033[31mred\033[0m tab\t nl\n bidi \342\200\256 \346\274\242\345\255\227, and so much more that no terminal of these widths has the room to show it all')"
qadd -q --in 51h4m5s --attempts 9 mail later
qadd -q --in 4m12s mail soon
sqlite3 q.db 'UPDATE q_job SET id = 12345678901 WHERE id = 5; UPDATE q_body SET job = 12345678901 WHERE job = 5'
export Q_NOW=2026-06-02T12:00:10Z
is "$(terminal 80 qls)" 'ID      QUEUE      STATE     DUE           TRIES  KEY          PAYLOAD
2       a-queue... pending   10s ago       0/20   a-very-lo... x
3       a-queue... blocked   10s ago       0/20   -            esc \x1b[31mre...
1       mail       pending   10s ago       0/20   order-7      {"to":"ana"}
12345678901 mail       pending   in 4m2s       0/20   -            soon
4       mail       pending   in 2d3h       0/9    -            later' 'a terminal of 80 columns'
is "$(terminal 120 qls | sed -n 3p)" '3       a-queue... blocked   10s ago       0/20   -            esc \x1b[31mred\x1b[0m tab\x09 nl\x0a bidi \u{202e} 漢...' \
    '... of 120'
is "$(terminal 40 qls | sed -n 4p)" '1       mail       pending   10s ago       0/20   order-7      {"to":"ana"}' '... of 40, which is too few'
is "$(terminal 120 'COLUMNS=90 qls' | sed -n 3p)" '3       a-queue... blocked   10s ago       0/20   -            esc \x1b[31mred\x1b[0m t...' 'COLUMNS says otherwise'
is "$(terminal 80 'qls -j --limit 1' | cut -c1-8)" '{"id":2,' 'JSON on a terminal stays JSON'
fresh
export Q_NOW=2026-06-02T12:00:00Z
seq 1 20 | qadd -q --lines mail
is "$(terminal 80 qls | wc -l | tr -d ' ')" 21 '20 jobs: a head and 20 rows'
is "$(terminal 80 qls | tail -n 1)" '20      mail       pending   now           0/20   -            20' '... and no note'
qadd -q mail 21
is "$(terminal 80 qls | tail -n 2)" '20      mail       pending   now           0/20   -            20
qls: 20 shown, there are more; --limit N shows N' '21 jobs: 20 rows and a note'
is "$(terminal 80 'qls 2>/dev/null' | wc -l | tr -d ' ')" 21 '... which goes to standard error'
is "$(terminal 80 'qls --limit 21' | tail -n 1 | cut -c1-8)" '21      ' '--limit shows more'
is "$(terminal 80 'qls --limit 3' | wc -l | tr -d ' ')" 4 '... or less, without a note'
is "$(terminal 80 'qls none')" '' 'no jobs: not even a head'
is "$(terminal 80 'qls --counts')" 'QUEUE                  PENDING   CLAIMED    FAILED      DONE      DEAD CANCELLED   BLOCKED
mail                        21         0         0         0         0         0         0' 'counts with their head'
# ---- rows that no program of q writes ----

fresh
sqlite3 q.db "INSERT INTO q_job(queue, event_ms, due_ms, ready_ms, added_ms) VALUES(printf('%.70c', 'a'), 1, 1, 1, 1)"
exits 74 'a queue name that is too long' timeout 20 qls --counts
qadd -q mail x
qfail "$(claim mail)"
sqlite3 q.db 'UPDATE q_attempt SET prev = id'
exits 0 'a ledger that bites its tail' timeout 20 qls 2

fresh
printf '%s\n' one two | qadd -q --lines mail
sqlite3 q.db 'DELETE FROM q_body WHERE job = 2'
for args in 2 '-j 2' '--raw 2' '' -j; do
	# shellcheck disable=SC2086
	exits 74 "a job whose payload is gone: qls $args" qls $args
	is "$(cat err)" "qls: $PWD/q.db: job 2 has lost its payload; the file is damaged; next: go back to a copy, as qbackup(1) says" '... names it'
	is "$(grep -c two out) $(grep -o -e '"payload":null' -e '^payload.*' -e '^2.*' out)" '0 ' '... and shows none for it'
done
is "$(qls --raw 1)" one '... the others can be read'

fresh
odd="$(printf 'a\033[31m"\\\tb\302\205')"	# escape sequence, quote, backslash, tab, C1
sqlite3 q.db "INSERT INTO q_count VALUES('$odd', 'done', 7);
INSERT INTO q_job(queue, type, key, event_ms, due_ms, ready_ms, added_ms, worker) VALUES('$odd-', '$odd', '$odd', 1, 1, 1, 1, '$odd');
INSERT INTO q_body VALUES(1, CAST('$odd' AS BLOB))"
shown='a\x1b[31m"\\\tb\xc2\x85'
exits 0 'a queue with an odd name: --counts' qls --counts
is "$(cat out)" "$(printf '%s\t0\t0\t0\t7\t0\t0\t0\n%s-\t1\t0\t0\t0\t0\t0\t0' "$shown" "$shown")" '... is shown escaped'
exits 0 '... in JSON' qls --counts -j
is "$(jq -r .queue out)" "$(printf '%s\n%s-' "$odd" "$odd")" '... is a string like others'
is "$(tr -d '[:print:]\n' <out | tr -d '\302\205')" '' '... without its control bytes'
like "$(terminal 120 'qls --counts' | tr '\033' '!')" '^a.x1b\[31m"' '... on a terminal'
exits 0 'the job' qls
is "$(cut -f 1-3,6- out)" "$(printf '1\t%s-\tpending\t%s\t%s' "$shown" "$shown" "$shown")" '... in a list'
qls -j | jq -r '.queue, .type, .key, .worker, .payload' >got
is "$(cat got)" "$(printf '%s-\n%s\n%s\n%s\n%s' "$odd" "$odd" "$odd" "$odd" "$odd")" '... in JSON'
qls 1 >got
is "$(tr -d '[:print:]\n' <got)" '' '... and by itself: no control byte'

fresh
qadd -q mail x
qfail -m why "$(claim mail)"
forge="$(printf 'done\033[2K\nfailed\r')"
sqlite3 q.db "UPDATE q_attempt SET outcome = '$forge', state = '$forge', worker = '$forge', reason = '$forge', result = CAST('$forge' AS BLOB), zone = '$forge'"
exits 0 'an attempt with odd words' qls 1
is "$(sed -n '/^attempts, /,$p' out)" 'attempts, the newest first:
  1.1 done\x1b[2K\x0afailed\x0d -> done\x1b[2K\x0afailed\x0d  2026-06-02T12:00:00.000Z  late 0s  ran 0s  by done\x1b[2K\x0afailed\x0d
      reason: done\x1b[2K\x0afailed\x0d
      result: done\x1b[2K\x0afailed\x0d' '... is shown escaped'
is "$(qls -j 1 | jq -r '.history[0] | .outcome, .state, .reason' | sort -u)" "$(printf '%s\n' "$forge" | sort -u)" '... and as it is in JSON'

# A page ends within the rows of one entity, whose name says where the next begins.
for name in "printf('%.300c', 'e')" "'a' || char(0) || 'b'"; do
	fresh
	sqlite3 q.db "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
	INSERT INTO q_job(queue, entity, event_ms, due_ms, added_ms) SELECT 'mail', $name, 1, 1, 1 FROM n;
	INSERT INTO q_body SELECT id, x'78' FROM q_job"
	exits 74 "1,500 that wait, of the entity $name" timeout 20 qls mail
	like "$(cat err)" "^qls: $PWD/q.db: job 1 has an entity that no program of q writes" '... are told'
	is "$(cat out)" '' '... and not listed again and again'
done
fresh
sqlite3 q.db "INSERT INTO q_count VALUES('a' || char(0) || 'b', 'done', 7)"
for args in '' --counts '-j --counts'; do
	# shellcheck disable=SC2086
	exits 74 "a queue with a NUL in its name: qls $args" timeout 20 qls $args
	like "$(cat err)" "^qls: $PWD/q.db: something has a name that no program of q writes" '... is told'
done

done_testing
