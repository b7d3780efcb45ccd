#!/bin/sh
# scripts/payment-retry: at decent hours where the customer lives, each try once, none after the payment
. "${0%/*}/lib.sh"
PATH="$t/../scripts:$PATH"
qinit
qset queue.charge.dead_to=uncollectible
for name in STATE CHARGE MARK; do export $name="$PWD/$name"; done
printf '#!/bin/sh\n[ ! -e "$HOME/paid.$1" ] || { echo paid; exit; }\necho open\n' >STATE
printf '#!/bin/sh\necho "$Q_ONCE_KEY" >>"$HOME/charged"\ncat "$HOME/answer"\n' >CHARGE
printf '#!/bin/sh\necho "$1" >>"$HOME/marked"\n' >MARK
chmod +x STATE CHARGE MARK
failed() { printf '{"invoice":"%s","zone":"%s","failed_at":"%s"}\n' "$@"; }
work() { qwork charge -- payment-retry charge; }

# Over changes of the clock, a date line, the end of a month and of a leap year.
export Q_NOW=2026-03-20T00:00:00Z
{
	failed b-1 Europe/Berlin 2026-03-27T22:59:00Z		# 23:59 there; clocks go forward on the 29th
	failed b-2 Europe/Berlin 2026-10-24T21:59:00Z		# back on the 25th
	failed t-1 Pacific/Tongatapu 2026-03-31T10:30:00Z	# 23:30 there, UTC+13
	failed n-1 America/New_York 2026-03-08T06:30:00Z	# half an hour before a change
	failed f-1 Asia/Kolkata 2028-02-28T12:00:00Z		# a leap year, half an hour
} >failures
exits 0 'a dry run' payment-retry schedule -n failures
is "$(sed 's/ #*$//' out | awk '{ n += $2; print $1 } END { print n }' | tr '\n' ' ')" '10:00 11:00 20 ' '... all hours are mid-morning'
is "$(qls)" '' '... and adds nothing'
exits 0 'schedule' payment-retry schedule failures
exits 0 'schedule again' payment-retry schedule failures
is "$(cat out err)" '' '... in silence'
qls -j charge >jobs
is "$(wc -l <jobs)" 20 '... four jobs each'
jq -r '"\(.key) \(.zone) \(.due_ms / 1000 | floor)"' jobs | sort | while read -r key zone due; do
	echo "$key $(TZ=$zone date -d "@$due" '+%F %H')"
done >local
is "$(cut -d ' ' -f 1,2 local)" "$(printf '%s\n' 'b-1/1 2026-03-29' 'b-1/3 2026-03-31' 'b-1/5 2026-04-02' 'b-1/7 2026-04-04' \
    'b-2/1 2026-10-26' 'b-2/3 2026-10-28' 'b-2/5 2026-10-30' 'b-2/7 2026-11-01' \
    'f-1/1 2028-03-01' 'f-1/3 2028-03-03' 'f-1/5 2028-03-05' 'f-1/7 2028-03-07' \
    'n-1/1 2026-03-09' 'n-1/3 2026-03-11' 'n-1/5 2026-03-13' 'n-1/7 2026-03-15' \
    't-1/1 2026-04-02' 't-1/3 2026-04-04' 't-1/5 2026-04-06' 't-1/7 2026-04-08')" '... on the days that follow there'
is "$(cut -d ' ' -f 3 local | sort -u | tr '\n' ' ')" '10 11 ' '... between ten and noon'
is "$(jq -r .due_ms jobs | sort -u | wc -l)" 20 '... no two at once'

for bad in '"Europe/Berln"' null '""'; do
	{ failed c-1 UTC 2026-03-01T00:00:00Z; echo "{\"invoice\":\"c-2\",\"zone\":$bad,\"failed_at\":\"2026-03-01T00:00:00Z\"}"; } >bad
	payment-retry schedule bad 2>err
	is "$? $(qls -k c-1/1 charge)" "$([ "$bad" = '"Europe/Berln"' ] && echo 65 || echo 5) " "zone $bad: an error for all"
done
exits 0 'no failure' payment-retry schedule /dev/null

qcancel -q -e n-1 charge

