#!/usr/bin/perl
# qhook: once, on disk before the answer, whatever happens to it; sockets, signals, trouble with the file.
use strict;
use warnings;
use Cwd qw(abs_path);
use Fcntl;
use File::Basename qw(dirname);
use IO::Socket::UNIX;
use Socket;
use Test::More;
use Time::HiRes qw(sleep time);
# In a mount namespace of its own, so that nobody else sees the small disk.
BEGIN {
	exec 'unshare', '-m', $^X, $0, 'inside' if !@ARGV && $> == 0 && system('unshare -m true 2>/dev/null') == 0;
	my $lib = abs_path(dirname($0)) . '/qhook.pl';
	require $lib;
}
our ($top, $dir, $pid, $port, $secret);

# ---- usage, and what is wrong before it begins -------------------------------

is(join('|', run('qhook', 'table')), '66||qhook: table: No such file or directory' . "\n", 'no table');
spew('key', "$secret\n");
table('/gh github key queue=hooks');
chmod 0644, 'key';
my ($code, $out, $err) = run('qhook', '--check', 'table');
is("$code$out", '77', 'a secret that all can read');
chmod 0600, 'key';
is(join('|', run('qhook', '--check', 'table')), '0||', 'a good table');
is((run('qhook', '-L', '127.0.0.1:0', 'table'))[0], 66, 'no queue file');
prepare();
for (
	[ 64, 'no TABLE; see \'qhook --help\'' ], [ 64, 'one TABLE; see \'qhook --help\'', 'table', 'table' ],
	[ 64, 'no -L, and no socket was handed over; next: -L 127.0.0.1:PORT, or a .socket unit', 'table' ],
	[ 64, '-q and -v exclude each other; see \'qhook --help\'', qw(-q -v table) ],
	[ 64, '-L, -q and -v do not go with --check; see \'qhook --help\'', qw(--check -q table) ],
	[ 64, '-L, -q and -v do not go with --verify; see \'qhook --help\'', qw(--verify -L 127.0.0.1:0 table 1) ],
	[ 64, '--check and --verify exclude each other; see \'qhook --help\'', qw(--check --verify table 1) ],
	[ 64, '--verify: no ID; - reads them from standard input; see \'qhook --help\'', qw(--verify table) ],
	(map { [ 64, "-L: '$_' is no address; write 127.0.0.1:PORT, [::1]:PORT or unix:PATH", '-L', $_, 'table' ] }
	    '', '80', ':80', '127.0.0.1', '127.0.0.1:', '127.0.0.1:65536', '127.0.0.1:x', '127.0.0.1:-1', 'localhost:80', 'h:80', '[::1:80', '::1:80', '[]:80', '127.1:80', '[' . 'x' x 100 . ']:1'),
	(map { [ 64, "-L: '$_' can be reached from outside; listen on 127.0.0.1 and let a proxy with TLS pass requests on", '-L', $_, 'table' ] }
	    '0.0.0.0:80', '10.0.0.1:80', '[::]:80', '[fe80::1]:80', '[::ffff:127.0.0.1]:80', '128.0.0.1:1'),
	[ 64, "-L: '' is no path of 1 to 107 bytes", '-L', 'unix:', 'table' ], [ 64, "-L: '" . 'x' x 108 . "' is no path of 1 to 107 bytes", '-L', 'unix:' . 'x' x 108, 'table' ],
	[ 73, 'absent/socket: No such file or directory', '-L', 'unix:absent/socket', 'table' ],
) {
	my ($want, $say, @args) = @$_;
	is(join('|', run('qhook', @args)), "$want||qhook: $say\n", "qhook @args");
}

# ---- once --------------------------------------------------------------------

