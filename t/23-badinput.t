#!/usr/bin/perl
# Bad input, one row a case: the command, its standard input, the exit status and how the one line on
# standard error begins.  Nothing on standard output, and every row of the file is as it was.
use strict;
use warnings;
use Cwd qw(abs_path);
use Digest::MD5 qw(md5_hex);
use IPC::Open2;
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use Test::More;
use Time::HiRes qw(stat);

# fuse(FOLDER): mounts a file system that holds an empty q.db, and shows what the programs say to it.
# Just enough of the protocol of linux/fuse.h.
sub fuse {
	my ($where) = @_;
	$^F = 255;			# mount(8) inherits it
	open my $dev, '+<:raw', '/dev/fuse' or die "/dev/fuse: $!\n";
	system('mount', '-i', '-t', 'fuse', 'none', $where, '-o', 'rootmode=40000,user_id=0,group_id=0,fd=' . fileno $dev) == 0 or exit 1;
	$^F = 2;
	my $server = fork // die;
	if ($server == 0) {
		my %attr = map { $$_[0] => pack 'Q6 L10', $$_[0], 0, 0, 0, 0, 0, 0, 0, 0, $$_[1], 1, 0, 0, 0, 4096, 0 } [1, 0040755], [2, 0100600];
		alarm 120;
		while (sysread $dev, my $request, 1 << 18) {
			my ($op, $unique, $node) = unpack 'x4 L Q Q', $request;
			my ($error, $reply) = (0, '');
			if ($op == 26) { $reply = pack 'L4 S2 L2 S2 L8', 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, (0) x 8 }		# INIT
			elsif ($op == 3) { $reply = pack('Q L2', 1, 0, 0) . $attr{$node} }				# GETATTR
			elsif ($op == 17) { $reply = pack 'Q5 L10', (1000) x 5, 4096, 255, 4096, (0) x 7 }			# STATFS
			elsif ($op == 1 && substr($request, 40) eq "q.db\0") { $reply = pack('Q4 L2', 2, 0, 1, 1, 0, 0) . $attr{2} }	# LOOKUP
			elsif ($op == 1) { $error = -2 }
			elsif ($op == 2 || $op == 42) { next }								# FORGET
			else { $error = -38 }
			syswrite $dev, pack('L l Q', 16 + length $reply, $error, $unique) . $reply;
		}
		exit;
	}
	close $dev;
	for (['qadd', '-d', "$where/q.db", 'm', 'x'], ['qinit', "$where/new.db"]) {
		my $message = `@$_ 2>&1`;
		print "$$_[0]: ", $? >> 8, " $message";
	}
	kill 'KILL', $server;
	exit;
}
fuse($ARGV[1]) if @ARGV == 2 && $ARGV[0] eq 'fuse';

my $t = abs_path(dirname($0));
my @PROGS = do { open my $f, '<', "$t/../Makefile" or die; map { /^PROGS = (.*)/ ? split / /, $1 : () } <$f> };
delete @ENV{grep { /^Q_/ } keys %ENV};
delete @ENV{qw(XDG_STATE_HOME NO_COLOR)};
umask 022;
my $dir = abs_path(tempdir(CLEANUP => 1));
chdir $dir or die;
@ENV{qw(TZ LC_ALL HOME Q_DB Q_NOW Q_BUSY_TIMEOUT)} = ('UTC', 'C', $dir, "$dir/q.db", '2026-06-02T12:00:00Z', '10ms');

# ---- running a row ----

sub slurp {
	open my $f, '<:raw', $_[0] or return '';
	local $/;
	my $s = <$f>;
	return defined $s ? $s : '';
}

sub spew {
	open my $f, '>:raw', $_[0] or die "$_[0]: $!";
	print $f $_[1];
	close $f or die;
}

# Runs it; the exit status, and what it printed.  A shell starts it: a fork of perl costs more than most of the programs.
open2(my $status, my $shell, 'sh');
sub run {
	my ($o, @cmd) = @_;
	my $env = $o->{env} || {};
	spew('in', $o->{in}) if defined $o->{in};
	unshift @cmd, 'env', map { defined $env->{$_} ? "$_=$env->{$_}" : ('-u', $_) } sort { defined $env->{$a} <=> defined $env->{$b} } keys %$env if %$env;
	print $shell join(' ', map { "'" . s/'/'\\''/gr . "'" } @cmd), defined $o->{in} ? ' <in' : ' </dev/null', " >out 2>err; echo \$?\n";
	chomp(my $code = <$status>);
	return ($code, slurp('out'), slurp('err'));
}

sub output {
	my ($status, $out, $err) = run({}, @_);
	die "@_: $status: $err" if $status ne 0;
	return $out;
}

# All that the queue says.
sub dump_of_queue {
	return join '', `sqlite3 -readonly q.db 2>&1 @{[map { "'SELECT * FROM $_'" } 'sqlite_schema', map { "q_$_" } qw(job body key attempt count meta setting)]}`;
}

# What changes when anybody writes to it.
sub touched {
	return join ' ', map { my @s = stat $_; ($s[1], $s[7], $s[9]) } 'q.db', 'q.db-wal';
}

my ($rows, $before, $touched) = (0);

# row STATUS, START OF THE MESSAGE, COMMAND...; options first: in (standard input), env, file (which must stay, by its bytes).
sub row {
	my $o = ref $_[0] ? shift : {};
	my ($want, $start, @cmd) = @_;
	my $kept = defined $o->{file} && -f $o->{file} && -r _ ? md5_hex(slurp($o->{file})) : '';
	my ($status, $out, $err) = run($o, @cmd);
	my $name = join ' ', @cmd;
	my @wrong;

	push @wrong, "exit $status, not $want" if $status ne $want;
	push @wrong, "standard output: $out" if $out ne '';
	push @wrong, "message: $err not: $start" if substr($err, 0, length $start) ne $start;
	push @wrong, "not one line: $err" if $err !~ /\A[^\n]+\n\z/;
	push @wrong, 'control bytes in the message' if $err =~ /[^ -~\n\x80-\xff]/;
	push @wrong, 'the message is not UTF-8' if !utf8::decode(my $copy = $err);
	if (defined $o->{file}) {
		push @wrong, "$o->{file} changed" if $kept ne '' && md5_hex(slurp($o->{file})) ne $kept;
	} elsif (touched() ne $touched) {
		$touched = touched();
		push @wrong, 'the queue changed' if dump_of_queue() ne $before;
		$before = dump_of_queue();
	}
	$name =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ge;
	$name = substr($name, 0, 60) . '...' if length $name > 70;
	$rows++;
	ok(!@wrong, "$want $name") or diag(map { "$_\n" } @wrong);
}

# ---- the queue that every row must leave as it is ----

