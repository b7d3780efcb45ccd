#!/usr/bin/perl
# Of every program: no environment changes its output; and who may do what with a file, whatever the umask of who made it.
# ALL=1: every locale with every zone, every command line by everybody.
use strict;
use warnings;
BEGIN { require($0 =~ s{[^/]*$}{programs.pl}r =~ s{^(?!/)}{./}r) }
our (@PROGS, $dir, $url);
prepare();

# ---- environments ----

my @locales = qw(C.UTF-8 de_DE.UTF-8 tr_TR.UTF-8 fr_FR.ISO-8859-1 ja_JP.EUC-JP nonsense);
my @zones = ('America/St_Johns', 'Asia/Kathmandu', 'Pacific/Apia', ':nowhere');
my $long = 'x' x 65536;
my %envs = (
	'env -i' => { map { $_ => undef } grep !/^Q_/, keys %ENV },
	'empty values' => { map { $_ => '' } qw(HOME TZ LC_ALL LANG TMPDIR COLUMNS) },
	'64 KiB values' => { PATH => "$ENV{PATH}:$long", map { $_ => $long } qw(HOME TZ LC_ALL LANG LANGUAGE COLUMNS OTHER) },
);
for my $i (0 .. $#locales) {
	for my $j ($ENV{ALL} ? 0 .. $#zones : $i % @zones) {
		$envs{"$locales[$i] $zones[$j]"} = { map({ $_ => $locales[$i] } qw(LC_ALL LANG LC_NUMERIC)), TZ => $zones[$j], COLUMNS => 20 + $i, NO_COLOR => 1 };
	}
}
my $runs = 0;
for my $p (@PROGS) {
	for my $line (lines_of($p)) {
		my @wrong;
		restore();
		my $want = run_line($p, $line, sub { into('out') }) . same(slurp('out')) . same(slurp('err'));
		my $path = (grep { -x } map { "$_/$p" } split /:/, $ENV{PATH})[0];
		for my $env (sort keys %envs) {
			next if $line->{human} && $env =~ /UTF-8/;	# bars of block characters
			restore();
			my $got = run_line($p, { %$line, path => $path }, sub {
				into('out');
				for (keys %{$envs{$env}}) { if (defined $envs{$env}{$_}) { $ENV{$_} = $envs{$env}{$_} } else { delete $ENV{$_} } }
			}) . same(slurp('out')) . same(slurp('err'));
			push @wrong, "$env: $got not: $want" if $got ne $want;
			$runs++;
		}
		ok(!@wrong, substr "$p @{$line->{argv}}: the same in every environment", 0, 70) or diag(map { substr($_, 0, 600) . "\n" } @wrong);
	}
}
note("$runs environments");
done_testing();
