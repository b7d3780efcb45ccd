#!/bin/sh
# What others may do to the queue file while a program has it open.
. "${0%/*}/lib.sh"

gone() { case $(ps -o stat= -p "$1") in ''|Z*) ;; *) return 1 ;; esac; }
waits() { find "/proc/$1/fd" -lname '*inotify*' | grep -q .; }
# All that a writer writes to; the lock file and the shared memory are for whoever looks.
bytes() { cat away/q.db away/q.db-wal q.db q.db-wal q.db-reserve 2>/dev/null | cksum; }

mkfifo in
# More than a pipe holds: when it is written, its reader has begun, and so has opened the file.
perl -e 'print "x" x 100_000, "\n"' >line
qinit
qadd -q m one
claim=$(qclaim m | claim_of)
# Of a length that the next writer would copy into the file.
perl -e 'print "y" x 900_000' | qadd -q m
ok "$(test "$(stat -c %s q.db-wal)" -gt 700000; echo $?)" 'a file with a long log'
mkdir old new
cp -p q.db* old
Q_DB=$PWD/new/q.db qinit
Q_DB=$PWD/new/q.db qadd -q m other

# What to do with the file, and how.
for how in 'removed@rm q.db' 'moved with its log@mv q.db q.db-wal q.db-shm away' 'replaced@cp -p new/q.db copy; mv copy q.db' \
    'replaced, its log, too@mv q.db q.db-wal q.db-shm away; cp -p new/q.db* .' 'replaced by its copy@cp -p q.db copy; mv copy q.db'; do
	for cmd in 'qadd m -' 'qadd --lines m' 'qadd --replace -k k m -' 'qdone -' 'qfail -' 'qrenew -' 'qclaim --wait 1h none'; do
		rm -rf q.db* away
		mkdir away
		cp -p old/* .
		exec 7<>in
		# shellcheck disable=SC2086
		$cmd <in >out.$$ 2>err.$$ 7<&- & pid=$!
		case $cmd in
		qclaim*) until_ok waits $pid ;;
		qadd*) timeout 20 cat line >in ;;
		*)
			timeout 20 cat line >in
			echo "$claim" >in ;;
		esac
		eval "${how#*@}"
		before=$(bytes)
		exec 7<&-
		until_ok gone $pid || kill -9 $pid
		exits 78 "a file that is ${how%@*} under $cmd" wait $pid
		is "$(cat out.$$ err.$$ | grep -v neither)" "${cmd%% *}: $PWD/q.db: removed or replaced while it was open; nothing was changed; start again" '... is told'
		is "$(bytes)" "$before" '... and nothing is written'
	done
done

done_testing
