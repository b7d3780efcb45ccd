#!/bin/sh
# qinit: what it makes, with which mode and owner, and what it refuses to touch.
# shellcheck disable=SC2016 # a $1 in single quotes belongs to an inner shell
. "${0%/*}/lib.sh"

mode() { stat -c %a "$1"; }
# What stands in the folder: every file's name, mode and bytes, without the shared memory that readers write.
seen() { find "${1:-.}" -type f ! -name '*-shm' ! -path ./out ! -path ./err | sort | xargs stat -c '%n %a %u:%g' | cat - /dev/null
	find "${1:-.}" -type f ! -name '*-shm' ! -path ./out ! -path ./err | sort | xargs cksum; }
refused() {	# CODE REGEX NAME CMD...: refused in one line, with nothing on standard output
	_like=$2
	_what=$3
	_code=$1
	shift 3
	exits "$_code" "$_what" "$@"
	is "$(cat out)$(wc -l <err | tr -d ' ')" 1 '... in one line'
	like "$(cat err)" "$_like" '... that says why'
}

# ---- a new file ----

refused 66 "^qls: $PWD/q.db: no such queue file; next: qinit " 'only qinit creates' qls
is "$(ls -A)" "$(printf 'err\nout')" '... so nothing was made'

for mask in 000 022 027 077; do
	mkdir "u$mask"
	exits 0 "umask $mask" sh -c 'umask "$1" && qinit "u$1/q.db" && qadd -q -d "u$1/q.db" m hello' sh "$mask"
	is "$(cat out err)" '' '... silent'
	is "$(find "u$mask" -type f ! -perm 600)" '' '... the file and those beside it are for the owner alone'
	is "$(find "u$mask" -type f | sed 's|.*/||' | sort | tr '\n' ' ')" 'q.db q.db-lock q.db-reserve q.db-shm q.db-wal ' '... and these'
done
is "$(stat -c %s u077/q.db-reserve)" 1048576 'the reserve is 1 MiB'
is "$(($(stat -c '%b * %B' u077/q.db-reserve) >= 1048576))" 1 '... of real blocks'

exits 0 'a file for a group' sh -c 'umask 077; qinit -m 0660 shared.db && qadd -q -d shared.db m x'
is "$(for f in shared.db*; do mode "$f"; done | sort -u)" 660 '... whatever the umask'
exits 0 'a file that a group may read' sh -c 'umask 077; qinit --mode=640 read.db && qadd -q -d read.db m x'
is "$(for f in read.db*; do mode "$f"; done | sort -u)" 640 '... that, too'

is "$(sqlite3 -readonly u022/q.db 'PRAGMA journal_mode; PRAGMA user_version; SELECT value FROM q_meta WHERE name = "version"')" \
    "$(printf 'wal\n3\n3')" 'the file knows its version and is in WAL mode'
is "$(sqlite3 -readonly u022/q.db 'PRAGMA integrity_check')" ok '... and is sound'
is "$(sqlite3 -readonly u022/q.db "SELECT count(*) FROM sqlite_schema WHERE name = 'q_outbox'")" 0 '... without the view'

# ---- a group ----

group=$(id -Gn | tr ' ' '\n' | tail -n 1)
gid=$(id -G | tr ' ' '\n' | tail -n 1)
if [ "$(id -u)" -eq 0 ]; then
	gid=$(awk -F: '$3 > 0 { print $3; exit }' /etc/group)
	group=$(awk -F: '$3 > 0 { print $1; exit }' /etc/group)
