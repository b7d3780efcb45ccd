#!/bin/sh
# Power cuts (t/crash/crash.c says what is modelled): nothing that was answered is lost, nothing is damaged; and where syncs are not done,
# that is found.  `make crash` is the long form; SEED=N repeats a run, ROUNDS=N and DISKS=N make it longer.
. "${0%/*}/lib.sh"
unset Q_NOW
crash=$t/crash/crash seed=${SEED:-$$}
echo "# SEED=$seed"

# cuts NAME CODE SEED OPTION...: the verdict is left in ./verdict
cuts() {
	_name=$1 _code=$2 _seed=$3
	shift 3
	rm -rf disks && mkdir disks
	exits "$_code" "$_name" "$crash" -s "$_seed" "$@" "$t/schema-1.sql" disks
	sed -n 's/^crash: //p' out >verdict
	[ "$_code" -ne 0 ] && [ -s verdict ] || sed 's/^/# /' out
	sed 's/^/# /' err
}
figure() { sed -n "s/.*[;,] $1 \([0-9]*\).*/\1/p" verdict; }

cuts 'a new file, through many cuts' 0 "$seed" -r "${ROUNDS:-2}" -n "${DISKS:-2}"
like "$(cat verdict)" '; lost 0, odd 0, damaged 0$' '... nothing is lost or damaged'
[ "$(figure cuts)" -gt 100 ]; ok $? "... $(figure cuts) cuts"
cuts 'one of version 1, upgraded' 0 "$seed" -o -r 1 -n 2
like "$(cat verdict)" '; lost 0, odd 0, damaged 0$' '... nothing is lost or damaged'
cuts 'programs killed before each sync, and run again' 0 "$seed" -k -o -r 1 -n 2
like "$(cat verdict)" '; lost 0, odd 0, damaged 0$' '... nothing is lost or damaged'

# Controls: the same programs on a disk that is not told to sync.
cuts 'synchronous=NORMAL is found out' 1 1 -r 1 -n 1 -c normal
[ "$(figure lost)" -gt 10 ]; ok $? "... $(figure lost) times what was answered is lost"
is "$(figure damaged)" 0 '... though nothing is damaged'
cuts 'no syncs at all are found out' 1 1 -r 1 -n 1 -c off
[ "$(figure damaged)" -gt 10 ]; ok $? "... damaged $(figure damaged) times, lost $(figure lost) times"
cuts 'a folder that is not synced is found out' 1 1 -r 1 -n 1 -c folder
[ "$(figure lost)" -gt 0 ]; ok $? "... the file or its log is gone: lost $(figure lost), damaged $(figure damaged)"

done_testing
