/* setting.c - what people set: names, values, and the rows that hold them */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "q.h"

enum type { RATE, BUCKET, COUNT, SLO, DURATION, KEEP, SKIP, QUEUE, KEYS, RANGE, EXPECT, DATE, TEXT };

static const struct field {
	const char *kind, *field;
	enum type type;
} FIELDS[] = {
	{ "queue", "rate", RATE }, { "queue", "limit", BUCKET }, { "queue", "concurrency", COUNT }, { "queue", "slo", SLO },
	{ "queue", "keep", KEEP }, { "queue", "age", DURATION }, { "queue", "stale", SKIP }, { "queue", "dead_to", QUEUE },
	{ "queue", "keys", KEYS }, { "queue", "attempts", COUNT }, { "queue", "backoff", RANGE }, { "queue", "window", DURATION },
	{ "rate", "", RATE }, { "rate", "concurrency", COUNT }, { "expect", "", EXPECT },
	{ "credential", "expires", DATE }, { "credential", "owner", TEXT }, { "credential", "for", TEXT }
};
#define NFIELDS (sizeof FIELDS / sizeof *FIELDS)

static const char GET[] = "SELECT value, set_ms FROM q_setting WHERE kind = :kind AND name = :name AND field = :field";
static const char ALL[] = "SELECT kind, name, field, value, set_ms FROM q_setting ORDER BY kind, name, field";
static const char LINKS[] = "SELECT name, value FROM q_setting WHERE kind = 'queue' AND field = :field";
static const char PUT[] =
	"INSERT INTO q_setting VALUES(:kind, :name, :field, :value, :number, :now)\n"
	"    ON CONFLICT(kind, name, field) DO UPDATE SET value = excluded.value, number = excluded.number, set_ms = excluded.set_ms";
static const char UNSET[] = "DELETE FROM q_setting WHERE kind = :kind AND name = :name AND field = :field";
static const char OF_QUEUE[] =
	"SELECT name, field, value, number FROM q_setting WHERE kind = 'queue' AND name IN ('', :queue)";

static struct {			/* what setting_queue() read last, in which transaction */
	const struct db *db;
	int64_t turn;
	char queue[65];
	struct queue_set set;
} last;

/* ---- names ---- */

static const struct field *
field_of(const char *kind, const char *field)
{
	for (size_t i = 0; i < NFIELDS; i++)
		if (strcmp(FIELDS[i].kind, kind) == 0 && strcmp(FIELDS[i].field, field) == 0)
			return &FIELDS[i];
	return NULL;
}

/* The nearest field of a kind; NULL as kind: the nearest kind. */
static const char *
nearest(const char *kind, const char *word)
{
	const char *names[NFIELDS + 1];
	size_t n = 0;

	for (size_t i = 0; i < NFIELDS; i++)
		if (kind == NULL || (strcmp(FIELDS[i].kind, kind) == 0 && FIELDS[i].field[0] != '\0'))
			names[n++] = kind == NULL ? FIELDS[i].kind : FIELDS[i].field;
	names[n] = NULL;
	return text_nearest(word, names);
}

static int
unknown(struct db *db, const char *text, const char *before, const char *near, const char *usual)
{
	if (near != NULL)
		return db_fail(db, Q_DATA, "no setting '%s'; did you mean '%s%s'?", text, before, near);
	return db_fail(db, Q_DATA, "no setting '%s'; %s", text, usual);
}

/* QUEUE, or with typed QUEUE/TYPE. */
static bool
good_name(const char *name, bool typed)
{
	char queue[SETTING_NAME];
	const char *slash = strchr(name, '/');

	if (slash == NULL || !typed)
		return text_queue(name);
	memcpy(queue, name, (size_t)(slash - name));
	queue[slash - name] = '\0';
	return text_queue(queue) && text_name_fault(slash + 1) == NULL;
}

