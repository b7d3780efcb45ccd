#!/bin/sh
# qpurge: what goes and what stays, mark and undo, the limit, counted once whatever kills it, nobody held up.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

at() { export Q_NOW="$1"; }
done_jobs() {	# QUEUE N: so many jobs, done now
	seq "$2" | qadd -q --lines "$1"
	qclaim -c "$2" "$1" | sed 's/.*"claim":"\([^"]*\)".*/\1/' | qdone -
}
ids() { sql "SELECT group_concat(id, ' ') FROM (SELECT id FROM q_job ORDER BY id)"; }
runs() { sql "SELECT queue, marked, deleted, done_ms IS NOT NULL FROM q_purge ORDER BY as_of_ms, queue" | xargs; }
tab=$(printf '\t')
purged() {	# WANT NAME ARGS...: what it prints, with blanks for tabs
	_want2=$1 _name2=$2
	shift 2
	exits 0 "$_name2" qpurge "$@"
	said "$(printf '%s' "$_want2" | tr ' ' '\t')" 'says so'
}
healthy() {
	qcheck | grep -v '^mount: it is in memory' >faults
	is "$(cat faults)" '' 'the file is as it should be'
}
# The newest job and the newest attempt stay, and so they are in a queue of their own.
rest() {
	qset queue.ever.keep=forever
	qadd -q ever rest
	qclaim ever | claim_of | qdone -
}
# QUEUE N: so many that are done, quickly
many() {
	sqlite3 q.db "PRAGMA wal_autocheckpoint=0; BEGIN;
	    CREATE TEMP TABLE new AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < $2)
	        SELECT i + (SELECT coalesce(max(id), 0) FROM q_job) AS id, i + (SELECT coalesce(max(id), 0) FROM q_attempt) AS attempt,
	            CAST(strftime('%s', '$Q_NOW') AS INTEGER) * 1000 AS ms FROM c;
	    INSERT INTO q_attempt(id, job, generation, attempt, fence, queue, type, due_ms, started_ms, finished_ms, outcome, state)
	        SELECT attempt, id, 1, 1, 1, '$1', '', ms, ms, ms, 'done', 'done' FROM new;
	    INSERT INTO q_job(id, queue, key, event_ms, due_ms, added_ms, claimed_ms, state, finished_ms, fence, nonce, last_attempt)
	        SELECT id, '$1', 'k' || id, ms, ms, ms, ms, 'done', ms, 1, 1, attempt FROM new;
	    INSERT INTO q_body SELECT id, CAST(id AS BLOB) FROM new;
	    INSERT INTO q_key SELECT '$1', 'k' || id, id, 9223372036854775807 FROM new;
	    INSERT INTO q_count VALUES('$1', 'done', $2) ON CONFLICT DO UPDATE SET n = n + $2; COMMIT" >/dev/null
}

# ---- usage ----

exits 66 'no file' qpurge
qinit
while IFS=@ read -r args err; do
	# shellcheck disable=SC2086	# words
	exits 64 "qpurge $args" qpurge $args
	said "qpurge: $err" 'says so'
done <<'END'
mail@no operand is taken: what goes is set with qset queue.NAME.keep; see 'qpurge --help'
--as-of 2026-06-02T12:00:01Z@--as-of: '2026-06-02T12:00:01Z' is in the future; see 'qpurge --help'
--grace 3@--grace: '3' a number needs a unit: write 10s, 10m, 10h or 10d; see 'qpurge --help'
--limit -1@--limit: '-1' is not a whole number from 0 to 9223372036854775807; see 'qpurge --help'
--undo -n@--undo goes with -j and -q alone; see 'qpurge --help'
END
unchanged 0 'a dry run of nothing' qpurge -n
said '' 'has nothing to say'
purged '' 'an undo of nothing' --undo

# ---- what goes and what stays ----

