#!/bin/sh
# qrate: a rate and a concurrency that scripts and queues share; blocks; lib/rate.c's users by t/unit-rate.
# shellcheck disable=SC2016	# what stands between single quotes is for another shell or perl
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

u=$t/unit-rate
[ -x "$u" ] || make -s -C "$t/.." t/unit-rate >made 2>&1 || { sed 's/^/# /' made; exit 1; }

fresh() { rm -f q.db* pids go end got; qinit; }
at() { _ms=$1; shift; env "Q_BOOT=b1:$((1000000 + _ms))" "$@"; }	# so long after the start
now() { _s=$1; shift; env "Q_NOW=@$((1780401600 + _s))" "$@"; }
holds() { sql 'SELECT count(*) FROM q_hold'; }
hold() { [ "$(holds)" = "$1" ]; }
gone() { ! kill -0 "$1"; }
# waiting NAME CMD...: in the background, with real clocks.
waiting() {
	env -u Q_NOW -u Q_BOOT "$@" >wout 2>werr & pid=$!
	sleep 0.3		# what is tested comes out the same if it does not wait yet
}
# ended CODE NAME: of what waits
ended() {
	exits "$1" "$2" wait "$pid"
}

# A place whose lease is lost is seen at the next renewal, ten real seconds from now: begin, look at the end.
qinit late.db
qset -d late.db rate.c.concurrency=1
env -u Q_NOW -u Q_BOOT qrate -d late.db c -- sh -c 'until [ -e late.end ]; do sleep 0.05; done; echo fine' >late.out 2>late.err & late=$!
late_held() { [ "$(Q_DB=$PWD/late.db sql "SELECT count(*) FROM q_hold WHERE fence = $1")" = 1 ]; }
until_ok late_held 1
sqlite3 -cmd '.timeout 10000' -cmd 'PRAGMA wal_autocheckpoint = 0' late.db 'DELETE FROM q_hold'

# ---- usage ----

exits 66 'no file' qrate p -- touch ran
fresh
qset rate.p=10/s
while IFS=@ read -r want args err; do
	# shellcheck disable=SC2086	# words
	unchanged "$want" "qrate $args" qrate $args
	is "$(cat out err)" "qrate: $err" '... says so'
done <<'END'
64@@no NAME; see 'qrate --help'
64@-n@no NAME; see 'qrate --help'
64@--block 1m@no NAME; see 'qrate --help'
64@p true@the command follows '--' after the name; see 'qrate --help'
64@p q -- true@the command follows '--' after the name; see 'qrate --help'
64@p --@no command after '--'; see 'qrate --help'
64@-n -w 1s p@-n and -w exclude each other; see 'qrate --help'
64@--block 1m -n p@--block does not wait: no -n or -w; see 'qrate --help'
64@--block 1m -w 1s p@--block does not wait: no -n or -w; see 'qrate --help'
64@--block 1m p -- touch ran@too many operands: '--'; see 'qrate --help'
64@--block 60 p@--block: '60' a number needs a unit: write 10s, 10m, 10h or 10d; see 'qrate --help'
64@-w 5 p@-w: '5' a number needs a unit: write 10s, 10m, 10h or 10d; see 'qrate --help'
64@--lock p -- true@unknown option '--lock'; did you mean '--block'?; see 'qrate --help'
65@12 -- touch ran@bad rate name '12'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
65@a/b -- touch ran@bad rate name 'a/b'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
78@x -- touch ran@rate x is not set; next: qset rate.x=10/s
78@-n x@rate x is not set; next: qset rate.x=10/s
78@--block 1m x@rate x is not set; next: qset rate.x=10/s
78@--block 0 x@rate x is not set; next: qset rate.x=10/s
END
exits 78 'a bad Q_NOW' env Q_NOW=noon qrate p -- touch ran
exits 78 'a bad Q_BOOT' env Q_BOOT=noon qrate p -- touch ran
[ ! -e ran ]; ok $? 'nothing of this ran'

# ---- the command ----

fresh
qset rate.p=1000000/s+1000000 rate.c.concurrency=1
while IFS=@ read -r want cmd says; do
	exits "$want" "command: $cmd" qrate c -- sh -c "$cmd"
	is "$(cat out err)" "$says" '... output'
done <<'END'
0@echo fine@fine
3@echo no >&2; exit 3@no
75@exit 75@
127@exit 127@
137@kill -9 $$@
143@kill $$@
END
exits 127 'no such command' qrate c -- ./absent
is "$(cat err)" 'qrate: ./absent: No such file or directory' '... says so'
echo text >plain
exits 126 'no command' qrate p -- ./plain
is "$(cat err)" 'qrate: ./plain: Permission denied' '... says so'
printf 'a\0b\377' >in
exits 0 'standard input' qrate c -- cat <in
is "$(od -An -tx1 out)" ' 61 00 62 ff' '... and output, byte for byte'
is "$(holds)" 0 'places were given back'
exits 74 'output that cannot be written' sh -c 'qrate c -- echo x >/dev/full'
exits 0 'no command' qrate c
is "$(holds)" 0 '... holds no place'

