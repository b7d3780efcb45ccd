#!/bin/sh
# Descriptors: whatever is closed, full or gone, no message ends up in the file and no lost output is success.
# What the caller left open would count.
[ -n "$T_CLOSED" ] || T_CLOSED=1 exec perl -e 'for (3 .. 63) { open my $f, "<&=$_" and close $f } exec @ARGV' sh "$0" "$@"
. "${0%/*}/lib.sh"

qinit || exit 1
magic=$(head -c 16 q.db | od -An -tx1)
word() { sed 's/.*"claim":"\([^"]*\)".*/\1/' "$@"; }
# Jobs to claim, a claim for each program that takes one, a file to create.
fresh() {
	claim=$(qadd -q m "without $1" && qclaim m | word)
	rm -f new.db*
}
sound() {	# NAME: nothing that a program says is in a file of the queue, and each is what it was
	is "$(head -c 16 q.db | od -An -tx1)" "$magic" "$1: the header is whole"
	is "$(grep -l -a -E 'q[a-z]+: |usage: |"claim":' q.db q.db-wal q.db-shm q.db-lock q.db-reserve new.db* 2>/dev/null)" '' '... no message is in a file'
	is "$(stat -c %s q.db-lock q.db-shm | tr '\n' ' ')$(sql 'PRAGMA integrity_check')" '0 32768 ok' '... all are sound'
}

# Runs CMD with the descriptors named closed; prints the status.  The shell's own redirections come first.
closed() {	# FDS CMD...
	(
		case $1 in *0*) exec <&- ;; esac
		case $1 in *1*) exec >&- ;; esac
		case $1 in *2*) exec 2>&- ;; esac
		shift
		exec "$@"
	) </dev/null >out 2>err
	echo $?
}

# What is told of what; all ways and all programs: t/28-streams.t.
for fds in '' 1 012; do
	fresh "$fds"
	case $fds in *1*) lost=74 ;; *) lost=0 ;; esac	# of programs that print
	is "$(closed "$fds" qinit new.db)" 0 "qinit without descriptors '$fds'"
	ok "$(test -f new.db; echo $?)" '... makes its file'
	is "$(closed "$fds" qrenew "$claim")" 0 '... qrenew'
	is "$(closed "$fds" qfail --in 1h "$claim")" 0 '... qfail'
	fresh "$fds"
	is "$(closed "$fds" qdone "$claim")" 0 '... qdone'
	is "$(closed "$fds" qadd m x)" $lost '... qadd'
	is "$(closed "$fds" qadd -q m x)" 0 '... qadd -q'
	is "$(closed "$fds" qadd -n m x)" $lost '... qadd -n'
	is "$(closed "$fds" qls m)" $lost '... qls'
	is "$(closed "$fds" qls --exists m)" 0 '... qls --exists'
	is "$(closed "$fds" qls --version)" $lost '... --version'
	is "$(closed "$fds" qadd --help)" $lost '... --help'
	is "$(closed "$fds" qadd --bogus)" 64 '... and a usage error is one'
	is "$(closed "$fds" qdone 99.1.00000000)" 76 '... a lost claim, too'
	is "$(closed "$fds" qls -d new.db 7)" 66 '... a job that is not there'
	is "$(closed "$fds" qclaim m)" $lost '... qclaim'
	[ $lost -ne 0 ] || claim=$(word out)
	[ $lost -eq 0 ] || claim=$(qclaim m | word)
	like "$claim" '^[0-9]+\.[0-9]+\.[0-9a-f]{8}$' '... a claim that was not told is given back at once'
	qdone "$claim"
	qadd -q w payload
	is "$(closed "$fds" qwork w -- cat)" 0 '... qwork'
	is "$(sql "SELECT q_job.state || ' ' || CAST(result AS TEXT) FROM q_job JOIN q_attempt a ON a.id = last_attempt WHERE q_job.queue = 'w' ORDER BY q_job.id DESC LIMIT 1")" \
	    'done payload' '... whose command has all three'
	case $fds in
	*0*)
		is "$(closed "$fds" qadd m)" 74 '... qadd of standard input'
		is "$(closed "$fds" qdone -)" 74 '... qdone of standard input'
		is "$(closed "$fds" qadd --lines m)" 74 '... many of standard input' ;;
	esac
	case $fds in *2*) ;; *)
		is "$(closed "$fds" qadd --bogus; cat err)" "$(printf "64\nqadd: unknown option '--bogus'; see 'qadd --help'")" '... and says so' ;;
	esac
	sound "without '$fds'"
	qclaim -c 99 m | qdone -