fi
mkdir srv
chgrp "$gid" srv && chmod 2770 srv
exits 0 'a group by name' sh -c 'umask 077; qinit -m 0660 -g "$1" srv/q.db && qadd -q -d srv/q.db m x' sh "$group"
is "$(stat -c '%a %g' srv/q.db* | sort -u)" "660 $gid" '... owns the file and those beside it'
exits 0 'a group by number' qinit -m 0660 --group "$gid" srv/n.db
is "$(stat -c '%a %g' srv/n.db* | sort -u)" "660 $gid" '... likewise'
mkdir plain
exits 0 '... in a folder of another group' sh -c 'qinit -m 0660 -g "$1" plain/q.db && qadd -q -d plain/q.db m x' sh "$gid"
is "$(stat -c '%a %g' plain/q.db plain/q.db-lock plain/q.db-reserve | sort -u)" "660 $gid" '... too'
refused 78 "no group 'no-such-group'" 'a group that is not there' qinit -g no-such-group g.db
is "$(find . -name 'g.db*')" '' '... leaves nothing'
if [ "$(id -u)" -eq 0 ]; then
	mkdir his && chown 4001:4002 his
	chmod 711 .
	mkdir bin && cp "$(command -v qinit)" "$(command -v qadd)" bin
	exits 0 "another user's file ..." setpriv --reuid=4001 --regid=4002 --clear-groups bin/qinit his/q.db
	rm his/q.db-*
	exits 0 '... used by root ...' qadd -q -d his/q.db m x
	is "$(stat -c '%a %u:%g' his/q.db* | sort -u)" '600 4001:4002' '... stays his, with all that stands beside it'
	exits 0 '... and works for him' setpriv --reuid=4001 --regid=4002 --clear-groups bin/qadd -q -d his/q.db m y
	refused 77 '^qinit: .*(group 0|ermi)' 'a group one is not in' \
	    setpriv --reuid=4001 --regid=4002 --clear-groups bin/qinit -m 0660 -g 0 his/g.db
	is "$(find his -name 'g.db*')" '' '... leaves nothing'
fi

# ---- again ----

before=$(seen u022)
for again in '' -m0600 --upgrade; do
	# shellcheck disable=SC2086 # no word is meant for no option
	exits 0 "a second run ${again:+with $again }..." qinit $again u022/q.db
	is "$(cat out err)" '' '... is silent'
done
is "$(seen u022)" "$before" '... and changed nothing'
rm u022/q.db-reserve
qinit u022/q.db
is "$(stat -c %s u022/q.db-reserve)" 1048576 'a reserve that was given up is made again'
mkdir race
i=0
while [ $i -lt 12 ]; do
	{ qinit race/q.db 2>>race/err || echo "exit $?" >>race/err; qadd -d race/q.db m "$i" >>race/ids 2>>race/err; } &
	i=$((i + 1))
done
wait
is "$(cat race/err)" '' 'twelve at once all succeed'
is "$(sort -n race/ids | tr '\n' ' ')" '1 2 3 4 5 6 7 8 9 10 11 12 ' '... into one file'

# Creators take turns by flock(2) on the folder, which anybody may hold.
mkdir locked
mkfifo held end
flock locked sh -c 'echo >held; read -r _ <end' &
read -r _ <held
refused 75 "^qinit: $PWD/locked: locked by another program \\(flock\\); try again later$" 'in a folder that another program locks' \
    env Q_BUSY_TIMEOUT=50ms timeout 20 qinit locked/q.db
is "$(ls -A locked)" '' '... makes nothing'
qinit locked/q.db & pid=$! i=0
until find "/proc/$pid/fd" -lname "$PWD/locked" 2>/dev/null | grep -q . || [ $((i += 1)) -gt 500 ]; do sleep 0.01; done
echo >end
exits 0 '... waits a while' wait $pid
ok "$(test -f locked/q.db; echo $?)" '... and makes its file when the lock is gone'
wait

# ---- where ----

exits 0 'Q_DB names the file' env Q_DB="$PWD/by-env.db" qinit
ok "$(test -f by-env.db; echo $?)" '... and it is there'
exits 0 '-d goes before Q_DB' qinit -d by-d.db
ok "$(test -f by-d.db && ! test -e q.db; echo $?)" '... and it is there'
exits 0 'the operand goes before -d' qinit -d by-d2.db by-operand.db
ok "$(test -f by-operand.db && ! test -e by-d2.db; echo $?)" '... and it is there'
exits 0 'XDG_STATE_HOME' env -u Q_DB XDG_STATE_HOME="$PWD/state" sh -c 'qinit && qadd -q m x'
ok "$(test -f state/q/q.db; echo $?)" '... holds q/q.db, the folders made on the way'
is "$(mode state) $(mode state/q)" '700 700' '... which are private'
exits 0 'HOME' env -u Q_DB HOME="$PWD/home" sh -c 'mkdir home && umask 000 && qinit && qadd -q m x'
ok "$(test -f home/.local/state/q/q.db; echo $?)" '... holds .local/state/q/q.db'
is "$(mode home/.local) $(mode home/.local/state/q) $(mode home/.local/state/q/q.db)" '700 700 600' '... private, whatever the umask'
exits 0 'a relative XDG_STATE_HOME is ignored, as its standard says' env -u Q_DB HOME="$PWD/home" XDG_STATE_HOME=rel qinit
ok "$(test ! -e rel; echo $?)" '... and not made'
exits 0 'an empty Q_DB is none' env Q_DB= HOME="$PWD/home" qls
refused 78 '^qinit: .*neither Q_DB nor HOME is set' 'none of them' env -u Q_DB -u HOME qinit
refused 78 '^qadd: .*neither Q_DB nor HOME is set' '... nor for qadd' env -u Q_DB -u HOME qadd m x
refused 66 '^qinit: .*empty' 'an empty name' qinit ''

