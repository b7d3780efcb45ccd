#!/bin/sh
# qjob: a crontab line as it was, but one at a time, on a leash, and on record.
# shellcheck disable=SC2016	# what stands between single quotes is for another shell or perl
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

fresh() { rm -f q.db* pids go end; qinit; }
# The newest attempt of a job: outcome, exit, signal, reason, result; and what the job became.
attempt() {
	sql "SELECT outcome, state, coalesce(exit, ''), coalesce(signal, ''), coalesce(reason, ''), coalesce(CAST(result AS TEXT), '')
	       FROM q_attempt WHERE job = $1 ORDER BY id DESC LIMIT 1"
}
states() { sql "SELECT group_concat(state, ' ') FROM (SELECT state FROM q_job ORDER BY id)"; }
# OPTIONS...: qjob in the background, output in jout and jerr; returns when ./go is there.
begin() {
	fresh
	qjob "$@" >jout 2>jerr & pid=$!
	until_ok test -e go
}
sha() { sha256sum | cut -c1-64; }

# ---- usage ----

# Its exit status, and on standard output how many children it leaves to somebody else.
cat >orphans <<'END'
use constant SUBREAPER => 36;
syscall 157, SUBREAPER, 1, 0, 0, 0 if `uname -m` eq "x86_64\n";
my $status = system(@ARGV) >> 8;
my $n = 0;
$n++ while wait != -1;
print "$n\n";
exit $status;
END
exits 66 'no file' perl orphans qjob x -- true
is "$(cat out)" 0 '... and no process that somebody else has to bury'
qinit
while IFS=@ read -r want args err; do
	# shellcheck disable=SC2086	# words
	exits "$want" "qjob $args" qjob $args
	is "$(cat out err)" "qjob: $err" '... says so'
done <<'END'
64@@no NAME; see 'qjob --help'
64@x@the command follows '--' after the name; see 'qjob --help'
64@x true@the command follows '--' after the name; see 'qjob --help'
64@x y -- true@the command follows '--' after the name; see 'qjob --help'
64@x --@no command after '--'; see 'qjob --help'
64@-l 999ms x -- true@-l: a lease is at least 1s; see 'qjob --help'
64@--limit 30 x -- true@--limit: '30' a number needs a unit: write 10s, 10m, 10h or 10d; see 'qjob --help'
65@12 -- true@bad queue name '12'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
65@a/b -- true@bad queue name 'a/b'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
END
exits 78 'a bad Q_NOW' env Q_NOW=noon qjob x -- touch ran
exits 78 'a bad Q_BOOT' env Q_BOOT=noon qjob x -- touch ran
exits 65 'a command of more than 1 MiB' perl -e 'exec "qjob", "x", "--", "touch", "ran", ("x" x 100000) x 11'
[ ! -e ran ]; ok $? 'nothing of this ran'
is "$(states)" '' '... or was added'

# ---- the exit status, and the job ----

# A row: name, command, exit status, what qjob itself says, attempt.
while IFS=@ read -r name cmd want says attempt; do
	fresh
	exits "$want" "$name" qjob x -- sh -c "$cmd"
	is "$(grep ^qjob: err)" "$says" '... what it says'
	is "$(attempt 1)" "$attempt" '... attempt'
done <<'END'
0@echo fine; echo noise >&2@0@@done|done|0|||fine
0 without a word@exit 0@0@@done|done|0|||
1 after a word@echo out; echo no >&2; exit 1@1@qjob: x: exit status 1; next: qls 1@failed|dead|1||no|
3 without a word@exit 3@3@qjob: x: exit status 3; next: qls 1@failed|dead|3||exit status 3|
3 with output@echo out; exit 3@3@qjob: x: exit status 3; next: qls 1@failed|dead|3||exit status 3|
65@echo bad >&2; exit 65@65@qjob: x: exit status 65; next: qls 1@failed|dead|65||bad|
75 is no deferral@echo busy >&2; exit 75@75@qjob: x: exit status 75; next: qls 1@failed|dead|75||busy|
76@exit 76@76@qjob: x: exit status 76; next: qls 1@failed|dead|76||exit status 76|
126@exit 126@126@qjob: x: exit status 126; next: qls 1@failed|dead|126||exit status 126|
127 is no release@echo gone >&2; exit 127@127@qjob: x: exit status 127; next: qls 1@failed|dead|127||gone|
255@exit 255@255@qjob: x: exit status 255; next: qls 1@failed|dead|255||exit status 255|
KILL@kill -9 $$@137@qjob: x: signal 9; next: qls 1@failed|dead||9|signal 9|
TERM after a word@echo oops >&2; kill -TERM $$@143@qjob: x: signal 15; next: qls 1@failed|dead||15|oops|
END

