#!/bin/sh
# Jobs of one entity: never two at once, in the order of their events, and at nobody else's expense.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

word() { sed 's/.*"claim":"\([^"]*\)".*/\1/'; }
ids() { sed 's/^{"id":\([0-9]*\),.*/\1/' | tr '\n' ' ' | sed 's/ $//'; }
claim() { qclaim -c "${2:-1}" "$1" | word; }
# The order in which all of a queue would run, one after the other.
order() {
	while c=$(qclaim "$1" | word) && [ -n "$c" ]; do
		qdone "$c"
		printf '%s ' "${c%%.*}"
	done | sed 's/ $//'
}
blocked() { qls -j "$@" | sed 's/^{"id":\([0-9]*\),.*"blocked_by":\([0-9a-z]*\).*/\1<\2/' | tr '\n' ' ' | sed 's/ $//'; }
fresh() { rm -f q.db*; qinit; }
# What must hold for every entity that has open jobs; 0 if it does.
BROKEN="SELECT count(*) FROM (SELECT queue, entity, sum(head = 1) AS heads, sum(state = 'claimed') AS claimed FROM q_job
 WHERE entity IS NOT NULL AND finished_ms IS NULL GROUP BY queue, entity) e WHERE heads IS NOT 1 OR claimed > 1
 OR EXISTS(SELECT 1 FROM q_job j WHERE j.queue = e.queue AND j.entity = e.entity AND finished_ms IS NULL
  AND (ready_ms IS NOT NULL) <> (head IS NOT NULL AND state <> 'claimed')
   OR j.queue = e.queue AND j.entity = e.entity AND state = 'claimed' AND head IS NULL)
 OR claimed = 0 AND (SELECT id FROM q_job j WHERE j.queue = e.queue AND j.entity = e.entity AND finished_ms IS NULL
  ORDER BY event_ms, id LIMIT 1) <> (SELECT id FROM q_job j WHERE j.queue = e.queue AND j.entity = e.entity AND head = 1)"
sound() { is "$(sql "$BROKEN")" 0 '... every entity has its one head'; }

# ---- one at a time ----

qinit
for i in 1 2 3; do qadd -q -e ana mail "$i"; done
qadd -q -e bob mail 4
qadd -q -e ana sms 5
qadd -q mail 6
qadd -q mail 7
exits 0 'a claim of all' qclaim -c 10 mail sms
is "$(ids <out)" '1 4 5 6 7' 'one of each entity, entities are per queue, and jobs without one are free'
is "$(blocked mail)" '1<null 4<null 6<null 7<null 2<1 3<1' 'the others wait, and qls names for whom'
exits 0 'a claim of what waits' qclaim -c 10 mail sms
is "$(cat out err)" '' '... has nothing'
qdone "$(sql "SELECT printf('%d.%d.%08x', id, fence, nonce) FROM q_job WHERE id = 1")"
exits 0 'after the first' qclaim -c 10 mail
is "$(ids <out)" 2 '... the next, and only that'
qfail --dead "$(word <out)"
is "$(blocked mail)" '4<null 6<null 7<null 3<null' 'a dead head holds nobody back'
is "$(qclaim -c 9 mail | ids)" 3 '... the next one comes'
sound

# ---- in the order of events ----

fresh
while read -r event due; do
	echo "{\"queue\":\"o\",\"entity\":\"e\",\"event_ms\":$event,\"due_ms\":$due,\"payload\":\"x\"}"
done <<-'END' | qadd -q --jsonl
	1780401500000 1780401600000
	1780401400000 1780401600000
	1780401500000 1780401500000
	1780401300000 1780401600000
	1780401600000 1780401000000
	1780401400000 1780401600000
END
sound
is "$(blocked o)" '4<null 2<4 6<4 1<4 3<4 5<4' 'the list of what waits is in that order'
is "$(order o)" '4 2 6 1 3 5' 'by event time, then id, whatever the due times'

