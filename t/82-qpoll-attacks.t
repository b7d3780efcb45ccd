#!/bin/sh
# qpoll: what was found by attack: walks that never ended, or that went on blindly; edits that looked like none; blow-ups.
# shellcheck disable=SC2086	# members and words are lists
. "${0%/*}/lib.sh"
[ -x "$t/serve" ] || skip_all 't/serve is not built'
. "$t/qpoll.sh"

# ---- walks that are longer than a run may be ----

new '{}'
rows "$ROWS"
for order in any desc; do
	for most in 1 2; do
		fresh
		src "$(by $order),\"next\":\"link\",\"max_pages\":$most"
		i=0
		poll
		until [ "$(cursor)" = 2026-03-01T00:00:05Z ] || [ $((i += 1)) -gt 30 ]; do poll; done
		is "$(letters) $(cursor) $(sql 'SELECT walk FROM q_poll')" 'abcdefg 2026-03-01T00:00:05Z ' "$order, max_pages $most, three pages: it ends"
	done
done

# ---- a question that was changed in the middle ----

fresh
src "$(by desc),\"next\":\"link\",\"lookback\":\"10s\""
poll
src "$(by desc),\"next\":\"link\",\"lookback\":\"10s\",\"max_pages\":1"
poll
src "$(by desc),\"next\":\"link\""
exits 0 'lookback made shorter in the middle of a walk' poll
is "$(asked poll) $(letters)" '0 1 abcdefg' '... goes on'

# ---- pointers that are always void ----

fresh
src "$(by desc),\"next\":\"link\",\"max_pages\":20"
to=$(i=0; while [ $((i += 2)) -le 20 ]; do printf '{"at":%d,"mode":{"status":410}},' $i; done)
scripted "[${to%,}]"
is "$(asked poll)" '75 4' 'a pointer that is void each time: later'
is "$(cat err)" "qpoll: s: $url/items: the pointer to the next page became void, again; the next run begins anew" '... is said'
is "$(letters) $(cursor)" 'efg -' '... and the cursor stays'
scripted '[]'
is "$(asked poll | cut -d' ' -f1) $(letters) $(cursor)" '0 abcdefg 2026-03-01T00:00:05Z' '... until it is mended'

# ---- the future ----

rows '[{"id":"x","stamp":1812323205000},{"id":"y","stamp":1812323205000},{"id":"z","stamp":1812323205000},{"id":"a","stamp":1772323205000}]'
fresh
src "$(by desc),\"next\":\"link\""
poll
is "$(letters) $(cursor)" 'axyz 2026-03-01T00:00:05Z' 'a first page that lies in the future as a whole: the cursor moves below it'

# It becomes the present between two pages, and a row that leaves the first one pulls another there.
rows '[{"id":"a","stamp":1},{"id":"b","stamp":1000000},{"id":"c","stamp":1001000},{"id":"d","stamp":1002000},{"id":"e","stamp":1003000},{"id":"f","stamp":1004000}]'
fresh
src "$ASC"
scripted '[{"at":1,"mode":{"headers":{"Date":"Thu, 01 Jan 1970 00:01:00 GMT"},"nodate":true}},{"at":2,"del":["b"]}]'
poll
scripted '[]'
poll
is "$(letters) $(cursor)" 'abcdef 1970-01-01T00:16:44Z' '... it becomes the present while pages shift: nothing is missed'

# ---- bytes ----

fresh
src '"cursor":"/updated_at","start":"all","order":"any","query":{"a":"b"},"next":"none"'
new "{\"file\":\"$PWD/body\"}"
for text in '\\n\351' '\\n\350' '\\ud800' '\\ud801' '\\ufffd'; do
	printf "{\"items\":[{\"id\":\"a\",\"updated_at\":\"2026-03-01T00:00:00Z\",\"t\":\"$text\"}]}" >body
	poll
done
is "$(sql 'SELECT count(*) FROM q_job')" 5 'texts that are no Unicode: each edit is one'
fresh
perl -e 'print "{\"items\":[", join(",", map { "{\"id\":" . ($_ % 100000) . ",\"updated_at\":\"2026-03-01T00:00:00Z\"}" } 1 .. 100001), "]}"' >body
new "{\"file\":\"$PWD/body\"}"
exits 0 '100,001 items on a page, one of them twice' timeout 15 qpoll -n s.json
is "$(wc -l <out | tr -d ' ')" 100000 '... each once'

# ---- --check, -n ----

new '{}'
rows "$ROWS"
fresh
src "$ASC"
poll
src "$ASC,\"granularity\":\"1s\""
unchanged 0 '--check of a file that was changed' poll --check
src "$ASC,\"whoami\":\"$url/who\""
mode '{"paths":{"/who":{"status":403}}}'
unchanged 77 '--check of a credential that is refused' poll --check
new '{"style":"sync","shape":{"items":"{items}","t":"{token}","final":"{final}"}}'
fresh
src '"order":"opaque","query":{"sync":"{sync}","token":"{token}","limit":3},"next":"token:/t","final":"token:/final"'
poll
unchanged 0 '--check with a closing token' poll --check
is "$(last)" "/items?sync=$(cursor)&limit=3" '... asks as a run does'

# ---- a clock that was wrong ----

new '{}'
fresh
src "$ASC,\"probe\":\"$url/items?order=desc\""
Q_NOW=2036-01-01T00:00:00Z qpoll s.json
Q_NOW=2036-01-01T00:00:00Z qpoll s.json
is "$(asked poll)" '0 2' 'the control query was asked in ten years: it is asked today'

# ---- a queue file that somebody changed ----

fresh
src "$ASC"
poll
sqlite3 "$Q_DB" 'ALTER TABLE q_poll_run RENAME COLUMN note TO notes'
exits 78 'a statement that fails twice is no crash' poll
like "$(cat err)" 'the run is not recorded: .*no column named note' '... and is said'
done_testing
