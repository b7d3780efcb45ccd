# rows.sh - the rows of run, which reads this
# shellcheck shell=sh disable=SC2015,SC2016,SC2034,SC2154	# run has the variables, too; say does not fail

# ---- files ----

NOW="(SELECT CAST(round((julianday('now')-2440587.5)*86400000) AS INTEGER) AS t)"
ADD="BEGIN IMMEDIATE;
INSERT INTO q_job(queue,event_ms,due_ms,ready_ms,added_ms) SELECT 'q',t,t,t,t FROM $NOW;
INSERT INTO q_body VALUES(last_insert_rowid(),CAST('{\"to\":\"ana@example.org\",\"text\":\"hello\"}' AS BLOB));
COMMIT"
CLAIM="UPDATE q_job SET state='claimed',ready_ms=NULL,lease_ms=1,fence=fence+1,nonce=random()&4294967295,claimed_ms=t,worker='w'
FROM $NOW WHERE id=(SELECT id FROM q_job WHERE queue='q' AND priority=5 AND ready_ms IS NOT NULL ORDER BY ready_ms,id LIMIT 1)
RETURNING id,fence,nonce,(SELECT body FROM q_body WHERE job=id)"
SETTLE="BEGIN IMMEDIATE;
INSERT INTO q_attempt(job,prev,generation,attempt,fence,queue,type,due_ms,started_ms,finished_ms,outcome,state)
SELECT id,last_attempt,generation,spent+1,fence,queue,type,due_ms,claimed_ms,claimed_ms,'done','done' FROM q_job
WHERE queue='q' AND lease_ms IS NOT NULL ORDER BY lease_ms LIMIT 1;
UPDATE q_job SET state='done',lease_ms=NULL,finished_ms=claimed_ms,last_attempt=last_insert_rowid()
WHERE id=(SELECT job FROM q_attempt WHERE id=last_insert_rowid());
COMMIT"
PAYLOAD='{"to":"ana@example.org","text":"hello"}'

# fresh FILE...: new queue files
fresh() {
	for file; do
		rm -rf "$file" "$file"-*
		qinit "$file"
	done
}

# fill FILE SQL...: jobs put into a fresh file by plain SQL, which must then be sound.  In it N(LIMIT) counts from 1.
fill() {
	file=$1
	{
		echo 'PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;'
		shift
		printf '%s;\n' "$@" | sed 's/N(\([0-9]*\))/(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<\1) SELECT n FROM c)/g'
		echo "INSERT INTO q_body SELECT id,CAST('$PAYLOAD' AS BLOB) FROM q_job;"
		echo 'COMMIT; PRAGMA journal_mode=WAL; PRAGMA integrity_check;'
	} | sqlite3 "$file" | tail -n 1 | grep -qx ok || { echo "run: $file is not sound" >&2; exit 1; }
}
ready() { echo "INSERT INTO q_job(queue,event_ms,due_ms,ready_ms,added_ms) SELECT 'q',t+n,t+n,t+n,t FROM (SELECT 1700000000000 AS t),N($1)"; }

# ---- rows ----

row_start() {
	pair 'qadd --version' '<= 1.30' 'empty C program, static' qadd --version :: ./floor
	pair 'qadd --version' '<= 0.45' "sqlite3 -version ($SQLITE)" qadd --version :: sqlite3 -version
}

row_add() {
	fresh q.db s.db
	set -- qadd -d q.db q "$PAYLOAD"
	pair 'one durable add, a process' '<= 2.00' 'floor: append 200 B, fdatasync' "$@" :: ./floor log
	pair 'one durable add, a process' '<= 0.45' "sqlite3 $SQLITE shell, WAL FULL" "$@" :: sqlite3 s.db "$ADD"
	pair 'one durable add, a process' '<= 1.35' 'nq true, not durable' "$@" :: nq true
	pair 'one durable add, a process' '' 'tsp true, not durable' "$@" :: tsp true
	if has at && [ -z "$(atq -q Z 2>/dev/null)" ]; then
		at_used=yes
		echo true >script
		pair 'one durable add, a process' '<= 0.95' 'at, not durable' "$@" :: at -q Z -f script 'now + 9 years'
	else
		say 'one durable add, a process' - 'at, not durable' - - '<= 0.95'
	fi
}

row_held() {
	fresh q.db s.db
	./clock hold q.db & holder=$!
	qadd -q -d q.db q 1
	set -- qadd -d q.db q "$PAYLOAD"
	pair 'the same, file held open' '<= 1.60' 'floor: append 200 B, fdatasync' "$@" :: ./floor log
	pair 'the same, file held open' '<= 0.36' "sqlite3 $SQLITE shell, WAL FULL" "$@" :: sqlite3 s.db "$ADD"
	pair 'the same, file held open' '<= 1.15' 'nq true, not durable' "$@" :: nq true
	pair 'the same, file held open' '<= 1.05' 'tsp true, not durable' "$@" :: tsp true
	kill "$holder"
	holder=
}

