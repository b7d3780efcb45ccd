#!/bin/sh
# Leases: they end by the boot clock and by nothing else, and what was lost is known.
. "${0%/*}/lib.sh"

word() { sed 's/.*"claim":"\([^"]*\)".*/\1/'; }
ids() { sed 's/^{"id":\([0-9]*\),.*/\1/' | tr '\n' ' ' | sed 's/ $//'; }
claim() { qclaim -c "${2:-1}" "$1" | word; }
at() { export Q_BOOT="b1:$1"; }
fresh() { rm -f q.db*; qinit; at 1000000; }
ends() { sql 'SELECT group_concat(lease_ms, " ") FROM q_job'; }
REASON='the lease ended before the job was settled'

# ---- the end of a lease ----

qinit
at 1000000
qadd -q --in 0s mail 1
export Q_NOW=2026-06-02T12:00:05Z
c=$(claim mail)
at 1299999
is "$(claim mail)" '' 'a millisecond before its end a lease holds'
at 1300000
export Q_NOW=2026-06-02T12:00:07Z
is "$(claim other)" '' 'at its end a claimer of another queue'
is "$(sql 'SELECT state FROM q_job')" claimed '... does not touch it'
is "$(claim mail | cut -d. -f1,2)" 1.2 '... one of this queue has the job'
is "$(sql 'SELECT state, spent, lost, fence, due_ms - 1780401600000, claimed_ms - 1780401600000, lease_ms FROM q_job')" 'claimed|1|1|2|0|7000|1600000' \
    '... with an attempt spent, one lost, and its due time kept'
is "$(sql 'SELECT job, prev, generation, attempt, fence, due_ms - 1780401600000, started_ms - 1780401600000, finished_ms - 1780401600000, outcome, state, exit, signal, count, reason, result FROM q_attempt')" \
    "1||1|1|1|0|5000|7000|lost|failed||||$REASON|" '... and the ledger has the lost one'
like "$(sql 'SELECT worker FROM q_attempt')" "^$(uname -n):[0-9]+\$" '... and who lost it'
exits 76 'the loser cannot settle' qdone "$c"
exits 76 '... nor renew' qrenew "$c"
export Q_NOW=2026-06-02T12:00:00Z

fresh
qadd -q -t a mail 1
qadd -q -t b mail 2
qclaim -l 10s -t a mail >/dev/null
at 1010000
qclaim -t none mail
is "$(sql 'SELECT state, nonce IS NULL, ready_ms = due_ms FROM q_job WHERE id = 1')" 'failed|1|1' \
    'a claimer of another type takes it back, and it can be claimed at once'
is "$(qclaim -c 9 mail | ids)" '1 2' '... in its old place'

# ---- qrenew ----

fresh
seq 1 4 | qadd -q --lines mail
qclaim -c 4 mail >records
word <records >words
at 1200000
exits 0 'qrenew' qrenew "$(sed -n 1p words)"
is "$(cat out err)" '' '... is silent'
exits 0 'qrenew -l' qrenew -l 1h "$(sed -n 2p words)"
exits 0 'qrenew to a shorter lease' qrenew --lease 1s "$(sed -n 3p words)"
is "$(ends)" '1500000 4800000 1201000 1300000' '... ends that long from now'
is "$(sql 'SELECT sum(fence), (SELECT count(*) FROM q_attempt) FROM q_job')" '4|0' '... and leaves no trace'
at 1499999
is "$(qclaim -c 9 mail | ids)" '3 4' 'a renewed lease holds until then'
at 1500000
is "$(qclaim -c 9 mail | ids)" 1 '... and no longer'
for l in 0 5 '' x; do
	exits 64 "qrenew -l '$l' is refused" qrenew -l "$l" "$(sed -n 2p words)"
done
exits 64 'qrenew without a claim' qrenew

fresh
seq 1 5 | qadd -q --lines mail
qclaim -c 5 -l 1m mail >records
word <records >words
at 1060000
exits 0 'a lease that is over and that nobody took' qrenew "$(sed -n 1p words)"
is "$(ends)" '1360000 1060000 1060000 1060000 1060000' '... can be renewed'
qclaim mail >taken		# takes all the others back, and one of them
is "$(ids <taken)" 2 'then another takes it'
exits 76 'qrenew of many, some of them lost' qrenew - <words
is "$(cat err)" "$(printf 'qrenew: claim %s: lost; job 2 is claimed, its last claim is number 2; nothing changed; see qls 2\n' "$(sed -n 2p words)"
    for i in 3 4 5; do printf 'qrenew: claim %s: not held; job %d is failed; nothing changed; see qls %d\n' "$(sed -n ${i}p words)" $i $i; done)" \
    '... names those'
is "$(ends)" '1360000 1360000' '... and renews the others'
at 1100000
exits 65 'qrenew of a record, and of nonsense' sh -c '{ head -n 1 records; echo nonsense; } | qrenew -l 2m -'
is "$(sql 'SELECT lease_ms FROM q_job WHERE id = 1')" 1220000 '... renews what it can'

# ---- losing again and again ----

