#!/bin/sh
# qlate: targets and burn rates, why work waits, parts of the window, histogram, trend and picture, tables of 80 and 120 columns.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000
unset COLUMNS LANG LC_CTYPE

noon=1780401600000
fresh() { rm -f q.db*; qinit "$@"; }
write() { printf '%s\n' 'PRAGMA wal_autocheckpoint=0; BEGIN;' "$1" ';COMMIT;' | sqlite3 -bail q.db >made; }
# ledger: a line "N QUEUE TYPE AGO LATE [RUN [OUTCOME STATE [ATTEMPT]]]": N attempts that ended AGO before noon, LATE after they were due; ms
ledger() {
	awk -v n=$noon -v q="'" '
		{ f = n - $4; r = $6 == "" ? 10 : $6; s = f - r; o = $7 == "" ? "done" : $7; st = $8 == "" ? "done" : $8; a = $9 == "" ? 1 : $9
		for (i = 0; i < $1; i++)
			printf "INSERT INTO q_attempt(job, generation, attempt, fence, queue, type, due_ms, started_ms, finished_ms, outcome, state) " \
			    "VALUES(%d, 1, %d, 1, %s, %s, %.0f, %.0f, %.0f, %s, %s);\n", NR, a, q $2 q, q ($3 == "-" ? "" : $3) q, s - $5, s, f, q o q, q st q }' >ledger.sql
	write "$(cat ledger.sql)"
}
slo() { qlate -j "$@" | jq -r '[.slo // "-", .late // "-", .target_count // "-", .ontime_percent // "-", .burn_1h // "-", .burn_6h // "-"] | map(tostring) | join(" ")'; }
why() { qlate -j "${1-q}" | jq -r '.why // "-"'; }
terminal() { script -qec "stty cols $1 rows 50; $2" /dev/null </dev/null | tr -d '\r'; }

# ---- usage ----

fresh
exits 64 'two outputs' qlate --check --prom
is "$(cat err)" "qlate: --by, --hist, --svg, --prom and --check go one at a time; see 'qlate --help'" '... is told'
while IFS=@ read -r args with; do
	# shellcheck disable=SC2086	# words
	exits 64 "qlate $args" qlate $args
	is "$(cat out err)" "qlate: $with; see 'qlate --help'" '... would not heed one of them'
done <<'END'
--wide -j@--wide goes with a table for people alone
--wide --check@--wide goes with a table for people alone
--types --check@--types goes with a table or --svg
--types --hist q@--types goes with a table or --svg
--tz UTC -j@--tz goes with a table for people, --by or --hist
--tz UTC --svg -@--tz goes with a table for people, --by or --hist
--since 1h --prom@--since goes with a table, --hist or --svg
--since 1h --check@--since goes with a table, --hist or --svg
END
exits 64 'a part that is none' qlate --by week
is "$(cat err)" "qlate: --by: 'week' is not hour or day; see 'qlate --help'" '... is told'
exits 64 'a zone that is none' qlate --by day --tz Mars/Olympus
exits 64 'too many parts' qlate --by hour --since 3650d
exits 64 'JSON of a histogram' qlate -j --hist q
exits 64 'a histogram of two' qlate --hist q r
exits 65 '... of a queue that cannot be' qlate --hist 'a b'
exits 65 '... of a type that cannot be' qlate --hist q/
exits 64 '-o alone' qlate -o file
exits 64 '--every alone' qlate --check --every 1h
exits 64 '--id alone' qlate --check --id me
exits 64 '... of no letters' qlate --check --every 1h --id ''
exits 64 '--every without its unit' qlate --check --every 5 --id me
exits 64 '--prom of a queue' qlate --prom mail
exits 73 'a picture where there is no folder' qlate --svg none/a.svg

# ---- rules, by themselves ----

unit=$t/unit-late
[ -x "$unit" ] || make -s -C "$t/.." t/unit-late >made 2>&1 || cat made
while IFS='|' read -r call want; do
	# shellcheck disable=SC2086
	is "$("$unit" $call)" "$want" "$call: $want"
