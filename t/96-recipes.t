#!/usr/bin/perl
# The recipes of scripts/: each works alone, copied to anywhere; strict, with help and a crontab.  What they do: t/97, t/98.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(basename dirname);
use File::Temp qw(tempdir);
use Test::More;

my $scripts = abs_path(dirname($0) . '/../scripts');
my $dir = tempdir('q-test.XXXXXX', TMPDIR => 1, CLEANUP => 1);
delete $ENV{$_} for grep { /^Q_/ } keys %ENV;
@ENV{qw(HOME TZ LC_ALL)} = ($dir, 'UTC', 'C');
chdir $dir or die "$dir: $!";
END { chdir '/' }

my %house = map { $_ => 1 } qw(bench-peers check need quickstart);	# they build, check and measure q itself
for my $file (grep { -f && !$house{basename $_} } glob "$scripts/*") {
	my $name = basename $file;
	open my $in, '<', $file or die "$file: $!";
	my $text = do { local $/; <$in> };
	like($text, qr/\A#!\/usr\/bin\/env bash\n# \Q$name\E\b.* - /, "$name: bash, and says what it is");
	like($text, qr/^set -Eeuo pipefail\ntrap 'echo "\$\{0##\*\/\}: line \$LINENO: exit status \$\?" >&2' ERR$/m, '... strict, and names the line that fails');
	is(join("\n", grep { length > 140 } split /\n/, $text), '', '... no line is too long');
	cmp_ok($text =~ tr/\n//, '<=', 90, '... and it can be read at once');
	system 'cp', $file, $name;
	my $help = `env -u HOME ./$name --help 2>&1`;
	is($?, 0, '... its copy tells how it is used');
	is($help, join('', map { s/^# ?//r } $text =~ /\A.*\n((?:#.*\n)*)/ ? split(/^/, $1) : ()), '... by its head');
	like($help, qr{^  SHELL=/bin/bash\n  PATH=/usr/local/bin:.*\n  Q_DB=/.*\n(?:  OUTBOX=.*\n)?  (?:[\d*/]+ +){5}.*\b$name\b}m, '... with the crontab');
	my $said = `./$name --no --such --thing --at --all </dev/null 2>&1 >out`;
	is($? >> 8, $name eq 'mail-to-queue' ? 75 : 64, '... what it does not know is refused');	# a mail server would not try again
	like($said, qr/^$name: .*\n\z/, '... and told');
	ok(!-s 'out', '... on standard error');
}
done_testing;