echo text >plain
while IFS=@ read -r cmd want why; do
	fresh
	exits "$want" "command $cmd" qjob x -- "$cmd"
	is "$(cat out err)" "qjob: x: $cmd: $why; next: qls 1" '... says so'
	is "$(attempt 1)" "failed|dead|$want||$why|" '... attempt'
done <<'END'
./absent@127@No such file or directory
no-such-command@127@No such file or directory
./plain@126@Permission denied
END

fresh
exits 0 'a run at 03:25' env Q_NOW=2026-06-02T12:03:25.250Z qjob nightly.export -- sh -c 'exit 0' 'a "b"' "$(printf 'new\nline \377')"
is "$(sql 'SELECT id, queue, type, key, entity, priority, state, due_ms - 1780401600000, attempts, spent, fence, added_ms - due_ms FROM q_job')" \
	'1|nightly.export|qjob|||5|done|180000|1|0|1|25250' '... is a job, due at 03:00'
is "$(qls --raw 1)" '["sh","-c","exit 0","a \"b\"","new\nline \ufffd"]' '... whose payload is the command'
is "$(sql "SELECT started_ms - due_ms, finished_ms - due_ms, count, worker GLOB '*:[0-9]*' FROM q_attempt")" '25250|25250||1' '... and late by 25s'
exits 0 'a run at 03:59.999' env Q_NOW=2026-06-02T12:03:59.999Z qjob x -- true
is "$(sql 'SELECT due_ms - 1780401600000 FROM q_job WHERE id = 2')" 180000 '... is meant for 03:00, too'
exits 0 'a run at 04:00' env Q_NOW=2026-06-02T12:04:00Z qjob x -- true
is "$(sql 'SELECT due_ms - 1780401600000 FROM q_job WHERE id = 3')" 240000 '... is not late'

fresh
for v in ID CLAIM QUEUE TYPE KEY ENTITY ATTEMPT GENERATION DUE EVENT_TIME; do export "Q_$v=stale"; done
exits 0 'environment' qjob -d q.db x -- sh -c 'env | grep ^Q_ | grep -v -e ^Q_NOW -e ^Q_BOOT | sort'
for v in ID CLAIM QUEUE TYPE KEY ENTITY ATTEMPT GENERATION DUE EVENT_TIME; do unset "Q_$v"; done
is "$(sed 's/\(CLAIM=1\.1\.\)[0-9a-f]\{8\}$/\1XXXXXXXX/' out)" "Q_ATTEMPT=1
Q_CLAIM=1.1.XXXXXXXX
Q_DB=$PWD/q.db
Q_DUE=2026-06-02T12:00:00.000Z
Q_ENTITY=
Q_EVENT_TIME=2026-06-02T12:00:00.000Z
Q_GENERATION=1
Q_ID=1
Q_KEY=
Q_QUEUE=x
Q_TYPE=qjob" '... says which run it is'

# ---- output and input ----

fresh
perl -e 'srand 1; print pack "C*", map { int rand 256 } 1 .. 10_000_000 / 10 for 1 .. 10' >big
exits 0 '10 MB of anything' qjob x -- sh -c 'cat big; cat big >&2'
cmp -s big out; ok $? '... on standard output'
cmp -s big err; ok $? '... and standard error'
is "$(sql "SELECT length(result), result = CAST(readfile('big') AS BLOB), reason IS NULL FROM q_attempt" 2>/dev/null || sql 'SELECT length(result) FROM q_attempt')" \
	'65536|0|1' '... of which the beginning is kept'
is "$(qjob x -- cat big | sha)" "$(sha <big)" '... through a pipe'
is "$(qjob x -- cat big | { sleep 1; sha; })" "$(sha <big)" '... to a slow reader'
is "$(qjob x -- sh -c 'cat big; cat big >&2' 2>&1 | perl -e 'while (read STDIN, $_, 1 << 16) { $n += length; select undef, undef, undef, 0.001 } print $n')" \
	20000000 '... both in one pipe'
