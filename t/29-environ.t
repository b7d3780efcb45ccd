#!/usr/bin/perl
# Of every program: no environment changes its output; and who may do what with a file, whatever the umask of who made it.
# ALL=1: every command line in every locale with every zone, and by everybody under four umasks.
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
for my $i ($ENV{ALL} ? 0 .. $#locales : $$ % @locales) {
	for my $j ($ENV{ALL} ? 0 .. $#zones : $i % @zones) {
		$envs{"$locales[$i] $zones[$j]"} = { map({ $_ => $locales[$i] } qw(LC_ALL LANG LC_NUMERIC)), TZ => $zones[$j], COLUMNS => 20 + $i, NO_COLOR => 1 };
	}
}
my $runs = 0;
for my $p (@PROGS) {
	my %seen;
	for my $line (grep { $ENV{ALL} || !$seen{$_->{needs}}++ } lines_of($p)) {
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

# ---- users ----

# ana (4001) made the file, ben (4002) is of its group, dan (4003) is not; at last ben may only read.
sub become { my ($uid, $gids) = @_; $) = $gids; $( = $uid; $> = $< = $uid; $) == $uid && $> == $uid or POSIX::_exit(126) }
SKIP: {
	skip 'only root can become other users', 1 if $> != 0;
	my %who = (ana => [4001, '4001 4100'], root => undef, ben => [4002, '4002 4100'], dan => [4003, '4003 4003'], reader => [4002, '4002 4100']);
	chmod 0711, $dir;
	mkdir "$dir/bin";
	for my $p (@PROGS) { copy((grep { -x } map { "$_/$p" } split /:/, $ENV{PATH})[0], "bin/$p") && chmod 0755, "bin/$p" or die }
	chmod 0644, glob '*.json table hooks';
	my $home = "$dir/srv";
	my %modes;
	my @umasks = (000, 077, 022, 027);
	for my $umask (@umasks[0 .. ($ENV{ALL} ? 3 : 1)]) {
		for my $who (sort keys %who) {
			next if !$ENV{ALL} && ($umask == 077) != ($who =~ /ben|reader/);	# half of them, each person under one
			my @wrong;
			for my $p (@PROGS) {
				my @lines = grep { $_->{needs} ne '' && !$_->{http} && !$_->{server} } lines_of($p);
				my %seen;
				@lines = grep { !$seen{$_->{needs}}++ } @lines if !$ENV{ALL};
				for my $line (@lines) {
					system 'rm', '-rf', $home;
					mkdir $home;
					chown 4001, 4100, $home;
					chmod 02775, $home;
					copy('kept/q.db', "$home/q.db");
					chown 4001, 4100, "$home/q.db";
					chmod $who eq 'reader' ? 0640 : 0660, "$home/q.db";
					if ($who eq 'reader') {		# who may only read cannot make what stands beside the file
						run_line('qls', { argv => ['-d', "$home/q.db"], path => "$dir/bin/qls" }, sub { into('out'); become(@{$who{ana}}) });
						chmod 02755, $home;
					}
					my @argv = map { s/^(copy\.db|a\.prom|a\.svg|ids)$/$home\/$1/r } @{$line->{argv}};
					chown 4001, 4001, 'key';
					my $status = run_line($p, { %$line, argv => ['-d', "$home/q.db", @argv], path => "$dir/bin/$p" }, sub {
						into('out');
						umask $umask;
						become(@{$who{$who}}) if $who{$who};
					});
					my $want = $line->{exit} // 0;
					$want = 77 if $who eq 'dan' || ($who eq 'reader' && $line->{needs} eq 'write') || ($p eq 'qhook' && $who ne 'ana');
					$want = 77 if $p eq 'qbackup' && $who eq 'reader';		# its folder
					$want = 73 if $who eq 'reader' && grep { /^a[.]/ } @{$line->{argv}};
					push @wrong, "$p @{$line->{argv}}: exit $status, not $want: " . slurp('err') if $status ne $want;
					for (glob "$home/q.db?*") {
						my @s = stat;
						push @wrong, sprintf '%s %s: %o %d:%d', $p, s{.*/}{}r, $s[2] & 07777, @s[4, 5] if ($s[2] & 0777) != ($who eq 'reader' ? 0640 : 0660) || $s[5] != 4100;
					}
					$modes{s{.*/}{}r}{sprintf '%o', (stat)[2] & 0777} = 1 for grep { -e } glob "$home/{copy.db,a.*,ids}";
				}
			}
			ok(!@wrong, sprintf 'umask %03o, %s', $umask, $who) or diag(map { substr($_, 0, 300) . "\n" } @wrong);
		}
	}
	is(join(' ', map { "$_ " . join '/', sort keys %{$modes{$_}} } sort keys %modes), $ENV{ALL} ? 'a.prom 644 a.svg 644 copy.db 600 ids 600' : 'copy.db 600',
	    'what is written has the mode that its page says, whatever the umask');
}
done_testing();
