#!/bin/sh
# qreplay: what is finished is done anew, once for each time it is asked, at the pace that was asked for.
# Sizes: JOBS replayed in a run that is killed; SEED.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

word() { sed 's/.*"claim":"\([^"]*\)".*/\1/'; }
claim() { qclaim -c "${2:-1}" "$1" | word; }
fresh() { rm -f q.db*; qinit; }
line() { tr '\n' ' ' | sed 's/ $//'; }
states() { sql "SELECT group_concat(state, ' ') FROM (SELECT state FROM q_job ORDER BY id)"; }
generations() { sql "SELECT group_concat(generation, ' ') FROM (SELECT generation FROM q_job ORDER BY id)"; }
dues() { sql "SELECT group_concat(due_ms - 1780401600000, ' ') FROM (SELECT due_ms FROM q_job ORDER BY id)"; }
commits() { perl -0777 -ne 'print scalar grep { unpack "N", substr $_, 4, 4 } unpack "x32(a4120)*", $_' q.db-wal; }
# dead N QUEUE REASON: so many more dead jobs
dead() {
	seq "$1" | qadd -q --lines "$2"
	qclaim -c "$1" "$2" | word | qfail --dead -m "$3" -
}
# What the counters say, and what the rows say.
# replays CODE OUT ERR NAME ARGS...
replays() {
	want=$1 out=$2 err=$3 name=$4
	shift 4
	exits "$want" "$name" qreplay "$@"
	is "$(line <out)" "$out" '... prints the ids'
	is "$(cat err)" "$err" '... and why not the others'
}

exits 66 'no file' qreplay 1
qinit

# ---- the command line ----

dead 1 mail refused
for bad in '' '-n' '--reason refused' '--state dead' '-t x' '--rate 5/s' '--state open mail' '--state all mail' '--state pending mail' '--state dead,failed mail' \
    '--state Dead mail' '--reason refused 1' '--reason refused -' '-k k 1' '--rate 50 mail' '--rate 0/s mail' '--rate /s 1' '--rate 50/0s 1' '--rate' \
    '--older-than 5 mail' '--all' '--dry mail' '-r 5/s mail'; do
	# shellcheck disable=SC2086
	unchanged 64 "qreplay $bad" qreplay $bad
	is "$(wc -l <err)$(cat out)" 1 '... and says so in one line'
done
unchanged 64 'no operand is not a read' sh -c 'yes 1 | qreplay'
is "$(cat err)" "qreplay: no ID and no QUEUE; '-' reads ids from standard input; see 'qreplay --help'" '... and says what would be'
unchanged 64 'a filter alone would be all of it' qreplay --reason refused
is "$(cat err)" "qreplay: no QUEUE; see 'qreplay --help'" '... so a queue must be named'
unchanged 65 'queues and an id' qreplay mail 1
unchanged 65 'no queue name' qreplay ''
unchanged 65 'not quite ids' qreplay 1,2
unchanged 65 'an empty key' qreplay -k '' mail
unchanged 65 'an empty type' qreplay -t '' mail
for bad in 0 00 9007199254740992; do
	unchanged 65 "'$bad' is no id" qreplay "$bad"
	is "$(cat err)" "qreplay: '$bad' is not a job id such as 42" '... and is named'
done
unchanged 66 'an unknown id' qreplay 2
is "$(cat out err)" "qreplay: no job 2 in $Q_DB; see qls --state all, -d and Q_DB" '... and is named'
unchanged 0 'a queue with nothing dead' qreplay none
unchanged 0 'an empty list' qreplay - </dev/null
unchanged 0 'an empty list, with a pace' qreplay --rate 5/s - </dev/null

# ---- one job ----

fresh
qset queue.plain.window=2h
qadd -q -k order-7 -t t1 -e ana -p 3 --attempts 2 --window 1h --backoff 1s..1m mail '{"to":"ana"}'
c=$(claim mail)
qfail --defer 0s "$c"
c=$(claim mail)
qfail --in 0s -m first "$c"
c=$(claim mail)
qfail --in 0s -m second "$c"
qadd -q plain x
qfail --dead "$(claim plain)"
is "$(states)" 'dead dead' 'dead'
before=$(sql 'SELECT queue, type, key, entity, event_ms, priority, zone, fence, attempts, base_ms, cap_ms, window_ms, added_ms, last_attempt FROM q_job')
export Q_NOW=2026-06-03T12:00:00.250Z
replays 0 '1 2' '' 'two dead jobs' 1 2
is "$(sql 'SELECT state, generation, spent, lost, deferred, defer_from_ms, due_ms - 1780401600000, ready_ms = due_ms, finished_ms, nonce FROM q_job')" \
    'pending|2|0|0|0||86400250|1||