int
setting_parse(struct db *db, const char *text, struct setting *s)
{
	static const char USUAL[] = "settings are queue.NAME.rate and so on, rate.NAME, expect.NAME, credential.NAME.expires; see man qset";
	const char *dot = strchr(text, '.'), *end = strrchr(text, '.'), *near;
	size_t kind = dot != NULL ? (size_t)(dot - text) : strlen(text), n;
	char head[SETTING_TEXT];

	memset(s, 0, sizeof *s);
	snprintf(s->kind, sizeof s->kind, "%.*s", kind < sizeof s->kind ? (int)kind : 0, text);
	near = nearest(NULL, s->kind);
	if (near == NULL || strcmp(near, s->kind) != 0)
		return unknown(db, text, "", near, USUAL);
	if (dot == NULL || dot[1] == '\0')
		return unknown(db, text, "", NULL, USUAL);
	if (strcmp(s->kind, "expect") != 0 && (end != dot || strcmp(s->kind, "rate") != 0)) {
		near = nearest(s->kind, end + 1);
		if (near != NULL && strcmp(near, end + 1) == 0)
			snprintf(s->field, sizeof s->field, "%s", near);
		else if (strcmp(s->kind, "rate") != 0 || near != NULL) {
			snprintf(head, sizeof head, "%.*s", (int)(end + 1 - text), text);
			return unknown(db, text, head, near, USUAL);
		}
	}
	if (s->field[0] == '\0')
		end = text + strlen(text);
	n = end > dot ? (size_t)(end - dot - 1) : 0;
	if (n == 0)
		return unknown(db, text, "", NULL, "the name is missing, as in queue.mail.rate");
	if (n < sizeof s->name) {
		memcpy(s->name, dot + 1, n);
		s->name[n] = '\0';
	}
	if (n >= sizeof s->name || !good_name(s->name, strcmp(s->kind, "expect") == 0 || strcmp(s->field, "slo") == 0))
		return db_fail(db, Q_DATA, "'%s': '%.*s' is not a name of 1 to 64 of A-Z a-z 0-9 . _ -", text, (int)n, dot + 1);
	return Q_OK;
}

char *
setting_text(char buf[SETTING_TEXT], const struct setting *s)
{
	snprintf(buf, SETTING_TEXT, "%s.%s%s%s", s->kind, s->name, s->field[0] != '\0' ? "." : "", s->field);
	return buf;
}

/* ---- values ---- */

static bool
is_slo(const char *s)
{
	const char *slash = strchr(s, '/'), *why;
	char limit[32], *end;
	int64_t ms;
	double p;

	if (slash == NULL || slash - s >= (int)sizeof limit || strspn(slash + 1, "0123456789.") + 1 != strlen(slash + 1))
		return false;
	snprintf(limit, sizeof limit, "%.*s", (int)(slash - s), s);
	p = strtod(slash + 1, &end);
	return when_duration(limit, &ms, &why) && ms > 0 && strcmp(end, "%") == 0 && p > 0 && p < 100;
}

/* "26h", or "by 06:00 Europe/Berlin" */
static bool
is_expectation(const char *s, int64_t *ms)
{
	struct when_due due = { .base = 0 };
	const char *why;
	char at[6];
	int64_t unused;

	if (strncmp(s, "by ", 3) != 0)
		return when_duration(s, ms, &why) && *ms > 0;
	if (strlen(s) < 10 || s[8] != ' ')
		return false;
	memcpy(at, s + 3, 5);
	at[5] = '\0';
	due.at = at;
	due.zone = s + 9;
	return at[2] == ':' && when_zone(due.zone, &why) && when_due(&due, &unused, &why);
}