done <<'END'
slo 30s/99%|30000 990000
slo 1h30m/99.95%|5400000 999500
slo 500ms/0.5%|500 5000
slo 1s/99.99999%|1000 999999
slo 1s/0.00001%|1000 1
slo 0s/99%|none
slo 1s/100%|none
slo 1s/0%|none
slo 1s|none
slo /99%|none
burning 1s/99% 3d 144/1000 0/0 144/1000 0/0 0/0|1h
burning 1s/99% 3d 143/1000 0/0 144/1000 0/0 0/0|none
burning 1s/99% 3d 144/1000 0/0 143/1000 0/0 0/0|none
burning 1s/99% 3d 0/9 6/100 9/1000 60/1000 0/0|6h
burning 1s/99% 3d 0/9 5/100 9/1000 60/1000 0/0|none
burning 1s/99% 3d 0/9 6/100 9/1000 59/1000 0/0|none
burning 1s/99% 3d 0/9 0/9 0/9 10/1000 10/1000|3d
burning 1s/99% 6h 0/9 0/9 0/9 10/1000 10/1000|none
burning 1s/99% 3d 0/9 0/9 0/9 9/1000 10/1000|none
burning 1s/99% 3d 0/9 0/9 0/9 10/1000 10/1001|none
burning 1s/99% 3d 2/2 2/2 2/2 2/2 2/2|none
burning 1s/99% 3d 3/3 3/3 3/3 3/3 3/3|1h
burning 1s/99% 3d 1/1 1/1 3/20 3/20 3/20|1h
burning 1s/99.9% 3d 1/1 1/1 3/60 3/60 3/60|1h
burning 1s/99.9% 3d 1/1 1/1 3/61 3/61 3/61|none
burning 1s/99.9% 3d 1/1 1/1 10/600 10/9999 10/999999|1h
burning 1s/90% 3d 11/100 0/0 11/100 0/0 0/0|1h
burning 1s/90% 3d 10/100 0/0 11/100 0/0 0/0|none
burning 1s/90% 3d 0/9 11/100 0/9 11/100 0/0|none
burning 1s/90% 3d 0/9 60/100 0/9 60/100 0/0|6h
burning 1s/80% 3d 0/9 21/100 0/9 21/100 0/0|6h
burning 1s/99% 3d 0/0 0/0 0/0 0/0 0/0|none
trend ascii 60 0 9 10 20 30 40 50 59 60 61 -1|__.:+=***#-
trend utf8 70 0 10 20 30 40 50 60 70 71 -1|▁▂▃▄▅▆▇▇█-
trend ascii -1 0 10 60 30 -1|_.#+-
trend ascii -1 0 0|__
trend ascii -1 -1 -1|--
END

# ---- targets ----

# 100 attempts of the last minute: what the target says, what is late, what is said.
while IFS='|' read -r target ledger want; do
	fresh
	qset "queue.q.slo=$target"
	printf '%s\n' "$ledger" | tr ';' '\n' | ledger
	is "$(slo q)" "$want" "$target of: $ledger"
done <<'END'
30s/99%|100 q - 0 30000|met 0 100 100 0 0
30s/99%|100 q - 0 30001|LATE 100 100 0 100 100
30s/99%|99 q - 0 0;1 q - 0 99999|met 1 100 99 1 1
30s/99%|98 q - 0 0;2 q - 0 99999|missed 2 100 98 2 2
30s/99%|8 q - 0 0;2 q - 0 99999|missed 2 10 80 20 20
30s/99%|7 q - 0 0;3 q - 0 99999|LATE 3 10 70 30 30
30s/99%|60 q - 0 0;10 q - 0 99999|LATE 10 70 85.7 14.3 14.3
30s/99%|59 q - 1801000 0;10 q - 1801000 99999|missed 10 69 85.5 14.5 14.5
30s/99%|59 q - 21601000 0;10 q - 21601000 99999|missed 10 69 85.5 - -
30s/90%|10 q - 0 99999|LATE 10 10 0 10 10
30s/90%|9 q - 0 99999;991 q - 0 0|met 9 1000 99.1 0.1 0.1
30s/50%|60 q - 0 99999;40 q - 0 0|LATE 60 100 40 1.2 1.2
30s/50%|40 q - 0 99999;60 q - 0 0|met 40 100 60 0.8 0.8
500ms/99.95%|1999 q - 0 500;1 q - 0 501|met 1 2000 99.9 1 1
1h/99%|10 q - 90000000 99999999|- 0 0 - - -
END
fresh
is "$(slo q)" '- - - - - -' 'no target, no judgement'
qset queue.q.slo=30s/99%
is "$(slo)" '- 0 0 - - -' 'a queue with a target has a row, though nothing was there'
echo '10 q - 7200000 99999' | ledger
is "$(slo --since 1h)" '- 0 0 - - 100' 'burn rates look back further than the window'
is "$(slo --since 3h)" 'missed 10 10 0 - 100' '... which counts what is in it'

