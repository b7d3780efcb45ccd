#!/bin/sh
# qpoll when a secret, the source file or the queue file is bad: the exit code, and one line that names file, line and key.
# Nothing secret is printed, stored, or sent to another origin.
# shellcheck disable=SC2059	# bytes are printf formats
. "${0%/*}/lib.sh"
[ -x "$t/serve" ] || skip_all 't/serve is not built'
. "$t/qpoll.sh"

rows "$ROWS"
echo s3cret-t0ken >token
# ---- secrets ----

fresh
new '{"auth":"Authorization: Bearer s3cret-t0ken"}'
try() {	# CODE NAME AUTH MESSAGE
	src "$ASC,\"auth\":{$3}"
	exits "$1" "$2" poll
	[ "$1" = 0 ] || is "$(cat err)" "qpoll: s.json:1: $4" '... says so'
}
for bits in 640 604 660 606 620 644; do
	chmod $bits token
	try 77 "a secret with mode $bits" '"bearer_file":"token"' '"bearer_file": token can be read or written by others; next: chmod 600'
done
chmod 400 token
try 0 'mode 400' '"bearer_file":"token"'
chmod 600 token
mkdir sub; mv s.json sub; cp token sub/token2
sed 's/"token"/"token2"/' sub/s.json >s2; mv s2 sub/s.json
exits 0 'its path is relative to the source file' qpoll sub/s.json
try 78 'no such file' '"bearer_file":"none"' '"bearer_file": none: No such file or directory'
try 78 'a folder' '"bearer_file":"sub"' '"bearer_file": sub is not a regular file'
mkfifo pipe; chmod 600 pipe
try 78 'a pipe' '"bearer_file":"pipe"' '"bearer_file": pipe is not a regular file'
put_secret() { printf "$1" >odd; chmod 600 odd; }
put_secret ''
try 78 'empty' '"bearer_file":"odd"' '"bearer_file": odd is empty'
put_secret '\n'
try 78 'an empty line' '"bearer_file":"odd"' '"bearer_file": odd is empty'
put_secret 's3cret-t0ken\nX-Other: 1\n'
try 78 'two lines' '"bearer_file":"odd"' '"bearer_file": odd is not one line of printable ASCII'
put_secret 's3cret\0t0ken\n'
try 78 'a NUL' '"bearer_file":"odd"' '"bearer_file": odd is not one line of printable ASCII'
put_secret 's3cret-t0ken\r\n'
try 0 'a line of DOS' '"bearer_file":"odd"'
head -c 70000 /dev/zero | tr '\0' x >odd
try 78 'a large file' '"bearer_file":"odd"' '"bearer_file": odd is too large for a secret'
export T0KEN=s3cret-t0ken
try 0 'from the environment' '"bearer_env":"T0KEN"'
try 78 '... where it is not' '"bearer_env":"T1KEN"' '"bearer_env": the environment has no T1KEN'
try 0 'from a command' '"bearer_command":"echo s3cret-t0ken"'
try 78 '... that fails' '"bearer_command":"echo s3cret-t0ken; exit 3"' '"bearer_command": echo s3cret-t0ken; exit 3 failed'
try 78 '... that says nothing' '"bearer_command":":"' '"bearer_command": : is empty'
unset T0KEN
try 78 'two' '"bearer_file":"token","bearer_env":"X"' '"bearer_env": there is "bearer_file" already'
try 78 'none' '"header":"X-Key"' '"auth": says not where the secret is: "bearer_file" or others'
try 78 'a header and a bearer' '"bearer_file":"token","header":"X"' '"bearer_file": goes without "header" and "query"'
try 78 'nowhere to put it' '"file":"token"' '"file": needs "header" or "query", one of them'
try 78 'two places' '"file":"token","header":"X","query":"k"' '"file": needs "header" or "query", one of them'
try 78 'misspelled' '"bearer_flie":"token"' '"bearer_flie": unknown in "auth"; did you mean "bearer_file"?'
try 78 'no text' '"bearer_file":7' '"bearer_file": is not a text'
src "$ASC,\"auth\":\"token\""
exits 78 'no object' poll
is "$(cat err)" 'qpoll: s.json:1: "auth": is not an object' '... says so'
echo me:s3cret-t0ken >basic; chmod 600 basic
new '{"auth":"Authorization: Basic bWU6czNjcmV0LXQwa2Vu"}'
try 0 'basic' '"basic_file":"basic"'
new '{"auth":"X-Api-Key: s3cret-t0ken"}'
try 0 'a header' '"file":"token","header":"X-Api-Key"'
new '{"auth":"query key=s3cret-t0ken"}'
try 0 'a parameter' '"file":"token","query":"key"'
# It is in the pointers that the server gives, too, and must not be stored with them, nor be sent twice.
fresh
src "$(by desc),\"next\":\"link\",\"auth\":{\"file\":\"token\",\"query\":\"key\"},\"max_pages\":1"
exits 0 'a parameter that comes back in the link' poll
exits 0 '... goes on' poll
is "$(last)" '/items?offset=3&order=desc&limit=3&key=s3cret-t0ken' '... has it once'
src "$(by desc),\"next\":\"link\",\"auth\":{\"file\":\"token\",\"query\":\"key\"}"
mode '{"status":400,"body":"key s3cret-t0ken is bad"}'
poll 2>err
is "$(cat err)" "qpoll: s: $url/items: status 400: key *** is bad" '... nor shown if the server repeats it'
new "{\"auth\":\"query key=s3cret-t0ken\",\"next\":\"$url2/items?key=s3cret-t0ken\"}"
poll --reset; poll 2>>err
poll --history >>err; poll --history -j >>err; poll --status >>err
is "$(cat err out q.db q.db-wal 2>/dev/null | grep -ac s3cret) $(requests | cut -f2 | sort -u)" "0 ${url##*:}" 'no secret is printed or stored, nor sent to another origin'