is "$(qjob x -- perl -e '$| = 1; print "line $_\n" for 1 .. 20000; print STDERR "error $_\n" for 1 .. 20000' 2>&1 | { sleep 0.5; sha; })" \
	"$(perl -e 'print "line $_\n" for 1 .. 20000; print "error $_\n" for 1 .. 20000' | sha)" '... with no line torn'
exits 0 'nothing at all' qjob x -- true
is "$(cat out err)" '' '... is nothing'
exits 0 'no newline' qjob x -- printf 'a\0b\377'
is "$(od -An -tx1 out)" ' 61 00 62 ff' '... is not added'

fresh
(qjob x -- sh -c 'echo one; echo two >&2; until [ -e end ]; do sleep 0.01; done' >jout 2>jerr) & pid=$!
until_ok grep -q one jout; ok $? 'a line comes while the command runs'
until_ok grep -q two jerr; ok $? '... on standard error, too'
touch end
exits 0 '... and that is all' wait "$pid"
is "$(cat jout jerr)" 'one
two' '... as it was'
fresh
exits 0 'a child that still writes' qjob x -- sh -c '(sleep 0.1; echo last) & echo first'
is "$(cat out)" 'first
last' '... may finish its output'

fresh
is "$(printf 'a\nb\n' | qjob x -- head -n 1)" a 'input is passed on'
is "$(printf 'a\nb\n' | { qjob x -- true; cat; })" 'a
b' '... and what the command leaves is left'
exits 1 'closed input' qjob x -- cat <&-
is "$(head -n 1 err)" 'cat: -: Bad file descriptor' '... is closed for the command'

# NAME OUT EXIT SAYS: what becomes of a command whose output goes to OUT
fresh
(qjob --limit 20s x -- yes; echo $? >status) 2>jerr | head -n 1 >jout
is "$(cat jout status jerr)" 'y
141
qjob: x: signal 13; next: qls 1' 'a reader that goes away: SIGPIPE'
is "$(attempt 1)" 'failed|dead||13|signal 13|' '... and the run has failed'
(qjob x -- sh -c 'echo a; until [ -e end ]; do sleep 0.01; done; sleep 0.3; echo b'; echo $? >status) 2>jerr |
	perl -e 'print scalar <STDIN>; close STDIN; open F, ">", "end"' >jout
is "$(cat jout status)" 'a
141' '... at the next line, as without qjob'
exits 74 'a full disk' sh -c 'qjob x -- echo hello >/dev/full'
is "$(cat err)" 'qjob: x: standard output: No space left on device; it is not complete; next: qls 3' '... is told'
is "$(attempt 3)" 'failed|dead|0||standard output: No space left on device; it is not complete|' '... is a failure'
exits 141 'a full disk and much output' sh -c 'qjob --limit 20s x -- yes >/dev/full'
exits 3 'a full disk and a failure' sh -c 'qjob x -- sh -c "echo a; echo b >&2; exit 3" >/dev/full'
is "$(cat err)" "$(printf 'b\nqjob: x: exit status 3; next: qls 5')" '... is the failure'
is "$(attempt 5)" 'failed|dead|3||exit status 3: b|' '... of the command'
exits 74 'errors that cannot be written' sh -c 'qjob x -- sh -c "echo a >&2" 2>/dev/full'
is "$(attempt 6)" 'failed|dead|0||standard error: No space left on device; it is not complete: a|' '... are a failure'
exits 0 'a full disk and no output' sh -c 'qjob x -- true >/dev/full 2>&1'
exits 74 'closed output' sh -c 'qjob x -- echo a >&-'
exits 0 '... that nobody needs' sh -c 'qjob x -- true >&- 2>&-'

# ---- the count ----

while IFS=@ read -r cmd count says; do
	fresh
	exits 0 "count of: $cmd" qjob --count-from-stdout x -- sh -c "$cmd"
	is "$(sql "SELECT coalesce(count, '-'), outcome FROM q_attempt")" "$count|done" '... is this'
	is "$(cat err)" "$says" '... and this is said'