qset queue.short.keep=1d queue.ever.keep=forever queue.soon.keys=settled queue.some.keys=40d
qadd -q -k k1 mail one				# 1 done
qclaim mail | claim_of | qdone -r fine -
qadd -q mail two				# 2 cancelled
qcancel -q 2 2>err || qcancel 2 >out
qadd -q mail three				# 3 dead
qclaim mail | claim_of | qfail --dead -
qadd -q mail four				# 4 pending
qadd -q -k k5 soon five				# 5 done
qclaim soon | claim_of | qdone -
qadd -q -k k6 some six				# 6 done, after three attempts
for i in 1 2; do qclaim some | claim_of | qfail --in 0s -; done
qclaim some | claim_of | qdone -
qadd -q short seven				# 7 done
qclaim short | claim_of | qdone -
qadd -q ever eight				# 8 done
qclaim ever | claim_of | qdone -
qadd -q held nine				# 9 claimed
qclaim held >/dev/null
qadd -q --in 90d mail ten			# 10 delayed
is "$(ids)" '1 2 3 4 5 6 7 8 9 10' 'ten jobs'
at 2026-06-03T12:00:01Z
purged 'marked short 1 2026-06-02T12:00:01Z' 'a day later'
unchanged 0 '... looked at' qpurge -n
is "$(cat out)" "waiting${tab}short${tab}1${tab}2026-06-02T12:00:01Z" '... one waits'
purged 'waiting short 1 2026-06-02T12:00:01Z' '... and is not marked twice'
at 2026-06-04T08:00:01Z
exits 0 '... the grace time later, as JSON' qpurge -j
is "$(jq -r '[.did, .queue, .jobs, .cutoff_at, .cutoff_ms, .dry] | join(" ")' out)" 'deleted short 1 2026-06-02T12:00:01Z 1780401601000 false' '... it is gone'
is "$(ids)" '1 2 3 4 5 6 8 9 10' '... alone'
at 2026-07-02T12:00:00Z
purged '' 'thirty days later to the second'
at 2026-07-02T12:00:01Z
exits 0 '... and one more, with -q' qpurge -q
said '' 'silent'
unchanged 0 '... looked at' qpurge -n --grace 0
is "$(cat out)" "deleted${tab}mail${tab}2${tab}2026-06-02T12:00:01Z
deleted${tab}some${tab}1${tab}2026-06-02T12:00:01Z
deleted${tab}soon${tab}1${tab}2026-06-02T12:00:01Z" '... what would go'
exits 0 '... in full' qpurge -n --ids copy --grace 0
is "$(cat copy)" "1${tab}mail
2${tab}mail
5${tab}soon
6${tab}some" '... with ids'
exits 73 'ids without a folder' qpurge --ids nowhere/audit --grace 0
said 'qpurge: --ids: nowhere/audit: No such file or directory; nothing was changed'
exits 74 'ids that cannot be written' qpurge --ids /dev/full --grace 0
is "$(cat err)" 'qpurge: --ids: /dev/full: No space left on device; what it does not name was not deleted' '... are said to be'
is "$(ids)" '1 2 3 4 5 6 8 9 10' '... delete nothing'
exits 0 'a day later' env Q_NOW=2026-07-03T12:00:01Z qpurge -q --ids audit
is "$(cat audit)" "$(cat copy)" '... they are gone'
is "$(stat -c %a audit)" 600 '... on record'
is "$(ids)" '3 4 8 9 10' '... dead, open and kept ones stay'
is "$(sql 'SELECT group_concat(job) FROM q_body'; sql 'SELECT DISTINCT job FROM q_attempt ORDER BY job' | xargs)" '3,4,8,9,10
3 8' '... payloads and attempts with their jobs'
is "$(sql 'SELECT key, job FROM q_key ORDER BY key' | xargs)" 'k1|1 k6|6' '... keys as long as they are remembered'
exits 0 'a key that outlives its job' qadd -k k1 mail 'something else'
said 1 'has the first id, and nothing to compare with'
exits 0 '... strictly' qadd --strict -k k1 mail 'something else'
said 1 'likewise'
is "$(qadd -n -k k5 soon x | jq .id)" null 'a key that is not remembered is free'
exits 66 'a job that is gone' qls 1
healthy
at 2026-07-12T12:00:01Z
qpurge -q
is "$(sql 'SELECT key, job FROM q_key ORDER BY key' | xargs)" 'k1|1' 'a key whose time is over goes later'

