#!/bin/sh
# qadd --lines, -0, --jsonl: many jobs, all or nothing.
. "${0%/*}/lib.sh"

qinit || exit 1
count() { sql 'SELECT count(*) FROM q_job'; }
bodies() { sql "SELECT group_concat(hex(body)) FROM (SELECT body FROM q_job JOIN q_body ON job = id WHERE queue = '$1' ORDER BY id)"; }
said() { [ ! -s out ]; ok $? '... and nothing more'; says "$1"; }
same() { is "$(count)" "$before" '... and nothing stored'; }

# ---- records ----

printf 'a\n\nb b\n \t \nc\r\n\r\n\303\251\nlast' >data
exits 0 '--lines' qadd --lines lines <data
is "$(tr '\n' ' ' <out)" '1 2 3 4 5 ' '... prints an id a job, in input order'
is "$(cat err)" '' '... and nothing else'
is "$(bodies lines)" 61,622062,630D,C3A9,6C617374 '... blank lines are none, a carriage return is data, the last line needs no newline'
printf 'x\ny\n' >data
exits 0 '-j' qadd -j --lines lines <data
is "$(cat out)" "$(printf '{"id":6,"new":true}\n{"id":7,"new":true}')" '... prints JSON'
printf 'x\ny\n' >data
exits 0 '-q' qadd -q --lines lines <data
is "$(cat out err)" '' '... prints nothing'
printf 'a\nb\0\n\0 \0c\0end\0' >data
exits 0 '-0' qadd -0 nul <data
is "$(wc -l <out | tr -d ' ')" 5 '... ends records at NUL'
is "$(bodies nul)" 610A62,0A,20,63,656E64 '... so they may hold newlines, and blanks are data'
printf 'a\0\0b\0' >data
exits 65 '... an empty one is none' qadd --null nul <data
said '^qadd: stdin:2: the payload is empty'
printf 'a\0\0b\0' >data
exits 0 '... but for --empty' qadd -0 --empty nul2 <data
is "$(bodies nul2)" 61,,62 '... between the others'
printf 'a\0half' >data
exits 65 'a record without its NUL' qadd -0 nul3 <data
said '^qadd: stdin:2: the last record has no NUL at its end'
is "$(sql "SELECT count(*) FROM q_job WHERE queue = 'nul3'")" 0 '... nothing is added'
printf '' >data
exits 0 'no line' qadd --lines lines <data
is "$(cat out err)" '' '... is no job'
printf 'a\nb\n' >data
exits 0 'options' qadd -q --lines -t tt -e ee -p 3 --in 1h --tz UTC --attempts 2 --backoff 1s..2s --window 1h opt <data
is "$(sql "SELECT count(*) FROM q_job WHERE queue = 'opt' AND type = 'tt' AND entity = 'ee' AND priority = 3 AND due_ms = 1780405200000
    AND zone = 'UTC' AND attempts = 2 AND base_ms = 1000 AND cap_ms = 2000 AND window_ms = 3600000")" 2 '... count for all'
is "$(sql "SELECT count(*) FROM q_job WHERE queue = 'opt' AND head = 1")" 1 '... one of an entity may run'
before=$(count)
printf '{"a":1}\nnot json\n' >data
exits 65 '--check-json' qadd --check-json --lines lines <data
said '^qadd: stdin:2: the payload is not JSON'
same
for opts in '--lines -0' '--lines --jsonl' '-0 --jsonl' '--lines -k key' '--jsonl -k key'; do
	echo x >data
	# shellcheck disable=SC2086 # options
	exits 64 "$opts" qadd $opts lines <data
done
echo x >data
exits 64 'a payload, too' qadd --lines lines payload <data
echo x >data
exits 64 'no queue' qadd --lines <data
same

# ---- JSON Lines ----

cat >all.jsonl <<'J'
{"queue":"other","type":"t1","key":"k1","entity":"e1","priority":2,"payload":{"n":1.10,"big":12345678901234567890},"due_ms":1780401660123,"due_at":"2001-01-01T00:00:00Z","event_ms":5,"zone":"Europe/Berlin","claim":"1.1.00000000","id":99,"state":"dead","attempt":7,"unknown":[{}]}
{"payload":"text\n\u0000\u00e9\ud83d\ude00\"","due_at":"2026-06-02T13:00:00Z","event_at":"2026-06-02T12:30:00.5Z"}

