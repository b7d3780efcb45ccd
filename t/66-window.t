#!/bin/sh
# The WAL-reset bug (t/storm/window.c): no commit can fall into the beginning of our checkpoint.  The library is the one that q is
# built with, only its VFS is slow there.  RUNS=10 COMMITS=6000 is a release's size, ALL_FAULTS=1 adds a control, SEED=N repeats choices.
. "${0%/*}/lib.sh"
unset Q_NOW
window=$t/storm/window seed=${SEED:-$$}
[ -x "$window" ] || skip_all 't/storm/window is not built'
echo "# SEED=$seed"

# In memory, where commits are quick enough to fall into anything.
fast=$(mktemp -d /dev/shm/q-test.XXXXXX 2>/dev/null) || fast=$PWD
trap 'cd / && rm -rf "$_dir" "$fast"' EXIT

# run HOW SEED COMMITS: its status
run() {
	rm -f "$fast"/q.db*
	qinit --outbox "$fast/q.db" && "$window" "$1" "$2" "$3" "$fast/q.db" >out 2>err
	set -- $?
	sed 's/^/# /' out err
	return "$1"
}

# found HOW: is anything lost or damaged in 30 runs?
found() {
	_i=0
	while [ $((_i += 1)) -le 30 ]; do
		run "$1" $((seed + _i)) 3000 || return 0
	done
	return 1
}

i=0
while [ $((i += 1)) -le "${RUNS:-1}" ]; do
	run q $((seed + i)) "${COMMITS:-2000}"
	ok $? 'programs of q, and an application beside them: all is there'
	like "$(cat out)" ' [0-9]*[1-9][0-9]* windows, in 0 of them the log was written to, in 0 begun anew; lost 0, sound$' '... the window was open, and nobody got in'
done
if grep -q exposed out; then
	found unlocked
	ok $? 'control: without the write lock commits are lost'
	if [ -n "$ALL_FAULTS" ]; then
		found auto
		ok $? 'control: with the defaults of SQLite, too'
	fi
fi
done_testing
