#!/bin/sh
# qbackfill: windows of history, each row once, whatever ends it in between; and commands for windows.
# shellcheck disable=SC2016	# what stands between single quotes is for another shell or perl
. "${0%/*}/lib.sh"
[ -x "$t/serve" ] || skip_all 't/serve is not built'
export Q_BOOT=b1:1000000

serve
fresh() { rm -f q.db*; qinit; }
# src NAME FILTER: a source file; FILTER changes the usual one
src() {
	jq -n --arg url "$url/items" --arg name "$1" '{name: $name, url: $url, query: {since: "{cursor}", until: "{to}", order: "asc", limit: "{size}"},
	    size: 3, items: "/items", id: "/id", cursor: "/updated_at", order: "asc", next: "link", start: "all", queue: "q",
	    insecure_http: true, retries: 0, max_wait: "0"} | '"${2-.}" >"$1.json"
}
# make N MS [TIE]: N rows i0, i1, ... from 2026-03-01 on, one each MS, or so many at once
make_rows() { perl -e '($n, $ms, $tie) = @ARGV; print "[", join(",", map { sprintf q({"id":"i%d","stamp":%d}), $_, 1772323200000 + $ms * int($_ / $tie) } 0 .. $n - 1), "]"' "$1" "$2" "${3-1}"; }
new() { ask "$url/_new" "$1"; ask "$url/_script" '[]'; seen=$(requests | wc -l); }
news() { requests | tail -n "+$((seen + 1))"; }	# requests since new
jobs() { sql "SELECT count(*) FROM q_job"; }
# What was added, as ID VERSION like /_rows
arrived() { sql "SELECT json_extract(CAST(body AS TEXT), '$.id') || ' ' || json_extract(CAST(body AS TEXT), '$.version') FROM q_body" | sort; }
served() { ask "$url/_rows" | sort; }
windows() { sql "SELECT group_concat(state || ' ' || n, ', ') FROM (SELECT state, count(*) n FROM q_window GROUP BY state)"; }
flag_of() { sql "SELECT coalesce(flag, '') FROM q_backfill"; }
asked() { news | wc -l; }
B=2026-03-01

# ---- usage ----

src s
exits 66 'no file' qbackfill --status s.json
fresh
seen=0
exits 66 'no source' qbackfill --status none.json
printf '{"name":"s"' >broken.json
exits 78 'a broken source' qbackfill --status broken.json
while IFS=@ read -r want args err; do
	# shellcheck disable=SC2086	# words
	exits "$want" "qbackfill $args" qbackfill $args
	is "$(cat out err)" "qbackfill: $err" '... says so'