fresh
qadd -q -e e --in 3s o x
qadd -q -e e --in 1s o x
qadd -q -e e o x
qadd -q -e e --in 1s o x
is "$(Q_NOW=2026-06-02T12:01:00Z order o)" '3 2 4 1' 'the event time is the due time unless it is given'

fresh
qadd -q -e ana --in 30d remind x
qadd -q -e ana remind today
is "$(blocked remind)" '2<null 1<2' "a reminder for next month does not hold up today's"
is "$(order remind)" 2 '... which runs'
is "$(blocked remind)" '1<null' '... and then the reminder is first'
is "$(Q_NOW=2026-07-02T12:00:00Z order remind)" 1 '... and comes in its time'

fresh
qadd -q -e ana --in 1h --event-time 2026-06-02T11:00:00Z mail first
qadd -q -e ana mail second
is "$(qclaim -c 9 mail | ids)" '' 'a first event that is due later does hold up the second: that is order'
is "$(blocked mail)" '1<null 2<1' '... and qls says so'
is "$(Q_NOW=2026-06-02T13:00:00Z order mail)" '1 2' '... until it is due'

fresh
qadd -q -e ana mail now
qadd -q -e ana --event-time 2026-06-02T11:00:00Z mail earlier
is "$(blocked mail)" '2<null 1<2' 'an earlier event takes the place of a head that is not claimed'
c=$(claim mail)
qadd -q -e ana --event-time 2026-06-02T10:00:00Z mail earliest
is "$(blocked mail)" '2<null 3<2 1<2' '... but not of one that is claimed'
sound
qfail --in 1h "$c"
is "$(blocked mail)" '3<null 2<3 1<3' '... and goes first when that one fails'
is "$(order mail)" 3 '... alone: the failed one holds back the last'
is "$(Q_NOW=2026-06-02T13:00:00Z order mail)" '2 1' '... until its retry'

# ---- what a head may become ----

fresh
for i in 1 2 3 4; do qadd -q -e ana mail "$i"; done
qfail --in 1m "$(claim mail)"
is "$(claim mail)" '' 'a head in backoff holds back the others'
is "$(blocked mail)" '1<null 2<1 3<1 4<1' '... and is named'
export Q_NOW=2026-06-02T12:01:00Z
qfail --defer 1m "$(claim mail)"
is "$(Q_NOW=2026-06-02T12:01:59Z claim mail)" '' 'a deferred head does'
export Q_NOW=2026-06-02T12:02:00Z
c=$(claim mail)
is "${c%%.*}" 1 '... until it is due'
qfail --release "$c"
is "$(blocked mail)" '1<null 2<1 3<1 4<1' 'a released head stays the head'
claim mail >/dev/null
export Q_BOOT=b1:1300000
is "$(claim mail | cut -d. -f1,2)" 1.5 'a lost one comes again, before the others'
sound
export Q_BOOT=b1:1600000
is "$(claim mail | cut -d. -f1,2)" 1.6 '... and again'
export Q_BOOT=b1:1900000
is "$(claim mail | cut -d. -f1,2)" 2.1 'dead after three losses it lets them pass'
is "$(sql 'SELECT state FROM q_job WHERE id = 1')" dead '... being dead'
sound
export Q_BOOT=b1:1000000 Q_NOW=2026-06-02T12:00:00Z

# ---- --replace ----

