#!/usr/bin/perl
# What the programs say when something is wrong stands in a page; q-messages(7) has no words that no program says, and has each
# under the exit status that comes with it.
#
# A message is here any text of two words in a row in cmd/ and lib/, but for: the arguments of prog_usage(), whose common form
# the page has; of printf(), puts() and fputs(), which are output; help texts and SQL; lib/alarm.c, check.c, chart.c and prom.c,
# whose words are the reports of qlate(1) and qcheck(1); and these:
my @OTHER = (
	'spent, generation', 'blocked by', 'of the same entity comes first', 'of its entity, held by',	# fields of qls
	'is not as q made it', 'is not of q',			# what qcheck finds
	'Connection: close', 'error code=', 'error code', 'Unsupported proxy',	# words of HTTP, SQLite and libcurl
);
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(basename dirname);
use Test::More;

my $top = abs_path(dirname($0) . '/..');
my $GAP = "\x01";	# what differs from one time to the next

sub slurp { my ($file) = @_; open my $f, '<', $file or die "$file: $!"; local $/; scalar <$f> }
# Words between single blanks, with one at each end.
sub words { my ($s) = @_; $s = lc $s; $s =~ s/$GAP/ $GAP /g; $s =~ s/[^a-z0-9_$GAP]+/ /g; $s =~ s/^ ?(.*?) ?$/ $1 /s; $s }

# ---- the programs -----------------------------------------------------------

# Each text in a source, with the function that gets it, and the status beside it if there is one.
sub texts {
	my ($file) = @_;
	my $c = slurp($file);
	my (@texts, @calls, @status, $text);
	my $name = my $before = '';
	$c =~ s/^#.*//mg;
	$c =~ s/\bPRI([dux])64\b/"$1"/g;
	while ($c =~ m{\G(?:/\*.*?\*/|"((?:[^"\\]|\\.)*)"|'(?:[^'\\]|\\.)+'|([A-Za-z_]\w*)|(\s+)|(.))}gs) {
		next if !defined $1 && !defined $2 && !defined $4 || defined $3;
		if (defined $1) {
			$text .= $1;
			next;
		}
		if (defined $text) {
			push @texts, [(grep { !/^(?:|if|while|for|switch|return|sizeof)$/ } reverse @calls)[0] // $before, $text,
			    @{$status[-1] // []} == 1 ? $status[-1][0] : ''];
			undef $text;
		}
		$before = $name = $2 if defined $2;
		push @{$status[-1]}, $2 if @status && defined $2 && index($2, 'Q_') == 0;
		next if !defined $4;
		push(@calls, $name), push @status, [] if $4 eq '(';
		pop @calls, pop @status if $4 eq ')';
		@calls = @status = () if $4 eq ';';
		$name = '' if $4 ne ')';
	}
	return @texts;
}

my (%said, %any, %status);	# the words => where, statuses
my %number = slurp("$top/lib/q.h") =~ /\b(Q_[A-Z]+) = (\d+)/g;
for my $file (glob "$top/cmd/*.c $top/lib/*.c") {
	next if $file =~ m{lib/(?:alarm|check|chart|prom|schema)\.c$};
	for (texts($file)) {
		my ($call, $text, $status) = @$_;
		next if $call =~ /^(?:printf|puts|fputs|help)$/ || $text =~ /^(?:usage: |\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH|PRAGMA|AND) )|\b(?:SELECT|WHERE|ORDER BY|CASE|WHEN) /;
		my $where = basename($file) . ": $text";
		$text =~ s/\\["\\]|\\[nrt]|%%/ /g;
		$text =~ s/%[-0-9.*]*(?:ll|[lzj])?[A-Za-z]/$GAP/g;
		my $words = words($text);
		$any{$words} = 1 if $words =~ /[a-z]/;
		next if $call eq 'prog_usage' || $text !~ /[a-z]{2}['"]?[,:;]? ['"]?[A-Za-z]{2}/ || grep { index($where, $_) >= 0 } @OTHER;
		$said{$words} //= $where;
		$status{$words}{$status} = 1 if $status =~ /^Q_(?!OK|NO$)/;
	}
}
ok(keys %said > 600, 'the texts of the programs were read') or diag(scalar keys %said);

# The fixed words of a text, where what differs parts them.
sub fixed { grep { /\w/ } split /$GAP/, $_[0] }

# ---- the pages --------------------------------------------------------------

sub plain {
	my ($line) = @_;
	if ($line =~ s/^\.//) {
		$line =~ s/\bAr \S+/$GAP/g;
		$line =~ s/(?:^|(?<= ))(?:It|No|Ns|Sy|Fl|Pa|Xr|Ql|Sq|Dq|Li|Ev|Em)(?= |$)/ /g;
	}
	$line =~ s/\\[(](?:aq|dq)|\\[&e]/ /g;
	$line =~ s/%[A-Za-z]/$GAP/g;
	return $line;
}

my (@paragraphs, @items);
for my $file (glob "$top/man/*.[157]") {
	my $section = '';
	for my $line (split /\n/, slurp($file)) {
		$section = $1 if $line =~ /^\.Sh (\S+)/;
		if ($line =~ /^\.(?:It|Pp|S[hs]|[BE]l)\b/ || !@paragraphs) {
			push @paragraphs, '';
			push @items, [words(plain($line)), $section] if $file =~ /q-messages/ && $line =~ /^\.It/;
		}
		$paragraphs[-1] .= plain($line) . ' ';
	}
}
my $pages = join "\n", map { words($_) } @paragraphs;
ok(@items > 400, 'q-messages(7) was read');

my @faults;
for my $words (sort keys %said) {
	my $like = join '.{0,400}?', map { quotemeta } fixed($words);
	push @faults, "$said{$words}\n" if $pages !~ /$like/;
}
is(join('', @faults), '', 'each message stands in a page (else: add it to man/q-messages.7)');

# Where the fixed words stand in an entry, one after the other; or nothing.
sub find {
	my ($item, @fixed) = @_;
	my ($at, @found) = 0;
	for (@fixed) {
		return if ($at = index $item, $_, $at) < 0;
		push @found, $at;
		$at += length($_) - 1;
	}
	return @found;
}

@faults = ();
for my $words (sort keys %status) {
	my %under = map { $_->[1] => 1 } grep { find($_->[0], fixed($words)) } @items;
	push @faults, map { "$number{$_}, not @{[keys %under]} $said{$words}\n" } grep { %under && !$under{"$number{$_}:"} } sort keys %{$status{$words}};
}
ok(keys %status > 200, 'statuses were read') or diag(scalar keys %status);
is(join('', @faults), '', 'each stands under the status that comes with it');

# Nothing is left of an entry when all that the programs say is taken out of it.
my @any = map { [fixed($_)] } keys %any;
@faults = ();
for (@items) {
	my $item = my $left = $_->[0];
	for my $fixed (@any) {
		my @found = index($item, $fixed->[0]) < 0 ? next : find($item, @$fixed);
		substr($left, $found[$_], length $fixed->[$_]) =~ tr/a-z0-9_/\x02/ for 0 .. $#found;
	}
	push @faults, "$item: $left\n" =~ s/\x02+/./gr if $left =~ /[a-z0-9_]/;
}
is(join('', @faults), '', 'q-messages(7) has nothing that no program says');

done_testing;
