# lib.sh - what every test starts with:  . "${0%/*}/lib.sh"
#
# A directory of its own as the working directory, removed at the end; a clock that stands
# still; no setting of the caller's.  The functions print TAP for prove(1).
# shellcheck shell=sh

# Signals that the caller ignores (nohup, a background job) would stay ignored, and some tests send them.
[ -n "$T_DEFAULTS" ] || T_DEFAULTS=1 exec perl -e '$SIG{$_} = "DEFAULT" for qw(HUP INT QUIT PIPE TERM CHLD); exec @ARGV' sh "$0" "$@"
unset T_DEFAULTS
t=$(cd "${0%/*}" && pwd) || exit 1	# this directory, for files that lie beside a test
for _name in $(env | sed -n 's/^\(Q_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$_name"; done
unset _name XDG_STATE_HOME NO_COLOR
umask 022
_n=0 _plan='' _nl='
'
_dir=$(mktemp -d "${TMPDIR:-/tmp}/q-test.XXXXXX") && cd "$_dir" || exit 1
trap 'cd / && chmod -R u+rwX "$_dir" && rm -rf "$_dir"' EXIT
trap 'exit 1' HUP INT PIPE TERM
export t PATH="${t%/*}/cmd:$PATH" TZ=UTC LC_ALL=C HOME="$_dir" Q_DB="$_dir/q.db" Q_NOW=2026-06-02T12:00:00Z

plan() { _plan=$1; echo "1..$1"; }

# The last line of a test that has no plan.
done_testing() { [ -n "$_plan" ] || echo "1..$_n"; }

skip_all() { echo "1..0 # SKIP $1"; exit 0; }

# ok STATUS NAME: passes if STATUS is 0, as in: test -s out; ok $? 'there is output'
ok() {
	_n=$((_n + 1))
	if [ "$1" -eq 0 ]; then echo "ok $_n - $2"
	else echo "not ok $_n - $2"; fi
}

_say() { printf '%s\n' "$2" | sed "s/^/#  $1 /"; }	# a comment, line by line

is() {	# GOT WANT NAME
	if [ "$1" = "$2" ]; then ok 0 "$3"
	else ok 1 "$3"; _say ' got:' "$1"; _say 'want:' "$2"; fi
}

like() {	# GOT REGEX NAME; an extended regular expression that some line of GOT matches
	if grep -Eq -e "$2"; then ok 0 "$3"
	else ok 1 "$3"; _say ' got:' "$1"; _say 'like:' "$2"; fi <<-END
	$1
	END
}

# exits CODE NAME CMD...: what it printed is left in ./out and ./err
exits() {
	_want=$1 _name=$2 _got=0
	shift 2
	"$@" >out 2>err || _got=$?
	if [ "$_got" -eq "$_want" ]; then ok 0 "$_name"
	else
		ok 1 "$_name"
		_say exit: "$_got, not $_want, of: $*"
		_say ' out:' "$(head -c 2000 out | tr -d '\0')"
		_say ' err:' "$(head -c 2000 err | tr -d '\0')"
	fi
}

# said WANT [WHAT]: out and err together, a few lines; read here, since the start of cat(1) costs more than a test.
said() {
	_got=
	for _f in out err; do
		while IFS= read -r _line || [ -n "$_line" ]; do _got="$_got$_nl$_line"; done <"$_f"
	done
	is "${_got#"$_nl"}" "$1" "... ${2-with one line}"
}

# says REGEX: err is one line, which matches.
says() {
	_line='' _rest=''
	{ IFS= read -r _line && ! IFS= read -r _rest && [ -z "$_rest" ]; } <err
	ok $? '... in one line'
	like "$_line" "$1" '... that says why'
}

# The second door: what the file holds, not what the programs say.
sql() { sqlite3 -readonly -cmd '.timeout 10000' "$Q_DB" "$1"; }

# claim_of [FILE]: the claims of records as qclaim prints them; jq(1) takes ten times as long to start.
claim_of() { sed 's/^{"id":[0-9]*,"claim":"\([^"]*\)".*/\1/' "$@"; }

# unchanged CODE NAME CMD...: exits, and the file holds what it held
unchanged() {
	_before=$(sql .dump)
	exits "$@"
	[ "$(sql .dump)" = "$_before" ]
	ok $? '... and changes nothing'
}

# counted [NAME]: the counters of finished jobs agree with the rows
counted() {
	is "$(qls --counts | cut -f1-7)" "$(sql "SELECT queue, sum(state = 'pending'), sum(state = 'claimed'), sum(state = 'failed'),
	    sum(state = 'done'), sum(state = 'dead'), sum(state = 'cancelled') FROM q_job GROUP BY queue ORDER BY queue" | tr '|' '\t')" \
	    "${1-... and counted}"
}

# faulty FILE SED-COMMAND: house/t/storm/client with a fault put into lib/FILE; the rest is as it was built, and not built again.
faulty() {
	if [ ! -d house ]; then
		mkdir house house/t
		cp -Rp "$t/../Makefile" "$t/../lib" "$t/../cmd" house
		cp -Rp "$t/storm" house/t
		[ ! -e "$t/../.flags" ] || cp -p "$t/../.flags" house
	fi
	cp house/lib/"$1" kept
	sed "$2" kept >house/lib/"$1"
	! cmp -s kept house/lib/"$1" || echo "# the fault is not in $1 any more"
	make -s -C house t/storm/client >made 2>&1 || sed 's/^/# /' made
	cp kept house/lib/"$1"
}

# until_ok CMD...: waits for it to succeed; the limit is for machines that fail
until_ok() {
	_i=0
	until "$@" 2>/dev/null; do
		[ $((_i += 1)) -lt 3000 ] || { echo "# never: $*"; return 1; }
		sleep 0.01
	done
}

# begin CMD...: runs it as $pid, its output in ./jout and ./jerr, and returns when it has made ./go.
begin() {
	rm -f go end
	"$@" >jout 2>jerr & pid=$!
	until_ok test -e go
}
finish() { touch end; wait "$pid"; }	# tells it to end by ./end; its exit status
gone() { ! kill -0 "$1"; }

# busy: the file is so until fd 9 is closed.
busy() {
	rm -f held
	[ -p fifo ] || mkfifo fifo
	{ echo 'BEGIN IMMEDIATE; SELECT 1;'; cat fifo; } | sqlite3 -cmd '.timeout 10000' "$Q_DB" >held &
	exec 9>fifo
	until_ok test -s held
}

# Those of the processes in ./pids that still run; a zombie is only a number.
alive() {
	while read -r _p; do ps -o pid= -o stat= -p "$_p"; done <pids | awk '$2 !~ /^Z/ { print $1 }'
}
none_alive() { [ -z "$(alive)" ]; }
children() { ps -A -o pid= -o ppid= | awk -v p="$1" '$2 == p { print $1 }'; }
taken() { ! grep -q '^ShdPnd:.*[1-9a-f]' "/proc/$1/status"; }	# no signal is pending
lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }	# FILE N: so many at least

# serve: starts t/serve, which dies with the test; $url and $url2 are two origins of it.
serve() {
	"$t/serve" >port 2>serve.err &
	until_ok lines port 1 || { cat serve.err; exit 1; }
	read -r _p _p2 <port
	export url="http://127.0.0.1:$_p" url2="http://127.0.0.1:$_p2"
}
ask() { "$t/serve" "$@"; }	# [-i] [-H 'NAME: VALUE'] URL [BODY]
mode() { ask "$url/_mode" "$1"; }	# the switches of t/serve.c, added to those in force
rows() { ask "$url/_set" "$1"; }	# '[{"id":"a","stamp":1772323200000}, ...]' instead of all that are there
scripted() { ask "$url/_script" "$1"; }
requests() { ask "$url/_log"; }
