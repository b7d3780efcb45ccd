#!/bin/sh
# qlock: one at a time under a name, a fence that grows, and nothing left when the lease moves.
# shellcheck disable=SC2016	# what stands between single quotes is for another shell or perl
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

fresh() { rm -f q.db* pids go end beats; qinit; }
holds() { sql "SELECT group_concat(name || ' ' || fence, ', ') FROM (SELECT name, fence FROM q_hold WHERE kind = 'lock' ORDER BY name, fence)"; }
HOLD='echo $$ >pids; touch go; until [ -e end ]; do sleep 0.01; done'

# ---- usage ----

exits 66 'no file' qlock x -- true
qinit
while IFS=@ read -r want args err; do
	# shellcheck disable=SC2086	# words
	exits "$want" "qlock $args" qlock $args
	said "qlock: $err" 'says so'
done <<'END'
64@@no NAME; see 'qlock --help'
64@x@the command follows '--' after the name; see 'qlock --help'
64@x true@the command follows '--' after the name; see 'qlock --help'
64@x --@no command after '--'; see 'qlock --help'
64@-l 999ms x -- true@-l: a lease is at least 1s; see 'qlock --help'
64@-w 3 x -- true@-w: '3' a number needs a unit: write 10s, 10m, 10h or 10d; see 'qlock --help'
64@-E 256 x -- true@-E: '256' is not a whole number from 0 to 255; see 'qlock --help'
64@-n -w 1s x -- true@-n and -w exclude each other; see 'qlock --help'
64@-j x -- true@-j goes with --list; see 'qlock --help'
64@--list x@--list takes no operand; see 'qlock --help'
64@--list --break x@--check, --list and --break exclude each other; see 'qlock --help'
64@--break@--break takes one NAME; see 'qlock --help'
64@--break x y@--break takes one NAME; see 'qlock --help'
64@--break -j x@-j goes with --list; see 'qlock --help'
64@--check x@--check takes a NAME and a FENCE; see 'qlock --help'
64@--check x 1x@--check: '1x' is not a fence, the number in Q_FENCE; see 'qlock --help'
64@--check x 0@--check: '0' is not a fence, the number in Q_FENCE; see 'qlock --help'
64@--check -n x 1@-n, -w, -l and -E go with a command; see 'qlock --help'
64@--brea x@unknown option '--brea'; did you mean '--break'?; see 'qlock --help'
END
exits 65 'an empty name' qlock '' -- touch ran
is "$(cat err)" 'qlock: the name is empty' '... says so'
exits 65 'a name of 256 bytes' qlock "$(printf '%0256d' 0)" -- touch ran
exits 65 'a tab in a name' qlock "$(printf 'a\tb')" -- touch ran
exits 65 'a name that is not UTF-8' qlock "$(printf '\377')" -- touch ran
exits 65 'an empty name to ask for' qlock --check '' 1
exits 65 '... or to break' qlock --break ''
exits 78 'a bad Q_NOW' env Q_NOW=noon qlock x -- touch ran
exits 78 'a bad Q_BOOT' env Q_BOOT=noon qlock x -- touch ran
exits 64 'a Q_CLAIM that is none is nothing' env Q_CLAIM=42 qlock x --
[ ! -e ran ]; ok $? 'nothing of this ran'

# ---- the command ----

exits 0 'a command' qlock x -- sh -c 'echo "$Q_LOCK $Q_FENCE $Q_DB"; cat' <<'END'
its input
END
is "$(cat out err)" "x 1 $PWD/q.db
its input" '... has output, input, and the lock in its environment'
is "$(holds)" '' '... and then it is free'
for n in 1 65 75 76 126 127 255; do
	exits "$n" "exit $n" qlock x -- sh -c "exit $n"
	said '' 'without a word'
done
exits 143 'a signal' qlock x -- sh -c 'kill -TERM $$'
echo text >plain
while IFS=@ read -r cmd want why; do
	exits "$want" "command $cmd" qlock x -- "$cmd"
	said "qlock: $cmd: $why" 'says so'
