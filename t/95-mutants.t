#!/bin/sh
# Damaged queue files, and what the programs make of them (t/fuzz/mutants.c says what is expected); `make fuzz` tries 20,000.
# SEED=N and MUTANTS=N repeat some and try more.
. "${0%/*}/lib.sh"
[ -x "$t/fuzz/mutants" ] || skip_all 't/fuzz/mutants is not built'

exits 0 'damaged in many ways' env MUTANTS="${MUTANTS:-15}" SEED="${SEED:-$$}" "$t/fuzz/mutate"
like "$(cat out)" ' runs: [0-9]* answered, [0-9]* called it damaged, .*; faults: 0$' '... and borne'
sed 's/^/# /' out err

# What was found.
export Q_BOOT=b1:1000
qinit
for i in 1 2 3; do head -c 9000 /dev/zero | tr '\0' "$i" | qadd -q mail -; done
sqlite3 q.db 'PRAGMA wal_checkpoint(TRUNCATE)' >checkpoint
cp q.db good.db
good() { rm -f q.db-* && cp good.db q.db; }

page=$(sql "SELECT min(pageno) FROM dbstat WHERE name = 'q_body' AND pagetype = 'overflow' AND path LIKE '/001%'")
perl -e 'open my $f, "+<", "q.db" or die; seek $f, 4096 * ($ARGV[0] - 1), 0; print $f "\xff" x 4096' "$page"
exits 74 'qclaim: one of the payloads cannot be read' qclaim -c 3 mail
is "$(cat out)" '' '... no job is told'
like "$(cat err)" "^qclaim: $PWD/q.db: the file is damaged; " '... says so'
is "$(sql "SELECT count(*) FROM q_job WHERE state = 'pending'")" 3 '... and none is claimed'

good
perl -e 'open my $f, "+<", "q.db" or die; seek $f, 47, 0; print $f "\7"'
exits 78 'a format of another SQLite' qls
is "$(cat err)" "qls: $PWD/q.db: unsupported file format; somebody else has changed the file, or it is damaged; next: qcheck" '... is no bug here'

good
sqlite3 q.db 'ALTER TABLE q_job RENAME COLUMN worker TO w'
exits 78 'a column that is not there' qclaim mail
like "$(cat err)" "^qclaim: $PWD/q.db: no such column: worker; somebody else has changed the file, or it is damaged; next: qcheck$" '... is no bug here'
exits 1 '... for qcheck' qcheck
like "$(cat out)" '^schema: table q_job is not as q made it; ' '... names it'

good
page=$(sql "SELECT rootpage FROM sqlite_schema WHERE name = 'q_job_ready'")
qcancel -q 1
sqlite3 q.db 'PRAGMA wal_checkpoint(TRUNCATE)' >checkpoint
dd if=good.db of=q.db bs=4096 skip=$((page - 1)) seek=$((page - 1)) count=1 conv=notrunc 2>/dev/null
rm q.db-*
unchanged 74 'an index of yesterday' qclaim mail
like "$(cat err)" "^qclaim: $PWD/q.db: job 1 is not as its index says; the file is damaged; " '... is damage'

good
qclaim mail | claim_of | qdone -
schema=$(sql "SELECT sql FROM sqlite_schema WHERE name = 'q_attempt'")
schema() { sqlite3 q.db 'PRAGMA writable_schema=ON' "UPDATE sqlite_schema SET sql = $1 WHERE name = 'q_attempt'"; }
schema "replace(sql, 'NOT NULL', '')"
sqlite3 q.db 'UPDATE q_attempt SET outcome = NULL, queue = NULL'
schema "'$(echo "$schema" | sed "s/'/''/g")'"
for cmd in 'qlate' 'qlate --check' 'qlate --prom' 'qls 1'; do
	exits 74 "$cmd: no outcome where there always is one" $cmd
	like "$(cat err)" "$PWD/q.db: .*the file is damaged; " '... says so'
done

good
sqlite3 q.db "INSERT INTO q_body VALUES(4, x'61')"
exits 74 'a row that cannot be there' qadd mail x
like "$(cat err)" "^qadd: $PWD/q.db: UNIQUE constraint failed: q_body.job; somebody else has changed the file" '... is no bug here'
done_testing