done

# ---- a standard output that takes nothing ----

open=$(sql "SELECT count(*) FROM q_job WHERE finished_ms IS NULL AND state <> 'failed'")
is "$open" 0 'no job is left over'
full() { _full=$1 _says=$2; shift 2; is "$("$@" 2>err >/dev/full; echo $?)" "$_full" "full: $*"; like "$(cat err)" "$_says" '... says so'; }
full 74 '^qadd: standard output: No space left on device; nothing was added' qadd m lost
full 74 '^qadd: standard output: No space left on device; nothing was added' qadd -j -k lost m lost
full 74 '^qadd: standard output: No space left on device; the output is not complete' qadd -n m lost
is "$(sql "SELECT count(*) FROM q_body WHERE body = 'lost'")$(sql "SELECT count(*) FROM q_key WHERE key = 'lost'")" 00 '... no job, no key'
qadd -q m one && qadd -q m two && qadd -q m three
full 74 '^qclaim: standard output could not be written; 1 claims were released' qclaim m
full 74 '^qclaim: standard output could not be written; 2 claims were released' qclaim -c 2 m
is "$(sql "SELECT DISTINCT state, spent, fence FROM q_job WHERE queue = 'm' AND finished_ms IS NULL AND state <> 'failed' ORDER BY 3")" "$(printf 'pending|0|0\npending|0|1\npending|0|2')" \
    '... they are pending, no attempt spent'
is "$(qclaim -c 3 m | jq -r .payload | tr '\n' ' ')" 'one two three ' '... and can be claimed at once'
full 74 '^qls: standard output: No space left on device; the output is not complete' qls m
full 74 'qls: standard output: No space left' qls -j m
full 74 'qls: standard output: No space left' qls --raw 1
full 74 'qls: standard output: No space left' qls --counts
full 74 'qls: standard output: No space left' qls 1
for p in qinit qadd qclaim qrenew qdone qfail qcancel qreplay qls qwork; do
	full 74 "^$p: standard output: No space left" $p --help
	full 74 "^$p: standard output: No space left" $p --version
done
is "$(qls --exists m >/dev/full; echo $?)" 0 'what prints nothing needs none'
is "$(qdone 99.1.00000000 2>/dev/full >/dev/full; echo $?)" 76 'a full standard error changes no status'

# Of packets it is seen how many writes a message takes; programs that share a log would mix theirs.
packets() {
	perl -e 'use Socket; socketpair R, W, AF_UNIX, SOCK_DGRAM, 0; if (!fork) { open STDERR, ">&W"; close W; exec @ARGV } close W; wait;
	    fcntl R, 4, 2048; print "[$_]" while defined recv R, $_, 65536, 0 and length' "$@"
}
is "$(packets qadd --bogus)" "[qadd: unknown option '--bogus'; see 'qadd --help'
]" 'a message is written at once'
is "$(packets qdone 99.1.00000000 98.1.00000000 | tr -dc '[]')" '[][]' '... and the next by itself'

# ---- a pipe that nobody reads ----

