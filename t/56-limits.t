#!/bin/sh
# What is set for a queue, as claims, settlements and adds obey it: pause, rate, concurrency, ageing, retry
# policy, key memory, dead_to, stale=skip.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

fresh() { rm -f q.db*; qinit; }
set_() { qset "$@" || echo "# qset $* failed"; }
at() { _boot=b1:$((1000000 + $1)); shift; Q_BOOT=$_boot "$@"; }	# so many ms later
n() { wc -l | tr -d ' '; }
claims() { qclaim -c 100 "$@" | n; }
claimed() { jq -r .payload | tr '\n' ' '; }
settle() { claim_of | "$@" -; }

# ---- pause ----

fresh
seq 3 | qadd -q --lines m
qadd -q other x
job=$(qclaim m)
set_ queue.m.rate=1000/s+100
sqlite3 q.db "INSERT INTO q_setting VALUES('queue', 'm', 'paused', 'bad deploy', NULL, 1)"
exits 0 'a paused queue' qclaim -c 10 m
is "$(cat out err)" '' '... looks empty'
is "$(claims m other)" 1 '... beside another, which goes on'
exits 0 '... what runs is settled' sh -c 'printf %s "$1" | jq -r .claim | qdone -' sh "$job"
exits 0 '... qwork ends' qwork m -- touch ran
[ ! -e ran ]; ok $? '... and runs nothing'
sqlite3 q.db "DELETE FROM q_setting WHERE field = 'paused'; INSERT INTO q_setting VALUES('queue', '', 'paused', '', NULL, 1)"
qadd -q other y
is "$(claims m other)" 0 'all queues'
sqlite3 q.db "DELETE FROM q_setting WHERE field = 'paused'"
is "$(claims m other)" 3 'none'

# A lease that ends meanwhile is taken back, but its job waits.
fresh
qadd -q m x
qclaim -l 1s m >/dev/null
sqlite3 q.db "INSERT INTO q_setting VALUES('queue', 'm', 'paused', '', NULL, 1)"
is "$(Q_BOOT=b1:1002000 claims m)" 0 'a lease that ends in a pause'
is "$(sql 'SELECT state FROM q_job; SELECT outcome FROM q_attempt')" "$(printf 'failed\nlost')" '... is told as lost'

# ---- rate ----

fresh
seq 100 | qadd -q --lines m
set_ queue.m.rate=10/s+20
is "$(at 0 claims m)" 20 'a rate: the burst at once'
is "$(at 0 claims m)" 0 '... then none'
is "$(at 99 claims m)" 0 '... until the next is due'
is "$(at 100 claims m)" 1 '... and that is one'
is "$(at 1100 claims m)" 10 '... ten a second later'
is "$(at 9000 claims m)" 20 '... and never more than the burst'
before=$(sql 'SELECT * FROM q_rate')
at 9000 qclaim m
is "$(sql 'SELECT * FROM q_rate')" "$before" '... an empty claim takes no token'
is "$(at 9300 qclaim -c 2 m | n)$(at 9300 claims m)" 21 '... nor a claim more than it gets'
at 9500 qclaim m | settle qfail --release
is "$(at 9500 claims m)" 1 '... and a release gives none back'
seq 50 | Q_NOW=2026-06-02T10:00:00Z qadd -q --lines m
is "$(Q_NOW=2026-06-02T11:00:00Z at 9600 claims m)" 1 'the clock on the wall does not matter'
is "$(Q_BOOT=b2:5 claims m)" 20 '... but a reboot fills the bucket'
set_ queue.m.rate=1/1m
is "$(Q_BOOT=b2:6 claims m),$(Q_BOOT=b2:59000 claims m),$(Q_BOOT=b2:60006 claims m)" 1,0,1 'a rate that is changed holds at the next claim, whatever the old one has spent'
set_ queue.m.rate=
is "$(Q_BOOT=b2:60000 claims m)" 100 '... and one that is unset no more'
set_ queue.m.rate=1/1h
is "$(Q_BOOT=b2:60000 claims m),$(Q_BOOT=b2:60000 claims m)" 1,0 'a mistake: one an hour'
set_ queue.m.rate=10/s+2
is "$(Q_BOOT=b2:60000 claims m)" 2 '... mended'
set_ queue.m.rate=10/s+2
is "$(Q_BOOT=b2:60000 claims m)" 0 '... to set it again gives nothing'

