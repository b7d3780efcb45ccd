#!/bin/sh
# qpause: what is listed and said, and that nothing is claimed from the moment it returns until the pause is lifted.
# Sizes: JOBS that three loops drain, RUNS of a handler; `make storm` takes 50,000 and 800.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

jobs=${JOBS:-10000} runs=${RUNS:-150}
fresh() { rm -f q.db*; qinit; }
rows() { sql 'SELECT * FROM q_setting ORDER BY 1, 2, 3'; }
word() { sed 's/.*"claim":"\([^"]*\)".*/\1/'; }
claim() { qclaim -c "${2:-1}" "$1" | word; }
n() { wc -l | tr -d ' '; }
ms() { date +%s%3N; }
T0='2026-06-02T12:00:00Z' T1='2026-06-02T13:00:00Z'

# ---- pausing, listing, resuming ----

exits 66 'no file' qpause
exits 66 '... to write to' qpause mail
fresh
exits 0 'an empty file' qpause
said '' 'has no pauses'
qadd -q mail x
qadd -q sms x
exits 0 'a queue' qpause mail 'partner down # 7'
said '' silent
is "$(rows)" 'queue|mail|paused|partner down # 7||1780401600000' '... is paused'
exits 0 '... and listed' qpause
said "$(printf 'mail\t%s\tpartner down # 7' $T0)" 'with time and reason'
exits 0 'again, an hour later' env Q_NOW=$T1 qpause mail 'still down'
said '' silent
is "$(rows)" 'queue|mail|paused|still down||1780401600000' '... has the new reason, and the time of the first'
exits 0 'again, without a reason' qpause mail
is "$(qpause)" "$(printf 'mail\t%s\t' $T0)" '... has none'
exits 0 'with an empty one' qpause sms ''
exits 0 'all of them' env Q_NOW=$T1 qpause --all 'a\b'
exits 0 'is listed' qpause
said "$(printf '*\t%s\ta\\\\b\nmail\t%s\t\nsms\t%s\t' $T1 $T0 $T0)" 'all first, then by name; three fields'
exits 0 'one of them goes on' qpause -r sms
said 'qpause: all queues are still paused; qpause -r --all lets them go on'
exits 0 'one that is not paused by itself' qpause --resume other
said 'qpause: all queues are still paused; qpause -r --all lets them go on'
exits 0 'all go on' qpause -r --all
said 'qpause: queues that are still paused by themselves: 1; qpause lists them'
is "$(qpause)" "$(printf 'mail\t%s\t' $T0)" '... which is so'
exits 0 'the last one goes on' qpause -r mail
said '' silent
is "$(rows)" '' '... nothing is paused'
for args in '-r mail' '-r --all' '-ra' '--resume -a'; do
	# shellcheck disable=SC2086 # words
	exits 0 "qpause $args, and nothing is paused" qpause $args
	said '' silent
done
exits 0 '-a is --all' qpause -a why
is "$(qpause)" "$(printf '*\t%s\twhy' $T0)" '... with a reason'
exits 0 'a queue of its own, meanwhile' qpause mail
exits 0 '-ar' qpause -ar
is "$(qpause)" "$(printf 'mail\t%s\t' $T0)" '... leaves that'
qpause -r mail

# ---- operands ----

while IFS=@ read -r want args message; do
	eval "set -- $args"
	exits "$want" "qpause $args" qpause "$@"
	said "qpause: $message"
done <<'END'
64@-r@no QUEUE; see 'qpause --help'
64@-r mail why@too many operands: 'why'; see 'qpause --help'
64@-r mail sms@too many operands: 'sms'; see 'qpause --help'
64@-r --all why@too many operands: 'why'; see 'qpause --help'
64@-r --all mail@too many operands: 'mail'; see 'qpause --help'
64@mail partner down@too many operands: 'down'; a reason is one word, in quotes; see 'qpause --help'
64@--all partner down@too many operands: 'down'; a reason is one word, in quotes; see 'qpause --help'
64@--al@unknown option '--al'; did you mean '--all'?; see 'qpause --help'
64@--resum mail@unknown option '--resum'; did you mean '--resume'?; see 'qpause --help'
64@-q mail@unknown option '-q'; see 'qpause --help'
65@12@bad queue name '12'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
65@''@bad queue name ''; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
65@'*'@bad queue name '*'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
65@'a b' why@bad queue name 'a b'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
65@mail/reset@bad queue name 'mail/reset'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
65@-r 12@bad queue name '12'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
65@-r ''@bad queue name ''; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
END
while IFS=@ read -r reason why; do
	for queue in mail --all; do
		exits 65 "$queue, reason $reason" qpause $queue "$(printf "$reason")"
		said "qpause: the reason $why"
	done
