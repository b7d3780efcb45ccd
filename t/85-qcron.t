#!/bin/sh
# qcron: each due slot becomes a job, once, whoever passes, and is killed, and whatever the clock does.
# shellcheck disable=SC2016	# what stands between single quotes is for another shell or perl
. "${0%/*}/lib.sh"
[ -e /usr/share/zoneinfo/Europe/Berlin ] || skip_all 'no time zones on this system: install tzdata'

fresh() { rm -f q.db*; qinit; }
at() { Q_NOW=2026-06-$1:00Z; export Q_NOW; }	# DDTHH:MM
pass() { at "$1"; shift; qcron "$@" table; }
keys() { sql "SELECT group_concat(key, ' ') FROM (SELECT key FROM q_job ORDER BY id)"; }
marks() { sql "SELECT group_concat(id || ' ' || strftime('%dT%H:%M', mark_ms / 1000, 'unixepoch'), ', ') FROM (SELECT * FROM q_cron ORDER BY id)"; }
counts() { sql "SELECT missed || ' ' || overlapped FROM q_cron WHERE id = '$1'"; }

# ---- a job and its slot ----

fresh
echo 'nightly 30 2 * * * tz=Europe/Berlin jitter=20m reports {"a":1}' >table
at 01T22:00
exits 0 'the first pass' qcron -v table
is "$(cat out err)" 'qcron: nightly: 2026-06-01T22:00:00Z: new, its slots count from here' '... fires nothing'
is "$(sql 'SELECT count(*) FROM q_job')" 0 '... and adds nothing'
pass 02T00:29
is "$(keys)" '' 'a minute before the slot'
exits 0 'a pass after it' env Q_NOW=2026-06-02T00:30:17.5Z qcron -v table
is "$(cat out err)" 'qcron: nightly: 2026-06-02T00:30:00Z: job 1' '... tells its job'
is "$(sql "SELECT queue, type, key, entity IS NULL, priority, state, zone, datetime(event_ms / 1000, 'unixepoch'), attempts IS NULL, added_ms - event_ms, body
    FROM q_job j JOIN q_body b ON b.job = j.id")" \
    'reports|nightly|nightly/2026-06-02T00:30:00Z|1|5|pending|Europe/Berlin|2026-06-02 00:30:00|1|17500|{"a":1}' '... which is that of the slot'
late=$(sql 'SELECT due_ms - event_ms FROM q_job')
[ "$late" -gt 0 ] && [ "$late" -lt 1200000 ]; ok $? "... due by a jitter ($late ms)"
is "$(qcron -n 2026-06-02T00:00:00Z 2026-06-03T00:00:00Z -j table | jq -c '[.id, .queue, .key, .slot_at, .slot_ms, .zone, .local_at, .due_ms]')" \
    "[\"nightly\",\"reports\",\"nightly/2026-06-02T00:30:00Z\",\"2026-06-02T00:30:00Z\",1780360200000,\"Europe/Berlin\",\"2026-06-02T02:30:00+02:00\",$((1780360200000 + late))]" \
    '... that a dry run shows as well'
unchanged 0 'the same pass again' env Q_NOW=2026-06-02T00:30:17.5Z qcron -v table
is "$(cat out err)" '' '... is silent'
exits 0 'the handler' env Q_NOW=2026-06-02T01:00:00Z qwork reports -- sh -c 'echo "$Q_TYPE $Q_KEY $Q_EVENT_TIME" >seen; cat >>seen'
is "$(cat seen)" 'nightly nightly/2026-06-02T00:30:00Z 2026-06-02T00:30:00.000Z
{"a":1}' '... knows entry and slot'
at 02T12:00
is "$(qcron --next -c 2 table)" "$(printf '2026-06-03T00:30:00Z\t2026-06-03T02:30:00+02:00\tnightly\n2026-06-04T00:30:00Z\t2026-06-04T02:30:00+02:00\tnightly')" '--next'
printf 'b 0 12 * * * tz=America/New_York q\na @every 6h q\nc @after 5m q\n' >table
exits 0 'a dry run' qcron -n 2026-06-02T12:00:00Z 2026-06-03T00:00:00Z table
is "$(cat out)" "$(printf '2026-06-02T12:00:00Z\t2026-06-02T12:00:00+00:00\ta\n2026-06-02T16:00:00Z\t2026-06-02T12:00:00-04:00\tb\n2026-06-02T18:00:00Z\t2026-06-02T18:00:00+00:00\ta')" \
    '... prints slots in order, from FROM up to TO'