done <<'END'
./absent@127@No such file or directory
no-such-command@127@No such file or directory
./plain@126@Permission denied
END
exits 0 'a name like an option' qlock -- -n -- sh -c 'printf "%s\n" "$Q_LOCK"'
is "$(cat out)" -n '... is a name'
if [ -w /dev/full ]; then
	exits 74 'output that cannot be written' sh -c 'qlock x -- echo lost >/dev/full'
	is "$(cat err)" 'qlock: x: standard output: No space left on device; it is not complete' '... is told'
fi
is "$(holds)" '' 'all of these have freed it'

# ---- not free ----

fresh
begin qlock x -- sh -c "$HOLD"
for how in -n '-w 0' '-w 50ms'; do
	# shellcheck disable=SC2086	# words
	exits 75 "$how of what is locked" qlock $how x -- touch ran
	said '' 'is silent'
done
exits 0 'its code' qlock -n -E 0 x -- touch ran
exits 3 'its code' qlock -w 1ms -E 3 x -- touch ran
[ ! -e ran ]; ok $? 'nothing of this ran'
exits 0 'another name' qlock -n y -- true
exits 0 'the fence' qlock --check x 1
exits 1 'another fence' qlock --check x 2
exits 1 'the fence of another name' qlock --check y 1
said '' 'in silence'
exits 75 'a year later by the clock' env Q_NOW=2027-06-02T12:00:00Z qlock -n x -- true
exits 75 'a year before' env Q_NOW=2025-06-02T12:00:00Z qlock -n x -- true
qlock x -- sh -c 'echo second' >second 2>&1 & two=$!
qlock -w 1m x -- sh -c 'echo second' >third 2>&1 & three=$!
sleep 0.2				# they wait by now, or are still to look
wal=$(stat -c '%s %y' q.db-wal)
sleep 0.2
is "$(stat -c '%s %y' q.db-wal)$(cat second third)" "$wal" 'those that wait write nothing'
exits 0 'the first' finish
exits 0 'those that waited' wait "$two"
exits 0 '... both' wait "$three"
is "$(cat second third)" 'second
second' '... run then'

fresh
exits 75 'under itself' qlock x -- qlock x -- touch ran
is "$(cat err)" 'qlock: x: locked by a qlock or qjob that this runs under, and would wait for itself' '... it does not wait'
exits 0 'under another' qlock x -- qlock y -- sh -c 'echo "$Q_LOCK $Q_FENCE"'
is "$(cat out)" 'y 3' '... it runs'

# ---- one at a time ----

cat >add <<'END'
for (1 .. 5) {
	open my $f, '<', 'n' or die; my $n = <$f>; close $f;
	select undef, undef, undef, 0.001;
	open $f, '>', 'n' or die; print $f $n + 1, "\n"; close $f;
}
END
storm() {	# COMMAND...: 8 times 5 at once
	echo 0 >n
	for _ in 1 2 3 4 5 6 7 8; do
		(for _ in 1 2 3 4 5; do "$@" || echo "exit $?"; done) &
	done
	wait
}
is "$(storm qlock sum -- perl add 2>&1)$(cat n)" 200 '200 additions by 8 at once, locked, are 200'
is "$(sql "SELECT value FROM q_meta WHERE name = 'fence'")" 43 '... with a fence each'
storm perl add 2>/dev/null >&2
[ "$(cat n)" -lt 200 ]; ok $? 'the control: without qlock some are lost'

# ---- under itself, with others between ----

fresh
exits 75 'under itself and another' timeout 10 qlock x -- qlock y -- qlock x -- touch ran
is "$(cat err)" 'qlock: x: locked by a qlock or qjob that this runs under, and would wait for itself' '... it does not wait, either'
exits 75 'under a qjob and another' timeout 10 qjob --lock x job -- qlock y -- qlock x -- touch ran
[ ! -e ran ]; ok $? '... and runs nothing'
qinit other.db
exits 0 'the fences of another file' timeout 10 qlock x -- qlock -d "$PWD/other.db" x -- sh -c 'echo "$Q_LOCKS"'
is "$(cat out)" 1 '... are not those around'