done <<'END'
echo 17@17@
echo 1; echo 2; echo three@2@
printf 'a\n007'@7@
printf 4; sleep 0.2; printf '2\n'@42@
echo 0@0@
echo 5; seq -f 'row %f' 30000; echo 6x; echo -7; echo 8.0; echo; echo ' 9'@5@
seq 30000; echo x@30000@
echo 9223372036854775807; echo 99999999999999999999@-@qjob: x: no line of its output is a whole number, so it has no count; next: qls 1
echo none@-@qjob: x: no line of its output is a whole number, so it has no count; next: qls 1
true@-@qjob: x: no line of its output is a whole number, so it has no count; next: qls 1
END
fresh
exits 0 'a number that was not asked for' qjob x -- echo 17
is "$(sql 'SELECT count FROM q_attempt')" '' '... is none'
exits 3 'the count of a failure' qjob --count-from-stdout x -- sh -c 'echo 4; echo no >&2; exit 3'
is "$(sql 'SELECT count FROM q_attempt WHERE job = 2')" 4 '... is kept'
exits 3 'no count of a failure' qjob --count-from-stdout x -- sh -c 'echo no >&2; exit 3'
is "$(cat err)" "$(printf 'no\nqjob: x: exit status 3; next: qls 3')" '... is the lesser trouble'

# ---- the time limit ----

fresh
exits 143 'the time limit' qjob --limit 300ms nightly-export -- sh -c 'echo $$ >pids; echo half >&2; exec sleep 60'
is "$(cat out err)" 'half
qjob: nightly-export: time limit 300ms; next: qls 1' '... is told'
is "$(attempt 1)" 'failed|dead||15|time limit 300ms: half|' '... and on record'
none_alive; ok $? '... and nothing runs any more'
exits 143 'a command that calls its end a success' qjob --limit 300ms x -- perl -e '$SIG{TERM} = sub { exit 0 }; sleep 60'
is "$(attempt 2)" 'failed|dead|0||time limit 300ms|' '... has still failed'
exits 4 'a command that ends by itself then' qjob --limit 300ms x -- perl -e '$SIG{TERM} = sub { exit 4 }; sleep 60'
is "$(cat err)" 'qjob: x: time limit 300ms; next: qls 3' '... has its own status'

# ---- one at a time ----

fresh
i=0
while [ $((i += 1)) -le 20 ]; do
	(qjob x -- sh -c 'echo ran >>log; until [ -e end ]; do sleep 0.01; done' >"o$i" 2>&1; echo $? >"s$i.new"; mv "s$i.new" "s$i") &
done
until_ok sh -c '[ "$(cat s? s?? 2>/dev/null | wc -l)" -eq 19 ]'
touch end
wait
is "$(cat s? s?? | sort | uniq -c | tr -s ' ' | tr '\n' ';')" ' 1 0; 19 75;' 'of twenty at once one runs, the others are skipped'
is "$(cat log o? o??)" ran '... without a word'
is "$(states)" 'done' '... and leave nothing'
rm log o? o?? s? s??

# What takes its time is begun here, and looked at in the end.
apart() {	# FOLDER: with a queue of its own
	mkdir "$1" && cd "$1" || exit
	export Q_DB="$PWD/q.db"
	qinit
}
# EXIT: a run whose file has no room for its end
no_room() {
	apart "full$1"
	ulimit -f $(($(wc -c <q.db-wal) / 512 + 64))
	exec qjob x -- sh -c 'head -c 60000 /dev/zero; echo no >&2; exit $0' "$1" >/dev/null 2>err
}
(no_room 0) & full0=$!
(no_room 3) & full3=$!
mkfifo pipe
exec 8<>pipe				# nobody reads it, but it is open
(apart stuck; unset Q_NOW; exec qjob --limit 300ms x -- sh -c 'echo $$ >pids; exec yes' >../pipe 2>err) & stuck=$!
cat >terminal <<'END'
# CMD...: its output is a terminal that nobody reads.  One that has some room, but not enough, is where a write blocks.
sysopen my $m, "/dev/ptmx", 2 or exit 99;
my ($unlock, $n) = (pack("i", 0), pack("i", 0));
ioctl $m, 0x40045431, $unlock or exit 99;
ioctl $m, 0x80045430, $n or exit 99;
sysopen STDOUT, "/dev/pts/" . unpack("i", $n), 0401 or exit 99;
exec @ARGV if !fork;
wait;
exit $? >> 8;
END
(apart tty; exec perl ../terminal qjob --limit 300ms x -- yes 2>err) & tty=$!

