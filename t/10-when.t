#!/bin/sh
# Durations, instants, zones and clocks: lib/when.c through t/unit-when.c, without a database.
#
# The numbers in the table come from elsewhere: python3 (datetime.fromisoformat and zoneinfo, tzdata
# 2026f) for instants, zones and due times; by hand for durations, spans and what is refused.
# A row is "call -> what it prints"; see t/unit-when.c for the calls.
set -u
LC_ALL=C
export LC_ALL
unset TZ TZDIR Q_NOW Q_BOOT
cd "$(dirname "$0")/.." || exit 1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
# shellcheck disable=SC2086 # CC may hold options
${CC:-cc} -std=c11 -D_XOPEN_SOURCE=700 -Ilib ${CFLAGS-} -o "$dir/unit-when" t/unit-when.c lib/when.c || {
	echo 'Bail out! t/unit-when.c does not build'
	exit 1
}
cd "$dir" || exit 1

n=0
is() {	# NAME GOT EXPECTED
	n=$((n + 1))
	if [ "$2" = "$3" ]; then
		echo "ok $n - $1"
	else
		printf 'not ok %d - %s\n' $n "$1"
		printf '%s\n' "got: $2" "expected: $3" | sed 's/^/# /'
	fi
}

BARE='a bare number: write @N for seconds since 1970, +Ns for N seconds from now'
BOTH='a delay goes only with a time of day (HH:MM)'
DATE='not a date and time: write 2026-06-02T12:01:00Z, or 2026-06-02 12:01 and a zone'
DAY='no such day in the calendar'
DUR='not a duration: write 500ms, 10s, 5m, 1h30m, 2d or 1w'
EMPTY='an empty time'
EMPTYDUR='an empty duration'
EPOCH='after @ come seconds since 1970, as in @1780401660 or @1780401660.5'
FORM='not a time: write 2026-06-02T12:01:00Z, @1780401660, +10m, now, today HH:MM or tomorrow HH:MM'
GAP='a clock change skips this local time: it does not exist in the zone'
LEAP='second 60 is a leap second, and this is not the time of one'
LONG='longer than 3650d'
MONTH='no unit M: m is minutes, and months have no fixed length (30d)'
MORE='something follows the time: only Z, +HH:MM or -HH:MM may'
NODATE='a time of day is HH:MM, two digits each, and needs a date except after --at'
NOTIME='a date needs a time of day: write YYYY-MM-DD HH:MM'
NOTZIF='not a time zone: its file does not start with TZif'
NOZONE='a local time needs a zone: name one (tz), or write Z or an offset such as +02:00'
OFFSET='no such offset: at most 23:59'
OFFSETFORM='an offset is written +HH:MM or -HH:MM'
ORDER='parts go from the largest unit to the smallest, each at most once'
PLUS='a delay starts with a plus, as in +10m'
RANGE='outside the years 1970 to 9999'
RIGHT='a zone that counts leap seconds, as no clock here does: leave out right/'
SHARE='a negative delay, or a share that is not from 0 to below 1'
TIME='no such time of day: 00:00 to 23:59'
TODAY='today and tomorrow are followed by one blank and HH:MM'
UNIT='a number needs a unit: write 10s, 10m, 10h or 10d'
UNKNOWN='unknown zone: write its name like Europe/Berlin, or UTC'
UNKNOWNUNIT='unknown unit: the units are ms, s, m, h, d and w'
WHOLE='whole numbers only: write 1h30m for an hour and a half'
ZONENAME='not the name of a zone: write one like Europe/Berlin or UTC'