# Shared, and its own beside it.
fresh
seq 20 | qadd -q --lines a
seq 20 | qadd -q --lines b
set_ rate.partner=1/s+5 queue.a.limit=partner queue.b.limit=partner queue.a.rate=1/s+3
is "$(at 0 claims a)" 3 'a shared rate and one of its own: the least counts'
is "$(at 0 claims b)" 2 '... the rest is for the other'
is "$(at 2000 claims a b)" 2 '... both in one claim: two seconds, two tokens'
is "$(at 9000 claims b a)" 5 '... a burst for both'
is "$(sql "SELECT sum(state = 'claimed' AND queue = 'a'), sum(state = 'claimed') FROM q_job")" '8|12' '... of which the first in line got what it may'
seq 5 | qadd -q --lines c
is "$(at 9000 claims a b c)" 5 'a queue without a limit beside two that wait'

# A period that is no whole number of microseconds: rather too long than too short.
fresh
seq 2000 | qadd -q --lines m
set_ queue.m.rate=400/1ms+1000
is "$(at 0 qclaim -c 2000 m | n),$(at 2 qclaim -c 2000 m | n)" 1000,666 'a rate is never exceeded, though it has to be rounded'

# Waiting for it.
fresh
seq 4 | qadd -q --lines m
set_ queue.m.rate=1/200ms
unset Q_NOW Q_BOOT
exits 0 'qwork waits for the rate' timeout 60 qwork m -- cat
is "$(sql "SELECT count(*), sum(state = 'done') FROM q_job")" '4|4' '... and does all'
is "$(sql "SELECT min(b.started_ms - a.started_ms) >= 190 FROM q_attempt a, q_attempt b WHERE b.id = a.id + 1")" 1 '... at its pace'
qadd -q m late
is "$(timeout 60 qclaim --wait 30s m | claimed)" 'late ' 'qclaim --wait does, too'
set_ queue.m.rate=1/1h
seq 2 | qadd -q --lines m
until [ -n "$(qclaim m)" ]; do :; done	# the token of the claim before may still be out
is "$(timeout 60 qclaim --wait 100ms m | claimed)" '' '... but no longer than asked'
fresh
seq 150 | qadd -q --lines m
set_ queue.m.rate=100/s+20
exits 0 'qwork at a rate that is about its own' timeout 60 qwork m -- true
is "$(sql "SELECT count(*) FROM q_job WHERE state <> 'done'")" 0 '... does all, though a token comes just after it has looked'
export Q_NOW=2026-06-02T12:00:00Z
seq 3 | qadd -q --lines m
set_ queue.m.rate=1/100ms
exits 0 'while the wall clock stands still' timeout 60 qwork m -- true
is "$(sql "SELECT count(*) FROM q_job WHERE state <> 'done'")" 0 '... the tokens come'
export Q_BOOT=b1:1000000

# ---- concurrency ----

fresh
seq 20 | qadd -q --lines m
set_ queue.m.concurrency=4
qclaim -c 3 -l 10s m >first
is "$(claims m)" 1 'a cap: what is free'
is "$(claims m)" 0 '... then none'
sed 1q first | settle qdone
is "$(claims m)" 1 '... until one is settled'
is "$(Q_BOOT=b1:1011000 claims m)" 2 '... or its lease is over'
set_ queue.m.concurrency=6
is "$(Q_BOOT=b1:1011000 claims m)" 2 '... a higher one holds at once'
set_ queue.m.concurrency=1
is "$(Q_BOOT=b1:1011000 claims m)" 0 '... a lower one lets those that run finish'
exits 0 '... qwork ends at the cap' env Q_BOOT=b1:1011000 qwork m -- true
is "$(Q_BOOT=b2:5 claims m)" 1 '... a reboot frees all'

fresh
seq 9 | qadd -q --lines a
seq 9 | qadd -q --lines b
qadd -q c x
set_ rate.p=1000000/s+1000000 rate.p.concurrency=5 queue.a.limit=p queue.b.limit=p queue.b.concurrency=2
is "$(qclaim -c 4 a | n)" 4 'a shared cap'
is "$(claims b c)" 2 '... one is left, and the third queue has none'
is "$(sql "SELECT count(*) FROM q_job WHERE queue = 'b' AND state = 'claimed'")" 1 '... just one'

fresh
qadd -q a x
qadd -q b x
set_ rate.p.concurrency=1 queue.a.limit=p queue.b.limit=p
qclaim -l 10s b >/dev/null
is "$(at 9999 claims a)" 0 'a place that is taken in a queue'
is "$(at 10000 claims a)" 1 '... is free when the lease is over, though nobody claims from that queue any more'