output('qinit');
output('qadd', '-k', 'known', 'mail', 'one');			# 1: pending
output('qadd', 'work', 'two');					# 2: claimed
output('qadd', 'work', 'three');				# 3: done
output('qadd', 'work', 'four');					# 4: released, claimed again
my %claim = map { /"id":(\d+),"claim":"([^"]+)"/ ? ($1, $2) : () } split /\n/, output('qclaim', '-c', 9, 'work');
output('qdone', '-r', 'good', $claim{3});
output('qfail', '--release', $claim{4});
my ($again) = output('qclaim', 'work') =~ /"claim":"([^"]+)"/;
my ($live, $done, $stale) = @claim{2, 3, 4};
$before = dump_of_queue();
$touched = touched();
my @q = ('mail', 'x');
my $see = sub { "; see '$_[0] --help'\n" };

# ---- options ----

my %rest = (qinit => ['other.db'], qadd => [@q], qclaim => ['mail'], qrenew => [$live], qdone => [$live],
    qfail => [$live], qls => ['mail'], qwork => ['mail', '--', 'true'], qset => ['queue.mail.rate=1/s'], qpause => ['mail'],
    qcancel => [1], qreplay => ['mail'], qjob => ['nightly', '--', 'true'], qlate => ['mail'], qpoll => ['--status', 's.json'], qrate => ['r'],
    qlock => ['--list'], qonce => ['--list'], qcall => [], qbackfill => ['--status', '--name', 'n'], qbackup => ['copy.db'], qcron => ['table'],
    qhook => ['-L', 'unix:socket', 'hooks'], qcheck => [], qpurge => []);
ok($rest{$_}, "$_ has a row") for @PROGS;
spew('s.json', '{"name":"s","url":"https://example.com/","items":"","id":"/id","cursor":"/at","start":"all","order":"asc","next":"none","queue":"mail","query":{"since":"{cursor}"}}');
spew('table', "c * * * * * mail x\n");
spew('key', "a secret of the tests\n");
chmod 0600, 'key';
spew('hooks', "/gh github key queue=mail\n");
my @OPEN = grep { $_ ne 'qcall' } @PROGS;	# those that open the queue file before anything else
for my $p (@PROGS) {
	my @r = @{$rest{$p}};
	row 64, "$p: unknown option '--bogus'" . $see->($p), $p, '--bogus', @r;
	row 64, "$p: unknown option '-Z'" . $see->($p), $p, '-Z', @r;
	row 64, "$p: unknown option '--databas'; did you mean '--database'?", $p, '--databas', 'x', @r;
	row 64, "$p: unknown option '--databas'; did you mean '--database'?", $p, '--databas=x', @r;
	row 64, "$p: unknown option '--hepl'; did you mean '--help'?", $p, '--hepl', @r;
	row 64, "$p: unknown option '--versio'; did you mean '--version'?", $p, '--versio';
	row 64, "$p: option '--help' takes no value" . $see->($p), $p, '--help=all';
	row 64, "$p: option '-d' needs a value" . $see->($p), $p, '-d';
	row 64, "$p: option '--database' needs a value" . $see->($p), $p, '--database';
	row 64, "$p: unknown option '--a\\x0ab\\x1b[31m'" . $see->($p), $p, "--a\nb\e[31m", @r;
	row 64, "$p: unknown option '-\\x07'" . $see->($p), $p, "-\a", @r;
	row 64, "$p: unknown option '-\\xff'" . $see->($p), $p, "-\xff", @r;
	row 64, "$p: unknown option '--\\xff'" . $see->($p), $p, "--\xff", @r;
}
my %takes = (		# the options that need a value
	qinit => [qw(-m --mode -g --group)],
	qadd => [qw(-k --key -t --type -e --entity -p --priority --in --at --after --tz --jitter --event-time --attempts
	    --window --backoff --batch --expect)],
	qclaim => [qw(-c --count -l --lease -t --type --wait)],
	qrenew => [qw(-l --lease)],
	qdone => [qw(-r --result --count)],
	qfail => [qw(-m --message --in --at --tz --defer)],
	qls => [qw(--state -t --type -k --key -e --entity --older-than --newer-than --reason --limit)],
	qwork => [qw(-P --parallel -l --lease -t --type --limit --grace -c --count)],
	qset => [qw(-f --file)],
);
for my $p (@PROGS) {
	row 64, "$p: option '$_' needs a value" . $see->($p), $p, $_ for @{$takes{$p}};
}
row 64, "qadd: option '--lines' takes no value", 'qadd', '--lines=3', 'mail';
row 64, "qadd: unknown option '-z'", 'qadd', '--lines', '-qzj', 'mail';
row 64, "qadd: unknown option '-z'", 'qadd', 'mail', 'x', '-jz';
row 64, "qadd: option '-k' needs a value", 'qadd', '--json', '-qk';
row 64, "qls: unknown option '-c'", 'qls', '-c', 1;
row 64, "qdone: unknown option '-c'", 'qdone', '-c', 1, $live;
row 64, "qadd: unknown option '--event'; did you mean '--event-time'?", 'qadd', '--event', 'now', @q;
row 64, "qadd: unknown option '--in '", 'qadd', '--in ', '1h', @q;

# ---- operands ----

row 64, 'qadd: no QUEUE', 'qadd';
row 64, 'qadd: no QUEUE', 'qadd', '--lines';
row 64, "qadd: too many operands: 'b'", 'qadd', 'mail', 'a', 'b';
row 64, "qadd: too many operands: 'x'", 'qadd', '--lines', 'mail', 'x';
row 64, "qadd: too many operands: 'a\\x0ab'", 'qadd', '--jsonl', 'mail', "a\nb";
row 64, 'qclaim: no QUEUE', 'qclaim';
row 64, "qwork: the command follows '--' after the queues", 'qwork';
row 64, 'qwork: no QUEUE', 'qwork', '--', 'true';
row 64, "qwork: the command follows '--' after the queues", 'qwork', 'mail';
row 64, "qwork: the command follows '--' after the queues", 'qwork', 'mail', 'true';
row 64, 'qwork: ', 'qwork', 'mail', '--';
row 64, "$_: no CLAIM; '-' reads them from standard input", $_ for qw(qrenew qdone qfail);
row 64, "qinit: too many operands: 'b.db'", 'qinit', 'a.db', 'b.db';
row 64, 'qls: --raw takes one job id', 'qls', '--raw';
row 64, 'qls: --raw takes one job id', 'qls', '--raw', 'mail';
row 64, 'qls: --raw takes one job id', 'qls', '--raw', 1, 2;
row 64, 'qls: --raw takes one job id', 'qls', '-j', '--raw', 1;
row 64, 'qls: ', 'qls', '--raw', '--counts';
row 64, 'qls: a job id takes no filter', 'qls', '--state', 'dead', 1;
row 64, 'qls: a job id takes no filter', 'qls', '--counts', 1;
row 64, 'qls: --counts takes queues only', 'qls', '--counts', '-k', 'known';
row 64, "qls: --state: '$_' is not among", 'qls', '--state', $_ for '', 'running', 'dead,', ',dead', 'Dead', 'dead, done';
row 66, 'qls: no job 99 in ', 'qls', 99;
row 66, 'qls: no job 99 in ', 'qls', '-j', 99;
row 66, 'qls: no job 99 in ', 'qls', '--raw', 99;
row 66, 'qls: no job 9007199254740993 in ', 'qls', '9007199254740993';

