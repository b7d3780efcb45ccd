#!/bin/sh
# qpoll: pages, orders and values: each style of paging in each order, ties, pages that shift, values that come late, early or not at all.
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
	each 'token, more' "$TOKEN,\"always\":true" $order '"next":"token:/t","more":"/more"' ',"token":"{token}"'
	each page '"style":"page"' $order '"next":"page"' ',"page":"{page}"'
	each 'page, done' '"style":"page","shape":{"items":"{items}","done":"{done}"}' $order '"next":"page","done":"/done"' ',"page":"{page}"'
	each offset '"style":"offset"' $order '"next":"offset"' ',"offset":"{offset}"'
	[ $order = any ] || each last '"style":"last"' $order '"next":"last"' ',"after":"{token}"'
done
