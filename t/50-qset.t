#!/bin/sh
# qset: every setting with good and bad values, names and their typos, files, all or nothing, and what must fit together.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

fresh() { rm -f q.db*; qinit; }
rows() { sql 'SELECT kind, name, field, value, coalesce(number, "-") FROM q_setting ORDER BY 1, 2, 3'; }
all() { sql 'SELECT * FROM q_setting ORDER BY 1, 2, 3'; }
line() { printf "%s\n" "$*"; }

exits 66 'no file' qset
exits 66 '... to write to' qset queue.mail.rate=1/s
fresh
exits 0 'an empty file' qset
said '' 'has no settings'
exits 1 'what is not set' qset queue.mail.rate
said '' 'is no output'

# ---- good values: each is kept as it was given, printed, and unset again ----

# NAME^VALUE^what the table holds beside the value: kind|name|field, and the number
while IFS=^ read -r name value row number; do
	exits 0 "$name=$value" qset "$name=$value"
	said '' silent
	is "$(rows)" "$row|$value|$number" '... is kept, and what was before is unset'
	exits 0 '... and printed' qset "$name"
	said "$value" alone
	{ qset >one; qset "$name="; qset; qset -f one; qset; } >out 2>err
	said "$name=$value" 'with its name, and read back'
	qset "$name="
done <<'END'
queue.mail.rate^10/s^queue|mail|rate^-
queue.mail.rate^10/s+20^queue|mail|rate^-
queue.mail.rate^600/m^queue|mail|rate^-
queue.mail.rate^1/90s^queue|mail|rate^-
queue.mail.rate^5/1m30s+2^queue|mail|rate^-
queue.mail.rate^1/ms^queue|mail|rate^-
queue.mail.rate^1000000/s+1000000^queue|mail|rate^-
queue.mail.rate^1/3650d^queue|mail|rate^-
queue.mail.rate^3/w+3^queue|mail|rate^-
queue.mail.concurrency^1^queue|mail|concurrency^1
queue.mail.concurrency^1000000^queue|mail|concurrency^1000000
queue.mail.slo^30s/99%^queue|mail|slo^-
queue.mail.slo^1h30m/99.95%^queue|mail|slo^-
queue.mail.slo^500ms/0.5%^queue|mail|slo^-
queue.mail/reset.slo^10s/99%^queue|mail/reset|slo^-
queue.mail/a/b.c d.slo^10s/99%^queue|mail/a/b.c d|slo^-
queue.mail/größe.slo^10s/99%^queue|mail/größe|slo^-
queue.mail.keep^30d^queue|mail|keep^2592000000
queue.mail.keep^forever^queue|mail|keep^-
queue.mail.keep^0^queue|mail|keep^0
queue.mail.age^5m^queue|mail|age^300000
queue.mail.age^1ms^queue|mail|age^1
queue.mail.stale^skip^queue|mail|stale^-
queue.mail.dead_to^uncollectible^queue|mail|dead_to^-
queue.mail.dead_to^a.b^queue|mail|dead_to^-
queue.mail.keys^settled^queue|mail|keys^0
queue.mail.keys^forever^queue|mail|keys^9223372036854775807
queue.mail.keys^7d^queue|mail|keys^604800000
queue.mail.attempts^1^queue|mail|attempts^1
queue.mail.attempts^20^queue|mail|attempts^20
queue.mail.backoff^5s..10m^queue|mail|backoff^600000
queue.mail.backoff^0..1s^queue|mail|backoff^1000
queue.mail.backoff^1m..1m^queue|mail|backoff^60000
queue.mail.window^2d^queue|mail|window^172800000
queue.a.b.rate^1/s^queue|a.b|rate^-
queue.rate.rate^1/s^queue|rate|rate^-
queue.slo.slo.slo^1s/9%^queue|slo.slo|slo^-
queue._-9.rate^1/s^queue|_-9|rate^-
queue.1a.rate^1/s^queue|1a|rate^-
queue.0123456789012345678901234567890123456789012345678901234567890.ab.rate^1/s^queue|0123456789012345678901234567890123456789012345678901234567890.ab|rate^-
rate.partner^10/s+20^rate|partner|^-
rate.a.b^1/s^rate|a.b|^-
rate.rate^1/s^rate|rate|^-
rate.concurrency^1/s^rate|concurrency|^-
rate.partner.concurrency^5^rate|partner|concurrency^5
rate.a.b.concurrency^5^rate|a.b|concurrency^5
expect.mail^26h^expect|mail|^93600000
expect.nightly-export^by 06:00 Europe/Berlin^expect|nightly-export|^-
expect.mail^by 00:00 UTC^expect|mail|^-
expect.mail^by 23:59 America/Argentina/Buenos_Aires^expect|mail|^-
expect.mail/reset^1d^expect|mail/reset|^86400000
expect.a.b/c.d^1d^expect|a.b/c.d|^86400000
expect.rate^1h^expect|rate|^3600000
credential.partner.expires^2027-01-31^credential|partner|expires^1801353600000
credential.partner.expires^2027-01-31T12:00:00Z^credential|partner|expires^1801396800000
credential.partner.expires^2027-01-31T12:00:00.5+01:00^credential|partner|expires^1801393200500
credential.partner.expires^@1801396800^credential|partner|expires^1801396800000
credential.partner.expires^2028-02-29^credential|partner|expires^1835395200000
credential.partner.owner^Ana, ext. 7^credential|partner|owner^-
credential.partner.owner^a=b=c # no comment^credential|partner|owner^-
credential.partner.for^orders "and" 'refunds' \n $HOME `id` %s^credential|partner|for^-
credential.a.b.for^größer 日本^credential|a.b|for^-
END
value=$(printf '%0255d' 0)
exits 0 'a value of 255 bytes' qset "credential.c.for=$value"
is "$(qset credential.c.for)" "$value" '... is whole'
name=queue.$(printf '%064d' 0 | tr 0 q)/$(printf '%0255d' 0)
exits 0 'the longest name' qset "$name.slo=1s/9%"
is "$(qset)" "credential.c.for=$value
$name.slo=1s/9%" '... is whole'
exits 0 'several in one' qset credential.c.for= "$name.slo=" queue.a.rate=1/s 'expect.b=by 06:00 UTC'
is "$(qset)" 'expect.b=by 06:00 UTC
queue.a.rate=1/s' '... some set, some unset'
exits 0 'unsetting what is not set' qset queue.none.rate= credential.none.owner= expect.none=
said '' silent

