#!/bin/sh
# scripts/outbox-relay: at least once from the table, once in the queue; SQLite, and PostgreSQL where it is installed
. "${0%/*}/lib.sh"
PATH="$t/../scripts:$PATH"
unset Q_NOW		# the database has its own clock
qinit
unpublished() { sqlite3 app.db 'SELECT count(*) FROM outbox WHERE published_at IS NULL'; }
export OUTBOX="$PWD/app.db"

exits 66 'no file' outbox-relay
[ ! -e app.db ]
ok $? '... and none is made'
sqlite3 app.db "CREATE TABLE outbox(id INTEGER PRIMARY KEY, queue TEXT NOT NULL, payload TEXT NOT NULL,
    created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, published_at TEXT)"
exits 0 'nothing to do' outbox-relay
sqlite3 app.db "BEGIN; INSERT INTO outbox(queue, payload) VALUES('mail', 'lost'); ROLLBACK;
    INSERT INTO outbox(queue, payload) SELECT 'mail', 'It''s \"' || value || '\"' || char(10) || 'é' FROM generate_series(1, 1100);
    INSERT INTO outbox(id, queue, payload) VALUES(9007199254740993, 'big', 'x')"

# Killed between the two steps: the real qadd, and then the relay dies.
mkdir bin
printf '#!/bin/sh\n"%s" "$@" && kill -9 $PPID\n' "$(command -v qadd)" >bin/qadd
chmod +x bin/qadd
exits 137 'killed between enqueue and mark' env PATH="$PWD/bin:$PATH" outbox-relay
is "$(unpublished) $(sql 'SELECT count(*) FROM q_job')" '1101 1000' '... the jobs are there, and no row is marked'
exits 0 '... run again' outbox-relay
is "$(cat err)" '' '... in silence'
is "$(unpublished) $(sql 'SELECT count(*), count(DISTINCT key) FROM q_job')" '0 1101|1101' '... each is delivered once'
qls --raw 7 >got
is "$(cat got)" "$(printf 'It'\''s "7"\né')" '... as it was'
is "$(sql "SELECT key FROM q_job WHERE queue = 'big'")" outbox/9007199254740993 '... a large id, too'
is "$(qls mail | grep -c lost)" 0 '... and nothing of the transaction that was rolled back'

# Stopped for ten minutes.
exits 0 'nothing waits: the check is silent' outbox-relay --check
is "$(cat out err)" '' '... indeed'
sqlite3 app.db "INSERT INTO outbox(queue, payload, created_at) VALUES('mail', 'a', datetime('now', '-9 minutes'))"
exits 0 'nine minutes are not long' outbox-relay --check
sqlite3 app.db "UPDATE outbox SET created_at = datetime('now', '-11 minutes') WHERE payload = 'a'"
exits 1 'stopped for ten minutes: the check fires' outbox-relay --check
like "$(cat out)" '^outbox: 1 rows are not published, the oldest for 66[0-9] s' '... with count and age'
sqlite3 app.db "UPDATE outbox SET created_at = 'soon' WHERE payload = 'a'"
exits 1 'a time that is none' outbox-relay --check
like "$(cat out)" 'created_at is no time' '... is told'
exits 1 'too many rows' env MAX_ROWS=0 MAX_AGE=9999 outbox-relay --check

# Rows that cannot be jobs are named, and hold up no other.
sqlite3 app.db "INSERT INTO outbox(id, queue, payload) VALUES(-4, 'mail', ''), (-3, '12', 'x'), (-2, 'mail', CAST(x'ff' AS text)), (-1, 'mail', x'fe');
    INSERT INTO outbox(queue, payload) SELECT 'behind', value FROM generate_series(1, 1000)"
exits 65 'rows that cannot be jobs' outbox-relay
is "$(sed 's/;.*//' err)" "$(printf 'outbox-relay: %s\n' 'row -4: the payload is empty' "row -3: bad queue name '12'" \
    'row -2: not UTF-8 at byte 55' 'rows that cannot be jobs: 4')" '... are told, the first of them by name'
