#!/bin/sh
# The units of scripts/systemd: what they start works, and systemd has no complaint.
. "${0%/*}/lib.sh"

from=$t/../scripts/systemd
mkdir units
for f in "$from"/*; do
	name=${f##*/}
	# Of a template one instance; programs and files are those of this test.
	sed "s,/usr/local/bin/,${t%/*}/cmd/,; s,/etc/,$PWD/etc/,g" "$f" >"units/$(echo "$name" | sed 's/@/@mail/')"
done
mkdir -p etc/q/handlers etc/qhook
printf '#!/bin/sh\n' >etc/q/handlers/mail
chmod +x etc/q/handlers/mail
echo 'nightly 30 2 * * * reports' >etc/q/table
qinit

plan 10

is "$(cd units && for f in *.timer *.socket; do [ -e "${f%.*}.service" ] || echo "$f"; done)" '' 'each timer and socket has its service'
is "$(cd units && grep -L '^User=q$' ./*.service)" '' '... nothing runs as root'
is "$(cd units && grep -L '^ReadWritePaths=/var/lib/q$' ./*.service)" '' '... the folder of the queue file can be written'
is "$(cd units && grep -L '^Environment=Q_DB=/var/lib/q/q.db$' ./*.service)" '' '... and is there'

for name in qcron qlate qpurge; do
	# shellcheck disable=SC2046	# words of a command line
	exits 0 "$name.service starts what works" $(sed -n 's/^ExecStart=//p' units/$name.service)
done
sed 's/^ExecStart=/exec /; s/%i/mail/g' units/qwork@mail.service | grep '^exec' >work
qadd -q mail x
until_done() { qls --exists --state done mail; }
sh work >jout 2>jerr & pid=$!
until_ok until_done
kill -TERM $pid
wait $pid
ok $? 'qwork@.service works a job off, and its end is none of a failure'

if ! command -v systemd-analyze >made; then
	ok 0 'systemd has no complaint # SKIP systemd is not installed'
	ok 0 '... and would have # SKIP systemd is not installed'
else
	is "$(systemd-analyze verify --man=no "$PWD"/units/* 2>&1)" '' 'systemd has no complaint'
	sed 's/^ProtectSystem/ProtectSytem/' units/qcron.service >units/qwrong.service
	like "$(systemd-analyze verify --man=no "$PWD/units/qwrong.service" 2>&1)" 'ProtectSytem' '... and would have'
fi