{"payload":42.50}
  {"payload" : [ 1,  2 ] , "after":"2026-05-01T23:30:00+02:00","in":"1d","at":"10:00","tz":"Europe/Berlin"}
{"payload":true,"priority":null,"key":null,"type":null,"type2":0}
{"payload_base64":"AAH/","in":"1h30m"}
{"payload":"x","key":"j","jitter":"90m"}
{"payload":"\"quoted\"","at":"tomorrow 09:00","tz":"UTC"}
J
exits 0 '--jsonl' qadd --jsonl js <all.jsonl
is "$(wc -l <out | tr -d ' ')$(cat err)" 8 '... a job a record'
row() { sql "SELECT queue, type, key, entity, priority, due_ms, event_ms, zone, state, spent FROM q_job WHERE id = $(sed -n "$1p" out)"; }
body() { sql "SELECT hex(body) FROM q_body WHERE job = $(sed -n "$1p" out)"; }
hex() { printf '%s' "$1" | od -An -v -tx1 | tr -d ' \n' | tr a-f A-F; }
is "$(row 1)" 'js|t1|k1|e1|2|1780401660123|5|Europe/Berlin|pending|0' '... the operand names the queue, due_ms wins, the rest of the record is ignored'
is "$(body 1)" "$(hex '{"n":1.10,"big":12345678901234567890}')" '... an object keeps its literals'
is "$(row 2)" 'js||||5|1780405200000|1780403400500||pending|0' '... due_at and event_at'
is "$(body 2)" 746578740A00C3A9F09F988022 "... a string gives its bytes"
is "$(body 3)" "$(hex 42.50)" '... a number its digits'
is "$(body 4)" "$(hex '[ 1,  2 ]')" '... an array its source'
is "$(row 4)" 'js||||5|1777795200000|1777795200000|Europe/Berlin|pending|0' '... after, in, at and tz say when'
is "$(row 5)$(body 5)" "js||||5|1780401600000|1780401600000||pending|0$(hex true)" '... null is absent'
is "$(row 6)$(body 6)" 'js||||5|1780407000000|1780407000000||pending|00001FF' '... base64'
is "$(row 7 | cut -d '|' -f 6 | awk '{ print ($1 >= 1780401600000 && $1 < 1780407000000) }')" 1 '... jitter'
is "$(row 8)$(body 8)" "js||||5|1780477200000|1780477200000|UTC|pending|0$(hex '"quoted"')" '... a day and a time'

exits 0 'without an operand the record names the queue' qadd --jsonl <<'J'
{"queue":"r1","payload":1}
{"queue":"r2","payload":2}
J
is "$(sql "SELECT group_concat(queue) FROM q_job WHERE queue IN ('r1','r2')")" r1,r2 '... each its own'
printf '{"payload":1}\n{"payload":2,"type":"own","entity":"own","priority":9,"in":"5m","tz":"Asia/Tokyo"}\n' >data
exits 0 'options are the defaults' qadd --jsonl -t d -e d -p 1 --in 1h --tz UTC --event-time @7 --attempts 3 def <data
is "$(row 1)" 'def|d||d|1|1780405200000|7000|UTC|pending|0' '... of what a record leaves out'
is "$(row 2)" 'def|own||own|9|1780401900000|7000|Asia/Tokyo|pending|0' '... and not of what it says'
printf '{"payload":"","key":"a"}\n' >data
exits 0 'an empty payload' qadd --jsonl --empty e <data
is "$(body 1)" '' '... needs --empty'

