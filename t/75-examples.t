#!/usr/bin/perl
# qpoll(5): the page has each key with its default, and each of its examples is a file that loads and asks.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use Test::More;

my $top = abs_path(dirname($0) . '/..');
my $dir = tempdir('q-test.XXXXXX', TMPDIR => 1, CLEANUP => 1);
delete $ENV{$_} for grep { /^Q_|_proxy$/i } keys %ENV;
delete $ENV{XDG_STATE_HOME};
@ENV{qw(PATH TZ LC_ALL HOME Q_DB)} = ("$top/cmd:$ENV{PATH}", 'UTC', 'C', $dir, "$dir/q.db");
umask 077;
chdir $dir or die "$dir: $!";
END { chdir '/' }

sub slurp { my ($file) = @_; open my $f, '<', $file or die "$file: $!"; local $/; my $text = <$f>; $text // '' }
sub spew { my ($file, $text) = @_; open my $f, '>', $file or die "$file: $!"; print $f $text; close $f or die "$file: $!" }
sub run { my $out = `@_ 2>err`; return ($? >> 8, $out, slurp('err')) }

my $page = slurp("$top/man/qpoll.5");
my $source = slurp("$top/lib/source.c");

# ---- the keys ---------------------------------------------------------------

my ($table) = $source =~ /\} FIELDS\[\] = \{\n(.*?)^\};/ms;
my (%field, %told);
while ($table =~ /^\t\{ "(\w+)", (\w+), (?:AT\([^)]*\)|0), [^,]*, (?:INT64_C\(\d+\) << \d+|[^,]*), ([^,]+), \w+ \},$/mg) {
	$field{$1} = [$2, $3];
}
is(scalar keys %field, scalar(() = $table =~ /^\t\{ "/mg), 'the table of keys was read');
while ($page =~ /^\.It Li (\w+(?: , \w+)*) Pq (.*)$/mg) {
	$told{$_} = $2 for split / , /, $1;
}
is(join(' ', sort keys %told), join(' ', sort keys %field), 'the page has each of them, and no other');

my %unit = (s => 1000, m => 60000, h => 3600000, d => 86400000);
my ($http) = join '', map { slurp("$top/lib/http.h") =~ /^#define $_ \(([^)]*)\)/m ? "$_=$1;" : () } 'HTTP_BODY_MAX', 'HTTP_TIMEOUT_MS';
for my $key (sort grep { $field{$_}[0] =~ /^(?:NUMBER|SPAN)$/ } keys %field) {
	my ($kind, $value) = @{$field{$key}};
	$value =~ s/(HTTP_\w+)/$http =~ m{$1=([^;]*)} ? $1 : 0/e;
	$value = eval $value;
	my ($says) = $told{$key} =~ /; (\w+)$/;
	$says = $1 * $unit{$2} if defined $says && $says =~ /^(\d+)([smhd])$/;
	is($says // ($value > 0 ? 'nothing' : $value), $value, "the default of $key");
}
my ($secrets) = $page =~ /^\.Ss Secrets\n(.*?)^\.Sh /ms;
my ($auth) = $source =~ /KEYS\[\] = \{ ("bearer_file".*?), NULL/s;
is(join(' ', grep { $secrets !~ /\b$_\b/ } $auth =~ /"(\w+)"/g), '', 'each member of auth is told');

# ---- the examples -----------------------------------------------------------

# A port that nobody else gets, and nobody listens on.
my $closed = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'tcp') or die "socket: $!";
my $port = $closed->sockport;
is((run('qinit'))[0], 0, 'a queue file');

my %names;
my @blocks = $page =~ /^\.Bd -literal -offset indent\n(.*?)^\.Ed$/msg;
for my $block (@blocks) {
	$block =~ s/\\e/\\/g;
	my ($name) = $block =~ /"name": "(\w+)"/;
	ok(!$names{$name}++, "$name: a name of its own");
	spew($1, "secret\n") while $block =~ /file": "([^"]+)"/g;
	run("qset rate.$1=100/s") if $block =~ /"rate": "(\w+)"/;
	spew("$name.json", $block);
	my ($code, $out, $err) = run("qpoll --status $name.json");
	is("$code $err", '0 ', '... loads as it stands');
	like($out, qr/^source +\Q$name\E\ncursor +none yet\n/, '... and nothing is known yet');
	$block =~ s{https://[^/"]+}{http://127.0.0.1:$port}g;
	$block =~ s/^\{/{"insecure_http": true, "retries": 0, /;
	spew('closed.json', $block);
	($code, $out, $err) = run('qpoll -n closed.json');
	is("$code $out", '69 ', '... nobody answers: exit 69');
	like($err, qr{^qpoll: $name: .*http://127\.0\.0\.1:$port/}, '... and which URL is told');
}
ok(@blocks > 10, 'the examples were read');

# Each way to the next page, and each order, has one.
my %shown = map { $_ => 1 } join('', @blocks) =~ /"(?:next|order)": "(\w+)/g;
for my $list ('NEXTS', 'ORDERS') {
	my ($all) = $source =~ /\Q$list\E\[\] = \{ (.*?), NULL/;
	is(join(' ', grep { !$shown{$_} } $all =~ /"(\w+)"/g), '', "... one at least for each of $list");
}

done_testing;