is "$(cat err)" 'qcron: c: @after: its slots follow its runs, and are not known before' '... and tells what it cannot'
[ ! -w /dev/full ] || { exits 74 'a full output' sh -c 'qcron --next table >/dev/full'; }

# ---- the newest is what waits, whatever is to be retried ----

fresh
echo 'r */5 * * * * overlap=replace w' >table
pass 02T10:00
pass 02T10:05
claim=$(qclaim w | claim_of)
pass 02T10:10
qfail --in 1h -m down "$claim"
pass 02T10:15
is "$(sql 'SELECT id, state, head FROM q_job')" '1|cancelled|
2|cancelled|
3|pending|1' 'a job that is retried does not stand in the way of the newest'

# ---- an outage from 01:50 to 05:10 ----

fresh
cat >table <<'END'
h-last 30 * * * * w
h-skip 30 * * * * missed=skip w
h-all2 30 * * * * missed=all:2 overlap=allow w
h-all9 30 * * * * missed=all:9 overlap=allow w
h-late 30 * * * * missed=all:9 late=2h overlap=allow w
n-last 30 2 * * * w
n-late 30 2 * * * late=2h w
n-skip 30 2 * * * missed=skip w
t-skip */10 * * * * missed=skip w
every @every 30m w
after @after 30m w
END
pass 02T01:45
pass 02T01:50
qwork w -- true
at 02T05:10
qcron table
exits 0 'after the outage' qwork w -- true
is "$(sql "SELECT type || ' ' || group_concat(slot, ' ') FROM (SELECT type, strftime('%H:%M', event_ms / 1000, 'unixepoch') slot FROM q_job
    WHERE added_ms = 1780377000000 ORDER BY type, event_ms) GROUP BY type")" 'after 02:15
every 05:00
h-all2 03:30 04:30
h-all9 02:30 03:30 04:30
h-last 04:30
h-late 03:30 04:30
n-last 02:30
t-skip 05:10' 'the slots that have jobs are those of the page'
is "$(qlate --types -j --since 2h | jq -r '[.type, .done, (.late_max_ms / 60000)] | join(" ")')" 'after 1 175
every 1 10
h-all2 2 100
h-all9 3 160
h-last 1 40
h-late 2 100
n-last 1 160
t-skip 1 0' '... and are late by the time since the slot'
is "$(sql "SELECT group_concat(id || ' ' || missed, ', ') FROM (SELECT * FROM q_cron ORDER BY id)")" \
    'after 0, every 6, h-all2 1, h-all9 0, h-last 2, h-late 1, h-skip 3, n-last 0, n-late 1, n-skip 1, t-skip 19' '... what was dropped is counted'
fresh
pass 02T01:45
at 02T05:10
is "$(qcron -v table 2>&1 | grep -E '^qcron: (h-(last|skip)|n-late):')" 'qcron: h-last: 2026-06-02T02:30:00Z: missed, and 1 after it
qcron: h-last: 2026-06-02T04:30:00Z: job 1
qcron: h-skip: 2026-06-02T02:30:00Z: missed, and 2 after it
qcron: n-late: 2026-06-02T02:30:00Z: missed' '... and told'

# ---- overlap ----