n=0
bad() {	# WHY RECORD: the second of three lines is bad
	before=$(count)
	printf '{"queue":"m","payload":1}\n%s\n{"queue":"m","payload":3}\n' "$2" >data
	exits 65 "a bad record: $1" qadd --jsonl <data
	said "^qadd: stdin:2: .*$1"
	n=$((n + $(count) - before))
}
bad 'JSON ends too early' '{"queue":"m","payload":1'
bad JSON 'queue m'
bad 'not a JSON object' '[1]'
bad 'not (a )?JSON' '"x"'
bad JSON '{"queue":"m","payload":1} {}'
bad JSON "{'queue':'m'}"
bad UTF-8 "$(printf '{"queue":"m","payload":"\351"}')"
bad 'no queue' '{"payload":1}'
bad 'bad queue name' '{"queue":"a b","payload":1}'
bad 'bad queue name' '{"queue":"","payload":1}'
bad 'bad queue name' '{"queue":"17","payload":1}'
bad '"queue" must be a string' '{"queue":17,"payload":1}'
bad '"queue" has a NUL' '{"queue":"a\u0000b","payload":1}'
bad 'payload is empty' '{"queue":"m"}'
bad 'payload is empty' '{"queue":"m","payload":""}'
bad 'payload is empty' '{"queue":"m","payload":null}'
bad 'both given' '{"queue":"m","payload":1,"payload_base64":"AA=="}'
bad 'base64' '{"queue":"m","payload_base64":"AA="}'
bad 'base64' '{"queue":"m","payload_base64":"A-=="}'
bad 'base64' '{"queue":"m","payload_base64":7}'
bad 'the key is empty' '{"queue":"m","payload":1,"key":""}'
bad '"key" must be a string' '{"queue":"m","payload":1,"key":5}'
bad 'the key has a control byte' '{"queue":"m","payload":1,"key":"a\nb"}'
bad 'the entity is empty' '{"queue":"m","payload":1,"entity":""}'
bad 'the type has a control byte' '{"queue":"m","payload":1,"type":"\u007f"}'
bad 'the key is longer than 255 bytes' "{\"queue\":\"m\",\"payload\":1,\"key\":\"$(printf '%0256d' 0)\"}"
bad '"priority" must be a whole number from 0 to 9' '{"queue":"m","payload":1,"priority":10}'
bad '"priority" must be' '{"queue":"m","payload":1,"priority":-1}'
bad '"priority" must be' '{"queue":"m","payload":1,"priority":1.5}'
bad '"priority" must be' '{"queue":"m","payload":1,"priority":"5"}'
bad '"due_ms" must be' '{"queue":"m","payload":1,"due_ms":-1}'
bad '"due_ms" must be' '{"queue":"m","payload":1,"due_ms":253402300800000}'
bad '"due_ms" must be' '{"queue":"m","payload":1,"due_ms":1e300}'
bad '"due_at"' '{"queue":"m","payload":1,"due_at":"2026-06-02"}'
bad '"due_at"' '{"queue":"m","payload":1,"due_at":"2026-06-02T12:00"}'
bad '"event_at"' '{"queue":"m","payload":1,"event_at":"soon"}'
bad '"in"' '{"queue":"m","payload":1,"in":"5"}'
bad '"in"' '{"queue":"m","payload":1,"in":5}'
bad '"at".*zone' '{"queue":"m","payload":1,"at":"10:00"}'
bad '"at"' '{"queue":"m","payload":1,"at":"25:00","tz":"UTC"}'
bad '"tz".*unknown zone' '{"queue":"m","payload":1,"tz":"Europe/Nowhere"}'
bad '"tz"' '{"queue":"m","payload":1,"tz":""}'
bad '"after"' '{"queue":"m","payload":1,"after":"yesterday"}'
bad '"jitter"' '{"queue":"m","payload":1,"jitter":"-1s"}'
bad '"key" is given twice' '{"queue":"m","payload":1,"key":"a","key":"b"}'
is $n 0 '... none of which stored anything'
before=$(count)
{ seq 56 | sed 's/.*/{"payload":&}/'; echo '{"payload":'; seq 43 | sed 's/.*/{"payload":&}/'; } >data
exits 65 'a bad line 57 of 100' qadd --jsonl m <data
said '^qadd: stdin:57: '
same
{ printf '{"payload":"'; head -c 1048577 /dev/zero | tr '\0' x; printf '"}\n'; } >data
exits 65 'a payload of 1 MiB and a byte' qadd --jsonl m <data
said '^qadd: stdin:1: the payload has 1048577 bytes, the limit is 1048576'
{ echo ok; head -c 1048577 /dev/zero | tr '\0' x; echo; echo more; } >data
exits 65 '... in a line' qadd --lines m <data
said '^qadd: stdin:2: the record has more than 1048576 bytes'
{ printf '{"payload":"'; head -c 9000000 /dev/zero | tr '\0' x; printf '"}\n'; } >data
exits 65 'a record of 9 MB' qadd --jsonl m <data
said '^qadd: stdin:1: the record has more than 8388608 bytes'
same
perl -e 'print q({"payload":"), q(\u0001\n\"\\\\) x 16, "x" x 1048500, qq("}\n)' >data
exits 0 'one of nearly 1 MiB with escapes is taken' qadd -q --jsonl m <data