# ---- the fence ----

fresh
fence() { qlock -n x -- sh -c 'echo "$Q_FENCE"'; }
is "$(fence) $(fence)" '1 2' 'a fence grows'
begin qlock x -- sh -c "$HOLD"
kill -9 "$pid"
wait "$pid" 2>/dev/null
until_ok none_alive; ok $? 'kill -9 of qlock ends its command'
is "$(holds)" 'x 3' '... and the name stays locked'
exits 75 '... a moment before the lease is over, too' env Q_BOOT=b1:1059999 qlock -n x -- true
is "$(Q_BOOT=b1:1060000 fence)" 4 '... and then the fence goes on'
exits 1 'the old fence' qlock --check x 3
begin qlock x -- sh -c "$HOLD"
kill -9 "$pid"
wait "$pid" 2>/dev/null
is "$(Q_BOOT=b2:1 qlock --list)" '' 'a reboot ends a lock, for who looks'
exits 1 '... and asks' env Q_BOOT=b2:1 qlock --check x 5
is "$(Q_BOOT=b2:1 fence)" 6 '... and locks: the fence goes on'
fresh
begin qlock -l 5m x -- sh -c "$HOLD"
exits 75 'a longer lease' env Q_BOOT=b1:1299999 qlock -n x -- true
exits 0 '... at its end' env Q_BOOT=b1:1300000 qlock -n x -- true
exits 76 'a lease that was over' finish
is "$(cat jout jerr)" 'qlock: x: the lock was broken, or its lease over, while the command ran' '... is told'

# ---- break and list ----

fresh
exits 1 'nobody to break' qlock --break x
said 'qlock: x: nobody has locked it' 'is told'
exits 0 'no locks' qlock --list
said '' 'no lines'
(unset Q_BOOT; exec qlock -l 1s x -- sh -c "$HOLD; exit 9") >jout 2>jerr & pid=$!
until_ok test -e go
exits 0 'break' env -u Q_BOOT qlock --break x
is "$(cut -f1-3 out)" "$(printf 'x\t1\t2026-06-02T12:00:00Z')" '... prints who had it'
like "$(cut -f5 out)" ":$pid\$" '... with its process'
is "$(holds)" '' '... and it is free'
exits 76 'the holder' wait "$pid"
is "$(cat jout jerr)" 'qlock: x: the lock was broken, or its lease over, while the command ran' '... is told'
none_alive; ok $? '... and its command is killed'
exits 1 '... and the fence is old' env -u Q_BOOT qlock --check x 1

fresh
long=$(printf '%0255d' 0)
odd=$(printf 'a b\\"\303\251\342\200\256')
sqlite3 q.db "INSERT INTO q_meta VALUES('boot', 'b1'), ('fence', '4');
	INSERT INTO q_hold VALUES('lock', '$odd', 1, 1060000, 1780401600000, 'h:1'), ('lock', '$long', 2, 1000001, 1780401600000, 'h:2'),
	    ('lock', 'over', 3, 1000000, 1780401600000, 'h:3'), ('rate', 'r', 4, 2000000, 1780401600000, 'h:4')"
qlock --list >out
is "$(cat out)" "$(printf '%s\t2\t2026-06-02T12:00:00Z\t2026-06-02T12:00:00Z\th:2\n%s\t1\t2026-06-02T12:00:00Z\t2026-06-02T12:01:00Z\th:1' \
	"$long" "$(printf 'a b\\\\"\303\251\\\\xe2\\\\x80\\\\xae' | sed 's/\\\\x/\\x/g')")" 'odd names, in order'
