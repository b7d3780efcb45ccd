#!/usr/bin/perl
# Values: what lib/json.c finds in a JSON text, and how lib/cursor.c reads, orders and asks for cursors, through t/unit-source.
#
# Where a table comes from is said above it.  Its rows are calls of the driver, fields separated by blanks here, %NN a byte
# (%20 a blank), and what it prints; a line of several results: t/unit-source.c.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;

my $t = abs_path(dirname($0));
my $dir = tempdir('q-test.XXXXXX', TMPDIR => 1, CLEANUP => 1);
@ENV{qw(TZ LC_ALL)} = ('Asia/Tokyo', 'C');	# no zone of the machine may count
chdir $dir or die "$dir: $!";
END { my $status = $?; chdir '/'; $? = $status }

# The driver that make built, unless a source is newer.
my $unit = "$t/unit-source";
my @src = qw(json.c cursor.c text.c when.c);
my $newest = (sort { $b <=> $a } map { (stat $_)[9] } "$unit.c", map { "$t/../lib/$_" } @src, qw(json.h source.h q.h))[0];
if (!-x $unit || (stat $unit)[9] < $newest) {
	$unit = "$dir/unit-source";
	my $cc = $ENV{CC} // 'cc';
	system("cd '$t/..' && $cc -std=c11 -D_XOPEN_SOURCE=700 -Ilib -o '$unit' t/unit-source.c " . join(' ', map { "lib/$_" } @src) . ' -ljansson') == 0 or die;
}

sub calls {
	open my $f, '>', 'calls' or die;
	print $f map { join("\t", @$_) . "\n" } @_;
	close $f;
	my @got = split /\n/, `'$unit' <calls`, -1;
	is($?, 0, 'the driver ends well') if $? != 0;
	return @got;
}