pending|2|0|0|0||86400250|1||' '... are pending, due now, one generation on, their attempts unspent'
is "$(sql 'SELECT queue, type, key, entity, event_ms, priority, zone, fence, attempts, base_ms, cap_ms, window_ms, added_ms, last_attempt FROM q_job')" "$before" \
    '... the rest is as it was'
is "$(sql 'SELECT until_ms - due_ms FROM q_job' | line)" '3600000 7200000' '... the window begins anew, its own or that of the queue'
counted
unchanged 76 'the last claim of the life before' qdone "$c"
unchanged 1 'again' qreplay 1
is "$(cat out err)" 'qreplay: job 1 is pending already; only dead, done and cancelled jobs are replayed' '... is refused'
is "$(qadd -k order-7 mail '{"to":"ana"}')" 1 'the key is still that of the job'
qfail --in 0s -m third "$(claim mail)"
is "$(states)" 'failed pending' 'it has all its attempts again'
unchanged 1 'one that waits for its retry' qreplay 1
is "$(cat err)" 'qreplay: job 1 is failed already; only dead, done and cancelled jobs are replayed' '... is refused'
c=$(claim mail)
unchanged 1 'one that runs' qreplay 1
is "$(cat err)" 'qreplay: job 1 is claimed already; only dead, done and cancelled jobs are replayed' '... is refused'
qfail --in 0s -m fourth "$c"
is "$(states)" 'dead pending' '... and no more than those'
is "$(sql 'SELECT generation, attempt, outcome, state FROM q_attempt WHERE job = 1' | line)" \
    '1|1|deferred|pending 1|1|failed|failed 1|2|failed|dead 2|1|failed|failed 2|2|failed|dead' 'the history has both lives'
is "$(qls 1 | sed -n 's/^  \([12]\.[0-9]\) .*/\1/p' | line)" '2.2 2.1 1.2 1.1 1.1' '... as qls tells'
qdone "$(claim plain)"
qadd -q plain y
qcancel -q 3
replays 0 '2 3' '' 'a done and a cancelled one, by id' 2 3
is "$(generations) $(states)" '2 3 2 dead pending pending' '... are pending, too'
counted
export Q_NOW=2026-06-02T12:00:00Z

# ---- several, and the worst status ----

fresh
dead 9 mail x
qadd -q mail live					# 10
replays 0 '3 2' '' 'in the order given, each once' 3 2 3 2
replays 65 '4' "qreplay: 'x' is not a job id such as 42
qreplay: job 10 is pending already; only dead, done and cancelled jobs are replayed" 'a malformed one and a live one: 65' 10 x 4
replays 66 '5' "qreplay: no job 99 in $Q_DB; see qls --state all, -d and Q_DB
qreplay: job 10 is pending already; only dead, done and cancelled jobs are replayed" 'an unknown one: 66' 99 5 10
exits 1 'quietly' qreplay -q 6 10
is "$(cat out)|$(cat err)" '|qreplay: job 10 is pending already; only dead, done and cancelled jobs are replayed' '... no ids, but what went wrong'
{
	qls -j --state dead mail | sed -n 1p
	echo nonsense
	echo '{"id":8}'
} >input
replays 65 '1 8' 'qreplay: stdin:2: neither a job id such as 42 nor a job record with one' 'records and ids from standard input' - <input
is "$(qreplay --quiet 9 7)$(generations)" '2 2 2 2 2 2 2 2 2 1' 'each of them once'
unchanged 74 'standard input that is closed' sh -c 'qreplay - <&-'
counted

# ---- filters ----

