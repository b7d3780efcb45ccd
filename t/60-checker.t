#!/bin/sh
# The judge of the storms must condemn what is wrong: a small history that is right, and one fault at a time.
. "${0%/*}/lib.sh"

check=$t/storm/check
tab=$(printf '\t')
word() { sed -n 's/.*"claim":"\([^"]*\)".*/\1/p'; }

# Three jobs: one claimed by a worker that was lost, again, and done; one done; one that waits.
qinit
for i in 1 2 3; do printf 'a/%d/0.' $i | Q_BOOT=b:1000 qadd -q q0; done
c11=$(Q_BOOT=b:1004 qclaim -l 100ms q0 | word)
c12=$(Q_BOOT=b:1200 qclaim -l 100ms q0 | word)
c21=$(Q_BOOT=b:1210 qclaim -l 100ms q0 | word)
qdone "$c12" "$c21"

# asked NAME SEQ MS KIND ARG..., answered NAME SEQ MS STATUS ARG...: lines as client.c writes them
now=1780401600000
field() { printf '\t%s' "$@"; echo; }
begin() { { printf s; field "$1" 900000 $now programs; } >good/"$1"; }
asked() {
	_f=good/$1 _s=$2 _ms=$3
	shift 3
	{ printf 'i\t%s\t%s000\t%s' "$_s" "$_ms" $now; field "$@"; } >>"$_f"
}
answered() {
	_f=good/$1 _s=$2 _ms=$3
	shift 3
	{ printf 'r\t%s\t%s000' "$_s" "$_ms"; field "$@"; } >>"$_f"
}
mkdir good
begin a
for i in 1 2 3; do
	asked a $i 100$i add "a/$i/0,6,q0,5,$now,-,-,keep"
	answered a $i 100$i 0 "$i,new"
done
begin w
asked w 1 1004 claim 1 100 q0
answered w 1 1005 0 "$c11,a/1/0,6"
asked w 2 1300 settle "$c11,done,0"
answered w 2 1301 0 76,-
begin x
asked x 1 1199 claim 1 100 q0
answered x 1 1201 0 "$c12,a/1/0,6"
asked x 2 1209 claim 1 100 q0
answered x 2 1211 0 "$c21,a/2/0,6"
asked x 3 1220 renew "$c21" 100
answered x 3 1221 0
asked x 4 1230 settle "$c12,done,0" "$c21,done,0"
answered x 4 1231 0 0,done 0,done

exits 0 'what is right is not condemned' "$check" --history good q.db
is "$(cat out)" "check: jobs 3, attempts 3, requests 9, add 3, claim 3, settle 2, renew 1, claimed 3, settled 2, late 1, \
busy 0, killed 0, unanswered 0, log $(($(wc -c <q.db-wal))); violations 0" '... and counted'
exits 1 'but not called drained' "$check" --drained --history good q.db
is "$(sed '$d' out)" 'I1 job 3: is still pending' '... since one job waits'