row_storm() {
	fresh q.db s.db
	echo "exec ./clock loops -P 8 -s 2 qadd -d q.db q '$PAYLOAD'" >ours.sh
	cat >theirs.sh <<-END
		exec ./clock loops -P 8 -s 2 sqlite3 -cmd '.timeout 10000' s.db "\$(cat add.sql)"
	END
	printf '%s\n' "$ADD" >add.sql
	contest
	name="sqlite3 $SQLITE, .timeout, WAL FULL"
	a=$(middle ours 1) b=$(middle theirs 1)
	say '8 loops of one-shot adds' "$a/s" "$name" "$b/s" "$(calc %.2f "$a / $b")" '>= 1.40'
	a=$(middle ours 2) b=$(middle theirs 2)
	say '... p50' "$(time_of "$a")" "$name" "$(time_of "$b")" "$(calc %.2f "$a / $b")" ''
	a=$(middle ours 3) b=$(middle theirs 3)
	say '... p99' "$(time_of "$a")" "$name" "$(time_of "$b")" "$(calc %.2f "$a / $b")" '<= 0.20'
	a=$(middle ours 4) b=$(middle theirs 4)
	say '... longest (goal: 30 ms)' "$(time_of "$a")" "$name" "$(time_of "$b")" "$(calc %.2f "$a / $b")" ''
	say '... quietest loop / busiest, failed' "$(middle ours 5), $(middle ours 6)" "$name" "$(middle theirs 5), $(middle theirs 6)" '' ''
}

row_syncs() {
	fresh q.db
	if has strace; then
		for i in $(seq 100); do
			: "$i"
			strace -f -o trace -e trace=fsync,fdatasync,sync_file_range,msync qadd -q -d q.db q "$PAYLOAD" || :
			grep -c 'sync(' trace || :
		done >syncs
		say 'adds with exactly one sync, of 100' "$(grep -cx 1 syncs)" "(strace; most in one add: $(sort -n syncs | tail -n 1))" '' '' '>= 90'
	else
		say 'adds with exactly one sync, of 100' - strace - - '>= 90'
	fi
}

# What each bulk peer is given: 118 bytes of JSON a line, as payload or inside a record with a key.
inputs() {
	[ ! -f lines.txt ] || return 0
	awk -v n="$lines" 'BEGIN { srand(1); for (i = 1; i <= n; i++) {
		p = sprintf("{\"to\":\"user%07d@example.org\",\"subject\":\"your order\",\"text\":\"thank you for order %07d, it is on its way\"}", i, i)
		print p >"lines.txt"
		printf "{\"key\":\"order-%09d\",\"payload\":%s}\n", i, p >"sorted.jsonl"
		printf "{\"key\":\"order-%09d-%d\",\"payload\":%s}\n", int(rand() * 1000000000), i, p >"random.jsonl" } }'
	cat >import.sql <<-'END'
		CREATE TEMP TABLE t(line TEXT);
		.mode ascii
		.separator "\037" "\n"
		.import lines.txt t
		BEGIN IMMEDIATE;
		INSERT INTO q_job(queue,event_ms,due_ms,ready_ms,added_ms) SELECT 'q',1700000000000,1700000000000,1700000000000,1700000000000 FROM t;
		INSERT INTO q_body SELECT rowid,CAST(line AS BLOB) FROM t;
		COMMIT;
	END
	cat >import-json.sql <<-'END'
		CREATE TEMP TABLE t(line TEXT);
		.mode ascii
		.separator "\037" "\n"
		.import sorted.jsonl t
		BEGIN IMMEDIATE;
		INSERT INTO q_job(queue,key,event_ms,due_ms,ready_ms,added_ms)
		SELECT 'q',json_extract(line,'$.key'),1700000000000,1700000000000,1700000000000,1700000000000 FROM t;
		INSERT INTO q_body SELECT rowid,CAST(json_extract(line,'$.payload') AS BLOB) FROM t;
		INSERT INTO q_key SELECT 'q',key,id,9223372036854775807 FROM q_job;
		COMMIT;
	END
	cat >many.py <<-'END'
		import json, sqlite3, sys
		file, source, is_json = sys.argv[1], sys.argv[2], sys.argv[3] == "json"
		c = sqlite3.connect(file, isolation_level=None)
		c.execute("BEGIN IMMEDIATE")
		t = 1700000000000
		with open(source, "rb") as f:
		    if is_json:
		        jobs = [(r["key"], json.dumps(r["payload"], separators=(",", ":")).encode()) for r in map(json.loads, f)]
		    else:
		        jobs = [(None, line[:-1]) for line in f]
		c.executemany("INSERT INTO q_job(id,queue,key,event_ms,due_ms,ready_ms,added_ms) VALUES(?,'q',?,?,?,?,?)",
		              ((i, k, t, t, t, t) for i, (k, _) in enumerate(jobs, 1)))
		c.executemany("INSERT INTO q_body VALUES(?,?)", ((i, b) for i, (_, b) in enumerate(jobs, 1)))
		if is_json:
		    c.executemany("INSERT INTO q_key VALUES('q',?,?,9223372036854775807)", ((k, i) for i, (k, _) in enumerate(jobs, 1)))
		c.execute("COMMIT")
	END
}

