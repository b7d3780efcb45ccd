#!/bin/sh
# qclaim: order, limits, waiting, the job record, and what happens when nobody can read it.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

ids() { sed 's/^{"id":\([0-9]*\),.*/\1/' | tr '\n' ' ' | sed 's/ $//'; }
word() { sed -n "${2:-1}s/.*\"claim\":\"\([^\"]*\)\".*/\1/p" "$1"; }
states() { sql 'SELECT group_concat(state, " ") FROM (SELECT state FROM q_job ORDER BY id)'; }
fresh() { rm -f q.db*; qinit; }
payload() { perl -e 'print "x" x $ARGV[0]' "$1"; }
# Output to a pipe that nobody reads any more.
broken() { perl -e 'pipe R, W; close R; open STDOUT, ">&", *W; exec @ARGV' "$@"; }
# Until a background qclaim sleeps (it watches the log file).  The limit is for machines that fail.
asleep() {
	_i=0
	while kill -0 "$1" && ! ls -l "/proc/$1/fd" | grep -q inotify && [ $((_i += 1)) -lt 500 ]; do sleep 0.01; done 2>/dev/null
}

exits 66 'no file' qclaim mail
qinit

# ---- nothing there ----

qclaim none			# the first of a boot notes its id
before=$(cksum <q.db-wal)
exits 0 'a queue that does not exist is an empty one' qclaim mail
is "$(cat out err)" '' '... without a word'
is "$(cksum <q.db-wal)$(sql 'SELECT count(*) FROM q_job')" "$before"0 '... and without a write'

exits 64 'no QUEUE' qclaim
is "$(cat out)" '' '... no output'
is "$(cat err)" "qclaim: no QUEUE; see 'qclaim --help'" '... and says so'

# ---- order ----

jobs() {
	while read -r n queue prio due; do
		echo "{\"queue\":\"$queue\",\"priority\":$prio,\"due_ms\":$due,\"payload\":\"$n\"}"
	done <<-'END' | qadd -q --jsonl
		1 a 5 1780401600000
		2 b 5 1780401599000
		3 c 5 1780401599000
		4 a 9 1780300000000
		5 c 0 1780401600000
		6 b 0 1780401600000
		7 a 0 1780401599999
		8 d 0 1780000000000
		9 a 5 1780401600001
		10 b 1 1780401600001
		11 a 5 1780401599000
		12 c 4 1780401600000
	END
}
jobs
exits 0 'three queues in one claim' qclaim -c 100 c a b
is "$(ids <out)" '7 5 6 12 2 3 11 1 4' '... come by priority, due time, id; what is due later does not come'
exits 0 'the rest a millisecond later' env Q_NOW=2026-06-02T12:00:00.001Z qclaim -c 100 a b a c b
is "$(ids <out)" '10 9' '... once, though the queues are named twice'
is "$(sql 'SELECT state FROM q_job WHERE id = 8')" pending '... and the queue that was not named is left alone'

fresh
jobs
got=$(for i in 1 2 3 4 5; do qclaim -c 2 b a c | ids; echo; done | tr '\n' ' ')
is "$got" '7 5 6 12 2 3 11 1 4 ' 'two at a time they come in the same order'
fresh
jobs
got=$(for i in 1 2 3 4 5; do qclaim a | ids; echo; done | tr '\n' ' ')
is "$got" '7 11 1 4  ' 'so do those of one queue, one at a time'

fresh
for i in 1 2 3 4 5 6; do echo "$i"; done | qadd -q --lines mail
exits 0 'one by default' qclaim mail
is "$(ids <out)" 1 '... the first'
exits 0 '-c' qclaim -c 2 mail
is "$(ids <out)" '2 3' '... at most so many'
exits 0 '--count' qclaim --count=10000 mail
is "$(ids <out)" '4 5 6' '... or what there is'
for n in 0 10001 -1 1x '' 1.5; do
	exits 64 "-c '$n' is refused" qclaim -c "$n" mail
done

