#!/bin/sh
# A soak of a few seconds: nothing grows, nothing is lost; what does grow is found.  `make soak` takes hours; SEED=N repeats its choices.
. "${0%/*}/lib.sh"
[ -d /proc/self/fd ] || skip_all 'no /proc'
[ -x "$t/serve" ] || skip_all 't/serve is not built'
export TMPDIR="$PWD" SEED="${SEED:-$$}" SECONDS_=3 RATE=10
echo "# SEED=$SEED"

exits 0 'all kinds of processes over one file' "$t/storm/soak"
sed 's/^/# /' out
like "$(cat out)" '^soak: .*; violations 0$' '... nothing grows, nothing is lost'
exits 0 'a reader that is held open, a process that leaks, and one that hoards' env CONTROL=1 LOG_MAX=1 SECONDS_=2 "$t/storm/soak"
is "$(sed -n '$p' out)" 'soak: control; found: children descriptors live log memory' '... are found, and nothing else'
done_testing