done <<'END'
64@@no SOURCE, the file that describes what is asked; or --name with a command; see 'qbackfill --help'
64@s.json@no plan of 's' yet: it needs --from and --step; see 'qbackfill --help'
64@s.json x@too many operands: 'x'; a command goes with --name; see 'qbackfill --help'
64@s.json -- true@too many operands: '--'; a command goes with --name; see 'qbackfill --help'
64@--status s.json x@too many operands: 'x'; see 'qbackfill --help'
64@--status --drop s.json@--status and --drop exclude each other; see 'qbackfill --help'
64@--name n@--name: no command after '--'; see 'qbackfill --help'
64@--name n true@--name: no command after '--'; see 'qbackfill --help'
64@--name n --@--name: no command after '--'; see 'qbackfill --help'
64@--status --name n -- true@too many operands: 'true'; see 'qbackfill --help'
65@--name 12 --from 1 --to 2 --step 1 -- touch ran@bad queue name '12'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number
64@--from 2026-01-01 s.json@--from and --step go together, and --to with them; see 'qbackfill --help'
64@--name n --from 1 --step 1 -- touch ran@--to is needed with a command; see 'qbackfill --help'
64@--name n --from 1 --to 2 --step 1 --max-depth 3 -- touch ran@--reserve and --max-depth go with a SOURCE; see 'qbackfill --help'
64@--pause --from 1 --step 1 s.json@--pause goes without the options of a run; see 'qbackfill --help'
64@--plan --reserve 1 s.json@--plan goes without the options of a run; see 'qbackfill --help'
64@--status -v s.json@--status goes without the options of a run; see 'qbackfill --help'
64@-j s.json@-j goes with --plan and --status; see 'qbackfill --help'
64@--reserve -1 s.json@--reserve: '-1' is not a whole number from 0 to 1000000; see 'qbackfill --help'
64@--max-depth 0 s.json@--max-depth: '0' is not a whole number from 1 to 1000000000; see 'qbackfill --help'
64@--from noon --to 2026-01-01 --step 1d s.json@--from: 'noon' is not a time such as 2026-03-01T00:00:00Z; see 'qbackfill --help'
64@--from 2025 --to 2026-01-01 --step 1d s.json@--from: '2025' is not a time such as 2026-03-01T00:00:00Z; see 'qbackfill --help'
64@--from 1969-12-31 --to 2026-01-01 --step 1d s.json@--from: '1969-12-31' is before 1970; see 'qbackfill --help'
64@--from 2026-02-29 --to 2026-03-01 --step 1d s.json@--from: '2026-02-29' is not a time such as 2026-03-01T00:00:00Z; see 'qbackfill --help'
64@--from 2026-01-01 --to 2025-01-01 --step 1d s.json@--to is not after --from; see 'qbackfill --help'
64@--from 2026-01-01 --to 2026-01-02 --step 1 s.json@--step: '1' is not a duration such as 1d; see 'qbackfill --help'
64@--from 2026-01-01 --to 2026-01-02T03:46:40.001Z --step 1s s.json@--step: that makes more than 100000 windows; see 'qbackfill --help'
64@--name n --from 1 --to 2026-01-01 --step 1 -- touch ran@--to: '2026-01-01' is not a whole number from 0 to 2^53, as the other values are; see 'qbackfill --help'
64@--name n --from 2026-01-01 --to 5 --step 1d -- touch ran@--to: '5' is not a time such as 2026-03-01T00:00:00Z; see 'qbackfill --help'
64@--name n --from 0 --to 9007199254740993 --step 9007199254740992 -- touch ran@--to: '9007199254740993' is not a whole number from 0 to 2^53, as the other values are; see 'qbackfill --help'
64@--name n --from 0 --to 5 --step 0 -- touch ran@--step: '0' is not a whole number from 1 on; see 'qbackfill --help'
64@--name n --from 0 --to 5 --step 1d -- touch ran@--step: '1d' is not a whole number from 1 on; see 'qbackfill --help'
78@--from 2026-01-01 --step 1d s.json@s: qpoll has no cursor yet, where this would end; next: run qpoll first, or say --to
66@--status s.json@s: there is no plan; one is made with --from and --step
66@--drop --name n@n: there is no plan; one is made with --from and --step
66@--stop s.json@s: there is no plan; one is made with --from and --step
END
[ ! -e ran ]; ok $? 'no command ran'
is "$(sql 'SELECT count(*) FROM q_backfill') $(sql 'SELECT count(*) FROM q_hold') $(asked)" '0 0 0' '... no plan was made, none is held, nothing was asked'
while IFS=@ read -r filter err; do
	src bad "$filter"
	exits 78 "$filter" qbackfill --from $B --to 2026-03-02 --step 1d bad.json
	is "$(cat out err)" "qbackfill: bad$err" '... says so'
done <<'END'
del(.queue)@.json: "queue" is missing, where the items go
.order = "desc" | del(.query.until)@: nothing in "query" or "body" asks up to {to}, so each window would read all that is newer
.order = "any" | del(.query.until)@: nothing in "query" or "body" asks up to {to}, so each window would read all that is newer
.order = "opaque" | .next = "token:/t" | .query.token = "{token}" | del(.cursor, .start)@: only a list by time or by whole number can be cut into windows ("order", "cursor_type")
.cursor_type = "decimal"@: only a list by time or by whole number can be cut into windows ("order", "cursor_type")
END

