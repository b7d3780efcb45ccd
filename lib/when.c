/*
 * when.c - durations, instants, zones, clocks.
 *
 * Instants are read and written by integer arithmetic.  libc is asked for one thing only, what
 * the clock on the wall of a zone shows, by setting TZ for the length of a call: so the functions
 * that take a zone are not for two threads at once.
 */
#define _DEFAULT_SOURCE		/* timegm(3) */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "q.h"

_Static_assert(sizeof(time_t) >= 8, "a 32-bit time_t ends in 2038");

#define DAY INT64_C(86400)			/* seconds */
#define DURATION_MAX (3650 * DAY * 1000)	/* ms */
#define ZONE_NAME 64				/* bytes, far above the longest name in use */

static const struct unit {
	const char *name;
	int64_t ms;
} units[] = {
	{ "w", 7 * DAY * 1000 },
	{ "d", DAY * 1000 },
	{ "h", 3600 * 1000 },
	{ "m", 60 * 1000 },
	{ "s", 1000 },
	{ "ms", 1 }
};
#define NUNITS (sizeof(units) / sizeof(units[0]))

static const char RANGE[] = "outside the years 1970 to 9999";
static const char NO_ZONE[] = "a local time needs a zone: name one (tz), or write Z or an offset such as +02:00";

static bool
fail(const char **why, const char *text)
{
	*why = text;
	return false;
}

