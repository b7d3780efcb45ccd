#!/usr/bin/perl
# q-schema(5) and q-json(5) name what is there, all of it, and nothing else; and what they show works.
use strict;
use warnings;
BEGIN { require($0 =~ s{[^/]*$}{programs.pl}r =~ s{^(?!/)}{./}r) }
our ($t, $dir, $event);
use JSON::PP;
use Test::More;

# ---- a file with every table, and something to print of each kind ---------------

spew('s.json', '{"name":"s","url":"http://127.0.0.1:1/","insecure_http":true,"query":{"since":"{cursor}"},"items":"","id":"/id","cursor":"/at","next":"none","start":"all",'
    . '"queue":"in","retries":0,"max_wait":"0"}');
spew('table', "nightly 30 2 * * * tz=Europe/Berlin reports\n");
spew('hooks', "/gh github key queue=hooks\n");
spew('key', "a secret of the tests\n");
chmod 0600, 'key';
output('qinit', '--outbox');
{
	local $ENV{Q_NOW} = '2026-04-01T12:00:00Z';
	output('sh', '-c', 'qadd -q old x && qwork old -- printf "\377" && qcron table');
}
output('sh', '-c', 'qadd -q -k order-7 mail \'{"to":"ana"}\' && qadd -q mail "$(printf "\377")" && qclaim mail >claim && qdone -r "$(printf "\377")" - <claim && qadd -q dead x && qclaim dead | qfail --dead -m refused - &&
    qonce once -- printf "\377"; qpoll s.json 2>err; qbackfill --name n --from 1 --to 3 --step 1 -- true; qlate --prom >prom');
store_event('first');

# ---- q-schema(5) -----------------------------------------------------------------

# The names of each list: heading => names, in the order of the page; .It may have several, parted by " , " or " | ".
sub lists {
	my ($page) = @_;
	my (%of, $at);
	for (split /\n/, slurp("$t/../man/$page")) {
		$at = $1 if /^\.S[hs] (.*)/;
		push @{$of{$at}}, split / [,|] /, $1 if /^\.It Li (.*)/;
	}
	return \%of;
}

output('qpurge', '-q');
my $tables = lists('q-schema.5');
delete @{$tables}{grep { !/^q_/ } keys %$tables};
my %columns;
for (split /\n/, sql("SELECT m.name, c.name FROM sqlite_schema m, pragma_table_xinfo(m.name) c WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite%'")) {
	my ($table, $column) = split /\|/;
	push @{$columns{$table}}, $column;
}
is(join(' ', sort keys %$tables), join(' ', sort keys %columns), 'q-schema(5) has each table, and no other');
is(join(' ', sort @{$tables->{$_} // []}), join(' ', sort @{$columns{$_}}), "... and the columns of $_") for sort keys %columns;
my ($version) = slurp("$t/../man/q-schema.5") =~ /^This page is about version (\d+)$/m;
is($version, sql("SELECT value FROM q_meta WHERE name = 'version'"), '... of this version');

# Its words for a state, an outcome and so on are those that the file admits.
my $schema = slurp("$t/../man/q-schema.5");
for my $table (qw(q_job q_once q_window)) {
	my ($check) = sql("SELECT sql FROM sqlite_schema WHERE name = '$table'") =~ /CHECK\((state = .*?)\)/s;
	my ($text) = $schema =~ /^\.Ss $table\n.*?^\.It Li state\n(.*?)^\.It/ms;
	is(join(' ', sort $text =~ /^\.Sq (\w+)/mg), join(' ', sort $check =~ /'(\w+)'/g), "... and the states of $table");
}

# ---- q-json(5) -------------------------------------------------------------------

my $json = lists('q-json.5');
my $some = join '; ', map { "qls -j $_" } split /\n/, sql("SELECT min(id) FROM q_job GROUP BY queue UNION SELECT max(id) FROM q_job GROUP BY queue");

sub is_names {
	my ($heading, $names, $command) = @_;
	my %have;
	for my $line (split /\n/, output('sh', '-c', $command)) {
		my $o = eval { decode_json($line) } or return fail("$command: not JSON: $line");
		$have{$_} = 1 for keys %$o;
	}
	is(join(' ', sort keys %have), join(' ', sort @$names), "q-json(5), $heading: what is printed is named, and what is named printed");
	delete $json->{$heading};
}

my $record = delete $json->{'THE JOB RECORD'};
is_names('the job record', $record, 'qls -j --state all; qadd -n -j mail x');
is_names('of qclaim', [ grep { $_ ne 'payload_base64' && $_ ne 'result_base64' } @$record ], 'qadd -q claims x; qclaim claims');
is_names('qls -j ID', [ @$record, @{$json->{'qls -j ID'}} ], $some);
my ($history) = slurp("$t/../man/q-json.5") =~ /^\.It Li history\n(.*?)^\.El/ms;
is_names('the history', [ map { split / [,|] / } $history =~ /^\.Li ([a-z0-9_, |]*[a-z0-9_])/mg ],
    "($some) | jq -c '.history[]'");

my @read = slurp("$t/../lib/record.c") =~ /^static const char \*const names\[NAMES\] = \{(.*?)\};/ms;
is(join(' ', sort map { @{delete $json->{$_}} } 'qadd --jsonl', 'Operand -'), join(' ', sort $read[0] =~ /"(\w+)"/g), 'q-json(5) has each name that a record is read for');
my ($asked) = slurp("$t/../cmd/qcall.c") =~ /NAMES\[\] = \{(.*?)\}/s;
is(join(' ', sort @{delete $json->{qcall}}), join(' ', sort $asked =~ /"(\w+)"/g), '... and of the payload of qcall');

for (	[ 'qadd -j', 'qadd -j mail x' ],
	[ 'qls -j --counts', 'qls -j --counts' ],
	[ 'qlate -j', 'qlate -j' ],
	[ 'qcheck -j', 'qcheck -j --quick || [ $? = 1 ]' ],
	[ 'qlock -j --list', 'qlock name -- qlock -j --list' ],
	[ 'qonce -j --show', 'qonce -j --show once; qonce name -- true; qonce -j --show name' ],
	[ 'qpoll -j --status', 'qpoll -j --status s.json' ],
	[ 'qpoll -j --history', 'qpoll -j --history s.json' ],
	[ 'qbackfill -j --status', 'qbackfill -j --status --name n' ],
	[ 'qbackfill -j --plan', 'qbackfill -j --plan --name n' ],
	[ 'qcron -j --next', 'qcron -j --next table; qcron -j -n 2026-06-01T00:00:00Z 2026-06-03T00:00:00Z table' ],
	[ 'qhook --verify', "qhook --verify hooks $event" ],
	[ 'qpurge -j', 'qpurge --undo -j' ]) {
	is_names($_->[0], $json->{$_->[0]}, $_->[1]);
}
is(join(', ', sort keys %$json), '', 'q-json(5) tells of nothing that was not tried here');

# Each program that has -j stands there.
my $page = slurp("$t/../man/q-json.5");
for my $p (our @PROGS) {
	like($page, qr/\b$p -j|^\.Xr $p 1/m, "... and of $p") if slurp("$t/../cmd/$p.c") =~ /"json", 0/;
}

# ---- the examples ----------------------------------------------------------------

output('sqlite3', 'app.db', "PRAGMA journal_mode=WAL; CREATE TABLE orders(id, name)");
output('qinit', '--into', 'app.db');
output('qset', 'queue.mail.slo=30s/99%');
for my $name (qw(q-schema.5 q-json.5)) {
	my $text = slurp("$t/../man/$name");
	my $n = 0;
	while ($text =~ /^\.Bd -literal -offset indent\n(.*?)^\.Ed$/msg) {
		spew('block', $1 =~ s/\\e/\\/gr);
		is(system('bash -euo pipefail block >block.out 2>block.err') . slurp('block.err'), '0', "$name, example " . ++$n . ': runs') or diag(slurp('block'));
		like(slurp('block.out'), qr/^mail\|done\|1\n.*^done\|2026-06-02 12:00:00\n\d+\|refused\|x\n/ms, '... and answers') if "$name$n" eq 'q-schema.51';
	}
	ok($n >= 2, "$name has two examples");
}
is(sql('SELECT payload FROM q_outbox', 'app.db'), '{"to":"ana","order":7}', 'the application has added its job');
done_testing;