# Declined, then paid, each handler fired twice.
echo 'declined: no money' >answer
export Q_NOW=2026-03-29T12:00:00Z
exits 0 'the first try of b-1' work
id=$(sql "SELECT id FROM q_job WHERE key = 'b-1/1'")
is "$(qls -j "$id" | head -n 1 | jq -r .result)" 'declined: no money' '... is declined'
is "$(qls -e b-1 charge | wc -l)" 3 '... the others are to come'
qreplay -q "$id"
exits 0 'the handler again' work
like "$(qls -j "$id" | head -n 1 | jq -r .result)" '^already done:$' '... says that it is done'
is "$(grep -c '^charge:b-1/1$' charged)" 1 '... and charges nothing'
echo paid >answer
export Q_NOW=2026-03-31T12:00:00Z
exits 0 'the second try' work
is "$(sql "SELECT key, state FROM q_job WHERE entity = 'b-1' ORDER BY key")" "$(printf '%s\n' 'b-1/1|done' 'b-1/3|done' 'b-1/5|cancelled' 'b-1/7|cancelled')" \
    '... is paid, and the rest is cancelled'

# Paid by other means: told, or found by the handler.
echo 'declined: no money' >answer
exits 0 'paid' payment-retry paid t-1
is "$(sql "SELECT DISTINCT state FROM q_job WHERE entity = 't-1'")" cancelled '... nothing is tried'
exits 0 'paid, told twice' payment-retry paid t-1
touch paid.b-2
before=$(wc -l <charged)
export Q_NOW=2026-10-26T12:00:00Z
work
is "$(qls -j -k b-2/1 --state all charge | jq -r .result)" 'already paid' 'paid, not told: the handler looks'
is "$(wc -l <charged)" "$before" '... and charges nothing'

# Who should tell the state is silent: that is no "paid".
cp STATE state
printf '#!/bin/sh\n' >STATE
for d in 1 3 5; do
	export Q_NOW=2028-03-0${d}T07:00:00Z
	exits 0 "no state on day $d" work
	is "$(sql "SELECT state FROM q_job WHERE key = 'f-1/$d'")" failed '... is a failure'
	[ "$d" != 1 ] || like "$(qls -j -k f-1/1 charge | jq -r .reason)" "^STATE printed '', which" '... with its reason'
	cp state STATE
	export Q_NOW=2028-03-0${d}T09:00:00Z
	work
	printf '#!/bin/sh\n' >STATE
done
printf '%s' '{"reason":"no network","payload":{"invoice":"f-1","day":7,"last":true}}' >record
exits 65 'what died of a failure is not given up' payment-retry give-up <record
printf '%s' '{"reason":"declined: no; that was the last","payload":{"invoice":"f-1","day":7,"last":true}}' >record
exits 1 '... and nothing is given up' payment-retry give-up <record
cp state STATE

# Never paid.
export Q_NOW=2028-03-07T07:00:00Z
exits 1 'the last try' work
is "$(sql "SELECT key, state FROM q_job WHERE queue = 'charge' AND entity = 'f-1' ORDER BY key")" "$(printf '%s\n' 'f-1/1|done' 'f-1/3|done' 'f-1/5|done' 'f-1/7|dead')" \
    '... is dead, with the reason'
exits 0 'give up' qwork uncollectible -- payment-retry give-up
is "$(cat marked)" f-1 '... is marked, once, and nothing before'
printf '%s' '{"payload":{"invoice":"f-1","day":3,"last":false}}' >record
exits 0 'one that was not the last' payment-retry give-up <record
is "$(cat marked)" f-1 '... is not'

# The worker stood still for days, and comes back at night.
before=$(wc -l <charged)
failed l-1 UTC 2028-03-08T00:00:00Z >one
Q_NOW=2028-03-08T01:00:00Z payment-retry schedule one
export Q_NOW=2028-03-12T03:00:00Z
exits 0 'after an outage' work
is "$(qls -j -k l-1/1 --state all charge | jq -r .result)" 'missed: the next is due, too' '... what the next makes up for is left out'
is "$(qls -j -k l-1/3 charge | jq -r '.state + " " + .due_at' | cut -c -20)" 'pending 2028-03-12T1' '... and that waits for its hour'
is "$(wc -l <charged)" "$before" '... nobody is charged at night'
export Q_NOW=2028-03-12T12:00:00Z
exits 0 '... by day' work
is "$(tail -n 1 charged)" charge:l-1/3 '... one is'
is "$(wc -l <charged)" $((before + 1)) '... once'
qcancel -q -e l-1 charge

# Nobody knows whether it happened.
printf '#!/bin/sh\nexit 69\n' >CHARGE
failed u-1 UTC 2028-03-01T00:00:00Z >one
qset queue.charge.attempts=1
Q_NOW=2028-03-01T01:00:00Z payment-retry schedule one
Q_NOW=2028-03-02T12:00:00Z work 2>err
like "$(qonce --list)" '^charge:u-1/1	unknown' 'a charge whose outcome nobody knows waits for a person'
done_testing
