# programs.pl - what the tests of all programs share: a queue file of every kind of job, and for each program in the Makefile its
# command lines.  A program without one fails each of these tests.
use strict;
use warnings;
use Cwd qw(abs_path);
use Digest::SHA qw(hmac_sha256_hex);
use Fcntl qw(SEEK_SET);
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use IO::Socket::UNIX;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep);

our $t = abs_path(dirname(__FILE__));
our $main = $$;
delete @ENV{grep { /^(Q_|LISTEN_)/ } keys %ENV};
delete @ENV{qw(XDG_STATE_HOME NO_COLOR COLUMNS)};
umask 022;
our $dir = abs_path(tempdir('q-test.XXXXXX', TMPDIR => 1, CLEANUP => 1));
chdir $dir or die;
@ENV{qw(PATH TZ LC_ALL HOME Q_DB Q_NOW Q_BOOT Q_BUSY_TIMEOUT)} =
    (dirname($t) . "/cmd:$ENV{PATH}", 'UTC', 'C', $dir, "$dir/q.db", '2026-06-02T12:00:00Z', 'b1:100000000', '10s');
$SIG{$_} = 'DEFAULT' for qw(HUP INT QUIT PIPE TERM CHLD);
our $server;			# the pid of t/serve
END { if ($$ == $main) { my $status = $?; kill KILL => $server if $server; chdir '/'; $? = $status } }

