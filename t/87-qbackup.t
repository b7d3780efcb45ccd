#!/bin/sh
# qbackup: a copy has its name only when it is whole; writers go on; nothing is left of what failed.
# BACKUPS and KILLS: how many in a storm.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

left() { find . -name '*-qbackup*'; }
whole() { is "$(sqlite3 -readonly "$1" 'PRAGMA integrity_check')" ok "${2-... whole}"; }
copied() {	# COPY: holds what the file holds
	sql .dump >want
	sqlite3 -readonly "$1" .dump >got
	cmp want got
	ok $? '... the same, to the last byte of each row'
}

# ---- usage ----

exits 66 'no file' qbackup copy
is "$(cat err)" "qbackup: $Q_DB: no such queue file; next: qinit '$Q_DB' for a new one, or see -d and Q_DB; if it was there, bring it or a copy back, as qbackup(1) says" '... says so'
qinit
for args in '' 'a b' '-n copy'; do
	# shellcheck disable=SC2086	# words
	exits 64 "qbackup $args" qbackup $args
done
exits 73 'an empty name' qbackup ''
exits 73 'no such folder' qbackup nowhere/copy
for side in -journal -wal -shm -lock -reserve; do
	exits 73 "the name of FILE$side" env qbackup -d q.db "q.db$side"
done
rm -f q.db-reserve
exits 73 '... which is not there' qbackup ./q.db-reserve
is "$(cat err)" "qbackup: $PWD/q.db-reserve: that name belongs to the queue file; choose another name" '... says so'
exits 73 'a long name' qbackup "$(printf '%0241d' 0)"
is "$(cat err)" "qbackup: the name of the backup is too long: $PWD/$(printf '%0241d' 0)" '... says so'
exits 73 'a folder' qbackup .
touch wal-wal reserved
ln -s nowhere link
for there in reserved link q.db wal; do
	exits 73 "$there is in the way" qbackup "$there"
	like "$(cat err)" '^qbackup: .*: there is something of that name; a backup replaces nothing; choose another name$' '... says so'
done
is "$(wc -c <reserved)$(readlink link)" 0nowhere '... and left alone'

# ---- a copy ----

qadd -q -k k1 mail one
printf 'a\0b\377' | qadd -q mail
qadd -q -e ana mail two
qadd -q --in 1h -t t mail three
qset queue.mail.keep=3d
claim=$(qclaim mail | claim_of)
qclaim mail | claim_of | qdone -r fine -
umask 0
exits 0 'a copy' qbackup copy
umask 022
is "$(cat out err; ls copy*)" copy '... silent, and alone'
is "$(stat -c '%a %h' copy)" '600 1' '... for its owner alone'
copied copy
whole copy
is "$(sqlite3 copy 'PRAGMA journal_mode; PRAGMA application_id; PRAGMA user_version')" "wal
1903519093
$(sql 'PRAGMA user_version')" '... a queue file'
rm -f copy-*
exits 0 'the holder of a claim can settle it in the copy' qdone -d copy "$claim"
exits 0 '... which takes jobs' qadd -d copy mail four
is "$(qadd -d copy -k k1 mail one)" 1 '... and knows keys'
exits 0 'another copy' qbackup other
exits 0 '... on another boot' env Q_BOOT=b2:1 qclaim -d other mail
is "$(jq -r '.id, .attempt' out | xargs)" '1 2' '... the job that was claimed is claimed again'

name=$(printf "file:x'?mode=memory\t")
exits 0 'an odd name' qbackup "$name"
mv "$name" odd
whole odd

mkdir old
sqlite3 old/q.db 'PRAGMA journal_mode=WAL' ".read $t/schema-1.sql" "INSERT INTO q_meta VALUES('x', 'y')" >/dev/null
exits 0 'a file of an older schema' qbackup -d old/q.db old/copy
is "$(sqlite3 -readonly old/copy 'SELECT value FROM q_meta WHERE name IN ("version", "x")' | xargs)" '1 y' '... is copied as it is'
exits 0 '... and upgraded' qinit --upgrade old/copy

sqlite3 app.db 'PRAGMA journal_mode=WAL; CREATE TABLE orders(id, name); INSERT INTO orders VALUES(7, "ana")' >/dev/null
qinit --into app.db
exits 0 'the file of an application' qbackup -d app.db app.copy
is "$(sqlite3 -readonly app.copy 'SELECT * FROM orders')" '7|ana' '... with its tables'

