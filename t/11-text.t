#!/bin/sh
# Names, numbers, UTF-8, escaping, records from a stream and jobs from JSON: lib/text.c, read.c, record.c.
# shellcheck disable=SC2059,SC2086,SC2094	# bytes are printf formats; operands are words
. "${0%/*}/lib.sh"

# The driver that make built, unless a source is newer.
u=$t/unit-text src="text.c read.c record.c json.c when.c q.h"
if [ ! -x "$u" ] || [ -n "$(cd "$t/../lib" && find $src "$t/unit-text.c" -newer "$u")" ]; then
	u=$PWD/unit-text
	(cd "$t/.." && ${CC:-cc} -std=c11 -D_GNU_SOURCE -Ilib -o "$u" t/unit-text.c \
	    lib/text.c lib/read.c lib/record.c lib/json.c lib/when.c -ljansson) || exit 1
fi
jq=$(command -v jq) || jq=

bytes() { printf -- "$1" | "$u" $2; }		# FORMAT VERB
gives() { is "$(bytes "$1" "$2")" "$3" "$4"; }	# FORMAT VERB WANT NAME
repeat() { perl -e 'print $ARGV[1] x $ARGV[0]' "$@"; }

# Without jq one row is skipped for each that needs it.
needs_jq() {	# NAME
	[ -z "$jq" ] || return 0
	ok 0 "$1 # SKIP jq is not installed"
	return 1
}

# --- UTF-8: the borders of RFC 3629 -------------------------------------------------------------
utf8() { gives "$1" utf8 "$2" "UTF-8: $3"; }
utf8 '' yes 'nothing'
utf8 'a\0b' yes 'NUL'
utf8 '\001\177' yes 'U+0001 and U+007F'
utf8 '\200' no 'a continuation byte alone'
utf8 '\277' no '... the last one'
utf8 '\300\200' no 'NUL in two bytes'
utf8 '\301\277' no 'U+007F in two bytes'
utf8 '\302\200' yes 'U+0080'
utf8 '\302\177' no 'C2 and an ASCII byte'
utf8 '\302\300' no 'C2 and a lead byte'
utf8 '\337\277' yes 'U+07FF'
utf8 '\302' no 'C2 at the end'
utf8 '\340\237\277' no 'U+07FF in three bytes'
utf8 '\340\240\200' yes 'U+0800'
utf8 '\355\237\277' yes 'U+D7FF'
utf8 '\355\240\200' no 'U+D800, the first surrogate'
utf8 '\355\277\277' no 'U+DFFF, the last surrogate'
utf8 '\356\200\200' yes 'U+E000'
utf8 '\357\277\277' yes 'U+FFFF'
utf8 '\340\240' no 'two bytes of three'
utf8 '\340\240a' no '... and an ASCII byte'
utf8 '\360\217\277\277' no 'U+FFFF in four bytes'
utf8 '\360\220\200\200' yes 'U+10000'
utf8 '\363\277\277\277' yes 'U+FFFFF'
utf8 '\364\217\277\277' yes 'U+10FFFF'
utf8 '\364\220\200\200' no 'U+110000'
utf8 '\365\200\200\200' no 'lead byte F5'
utf8 '\370\210\200\200\200' no 'five bytes'
utf8 '\376' no 'FE'
utf8 '\377' no 'FF'
utf8 '\360\220\200' no 'three bytes of four'
utf8 '\360\220\200\300' no 'a bad fourth byte'
utf8 'ok\342\202\254ok\200' no 'a bad byte at the end of good text'

# --- names and numbers --------------------------------------------------------------------------
queue() { is "$("$u" queue "$1")" "$2" "queue: $3"; }
queue mail yes 'mail'
queue a yes 'one letter'
queue _x yes 'begins with _'
queue 7days yes 'begins with a digit'
queue a.b-c_D9 yes 'every kind'
queue "$(repeat 64 q)" yes '64 bytes'
queue "$(repeat 65 q)" no '65 bytes'
queue '' no 'empty'
queue 42 no 'a number'
queue 4.2 yes 'digits and a dot'
queue .x no 'begins with a dot'
queue -x no 'begins with -'
queue 'a b' no 'a blank'
queue a/b no 'a slash'
queue 'a*' no 'a star'
queue "$(printf 'a\n')x" yes 'the shell drops a newline at the end'
queue "$(printf 'a\nx')" no 'a newline'
queue "$(printf 'gr\303\274n')" no 'beyond ASCII'

