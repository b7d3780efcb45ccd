#!/bin/sh
# Calls of the system and of the allocator that fail, a few of each program (t/fault/fault.c says what is right); `make fault` is the
# long form.  SEED=N repeats a run, INJECTIONS=N makes it longer.
. "${0%/*}/lib.sh"
fault=$t/fault/fault seed=${SEED:-2}
[ -x "$fault" ] || skip_all 't/fault/fault is not built'
! grep -q __asan_init "$fault" || skip_all 'a sanitizer and failing calls of the allocator exclude each other'
echo "# SEED=$seed"

# faults CODE NAME OPTION...
faults() {
	_code=$1 _name=$2
	shift 2
	rm -rf here && mkdir here
	exits "$_code" "$_name" "$fault" -s "$seed" "$@" "${t%/*}" here
	[ "$_code" -ne 0 ] || sed -n '/^wrong/,+1s/^/# /p' out
	sed 's/^/# /' err
}
figure() { sed -n "s/^fault: .*$1 \([0-9]*\).*/\1/p" out; }

faults 0 'each program, some faults' -n "${INJECTIONS:-130}"
[ "$(figure injections)" -gt 80 ]; ok $? "... $(figure injections) of them"
faults 0 'a URL that is parsed without memory' -p qcall -k memory -n 150
faults 0 'a file that was not to be seen at the first look' -p 'qinit --upgrade' -k stat -t 2
faults 0 'a page that was read wrong once' -p qjob -k end -n 30
faults 0 'a table whose whole name is not to be had' -p 'qcron table' -k stat
faults 1 'control: writes that fail and say that all is well are found out' -c -p qpause -k write
[ "$(figure violations)" -gt 5 ]; ok $? "... $(figure violations) times of $(figure injections)"
done_testing