fresh
add() { qadd "$@"; }
add -q -t t1 -k k1 mail 1; add -q -e ana mail 2; add -q mail 3; add -q sms 4
for q in mail sms; do qclaim -c 9 "$q" | word >c; qfail --dead -m "no route to $q" - <c; done
Q_NOW=2026-06-01T12:00:00Z add -q mail 5
Q_NOW=2026-06-01T12:00:00Z qfail --dead -m '100% _odd_: "x"' "$(claim mail)"
add -q mail 6; qdone "$(claim mail)"
add -q mail 7; qcancel -q 7
add -q mail 8
is "$(states)" 'dead dead dead dead dead done cancelled pending' 'a crowd'
finds() {	# IDS ARGS...: what would be replayed, and nothing changes
	want=$1
	shift
	unchanged 0 "qreplay -n $*" qreplay -n "$@"
	is "$(line <out)$(cat err)" "$want" '... finds these'
}
finds '1 2 3 5' mail
finds '4' sms
finds '1 2 3 5 4' mail sms mail
finds '' none
finds '6' --state 'done' mail
finds '7' --state cancelled mail
finds '1 2 3 5 6 7' --state cancelled,dead,done mail
finds '1' -t t1 mail
finds '1' --key k1 mail
finds '2' --entity ana mail
finds '1 2 3' --reason 'no route' mail
finds '5' --reason '100% _odd_: "x"' mail sms
finds '5' --older-than 1h mail
finds '1 2 3' --newer-than 1h mail
# shellcheck disable=SC2012
is "$(chmod 444 q.db && ls -l q.db | cut -c1-10; qreplay -n sms; chmod 600 q.db)" '-r--r--r--
4' 'a dry run needs no more than to read'
unchanged 1 'a dry run with ids' qreplay -n 1 8 6
is "$(line <out)|$(cat err)" '1 6|qreplay: job 8 is pending already; only dead, done and cancelled jobs are replayed' '... says what the run would say'
unchanged 66 'a dry run with an unknown id' qreplay -n 99 1
unchanged 0 'a quiet dry run' qreplay -nq mail
is "$(cat out err)" '' '... says nothing'
replays 0 '1 2 3' '' 'what a filter finds' --reason 'no route' mail
is "$(states)" 'pending pending pending dead dead done cancelled pending' '... and nothing else is replayed'
replays 0 '' '' 'again: nothing is left' --reason 'no route' mail
replays 0 '6 7' '' 'done and cancelled ones, when asked for' --state done,cancelled mail sms
counted

# ---- counters, in each direction ----

fresh
dead 4 mail x
qadd -q -e ana sms y
for step in 'qcancel 1 2' 'qreplay 1 3' 'qcancel 1' 'qreplay --state cancelled mail' 'run 2' 'qreplay --state done mail' 'kill 3' \
    'qreplay mail' 'qcancel 1 2 3 4' 'qreplay --state cancelled mail' 'run 4' 'qcancel -e ana sms' 'qreplay --state cancelled sms' 'run 9' \
    'qreplay --state done sms' 'qreplay --state done,dead,cancelled mail sms'; do
	case $step in
	run*) claim mail "${step#* }" >c; claim sms >>c; qdone - <c ;;
	kill*) claim mail "${step#* }" >c; qfail --dead - <c ;;
	*) $step >ids ;;
	esac
	counted "$step: the counters follow ($(states))"
done
exits 0 'the file is sound' "$t/storm/check" q.db

# ---- the pace ----

fresh
dead 5 mail x
exits 0 'a dry run with a pace' qreplay -n --rate 4/s mail
is "$(cat out)" "$(printf '1\t2026-06-02T12:00:00.000Z\n2\t2026-06-02T12:00:00.250Z\n3\t2026-06-02T12:00:00.500Z\n4\t2026-06-02T12:00:00.750Z\n5\t2026-06-02T12:00:01.000Z')" \
    '... says when'
replays 0 '1 2 3 4 5' '' 'a pace' --rate 4/s mail
is "$(dues)" '0 250 500 750 1000' '... is kept by the due times'
is "$(sql 'SELECT count(*) FROM q_job WHERE ready_ms = due_ms')" 5 '... which claimers obey'
is "$(Q_NOW=2026-06-02T12:00:00.600Z qclaim -c 9 mail | wc -l | tr -d ' ')" 3 '... as they do'
pace() {	# WANT RATE: three jobs
	fresh
	dead 3 mail x
	qreplay -q --rate "$2" mail
	is "$(dues)" "$1" "--rate $2"
}
pace '0 333 666' 3/s
pace '0 90000 180000' 1/90s
pace '0 0 0' 1000000/s
pace '0 100 200' 600/m+1
pace '0 0 100' 600/m+2
pace '0 0 0' 600/m+20
fresh
dead 3 mail x
for _ in 1 2 3; do dead 900 mail x; done
unchanged 64 'a pace that ends after the year 9999' qreplay --rate 1/3650d mail
is "$(cat err)" "qreplay: --rate: the last of 2703 jobs would be due after the year 9999; see 'qreplay --help'" '... is refused before anything is done'

