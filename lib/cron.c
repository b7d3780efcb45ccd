/*
 * cron.c - the table of qcron, and when its entries have slots; qcron(5) says what it means.
 *
 * Clock times are sets of bits.  Most are found on the wall: day by day, minute by minute, each turned into the first instant
 * that shows it.  Those of every hour are found on the axis of UTC, stretch by stretch between two clock changes, so that
 * an hour which comes twice has its slots twice, and one that is skipped has none.
 */
#define _GNU_SOURCE		/* asprintf */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "cron.h"

#define DAY INT64_C(86400)			/* seconds */
#define BIT(n) (UINT64_C(1) << (n))

enum {
	DAYS_AHEAD = 3653,			/* ten years */
	SKIP_LATE_MS = 5 * 60 * 1000,		/* missed=skip: what is later was missed */
	WORD_SHOWN = 40				/* bytes of a word in a message */
};

static const char *const MONTHS[] =
    { "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", NULL };
static const char *const WEEKDAYS[] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL };

enum { MIN, HOUR, DOM, MON, DOW, FIELDS };
static const struct field {
	const char *name;
	int lo, hi, last;			/* last: of *, 7 being Sunday as well */
	const char *const *names;		/* of lo and up */
	const char *named;
} FIELD[FIELDS] = {
	{ "minute", 0, 59, 59, NULL, "" },
	{ "hour", 0, 23, 23, NULL, "" },
	{ "day of the month", 1, 31, 31, NULL, "" },
	{ "month", 1, 12, 12, MONTHS, ", or jan to dec" },
	{ "day of the week", 0, 7, 6, WEEKDAYS, ", or sun to sat" },
};

static const struct { const char *word, *fields; } NICK[] = {
	{ "@hourly", "0 * * * *" }, { "@daily", "0 0 * * *" }, { "@midnight", "0 0 * * *" }, { "@weekly", "0 0 * * 0" },
	{ "@monthly", "0 0 1 * *" }, { "@yearly", "0 0 1 1 *" }, { "@annually", "0 0 1 1 *" },
};
#define NNICK (sizeof NICK / sizeof *NICK)

enum { TZ, MISSED, LATE, OVERLAP, JITTER, OPTIONS };
static const char *const OPTION[] = { "tz", "missed", "late", "overlap", "jitter", NULL };
static const char *const OVERLAPS[] = { "skip", "allow", "replace", NULL };

static const char *why;				/* of the line at hand */

