#!/bin/sh
# The wall clock may stand anywhere and jump: a claim does not care, and only due times follow it.
. "${0%/*}/lib.sh"

word() { sed 's/.*"claim":"\([^"]*\)".*/\1/'; }
claim() { qclaim -c "${2:-1}" "$1" | word; }
at() { export Q_BOOT="b1:$1"; }
fresh() { rm -f q.db*; qinit; at 1000000; }
NOON=2026-06-02T12:00:00Z
AHEAD=2026-06-03T12:00:00Z
BEHIND=2026-06-01T12:00:00Z

# ---- claims ----

for step in "$AHEAD" "$BEHIND" 2036-01-01T00:00:00Z 1970-01-01T00:00:00Z; do
	fresh
	export Q_NOW=$NOON
	seq 1 3 | qadd -q --lines mail
	claim mail 3 >words
	export Q_NOW="$step"
	at 1299999
	is "$(claim mail)" '' "at $step a claim of noon still holds"
	exits 0 '... can be renewed' qrenew "$(sed -n 1p words)"
	is "$(sql 'SELECT lease_ms FROM q_job WHERE id = 1')" 1599999 '... for five minutes of the boot clock'
	exits 0 '... and settled' qdone "$(sed -n 2p words)"
	is "$(sql 'SELECT state FROM q_job WHERE id = 2')" 'done' '... as if nothing had happened'
	at 1300000
	qclaim -t none mail
	is "$(sql 'SELECT outcome FROM q_attempt WHERE job = 3')" lost '... and ends when it would have'
	at 1600000
	qclaim -t none mail
	is "$(sql "SELECT count(*) FROM q_attempt WHERE outcome = 'lost'")" 2 '... the renewed one, too'
done

fresh
export Q_NOW=$NOON
qadd -q mail x
export Q_NOW=$AHEAD
c=$(claim mail)
export Q_NOW=$BEHIND
qdone "$c"
is "$(sql 'SELECT (started_ms - due_ms) / 3600000, (finished_ms - started_ms) / 3600000 FROM q_attempt')" '24|-48' 'the ledger says what the clock said'
is "$(qls 1 | sed -n 's/.*\(late .*\)  by.*/\1/p')" 'late 1d  ran 0s' '... and qls shows no time below none'
is "$(qls 1 | sed -n 's/^settled *//p')" '2026-06-01T12:00:00.000Z (now)' '... nor loses its way'

# ---- due times ----

fresh
export Q_NOW=$NOON
qadd -q mail now
qadd -q --in 12h mail tonight
qadd -q --in 36h mail tomorrow
export Q_NOW=$BEHIND
is "$(claim mail 9)" '' 'a day behind, what was due is due tomorrow'
export Q_NOW=$AHEAD
is "$(claim mail 9 | cut -d. -f1 | tr '\n' ' ')" '1 2 ' 'a day ahead, what falls due meanwhile is due'
fresh
export Q_NOW=$AHEAD
qadd -q mail x
export Q_NOW=$BEHIND
is "$(script -qec qls /dev/null </dev/null | tr -d '\r' | tail -n 1)" \
    '1       mail       pending   in 2d         0/20   -            x' 'added by a clock that was ahead'
is "$(sql 'SELECT (due_ms - added_ms) FROM q_job')" 0 '... it was due at once'

# A retry counts from the clock at its failure.
fresh
export Q_NOW=$NOON
qadd -q mail x
c=$(claim mail)
export Q_NOW=$BEHIND
qfail --in 1m "$c"
is "$(sql 'SELECT due_ms / 1000 FROM q_job')" "$((1780315200 + 60))" 'a retry is due after the failure, by the clock of that time'

# The deferral budget is of the wall clock, too: behind, nothing is used up.
fresh
export Q_NOW=$AHEAD
qadd -q mail x
qfail --defer 0s "$(claim mail)"
sqlite3 q.db 'UPDATE q_job SET due_ms = 1, ready_ms = 1'
export Q_NOW=$BEHIND
qfail --defer 0s "$(claim mail)"
is "$(sql 'SELECT state, deferred, spent FROM q_job')" 'pending|2|0' 'a clock that went back uses up no patience'

# Ids and fences follow no clock.
is "$(qadd mail y) $(claim mail | cut -d. -f1,2)" '2 1.3' 'ids and claims go on'

# ---- a clock that another library shifts ----

if ! command -v faketime >/dev/null; then skip='faketime is not installed'
elif ! ldd "$(command -v qclaim)" 2>/dev/null | grep -q libc; then skip='the programs are static'
elif grep -q __asan_init "$(command -v qclaim)"; then skip='a sanitizer wants to be loaded first'
else skip=; fi
if [ -n "$skip" ]; then
	ok 0 "real steps of the clock # SKIP $skip"
else
	fresh
	unset Q_NOW Q_BOOT
	export DONT_FAKE_MONOTONIC=1 FAKETIME_DONT_FAKE_MONOTONIC=1
	qadd -q mail x
	c=$(faketime '-1 day' qclaim mail | word)
	is "$c" '' 'a day behind: not due'
	c=$(faketime '+1 day' qclaim mail | word)
	is "${c%.*}" 1.1 'a day ahead: due'
	is "$(qclaim -c 9 mail) $(faketime '+2 days' qclaim -c 9 mail) $(faketime '-2 days' qclaim -c 9 mail)" '  ' '... and claimed, wherever the clock stands'
	exits 0 '... until it is settled' qdone "$c"
fi
done_testing
