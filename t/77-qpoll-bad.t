#!/bin/sh
# qpoll when an API answers what cannot be right, not at all, or "later": the exit code, one line that says why, a run written
# down, and the cursor and the items as they were.
# shellcheck disable=SC2086	# members and words are lists
. "${0%/*}/lib.sh"
[ -x "$t/serve" ] || skip_all 't/serve is not built'
. "$t/qpoll.sh"

HELD='SELECT cursor, cursor_key, seen_key, walk, etag, modified FROM q_poll; SELECT * FROM q_seen; SELECT * FROM q_job; SELECT * FROM q_body;'
held() { sql "$HELD"; }
base() { was=$(held) number=$(sql 'SELECT coalesce(max(id), 0) FROM q_poll_run'); }	# what is to stay
# bad CODE NAME SWITCHES WORDS: of what it says, after the source
bad() {
	new "$3"
	exits "$1" "$2" poll
	case $1 in 75) outcome=limited ;; *) outcome=failed ;; esac
	line=$(cat err)
	is "$(cat out; wc -l <err | tr -d ' ')
$(sql "SELECT id, outcome, exit, fresh, note FROM q_poll_run WHERE id > $number; $HELD")" "1
$((number += 1))|$outcome|$1|0|${line#qpoll: }
$was" '... one line, one run; cursor and items stay'
	case $line in "qpoll: s: $4"*) ok 0 "... $4" ;; *) is "$line" "qpoll: s: $4" '... which says why' ;; esac
}

# ---- what came is no page ----

echo s3cret-t0ken >token; chmod 600 token
AUTH='"auth":{"bearer_file":"token"}'
fresh
rows "$ROWS"
src "$ASC,$AUTH"
poll
base
at="$url/items: "
refused() { bad "$1" "$2" "$3" "$at$4"; }
refused 65 'a page for people' '{"body":"<!doctype html><p>s3cret-t0ken","type":"text/html"}' 'the answer is text/html, not JSON: <!doctype html><p>***'
refused 65 '... that says it is JSON' '{"body":"<html>"}' 'the answer is no JSON document: at byte 0 of 6 not JSON'
refused 65 'nothing' '{"status":204}' 'status 204, where only 200 has a page'
refused 65 'an empty body' '{"body":""}' 'the answer is no JSON document: at byte 0 of 0 it is empty'
refused 65 '201' '{"status":201,"body":{"items":[]}}' 'status 201, where only 200 has a page'
refused 65 '304, unasked' '{"status":304}' 'status 304, where only 200 has a page'
refused 65 'null instead of the list' '{"shape":{"items":null}}' 'no array at "/items" but another value: {"items":null}'
refused 65 'an object instead of it' '{"shape":{"items":{"0":"{items}"}}}' 'no array at "/items" but another value: {"items":{"0":['
refused 65 'no list' '{"body":{"message":"no access"}}' 'no array at "/items" but nothing: {"message":"no access"}'
refused 65 'an array instead of the object' '{"body":[]}' 'no array at "/items" but nothing: []'
refused 65 'two documents' '{"body":"{\"items\":[]}\n{\"items\":[]}"}' 'the answer is no JSON document: at byte 13 of 25 something follows the JSON value'
refused 65 'no id' '{"body":{"items":[{"id":"a","updated_at":"2026-03-01T00:00:05Z"},{"updated_at":"2026-03-01T00:00:05Z"}]}}' 'item 2 has no id at "/id": {"updated_at":"2026-03-01T00:00:05Z"}'
refused 65 'an empty id' '{"body":{"items":[{"id":""}]}}' 'item 1 has no id at "/id": {"id":""}'
refused 65 'an id of another kind' '{"body":{"items":[{"id":{"s3cret-t0ken":1}}]}}' 'item 1: the id at "/id" is neither a text nor a number: {"***":1}'
refused 65 'no object' '{"body":{"items":[7]}}' 'item 1 has no id at "/id": 7'
refused 65 'another form of its time' '{"body":{"items":[{"id":"a","updated_at":1772323205}]}}' "item 1, id a: the cursor '1772323205' is not a time such as 2026-03-01T00:00:00Z"
refused 65 'a time without a zone' '{"zone":""}' "item 1, id g: the cursor '2026-03-01T00:00:05' names no zone, and the source none that it is in; set \"zone\""
refused 65 'a filter that is ignored' '{"unfiltered":true}' 'filter ignored: 2026-03-01T00:00:00Z came (id a), though only what is from 2026-03-01T00:00:05Z on was asked for'
refused 65 'half of an answer without a length' '{"break":"closehalf"}' 'the answer is no JSON document: at byte 3'
refused 65 '... gzip, cut' '{"gzip":true,"break":"closehalf"}' 'the answer is no JSON document: at byte '
for broken in half reset long chunk; do
	refused 69 "an answer that breaks: $broken" "{\"break\":\"$broken\"}" 'status 200: not all of the answer came: '
