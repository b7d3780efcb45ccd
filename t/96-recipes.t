#!/bin/sh
# The recipes of scripts/: each is a copy that works alone, strict, with help and a crontab line.
. "${0%/*}/lib.sh"
cd "$t/../scripts" || exit 1

# Those that are no recipes: they build and check q itself.
for f in *; do
	[ -f "$f" ] || continue
	case $f in check | need | quickstart) ;; *) echo "$f" ;; esac
done >"$_dir/recipes"

while read -r f; do
	is "$(head -n 1 "$f")" '#!/usr/bin/env bash' "$f: bash"
	is "$(grep -c '^set -Eeuo pipefail$' "$f")" 1 '... strict'
	is "$(grep -cF 'trap '\''echo "${0##*/}: line $LINENO: exit status $?" >&2'\'' ERR' "$f")" 1 '... names the line that fails'
	is "$(awk 'length > 140' "$f")" '' '... no line is too long'
	exits 0 '... --help' "./$f" --help
	is "$(head -n 1 out | grep -c "^$f .* - \|^$f - ")" 1 '... begins with what it is'
	like "$(cat out)" '^  SHELL=/bin/bash$' '... and has the crontab: SHELL'
	like "$(cat out)" '^  PATH=/usr/local/bin:' '... PATH'
	like "$(cat out)" '^  Q_DB=/' '... Q_DB'
	like "$(cat out)" "^  [^ ]+ +[^ ]+ +[^ ]+ +[^ ]+ +[^ ]+ .*$f" '... and a line'
	is "$(cat err)" '' '... nothing else'
	exits 64 '... what it does not know is refused' "./$f" --no-such-thing
	rm -f out err
done <"$_dir/recipes"
done_testing
