#!/bin/sh
# The test server: each style of paging gives every row once, and each switch does what t/serve.c says.
. "${0%/*}/lib.sh"
[ -x "$t/serve" ] || skip_all 't/serve is not built'

serve
new() { ask "$url/_new" "$1"; }
items() { ask "$url/items$1"; }
head_of() { ask -i "$url${1-/items}" | tr -d '\r' | sed -n "s/^$2: //p"; }
status() { ask -i "$url${1-/items}" | sed -n '1s/^[^ ]* \([0-9]*\).*/\1/p'; }
in_order() { tr ' ' '\n' | sort | tr -d '\n'; }
ids() { grep -o '"id":[^,]*' | sed 's/"id"://; s/"//g' | tr '\n' ' '; }

# a to g; c, d and e fall together
ROWS='[{"id":"a","stamp":1772323200000},{"id":"b","stamp":1772323201000},{"id":"c","stamp":1772323202000},
{"id":"d","stamp":1772323202000},{"id":"e","stamp":1772323202000},{"id":"f","stamp":1772323203500},{"id":"g","stamp":1772323205000}]'
rows "$ROWS"

# ---- queries ----

is "$(items '?limit=2')" '{"items":[{"id":"a","updated_at":"2026-03-01T00:00:00Z","version":1},{"id":"b","updated_at":"2026-03-01T00:00:01Z","version":1}]}' 'rows'
is "$(items '?since=2026-03-01T00:00:02Z&until=2026-03-01T00:00:05Z' | ids)" 'c d e f ' 'since is inclusive, until is not'
is "$(items '?since=2026-03-01T01:00:02%2B01:00&limit=1' | ids)" 'c ' 'a zone with +'
is "$(status '/items?since=2026-03-01T01:00:02+01:00')" 400 '... which is a blank if it is not escaped'
is "$(items '?order=desc' | ids)" 'g f e d c b a ' 'desc'
is "$(items '?order=asc-pages&limit=3' | ids)" 'c b a ' 'rising pages, falling inside'
is "$(items '?order=any' | ids | in_order)" abcdefg 'any order has all'
is "$(ask "$url/items" '{"limit":1,"variables":{"since":"2026-03-01T00:00:01Z"}}' | ids)" 'b ' 'parameters in a body'
is "$(status '/items?limit=0') $(status '/items?token=x3') $(status /_none)" '400 400 404' 'what is wrong is refused'

# ---- paging ----

# walk QUERY NEXT: NEXT prints, from ./page with its header, what comes behind /items for the next page
walk() {
	at=$1 pages=0
	while [ -n "$at" ] && [ $((pages += 1)) -lt 12 ]; do
		ask -i "$url/items$at" | tr -d '\r' >page
		ids <page
		at=$($2)
	done
}
ALL='a b c d e f g '
token() { sed -n 's/.*"t":"\([^"]*\)".*/?limit=3\&token=\1/p' page; }
link() { sed -n 's/^Link: <[^?]*\(.*\)>; rel="next"/\1/p' page; }
for pointer in offset key; do
	new "{\"pointer\":\"$pointer\"}"
	is "$(walk '?limit=3' link)" "$ALL" "Link, $pointer"
	mode '{"style":"token","shape":{"items":"{items}","t":"{token}"}}'
	is "$(walk '?limit=3' token)" "$ALL" '... token'
	for order in desc any asc-pages; do
		mode "{\"order\":\"$order\"}"
		is "$(walk '?limit=3' token | in_order)" abcdefg "... $order"
	done
done
new '{"style":"url","shape":{"items":"{items}","next":"{next}"}}'
body_url() { sed -n 's/.*"next":"http:..[^/]*.items\([^"]*\)".*/\1/p' page; }
is "$(walk '?limit=3&x=%20' body_url)" "$ALL" 'URL in the body'
like "$(items '?limit=3&x=%20')" "\"next\":\"$url/items[?]offset=3&limit=3&x=%20\"" '... keeps the rest of the query'
new '{"style":"header"}'
in_header() { sed -n 's/^X-Next: /?limit=3\&token=/p' page; }
is "$(walk '?limit=3' in_header)" "$ALL" 'token in a header'
new '{"style":"page","shape":{"items":"{items}","more":"{more}","done":"{done}"}}'
by_page() { n=1; while ask "$url/items?limit=3&page=$n" >page && ids <page && grep -q '"more":true,"done":false' page; do n=$((n + 1)); done; }
is "$(by_page)" "$ALL" 'page numbers, more and done'
is "$(items '?limit=3&offset=6' | ids)$(items '?limit=3&offset=7' | ids)" 'g ' 'offset'
is "$(items '?limit=3&after=c' | ids)$(items '?limit=3&after=f' | ids)" 'd e f g ' 'after an id'
is "$(items '?order=desc&limit=3&after=c' | ids)" 'b a ' '... falling'
is "$(status '/items?after=zz')" 400 '... an unknown one'