/* Is it a value of the type?  *number: the same as a number, if it has one.  False: *why says what would be one. */
static bool
good_value(enum type type, const char *v, int64_t *number, const char **why)
{
	struct rate rate;
	int64_t to;
	const char *w;

	*number = -1;
	switch (type) {
	case RATE:
		return rate_parse(v, &rate, why);
	case BUCKET:
		*why = "is not the name of a rate, such as partner";
		return text_queue(v);
	case QUEUE:
		*why = "is not the name of a queue";
		return text_queue(v);
	case COUNT:
		*why = "is not a whole number from 1 to 1000000";
		return text_int(v, 1, 1000000, number);
	case SLO:
		*why = "is not a target such as 30s/99%";
		return is_slo(v);
	case DURATION:
		if (!when_duration(v, number, why))
			return false;
		*why = "must be more than 0";
		return *number > 0;
	case KEEP:
		return strcmp(v, "forever") == 0 || when_duration(v, number, why);
	case SKIP:
		*why = "is not 'skip', the only word here";
		return strcmp(v, "skip") == 0;
	case KEYS:
		*number = strcmp(v, "settled") == 0 ? 0 : INT64_MAX;
		if (*number == 0 || strcmp(v, "forever") == 0)
			return true;
		*why = "is not 'settled', 'forever' or a duration such as 7d";
		return when_duration(v, number, &w);
	case RANGE:
		return when_range(v, &to, number, why);
	case EXPECT:
		*why = "is not a duration such as 26h, nor 'by 06:00 Europe/Berlin'";
		return is_expectation(v, number);
	case DATE:
		*why = "is not a day such as 2027-01-31, nor an instant";
		return when_instant(v, NULL, 0, number, &w) || (strlen(v) == 10 && when_instant(v, "UTC", 0, number, &w));
	case TEXT:
		*why = text_name_fault(v);
		return *why == NULL;
	}
	return false;
}

static void
bind_setting(struct stmt *s, const struct setting *set)
{
	db_text(s, ":kind", set->kind);
	db_text(s, ":name", set->name);
	db_text(s, ":field", set->field);
}

static int
put(struct db *db, const struct setting *set, const char *value, int64_t number, int64_t now)
{
	struct stmt *s = db_prepare(db, value != NULL ? PUT : UNSET);

	bind_setting(s, set);
	if (value != NULL) {
		db_text(s, ":value", value);
		db_opt(s, ":number", number);
		db_int(s, ":now", now);
	}
	db_run(s);
	last.turn = 0;
	return db_status(db);
}

int
setting_put(struct db *db, const struct setting *set, const char *value, int64_t now)
{
	const struct field *f = field_of(set->kind, set->field);
	char name[SETTING_TEXT];
	const char *why = NULL;
	int64_t number = -1;

	if (*value == '\0')
		return put(db, set, NULL, -1, now);
	if (!good_value(f->type, value, &number, &why))
		return db_fail(db, Q_DATA, "%s: '%s' %s", setting_text(name, set), value, why);
	return put(db, set, value, number, now);
}

int
setting_pause(struct db *db, const char *queue, const char *reason, int64_t now)
{
	struct setting s = { .kind = "queue", .field = "paused" };

	snprintf(s.name, sizeof s.name, "%s", queue);
	return put(db, &s, reason, -1, now);
}

int
setting_get(struct db *db, const struct setting *set, const char **value, int64_t *set_ms)
{
	static char text[1024];
	struct stmt *s = db_prepare(db, GET);
	int rc = Q_NO;

	bind_setting(s, set);
	if (db_step(s) == 1) {
		snprintf(text, sizeof text, "%s", db_col_text(s, 0));
		*set_ms = db_col_int(s, 1);
		*value = text;
		rc = Q_OK;
	}
	db_reset(s);
	return db_status(db) != Q_OK ? db_status(db) : rc;
}

int
setting_each(struct db *db, int (*each)(const struct setting *, const char *, int64_t, void *), void *arg)
{
	struct stmt *s = db_prepare(db, ALL);
	struct setting set;
	int rc = Q_OK;

	while (rc == Q_OK && db_step(s) == 1) {
		snprintf(set.kind, sizeof set.kind, "%s", db_col_text(s, 0));
		snprintf(set.name, sizeof set.name, "%s", db_col_text(s, 1));
		snprintf(set.field, sizeof set.field, "%s", db_col_text(s, 2));
		rc = each(&set, db_col_text(s, 3), db_col_int(s, 4), arg);
	}
	db_reset(s);
	return db_status(db) != Q_OK ? db_status(db) : rc;
}

