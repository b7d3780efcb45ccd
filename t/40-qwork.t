#!/bin/sh
# qwork: what an exit status means, what a command is given, and that nothing of it is left.
# shellcheck disable=SC2016	# what stands between single quotes is for another shell or perl
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

fresh() { rm -f q.db*; qinit; rm -f pids go; }
add() { qadd -q "$@"; }
# The newest attempt of a job, and what the job became.
attempt() {
	sql "SELECT outcome, coalesce(exit, ''), coalesce(signal, ''), coalesce(reason, ''), coalesce(result, '')
	       FROM q_attempt WHERE job = $1 ORDER BY id DESC LIMIT 1"
}
job() { sql "SELECT state, spent, due_ms - 1780401600000 > 0 FROM q_job WHERE id = $1"; }
gone() { case $(ps -o stat= -p "$1") in ''|Z*) ;; *) return 1 ;; esac; }
# That a background qwork ends, and how; what does not is killed, so that the test goes on.
ends() {	# CODE NAME PID
	until_ok gone "$3" || kill -9 "$3"
	exits "$1" "$2" wait "$3"
}
state_of() { [ "$(sql "SELECT state FROM q_job WHERE id = $1")" = "$2" ]; }
renewed() { [ "$(sql "SELECT lease_ms FROM q_job WHERE id = $1")" -gt "$2" ]; }
expired() { [ "$(sql "SELECT lease_ms FROM q_job WHERE id = $1")" -lt "$(awk '{ printf "%d", $1 * 1000 }' /proc/uptime)" ]; }

# ---- usage ----

exits 66 'no file' qwork mail -- true
qinit
exits 64 'no queue' qwork -- true
is "$(cat err)" "qwork: no QUEUE; see 'qwork --help'" '... says so'
exits 64 'no --' qwork mail ./send
is "$(cat err)" "qwork: the command follows '--' after the queues; see 'qwork --help'" '... says so'
exits 64 'no command' qwork mail --
is "$(cat err)" "qwork: no command after '--'; see 'qwork --help'" '... says so'
exits 64 'no process' qwork -P 0 mail -- true
exits 64 'too many' qwork -P 257 mail -- true
exits 64 'a lease too short to renew' qwork -l 999ms mail -- true
exits 64 'a limit without a unit' qwork --limit 30 mail -- true
exits 64 'no job at all' qwork -c 0 mail -- true
exits 78 'a bad Q_NOW' env Q_NOW=yesterday qwork mail -- true
exits 0 'nothing is due' qwork mail other -- sh -c 'touch ran'
is "$(cat out err)" '' '... says nothing'
[ ! -e ran ]; ok $? '... runs nothing'

# ---- what an exit status means ----

# A row: name, what the command does, qwork's exit status, attempt, job (state, attempts spent, due later).
while IFS=@ read -r name cmd want attempt job; do
	fresh
	add mail x
	exits "$want" "$name" qwork mail -- sh -c "$cmd"
	is "$(attempt 1)" "$attempt" '... attempt'
	is "$(job 1)" "$job" '... job'
	is "$(cat out)" '' '... and standard output is empty'
done <<'END'
0@echo fine; echo noise >&2@0@done|0|||fine@done|0|0
0 without a word@exit 0@0@done|0|||@done|0|0
75@echo busy >&2; exit 75@0@deferred|75||busy|@pending|0|1
65@echo bad >&2; exit 65@1@failed|65||bad|@dead|1|0
1@echo no >&2; echo out; exit 1@0@failed|1||no|@failed|1|1
3 without a word@exit 3@0@failed|3||exit status 3|@failed|1|1
255@exit 255@0@failed|255||exit status 255|@failed|1|1
a signal@kill -9 $$@0@failed||9|signal 9|@failed|1|1
a signal after a word@echo oops >&2; kill -TERM $$@0@failed||15|oops|@failed|1|1
127@echo gone >&2; exit 127@127@released|127||gone|@pending|0|0
126@exit 126@126@released|126||exit status 126|@pending|0|0
END

fresh
printf '%s\n' 1 2 3 | add --lines mail
exits 1 'dead jobs are told' qwork mail -- sh -c 'case $(cat) in 1) exit 65;; 2) printf "Traceback\n  bad \033thing\n\n" >&2; exit 65;; esac'
is "$(cat err)" 'qwork: job 1: dead: exit status 65; next: qls 1
qwork: job 2: dead:   bad \x1bthing; next: qls 2' '... a line each, with the last line of the reason'
fresh
add --attempts 1 mail x
exits 1 'the last attempt' qwork mail -- false
is "$(cat err)" 'qwork: job 1: dead: exit status 1; next: qls 1' '... is told likewise'

