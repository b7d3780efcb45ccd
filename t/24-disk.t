#!/bin/sh
# A full disk: new work is refused early, running work settles to the last job, nothing that was told is lost.
# In a mount namespace of its own, so that nobody else sees the small disks.
if [ "${1-}" != inside ] && [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then exec unshare -m sh "$0" inside; fi
. "${0%/*}/lib.sh"
trap 'cd / && umount -l "$_dir/disk" 2>/dev/null; rm -rf "$_dir"' EXIT

said() { [ ! -s out ]; ok $? '... and nothing more'; says "$1"; }
count() { sql "SELECT count(*) FROM q_job WHERE state GLOB '${1-*}'"; }
sound() { is "$(sql 'PRAGMA integrity_check; SELECT count(*) FROM q_job WHERE id NOT IN (SELECT job FROM q_body)' | tr '\n' ' ')" 'ok 0 ' "$1"; }
reserve() { stat -c %s "$Q_DB-reserve" 2>/dev/null || echo none; }
payload() { perl -e 'print "x" x ($ARGV[0] * 1024)' "$1"; }
left() { df -B1 --output=avail disk | tail -n 1 | tr -d ' '; }
fill() { cat /dev/zero >disk/fill 2>/dev/null; is "$(left)" 0 'the disk is full to the last byte'; }
# As a person would make room.
purge() {
	sqlite3 disk/q.db ".timeout 9000" "PRAGMA secure_delete=OFF; DELETE FROM q_job; DELETE FROM q_body WHERE job NOT IN (SELECT id FROM q_job);
	    PRAGMA wal_checkpoint(TRUNCATE); VACUUM" >/dev/null
}
disk() {	# SIZE: a new one
	umount -l disk 2>/dev/null
	mount -t tmpfs -o "size=$1" none disk
}

# ---- a limit of file size is no death ----

qinit && qadd -q m one && qadd -q m two
claim=$(qclaim m | claim_of)
before=$(sqlite3 -readonly q.db .dump)
payload 200 >data
# Output goes through a pipe: a file would have met the limit, too.
limited() {	# BLOCKS of 512 bytes, CODE, CMD...: what it says is left in ./err
	blocks=$1 want=$2
	shift 2
	{ (ulimit -f "$blocks"; "$@" 2>&1 >/dev/null; echo "exit $?") | cat >err; } <data
	is "$(sed -n 's/^exit //p' err)" "$want" "$* with files of at most $((blocks / 2)) KiB"
	is "$(sqlite3 -readonly q.db .dump)" "$before" '... changes nothing'
}
limited 200 74 qadd m
is "$(grep -c . err)" 2 '... one line'
like "$(cat err)" '^qadd: .*q.db: ' '... that names the file'
limited 0 74 qadd m x
limited 0 74 qclaim m
limited 0 74 qdone "$claim"
limited 0 74 qfail "$claim"
limited 0 74 qrenew "$claim"
limited 100 0 qls m
limited 0 74 qadd --lines m
limited 20 74 qinit new.db
is "$(find . -name 'new.db*')" '' '... and leaves nothing'
sound 'the file is sound'
exits 0 'without a limit it works' qdone "$claim"
exits 0 '... and is added' qadd m <data

if ! mkdir disk || ! mount -t tmpfs -o size=4m none disk 2>/dev/null; then
	ok 0 'small disks # SKIP only root can mount them'
	done_testing
	exit
fi
export Q_DB="$PWD/disk/q.db"

# ---- 4 MiB ----

exits 0 'a file on a small disk' qinit
is "$(reserve)" 1048576 '... with its reserve'
payload 10 >data
told=0
while qadd -k "k$told" m <data >>ids 2>err; do told=$((told + 1)); done
like "$(cat err)" '^qadd: .*/disk/q.db: disk nearly full \([0-9]* KiB left\); adds are refused below 1024 KiB so that running work can settle; make room$' \
    'adds are refused early'
is "$(wc -l <ids | tr -d ' ') $(count)" "$told $told" '... and what was told is there'
ok "$(test "$told" -gt 100; echo $?)" "... ($told jobs)"
exits 74 'one more is refused' qadd m x
said 'disk nearly full'
exits 74 '... and many' qadd --lines m <data
exits 74 '... and a replacement' qadd --replace -k k0 m x
exits 0 'but a dry run is not' qadd -n m x
ok "$(test "$(left)" -gt 524288; echo $?)" "... while there is room to settle ($(left) bytes)"
fill
exits 74 'adds are refused' qadd m x
said 'disk nearly full \(0 KiB left\)'
exits 0 'looking works' qls --counts
done=0
while [ $done -lt 20 ]; do
	claim=$(qclaim m | claim_of)
	qdone -r "result of $claim" "$claim" || break
	done=$((done + 1))
done
is $done 20 'jobs are claimed and settled one by one'
is "$(reserve)" 0 '... the reserve is given up for it'
exits 0 'a heartbeat works' qrenew "$(qclaim m | claim_of | tee last)"
exits 0 '... and a deferral' qfail --defer 1h -m 'not now' "$(cat last)"
exits 0 '... a release' qfail --release "$(qclaim m | claim_of)"
exits 0 '... a failure' qfail --in 1h -m 'refused' "$(qclaim m | claim_of)"
exits 0 '... a death' qfail --dead -m "$(payload 2)" "$(qclaim m | claim_of)"
exits 0 'all the rest is claimed' qclaim -c 10000 m
is "$(wc -l <out | tr -d ' ')" $((told - 23)) '... all of it'
mv out claims
exits 0 '... and settled to the last job' qdone - <claims
is "$(sql 'SELECT state, count(*) FROM q_job GROUP BY state' | tr '\n' ' ')" "dead|1 done|$((told - 3)) failed|1 pending|1 " '... as each was'
is "$(sql 'SELECT count(*) FROM q_attempt')" $((told + 1)) '... with a ledger of every attempt'
is "$(sql "SELECT count(*) FROM q_body WHERE length(body) <> 10240")" 0 '... and every payload whole'
sound 'the file is sound'
rm disk/fill
exits 0 'with room adds work again' qadd m x
is "$(reserve)" 0 '... but little of it makes no reserve'
exits 0 'much room' purge
i=0
while [ $i -lt 60 ] && [ "$(reserve)" -eq 0 ]; do qadd -q m "$i" || break; i=$((i + 1)); done
is "$(reserve)" 1048576 '... brings the reserve back, within sixty adds'
sound 'the file is sound'

# ---- fill, settle, make room, again: CYCLES=N of each size ----

cycles=${CYCLES:-3}
for size in 4m 1m; do
	disk $size
	qinit
	payload $([ $size = 4m ] && echo 40 || echo 4) >data
	ok=0 want=0 round=0
	while [ $((round += 1)) -le "$cycles" ]; do
		while qadd -q m <data 2>/dev/null; do :; done
		n=$((1 + 4 * round % 21))
		qclaim -c $n m | claim_of >claims
		before=$(count 'done')
		if [ $size = 4m ]; then
			cat /dev/zero >disk/fill 2>/dev/null
			qclaim m | claim_of >>claims
			n=$((n + 1))
			qdone - <claims && ok=$((ok + 1))
		else			# no reserve: what cannot be settled is told, held, and settled when there is room
			payload 900 >reason
			cat /dev/zero >disk/fill 2>/dev/null
			head -n 1 claims | { read -r claim; qdone -r "$(head -c 100000 reason)" "$claim" 2>/dev/null; [ $? -eq 74 ]; } &&
			    [ "$(count 'done')" -eq "$before" ] && rm disk/fill && qdone - <claims && ok=$((ok + 1))
		fi
		rm -f disk/fill
		want=$((want + n))
		purge
		qinit
	done 2>err
	is "$ok $(cat err)" "$cycles " "$size: so often around"
	is "$(sql 'SELECT count(*), sum(outcome = '\''done'\'') FROM q_attempt')" "$want|$want" '... each settled once'
	sound '... and sound'
done

# ---- one add that does not fit ----

disk 4m
qinit
qadd -q m first && qclaim m | claim_of | qdone -
perl -e 'print "x" x 9000, "\n" for 1 .. 400' >data
exits 74 'many that do not fit' qadd -q --lines m <data
said '^qadd: .*no space left; nothing was changed; make room and try again'
is "$(count)" 1 '... add nothing'
exits 0 '... and refuse nobody else' qadd m small
is "$(cat out)" 2 '... not even the next'
sound 'the file is sound'
rm -f disk/*
qinit
head -c 1000000 data >some
exits 0 'a log that cannot be copied ...' qadd -q --lines m <some
truncate -s 0 disk/q.db-reserve
cat /dev/zero >disk/fill 2>/dev/null
exits 74 '... is no room' qadd m x
is "$(count)" 112 '... and all of it is there'
rm disk/fill
exits 0 '... until there is some' qadd m x
sound 'the file is sound'

# ---- a reserve that is not ours ----

# Others of the group can put anything in its place: it is neither emptied nor filled.
disk 4m
qinit
echo precious >disk/other
echo precious >elsewhere
qadd -q m 1 && qclaim m >claims
# KIND COMMAND, which makes the reserve
for kind in 'a symbolic link@ln -s ../elsewhere' 'a symbolic link to the same disk@ln -s other' 'a second name@ln disk/other' 'a pipe@mkfifo' 'a folder@mkdir' \
    'a link to nothing@ln -s gone'; do
	rm -rf disk/fill "$Q_DB-reserve"
	${kind#*@} "$Q_DB-reserve"
	exits 0 "with room, a reserve that is ${kind%@*}" timeout 20 qinit
	is "$(cat disk/other elsewhere)" 'precious
precious' '... is not filled'
	is "$(find disk -name gone) $(stat -c %s disk/other elsewhere | tr '\n' ' ')" ' 9 9 ' '... nor made'
	fill
	exits 74 '... without room' timeout 20 qrenew "$(claim_of claims)"
	is "$(cat disk/other elsewhere)" 'precious
precious' '... it is not emptied'
done
rm -rf disk/fill "$Q_DB-reserve"
qinit
is "$(reserve)" 1048576 'a reserve of our own is filled'
fill
exits 0 '... without room' qrenew "$(claim_of claims)"
is "$(reserve)" 0 '... it is emptied'
sound 'the file is sound'

# ---- 1 MiB: too small for a reserve, so that the last byte stops everything, and loses nothing ----

disk 1m
exits 0 'a file on a tiny disk' qinit
is "$(reserve)" none '... has no reserve'
payload 10 >data
told=0
while qadd -q m <data 2>err; do told=$((told + 1)); done
like "$(cat err)" 'adds are refused below 256 KiB' 'adds are refused early'
qclaim -c 5 m | claim_of >claims
fill
payload 900 >reason
failed=0
while read -r claim; do
	qdone -r "$(head -c 100000 reason)" "$claim" 2>>err || failed=$((failed + 1))
done <claims
ok "$(test $failed -gt 0; echo $?)" "without a reserve settling fails ($failed of 5)"
like "$(cat err)" '^qdone: .*no space left; nothing was changed; make room and try again' '... says so'
is "$(count claimed) $(count)" "$failed $told" '... and loses nothing'
rm disk/fill
exits 0 'with room it settles, and once more is success' qdone - <claims
is "$(count 'done') $(count claimed)" '5 0' '... all of it'
sound 'the file is sound'

# ---- what is dead ----

disk 4m
qinit
qadd -q m one
qfail --dead "$(qclaim m | claim_of)"
fill
exits 74 'a dead job is not put back, to be work again' qreplay m
said 'disk nearly full'
exits 0 '... but looked for' qreplay -n m
exits 0 '... and cancelled' qcancel 1
is "$(count cancelled)" 1 '... which is on disk'

# ---- nothing at all ----

disk 1m
cat /dev/zero >disk/fill 2>/dev/null
exits 74 'no room for a new file' qinit
said '^qinit: '
is "$(find disk -name 'q.db*')" '' '... leaves nothing'

umount -l disk
done_testing
