#!/bin/sh
# make html: every page, and no link that leads nowhere; the pages please groff, too.
. "${0%/*}/lib.sh"
command -v mandoc >/dev/null || skip_all 'mandoc is not installed'
cp -Rp "$t/../Makefile" "$t/../man" .

exits 0 'make html' env -u MAKEFLAGS -u MFLAGS make -s html
said '' 'silently'
is "$(cd .html && ls)" "$({ echo index.html; cd man && for f in *; do echo "$f.html"; done; } | sort)" '... has each page, and an index'
is "$(sed -n 's/^<dt><a href="\([^"]*\)\.html">.*/\1/p' .html/index.html | sort)" "$(ls man)" '... which names them all'
cat >links.pl <<'END'
my (%id, @links);
for my $file (<.html/*>) {
	open my $f, '<', $file or die;
	local $/;
	my $text = <$f>;
	$file =~ s{.*/}{};
	$id{$file}{$_} = 1 for '', $text =~ / id="([^"]*)"/g;
	push @links, map { [$file, $_] } $text =~ / href="([^"]*)"/g;
}
for (@links) {
	my ($file, $link) = @$_;
	next if $link =~ /^https:/;
	my ($to, $at) = $link =~ /^([^#]*)#?(.*)/;
	print "$file: $link\n" if !$id{$to eq '' ? $file : $to}{$at};
	$n++ if $to ne '';
}
print "few links between pages\n" if $n < 300;
END
is "$(perl links.pl)" '' '... whose links all lead somewhere'
grep -q '<a class="Xr" href="q.7.html">q(7)</a>' .html/qadd.1.html
ok $? '... as one to q(7) does'
is "$(grep -l '<a[^>]*>flock(1)</a>' .html/*)" '' "... and there is none to others' pages"

if command -v groff >/dev/null; then
	is "$(groff -mdoc -ww -Tascii man/* 2>&1 >/dev/null)" '' 'groff has no complaint'
else
	ok 0 'groff has no complaint # SKIP it is not installed'
fi
done_testing
