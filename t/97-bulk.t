#!/bin/sh
# scripts/bulk-send: the audience frozen, killed in the middle and run again, each recipient gets the mail once
# BULK=50000 is the full size.
. "${0%/*}/lib.sh"
PATH="$t/../scripts:$PATH"
n=${BULK:-50}
kill_at=$((n * 31402 / 50000))
qinit
mkdir spring
cd spring || exit 1
printf 'Hello {{name}}\nDear {{name}},\nyour code is {{code}}. 100%% {off}\n' >template
awk -v n="$n" 'BEGIN { for (i = 1; i <= n; i++) printf "{\"to\":\"R%d@example.org\",\"name\":\"N %d\",\"code\":\"\\\"c%d\\\"\"}\n", i, i, i }' >audience.jsonl
echo '{"to":"me@example.com","name":"Me","code":"x"}' >seed.jsonl
cp template ../template

# The provider: what arrived is a line of ./sent, written whole; it can be asked for a key.
cat >"$_dir/deliver" <<'END'
#!/bin/sh
read -r mail
printf '%s %s\n' "$Q_ONCE_KEY" "$mail" >>"$HOME/sent"
echo "id-$Q_ONCE_KEY"
END
chmod +x "$_dir/deliver"
touch "$HOME/sent"
export DELIVER="$_dir/deliver" UNKNOWN='probe:grep -qF "$Q_ONCE_KEY " "$HOME/sent"'
audience() { grep -c '^mail:spring/mail/' "$HOME/sent"; }

exits 1 'send before check' bulk-send send . "$n"
exits 0 'check' bulk-send check .
like "$(cat out)" "^$n mails\$" '... counts'
is "$(jq -r '.payload.text' mails.jsonl | sed -n 2p)" 'your code is "c1". 100% {off}' '... and writes what would be sent'
is "$(qls)" '' '... and adds nothing'
exits 0 'progress of nothing' bulk-send progress .
is "$(cat out)" 'nothing was added yet' '... is told'
exits 1 'send before the seed mails' bulk-send send . "$n"
like "$(cat err)" '0 of 1 seed mails are done' '... says why'
exits 0 'seed' bulk-send seed .
exits 0 '... is delivered' bulk-send work .
is "$(cut -d ' ' -f 1 "$HOME/sent" | cut -d / -f 3)" me@example.com '... by the real path'
exits 65 'another number than check told' bulk-send send . $((n - 1))
is "$(qls)" '' '... adds nothing'
exits 0 'send' bulk-send send . "$n"
exits 0 'send again' bulk-send send . "$n"
is "$(qls --state pending spring | wc -l)" "$n" '... is the same audience'

# Fails closed.
printf '%s\n' '{"to":"y@example.org","name":" ","code":"c"}' '{"to":"z@example.org","code":"c"}' >>audience.jsonl
exits 5 'a value is blank' bulk-send check .
is "$(grep -c 'no name' err) $(wc -l <err)" '1 2' '... told once, with the line of the script'
exits 5 '... and a list that was changed since is not sent' bulk-send send . "$n"
head -n "$n" audience.jsonl >a && echo '{"to":"r1@example.org","name":"b","code":"c"}' >>a && mv a audience.jsonl
exits 1 'an address twice, in other letters' bulk-send check .
sed '$d' audience.jsonl >a && mv a audience.jsonl
sed 's/off/undefined/' ../template >template
exits 1 'a leftover of the template' bulk-send check .
cp ../template template
for odd in 'a\rb' 'J\374rgen'; do	# a header line of its own; Latin-1
	sed '$d' audience.jsonl >a && printf "{\"to\":\"r$n@example.org\",\"name\":\"$odd\",\"code\":\"c\"}\n" | sed 's/\r/\\r/' >>a
	cp audience.jsonl ../audience && mv a audience.jsonl
	exits 1 "a name with $odd" bulk-send check .
	like "$(cat err)" "1 are odd, such as: r$n@example.org	" '... is told'
	mv ../audience audience.jsonl
