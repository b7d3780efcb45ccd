#!/bin/sh
# qcancel: what does not run is cancelled, what runs is told, and a race with a claimer has one winner.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

word() { sed 's/.*"claim":"\([^"]*\)".*/\1/'; }
claim() { qclaim -c "${2:-1}" "$1" | word; }
fresh() { rm -f q.db*; qinit; }
line() { tr '\n' ' ' | sed 's/ $//'; }
states() { sql "SELECT group_concat(state, ' ') FROM (SELECT state FROM q_job ORDER BY id)"; }
# What the counters say, and what the rows say.
# cancels CODE OUT ERR NAME ARGS...
cancels() {
	want=$1 out=$2 err=$3 name=$4
	shift 4
	exits "$want" "$name" qcancel "$@"
	is "$(line <out)" "$out" '... prints the ids'
	is "$(cat err)" "$err" '... and why not the others'
}

exits 66 'no file' qcancel 1
qinit

# ---- the command line ----

qadd -q -k k1 -e ana mail one
for bad in '' '-k k1' '-e ana' '-k k1 -e ana mail' '-k k1 mail sms' '-e ana mail 1' '--all mail' '--state dead mail' '-k' '--ke k1 mail' '-n 1'; do
	# shellcheck disable=SC2086
	unchanged 64 "qcancel $bad" qcancel $bad
	is "$(wc -l <err)$(cat out)" 1 '... and says so in one line'
done
unchanged 64 'no ID is not a read' sh -c 'yes 1 | qcancel'
is "$(cat err)" "qcancel: no ID; '-' reads them from standard input; see 'qcancel --help'" '... and says what would be'
unchanged 65 'an empty key' qcancel -k '' mail
unchanged 65 'an empty entity' qcancel -e '' mail
unchanged 65 'a bad queue name' qcancel -k k1 12
for bad in '' x 0 -1 1x 1.1.00000000 ' 1' '1 ' '+1' 0x1 9007199254740992 99999999999999999999 '{"id":1}' mail; do
	unchanged 65 "'$bad' is no id" qcancel -- "$bad"
	is "$(cat err)" "qcancel: '$bad' is not a job id such as 42" '... and is named'
done
unchanged 66 'an unknown id' qcancel 2
is "$(cat out err)" "qcancel: no job 2 in $Q_DB; see qls --state all, -d and Q_DB" '... and is named'
unchanged 66 'the largest id' qcancel 9007199254740991

# ---- from each state ----

fresh
qadd -q --in 1h mail pending
qadd -q -p 0 mail failed
qfail --in 1h -m why "$(claim mail)"
qadd -q -p 0 mail dead
qfail --dead -m never "$(claim mail)"
qadd -q mail claimed
qadd -q -p 0 mail 'done'
qdone "$(claim mail)"
live=$(claim mail)
is "$(states)" 'pending failed dead claimed done' 'a job in each state'
export Q_NOW=2026-06-02T12:00:05Z
cancels 1 '1 2 3' "qcancel: job 4: too late, it runs
qcancel: job 5: too late, it is done" 'all five' 1 2 3 4 5
is "$(states)" 'cancelled cancelled cancelled claimed done' '... are as far cancelled as they can be'
is "$(sql 'SELECT DISTINCT finished_ms - 1780401600000, ready_ms, lease_ms, head FROM q_job WHERE id < 4')" '5000|||' '... since now'
is "$(sql 'SELECT count(*) FROM q_attempt')" 3 '... the history stays'
counted
unchanged 0 'again' qcancel 1 2 3
is "$(cat out err)" '' '... silently'
exits 0 'the one that runs is settled' qdone "$live"
unchanged 1 '... and then it is done' qcancel 4
is "$(cat err)" 'qcancel: job 4: too late, it is done' '... which is said'
is "$(qls mail)$(qclaim -c 10 mail)" '' 'nothing is left to do'
is "$(qls --state cancelled mail | cut -f1 | line)" '1 2 3' '... and what was cancelled is listed'
is "$(qls 2 | grep -e '^state' -e '^settled' -e reason)" 'state       cancelled
settled     2026-06-02T12:00:05.000Z (now)
      reason: why' '... with the rest that is known of it'