name() { is "$("$u" name "$1")" "$2" "name: $3"; }
name '' 'is empty' 'empty'
name x good 'one byte'
name 'order #7, "new"' good 'blanks and quotes'
name "$(repeat 255 k)" good '255 bytes'
name "$(repeat 256 k)" 'is longer than 255 bytes' '256 bytes'
name "$(repeat 127 "$(printf '\303\274')")" good '127 characters of two bytes'
name "$(repeat 128 "$(printf '\303\274')")" 'is longer than 255 bytes' '128 characters of two bytes'
name "$(printf 'a\tb')" 'has a control byte' 'a tab'
name "$(printf 'a\nb')" 'has a control byte' 'a newline'
name "$(printf '\001')" 'has a control byte' '01'
name "$(printf 'a\037')" 'has a control byte' '1F'
name "$(printf '\177')" 'has a control byte' 'DEL'
name "$(printf '\303')" 'is not UTF-8' 'half a character'
name "$(printf '\355\240\200')" 'is not UTF-8' 'a surrogate'

int() { is "$("$u" int "$1" "$2" "$3")" "$4" "number: '$1' in $2..$3"; }
int 0 0 9 0
int 9 0 9 9
int 10 0 9 no
int 4 5 9 no
int 007 0 9 7
int '' 0 9 no
int ' 1' 0 9 no
int '1 ' 0 9 no
int +1 0 9 no
int -1 -5 9 no
int 1.0 0 9 no
int 0x1 0 9 no
int 1e1 0 99 no
int 9223372036854775807 0 9223372036854775807 9223372036854775807
int 9223372036854775808 0 9223372036854775807 no
int 18446744073709551617 0 9223372036854775807 no
int 00000000000000000000000000001 0 9 1

near() { w=$1 want=$2; shift 2; is "$("$u" nearest "$w" "$@")" "$want" "nearest to '$w' among $*"; }
near pendign pending pending claimed failed
near Dead dead 'done' dead
near dne 'done' 'done' dead
near orders orders order orders
near mial mail mail bulk
near xyz none mail bulk
near mail none
near '' none a b
near ab none ac
near "$(repeat 65 a)" none "$(repeat 65 a)"

# --- JSON strings -------------------------------------------------------------------------------
json() { gives "$1" json "$2" "JSON string: $3"; }
json '' '""' 'empty'
json 'plain' '"plain"' 'plain'
json '"\\/' '"\"\\/"' 'quote, backslash, slash'
json '\b\f\n\r\t' '"\b\f\n\r\t"' 'the short escapes'
json '\0\001\013\037' '"\u0000\u0001\u000b\u001f"' 'other control bytes'
json '\177' "$(printf '"\177"')" 'DEL is itself'
json 'gr\303\274n \342\202\254 \360\237\230\200' "$(printf '"gr\303\274n \342\202\254 \360\237\230\200"')" 'UTF-8 is itself'
json '\342\200\250' "$(printf '"\342\200\250"')" 'U+2028 is itself'
json 'a\200b' '"a\ufffdb"' 'a broken byte'
json '\300\200' '"\ufffd\ufffd"' 'overlong'
json '\355\240\200x' '"\ufffd\ufffd\ufffdx"' 'surrogate'
json '\364\220\200\200' '"\ufffd\ufffd\ufffd\ufffd"' 'beyond U+10FFFF'
json 'x\342\202' '"x\ufffd\ufffd"' 'cut off'