# Released and superseded attempts never began.
fresh
qset queue.q.slo=30s/99%
printf '%s\n' '1 q - 0 99999 10 released pending' '1 q - 0 99999 10 superseded done' '1 q - 0 99999 10 deferred pending' '1 q - 0 99999 10 lost failed' | ledger
is "$(slo)" 'missed 2 2 0 100 100' 'what never began is not late'

# What waits past the target is late, what runs counts by its start.
fresh
qset queue.q.slo=30s/50%
qadd -q q x
qadd -q q x
is "$(slo)" '- 0 0 - - -' 'what waits within the target is nothing yet'
is "$(Q_NOW=2026-06-02T12:00:30Z slo)" '- 0 0 - - -' '... to the millisecond'
is "$(Q_NOW=2026-06-02T12:00:30.001Z slo)" 'missed 2 2 0 2 2' '... and late after it: a dead queue is not at 100 %'
is "$(Q_NOW=2026-06-02T12:01:30.001Z slo)" 'LATE 2 2 0 2 2' '... LATE at once after three times the target'
Q_NOW=2026-06-02T12:00:10Z qclaim q >made
is "$(Q_NOW=2026-06-02T12:01:30Z slo)" 'met 1 2 50 1 1' 'what runs counts by when it began'
qadd -q --in 1h --event-time 2026-06-02T11:00:00Z -e ana q x
qadd -q -e ana q y
is "$(Q_NOW=2026-06-02T12:30:00Z slo | cut -d' ' -f2,3)" '1 2' 'delayed and blocked jobs do not wait'

# Types
fresh
qset queue.mail.slo=30s/99% queue.mail/reset.slo=1s/99%
printf '%s\n' '50 mail reset 0 2000' '50 mail news 0 2000' | ledger
is "$(slo mail)" 'met 0 100 100 0 0' 'a queue is measured whole, by its own target'
is "$(slo --types mail | cut -d' ' -f1-3 | tr '\n' ,)" 'met 0 50,LATE 50 50,' '... a type by its own, else by that of its queue'
is "$(qlate -j --types mail | jq -r '[.type, .target_ms, .target_percent] | map(tostring) | join(" ")' | tr '\n' ,)" 'news 30000 99,reset 1000 99,' '... as JSON has them'
qset queue.mail.slo=
is "$(slo mail)" '- - - - - -' 'a target of a type is none of its queue'

# ---- why ----

fresh
is "$(why)" - 'nothing waits: nothing to tell'
qadd -q q x
is "$(why)" backlog 'due now: somebody may be about to come'
later() { Q_NOW=2026-06-02T12:0$1Z why; }
is "$(later 0:59.999)" backlog '... for a minute'
is "$(later 1:00)" 'no worker' '... and then nobody came'
qadd -q q y
Q_NOW=2026-06-02T12:00:30Z qclaim q >claims
is "$(later 1:00)" busy 'somebody has a claim'
claim_of claims | qdone -
is "$(later 1:00)" backlog 'somebody was there since the oldest was due'
qpause q 'no ink'
is "$(later 1:00)" paused 'paused'
qpause -r q
qset queue.q.rate=1/h
qclaim q >claims
claim_of claims | qdone -
qadd -q q z
is "$(later 1:00)" rate 'its rate has no token'
qset queue.q.rate= queue.q.concurrency=1
is "$(later 1:00)" backlog '... and without it'
qadd -q q w
qclaim q >claims
is "$(later 1:00)" busy 'all places are taken'
qset queue.q.concurrency= queue.q.limit=partner rate.partner=1/s+10
qrate --block 1h partner
is "$(later 1:00)" rate 'a shared rate is blocked'
fresh
qadd -q -e ana q x
qadd -q -e ana q y
qclaim q >claims
is "$(later 1:00)" blocked 'what is due waits for its entity'
is "$(qlate -j q | jq -c '[.waiting, .claimed, .why]')" '[0,1,"blocked"]' '... and is not claimable'
claim_of claims | qdone -
qlock ana -- sh -c 'qlate -j q | jq -r .why' >out
is "$(cat out)" lock 'its entity is locked'
qadd -q q free
is "$(qlock ana -- qlate -j q | jq -r .why)" backlog '... which is no reason if something else is free'
qadd -q -t a r x
qadd -q -t b r x
is "$(Q_NOW=2026-06-02T12:09:00Z qlate -j --types r | jq -r '.type + " " + .why' | tr '\n' ,)" 'a no worker,b no worker,' 'for each type'

