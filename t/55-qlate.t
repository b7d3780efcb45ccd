#!/bin/sh
# qlate: what is counted and what is not, exact percentiles, windows, what waits; for people and for pipes.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000
unset COLUMNS

noon=1780401600000
word() { sed 's/.*"claim":"\([^"]*\)".*/\1/'; }
claim() { qclaim -c "${2:-1}" "$1" | word; }
fresh() { rm -f q.db*; qinit "$@"; Q_NOW=2026-06-02T12:00:00Z; }
write() { printf '%s\n' 'PRAGMA wal_autocheckpoint=0; BEGIN;' "$1" ';COMMIT;' | sqlite3 -bail q.db >made; }
# ledger: a line an attempt: QUEUE TYPE ATTEMPT DUE STARTED FINISHED OUTCOME STATE, "-" is no type, times in ms from noon
ledger() {
	awk -v n=$noon -v q="'" '
		BEGIN { print "PRAGMA wal_autocheckpoint=0; BEGIN;" }
		END { print "COMMIT;" }
		{ printf "INSERT INTO q_attempt(job, generation, attempt, fence, queue, type, due_ms, started_ms, finished_ms, outcome, state) " \
		    "VALUES(%d, 1, %s, 1, %s, %s, %s + %s, %s + %s, %s + %s, %s, %s);\n",
		    NR, $3, q $1 q, q ($2 == "-" ? "" : $2) q, n, $4, n, $5, n, $6, q $7 q, q $8 q }' | sqlite3 -bail q.db >made
}
# A wanted row: "_" is an empty field, "~" a blank in one.
row() { echo "$*" | sed 's/ /\t/g; s/_//g; s/~/ /g'; }
# terminal COLUMNS CMD: what a terminal of that width would show
terminal() { script -qec "stty cols $1 rows 50; $2" /dev/null </dev/null | tr -d '\r'; }

# The same report by other means: every row, each definition in its own words.
cat >truth.pl <<'END'
use strict;
use warnings;
my ($now, $since, $by_type) = @ARGV;
my %row;
my %rows;
open my $sqlite, '-|', 'sqlite3', '-readonly', 'q.db', "SELECT 'ended', queue, type, attempt, due_ms, started_ms, finished_ms, outcome, state FROM q_attempt;
    SELECT 'waits', queue, type, ready_ms FROM q_job WHERE state IN ('pending', 'failed') AND ready_ms <= $now;
    SELECT DISTINCT 'runs', queue, type FROM q_job WHERE state = 'claimed'" or die;