fresh
printf '%s\n' 0 1 65 75 | add --lines mail
exits 1 '--verbose' qwork -v mail -- sh -c 'read x || :; exit $x'
is "$(sed 's/[0-9]*\.[0-9]s/TIME/' err)" 'qwork: job 1: done in TIME
qwork: job 2: failed in TIME: exit status 1
qwork: job 3: dead: exit status 65; next: qls 3
qwork: job 4: deferred in TIME: exit status 75' '... tells of each job'

# ---- a command that cannot be run ----

echo text >plain
while IFS=@ read -r cmd want why; do
	fresh
	printf '%s\n' 1 2 3 | add --lines mail
	exits "$want" "command $cmd" qwork -P 2 mail -- "$cmd"
	is "$(sed 's/job [12]/job N/' err)" "qwork: $cmd: $why; claiming stopped, job N is given back" '... one line'
	is "$(sql 'SELECT group_concat(state || spent, " ") FROM q_job')" 'pending0 pending0 pending0' '... no attempt is spent'
	is "$(sql 'SELECT max(fence) FROM q_job WHERE id = 3')" 0 '... and the third is not even claimed'
done <<'END'
./absent@127@No such file or directory
no-such-command@127@No such file or directory
./plain/x@127@Not a directory
./plain@126@Permission denied
END

fresh
printf '%s\n' 1 2 3 | add --lines mail
exits 127 'when one cannot run' qwork -P 2 mail -- sh -c 'if [ "$(cat)" = 1 ]; then
	until [ -s go ]; do sleep 0.01; done; echo whole; else echo >go; exit 127; fi'
is "$(attempt 1)" 'done|0|||whole' '... the others finish'

# ---- what the command is given ----

fresh
add -t reset -k 'order 7' -e 'customer é' --event-time 2026-06-01T08:00:00.250Z mail x
add mail y
for v in ID CLAIM QUEUE TYPE KEY ENTITY ATTEMPT GENERATION DUE EVENT_TIME; do export "Q_$v=stale"; done
exits 0 'environment' qwork -d q.db mail -- sh -c 'env | grep ^Q_ | grep -v ^Q_NOW | sort >"env.$Q_ID"'
for v in ID CLAIM QUEUE TYPE KEY ENTITY ATTEMPT GENERATION DUE EVENT_TIME; do unset "Q_$v"; done
is "$(sed 's/\(CLAIM=1\.1\.\)[0-9a-f]\{8\}$/\1XXXXXXXX/' env.1)" "Q_ATTEMPT=1
Q_BOOT=b1:1000000
Q_CLAIM=1.1.XXXXXXXX
Q_DB=$PWD/q.db
Q_DUE=2026-06-02T12:00:00.000Z
Q_ENTITY=customer é
Q_EVENT_TIME=2026-06-01T08:00:00.250Z
Q_GENERATION=1
Q_ID=1
Q_KEY=order 7
Q_QUEUE=mail
Q_TYPE=reset" '... of a job with everything'
is "$(grep -e = env.2 | sed 's/\(CLAIM=2\.1\.\)[0-9a-f]\{8\}$/\1XXXXXXXX/')" "Q_ATTEMPT=1
Q_BOOT=b1:1000000
Q_CLAIM=2.1.XXXXXXXX
Q_DB=$PWD/q.db
Q_DUE=2026-06-02T12:00:00.000Z
Q_ENTITY=
Q_EVENT_TIME=2026-06-02T12:00:00.000Z
Q_GENERATION=1
Q_ID=2
Q_KEY=
Q_QUEUE=mail
Q_TYPE=" '... of a job with nothing: what was inherited is gone'

fresh
add --backoff 1s..1s mail x
qwork mail -- false
Q_NOW=2026-06-02T12:00:05Z qwork mail -- sh -c 'echo "$Q_ATTEMPT" >attempt'
is "$(cat attempt)" 2 'the second attempt knows its number'

