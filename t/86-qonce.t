#!/bin/sh
# qonce: once a key, whatever is killed when; and where nobody can know, that is said.
# shellcheck disable=SC2016	# what stands between single quotes is for another shell
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

fresh() { rm -f q.db* pids go end ran; qinit; }
row() { sql "SELECT state, runs, coalesce(exit, '-'), coalesce(reason, '-') FROM q_once WHERE key = '${1-k}'"; }
state() { qonce --show "${1-k}" | cut -f2; }
ran() { cat ran 2>/dev/null | wc -l | tr -d ' '; }	# how often the effect was had
NEXT='next: find out, then tell: qonce --done KEY or qonce --forget KEY'
HOLD='echo $$ >pids; touch go; until [ -e end ]; do sleep 0.01; done; echo x >>ran; echo made'

# ---- usage ----

exits 66 'no file' qonce k -- touch no
qinit
before=$(sql .dump)
while IFS=@ read -r want args err; do
	# shellcheck disable=SC2086	# words
	exits "$want" "qonce $args" qonce $args
	said "qonce: $err" 'says so'
done <<END
64@@no KEY; see 'qonce --help'
64@k@the command follows '--' after the key; see 'qonce --help'
64@k touch no@the command follows '--' after the key; see 'qonce --help'
64@k --@no command after '--'; see 'qonce --help'
64@--job@option '--job' needs a value; see 'qonce --help'
64@--job -- touch no@the command follows '--' after the prefix; see 'qonce --help'
64@--job p@the command follows '--' after the prefix; see 'qonce --help'
64@--job p --@no command after '--'; see 'qonce --help'
64@--job p k -- touch no@with --job there is no KEY: '--' and the command follow; see 'qonce --help'
64@--job p -- touch no@--job: neither Q_KEY nor Q_ID is set: it is for commands of qwork or qjob; see 'qonce --help'
64@-l 999ms k -- touch no@-l: a lease is at least 1s; see 'qonce --help'
64@-w 3 k -- touch no@-w: '3' a number needs a unit: write 10s, 10m, 10h or 10d; see 'qonce --help'
64@-n -w 1s k -- touch no@-n and -w exclude each other; see 'qonce --help'
64@-u twice k -- touch no@-u: 'twice' is not fail, rerun or probe:CMD; see 'qonce --help'
64@-u probe: k -- touch no@-u: 'probe:' is not fail, rerun or probe:CMD; see 'qonce --help'
64@-j k -- touch no@-j goes with --show and --list; see 'qonce --help'
64@--list k@too many operands: 'k'; see 'qonce --help'
64@--show k k@too many operands: 'k'; see 'qonce --help'
64@--done k -- touch no@too many operands: '--'; see 'qonce --help'
64@--done --forget k@--show, --list, --done and --forget exclude each other; see 'qonce --help'
64@--show@no KEY; see 'qonce --help'
64@--done@no KEY; see 'qonce --help'
64@--forget -u fail k@-n, -w, -l, -u and --job go with a command; see 'qonce --help'
64@--job p --forget k@-n, -w, -l, -u and --job go with a command; see 'qonce --help'
64@--done -j k@-j goes with --show and --list; see 'qonce --help'
64@--don k@unknown option '--don'; did you mean '--done'?; see 'qonce --help'
66@--show k@k: no such key in $PWD/q.db; nothing was ever started under it
END
exits 65 'an empty key' qonce '' -- touch no
is "$(cat err)" 'qonce: the key is empty' '... says so'
long=$(printf '%0255d' 0)
exits 65 'a key of 256 bytes' qonce "0$long" -- touch no
exits 65 'a tab in a key' qonce "$(printf 'a\tb')" -- touch no
exits 65 'a key that is not UTF-8' qonce "$(printf '\377')" -- touch no
exits 65 'an empty key to look at' qonce --show ''
exits 65 '... or to forget' qonce --forget ''
exits 65 'an empty prefix' env Q_ID=1 qonce --job '' -- touch no
exits 65 'a prefix and a key that are too long together' env Q_KEY="$long" qonce --job p -- touch no
exits 78 'a bad Q_NOW' env Q_NOW=noon qonce k -- touch no
exits 78 'a bad Q_BOOT' env Q_BOOT=noon qonce k -- touch no
exits 73 'no place for its output' env TMPDIR=/no/such qonce k -- touch no
is "$(cat err)" 'qonce: cannot make a temporary file for the output: No such file or directory; is TMPDIR right?' '... says so'
exits 0 'nothing to list' qonce --list
said '' 'no lines'
[ ! -e no ]; ok $? 'nothing of this ran'
is "$(sql .dump)" "$before" '... or changed anything'
exits 66 'nothing to forget' qonce --forget k
is "$(cat err)" "qonce: k: no such key in $PWD/q.db" '... says so'

