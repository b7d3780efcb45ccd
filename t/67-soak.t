#!/bin/sh
# A soak of a few seconds: nothing grows, nothing is lost; what does grow is found.  `make soak` takes hours; SEED=N repeats its choices.
. "${0%/*}/lib.sh"
[ -x "$t/serve" ] || skip_all 't/serve is not built'
export TMPDIR="$PWD" SEED="${SEED:-$$}" SECONDS_=3 RATE=10
echo "# SEED=$SEED"

exits 0 'all kinds of processes over one file' "$t/storm/soak"
sed 's/^/# /' out
like "$(cat out)" '^soak: .*; violations 0$' '... nothing grows, nothing is lost'
exits 0 'a reader that is held open, and a process that leaks' env CONTROL=1 LOG_MAX=1 SECONDS_=2 "$t/storm/soak"
like "$(cat out)" '^soak: control; found: .*descriptors.* log.* memory' '... are found'
done_testing
