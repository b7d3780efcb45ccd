#!/bin/sh
# The house: how the programs are built, installed and taken away again.
. "${0%/*}/lib.sh"

# A copy with its times, so that make finds it built, and the other tests' programs stay as they are.
mkdir house dest
cp -Rp "$t/../Makefile" "$t/../cmd" "$t/../lib" "$t/../man" "$t/../scripts" house
[ ! -e "$t/../.flags" ] || cp -p "$t/../.flags" house
listed() { (cd "$1" && find . ! -type d | sort); }
folders() { (cd "$1" && find . -type d | sort); }

progs=$(sed -n 's/^PROGS = //p' house/Makefile | tr ' ' '\n' | sort)
# PREFIX PROGPREFIX
files() {
	for p in $progs; do echo "./$1/bin/$2$p"; echo "./$1/share/bash-completion/completions/$2$p"; done
	for f in house/man/*; do echo "./$1/share/man/man${f##*.}/$2${f##*/}"; done
	echo "./$1/share/zsh/site-functions/_$2q"
}
# As somebody who is not root.
if [ "$(id -u)" -ne 0 ]; then user() { "$@"; }
elif setpriv --reuid=4001 --regid=4001 --clear-groups true 2>/dev/null; then
	user() { setpriv --reuid=4001 --regid=4001 --clear-groups "$@"; }
	chmod 711 .
	chown -R 4001:4001 house dest
else user() { "$@"; }
fi
house() { user make -s -C house --no-print-directory "$@"; }

plan 31

is "$(for f in house/cmd/*.c; do basename "$f" .c; done)" "$progs" \
    'each file of cmd/ is a program'
is "$(for f in house/man/*.1; do basename "$f" .1; done)" "$progs" \
    '... and has its page'

exits 0 'install into a DESTDIR' house install DESTDIR="$PWD/dest" PREFIX=/opt/q
is "$(listed dest)" "$(files opt/q | sort)" '... programs, pages and completions, nothing else'
is "$(find dest/opt/q/bin -type f ! -perm 755)" '' '... programs may be run'
is "$(find dest/opt/q/share -type f ! -perm 644)" '' '... pages may be read'
is "$(env -i dest/opt/q/bin/qls --version)" "$(qls --version)" '... a program works from there'
to=dest/opt/q/share/bash-completion/completions
is "$(cat house/scripts/completion/common house/scripts/completion/bash; printf 'complete -F _q_bash'; printf ' %s' $(sed -n 's/^PROGS = //p' house/Makefile))" \
    "$(cat $to/qpurge)" '... bash completes all programs'
is "$(echo '#compdef' $(sed -n 's/^PROGS = //p' house/Makefile); cat house/scripts/completion/common house/scripts/completion/zsh)" \
    "$(cat dest/opt/q/share/zsh/site-functions/_q)" '... so does zsh'

exits 0 'install twice' house install DESTDIR="$PWD/dest" PREFIX=/opt/q
find dest ! -type d -exec cksum {} + >sums
exits 0 'a second copy, with a PROGPREFIX' house install DESTDIR="$PWD/dest" PREFIX=/opt/q PROGPREFIX=my-
is "$(listed dest)" "$({ files opt/q; files opt/q my-; } | sort)" '... beside the first'
exits 0 '... which is as it was' sh -c 'cut -d " " -f 3- sums | xargs cksum | cmp - sums'
is "$(grep -hc 'Xr my-q' dest/opt/q/share/man/man?/my-q* | grep -cx 0)" 0 '... its pages refer to each other'
is "$(grep -E '(Xr|Nm) q' dest/opt/q/share/man/man?/my-q*)" '' '... and to no page of the first'
is "$(sed 's/my-//g' dest/opt/q/share/man/man1/my-qls.1)" "$(cat house/man/qls.1)" '... which is all that differs'
is "$(readlink $to/my-qls)" my-qinit '... its completions are its own'
is "$(tail -n 1 $to/my-qls)" "complete -F _q_bash$(for p in $(sed -n 's/^PROGS = //p' house/Makefile); do printf ' %s' "my-$p"; done)" '... for its programs'
exits 0 'uninstall it' house uninstall DESTDIR="$PWD/dest" PREFIX=/opt/q PROGPREFIX=my-
exits 0 '... the first is as it was' sh -c 'find dest ! -type d -exec cksum {} + | cmp - sums'

user sh -c 'echo mine >dest/opt/q/bin/other'
exits 0 'uninstall' house uninstall DESTDIR="$PWD/dest" PREFIX=/opt/q
is "$(listed dest)" './opt/q/bin/other' '... takes away exactly those'
is "$(folders dest/opt/q)" "$(printf '.\n./bin\n./share\n./share/man')" '... and the folders that nobody else has use for'
exits 0 'uninstall twice' house uninstall DESTDIR="$PWD/dest" PREFIX=/opt/q

exits 0 'the place by default' house -n install uninstall DESTDIR=
like "$(cat out)" '^install -d /usr/local/bin ' '... is /usr/local'

exits 0 'a build with shared libraries' house -n -B SHARED=1
is "$(grep -c -e -static out)" 0 '... has no static program'

exits 0 'make clean' house clean
is "$(cd house && find . -type f ! -name '*.[ch157]' ! -name '*.sql' ! -path './scripts/*')" ./Makefile '... leaves the sources alone'

http=$(sed -n 's/^HTTP = //p' house/Makefile)
for p in $progs; do
	case " $http " in *" $p "*) continue ;; esac
	! grep -q 'libcurl\|curl_easy' "$(command -v "$p")" || echo "$p"
done >curl
is "$(cat curl)" '' 'no program but those that speak HTTP carries libcurl'
