#!/bin/sh
# qadd: one job at a time, with every option.
. "${0%/*}/lib.sh"

qinit || exit 1
now=1780401600000	# Q_NOW
job() { sql "SELECT $2 FROM q_job LEFT JOIN q_body ON job = id WHERE id = $1"; }
due() { job "$1" due_ms; }
hex() { od -An -v -tx1 | tr -d ' \n'; }
add() { id=$(qadd "$@") || echo "# exit $?: qadd $*"; }	# leaves the id
quiet() { is "$(cat out err)" '' "$1"; }
count() { sql 'SELECT count(*) FROM q_job'; }

# ---- ids ----

exits 0 'a job' qadd mail '{"to":"ana"}'
is "$(cat out)" 1 '... prints its id'
is "$(cat err)" '' '... and nothing else'
is "$(sql 'SELECT * FROM q_job' | tr '|' ' ')" "1 mail    $now 5 pending $now  $now   0  1 0 0 0       $now    " '... and is pending, due now'
exits 0 '-j' qadd -j mail two
is "$(cat out)" '{"id":2,"new":true}' '... prints JSON'
exits 0 '-q' qadd -q mail three
quiet '... prints nothing'
exits 0 '-qj' qadd -qj mail four
quiet '... nothing, either'
exits 0 'long names' qadd --database="$Q_DB" --json --type=t --entity e --priority 0 --key=long --tz UTC mail five
is "$(cat out) $(job 5 'type, entity, priority, key, zone')" '{"id":5,"new":true} t|e|0|long|UTC' '... of every short option'
exits 0 'options after operands' qadd mail six -p 3 -k late
is "$(cat out) $(job 6 "priority, key, body")" '6 3|late|six' '... count'
exits 0 'operands after --' qadd mail -- --seven
is "$(job 7 body)" --seven '... may look like options'
exits 0 'the last of two counts' qadd -p 1 -p 8 mail eight
is "$(job 8 priority)" 8 '... as everywhere'
is "$(sql 'SELECT group_concat(id) FROM q_job')" 1,2,3,4,5,6,7,8 'ids follow one another'
is "$(sql 'SELECT count(*) FROM q_body')" 8 '... each with its payload'

# ---- payloads ----

echo echoed >data
exits 0 'standard input' qadd in <data
is "$(job 9 'hex(body)')" 6563686F65640A '... is one payload, newline and all'
printf dash >data
exits 0 '-' qadd in - <data
is "$(job 10 body)" dash '... is standard input, too'
perl -e 'print pack "C*", 0 .. 255' >bytes
is "$(wc -c <bytes | tr -d ' ')" 256 'all the bytes there are'
qadd in <bytes >id
exits 0 '... are taken' qls --raw "$(cat id)"
is "$(cmp out bytes 2>&1)" '' '... and given back by qls --raw'
is "$(qls -j in | jq -r 'select(.payload_base64) | .payload_base64' | base64 -d | cmp - bytes 2>&1)" '' '... and, in base64, by qls -j'
add in "$(printf 'tab\tnewline\nesc\033[31m\303\251')"
is "$(qls --raw "$id" | hex)" 746162096e65776c696e650a6573631b5b33316dc3a9 'an operand is taken as it is'
head -c 1048576 /dev/zero >big
exits 0 '1 MiB' qadd in - <big
qls --raw "$(cat out)" | cmp - big >differs 2>&1
is "$(cat differs)" '' '... comes back'
{ cat big; printf x; } >data
exits 65 'a byte more' qadd in <data
says '^qadd: the payload has more than 1048576 bytes; '
is "$(cat out)" '' '... and no id'
before=$(count)
exits 65 'an empty standard input' qadd in </dev/null
says '^qadd: the payload is empty.*--empty allows it'
exits 65 'an empty operand' qadd in ''
says '^qadd: the payload is empty'
is "$(count)" "$before" '... add nothing'
exits 0 '--empty' qadd --empty in </dev/null
is "$(job "$(cat out)" 'typeof(body) || length(body)')" blob0 '... allows it'
is "$(qls --raw "$(cat out)" | wc -c | tr -d ' ')" 0 '... and it comes back empty'
# shellcheck disable=SC2016 # dollars are data
for json in '{"n":1.10,"e":1E5,"u":"\u00e9\/","big":12345678901234567890123,"a":[]}' '[1.0,-0,1e-7,0.1000]' '{}'; do
	add json "$json"
	is "$(qls -j "$id" | sed 's/.*"payload":\(.*\),"added_at".*/\1/')" "$json" "$json keeps its literals in qls -j"
done
add json '{ "a" : 1,
	"b" : "x  y" }'