# ---- the command ----

exits 0 'a command' qonce k -- sh -c 'echo "$Q_ONCE_KEY $Q_DB"; echo progress >&2; cat; echo x >>ran' <<'END'
its input
END
is "$(cat out err)" "k $PWD/q.db
its input
progress" '... has input, output, the key in its environment'
exits 0 'the same again' qonce k -- sh -c 'touch no'
is "$(cat out err)" "k $PWD/q.db
its input" '... prints its output again'
is "$(row)" 'done|1|0|-' '... and runs nothing'
exits 0 'another command of the key' qonce k -- touch no
for n in 1 3 75 125 127 128 193 254; do
	exits "$n" "exit $n" qonce "f$n" -- sh -c "echo some; echo why >&2; exit $n"
	is "$(cat out err)" 'some
why' '... passes, with what was written'
	is "$(row "f$n")" "failed|1|$n|why" '... and it has failed'
done
exits 0 'what has failed' qonce f3 -- sh -c 'echo now'
is "$(cat out; row f3)" 'now
done|2|0|-' '... runs again'
echo text >plain
while IFS=@ read -r cmd want why; do
	exits "$want" "command $cmd" qonce "$cmd" -- "$cmd"
	said "qonce: $cmd: $why" 'says so'
	is "$(row "$cmd")" "failed|1|$want|$why" '... and has failed'
done <<'END'
./absent@127@No such file or directory
./plain@126@Permission denied
END
exits 0 'a key like an option' qonce -- -n -- sh -c 'printf "%s\n" "$Q_ONCE_KEY"'
is "$(cat out)" -n '... is a key'
odd=$(printf 'a b\\"\303\251%%s\342\200\256')
exits 0 'an odd key' qonce "$odd" -- sh -c 'printf "%s\n" "$Q_ONCE_KEY"'
is "$(cat out)" "$odd" '... reaches the command'
exits 0 'a key of 255 bytes' qonce "$long" -- echo first
is "$(qonce "$long" -- echo second)" first '... is remembered'

# ---- output ----

for size in 0 1 65535 65536 65537 1048576; do
	perl -e 'print pack("n*", map { $_ * 7919 % 65536 } 1 .. ($ARGV[0] + 1) / 2)' "$size" | head -c "$size" >bytes
	exits 0 "output of $size bytes" qonce "o$size" -- cat bytes
	cmp -s out bytes; ok $? '... is whole'
	exits 0 '... again' qonce "o$size" -- touch no
	head -c 65536 bytes | cmp -s out -; ok $? '... the first 64 KiB'
	[ "$size" -le 65536 ] && told= || told="qonce: o$size: of $size bytes of output the first 65536 were kept"
	is "$(cat err)" "$told" '... and what is missing is said'
done
exits 0 'nothing at all, to a closed output' sh -c 'qonce silent -- true >&-'
for where in '>&-' '>/dev/full'; do
	[ "$where" = '>&-' ] || [ -w /dev/full ] || continue
	[ "$where" = '>&-' ] && why='Bad file descriptor' || why='No space left on device'
	exits 74 "output to $where" sh -c "qonce 'w$where' -- echo id-7 $where"
	is "$(cat err)" "qonce: w$where: standard output: $why; it is done and on record, and the same command prints this again" '... is told'
	exits 74 '... each time' sh -c "qonce 'w$where' -- touch no $where"
	is "$(qonce "w$where" -- touch no)" id-7 '... and not lost'
