#!/bin/sh
# What must not look like success: a credential that sees nothing, tokens that lead round in a circle, a command that fails.
. "${0%/*}/lib.sh"
[ -x "$t/serve" ] || skip_all 't/serve is not built'
serve
qinit
runs() { qpoll --history -j "$1" | jq -r "$2"; }

rows '[{"id":"a","stamp":1772323200000},{"id":"b","stamp":1772323201000},{"id":"c","stamp":1772323202000}]'
cat >a.json <<END
{"name": "a", "url": "$url/items", "insecure_http": true, "query": {"since": "{cursor}"}, "probe": "$url/probe",
 "items": "/items", "id": "/id", "cursor": "/updated_at", "next": "link", "start": "all", "queue": "q"}
END
exits 0 'items come' qpoll a.json
mode '{"paths": {"/probe": {"body": {"items": []}}}}'
for i in 1 2 3; do
	exits 77 "run $i: the control query shows nothing" qpoll a.json
	like "$(cat err)" '^qpoll: .*blind: the control query shows no item at all' '... it says so'
done
is "$(runs a.json .exit | tr '\n' ' ')" '77 77 77 0 ' '... each run is on record'
is "$(qpoll --status -j a.json | jq -c '[.cursor, .outcome, .failures]')" '["2026-03-01T00:00:02Z","failed",3]' '... and the cursor stays'

ask "$url/_new" '{"style": "token", "loop": 2, "shape": {"items": "{items}", "next": "{token}"}}'
cat >o.json <<END
{"name": "o", "url": "$url/items", "insecure_http": true, "query": {"limit": "{size}", "token": "{token}"}, "size": 1,
 "items": "/items", "id": "/id", "order": "opaque", "next": "token:/next", "queue": "o"}
END
exits 65 'opaque tokens that lead round in a circle' qpoll o.json
like "$(cat err)" '^qpoll: o: .*: the pages lead round in a circle: page [0-9]+ of this walk leads back to page [0-9]+$' '... is told'

ask "$url/_new" '{}'
sed 's/"name": "a"/"name": "c"/; s/"probe": "[^"]*",//' a.json >c.json
exits 3 'a command that fails' qpoll c.json -- sh -c 'echo first >&2; echo the disk is full >&2; exit 3'
is "$(cat err)" 'qpoll: c: sh: exit status 3: the disk is full; the cursor stays' '... and what it said'
is "$(runs c.json '"\(.exit) \(.items) \(.new) \(.after)"')" '3 0 0 null' '... what was not stored is not counted'
exits 0 'then it works' qpoll c.json -- sh -c 'cat >got'
is "$(jq -r .id got | tr '\n' ' ')" 'a b c ' '... and gets all'
is "$(runs c.json '"\(.exit) \(.items) \(.new) \(.after)"' | head -n 1)" '0 3 3 2026-03-01T00:00:02Z' '... which is counted'

echo '{"name": "l", "url": "https://127.0.0.1/", "items": "", "id": "/id", "order": "any", "next": "none", "start": "newest", "queue": "l"}' >l.json
exits 78 'the newest, with no cursor to tell' qpoll l.json
is "$(cat err)" 'qpoll: l.json:1: "start": newest: only a "cursor" says which is the newest' '... is refused'
done_testing