# ---- newest ones ----

rm -f q.db*
qinit
done_jobs mail 3
qadd -q mail cancelled
qcancel 4
at 2027-01-01T00:00:00Z
purged 'marked mail 2 2026-12-02T00:00:00Z' 'a file at rest'
purged 'deleted mail 2 2026-12-02T00:00:00Z' '... later' --grace 0
is "$(ids) $(sql 'SELECT max(id) FROM q_attempt')" '3 4 3' '... keeps its newest job, and that of the newest attempt'
is "$(qadd mail x)" 5 '... so ids go on'
healthy

rm -f q.db*
at 2026-06-02T12:00:00Z
qinit
seq 3 | qadd -q --lines mail
qcancel 1 2
at 2027-01-01T00:00:00Z
qpurge -q
purged 'deleted mail 2 2026-12-02T00:00:00Z' 'cancelled ones of a file without any attempt' --grace 0
healthy

# ---- between mark and deletion ----

rm -f q.db*
at 2026-06-02T12:00:00Z
qinit
done_jobs mail 10
rest
at 2026-07-03T12:00:00Z
purged 'marked mail 10 2026-06-03T12:00:00Z' 'ten are marked'
qreplay 3
qclaim mail | claim_of | qdone -
qreplay 4
at 2026-07-04T12:00:00Z
purged 'deleted mail 8 2026-06-03T12:00:00Z' 'two were replayed, and one is done again'
is "$(ids)" '3 4 11' '... they stay'
is "$(runs)" '|10|8|1 mail|10|8|1 |0|0|1' '... counted'
healthy

rm -f q.db*
at 2026-06-02T12:00:00Z
qinit
done_jobs mail 10
rest
at 2026-07-03T12:00:00Z
qpurge -q
purged 'spared mail 10 2026-06-03T12:00:00Z' 'an undo' --undo
at 2026-07-04T12:00:00Z
purged 'marked mail 10 2026-06-04T12:00:00Z' '... they are marked anew, a day later'
qset queue.mail.keep=60d
at 2026-07-05T12:00:00Z
purged '' '... but the queue keeps longer now'
is "$(ids)" '1 2 3 4 5 6 7 8 9 10 11' '... nothing goes'
at 2026-08-01T12:00:00Z
purged '' '... nor is it marked'
at 2026-08-01T12:00:01Z
purged 'marked mail 10 2026-06-02T12:00:01Z' '... before its time'
at 2026-08-04T12:00:00Z
qset queue.mail.keep=forever
purged '' '... nor deleted for ever'
qset queue.mail.keep=
at 2026-08-05T12:00:00Z
purged 'marked mail 10 2026-07-06T12:00:00Z' '... till somebody lets it'
qpurge -q --grace 0
is "$(ids)" 11 '... then it goes'
healthy

# ---- a clock far ahead ----

rm -f q.db*
at 2026-06-02T12:00:00Z
qinit
done_jobs mail 10
rest
at 2036-06-02T12:00:00Z
exits 0 'the clock is ten years ahead' qpurge -q
many ahead 1000
at 2026-06-02T13:00:00Z
done_jobs mail 10
rest
at 2026-07-02T13:00:01Z
exits 0 'it is right again' qpurge -q
exits 0 '... the grace time later' qpurge -q --grace 0
is "$(sql "SELECT count(*) FROM q_job WHERE queue = 'mail'")" 0 '... what is old goes, before and after those added then'
is "$(sql "SELECT count(*) FROM q_job WHERE queue = 'ahead'")" 1000 '... and nothing else'
healthy