fresh
head -c 1048576 /dev/urandom >big
add mail - <big
exits 0 'a payload of 1 MiB' qwork mail -- sh -c 'cat >got'
cmp -s big got; ok $? '... comes byte for byte'
for how in 'true' 'exec <&-; sleep 0.1; exit 0' 'head -c 10 >got'; do
	fresh
	add mail - <big
	exits 0 "... not read by: $how" qwork mail -- sh -c "$how"
	is "$(sql 'SELECT state FROM q_job')" 'done' '... is no failure'
done
fresh
add --empty mail - </dev/null
exits 0 'an empty payload' qwork mail -- sh -c 'wc -c | tr -d " "'
is "$(attempt 1)" 'done|0|||0' '... is an empty standard input'

printf '#!/bin/sh\nfor a; do printf "<%%s>" "$a"; done\n' >"-x y'\"\$(z)"
chmod +x "./-x y'\"\$(z)"
fresh
add mail x
exits 0 'an odd command name' qwork mail -- "./-x y'\"\$(z)" -- '' 'a  b' '*' --limit "$(printf 'new\nline')"
is "$(attempt 1)" 'done|0|||<--><><a  b><*><--limit><new
line>' '... and its arguments as they are'

fresh
add mail x
(trap '' PIPE USR1 HUP; exits 0 'signals' qwork mail -- perl -e '
	print join(",", grep { ($SIG{$_} // "") eq "IGNORE" && $_ ne "FPE" } sort keys %SIG), ";", getpgrp() == $$ ? "own group" : "shared group"')
_n=$((_n + 1))				# the one in the subshell
is "$(attempt 1)" 'done|0|||;own group' '... are at their defaults, and the group is its own'

fresh
add mail x
fds='opendir D, "/proc/self/fd"; print join " ", sort { $a <=> $b } grep { /\d/ } readdir D'
perl -e "$fds" </dev/null >direct 2>/dev/null
exits 0 'descriptors' qwork mail -- perl -e "$fds"
is "$(sql 'SELECT result FROM q_attempt')" "$(cat direct)" '... are three, and what the caller passed on'

fresh
printf '%s\n' 1 2 | add --lines mail
is "$(printf 'a\nb\n' | { qwork mail -- cat; cat; })" 'a
b' 'the standard input of qwork is left alone'

# ---- result and reason ----

fresh
add mail x
exits 0 'a result' qwork mail -- printf 'a\0b\377\n'
is "$(sql 'SELECT hex(result) FROM q_attempt')" 610062FF0A '... is kept byte for byte'
fresh
add mail x
exits 0 'a long result' qwork mail -- perl -e 'print "0123456789abcdef" x 20000; print STDERR "noise" x 100000'
is "$(sql 'SELECT length(result), substr(CAST(result AS TEXT), -16) FROM q_attempt')" '65536|0123456789abcdef' '... is cut at 64 KiB'
fresh
add mail x
exits 0 'a long complaint' qwork mail -- perl -e 'print STDERR "x" x 100000, "y" x 4093, "end\n"; exit 1'
is "$(sql 'SELECT length(reason), substr(reason, 1, 2), substr(reason, -4) FROM q_attempt')" '4095|yy|yend' '... keeps its end'
fresh
add mail x
exits 0 'a complaint that is not text' qwork mail -- perl -e 'print STDERR "a\0b\xffc\xc3\xa4\xe2\x82 \n\n"; exit 1'
is "$(attempt 1)" 'failed|1||a?b?cä??|' '... becomes text'
fresh
add mail x
exits 0 'a complaint cut within a character' qwork mail -- perl -e 'print STDERR "\xc3\xa4" x 5000, "!"; exit 1'
is "$(sql 'SELECT length(reason), substr(reason, 1, 1), substr(reason, -1) FROM q_attempt')" '2048|ä|!' '... begins with a whole one'

# ---- the time limit ----

fresh
add mail x
exits 0 'the time limit' qwork --limit 1s mail -- sh -c 'echo $$ >pids; echo half >&2; exec sleep 60'
is "$(attempt 1)" 'failed||15|time limit 1s: half|' '... ends the command'
is "$(job 1)" 'failed|1|1' '... and spends an attempt'
none_alive; ok $? '... and nothing runs any more'
fresh
add mail x
exits 0 'a command that calls its end a success' qwork --limit 200ms mail -- sh -c 'trap "exit 0" TERM; while :; do sleep 0.01; done'
is "$(job 1)" 'failed|1|1' '... has still failed'
fresh
add mail x
exits 0 'the time limit of a stopped command' qwork --limit 200ms mail -- sh -c 'kill -STOP $$'
is "$(attempt 1)" 'failed||15|time limit 200ms|' '... works'

# ---- nothing is left ----

cat >family <<'END'
#!/bin/sh
# All the ways to stay behind: $1 is what the head of the family does in the end.
echo $$ >>pids
(trap '' TERM HUP INT; echo $(exec sh -c 'echo $PPID') >>pids; while :; do sleep 1; done) &
setsid sh -c 'trap "" TERM HUP; echo $$ >>pids; sleep 60 & echo $! >>pids; wait' &
setsid sh -c 'setsid sh -c "echo \$\$ >>pids; exec sleep 60" >/dev/null 2>&1 &' &
sh -c 'echo $$ >>pids; exec sleep 60' <&- &
until [ "$(wc -l <pids)" -eq 6 ]; do sleep 0.01; done
echo >go
eval "$1"
END
chmod +x family
for how in 'exit 0' 'exit 3' 'kill -9 $$'; do
	fresh
	add mail x
	exits 0 "children left behind by: $how" qwork mail -- ./family "$how"
	is "$(wc -l <pids | tr -d ' '),$(alive)" '6,' '... are gone'
done
fresh
add mail x
exits 0 'children left behind at the time limit' qwork --limit 3s mail -- ./family 'sleep 60'
is "$(wc -l <pids | tr -d ' '),$(alive)" '6,' '... are gone'

mkfifo fifo
fresh
add mail x
exits 0 'a child that still writes' qwork mail -- sh -c '(cat; echo last) <fifo & exec 3>fifo; echo first'
is "$(attempt 1)" 'done|0|||first
last' '... may finish its output'

fresh
add mail x
qwork mail -- ./family 'sleep 60' 2>/dev/null & pid=$!
until_ok test -s go
kill -9 "$pid"
wait "$pid" 2>/dev/null
until_ok none_alive; ok $? 'after kill -9 of qwork nothing of its jobs is left'
is "$(wc -l <pids | tr -d ' '),$(sql 'SELECT state FROM q_job')" '6,claimed' '... and the job is claimed'
exits 0 'once the lease is over' env Q_BOOT=b1:1300000 qwork mail -- echo again
is "$(sql 'SELECT group_concat(outcome, " ") FROM q_attempt')" 'lost done' '... another takes it over'

# ---- signals ----

# A command that says it runs, and ends when told.
cat >slow <<'END'
#!/bin/sh
echo $$ >>pids
echo >go
until [ -e end ]; do sleep 0.01; done
rm end
echo whole
END
chmod +x slow
# NAME SIGNAL OPTIONS...: qwork with one job that runs, and is then signalled; the rest is up to the caller.
begin() {
	fresh
	printf '%s\n' 1 2 | add --lines mail
	perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' qwork "$@" >qout 2>qerr & pid=$!
	until_ok test -s go
}

begin mail -- ./slow
kill -TERM "$pid"
touch end
exits 75 'TERM' wait "$pid"
is "$(attempt 1)" 'done|0|||whole' '... lets the running command finish'
is "$(sql 'SELECT state FROM q_job WHERE id = 2')" pending '... and claims no more'
is "$(cat qout qerr)" '' '... without a word'

begin mail -- ./slow
kill -HUP "$pid"
touch end
exits 75 'HUP likewise' wait "$pid"
begin mail -- ./slow
kill -INT "$pid"
touch end
exits 130 'INT ends it by that signal' wait "$pid"
is "$(attempt 1)" 'done|0|||whole' '... after the command has finished'

begin --grace 100ms mail -- ./family 'sleep 60'
kill -TERM "$pid"
exits 75 'when the grace time is over' wait "$pid"
is "$(attempt 1)" 'released||15|its worker was stopped|' '... the command is ended'
is "$(job 1)" 'pending|0|0' '... and its job given back, no attempt spent'
is "$(wc -l <pids | tr -d ' '),$(alive)" '6,' '... and nothing is left'

begin mail -- sh -c 'trap "" TERM; exec ./slow'
kill -TERM "$pid"
until_ok taken "$pid"			# two that come at once are one
began=$(date +%s)
kill -TERM "$pid"
exits 75 'a second signal' wait "$pid"
test $(($(date +%s) - began)) -lt 5; ok $? '... ends it before the patience of a first one is over'
is "$(attempt 1)" 'released||9|its worker was stopped|' '... kills at once'
none_alive; ok $? '... and nothing is left'

fresh
add mail x
(trap '' HUP; exec qwork mail -- ./slow) & pid=$!
until_ok test -s go
kill -HUP "$pid"
touch end
exits 0 'under nohup HUP means nothing' wait "$pid"

fresh
qwork --follow mail -- sh -c 'echo ran >>go' & pid=$!
add mail x
until_ok test -s go; ok $? '--follow takes a job that comes later'
until_ok lines go 1
add mail y
until_ok lines go 2; ok $? '... and the next'
kill -TERM "$pid"
exits 0 '... and ends well by TERM' wait "$pid"
is "$(sql 'SELECT group_concat(state, " ") FROM q_job')" 'done done' '... with all done'

fresh
(unset Q_NOW; exec qwork --follow mail -- sh -c 'date +%s >>go') & pid=$!
(unset Q_NOW; add --in 300ms mail x; add --backoff 200ms..200ms mail y)
until_ok lines go 2; ok $? '--follow takes a job when it becomes due'
kill -TERM "$pid"
exits 0 '... and ends' wait "$pid"

# ---- claims ----

fresh
printf '%s\n' 1 2 3 4 5 | add --lines mail
exits 1 'commands that settle their own jobs' qwork -v mail -- sh -c 'case $(cat) in
	1) qfail --defer 40s "$Q_CLAIM"; exit 1 ;;
	2) qdone -r mine "$Q_CLAIM"; echo other ;;
	3) qfail --dead -m "no such order" "$Q_CLAIM"; exit 3 ;;
	4) qfail -m "own words" "$Q_CLAIM" ;;
	5) qfail --defer 1m "$Q_CLAIM"; exit 75 ;;
	esac'