# ---- 80 and 120 columns ----

fresh
qset queue.payments.slo=30s/99% queue.webhooks.slo=1m/99% queue.nightly.slo=1h/99%
perl -e 'for (0 .. 999) { printf "1 payments - %d %d 1500 %s %s %d\n", (999 - $_) * 86400, $_ < 100 ? 45000 + $_ * 100 : $_ < 960 ? $_ * 10 : 25000 + ($_ - 960) * 2000,
	$_ % 20 ? "done done" : "failed failed", 1 }' | ledger
printf '%s\n' '400 webhooks push 3600000 300' '3 webhooks - 7200000 70000 20 failed dead' '2 webhooks - 0 900 10 deferred pending' '20 reports - 40000000 62000 240000' | ledger
for i in 1 2 3; do Q_NOW=2026-06-02T11:55:48Z qadd -q payments $i; done
Q_NOW=2026-06-02T11:59:19Z qadd -q -p 0 webhooks x
Q_NOW=2026-06-02T11:59:59Z qclaim webhooks >made
Q_NOW=2026-06-02T11:59:19Z qadd -q webhooks y
qadd -q reports x
qpause reports 'the printer is on fire'
is "$(terminal 80 qlate)" '24h to 2026-06-02T12:00:00Z: 1 of 4 LATE
QUEUE    WAIT OLDEST DONE FAIL DEAD FIRST% FINAL%   P95 ONTIME%  SLO WHY
payments    3  4m12s  950   50    0   95.0  100.0   52s    86.0 LATE backlog
nightly     0      -    0    0    0      -      -     -       -    -
reports     1     0s   20    0    0  100.0  100.0 1m02s       -    - paused
webhooks    1    41s  400    0    3   99.2   99.2 300ms    99.2  met busy' 'a terminal of 80 columns'
is "$(terminal 120 qlate)" '24h to 2026-06-02T12:00:00Z: 1 of 4 LATE; P50 to MAX: lateness; RUN: time at work
QUEUE    WAIT OLDEST DONE FAIL DEAD FIRST% FINAL%   P50   P95   P99   MAX   RUN  TARGET LATE ONTIME%  B1H  SLO WHY
payments    3  4m12s  950   50    0   95.0  100.0  5.9s   52s 1m23s 1m43s  1.5s 30s/99%  140    86.0 88.9 LATE backlog
nightly     0      -    0    0    0      -      -     -     -     -     -     -  1h/99%    0       -    -    -
reports     1     0s   20    0    0  100.0  100.0 1m02s 1m02s 1m02s 1m02s 4m00s       -    -       -    -    - paused
webhooks    1    41s  400    0    3   99.2   99.2 300ms 300ms 900ms 1m10s  10ms  1m/99%    3    99.2  0.0  met busy' '... of 120'
is "$(LC_ALL=C.UTF-8 qlate)" '24h to 2026-06-02T12:00:00Z: 1 of 4 LATE; P50 to MAX: lateness; RUN: time at work
QUEUE    WAIT OLDEST CLAIMED DONE FAIL DEAD DEFER FIRST% FINAL%   P50   P95   P99   MAX   RUN RUN95 DONE/H  TARGET LATE ONTIME%  B1H  B6H    TREND  SLO WHY
payments    3  4m12s       0  950   50    0     0   95.0  100.0  5.9s   52s 1m23s 1m43s  1.5s  1.5s   39.6 30s/99%  140    86.0 88.9 15.7 █▁▁▂▂▂▃█ LATE backlog
nightly     0      -       0    0    0    0     0      -      -     -     -     -     -     -     -      -  1h/99%    0       -    -    - --------    -
reports     1     0s       0   20    0    0     0  100.0  100.0 1m02s 1m02s 1m02s 1m02s 4m00s 4m00s    0.8       -    -       -    -    - ----█---    - paused: the printer is on fire
webhooks    1    41s       1  400    0    3     2   99.2   99.2 300ms 300ms 900ms 1m10s  10ms  10ms   16.7  1m/99%    3    99.2  0.0  0.7 -------▁  met busy' 'a pipe gets it whole; blocks where the locale has UTF-8'
is "$(terminal 80 'qlate --wide')" "$(qlate)" '... as a terminal does with --wide'
is "$(terminal 80 'LC_ALL= LANG=de_DE.utf8 qlate --wide payments' | tail -n 1 | grep -c '█')" 1 '... LANG says it, too'
is "$(qlate reports payments | awk 'NR > 2 { print $1 }' | tr '\n' ' ')" 'reports payments ' 'queues that are named keep their order'
# At no width is there room left for a column that is not there.
qlate | sed -n 2p >all
for w in 40 50 61 70 77 83 90 97 104 111 125 133 140; do
	terminal $w qlate | sed 1d >table
	perl -e 'my ($w) = @ARGV; local @ARGV = "all"; my $head = <>; my (%width, $last); $last = -1;
		while ($head =~ /\S+/g) { $width{$&} = $+[0] - $last - 1; $last = $& eq "QUEUE" ? 8 : $+[0] }
		@ARGV = "table"; my @lines = <>; my %there = map { $_ => 1 } split " ", $lines[0]; my $total = 9;
		$total += 1 + ($_ eq "QUEUE" ? 8 : $width{$_}) for grep $_ ne "WHY", keys %there;
		chomp @lines; print "$w: too wide: $_\n" for grep length > $w, $w > 50 ? @lines : ();
		print "$w: room for $_\n" for grep !$there{$_} && $total + 1 + $width{$_} <= $w, sort keys %width' $w
