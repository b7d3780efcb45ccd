# statements.pl FILE.c [NAME] - the SQL constants of a C file: one, or all as NAME, NUL, text, NUL
use strict;
use warnings;

my ($file, $only) = @ARGV;
open my $in, '<', $file or die "$file: $!\n";
my $c = do { local $/; <$in> };
my %macro;

sub text {
	my ($source) = @_;
	my $sql = '';
	while ($source =~ /"((?:[^"\\]|\\.)*)"|\b([A-Z_]+)\b/gs) {
		my $part = defined $2 ? $macro{$2} // die "$file: no macro $2\n" : $1;
		$part =~ s/\\n/\n/g;
		$sql .= $part;
	}
	return $sql;
}

$c =~ s{/\*.*?\*/}{}gs;
while ($c =~ /^#define (\w+) \\\n((?:.*\\\n)*.*)\n/gm) {
	my ($name, $body) = ($1, $2);
	$macro{$name} = text($body) if $body =~ /^\s*"/;
}
while ($c =~ /^static const char (\w+)\[\] =\s*((?:"(?:[^"\\]|\\.)*"|[A-Z_]+|\s+)+);/gm) {
	my ($name, $sql) = ($1, text($2));
	if (!defined $only) { print "$name\0$sql\0" }
	elsif ($name eq $only) { print "$sql\n"; exit 0 }
}
die "$file: no $only\n" if defined $only;
