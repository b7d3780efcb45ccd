#!/bin/sh
# scripts/quickstart: what a newcomer runs first.  In a copy, since it builds.
. "${0%/*}/lib.sh"
plan 6

mkdir house files
cp -Rp "$t/../Makefile" "$t/../cmd" "$t/../lib" "$t/../scripts" house
[ ! -e "$t/../.flags" ] || cp -p "$t/../.flags" house
for name in plain 'two words' -dash "quote'\"" 'back\slash' '{"json": 1}' "$(printf 'new\nline')" "$(printf 'byte\351')"; do
	echo "$name" >"files/$name"
done
: >files/empty

exits 0 'hashes a folder of odd names' house/scripts/quickstart files
is "$(sed 's/: .*: No such/: No such/' err)" 'qwork: No such file or directory; next: qls 10' \
    '... complains of the job that cannot succeed, and of nothing else'
like "$(cat out)" '9 files, each settled exactly once, every result right' '... each file once'
like "$(cat out)" 'run again after the kill: 1$' '... the job of the killed worker again'
like "$(cat out)" 'No such file or directory' '... and shows why the one job is dead'

mkdir none
exits 1 'a folder without files' house/scripts/quickstart none