fresh
printf 's */5 * * * * q\nr */5 * * * * overlap=replace q\n' >table
pass 02T12:00
pass 02T12:05
at 02T12:10
is "$(qcron -v table 2>&1)" 'qcron: s: 2026-06-02T12:10:00Z: dropped, job 1 is not settled
qcron: r: 2026-06-02T12:10:00Z: replaces job 2
qcron: r: 2026-06-02T12:10:00Z: job 3' 'jobs that wait'
is "$(qls --state all | cut -f1,3,6)" "$(printf '1\tpending\ts/2026-06-02T12:05:00Z\n3\tpending\tr/2026-06-02T12:10:00Z\n2\tcancelled\tr/2026-06-02T12:05:00Z')" '... one stays, one is replaced'
qclaim -c 2 q >claims
qfail - <claims
pass 02T12:15
is "$(sql 'SELECT group_concat(state) FROM q_job')" 'failed,cancelled,cancelled,pending' 'jobs that are to be retried are not settled either'
qclaim -l 1h -c 2 q >claims
is "$(wc -l <claims)" 2 '... both run'
pass 02T12:20
is "$(counts s), $(counts r)" '0 3, 0 2' '... what runs is not cancelled'
is "$(qls -j q | jq -r 'select(.state == "pending") | "\(.key) behind \(.blocked_by)"')" 'r/2026-06-02T12:20:00Z behind 4' '... and the next waits for it'
qfail --dead - <claims
pass 02T12:25
is "$(keys | tr ' ' '\n' | tail -n 2 | tr '\n' ' ')" 's/2026-06-02T12:25:00Z r/2026-06-02T12:25:00Z ' 'a dead job is settled'

# ---- @after ----

fresh
echo 'a @after 5m jitter=0 q' >table
pass 02T12:00
pass 02T12:04
is "$(keys)" '' '@after: not before its delay'
pass 02T12:06
is "$(keys)" 'a/2026-06-02T12:05:00Z' '... counted from the first pass'
for how in qdone 'qfail --dead' qcancel; do
	id=$(sql 'SELECT max(id) FROM q_job') n=$((id * 20))
	Q_NOW=2026-06-03T$((10 + id)):00:00Z; export Q_NOW
	qcron table
	is "$(sql 'SELECT max(id) FROM q_job')" "$id" '... none while the last is open'
	if [ "$how" = qcancel ]; then qcancel -q "$id"
	else Q_NOW=2026-06-03T$((10 + id)):00:00.250Z $how "$(qclaim -l 1h q | claim_of)"; fi
	Q_NOW=2026-06-03T$((10 + id)):05:00Z qcron table
	is "$(sql 'SELECT max(id) FROM q_job')" "$([ "$how" = qcancel ] && echo $((id + 1)) || echo "$id")" "... nor within its delay of $how"
	Q_NOW=2026-06-03T$((10 + id)):05:01Z qcron table
	is "$(sql 'SELECT max(id) FROM q_job')" $((id + 1)) "... but after it"
done
is "$(keys)" 'a/2026-06-02T12:05:00Z a/2026-06-03T11:05:01Z a/2026-06-03T12:05:01Z a/2026-06-03T13:05:00Z' '... in whole seconds, rounded up'
qreplay -q 3
Q_NOW=2026-06-03T15:00:00Z; export Q_NOW
qcancel -q 4
qcron table
is "$(sql 'SELECT max(id) FROM q_job')" 4 'after the last one alone: that was just cancelled'

# ---- what changes in a table ----

fresh
echo 'a 30 * * * * q one' >table
pass 02T12:00
pass 02T12:31
qwork q -- true
echo 'a 45 * * * * q one' >table
pass 02T13:50
is "$(keys)" 'a/2026-06-02T12:30:00Z' 'a new schedule: nothing fires at once'
pass 02T14:50
qwork q -- true
is "$(keys)" 'a/2026-06-02T12:30:00Z a/2026-06-02T14:45:00Z' '... then it does'
echo 'a 45 * * * * tz=Asia/Kolkata q one' >table
pass 02T15:50
is "$(keys | wc -w)" 2 'a new zone: the same'
echo 'a 45 * * * * tz=Asia/Kolkata missed=skip late=20m overlap=allow p two' >table
pass 02T16:20
is "$(sql "SELECT queue || ' ' || key || ' ' || body FROM q_job j JOIN q_body b ON b.job = j.id WHERE j.id = 3")" 'p a/2026-06-02T16:15:00Z two' 'another queue, payload and policy: it goes on'
mkdir moved && mv table moved
at 02T17:20
qcron moved/table
is "$(keys | wc -w)" 4 '... as in another file'
mv moved/table .