done <<'END'
a\tb@has a control byte
a\nrate.x=1/s@has a control byte
\033[2J@has a control byte
a\177@has a control byte
\377@is not UTF-8
a\342\200@is not UTF-8
END
exits 65 'a reason of 256 bytes' qpause mail "$(printf '%0256d' 0)"
said 'qpause: the reason is longer than 255 bytes'
exits 78 'a bad Q_NOW' env Q_NOW=noon qpause mail
is "$(rows)" '' 'nothing of all that paused anything'
reason=$(printf '%0255d' 0)
exits 0 'a reason of 255 bytes' qpause mail "$reason"
is "$(qpause)" "$(printf 'mail\t%s\t%s' $T0 "$reason")" '... is whole'
exits 0 'a reason like an option' qpause mail -- '-r --all $(x) %s'
is "$(qpause | cut -f 3)" '-r --all $(x) %s' '... is one'
exits 0 '-- and a queue' qpause -r -- mail

# ---- names that may be mistyped ----

fresh
exits 0 'a queue that nobody ever used' qpause mial
said "qpause: no jobs in queue 'mial' yet; it is paused all the same"
is "$(qpause | cut -f 1)" mial '... is paused'
exits 0 '... again' qpause mial 'again'
said "qpause: no jobs in queue 'mial' yet; it is paused all the same"
exits 0 '... goes on' qpause -r mial
said '' silent
exits 0 '... a name that was not paused, either' qpause -r mial
said "qpause: no jobs in queue 'mial', and it was not paused; qpause lists what is"
qadd -q pending x
qadd -q --in 9d delayed x
qadd -q claimed x && qclaim claimed >/dev/null
qadd -q finished x && qdone "$(claim finished)"
qadd -q failed x && qfail --in 9d "$(claim failed)"
qadd -q dead x && qfail --dead "$(claim dead)"
qadd -q blocked x -e e && qadd -q blocked x -e e && qclaim blocked >/dev/null
qset queue.only-set.rate=1/s
for queue in pending delayed claimed finished failed dead blocked only-set; do
	exits 0 "a queue: $queue" qpause $queue
	said '' 'is known'
done
exits 0 'two queues in one command' qpause pending delayed
said "qpause: 'delayed' is the reason, and not paused; one queue at a time"
exits 0 'all, because of one' qpause --all delayed
said '' silent
exits 0 'a reason that only could be a queue' qpause pending deploy
said '' silent

# ---- for people ----

fresh
qadd -q mail x
Q_NOW=2026-06-02T08:30:00Z qpause mail "$(printf 'a\342\200\256b')"
qpause --all
long=$(printf '%064d' 0 | tr 0 q)
qpause "$long" why 2>err
is "$(script -qec qpause /dev/null </dev/null | tr -d '\r')" "QUEUE                SINCE         REASON
*                    now           -
mail                 3h30m ago     a\\u{202e}b
$long now           why" 'a table on a terminal, nothing cut'
is "$(qpause | head -n 2 | tail -n 1 | cut -f 3)" 'a\xe2\x80\xaeb' '... and piped, with what is hidden escaped'
fresh
is "$(script -qec qpause /dev/null </dev/null)" '' '... without a head if there is nothing'
sqlite3 q.db "INSERT INTO q_setting VALUES('queue', 'a' || char(10) || 'b', 'paused', 'x' || char(9) || 'y' || char(10) || 'z', NULL, 0), ('queue', 'c', 'rate', '1/s', NULL, 0)"
exits 0 'rows of others' qpause
said 'a\nb	1970-01-01T00:00:00Z	x\ty\nz' 'forge nothing; other settings are not listed'
exits 74 'no room for the list' sh -c 'qpause >/dev/full'
like "$(cat err)" '^qpause: standard output: No space left on device' '... is told'
exits 0 '... but pausing has no output' sh -c 'qpause c >/dev/full'
seq 3000 | sed "s/.*/INSERT INTO q_setting VALUES('queue', 'q&', 'paused', 'because of this and that', NULL, 0);/" | sqlite3 q.db
exits 0 'a reader that leaves' bash -c 'qpause | head -n 1; [[ ${PIPESTATUS[0]} -eq 141 ]]'
is "$(cat err)" '' 'ends it silently'

# ---- what a pause stops, and what not ----

fresh
seq 8 | qadd -q --lines mail
seq 3 | qadd -q --lines sms
claim mail 6 >held
qpause mail 'bad deploy'
exits 0 'a paused queue' qclaim -c 9 mail
said '' 'looks empty'
exits 0 '... by type, too' sh -c 'qadd -q -t t mail typed; qclaim -t t mail'
said '' 'looks empty'
exits 0 '... with what is more urgent' sh -c 'qadd -q -p 0 mail urgent; qclaim mail'
said '' 'looks empty'
is "$(qclaim -c 9 mail sms mail | jq -r .queue | sort | uniq -c | tr -s ' \n' ' ')" ' 3 sms ' '... beside others, which go on'
exits 0 'jobs can be added' qadd -k k mail later
exits 0 '... known' qadd -k k mail later
exits 0 'what runs is renewed' qrenew "$(sed -n 1p held)"
exits 0 '... done' qdone "$(sed -n 1p held)"
exits 0 '... failed' qfail --in 0s "$(sed -n 2p held)"
exits 0 '... dead' qfail --dead "$(sed -n 3p held)"
exits 0 '... deferred' qfail --defer 0s "$(sed -n 4p held)"
exits 0 '... given back' qfail --release "$(sed -n 5p held)"
exits 0 '... and none of it is claimed again' qclaim -c 99 mail
said '' 'which looks empty'
exits 0 'a lease that ends' env Q_BOOT=b1:9000000 qclaim mail
said '' 'gives its job to nobody'
is "$(sql "SELECT state, count(*) FROM q_job WHERE queue = 'mail' GROUP BY 1")" 'dead|1
done|1
failed|2
pending|7' '... all waits'
exits 0 'qwork' timeout 60 qwork mail -- touch ran
said '' 'has nothing to do'
[ ! -e ran ]; ok $? '... and runs nothing'
exits 0 'qclaim --wait' qclaim --wait 50ms mail
said '' 'waits as long as told'
is "$(qls mail | n) $(qls --counts mail | cut -f 2-6)" "9 $(printf '7\t0\t2\t1\t1')" 'qls lists and counts as always'
qpause -r mail
is "$(Q_BOOT=b1:9000000 qclaim -c 99 mail | n)" 9 'resumed, all of it is claimed'

fresh
qadd -q mail x
qpause --all 'moving house'
qadd -q new x
exits 0 'all paused, and a queue that came later' qclaim -c 9 mail new
said '' 'look empty'
qpause -r mail 2>err
exits 0 '... also one that was resumed by itself' qclaim mail
said '' 'looks empty'
qpause -r --all
is "$(qclaim -c 9 mail new | n)" 2 '... until all go on'

fresh
qset queue.mail.stale=skip
qadd -q -e ana --event-time @200 mail new
qdone "$(claim mail)"
qadd -q -e ana --event-time @100 mail old
qpause mail
exits 0 'what is out of date' qclaim mail
is "$(sql 'SELECT state FROM q_job WHERE id = 2')" pending '... is not settled in a pause'

# ---- who waits is woken ----

unset Q_NOW Q_BOOT
for how in mail --all; do
	fresh
	qpause $how 2>err
	qadd -q mail one
	qclaim --wait 60s mail >got & pid=$!
	qadd -q mail two		# a change that wakes it
	qpause other 2>err
	until_ok grep -q '^State:.*[Ss]leep' /proc/$pid/status
	kill -0 $pid; ok $? "qclaim --wait, $how paused, waits"
	is "$(sql 'SELECT max(fence) FROM q_job')" 0 '... though jobs come'
	before=$(ms)
	qpause -r $how 2>err
	wait $pid
	is "$? $(jq -r .payload <got)" '0 one' '... and is woken when it goes on'
	is "$(sql "SELECT count(*) FROM q_job WHERE claimed_ms >= $before")" 1 '... not before'
	after=$(ms)
	[ $((after - before)) -lt 30000 ]; ok $? '... long before its time is over'
done

# A handler that tells, and waits to be let go.
cat >handler <<'END'
#!/bin/sh
echo "$Q_ID" >>started
until [ -e go ]; do sleep 0.01; done
END
chmod +x handler
fresh
rm -f started go
seq 5 | qadd -q --lines mail
timeout 300 qwork --follow -P 2 mail -- ./handler >log 2>&1 & pid=$!
until_ok lines started 2
qpause mail 'in the middle'
touch go
until_ok sh -c '[ "$(qls --counts mail | cut -f 5)" = 2 ]'
qadd -q mail more
qadd -q other more
is "$(sql "SELECT state, count(*) FROM q_job WHERE queue = 'mail' GROUP BY 1")" 'done|2
pending|4' 'qwork --follow: what runs is finished, the rest waits'
is "$(sql 'SELECT count(*) FROM q_attempt')" 2 '... untouched'
qpause -r mail
until_ok sh -c '[ "$(qls --counts mail | cut -f 5)" = 6 ]'
is "$(sort -n started | tr '\n' ' ')" '1 2 3 4 5 6 ' '... until it goes on, each once'
kill -TERM $pid
wait $pid
is "$?$(cat log)" 0 '... and says nothing'

fresh
rm -f started go
seq 5 | qadd -q --lines mail
timeout 300 qwork -P 2 mail -- ./handler >log 2>&1 & pid=$!
until_ok lines started 2
qpause mail
touch go
wait $pid
is "$?$(cat log)" 0 'qwork that drains ends when what runs is finished'
is "$(sql 'SELECT state, fence FROM q_job ORDER BY id' | tr '\n' ' ')" 'done|1 done|1 pending|0 pending|0 pending|0 ' '... and leaves the rest'

# ---- half way through a drain ----

# What has been claimed so far: all that may be done in the end.  Read right after qpause has returned.
claimed() { sql "SELECT id FROM q_job WHERE state <> 'pending' ORDER BY id"; }
finished() { sql "SELECT id FROM q_job WHERE state = 'done' ORDER BY id"; }
half() { sleep 0.05; [ "$(sql "SELECT coalesce(sum(n), 0) FROM q_count WHERE state = 'done'")" -ge "$1" ]; }
# stopped NAME: what was claimed when the pause began, in ./at-pause, is what was done, and no more
stopped() {
	finished >at-end
	cmp -s at-pause at-end; ok $? "$1: nothing was claimed after the pause, and what ran was finished"
	is "$(n <at-end)" "$(tail -n 1 at-end)" '... the first in line, without a gap'
	[ "$(n <at-end)" -lt "$2" ]; ok $? '... and work is left'
	is "$(sql "SELECT count(*) FROM q_job WHERE state <> 'done' AND (state <> 'pending' OR fence <> 0 OR last_attempt IS NOT NULL)")" 0 '... which nobody touched'
	echo "# paused after $(n <at-pause) of $2"
}
# complete N: each done once
complete() {
	is "$(sql "SELECT count(*), sum(state = 'done'), max(fence), max(spent) FROM q_job")" "$1|$1|1|0" '... all is done'
	is "$(sql "SELECT count(*), count(DISTINCT job), sum(outcome = 'done') FROM q_attempt")" "$1|$1|$1" '... each exactly once'
}
cat >loop <<'END'
set -euo pipefail
while :; do
	qclaim -c 100 mail >"$1.got"
	[[ -s $1.got ]] || break
	cat "$1.got" >>"$1.all"
	qdone - <"$1.got"
done
END
ids() { sed 's/^{"id":\([0-9]*\),.*/\1/' "$@" | sort -n; }
loops() { for k in 1 2 3; do bash ./loop $k >said.$k 2>&1 & done; }

fresh
seq "$jobs" | qadd -q --lines mail
loops
until_ok half $((jobs / 2))
qpause mail 'half way'
claimed >at-pause
wait
is "$(cat said.?)" '' 'three loops end'
stopped "a drain of $jobs jobs" "$jobs"
is $(($(n <at-end) % 100)) 0 '... in whole claims'
ids ./?.all | cmp -s - at-end; ok $? '... each handed out once'
exits 0 'a claim in the pause' qclaim -c 100 mail
said '' 'finds nothing'
qpause -r mail
qclaim mail >4.all
is "$(ids 4.all)" $(($(n <at-end) + 1)) 'it goes on where it stopped'
qdone - <4.all
loops
wait
is "$(cat said.?)" '' '... to the end'
finished >at-end
complete "$jobs"
ids ./?.all | cmp -s - at-end; ok $? '... and none was handed out twice'

fresh
seq "$runs" | qadd -q --lines mail
timeout 300 qwork -P 2 mail -- true >log 2>&1 & pid=$!
until_ok half $((runs / 2))
qpause --all 'half way'
claimed >at-pause
wait $pid
is "$?$(cat log)" 0 'qwork ends'
stopped "$runs runs of a command" "$runs"
qpause -r --all
exits 0 '... goes on' qwork -P 2 mail -- true
complete "$runs"

# ---- eight at a time, a busy file, no permission ----

export Q_NOW=$T0 Q_BOOT=b1:1000000
fresh
for p in 1 2 3 4 5 6 7 8; do qadd -q q$p x; done
for p in 1 2 3 4 5 6 7 8; do
	(
		i=0
		while [ $((i += 1)) -le 15 ]; do
			qpause q$p $i || echo "pause: $?"
			[ -z "$(qclaim q$p)" ] || echo 'claimed in a pause'
			[ $i = 15 ] || qpause -r q$p || echo "resume: $?"
		done
	) >said.$p 2>&1 &
done
wait
is "$(cat said.*)" '' 'eight that pause and resume, each its own queue'
is "$(qpause | cut -f 1,3 | tr '\t\n' ' ,')" 'q1 15,q2 15,q3 15,q4 15,q5 15,q6 15,q7 15,q8 15,' '... none is lost'

rm -f q.db*
qinit
qadd -q mail x
mkfifo in
sqlite3 q.db <in >held 2>&1 &
exec 9>in
echo "BEGIN IMMEDIATE; SELECT 'held';" >&9
until_ok grep -q held held
for args in mail --all '-r mail' '-r --all'; do
	# shellcheck disable=SC2086 # words
	exits 75 "a busy file: qpause $args" env Q_BUSY_TIMEOUT=20ms qpause $args
	said "qpause: $PWD/q.db: busy for 20ms; another program holds it; try again later"
done
exits 0 '... and it can be read' env Q_BUSY_TIMEOUT=0 qpause
echo 'ROLLBACK;' >&9
exec 9>&-
wait
is "$(rows)" '' '... nothing changed'

touched() { stat -c '%Y %s %i' q.db q.db-wal; md5sum <q.db-wal; }
qpause mail why
before=$(touched)
exits 0 'what is paused so already' qpause mail why
exits 0 '... and what is not paused' qpause -r sms
is "$(touched)" "$before" '... is not written'

if [ "$(id -u)" -eq 0 ] && setpriv --reuid 65534 --regid 65534 --clear-groups true 2>/dev/null; then
	chmod 755 .
	chmod 644 q.db*
	cp "$(command -v qpause)" .
	other() { setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nowhere "$@"; }
	for args in mail '-r mail'; do
		# shellcheck disable=SC2086 # words
		exits 77 "no permission to write: qpause $args" other ./qpause $args
		said "qpause: $PWD/q.db: no permission to write; check its owner and mode, and the mount"
	done
	exits 0 '... but to read' other ./qpause
	is "$(cut -f 1 out)" mail '... what is paused'
else
	ok 0 'no permission to write # SKIP only root can become somebody else'
fi
# ---- qls says so to a person ----

fresh
qadd -q mail x
qpause mail 'bad template'
seen() { script -qec "$1" /dev/null </dev/null | tr -d '\r' | grep '^qls:'; }
is "$(seen 'qls; qls mail; qls other; qls --state done mail')" "$(printf 'qls: paused: mail: bad template; see qpause\nqls: paused: mail: bad template; see qpause')" \
    'on a terminal qls tells of pauses'
qpause --all
is "$(seen 'qls other')" 'qls: paused: all queues; see qpause' '... of that of all'
exits 0 '... in a pipe it does not' qls
is "$(cat err)" '' '... say a word'
done_testing