done
exits 0 'output is held back until the record is on disk' sh -c 'qonce held -- echo now | { read -r line; [ "$line" = now ] && qonce --show held | cut -f2; }'
is "$(cat out)" 'done' '... so a reader finds it there'
exits 0 'a spool that is full' sh -c 'ulimit -f 2048; qonce spool -- sh -c "head -c 3000000 /dev/zero; echo x >>ran"; [ $? = 74 ]'
is "$(cat err)" 'qonce: spool: the temporary file of its output: File too large; it is done and on record, and its output is not complete' '... is told'
is "$(row spool) $(ran)" 'done|1|0|- 2' '... but does not stop the command'
[ ! -e no ]; ok $? 'nothing that was done ran again'

# ---- it may have happened ----

fresh
for n in 69 76 124 129 137 192 255; do
	exits "$n" "exit $n" qonce "u$n" -- sh -c "echo part; echo x >>ran; exit $n"
	is "$(cat out err)" "part
qonce: u$n: it may have happened: exit status $n; $NEXT" '... is told'
	exits 69 '... and again' qonce "u$n" -- touch no
	said "qonce: u$n: it may have happened: the run of 2026-06-02T12:00:00Z was cut short: exit status $n; $NEXT" 'what to do'
done
exits 137 'a command that is killed' qonce k -- sh -c 'echo part; echo x >>ran; kill -9 $$'
is "$(cat out err)" "part
qonce: k: it may have happened: signal 9; $NEXT" '... is told'
is "$(state)" unknown '... unknown'
exits 69 'the default' qonce k -- touch no
exits 69 'fail' qonce -u fail k -- touch no
unchanged 69 'a probe that cannot tell' qonce -u 'probe:echo down >&2; exit 2' k -- touch no
said 'qonce: k: the probe cannot tell whether it happened: down' 'says why'
exits 69 'a probe that is no command' qonce -u 'probe:/no/such 2>/dev/null' k -- touch no
exits 69 'a probe that is killed' qonce -u 'probe:kill -9 $$' k -- touch no
exits 0 'a probe that finds it' qonce -u 'probe:echo no output; [ "$Q_ONCE_KEY" = k ]' k -- touch no
is "$(cat out err)$(row)" 'done|1|137|-' '... makes it done, without output'
exits 0 '... for good' qonce k -- touch no
exits 0 'a probe that does not find it' qonce -u 'probe:cat; false' u69 -- sh -c 'cat; echo yes' <<'END'
for the command
END
is "$(cat out err)" 'for the command
yes' '... makes it run, with its input'
exits 0 'rerun' qonce -u rerun u76 -- echo again
is "$(cat out err; row u76)" 'again
done|2|0|-' '... runs it'
exits 137 'and when that is cut short' qonce -u rerun u129 -- sh -c 'kill -9 $$'
is "$(cat err)" 'qonce: u129: it may have happened: signal 9' '... there is nothing to do'
qonce -u 'probe:touch go; sleep 60' u137 -- touch no >jout 2>jerr & pid=$!
until_ok test -e go
kill -TERM "$pid"
exits 143 'a probe that takes its time' wait "$pid"
is "$(state u137)$(cat jout jerr)" unknown '... can be ended, and changes nothing'
[ ! -e no ]; ok $? 'nothing ran that should not'

# ---- a person decides ----

