#!/bin/sh
# Completions, run by the shells themselves.  That their options are those of the programs: t/02-docs.t; installed: t/01-house.t.
. "${0%/*}/lib.sh"

from=$t/../scripts/completion
cat "$from/common" "$from/bash" >q.bash
{ echo '#compdef qls qadd qset qlate qwork'; cat "$from/common" "$from/zsh"; } >_q
progs=$(sed -n 's/^PROGS = //p' "$t/../Makefile")

qinit
qadd -q mail x
qadd -q other x
qset queue.mail.rate=10/s
# Names as no program here would store them.
sqlite3 app.db 'PRAGMA journal_mode=WAL' >made
qinit --into app.db
qadd -q -d app.db plain x
sqlite3 app.db "UPDATE q_job SET queue = '\$(touch hit)'; UPDATE q_count SET queue = '\$(touch hit)'"
mkfifo fifo
echo 'not a database' >text
head -c 3000 q.db >cut.db

# What a person sees after TAB: the words of each line of input, the last of them begun.  The limit of time is taken away, since this
# machine may be busy.
cat >complete.bash <<'END'
timeout() { shift; "$@"; }
[[ $1 != slow ]] || unset -f timeout
compopt() { options+=" $*"; }
. ./q.bash
while read -r line; do
	eval "COMP_WORDS=(${line/\~/\\~})" COMPREPLY=() options=
	((COMP_CWORD = ${#COMP_WORDS[@]} - 1))
	_q_bash "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
	echo "$line: ${COMPREPLY[*]}$options"
done
END
complete() { bash complete.bash "$@" <lines 2>&1; }

plan 13

cat >want <<'END'
qls '': mail other
qls ma: mail
qls -j -t x o: other
/opt/bin/qls ma: mail
qadd -k '' ma: mail
qadd -qkx ma: mail
qadd -qk x ma: mail
qadd -n ma: mail
qadd mail '': 
qwork -P 4 --limit 1m other ma: mail
qcancel -k order-7 ot: other
qlate --hist o: other
qls --st: --state
qadd --re: --replace
qls --state '': 
qls --state = d: 
qls -d '':  -o default
qls --database = q:  -o default
qpoll ord:  -o default
qset '': queue.mail.rate -o nospace
qset -f '':  -o default
qls -d /no/such '': 
qls --database = /no/such '': 
qls -d/no/such '': 
qls -d text '': 
qls -d cut.db '': 
qls -d app.db '': 
qls -d q.db '': mail other
qls -dq.db '': mail other
qls --database = q.db '': mail other
qls -d ~/q.db ma: mail
qset -d text '':  -o nospace
qwork mail -- mapfil: mapfile
true mail '': 
END
sed 's/: .*//' want >lines
is "$(complete)" "$(cat want)" 'bash: options, queues, settings and files'
like "$(qls -d app.db --counts)" '^[$][(]touch hit' '... there are names'
[ ! -e hit ]
ok $? '... that are commands, and they are not run'

for p in $progs; do echo "$p --versio"; done >lines
is "$(complete | grep -vc ': --version$')" 0 '... every program has its options'

echo "qls ''" >lines
mkdir slow
for p in qls qset; do printf '#!/bin/sh\nexec sleep 1000\n' >slow/$p; done
chmod +x slow/*
is "$(PATH=$PWD/slow:$PATH complete slow)" "qls '': " '... a file that hangs is given up'
echo "qls -d fifo ''" >lines
is "$(complete slow)" "qls -d fifo '': " '... so is one that is none'
echo "qls ''" >lines
busy
is "$(complete)" "qls '': mail other" '... a busy one is read'
exec 9>&-
is "$(Q_DB='' complete)" "qls '': " '... no file is no queue'

printf 'foo-qls ma\nfoo-qadd --vers\n' >lines
mkdir pre
for p in qls qadd; do cp "$(command -v $p)" pre/foo-$p; done
is "$(PATH=$PWD/pre:/usr/bin:/bin complete)" "foo-qls ma: mail
foo-qadd --vers: --version" '... programs with a prefix ask their own qls'

load=/usr/share/bash-completion/bash_completion
if [ -r $load ]; then
	mkdir -p share/bash-completion/completions
	{ cat q.bash; echo 'complete -F _q_bash qadd qls'; } >share/bash-completion/completions/qadd
	ln -s qadd share/bash-completion/completions/qls
	like "$(XDG_DATA_DIRS=$PWD/share bash -c ". $load; _completion_loader qls; complete -p qls" 2>&1)" '^complete -F _q_bash qls$' '... and bash-completion finds it'
else ok 0 '# SKIP bash-completion is not installed'; fi

if command -v zsh >made; then
	exits 0 'zsh reads its own' zsh -n _q
	# In a terminal of its own; TAB prints the line as it is then.
	cat >complete.zsh <<'END'
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PS1=; fpath=($PWD $fpath); timeout() { shift; "$@" }; autoload -U compinit; compinit -u -D; stty -echo
tab() { zle complete-word; print -r -- "<<$BUFFER>>"; zle kill-buffer }; zle -N tab; bindkey "^I" tab; echo READ""Y'
zpty -r z out '*READY*'
while read -r line; do
	zpty -w -n z "$line"$'\t'
	zpty -r z out '*<<*>>*'
	print -r -- "$line: ${${out##*<<}%%>>*}"
done
END
	cat >want <<'END'
qls m: qls mail 
qadd --rep: qadd --replace 
qadd -qk x ma: qadd -qk x mail 
qset qu: qset queue.mail.rate=
qls --database=q.db o: qls --database=q.db other 
qls -d q.db o: qls -d q.db other 
qls -d text m: qls -d text m
qls -d app.db p: qls -d app.db p
qlate --hist o: qlate --hist other 
qwork -P 4 mai: qwork -P 4 mail 
qwork mail -- zcompil: qwork mail -- zcompile 
END
	sed 's/: .*//' want >lines
	is "$(TERM=dumb timeout 60 zsh -f complete.zsh <lines 2>&1)" "$(cat want)" '... and completes'
else
	ok 0 'zsh reads its own # SKIP zsh is not installed'
	ok 0 '... and completes # SKIP zsh is not installed'
fi
[ ! -e hit ]
ok $? '... and no name is run'