begin x -- sh -c 'echo $$ >pids; touch go; until [ -e end ]; do sleep 0.01; done'
before=$(sqlite3 -readonly q.db .dump)
exits 75 'a second run while the first holds' perl orphans qjob x -- touch ran
is "$(cat out err)" 0 '... is skipped in silence'
exits 75 'a third, too' qjob x -- touch ran
is "$(sqlite3 -readonly q.db .dump)" "$before" '... and nothing is written'
[ ! -e ran ]; ok $? '... or run'
exits 0 'another name' qjob y -- touch ran
[ -e ran ]; ok $? '... runs beside it'
touch end
exits 0 'the first' wait "$pid"
exits 0 'then the next' qjob x -- true
is "$(sql "SELECT group_concat(queue || ' ' || state, ', ') FROM q_job")" 'x done, y done, x done' '... and all is done'

# Other jobs of a queue of that name are another matter.
fresh
qadd -q x a
qadd -q --attempts 1 x b
qclaim x >claimed
qclaim x | qfail -m bad -
qset queue.x.rate=1/1d queue.x.concurrency=1 queue.x.attempts=3 queue.x.window=1h
exits 0 'jobs of the queue that are no runs' qjob x -- true
exits 0 '... and its rate and concurrency' qjob x -- true
is "$(states)" 'claimed dead done done' '... are left alone, and do not matter'

fresh
qpause x 'the partner is down'
exits 75 'a paused name' qjob x -- touch ran2
is "$(cat out err)$(states)" '' '... is skipped in silence'
exits 0 'another' qjob y -- true
qpause -r x
qpause --all
exits 75 'all paused' qjob y -- touch ran2
[ ! -e ran2 ]; ok $? '... nothing ran'

# ---- older trouble ----

fresh
for i in 1 2 3; do qjob x -- false 2>/dev/null; done
qjob y -- false 2>/dev/null
qadd -q --attempts 1 x 'no run'
qclaim x | qfail -m bad -
is "$(states)" 'dead dead dead dead dead' 'failed runs are dead'
exits 0 'a run that succeeds' qjob x -- true
is "$(states)" 'cancelled cancelled cancelled dead dead done' '... cancels those of its name, and no other job'
is "$(sql "SELECT count(*) FROM q_attempt WHERE outcome = 'failed'")" 5 '... which stay on record'
qjob x -- false 2>/dev/null
is "$(states)" 'cancelled cancelled cancelled dead dead done dead' 'one that fails cancels nothing'

fresh
sqlite3 q.db "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1005)
	INSERT INTO q_job(queue, type, state, event_ms, due_ms, added_ms, finished_ms) SELECT 'x', 'qjob', 'dead', 1, 1, 1, 1 FROM n"
exits 0 'a thousand dead ones and five' qjob x -- true
is "$(sql "SELECT count(*), min(id) FROM q_job WHERE state = 'dead'")" '5|1001' '... a thousand go'
exits 0 'the next run' qjob x -- true
is "$(sql "SELECT count(*) FROM q_job WHERE state = 'dead'")" 0 '... takes the rest'

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
touch go
eval "$1"
END
chmod +x family
fresh
exits 3 'children left behind' qjob x -- ./family 'exit 3'
is "$(wc -l <pids | tr -d ' '),$(alive)" '6,' '... are gone'
fresh
exits 143 'children left behind at the time limit' qjob --limit 3s x -- ./family 'sleep 60'
is "$(wc -l <pids | tr -d ' '),$(alive)" '6,' '... are gone'

begin x -- ./family 'sleep 60'
kill -9 "$pid"
wait "$pid" 2>/dev/null
until_ok none_alive; ok $? 'after kill -9 of qjob nothing of the run is left'
is "$(wc -l <pids | tr -d ' '),$(states)" '6,claimed' '... and its job is claimed'
exits 75 '... so that the next is skipped' qjob x -- touch ran3
exits 75 '... until the lease is over' env Q_BOOT=b1:1299999 qjob x -- touch ran3
[ ! -e ran3 ]; ok $? '... nothing ran'
exits 0 '... and then one runs' env Q_BOOT=b1:1300000 qjob x -- echo again
is "$(cat out err)" 'again
qjob: x: job 1: dead: its claim was lost; next: qls 1' '... and tells what was lost'
is "$(sql 'SELECT job, outcome, state FROM q_attempt')" '1|lost|dead
2|done|done' '... as the ledger does'
is "$(states)" 'cancelled done' '... and all is well again'

