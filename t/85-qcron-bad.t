#!/bin/sh
# qcron: what it refuses, and how it says so; nothing of a table with a bad line is used.
. "${0%/*}/lib.sh"
[ -e /usr/share/zoneinfo/Europe/Berlin ] || skip_all 'no time zones on this system: install tzdata'
qinit

# ---- usage ----

echo 'a * * * * * q' >table
while IFS='|' read -r want args err; do
	# shellcheck disable=SC2086	# words
	exits "$want" "qcron $args" qcron $args
	is "$(cat out err)" "qcron: $err" '... says so'
done <<'END'
64||no TABLE; see 'qcron --help'
64|table table|one TABLE; see 'qcron --help'
64|-n table|-n takes FROM, TO and a TABLE; see 'qcron --help'
64|-n now +1h|-n takes FROM, TO and a TABLE; see 'qcron --help'
64|-n now now table|TO is not after FROM; see 'qcron --help'
64|-n 9 now table|FROM: '9': a bare number: write @N for seconds since 1970, +Ns for N seconds from now; see 'qcron --help'
64|-n now 12:00 table|TO: '12:00': a time of day is HH:MM, two digits each, and needs a date except after --at; see 'qcron --help'
64|-n --next table|-n and --next exclude each other; see 'qcron --help'
64|-c 2 table|-c goes with --next; see 'qcron --help'
64|-c 0 --next table|-c: '0' is not a whole number from 1 to 1000000; see 'qcron --help'
64|-j table|-j goes with -n and --next; see 'qcron --help'
64|-v --next table|--force and -v go with a pass; see 'qcron --help'
64|--force -n now +1h table|--force and -v go with a pass; see 'qcron --help'
64|--forc table|unknown option '--forc'; did you mean '--force'?; see 'qcron --help'
66|absent|absent: No such file or directory
66|/|/: Is a directory
END
exits 78 'a bad Q_NOW' env Q_NOW=noon qcron table
exits 66 'no queue file' qcron -d none.db table
if [ "$(id -u)" != 0 ]; then
	: >secret && chmod 0 secret
	exits 77 'a table that may not be read' qcron secret
fi
exits 0 '--next needs no queue file' qcron -d none.db --next table
is "$(cat out err)" "$(printf '2026-06-02T12:01:00Z\t2026-06-02T12:01:00+00:00\ta')" '... and prints the next slot'

# ---- lines ----

