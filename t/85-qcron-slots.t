#!/usr/bin/perl
# When entries have slots: the table of clock changes, and expressions over years against a slower way to find them.
use strict;
use warnings;
use File::Basename 'dirname';
use POSIX ();
use Test::More;
use Time::Local 'timegm';

my $t = dirname(__FILE__);
delete @ENV{grep /^Q_/, keys %ENV};
$ENV{LC_ALL} = 'C';
$ENV{TZ} = 'UTC';
plan skip_all => 'no time zones on this system: install tzdata' if !-e '/usr/share/zoneinfo/Australia/Lord_Howe';
plan skip_all => 't/unit-cron is not built' if !-x "$t/unit-cron";

# Calls to t/unit-cron, all at once; its answers.
sub unit {
	open my $f, '>', "/tmp/q-cron.$$" or die;
	print $f "$_\n" for @_;
	close $f or die;
	my @out = `'$t/unit-cron' </tmp/q-cron.$$`;
	unlink "/tmp/q-cron.$$";
	chomp @out;
	return @out;
}
sub sec { $_[0] =~ /^(\d+)-(\d+)-(\d+)(?:[T ](\d+):(\d+))?/ or die $_[0]; timegm(0, $5 // 0, $4 // 0, $3, $2 - 1, $1) }
sub utc { my @t = gmtime $_[0]; sprintf '%04d-%02d-%02dT%02d:%02dZ', $t[5] + 1900, $t[4] + 1, @t[3, 2, 1] }

# ---- the days of clock changes ----

my @table = (	# zone, schedule, UTC from, to, slots
	[ 'America/New_York', '30 2 * * *', '2026-03-08 05:00', '2026-03-09 04:00', '2026-03-08T07:00Z' ],
	[ 'America/New_York', '30 1 * * *', '2026-11-01 04:00', '2026-11-02 05:00', '2026-11-01T05:30Z' ],
	[ 'Europe/Berlin', '30 2 * * *', '2026-03-28 23:00', '2026-03-29 22:00', '2026-03-29T01:00Z' ],
	[ 'Europe/Berlin', '30 2 * * *', '2026-10-24 22:00', '2026-10-25 23:00', '2026-10-25T00:30Z' ],
	[ 'Australia/Lord_Howe', '15 2 * * *', '2026-10-03 13:30', '2026-10-04 13:00', '2026-10-03T15:30Z' ],
	[ 'Australia/Lord_Howe', '45 1 * * *', '2026-04-04 13:00', '2026-04-05 13:30', '2026-04-04T14:45Z' ],
	[ 'America/Santiago', '0 0 * * *', '2026-09-05 05:00', '2026-09-07 02:00', '2026-09-06T04:00Z' ],
	[ 'Africa/Cairo', '0 0 * * *', '2026-04-23 00:00', '2026-04-24 12:00', '2026-04-23T22:00Z' ],
	[ 'America/Havana', '30 0 * * *', '2026-11-01 04:00', '2026-11-01 20:00', '2026-11-01T04:30Z' ],	# which has changed its mind since
	[ 'America/Havana', '30 0 * * *', '2024-11-03 04:00', '2024-11-04 05:00', '2024-11-03T04:30Z' ],
	# two that land on one instant are one; what is outside the gap stays where it is
	[ 'America/New_York', '0,15,30,45 2,3 * * *', '2026-03-08 05:00', '2026-03-09 04:00', map "2026-03-08T07:${_}Z", qw(00 15 30 45) ],
	# 02:00 is shown after the second 01:59
	[ 'America/New_York', '0 1,2 * * *', '2026-11-01 04:00', '2026-11-02 05:00', '2026-11-01T05:00Z', '2026-11-01T07:00Z' ],
	# each hour: real time
	[ 'America/New_York', '0 * * * *', '2026-11-01 04:30', '2026-11-01 07:30', map "2026-11-01T0${_}:00Z", 5 .. 7 ],
	[ 'America/New_York', '59 * * * *', '2026-03-08 05:30', '2026-03-08 08:00', '2026-03-08T05:59Z', '2026-03-08T06:59Z', '2026-03-08T07:59Z' ],
	[ 'Australia/Lord_Howe', '45 * * * *', '2026-04-04 14:00', '2026-04-04 16:30', '2026-04-04T14:45Z', '2026-04-04T15:15Z', '2026-04-04T16:15Z' ],
	# a day that is not there: it crossed the date line
	[ 'Pacific/Apia', '0 6 * * *', '2011-12-29 10:00', '2012-01-01 00:00', '2011-12-29T16:00Z', '2011-12-30T10:00Z', '2011-12-30T16:00Z', '2011-12-31T16:00Z' ],
	[ 'Pacific/Apia', '0 6 30 12 *', '2011-12-29 10:00', '2012-01-01 00:00', '2011-12-30T10:00Z' ],
	[ 'UTC', '0 0 29 2 *', '2026-01-01', '2036-01-01', '2028-02-29T00:00Z', '2032-02-29T00:00Z' ],
	[ 'UTC', '0 0 29 2 *', '2097-01-01', '2105-01-01', '2104-02-29T00:00Z' ],
);
my @got = unit(map "slots|" . sec($_->[2]) . '|' . sec($_->[3]) . "|x $_->[1] tz=$_->[0] q", @table);
for my $i (0 .. $#table) {
	my ($zone, $line, $from, $to, @want) = @{$table[$i]};
	is(join(' ', map utc($_), split ' ', $got[$i]), "@want", "$zone $line from $from");
}
for ([ 'forward', '2026-03-08 05:00', '2026-03-09 04:00', 46 ], [ 'back', '2026-11-01 04:00', '2026-11-02 05:00', 50 ]) {
	my ($name, $from, $to, $n) = @$_;
	my ($slots) = unit("slots|" . sec($from) . '|' . sec($to) . '|x */30 * * * * tz=America/New_York q');
	is(scalar(split ' ', $slots), $n, "*/30 * on the day on which the clocks go $name has $n slots");
}
is((unit('slots|' . sec('2026-06-01 00:00') . '|' . sec('2026-06-01 01:00') . '|x @every 7m q'))[0],
    join(' ', grep $_ % 420 == 0, sec('2026-06-01 00:00') .. sec('2026-06-01 01:00') - 1) . ' ', '@every: multiples since 1970');
is((unit('slots|' . sec('2026-05-30 00:00') . '|' . sec('2026-06-12 00:00') . '|x @every 1w q'))[0],
    join(' ', sec('2026-06-04'), sec('2026-06-11')) . ' ', '@every 1w: Thursdays');
is_deeply([ unit('slots|0|60|x @every 20s q', 'slots|0|120|x * * * * * q', 'slots|0|120|x * 0 * * * q') ], [ '0 20 40 ', '0 60 ', '0 60 ' ], 'from the first second on');

# ---- expressions over years ----

# The slow way.  What the wall shows, minute by minute of a year of UTC, read from the C library; clocks change at quarters of an hour.
my %zone;
sub zone {
	my ($name, $year) = @_;
	return $zone{"$name $year"} if $zone{"$name $year"};
	local $ENV{TZ} = ":$name";
	POSIX::tzset();
	my ($from, $to) = (timegm(0, 0, 0, 1, 0, $year), timegm(0, 0, 0, 1, 0, $year + 1));
	my (@by, @first, $base, $max);	# by minute of the hour: minute and what the wall shows; first minute at which it shows so much or more
	for (my $sec = $from - 2 * 86400; $sec < $to; $sec += 900) {
		my @l = localtime $sec;
		my $wall = timegm(@l[0 .. 5]) / 60;
		$base //= $max = $wall;
		for my $i (0 .. 14) {
			my ($w, $m) = ($wall + $i, $sec / 60 + $i);
			push @{$by[$w % 60]}, $m, $w if $sec >= $from;
			$first[$max++ - $base] = $m while $max <= $w;
		}
	}
	$ENV{TZ} = 'UTC';
	POSIX::tzset();
	return $zone{"$name $year"} = { from => $from, to => $to, by => \@by, first => \@first, base => $base };
}
POSIX::tzset();

my %names;
@names{qw(jan feb mar apr may jun jul aug sep oct nov dec)} = 1 .. 12;
@names{qw(sun mon tue wed thu fri sat)} = 0 .. 6;
sub members {
	my ($field, $lo, $hi) = @_;
	my %in;
	for (split /,/, $field) {
		my ($range, $step) = split m{/};
		$range = "$lo-$hi" if $range eq '*';
		$range =~ s/([a-z]{3})/$names{$1}/g;
		my ($a, $b) = split /-/, $range;
		$b //= $a;
		$b = 7 if $hi == 6 && $b < $a;
		for (my $i = $a; $i <= $b; $i += $step // 1) { $in{$hi == 6 ? $i % 7 : $i} = 1 }
	}
	return \%in;
}
my %day;	# of days since 1970: [ day of the month, month, day of the week ]
sub slowly {
	my ($line, $z) = @_;
	my ($min, $hour, $dom, $mon, $dow) = split ' ', $line;
	my ($mins, $hours, $doms, $mons, $dows) = (members($min, 0, 59), members($hour, 0, 23), members($dom, 1, 31), members($mon, 1, 12), members($dow, 0, 6));
	my %fits;
	my $fits = sub {
		my ($d) = @_;
		return $fits{$d} //= do {
			my ($mday, $month, $wday) = @{$day{$d} //= do { my @t = gmtime $d * 86400; [ $t[3], $t[4] + 1, $t[6] ] }};
			my ($a, $b) = ($doms->{$mday}, $dows->{$wday});
			$mons->{$month} && ($dom eq '*' ? $b : $dow eq '*' ? $a : $a || $b) ? 1 : 0;
		};
	};
	my %slot;
	if ($hour eq '*') {
		for my $wall (@{$z->{by}}[keys %$mins]) {
			for (my $i = 0; $i < @$wall; $i += 2) {
				$slot{$wall->[$i]} = 1 if $fits->(int $wall->[$i + 1] / 1440);
			}
		}
	} else {
		for my $d (int($z->{from} / 86400) - 1 .. int($z->{to} / 86400) + 1) {
			next if !$fits->($d);
			for my $h (keys %$hours) {
				for my $m (keys %$mins) {
					my $first = $z->{first}[$d * 1440 + $h * 60 + $m - $z->{base}];
					$slot{$first} = 1 if defined $first && $first * 60 >= $z->{from};
				}
			}
		}
	}
	return join('', map $_ * 60 . ' ', sort { $a <=> $b } keys %slot);
}

my @lines = split /\n/, <<'END';
30 2 * * *
0 0 * * *
59 23 * * *
30 1 * * *
0 1,2,3 * * *
*/20 0-4 * * *
*/17 1-3 * * *
0 2 * * sun
30 2 * * 7
15 1 * 10,11 0
0 3 1 * *
0 0 31 * *
30 0 29 2 *
0 12 1,15 * 5
5 4 13 * fri
0 22 * * 1-5
0 6-18/3 * * mon-fri
10 5 * jan-mar *
0 0 1 1 *
0 9 1-7 * 1
45 23 31 12 *
*/30 * * * *
0 * * * *
15,45 * * * *
7 * * * 0
59 * * 3,10,11 *
0 * 1 * *
*/59 * * 4 *
0 * 29 3 0
30 * 25 oct *
1-59/29 * * * sat-sun
23 0-23/2 * * *
0 */5 * * *
0 */23 * * *
0 */6 * * 6
11 11 11 11 *
0 0 */2 * *
0 0 */10 1-6 *
0 0 * */3 *
0 0 * 2-12/5 *
33 3 28-31 * *
0 0 30,31 4-9 *
0 2 8-14 3 *
0 1 * * 0,6
0 1 * * 6-7
0 1 * * fri-sun
0 1 * * 5-7
20 14 * * sat
0 5 * 3 tue,thu
0 8 * * 2-6/2
2-58/8 2 * 3-4 *
0,1,2,3 0 * * *
58-59 23 * 9-11 *
0 4 * * 1
30 4 1-31/5 * *
30 4 15 * 3
40 4 1,2,3 jan,jul *
0 0 25 dec *
50 1 * 4 sun
45 1 1-7 4 *
15 2 1-7 10 *
0-59/15 3 * * *
0 2-3 * mar,apr,oct,nov *
0 0 1 */4 *
END
my @zones = ([ 'America/New_York', 2026 ], [ 'Europe/Berlin', 2028 ], [ 'Australia/Lord_Howe', 2026 ], [ 'America/Santiago', 2026 ],
    [ 'America/Havana', 2024 ], [ 'Africa/Casablanca', 2026 ], [ 'Pacific/Apia', 2011 ]);
my (@calls, @want, @what, %nonempty);
for my $i (0 .. $#lines) {
	for (0, 1) {		# in two zones each
		my ($name, $year) = @{$zones[($i + $_ * 3) % @zones]};
		my $z = zone($name, $year);
		push @calls, "slots|$z->{from}|$z->{to}|x $lines[$i] tz=$name q";
		push @want, slowly($lines[$i], $z);
		push @what, "$lines[$i] $name $year";
		$nonempty{$i} = 1 if $want[-1] ne '';
	}
}
my @fast = unit(@calls);
my @differ = grep $fast[$_] ne $want[$_], 0 .. $#calls;
is(scalar @fast, scalar @calls, scalar(@lines) . ' expressions over years in ' . scalar(@zones) . ' zones: all are answered');
for my $i (@differ) {
	my %in;
	$in{$_} |= 1 for split ' ', $fast[$i];
	$in{$_} |= 2 for split ' ', $want[$i];
	my ($first) = sort { $a <=> $b } grep $in{$_} != 3, keys %in;
	fail("$what[$i]: differs at " . utc($first) . ($in{$first} == 1 ? ', one too many' : ', one too few'));
}
is(scalar @differ, 0, '... as slowly found');
cmp_ok(scalar @lines, '>=', 60, '... which are many');
is(scalar keys %nonempty, scalar @lines, '... and each has a slot somewhere');

# ---- what a pass keeps ----

my ($t0, @due) = sec('2026-06-02 00:00');
while (<DATA>) {
	chomp;
	my ($mark, $now, $line, $want) = split /\|/;
	push @due, [ 'due|' . ($t0 + 60 * $mark) . '|' . ($t0 + 60 * $now) . "|x $line", $want, "$line, from minute $mark to $now" ];
}
my @kept = unit(map $_->[0], @due);
for my $i (0 .. $#due) {
	my ($missed, $first, $slots) = $kept[$i] =~ /^(\d+) (\d+):(.*)/ or fail("$due[$i][2]: $kept[$i]"), next;
	my $got = ($missed ? "$missed from " . ($first - $t0) / 60 . ', ' : '') . 'runs' . join('', map ' ' . ($_ - $t0) / 60, split ' ', $slots);
	is($got, $due[$i][1], $due[$i][2]);
}
done_testing();
__DATA__
0|0|*/5 * * * * q|runs
0|4|*/5 * * * * q|runs
0|5|*/5 * * * * q|runs 5
5|9|*/5 * * * * q|runs
0|10|*/5 * * * * q|1 from 5, runs 10
0|64|*/5 * * * * q|11 from 5, runs 60
0|10|*/5 * * * * missed=skip q|1 from 5, runs 10
0|14|*/5 * * * * missed=skip q|1 from 5, runs 10
0|65|*/30 * * * * missed=skip q|1 from 30, runs 60
0|66|*/30 * * * * missed=skip q|2 from 30, runs
0|66|*/30 * * * * missed=skip late=6m q|1 from 30, runs 60
0|66|*/30 * * * * late=6m missed=skip q|1 from 30, runs 60
0|66|*/30 * * * * late=5m q|2 from 30, runs
0|66|*/30 * * * * late=35m missed=all:9 overlap=allow q|1 from 30, runs 60
0|66|*/30 * * * * late=36m missed=all:9 overlap=allow q|runs 30 60
0|66|*/30 * * * * missed=all:1 overlap=allow q|1 from 30, runs 60
0|66|*/5 * * * * missed=all:3 overlap=allow q|10 from 5, runs 55 60 65
0|66|@every 11m missed=all:2 overlap=allow q|4 from 3, runs 47 58
10|0|*/5 * * * * q|runs