static bool
in_range(int64_t ms)
{
	return ms >= 0 && ms <= WHEN_MAX;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* ASCII, whatever the locale says. */
static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- the calendar -------------------------------------------------------- */

/* Seconds since 1970 if the fields are UTC; month 13 or day 32 are those of the next year or month. */
static int64_t
seconds(int year, int month, int day, int hour, int min, int sec)
{
	struct tm tm = { .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day, .tm_hour = hour, .tm_min = min, .tm_sec = sec };

	return timegm(&tm);
}

/* Which day since 1970 a second belongs to. */
static int64_t
day_of(int64_t sec)
{
	return sec / DAY - (sec % DAY < 0);
}

/* ---- durations ----------------------------------------------------------- */

bool
when_duration(const char *s, int64_t *ms, const char **why)
{
	static const char too_long[] = "longer than 3650d";
	int64_t sum = 0;
	size_t next = 0;	/* the largest unit that may still come */

	if (*s == '\0')
		return fail(why, "an empty duration");
	if (strcmp(s, "0") == 0) {
		*ms = 0;
		return true;
	}
	while (*s != '\0') {
		int64_t n = 0;
		size_t len = 0, u;

		if (!is_digit(*s))
			return fail(why, "not a duration: write 500ms, 10s, 5m, 1h30m, 2d or 1w");
		for (; is_digit(*s); s++) {
			n = n * 10 + (*s - '0');
			if (n > DURATION_MAX)
				return fail(why, too_long);
		}
		if (*s == '\0')
			return fail(why, "a number needs a unit: write 10s, 10m, 10h or 10d");
		if (*s == '.' || *s == ',')
			return fail(why, "whole numbers only: write 1h30m for an hour and a half");
		while (is_letter(s[len]))
			len++;
		for (u = 0; u < NUNITS; u++)
			if (strlen(units[u].name) == len && strncmp(units[u].name, s, len) == 0)
				break;
		if (u == NUNITS && len == 1 && *s == 'M')
			return fail(why, "no unit M: m is minutes, and months have no fixed length (30d)");
		if (u == NUNITS)
			return fail(why, "unknown unit: the units are ms, s, m, h, d and w");
		if (u < next)
			return fail(why, "parts go from the largest unit to the smallest, each at most once");
		if (n > (DURATION_MAX - sum) / units[u].ms)
			return fail(why, too_long);
		sum += n * units[u].ms;
		next = u + 1;
		s += len;
	}
	*ms = sum;
	return true;
}

bool
when_range(const char *s, int64_t *from, int64_t *to, const char **why)
{
	const char *dots = strstr(s, "..");
	char first[32];

	*why = "is not BASE..CAP, such as 5s..10m";
	if (dots == NULL || dots == s || dots[2] == '\0' || dots - s >= (int)sizeof first)
		return false;
	snprintf(first, sizeof first, "%.*s", (int)(dots - s), s);
	if (!when_duration(first, from, why) || !when_duration(dots + 2, to, why))
		return false;
	*why = "must not begin above its cap, nor the cap be 0";
	return *from <= *to && *to > 0;
}

/* The parts of a duration, largest first, weeks as days, `max` of them in a row; the rest is cut off. */
static char *
parts(char *p, size_t size, uint64_t ms, size_t max)
{
	char *end = p + size;
	size_t u = 1, last;

	while (u < NUNITS - 1 && ms < (uint64_t)units[u].ms)
		u++;
	last = u + max;
	for (; u < NUNITS && u < last; u++) {
		uint64_t n = ms / (uint64_t)units[u].ms;

		ms %= (uint64_t)units[u].ms;
		if (n > 0)
			p += snprintf(p, (size_t)(end - p), "%" PRIu64 "%s", n, units[u].name);
	}
	return p;
}

char *
when_relative(char buf[WHEN_TEXT], int64_t ms, int64_t now)
{
	uint64_t diff = ms > now ? (uint64_t)ms - (uint64_t)now : (uint64_t)now - (uint64_t)ms;
	bool later = ms > now;

	if (diff < 1000) {
		memcpy(buf, "now", sizeof("now"));
		return buf;
	}
	diff -= diff % 1000;
	if (later) {
		memcpy(buf, "in ", 3);
		parts(buf + 3, WHEN_TEXT - 3, diff, 2);
	} else
		memcpy(parts(buf, WHEN_TEXT - 4, diff, 2), " ago", sizeof(" ago"));
	return buf;
}

char *
when_span(char buf[WHEN_TEXT], int64_t ms)
{
	char *p = buf;

	if (ms == 0) {
		memcpy(buf, "0s", sizeof("0s"));
		return buf;
	}
	if (ms < 0)
		*p++ = '-';
	parts(p, WHEN_TEXT - 1, ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms, NUNITS);
	return buf;
}

char *
when_brief(char buf[WHEN_TEXT], int64_t ms)
{
	long long s = ms / 1000, m = s / 60, h = m / 60, d = h / 24;

	if (ms == 0 || (s >= 10 && m == 0))
		snprintf(buf, WHEN_TEXT, "%llds", s);
	else if (s == 0)
		snprintf(buf, WHEN_TEXT, "%lldms", (long long)ms);
	else if (m == 0)
		snprintf(buf, WHEN_TEXT, "%lld.%llds", s, (long long)ms % 1000 / 100);
	else if (h == 0)
		snprintf(buf, WHEN_TEXT, "%lldm%02llds", m, s % 60);
	else if (d == 0)
		snprintf(buf, WHEN_TEXT, "%lldh%02lldm", h, m % 60);
	else if (d < 100)
		snprintf(buf, WHEN_TEXT, "%lldd%02lldh", d, h % 24);
	else
		snprintf(buf, WHEN_TEXT, "%lldd", d);
	return buf;
}

/* ---- zones --------------------------------------------------------------- */

bool
when_zone(const char *zone, const char **why)
{
	const char *dir = getenv("TZDIR"), *p;
	char path[4096], magic[4];
	size_t got = 0;
	ssize_t n = 0;
	int fd;

	/* libc takes a name that it does not know for UTC, so the name is checked here. */
	for (p = zone; is_letter(*p) || is_digit(*p) || (*p != '\0' && strchr("_+-./", *p) != NULL); p++)
		continue;
	if (*p != '\0' || p == zone || p - zone > ZONE_NAME || *zone == '/' || *zone == '.' ||
	    strstr(zone, "..") != NULL || strstr(zone, "//") != NULL || p[-1] == '/')
		return fail(why, "not the name of a zone: write one like Europe/Berlin or UTC");
	if (strncmp(zone, "right/", 6) == 0)
		return fail(why, "a zone that counts leap seconds, as no clock here does: leave out right/");
	if (strcmp(zone, "UTC") == 0)
		return true;
	if (dir == NULL || *dir == '\0')
		dir = "/usr/share/zoneinfo";
	if (snprintf(path, sizeof(path), "%s/%s", dir, zone) >= (int)sizeof(path))
		return fail(why, "TZDIR is too long");
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1) {
		if (errno != ENOENT && errno != ENOTDIR)
			return fail(why, "the file of this zone cannot be read");
		if (access(dir, F_OK) == -1)
			return fail(why, "this system has no time zones (only UTC): install tzdata");
		return fail(why, "unknown zone: write its name like Europe/Berlin, or UTC");
	}
	while (got < sizeof(magic) && (n = read(fd, magic + got, sizeof(magic) - got)) > 0)
		got += (size_t)n;
	close(fd);
	if (n == -1 && errno != EISDIR)
		return fail(why, "the file of this zone cannot be read");
	if (got != sizeof(magic) || memcmp(magic, "TZif", sizeof(magic)) != 0)
		return fail(why, "not a time zone: its file does not start with TZif");
	return true;
}