while (<$sqlite>) { chomp; my ($what, @row) = split /\|/, $_, -1; push @{$rows{$what}}, \@row }
sub row { my ($queue, $type) = @_; $row{$queue}{$by_type ? $type : ''} //= { n => {}, late => [], run => [] } }
for (@{$rows{ended}}) {
	my ($queue, $type, $attempt, $due, $started, $finished, $outcome, $state) = @$_;
	next if $finished < $now - $since || $finished > $now;
	my $r = row($queue, $type);
	my $kind = $outcome =~ /^(failed|lost)$/ ? ($state eq 'dead' ? 'dead' : 'failed') : $outcome;
	$r->{n}{$kind}++;
	if ($attempt == 1 && $outcome =~ /^(done|failed|lost)$/) {
		$r->{n}{first}++;
		$r->{n}{first_done}++ if $outcome eq 'done';
	}
	push @{$r->{late}}, $started > $due ? $started - $due : 0 if $outcome =~ /^(done|failed|lost|deferred)$/;
	push @{$r->{run}}, $finished > $started ? $finished - $started : 0 if $outcome =~ /^(done|failed)$/;
}
for (@{$rows{waits}}) {
	my ($queue, $type, $ready) = @$_;
	my $r = row($queue, $type);
	$r->{n}{waiting}++;
	$r->{oldest} = $now - $ready if !defined $r->{oldest} || $now - $ready > $r->{oldest};
}
row(@$_) for @{$rows{runs}};
# The least value that at least p percent do not exceed.
sub rank {
	my ($p, @v) = @_;
	@v = sort { $a <=> $b } @v;
	for my $i (0 .. $#v) {
		return $v[$i] if ($i + 1) * 100 >= $p * @v;
	}
	return '';
}
sub percent { my ($part, $all) = map { $_ // 0 } @_; $all ? sprintf '%d.%d', int(1000 * $part / $all) / 10, int(1000 * $part / $all) % 10 : '' }
for my $queue (sort keys %row) {
	for my $type (sort keys %{$row{$queue}}) {
		my $r = $row{$queue}{$type};
		my %n = %{$r->{n}};
		print join("\t", $queue, $type, $n{waiting} // 0, $r->{oldest} // '', map({ $n{$_} // 0 } qw(done failed dead deferred)),
		    percent($n{first_done}, $n{first}), percent($n{done}, ($n{done} // 0) + ($n{dead} // 0)),
		    map({ rank($_, @{$r->{late}}) } 50, 95, 99, 100), map({ rank($_, @{$r->{run}}) } 50, 95), ''), "\n";
	}
}
END
truth() { perl truth.pl "$@"; }
# tsv: the row of each object of qlate -j, by tabs; what is absent is empty, the last field is "paused: why".
cat >tsv.pl <<'END'
use strict;
use warnings;
my @names = qw(queue type waiting oldest_wait_ms done failed dead deferred first_percent final_percent late_p50_ms late_p95_ms late_p99_ms
    late_max_ms run_p50_ms run_p95_ms);
while (my $line = <>) {
	my %v;
	for (@names, qw(paused pause_reason)) {
		$line =~ /[{,]"$_":(?:"((?:[^"\\]|\\.)*)"|([^,}]*))/ or die "$_: $line";
		$v{$_} = $1 // ($2 eq 'null' ? '' : $2);
	}
	my $note = $v{paused} ne 'true' ? '' : $v{pause_reason} eq '' ? 'paused' : "paused: $v{pause_reason}";
	print join("\t", @v{@names}, $note), "\n";
}
END
tsv() { qlate -j "$@" >json && perl tsv.pl json; }

# ---- usage ----

exits 66 'no file' qlate
is "$(cat err)" "qlate: $PWD/q.db: no such queue file; next: qinit '$PWD/q.db' for a new one, or see -d and Q_DB; if it was there, bring it or a copy back, as qbackup(1) says" '... is told'
qinit
exits 64 '--since without a unit' qlate --since 5
is "$(cat out err)" "qlate: --since: '5' a number needs a unit: write 10s, 10m, 10h or 10d; see 'qlate --help'" '... is told'
exits 64 '--since of nothing' qlate --since ''
exits 64 '--since 0 looks at nothing' qlate --since 0
is "$(cat out err)" "qlate: --since: no attempt fits into '0'; see 'qlate --help'" '... is told'
exits 64 '--since without a value' qlate --since
exits 64 '--types takes none' qlate --types=reset
exits 64 'an abbreviation' qlate --sin 1h
exits 64 'an option of others' qlate -t reset
exits 65 'a queue that cannot be' qlate 'a b'
exits 65 '... a number' qlate 12
exits 65 '... nothing' qlate ''
exits 78 'a bad Q_NOW' env Q_NOW=noon qlate
exits 66 'another file that is not there' qlate -d other.db
exits 78 'no queue file' sh -c 'echo text >text; qlate -d text'

# ---- nothing ----

exits 0 'an empty file' tsv
is "$(cat out err)" '' '... has nothing to tell'
exits 0 '... in JSON' qlate -j
is "$(cat out err)" '' '... likewise'
is "$(terminal 80 qlate)" '24h to 2026-06-02T12:00:00Z: no attempts, nothing waits' '... and says so on a terminal'
is "$(terminal 80 'qlate --since 1d12h')" '1d12h to 2026-06-02T12:00:00Z: no attempts, nothing waits' '... for the window that was given'
exits 0 'a queue that nobody knows' tsv ghost
is "$(cat out)" "$(row ghost _ 0 _ 0 0 0 0 _ _ _ _ _ _ _ _ _)" '... has a row of zeros'
exits 0 '... by type' tsv --types ghost
is "$(cat out)" "$(row ghost _ 0 _ 0 0 0 0 _ _ _ _ _ _ _ _ _)" '... the same'
exits 0 '... in JSON' qlate -j ghost
is "$(cat out)" '{"queue":"ghost","type":null,"since_at":"2026-06-01T12:00:00Z","since_ms":1780315200000,"now_at":"2026-06-02T12:00:00Z","now_ms":1780401600000,"waiting":0,"oldest_wait_ms":null,"claimed":0,"done":0,"failed":0,"dead":0,"deferred":0,"lost":0,"released":0,"superseded":0,"first_attempts":0,"first_done":0,"first_percent":null,"final_percent":null,"late_p50_ms":null,"late_p95_ms":null,"late_p99_ms":null,"late_max_ms":null,"run_p50_ms":null,"run_p95_ms":null,"done_per_hour":0.0,"late":null,"ontime_percent":null,"burn_1h":null,"burn_6h":null,"late_count":0,"run_count":0,"target_ms":null,"target_percent":null,"target_count":null,"slo":null,"why":null,"paused":false,"pause_reason":null}' \
    '... zeros and nulls'

# ---- each outcome ----

# 5 s late, 7 s at work: the row from "done" on.
# Each has its queue.  Of lost work nobody knows when it ended, deferred work was only looked at, released and superseded never begun.
while read -r queue attempt outcome state want; do
	echo "$queue - $attempt -20000 -15000 -8000 $outcome $state" >&3
	echo "$queue _ 0 _ $want _"
done <<'END' 3>cases >want
dead 1 failed dead 0 0 1 0 0.0 0.0 5000 5000 5000 5000 7000 7000
dead-at-the-end 20 failed dead 0 0 1 0 _ 0.0 5000 5000 5000 5000 7000 7000
deferred 1 deferred pending 0 0 0 1 _ _ 5000 5000 5000 5000 _ _
done 1 done done 1 0 0 0 100.0 100.0 5000 5000 5000 5000 7000 7000
done-later 2 done done 1 0 0 0 _ 100.0 5000 5000 5000 5000 7000 7000
failed 1 failed failed 0 1 0 0 0.0 _ 5000 5000 5000 5000 7000 7000
lost 1 lost failed 0 1 0 0 0.0 _ 5000 5000 5000 5000 _ _
lost-for-good 3 lost dead 0 0 1 0 _ 0.0 5000 5000 5000 5000 _ _
released 1 released pending 0 0 0 0 _ _ _ _ _ _ _ _
superseded 1 superseded done 0 0 0 0 _ _ _ _ _ _ _ _
END
fresh
ledger <cases
is "$(tsv)" "$(row "$(cat want)")" 'what each outcome counts for'
is "$(tsv)" "$(truth $noon 86400000 0)" '... as the other computation has it'
echo 'other - 1 -20000 -15000 -8000 exploded done' | ledger
is "$(tsv)" "$(row "$(cat want)")" '... and one of another program for nothing'

# A clock that was set back in between makes no negative times.
fresh
ledger <<'END'
mail - 1 -10000 -20000 -30000 done done
END
is "$(tsv)" "$(row mail _ 0 _ 1 0 0 0 100.0 100.0 0 0 0 0 0 0 _)" 'started before it was due, finished before it started: 0'
fresh
write "INSERT INTO q_attempt(job, generation, attempt, fence, queue, type, due_ms, started_ms, finished_ms, outcome, state)
 VALUES(1, 1, 1, 1, 'mail', '', -9223372036854775808, 9223372036854775807, $noon, 'done', 'done')"
is "$(tsv | cut -f11)" 144115188075855871 'times of another program that no difference holds'

# ---- a ledger made by hand ----

fresh
ledger <<'END'
mail reset 1 -3600000 -3600000 -3599500 done done
mail reset 1 -3600000 -3590000 -3589000 done done
mail reset 1 -3500000 -3437000 -3436000 failed failed
mail reset 2 -3430000 -3429750 -3427750 done done
mail - 1 -3000000 -2999000 -2990000 lost failed
mail - 2 -3000000 -2748000 -2740000 failed dead
mail news 1 -2000000 -2000000 -1999900 deferred pending
mail news 1 -1800000 -1800000 -1799900 deferred pending
mail news 1 -1600000 -1599000 -1579000 done done
mail news 1 -1500000 -1499000 -1479000 released pending
mail news 1 -1500000 -1400000 -1400000 superseded done
old - 1 -90000000 -90000000 -86400001 done done
webhooks - 1 -60000 -59700 -59690 done done
END
qadd -q --in 1h delayed x
qadd -q -p 0 webhooks x
qadd -q -p 9 -t push webhooks x
qadd -q -e ana webhooks x
qadd -q -e ana -p 1 webhooks blocked
qadd -q --in 5s webhooks soon
qadd -q other x
claim other >taken
write "UPDATE q_job SET due_ms = due_ms - 252000, ready_ms = due_ms - 252000 WHERE type = 'push'"
qpause webhooks 'provider is down'
exits 0 'a report' tsv
is "$(cat out)" "$(row mail _ 0 _ 4 2 1 2 60.0 80.0 1000 252000 252000 252000 1000 20000 _
row other _ 0 _ 0 0 0 0 _ _ _ _ _ _ _ _ _
row webhooks _ 3 252000 1 0 0 0 100.0 100.0 300 300 300 300 10 10 paused:~provider~is~down)" \
    'a queue a row: attempts, shares, lateness, time at work, what waits'
is "$(awk -F'\t' '{ print NF }' out | sort -u)" 17 '... of seventeen fields'
is "$(sed 's/paused.*//' out)" "$(truth $noon 86400000 0)" '... as the other computation has it'
exits 0 '--types' tsv --types
is "$(cat out)" "$(row mail _ 0 _ 0 1 1 0 0.0 0.0 1000 252000 252000 252000 8000 8000 _
row mail news 0 _ 1 0 0 2 100.0 100.0 0 1000 1000 1000 20000 20000 _
row mail reset 0 _ 3 1 0 0 66.6 100.0 250 63000 63000 63000 1000 2000 _
row other _ 0 _ 0 0 0 0 _ _ _ _ _ _ _ _ _
row webhooks _ 2 0 1 0 0 0 100.0 100.0 300 300 300 300 10 10 paused:~provider~is~down
row webhooks push 1 252000 0 0 0 0 _ _ _ _ _ _ _ _ paused:~provider~is~down)" '... a row for each type'
is "$(sed 's/paused.*//' out)" "$(truth $noon 86400000 1)" '... as the other computation has it'
exits 0 'queues that are named' tsv webhooks ghost delayed webhooks mail
is "$(cut -f1,3,5 out | tr '\t\n' ' ,')" 'webhooks 3 1,ghost 0 0,delayed 0 0,mail 0 4,' '... in that order, each once, whatever there is'
exits 0 '... by type' tsv --types webhooks other
is "$(cut -f1,2,3 out | tr '\t\n' ' ,')" 'webhooks  2,webhooks push 1,other  0,' '... claimed, delayed and blocked jobs do not wait'
exits 0 'JSON' qlate -j webhooks mail
is "$(cat out)" '{"queue":"webhooks","type":null,"since_at":"2026-06-01T12:00:00Z","since_ms":1780315200000,"now_at":"2026-06-02T12:00:00Z","now_ms":1780401600000,"waiting":3,"oldest_wait_ms":252000,"claimed":0,"done":1,"failed":0,"dead":0,"deferred":0,"lost":0,"released":0,"superseded":0,"first_attempts":1,"first_done":1,"first_percent":100.0,"final_percent":100.0,"late_p50_ms":300,"late_p95_ms":300,"late_p99_ms":300,"late_max_ms":300,"run_p50_ms":10,"run_p95_ms":10,"done_per_hour":0.0,"late":null,"ontime_percent":null,"burn_1h":null,"burn_6h":null,"late_count":1,"run_count":1,"target_ms":null,"target_percent":null,"target_count":null,"slo":null,"why":"paused","paused":true,"pause_reason":"provider is down"}
{"queue":"mail","type":null,"since_at":"2026-06-01T12:00:00Z","since_ms":1780315200000,"now_at":"2026-06-02T12:00:00Z","now_ms":1780401600000,"waiting":0,"oldest_wait_ms":null,"claimed":0,"done":4,"failed":2,"dead":1,"deferred":2,"lost":1,"released":1,"superseded":1,"first_attempts":5,"first_done":3,"first_percent":60.0,"final_percent":80.0,"late_p50_ms":1000,"late_p95_ms":252000,"late_p99_ms":252000,"late_max_ms":252000,"run_p50_ms":1000,"run_p95_ms":20000,"done_per_hour":0.2,"late":null,"ontime_percent":null,"burn_1h":null,"burn_6h":null,"late_count":9,"run_count":6,"target_ms":null,"target_percent":null,"target_count":null,"slo":null,"why":null,"paused":false,"pause_reason":null}' \
    '... the same with names'
is "$(jq -r '.queue + " " + (.since_at | fromdate | tostring)' out | tr '\n' ' ')" 'webhooks 1780315200 mail 1780315200 ' '... as jq reads it'
is "$(qlate -j --types mail | jq -c '[.type, .late_count]' | tr '\n' ' ')" '[null,2] ["news",3] ["reset",4] ' '... by type'
qpause --all 'disk is full'
is "$(tsv | cut -f1,17 | tr '\t\n' ' ,')" 'mail paused: disk is full,other paused: disk is full,webhooks paused: provider is down,' 'all queues paused: the reason of all, unless there is one of its own'
qpause webhooks ''
is "$(tsv webhooks | cut -f17)" 'paused: disk is full' '... that says something'
qpause --all
is "$(tsv | cut -f1,17 | tr '\t\n' ' ,')" 'mail paused,other paused,webhooks paused,' '... without a reason'
is "$(qlate -j mail | jq -c '[.paused, .pause_reason]')" '[true,null]' '... in JSON'
qpause -r webhooks 2>err
qpause -r --all
qset queue.mail.rate=1/s
is "$(tsv | cut -f17 | tr -d '\n')" '' 'a limit is no pause'

# ---- for people ----

qpause webhooks 'provider is down, call +49 30 1234'
is "$(terminal 120 qlate)" '24h to 2026-06-02T12:00:00Z; P50 to MAX: lateness; RUN: time at work
QUEUE    WAIT OLDEST CLAIMED DONE FAIL DEAD DEFER FIRST% FINAL%   P50   P95   P99   MAX  RUN RUN95 DONE/H WHY
mail        0      -       0    4    2    1     2   60.0   80.0  1.0s 4m12s 4m12s 4m12s 1.0s   20s    0.2
other       0      -       1    0    0    0     0      -      -     -     -     -     -    -     -      -
webhooks    3  4m12s       0    1    0    0     0  100.0  100.0 300ms 300ms 300ms 300ms 10ms  10ms    0.0 paused' 'a terminal of 120 columns'
is "$(terminal 80 qlate)" '24h to 2026-06-02T12:00:00Z; P50 to MAX: lateness; RUN: time at work
QUEUE    WAIT OLDEST DONE FAIL DEAD FIRST% FINAL%   P95   P99   MAX WHY
mail        0      -    4    2    1   60.0   80.0 4m12s 4m12s 4m12s
other       0      -    0    0    0      -      -     -     -     -
webhooks    3  4m12s    1    0    0  100.0  100.0 300ms 300ms 300ms paused' '... of 80'
is "$(terminal 80 'qlate --types mail')" '24h to 2026-06-02T12:00:00Z; P50 to MAX: lateness; RUN: time at work
QUEUE TYPE  WAIT OLDEST DONE FAIL DEAD FIRST% FINAL%   P50   P95   P99   MAX
mail  -        0      -    0    1    1    0.0    0.0  1.0s 4m12s 4m12s 4m12s
mail  news     0      -    1    0    0  100.0  100.0    0s  1.0s  1.0s  1.0s
mail  reset    0      -    3    1    0   66.6  100.0 250ms 1m03s 1m03s 1m03s' '... by type'
is "$(terminal 50 qlate)" '24h to 2026-06-02T12:00:00Z
QUEUE    WAIT OLDEST DONE DEAD   P95 WHY
mail        0      -    4    1 4m12s
other       0      -    0    0     -
webhooks    3  4m12s    1    0 300ms paused' '... of 50'
is "$(terminal 20 qlate)" '24h to 2026-06-02T12:00:00Z
QUEUE  WAIT OLDEST DEAD WHY
mail      0      -    1
other     0      -    0
web...    3  4m12s    0 paused' '... of 20, which is too few'
is "$(terminal 50 'COLUMNS=120 qlate mail' | sed -n 2p)" 'QUEUE WAIT OLDEST CLAIMED DONE FAIL DEAD DEFER FIRST% FINAL%  P50   P95   P99   MAX  RUN RUN95 DONE/H    TREND' 'COLUMNS says otherwise'
is "$(terminal 80 'qlate -j mail' | cut -c1-16)" '{"queue":"mail",' 'JSON on a terminal stays JSON'
fresh
qadd -q a-queue-whose-name-is-longer-than-a-column-likes x
qadd -q -t "$(printf 'type \303\274ber \342\200\256alles')" mail x
ledger <<'END'
mail - 1 -8640000000 -250 0 done done
END
is "$(terminal 100 'qlate --types' | tail -n 4)" 'QUEUE            TYPE             WAIT OLDEST DONE FAIL DEAD FIRST% FINAL%    P95    P99 WHY
a-queue-whose... -                   1     0s    0    0    0      -      -      -      - backlog
mail             -                   0      -    1    0    0  100.0  100.0 99d23h 99d23h
mail             type über ...       1     0s    0    0    0      -      -      -      - backlog' 'long names are cut a little, then columns go'
is "$(terminal 48 'qlate --types' | tail -n 4)" 'QUEUE          TYPE   WAIT OLDEST DEAD WHY
a-queue-who... -         1     0s    0 backlog
mail           -         0      -    0
mail           typ...    1     0s    0 backlog' '... then names are cut to what remains'
is "$(terminal 200 'qlate --types' | tail -n 1)" 'mail                                             type über \u{202e}alles    1     0s       0    0    0    0     0      -      -      -      -      -      -     -     -      - -------- backlog' \
    '... and nothing where there is room'

# ---- percentiles ----

# many: of lines QUEUE N PERL: so many attempts of the queue, 1 ms apart; PERL gives the lateness of number $_
many() {
	perl -ne 'BEGIN { $noon = shift; print "PRAGMA wal_autocheckpoint=0; BEGIN;" }
		my ($queue, $n, $expr) = split " ", $_, 3;
		print "INSERT INTO q_attempt(job, generation, attempt, fence, queue, type, due_ms, started_ms, finished_ms, outcome, state) VALUES",
		    join(",", map { my $s = $noon - 60000 + $_; my $v = eval $expr; my $d = $s - $v;
			++$job; "($job,1,1,1,\x27$queue\x27,\x27\x27,$d,$s,$s + 2 * $v,\x27done\x27,\x27done\x27)" } 1 .. $n), ";";
		END { print "COMMIT;" }' $noon | sqlite3 -bail q.db >made
}
# N, and what the ranks of N .. 1 are.  Beside them N values in no order, each once: multiples of 37 go round 1009.
fresh
while read -r n want; do
	echo "any-$n $n (\$_ * 37) % 1009" >&3
	[ -z "$want" ] || { echo "down-$n $n $n + 1 - \$_" >&3; echo "down-$n $want"; }
done <<'END' 3>cases >want
1 1 1 1 1 2 2
2 1 2 2 2 2 4
3 2 3 3 3 4 6
19 10 19 19 19 20 38
20 10 19 20 20 20 38
21 11 20 21 21 22 40
99 50 95 99 99 100 190
100 50 95 99 100 100 190
101 51 96 100 101 102 192
199
200
201
1000
END
for seed in 1 2 3 4 5 6; do echo "random-$seed $((seed * seed * 59)) srand($seed) if \$_ == 1; int(exp rand 9)"; done | cat cases - | many
is "$(tsv | grep ^down | cut -f1,11-16 | tr '\t' ' ')" "$(sort want)" 'the ranks of 1 to 100 values'
is "$(tsv)" "$(truth $noon 86400000 0)" '... of up to 2,124, as the other computation has it'
is "$(wc -l <json)" 28 '... all of them'

# Percentages are cut: only all are 100.0.
fresh
echo mail 1999 0 | many
echo 'mail - 1 0 0 0 failed dead' | ledger
is "$(tsv | cut -f9,10)" "$(printf '99.9\t99.9')" '1999 of 2000 are not all'
is "$(qlate -j | jq -c '[.first_percent, .final_percent]')" '[99.9,99.9]' '... in JSON'

# ---- the window ----

fresh
ledger <<'END'
a - 1 -86400001 -86400001 -86400001 done done
b - 1 -86400001 -86400001 -86400000 done done
c - 1 -3600001 -3600001 -3600001 done done
d - 1 -3600000 -3600000 -3600000 done done
e - 1 -9000000 -9000000 0 done done
f - 1 0 0 1 done done
END
seen() { tsv "$@" | cut -f1 | tr -d '\n'; }
is "$(seen)" bcde 'the last 24 hours, to the millisecond, by the end of an attempt'
is "$(seen --since 1d)" bcde '... 1d is the same'
is "$(seen --since 1h)" de 'the last hour'
is "$(seen --since 3600001ms)" cde '... and a millisecond'
is "$(seen --since 1ms)" e 'the last millisecond'
is "$(seen --since 3650d)" abcde 'ten years'
is "$(Q_NOW=2026-06-02T12:00:00.001Z seen --since 1h)" ef 'a millisecond later'
is "$(Q_NOW=2026-06-02T11:00:00Z seen)" abcd 'as it was an hour before'
is "$(Q_NOW=1970-01-01T00:00:01Z seen)" '' '... or when time began'
is "$(qlate -j e | jq -c '[.since_ms, .now_ms]')" '[1780315200000,1780401600000]' '... JSON tells the borders'

# Clocks are set. 10 hours back for 2,500 attempts, 1970 for 900, tomorrow for 1,200; between them what the window holds.
fresh
perl -e 'my $n = 1780401600000; my @v;
	push @v, map { "(\x27seen\x27,$n - 3500000 + $_)" } 1 .. 700;
	push @v, map { "(\x27back\x27,$n - 39000000 + $_)" } 1 .. 2500;
	push @v, map { "(\x27seen\x27,$n - 2500000 + $_)" } 1 .. 50;
	push @v, map { "(\x271970\x27,$_)" } 1 .. 900;
	push @v, "(\x27seen\x27,$n - 60000)";
	push @v, map { "(\x27tomorrow\x27,$n + 80000000 + $_)" } 1 .. 1200;
	push @v, map { "(\x27seen\x27,$n - $_)" } 1 .. 10;
	print "CREATE TEMP TABLE v(q TEXT, ms INTEGER); INSERT INTO v VALUES", join(",", @v), ";";
	print "INSERT INTO q_attempt(job, generation, attempt, fence, queue, type, due_ms, started_ms, finished_ms, outcome, state)
	 SELECT rowid, 1, 1, 1, q, \x27\x27, ms, ms, ms, \x27done\x27, \x27done\x27 FROM v ORDER BY rowid;"' >steps.sql
write "$(cat steps.sql)"
is "$(tsv --since 1h | cut -f1,5)" "$(printf 'seen\t761')" 'a clock that was wrong for a while hides nothing'
is "$(tsv --since 12h | cut -f1,5)" "$(printf 'back\t2500\nseen\t761')" '... nor shows what is not in the window'
is "$(tsv)" "$(truth $noon 86400000 0)" '... as the other computation has it'
is "$(Q_NOW=2026-06-03T12:00:00Z tsv | cut -f1,5)" "$(printf 'tomorrow\t1200')" '... what lies ahead is told when the clock gets there'

# ---- what waits ----

fresh
for p in 0 1 2 3 4 5 6 7 8 9; do
	Q_NOW=2026-06-02T11:59:5$p.000Z qadd -q -p $p each x
	qadd -q -p $p -t even$((p % 2)) each x
done
is "$(tsv)" "$(row each _ 20 10000 0 0 0 0 _ _ _ _ _ _ _ _ _)" 'waiting: all priorities'
is "$(tsv --types | cut -f2-4 | tr '\t\n' ' ,')" ' 10 10000,even0 5 0,even1 5 0,' '... and types'
fresh
# Pages of 1,000 end among rows that are level, in two priorities.
perl -e 'for (1 .. 5000) { printf qq({"queue":"%s","type":"t%d","priority":%d,"due_ms":%d,"payload":"x"}\n), $_ % 5 ? "big" : "small",
	$_ % 7, $_ % 3 ? 5 : 6, 1780401600000 - ($_ % 4 ? 1 : $_) }' | qadd -q --jsonl
seq 100 | qadd -q --in 1ms --lines big
claim big 500 >taken
is "$(tsv | cut -f1-4)" "$(truth $noon 86400000 0 | cut -f1-4)" 'thousands wait: as the other computation has it'
is "$(tsv --types)" "$(truth $noon 86400000 1)" '... by type'
is "$(tsv --types big | awk '{ n += $3 } END { print n }')" 3500 '... none missing, none twice'

# ---- random ledgers, everything at once ----

cat >random.pl <<'END'
srand $ARGV[0];
my $noon = 1780401600000;
for my $job (1 .. 3000) {
	my ($at, $attempt, $generation) = ($noon - int rand 90000000, 1, 1);
	while (1) {
		my $due = $at;
		my $start = $due + int(exp rand 15) - 1;
		my $end = $start + int(exp rand 12) - 1;
		my $outcome = (qw(done done done failed lost deferred released superseded))[rand 8];
		my $spent = $outcome =~ /failed|lost/;
		my $state = $outcome =~ /done|superseded/ ? 'done' : $spent && rand() < .3 ? 'dead' : $spent ? 'failed' : 'pending';
		push @rows, [ $end, sprintf "(%d,%d,%d,1,'q%d','%s',%d,%d,%d,'%s','%s')", $job, $generation, $attempt, $job % 7,
		    $job % 4 ? 't' . $job % 4 : '', $due, $start, $end, $outcome, $state ];
		last if $state eq 'done' || $state eq 'dead' && rand() < .9;
		if ($state eq 'dead') { $generation++; $attempt = 1 } else { $attempt += $spent }
		$at = $end + int rand 600000 unless $outcome =~ /lost|released/;
	}
}
@rows = sort { $a->[0] <=> $b->[0] } @rows;
print 'INSERT INTO q_attempt(job, generation, attempt, fence, queue, type, due_ms, started_ms, finished_ms, outcome, state) VALUES',
    join(',', map $_->[1], @rows), ';';
END
for seed in 1; do
	fresh
	perl random.pl $seed >random.sql
	write "$(cat random.sql)"
	perl -e 'srand $ARGV[0]; printf qq({"queue":"q%d","type":"t%d","priority":%d,"due_ms":%d,"payload":"x"}\n), rand 9, rand 4, rand 10,
		1780401600000 + 100000 - int rand 500000 for 1 .. 300' $seed | qadd -q --jsonl
	is "$(tsv)" "$(truth $noon 86400000 0)" "a random ledger, seed $seed"
	is "$(tsv --types --since 90m)" "$(truth $noon 5400000 1)" '... by type, over 90 minutes'
	qlate -j >out
	is "$(jq -s 'map(.done + .failed + .dead + .deferred + .released + .superseded) | add' out)" \
	    "$(sql "SELECT count(*) FROM q_attempt WHERE finished_ms BETWEEN $noon - 86400000 AND $noon")" '... no attempt is forgotten or counted twice'
	is "$(jq -s 'map(.late_count - .done - .failed - .dead - .deferred) | unique' -c out)" '[0]' '... nor a lateness'
	is "$(jq -s 'map(.run_count - .done - .failed - .dead + .lost) | unique' -c out)" '[0]' '... nor a run'
done

# ---- real runs ----

fresh
at() { Q_NOW=2026-06-02T12:$1Z; }
add() { qadd -q "$@"; }
add -t reset mail 0
add -t reset mail 75
add -t reset mail 1
add -t news --attempts 1 mail 1
add mail 65
at 00:02.500
# shellcheck disable=SC2016
exits 1 'a real run' qwork mail -- sh -c 'read -r code
	case $code in
	75) qfail --defer 1h "$Q_CLAIM" ;;
	1) qfail --in 1h "$Q_CLAIM" ;;
	*) exit "$code" ;;
	esac'
