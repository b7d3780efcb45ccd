#!/bin/sh
# qpoll: values that come late, early, or not at all, in any form, and the unit of a filter.
# shellcheck disable=SC2086	# members and words are lists
. "${0%/*}/lib.sh"
[ -x "$t/serve" ] || skip_all 't/serve is not built'
. "$t/qpoll.sh"

# ---- late, early, missing ----

fresh
new '{}'
rows "$ROWS"
src "$ASC,\"lookback\":\"10s\""
poll
is "$(asked poll)" '0 6' 'lookback: the last 10 s are asked for again'
ask "$url/_put" '[{"id":"l","stamp":1772323199000},{"id":"m","stamp":1772323201500}]'
poll
is "$(letters)" abcdefglm 'a row that comes late with an older time'
is "$(runs) $(sql 'SELECT late FROM q_poll_run ORDER BY id DESC LIMIT 1') $(cursor)" 'new 0 200 2 2026-03-01T00:00:05Z' '... is counted as late, and the cursor stays'
is "$(asked poll | cut -d' ' -f1) $(letters)" '0 abcdefglm' '... once'
ask "$url/_put" '[{"id":"o","stamp":1772323100000}]'
src "$ASC,\"lookback\":\"1h\""
exits 0 'a longer lookback' poll
is "$(letters)" abcdefglm '... asks no further back than is remembered'
ask "$url/_put" '[{"id":"p","stamp":1772323300000}]'
poll
is "$(sql 'SELECT count(*) FROM q_seen')$(letters)" 10abcdefglmp '... and grows from there'

fresh
rows '[{"id":"a","stamp":1780401599000},{"id":"b","stamp":1780402199000},{"id":"f","stamp":1780488000000}]'
src "$ASC"
exits 0 'a row of tomorrow' poll
is "$(letters) $(cursor) $(sql 'SELECT future FROM q_poll_run')" 'abf 2026-06-02T12:09:59Z 1' '... arrives, and does not move the cursor'
ask "$url/_put" '[{"id":"c","stamp":1780402200000}]'
exits 0 '... what comes before it' poll
is "$(letters) $(cursor)" 'abcf 2026-06-02T12:10:00Z' '... is not lost'
export Q_NOW=2027-06-02T12:00:00Z
exits 0 'a wrong clock here' poll
is "$(letters) $(cursor)" 'abcf 2026-06-02T12:10:00Z' '... changes nothing'
Q_NOW=2026-06-02T12:00:00Z
mode '{"skew":86400}'
exits 0 'when its time has come' poll
is "$(letters) $(cursor)" 'abcf 2026-06-03T12:00:00Z' '... it does'

fresh
new '{}'
rows '[{"id":"a","stamp":1772323200000},{"text":"{\"id\":\"n\",\"updated_at\":null}","stamp":1772323201000},{"text":"{\"id\":\"m\"}","stamp":1772323202000},{"id":"z","stamp":1772323203000}]'
src "$ASC"
exits 65 'no cursor' poll
is "$(cat err)" "qpoll: s: $url/items: item 2, id n, has no cursor at \"/updated_at\"" '... is said'
is "$(cursor) $(letters)" '- ' '... and nothing is stored'
src "$ASC,\"missing_cursor\":\"emit\""
exits 0 '... or accepted' poll
is "$(letters) $(cursor)" 'amnz 2026-03-01T00:00:03Z' '... then it arrives'
exits 0 '... and again' poll
is "$(letters)" amnz '... once'
for value in '' '"updated_at":""' '"updated_at":{}' '"updated_at":[1]' '"updated_at":true' '"updated_at":1772323200' '"updated_at":"2026-03-01T00:00:00"' '"updated_at":"\\u0000"'; do
	fresh
	new "{\"body\":$(printf '{"items":[{"id":"a"%s}]}' "${value:+,$value}" | sed 's/.*/&/')}"
	src "$ASC"
	unchanged_items() { is "$(cursor) $(letters) $(runs)" '-  failed 65 200' '... stores nothing'; }
	exits 65 "a cursor that is none: $value" poll
	unchanged_items