is "$(qlock --list -j | tail -n 1)" "{\"name\":\"a b\\\\\\\"$(printf '\303\251\342\200\256')\",\"fence\":1,\"since_at\":\"2026-06-02T12:00:00Z\",\"since_ms\":1780401600000,\"until_at\":\"2026-06-02T12:01:00Z\",\"until_ms\":1780401660000,\"worker\":\"h:1\"}" '... as JSON'
exits 0 'an odd name that is locked' qlock --check "$odd" 1
exits 75 '... is' qlock -n "$odd" -- true
exits 0 '... and can be broken' qlock --break "$odd"
exits 1 'a lock whose lease is over' qlock --break over
exits 0 '... counts for nothing' qlock -n over -- true
exits 0 'what is held but is no lock' qlock -n r -- true
is "$(sql "SELECT group_concat(kind || ' ' || fence, ', ') FROM q_hold")" 'lock 2, rate 4' '... and stays'
like "$(script -qec 'COLUMNS=80 qlock --list' /dev/null </dev/null 2>/dev/null || echo 'NAME FENCE SINCE UNTIL WHO')" '^NAME +FENCE +SINCE +UNTIL +WHO' 'on a terminal there is a head'

# ---- jobs of an entity ----

id() { sed -n 's/^{"id":\([0-9]*\),.*/\1/p' "$@" | tr '\n' ' '; }
fresh
qadd -q -e ana mail 1
qadd -q -t note -e ana post 2
qadd -q -t note -e bo mail 3
qadd -q mail 4
begin qlock ana -- sh -c "$HOLD"
is "$(qclaim -c 9 -t note post mail | id)" '3 ' 'a job whose entity is locked is not claimed by type'
is "$(qclaim -c 1 mail | id)" '4 ' '... or in any other way, and those behind it are'
is "$(qclaim -c 9 mail post)" '' '... so that nothing is left'
is "$(qls 1 | sed -n 's/^blocked by  *//p' | sed 's/held by [^,]*/held by W/')" 'lock 1 of its entity, held by W, for 1m00s if not renewed' 'qls tells why'
is "$(qls 3 4 2>/dev/null | grep -c blocked)" 0 '... and of no other'
is "$(Q_BOOT=b1:1060000 qls 1 | grep -c '^blocked')" 0 '... or when it is over'
qclaim --wait 1m mail >claimed & claimer=$!
qclaim --wait 1m -t note post >claimed2 & claimer2=$!
sleep 0.1
exits 0 'the lock is freed' finish
exits 0 'who waits for its job' wait "$claimer"
exits 0 '... of a type' wait "$claimer2"
is "$(id claimed claimed2)" '1 2 ' '... has it then'
exits 75 'the entity of jobs that run' qlock -n ana -- touch ran
qdone - <claimed
exits 75 '... of whatever queue' qlock -n ana -- touch ran
qlock ana -- echo after >after & pid=$!
sleep 0.1
is "$(cat after)" '' '... who waits'
qdone - <claimed2
exits 0 '... goes on when they are done' wait "$pid"
is "$(cat after)" after '... then'

# A thousand locked ones hide nothing, and the end of a lease lets them go without a word from anybody.
fresh
sqlite3 q.db "INSERT INTO q_meta VALUES('boot', 'b1');
	WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
	INSERT INTO q_job(queue, entity, event_ms, due_ms, ready_ms, head, added_ms) SELECT 'mail', 'e' || i, i, i, i, 1, 1 FROM n;
	INSERT INTO q_body SELECT id, x'61' FROM q_job;
	INSERT INTO q_hold SELECT 'lock', entity, id, 1000000 + 300 + id, 1, 'h:1' FROM q_job"
qadd -q mail last
is "$(qclaim -c 2 mail | id)" '1001 ' 'a thousand locked ones do not hide the rest'
is "$(qclaim --wait 20ms mail)" '' '... and do not end a wait'
is "$(Q_BOOT=b1:1000310 qclaim -c 99 mail | id)" '1 2 3 4 5 6 7 8 9 10 ' '... and are let go as the leases end'
(unset Q_BOOT Q_NOW; rm -f q.db*; qinit; qadd -q -e ana mail 1; qlock -l 1s ana -- sh -c 'touch go; exec sleep 60' & qlock=$!
until_ok test -e go; kill -9 "$qlock"; qclaim --wait 30s mail >claimed; rm -f go) 2>/dev/null
is "$(id claimed)" '1 ' 'a wait for a job ends with the lease of its lock'