# --- JSON members for any bytes -----------------------------------------------------------------
member() { gives "$1" 'bytes p' "$2" "JSON member: $3"; }
is "$("$u" null p)" '"p":null' 'JSON member: absent is null'
member '' '"p":""' 'empty'
member 'hello' '"p":"hello"' 'text'
member '42' '"p":"42"' 'a number is text'
member 'true' '"p":"true"' 'true is text'
member '"x"' '"p":"\"x\""' 'a JSON string is text'
member '{}' '"p":{}' 'an object'
member '[]' '"p":[]' 'an array'
member ' { "a" : [ 1 ,\n\t2 ]\r\n} \n' '"p":{"a":[1,2]}' 'white space between tokens goes'
member '{"a b":"c  d\\n"}' '"p":{"a b":"c  d\n"}' 'white space in strings stays'
member '{"n":1.10}' '"p":{"n":1.10}' '1.10 stays'
member '[1e2,1E+2,-0,-0.0]' '"p":[1e2,1E+2,-0,-0.0]' 'numbers stay as written'
member '{"id":12345678901234567890}' '"p":{"id":12345678901234567890}' '20 digits stay'
member '[9223372036854775808,-9223372036854775809]' '"p":[9223372036854775808,-9223372036854775809]' 'beyond 64 bits'
member '{"a":1,"a":2}' '"p":{"a":1,"a":2}' 'a name given twice stays'
member '["\\u0000","\\u00fc","\\/"]' '"p":["\u0000","\u00fc","\/"]' 'escapes stay'
member '["]","}","\\"[","\\\\"]' '"p":["]","}","\"[","\\"]' 'brackets and quotes in strings'
member '{"\\"":1, "b": 2}' '"p":{"\"":1,"b":2}' 'a quote in a name'
member '["gr\303\274n"]' "$(printf '"p":["gr\303\274n"]')" 'UTF-8 in an array'
member '{"a":1' '"p":"{\"a\":1"' 'broken JSON is text'
member '{"a":1} x' '"p":"{\"a\":1} x"' 'something behind it'
member '{"a":1}{"b":2}' '"p":"{\"a\":1}{\"b\":2}"' 'two documents'
member "{'a':1}" "\"p\":\"{'a':1}\"" 'single quotes'
member '{"a":1,}' '"p":"{\"a\":1,}"' 'a comma too many'
member '[01]' '"p":"[01]"' 'a leading zero'
member '[NaN]' '"p":"[NaN]"' 'NaN'
member '["a\tb"]' '"p":"[\"a\tb\"]"' 'a raw tab in a string is no JSON'
member '[1e999]' '"p":"[1e999]"' 'a number that no double holds'
member '["\\ud800"]' '"p":"[\"\\ud800\"]"' 'half a surrogate pair'
member '["\\ud83d\\ude00"]' '"p":["\ud83d\ude00"]' 'a surrogate pair'
member '{"\\u0000":1}' '"p":"{\"\\u0000\":1}"' 'NUL in a name'
member '\357\273\277{}' "$(printf '"p":"\357\273\277{}"')" 'a byte order mark makes it text'
member ' \n' '"p":" \n"' 'blanks alone'
member '[1\0]' '"p":"[1\u0000]"' 'NUL outside a string'
member '["\377"]' '"p_base64":"WyL/Il0="' 'bytes that are not UTF-8'
member 'a\0b' '"p":"a\u0000b"' 'text with NUL'