# ---- bad values: the message says what would be right, and nothing changes ----

qset rate.p=1/s rate.p.concurrency=3 queue.mail.limit=p queue.mail.keep=1d
before=$(all)
day=' is not a day such as 2027-01-31, nor an instant such as 2027-01-31T12:00:00Z'
rate=' is not a rate such as 10/s, 600/m+20 (burst 20) or 1/90s'
fast=' is more than a million a second, or its burst lasts longer than 10 years'
count=' is not a whole number from 1 to 1000000'
slo=' is not a target such as 30s/99%'
keep=" is not 'forever' or a duration such as 30d"
keys=" is not 'settled', 'forever' or a duration such as 7d"
skip=" is not 'skip', the only word here"
queue=' is not the name of a queue'
bucket=' is not the name of a rate, such as partner'
expect=" is not a duration such as 26h, nor 'by 06:00 Europe/Berlin'"
unit=' a number needs a unit: write 10s, 10m, 10h or 10d'
while IFS=^ read -r name value why; do
	eval "why=\"$why\""
	exits 65 "$name=$value" qset "$name=$value"
	said "qset: $name: '$value'$why"
done <<'END'
queue.mail.rate^10^$rate
queue.mail.rate^fast^$rate
queue.mail.rate^10/^$rate
queue.mail.rate^/s^$rate
queue.mail.rate^0/s^$rate
queue.mail.rate^-1/s^$rate
queue.mail.rate^1.5/s^$rate
queue.mail.rate^10/s+^$rate
queue.mail.rate^10/s+0^$rate
queue.mail.rate^10+5/s^$rate
queue.mail.rate^10/s+5+5^$rate
queue.mail.rate^10/0s^$rate
queue.mail.rate^10/5^$rate
queue.mail.rate^10/x^$rate
queue.mail.rate^10/s/s^$rate
queue.mail.rate^10 /s^$rate
queue.mail.rate^1000001/s^$rate
queue.mail.rate^1/s+1000001^$rate
queue.mail.rate^1/3651d^$rate
queue.mail.rate^1000000/ms^$fast
queue.mail.rate^1/3650d+2^$fast
rate.p^partner^$rate
rate.p.concurrency^0^$count
rate.p.concurrency^1000001^$count
queue.mail.concurrency^-1^$count
queue.mail.concurrency^four^$count
queue.mail.concurrency^4.0^$count
queue.mail.concurrency^0x4^$count
queue.mail.concurrency^99999999999999999999^$count
queue.mail.attempts^0^$count
queue.mail.attempts^forever^$count
queue.mail.limit^10/s^$bucket
queue.mail.limit^12^$bucket
queue.mail.limit^a b^$bucket
queue.mail.slo^30s^$slo
queue.mail.slo^99%^$slo
queue.mail.slo^30s/99^$slo
queue.mail.slo^30s/100%^$slo
queue.mail.slo^30s/0%^$slo
queue.mail.slo^30s/-1%^$slo
queue.mail.slo^30s/nan%^$slo
queue.mail.slo^30s/9e1%^$slo
queue.mail.slo^30s/1.2.3%^$slo
queue.mail.slo^30s/%^$slo
queue.mail.slo^0s/99%^$slo
queue.mail.slo^30/99%^$slo
queue.mail.slo^30s/99%%^$slo
queue.mail/reset.slo^30s/99% ok^$slo
queue.mail.keep^30^$keep
queue.mail.keep^never^$keep
queue.mail.keep^-1d^$keep
queue.mail.keep^1mo^$keep
queue.mail.age^5^$unit
queue.mail.age^0^ must be more than 0
queue.mail.age^0s^ must be more than 0
queue.mail.window^0s^ must be more than 0
queue.mail.window^2^$unit
queue.mail.stale^yes^$skip
queue.mail.stale^Skip^$skip
queue.mail.dead_to^12^$queue
queue.mail.dead_to^.x^$queue
queue.mail.dead_to^a/b^$queue
queue.mail.dead_to^0123456789012345678901234567890123456789012345678901234567890.abc^$queue
queue.mail.keys^always^$keys
queue.mail.keys^30^$keys
queue.mail.backoff^5s^ is not BASE..CAP, such as 5s..10m
queue.mail.backoff^5s..^ is not BASE..CAP, such as 5s..10m
queue.mail.backoff^..5s^ is not BASE..CAP, such as 5s..10m
queue.mail.backoff^5..10^$unit
queue.mail.backoff^10m..5s^ must not begin above its cap, nor the cap be 0
queue.mail.backoff^0..0^ must not begin above its cap, nor the cap be 0
expect.mail^26^$expect
expect.mail^0^$expect
expect.mail^daily^$expect
expect.mail^by 06:00^$expect
expect.mail^by 06:00 Berlin^$expect
expect.mail^by 24:00 UTC^$expect
expect.mail^by 06:00,UTC^$expect
expect.mail^by 06:00:00 UTC^$expect
expect.mail^by 6:00 UTC^$expect
expect.mail^by 06:60 UTC^$expect
expect.mail^by 06.00 UTC^$expect
expect.mail^by  06:00 UTC^$expect
expect.mail^by 06:00 ../UTC^$expect
expect.mail^By 06:00 UTC^$expect
credential.p.expires^2027^$day
credential.p.expires^2027-02-29^$day
credential.p.expires^2027-1-31^$day
credential.p.expires^31.01.2027^$day
credential.p.expires^2027-01-31 12:00^$day
credential.p.expires^now^$day
credential.p.expires^+30d^$day
credential.p.expires^tomorrow 10:00^$day
credential.p.expires^30d^$day
credential.p.expires^@x^$day
credential.p.expires^2027-01-3x^$day
END