fresh
printf 'a 30 * * * * q\nb @daily q\nc @after 1h q\n' >table
pass 02T12:00
echo 'b @daily q' >table
pass 02T12:10
pass 02T13:40
printf 'a 30 * * * * q\nb @daily q\nc @after 1h q\n' >table
at 02T14:31
is "$(qcron -v table 2>&1)" 'qcron: a: 2026-06-02T14:31:00Z: back, its slots count from here
qcron: a: 2026-06-02T14:30:00Z: job 1
qcron: c: 2026-06-02T14:31:00Z: back, its slots count from here' 'an entry that was out of the table: what it missed meanwhile is not owed'
is "$(marks)" 'a 02T14:31, b 02T14:31, c 02T14:31' '... and has the mark of the others'
is "$(counts a)" '0 0' '... nor counted'
pass 02T15:32
is "$(keys)" 'a/2026-06-02T14:30:00Z c/2026-06-02T15:31:00Z' '... an @after counts anew'
: >table
unchanged 0 'an empty table' qcron table

fresh
printf 'a 0 * * * * q\n' >one
printf 'a 30 * * * * q\n' >two
at 02T12:00
qcron one
exits 0 'the ID in two tables' qcron two
is "$(cat err)" 'qcron: two:1: a has changed twice within 5 minutes, and begins anew each time; is there one in another table?' '... is told'
printf 'a 0 * * * * q\nb 0 * * * * q\n' >one
printf 'd 30 * * * * q\nc 0 * * * * q\n' >two
fresh
qcron one; Q_NOW=2026-06-02T12:00:30Z qcron two
Q_NOW=2026-06-02T12:40:00Z qcron one
printf 'a 0 * * * * q\n' >one
printf 'b 0 * * * * q\nd 30 * * * * q\nc 0 * * * * q\n' >two
at 02T13:00
qcron one; qcron two
is "$(keys)" 'a/2026-06-02T13:00:00Z b/2026-06-02T13:00:00Z d/2026-06-02T12:30:00Z c/2026-06-02T13:00:00Z' 'an entry that moves to another table loses nothing, nor do the others there'

# ---- the clock ----

fresh
echo 'a */5 * * * * overlap=allow q' >table
pass 02T12:00
pass 02T12:12
is "$(marks) $(keys)" 'a 02T12:12 a/2026-06-02T12:10:00Z' 'a pass'
exits 0 'a clock that is minutes behind' pass 02T12:07
is "$(cat out err)" '' '... is silent'
exits 0 '... and one that is more' pass 02T11:52
is "$(cat out err)" 'qcron: the last pass was at 2026-06-02T12:12:00Z, which is yet to come: slots up to then are decided; if the clock is right now, next: qcron --force' '... tells that nothing comes'
exits 0 'hours' pass 01T13:00
exits 0 '... and back' pass 02T12:12
is "$(marks) $(keys)" 'a 02T12:12 a/2026-06-02T12:10:00Z' 'a clock that is set back: nothing happens'
pass 02T12:16
is "$(keys)" 'a/2026-06-02T12:10:00Z a/2026-06-02T12:15:00Z' '... until it has caught up'
unchanged 75 'more than a day back' env Q_NOW=2026-06-01T12:00:00Z qcron table
is "$(cat err)" 'qcron: the clock is 1d00h behind the last pass, 2026-06-02T12:16:00Z; nothing was done; if it is right, next: qcron --force' '... is told'
exits 0 '... unless it is said to be right' env Q_NOW=2026-06-01T12:00:00Z qcron --force table
is "$(marks)" 'a 01T12:00' '... then it goes on from there'
pass 02T12:16
is "$(keys)" 'a/2026-06-02T12:10:00Z a/2026-06-02T12:15:00Z' '... and a slot that has a job gets no other'
unchanged 75 'more than 31 days ahead' env Q_NOW=2026-07-03T12:16:01Z qcron table
is "$(cat err)" 'qcron: the clock is 31d00h ahead of the last pass, 2026-06-02T12:16:00Z; nothing was done; if it is right, next: qcron --force' '... is told'
echo 'new */5 * * * * q' >>table
unchanged 75 '... also if one is new' env Q_NOW=2026-07-03T12:16:01Z qcron table
exits 0 '... unless the machine was off' env Q_NOW=2026-07-03T12:16:01Z qcron --force table
is "$(keys | tr ' ' '\n' | tail -n 1) $(counts a)" 'a/2026-07-03T12:15:00Z 9218 0' '... then the newest of what it missed has a job'
exits 0 '31 days ahead' env Q_NOW=2026-08-03T12:16:01Z qcron table
like "$(qcron -V)" '^qcron \(q\)' 'the version'