qadd -q mail slow
claim mail >words
at 00:05.000
qdone "$(cat words)"
qadd -q mail back
qfail --release "$(claim mail)"
qadd -q mail gone
claim mail 2 >words
Q_BOOT=b2:1 qclaim mail >again		# another boot: both claims are lost, one job is taken again
is "$(tsv mail)" "$(truth 1780401605000 86400000 0)" 'a real ledger, as the other computation has it'
is "$(tsv mail)" "$(row mail _ 1 0 2 3 2 1 28.5 50.0 2500 2500 2500 2500 0 2500 _)" '... and by hand'
is "$(tsv --types mail | cut -f2,5-10 | tr '\t\n' ' ,')" ' 1 2 1 0 25.0 50.0,news 0 0 1 0 0.0 0.0,reset 1 1 0 1 50.0 100.0,' '... by type'

# ---- names of other programs ----

fresh
write "INSERT INTO q_attempt(job, generation, attempt, fence, queue, type, due_ms, started_ms, finished_ms, outcome, state)
 SELECT 1, 1, 1, 1, CAST(x'1b5b33316dff0a0941' AS TEXT), CAST(x'e280ae7c' AS TEXT), $noon, $noon, $noon, 'done', 'done'
 UNION ALL SELECT 2, 1, 1, 1, printf('%.300c', 'a'), '', $noon, $noon, $noon, 'done', 'done'
 UNION ALL SELECT 3, 1, 1, 1, CAST(x'6200' AS TEXT), '', $noon, $noon, $noon, 'done', 'done'
 UNION ALL SELECT 4, 1, 1, 1, CAST(x'62' AS TEXT), '', $noon, $noon, $noon, 'done', 'done'
 UNION ALL SELECT 5, 1, 1, 1, CAST(x'620063' AS TEXT), '', $noon, $noon, $noon, 'done', 'done';
 INSERT INTO q_job(queue, type, event_ms, due_ms, ready_ms, added_ms) VALUES(CAST(x'1b5b33316dff0a0941' AS TEXT), CAST(x'e280ae7c' AS TEXT), 1, 1, 1, 1)"