# What another program has put further off than any time there is.
fresh
dead 3 mail x
sqlite3 q.db "INSERT INTO q_job(queue, generation, event_ms, due_ms, ready_ms, added_ms)
	VALUES('mail', 2, 0, 9223372036854775807, 9223372036854775807, 0)"
exits 0 'a pace behind a job that is never due' qreplay -n --rate 1/s mail
is "$(cut -f2 out | line)" '2026-06-02T12:00:02.000Z 2026-06-02T12:00:03.000Z 2026-06-02T12:00:04.000Z' '... goes on behind one job'

# A second run goes on where the first one ends, as long as its jobs are not tried.
fresh
dead 8 mail x
dead 2 sms x
qadd -q --in 1h mail later
qreplay -q --rate 1/s 1 2 3
Q_NOW=2026-06-02T12:00:00.500Z qreplay -q --rate 1/s+5 5 4
is "$(dues)" '0 1000 2000 4000 3000 0 0 0 0 0 3600000' 'the pace goes on behind what an earlier run left, in the order given'
Q_NOW=2026-06-02T12:00:01Z qclaim -c 2 mail >/dev/null
Q_NOW=2026-06-02T12:00:02Z qreplay -q --rate 2/s sms 
is "$(dues)" '0 1000 2000 4000 3000 0 0 0 2000 2500 3600000' 'another queue has a pace of its own'
Q_NOW=2026-06-02T12:00:02Z qreplay -q --rate 2/s 6 9 2>/dev/null
is "$(sql 'SELECT due_ms - 1780401600000 FROM q_job WHERE id = 6')" 3500 'the latest of the queues counts, and at most as long as what is left takes'
qcancel -q 4 5 6 9 10 3
Q_NOW=2026-06-02T12:00:02.250Z qreplay -q --rate 2/s mail
is "$(sql 'SELECT id, due_ms - 1780401600000 FROM q_job WHERE id IN (7, 8)' | line)" '7|2250 8|2750' 'what was cancelled takes no place'
fresh
dead 3 mail x
seq 1 3 | qadd -q --lines -e ana mail
qclaim -c 1 mail | word | qfail --dead -
qclaim -c 1 mail | word | qfail --dead -
qclaim -c 1 mail | word | qfail --dead -
qreplay -q --rate 1/m 4 5 6
qreplay -q --rate 1/m 1 2 3
is "$(dues)" '180000 240000 300000 0 60000 120000' 'what waits for its entity counts, too'

# The clock was wrong at the first run.
fresh
dead 4 mail x
Q_NOW=2036-06-02T12:00:00Z qreplay -q --rate 1/s 1 2
qreplay -q --rate 1/s 3 4
is "$(sql 'SELECT due_ms - 1780401600000 FROM q_job WHERE id > 2' | line)" '3000 4000' 'jobs that are due in ten years do not hold up the next ones'

# ---- an entity's order ----

fresh
qadd -q -e ana --event-time 2026-01-01T00:00:00Z mail one
qfail --dead "$(claim mail)"
qadd -q -e ana --event-time 2026-01-03T00:00:00Z mail three
qadd -q -e ana --event-time 2026-01-02T00:00:00Z mail two
is "$(sql 'SELECT id FROM q_job WHERE head = 1')" 3 'behind a dead one the others go on'
qreplay -q 1
is "$(sql 'SELECT id FROM q_job WHERE head = 1') $(states)" '1 pending pending pending' 'a replayed one has its old place'
c=$(claim mail)
is "${c%%.*}$(qclaim mail)" 1 '... and goes first, alone'
qdone "$c"
c=$(claim mail)
is "${c%%.*}" 3 '... then the rest in order'
qreplay -q 1
is "$(qclaim mail)" '' 'while one runs, an earlier one that is replayed waits'
qdone "$c"
c=$(claim mail)
is "${c%%.*}" 1 '... and is next'

# ---- keys ----