# Many at once over several queues: each once, in order.
fresh
seq 1 900 | sed 's/.*/{"queue":"q&","payload":"&"}/; s/"q[0-9]*\([0-2]\)"/"q\1"/; s/"q[0-9][0-9]*"/"q3"/' | qadd -q --jsonl
qclaim -c 350 q0 q1 q2 q3 >one
qclaim -c 10000 q3 q2 q1 q0 >two
is "$(cat one two | sed 's/^{"id":\([0-9]*\),.*/\1/' | cksum)" "$(seq 1 900 | cksum)" '900 jobs of four queues in order'
is "$(wc -l <one | tr -d ' ')" 350 '... as many as asked for'

# ---- due time and lease ----

fresh
qadd -q --in 1h mail later
exits 0 'a delayed job' env Q_NOW=2026-06-02T12:59:59.999Z qclaim mail
is "$(cat out err)" '' '... is not there a millisecond early'
exits 0 '... and is' env Q_NOW=2026-06-02T13:00:00Z qclaim mail
is "$(ids <out)" 1 '... on time'
is "$(sql 'SELECT lease_ms FROM q_job')" 1300000 'the lease is 5 minutes of the boot clock'
is "$(sql 'SELECT claimed_ms FROM q_job')" 1780405200000 '... and the claim has the time of the wall clock'

qadd -q mail now
qadd -q mail now
qclaim -l 1h30m mail >/dev/null
is "$(sql 'SELECT lease_ms FROM q_job WHERE id = 2')" 6400000 '-l'
qclaim --lease 250ms mail >/dev/null
is "$(sql 'SELECT lease_ms FROM q_job WHERE id = 3')" 1000250 '--lease'
qadd -q mail now
for l in 0 0s 5 '' -1s 9999999w; do
	exits 64 "-l '$l' is refused" qclaim -l "$l" mail
done
is "$(states)" 'claimed claimed claimed pending' '... and nothing claimed'

for b in '' b1 b1: b1:-1 b1:x; do
	exits 78 "Q_BOOT '$b' is refused" env "Q_BOOT=$b" qclaim mail
done
exits 78 'a bad Q_NOW is refused' env Q_NOW=yesterday qclaim mail
is "$(states)" 'claimed claimed claimed pending' '... and nothing claimed'

# ---- type ----

fresh
qadd -q -t reset mail 1
qadd -q -t digest -p 0 mail 2
qadd -q mail 3
qadd -q -t reset -p 1 mail 4
qadd -q -t reset -p 0 --in 1s mail 5
exits 0 '-t' qclaim -c 10 -t reset mail
is "$(ids <out)" '4 1' '... only that type, in order, and only what is due'
exits 0 'a type that is not there' qclaim -c 10 -t none mail
is "$(cat out err)" '' '... is nothing to do'
exits 0 '--type' qclaim -c 10 --type digest mail
is "$(ids <out)" 2 '... the other one'
is "$(states)" 'claimed claimed pending claimed pending' '... and the rest stays'

# ---- the record ----

fresh
Q_NOW=2026-06-02T11:59:58.123Z qadd -q -k k/1 -t reset -e ana -p 3 --attempts 5 --backoff 1s..1m --window 2h --at '2026-06-02 14:00' --tz Europe/Berlin \
    --event-time 2026-06-01T08:00:00.5Z mail '{"to": "ana",
 "n": 1.50, "big": 123456789012345678901234567890}'