# What qls prints can be read again, with everything that makes the job.
perl -e 'print pack "C*", 0 .. 255' | qadd -q -k bytes -p 7 src
qadd -q -e ana -t reset --in 1h --event-time @5.25 --tz Europe/Berlin src '{"n":1.10,"s":"\u00e9"}'
qadd -q -e ana --at @1780401661.123 src '"text" that looks like JSON, and a	tab'
qadd -q src 42
qadd -q src null
qadd -q src '{"broken":'
qls -j src | qadd -q --jsonl dst
copied() { sql "SELECT type, key, entity, priority, due_ms, event_ms, zone, head, hex(body) FROM q_job JOIN q_body ON job = id WHERE queue = '$1' ORDER BY hex(body)"; }
is "$(copied dst)" "$(copied src)" 'qls -j src | qadd --jsonl dst copies payload, type, key, entity, priority and times'
is "$(copied src | wc -l | tr -d ' ')" 6 '... of all'
i=0
while [ $i -lt 30 ]; do qls -j empty 2>>race | qadd -q --jsonl dst 2>>race; i=$((i + 1)); done
is "$(cat race)" '' '... two that start at once do not meet in the way'
qls -j src | qadd -q --jsonl
is "$(copied src | wc -l | tr -d ' ')" 11 '... without an operand into the queue it came from, where a key is known'

# Keys.
printf '{"key":"a","payload":1}\n{"key":"b","payload":2}\n{"key":"a","payload":1}\n' >data
exits 0 'a key twice' qadd -j --jsonl keys <data
is "$(jq -r .new out | tr '\n' ' ')$(jq -r .id out | uniq | wc -l | tr -d ' ') $(cat err)" 'true true false 3 ' '... is known the second time'
is "$(sed -n 1p out | jq .id)" "$(sed -n 3p out | jq .id)" '... with the first id'
seq 12 | sed 's/.*/{"key":"a","payload":"x&"}/' >data
exits 0 'other payloads' qadd -q --jsonl keys <data
is "$(wc -l <err | tr -d ' ')" 11 '... are named, ten of them'
like "$(cat err)" '^qadd: stdin:1: the key already holds job ' '... by line'
like "$(cat err)" '^qadd: \.\.\. and 2 more keys' '... and the rest counted'
before=$(count)
printf '{"key":"c","payload":1}\n{"key":"a","payload":"other"}\n' >data
exits 65 '--strict' qadd --strict --jsonl keys <data
said "^qadd: stdin:2: key 'a' already holds job"
same
is "$(sql "SELECT count(*) FROM q_key WHERE key = 'c'")" 0 '... no key, either'
printf '{"key":"a","payload":"new"}\n{"key":"a","payload":"newer"}\n' >data
exits 0 '--replace' qadd --replace --jsonl keys <data
is "$(sql "SELECT body FROM q_body JOIN q_key k USING(job) WHERE k.queue = 'keys' AND key = 'a'")" newer '... the last one wins'
same
printf '{"payload":1,"in":"1h"}\n{"payload":2,"key":"d"}\n' >data
exits 0 '-n' qadd -n --jsonl keys <data
is "$(jq -c '[.id, .payload, .due_ms]' out | tr '\n' ' ')" '[null,"1",1780405200000] [null,"2",1780401600000] ' '... shows records'
same
printf '{"payload":1}\n{"payload":2,"key":""}\n' >data
exits 65 '... of good ones only' qadd -n --jsonl keys <data
said '^qadd: stdin:2: the key is empty'
printf 'a\n\n' >data
exits 65 '... and as many as expected' qadd -n --expect 2 --lines keys <data