bulk() { echo "exec qadd -q -d $1 --batch 100000 $2 q <$3"; }

row_bulk() {
	inputs
	new='rm -f q.db q.db-* s.db s.db-*; qinit q.db; qinit s.db'
	python=$(python3 -c 'import sqlite3; print(sqlite3.sqlite_version)' 2>/dev/null || echo '?')
	rate "bulk add, $lines lines" '>= 1.05' "sqlite3 $SQLITE .import, SELECT, FULL" "$lines" "$lines" \
		-n "$few" -p "$new" sh -c "$(bulk q.db --lines lines.txt)" :: sqlite3 -init import.sql s.db .quit
	rate "bulk add, $lines lines" '' "python3 executemany ($python), FULL" "$lines" "$lines" \
		-n "$few" -p "$new" sh -c "$(bulk q.db --lines lines.txt)" :: python3 many.py s.db lines.txt text
	rate "bulk add, $lines records, keys" '' "sqlite3 $SQLITE .import, json_extract" "$lines" "$lines" \
		-n "$few" -p "$new" sh -c "$(bulk q.db --jsonl sorted.jsonl)" :: sqlite3 -init import-json.sql s.db .quit
	rate "bulk add, $lines records, keys" '>= 1.90' "python3 json.loads, executemany" "$lines" "$lines" \
		-n "$few" -p "$new" sh -c "$(bulk q.db --jsonl sorted.jsonl)" :: python3 many.py s.db sorted.jsonl json
}

row_keys() {
	inputs
	rate "bulk add, keys in random order" '>= 0.71' 'the same, sorted' "$lines" "$lines" \
		-n "$few" -p 'rm -f q.db q.db-* s.db s.db-*; qinit q.db; qinit s.db' \
		sh -c "$(bulk q.db --jsonl random.jsonl)" :: sh -c "$(bulk s.db --jsonl sorted.jsonl)"
	fresh q.db s.db
	seq "$((4 * rounds))" >keys
	pair 'one durable add with a new key' '' 'without a key' -a keys qadd -d q.db -k @ q "$PAYLOAD" :: qadd -d s.db q "$PAYLOAD"
	pair 'one add with a known key' '' 'a durable add' qadd -d q.db -k 1 q "$PAYLOAD" :: qadd -d s.db q "$PAYLOAD"
	for kind in new random same; do
		rate "add with keys ($kind), 10 a commit, libq" '' 'without keys' 5000 5000 -n "$few" \
			./clock jobs -n 5000 -b 10 -k $kind q.db q add :: ./clock jobs -n 5000 -b 10 s.db q add
	done
}

row_claim() {
	fresh q.db s.db
	fill q.db "$(ready $((rounds * 130 + 2000)))"
	fill s.db "$(ready $((rounds * 130 + 2000)))"
	pair 'one claim, a process' '<= 0.45' "sqlite3 $SQLITE shell, WAL FULL" qclaim -d q.db q :: sqlite3 s.db "$CLAIM"
	qclaim -d q.db -l 1h -c "$((2 * rounds))" q | sed 's/.*"claim":"\([^"]*\)".*/\1/' >claims
	pair 'one settle, a process' '<= 0.45' "sqlite3 $SQLITE shell, WAL FULL" -a claims qdone -d q.db @ :: sqlite3 s.db "$SETTLE"
	for n in 10 100 1000; do
		rate "claim $n, settle $n: processes" '' 'the same one by one' "$n" 1 -n "$((rounds / 10 + 1))" \
			sh -c "qclaim -d q.db -c $n q | qdone -d q.db -" :: sh -c "qclaim -d q.db q | qdone -d q.db -"
	done
}

row_cycle() {
	fresh q.db s.db
	fill q.db "$(ready $((few * 40000)))"
	fill s.db "$(ready $((few * 40000)))"
	rate 'done + claim in one commit, libq' '>= 1.50' 'in two commits' 1000 1000 -n "$((few * 3))" \
		./clock jobs -n 1000 q.db q one :: ./clock jobs -n 1000 s.db q two
	for n in 10 100; do
		rate "the same, $n a commit" "$([ "$n" = 10 ] && echo '>= 6.00')" 'one commit a job' 5000 1000 -n "$((few * 3))" \
			./clock jobs -n 5000 -b $n q.db q one :: ./clock jobs -n 1000 s.db q one
	done
	rate 'add in a loop, libq' '' 'done + claim in one commit' 1000 1000 -n "$((few * 3))" \
		./clock jobs -n 1000 q.db q add :: ./clock jobs -n 1000 s.db q one
}

