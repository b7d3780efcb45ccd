#!/bin/sh
# qdone and qfail: every way to settle a claim, and that a token which is not the last changes nothing.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

word() { sed 's/.*"claim":"\([^"]*\)".*/\1/'; }
claim() { qclaim -c "${2:-1}" "$1" | word; }
dump() { sql .dump; }
job() { sql "SELECT state, spent, lost, deferred, due_ms - 1780401600000, ready_ms - 1780401600000, lease_ms, finished_ms - 1780401600000 FROM q_job WHERE id = $1"; }
last() { sql "SELECT outcome, state, attempt, fence, reason, count, result, exit, signal FROM q_attempt WHERE job = $1 ORDER BY id DESC LIMIT 1"; }
# Commits in the log: frames that carry the size of the file.
commits() { perl -0777 -ne 'print scalar grep { unpack "N", substr $_, 4, 4 } unpack "x32(a4120)*", $_' q.db-wal; }
fresh() { rm -f q.db*; qinit; }
# unchanged CODE NAME CMD...
unchanged() {
	before=$(dump)
	exits "$@"
	[ "$(dump)" = "$before" ]
	ok $? '... and changes nothing'
}

qinit

# ---- done ----

qadd -q mail one
c=$(claim mail)
exits 0 'qdone' qdone "$c"
is "$(cat out err)" '' '... is silent'
is "$(job 1)" 'done|0|0|0|0|||0' '... the job is done'
is "$(last 1)" 'done|done|1|1|||||' '... the ledger knows'
is "$(sql 'SELECT job, prev, generation, queue, type, due_ms, zone, started_ms, finished_ms, worker = (SELECT worker FROM q_job) FROM q_attempt')" \
    '1||1|mail||1780401600000||1780401600000|1780401600000|1' '... all of it'
unchanged 0 'qdone again' qdone "$c"
is "$(cat out err)" '' '... silently'
unchanged 0 'qdone twice in one call' qdone "$c" "$c"
for how in '--in 1h' --dead --release '--defer 1h'; do
	# shellcheck disable=SC2086
	unchanged 76 "done, then qfail $how" qfail $how "$c"
	is "$(cat err)" "qfail: claim $c: not held; job 1 is done; nothing changed; see qls 1" '... and says what it is'
done
unchanged 76 'done, then qrenew' qrenew "$c"

# ---- failed, every way ----

fails() {	# NAME OPTIONS JOB-AFTER LEDGER-AFTER
	qadd -q "q$1" p
	id=$(sql 'SELECT max(id) FROM q_job')
	c=$(claim "q$1")
	# shellcheck disable=SC2086
	exits 0 "qfail $2" qfail $2 "$c"
	is "$(cat out err)" '' '... is silent'
	is "$(job "$id")" "$3" '... the job'
	is "$(last "$id")" "$4" '... and the ledger'
	# shellcheck disable=SC2086
	unchanged 0 '... and again' qfail $2 "$c"
	unchanged 76 '... then qdone' qdone "$c"
}
fails a '--in 90s' 'failed|1|0|0|90000|90000||' 'failed|failed|1|1|||||'
fails b '--in 0s -m no' 'failed|1|0|0|0|0||' 'failed|failed|1|1|no||||'
fails c '--at 2026-06-03T08:30:00.250+02:00' 'failed|1|0|0|66600250|66600250||' 'failed|failed|1|1|||||'
fails d '--at @1780401660' 'failed|1|0|0|60000|60000||' 'failed|failed|1|1|||||'
fails e '--at +1m30s' 'failed|1|0|0|90000|90000||' 'failed|failed|1|1|||||'
fails f '--at 2026-06-01T12:00:00Z' 'failed|1|0|0|-86400000|-86400000||' 'failed|failed|1|1|||||'
fails g '--dead --message why' 'dead|1|0|0|0|||0' 'failed|dead|1|1|why||||'
fails h '--defer 40s -m busy' 'pending|0|0|1|40000|40000||' 'deferred|pending|1|1|busy||||'
fails i '--release' 'pending|0|0|0|0|0||' 'released|pending|1|1|||||'

local_time() {	# NAME DUE-OFFSET ARGS...
	name=$1 due=$2
	shift 2
	qadd -q local p
	c=$(claim local)
	exits 0 "$name" qfail "$@" "$c"
	is "$(sql 'SELECT due_ms - 1780401600000 FROM q_job ORDER BY id DESC LIMIT 1')" "$due" '... is then'
}
local_time 'a local time with its zone' 66600000 --at '2026-06-03 08:30' --tz Europe/Berlin
local_time 'tomorrow in a zone' 72000000 --tz America/New_York --at 'tomorrow 04:00'