fresh
qadd -q a x
qadd -q b x
set_ rate.p.concurrency=1 queue.a.limit=p queue.b.limit=p
late=$(at 0 qclaim -l 1s b | claim_of)
is "$(at 2000 claims a)" 1 'who has taken that place'
exits 76 '... keeps it, for a late renewal comes too late' env Q_BOOT=b1:1002001 qrenew "$late"
is "$(sql "SELECT queue, state, lost FROM q_job ORDER BY 1")" "$(printf 'a|claimed|0\nb|failed|1')" '... and the cap holds'

fresh
qadd -q a x
qadd -q b x
set_ rate.p.concurrency=1 queue.a.limit=p queue.b.limit=p
unset Q_BOOT
qclaim -l 1s b >/dev/null
exits 0 'qwork --follow sees such a lease end, too' timeout 60 qwork --follow -c 1 a -- true
export Q_BOOT=b1:1000000

# More leases that are over than one claim takes back.
fresh
set_ queue.m.attempts=1
seq 250 | qadd -q --lines m
qclaim -l 1s -c 250 m >/dev/null
is "$(at 9000 timeout 60 qwork m -- true 2>&1 | n)" 48 'qwork finds 250 claims that were lost for good'	# 16 of each 100 are named
is "$(qls --counts)" "$(printf 'm\t0\t0\t0\t0\t250\t0\t0')" '... all of them'

# Many queues: room for what is there, not for what might be.
fresh
queues=$(seq -f q%.0f 200)
for q in $queues; do echo "{\"queue\":\"$q\",\"payload\":1}"; done | qadd -q --jsonl
set_ queue.q1.age=1ms
# shellcheck disable=SC2086,SC3045
is "$(ulimit -Sv 200000 && qclaim -V >/dev/null 2>&1 || ulimit -Sv unlimited; qclaim -c 10000 $queues | n)" 200 'up to 10,000 of 200 queues in little memory'

# ---- what other programs write into q_setting ----

fresh
seq 9 | qadd -q --lines m
sqlite3 q.db "INSERT INTO q_setting VALUES('queue', 'm', 'concurrency', '2', NULL, 1), ('queue', 'm', 'age', '5m', -7, 1),
    ('queue', 'm', 'attempts', '0', 0, 1), ('queue', 'm', 'rate', 'fast', 1, 1), ('queue', 'm', 'dead_to', '../x', NULL, 1),
    ('queue', 'm', 'limit', 'none', NULL, 1), ('queue', 'm', 'window', '-1', 9223372036854775807, 1), ('queue', 'm', 'what', 'x', 1, 1)"
is "$(qclaim -c 9 m | tee got | n)" 2 'the value counts, as qset shows it'
settle qfail --dead <got
is "$(qls --counts)" "$(printf 'm\t7\t0\t0\t0\t2\t0\t0')" '... and what qset would refuse does not'
qinit --outbox
exits 0 '... nor does it stop an application' sqlite3 q.db "INSERT INTO q_outbox(queue, payload) VALUES('m', 'x')"
set_ queue.m.concurrency=2
is "$(sql "SELECT number FROM q_setting WHERE field = 'concurrency'")" 2 'qset mends a number that does not say what its value says'

# ---- ageing ----

fresh
for p in 0 3 5 9; do
	for min in 0 2 4; do Q_NOW=2026-06-02T11:5$min:00Z qadd -q -p $p m "$p@$min"; done
done
is "$(qclaim -c 12 m | claimed)" '0@0 0@2 0@4 3@0 3@2 3@4 5@0 5@2 5@4 9@0 9@2 9@4 ' 'without ageing: by priority'
fresh
for p in 0 3 5 9; do
	for min in 0 2 4; do Q_NOW=2026-06-02T11:5$min:00Z qadd -q -p $p m "$p@$min"; done
done
set_ queue.m.age=2m
# Waited 10, 8 and 6 minutes: 5, 4 and 3 steps.
is "$(qclaim -c 12 m | claimed)" '0@0 3@0 5@0 0@2 3@2 0@4 3@4 5@2 5@4 9@0 9@2 9@4 ' '... a step for each two minutes'
fresh
seq 500 | qadd -q -p 0 --lines m
Q_NOW=2026-06-02T11:00:00Z qadd -q -p 9 m last
set_ queue.m.age=5m
is "$(qclaim m | claimed)" 'last ' 'the last of all waited longest, and comes first'

