#!/bin/sh
# Turns: every writer gets its share, and nobody who is slow, stopped or blocked holds up the others.
# Sizes: OPS requests; SEED.
. "${0%/*}/lib.sh"
unset Q_NOW

ops=${OPS:-1200} seed=${SEED:-$$}
echo "# SEED=$seed"
client=$t/storm/client
fresh() { rm -rf q.db* h; qinit; mkdir h; }
until_true() { _i=0; while ! eval "$1" && [ $((_i += 1)) -lt 3000 ]; do sleep 0.01; done; }
# Does somebody hold byte $1 of the turnstile?  (FILE-lock; see /proc/locks)
held() { grep -q "OFDLCK.*:$(stat -c %i q.db-lock 2>/dev/null) $1 $1\$" /proc/locks; }

# A writer that does not take turns holds the file.
mkfifo sql
lock() {
	: >locked
	sqlite3 q.db <sql >locked & writer=$!
	exec 7>sql
	echo 'BEGIN IMMEDIATE; SELECT 1;' >&7
	until_true 'test -s locked'
}
unlock() {
	echo .quit >&7
	exec 7>&-
	wait $writer
}

# ---- shares: counted, not timed ----

# shares NAME PROCS CLIENT-OPTIONS...: no worker has done less than a third of the mean
shares() {
	_name=$1 _procs=$2
	shift 2
	fresh
	exits 0 "$_name" "$t/storm/swarm" --procs "$_procs" --seed "$seed" --history h "$client" -m add "$@"
	for _w in h/w*; do grep -c "^r.*${tab}0${tab}" "$_w"; done | sort -n >counts
	is "$(awk -v n="$_procs" '{ sum += $1; least = (NR == 1 ? $1 : least) } END { print (NR == n && 3 * least * NR >= sum) }' counts)" 1 \
	    '... each gets its share'
	echo "# $(tr '\n' ' ' <counts)"
}
tab=$(printf '\t')
shares "eight loops, $ops adds" 8 -n "$ops"
shares "four loops of programs, $((ops / 4)) adds" 4 -x -n $((ops / 4))

# ---- who is stopped in his turn only delays ----

fresh
lock
qadd -q turn holder & holder=$!
until_true 'held 1 && ! held 0'		# has its turn, waits for the file
kill -STOP $holder
qadd -q turn waiter & waiter=$!
until_true 'held 0'			# first in the queue behind it
kill -STOP $waiter
echo 'ROLLBACK;' >&7
for i in 1 2 3 4 5 6; do
	{ _s=0; Q_BUSY_TIMEOUT=2s qadd -q turn $i 2>err.$i || _s=$?; echo $_s >status.$i; } &
	pids="$pids $!"
done
# shellcheck disable=SC2086
wait $pids
is "$(sort status.* | uniq -c | sed 's/^ *//'; cat err.*)" '6 0' 'with a writer stopped in its turn and one before it, six others get through'
kill -CONT $holder $waiter
wait $holder; a=$?
wait $waiter; b=$?
is "$a $b" '0 0' '... and those two, when they go on'
is "$(sql 'SELECT count(*) FROM q_job')" 8 '... and all is there'
unlock

# ---- slow input and output are nobody else's trouble ----

fresh
mkfifo in
qadd --lines slow <in >ids & slow=$!
exec 7>in
echo one >&7
exits 0 'an add at once, while a producer of qadd --lines is slow' env Q_BUSY_TIMEOUT=0 qadd -q other x
exits 0 '... and a claim' env Q_BUSY_TIMEOUT=0 qclaim other
is "$(sql "SELECT count(*) FROM q_job WHERE queue = 'slow'")" 0 '... which has added nothing yet'
echo two >&7
exec 7>&-
wait $slow
is "$? $(tr '\n' ' ' <ids)" '0 2 3 ' '... and then all of it'

mkfifo out.p
exec 8<>out.p
perl -e 'open my $f, ">", "out.p"; fcntl $f, 4, 2048; 1 while syswrite $f, "x" x 4096; 1 while syswrite $f, "x"'	# full
seq 100 | qadd --lines slow >out.p & slow=$!
qclaim slow >out.p & claimer=$!
until_true 'sql "SELECT sum(fence) FROM q_job" | grep -q 2'
exits 0 'an add at once, while nobody reads what others print' env Q_BUSY_TIMEOUT=0 qadd -q other y
exits 0 '... and a claim' env Q_BUSY_TIMEOUT=0 qclaim other
cat out.p >drained 8<&- & reader=$!
exec 8<&-
wait $slow; a=$?
wait $claimer; b=$?
wait $reader
is "$a $b" '0 0' '... and they end when somebody does'
is "$(tr -d x <drained | grep -c '^[0-9]*$') $(tr -d x <drained | grep -c '"claim"')" '100 1' '... with all their output'

