/* cursor.c - values that say where we are in what an API sent: their order, and how to ask from them on */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "source.h"

struct moment { int64_t s; uint32_t ns; };

/* ---- times ---- */

/* Days since 1970 of a date of the Gregorian calendar, proleptic. */
static int64_t
days(int64_t y, int64_t m, int64_t d)
{
	int64_t era, of_era;

	y -= m <= 2;
	era = (y >= 0 ? y : y - 399) / 400;
	of_era = y - era * 400;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1 - 719468;
}

/* n digits at *s, which moves on; -1: there are not so many. */
static int64_t
take(const char **s, int n)
{
	int64_t v = 0;

	for (; n > 0; n--, ++*s) {
		if (!isdigit((unsigned char)**s))
			return -1;
		v = v * 10 + (**s - '0');
	}
	return v;
}

/* ".25", ",25" to ns; digits after the ninth do not count.  False: no digit. */
static bool
fraction(const char **s, uint32_t *ns)
{
	uint32_t unit = 100000000;

	*ns = 0;
	if (**s != '.' && **s != ',')
		return true;
	if (!isdigit((unsigned char)*++*s))
		return false;
	for (; isdigit((unsigned char)**s); ++*s, unit /= 10)
		*ns += (uint32_t)(**s - '0') * unit;
	return true;
}

/* "Z", "+hh:mm", "+hhmm", "+hh", "UTC" to seconds; moves *s to the end. */
static bool
offset(const char **s, int64_t *secs)
{
	int64_t h, m = 0, sign = **s == '-' ? -1 : 1;

	*secs = 0;
	if (**s == 'Z' || **s == 'z') {
		++*s;
		return true;
	}
	if (strcmp(*s, "UTC") == 0) {
		*s += 3;
		return true;
	}
	if (**s != '+' && **s != '-')
		return false;
	++*s;
	if ((h = take(s, 2)) == -1 || h > 23)
		return false;
	if (**s != '\0') {
		*s += **s == ':';
		if ((m = take(s, 2)) == -1 || m > 59)
			return false;
	}
	*secs = sign * (h * 3600 + m * 60);
	return true;
}

