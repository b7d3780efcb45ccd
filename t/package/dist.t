#!/bin/sh
# make dist: a tarball with the same bytes each time, which builds, works, passes tests, and makes itself again.
. "${0%/*}/../lib.sh"
top=${t%/t/package}

plan 11
make_dist() { make -s --no-print-directory -C "$1" dist >/dev/null; }

exits 0 'make dist' make -s --no-print-directory -C "$top" dist
tar=$top/$(cat out)
like "$tar" "/.dist/q-$(sed -n 's/^#define Q_VERSION "\(.*\)"/\1/p' "$top/lib/q.h").tar.gz$" '... is named after the version'
cp "$tar" first.tar.gz
exits 0 'again' make_dist "$top"
exits 0 '... the same bytes' cmp first.tar.gz "$tar"
tar -xzf first.tar.gz
if [ -e "$top/.git" ]; then
	is "$(cd q-* && find . -type f | sed 's/^..//' | sort)" "$(git -C "$top" ls-tree -r --name-only HEAD | sort)" '... all files of the source'
else ok 0 '... all files of the source # SKIP no git'; fi
cd q-* || exit 1
exits 0 'it builds' make -s -j2
cp out err ..
is "$(cat err)" '' '... without a word'
exits 0 '... and has a job done' env PATH="$PWD/cmd:$PATH" Q_DB="$PWD/../new.db" sh -ec 'qinit; qadd mail "{}"; qwork mail -- cat; qls --state done -j mail'
like "$(cat out)" '"state":"done",.*"result":"?[{]' '... by its own programs'
rm out err
exits 0 '... and passes tests' env PATH="$PWD/cmd:$PATH" prove -Q t/21-qadd.t t/30-qclaim.t t/40-qwork.t
rm out err
make_dist .
cmp .dist/*.tar.gz ../first.tar.gz
ok $? 'it makes itself again, without git'