# ---- the limit ----

rm -f q.db*
at 2026-06-02T12:00:00Z
qinit
qset queue.other.keep=1d
many mail 1001
many other 5
rest
at 2026-07-03T12:00:00Z
exits 1 'the first time a thousand are enough' qpurge
is "$(cat err)" 'qpurge: mail: 1001 jobs finished before 2026-06-03T12:00:00Z, and more than 1000 are unusual; left alone; next: if they are to go, qpurge --limit 1101' '... it says how to go on'
is "$(cat out)" "marked${tab}other${tab}5${tab}2026-07-02T12:00:00Z" '... other queues are not held up'
exits 1 'a limit' qpurge --limit 1000
exits 1 '... of a dry run' qpurge -n -j
is "$(jq -r 'select(.did == "refused") | .queue, .jobs' out | xargs)" 'mail 1001' '... as JSON'
purged 'marked mail 1001 2026-06-03T12:00:00Z
waiting other 5 2026-07-02T12:00:00Z' 'a look' --limit 1001
at 2026-07-04T12:00:00Z
qpurge -q
is "$(ids)" 1007 '... all are gone'
for day in 08-05 09-06 10-08; do
	many mail 130
	rest
	at "2026-${day}T12:00:00Z"
	qpurge -q
done
many mail 1301
rest
at 2026-12-05T12:00:00Z
exits 1 'more than ten times the usual' qpurge
like "$(cat err)" '^qpurge: mail: 1301 jobs finished before 2026-11-05T12:00:00Z, and more than 1300 are unusual; ' '... is refused'
qreplay "$(sql "SELECT max(id) FROM q_job WHERE state = 'done' AND queue = 'mail'")"
exits 0 '... ten times is not' qpurge -q
healthy

# ---- killed ----

rm -f q.db*
at 2026-06-02T12:00:00Z
qinit
for q in q0 q1 q2; do many $q 1000; done
rest
healthy
at 2026-07-03T12:00:00Z
exits 0 'three thousand of three queues' qpurge --limit 1000
at 2026-07-04T12:00:00Z
export T=2026-07-04T03:00:00Z
perl -MTime::HiRes=sleep -e 'sub left { my $n = `sqlite3 -readonly q.db "SELECT count(*) FROM q_job"`; $n + 0 }
	for my $sig (9, 15, 9) {
		my $before = left;
		my $pid = fork // die;
		if (!$pid) { exec "qpurge", "-q", "--ids", "audit2", "--as-of", $ENV{T} or die }
		for (1 .. 2000) { sleep 0.002; last if left() < $before }
		kill $sig, $pid;
		waitpid $pid, 0;
		print $? & 127 || $? >> 8, " ";
	}' >ends
mid=$(sql 'SELECT count(*) FROM q_job')
ok "$([ "$mid" -gt 1 ] && [ "$mid" -lt 3001 ]; echo $?)" "killed in the middle ($mid are left)"
is "$(cat ends)" '9 143 9 ' '... each time'
is "$(sql "SELECT 3001 - count(*) - (SELECT sum(deleted) FROM q_purge WHERE queue <> '') FROM q_job")" 0 '... what is gone is counted'
healthy
seq 200 | qadd -q --lines more &	# others go on
qpurge -q --as-of $T --ids audit2 & qpurge -q --as-of $T --ids audit3 &
wait
is "$(runs)" '|3000|3000|1 q0|1000|1000|1 q1|1000|1000|1 q2|1000|1000|1 |0|0|1' 'two at once: all is deleted, and counted once'
is "$(cut -f1 audit2 audit3 | sort -nu | wc -l)" 3000 '... and on record'
is "$(sql "SELECT count(*) FROM q_job WHERE queue LIKE 'q_'; SELECT count(*) FROM q_key WHERE queue LIKE 'q_'" | xargs)" '0 3000' '... but for its keys'
exits 0 'the same run again' qpurge -q --as-of $T
is "$(runs)" '|3000|3000|1 q0|1000|1000|1 q1|1000|1000|1 q2|1000|1000|1 |0|0|1' '... changes nothing'
healthy