# shellcheck disable=SC2016
exits 0 'a job with everything' sh -c 'echo $$ >pid; exec qclaim mail'
word=$(word out)
like "$word" '^1\.1\.[0-9a-f]{8}$' 'the claim word'
want='{"id":1,"claim":"'$word'","queue":"mail","type":"reset","key":"k/1","entity":"ana","priority":3,"state":"claimed"'
want=$want',"attempt":1,"generation":1,"attempts":5,"backoff_ms":1000,"backoff_cap_ms":60000,"window_ms":7200000,"payload":{"to":"ana","n":1.50,"big":123456789012345678901234567890}'
want=$want',"added_at":"2026-06-02T11:59:58Z","added_ms":1780401598123,"due_at":"2026-06-02T12:00:00Z","due_ms":1780401600000'
want=$want',"zone":"Europe/Berlin","event_at":"2026-06-01T08:00:00Z","event_ms":1780300800500'
want=$want',"claimed_at":"2026-06-02T12:00:00Z","claimed_ms":1780401600000,"settled_at":null,"settled_ms":null,"outcome":null'
want=$want',"exit":null,"signal":null,"worker":"'$(uname -n):$(cat pid)'","count":null,"reason":null,"result":null,"blocked_by":null}'
is "$(cat out)" "$want" 'the record, exactly'
is "$(jq -c '[.id, .payload.to, .due_ms, .event_at, .exit]' out)" '[1,"ana",1780401600000,"2026-06-01T08:00:00Z",null]' '... as jq reads it'
is "$(jq -r '.due_at | fromdate' out)" 1780401600 '... whose date functions take the instants'
is "$(jq -r 'keys_unsorted | length' out)" 34 '... every field there'

qadd -q plain hello
qclaim plain >out
want='{"id":2,"claim":"'$(word out)'","queue":"plain","type":null,"key":null,"entity":null,"priority":5,"state":"claimed"'
want=$want',"attempt":1,"generation":1,"attempts":null,"backoff_ms":null,"backoff_cap_ms":null,"window_ms":null,"payload":"hello","added_at":"2026-06-02T12:00:00Z","added_ms":1780401600000'
want=$want',"due_at":"2026-06-02T12:00:00Z","due_ms":1780401600000,"zone":null,"event_at":"2026-06-02T12:00:00Z","event_ms":1780401600000'
want=$want',"claimed_at":"2026-06-02T12:00:00Z","claimed_ms":1780401600000,"settled_at":null,"settled_ms":null,"outcome":null'
is "$(sed 's/"worker":"[^"]*"/"worker":0/' out)" \
    "$want"',"exit":null,"signal":null,"worker":0,"count":null,"reason":null,"result":null,"blocked_by":null}' 'a job with nothing'

qfail -m 'no route' --in 0s "$word"
qclaim mail >out
is "$(jq -c '[.attempt, .generation, .outcome, .reason, .settled_ms]' out)" '[2,1,"failed","no route",null]' \
    'at the second attempt the record tells how the first went'
like "$(word out)" '^1\.2\.[0-9a-f]{8}$' '... and the claim is another'
[ "$(word out | cut -d. -f3)" != "$(echo "$word" | cut -d. -f3)" ]
ok $? '... in its random half, too'

