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
new() { ask "$url/_new" "$1"; ask "$url/_script" '[]'; }
jobs() { sql "SELECT count(*) FROM q_job"; }
# What was added, as ID VERSION like /_rows
arrived() { sql "SELECT CAST(body AS TEXT) FROM q_body" | jq -r '"\(.id) \(.version)"' | sort; }
served() { ask "$url/_rows" | sort; }
windows() { sql "SELECT group_concat(state || ' ' || n, ', ') FROM (SELECT state, count(*) n FROM q_window GROUP BY state)"; }
flag_of() { sql "SELECT coalesce(flag, '') FROM q_backfill"; }
asked() { requests | wc -l; }
B=2026-03-01

# ---- usage ----

src s
exits 66 'no file' qbackfill --status s.json
fresh
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
64@--step 1d s.json@--from and --step go together, and --to with them; see 'qbackfill --help'
64@--to 2026-01-01 s.json@--from and --step go together, and --to with them; see 'qbackfill --help'
64@--name n --from 1 --step 1 -- touch ran@--to is needed with a command; see 'qbackfill --help'
64@--name n --from 1 --to 2 --step 1 --max-depth 3 -- touch ran@--reserve and --max-depth go with a SOURCE; see 'qbackfill --help'
64@--pause --from 1 --step 1 s.json@--pause goes without the options of a run; see 'qbackfill --help'
64@--plan --reserve 1 s.json@--plan goes without the options of a run; see 'qbackfill --help'
64@--status -v s.json@--status goes without the options of a run; see 'qbackfill --help'
64@-j s.json@-j goes with --plan and --status; see 'qbackfill --help'
64@--reserve -1 s.json@--reserve: '-1' is not a whole number from 0 to 1000000; see 'qbackfill --help'
64@--reserve x s.json@--reserve: 'x' is not a whole number from 0 to 1000000; see 'qbackfill --help'
64@--max-depth 0 s.json@--max-depth: '0' is not a whole number from 1 to 1000000000; see 'qbackfill --help'
64@--from noon --to 2026-01-01 --step 1d s.json@--from: 'noon' is not a time such as 2026-03-01T00:00:00Z; see 'qbackfill --help'
64@--from 2025 --to 2026-01-01 --step 1d s.json@--from: '2025' is not a time such as 2026-03-01T00:00:00Z; see 'qbackfill --help'
64@--from 1969-12-31 --to 2026-01-01 --step 1d s.json@--from: '1969-12-31' is before 1970; see 'qbackfill --help'
64@--from 2026-02-29 --to 2026-03-01 --step 1d s.json@--from: '2026-02-29' is not a time such as 2026-03-01T00:00:00Z; see 'qbackfill --help'
64@--from 2026-01-01 --to 2025-01-01 --step 1d s.json@--to is not after --from; see 'qbackfill --help'
64@--from 2026-01-01 --to 2026-01-01 --step 1d s.json@--to is not after --from; see 'qbackfill --help'
64@--from 2026-01-01 --to 2026-01-02 --step 1 s.json@--step: '1' is not a duration such as 1d; see 'qbackfill --help'
64@--from 2026-01-01 --to 2026-01-02 --step 0 s.json@--step: '0' is not a duration such as 1d; see 'qbackfill --help'
64@--from 2026-01-01 --to 2026-01-02T03:46:40.001Z --step 1s s.json@--step: that makes more than 100000 windows; see 'qbackfill --help'
64@--name n --from 1 --to 2026-01-01 --step 1 -- touch ran@--to: '2026-01-01' is not a whole number from 0 to 2^53, as the other values are; see 'qbackfill --help'
64@--name n --from 2026-01-01 --to 5 --step 1d -- touch ran@--to: '5' is not a time such as 2026-03-01T00:00:00Z; see 'qbackfill --help'
64@--name n --from 0 --to 9007199254740993 --step 9007199254740992 -- touch ran@--to: '9007199254740993' is not a whole number from 0 to 2^53, as the other values are; see 'qbackfill --help'
64@--name n --from 0 --to 5 --step 0 -- touch ran@--step: '0' is not a whole number from 1 on; see 'qbackfill --help'
64@--name n --from 0 --to 5 --step 1d -- touch ran@--step: '1d' is not a whole number from 1 on; see 'qbackfill --help'
78@--from 2026-01-01 --step 1d s.json@s: qpoll has no cursor yet, where this would end; next: run qpoll first, or say --to
66@--status s.json@s: there is no plan; one is made with --from and --step
66@--plan s.json@s: there is no plan; one is made with --from and --step
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

times >&2
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
kill -TERM "$pid"; wait "$pid"

times >&2
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
meets 'descending ties' '.order = "desc" | .query.order = "desc"' 4000 8
meets 'stable pointers' '.stable = true' 700 1 '{"pointer":"key"}'
meets 'page numbers' '.next = "page" | .query.page = "{page}"' 700 2 '{"style":"page"}'
meets 'offsets' '.next = "offset" | .query.offset = "{offset}"' 4000 8 '{"style":"offset"}'
meets 'numbers since 1970' '.cursor_type = "epoch"' 1000 2 '{"stamp":"epoch"}' 1772323214
meets 'ms since 1970' '.cursor_type = "epoch_ms"' 700 2 '{"stamp":"ms"}' 1772323214000

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

times >&2
done_testing
