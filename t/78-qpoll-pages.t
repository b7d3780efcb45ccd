#!/bin/sh
# qpoll: each style of paging in each order, ties, pages that shift, where a list ends, opaque tokens.
# shellcheck disable=SC2086	# members and words are lists
. "${0%/*}/lib.sh"
[ -x "$t/serve" ] || skip_all 't/serve is not built'
. "$t/qpoll.sh"

# ---- each paging style, in each order ----

TOKEN='"style":"token","shape":{"items":"{items}","t":"{token}","more":"{more}","done":"{done}"}'
each() {	# STYLE SWITCHES ORDER MEMBERS QUERY...
	style=$1 switches=$2 order=$3 members=$4 query=${5-}
	fresh
	new "{$switches}"
	rows "$ROWS"
	src "$(by $order "$query"),$members"
	exits 0 "$style, $order" poll
	is "$(letters) $(cursor)" 'abcdefg 2026-03-01T00:00:05Z' '... all'
	ask "$url/_put" '[{"id":"h","stamp":1772323206000},{"id":"b","stamp":1772323206000}]'
	poll
	is "$(letters) $(asked poll)" "abbcdefgh 0 1" '... then what is new, and nothing'
}
for order in asc desc any; do
	each link '' $order '"next":"link"'
	ITEMS=/r/0/x~1y each url '"style":"url","shape":{"r":[{"x/y":"{items}"}],"n":"{next}"},"relative":true' $order '"next":"url:/n"'
	each token "$TOKEN" $order '"next":"token:/t"' ',"token":"{token}"'
	[ $order = any ] || each 'token, more' "$TOKEN,\"always\":true" $order '"next":"token:/t","more":"/more"' ',"token":"{token}"'
	each page '"style":"page"' $order '"next":"page"' ',"page":"{page}"'
	[ $order = any ] || each 'page, done' '"style":"page","shape":{"items":"{items}","done":"{done}"}' $order '"next":"page","done":"/done"' ',"page":"{page}"'
	each offset '"style":"offset"' $order '"next":"offset"' ',"offset":"{offset}"'
	[ $order = any ] || each last '"style":"last"' $order '"next":"last"' ',"after":"{token}"'
done

# ---- ties ----

TIES=$(i=0; while [ $((i += 1)) -le 10 ]; do printf '{"id":"t%02d","stamp":1772323202000},' $i; done)
ten() { rows "[{\"id\":\"a\",\"stamp\":1772323200000},${TIES}{\"id\":\"z\",\"stamp\":1772323209000}]"; }
ALL=$(echo a; i=0; while [ $((i += 1)) -le 10 ]; do printf 't%02d\n' $i; done; echo z)
all_once() { is "$(arrived | tr ' ' '\n' | sort)" "$ALL" "$1"; }
tied() {	# STYLE SWITCHES MEMBERS REQUESTS QUERY...
	fresh
	new "{$2}"
	ten
	src "$(by asc "${5-}"),$3"
	is "$(asked poll)" "0 $4" "$1: ten rows of one time, three a page"
	all_once '... all, once'
	is "$(cursor) $(asked poll)" '2026-03-01T00:00:09Z 0 1' '... and then beyond them'
}
tied link '' '"next":"link"' 12
tied 'link, by value' '"pointer":"key"' '"next":"link"' 12
tied token "$TOKEN" '"next":"token:/t"' 12 ',"token":"{token}"'
tied page '"style":"page"' '"next":"page"' 12 ',"page":"{page}"'
tied offset '"style":"offset"' '"next":"offset"' 12 ',"offset":"{offset}"'
tied last '"style":"last"' '"next":"last"' 12 ',"after":"{token}"'
tied 'a stable pointer' '"pointer":"key"' '"next":"link","stable":true' 4
SHIFTED=$(printf '%s\n' $ALL t01 | sort | tr -d '\n')
# Each page is read again after the next one; so a row that is read and then moves on cannot pull another one past.
for style in page offset; do
	for at in 3 5 8; do
		fresh
		new "{\"style\":\"$style\"}"
		ten
		src "$(by asc ",\"$style\":\"{$style}\""),\"next\":\"$style\""
		scripted "[{\"at\":$at,\"put\":[{\"id\":\"t01\",\"stamp\":1772323210000}]},{\"at\":$((at + 2)),\"del\":[\"t02\"]}]"
		poll 2>err || cat err
		is "$(letters) $(cursor)" "$SHIFTED 2026-03-01T00:00:10Z" "$style numbers shift before request $at: nothing is missed"
	done
done
fresh
new '{"pointer":"none"}'
ten
src "$ASC"
exits 65 'a page of ties, and no pointer' poll
is "$(cat err)" "qpoll: s: $url/items: stalled: a whole page has the value 2026-03-01T00:00:02Z, and there is no pointer to the next" '... is said'
is "$(cursor) $(runs)" '2026-03-01T00:00:02Z failed 65 200' '... and the cursor is not moved past it'
new '{}'
exits 0 '... but goes on when there is one' poll
all_once '... and nothing is missing'
fresh
src "$ASC,\"max_pages\":3"
exits 0 'more ties than max_pages' poll
is "$(note)" 'more follows: it ended after 3 pages ("max_pages")' '... is noted'
exits 0 '... some more' poll
until [ "$(poll 2>err; echo $?)" != 0 ]; do :; done
is "$(runs) $(cat err)" 'failed 65 200 qpoll: s: stalled: 3 pages ("max_pages") held nothing new at 2026-03-01T00:00:02Z, and more follows; next: raise it' '... and fails when it gets no further'
src "$ASC"
exits 0 '... so it is raised' poll
all_once '... and nothing is missing'