for n in 124 255; do qonce --forget "u$n"; done
exits 0 'it happened' qonce --done u137
said '' 'in silence'
exits 0 '... is done' qonce u137 -- touch no
exits 0 '... and may be said twice' qonce --done u137
exits 0 'it did not happen' qonce --forget u192
is "$(qonce u192 -- echo runs)" runs '... runs'
unchanged 66 'a mistyped key' qonce --done by-hand
is "$(cat err)" "qonce: by-hand: no such key in $PWD/q.db; next: qonce --list; or qonce KEY -- true, if nothing was ever started" '... is told'
exits 0 'what is done' qonce --forget u192
is "$(qonce u192 -- echo anew)" anew '... can be forgotten'
begin qonce r -- sh -c "$HOLD"
unchanged 75 'what runs can be neither done' qonce --done r
is "$(cat err)" 'qonce: r: it runs just now; try again when that has ended' '... says so'
unchanged 75 '... nor forgotten' qonce --forget r
is "$(Q_NOW=2026-06-02T12:00:10Z qonce --list | cut -f1-6)" "$(printf 'r\trunning\t1\t2026-06-02T12:00:00Z\t\t\nu129\tunknown\t2\t2026-06-02T12:00:00Z\t2026-06-02T12:00:00Z\t137')" 'the list has what runs or is unknown'
is "$(qonce --list -j | jq -c '[.key, .state, .until_at, .finished_ms, .exit, .output]')" '["r","running","2026-06-02T12:01:00Z",null,null,null]
["u129","unknown",null,1780401600000,137,""]' '... as JSON'
like "$(script -qec 'COLUMNS=80 qonce --list' /dev/null </dev/null 2>/dev/null || echo 'KEY STATE RUNS STARTED ENDED EXIT WHO')" '^KEY +STATE +RUNS +STARTED +ENDED +EXIT +WHO' 'on a terminal there is a head'
exits 0 'the run' finish
is "$(qonce --show -j r | jq -c '[.state, .runs, .exit, .output, .output_bytes, .reason]')" '["done",1,0,"made\n",5,null]' 'how a key stands'
qonce bytes -- printf '\377\000' >/dev/null
is "$(qonce --show -j bytes | jq -r .output_base64)" /wA= '... with output that is no text'

# ---- several at once ----

fresh
begin qonce k -- sh -c "$HOLD"
for how in -n '-w 0' '-w 50ms'; do
	# shellcheck disable=SC2086	# words
	exits 75 "$how while it runs" qonce $how k -- touch no
	said '' 'is silent'
done
exits 75 'a year later by the clock' env Q_NOW=2027-06-02T12:00:00Z qonce -n -u rerun k -- touch no
exits 0 'another key' qonce -n other -- true
qonce k -- touch no >second & two=$!
qonce -w 1m -u rerun k -- touch no >third & three=$!
sleep 0.1
exits 0 'the run' finish
exits 0 'one that waited' wait "$two"
exits 0 '... and another' wait "$three"
is "$(cat jout second third)" 'made
made
made' '... have its output'
fresh
begin qonce k -- sh -c 'touch go; until [ -e end ]; do sleep 0.01; done; exit 9'
qonce k -- echo tried >second & two=$!
sleep 0.1
exits 9 'one that fails' finish
exits 0 'who waited for it' wait "$two"
is "$(cat second)" tried '... runs it'
fresh
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	qonce k -- sh -c 'echo x >>ran; sleep 0.05; echo "$$"' >"all$i" 2>&1 || echo "exit $?" >"all$i" &
done
wait
is "$(ran) $(sort -u all* | wc -l | tr -d ' ') $(cat all* | grep -c '^[0-9]*$')" '1 1 20' '20 at once: it runs once, and all have its output'
fresh
rm -f all*
qonce k -- sh -c 'exit 76' 2>/dev/null
for i in 1 2 3 4 5 6 7 8; do
	qonce -u 'probe:sleep 0.02; exit 1' k -- sh -c 'echo x >>ran; sleep 0.05; echo "$$"' >"all$i" 2>&1 || echo "exit $?" >"all$i" &
done
wait
is "$(ran) $(sort -u all* | wc -l | tr -d ' ')" '1 1' '8 that probe at once: it runs once'

# ---- one under another ----

