#!/usr/bin/perl
# HTTP: what lib/http.c makes of URLs, headers and answers, through t/unit-http.c.
#
# Where a table comes from is said above it.  The server is a socket of this test: it sends the bytes that
# stand below, whatever they are, and writes down what it was sent.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use IO::Compress::Gzip qw(gzip);
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(time);

my $t = abs_path(dirname($0));
my $dir = tempdir('q-test.XXXXXX', TMPDIR => 1, CLEANUP => 1);
delete @ENV{grep { /^Q_|_proxy$|_PROXY$/ } keys %ENV};
@ENV{qw(TZ LC_ALL Q_NOW)} = ('UTC', 'C', '2026-06-02T12:00:00Z');
chdir $dir or die "$dir: $!";
my @children;
my $main = $$;
END { if ($$ == $main) { my $status = $?; kill 'TERM', -$_ for @children; waitpid $_, 0 for @children; chdir '/'; $? = $status } }

my $unit = "$t/unit-http";
my $newest = (sort { $b <=> $a } map { (stat $_)[9] } "$unit.c", map { "$t/../lib/$_" } qw(http.c http.h text.c when.c q.h))[0];
if (!-x $unit || (stat $unit)[9] < $newest) {
	$unit = "$dir/unit-http";
	my $cc = $ENV{CC} // 'cc';
	system("cd '$t/..' && $cc -std=c11 -D_XOPEN_SOURCE=700 -Ilib -o '$unit' t/unit-http.c lib/http.c lib/text.c lib/when.c -lcurl -ljansson") == 0 or die;
}