# ---- commands ----

cat >each <<'END'
#!/bin/sh
echo "$Q_FROM $Q_TO"
[ ! -e "stop-$Q_FROM" ] || exit "$(cat "stop-$Q_FROM")"
END
chmod +x each
n() { exits "$1" "$2" qbackfill --name n --from 0 --to 10 --step 3 -- ./each; }
echo 75 >stop-6
n 75 'a command that asks to wait'
is "$(cat out)" '0 3
3 6
6 9' '... numbers, each window once'
is "$(cat err)" 'qbackfill: n: from 6 to 9: ./each: exit status 75' '... told'
is "$(windows)" 'doing 1, done 2, todo 1' '... kept'
is "$(sql 'SELECT count(*) FROM q_hold')" 0 '... and nobody holds it'
rm stop-6
n 0 'goes on'
is "$(cat out)" '6 9
9 10' '... where it was'
n 0 'the same again is done'
is "$(cat out err)" '' '... and does nothing'
exits 0 'another plan after it' qbackfill --name n --from 2026-03-28 --to 2026-03-30T00:00:00.5Z --step 1d --newest-first -- ./each
is "$(cat out)" '2026-03-30T00:00:00Z 2026-03-30T00:00:00.500Z
2026-03-29T00:00:00Z 2026-03-30T00:00:00Z
2026-03-28T00:00:00Z 2026-03-29T00:00:00Z' '... times, the last first'
exits 0 'to 2^53' qbackfill --name big --from 0 --to 9007199254740992 --step 9007199254740991 -- ./each
is "$(cat out)" '0 9007199254740991
9007199254740991 9007199254740992' '... no overflow'
qbackfill --drop --name n
for code in 126 127; do
	echo $code >stop-3
	n $code "a command that cannot run, $code"
	is "$(windows)" 'doing 1, done 3, todo 2' '... ends it, and costs nothing'
	qbackfill --drop --name n