cat >table <<END
# RFC 3339
instant|2026-06-02T12:01:00Z -> 1780401660000 2026-06-02T12:01:00.000Z
instant|2026-06-02t12:01:00z -> 1780401660000 2026-06-02T12:01:00.000Z
instant|2026-06-02 12:01:00Z -> 1780401660000 2026-06-02T12:01:00.000Z
instant|2026-06-02 12:01Z -> 1780401660000 2026-06-02T12:01:00.000Z
instant|2026-06-02T12:01+02:00 -> 1780394460000 2026-06-02T10:01:00.000Z
instant|2026-06-02T12:01:00-00:00 -> 1780401660000 2026-06-02T12:01:00.000Z
instant|2026-06-02T12:01:00+05:45 -> 1780380960000 2026-06-02T06:16:00.000Z
instant|2026-06-02T12:01:00-09:30 -> 1780435860000 2026-06-02T21:31:00.000Z
instant|2026-06-02T12:01:00+14:00 -> 1780351260000 2026-06-01T22:01:00.000Z
instant|2026-06-02T12:01:00-12:00 -> 1780444860000 2026-06-03T00:01:00.000Z
instant|2026-06-02T12:01:00+23:59 -> 1780315320000 2026-06-01T12:02:00.000Z
instant|2026-06-02T12:01:00.123Z -> 1780401660123 2026-06-02T12:01:00.123Z
instant|2026-06-02T12:01:00.1Z -> 1780401660100 2026-06-02T12:01:00.100Z
instant|2026-06-02T12:01:00.05+02:00 -> 1780394460050 2026-06-02T10:01:00.050Z
instant|2026-06-02T12:01:00.9999999999999999999999Z -> 1780401660999 2026-06-02T12:01:00.999Z
instant|2026-06-02T12:01:00.0009Z -> 1780401660000 2026-06-02T12:01:00.000Z
instant|1970-01-01T00:00:00Z -> 0 1970-01-01T00:00:00.000Z
instant|1970-01-01T01:00:00+01:00 -> 0 1970-01-01T00:00:00.000Z
instant|1969-12-31T23:30:00-01:00 -> 1800000 1970-01-01T00:30:00.000Z
instant|9999-12-31T23:59:59.999Z -> 253402300799999 9999-12-31T23:59:59.999Z
# month ends, leap days, far years
instant|2024-02-29T00:00:00Z -> 1709164800000 2024-02-29T00:00:00.000Z
instant|2023-02-28T23:59:59Z -> 1677628799000 2023-02-28T23:59:59.000Z
instant|2000-02-29T12:00:00Z -> 951825600000 2000-02-29T12:00:00.000Z
instant|2100-02-28T23:59:59Z -> 4107542399000 2100-02-28T23:59:59.000Z
instant|2100-03-01T00:00:00Z -> 4107542400000 2100-03-01T00:00:00.000Z
instant|2026-01-31T23:59:59Z -> 1769903999000 2026-01-31T23:59:59.000Z
instant|2026-04-30T23:59:59Z -> 1777593599000 2026-04-30T23:59:59.000Z
instant|2026-12-31T23:59:59Z -> 1798761599000 2026-12-31T23:59:59.000Z
instant|2024-12-31T00:00:00Z -> 1735603200000 2024-12-31T00:00:00.000Z
instant|2024-12-31T23:59:59-05:00 -> 1735707599000 2025-01-01T04:59:59.000Z
instant|2024-02-29T23:30:00-01:00 -> 1709253000000 2024-03-01T00:30:00.000Z
instant|2038-01-19T03:14:07Z -> 2147483647000 2038-01-19T03:14:07.000Z
instant|2038-01-19T03:14:08Z -> 2147483648000 2038-01-19T03:14:08.000Z
instant|2106-02-07T06:28:16Z -> 4294967296000 2106-02-07T06:28:16.000Z
instant|2262-04-11T23:47:17Z -> 9223372037000 2262-04-11T23:47:17.000Z
instant|2400-02-29T00:00:00Z -> 13574563200000 2400-02-29T00:00:00.000Z
# a leap second is the next second, and comes only at the end of an hour of UTC
instant|2016-12-31T23:59:60Z -> 1483228800000 2017-01-01T00:00:00.000Z
instant|1990-12-31T15:59:60-08:00 -> 662688000000 1991-01-01T00:00:00.000Z
instant|2016-12-31T23:59:60.5Z -> 1483228800500 2017-01-01T00:00:00.500Z
instant|2017-01-01T05:29:60+05:30 -> 1483228800000 2017-01-01T00:00:00.000Z
instant|2017-01-01 00:59:60|Europe/Berlin -> 1483228800000 2017-01-01T00:00:00.000Z
instant|2016-12-31T23:58:60Z -> error: $LEAP
instant|2017-01-01T05:29:60Z -> error: $LEAP
instant|2026-06-02 12:01:60|Europe/Berlin -> error: $LEAP
instant|2016-12-31T23:59:61Z -> error: $TIME
instant|9999-12-31T23:59:60Z -> error: $RANGE
# no such date or time
instant|2026-02-29T10:00:00Z -> error: $DAY
instant|2100-02-29T10:00:00Z -> error: $DAY
instant|2026-02-30T10:00:00Z -> error: $DAY
instant|2026-04-31T10:00:00Z -> error: $DAY
instant|2026-13-01T10:00:00Z -> error: $DAY
instant|2026-00-10T10:00:00Z -> error: $DAY
instant|2026-01-00T10:00:00Z -> error: $DAY
instant|2026-01-32T10:00:00Z -> error: $DAY
instant|2026-06-31T10:00:00Z -> error: $DAY
instant|2026-06-02T24:00:00Z -> error: $TIME
instant|2026-06-02T23:60:00Z -> error: $TIME
instant|2026-06-02T25:00:00Z -> error: $TIME
instant|2026-06-02T23:59:99Z -> error: $TIME
instant|2026-06-02T12:01:00+24:00 -> error: $OFFSET
instant|2026-06-02T12:01:00+02:60 -> error: $OFFSET
# outside the range
instant|1969-12-31T23:59:59Z -> error: $RANGE
instant|1970-01-01T00:00:00+00:01 -> error: $RANGE
instant|9999-12-31T23:59:59-00:01 -> error: $RANGE
instant|0000-01-01T00:00:00Z -> error: $RANGE
instant|0001-01-01T00:00:00Z -> error: $RANGE
instant|1970-01-01 00:30|Europe/Berlin -> error: $RANGE
instant|9999-12-31 23:00|America/New_York -> error: $RANGE
# garbage and what is nearly right
instant|2026-6-02T12:01:00Z -> error: $DATE
instant|2026-06-2T12:01:00Z -> error: $DATE
instant|26-06-02T12:01:00Z -> error: $DATE
instant|02026-06-02T12:01:00Z -> error: $DATE
instant|2026/06/02 12:01Z -> error: $DATE
instant|2026-06-02  12:01Z -> error: $DATE
instant|2026-06-02_12:01Z -> error: $DATE
instant|2026-06-02T1:01Z -> error: $DATE
instant|2026-06-02T12Z -> error: $DATE
instant|2026-06-02T12:1Z -> error: $DATE
instant|2026-06-02T12:01:Z -> error: $DATE
instant|2026-06-02T12:01:5Z -> error: $DATE
instant|2026-06-02T12:01:00.Z -> error: $DATE
instant|20260602T120100Z -> error: $DATE
instant|2026-W23-2T12:01Z -> error: $DATE
instant|2026-06-02T+2:01Z -> error: $DATE
instant|2026-06-02T12:01:00Zx -> error: $MORE
instant|2026-06-02T12:01:00Z  -> error: $MORE
instant|2026-06-02T12:01:00+02:00Z -> error: $MORE
instant|2026-06-02T12:01:00 Z -> error: $MORE
instant|2026-06-02T12:01:00,5Z -> error: $MORE
instant|2026-06-02T12:01:00CET -> error: $MORE
instant|2026-06-02T12:01.5Z -> error: $MORE
instant|2026-06-02T12:01:00+02:001 -> error: $MORE
instant|2026-06-02T12:01:00+0200 -> error: $OFFSETFORM
instant|2026-06-02T12:01:00+02 -> error: $OFFSETFORM
instant|2026-06-02T12:01:00+2:00 -> error: $OFFSETFORM
instant|2026-06-02T12:01:00- -> error: $OFFSETFORM
instant| 2026-06-02T12:01:00Z -> error: $FORM
instant|-2026-06-02T12:01:00Z -> error: $FORM
instant|Now -> error: $FORM
instant|now  -> error: $FORM
instant|yesterday 10:00 -> error: $FORM
instant|Today 10:00 -> error: $FORM
instant|noon -> error: $FORM
instant|-5m -> error: $FORM
instant|-1 -> error: $FORM
instant|tomorrow10:00 -> error: $FORM
instant|Z -> error: $FORM
instant|٣ -> error: $FORM
instant| -> error: $EMPTY
instant|2026-06-02 -> error: $NOTIME
instant|1780401660 -> error: $BARE
instant|10 -> error: $BARE
instant|0 -> error: $BARE
instant|1780401660123 -> error: $BARE
instant|99999999999999999999999999 -> error: $BARE
instant|10:00 -> error: $NODATE
instant|9:30 -> error: $NODATE
instant|23:59|Europe/Berlin -> error: $NODATE
instant|10s -> error: $PLUS
instant|1h30m -> error: $PLUS
instant|500ms -> error: $PLUS
# seconds since 1970
instant|@0 -> 0 1970-01-01T00:00:00.000Z
instant|@1780401660 -> 1780401660000 2026-06-02T12:01:00.000Z
instant|@1780401660.5 -> 1780401660500 2026-06-02T12:01:00.500Z
instant|@1780401660.1239999 -> 1780401660123 2026-06-02T12:01:00.123Z
instant|@007 -> 7000 1970-01-01T00:00:07.000Z
instant|@4294967296 -> 4294967296000 2106-02-07T06:28:16.000Z
instant|@253402300799.999 -> 253402300799999 9999-12-31T23:59:59.999Z
instant|@253402300800 -> error: $RANGE
instant|@1780401660123 -> error: $RANGE
instant|@9223372036854775807 -> error: $RANGE
instant|@9223372036854775808 -> error: $RANGE
instant|@18446744073709551616 -> error: $RANGE
instant|@99999999999999999999999999 -> error: $RANGE
instant|@ -> error: $EPOCH
instant|@-1 -> error: $EPOCH
instant|@+1 -> error: $EPOCH
instant|@ 1 -> error: $EPOCH
instant|@1  -> error: $EPOCH
instant|@1. -> error: $EPOCH
instant|@.5 -> error: $EPOCH
instant|@1.5.5 -> error: $EPOCH
instant|@0x10 -> error: $EPOCH
instant|@1e9 -> error: $EPOCH
instant|@1,5 -> error: $EPOCH
instant|@1780401660Z -> error: $EPOCH
# now and later (the base is the third argument)
instant|now|-|2026-06-02T12:01:00.123Z -> 1780401660123 2026-06-02T12:01:00.123Z
instant|+0|-|2026-06-02T12:01:00.123Z -> 1780401660123 2026-06-02T12:01:00.123Z
instant|+90s|-|2026-06-02T12:01:00.123Z -> 1780401750123 2026-06-02T12:02:30.123Z
instant|+1d|Europe/Berlin|2026-03-28T12:00:00Z -> 1774785600000 2026-03-29T12:00:00.000Z
instant|+1w|-|2026-06-02T12:01:00.123Z -> 1781006460123 2026-06-09T12:01:00.123Z
instant|+1ms|-|9999-12-31T23:59:59.998Z -> 253402300799999 9999-12-31T23:59:59.999Z
instant|+1ms|-|9999-12-31T23:59:59.999Z -> error: $RANGE
instant|+|- -> error: $EMPTYDUR
instant|+10 -> error: $UNIT
instant|++10s -> error: $DUR
instant|+ 10s -> error: $DUR
instant|+-10s -> error: $DUR
instant|+30M -> error: $MONTH
# local times: a zone is needed, and with an offset it changes nothing
instant|2026-06-02 12:01 -> error: $NOZONE
instant|2026-06-02T12:01:00 -> error: $NOZONE
instant|today 10:00 -> error: $NOZONE
instant|tomorrow 10:00 -> error: $NOZONE
instant|2026-06-02T12:01:00Z|Europe/Berlin -> 1780401660000 2026-06-02T12:01:00.000Z
instant|2026-06-02 12:01|UTC -> 1780401660000 2026-06-02T12:01:00.000Z
instant|2026-06-02 12:01|Europe/Berlin -> 1780394460000 2026-06-02T10:01:00.000Z
instant|2026-06-02T12:01:30|Europe/Berlin -> 1780394490000 2026-06-02T10:01:30.000Z
instant|2026-01-02 12:01|Europe/Berlin -> 1767351660000 2026-01-02T11:01:00.000Z
instant|2026-06-02 23:59|America/New_York -> 1780459140000 2026-06-03T03:59:00.000Z
instant|2026-01-02 23:59|America/New_York -> 1767416340000 2026-01-03T04:59:00.000Z
instant|2026-06-02 23:59|Asia/Kathmandu -> 1780424040000 2026-06-02T18:14:00.000Z
instant|2026-06-02 00:00|Asia/Kathmandu -> 1780337700000 2026-06-01T18:15:00.000Z
instant|2026-06-02 23:59|Pacific/Tongatapu -> 1780397940000 2026-06-02T10:59:00.000Z
instant|2026-06-02 00:00|Pacific/Apia -> 1780311600000 2026-06-01T11:00:00.000Z
instant|2026-06-02 23:59|Pacific/Kiritimati -> 1780394340000 2026-06-02T09:59:00.000Z
instant|2026-06-02 00:00|Pacific/Kiritimati -> 1780308000000 2026-06-01T10:00:00.000Z
instant|2026-06-02 23:59|Etc/GMT+12 -> 1780487940000 2026-06-03T11:59:00.000Z
instant|2026-06-02 12:00|Asia/Kolkata -> 1780381800000 2026-06-02T06:30:00.000Z
instant|2024-02-29 23:59|Europe/Berlin -> 1709247540000 2024-02-29T22:59:00.000Z
instant|2026-12-31 23:59:59|America/New_York -> 1798779599000 2027-01-01T04:59:59.000Z
instant|2038-01-19 04:14:08|Europe/Berlin -> 2147483648000 2038-01-19T03:14:08.000Z
instant|2038-07-01 12:00|America/New_York -> 2161612800000 2038-07-01T16:00:00.000Z
instant|2100-02-28 23:59|Europe/Berlin -> 4107538740000 2100-02-28T22:59:00.000Z
instant|2100-07-01 12:00|Europe/Berlin -> 4118119200000 2100-07-01T10:00:00.000Z
instant|2100-01-01 12:00|Australia/Lord_Howe -> 4102448400000 2100-01-01T01:00:00.000Z
instant|1970-01-01 01:00|Europe/Berlin -> 0 1970-01-01T00:00:00.000Z
instant|2026-06-02 12:01|America/Argentina/Buenos_Aires -> 1780412460000 2026-06-02T15:01:00.000Z
# clock changes: what is skipped does not exist, what comes twice is the first
instant|2026-03-29 01:59:59|Europe/Berlin -> 1774745999000 2026-03-29T00:59:59.000Z
instant|2026-03-29 03:00|Europe/Berlin -> 1774746000000 2026-03-29T01:00:00.000Z
instant|2026-10-25 01:59|Europe/Berlin -> 1792886340000 2026-10-24T23:59:00.000Z
instant|2026-10-25 02:00|Europe/Berlin -> 1792886400000 2026-10-25T00:00:00.000Z
instant|2026-10-25 02:30|Europe/Berlin -> 1792888200000 2026-10-25T00:30:00.000Z
instant|2026-10-25 02:59:59|Europe/Berlin -> 1792889999000 2026-10-25T00:59:59.000Z
instant|2026-10-25 03:00|Europe/Berlin -> 1792893600000 2026-10-25T02:00:00.000Z
instant|2026-03-29 02:00|Europe/Berlin -> error: $GAP
instant|2026-03-29 02:30|Europe/Berlin -> error: $GAP
instant|2026-03-29 02:59:59|Europe/Berlin -> error: $GAP
instant|2026-03-08 01:59|America/New_York -> 1772953140000 2026-03-08T06:59:00.000Z
instant|2026-03-08 03:00|America/New_York -> 1772953200000 2026-03-08T07:00:00.000Z
instant|2026-11-01 00:59|America/New_York -> 1793509140000 2026-11-01T04:59:00.000Z
instant|2026-11-01 01:00|America/New_York -> 1793509200000 2026-11-01T05:00:00.000Z
instant|2026-11-01 01:30|America/New_York -> 1793511000000 2026-11-01T05:30:00.000Z
instant|2026-11-01 02:00|America/New_York -> 1793516400000 2026-11-01T07:00:00.000Z
instant|2026-03-08 02:00|America/New_York -> error: $GAP
instant|2026-03-08 02:30|America/New_York -> error: $GAP
instant|2025-10-05 01:59|Australia/Lord_Howe -> 1759591740000 2025-10-04T15:29:00.000Z
instant|2025-10-05 02:30|Australia/Lord_Howe -> 1759591800000 2025-10-04T15:30:00.000Z
instant|2026-04-05 01:29|Australia/Lord_Howe -> 1775312940000 2026-04-04T14:29:00.000Z
instant|2026-04-05 01:30|Australia/Lord_Howe -> 1775313000000 2026-04-04T14:30:00.000Z
instant|2026-04-05 01:59|Australia/Lord_Howe -> 1775314740000 2026-04-04T14:59:00.000Z
instant|2026-04-05 02:00|Australia/Lord_Howe -> 1775316600000 2026-04-04T15:30:00.000Z
instant|2025-10-05 02:00|Australia/Lord_Howe -> error: $GAP
instant|2025-10-05 02:29|Australia/Lord_Howe -> error: $GAP
instant|2011-12-29 23:59|Pacific/Apia -> 1325239140000 2011-12-30T09:59:00.000Z
instant|2011-12-31 00:00|Pacific/Apia -> 1325239200000 2011-12-30T10:00:00.000Z
instant|2011-12-30 00:00|Pacific/Apia -> error: $GAP
instant|2011-12-30 12:00|Pacific/Apia -> error: $GAP
instant|2011-12-30 23:59|Pacific/Apia -> error: $GAP
instant|1993-08-20 23:59|Pacific/Kwajalein -> 745934340000 1993-08-21T11:59:00.000Z
instant|1993-08-22 00:00|Pacific/Kwajalein -> 745934400000 1993-08-21T12:00:00.000Z
instant|1993-08-21 12:00|Pacific/Kwajalein -> error: $GAP
instant|2007-11-03 23:30|America/St_Johns -> 1194141600000 2007-11-04T02:00:00.000Z
instant|2007-11-04 00:00|America/St_Johns -> 1194143400000 2007-11-04T02:30:00.000Z
instant|2007-11-04 00:01|America/St_Johns -> 1194147060000 2007-11-04T03:31:00.000Z
instant|2024-03-30 21:59|America/Nuuk -> 1711843140000 2024-03-30T23:59:00.000Z
instant|2024-03-31 00:00|America/Nuuk -> 1711846800000 2024-03-31T01:00:00.000Z
instant|2024-03-30 23:30|America/Nuuk -> error: $GAP
instant|1985-12-31 23:59|Asia/Kathmandu -> 504901740000 1985-12-31T18:29:00.000Z
instant|1986-01-01 00:15|Asia/Kathmandu -> 504901800000 1985-12-31T18:30:00.000Z
instant|1986-01-01 00:14|Asia/Kathmandu -> error: $GAP
# today and tomorrow are those of the zone
instant|today 10:00|Europe/Berlin|2026-06-02T21:59:59Z -> 1780387200000 2026-06-02T08:00:00.000Z
instant|today 10:00|Europe/Berlin|2026-06-02T22:00:00Z -> 1780473600000 2026-06-03T08:00:00.000Z
instant|tomorrow 10:00|Europe/Berlin|2026-06-02T12:00:00Z -> 1780473600000 2026-06-03T08:00:00.000Z
instant|today 23:59|America/New_York|2026-06-03T03:59:59Z -> 1780459140000 2026-06-03T03:59:00.000Z
instant|tomorrow 00:00|Pacific/Kiritimati|2026-06-02T10:00:00Z -> 1780480800000 2026-06-03T10:00:00.000Z
instant|today 00:00|Pacific/Kiritimati|2026-06-02T09:59:59.999Z -> 1780308000000 2026-06-01T10:00:00.000Z
instant|tomorrow 09:00|Asia/Kathmandu|2026-12-31T18:14:59Z -> 1798773300000 2027-01-01T03:15:00.000Z
instant|tomorrow 08:00|UTC|2024-02-28T23:59:59Z -> 1709193600000 2024-02-29T08:00:00.000Z
instant|tomorrow 02:30|Europe/Berlin|2026-10-24T12:00:00Z -> 1792888200000 2026-10-25T00:30:00.000Z
instant|today 19:00|America/New_York|1970-01-01T00:30:00Z -> 0 1970-01-01T00:00:00.000Z
instant|tomorrow 02:30|Europe/Berlin|2026-03-28T12:00:00Z -> error: $GAP
instant|tomorrow 10:00|Pacific/Apia|2011-12-29T12:00:00Z -> error: $GAP
instant|today|Europe/Berlin|2026-06-02T12:00:00Z -> error: $TODAY
instant|tomorrow|Europe/Berlin|2026-06-02T12:00:00Z -> error: $TODAY
instant|today |Europe/Berlin|2026-06-02T12:00:00Z -> error: $TODAY
instant|today  10:00|Europe/Berlin|2026-06-02T12:00:00Z -> error: $TODAY
instant|today 9:00|Europe/Berlin|2026-06-02T12:00:00Z -> error: $TODAY
instant|today 10:00:00|Europe/Berlin|2026-06-02T12:00:00Z -> error: $TODAY
instant|today 10:00Z|Europe/Berlin|2026-06-02T12:00:00Z -> error: $TODAY
instant|tomorrow 10|Europe/Berlin|2026-06-02T12:00:00Z -> error: $TODAY
instant|today 24:00|Europe/Berlin|2026-06-02T12:00:00Z -> error: $TIME
instant|tomorrow 10:60|Europe/Berlin|2026-06-02T12:00:00Z -> error: $TIME
# zones
zone|UTC -> ok
zone|Europe/Berlin -> ok
zone|America/Argentina/Buenos_Aires -> ok
zone|Etc/GMT+12 -> ok
zone|Asia/Kathmandu -> ok
zone|Africa/Porto-Novo -> ok
zone|Europe/Nowhere -> error: $UNKNOWN
zone|europe/berlin -> error: $UNKNOWN
zone|CEST -> error: $UNKNOWN
zone|utc -> error: $UNKNOWN
zone|UTC0 -> error: $UNKNOWN
zone|Europe/Berlin2 -> error: $UNKNOWN
zone|Europe/Berlin/x -> error: $UNKNOWN
zone|GMT+5 -> error: $UNKNOWN
zone| -> error: $ZONENAME
zone|/usr/share/zoneinfo/UTC -> error: $ZONENAME
zone|../zoneinfo/UTC -> error: $ZONENAME
zone|./UTC -> error: $ZONENAME
zone|Europe/../UTC -> error: $ZONENAME
zone|Europe//Berlin -> error: $ZONENAME
zone|Europe/ -> error: $ZONENAME
zone|:UTC -> error: $ZONENAME
zone|Europe/Berlin  -> error: $ZONENAME
zone| UTC -> error: $ZONENAME
zone|Europe/Ber lin -> error: $ZONENAME
zone|<+03>-3 -> error: $ZONENAME
zone|CET-1CEST,M3.5.0,M10.5.0/3 -> error: $ZONENAME
zone|Zürich -> error: $ZONENAME
zone|AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA -> error: $ZONENAME
zone|Europe -> error: $NOTZIF
zone|right/Europe/Berlin -> error: $RIGHT
instant|2026-06-02 12:01|Europe/Nowhere -> error: $UNKNOWN
instant|2026-06-02T12:01:00Z|Europe/Nowhere -> error: $UNKNOWN
instant|now|/etc/localtime -> error: $ZONENAME
due|2026-06-02T12:01:00Z|0|-|Mars/Olympus -> error: $UNKNOWN
due|2026-06-02T12:01:00Z|0|10:00|CEST -> error: $UNKNOWN
# when a job is due
due|2026-06-02T12:01:00Z|0|-|- -> 1780401660000 2026-06-02T12:01:00.000Z
due|2026-06-02T12:01:00.5Z|1d|-|- -> 1780488060500 2026-06-03T12:01:00.500Z
due|2026-03-28T12:00:00Z|1d|-|Europe/Berlin -> 1774785600000 2026-03-29T12:00:00.000Z
due|2026-06-02T12:01:00Z|0|2026-07-01T00:00:00Z|- -> 1782864000000 2026-07-01T00:00:00.000Z
due|2026-06-02T12:01:00Z|0|+10m|- -> 1780402260000 2026-06-02T12:11:00.000Z
due|2026-06-02T12:01:00Z|0|now|- -> 1780401660000 2026-06-02T12:01:00.000Z
due|2026-06-02T12:01:00Z|0|tomorrow 10:00|Europe/Berlin -> 1780473600000 2026-06-03T08:00:00.000Z
due|2026-06-02T12:01:00Z|0|2026-07-01 10:00|Europe/Berlin -> 1782892800000 2026-07-01T08:00:00.000Z
due|2026-06-02T12:01:00Z|0|@1|- -> 1000 1970-01-01T00:00:01.000Z
due|2026-06-02T05:00:00Z|1d|10:00|Europe/Berlin -> 1780473600000 2026-06-03T08:00:00.000Z
due|2026-06-02T08:00:00Z|1d|10:00|Europe/Berlin -> 1780473600000 2026-06-03T08:00:00.000Z
due|2026-06-02T08:00:00.001Z|1d|10:00|Europe/Berlin -> 1780560000000 2026-06-04T08:00:00.000Z
due|2026-06-02T21:59:00Z|1d|23:59|Europe/Berlin -> 1780523940000 2026-06-03T21:59:00.000Z
due|2026-06-02T21:59:59Z|1d|23:59|Europe/Berlin -> 1780610340000 2026-06-04T21:59:00.000Z
due|2026-06-02T22:00:00Z|1d|23:59|Europe/Berlin -> 1780610340000 2026-06-04T21:59:00.000Z
due|2026-06-02T22:00:00Z|1d|00:00|Europe/Berlin -> 1780524000000 2026-06-03T22:00:00.000Z
due|2026-01-31T12:00:00Z|1d|10:00|Europe/Berlin -> 1770022800000 2026-02-02T09:00:00.000Z
due|2024-02-28T06:00:00Z|1d|10:00|Europe/Berlin -> 1709197200000 2024-02-29T09:00:00.000Z
due|2026-12-31T06:00:00Z|1d|10:00|Europe/Berlin -> 1798794000000 2027-01-01T09:00:00.000Z
due|2026-06-02T12:01:00Z|7d|10:00|Pacific/Kiritimati -> 1781035200000 2026-06-09T20:00:00.000Z
due|2026-06-02T12:01:00Z|3d|10:00|Pacific/Tongatapu -> 1780693200000 2026-06-05T21:00:00.000Z
due|2026-06-02T12:01:00Z|5d|10:00|Asia/Kathmandu -> 1780892100000 2026-06-08T04:15:00.000Z
due|2026-06-02T12:01:00Z|0|10:00|America/New_York -> 1780408800000 2026-06-02T14:00:00.000Z
due|2026-06-02T12:01:00Z|0|10:00|UTC -> 1780480800000 2026-06-03T10:00:00.000Z
# ... across clock changes: 1d is 86400 s; a skipped minute is the first one after it
due|2026-03-28T08:00:00Z|1d|10:00|Europe/Berlin -> 1774771200000 2026-03-29T08:00:00.000Z
due|2026-03-28T09:00:00Z|1d|10:00|Europe/Berlin -> 1774857600000 2026-03-30T08:00:00.000Z
due|2026-10-24T08:00:00Z|1d|10:00|Europe/Berlin -> 1792918800000 2026-10-25T09:00:00.000Z
due|2026-10-24T22:30:00Z|1d|23:45|Europe/Berlin -> 1792968300000 2026-10-25T22:45:00.000Z
due|2026-03-28T00:30:00Z|1d|02:30|Europe/Berlin -> 1774746000000 2026-03-29T01:00:00.000Z
due|2026-03-28T00:30:00Z|1d|02:00|Europe/Berlin -> 1774746000000 2026-03-29T01:00:00.000Z
due|2026-03-28T00:30:00Z|1d|02:59|Europe/Berlin -> 1774746000000 2026-03-29T01:00:00.000Z
due|2026-03-28T00:30:00Z|1d|03:00|Europe/Berlin -> 1774746000000 2026-03-29T01:00:00.000Z
due|2026-03-28T01:00:00Z|1d|02:30|Europe/Berlin -> 1774746000000 2026-03-29T01:00:00.000Z
due|2026-03-28T01:00:00.001Z|1d|02:30|Europe/Berlin -> 1774830600000 2026-03-30T00:30:00.000Z
due|2026-03-27T12:00:00Z|1d|02:30|Europe/Berlin -> 1774746000000 2026-03-29T01:00:00.000Z
due|2026-10-24T00:10:00Z|1d|02:30|Europe/Berlin -> 1792888200000 2026-10-25T00:30:00.000Z
due|2026-10-24T01:10:00Z|1d|02:30|Europe/Berlin -> 1792978200000 2026-10-26T01:30:00.000Z
due|2026-03-07T06:00:00Z|1d|02:30|America/New_York -> 1772953200000 2026-03-08T07:00:00.000Z
due|2026-10-31T05:00:00Z|1d|01:30|America/New_York -> 1793511000000 2026-11-01T05:30:00.000Z
due|2026-10-31T06:00:00Z|1d|01:30|America/New_York -> 1793601000000 2026-11-02T06:30:00.000Z
due|2025-10-03T15:00:00Z|1d|02:15|Australia/Lord_Howe -> 1759591800000 2025-10-04T15:30:00.000Z
due|2026-04-03T14:00:00Z|1d|01:45|Australia/Lord_Howe -> 1775313900000 2026-04-04T14:45:00.000Z
due|2011-12-28T12:00:00Z|1d|10:00|Pacific/Apia -> 1325188800000 2011-12-29T20:00:00.000Z
due|2011-12-28T21:00:00Z|1d|10:00|Pacific/Apia -> 1325275200000 2011-12-30T20:00:00.000Z
due|2011-12-29T09:00:00Z|1d|23:30|Pacific/Apia -> 1325237400000 2011-12-30T09:30:00.000Z
due|2011-12-29T10:00:00Z|1d|00:00|Pacific/Apia -> 1325239200000 2011-12-30T10:00:00.000Z
due|2024-03-30T00:30:00Z|1d|23:30|America/Nuuk -> 1711846800000 2024-03-31T01:00:00.000Z
due|2007-11-03T02:50:00Z|1d|00:00|America/St_Johns -> 1194233400000 2007-11-05T03:30:00.000Z
# ... spread
due|2026-06-02T05:00:00Z|1d|10:00|Europe/Berlin|90m|0 -> 1780473600000 2026-06-03T08:00:00.000Z
due|2026-06-02T05:00:00Z|1d|10:00|Europe/Berlin|90m|0.5 -> 1780476300000 2026-06-03T08:45:00.000Z
due|2026-06-02T05:00:00Z|1d|10:00|Europe/Berlin|90m|0.99999999 -> 1780478999999 2026-06-03T09:29:59.999Z
due|2026-06-02T12:01:00Z|10s|-|-|1s|0.25 -> 1780401670250 2026-06-02T12:01:10.250Z
due|2026-06-02T12:01:00Z|0|+10m|-|10m|0.75 -> 1780402710000 2026-06-02T12:18:30.000Z
due|2026-06-02T12:01:00Z|0|-|-|0|0.75 -> 1780401660000 2026-06-02T12:01:00.000Z
due|2026-06-02T12:01:00Z|0|-|-|1s|1 -> error: $SHARE
due|2026-06-02T12:01:00Z|0|-|-|1s|-0.1 -> error: $SHARE
due|2026-06-02T12:01:00Z|0|-|-|1s|nan -> error: $SHARE
due|2026-06-02T12:01:00Z|0|-|-|1s|inf -> error: $SHARE
due|2026-06-02T12:01:00Z|0|10:00|- -> error: $NOZONE
due|2026-06-02T12:01:00Z|0|24:00|Europe/Berlin -> error: $TIME
due|2026-06-02T12:01:00Z|0|10:60|- -> error: $TIME
due|2026-06-02T12:01:00Z|1d|+10m|- -> error: $BOTH
due|2026-06-02T12:01:00Z|1d|tomorrow 10:00|Europe/Berlin -> error: $BOTH
due|2026-06-02T12:01:00Z|1d|10:00:00|Europe/Berlin -> error: $BOTH
due|2026-06-02T12:01:00Z|0|9:00|Europe/Berlin -> error: $NODATE
due|2026-06-02T12:01:00Z|0|2026-03-29 02:30|Europe/Berlin -> error: $GAP
due|9999-12-31T00:00:00Z|1d|-|- -> error: $RANGE
due|9999-12-31T22:00:00Z|0|20:00|UTC -> error: $RANGE
due|9999-12-31T23:59:59Z|0|-|-|1h|0.5 -> error: $RANGE
due|9999-12-31T00:00:00Z|0|23:59|UTC -> 253402300740000 9999-12-31T23:59:00.000Z
# durations
duration|0 -> 0
duration|0s -> 0
duration|500ms -> 500
duration|1ms -> 1
duration|10s -> 10000
duration|010s -> 10000
duration|5m -> 300000
duration|90m -> 5400000
duration|1h30m -> 5400000
duration|2d -> 172800000
duration|1w -> 604800000
duration|1w2d3h4m5s6ms -> 788645006
duration|1m500ms -> 60500
duration|1h1ms -> 3600001
duration|0h5m -> 300000
duration|26h -> 93600000
duration|3650d -> 315360000000
duration|521w3d -> 315360000000
duration|87600h -> 315360000000
duration|315360000000ms -> 315360000000
duration|3650d1ms -> error: $LONG
duration|3651d -> error: $LONG
duration|522w -> error: $LONG
duration|521w4d -> error: $LONG
duration|87601h -> error: $LONG
duration|315360000001ms -> error: $LONG
duration|99999999999999999999s -> error: $LONG
duration|9223372036854775807ms -> error: $LONG
duration|9223372036854775808ms -> error: $LONG
duration|18446744073709551617s -> error: $LONG
duration|1h9223372036854775807m -> error: $LONG
duration|10 -> error: $UNIT
duration|00 -> error: $UNIT
duration|1h30 -> error: $UNIT
duration|86400 -> error: $UNIT
duration|5  -> error: $UNKNOWNUNIT
duration|10x -> error: $UNKNOWNUNIT
duration|10 s -> error: $UNKNOWNUNIT
duration|5min -> error: $UNKNOWNUNIT
duration|10S -> error: $UNKNOWNUNIT
duration|1H -> error: $UNKNOWNUNIT
duration|2D -> error: $UNKNOWNUNIT
duration|1y -> error: $UNKNOWNUNIT
duration|1mo -> error: $UNKNOWNUNIT
duration|1us -> error: $UNKNOWNUNIT
duration|1h 30m -> error: $DUR
duration|10s  -> error: $DUR
duration|30M -> error: $MONTH
duration|1h30M -> error: $MONTH
duration|30m1h -> error: $ORDER
duration|1m1m -> error: $ORDER
duration|1s1m -> error: $ORDER
duration|1ms1s -> error: $ORDER
duration|1d1w -> error: $ORDER
duration|1h1h30m -> error: $ORDER
duration| 10s -> error: $DUR
duration|-10s -> error: $DUR
duration|+10s -> error: $DUR
duration|s -> error: $DUR
duration|ms -> error: $DUR
duration|h1 -> error: $DUR
duration|PT5M -> error: $DUR
duration|@10 -> error: $DUR
duration|.5h -> error: $DUR
duration|0x10s -> error: $UNKNOWNUNIT
duration| -> error: $EMPTYDUR
duration|1.5h -> error: $WHOLE
duration|1,5h -> error: $WHOLE
duration|1h0.5m -> error: $WHOLE
# text, for any number that a file may hold
text|999 -> 1970-01-01T00:00:00Z
text|1780401660999 -> 2026-06-02T12:01:00Z
text|951782400999 -> 2000-02-29T00:00:00Z
text|4107542399999 -> 2100-02-28T23:59:59Z
text|4107542400999 -> 2100-03-01T00:00:00Z
text|253402300799999 -> 9999-12-31T23:59:59Z
millis|1780401660123 -> 2026-06-02T12:01:00.123Z
millis|1780401660007 -> 2026-06-02T12:01:00.007Z
millis|-1 -> 1969-12-31T23:59:59.999Z
text|253402300800000 -> 10000-01-01T00:00:00Z
millis|9223372036854775807 -> 292278994-08-17T07:12:55.807Z
millis|-9223372036854775808 -> -292275055-05-16T16:47:04.192Z
span|0 -> 0s
span|1 -> 1ms
span|250 -> 250ms
span|1000 -> 1s
span|90000 -> 1m30s
span|90250 -> 1m30s250ms
span|3600000 -> 1h
span|3600001 -> 1h1ms
span|86400000 -> 1d
span|604800000 -> 7d
span|315360000000 -> 3650d
span|93784005 -> 1d2h3m4s5ms
span|-1500 -> -1s500ms
span|9223372036854775807 -> 106751991167d7h12m55s807ms
span|-9223372036854775808 -> -106751991167d7h12m55s808ms
brief|0 -> 0s
brief|1 -> 1ms
brief|999 -> 999ms
brief|1000 -> 1.0s
brief|1099 -> 1.0s
brief|2599 -> 2.5s
brief|9999 -> 9.9s
brief|10000 -> 10s
brief|59999 -> 59s
brief|60000 -> 1m00s
brief|63999 -> 1m03s
brief|3599999 -> 59m59s
brief|3600000 -> 1h00m
brief|7559999 -> 2h05m
brief|86399999 -> 23h59m
brief|86400000 -> 1d00h
brief|273600000 -> 3d04h
brief|8639999999 -> 99d23h
brief|8640000000 -> 100d
brief|9223372036854775807 -> 106751991167d
relative|0|0 -> now
relative|999|0 -> now
relative|0|999 -> now
relative|1000|0 -> in 1s
relative|0|1000 -> 1s ago
relative|1999|0 -> in 1s
relative|59999|0 -> in 59s
relative|60000|0 -> in 1m
relative|0|252000 -> 4m12s ago
relative|3599999|0 -> in 59m59s
relative|3600000|0 -> in 1h
relative|3605000|0 -> in 1h
relative|183600000|0 -> in 2d3h
relative|184000000|0 -> in 2d3h
relative|86460000|0 -> in 1d
relative|0|864000000 -> 10d ago
relative|9223372036854775807|-9223372036854775808 -> in 213503982334d14h
relative|-9223372036854775808|9223372036854775807 -> 213503982334d14h ago
END
sed -n '/^#/!s/ -> .*//p' table >calls
sed -n '/^#/!s/.* -> //p' table >expected
./unit-when - <calls >got
is 'the table ran to its end' "$(wc -l <got)" "$(wc -l <calls)"
# shellcheck disable=SC2016
awk -v n=$n 'BEGIN {
	while ((getline call <"calls") > 0) {
		want = got = "(nothing)"
		getline want <"expected"
		getline got <"got"
		printf "%sok %d - %s\n", got == want ? "" : "not ", ++n, call
		if (got != want)
			printf "# got: %s\n# expected: %s\n", got, want
	}
}'
n=$((n + $(wc -l <calls)))