# ---- how many ----

before=$(count)
printf 'a\nb\n\nc\n' >data
exits 0 '--expect' qadd -q --expect 3 --lines x <data
is "$(($(count) - before))" 3 '... as many jobs as came'
before=$(count)
for e in 0 2 4; do
	printf 'a\nb\nc\n' >data
	exits 65 "... not $e" qadd --expect $e --lines x <data
	said "^qadd: 3 jobs came, $e were expected; nothing was added"
done
same
exits 0 '--expect 0 of none' qadd --expect 0 --lines x </dev/null
printf 'a\n' >data
exits 64 '--expect of one payload' qadd --expect 1 x <data
printf 'a\n' >data
exits 64 '--batch of one payload' qadd --batch 1 x <data
for b in 0 100001 -1 x; do
	echo a >data
	exits 64 "--batch $b" qadd --batch "$b" --lines x <data
	said '^qadd: --batch: .* is not a whole number from 1 to 100000'
done
seq 25 >data
exits 0 '--batch' qadd --batch 10 --lines batch <data
is "$(bodies batch)" "$(perl -e 'print join ",", map { unpack "H*", $_ } 1 .. 25')" '... adds all, in order'
ok "$(sort -n out | cmp -s - out; echo $?)" '... with ids in input order'
{ seq 25; head -c 1048577 /dev/zero | tr '\0' x; } >data
exits 65 '... and stops at a bad record' qadd -q --batch 10 --lines batch <data
said '^qadd: stdin:26: the record has more than 1048576 bytes; 20 jobs of earlier batches were added'
is "$(sql "SELECT count(*) FROM q_job WHERE queue = 'batch'")" 45 '... leaving nothing of its batch'
{ seq 12 | sed 's/.*/{"payload":&}/'; echo '{"payload":1,"priority":"high"}'; } >data
exits 65 '... of JSON' qadd -q --batch 5 --jsonl batch <data
said '^qadd: stdin:13: "priority" must be .*; 10 jobs of earlier batches were added'
{ seq 12 | sed 's/.*/{"payload":&}/'; echo '{"payload":1,"key":"dd"}'; echo '{"payload":2,"key":"dd"}'; } >data
exits 65 '... or of a key' qadd -q --strict --batch 5 --jsonl batch <data
said "^qadd: stdin:14: key 'dd' .*; 10 jobs of earlier batches were added"
before=$(count)
seq 25 >data
exits 65 '--batch with --expect' qadd --batch 10 --expect 24 --lines batch <data
said '^qadd: 25 jobs came, 24 were expected; nothing was added'
same
seq 25 >data
exits 0 '... that is right' qadd -q --batch 10 --expect 25 --lines batch <data
is "$(($(count) - before))" 25 '... adds all'

before=$(count)
seq 100000 >data
exits 0 '100,000 are one transaction' qadd --lines big <data
is "$(wc -l <out | tr -d ' ') $(($(count) - before))" '100000 100000' '... with as many ids'
is "$(sed -n '1p;100000p' out | tr '\n' ' ')" "$(sql "SELECT min(id) || ' ' || max(id) || ' ' FROM q_job WHERE queue = 'big'")" '... in input order'
before=$(count)
seq 100001 >data
exits 65 'one more is not' qadd --lines big <data
said '^qadd: more than 100000 jobs are not added as one; --batch N commits every N; nothing was added'
same

# ---- output that is lost ----

