# qhook.pl - what the tests of qhook share: a directory of their own, a server, raw connections
use strict;
use warnings;
use Cwd qw(abs_path);
use Digest::SHA qw(hmac_sha256_hex sha256_hex);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX ();
use Socket qw(MSG_NOSIGNAL);
use Test::More;
use Time::HiRes qw(sleep time);

our $top = abs_path(dirname(__FILE__) . '/..');
our $dir = tempdir('q-test.XXXXXX', TMPDIR => 1, CLEANUP => 1);
our ($pid, $port);
my $main = $$;
delete $ENV{$_} for grep { /^(Q_|LISTEN_)/ } keys %ENV;
delete @ENV{qw(XDG_STATE_HOME NO_COLOR)};
@ENV{qw(PATH TZ LC_ALL HOME Q_DB)} = ("$top/cmd:$ENV{PATH}", 'UTC', 'C', $dir, "$dir/q.db");
umask 022;
chdir $dir or die "$dir: $!";
$SIG{PIPE} = 'IGNORE';
$SIG{$_} = 'DEFAULT' for qw(HUP INT TERM);
$SIG{INT} = sub { exit 130 if $$ == $main; $SIG{INT} = 'DEFAULT'; kill INT => $$ };	# Ctrl-C leaves no folder
END { if ($$ == $main) { kill KILL => $pid if $pid; chdir '/' } }

our $secret = 'a secret of the tests';

sub spew { my ($file, $text) = @_; open my $f, '>', $file or die "$file: $!"; print $f $text; close $f or die "$file: $!" }
sub slurp { my ($file) = @_; open my $f, '<', $file or return ''; local $/; my $text = <$f>; $text // '' }
sub sql { my ($sql, $file) = @_; open my $f, '-|', 'sqlite3', '-readonly', '-cmd', '.timeout 10000', $file // $ENV{Q_DB}, $sql or die; local $/; my $out = <$f> // ''; $out =~ s/\n\z//; $out }
sub table { spew('table', join '', map { "$_\n" } @_) }

sub prepare {
	spew('key', "$secret\n");
	chmod 0600, 'key';
	table('/gh github key queue=hooks max=1048576', '/small github key queue=hooks max=1000', '/large github key queue=hooks max=26214400', '/health health');
	system('qinit') == 0 or die;
}

# Exit status, output and errors of a program that ends.
sub run {
	my $p = fork // die;
	if ($p == 0) {
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', 'out';
		open STDERR, '>', 'errors';
		exec @_ or POSIX::_exit(127);
	}
	waitpid $p, 0;
	return ($? & 127 ? 128 + ($? & 127) : $? >> 8, slurp('out'), slurp('errors'));
}

# qhook with these arguments; its port, if it prints one, is $port, its pid $pid, what it says in ./err.
sub start {
	my @args = @_ ? @_ : ('-L', '127.0.0.1:0', 'table');
	pipe my $from, my $to or die;
	$pid = fork // die;
	if ($pid == 0) {
		open STDIN, '<', '/dev/null';
		open STDOUT, '>&', $to or die;
		open STDERR, '>>', 'err' or die;
		close $_ for $from, $to;
		exec 'qhook', @args or POSIX::_exit(127);
	}
	close $to;
	return if !grep { /:0$/ } @args;
	my $line = <$from> // '';
	($port) = $line =~ /^127\.0\.0\.1:(\d+)$/ or BAIL_OUT("qhook did not start: $line" . slurp('err'));
}
sub stop {	# SIGNAL: its exit status
	my ($sig) = @_;
	kill $sig // 'TERM', $pid;
	waitpid $pid, 0;
	$pid = undef;
	return $? & 127 ? 128 + ($? & 127) : $? >> 8;
}
sub until_ok { my ($test, $seconds) = @_; my $end = time + ($seconds // 20); until ($test->()) { return 0 if time > $end; sleep 0.02 } return 1 }

sub dial { my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $_[0] // $port) or die "connect: $!"; $s->autoflush(1); $s }
sub put { my ($s, $text) = @_; my $done = 0; while ($done < length $text) { my $n = send $s, substr($text, $done), MSG_NOSIGNAL; return 0 if !defined $n; $done += $n } return 1 }
# Until its end, at most so long: the answer, undef if the end does not come.
sub hear {
	my ($s, $seconds) = @_;
	my ($text, $end, $select) = ('', time + ($seconds // 15), IO::Select->new($s));
	while ($select->can_read($end - time > 0 ? $end - time : 0)) {
		my $n = sysread $s, my $part, 65536;
		return $text if !$n;
		$text .= $part;
	}
	return undef;
}
# Without its Date, which must be there.
sub undated { my ($answer) = @_; $answer && $answer =~ s/^Date: (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d GMT\r\n//m || return 'undated'; $answer }
sub ask { my ($text, $s) = @_; $s //= dial(); put($s, $text); my $answer = hear($s); close $s; $answer }
sub status { my ($answer) = @_; defined $answer ? $answer =~ m{\AHTTP/1\.1 (\d{3}) } ? $1 : $answer eq '' ? 'closed' : $answer : 'open' }

# The head of a signed event; %more: headers, undef takes one away.
sub head {
	my ($id, $body, %more) = @_;
	my $path = delete $more{path} // '/gh';
	my $version = delete $more{version} // '1.1';
	my %h = (Host => 'h', 'X-GitHub-Event' => 'push', 'X-GitHub-Delivery' => $id, 'X-Hub-Signature-256' => 'sha256=' . hmac_sha256_hex($body, $secret),
	    'Content-Length' => length $body, %more);
	return "POST $path HTTP/$version\r\n" . join('', map { "$_: $h{$_}\r\n" } grep { defined $h{$_} } sort keys %h) . "\r\n";
}
sub event { my ($id, $body, %more) = @_; head(@_) . $body }
sub chunks { my ($body, $size) = @_; join('', map { sprintf "%x\r\n%s\r\n", length $_, $_ } unpack "(a$size)*", $body) . "0\r\n\r\n" }
sub jobs { sql('SELECT count(*) FROM q_job') }
1;