our @PROGS = do { open my $f, '<', "$t/../Makefile" or die; map { /^PROGS = (.*)/ ? split / /, $1 : () } <$f> };
sub slurp { open my $f, '<:raw', $_[0] or return ''; local $/; my $s = <$f>; $s // '' }
sub spew { my ($file, $text) = @_; open my $f, '>:raw', $file or die "$file: $!"; print $f $text; close $f or die "$file: $!" }
sub sql { my ($sql, $file) = @_; open my $f, '-|', 'sqlite3', '-readonly', $file // 'q.db', $sql or die; local $/; my $out = <$f> // ''; $out =~ s/\n\z//; $out }
sub until_ok { my ($test) = @_; for (1 .. 3000) { return 1 if $test->(); sleep 0.01 } return 0 }
sub output { open my $f, '-|', @_ or die "@_: $!"; local $/; my $out = <$f> // ''; close $f or die "@_: ", $? >> 8; $out }

# A program that is killed in the midst of what its command does.
sub cut_short {
	unlink 'go';
	my $pid = fork // die;
	exec @_, '--', 'sh', '-c', 'echo >go; exec sleep 60' or POSIX::_exit(127) if $pid == 0;
	until_ok(sub { -s 'go' }) or die "@_: never began";
	kill KILL => $pid;
	waitpid $pid, 0;
}

our ($url, @live, $dead, $event);	# of t/serve, or undef; claims that are held; ids of a dead job, of a webhook
my $kept = 'kept';			# the file as it was prepared

sub prepare {
	if (-x "$t/serve") {
		$server = open our $serve, '-|', "$t/serve" or die;
		($url) = map { "http://127.0.0.1:$_" } scalar(<$serve>) =~ /^(\d+)/;
		output("$t/serve", "$url/_set", '[' . join(',', map { sprintf '{"id":"i%d","stamp":%d}', $_, 1772323200000 + 60000 * $_ } 1 .. 40) . ']');
	}
	my $source = sprintf '"url":"%s/items","insecure_http":true,"queue":"in","retries":0,"max_wait":"0","items":"/items","id":"/id","cursor":"/updated_at",'
	    . '"start":"all","order":"asc","query":{"since":"{cursor}","limit":20},"next":"link","size":20', $url // 'http://127.0.0.1:1';
	spew('s.json', "{\"name\":\"s\",$source}\n");
	spew('seen.json', "{\"name\":\"seen\",$source}\n");
	spew('table', join('', map { "c$_ */5 * * * * tz=Europe/Berlin reports {\"n\":$_}\n" } 1 .. 40));
	spew('key', "a secret of the tests\n");
	chmod 0600, 'key';
	spew('hooks', "/gh github key queue=hooks\n");

	output('qinit');
	{
		local $ENV{Q_NOW} = '2026-04-01T12:00:00Z';
		spew('in', join '', map { "old $_\n" } 1 .. 40);
		output('sh', '-c', "qadd -q --lines old <in && qadd -q fresh '' --empty && qclaim -c 40 old >claims && qdone --count 3 - <claims && qcron table");
	}
	spew('in', join '', map { sprintf "{\"n\":%d,\"text\":\"%s\"}\n", $_, 'x' x 40 } 1 .. 120);
	output('sh', '-c', 'qadd -q --lines mail <in && for i in 1 2 3 4 5 6 7 8; do qadd -q work "$i"; qadd -q -k "k$i" -t "t$i" bad "$i"; done
	    qclaim -c 8 -l 1h work >claims; qclaim -c 8 bad >dead; qfail --dead -m "no such order" - <dead; qadd -q -e ana handler x
	    qset rate.partner=1000000/s+1000000 rate.partner.concurrency=5 queue.mail.slo=30s/99% queue.mail.keep=30d queue.old.keep=30d expect.never=1h
	    qpause paused "partner down" 2>err; qonce known -- seq 300');
	@live = map { /"claim":"([^"]+)"/ ? $1 : () } split /\n/, slurp('claims');
	($dead) = slurp('dead') =~ /"id":(\d+)/;
	cut_short('qlock', 'held');
	cut_short('qonce', 'unknown');
	output('qpoll', 'seen.json') if $url;
	output('qbackfill', '--name', 'tax', '--from', '1', '--to', '40', '--step', '1', '--', 'true');
	store_event('first');
	output('sqlite3', 'q.db', '.timeout 9000', 'PRAGMA wal_checkpoint(TRUNCATE)');
	mkdir $kept;
	copy('q.db', "$kept/q.db") or die;
}

# qhook takes one event: the way to have one that can be verified again.
sub store_event {
	my ($id) = @_;
	my $body = '{"a":1}';
	my $pid = fork // die;
	exec 'qhook', '-q', '-L', "unix:$dir/event", 'hooks' or POSIX::_exit(127) if $pid == 0;
	my $s;
	until_ok(sub { $s = IO::Socket::UNIX->new(Peer => "$dir/event") }) or die 'qhook did not begin';
	print $s join "\r\n", 'POST /gh HTTP/1.1', 'Host: h', 'X-GitHub-Event: push', "X-GitHub-Delivery: $id",
	    'X-Hub-Signature-256: sha256=' . hmac_sha256_hex($body, 'a secret of the tests'), 'Content-Length: ' . length $body, '', $body;
	$s->flush;
	my $answer = <$s> // '';
	die "qhook: $answer" if $answer !~ m{^HTTP/1\.1 20};
	kill TERM => $pid;
	waitpid $pid, 0;
	$event = sql("SELECT id FROM q_job WHERE queue = 'hooks'");
}

# The file as it was prepared, and nothing else that a command line makes.
sub restore {
	unlink glob('q.db* new.db* copy.db* *.svg *.prom ids socket');
	copy("$kept/q.db", 'q.db') or die;
	chmod 0600, 'q.db';
}

# A command line of a program: what it needs (reads, writes the file, or nothing of it: needs => ''), its exit status if not 0, standard
# input, and of its output:
#	stores	1: if its output is lost it has been done all the same, as its page says; else nothing has changed
#	passes	1: the output is a command's, which may end by SIGPIPE
#	server	1: it is ended when its socket is there
#	human	1: a table or picture for people, whose signs depend on the locale
# HTTP: only where t/serve is built.
sub lines_of {
	my ($p) = @_;
	my %lines = (
		qinit => [ { argv => ['new.db'], needs => '' }, { argv => [], needs => 'write' } ],
		qadd => [ { argv => ['mail', 'x'], needs => 'write' }, { argv => ['-n', '-j', 'mail', 'x'], needs => 'read' },
		    { argv => ['-j', '--lines', 'mail'], in => join('', map { "$_\n" } 1 .. 60), needs => 'write' },
		    { argv => ['--lines', 'mail'], in => join('', map { "$_\n" } 1 .. 1500), needs => 'write', stores => 1 } ],
		qclaim => [ { argv => ['-c', 50, 'mail'], needs => 'write', stores => 1 }, { argv => ['none'], needs => 'write' } ],
		qrenew => [ { argv => [@live], needs => 'write' } ],
		qdone => [ { argv => ['-r', 'fine', @live], needs => 'write' }, { argv => ['99.1.00000000'], needs => 'write', exit => 76 },
		    { argv => ['-'], in => join('', map { "$_\n" } @live), needs => 'write' } ],
		qfail => [ { argv => ['--in', '1h', @live], needs => 'write' } ],
		qcancel => [ { argv => [42 .. 101], needs => 'write', stores => 1 } ],
		qreplay => [ { argv => ['bad'], needs => 'write', stores => 1 }, { argv => ['-n', '--rate', '1/m', 'bad'], needs => 'read' } ],
		qls => [ { argv => ['mail'], needs => 'read' }, { argv => ['-j', '--state', 'all'], needs => 'read' }, { argv => ['--counts'], needs => 'read' },
		    { argv => [$dead], needs => 'read' }, { argv => ['--raw', $dead], needs => 'read' }, { argv => ['--exists', 'none'], needs => 'read', exit => 1 } ],
		qwork => [ { argv => ['handler', '--', 'cat'], needs => 'write' }, { argv => ['-v', 'handler', '--', 'echo', 'whole'], needs => 'write' } ],
		qjob => [ { argv => ['nightly', '--', 'seq', 2000], needs => 'write', stores => 1, passes => 1 }, { argv => ['nightly', '--', 'true'], needs => 'write' },
		    { argv => ['nightly', '--', 'sh', '-c', 'exit 3'], needs => 'write', exit => 3 } ],
		qlate => [ { argv => ['--since', '90d'], needs => 'read', human => 1 }, { argv => ['-j', '--types', '--since', '90d'], needs => 'read' },
		    { argv => ['--by', 'day', '--tz', 'Europe/Berlin', '--since', '9d'], needs => 'read' }, { argv => ['--hist', 'old', '--since', '90d'], needs => 'read', human => 1 },
		    { argv => ['--prom'], needs => 'read' }, { argv => ['--prom', '-o', 'a.prom'], needs => 'read' }, { argv => ['--svg', 'a.svg'], needs => 'read' },
		    { argv => ['--check'], needs => 'read', exit => 1 } ],
		qset => [ { argv => ['rate.partner=5/s'], needs => 'write' }, { argv => [], needs => 'read' }, { argv => ['queue.mail.keep'], needs => 'read' },
		    { argv => ['-f', '-'], in => "queue.mail.age=5m\n", needs => 'write' } ],
		qpause => [ { argv => ['mail', 'why'], needs => 'write' }, { argv => [], needs => 'read' } ],
		qpoll => [ { argv => ['s.json'], needs => 'write', http => 1 }, { argv => ['-n', 's.json'], needs => 'write', http => 1 },
		    { argv => ['--status', 's.json'], needs => 'write' }, { argv => ['-j', '--history', 'seen.json'], needs => 'write' } ],
		qrate => [ { argv => ['partner'], needs => 'write' }, { argv => ['partner', '--', 'seq', 2000], needs => 'write', stores => 1, passes => 1 },
		    { argv => ['--block', '1m', 'partner'], needs => 'write' } ],
		qlock => [ { argv => ['free', '--', 'seq', 2000], needs => 'write', stores => 1, passes => 1 }, { argv => ['--list'], needs => 'read' },
		    { argv => ['-j', '--list'], needs => 'read' }, { argv => ['--break', 'held'], needs => 'write', stores => 1 },
		    { argv => ['-n', 'held', '--', 'true'], needs => 'write', exit => 75 } ],
		qonce => [ { argv => ['unheard', '--', 'seq', 300], needs => 'write', stores => 1, passes => 1 }, { argv => ['known', '--', 'false'], needs => 'write', stores => 1 },
		    { argv => ['--show', 'known'], needs => 'read' }, { argv => ['-j', '--list'], needs => 'read' },
		    { argv => ['-n', 'unknown', '--', 'true'], needs => 'write', exit => 75 } ],
		qcall => [ { argv => ['--insecure-http'], in => $url ? "{\"url\":\"$url/items\"}" : '', needs => '', http => 1 },
		    { argv => [], in => '{"url":"nowhere"}', needs => '', exit => 65 } ],
		qbackfill => [ { argv => ['--plan', '--from', '2026-03-01T00:00:00Z', '--to', '2026-03-01T00:30:00Z', '--step', '1m', 's.json'], needs => 'write' },
		    { argv => ['--from', '2026-03-01T00:00:00Z', '--to', '2026-03-01T00:02:00Z', '--step', '1m', 's.json'], needs => 'write', http => 1 },
		    { argv => ['-j', '--status', '--name', 'tax'], needs => 'write' },
		    { argv => ['--name', 'n', '--from', '1', '--to', '3', '--step', '1', '--', 'true'], needs => 'write' } ],
		qbackup => [ { argv => ['copy.db'], needs => 'read' } ],
		qcron => [ { argv => ['--force', 'table'], needs => 'write' }, { argv => ['-j', '--next', '-c', 3, 'table'], needs => '' },
		    { argv => ['-n', '2026-06-02T00:00:00Z', '2026-06-02T00:10:00Z', 'table'], needs => '' } ],
		qhook => [ { argv => ['-L', 'unix:socket', 'hooks'], needs => 'write', server => 1 }, { argv => ['--check', 'hooks'], needs => '' },
		    { argv => ['--verify', 'hooks', $event], needs => 'read' } ],
		qcheck => [ { argv => ['-v'], needs => 'read', exit => 1 }, { argv => ['-j', '--quick'], needs => 'read', exit => 1 } ],
		qpurge => [ { argv => [], needs => 'write', stores => 1 }, { argv => ['-n', '-j'], needs => 'read' }, { argv => ['-q', '--ids', 'ids'], needs => 'write' } ],
	);
	fail("$p has no row in t/programs.pl"), return if !$lines{$p};
	return grep { !$_->{http} || $url } @{$lines{$p}};
}

# Runs a command line in a child that before() sets up; its exit status, or "signal N".
sub run_line {
	my ($p, $line, $before) = @_;
	spew('in', $line->{in}) if defined $line->{in};
	my $pid = fork // die;
	if ($pid == 0) {
		open STDIN, '<', defined $line->{in} ? 'in' : '/dev/null' or POSIX::_exit(126);
		open STDERR, '>', 'err' or POSIX::_exit(126);
		$before->();
		exec { $line->{path} // $p } $p, @{$line->{argv}} or POSIX::_exit(127);
	}
	if ($line->{server}) {
		until_ok(sub { -S 'socket' || waitpid($pid, POSIX::WNOHANG) == $pid });
		kill TERM => $pid if -S 'socket';
	}
	return ended($pid);
}
sub ended { waitpid $_[0], 0; return $? & 127 ? 'signal ' . ($? & 127) : $? >> 8 }
sub into { open STDOUT, '>', $_[0] or POSIX::_exit(126) }

# What differs from run to run is made the same.
sub same {
	my ($text) = @_;
	$text =~ s/(\b\d+\.\d+\.)[0-9a-f]{8}\b/$1XXXXXXXX/g;
	$text =~ s/\b[\w.-]+:\d{2,7}\b(?![\d:])/WHO/g;
	$text =~ s/ in \d+\.\ds\b/ in TIME/g;
	return $text;
}
1;