sqlite3 app.db "CREATE TABLE odd(a TEXT COLLATE NOCASE); INSERT INTO odd VALUES(1); CREATE INDEX odd_a ON odd(a); PRAGMA writable_schema=on;
    UPDATE sqlite_schema SET sql = replace(sql, 'NOCASE', 'Ours') WHERE name = 'odd'" >/dev/null
exits 78 'a collation that only the application has' qbackup -d app.db app.copy2
is "$(cat err)" "qbackup: $PWD/app.db: no such collation sequence: Ours, which only the application of the file has; no backup was made; next: sqlite3 '$PWD/app.db' '.backup COPY'" '... says so'
is "$(left)" '' '... leaves nothing'

# ---- back to a copy, as the page says ----

rm -f copy*
qbackup copy
before=$(qls --state all)
qadd -q mail later
mkdir aside
mv q.db q.db-wal q.db-shm aside
mv copy q.db
exits 0 'a copy in the place of the file' qpause --all restored
is "$(qls --state all)" "$before" '... what was then is there again'
is "$(qclaim mail)" '' '... and rests'
qpause --all -r

# ---- what fails leaves nothing ----

head -c 300000 /dev/zero | qadd -q big
for kb in 100 200 300; do
	exits 74 "no file over $kb KiB" sh -c "ulimit -f $((2 * kb)); exec qbackup copy"
	like "$(cat err)" '^qbackup: .*/copy: .*; no backup was made; ' '... says so'
	is "$(left; ls copy* 2>/dev/null)" '' '... and leaves nothing'
done
cp q.db bad.db
cp q.db-wal bad.db-wal
sqlite3 bad.db 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
perl -e 'open my $f, "+<", "bad.db" or die; seek $f, 4096 * 20, 0; print $f "\xff" x 40960' || exit 1
exits 74 'a damaged file' qbackup -d bad.db copy
is "$(left; ls copy* 2>/dev/null)" '' '... leaves nothing'

cp q.db bad.db
cp q.db-wal bad.db-wal
sqlite3 bad.db 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
# Of the large payload the link from one page to the next: VACUUM would copy zeros.
perl -e 'open my $f, "+<", "bad.db" or die; my $n = (-s $f) / 4096; for my $page (reverse 1 .. $n - 1) {
	seek $f, 4096 * $page, 0; read $f, my $head, 8;
	next unless unpack("N", $head) == $page + 2 && substr($head, 4) eq "\0" x 4;
	seek $f, 4096 * $page, 0; print $f pack "N", 1e6; exit } die' || exit 1
exits 74 'a lost page of a payload' qbackup -d bad.db copy
is "$(cat err)" "qbackup: $PWD/bad.db: the file is damaged; no backup was made; next: qcheck" '... says so'
is "$(left; ls copy* 2>/dev/null)" '' '... leaves nothing'

echo mine >copy-qbackup
ln copy-qbackup mine
exits 73 'a stranger under the temporary name' qbackup copy
is "$(cat mine)" mine '... is left alone'
rm copy-qbackup
ln -s mine copy-qbackup
exits 73 '... or a link' qbackup copy
is "$(cat mine)" mine '... is left alone'
rm copy-qbackup
head -c 100000 /dev/zero >copy-qbackup
echo rest >copy-qbackup-journal
exits 0 'what a dead backup left' qbackup copy
is "$(left)" '' '... is cleared'
copied copy

flock copy2-qbackup sh -c 'exec qbackup copy2' >out 2>err
is "$?" 75 'another backup is written there'
is "$(cat err)" "qbackup: $PWD/copy2-qbackup: another backup is being written there; wait for its end" '... says so'
rm copy2-qbackup

# ---- killed ----

seq 20 | while read -r _; do head -c 500000 /dev/zero | qadd -q big; done
# Each SIGNAL N times, at moments spread over a run: under the final name there is nothing, or all of it.
killed() {
	perl -MTime::HiRes=sleep,time -e '
		my ($sig, $n) = @ARGV;
		my ($full, $cut) = (0, 0);
		for my $i (0 .. $n) {
			unlink glob "copy3*";
			my $t = time;
			my $pid = fork // die;
			if (!$pid) { exec "qbackup", "copy3" or die }
			if ($i > 0) { sleep $full * $i / $n; kill $sig, $pid }
			waitpid $pid, 0;
			$full = time - $t if $? == 0 && $full < time - $t;
			$cut++ if $? & 127;
			if (($? & 127) == 0 && $? != 0) { print "exit $?\n" }
			if ($? == 0 && ! -e "copy3") { print "no copy\n" }
			if (-e "copy3") { my $ok = `sqlite3 -readonly copy3 "PRAGMA integrity_check"`; print "broken: $ok" if $ok ne "ok\n" }
			if ($sig ne "KILL") { print "left $_\n" for glob "*-qbackup*" }
		}
		print "none was cut short\n" if $cut == 0;
		print STDERR "# $cut of $n were cut short by $sig\n" if $n > 10;
		unlink glob "copy3*";
	' "$@"
}
is "$(killed TERM 8)" '' 'TERM leaves nothing under the final name, or all of it, and nothing else'
is "$(killed INT 2)" '' '... INT, too'