# ---- names ----

my @names = ('', ' ', '.hidden', 'a b', 'a/b', 'a:b', "a\nb", "\e[2J", "caf\xc3\xa9", "\xff", '17', '0', '*', 'q' x 65, '@', '..');
for my $name (@names) {
	(my $shown = $name) =~ s/([\x00-\x1f\xff])/sprintf '\\x%02x', ord $1/ge;
	my $bad = "bad queue name '$shown'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number\n";
	row 65, "qadd: $bad", 'qadd', $name, 'x';
	row 65, "qclaim: $bad", 'qclaim', 'work', $name;
	row 65, "qwork: $bad", 'qwork', $name, '--', 'true';
	row 65, "qls: $bad", 'qls', 'mail', $name;
	row 65, "qjob: $bad", 'qjob', $name, '--', 'true';
	row 65, "$_: $bad", $_, $name for qw(qlate qpause);
}
row 65, "qadd: bad queue name '-a'", 'qadd', '--', '-a', 'x';
row 65, "qclaim: bad queue name '-a'", 'qclaim', '--', '-a';
row 65, "qls: bad queue name '18446744073709551617'", 'qls', '18446744073709551617';
my %fault = ('' => 'is empty', "a\nb" => 'has a control byte', "\x7f" => 'has a control byte', "\xc3" => 'is not UTF-8',
    ("\xc3\xa9" x 128) => 'is longer than 255 bytes');
for my $v (sort keys %fault) {
	row 65, "qadd: the $$_[1] $fault{$v}\n", 'qadd', $$_[0], $v, @q for ['-k', 'key'], ['-t', 'type'], ['-e', 'entity'];
	# An unset variable must not look like "nothing to do".
	row 65, "$$_[0]: the type $fault{$v}\n", @$_[0, 1], $v, @{$rest{$$_[0]}} for ['qclaim', '-t'], ['qwork', '-t'], ['qls', '-t'];
	row 65, "qls: the $$_[1] $fault{$v}\n", 'qls', $$_[0], $v for ['-k', 'key'], ['-e', 'entity'];
}

# ---- numbers ----

