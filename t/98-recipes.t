#!/bin/sh
# The smaller recipes of scripts/, each with its story.  t/97 has the larger ones.
. "${0%/*}/lib.sh"
[ -x "$t/serve" ] || skip_all 't/serve is not built'
PATH="$t/../scripts:$PATH"
made() { printf '#!/bin/sh\n%s\n' "$2" >"$1"; chmod +x "$1"; }	# FILE SCRIPT
exit_of() { "$@" >out 2>err; echo $?; }
qinit
serve

# ---- sync-api: a dead credential ----

rows '[{"id":"a","stamp":1772323200000},{"id":"b","stamp":1772323201000}]'
cat >orders.json <<END
{"name": "orders", "url": "$url/items", "insecure_http": true, "query": {"since": "{cursor}", "order": "asc"}, "items": "/items", "id": "/id",
 "cursor": "/updated_at", "order": "asc", "next": "link", "start": "all", "auth": {"bearer_file": "token"}, "queue": "orders"}
END
(umask 077; echo good >token)
made import 'jq -r .id >>"$HOME/imported"'
mode '{"auth":"Authorization: Bearer good"}' >mode
exits 0 'sync-api' sync-api orders.json ./import
is "$(cat imported | tr '\n' ' ')" 'a b ' '... works on what is new'
is "$(cat out err)" '' '... in silence'
cursor=$(sql 'SELECT cursor FROM q_poll')
ask "$url/_put" '[{"id":"c","stamp":1772323202000}]'
mode '{"auth":"Authorization: Bearer newer"}' >mode
qadd -q orders '{"id":"left"}'
exits 77 'the credential has died' sync-api orders.json ./import
like "$(cat err)" '401' '... is told'
is "$(sql 'SELECT cursor FROM q_poll')" "$cursor" '... the cursor is where it was'
is "$(tail -n 1 imported)" left '... and what was there is worked on'
sed 's/, "queue": "orders"//' orders.json >aimless.json
is "$(exit_of sync-api aimless.json ./import) $(cat err)" '78 sync-api: aimless.json: no "queue" in it; see qpoll(5)' 'a source without a queue'
(umask 077; echo newer >token)
exits 0 'mended' sync-api orders.json ./import
is "$(tail -n 1 imported)" c '... nothing is missing'

# ---- backfill-then-poll ----

rows '[{"id":"old","stamp":1772323200000},{"id":"older","stamp":1772236800000},{"id":"new","stamp":1772409600000}]'
mode '{"auth":null}' >mode
sed 's/"orders"/"past"/g; s/"start": "all"/"start": "newest"/; s/, "auth": {[^}]*}//' orders.json >past.json
exits 0 'backfill-then-poll' backfill-then-poll past.json 2026-02-20 30d
is "$(qls -j past | jq -r .payload.id | sort | tr '\n' ' ')" 'new old older ' '... both, each once'
ask "$url/_put" '[{"id":"newer","stamp":1780401600000}]'
exits 0 '... again' backfill-then-poll past.json 2026-02-20 30d
is "$(qls past | wc -l) $(qbackfill --status past.json | grep -c done)" '4 1' '... is a poll and no more'

# ---- mail-to-queue ----

printf 'From: ana@example.org\r\nMessage-ID:\r\n <one@example.org>\r\nSubject: $(rm -rf /) \303\244\r\n\r\nMessage-Id: <no>\r\n\000' >mail
exits 0 'mail-to-queue' mail-to-queue tickets <mail
exits 0 'the same mail again' mail-to-queue tickets <mail
is "$(qls -j tickets | jq -r .key | cut -d / -f 1)" '<one@example.org>' '... is one job'
qls --raw "$(qls tickets | cut -f 1)" | cmp - mail
ok $? '... byte for byte'
printf 'From: x\n\nMessage-Id: <body@example.org>\n' | mail-to-queue tickets
like "$(qls -j tickets | jq -r .key | sed -n 2p)" '^[0-9a-f]{64}$' 'no Message-ID: a digest'
printf 'Message-ID: <same@example.org>\n\nhal' | mail-to-queue tickets
printf 'Received: again\nMessage-ID: <same@example.org>\n\nhalf and half\n' | mail-to-queue tickets
is "$(qls -j tickets | jq -r .payload | grep -c '^hal')" 2 'half a mail, or another one of that id, does not take its place'
is "$(exit_of mail-to-queue 't ickets' <mail)" 75 'a name that no queue has is no fault of the sender'
is "$(exit_of mail-to-queue tickets </dev/null)" 65 'an empty mail is refused for good'
is "$(head -c 1100000 /dev/zero | exit_of mail-to-queue tickets)" 65 '... and one that is too large'
is "$(Q_DB=/nowhere exit_of mail-to-queue tickets <mail)" 75 'no queue: the mail server keeps it'
is "$(TMPDIR=/nowhere exit_of mail-to-queue tickets <mail)" 75 '... as when there is no room'
is "$(exit_of mail-to-queue <mail)" 75 '... or a mistake in the alias'