done >room
is "$(cat room)" '' 'a terminal of any width is filled'
is "$(terminal 80 'qlate --types webhooks')" '24h to 2026-06-02T12:00:00Z; P50 to MAX: lateness; RUN: time at work
QUEUE    TYPE WAIT OLDEST DONE FAIL DEAD FINAL%   P95 ONTIME%    SLO WHY
webhooks -       1    41s    0    0    3    0.0 1m10s    50.0 missed busy
webhooks push    0      -  400    0    0  100.0 300ms   100.0    met' 'types'
qset queue.webhooks/push.slo=1m/99% queue.nightly/a.slo=1m/99%
is "$(qlate --types -j | jq -r '.queue + "/" + (.type // "-")' | xargs)" 'nightly/a payments/- reports/- webhooks/- webhooks/push' '... a target alone is no row beside a type'
qset queue.webhooks/push.slo= queue.nightly/a.slo=
is "$(terminal 80 'qlate --hist payments')" 'payments, 24h to 2026-06-02T12:00:00Z: 1000 starts
lateness p50 5.9s, p95 52s, p99 1m23s, max 1m43s
   UP TO   STARTS    CUM%
      1s        1    0.10  #
      3s      200   20.10  ################
     10s      659   86.00  #####################################################
     30s        3   86.30  #
  ------ target 30s: 86.30% of them, wanted 99.00% ----------------------------
      1m      115   97.80  #########
      2m       22  100.00  #
3 wait now, the oldest for 4m12s' 'a histogram of 80 columns'
is "$(LC_ALL=C.UTF-8 terminal 120 'qlate --hist webhooks/push')" 'webhooks/push, 24h to 2026-06-02T12:00:00Z: 400 starts
lateness p50 300ms, p95 300ms, p99 300ms, max 300ms
   UP TO   STARTS    CUM%
   300ms      400  100.00  █████████████████████████████████████████████████████████████████████████████████████████████
  ------ target 1m: 100.00% of them, wanted 99.00% --------------------------------------------------------------------' '... of a type, of 120 and UTF-8'