row_eight() {
	fresh q.db s.db
	fill q.db "$(ready 300000)"
	fill s.db "$(ready 300000)"
	rm -f s.db-lock
	mkdir s.db-lock		# so that there is no turnstile
	for b in 1 10; do
		echo "exec ./clock jobs -P 8 -s 1.5 -b $b q.db q one" >ours.sh
		echo "exec ./clock jobs -P 8 -s 1.5 -b $b s.db q one" >theirs.sh
		contest
		a=$(middle ours 1) z=$(middle theirs 1)
		say "8 workers, libq, $b a commit" "$a/s" 'without the turnstile' "$z/s" "$(calc %.2f "$a / $z")" '>= 0.90'
		a=$(middle ours 2) z=$(middle theirs 2)
		say '... p50' "$(time_of "$a")" 'without the turnstile' "$(time_of "$z")" "$(calc %.2f "$a / $z")" ''
		z=$(middle ours 3)
		say '... p99' "$(time_of "$z")" 'its own p50' "$(time_of "$a")" "$(calc %.2f "$z / $a")" '<= 2.00'
		a=$(middle ours 4) z=$(middle theirs 4)
		say '... longest (goal: 30 ms)' "$(time_of "$a")" 'without the turnstile' "$(time_of "$z")" "$(calc %.2f "$a / $z")" ''
		say '... quietest / busiest (goal: 0.95)' "$(middle ours 5)" 'without the turnstile' "$(middle theirs 5)" '' ''
	done
}

# All of it in numbers: claims and settlements in one commit, by so many processes.
row_batch() {
	fresh q.db
	fill q.db "$(ready "$((few * 400000))")"
	say 'claim + settle, libq' throughput '' 'p99, longest' '' 'quietest / busiest'
	for b in 1 10 100 1000; do
		for p in 1 2 4 8; do
			./clock jobs -P $p -s 1 -b $b q.db q one >out || :
			[ "$p" = 1 ] && one=$(got 1 1)
			say "$b a commit, $p processes" "$(got 1 1)/s" 'one process' "$(got 1 3), $(got 1 4) ms" "$(calc %.2f "$(got 1 1) / $one")" "$(got 1 5)"
		done
	done
}

# ---- servers: each in a folder of its own, on a socket there ----

# wait_for FILE
wait_for() {
	for _ in $(seq 100); do
		[ ! -e "$1" ] || return 0
		sleep 0.1
	done
	return 1
}

