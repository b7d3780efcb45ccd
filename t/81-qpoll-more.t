#!/bin/sh
# qpoll: what only the body tells, whose credential it is, and a closing token beside those of the pages.
. "${0%/*}/lib.sh"
[ -x "$t/serve" ] || skip_all 't/serve is not built'
serve
qinit
src() { echo "{\"name\":\"s\",\"url\":\"$url/items\",\"insecure_http\":true,\"items\":\"/items\",\"id\":\"/id\",\"queue\":\"q\",$1}" >s.json; }
asc='"query":{"since":"{cursor}","order":"asc","limit":3},"cursor":"/updated_at","order":"asc","next":"link","start":"all"'
rows '[{"id":"a","stamp":1777600000000},{"id":"b","stamp":1777600001000},{"id":"c","stamp":1777600002000},{"id":"d","stamp":1777600003000}]' >/dev/null

src "$asc,\"limited_text\":\"secondary rate limit\",\"max_wait\":\"1s\""
mode '{"status":403,"body":{"message":"You have exceeded a secondary rate limit"}}' >/dev/null
exits 75 'a limit that only words tell' qpoll s.json
is "$(cat err)" 'qpoll: s: limited: status 403 asks to wait 1m' '... is one'
mode '{"status":403,"body":{"message":"no such right"}}' >/dev/null
exits 77 'other words' qpoll s.json
mode '{"status":200,"body":{"items":[],"note":"secondary rate limit"}}' >/dev/null
exits 0 'the same words in an answer that is none' qpoll s.json

src "$asc,\"denied\":{\"/error\":\"invalid_auth\"},\"auth\":{\"credential\":\"partner\"}"
mode '{"status":null,"body":{"ok":false,"error":"invalid_auth"}}' >/dev/null
exits 77 'a refusal that only the body tells' qpoll s.json
is "$(cat err)" 'qpoll: s: credentials refused: {"ok":false,"error":"invalid_auth"}' '... is one'
qset credential.partner.expires=2026-05-31 credential.partner.owner=ana
exits 77 'with a credential that qset knows' qpoll s.json
is "$(cat err)" 'qpoll: s: credentials refused: {"ok":false,"error":"invalid_auth"}; credential partner: expires 2026-05-31, owner ana' '... it is told'
is "$(sql 'SELECT count(*) FROM q_job; SELECT cursor FROM q_poll; SELECT outcome, exit FROM q_poll_run WHERE id = 5')" "0

failed|77" '... and nothing moved'

# ---- a closing token of its own ----

mode '{"status":null,"body":null,"style":"sync","shape":{"items":"{items}","t":"{token}","f":"{final}"}}' >/dev/null
src '"order":"opaque","query":{"sync":"{sync}","token":"{token}","limit":3},"next":"token:/t","final":"token:/f"'
qpoll --reset s.json
ask "$url/_new" '{"style":"sync","shape":{"items":"{items}","t":"{token}","f":"{final}"}}' >/dev/null
asked() { requests | cut -f 4 | tail -n "$1" | tr '\n' ' '; }
exits 0 'a first run' qpoll s.json
is "$(asked 2)" '/items?limit=3 /items?token=f3&limit=3 ' '... without it'
is "$(sql 'SELECT cursor, walk FROM q_poll; SELECT count(*) FROM q_job')" 'q4|
4' '... keeps it'
ask "$url/_put" '[{"id":"e","stamp":1777600004000},{"id":"f","stamp":1777600004000},{"id":"g","stamp":1777600004000},{"id":"h","stamp":1777600004000}]' >/dev/null
exits 0 'the next' qpoll s.json
is "$(asked 2)" '/items?sync=q4&limit=3 /items?sync=q4&token=q7&limit=3 ' '... sends it with every page'
is "$(sql 'SELECT cursor FROM q_poll; SELECT count(*) FROM q_job')" 'q8
8' '... and keeps the new one'
ask "$url/_put" '[{"id":"i","stamp":1777600004000},{"id":"j","stamp":1777600004000},{"id":"k","stamp":1777600004000},{"id":"l","stamp":1777600004000}]' >/dev/null
src '"order":"opaque","query":{"sync":"{sync}","token":"{token}","limit":3},"next":"token:/t","final":"token:/f","max_pages":1'
exits 0 'a run that ends half way' qpoll s.json
is "$(sql 'SELECT cursor, walk FROM q_poll')" 'q8|{"pointer":"q11"}' '... keeps the old one, and its place'
exits 0 'the one after it' qpoll s.json
is "$(asked 1)" '/items?sync=q8&token=q11&limit=3 ' '... goes on there'
is "$(sql 'SELECT cursor, walk FROM q_poll; SELECT count(*), count(DISTINCT key) FROM q_job')" 'q12|
12|12' '... to the end'
mode '{"void":100}' >/dev/null
exits 78 'a void token' qpoll s.json
like "$(cat err)" 'the token is void \(status 410\), the API wants a new beginning; next: qpoll --reset$' '... says what to do'
src '"order":"opaque","query":{"sync":"{sync}","token":"{token}","limit":3},"next":"token:/t"'
exits 78 '{sync} without a closing token' qpoll s.json
like "$(cat err)" '\{sync\} is the closing token, which "final": "token:/POINTER" gives$' '... says so'

# ---- signals while a command runs ----