is "$(sql "SELECT outcome, coalesce(reason, ''), coalesce(result, ''), count(*) FROM q_attempt GROUP BY job")" 'deferred|||1
done||mine|1
failed|no such order||1
failed|own words||1
deferred|||1' '... have the last word'
is "$(sed 's/[0-9]*\.[0-9]s/TIME/' err)" 'qwork: job 1: settled by the command itself in TIME
qwork: job 2: done in TIME
qwork: job 3: dead: no such order; next: qls 3
qwork: job 4: settled by the command itself in TIME: own words
qwork: job 5: deferred in TIME: exit status 75' '... and nothing is called lost'

begin -l 1s -c 1 mail -- ./slow
boot=$(sql 'SELECT lease_ms FROM q_job WHERE id = 1')
qdone -r early "$(sql "SELECT printf('%d.%d.%08x', id, fence, nonce) FROM q_job WHERE id = 1")"
sleep 0.5				# a renewal finds it settled
touch end
exits 0 'a job settled while its command runs on' wait "$pid"
is "$boot,$(sql 'SELECT count(*), CAST(result AS TEXT) FROM q_attempt'),$(cat qerr)" '1001000,1|early,' '... is left alone'

fresh
add mail x
(unset Q_BOOT; exec qwork -l 1s mail -- ./slow) & pid=$!
until_ok test -s go
was=$(sql 'SELECT lease_ms FROM q_job')
until_ok renewed 1 "$was"; ok $? 'the lease is renewed'
touch end
exits 0 '... until the command ends' wait "$pid"