# PostgreSQL refuses root, so its files belong to its own user then.
pg_run() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
pg_stop() {
	(cd "$pg" && pg_run "$pgbin/pg_ctl" -D "$pg/data" -m immediate stop >/dev/null) || :
	rm -rf "$pg"
	pg=
}
pg_start() {
	pgbin=$(find /usr/lib/postgresql/*/bin -maxdepth 0 2>/dev/null | tail -n 1)
	[ -x "$pgbin/pgbench" ] || return 1
	pg=$(mktemp -d /tmp/q-bench-pg.XXXXXX)
	[ "$(id -u)" != 0 ] || chown postgres "$pg"
	(
		cd "$pg" || exit
		pg_run "$pgbin/initdb" -D data -A trust >/dev/null
		pg_run "$pgbin/pg_ctl" -D data -w -l "$pg/log" -o "-k $pg -c listen_addresses=''" start >/dev/null
		cat >add.sql <<-'END'
			INSERT INTO jobs(due, payload) VALUES(now(), '{"to":"ana@example.org","text":"hello"}');
		END
		cat >work.sql <<-'END'
			UPDATE jobs SET state = 1 WHERE id = (SELECT id FROM jobs WHERE state = 0 ORDER BY due, id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id \gset
			UPDATE jobs SET state = 2 WHERE id = :id;
		END
		chmod a+r ./*.sql
		pg_run psql -q -h "$pg" -d postgres -c "CREATE TABLE jobs(id bigserial PRIMARY KEY, state int NOT NULL DEFAULT 0, due timestamptz, payload text);
			CREATE INDEX ON jobs(due, id) WHERE state = 0"
	)
}
# pg_clock CLIENTS JOBS-EACH add|work: as a line of clock
pg_clock() {
	(cd "$pg" && rm -f pgbench_log* && pg_run "$pgbin/pgbench" -n -h "$pg" -M prepared -f "$3.sql" -c "$1" -j "$1" -t "$2" -l postgres 2>/dev/null |
		awk '/without initial/ { print $3 }' >tps && cat pgbench_log* | cut -d' ' -f3 | sort -n |
		awk '{ v[NR] = $1 / 1000 } END { getline t <"tps"; printf "%.0f %.3f %.3f %.3f - 0\n", t, v[int(NR / 2) + 1], v[int(NR * 0.99) + 1], v[NR] }')
}

# against NAME GOAL1 GOAL8: one.sh, eight.sh and adds.sh measure it with as many jobs as ours
against() {
	for what in adds one eight; do
		case $what in
		adds) work='add, libq, one client' goal='' ours='-n 2000' ;;
		one) work='claim + settle, libq, one client' goal=$2 ours='-n 2000' ;;
		eight) work='the same, 8 clients, ours 10 a commit' goal=$3 ours='-P 8 -n 1000 -b 10' ;;
		esac
		[ $what = adds ] && do=add || do=one
		echo "exec ./clock jobs $ours q.db q $do" >ours.sh
		cp $what.sh theirs.sh
		contest
		say "$work" "$(middle ours 1)/s" "$1" "$(middle theirs 1)/s" "$(calc %.2f "$(middle ours 1) / $(middle theirs 1)")" "$goal"
		say '... p99' "$(time_of "$(middle ours 3)")" "$1" "$(time_of "$(middle theirs 3)")" "$(calc %.2f "$(middle ours 3) / $(middle theirs 3)")" ''
	done
}

# Jobs one at a time on both sides, but where it says 10.  Their clients: ours in C for beanstalkd and redis, pgbench with prepared
# statements for PostgreSQL.
row_servers() {
	fresh q.db
	fill q.db "$(ready $((few * 40000)))"
	n=$((few * 12000))
	if has beanstalkd; then
		mkdir bs
		beanstalkd -f0 -b bs -l "unix:$dir/bs.sock" 2>/dev/null & holder=$!
		wait_for bs.sock
		./clock beanstalkd -n $n bs.sock add >out
		for c in 'adds -n 2000 add' 'one -n 2000 work' 'eight -P 8 -n 1000 work'; do
			echo "exec ./clock beanstalkd $(echo "${c#* }" | sed 's/ \([a-z]*\)$/ bs.sock \1/')" >"${c%% *}.sh"
		done
		against "$(beanstalkd -v) -f0" '>= 1.25' '>= 2.50'
		kill "$holder"
		holder=
	else
		say 'claim + settle, libq' - 'beanstalkd -f0' - - '>= 1.25'
	fi
	if has redis-server; then
		mkdir rd
		redis-server --port 0 --unixsocket "$dir/rd.sock" --appendonly yes --appendfsync always --save '' --dir rd >/dev/null & holder=$!
		wait_for rd.sock
		./clock redis -n $n rd.sock add >out
		for c in 'adds -n 2000 add' 'one -n 2000 work' 'eight -P 8 -n 1000 work'; do
			echo "exec ./clock redis $(echo "${c#* }" | sed 's/ \([a-z]*\)$/ rd.sock \1/')" >"${c%% *}.sh"
		done
		against "redis $(redis-server --version | sed 's/.* v=\([^ ]*\).*/\1/'), appendfsync always" '>= 2.30' '>= 2.00'
		kill "$holder"
		holder=
	else
		say 'claim + settle, libq' - 'redis, appendfsync always' - - '>= 2.30'
	fi
	if pg_start; then
		pg_clock 1 $n add >/dev/null
		pg_rounds 'add, libq, one client' '-n 2000' add '' 1 2000 add
		pg_rounds 'claim + settle, libq, one client' '-n 2000' one '>= 2.70' 1 2000 work
		pg_rounds 'the same, 8 clients, ours 10 a commit' '-P 8 -n 1000 -b 10' one '>= 2.50' 8 1000 work
		pg_stop
	else
		say 'claim + settle, libq' - 'PostgreSQL, SKIP LOCKED' - - '>= 2.70'
	fi
}
# pg_rounds WORK OUR-OPTIONS OUR-WORK GOAL CLIENTS JOBS-EACH add|work
pg_rounds() {
	rm -f ours theirs
	for _ in $(seq "$few"); do
		# shellcheck disable=SC2086
		./clock jobs $2 q.db q "$3" >>ours || :
		pg_clock "$5" "$6" "$7" >>theirs
	done
	say "$1" "$(middle ours 1)/s" "PostgreSQL $("$pgbin/postgres" --version | cut -d' ' -f3), SKIP LOCKED" "$(middle theirs 1)/s" "$(calc %.2f "$(middle ours 1) / $(middle theirs 1)")" "$4"
	say '... p99' "$(time_of "$(middle ours 3)")" '' "$(time_of "$(middle theirs 3)")" "$(calc %.2f "$(middle ours 3) / $(middle theirs 3)")" ''
}

row_work() {
	fresh q.db
	seq 200 >numbers
	add='qadd -q -d q.db --lines q <numbers'
	rate '200 handlers (true), one by one' '' "xargs -n1, not durable" 200 200 -n "$((few * 2))" -p "$add" \
		qwork -d q.db q -- true :: xargs -a numbers -n1 true
	gnu=parallel
	parallel --version 2>/dev/null </dev/null | grep -q '^GNU' || gnu=/nowhere	# there is another parallel
	rate '200 handlers (true), one by one' '' "GNU parallel -j1, not durable" 200 200 -n "$few" -p "$add" \
		qwork -d q.db q -- true :: $gnu -j1 -a numbers true
	rate '200 handlers (true), 8 at once' '' "xargs -n1 -P8, not durable" 200 200 -n "$((few * 2))" -p "$add" \
		qwork -d q.db -P8 q -- true :: xargs -a numbers -n1 -P8 true
}

# From before qadd is started to the first instruction of the handler.
row_wake() {
	fresh q.db
	qwork -d q.db --follow q -- ./clock stamp stamps & holder=$!
	for _ in $(seq "$rounds"); do
		sleep 0.05
		date +%s%N | qadd -q -d q.db q -
	done
	sleep 0.5
	kill "$holder"
	wait "$holder" || :
	holder=
	sort -n stamps >sorted
	n=$(wc -l <sorted)
	turn -n "$rounds" qadd -d q.db q "$PAYLOAD" :: ./floor
	say 'from date | qadd to the handler: median' "$(time_of "$(sed -n "$((n / 2 + 1))p" sorted)")" 'a qadd' "$(time_of "$(got 1 1)")" '' 'qadd + 2 ms'
	say '... p99' "$(time_of "$(sed -n "$((n * 99 / 100 + 1))p" sorted)")" "($n of $rounds handlers)" '' '' ''
}

row_payload() {
	fresh q.db s.db
	head -c 100 /dev/zero | tr '\0' x >x100
	head -c 10240 /dev/zero | tr '\0' x >x10240
	head -c 1048576 /dev/zero | tr '\0' x >x1048576
	for n in 10240 1048576; do
		[ $n = 10240 ] && what='10 KB' || what='1 MB'
		pair "add of $what" '' 'of 100 B' sh -c "exec qadd -q -d q.db q - <x$n" :: sh -c 'exec qadd -q -d s.db q - <x100'
		pair "claim of $what" '' 'of 100 B' qclaim -d q.db q :: qclaim -d s.db q
		say '... its memory, the file' "$(calc '%.1f MiB' "$(got 1 3) / 1024")" 'of 100 B' "$(calc '%.1f MiB' "$(got 2 3) / 1024")" '' "$(du -m q.db | cut -f1) MiB"
	done
}

row_flat() {
	n=$((jobs / 1000000))
	fresh empty.db old.db late.db entity.db queues.db keys.db
	qclaim -d entity.db q		# notes the boot, else the first claim would end the lease below
	fill empty.db "$(ready 50000)"
	fill old.db "INSERT INTO q_job(queue,event_ms,due_ms,state,fence,added_ms,claimed_ms,finished_ms,last_attempt)
		SELECT 'q',n,n,'done',1,n,n,n,n FROM N($jobs)" \
		"INSERT INTO q_attempt(job,generation,attempt,fence,queue,type,due_ms,started_ms,finished_ms,outcome,state)
		SELECT n,1,1,1,'q','',n,n,n,'done','done' FROM N($jobs)" \
		"INSERT INTO q_count VALUES('q','done',$jobs)" "$(ready 15000)"
	fill late.db "INSERT INTO q_job(queue,priority,event_ms,due_ms,ready_ms,added_ms)
		SELECT 'q',0,t+n,t+n,t+n,1 FROM (SELECT 9000000000000 AS t),N(1000000)" "$(ready 15000)"
	fill entity.db "INSERT INTO q_job(queue,entity,head,priority,state,event_ms,due_ms,lease_ms,nonce,fence,added_ms,claimed_ms)
		VALUES('q','e',1,0,'claimed',0,0,9000000000000,1,1,1,1)" \
		"INSERT INTO q_job(queue,entity,priority,event_ms,due_ms,added_ms) SELECT 'q','e',0,n,n,1 FROM N(100000)" "$(ready 15000)"
	fill queues.db "INSERT INTO q_job(queue,event_ms,due_ms,ready_ms,added_ms) SELECT 'other-'||(n%1000),n,n,n,1 FROM N(100000)" "$(ready 15000)"
	fill keys.db "INSERT INTO q_key SELECT 'q','key-'||(n*7919%$jobs),n,9223372036854775807 FROM N($jobs)" "$(ready 15000)"
	[ "$n" = 1 ] && many='1 M' || many="$n M"
	for f in old late entity queues keys; do
		case $f in
		old) what="$many finished jobs" ;;
		late) what='1 M delayed, better priority' ;;
		entity) what='100,000 behind one entity' ;;
		queues) what='1,000 other queues x 100' ;;
		keys) what="$many remembered keys" ;;
		esac
		pair "add beside $what" '~ 1' 'beside none' qadd -d $f.db q "$PAYLOAD" :: qadd -d empty.db q "$PAYLOAD"
		pair "claim beside $what" '~ 1' 'beside none' qclaim -d $f.db q :: qclaim -d empty.db q
		rate "work beside $what" '>= 0.85' 'beside none, one commit, libq' 500 500 -n "$((few * 3))" \
			./clock jobs -n 500 $f.db q one :: ./clock jobs -n 500 empty.db q one
		say '... its memory, the file' "$(calc '%.1f MiB' "$(got 1 3) / 1024")" 'beside none' "$(calc '%.1f MiB' "$(got 2 3) / 1024")" '' "$(du -m $f.db | cut -f1) MiB"
	done
	seq "$((4 * rounds))" >some-keys
	pair "add of a new key beside $many" '~ 1' 'beside none' -a some-keys qadd -d keys.db -k @ q "$PAYLOAD" :: qadd -d empty.db -k @ q "$PAYLOAD"
}