is "$(all)" "$before" 'nothing of all that changed anything'

# Bytes that are no text, in any value.
while IFS=^ read -r name value why; do
	exits 65 "$name=$value" qset "$name=$(printf "$value")"
	said "qset: $name: the value $why"
done <<'END'
credential.p.owner^a\tb^has a control byte
credential.p.owner^a\nqueue.x.rate=1/s^has a control byte
credential.p.for^\033[31mred^has a control byte
credential.p.for^a\177^has a control byte
credential.p.for^\377^is not UTF-8
credential.p.for^a\303^is not UTF-8
credential.p.for^\300\200^is not UTF-8
queue.mail.rate^1/s\001^has a control byte
expect.mail^by 06:00 UTC\r^has a control byte
queue.mail.dead_to^\303\050^is not UTF-8
END
exits 65 'a value of 256 bytes' qset "credential.p.for=$(printf '%0256d' 0)"
said 'qset: credential.p.for: the value is longer than 255 bytes'
for value in ' a' 'a ' "$(printf '\ta')" "$(printf 'a\t')" ' '; do
	exits 65 "a blank at an end: '$value'" qset "credential.p.for=$value"
	like "$(cat err)" "^qset: 'credential.p.for=.*': a name or value has a blank at its beginning or end\$" '... is told'
done

# ---- names: the nearest is named ----

help='; there are queue.NAME.rate and others, rate.NAME, expect.NAME, credential.NAME.expires; see man qset'
charset='a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number'
while IFS=^ read -r name near; do
	exits 65 "$name" qset "$name=1"
	said "qset: no setting '$name'; did you mean '$near'?"
	exits 65 '... asked for' qset "$name"
	said "qset: no setting '$name'; did you mean '$near'?"
done <<'END'
queue.mail.rte^queue.mail.rate
queue.mail.rates^queue.mail.rate
queue.mail.Rate^queue.mail.rate
queue.mail.limt^queue.mail.limit
queue.mail.concurency^queue.mail.concurrency
queue.mail.sol^queue.mail.slo
queue.mail.keeps^queue.mail.keep
queue.mail.aeg^queue.mail.age
queue.mail.stales^queue.mail.stale
queue.mail.dead-to^queue.mail.dead_to
queue.mail.deadto^queue.mail.dead_to
queue.mail.kesy^queue.mail.keys
queue.mail.key^queue.mail.keys
queue.mail.atempts^queue.mail.attempts
queue.mail.back_off^queue.mail.backoff
queue.mail.windows^queue.mail.window
queue.a.b.rte^queue.a.b.rate
queue.mail/reset.slow^queue.mail/reset.slo
rate.partner.concurency^rate.partner.concurrency
credential.partner.expire^credential.partner.expires
credential.partner.owners^credential.partner.owner
credential.partner.fro^credential.partner.for
queues.mail.rate^queue.mail.rate
qeue.mail.rte^queue.mail.rate
Queue.a.b.rate^queue.a.b.rate
rates.partner^rate.partner
rte.partner.concurrency^rate.partner.concurrency
expects.mail/reset^expect.mail/reset
credentials.partner.expires^credential.partner.expires
crednetial.partner.ownr^credential.partner.owner
END
while IFS=^ read -r name why; do
	eval "why=\"$why\""
	exits 65 "'$name'" qset "$name=1"
	said "qset: no setting '$name'$why"
	exits 65 '... asked for' qset "$name"
	said "qset: no setting '$name'$why"
done <<'END'
^$help
mail^$help
mail.rate^$help
queue^$help
queue.^$help
queue.mail^$help
queue.mail.^$help
queue.mail.colour^$help
rate^$help
rate.^$help
expect^$help
expect.^$help
credential^$help
credential.partner^$help
credential.partner.password^$help
.^$help
.queue.mail.rate^$help
a-kind-that-is-longer-than-any.mail.rate^$help
queue.rate^: the name is missing, as in queue.mail.rate
queue..rate^: the name is missing, as in queue.mail.rate
rate..concurrency^: the name is missing, as in queue.mail.rate
credential.expires^: the name is missing, as in queue.mail.rate
queue.12.rate^: '12' is not a name; $charset
queue.-a.rate^: '-a' is not a name; $charset
queue...rate^: '.' is not a name; $charset
queue.a b.rate^: 'a b' is not a name; $charset
queue.größe.rate^: 'größe' is not a name; $charset
queue./t.slo^: '' is not a name; $charset
queue.0123456789012345678901234567890123456789012345678901234567890.abc.rate^: '0123456789012345678901234567890123456789012345678901234567890.abc' is not a name; $charset
rate.12^: '12' is not a name; $charset
expect.a b^: 'a b' is not a name; $charset
credential.a+b.owner^: 'a+b' is not a name; $charset
queue.mail/.slo^: the type is empty
expect.mail/^: the type is empty
queue.mail/reset.rate^; for a type of a queue there are only slo and expect
queue.mail/reset.attempts^; for a type of a queue there are only slo and expect
rate.a/b^; for a type of a queue there are only slo and expect
credential.a/b.for^; for a type of a queue there are only slo and expect
queue.mail.paused^; pauses are set by qpause
END
exits 65 'a control byte in a name' qset "$(printf 'queue.ma\033il.rate=1/s')"
said "qset: no setting 'queue.ma\\x1bil.rate': 'ma\\x1bil' is not a name; $charset"
exits 65 'a type that is no text' qset "$(printf 'queue.mail/\377.slo=1s/9%%')"
said "qset: no setting 'queue.mail/\\xff.slo': the type is not UTF-8"
exits 65 'a type of 256 bytes' qset "queue.mail/$(printf '%0256d' 0).slo=1s/9%"
like "$(cat err)" ': the type is longer than 255 bytes$' '... is told'
exits 65 'a name of 5000 bytes' qset "queue.$(printf '%05000d' 0).rate=1/s"
is "$(wc -l <err)" 1 '... in one line'
exits 65 '... and a kind' qset "$(printf '%05000d' 0)=1"
exits 65 'a blank before the =' qset 'queue.mail.rate =1/s'
said "qset: 'queue.mail.rate =1/s': a name or value has a blank at its beginning or end"
exits 65 '... or behind it' qset 'queue.mail.rate= 1/s'
exits 65 '... or at the beginning' qset ' queue.mail.rate=1/s'
exits 65 '... also of a type, which could end so' qset 'expect.mail/reset =1h'
exits 65 'no name' qset =1/s
said "qset: no setting ''$help"
is "$(all)" "$before" 'nothing of all that changed anything'

# ---- usage ----

exits 64 'two questions' qset queue.a.rate queue.b.rate
said "qset: 'queue.b.rate' is not NAME=VALUE, and one NAME is printed at a time; see 'qset --help'"
exits 64 'a question and a setting' qset queue.a.rate queue.b.rate=1/s
said "qset: 'queue.a.rate' is not NAME=VALUE, and one NAME is printed at a time; see 'qset --help'"
exits 64 '... the other way round' qset queue.b.rate=1/s queue.a.rate
exits 64 'a value as a word of its own' qset queue.a.rate 1/s
exits 64 '-f and a setting' qset -f /dev/null queue.a.rate=1/s
said "qset: -f takes no operand, such as 'queue.a.rate=1/s'; see 'qset --help'"
exits 64 '-f and a question' qset --file /dev/null queue.a.rate
exits 64 '-f alone' qset -f
exits 65 'twice in one command' qset queue.a.rate=1/s queue.b.rate=1/s queue.a.rate=2/s
said 'qset: queue.a.rate is given twice'
exits 65 '... set and unset' qset queue.a.rate= queue.a.rate=2/s
exits 78 'a bad Q_NOW' env Q_NOW=noon qset queue.a.rate=1/s
is "$(all)" "$before" 'nothing of all that changed anything'

# ---- all or nothing ----

for bad in queue.a.rate=x queue.a.rte=1/s nonsense=1 queue.a.limit=none queue.b.dead_to=b 'rate.p= rate.p.concurrency='; do
	for words in "queue.x.age=1m queue.y.age=1m $bad" "$bad queue.x.age=1m" "queue.x.age=1m $bad queue.mail.keep="; do
		# shellcheck disable=SC2086 # words
		exits 65 "$words" qset $words
		is "$(all)" "$before" '... nothing of it is set'
		line "$words" | tr ' ' '\n' >file
		exits 65 '... nor from a file' qset -f file
		is "$(all)" "$before" '... nothing of it is set'
	done
done

# ---- what must fit together ----

fresh
exits 65 'dead_to itself' qset queue.a.dead_to=a
said "qset: queue.a.dead_to: it leads back to this queue, so dead jobs would go round for ever"
exits 0 'dead_to another' qset queue.a.dead_to=b
exits 65 'a circle of two' qset queue.b.dead_to=a
said "qset: queue.b.dead_to: it leads back to this queue, so dead jobs would go round for ever"
exits 0 'a chain' qset queue.b.dead_to=c queue.z.dead_to=a
exits 65 'a circle of three' qset queue.c.dead_to=a
said "qset: queue.c.dead_to: it leads back to this queue, so dead jobs would go round for ever"
exits 65 '... that one command makes' qset queue.e.dead_to=f queue.f.dead_to=g queue.g.dead_to=e
said "qset: queue.e.dead_to: it leads back to this queue, so dead jobs would go round for ever"
is "$(qset)" 'queue.a.dead_to=b
queue.b.dead_to=c
queue.z.dead_to=a' '... none of it is set'
exits 0 'a circle that the same command opens' qset queue.c.dead_to=a queue.b.dead_to=
exits 0 'turned round' qset queue.c.dead_to= queue.a.dead_to= queue.b.dead_to=a
cat >circle <<'END'
# two lines of one file
queue.d.dead_to=people
queue.m.dead_to=n
queue.x.rate=1/s
queue.n.dead_to=m
END
exits 65 'a circle of two lines' qset -f circle
said "qset: circle:3: queue.m.dead_to: it leads back to this queue, so dead jobs would go round for ever"
printf 'queue.x.dead_to=m\nqueue.m.dead_to=n\nqueue.n.dead_to=m\n' >circle
exits 65 'a way into a circle' qset -f circle
said 'qset: circle:1: queue.x.dead_to: it leads on for more than 10 queues, or round for ever'
fresh
seq 10 | awk '{ print "queue.q" $1 ".dead_to=q" $1 + 1 }' >chain
exits 0 'a chain of ten' qset -f chain
exits 65 '... is not closed' qset queue.q11.dead_to=q1
exits 65 '... nor made longer' qset queue.q0.dead_to=q1
said 'qset: queue.q0.dead_to: it leads on for more than 10 queues, or round for ever'
is "$(sql 'SELECT count(*) FROM q_setting')" 10 '... and stays'

fresh
exits 65 'a limit of no rate' qset queue.a.limit=p
said 'qset: queue.a.limit: there is no rate.p and no rate.p.concurrency; set one in the same command, or before'
exits 65 '... unset in the same command' qset queue.a.limit=p rate.p=
exits 65 '... though there is another' qset queue.a.limit=p rate.q=1/s
exits 0 'a limit and its rate, in whatever order' qset queue.a.limit=p rate.p=1/s
exits 65 'a rate in use' qset rate.p=
said 'qset: rate.p: queue.a.limit names it; unset that in the same command, or before'
exits 0 '... gets another value' qset rate.p=2/s
exits 0 '... or a cap in its place' qset rate.p= rate.p.concurrency=2
exits 65 '... which is in use now' qset rate.p.concurrency=
said 'qset: rate.p: queue.a.limit names it; unset that in the same command, or before'
exits 0 '... or goes with its limit' qset rate.p.concurrency= queue.a.limit=
is "$(qset)" '' '... and all is gone'
qset rate.p=1/s rate.q=1/s queue.a.limit=p
exits 0 'a limit that changes to another rate' qset queue.a.limit=q rate.p=
printf '\nqueue.b.limit=q\n\nrate.q=\n' >file
exits 65 'a file that takes a rate away' qset -f file
said 'qset: file:2: queue.b.limit: there is no rate.q and no rate.q.concurrency; set one in the same command, or before'
printf '# x\nrate.q=\n' >file
exits 65 '...' qset -f file
said 'qset: file:2: rate.q: queue.a.limit names it; unset that in the same command, or before'

# ---- printing ----

fresh
Q_NOW=2026-06-02T11:00:00Z qpause mail 'partner down # 7' 2>err
qpause --all
qset queue.mail.rate=1/s queue.mail-x.rate=1/s queue.mail.a.rate=1/s queue.mail/t.slo=1s/9% queue.mail.age=1m rate.b=1/s rate.a.concurrency=1 \
    rate.a=1/s expect.z=1h 'expect.a=by 06:00 Europe/Berlin' credential.c.owner='\t = # "x"' credential.c.expires=2027-01-31
want='credential.c.expires=2027-01-31
credential.c.owner=\t = # "x"
expect.a=by 06:00 Europe/Berlin
expect.z=1h
# paused since 2026-06-02T12:00:00Z: all queues
queue.mail.age=1m
# paused since 2026-06-02T11:00:00Z: mail: partner down # 7
queue.mail.rate=1/s
queue.mail-x.rate=1/s
queue.mail.a.rate=1/s
queue.mail/t.slo=1s/9%
rate.a=1/s
rate.a.concurrency=1
rate.b=1/s'
exits 0 'all' qset
said "$want" 'by kind, name, field; pauses are comments'
cp out printed
exits 0 'read into an empty file' sh -c 'qinit new.db && qset -d new.db -f printed'
is "$(qset -d new.db)" "$(grep -v '^#' printed)" '... gives the same, without the pauses'
now=$(all)
exits 0 'read where it comes from' qset -f printed
is "$(all)" "$now" '... changes nothing'

# What qset would refuse, put there by somebody else: it can be read back all the same, and forges no line.
sqlite3 q.db <<'END'
INSERT INTO q_setting VALUES('queue', 'x', 'rate', '1/s' || char(10) || 'queue.y.rate=9/s', NULL, 1), ('queue', 'nl' || char(10) || 'rate.z=1/s', 'paused', 'a' || char(10) || 'rate.z=1/s', NULL, 1),
    ('queue', 'x', 'colour', 'red', NULL, 1), ('thing', 'x', '', '1', NULL, 1), ('queue', 'x', 'age', 'long', NULL, 1), ('rate', 'e', '', '', NULL, 1),
    ('expect', 'a/b=c', '', '1h', NULL, 1), ('credential', 'x', 'for', 'a' || char(27) || '[31m', NULL, 1);
END
exits 0 'rows of others' qset
said 'credential.c.expires=2027-01-31
credential.c.owner=\t = # "x"
# not a setting: credential.x.for=a\x1b[31m
expect.a=by 06:00 Europe/Berlin
# not a setting: expect.a/b=c=1h
expect.z=1h
# paused since 2026-06-02T12:00:00Z: all queues
queue.mail.age=1m
# paused since 2026-06-02T11:00:00Z: mail: partner down # 7
queue.mail.rate=1/s
queue.mail-x.rate=1/s
queue.mail.a.rate=1/s
queue.mail/t.slo=1s/9%
# paused since 1970-01-01T00:00:00Z: nl\x0arate.z=1/s: a\x0arate.z=1/s
# not a setting: queue.x.age=long
# not a setting: queue.x.colour=red
# not a setting: queue.x.rate=1/s\x0aqueue.y.rate=9/s
rate.a=1/s
rate.a.concurrency=1
rate.b=1/s
# not a setting: rate.e=
# not a setting: thing.x=1' 'are comments'
rm -f new.db*
is "$(cp out printed; qinit new.db; qset -d new.db -f printed 2>&1; qset -d new.db)" "$(grep -v '^#' printed)" '... and read back as what they are'
exits 0 '... one of them' qset queue.x.rate
said '1/s\x0aqueue.y.rate=9/s' 'is one line'
exits 0 '... can be mended' qset queue.x.rate=2/s queue.x.age=
is "$(qset queue.x.rate)" 2/s '... as any other'

fresh
bidi=$(printf 'a\342\200\256b\302\205c')
qset "credential.c.for=$bidi" 'queue.mail/é.slo=1s/9%'
exits 0 'odd characters, piped' qset
said "credential.c.for=$bidi
queue.mail/é.slo=1s/9%" 'as they are'
is "$(script -qec 'qset; qset credential.c.for' /dev/null </dev/null | tr -d '\r')" 'credential.c.for=a\u{202e}b\u{0085}c
queue.mail/é.slo=1s/9%
a\u{202e}b\u{0085}c' '... on a terminal made visible'
exits 74 'no room for the output' sh -c 'qset >/dev/full'
like "$(cat err)" '^qset: standard output: No space left on device' '... is told'
exits 74 '... of one value' sh -c 'qset credential.c.for >/dev/full'
exits 0 '... but setting has none' sh -c 'qset queue.a.rate=1/s >/dev/full'
seq 5000 | sed 's/.*/expect.q&=1h/' | qset -f -
exits 0 'a reader that leaves' bash -c 'qset | head -n 1; [[ ${PIPESTATUS[0]} -eq 141 ]]'
said "credential.c.for=$bidi" 'ends it silently'

# ---- files ----

fresh
qset queue.old.rate=1/s queue.mail.age=1h
# file NAME WANT: what is set then, by ./file
file() {
	exits 0 "$1" qset -f file
	said '' silent
	is "$(qset | tr '\n' ' ')" "$2" '... is set, and the rest stays'
	exits 0 '... likewise from standard input' sh -c 'qset -f - <file'
}
cat >file <<'END'
# limits of the partner

queue.mail.rate=5/s
   	# of the night
  	
#queue.none.rate=1/s
queue.mail.age=2h
END
file 'a file' 'queue.mail.age=2h queue.mail.rate=5/s queue.old.rate=1/s '
printf 'queue.mail.age=3h' >file
file 'a last line without its newline' 'queue.mail.age=3h queue.mail.rate=5/s queue.old.rate=1/s '
printf 'queue.mail.age=\nqueue.mail.rate=' >file
file 'unsetting' 'queue.old.rate=1/s '
printf '' >file
file 'nothing at all' 'queue.old.rate=1/s '
printf '\n' >file
file 'a blank line' 'queue.old.rate=1/s '
printf '# only this' >file
file 'a comment alone' 'queue.old.rate=1/s '
{ printf '#'; head -c 4095 /dev/zero | tr '\0' x; echo; } >file
file 'a line of 4096 bytes' 'queue.old.rate=1/s '
mkfifo pipe
{ echo queue.mail.age=4h >pipe; } &
exits 0 'a pipe' qset -f pipe
wait
is "$(qset queue.mail.age)" 4h '... is a file, too'
before=$(all)

# bad NAME MESSAGES: ./file is refused
bad() {
	exits 65 "$1" qset -f file
	is "$(cat out err)" "$2" '... is told by file and line'
	is "$(all)" "$before" '... nothing of it is set'
	exits 65 '... from standard input' sh -c 'qset -f - <file'
	is "$(cat out err)" "$(line "$2" | sed 's/file:/stdin:/')" '... likewise'
}
printf 'queue.a.rate=1/s\nqueue.a.rte=1/s\n' >file
bad 'a bad name' "qset: file:2: no setting 'queue.a.rte'; did you mean 'queue.a.rate'?"
printf '\n\nqueue.a.rate=x\nqueue.b.rate=1/s' >file
bad 'a bad value' "qset: file:3: queue.a.rate: 'x' is not a rate such as 10/s, 600/m+20 (burst 20) or 1/90s"
printf 'queue.a.rate' >file
bad 'no =' "qset: file:1: 'queue.a.rate' is not NAME=VALUE"
printf 'queue.a.rate: 1/s\n' >file
bad '...' "qset: file:1: 'queue.a.rate: 1/s' is not NAME=VALUE"
printf 'queue.a.rate = 1/s\n' >file
bad 'blanks' "qset: file:1: 'queue.a.rate = 1/s': a name or value has a blank at its beginning or end"
printf ' queue.a.rate=1/s\n' >file
bad '... before' "qset: file:1: ' queue.a.rate=1/s': a name or value has a blank at its beginning or end"
printf 'queue.a.rate=1/s \n' >file
bad '... behind' "qset: file:1: 'queue.a.rate=1/s ': a name or value has a blank at its beginning or end"
printf 'queue.a.rate=1/s # slow\n' >file
bad 'a comment behind' "qset: file:1: queue.a.rate: '1/s # slow' is not a rate such as 10/s, 600/m+20 (burst 20) or 1/90s"
printf '# x\r\nqueue.a.rate=1/s\r\n' >file
bad 'lines of another system' 'qset: file:1: the line ends with a carriage return; lines end with a newline alone
qset: file:2: the line ends with a carriage return; lines end with a newline alone'
printf 'queue.a.age=1h\nqueue.a.rate=1/s\0\nqueue.b.rate=1/s' >file
bad 'a NUL byte' 'qset: file:2: a NUL byte'
printf '#\0' >file
bad '... in a comment' 'qset: file:1: a NUL byte'
{ echo queue.a.age=1h; printf '#'; head -c 4096 /dev/zero | tr '\0' x; echo; echo queue.a.age=2h; } >file
bad 'a line of 4097 bytes' 'qset: file:2: the line is longer than 4096 bytes
qset: file:3: queue.a.age is given twice'
head -c 300000 /dev/zero | tr '\0' x >file
bad 'a long line without an end' 'qset: file:1: the line is longer than 4096 bytes'
printf 'queue.a.age=1h\n\nqueue.a.age=1h\n' >file
bad 'the same twice' 'qset: file:3: queue.a.age is given twice'
printf '\357\273\277queue.a.age=1h\n' >file
bad 'a byte order mark' "qset: file:1: no setting '\\u{feff}queue.a.age'$help"
printf 'credential.a.for=\377\n' >file
bad 'what is not UTF-8' 'qset: file:1: credential.a.for: the value is not UTF-8'
printf 'queue.a.rate=x\nqueue.b.rate=1/s\nnonsense\nqueue.c.age=0\n' >file
bad 'several faults' "qset: file:1: queue.a.rate: 'x' is not a rate such as 10/s, 600/m+20 (burst 20) or 1/90s
qset: file:3: 'nonsense' is not NAME=VALUE
qset: file:4: queue.c.age: '0' must be more than 0"
seq 30 >file
exits 65 'thirty faults' qset -f file
is "$(wc -l <err) $(tail -n 2 err)" "21 qset: file:20: '20' is not NAME=VALUE
qset: 20 faults; the rest was not looked at; nothing was changed" '... are not all told'
exits 65 'a name of a file that moves the cursor' sh -c 'printf x >"$(printf "f\033[2J")"; qset -f "$(printf "f\033[2J")"'
said "qset: f\\x1b[2J:1: 'x' is not NAME=VALUE" 'is made visible'
exits 66 'no such file' qset -f none
said 'qset: none: No such file or directory'
exits 66 'an empty name' qset -f ''
exits 74 'a folder' qset -f .
said 'qset: .: Is a directory; nothing was changed'
exits 74 'standard input that is closed' sh -c 'qset -f - <&-'
is "$(all)" "$before" 'nothing of all that changed anything'

# ---- what is set already is not written ----

fresh
qset queue.a.rate=1/s queue.a.age=1m
touched() { stat -c '%Y %s %i' q.db q.db-wal; md5sum <q.db-wal; }
before=$(touched) rows=$(all)
exits 0 'the same again' env Q_NOW=2026-06-03T12:00:00Z qset queue.a.rate=1/s queue.a.age=1m queue.none.age=
is "$(touched)" "$before" '... writes nothing'
is "$(all)" "$rows" '... and keeps the time since when'
exits 0 'another value' env Q_NOW=2026-06-03T12:00:00Z qset queue.a.rate=2/s queue.a.age=1m
is "$(sql 'SELECT field, set_ms FROM q_setting ORDER BY 1')" 'age|1780401600000
rate|1780488000000' '... has its own'

# ---- attempts, as people see them ----

fresh
qadd -q mail x
qadd -q --attempts 7 mail x
qadd -q other x
qset queue.mail.attempts=3
is "$(qls | cut -f 5 | tr '\n' ' ')" '0/3 0/7 0/20 ' 'qls shows the attempts of the queue, of the job, and the default'
is "$(qls 1 | grep attempts)" 'attempts    0 of 3 spent, generation 1' '... of one job, too'

# ---- eight at a time ----

fresh
unset Q_NOW
for p in 1 2 3 4 5 6 7 8; do
	(
		i=0
		while [ $((i += 1)) -le 20 ]; do
			qset queue.a.keep=$p${i}d queue.b.keep=$p${i}d queue.p$p-$i.rate=1/s "queue.p$p-$((i - 1)).rate=" || echo "set: $?"
			qset >&3
			echo >&3
		done
	) >"said.$p" 2>&1 3>"seen.$p" &
done
wait
is "$(cat said.*)" '' 'eight that set two things each, twenty times'
is "$(awk -F= '/^queue\.[ab]\.keep=/ { v[$2] } /^$/ { n = 0; for (x in v) n++; said[n]++; split("", v) }
    END { for (n in said) print n, said[n] }' seen.*)" '1 160' '... always both, whoever looks'
is "$(qset | grep -c '^queue\.p[1-8]-20\.rate=1/s$') $(qset | wc -l)" '8 10' '... and nothing is lost'
# Of eight links only seven fit.
for p in 1 2 3 4 5 6 7 8; do
	{ qset queue.r$p.dead_to=r$((p % 8 + 1)) 2>said.$p; echo $? >status.$p; } &
done
wait
is "$(sort status.* | uniq -c | tr -s ' \n' ' ')" ' 7 0 1 65 ' 'eight that close a circle together: one is refused'
like "$(cat said.*)" '^qset: queue\.r.\.dead_to: it leads back to this queue, so dead jobs would go round for ever$' '... and told why'
is "$(sql "SELECT count(*) FROM q_setting WHERE field = 'dead_to'")" 7 '... the others stand'
export Q_NOW=2026-06-02T12:00:00Z

# ---- a file that is busy, or that may not be written, or no room ----

fresh
qset queue.a.rate=1/s
before=$(all)
mkfifo in
sqlite3 q.db <in >held 2>&1 &
exec 9>in
echo "BEGIN IMMEDIATE; SELECT 'held';" >&9
until_ok grep -q held held
exits 75 'a busy file' env Q_BUSY_TIMEOUT=50ms qset queue.a.rate=2/s
said "qset: $PWD/q.db: busy for 50ms; another program holds it; try again later"
exits 75 '... for a file' sh -c 'echo queue.a.rate=2/s | Q_BUSY_TIMEOUT=50ms qset -f -'
exits 65 '... a bad value is told without waiting' env Q_BUSY_TIMEOUT=3s qset queue.a.rate=x
exits 0 '... and it can be read' env Q_BUSY_TIMEOUT=0 qset
said queue.a.rate=1/s 'as it was'
echo 'ROLLBACK;' >&9
exec 9>&-
wait
is "$(all)" "$before" '... nothing changed'
# Input that is slow holds nobody up.
mkfifo slow
qset -f - <slow & pid=$!
exec 9>slow
echo queue.slow.rate=1/s >&9
exits 0 'while another reads its settings slowly' env Q_BUSY_TIMEOUT=0 qset queue.a.rate=3/s
echo queue.slow.age=1m >&9
is "$(qset | tr '\n' ' ')" 'queue.a.rate=3/s ' '... of which nothing is set before the end'
exec 9>&-
wait $pid
is "$? $(qset | tr '\n' ' ')" '0 queue.a.rate=3/s queue.slow.age=1m queue.slow.rate=1/s ' '... and then all'
qset -f - <slow & pid=$!
exec 9>slow
echo queue.slow.keep=1d >&9
kill -TERM $pid
wait $pid 2>err
is "$? $(qset | tr '\n' ' ')" '143 queue.a.rate=3/s queue.slow.age=1m queue.slow.rate=1/s ' 'ended half way: nothing of it'
exec 9>&-

if [ "$(id -u)" -eq 0 ] && setpriv --reuid 65534 --regid 65534 --clear-groups true 2>/dev/null; then
	chmod 755 .
	chmod 644 q.db*
	cp "$(command -v qset)" .
	echo queue.a.age=1m >closed
	chmod 600 closed
	other() { setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nowhere "$@"; }
	before=$(all)
	exits 77 'no permission to write' other ./qset queue.a.rate=2/s
	like "$(cat err)" "^qset: $PWD/q.db: no permission to write; check its owner and mode, and the mount\$" '... is told'
	is "$(all)" "$before" '... nothing changes'
	exits 0 '... but to read' other ./qset
	is "$(cat out)" "$(qset)" '... all of it'
	chmod 666 q.db*
	chmod 777 .
	exits 77 'a file of settings that may not be read' other ./qset -f closed
	said 'qset: closed: Permission denied'
else
	skip='only root can become somebody else'
	ok 0 "no permission to write # SKIP $skip"
fi
done_testing