begin -l 1s -c 1 mail -- ./family 'sleep 60'
sqlite3 -cmd '.timeout 10000' q.db "UPDATE q_job SET fence = fence + 1, nonce = 1 WHERE state = 'claimed'"
until_ok none_alive; ok $? 'a lost claim: its command is killed'
exits 0 '... and that is all' wait "$pid"
is "$(cat qerr)" 'qwork: job 1: its claim was lost while it ran; this run is not recorded; next: qls 1' '... one line'
is "$(sql "SELECT count(*) FROM q_attempt WHERE job = 1"),$(sql 'SELECT state FROM q_job WHERE id = 1')" '0,claimed' '... and nothing is settled'

fresh
add mail x
exits 0 'a claim lost as the command ends' qwork mail -- sqlite3 -cmd '.timeout 10000' q.db 'UPDATE q_job SET fence = fence + 1, nonce = 1'
is "$(cat err)" 'qwork: job 1: its claim was lost while it ran; this run is not recorded; next: qls 1' '... one line'
is "$(sql 'SELECT count(*) FROM q_attempt')" 0 '... and nothing is settled'

# ---- how many, which ----

fresh
seq 9 | add --lines mail
exits 0 'three at a time' qwork -P 3 mail -- sh -c 'echo s >>log; until [ "$(grep -c s log)" -ge 3 ]; do sleep 0.01; done; echo e >>log'
is "$(awk '/s/ { n++ } /e/ { n-- } n > max { max = n } END { print max }' log)" 3 '... never four'
is "$(sql "SELECT count(*) FROM q_job WHERE state = 'done'")" 9 '... and all are done'

