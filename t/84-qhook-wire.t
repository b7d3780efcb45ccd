#!/usr/bin/perl
# qhook on the wire: what is no request, slow ones, large ones, and those that two readers would read as two things.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Socket;
use Test::More;
use Time::HiRes qw(sleep time);
BEGIN { my $lib = abs_path(dirname($0)) . '/qhook.pl'; require $lib }
our ($pid, $secret);


prepare();
start();

# ---- the slow ones, beside everything else -----------------------------------

my %slow;
sub slowly {	# NAME WANT FROM TO CODE: a connection that ends so after so many seconds
	my ($name, $want, $from, $to, $code) = @_;
	my $p = fork // die;
	if ($p == 0) {
		my ($start, $s) = (time, dial());
		my $answer = $code->($s);
		my $took = time - $start;
		spew("slow.$name", status($answer) !~ /^(?:$want)$/ ? status($answer) . ", not $want" : $took < $from || $took > $to ? "after $took s" : 'ok');
		POSIX::_exit(0);
	}
	$slow{$p} = $name;
}
# A piece each 100 ms, until the connection ends or the pieces do.
sub drip {
	my ($s, @pieces) = @_;
	my $answer = '';
	for (@pieces) {
		put($s, $_) or last;
		if (IO::Select->new($s)->can_read(0.1)) {
			my $n = sysread $s, my $part, 4096;
			return $answer if !$n;
			$answer .= $part;
			last;
		}
	}
	return $answer . (hear($s) // return undef);
}
my $long = event('slow', 'x' x 500);
slowly('idle', 'closed', 4.8, 6.5, sub { hear($_[0]) });
slowly('head byte by byte', 'closed', 4.8, 6.5, sub { drip($_[0], split //, $long) });
slowly('head that stops', 'closed', 4.8, 6.5, sub { put($_[0], substr $long, 0, 50); hear($_[0]) });
slowly('body that stops', '408', 9.6, 11.5, sub { put($_[0], substr $long, 0, -1); hear($_[0]) });
slowly('body byte by byte', '408', 9.6, 11.5, sub { my $head = head('slow', 'x' x 500); put($_[0], $head); drip($_[0], split //, 'x' x 500) });
slowly('chunk byte by byte', '408', 9.6, 11.5, sub { my $b = 'x' x 500; put($_[0], head('slow', $b, 'Content-Length' => undef, 'Transfer-Encoding' => 'chunked')); drip($_[0], split //, chunks($b, 100)) });
slowly('half closed too early', 'closed|408', 0, 11.5, sub { put($_[0], substr event('slow', 'hello'), 0, -2); shutdown $_[0], 1; hear($_[0]) });
slowly('HTTP 0.9', 'closed', 4.8, 6.5, sub { put($_[0], "GET /health\r\n"); hear($_[0]) });
slowly('TLS', 'closed', 4.8, 6.5, sub { put($_[0], "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" . 'r' x 500); hear($_[0]) });
slowly('slow but in time', '200', 2, 5, sub { drip($_[0], unpack '(a20)*', event('in-time', 'y' x 300)) });

# ---- one request, one answer -------------------------------------------------

is(undated(ask(event('one', 'hello'))), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 'an event');
is(sql("SELECT key, type, queue, CAST(body AS TEXT) FROM q_job JOIN q_body ON id = job WHERE key GLOB '*one'"), '/gh/one|push|hooks|hello', '... is a job');
my $bytes = join '', map { chr } 0 .. 255;
is(status(ask(event('bytes', $bytes x 3))), 200, 'any bytes');
sub same { my ($id, $body, $name) = @_; ok(lc sql("SELECT hex(body) FROM q_job JOIN q_body ON id = job WHERE key = '/gh/$id'") eq unpack('H*', $body), $name) }
same('bytes', $bytes x 3, '... are kept as they are');
is(status(ask(event('empty', ''))), 200, 'an empty body');
is(status(ask(event('no-length', '', 'Content-Length' => undef))), 200, '... of no length');
is(status(ask(event('old', 'hello', version => '1.0', Host => undef))), 200, 'HTTP/1.0');
for my $size (1, 7, 5000) {
	my $body = join '', map { chr($_ % 251) } 1 .. 5000;
	is(status(ask(head("chunks-$size", $body, 'Content-Length' => undef, 'Transfer-Encoding' => 'chunked') . chunks($body, $size))), 200, "chunks of $size");
	same("chunks-$size", $body, '... are one body');
}
is(status(ask(head('trailer', 'abc', 'Content-Length' => undef, 'Transfer-Encoding' => 'chunked') . "3;x=y\r\nabc\r\n0\r\nX-Hub-Signature-256: no\r\n\r\n")), 200, 'a trailer changes nothing');
{
	my $s = dial();
	my $text = event('pieces', 'hello');
	for (split //, $text) { put($s, $_); sleep 0.001 }
	is(status(hear($s)), 200, 'byte by byte');
	$s = dial();
	put($s, event('half', 'hello'));
	shutdown $s, 1;
	is(status(hear($s)), 200, 'half closed');
	$s = dial();
	put($s, head('continue', 'hello', Expect => '100-continue'));
	ok(IO::Select->new($s)->can_read(5), '100-continue');
	sysread $s, my $part, 4096;
	is($part, "HTTP/1.1 100 Continue\r\n\r\n", '... is said');
	put($s, 'hello');
	is(status(hear($s)), 200, '... and the rest is taken');
	is(status(ask(head('continue', 'x' x 2000, path => '/small', Expect => '100-continue'))), 413, '... and not said of what is too long');
	is(status(ask(event('magic', 'hello', Expect => 'magic'))), 417, 'another expectation');
	$s = dial();
	put($s, event('pipe-1', 'hello') . event('pipe-2', 'hello') x 50);
	my $answer = hear($s);
	is(scalar(() = $answer =~ m{HTTP/1\.1}g), 1, 'a second request on a connection has no answer');
	is(status($answer), 200, '... the first has');
	is(sql("SELECT count(*) FROM q_job WHERE key GLOB '*pipe*'"), 1, '... and is all there is');
	$s = dial();
	put($s, event('gone', 'hello'));
	setsockopt $s, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0;
	close $s;
	is(status(ask(event('next', 'hello'))), 200, 'one that does not wait for its answer stops nobody');
}

# ---- what is refused ---------------------------------------------------------

sub refused {	# STATUS REQUEST NAME
	my ($want, $text, $name) = @_;
	my $answer = ask($text);
	is(status($answer), $want, $name);
	unlike($answer // '', qr/secret|signature|libmicrohttpd|^Server/mi, '... and nothing is given away');
}
refused(404, event('x', 'b', path => $_), "path $_") for '/', '/other', '/gh/', '//gh', '/gh/..', '/%67h', '/gh%00', '/gh%2f', '/GH', '/healt', '/health/', '/./gh', '/gh;a';
refused(400, event('x', 'b', path => $_), "path $_") for 'http://h/gh', 'gh', '*', '/gh#a', "/gh\0", "/g\x80h", "/gh b";
like(ask(event('query', 'hello', path => '/gh?a=b&c=%20')), qr/^HTTP\S+ 200/, 'a query is no other path');
is(sql("SELECT target FROM q_hook WHERE event = 'query'"), '/gh?a=b&c=%20', '... and kept');
for my $method (qw(GET HEAD PUT DELETE OPTIONS TRACE CONNECT post)) {
	refused(405, event('x', 'b') =~ s/^POST/$method/r, "method $method");
}
like(ask("GET /gh HTTP/1.1\r\nHost: h\r\n\r\n"), qr/^Allow: POST\r$/m, '... which are allowed is said');
like(ask("POST /health HTTP/1.1\r\nHost: h\r\n\r\n"), qr/^HTTP\S+ 405 .*^Allow: GET, HEAD\r$/ms, '... of another path, too');
refused(415, event('x', 'b', 'Content-Encoding' => 'gzip'), 'Content-Encoding');
refused(401, event('x', 'b', 'X-Hub-Signature-256' => $_), 'signature ' . ($_ // 'absent')) for undef, '', 'sha256=', 'sha256=' . '0' x 64, 'sha1=' . '0' x 40;
refused(401, head('x', 'b') . 'c', 'another body');
refused(413, event('x', 'b' x 1001, path => '/small'), 'a body that is too long');
refused(413, head('x', 'b', path => '/small', 'Content-Length' => '999999999999999'), '... as it says');
refused(413, head('x', 'b' x 5000, path => '/small', 'Content-Length' => undef, 'Transfer-Encoding' => 'chunked') . chunks('b' x 5000, 400), '... in chunks');
is(status(ask(event('fits', 'b' x 1000, path => '/small'))), 200, 'as long as it may be');
{
	my $body = 'b' x 2_000_000;	# what comes behind a refusal is read, or the answer would be lost
	refused(413, event('x', $body), 'a body of 2 MB');
	refused(413, head('x', $body, 'Content-Length' => undef, 'Transfer-Encoding' => 'chunked') . chunks($body, 65536), '... in chunks');
}
refused(400, head('x', 'b' x 60000, 'Content-Length' => undef, 'Transfer-Encoding' => 'chunked') . chunks('b' x 60000, 1), 'a body of tiny chunks');
refused(400, head('x', 'abc', 'Content-Length' => undef, 'Transfer-Encoding' => 'chunked') . "${_}\r\nabc\r\n0\r\n\r\n", "a chunk of size '$_'") for 'x', '-3', '';

# Smuggling: a second request in what one of two readers takes for the body of the first.
my $second = event('smuggled', 'hello');
my %lax = ('Content-Length' => undef);
refused(400, head('x', 'b', 'Transfer-Encoding' => 'chunked', 'Content-Length' => 4) . "0\r\n\r\n$second", 'CL.TE');
refused(400, head('x', 'b', 'Transfer-Encoding' => 'chunked', 'Content-Length' => length $second) . chunks($second, 10000), 'TE.CL');
refused(400, head('x', 'b', %lax, 'Transfer-Encoding' => $_) . "0\r\n\r\n$second", "Transfer-Encoding: $_") for 'gzip', 'gzip, chunked', 'chunked, chunked', 'xchunked', "chunked\x0b", 'identity';
refused(400, head('x', 'b', %lax, $_ => 'chunked') . "0\r\n\r\n$second", "header '$_'") for 'Transfer-Encoding ', " Transfer-Encoding", "Transfer-Encoding\0";
refused(400, head('x', 'b', 'content-length' => 0) . $second, 'two lengths');
refused(400, head('x', 'b', 'Content-length' => 1) . $second, 'one length twice');
refused(400, head('x', 'b', 'Content-Length' => $_) . "b$second", "length $_") for '+1', '1,1', '0x1', '1 1', '18446744073709551617';
refused(400, head('x', 'b', %lax, 'X' => "y\r\n z"), 'a folded line');
refused(400, event('x', 'b', 'X' => "y\nTransfer-Encoding: chunked"), 'a bare LF');
refused(400, event('x', 'b', 'X' => "y\0z"), 'NUL');
refused(400, event('x', 'b', 'X' => "y\rz"), 'a bare CR');
refused(400, event('x', 'b') =~ s/\r\n/\n/gr, 'LF alone');
refused(400, event('x', 'b', Host => undef), 'no Host');
refused(400, event('x', 'b', host => 'other'), 'two Hosts');
refused(400, event('x', 'b', 'x-github-delivery' => 'y'), 'two ids');
refused(400, event('x', 'b', 'x-hub-signature-256' => 'sha256=' . '0' x 64), 'two signatures');
refused(400, "\r\n" . event('x', 'b'), 'an empty line before it');
refused(400, "GET /health HTTP/$_\r\nHost: h\r\n\r\n", "HTTP/$_") for '2.0', '1.2', '0.9';
refused(400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 'HTTP/2');
is(sql("SELECT count(*) FROM q_job WHERE key GLOB '*smuggled*' OR key GLOB '*/x'"), 0, 'nothing of this was kept, and nothing smuggled');

# How large a head may be.
for my $count (59, 60) {	# with the five of event()
	is(status(ask(event("many-$count", 'b', map { ("X-$_" => $_) } 1 .. $count))), $count == 59 ? 200 : 431, 5 + $count . ' headers');
}
my $rest = 16384 - length head('large', 'b', 'X' => '');
is(status(ask(event('large', 'b', 'X' => 'x' x $rest))), 200, 'a head of 16 KiB');
refused(431, event('x', 'b', 'X' => 'x' x ($rest + 1 + length('large') - 1)), '... and a byte');
refused(431, "GET /" . 'x' x 100_000, 'a line without an end');
{
	my $head = head('full', 'b', map { ("X-$_" => '') } 1 .. 59);
	my $each = int((16384 - length $head) / 59);
	is(status(ask(event('full', 'b', map { ("X-$_" => 'x' x $each) } 1 .. 59))), 200, '64 headers in 16 KiB');
}

refused(431, event('x', 'b', path => '/gh?' . join '&', 1 .. 65), '65 parameters');
refused(431, event('x', 'b', Cookie => join '; ', map { "c$_=x" } 0 .. 65), '66 cookies');
is(status(ask(event('split', 'b', path => '/gh?' . join('&', 1 .. 64), Cookie => join '; ', map { "c$_=x" } 1 .. 64))), 200, '64 of each');

# ---- health ------------------------------------------------------------------

my $rows = "SELECT * FROM q_job, q_meta WHERE key <> '/gh/in-time'";	# which is still on its way
my $before = sql($rows);
is(undated(ask("GET /health HTTP/1.1\r\nHost: h\r\n\r\n")), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 'health');
is(undated(ask("HEAD /health HTTP/1.0\r\n\r\n")), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", '... by HEAD');
is(sql($rows), $before, '... writes nothing');

# ---- an answer without a body ------------------------------------------------

SKIP: {
	skip 'no openssl(1) with Ed25519', 1 if system('openssl genpkey -algorithm ed25519 -out pair 2>/dev/null') != 0;
	my $time = time;
	spew('message', int($time) . '{"type":0}');
	chomp(my $public = `openssl pkey -in pair -pubout -outform DER | tail -c 32 | od -An -v -tx1 | tr -d ' \\n'`);
	chomp(my $signature = `openssl pkeyutl -sign -inkey pair -rawin -in message | od -An -v -tx1 | tr -d ' \\n'`);
	spew('public', "$public\n");
	chmod 0600, 'public';
	table('/gh github key queue=hooks', '/ping discord public queue=hooks');
	kill HUP => $pid;
	ok(until_ok(sub { status(ask(event('x', 'b', path => '/ping'))) ne 404 }), 'a path that is answered with 204');
	is(undated(ask(head('x', '{"type":0}', path => '/ping', 'X-Signature-Ed25519' => $signature, 'X-Signature-Timestamp' => int $time) . '{"type":0}')),
	    "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", '... which has no length');
}

# ---- the slow ones, again ----------------------------------------------------

while (%slow) {
	my $p = wait;
	last if $p == -1;
	my $name = delete $slow{$p} // next;
	is(slurp("slow.$name"), 'ok', $name);
}
is(sql("SELECT count(*) FROM q_job WHERE key = '/gh/slow'"), 0, 'none of what came too late is there');
my $fds = () = glob "/proc/$pid/fd/*";
cmp_ok($fds, '<', 20, 'no connection is left');
is(stop(), 0, 'TERM: exit 0');
unlike(slurp('err'), qr/\Q$secret\E|sha256=|hello|a=b/, 'neither secrets nor bodies nor queries are told');
my @told = split /\n/, slurp('err');
cmp_ok(scalar @told, '<=', 13, 'a few refusals are told');
like($told[-1], qr/^qhook: \d+ more requests were refused$/, '... and the rest counted') or diag(slurp('err'));
done_testing;