rm -f q.db* audit2
at 2026-06-02T12:00:00Z
qinit
many mail 3000
rest
at 2026-07-03T12:00:00Z
qpurge -q --limit 3000
at 2026-07-04T12:00:00Z
qpurge -q --ids audit2 2>err & p=$!
until_ok test -s audit2
qpurge -q --undo
mid=$(sql 'SELECT count(*) FROM q_job')
wait "$p"
is "$? $(cat err)" '75 qpurge: mail: a qpurge --undo, or another qpurge, came between; nothing more was deleted; run it again' 'an undo stops who deletes'
is "$(sql 'SELECT count(*) FROM q_job')" "$mid" '... at once'
ok "$([ "$mid" -gt 1 ] && [ "$mid" -lt 3001 ]; echo $?)" "... in the middle ($mid are left)"
is "$(sql "SELECT 3001 - count(*) - (SELECT deleted FROM q_purge WHERE queue = 'mail') FROM q_job")" 0 '... what is gone is counted'
healthy

# ---- large payloads do not make a long log; pages are used again ----

rm -f q.db*
at 2026-06-02T12:00:00Z
qinit
for i in $(seq 30); do head -c 500000 /dev/zero | qadd -q big; done
qwork big -- true
rest
at 2026-07-03T12:00:00Z
qpurge -q
perl -MTime::HiRes=sleep -e 'my $most = 0; my $pid = fork // die; if (!$pid) { exec qw(qpurge -q --grace 0) or die }
	until (waitpid($pid, 1) > 0) { my $n = -s "q.db-wal" // 0; $most = $n if $n > $most; sleep 0.002 } print $most' >most
ok "$([ "$(cat most)" -lt 3000000 ]; echo $?)" "the log is short ($(cat most) bytes)"
before=$(stat -c %s q.db)
head -c 900000 /dev/zero | qadd -q big
qadd -q big x
is "$(stat -c %s q.db)" "$before" 'pages are used again'
healthy

# ---- the rows of others ----

rm -f q.db*
at 2026-06-02T12:00:00Z
qinit
sqlite3 q.db 'PRAGMA wal_autocheckpoint=0' ".read $t/../lib/hook.sql" ".read $t/../lib/poll.sql" >/dev/null
done_jobs mail 2
rest
sqlite3 q.db "PRAGMA wal_autocheckpoint=0;
    INSERT INTO q_key SELECT CAST(x'6d6100' || column1 AS TEXT), CAST(x'6b00' || column1 AS TEXT), 1000, 0 FROM (VALUES('a'), ('b'));
    INSERT INTO q_key VALUES('maz', 'k', 1000, 0);
    INSERT INTO q_hook SELECT id, '/x', 's', 'e', 'signed', 'f', 1, '/', '', x'00', NULL FROM q_job;
    WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 700)
    INSERT INTO q_poll_run SELECT i, CASE WHEN i > 600 THEN 'few' ELSE 'many' END, 1, CASE WHEN i <= 550 THEN 1000 * i ELSE 1783000000000 END, 'new', 0, 200, 1, 1, 1, 0, 0, 0, 1, 0, NULL, NULL, NULL FROM c" >/dev/null
at 2026-07-03T12:00:00Z
exits 0 'names with NUL bytes' timeout -s KILL 20 qpurge -q
is "$(sql "SELECT count(*) FROM q_key WHERE queue = 'maz'")" 0 '... are passed'
qpurge -q --grace 0
is "$(sql 'SELECT group_concat(job) FROM q_hook')" 3 'events go with their jobs'
is "$(sql 'SELECT name, count(*), min(id) FROM q_poll_run GROUP BY name' | xargs)" 'few|100|601 many|100|501' 'runs of qpoll: the last hundred stay'
done_testing