# Rows "CALL -> RESULT", all in one process; $verb stands before each.
sub table {
	my ($name, $verb, $text) = @_;
	my @rows = map { [split / +-> /, $_, 2] } grep { / -> / } split /\n/, $text;
	my @got = calls(map { [split(' ', $verb), split(' ', $_->[0], -1)] } @rows);
	is($got[$_] // '(nothing)', $rows[$_][1], "$name: $rows[$_][0]") for 0 .. $#rows;
}
sub code { my ($s) = @_; $s =~ s/([^!\$-~#])/sprintf '%%%02x', ord $1/ge; $s =~ s/%(?![0-9a-f]{2})/%25/g; $s }

# ---- JSON: what is a text of RFC 8259 -------------------------------------------------------------

# Sections 2 to 7 of RFC 8259, each production and each way to miss it; its span is the value without the blanks around it.
table 'a text', 'read', <<'END';
{} -> {}
[] -> []
"" -> ""
0 -> 0
-0 -> -0
null -> null
true -> true
false -> false
%20%09%0a%0d[%20]%0a -> [%20]
[1,%0a2%09,"x"] -> [1,%0a2%09,"x"]
{%20"a"%20:%201%20} -> {%20"a"%20:%201%20}
[[[]],{"":{"":[]}}] -> [[[]],{"":{"":[]}}]
1.10 -> 1.10
12345678901234567890123 -> 12345678901234567890123
1e400 -> 1e400
-1.5E-07 -> -1.5E-07
1E+2 -> 1E+2
0e0 -> 0e0
"\"\\\/\b\f\n\r\t\u00e9" -> "\"\\\/\b\f\n\r\t\u00e9"
"\ud83d\ude00" -> "\ud83d\ude00"
"\ud800" -> "\ud800"
"%c3%a9%7f" -> "%c3%a9%7f"
"[{,:}]" -> "[{,:}]"
%ef%bb%bf[] -> []
END

table 'no text', 'read', <<'END';
%20 -> no 1: it is empty
%ef%bb%bf -> no 3: it is empty
%ef%bb%bf%ef%bb%bf[] -> no 3: not JSON
%00 -> no 0: not JSON
%ff%fe[%00]%00 -> no 0: not JSON
[] [] -> []
[]%20[] -> no 3: something follows the JSON value
{}} -> no 2: something follows the JSON value
1%002 -> no 1: something follows the JSON value
[1,] -> no 3: not JSON
[,1] -> no 1: not JSON
[1%202] -> no 3: no comma between values
[1;2] -> no 2: no comma between values
[1} -> no 2: no comma between values
{"a":1] -> no 6: no comma between values
{"a":1,} -> no 7: a member without a name
{a:1} -> no 1: a member without a name
{1:1} -> no 1: a member without a name
{'a':1} -> no 1: a member without a name
{"a",1} -> no 4: a member without a colon
{"a"} -> no 4: a member without a colon
{"a":} -> no 5: not JSON
{"a"::1} -> no 5: not JSON
'a' -> no 0: not JSON
True -> no 0: not JSON
nul -> no 0: it is cut off
nulL -> no 0: not JSON
nullx -> no 4: something follows the JSON value
NaN -> no 0: not JSON
Infinity -> no 0: not JSON
-Infinity -> no 1: not a number
undefined -> no 0: not JSON
01 -> no 1: something follows the JSON value
-01 -> no 2: something follows the JSON value
+1 -> no 0: not JSON
.5 -> no 0: not JSON
1.]  -> no 2: not a number
[1.] -> no 3: not a number
[1.e5] -> no 3: not a number
[1e] -> no 3: not a number
[1e+] -> no 4: not a number
[-] -> no 2: not a number
[0x1] -> no 2: no comma between values
[1_0] -> no 2: no comma between values
/**/[] -> no 0: not JSON
[]//x -> no 2: something follows the JSON value
"\x41" -> no 2: an unknown escape
"\'" -> no 2: an unknown escape
"\%00" -> no 2: an unknown escape
"\u12g4" -> no 2: an unknown escape
"\U0041" -> no 2: an unknown escape
"%0a" -> no 1: a control byte in a string
"%00" -> no 1: a control byte in a string
"%1f" -> no 1: a control byte in a string
"a%09b" -> no 2: a control byte in a string
<html></html> -> no 0: not JSON
)]}',%0a[] -> no 0: not JSON
END

# No beginning of a text is a text, unless it is a number; the end of one is told apart from what is wrong in it.
{
	my $long = '{"a":[1.5e+3,-0,true,false,null,"\ud83d\ude00\\\\\"x"],"b":{"":[],"c":{}}} ';
	my $n = length($long) - 2;
	my @got = calls(['cut', code($long)], ['cut', '[10]'], ['cut', '1.5e3'], ['cut', '%ef%bb%bf[]'], map { ['read', code(substr $long, 0, $_)] } 1 .. $n);
	is(shift @got, ($n + 1) . ' refused ' . ($n + 1) . ' of ' . ($n + 2), 'each beginning is refused, up to the last bracket');
	is(shift @got, 'refused 4 of 4', '... of an array');
	is(shift @got, '1 3 refused 3 of 5', '... but a number has several ends');
	is(shift @got, 'refused 5 of 5', '... and after a byte order mark');
	is(join("\n", grep { !/^no \d+: (?:it is cut off|an unknown escape)$/ } @got), '', '... and what is wrong is that it is cut off');
}

# 200 levels are read; deeper ones are refused before the stack ends.
{
	my @got = calls(['read', '[' x 201 . ']' x 201], ['read', '[' x 200 . ']' x 200], ['read', '[' x 500_000], ['read', '{"a":' x 100_000],
	    ['read', '{"a":' x 200 . '1' . '}' x 200], ['at', '[' x 200 . ']' x 200, '/0' x 199], ['canon', '[' x 200 . ']' x 200]);
	is($got[0], 'no 200: nested deeper than 200', '201 levels');
	is($got[1], '[' x 200 . ']' x 200, '200 levels');
	is($got[2], 'no 200: nested deeper than 200', '500,000 levels');
	is($got[3], 'no 1000: nested deeper than 200', '100,000 objects');
	is($got[4], '{"a":' x 200 . '1' . '}' x 200, '200 objects');
	is($got[5], '[]', '... found');
	is($got[6], '[' x 199 . '[],' . '],' x 198 . ']', '... and compared');
}