mkdir odd
for name in 'file:x.db?mode=memory' ':memory:' 'a b.db' "it's.db" '%41.db' '?' 'new
line' 'ünï.db' '*' -dash.db; do
	(cd odd && qinit -- "$name" && qadd -q -d "$name" m x && qls -d "$name" m | cut -f 7) >out 2>err
	is "$(cat out err)" x "a file called '$(printf %s "$name" | tr '\n' '~')'"
	ok "$(test -f "odd/$name"; echo $?)" '... is a file'
done

refused 73 "^qinit: no/such: .*next: mkdir -p 'no/such'" 'a folder that is not there' qinit no/such/q.db
refused 73 "^qinit: $PWD/no/such: .*next: mkdir -p" 'a folder of Q_DB is not guessed at, either' env Q_DB="$PWD/no/such/q.db" qinit
ok "$(test ! -e no; echo $?)" '... so none was made'
refused 73 '^qinit: ' 'a folder that is a file' qinit by-d.db/q.db
if [ "$(id -u)" -eq 0 ]; then
	mkdir closed && chmod 755 closed
	user() { setpriv --reuid=4001 --regid=4001 --clear-groups "$@"; }
else
	mkdir closed && chmod 555 closed
	user() { "$@"; }
	mkdir bin && cp "$(command -v qinit)" bin
fi
refused 77 '^qinit: .*ermission denied' 'a folder one may not write to' user bin/qinit closed/q.db
is "$(ls -A closed)" '' '... is left alone'
mkdir shut && chmod 000 shut
refused 77 '^qinit: .*ermission denied' 'a folder one may not enter' user bin/qinit shut/q.db
refused 77 '^qinit: .*ermission denied' 'a HOME one may not write to' user env -u Q_DB HOME="$PWD/closed" bin/qinit
refused 78 'name of the queue file is too long' 'a name that leaves no room for side files' qinit "$(printf '%04095d' 0)"

# ---- what is there is not touched ----

untouched() {	# FILE REGEX NAME
	before=$(cksum <"$1")
	refused 78 "$2" "$3" qinit "$1"
	is "$(cksum <"$1")" "$before" '... and is left byte for byte'
	before=$(cksum <"$1")
	refused 78 "$2" '... also with --outbox' qinit --outbox "$1"
	is "$(cksum <"$1")" "$before" '... byte for byte'
}
echo 'Dear diary' >diary
untouched diary '^qinit: .*/diary: not an SQLite database' 'a text file'
head -c 100000 /dev/urandom >noise
untouched noise '^qinit: .*/noise: not an SQLite database' 'a file of noise'
: >empty
untouched empty '^qinit: .*/empty: ' 'an empty file'
sqlite3 other.db 'CREATE TABLE orders(x); INSERT INTO orders VALUES(1)'
untouched other.db "^qinit: .*/other.db: no queue tables in this database; next: qinit --into" "an application's file"
sqlite3 otherwal.db 'PRAGMA journal_mode=WAL; CREATE TABLE orders(x); INSERT INTO orders VALUES(1)' >/dev/null
untouched otherwal.db "^qinit: .*: no queue tables in this database" "an application's file in WAL mode"
mkdir folder
refused 78 '/folder: a directory, not a queue file' 'a folder' qinit folder
mkfifo pipe
refused 78 '/pipe: not a regular file' 'a pipe' qinit pipe
cp u022/q.db newer.db
sqlite3 newer.db "UPDATE q_meta SET value = '4' WHERE name = 'version'" && rm -f newer.db-*
untouched newer.db 'newer q \(schema 4, this program knows 3\); next: install' 'a newer schema'
refused 78 'newer q' '... even with --upgrade' qinit --upgrade newer.db
refused 66 'no such queue file' '--upgrade makes no file' qinit --upgrade not-there.db
ok "$(test ! -e not-there.db; echo $?)" '... at all'

