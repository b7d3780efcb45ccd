#!/bin/sh
# One file, several users: a group that shares it, one that may look, a stranger.  Users are numbers: none is made.
. "${0%/*}/lib.sh"

if [ "$(id -u)" -ne 0 ] || ! setpriv --reuid=4001 --regid=4001 --clear-groups true 2>/dev/null; then
	skip_all 'only root can become other users'
fi
chmod 711 .
mkdir -m 755 bin
for p in qinit qadd qclaim qrenew qdone qfail qls qwork; do cp "$(command -v "$p")" bin; done
PATH=$PWD/bin:$PATH
mkdir -m 777 tmp
export TMPDIR="$PWD/tmp"

# ana, ben and cem are of the group 4100, dan is not; each has a group of their own, and a umask that shares nothing.
as() {	# UID GROUPS CMD...
	_uid=$1 _groups=$2
	shift 2
	(umask 077; exec setpriv --reuid="$_uid" --regid="$_uid" "$_groups" -- "$@")
}
ana() { as 4001 --groups=4100 "$@"; }
ben() { as 4002 --groups=4100 "$@"; }
cem() { as 4003 --groups=4100,4200 "$@"; }
dan() { as 4004 --clear-groups "$@"; }
kinds() { stat -c '%a %g' "$Q_DB"* | sort -u; }
refused() { _like=$1; shift; exits 77 "$*" "$@"; is "$(cat out; wc -l <err | tr -d ' ')" 1 '... in one line'; like "$(cat err)" "$_like" '... that says why'; }

# ---- a group ----

mkdir srv && chown 4001:4100 srv && chmod 2770 srv
export Q_DB="$PWD/srv/q.db"
exits 0 'ana makes a file for the group' ana qinit -m 0660 -g 4100
is "$(kinds)" '660 4100' '... which owns it and all beside it'
exits 0 '... and adds' ana qadd m 'of ana'
exits 0 'ben adds' ben qadd m 'of ben'
exits 0 '... many' ben sh -c 'seq 500 | qadd -q --lines many'
is "$(kinds)" '660 4100' '... and all is still the group'\''s'
exits 0 'ben takes the job of ana' ben qclaim m
claim=$(claim_of out)
is "$(jq -r .payload out)" 'of ana' '... the first one'
exits 0 'ana may settle it' ana qdone "$claim"
exits 0 'cem works' cem qwork m -- cat
is "$(sql "SELECT CAST(a.result AS TEXT) FROM q_job j JOIN q_attempt a ON a.id = last_attempt WHERE j.queue = 'm'" | tr '\n' ' ')" ' of ben ' '... on the job of ben'
exits 0 'ben makes sure of the file' ben qinit -m 0660 -g 4100
is "$(kinds)" '660 4100' '... and changes nothing'

# All that stands beside the file, made anew by each: SQLite's, and the turnstile.
for who in ana ben cem; do
	rm -f "$Q_DB-lock" "$Q_DB-reserve" "$Q_DB-shm"
	exits 0 "$who comes first after a boot, when side files are gone" "$who" qadd m "boot $who"
	is "$(kinds)" '660 4100' '... and makes them for the group'
	for other in ana ben cem; do
		$other qadd -q m "after $who" && $other qdone "$($other qclaim m | claim_of)" || echo "$other cannot"
	done >out 2>&1
	is "$(cat out)" '' '... for all to use'
done
sqlite3 "$Q_DB" 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
rm -f "$Q_DB-wal" "$Q_DB-shm" "$Q_DB-lock"
exits 0 'ben comes first after a restore, when the log is gone' ben qadd m restored
is "$(kinds)" '660 4100' '... and makes it for the group'
exits 0 'ana goes on' ana qclaim -c 99 m
rm -f "$Q_DB-lock" "$Q_DB-shm" "$Q_DB-reserve"
exits 0 'root may come first, too' qadd -q m root
is "$(stat -c '%a %u:%g' "$Q_DB"-shm "$Q_DB-lock" | sort -u)" '660 4001:4100' '... and leaves it to the owner and the group'
exits 0 '... for ben to use' ben qadd -q m 'after root'
exits 0 '... and the reserve to make' ben qinit
is "$(kinds)" '660 4100' '... for the group'

# At the same time.
i=0
while [ $i -lt 8 ]; do
	for who in ana ben cem; do
		{ $who qadd -q at "$who" || echo "$who: $?"; } >>"race.$who" 2>&1 &
	done
	i=$((i + 1))