cat >bad <<'END'
30 2 * * * q|the line does not begin with a name for the entry; write ID, then the schedule, then the queue
* * * * * q|the line does not begin with a name for the entry; write ID, then the schedule, then the queue
@daily q|the line does not begin with a name for the entry; write ID, then the schedule, then the queue
*/5 * * * * q|the line does not begin with a name for the entry; write ID, then the schedule, then the queue
PATH=/usr/bin|bad ID 'PATH=/usr/bin'; an ID is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
a/b @daily q|bad ID 'a/b'; an ID is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
-a @daily q|bad ID '-a'; an ID is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
i1|the schedule ends early; five fields come first, then the queue
i2 0 2 * *|the schedule ends early; five fields come first, then the queue
i3 0 2 * * q|day of the week: 'q' is not a number from 0 to 7, or sun to sat
i4 0 2 * * *|no queue after the schedule
i5 @daily|no queue after the schedule
i6 @daily tz=UTC|no queue after the schedule
f1 60 * * * * q|minute: '60' is not a number from 0 to 59
f2 -1 * * * * q|minute: '' is not a number from 0 to 59
f3 0 24 * * * q|hour: '24' is not a number from 0 to 23
f4 0 0 0 * * q|day of the month: '0' is not a number from 1 to 31
f5 0 0 32 * * q|day of the month: '32' is not a number from 1 to 31
f6 0 0 * 13 * q|month: '13' is not a number from 1 to 12, or jan to dec
f7 0 0 * 0 * q|month: '0' is not a number from 1 to 12, or jan to dec
f8 0 0 * * 8 q|day of the week: '8' is not a number from 0 to 7, or sun to sat
f9 0 0 * * monday q|day of the week: 'monday' is not a number from 0 to 7, or sun to sat
f10 0 0 * june * q|month: 'june' is not a number from 1 to 12, or jan to dec
f11 mon 0 * * * q|minute: 'mon' is not a number from 0 to 59
f12 0 22-6 * * * q|hour: '22-6' runs backwards; write 22-23,0-6
f13 50-10 * * * * q|minute: '50-10' runs backwards; write 50-59,0-10
f14 0 0 * * fri-mon q|day of the week: 'fri-mon' runs backwards; write 5-6,0-1
f15 0 0 * nov-feb * q|month: 'nov-feb' runs backwards; write 11-12,1-2
f16 */60 * * * * q|minute: step '60' is not a number from 1 to 59, the length of its range
f17 */0 * * * * q|minute: step '0' is not a number from 1 to 59, the length of its range
f18 0 */24 * * * q|hour: step '24' is not a number from 1 to 23, the length of its range
f19 0 8-18/11 * * * q|hour: step '11' is not a number from 1 to 10, the length of its range
f20 0 0 * */13 * q|month: step '13' is not a number from 1 to 11, the length of its range
f21 0 0 * * */7 q|day of the week: step '7' is not a number from 1 to 6, the length of its range
f22 */ * * * * q|minute: step '' is not a number from 1 to 59, the length of its range
f23 */x * * * * q|minute: step 'x' is not a number from 1 to 59, the length of its range
f24 5/15 * * * * q|minute: a step needs a range; write 5-59/15
f25 5, * * * * q|minute: an empty place in the list
f26 ,5 * * * * q|minute: an empty place in the list
f27 *,5 * * * * q|minute: '*' stands alone, not in a list
f28 5- * * * * q|minute: '' is not a number from 0 to 59
f29 5-10-15 * * * * q|minute: '10-15' is not a number from 0 to 59
f30 5x * * * * q|minute: '5x' is not a number from 0 to 59
f31 ** * * * * q|minute: '**' is not a number from 0 to 59
f32 0~30 * * * * q|minute: no '~' here; write a time, and jitter=DUR after the fields
f33 ? * * * * q|minute: '?' is not a number from 0 to 59
f34 0 0 L * * q|day of the month: 'L' is not a number from 1 to 31
f35 0 0 * * 5#2 q|day of the week: '5#2' is not a number from 0 to 7, or sun to sat
f36 5% * * * * q|minute: '5%' is not a number from 0 to 59
f37 1.5 * * * * q|minute: '1.5' is not a number from 0 to 59
f38 0 0 31 4 * q|no month of these has such a day: it would never fire
f39 0 0 30 2 * q|no month of these has such a day: it would never fire
f40 0 0 31 apr,jun,sep,nov * q|no month of these has such a day: it would never fire
f41 0 0 */2 * 1 q|'*/' in one day field and days in the other: crons differ on what that means; list the days
f42 0 0 1,15 * */2 q|'*/' in one day field and days in the other: crons differ on what that means; list the days
f43 0 30 2 * * * q|hour: '30' is not a number from 0 to 23
f44 0 0 2 * * * q|'*' is no queue; there are five fields and no seconds, then the queue
f45 0 0 2 * * 1-5 q|'1-5' is no queue; there are five fields and no seconds, then the queue
f46 5 @daily q|'@daily' stands alone, with no field before it
w1 @reboot q|no @reboot here: a start of the machine has no time; let its start run qadd
w2 @dayly q|no schedule '@dayly'; did you mean '@daily'?
w3 @fortnight q|no schedule '@fortnight'; there are @every, @after, @hourly, @daily, @weekly, @monthly and @yearly
w4 @every q|@every: 'q': not a duration: write 500ms, 10s, 5m, 1h30m, 2d or 1w
w5 @every|@every: a duration follows, such as 5m
w6 @every 5 q|@every: '5': a number needs a unit: write 10s, 10m, 10h or 10d
w7 @every 1500ms q|@every: whole seconds, and at least one
w8 @every 0 q|@every: whole seconds, and at least one
w9 @after 0s q|@after: whole seconds, and at least one
w10 @after 5M q|@after: '5M': no unit M: m is minutes, and months have no fixed length (30d)
o1 @daily tz=Mars/Olympus q|tz: 'Mars/Olympus': unknown zone: write its name like Europe/Berlin, or UTC
o2 @daily tz=CEST+2 q|tz: 'CEST+2': unknown zone: write its name like Europe/Berlin, or UTC
o3 @daily tz=../passwd q|tz: '../passwd': not the name of a zone: write one like Europe/Berlin or UTC
o4 @daily tz= q|tz= has no value
o5 @daily mised=last q|unknown option 'mised='; did you mean 'missed='?
o6 @daily overlaps=skip q|unknown option 'overlaps='; did you mean 'overlap='?
o7 @daily priority=1 q|unknown option 'priority='; there are tz= missed= late= overlap= jitter=
o8 @daily missed=first q|missed: 'first' is not last, skip or all:N, N from 1 to 1000
o9 @daily missed=all q|missed: 'all' is not last, skip or all:N, N from 1 to 1000
o10 @daily missed=all:0 overlap=allow q|missed: 'all:0' is not last, skip or all:N, N from 1 to 1000
o11 @daily missed=all:1001 overlap=allow q|missed: 'all:1001' is not last, skip or all:N, N from 1 to 1000
o12 @daily missed=all:3 q|missed=all:3 needs overlap=allow: its jobs come at one time
o13 @daily missed=all:3 overlap=replace q|missed=all:3 needs overlap=allow: its jobs come at one time
o14 @daily overlap=queue q|overlap: 'queue' is not skip, allow or replace
o15 @daily late=5 q|late: '5': a number needs a unit: write 10s, 10m, 10h or 10d
o16 @daily late=0 q|late: at least 1s; missed=skip drops what comes 5 minutes late
o17 @daily jitter=-5m q|jitter: '-5m': not a duration: write 500ms, 10s, 5m, 1h30m, 2d or 1w
o18 @daily tz=UTC tz=UTC q|tz= comes twice
o19 @every 5m tz=UTC q|tz= does not go with @every, which counts in UTC
o20 @after 5m missed=last q|missed= does not go with @after
o21 @after 5m overlap=skip q|overlap= does not go with @after
o22 @after 5m late=5m q|late= does not go with @after
q1 @daily {"a":1}|bad queue name '{"a":1}'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
q2 @daily 42 x|'42' is no queue; there are five fields and no seconds, then the queue
q3 @daily .q x|bad queue name '.q'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
q4 @daily a/b x|bad queue name 'a/b'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
END
{ echo 'good * * * * * q'; cut -d'|' -f1 bad; echo '  # a comment'; echo; printf 'last @hourly q'; } >table
awk -F'|' '{ print "qcron: table:" NR + 1 ": " $2 }' bad >want
unchanged 78 'a table of bad lines' qcron table
is "$(cat err)" "$(cat want)" '... each is named, with its line'
is "$(wc -l <want)" "$(wc -l <bad)" "... all $(wc -l <bad) of them"
exits 78 '... also looking ahead' qcron --next table
is "$(cat out)" '' '... and nothing is printed'

