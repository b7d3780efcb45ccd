#!/bin/sh
# scripts/nightly-cleanup: marks, then deletes, what reviewed rules say, and stops when that is far too much
. "${0%/*}/lib.sh"
PATH="$t/../scripts:$PATH"
unset Q_NOW		# the marks are made by the clock
qinit
export BATCH=40 PAUSE=0
app() { sqlite3 app.db "$1"; }
dump() { app .dump; }
kept() { app "SELECT count(*), count(deleted_at) FROM session"; }
rule() { printf '%s\n' '# who decided, and when' '' "$*" >rules; }
app "PRAGMA journal_mode=WAL; CREATE TABLE session(id INTEGER PRIMARY KEY, kind TEXT, last_seen TEXT, deleted_at TEXT);
    INSERT INTO session(kind, last_seen) SELECT iif(value <= 100, 'guest', 'user'), datetime('now', '-40 days') FROM generate_series(1, 1000);
    INSERT INTO session(kind, last_seen) VALUES('guest', datetime('now', '-29 days'))" >made

rule "guests	session	30	150	kind = 'guest' AND last_seen < :cutoff"
before=$(dump)
exits 0 'dry run' nightly-cleanup -n app.db rules
like "$(cat out)" '^guests \(before [0-9 :-]* UTC\): would mark 100, delete 0$' '... tells the counts and the cutoff'
is "$(dump)" "$before" '... and does nothing'
exits 0 'the first night' nightly-cleanup app.db rules
is "$(kept)" '1001|100' '... marks'
like "$(cat out)" 'marked 100, deleted 0$' '... told'
is "$(tail -n 1 out)" 100 '... and the count'
exits 0 'another night' nightly-cleanup app.db rules
is "$(kept) $(tail -n 1 out)" '1001|100 0' '... nothing more'

# A week later, when one was marked wrongly, and one has come back.
app "UPDATE session SET deleted_at = datetime(deleted_at, '-7 days', '-1 minute');
    UPDATE session SET deleted_at = NULL, kind = 'user' WHERE id = 1; UPDATE session SET last_seen = datetime('now') WHERE id = 2"
exits 0 'a week later' nightly-cleanup app.db rules
is "$(kept)" '903|1' '... what is still marked and still matches goes'
is "$(app "SELECT group_concat(id) FROM session WHERE id <= 100 OR kind = 'guest'")" 1,2,1001 '... and nothing else'
is "$(app 'SELECT count(*), count(DISTINCT id), min(id), max(id), min(rule) FROM cleanup_audit')" '98|98|3|100|guests' '... its ids are on record'
is "$(app 'SELECT count(DISTINCT cutoff) FROM cleanup_audit')" 1 '... with one cutoff'

# The condition suddenly matches everything: a column of another name in quotes, a value that is always true.
rule "guests	session	30	150	kind = 'guest' AND last_seen < :cutoff OR 'user' = 'user'"
echo "old session 30 9999 last_seen < :cutoff" >>rules
before=$(dump)
exits 1 'a condition that matches everything' nightly-cleanup app.db rules
like "$(cat err)" '^nightly-cleanup: guests: 902 rows to mark, more than 150$' '... is told'
like "$(cat err)" '^nightly-cleanup: nothing was marked or deleted$' '... with what was done'
is "$(dump)" "$before" '... indeed, nothing, by no rule'

while read -r code line; do
	printf '%s' "$line" >rules
	exits "$code" "refused: $line" nightly-cleanup app.db rules
	is "$(dump)" "$before" '... before anything is done'
done <<'END'
65 a session 30 100 kind <> 'user' AND last_seen < :cutoff
65 a session 30 100 last_seen < :cutoff AND id not in (SELECT 1)
65 a session 30 100 kind = 'guest'
65 a session 0 100 last_seen < :cutoff
65 a session x 30 last_seen < :cutoff
65 a session;x 30 100 last_seen < :cutoff
1 a sesion 30 100 last_seen < :cutoff
1 a session 30 100 lastseen < :cutoff
END
exits 64 'no such application' nightly-cleanup no.db rules
[ ! -e no.db ]
ok $? '... is not made'
exits 64 'a scheduled time to come' env Q_DUE=2099-01-01T00:00:00Z nightly-cleanup app.db rules

# Times that are numbers: any of them is less than a text.
app "CREATE TABLE visit(id INTEGER PRIMARY KEY, at, session REFERENCES session(id), deleted_at);
    INSERT INTO visit(at) VALUES(unixepoch()), (unixepoch() - 9000000)"
rule "visits visit 30 150 at < :cutoff"
exits 1 'a time that is a number' nightly-cleanup app.db rules
like "$(cat err)" '^nightly-cleanup: visits: 2 rows match whatever the cutoff is;' '... is told'
rule "visits visit 30 150 at < unixepoch(:cutoff)"
exits 0 '... and compared as one' nightly-cleanup app.db rules
is "$(app 'SELECT group_concat(id) FROM visit WHERE deleted_at IS NOT NULL')" 2 '... it is what it says'