new '{"style":"sync","shape":{"items":"{items}","t":"{token}","final":"{final}"},"void":3}'
is "$(walk '?limit=3' token)" "$ALL" 'tokens of changes: all'
like "$(cat page)" '"t":null,"final":"q7"' '... the last page has the final one'
ask "$url/_put" '[{"id":"b","stamp":1772323209000}]'
ask "$url/_del" '["d"]'
is "$(items '?token=q7')" '{"items":[{"id":"b","updated_at":"2026-03-01T00:00:09Z","version":2},{"id":"d","updated_at":"1970-01-01T00:00:00Z","version":2,"deleted":true}],"t":null,"final":"q9"}' '... then changes, deletions too'
is "$(status '/items?token=q2')" 410 '... void'
is "$(ask "$url/_rows" | tr '\n' ' ')" 'a 1 b 2 c 1 e 1 f 1 g 1 ' 'the live rows'
rows "$ROWS"

# ---- pointers that lead astray ----

new '{"loop":1}'
is "$(head_of '/items?limit=3' Link)" "<$url/items?offset=0&limit=3>; rel=\"next\"" 'a loop of one'
new '{"loop":2,"pointer":"offset"}'
is "$(walk '?limit=1' link)" 'a b a b a b a b a b a ' '... of two'
new '{"link":"<{next}>; title=\"a, b\"; rel=prev, </x>; rel=\"first next\"","relative":true}'
is "$(head_of '/items?limit=3' Link)" '</items?offset=3&limit=3>; title="a, b"; rel=prev, </x>; rel="first next"' 'any Link header'
new '{"next":"http://me@127.0.0.1:9/"}'
is "$(head_of '/items?limit=3' Link)" '<http://me@127.0.0.1:9/>; rel="next"' 'a pointer of its own'
is "$(head_of '/items?limit=9' Link)" '' '... but not at the end'
new '{"pointer":"none"}'
is "$(head_of '/items?limit=3' Link)" '' 'no pointer'
new '{"always":true}'
is "$(head_of '/items?offset=7' Link)" "<$url/items?offset=7>; rel=\"next\"" 'a pointer after the end'
mode '{"always":"empty"}'
is "$(head_of '/items?offset=7' Link)$(head_of '/items?offset=6' Link)" "<$url/items?offset=7>; rel=\"next\"" '... not after an empty page'
new '{}'
scripted '[{"at":2,"mode":{"empty":true}}]'
is "$(walk '?limit=3' link)" "$ALL" 'an empty page in between'
is "$(requests | tail -n 4 | cut -f4 | sed 's/~.*&/~N\&/')" '/items?limit=3
/items?offset=3&limit=3
/items?token=o3~N&limit=3
/items?offset=6&limit=3' '... one request more'
is "$(ask "$url2/items?limit=1" | ids)$(requests | tail -n 1 | cut -f2)" "a ${url2##*:}" 'another origin'

# ---- what rows look like ----