fresh
qadd -q -e ana -k a mail 1
qadd -q -e ana -k b --in 1m mail 2
qadd -q -e ana -k c --in 2m mail 3
exits 0 '--replace of the head with a later time' qadd --replace -k a --in 90s mail again
is "$(cat out) $(blocked mail)" '1 2<null 1<2 3<2' '... moves it behind'
sound
exits 0 '--replace of the last with an earlier one' qadd --replace -k c mail again
is "$(cat out) $(blocked mail)" '3 3<null 2<3 1<3' '... moves it to the front'
exits 0 '--replace with an event time' qadd --replace -k b --event-time 2026-06-01T00:00:00Z --in 1h mail again
is "$(cat out) $(blocked mail)" '2 2<null 3<2 1<2' '... moves it by that'
sound
is "$(claim mail)" '' '... though it is due later'
exits 0 '--replace of the head in its place' qadd --replace -k b --event-time 2026-06-01T00:00:00Z mail again
c=$(claim mail)
is "${c%%.*}" 2 '... makes it due'
exits 0 '--replace of one that is claimed' qadd --replace -k b mail newer
is "$(cat out)" 4 '... is a job of its own'
is "$(sql 'SELECT entity IS NULL, state FROM q_job WHERE id = 4')" '1|pending' '... with what was said of it'
sound

# ---- at nobody else's expense ----

fresh
visits() {	# rows' worth of work: steps of SQLite's machine for a statement of a file
	{
		printf '.parameter init\n.parameter set :queue "%s"\n.parameter set :entity "%s"\n' "'mail'" "'ana'"
		printf '.parameter set :%s\n' 'now 1780401600000' 'priority 0' 'n 10' 'boot 1000000'
		echo '.stats on'
		perl "$t/statements.pl" "$t/../lib/$1" "$2"
		echo ';'
	} | sqlite3 scratch.db 2>/dev/null | sed -n 's/^Virtual Machine Steps: *//p' | tail -n 1
}
measure() {
	rm -f scratch.db
	sqlite3 -readonly q.db 'VACUUM INTO "scratch.db"'
	for s in claim.c/PICK claim.c/EXPIRED claim.c/NEXT job.c/BACK job.c/FRONT; do echo "$s $(visits "${s%/*}" "${s#*/}")"; done
}
qadd -q -e ana -p 0 mail head
claim mail >head
seq 1 3 | sed 's/.*/{"queue":"mail","entity":"ana","priority":0,"event_ms":&,"payload":"&"}/' | qadd -q --jsonl
seq 1 20 | sed 's/.*/{"queue":"mail","payload":"&"}/' | qadd -q --jsonl
measure >few
seq 1 3000 | sed 's/.*/{"queue":"mail","entity":"ana","priority":0,"event_ms":&,"payload":"&"}/' | qadd -q --jsonl
measure >many
like "$(cat few)" '^claim.c/PICK [1-9]' 'the work of a claim is measured'
is "$(cat many)" "$(cat few)" '3,000 better jobs behind a claimed one cost the others nothing'
is "$(qclaim -c 10 mail | ids)" '5 6 7 8 9 10 11 12 13 14' '... and keep none of them waiting'
is "$(qclaim -c 3000 mail | ids)" '15 16 17 18 19 20 21 22 23 24' '... not one'
qfail --in 1h "$(cat head)"
is "$(qclaim mail | ids)" 2 'the first event of the 3,000 is next'
sound

# ---- thousands of operations at random ----