begin -l 10m x -- sh -c 'echo $$ >pids; touch go; exec sleep 60'
kill -9 "$pid"
wait "$pid" 2>/dev/null
exits 75 'a longer lease' env Q_BOOT=b1:1599999 qjob x -- true
qpause x 2>err				# it has no job yet
exits 75 'after a reboot, paused' env Q_BOOT=b2:1 qjob x -- true
is "$(cat out err)" 'qjob: x: job 1: dead: its claim was lost; next: qls 1' '... what was lost is told'
is "$(states)" dead '... and is dead'

fresh
sqlite3 q.db "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 251)
	INSERT INTO q_job(queue, type, state, event_ms, due_ms, added_ms, claimed_ms, lease_ms, fence, nonce)
	SELECT 'x', CASE i WHEN 251 THEN 'qjob' ELSE '' END, 'claimed', 1, 1, 1, 1, i, 1, 1 FROM n;
	INSERT INTO q_meta VALUES('boot', 'b1')"
exits 0 'a run behind many ended claims' qjob x -- true
is "$(sql "SELECT state, type, count(*) FROM q_job GROUP BY 1, 2" | tr '\n' ' ')" 'done|qjob|1 failed||250 failed|qjob|1 ' \
	'... takes all of them back, so that no late renewal makes it two'

fresh
qjob x -- sh -c 'echo $$ >pids; touch go; exec yes' >pipe 2>jerr & pid=$!
until_ok test -e go
kill -9 "$pid"
wait "$pid" 2>/dev/null
until_ok none_alive; ok $? 'a reader that does not read keeps nothing alive'

# ---- signals ----

for sig in TERM HUP INT; do
	case $sig in HUP) n=1;; INT) n=2;; TERM) n=15;; esac
	fresh
	perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' qjob x -- sh -c 'echo $$ >pids; echo half >&2; touch go; exec sleep 60' >jout 2>jerr & pid=$!
	until_ok test -e go
	kill -s "$sig" "$pid"
	exits $((128 + n)) "$sig" wait "$pid"
	is "$(cat jout jerr)" half '... without a word'
	is "$(attempt 1)" 'failed|dead||15|its worker was stopped: half|' '... is passed on as TERM, and on record'
	none_alive; ok $? '... and nothing is left'
done
begin x -- perl -e '$SIG{TERM} = sub { print "bye\n"; exit 0 }; open F, ">", "go"; sleep 60'
kill -TERM "$pid"
exits 143 'a command that ends well then' wait "$pid"
is "$(cat jout jerr)" bye '... may say so'
is "$(attempt 1)" 'failed|dead|0||its worker was stopped|' '... but was not done'
begin x -- sh -c 'trap "" TERM; echo $$ >pids; touch go; while :; do sleep 0.01; done'
kill -TERM "$pid"
until_ok taken "$pid"			# two that come at once are one
began=$(date +%s)
kill -HUP "$pid"
exits 143 'a second signal' wait "$pid"
test $(($(date +%s) - began)) -lt 5; ok $? '... does not wait for the patience of the first'
is "$(attempt 1)" 'failed|dead||9|its worker was stopped|' '... kills at once'
none_alive; ok $? '... and nothing is left'
fresh
(trap '' HUP; exec qjob x -- sh -c 'touch go; until [ -e end ]; do sleep 0.01; done' >jout 2>jerr) & pid=$!
until_ok test -e go
kill -HUP "$pid"
touch end
exits 0 'under nohup HUP means nothing' wait "$pid"

# ---- the claim ----

begin -l 1s x -- sh -c 'echo $$ >pids; touch go; sleep 15; echo late'
sqlite3 -cmd '.timeout 10000' q.db 'UPDATE q_job SET fence = fence + 1, nonce = 1'
exits 76 'a claim that is lost' wait "$pid"
none_alive; ok $? '... the command is killed'
is "$(cat jout jerr)" 'qjob: x: its claim was lost while it ran; this run is not recorded; next: qls 1' '... and that is told'
is "$(sql 'SELECT count(*) FROM q_attempt')" 0 '... and nothing is settled'
fresh
exits 76 'a claim lost as the command ends' qjob x -- sqlite3 -cmd '.timeout 10000' q.db 'UPDATE q_job SET fence = fence + 1, nonce = 1'
is "$(cat out err)" 'qjob: x: its claim was lost while it ran; this run is not recorded; next: qls 1' '... likewise'

