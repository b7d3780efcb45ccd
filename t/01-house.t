#!/bin/sh
# The house: how the programs are built, installed and taken away again.
. "${0%/*}/lib.sh"

# A copy with its times, so that make finds it built, and the other tests' programs stay as they are.
mkdir house dest
cp -Rp "$t/../Makefile" "$t/../cmd" "$t/../lib" "$t/../man" house
[ ! -e "$t/../.flags" ] || cp -p "$t/../.flags" house
house() { make -s -C house --no-print-directory "$@"; }
listed() { (cd "$1" && find . -type f | sort); }

progs=$(sed -n 's/^PROGS = //p' house/Makefile | tr ' ' '\n' | sort)
want=$(for p in $progs; do echo "./bin/$p"; done
	for p in $progs; do echo "./share/man/man1/$p.1"; done | sort
	for f in house/man/*.5; do echo "./share/man/man5/${f##*/}"; done
	for f in house/man/*.7; do echo "./share/man/man7/${f##*/}"; done)

plan 19

is "$(for f in house/cmd/*.c; do basename "$f" .c; done)" "$progs" \
    'each file of cmd/ is a program'
is "$(for f in house/man/*.1; do basename "$f" .1; done)" "$progs" \
    '... and has its page'

exits 0 'install into a DESTDIR' house install DESTDIR="$PWD/dest" PREFIX=/opt/q
is "$(listed dest/opt/q)" "$(echo "$want" | sort)" '... programs and pages, nothing else'
is "$(listed dest | grep -cv '^./opt/q/')" 0 '... nothing elsewhere'
is "$(find dest/opt/q/bin -type f ! -perm 755)" '' '... programs may be run'
is "$(find dest/opt/q/share -type f ! -perm 644)" '' '... pages may be read'
is "$(env -i dest/opt/q/bin/qls --version)" "$(qls --version)" '... a program works from there'

exits 0 'install twice' house install DESTDIR="$PWD/dest" PREFIX=/opt/q
echo mine >dest/opt/q/bin/other
exits 0 'uninstall' house uninstall DESTDIR="$PWD/dest" PREFIX=/opt/q
is "$(listed dest/opt/q)" './bin/other' '... takes away exactly those'
exits 0 'uninstall twice' house uninstall DESTDIR="$PWD/dest" PREFIX=/opt/q

exits 0 'the place by default' house -n install uninstall DESTDIR=
like "$(cat out)" '^install .* /usr/local/bin$' '... is /usr/local'

exits 0 'a build with shared libraries' house -n -B SHARED=1
is "$(grep -c -e -static out)" 0 '... has no static program'

exits 0 'make clean' house clean
is "$(cd house && find . -type f ! -name '*.[ch157]' ! -name '*.sql')" ./Makefile '... leaves the sources alone'

http=$(sed -n 's/^HTTP = //p' house/Makefile)
for p in $progs; do
	case " $http " in *" $p "*) continue ;; esac
	! grep -q 'libcurl\|curl_easy' "$(command -v "$p")" || echo "$p"
done >curl
is "$(cat curl)" '' 'no program but those that speak HTTP carries libcurl'