# The caller's zone changes no result, and is left as it was (each call of unit-when looks).
for tz in '' UTC Europe/Berlin :America/New_York Pacific/Apia CET-1CEST,M3.5.0,M10.5.0/3 Mars/Olympus; do
	TZ=$tz ./unit-when - <calls >got
	is "the same under TZ='$tz'" "$(cmp expected got 2>&1)" ''
done

# Zones that are missing or broken are errors, never UTC.
is 'no zones installed' "$(TZDIR=$dir/none ./unit-when zone Europe/Berlin)" \
	'error: this system has no time zones (only UTC): install tzdata'
is 'UTC needs no file' "$(TZDIR=$dir/none ./unit-when instant '2026-06-02 12:01' UTC)" '1780401660000 2026-06-02T12:01:00.000Z'
mkdir -p zi/Bad
echo 'not a zone' >zi/Bad/Text
printf 'TZif2' >zi/Bad/Short
: >zi/Bad/Empty
is 'not in TZDIR' "$(TZDIR=$dir/zi ./unit-when zone Europe/Berlin)" "error: $UNKNOWN"
is 'a text file' "$(TZDIR=$dir/zi ./unit-when zone Bad/Text)" "error: $NOTZIF"
is 'an empty file' "$(TZDIR=$dir/zi ./unit-when zone Bad/Empty)" "error: $NOTZIF"
is 'a folder' "$(TZDIR=$dir/zi ./unit-when zone Bad)" "error: $NOTZIF"
is 'a truncated file' "$(TZDIR=$dir/zi ./unit-when instant '2026-06-02 12:01' Bad/Short)" \
	'error: the file of this zone cannot be used'
