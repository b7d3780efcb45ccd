#!/bin/sh
# A source that changes while it is polled, at random: qpoll loses nothing and repeats nothing, and naive pollers do lose.
# `make storm` runs it with HISTORIES=6000; SEED=N repeats the choices.
. "${0%/*}/lib.sh"
[ -x "$t/serve" ] || skip_all 't/serve is not built'
seed=${SEED:-1} n=${HISTORIES:-32}

exits 1 'a cursor from the clock loses rows' "$t/storm/poll" --control clock "$seed" 200
like "$(tail -n 1 out)" ' [1-9][0-9]* of [0-9]* rows lost, in [1-9]' '... many'
exits 1 'page numbers behind a fixed bound lose rows' "$t/storm/poll" --control pages "$seed" 200
like "$(tail -n 1 out)" ' [1-9][0-9]* of [0-9]* rows lost, in [1-9]' '... many'
exits 0 'whoever reads everything each time does not' "$t/storm/poll" --control all "$seed" 200
like "$(cat out)" ' 0 of [1-9][0-9]* rows lost, in 0 of 200 ' '... nor does this program see what is not there'
if command -v qpoll >/dev/null; then
	exits 0 "qpoll, SEED=$seed" "$t/storm/poll" "$seed" "$n"
	like "$(tail -n 1 out)" " 0 of [1-9][0-9]* rows lost, in 0 of $n " "... $(tail -n 1 out)"
fi
done_testing
