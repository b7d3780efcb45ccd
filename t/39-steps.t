#!/usr/bin/perl
# The wall clock steps about, to and fro, through clock changes, past 2038 and 2100, and the machine is booted: what every program
# that looks at the time makes of it.  Leases follow the boot clock alone, and no step brings a burst.  STEPS=N SEED=N
use strict;
use warnings;
BEGIN { require($0 =~ s{[^/]*$}{programs.pl}r =~ s{^(?!/)}{./}r) }
-e '/usr/share/zoneinfo/Europe/Berlin' or plan(skip_all => 'no time zones on this system: install tzdata');
my $steps = $ENV{STEPS} // 8;
my $seed = $ENV{SEED} // time;
srand $seed;
note("SEED=$seed");

# Where the clock stands in turn: both clock changes of four zones, a leap second, the ends of what 32 bits hold, and 2100, no leap year.
my @places = (1774746000, 1792890000, 1772953200, 1793512800, 1775314800, 1791039600, 1774729800, 1792864200, 1483228799, 2147483647, 4294967295, 4107542399);
my @ZONES = qw(Europe/Berlin America/New_York Australia/Sydney Europe/London);
my @STEPS = (-86400, -3601, -3600, -1, 0, 1, 59, 3600, 3601, 86400);
my ($now, $boot, $boots) = (1774600000, 5_000_000, 1);
my (@wrong, %lease, %wall, %n);
my $step = 0;
sub at { my ($s) = @_; my @t = gmtime $s; return POSIX::strftime('%Y-%m-%dT%H:%M:%SZ', @t) }
sub set { $ENV{Q_NOW} = at($now); $ENV{Q_BOOT} = "b$boots:$boot" }
sub wrong { push @wrong, "step $step, " . at($now) . ", boot b$boots:$boot: @_" }
# Its output; its status is to be one of these.
sub says {
	my ($may, @cmd) = @_;
	my $status = run_line($cmd[0], { argv => [@cmd[1 .. $#cmd]] }, sub { into('out') });
	wrong("@cmd: exit $status: " . slurp('err')) if " $may " !~ / \Q$status\E /;
	return slurp('out');
}

set();
says(0, 'qinit');
spew('table', join '', map({ (my $id = lc $ZONES[$_]) =~ tr{/}{-}; "$id */10 * * * * tz=$ZONES[$_] cron$_\n" } 0 .. $#ZONES), "every \@every 10m cron4\n");
says(0, 'qcron', 'table');
says(0, 'qset', 'rate.r=10/m+10', 'queue.keep.keep=1d', 'queue.jobs.rate=60/m+5');
says(0, 'qadd', '-q', 'keep', "k$_") for 1 .. 5;
says(0, 'qdone', split ' ', join ' ', says(0, 'qclaim', '-c', 5, 'keep') =~ /"claim":"([^"]+)"/g);
says(0, 'qpurge', '-q');
my $kept_at = $now;

while (++$step <= $steps) {
	my $wall = $step % 3 == 0 ? $places[$step / 3 % @places] + $STEPS[rand @STEPS] : $now + $STEPS[rand @STEPS];
	my $elapsed = int rand 90_000;
	my $booted = rand() < 0.1;
	$now = $wall;
	$boot = $booted ? 1000 : $boot + $elapsed;
	$boots += $booted;
	set();

	# Leases: every claim that is held by the boot clock is held, and no other.
	my @gone = grep { $booted || $lease{$_} <= $boot } sort keys %lease;
	$n{else}++ for grep { ($booted || $lease{$_} <= $boot) != ($wall{$_} <= $now) } keys %lease;	# what the wall clock would have said
	delete @lease{@gone};
	says(0, 'qadd', '-q', '--after', '@0', 'jobs', $step);
	my @got = says(0, 'qclaim', '-c', 9, '-l', '60s', 'jobs') =~ /"claim":"([^"]+)"/g;
	wrong('a burst: ' . @got . ' claims') if @got > 5;
	for my $claim (@got) {
		my ($id) = $claim =~ /^(\d+)/;
		wrong("job $id was claimed while it is held") if grep { /^\Q$id\E\./ } keys %lease;
		$lease{$claim} = $boot + 60_000;
		$wall{$claim} = $now + 60;
	}
	for my $claim (grep { rand() < 0.5 } sort keys %lease) {
		if (rand() < 0.5) { says(0, 'qrenew', '-l', '60s', $claim); $lease{$claim} = $boot + 60_000; $wall{$claim} = $now + 60 }
		else { says(0, 'qdone', $claim); delete $lease{$claim} }
	}
	says(76, 'qdone', $_) for @gone;

	# Schedules: a pass adds at most one job a line, whatever was missed, or says that the clock is far off.
	my $before = sql("SELECT count(*) FROM q_job WHERE queue GLOB 'cron*'");
	says('0 75', 'qcron', rand() < 0.7 ? '--force' : (), 'table');
	my $added = sql("SELECT count(*) FROM q_job WHERE queue GLOB 'cron*'") - $before;
	wrong("a burst: $added of 5 schedules") if $added > 5;
	wrong('the same slot twice: ' . sql("SELECT key FROM q_job WHERE queue GLOB 'cron*' GROUP BY queue, key HAVING count(*) > 1")) if $added
	    && sql("SELECT count(*) FROM (SELECT 1 FROM q_job WHERE queue GLOB 'cron*' GROUP BY queue, key HAVING count(*) > 1)");
	says(0, 'qcron', '--next', 'table');
	$n{slots} += $added;

	# Rates: no more than the burst and what the boot clock has brought.
	my $let = 0;
	for (1 .. 12) { my $s = run_line('qrate', { argv => ['-n', 'r'] }, sub { into('out') }); last if $s eq 75; $s eq 0 ? $let++ : wrong("qrate: exit $s: " . slurp('err')) }
	wrong("a burst: $let let through") if $let > 10 + 1;
	$n{let} += $let;

	# Reports: nothing is late by less than none, and each ends; retention deletes nothing before its time.
	my $late = says(0, 'qlate', '-j', '--since', '30d');
	wrong("qlate: $1") if $late =~ /("(?:lateness|late|p50|p95|p99|max|oldest|run)[a-z_0-9]*":-\d+)/;
	says('0 1', 'qlate', '--check');
	says('0', 'qls', 'jobs');
	says('0 1', 'qcheck', '--quick');
	says('0 1', 'qpurge', '-q', '--grace', '0');
	my $keep = sql("SELECT count(*) FROM q_job WHERE queue = 'keep'");
	$n{purged} //= $step if $keep < 5;
	wrong('purged before its time') if $keep < 5 && !$n{late} && $now < $kept_at + 86400;
	$n{late} = 1 if $now >= $kept_at + 86400;
	if ($step % 5 == 0) {
		says(0, 'qjob', 'job', '--', 'true');
		says(0, 'qlock', '-n', 'lock', '--', 'true');
		says(0, 'qonce', "once$step", '--', 'true');
		says(0, 'qwork', '-c', 1, 'cron0', '--', 'true');
		says('0 1', 'qreplay', '--older-than', '1d', 'cron0');
	}
	last if @wrong > 9;
}
is(join("\n", @wrong), '', "$steps steps (" . join(', ', map { "$_ $n{$_}" } sort keys %n) . ')');
cmp_ok($n{else} // 0, '>', $steps / 20, 'control: leases by the wall clock would have ended at another step');
is(sql('PRAGMA integrity_check'), 'ok', 'the file is sound');
done_testing();