# ---- tokens ----

fresh
qset rate.p=10/s+3
for i in 1 2 3; do
	exits 0 "token $i" qrate -n p
	is "$(cat out err)" '' '... silent'
done
unchanged 75 'the bucket is empty' qrate -n p -- touch ran
is "$(cat out err)" '' '... silent'
unchanged 75 '... also after a wait' qrate -w 20ms p -- touch ran
unchanged 75 '... of 0' qrate -w 0 p
exits 75 '... at 99 ms' at 99 qrate -n p
exits 0 '... at 100 ms there is one' at 100 qrate -n p -- touch ran
[ -e ran ]; ok $? '... and the command ran'
exits 75 '... one' at 199 qrate -n p
exits 0 'after a reboot' env Q_BOOT=b2:5 qrate -n p
exits 0 '... the bucket is full' env Q_BOOT=b2:5 qrate -n p
qadd -q m x
fresh
qset rate.p=1/m queue.m.limit=p
qadd -q m x
exits 0 'a token that qrate takes' qrate p
is "$(qclaim m)" '' '... is not there for a claim'
at 60000 qclaim m >claimed
is "$(wc -l <claimed | tr -d ' ')" 1 '... until the next'
exits 75 'a token that a claim takes is not there for qrate' at 60001 qrate -n p

# ---- blocks ----

fresh
qset rate.p=1000000/s+1000000 rate.c.concurrency=5 queue.m.limit=p queue.n.limit=c
for name in p c; do
	queue=m; [ $name = p ] || queue=n
	qadd -q "$queue" x
	qrate $name
	exits 0 "$name: a block" qrate --block 10m $name
	is "$(cat out err)" '' '... silent'
	is "$(sql "SELECT blocked_ms - 1780401600000 FROM q_rate WHERE name = '$name'")" 600000 '... is on disk'
	unchanged 75 '... is obeyed by qrate' qrate -n $name
	unchanged 75 '... until its end' now 599 qrate -n $name
	is "$(qclaim $queue)" '' '... and by claims'
	unchanged 0 '... a shorter one changes nothing' qrate --block 1m $name
	exits 0 '... a longer one does' qrate --block 20m $name
	exits 75 '... which holds to its end' now 1199 qrate -n $name
	exits 0 '... and no longer' now 1200 qrate -n $name
	is "$(now 1199 qclaim $queue; now 1200 qclaim $queue | jq -r .queue)" "$queue" '... for claims, too'
	exits 0 '... and is ended' qrate --block 0 $name
	exits 0 '... for qrate' qrate -n $name
done
qrate --block 1h p
qset rate.p=5/s
exits 75 'a changed rate ends no block' qrate -n p
exits 75 'a reboot neither' env Q_BOOT=b2:5 qrate -n p

# ---- places ----

fresh
qset rate.c.concurrency=3 queue.m.limit=c
for i in 0 1 2; do	# 10 s apart
	env Q_BOOT=b1:$((1000000 + 10000 * i)) qrate c -- sh -c 'echo $$ >>pids; until [ -e end ]; do sleep 0.05; done' & eval "p$i=$!"
	until_ok hold $((i + 1))
done
until_ok lines pids 3
qadd -q m x
unchanged 75 'three places are taken' at 20000 qrate -n c -- true
is "$(at 20000 qclaim m)" '' '... for claims, too'
first=$(sed -n 1p pids)
# shellcheck disable=SC2154	# set by eval
kill -9 "$p0"
until_ok gone "$first"; ok $? 'a command dies with its qrate'
unchanged 75 '... whose place is taken' at 29999 qrate -n c -- true
is "$(at 29999 qclaim m)" '' '... for claims, too'
exits 0 '... until its lease is over' at 30000 qrate -n c -- true
is "$(at 30000 qclaim -l 1h m | jq -r .queue)" m '... a claim takes it'
exits 75 '... and then it is taken' at 30000 qrate -n c -- true
# shellcheck disable=SC2154
kill "$p1"
exits 143 'TERM ends the command' wait "$p1"
exits 0 '... and its place is free at once' at 30000 qrate -n c -- true
touch end
# shellcheck disable=SC2154
exits 0 'the end of a command' wait "$p2"
is "$(holds)" 0 '... gives its place back'
exits 0 'after a reboot' env Q_BOOT=b2:5 qrate -n c -- true