qinit one.db && qadd -q -d one.db m x
ln one.db two.db
for f in one.db two.db; do
	refused 78 'has 2 names \(hard links\)' 'a file of two names' qinit "$f"
	refused 78 'has 2 names \(hard links\)' '... to qadd, too' qadd -d "$f" m x
done
rm two.db
exits 0 '... until one is gone' qadd -q -d one.db m x

mkdir links && ln -s ../one.db links/way
exits 0 'a symbolic link to the file is the file' qinit links/way
exits 0 '... to qadd, too' qadd -q -d links/way m x
is "$(ls links)" way '... so nothing stands beside the link'
is "$(sqlite3 -readonly one.db 'SELECT count(*) FROM q_job')" 3 '... and all jobs are in one file'
ln -s nowhere.db dangling
refused 78 'not a regular file' 'a link to nothing' qinit dangling
ok "$(test ! -e nowhere.db; echo $?)" '... makes nothing'

for side in wal journal; do
	mkdir "left-$side" && echo 'old log' >"left-$side/q.db-$side"
	refused 78 "/q.db: gone, but its log .*-$side is there; " "a -$side without its file" qinit "left-$side/q.db"
	refused 78 'gone, but its log' '... to qadd, too' qadd -d "left-$side/q.db" m x
	is "$(ls "left-$side") $(cat "left-$side/q.db-$side")" "q.db-$side old log" '... is left alone'
done

# ---- what a killed qinit left ----