# spoiled NAME WANTED SED-COMMAND FILE...: the history with one fault
spoiled() {
	_name=$1 _want=$2 _sed=$3
	shift 3
	rm -rf bad
	cp -R good bad
	for _f in "$@"; do
		sed "$_sed" good/"$_f" >bad/"$_f"
		! cmp -s good/"$_f" bad/"$_f" || echo "# nothing changed in $_f"
	done
	"$check" --all --history bad q.db >out 2>err
	is "$? $(sed '$d' out; cat err)" "1 $_want" "$_name"
}
n21=${c21#*.*.}

worker() { sql "SELECT worker FROM q_attempt WHERE job = $1 AND fence = $2"; }

spoiled 'an add that was acknowledged, and is nowhere' "I2 job 3: nobody added its payload
I1 job 9: acknowledged with payload a/9/0, and not there" "/a.3.0/s//a\/9\/0/; s/3,new/9,new/" a
spoiled 'an add acknowledged with the id of another' \
    'I1 job 2: acknowledged with payload a/3/0, holds a/2/0' 's/3,new/2,new/' a
spoiled 'a job that nobody added' 'I2 job 3: nobody added its payload' '/^[ir].3/d' a
spoiled 'a payload cut short' 'I2 job 3: of its payload 6 of 60 bytes are there' 's/a.3.0,6/a\/3\/0,60/' a
spoiled 'a payload of another job delivered' 'I2 job 2: delivered with payload a/3/0, holds a/2/0' 's/a.2.0,6/a\/3\/0,6/' x
spoiled 'a refused add that happened' 'I8 a: a request ended with status 75
I8 job 3: the add of a/3/0 was refused with 75' "/^r.3/s/${tab}0${tab}3,new/${tab}75/" a
spoiled 'a claim given twice' "I4 job 1: claim 2 was given to w and to x
I8 job 1: claim 1 of $(worker 1 1), of whom nobody was told" "/^r.1/s/$c11/$c12/" w
spoiled 'a claim that nobody was told of' \
    "I8 job 2: claim 1 of $(worker 2 1), of whom nobody was told
I5 claim $c21 was never given and settled
I5 claim $c21 was never given and renewed
I9 x: wanted 1 jobs of q0 and got 0, while job 3 waited" "/^r.2/s/${tab}$c21.*//" x
spoiled 'an empty answer while a job waits' 'I9 x: wanted 1 jobs of q0 and got 0, while job 3 waited' \
    "\$a\\
i${tab}5${tab}1240000${tab}$now${tab}claim${tab}1${tab}100${tab}q0\\
r${tab}5${tab}1241000${tab}0" x
spoiled 'a lease that overlaps another' "I3 claim $c11 was refused when its lease had 703 ms left
I3 job 1: claim 2 of x began when claim 1 of w had 803 ms left" "/^i.1/s/${tab}100${tab}/${tab}1000${tab}/" w
spoiled 'a token that goes back' "I3 claim $c11 was refused when its lease had 49 ms left
I4 job 1: claim 2 was given before claim 1
I3 job 1: claim 2 of x began when claim 1 of w had 149 ms left
I9 x: got job 2, while job 1 waited" '/^i.1/s/1004000/1250000/; /^r.1/s/1005000/1251000/' w
spoiled 'a late settle that is accepted' \
    "I5 claim $c11 was settled as done after job 1 was claimed again by x
I5 claim $c11 was settled as done, in the ledger it is lost
I5 claim $c11 was answered done, the ledger has failed
I6 job 1: was done, and delivered again as claim 2" '/^r.2/s/76,-/0,done/' w
spoiled 'a live claim that is refused' "I3 claim $c21 was refused when its lease had 89 ms left
I5 claim $c21 is done in the ledger, and nobody did that" '/^r.4/s/0,done$/76,-/' x
spoiled 'a settle that the file does not know' \
    "I5 claim $c12 was settled as failed, in the ledger it is done
I5 claim $c12 is done in the ledger, and nobody did that" "/^i.4/s/$c12,done/$c12,failed/; /^r.4/s/0,done/0,-/" x
spoiled 'a settle that nobody asked for' "I5 claim $c12 is done in the ledger, and nobody did that
I5 claim $c21 is done in the ledger, and nobody did that" '/^[ir].4/d' x
spoiled 'two outcomes of one claim' "I5 claim $c21 was settled as done and as failed" \
    "\$a\\
i${tab}5${tab}1240000${tab}$now${tab}settle${tab}$c21,failed,0\\
r${tab}5${tab}1241000${tab}0${tab}0,-" x
spoiled 'a repeated settle that is refused' "I5 claim $c21 was settled as done before, and refused" \
    "\$a\\
i${tab}5${tab}1240000${tab}$now${tab}settle${tab}$c21,done,0\\
r${tab}5${tab}1241000${tab}0${tab}76,-" x
spoiled 'a guessed token that is accepted' "I5 claim 2.1.00000000 was never given and settled
I5 claim $c21 is done in the ledger, and nobody did that" "/^i.4/s/$n21,/00000000,/" x
spoiled 'a status that means trouble' "I8 x: a request ended with status 70" "/^r.3/s/0\$/70/" x
rm -rf bad
cp -R good bad
printf x >>bad/x
exits 0 'a line that its writer could not end is no evidence' "$check" --history bad q.db
printf '\nr\t9\n' >>bad/x
exits 2 'but a history that cannot be read is not judged' "$check" --history bad q.db
is "$(cat out err)" 'check: x:10: cannot be read' '... and the line named'
exits 2 'nor an empty one' "$check" --history /var/empty/none q.db
exits 2 'nor a file that is not there' "$check" none.db

# damaged NAME WANTED SQL [HISTORY]: the file with one fault
damaged() {
	rm -f bad.db*
	cp q.db bad.db
	cp q.db-wal bad.db-wal
	sqlite3 bad.db "PRAGMA ignore_check_constraints = 1; $3"
	"$check" ${4:+--history "$4"} bad.db >out 2>err
	is "$? $(sed '$d' out; cat err)" "1 $2" "$1"
}
damaged 'a job that is gone' 'I11 a payload of job 1, which is not there
I11 q0 done: 1 jobs, counted 2
I1 job 1: in the ledger, but not there' 'DROP TRIGGER q_count_out; DELETE FROM q_job WHERE id = 1'
damaged 'a payload that is gone' 'I1 job 3 has no payload' 'DELETE FROM q_body WHERE job = 3'
damaged 'a count that is off' 'I11 q0 done: 2 jobs, counted 3' 'UPDATE q_count SET n = 3'
damaged 'a count that is not there' 'I11 q0 done: 2 jobs, not counted' 'DELETE FROM q_count'
damaged 'an attempt that is gone' 'I7 job 1, claim 2: ledger row 2 follows 1, not none
I7 job 1, claim 2: the ledger has no claim 1
I7 job 1, claim 2: is called attempt 2 after 0 spent ones
I7 job 1: 2 claims, but 1 ledger rows
I7 job 1: spent 1 lost 0 deferred 0, by the ledger 0 0 0' 'DELETE FROM q_attempt WHERE id = 1'
damaged 'a chain of attempts that is broken' 'I7 job 1, claim 2: ledger row 2 follows none, not 1' 'UPDATE q_attempt SET prev = NULL'
damaged 'a fence that went back' 'I7 job 1: 1 claims, but 2 ledger rows' 'UPDATE q_job SET fence = 1 WHERE id = 1'
damaged 'a job that is ready but done' 'I11 job 1: ready, but done' 'UPDATE q_job SET ready_ms = due_ms WHERE id = 1'
damaged 'a job that waits and is not ready' 'I11 job 3: pending and claimable, but not ready' 'UPDATE q_job SET ready_ms = NULL WHERE id = 3'
damaged 'a job done, by the ledger lost' 'I7 job 1, claim 2: outcome lost made it done
I7 job 1: spent 1 lost 0 deferred 0, by the ledger 2 2 0' "UPDATE q_attempt SET outcome = 'lost' WHERE id = 2"
damaged 'a job claimed again after it was done' 'I6 job 2: claimed after it was finished
I11 q0 done: 1 jobs, counted 2' "DROP TRIGGER q_count_back; UPDATE q_job SET state = 'claimed', fence = 2, lease_ms = 1, finished_ms = NULL WHERE id = 2"
damaged 'an entity without a first' 'I11 entity q0 e: 1 jobs are open and 0 of them first' \
    "UPDATE q_job SET entity = 'e', ready_ms = NULL WHERE id = 3"
damaged 'a key that leads nowhere' 'I11 key q0 k: its job 77 is not there' "INSERT INTO q_key VALUES('q0', 'k', 77, 0)"
damaged 'a job that waited before the one that was taken' 'I9 w: got job 1, while job 3 waited
I9 x: got job 1, while job 3 waited
I9 x: got job 2, while job 3 waited' \
    'UPDATE q_job SET due_ms = due_ms - 1, ready_ms = due_ms - 1 WHERE id = 3' good

# Job 1 was deleted by rule: the newest job and that of the newest attempt stay.
cp q.db gone.db
cp q.db-wal gone.db-wal
qset -d gone.db queue.q0.keep=1s
for at in 10 20; do Q_NOW=2026-06-02T12:00:${at}Z qpurge -q -d gone.db --grace 1s --ids ids; done
is "$(cat ids)" "1${tab}q0" 'a job is deleted by rule'
exits 1 '... which nobody told the judge' "$check" --history good gone.db
is "$(sed '$d' out)" "I1 job 1: acknowledged with payload a/1/0, and not there
I1 job 1: delivered and not there
I1 job 1: delivered and not there
I5 claim $c12 was never given and settled" '... who condemns it'
exits 0 '... which is right, since it was delivered' "$check" --history good --purged ids gone.db
rm -rf bad
cp -R good bad
sed -i "/^[ir].1${tab}/d" bad/w bad/x
exits 1 '... and wrong if it was not' "$check" --history bad --purged ids gone.db
is "$(sed '$d' out)" 'I1 job 1: acknowledged with payload a/1/0, deleted, and never delivered' '... who says so'
rm -rf bad
cp -R good bad
sed -i "s/${tab}2,new/${tab}-,new/" bad/a
exits 0 'an add whose id its giver was not told' "$check" --history bad q.db
sed -i "/^i.2/s/a.2.0,6/a\/9\/0,6/" bad/a
exits 1 '... is looked for by its payload' "$check" --history bad q.db
like "$(cat out)" '^I1 job 0: acknowledged with payload a/9/0, and not there$' '... and missed'
Q_NOW=2026-06-02T12:00:30Z qadd -q -d gone.db other job
exits 1 'a queue that the history does not tell of' "$check" --history good --purged ids gone.db
exits 0 '... may be named' "$check" --history good --purged ids --apart other gone.db

cp q.db left.db
cp q.db-wal left.db-wal
: >left.db-new
exits 1 'a temporary file' "$check" left.db
is "$(sed '$d' out)" 'I12 left.db-new is left over' '... is named'
rm left.db-new
perl -e 'open my $f, "<", "left.db"; print "open\n"; close STDOUT; sleep 60' >opened & pid=$!
while [ ! -s opened ]; do sleep 0.01; done
exits 1 'a process that has the file open' "$check" left.db
is "$(sed '$d' out)" "I12 process $pid has the file open" '... is named'
kill $pid
done_testing