# The ids told before the commit are at most 4096 bytes: 819 jobs of four digits and a newline here.
export Q_DB="$PWD/small.db"
qinit && seq 1000 | qadd -q --lines m
seq 819 >data
exits 74 '4095 bytes of ids into a full device' sh -c 'qadd --lines m >/dev/full' <data
said '^qadd: standard output: No space left on device; nothing was added'
is "$(count)" 1000 '... store nothing'
seq 819 >data
exits 74 '... or a closed output' sh -c 'qadd --lines m >&-' <data
is "$(count)" 1000 '... nothing'
seq 820 >data
exits 74 '4100 bytes' sh -c 'qadd --lines m >/dev/full' <data
said '^qadd: standard output: No space left on device; 820 jobs were added, their ids are not all told'
is "$(count)" 1820 '... come after the commit, and it says how many are there'
seq 30 >data
exits 74 '--batch into a full device' sh -c 'qadd --batch 10 --lines m >/dev/full' <data
said '^qadd: standard output: No space left on device; nothing was added'
is "$(count)" 1820 '... stops at the first batch'
# A reader that ends early: what it did not read is there, and the status says so.
seq 20000 | { qadd --lines m 2>err; echo $? >status; } | head -n 1 >first
like "$(cat status err | tr '\n' ' ')" '^74 qadd: standard output: Broken pipe; 20000 jobs were added, their ids are not all told $' '| head -n 1 of 20,000: 74, and what it says is true'
is "$(cat first) $(count)" '1821 21820' '... the jobs are there'

# ---- room ----

mkdir tmp
seq 500 >data
exits 0 'the spool' env TMPDIR="$PWD/tmp" qadd -q --lines m <data
is "$(ls -A tmp)" '' '... leaves nothing behind'
before=$(count)
{ seq 500; head -c 1048577 /dev/zero; } >data
exits 65 '... when it fails' env TMPDIR="$PWD/tmp" qadd --lines m <data
is "$(ls -A tmp)" '' '... neither'
mkfifo in
env TMPDIR="$PWD/tmp" qadd --lines m <in &
exec 9>in
seq 20000 >&9
kill -KILL $!
exec 9>&-
wait 2>/dev/null
is "$(ls -A tmp)" '' '... nor when it is killed'
seq 5 >data
exits 73 'no TMPDIR' env TMPDIR="$PWD/none" qadd --lines m <data
said '^qadd: temporary file: No such file or directory; see TMPDIR'
echo x >data
exits 0 '... is not missed by one job' env TMPDIR="$PWD/none" qadd -q m <data
before=$((before + 1))
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
	seq 100000 >data
	# shellcheck disable=SC2016 # $1 belongs to the inner shell
	exits 74 'a TMPDIR that is full' unshare -m sh -c 'mount -t tmpfs -o size=1m none "$1" && TMPDIR="$1" exec qadd --lines m' sh "$PWD/tmp" <data
	said '^qadd: temporary file: No space left on device; see TMPDIR; nothing was added'
else
	ok 0 'a TMPDIR that is full # SKIP only root can mount one'
fi
same

# Memory: 200,000 lines of 100 bytes need no more than 20,000 do but for SQLite's cache, at most 16 MB;
# and nothing is locked while they come.
peak() {	# LINES: the most memory that adding them took, in KiB
	qadd -q --batch 10000 --lines m <in &
	exec 9>in
	yes "$(printf '%099d' 0)" | head -n "$1" >&9
	awk '/^VmHWM:/ { print $2 }' "/proc/$!/status"
	qadd -q free x
	exec 9>&-
	wait $! || echo "exit $?"
}
few=$(peak 20000)
many=$(peak 200000)
# A sanitizer keeps what is freed.
grep -q __asan_init "$(command -v qadd)" && many=$few
ok "$(test "$many" -gt 0 && test "$many" -lt $((few + 18000)); echo $?)" "memory does not grow with the number of lines ($few and $many KiB)"
is "$(sql "SELECT count(*) FROM q_job WHERE queue = 'm' AND id > $before") $(sql "SELECT count(*) FROM q_job WHERE queue = 'free'")" '220000 2' '... and all are there'
is "$(sql 'PRAGMA integrity_check')" ok 'the file is sound'
ok "$(test "$(stat -c %s small.db-wal)" -lt 3000000; echo $?)" '... and its log short'

done_testing