qclaim -c 99 m >/dev/null
Q_NOW=2026-06-03T12:00:00Z
unread() { perl -e 'pipe R, W; close R; open STDOUT, ">&W"; exec @ARGV' "$@" 2>err; echo $?; }
is "$(unread qadd m lost)" 74 'unread: qadd'
like "$(cat err)" '^qadd: standard output: Broken pipe; nothing was added' '... says so'
is "$(sql "SELECT count(*) FROM q_body WHERE body = 'lost'")" 0 '... adds nothing'
qadd -q u told
is "$(unread qclaim u)" 74 'unread: qclaim'
like "$(cat err)" '1 claims were released' '... says so'
is "$(qclaim u | jq -r .payload)" told '... and gives back'
is "$(unread qls --state all)$(cat err)" 141 'unread: qls dies silently of SIGPIPE'
is "$(perl -e '$SIG{PIPE} = "IGNORE"; pipe R, W; close R; open STDOUT, ">&W"; exec @ARGV' qls --state all 2>err; echo $?)" 141 \
    '... though its parent ignored that'
seq 3000 | qadd -q --lines many
qls many | head -n 1 >first
is "$(cut -f 7 first)" 1 'qls | head works'
# Claims that a reader leaves in the pipe are its own; those it cannot get are given back.
seq 2000 | perl -ne 'chomp; print $_ x 100, "\n"' | qadd -q --lines wide
{ qclaim -c 2000 wide 2>err; echo $? >status; } | head -n 3 >first
is "$(cat status)" 74 'a reader that goes away amid 2,000 claims'
like "$(cat err)" '^qclaim: .*released' '... is told of'
told=$(sql "SELECT count(*) FROM q_job WHERE queue = 'wide' AND state = 'claimed'")
is "$(sed -n 's/^qclaim: .*; \([0-9]*\) claims were released/\1/p' err)" $((2000 - told)) '... the rest are given back'
is "$(claim_of first | qdone -; echo $?)" 0 '... what it read it can settle'
is "$(qclaim -c 2000 wide | wc -l | tr -d ' ')" $((2000 - told)) '... and others get what was given back'
sound 'after all'

# ---- none to spare ----

# few N CMD...: with N descriptors in all; prints the status
few() {
	(
		# shellcheck disable=SC3045
		ulimit -n "$1"
		shift
		exec "$@"
	) <in >out 2>err
	echo $?
}
echo line >in
rm -f q.db*
qinit && qadd -q m x
# Enough, or "not now" and nothing done: what comes between is no other trouble, and says where to look.
enough() {	# STATUS CMD...: STATUS is what it gives when it has enough
	_enough=$1 _codes='' _odd=''
	shift
	for n in 4 5 6 7 8 9 10 11 12 13 14 15 16; do
		rm -f new.db*
		_jobs=$(sql 'SELECT count(*), sum(fence) FROM q_job')
		_got=$(few $n "$@")
		case $_got in
		75)
			grep -q "^$1: .*Too many open files" err || _odd="$_odd $n: $(cat err)"
			[ "$(sql 'SELECT count(*), sum(fence) FROM q_job')$(find . -name 'new.db*')" = "$_jobs" ] || _odd="$_odd $n: something was done" ;;
		"$_enough") ;;
		*) _odd="$_odd $n: exit $_got" ;;
		esac
		_codes="$_codes$_got "
	done
	is "$_odd" '' "few descriptors: $*"
	like "$_codes" "^75 .* $_enough \$" '... "not now" with four, and sixteen are enough'
}
enough 0 qadd m y
enough 0 qadd --lines m
enough 0 qls m
enough 0 qls --counts
enough 0 qls --raw 1
enough 0 qclaim m
enough 76 qdone 1.9.00000000
enough 76 qrenew 1.9.00000000
enough 76 qfail 1.9.00000000
enough 0 qwork none -- true
enough 0 qinit new.db
for p in 'qadd m x' 'qls' 'qclaim m'; do
	# shellcheck disable=SC2086
	is "$(few 4 $p) $(cat err)" "75 ${p%% *}: $PWD/q.db: Too many open files; see ulimit -n" "... $p says which limit"
done
sound 'after them'

done_testing