my @nan = ('', ' ', '-1', '+1', '1.0', '1e3', '0x10', '1 ', "1\n", 'ten', '1k', '9223372036854775808', '99999999999999999999');
sub numbers {
	my ($opt, $lo, $hi, $p, @r) = @_;
	for my $v (@nan, @r && ref $r[0] ? @{shift @r} : ()) {
		(my $shown = $v) =~ s/\n/\\x0a/;
		row 64, "$p: $opt: '$shown' is not a whole number from $lo to $hi" . $see->($p), $p, $opt, $v, @r;
	}
}
numbers '-p', 0, 9, 'qadd', ['10'], @q;
numbers '--attempts', 1, 1000000, 'qadd', ['0', '1000001'], @q;
numbers '--batch', 1, 100000, 'qadd', ['0', '100001'], '--lines', 'mail';
numbers '--expect', 0, '9223372036854775807', 'qadd', '--lines', 'mail';
numbers '-c', 1, 10000, 'qclaim', ['0', '10001'], 'mail';
numbers '--count', 0, '9223372036854775807', 'qdone', $live;
numbers '--limit', 0, '9223372036854775807', 'qls';
numbers '-P', 1, 256, 'qwork', ['0', '257'], 'mail', '--', 'true';
# The ends of what fits: 2^31, 2^53 and 2^63, and one beyond.
for my $v (qw(2147483648 9007199254740992 9223372036854775807 9223372036854775808 18446744073709551616)) {
	row 64, "qadd: $_: '$v' is not a whole number from ", 'qadd', $_, $v, @q for qw(-p --attempts);
	row 64, "qclaim: -c: '$v' is not a whole number", 'qclaim', '-c', $v, 'mail';
	row 64, "qwork: -P: '$v' is not a whole number", 'qwork', '-P', $v, 'mail', '--', 'true';
	row 64, "qcron: -c: '$v' is not a whole number", 'qcron', '--next', '-c', $v, 'table';
	row 64, "qlock: -E: '$v' is not a whole number", 'qlock', '-E', $v, 'x', '--', 'true';
	row 64, "qbackfill: --max-depth: '$v' is not a whole number", 'qbackfill', '--max-depth', $v, '--name', 'n', '--', 'true';
	row 64, "$$_[0]: $$_[1]: '${v}s' longer than 3650d", @$_[0, 1], "${v}s", @$_[2 .. $#$_]
	    for ['qadd', '--in', @q], ['qclaim', '-l', 'mail'], ['qrate', '-w', 'r'], ['qrate', '--block', 'r'], ['qlock', '-w', 'x', '--', 'true'], ['qonce', '-l', 'x', '--', 'true'],
	    ['qjob', '--limit', 'x', '--', 'true'], ['qlate', '--since'], ['qpurge', '--grace'], ['qcall', '--timeout'];
	row 65, "qset: ", 'qset', "queue.mail.$_=$v" for qw(attempts concurrency age keep);
}
numbers '-E', 0, 255, 'qlock', ['256'], 'x', '--', 'true';
numbers '-c', 1, 1000000, 'qcron', ['0', '1000001'], '--next', 'table';
numbers '--limit', 0, '9223372036854775807', 'qpurge';
for my $v ('', 'x', '-1', '1.0', '0', '1e3', '0x1', ' 1', "1\n", '9007199254740992', '9223372036854775808', '99999999999999999999') {
	(my $shown = $v) =~ s/\n/\\x0a/;
	row 65, "qcancel: '$shown' is not a job id such as 42\n", 'qcancel', '--', $v;
	row {in => "$v x\n"}, 65, 'qcancel: stdin:1: neither a job id such as 42 nor a job record with one', 'qcancel', '-' if $v !~ /\n/ && $v ne '';
}
for my $m ('', '0', '600x', '0x1', '888', '0700', '4600', '0666 ', '-600', '0060', '77777777777777777777', 'rw', '0677') {
	row 64, "qinit: -m: '$m' is not a mode such as 0600, 0640 or 0660", 'qinit', '-m', $m, 'other.db';
}

# ---- durations ----

my %span = (
	'' => 'an empty duration', ' ' => 'not a duration', '5' => 'a number needs a unit', '-5s' => 'not a duration', '+5s' => 'not a duration',
	'1.5h' => 'whole numbers only', '1,5h' => 'whole numbers only', '5x' => 'unknown unit', '5M' => 'no unit M', '5 s' => 'unknown unit',
	'1h1h' => 'parts go from', '1s1h' => 'parts go from', '3651d' => 'longer than 3650d', '3650d1ms' => 'longer than 3650d',
	'9223372036854775808ms' => 'longer than 3650d', '99999999999999999999999s' => 'longer than 3650d', 'soon' => 'not a duration', '5s ' => 'not a duration',
	"5s\n" => 'not a duration', '1hour' => 'unknown unit', '1h30' => 'a number needs a unit', '00:30' => 'unknown unit', 'inf' => 'not a duration',
);
sub durations {
	my ($opt, $p, @r) = @_;
	for my $v (sort keys %span) {
		(my $shown = $v) =~ s/\n/\\x0a/;
		row 64, "$p: $opt: '$shown' $span{$v}", $p, $opt, $v, @r;
	}
}
durations '--in', 'qadd', @q;
%span = map { $_ => $span{$_} } '', '5', '-5s', '5x', '3651d', '99999999999999999999999s';
durations $$_[1], $$_[0], @$_[2 .. $#$_] for ['qrate', '-w', 'r'], ['qrate', '--block', 'r'], ['qlock', '-w', 'x', '--', 'true'], ['qlock', '-l', 'x', '--', 'true'],
    ['qonce', '-w', 'x', '--', 'true'], ['qonce', '-l', 'x', '--', 'true'], ['qjob', '-l', 'x', '--', 'true'], ['qjob', '--limit', 'x', '--', 'true'], ['qlate', '--since'],
    ['qpurge', '--grace'], ['qcall', '--timeout'];
durations $_, 'qadd', @q for qw(--jitter --window);
durations $_, 'qclaim', 'mail' for qw(-l --wait);
durations '-l', 'qrenew', $live;
durations $_, 'qfail', $live for qw(--in --defer);
durations $_, 'qls' for qw(--older-than --newer-than);
durations $_, 'qwork', 'mail', '--', 'true' for qw(-l --limit --grace);
row 64, "$$_[0]: -l: a lease of 0 would end at once", $$_[0], '-l', '0', @{$rest{$$_[0]}} for ['qclaim'], ['qrenew'];
row 64, "qwork: -l: a lease is at least 1s", 'qwork', '-l', $_, 'mail', '--', 'true' for '0', '999ms';
row 64, "qadd: --backoff: '$_' is not BASE..CAP, such as 5s..10m", 'qadd', '--backoff', $_, @q for '', '5s', '5s.10m', '5s-10m', '..', '..5s', '5s..';
row 64, "qadd: --backoff: '5..10' a number needs a unit", 'qadd', '--backoff', '5..10', @q;
row 64, "qadd: --backoff: '$_' must not begin above its cap", 'qadd', '--backoff', $_, @q for '10m..5s', '0..0';
row 64, 'qadd: --in: ', 'qadd', '--in', '3650d', '--after', '9999-12-31T00:00:00Z', @q;
row {env => {Q_NOW => '9999-12-31T23:00:00Z'}}, 64, "qfail: --in: '3650d' ends after the year 9999", 'qfail', '--in', '3650d', $live;
row {env => {Q_NOW => '9999-12-31T23:00:00Z'}}, 64, "qfail: --defer: '3650d' ends after the year 9999", 'qfail', '--defer', '3650d', $live;

# ---- times ----

my %time = (
	'' => 'an empty time', ' ' => 'not a time', '5' => 'a bare number', '1780401660' => 'a bare number', '2026' => 'a bare number',
	'10:00' => 'a local time needs a zone', '24:00' => 'no such time of day', '2026-06-02' => 'a date needs a time of day', '2026-06-02 10:00' => 'a local time needs a zone',
	'2026-06-02T10:00:00' => 'a local time needs a zone', 'today 10:00' => 'a local time needs a zone', 'tomorrow 10:00' => 'a local time needs a zone',
	'tomorrow' => 'today and tomorrow are followed by', 'tomorrow  10:00' => 'today and tomorrow are followed by', 'noon' => 'not a time',
	'Today 10:00' => 'not a time', '2026-02-30T10:00:00Z' => 'no such day', '2026-13-01T10:00:00Z' => 'no such day', '2026-06-02T25:00:00Z' => 'no such time of day',
	'2026-06-02T10:60:00Z' => 'no such time of day', '2026-06-02T10:00:60Z' => 'second 60', '2026-06-02T10:00:00+0200' => 'an offset is written',
	'2026-06-02T10:00:00+24:00' => 'no such offset', '2026-06-02T10:00:00 CET' => 'something follows', '2026-06-02T10:00:00Z ' => 'something follows',
	'6/2/2026 10:00' => 'not a date', '02.06.2026 10:00' => 'not a date', '20260602T100000Z' => 'not a date', '2026-6-2T10:00:00Z' => 'not a date', '@' => 'after @ come seconds', '@-1' => 'after @ come seconds', '@1.' => 'after @ come seconds',
	'@1e9' => 'after @ come seconds', '@253402300800' => 'outside the years', '@99999999999999999999' => 'outside the years', '+5' => 'a number needs a unit', '+' => 'an empty duration',
	'-1h' => 'not a time', '10m' => 'a delay starts with a plus', '1969-12-31T23:59:59Z' => 'outside the years', '10000-01-01T00:00:00Z' => 'not a date',
	'9999-12-31T23:59:59-01:00' => 'outside the years', "2026-06-02T10:00:00Z\n" => 'something follows',
);
for my $v (sort keys %time) {
	(my $shown = $v) =~ s/\n/\\x0a/;
	row 64, "qadd: --at: '$shown' $time{$v}", 'qadd', '--at', $v, @q;
}
$time{$_} = 'a time of day is HH:MM, two digits each, and needs a date' for '10:00', '24:00';
for my $v ('', '5', '10:00', '2026-06-02 10:00', 'tomorrow', 'noon', '2026-02-30T10:00:00Z', '@-1', '-1h', '10m', '1969-12-31T23:59:59Z') {
	row 64, "qadd: --after: '$v' $time{$v}", 'qadd', '--after', $v, @q;
	row 64, "qadd: --event-time: '$v' $time{$v}", 'qadd', '--event-time', $v, @q;
	row 64, "qfail: --at: '$v' $time{$v}", 'qfail', '--at', $v, $live;
}
my $gap = 'a clock change skips this local time';
row 64, "qadd: --at: 'out of memory' not a time", 'qadd', '--at', 'out of memory', @q;	# which would be 75, if it were not the person's word
row 64, "qadd: --at: '2026-03-29 02:30' $gap", 'qadd', '--at', '2026-03-29 02:30', '--tz', 'Europe/Berlin', @q;
row 64, "qadd: --at: '2026-03-08T02:00' $gap", 'qadd', '--at', '2026-03-08T02:00', '--tz', 'America/New_York', @q;
row {env => {Q_NOW => '2026-03-28T12:00:00Z'}}, 64, "qadd: --at: 'tomorrow 02:59' $gap", 'qadd', '--at', 'tomorrow 02:59', '--tz', 'Europe/Berlin', @q;
row 64, "qadd: --at: '2011-12-30 12:00' $gap", 'qadd', '--at', '2011-12-30 12:00', '--tz', 'Pacific/Apia', @q;
row 64, "qadd: --after: '2026-03-29 02:30' $gap", 'qadd', '--after', '2026-03-29 02:30', '--tz', 'Europe/Berlin', @q;
row 64, "qadd: --event-time: '2026-03-29 02:30' $gap", 'qadd', '--event-time', '2026-03-29 02:30', '--tz', 'Europe/Berlin', @q;
row 64, "qfail: --at: '2026-03-29 02:30' $gap", 'qfail', '--at', '2026-03-29 02:30', '--tz', 'Europe/Berlin', $live;
row 64, "qadd: --at: '2026-12-24T09:00:00Z' a delay goes only with a time of day", 'qadd', '--in', '1h', '--at', '2026-12-24T09:00:00Z', @q;
my %zone = ('' => 'not the name of a zone', 'Europe/Nowhere' => 'unknown zone', 'CET5CEST' => 'unknown zone', '/etc/localtime' => 'not the name of a zone',
    '../localtime' => 'not the name of a zone', ':UTC' => 'not the name of a zone', 'right/UTC' => 'a zone that counts leap seconds', 'Europe' => '',
    'zone.tab' => 'not a time zone', "UTC\n" => 'not the name of a zone', 'Europe/Berlin ' => 'not the name of a zone', '+02:00' => 'not the name of a zone');
for my $v (sort keys %zone) {
	(my $shown = $v) =~ s/\n/\\x0a/;
	row 64, "qadd: --tz: '$shown' $zone{$v}", 'qadd', '--tz', $v, @q;
	row 64, "qfail: --tz: '$shown' $zone{$v}", 'qfail', '--at', 'tomorrow 10:00', '--tz', $v, $live;
}
row {env => {TZDIR => "$dir/none"}}, 64, "qadd: --tz: 'Europe/Berlin' this system has no time zones", 'qadd', '--tz', 'Europe/Berlin', @q;

# ---- what does not go together ----

row 64, 'qadd: only one of --replace, --strict', 'qadd', '--replace', '--strict', '-k', 'known', @q;
row 64, 'qadd: --jsonl: only one of --lines, -0, --jsonl', 'qadd', '--lines', '--jsonl', 'mail';
row 64, 'qadd: -0: only one of --lines, -0, --jsonl', 'qadd', '--lines', '-0', 'mail';
row 64, 'qadd: -k with many jobs', 'qadd', '-k', 'k', '--lines', 'mail';
row 64, 'qadd: --batch and --expect are for', 'qadd', '--batch', 5, @q;
row 64, 'qadd: --batch and --expect are for', 'qadd', '--expect', 1, @q;
for my $pair (['--in', '1h', '--dead'], ['--in', '1h', '--at', 'now'], ['--dead', '--release'], ['--defer', '1h', '--release'], ['--in', '1h', '--in', '2h']) {
	row 64, 'qfail: only one of --in, --at, --dead, --defer, --release', 'qfail', @$pair, $live;
}
row 64, 'qfail: ', 'qfail', '--tz', 'UTC', $live;
row 64, 'qinit: --into: mode and group', 'qinit', '--into', '-m', '0660', 'q.db';
row 64, 'qinit: --into: mode and group', 'qinit', '--into', '-g', '0', 'q.db';

# ---- payloads ----

my $big = 'x' x (1 << 20);
row {in => ''}, 65, 'qadd: the payload is empty; did its producer fail? --empty allows it', 'qadd', 'mail';
row {in => ''}, 65, 'qadd: the payload is empty', 'qadd', 'mail', '-';
row 65, 'qadd: the payload is empty', 'qadd', 'mail', '';
row {in => "$big."}, 65, 'qadd: the payload has more than 1048576 bytes', 'qadd', 'mail';
row {in => "a\n$big.\nb\n"}, 65, 'qadd: stdin:2: the record has more than 1048576 bytes', 'qadd', '--lines', 'mail';
row {in => "a\0$big.\0b\0"}, 65, 'qadd: stdin:2: the record has more than 1048576 bytes', 'qadd', '-0', 'mail';
row {in => "{\"payload\":\"$big.\"}"}, 65, 'qadd: stdin:1: the payload has 1048577 bytes, the limit is 1048576', 'qadd', '--jsonl', 'mail';
row {in => "a\0\0b"}, 65, 'qadd: stdin:2: the payload is empty', 'qadd', '-0', 'mail';
row 65, 'qadd: the payload is not JSON', 'qadd', '--check-json', 'mail', $_ for '{', "{'a':1}", '{"a":1}{', '[1,]', 'NaN', "\"\xff\"";
row {in => "1\n\n{]\n"}, 65, 'qadd: stdin:3: the payload is not JSON', 'qadd', '--check-json', '--lines', 'mail';
row 65, "qadd: key 'known' already holds job 1 with another payload", 'qadd', '--strict', '-k', 'known', 'mail', 'two';
row {in => join '', map { $_ == 57 ? "{\"payload\":\n" : "{\"payload\":$_}\n" } 1 .. 100}, 65, 'qadd: stdin:57: JSON ends too early', 'qadd', '--jsonl', 'mail';
row {in => join '', map { $_ == 57 ? "{\"payload\":1,\"key\":\"\"}\n" : "{\"payload\":$_}\n" } 1 .. 100}, 65, 'qadd: stdin:57: the key is empty', 'qadd', '--jsonl', 'mail';
row {in => join '', map { $_ == 57 ? "{\"payload\":1,\"in\":\"5\"}\n" : "{\"payload\":$_}\n" } 1 .. 100}, 65, 'qadd: stdin:57: "in": a number needs a unit', 'qadd', '--jsonl', 'mail';
row {in => "{\"payload\":1,\"payload\":2}\n"}, 65, 'qadd: stdin:1: "payload" is given twice', 'qadd', '--jsonl', 'mail';
row {in => "{\"payload\":1,\"k\0ey\":2}\n"}, 65, 'qadd: stdin:1: a NUL byte at byte ', 'qadd', '--jsonl', 'mail';
row {in => "{\"payload\":1}\n"}, 65, 'qadd: stdin:1: no queue; name it in the record or as operand', 'qadd', '--jsonl';
row {in => "{\"payload\":1,\"queue\":\"a\\nb\"}\n"}, 65, "qadd: stdin:1: bad queue name 'a\\x0ab'", 'qadd', '--jsonl';
row {in => '[' x 100000}, 65, 'qadd: stdin:1: JSON nested too deep', 'qadd', '--jsonl', 'mail';
row {in => "{\"payload\":" . '[' x 3000 . ']' x 3000 . '}'}, 65, 'qadd: stdin:1: JSON nested too deep', 'qadd', '--jsonl', 'mail';
row {in => "a\n" x 100001}, 65, 'qadd: more than 100000 jobs are not added as one; --batch N commits every N; nothing was added', 'qadd', '--lines', 'mail';
row {in => "a\nb\n"}, 65, 'qadd: 2 jobs came, 3 were expected; nothing was added', 'qadd', '--expect', 3, '--lines', 'mail';
row {in => "a\nb\n"}, 65, 'qadd: 2 jobs came, 1 were expected; nothing was added', 'qadd', '--expect', 1, '--batch', 1, '--lines', 'mail';
row {in => ''}, 65, 'qadd: 0 jobs came, 1 were expected; nothing was added', 'qadd', '--expect', 1, '--jsonl', 'mail';

# ---- claims ----

my ($id, $fence, $nonce) = split /\./, $live;
my @malformed = ('', ' ', '2', 'x', '2.1', "2.1.", '.1.00000000', '2..00000000', '2.1.0000000', '2.1.000000000', '2.1.ABCDEF00', '2.1.0000000g',
    '0.1.00000000', '-2.1.00000000', '2.0.00000000', '+2.1.00000000', '2.1.00000000.1', "2.1.00000000\n", ' 2.1.00000000', '2.1.00000000 ',
    '9007199254740992.1.00000000', '99999999999999999999.1.00000000', '2.9007199254740992.00000000', '2.99999999999999999999.00000000',
    '0x2.1.00000000', '2.1e0.00000000', "\e[31m", "\xff", '{"claim":"2.1.00000000"}', "$live,$live");
for my $w (@malformed) {
	(my $shown = $w) =~ s/([\x00-\x1f\xff])/sprintf '\\x%02x', ord $1/ge;
	row 65, "$_: '$shown' is not a claim such as 42.3.9f1c2ab0\n", $_, '--', $w for $w eq '' || $w eq 'x' || $w eq '2' ? qw(qdone qfail qrenew) : 'qdone';
}
my $other = sprintf '%d.%d.%08x', $id, $fence, hex($nonce) ^ 1;		# the claim of such a job in another file
for my $p (qw(qdone qfail qrenew)) {
	row 76, "$p: claim $other: not held; job 2 is claimed; nothing changed; see qls 2", $p, $other;
	row 76, "$p: claim 99.1.00000000: no such job in $dir/q.db; nothing changed; see -d and Q_DB", $p, '99.1.00000000';
	row 76, "$p: claim $stale: lost; job 4 is claimed, its last claim is number 2; nothing changed; see qls 4", $p, $stale;
	row 76, "$p: claim 1.1.00000000: lost; job 1 is pending", $p, '1.1.00000000';
	row 76, "$p: claim 9007199254740991.1.00000000: no such job", $p, '9007199254740991.1.00000000';
	row {in => "$stale\n"}, 76, "$p: claim $stale: lost", $p, '-';
	for my $line ('x', '{', '[]', '{}', '{"claim":null}', '{"claim":2}', '{"claim":"x"}', '{"id":2}', "\0", "$live $live", '{"claim":"2.1.00000000"} x') {
		row {in => "$line\n"}, 65, "$p: stdin:1: neither a claim such as 42.3.9f1c2ab0 nor a job record with one", $p, '-';
	}
	row {in => "\n\n\xff\e"}, 65, "$p: stdin:3: neither a claim", $p, '-';
}
row 76, "$_: claim $done: not held; job 3 is done; nothing changed; see qls 3", $_, $done for qw(qfail qrenew);
row 76, "qfail: claim $done: not held; job 3 is done", 'qfail', $_, $done for qw(--dead --release);

# ---- the environment ----

for my $now ('', 'noon', '5', '2026-06-02', '2026-06-02T12:00:00', '2026-02-30T12:00:00Z', '+1h', '@', '1969-01-01T00:00:00Z', "now\n") {
	row {env => {Q_NOW => $now}}, 78, "$_: Q_NOW is not an instant such as 2026-06-02T12:00:00Z", $_, @{$rest{$_}}
	    for $now eq 'noon' ? qw(qadd qclaim qdone qfail qls qwork) : 'qadd';
}
for my $boot ('', 'x', ':', 'x:', 'x:-1', 'x:1.5', 'x:99999999999999999999', 'a b:5') {
	row {env => {Q_BOOT => $boot}}, 78, "$_: the boot clock cannot be read, or Q_BOOT is not ID:MS; next: unset Q_BOOT, or mount /proc", $_, @{$rest{$_}}
	    for $boot eq 'x' ? qw(qclaim qrenew qwork) : 'qclaim';
}
row {env => {Q_BUSY_TIMEOUT => $_}}, 78, "qadd: Q_BUSY_TIMEOUT: '$_' ", 'qadd', @q for '', '5', '-1s', 'long';
for my $p (@OPEN) {
	my @r = $p eq 'qinit' ? () : @{$rest{$p}};
	row {env => {Q_BUSY_TIMEOUT => 'long'}}, 78, "$p: Q_BUSY_TIMEOUT: 'long' not a duration", $p, @r;
	row {env => {Q_DB => undef, HOME => undef}}, 78, "$p: no queue file: neither Q_DB nor HOME is set; next: ", $p, @r;
	row {env => {Q_DB => '', HOME => ''}}, 78, "$p: no queue file: neither Q_DB nor HOME is set; next: ", $p, @r;
	row {env => {Q_DB => 'x' x 4090}}, 78, "$p: the name of the queue file is too long: $dir/xxx", $p, @r;
	row 66, "$p: the name of the queue file is empty; see -d and Q_DB", $p, '-d', '', @r;
}

# ---- the file ----

sub sql {
	my ($file, $sql) = @_;
	system('sqlite3', $file, $sql) == 0 or die "$file: $sql";
}
sub copy_of {
	my $name = shift;
	system("sqlite3 -readonly q.db '.backup $name' && sqlite3 $name 'PRAGMA journal_mode=WAL; PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null") == 0 or die;
	unlink "$name-wal", "$name-shm";
	return $name;
}
sub root_page {		# of a table, 0 the first
	my ($file, $table) = @_;
	return `sqlite3 -readonly $file "SELECT rootpage - 1 FROM sqlite_schema WHERE name = '$table'"` + 0;
}
sub overwrite {
	my ($file, $at, $bytes) = @_;
	open my $f, '+<:raw', $file or die;
	seek $f, $at, 0;
	print $f $bytes;
	close $f or die;
}
my $noise = join '', map { chr(($_ * 7919 + ($_ >> 3)) % 251 + 1) } 1 .. 4096;

mkdir 'folder';
spew('text', "Dear diary,\n" x 1000);
spew('empty', '');
spew('header', 'SQLite format 3');
sql('app.db', 'PRAGMA journal_mode=WAL; CREATE TABLE orders(x)');
system('mkfifo', 'fifo');
symlink 'nowhere', 'dangling';
symlink 'loop', 'loop';
copy_of('newer.db'); sql('newer.db', "UPDATE q_meta SET value = '4' WHERE name = 'version'");
copy_of('older.db'); sql('older.db', "UPDATE q_meta SET value = '0' WHERE name = 'version'");
copy_of('unversioned.db'); sql('unversioned.db', "DELETE FROM q_meta WHERE name = 'version'");
copy_of('linked.db'); link 'linked.db', 'linked2.db';
copy_of('gone.db'); copy('gone.db', 'gone.db-wal'); unlink 'gone.db';
copy_of('delete.db'); sql('delete.db', 'PRAGMA journal_mode=DELETE'); 
copy_of('half.db'); truncate 'half.db', (-s 'half.db') / 2;
copy_of('short.db'); truncate 'short.db', 4096;
copy_of('stub.db'); truncate 'stub.db', 100;
copy_of('magic.db'); overwrite('magic.db', 0, substr $noise, 0, 100);
copy_of('schema.db'); overwrite('schema.db', 100, substr $noise, 0, 3996);
copy_of('meta.db'); overwrite('meta.db', 4096 * root_page('meta.db', 'q_meta'), $noise);
copy_of('middle.db'); overwrite('middle.db', 4096 * root_page('middle.db', $_), $noise) for qw(q_job q_job_ready q_job_lease);
copy_of('zeros.db'); overwrite('zeros.db', 4096, "\0" x ((-s 'zeros.db') - 4096));
copy_of('words.db');
sql('words.db', "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE q_job(((' WHERE name = 'q_job'");
for my $f (grep { /\.db$/ } glob '*.db') { unlink "$f-wal", "$f-shm" if $f ne 'q.db' && $f ne 'gone.db' }

my $damaged = 'the file is damaged; next: go back to a copy, as qbackup(1) says';
my @files = (		# file, exit, message, and whether qinit finds it, too
	['missing.db', 66, "$dir/missing.db: no such queue file; next: qinit '$dir/missing.db' for a new one, or see -d and Q_DB; if it was there, bring it or a copy back, as qbackup(1) says"],
	['folder/missing.db', 66, "$dir/folder/missing.db: no such queue file; next: qinit "],
	['no/such/folder.db', 66, 'no/such/folder.db: no such queue file; next: qinit '],
	['text/q.db', 66, "$dir/text/q.db: no such queue file"],
	['folder', 78, "$dir/folder: a directory, not a queue file", 1],
	['fifo', 78, "$dir/fifo: not a regular file", 1],
	['/dev/null', 78, '/dev/null: not a regular file', 1],
	['dangling', 78, "$dir/dangling: not a regular file", 1],
	['loop', 78, "$dir/loop: not a regular file", 1],
	['text', 78, "$dir/text: not an SQLite database; see -d and Q_DB; if it was a queue file: go back to a copy, as qbackup(1) says", 1],
	['header', 78, "$dir/header: not an SQLite database", 1],
	['empty', 78, "$dir/empty: empty; see -d and Q_DB; if it was a queue file: go back to a copy, as qbackup(1) says; if it is to be one: rm it, then qinit", 1],
	['app.db', 78, "$dir/app.db: no queue tables in this database; next: qinit --into '$dir/app.db'", 1],
	['newer.db', 78, "$dir/newer.db: made by a newer q (schema 4, this program knows 3); next: install", 1],
	['older.db', 78, "$dir/older.db: made by an older q (schema '0', this program needs 3); next: qinit --upgrade '$dir/older.db'", 1],
	['unversioned.db', 78, "$dir/unversioned.db: made by an older q (schema ''", 1],
	['linked2.db', 78, "$dir/linked2.db: has 2 names (hard links)", 1],
	['gone.db', 78, "$dir/gone.db: gone, but its log $dir/gone.db-wal is there; ", 1],
	['half.db', 74, "$dir/half.db: $damaged", 1],
	['short.db', 74, "$dir/short.db: $damaged", 1],
	['schema.db', 74, "$dir/schema.db: $damaged", 1],
	['meta.db', 74, "$dir/meta.db: $damaged", 1],
	['zeros.db', 74, "$dir/zeros.db: $damaged", 1],
	['words.db', 74, "$dir/words.db: $damaged", 1],
	['stub.db', 74, "$dir/stub.db: $damaged", 1],
	['magic.db', 78, "$dir/magic.db: not an SQLite database", 1],
	['delete.db', 78, "$dir/delete.db: journal mode is delete, q needs WAL; next: sqlite3 '$dir/delete.db' 'PRAGMA journal_mode=WAL'", 1],
	["a\nb", 66, "$dir/a\\x0ab: no such queue file"],
);
for my $f (@files) {
	for my $p (@OPEN) {
		next if $p eq 'qinit' && !$$f[3];
		next if $$f[0] eq 'delete.db' && $p =~ /^(?:qls|qlate|qlock|qonce|qbackup|qcheck)$/;	# it can be looked at
		next if $$f[0] =~ /^(?:older|unversioned)/ && $p eq 'qbackup';	# it says why, by other words
		my @r = $p eq 'qinit' ? () : @{$rest{$p}};
		row {file => $$f[0] eq 'fifo' ? 'text' : $$f[0]}, $$f[1], "$p: $$f[2]", $p, '-d', $$f[0], @r;
	}
}
# Only what is touched is found damaged.
row {file => 'middle.db'}, 74, "$_: $dir/middle.db: $damaged", $_, '-d', 'middle.db', @{$rest{$_}} for qw(qadd qclaim qrenew qdone qfail qwork);
row {file => 'middle.db'}, 74, "qls: $dir/middle.db: $damaged", 'qls', '-d', 'middle.db';
row {file => 'middle.db'}, 74, "qls: $dir/middle.db: $damaged", 'qls', '-d', 'middle.db', 1;
row {file => 'older.db'}, 78, "qinit: $dir/older.db: schema '0' is none that this q can upgrade from", 'qinit', '--upgrade', 'older.db';
row {file => 'newer.db'}, 78, "qinit: $dir/newer.db: made by a newer q", 'qinit', '--upgrade', 'newer.db';
row 66, "qinit: $dir/missing.db: no such queue file", 'qinit', '--upgrade', 'missing.db';
row 66, "qinit: $dir/missing.db: no such file; the application that owns it creates it", 'qinit', '--into', 'missing.db';
row {file => 'delete.db'}, 78, "qinit: $dir/delete.db: journal mode is delete, q needs WAL; next: sqlite3 ", 'qinit', '--into', 'delete.db';
row 73, "qinit: no/such: no such folder; next: mkdir -p 'no/such'", 'qinit', 'no/such/folder.db';
row 73, "qinit: $dir/text: Not a directory", 'qinit', 'text/q.db';
row 73, "qinit: $dir/" . 'x' x 250, 'qinit', 'x' x 250;
row 78, "qinit: no group 'no-such-group' here", 'qinit', '-g', 'no-such-group', 'other.db';
ok(!-e $_, "no $_ was made") for 'missing.db', 'folder/missing.db', 'other.db', 'nowhere', 'no', "a\nb";

# Busy.
my $busy = open(my $holder, '|-', 'sqlite3 q.db >holding 2>&1') or die;
syswrite $holder, "BEGIN IMMEDIATE; SELECT 'held';\n";
for (1 .. 3000) { last if slurp('holding') =~ /held/; select undef, undef, undef, 0.01 }
row 75, "$_: $dir/q.db: busy for 10ms; another program holds it; try again later", $_, @{$rest{$_}} for qw(qadd qclaim qrenew qdone qfail);
close $holder;

# ---- no permission ----

my @user = ();
if ($> == 0) {
	@user = qw(setpriv --reuid=4001 --regid=4001 --clear-groups) if system('setpriv --reuid=4001 --regid=4001 --clear-groups true 2>/dev/null') == 0;
}
# Of all programs: t/29-environ.t.
my @SOME = qw(qinit qadd qclaim qrenew qdone qfail qls qwork qset qpause);
SKIP: {
	skip 'no setpriv to become another user with', 1 if $> == 0 && !@user;
	chmod 0711, $dir;
	mkdir "$dir/bin";
	for my $p (@SOME) {
		my ($from) = grep { -x } map { "$_/$p" } split /:/, $ENV{PATH};
		copy($from, "bin/$p") && chmod 0755, "bin/$p" or die;
	}
	mkdir 'ro';
	output('qadd', '-q', '-d', copy_of('look.db'), 'mail', 'x');
	for (glob 'look.db*') { rename $_, "ro/$_"; chmod 0444, "ro/$_" }
	mkdir 'secret';
	copy_of('secret/q.db');
	chmod 0600, 'secret/q.db';
	mkdir 'shut';
	copy_of('shut/q.db');
	chmod 0, 'shut';
	chmod 0, 'secret/q.db' if $> != 0;
	chmod 0555, 'ro', 'secret';
	for my $p (@SOME) {
		my @r = $p eq 'qinit' ? () : @{$rest{$p}};
		row 77, "$p: $dir/secret/q.db: Permission denied; check owner and mode of the file and its folder", @user, "bin/$p", '-d', "$dir/secret/q.db", @r;
		row 77, "$p: $dir/shut" . ($p eq 'qinit' ? ': Permission denied; check owner and mode of the folder' : '/q.db: Permission denied; check owner and mode of the file and its folder'), @user, "bin/$p", '-d', "$dir/shut/q.db", @r;
		next if $p eq 'qls';
		row 77, "$p: $dir/ro/look.db: no permission to write; check its owner and mode, and the mount", @user, "bin/$p", '-d', "$dir/ro/look.db", @r;
	}
	row 77, "qinit: $dir/ro/new.db", @user, 'bin/qinit', "$dir/ro/new.db";
	row 77, "qinit: $dir/shut: ", @user, 'bin/qinit', "$dir/shut/new.db";
	my ($status, $out, $err) = run({}, @user, 'bin/qls', '-d', "$dir/ro/look.db", 'mail');
	is("$status $err", '0 ', 'who may only read can still look') and is(scalar(split /\n/, $out), 2, '... at all of it');
	chmod 0755, 'ro', 'secret', 'shut';
}

# ---- file systems of other machines ----

my $unit = "$t/unit-fs";
SKIP: {
	skip "$unit is not built", 1 if !-x $unit;
	my %fs = (NFS => '6969', SMB => '517b', 'SMB2' => 'fe534d42', CIFS => 'ff534d42', '9p' => '01021997', 'FUSE or virtiofs' => '65735546',
	    Coda => '73757245', AFS => '5346414f', Ceph => '00c36400');
	for my $name (sort keys %fs) {
		my ($status, $out, $err) = run({}, $unit, $fs{$name}, 'q.db');
		(my $called = $name) =~ s/SMB2/SMB/;
		is("$status $out", "78 $dir/q.db: on $called, where SQLite's log is not safe; put it on a local disk\n", "78 a file on $name");
	}
	for my $local ('ef53', '58465342', '9123683e', '01021994') {
		my ($status, $out) = run({}, $unit, $local, 'q.db');
		is("$status $out", "0 \n", "0 a file on a local disk ($local)");
	}
}

# A real one: a FUSE server of one folder and one file, in a mount namespace of its own.
SKIP: {
	skip 'only root can mount', 1 if $> != 0 || !-w '/dev/fuse' || system('unshare -m true 2>/dev/null') != 0;
	mkdir 'fuse';
	my $said = `unshare -m '$^X' '$t/23-badinput.t' fuse '$dir/fuse' 2>&1`;
	skip "no FUSE here: $said", 1 if $said !~ /^qinit/m;
	is($said, "qadd: 78 qadd: $dir/fuse/q.db: on FUSE or virtiofs, where SQLite's log is not safe; put it on a local disk\n"
	    . "qinit: 78 qinit: $dir/fuse/new.db: on FUSE or virtiofs, where SQLite's log is not safe; choose a local disk\n", 'FUSE, mounted');
}

is(dump_of_queue(), $before, 'after all, the queue is as it was');
cmp_ok($rows, '>=', 1500, "$rows rows");
done_testing();