done
exits 127 'no such command' qbackfill --name n --from 0 --to 10 --step 3 -- ./none
qbackfill --drop --name n
echo 3 >stop-3
n 65 'a command that fails'
is "$(cat err)" 'qbackfill: n: from 3 to 6: ./each: exit status 3
qbackfill: n: 1 windows failed; next: qbackfill --plan, then --retry-failed' '... told, the others done'
is "$(qbackfill --plan --name n)" '0	3	done	0	0	0	
3	6	failed	0	0	0	n: from 3 to 6: ./each: exit status 3
6	9	done	0	0	0	
9	10	done	0	0	0	' '... kept'
is "$(qbackfill --plan -j --name n | sed -n 2p)" '{"name":"n","from":"3","to":"6","state":"failed","pages":0,"items":0,"new":0,"note":"n: from 3 to 6: ./each: exit status 3"}' '... JSON'
is "$(qbackfill --status --name n)" 'n: 0 to 10: 3 windows done, 0 left, 1 failed; 0 items, 0 new, 0 pages' '... status'
is "$(qbackfill --status -j --name n)" '{"name":"n","from":"0","to":"10","left":0,"done":3,"failed":1,"pages":0,"items":0,"new":0,"flag":null}' '... JSON'
n 65 'it is not tried again by itself'
is "$(cat out)" '' '... not run'
rm stop-3
exits 0 '--retry-failed' qbackfill --name n --retry-failed -- ./each
is "$(cat out)" '3 6' '... runs it again'
exits 74 'output that nobody gets ends it at the first window' sh -c 'qbackfill --name full --from 0 --to 3 --step 1 -- echo fine >/dev/full'
said 'qbackfill: full: from 0 to 1: echo: standard output: No space left on device; it is not complete'
exits 0 '... and it is done again' qbackfill --name full -- echo fine
said "fine${_nl}fine${_nl}fine" 'with the others'
exits 65 'five that fail in a row' qbackfill --name five --from 0 --to 9 --step 1 -- sh -c 'exit 1'
is "$(sql "SELECT count(*) FROM q_window WHERE name = 'five' AND state = 'failed'")" 5 '... end it'
is "$(tail -n 1 err)" 'qbackfill: five: 5 windows failed one after the other; next: mend that, then qbackfill --retry-failed' '... told'
exits 75 '... for good' qbackfill --name five -- ./each
exits 0 '... until somebody says so' qbackfill --name five --retry-failed -- ./each
is "$(wc -l <out)" 9 '... all of them'
exits 75 'dropped meanwhile' qbackfill --name other --from 0 --to 4 --step 1 -- sh -c 'exec qbackfill --name other --drop'
is "$(cat err)" 'qbackfill: other: its plan was dropped' '... told'
exits 75 'stopped meanwhile' qbackfill --name other --from 0 --to 4 --step 1 -- sh -c 'echo $Q_FROM; exec qbackfill --name other --stop'
is "$(cat out err)" '0
qbackfill: other: it was stopped; next: qbackfill --resume, or --retry-failed' '... before the next window'
is "$(qbackfill --status --name other)" 'other: 0 to 4: 1 windows done, 3 left, 0 failed; 0 items, 0 new, 0 pages; asked to stop' '... status'
unchanged 78 'other bounds' qbackfill --name other --from 0 --to 5 --step 1 -- ./each
is "$(cat err)" 'qbackfill: other: there is a plan from 0 to 4 that is not done; next: qbackfill --status, or --drop' '... refused'
qbackfill --name s --from 0 --to 1 --step 1 -- false 2>err
unchanged 78 'a source where a command was' qbackfill s.json
is "$(cat out err)" 'qbackfill: s: the plan was made for a command; next: qbackfill --drop' '... refused'
qbackfill --drop --name s
exits 0 'resume' qbackfill --name other --resume
exits 0 '... and go on' qbackfill --name other -- ./each
is "$(cat out)" '1 2
2 3
3 4' '... with what is left'

# What ends it takes the command along; the next run begins with that window at once.
cat >slow <<'END'
#!/bin/sh
echo "$$ $Q_FROM" >>slow.log
[ -e fast ] || exec sleep 100
END
chmod +x slow
slow() { rm -f slow.log fast; qbackfill --name slow --from 0 --to 3 --step 1 -- ./slow >sout 2>serr & pid=$!; until_ok lines slow.log 1; cut -d' ' -f1 slow.log >pids; }
slow
exits 75 'two at once: the second waits for no one' qbackfill --name slow -- ./each
like "$(cat out err)" "^qbackfill: slow: another run is under way \(.*:$pid\)\$" '... told'
kill -STOP "$pid"
exits 75 '... nor for one that stands still' qbackfill --name slow -- ./each
kill -CONT "$pid"
kill -TERM "$pid"
exits 75 'TERM' wait "$pid"
is "$(cat serr)" 'qbackfill: slow: interrupted' '... told'
none_alive; ok $? '... the command is gone'
slow
kill -9 "$pid"
wait "$pid" 2>/dev/null
until_ok none_alive; ok $? 'kill -9 takes the command along'
: >fast
exits 0 '... and the next run begins at once' qbackfill --name slow -- ./slow
is "$(cut -d' ' -f2 slow.log | tr '\n' ' ')" '0 0 1 2 ' '... with that window'
slow_later() { rm -f slow.log fast; qbackfill --drop --name slow; slow; }
slow_later
exits 0 'who was too slow' env Q_BOOT=b1:9000000 qbackfill --name slow -- ./each
is "$(head -n 1 out)" '0 1' '... has lost the window to the next'
kill "$(cat pids)"
exits 76 '... and is told so' wait "$pid"
is "$(cat serr)" 'qbackfill: slow: the lease of the hold is over' '... in one line'
is "$(qbackfill --status --name slow)" 'slow: 0 to 3: 3 windows done, 0 left, 0 failed; 0 items, 0 new, 0 pages' '... and what the next did stands'