printf 'a @daily q\r\nb @daily q\n' >table
exits 78 'a carriage return' qcron table
is "$(cat err)" "qcron: table:1: a carriage return; write the table with Unix line ends (tr -d '\\r')" '... is named'
printf 'a @daily q\nb @daily q x\0y\nc @daily q\0' >table
exits 78 'NUL bytes' qcron table
is "$(cat err)" "qcron: table:2: a NUL byte; the table is text
qcron: table:3: a NUL byte; the table is text" '... are named'
printf 'a @daily q\nb @daily q\na @hourly q\nb @hourly q\na @yearly q\n' >table
exits 78 'IDs that come twice' qcron table
is "$(cat err)" "qcron: table:3: ID 'a' is that of line 1; each entry has its own
qcron: table:5: ID 'a' is that of line 3; each entry has its own
qcron: table:4: ID 'b' is that of line 2; each entry has its own" '... are named'
printf 'a\001 \033[2J * * * * q' >table
exits 78 'odd bytes' qcron table
like "$(cat err)" '^qcron: table:1: bad ID .a.x01.;' '... are shown escaped'
{ printf 'a @daily q '; head -c 1048577 /dev/zero | tr '\0' x; } >table
exits 78 'a payload that is too large' qcron table
is "$(cat err)" 'qcron: table:1: the payload has 1048577 bytes, the limit is 1048576' '... is named'
{ printf 'a '; head -c 300 /dev/zero | tr '\0' 1; echo ' * * * * q'; } >table
exits 78 'a field without end' qcron table
like "$(cat err)" '^qcron: table:1: minute: longer than 255 bytes; write ranges$' '... is named'
head -c 16777217 /dev/zero | tr '\0' '\n' >table
exits 78 'a table without end' qcron table
is "$(cat err)" 'qcron: table: longer than 16 MiB; is it a schedule table?' '... is named'
is "$(sql 'SELECT count(*) FROM q_job')" 0 'nothing of this became a job'

# ---- what is accepted ----

: >table
exits 0 'an empty table' qcron table
printf '# nothing\n\n   \t\n#' >table
exits 0 '... or one with comments alone' qcron table
{
	printf 'a\t*/5\t*  * * *\tq\t  two  words \t \n'
	printf '  b 0 0 * JAN-dec SUN-7 tz=UTC overlap=allow missed=all:5 late=1h jitter=5m q\n'
	printf 'c 05 08 1-31 * * q {"tz":"x=y"}\n'
	printf 'd @yearly q %%F ~ @reboot\n'
	printf 'e 0 0 30 2,3 * q\n'
	printf 'f 0 0 31 1,4 5 q \303\204\377\n'
	printf 'g @every 90s q tz=UTC'
} >table
exits 0 'odd but right' qcron table
is "$(cat out err)" '' '... in silence'
is "$(sql 'SELECT id, spec FROM q_cron ORDER BY id')" 'a|*/5 * * * * UTC
b|0 0 * JAN-dec SUN-7 UTC
c|05 08 1-31 * * UTC
d|0 0 1 1 * UTC
e|0 0 30 2,3 * UTC
f|0 0 31 1,4 5 UTC
g|@every 1m30s' '... and known in one form'
exits 0 'in the new year' env Q_NOW=2027-01-01T00:00:30Z qcron --force table
is "$(sql 'SELECT j.type, hex(b.body) FROM q_job j JOIN q_body b ON b.job = j.id ORDER BY j.type')" 'a|74776F2020776F726473
b|
c|7B22747A223A22783D79227D
d|2546207E20407265626F6F74
f|C384FF
g|747A3D555443' 'payloads are the rest of the line as it stands, without the blanks around it'
done_testing