mkdir killed
printf 'SQLite format 3' >killed/q.db-qinit
echo x >killed/q.db-qinit-journal
exits 0 'half a file of a killed qinit' qinit killed/q.db
is "$(echo killed/*)" 'killed/q.db killed/q.db-reserve killed/q.db-shm killed/q.db-wal' '... is cleared away'
rm killed/*
qinit killed/q.db
ln killed/q.db killed/q.db-qinit
refused 78 'hard links.*next: qinit' 'one killed between link and unlink' qadd -d killed/q.db m x
exits 0 '... is finished by the next' qinit killed/q.db
exits 0 '... and works' qadd -q -d killed/q.db m x
ok "$(test ! -e killed/q.db-qinit; echo $?)" '... with one name'
echo mine >mine.db-new
qinit mine.db
is "$(cat mine.db-new)" mine 'a file of a like name is nobody else'\''s'
bad=0 i=0
while [ $i -lt 20 ]; do
	i=$((i + 1))
	timeout -s KILL "0.$(printf %03d $((i * 4)))" qinit "killed/$i.db" 2>/dev/null
	if test -e "killed/$i.db" && ! qls -d "killed/$i.db"; then bad=$((bad + 1)); fi
	qinit "killed/$i.db" || bad=$((bad + 1))
done 2>/dev/null
is $bad 0 'killed at twenty moments, it left nothing or a whole file, and the next one worked'
is "$(find killed -name '*qinit*')" '' '... and no remains'

# ---- from an older schema ----

# A file as version 1 made it, with jobs in it.
old() {
	rm -f old.db*
	{
		echo 'PRAGMA journal_mode=WAL; PRAGMA application_id=0x71756575; PRAGMA user_version=1; BEGIN;'
		cat "$t/schema-1.sql"
		echo "INSERT INTO q_job(queue, event_ms, due_ms, ready_ms, added_ms) VALUES('m', 1, 1, 1, 1), ('m', 2, 2, 2, 2);
		    INSERT INTO q_body VALUES(1, x'6f6e65'), (2, x'74776f');
		    UPDATE q_job SET state = 'done', ready_ms = NULL, finished_ms = 3 WHERE id = 1; $1 COMMIT;"
	} | sqlite3 -bail old.db >/dev/null && rm -f old.db-*
}
shape() { sqlite3 -readonly "$1" "PRAGMA user_version; SELECT type, name, sql FROM sqlite_schema ORDER BY name; SELECT value FROM q_meta WHERE name = 'version'" | sed 's, *--.*,,'; }
old ''
for cmd in 'qadd -d old.db m x' 'qls -d old.db' 'qclaim -d old.db m' 'qinit old.db' 'qinit --outbox old.db'; do
	# shellcheck disable=SC2086	# words
	refused 78 "older q \(schema '1', this program needs 3\); next: qinit --upgrade" "an older schema: $cmd" $cmd
done
is "$(sqlite3 -readonly old.db "SELECT value FROM q_meta; SELECT count(*) FROM q_job; SELECT name FROM sqlite_schema WHERE name = 'q_setting'")" \
    "$(printf '1\n2')" '... is left as it is'
exits 0 '... until it is upgraded' qinit --upgrade old.db
is "$(shape old.db)" "$(shape u022/q.db)" '... to what a new file has'
is "$(qls -d old.db --state all | cut -f 1,3,7; qls -d old.db --counts)" "$(printf '2\tpending\ttwo\n1\tdone\tone\nm\t1\t0\t0\t1\t0\t0\t0')" '... with all its jobs'
before=$(shape old.db; sqlite3 -readonly old.db 'PRAGMA schema_version')
exits 0 '... a second time' qinit --upgrade old.db
is "$(shape old.db; sqlite3 -readonly old.db 'PRAGMA schema_version')" "$before" '... changes nothing'
old 'CREATE VIEW q_outbox(queue) AS SELECT 1; '
exits 0 'one with the view' qinit --upgrade old.db
qinit --outbox outbox.db
is "$(shape old.db)" "$(shape outbox.db)" '... gets the new view, too'
old ''
for _ in 1 2 3 4 5 6 7 8; do qinit --upgrade old.db || echo bad; done >bad 2>&1 &
for _ in 1 2 3 4 5 6 7 8; do qinit --upgrade old.db || echo bad; done >worse 2>&1
wait
is "$(cat bad worse; shape old.db)" "$(shape u022/q.db)" 'two at once'
# A program that was there before the upgrade: it has read its input for a while.
mkfifo slow
qinit moves.db
(qadd -d moves.db --lines m <slow >out 2>err; echo $? >code) &
exec 3>slow
echo first >&3
sqlite3 moves.db "UPDATE q_meta SET value = '4' WHERE name = 'version'"
exec 3>&-
wait
is "$(cat code out err)" "78
qadd: $PWD/moves.db: made by a newer q (schema 4, this program knows 3); next: install that q" 'an upgrade while a program runs is told'

# ---- into an application's file ----

app() { rm -f app.db*; sqlite3 app.db "PRAGMA journal_mode=WAL; PRAGMA application_id=7; PRAGMA user_version=42;
	CREATE TABLE orders(id INTEGER PRIMARY KEY, what TEXT); INSERT INTO orders(what) VALUES('tea'); $1" >/dev/null; }
dump() { sqlite3 -readonly app.db .dump; }
for size in 512 65536; do
	rm -f app.db*
	sqlite3 app.db "PRAGMA page_size=$size; PRAGMA auto_vacuum=FULL; PRAGMA journal_mode=WAL; CREATE TABLE t(x)" >/dev/null
	qinit --into app.db && head -c 1048576 noise | qadd -q -d app.db m && seq 1000 | qadd -q -d app.db --lines m
	qclaim -d app.db -c 5000 m | claim_of | qdone -d app.db -
	is "$(qls -d app.db --counts | tr '\t' ' ') $(sqlite3 -readonly app.db 'PRAGMA page_size; PRAGMA integrity_check' | tr '\n' ' ')" \
	    "m 0 0 0 1001 0 0 0 $size ok " "--into a file with pages of $size bytes"
done
app
exits 0 '--into' qinit --into app.db
is "$(cat out err)" '' '... silent'
is "$(sqlite3 -readonly app.db "PRAGMA application_id; PRAGMA user_version; SELECT what FROM orders; SELECT name FROM sqlite_schema WHERE type IN ('table','view') ORDER BY 1" | tr '\n' ' ')" \
    '7 42 tea orders q_attempt q_body q_count q_entity q_hold q_job q_key q_meta q_outbox q_rate q_setting ' "... adds the tables and the view, and leaves the rest"
exits 0 '... where the programs work' qadd -d app.db m hello
is "$(cat out)" 1 '... with ids of its own'
before=$(dump)
exits 0 '... a second time' qinit --into app.db
is "$(dump)" "$before" '... changes nothing'
exits 0 '... and qinit alone finds it good' qinit app.db
refused 66 'no such file; the application that owns it creates it' '--into a file that is not there' qinit --into missing.db
ok "$(test ! -e missing.db; echo $?)" '... makes none'
sqlite3 rollback.db 'CREATE TABLE x(y)'
before=$(cksum <rollback.db)
refused 78 "journal mode is delete, q needs WAL; next: sqlite3 '.*/rollback.db' 'PRAGMA journal_mode=WAL'" \
    '--into a file that is not in WAL mode' qinit --into rollback.db
