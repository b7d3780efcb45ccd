#!/usr/bin/perl
# README: every fenced block runs, in order, in one folder, and prints what it shows.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;

my $top = abs_path(dirname($0) . '/..');
my $dir = tempdir('q-test.XXXXXX', TMPDIR => 1, CLEANUP => 1);
delete $ENV{$_} for grep { /^Q_/ } keys %ENV;
delete @ENV{qw(XDG_STATE_HOME NO_COLOR)};
@ENV{qw(PATH TZ LC_ALL HOME Q_NOW COLUMNS)} = ("$top/cmd:$ENV{PATH}", 'UTC', 'C', $dir, '2026-06-02T12:00:00Z', 80);
umask 022;
chdir $dir or die "$dir: $!";
END { chdir '/' }

sub slurp { my ($file) = @_; open my $f, '<', $file or return ''; local $/; my $text = <$f>; $text // '' }
sub spew { my ($file, $text) = @_; open my $f, '>', $file or die "$file: $!"; print $f $text; close $f or die "$file: $!" }

sub run {
	my (@command) = @_;
	my $pid = fork // die "fork: $!";
	if ($pid == 0) {
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', "$dir/.out" or die;
		open STDERR, '>', "$dir/.err" or die;
		exec @command or die;
	}
	waitpid $pid, 0;
	return ($? & 127 ? 128 + ($? & 127) : $? >> 8, slurp("$dir/.out"), slurp("$dir/.err"));
}

# ---- what the README takes for granted ---------------------------------------

# make runs in a copy, which finds itself built, and installs below this folder.
mkdir "$dir/$_" or die for qw(house bin photos);
system('cp', '-Rp', (map { "$top/$_" } qw(Makefile cmd lib man)), "$dir/house") == 0 or die;
system('cp', '-p', "$top/.flags", "$dir/house") if -e "$top/.flags";
$ENV{MAKEFLAGS} =~ s/(?:^|\s)(?:-j\d*|--jobserver-\S+)//g if defined $ENV{MAKEFLAGS};	# it would talk of them
chomp(my $make = `command -v make;`);
spew('bin/make', "#!/bin/sh\nexec $make -s --no-print-directory -C '$dir/house' DESTDIR='$dir/dest' \"\$@\"\n");
chmod 0755, 'bin/make';
$ENV{PATH} = "$dir/bin:$ENV{PATH}";
spew('photos/a b.jpg', '');
spew("photos/new\nline.jpg", '');
spew('orders.json', '[{"id":"a1","customer":"ana"},{"id":"b2","customer":"bo"}]');

# The API of the examples is the server of the tests.
my $api = open(my $serve, '-|', "$top/t/serve") or die "t/serve: $!";
our $kept = $serve;		# a lexical would be closed, and waited for, before END
END { kill 'TERM', $api if $api }
my ($port) = scalar(<$serve>) =~ /^(\d+)/ or die 't/serve did not start';
sub ask { system("$top/t/serve", "http://127.0.0.1:$port/$_[0]", $_[1]) == 0 or die "t/serve: $_[0]" }
open my $saved, '>&', \*STDOUT;
open STDOUT, '>', '/dev/null';
ask('_new', '{"shape":{"orders":"{items}"},"auth":"Authorization: Bearer secret"}');
ask('_set', '[' . join(',', map { '{"id":"o' . $_ . '","stamp":' . (1777600000000 + $_ * 8e6) . '}' } 1 .. 300) . ']');
open STDOUT, '>&', $saved;

# ---- the blocks --------------------------------------------------------------

my $readme = slurp("$top/README");
ok(($readme =~ tr/\n//) <= 300, 'README has at most 300 lines');
is(() = $readme =~ /^```/mg, 2 * (my @blocks = $readme =~ /^```(\w*\n.*?)^```$/msg), 'its fences are in pairs');
my %script;	# name => it was run

my ($n, %seen) = (0);
for (@blocks) {
	my ($kind, $text) = /^(\w*)\n(.*)/s;
	my $name = 'block ' . ++$n;
	$text =~ s{"url": "https://api\.example\.com/orders"}{"insecure_http": true, "url": "http://127.0.0.1:$port/items"};
	$text =~ s{updated_since}{since};
	$text =~ s{https://api\.example\.com}{http://127.0.0.1:$port}g;
	$text =~ s{qcall }{qcall --insecure-http };
	$seen{$kind}++;
	for my $made (keys %script) {
		$script{$made} = 1 if $text =~ /(?:\.|\$HOME)\/\Q$made\E\b/;
	}
	if ($kind eq 'console') {
		transcript($name, $text);
	} elsif ($kind eq 'crontab') {
		crontab($name, $text);
	} elsif ($kind =~ /^(?:ba)?sh$/ && $text =~ /^#!.*\n# (\S+) - /) {
		spew($1, $text);
		chmod 0755, $1;
		$script{$1} = 0;
	} elsif ($kind =~ /^(?:ba)?sh$/) {
		# These two build, and have tests of their own.
		while ($text =~ s/^(scripts\/(?:quickstart|check))\b.*\n//m) {
			ok(-x "$top/$1", "$name: $1 is there");
		}
		spew('.block', $text);
		my ($code, $out, $err) = run('bash', '-euo', 'pipefail', '.block');
		is("$code $err", '0 ', "$name runs") or diag($text);
	} else {
		fail("$name: ```$kind is of no kind that is run here");
	}
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

# Lines that begin with "$ " are commands, the others what they print; "..." stands for anything.
# On a terminal, as for the reader.
sub transcript {
	my ($name, $text) = @_;
	SKIP: {
		skip 'no script(1) to lend a terminal', 1 if system 'command -v script >/dev/null';
		(my $commands = $text) =~ s/^(?!\$ ).*\n//mg;
		$commands =~ s/^\$ (.*)\n/"echo '\$ " . quoted($1) . "'\n$1\n"/mge;
		spew('.block', $commands);
		my ($code, $out) = run('script', '-qec', 'bash -euo pipefail .block', '/dev/null');
		$out =~ s/\r//g;
		my ($got, $want) = map { s/ +/ /gr } $out, $text;
		my $like = join '.*', map { quotemeta } split /\.\.\./, $want, -1;
		ok($code == 0 && $got =~ /^$like\z/, "$name prints what it shows") or diag("exit $code\n$got");
	}
}

sub quoted { my ($s) = @_; $s =~ s/'/'\\''/g; $s }

# The commands, as cron would run them: silent.
sub crontab {
	my ($name, $text) = @_;
	run('qadd', 'mail', '{"to":"cy"}') if $text =~ / mail /;
	for (split /\n/, $text) {
		if (/^PATH=(.*)/) {
			like($1, qr{(^|:)/usr/local/bin(:|$)}, "$name: cron finds what make installs");
			next;
		}
		my ($command) = /^(?:[\d*\/,-]+ ){5}(.*)/ or fail("$name: $_"), next;
		$command =~ s/\\%/%/g;
		is(join(' ', run('sh', '-c', $command)), '0  ', "$name: cron has nothing to mail");
	}
}