is "$(unpublished) $(qls behind | wc -l)" '4 1000' '... and the others go on'
sqlite3 app.db "DELETE FROM outbox WHERE id < 0"
exits 0 'mended' outbox-relay
is "$(unpublished)" 0 '... goes on'

# The rows are cut short, as by a full disk that sqlite3 does not tell of.
sqlite3 app.db "INSERT INTO outbox(queue, payload) VALUES('cut', 'x'), ('cut', 'y')"
rm bin/qadd
for filter in 'head -n 0' 'head -n 1' 'sed 1d'; do
	printf '#!/bin/sh\nPATH=${PATH#*:}\nsqlite3 "$@" | %s\n' "$filter" >bin/sqlite3
	chmod +x bin/sqlite3
	env PATH="$PWD/bin:$PATH" outbox-relay >out 2>err
	like "$? $(cat err)" '^74 .*not all rows came|^65 .*1 jobs came, 2 were expected' "not all of the rows: $filter"
done
is "$(qls cut)" '' '... adds nothing'
outbox-relay & outbox-relay; wait $!
is "$? $(unpublished) $(qls cut | wc -l)" '0 0 2' 'two at once'

# Killed before its Nth command, whichever that is: KILLS="$(seq 40)" is all of them.
echo 'n_=0; set -T; trap '\''((++n_ != KILL_AT)) || kill -9 $$'\'' DEBUG' >kill.sh
killed=0
for k in ${KILLS:-23 25}; do
	sqlite3 app.db "INSERT INTO outbox(queue, payload) VALUES('kill$k', 'a'), ('kill$k', 'b')"
	BASH_ENV="$PWD/kill.sh" KILL_AT=$k outbox-relay 2>err
	[ $? != 137 ] || killed=$((killed + 1))
	outbox-relay
	is "$? $(unpublished) $(qls "kill$k" | wc -l)" '0 0 2' "killed before command $k"
done
[ "$killed" -gt 0 ]
ok $? '... indeed'

# The same through psql, against a server of our own; as another user, since it does not run as root.
for pg in "$(dirname "$(command -v initdb)")" /usr/lib/postgresql/*/bin; do [ ! -x "$pg/initdb" ] || break; done
if [ ! -x "$pg/initdb" ] || ! command -v psql >/dev/null || { [ "$(id -u)" = 0 ] && ! id postgres >/dev/null 2>&1; }; then
	ok 0 'through psql # SKIP PostgreSQL is not installed'
	done_testing
	exit
fi
as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; else "$@"; fi; }
chmod 711 .
mkdir pg
[ "$(id -u)" != 0 ] || chown postgres pg
(cd pg && as "$pg/initdb" -D data -A trust -U app --no-sync && as "$pg/pg_ctl" -s -w -D "$PWD/data" -l log \
    -o "-c listen_addresses='' -c fsync=off -k '$PWD'" start) >pg.out 2>&1 || cat pg.out
export OUTBOX="host=$PWD/pg user=app dbname=postgres"
psql() { command psql -XqAt -v ON_ERROR_STOP=1 -d "$OUTBOX" "$@"; }
psql -c "CREATE TABLE outbox(id bigint GENERATED ALWAYS AS IDENTITY, queue text NOT NULL, payload text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(), published_at timestamptz);
    INSERT INTO outbox(queue, payload, created_at) VALUES('pg', E'It''s\n1', now() - interval '11 minutes'), ('pg', '2', now())"
exits 1 'PostgreSQL: the check' outbox-relay --check
like "$(cat out)" '^outbox: 2 rows are not published, the oldest for 66[0-9] s' '... with count and age'
exits 0 'PostgreSQL: the relay' outbox-relay
is "$(qls pg | cut -f 7)" "$(printf '%s\n' "It's\n1" 2)" '... through psql'
is "$(psql -c 'SELECT count(*), count(published_at) FROM outbox')" '2|2' '... all marked'
exits 0 '... and the check is silent' outbox-relay --check
as "$pg/pg_ctl" -s -m immediate -D "$PWD/pg/data" stop
exits 2 'no server' outbox-relay
done_testing