done
refused 65 '... a short length' '{"break":"short"}' 'the answer is no JSON document: at byte '
refused 69 'a false encoding' '{"headers":{"Content-Encoding":"gzip"}}' 'status 200: not all of the answer came: '
refused 69 'no answer' '{"break":"silent"}' 'no answer: '
for status in 400 404 410 422 500 503; do
	refused 69 "status $status" "{\"status\":$status,\"body\":{\"message\":\"s3cret-t0ken is not known\"}}" "status $status: {\"message\":\"*** is not known\"}"
done
refused 69 'a redirect' '{"status":302,"headers":{"Location":"/other?x=s3cret-t0ken"}}' "status 302: redirects to $url/other"
bad 77 '403' '{"status":403}' "credentials refused: ${at}status 403: {\"message\":\"no\"}"
bad 77 '401' '{"auth":"Authorization: Bearer x"}' "credentials refused: ${at}status 401: {\"message\":\"no\"}"
src "$ASC,$AUTH,\"max_body\":100"
refused 69 'too large' '{"pad":200}' 'status 200: the answer is longer than 100 bytes'
refused 69 '... decoded' '{"pad":100000,"gzip":true}' 'status 200: the answer is longer than 100 bytes'
src "$ASC,$AUTH,\"timeout\":\"100ms\""
refused 69 'byte by byte, too slow' '{"break":"drip","wait":50}' 'status 200: not all of the answer came: '
refused 69 'half, then nothing' '{"break":"hang","wait":1000}' 'status 200: not all of the answer came: '
src "$ASC,$AUTH,\"ok\":{\"/ok\":true},\"error\":\"/error\""
refused 65 'ok is not there' '{}' 'the answer is an error: /ok is not what "ok" wants: {"items":'
refused 65 'ok is false' '{"shape":{"ok":false,"items":"{items}"}}' 'the answer is an error: /ok is not what "ok" wants: {"ok":false'
for error in '"nope"' 42 7 '{"code":1}' '["a"]' true '[ 1 ]'; do
	refused 65 "an error with 200: $error" "{\"shape\":{\"ok\":true,\"items\":\"{items}\",\"error\":$error}}" 'the answer is an error: '
done
for none in null false '""' '[]' '{}'; do
	new "{\"shape\":{\"ok\":true,\"items\":\"{items}\",\"error\":$none}}"
	exits 0 "no error: $none" poll
done
src "$ASC,\"any_type\":true"
new '{"type":"text/plain"}'
exits 0 'any_type' poll
src "$ASC"
for type in application/json 'application/json; charset=utf-8' application/vnd.x+json TEXT/JSON; do
	new "{\"type\":\"$type\"}"
	exits 0 "$type" poll
done
base
bad 65 'application/x-jsonish' '{"type":"application/x-jsonish"}' "${at}the answer is application/x-jsonish, not JSON: "
sed "s|$url|http://127.0.0.1:9|" s.json >s2; mv s2 s.json
new '{}'
exits 78 'nobody listens' poll; exits 69 '... as accepted' poll --accept
like "$(cat err)" '^qpoll: s: http://127.0.0.1:9/items: no answer: ' '... is said'
fresh
src "$(by desc),\"next\":\"link\""
new '{"unsorted":true}'
exits 65 'order ignored' poll
is "$(cat err)" "qpoll: s: ${at}not in descending order: 2026-03-01T00:00:01Z (id b) comes after 2026-03-01T00:00:00Z (id a)" '... is said'

# ---- where it leads ----