# Without a time: full jitter, at most the first backoff.
qadd -q --backoff 10s..1m back p
c=$(claim back)
exits 0 'qfail without a time' qfail "$c"
due=$(sql "SELECT due_ms - 1780401600000 FROM q_job WHERE queue = 'back'")
[ "$due" -ge 0 ] && [ "$due" -le 10000 ]
ok $? "... is due within the first backoff ($due ms)"

# What the first one did stands: a second one that wants more is no success.
qadd -q more p
c=$(claim more)
qfail --in 1h "$c"
unchanged 76 'failed, then qfail --dead' qfail --dead "$c"
unchanged 76 'failed, then qfail --defer' qfail --defer 1h "$c"
unchanged 76 'failed, then qfail --release' qfail --release "$c"

fresh
qadd -q mail one
c=$(claim mail)
for bad in '--in 5' '--in -5s' '--at tomorrow' '--at 10:00' '--tz Mars/Base --in 1s' '--defer x' '--in 1s --dead' \
    '--dead --release' '--release --defer 1s' '--at +1s --in 1s' '--count 3' '--release=1'; do
	# shellcheck disable=SC2086
	unchanged 64 "qfail $bad" qfail $bad "$c"
done
unchanged 64 'a local time without a zone' qfail --at '2026-06-03 08:30' "$c"
unchanged 64 'a local time that a clock change skips' qfail --at '2026-03-29 02:30' --tz Europe/Berlin "$c"
for bad in '--count -1' '--count x' '--count 1.5' '--count' '-m x' '--in 1s'; do
	# shellcheck disable=SC2086
	unchanged 64 "qdone $bad" qdone $bad "$c"
done

# ---- what a run leaves: result, count, reason ----