exits 0 'names with all bytes' tsv --types
is "$(qlate --types | awk 'NR > 2 { print $1, $2, $3, $6 }' | sed 's/a\{300\}/aaa/')" '\x1b[31m\xff\x0a\x09A \u{202e}| 1 1
aaa - 0 1
b - 0 1
b\x00 - 0 1
b\x00c - 0 1' '... are made safe and kept apart, whole in a pipe'
qlate -j >out
is "$(jq -c '[.queue, .waiting, .done]' out | sed 's/a\{300\}/aaa/')" '["\u001b[31m�\n\tA",1,1]
["aaa",0,1]
["b",0,1]
["b\u0000",0,1]
["b\u0000c",0,1]' '... in JSON, too'
is "$(terminal 80 'qlate --types' | sed -n 3p)" '\x1b[31m\xff...  \u{202e}|    1 20606d    1    0    0  100.0  0s  0s backlog' '... and on a terminal'
write "INSERT INTO q_job(queue, event_ms, due_ms, ready_ms, added_ms) VALUES(CAST(x'6200' AS TEXT), 1, 1, 1, 1)"
exits 74 'a name that cannot be asked for' timeout 20 qlate
is "$(cat out err)" "qlate: $PWD/q.db: something has a name that no program of q writes" '... is told'
exits 0 '... unless others are' timeout 20 qlate b

