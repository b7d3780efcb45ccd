#!/usr/bin/perl
# Runs of 7 minutes in a schedule of 5, in each model and policy: the minutes at which they start, with passes and
# workers driven by a clock that is set.  The page shows them.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Basename 'dirname';
use File::Temp 'tempdir';
use Test::More;

my $top = abs_path(dirname(__FILE__) . '/..');
my $dir = tempdir('q-test.XXXXXX', TMPDIR => 1, CLEANUP => 1);
delete @ENV{grep /^Q_/, keys %ENV};
@ENV{qw(PATH TZ LC_ALL HOME Q_DB Q_BOOT)} = ("$top/cmd:$ENV{PATH}", 'UTC', 'C', $dir, "$dir/q.db", 'b1:1000000');
chdir $dir or die;
END { chdir '/' }

use constant { RUN => 7, MINUTES => 41 };
my @want = (	# schedule, workers, minutes of the starts, slots that ran, slots that did not
	[ '*/5 * * * * overlap=skip', 1, '5 15 25 35', '5 15 25 35', 4 ],
	[ '@every 5m overlap=skip', 1, '5 15 25 35', '5 15 25 35', 4 ],
	[ '*/5 * * * *', 2, '5 15 25 35', '5 15 25 35', 4 ],		# the default is skip
	[ '*/5 * * * * overlap=allow', 1, '5 12 19 26 33 40', '5 10 15 20 25 30', 0 ],
	[ '@every 5m overlap=allow', 1, '5 12 19 26 33 40', '5 10 15 20 25 30', 0 ],
	[ '*/5 * * * * overlap=allow', 2, '5 10 15 20 25 30 35 40', '5 10 15 20 25 30 35 40', 0 ],
	[ '*/5 * * * * overlap=replace', 1, '5 12 19 26 33 40', '5 10 15 25 30 40', 2 ],
	[ '@every 5m overlap=replace', 1, '5 12 19 26 33 40', '5 10 15 25 30 40', 2 ],
	[ '*/5 * * * * overlap=replace', 2, '5 12 19 26 33 40', '5 10 15 25 30 40', 2 ],
	[ '@after 5m', 1, '5 17 29 41', '5 17 29 41', 0 ],
	[ '@after 5m', 2, '5 17 29 41', '5 17 29 41', 0 ],
);
open my $f, '>', 'table' or die;
print $f "e$_ $want[$_][0] q$_\n" for 0 .. $#want;
close $f or die;

sub ran { system(@_) == 0 or die "@_: $?" }
my (@busy, @starts, @slots, %wake);
ran('qinit');
$wake{$_} = 1 for map 5 * $_, 0 .. MINUTES / 5;
for my $m (0 .. MINUTES) {
	next if !$wake{$m};
	$ENV{Q_NOW} = sprintf '2026-06-02T12:%02d:00Z', $m;
	for (@busy) {
		my @over = grep $_->[0] <= $m, @{$_ // []};
		ran('qdone', map $_->[1], @over) if @over;
		$_ = [ grep $_->[0] > $m, @{$_ // []} ];
	}
	ran('qcron', 'table');
	for my $i (0 .. $#want) {
		while (@{$busy[$i] // []} < $want[$i][1]) {
			my ($claim, $slot) = `qclaim -l 10h q$i` =~ /"claim":"([^"]+)".*"key":"e\d+\/2026-06-02T12:(\d\d)/ or last;
			push @{$busy[$i]}, [ $m + RUN, $claim ];
			push @{$starts[$i]}, $m;
			push @{$slots[$i]}, $slot + 0;
			$wake{$m + RUN} = $wake{$m + RUN + 5} = 1;
		}
	}
}
for my $i (0 .. $#want) {
	my ($what, $workers, $starts, $slots, $dropped) = @{$want[$i]};
	note(sprintf '%-30s %d worker%s  %s', $what, $workers, $workers > 1 ? 's' : ' ', "@{$starts[$i]}");
	is("@{$starts[$i]}", $starts, "$what, workers: $workers");
	is("@{$slots[$i]}", $slots, '... for these slots');
	is(`sqlite3 -readonly q.db "SELECT overlapped || ' ' || missed FROM q_cron WHERE id = 'e$i'"`, "$dropped 0\n", '... and so many did not run');
}

# What the page says.
my $page = do { open my $p, '<', "$top/man/qcron.5" or die; local $/; <$p> };
for ([ 'skip', 0 ], [ 'allow, one worker', 3 ], [ 'allow, two workers', 5 ], [ 'replace', 6 ], [ '@after 5m', 9 ]) {
	my ($row, $i) = @$_;
	my ($minutes) = $page =~ /^\Q$row\E {2,}([\d ]+)$/m;
	is($minutes, $want[$i][2], "qcron(5) has the row $row");
}

# Its other table, and its first one.
my ($outage) = $page =~ /^The slots that become jobs.*?^\.Bd[^\n]*\n(.*?)^\.Ed/ms;
my @rows = map { /^(\S+ \S+ \S+ \S+ \S+)(?: {2,}([a-z]\S+=\S.*?))?(?: {2,}((?:\d\d:\d\d ?)+))?$/ ? [ $1, $2 // '', $3 // '' ] : die "row: $_" } split /\n/, $outage;
open $f, '>', 'outage' or die;
print $f "o$_ $rows[$_][0] $rows[$_][1] o$_\n" for 0 .. $#rows;
close $f or die;
for ('01:50', '05:10') {
	$ENV{Q_NOW} = "2026-06-02T$_:00Z";
	ran('qcron', '--force', 'outage');
}
cmp_ok(scalar @rows, '>=', 6, 'qcron(5) shows an outage');
for my $i (0 .. $#rows) {
	my $got = `sqlite3 -readonly q.db "SELECT strftime('%H:%M', event_ms / 1000, 'unixepoch') FROM q_job WHERE queue = 'o$i' ORDER BY event_ms"`;
	is(join(' ', split /\n/, $got), $rows[$i][2], "... and in it what becomes of $rows[$i][0] $rows[$i][1]");
}
my ($example) = $page =~ /^\.Bd[^\n]*\n(.*?)^\.Ed/ms;
open $f, '>', 'example' or die;
print $f $example;
close $f or die;
is(() = `qcron --next example 2>err`, 3, '... and its example is a table');
done_testing();