fresh
(unset Q_BOOT; exec qjob -l 1s x -- sh -c 'touch go; until [ -e end ]; do sleep 0.01; done') & pid=$!
until_ok test -e go
was=$(sql 'SELECT lease_ms FROM q_job')
until_ok sh -c '[ "$(sqlite3 -readonly -cmd ".timeout 10000" q.db "SELECT lease_ms FROM q_job")" -gt "$0" ]' "$was"; ok $? 'the lease is renewed'
touch end
exits 0 '... until the command ends' wait "$pid"

fresh
qjob x -- false 2>/dev/null
exits 0 'a command that settles its own job' qjob x -- sh -c 'echo out; qdone --count 5 -r mine "$Q_CLAIM"'
is "$(cat out err)" out '... has the last word'
is "$(sql 'SELECT outcome, count, CAST(result AS TEXT) FROM q_attempt WHERE job = 2')" 'done|5|mine' '... in the ledger'
is "$(states)" 'cancelled done' '... and what was dead is cancelled all the same'
exits 0 'one that says it failed, and exits 0' qjob x -- sh -c 'qfail --dead -m "half of it" "$Q_CLAIM"'
is "$(cat out err)$(attempt 3)" 'failed|dead|||half of it|' '... is believed'
begin -l 1s x -- sh -c 'qdone "$Q_CLAIM"; touch go; until [ -e end ]; do sleep 0.01; done; exit 3'
sleep 0.5				# a renewal finds it settled
touch end
exits 3 'one that runs on after that' wait "$pid"
is "$(attempt 1)" 'done|done||||' '... is left alone'

# ---- a lock ----

exits 65 'an empty lock' qjob --lock '' x -- touch ran5
begin --lock both x -- sh -c 'echo "$Q_LOCK $Q_FENCE $Q_QUEUE"; touch go; until [ -e end ]; do sleep 0.01; done'
exits 75 'another run with that lock' qjob --lock both y -- touch ran5
is "$(cat out err)" '' '... is skipped in silence'
exits 75 '... and qlock waits' qlock -n both -- touch ran5
is "$(states)" claimed '... and no job is added'
exits 0 'another lock' qjob --lock other y -- true
touch end
exits 0 'the first' wait "$pid"
is "$(cat jout jerr)" 'both 1 x' '... has the lock in its environment'
is "$(states) $(sql 'SELECT count(*) FROM q_hold')" 'done done 0' '... and frees it'
begin x -- sh -c 'touch go; until [ -e end ]; do sleep 0.01; done'
exits 75 'a run that overlaps' qjob --lock both x -- touch ran5
is "$(sql 'SELECT count(*) FROM q_hold')" 0 '... does not keep its lock'
touch end
exits 0 'the first' wait "$pid"
[ ! -e ran5 ]; ok $? 'nothing that was skipped ran'
fresh
qadd -q -e both mail 1
qclaim mail >claimed
exits 75 'a job of that entity' qjob --lock both x -- touch ran5
qdone - <claimed
exits 0 '... that is done' qjob --lock both x -- true
exits 0 'a command that settles its own job' qjob --lock both x -- sh -c 'qdone "$Q_CLAIM"; qlock -n both -- true; [ $? = 75 ]'
is "$(sql 'SELECT count(*) FROM q_hold')" 0 '... holds the lock to its end'
begin -l 1s --lock both x -- sh -c 'echo $$ >pids; touch go; sleep 15; echo late'
qlock --break both >/dev/null
exits 76 'a lock that is broken' wait "$pid"
is "$(cat jout jerr)" "qjob: x: its lock 'both' was lost while it ran, and the command ended; next: qls 1" '... is told'
is "$(attempt 1)" 'failed|dead||9|its lock was lost while it ran|' '... and on record'
none_alive; ok $? '... and the command is killed'
fresh
exits 76 'one that is broken before the end' qjob --lock both x -- sh -c 'qlock --break both'
is "$(attempt 1)" 'failed|dead|0||its lock was lost while it ran|' '... was not done'
begin --lock both y -- sh -c 'echo $$ >pids; touch go; exec sleep 60'
kill -9 "$pid"
wait "$pid" 2>/dev/null
exits 75 'after kill -9 the lock' env Q_BOOT=b1:1299999 qjob --lock both z -- touch ran5
exits 0 '... ends with the claim' env Q_BOOT=b1:1300000 qjob --lock both z -- true
[ ! -e ran5 ]; ok $? 'nothing that was skipped ran'

