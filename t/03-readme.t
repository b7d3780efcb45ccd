#!/usr/bin/perl
# README: every fenced block runs, in order, in one folder, and prints what it shows.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
require(abs_path(dirname($0)) . '/blocks.pl');
our ($top, $dir, %script);
use Test::More;

# ---- what the README takes for granted ---------------------------------------

# make runs in a copy, which finds itself built, and installs below this folder.
mkdir "$dir/$_" or die for qw(house bin photos);
system('cp', '-Rp', (map { "$top/$_" } qw(Makefile cmd lib man scripts)), "$dir/house") == 0 or die;
system('cp', '-p', "$top/.flags", "$dir/house") if -e "$top/.flags";
$ENV{MAKEFLAGS} =~ s/(?:^|\s)(?:-j\d*|--jobserver-\S+)//g if defined $ENV{MAKEFLAGS};	# it would talk of them
chomp(my $make = `command -v make;`);
spew('bin/make', "#!/bin/sh\nexec $make -s --no-print-directory -C '$dir/house' DESTDIR='$dir/dest' \"\$@\"\n");
chmod 0755, 'bin/make';
$ENV{PATH} = "$dir/bin:$ENV{PATH}";
spew('photos/a b.jpg', '');
spew("photos/new\nline.jpg", '');
spew('orders.json', '[{"id":"a1","customer":"ana"},{"id":"b2","customer":"bo"}]');
serve();

# ---- the blocks --------------------------------------------------------------

my $readme = slurp("$top/README");
ok(($readme =~ tr/\n//) <= 300, 'README has at most 300 lines');
is(() = $readme =~ /^```/mg, 2 * (my @blocks = $readme =~ /^```(\w*\n.*?)^```$/msg), 'its fences are in pairs');

my ($n, %seen) = (0);
for (@blocks) {
	my ($kind, $text) = /^(\w*)\n(.*)/s;
	my $name = 'block ' . ++$n;
	$seen{$kind}++;
	# These two build, and have tests of their own.
	while ($kind eq 'sh' && $text =~ s/^(scripts\/(?:quickstart|check))\b.*\n//m) {
		ok(-x "$top/$1", "$name: $1 is there");
	}
	run('qadd', 'mail', '{"to":"cy"}') if $kind eq 'crontab' && $text =~ / mail /;
	play($name, $kind, here($text));
}
ok($seen{$_}, "there were ```$_ blocks") for qw(sh bash console crontab);
is(join(' ', grep { !$script{$_} } sort keys %script), '', 'each script was used');

# ---- what they did -----------------------------------------------------------

ok(-d 'dest/usr/local/bin' && !glob('dest/usr/local/bin/*'), 'make uninstall took away what make install had brought');
is(slurp('outbox'), "To: cy\n", 'the handler of the crontab ran');
my (undef, $states) = run('sqlite3', '-readonly', '.local/state/q/q.db',
    'SELECT queue, state, count(*) FROM q_job GROUP BY queue, state ORDER BY 1, 2');
is($states, "calls|done|1\ncharge|done|1\nmail|cancelled|1\nmail|done|2\nmail|failed|1\norders|pending|2\npartner|pending|300\nthumbs|done|2\n",
    'the queue holds what the README says');
my @copy = glob 'q-*.db';
is((run('sqlite3', '-readonly', $copy[0] // 'none', 'PRAGMA integrity_check'))[1], "ok\n", 'the backup is good');
is(slurp('charged'), '900', 'the charge was made');
done_testing;