fresh
payloads() {	# a payload, as jq shows it, how it stands in the record
	cat <<-'END'
	[1, 2 ,{"a" : null}]|"array"|"payload":[1,2,{"a":null}]
	{}|"object"|"payload":{}
	42|"string"|"payload":"42"
	true|"string"|"payload":"true"
	"text"|"string"|"payload":"\"text\""
	{"a":1|"string"|"payload":"{\"a\":1"
	{"a":1} {"b":2}|"string"|"payload":"{\"a\":1} {\"b\":2}"
	{"n":1e999}|"string"|"payload":"{\"n\":1e999}"
	{"a":"\u00e9 \/ é"}|"object"|"payload":{"a":"\u00e9 \/ é"}
	a\tb "q"|"string"|"payload":"a\\tb \"q\""
	grüße|"string"|"payload":"grüße"
	END
}
payloads | while IFS='|' read -r p _ _; do printf '%s\0' "$p"; done | qadd -q -0 mail
printf '\377\000\n' | qadd -q mail
printf 'a\0b\033\n' | qadd -q mail
qadd -q --empty mail ''
qclaim -c 100 mail >out
payloads | cut -d'|' -f3 >want
sed 's/.*"window_ms":null,\(.*\),"added_at".*/\1/' out | head -n 11 >got
is "$(cat got)" "$(cat want)" 'JSON objects and arrays appear as themselves, other text as a string'
jq -c '.payload | type' out | head -n 11 >got
is "$(cat got)" "$(payloads | cut -d'|' -f2)" '... as jq sees it'
is "$(sed -n '12,14s/.*"window_ms":null,\(.*\),"added_at".*/\1/p' out)" \
    "$(printf '%s\n' '"payload_base64":"/wAK"' '"payload":"a\u0000b\u001b\n"' '"payload":""')" 'other bytes in base64, an empty one as ""'
is "$(jq -r 'select(.payload_base64) | .payload_base64' out | base64 -d | od -An -tx1)" ' ff 00 0a' '... which decodes to them'

# ---- input is left alone ----

fresh
qadd -q mail 1
# shellcheck disable=SC2016
rest=$(printf '1\n2\n' | { qclaim mail >/dev/null; cat; })
is "$rest" "$(printf '1\n2')" 'standard input is not read'

# ---- output that nobody gets ----

fresh
seq 1 5 | qadd -q --lines mail
exits 74 'a full disk behind standard output' sh -c 'qclaim -c 3 mail >/dev/full'
is "$(cat err)" 'qclaim: standard output could not be written; 3 claims were released' '... is told'
is "$(states)" 'pending pending pending pending pending' '... and the claims are given back'
is "$(sql "SELECT group_concat(job || outcome || state || attempt) FROM q_attempt WHERE reason = 'the claim could not be printed'")" \
    '1releasedpending1,2releasedpending1,3releasedpending1' '... which the ledger knows'
is "$(sql 'SELECT sum(spent) + sum(lost) + sum(deferred) FROM q_job')" 0 '... and no attempt is spent'
exits 74 'a closed standard output' sh -c 'qclaim -c 2 mail >&-'
is "$(states)" 'pending pending pending pending pending' '... likewise'
exits 74 'a pipe that nobody reads' broken qclaim -c 2 mail
is "$(cat err)" 'qclaim: standard output could not be written; 2 claims were released' '... does not kill it'
is "$(states)" 'pending pending pending pending pending' '... likewise'
exits 0 'nothing to print into it' broken qclaim none
exits 0 'the jobs are there for the next' qclaim -c 9 mail
is "$(ids <out)" '1 2 3 4 5' '... in their order'

# A reader that takes the first of five records and leaves: the others are given back.  One of them fills the pipe.
fresh
for i in 1 2 3 4 5; do payload 100000 | qadd -q mail; done
perl -e 'open my $p, "-|", @ARGV or die; print scalar <$p>; close $p; exit $? >> 8' qclaim -c 5 mail >first 2>err
is "$?" 74 'a reader that leaves after one record'
is "$(cut -c1-17 first)" '{"id":1,"claim":"' '... has the first'
is "$(states)" 'claimed pending pending pending pending' '... which stays claimed, the others are released'
is "$(cat err)" 'qclaim: standard output could not be written; 4 claims were released' '... and says how many'

# Stopped while the pipe is full.
fresh
for i in 1 2 3; do payload 100000 | qadd -q mail; done
mkfifo pipe
qclaim -c 3 mail >pipe 2>err &
pid=$!
exec 5<pipe
IFS= read -r _ <&5		# unbuffered: the first record is out, and the second is on its way
kill -TERM "$pid"
wait "$pid"
is "$?" 75 'TERM while the reader is slow'
exec 5<&-
is "$(cat err)" 'qclaim: interrupted; 2 claims were released' '... is told'
is "$(states)" 'claimed pending pending' '... what was not told is given back'

# A reader so slow that the lease of what is still unprinted ends, and another takes it.
fresh
for i in 1 2 3 4; do payload 100000 | qadd -q mail; done
qclaim -l 1m -c 4 mail >pipe 2>err &
pid=$!
exec 5<pipe
IFS= read -r _ <&5
Q_BOOT=b1:1060000 qclaim -c 2 mail >theirs
cat <&5 >ours
wait "$pid"
status=$?
exec 5<&-
is "$(ids <theirs)" '1 2' 'the leases end while the reader is slow'
sed 's/.*"claim":"\([^"]*\)".*/\1/' ours >words
is "$(cut -d. -f2 words | tr '\n' ' ')" '1 1 1 ' '... and each reader is told the claims that it got, not those that stand by then'
is "$status $(cat err)" '0 ' '... which is no failure'
exits 76 '... but settling them is' qdone $(cat words)
is "$(states)" 'claimed claimed failed failed' '... the other claims stand'

# ---- waiting ----

fresh
export Q_BOOT=b1:1000000
start=$(date +%s%N)
exits 0 '--wait for nothing, with clocks that stand still' timeout 20 qclaim --wait 300ms mail
end=$(date +%s%N)
is "$(cat out err)" '' '... ends without a word'
[ $(((end - start) / 1000000)) -ge 290 ]
ok $? '... after that time'
exits 0 'a job that is due later than that' sh -c 'qadd -q --in 1h mail later; timeout 20 qclaim --wait 200ms mail'
is "$(cat out err)" '' '... is not waited for'
exits 64 '--wait without a unit' qclaim --wait 5 mail

qadd -q mail now
exits 0 'what is there' timeout 20 qclaim --wait 1h mail
is "$(ids <out)" 2 '... comes at once'

fresh
unset Q_BOOT
qclaim --wait 60s other mail >got 2>err &
pid=$!
asleep "$pid"
qadd -q mail wake
wait "$pid"
is "$? $(ids <got)" '0 1' 'an add by another program wakes it'
is "$(cat err)" '' '... silently'

qclaim --wait 60s mail >got1 & one=$!
qclaim --wait 60s mail >got2 & two=$!
asleep "$one"
asleep "$two"
qadd -q mail wake
qadd -q mail wake
wait "$one" && wait "$two"
is "$? $(cat got1 got2 | ids | tr ' ' '\n' | sort | tr '\n' ' ')" '0 2 3 ' 'two wait, and each gets one'

for sig in TERM INT HUP; do		# a shell lets its background commands ignore INT
	perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' qclaim --wait 60s mail >got 2>err &
	pid=$!
	asleep "$pid"
	kill -s "$sig" "$pid"
	wait "$pid"
	is "$? $(cat got err)" '75 qclaim: interrupted' "$sig ends the wait"
done
qadd -q mail after
is "$(sql 'SELECT state FROM q_job WHERE id = 4')" pending '... and nothing is claimed after it'

# By the real clocks: a due time, and the end of a lease.
fresh
unset Q_NOW
qadd -q --in 300ms mail soon
exits 0 'a job that falls due within the wait' timeout 20 qclaim -l 300ms --wait 15s mail
is "$(ids <out)" 1 '... is claimed then'
exits 0 'a lease that ends within the wait' timeout 20 qclaim --wait 15s mail
is "$(word out | cut -d. -f1,2)" 1.2 '... frees the job'
[ "$(sql 'SELECT outcome || state FROM q_attempt')" = lostfailed ]
ok $? '... as lost'
export Q_NOW=2026-06-02T12:00:00Z Q_BOOT=b1:1000000

# ---- many at once ----

fresh
seq 1 240 | qadd -q --lines mail
for i in 1 2 3 4; do
	n=0
	while :; do
		qclaim -c 3 mail >>"by$i" 2>>"err$i" || echo "exit $?" >>"err$i"
		[ "$(wc -l <"by$i")" -gt "$n" ] || break
		n=$(wc -l <"by$i")
	done &
done
wait
is "$(cat by? | ids | tr ' ' '\n' | sort -n | cksum)" "$(seq 1 240 | cksum)" 'four claimers: each job once'
is "$(cat err?)" '' '... without a complaint'
is "$(cat by? | sed 's/.*"claim":"\([^"]*\)".*/\1/' | sort -u | wc -l | tr -d ' ')" 240 '... and each with a word of its own'
done_testing