is "$(qls -j "$id" | sed 's/.*"payload":\(.*\),"added_at".*/\1/')" '{"a":1,"b":"x  y"}' 'only white space between tokens shrinks there'
is "$(qls --raw "$id")" '{ "a" : 1,
	"b" : "x  y" }' '... and not in qls --raw'
exits 65 '--check-json' qadd --check-json in 'not json'
says '^qadd: the payload is not JSON'
for json in '{"a":1}' '[]' 42 '"x"' null ' true '; do
	exits 0 "... takes $json" qadd -q --check-json in "$json"
done
for bad in '{"a":1' '{"a":1}}' "{'a':1}" 01 nul '1 2'; do
	exits 65 "... and not $bad" qadd --check-json in "$bad"
done

# Standard input is read only where said.
printf 'a\nb\nc\n' | while read -r line; do qadd -q loop "$line"; done
is "$(sql "SELECT group_concat(body) FROM q_job JOIN q_body ON job = id WHERE queue = 'loop'")" a,b,c 'an operand leaves the input of a loop alone'
printf 'a\nb\nc\n' | while read -r line; do qadd 2>/dev/null; echo "$line"; done >lines
is "$(tr '\n' ' ' <lines)" 'a b c ' '... so does a forgotten one'
exits 0 'a closed standard input' sh -c 'qadd in operand <&-'
exits 74 '... where it is to be read' sh -c 'qadd in <&-'
says '^qadd: standard input: Bad file descriptor; nothing was added'
exits 74 'a folder as standard input' qadd in <"$PWD"
says '^qadd: standard input: Is a directory; nothing was added'
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
	script -qec 'qadd in; echo "exit $?"' /dev/null >terminal </dev/null
	like "$(cat terminal)" 'qadd: no PAYLOAD; .-. reads it from the terminal' 'at a terminal a forgotten payload is asked for, not waited for'
	like "$(cat terminal)" 'exit 64' '... as a usage error'
fi

# ---- keys ----

exits 0 'a key' qadd -k order-1 k one
first=$(cat out)
before=$(sql 'SELECT * FROM q_job; SELECT * FROM q_body; SELECT * FROM q_key')
exits 0 'the same again' qadd -k order-1 k one
is "$(cat out)" "$first" '... is the first id'
is "$(cat err)" '' '... without a word'
exits 0 'with -j' qadd -j -k order-1 k one
is "$(cat out)" "{\"id\":$first,\"new\":false}" '... it says so'
exits 0 'another payload' qadd -k order-1 k two
is "$(cat out)" "$first" '... is the first id'
says "^qadd: the key already holds job $first with another payload, which was kept; see --replace, --strict"
exits 0 'other times, priority and type' qadd -k order-1 -p 0 -t x --in 1h -e y k one
exits 0 'the same --strict' qadd --strict -k order-1 k one
is "$(cat out)" "$first" '... is the first id'
exits 65 'another payload --strict' qadd --strict -k order-1 k two
says "^qadd: key 'order-1' already holds job $first with another payload"
is "$(cat out)" '' '... and no id'
is "$(sql 'SELECT * FROM q_job; SELECT * FROM q_body; SELECT * FROM q_key')" "$before" '... and none of these wrote anything'
is "$(qadd -k order-1 other one)" "$((first + 1))" 'a key counts in its queue alone'
add --strict -k order-2 k x
is "$(job "$id" key)" order-2 '--strict adds what is new'
exits 0 '255 bytes of UTF-8' qadd -k "$(printf '%0253d\303\251' 0)" k x
is "$(job "$(cat out)" 'length(CAST(key AS BLOB))')" 255 '... are a key'
exits 64 'one of --replace, --strict' qadd --replace --strict -k a k x
add -k gone k x
gone=$id
qclaim k >/dev/null	# order-1
qclaim -c 9 k | jq -r 'select(.key == "gone") | .claim' | qfail --dead -
exits 0 'a key that a dead job holds' qadd -k gone k x
is "$(cat out)" "$gone" '... is its id'
says "^qadd: the key holds job $gone, which is dead and does not run; next: qreplay $gone, or --replace"
exits 0 '... with another payload' qadd -k gone k y
is "$(grep -c . err),$(grep -c 'which is dead' err)" 1,1 '... is told in one line'