/* *saved is the caller's TZ or NULL. */
static bool
zone_leave(char *saved, const char **why)
{
	int r = saved != NULL ? setenv("TZ", saved, 1) : unsetenv("TZ");

	free(saved);
	tzset();
	return r == 0 || fail(why, "out of memory");
}

static bool
zone_enter(const char *zone, char **saved, const char **why)
{
	const char *old = getenv("TZ");
	char tz[1 + ZONE_NAME + 1];
	size_t area = strcspn(zone, "/");
	bool memory;

	if (!when_zone(zone, why))
		return false;
	*saved = NULL;
	if (old != NULL && (*saved = strdup(old)) == NULL)
		return fail(why, "out of memory");
	/* The colon says that it is a file; UTC shall work without one. */
	snprintf(tz, sizeof(tz), ":%s", zone);
	if (setenv("TZ", strcmp(zone, "UTC") == 0 ? "UTC0" : tz, 1) == -1) {
		free(*saved);
		return fail(why, "out of memory");
	}
	errno = 0;
	tzset();
	/* A file that libc cannot use is UTC to glibc, named after the first letters of TZ. */
	if (zone[area] == '/' && strlen(tzname[0]) == area && strncmp(tzname[0], zone, area) == 0) {
		memory = errno == ENOMEM;
		return zone_leave(*saved, why) && fail(why, memory ? "out of memory" : "the file of this zone cannot be used");
	}
	return true;
}

/* What the wall shows at an instant, in seconds as if it were UTC.  Between zone_enter() and zone_leave(). */
static int64_t
wall(int64_t sec)
{
	time_t t = (time_t)sec;
	struct tm tm;

	/* It fails only for years that do not fit an int. */
	if (localtime_r(&t, &tm) == NULL)
		return sec;
	return timegm(&tm);
}

/*
 * The first instant at which the wall shows `local`.  False: a clock change skips it, and *sec is
 * the first instant after the change.  mktime() is of no use: how it treats both cases is not defined.
 */
static bool
from_wall(int64_t local, int64_t *sec)
{
	int64_t lo = local - DAY, hi = local + DAY;
	int64_t a = local - (wall(lo) - lo), b = local - (wall(hi) - hi);
	int64_t first = a < b ? a : b, second = a < b ? b : a;

	if (wall(first) == local || wall(second) == local) {
		*sec = wall(first) == local ? first : second;
		return true;
	}
	while (hi - lo > 1) {
		int64_t mid = lo + (hi - lo) / 2;

		if (wall(mid) > local)
			hi = mid;
		else
			lo = mid;
	}
	*sec = hi;
	return false;
}

