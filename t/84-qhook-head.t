#!/usr/bin/perl
# The head of a request: one way to read it, or none.
use strict;
use warnings;
use File::Basename qw(dirname);
use File::Temp qw(tempfile);
use Test::More;

my $t = dirname(__FILE__);
my $u = "$t/unit-head";
-x $u || system("make -s -C '$t/..' t/unit-head >/dev/null 2>&1") == 0 or die 'unit-head cannot be made';

my $ok = "POST /a HTTP/1.1\r\nHost: x\r\n";
my $fine = length("$ok\r\n") . ' 0 POST /a 1 -1 - Host=x';
my $crlf = 'a line that does not end with CR LF';
my $length = 'a Content-Length that is no number, or too large';
my $coding = 'a Transfer-Encoding that is not chunked, or in HTTP/1.0';
my $line = 'the request line is not METHOD PATH HTTP/1.1';
my $byte = 'a byte in the target that must be escaped';
my $name = 'a header name with a blank or another byte that names do not have';
my $control = 'a control byte in a header';
my $twice = 'a header that is there twice';
# The head, what is said of it, and a name; a number alone stands for a refusal with any text.
my @cases = (
	[ "$ok\r\n", $fine ],
	[ "$ok\r\nmore\r\n\r\n", $fine, 'what follows is not looked at' ],
	[ '', '0' ], [ $ok, '0' ], [ "$ok\r", '0' ], [ "GET / HTTP/1.1", '0' ], [ "GET /\r\n", '0', 'HTTP/0.9' ],
	[ "GET / HTTP/1.0\r\n\r\n", '18 0 GET / 0 -1 - ', 'HTTP/1.0 without Host' ],
	[ "GET /\r\n\r\n", "400 $line", 'HTTP/0.9 and an empty line' ],
	[ "GET / HTTP/1.1\r\n\r\n", '400 no Host' ],
	[ "\r\n", "400 $line" ], [ "\n", "400 $crlf" ],
	[ "\r\n$ok\r\n", "2 400 $line", 'an empty line before it' ],
	[ "POST  /a HTTP/1.1\r\nHost: x\r\n\r\n", '400 not HTTP/1.0 or HTTP/1.1', 'two blanks' ],
	[ "POST /a  HTTP/1.1\r\nHost: x\r\n\r\n", '400 not HTTP/1.0 or HTTP/1.1' ],
	[ "POST\t/a HTTP/1.1\r\nHost: x\r\n\r\n", "400 $line", 'a tab' ],
	[ " POST /a HTTP/1.1\r\nHost: x\r\n\r\n", '400', 'a blank first' ],
	(map { [ "POST /a $_\r\nHost: x\r\n\r\n", '400 not HTTP/1.0 or HTTP/1.1', $_ ] } 'HTTP/1.2', 'HTTP/2.0', 'http/1.1', 'HTTP/1.1 ', 'HTTP/01.1', 'HTTP/1.10', 'HTP/1.1'),
	[ "PRI * HTTP/2.0\r\n\r\n", '400 not HTTP/1.0 or HTTP/1.1', 'HTTP/2' ],
	(map { [ "P${_}T /a HTTP/1.1\r\nHost: x\r\n\r\n", '400 the method is no word', "a method with $_" ] } '(', '"', ':', "\x01", "\x80", '/', '@'),
	(map { [ "POST $_ HTTP/1.1\r\nHost: x\r\n\r\n", '400 the target is no path', $_ ] } 'http://x/a', '*', 'x:443', 'a', 'HTTP://x/', '?a'),
	(map { [ "POST /a$_ HTTP/1.1\r\nHost: x\r\n\r\n", "400 $byte" ] } "\x01", "\x7f", "\x80", "\xc3\xa9", '#b', "\t"),
	[ "POST /a%00%2f//..?b=c%20d HTTP/1.1\r\nHost: x\r\n\r\n", '0 POST /a%00%2f//..?b=c%20d 1 -1 - Host=x', 'a target is taken as it is' ],
	[ "POST /a\0 HTTP/1.1\r\nHost: x\r\n\r\n", '400 a NUL byte' ], [ "${ok}A: b\0c\r\n\r\n", '400 a NUL byte' ], [ "${ok}A\0: b\r\n\r\n", '400 a NUL byte' ],
	[ "POST /a HTTP/1.1\nHost: x\n\n", "400 $crlf", 'bare LF' ], [ "${ok}A: b\n\r\n", "400 $crlf", 'one bare LF' ],
	[ "${ok}\n", "400 $crlf", 'a bare LF at the end' ], [ "${ok}A: b\r\rB: c\r\n\r\n", "400 $crlf", 'CR CR' ], [ "${ok}A: b\rc\r\n\r\n", "400 $crlf", 'bare CR' ],
	[ "${ok}A: b\nContent-Length: 3\r\n\r\n", "400 $crlf", 'a line in a value' ], [ "${ok}A: b\r\n\n", "400 $crlf" ],
	[ "${ok}A: b\r\n c\r\n\r\n", '400 a header line that is continued' ], [ "${ok}A: b\r\n\tc\r\n\r\n", '400 a header line that is continued' ],
	[ "POST /a HTTP/1.1\r\n Host: x\r\n\r\n", '400 a header line that is continued' ],
	(map { [ "${ok}$_: b\r\n\r\n", "400 $name", "a name '$_'" ] } 'A ', "A\t", '', 'A B', '(A)', "A\x01", "\xc3\xa9", 'A/B', '"A"'),
	[ "${ok}A\r\n\r\n", '400 a header line without a colon' ],
	(map { [ "${ok}A: b${_}c\r\n\r\n", "400 $control" ] } "\x01", "\x08", "\x0b", "\x0c", "\x1f", "\x7f"),
	[ "${ok}A:b\r\nB:\r\nC: \t c d \t\r\nD: \xc3\xa9\xff\r\nE:f:g\r\n\r\n", "0 POST /a 1 -1 - Host=x|A=b|B=|C=c d|D=\xc3\xa9\xff|E=f:g" ],
	# what says where the body ends
	[ "${ok}Content-Length: 7\r\n\r\n", '0 POST /a 1 7 - Host=x|Content-Length=7' ],
	[ "${ok}Content-Length: 007\r\n\r\n", '0 POST /a 1 7 - Host=x|Content-Length=007' ],
	[ "${ok}content-length: 123456789012345678\r\n\r\n", '0 POST /a 1 123456789012345678 - Host=x|content-length=123456789012345678' ],
	(map { [ "${ok}Content-Length: $_\r\n\r\n", "400 $length", "length '$_'" ] } '', '-1', '+7', '7 7', '7,7', '7, 7', '0x7', '7.', '7;', '1234567890123456789', '18446744073709551617', "\xd9\xa7"),
	(map { [ "${ok}Content-Length: 7\r\n$_\r\n\r\n", "400 $twice", $_ ] } 'Content-Length: 7', 'content-length: 8', 'CONTENT-LENGTH:7'),
	[ "${ok}Transfer-Encoding: chunked\r\n\r\n", '0 POST /a 1 -1 chunked Host=x|Transfer-Encoding=chunked' ],
	[ "${ok}transfer-encoding:  CHUNKED \r\n\r\n", '0 POST /a 1 -1 chunked Host=x|transfer-encoding=CHUNKED' ],
	(map { [ "${ok}Transfer-Encoding: $_\r\n\r\n", "400 $coding", "coding '$_'" ] } '', 'gzip', 'gzip, chunked', 'chunked, gzip', 'chunked,', ',chunked', 'identity', 'chunked;q=1', 'xchunked', 'chunked chunked', '"chunked"', 'chun ked'),
	[ "${ok}Transfer-Encoding:\x0bchunked\r\n\r\n", "400 $control", 'a blank that is none' ],
	[ "POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "400 $coding", 'chunked in HTTP/1.0' ],
	[ "${ok}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "400 $twice" ],
	(map { [ "$ok$_\r\n\r\n", '400 Content-Length beside Transfer-Encoding' ] } "Content-Length: 7\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 7",
		"Transfer-Encoding: identity\r\nContent-Length: 7", "Content-Length: 7\r\nTransfer-Encoding:"),
	(map { [ "$ok$_\r\n\r\n", "400 $twice" ] } 'HOST: x', "Content-Type: a\r\nContent-Type: a", "Content-Encoding: a\r\ncontent-encoding: a", "Expect: 100-continue\r\nExpect: 100-continue"),
	[ "${ok}Via: a\r\nVia: b\r\n\r\n", '0 POST /a 1 -1 - Host=x|Via=a|Via=b', 'other headers may be there twice' ],
	[ "${ok}Expect: 100-Continue\r\n\r\n", '0 POST /a 1 -1 - Host=x|Expect=100-Continue' ],
	[ "${ok}Expect: magic\r\n\r\n", '417 an Expect that is not 100-continue' ],
	# how much of it
	[ $ok . join('', map { "H$_: $_\r\n" } 1 .. 63) . "\r\n", '0 POST /a 1 -1 - Host=x|' . join('|', map { "H$_=$_" } 1 .. 63), '64 headers' ],
	[ $ok . join('', map { "H$_: $_\r\n" } 1 .. 64) . "\r\n", '431 too many headers', '65 headers' ],
	[ "POST /a?" . '&' x 64 . " HTTP/1.1\r\nHost: x\r\n\r\n", '431 too many parameters or cookies', '65 parameters' ],
	[ "${ok}Cookie: " . 'a=b;' x 65 . "\r\n\r\n", '431 too many parameters or cookies', '65 cookies' ],
);
my ($in, $name_in) = tempfile('q-test.XXXXXX', TMPDIR => 1, UNLINK => 1);
print $in unpack('H*', $_->[0]), "\n" for @cases;
close $in or die;
my @got = `'$u' <'$name_in'`;
is($?, 0, 'all are read');
for (@cases) {
	my ($head, $want, $what) = @$_;
	my $got = shift @got // '';
	chomp $got;
	$got =~ s/^\d+ // if $got ne $want;	# where it ends, where that is not said
	$got =~ s/ .*// if $want =~ /^\d{3}$/;
	(my $shown = substr $head, 0, 60) =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ge;
	is($got, $want, $what // $shown);
}
done_testing;