add --replace -k deb -e ana -p 2 -t t --in 10s k v1
is "$(job "$id" 'body, due_ms, event_ms')" "v1|$((now + 10000))|$((now + 10000))" '--replace adds what is new'
deb=$id
exits 0 '... and replaces what is pending' qadd -j --replace -k deb --in 20s --tz Europe/Berlin k v2
is "$(cat out)$(cat err)" "{\"id\":$deb,\"new\":false}" '... under its id'
is "$(job "$deb" 'body, due_ms, event_ms, ready_ms, zone, entity, priority, type, state')" \
    "v2|$((now + 20000))|$((now + 20000))|$((now + 20000))|Europe/Berlin|ana|2|t|pending" '... payload and time, its event time with it'
exits 0 '... with an event time' qadd -q --replace -k deb --event-time @1000 k v3
is "$(job "$deb" 'body, due_ms, event_ms')" "v3|$now|1000000" '... which is kept'
add -e ana --event-time @2000 k behind
is "$(job "$deb" head)$(job "$id" 'head, ready_ms')" '1|' '... it is the head of its entity'
exits 0 '... replaced to come later' qadd -q --replace -k deb --event-time @3000 k v4
is "$(job "$deb" 'head, ready_ms')$(job "$id" head)" '|1' '... it steps back behind the other'
exits 0 '... and sooner' qadd -q --replace -k deb --event-time @1000 k v5
is "$(job "$deb" head)$(job "$id" 'head, ready_ms')" '1|' '... and comes first again'
claim=$(qclaim k -c 100 | jq -r "select(.id == $deb).claim")
exits 0 '... when it is claimed' qadd -j --replace -k deb k v6
new=$(jq .id out)
is "$(cat out)" "{\"id\":$new,\"new\":true}" '... a fresh job is added'
ok "$(test "$new" -gt "$id"; echo $?)" '... with a new id'
is "$(sql "SELECT job FROM q_key WHERE key = 'deb'") $(job "$deb" body) $(job "$new" body)" "$new v5 v6" '... takes over the key, and the running one keeps its payload'
qfail --in 1m "$claim"
is "$(qadd -k deb k v6) $(qadd --replace -k deb --in 1s k v7) $(job "$new" body)" "$new $new v7" '... and is what the key means from now on'
claim=$(Q_NOW=2026-06-02T12:00:02Z qclaim k -c 100 | jq -r "select(.id == $new).claim")
qfail --in 1h "$claim"
is "$(job "$new" 'state, spent')" 'failed|1' 'a failed one'
is "$(qadd --replace -k deb --in 5s k v8)" "$new" '... is replaced'
is "$(job "$new" 'state, spent, body, due_ms, ready_ms')" "failed|1|v8|$((now + 5000))|$((now + 5000))" '... payload and time'
claim=$(Q_NOW=2026-06-02T12:00:06Z qclaim k -c 100 | jq -r "select(.id == $new).claim")
qdone "$claim"
is "$(qadd -k deb k v8)" "$new" 'a settled one is remembered'
exits 0 '... and never swallows a --replace' qadd --replace -k deb k v8
last=$(cat out)
ok "$(test "$last" -gt "$new"; echo $?)" '... which is a fresh job'
is "$(job "$new" 'state, body') $(job "$last" 'state, body')" 'done|v8 pending|v8' '... and leaves the settled one as it was'
claim=$(qclaim k -c 100 | jq -r "select(.id == $last).claim")
qfail --dead "$claim"
is "$(($(qadd --replace -k deb k v9) > last))" 1 '... likewise when it is dead'
add --replace -k win --window 1m k x
qadd -q --replace -k win --in 1h k x
is "$(job "$id" 'until_ms')" "$((now + 3660000))" 'its window moves with its time'

# ---- names and numbers ----

for opt in -k -t -e; do
	exits 65 "$opt with nothing" qadd "$opt" '' n x
	says '^qadd: the (key|type|entity) is empty'
	exits 65 "$opt with a newline" qadd "$opt" 'a
b' n x
	says '^qadd: the (key|type|entity) has a control byte'
	exits 65 "$opt of 256 bytes" qadd "$opt" "$(printf '%0256d' 0)" n x
	says '^qadd: the (key|type|entity) is longer than 255 bytes'
	exits 65 "$opt that is not UTF-8" qadd "$opt" "$(printf 'a\351')" n x
	says '^qadd: the (key|type|entity) is not UTF-8'
done
for p in 0 9; do add -p $p n x; is "$(job "$id" priority)" $p "priority $p"; done
for p in 10 -1 +1 1.0 '' ' 1' 0x1 18446744073709551617; do
	exits 64 "... not '$p'" qadd -p "$p" n x
	says "^qadd: -p: '.*' is not a whole number from 0 to 9; see 'qadd --help'"