sub burst {	# N TEXT: so many clients at once; the statuses
	my ($n, $text) = @_;
	pipe my $go, my $begin or die;
	pipe my $from, my $to or die;
	my @clients;
	for (1 .. $n) {
		my $p = fork // die;
		push @clients, $p;
		next if $p;
		close $begin;
		sysread $go, my $x, 1;
		syswrite $to, status(ask($text)) . "\n";
		POSIX::_exit(0);
	}
	close $_ for $go, $begin, $to;	# now
	my %n;
	$n{$_}++ for map { chomp; $_ } <$from>;
	waitpid $_, 0 for @clients;
	return join ' ', map { "$n{$_} x $_" } sort keys %n;
}
$ENV{Q_NOW} = '2001-01-01T00:00:00Z';
start();
delete $ENV{Q_NOW};
is(burst(50, event('same', 'hello')), '50 x 200', 'one event of 50 clients at once');
is(sql('SELECT (SELECT count(*) FROM q_job), (SELECT count(*) FROM q_hook), (SELECT key FROM q_job)'), '1|1|/gh/same', '... is one job, one record');
cmp_ok(abs(sql('SELECT received_ms FROM q_hook') / 1000 - time), '<', 60, 'Q_NOW is not obeyed');
sub written { join ' ', map { (stat "$ENV{Q_DB}$_")[7], (Time::HiRes::stat("$ENV{Q_DB}$_"))[9] } '', '-wal' }
my $written = written();
is(burst(20, event('same', 'hello')), '20 x 200', 'again');
is(written(), $written, '... writes nothing');
is(status(ask(event('same', 'other'))), 200, 'the same id with another body is the same event');
is(sql('SELECT CAST(body AS TEXT) FROM q_body'), 'hello', '... of which the first is kept');
is(status(ask(event('new', 'hello'))), 200, 'the same body under another id');
is(sql("SELECT key, note FROM q_hook JOIN q_job ON id = job ORDER BY job"), "/gh/same|\n/gh/new|replay?", '... is kept, and noted');
is(status(ask(event(undef, 'unnamed'))), 200, 'no id') for 1 .. 2;
is(sql("SELECT count(*), source, note, event LIKE '%" . sha256_hex('unnamed') . "' FROM q_hook WHERE event NOT IN ('same', 'new')"), '1|body|no-id|1', '... is one event by its body');
is(status(ask(event('same', 'hello', path => '/small'))), 200, 'the id of another path');
is(jobs(), 4, '... is another event');
run('qclaim', '-l', '1s', 'hooks');	# and dies
is(status(ask(event('same', 'hello'))), 200, 'again while it is worked on');
run('qwork', 'hooks', '--', 'true');
is(status(ask(event('same', 'hello'))), 200, 'again when it is done');
is(jobs(), 4, '... is known');

# ---- verifying again ---------------------------------------------------------