rm log
fresh
for i in 5 3 1 4 2; do add -e ana --event-time "2026-06-01T00:00:0${i}Z" mail "$i"; done
exits 0 'jobs of one entity' qwork -P 4 mail -- sh -c 'x=$(cat); echo "s$x" >>log; sleep 0.05; echo "e$x" >>log'
is "$(tr '\n' ' ' <log)" 's1 e1 s2 e2 s3 e3 s4 e4 s5 e5 ' '... run one by one, in order'

fresh
seq 5 | add --lines mail
exits 0 'at most two' qwork -c 2 -P 4 mail -- true
is "$(sql "SELECT count(*) FROM q_job WHERE state = 'done'")" 2 '... are two'
exits 0 'at most one, and then it ends' qwork --follow -c 1 mail -- true
is "$(sql "SELECT count(*) FROM q_job WHERE state = 'done'")" 3 '... with --follow too'

fresh
add -t a one x
add -t b one x
add two x
add three x
exits 0 'only a type' qwork -t a one two -- true
is "$(sql 'SELECT group_concat(state, " ") FROM q_job')" 'done pending pending pending' '... only those'
exits 0 'several queues' qwork two one -- true
is "$(sql 'SELECT group_concat(state, " ") FROM q_job')" 'done done done pending' '... only those'

# ---- trouble ----

begin -P 2 mail -- sh -c '[ "$(cat)" = 1 ] || { until [ "$(sqlite3 -readonly -cmd ".timeout 10000" q.db "SELECT count(*) FROM q_attempt")" = 1 ]; do sleep 0.01; done; exit 0; }
	echo $$ >>pids; echo >go; exec sleep 60'
until_ok test -s pids
kill -9 "$(ps -o ppid= -p "$(cat pids)" | tr -d ' ')"
exits 0 'a minder that is killed' wait "$pid"
is "$(attempt 1)" 'failed|||its minder was killed|' '... fails its job'
is "$(attempt 2)" 'done|0|||' '... and only that'
none_alive; ok $? '... whose command died with it'
begin mail -- sh -c 'echo $$ >>pids; echo >go; exec sleep 60'
kill -9 "$(children "$pid")"
exits 75 'the last minder' wait "$pid"
is "$(cat qerr)" 'qwork: all minders were killed; try again' '... ends it'
is "$(sql 'SELECT group_concat(state, " ") FROM q_job')" 'failed pending' '... after its job is settled'

hold() {	# the file is busy until fd 9 is closed
	rm -f held
	{ echo 'BEGIN IMMEDIATE; SELECT 1;'; cat fifo; } | sqlite3 -cmd '.timeout 10000' q.db >held &
	exec 9>fifo
	until_ok test -s held
}
export Q_BUSY_TIMEOUT=100ms
begin mail -- ./slow
hold
touch end
until_ok test -s qerr
exec 9>&-
touch end
exits 0 'a result that meets a busy file' wait "$pid"
is "$(cat qerr)" "qwork: $PWD/q.db: busy for 100ms; another program holds it; try again later; still trying" '... is told once'
is "$(sql 'SELECT count(*), group_concat(CAST(result AS TEXT)) FROM q_attempt')" '2|whole
,whole' '... and is not lost'
fresh
hold
exits 75 'a busy file at the start' qwork mail -- true
is "$(cat err)" "qwork: $PWD/q.db: busy for 100ms; another program holds it; try again later" '... one line'
exec 9>&-
wait
unset Q_BUSY_TIMEOUT

