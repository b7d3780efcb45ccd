#!/usr/bin/perl
# qcall: what it sends, what it never sends, and what an answer makes of the job.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use Test::More;

my $top = abs_path(dirname($0) . '/..');
my $dir = tempdir('q-test.XXXXXX', TMPDIR => 1, CLEANUP => 1);
delete @ENV{grep { /^Q_|_proxy$|_PROXY$/ } keys %ENV};
delete @ENV{qw(XDG_STATE_HOME NO_COLOR COLUMNS)};
@ENV{qw(PATH TZ LC_ALL HOME Q_DB Q_NOW Q_BOOT)} = ("$top/cmd:$ENV{PATH}", 'UTC', 'C', $dir, "$dir/q.db", '2026-06-02T12:00:00Z', 'b1:1000000');
my $NOW = 1780401600000;
umask 022;
chdir $dir or die "$dir: $!";
my @children;
my $main = $$;
END { if ($$ == $main) { my $status = $?; kill 'TERM', -$_ for @children; waitpid $_, 0 for @children; chdir '/'; $? = $status } }

sub slurp { my ($file) = @_; open my $f, '<', $file or return ''; local $/; my $text = <$f>; $text // '' }
sub spew { my ($file, $text, $mode) = @_; unlink $file; open my $f, '>', $file or die "$file: $!"; print $f $text; close $f; chmod $mode // 0600, $file }
sub sql { my ($q) = @_; my $out = `sqlite3 -readonly q.db "$q"`; chomp $out; $out }

# ---- a server: all bytes that reach it are in its log -----------------------------------------------

sub serve {
	my ($log, $reply) = @_;
	spew($log, '');
	my $s = IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.1', ReuseAddr => 1) or die "listen: $!";
	my $pid = fork // die "fork: $!";
	if ($pid == 0) {
		setpgrp;
		while (1) {
			my $c = $s->accept or next;
			my $in = '';
			open my $f, '>>', $log or die;
			while ($in !~ /\r\n\r\n/ && sysread $c, my $more, 65536) { $in .= $more }
			my ($len) = $in =~ /^content-length: *(\d+)/mi;
			my $want = $in =~ /\r\n\r\n/ ? $+[0] + ($len // 0) : 0;
			while (length $in < $want && sysread $c, my $more, 65536) { $in .= $more }
			syswrite $f, "$in\n";
			close $f;
			my ($path) = $in =~ /^\S+ (\S+)/;
			print $c $reply->($path // '', $in);
			close $c;
		}
	}
	push @children, $pid;
	return $s->sockport;
}
sub answer { my ($status, $body, @h) = @_; join "\r\n", "HTTP/1.1 $status X", 'Date: Tue, 02 Jun 2026 12:00:00 GMT', 'Connection: close', 'Content-Length: ' . length $body, @h, '', $body }

my $evil = serve('evil.log', sub { answer(200, 'evil') });
my $base = 'http://127.0.0.1:65535';	# as long as the right one, for the server
my $port = serve('log', sub {
	my ($path, $in) = @_;
	sleep 1 if $path eq '/v1/slow';
	return answer(200, "a\0b") if $path eq '/v1/nul';
	return answer($1, 'the body') if $path =~ m{^/v1/s/(\d+)$};
	return answer($1, 'later', "Retry-After: $2") if $path =~ m{^/v1/after/(\d+)/(.*)$};
	return answer(403, 'slow down', 'X-RateLimit-Remaining: 0', 'X-RateLimit-Reset: 1780401660') if $path eq '/v1/spent';
	return "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort" if $path eq '/v1/cut';
	return answer(302, '', "Location: http://127.0.0.1:$evil/stolen") if $path eq '/v1/to-evil';
	return answer(302, '', 'Location: /admin') if $path eq '/v1/to-admin';
	return answer(302, '', 'Location: /v1/%2e%2e/admin') if $path eq '/v1/to-dots';
	return answer(302, '', 'Location: /v1/ok') if $path eq '/v1/to-ok';
	my $secret = ($in =~ /^Authorization: Bearer (.*)\r/m)[0] // '';
	return answer(302, '', "Location: /v1/s/404/$secret") if $path eq '/v1/to-echo';
	return answer(302, '', "Location: /v1/s/304/$secret") if $path eq '/v1/to-echo-304';
	return answer(302, '', 'Location: /v1/' . 'a' x (165 - length $base) . "/$secret") if $path eq '/v1/to-long';
	return answer($1, 'the body') if $path =~ m{^/v1/s/(\d+)/s3cret};
	return "HTTP/1.1 429 X\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-A: b\r\nHTTP/1.1 200 OK\r\n\r\n" if $path eq '/v1/odd';
	return answer(400, 'you sent ' . ($in =~ /^Authorization: (.*)\r/m)[0]) if $path eq '/v1/echo';
	return answer(200, 'fine');
});
$base = "http://127.0.0.1:$port";

# qcall: exit status, output, errors; then what the server was sent.
my ($code, $out, $err);
sub call {
	my ($payload, @args) = @_;
	spew($_, '') for qw(log evil.log);
	spew('payload', $payload);
	my $pid = fork // die;
	if ($pid == 0) {
		open STDIN, '<', 'payload'; open STDOUT, '>', 'out'; open STDERR, '>', 'err';
		exec 'qcall', '--insecure-http', @args or die;
	}
	waitpid $pid, 0;
	($code, $out, $err) = ($? & 127 ? 128 + $? : $? >> 8, slurp('out'), slurp('err'));
	return $code;
}
sub sent { slurp('log') =~ s/\r//gr }
sub nothing_sent { my ($name) = @_; is(slurp('log') . slurp('evil.log'), '', "... and nothing was sent") }
sub url { my ($path, $more) = @_; "{\"url\":\"$base$path\"" . ($more ? ",$more" : '') . '}' }

# ---- options ---------------------------------------------------------------------------------------

spew('key', "s3cret-0123\n");
spew('sign', "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
spew('open', "s3cret-0123\n", 0644);
spew('group', "s3cret-0123\n", 0640);
spew('empty', "\n");
spew('lines', "s3cret\nX-Other: 1\n");
spew('short', 'whsec_AAAA');
spew('loose', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx=');
for (
	[64, 'an operand', "unexpected operand 'x'; the request is read from standard input; see 'qcall --help'", 'x'],
	[64, 'no time', "--timeout: from 1ms to 1d; see 'qcall --help'", '--timeout', '0'],
	[64, 'a prefix that is no URL', "--allow: not a URL: write https://HOST/PATH; see 'qcall --help'", '--allow', 'api.example.com/v1'],
	[64, 'a prefix with a user', "--allow: no user name or password in a URL; see 'qcall --help'", '--allow', 'https://me@api.example.com/v1'],
	[64, 'a prefix with a query', "--allow: a prefix ends before ? and #; see 'qcall --help'", '--allow', 'https://api.example.com/?x'],
	[64, 'no prefix', "--auth: write NAME=FILE\@https://HOST/PATH/; see 'qcall --help'", '--auth', 'partner=key'],
	[64, 'no file', "--auth: write NAME=FILE\@https://HOST/PATH/; see 'qcall --help'", '--auth', 'partner=@https://api.example.com/'],
	[64, 'no name', "--auth: write NAME=FILE\@https://HOST/PATH/; see 'qcall --help'", '--auth', '=key@https://api.example.com/'],
	[78, 'a secret that is not there', '--auth: none: No such file or directory', '--auth', 'p=none@https://api.example.com/'],
	[78, 'a directory', '--auth: .: is not a regular file', '--auth', 'p=.@https://api.example.com/'],
	[77, 'a secret that all can read', '--auth: open: can be read or written by others; next: chmod 600', '--auth', 'p=open@https://api.example.com/'],
	[77, 'a secret that the group can read', '--auth: group: can be read or written by others; next: chmod 600', '--auth', 'p=group@https://api.example.com/'],
	[78, 'an empty secret', '--auth: empty: is empty', '--auth', 'p=empty@https://api.example.com/'],
	[78, 'a secret of two lines', '--auth: lines: is not one line of printable ASCII', '--auth', 'p=lines@https://api.example.com/'],
	[78, 'not a signing secret', '--sign: key: does not begin with whsec_', '--sign', 'key'],
	[78, 'a signing secret too short', '--sign: short: is not whsec_ and the base64 of 24 to 64 bytes', '--sign', 'short'],
	[78, 'loose base64', '--sign: loose: is not whsec_ and the base64 of 24 to 64 bytes', '--sign', 'loose'],
	[77, 'a signing secret that all can read', '--sign: open: can be read or written by others; next: chmod 600', '--sign', 'open'],
) {
	my ($want, $name, $says, @args) = @$_;
	is(call(url('/v1/ok'), @args), $want, $name);
	is($err, "qcall: $says\n", '... says so');
	nothing_sent();
}
is(system('qcall', '--auth', 'p=key@http://api.example.com/') >> 8, 64, 'http needs leave: a prefix') if open(STDERR, '>', '/dev/null');

# ---- payloads that are refused ----------------------------------------------------------------------

for (
	['', 'not JSON at byte 1: ', 'nothing'],
	['[]', 'not a JSON object', 'an array'],
	['{"url":"x"} {}', 'not JSON at byte 13: ', 'two values'],
	['{}', '"url" is missing', 'no url'],
	['{"url":null}', '"url" is missing', 'null'],
	['{"url":7}', '"url" must be a string', 'a number'],
	['{"url":"https://a/\u0000"}', '"url" has a NUL byte', 'a NUL'],
	['{"url":"https://a/","url":"https://b/"}', 'a name is given twice', 'two urls'],
	['{"url":"https://a/","\u0075rl":"https://b/"}', 'a name is given twice', '... one of them escaped'],
	['{"url":"https://a/","methd":"POST"}', q(unknown member 'methd'; the nearest is "method"), 'a mistyped member'],
	['{"url":"https://a/","retries":3}', q(unknown member 'retries'; there are url, method, headers, body, timeout, auth), 'an unknown one'],
	['{"url":"ftp://a/"}', '"url": not a URL: write https://HOST/PATH', 'ftp'],
	['{"url":"file:///etc/passwd"}', '"url": not a URL: write https://HOST/PATH', 'file'],
	['{"url":"https://me:pw@a/"}', '"url": no user name or password in a URL', 'a user'],
	['{"url":"https://a/ b"}', '"url": a URL has no blanks, control bytes and backslashes', 'a blank'],
	['{"url":"https://a/\r\nX: y"}', '"url": a URL has no blanks, control bytes and backslashes', 'a line break'],
	[url('/v1/ok', '"method":"post"'), '"method" must be a word in capitals, as in POST', 'a method in small letters'],
	[url('/v1/ok', '"method":"GET / HTTP/1.1\r\nX: y"'), '"method" must be a word in capitals, as in POST', 'a method with lines'],
	[url('/v1/ok', '"method":"CONNECT"'), '"method": CONNECT is not for qcall', 'CONNECT'],
	[url('/v1/ok', '"method":"TRACE"'), '"method": TRACE is not for qcall', 'TRACE'],
	[url('/v1/ok', '"method":"HEAD","body":"x"'), 'HEAD has no body', 'HEAD with a body'],
	[url('/v1/ok', '"body":7'), '"body" must be a string, an object or an array', 'a number as body'],
	[url('/v1/ok', '"headers":[]'), '"headers" must be an object', 'headers in an array'],
	[url('/v1/ok', '"headers":{"X-A":1}'), '"headers": X-A must be a string', 'a header that is a number'],
	[url('/v1/ok', '"headers":{"X-A":"b\r\nX-B: c"}'), '"headers": X-A has a control byte', 'a line break in a header'],
	[url('/v1/ok', '"headers":{"X-A":"b\nX-B: c"}'), '"headers": X-A has a control byte', 'a newline'],
	[url('/v1/ok', '"headers":{"X-A":"b\u0000c"}'), '"headers": X-A has a control byte', 'a NUL'],
	[url('/v1/ok', '"headers":{"X-A\r\nX-B":"c"}'), q("headers": 'X-A\x0d\x0aX-B' is not the name of a header), 'a line break in a name'],
	[url('/v1/ok', '"headers":{"X A":"c"}'), q("headers": 'X A' is not the name of a header), 'a blank in a name'],
	[url('/v1/ok', '"headers":{"X-A:":"c"}'), q("headers": 'X-A:' is not the name of a header), 'a colon in a name'],
	[url('/v1/ok', '"headers":{"":"c"}'), q("headers": '' is not the name of a header), 'no name'],
	[url('/v1/ok', '"headers":{"X-A":"1","x-a":"2"}'), '"headers": x-a is given twice', 'the same header twice'],
	(map { [url('/v1/ok', "\"headers\":{\"$_\":\"x\"}"), "\"headers\": $_ is not the payload's to set", $_] }
	    qw(Host content-length CONNECTION TE Proxy-Authorization)),
	['{"url":"https://b\u00fccher.example/"}', '"url": a host is written in ASCII: xn--...', 'a host in other letters'],
	[url('/v1/' . 'a' x 263000), 'its URL and headers are longer than 256 KiB', 'a URL too long to be sent'],
	[url('/v1/ok', '"headers":{"X-A":"' . 'a' x 200000 . '","X-B":"' . 'a' x 70000 . '"}'), 'its URL and headers are longer than 256 KiB', 'headers too long'],
	[url('/v1/ok', '"headers":{"Idempotency-Key":"a "}'), 'Idempotency-Key has a blank at its end', 'a key that would be another'],
	[url('/v1/ok', '"timeout":30'), '"timeout" must be a string', 'a timeout without a unit'],
	[url('/v1/ok', '"timeout":"30"'), q("timeout": '30' ), 'likewise in quotes'],
	[url('/v1/ok', '"timeout":"0s"'), q("timeout": '0s' is no time at all), 'no time'],
) {
	my ($payload, $says, $name) = @$_;
	is(call($payload), 65, "payload: $name");
	like($err, qr/^qcall: payload: \Q$says\E.*; nothing was sent\n\z/, '... says so');
	nothing_sent();
}
is(call(url('/v1/ok', '"auth":"partner"')), 78, 'a secret nobody has bound: the options, and no reason to kill a queue');
is($err, "qcall: payload: \"auth\": no --auth has the name 'partner'; nothing was sent\n", '... says so');
nothing_sent();
spew('payload', url('/v1/ok'));
is(system('qcall <payload >out 2>err') >> 8, 65, 'http needs leave: a payload');

# ---- what is sent -----------------------------------------------------------------------------------

is(call(url('/v1/ok')), 0, 'GET');
is($out, 'fine', '... its answer');
is($err, '', '... silent');
is(sent(), "GET /v1/ok HTTP/1.1\nHost: 127.0.0.1:$port\nUser-Agent: q/0.1.0\nAccept: */*\nAccept-Encoding: deflate, gzip, br, zstd\n\n\n", '... and nothing more');
is(call(url('/v1/nul')), 0, 'any bytes');
is($out, "a\0b", '... come out as they are');
call(url('/v1/ok', '"body":{ "price" : 1.10, "id":12345678901234567890, "x": 1e2, "y":"\u00e9" }, "method":null'));
like(sent(), qr/^POST .*\nContent-Type: application\/json\nContent-Length: 69\n\n\{ "price" : 1\.10, "id":12345678901234567890, "x": 1e2, "y":"\\u00e9" \}\n\z/s, 'an object, digit by digit');
call(url('/v1/ok', '"headers":{"content-type":"application/vnd.x+json","X-A":"b  c"},"body":[1.0],"method":"PUT"'));
like(sent(), qr/^PUT .*\ncontent-type: application\/vnd.x\+json\nX-A: b  c\nContent-Length: 5\n\n\[1.0\]\n\z/s, 'a type of its own');
call(url('/v1/ok', '"body":"a\u0000\u00e9"'));
like(sent(), qr/^POST (?!.*Content-Type).*\nContent-Length: 4\n\na\0\xc3\xa9\n\z/s, 'a string: its bytes');
call(url('/v1/ok', '"method":"DELETE"'));
like(sent(), qr/^DELETE /, 'DELETE');
{
	local @ENV{qw(Q_ID Q_QUEUE)} = (42, 'web');
	call(url('/v1/ok'));
	like(sent(), qr/^Idempotency-Key: web\/42$/m, 'a job without a key');
	local $ENV{Q_KEY} = 'order-7';
	call(url('/v1/ok'));
	like(sent(), qr/^Idempotency-Key: order-7$/m, '... with one');
	for (['control byte', "a\nb"], ['blank at its end', ' a'], ['blank at its end', 'a '], ['blank at its end', ' ']) {
		local $ENV{Q_KEY} = $_->[1];
		is(call(url('/v1/ok')), 65, "... a $_->[0]");
		is($err, "qcall: Q_KEY has a $_->[0]; nothing was sent\n", '... is refused');
		nothing_sent();
	}
	call(url('/v1/ok', '"headers":{"idempotency-key":"mine"}'));
	is(join(' ', sent() =~ /^(idempotency-key: .*)$/mgi), 'idempotency-key: mine', '... that sets its own');
}

# The vector of the reference libraries of Standard Webhooks (their test of "sign").
{
	local @ENV{qw(Q_NOW Q_KEY)} = ('2021-02-25T15:02:10Z', 'msg_p5jXN8AQM9LWM0D4loKWxJek');
	is(call(url('/v1/ok', '"body":"{\"test\": 2432232314}"'), '--sign', 'sign'), 0, 'signed');
	is(join(' ', sent() =~ /^(webhook-.*)$/mg), 'webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek webhook-timestamp: 1614265330 '
	    . 'webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=', '... as the reference does');
	local $ENV{Q_KEY} = 'a.1%';
	call(url('/v1/ok', '"body":"x"'), '--sign', 'sign');
	like(sent(), qr/^webhook-id: a%2E1%25$/m, '... no dot in the id');
	is(call(url('/v1/ok', '"headers":{"Webhook-Id":"x"}'), '--sign', 'sign'), 65, '... by nobody else');
}

# ---- secrets, and payloads that want them ----------------------------------------------------------

my @auth = ('--auth', "partner=key\@$base/v1/");
is(call(url('/v1/ok', '"auth":"partner"'), @auth), 0, 'a secret');
like(sent(), qr/^Authorization: Bearer s3cret-0123$/m, '... is sent where it belongs');
call(url('/v1/ok'), @auth);
unlike(sent(), qr/s3cret/, '... if it is asked for');
is(call(url('/v1/echo', '"auth":"partner"'), @auth), 65, 'a server that quotes it');
is($err, "qcall: $base/v1/echo: status 400: you sent ***\n", '... does not bring it into the reason');
for (
	['another origin', "http://127.0.0.1:$evil/v1/ok"],
	['another host', "http://localhost:$evil/v1/ok"],
	['its host as a user', "http://127.0.0.1:$port\@127.0.0.1:$evil/v1/ok"],
	['a look-alike', "http://127.0.0.1.nip.example:$evil/v1/ok"],
	['its host in the path', "http://127.0.0.1:$evil/127.0.0.1:$port/v1/ok"],
	['another scheme', "https://127.0.0.1:$port/v1/ok"],
	['above the prefix', "$base/admin"],
	['beside the prefix', "$base/v10/ok"],
	['dots', "$base/v1/../admin"],
	['dots, encoded', "$base/v1/%2e%2e/admin"],
	['dots, encoded twice', "$base/v1/%252e%252e/admin"],
	['a backslash', "$base/v1/..\\\\admin"],
	['slashes', "$base//v1/ok"],
) {
	my ($name, $url) = @$_;
	is(call("{\"url\":\"$url\",\"auth\":\"partner\"}", @auth), 65, "a secret for $name");
	nothing_sent();
}
is(call(url('/v1/ok', '"auth":"partner","headers":{"authorization":"Basic x"}'), @auth), 65, 'a payload with its own Authorization');
is(call(url('/v1/ok', '"headers":{"authorization":"Basic x"}'), @auth), 0, '... may have it without "auth"');
is(call(url('/v1/ok', '"auth":"Partner"'), @auth), 78, 'another name');
for (['/v1/to-evil', "http://127.0.0.1:$evil/stolen, not the same origin"], ['/v1/to-admin', "$base/admin, which is not allowed"],
    ['/v1/to-dots', "$base/v1/%2e%2e/admin, which is not allowed"]) {
	my ($path, $says) = @$_;
	is(call(url($path, '"auth":"partner"'), @auth, '--follow'), 65, "a redirect away: $path");
	is($err, "qcall: $base$path: status 302: redirects to $says: not followed\n", '... says so');
	is(slurp('evil.log'), '', '... the other server was sent nothing');
	is(scalar(() = sent() =~ /^GET/mg), 1, '... nor this one a second time');
}
for (['/v1/to-echo', "$base/v1/s/404/***: status 404: the body"], ['/v1/to-echo-304', "$base/v1/to-echo-304: status 304"]) {
	my ($path, $says) = @$_;
	is(call(url($path, '"auth":"partner"'), @auth, '--follow'), 65, "a redirect to a URL with the secret: $path");
	is($err, "qcall: $says\n", '... which is not told');
}
spew('long', 's3cret-' . '0123456789' x 6 . "\n");
call(url('/v1/to-long', '"auth":"partner"'), '--auth', "partner=long\@$base/v1/");
like($err, qr/: status 302: redirects to \Q$base\E\/v1\/a+/, 'where a long URL is cut');
unlike($err, qr/s3c/, '... no part of the secret is left');
for (['foo://me:s3cret@proxy.example', 'unknown'], ['http://me:s3cret@proxy.example:x', 'broken']) {
	my ($proxy, $name) = @$_;
	local $ENV{https_proxy} = $proxy;
	is(call('{"url":"https://api.example.com/"}'), 69, "a proxy that is $name");
	is($err, "qcall: https://api.example.com/: no answer: the proxy that the environment names cannot be used\n", '... without its password');
}
is(call(url('/v1/to-ok', '"auth":"partner"'), @auth, '--follow'), 0, 'a redirect below the prefix is followed');
is(call(url('/v1/to-ok', '"auth":"partner"'), @auth), 65, '... if that was asked for');
is(call(url('/v1/ok'), '--allow', "$base/v2/", '--allow', "$base/v1"), 0, 'allowed by one');
is(call(url('/admin'), '--allow', "$base/v2/", '--allow', "$base/v1"), 65, 'by none');
is($err, "qcall: payload: $base/admin is at or below no --allow; nothing was sent\n", '... says so');
nothing_sent();
is(call(url('/v1/to-admin'), '--allow', "$base/v1", '--follow'), 65, 'redirects are bounded, too');
is(scalar(() = sent() =~ /^GET/mg), 1, '... and not followed');

# ---- answers ---------------------------------------------------------------------------------------

# The whole table is in t/70-http.t.
for ([0, 204], [65, 302], [65, 400], [65, 410], [69, 408], [69, 500], [69, 501], [69, 503], [77, 401], [77, 403], [75, 429]) {
	my ($want, $status) = @$_;
	is(call(url("/v1/s/$status")), $want, "status $status");
}
is(call(url('/v1/s/404')), 65, 'a dead end');
is("$out$err", "qcall: $base/v1/s/404: status 404: the body\n", '... its reason');
is(call(url('/v1/s/304')), 65, 'not modified');
is($err, "qcall: $base/v1/s/304: status 304\n", '... its reason');
is(call(url('/v1/cut')), 69, 'a cut body');
is($out, '', '... is no result');
is(call('{"url":"http://127.0.0.1:1/"}'), 69, 'nobody listens');
is(call(url('/v1/after/503/30')), 75, '503 that says when');
is(call(url('/v1/odd')), 75, '429 whose end is no HTTP');
is(call(url('/v1/spent')), 75, '403 with nothing left');
is(call(url('/v1/slow', '"timeout":"50ms"')), 69, 'a server that is too slow for the payload');
is(call(url('/v1/slow', '"timeout":"1h"'), '--timeout', '50ms'), 69, '... for the operator, who has the last word');
like($err, qr/^qcall: \Q$base\E\/v1\/slow: no answer: .*timed out/, '... said so');

# ---- under qwork -----------------------------------------------------------------------------------

sub run { my (@cmd) = @_; system("@cmd >out 2>err"); ($code, $out, $err) = ($? >> 8, slurp('out'), slurp('err')); $code }
sub fresh { unlink glob 'q.db*'; spew('log', ''); run('qinit') == 0 or die $err; run("qset $_") == 0 or die $err for @_ }
sub add { my ($queue, $payload) = @_; spew('payload', $payload); run("qadd -q $queue - <payload") == 0 or die $err }
sub job { sql("SELECT state, spent, due_ms - $NOW FROM q_job WHERE id = $_[0]") }
sub last_of { sql("SELECT outcome, coalesce(exit, ''), coalesce(reason, ''), coalesce(result, '') FROM q_attempt WHERE job = $_[0] ORDER BY id DESC LIMIT 1") }
sub requests { scalar(() = slurp('log') =~ /^[A-Z]+ \S+ HTTP/mg) }

fresh();
add('web', url('/v1/ok'));
is(run('qwork web -- qcall --insecure-http'), 0, 'a job');
is(job(1), 'done|0|0', '... is done');
is(last_of(1), 'done|0||fine', '... with the answer as its result');
like(sent(), qr/^Idempotency-Key: web\/1$/m, '... and its id as its key');
for (['401', 'failed', 'failed|77|', '/v1/s/401'], ['500', 'failed', 'failed|69|', '/v1/s/500'], ['404', 'dead', 'failed|65|', '/v1/s/404']) {
	my ($name, $state, $attempt, $path) = @$_;
	fresh();
	add('web', url($path));
	is(run('qwork web -- qcall --insecure-http'), $state eq 'dead' ? 1 : 0, "status $name");
	like(job(1), qr/^$state\|1\|/, "... $state");
	is(last_of(1), "${attempt}qcall: $base$path: status $name: the body|", '... and why');
}
for (['429', '/v1/after/429/30', 30000], ['429 without a time', '/v1/s/429', 60000], ['503', '/v1/after/503/45', 45000], ['a date', '/v1/after/429/Tue, 02 Jun 2026 13:00:00 GMT', 3600000],
    ['403 with nothing left', '/v1/spent', 60000], ['at once', '/v1/after/429/0', 1000], ['400 that says when', '/v1/after/400/7', 7000]) {
	my ($name, $path, $due) = @$_;
	$path =~ s/ /%20/g;
	fresh();
	add('web', url($path)) if $name ne 'a date';
	add('web', url('/v1/after/429/3600')) if $name eq 'a date';
	is(run('qwork web -- qcall --insecure-http'), 0, "later: $name");
	is(job(1), "pending|0|$due", '... deferred as the server asked, no attempt spent');
	like(last_of(1), qr/^deferred\|75\|http.*: status \d+: (later|the body|slow down)\|$/, '... and why');
	is(sql('SELECT count(*) FROM q_attempt'), 1, '... settled once');
}

# ---- a shared rate ---------------------------------------------------------------------------------

fresh('rate.partner=100/s+100 queue.web.limit=partner');
add('web', url('/v1/after/429/30'));
add('web', url('/v1/ok'));
run('qwork -c 1 web -- qcall --insecure-http');
is(sql("SELECT blocked_ms - $NOW FROM q_rate WHERE kind = 'rate' AND name = 'partner'"), 30000, 'a 429 blocks the rate of the queue');
is(run('qclaim web'), 0, '... nobody claims meanwhile');
is($out, '', '... nothing');
is(requests(), 1, '... and nobody asks');

fresh('rate.partner=100/s+100 queue.web.limit=partner');
add('web', url('/v1/ok'));
run('qwork web -- qcall --insecure-http');
is(sql("SELECT full_us - 1000000000 FROM q_rate WHERE kind = 'rate' AND name = 'partner'"), 10000, 'of the queue\'s own rate one token is taken, by the claim');
add('web', url('/v1/ok'));
is(run('qwork web -- sh -c "qrate --block 50s partner; qcall --insecure-http"'), 0, 'a block that came after the claim');
is(job(2), 'pending|0|50000', '... is obeyed');
is(last_of(2), 'deferred|75|rate partner is blocked; nothing was sent|', '... and told');
is(requests(), 1, '... and nothing was sent');

fresh('rate.partner=100/s+100 queue.web.limit=partner');
add('web', url('/v1/ok'));
run('qclaim -l 1s web');
{
	local @ENV{qw(Q_QUEUE Q_CLAIM)} = ('web', $out =~ /"claim":"([^"]*)"/);
	is(run('Q_BOOT=b1:1002000 qclaim web'), 0, 'a claim that is lost meanwhile');
	is(call(url('/v1/after/429/30')), 76, '... is told');
	like($err, qr/^qcall: claim \Q$ENV{Q_CLAIM}\E: lost; .*\nqcall: http.*: status 429: later\n\z/, '... as is what the server said');
	is(sql("SELECT blocked_ms - $NOW FROM q_rate WHERE kind = 'rate' AND name = 'partner'"), 30000, '... which blocks the rate all the same');
	is(sql('SELECT state, fence FROM q_job'), 'claimed|2', '... and leaves the job to who has it');
}

fresh('rate.partner=1/m');
add('web', url('/v1/ok'));
add('web', url('/v1/ok'));
is(run('qwork web -- qcall --insecure-http --rate partner'), 0, 'a rate of its own');
is(job(1), 'done|0|0', '... lets one through');
is(job(2), 'pending|0|60000', '... and the next when it is its turn');
is(requests(), 1, '... not before');
add('web', url('/v1/ok'));
is(run('qwork web -- qcall --insecure-http --rate nobody'), 0, 'a rate that is not set');
like(last_of(3), qr/^failed\|78\|qcall: rate nobody is not set; next: qset rate.nobody=10\/s/, '... is said');

fresh('rate.partner.concurrency=1');
is(call(url('/v1/after/429/9'), '--rate', 'partner'), 75, 'without a job');
is(sql("SELECT blocked_ms - $NOW FROM q_rate"), 9000, '... a rate is blocked all the same');
is(sql('SELECT count(*) FROM q_hold'), 0, '... and its place given back');
is(call(url('/v1/ok'), '--rate', 'partner'), 75, '... for the next');
nothing_sent();
fresh('rate.partner.concurrency=1');
{
	my $mute = IO::Socket::INET->new(Listen => 4, LocalAddr => '127.0.0.1') or die "listen: $!";
	spew('payload', '{"url":"http://127.0.0.1:' . $mute->sockport . '/"}');
	my $pid = fork // die;
	if ($pid == 0) { open STDIN, '<', 'payload'; open STDERR, '>', 'err'; exec 'qcall', '--insecure-http', '--rate', 'partner' or die }
	for (1 .. 1000) { last if sql('SELECT count(*) FROM q_hold'); select undef, undef, undef, 0.01 }
	is(sql('SELECT count(*) FROM q_hold'), 1, 'a place is held during the request');
	kill 'TERM', $pid;
	waitpid $pid, 0;
	is(($? >> 8) . slurp('err'), '143', '... which a signal ends');
	is(sql('SELECT count(*) FROM q_hold'), 0, '... and the place is free');
}
fresh('rate.partner.concurrency=1');
add('web', url('/v1/ok'));
is(run('qrate partner -- qwork web -- qcall --insecure-http --rate partner'), 0, 'no place is free');
is(job(1), 'pending|0|5000', '... asks again soon, for a place may be free long before its lease ends');
{
	local $ENV{Q_CLAIM} = '1.1.00000000';
	fresh();
	is(call(url('/v1/after/429/9')), 76, 'a claim that is not held');
	local $ENV{Q_CLAIM} = 'nonsense';
	is(call(url('/v1/ok')), 78, 'a claim that is none');
	nothing_sent();
}

done_testing;
