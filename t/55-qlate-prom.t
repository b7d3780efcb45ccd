#!/bin/sh
# qlate --prom: text that a strict reader takes, counters that only grow, whoever reads and whatever is deleted.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

noon=1780401600000
fresh() { rm -f q.db*; qinit "$@"; }
write() { printf '%s\n' 'PRAGMA wal_autocheckpoint=0; BEGIN;' "$1" ';COMMIT;' | sqlite3 -bail q.db >made; }
ledger() {	# N QUEUE LATE RUN OUTCOME STATE, ended one after the other before noon
	awk -v n=$noon -v q="'" '
		{ for (i = 0; i < $1; i++) printf "INSERT INTO q_attempt(job, generation, attempt, fence, queue, type, due_ms, started_ms, finished_ms, outcome, state) " \
		    "VALUES(%d, 1, 1, 1, %s, %s%s, %.0f, %.0f, %.0f, %s, %s);\n", NR, q $2 q, q, q, n - $4 - $3, n - $4, n, q $5 q, q $6 q }' >ledger.sql
	write "$(cat ledger.sql)"
}

# The grammar of the text format 0.0.4, and more than that: HELP, TYPE, then its samples, once a name, none out of its order; label values
# escaped; histograms that add up.  Prints "name{labels} value" without db.
cat >strict.pl <<'END'
use strict;
use warnings;
local $/;
my $text = <>;
die "no newline at the end\n" if $text !~ /\n\z/;
my ($metric, $type, %seen, %sample, %bucket, $help);
my $name = qr/[a-zA-Z_:][a-zA-Z0-9_:]*/;
for (split /\n/, $text, -1) {
	next if $_ eq '' && $text =~ /\n\z/;
	if (/^# HELP ($name) (\S.*)$/) {
		die "HELP $1 twice\n" if $seen{$1}++;
		die "HELP $1 comes after $metric\n" if defined $metric && $1 le $metric;
		($metric, $help) = ($1, 1);
	} elsif (/^# TYPE ($name) (counter|gauge|histogram)$/) {
		die "TYPE $1 without its HELP\n" if !$help || $1 ne $metric;
		($type, $help) = ($2, 0);
		die "$metric: a counter ends in _total\n" if ($type eq 'counter') != ($metric =~ /_total$/ ? 1 : 0);
	} elsif (/^($name)\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\} (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/) {
		my ($n, $labels, $v) = ($1, $2, $3);
		die "$n: no TYPE\n" if !defined $type || $help;
		die "$n is not of $metric\n" if $n ne $metric && !($type eq 'histogram' && $n =~ /^\Q$metric\E_(bucket|sum|count)$/);
		die "$n: no db first\n" if $labels !~ s/^db="[^"]+"(,|$)//;
		die "$n: control byte\n" if $labels =~ /[\x00-\x1f\x7f]/;
		die "$n\{$labels}: twice\n" if $sample{"$n\{$labels}"}++;
		my %l = $labels =~ /([a-z_]+)="((?:[^"\\]|\\.)*)"/g;
		die "$n: label $_\n" for grep !/^(queue|state|outcome|le|name|version)$/, keys %l;
		die "$n: negative\n" if $v < 0;
		if ($n =~ /_bucket$/) {
			my $b = $bucket{$metric}{$l{queue}} //= { n => -1, le => -1 };
			my $le = $l{le} eq '+Inf' ? 9e99 : $l{le};
			die "$n: le falls\n" if $le <= $b->{le};
			die "$n: falls\n" if $v < $b->{n};
			@$b{qw(le n)} = ($le, $v);
		}
		die "$n: count is not that of +Inf\n" if $type eq 'histogram' && $n =~ /_count$/ && ($bucket{$metric}{$l{queue}}{le} != 9e99 || $bucket{$metric}{$l{queue}}{n} != $v);
		print "$n\{$labels} $v\n";
	} else {
		die "no line of the format: $_\n";
	}
}
END
prom() { qlate --prom "$@" >prom.txt && perl strict.pl prom.txt >samples; }
strict() {
	perl strict.pl prom.txt >samples && { ! command -v promtool >/dev/null || promtool check metrics <prom.txt; }
}
of() { grep "^$1[{ ]" samples | sed 's/^[^{]*//' ; }
count() { sed -n "s/^q_attempts_total{queue=\"$1\",outcome=\"$2\"} //p" samples; }