# ---- a source: windows up to the cursor of the poller ----

# meets NAME FILTER [MS [TIE]]: history by qbackfill, the rest by qpoll, which has begun in the middle; all of it once
meets() {
	fresh
	new "${5-null}"
	rows "$(make_rows 40 "${3-700}" "${4-1}")"
	src s "$2"
	qpoll --set-cursor "${6-2026-03-01T00:00:14Z}" s.json
	qbackfill --from $B --step 3s s.json >out 2>err && qpoll s.json >>out 2>>err
	is "$? $(cat out err)" '0 ' "$1"
	is "$(arrived)" "$(served)" '... each row once'
	case $(windows) in done*,* | [!d]*) ok 1 "... all windows" ;; esac
}
meets 'ascending' .
is "$(sql 'SELECT group_concat(DISTINCT priority) FROM q_job')" '7,5' '... history is less urgent'
is "$(sql "SELECT count(*) FROM q_job, q_body ON q_job.id = job WHERE event_ms <> 1772323200000 + 700 * CAST(substr(json_extract(CAST(body AS TEXT), '$.id'), 2) AS INTEGER)")" 0 '... with its own time'
is "$(sql 'SELECT min(start), max(stop) FROM q_window')" '1772323200000|1772323214000' '... up to the cursor'
meets 'without {to}' 'del(.query.until)'
most=$(asked)
[ "$most" -lt 60 ]; ok $? "... and without reading on ($most requests)"
meets 'the upper end is inclusive' . 1000 2 '{"upto":true}'
meets 'filter and values in whole seconds' '.cursor_format = "%Y-%m-%dT%H:%M:%SZ"' 300 1 '{"filter":1000}' 2026-03-01T00:00:10.500Z
meets 'a filter in minutes' '.granularity = "1m"' 700 1 '{"filter":60000}'
meets 'a filter that lags' '.granularity = "1s" | .shift = "2s"' 700
meets 'descending' '.order = "desc" | .query.order = "desc"'
meets 'in no order' '.order = "any" | .query.order = "any"'
meets 'ties of more than a page' . 4000 8
meets 'page numbers' '.next = "page" | .query.page = "{page}"' 700 2 '{"style":"page"}'

# Between whole milliseconds
fresh
new null
rows "[$(for i in 1 2 3 4 5 6; do printf '%s{"id":"i%d","stamp":1772323201234,"text":"{\\"id\\":\\"i%d\\",\\"updated_at\\":\\"2026-03-01T00:00:01.2345%dZ\\",\\"version\\":1}"}' "$([ $i = 1 ] || echo ,)" $i $i $i; done)]"
src s '.granularity = "1ms"'
qpoll --set-cursor 2026-03-01T00:00:01.23453Z s.json
exits 0 'a cursor between two milliseconds' qbackfill --from $B --step 1s s.json
is "$(cat out err)" '' '... silent'
exits 0 '... and qpoll' qpoll s.json
is "$(arrived)" "$(served)" '... all of both sides, each once'
is "$(sql 'SELECT max(stop) FROM q_window')" 1772323201235 '... where they meet'

# Whole numbers
fresh
new '{"stamp":"ms"}'
rows "$(perl -e 'print "[", join(",", map { sprintf q({"id":"i%d","stamp":%d}), $_, 5 * $_ } 0 .. 29), "]"')"
src s '.cursor_type = "int"'
exits 0 'numbers' qbackfill --from 10 --to 100 --step 25 s.json
is "$(arrived | wc -l) $(qbackfill --plan s.json | cut -f1,2,6 | tr '\t\n' '  ')" '18 10 35 5 35 60 5 60 85 5 85 100 3 ' '... from each to the next'
qpoll --set-cursor 9007199254740993 s.json
exits 78 'a cursor beyond 2^53' qbackfill --from 1 --step 9007199254740992 s.json
is "$(cat err)" 'qbackfill: s: the cursor of qpoll is larger than what windows can be counted to, 2^53; next: say --to' '... told'

