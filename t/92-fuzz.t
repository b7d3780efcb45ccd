#!/bin/sh
# What reads text of others: the cases of t/fuzz/corpus, and some made of them (`make fuzz` makes a million).
. "${0%/*}/lib.sh"

fuzz=$t/fuzz/fuzz corpus=$t/fuzz/corpus
[ -x "$fuzz" ] || skip_all 't/fuzz/fuzz is not built'

for target in $("$fuzz" -l); do
	[ "$target" = planted ] || exits 0 "$target" "$fuzz" "$target" 1000 "${SEED:-1}" "$corpus"
done
exits 134 'control: a fault that is planted is found' sh -c 'ulimit -c 0; "$@"' sh "$fuzz" planted 100000 "${SEED:-1}" "$corpus"
like "$(cat err)" '^planted	[0-9a-z]+$' '... and its input is told'
exits 64 'no such target' "$fuzz" none 1 1 "$corpus"
is "$(grep -v '^#' "$corpus" | sed 's/^+//' | cut -f1 | sort -u)" "$("$fuzz" -l | sort)" 'each target has cases, and each case a target'
done_testing
