#!/bin/sh
# The model of claims (t/model/claim.pml says what is modelled): every state of a small one.  `make model` is the long form.
. "${0%/*}/lib.sh"
command -v spin >/dev/null && command -v "${CC:-cc}" >/dev/null || skip_all 'spin is not installed'

exits 0 'three workers and a job' env WORKERS=3 JOBS=1 CLAIMS=4 REPLAYS=2 QUICK=0 HASH=18 CONTROLS=TOKEN "$t/model/run"
like "$(cat out)" ': [0-9]{4,} states, 0 errors;' '... are right in every order of events'
like "$(cat out)" '^without TOKEN: after [0-9]+ states assertion violated' 'control: without tokens they are not'
sed 's/^/# /' out
cat err
done_testing