# ---- trouble ----

begin x -- sh -c 'echo $$ >pids; touch go; exec sleep 60'
kill -9 "$(children "$pid")"
exits 137 'a minder that is killed' wait "$pid"
is "$(cat jout jerr)" 'qjob: x: its minder was killed; next: qls 1' '... is told'
is "$(attempt 1)" 'failed|dead|||its minder was killed|' '... and on record'
none_alive; ok $? '... and the command died with it'

fresh
exits 143 'the time limit of a command that has stopped its minder' qjob --limit 300ms x -- sh -c 'kill -STOP $PPID; echo $$ >pids; exec sleep 60'
is "$(cat out err)$(attempt 1)" 'qjob: x: time limit 300ms; next: qls 1failed|dead||15|time limit 300ms|' '... counts all the same'
none_alive; ok $? '... and nothing is left'
exits 0 'one that does it and ends' qjob x -- sh -c 'kill -STOP $PPID; echo whole'
is "$(cat out err)" 'whole' '... holds up nothing'

mkfifo fifo
hold() {	# the file is busy until fd 9 is closed
	rm -f held
	{ echo 'BEGIN IMMEDIATE; SELECT 1;'; cat fifo; } | sqlite3 q.db >held &
	exec 9>fifo
	until_ok test -s held
}
export Q_BUSY_TIMEOUT=100ms
begin -l 1s --lock both x -- sh -c 'echo $$ >pids; touch go; exec sleep 60'
hold
until_ok none_alive; ok $? 'a lock that cannot be renewed: the command is gone'
exec 9>&-
exits 76 '... and that' wait "$pid"
like "$(cat jerr)" "its lock 'both' was lost while it ran, and the command ended" '... is told'
begin -l 1s x -- sh -c 'touch go; until [ -e end ]; do sleep 0.01; done; echo whole'
hold
until_ok grep -q . jerr
touch end
sleep 0.3
exec 9>&-
exits 0 'a file that is busy meanwhile' wait "$pid"
is "$(cat jout jerr)" "whole
qjob: x: $PWD/q.db: busy for 100ms; another program holds it; try again later; still trying" '... is told once'
is "$(attempt 1)" 'done|done|0|||whole' '... and nothing is lost'
hold
exits 75 'a busy file at the start' qjob x -- touch ran4
is "$(cat out err)" "qjob: $PWD/q.db: busy for 100ms; another program holds it; try again later" '... one line'
[ ! -e ran4 ]; ok $? '... and nothing runs'
exec 9>&-
unset Q_BUSY_TIMEOUT

# ---- what took its time ----

exits 74 'a run whose end cannot be written' wait "$full0"
exits 3 '... and one that has failed' wait "$full3"
is "$(sed 's/^\(qjob: x: \).*; this/\1WHY; this/' full0/err full3/err)" 'no
qjob: x: WHY; this run is not recorded, and blocks the next until its lease is over
no
qjob: x: WHY; this run is not recorded, and blocks the next until its lease is over
qjob: x: exit status 3; next: qls 1' '... are told'
is "$(for d in full0 full3; do sqlite3 -readonly "$d/q.db" 'SELECT state FROM q_job'; done | tr '\n' ' ')" 'claimed claimed ' '... and claimed until the lease is over'

exits 143 'a reader that does not read' wait "$stuck"
is "$(cat stuck/err)" 'qjob: x: time limit 300ms; next: qls 1' '... does not hold up the time limit'
is "$(sqlite3 -readonly stuck/q.db 'SELECT outcome, signal, reason, finished_ms - started_ms < 20000 FROM q_attempt')" \
	'failed|15|time limit 300ms|1' '... and then qjob itself ends'
cp stuck/pids pids
none_alive; ok $? '... and nothing is left'
wait "$tty"; got=$?
if [ "$got" = 99 ]; then
	ok 0 'a terminal # SKIP there is none'
else
	is "$got" 143 'a terminal that nobody reads'
	is "$(cat tty/err)" 'qjob: x: time limit 300ms; next: qls 1' '... likewise'
fi

done_testing