# ---- where a list ends ----

rows "$ROWS"
ends() {	# CODE NAME SWITCHES MEMBERS QUERY
	fresh
	new "{$3}"
	src "$(by asc "${5-}"),$4"
	exits "$1" "$2" poll
}
ends 0 'empty pages with a token' "$TOKEN" '"next":"token:/t","stable":true' ',"token":"{token}"'
fresh
scripted '[{"at":2,"mode":{"empty":true}},{"at":3,"mode":{"empty":true}}]'
exits 0 '... are no end' poll
is "$(letters)" abcdefg '... all'
fresh
mode '{"empty":true}'
scripted '[]'
src "$(by asc ',"token":"{token}"'),\"next\":\"token:/t\",\"stable\":true,\"max_empty\":3"
exits 65 '... unless they are too many' poll
is "$(cat err)" "qpoll: s: $url/items: more than 3 empty pages in a row, each with a pointer to the next (\"max_empty\")" '... which is said'
ends 65 'always a token, which leads round' "$TOKEN,\"loop\":2" '"next":"token:/t","stable":true' ',"token":"{token}"'
is "$(cat err)" "qpoll: s: $url/items: the pages lead round in a circle: page 3 of this walk leads back to page 2" '... is seen'
ends 65 'more, but no pointer' "$TOKEN,\"pointer\":\"none\"" '"next":"token:/t","more":"/more"' ',"token":"{token}"'
is "$(cat err)" "qpoll: s: $url/items: the answer says that more follows, and has no pointer to it" '... is said'
ends 65 'more is no boolean' '"shape":{"items":"{items}","more":"yes"}' '"next":"link","more":"/more"'
is "$(cat err)" "qpoll: s: $url/items: neither true nor false at \"/more\", which says whether more follows" '... is said'
ends 65 '... or not there' '' '"next":"link","more":"/more"'
ends 0 'an empty page ends page numbers' '"style":"page"' '"next":"page","stable":true' ',"page":"{page}"'
is "$(letters)" abcdefg '... all'
for order in desc any; do
	fresh
	new '{"pointer":"none"}'
	src "$(by $order),\"next\":\"link\""
	exits 65 "$order: a full page without a pointer" poll
	is "$(cat err)" "qpoll: s: $url/items: the first page is full and has no pointer to the next: is \"next\" right?" '... is doubted'
done
fresh
new '{}'
rows '[{"id":"a","stamp":1},{"id":"b","stamp":2},{"id":"c","stamp":3}]'
src "$(by any),\"next\":\"none\""
exits 65 'a full page of a list that has no pages' poll
rows '[{"id":"a","stamp":1},{"id":"b","stamp":2}]'
exits 0 '... a page that is not full' poll

# ---- opaque tokens ----

new '{"style":"sync","shape":{"items":"{items}","t":"{token}","final":"{final}"},"void":3}'
rows "$ROWS"
fresh
src '"order":"opaque","query":{"token":"{token}","limit":3},"next":"token:/t","final":"token:/final"'
exits 0 'tokens of changes' poll
is "$(letters)" abcdefg '... all'
final=$(cursor)
like "$final" '^q[0-9]+$' '... the closing token is the cursor'
is "$(asked poll) $(last) $(runs)" "0 1 /items?token=$final&limit=3 nothing 0 200" '... and what is asked with'
ask "$url/_put" '[{"id":"b","stamp":1772323209000}]'
ask "$url/_del" '["c"]'
exits 0 '... changes and deletions' poll
is "$(letters) $(sql "SELECT json_extract(body, '\$.deleted') FROM q_body ORDER BY job DESC LIMIT 1")" 'abbccdefg 1' '... are items'
mode '{"void":99999}'
held=$(cursor)
exits 78 'the token is void' poll
is "$(cat err)" "qpoll: s: $url/items: the token is void (status 410), the API wants a new beginning; next: qpoll --reset" '... is said'
is "$(cursor) $(runs)" "$held failed 78 410" '... the cursor stays'
mode '{"void":1}'
exits 0 '... --reset' poll --reset
exits 0 '... begins again' poll
is "$(letters)" abbccdefg '... and what is known comes no second time'
src '"order":"opaque","query":{"token":"{token}","limit":1},"next":"token:/t","final":"token:/final","max_pages":1'
new '{"style":"sync","shape":{"items":"{items}","t":"{token}","final":"{final}"}}'
fresh
i=0; while poll && [ "$(arrived | wc -w)" -lt 7 ] && [ $((i += 1)) -lt 20 ]; do :; done
is "$(letters) $i" 'abcdefg 6' 'a page a run, each stored with its token'
done_testing