# ---- a long history ----

# 60,000 attempts, one every 9 minutes, and 1,000 of the last hour.
fresh
write "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 60000)
 INSERT INTO q_attempt(job, generation, attempt, fence, queue, type, due_ms, started_ms, finished_ms, outcome, state, worker)
 SELECT i, 1, 1, 1, 'q' || (i % 3), 't' || (i % 2), ms, ms + i % 997, ms + i % 997 + 5, iif(i % 10, 'done', 'failed'), iif(i % 10, 'done', 'failed'), 'host:1234567'
   FROM (SELECT i, $noon - 7200000 - (60000 - i) * 540000 AS ms FROM c);
 WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 1000)
 INSERT INTO q_attempt(job, generation, attempt, fence, queue, type, due_ms, started_ms, finished_ms, outcome, state)
 SELECT i, 1, 1, 1, 'q' || (i % 3), '', $noon - 3000000 + i, $noon - 3000000 + 5 * i, $noon - 2000000 + i, 'done', 'done' FROM c"
exits 0 '61,000 attempts' tsv --since 3650d
is "$(cat out)" "$(truth $noon 315360000000 0)" '... as the other computation has them'
is "$(awk -F'\t' '{ n += $5 + $6 } END { print n }' out)" 61000 '... all'
is "$(tsv --types --since 3650d)" "$(truth $noon 315360000000 1)" '... by type'
tsv >day
is "$(cat day)" "$(truth $noon 86400000 0)" 'a day of it'
# What is not read cannot hurt: pages of the history are lost.
sqlite3 q.db 'PRAGMA wal_checkpoint(TRUNCATE)' >made
cp q.db whole
pages=$(($(wc -c <q.db) / 4096))
dd if=/dev/zero of=q.db bs=4096 seek=$((pages / 10)) count=$((pages / 2)) conv=notrunc 2>made
exits 0 'the day is read alone' tsv
is "$(cat out)" "$(cat day)" '... to the same report, whatever is in the history'
exits 0 '... the last hour, too' tsv --since 1h
exits 74 '... which the control shows: it cannot be read' qlate --since 3650d
is "$(cat out err)" "qlate: $PWD/q.db: the file is damaged; next: go back to a copy, as qbackup(1) says" '... is told, with no report'
cp whole q.db
# Gaps: what became of most of the history is gone.
write 'DELETE FROM q_attempt WHERE id % 7 <> 0'
is "$(tsv --since 3650d)" "$(truth $noon 315360000000 0)" 'a history with gaps'