is "$(cksum <rollback.db)" "$before" '... leaves it byte for byte'
sh -c "$(sed 's/.*next: //' err)" >/dev/null
exits 0 '... until one does what it says' qinit --into rollback.db
refused 78 'not an SQLite database' '--into a text file' qinit --into diary
refused 64 '^qinit: --into: .*-m and -g' '--into with a mode' qinit --into -m 0660 app.db
app 'CREATE TABLE q_attempt(mine)'
before=$(dump)
refused 78 'app.db: .*q_attempt' '--into a file that uses one of the names' qinit --into app.db
is "$(dump)" "$before" '... adds none of the tables'
app 'CREATE VIEW q_outbox AS SELECT 1'
before=$(dump)
refused 78 'app.db: .*q_outbox' '... be it that of the view' qinit --into app.db
is "$(dump)" "$before" '... none, either'
app 'CREATE TABLE q_meta(name, value)'
before=$(dump)
refused 78 'app.db: ' '... be it that of the version' qinit --into app.db
is "$(dump)" "$before" '... none, either'
rm -f wide.db*
sqlite3 wide.db "PRAGMA encoding='UTF-16'; PRAGMA journal_mode=WAL; CREATE TABLE x(y)" >/dev/null
refused 78 'wide.db: .*UTF-8' '--into a file of UTF-16' qinit --into wide.db
is "$(sqlite3 -readonly wide.db .tables)" x '... adds nothing'
app
chmod 444 app.db
if [ "$(id -u)" -ne 0 ]; then
	refused 77 'app.db-wal: not there' '--into a file one may only read' qinit --into app.db
else
	refused 77 'app.db-wal: not there' '--into a file one may only read' user bin/qinit --into app.db
fi
app
sqlite3 app.db 'BEGIN IMMEDIATE' '.shell Q_BUSY_TIMEOUT=20ms qinit --into app.db; echo $?' >busy 2>&1
like "$(cat busy)" '^75$' '--into a file that stays busy is "not now"'
is "$(sqlite3 -readonly app.db .tables)" orders '... and adds nothing'

# ---- the view ----

rm -f q.db*
exits 0 '--outbox' qinit --outbox
exits 0 '... twice' qinit --outbox
qinit later.db
exits 0 '... later' qinit --outbox later.db
is "$(sqlite3 -readonly later.db 'SELECT count(*) FROM q_outbox')" 0 '... is there'

# The same jobs by qadd, one after another, and by plain SQL: the same rows but for ids and the clock.
qadd -q --at @1780401500 a hello
qadd -q -k k1 -t reset -e ana -p 2 --at @1780401600 --event-time @1780400000 a '{"n": 1}'
qadd -q -e ana -p 9 --at @1780401700 a later
qadd -q -e ana --at @1780401600 --event-time @1780300000 a earlier
qadd -q -k k1 a 'known' 2>/dev/null
now="CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
sqlite3 q.db "BEGIN;
INSERT INTO q_outbox(queue, payload, due_ms) VALUES('b', 'hello', 1780401500000);
INSERT INTO q_outbox(queue, payload, key, type, entity, priority, due_ms, event_ms)
  VALUES('b', CAST('{\"n\": 1}' AS BLOB), 'k1', 'reset', 'ana', 2, 1780401600000, 1780400000000);
INSERT INTO q_outbox(queue, payload, entity, priority, due_ms) VALUES('b', 'later', 'ana', 9, 1780401700000);
INSERT INTO q_outbox(queue, payload, entity, due_ms, event_ms) VALUES('b', 'earlier', 'ana', 1780401600000, 1780300000000);
INSERT INTO q_outbox(queue, payload, key) VALUES('b', 'known', 'k1');
COMMIT"
rows() {	# QUEUE: everything but the id and the time of adding
	sql "SELECT j.type, j.key, j.entity, j.priority, j.state, j.zone, j.head, j.fence, j.nonce, j.generation, j.spent, j.lost,
	    j.deferred, j.attempts, j.window_ms, j.until_ms, j.finished_ms, hex(b.body), typeof(b.body), k.until_ms, k.key,
	    j.due_ms, j.event_ms, j.ready_ms
	  FROM q_job j JOIN q_body b ON b.job = j.id LEFT JOIN q_key k ON k.job = j.id AND k.queue = j.queue
	 WHERE j.queue = '$1' ORDER BY j.id"
}
is "$(rows b)" "$(rows a)" 'plain SQL makes the rows that qadd makes'
is "$(rows a | wc -l | tr -d ' ')" 4 '... a known key adds nothing'
is "$(sqlite3 q.db "INSERT INTO q_outbox(queue, payload) VALUES('c', '');
    SELECT abs(added_ms - $now) < 60000 AND added_ms = due_ms AND due_ms = event_ms AND ready_ms = due_ms FROM q_job WHERE queue = 'c'")" \
    1 '... due at once, if nothing is said'