rm -f q.db*
qinit
ask "$url/_new" '{}' >/dev/null
rows '[{"id":"a","stamp":1777600000000},{"id":"b","stamp":1777600001000}]' >/dev/null
src "$asc"
ended() { sql 'SELECT cursor, walk FROM q_poll; SELECT outcome, exit FROM q_poll_run'; }
qpoll s.json -- sh -c 'cat >got; touch begun; exec sleep 60' 2>err & pid=$!
until_ok test -e begun
kill $pid
wait $pid
is "$?" 75 'TERM ends the command'
is "$(ended)" '|
stopped|75' '... and the cursor stays'
rm begun
qpoll s.json -- sh -c 'trap "" TERM; cat >got; touch begun; while :; do sleep 0.1; done' 2>err & pid=$!
until_ok test -e begun
kill $pid
kill $pid
sleep 0.1
kill $pid
wait $pid
is "$?" 75 'one that ignores it is killed by the next'
rm begun
qpoll s.json -- sh -c 'trap "exit 0" TERM; cat >got; touch begun; while :; do sleep 0.1; done' 2>err & pid=$!
until_ok test -e begun
kill $pid
wait $pid
is "$? $(sql 'SELECT cursor FROM q_poll')" '0 2026-05-01T01:46:41Z' 'one that ends well has its page'

# ---- numbers that no integer holds ----

rows '[]' >/dev/null
src '"body":{"since":"{#cursor}","order":"asc"},"cursor":"/updated_at","cursor_type":"int","order":"asc","next":"none","start":"123456789012345678901234"'
sed -i 's/"name":"s"/"name":"n"/' s.json
mode '{"unfiltered":true}' >/dev/null
exits 0 'a cursor of 24 digits in a body' qpoll s.json
like "$(requests | tail -n 1)" '"since": *"123456789012345678901234"' '... is sent all the same'
mode '{"unfiltered":null}' >/dev/null

# ---- a run that cannot begin ----

rm -f q.db*
qinit
ask "$url/_new" '{}' >/dev/null
src "$asc,\"auth\":{\"bearer_file\":\"token\"}"
exits 78 'no secret' qpoll s.json
is "$(cat err)" 'qpoll: s.json:1: "bearer_file": token: No such file or directory' '... is told'
is "$(sql 'SELECT outcome, exit, note, before, after FROM q_poll_run; SELECT cursor IS NULL FROM q_poll')" \
    'failed|78|s.json:1: "bearer_file": token: No such file or directory||
1' '... and on record'
echo secret >token
chmod 644 token
exits 77 'one that others can read' qpoll s.json
is "$(sql 'SELECT exit FROM q_poll_run ORDER BY id' | tr '\n' ' ')" '78 77 ' '... likewise'
chmod 600 token
rows '[{"id":"a","stamp":1777600000000}]' >/dev/null
exits 0 'mended' qpoll s.json
is "$(sql 'SELECT cursor FROM q_poll; SELECT count(*) FROM q_job')" '2026-05-01T01:46:40Z
1' '... it begins'
src "$asc,\"itms\":\"/items\""
exits 78 'an unknown key' qpoll s.json
is "$(sql 'SELECT exit FROM q_poll_run ORDER BY id' | tr '\n' ' ')" '78 77 0 78 ' '... is on record'
is "$(sql 'SELECT cursor FROM q_poll')" '2026-05-01T01:46:40Z' '... and the cursor stays'

# ---- looking first, and beginning anew ----

rm -f q.db*
qinit
ask "$url/_new" '{}' >/dev/null
rows '[{"id":"a","stamp":1777600000000},{"id":"b","stamp":1777600001000}]' >/dev/null
src '"query":{"from":"{cursor}","order":"asc"},"cursor":"/updated_at","order":"asc","next":"link","start":"2026-05-01T01:46:41Z"'
exits 65 'a filter by another name' qpoll --check s.json
like "$(cat err)" 'filter ignored: 2026-05-01T01:46:40Z came \(id a\)' '... is found out by --check'
src '"query":{"since":"{cursor}","order":"asc"},"cursor":"/updated_at","order":"desc","next":"link","start":"all"'
exits 65 'another order' qpoll --check s.json
like "$(cat err)" 'not in descending order: ' '... likewise'
src "$asc"
mode '{"status":429,"headers":{"Retry-After":"4"}}' >/dev/null
exits 75 'a limit' qpoll --check s.json
is "$(cat err)" 'qpoll: s: limited: status 429 asks to wait 4s' '... is not waited for'
mode '{"status":404}' >/dev/null
src "$asc,\"whoami\":\"$url/who\""
exits 69 'whoami' qpoll --check s.json
is "$(sql 'SELECT count(*) FROM q_poll; SELECT count(*) FROM q_poll_run')" '0
0' '... nothing of it is on record'
mode '{"status":null}' >/dev/null
src "$asc"
exits 0 'a run' qpoll s.json
src "$asc,\"granularity\":\"1m\""
exits 78 'a changed file' qpoll s.json
exits 0 '... can be looked at' qpoll --check s.json
exits 0 '... --reset' qpoll --reset s.json
is "$(cat err)" 'qpoll: s: the cursor was at 2026-05-01T01:46:41Z' '... tells where it was'
src '"query":{"since":"{cursor}","order":"asc"},"cursor":"/updated_at","order":"asc","next":"link","start":"newest"'
qpoll --set-cursor 2026-05-01T00:00:00Z s.json
exits 0 '... of what begins with the newest' qpoll --reset s.json
like "$(cat err)" 'the cursor was at 2026-05-01T00:00:00Z; "start" is newest, so what changed since then will not come; next: qpoll --set-cursor' '... tells what that means'
qset rate.p=10/s
qrate --block 1h p
is "$(qset)" 'rate.p=10/s
# rate.p lets nothing through until 2026-06-02T13:00:00Z; see qrate --block' 'qset tells of a block'
exits 64 'a backfill of what is still to come' qbackfill --from 2026-06-01 --to 2026-07-01 --step 1d s.json
like "$(cat err)" '--to lies in the future' '... is refused'
done_testing