# ---- a reader that leaves, a disk that is full ----

fresh -m 0644
perl -e 'printf qq({"queue":"a-queue-with-a-name-%d","payload":"x"}\n), $_ for 1 .. 3000' | qadd -q --jsonl
{ qlate 2>err; echo "$?" >rc; } | head -n 1 >first
is "$(wc -l <first | tr -d ' ') $(cat rc) $(cat err)" '1 141 ' 'qlate | head dies by SIGPIPE, silently'
exits 74 'qlate to a full disk' sh -c 'qlate >/dev/full'
is "$(cat err)" 'qlate: standard output: No space left on device; the output is not complete' '... is told'
exits 74 '... with little to say, too' sh -c 'qlate none >/dev/full'
exits 74 '... in JSON' sh -c 'qlate -j none >/dev/full'
exits 74 'qlate with standard output closed' sh -c 'qlate none >&-'
mkfifo pipe
qlate >pipe 2>err &
pid=$!
exec 5<pipe
IFS= read -r _ <&5
is "$(sqlite3 q.db 'PRAGMA wal_checkpoint(TRUNCATE)')" '0|0|0' 'while a reader of qlate is slow the log can be copied'
cat <&5 >rest
exec 5<&-
wait "$pid"
is "$? $(wc -l <rest | tr -d ' ') $(cat err)" '0 3001 ' '... and the report goes on'

# ---- without permission to write ----

qadd -q other x		# an SQLite shell that leaves last takes the log away, and only a writer can make it anew
cp "$(command -v qlate)" .
chmod 755 .
if [ "$(id -u)" -eq 0 ]; then
	other() { setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nowhere "$@"; }
else
	chmod 444 q.db*
	chmod 555 .
	other() { "$@"; }
fi
if [ "$(id -u)" -ne 0 ] || command -v setpriv >/dev/null; then
	before=$(ls -l q.db* | cksum)
	is "$(other ./qlate | wc -l | tr -d ' ')" 3003 'somebody who may only read sees all'
	is "$(ls -l q.db* | cksum)" "$before" '... and leaves no trace'
	if [ "$(id -u)" -eq 0 ]; then
		chmod 600 q.db
		got=$(other ./qlate 2>&1; echo "$?")
		is "$(echo "$got" | tail -n 1)" 77 'somebody who may not read is told so'
	fi
fi
chmod 755 .
chmod 644 q.db*

done_testing