# ---- the source file ----

fresh
new '{}'
src "$ASC"; cp s.json good.json; n=$(count)
file() {	# TEXT NAME MESSAGE
	printf '%s\n' "$1" >f.json
	shift
	exits 78 "$1" qpoll f.json
	is "$(cat err)" "qpoll: f.json$2" '... names file, line and key'
}
is_bad() {	# MEMBER MESSAGE: a member of its own line, in a source that is good otherwise
	key=${1#\"} key=${key%%\"*}
	{ sed "s/\"$key\":\(\"[^\"]*\"\|[0-9a-z]*\),\{0,1\}//; s/,}/}/; s/^{//; s/}\$//" good.json >rest; printf '{\n %s,\n%s\n}\n' "$1" "$(cat rest)"; } >f.json
	exits 78 "$1" qpoll f.json
	is "$(cat err)" "qpoll: f.json:2: \"$key\": $2" '... names file, line and key'
}
file '' 'empty' ":2: is not JSON: '[' or '{' expected near end of file"
file '{"name":"s",
"url":}' 'no JSON' ":2: is not JSON: unexpected token near '}'"
file '{"name":"s",
"name":"t"}' 'a member twice' ":2: is not JSON: duplicate object key near '\"name\"'"
file '[]' 'no object' ': is not a JSON object'
file '{}' 'nothing in it' ': "name" is missing; see man 5 qpoll'
file '{"name":"s"}' 'no url' ': "url" is missing; see man 5 qpoll'
exits 78 'a folder' qpoll sub
is "$(cat err)" 'qpoll: sub: Is a directory' '... says so'
head -c 1048577 /dev/zero | tr '\0' ' ' >f.json
exits 78 'too large' qpoll f.json
is "$(cat err)" 'qpoll: f.json: is larger than 1 MiB' '... says so'
is_bad '"nmae":"s"' 'unknown; did you mean "name"?'
is_bad '"lookbak":"1m"' 'unknown; did you mean "lookback"?'
is_bad '"zzz":1' 'unknown; see man 5 qpoll'
is_bad '"name":"a b"' "'a b' is not a name; a name is 1 to 64 of A-Z a-z 0-9 . _ -"
is_bad '"name":7' 'is not a text'
is_bad '"queue":"-x"' "'-x' is not the name of a queue"
is_bad '"rate":"a/b"' "'a/b' is not the name of a rate"
is_bad '"url":"ftp://x/"' 'not a URL: write https://HOST/PATH'
is_bad '"url":"https://me:pw@x/"' 'no user name or password in a URL'
is_bad '"url":"https://x/?since={cursor}"' 'placeholders stand in "query" or "body", not here'
is_bad '"whoami":"https://elsewhere.example/me"' 'is not a URL of the same origin as "url", where the secret goes'
is_bad '"probe":"https://elsewhere.example/all"' 'is not a URL of the same origin as "url", where the secret goes'
is_bad '"items":"items"' 'is not a JSON pointer such as /items (RFC 6901)'
is_bad '"id":"id"' 'is not a JSON pointer such as /id'
is_bad '"id":[]' 'is one pointer, or 1 to 4 of them'
is_bad '"cursor":"/a~2"' 'is not a JSON pointer such as /items (RFC 6901)'
is_bad '"cursor_type":"date"' 'is not one of: time, epoch, epoch_ms, epoch_us, int, decimal, none'
is_bad '"order":"up"' 'is not one of: asc, desc, any, opaque'
is_bad '"order":"opaque"' 'opaque: the token is the cursor, so "next" is token: or url:/POINTER and there is no "cursor"'
is_bad '"missing_cursor":"skip"' 'is not one of: fail, emit'
is_bad '"next":"links"' 'is not one of: link, url:/POINTER, token:/POINTER, page, offset, last, none'
is_bad '"next":"token"' 'is not one of: link, url:/POINTER, token:/POINTER, page, offset, last, none'
is_bad '"next":"link:/x"' 'is not one of: link, url:/POINTER, token:/POINTER, page, offset, last, none'
is_bad '"next":"token:/t"' 'nothing in "query" or "body" sends the {token}'
is_bad '"next":"page"' 'nothing in "query" or "body" sends the {page}'
is_bad '"next":"offset"' 'nothing in "query" or "body" sends the {offset}'
is_bad '"next":"last"' 'nothing in "query" or "body" sends the id of the last item, {token}'
is_bad '"final":"/x"' 'is neither token:/POINTER nor url:/POINTER'
is_bad '"final":"token:/x"' 'is for "order": "opaque" only'
is_bad '"size":0' 'is not a whole number from 1 to 1000000'
is_bad '"size":"3"' 'is not a whole number from 1 to 1000000'
is_bad '"size":1.5' 'is not a whole number from 1 to 1000000'
is_bad '"priority":10' 'is not a whole number from 0 to 9'
is_bad '"retries":101' 'is not a whole number from 0 to 100'
is_bad '"lookback":"soon"' 'is not a duration such as 5m'
is_bad '"lookback":60' 'is not a duration such as 5m'
is_bad '"stable":"yes"' 'is neither true nor false'
is_bad '"start":"banana"' "'banana' is not a time such as 2026-03-01T00:00:00Z; or it is \"all\" or \"newest\""
is_bad '"ok":"/ok"' 'is not an object'
is_bad '"gone":["410"]' 'has what is no HTTP status'
is_bad '"ignore":"/x"' 'is not an array of at most 16'
is_bad '"body":"x"' 'is neither an object nor an array'
src "$ASC"
file "$(sed 's/{cursor}/{cursr}/; s/"query":{/&\n/' good.json)" 'a placeholder that is none' ':2: "since": in "query": no placeholder {cursr}; there are {cursor} {token} {page} {offset} {size} {start} {from} {to} {sync}'
file "$(sed 's/{cursor}/x/; s/"order":"asc","query"/\n&/' good.json)" 'a query without the cursor' ':2: "order": asc: nothing in "query" or "body" asks from the {cursor} on'
file "$(sed 's/"start":"all",//' good.json)" 'no start' ': "start" is missing: a value to begin with, "all", or "newest"'
file "$(sed 's/"cursor":"[^"]*",//' good.json)" 'no cursor' ': "cursor" is missing, the pointer to the value in an item that grows; a list without one is "order": "any"'
file "$(sed 's/"insecure_http":true,//; s/"url"/\n&/' good.json)" 'http without permission' ':2: "url": http is not allowed: everybody on the way could read and change it; if that is meant: insecure_http of qpoll(5), --insecure-http of qcall(1)'
file "$(sed 's/"queue":"in",//' good.json)" 'no queue' ': "queue" is missing, where the items go; or give a command'
file "$(sed 's/"order":"asc",/"zone":"Europe\/Berlin",/' good.json)" 'a zone by name' ': "zone" is not UTC or an offset such as +02:00'
file "$(sed 's/"order":"asc",/"cursor_format":"%Y",/' good.json)" 'a format without a day' ': "cursor_format" is not s, ms, us, or a text with %Y %m %d, and %H %M %S %L as needed'
file "$(sed 's/"order":"asc",/"cursor_type":"int","lookback":"1m",/' good.json)" 'a span of what is no time' ': "cursor_format", "granularity", "shift" and "lookback" are for times only'
is "$(sql "SELECT count(*) FROM q_job; SELECT count(*) FROM q_poll WHERE cursor IS NOT NULL; SELECT count(*) FROM q_poll_run WHERE exit NOT IN (77, 78)" |
    tr '\n' ' ')$(count)" "0 0 0 $n" 'of all that only the failures reached the queue file, and nothing the API'
