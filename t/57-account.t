#!/bin/sh
# A night that q exists for: "account created" fails at the provider, and "account upgraded" must not overtake it.
. "${0%/*}/lib.sh"
export Q_BOOT=b1:1000000

cat >handler <<'END'
#!/bin/sh
# Knows bo; of others only what is no longer being created.
event=$(cat)
[ "$Q_ENTITY" = bo ] || [ ! -e down ] || { echo "provider: 503" >&2; exit 1; }
echo "$Q_ENTITY $event" >>done
END
chmod +x handler
qinit
event() { qadd -q -t account.v1 -e "$1" --event-time "$2" accounts "$3"; }
at() { Q_NOW=2026-06-02T12:$1Z; export Q_NOW; }
work() { qwork accounts -- ./handler; }

: >down
event ana 2026-06-02T11:59:00Z created
event ana 2026-06-02T11:59:30Z upgraded
event bo 2026-06-02T11:59:40Z created
exits 0 'the provider is down for one account' work
is "$(cat done)" 'bo created' 'the other account passes'
is "$(sql 'SELECT id, state, spent FROM q_job')" "$(printf '1|failed|1\n2|pending|0\n3|done|0')" 'created is tried again, upgraded waits'
is "$(qls -j accounts | jq -c '[.id, .state, .blocked_by]' | sort)" "$(printf '[1,"failed",null]\n[2,"pending",1]')" 'qls says for whom'
like "$(qls 2)" '^blocked by +job 1 of the same entity comes first$' '... to a person, too'
is "$(qls --counts)" "$(printf 'accounts\t1\t0\t1\t1\t0\t0\t1')" '... and counts it as blocked'
at 20:00
exits 0 'later it is still down' work
is "$(sql 'SELECT spent FROM q_job WHERE id = 2'),$(cat done)" '0,bo created' 'upgraded has not been tried'
rm down
at 59:00
exits 0 'the provider is back' work
is "$(cat done)" "$(printf 'bo created\nana created\nana upgraded')" 'both run, in their order'

# Of a state only the newest counts.
qset queue.accounts.stale=skip
at 59:10
event cy 2026-06-02T12:50:00Z 'plan=gold'
exits 0 'a newer event is done' work
event cy 2026-06-02T12:40:00Z 'plan=free'
event cy 2026-06-02T12:55:00Z 'plan=team'
exits 0 'one that is older comes late' work
is "$(grep cy done)" "$(printf 'cy plan=gold\ncy plan=team')" 'it is not run'
is "$(qls 5 | sed -n 's/.* \(superseded -> done\) .*/\1/p; s/^ *reason: //p')" "$(printf 'superseded -> done\na newer event of its entity was done before')" '... and qls says why'
is "$(qls --counts)" "$(printf 'accounts\t0\t0\t0\t6\t0\t0\t0')" 'nothing is left'
done_testing
