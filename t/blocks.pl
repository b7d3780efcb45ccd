# blocks.pl - what README and the tutorial show, run in one folder: transcripts, commands, crontab lines, scripts
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;

our $top = abs_path(dirname(__FILE__) . '/..');
our $dir = tempdir('q-test.XXXXXX', TMPDIR => 1, CLEANUP => 1);
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

# The API of the examples is the server of the tests: here() puts it into a text.
our ($api, $port);
sub serve {
	$api = open(our $kept, '-|', "$top/t/serve") or die "t/serve: $!";	# a lexical would be closed, and waited for, before END
	($port) = scalar(<$kept>) =~ /^(\d+)/ or die 't/serve did not start';
	ask('_new', '{"shape":{"orders":"{items}"},"auth":"Authorization: Bearer secret"}');
	ask('_set', '[' . join(',', map { '{"id":"o' . $_ . '","stamp":' . (1777600000000 + $_ * 8e6) . '}' } 1 .. 300) . ']');
}
sub ask { my (undef, $out) = run("$top/t/serve", "http://127.0.0.1:$port/$_[0]", $_[1]); return $out }
END { kill 'TERM', $api if $api }
sub here {
	my ($text) = @_;
	$text =~ s{"url": "https://api\.example\.com/orders"}{"insecure_http": true, "url": "http://127.0.0.1:$port/items"};
	$text =~ s{updated_since}{since};
	$text =~ s{https://api\.example\.com/orders}{http://127.0.0.1:$port/items}g;
	$text =~ s{https://api\.example\.com}{http://127.0.0.1:$port}g;
	$text =~ s{qcall }{qcall --insecure-http };
	return $text;
}

# ---- the kinds of blocks -----------------------------------------------------

our %script;	# name => it was run

# One block of a kind: sh, bash, console, crontab.
sub play {
	my ($name, $kind, $text) = @_;
	for my $made (keys %script) {
		$script{$made} = 1 if $text =~ /(?:\.|\$HOME(?:\/try)?)\/\Q$made\E\b/;
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
		spew("$dir/.block", $text);
		my ($code, $out, $err) = run('bash', '-euo', 'pipefail', "$dir/.block");
		is("$code $err", '0 ', "$name runs") or diag($text);
	} else {
		fail("$name: ```$kind is of no kind that is run here");
	}
}

# Lines that begin with "$ " are commands, the others what they print; "..." stands for anything.
# On a terminal, as for the reader; what is exported there stays for the blocks that follow.
sub transcript {
	my ($name, $text) = @_;
	SKIP: {
		skip 'no script(1) to lend a terminal', 1 if system 'command -v script >/dev/null';
		(my $commands = $text) =~ s/^(?!\$ ).*\n//mg;
		$commands =~ s/^\$ (.*)\n/"echo '\$ " . quoted($1) . "'\n$1\n"/mge;
		spew("$dir/.block", "$commands\nexport -p >'$dir/.exports'\n");
		my ($code, $out) = run('script', '-qec', "bash -euo pipefail '$dir/.block'", '/dev/null');
		$out =~ s/\r//g;
		my ($got, $want) = map { s/ +/ /gr } $out, $text;
		my $like = join '.*', map { quotemeta } split /\.\.\./, $want, -1;
		ok($code == 0 && $got =~ /^$like\z/, "$name prints what it shows") or diag("exit $code\n$got");
		my $kept = slurp("$dir/.exports");
		$ENV{$1} = $2 while $kept =~ /^declare -x (Q_\w+)="([\w.:\/+-]*)"$/mg;
	}
}

sub quoted { my ($s) = @_; $s =~ s/'/'\\''/g; $s }

# The commands, as cron would run them: silent.
sub crontab {
	my ($name, $text) = @_;
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
1;