if [ "$(id -u)" -ne 0 ]; then
	chmod 0 s.json
	exits 77 'a file that may not be read' poll
	chmod 600 s.json
fi

# ---- the queue file ----

src "$ASC"
exits 0 'a good source' poll
ask "$url/_put" '[{"id":"h","stamp":1772323206000}]'
was=$(sql .dump)
sqlite3 q.db 'BEGIN IMMEDIATE' '.shell Q_BUSY_TIMEOUT=20ms qpoll s.json >out 2>err; echo $? >code'
is "$(cat code) $(sql .dump)" "75 $was" 'a file that stays busy: later'
like "$(cat err)" '^qpoll: s: .*q.db: busy for 20ms; another program holds it; try again later$' '... is said'
readonly='mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && exec qpoll s.json 2>&1'
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
	got=$(unshare -m sh -c "$readonly" "$PWD"; echo $?)
	is "$got $(sql .dump)" "qpoll: $Q_DB: no permission to write; check its owner and mode, and the mount
77 $was" 'a file that is read-only'
elif [ "$(id -u)" -eq 0 ]; then
	ok 0 'a file that is read-only # SKIP root may write, and there are no mounts of its own here'
else
	chmod 555 . && chmod 444 q.db
	poll 2>/dev/null
	is "$? $(sql .dump)" "77 $was" 'a file that is read-only'
	chmod 755 . && chmod 644 q.db
fi
(ulimit -f 0; poll 2>&1 >/dev/null; echo "exit $?") | cat >err
is "$(sed -n 's/^exit //p' err) $(sql .dump)" "74 $was" 'a full disk'
like "$(cat err)" '^qpoll: .*q.db: ' '... is said'
exits 0 'with room' poll
is "$(letters)" abcdefgh '... nothing is missing'
done_testing
