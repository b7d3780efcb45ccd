#!/bin/sh
# qpoll: what arrives, once and byte for byte, what is asked for it, and how a run tells its four outcomes.
# What an API does wrong: t/77-qpoll-bad.t.  Pages and orders: t/78-qpoll-pages.t.  While it changes at random: t/74-poll-storm.t.
# shellcheck disable=SC2086	# members and words are lists
. "${0%/*}/lib.sh"
[ -x "$t/serve" ] || skip_all 't/serve is not built'

. "$t/qpoll.sh"

# ---- the first runs ----

rows "$ROWS"
src "$ASC"
exits 66 'without a queue file there is nothing to poll into' poll
qinit
exits 0 'the first run' poll
quiet
is "$(arrived)" 'a b c d e f g' '... all arrive, in order'
is "$(cursor)" 2026-03-01T00:00:05Z '... the cursor is the greatest value'
is "$(sql 'SELECT DISTINCT queue, type, priority, due_ms FROM q_job')" 'in||5|1780401600000' '... are jobs of the queue, due now'
is "$(sql "SELECT event_ms FROM q_job WHERE key LIKE 's/f/%'")" 1772323203500 '... with the time of their event'
is "$(asked poll)" '0 1' 'nothing new: one request'
quiet
is "$(last)" '/items?since=2026-03-01T00%3A00%3A05Z&order=asc&limit=3' '... from the cursor on, inclusive'
gen=$(sql 'SELECT gen FROM q_poll')
sqlite3 -readonly q.db >versions <<-'END'
	PRAGMA data_version;
	.shell qpoll s.json
	PRAGMA data_version;
END
is "$(($(sed -n 2p versions) - $(sed -n 1p versions))) $(($(sql 'SELECT gen FROM q_poll') - gen))" '1 1' '... and one commit'
is "$(runs)" 'nothing 0 200' '... written down'
is "$(sql 'SELECT pages, items, fresh, repeated, late, future, before, after FROM q_poll_run ORDER BY id DESC LIMIT 1')" \
    '1|1|0|1|0|0|2026-03-01T00:00:05Z|2026-03-01T00:00:05Z' '... with what it counted'
is "$(letters)" abcdefg '... nothing comes twice'
ask "$url/_put" '[{"id":"h","stamp":1772323206000},{"id":"g","stamp":1772323205000}]'
exits 0 'one more, and one edited without a new time' poll
is "$(arrived)" 'a b c d e f g g h' '... both arrive'
is "$(sql "SELECT json_extract(body, '\$.version') FROM q_body JOIN q_job ON id = job WHERE key LIKE 's/g/%'" | tr '\n' ' ')" '1 2 ' '... each version'
counted

# ---- what is not a run ----