static bool wrong(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static bool
wrong(const char *fmt, ...)
{
	static char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	why = text;
	return false;
}

static bool
blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The next word, cut off in place; "" at the end. */
static char *
word(char **at)
{
	char *p = *at, *start;

	while (blank(*p))
		p++;
	for (start = p; *p != '\0' && !blank(*p); p++)
		continue;
	if (*p != '\0')
		*p++ = '\0';
	*at = p;
	return start;
}

/* ---- the five fields ----------------------------------------------------- */

/* A number or a name, up to one of the bytes that may follow it. */
static bool
value(const struct field *f, const char *s, size_t n, int *v)
{
	char text[8] = "";
	int64_t number;

	if (n < sizeof text)
		memcpy(text, s, n);
	for (int i = 0; f->names != NULL && f->names[i] != NULL; i++)
		if (strcasecmp(f->names[i], text) == 0) {
			*v = f->lo + i;
			return true;
		}
	if (!text_int(text, f->lo, f->hi, &number))
		return wrong("%s: '%.*s' is not a number from %d to %d%s", f->name, n > WORD_SHOWN ? WORD_SHOWN : (int)n, s, f->lo, f->hi, f->named);
	*v = (int)number;
	return true;
}

/* One element of a list: N, N-M, N-M/S or, in front of /S, *. */
static bool
element(const struct field *f, char *s, uint64_t *set)
{
	char *slash = strchr(s, '/'), *dash;
	int lo = f->lo, hi = f->last;
	int64_t step = 1;

	if (slash != NULL)
		*slash++ = '\0';
	dash = strchr(s, '-');
	if (strchr(s, '~') != NULL)
		return wrong("%s: no '~' here; write a time, and jitter=DUR after the fields", f->name);
	if (*s == '\0')
		return wrong("%s: an empty place in the list", f->name);
	if (strcmp(s, "*") == 0 && slash == NULL)
		return wrong("%s: '*' stands alone, not in a list", f->name);
	if (strcmp(s, "*") != 0) {
		if (!value(f, s, dash != NULL ? (size_t)(dash - s) : strlen(s), &lo))
			return false;
		hi = lo;
		if (dash != NULL && !value(f, dash + 1, strlen(dash + 1), &hi))
			return false;
		if (f->names == WEEKDAYS && dash != NULL && hi < lo && strcasecmp(dash + 1, "sun") == 0)
			hi = 7;
		if (dash == NULL && slash != NULL)
			return wrong("%s: a step needs a range; write %d-%d/%s", f->name, lo, f->last, slash);
		if (hi < lo)
			return wrong("%s: '%s' runs backwards; write %d-%d,%d-%d", f->name, s, lo, f->last, f->lo, hi);
	}
	if (slash != NULL && (!text_int(slash, 1, 1000, &step) || step > hi - lo))
		return wrong("%s: step '%.*s' is not a number from 1 to %d, the length of its range", f->name, WORD_SHOWN, slash, hi - lo);
	for (int i = lo; i <= hi; i += (int)step)
		*set |= BIT(f->names == WEEKDAYS && i == 7 ? 0 : i);
	return true;
}

static bool
field(const struct field *f, const char *text, uint64_t *set, bool *all, bool *stepped)
{
	char buf[256], *s = buf, *comma;

	*set = 0;
	*all = strcmp(text, "*") == 0;
	*stepped = strstr(text, "*/") != NULL;
	if (*all) {
		for (int i = f->lo; i <= f->last; i++)
			*set |= BIT(i);
		return true;
	}
	if (snprintf(buf, sizeof buf, "%s", text) >= (int)sizeof buf)
		return wrong("%s: longer than %zu bytes; write ranges", f->name, sizeof buf - 1);
	do {
		if ((comma = strchr(s, ',')) != NULL)
			*comma++ = '\0';
		if (!element(f, s, set))
			return false;
		s = comma;
	} while (s != NULL);
	return true;
}

/* With 29 for February: is there such a date in any year? */
static bool
possible(const struct cron *c)
{
	static const int LENGTH[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	for (int m = 1; m <= 12; m++)
		if ((c->months & BIT(m)) && (c->days & (BIT(LENGTH[m - 1] + 1) - 1)) != 0)
			return true;
	return false;
}

static bool
clock_times(struct cron *c, char *const text[FIELDS])
{
	uint64_t set[FIELDS];
	bool all[FIELDS], stepped[FIELDS];

	for (int i = 0; i < FIELDS; i++) {
		if (*text[i] == '\0')
			return wrong("the schedule ends early; five fields come first, then the queue");
		if (*text[i] == '@')
			return wrong("'%.*s' stands alone, with no field before it", WORD_SHOWN, text[i]);
		if (!field(&FIELD[i], text[i], &set[i], &all[i], &stepped[i]))
			return false;
	}
	c->minutes = set[MIN];
	c->hours = (uint32_t)set[HOUR];
	c->days = (uint32_t)set[DOM];
	c->months = (uint32_t)set[MON];
	c->weekdays = (uint32_t)set[DOW];
	c->each_hour = all[HOUR];
	c->by_day = !all[DOM];
	c->by_weekday = !all[DOW];
	if (c->by_day && c->by_weekday && (stepped[DOM] || stepped[DOW]))
		return wrong("'*/' in one day field and days in the other: crons differ on what that means; list the days");
	if (c->by_day && !c->by_weekday && !possible(c))
		return wrong("no month of these has such a day: it would never fire");
	return true;
}

/* ---- the line ------------------------------------------------------------ */

static bool
span(const char *name, const char *text, int64_t *ms)
{
	const char *fault;

	if (*text == '\0')
		return wrong("%s: a duration follows, such as 5m", name);
	return when_duration(text, ms, &fault) || wrong("%s: '%.*s': %s", name, WORD_SHOWN, text, fault);
}

/* "@every 5m", "@daily": *at stands behind the word. */
static bool
nick(struct cron *c, const char *at_word, char **at, char fields[16])
{
	const char *names[NNICK + 3], *near;
	size_t i;

	c->kind = strcmp(at_word, "@after") == 0 ? CRON_AFTER : strcmp(at_word, "@every") == 0 ? CRON_EVERY : CRON_CLOCK;
	if (c->kind != CRON_CLOCK) {
		if (!span(at_word, word(at), &c->step_ms))
			return false;
		return (c->step_ms > 0 && c->step_ms % 1000 == 0) || wrong("%s: whole seconds, and at least one", at_word);
	}
	for (i = 0; i < NNICK; i++) {
		names[i] = NICK[i].word;
		if (strcmp(at_word, NICK[i].word) == 0) {
			strcpy(fields, NICK[i].fields);
			return true;
		}
	}
	if (strcmp(at_word, "@reboot") == 0)
		return wrong("no @reboot here: a start of the machine has no time; let its start run qadd");
	names[i++] = "@every";
	names[i++] = "@after";
	names[i] = NULL;
	if ((near = text_nearest(at_word, names)) != NULL)
		return wrong("no schedule '%.*s'; did you mean '%s'?", WORD_SHOWN, at_word, near);
	return wrong("no schedule '%.*s'; there are @every, @after, @hourly, @daily, @weekly, @monthly and @yearly", WORD_SHOWN, at_word);
}

static int
listed(const char *const *names, const char *name)
{
	for (int i = 0; names[i] != NULL; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

static bool
missed(struct cron *c, const char *v)
{
	int64_t n;

	if (strcmp(v, "skip") == 0) {
		if (c->late_ms == -1)
			c->late_ms = SKIP_LATE_MS;
	} else if (strncmp(v, "all:", 4) == 0 && text_int(v + 4, 1, CRON_KEEP_MAX, &n)) {
		c->keep = (int)n;
	} else if (strcmp(v, "last") != 0) {
		return wrong("missed: '%.*s' is not last, skip or all:N, N from 1 to %d", WORD_SHOWN, v, CRON_KEEP_MAX);
	}
	return true;
}

/* The options, up to the queue, which *at is set to. */
static bool
options(struct cron *c, char **at)
{
	const char *set[OPTIONS] = { NULL }, *near, *fault;
	char *name, *v;
	int i, overlap;

	while (strchr(name = word(at), '=') != NULL) {
		v = strchr(name, '=');
		*v++ = '\0';
		if ((i = listed(OPTION, name)) == -1) {
			near = text_nearest(name, OPTION);
			return near != NULL ? wrong("unknown option '%.*s='; did you mean '%s='?", WORD_SHOWN, name, near)
			    : wrong("unknown option '%.*s='; there are tz= missed= late= overlap= jitter=", WORD_SHOWN, name);
		}
		if (set[i] != NULL)
			return wrong("%s= comes twice", name);
		if (*v == '\0')
			return wrong("%s= has no value", name);
		set[i] = v;
	}
	c->queue = name;
	for (i = TZ; i < JITTER; i++)
		if (set[i] != NULL && (c->kind == CRON_AFTER || (c->kind == CRON_EVERY && i == TZ)))
			return wrong("%s= does not go with %s", OPTION[i], c->kind == CRON_AFTER ? "@after" : "@every, which counts in UTC");
	if (set[TZ] != NULL)
		c->zone = set[TZ];
	if (!when_enter(c->zone, &fault))
		return wrong("tz: '%.*s': %s", 64, c->zone, fault);
	if ((set[LATE] != NULL && !span("late", set[LATE], &c->late_ms)) || (set[JITTER] != NULL && !span("jitter", set[JITTER], &c->jitter_ms)))
		return false;
	if (set[LATE] != NULL && c->late_ms < 1000)
		return wrong("late: at least 1s; missed=skip drops what comes 5 minutes late");
	if (set[MISSED] != NULL && !missed(c, set[MISSED]))
		return false;
	if (set[OVERLAP] != NULL) {
		if ((overlap = listed(OVERLAPS, set[OVERLAP])) == -1)
			return wrong("overlap: '%.*s' is not skip, allow or replace", WORD_SHOWN, set[OVERLAP]);
		c->overlap = (enum cron_overlap)overlap;
	}
	if (c->keep > 1 && c->overlap != OVERLAP_ALLOW)
		return wrong("missed=all:%d needs overlap=allow: its jobs come at one time", c->keep);
	return true;
}

static bool
identity(struct cron *c, const char *id)
{
	if (strchr("0123456789*@", *id) != NULL && !text_queue(id))
		return wrong("the line does not begin with a name for the entry; write ID, then the schedule, then the queue");
	if (!text_queue(id))
		return wrong("bad ID '%.*s'; an ID is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number", WORD_SHOWN, id);
	c->id = id;
	return true;
}

static bool
entry(struct cron *c, char *line)
{
	char *at = line, *text[FIELDS], fields[16] = "", *p = fields, *first, step[WHEN_TEXT];
	size_t n;

	if (!identity(c, word(&at)))
		return false;
	first = word(&at);
	if (*first == '@' && !nick(c, first, &at, fields))
		return false;
	if (c->kind == CRON_CLOCK) {
		for (int i = 0; i < FIELDS; i++)
			text[i] = *fields != '\0' ? word(&p) : i == 0 ? first : word(&at);
		if (!clock_times(c, text))
			return false;
	}
	if (!options(c, &at))
		return false;
	if (*c->queue == '\0')
		return wrong("no queue after the schedule");
	if (c->queue[strspn(c->queue, "0123456789*/,-")] == '\0')
		return wrong("'%.*s' is no queue; there are five fields and no seconds, then the queue", WORD_SHOWN, c->queue);
	if (!text_queue(c->queue))
		return wrong("bad queue name '%.*s'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number",
		    WORD_SHOWN, c->queue);
	while (blank(*at))
		at++;
	for (n = strlen(at); n > 0 && blank(at[n - 1]); n--)
		at[n - 1] = '\0';
	if (n > JOB_PAYLOAD_MAX)
		return wrong("the payload has %zu bytes, the limit is %d", n, JOB_PAYLOAD_MAX);
	c->payload = at;
	if (c->kind == CRON_CLOCK)
		n = (size_t)asprintf(&c->spec, "%s %s %s %s %s %s", text[MIN], text[HOUR], text[DOM], text[MON], text[DOW], c->zone);
	else
		n = (size_t)asprintf(&c->spec, "%s %s", first, when_span(step, c->step_ms));
	if (n == (size_t)-1)
		c->spec = NULL;
	return true;
}

int
cron_parse(char *line, struct cron *c, const char **fault)
{
	char *p = line;

	*c = (struct cron){ .zone = "UTC", .keep = 1, .late_ms = -1 };
	while (blank(*p))
		p++;
	if (*p == '\0' || *p == '#')
		return Q_NO;
	*fault = "a carriage return; write the table with Unix line ends (tr -d '\\r')";
	if (strchr(p, '\r') != NULL)
		return Q_CONFIG;
	if (!entry(c, p)) {
		*fault = why;
		return Q_CONFIG;
	}
	return c->spec != NULL ? Q_OK : Q_TEMP;
}

/* ---- the table ----------------------------------------------------------- */

static int
by_id(const void *a, const void *b)
{
	const struct cron *const *x = a, *const *y = b;
	int order = strcmp((*x)->id, (*y)->id);

	return order != 0 ? order : (*x)->line - (*y)->line;
}

/* How many entries have the ID of an earlier one; -1: no memory. */
static int
repeated(const struct cron_table *t, void (*bad)(int, const char *, void *), void *arg)
{
	const struct cron **sorted = malloc((t->n + 1) * sizeof *sorted), *first;
	int found = 0;

	if (sorted == NULL)
		return -1;
	for (size_t i = 0; i < t->n; i++)
		sorted[i] = &t->list[i];
	qsort(sorted, t->n, sizeof *sorted, by_id);
	for (size_t i = 1; i < t->n; i++) {
		first = sorted[i - 1];
		if (strcmp(first->id, sorted[i]->id) != 0)
			continue;
		wrong("ID '%s' is that of line %d; each entry has its own", first->id, first->line);
		bad(sorted[i]->line, why, arg);
		found++;
	}
	free(sorted);
	return found;
}

int
cron_read(char *text, size_t n, struct cron_table *t, void (*bad)(int, const char *, void *), void *arg)
{
	char *end = text + n, *next;
	const char *fault = NULL;
	int rc, worst = Q_OK, line = 0;
	size_t cap = 0;

	t->list = NULL;
	t->n = 0;
	*end = '\n';
	for (char *p = text; p < end; p = next) {
		next = (char *)memchr(p, '\n', (size_t)(end - p) + 1) + 1;
		next[-1] = '\0';
		line++;
		if (t->n == cap) {
			struct cron *list = realloc(t->list, (cap = cap == 0 ? 16 : 2 * cap) * sizeof *list);

			if (list == NULL)
				return Q_TEMP;
			t->list = list;
		}
		if (strlen(p) != (size_t)(next - 1 - p)) {
			rc = Q_CONFIG;
			fault = "a NUL byte; the table is text";
		} else {
			rc = cron_parse(p, &t->list[t->n], &fault);
		}
		t->list[t->n].line = line;
		if (rc == Q_TEMP)
			return rc;
		if (rc == Q_CONFIG)
			bad(line, fault, arg);
		worst = rc == Q_CONFIG ? rc : worst;
		t->n += rc == Q_OK;
	}
	when_leave();
	rc = repeated(t, bad, arg);
	return rc == -1 ? Q_TEMP : rc > 0 ? Q_CONFIG : worst;
}

/* ---- slots --------------------------------------------------------------- */

static int64_t
day_of(int64_t sec)
{
	return sec / DAY - (sec % DAY < 0);
}

static bool
on_day(const struct cron *c, int64_t day)
{
	time_t t = (time_t)(day * DAY);
	struct tm tm;
	bool dom, dow;

	if (gmtime_r(&t, &tm) == NULL || !(c->months & BIT(tm.tm_mon + 1)))
		return false;
	dom = c->days & BIT(tm.tm_mday);
	dow = c->weekdays & BIT(tm.tm_wday);
	return c->by_day && c->by_weekday ? dom || dow : dom && dow;
}

/* The first minute of a day, from `from` on, that is in it; a day's minutes if there is none. */
static int
minute(const struct cron *c, int from)
{
	for (int hour = from / 60; hour < 24; hour++, from = 0)
		if (c->hours & BIT(hour))
			for (int min = from % 60; min < 60; min++)
				if (c->minutes & BIT(min))
					return hour * 60 + min;
	return DAY / 60;
}

static int64_t
on_the_wall(const struct cron *c, int64_t after)
{
	int64_t wall = when_wall(after), first = day_of(wall), sec;
	int m = (int)((wall - first * DAY) / 60) + 1;

	for (int64_t day = first; day <= first + DAYS_AHEAD; day++, m = 0)
		if (on_day(c, day))
			for (m = minute(c, m); m < DAY / 60; m = minute(c, m + 1))
				if ((sec = when_shown(day * DAY + m * 60)) > after)
					return sec;
	return CRON_NEVER;
}

/* The clock change between two instants with different offsets: the first instant after it. */
static int64_t
change(int64_t lo, int64_t hi)
{
	int64_t offset = when_wall(lo) - lo, mid;

	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (when_wall(mid) - mid == offset)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

static int64_t
on_the_axis(const struct cron *c, int64_t after)
{
	int64_t sec = after + 1, end = sec + DAYS_AHEAD * DAY, wall, day, shown, at;
	int m;

	while (sec < end) {
		wall = when_wall(sec);
		day = day_of(wall);
		m = (int)((wall - day * DAY + 59) / 60);	/* on or after it */
		m = on_day(c, day) ? minute(c, m) : DAY / 60;
		shown = day * DAY + m * 60;			/* a slot, or midnight */
		at = sec + (shown - wall);
		if (when_wall(at) != shown)
			sec = change(sec, at);
		else if (m < DAY / 60)
			return at;
		else
			sec = at;
	}
	return CRON_NEVER;
}

bool
cron_next(const struct cron *c, int64_t after_ms, int64_t *slot_ms, const char **fault)
{
	int64_t after = after_ms / 1000 - (after_ms % 1000 < 0), sec;

	if (c->kind == CRON_EVERY) {
		*slot_ms = after_ms < 0 ? 0 : (after_ms / c->step_ms + 1) * c->step_ms;
	} else {
		if (!when_enter(c->zone, fault))
			return false;
		sec = c->each_hour ? on_the_axis(c, after) : on_the_wall(c, after);
		*slot_ms = sec == CRON_NEVER ? CRON_NEVER : sec * 1000;
	}
	if (*slot_ms > WHEN_MAX)
		*slot_ms = CRON_NEVER;
	return true;
}

bool
cron_due(const struct cron *c, int64_t mark_ms, int64_t now_ms, int64_t at[CRON_KEEP_MAX], int *n, int64_t *nmissed, int64_t *first,
    const char **fault)
{
	int64_t slot = mark_ms, total = 0, ring[CRON_KEEP_MAX];

	*n = 0;
	for (;;) {
		if (!cron_next(c, slot, &slot, fault))
			return false;
		if (slot > now_ms)
			break;
		if (total == 0)
			*first = slot;
		ring[total++ % c->keep] = slot;
	}
	for (int64_t i = total < c->keep ? 0 : total - c->keep; i < total; i++)
		if (c->late_ms == -1 || now_ms - ring[i % c->keep] <= c->late_ms)
			at[(*n)++] = ring[i % c->keep];
	*nmissed = total - *n;
	return true;
}

int64_t
cron_job(const struct cron *c, int64_t slot_ms, char key[CRON_KEY])
{
	char text[WHEN_TEXT];
	int64_t due;

	snprintf(key, CRON_KEY, "%s/%s", c->id, when_text(text, slot_ms, false));
	due = slot_ms + (int64_t)(job_share(c->queue, key) * (double)c->jitter_ms);
	return due > WHEN_MAX ? WHEN_MAX : due;
}