fresh
exits 75 'under itself' timeout 10 qonce k -- qonce k -- touch no
is "$(cat err)" 'qonce: k: started by a qonce that this runs under, and would wait for itself' '... it does not wait'
exits 75 'under itself and others' timeout 10 qonce a -- qlock l -- qonce b -- qonce a -- touch no
exits 0 'under a lock' qlock l -- qonce k -- sh -c 'echo "$Q_LOCK $Q_ONCE_KEY"; exec qlock --check l "$Q_FENCE"'
is "$(cat out)" 'l k' '... it runs'
qset rate.r=1000/s
exits 0 'around a rate' qonce m -- qrate r -- sh -c 'echo "$Q_ONCE_KEY"'
is "$(cat out)" m '... it runs'
exits 75 'a lock around itself, with qonce between' timeout 10 qlock l -- qonce o -- qlock l -- touch no
[ ! -e no ]; ok $? 'nothing ran that should not'

# ---- inside a job ----

fresh
qadd -q -k order-9 charges nine
qadd -q charges two
qwork charges -- qonce --job charge -- sh -c 'printf "%s %s\n" "$Q_ONCE_KEY" "$(cat)" >>ran'
is "$(sort ran)" 'charge#2 two
charge:order-9 nine' 'the key of the job, else its id'
qreplay -q 1 2
exits 0 'a replay of the jobs' qwork charges -- qonce --job charge -- sh -c 'echo x >>ran'
is "$(ran) $(sql "SELECT count(*) FROM q_attempt WHERE generation = 2 AND outcome = 'done'")" '2 2' '... finds them done'
qadd -q -k 2 charges key-two
exits 0 'a key that is the id of another' qwork charges -- qonce --job charge -- sh -c 'echo x >>ran'
is "$(ran)" 3 '... is another key'

# A worker dies between the model call and the write, and again between the notification and its end.
cat >call <<'END'
#!/bin/sh
echo x >>calls
echo "a summary of $1"
END
cat >handler <<'END'
#!/bin/sh
set -eu
text=$(qonce --job call -- ./call "$Q_KEY")
[ -e killed-1 ] || { touch killed-1; kill -9 "$(cat worker)"; sleep 10; }
echo "$text" >written
qonce --job mail -- sh -c 'echo "$Q_ONCE_KEY" >>mails'
[ -e killed-2 ] || { touch killed-2; kill -9 "$(cat worker)"; sleep 10; }
END
chmod +x call handler
work() { sh -c 'echo $$ >worker; exec qwork "$@"' sh sums -- ./handler; }
fresh
qadd -q -k doc-7 sums x
exits 137 'the worker is killed after the model call' work
is "$(cat calls; ls written 2>/dev/null)" x '... before the write'
export Q_BOOT=b1:2000000
exits 137 '... and after the notification' work
is "$(cat written mails)" 'a summary of doc-7
mail:doc-7' '... before its end'
export Q_BOOT=b1:3000000
exits 0 'after that' work
is "$(cat calls written mails; sql 'SELECT state FROM q_job')" 'x
a summary of doc-7
mail:doc-7
done' '... one call, one text, one mail, and the job is done'
export Q_BOOT=b1:1000000

# ---- kill -9 at every step ----