# A failed attempt that is told again after the job was cancelled.
qadd -q mail x
c=$(claim mail)
qfail --in 1h "$c"
qcancel -q 6
unchanged 0 'a failure that is told again' qfail --in 1h "$c"
unchanged 76 'a success that comes too late' qdone "$c"
export Q_NOW=2026-06-02T12:00:00Z

# ---- several, and the worst status ----

fresh
seq 1 9 | qadd -q --lines mail
c=$(claim mail)					# 1 runs
cancels 0 '3 2' '' 'in the order given, each once' 3 2 3 2
cancels 65 '4' "qcancel: 'x' is not a job id such as 42
qcancel: job 1: too late, it runs" 'a malformed one and one that runs: 65' 1 x 4
cancels 66 '5' "qcancel: no job 99 in $Q_DB; see qls --state all, -d and Q_DB" 'an unknown one: 66' 99 5
cancels 66 '6' "qcancel: '' is not a job id such as 42
qcancel: job 1: too late, it runs
qcancel: no job 99 in $Q_DB; see qls --state all, -d and Q_DB" 'all of it: 66' 1 '' 99 6
exits 1 'quietly' qcancel -q 7 1
is "$(cat out)|$(cat err)" '|qcancel: job 1: too late, it runs' '... no ids, but what went wrong'
exits 0 'quietly' qcancel --quiet 8
is "$(cat out err)|$(states)" '|claimed cancelled cancelled cancelled cancelled cancelled cancelled cancelled pending' '... done'
is "$(qcancel -d "$Q_DB" 9)" 9 'another file by -d'
counted

# ---- standard input ----

fresh
seq 1 9 | qadd -q --lines mail
qls -j mail >records
c=$(claim mail)
{
	sed -n 2p records			# a record
	echo 3
	echo
	printf '4\r\n'				# as an editor of another system leaves it
	echo '{"id":5}'
	sed -n 6p records | jq -c '. + {note: "x"}'
	echo 2
	printf 7				# the last one without its newline
} >input
cancels 0 '2 3 4 5 6 7' '' 'ids and records' - <input
{
	echo 'no id'
	echo '{"claim":"8.1.00000000"}'
	echo '{"id":null}'
	echo '{"id":8'
	printf '8\000\n'
	perl -e 'print "x" x 9000000, "\n"'
	echo 8
	echo 1
} >input
exits 65 'malformed lines between them' qcancel - <input
is "$(cat out)" 8 '... the rest is cancelled'
is "$(sed -n 's/^qcancel: stdin:\([0-9]*\): neither a job id such as 42 nor a job record with one$/\1/p' err | line)" '1 2 3 4 5 6' '... they are named by their lines'
is "$(tail -n 1 err)" 'qcancel: job 1: too late, it runs' '... and what was too late'
unchanged 0 'no line at all' qcancel - </dev/null
unchanged 74 'standard input that cannot be read' sh -c 'qcancel - <.'
unchanged 74 'standard input that is closed' sh -c 'qcancel - <&-'
# shellcheck disable=SC2016
is "$(printf 'a\nb\n' | { qcancel -q 9; cat; } | line)" 'a b' 'with operands standard input is left alone'

# While standard input is slow, nothing is locked.
fresh
seq 1 2 | qadd -q --lines mail
mkfifo pipe
qcancel - <pipe >ids 2>err &
pid=$!
exec 5>pipe
echo 1 >&5
exits 0 'another program writes meanwhile' env Q_BUSY_TIMEOUT=5s qadd -q other x
echo 2 >&5
exec 5>&-
wait "$pid"
is "$? $(line <ids)" '0 1 2' 'qcancel at the end of it'
is "$(states)" 'cancelled cancelled pending' '... cancels all'

# ---- output that does not come through ----