first() { items '?limit=1' | sed 's/.*"updated_at":\([^,}]*\).*/\1/'; }
new '{"digits":6,"zone":"+01:30"}'
is "$(first)" '"2026-03-01T01:30:00.000000+01:30"' 'digits and zones'
mode '{"digits":9,"zone":"-0500"}'
is "$(first)" '"2026-02-28T19:00:00.000000000-0500"' '... without a colon'
mode '{"digits":0,"zone":""}'
is "$(first)" '"2026-03-01T00:00:00"' '... none'
stamps() { for s in epoch ms decimal day; do new "{\"stamp\":\"$s\"}"; echo "$(first)"; done | tr '\n' ' '; }
is "$(stamps)" '1772323200 1772323200000 "1772323200.000000" "2026-03-01" ' 'other stamps'
new '{"stamp":"ms"}'
is "$(items '?since=1772323203000' | ids)" 'f g ' '... in queries'
new '{"stamp":"decimal"}'
is "$(items '?since=1772323203.500000' | ids)" 'f g ' '... with a fraction'
new '{"filter":2000,"shown":60000}'
is "$(items '?since=2026-03-01T00:00:03Z&limit=1')" '{"items":[{"id":"c","updated_at":"2026-03-01T00:00:00Z","version":1}]}' 'a coarse filter, a coarse stamp'
new '{"unfiltered":true,"unsorted":true,"limit":9,"most":2}'
ask "$url/_put" '[{"id":"a","stamp":1772323200000}]'
is "$(items '?since=2026-03-01T00:00:03Z' | ids)" 'b c ' 'filter and order ignored, a cap a page'
new '{"cap":4}'
is "$(status '/items?limit=4') $(status '/items?limit=4&offset=4') $(status '/items?limit=4&offset=1')" '200 400 400' 'a cap a query, refused'
mode '{"cap_status":0}'
is "$(items '?limit=3&offset=3' | ids)$(head_of '/items?limit=3&offset=3' Link)" 'd ' '... or in silence'
new '{"dup":true,"number":true}'
rows '[{"id":"12345678901234567890","stamp":0,"more":"\"p\":1.10"},{"text":"{\"nothing\":null}","stamp":1}]'
is "$(items '')" '{"items":[{"id":12345678901234567890,"updated_at":"1970-01-01T00:00:00Z","version":1,"p":1.10},{"id":12345678901234567890,"updated_at":"1970-01-01T00:00:00Z","version":1,"p":1.10},{"nothing":null},{"nothing":null}]}' 'rows of any text, twice'
new '{"unit":5,"stamp":"ms","tombstones":true}'
ask "$url/_tick" 1003
rows '[{"id":"a"}]'
ask "$url/_tick" 4
ask "$url/_put" '[{"id":"a"},{"id":"b"}]'
ask "$url/_del" '["b"]'
is "$(items '')" '{"items":[{"id":"a","updated_at":1005,"version":2},{"id":"b","updated_at":1007,"version":2,"deleted":true}]}' 'the clock of the stamps, tombstones'
rows "$ROWS"

# ---- answers ----

new '{"status":503,"headers":{"Retry-After":"1.5","X-Reset":"{epoch+60} {ms+1} {iso-1}"},"skew":-3600}'
ask -i "$url/items" | tr -d '\r' >page
is "$(sed 1q page) $(tail -n 1 page)" 'HTTP/1.1 503 Service Unavailable {"message":"no"}' 'a status'
is "$(sed -n 's/^Retry-After: //p; s/^X-Reset: //p; s/^Date: //p' page)" 'Tue, 02 Jun 2026 11:00:00 GMT
1.5
1780398060 1780398001000 2026-06-02T10:59:59Z' '... headers, a skewed clock'
new '{"nodate":true,"headers":{"A":"{imf+60} | {rfc850+60} | {asctime+60}"}}'
is "$(head_of /items A)$(head_of /items Date)" 'Tue, 02 Jun 2026 12:01:00 GMT | Tuesday, 02-Jun-26 12:01:00 GMT | Tue Jun  2 12:01:00 2026' 'three dates'
new '{"body":"<html>{port2}</html>","type":"text/html"}'
is "$(items '') $(head_of /items Content-Type)" "<html>${url2##*:}</html> text/html" 'a page for people'
new '{"shape":{"items":null},"last":{"error":["{total}"]}}'
is "$(items '?limit=1')$(items '')" '{"items":null}{"error":[7]}' 'other shapes'
printf 'a\0b' >bytes
new "{\"file\":\"$PWD/bytes\",\"pad\":3}"
items '' >got
printf 'a\0b   ' | cmp -s - got
ok $? 'the bytes of a file, blanks behind'
new '{}'
scripted '[{"at":1,"to":2,"mode":{"status":500}},{"at":2,"put":[{"id":"h","stamp":1772323206000}],"del":["g"]}]'
is "$(status) $(status) $(status) $(items '' | ids)" '500 500 200 a b c d e f h ' 'a script'
new '{"paths":{"/who":{"status":403}}}'
is "$(status /who) $(status /items) $(ask "$url/else" x)" '403 200 {"ok":true}' 'a path of its own'

new '{"etag":true,"modified":true}'
tag=$(head_of /items ETag) date=$(head_of /items Last-Modified)
asked() { ask -i -H "$1" ${2+-H "$2"} "$url/items" | tr -d '\r' | sed -n '1s/^[^ ]* \([0-9]*\).*/\1/p; $s/\(.\).*/\1/p' | tr -d '\n'; }
is "$(asked "If-None-Match: $tag") $(asked "If-Modified-Since: $date") $(asked 'If-None-Match: "x"' "If-Modified-Since: $date")" '304 304 200{' 'validators'
ask "$url/_put" '[{"id":"h"}]'
is "$(asked "If-None-Match: $tag") $(asked "If-Modified-Since: $date")" '200{ 200{' '... after a change'
mode '{"same":true}'
is "$(asked 'If-None-Match: "x"') $(status)" '304 200' '... 304 for ever'