done
bulk-send check . >out
sed 's/Dear/Nearest/' ../template >template
touch -d 2020-01-01 template
exits 1 'another text in an older file' bulk-send send . "$n"
like "$(cat err)" 'check comes first' '... is not what was looked at'
sed 's/Dear/Dearest/' ../template >template
exits 0 'another text' bulk-send check .
exits 1 '... needs seed mails of its own' bulk-send send . "$n"
cp ../template template && bulk-send check . >out

# The kill switch, at 2 %.
qset queue.spring.concurrency=1
at=$((n / 50))
cat >"$_dir/switch" <<END
#!/bin/sh
"$_dir/deliver"
[ "\$(grep -c ^mail:spring/mail/ "\$HOME/sent")" -lt $at ] || qpause spring 'wrong link'
END
chmod +x "$_dir/switch"
exits 0 'paused at 2 %' env DELIVER="$_dir/switch" bulk-send work .
is "$(audience)" "$at" '... nothing more is sent'
exits 0 '... by the next run, either' bulk-send work .
is "$(audience)" "$at" '... indeed'
exits 0 'progress' bulk-send progress .
like "$(cat out)" "^$((at + 1)) of $((n + 1)) done .* $((n - at)) to go, 0 dead" '... is read by anyone'
like "$(cat out)" '^paused: .*wrong link' '... with why it stands still'
qpause -r spring
qset queue.spring.concurrency=

# Killed with everything that belongs to it, at 31,402 of 50,000, as by a loss of power; after that no lease holds.
export Q_BOOT=one:1000
setsid bulk-send work . >work.out 2>&1 &
worker=$!
until_ok lines "$HOME/sent" 5	# its session is there
while [ "$(audience)" -lt "$kill_at" ] && kill -0 "$worker" 2>/dev/null; do sleep "$((n / 50000)).02"; done
kill -9 $(ps -A -o pid= -o sid= | awk -v s="$worker" '$2 == s { print $1 }') 2>/dev/null
wait "$worker" 2>/dev/null
is "$?" 137 "killed at $(audience) of $n"
sent=$(audience)
[ "$sent" -ge "$kill_at" ] && [ "$sent" -lt "$n" ]
ok $? '... in the middle'
export Q_BOOT=two:1000
exits 0 'run again' bulk-send work .
is "$(audience)" "$n" '... all have the mail'
is "$(cut -d ' ' -f 1 "$HOME/sent" | sort | uniq -d)" '' '... each once'
is "$(sql "SELECT state, count(*) FROM q_job WHERE queue = 'spring' GROUP BY state")" "done|$((n + 1))" '... all are done'

exits 0 'report' bulk-send report .
is "$(grep -c 'id-mail:spring/mail/' out)" "$(sql "SELECT count(*) FROM q_once WHERE length(output) > 0 AND key LIKE 'mail:spring/mail/%'")" \
    '... who got what, under which id'
is "$(grep -F 'R1@example.org' out | cut -f 1-6)" "$(printf 'R1@example.org\tmail\tdone\t2026-06-02T12:00:00Z\tid-mail:spring/mail/r1@example.org\t2026-06-02 14:00:00 +0200')" \
    '... when, in UTC and local time'

# One recipient fails: that one is tried again, later or at once never.
qset queue.spring.attempts=2
mkdir ../late && cp template seed.jsonl ../late && cd ../late || exit 1
printf '{"to":"bad@example.org","name":"x","code":"y"}\n{"to":"good@example.org","name":"x","code":"y"}\n' >audience.jsonl
printf '#!/bin/sh\n! grep bad@ || exit 65\n' >"$_dir/refuses"
chmod +x "$_dir/refuses"
bulk-send check . >out && bulk-send seed . && bulk-send work . && bulk-send send . 2 --at '2026-06-03 10:00' --tz Europe/Berlin
is "$(qls -j late | jq -r '.due_at + " " + .zone' | sort -u)" '2026-06-03T08:00:00Z Europe/Berlin' 'at an hour of the recipients'
exits 1 'an address that cannot be' env Q_NOW=2026-06-03T09:00:00Z DELIVER="$_dir/refuses" bulk-send work .
exits 0 '... is told' env Q_NOW=2026-06-03T09:00:00Z bulk-send report .
is "$(cut -f 1-3 out | grep -v me@ | sort)" "$(printf 'bad@example.org\tmail\tdead\ngood@example.org\tmail\tdone')" '... and holds up nobody'
done_testing