# ---- what is set while it waits ----

fresh
qset rate.p=1/h rate.q=1000/s rate.c.concurrency=1 queue.m.limit=p queue.n.limit=c
qadd -q m x
qadd -q n x
qrate -n p
env -u Q_BOOT qrate -n p	# of another boot: a full bucket
waiting qrate p -- echo ran
qset rate.p=1000/s
ended 0 'a rate that is raised'
is "$(cat wout werr)" ran '... lets who waits through'
env -u Q_NOW -u Q_BOOT qrate --block 1h q
waiting qrate q -- echo ran
sleep 1.5
[ "$(awk '{ print $14 + $15 }' "/proc/$pid/stat" 2>/dev/null || echo 0)" -lt 20 ]; ok $? 'who waits does not keep a processor busy'
qrate --block 0 q
ended 0 'a block that is ended, too'
env -u Q_NOW -u Q_BOOT qrate --block 1h q
waiting qrate q -- echo ran
qset rate.q=
ended 78 'a rate that is unset ends who waits'
is "$(cat wout werr)" 'qrate: rate q is not set; next: qset rate.q=10/s' '... with a message'
env -u Q_NOW -u Q_BOOT qrate c -- sh -c 'touch go; until [ -e end ]; do sleep 0.05; done' & holder=$!
until_ok test -e go
waiting qrate c -- echo ran
kill $pid
ended 143 'TERM ends who waits'
is "$(cat wout werr)" '' '... and nothing ran'
waiting qclaim --wait 60s n
touch end
ended 0 'qclaim --wait sees the end of a command'
is "$(jq -r .queue wout)" n '... that held its place'
wait $holder
env -u Q_NOW -u Q_BOOT qrate --block 1h p
waiting qwork m -- touch worked
[ ! -e worked ]; ok $? 'qwork waits for the end of a block'
qrate --block 0 p
ended 0 '... and sees it'
[ -e worked ]; ok $? '... and works'
# A lease that ends is no commit.
qset rate.e.concurrency=1 queue.e.limit=e
qadd -q e x
boot=$(env -u Q_BOOT perl -MTime::HiRes=clock_gettime -e 'printf "%d", 1000 * clock_gettime(7)')
sqlite3 -cmd '.timeout 10000' -cmd 'PRAGMA wal_autocheckpoint = 0' q.db "INSERT INTO q_hold VALUES('rate', 'e', 9999, $boot + 1500, 1, 'x')"
exits 0 'qclaim --wait sees the end of a lease' env -u Q_NOW -u Q_BOOT qclaim --wait 60s e
is "$(jq -r .queue out)" e '... on the place that it needs'

# ---- users with a reserve, and users that are first ----

fresh
qset rate.p=10/s+5 rate.c.concurrency=2 rate.both=1/s rate.both.concurrency=1 rate.one=1/s
cat >calls <<'END'
try a x: 78
try a p: 0 wrote
try a p: 0 wrote
try a p 1: 0 wrote
try b p 3: 1 +200
try b p 9: 1 +300
try b p 1: 0 wrote
try b p 1: 1 +100
try a p: 0 wrote
try a p: 1 +100
try a p: 1 +100
try f p 0 first: 1 +100 wrote
try f p 0 first: 1 +100
try b p 1: 1 +2100
env Q_BOOT=b1:1000300
try b p 1: 1 +1800
try f p 0 first: 0 wrote
try b p 1: 0 wrote
block p 5000: 0 wrote
try f p 0 first: 1 +5000 wrote
leave f: 0 wrote
try a p: 1 +5000
block p 1000: 0
try a p: 1 +5000
unblock p: 0 wrote
try a p: 0 wrote
try a one: 0 wrote
try f one 0 first: 1 +1000 wrote
env Q_BOOT=b1:1001300
try b one 7: 1 +2000
env Q_BOOT=b1:1003299
try b one 7: 1 +1
env Q_BOOT=b1:1003300
try b one 7: 0 wrote
env Q_BOOT=b1:2000000
try a c: 0 place wrote
try b c: 0 place wrote
try c c: 1 +30000
leave a: 0 wrote
try c c: 0 place wrote
env Q_BOOT=b1:2012000
renew c: 0 place wrote
try b c: 0 place wrote
env Q_BOOT=b1:2041999
try a c: 1 +1
renew b: 0 place wrote
env Q_BOOT=b1:2042000
try a c: 0 place wrote
renew c: 0 late place wrote
leave c: 0 wrote
block c 1000: 0 wrote
try b c: 1 +1000 place
leave b: 0 wrote
try d both: 0 place wrote
try e both: 1 +30000
leave d: 0 wrote
try e both: 1 +1000
env Q_BOOT=b2:5
try e both: 0 place wrote
block p 999999999999999: 0 wrote
try g p: 1 +315360000000
END
is "$(sed 's/: .*//' calls | "$u")" "$(grep -v ^env calls)" 'users of a rate, and what they write'