# It is on disk before it is told: who does not read its messages holds up nobody.
fresh
seq 1 3000 | qadd -q --lines mail
qclaim -c 2000 mail >/dev/null
mkfifo slow
exec 6<>slow
seq 1 3000 | qcancel -q - 2>slow &		# 2000 messages are more than a pipe holds
pid=$!
i=0
while [ "$(sql "SELECT count(*) FROM q_job WHERE state = 'cancelled'")" != 1000 ] && [ $((i += 1)) -lt 500 ]; do sleep 0.02; done
exits 0 'a stuck reader of the messages locks nobody out' env Q_BUSY_TIMEOUT=5s qadd -q mail x
head -n 2000 <&6 >messages
wait "$pid"
is "$? $(sort -u messages | wc -l) $(grep -c 'too late, it runs' messages)" '1 2000 2000' '... and all of them come'
exec 6>&-

fresh
seq 1 3 | qadd -q --lines mail
exits 74 'ids that cannot be written' sh -c 'qcancel 1 2 3 >/dev/full'
is "$(cat err)|$(states)" 'qcancel: standard output: No space left on device; stopped after 3 of 3, whose ids are not all told|cancelled cancelled cancelled' \
    '... the jobs are cancelled, and one line says what is missing'
exits 0 '... which can be made sure of' qcancel 1 2 3

# ---- by key ----

fresh
qadd -q -k order-7 mail a
qadd -q -k order-7 sms b
odd=$(printf 'o\303\244 "x" %%s /*')
qadd -q -k "$odd" mail c
cancels 0 1 '' 'by its key' -k order-7 mail
cancels 0 '' '' '... and again' --key order-7 mail
cancels 0 3 '' 'an odd key' -k "$odd" mail
is "$(states)" 'cancelled pending cancelled' 'another queue has keys of its own'
cancels 66 '' "qcancel: queue 'mail' knows no key 'order-8' in $PWD/q.db; see qls --state all, -d and Q_DB" 'an unknown key' -k order-8 mail
cancels 66 '' "qcancel: queue 'none' knows no key 'order-7' in $PWD/q.db; see qls --state all, -d and Q_DB" 'an unknown queue' -k order-7 none
cancels 66 '' "qcancel: queue 'mail' knows no key '1' in $PWD/q.db; see qls --state all, -d and Q_DB" 'a key is no id' -k 1 mail
unchanged 65 'a key that no job has: not UTF-8' qcancel -k "$(printf '\377')" mail
is "$(qadd -k order-7 mail a 2>/dev/null)" 1 'the key is still known'
c=$(claim sms)
cancels 1 '' 'qcancel: job 2: too late, it runs' 'one that runs' -k order-7 sms
qadd -q --replace -k order-7 sms newer		# 4, since 2 runs
cancels 0 4 '' 'the key goes with the newest job' -k order-7 sms
qdone "$c"

# ---- by entity ----

fresh
qadd -q -e ana --event-time 2026-01-03T00:00:00Z mail three
qadd -q -e ana --event-time 2026-01-01T00:00:00Z mail one
qadd -q -e ana --in 1h --event-time 2026-01-02T00:00:00Z mail two
qadd -q -e ana sms other
qadd -q -e bo mail other
qadd -q mail none
cancels 0 '2 3 1' '' 'all of an entity, in their order' -e ana mail
is "$(states)" 'cancelled cancelled cancelled pending pending pending' '... and no others'
cancels 0 '' '' 'again: nothing is left' --entity ana mail
cancels 0 '' '' 'an entity that is not there' -e cy mail
cancels 0 '' '' 'a queue that is not there' -e ana none
counted
seq 1 4 | qadd -q --lines -e ana mail		# 7 8 9 10, all at the same time
qdone "$(qclaim mail | word)"			# 5 of bo, which is due as soon
qcancel -q 6
c=$(claim mail)
is "${c%%.*}" 7 'the first of an entity runs'
qadd -q -e ana mail dead
cancels 1 '8 9 10 11' 'qcancel: job 7: too late, it runs' '... the later ones are cancelled all the same' -e ana mail
qdone "$c"
is "$(qclaim -c 9 mail)" '' '... and nothing is left'
counted