is "$(env -u Q_NOW qclaim -c 9 b | jq -c '[.payload, .priority]' | tr '\n' ' ')" \
    "$(env -u Q_NOW qclaim -c 9 a | jq -c '[.payload, .priority]' | tr '\n' ' ')" '... which are claimed alike'
is "$(sql "SELECT count(*) FROM q_job WHERE queue = 'b' AND head = 1")" 1 '... one of the entity at a time'

jobs=$(sql 'SELECT count(*) FROM q_job')
sqlite3 q.db "BEGIN; INSERT INTO q_outbox(queue, payload, key) VALUES('b', 'gone', 'gone'); ROLLBACK"
is "$(sql 'SELECT count(*) FROM q_job') $(sql "SELECT count(*) FROM q_key WHERE key = 'gone'") $(sql 'SELECT count(*) FROM q_body')" \
    "$jobs 0 $jobs" 'it is rolled back with the transaction, key and all'
sqlite3 q.db "BEGIN; CREATE TABLE orders(x); INSERT INTO q_outbox(queue, payload, key) VALUES('b', 'dup', 'k1'); INSERT INTO orders VALUES(1); COMMIT"
is "$(sql 'SELECT x FROM orders') $(sql 'SELECT count(*) FROM q_job')" "1 $jobs" 'a known key aborts nothing'
is "$(sqlite3 q.db "INSERT INTO q_outbox(queue, payload, key) VALUES('other', 'x', 'k1'); SELECT count(*) FROM q_job WHERE key = 'k1' AND queue = 'other'")" \
    1 '... and is known in its own queue only'
is "$(qls -k k1 other | cut -f 2,3,6,7)" "$(printf 'other\tpending\tk1\tx')" '... the programs agree'
id=$(sql "SELECT job FROM q_key WHERE queue = 'other'")
is "$(qadd -k k1 other x)" "$id" '... and know the key that SQL added'

bad() {	# NAME VALUES [MESSAGE]: refused by name; the application's transaction can go on or roll back
	sqlite3 q.db "BEGIN; INSERT INTO orders VALUES(2); INSERT INTO q_outbox(queue, payload, key, type, entity, priority, due_ms, event_ms) VALUES($2); COMMIT" >out 2>&1
	like "$(cat out)" "q_outbox: ${3:-$1}" "$1 is refused by name"
}
jobs=$(sql 'SELECT count(*) FROM q_job')
bad queue "'', 'x', NULL, NULL, NULL, NULL, NULL, NULL"
bad queue "NULL, 'x', NULL, NULL, NULL, NULL, NULL, NULL"
bad queue "17, 'x', NULL, NULL, NULL, NULL, NULL, NULL"
bad queue "'17', 'x', NULL, NULL, NULL, NULL, NULL, NULL"
bad queue "'a b', 'x', NULL, NULL, NULL, NULL, NULL, NULL"
bad queue "'-a', 'x', NULL, NULL, NULL, NULL, NULL, NULL"
bad queue "'.a', 'x', NULL, NULL, NULL, NULL, NULL, NULL"
bad queue "'ü', 'x', NULL, NULL, NULL, NULL, NULL, NULL"
bad queue "'a' || char(0), 'x', NULL, NULL, NULL, NULL, NULL, NULL"
bad queue "'a' || char(10), 'x', NULL, NULL, NULL, NULL, NULL, NULL"
bad queue "'$(printf '%065d' 0 | tr 0 a)', 'x', NULL, NULL, NULL, NULL, NULL, NULL"
bad payload "'m', NULL, NULL, NULL, NULL, NULL, NULL, NULL"
bad payload "'m', 1, NULL, NULL, NULL, NULL, NULL, NULL"
bad payload "'m', 1.5, NULL, NULL, NULL, NULL, NULL, NULL"
bad payload "'m', zeroblob(1048577), NULL, NULL, NULL, NULL, NULL, NULL"
bad key "'m', 'x', '', NULL, NULL, NULL, NULL, NULL"
bad key "'m', 'x', 5, NULL, NULL, NULL, NULL, NULL"
bad key "'m', 'x', x'41', NULL, NULL, NULL, NULL, NULL"
bad key "'m', 'x', 'a' || char(9), NULL, NULL, NULL, NULL, NULL"
bad key "'m', 'x', 'a' || char(0) || 'b', NULL, NULL, NULL, NULL, NULL"
bad key "'m', 'x', '$(printf '%0256d' 0)', NULL, NULL, NULL, NULL, NULL"
bad type "'m', 'x', NULL, 'a' || char(127), NULL, NULL, NULL, NULL" 'key, type and entity'
bad entity "'m', 'x', NULL, NULL, '', NULL, NULL, NULL" 'key, type and entity'
bad priority "'m', 'x', NULL, NULL, NULL, 10, NULL, NULL"
bad priority "'m', 'x', NULL, NULL, NULL, -1, NULL, NULL"
bad priority "'m', 'x', NULL, NULL, NULL, 'high', NULL, NULL"
bad priority "'m', 'x', NULL, NULL, NULL, 1.5, NULL, NULL"
bad due_ms "'m', 'x', NULL, NULL, NULL, NULL, -1, NULL"
bad due_ms "'m', 'x', NULL, NULL, NULL, NULL, 253402300800000, NULL"
bad due_ms "'m', 'x', NULL, NULL, NULL, NULL, 'tomorrow', NULL"
bad event_ms "'m', 'x', NULL, NULL, NULL, NULL, NULL, -5" '.*event_ms'
bad event_ms "'m', 'x', NULL, NULL, NULL, NULL, NULL, 1.5" '.*event_ms'
is "$(sql 'SELECT count(*) FROM q_job') $(sql 'SELECT count(*) FROM q_body') $(sql 'SELECT count(*) FROM orders WHERE x = 2')" \
    "$jobs $jobs 0" '... each adds nothing'