row_limits() {
	fresh free.db limited.db shared.db
	fill free.db "$(ready 50000)"
	fill limited.db "$(ready 20000)"
	fill shared.db "$(ready 20000)"
	qset -d limited.db queue.q.rate=1000000/s+1000000 queue.q.concurrency=1000
	qset -d shared.db queue.q.limit=p rate.p=1000000/s+1000000 rate.p.concurrency=1000
	for f in limited shared; do
		[ $f = limited ] && what='its own rate and cap' || what='a shared rate and cap'
		pair "claim under $what" '<= 1.20' 'without' qclaim -d $f.db q :: qclaim -d free.db q
		for b in 1 10; do
			rate "work under $what, $b a commit" '>= 0.83' 'without' 500 500 -n "$((few * 5))" \
				./clock jobs -n 500 -b $b $f.db q one :: ./clock jobs -n 500 -b $b free.db q one
		done
	done
}

# A thousand pages of 100 items from a server of this machine, as jobs, against fetching them alone.
row_poll() {
	[ -x "$top/t/serve" ] && has curl && has qpoll || { say 'qpoll: 100,000 items' - 'curl and t/serve' - - ''; return; }
	"$top/t/serve" >port &
	holder=$!
	while [ ! -s port ]; do sleep 0.1; done
	url=http://127.0.0.1:$(cut -d' ' -f1 port)
	seq 100001 200000 | sed 's/.*/{"id":"r&","stamp":1700&000}/; 1s/^/[/; $!s/$/,/; $s/$/]/' | "$top/t/serve" "$url/_set" - >/dev/null
	cat >poll.json <<-END
		{"name": "p", "url": "$url/items", "insecure_http": true, "query": {"since": "{cursor}", "limit": 100},
		 "items": "/items", "id": "/id", "cursor": "/updated_at", "order": "asc", "next": "link", "start": "all",
		 "max_pages": 100000, "queue": "p"}
	END
	seq 0 100 99999 | sed "s|.*|url=\"$url/items?order=asc\&limit=100\&offset=&\"\noutput=/dev/null|" >pages
	turn -n 3 sh -c 'rm -f p.db*; qinit p.db; exec qpoll -d p.db poll.json' :: curl -s -K pages
	say 'qpoll: 1,000 pages, 100,000 jobs' "$(time_of "$(got 1 1)")" 'one curl that fetches them' "$(time_of "$(got 2 1)")" \
		"$(calc %.2f "1 / $(got 2 2)")" '<= 1.50'
	turn -n 3 sh -c 'rm -f p.db*; qinit p.db; exec qpoll -d p.db poll.json' :: \
		sh -c 'seq 0 100 9999 | while read -r n; do curl -s -o /dev/null "$0/items?order=asc&limit=100&offset=$n"; done' "$url"
	say '... a page' "$(calc '%.2f ms' "$(got 1 1) / 1000")" 'a curl for each page' "$(calc '%.2f ms' "$(got 2 1) / 100")" \
		"$(calc %.2f "$(got 1 1) / $(got 2 1) / 10")" ''
	pair 'qpoll: nothing new' '' 'curl, once' qpoll -d p.db poll.json :: curl -s -o /dev/null "$url/items?since=2030-01-01T00:00:00Z"
	kill "$holder"
	holder=
}