static struct {				/* between when_enter() and when_leave() */
	char zone[ZONE_NAME + 1], *saved;
} entered;

bool
when_enter(const char *zone, const char **why)
{
	if (strcmp(entered.zone, zone) == 0)
		return true;
	when_leave();
	if (strcmp(zone, "UTC") != 0 && !zone_enter(zone, &entered.saved, why))
		return false;
	snprintf(entered.zone, sizeof(entered.zone), "%s", zone);
	return true;
}

void
when_leave(void)
{
	const char *why;

	if (*entered.zone != '\0' && strcmp(entered.zone, "UTC") != 0)
		zone_leave(entered.saved, &why);	/* no memory: who asks for a zone sets TZ anew */
	*entered.zone = '\0';
}

int64_t
when_wall(int64_t sec)
{
	return strcmp(entered.zone, "UTC") == 0 ? sec : wall(sec);
}

int64_t
when_shown(int64_t local)
{
	int64_t sec = local;

	if (strcmp(entered.zone, "UTC") != 0)
		from_wall(local, &sec);
	return sec;
}

/* ---- instants ------------------------------------------------------------ */

/* Exactly n digits. */
static bool
number(const char **s, int n, int *v)
{
	*v = 0;
	for (; n > 0; n--, (*s)++) {
		if (!is_digit(**s))
			return false;
		*v = *v * 10 + (**s - '0');
	}
	return true;
}

/* "" or ".digits", in ms; what is finer is cut off. */
static bool
fraction(const char **s, int *ms)
{
	*ms = 0;
	if (**s != '.')
		return true;
	(*s)++;
	if (!is_digit(**s))
		return false;
	for (int scale = 100; is_digit(**s); (*s)++, scale /= 10)
		*ms += scale * (**s - '0');
	return true;
}

/* The whole of s is HH:MM; *min may still be none of a day (-1). */
static bool
time_of_day(const char *s, int *min)
{
	int hour, minute;

	if (!number(&s, 2, &hour) || *s++ != ':' || !number(&s, 2, &minute) || *s != '\0')
		return false;
	*min = hour > 23 || minute > 59 ? -1 : hour * 60 + minute;
	return true;
}

static const char NO_TIME[] = "no such time of day: 00:00 to 23:59";

/* A local time that somebody wrote down, to an instant. */
static bool
written(int64_t local, const char *zone, int64_t *sec, const char **why)
{
	char *saved;
	bool there;

	if (zone == NULL)
		return fail(why, NO_ZONE);
	if (!zone_enter(zone, &saved, why))
		return false;
	there = from_wall(local, sec);
	if (!zone_leave(saved, why))
		return false;
	return there || fail(why, "a clock change skips this local time: it does not exist in the zone");
}

/* "HH:MM" of the date on which base falls in the zone, or of a later one. */
static bool
on_day(const char *hhmm, int later, const char *zone, int64_t base, int64_t *ms, const char **why)
{
	char *saved;
	int64_t day, sec;
	int min;

	if (!time_of_day(hhmm, &min))
		return fail(why, "today and tomorrow are followed by one blank and HH:MM");
	if (min == -1)
		return fail(why, NO_TIME);
	if (zone == NULL)
		return fail(why, NO_ZONE);
	if (!in_range(base))
		return fail(why, RANGE);
	if (!zone_enter(zone, &saved, why))
		return false;
	day = day_of(wall(base / 1000)) + later;
	if (!zone_leave(saved, why) || !written(day * DAY + min * 60, zone, &sec, why))
		return false;
	*ms = sec * 1000;
	return true;
}

/* "SECONDS[.fff]" */
static bool
epoch(const char *s, int64_t *ms, const char **why)
{
	static const char form[] = "after @ come seconds since 1970, as in @1780401660 or @1780401660.5";
	int64_t sec = 0;
	int frac;

	if (!is_digit(*s))
		return fail(why, form);
	for (; is_digit(*s); s++) {
		sec = sec * 10 + (*s - '0');
		if (sec > WHEN_MAX / 1000)
			return fail(why, RANGE);
	}
	if (!fraction(&s, &frac) || *s != '\0')
		return fail(why, form);
	*ms = sec * 1000 + frac;
	return true;
}