# A claim whose lease is over is no obstacle, and does not come back.
fresh
qadd -q -e ana mail 1
qclaim -l 1m mail >claimed
claim=$(claim_of claimed)
exits 75 'a claim' env Q_BOOT=b1:1059999 qlock -n ana -- true
exits 0 '... whose lease is over' env Q_BOOT=b1:1060000 qlock -n ana -- sh -c 'qrenew "$0"; [ $? = 76 ]' "$claim"
is "$(sql 'SELECT outcome, state FROM q_attempt')" 'lost|failed' '... is lost'
for _ in 1 2; do qclaim -l 1m mail >claimed; Q_BOOT=b1:1060000 qlock ana -- true 2>err; done
is "$(cat err)" 'qlock: ana: job 1: dead: its claim was lost; next: qls 1' '... and if once too often, that is told'

# ---- inside a job ----

fresh
qadd -q -e ana mail 1
qadd -q -e ana mail 2
exits 0 'inside a job its entity' qwork -c 1 mail -- qlock -n ana -- sh -c 'echo "$Q_LOCK $Q_FENCE $Q_ENTITY" >>seen; qclaim mail >>seen; qlock --list | cut -f1,2 >>seen; qdone "$Q_CLAIM"; qclaim mail >>seen'
is "$(cat seen)" "ana 1 ana
$(printf 'ana\t1')" '... can be locked, with a fence, and the next waits for both'
is "$(qclaim mail | id)" '2 ' '... and runs then'
exits 75 'another job' env Q_CLAIM="$(sql 'SELECT id || "." || fence || "." || printf("%08x", nonce + 1) FROM q_job WHERE id = 2')" qlock -n ana -- true
exits 0 'its own' env Q_CLAIM="$(sql 'SELECT id || "." || fence || "." || printf("%08x", nonce) FROM q_job WHERE id = 2')" qlock -n ana -- true
qadd -q -e ana post 3
qclaim post >claimed
exits 75 'its own beside one of another queue' env Q_CLAIM="$(sql 'SELECT id || "." || fence || "." || printf("%08x", nonce) FROM q_job WHERE id = 2')" qlock -n ana -- true

# ---- kill -9 at every step ----

fresh
begin qlock x -- sh -c "$HOLD"
qlock x -- touch ran >/dev/null 2>&1 & two=$!
until_ok test -n "$(children "$two")"
sleep 0.05
kill -9 "$two"
wait "$two" 2>/dev/null
exits 0 'one killed while it waits' finish
is "$(holds)" '' '... leaves nothing'
busy
qlock y -- touch ran >/dev/null 2>&1 & two=$!
sleep 0.1
kill -9 "$two"
wait "$two" 2>/dev/null
exec 9>&-
is "$(holds)" '' 'one killed as it takes the lock leaves nothing'
begin qlock z -- sh -c "$HOLD"
busy
touch end
until_ok gone "$(cat pids)"
sleep 0.1
kill -9 "$pid"
wait "$pid" 2>/dev/null
exec 9>&-
is "$(holds)" 'z 2' 'one killed as it frees it leaves it locked'
exits 0 '... until the lease is over' env Q_BOOT=b1:1060000 qlock -n z -- true
[ ! -e ran ]; ok $? 'nothing that waited ran'

# ---- a lease that cannot be renewed ----