deep() { perl -e 'print "[" x $ARGV[0], "]" x $ARGV[0]' "$1" | "$u" bytes p; }
is "$(deep 200)" "\"p\":$(repeat 200 '[')$(repeat 200 ']')" 'JSON member: 200 levels'
is "$(deep 201)" "\"p\":\"$(repeat 201 '[')$(repeat 201 ']')\"" '... 201 are text'
is "$(deep 100000 | head -c 8)" '"p":"[[[' '... so are 100,000'
is "$(perl -e 'print "[", "[\"[\\\"[\"]," x 500, "1]"' | "$u" bytes p | head -c 8)" '"p":[["[' '... side by side is not deep'

member '\377' '"p_base64":"/w=="' 'base64, one byte'
member '\377\376' '"p_base64":"//4="' 'base64, two bytes'
member '\377\376\375' '"p_base64":"//79"' 'base64, three bytes'
member '\0\0\377' '"p_base64":"AAD/"' 'base64, NUL'
perl -e 'print map chr, 0..255' >all
is "$("$u" bytes p <all)" "\"p_base64\":\"$(base64 -w0 all)\"" 'JSON member: all bytes'

n='each byte as a string, read by jq'
if needs_jq "$n"; then
	is "$("$u" lines <all | "$jq" -r 'explode|map(tostring)|join(" ")' | tr '\n' ' ')" \
	    "$(perl -e 'print "$_ " for 0..127; print "65533 " x 128')" "$n"
fi
n='strings between brackets stay one line for jq'
if needs_jq "$n"; then
	is "$(printf '{%s}\n{%s}\n{%s}\n' "$(bytes '\0\n{"\342\200\250' 'bytes p')" "$(deep 200)" \
	    "$(bytes '{ "a":\n"\\\\" }' 'bytes p')" | "$jq" -c '.p|type')" \
	    "$(printf '"string"\n"array"\n"object"')" "$n"
fi

# Out through text_json_bytes(), in through record_parse(): the same bytes.
is "$("$u" again each <all)" '' 'round trip: each byte'
is "$("$u" again <all)" '' 'round trip: all bytes'
is "$(head -c 128 all | "$u" again)" '' 'round trip: all of ASCII'
is "$(perl -e 'print "[" x 201, "]" x 201' | "$u" again)" '' 'round trip: an array too deep to show'
is "$(head -c 1000000 /dev/urandom | "$u" again)" '' 'round trip: a million random bytes'
again() { gives "$1" again '' "round trip: $2"; }
again '{"a":1.10,"id":12345678901234567890,"s":"\\u0000\\"}"}' 'an object'
again '[[],[{}],"x"]' 'an array'
again '12345678901234567890' 'a number'
again '"quoted"' 'a quoted word'
again 'null' 'the word null'
again '\360\237\230\200\n\n' 'text that ends in newlines'
again '[1\0]' 'NUL behind a number'

# --- for people, and for cut(1) -----------------------------------------------------------------
show() { gives "$2" "show $1" "$3" "shown in $1: $4"; }
show 0 'plain' 'plain|5' 'plain'
show 0 '' '|0' 'nothing'
show 0 '\033[31mred\a' '\x1b[31mred\x07|15' 'an escape sequence'
show 0 'a\nb\tc\rd\0e' 'a\x0ab\x09c\x0dd\x00e|21' 'newline, tab, return, NUL'
show 0 '\177' '\x7f|4' 'DEL'
show 0 '\302\233' '\u{009b}|8' 'a C1 control'
show 0 '\302\240' "$(printf '\302\240|1')" 'a no-break space is harmless'
show 0 '\233' '\x9b|4' '... as a raw byte'
show 0 '\342\200\256evil' '\u{202e}evil|12' 'bidi override'
show 0 '\342\201\246\342\201\251' '\u{2066}\u{2069}|16' 'bidi isolates'
show 0 '\342\200\216\342\200\217\330\234' '\u{200e}\u{200f}\u{061c}|24' 'bidi marks'
show 0 '\342\200\250\342\200\251' '\u{2028}\u{2029}|16' 'line and paragraph separators'
show 0 '\357\273\277x' '\u{feff}x|9' 'byte order mark'
show 0 'a\342\200\213b' 'a\u{200b}b|10' 'zero-width space'
show 0 '\363\240\201\201' '\u{e0041}|9' 'an invisible tag'
show 0 'x\303' 'x\xc3|5' 'half a character'
show 0 '\355\240\200' '\xed\xa0\x80|12' 'a surrogate'
show 0 '\344\275\240\345\245\275' "$(printf '\344\275\240\345\245\275|4')" 'wide characters'
show 0 '\360\237\230\200' "$(printf '\360\237\230\200|2')" 'an emoji'
show 0 'e\314\201' "$(printf 'e\314\201|1')" 'a combining accent'
show 0 'C:\\x41' 'C:\x41|6' 'a backslash is itself'
show 5 'hello' 'hello|5' 'fits exactly'
show 5 'hello!' 'he...|5' 'one too many'
show 3 'hello' '...|3' 'no room for more than the mark'
show 2 'hello' '..|2' '... nor for that'
show 1 'h' 'h|1' 'one of one'
show 6 '\344\275\240\345\245\275\345\220\227\345\220\227' "$(printf '\344\275\240...|5')" 'a wide character is not halved'
show 7 'ab\033[0m' 'ab...|5' 'nor is an escape'
show 4 'e\314\201\314\201abc' "$(printf 'e\314\201\314\201abc|4')" 'accents take no room'

tsv() { gives "$1" tsv "$2" "TSV: $3"; }
tsv 'plain text' 'plain text' 'plain'
tsv 'a\tb\nc\rd\\e' 'a\tb\nc\rd\\e' 'tab, newline, return, backslash'
tsv '\0\033\177' '\x00\x1b\x7f' 'other control bytes'
tsv '\302\205\233' '\xc2\x85\x9b' 'C1, in UTF-8 and alone'
tsv '\342\200\256x' '\xe2\x80\xaex' 'bidi override'
tsv 'gr\303\274n' "$(printf 'gr\303\274n')" 'UTF-8'
tsv '\303(' '\xc3(' 'broken UTF-8'
is "$("$u" tsv <all | perl -pe 's/\\(?:x(..)|(.))/defined $1 ? chr hex $1 : {t => "\t", n => "\n", r => "\r", "\\" => "\\"}->{$2}/ge' |
    cmp - all)" '' 'TSV: all bytes can be turned back'

# --- records from a stream ----------------------------------------------------------------------
reads() { gives "$1" "read $2" "$(printf "$3")" "records: $4"; }
reads '' 'lf 9' '' 'an empty stream has none'
reads 'a\nb\n' 'lf 9' '1 1 T a\n2 1 T b' 'two lines'
reads 'a\nb' 'lf 9' '1 1 T a\n2 1 - b' 'a line without its newline'
reads '\n\na\n' 'lf 9' '1 0 T \n2 0 T \n3 1 T a' 'empty lines'
reads 'a\0\0b\n\0' 'nul 9' '1 1 T a\n2 0 T \n3 2 T b\\n' 'NUL as the delimiter'
reads 'a\0b\n' 'lf 9' '1 3 T a\\x00b' 'NUL inside a line'
reads '\377\n' 'lf 9' '1 1 T \\xff' 'any byte'
reads 'a\nb\n' 'all 9' '1 4 - a\\nb\\n' 'the whole stream'
reads '' 'all 9' '1 0 - ' 'the whole empty stream is one'
reads '1234\n12345\n' 'lf 4' '1 4 T 1234\n2 too long' 'exactly the most, one more'
reads '12345\nab\n' 'lf 4' '1 too long\n2 2 T ab' 'what follows a long one is read'
reads '12345' 'lf 4' '1 too long' 'a long one at the end'
reads '1234' 'lf 4' '1 4 - 1234' 'the most, without its newline'
reads '12345' 'all 4' '1 too long' 'the whole stream, too long'
reads '1234' 'all 4' '1 4 - 1234' 'the whole stream, exactly'
reads '\nx\n' 'lf 0' '1 0 T \n2 too long' 'at most 0 bytes'
reads 'ab\ncd\n\nefghi\nj' 'lf 4 drip' '1 2 T ab\n2 2 T cd\n3 0 T \n4 too long\n5 1 - j' 'one byte a read'
reads 'ab\ncd' 'lf 4 nonblock' '1 2 T ab\n2 2 - cd' 'a non-blocking descriptor is waited for'

big() { perl -e 'print "x" x $ARGV[0], "\n", "y" x $ARGV[1], "\nz\n"' "$1" "$2"; }
xs=$(repeat 60 x) ys=$(repeat 60 y)
for n in 65534 65535 65536 65537 131072 1048576; do
	is "$(big $n 70000 | "$u" read lf 1048576)" "1 $n T $xs
2 70000 T $ys
3 1 T z" "records: a line of $n bytes"
done
is "$(big 1048577 9 | "$u" read lf 1048576)" "1 too long
2 9 T yyyyyyyyy
3 1 T z" 'records: a byte more than 1 MiB'
is "$(big 5000000 1048576 | "$u" read lf 1048576)" "1 too long
2 1048576 T $ys
3 1 T z" 'records: 5 MB, then exactly 1 MiB'
is "$(big 1048569 4 | "$u" read all 1048576)" '1 too long' 'records: a stream of 1 MiB and a byte'
is "$(big 1048568 4 | "$u" read all 1048576)" "1 1048576 - $xs" 'records: a stream of 1 MiB'
is "$(repeat 200000 'abc
' | "$u" read lf 9 | tail -n 1)" '200000 3 T abc' 'records: 200,000 lines'
is "$(big 300000 1 | "$u" read lf 1048576 drip)" "1 300000 T $xs
2 1 T y
3 1 T z" 'records: 300,000 bytes, one a read'
is "$(timeout 60 "$u" read lf 1000 stop </dev/zero)" "1 too long
status 65" 'records: an endless one is refused at once'
is "$("$u" interrupted)" 'interrupted
0 abcd' 'records: a signal ends the wait and loses nothing'
is "$("$u" read lf 9 <.)" 'status 74' 'records: a directory'
is "$("$u" read lf 9 <&-)" 'status 74' 'records: a closed descriptor'

# --- job records --------------------------------------------------------------------------------
# Input is given as it is, without printf.
job() { is "$(printf '%s' "$1" | "$u" record $4)" "job$2" "job: $3"; }	# TEXT WANT NAME [DEFAULTS]
bad() { is "$(printf '%s' "$1" | "$u" record $4; echo $?)" "refused: $2
65" "job refused: $3"; }

job '{}' '' 'nothing'
job '{"queue":"mail","type":"t","key":"k","entity":"e","priority":3,"payload":"p"}' \
    ' queue=mail type=t key=k entity=e priority=3 payload=p' 'each field'
job '{"queue":null,"type":null,"key":null,"entity":null,"priority":null,"payload":null,"payload_base64":null,
 "due_ms":null,"due_at":null,"event_ms":null,"event_at":null,"zone":null,"tz":null,"in":null,"at":null,"after":null,"jitter":null}' \
    '' 'null is absent'
job '{"state":"done","attempt":[3],"id":7,"claim":null,"x":{"queue":"no","key":1}}' '' 'the rest is ignored'
job '{}' ' queue=q type=t key=k entity=e zone=UTC priority=5 due=7 payload=b' 'defaults stay' \
    'q=q t=t k=k e=e z=UTC p=5 d=7 b=b'
job '{"queue":"r","type":"u","key":"l","entity":"f","zone":"CET","priority":6,"due_ms":8,"payload":"c"}' \
    ' queue=r type=u key=l entity=f zone=CET priority=6 due=8 payload=c' '... and give way' \
    't=t k=k e=e z=UTC p=5 d=7 b=b'
job '{"queue":"r"}' ' queue=q' 'a queue already there wins' 'q=q'
job '{"type":""}' '' 'an empty type is none'
job '{"key":"","entity":""}' ' key= entity=' 'an empty key is left to be refused'
job '{"k\u0065y":"k","\u0071ueue":"m"}' ' queue=m key=k' 'names written with escapes'
job '{"key":"\u00fc\n\\"}' " key=$(printf '\303\274')\\n\\\\" 'escapes in a value'
job '  {"queue" : "m" , "payload" :	[ 1 ] , "key":"k"}  ' ' queue=m key=k payload=[ 1 ]' 'white space'
job '{"payload":{"n":1.10,"id":12345678901234567890,"s":"}\"]"},"key":"k"}' \
    ' key=k payload={"n":1.10,"id":12345678901234567890,"s":"}\\"]"}' 'a payload object keeps its bytes'
job '{"payload":1.10}' ' payload=1.10' '... a number'
job '{"payload":12345678901234567890}' ' payload=12345678901234567890' '... a number of 20 digits'
job '{"payload":-0,"key":"k"}' ' key=k payload=-0' '... -0'
job '{"payload":true}' ' payload=true' '... true'
job '{"payload":false }' ' payload=false' '... false'
job '{"payload":""}' ' payload=' '... an empty string is a payload'
job '{"payload":"a\u0000b\ud83d\ude00"}' " payload=a\\x00b$(printf '\360\237\230\200')" '... escapes in a string'
job '{"payload":{"a":1,"a":2,"payload":3}}' ' payload={"a":1,"a":2,"payload":3}' '... names twice inside it'
job '{"\u0070ayload":[1,[2,"]"]],"x":"\\"}' ' payload=[1,[2,"]"]]' '... its name written with an escape'
job '{"a":{"payload":1},"payload":2}' ' payload=2' '... not the one inside another member'
job '{"payload":{"a":1e999,"b":"\ud800"},"priority":3}' ' priority=3 payload={"a":1e999,"b":"\\ud800"}' '... what it means is nobody'"'"'s business'
bad '{"payload":{"a":1,}}' 'not JSON at byte 19' 'a payload that is not JSON'
bad '{"payload":{"a":1},"key":"\ud800"}' 'not JSON at byte 33' 'half a surrogate pair behind one that is'
job '{"priority":5.0,"due_ms":1.7e12}' ' priority=5 due=1700000000000' 'a whole number written as a real'
job '{"priority":5,"due_ms":1780401660123,"payload":12345678901234567890}' \
    ' priority=5 due=1780401660123 payload=12345678901234567890' 'numbers beside one of 20 digits'
job '{"due_ms":253402300799999}' ' due=253402300799999' 'the last ms'

is "$(perl -e 'print "{\"payload\":", "[" x 2000, "]" x 2000, "}"' | "$u" payload)" \
    "$(repeat 2000 '[')$(repeat 2000 ']')" 'job: a payload of 2000 levels'
is "$(perl -e 'print "{\"payload\":", "[" x 201, "]" x 201, ",\"priority\":3}"' | "$u" record)" \
    "job priority=3 payload=$(repeat 201 '[')$(repeat 201 ']')" '... of 201, and what stands behind it'
like "$(perl -e 'print "{\"payload\":", "[" x 3000, "]" x 3000, "}"' | "$u" record)" \
    '^refused: JSON nested too deep at byte [0-9]+$' 'job refused: 3000 levels'

bad '' 'JSON ends too early' 'nothing'
bad '{' 'JSON ends too early' 'cut off'
bad 'mail' 'not JSON at byte 4' 'a word'
bad '[]' 'not a JSON object' 'an array'
bad '{} {}' 'not JSON at byte 4' 'two records'
bad '{"a":1e999}' 'a number is out of range at byte 10' 'a number that no double holds'
bad '{"key":"\ud800"}' 'not JSON at byte 15' 'half a surrogate pair'
bad '{"a\u0000":1}' 'NUL in a name at byte 10' 'NUL in a name'
like "$(bytes '{"key":"\377"}' record)" '^refused: not UTF-8 at byte [0-9]+$' 'job refused: not UTF-8'
gives '{"a":1\0}' record 'refused: a NUL byte at byte 7' 'job refused: NUL behind a number'
like "$(bytes '{"key":"a\nb"}' record)" '^refused: not JSON at byte [0-9]+$' 'job refused: a raw newline'
bad '{"key":"a","key":"a"}' '"key" is given twice' 'a key given twice'
bad '{"key":"a","\u006bey":"b"}' '"key" is given twice' '... the second time with an escape'
bad '{"payload":1,"payload":null}' '"payload" is given twice' 'a payload given twice'
bad '{"queue":1}' '"queue" must be a string' 'queue: a number'
bad '{"queue":1}' '"queue" must be a string' '... even if another wins' q=mail
bad '{"type":[]}' '"type" must be a string' 'type: an array'
bad '{"key":{}}' '"key" must be a string' 'key: an object'
bad '{"entity":true}' '"entity" must be a string' 'entity: true'
bad '{"key":"a\u0000b"}' '"key" has a NUL byte' 'key: NUL'
for v in -1 10 1.5 '"5"' true 1e300 99999999999999999999; do
	bad "{\"priority\":$v}" '"priority" must be a whole number from 0 to 9' "priority: $v"
done
for v in -1 253402300800000 1.5 '"1"' 12345678901234567890; do
	bad "{\"due_ms\":$v}" '"due_ms" must be a whole number from 0 to 253402300799999' "due_ms: $v"
done
bad '{"event_ms":-1}' '"event_ms" must be a whole number from 0 to 253402300799999' 'event_ms: -1'
for f in due_at event_at zone tz after in at jitter; do
	bad "{\"$f\":5}" "\"$f\" must be a string" "$f: a number"
done
bad '{"payload":1,"payload_base64":"AA=="}' '"payload" and "payload_base64" are both given' 'two payloads'
bad '{"payload_base64":5}' '"payload_base64" must be a string' 'payload_base64: a number'
bad '{"zone":""}' '"zone" is empty' 'zone: empty'
like "$(bytes '{"tz":"Mars/Olympus"}' record)" '^refused: "tz": ' 'job refused: tz unknown'
like "$(bytes '{"in":"5"}' record)" '^refused: "in": ' 'job refused: in without a unit'
like "$(bytes '{"jitter":"soon"}' record)" '^refused: "jitter": ' 'job refused: jitter'
like "$(bytes '{"after":"yesterday"}' record)" '^refused: "after": ' 'job refused: after'
like "$(bytes '{"due_at":"2026-06-02"}' record)" '^refused: "due_at": ' 'job refused: due_at'
like "$(bytes '{"event_at":"x"}' record)" '^refused: "event_at": ' 'job refused: event_at'
like "$(bytes '{"at":"07:00"}' record)" '^refused: "at": .*zone' 'job refused: a local time without a zone'
like "$(bytes '{"at":"07:00","zone":"Europe/Berlin"}' record)" '^refused: "at": .*zone' '... zone is only remembered'

# RFC 4648, section 10, and what its strict reading refuses
b64() { job "{\"payload_base64\":\"$1\"}" " payload=$2" "base64 '$1'"; }
b64 '' ''
b64 Zg== f
b64 Zm8= fo
b64 Zm9v foo
b64 Zm9vYg== foob
b64 Zm9vYmE= fooba
b64 Zm9vYmFy foobar
b64 +/+/ '\xfb\xff\xbf'
b64 AA== '\x00'
for v in Zg Zg= Zg=== Zm8 Z = == ==== Zh== Zm9= 'Zm9v\n' ' Zm9v' Zm9v==== Zg==Zg== Z===  Zm-_ Zm9vY 'Zm9v\u0000AAA'; do
	bad "{\"payload_base64\":\"$v\"}" '"payload_base64" is not base64' "base64 '$v'"
done

# times: now is 2026-06-02T12:00:00Z
now=1780401600000
job '{"due_at":"2026-06-02T12:01:00Z"}' " due=$((now + 60000))" 'due_at'
job '{"due_at":"2026-06-02T14:01:00+02:00"}' " due=$((now + 60000))" 'due_at with an offset'
job '{"due_ms":5,"due_at":"nonsense"}' ' due=5' 'due_ms wins over due_at'
job '{"due_ms":5,"in":"nonsense","at":"x","after":"y","jitter":"z"}' ' due=5' '... and over the rest'
job '{"event_at":"2026-06-02T12:00:01Z"}' " event=$((now + 1000))" 'event_at'
job '{"event_ms":5,"event_at":"2026-06-02T12:00:01Z"}' ' event=5' 'event_ms wins'
job '{"in":"1h30m"}' " due=$((now + 5400000))" 'in'
job '{"in":"1h"}' " due=$((now + 3600000))" '... wins over a default' d=7
job '{"after":"2026-06-03T00:00:00Z","in":"1h"}' " due=$((now + 46800000))" 'in after a time'
job '{"at":"2026-06-02T12:05:00Z"}' " due=$((now + 300000))" 'at'
job '{"at":"07:00","tz":"Europe/Berlin"}' " zone=Europe/Berlin due=$((now + 61200000))" 'at, in a zone'
job '{"at":"07:00"}' " zone=Europe/Berlin due=$((now + 61200000))" '... by default' z=Europe/Berlin
job '{"at":"07:00","tz":"UTC","zone":"Asia/Tokyo"}' " zone=UTC due=$((now + 68400000))" 'tz wins over zone'
job '{"at":"07:00","zone":"Asia/Tokyo"}' " zone=UTC due=$((now + 68400000))" '... so does the zone that was used' z=UTC
job '{"due_ms":5,"zone":"Asia/Tokyo"}' ' zone=Asia/Tokyo due=5' 'zone is remembered'
job '{"due_ms":5,"tz":"UTC","zone":"Asia/Tokyo"}' ' zone=UTC due=5' '... unless there is tz'
job '{"tz":"UTC"}' ' zone=UTC' 'tz alone'
share=$("$u" share mail order-7)
like "$share" '^0\.[0-9]{12}$' 'share: a number below 1'
is "$("$u" share mail order-7)" "$share" 'share: the same for the same key'
is "$([ "$("$u" share bulk order-7)" = "$share" ] || echo other)" other 'share: another queue has another'
is "$([ "$("$u" share mai lorder-7)" = "$share" ] || echo other)" other 'share: queue and key do not run together'
is "$([ "$("$u" share mail)" = "$("$u" share mail)" ] || echo other)" other 'share: random without a key'
is "$("$u" spread 10000)" '' 'share: ten equal parts are filled equally'
job '{"queue":"mail","key":"order-7","jitter":"1h"}' \
    " queue=mail key=order-7 due=$(perl -e 'print int($ARGV[0] + $ARGV[1] * 3600000)' $now "$share")" 'jitter'
job '{"queue":"bulk","key":"order-7","in":"5m","jitter":"1h"}' \
    " queue=mail key=order-7 due=$(perl -e 'print int($ARGV[0] + 300000 + $ARGV[1] * 3600000)' $now "$share")" \
    'jitter is for the queue that wins' q=mail

# --- a claim or an id in a line -----------------------------------------------------------------
claim() { gives "$1" claim "$2" "claim: $3"; }
claim '42.3.9f1c2ab0' '42 3 9f1c2ab0' 'a word'
claim '42.3.9f1c2ab0 \t\r\n' '42 3 9f1c2ab0' 'blanks behind it'
claim '{"id":9,"claim":"42.3.9f1c2ab0","payload":12345678901234567890}\r' '42 3 9f1c2ab0' 'a record'
claim ' {"cl\\u0061im":"42.3.9f1c2ab0"}' '42 3 9f1c2ab0' 'a record with escapes'
claim '' no 'nothing'
claim '  ' no 'blanks'
claim '{"claim":null}' no 'a record without one'
claim '{"id":42}' no 'no member'
claim '{"claim":42}' no 'a number'
claim '{"claim":"42.3.9f1c2ab0\\u0000"}' no 'NUL behind it in a record'
claim '{"claim":"42.3.9f1c2ab0","n":1\0}' no 'NUL in a record'
claim '42.3.9f1c2ab0\0x' no '... in a line'
claim '{"claim":"1.1.00000000","claim":"42.3.9f1c2ab0"}' no 'two of them'
claim '{"claim":"42.3.9f1c2ab0"' no 'a broken record'
claim '["42.3.9f1c2ab0"]' no 'an array'
claim "$(repeat 100 1).3.9f1c2ab0" no 'a long word'

id() { gives "$1" id "$2" "id: $3"; }
id '42' 42 'a word'
id '42\r\n' 42 'blanks behind it'
id '0' no 'zero'
id '-1' no 'negative'
id '9007199254740991' 9007199254740991 'the largest'
id '9007199254740992' no 'one more'
id '42.3.9f1c2ab0' no 'a claim'
id '{"id":42,"claim":null}' 42 'a record'
id '{"id":42,"payload":12345678901234567890}' 42 'a record with a number of 20 digits'
id '{"id":"42"}' no 'a string'
id '{"id":0}' no 'zero in a record'
id '{"id":1.5}' no 'a fraction'
id '{"id":null}' no 'null'
id '{"id":1,"id":2}' no 'two of them'
id '' no 'nothing'
id '42\0' no 'NUL behind it'

done_testing