fresh
cat >random.pl <<'END'
use strict; use warnings;
srand(my $seed = $ENV{SEED} // time);
print "# SEED=$seed\n";
my ($now, $boot, $n, $broken) = (1780401600, 1000000, 0, 0);
my (%held, %known);
sub run {		# standard input, command: its output
	my ($in, @cmd) = @_;
	open my $f, '+>', undef or die;
	syswrite $f, $in;
	sysseek $f, 0, 0;
	defined(my $pid = open my $o, '-|') or die;
	if ($pid == 0) {
		open STDIN, '<&', $f;
		open STDERR, '>>', 'said';
		exec @cmd;
	}
	return <$o>;
}
sub iso { my @t = gmtime $_[0]; sprintf '%04d-%02d-%02dT%02d:%02d:%02dZ', $t[5] + 1900, $t[4] + 1, @t[3, 2, 1, 0] }
for my $round (1 .. 45) {
	$ENV{Q_NOW} = iso($now += int rand 100);
	$ENV{Q_BOOT} = 'b' . (int($round / 15) + 1) . ':' . ($boot += int rand 100_000);
	my $in = '';
	for (1 .. rand 60) {
		my $event = rand() < .3 ? ',"event_ms":' . int(($now - rand 500) * 1000) : '';
		my $k = int rand 30;
		my $key = rand() < .4 ? qq(,"key":"k$k") : '';
		my $entity = rand() < .9 ? ',"entity":"e' . int(rand 6) . '"' : '';
		$n++;
		$in .= sprintf qq({"queue":"q%d","priority":%d,"due_ms":%d,"payload":"%d"%s}\n), rand 3, rand 3,
		    ($now + rand(200) - 150) * 1000, $k, "$event$key$entity";
	}
	run($in, 'qadd', '-q', rand() < .5 ? '--replace' : (), '--jsonl') if $in ne '';
	my @claims = map { /"claim":"([^"]+)"/ } run('', 'qclaim', '-l', 1 + int(rand 200) . 's', '-c', 1 + int rand 30, 'q0', 'q1', 'q2');
	$held{$_} = 1 for @claims;
	for my $how (['qdone'], ['qfail', '--in', int(rand 100) . 's'], ['qfail', '--dead'], ['qfail', '--defer', int(rand 50) . 's'],
	    ['qfail', '--release'], ['qfail']) {
		my @some = grep { rand() < .15 } keys %held;
		run(join('', map { "$_\n" } @some), @$how, '-') if @some;
		delete @held{@some};
		$n += @some;
	}
	$n += @claims;
	my ($bad) = run('', 'sqlite3', '-readonly', 'q.db', $ENV{BROKEN});
	$broken++ if $bad != 0;
	print "# round $round: $bad broken\n" if $bad != 0;
}
print "$n operations, $broken rounds broken\n";
END
BROKEN=$BROKEN perl random.pl >out 2>err
sed -n '/^#/p' out
is "$(cat err)$(grep -vE ': claim [0-9.a-f]+: (lost|not held);' said)" '' 'a crowd of operations goes without a complaint but of lost claims'
like "$(tail -n 1 out)" '^[1-9][0-9]{3,} operations, 0 rounds broken$' '... and no entity is ever without its one head, or with two'
is "$(sql 'PRAGMA integrity_check')" ok '... in a sound file'
is "$(sql "SELECT count(*) FROM q_attempt a JOIN q_attempt b ON a.job <> b.job JOIN q_job ja ON ja.id = a.job JOIN q_job jb ON jb.id = b.job
 WHERE ja.entity = jb.entity AND ja.queue = jb.queue AND a.started_ms > b.started_ms AND a.started_ms < b.finished_ms")" 0 \
    '... no attempt began while another of its entity was under way'
unset Q_NOW Q_BOOT

# ---- at the same time ----

fresh
seq 1 60 | awk '{ print "{\"queue\":\"mail\",\"entity\":\"e" $1 % 4 "\",\"payload\":\"" $1 "\"}" }' | qadd -q --jsonl
mkdir lock
worker() {
	while qclaim mail >"job$1" && [ -s "job$1" ]; do
		entity=$(sed 's/.*"entity":"\([^"]*\)".*/\1/' "job$1")
		mkdir "lock/$entity" 2>/dev/null || echo "two of $entity"
		sed 's/^{"id":\([0-9]*\),.*/\1/' "job$1" >>"log.$entity"
		rmdir "lock/$entity"
		qdone - <"job$1"
	done
}
worker 1 >said1 2>&1 & worker 2 >said2 2>&1 & worker 3 >said3 2>&1 &
wait
# A worker leaves when all four are taken: the rest is done by one.
worker 4 >said4 2>&1
is "$(cat said?)" '' 'four workers: never two of an entity'
for e in 0 1 2 3; do
	sort -n "log.e$e" | cmp -s - "log.e$e"
	ok $? "... and in order (e$e)"
done
is "$(cat log.e? | sort -n | uniq | wc -l | tr -d ' ')" 60 '... all of them'
done_testing