unset Q_BOOT Q_NOW
cat >beat <<'END'
trap '' TERM
echo $$ >pids
while :; do cut -d' ' -f1 /proc/uptime >>beats; [ -e go ] || touch go; sleep 0.01; done
END
last() { tail -n 1 beats | awk '{ printf "%d", $1 * 1000 }'; }
fresh
export Q_BUSY_TIMEOUT=100ms
begin qlock -l 1s x -- sh beat
busy
exits 76 'a file that stays busy' wait "$pid"
is "$(cat jout err | head -c 0)$(sed "s|$PWD/||" jerr)" 'qlock: x: q.db: busy for 100ms; another program holds it; try again later; still trying
qlock: x: the lease could not be renewed in time, and the command was ended' '... is told'
none_alive; ok $? '... and a command that ignores TERM is gone'
[ "$(last)" -lt "$(sql 'SELECT max(lease_ms) FROM q_hold' | sed 's/^$/0/')" ]; ok $? '... before the lease was over'
exec 9>&-
unset Q_BUSY_TIMEOUT

fresh
begin qlock -l 1s x -- sh beat
kill -STOP "$pid"
lease=$(sql 'SELECT max(lease_ms) FROM q_hold')
exits 0 'when qlock stands still another gets it' qlock -w 30s x -- sh -c 'cut -d" " -f1 /proc/uptime; ps -o stat= -p "$(cat pids)" | grep -v ^Z; :'
is "$(wc -l <out | tr -d ' ')" 1 '... with the first command gone'
[ "$(last)" -lt "$lease" ]; ok $? '... before the lease was over'
kill -CONT "$pid"
exits 76 '... and that is told when it goes on' wait "$pid"
is "$(cat jout jerr)" 'qlock: x: the lease could not be renewed in time, and the command was ended' '... in one line'

fresh
begin qlock -l 1s x -- sh -c "$HOLD"
was=$(sql 'SELECT lease_ms FROM q_hold')
until_ok sh -c '[ "$(sqlite3 -readonly -cmd ".timeout 10000" q.db "SELECT lease_ms FROM q_hold")" -gt "$0" ]' "$((was + 1000))"; ok $? 'else it is renewed'
exits 0 '... until the command ends' finish

# ---- signals ----

for sig in TERM HUP INT; do
	case $sig in HUP) n=1;; INT) n=2;; TERM) n=15;; esac
	fresh
	perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' qlock x -- sh -c 'echo $$ >pids; touch go; exec sleep 60' >jout 2>jerr & pid=$!
	until_ok test -e go
	kill -s "$sig" "$pid"
	exits $((128 + n)) "$sig" wait "$pid"
	is "$(cat jout jerr)$(holds)" '' '... without a word, and it is free'
	none_alive; ok $? '... and nothing is left'
done
fresh
begin qlock x -- sh -c "$HOLD"
qlock x -- touch ran >jout2 2>&1 & two=$!
sleep 0.1
kill -TERM "$two"
exits 143 'one that waits' wait "$two"
exits 0 '... leaves the other alone' finish

# ---- names that no program of q writes ----

fresh
qlock a -- true
export Q_BOOT=b:1000
foreign() { sqlite3 -cmd '.timeout 10000' q.db "INSERT OR REPLACE INTO q_meta VALUES('boot', 'b'); $1"; }
hold() { foreign "INSERT INTO q_hold(kind, name, fence, lease_ms, since_ms) VALUES('lock', $1, 9, 5000, 1)"; }
hold "'$(printf %0300d 7)'"
hold "'z'"
exits 0 'a long one' timeout -k 1 20 qlock --list
is "$(cut -f1 out)" "$(printf %0300d 7; echo; echo z)" '... is listed once, and the next one, too'
hold "'b' || char(0) || 'c'"
exits 74 'one with a NUL byte' timeout -k 1 20 qlock --list
is "$(cat err)" "qlock: $PWD/q.db: something has a name that no program of q writes" '... is told'
foreign "INSERT INTO q_job(queue, event_ms, due_ms, state, lease_ms, added_ms, entity, head) VALUES('b' || char(0) || 'c', 1, 1, 'claimed', 5000, 1, 'e', 1)"
exits 74 'a queue with one, in which something runs' timeout -k 1 20 qlock -n y -- true

done_testing