sqlite3 q.db "INSERT INTO q_outbox(queue, payload) VALUES('max', zeroblob(1048576)); INSERT INTO q_outbox(queue, payload) VALUES('empty', '');
INSERT INTO q_outbox(queue, payload) VALUES('$(printf '%064d' 0 | tr 0 a)', x'00ff0a');
INSERT INTO q_outbox(queue, payload, key) VALUES('u', 'x', 'schlüssel')"
is "$(sql "SELECT length(body) FROM q_body JOIN q_job ON id = job WHERE queue = 'max'")" 1048576 'a payload of 1 MiB is not too big'
is "$(qls --raw "$(sql "SELECT id FROM q_job WHERE queue LIKE 'aaaa%'")" | od -An -tx1 | tr -d ' \n')" 00ff0a 'any bytes come back'
is "$(qls -k schlüssel u | cut -f 2)" u 'a key may be any UTF-8'
is "$(sql 'PRAGMA integrity_check')" ok 'and the file is sound'

if command -v python3 >/dev/null && python3 -c 'import sqlite3, sys; sys.exit(sqlite3.sqlite_version_info < (3, 37))' 2>/dev/null; then
	exits 0 'from Python' python3 -c '
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], timeout=10)
with c:
    c.execute("INSERT INTO orders VALUES(3)")
    c.execute("INSERT INTO q_outbox(queue, payload, key) VALUES(?, ?, ?)", ("py", "{\"n\":1}", "p1"))
    c.execute("INSERT INTO q_outbox(queue, payload, key) VALUES(?, ?, ?)", ("py", b"\x00\xff", "p2"))
    c.execute("INSERT INTO q_outbox(queue, payload, key) VALUES(?, ?, ?)", ("py", "again", "p1"))
try:
    with c:
        c.execute("INSERT INTO orders VALUES(4)")
        c.execute("INSERT INTO q_outbox(queue, payload) VALUES(?, ?)", ("py", "lost"))
        raise ValueError
except ValueError:
    pass
try:
    c.execute("INSERT INTO q_outbox(queue, payload) VALUES(?, ?)", ("p y", "x"))
except sqlite3.IntegrityError as e:
    print(e)
' "$Q_DB"
	like "$(cat out)" '^q_outbox: queue' '... a bad row is named'
	is "$(sql "SELECT hex(body) FROM q_body JOIN q_job ON id = job WHERE queue = 'py' ORDER BY id" | tr '\n' ' ')" '7B226E223A317D 00FF ' '... text and bytes come through, a known key and a rollback do not'
	is "$(sql 'SELECT group_concat(x) FROM orders')" 1,3 '... with the rest of the transaction'
fi

done_testing
