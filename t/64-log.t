#!/bin/sh
# FILE-wal stays below 1 MB, whoever writes: programs alone and together, killed ones, beside long-lived
# writers, one that writes much, behind a reader.  Sizes: PROGS programs; SEED.
. "${0%/*}/lib.sh"
unset Q_NOW

progs=${PROGS:-160} seed=${SEED:-$$}
echo "# SEED=$seed"
fresh() { rm -rf q.db* h; qinit; mkdir h; }

# log PROCS COUNT KILLED: so many loops of programs, every KILLEDth killed at some instant; the longest log that was seen
log() {
	perl -e '
		use Time::HiRes "sleep";
		my ($procs, $count, $killed, $seed) = @ARGV;
		my ($most, $n) = (0, 0);
		for my $k (1 .. $procs) {
			next if open $p[$k], "-|";
			srand $seed + $k;
			my @claims;
			for my $i (1 .. $count / $procs) {
				my @do = $i % 3 == 1 ? ("qadd", "q", "payload " x rand 60) : $i % 3 == 2 ? ("qclaim", "q") : ("qdone", @claims ? pop @claims : "1.1.00000000");
				my $pid = open my $f, "-|";
				if (!$pid) { open STDERR, ">", "/dev/null"; exec @do }
				if ($killed && !int rand $killed) { sleep rand 0.004; kill 9, $pid }
				while (<$f>) { push @claims, $1 if /"claim":"([^"]*)"/ }
				close $f;
				my $log = -s "q.db-wal";
				$most = $log if $log > $most;
			}
			print "$most\n";
			exit 0;
		}
		for my $k (1 .. $procs) {
			my $f = $p[$k];
			chomp($_ = <$f>);
			$most = $_ if $_ > $most;
		}
		print "$most\n"' "$@" "$seed"
}
bounded() {	# NAME PROCS COUNT KILLED
	_name=$1
	shift
	fresh
	_most=$(log "$@")
	test "$_most" -lt 1048576
	ok $? "$_name: the log stays below 1 MB"
	"$t/storm/check" q.db >verdict 2>&1
	is "$? $(sed '$d' verdict)" '0 ' '... and the file is sound'
	echo "# at most $_most bytes; $(sql 'SELECT count(*) FROM q_job') jobs"
}
bounded "$progs programs alone" 1 "$progs" 0
bounded "$progs programs in four loops" 4 "$progs" 0
bounded "$((progs / 2)) programs in four loops, every fifth killed" 4 $((progs / 2)) 5
bounded "$((progs / 2)) programs alone, every second killed" 1 $((progs / 2)) 2

# Long-lived writers keep the file; who comes and goes makes it short.  Neither lets it grow.
fresh
"$t/storm/swarm" --procs 4 --seed "$seed" --history h "$t/storm/client" -n "$progs" -l 1000 >out 2>&1 & swarm=$!
most=$(log 2 $((progs / 4)) 4)
wait $swarm
is "$? $(sed '/^swarm: seed/d' out)" '0 ' 'programs beside long-lived writers'
test "$most" -lt 1048576; ok $? '... the log stays below 1 MB'
echo "# at most $most bytes"

# One that stays and writes much at a time copies the log less often, and still in time.
fresh
"$t/serve" >port & server=$!
while [ ! -s port ]; do sleep 0.01; done
url=http://127.0.0.1:$(cut -d' ' -f1 port)
seq 100001 102000 | sed 's/.*/{"id":"r&","stamp":1700&000}/; 1s/^/[/; $!s/$/,/; $s/$/]/' | "$t/serve" "$url/_set" - >out
echo '{"name":"p","url":"'"$url"'/items?limit=100","insecure_http":true,"items":"/items","id":"/id","cursor":"/updated_at","order":"asc",
"query":{"since":"{cursor}"},"next":"link","start":"all","queue":"p"}' >p.json
qpoll p.json
is "$?" 0 '20 commits of some 25 pages each'
kill $server
most=$(wc -c <q.db-wal)
test "$most" -lt 1048576; ok $? '... leave a log of less than 1 MB'
echo "# $most bytes"

# A reader, who is told by descriptor 7 what to do, and begins.
begin_reading() {
	rm -f sql begun
	mkfifo sql
	sqlite3 -readonly q.db <sql >begun & reader=$!
	exec 7>sql
	echo 'BEGIN; SELECT count(*) FROM q_job;' >&7
	while [ ! -s begun ]; do sleep 0.01; done
}

# One that stays keeps the log from being copied; it is made short when he leaves.
fresh
begin_reading
log 2 $((progs / 2)) 0 >most
echo "# $(cat most) bytes behind a reader"
test "$(cat most)" -gt 1000000; ok $? 'behind a reader the log grows'
exec 7>&-
wait $reader
qadd -q q last
qadd -q q one
test "$(wc -c <q.db-wal)" -lt 1048576; ok $? '... until he leaves'

# Whoever begins the log anew when he leaves may not make it short: then the next who copies it does, also one that stays.
fresh
begin_reading
seq -f %0500g 5000 | qadd -q --lines q
echo "COMMIT; SELECT 'over';" >&7	# it stays open: the last one who leaves takes the log away
while ! grep -q over begun; do sleep 0.01; done
sqlite3 q.db 'PRAGMA wal_autocheckpoint = 0; PRAGMA wal_checkpoint; DELETE FROM q_body WHERE job = 1' >out
test "$(wc -c <q.db-wal)" -gt 1048576; ok $? 'a long log that another writer begins anew'
"$t/storm/client" -H h -w one -n 100 -l 1000 >out 2>&1
test "$(wc -c <q.db-wal)" -lt 1048576; ok $? '... is made short by one that stays'
exec 7>&-
wait $reader

# A list that nobody reads is not such a reader.
fresh
head -c 300 /dev/zero | tr '\0' x >line
seq 1000 | sed "s/\$/ $(cat line)/" | qadd -q --lines many
mkfifo list
exec 8<>list
qls many >list & lister=$!
log 2 $((progs / 2)) 0 >most
test "$(cat most)" -lt 1048576; ok $? 'a list that waits for its reader does not make the log grow'
kill -0 $lister; ok $? '... it still waits'
echo "# at most $(cat most) bytes"
cat list >/dev/null 8<&- & reader=$!
exec 8<&-
wait $lister; is $? 0 '... and ends well'
wait $reader

done_testing