/* What was meant by something that starts with a digit and is no date. */
static const char *
hint(const char *s)
{
	size_t n = strspn(s, "0123456789");
	const char *unused;
	int64_t ms;

	if (s[n] == '\0')
		return "a bare number: write @N for seconds since 1970, +Ns for N seconds from now";
	if (s[n] == ':')
		return "a time of day is HH:MM, two digits each, and needs a date except after --at";
	if (when_duration(s, &ms, &unused))
		return "a delay starts with a plus, as in +10m";
	return "not a date and time: write 2026-06-02T12:01:00Z, or 2026-06-02 12:01 and a zone";
}

/* YYYY-MM-DD, T or a blank, HH:MM[:SS[.fff]], then Z, +HH:MM, -HH:MM or nothing. */
static bool
date_time(const char *s, const char *zone, int64_t *ms, const char **why)
{
	const char *p = s;
	int year, month, day, hour, min, sec = 0, frac = 0, oh = 0, om = 0;
	int64_t t;

	if (!number(&p, 4, &year) || *p++ != '-' || !number(&p, 2, &month) || *p++ != '-' || !number(&p, 2, &day))
		return fail(why, hint(s));
	if (*p == '\0')
		return fail(why, "a date needs a time of day: write YYYY-MM-DD HH:MM");
	if (*p != 'T' && *p != 't' && *p != ' ')
		return fail(why, hint(s));
	p++;
	if (!number(&p, 2, &hour) || *p++ != ':' || !number(&p, 2, &min))
		return fail(why, hint(s));
	if (*p == ':') {
		p++;
		if (!number(&p, 2, &sec) || !fraction(&p, &frac))
			return fail(why, hint(s));
	}
	if (month < 1 || month > 12 || day < 1 || day > 31 || seconds(year, month, day, 0, 0, 0) >= seconds(year, month + 1, 1, 0, 0, 0))
		return fail(why, "no such day in the calendar");
	if (hour > 23 || min > 59 || sec > 60)
		return fail(why, NO_TIME);
	t = seconds(year, month, day, hour, min, sec);
	if (*p == '\0') {
		if (!written(t, zone, &t, why))
			return false;
	} else if (*p == 'Z' || *p == 'z') {
		p++;
	} else if (*p == '+' || *p == '-') {
		int sign = *p++ == '+' ? 1 : -1;

		if (!number(&p, 2, &oh) || *p++ != ':' || !number(&p, 2, &om))
			return fail(why, "an offset is written +HH:MM or -HH:MM");
		if (oh > 23 || om > 59)
			return fail(why, "no such offset: at most 23:59");
		t -= sign * (oh * 3600 + om * 60);
	}
	if (*p != '\0')
		return fail(why, "something follows the time: only Z, +HH:MM or -HH:MM may");
	/* Leap seconds come at the end of an hour of UTC; the clock counts them with the next one. */
	if (sec == 60 && t % 3600 != 0)
		return fail(why, "second 60 is a leap second, and this is not the time of one");
	t = t * 1000 + frac;
	if (!in_range(t))
		return fail(why, RANGE);
	*ms = t;
	return true;
}

