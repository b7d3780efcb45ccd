#!/usr/bin/perl
# q-tutorial(7): every block runs, in order, in one folder, and prints what it shows.
use strict;
use warnings;
require($0 =~ s{[^/]*$}{blocks.pl}r =~ s{^(?!/)}{./}r);
our ($top, $dir, $port, %script);
use Test::More;

my $page = slurp("$top/man/q-tutorial.7");
mkdir "$dir/try" or die;
chdir "$dir/try" or die;
serve();

my ($n, %seen) = (0);
while ($page =~ /^\.Bd -literal\n(.*?)^\.Ed$/msg) {
	my $text = $1 =~ s/^\\&//mgr =~ s/\\e/\\/gr;
	my $name = 'block ' . ++$n;
	my $kind = $text =~ /^\$ / ? 'console' : $text =~ /^#!/ ? 'sh' : 'crontab';
	$seen{$kind}++;
	# The source file is shown by cat: here it is made of what is shown.
	spew('partner.json', here($1)) if $text =~ /^\$ cat partner\.json\n(.*?)^\$ /ms;
	play($name, $kind, here($text));
}
is($n, () = $page =~ /^\.Bd /mg, 'no block was left out');
ok($seen{$_}, "there were blocks of the kind $_") for qw(sh console crontab);
is(join(' ', grep { !$script{$_} } sort keys %script), '', 'each script was used');
done_testing;