# ---- kill -9 ----

run() { sh -c 'echo $$ >pid; exec qbackfill --from 2026-03-01 --to 2026-03-01T00:00:28Z --step 4s "$@"' sh "$@" s.json; }
for order in asc desc; do
	fresh
	new null
	rows "$(make_rows 40 700 2)"
	src s ".order = \"$order\" | .query.order = \"$order\" | .size = 2"
	killed=0
	for i in 1 2 3 4 5 6 7 8 9 10; do
		scripted "[{\"at\":$((1 + i % 2)),\"kill\":\"$PWD/pid\",\"when\":\"$([ $((i % 3)) = 0 ] && echo before || echo after)\"}]"
		run >out 2>&1
		[ $? = 137 ] && killed=$((killed + 1))
	done
	scripted '[]'
	is "$killed" 10 "$order: ten times killed"
	exits 0 '... done at last' run
	is "$(arrived)" "$(served)" '... each row once'
	news | grep -o 'until=[^&]*' >untils
	is "$(sort untils | cmp - untils 2>&1)" '' '... and no window is asked for again once it is done'
	is "$(windows)" 'done 7' '... all of them'
done

# ---- rows that move while they are read ----

for order in asc desc; do
	for size in 1 3; do
		fresh
		new null
		rows "$(make_rows 30 500 5)"
		src s ".order = \"$order\" | .query.order = \"$order\" | .size = $size"
		scripted "$(perl -e 'srand $ARGV[0]; print "[", join(",", map { sprintf q({"at":%d,"put":[{"id":"i%d","stamp":1772409600000}],"del":["i%d"]}), $_ * 2, rand 30, rand 30 } 1 .. 6), "]"' $size)"
		exits 0 "$order, pages of $size: rows move" qbackfill --from $B --to 2026-03-01T00:00:10Z --step 1s s.json
		arrived >got
		is "$(served | grep ' 1$' | comm -23 - got)" '' '... what stays is not lost'
	done
done

# ---- as many as the API gives ----

for status in 400 0; do
	fresh
	new "{\"cap\":10,\"cap_status\":$status}"
	rows "$(make_rows 41 700 1)"
	src s '.order = "desc" | .query.order = "desc" | .cap = 10'
	exits 0 "a cap, status $status" qbackfill --from $B --to 2026-03-02 --step 1d s.json
	is "$(arrived)" "$(served)" '... each row once'
	is "$(sql 'SELECT count(*) > 4, sum(state <> '"'done'"'), sum(fresh), min(start), max(stop) FROM q_window')" '1|0|41|1772323200000|1772409600000' '... in smaller windows'
done
is "$(sql 'SELECT count(*) FROM q_window a WHERE start <> 1772323200000 AND NOT EXISTS (SELECT 1 FROM q_window b WHERE b.stop = a.start)')" 0 '... without a gap'
rows "$(make_rows 24 3000 12)"
src s '.order = "desc" | .query.order = "desc" | .cap = 10 | .granularity = "1s"'
fresh
exits 65 'more at one time than the cap' qbackfill --from $B --to 2026-03-01T00:00:08Z --step 8s s.json
is "$(sql "SELECT group_concat(stop - start) FROM q_window WHERE state = 'failed'")" '1000,1000' '... fails in the smallest windows'
like "$(cat err)" 'as many items as the API gives \("cap"\), in a window that cannot be made smaller$' '... told'

# ---- the rate ----