bool
when_instant(const char *s, const char *zone, int64_t base, int64_t *ms, const char **why)
{
	int64_t delay = 0;

	if (zone != NULL && !when_zone(zone, why))
		return false;
	if (*s == '\0')
		return fail(why, "an empty time");
	if (*s == '@')
		return epoch(s + 1, ms, why);
	if (is_digit(*s))
		return date_time(s, zone, ms, why);
	if (strncmp(s, "today ", 6) == 0)
		return on_day(s + 6, 0, zone, base, ms, why);
	if (strncmp(s, "tomorrow ", 9) == 0)
		return on_day(s + 9, 1, zone, base, ms, why);
	if (strcmp(s, "today") == 0 || strcmp(s, "tomorrow") == 0)
		return on_day("", 0, zone, base, ms, why);
	if (*s != '+' && strcmp(s, "now") != 0)
		return fail(why, "not a time: write 2026-06-02T12:01:00Z, @1780401660, +10m, now, today HH:MM or tomorrow HH:MM");
	if (*s == '+' && !when_duration(s + 1, &delay, why))
		return false;
	if (!in_range(base) || delay > WHEN_MAX - base)
		return fail(why, RANGE);
	*ms = base + delay;
	return true;
}

/* The first instant from `from` on at which the wall shows the minute `min`. */
static bool
next_minute(int64_t from, int min, const char *zone, int64_t *ms, const char **why)
{
	char *saved;
	int64_t sec, day;

	if (!zone_enter(zone, &saved, why))
		return false;
	for (day = day_of(wall(from / 1000));; day++) {
		/* A date that a zone left out altogether (it crossed the date line) is not the next one. */
		if (!from_wall(day * DAY + min * 60, &sec) &&
		    day_of(wall(sec - 1)) < day && day_of(wall(sec)) > day)
			continue;
		if (sec * 1000 >= from)
			break;
	}
	*ms = sec * 1000;
	return zone_leave(saved, why);
}

bool
when_due(const struct when_due *w, int64_t *ms, const char **why)
{
	int64_t t;
	int min;

	if (w->zone != NULL && !when_zone(w->zone, why))
		return false;
	if (w->in < 0 || w->jitter_ms < 0 || !(w->share >= 0 && w->share < 1))
		return fail(why, "a negative delay, or a share that is not from 0 to below 1");
	if (!in_range(w->base) || w->in > WHEN_MAX - w->base)
		return fail(why, RANGE);
	t = w->base + w->in;
	if (w->at != NULL && time_of_day(w->at, &min)) {
		if (min == -1)
			return fail(why, NO_TIME);
		if (w->zone == NULL)
			return fail(why, NO_ZONE);
		if (!next_minute(t, min, w->zone, &t, why))
			return false;
	} else if (w->at != NULL) {
		if (w->in != 0)
			return fail(why, "a delay goes only with a time of day (HH:MM)");
		if (!when_instant(w->at, w->zone, w->base, &t, why))
			return false;
	}
	if (w->jitter_ms > WHEN_MAX)
		return fail(why, RANGE);
	t += (int64_t)(w->share * (double)w->jitter_ms);
	if (!in_range(t))
		return fail(why, RANGE);
	*ms = t;
	return true;
}

char *
when_text(char buf[WHEN_TEXT], int64_t ms, bool millis)
{
	time_t sec = ms / 1000 - (ms % 1000 < 0);
	struct tm tm = { .tm_mday = 1 };
	size_t n;

	gmtime_r(&sec, &tm);		/* it fails only for years that do not fit an int */
	n = strftime(buf, WHEN_TEXT - 5, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + n, WHEN_TEXT - n, millis ? ".%03dZ" : "Z", (int)(ms % 1000 + 1000) % 1000);
	return buf;
}

char *
when_local(char buf[WHEN_TEXT], int64_t ms, const char *zone)
{
	char *saved;
	const char *why;
	int64_t sec = ms / 1000 - (ms % 1000 < 0), off;
	unsigned min;

	if (!zone_enter(zone, &saved, &why))
		return when_text(buf, ms, false);
	off = (wall(sec) - sec) / 60;
	zone_leave(saved, &why);
	min = (unsigned)(off < 0 ? -off : off) % (24 * 60);
	when_text(buf, (sec + off * 60) * 1000, false);
	if (off != 0 || strcmp(zone, "UTC") != 0)
		snprintf(buf + strlen(buf) - 1, 8, "%c%02u:%02u", off < 0 ? '-' : '+', min / 60, min % 60);
	return buf;
}