# Somebody else takes the name while the backup is made.
perl -MFcntl -e 'my $pid = fork // die; if (!$pid) { open STDERR, ">", "err"; exec "qbackup", "copy4" or die }
	until (-e "copy4-qbackup" || -e "copy4") { select undef, undef, undef, 0.001 }
	if (sysopen my $f, "copy4", O_CREAT | O_EXCL | O_WRONLY) { syswrite $f, "mine" } else { print "too late" }
	waitpid $pid, 0; print $? >> 8' >code
case $(cat code) in
'too late0') ok 0 'a name taken meanwhile # SKIP the backup was quicker' ;;
*) is "$(cat code copy4; left)" 73mine 'a name taken meanwhile is left to who has it' ;;
esac
rm -f copy*

# ---- while others write ----

unset Q_NOW
# A storm: tried.N and told.N are what a writer is about to add, and what it was told is there; settled.2 what it was told is done.
for i in 1 2; do
	perl -MTime::HiRes=time -e '
		my $i = shift;
		for (["TRIED", "tried"], ["TOLD", "told"], ["SETTLED", "settled"]) { open $_->[0], ">", "$_->[1].$i" or die; $_->[0]->autoflush }
		my $most = 0;
		for (my $n = 1; ! -e "stop"; $n++) {
			my $t = time;
			print TRIED "$i.$n\n";
			system("qadd", "-q", "storm", "$i.$n") == 0 or print "add: $?\n";
			print TOLD "$i.$n\n";
			$most = time - $t if time - $t > $most;
			next if $i != 2;
			my ($claim, $what) = `qclaim storm` =~ /"claim":"([^"]*)".*"payload":"?([^",]*)/ or next;
			system("qdone", $claim) == 0 or print "done: $?\n";
			print SETTLED "$what\n";
		}
		printf STDERR "%d\n", 1000 * $most;
	' "$i" >"wrong.$i" 2>"most.$i" &
done
until_ok lines told.2 2
is "$(killed KILL "${KILLS:-3}")" '' 'kill -9 in a storm leaves nothing under the final name, or all of it'
exits 0 'after that a backup' qbackup copy3
is "$(left)" '' '... is alone'
rm -f copy3*
# jobs COPY [WHERE]: what jobs it holds.  without A B: what is in A and not in B
jobs() { sqlite3 -readonly "$1" "SELECT CAST(body AS TEXT) FROM q_job JOIN q_body ON job = id WHERE queue = 'storm' ${2-}" | sort; }
without() { comm -23 "$1" "$2" | sed "s/^/$3: /"; }
n=0
while [ $((n += 1)) -le "${BACKUPS:-3}" ]; do
	cat told.? | sort >told
	sort settled.2 >settled
	cp q.db control
	qbackup copy || echo "no backup $n"
	cat tried.? | sort >tried
	qcheck -d copy | grep -v '^mount: it is in memory'
	jobs copy >held
	jobs copy "AND state = 'done'" >done
	without told held "not in backup $n"
	without held tried "in backup $n, though nobody added it"
	without settled done "not done in backup $n"
	# The control: the file without its log.
	jobs 'file:control?immutable=1' >held 2>&1
	without told held control >>fewer
	rm -f copy*
done >wrong
touch stop
wait
is "$(cat wrong)" '' "${BACKUPS:-3} backups of a storm: whole, with all that was acknowledged before they began and nothing else"
test -s fewer
ok $? '... which a copy of the file without its log is not'
echo "# $(cat told.? | wc -l) added, $(wc -l <settled.2) settled"
is "$(cat wrong.?)" '' '... and nobody failed meanwhile'
ok "$(cat most.* | awk '$1 > 5000 { late = 1 } END { print late + 0 }')" "... nor waited long ($(cat most.* | xargs) ms at most)"
is "$(left)" '' '... and nothing is left'
done_testing