is(join('|', run('qhook', '--verify', 'table', 1, 2)), '0|' . join('', map { qq({"id":$_->[0],"path":"/gh","event":"$_->[1]","secret":"key","good":true,"why":null}\n) } [ 1, 'same' ], [ 2, 'new' ]) . '|', 'stored events are good');
is((run('sh', '-c', 'qls -j --state all hooks | qhook --verify table - | wc -l'))[1], "4\n", '... those of job records, too');
is(join('|', run('qhook', '--verify', 'table', 99)), "66||qhook: 99: no event of qhook, or its body is gone\n", 'no such event');
is((run('qhook', '--verify', 'table', 'x'))[0], 65, 'no id');
spew('key2', "another secret for it\n");
chmod 0600, 'key2';
table('/gh github key2 queue=hooks');
($code, $out, $err) = run('qhook', '--verify', 'table', 1);
is("$code|$err", '1|', 'another secret');
like($out, qr/^\{"id":1,"path":"\/gh","event":"same","secret":null,"good":false,"why":"[^"]+"\}\n\z/, '... is told');
table('/gh github key2,key queue=hooks', '/other github key2 queue=others');
is((run('qhook', '--verify', 'table', 1))[0], 0, 'both secrets');
is((run('qhook', '--verify', 'table', 4))[0], 1, 'a path that is gone');

# ---- a new table -------------------------------------------------------------

sub reload {	# and wait: what it says, or the status of a path
	my ($test) = @_;
	kill HUP => $pid;
	ok(until_ok($test), '... is read at HUP');
}
my $half = dial();
put($half, head('half', 'hello', path => '/small') . 'hel');
ok(until_ok(sub { status(ask(event('x', 'b', path => '/other'))) eq 404 }), 'a new table is not read by itself');
reload(sub { status(ask(event('x', 'b', path => '/other'))) eq 401 });
is(status(ask(event('x', 'b', path => '/small'))), 404, '... the old one is gone');
put($half, 'lo');
is(status(hear($half)), 200, '... but not for a request that began with it');
table('/gh nonsense');
reload(sub { slurp('err') =~ /^qhook: .*table.*; the old table stays$/m });
is(status(ask(event('x', 'b', path => '/other'))), 401, '... and if it is bad, the old one stays');
prepare();
reload(sub { status(ask(event('x', 'b', path => '/other'))) eq 404 });

# ---- a secret that is wrong --------------------------------------------------

{
	my $forged = event('forged', 'b', 'X-Hub-Signature-256' => 'sha256=' . '0' x 64);
	my $row = sub { sql("SELECT path, n, status FROM q_refused WHERE path = '/gh'") };

	is(status(ask($forged)), 401, 'refused');
	until_ok(sub { $row->() eq '/gh|1|401' });
	is($row->(), '/gh|1|401', '... is on record at once');
	my $alarm = sub { (run('qlate', '--check'))[1] =~ m{^qlate: (REFUSED /gh: .*\n.*\n.*)}m ? $1 : '' };	# the tests above refused others
	is($alarm->(), '', '... one of them is no alarm');
	is(status(ask($forged)), 401, 'refused again') for 1, 2;
	is($row->(), '/gh|1|401', '... a flood is not written one by one');
	is(status(ask("GET /gh HTTP/1.1\r\nHost: h\r\n\r\n")), 405, '... what is no webhook does not count');
	put(dial(), head('x', 'hello'));	# and goes: nor does that
	stop();
	is($row->(), '/gh|3|401', '... but at the end');
	like($alarm->(), qr{^REFUSED /gh: 3 webhooks were refused, and none was good since the first\n  since \S+ \([\w.]+\); the last at \S+ with 401: \S.*\n  next: is},
	    '... three are told');
	start();
	is(status(ask(event('x', 'b'))), 200, 'a good one');
	until_ok(sub { $row->() eq '' });
	is($row->(), '', '... ends that');
	is($alarm->(), '', '... and the alarm');
}

# ---- the end -----------------------------------------------------------------

$half = dial();
put($half, head('ending', 'hello') . 'hel');
my $waiting = dial();
is(status(ask(event('x', 'b', path => '/absent'))), 404, 'two connections, and one behind them');
kill TERM => $pid;
ok(until_ok(sub { !IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) }), 'TERM: no new connections');
is(undated(ask("GET /health HTTP/1.1\r\nHost: h\r\n\r\n", $waiting)), "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\nRetry-After: 5\r\n\r\n", '... health says so');
put($half, 'lo');
is(status(hear($half)), 200, '... who began is served');
is(stop('TERM'), 0, '... and then it ends with 0');
is(sql("SELECT count(*) FROM q_job WHERE key = '/gh/ending'"), 1, '... all stored');
start();
is(stop('INT'), 130, 'INT ends it as INT does');

# ---- sockets -----------------------------------------------------------------

unlink 'err';
start('-L', "unix:$dir/socket", 'table');
sub unix { IO::Socket::UNIX->new(Peer => "$dir/socket") }
ok(until_ok(sub { unix() }), 'a unix socket');
is(status(ask(event('unix', 'hello'), unix())), 200, '... is served');
is(join('|', run('qhook', '-L', "unix:$dir/socket", 'table')), "75||qhook: $dir/socket: there already, and somebody listens on it, or it is no socket\n", 'a second one');
is(status(ask(event('unix', 'hello'), unix())), 200, '... leaves the first alone');
stop('KILL');
ok(-S 'socket', 'kill -9 leaves it');
start('-L', "unix:$dir/socket", 'table');
ok(until_ok(sub { unix() }), '... and the next replaces it');
is(stop(), 0, 'TERM');
ok(!-e 'socket', '... takes it away');
spew('socket', 'precious');
is((run('qhook', '-L', "unix:$dir/socket", 'table'))[0], 75, 'a file in its place');
is(slurp('socket'), 'precious', '... stays');
unlink 'socket';

