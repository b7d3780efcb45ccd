# qpoll.sh - what the tests of qpoll share, after lib.sh
# shellcheck shell=sh disable=SC2034	# the tests use them
serve
new() { ask "$url/_new" "$1"; }		# switches instead of those in force
fresh() { rm -f q.db q.db-*; qinit; }
# src MEMBERS: a source file, s.json
src() { printf '{"name":"s","url":"%s","insecure_http":true,"queue":"in","retries":0,"items":"%s","id":"/id",%s}\n' "$url/items" "${ITEMS-/items}" "$1" >s.json; }
by() { printf '"cursor":"/updated_at","start":"all","order":"%s","query":{"since":"{cursor}","order":"%s","limit":3%s},"size":3' "$1" "$1" "$2"; }
ASC="$(by asc),\"next\":\"link\""
poll() { qpoll "$@" s.json; }
poll_to() { qpoll s.json -- "$@"; }
count() { requests | wc -l | tr -d ' '; }
asked() {	# CMD...: its exit, and how many requests
	before=$(requests | wc -l)
	"$@" >out 2>err
	echo "$? $(($(requests | wc -l) - before))"
}
last() { requests | tail -n "${1-1}" | cut -f4; }
cursor() { sql "SELECT coalesce(cursor, '-') FROM q_poll"; }
arrived() { sql "SELECT group_concat(json_extract(body, '\$.id'), ' ') FROM (SELECT body FROM q_body ORDER BY job)"; }	# in order
letters() { sql "SELECT group_concat(i, '') FROM (SELECT json_extract(body, '\$.id') AS i FROM q_body ORDER BY i)"; }	# sorted
runs() { sql "SELECT outcome || ' ' || exit || ' ' || coalesce(http, '-') FROM q_poll_run ORDER BY id DESC LIMIT ${1-1}"; }
note() { sql 'SELECT note FROM q_poll_run ORDER BY id DESC LIMIT 1'; }
quiet() { is "$(cat out err)" '' "... and says nothing"; }
# a row a letter, a second apart; c, d and e fall together
ROWS='[{"id":"a","stamp":1772323200000},{"id":"b","stamp":1772323201000},{"id":"c","stamp":1772323202000},
{"id":"d","stamp":1772323202000},{"id":"e","stamp":1772323202000},{"id":"f","stamp":1772323203500},{"id":"g","stamp":1772323205000}]'