left() { qls -j "$1" | sed 's/,"history":.*//; s/.*"outcome":/"outcome":/'; }
n=0
leaves() {	# NAME WANT CMD ARGS...
	name=$1 want=$2
	shift 2
	n=$((n + 1))
	qadd -q leaves "$n"
	c=$(claim leaves)
	exits 0 "$name" "$@" "$c"
	is "$(left "${c%%.*}" | sed 's/"worker":"[^"]*"/"worker":0/')" "$want" '... is kept'
}
leaves 'a result that is text' '"outcome":"done","exit":null,"signal":null,"worker":0,"count":null,"reason":null,"result":"12 mails","blocked_by":null' \
    qdone -r '12 mails'
leaves 'a result that is JSON, a count' '"outcome":"done","exit":null,"signal":null,"worker":0,"count":12,"reason":null,"result":{"n":1.0},"blocked_by":null' \
    qdone --count 12 --result '{ "n": 1.0 }'
leaves 'a count of none' '"outcome":"done","exit":null,"signal":null,"worker":0,"count":0,"reason":null,"result":null,"blocked_by":null' qdone --count=0
leaves 'the largest count' '"outcome":"done","exit":null,"signal":null,"worker":0,"count":9223372036854775807,"reason":null,"result":null,"blocked_by":null' \
    qdone --count 9223372036854775807
leaves 'an empty result' '"outcome":"done","exit":null,"signal":null,"worker":0,"count":null,"reason":null,"result":"","blocked_by":null' qdone -r ''
bytes=$(printf 'a\377\tb\033[1m\nc')
leaves 'a result of any bytes' '"outcome":"done","exit":null,"signal":null,"worker":0,"count":null,"reason":null,"result_base64":"Yf8JYhtbMW0KYw==","blocked_by":null' \
    qdone -r "$bytes"
is "$(sql 'SELECT hex(result) FROM q_attempt ORDER BY id DESC LIMIT 1')" 61FF09621B5B316D0A63 '... as it was'
leaves 'a reason of any bytes' '"outcome":"failed","exit":null,"signal":null,"worker":0,"count":null,"reason":"a\ufffd\tb\u001b[1m\nc","result":null,"blocked_by":null' \
    qfail --in 1h -m "$bytes"
left "${c%%.*}" | sed 's/^/{/; s/$/}/' | jq -e .reason >/dev/null
ok $? '... which jq can read'
big=$(perl -e 'print "r" x 100000')
n=$((n + 1))
qadd -q leaves big
exits 0 'a result of 100,000 bytes' qdone -r "$big" "$(claim leaves)"
is "$(sql 'SELECT length(result) FROM q_attempt ORDER BY id DESC LIMIT 1')" 100000 '... is whole'

# ---- stale tokens ----

fresh
seq 1 3 | qadd -q --lines mail
old=$(claim mail)
qfail --in 0s "$old"
new=$(claim mail)
other=${new%.*}.$(printf '%08x' $((0x${new##*.} ^ 1)))
stale() {	# TOKEN WHY NAME
	for cmd in qdone 'qfail --in 1s' 'qfail --dead' 'qfail --release' 'qfail --defer 1s' qrenew; do
		# shellcheck disable=SC2086
		unchanged 76 "$cmd with $3" $cmd "$1"
		is "$(cat out err)" "${cmd%% *}: claim $1: $2" '... and says why'
	done
}
is "${old%.*} ${new%.*}" '1.1 1.2' 'a claim taken twice has two tokens'
stale "$old" 'lost; job 1 is claimed, its last claim is number 2; nothing changed; see qls 1' 'the token of an earlier claim'
stale "$other" 'not held; job 1 is claimed; nothing changed; see qls 1' 'another random half'
stale "1.3.${new##*.}" 'lost; job 1 is claimed, its last claim is number 2; nothing changed; see qls 1' 'a claim that is still to come'
stale 2.1.00000000 'lost; job 2 is pending, its last claim is number 0; nothing changed; see qls 2' 'a job that nobody has claimed'
stale 99.1.00000000 "no such job in $Q_DB; nothing changed; see -d and Q_DB" 'a job that is not there'
exits 0 'the real one' qdone "$new"
for dup in "$old" "$other"; do
	unchanged 76 'afterwards, too' qdone "$dup"
done

# A claim that was taken away, before anybody else has it.
fresh
qadd -q mail 1
qadd -q --in 1h mail 2
old=$(Q_NOW=2026-06-02T14:00:00Z claim mail 2 | head -n 1)
export Q_BOOT=b1:1300000
Q_NOW=2026-06-02T11:00:00Z qclaim mail		# nothing is due then, but ended claims are taken back
is "$(job 1 | cut -d'|' -f1)" failed 'a claim whose lease is over is taken back'
stale "$old" 'not held; job 1 is failed; nothing changed; see qls 1' 'a claim that was taken away'

# ... but one that nobody took away still settles, however long that was.
fresh
export Q_BOOT=b1:1000000
seq 1 4 | qadd -q --lines mail
claim mail 4 >words
late() { Q_BOOT=$1 exits 0 "$2" $3 "$(sed -n "$4p" words)"; }
late b1:999999999 'the lease is over and nobody took it: qdone' qdone 1
late b1:999999999 '... qfail' 'qfail --in 1s' 2
late b2:5 'another boot, and nobody claimed since: qdone' qdone 3
late b1:999999999 'qrenew' qrenew 4
is "$(sql "SELECT group_concat(state, ' ') FROM q_job")" 'done failed done claimed' '... all settled'

# ---- many ----

fresh
seq 1 9 | qadd -q --lines mail
claim mail 9 >words
qfail --in 0s "$(sed -n 4p words)"
qclaim mail >again
before=$(commits)
# shellcheck disable=SC2046
exits 76 'nine claims, one of them stale' qdone --count 2 $(cat words)
is "$(cat err)" "qdone: claim $(sed -n 4p words): lost; job 4 is claimed, its last claim is number 2; nothing changed; see qls 4" '... which is named'
is "$(sql "SELECT group_concat(state, ' ') FROM q_job")" 'done done done claimed done done done done done' '... the others are settled'
is "$(($(commits) - before))" 1 '... in one transaction'
is "$(sql 'SELECT sum(count) FROM q_attempt')" 16 '... each with what was said'
is "$(sql "SELECT n FROM q_count WHERE queue = 'mail' AND state = 'done'")" 8 '... and counted'
before=$(commits)
# shellcheck disable=SC2046
exits 76 'again' qdone $(cat words)
is "$(commits)" "$before" '... writes nothing'

fresh
seq 1 4 | qadd -q --lines mail
claim mail 4 >words
exits 65 'an operand that is no claim' qdone "$(sed -n 1p words)" 2.1 "$(sed -n 3p words)"
is "$(cat err)" "qdone: '2.1' is not a claim such as 42.3.9f1c2ab0" '... is named'
is "$(sql "SELECT group_concat(state, ' ') FROM q_job")" 'done claimed done claimed' '... the others are settled'
exits 76 'one that is no claim, one that is stale' qdone x 9.9.99999999 "$(sed -n 4p words)"
is "$(sql 'SELECT state FROM q_job WHERE id = 4')" 'done' '... the other is settled'
c=$(sed -n 2p words)
for bad in '' . 2 2.1 "2..${c##*.}" ".1.${c##*.}" "$c." "$c.1" " $c" "x$c" "-$c" "${c}0" "${c%?}" "2.1.$(echo "${c##*.}" | tr a-f A-F)G" \
    "0.1.${c##*.}" "2.0.${c##*.}" "+2.1.${c##*.}" "9007199254740992.1.${c##*.}" "99999999999999999999.1.${c##*.}"; do
	unchanged 65 "'$bad' is no claim" qdone -- "$bad"
done

# ---- standard input ----

unchanged 64 'no CLAIM' sh -c 'yes | qdone'
is "$(cat err)" "qdone: no CLAIM; '-' reads them from standard input; see 'qdone --help'" '... is not a read'
# shellcheck disable=SC2016
rest=$(printf 'a\nb\n' | { qdone "$(sed -n 1p words)"; cat; })
is "$rest" "$(printf 'a\nb')" 'with operands standard input is left alone'

fresh
seq 1 8 | qadd -q --lines mail
qclaim -c 8 mail >records
word <records >words
{
	sed -n 1p records			# a record as qclaim prints it
	sed -n 2p words				# a word
	echo
	sed -n 3p words | sed 's/$/\r/'		# as an editor of another system leaves it
	sed -n 4p records | jq -c '{claim}'	# the least
	sed -n 5p records | jq -c '. + {note: "x", claim: .claim}'
	sed -n 6p words | tr -d '\n'		# the last one without its newline
} >input
exits 0 'words and records' qdone - <input
is "$(cat out err)" '' '... silently'
is "$(sql "SELECT group_concat(state, ' ') FROM q_job")" 'done done done done done done claimed claimed' '... are settled'
{
	echo '{"id":7}'
	echo 'no claim'
	echo '{"claim":null}'
	printf '7.1.\000\n'
	echo '{"claim":"7.1'
	sed -n 7p words
	perl -e 'print "x" x 9000000, "\n"'
	echo 1.9.12345678
} >input
exits 76 'malformed lines between them, and a stale one' qfail --release - <input
is "$(grep -c 'neither a claim' err) $(grep -c 'claim 1.9.12345678: lost' err)" '6 1' '... are all named'
is "$(sed -n 's/^qfail: stdin:\([0-9]*\): .*/\1/p' err | tr '\n' ' ')" '1 2 3 4 5 7 ' '... by their lines'
is "$(sql "SELECT group_concat(state, ' ') FROM q_job WHERE id > 6")" 'pending claimed' '... the rest is done'
{ echo nonsense; sed -n 8p words; } >input
exits 65 'a malformed line alone' qdone - <input
is "$(cat err)" 'qdone: stdin:1: neither a claim such as 42.3.9f1c2ab0 nor a job record with one' '... is 65'
is "$(sql 'SELECT state FROM q_job WHERE id = 8')" 'done' '... the rest is done'
unchanged 0 'no line at all' qdone - </dev/null
unchanged 0 'blank lines alone' sh -c 'printf "\n\n" | qdone -'
unchanged 74 'standard input that cannot be read' sh -c 'qdone - <.'
unchanged 74 'standard input that is closed' sh -c 'qdone - <&-'

# While standard input is slow, nothing is locked.
fresh
seq 1 2 | qadd -q --lines mail
claim mail 2 >words
mkfifo pipe
qdone - <pipe 2>err &
pid=$!
exec 5>pipe
sed -n 1p words >&5
exits 0 'another program writes meanwhile' env Q_BUSY_TIMEOUT=5s qadd -q other x
sed -n 2p words >&5
exec 5>&-
wait "$pid"
is "$? $(cat err)" '0 ' 'qdone at the end of it'
is "$(sql "SELECT group_concat(state, ' ') FROM q_job")" 'done done pending' '... settles all'

# ---- release ----

fresh
qadd -q --attempts 3 mail x
qfail --in 0s "$(claim mail)"
qfail --defer 0s "$(claim mail)"
before=$(sql 'SELECT spent, lost, deferred, defer_from_ms, due_ms, attempts FROM q_job')
for _ in 1 2 3 4; do
	c=$(claim mail)
	Q_NOW=2026-06-02T13:00:00Z qfail --release "$c"
done
is "$(sql 'SELECT spent, lost, deferred, defer_from_ms, due_ms, attempts FROM q_job')" "$before" 'released four times: all is as it was'
is "$(sql 'SELECT state FROM q_job')" pending '... and pending'
is "$(sql 'SELECT group_concat(attempt, " ") FROM q_attempt')" '1 2 2 2 2 2' '... at the same attempt'
is "$(sql 'SELECT group_concat(fence, " ") FROM q_attempt')" '1 2 3 4 5 6' '... each claim with a number of its own'
unchanged 0 'release twice' qfail --release "$c"

# The history hangs together.
is "$(sql "WITH RECURSIVE h(id, prev, n) AS (SELECT a.id, a.prev, 1 FROM q_attempt a JOIN q_job j ON j.last_attempt = a.id
 UNION ALL SELECT a.id, a.prev, n + 1 FROM h JOIN q_attempt a ON a.id = h.prev) SELECT max(n), group_concat(id, ' ') FROM h")" \
    '6|6 5 4 3 2 1' 'every attempt leads to the one before it'
done_testing