# ---- webhook-to-worker ----

(umask 077; printf 'a secret of the tests' >key)
echo '/gh github key queue=pushes' >hooks
made on-push 'cat >>"$HOME/pushed"'
env -u Q_NOW webhook-to-worker hooks unix:hook.sock pushes ./on-push >hook.out 2>hook.err &
pid=$!
until_ok test -S hook.sock
cat >post.pl <<'END'
use Digest::SHA qw(hmac_sha256_hex);
use IO::Socket::UNIX;
my ($id, $body, $key) = @ARGV;
my $sig = hmac_sha256_hex($body, $key);
my $s = IO::Socket::UNIX->new(Peer => 'hook.sock') or die;
print $s "POST /gh HTTP/1.1\r\nHost: x\r\nContent-Length: ", length $body, "\r\nX-GitHub-Delivery: $id\r\nX-Hub-Signature-256: sha256=$sig\r\n\r\n$body";
print((split ' ', <$s>)[1], "\n");
END
post() { perl post.pl "$1" "$2" 'a secret of the tests'; }
is "$(post e1 '{"n":1}') $(post e1 '{"n":1}')" '200 200' 'webhook-to-worker: the same event twice'
is "$(perl post.pl e2 '{"n":2}' 'another secret')" 401 '... and one that nobody signed'
until_ok test -s pushed
is "$(cat pushed)" '{"n":1}' '... is worked on once'
children "$pid" >pids
kill "$pid"
wait "$pid"
is "$?" 0 'TERM ends it'
none_alive
ok $? '... and both'
env -u Q_NOW webhook-to-worker hooks unix:hook.sock pushes ./on-push >hook.out 2>hook.err &
pid=$!
until_ok test -S hook.sock
two() { children "$pid" >pids; lines pids 2; }
until_ok two
kill -9 "$(sed -n 2p pids)"
wait "$pid"
is "$?" 137 'if one of them is killed'
none_alive
ok $? '... the other ends'

echo 'trap '\''[[ $BASH_COMMAND != "hook=\$!" ]] || kill $$'\'' DEBUG' >early
exits 0 'TERM before both are there' env -u Q_NOW BASH_ENV="$PWD/early" timeout -s KILL 30 webhook-to-worker hooks unix:hook.sock pushes ./on-push

# ---- undo-send ----

echo '{"to":"ana"}' >mail.json
made send 'cat >>"$HOME/sent"'
id=$(undo-send send mail mail.json)
is "$(Q_NOW=2026-06-02T12:00:05.500Z exit_of qwork mail -- ./send) $(cat sent 2>/dev/null)" '0 ' 'undo-send: not sent within the window and its margin'
is "$(Q_NOW=2026-06-02T12:00:05Z exit_of undo-send undo "$id")" 0 'undo in time'
is "$(Q_NOW=2026-06-02T12:01:00Z exit_of qwork mail -- ./send) $(cat sent 2>/dev/null)" '0 ' '... it is not sent'
id=$(undo-send send mail mail.json)
Q_NOW=2026-06-02T12:00:06Z qwork mail -- ./send
is "$(exit_of undo-send undo "$id")" 1 'too late'
like "$(cat err)" 'too late' '... is told'
is "$(cat sent)" '{"to":"ana"}' '... and true'
is "$(exit_of undo-send undo 999)" 66 'no such mail'
is "$(exit_of undo-send send mail /dev/null)" 65 'a mail without content'

# ---- report-mail ----

made mailer 'cat >"$HOME/report"'
export MAILER=./mailer
exits 0 'report-mail' report-mail ops@example.com
is "$(sed -n 1p report)" 'To: ops@example.com' '... has a receiver'
qadd -q bad 1
qwork bad -- sh -c 'echo "it is broken" >&2; exit 65' 2>err
exits 0 'when something is wrong' report-mail a@example.com b@example.com
is "$(sed -n 1p report)" 'To: a@example.com,b@example.com' '... to several'
like "$(cat report)" '^Subject: q on .*DEAD bad' '... the subject says it'
like "$(cat report)" '1 bad	it is broken' '... and the reasons follow'
rm report
is "$(report-mail | head -n 1 | cut -d ' ' -f 1)" Subject: 'to nobody: it is printed'
exits 66 'when it fails half way' env Q_DB=/nowhere report-mail ops@example.com
[ ! -e report ]
ok $? '... nothing is sent'
like "$(cat err)" 'no such queue file' '... and cron is told'

# ---- metrics ----