# ---- retry policy ----

fresh
set_ queue.m.attempts=2 queue.m.backoff=1h..2h
qadd -q m x
qadd -q --attempts 3 --backoff 1s..1s m own
qclaim -c 2 m >got
settle qfail -m no <got
is "$(sql "SELECT state, spent, due_ms - 1780401600000 BETWEEN 1 AND 3600000, due_ms - 1780401600000 <= 1000 FROM q_job ORDER BY id")" \
    "$(printf 'failed|1|1|0\nfailed|1|1|1')" 'backoff of the queue, and of the job'
Q_NOW=2026-06-02T13:00:00Z qclaim -c 2 m | Q_NOW=2026-06-02T13:00:00Z settle qfail -m no
is "$(sql 'SELECT state, spent FROM q_job ORDER BY id')" "$(printf 'dead|2\nfailed|2')" 'attempts of the queue, and of the job'
set_ queue.m.window=30m
qadd -q m w
is "$(sql "SELECT until_ms - due_ms FROM q_job WHERE id = 3")" 1800000 'the window is that of the time of adding'
qadd -q -k w m x
qadd -q --replace -k w --in 1h m y
is "$(sql "SELECT until_ms - due_ms, due_ms - added_ms FROM q_job WHERE key = 'w'")" '1800000|3600000' '... and moves with a job that is replaced'

# ---- key memory ----

fresh
set_ queue.s.keys=settled queue.d.keys=1h
for q in s d f; do qadd -q -k k $q 1; done
for q in s d f; do
	is "$(qadd -j -k k $q 1 | jq -c .new)" false "$q: a key is known while its job is open"
	qclaim $q | settle qdone
done
is "$(qadd -j -k k s 1 | jq -c .new)" true 'until settled: then it is free'
is "$(qadd -j -k k d 1 | jq -c .new),$(Q_NOW=2026-06-02T12:59:59.999Z qadd -j -k k d 1 | jq -c .new),$(Q_NOW=2026-06-02T13:00:00Z qadd -j -k k d 1 | jq -c .new)" \
    false,false,true 'an hour: an hour'
is "$(Q_NOW=2036-06-02T13:00:00Z qadd -j -k k f 1 | jq -c .new)" false 'for ever'

# ---- an application's INSERT obeys what is set when jobs are added ----

fresh
qinit --outbox
set_ queue.s.keys=settled queue.d.keys=1h queue.d.window=30m
now=$(date +%s)
for q in s d f; do sqlite3 q.db "INSERT INTO q_outbox(queue, payload, key) VALUES('$q', 'x', 'k')"; done
is "$(sql "SELECT queue, CASE WHEN until_ms BETWEEN ($now + 3600) * 1000 AND ($now + 3660) * 1000 THEN 'in an hour' ELSE until_ms END FROM q_key ORDER BY 1")" \
    "$(printf 'd|in an hour\nf|9223372036854775807\ns|0')" 'q_outbox: how long keys are remembered'
is "$(sql "SELECT queue, until_ms - due_ms FROM q_job ORDER BY 1")" "$(printf 'd|1800000\nf|\ns|')" '... and the window'

# ---- dead_to ----

fresh
set_ queue.charge.dead_to=uncollectible queue.uncollectible.dead_to=people
qadd -q -t invoice -e ana -k inv-7 charge '{"sum":1.10}'
qclaim charge | settle qfail --dead -m 'card refused'
is "$(sql "SELECT id, queue, state, type, entity, key FROM q_job")" \
    "$(printf '1|charge|dead|invoice|ana|inv-7\n2|uncollectible|pending|invoice|ana|')" 'a job that goes dead puts one into dead_to'
is "$(qls --raw 2 | jq -r '"\(.id) \(.queue) \(.state) \(.reason) \(.attempt)"') $(qls --raw 2 | grep -o '"sum":[^}]*')" '1 charge dead card refused 1 "sum":1.10' '... its record is the payload'
qclaim uncollectible | settle qfail --dead
is "$(qls --raw 3 | jq -r '.payload.payload.sum')" 1.1 '... and so on'
head -c 1048576 /dev/zero | tr '\0' a | qadd -q charge
qclaim charge | settle qfail --dead
is "$(qls --raw 5 | jq -r '.payload | length')" 1048576 '... also of the largest payload'
set_ queue.charge.attempts=1
qadd -q charge lost
qclaim -l 1s charge >/dev/null
is "$(Q_BOOT=b1:1009000 qclaim charge)" '' 'a claim that is lost for good'
is "$(qls --raw 7 | jq -r .outcome)" lost '... likewise, by the claimer that finds it'
is "$(qls --counts | cut -f 1,2,6)" "$(printf 'charge\t0\t3\npeople\t1\t0\nuncollectible\t2\t1')" '... and the counts agree'