exits 0 '--status' poll --status
is "$(cat out)" 'source     s
cursor     2026-03-01T00:00:06Z
last new   now
last run   now: new' '... for people'
exits 0 '--status -j' poll --status -j
is "$(cat out)" '{"name":"s","cursor":"2026-03-01T00:00:06Z","walking":false,"shown_at":"2026-06-02T12:00:00Z","shown_ms":1780401600000,"run_at":"2026-06-02T12:00:00Z","run_ms":1780401600000,"outcome":"new","failures":0,"note":null}' '... JSON'
exits 0 '--history' poll --history
is "$(cat out)" 'STARTED               OUTCOME     EXIT HTTP PAGES  ITEMS    NEW   TOOK  CURSOR, NOTE
2026-06-02T12:00:00Z  new            0  200     1      2      2     0s  2026-03-01T00:00:06Z
2026-06-02T12:00:00Z  nothing        0  200     1      1      0     0s  2026-03-01T00:00:05Z
2026-06-02T12:00:00Z  nothing        0  200     1      1      0     0s  2026-03-01T00:00:05Z
2026-06-02T12:00:00Z  new            0  200     6     16      7     0s  2026-03-01T00:00:05Z' '... the newest first'
exits 0 '--history -j' poll --history -j
is "$(sed -n '$p' out)" '{"name":"s","started_at":"2026-06-02T12:00:00Z","started_ms":1780401600000,"finished_at":"2026-06-02T12:00:00Z","finished_ms":1780401600000,"outcome":"new","exit":0,"http":200,"pages":6,"items":16,"new":7,"repeated":9,"late":0,"future":0,"bytes":1018,"waited_ms":0,"before":null,"after":"2026-03-01T00:00:05Z","note":null}' '... JSON Lines'
ask "$url/_put" '[{"id":"i","stamp":1772323207000}]'
unchanged 0 '-n' poll -n
is "$(cat out err)" '{"id":"i","updated_at":"2026-03-01T00:00:07Z","version":1}
qpoll: s: the cursor would be 2026-03-01T00:00:07Z' '... shows the new items and the cursor'
unchanged 0 '--check' poll --check
quiet
exits 0 '--set-cursor' poll --set-cursor 2026-03-01T00:00:03Z
is "$(cursor) $(runs) $(note)" '2026-03-01T00:00:03Z set 0 - the cursor was set' '... is written down'
is "$(asked poll)" '0 2' '... and where the next run begins'
is "$(last 2 | head -n 1)" '/items?since=2026-03-01T00%3A00%3A03Z&order=asc&limit=3' '... asks'
is "$(letters)" abcdefgghi '... and what is a job is not another'
unchanged 65 '--set-cursor to no value' poll --set-cursor yesterday
is "$(cat err)" "qpoll: 'yesterday' is not a time such as 2026-03-01T00:00:00Z" '... says so'
exits 0 '--reset' poll --reset
is "$(cursor) $(sql 'SELECT count(*) FROM q_seen')" '- 0' '... forgets'
poll
is "$(letters) $(cursor) $(sql 'SELECT fresh > 0 FROM q_poll_run ORDER BY id DESC LIMIT 1')" 'abcdefgghi 2026-03-01T00:00:07Z 1' '... and all comes again, but no job twice'
for bad in '--status --history' '-n --check' '-j' '-j --check' '-n --reset' '--status'; do
	case $bad in --status) set -- $bad s.json -- cat ;; *) set -- $bad s.json ;; esac
	exits 64 "usage: $*" qpoll "$@"
done
exits 64 'usage: no source' qpoll
exits 64 'usage: two' qpoll s.json s.json
exits 64 'usage: no command' qpoll s.json --
exits 66 'no such file' qpoll none.json
is "$(cat err)" 'qpoll: none.json: No such file or directory' '... says so'

# ---- the 401 story ----

fresh
new '{"auth":"Authorization: Bearer old"}'
echo old >token; chmod 600 token
src "$ASC,\"auth\":{\"bearer_file\":\"token\"}"
rows '[{"id":"a","stamp":1772323200000},{"id":"b","stamp":1772323201000}]'
exits 0 'with a good token' poll
new '{"auth":"Authorization: Bearer new"}'
bad=0 i=0
held() { sql 'SELECT cursor, cursor_key, seen_key, walk FROM q_poll; SELECT * FROM q_seen; SELECT id, key FROM q_job'; }
was=$(held)
while [ $((i += 1)) -le 23 ]; do
	ask "$url/_put" "[{\"id\":\"r$i\",\"stamp\":$((1772323201000 + i * 1000))}]"
	poll 2>err
	[ $? -eq 77 ] && [ "$(cat err)" = "qpoll: s: credentials refused: $url/items: status 401: {\"message\":\"no\"}" ] || bad=$((bad + 1))
done
is $bad 0 'the token dies: 23 runs fail with 77, and say so in one line'
is "$(held)" "$was" '... cursor and items stay'
is "$(sql "SELECT count(*), min(note), max(note) FROM q_poll_run WHERE outcome = 'failed' AND exit = 77 AND http = 401 AND fresh = 0")" \
    "23|s: credentials refused: $url/items: status 401: {\"message\":\"no\"}|s: credentials refused: $url/items: status 401: {\"message\":\"no\"}" '... 23 runs are written down'