new '{"auth":"Authorization: Bearer x"}'
is "$(status) $(asked 'Authorization: Bearer y') $(asked 'authorization: Bearer x')" '401 401{ 200{' 'a header'
mode '{"blind":true}'
is "$(items '')$(asked 'Authorization: Bearer x')" '{"items":[]}200{' '... or no rows'
new '{"auth":"query key=s/t"}'
is "$(status) $(status '/items?key=s%2Ft') $(status '/items?key=s')" '401 200 401' 'a parameter'
is "$(ask "$url/_state" | tr -d '"{}' | tr , '\n' | sed -n 's/denied://p')" 5 '... wrong ones are counted'
new '{"quota":2,"headers":{"X-Left":"{left}"}}'
is "$(head_of /items X-Left) $(head_of /items X-Left) $(status) $(head_of /items X-Left)" '1 0 429 0' 'a quota'

ask -H 'X-Api-Key: a	b' "$url/x?y=%20" '{"a":
1}' >out
is "$(requests | tail -n 1 | cut -f3- | tr '\t' '|')" "POST|/x?y=%20|429|X-Api-Key: a\tb|Host: ${url#http://}|Content-Length: 8|{\"a\":\\n1}" 'the log'

# ---- on the wire ----

rows "$ROWS"
new '{}'
items '' >whole
size=$(wc -c <whole)
new '{"gzip":true}'
items '' | gzip -dc >got 2>err
is "$(cat err)$(cmp got whole)" '' 'gzip'
mode '{"break":"closehalf"}'
items '' | gzip -dc >got 2>err
is "$(head -c "$(wc -c <got)" whole | cmp - got)$(grep -c 'unexpected end' err)" 1 '... cut'
mode '{"gzip":"notrailer","break":"close"}'
items '' | gzip -dc >got 2>err
is "$(cmp got whole)$(grep -c 'unexpected end' err)" 1 '... without its end'
mode '{"gzip":false}'
broken() { mode "{\"break\":\"$1\"}"; ask -i "$url/items" | tr -d '\r' >page; sed -n 's/^Content-Length: //p; s/^Transfer-Encoding: //p' page; tail -n 1 page >got; }
is "$(broken half) $(head -c $((size / 2)) whole | cmp - got)" "$size " 'half of it'
is "$(broken reset) $(tail -c 7 got)" "$size [reset]" '... and a reset'
is "$(broken long)$(cmp got whole)" "$((size + 10))" 'a length that is too long'
is "$(broken short)$(cmp got whole)" "$((size - 10))" '... too short'
is "$(broken close)$(cmp got whole)" '' '... none'
is "$(broken chunk) $(tail -n 1 page)" "chunked $(cat whole)" 'no last chunk'
is "$(broken silent)$(cat page)" '' 'no answer'
slow() { perl -MTime::HiRes=time -e '$t = time; system @ARGV; print time - $t >= 0.03 ? "slow" : "fast"' "$t/serve" "$url/items"; }
new '{"break":"drip","wait":1}'
is "$(slow)" "$(cat whole)slow" 'byte by byte'
new '{"wait":30}'
is "$(slow)" "$(cat whole)slow" 'late'
new '{"break":"hang","wait":30}'
is "$(slow)" "$(head -c $((size / 2)) whole)slow" 'half, and then nothing'

# ---- kills ----

new '{}'
victim() {	# SCRIPT: how often the victim was answered before it died
	rm -f pid
	scripted "$1"
	sh -c 'echo $$ >pid.new; mv pid.new pid; while :; do "$0" "$1" >/dev/null; echo >>answers; done' "$t/serve" "$url/items" 2>/dev/null &
	wait $! 2>/dev/null
	echo $?
}
is "$(victim "[{\"at\":3,\"kill\":\"$PWD/pid\"}]") $(requests | tail -n 1 | cut -f5)" '137 200' 'kill before the answer'
is "$(victim "[{\"at\":3,\"kill\":\"$PWD/pid\",\"when\":\"after\",\"pause\":1}]") $(requests | tail -n 1 | cut -f5)" '137 200' '... and after it'

sh -c '"$t/serve" >ports 2>&1 & echo $! >pids; until [ -s ports ]; do :; done; kill -9 $$' 2>/dev/null
is "$(wc -w <ports)" 2 'another server'
until_ok none_alive
ok $? '... dies with the one who started it'
done_testing