fresh
new null
rows "$(make_rows 40 700 1)"
src s '.order = "desc" | .query.order = "desc" | .rate = "p"'
R="qbackfill --from $B --to 2026-03-01T00:00:28Z --step 28s"
exits 78 'no such rate' $R s.json
qset rate.p=1/h+6
before=$(asked)
exits 75 'half of the burst is left to others' $R s.json
like "$(cat err)" '^qbackfill: s: rate p lets nothing through for ' '... told'
is "$(($(asked) - before))" 3 '... so many requests'
exits 75 '--reserve 1' qbackfill --reserve 1 s.json
is "$(($(asked) - before)) $(windows)" '5 doing 1' '... two more; progress is kept'
qset rate.p=100/s
sqlite3 -cmd 'PRAGMA wal_autocheckpoint = 0' q.db "INSERT INTO q_hold VALUES('poll', 'p', 999999, 1060000, 1, 'h:1')"
exits 75 'a poller that waits comes first' qbackfill s.json
is "$(($(asked) - before))" 5 '... nothing is asked'
sqlite3 -cmd 'PRAGMA wal_autocheckpoint = 0' q.db "DELETE FROM q_hold WHERE kind = 'poll'"
scripted '[{"at":1,"mode":{"status":429,"headers":{"Retry-After":"40"}}}]'
exits 75 '429' env Q_BOOT=b1:1100000 qbackfill s.json
like "$(cat err)" '^qbackfill: s: limited: status 429 asks to wait 40s$' '... told'
is "$(windows)" 'doing 1' '... costs no window'
like "$(qrate -n p 2>&1; echo $?)" '^75$' '... and blocks all'
qrate --block 0 p
scripted '[{"at":2,"mode":{"status":429,"headers":{"Retry-After":"1"}}}]'
src s '.order = "desc" | .query.order = "desc" | .rate = "p" | .max_wait = "5s"'
exits 0 '... or is waited for' env -u Q_NOW -u Q_BOOT qbackfill s.json
is "$(arrived)" "$(served)" '... each row once'

# ---- from outside ----

src s '.order = "desc" | .query.order = "desc" | .size = 1'
start() { fresh; new '{"wait":30}'; rows "$(make_rows 40 700 1)"; $R "$@" s.json >wout 2>werr & pid=$!; until_ok more 3; }
more() { sleep 0.05; [ "$(asked)" -ge "$1" ]; }
start
exits 0 'pause' qbackfill --pause s.json
sleep 0.2
n=$(asked)
sleep 0.3
is "$(asked)" "$n" '... nothing more is asked'
is "$(qbackfill --status s.json | sed 's/.*;//')" ' asked to pause' '... status'
exits 0 'resume' qbackfill --resume s.json
until_ok more $((n + 2)); ok $? '... it goes on'
exits 0 'stop' qbackfill --stop s.json
exits 75 '... ends it' wait "$pid"
is "$(cat wout werr) $(windows)" 'qbackfill: s: it was stopped; next: qbackfill --resume, or --retry-failed doing 1' '... told, kept'
exits 75 '... for good' qbackfill s.json
qbackfill --resume s.json
n=$(jobs)
qbackfill s.json >wout 2>werr & pid=$!
until [ "$(jobs)" -gt "$n" ]; do sleep 0.02; done
kill -TERM "$pid"
exits 75 'TERM' wait "$pid"
is "$(cat wout werr)" 'qbackfill: s: interrupted' '... told'
is "$(jobs)" "$(($(asked)))" '... with the page that was asked for'
exits 0 'goes on' qbackfill s.json
is "$(arrived) $(asked)" "$(served) 80" '... no page twice but to see that none has moved'
start --max-depth 5
until_ok test "$(jobs)" -ge 0
sleep 0.4
n=$(jobs)
is "$n" 5 '--max-depth'
qcancel -q $(sql 'SELECT group_concat(id, " ") FROM q_job WHERE id <= 3')
until_ok more 7; ok $? '... goes on when they are fewer'
exits 0 'drop' qbackfill --drop s.json
exits 75 '... ends it' wait "$pid"
is "$(cat werr)" 'qbackfill: s: its plan was dropped' '... told'

# ---- what cannot be trusted ----