fresh
printf '%s\n' 1 2 | add --lines mail
blocks=$(($(wc -c <q.db-wal) / 512 + 64))
(ulimit -f "$blocks"; exec qwork -P 2 mail -- sh -c '[ "$(cat)" = 1 ] || { echo $$ >>pids; echo >go; exec sleep 60; }
	until [ -s go ]; do sleep 0.01; done; head -c 60000 /dev/zero') 2>qerr & pid=$!
exits 74 'a file that cannot be written' wait "$pid"
like "$(cat qerr)" "^qwork: $PWD/q.db: " '... is told'
is "$(wc -l <qerr | tr -d ' ')" 1 '... once'
none_alive; ok $? '... and what ran is ended'
is "$(sql 'SELECT group_concat(state, " ") FROM q_job')" 'claimed claimed' '... and claimed until the lease is over'

# A pipe of messages that is full, and whose reader does not read.
mkfifo errors
exec 8<>errors
perl -e 'open my $f, ">", "errors"; fcntl $f, 4, 2048; 1 while syswrite $f, "x" x 4096; 1 while syswrite $f, "x"'
fresh
printf '%s\n' 1 2 | add --lines mail
(unset Q_BOOT; exec qwork -v -P 2 -l 1s mail -- sh -c '[ "$(cat)" = 2 ] || exec ./slow' 2>errors 8<&-) & pid=$!
until_ok state_of 2 'done'
was=$(sql 'SELECT lease_ms FROM q_job WHERE id = 1')
until_ok renewed 1 "$was"; ok $? 'messages that nobody reads do not stop the heartbeat'
touch end
until_ok state_of 1 'done'; ok $? '... nor what comes next'
exec 8<&-
ends 0 '... nor the end' "$pid"
is "$(attempt 1)" 'done|0|||whole' '... and nothing else suffers'

# A wait for the file that is longer than the lease of what runs.
fresh
rm -f runs.*
printf '%s\n' 1 2 | add --lines mail
(unset Q_BOOT; export Q_BUSY_TIMEOUT=1m; exec qwork -P 2 -l 3s mail -- sh -c 'echo run >>"runs.$Q_ID"
	until [ -e "end.$Q_ID" ]; do sleep 0.01; done' 2>qerr) & pid=$!
until_ok test -s runs.1
until_ok test -s runs.2
hold
touch end.2				# settling it waits, and the heartbeat of the other is not due yet
until_ok expired 1
exec 9>&-
until_ok state_of 2 'done'
is "$(sql 'SELECT state, fence FROM q_job WHERE id = 1') $(sql 'SELECT count(*) FROM q_attempt')" 'claimed|1 1' \
    'after a long wait for the file its own claims are not found over'
ok "$(expired 1; echo $((! $?)))" '... they are renewed first'
touch end.1
ends 0 '... and settled' "$pid"
is "$(cat runs.1 qerr) $(attempt 1)" 'run done|0|||' '... by the one run there was'
wait

# ---- a command that turns against its minder ----

begin --grace 100ms mail -- sh -c 'kill -STOP $PPID; echo $$ >>pids; echo >go; exec sleep 60'
kill -TERM "$pid"
ends 75 'a minder that its command has stopped: TERM' "$pid"
is "$(attempt 1)" 'released||15|its worker was stopped|' '... ends the command in time'
none_alive; ok $? '... and nothing is left'
is "$(cat qerr)" '' '... without a word'
fresh
add mail x
(exec qwork mail -- sh -c 'kill -STOP $PPID; echo whole') & pid=$!
ends 0 '... it goes on at once' "$pid"
is "$(attempt 1)" 'done|0|||whole' '... and the job is settled'
begin -P 3 -c 1 --grace 100ms mail -- ./slow
# shellcheck disable=SC2046	# numbers
kill -STOP $(children "$pid")
kill -TERM "$pid"
ends 75 'idle minders that somebody has stopped' "$pid"
is "$(attempt 1)" 'released||15|its worker was stopped|' '... end, too'

# What forks and ends, and so on, until ./chain is gone (or two minutes are over).  Whoever runs has the lock.
cat >chain <<'END'
use POSIX ();
open my $lock, ">", "lock" or die;
flock $lock, 2;
$^F = 255;
$SIG{$_} = "IGNORE" for qw(TERM HUP INT);
setpgrp if $ARGV[0];
open my $go, ">", "go";
print $go "go\n";
close $go;
my $end = time + 120;
while (-e "chain" && time < $end) { my $pid = fork; POSIX::_exit(0) if !defined $pid || $pid }
END
unlocked() { flock -n lock true; }
for group in 0 1; do
	fresh
	add mail x
	exits 0 "children that fork for ever, in group $group" timeout -k 1 60 qwork mail -- sh -c 'perl chain "$0" & until [ -s go ]; do sleep 0.01; done; echo whole' $group
	is "$(attempt 1)" 'done|0|||whole' '... the job is done'
	unlocked; ok $? '... and none is left'
	begin mail -- sh -c 'echo $$ >>pids; perl chain "$0" & exec sleep 60' $group
	children "$pid" >>pids
	kill -9 "$pid"
	wait "$pid" 2>/dev/null
	until_ok unlocked; ok $? '... after kill -9 of qwork: none is left'
	until_ok none_alive; ok $? '... nor the minder'
done
fresh
add mail x
exits 0 '... at the time limit' timeout -k 1 60 qwork --limit 200ms mail -- sh -c 'perl chain & exec sleep 60'
is "$(attempt 1)" 'failed||15|time limit 200ms|' '... which counts'
unlocked; ok $? '... and none is left'
begin --grace 100ms mail -- sh -c 'echo $$ >>pids; perl chain & exec sleep 60'
kill -TERM "$pid"
ends 75 '... at TERM' "$pid"
unlocked; ok $? '... and none is left'
rm chain

# What qwork may not kill: another user's.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null && cp "$(command -v setpriv)" su && chmod 4755 su && chmod 755 . &&
    cp "$(command -v qwork)" "$(command -v qadd)" "$(command -v qinit)" . && mkdir -m 777 his &&
    setpriv --reuid 4001 --clear-groups ./su --reuid 0 true 2>/dev/null; then
	export Q_DB="$PWD/his/q.db"
	setpriv --reuid 4001 --clear-groups ./qinit
	setpriv --reuid 4001 --clear-groups ./qadd -q mail x
	exits 0 'a child that may not be killed' timeout -k 1 60 setpriv --reuid 4001 --clear-groups ./qwork mail -- \
	    sh -c './su --reuid 0 sleep 300 >/dev/null 2>&1 & until [ "$(ps -o user= -p $!)" = root ]; do sleep 0.01; done; echo $! >his/pid; echo whole'
	is "$(attempt 1)" 'done|0|||whole' '... does not hold qwork up'
	kill "$(cat his/pid)"; ok $? '... and is left'
	export Q_DB="$PWD/q.db"
fi

# ---- another file under its name ----

for how in moved replaced; do
	fresh
	rm -rf was
	qwork --follow mail -- sh -c 'echo ran >>go' 2>qerr & pid=$!
	add mail x
	until_ok state_of 1 'done'
	mkdir was
	mv q.db* was
	[ $how = moved ] || { qinit; add mail new; }
	before=$(cat was/q.db was/q.db-wal q.db* 2>/dev/null | cksum)
	ends 78 "a file that is $how while qwork --follow waits" "$pid"
	is "$(cat qerr)" "qwork: $PWD/q.db: removed or replaced while it was open; nothing was changed; start again" '... ends it'
	is "$(cat was/q.db was/q.db-wal q.db* 2>/dev/null | cksum)" "$before" '... and nothing was written'

	rm -rf was
	begin -c 1 mail -- ./slow
	mkdir was
	mv q.db* was
	[ $how = moved ] || { qinit; add mail new; }
	before=$(cat was/q.db was/q.db-wal q.db* 2>/dev/null | cksum)
	touch end
	ends 78 '... while a command runs' "$pid"
	is "$(cat qerr)" "qwork: $PWD/q.db: removed or replaced while it was open; nothing was changed; start again" '... ends it'
	is "$(cat was/q.db was/q.db-wal q.db* 2>/dev/null | cksum)" "$before" '... and nothing was written'
done

# ---- a job that kills its workers ----

fresh
add mail x
for boot in b2 b3 b4; do Q_BOOT=$boot:1 qclaim mail >claimed; done
exits 1 'a job whose claim was lost three times' env Q_BOOT=b5:1 qwork mail -- touch ran2
is "$(cat err)" 'qwork: job 1: dead: its claim was lost once too often; next: qls 1' '... is told'
is "$(job 1)" 'dead|3|0' '... is dead'
[ ! -e ran2 ]; ok $? '... and does not run'

done_testing