# Signed events of 2 KB by 32 senders at once, beside 1,000 connections that say nothing; the peer is the same program with
# a commit for each request.
row_hook() {
	[ -x hook ] && [ -x qhook-one ] || { say 'qhook: 32 senders' - 'one commit a request' - - '>= 5'; return; }
	(umask 077; echo 'a secret of the bench' >key)
	echo '/gh github key queue=q' >hooks
	rm -f ours theirs
	for round in $(seq "$few"); do
		: "$round"
		hook_round qhook 200 >>ours
		hook_round ./qhook-one 20 >>theirs
	done
	say 'qhook: 32 senders' "$(rate_of 6400 "$(middle ours 1)")" 'one commit a request' "$(rate_of 640 "$(middle theirs 1)")" \
		"$(calc %.2f "6400 / $(middle ours 1) / (640 / $(middle theirs 1))")" '>= 5'
	say '... 99th percentile' "$(time_of "$(middle ours 3)")" 'one commit a request' "$(time_of "$(middle theirs 3)")" \
		"$(calc %.2f "$(middle ours 3) / $(middle theirs 3)")" '< 10 ms'
	say '... median' "$(time_of "$(middle ours 2)")" '' "$(time_of "$(middle theirs 2)")" '' ''
	awk '$5 > 0 { print "run: " $5 " events were not taken" }' ours theirs >&2
}