poll --status >out
is "$(sed 1,3d out)" "last run   now: failed, 23 times in a row
note       s: credentials refused: $url/items: status 401: {\"message\":\"no\"}" '... --status knows'
is "$(poll --status -j | grep -o '"outcome":"failed","failures":23')" '"outcome":"failed","failures":23' '... and in JSON'
echo new >token
exits 0 'a new token' poll
is "$(sql "SELECT count(*), count(DISTINCT json_extract(body, '\$.id')) FROM q_body")" '25|25' '... nothing is missing, nothing came twice'
is "$(poll --status -j | grep -o '"outcome":"new","failures":0')" '"outcome":"new","failures":0' '... and it is over'

# ---- four outcomes ----

outcomes() {	# OUTCOME EXIT HTTP
	is "$(runs)" "$1 $2 $3" "$1: q_poll_run"
	is "$(poll --status | sed -n 's/^last run   now: //p')" "$1" '... --status'
	is "$(poll --history -j | head -n 1 | grep -o '"outcome":.*"http":[0-9]*')" "\"outcome\":\"$1\",\"exit\":$2,\"http\":$3" '... --history'
}
fresh
rows "$ROWS"
new '{"etag":true}'
src "$ASC,\"conditional\":true"
exits 0 'new' poll; outcomes new 0 200
exits 0 'nothing' poll; outcomes nothing 0 200
exits 0 'unmodified' poll; outcomes unmodified 0 304
mode '{"status":429,"headers":{"Retry-After":"3600"}}'
exits 75 'limited' poll; outcomes limited 75 429
is "$(cat err)" 'qpoll: s: limited: status 429 asks to wait 1h' '... says how long'
new '{"status":500}'
exits 69 'failed' poll; outcomes failed 69 500

# ---- item bytes ----

fresh
rows '[]'
cat >item1 <<'END'
{ "id" : 12345678901234567890,  "v":1.10, "w":1e2,	"updated_at" : "2026-03-01T00:00:00Z", "n":-0, "t":"\u00e9\/\ud83d\ude00 \"q\" é", "z": [ 1 , 2 ] }
END
printf '{"id":"x\\u0041","updated_at":"2026-03-01 01:00:00+01:00",\r\n\t"v":0.10000000000000000555,"d":1,"d":2}' >item2
printf '{"items" :\n[ %s ,%s\n] , "more":null}' "$(cat item1)" "$(cat item2)" >bytes
new "{\"file\":\"$PWD/bytes\"}"
src "$ASC"
exits 0 'odd items' poll
qls --raw 1 >got; head -c -1 item1 | cmp -s - got
ok $? '... arrive byte for byte'
qls --raw 2 >got; cmp -s item2 got
ok $? '... with their line ends'
is "$(sql "SELECT key LIKE 's/12345678901234567890/%' FROM q_job WHERE id = 1") $(sql "SELECT key LIKE 's/xA/%' FROM q_job WHERE id = 2")" '1 1' '... their ids are those of the source text'
printf '\357\273\277%s' "$(cat bytes)" >bytes2
new "{\"file\":\"$PWD/bytes2\",\"pad\":3}"
is "$(asked poll) $(letters | wc -w)" '0 1 1' 'a byte order mark and blanks behind change nothing'
printf '{"items":[{"updated_at":"2026-03-01T00:00:01.00Z","id":"xA" , "v":0.10000000000000000555,"d":1,"d":2},{"z":1,"id":"z","updated_at":"2026-03-01T00:00:02Z"}]}' >bytes3
new "{\"file\":\"$PWD/bytes3\"}"
poll -n >out 2>err
is "$(cat out)" '{"updated_at":"2026-03-01T00:00:01.00Z","id":"xA","v":0.10000000000000000555,"d":1,"d":2}
{"z":1,"id":"z","updated_at":"2026-03-01T00:00:02Z"}' 'another text of its time is another version; one line each'
long=$(printf '%0300d' 0)
printf '{"items":[{"id":"%s","updated_at":"2026-03-01T00:00:03Z"},{"id":"a b/\\u0001é","updated_at":"2026-03-01T00:00:03Z"}]}' "$long" >bytes4
new "{\"file\":\"$PWD/bytes4\"}"
exits 0 'ids that no key may hold' poll
is "$(sql "SELECT count(*) FROM q_job WHERE key GLOB 's/[0-9a-f]*' AND length(key) = 34")" 2 '... have the digest alone'
src "$ASC,\"ignore\":[\"/seen\",\"/x/y\"],\"entity\":\"/owner\",\"type\":\"t\",\"priority\":2"
fresh
new '{}'
rows '[{"text":"{\"id\":\"a\",\"updated_at\":\"2026-03-01T00:00:00Z\",\"owner\":7,\"seen\":1,\"x\":{\"y\":1}}","stamp":1}]'
poll
rows '[{"text":"{\"seen\":2,\"id\":\"a\",\"x\":{\"y\":2},\"owner\":7,\"updated_at\":\"2026-03-01T00:00:00Z\"}","stamp":1}]'
poll
is "$(sql 'SELECT entity, type, priority FROM q_job')" '7|t|2' 'entity, type, priority; what is ignored, and the order of members, make no version'

# ---- a command ----

fresh
rows "$ROWS"
src "$(by asc ',"x":1'),\"next\":\"link\""
printf '#!/bin/sh\ncat >>got; echo >>starts; exit "$(cat status 2>/dev/null || echo 0)"\n' >cmd
chmod +x cmd
rm -f got
echo 3 >status
exits 3 'a command that fails' poll_to ./cmd
is "$(cat err)" "qpoll: s: ./cmd: exit status 3; the cursor stays" '... one line'
is "$(cursor) $(sql 'SELECT count(*) FROM q_seen') $(sql 'SELECT count(*) FROM q_job')" '- 0 0' '... stores nothing'
is "$(runs) $(sql 'SELECT fresh FROM q_poll_run')" 'failed 3 200 0' '... is a failed run'
is "$(cut -c2-9 got | tr '\n' ' ')" '"id":"a" "id":"b" "id":"c" ' '... had a page, one item a line'
rm got starts status
exits 0 'a command' poll_to ./cmd
quiet
is "$(cut -c8 got | tr -d '\n') $(cursor) $(sql 'SELECT count(*) FROM q_job')" 'abcdefg 2026-03-01T00:00:05Z 0' '... gets all of them, and no job is made'
is "$(wc -l <starts | tr -d ' ')" 3 '... once a page that has something new'
rm starts
is "$(asked poll_to ./cmd) $(cat starts 2>/dev/null)" '0 1 ' '... and none if nothing is new'
ask "$url/_put" '[{"id":"h","stamp":1772323206000,"more":"\"v\":1.10"}]'
exits 127 'no such command' poll_to ./none
is "$(cursor)" 2026-03-01T00:00:05Z '... the cursor stays'
cat >slow <<'END'
#!/bin/sh
cat >>half; echo $$ >cmd.pid; exec sleep 60
END
chmod +x slow
qpoll s.json -- ./slow 2>/dev/null & victim=$!
until_ok test -s cmd.pid
kill -9 $victim; wait $victim 2>/dev/null
cat cmd.pid >pids
until_ok none_alive
ok $? 'kill -9 takes the command with it'
is "$(cursor)" 2026-03-01T00:00:05Z '... the cursor stays'
rm -f got
poll_to ./cmd
is "$(cat got)" '{"id":"h","updated_at":"2026-03-01T00:00:06Z","version":1,"v":1.10}' '... and the item comes again'


# ---- conditional requests ----

fresh
new '{"etag":true,"modified":true}'
rows '[{"id":"a","stamp":1772323200000}]'
src "$(by asc),\"next\":\"none\",\"conditional\":true"
poll
is "$(last)" '/items?order=asc&limit=3' 'validators: the first request is plain'
poll
like "$(requests | tail -n 1)" '	If-None-Match: "v[0-9]*"	If-Modified-Since: ' 'a further one has both'
i=0
while [ $((i += 1)) -le 23 ]; do poll; done
is "$(sql "SELECT count(*) FROM q_poll_run WHERE outcome = 'unmodified' AND exit = 0 AND http = 304") $(cursor) $(letters)" '24 2026-03-01T00:00:00Z a' '24 times unmodified'
poll
is "$(runs) $(requests | tail -n 1 | grep -c If-None-Match)" 'nothing 0 200 0' '... and then once plain'
poll
is "$(runs)" 'unmodified 0 304' '... and so on'
ask "$url/_put" '[{"id":"b","stamp":1772323201000}]'
poll
is "$(letters) $(runs)" 'ab new 0 200' 'what is new comes'
mode '{"same":true}'
poll
ask "$url/_put" '[{"id":"c","stamp":1772323202000}]'
i=0
while [ $((i += 1)) -le 25 ]; do poll; done
is "$(letters)" abc 'a server that says 304 for ever hides nothing for ever'
new '{"etag":true}'
poll --set-cursor 2026-03-01T00:00:00Z
poll
is "$(requests | tail -n 1 | grep -c If-None-Match)" 0 'not after --set-cursor'
mode '{"status":503}'
ask "$url/_put" '[{"id":"d","stamp":1772323203000}]'
poll 2>/dev/null
new '{"etag":true}'
poll
is "$(letters)" abcd 'a failed answer leaves no validators'
mode '{"body":{"items":null}}'
ask "$url/_put" '[{"id":"e","stamp":1772323204000}]'
poll 2>/dev/null
new '{"etag":true}'
poll
is "$(letters)" abcde '... nor one of the wrong shape'
new '{"etag":true}'
poll
unchanged 0 '-n asks without them' poll -n
is "$(requests | tail -n 1 | grep -c If-None-Match)" 0 '... so that it has something to show'
src "$(by asc ',"x":2'),\"next\":\"none\",\"conditional\":true"
exits 0 '... and so does a source that was changed' poll --accept
is "$(requests | tail -n 1 | grep -c If-None-Match) $(runs)" '0 nothing 0 200' '... since another URL has others'

# ---- who am I, control query ----

fresh
new '{"paths":{"/who":{"status":403}}}'
rows "$ROWS"
src "$ASC,\"whoami\":\"$url/who\""
exits 77 'whoami says no' poll
is "$(last) $(runs)" '/who failed 77 403' '... before anything else is asked'
new '{}'
is "$(asked poll) $(letters)" '0 7 abcdefg' '... yes'
src "$ASC,\"probe\":\"$url/all\""
probe() { mode "{\"paths\":{\"/all\":{\"body\":\"$1\",\"type\":\"application/json\"}}}"; }
item() { printf '{\\"id\\":\\"%s\\",\\"updated_at\\":\\"%s\\"}' "$1" "$2"; }
fresh
probe '{\"items\":[]}'
exits 0 'news need no control query' poll
exits 77 'nothing new, and it shows nothing: blind' poll
is "$(cat err)" "qpoll: s: blind: the control query shows no item at all; has the credential lost its rights?" '... says so'
is "$(runs) $(cursor)" 'failed 77 200 2026-03-01T00:00:05Z' '... is a failed run'
exits 77 '... and so is the next' poll
probe "{\\\"items\\\":[$(item a 2026-03-01T00:00:00Z)]}"
is "$(asked poll) $(last)" '0 2 /all' 'one item is enough'
is "$(sql 'SELECT items, repeated FROM q_poll_run ORDER BY id DESC LIMIT 1')" '1|1' '... and counts for nothing'
is "$(asked poll)" '0 1' '... for a day'
export Q_NOW=2026-06-03T12:00:01Z
probe "{\\\"items\\\":[$(item z 2026-03-02T00:00:00Z)]}"
is "$(asked poll) $(runs)" '0 3 nothing 0 200' 'it shows what the query does not: asked again'
exits 65 '... and a second time' poll
is "$(cat err)" 'qpoll: s: the filter hides data: twice the control query showed newer items that the query does not' '... it is an error'
ask "$url/_put" '[{"id":"z","stamp":1772409600000}]'
exits 0 '... until the query shows it' poll
Q_NOW=2026-06-02T12:00:00Z
mode '{"paths":{"/all":{"status":500}}}'
unchanged 69 '--check asks the control query, too' poll --check

# ---- a changed source, an old cursor ----

fresh
new '{}'
rows "$ROWS"
src "$ASC"
poll
src "$(by asc ',"kind":"x"'),\"next\":\"link\""
exits 78 'a source file that asks for other items' poll
is "$(cat err)" 'qpoll: s: the source file asks for other items than when the cursor was stored; next: qpoll --accept, if the cursor still fits, or qpoll --reset' '... is refused'
is "$(runs) $(cursor)" 'failed 78 - 2026-03-01T00:00:05Z' '... the cursor stays'
exits 0 '--accept' poll --accept
exits 0 '... is needed once' poll
printf '{ "next" : "link",\n' >s2; sed 's/^{//; s/,"next":"link"//' s.json >>s2; mv s2 s.json
exits 0 'the order of members, and blanks, are no change' poll
src "$(by asc ',"kind":"x"'),\"next\":\"link\",\"lookback\":\"1m\",\"max_wait\":\"1m\""
exits 0 '... nor is what decides nothing about items' poll
src '"cursor":"/version","cursor_type":"int","start":"all","query":{"since":"{cursor}"},"next":"none"'
exits 78 'another cursor' poll --accept
is "$(cat err)" "qpoll: s: the stored cursor '2026-03-01T00:00:05Z' is not a whole number without sign; next: qpoll --set-cursor or --reset" '... than the stored one is not accepted'
exits 78 '... again' poll
src "$ASC,\"max_gap\":\"1d\""
exits 0 '--reset accepts it' poll --reset
exits 0 'max_gap does not matter without a cursor' poll
before=$(count)
exits 78 '... then it does' poll
is "$(($(count) - before)) $(cat err)" '0 qpoll: s: the cursor 2026-03-01T00:00:05Z is older than "max_gap", so the API may have forgotten what follows it; next: qpoll --reset, and qbackfill the gap' '... before anything is asked'
fresh
src '"cursor":"/updated_at","start":"newest","cursor_format":"ms","query":{"since":"{cursor}"},"next":"none"'
exits 0 '"newest" of an ascending list' poll
is "$(arrived) $(cursor)" ' 2026-06-02T11:50:00Z' '... begins at the clock of the server, less max_skew'
fresh
src "$(by desc),\"next\":\"link\""
sed 's/"all"/"newest"/' s.json >s2; mv s2 s.json
exits 0 '"newest" of a descending one' poll
is "$(arrived) $(cursor) $(count)" " 2026-03-01T00:00:05Z $(count)" '... begins at its first'
fresh
src "$ASC"
sed 's/"all"/"2026-03-01 01:00:03+01:00"/' s.json >s2; mv s2 s.json
exits 0 'a value to start with' poll
is "$(letters)" fg '... is where it begins'

# ---- two at once, kills ----

fresh
new '{}'
src "$ASC"
qpoll s.json -- sh -c 'cat >/dev/null; touch begun; until [ -e go ]; do sleep 0.01; done' 2>err1 & first=$!
until_ok test -e begun
exits 0 'two runs at once: the quick one' poll
touch go; wait $first
is "$? $(cat err1)" '75 qpoll: s: another run of it was quicker; this one stored nothing more' '... the other one'
is "$(arrived)" 'a b c d e f g' '... and each item once'
is "$(sql 'SELECT outcome, exit, fresh FROM q_poll_run ORDER BY exit' | tr '\n' ' ')" 'new|0|7 stopped|75|0 ' '... both are written down'
for order in asc desc; do
	for when in before after; do
		fresh
		src "$(by $order),\"next\":\"link\""
		i=0
		while [ $((i += 1)) -le 6 ]; do
			scripted "[{\"at\":$(((i + 1) / 2)),\"kill\":\"$PWD/pid\",\"when\":\"$when\"}]"
			sh -c 'echo $$ >pid.new; mv pid.new pid; exec qpoll s.json' 2>/dev/null
			[ $? -eq 137 ] || break
		done
		scripted '[]'
		poll
		is "$(letters)" abcdefg "kill -9 $when the answer to each request, $order: $((i - 1)) kills"
	done
done
is "$(sql 'PRAGMA integrity_check')" ok 'the file is sound'
done_testing