done
exits 0 'a retry policy' qadd --attempts 7 --backoff 2s..1h --window 3d --in 1h n x
is "$(job "$(cat out)" 'attempts, base_ms, cap_ms, window_ms, until_ms')" "7|2000|3600000|259200000|$((now + 3600000 + 259200000))" '... is kept with the job'
exits 0 'a wait that does not grow' qadd --backoff 1m..1m n x
is "$(job "$(cat out)" 'base_ms, cap_ms')" '60000|60000' '... is one'
for b in 5s 5s.. ..5s 10m..5s 5..10 1s..0 'a..b' 1s...2s; do
	exits 64 "... not '$b'" qadd --backoff "$b" n x
	like "$(cat err)" '^qadd: --backoff: ' '... named'
done
is "$(sql "SELECT count(*) FROM q_job WHERE queue = 'n'")" 4 'what is refused is not there'

# ---- times ----

at() {	# WANT_UTC OPTIONS...: is due at
	_want=$1
	shift
	if id=$(qadd "$@" t x 2>err); then
		is "$(sql "SELECT strftime('%Y-%m-%dT%H:%M:%fZ', due_ms / 1000.0, 'unixepoch') FROM q_job WHERE id = $id")" "$_want" "$*"
	else
		ok 1 "$*"
		sed 's/^/# /' err
	fi
}
at 2026-06-02T12:00:00.000Z --in 0
at 2026-06-02T12:00:00.500Z --in 500ms
at 2026-06-02T13:30:00.000Z --in 1h30m
at 2026-06-09T12:00:00.000Z --in 1w
at 2026-06-02T12:01:00.000Z --at 2026-06-02T12:01:00Z
at 2026-06-02T12:01:00.000Z --at '2026-06-02 14:01:00+02:00'
at 2026-06-02T12:01:00.250Z --at 2026-06-02T12:01:00.25Z
at 2020-01-01T00:00:00.000Z --at 2020-01-01T00:00Z
at 2026-06-02T12:01:00.000Z --at @1780401660
at 2026-06-02T12:01:00.123Z --at @1780401660.123
at 2026-06-02T12:00:00.000Z --at now
at 2026-06-02T12:10:00.000Z --at +10m
at 2026-06-02T07:00:00.000Z --at 'today 09:00' --tz Europe/Berlin
at 2026-06-03T07:00:00.000Z --at 'tomorrow 09:00' --tz Europe/Berlin
at 2026-12-24T08:00:00.000Z --at '2026-12-24 09:00' --tz Europe/Berlin
at 2026-12-24T08:00:07.000Z --at '2026-12-24 09:00:07' --tz Europe/Berlin
at 2026-06-02T13:00:00.000Z --at 15:00 --tz Europe/Berlin
at 2026-06-02T12:00:00.000Z --at 14:00 --tz Europe/Berlin
at 2026-06-03T11:59:00.000Z --at 13:59 --tz Europe/Berlin
at 2026-06-02T12:30:00.000Z --at 12:30 --tz UTC
at 2026-05-01T01:00:00.000Z --after 2026-05-01T00:00:00Z --in 1h
at 2026-05-02T00:10:00.000Z --after '2026-05-02 02:00' --tz Europe/Berlin --in 10m
at 2026-05-02T00:10:00.000Z --after @1777680000 --at +10m
at 2026-05-02T07:00:00.000Z --after 2026-04-30T23:30:00Z --in 1d --at 09:00 --tz Europe/Berlin
at 2026-05-02T08:00:00.000Z --after 2026-05-01T07:30:00Z --in 1d --at 10:00 --tz Europe/Berlin
at 2026-05-03T08:00:00.000Z --after 2026-05-01T08:30:00Z --in 1d --at 10:00 --tz Europe/Berlin
at 2026-05-03T08:00:00.000Z --after 2026-05-01T23:30:00+02:00 --in 1d --at 10:00 --tz Europe/Berlin
at 2026-03-29T01:00:00.000Z --after 2026-03-29T00:00:00Z --at 02:30 --tz Europe/Berlin
at 2026-10-25T00:30:00.000Z --at '2026-10-25 02:30' --tz Europe/Berlin
is "$(job "$id" zone)" Europe/Berlin 'the zone that was meant is kept'
add t x
is "$(job "$id" 'zone IS NULL')" 1 '... and none where none was said'
add --in 1h --event-time @1000.5 t x
is "$(job "$id" 'due_ms, event_ms')" "$((now + 3600000))|1000500" '--event-time is apart from the due time'
add --event-time '2026-06-01 12:00' --tz Europe/Berlin t x
is "$(job "$id" event_ms)" 1780308000000 '... and read in the zone'
add --in 1h t x
is "$(job "$id" 'event_ms = due_ms')" 1 '... else it is the due time'