fresh
new null
rows "$(make_rows 20 1000 1)"
src s ".probe = \"$url/items?limit=1\""
R="qbackfill --from $B --to 2026-03-01T00:00:20Z --step 5s s.json"
scripted '[{"at":6,"to":99,"mode":{"auth":"A: b","blind":true}}]'
exits 77 'a credential that sees nothing any more' $R
like "$(cat err)" '^qbackfill: s: blind: the control query shows no item' '... told'
is "$(sql "SELECT count(*) FROM q_window WHERE state = 'done' AND items = 0")" 0 '... no window is taken for empty'
scripted '[]'
exits 0 '... and when it sees again' $R
is "$(arrived)" "$(served)" '... each row once'
exits 78 'another source file' sh -c "jq '.query.x = \"1\"' s.json >s2.json; qbackfill s2.json"
is "$(cat err)" 'qbackfill: s: the source file asks for other items than when the plan was made; next: qbackfill --drop' '... refused'
fresh
new null
perl -e 'print "[", join(",", map { sprintf q({"id":"i%d","stamp":%d,"more":"\"x\":\"%s\""}), $_, 1772323200000 + 1000 * $_, "y" x ($_ == 6 ? 1100000 : 1) } 0 .. 19), "]"' | ask "$url/_set" -
src s
exits 65 'an item that no job can hold' $R
like "$(windows) $(jobs)" '^done 3, failed 1 1[5-7]$' '... fails its window alone'
like "$(head -n 1 err)" '^qbackfill: s: item with id i6: the payload has [0-9]* bytes, the limit is ' '... told'
fresh
new '{"status":500}'
exits 69 'a server that fails' qbackfill --from $B --to 2026-03-01T00:00:20Z --step 1s s.json
is "$(windows) $(flag_of)" 'failed 5, todo 15 stop' '... five windows, then it ends'
rows "$(make_rows 20 1000 1)"
new null
exits 0 '--retry-failed' qbackfill --retry-failed s.json 
fresh
src s ".url = \"http://127.0.0.1:1/\""
exits 69 'no server' qbackfill --from $B --to 2026-03-01T00:00:20Z --step 1s s.json
is "$(windows)" 'todo 20' '... costs no window'

# ---- progress ----

fresh
exits 0 '-v' qbackfill -v --name n --from 0 --to 3 --step 1 -- true
like "$(cat err)" '^qbackfill: n: 0/3 windows, 0 items, 0 new, 0 requests, 0.0/s, [?] left$' '... a line at the start'
is "$(wc -l <err)" 1 '... and no more for a minute'
if command -v script >/dev/null; then
	script_out=$(COLUMNS=60 command script -qec 'qbackfill --name m --from 0 --to 3 --step 1 -- sleep 0.3' /dev/null </dev/null)
	like "$(printf '%s' "$script_out" | tr '\r\033' '\n|')" '^.\[Kqbackfill: m: 1/3 windows' 'a terminal: it is written over'
	is "$(printf '%s' "$script_out" | tr '\r' '\n' | awk 'length > 64')" '' '... as wide as that is'
fi

# ---- an ill file ----

fresh
mkfifo hold
sqlite3 -cmd 'PRAGMA wal_autocheckpoint = 0' q.db <hold >held & pid=$!
exec 3>hold
echo "BEGIN IMMEDIATE; SELECT 'held';" >&3
until_ok lines held 1
exits 75 'a busy file' env Q_BUSY_TIMEOUT=100ms qbackfill --name n --from 0 --to 3 --step 1 -- ./each
is "$(cat out)" '' '... runs nothing'
exec 3>&-
wait "$pid"
new null
rows "$(make_rows 20 1000 1)"
src s
for n in 60; do
	fresh
	$R >/dev/null 2>&1
	qbackfill --drop s.json
	(ulimit -f $(($(stat -c %s q.db) / 512 + n)); exec $R) >out 2>err
	like "$? $(jobs)" '^(74|0) 20$' "a file that cannot grow by more than $n blocks"
done
done_testing