done
wait
is "$(cat race.*)" '' 'all add at the same time'
is "$(sql "SELECT count(*) FROM q_job WHERE queue = 'at'")" 24 '... and all is there'

# A stranger.
refused "$Q_DB: Permission denied; check owner and mode" dan qadd m x
refused "$Q_DB: Permission denied; check owner and mode" dan qls m
refused "$Q_DB: Permission denied; check owner and mode" dan qclaim m
refused "srv: Permission denied; check owner and mode of the folder" dan qinit
chmod 2775 srv
for p in 'qadd m x' 'qls m' 'qclaim m' 'qdone 1.1.00000000' 'qwork m -- true' qinit; do
	# shellcheck disable=SC2086 # words
	refused "$Q_DB: Permission denied; check owner and mode of the file and its folder" dan $p
done
is "$(find srv -user 4004)" '' '... and leaves nothing behind'
refused 'group 4100: Operation not permitted; who makes the file must be in it, or root' dan qinit -g 4100 -m 0660 tmp/dan.db
is "$(find tmp -name 'dan*')" '' '... nor here'
chmod 2770 srv

# ---- a group that may look ----

mkdir look && chown 4001:4100 look && chmod 2750 look
export Q_DB="$PWD/look/q.db"
exits 0 'ana makes a file that the group may read' ana qinit -m 0640
is "$(kinds)" '640 4100' '... with all beside it'
exits 0 'ben looks, before there is anything' ben qls
ana qadd -q -k one m 'of ana'
ana qadd -q m 'of ana'
exits 0 'ben looks' ben qls m
is "$(cut -f 7 out)" "$(printf 'of ana\nof ana')" '... at all of it'
exits 0 '... at one' ben qls --raw 1
exits 0 '... at counts' ben qls --counts
exits 0 '... rehearses' ben qadd -n -k one m 'of ben'
is "$(jq .id out)" 1 '... and hears of the known key'
for p in 'qadd m x' 'qclaim m' 'qrenew 1.1.00000000' 'qdone 1.1.00000000' 'qfail 1.1.00000000' 'qwork m -- true' qinit; do
	# shellcheck disable=SC2086 # words
	refused "$Q_DB: no permission to write; check its owner and mode, and the mount" ben $p
done
# While somebody writes, and holds the lock.
mkfifo in
ana sqlite3 "$Q_DB" <in >held 2>&1 &
exec 9>in
echo "BEGIN IMMEDIATE; INSERT INTO q_meta VALUES('x', 'y'); SELECT 'held';" >&9
i=0
until grep -q held held || [ $((i += 1)) -gt 2000 ]; do :; done
exits 0 'ben looks while a writer is at work' ben qls m
is "$(wc -l <out | tr -d ' ')" 2 '... at what is committed'
echo 'ROLLBACK;' >&9
exec 9>&-
wait
is "$(sql 'PRAGMA integrity_check')" ok 'the file is sound'
chmod 600 "$Q_DB-shm"
refused "$Q_DB-shm: Permission denied; check owner and mode of the file and its folder" ben qls m
sqlite3 "$Q_DB" 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
rm -f "$Q_DB-wal" "$Q_DB-shm" "$Q_DB-lock"
for p in 'qls m' 'qadd m x'; do
	# shellcheck disable=SC2086 # words
	refused "$Q_DB-wal: not there, and you may not make it; next: qinit '$Q_DB', by somebody who may write to it" ben $p
done
exits 0 'ana does as that says, as after a restore' ana qinit "$Q_DB"
exits 0 '... and ben looks again' ben qls m
is "$(find look ! -user 4001)" '' '... and all of it is of ana'

# ---- a sticky folder ----

mkdir sticky && chown 0:4100 sticky && chmod 3770 sticky
export Q_DB="$PWD/sticky/q.db"
exits 0 'a sticky folder' ana qinit -m 0660
exits 0 '... serves ben' ben qadd m x
exits 0 '... and ana' ana qadd m x
exits 0 '... and root' qadd m x
is "$(kinds)" '660 4100' '... with the files of the group'
chown 4001 "$Q_DB-shm" && chmod 640 "$Q_DB-shm"
refused "$Q_DB-shm: no permission to write; check its owner and mode, and the mount" ben qadd m x

done_testing