fresh
qadd -q -k order-7 mail old
c=$(claim mail)
qadd -q --replace -k order-7 mail new
qfail --dead -m refused "$c"
qadd -q mail other
c=$(claim mail 2)
for one in $c; do qfail --dead -m refused "$one"; done
is "$(states)" 'dead dead dead' 'two jobs had one key'
unchanged 1 'a job whose key another one has' qreplay 1
is "$(cat out err)" 'qreplay: job 1: job 2 was added later and has its key; replay that one' '... is not replayed'
unchanged 1 'a dry run' qreplay -n --reason refused mail
is "$(line <out)" '2 3' '... says the same'
replays 1 '2 3' 'qreplay: job 1: job 2 was added later and has its key; replay that one' 'by a filter' --reason refused mail
is "$(states)" 'dead pending pending' '... only the newest of a key is replayed'
# A key that was forgotten is known again as long as its job is open.
fresh
qadd -q -k order-7 mail x
qfail --dead "$(claim mail)"
sqlite3 q.db "DELETE FROM q_key"
qreplay -q 1
is "$(qadd -k order-7 mail x)" 1 'a key that was forgotten is taken again'

# ---- transactions ----

fresh
dead 250 mail x
before=$(commits)
exits 0 'two hundred and fifty' qreplay mail
is "$(($(commits) - before))" 3 '... take three transactions'
is "$(line <out)" "$(seq 1 250 | line)" '... and are told in order'
fresh
dead 250 mail x
exits 74 'ids that cannot be written' sh -c 'qreplay mail >/dev/full'
is "$(cat err)" 'qreplay: standard output: No space left on device; stopped after 100 of 250, whose ids are not all told' '... end the run'
is "$(sql "SELECT state, count(*) FROM q_job GROUP BY 1" | line)" 'dead|150 pending|100' '... with what was put back until then'

# ---- stopped half way ----

# midway SCRIPT ARGS...: runs qreplay, and when it cannot go on, since nobody reads, the script (in which $pid is qreplay);
# prints the ids
midway() {
	perl -e '
		my $script = shift;
		pipe R, W;
		fcntl W, 1031, 4096;	# F_SETPIPE_SZ: a page
		my $pid = fork // die;
		if (!$pid) {
			open STDOUT, ">&", \*W;
			close $_ for \*R, \*W;
			exec "qreplay", @ARGV;
		}
		close W;
		for (my $lines = 0; $lines < 300 && sysread R, $_, 1; $lines += /\n/) { print }
		my ($before, $now) = (-1, 0);
		while ($before != $now) {	# until no more is put back
			select undef, undef, undef, 0.1;
			($before, $now) = ($now, `sqlite3 -readonly q.db "SELECT sum(generation) FROM q_job"`);
		}
		system "pid=$pid; $script";
		print while sysread R, $_, 4096;
		waitpid $pid, 0;
		print STDERR "status $?\n"' "$@"
}
jobs=${JOBS:-2000}
half() {	# SIGNAL STATUS
	fresh
	dead "$jobs" mail 'connection refused'
	dead 3 mail other
	# shellcheck disable=SC2016
	midway "kill -$1 \$pid" --rate 50/s --reason refused mail >first 2>err
	is "$(cat err)" "status $2" "a run of $jobs is stopped by $1"
	n=$(sql 'SELECT count(*) FROM q_job WHERE generation = 2')
	[ "$n" -ge 300 ] && [ "$n" -lt "$jobs" ] && [ $((n % 100)) -eq 0 ]
	ok $? "... half way, between two transactions ($n)"
	sql 'SELECT id FROM q_job WHERE generation = 2' | sort >back
	is "$(sed '$d' first | sort | comm -23 - back)" '' '... what was told is on disk'
	Q_NOW=2026-06-02T12:00:02Z exits 0 '... and run again' qreplay --rate 50/s --reason refused mail
	is "$(wc -l <out | tr -d ' ')" $((jobs - n)) '... replays the rest'
	is "$(sql 'SELECT state, generation, count(*) FROM q_job GROUP BY 1, 2' | line)" "dead|1|3 pending|2|$jobs" '... each exactly once'
	is "$(sql 'SELECT count(DISTINCT due_ms), min(due_ms) - 1780401600000, max(due_ms) - 1780401600000 FROM q_job WHERE generation = 2')" \
	    "$jobs|0|$((jobs * 20 - 20))" '... one every 20 ms, from the first to the last'
	counted
}
half KILL 9
jobs=1500
half TERM 15
half INT 2