mkdir prom
exits 66 'metrics: one of two files is not there' metrics prom /no/where.db "$Q_DB"
is "$(ls prom)" "q_$(printf %s "${Q_DB#/}" | tr -c 'A-Za-z0-9.-' _).prom" '... the other is told'
like "$(cat prom/*)" '^q_jobs\{.*queue="bad".*state="dead".* 1$' '... with its numbers'

mkdir a a/b
qinit a/b.db; qinit a_b.db
exits 64 '... two files of one name' metrics prom a/b.db a_b.db
like "$(cat err)" 'a_b.db and a/b.db would both be q_a_b.db.prom' '... are told apart'

# ---- dead-mans-switch ----

if command -v curl >/dev/null; then
	(umask 077; echo "$url/ping/secret" >watcher)
	exits 0 'dead-mans-switch' dead-mans-switch watcher
	like "$(requests | tail -n 1)" '/ping/secret/1	.*DEAD bad' '... tells what is wrong'
	qls --state dead bad | cut -f 1 | qcancel -q -
	Q_DB=none.db; export Q_DB; qinit none.db
	exits 0 'all is well' dead-mans-switch watcher
	like "$(requests | tail -n 1)" '/ping/secret/0	' '... is told, too'
	exits 0 'no queue file' env Q_DB=/nowhere dead-mans-switch watcher
	like "$(requests | tail -n 1)" '/ping/secret/66	.*no such queue file' '... is not silence'
	mode '{"status":404}' >mode
	exits 22 'the watcher does not know us' dead-mans-switch watcher
	is "$(grep -c secret err)" 0 '... and the secret stays one'
	export Q_DB="$HOME/q.db"
fi

# ---- remote-add ----

# A host behind a line that breaks when it is told to, after the command was run.
made ssh 'while [ "$1" != -- ]; do shift; done
host=$2
shift 2
echo "$host $*" >>"$HOME/ssh.log"
Q_DB="$HOME/$host.db" sh -c "$*" || exit
[ ! -e "$HOME/broken" ] || exit 255'
export SSH="$PWD/ssh"
qinit beta.db
printf 'a\000\377 $(x) '\''"\n' >bytes
touch broken
exits 255 'remote-add: the line breaks' remote-add beta orders "it's; \$(key) \"7\"" <bytes
rm broken
exits 0 'again' remote-add beta orders "it's; \$(key) \"7\"" bytes
is "$(qls -d beta.db -j orders | jq -r .key)" "it's; \$(key) \"7\"" '... is one job'
qls -d beta.db --raw 1 | cmp - bytes
ok $? '... byte for byte'
is "$(sort -u ssh.log)" 'beta qadd -q --jsonl' '... and nothing on a command line'
is "$(exit_of remote-add beta orders "$(printf 'k\377')" bytes)" 65 'a key that is not UTF-8'
is "$(exit_of remote-add beta orders k </dev/null)" 65 'an empty payload'
is "$(exit_of remote-add beta orders k nothing)" 1 'no such file'
is "$(exit_of remote-add beta 12 k bytes)" 65 'what the other side refuses'
qadd -q -k order-7 to-beta 'x'
exits 0 'by a queue here' qwork to-beta -- bash -c 'remote-add beta orders "$Q_KEY"'
is "$(qls -d beta.db -j -k order-7 orders | jq -r .payload)" x '... with its key'

# ---- a producer that fails half way ----

made dump 'seq 3; exit 1'
made sloppy './dump | qadd -q --lines numbers'
printf '#!/bin/bash\nset -euo pipefail\n./dump >list\nqadd -q --lines numbers <list\n' >strict
chmod +x strict
exits 1 'a producer that fails half way' ./strict
is "$(qls numbers)" '' '... adds nothing'
exits 0 'where the script is sloppy' ./sloppy
is "$(qls numbers | wc -l)" 3 '... it adds half of it'

# ---- audit ----

made half 'set -e; echo "$nothing"'
printf '#!/bin/sh -eu\n# a | b\ntrue || false\n' >flags
printf '#!/bin/bash\nset -o errexit -o nounset -o pipefail\na | b\n' >long
printf '#!/usr/bin/perl\n' >perl
chmod +x flags long perl
cat >crontab <<END
MAILTO=ops
# 0 0 * * * ./sloppy
PATH=$PWD:/usr/bin:/bin
0 0 * * * root cd / && "$PWD/half" >/dev/null 2>&1 || echo no
@daily sloppy
0 0 * * * flock -n -o lock \$HOME/strict; ~/flags; $PWD/long; $PWD/perl; /no/such
0 0 * * * mysqldump shop | gzip >dump.gz
0 0 * * * bash -euo pipefail -c 'mysqldump shop | gzip >dump.gz'
END
exits 1 'audit' audit crontab
is "$(cat out)" "$(printf '%s\t%s\n' "$PWD/half" 'no set -u' "$PWD/sloppy" 'no set -e' "$PWD/sloppy" 'no set -u' \
    "$PWD/sloppy" 'pipes without pipefail' crontab:7 'a pipe')" '... finds the sloppy ones, and no other'
sed '/half/d; /sloppy/d; /mysqldump shop | gzip >dump.gz$/d' crontab >clean
exits 0 'when all are strict' audit clean
is "$(cat out err)" '' '... is silent'
for f in "$t"/../scripts/*-* "$t"/../scripts/metrics "$t"/../scripts/audit; do echo "0 0 * * * $f"; done >ours
exits 0 'our own are' audit ours
done_testing