done
fresh
new '{"stamp":"epoch"}'
rows '[{"id":"a","stamp":0},{"id":"b","stamp":1000}]'
src '"cursor":"/updated_at","cursor_type":"epoch","start":"0","query":{"since":"{cursor}"},"next":"none"'
exits 0 '0 is a value' poll
is "$(letters) $(cursor) $(last)" 'ab 1 /items?since=0' '... and asked with'

# An edit in the same minute, where times have minutes: a new version is a new item.
fresh
new '{"shown":60000,"filter":60000}'
rows '[{"id":"a","stamp":1772323201000},{"id":"b","stamp":1772323202000}]'
src '"cursor":"/updated_at","start":"all","query":{"since":"{cursor}","order":"asc","limit":9},"size":9,"next":"link","granularity":"1m"'
poll
ask "$url/_put" '[{"id":"a","stamp":1772323203000},{"id":"c","stamp":1772323259000}]'
exits 0 'an edit and a row within the unit of time' poll
is "$(letters) $(cursor)" 'aabc 2026-03-01T00:00:00Z' '... arrive'
new '{"filter":60000}'
ask "$url/_put" '[{"id":"d","stamp":1772323275000}]'
exits 0 'a filter of minutes' poll
ask "$url/_put" '[{"id":"e","stamp":1772323270000}]'
exits 0 '... shows what lies in its minute' poll
is "$(letters | tr -d abc) $(last)" 'de /items?since=2026-03-01T00%3A01%3A00Z&order=asc&limit=9' '... so it is asked with the beginning of the minute'

# What is remembered has a limit, which does not stand in the way of what helps.
fresh
new '{}'
rows "$ROWS"
src "$ASC,\"lookback\":\"1h\",\"max_seen\":5"
exits 0 'more items than max_seen' poll
exits 65 '... are too many for the next run' poll
is "$(cat err)" 'qpoll: s: more than 5 items are remembered as seen; next: raise "max_seen", or lower "lookback"' '... which says what to do'
is "$(runs) $(cursor)" 'failed 65 - 2026-03-01T00:00:05Z' '... and is written down'
exits 0 '... --status' poll --status
exits 0 '... --set-cursor' poll --set-cursor 2026-03-01T00:00:04Z
exits 0 '... --reset' poll --reset
is "$(sql 'SELECT count(*) FROM q_seen')" 0 '... forgets them'

# Other values, in the query as they came or as the format says.
values() {	# NAME STAMP MEMBERS WANT-QUERY WANT-CURSOR
	fresh
	new "{$2}"
	rows "$ROWS"
	src "\"cursor\":\"/updated_at\",\"start\":\"all\",\"query\":{\"since\":\"{cursor}\",\"limit\":3},\"size\":3,\"next\":\"link\",$3"
	exits 0 "$1" poll
	is "$(letters) $(cursor)" "abcdefg $5" '... all'
	poll
	is "$(last | sed 's/.*since=\([^&]*\).*/\1/')" "$4" '... what is asked with'
}
values 'ms' '"stamp":"ms"' '"cursor_type":"epoch_ms"' 1772323205000 1772323205000
values 'a decimal' '"stamp":"decimal"' '"cursor_type":"decimal"' 1772323205.000000 1772323205.000000
values 'whole numbers' '"stamp":"ms"' '"cursor_type":"int"' 1772323205000 1772323205000
values 'a zone, ms' '"zone":"+05:30","digits":3' '"shift":"1s"' 2026-03-01T00%3A00%3A04Z 2026-03-01T05:30:05.000+05:30
values 'as it came, + escaped' '"zone":"+02:00"' '"priority":5' 2026-03-01T02%3A00%3A05%2B02%3A00 2026-03-01T02:00:05+02:00
values 'no zone, and one set' '"zone":""' '"zone":"UTC"' 2026-03-01T00%3A00%3A05 2026-03-01T00:00:05
values 'days in the query' '' '"cursor_format":"%Y-%m-%dT00:00:00Z"' 2026-03-01T00%3A00%3A00Z 2026-03-01T00:00:05Z
done_testing