# As a service manager: the socket is descriptor 3.
sub hand {	# SOCKET, LISTEN_PID or undef: its own, LISTEN_FDS, ARGS: qhook, in the background
	my ($s, $for, $n, @args) = @_;
	$pid = fork // die;
	return if $pid;
	POSIX::dup2(fileno $s, 3);
	my $three = IO::Handle->new_from_fd(3, 'r') or die;	# which may be what it was, closed at exec
	fcntl $three, F_SETFD, 0 or die;
	@ENV{qw(LISTEN_PID LISTEN_FDS LISTEN_FDNAMES)} = ($for // $$, $n, 'hook');
	open STDIN, '<', '/dev/null';
	open STDERR, '>>', 'err';
	exec 'qhook', @args, 'table' or POSIX::_exit(127);
}
sub handed { unlink 'err'; hand(@_); waitpid $pid, 0; $pid = undef; return ($? >> 8) . '|' . slurp('err') }
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 100, ReuseAddr => 1) or die;
$port = $listener->sockport;
hand($listener, undef, 1);
is(status(ask(event('handed', 'hello'))), 200, 'a socket that was handed over');
my $fdinfo = slurp("/proc/$pid/fdinfo/3");	# for root alone, as its memory
$fdinfo = "flags:\t02000000" if $fdinfo eq '';
like($fdinfo, qr/^flags:\t02\d{6}$/m, '... which it does not hand on') or diag($fdinfo);
is(stop(), 0, '... and TERM');
my $later = dial();
put($later, event('later', 'hello'));
hand($listener, undef, 1);
is(status(hear($later)), 200, '... loses nobody who comes before the next one is there');
stop();
is(handed($listener, 1, 1), "64|qhook: no -L, and no socket was handed over; next: -L 127.0.0.1:PORT, or a .socket unit\n", 'handed to another process');
is(handed($listener, undef, 2), "78|qhook: 2 sockets were handed over; give it one\n", 'two of them');
is(handed($listener, undef, 1, '-L', '127.0.0.1:0'), "64|qhook: -L, and a socket was handed over: only one of them\n", '-L, too');
is(handed(dial(), undef, 1), "78|qhook: what was handed over is no listening socket; next: Accept=no, ListenStream=\n", 'a connection');
open my $null, '<', '/dev/null';
is(handed($null, undef, 1), "78|qhook: what was handed over is no listening socket; next: Accept=no, ListenStream=\n", 'no socket');
socketpair my $one, my $two, AF_UNIX, SOCK_STREAM, 0 or die;
if (!($pid = fork)) {
	open STDIN, '<&', $one or die;
	open STDERR, '>', 'err';
	exec 'qhook', 'table';
}
waitpid $pid, 0;
is(($? >> 8) . '|' . slurp('err'), "78|qhook: standard input is a socket, which is not looked at; next: a .socket unit with Accept=no, and no StandardInput=socket\n", 'inetd');

# ---- many connections --------------------------------------------------------

