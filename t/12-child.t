#!/bin/sh
# Commands on a leash: lib/child.c, what t/40-qwork.t does not reach.
# shellcheck disable=SC2016	# what stands between single quotes is for another shell or perl
. "${0%/*}/lib.sh"

# The driver that make built, unless a source is newer.
u=$t/unit-child src="child.c child.h text.c when.c record.c q.h"
# shellcheck disable=SC2086	# words
if [ ! -x "$u" ] || [ -n "$(cd "$t/../lib" && find $src "$t/unit-child.c" -newer "$u")" ]; then
	u=$PWD/unit-child
	(cd "$t/.." && ${CC:-cc} -std=c11 -D_POSIX_C_SOURCE=200809L -Ilib -o "$u" t/unit-child.c \
	    lib/child.c lib/text.c lib/when.c lib/record.c lib/json.c -ljansson) || exit 1
fi

gives() { is "$(rm -f go; "$u" "$@" </dev/null 2>err)" "$want" "$name"; }
alive() { ps -o stat= -p "$(cat pid)" | grep -v '^Z'; }

name='a command' want='0 0 [exit status 0] hello'
gives run 0 100 echo hello
name='... that fails' want='300 0 [no] '
gives run 0 100 sh -c 'echo no >&2; exit 3'
name='... that does not exist' want='7f00 2 [No such file or directory] '
gives run 0 100 ./absent
name='no descriptors for one' want='4b00 24 [Too many open files] '
gives nofile true

name='the time limit: TERM' want='f 0 timed out [time limit 100ms] '
gives run 100 20000 sleep 60
name='... then KILL' want='9 0 timed out [time limit 1s] deaf'
gives run 1000 100 sh -c 'trap "" TERM; echo deaf; while :; do sleep 0.01; done'
name='... and its end in time' want='0 0 timed out [time limit 1s] got it'
gives run 1000 20000 perl -e '$SIG{TERM} = sub { print "got it"; exit 0 }; sleep 60'
name='... also of a child that it waits for'
gives run 1000 3000 sh -c 'trap : TERM; perl -e "\$SIG{TERM} = sub { print qq(got it); exit 0 }; sleep 60"; exit 0'
name='... TERM comes once' want='0 0 timed out [time limit 1s] 1'
gives run 1000 20000 perl -e '$SIG{TERM} = sub { $n++ }; select undef, undef, undef, 0.01 while !$n;
	select undef, undef, undef, 0.3; print "$n\n"'
name='... and finds a command that left its group' want='f 0 timed out [time limit 200ms] '
gives run 200 20000 perl -e '$pid = fork; if (!$pid) { sleep 60; exit } setpgrp $pid, $pid; setpgrp 0, $pid;
	$me = $$; $other = fork; if (!$other) { setpgrp 0, 0; sleep 60; exit } setpgrp $other, $other; setpgrp 0, $other; sleep 60'

name='told to end, and a signal that comes too late' want='f 0 told [its worker was stopped] 
0 0 [exit status 0] again'
gives kill 15 20000 sh -c '[ -z "$AGAIN" ] || { echo again; exit; }; echo >go; exec sleep 60'
name='... one that does not listen' want='9 0 told [its worker was stopped] 
0 0 [exit status 0] again'
gives kill 15 100 sh -c '[ -z "$AGAIN" ] || { echo again; exit; }; trap "" TERM; echo >go; while :; do sleep 0.01; done'
name='... one that is to end at once' want='9 0 told [its worker was stopped] 
0 0 [exit status 0] again'
gives kill 9 20000 sh -c '[ -z "$AGAIN" ] || { echo again; exit; }; trap "" TERM; echo >go; while :; do sleep 0.01; done'

name='a minder that is stopped' want=-1
gives stop sh -c 'trap "" TERM; echo $$ >pid; echo >go; while :; do sleep 0.01; done'
! alive; ok $? '... takes its command with it'
name='a minder that is killed' want='the minder is gone
-1
0 0 [exit status 0] again'
gives gone sh -c '[ -z "$AGAIN" ] || { echo again; exit; }; echo $$ >pid; echo >go; exec sleep 60'
! alive; ok $? '... takes its command with it, and no other minder'

name='one after the other' want='60 of 60'
gives many 60 cat

# ---- output that is passed on: the end stands in ./end ----

# WANT OUT NAME CMD...: the unit with PASS, its output to OUT
passes() {
	want=$1 to=$2 name=$3
	shift 3
	rm -f go end
	PASS=1 "$u" "$@" >"$to" 2>err
	is "$(cat end)" "$want" "$name"
}
passes '0 0 [err] 0 0 7' out 'passed on' run 0 200 sh -c 'echo 5; cat; echo 7; echo err >&2' </dev/null
is "$(cat out err)" '5
7
err' '... as it was'
printf 'a\nb' >in
passes '0 0 [exit status 0] 0 0 -1' out 'with its input' run 0 200 cat <in
is "$(cat out)" 'a
b' '... as it was'
passes '0 0 [exit status 0] 0 0 42' out 'a count without a newline' run 0 200 printf 'x\n41\n42' </dev/null
passes '0 0 [standard output: No space left on device; it is not complete: b] 28 0 -1' /dev/full 'what cannot be written' run 0 200 sh -c 'echo a; echo b >&2' </dev/null
mkfifo slow
exec 8<>slow				# nobody reads it, but it is open
passes 'f 0 timed out [time limit 200ms] 110 0 -1' slow 'what nobody reads, and the time limit' run 200 200 yes </dev/null
passes '9 0 timed out [time limit 1s] 110 0 -1' slow '... that is not heard' run 1000 200 perl -e '$SIG{TERM} = "IGNORE"; print "x" x 4096 while 1' </dev/null
passes '0 0 [standard output: nobody reads it; it is not complete] 110 0 -1' slow '... of a command that has ended' run 200 200 echo a </dev/null
passes '-1' slow '... and a minder that is stopped' stop sh -c 'echo $$ >pid; echo >go; exec yes' </dev/null
! alive; ok $? '... takes its command with it'
passes 'the minder is gone
-1
0 0 [exit status 0] 0 0 -1' slow '... or killed' gone sh -c '[ -z "$AGAIN" ] || exit 0; echo $$ >pid; echo >go; exec yes' </dev/null
! alive; ok $? '... likewise'
exec 8<&-

name='the headline of a reason' want='c'
gives headline 'a
b
c'
name='... of one line' want='a: b'
gives headline 'a: b'
name='... of the time limit' want='time limit 5s: a'
gives headline 'time limit 5s: a
b'

done_testing