# ---- rates in real time ----

unset Q_NOW Q_BOOT
# share RATE PROCESSES TURNS: each turn lies between two looks at the clock, so nothing depends on how fast the machine is.
cat >share <<'END'
use Time::HiRes 'clock_gettime';
my ($rate, $processes, $turns) = @ARGV;
my (@pids, @turns);
for my $p (1 .. $processes) {
	my $pid = fork // die;
	if ($pid == 0) {
		open my $f, '>', "log.$p" or die;
		for (1 .. $turns) {
			my $from = clock_gettime(7);
			system('qrate', 'p') == 0 or die;
			printf $f "%.3f %.3f\n", $from, clock_gettime(7);
		}
		exit;
	}
	push @pids, $pid;
}
waitpid $_, 0 for @pids;
@ARGV = map { "log.$_" } 1 .. $processes;
@turns = sort { $a->[1] <=> $b->[1] } map { [ split ] } <>;
my $worst = 0;
for my $from (map { $_->[0] } @turns) {
	my $n = 0;
	for (grep { $_->[0] >= $from } @turns) {
		my $over = ++$n - 1 - $rate * ($_->[1] - $from + 0.003);
		$worst = $over if $over > $worst;
	}
}
printf "%d turns, %s\n", scalar @turns, $worst > 0 ? "too many at times" : "never too many";
END
fresh
qset rate.p=20/s
is "$(perl share 20 8 5)" '40 turns, never too many' 'eight processes share 20/s'
qset rate.p=200/s
is "$(perl share 20 8 2)" '16 turns, too many at times' '... and the control: a rate that is too high is seen'

# A swarm under a cap of 3, some of it killed: the commands say when they run.  swarm SEED SECONDS
cat >swarm <<'END'
use Time::HiRes 'clock_gettime', 'sleep';
srand $ARGV[0];
my @pids;
for my $p (1 .. 8) {
	my $pid = fork // die;
	exec 'sh', '-c', 'while [ ! -e stop ]; do qrate -w 200ms c -- perl -MTime::HiRes=clock_gettime,sleep -e \'$| = 1; $r = rand; $s = shift;
	    printf "b $r %.4f\n", clock_gettime(7); sleep $s; printf "e $r %.4f\n", clock_gettime(7)\' ' . $ARGV[1] . '; done >run.' . $p . ' 2>&1' if $pid == 0;
	push @pids, $pid;
}
my $killed = 0;
my %ours = map { $_ => 1 } @pids;
for (1 .. 100) {
	sleep 0.2;
	my @victims = map { /^ *(\d+) +(\d+) qrate/ && $ours{$2} ? $1 : () } `ps -A -o pid= -o ppid= -o comm=` or next;
	$killed += kill 9, $victims[rand @victims];
	last if $killed == 2;
}
sleep 0.2;
open my $f, '>', 'stop';
waitpid $_, 0 for @pids;
my %run;
for (map { glob "run.$_" } 1 .. 8) {
	open my $l, '<', $_ or die;
	/^([be]) (\S+) (\S+)$/ and $run{$2}{$1} = $3 while <$l>;
}
my @at = sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] } map { exists $_->{e} ? ([ $_->{b}, 1 ], [ $_->{e}, -1 ]) : () } values %run;
my ($n, $most) = (0, 0);
for (@at) { $n += $_->[1]; $most = $n if $n > $most }
print $most <= 3 ? "never more than 3\n" : "$most at a time\n";
printf STDERR "# %d runs, %d killed, %d at most\n", scalar keys %run, $killed, $most;
END
fresh
qset rate.c.concurrency=3
is "$(perl swarm "${SEED:-$$}" 0.05)" 'never more than 3' 'eight processes under a cap of three, two of them killed'
qset rate.c.concurrency=8
rm -f stop run.*
[ "$(perl swarm "${SEED:-$$}" 1)" != 'never more than 3' ]; ok $? '... and the control: more are seen'

# ---- the lost place ----

until_ok test -s late.err
is "$(cat late.err)" 'qrate: c: its place was lost, because the machine slept or the file could not be written; the command runs on, perhaps as one too many' 'a place that was lost'
until_ok late_held 2; ok $? '... is taken again'
touch late.end
exits 0 '... and the command runs to its end' wait $late
is "$(cat late.out; Q_DB=late.db sql 'SELECT count(*) FROM q_hold')" 'fine
0' '... and leaves no place taken'
done_testing