is "$(qlate --hist none)" 'none, 24h to 2026-06-02T12:00:00Z: no attempts' '... of nothing'
is "$(COLUMNS=10 terminal 20 'qlate --hist payments' | awk 'length > 52' )" '' '... of no room'

# Buckets against a count of their own.
steps='10 30 100 300 1000 3000 10000 30000 60000 120000 300000 900000 3600000'
for seed in 1 2; do
	fresh
	perl -e 'srand shift; printf "1 h - %d %d\n", rand 8e7, exp rand 15 for 1 .. 700' $seed >rows
	ledger <rows
	qlate --hist h | awk 'NR > 3 && $1 != "------" { print $2, $3 }' >out
	is "$(cat out)" "$(perl -e 'my @v = map { (split)[4] } `cat rows`; my @s = @ARGV; my ($last, $cum, $some) = (-1, 0, 0); my @out;
		for my $s (@s) { my $n = grep { $_ > $last && $_ <= $s } @v; $last = $s; $cum += $n; push @out, [ $n, $cum ] }
		shift @out while !$out[0][0]; pop @out while !$out[-1][0]; printf "%d %.2f\n", $_->[0], int(10000 * $_->[1] / @v) / 100 for @out' $steps)" \
	    "a histogram of random values, seed $seed"
done

# ---- parts of the window ----

fresh
# Berlin, 2026-03-29: 02:00 does not come; 2026-10-25: it comes twice.
exits 0 'the hours of a day of 23' env Q_NOW=2026-03-29T22:00:00Z qlate -j --since 23h --by hour --tz Europe/Berlin q
is "$(wc -l <out | tr -d ' ')" 23 '... are 23'
is "$(Q_NOW=2026-03-29T22:00:00Z qlate --since 23h --by hour --tz Europe/Berlin q | awk 'NR > 2 && NR < 6 { print $2, $3 }')" '2026-03-29 00:00+01:00
2026-03-29 01:00+01:00
2026-03-29 03:00+02:00' '... without the second'
is "$(Q_NOW=2026-10-25T23:00:00Z qlate --since 25h --by hour --tz Europe/Berlin q | awk 'NR > 4 && NR < 7 { print $2, $3 } END { print NR - 2 }')" '2026-10-25 02:00+02:00
2026-10-25 02:00+01:00
25' 'a day of 25 has the second twice'
is "$(Q_NOW=2026-10-27T12:00:00Z qlate --since 4d --by day --tz Europe/Berlin q | awk 'NR > 2 { print $2, $3 }')" '2026-10-23 14:00+02:00
2026-10-24 00:00+02:00
2026-10-25 00:00+02:00
2026-10-26 00:00+01:00
2026-10-27 00:00+01:00' 'days begin at their midnight'
is "$(Q_NOW=2026-10-27T12:00:00Z qlate -j --since 4d --by day --tz Europe/Berlin q | jq -r '.now_ms + 1 - .since_ms' | tr '\n' ' ')" '36000000 86400000 90000000 86400000 46800001 ' \
    '... of 24 and 25 hours'
is "$(qlate --since 2h --by hour --tz Asia/Kolkata q | awk 'NR > 2 { print $3 }' | tr '\n' ' ')" '15:30+05:30 16:00+05:30 17:00+05:30 ' 'hours of a zone that is half an hour off'
printf '%s\n' '3 q - 7200001 5' '2 q - 7200000 1000' '1 q - 3600001 2000' '4 q - 3600000 3000 10 failed dead' '5 q - 0 4000' | ledger
qset queue.q.slo=2s/50%
is "$(qlate -j --since 3h --by hour q | jq -r '[.done, .dead, .late_p95_ms, .ontime_percent, .slo] | map(tostring) | join(" ")')" '3 0 5 100 met
3 0 2000 100 met
5 4 4000 0 missed' 'an attempt is in the hour in which it ended'
is "$(qlate --since 3h --by hour q | sed -n 2,3p)" 'QUEUE              FROM DONE FAIL DEAD DEFER FIRST% FINAL%  P50  P95  P99  MAX  RUN RUN95 DONE/H TARGET LATE ONTIME%    SLO
q     2026-06-02 09:00Z    3    0    0     0  100.0  100.0  5ms  5ms  5ms  5ms 10ms  10ms    3.0 2s/50%    0   100.0    met' '... for people'
qadd -q q waits
is "$(qlate -j --since 3h --by hour q | jq -c '[.waiting, .why]' | uniq)" '[0,null]' 'what waits now is in none of them'
is "$(qlate --by hour --since 2h | awk 'NR > 2 { print $1, $4 }')" 'q 3
q 5' 'without queues, those of the ledger'