fresh
qonce warm -- true
busy
qonce k -- touch no >jout 2>&1 & pid=$!
sleep 0.1
kill -9 "$pid"
wait "$pid" 2>/dev/null
exec 9>&-
exits 66 'killed before the start is on disk: nothing' qonce --show k
begin qonce k -- sh -c "$HOLD"
exits 0 '... and it runs' finish
begin qonce d -- sh -c "$HOLD"
kill -9 "$pid"
wait "$pid" 2>/dev/null
until_ok none_alive; ok $? 'killed while it runs: the command dies, too'
is "$(state d)" running '... and it counts as running'
exits 75 '... a moment before the lease is over' env Q_BOOT=b1:1059999 qonce -n -u rerun d -- touch no
exits 69 '... and then nobody knows' env Q_BOOT=b1:1060000 qonce -n d -- touch no
is "$(cat err)" "qonce: d: it may have happened: the run of 2026-06-02T12:00:00Z never told its end; $NEXT" '... says so'
exits 69 '... or after a reboot' env Q_BOOT=b2:5 qonce -n d -- touch no
begin qonce e -- sh -c "$HOLD"
busy
touch end
until_ok gone "$(cat pids)"
sleep 0.1
kill -9 "$pid"
wait "$pid" 2>/dev/null
exec 9>&-
is "$(ran) $(cat jout)" '2 ' 'killed when it had happened and was not on record: no output is out'
exits 69 '... and nobody knows' env Q_BOOT=b1:1060000 qonce -n e -- touch no
exits 0 '... but for the outside world' env Q_BOOT=b1:1060000 qonce -n -u 'probe:[ -s ran ]' e -- touch no
begin qonce l -- sh -c "$HOLD"
qonce l -- touch no >/dev/null 2>&1 & two=$!
sleep 0.1
kill -9 "$two"
wait "$two" 2>/dev/null
exits 0 'one killed while it waits' finish
is "$(state l)" 'done' '... is nothing to the other'
exits 0 'a reboot' env Q_BOOT=b2:5 qonce -n -u 'probe:false' d -- echo ran
is "$(cat out; state d)" 'ran
done' '... and then it runs on the new clock'
[ ! -e no ]; ok $? 'nothing ran that should not'

# ---- signals ----

for sig in TERM HUP INT; do
	case $sig in HUP) n=1;; INT) n=2;; TERM) n=15;; esac
	fresh
	perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' qonce "$sig" -- sh -c 'echo $$ >pids; touch go; exec sleep 60' >jout 2>jerr & pid=$!
	until_ok test -e go
	kill -s "$sig" "$pid"
	exits $((128 + n)) "$sig" wait "$pid"
	is "$(cat jout jerr)" "qonce: $sig: it may have happened: interrupted by signal $n; $NEXT" '... is told'
	is "$(state "$sig")" unknown '... and nobody knows, at once'
	none_alive; ok $? '... and nothing is left'
done
fresh
begin qonce t0 -- perl -e '$SIG{TERM} = sub { print "whole\n"; exit 0 }; open F, ">go"; close F; sleep 1 while 1'
kill -TERM "$pid"
exits 143 'TERM of a command that says it has done it' wait "$pid"
is "$(cat jout jerr; state t0)" 'whole
done' '... is done'
begin qonce t1 -- perl -e '$SIG{TERM} = sub { exit 1 }; open F, ">go"; close F; sleep 1 while 1'
kill -TERM "$pid"
exits 143 '... that says it has failed' wait "$pid"
is "$(state t1)" unknown '... is not trusted'
busy
qonce t2 -- touch no >jout 2>jerr 9>&- & pid=$!
sleep 0.1
kill -TERM "$pid"
exec 9>&-
exits 143 'TERM before the start is on disk' wait "$pid"
is "$(cat jout jerr)" '' '... in silence'
exits 66 '... leaves nothing' qonce --show t2
begin qonce t3 -- sh -c "$HOLD"
export Q_BUSY_TIMEOUT=100ms
busy
touch end
until_ok gone "$(cat pids)"
sleep 0.3
unset Q_BUSY_TIMEOUT
exec 9>&-
exits 0 'an end that cannot be written down at first' wait "$pid"
is "$(cat jout jerr; state t3)" 'made
done' '... is, later'
rm -f go end
Q_BUSY_TIMEOUT=100ms qonce t4 -- sh -c "$HOLD" >jout 2>jerr & pid=$!
until_ok test -e go
busy
touch end
until_ok gone "$(cat pids)"
sleep 0.2
kill -TERM "$pid"
exits 69 'one that is told to stop trying' wait "$pid"
exec 9>&-
is "$(cat jout; sed "s|$PWD/||" jerr)" "made
qonce: t4: the command ended with exit status 0, which cannot be written down: q.db: busy for 100ms; another program holds it; try again later; $NEXT" '... says what it knows'
is "$(cat jout)$(state t4)" running '... but not to a reader'