is 'no descriptor left: zone' "$(./unit-when nofile instant '2026-06-02 12:01' Europe/Berlin)" \
	'error: the file of this zone cannot be read'
is 'an empty TZDIR is none' "$(TZDIR='' ./unit-when zone Europe/Berlin)" ok

# Q_NOW
for row in '2026-06-02T12:01:00Z=1780401660000 2026-06-02T12:01:00.000Z' \
	'2026-06-02 14:01:00.25+02:00=1780401660250 2026-06-02T12:01:00.250Z' \
	'@1780401660.5=1780401660500 2026-06-02T12:01:00.500Z' \
	'@0=0 1970-01-01T00:00:00.000Z'; do
	is "Q_NOW=${row%=*}" "$(Q_NOW=${row%=*} ./unit-when now)" "${row#*=}"
done
for bad in '' now +10s 1780401660 '2026-06-02 12:01' 'today 10:00' ' @1' '@-1' 2026-06-02T12:01:00ZZ; do
	is "Q_NOW='$bad' is refused" "$(Q_NOW=$bad ./unit-when now)" 'error: now'
done
before=$(date +%s)
now=$(./unit-when now)
after=$(date +%s)
now=${now%% *}
is 'the real clock' "$([ "${now%???}" -ge "$before" ] && [ "${now%???}" -le "$after" ] && echo between)" between