# ---- a picture ----

# well NAME: well-formed, nothing that runs, nothing from elsewhere
well() {
	perl -0777 -ne 's/<\?xml[^>]*\?>//; my @open;
		while (/\G([^<]*)(?:<(\/?)([A-Za-z]+)((?:\s+[A-Za-z:-]+="[^"<]*")*)\s*(\/?)>|$)/gc) {
			my ($text, $end, $name, $attr, $empty) = ($1, $2, $3, $4, $5);
			die "text: $text" if ($text . ($attr // "")) =~ /&(?!(?:lt|gt|amp|quot);)/ || $text =~ /[\x00-\x08\x0b-\x1f]/;
			last if !defined $name;
			if ($end) { die "/$name" if (pop @open // "") ne $name } elsif (!$empty) { push @open, $name }
			die "runs: $name" if $name =~ /script|foreignObject|image|use/ || ($attr // "") =~ /\bon\w+=|href/;
		}
		die "open: @open" if @open; die "rest: " . substr $_, pos || 0 if pos != length;
		die "elsewhere" if /url\(|\@import|https?:(?!\/\/www\.w3\.org\/2000\/svg")/;' "$1" && { ! command -v xmllint >/dev/null || xmllint --noout "$1"; }
}
exits 0 'a picture' qlate --svg a.svg q
is "$(cat out err)$(stat -c %a a.svg)" 644 '... is silent, and others may read it'
exits 0 '... is well-formed' well a.svg
is "$(grep -c '<rect x=' a.svg) $(grep -c 'class="over"' a.svg) $(grep -c 'class="target"' a.svg)" '3 2 1' '... a bar where something ended, red past the target, which is there'
is "$(grep -o 'target 2s for 50%, [^<]*' a.svg)" 'target 2s for 50%, 40.00% were in time' '... and told'
cp a.svg before
ln -s a.svg link
exits 0 'a link' qlate --svg link q
is "$(readlink link) $(cmp a.svg before && echo same)" 'a.svg same' '... is followed'
is "$(find . -name 'a.svg.*' -o -name 'link.*')" '' '... and nothing else is left'
exits 0 'the picture of an empty window' env Q_NOW=2030-01-01T00:00:00Z qlate --svg - r
cp out b.svg
exits 0 '... is well-formed, on standard output' well b.svg
exits 74 '... to a full disk' qlate --svg /dev/full q
is "$(cat err)" 'qlate: /dev/full: No space left on device' '... is told'
mkdir ro
exits 73 '... to a folder' qlate --svg ro q
fresh
exits 0 'of nothing' qlate --svg c.svg
exits 0 '... is well-formed' well c.svg
write "INSERT INTO q_attempt(job, generation, attempt, fence, queue, type, due_ms, started_ms, finished_ms, outcome, state)
 SELECT 1, 1, 1, 1, CAST(x'1b5b33316dff0a3c2f746578743e3c7363726970743e26616d703b2227' AS TEXT), CAST(x'3c215b43444154415b' AS TEXT), $noon, $noon, $noon, 'done', 'done'"
exits 0 'of a name that would be a program' qlate --types --svg d.svg
exits 0 '... is well-formed' well d.svg
like "$(cat d.svg)" 'm\\xff\\x0a&lt;/text&gt;&lt;script&gt;&amp;amp;&quot;'"'"' / &lt;!\[CDATA\[</text>' '... and text'
is "$(qlate --hist q | wc -l)" 1 'a histogram beside it'
is "$(qlate --by day | sed -n 3p | cut -c1-26)" '\x1b[31m\xff\x0a</text><sc' 'a part of it is made safe, too'

done_testing