# Output that was free when qadd began, and is not when it has its turn: others have filled it, or stopped it.
cat >terminal <<'END'
# A terminal; orders come on standard input: fill, stop, go, drain.
use Fcntl;
use IO::Poll;
use POSIX ();
my $n = pack "i", 0;
open my $m, "+<", "/dev/ptmx" or exit 1;
ioctl $m, 0x40045431, $n or exit 1;	# TIOCSPTLCK
ioctl $m, 0x80045430, $n or exit 1;	# TIOCGPTN
sysopen my $s, "/dev/pts/" . unpack("i", $n), O_RDWR | O_NOCTTY | O_NONBLOCK or exit 1;
my $out = "";
sub done { open my $f, ">", "ack.new"; print $f @_; close $f; rename "ack.new", "ack" }
sub ready { my ($fd, $what, $ms) = @_; my $p = IO::Poll->new; $p->mask($fd => $what); $p->poll($ms / 1000); $p->events($fd) & $what }
sub get { sysread $m, $out, shift, length $out }
done "/dev/pts/", unpack("i", $n), "\n";
while (<STDIN>) {
	if (/fill/) {			# up to what is too little for much
		1 while syswrite $s, "x" x 4096;
		get 256 until ready $s, POLLOUT, 0;
	}
	POSIX::tcflow(fileno $s, POSIX::TCOOFF()) if /stop/;
	POSIX::tcflow(fileno $s, POSIX::TCOON()) if /go/;
	if (/drain/) {
		get 4096 while $out !~ /^900\r/m && ready $m, POLLIN, 30000;
		open my $f, ">", "drained";
		print $f $out =~ s/[x\r]//gr;
		close $f;
		$out = "";
	}
	done "did $_";
}
END
order() { rm -f ack; echo "$1" >&6; until_true 'test -s ack'; }
# NAME: 900 ids that cannot be told yet are on disk, and others get through.
stored() {
	until_true '[ "$(sql "SELECT count(*) FROM q_job WHERE queue = '"'slow'"'")" = 900 ]'
	exits 0 "an add at once, beside one whose output $1" env Q_BUSY_TIMEOUT=0 qadd -q other x
	is "$(sql "SELECT queue, count(*) FROM q_job GROUP BY queue" | tr '\n' ' ')" 'other|1 slow|900 ' '... which is stored'
}
all_told() { seq 900 | cmp - drained >differs 2>&1; ok $? '... and tells all its ids'; }
mkfifo orders shared

fresh
exec 8<>shared
lock
seq 900 | qadd --lines slow >shared 2>faults & slow=$!
until_true 'held 1 && ! held 0'
perl -e 'open my $f, ">", "shared"; fcntl $f, 4, 2048; 1 while syswrite $f, "x" x 4096; 1 while syswrite $f, "x"'
unlock
stored 'is a pipe that somebody else has filled'
cat shared >all 8<&- & reader=$!
exec 8<&-
wait $slow; echo $? >status
wait $reader
is "$(cat status faults)" 0 '... ends well'
tr -d x <all >drained
all_told

perl terminal <orders & terminal=$!
exec 6>orders
until_true 'test -s ack || ! kill -0 $terminal 2>/dev/null'
if tty=$(cat ack 2>/dev/null); then
	fresh
	order fill
	seq 900 | qadd --lines slow >"$tty" 2>faults & slow=$!
	stored 'is a terminal with room for some'
	order drain
	wait $slow
	is "$? $(cat faults)" '0 ' '... ends well'
	all_told

	fresh
	lock
	seq 900 | qadd --lines slow >"$tty" 2>faults & slow=$!
	until_true 'held 1 && ! held 0'
	order stop
	unlock
	stored 'is a terminal that was stopped'
	order go
	order drain
	wait $slow
	is "$? $(cat faults)" '0 ' '... ends well'
	all_told
fi
exec 6>&-
wait $terminal

# A hundred thousand jobs in one transaction, and small ones beside it.
fresh
seq 100000 | qadd --lines bulk >ids & slow=$!
faults=
while kill -0 $slow 2>/dev/null; do qadd -q small x 2>>faults || faults="$faults $?"; done
wait $slow
is "$? $(wc -l <ids) $faults$(cat faults)" '0 100000 ' 'small adds beside one of 100000 jobs: none fails'
is "$(awk 'NR > 1 && $1 != last + 1 { bad++ } { last = $1 } END { print bad + 0 }' ids)" 0 '... which is not mixed with others'
exits 0 '... and the file is sound' "$t/storm/check" q.db
sed 's/^/# /' out

done_testing
