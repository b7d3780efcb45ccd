#!/bin/sh
# A provider is down: first it says "not now", then it fails, then it is back.  Nothing goes dead, and what the
# handler saw is what qls and qlate tell of it.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

# at SECONDS after noon
at() { Q_NOW=$(perl -e 'my @t = gmtime 1780401600 + $ARGV[0]; printf "%04d-%02d-%02dT%02d:%02d:%02d.250Z", $t[5] + 1900, $t[4] + 1, @t[3, 2, 1, 0]' "$1"); export Q_NOW; }
fresh() { rm -f q.db* seen trouble; qinit; at 0; }

cat >handler <<'END'
#!/bin/sh
code=$(cat status)
echo "$Q_ID $Q_ATTEMPT $Q_DUE $Q_NOW $code" >>seen
exit "$code"
END
chmod +x handler

# outage FROM TO STEP: 75 for 4 minutes, then 1 for 11, which is longer than any wait, then 0
outage() {
	now=$1
	while [ "$now" -le "$2" ]; do
		at "$now"
		if [ "$now" -lt 240 ]; then echo 75; elif [ "$now" -lt 900 ]; then echo 1; else echo 0; fi >status
		qwork -P 4 pay -- ./handler >>trouble 2>&1 || echo "exit $?" >>trouble
		now=$((now + $3))
	done
}

# What the handler saw, as jobs and as one row of qlate, in words of its own.
cat >account.pl <<'END'
use strict;
use warnings;
use Time::Local 'timegm';
sub ms { $_[0] =~ /^(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)\.(\d+)Z$/ or die "@_"; 1000 * timegm($6, $5, $4, $3, $2 - 1, $1) + $7 }
my (%job, @late);
open my $seen, '<', 'seen' or die;
while (<$seen>) {
	my ($id, $attempt, $due, $now, $code) = split;
	push @{$job{$id}}, { attempt => $attempt, late => ms($now) - ms($due), outcome => { 75 => 'deferred', 1 => 'failed', 0 => 'done' }->{$code} };
	push @late, ms($now) - ms($due);
}
if ($ARGV[0] eq 'jobs') {
	for my $id (sort { $a <=> $b } keys %job) {
		print "$id:", join(',', map { "$_->{attempt} $_->{outcome} $_->{late}" } reverse @{$job{$id}}), "\n";
	}
	exit;
}
my @all = map { @$_ } values %job;
my $of = sub { scalar grep { $_->{outcome} eq $_[0] } @all };
@late = sort { $a <=> $b } @late;
my $rank = sub { (grep { my $v = $_; 100 * grep({ $_ <= $v } @late) >= $_[0] * @late } @late)[0] };
my @tried = grep { grep { $_->{outcome} ne 'deferred' } @$_ } values %job;
my @at_once = grep { !grep { $_->{outcome} eq 'failed' } @$_ } @tried;
print join(' ', $of->('done'), $of->('failed'), $of->('deferred'), scalar @tried, scalar @at_once, scalar @late, map { $rank->($_) } 50, 95, 99, 100), "\n";
END
account() { perl account.pl "$1"; }
report() { qlate -j pay | jq -r '[.done, .failed, .deferred, .first_attempts, .first_done, .late_count, .late_p50_ms, .late_p95_ms, .late_p99_ms, .late_max_ms] | map(tostring) | join(" ")'; }
told() {	# by qls: each job's attempts, the newest first
	for id in $(sql 'SELECT id FROM q_job ORDER BY id'); do
		qls -j "$id" | jq -r '"\(.id):" + ([.history[] | "\(.attempt) \(.outcome) \(.started_ms - .due_ms)"] | join(","))'
	done
}

# ---- the default policy ----

fresh
seq 1 12 | qadd -q --lines pay
outage 0 239 20
is "$(cat trouble)" '' 'four minutes of "not now": qwork has nothing to complain of'
is "$(sql "SELECT state, spent, count(*) FROM q_job GROUP BY 1, 2")" 'pending|0|12' '... and no attempt is spent'
is "$(report)" "$(account row)" '... qlate tells what the handler saw'
is "$(qlate -j pay | jq -r '[.done, .failed, .dead, .deferred, .first_percent // "", .final_percent // ""] | map(tostring) | join(" ")')" "0 0 0 $(grep -c ' 75$' seen)  " '... deferrals, and no success or failure'
outage 240 1200 20
is "$(cat trouble)" '' 'twenty minutes: qwork has nothing to complain of'
is "$(sql "SELECT count(*) FROM q_job WHERE state = 'dead'") $(qlate -j pay | jq .dead)" '0 0' '... no job is dead, says qlate, too'
is "$(report)" "$(account row)" '... what the handler saw is what qlate tells'
is "$(told)" "$(account jobs)" '... and qls of each job'
# A wait is at most 10 minutes, so 10 minutes after the provider is back the last job was tried again.
outage 1220 1520 20
is "$(cat trouble)" '' 'ten minutes after the end: nothing to complain of'
is "$(sql 'SELECT state, count(*) FROM q_job GROUP BY 1')" 'done|12' '... all are done'
is "$(report)" "$(account row)" '... what the handler saw is what qlate tells'
is "$(told)" "$(account jobs)" '... and qls of each job'
is "$(qls -j 1 | jq '[.history[] | select(.outcome == "failed")] | length')" "$(sql 'SELECT spent FROM q_job WHERE id = 1')" '... an attempt is spent by a failure, by nothing else'
like "$(qls 1)" "^attempts    $(sql 'SELECT spent FROM q_job WHERE id = 1') of 20 spent" '... as qls says'
is "$(qlate -j pay | jq '.final_percent == 100 and .first_percent == 0 and .late_max_ms < 20000')" true \
    'the outage shows in the first attempts, not in the last ones, and is no lateness'
is "$(qlate -j pay | jq '.done + .failed + .deferred')" "$(wc -l <seen | tr -d ' ')" 'each run of the handler is an attempt'

# ---- the control: three attempts are too few ----

fresh
seq 1 12 | qadd -q --attempts 2 --backoff 1s..20s --lines pay
outage 0 1200 60
is "$(sql 'SELECT state, spent, count(*) FROM q_job GROUP BY 1, 2')" 'dead|2|12' 'with two attempts all are dead'
is "$(qlate -j pay | jq -c '[.done, .failed, .dead, .first_percent, .final_percent]')" '[0,12,12,0,0]' '... and qlate says so'
like "$(cat trouble)" '^exit 1$' '... and qwork did'

done_testing