# ---- stale=skip ----

fresh
set_ queue.m.stale=skip
ev() { qadd -q -e "$1" --event-time "@$2" m "$1:$2"; }
ev ana 100
ev ana 300
is "$(qclaim -c 9 m | tee got | claimed)" 'ana:100 ' 'events of one entity in turn'
settle qdone <got
qclaim m | settle qdone
ev ana 200
ev ana 400
ev bo 50
is "$(qclaim -c 9 m | tee got | claimed)" 'bo:50 ana:400 ' 'one that comes after a newer one was done is not run'
is "$(sql "SELECT j.state, a.outcome, a.state, a.reason FROM q_job j JOIN q_attempt a ON a.id = j.last_attempt WHERE j.id = 3")" \
    'done|superseded|done|a newer event of its entity was done before' '... but settled as superseded'
is "$(qls 3 | grep -c 'superseded -> done')" 1 '... as qls tells'
settle qdone <got
is "$(qls --counts)" "$(printf 'm\t0\t0\t0\t5\t0\t0\t0')" '... and counted as done'
ev bo 60
set_ queue.m.stale=
ev ana 10
is "$(qclaim -c 9 m | claimed)" 'bo:60 ana:10 ' 'without it all run'

fresh
set_ queue.m.stale=skip
ev ana 100
qclaim m | settle qdone
ev ana 100
is "$(qclaim m | claimed)" 'ana:100 ' 'one of the same instant is no older, and runs'

fresh
set_ queue.m.stale=skip
ev ana 5000
qclaim m | settle qdone
perl -e 'print qq({"entity":"ana","event_ms":$_,"payload":$_}\n) for 1 .. 2500; print qq({"entity":"bo","payload":"bo"}\n)' | qadd -q --jsonl m
is "$(qclaim m | claimed)" 'bo ' '2,500 that are out of date do not hide what is not'
is "$(sql "SELECT count(*) FROM q_attempt WHERE outcome = 'superseded'")" 2500 '... all settled'
is "$(sql 'PRAGMA integrity_check; SELECT count(*) FROM q_job WHERE head = 1')" "$(printf 'ok\n1')" '... and the file is sound'

fresh
set_ queue.m.stale=skip
ev ana 5000
qclaim m | settle qdone
perl -e 'print qq({"entity":"ana","event_ms":$_,"payload":"old"}\n) for 1 .. 1500; print qq({"entity":"bo","payload":"bo"}\n)' | qadd -q --jsonl m
exits 0 'qwork skips 1,500' timeout 60 qwork m -- cat
is "$(sql "SELECT group_concat(result, ',') FROM q_attempt WHERE result IS NOT NULL")" bo '... and runs the one'
qadd -q -p 9 -e ana --event-time @1 m old
qadd -q -p 0 -e ana --event-time @6000 m new
is "$(qclaim m | claimed)" 'new ' 'one that is skipped lets a better priority through'

# ---- forty claimers, four places ----

unset Q_NOW Q_BOOT
seed=${SEED:-$$}
echo "# SEED=$seed"
# capped CLIENT: a swarm, workers killed; the verdict in ./verdict
capped() {
	rm -rf q.db* h
	qinit
	mkdir h
	set_ queue.q0.concurrency=4
	"$t/storm/swarm" --procs 40 --seed "$seed" --history h --kills "${KILLS:-40}" --gap 15 "$1" -n 1000000 -l 200 >out 2>&1
	"$t/storm/client" -H h -w rest -m drain >>out 2>&1
	"$t/storm/check" --history h --drained --cap q0=4 q.db >verdict 2>&1
}
capped "$t/storm/client"
is "$? $(grep -v '^check: ' verdict)" '0 ' 'forty workers, a cap of four, some killed: never more than four live claims'
like "$(cat verdict)" ' most 4,' '... and at times just four'
sed -n 's/^check: /# /p' verdict
# The control: a claimer that does not count.
faulty claim.c 's/g->left -= live(db, name, ls->boot, most);/(void)live;/'
capped "$PWD/house/t/storm/client"
like "$(cat verdict)" '^I13 ' '... and one that does not count is found out'
done_testing