# ---- many at once, killed, busy, full ----

fresh
many() { perl -e 'printf "e%02d */5 * * * * missed=all:$ARGV[0] overlap=allow q\n", $_ for 1 .. 20' "$1" >table; }
eight() { perl -e 'for (1 .. 8) { my $p = fork // die; exec "qcron", "table" if !$p } $n += wait > 0 && $? == 0 for 1 .. 8; exit($n != 8)'; }
many 20
at 02T12:00
eight; ok $? '8 first passes at once succeed'
is "$(sql 'SELECT count(*) FROM q_cron')" 20 '... each entry is known once'
at 02T14:03
eight; ok $? '8 passes at once over a backlog succeed'
is "$(sql 'SELECT count(*), count(DISTINCT key), min(event_ms) / 1000, max(event_ms) / 1000 FROM q_job')" '400|400|1780403100|1780408800' '... each slot has one job'
is "$(sql "SELECT count(*) FROM q_cron WHERE missed = 4 AND mark_ms = 1780408980000")" 20 '... and is counted once if it has none'
many 60			# more than there are slots, since all of them may be killed
# killed at any instant, by a clock that goes on
perl -e '
	my ($rounds, $killed, $s) = (25, 0, 1780408980);
	for my $i (1 .. $rounds) {
		$ENV{Q_NOW} = "@" . ($s += 600);
		my $p = fork // die;
		exec "qcron", "table" if !$p;
		select undef, undef, undef, rand 0.02;
		kill 9, $p;
		wait;
		$killed++ if $?;
	}
	$ENV{Q_NOW} = "@" . ($s += 600);
	system "qcron", "table";
	print "# killed: $killed of $rounds\n";
	exit($? != 0)'
ok $? 'a pass after many that were killed'
is "$(sql 'SELECT count(*) = count(DISTINCT key), count(*), max(event_ms) / 1000 FROM q_job')" "1|$((400 + 20 * 52))|1780424400" '... and each slot has one job still'
sql 'PRAGMA integrity_check' >check
is "$(cat check)" ok '... in a sound file'

fresh
echo 'a */5 * * * * q' >table
pass 02T12:00
at 02T12:05
mkfifo fifo
{ echo 'BEGIN IMMEDIATE; SELECT 1;'; cat fifo; } | sqlite3 q.db >held &
exec 9>fifo
until_ok test -s held
exits 75 'a busy file' env Q_BUSY_TIMEOUT=50ms qcron table
like "$(cat err)" '^qcron: .*busy' '... is told'
exec 9>&-
wait
is "$(marks) $(keys)" 'a 02T12:00 ' '... and the mark stays'
if [ "$(id -u)" != 0 ]; then
	chmod 0444 q.db
	exits 77 'a file that may not be written' qcron table
	chmod 0600 q.db
fi
(ulimit -f 0; qcron table >out 2>err); rc=$?
[ $rc -ne 0 ]; ok $? "a disk that takes nothing ($rc)"
is "$(marks) $(keys)" 'a 02T12:00 ' '... the mark stays'
exits 0 'then' qcron table
is "$(marks) $(keys)" 'a 02T12:05 a/2026-06-02T12:05:00Z' '... nothing was lost'

# ---- a thousand ----

fresh
perl -e 'printf "e%04d %d %d * * %s tz=%s jitter=1h q {\"n\":%d}\n", $_, $_ % 60, $_ % 24, $_ % 3 ? "*" : "1-5", (qw(Europe/Berlin America/New_York Asia/Kolkata UTC))[$_ % 4], $_ for 1 .. 1000' >table
pass 02T12:00
pass 03T12:00
is "$(sql 'SELECT count(*), count(DISTINCT type) FROM q_job')" '1000|1000' 'a thousand entries, a day later'
perl -e 'my @t = (times)[2, 3]; system "qcron", "table"; my @u = (times)[2, 3]; printf "# a pass takes %.0f ms\n", 1000 * ($u[0] + $u[1] - $t[0] - $t[1])'
done_testing