# Jitter: from the due time on, less than it, the same for the same key.
i=0 spread=
while [ $i -lt 20 ]; do
	add -k "j$i" --at @2000000000 --jitter 90m t x
	spread="$spread $(due "$id")"
	i=$((i + 1))
done
is "$(echo "$spread" | tr ' ' '\n' | awk 'NF && ($1 < 2000000000000 || $1 >= 2000005400000)')" '' 'jitter keeps within its span'
ok "$(test "$(echo "$spread" | tr ' ' '\n' | sort -u | wc -l)" -gt 18; echo $?)" '... and spreads'
for q in j1 j2; do add -k same --at @2000000000 --jitter 90m $q x; eval "$q=$(due "$id")"; done
# shellcheck disable=SC2154 # set by eval
ok "$(test "$j1" -ne "$j2"; echo $?)" '... by queue and key'
dry=$(qadd -n -k dry --after 2026-06-01T00:00:00Z --in 1d --at 10:00 --tz Europe/Berlin --jitter 90m t x | jq .due_ms)
add -k dry --after 2026-06-01T00:00:00Z --in 1d --at 10:00 --tz Europe/Berlin --jitter 90m t x
is "$(due "$id")" "$dry" '-n says the time that the real run gives'
ok "$(test "$dry" -ge 1780387200000 && test "$dry" -lt 1780392600000; echo $?)" '... between 10:00 and 11:30 in Berlin'
for p in 1 2 3 4; do add --at @2000000000 --jitter 90m r "$p"; done
ok "$(test "$(sql "SELECT count(DISTINCT due_ms) FROM q_job WHERE queue = 'r'")" -gt 1; echo $?)" 'without a key it is random'
add --jitter 0 t x
is "$(due "$id")" $now 'no jitter is none'

# ---- the dry run ----

before=$(sqlite3 -readonly "$Q_DB" .dump)
exits 0 '-n' qadd -n -k new-key -e ana -t t -p 1 --in 1h --event-time @5 dry '{"a": 1}'
is "$(jq -c '[.id, .claim, .queue, .type, .key, .entity, .priority, .state, .attempt, .generation, .payload, .due_ms, .due_at, .event_ms, .added_ms]' out)" \
    "[null,null,\"dry\",\"t\",\"new-key\",\"ana\",1,\"pending\",1,1,{\"a\":1},$((now + 3600000)),\"2026-06-02T13:00:00Z\",5000,$now]" \
    '... shows the job as a record'
is "$(wc -l <out | tr -d ' ')$(cat err)" 1 '... on one line'
exits 0 '... of a known key' qadd -n -k order-1 k one
is "$(jq .id out)" "$first" '... shows its id'
exits 65 '... of an empty payload' qadd -n dry ''
exits 65 '... of an empty key' qadd -n -k '' dry x
says '^qadd: the key is empty'
exits 65 '... of a bad type' qadd -n -t "$(printf 'a\001')" dry x
exits 65 '... of a known key with another payload, --strict' qadd -n --strict -k order-1 k two
says "^qadd: key 'order-1' already holds job $first with another payload"
exits 64 '... of a bad time' qadd -n --in 5 dry x
is "$(sqlite3 -readonly "$Q_DB" .dump)" "$before" '... and adds nothing'
chmod 400 "$Q_DB"
exits 0 '... which needs no right to write' qadd -n dry x
chmod 600 "$Q_DB"

# ---- the end ----

exits 74 'a full standard output' sh -c 'qadd full x >/dev/full'
like "$(cat err)" '^qadd: standard output: No space left on device; nothing was added' '... says so'
exits 74 'a closed one' sh -c 'qadd full x >&-'
# shellcheck disable=SC2016 # Perl's dollars
exits 74 'a pipe that nobody reads' perl -e 'pipe R, W; close R; open STDOUT, ">&W"; exec @ARGV' qadd full x
is "$(sql "SELECT count(*) FROM q_job WHERE queue = 'full'")" 0 '... adds nothing'
exits 0 '-q needs none' sh -c 'qadd -q full x >/dev/full && qadd -q full x >&-'
is "$(sql "SELECT count(*) FROM q_job WHERE queue = 'full'")" 2 '... and adds'
is "$(sql 'PRAGMA integrity_check')" ok 'the file is sound'

# ---- ids ----

last=$(sql 'SELECT max(id) FROM q_job')
sqlite3 q.db 'DELETE FROM q_job'
is "$(sql 'SELECT count(*), max(id) FROM q_job')" "1|$last" 'the newest row stays, whoever deletes'
is "$(qadd k x)" "$((last + 1))" '... so no id comes twice'

done_testing