# Q_BOOT
id=ae5bbe07-087e-4255-b503-55d2a7e987f4
for row in "$id:0=0 $id" 'ab-CD-09:12345=12345 ab-CD-09' ':5=5 ' 'b:253402300799999=253402300799999 b'; do
	is "Q_BOOT=${row%=*}" "$(Q_BOOT=${row%=*} ./unit-when boot)" "${row#*=}"
done
for bad in '' b b: b:-1 b:+1 'b: 1' b:1x a_b:1 'a b:1' a:b:1 "${id}0:1" b:253402300800000 b:9223372036854775808 b:18446744073709551617; do
	is "Q_BOOT='$bad' is refused" "$(Q_BOOT=$bad ./unit-when boot)" 'error: boot'
done
first=$(./unit-when boot)
second=$(./unit-when boot)
is 'the boot clock goes forward' "$([ "${first%% *}" -le "${second%% *}" ] && echo yes)" yes
if [ -r /proc/sys/kernel/random/boot_id ]; then
	is 'the boot has its id' "${first#* }" "$(cat /proc/sys/kernel/random/boot_id)"
	is 'no descriptor left: boot' "$(./unit-when nofile boot)" 'error: boot'
fi

# Random instants against GNU date, both ways.
if date --version 2>/dev/null | grep -q GNU; then
	seed=$(date +%s)
	echo "# seed $seed"
	awk -v seed="$seed" 'BEGIN { srand(seed); for (i = 0; i < 500; i++) printf "@%.0f\n", int(rand() * 253402300799) }' >instants
	date -u -f instants +%Y-%m-%dT%H:%M:%SZ >expected
	sed 's/@\(.*\)/text|\1000/' instants | ./unit-when - >got
	is 'as date -u prints them' "$(cmp expected got 2>&1)" ''
	sed 's/@\(.*\)/\1000/' instants >numbers
	sed 's/^/instant|/' expected | ./unit-when - | cut -d ' ' -f 1 >got
	is 'and read back' "$(cmp numbers got 2>&1)" ''
	awk -v seed="$seed" 'BEGIN { srand(seed); for (i = 0; i < 200; i++) printf "@%.0f\n", 86400 + int(rand() * 4e9) }' >instants
	for zone in Europe/Berlin America/New_York Australia/Lord_Howe Asia/Kathmandu Pacific/Apia; do
		TZ=$zone date -f instants '+%Y-%m-%d %H:%M:%S' >expected
		sed "s,.*,instant|&|$zone," expected | ./unit-when - | sed 's/^/@/;s/000 .*//' >back
		# Of an hour that comes twice the first is taken: the wall shows the same, and it is never later.
		TZ=$zone date -f back '+%Y-%m-%d %H:%M:%S' >got
		is "as date reads them in $zone" "$(cmp expected got 2>&1)$(paste back instants | tr -d @ | awk '$1 > $2')" ''
	done
fi

echo "1..$n"