# ---- a lease that is lost ----

unset Q_BOOT Q_NOW
cat >beat <<'END'
trap '' TERM
echo $$ >pids
while :; do cut -d' ' -f1 /proc/uptime >>beats; [ -e go ] || touch go; sleep 0.01; done
END
last() { tail -n 1 beats | awk '{ printf "%d", $1 * 1000 }'; }
lease() { sql "SELECT max(lease_ms) FROM q_hold WHERE kind = 'once'"; }
fresh
export Q_BUSY_TIMEOUT=100ms
begin qonce -l 1s k -- sh beat
busy
until_ok none_alive; ok $? 'a file that stays busy: the command is gone'
[ "$(last)" -lt "$(lease)" ]; ok $? '... before the lease is over'
exec 9>&-
unset Q_BUSY_TIMEOUT
exits 76 '... and that is told' wait "$pid"
is "$(cat jout; sed "s|$PWD/||" jerr)" "qonce: k: q.db: busy for 100ms; another program holds it; try again later; still trying
qonce: k: it may have happened: its lease could not be renewed; $NEXT
qonce: k: the lease could not be renewed in time, and the command was ended" '... in these lines'
is "$(state)" unknown '... nobody knows'

fresh
rm -f beats
begin qonce -l 1s k -- sh beat
kill -STOP "$pid"
was=$(lease)
exits 0 'when qonce stands still another runs it' qonce -u rerun -w 30s k -- sh -c 'ps -o stat= -p "$(cat pids)" | grep -v ^Z; echo second'
is "$(cat out)" second '... with the first command gone'
[ "$(last)" -lt "$was" ]; ok $? '... before the lease was over'
kill -CONT "$pid"
exits 76 '... and that is told when it goes on' wait "$pid"
is "$(cat jout jerr)" 'qonce: k: the lease was over, and another run or a decision came first; this run (exit status 137) is not on record' '... in one line'
is "$(row)$(qonce k -- touch no)" 'done|2|0|-second' '... and is not on record'

fresh
begin env Q_BOOT=b1:1000000 qonce k -- sh -c "$HOLD"
exits 124 'another run when the lease is over, which is cut short, too' env Q_BOOT=b1:1060000 qonce -u rerun k -- sh -c 'exit 124'
exits 76 '... the first one ends well, and is told' finish
is "$(row)" 'started|2|124|exit status 124' '... and is not on record, though the other one tells nothing'

fresh
begin qonce -l 1s k -- sh -c 'touch go; until [ -e end ]; do sleep 0.01; done; echo made'
kill -STOP "$pid"
touch end
until_ok sh -c '[ "$(qonce --show k | cut -f2)" = unknown ]'; ok $? 'one that stood still after the effect is unknown'
kill -CONT "$pid"
exits 0 '... and when nobody came' wait "$pid"
is "$(cat jout jerr; state)" 'made
done' '... still tells'
begin qonce -l 1s l -- sh -c "$HOLD"
was=$(lease)
until_ok sh -c '[ "$(sqlite3 -readonly -cmd ".timeout 10000" q.db "SELECT lease_ms FROM q_hold")" -gt "$0" ]' "$((was + 1000))"; ok $? 'else it is renewed'
exits 0 '... until the command ends' finish
is "$(sql "SELECT count(*) FROM q_hold WHERE kind = 'once'")" 0 'no hold is left'
[ ! -e no ]; ok $? 'nothing ran that should not'

# ---- keys that no program of q writes ----

fresh
qonce a -- true
sqlite3 q.db "INSERT INTO q_once(key, state, fence, runs) VALUES('b', 'started', 7, 1), ('b' || char(0) || 'c', 'started', 8, 1)"
exits 74 'a key with a NUL byte' timeout -k 1 20 qonce --list
is "$(cut -f1 out) $(cat err)" "b qonce: $PWD/q.db: something has a name that no program of q writes" '... is told, and not looked for for ever'

done_testing