/* Does following dead_to from this queue come back to it, or to no end? */
static bool
in_circle(struct db *db, const char *queue)
{
	struct setting s = { .kind = "queue", .field = "dead_to" };
	const char *to;
	int64_t when;

	snprintf(s.name, sizeof s.name, "%s", queue);
	for (int i = 0; i < 100; i++) {
		if (setting_get(db, &s, &to, &when) != Q_OK)
			return false;
		if (strcmp(to, queue) == 0)
			return true;
		snprintf(s.name, sizeof s.name, "%s", to);
	}
	return true;
}

int
setting_check(struct db *db)
{
	struct setting bucket = { .kind = "rate" };
	struct stmt *s = db_prepare(db, LINKS);
	const char *value;
	int64_t when;

	db_text(s, ":field", "dead_to");
	while (db_step(s) == 1)
		if (in_circle(db, db_col_text(s, 0)))
			db_fail(db, Q_DATA, "queue.%s.dead_to: '%s' leads back to it, so dead jobs would go round for ever",
			    db_col_text(s, 0), db_col_text(s, 1));
	s = db_prepare(db, LINKS);
	db_text(s, ":field", "limit");
	while (db_step(s) == 1) {
		snprintf(bucket.name, sizeof bucket.name, "%s", db_col_text(s, 1));
		if (setting_get(db, &bucket, &value, &when) == Q_NO)
			db_fail(db, Q_DATA, "queue.%s.limit: there is no rate.%s; set that too, or unset this first",
			    db_col_text(s, 0), bucket.name);
	}
	db_reset(s);
	return db_status(db);
}

/* ---- for claims and settlements ---- */

static void
take_field(struct queue_set *q, const char *field, const char *value, int64_t number)
{
	const char *why;

	if (strcmp(field, "rate") == 0 && !rate_parse(value, &q->rate, &why))
		q->rate.period_us = 0;
	else if (strcmp(field, "limit") == 0)
		snprintf(q->limit, sizeof q->limit, "%s", value);
	else if (strcmp(field, "dead_to") == 0)
		snprintf(q->dead_to, sizeof q->dead_to, "%s", value);
	else if (strcmp(field, "concurrency") == 0)
		q->concurrency = number;
	else if (strcmp(field, "age") == 0)
		q->age_ms = number;
	else if (strcmp(field, "stale") == 0)
		q->skip_stale = true;
	else if (strcmp(field, "keys") == 0)
		q->keys_ms = number;
	else if (strcmp(field, "attempts") == 0)
		q->attempts = number;
	else if (strcmp(field, "window") == 0)
		q->window_ms = number;
	else if (strcmp(field, "backoff") == 0 && !when_range(value, &q->base_ms, &q->cap_ms, &why))
		q->base_ms = q->cap_ms = -1;
}

const struct queue_set *
setting_queue(struct db *db, const char *queue)
{
	struct queue_set *q = &last.set;
	int64_t turn = db_turn(db);
	struct stmt *s;

	if (turn != 0 && last.db == db && last.turn == turn && strcmp(last.queue, queue) == 0)
		return q;
	*q = (struct queue_set){ .concurrency = -1, .age_ms = -1, .attempts = -1, .base_ms = -1, .cap_ms = -1,
	    .window_ms = -1, .keys_ms = INT64_MAX };
	s = db_prepare(db, OF_QUEUE);
	db_text(s, ":queue", queue);
	while (db_step(s) == 1)
		if (strcmp(db_col_text(s, 1), "paused") == 0)
			q->paused = true;
		else if (*db_col_text(s, 0) != '\0')
			take_field(q, db_col_text(s, 1), db_col_text(s, 2), db_col_int(s, 3));
	last.db = db;
	last.turn = turn;
	snprintf(last.queue, sizeof last.queue, "%s", queue);
	return q;
}