fresh
src "$ASC,$AUTH,\"stable\":true"
port2=${url2##*:}
for next in "$url2/items" "https://${url#http://}/items" http://localhost:${url##*:}/items //127.0.0.1:$port2/items "http://me@${url#http://}/items" file:///etc/passwd 'http://[::1]/x' http://169.254.169.254/latest; do
	fresh
	new "{\"next\":\"$next\"}"
	exits 65 "a next page at $next" poll
	like "$(cat err)" "^qpoll: s: $url/items: the next page is said to be at another place, .*; it is not asked, since the credential would go there$" '... is refused'
done
is "$(requests | cut -f2 | sort -u)" "${url##*:}" '... and nobody else is asked'
fresh
src "$ASC,$AUTH,\"redirects\":true"
new "{\"status\":307,\"headers\":{\"Location\":\"$url2/items\"}}"
exits 69 'a redirect to another origin' poll
is "$(requests | cut -f2 | sort -u) $(cat err)" "${url##*:} qpoll: s: $url/items: status 307: redirects to $url2/items, not the same origin: not followed" '... is not followed'
new "{\"paths\":{\"/items\":{\"status\":307,\"headers\":{\"Location\":\"/there\"}},\"/there\":{\"body\":{\"items\":[]}}}}"
exits 0 '... to the same one it is' poll

# ---- later ----

fresh
new '{}'
src "$ASC,\"rate\":\"api\",\"max_wait\":\"2s\""
exits 78 'a rate that is not set' poll
is "$(cat err)" 'qpoll: s: rate api is not set; next: qset rate.api=10/s' '... is said'
qset rate.api=1000/s+1000
exits 0 '... is set' poll
base
later() {	# NAME SWITCHES WAIT
	bad 75 "$1" "$2" "limited: status $4 asks to wait $3"
	exits 75 '... and others must wait, too' qrate -n api
	qrate --block 0 api
}
limit() { later "Retry-After: $1" "{\"status\":429,\"headers\":{\"Retry-After\":\"$1\"}}" "$2" 429; }
limit 3600 1h
limit 86400.5 1d
limit '{imf+120}' 2m
limit '{rfc850+120}' 2m
limit '{asctime+120}' 2m
later 'no hint' '{"status":429}' 1m 429
later 'nonsense' '{"status":429,"headers":{"Retry-After":"soon"}}' 1m 429
for reset in 'X-RateLimit-Reset":"300' 'X-RateLimit-Reset":"{epoch+300}' 'X-RateLimit-Reset":"{ms+300}' 'X-RateLimit-Reset":"{iso+300}' 'RateLimit-Reset":"300'; do
	name=${reset%%-Reset*}
	later "$reset" "{\"status\":429,\"headers\":{\"$name-Remaining\":\"0\",\"$reset\"}}" 5m 429
done
later 'RateLimit' '{"status":429,"headers":{"RateLimit":"\"a\";r=5;t=9, \"b\";r=0;t=300"}}' 5m 429
later '403 with nothing remaining' '{"status":403,"headers":{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"{epoch+300}"}}' 5m 403
later '403 with Retry-After' '{"status":403,"headers":{"Retry-After":"60"}}' 1m 403
src "$ASC,\"rate\":\"api\",\"max_wait\":\"2s\",\"limited\":{\"/error\":\"ratelimited\",\"/code\":17}"
later 'limited, in a 200' '{"shape":{"ok":false,"error":"ratelimited"},"headers":{"Retry-After":"60"}}' 1m 200
later 'limited, in a 400' '{"status":400,"body":{"code":17}}' 1m 400
bad 69 'another 400' '{"status":400,"body":{"code":18}}' "${at}status 400: {\"code\":18}"
exits 0 '... blocks nobody' qrate -n api
qrate --block 1h api
n=$(count)
bad 75 'blocked by somebody else' '{}' 'rate api lets nothing through for 1h'
is "$(($(count) - n))" 0 '... so nothing is asked'
qrate --block 0 api
unset Q_NOW			# it waits by the clock of the machine
new '{}'
for hint in 0.2 0 '{imf+0}' '{imf-9}'; do
	scripted "[{\"at\":1,\"mode\":{\"status\":429,\"headers\":{\"Retry-After\":\"$hint\"}}}]"
	is "$(asked poll)" '0 2' "Retry-After: $hint is waited for"
	[ "$hint" = 0.2 ] && is "$(sql 'SELECT waited_ms, outcome FROM q_poll_run ORDER BY id DESC LIMIT 1')" '1000|nothing' '... rounded up'
done
export Q_NOW=2026-06-02T12:00:00Z
done_testing
