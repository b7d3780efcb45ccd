#!/usr/bin/perl
# The pages say what the programs do: usage texts, synopses, options, letters, examples.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;

my $top = abs_path(dirname($0) . '/..');
my $dir = tempdir('q-test.XXXXXX', TMPDIR => 1, CLEANUP => 1);
delete $ENV{$_} for grep { /^Q_/ } keys %ENV;
delete @ENV{qw(XDG_STATE_HOME NO_COLOR COLUMNS)};
@ENV{qw(PATH TZ LC_ALL HOME Q_DB Q_NOW)} = ("$top/cmd:$ENV{PATH}", 'UTC', 'C', $dir, "$dir/q.db", '2026-06-02T12:00:00Z');
umask 022;
chdir $dir or die "$dir: $!";
END { chdir '/' }

sub slurp { my ($file) = @_; open my $f, '<', $file or return ''; local $/; my $text = <$f>; $text // '' }
sub spew { my ($file, $text) = @_; open my $f, '>', $file or die "$file: $!"; print $f $text; close $f or die "$file: $!" }

# Run with a shell; the exit status, standard output and error.
sub run {
	my ($script, @shell) = @_;
	spew('script', $script);
	my $pid = fork // die "fork: $!";
	if ($pid == 0) {
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', 'out' or die;
		open STDERR, '>', 'err' or die;
		exec @shell ? @shell : 'sh', 'script' or die;
	}
	waitpid $pid, 0;
	return ($? & 127 ? 128 + ($? & 127) : $? >> 8, slurp('out'), slurp('err'));
}

sub squeeze { my ($s) = @_; $s =~ s/\s+/ /g; $s =~ s/^ | $//g; $s }

my ($progs) = slurp("$top/Makefile") =~ /^PROGS = (.*)$/m;
my @progs = split ' ', $progs;
my %is_prog = map { $_ => 1 } @progs;
my ($filters) = slurp("$top/lib/prog.h") =~ /^#define PROG_FILTERS \\\n((?:.*\\\n)*.*\n)/m;
my $q7 = slurp("$top/man/q.7");
my @pages = map { s{.*/}{}r } glob "$top/man/*.[157]";
my %completed = slurp("$top/scripts/completion/common") =~ /^\t\*(\w+)\) q_options='(.*)' ;;$/mg;
my $mandoc = !system 'command -v mandoc >/dev/null';
ok(@progs > 0, 'the Makefile names programs');

# ---- each program -----------------------------------------------------------

my %letters;	# letter => { long => { argument => [programs] } }

for my $prog (@progs) {
	# All at once, since a shell costs more than they do.
	my ($code, $out, $err) = run(join '; echo "=$?"; ', map({ "$prog $_" } '--help', '-h', '--version', '-V'), 'true');
	my ($help, $status, $short, $version, $v) = (split /^=(\d+)\n/m, $out)[0, 1, 2, 4, 6];
	is($status, 0, "$prog --help: exit 0");
	is($err, '', '... nothing on standard error');
	my @lines = split /\n/, $help;
	ok(@lines <= 24, '... fits 24 lines') or diag(scalar @lines);
	is(join("\n", grep { length > 80 } @lines), '', '... of 80 columns');
	like($help, qr/\nExit: (?:0 \w|as CMD)[^\n]*(?:\n[^-\n][^\n]*)*\n-d FILE: [^\n]* See man $prog, man 7 q\.\n\z/, '... ends with the exit status, and where to read on');
	my ($usage, $rest) = $help =~ /^usage: (.*?\n)(?=\S|\n)(.*)/s;
	my @examples = map { /(?<![\w-])$prog(?= |$)/g } grep { /^ +[^ -]/ } split /\n/, $rest // '';
	ok(@examples >= 2, '... and has two examples') or diag($help);
	is($short, $help, '... as -h does');
	like($version, qr/^$prog \(q\) \d+\.\d+\.\d+\nSQLite 3\.\d+\.\d+, schema \d+\n\z/, "$prog --version");
	is($v, $version, '... as -V does');

	# What the program takes, by its tables.
	my $source = slurp("$top/cmd/$prog.c");
	$source =~ s/PROG_FILTERS/$filters/;
	my ($shorts) = $source =~ /\.shorts = "([^"]*)"/;
	my %arg = map { /(.)(:?)/; $1 => $2 ? 1 : 0 } $shorts =~ /([A-Za-z0-9]:?)/g;
	my %takes;	# "-k, --key ARG" in short: "k key 1"
	while ($source =~ /\{ "([a-z0-9-]+)", (\w+), NULL, ([^ ,}]+) \}/g) {
		my ($long, $how, $value) = ($1, $2, $3);
		my $has = $how =~ /^(1|required_argument)$/ ? 1 : 0;
		my ($letter) = $value =~ /^'(.)'$/;
		$letter = '' if !defined $letter || !exists $arg{$letter};
		is($arg{$letter}, $has, "$prog: -$letter and --$long agree") if $letter ne '';
		$takes{"$letter $long $has"} = 1;
	}
	$takes{$_} = 1 for 'h help 0', 'V version 0', 'd database 1';
	for (keys %takes) {
		my ($letter, $long, $has) = split / /, $_, 3;
		push @{$letters{$letter}{$long}{$has}}, $prog if $letter ne '';
	}
	is(join(' ', sort keys %arg), join(' ', sort grep { $_ ne '' && !/^[hVd]$/ } map { (split / /)[0] } keys %takes),
	    "$prog: each letter has a long name");
	is(join(' ', grep { my $o = $_; !grep { (split / /)[1] eq $o } keys %takes } $rest =~ /(?<![\w-])--([a-z][a-z-]*)/g), '',
	    "$prog: the help names no other option");
	is(join(' ', grep { my ($l, $long) = split / /; $rest !~ /(?<![\w-])--$long\b/ && ($l eq '' || $rest !~ /(?<![\w-])-$l\b/) }
	    grep { !/^[hV] / } sort keys %takes), '', '... and tells of each');

	is(join(' ', sort split ' ', $completed{$prog}), join(' ', sort map { my ($l, $long, $has) = split / /; ($l ne '' ? "-$l," : '') . "--$long" . ($has ? '=' : '') }
	    grep { !/ (?:help|version|database) / } keys %takes), '... and the shells complete them');
	my ($cut) = grep { my ($s) = $_; length > 1 && !grep { (split / /)[1] eq $s } keys %takes } map { substr((split / /)[1], 0, -1) } sort keys %takes;
	($code, $out, $err) = run("$prog --$cut x");
	is("$code $out", '64 ', "$prog: --$cut is cut short: exit 64");
	like($err, qr/^$prog: unknown option '--$cut'; did you mean '--$cut.*'\?.*\n\z/, '... with the whole name');

	# What its page says.
	my $page = slurp("$top/man/$prog.1");
	ok($page ne '', "$prog.1 is there") or next;
	my %told;
	for ($page =~ /^\.It Fl (.*)$/mg) {
		/^(?:(\S) , Fl )?-(\S+)( Ar \S+)?$/ ? $told{($1 // '') . " $2 " . ($3 ? 1 : 0)} = 1 : fail("$prog.1: .It Fl $_");
	}
	is(join(', ', sort keys %told), join(', ', sort keys %takes), '... and tells its options');
	is(join(' ', grep { my $o = $_; !grep { (split / /)[1] eq $o } keys %takes } $page =~ /\bFl -([a-z][a-z-]*)/g), '',
	    '... and no other');
	SKIP: {
		skip 'mandoc is not installed', 1 if !$mandoc;
		my (undef, $text) = run("mandoc -T ascii -O width=1000 '$top/man/$prog.1'");
		$text =~ s/.\x08//g;
		my ($synopsis) = $text =~ /^SYNOPSIS\n(.*?)\n\n[A-Z]/ms;
		my @forms = map { squeeze($_) } split /\n(?= {5}$prog )/, $synopsis // '';
		my @usage = map { squeeze($_) } split /\n(?= {7}$prog )/, $usage // '';
		is_deeply(\@forms, \@usage, '... and its synopsis is the usage text');
	}
	like($page, qr/^\.Sh $_$/m, "... and has $_") for 'EXIT STATUS', 'EXAMPLES';
	like($page, qr/^\.Xr q 7/m, '... and refers to q(7)');
	like($q7, qr/^\.It Xr $prog 1$/m, "q(7) lists $prog");
	like(slurp("$top/README"), qr/^\| `$prog` \|/m, "README lists $prog");
}

# ---- one letter, one meaning ------------------------------------------------

my %table;
while ($q7 =~ /^\.It Fl (\S) Ta Fl -(\S+) Ta "(.*)"$/mg) {
	$table{$1}{$2} = $3;
}
is(join(' ', map { my $l = $_; map { "$l/$_" } sort keys %{$letters{$l}} } sort keys %letters),
    join(' ', map { my $l = $_; map { "$l/$_" } sort keys %{$table{$l}} } sort keys %table),
    'the letters of all programs are those of q(7)');
for my $letter (sort keys %letters) {
	my @longs = sort keys %{$letters{$letter}};
	ok(@longs == 1 || grep({ /exception/ } values %{$table{$letter}}), "-$letter means one thing, or q(7) says so");
	is(scalar keys %{$letters{$letter}{$_}}, 1, "... --$_ takes a value everywhere or nowhere") for @longs;
}

# ---- names ------------------------------------------------------------------

my %word = map { $_ => 1 } qw(query queue queues queued queueing quick quicker quickly quickstart quiet quit quite quarter question quota quote quotes quoted);
for my $file ('README', map { "man/$_" } @pages) {
	my %seen = map { $_ => 1 } slurp("$top/$file") =~ /(?<![\w.\/\\-])(q[a-z]+)\b(?!\.)/g;
	is(join(' ', sort grep { !$is_prog{$_} && !$word{$_} } keys %seen), '', "$file names no program that is not there");
}

is(join(' ', $q7 =~ /^\.It (\d+(?: , \d+)?)$/mg), join(' ', map { s/ and/ ,/r } (slurp("$top/README") =~ /^## Exit status\n\n(.*?)\n\n/ms)[0] =~ /\b(\d+(?: and \d+)?)\b/g),
    'README and q(7) list the same exit statuses');

# Double-quoted on a command line of qwork they would be expanded too early.
unlike(slurp("$top/$_"), qr/"\$Q_/, "$_ shows no double-quoted \$Q_") for 'README', map { "man/$_" } @pages;

SKIP: {
	skip 'mandoc is not installed', 1 if !$mandoc;
	my ($code, $out, $err) = run("mandoc -T lint -W warning '$top'/man/*.[157]");
	is("$code$out$err", '0', 'mandoc has no complaint');
}

# ---- what q(7) promises in numbers ------------------------------------------

my %unit = (s => 1, m => 60, h => 3600);
sub seconds { my ($s) = @_; my $n = 0; $n += $1 * $unit{$2} while $s =~ /(\d+)([smh])/g; $n }
my $policies = 0;
while ($q7 =~ /^\.It (\d+) Ta (\w+)\.\.(\w+) Ta (\w+) Ta (\w+)/mg) {
	my ($attempts, $base, $cap, $half, $all, $sum) = ($1, seconds($2), seconds($3), $4, $5, 0);
	for (2 .. $attempts) {
		$sum += $base < $cap ? $base : $cap;
		$base *= 2;
	}
	is(60 * int($sum / 60), seconds($all), "$attempts attempts last at most $all");
	is(60 * int($sum / 120), seconds($half), "... and $half on average");
	$policies++;
}
ok($policies > 0, 'the policies were read');

my $bad = 0;
run('qinit');
while ($q7 =~ /^\.It "((?:[^"]|"")*)" Ta (\d+) Ta "((?:[^"]|"")*)"$/mg) {
	my ($input, $want, $message) = ($1, $2, $3);
	my ($prog) = $input =~ /\b(q[a-z]+)/;
	my ($code, $out, $err) = run("$input\n");
	my $like = quotemeta "$prog: $message";
	$like =~ s/\bFILE\b/.*/g;
	is($code, $want, "$input: exit $want");
	like($err, qr/^$like.*\n\z/, '... with that message');
	is($out, '', '... and no output');
	$bad++;
}
ok($bad >= 20, 'the table of bad input was read');

# ---- the examples -----------------------------------------------------------

# The literal blocks of a page's EXAMPLES, as their reader sees them.
sub examples {
	my ($page) = @_;
	my ($section) = $page =~ /^\.Sh EXAMPLES\n(.*?)(?=^\.Sh |\z)/ms;
	my @blocks = ($section // '') =~ /^\.Bd -literal -offset indent\n(.*?)^\.Ed$/msg;
	for (@blocks) {
		s/^\\&//mg;
		s/\\e/\\/g;
	}
	return @blocks;
}

# What the examples take for granted.
mkdir "$dir/made" or die;
chdir "$dir/made" or die;
$ENV{Q_DB} = 'q.db';
my ($code, $out, $err) = run(<<'END', 'bash', '-euo', 'pipefail');
mkdir srv
for name in send-mail convert charge; do
	printf '#!/bin/sh\ncat >>"$0.got"\n' >"$name"
	chmod +x "$name"
done
echo '[{"id":"a1","customer":"ana"},{"id":"b2","customer":"bo"}]' >orders.json
qinit
for i in 1 2 3; do qadd -q mail "{\"to\":\"ana\",\"n\":$i}"; done
qadd -q video film
qadd -q -k inv-1 charge 7
qadd -q --attempts 1 mail '{"to":"bo"}'
qclaim -c 10 mail >claims
tail -n 1 claims | qfail --dead -m refused -
head -n 3 claims | qfail --release -
sqlite3 shop.db 'PRAGMA journal_mode=WAL; CREATE TABLE orders(id, name)' >made
qinit --into shop.db
echo 'nightly 30 2 * * * tz=Europe/Berlin reports' >srv/table
printf '#!/bin/sh\ncat >>"$0.got"\n' | tee srv/import >srv/load
chmod +x srv/*
(umask 077; echo secret | tee srv/partner.key >partner.key)
(umask 077; echo 'a secret of the examples' >github.key)
qonce charge:order-9 -- sh -c 'exit 69' 2>unknown || [ $? = 69 ]
echo '/github github github.key queue=pushes' >hooks
cat >srv/orders.json <<'SOURCE'
{"name": "orders", "url": "https://api.example.com/items", "query": {"since": "{cursor}"}, "items": "/items", "id": "/id",
 "cursor": "/updated_at", "next": "link", "start": "all", "auth": {"bearer_file": "partner.key"}, "queue": "orders"}
SOURCE
END
is("$code$err", '0', 'the examples are made ready');

# The API of qpoll(1).
my $serve = "$top/t/serve";
my $api;
if (-x $serve) {
	pipe my $from, my $to or die "pipe: $!";
	if (!(fork // die "fork: $!")) {	# it ends with this test
		open STDOUT, '>&', $to or die;
		exec $serve or die;
	}
	<$from> =~ /^(\d+)/ or die $serve;
	$api = "http://127.0.0.1:$1";
	run("$serve $api/_set '[{\"id\":\"a1\",\"stamp\":1780300000000},{\"id\":\"b2\",\"stamp\":1780310000000}]'");
}
sub here { my ($text) = @_; $text =~ s{"url": "https://api\.example\.com}{"insecure_http": true, "url": "$api}; $text }

my $group = getgrgid($();
for my $page ('q.7', map { "$_.1" } @progs) {
	my $n = 0;
	for my $block (examples(slurp("$top/man/$page"))) {
		my $home = "$dir/$page-" . ++$n;
		system('cp', '-Rp', "$dir/made", $home) == 0 or die;
		chdir $home or die "$home: $!";
		if ($block =~ /q_outbox/) {
			rename "shop.db$_", "app.db$_" for '', '-wal', '-shm';
		}
		@ENV{qw(HOME Q_DB)} = ($home, "$home/q.db");
		if ($page =~ /^q(poll|backfill)\.1$/) {
			last if !defined $api;
			$block = here($block);
			spew('srv/orders.json', here(slurp('srv/orders.json')));
		}
		$block =~ s{/srv/}{$home/srv/}g;
		$block =~ s/\bops\b/$group/g if defined $group;
		my $cron = $block =~ s/^[*\d]\S*(?: [*\d]\S*){4} //;
		($code, $out, $err) = run($block, $cron ? 'sh' : ('bash', '-euo', 'pipefail'));
		is("$code $err", '0 ', "$page, example $n: runs") or diag($block);
		is($out, '', '... and is silent') if $cron;
	}
	ok($n >= 2 || ($page =~ /^q(poll|backfill)\.1$/ && !defined $api), "$page has two examples") or diag($n);
	chdir $dir;
}

done_testing;
