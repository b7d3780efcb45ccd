#!/bin/sh
# Storms: workers that mix every request are killed, stopped and late; t/storm/check judges their history.
# Sizes: KILLS, OPS requests, STOPS, PROGS requests through the programs, BROKEN requests of a broken worker; SEED.
. "${0%/*}/lib.sh"
unset Q_NOW

kills=${KILLS:-80} ops=${OPS:-1200} progs=${PROGS:-200} stops=${STOPS:-30} broken=${BROKEN:-600} seed=${SEED:-$$}
echo "# SEED=$seed"
client=$t/storm/client outbox=

# An application adds through q_outbox meanwhile, without our turns and our waiting, and keeps its own history.
outbox() {
	until [ -e h/w0-0 ]; do sleep 0.01; done
	printf 's\to\t0\t0\tlibq\n' >h/o
	_k=0
	while [ -e go ] && [ $((_k += 1)) -lt 10000 ]; do
		read -r _up _ </proc/uptime
		printf 'i\t%d\t%s0000\t0\tadd\to/%d/0,%d,q0,5,0,-,-,keep\n' $_k "${_up%.*}${_up#*.}" $_k $((${#_k} + 5)) >>h/o
		sqlite3 -cmd '.timeout 10000' -cmd 'PRAGMA wal_autocheckpoint = 0' q.db \
		    "INSERT INTO q_outbox(queue, payload) VALUES('q0', 'o/$_k/0.'); SELECT job FROM q_body WHERE body = CAST('o/$_k/0.' AS BLOB)" \
		    >id 2>>trouble || return
		read -r _up _ </proc/uptime
		printf 'r\t%d\t%s9999\t0\t%d,new\n' $_k "${_up%.*}${_up#*.}" "$(sed -n '$p' id)" >>h/o
	done
}

# storm NAME SWARM-OPTIONS... CLIENT...: a new file, a swarm, what is left settled, the verdict
storm() {
	_name=$1
	shift
	rm -rf q.db* h
	qinit $outbox
	mkdir h
	: >go
	: >trouble
	[ -z "$outbox" ] || outbox & _pid=$!
	exits 0 "$_name" "$t/storm/swarm" --seed "$seed" --history h "$@"
	rm go
	wait $_pid
	_said=$(sed '/^swarm: seed/d; /: qadd: the key holds job [0-9]*, which is dead/d' out err; cat trouble)	# long storms reuse keys
	sed 's/^/# /' out
	_said=$_said$("$client" -H h -w rest -m drain 2>&1)
	is "$_said" '' '... without a word'
	"$t/storm/check" --history h --drained q.db >verdict 2>&1
	is "$? $(grep -v '^check: ' verdict)" '0 ' '... and the history and the file are right'
	sed -n 's/^check: /# /p' verdict
}
figure() { sed -n "s/^check: .*[ ,]$1 \([0-9]*\)[,;].*/\1/p" verdict; }

# Leases that end all the time; abandoned, doubled, late and guessed settles.
storm "sixteen workers, $ops requests, leases of 100 ms" "$client" -n "$ops" -l 100
test "$(figure late)" -gt 0; ok $? '... some settles came late'
test "$(sql "SELECT count(*) FROM q_attempt WHERE outcome = 'lost'")" -gt 0; ok $? '... and some claims were lost'

storm "the same through the programs, $progs requests, every third program killed" "$client" -x -n "$progs" -l 300 -k 30
test "$(figure killed)" -gt 0; ok $? '... some were killed in time'

storm "$kills workers killed" --kills "$kills" "$client" -n 1000000000 -l 200

outbox=--outbox
storm "$((kills / 3)) workers killed beside an application that adds through q_outbox" --kills $((kills / 3)) "$client" -n 1000000000 -l 200
test "$(sql "SELECT count(*) FROM q_job JOIN q_body ON job = q_job.id WHERE CAST(body AS TEXT) GLOB 'o/*'")" -gt 0; ok $? '... which it did'
outbox=

storm "workers stopped for longer than their lease, $((stops / 2)) times in the middle of anything" \
    --freezes $((stops / 2)) --gap 20 --nap 150 "$client" -n 1000000000 -l 100 -p 20
test "$(figure late)" -gt 0; ok $? '... their late settles are refused'

# Of a worker stopped past its lease the settle is refused, and changes nothing.
rm -rf q.db* h
qinit
qadd -q late job
claim=$(qclaim -l 50ms late | sed 's/.*"claim":"\([^"]*\)".*/\1/')
perl -e 'my $p = fork // die; if (!$p) { kill "STOP", $$; exec "qdone", $ARGV[0] }
	waitpid $p, 2; select undef, undef, undef, 0.1; system "qclaim late >other"; kill "CONT", $p; waitpid $p, 0; exit $? >> 8' "$claim" 2>err
is $? 76 'a settle after the stop: 76'
like "$(cat err)" "^qdone: claim $claim: lost; job 1 is claimed, its last claim is number 2; nothing changed; see qls 1\$" '... it says so'
is "$(sql "SELECT j.state, j.fence, group_concat(outcome) FROM q_job j JOIN q_attempt ON job = j.id")" 'claimed|2|lost' '... and nothing changed'

# ---- controls: with a fault put into libq, the same storm must be condemned ----

# condemned NAME FILE SED-COMMAND RULE...: the rules that the worker with this fault must break
condemned() {
	_name=$1 _file=$2 _sed=$3
	shift 3
	faulty "$_file" "$_sed"
	rm -rf q.db* h
	qinit
	mkdir h
	"$t/storm/swarm" --procs 8 --seed "$seed" --history h house/t/storm/client -n "$broken" -l 100 >out 2>&1
	"$client" -H h -w rest -m drain >/dev/null 2>&1
	"$t/storm/check" --busy --history h q.db >verdict 2>&1
	_s=$? _rules=$(sed -n '/^I/s/ .*//p' verdict | sort -u | tr '\n' ' ')
	for _r in "$@"; do
		case " $_rules" in *" $_r "*) ;; *) _s="$_s, not $_r" ;; esac
	done
	is "$_s" 1 "condemned: $_name (here: ${_rules% })"
}
condemned 'a token is not looked at' job.c 's/\(j\.\)\?fence = :fence AND \(j\.\)\?nonce = :nonce/(& OR 1)/' I5
condemned 'a commit that did not happen' db_sqlite.c \
    's/sqlite3_exec(db->a, "COMMIT", NULL/sqlite3_exec(db->a, when_elapsed() % 40 == 0 ? "ROLLBACK" : "COMMIT", NULL/' I4 I5
if [ -n "$ALL_FAULTS" ]; then
	condemned 'a lease taken over before its end' claim.c 's/lease_ms <= :boot\\n/lease_ms <= :boot + 60\\n/' I3
	condemned 'a fence that stands still' claim.c 's/fence = fence + 1/fence = fence + (fence = 0)/' I4 I7
	condemned 'the youngest first' claim.c 's/ORDER BY ready_ms, id LIMIT/ORDER BY ready_ms DESC, id LIMIT/' I9
	condemned 'an entity in the order of its ids' job.c 's/ORDER BY event_ms, id LIMIT 1/ORDER BY id LIMIT 1/' I9
	condemned 'an entity that is forgotten' job.c 's/job_entity_order(db, j->queue, j->entity);/if (now % 4 == 0) &/' I11
	condemned 'a key that is forgotten' job.c 's/k.until_ms > :now/k.until_ms < :now/' I8
	condemned 'a job that is lost without end' job.c 's/n->lost >= LOST_MAX/n->lost >= 30/' I7
	condemned 'an empty answer while work waits' claim.c 's/for (int p = 0; p < PRIORITIES && \*got/for (int p = now % 9 == 0 ? 10 : 0; p < PRIORITIES \&\& *got/' I9
fi
done_testing
