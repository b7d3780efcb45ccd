#!/usr/bin/perl
# The plan of every SQL statement in lib/: an index for each, no table read through, nothing sorted.
use strict;
use warnings;
use File::Basename 'dirname';
use File::Temp 'tempdir';
use Test::More;

my $t = dirname(__FILE__);
my $dir = tempdir('q-test.XXXXXX', TMPDIR => 1, CLEANUP => 1);
delete @ENV{grep /^Q_/, keys %ENV};
$ENV{LC_ALL} = 'C';

sub slurp { open my $f, '<', $_[0] or die "$_[0]: $!"; local $/; <$f> }
sub sqlite {		# standard input, database: standard output
	my ($sql, $db) = @_;
	open my $f, '>', "$dir/sql" or die;
	print $f $sql;
	close $f or die;
	my $out = `sqlite3 -bail '$db' <'$dir/sql'`;
	die "sqlite3: $?" if $? != 0;
	return $out;
}

my (%sql, %file);
for my $c (glob "$t/../lib/*.c") {
	my $text = slurp($c);
	next if $c =~ /(schema|check)\.c$/ || $text !~ /db_prepare\(/;	# check.c is to read it all
	my %found = split /\0/, `perl '$t/statements.pl' '$c'`;
	delete @found{grep $found{$_} !~ /^(SELECT|INSERT|UPDATE|DELETE|WITH|PRAGMA)\b/, keys %found};
	$c = (split m{/}, $c)[-1];
	for my $name (keys %found) {
		$sql{"$c $name"} = $found{$name};
		$file{$name} = $c;
	}
	my %used = map { $_ => 1 } grep /^[A-Z_]{2,}$/, map { split /\W+/ } $text =~ /db_prepare\(([^;]*)\);/g;
	delete $used{NULL};
	is(join(' ', grep !exists $found{$_}, sort keys %used), '', "$c: each statement that is prepared by name is looked at");
}
cmp_ok(scalar keys %sql, '>=', 30, 'statements were found');

# The plan of all statements: name => its lines.  The tables stand in their final form in the file $db.
sub plans {
	my ($db) = @_;
	my (%plan, $name);
	my @names = grep $sql{$_} !~ /^PRAGMA/, sort keys %sql;
	for (split /\n/, sqlite(join('', map { "SELECT '## $_';\nEXPLAIN QUERY PLAN $sql{$_};\n" } @names), $db)) {
		if (/^## (.*)/) { $name = $1; $plan{$name} = [] }
		elsif (!/^QUERY PLAN$/) { s/^[ |`-]+//; push @{$plan{$name}}, $_ }
	}
	return \%plan;
}

# What is not an index seek has a name and a reason.
my %exempt = (
	'job.c REBOOT' => [ 'SCAN q_job USING INDEX q_job_lease' ],	# live claims, once a boot
	'claim.c LIVE' => [ 'SCAN (subquery-1)' ],			# as many live claims as the cap
	'backfill.c DEPTH' => [ 'SCAN (subquery-2)' ],			# as many as it waits for
	'sync.c CROWD' => [ 'SCAN (subquery-1)' ],			# as many as may be remembered, once a run
	'rate.c REBOOT' => [ 'SCAN q_rate' ],				# buckets in use, once a boot
	'setting.c ALL' => [ 'SCAN q_setting' ],			# it is to print them all
	(map { ("db_sqlite.c $_" => [ 'SCAN sqlite_schema' ]) } qw(HAS_OURS HAS_OUTBOX OBJECT)),	# qinit, qcheck
	'db_sqlite.c OBJECTS' => [ 'SCAN sqlite_schema', 'USE TEMP B-TREE FOR ORDER BY' ],	# qcheck
	'purge.c NEWEST' => [ 'SCAN CONSTANT ROW' ],
	'purge.c OLD_RUNS' => [ 'SCAN q_purge' ],	# once a run: a row a queue and day
	'purge.c USUALLY' => [ 'SCAN (subquery-1)', 'USE TEMP B-TREE FOR ORDER BY' ],	# thirty rows
	'db_sqlite.c HOLDS' => [ 'SCAN CONSTANT ROW', map { "SCAN $_" } qw(q_job q_body q_key q_attempt) ],	# a backup reads it all
	'hold.c CLEAR' => [ 'SCAN q_hold' ],				# live holds
	'hold.c REBOOT' => [ 'SCAN q_hold' ],				# once a boot
	'alarm.c HEADS' => [ 'SCAN (subquery-1)' ],			# the first 5000
	'alarm.c PUT_BACK' => [ 'SCAN (subquery-1)' ],			# the first 1000
	'alarm.c BEHIND' => [ 'SCAN (subquery-1)' ],			# the first 100
	'alarm.c DEAD' => [ 'SCAN (subquery-1)' ],			# the first 1000
	'alarm.c OVER' => [ 'SCAN (subquery-1)' ],			# the first 1000
	'ledger.c BLOCKED' => [ 'SCAN (subquery-1)' ],			# the first 1000
	'total.c STORED' => [ 'SCAN q_total' ],				# 38 numbers a queue, to print them all
	'list.c COUNTS' => [ 'SCAN CONSTANT ROW' ],			# no table at all
);
# What the hot path rests on.  PICK looks at the rows, too: those that it finds are written next.
my %want = (
	'claim.c PICK' => [ 'SEARCH q_job USING INDEX q_job_ready (queue=? AND priority=? AND ready_ms<?)' ],
	'claim.c PICK_TYPE' => [ 'SEARCH q_job USING INDEX q_job_type (queue=? AND type=? AND priority=? AND ready_ms<?)' ],
	'claim.c PICK_UNLOCKED' => [ 'SEARCH q_job USING INDEX q_job_ready (queue=? AND priority=? AND ready_ms<?)', 'CORRELATED SCALAR SUBQUERY 1',
	    'SEARCH q_hold USING PRIMARY KEY (kind=? AND name=?)' ],
	'claim.c EXPIRED' => [ 'SEARCH q_job USING INDEX q_job_lease (queue=? AND lease_ms<?)' ],
	'claim.c NEXT' => [ 'SEARCH q_job USING COVERING INDEX q_job_ready (queue=? AND priority=? AND ready_ms>?)' ],
	'claim.c NEXT_TYPE' => [ 'SEARCH q_job USING COVERING INDEX q_job_type (queue=? AND type=? AND priority=? AND ready_ms>?)' ],
	'claim.c NEXT_LEASE' => [ 'SEARCH q_job USING COVERING INDEX q_job_lease (queue=? AND lease_ms>?)' ],
	'lock.c BUSY' => [ 'SEARCH q_job USING COVERING INDEX q_job_lease (queue>?)' ],
	'lock.c CLAIMED' => [ 'SEARCH q_job USING INDEX q_job_head (queue=? AND entity=?)' ],
	'job.c KEY' => [ 'SEARCH k USING PRIMARY KEY (queue=? AND key=?)', 'SEARCH j USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN',
	    'SEARCH b USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN' ],
	'job.c BACK' => [ 'SEARCH q_job USING INDEX q_job_head (queue=? AND entity=?)', 'SCALAR SUBQUERY 1',
	    'SEARCH q_job USING INDEX q_job_entity (queue=? AND entity=?)' ],
	'job.c FRONT' => [ 'SEARCH q_job USING INTEGER PRIMARY KEY (rowid=?)', 'SCALAR SUBQUERY 1',
	    'SEARCH q_job USING INDEX q_job_entity (queue=? AND entity=?)', 'SCALAR SUBQUERY 2', 'SEARCH q_job USING INDEX q_job_head (queue=? AND entity=?)' ],
	'claim.c TAKE' => [ 'SEARCH q_job USING INTEGER PRIMARY KEY (rowid=?)' ],
	(map { ("job.c $_" => [ 'SEARCH q_job USING INTEGER PRIMARY KEY (rowid=?)' ]) } qw(RENEW ATTEMPT SETTLE WHO)),
	(map { ("backfill.c $_" => [ 'SEARCH q_window USING INDEX q_window_open (name=? AND state=? AND start>?)' ]) } qw(FIRST LAST)),
	'once.c OPEN' => [ 'SEARCH q_once USING COVERING INDEX q_once_started (state=? AND key>?)' ],	# not all that is done
	'job.c HELD' => [ 'SEARCH j USING INTEGER PRIMARY KEY (rowid=?)', 'SEARCH a USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN' ],
);
# Lists go on behind the last row by a seek, also among rows that are level.
my %seek = (
	'list.c CLAIMED' => [ 'q_job_lease (queue=? AND lease_ms=? AND rowid>?)', 'q_job_lease (queue=? AND lease_ms>?)' ],
	'list.c READY' => [ 'q_job_ready (queue=? AND priority=? AND ready_ms=? AND rowid>?)', 'q_job_ready (queue=? AND priority=? AND ready_ms>?)' ],
	'list.c BLOCKED' => [ 'q_job_entity (queue=? AND entity=? AND event_ms=? AND rowid>?)', 'q_job_entity (queue=? AND (entity,event_ms)>(?,?))' ],
	'job.c OF_ENTITY' => [ 'q_job_entity (queue=? AND entity=? AND event_ms=? AND rowid>?)', 'q_job_entity (queue=? AND entity=? AND event_ms>?)' ],
	'list.c DEAD' => [ 'q_job_dead (queue=? AND rowid>?)' ],
);

# What is wrong with the plans of a file: one line each.
sub faults {
	my ($plan) = @_;
	my @faults;
	for my $name (sort keys %$plan) {
		my %allowed = map { $_ => 1 } @{$exempt{$name} // []};
		for (grep !$allowed{$_}, @{$plan->{$name}}) {
			push @faults, "$name: $_" if /\bSCAN\b|TEMP B-TREE|AUTOMATIC|MULTI-INDEX|BLOOM/;
		}
	}
	for my $name (sort keys %want) {
		my ($got, $want) = map { join '; ', @{$_ // []} } $plan->{$name}, $want{$name};
		push @faults, "$name: $got, not $want" if $got ne $want;
	}
	for my $name (sort keys %seek) {
		my @got = map { /^SEARCH j USING INDEX (.*)/ ? $1 : () } @{$plan->{$name} // []};
		push @faults, "$name: @got, not @{$seek{$name}}" if "@got" ne "@{$seek{$name}}";
	}
	return join "\n", @faults;
}

my $schema = join "", map slurp("$t/../lib/$_.sql"), qw(schema poll hook cron once purge late);
sqlite($schema, "$dir/empty.db");
my $plan = plans("$dir/empty.db");
is(faults($plan), '', 'an empty file: seeks alone');
is_deeply([ sort keys %$plan ], [ grep $sql{$_} !~ /^PRAGMA/, sort keys %sql ], '... for each statement');
ok(exists $sql{$_}, "the exemption $_ is needed") for sort keys %exempt;
is(join("\n", @{$plan->{$_}}), join("\n", @{$exempt{$_}}), "... and is all that it does: $_") for 'job.c REBOOT';

# The same in a file with a lopsided crowd, and when somebody has run ANALYZE over it: an application in whose file the tables lie.
my $outbox = slurp("$t/../lib/outbox.sql");
sqlite("$schema\n$outbox" . <<'END', "$dir/full.db");
BEGIN;
CREATE TABLE n(i INTEGER PRIMARY KEY);
WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 20000) INSERT INTO n SELECT i FROM c;
-- done, all of one queue
INSERT INTO q_job(id, queue, event_ms, due_ms, added_ms, state, finished_ms) SELECT i, 'mail', 1, 1, 1, 'done', 1 FROM n;
-- one claimable, a thousand delayed, a thousand behind one entity, some dead
INSERT INTO q_job(queue, event_ms, due_ms, ready_ms, added_ms) VALUES('mail', 1, 1, 1, 1);
INSERT INTO q_job(queue, type, event_ms, due_ms, ready_ms, added_ms) SELECT 'mail', 't', 99, 99, 99, 1 FROM n WHERE i <= 1000;
INSERT INTO q_job(queue, entity, event_ms, due_ms, added_ms, head, ready_ms) SELECT 'mail', 'ana', i, 1, 1, CASE i WHEN 1 THEN 1 END, CASE i WHEN 1 THEN 1 END FROM n WHERE i <= 1000;
INSERT INTO q_job(queue, event_ms, due_ms, added_ms, state, finished_ms) SELECT 'mail', 1, 1, 1, 'dead', 1 FROM n WHERE i <= 10;
INSERT INTO q_job(queue, event_ms, due_ms, added_ms, state, lease_ms) SELECT 'mail', 1, 1, 1, 'claimed', i FROM n WHERE i <= 500;
INSERT INTO q_body SELECT id, x'61' FROM q_job;
INSERT INTO q_key SELECT 'mail', 'k' || i, i, 0 FROM n;
COMMIT;
END
is(faults(plans("$dir/full.db")), '', 'a full file: the same');
sqlite('ANALYZE;', "$dir/full.db");
is(faults(plans("$dir/full.db")), '', '... and with the statistics of ANALYZE');

# How much is read, in steps of SQLite's machine: the same beside twenty thousand others as beside none.
sub steps {
	my ($db, $name) = @_;
	my $out = sqlite(join("\n", '.parameter init', q(.parameter set :queue "'mail'"), '.parameter set :priority 5', '.parameter set :now 50',
	    '.parameter set :boot 0', '.parameter set :n 10', '.stats on', "$sql{$name};"), $db);
	return $out =~ /^Virtual Machine Steps: *(\d+)/m ? $1 : die "no count in: $out";
}
sqlite("$schema INSERT INTO q_job(id, queue, event_ms, due_ms, ready_ms, added_ms) VALUES(20001, 'mail', 1, 1, 1, 1);", "$dir/one.db");
# As the full file: a second claimable job, and behind the cut a delayed and a claimed one.
sqlite(<<'END', "$dir/one.db");
INSERT INTO q_job(queue, entity, event_ms, due_ms, added_ms, head, ready_ms) VALUES('mail', 'ana', 1, 1, 1, 1, 1);
INSERT INTO q_job(queue, event_ms, due_ms, added_ms, ready_ms) VALUES('mail', 1, 99, 1, 99);
INSERT INTO q_job(queue, event_ms, due_ms, added_ms, state, lease_ms) VALUES('mail', 1, 99, 1, 'claimed', 1);
END
for my $name ('claim.c PICK', 'claim.c NEXT', 'claim.c EXPIRED') {
	my ($few, $many) = (steps("$dir/one.db", $name), steps("$dir/full.db", $name));
	cmp_ok($few, '>', 5, "$name does something");
	is($many, $few, '... and no more in a crowd of done, delayed, waiting and claimed jobs');
}

# The control: without any one index the faults are seen.
for my $index ($schema =~ /^CREATE (?:UNIQUE )?INDEX IF NOT EXISTS (\w+)/mg) {
	my $db = "$dir/without-$index.db";
	sqlite("$schema\nDROP INDEX $index;", $db);
	isnt(faults(plans($db)), '', "without $index the plans are found wanting");
}
done_testing();