# The next in order takes the place of one that was cancelled, and only then.
fresh
seq 1 3 | qadd -q --lines -e ana mail
qcancel -q 2
is "$(sql 'SELECT id, head, ready_ms IS NOT NULL FROM q_job' | line)" '1|1|1 2||0 3||0' 'one in the middle is cancelled: the first stays the first'
qcancel -q 1
is "$(sql 'SELECT id, head, ready_ms IS NOT NULL FROM q_job' | line)" '1||0 2||0 3|1|1' 'the first is cancelled: the next can be claimed'
c=$(claim mail)
qadd -q -e ana mail four
qcancel -q 4
is "${c%%.*} $(sql 'SELECT id, head FROM q_job WHERE head = 1')" '3 3|1' 'one that runs keeps its place'

# More than one transaction holds.
fresh
seq 1 10002 | qadd -q --lines -e ana mail
exits 0 'ten thousand of one entity, and two' qcancel -e ana mail
is "$(wc -l <out | tr -d ' ') $(sql "SELECT count(*) FROM q_job WHERE state = 'cancelled'")" '10002 10002' '... all cancelled'
counted

# ---- undo send ----

fresh
id=$(qadd --in 6s mail '{"to":"ana"}')
Q_NOW=2026-06-02T12:00:05Z exits 0 'undo within five seconds' qcancel "$id"
is "$(cat out)" "$id" '... in time'
Q_NOW=2026-06-02T12:00:10Z exits 0 'the worker' qwork mail -- sh -c 'cat >>sent'
is "$(cat sent 2>/dev/null)" '' '... has nothing to send'
id=$(qadd --in 6s mail '{"to":"bo"}')
Q_NOW=2026-06-02T12:00:06Z qwork mail -- sh -c 'cat >>sent'
Q_NOW=2026-06-02T12:00:07Z exits 1 'undo after it was sent' qcancel "$id"
is "$(cat out err)|$(cat sent)" "qcancel: job $id: too late, it is done|{\"to\":\"bo\"}" '... says so'

# ---- a race with claimers ----

fresh
unset Q_NOW
jobs=${JOBS:-1500}
seq "$jobs" | qadd -q --lines mail
# Two who claim from the front, two who cancel: one shuffled, one from the back.
perl -e 'use List::Util "shuffle"; srand $ARGV[0]; print map { "$_\n" } shuffle 1 .. $ARGV[1]' "${SEED:-$$}" "$jobs" >shuffled
seq "$jobs" | sort -rn >backwards
claimer() { while c=$(qclaim -c 7 mail | word) && [ -n "$c" ]; do echo "$c"; done; }
canceller() { xargs -n 11 qcancel; }
claimer >claimed.1 2>err.1 &
claimer >claimed.2 2>err.2 &
canceller <shuffled >cancelled.1 2>late.1 &
canceller <backwards >cancelled.2 2>late.2 &
wait
cut -d. -f1 claimed.1 claimed.2 | sort >claimed
sort cancelled.1 cancelled.2 >cancelled
sort claimed cancelled >both
is "$(sort -u both | wc -l | tr -d ' ') $(uniq -d both | wc -l | tr -d ' ')" "$jobs 0" 'each job is claimed or cancelled, by one, and told to one'
[ -s claimed ] && [ -s cancelled ]
ok $? "... some of each ($(wc -l <claimed) claimed, $(wc -l <cancelled) cancelled)"
is "$(sql "SELECT id FROM q_job WHERE state = 'claimed'" | sort)" "$(cat claimed)" '... as the file says of the claimed'
is "$(sql "SELECT id FROM q_job WHERE state = 'cancelled' AND fence = 0" | sort)" "$(cat cancelled)" '... and of the cancelled'
is "$(sed 's/^qcancel: job \([0-9]*\): too late, it runs$/\1/' late.1 late.2 | sort | uniq -d)" "$(cat claimed)" '... and both who cancel were told of each claimed one'
is "$(cat err.1 err.2)" '' '... who claimed knew nothing of it'
counted
exits 0 'the file is sound' "$t/storm/check" q.db
done_testing