unlink 'err';
start('-v', '-L', '127.0.0.1:0', 'table');
my @idle = map { dial() } 1 .. 1000;
my $begin = time;
is(status(ask(event("beside-$_", 'hello'))), 200, 'beside 1,000 idle connections') for 1 .. 3;
cmp_ok(time - $begin, '<', 2, '... without delay');
is(slurp('err'), join('', map { "qhook: /gh: 200: job $_\n" } sql("SELECT group_concat(id, ' ') FROM q_job WHERE key GLOB '*beside*'") =~ /\d+/g), '-v tells each request');
my ($rss) = slurp("/proc/$pid/status") =~ /^VmRSS:\s*(\d+)/m;
cmp_ok($rss, '<', 40_000, '... and a connection costs little memory');
@idle = ();
stop();
{
	pipe my $from, my $to or die;
	if (!($pid = fork)) {
		open STDOUT, '>&', $to or die;
		open STDERR, '>', 'err';
		exec 'sh', '-c', 'ulimit -n 110; exec qhook -q -L 127.0.0.1:0 table';
	}
	close $to;
	(<$from> // '') =~ /:(\d+)$/ or die;
	$port = $1;
	@idle = map { my $s = dial(); select undef, undef, undef, 0.001; $s } 1 .. 150;
	is(status(ask(event('full', 'hello'))), 200, 'with as few descriptors as it may have');
	my $closed = grep { IO::Select->new($_)->can_read(0) } @idle;
	cmp_ok($closed, '>=', 80, "... those that said nothing make room ($closed)");
	ok(!IO::Select->new($idle[-1])->can_read(0), '... the oldest first');
	@idle = ();
	@idle = map { my $s = dial(); put($s, head('x', 'b', 'Content-Length' => 9)); select undef, undef, undef, 0.001; $s } 1 .. 150;
	my $begin = time;
	is(status(ask(event('crowd', 'hello'))), 200, 'among those whose bodies do not come');
	cmp_ok(time - $begin, '<', 3, '... without delay');
	is(status(hear($idle[0])), 503, '... the oldest makes room');
	@idle = ();
	is(status(ask(event('x', 'b', 'X-Hub-Signature-256' => undef))), 401, 'a refusal');
	stop();
	is(slurp('err'), '', '... of which -q says nothing');
}

# ---- large ones --------------------------------------------------------------

unlink 'err';
start();
my $mega = 26_214_400;
my $large = join '', map { chr($_ & 255) } 1 .. 4096;
$large = substr($large x 6400, 0, $mega);
is(status(ask(event('large', $large, path => '/large'))), 200, 'a body of 25 MiB');
is(status(ask(event('larger', $large . 'x', path => '/large'))), 413, '... and a byte');
my $id = sql("SELECT id FROM q_job WHERE key = '/large/large'");
is((run('sh', '-c', "qls --raw $id | sha256sum"))[1], sha256_hex($large) . "  -\n", '... is kept as it was');
run('qcancel', grep { $_ != $id } split /\n/, sql("SELECT id FROM q_job WHERE state = 'pending'"));
is((run('qwork', 'hooks', '--', 'sh', '-c', 'sha256sum >got.$Q_ID; exit 75'))[0], 0, '... for a worker');
is(slurp("got.$id"), sha256_hex($large) . "  -\n", '... whole');
run('qcancel', $id);
is(status(ask(event('record', substr($large, 0, 7_000_000), path => '/large'))), 200, 'one of 7 MB, 9 MB as a record');
is(join('|', run('bash', '-o', 'pipefail', '-c', 'qclaim -c 10 hooks | qdone -')), '0||', '... is settled by it');
is(sql("SELECT state FROM q_job WHERE key = '/large/record'"), 'done', '... indeed');
{	# three of these are more than all bodies may take together
	my @parts = map { my $s = dial(); put($s, head("part-$_", $large, path => '/large')); $s } 1 .. 3;
	my @done = map { put($_, substr $large, 0, $mega - 1) } @parts[0, 1];
	ok(until_ok(sub { slurp("/proc/$pid/status") =~ /^VmRSS:\s*(\d+)/m; $1 > 50_000 }), 'two large bodies');
	put($parts[2], substr $large, 0, $mega - 1);
	is(status(hear($parts[2])), 503, '... leave no room for a third');
	is(status(ask(event('small', 'hello'))), 200, '... but for a small one');
	put($parts[0], substr $large, -1);
	is(status(hear($parts[0])), 200, '... and are taken themselves');
	close $_ for @parts;
}
stop();
start();
{	# to the last byte, as the space grows by doubling
	my @parts = map { my $s = dial(); put($s, head("x", $large, path => '/large') . substr $large, 0, 9_000_000); $s } 1 .. 4;
	my ($rss, $last) = 0;
	ok(until_ok(sub { sleep 0.1; ($last, $rss) = ($rss, slurp("/proc/$pid/status") =~ /^VmRSS:\s*(\d+)/m); $rss > 35_000 && $rss == $last }), 'four bodies that fill it to the last byte');
	is(status(ask(event('larger', 'x' x 16385))), 503, '... leave no room');
	is(status(ask(event('small-2', 'x' x 16384))), 200, '... but for 16 KiB');
}
stop();
unlink 'err';
start();
{	# what libmicrohttpd alone reads
	my %chunked = ('Content-Length' => undef, 'Transfer-Encoding' => 'chunked');
	is(status(ask(head('x', 'abc', %chunked) . "3\r\nabcd\r\n0\r\n\r\n")), 400, 'a chunk that is too long');
	is(slurp('err'), "qhook: /gh: 408: the connection ended before the body, or the form of it is wrong\n", '... is told');
	my $cpu = sub { my @f = split ' ', slurp("/proc/$pid/stat"); ($f[13] + $f[14]) / POSIX::sysconf(POSIX::_SC_CLK_TCK()) };
	my $s = dial();
	put($s, head('x', 'abc', %chunked) . '3;' . 'x' x 100_000);
	sleep 0.1;
	my ($time, $before) = (time, $cpu->());
	sleep 0.1 while time - $time < 1 && $cpu->() - $before < 0.3;
	cmp_ok($cpu->() - $before, '<', 0.3, 'a line that does not fit costs no time');
}
stop();
undef $large;

# ---- the file is busy --------------------------------------------------------

unlink 'err';
$ENV{Q_BUSY_TIMEOUT} = '100ms';
start();
delete $ENV{Q_BUSY_TIMEOUT};
is(status(ask(event('before', 'hello'))), 200, 'an event');
open my $holder, '|-', "sqlite3 '$ENV{Q_DB}' >held" or die;
$holder->autoflush(1);
print $holder "BEGIN IMMEDIATE;\nSELECT 1;\n";
ok(until_ok(sub { -s 'held' }), 'the file is busy');
is(undated(ask(event('busy', 'hello'))), "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\nRetry-After: 5\r\n\r\n", '... 503');
is(status(ask(event('before', 'hello'))), 200, '... what is known is known');
is(status(ask("GET /health HTTP/1.0\r\n\r\n")), 503, '... and health says so');
is(status(ask(event('busy', 'hello'))), 503, '... again');
close $holder;
is(status(ask(event('busy', 'hello'))), 200, 'and then not any more');
is(status(ask("GET /health HTTP/1.0\r\n\r\n")), 200, '... and health says so');
like(slurp('err'), qr/\Aqhook: [^\n]*busy for 100ms[^\n]*; answering 503 until that has changed\nqhook: [^\n]*: can be written again; 2 requests were answered 503\n\z/, '... each told once');

# ---- the file is another -----------------------------------------------------

unlink 'err';
mkdir 'old';
rename "q.db$_", "old/q.db$_" for '', '-wal', '-shm', '-lock', '-reserve';
system('qinit') == 0 or die;
is(status(ask(event('moved', 'hello'))), 503, 'a file that was replaced');
is(status(ask(event('moved', 'hello'))), 200, '... is opened again');
is(sql('SELECT key FROM q_job'), '/gh/moved', '... and written');
stop();

# ---- kill -9 -----------------------------------------------------------------

# Senders that repeat what was not answered, as they do; after all, each event is there, once, and what was acknowledged at
# the moment of the kill was.
my ($kills, $senders) = ($ENV{KILLS} // 10, 8);
unlink glob 'q.db*';
system('qinit') == 0 or die;
$port = $listener->sockport;
hand($listener, undef, 1, '-q');
my @senders;
for my $n (1 .. $senders) {
	my $p = fork // die;
	push @senders, $p;
	next if $p;
	open my $acked, '>>', "acked.$n" or die;
	$acked->autoflush(1);
	my $i = 0;
	while (!-e 'enough') {
		my $text = event("$n-" . ++$i, "body $i of $n" . 'x' x ($i % 3000));
		until (status(eval { ask($text) } // '') eq 200) { last if -e 'enough'; sleep 0.005 }
		print $acked "/gh/$n-$i\n" if !-e 'enough';
		ask($text) if $i % 7 == 0;	# some come twice
	}
	POSIX::_exit(0);
}
my $lost = 0;
for (1 .. $kills) {
	my $size = sub { my $n = 0; $n += (-s "acked.$_") // 0 for 1 .. $senders; $n };
	my $before = $size->();
	until_ok(sub { $size->() > $before + 200 });
	sleep rand 0.05;
	stop('KILL');
	$lost += judge(1);
	hand($listener, undef, 1, '-q');
}
# How many acknowledged events are not in the file, or twice.
sub judge {
	my ($running, $file) = @_;
	my @acked = map { split /\n/, slurp("acked.$_") =~ s/[^\n]*\z//r } 1 .. $senders;
	my %there;
	$there{$_}++ for split /\n/, sql('SELECT key FROM q_job', $file);
	return grep { ($there{$_} // 0) != 1 } @acked;
}
spew('enough', '');
waitpid $_, 0 for @senders;
stop();
my $acked = map { split /\n/, slurp("acked.$_") } 1 .. $senders;
is($lost, 0, "after $kills kills, whatever was acknowledged ($acked) was there, once");
is(scalar(judge(0)), 0, '... and is');
is(sql('SELECT count(*) - count(DISTINCT key) FROM q_job'), 0, '... nothing twice');
is(sql('SELECT count(*) FROM q_job WHERE id NOT IN (SELECT job FROM q_hook)'), 0, '... each with its record');
is(sql('PRAGMA integrity_check'), 'ok', '... and the file is sound');
cmp_ok($acked, '>=', 10 * $kills, '... under load');
system("sqlite3 q.db 'VACUUM INTO \"copy.db\"' && sqlite3 copy.db 'DELETE FROM q_job WHERE id = 7'") == 0 or die;
cmp_ok(scalar(judge(0, 'copy.db')), '>=', 1, 'the control: one that is lost is missed');

# ---- what another process has written ----------------------------------------

# It may have been killed before its sync: what is known is synced, too, before that is answered.
SKIP: {
	spew('sync.c', <<'END');
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
int fdatasync(int fd) { return access("fail", F_OK) == 0 ? errno = EIO, -1 : (int)syscall(SYS_fdatasync, fd); }
int fsync(int fd) { return fdatasync(fd); }
END
	skip 'a sanitizer is to be loaded first', 3 if slurp("$top/cmd/qhook") =~ /__asan_init/;
	skip 'no compiler', 3 if system('cc -shared -fPIC -o sync.so sync.c 2>/dev/null') != 0;
	stop() if $pid;
	system('qadd -q -k /gh/theirs hooks x') == 0 or die;
	$ENV{LD_PRELOAD} = "$dir/sync.so";
	start();
	delete $ENV{LD_PRELOAD};
	spew('fail', '');
	is(status(ask(event('theirs', 'x'))), 503, 'known, and a disk that cannot sync it');
	unlink 'fail';
	is(status(ask(event('theirs', 'x'))), 200, '... later it can');
	is(sql("SELECT count(*) FROM q_job WHERE key = '/gh/theirs'"), 1, '... once');
	stop();
}

# ---- the disk is full --------------------------------------------------------

SKIP: {
	mkdir 'disk';
	skip 'only root can mount small disks', 1 if !@ARGV || system('mount -t tmpfs -o size=4m none disk 2>/dev/null') != 0;
	$ENV{Q_DB} = "$dir/disk/q.db";
	unlink 'err';
	system('qinit') == 0 or die;
	start();
	my ($stored, $i) = (0, 0);
	while ($i++ < 1000) {
		my $status = status(ask(event("disk-$i", "$i" . 'x' x 20_000)));
		last if $status ne 200;
		$stored++;
	}
	cmp_ok($stored, '>', 50, 'a disk fills');
	is(burst(10, event('more', 'x' x 1000)), '10 x 503', '... 503 for all');
	system('cat /dev/zero >disk/fill 2>/dev/null');
	is(status(ask(event('more', 'x'))), 503, '... to the last byte');
	is(status(ask(event('disk-1', '1' . 'x' x 20_000))), 200, '... what is known is known');
	is(status(ask("GET /health HTTP/1.0\r\n\r\n")), 503, '... and health says so');
	is(jobs(), $stored, '... and all that was acknowledged is there');
	unlink 'disk/fill';
	system('mount -o remount,size=16m disk') == 0 or die;
	is(status(ask(event('more', 'x'))), 200, 'with room it goes on by itself');
	is(status(ask("GET /health HTTP/1.0\r\n\r\n")), 200, '... and health says so');
	is(jobs(), $stored + 1, '... nothing was lost');
	is(scalar(() = slurp('err') =~ /answering 503/g), 1, '... told once');
	is(sql('PRAGMA integrity_check'), 'ok', '... the file is sound');
	stop();
	system('umount -l disk');
}
done_testing;