fresh
exits 0 'an empty file' prom
exits 0 '... is text of the format' strict
is "$(of q_build_info)" '{version="0.1.0"} 1' '... that says what made it'
is "$(grep -c q_attempts samples)" 0 '... and counts nothing'
is "$(sql "SELECT count(*) FROM sqlite_schema WHERE name = 'q_total'")" 0 '... nor remembers anything'

# ---- numbers ----

qset queue.mail.slo=30s/99.9% credential.partner.expires=2027-01-31
ledger <<'END'
3 mail 0 100 done done
2 mail 100 101 failed failed
1 mail 101 5000 failed dead
1 mail 30000 5000 lost failed
1 mail 30001 5000 lost dead
4 mail 100000000 7 deferred pending
5 mail 9 9 released pending
6 mail 9 9 superseded done
7 other 250 1 done done
END
qadd -q mail a
qadd -q --in 1h mail b
qadd -q -e ana mail c
qadd -q mail d
qclaim mail >made
qpause other
export Q_NOW=2026-06-02T12:00:01.500Z
prom
exits 0 'a file that is in use' strict
is "$(of q_attempts_total)" '{queue="mail",outcome="done"} 3
{queue="mail",outcome="failed"} 2
{queue="mail",outcome="lost"} 1
{queue="mail",outcome="dead"} 2
{queue="mail",outcome="deferred"} 4
{queue="mail",outcome="released"} 5
{queue="mail",outcome="superseded"} 6
{queue="other",outcome="done"} 7
{queue="other",outcome="failed"} 0
{queue="other",outcome="lost"} 0
{queue="other",outcome="dead"} 0
{queue="other",outcome="deferred"} 0
{queue="other",outcome="released"} 0
{queue="other",outcome="superseded"} 0' 'each attempt, once'
is "$(of q_late_total | tr '\n' ' ')" '{queue="mail"} 5 {queue="other"} 0 ' 'those past the target'
is "$(of q_wait_seconds_bucket | grep mail | sed 's/.*le=//' | tr -d '}"' | tr '\n' ,)" '0.1 5,0.3 6,1 6,3 6,10 6,30 7,60 8,120 8,300 8,900 8,3600 8,14400 8,86400 8,+Inf 12,' \
    'lateness by steps, those that began'
is "$(of q_wait_seconds_sum | grep mail)" '{queue="mail"} 400060.302' '... and their sum'
is "$(of q_run_seconds_bucket | grep mail | sed 's/.*le=//' | tr -d '}"' | head -n 5 | tr '\n' ,)$(of q_run_seconds_sum | grep mail)" '0.1 3,0.3 5,1 5,3 5,10 6,{queue="mail"} 5.502' \
    'time at work, of those that ran to their end'
is "$(of q_jobs | grep mail | sed 's/.*state=//' | tr '\n' ,)" '"cancelled"} 0,"claimed"} 1,"dead"} 0,"done"} 0,"failed"} 0,"pending"} 3,' 'jobs by state'
is "$(of q_jobs_due)$(of q_oldest_due_seconds)" '{queue="mail"} 2
{queue="other"} 0{queue="mail"} 1.500
{queue="other"} 0.000' 'what could be claimed now'
is "$(of q_target_seconds)$(of q_objective_ratio)" '{queue="mail"} 30.000{queue="mail"} 0.999' 'the target'
is "$(of q_queue_paused | tr '\n' ' ')" '{queue="mail"} 0 {queue="other"} 1 ' 'pauses'
is "$(of q_credential_expires_timestamp_seconds)" '{name="partner"} 1801353600.000' 'credentials'
is "$(of q_db_bytes | cut -d' ' -f2)" "$(wc -c <q.db | tr -d ' ')" 'the size of the file'
write "$(cat "$t/../lib/poll.sql"); INSERT INTO q_poll(name, gen, config) VALUES('orders', 1, 'x');
INSERT INTO q_poll_run(name, started_ms, finished_ms, outcome, exit, pages, items, fresh, repeated, late, future, bytes, waited_ms)
 SELECT 'orders', 1000 * column1, 1000 * column1, column2, 0, 1, 0, 0, 0, 0, 0, 0, 0 FROM (VALUES(1, 'new'), (2, 'unmodified'), (3, 'failed'))"