lose() { claim mail >/dev/null; at $((${Q_BOOT#*:} + 300000)); }
fresh
qadd -q mail killer
lose; lose
is "$(claim mail | cut -d. -f2)" 3 'lost twice, a job is still tried'
at $((${Q_BOOT#*:} + 300000))
is "$(claim mail)" '' '... lost three times in a row it is not'
is "$(sql 'SELECT state, spent, lost, ready_ms, lease_ms, finished_ms FROM q_job')" 'dead|3|3|||1780401600000' '... but dead'
is "$(sql "SELECT group_concat(attempt || outcome || state || (reason = '$REASON'), ' ') FROM q_attempt")" '1lostfailed1 2lostfailed1 3lostdead1' '... with its reason'
is "$(sql "SELECT n FROM q_count WHERE state = 'dead'")" 1 '... and counted'
is "$(qls --state dead --reason 'lease ended' | cut -f1,3)" "$(printf '1\tdead')" '... where people look'

mix() {	# NAME WANT STEP...
	fresh
	qadd -q mail x
	name=$1 want=$2
	shift 2
	for step; do
		case $step in
		lost) lose ;;
		*) qfail "--$step" "$(claim mail)" ;;
		esac
	done 2>/dev/null
	qclaim none mail >/dev/null
	is "$(sql 'SELECT (state IN ("dead")) || spent FROM q_job')" "$want" "$name"
}
mix 'three lost'                                   13 lost lost lost
mix 'a failure between ends the row'               04 lost lost in=0s lost
mix '... which begins again'                       16 lost lost in=0s lost lost lost
mix 'so does a deferral, which spends nothing'     03 lost lost defer=0s lost
mix 'a release is as if the claim had never been'  13 lost lost release lost

fresh
qadd -q --attempts 2 mail x
lose; lose
qclaim mail
is "$(sql 'SELECT state, spent FROM q_job')" 'dead|2' 'a lost claim spends an attempt: of two, none is left'
fresh
qadd -q --window 1h mail x
lose
Q_NOW=2026-06-02T13:00:00Z qclaim mail >/dev/null
is "$(sql 'SELECT state FROM q_job')" claimed 'lost within its window a job runs again'
at $((${Q_BOOT#*:} + 300000))
Q_NOW=2026-06-02T13:00:00.001Z qclaim mail >/dev/null
is "$(sql 'SELECT state, spent FROM q_job')" 'dead|2' '... and later not'

# ---- many at once ----

fresh
seq 1 250 | qadd -q --lines mail
seq 1 3 | qadd -q --lines other
qclaim -c 100 -l 3s mail >/dev/null
qclaim -c 150 -l 2s mail >/dev/null
qclaim -c 3 -l 1s other >/dev/null
at 1010000
states() { sql "SELECT group_concat(state || n, ' ') FROM (SELECT state, count(*) AS n FROM q_job WHERE queue = 'mail' GROUP BY state)"; }
is "$(qclaim mail | ids)" 101 'of 250 ended leases a claim takes back a part'
is "$(states)" 'claimed151 failed99' '... 100'
is "$(sql "SELECT min(job) || '-' || max(job) FROM q_attempt")" 101-200 '... those that ended first'
qclaim mail >/dev/null
is "$(states)" 'claimed52 failed198' '... the next one 100 more'
qclaim mail other >/dev/null
is "$(states)" 'claimed3 failed247' '... the third the rest'
is "$(sql "SELECT count(*) FROM q_attempt a JOIN q_job j ON j.id = a.job WHERE j.queue = 'other' AND outcome = 'lost'")" 3 '... and those of another queue'

# ---- another boot ----

for boot in b2:5 b2:1000001 b2:99999999; do
	fresh
	seq 1 3 | qadd -q --lines mail
	seq 1 2 | qadd -q --lines other
	claim mail 3 >words
	claim other 2 >>words
	export Q_BOOT=$boot
	qclaim none
	is "$(ends)" '0 0 0 0 0' "the first claimer of another boot ends all leases ($boot)"
	is "$(sql "SELECT value FROM q_meta WHERE name = 'boot'")" b2 '... and notes the boot'
	is "$(qclaim -c 9 mail other | ids)" '1 2 3 4 5' '... all jobs can be claimed at once'
	is "$(sql "SELECT count(*) FROM q_attempt WHERE outcome = 'lost'")" 5 '... the claims were lost'
	# shellcheck disable=SC2046
	exits 76 '... and settle nothing any more' qdone $(cat words)
	is "$(qclaim -c 9 mail other | ids)" '' '... once: the new claims hold'
done
fresh
seq 1 3 | qadd -q --lines mail
claim mail 3 >words
export Q_BOOT=b2:5
exits 0 'a claim of an earlier boot that nobody took' qrenew "$(sed -n 1p words)"
is "$(ends)" '300005 0 0' '... can be renewed, and the others are free'
is "$(qclaim -c 9 mail | ids)" '2 3' '... for the next claimer'

# Without Q_BOOT: the kernel's clock and boot.
fresh
unset Q_BOOT
qadd -q mail x
c=$(claim mail)
is "$(claim mail)" '' 'by the real clock a claim holds'
is "$(sql "SELECT value FROM q_meta WHERE name = 'boot'")" "$(cat /proc/sys/kernel/random/boot_id)" '... in this boot'
up=$(cut -d. -f1 /proc/uptime)
left=$(($(sql 'SELECT lease_ms FROM q_job') / 1000 - up))
[ "$left" -ge 290 ] && [ "$left" -le 301 ]
ok $? "... for five minutes of its clock ($left s)"
exits 0 '... and settles' qdone "$c"
# ---- a system that does not tell its boot ----

unset Q_BOOT
if [ "$(id -u)" -eq 0 ] && unshare -m mount -t tmpfs none /proc 2>/dev/null; then
	fresh 2>/dev/null || { rm -f q.db*; qinit; }
	qadd -q mail x
	qclaim -l 1h mail >held
	exits 78 'a claim without /proc' unshare -m sh -c 'unset Q_BOOT; mount -t tmpfs none /proc; exec qclaim -l 1h mail'
	is "$(sql 'SELECT state, fence FROM q_job')" 'claimed|1' '... does not take what is held for the past'
fi

done_testing