static bool
parse_time(const char *s, const char *zone, struct moment *t, const char **why)
{
	int64_t y, mon, d, h = 0, min = 0, sec = 0, off;
	static const char LEN[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	*why = "is not a time such as 2026-03-01T00:00:00Z";
	t->ns = 0;
	if ((y = take(&s, 4)) == -1 || *s++ != '-' || (mon = take(&s, 2)) == -1 || *s++ != '-' || (d = take(&s, 2)) == -1)
		return false;
	if (mon < 1 || mon > 12 || d < 1 || d > LEN[mon - 1] || y < 1 ||
	    (mon == 2 && d == 29 && (y % 4 != 0 || (y % 100 == 0 && y % 400 != 0))))
		return false;
	if (*s == '\0') {		/* a date is its beginning, in whatever zone is set, or UTC */
		if (zone == NULL)
			zone = "Z";
	} else {
		if ((*s != 'T' && *s != 't' && *s != ' ') || (s++, h = take(&s, 2)) == -1 || *s++ != ':' || (min = take(&s, 2)) == -1)
			return false;
		if (*s == ':' && (s++, (sec = take(&s, 2)) == -1 || !fraction(&s, &t->ns)))
			return false;
		if (h > 24 || min > 59 || sec > 60 || (h == 24 && (min > 0 || sec > 0 || t->ns > 0)))
			return false;
		if (*s == ' ')
			s++;
	}
	if (*s == '\0') {
		*why = "names no zone, and the source none that it is in; set \"zone\"";
		if (zone == NULL)
			return false;
		s = zone;
	}
	if (!offset(&s, &off) || *s != '\0')
		return false;
	t->s = days(y, mon, d) * 86400 + h * 3600 + min * 60 + sec - off;
	return true;
}

/* A number of units since 1970; only seconds may have a fraction. */
static bool
parse_epoch(const char *s, int64_t units, struct moment *t, const char **why)
{
	bool minus = *s == '-';
	int64_t v = 0, sub;
	int n = 0;

	*why = "is not a number";
	for (s += minus; isdigit((unsigned char)*s) && n < 18; s++, n++)
		v = v * 10 + (*s - '0');
	t->ns = 0;
	if (n == 0 || (units == 1 ? !fraction(&s, &t->ns) : *s != '\0') || *s != '\0')
		return false;
	*why = units == 1 ? "is too large for seconds since 1970; is it \"epoch_ms\"?" :
	    units == 1000 ? "is too large for ms since 1970; is it \"epoch_us\"?" : "is too large for us since 1970";
	if (n > (units == 1 ? 11 : units == 1000 ? 14 : 17))
		return false;
	if (minus)
		v = -v;
	t->s = v / units;
	sub = v % units;
	if (sub < 0) {
		sub += units;
		t->s--;
	}
	if (units > 1)
		t->ns = (uint32_t)(sub * (1000000000 / units));
	else if (minus && t->ns > 0) {
		t->s--;
		t->ns = 1000000000 - t->ns;
	}
	return true;
}

static bool
is_time(const struct cursor_spec *spec)
{
	return spec->type <= CURSOR_EPOCH_US;
}

static void
put_moment(const struct moment *t, struct cursor_key *k)
{
	uint64_t s = (uint64_t)t->s ^ (UINT64_C(1) << 63);

	for (int i = 0; i < 8; i++)
		k->b[i] = (unsigned char)(s >> (56 - 8 * i));
	for (int i = 0; i < 4; i++)
		k->b[8 + i] = (unsigned char)(t->ns >> (24 - 8 * i));
	k->n = 12;
}

static void
get_moment(const struct cursor_key *k, struct moment *t)
{
	uint64_t s = 0;

	t->ns = 0;
	for (int i = 0; i < 8; i++)
		s = s << 8 | k->b[i];
	for (int i = 8; i < 12; i++)
		t->ns = t->ns << 8 | k->b[i];
	t->s = (int64_t)(s ^ (UINT64_C(1) << 63));
}

/* ---- keys ---- */

/* Length first, so that longer is larger; then the digits; then those of a fraction, without zeros at the end. */
static bool
number_key(const char *s, bool decimal, struct cursor_key *k, const char **why)
{
	const char *dot;
	size_t n, frac = 0;

	*why = decimal ? "is not a number without sign and exponent" : "is not a whole number without sign";
	while (*s == '0' && isdigit((unsigned char)s[1]))
		s++;
	n = strspn(s, "0123456789");
	dot = s + n;
	if (decimal && *dot == '.')
		frac = strspn(dot + 1, "0123456789");
	if (n == 0 || dot[frac > 0 ? frac + 1 : 0] != '\0')
		return false;
	k->b[0] = (unsigned char)n;
	memcpy(k->b + 1, s, n);
	k->n = n + 1;
	while (frac > 0 && dot[frac] == '0')
		frac--;
	if (frac > 0) {
		memcpy(k->b + k->n, dot + 1, frac);
		k->n += frac;
	}
	return true;
}

bool
cursor_key(const struct cursor_spec *spec, const char *text, struct cursor_key *k, const char **why)
{
	struct moment t;
	bool good;

	k->n = 0;
	*why = "is longer than 120 bytes";
	if (spec->type != CURSOR_NONE && strlen(text) > CURSOR_MAX)
		return false;
	switch (spec->type) {
	case CURSOR_TIME: good = parse_time(text, spec->zone, &t, why); break;
	case CURSOR_EPOCH: good = parse_epoch(text, 1, &t, why); break;
	case CURSOR_EPOCH_MS: good = parse_epoch(text, 1000, &t, why); break;
	case CURSOR_EPOCH_US: good = parse_epoch(text, 1000000, &t, why); break;
	case CURSOR_INT: return number_key(text, false, k, why);
	case CURSOR_DECIMAL: return number_key(text, true, k, why);
	default: return true;
	}
	if (good)
		put_moment(&t, k);
	return good;
}

bool
cursor_instant(const struct cursor_spec *spec, int64_t ms, struct cursor_key *k)
{
	struct moment t = { ms / 1000, (uint32_t)(ms % 1000) * 1000000 };

	if (is_time(spec) && ms >= 0)
		put_moment(&t, k);
	return is_time(spec) && ms >= 0;
}

bool
cursor_ms(const struct cursor_spec *spec, const struct cursor_key *k, int64_t *ms)
{
	struct moment t;

	if (!is_time(spec) || k->n == 0)
		return false;
	get_moment(k, &t);
	*ms = t.s * 1000 + t.ns / 1000000;
	return true;
}

int
cursor_compare(const struct cursor_key *a, const struct cursor_key *b)
{
	int d = memcmp(a->b, b->b, a->n < b->n ? a->n : b->n);

	return d != 0 ? d : (a->n > b->n) - (a->n < b->n);
}

/* ---- asking ---- */

/* The finest step that a format shows, ms; 0: all of it. */
static int64_t
step(const char *format)
{
	if (format == NULL || strcmp(format, "us") == 0)
		return 0;
	if (strcmp(format, "ms") == 0 || strstr(format, "%L") != NULL)
		return 1;
	if (strcmp(format, "s") == 0 || strstr(format, "%S") != NULL)
		return 1000;
	return strstr(format, "%M") != NULL ? 60000 : strstr(format, "%H") != NULL ? 3600000 : 86400000;
}

/* "s", "ms", "us", or text with %Y %m %d %H %M %S %L and at least a date. */
static bool
good_format(const char *format)
{
	if (strcmp(format, "s") == 0 || strcmp(format, "ms") == 0 || strcmp(format, "us") == 0)
		return true;
	for (const char *p = strchr(format, '%'); p != NULL; p = strchr(p + 2, '%'))
		if (p[1] == '\0' || strchr("YmdHMSL%", p[1]) == NULL)
			return false;
	return strstr(format, "%Y") != NULL && strstr(format, "%m") != NULL && strstr(format, "%d") != NULL && strlen(format) < CURSOR_TEXT / 4;
}

bool
cursor_spec_check(const struct cursor_spec *spec, const char **why)
{
	const char *s = spec->zone;
	int64_t secs;

	*why = "\"zone\" is not UTC or an offset such as +02:00";
	if (s != NULL && (!offset(&s, &secs) || *s != '\0'))
		return false;
	*why = "\"cursor_format\" is not s, ms, us, or a text with %Y %m %d, and %H %M %S %L as needed";
	if (spec->format != NULL && !good_format(spec->format))
		return false;
	*why = "\"cursor_format\", \"granularity\", \"shift\" and \"lookback\" are for times only";
	return is_time(spec) || (spec->format == NULL && spec->granularity_ms <= 0 && spec->shift_ms <= 0 && spec->lookback_ms <= 0);
}

static void
put_format(char *buf, const char *format, const struct tm *tm, uint32_t ns)
{
	for (; *format != '\0'; format++) {
		if (*format != '%') {
			*buf++ = *format;
			continue;
		}
		switch (*++format) {
		case 'Y': buf += sprintf(buf, "%04d", tm->tm_year + 1900); break;
		case 'm': buf += sprintf(buf, "%02d", tm->tm_mon + 1); break;
		case 'd': buf += sprintf(buf, "%02d", tm->tm_mday); break;
		case 'H': buf += sprintf(buf, "%02d", tm->tm_hour); break;
		case 'M': buf += sprintf(buf, "%02d", tm->tm_min); break;
		case 'S': buf += sprintf(buf, "%02d", tm->tm_sec); break;
		case 'L': buf += sprintf(buf, "%03" PRIu32, ns / 1000000); break;
		default: *buf++ = '%';
		}
	}
	*buf = '\0';
}

/* Seconds with as much of a fraction as there is, in groups of three digits. */
static void
with_fraction(char *buf, size_t size, const char *whole, uint32_t ns, const char *tail)
{
	if (ns == 0)
		snprintf(buf, size, "%s%s", whole, tail);
	else if (ns % 1000000 == 0)
		snprintf(buf, size, "%s.%03" PRIu32 "%s", whole, ns / 1000000, tail);
	else if (ns % 1000 == 0)
		snprintf(buf, size, "%s.%06" PRIu32 "%s", whole, ns / 1000, tail);
	else
		snprintf(buf, size, "%s.%09" PRIu32 "%s", whole, ns, tail);
}

static void
render(const struct cursor_spec *spec, const struct moment *t, char *buf)
{
	static const char *const UNITS[] = { [CURSOR_EPOCH_MS] = "ms", [CURSOR_EPOCH_US] = "us" };
	const char *format = spec->format, *z = spec->zone;
	char whole[64];
	int64_t secs = 0;
	struct tm tm;
	time_t when;

	if (format == NULL && spec->type != CURSOR_TIME && spec->type != CURSOR_EPOCH)
		format = UNITS[spec->type];
	if (format == NULL && spec->type == CURSOR_EPOCH) {
		snprintf(whole, sizeof whole, "%" PRId64, t->s);
		with_fraction(buf, CURSOR_TEXT, whole, t->ns, "");
		return;
	}
	if (format != NULL && strcmp(format, "s") == 0)
		snprintf(buf, CURSOR_TEXT, "%" PRId64, t->s);
	else if (format != NULL && strcmp(format, "ms") == 0)
		snprintf(buf, CURSOR_TEXT, "%" PRId64, t->s * 1000 + t->ns / 1000000);
	else if (format != NULL && strcmp(format, "us") == 0)
		snprintf(buf, CURSOR_TEXT, "%" PRId64, t->s * 1000000 + t->ns / 1000);
	else {
		if (format != NULL && z != NULL)
			offset(&z, &secs);
		when = (time_t)(t->s + secs);
		gmtime_r(&when, &tm);
		if (format != NULL)
			put_format(buf, format, &tm, t->ns);
		else {
			put_format(whole, "%Y-%m-%dT%H:%M:%S", &tm, 0);
			with_fraction(buf, CURSOR_TEXT, whole, t->ns, "Z");
		}
	}
}

int64_t
cursor_grain(const struct cursor_spec *spec)
{
	return spec->granularity_ms > 0 ? spec->granularity_ms : step(spec->format);
}

void
cursor_bound(const struct cursor_spec *spec, const char *text, const struct cursor_key *k, bool back, char *query, struct cursor_key *bound)
{
	int64_t grain = cursor_grain(spec);
	int64_t less = (spec->shift_ms > 0 ? spec->shift_ms : 0) + (back && spec->lookback_ms > 0 ? spec->lookback_ms : 0), ms, rest, east = 0;
	const char *zone = spec->zone;
	struct moment t;

	*bound = *k;
	if (!is_time(spec) || k->n == 0 || (less == 0 && grain == 0 && spec->format == NULL)) {
		snprintf(query, CURSOR_TEXT, "%s", text);
		return;
	}
	get_moment(k, &t);
	ms = t.s * 1000 + t.ns / 1000000 - less;
	if (spec->format != NULL && zone != NULL)	/* a day begins there at another time */
		offset(&zone, &east);
	if (grain > 0) {
		rest = (ms + east * 1000) % grain;
		ms -= rest < 0 ? rest + grain : rest;
		t.ns = 0;
	}
	t.s = ms / 1000;
	rest = ms % 1000;
	if (rest < 0) {
		rest += 1000;
		t.s--;
	}
	t.ns = t.ns % 1000000 + (uint32_t)rest * 1000000;
	if (spec->format != NULL && strcmp(spec->format, "us") == 0)
		t.ns -= t.ns % 1000;
	put_moment(&t, bound);
	render(spec, &t, query);
}

void
cursor_render(const struct cursor_spec *spec, const struct cursor_key *k, char *text)
{
	struct moment t;

	get_moment(k, &t);
	render(spec, &t, text);
}

void
cursor_upper(const struct cursor_spec *spec, int64_t ms, char *query)
{
	int64_t steps[2] = { cursor_grain(spec), step(spec->format) }, east = 0, rest;
	const char *zone = spec->zone;
	struct cursor_key key;

	if (spec->format != NULL && zone != NULL)
		offset(&zone, &east);
	for (int i = 0; i < 2; i++)
		if (steps[i] > 0 && (rest = (ms + east * 1000) % steps[i]) != 0)
			ms += rest > 0 ? steps[i] - rest : -rest;
	cursor_instant(spec, ms, &key);
	cursor_render(spec, &key, query);
}