prom
is "$(of q_poll_last_success_timestamp_seconds)" '{name="orders"} 2.000' 'sources'
exits 0 '... of the format, too' strict

# ---- they only grow ----

cp samples before
write 'DELETE FROM q_attempt WHERE id % 2'
prom
is "$(grep -E '^q_(attempts|wait|run|late)' samples)" "$(grep -E '^q_(attempts|wait|run|late)' before)" 'deleted attempts stay counted'
echo '1 mail 0 1 done done' | ledger
prom
is "$(count mail done)" 4 '... new ones are added'
prom
is "$(count mail done)" 4 '... once'
write 'DELETE FROM q_attempt'
prom
is "$(count mail done) $(count other done)" '4 7' 'all of them deleted'
echo '2 mail 0 1 done done' | ledger
prom
is "$(count mail done)" 6 '... ids that come again are counted'
seq 2500 | sed 's/.*/1 bulk & 1 done done/' | ledger
prom
is "$(count bulk done) $(of q_wait_seconds_sum | grep bulk)" '2500 {queue="bulk"} 3126.250' 'more than a page'
qlate --prom >one & one=$!
qlate --prom >two & two=$!
echo '5 bulk 0 1 done done' | ledger
wait "$one" "$two"
prom
is "$(count bulk done)" 2505 'two at the same time count each once'

# ---- files ----

exits 0 'a file for an exporter' qlate --prom -o q.prom
is "$(cat out err)$(stat -c %a q.prom)" 644 '... silently; others may read it'
(umask 077; qlate --prom -o q.prom)
is "$(stat -c %a q.prom)" 644 '... whatever the umask'
is "$(sed 's/{.*//' q.prom | sort -u | cksum)" "$(sed 's/{.*//' prom.txt | sort -u | cksum)" '... the same'
is "$(find . -name 'q.prom?*')" '' '... nothing else is left'
ino=$(stat -c %i q.prom)
exec 5<q.prom
qadd -q mail more
qlate --prom -o q.prom
is "$([ "$ino" != "$(stat -c %i q.prom)" ] && cat <&5 | tail -n 1 | cut -c1-20)" 'q_wait_seconds_count' 'who reads the old one reads it to its end'
exec 5<&-
exits 74 'a disk that is full' qlate --prom -o /dev/full
exits 73 'no folder' qlate --prom -o none/q.prom
is "$(cat err)" 'qlate: none/q.prom: cannot be made: No such file or directory; its folder must be there, and yours to write to' '... is told'
exits 66 'no queue file' qlate -d none.db --prom

# ---- without permission to write ----

echo '9 mail 0 1 done done' | ledger
qadd -q other x
prom
echo '3 mail 0 1 done done' | ledger
qadd -q other x		# a shell that leaves last takes the log away, and only a writer can make it anew
cp "$(command -v qlate)" .
chmod 755 .
chmod 644 q.db*
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nowhere ./qlate --prom >prom.txt 2>err
	is "$?$(cat err)" 0 'somebody who may only read'
	exits 0 '... gets text' strict
	is "$(count mail done)" 18 '... with the same numbers'
fi

# ---- hostile names ----

fresh
write "INSERT INTO q_attempt(job, generation, attempt, fence, queue, type, due_ms, started_ms, finished_ms, outcome, state)
 SELECT 1, 1, 1, 1, CAST(x'225c0a1bffe280ae7d2031' AS TEXT), '', -9223372036854775808, 9223372036854775807, $noon, 'done', 'done'"
prom
exits 0 'a name and times of another program' strict
is "$(of q_late_total)" '{queue="\"\\\\x0a\\x1b\\xff\\u{202e}} 1"} 0' '... is escaped'
is "$(of q_wait_seconds_count)" '{queue="\"\\\\x0a\\x1b\\xff\\u{202e}} 1"} 1' '... and counted'

done_testing