table 'kind', 'kind', <<'END';
{} -> {
%20[1] -> [
"x" -> "
-1 -> 0
0 -> 0
9.5 -> 0
true -> t
false -> f
null -> n
END

# ---- what is where ---------------------------------------------------------------------------------

# RFC 6901, section 5: all twelve.
{
	my $doc = code(my $plain = '{ "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\\\j": 5, "k\"l": 6, " ": 7, "m~n": 8 }');
	$plain =~ s/ /%20/g;
	my @rows = (['', $plain], ['/foo', '["bar",%20"baz"]'], ['/foo/0', '"bar"'], ['/', 0], ['/a~1b', 1], ['/c%d', 2], ['/e^f', 3], ['/g|h', 4],
	    ['/i\\j', 5], ['/k"l', 6], ['/ ', 7], ['/m~0n', 8]);
	my @got = calls(map { ['at', $doc, code($_->[0])] } @rows);
	is($got[$_], $rows[$_][1], "RFC 6901, 5: \"$rows[$_][0]\"") for 0 .. $#rows;
}

# RFC 6901, sections 3 and 4.
table 'a pointer?', 'pointer', <<'END';
/ -> yes
/a//b -> yes
/~0~1 -> yes
/~01 -> yes
a -> no
a/b -> no
#/a -> no
/~ -> no
/~2 -> no
/a~/b -> no
/%c3%a9 -> yes
END
table 'at', 'at', <<'END';
{"a":{"b":[10,20,{"c":null}]}} /a/b/2/c -> null
[10,20] /0 -> 10
[10,20] /1 -> 20
[10,20] /2 -> nothing
[10,20] /- -> nothing
[10,20] /01 -> nothing
[10,20] /00 -> nothing
[10,20] /+1 -> nothing
[10,20] /-1 -> nothing
[10,20] /1e0 -> nothing
[10,20] /0x1 -> nothing
[10,20] / -> nothing
[10,20] /99999999999999999999999 -> nothing
[10,20] /4294967296 -> nothing
{"0":1} /0 -> 1
{"01":1} /01 -> 1
{"a":1} /a/b -> nothing
{"a":"b"} /a/0 -> nothing
{"a":null} /a/b -> nothing
{"a":1} /A -> nothing
{"a":1} /aa -> nothing
{"aa":1} /a -> nothing
{"a":{"":{"":7}}} /a// -> 7
{"~1":1} /~01 -> 1
{"/":1} /~1 -> 1
{"\u0061":1} /a -> 1
{"\/":1} /~1 -> 1
{"%c3%a9":1} /%c3%a9 -> 1
{"\u00e9":1} /%c3%a9 -> 1
{"a\u0000b":1} /a -> nothing
{"a":1,"a":2} /a -> 2
{"a":{"x":1},"\u0061":{"y":2}} /a/x -> nothing
{"x":{"a":1},"a":2} /a -> 2
{"x":"\"a\":9","a":2} /a -> 2
{"x":["}",{"a":9}],"a":2} /a -> 2
%ef%bb%bf%20[1] /0 -> 1
END

table 'elements', 'list', <<'END';
[] -> 
[%0a] -> 
[1] -> 1
[1,"a,b",[2,3],{"c":[4]},null] -> 1|"a,b"|[2,3]|{"c":[4]}|null
[%20{%20"a"%20:1.10}%20,%0a2%20] -> {%20"a"%20:1.10}|2
["\\","]"] -> "\\"|"]"
END

# RFC 8259, section 7: the escapes; half of a pair is none of a character.
table 'what it means', 'text', <<'END';
"a" -> a
"" -> 
12345678901234567890 -> 12345678901234567890
1.10 -> 1.10
true -> true
"\"\\\/\b\f\n\r\t" -> "\/%08%0c%0a%0d%09
"\u0041\u00e9\u20ac" -> A%c3%a9%e2%82%ac
"\ud834\udd1e" -> %f0%9d%84%9e
"\uD83D\uDE00" -> %f0%9f%98%80
"\udbff\udfff" -> %f4%8f%bf%bf
"\ud83dx" -> %ef%bf%bdx
"\ud83d" -> %ef%bf%bd
"\ude00\ud83d" -> %ef%bf%bd%ef%bf%bd
"\ud83d\u0041" -> %ef%bf%bdA
"\ud83d\ud83d\ude00" -> %ef%bf%bd%f0%9f%98%80
"\ud83d\\ude00" -> %ef%bf%bd\ude00
"a\u0000b" -> a%00b
"\\u0041" -> \u0041
"%ff" -> %ff
END

table 'on one line', 'line', <<'END';
{%0a%20"a":%20[1.10,%09"x%20%20y"],%0d%0a"b":1e2} -> {"a":[1.10,"x%20%20y"],"b":1e2}
"%20\"%20" -> "%20\"%20"
[%201%20] -> [1]
{"\\":%20"\\",%20"b":%201} -> {"\\":"\\","b":1}
END

# One form whatever the blanks, the order of members, the escapes; but numbers keep their digits, arrays their order.
table 'the same?', 'same', <<'END';
{"a":1,"b":2} {%20"b":2,"a":1} -> yes
{"a":{"d":1,"c":2}} {"a":{"c":2,"d":1}} -> yes
{"a":1} {"\u0061":1} -> yes
["%c3%a9"] ["\u00e9"] -> yes
["%7f"] ["\u007f"] -> yes
["a/b"] ["a\/b"] -> yes
["%f0%9f%98%80"] ["\ud83d\uDE00"] -> yes
["\u000a"] ["\n"] -> yes
["\u001F"] ["\u001f"] -> yes
["\""] ["\u0022"] -> yes
[1,2] [2,1] -> no
[1.1] [1.10] -> no
[1e2] [100] -> no
[1e2] [1E2] -> no
["1"] [1] -> no
[null] [] -> no
[[]] [{}] -> no
{"a":null} {} -> no
["ab"] ["a","b"] -> no
["a,b"] ["a","b"] -> no
{"a":"b,c:d"} {"a":"b","c":"d"} -> no
[[1],2] [[1,2]] -> no
{"ab":1} {"a":1} -> no
{"a":1,"a":2} {"a":2,"a":1} -> no
["\\n"] ["\n"] -> no
["A"] ["a"] -> no
END
table 'without', 'canon', <<'END';
{"b":1,"a":2} -> {"a":2,"b":1,}
{"b":1,"a":2} /b -> {"a":2,}
{"b":{"x":1,"y":2},"a":2} /b/x /a -> {"b":{"y":2,},}
{"b":1} /c -> {"b":1,}
[{"a":1,"b":2},{"a":3}] /0/a -> [{"b":2,},{"a":3,},]
{"b":1,"a":2} /a /b -> {}
END

# ---- cursors: what a value is ----------------------------------------------------------------------

# RFC 3339, section 5.8, its examples; seconds since 1970 from date(1).
table 'RFC 3339', 'key time', <<'END';
1985-04-12T23:20:50.52Z -> 482196050520
1996-12-19T16:39:57-08:00 -> 851042397000
1996-12-20T00:39:57Z -> 851042397000
1990-12-31T23:59:60Z -> 662688000000
1990-12-31T15:59:60-08:00 -> 662688000000
1937-01-01T12:00:27.87+00:20 -> -1041337172130
END
# Forms that APIs send (ISO 8601 and near it): with a blank, a comma, without a colon, 24:00; and the ends of the calendar.
table 'time', 'key time', <<'END';
2026-03-01T00:00:00Z -> 1772323200000
2026-03-01%2001:00:00+01:00 -> 1772323200000
2026-03-01%2001:00:00%20+0100 -> 1772323200000
2026-02-28T19:00:00.000000-0500 -> 1772323200000
2026-03-01T00:00:00,0Z -> 1772323200000
2026-03-01t00:00:00z -> 1772323200000
2026-03-01T05:30:00+0530 -> 1772323200000
2026-03-01T01:00:00+01 -> 1772323200000
2026-03-01T00:00:00+00:00 -> 1772323200000
2026-03-01T00:00:00-00:00 -> 1772323200000
2026-03-01T00:00Z -> 1772323200000
2026-03-01T00:00:00UTC -> 1772323200000
2026-03-01 -> 1772323200000
2026-12-31T23:59:60Z -> 1798761600000
2026-12-31T24:00:00Z -> 1798761600000
2027-01-01T00:00:00Z -> 1798761600000
2024-02-29T12:00:00Z -> 1709208000000
2000-02-29T00:00:00Z -> 951782400000
1970-01-01T00:00:00Z -> 0
1969-12-31T23:59:59.999Z -> -1
0001-01-01T00:00:00Z -> -62135596800000
9999-12-31T23:59:59.999999999Z -> 253402300799999
2026-03-01T00:00:00.123456789123Z -> 1772323200123
END
table 'no time', 'key time', <<'END';
2026-02-29 -> no: is not a time such as 2026-03-01T00:00:00Z
2100-02-29T00:00:00Z -> no: is not a time such as 2026-03-01T00:00:00Z
2026-01-01T25:00Z -> no: is not a time such as 2026-03-01T00:00:00Z
2026-01-01T24:00:01Z -> no: is not a time such as 2026-03-01T00:00:00Z
2026-01-01T24:00:00.1Z -> no: is not a time such as 2026-03-01T00:00:00Z
2026-01-01T00:60:00Z -> no: is not a time such as 2026-03-01T00:00:00Z
2026-01-01T00:00:61Z -> no: is not a time such as 2026-03-01T00:00:00Z
2026-13-01T00:00:00Z -> no: is not a time such as 2026-03-01T00:00:00Z
2026-00-01T00:00:00Z -> no: is not a time such as 2026-03-01T00:00:00Z
2026-04-31T00:00:00Z -> no: is not a time such as 2026-03-01T00:00:00Z
2026-01-00T00:00:00Z -> no: is not a time such as 2026-03-01T00:00:00Z
0000-01-01T00:00:00Z -> no: is not a time such as 2026-03-01T00:00:00Z
12026-01-01T00:00:00Z -> no: is not a time such as 2026-03-01T00:00:00Z
-2026-01-01T00:00:00Z -> no: is not a time such as 2026-03-01T00:00:00Z
2026-1-1T00:00:00Z -> no: is not a time such as 2026-03-01T00:00:00Z
20260101T000000Z -> no: is not a time such as 2026-03-01T00:00:00Z
2026-01-01T00:00:00.Z -> no: is not a time such as 2026-03-01T00:00:00Z
2026-01-01T00:00:00+24:00 -> no: is not a time such as 2026-03-01T00:00:00Z
2026-01-01T00:00:00+01:60 -> no: is not a time such as 2026-03-01T00:00:00Z
2026-01-01T00:00:00+1 -> no: is not a time such as 2026-03-01T00:00:00Z
2026-01-01T00:00:00%2001:00 -> no: is not a time such as 2026-03-01T00:00:00Z
2026-01-01T00:00:00ZZ -> no: is not a time such as 2026-03-01T00:00:00Z
2026-01-01T00:00:00Z%20 -> no: is not a time such as 2026-03-01T00:00:00Z
%202026-01-01T00:00:00Z -> no: is not a time such as 2026-03-01T00:00:00Z
2026-01-01T00:00:00CET -> no: is not a time such as 2026-03-01T00:00:00Z
2026-03-01T00:00:00 -> no: names no zone, and the source none that it is in; set "zone"
1772323200 -> no: is not a time such as 2026-03-01T00:00:00Z
now -> no: is not a time such as 2026-03-01T00:00:00Z
END
table 'in a zone', 'key', <<'END';
time,zone=UTC 2026-03-01T00:00:00 -> 1772323200000
time,zone=+02:00 2026-03-01T02:00:00 -> 1772323200000
time,zone=+02:00 2026-03-01 -> 1772316000000
time,zone=-0500 2026-02-28%2019:00:00.5 -> 1772323200500
time,zone=+02:00 2026-03-01T00:00:00Z -> 1772323200000
END
table 'epoch', 'key', <<'END';
epoch 1772323200 -> 1772323200000
epoch 1772323200.000 -> 1772323200000
epoch 1772323200.5 -> 1772323200500
epoch 1355517523.000005 -> 1355517523000
epoch 0 -> 0
epoch -1 -> -1000
epoch -0.25 -> -250
epoch -1.25 -> -1250
epoch 00000000000 -> 0
epoch 99999999999 -> 99999999999000
epoch 1772323200123 -> no: is too large for seconds since 1970; is it "epoch_ms"?
epoch 1.77e9 -> no: is not a number
epoch 1772323200. -> no: is not a number
epoch +1 -> no: is not a number
epoch - -> no: is not a number
epoch 0x10 -> no: is not a number
epoch 2026-03-01 -> no: is not a number
epoch_ms 1772323200000 -> 1772323200000
epoch_ms 0 -> 0
epoch_ms -1 -> -1
epoch_ms -1001 -> -1001
epoch_ms 1772323200000.5 -> no: is not a number
epoch_us 1772323200000001 -> 1772323200000
epoch_us -1 -> -1
epoch_ms 1772323200000001 -> no: is too large for ms since 1970; is it "epoch_us"?
epoch_us 1772323200000001000 -> no: is not a number
epoch_us 999999999999999999 -> no: is too large for us since 1970
END
table 'numbers', 'key', <<'END';
int 0 -> ok
int 00012 -> ok
int 18446744073709551616 -> ok
int -1 -> no: is not a whole number without sign
int +1 -> no: is not a whole number without sign
int 1.0 -> no: is not a whole number without sign
int 1e3 -> no: is not a whole number without sign
int x -> no: is not a whole number without sign
int 1%20 -> no: is not a whole number without sign
decimal 1.10 -> ok
decimal 1 -> ok
decimal 1. -> no: is not a number without sign and exponent
decimal .5 -> no: is not a number without sign and exponent
decimal 1.1.1 -> no: is not a number without sign and exponent
decimal 1e2 -> no: is not a number without sign and exponent
decimal -1.5 -> no: is not a number without sign and exponent
none anything -> ok
END
{
	my @got = calls(['key', 'int', '9' x 120], ['key', 'int', '9' x 121], ['key', 'int', ''], ['key', 'time', ''], ['key', 'epoch', '']);
	is($got[0], 'ok', '120 digits');
	is($got[1], 'no: is longer than 120 bytes', '121 digits');
	is($got[2], 'no: is not a whole number without sign', 'an empty number');
	is($got[3], 'no: is not a time such as 2026-03-01T00:00:00Z', 'an empty time');
	is($got[4], 'no: is not a number', 'an empty epoch');
}

# ---- their order ------------------------------------------------------------------------------------

table 'order', 'order', <<'END';
time 2026-03-01T00:00:00.1Z 2026-03-01T00:00:00.10001Z 2026-03-01T00:00:00.9Z 2026-03-01T00:00:01Z -> <<<
time 2026-03-01T00:00:00Z 2026-03-01%2001:00:00+01:00 2026-02-28T19:00:00.000000-0500 2026-03-01T00:00:00,0Z -> ===
time 2026-12-31T23:59:60Z 2027-01-01T00:00:00Z 2026-12-31T24:00:00Z -> ==
time 2026-03-01T09:00:00+09:00 2026-03-01T00:00:01Z 2026-02-28T23:00:00-05:00 -> <<
time 0001-01-01 1969-12-31 1970-01-01 1970-01-02 9999-12-31 -> <<<<
time 1969-12-31T23:59:59Z 1969-12-31T23:59:59.5Z 1970-01-01 -> <<
time 2026-03-01T00:00:00.000000001Z 2026-03-01T00:00:00.000000002Z 2026-03-01T00:00:00.0000000021Z -> <=
epoch 1772323200 1772323200.000 1772323200.0001 1772323201 -> =<<
epoch -1 -0.5 0 0.5 9 10 -> <<<<<
epoch_ms -1 0 1 999 1000 -> <<<<
int 9007199254740992 9007199254740993 18446744073709551616 -> <<
int 99 100 -> <
int 0 00 1 01 2 10 -> =<=<<
int 9 10 9 -> <>
decimal 1.10 1.1 1.9 10.0 10 -> =<<=
decimal 0 0.0 0.001 0.01 0.1 0.10 1 -> =<<<=<
decimal 1355517523.000005 1355517523.000006 1355517524 -> <<
decimal 1 1.0000000000000000000000000000000000000001 -> <
END

# ---- what is asked with ------------------------------------------------------------------------------

table 'asked', 'bound', <<'END';
time 2026-03-01%2001:00:00.120+01:00 -> 2026-03-01%2001:00:00.120+01:00 =
int 12 -> 12 =
decimal 1.10 -> 1.10 =
epoch 1772323200.10 -> 1772323200.10 =
time,lookback=300000 2026-03-01T00:00:00Z -> 2026-03-01T00:00:00Z =
time,lookback=300000 2026-03-01T00:00:00Z back -> 2026-02-28T23:55:00Z <
time,shift=1000 2026-03-01T00:00:00.5Z -> 2026-02-28T23:59:59.500Z <
time,shift=1 2026-03-01T00:00:00Z -> 2026-02-28T23:59:59.999Z <
time,shift=1000,lookback=60000 2026-03-01T00:00:00.000001Z back -> 2026-02-28T23:58:59.000001Z <
time,shift=1000 2026-03-01T00:00:00.000000001Z -> 2026-02-28T23:59:59.000000001Z <
time,granularity=60000 2026-03-01T12:34:56.789Z -> 2026-03-01T12:34:00Z <
time,granularity=60000 2026-03-01T12:34:00Z -> 2026-03-01T12:34:00Z =
time,granularity=86400000 2026-03-01T12:34:56Z -> 2026-03-01T00:00:00Z <
time,granularity=60000 1969-12-31T23:59:30Z -> 1969-12-31T23:59:00Z <
time,granularity=86400000,shift=86400000 2026-03-01T12:34:56Z -> 2026-02-28T00:00:00Z <
time,granularity=1 2026-03-01T00:00:00.0019Z -> 2026-03-01T00:00:00.001Z <
time,format=s 2026-03-01T00:00:00.999Z -> 1772323200 <
time,format=ms 2026-03-01T00:00:00.9999Z -> 1772323200999 <
time,format=us 2026-03-01T00:00:00.9999999Z -> 1772323200999999 <
time,format=s 1969-12-31T23:59:59.5Z -> -1 <
time,format=%25Y-%25m-%25dT%25H:%25M:%25S.%25LZ 2026-03-01T00:00:00.12Z -> 2026-03-01T00:00:00.120Z =
time,format=%25Y-%25m-%25dT%25H:%25M:%25SZ 2026-03-01T00:00:00.12Z -> 2026-03-01T00:00:00Z <
time,format=%25Y/%25m/%25d%20%25H:%25M 2026-03-01T12:34:56Z -> 2026/03/01%2012:34 <
time,format=%25Y-%25m-%25d 2026-03-01T12:34:56Z -> 2026-03-01 <
time,format=%25Y-%25m-%25d%25%25 2026-03-01T00:00:00Z -> 2026-03-01% =
time,format=%25Y-%25m-%25d%20%25H:%25M:%25S,zone=+02:00 2026-03-01T00:00:00Z -> 2026-03-01%2002:00:00 =
time,format=%25Y-%25m-%25d%20%25H:%25M:%25S,zone=-05:00 2026-03-01T00:00:00Z -> 2026-02-28%2019:00:00 =
time,format=%25Y-%25m-%25d 0001-01-01T12:00:00Z -> 0001-01-01 <
epoch,shift=1000 1772323200 -> 1772323199 <
epoch,shift=1500 1772323200 -> 1772323198.500 <
epoch,granularity=86400000,shift=86400000 1772326800 -> 1772236800 <
epoch_ms,shift=1 1772323200000 -> 1772323199999 <
epoch_ms,format=s 1772323200999 -> 1772323200 <
epoch_us,shift=1 1772323200000001 -> 1772323199999001 <
epoch_us,format=ms 1772323200000999 -> 1772323200000 <
epoch,format=%25Y-%25m-%25dT%25H:%25M:%25SZ 1772323200 -> 2026-03-01T00:00:00Z =
END

# A date in a zone is the beginning of that zone's day, which is not midnight UTC.
{
	my @rows = (['+02:00', '2026-03-01T23:30:00Z', '2026-03-02'], ['+02:00', '2026-03-01T21:59:59Z', '2026-03-01'],
	    ['-05:00', '2026-03-01T02:00:00Z', '2026-02-28'], ['-05:00', '2026-03-01T05:00:00Z', '2026-03-01']);
	my @got = calls(map { ["bound", "time,format=%25Y-%25m-%25d,zone=$_->[0]", $_->[1]] } @rows);
	like($got[$_], qr/^$rows[$_][2] [<=]$/, "the day in $rows[$_][0] of $rows[$_][1]") for 0 .. $#rows;
	is($got[3], '2026-03-01 =', '... at its first instant the key is the same');
}

table 'an instant', 'instant', <<'END';
time 1772323200000 -> 2026-03-01T00:00:00Z
time 1772323200120 -> 2026-03-01T00:00:00.120Z
time 0 -> 1970-01-01T00:00:00Z
time -1 -> none
epoch 1772323200120 -> 1772323200.120
epoch_ms 1772323200120 -> 1772323200120
epoch_us 1772323200120 -> 1772323200120000
int 1772323200120 -> none
none 0 -> none
END

my $format = '"cursor_format" is not s, ms, us, or a text with %25Y %25m %25d, and %25H %25M %25S %25L as needed';
$format =~ s/%25/%/g;
table 'description', 'spec', <<"END";
time -> ok
time,zone=UTC -> ok
time,zone=Z -> ok
time,zone=+05:30 -> ok
time,zone=-0330 -> ok
time,zone=Europe/Berlin -> "zone" is not UTC or an offset such as +02:00
time,zone=CET -> "zone" is not UTC or an offset such as +02:00
time,zone=+2:00 -> "zone" is not UTC or an offset such as +02:00
time,format=ms -> ok
time,format=%25Y%25m%25d -> ok
time,format=%25Y -> $format
time,format=%25Y-%25m-%25dT%25T -> $format
time,format=%25Y-%25m-%25d%25 -> $format
time,format=iso -> $format
epoch,lookback=1000 -> ok
int -> ok
int,lookback=1000 -> "cursor_format", "granularity", "shift" and "lookback" are for times only
decimal,format=ms -> "cursor_format", "granularity", "shift" and "lookback" are for times only
none,shift=1 -> "cursor_format", "granularity", "shift" and "lookback" are for times only
END
done_testing;