sub slurp { my ($file) = @_; open my $f, '<', $file or return ''; local $/; my $text = <$f>; $text // '' }
sub run { my $out = ''; open my $p, '-|', @_ or die "$_[0]: $!"; { local $/; $out = <$p> // '' } close $p; $out }

# ---- pure functions: rows "call -> what it prints" -------------------------------------------------

# Rows of one table, all in one process.
sub table {
	my ($name, $text) = @_;
	my @rows = map { [split / -> /, $_, 2] } grep { / -> / } split /\n/, $text;
	open my $f, '>', 'calls' or die;
	print $f map { "$_->[0]\n" } @rows;
	close $f;
	my @got = split /\n/, `'$unit' - <calls`, -1;
	is($got[$_] // '(nothing)', $rows[$_][1], "$name: $rows[$_][0]") for 0 .. $#rows;
}

# RFC 3986 5.4.1 and 5.4.2, all of them; what leads away from http and https is refused here.
my $resolved = '';
for (split /\n/, <<'END') {
g:h no
g http://a/b/c/g
./g http://a/b/c/g
g/ http://a/b/c/g/
/g http://a/g
//g http://g
?y http://a/b/c/d;p?y
g?y http://a/b/c/g?y
#s http://a/b/c/d;p?q#s
g#s http://a/b/c/g#s
g?y#s http://a/b/c/g?y#s
;x http://a/b/c/;x
g;x http://a/b/c/g;x
g;x?y#s http://a/b/c/g;x?y#s
 http://a/b/c/d;p?q
. http://a/b/c/
./ http://a/b/c/
.. http://a/b/
../ http://a/b/
../g http://a/b/g
../.. http://a/
../../ http://a/
../../g http://a/g
../../../g http://a/g
../../../../g http://a/g
/./g http://a/g
/../g http://a/g
g. http://a/b/c/g.
.g http://a/b/c/.g
g.. http://a/b/c/g..
..g http://a/b/c/..g
./../g http://a/b/g
./g/. http://a/b/c/g/
g/./h http://a/b/c/g/h
g/../h http://a/b/c/h
g;x=1/./y http://a/b/c/g;x=1/y
g;x=1/../y http://a/b/c/y
g?y/./x http://a/b/c/g?y/./x
g?y/../x http://a/b/c/g?y/../x
g#s/./x http://a/b/c/g#s/./x
g#s/../x http://a/b/c/g#s/../x
http:g no
END
	my ($ref, $want) = /^(\S*) (.*)$/;
	$resolved .= "resolve|http://a/b/c/d;p?q|$ref -> $want\n";
}
table('RFC 3986', $resolved);

table('resolve', <<'END');
resolve|https://api.example.com|next -> https://api.example.com/next
resolve|https://api.example.com?page=1|?page=2 -> https://api.example.com?page=2
resolve|https://api.example.com/a?x=/b/c|d -> https://api.example.com/d
resolve|https://api.example.com:8443/a/b|/c -> https://api.example.com:8443/c
resolve|https://api.example.com/a|//evil.example/b -> https://evil.example/b
resolve|https://api.example.com/a|http://api.example.com/b -> http://api.example.com/b
resolve|https://api.example.com/a|https://me@api.example.com/b -> no
resolve|https://api.example.com/a|//me:x@api.example.com/b -> no
resolve|https://api.example.com/a|file:///etc/passwd -> no
resolve|https://api.example.com/a|javascript:alert(1) -> no
resolve|https://api.example.com/a|\\evil.example/b -> no
resolve|https://api.example.com/a|/b c -> no
resolve|https://api.example.com/a|?q=a:b -> https://api.example.com/a?q=a:b
resolve|https://api.example.com/a/|./b:c -> https://api.example.com/a/b:c
resolve|file:///etc/|passwd -> no
END

table('url', <<'END');
url|https://api.example.com -> ok
url|https://api.example.com/a?b=c#d -> ok
url|HTTPS://API.EXAMPLE.COM/ -> ok
url|https://[::1]:8443/ -> ok
url|https://api.example.com/a@b?c@d -> ok
url|http://api.example.com/|http -> ok
url|http://api.example.com/ -> error: http is not allowed: everybody on the way could read and change it; if that is meant: insecure_http of qpoll(5), --insecure-http of qcall(1)
url|file:///etc/passwd|http -> error: not a URL: write https://HOST/PATH
url|ftp://api.example.com/ -> error: not a URL: write https://HOST/PATH
url|api.example.com/a -> error: not a URL: write https://HOST/PATH
url| -> error: not a URL: write https://HOST/PATH
url|https:/api.example.com/ -> error: not a URL: write https://HOST/PATH
url|https:///api.example.com/ -> error: no host in the URL
url|https:// -> error: no host in the URL
url|https://?a -> error: no host in the URL
url|https://user@api.example.com/ -> error: no user name or password in a URL
url|https://user:pw@api.example.com/ -> error: no user name or password in a URL
url|https://@api.example.com/ -> error: no user name or password in a URL
url|https://api.example.com:443@evil.example/ -> error: no user name or password in a URL
url|https://evil.example\@api.example.com/ -> error: a URL has no blanks, control bytes and backslashes
url|https://api.example.com/a b -> error: a URL has no blanks, control bytes and backslashes
url|https://api.example.com:99999/ -> error: not a URL: its host or port cannot be
url|https://api.example.com:x/ -> error: not a URL: its host or port cannot be
url|https://bücher.example/ -> error: a host is written in ASCII: xn--...
url|https://xn--bcher-kva.example/bücher -> ok
END
is(run($unit, 'url', "https://a/\r\nX: y"), "error: a URL has no blanks, control bytes and backslashes\n", 'url: a line break');
is(run($unit, 'url', "https://a/\x7f"), "error: a URL has no blanks, control bytes and backslashes\n", 'url: DEL');

table('origin', <<'END');
origin|https://api.example.com/a|https://API.Example.COM:443/b -> yes
origin|http://api.example.com|http://api.example.com:80/ -> yes
origin|https://api.example.com/|http://api.example.com/ -> no
origin|https://api.example.com/|https://api.example.com:8443/ -> no
origin|https://api.example.com/|https://api.example.com.evil.org/ -> no
origin|https://api.example.com/|https://api.example.com./ -> no
origin|https://api.example.com/|https://x.api.example.com/ -> no
origin|https://api.example.com/|https://me@api.example.com/ -> no
origin|https://[::1]/|https://[0:0:0:0:0:0:0:1]/ -> yes
origin|https://api.example.com/|nonsense -> no
origin|nonsense|nonsense -> no
END

table('within', <<'END');
within|https://api.example.com/v1/|https://api.example.com/v1/ -> yes
within|https://api.example.com/v1|https://api.example.com/v1/ -> yes
within|https://api.example.com/v1/a/b?c=d|https://api.example.com/v1/ -> yes
within|https://api.example.com/v1/a|https://api.example.com/v1 -> yes
within|https://api.example.com/v10/a|https://api.example.com/v1 -> no
within|https://api.example.com/v10/a|https://api.example.com/v1/ -> no
within|https://api.example.com/V1/a|https://api.example.com/v1/ -> no
within|https://api.example.com/a|https://api.example.com -> yes
within|https://api.example.com/a|https://api.example.com/ -> yes
within|https://api.example.com|https://api.example.com/ -> yes
within|https://API.example.COM/v1/a|https://api.Example.com:443/v1/ -> yes
within|https://api.example.com:8443/v1/a|https://api.example.com/v1/ -> no
within|http://api.example.com/v1/a|https://api.example.com/v1/ -> no
within|https://api.example.com.evil.org/v1/a|https://api.example.com/v1/ -> no
within|https://api.example.com.evil.org/|https://api.example.com -> no
within|https://evil.org/api.example.com/v1/|https://api.example.com/v1/ -> no
within|https://evil.org?https://api.example.com/v1/|https://api.example.com/v1/ -> no
within|https://evil.org#@api.example.com/v1/|https://api.example.com/v1/ -> no
within|https://api.example.com@evil.org/v1/|https://api.example.com/v1/ -> no
within|https://evil.org@api.example.com/v1/|https://api.example.com/v1/ -> no
within|https://evil.org\@api.example.com/v1/a|https://api.example.com/v1/ -> no
within|https://evil.org%2f@api.example.com/v1/a|https://api.example.com/v1/ -> no
within|https://api.example.com%00.evil.org/v1/a|https://api.example.com/v1/ -> no
within|https://api.example.com%23.evil.org/v1/a|https://api.example.com/v1/ -> no
within|https://api.example.com%2eevil.org/v1/a|https://api.example.com/v1/ -> no
within|https://ａpi.example.com/v1/a|https://api.example.com/v1/ -> no
within|https://api.example.com/v1/../admin|https://api.example.com/v1/ -> no
within|https://api.example.com/x/../v1/a|https://api.example.com/v1/ -> yes
within|https://api.example.com/v1/%2e%2e/admin|https://api.example.com/v1/ -> no
within|https://api.example.com/v1/.%2E/admin|https://api.example.com/v1/ -> no
within|https://api.example.com/v1/..%2fadmin|https://api.example.com/v1/ -> no
within|https://api.example.com/v1/..%5cadmin|https://api.example.com/v1/ -> no
within|https://api.example.com/v1/%252e%252e/admin|https://api.example.com/v1/ -> no
within|https://api.example.com/v1/%25252e%25252e%25252fadmin|https://api.example.com/v1/ -> no
within|https://api.example.com/v1/..;x=1/admin|https://api.example.com/v1/ -> no
within|https://api.example.com/v1/..%3f/admin|https://api.example.com/v1/ -> no
within|https://api.example.com/v1/..%23|https://api.example.com/v1/ -> no
within|https://api.example.com/v1/..%20/admin|https://api.example.com/v1/ -> no
within|https://api.example.com/v1/.%2e%09/admin|https://api.example.com/v1/ -> no
within|https://api.example.com/v1/%c0%ae%c0%ae/admin|https://api.example.com/v1/ -> no
within|https://api.example.com/v1\..\admin|https://api.example.com/v1/ -> no
within|https://api.example.com/v1%00/a|https://api.example.com/ -> no
within|https://api.example.com//v1/a|https://api.example.com/v1/ -> no
within|https://api.example.com/v1//a|https://api.example.com/v1/ -> yes
within|https://api.example.com/%76%31/a|https://api.example.com/v1/ -> yes
within|https://api.example.com/v1/group%2Fproject|https://api.example.com/v1/ -> yes
within|https://api.example.com/v1/...|https://api.example.com/v1/ -> yes
within|https://api.example.com/v1/..a|https://api.example.com/v1/ -> yes
within|https://api.example.com/v1/a|https://api.example.com/v1/?x=y -> no
within|https://api.example.com/v1/a|/v1/ -> no
within|/v1/a|https://api.example.com/v1/ -> no
END

table('shown', <<'END');
shown|https://api.example.com/a/b?token=s3cret#frag -> https://api.example.com/a/b
shown|https://api.example.com:8443/a -> https://api.example.com:8443/a
shown|https://me:s3cret@api.example.com/a -> (no URL)
shown|nonsense?s3cret -> (no URL)
END
is(run($unit, 'shown', "https://api.example.com/a\xe2\x80\xaeb"), "https://api.example.com/a\\u{202e}b\n", 'shown: what turns the line round');
cmp_ok(length run($unit, 'shown', 'https://api.example.com/' . 'a' x 5000), '<=', 201, 'shown: cut');

table('escape', <<'END');
escape|2026-03-01T00:00:00+01:00 -> 2026-03-01T00%3A00%3A00%2B01%3A00
escape|a b&c=d/e?f#g%h -> a%20b%26c%3Dd%2Fe%3Ff%23g%25h
escape|AZaz09-._~ -> AZaz09-._~
escape|ä -> %C3%A4
escape| -> 
END

# RFC 9110: 5.6.7 (one instant in three forms: 784111777) and 10.2.3 (Fri, 31 Dec 1999 23:59:59 GMT, 946684799; 120).
# The rest by hand; 784111777 + 0.001 s before it is one second, rounded up.
table('Retry-After', <<'END');
after|120|-1|0 -> 120000
after|0|-1|0 -> 0
after|Fri, 31 Dec 1999 23:59:59 GMT|946684700000|5 -> 99000
after|Sun, 06 Nov 1994 08:49:37 GMT|784111770000|0 -> 7000
after|Sunday, 06-Nov-94 08:49:37 GMT|784111770000|784111770000 -> 7000
after|Sun Nov  6 08:49:37 1994|784111770000|0 -> 7000
after|Sun Nov 16 08:49:37 1994|784111770000|0 -> 864007000
after|Sun, 06 Nov 1994 08:49:37 GMT|-1|784111770000 -> 7000
after|Sun, 06 Nov 1994 08:49:37 GMT|-1|784111776999 -> 1000
after|Sun, 06 Nov 1994 08:49:37 GMT|784111777000|0 -> 0
after|Sun, 06 Nov 1994 08:49:37 GMT|784111778000|0 -> 0
after|sun, 06 nov 1994 08:49:37 GMT|784111770000|0 -> 7000
after|Wednesday, 01-Jan-76 00:00:10 GMT|3345062400000|3345062400000 -> 10000
after|Wednesday, 01-Jan-76 00:00:10 GMT|3345062400000|1780401600000 -> 10000
after|Saturday, 01-Jan-77 00:00:10 GMT|220924800000|1780401600000 -> 10000
after|Sat, 31 Dec 2016 23:59:60 GMT|1483228790000|0 -> 10000
after|1.9|-1|0 -> 2000
after|2.0|-1|0 -> 2000
after|0.001|-1|0 -> 1000
after|1.|-1|0 -> no
after|.5|-1|0 -> no
after|-1|-1|0 -> no
after|+1|-1|0 -> no
after|20261231|-1|0 -> 20261231000
after|99999999999999999999999999|-1|0 -> 315360000000
after|99999999999|-1|0 -> 315360000000
after|12s|-1|0 -> no
after|1e3|-1|0 -> no
after||-1|0 -> no
after|2026-12-31T00:00:00Z|-1|0 -> no
after|Sun, 06 Nov 1994 08:49:37 UTC|784111770000|0 -> no
after|Sun, 06 Nov 1994 08:49:37 +0000|784111770000|0 -> no
after|Sun, 31 Feb 1994 08:49:37 GMT|784111770000|0 -> no
after|Sun, 06 Nov 1994 24:49:37 GMT|784111770000|0 -> no
after|Sun, 6 Nov 1994 08:49:37 GMT|784111770000|0 -> no
after|Sun, 06 Nov 1994 08:49:37 GMT x|784111770000|0 -> no
after|06 Nov 1994 08:49:37|784111770000|0 -> no
after|Sun, 06 Nov 9999 08:49:37 GMT|784111770000|0 -> 315360000000
END

table('reset', <<'END');
reset|60|-1|1780401600000 -> 60000
reset|0|-1|1780401600000 -> 0
reset|999999999|-1|0 -> 315360000000
reset|1780401660|1780401600000|0 -> 60000
reset|1780401660|-1|1780401600000 -> 60000
reset|1780401600|1780401660000|0 -> 0
reset|1372700873|1780401600000|0 -> 0
reset|1780401660500|1780401600000|0 -> 61000
reset|1780401660000|1780401600000|0 -> 60000
reset|99999999999999|0|0 -> 315360000000
reset|100000000000000|0|0 -> no
reset|1780401660.25|1780401600000|0 -> 61000
reset|2026-06-02T12:01:00Z|1780401600000|0 -> 60000
reset|2026-06-02T14:01:00.000000+02:00|1780401600000|0 -> 60000
reset|2026-06-02T11:00:00Z|1780401600000|0 -> 0
reset|2026-06-02T12:01:00|1780401600000|0 -> no
reset|now|0|0 -> no
reset|+5m|0|0 -> no
reset|-5|0|0 -> no
reset|tomorrow 10:00|0|0 -> no
reset||0|0 -> no
END

# ---- a server --------------------------------------------------------------------------------------

# Each connection has a process; it reads requests (with a body if they have a length) and gives each to $reply.
sub serve {
	my ($log, $reply) = @_;
	my $s = IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.1', ReuseAddr => 1) or die "listen: $!";
	my $pid = fork // die "fork: $!";
	if ($pid == 0) {
		setpgrp;
		$SIG{TERM} = 'DEFAULT';
		$SIG{CHLD} = 'IGNORE';
		while (1) {
			my $c = $s->accept or next;
			my $child = fork;
			next if !defined $child || $child != 0;
			open my $f, '>>', $log or die;
			$f->autoflush(1);
			$c->autoflush(1);
			my $in = '';
			while (1) {
				while ($in !~ /\r\n\r\n/) {
					sysread $c, $in, 65536, length $in or exit;
				}
				$in =~ s/^(.*?\r\n\r\n)//s;
				my $head = $1;
				my ($len) = $head =~ /^content-length: *(\d+)/mi;
				while (length $in < ($len // 0)) {
					sysread $c, $in, 65536, length $in or last;
				}
				my $body = substr $in, 0, $len // 0, '';
				syswrite $f, "$head$body\n";
				my ($method, $path) = $head =~ /^(\S+) (\S+)/;
				my $more = $reply->($c, $method, $path, $head, $body);
				exit if !$more;
			}
		}
	}
	push @children, $pid;
	return $s->sockport;
}

my $DATE = 'Date: Tue, 02 Jun 2026 12:00:00 GMT';	# 1780401600
my $zipped;
{ my $json = '{"a":[' . join(',', 1 .. 2000) . ']}'; gzip(\$json, \$zipped) or die }
my $bomb;
{ my $zeros = "\0" x (4 << 20); gzip(\$zeros, \$bomb) or die }
my $other = serve('other.log', sub { my ($c) = @_; print $c "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"; 1 });

sub head { my ($status, @headers) = @_; join "\r\n", "HTTP/1.1 $status X", $DATE, @headers, '', '' }
sub full { my ($status, $body, @headers) = @_; head($status, 'Content-Length: ' . length $body, @headers) . $body }
sub own { $_[0] =~ /^Host: 127.0.0.1:(\d+)/m; $1 }
my %page = (	# path => bytes; a connection is closed after those that begin with "/cut"
	'/ok' => sub { full(200, "fine\n") },
	'/nul' => sub { full(200, "a\0b") },
	'/empty' => sub { full(200, '') },
	'/none' => sub { head(204) },
	'/gzip' => sub { full(200, $zipped, 'Content-Encoding: gzip') },
	'/bomb' => sub { full(200, $bomb, 'Content-Encoding: gzip') },
	'/cut-bomb' => sub { head(200, 'Content-Encoding: gzip', 'Connection: close') . $bomb },
	'/big-500' => sub { full(500, 'x' x 5000) },
	'/cut-long' => sub { head(200, 'Connection: close') . 'x' x 5000 },
	'/cut-length' => sub { head(200, 'Content-Length: 100') . 'short' },
	'/cut-length-500' => sub { head(500, 'Content-Length: 100') . 'short' },
	'/cut-length-404' => sub { head(404, 'Content-Length: 100') . 'short' },
	'/cut-length-429' => sub { head(429, 'Content-Length: 100', 'Retry-After: 7') . 'short' },
	'/cut-chunk' => sub { head(200, 'Transfer-Encoding: chunked') . "5\r\nhello\r\n" },
	'/cut-inchunk' => sub { head(200, 'Transfer-Encoding: chunked') . "ff\r\nhello" },
	'/cut-badchunk' => sub { head(200, 'Transfer-Encoding: chunked') . "zz\r\nhello" },
	'/chunk' => sub { head(200, 'Transfer-Encoding: chunked') . "5\r\nhello\r\n0\r\nRetry-After: 99\r\n\r\n" },
	'/cut-gzip' => sub { head(200, 'Content-Encoding: gzip', 'Content-Length: ' . length $zipped) . substr $zipped, 0, length($zipped) / 2 },
	'/bad-gzip' => sub { full(200, 'not gzip at all', 'Content-Encoding: gzip') },
	'/odd-coding' => sub { full(200, 'zzz', 'Content-Encoding: zzz') },
	'/cut-nothing' => sub { '' },
	'/cut-head' => sub { "HTTP/1.1 200 OK\r\nContent-Le" },
	'/cut-garbage' => sub { "SSH-2.0-OpenSSH_9.2\r\n" },
	'/early' => sub { "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\nRetry-After: 9\r\n\r\n" . full(200, 'late', 'X-A: b') },
	'/many-headers' => sub { full(200, '', map { "X-$_: " . 'y' x 1000 } 1 .. 290) },
	'/folded' => sub { full(200, '', "X-Long: one\r\n\ttwo", 'x-long:three  ', 'X-Long:') },
	'/lines' => sub { full(404, " <html>\r\n\t<b>Not\0 \e[31mfound</b>\n\n") },
	'/long-error' => sub { full(404, 'e' x 1000) },
	'/echo' => sub { full(400, "bad token Bearer tok-s3cret or tok-s3cret in it") },
	'/to-same' => sub { full(302, '', 'Location: /ok') },
	'/to-relative' => sub { full(307, '', 'Location: ok?x#y') },
	'/to-upper' => sub { full(301, '', 'Location: HTTP://127.0.0.1:' . own(@_) . '/ok') },
	'/to-other' => sub { full(302, '', "Location: http://127.0.0.1:$other/stolen?code=s3cret") },
	'/to-host' => sub { full(302, '', 'Location: http://localhost:' . own(@_) . '/ok') },
	'/to-user' => sub { full(302, '', 'Location: http://me@127.0.0.1:' . own(@_) . '/ok') },
	'/to-file' => sub { full(302, '', 'Location: file:///etc/passwd') },
	'/to-self' => sub { full(302, '', 'Location: /to-self') },
	'/to-nowhere' => sub { full(302, 'gone') },
	(map { my $n = $_; ("/hop$n" => sub { full(302, '', $n > 0 ? 'Location: /hop' . ($n - 1) : 'Location: /ok') }) } 0 .. 6),
);
my $port = serve('requests', sub {
	my ($c, $method, $path, $head, $body) = @_;
	my ($name) = $path =~ /^([^?]*)/;
	if ($path =~ m{^/s/(\d+)$}) {	# a status and nothing else
		print $c $1 == 204 || $1 == 304 ? head($1) : full($1, "body of $1");
	} elsif ($path =~ m{^/h/(\d+)\?(.*)$}) {	# a status and headers
		my $status = $1;
		my @headers = map { s/%([0-9A-F]{2})/chr hex $1/gre } split /&/, $2;
		my $answer = full($status, '', @headers);
		$answer =~ s/\Q$DATE\E\r\n// if $answer =~ s/^No-Date: 1\r\n//m;
		print $c $answer;
	} elsif ($path =~ m{^/later/(\d+)(?:/(\d+))?$}) {	# so many times 503, then 200
		open my $f, '>>', "later.$1" or die;
		syswrite $f, 'x';
		close $f;
		print $c -s "later.$1" <= $1 ? full(503, 'busy', defined $2 ? "Retry-After: $2" : ()) : full(200, 'at last');
	} elsif ($name eq '/drip') {
		print $c head(200, 'Content-Length: 100');
		for (1 .. 100) { print $c 'x'; select undef, undef, undef, 0.05 }
	} elsif ($name eq '/silent') {
		sleep 10;
	} elsif ($name eq '/reset') {
		print $c head(200, 'Content-Length: 100') . 'part';
		setsockopt $c, SOL_SOCKET, SO_LINGER, pack 'll', 1, 0;
		return 0;
	} elsif ($name eq '/sent') {
		print $c full(200, "$method $body");
	} else {
		print $c $page{$name} ? $page{$name}->($head) : full(404, 'no such page');
		return 0 if $name =~ m{^/cut};
	}
	return 1;
});
my $base = "http://127.0.0.1:$port";

# What the driver prints for requests: options, then paths.
sub ask {
	my @args = map { m{^/} ? "$base$_" : $_ } @_;
	my $out = run($unit, 'ask', '-i', @args);
	$out =~ s/\Q$base\E/BASE/g;
	return $out;
}
sub kind { my ($line) = ask(@_) =~ /^(\S+ \d+)/m; $line }
sub why { my ($line) = ask(@_) =~ /^why (.*)$/m; $line // '(none)' }
# Of several requests at once: kind, status, wait and remaining of each.
sub waits { map { s/ date \S+ remaining//r } ask('-q', @_) =~ /^\S+ \d+ (?=wait)\S+ \S+ date \S+ remaining \S+/mg }
sub uri { my ($s) = @_; $s =~ s/([^A-Za-z0-9.:=;<>,\/-])/sprintf '%%%02X', ord $1/ge; $s }
sub headers { my ($status, @h) = @_; "/h/$status?" . join '&', map { uri($_) } @h }

# ---- the answer table ------------------------------------------------------------------------------

my @got;
my %want = (
	OK => [200, 201, 202, 204, 206, 299], SAME => [304], LIMITED => [429], DENIED => [401, 403],
	LATER => [408, 425, 500, 502, 503, 504, 520 .. 524, 529],
	REFUSED => [300 .. 303, 305, 307, 308, 400, 402, 404, 405, 409, 410, 411, 413, 418, 422, 426, 451, 499, 501, 505, 525, 530, 599]);
for my $kind (sort keys %want) {
	@got = ask('-q', map { "/s/$_" } @{$want{$kind}}) =~ /^(\S+ \d+) wait/mg;
	is(join(', ', @got), join(', ', map { "$kind $_" } @{$want{$kind}}), "answer table: $kind");
}
is(ask('/ok'), "OK 200 wait -1 date 1780401600000 remaining -1 url BASE/ok len 5\nbody fine\n\n", 'an answer');
is(ask('/nul'), "OK 200 wait -1 date 1780401600000 remaining -1 url BASE/nul len 3\nbody a\nNUL in the body\n", 'a body with a NUL');
like(ask('/empty'), qr/ len 0\n\z/, 'an empty body');
like(ask('-q', '/gzip'), qr/^OK 200 .* len 8900$/m, 'gzip is decoded');
like(ask('/chunk'), qr/^OK 200 wait -1 .*\nbody hello$/m, 'chunks; a trailer is no header');
like(ask('-h', 'Link', '-h', 'X-A', '/early'), qr/^OK 200 wait -1 .*\nbody late\nheader b\n\z/m, 'early hints are not the answer');
is(why('/s/503'), 'BASE/s/503: status 503: body of 503', 'why: where, status, body');
is(why('/lines'), 'BASE/lines: status 404: <html> <b>Not\x00 \x1b[31mfound</b>', 'why: one line, nothing hidden');
is(why('/s/404?token=s3cret#frag'), 'BASE/s/404: status 404: no such page', 'why: no query');
is(length why('/long-error'), length('BASE/long-error: status 404: ') + 200, 'why: cut');
is(why('-S', 'Authorization: Bearer tok-s3cret', '/echo'), 'BASE/echo: status 400: bad token *** or *** in it', 'why: a secret that comes back is not shown');

# ---- not all of it ---------------------------------------------------------------------------------

my @cut = qw(/cut-length /cut-chunk /cut-inchunk /cut-badchunk /cut-gzip /bad-gzip /odd-coding);
@got = waits(@cut);
is(shift @got, 'LATER 200 wait -1 -1', "not all of the answer: $_") for @cut;
is(kind($_), 'LATER 0', "no answer: $_") for qw(/cut-nothing /cut-head);
is(kind('/reset'), 'LATER 200', 'reset in mid-body');
is(kind('/cut-garbage'), 'REFUSED 0', 'not HTTP at all');
is(kind('/cut-length-500'), 'LATER 500', 'the start of an error is enough: 500');
is(kind('/cut-length-404'), 'LATER 404', '... but not for good');
is(join(' ', waits('/cut-length-429')), 'LIMITED 429 wait 7000 -1', '... 429');
is(why('/cut-length'), 'BASE/cut-length: status 200: not all of the answer came: transfer closed with 95 bytes remaining to read', 'why');
like(ask('-q', "http://127.0.0.1:1/x"), qr/^LATER 0 .*\nwhy http:\/\/127.0.0.1:1\/x: no answer: Failed to connect to 127.0.0.1 port 1/, 'nobody listens');
my $start = time;
is(kind('-t', 300, '/drip'), 'LATER 200', 'a drip slower than the time limit');
is(kind('-t', 300, '/silent'), 'LATER 0', 'silence');
cmp_ok(time - $start, '<', 4, '... ends in time');
is(kind('-x', 4999, '/cut-long'), 'REFUSED 200', 'too long, without a length');
is(kind('-x', 5000, '/cut-long'), 'OK 200', '... just not');
is(kind('-x', 1 << 20, '/bomb'), 'REFUSED 200', 'too long once it is decoded');
is(kind('-x', 1 << 20, '/cut-bomb'), 'REFUSED 200', '... and without a length');
is(why('-x', 1 << 20, '/bomb'), 'BASE/bomb: status 200: the answer is longer than 1048576 bytes', 'why');
is(kind('-x', 100, '/big-500'), 'LATER 500', 'a long error is what its status says');
is(why('-x', 100, '/big-500'), 'BASE/big-500: status 500: ' . 'x' x 100, '... and its start is shown');
is(kind('/many-headers'), 'REFUSED 0', 'too many headers');

# ---- how long to wait ------------------------------------------------------------------------------

my $soon = 'Tue, 02 Jun 2026 12:01:30 GMT';
my @waits = (
	['seconds', 429, '90000 -1', 'Retry-After: 90'],
	['a fraction', 429, '2000 -1', 'Retry-After: 1.5'],
	['a date', 429, '90000 -1', "Retry-After: $soon"],
	['an RFC 850 date', 429, '90000 -1', 'Retry-After: Tuesday, 02-Jun-26 12:01:30 GMT'],
	['an asctime date', 429, '90000 -1', 'Retry-After: Tue Jun  2 12:01:30 2026'],
	['a date past', 429, '0 -1', 'Retry-After: Tue, 02 Jun 2026 11:00:00 GMT'],
	['relative to Date, not to the clock here', 429, '90000 -1', "Retry-After: Tue, 02 Jun 2020 12:01:30 GMT", 'No-Date: 1', 'Date: Tue, 02 Jun 2020 12:00:00 GMT'],
	['without Date to the clock here', 429, '90000 -1', "Retry-After: $soon", 'No-Date: 1'],
	['nonsense', 429, '-1 -1', 'Retry-After: soon'],
	['the longer of two', 429, '90000 -1', 'Retry-After: 5', 'Retry-After: 90'],
	['503 that says when', 503, '30000 -1', 'Retry-After: 30'],
	['200 that says when', 200, '30000 -1', 'Retry-After: 30'],
	['nothing said', 429, '-1 -1'],
	['403 with Retry-After', 403, '30000 -1', 'Retry-After: 30'],
	['403 with nothing left', 403, '60000 0', 'X-RateLimit-Remaining: 0', 'X-RateLimit-Reset: 1780401660'],
	['403 with something left', 403, '-1 5', 'X-RateLimit-Remaining: 5', 'X-RateLimit-Reset: 1780401660'],
	['reset: seconds', 429, '60000 0', 'X-RateLimit-Remaining: 0', 'X-RateLimit-Reset: 60'],
	['reset: epoch', 429, '60000 0', 'RateLimit-Remaining: 0', 'RateLimit-Reset: 1780401660'],
	['reset: epoch ms', 429, '60000 0', 'X-Rate-Limit-Remaining: 0', 'X-Rate-Limit-Reset: 1780401660000'],
	['reset: ISO', 429, '60000 0', 'X-RateLimit-Remaining: 0', 'X-RateLimit-Reset: 2026-06-02T12:01:00.000000Z'],
	['reset: past', 429, '0 0', 'X-RateLimit-Remaining: 0', 'X-RateLimit-Reset: 1372700873'],
	['reset alone', 429, '60000 -1', 'X-RateLimit-Reset: 60'],
	['Retry-After beats it', 429, '5000 0', 'X-RateLimit-Remaining: 0', 'X-RateLimit-Reset: 60', 'Retry-After: 5'],
	['negative', 429, '60000 0', 'X-RateLimit-Remaining: -3', 'X-RateLimit-Reset: 60'],
	['remaining of a good answer', 200, '-1 0', 'X-RateLimit-Remaining: 0', 'X-RateLimit-Reset: 60'],
	['two families: the least counts', 429, '9000 1', 'X-RateLimit-Remaining: 7', 'X-RateLimit-Reset: 60', 'RateLimit-Remaining: 1', 'RateLimit-Reset: 9'],
	['structured', 429, '30000 0', 'RateLimit: "default";r=0;t=30'],
	['structured, two', 429, '600000 2', 'RateLimit: "minute";r=10;t=30, "day";r=2;t=600'],
	['structured, two headers', 429, '600000 2', 'RateLimit: "minute";r=10;t=30', 'RateLimit: "day";t=600;r=2'],
	['structured, no t', 429, '-1 0', 'RateLimit: "default";r=0'],
	['structured, malformed', 429, '5000 3', 'RateLimit: nonsense, "x";r=z;t=1, "y";r=-1, "a,b";r=3;t=5, ;r'],
	['structured, from a cache', 200, '-1 -1', 'RateLimit: "default";r=0;t=30', 'Age: 12'],
	['structured, Age 0', 200, '-1 0', 'RateLimit: "default";r=0;t=30', 'Age: 0'],
);
@got = waits(map { my ($name, $status, $want, @h) = @$_; headers($status, @h) } @waits);
for (@waits) {
	my ($name, $status, $want) = @$_;
	my $kind = $status == 200 ? 'OK' : $status == 503 ? 'LATER' : $name =~ /something/ ? 'DENIED' : 'LIMITED';
	is(shift @got, "$kind $status wait $want", "wait: $name");
}

# ---- again -----------------------------------------------------------------------------------------

my $out = ask('-q', '-r', 5, '/later/2');
like($out, qr/^sleep (\d+)\nsleep (\d+)\nwaited \d+\nOK 200 /, 'fetch: again until it is there');
my @slept = $out =~ /^sleep (\d+)$/mg;
cmp_ok($slept[0], '<=', 1000, '... first after a second at most');
cmp_ok($slept[1], '<=', 2000, '... then two');
like(ask('-q', '-r', 3, '/later/30'), qr/^(sleep \d+\n){2}waited \d+\nLATER 503 /, '... so many tries and no more');
like(ask('-q', '-r', 3, '/later/1/7'), qr/^sleep 7000\nwaited 7000\nOK 200 /, '... as long as the server asks');
like(ask('-q', '-r', 3, '-w', 6000, '/later/4/7'), qr/^waited 0\nLATER 503 wait 7000 /, '... not if that is too long');
like(ask('-q', '-r', 3, '-w', 7000, '/later/5/7'), qr/^sleep 7000\nsleep 7000\nwaited 14000\nLATER 503 /, '... at the limit');
is(ask('-q', '-r', 3, '-a', 1, '/later/31/1'), "sleep 1000\nbefore said 75\n", '... and before() ends it');
like(ask('-q', '-r', 3, '/s/429', '/s/404', '/s/401'), qr/^waited 0\nLIMITED .*\nwhy.*\nwaited 0\nREFUSED .*\nwhy.*\nwaited 0\nDENIED/, '... nothing else is tried again');

# ---- what is sent ----------------------------------------------------------------------------------

sub sent { unlink 'requests'; ask(@_); my $log = slurp('requests'); $log =~ s/\r//g; $log }
# The server's processes append by name, so a file that is gone comes back with the next connection.
like(sent('/ok'), qr{^GET /ok HTTP/1.1\nHost: 127.0.0.1:$port\nUser-Agent: q/0.1.0\nAccept: \*/\*\nAccept-Encoding: deflate, gzip[^\n]*\n\n\n\z}, 'a plain request');
like(sent('-b', 'a=b', '/sent'), qr{^POST /sent HTTP/1.1\n(?!.*Content-Type).*\nContent-Length: 3\n\na=b\n\z}s, 'a body: POST, of no type');
like(sent('-b', '{}', '-H', 'Content-Type: application/json', '-m', 'PUT', '/sent'), qr{^PUT /sent .*\nContent-Type: application/json\nContent-Length: 2\n\n\{\}\n\z}s, 'PUT');
like(sent('-m', 'POST', '/sent'), qr{^POST .*\nContent-Length: 0\n}s, 'POST without a body has a length');
like(sent('-m', 'DELETE', '/sent'), qr{^DELETE /sent (?!.*Content-Length)}s, 'DELETE has none');
is(kind('-m', 'HEAD', '/ok'), 'OK 200', 'HEAD');
like(sent('-H', 'X-Empty: ', '-H', 'X-Two: a', '-H', 'X-Two: b', '/ok'), qr{\nX-Empty:\nX-Two: a\nX-Two: b\n}, 'headers: empty, and twice');
like(sent('-b', 'x' x 70000, '/sent'), qr{^(?!.*Expect:)}s, 'no Expect');
unlink 'requests';
is(why('-H', "X-A: b\r\nX-B: c", '/ok'), "BASE/ok: a header's value has a control byte", 'a line break in a header');
is(why('-H', "X A: b", '/ok'), "BASE/ok: a header's name has other bytes than letters, digits and -", 'a blank in its name');
is(why('-m', "GET /x HTTP/1.1\r\nX:", '/ok'), 'BASE/ok: no method is called that', 'a line break in the method');
is(run($unit, 'ask', "$base/ok"), "REFUSED 0 wait -1 date -1 remaining -1 url $base/ok len 0\nwhy $base/ok: http is not allowed: everybody on the way could read and change it; if that is meant: insecure_http of qpoll(5), --insecure-http of qcall(1)\n", 'http');
is(why("http://me:s3cret\@127.0.0.1:$port/ok"), '(no URL): no user name or password in a URL', 'a user in the URL');
is(why('file:///etc/passwd'), '(no URL): not a URL: write https://HOST/PATH', 'a file');
is(slurp('requests'), '', '... of all these nothing is sent');

# ---- redirects -------------------------------------------------------------------------------------

my @secret = ('-S', 'Authorization: Bearer tok-s3cret', '-S', 'X-Api-Key: tok-s3cret');
is(kind(@secret, '/to-same'), 'REFUSED 302', 'a redirect is not followed');
is(why(@secret, '/to-same'), 'BASE/to-same: status 302: redirects to BASE/ok', '... and said');
like(ask('-f', '/to-same'), qr{^OK 200 .* url BASE/ok len 5$}m, '... unless asked');
like(ask('-f', '/to-relative'), qr{^OK 200 .* url BASE/ok\?x\#y len 5$}m, '... relative');
is(kind('-f', '/to-upper'), 'OK 200', '... in capitals');
like(sent(@secret, '-f', '/to-same'), qr{^GET /to-same .*Authorization: Bearer tok-s3cret\n.*GET /ok .*X-Api-Key: tok-s3cret\n}s, '... with the secret headers, to the same origin');
for (['another port', '/to-other', "http://127.0.0.1:$other/stolen"], ['another host', '/to-host', "http://localhost:$port/ok"],
    ['a user', '/to-user', '(no URL)'], ['a file', '/to-file', '(no URL)']) {
	my ($name, $path, $to) = @$_;
	is(kind('-f', @secret, $path), 'REFUSED 302', "redirect to $name");
	is(why('-f', @secret, $path), "BASE$path: status 302: redirects to $to, not the same origin: not followed", '... and said');
}
is(slurp('other.log'), '', '... the other server was sent nothing');
is(kind('-f', '/to-nowhere'), 'REFUSED 302', 'to nowhere');
is(why('-f', '/to-nowhere'), 'BASE/to-nowhere: status 302: gone', '... and said');
is(why('-f', '/to-self'), 'BASE/to-self: status 302: more than 5 redirects', 'round and round');
is(kind('-f', '/hop4'), 'OK 200', 'five redirects');
is(kind('-f', '/hop5'), 'REFUSED 302', 'six');
is(kind('-f', '-b', 'x', '/to-same'), 'REFUSED 302', 'a POST is not followed');
is(kind('-f', '-m', 'HEAD', '/to-same'), 'OK 200', 'a HEAD is');

# ---- headers and links -----------------------------------------------------------------------------

is(ask('-q', '-h', 'X-LONG', '/folded') =~ s/^OK.*\n//r, "header one two\nheader three\nheader \n", 'headers: any case, in order, folded, trimmed');
# The links of one relation, of several answers at once.
sub links { my ($rel, @answers) = @_; map { s/\?.*//r } ask('-q', '-l', $rel, map { headers(200, map { "Link: $_" } @$_) } @answers) =~ /^link (.*)$/mg }
my @links = (	# RFC 8288 3.5 and 3.4, then what servers send
	['RFC 8288', 'previous', 'http://example.com/TheBook/chapter2', '<http://example.com/TheBook/chapter2>; rel="previous"; title="previous chapter"'],
	['RFC 8288: relative', 'http://example.net/foo', 'BASE/', '</>; rel="http://example.net/foo"'],
	['RFC 8288: an anchor is of something else', 'copyright', 'no', '</terms>; rel="copyright"; anchor="#foo"'],
	['RFC 8288: title*', 'next', 'BASE/TheBook/chapter4', q{</TheBook/chapter2>; rel="previous"; title*=UTF-8'de'letztes%20Kapitel, </TheBook/chapter4>; rel="next"; title*=UTF-8'de'n%c3%a4chstes%20Kapitel}],
	['RFC 8288: several rels', 'http://example.net/relation/other', 'http://example.org/', '<http://example.org/>; rel="start http://example.net/relation/other"'],
	['unquoted', 'next', 'BASE/p2', '</p2>; rel=next'],
	['not first', 'next', 'BASE/p2', '</p2>;title="a"; rel=next;type=x'],
	['capitals', 'next', 'BASE/p2', '</p2>; REL="NEXT"'],
	['blanks', 'next', 'BASE/p2', '  </p2>  ;  rel = "next" '],
	['the first rel counts', 'next', 'no', '</p2>; rel=prev; rel=next'],
	['a part of a word is none', 'next', 'no', '</p2>; rel="nextish ext"'],
	['several links', 'next', 'BASE/p3', '</p1>; rel=prev, </p3>; rel=next, </p9>; rel=last'],
	['several headers', 'next', 'BASE/p3', '</p1>; rel=prev', '</p3>; rel=next'],
	['commas and semicolons inside', 'next', 'BASE/a,b;c', '</x>; rel=prev; title="a, <y>; rel=next", </a,b;c>; rel=next'],
	['a quoted quote', 'next', 'BASE/p3', '</x>; title="a\\", </y>; rel=next"; rel=prev, </p3>; rel=next'],
	['no rel', 'next', 'no', '</p2>'],
	['no end', 'next', 'no', '</p2; rel=next'],
	['an open quote', 'next', 'no', '</p2>; rel="next'],
	['nothing', 'next', 'no', ', ,'],
	['user name: as it stands', 'next', 'https://me@example.com/', '<https://me@example.com/>; rel=next'],
	['no http: as it stands', 'next', 'file:///etc/passwd', '<file:///etc/passwd>; rel=next'],
	['a flag before', 'next', 'BASE/p2', '</p2>; flag; rel=next'],
	['no header', 'next', 'no'],
);
my %rel;
push @{$rel{$_->[1]}}, $_ for @links;
for my $rel (sort keys %rel) {
	@got = links($rel, map { [@$_[3 .. $#$_]] } @{$rel{$rel}});
	is(shift @got, $_->[2], "link: $_->[0]") for @{$rel{$rel}};
}

# ---- certificates ----------------------------------------------------------------------------------

like(run($unit, 'ask', "https://127.0.0.1:$port/ok"), qr/^LATER 0 /, 'no TLS where it is expected');
SKIP: {
	skip 'openssl is not installed', 3 if system 'command -v openssl >/dev/null';
	system("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key -out cert -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 2>/dev/null") == 0 or skip 'no certificate', 3;
	my $pid = open our $tls, '-|';	# not my: closing it would wait
	if ($pid == 0) {
		setpgrp;
		open STDIN, '<', '/dev/null';
		open STDERR, '>', '/dev/null';
		exec 'openssl', 's_server', '-accept', '127.0.0.1:0', '-key', 'key', '-cert', 'cert', '-www';
	}
	push @children, $pid;
	my ($p, $line);
	while (defined($line = <$tls>)) { ($p) = $line =~ /^ACCEPT.*:(\d+)/ and last }
	my $got = run($unit, 'ask', "https://127.0.0.1:$p/");
	like($got, qr/^REFUSED 0 /, 'a certificate of nobody: for good');
	like($got, qr/^why https:\/\/127.0.0.1:$p\/: no answer: SSL certificate problem: self-signed certificate$/m, '... and said');
	local $ENV{SSL_CERT_FILE} = "$dir/cert";
	like(run($unit, 'ask', "https://127.0.0.1:$p/"), qr/^OK 200 /, '... unless SSL_CERT_FILE names it');
}

done_testing;