# ---- while others are at it ----

# What others did between the find and a job's turn is not undone.
fresh
dead 1500 mail x
cat >meanwhile <<'END_OF_FILE'
exec >/dev/null
qcancel 1498
qreplay 1497 1499 1500
qclaim -c 5000 mail | sed 's/.*"claim":"\([^"]*\)".*/\1/' >theirs
grep '^1497\.' theirs | qfail --dead -
grep -v '^1497\.' theirs | qdone -
END_OF_FILE
midway '. ./meanwhile' mail >ids 2>err
is "$(cat err)" 'status 0' 'jobs that others cancelled, or replayed until they were done or dead, since they were found'
is "$(sql 'SELECT id, state, generation FROM q_job WHERE id > 1496' | line)" '1497|dead|2 1498|cancelled|1 1499|done|2 1500|done|2' '... are left alone'
is "$(line <ids)" "$(seq 1 1496 | line)" '... without a word'
is "$(sql 'SELECT max(generation) FROM q_job')" 2 '... and the others are replayed once'
counted

# Four on the same filter, and two workers who do at once what is put back.
fresh
unset Q_NOW Q_BOOT
dead 1000 mail 'connection refused'
for i in 1 2 3 4; do qreplay --reason refused mail >"ids.$i" 2>"err.$i" & done
for i in 1 2; do
	while [ "$(sql "SELECT count(*) FROM q_job WHERE state = 'done'")" -lt 1000 ]; do
		qclaim -c 50 mail | qdone -
	done 2>"err.w$i" &
done
wait
is "$(cat err.*)" '' 'four runs with one filter and two workers: no word from anybody'
is "$(sort -n ids.* | uniq -d | wc -l | tr -d ' ')|$(sort -n ids.* | line)" "0|$(seq 1 1000 | line)" '... each job is put back by one of them, once'
is "$(sql 'SELECT state, generation, count(*) FROM q_job GROUP BY 1, 2')" 'done|2|1000' '... as the file says'
counted
exits 0 'the file is sound' "$t/storm/check" q.db

# ---- a person's path ----

fresh
export Q_NOW=2026-06-02T12:00:00Z Q_BOOT=b1:1000000
cat >send <<'END_OF_FILE'
#!/bin/sh
cat >payload
. ./host.conf
[ "$host" = good ] || { echo "connect to $host: connection refused" >&2; exit 1; }
cat payload >>sent
END_OF_FILE
chmod +x send
echo host=bad >host.conf
for to in ana bo cy; do qadd -q --attempts 1 mail "{\"to\":\"$to\"}"; done
exits 1 'a handler fails for good' qwork mail -- ./send
exits 0 'what is dead' qls --state dead --reason refused mail
is "$(cut -f1,3 out | line)" "$(printf '1\tdead 2\tdead 3\tdead')" '... is found by its reason'
qadd -q --attempts 1 mail '{"to":"di"}'
echo 'host=good; exit 65' >host.conf
exits 1 'another one dies of something else' qwork mail -- ./send
echo host=good >host.conf
export Q_NOW=2026-06-02T15:00:00Z
replays 0 '1 2 3' '' 'mended: a dry run' -n --reason refused mail
is "$(states)" 'dead dead dead dead' '... changes nothing'
replays 0 '1 2 3' '' 'the run' --reason refused mail
exits 0 'the worker' qwork mail -- ./send
is "$(cat out err)|$(cat sent)" '|{"to":"ana"}{"to":"bo"}{"to":"cy"}' '... does them'
is "$(states)" 'done done done dead' '... and not the other one'
is "$(qls 1 | sed -n 's/^\(state\|attempts\) *//p; s/^  \(.*\)  20.*/\1/p; s/^ *reason: //p' | line)" \
    'done 0 of 1 spent, generation 2 , the newest first: 2.1 done -> done 1.1 failed -> dead connect to bad: connection refused' \
    'the history shows both lives'
is "$(qls -j 1 | jq -c '[.state, .generation, .attempt, (.history | map([.generation, .attempt, .outcome, .state]))]')" \
    '["done",2,1,[[2,1,"done","done"],[1,1,"failed","dead"]]]' '... in JSON, too'
qcancel -q 4
is "$(qls --counts mail)" "$(printf 'mail\t0\t0\t0\t3\t0\t1\t0')" 'the rest is dropped, and nothing is dead'
done_testing