# PROGRAM N: a line of hook, N events a sender
hook_round() {
	fresh hook.db
	rm -f port
	"$1" -q -d hook.db -L 127.0.0.1:0 hooks >port &
	holder=$!
	while [ ! -s port ]; do sleep 0.1; done
	./hook "$(sed 's/.*://' port)" /gh 'a secret of the bench' 32 "$2" 2048 1000
	kill "$holder"
	wait "$holder" || :
	holder=
}

row_memory() {
	fresh q.db s.db
	seq -f 'a payload that is a little longer than a number, %.0f' 1000000 >million
	head -n 10000 million >some
	turn -n 1 sh -c "$(bulk q.db --lines million)" :: sh -c "$(bulk s.db --lines some)"
	say 'memory: bulk add of 1,000,000 lines' "$(calc '%.1f MiB' "$(got 1 3) / 1024")" 'of 10,000 lines' \
		"$(calc '%.1f MiB' "$(got 2 3) / 1024")" '' 'constant'
	turn -n 1 qls -d q.db :: qls -d s.db
	say 'memory: qls of 1,000,000 jobs' "$(calc '%.1f MiB' "$(got 1 3) / 1024")" 'of 10,000 jobs' \
		"$(calc '%.1f MiB' "$(got 2 3) / 1024")" '' 'constant'
	say 'qls, a job' "$(calc '%.2f us' "$(got 1 1) / 1000")" 'of 10,000 jobs' "$(calc '%.2f us' "$(got 2 1) / 10")" \
		"$(calc %.2f "$(got 1 1) / $(got 2 1) / 100")" '~ 1'
}

# A month of attempts in 40 groups, against SQL that finds the same percentiles of lateness, and against SQL that only adds it up.
row_report() {
	n=$((jobs / 1000000))
	[ "$n" = 1 ] && many='1 M' || many="$n M"
	fresh report.db
	fill report.db "INSERT INTO q_attempt(job,generation,attempt,fence,queue,type,due_ms,started_ms,finished_ms,outcome,state)
		SELECT n,1,1,1,'queue'||(n%10),'t'||(n/10%4),s-n*7919%99991,s,s+50,'done','done'
		FROM (SELECT n,1780000000000+n*2592000000/$jobs AS s FROM N($jobs))"
	export Q_NOW=@1782592001
	turn -n "$few" qlate -d report.db --types --since 31d :: sqlite3 report.db "WITH v AS (SELECT queue, type, started_ms - due_ms AS late,
		row_number() OVER w AS k, count(*) OVER (PARTITION BY queue, type) AS n FROM q_attempt WINDOW w AS (PARTITION BY queue, type ORDER BY started_ms - due_ms))
		SELECT queue, type, min(late) FILTER (WHERE k * 100 >= n * 50), min(late) FILTER (WHERE k * 100 >= n * 95),
		min(late) FILTER (WHERE k * 100 >= n * 99), max(late) FROM v GROUP BY 1, 2"
	say "qlate over $many attempts, 40 groups" "$(time_of "$(got 1 1)")" 'sqlite3, the percentiles alone' "$(time_of "$(got 2 1)")" \
		"$(calc %.2f "1 / $(got 2 2)")" '<= 0.12'
	say '... its memory' "$(calc '%.1f MiB' "$(got 1 3) / 1024")" '' '' '' '16 B an attempt'
	turn -n "$few" qlate -d report.db --types --since 31d :: sqlite3 report.db 'SELECT sum(started_ms - due_ms) FROM q_attempt'
	say '... beside one sum of them' "$(time_of "$(got 1 1)")" 'sqlite3' "$(time_of "$(got 2 1)")" "$(calc %.2f "1 / $(got 2 2)")" '<= 1.50'
	turn -n "$rounds" qlate -d report.db --check :: qlate -d report.db --version
	say "qlate --check beside $many attempts" "$(time_of "$(got 1 1)")" 'qlate --version' "$(time_of "$(got 2 1)")" '' '< 50 ms'
	unset Q_NOW
}