int
when_edges(int64_t from, int64_t to, const char *zone, bool hours, int64_t *edges, int max)
{
	const int64_t hour = 3600000;
	struct when_due midnight = { .at = "00:00", .zone = zone };
	int64_t at = from, next;
	const char *why;
	int n = 0;

	while (at < to) {
		if (n < max)
			edges[n] = at;
		n++;
		midnight.base = at + 1;
		if (!when_due(&midnight, &next, &why))
			break;
		at = hours ? next - (next - at - 1) / hour * hour : next;
	}
	return n;
}

/* ---- clocks -------------------------------------------------------------- */

static int64_t
clock_ms(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) == -1 || ts.tv_sec < 0 || ts.tv_sec > WHEN_MAX / 1000)
		return -1;
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t
when_now(void)
{
	const char *s = getenv("Q_NOW"), *why;
	int64_t ms;

	if (s == NULL)
		return clock_ms(CLOCK_REALTIME);
	if (*s == '@' ? epoch(s + 1, &ms, &why) : date_time(s, NULL, &ms, &why))
		return ms;
	return -1;
}

/* The length of the boot id that s starts with; -1: too long. */
static int
boot_id_length(const char *s)
{
	int n = 0;

	while (is_letter(s[n]) || is_digit(s[n]) || s[n] == '-')
		if (++n > 36)
			return -1;
	return n;
}

/* "ID:MS" */
static int64_t
boot_given(const char *s, char id[40])
{
	int len = boot_id_length(s);
	int64_t ms = 0;
	const char *p;

	if (len == -1 || s[len] != ':' || s[len + 1] == '\0')
		return -1;
	for (p = s + len + 1; is_digit(*p); p++)
		if ((ms = ms * 10 + (*p - '0')) > WHEN_MAX)
			return -1;
	if (*p != '\0')
		return -1;
	memcpy(id, s, (size_t)len);
	id[len] = '\0';
	return ms;
}

int64_t
when_elapsed(void)
{
	int64_t ms = -1;

#ifdef CLOCK_BOOTTIME
	ms = clock_ms(CLOCK_BOOTTIME);
#endif
	return ms != -1 ? ms : clock_ms(CLOCK_MONOTONIC);
}

static void
nudged(int sig)
{
	(void)sig;			/* it only interrupts */
}

void
when_nudge(int64_t ms)
{
	static timer_t timer;
	static bool made;
	struct sigevent how = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	struct sigaction sa = { .sa_handler = nudged };
	struct itimerspec every = { { ms / 1000, ms % 1000 * 1000000 }, { ms / 1000, ms % 1000 * 1000000 } };

	if (!made && ms > 0) {
		sigaction(SIGRTMIN, &sa, NULL);
		made = timer_create(CLOCK_MONOTONIC, &how, &timer) == 0;
	}
	if (made)
		timer_settime(timer, 0, &every, NULL);
}

/* The boot id, which stays the same while the process lives. */
static bool
boot_id(char id[40])
{
	static char known[40];
	static bool asked;
	char buf[64] = "";
	int fd, len;
	ssize_t n;

	if (!asked) {
		if ((fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)) != -1) {
			n = read(fd, buf, sizeof(buf) - 1);
			close(fd);
			if (n <= 0)
				return false;
			if ((len = boot_id_length(buf)) > 0)
				memcpy(known, buf, (size_t)len);
		}
#ifdef __linux__
		else
			return false;	/* no /proc, no descriptor left: "" would look like another boot and free every claim */
#endif
		asked = true;
	}
	memcpy(id, known, sizeof known);
	return true;
}

int64_t
when_boot(char id[40])
{
	const char *given = getenv("Q_BOOT");

	id[0] = '\0';
	if (given != NULL)
		return boot_given(given, id);
	return boot_id(id) ? when_elapsed() : -1;
}
