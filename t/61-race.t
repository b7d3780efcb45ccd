#!/bin/sh
# Many at the same instant: creating the file, adding one key, claiming; and a claim that is told late.
# Sizes: ROUNDS of sixteen creators, JOBS claimed by sixteen workers; SEED.
. "${0%/*}/lib.sh"
unset Q_NOW

rounds=${ROUNDS:-5} jobs=${JOBS:-10000} seed=${SEED:-$$}
echo "# SEED=$seed"
swarm() { "$t/storm/swarm" --seed "$seed" --history h "$@" >out 2>err; }
client=$t/storm/client
word() { sed 's/.*"claim":"\([^"]*\)".*/\1/'; }

# together N CMD...: N of them let loose at once; its statuses, counted.  What they print is in each.*
together() {
	rm -f each.*
	perl -e '
		pipe R, W;
		for my $k (1 .. shift) {
			my $pid = fork // die;
			$n{$pid} = $k, next if $pid;
			close W;
			sysread R, $_, 1;	# until all are there
			open STDOUT, ">", "each.out.$k";
			open STDERR, ">", "each.err.$k";
			exec @ARGV;
		}
		close W;
		$s{$? >> 8 || $? & 127}++ while wait > 0;
		print join(" ", map { "$s{$_} x $_" } sort keys %s), "\n"' "$@"
}

# ---- sixteen create one file ----

mkdir made
round=0 faults=
while [ $((round += 1)) -le "$rounds" ]; do
	file=made/$round.db
	got=$(together 16 qinit "$file")
	[ "$got" = '16 x 0' ] || faults="$faults $round: $got"
	[ -z "$(cat each.out.* each.err.*)" ] || faults="$faults $round: $(cat each.out.* each.err.*)"
	"$t/storm/check" "$file" >out 2>&1 || faults="$faults $round: $(cat out)"
done
is "$faults" '' "sixteen qinit at once, $rounds times: each succeeds, the file is sound and nothing is left over"
is "$(find made -type f | grep -cv '\.db\(-wal\|-shm\|-lock\|-reserve\)\{0,1\}$')" 0 '... no other file'

# A creator that died at any instant does not stop the next.
mkdir dead
round=0 faults=
while [ $((round += 1)) -le "$rounds" ]; do
	file=dead/$round.db
	perl -e 'my $p = fork // die; exec "qinit", $ARGV[0] if !$p; select undef, undef, undef, $ARGV[1] / 1000; kill 9, $p; wait' \
	    "$file" "$(perl -e 'srand $ARGV[0]; print rand 8' "$seed$round")"
	got=$(together 4 qinit "$file")
	[ "$got" = '4 x 0' ] || faults="$faults $round: $got $(cat each.err.*)"
	"$t/storm/check" "$file" >out 2>&1 || faults="$faults $round: $(cat out)"
done
is "$faults" '' 'after a creator that was killed, the next ones make one sound file'

# ---- one key, thirty-two times ----

qinit
is "$(together 32 qadd -k order-7 mail 'pay 7')" '32 x 0' 'one key added thirty-two times at once: each succeeds'
is "$(cat each.out.* | sort -u) $(cat each.err.*)" '1 ' '... with one id'
is "$(sql 'SELECT count(*), (SELECT count(*) FROM q_body), (SELECT count(*) FROM q_key) FROM q_job')" '1|1|1' '... and is one job'
is "$(together 16 qadd --replace -k order-8 mail 'pay 8')" '16 x 0' 'replaced sixteen times at once: each succeeds'
is "$(cat each.out.* | sort -u)|$(sql 'SELECT count(*) FROM q_job')" '2|2' '... and is one job'

# ---- sixteen claim the same jobs ----

rm -f q.db*
qinit
mkdir h
seq "$jobs" | sed 's,.*,s/&/0.,' | qadd -q --lines q0
exits 0 "sixteen workers claim $jobs jobs" swarm "$client" -m claim -l 60000 -n 1000000
is "$(sed '/^swarm: seed/d' out; cat err)" '' '... without a word'
is "$(sql 'SELECT count(*), sum(fence), min(fence), max(fence), group_concat(DISTINCT state) FROM q_job')" "$jobs|$jobs|1|1|done" \
    '... each once, and all are done'
# The worker did not add them: its history is completed with one add.
{
	printf 's\ts\t0\t0\tlibq\ni\t1\t1\t1\tadd'
	seq "$jobs" | while read -r i; do printf '\ts/%d/0,%d,q0,5,0,-,-,keep' "$i" $((${#i} + 5)); done
	printf '\nr\t1\t2\t0'
	seq -f ' %.0f,new' "$jobs" | tr ' \n' '\t\0' | tr -d '\0'
	echo
} >h/s
exits 0 '... which their history shows, in the right order' "$t/storm/check" --drained --history h q.db
cat out

# ---- a claim that is told late ----

# Told after its lease has ended and another has the job, it is the claim that was got, not the other's.
rm -f q.db*
qinit
head -c 200000 /dev/zero | tr '\0' x | qadd -q late
qadd -q late second
mkfifo pipe
exec 7<>pipe
Q_BOOT=b:1000 qclaim -c 2 -l 1s late >pipe &	# blocks in the first, which is more than a pipe holds
pid=$!
while [ "$(sql 'SELECT sum(fence) FROM q_job')" != 2 ]; do sleep 0.01; done
Q_BOOT=b:9000 qclaim -c 2 late | word >theirs
head -n 2 <&7 | word >ours
wait $pid
is "$(cut -d. -f1,2 ours | tr '\n' ' ')$(cut -d. -f1,2 theirs | tr '\n' ' ')" '1.1 2.1 1.2 2.2 ' 'a claim told late is the one that was got'
exits 76 '... and is refused' qdone - <ours
exits 0 '... while the later one holds' qdone - <theirs

done_testing
