#!/bin/sh
# qcheck: silent on a good file, however it came to be; each fault is named, with what to do; nothing is changed.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

# On a file system in memory one line more is right.
case $(stat -f -c %T .) in
tmpfs | ramfs) memory=$(qinit; qcheck | grep '^mount: it is in memory'; rm -f q.db*) ;;
*) memory= ;;
esac
well=$([ -z "$memory" ]; echo $?)	# the exit status on a good file
bytes() { cat "$Q_DB" "$Q_DB-wal" 2>/dev/null | sha256sum; stat -c %Y.%s "$Q_DB"; }
# problems NAME [LINE]: what qcheck says, but for that
problems() {
	_before=$(bytes) _code=1
	[ -n "$2$memory" ] || _code=0
	exits "$_code" "$1" qcheck
	is "$(grep -v '^mount: it is in memory' out)" "$2" '... in so many words'
	is "$(cat err)$(bytes)" "$_before" '... and changes nothing'
}
# broken SQL LINE: the line is what qcheck says of a file to which that was done
cp_good() { rm -f q.db*; cp good/* .; }
touched() { sqlite3 q.db 'PRAGMA wal_autocheckpoint=0; PRAGMA ignore_check_constraints=ON' "$1" >/dev/null; }
broken() {
	cp_good
	touched "$1"
	problems "$1" "$2"
}
HAND='something else than q has changed the file, or it is damaged: keep a copy (qbackup), find out who writes to it, and go back to a good backup if work is missing'

# ---- usage ----

exits 66 'no file' qcheck
exits 64 'an operand' qcheck q.db
is "$(cat err)" "qcheck: no operand is taken; the file is that of -d; see 'qcheck --help'" '... says so'
echo 'no database' >x
exits 78 'another file' qcheck -d x

# ---- a good file ----

qinit --outbox
problems 'an empty file'
seq 30 | qadd -q --lines mail
qadd -q -k k1 -t reset mail one
qadd -q -k k1 mail one
qset queue.short.keys=settled queue.short.attempts=2 queue.mail.dead_to=lost
qadd -q -k k2 short two
for i in 1 2 3 4; do qadd -q -e ana -k "e$i" orders "$i"; done
qadd -q -e bo --in 1d orders later
qclaim -c 3 mail | claim_of >claims
sed -n 1p claims | qdone -
sed -n 2p claims | qfail -m no -
sed -n 3p claims | qfail --dead -
qclaim short | claim_of | qfail -
qclaim orders | claim_of | qdone -
qclaim orders >held
qreplay --state done orders
qcancel 9
qreplay 9
qadd -q --replace -k e4 orders new
qclaim lost >/dev/null
qlock -l 1h name -- true
touched 'INSERT INTO q_outbox(queue, payload, key, entity) VALUES("mail", "by sql", "s", "cy")'
qadd -q mail 'by the clock of the tests'
export Q_BOOT=b2:5
problems 'a file in use'
qclaim -c 5 mail >/dev/null
problems '... after a boot'
qset rate.partner=5/s
qrate partner
touched ANALYZE
problems '... after ANALYZE'
exits "$well" 'all that is looked at' qcheck -v
is "$(cut -d: -f1 out | xargs)" 'files mount room reserve log clock boot sqlite journal schema plans integrity payloads counts claims entities keys ledger numbers fences' '... by name'
like "$(cat out)" '^sqlite: ok, SQLite 3\.[0-9.]+, which (does not have|has) the WAL-reset bug' '... and which SQLite it is'
exits "$well" '... in short' qcheck -v --quick
is "$(cut -d: -f1 out | xargs)" 'files mount room reserve log clock boot sqlite journal schema plans' '... by name'
exits "$well" '... as JSON' qcheck -j
is "$(jq -c 'keys_unsorted' out | sort -u)" '["check","ok","severity","detail","next"]' '... an object a check'
is "$(jq -r 'select(.check == "counts") | .ok, .severity, .detail, .next' out | xargs)" 'true null null null' '... that is well'

mkdir old
sqlite3 old/q.db 'PRAGMA journal_mode=WAL' ".read $t/schema-1.sql" >/dev/null
exits 78 'a file of an older schema' qcheck -d old/q.db
like "$(cat err)" "; next: qinit --upgrade '" '... is to be upgraded'
chmod 600 old/q.db*
qinit --upgrade old/q.db
export Q_DB="$PWD/old/q.db"
problems 'a file that was upgraded'
sqlite3 app.db 'PRAGMA journal_mode=WAL; CREATE TABLE orders(id); CREATE TRIGGER mine AFTER INSERT ON orders BEGIN SELECT 1; END' >/dev/null
chmod 600 app.db*
qinit --into app.db
Q_DB=$PWD/app.db
problems 'the file of an application'
sqlite3 app.db "CREATE TABLE odd(a TEXT COLLATE NOCASE); CREATE INDEX odd_a ON odd(a); PRAGMA writable_schema=on;
    UPDATE sqlite_schema SET sql = replace(sql, 'NOCASE', 'Ours') WHERE name = 'odd'" >/dev/null
problems '... with a collation that only the application has'
like "$(qcheck -v)" '^integrity: ok, but for tables of the application: .*: no such collation sequence: Ours, which only the application of the file has$' '... which is told'
sqlite3 app.db 'PRAGMA ignore_check_constraints=ON' "INSERT INTO q_job(id, queue, event_ms, due_ms, ready_ms, added_ms, priority) VALUES(7, 'mail', 1, 1, 1, 1, 11)" >/dev/null
like "$(qcheck)" '^integrity: CHECK constraint failed in q_job' '... and the tables of q are looked at'
Q_DB=$PWD/q.db

# ---- what is wrong in it ----

mkdir good
cp q.db* good
ready=$(sql "SELECT min(id) FROM q_job WHERE ready_ms IS NOT NULL AND entity IS NULL")
done=$(sql "SELECT min(id) FROM q_job WHERE state = 'done'")
claimed=$(sql "SELECT min(id) FROM q_job WHERE state = 'claimed'")
while IFS=@ read -r change line; do
	broken "$(eval "printf '%s' \"$change\"")" "$(eval "printf '%s' \"$line\"")"
done <<'END'
DELETE FROM q_body WHERE job = $ready@payloads: 1 jobs without their payload, which no program can work on; the first: job $ready; next: $HAND
INSERT INTO q_body VALUES(7777, x'61')@payloads: 1 payloads of jobs that are gone, which take room; the first: job 7777; next: $HAND
UPDATE q_count SET n = n + 1 WHERE queue = 'mail' AND state = 'done'@counts: 1 counts of finished jobs that are not what the rows say; the first: mail done; next: qcheck(1) says how to count again
DELETE FROM q_count WHERE queue = 'mail'@counts: 2 counts of finished jobs that are not what the rows say; the first: mail dead; next: qcheck(1) says how to count again
INSERT INTO q_count VALUES('ghost', 'done', 3)@counts: 1 counts of finished jobs that are not what the rows say; the first: ghost done; next: qcheck(1) says how to count again
UPDATE q_job SET nonce = NULL WHERE id = $claimed@claims: 1 claimed jobs without what a claim has; the first: job $claimed; next: $HAND
UPDATE q_job SET lease_ms = 999999999999999 WHERE id = $claimed@claims: 1 claims whose lease ends in more than ten years; the first: job $claimed; next: take them back: qls --state claimed
UPDATE q_job SET head = NULL, ready_ms = NULL WHERE entity = 'bo'@entities: 1 entities with open jobs of which none can be claimed; the first: job 37; next: adding a job to the entity puts it in order
UPDATE q_job SET ready_ms = NULL WHERE entity = 'bo'@entities: 1 entities whose next job is not the first in their order; the first: job 37; next: adding a job to the entity puts it in order
DELETE FROM q_key WHERE key = 'k1'@keys: 1 open jobs whose key is not remembered, so that it can be added twice; the first: job 31; next: $HAND
UPDATE q_key SET job = 1 WHERE key = 'k1'@keys: 1 keys that point to another job than theirs; the first: job 1; next: $HAND
UPDATE q_key SET job = 99999 WHERE key = 'k1'@keys: 1 keys that point to another job than theirs; the first: job 99999; next: $HAND
UPDATE q_job SET last_attempt = NULL WHERE id = $done@ledger: 1 jobs that do not agree with their last attempt; the first: job $done; next: $HAND
UPDATE q_job SET last_attempt = 3 WHERE id = $done@ledger: 1 jobs that do not agree with their last attempt; the first: job $done; next: $HAND
DELETE FROM q_job WHERE id = $done; DELETE FROM q_body WHERE job = $done@ledger: 1 attempts whose job is gone, though qpurge deletes both together; the first: job $done; next: $HAND
UPDATE q_attempt SET prev = id WHERE id = 2@ledger: 1 attempts whose one before is missing, or another job's; the first: job 2; next: $HAND
UPDATE q_job SET generation = 0 WHERE id = $done@numbers: 1 jobs with ids, times or counts out of range; the first: job $done; next: $HAND
INSERT INTO q_hold VALUES('lock', 'x', 9000, 1, 1, 'me')@fences: 1 holds with a fence that is still to come; the first: lock x; next: $HAND
DROP TRIGGER q_count_out@schema: trigger q_count_out is missing; next: $HAND
DROP TRIGGER q_count_out; CREATE TRIGGER q_count_out AFTER DELETE ON q_job BEGIN SELECT 1; END@schema: trigger q_count_out is not as q made it; next: $HAND
DROP TRIGGER q_outbox_add@schema: trigger q_outbox_add is missing; next: $HAND
CREATE TRIGGER mine AFTER INSERT ON q_job BEGIN SELECT 1; END@schema: trigger mine is not of q; next: $HAND
CREATE INDEX mine ON q_job(added_ms)@schema: index mine is not of q; next: $HAND
END
broken "UPDATE q_job SET priority = 11 WHERE id = $ready" "integrity: CHECK constraint failed in q_job; next: keep what is there (cp of the file and its log, all programs ended), and go back to a good backup"
cp_good
touched 'DROP INDEX q_job_lease'
exits 1 'a lost index' qcheck
like "$(cat out)" '^schema: index q_job_lease is missing; next: ' '... is missed'
like "$(cat out)" '^plans: EXPIRED reads rows it does not need \(S.*\), and gets slower as the file grows; next: ' '... and what it was for'
exits 1 '... as JSON' qcheck --json
is "$(jq -rc 'select(.ok | not) | [.check, .severity]' out | grep -v mount | sort -u | xargs)" '[plans,warning] [schema,error]' '... with how bad it is'

# The advice of the page is good.
cp_good
touched 'UPDATE q_count SET n = 77'
sed -n '/^sqlite3 q.db/,/^END/p' "$t/../man/qcheck.1" >again
sh again >out
problems 'counting again'

cp_good
sqlite3 q.db 'PRAGMA wal_checkpoint(TRUNCATE); VACUUM' >/dev/null
damage() { perl -e 'open my $f, "+<", "q.db" or die; seek $f, 4096 * ($_ - 1), 0 and print $f "\xff" x 3000 for @ARGV' "$@"; }
page() { sqlite3 -readonly q.db "SELECT rootpage FROM sqlite_schema WHERE name = '$1'"; }
damage "$(page q_body)" "$(page q_attempt)" "$(page q_key)"
exits 1 'damaged pages' qcheck
like "$(cat out)" '^integrity: ' '... are found'
like "$(cat out)" '^payloads: .*the file is damaged' '... also by what they hold'
like "$(cat out)" '^integrity: Page [0-9]+: [^\]*; next: keep ' '... a line each'

damage "$(page q_meta)"
exits 74 '... the page by which a queue file is known' qcheck

# ---- what is wrong around it ----

cp_good
qadd -q mail x
chmod 644 q.db-wal
ids=$(stat -c %u:%g q.db)
problems 'a log with another mode' "files: $PWD/q.db-wal has owner $ids and mode 0644, the file $ids and 0600, so not all who use one can use the other; next: chmod 0600 '$PWD/q.db-wal'"
cp_good
qadd -q mail x
if [ "$(id -u)" = 0 ]; then
	chgrp 1 q.db-reserve
	problems 'a reserve of another group, where no group has a right' ''
	chmod 660 q.db q.db-*
	problems '... and where one has' "files: $PWD/q.db-reserve has owner 0:1 and mode 0660, the file $ids and 0660, so not all who use one can use the other; next: chown $ids '$PWD/q.db-reserve'"
fi
cp_good
chmod 666 q.db*
problems 'a file for everybody' "files: everybody may write to it (mode 0666); next: chmod o-w '$PWD/q.db'*"
cp_good
chmod 777 .
problems 'a folder for everybody' "files: everybody may replace it, since they may write to $PWD; next: chmod o-w '$PWD'"
chmod 700 .
: >q.db-journal
problems 'a journal of another file' "files: $PWD/q.db-journal is there, of a file that had this name before; next: end all programs and move it away"
rm -f q.db-journal q.db-reserve
problems 'no reserve' "reserve: $PWD/q.db-reserve is gone, or was given up: on a full disk running work cannot settle; next: qinit makes it, when there is room"
qinit
problems '... and qinit makes it'
qbackup copy
exits "$well" 'a copy, which has no reserve' qcheck -d copy -v
like "$(cat out)" '^reserve: ok, none: no program has written to it here, so it is a copy' '... as it should be'
qadd -q -d copy mail x
exits 1 '... until work goes on with it' qcheck -d copy
like "$(cat out)" '^reserve: /.*/copy-reserve is gone' '... without one'
cp_good
qadd -q mail x
truncate -s 17M q.db-wal
problems 'a long log' "log: $PWD/q.db-wal has 17408 KiB: a reader keeps it from being copied, and each start reads all of it; next: end long-running readers (fuser shows who has it open); the next write then shortens it"
cp_good
export Q_NOW=2026-06-02T11:00:00Z
problems 'a clock that was set back' 'clock: the file was written at 2026-06-02T12:00:00Z, which is in 1h00m: the clock was ahead then, or is behind now; next: set the clock; what is due after now waits until then'
Q_NOW=2026-06-02T11:59:30Z
problems '... by less than a minute'
Q_BOOT=none
problems 'no boot clock' 'boot: the boot clock or /proc/sys/kernel/random/boot_id cannot be read, and without them nothing can be claimed; next: mount /proc; see Q_BOOT in q(7)'
sqlite3 q.db 'PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE' >/dev/null
exits 1 'another journal mode' qcheck
like "$(cat out)" "^journal: its journal mode is delete, and q needs WAL; next: sqlite3 FILE 'PRAGMA journal_mode=WAL'$" '... is told'
done_testing
