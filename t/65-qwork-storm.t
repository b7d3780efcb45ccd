#!/bin/sh
# Eight qwork drain one queue while one after the other is killed: each job ends once, with its own result.
# Sizes: JOBS, KILLS, one in twice GAP ms; SEED.
. "${0%/*}/lib.sh"
unset Q_NOW

jobs=${JOBS:-600} kills=${KILLS:-6} seed=${SEED:-$$}
echo "# SEED=$seed"
open() { sql "SELECT count(*) FROM q_job WHERE finished_ms IS NULL"; }

qinit
seq "$jobs" | qadd -q --lines n
"$t/storm/swarm" --procs 8 --kills "$kills" --gap "${GAP:-100}" --stay --seed "$seed" qwork -P 2 -l 4s n -- cat >out 2>err
_s=$?
# Three claims lost in a row rightly end a job; qwork says so, and 1.
is "$_s" "$(grep -c ': dead: its claim was lost once too often; ' err | sed 's/[1-9].*/1/')" "eight qwork, $jobs jobs, $kills killed"
sed 's/^/# /' out
# On a machine that stands still for longer than a lease even a live worker loses its claim, and says so.
is "$(grep -v '^qwork: job [0-9]*: .*its claim was lost \(while it ran\|once too often\); ' err)" '' '... without another word'

# What the last killed ones held is claimable when its lease is over.
: >rest
i=0
while [ "$(open)" != 0 ] && [ $((i += 1)) -lt 100 ]; do
	qwork -P 4 n -- cat >>rest 2>&1
	sleep 0.1
done
is "$(open) $(cat rest)" '0 ' 'then nothing is left'
"$t/storm/check" --drained q.db >verdict 2>&1
is "$? $(grep -v '^check: ' verdict)" '0 ' '... and the file is right'
sed 's/^/# /' verdict
is "$(sql "SELECT count(*) FROM q_job WHERE state <> 'done' AND lost < 3")" 0 '... every job is done'
is "$(sql "SELECT count(*), count(DISTINCT job) FROM q_attempt WHERE outcome = 'done'" | tr '|' '\n' | uniq | wc -l)" 1 '... once'
is "$(sql "SELECT count(*) FROM q_attempt a JOIN q_body b USING (job) WHERE a.outcome = 'done' AND a.result IS NOT b.body
    AND a.result IS NOT b.body || x'0a'")" 0 '... with its own result'
is "$(sql "SELECT group_concat(DISTINCT outcome) FROM q_attempt WHERE outcome NOT IN ('done', 'lost')")" '' '... and nothing failed'

done_testing
