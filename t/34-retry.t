#!/bin/sh
# Retries: how long the backoff is, and when there is none any more.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

word() { sed 's/.*"claim":"\([^"]*\)".*/\1/'; }
claim() { qclaim -c "${2:-1}" "$1" | word; }
fresh() { rm -f q.db*; qinit; now 0; }
# now SECONDS[.mmm]: that long after noon
now() { Q_NOW=$(perl -e 'my $ms = int(1780401600000 + 1000 * $ARGV[0] + .5); my @t = gmtime int $ms / 1000;
	printf "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", $t[5] + 1900, $t[4] + 1, @t[3, 2, 1, 0], $ms % 1000' "$1"); export Q_NOW; }
job() { sql 'SELECT state, spent, deferred, due_ms - 1780401600000 FROM q_job'; }
ledger() { sql 'SELECT outcome, state, attempt, reason FROM q_attempt ORDER BY id DESC LIMIT 1'; }

# ---- full jitter ----

fresh
seq 1 4000 | qadd -q --backoff 10s..1h --lines mail
qclaim -c 4000 mail | qfail -m refused -
spread() { sql "SELECT $1 FROM (SELECT due_ms - 1780401600000 AS wait FROM q_job)"; }
is "$(sql 'SELECT state, spent, count(*) FROM q_job GROUP BY 1, 2')" 'failed|1|4000' 'of 4,000 failed at once'
is "$(spread 'min(wait) >= 0 AND max(wait) <= 10000')" 1 '... none waits longer than the base'
# A part of a uniform spread has 400 of them, give or take 19; 7 times that is no chance.
is "$(spread 'sum(wait BETWEEN 1 AND 1000) BETWEEN 266 AND 534')" 1 '... some come at once'
is "$(sql 'SELECT count(*), min(n) > 266, max(n) < 534 FROM (SELECT count(*) AS n FROM q_job GROUP BY (due_ms - 1780401600000 - 1) / 1000)')" '10|1|1' \
    '... and in each second as many as in any other'
is "$(spread 'count(DISTINCT wait) > 2500')" 1 '... spread over the milliseconds'
is "$(sql "SELECT count(*) FROM q_attempt WHERE reason = 'refused' AND outcome = 'failed' AND state = 'failed'")" 4000 '... each with its reason'

# Doubled each time, up to the cap; by default 5s..10m and 20 attempts.
fresh
seq 1 150 | qadd -q --lines mail
bounds= n=1
for max in 5 10 20 40 80 160 320 600 600 600 600 600 600 600 600 600 600 600 600; do
	now $((n * 1000))
	qclaim -c 200 mail | qfail -m "try $n" -
	got=$(sql "SELECT sum(state = 'failed' AND spent = $n AND due_ms - 1780401600000 BETWEEN $n * 1000000 AND ($n * 1000 + $max) * 1000)
		|| (max(due_ms) - 1780401600000 - $n * 1000000 > $max * 500) FROM q_job")
	[ "$got" = 1501 ] || bounds="$bounds $n:$max:$got"
	n=$((n + 1))
done
is "$bounds" '' '19 failures by default: within 5s, 10s, 20s ... 10m, and beyond the half of it'
now 20000
qclaim -c 200 mail | qfail -m 'try 20' -
is "$(sql 'SELECT state, spent, ready_ms, count(*) FROM q_job GROUP BY 1, 2, 3')" 'dead|20||150' 'the twentieth failure is the last'
is "$(sql "SELECT count(*), sum(reason = 'try ' || attempt), sum(state = 'dead') FROM q_attempt")" '3000|3000|150' '... and all are in the ledger'
now 99999999
is "$(claim mail)" '' '... a dead job never comes again'
# The pages say how long a policy lasts: about an hour for this one.
is "$(sql "SELECT avg(last - first) BETWEEN 3300 AND 4500 FROM (SELECT sum(wait) AS last, 0 AS first FROM
 (SELECT job, (lead(due_ms) OVER (PARTITION BY job ORDER BY id) - finished_ms) / 1000.0 AS wait FROM q_attempt) GROUP BY job)")" 1 \
    'the waits of the default policy are about an hour in all'

policy() {	# NAME POLICY SPENT LOW HIGH: the wait of a job that fails after SPENT others, in ms
	fresh
	# shellcheck disable=SC2086
	seq 1 100 | qadd -q --attempts 1000000 $2 --lines mail
	sqlite3 q.db "UPDATE q_job SET spent = $3"
	qclaim -c 100 mail | qfail -
	is "$(spread "count(*) || ' ' || (min(wait) >= $4) || (max(wait) <= $5) || (max(wait) >= $5 / 2)")" '100 111' "$1"
}
policy '--backoff 0s: no wait'                    '--backoff 0s..1s' 0 0 0
policy '--backoff of a millisecond'               '--backoff 1ms..1ms' 0 0 1
policy '... which doubles'                        '--backoff 1ms..1h' 10 0 1024
policy 'a cap that is no power of two'            '--backoff 3s..10s' 2 0 10000
policy 'a cap that is reached'                    '--backoff 3s..10s' 1 0 6000
policy 'the 40th failure'                         '--backoff 1ms..3650d' 39 0 315360000000
policy 'the 41st'                                 '--backoff 1ms..3650d' 40 0 315360000000
policy 'the 65th'                                 '--backoff 1s..1h' 64 0 3600000
policy 'the thousandth'                           '--backoff 5s..10m' 999 0 600000

# ---- attempts ----

fresh
qadd -q --attempts 1 mail x
c=$(claim mail)
exits 0 'the only attempt fails' qfail -m 'no route' "$c"
is "$(job)" 'dead|1|0|0' '... and the job is dead'
is "$(ledger)" 'failed|dead|1|no route' '... the ledger says of what'
is "$(sql 'SELECT finished_ms - 1780401600000, ready_ms, lease_ms FROM q_job')" '0||' '... and when'
exits 0 '... again' qfail -m 'no route' "$c"
is "$(sql 'SELECT count(*) FROM q_attempt')" 1 '... is one failure'

fresh
qadd -q --attempts 3 mail x
for want in 'failed|1|0|60000' 'failed|2|0|60000' 'dead|3|0|60000'; do
	now 60
	qfail --at @1780401660 "$(claim mail)"
	is "$(job)" "$want" "three attempts: $want"
done

fresh
qadd -q --attempts 2 mail x
qfail --in 0s "$(claim mail)"
for i in 1 2 3; do
	qfail --defer 0s "$(claim mail)"
	qfail --release "$(claim mail)"
done
is "$(job)" 'pending|1|3|0' 'deferred and released spend no attempt'
is "$(qclaim mail | tee rec | sed 's/.*"attempt":\([0-9]*\),.*/\1/')" 2 '... the second is still to be had'
exits 0 '... and can succeed' qdone - <rec
is "$(sql 'SELECT j.state, spent, outcome FROM q_job j JOIN q_attempt a ON a.id = j.last_attempt')" 'done|1|done' '... which is what counts'

fresh
qadd -q mail x
qfail --in 3h -m later "$(claim mail)"
is "$(job)" 'failed|1|0|10800000' 'a time that was given counts, not the backoff'
is "$(ledger)" 'failed|failed|1|later' '... and the attempt is spent'
now 10799.999
is "$(claim mail)" '' '... before it nothing comes'
now 10800
is "$(claim mail | cut -d. -f1,2)" 1.2 '... at it the job does'

# ---- the window ----

within() {	# NAME WANT QFAIL-OPTIONS; two hours of window, due at 13:00, failing at 14:00
	fresh
	qadd -q --in 1h --window 2h mail x
	now 7200
	c=$(claim mail)
	# shellcheck disable=SC2086
	qfail $3 "$c"
	is "$(sql 'SELECT state FROM q_job')" "$2" "$1"
}
within 'a retry within the window' failed '--in 59m'
within '... at its end' failed '--in 1h'
within '... a millisecond later: there is none' dead '--in 60m1ms'
within '... by an instant' dead '--at 2026-06-02T15:00:01Z'
within '... by an instant within' failed '--at 2026-06-02T15:00:00Z'
fresh
qadd -q --window 1h --backoff 1ms..1ms mail x
qadd -q --window 1h --backoff 10h..10h mail x
now 3599
qclaim -c 2 mail | qfail -m gone -
is "$(sql 'SELECT group_concat(state, " ") FROM q_job')" 'failed dead' 'the backoff has to fit in, too (but for one chance in ten thousand)'
now 3601
qfail --at 2026-06-02T12:00:00Z -m gone "$(claim mail)"
is "$(sql 'SELECT state, spent FROM q_job WHERE id = 1')" 'dead|2' 'after the window no retry, whatever its time'
is "$(sql "SELECT count(*) FROM q_attempt WHERE state = 'dead' AND reason = 'gone'")" 2 '... and the ledger has the reason'
fresh
qadd -q --window 1h mail x
now 9999
exits 0 'a window is for retries: the first attempt may be late' qclaim mail
is "$(word <out | cut -d. -f1,2)" 1.1 '... and runs'

# ---- deferring ----

DAY=86400
fresh
qadd -q mail x
qfail --defer 0s -m busy "$(claim mail)"
is "$(job) $(ledger)" 'pending|0|1|0 deferred|pending|1|busy' 'deferred at noon'
now $DAY
qfail --defer 0s -m busy "$(claim mail)"
is "$(job)" 'pending|0|2|86400000' '... and a day later'
now $DAY.001
c=$(claim mail)
exits 0 '... and a millisecond after that' qfail --defer 1h -m busy "$c"
is "$(job)" 'failed|1|0|90000001' '... which is a failure, due when it was asked for'
is "$(ledger)" 'failed|failed|1|busy' '... with the reason that was given'
now 100000
qfail --defer 0s "$(claim mail)"
is "$(job)" 'pending|1|1|100000000' 'then a new day begins'
now 190000
qfail --defer 0s "$(claim mail)"
is "$(ledger)" 'failed|failed|2|deferred for more than 24h' '... which ends like the first; the reason, if none is given, is that'

# What was asked for does not count, only what came on top of it.
fresh
qadd -q mail x
t=0
for i in 1 2 3 4 5 6; do
	qfail --defer 20h "$(claim mail)"
	t=$((t + 72000))
	now $t
done
is "$(job)" 'pending|0|6|432000000' 'deferred for 20 hours six times, as was asked'
for i in 1 2; do	# each comes 12 hours late
	t=$((t + 43200))
	now $t
	qfail --defer 1h "$(claim mail)"
	t=$((t + 3600))
	now $t
done
is "$(job)" "pending|0|8|$((t * 1000))" '... and 24 hours late in all'
now $t.001
qfail --defer 1h "$(claim mail)"
is "$(sql 'SELECT state, spent FROM q_job')" 'failed|1' '... a millisecond more is a failure'

begins() {	# NAME QFAIL-OPTIONS WANT: what happens between two deferrals, 20 hours apart each
	fresh
	qadd -q mail x
	qfail --defer 0s "$(claim mail)"
	now 72000
	# shellcheck disable=SC2086
	qfail $2 "$(claim mail)"
	now 144000
	qfail --defer 0s "$(claim mail)"
	is "$(job)" "$3" "$1"
}
begins 'a failure ends the row of deferrals' '--in 0s' 'pending|1|1|144000000'
begins 'a release does not' '--release' 'failed|1|0|144000000'

fresh
qadd -q --attempts 1 mail x
qfail --defer 0s "$(claim mail)"
now 99999
qfail --defer 1h "$(claim mail)"
is "$(sql 'SELECT state, spent FROM q_job') $(ledger)" 'dead|1 failed|dead|1|deferred for more than 24h' 'a day of deferrals may be the last attempt'
done_testing