# What others point at stays, if the table says so.
app "INSERT INTO session(id, kind, last_seen, deleted_at) VALUES(7777, 'bound', '2026-01-01', '2026-01-01'); INSERT INTO visit(at, session) VALUES(1, 7777)"
rule "bound session 30 150 kind = 'bound' AND last_seen < :cutoff"
exits 1 'a foreign key' nightly-cleanup app.db rules
is "$(app "SELECT count(*), (SELECT count(*) FROM cleanup_audit WHERE rule = 'bound') FROM session WHERE id = 7777")" '1|0' '... is obeyed'
app 'DELETE FROM visit; DELETE FROM session WHERE id = 7777'
exits 1 'a time that is none' env Q_DUE=noon nightly-cleanup app.db rules
exits 1 'days of grace that are none' env GRACE_DAYS=7d nightly-cleanup app.db rules

# Killed after the first batch, and run again: the same cutoff, so the same rows.
app "INSERT INTO session(kind, last_seen) SELECT 'trial', '2026-03-01 00:00:' || printf('%02d', value % 60) FROM generate_series(1, 100)"
rule "trials session 30 150 kind = 'trial' AND last_seen < :cutoff"
export Q_DUE=2026-03-31T00:00:30.000Z
mkdir bin
printf '#!/bin/sh\n"%s" "$@" || exit\ncase "$*" in *UPDATE*) kill -9 $PPID ;; esac\n' "$(command -v sqlite3)" >bin/sqlite3
chmod +x bin/sqlite3
PATH="$PWD/bin:$PATH" nightly-cleanup app.db rules >out 2>err
is "$(app "SELECT count(deleted_at) FROM session WHERE kind = 'trial'")" 40 'killed after a batch'
exits 0 '... run again' nightly-cleanup app.db rules
is "$(app "SELECT count(*), max(last_seen) FROM session WHERE kind = 'trial' AND deleted_at IS NOT NULL")" '59|2026-03-01 00:00:29' \
    '... what is older than the scheduled time says, and no more'
# Killed before its Nth command, whichever that is: KILLS="$(seq 58)" is all of them.
echo 'n_=0; set -T; trap '\''((++n_ != KILL_AT)) || kill -9 $$'\'' DEBUG' >kill.sh
rule "tests session 30 150 kind = 'test' AND last_seen < :cutoff"
killed=0
for k in ${KILLS:-44 47}; do
	app "DELETE FROM session WHERE kind = 'test'; DELETE FROM cleanup_audit WHERE rule = 'tests';
	    INSERT INTO session(kind, last_seen, deleted_at) SELECT 'test', iif(value <= 20, '2026', '2026-03-30'),
	    iif(value > 10, NULL, '2026-03-01') FROM generate_series(1, 25)"
	BATCH=7 BASH_ENV="$PWD/kill.sh" KILL_AT=$k nightly-cleanup app.db rules >out 2>err
	[ $? != 137 ] || killed=$((killed + 1))
	BATCH=7 nightly-cleanup app.db rules >out
	is "$? $(app "SELECT count(*), count(deleted_at) FROM session WHERE kind = 'test'") $(app "SELECT count(*) FROM cleanup_audit WHERE rule = 'tests'")" \
	    '0 15|10 10' "killed before command $k"
done
[ "$killed" -gt 0 ]
ok $? '... indeed'

unset Q_DUE

# By cron: the count, and who tells that it did not run or stopped.
rule "guests session 30 150 kind = 'guest' AND last_seen < :cutoff"
qset expect.cleanup=26h
exits 0 'under qjob' qjob --count-from-stdout cleanup -- nightly-cleanup app.db rules
is "$(qls -j --state done cleanup | jq .count)" 0 '... the count is on record'
exits 0 '... all is well' qlate --check cleanup
for usual in 1 2 2 2; do qjob --count-from-stdout cleanup -- echo "$usual" >out; done
app "INSERT INTO session(kind, last_seen) SELECT 'guest', '2026-01-01' FROM generate_series(1, 60)"
exits 0 'a night with far more than usual, below the limit' qjob --count-from-stdout cleanup -- nightly-cleanup app.db rules
exits 1 '... qlate --check tells' qlate --check cleanup
like "$(cat out)" 'COUNT cleanup' '... of the count'
rule "guests session 30 150 last_seen < :cutoff"
exits 1 'stopped by its breaker' qjob --count-from-stdout cleanup -- nightly-cleanup app.db rules
exits 1 '... qlate --check tells' qlate --check cleanup
like "$(cat out)" 'DEAD cleanup: ' '... of a run that failed'
qls --state dead cleanup | cut -f 1 | qcancel -q -
exits 1 'a day later' env Q_NOW="$(date -u -d '27 hours' +%FT%TZ)" qlate --check cleanup
like "$(cat out)" 'ABSENT cleanup: ' '... of a run that was not there'
done_testing
