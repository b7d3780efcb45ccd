/* setting.c - what people set: names, values, and the rows that hold them */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "late.h"

enum { DEAD_TO_MAX = 10 };	/* queues that a dead job passes on its way */

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
static const char LIMITED[] = "SELECT name FROM q_setting WHERE kind = 'queue' AND field = 'limit' AND value = :name";
/* What is set already is left alone, and a pause with a new reason began when it began. */
static const char PUT[] =
	"INSERT INTO q_setting VALUES(:kind, :name, :field, :value, :number, :now)\n"
	"    ON CONFLICT(kind, name, field) DO UPDATE SET value = excluded.value, number = excluded.number,\n"
	"        set_ms = CASE field WHEN 'paused' THEN set_ms ELSE excluded.set_ms END\n"
	" WHERE value <> excluded.value OR number IS NOT excluded.number";
static const char UNSET[] = "DELETE FROM q_setting WHERE kind = :kind AND name = :name AND field = :field";
static const char OF_QUEUE[] = "SELECT field, value FROM q_setting WHERE kind = 'queue' AND name = :name";

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
unknown(struct db *db, const char *text, const char *near)
{
	if (near != NULL)
		return db_fail(db, Q_DATA, "no setting '%s'; did you mean '%s'?", text, near);
	return db_fail(db, Q_DATA, "no setting '%s'; there are queue.NAME.rate and others, rate.NAME, expect.NAME, "
	    "credential.NAME.expires; see man qset", text);
}

/* QUEUE, or with typed QUEUE/TYPE. */
static int
check_name(struct db *db, const char *text, const char *name, bool typed)
{
	const char *slash = strchr(name, '/'), *fault;
	char queue[SETTING_NAME];

	snprintf(queue, sizeof queue, "%.*s", slash != NULL ? (int)(slash - name) : SETTING_NAME, name);
	if (!text_queue(queue))
		return db_fail(db, Q_DATA, "no setting '%s': '%s' is not a name; a name is 1 to 64 of A-Z a-z 0-9 . _ -, "
		    "does not begin with . or -, and is not a number", text, queue);
	if (slash != NULL && !typed)
		return db_fail(db, Q_DATA, "no setting '%s'; for a type of a queue there are only slo and expect", text);
	if (slash != NULL && (fault = text_name_fault(slash + 1)) != NULL)
		return db_fail(db, Q_DATA, "no setting '%s': the type %s", text, fault);
	return Q_OK;
}

/* text: as it is read; typed: as it was written, for messages. */
static int
parse(struct db *db, const char *typed, const char *text, struct setting *s)
{
	const char *dot = strchr(text, '.'), *end = strrchr(text, '.'), *near;
	size_t kind = dot != NULL ? (size_t)(dot - text) : strlen(text), n;
	char mended[SETTING_TEXT];

	memset(s, 0, sizeof *s);
	snprintf(s->kind, sizeof s->kind, "%.*s", kind < sizeof s->kind ? (int)kind : 0, text);
	near = nearest(NULL, s->kind);
	if (near != NULL && strcmp(near, s->kind) != 0) {
		snprintf(mended, sizeof mended, "%s%s", near, dot != NULL ? dot : ".");
		return parse(db, typed, mended, s) == Q_OK ? unknown(db, typed, mended) : db_status(db);
	}
	if (near == NULL || dot == NULL || dot[1] == '\0')
		return unknown(db, typed, NULL);
	if (strcmp(s->kind, "expect") != 0 && (end != dot || strcmp(s->kind, "rate") != 0)) {
		near = nearest(s->kind, end + 1);
		if (near != NULL && strcmp(near, end + 1) == 0)
			snprintf(s->field, sizeof s->field, "%s", near);
		else if (near != NULL) {
			snprintf(mended, sizeof mended, "%.*s%s", (int)(end + 1 - text), text, near);
			return unknown(db, typed, mended);
		} else if (strcmp(end, ".paused") == 0)
			return db_fail(db, Q_DATA, "no setting '%s'; pauses are set by qpause", typed);
		else if (strcmp(s->kind, "rate") != 0)
			return unknown(db, typed, NULL);
	}
	if (s->field[0] == '\0')
		end = text + strlen(text);
	if (end <= dot + 1)
		return db_fail(db, Q_DATA, "no setting '%s': the name is missing, as in queue.mail.rate", typed);
	n = (size_t)(end - dot - 1);
	if (n >= sizeof s->name)
		return db_fail(db, Q_DATA, "no setting '%s': the name is too long", typed);
	memcpy(s->name, dot + 1, n);
	return check_name(db, typed, s->name, strcmp(s->kind, "expect") == 0 || strcmp(s->field, "slo") == 0);
}

int
setting_parse(struct db *db, const char *text, struct setting *s)
{
	return parse(db, text, text, s);
}

char *
setting_text(char buf[SETTING_TEXT], const struct setting *s)
{
	snprintf(buf, SETTING_TEXT, "%s.%s%s%s", s->kind, s->name, s->field[0] != '\0' ? "." : "", s->field);
	return buf;
}

/* ---- values ---- */

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

/* A day (its start, UTC) or an instant; not what depends on when it is read. */
static bool
is_date(const char *s, int64_t *ms)
{
	const char *why;
	char day[20];

	if (strchr("@0123456789", *s) == NULL)
		return false;
	snprintf(day, sizeof day, "%.10s 00:00", s);
	return when_instant(s, NULL, 0, ms, &why) || (strlen(s) == 10 && when_instant(day, "UTC", 0, ms, &why));
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
		return slo_parse(v, &(struct slo){ 0 });
	case DURATION:
		if (!when_duration(v, number, why))
			return false;
		*why = "must be more than 0";
		return *number > 0;
	case KEEP:
		*why = "is not 'forever' or a duration such as 30d";
		return strcmp(v, "forever") == 0 || when_duration(v, number, &w);
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
		*why = "is not a day such as 2027-01-31, nor an instant such as 2027-01-31T12:00:00Z";
		return is_date(v, number);
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
	/* What a former rate has spent must not hold back the new one. */
	if (db_run(s) > 0 && (strcmp(set->field, "rate") == 0 || (strcmp(set->kind, "rate") == 0 && set->field[0] == '\0')))
		rate_refill(db, set->kind, set->name);
	last.turn = 0;
	return db_status(db);
}

/* As good_value(); Q_DATA with a message that names the setting. */
static int
check_value(struct db *db, const struct setting *set, const char *value, int64_t *number)
{
	char name[SETTING_TEXT];
	const char *why = text_name_fault(value);

	if (why != NULL)
		return db_fail(db, Q_DATA, "%s: the value %s", setting_text(name, set), why);
	if (!good_value(field_of(set->kind, set->field)->type, value, number, &why))
		return db_fail(db, Q_DATA, "%s: '%s' %s", setting_text(name, set), value, why);
	return Q_OK;
}

int
setting_value(struct db *db, const struct setting *set, const char *value)
{
	int64_t number;

	return *value == '\0' ? Q_OK : check_value(db, set, value, &number);
}

int
setting_put(struct db *db, const struct setting *set, const char *value, int64_t now)
{
	int64_t number;

	if (*value == '\0')
		return put(db, set, NULL, -1, now);
	if (check_value(db, set, value, &number) != Q_OK)
		return db_status(db);
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
setting_slo(struct db *db, const char *name, struct slo *slo)
{
	struct setting s = { .kind = "queue", .field = "slo" };
	const char *v;
	int64_t when;
	int rc;

	snprintf(s.name, sizeof s.name, "%s", name);
	if ((rc = setting_get(db, &s, &v, &when)) == Q_OK && !slo_parse(v, slo))	/* of another program's making */
		return Q_NO;
	return rc;
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

static bool
is_set(struct db *db, const char *kind, const char *name, const char *field)
{
	struct setting s;
	const char *value;
	int64_t when;

	snprintf(s.kind, sizeof s.kind, "%s", kind);
	snprintf(s.name, sizeof s.name, "%s", name);
	snprintf(s.field, sizeof s.field, "%s", field);
	return setting_get(db, &s, &value, &when) == Q_OK;
}

/* What is wrong with the way that dead jobs of this queue go, or NULL. */
static const char *
wrong_way(struct db *db, const char *queue)
{
	struct setting s = { .kind = "queue", .field = "dead_to" };
	const char *to;
	int64_t when;

	snprintf(s.name, sizeof s.name, "%s", queue);
	for (int i = 0; i <= DEAD_TO_MAX; i++) {
		if (setting_get(db, &s, &to, &when) != Q_OK)
			return NULL;
		if (strcmp(to, queue) == 0)
			return "it leads back to this queue, so dead jobs would go round for ever";
		snprintf(s.name, sizeof s.name, "%s", to);
	}
	return "it leads on for more than 10 queues, or round for ever";
}

int
setting_check(struct db *db, const struct setting *set)
{
	struct stmt *s;
	const char *value, *wrong;
	char rate[65];
	int64_t when;

	if (strcmp(set->field, "dead_to") == 0 && (wrong = wrong_way(db, set->name)) != NULL)
		db_fail(db, Q_DATA, "queue.%s.dead_to: %s", set->name, wrong);
	if (strcmp(set->field, "limit") == 0 && setting_get(db, set, &value, &when) == Q_OK) {
		snprintf(rate, sizeof rate, "%s", value);
		if (!is_set(db, "rate", rate, "") && !is_set(db, "rate", rate, "concurrency"))
			db_fail(db, Q_DATA, "queue.%s.limit: there is no rate.%s and no rate.%s.concurrency; set one in the same command, or before",
			    set->name, rate, rate);
	}
	if (strcmp(set->kind, "rate") == 0 && !is_set(db, "rate", set->name, "") && !is_set(db, "rate", set->name, "concurrency")) {
		s = db_prepare(db, LIMITED);
		db_text(s, ":name", set->name);
		if (db_step(s) == 1)
			db_fail(db, Q_DATA, "rate.%s: queue.%s.limit names it; unset that in the same command, or before", set->name,
			    db_col_text(s, 0));
		db_reset(s);
	}
	return db_status(db);
}

/* ---- for claims and settlements ---- */

/* The value counts, as qset shows it; one that qset would refuse, of another program's making, is none. */
static void
take_field(struct queue_set *q, const char *field, const char *value)
{
	const struct field *f = field_of("queue", field);
	const char *why;
	int64_t number;

	if (strcmp(field, "keep") == 0)		/* one that cannot be read deletes nothing */
		q->keep_ms = INT64_MAX;
	if (f == NULL || !good_value(f->type, value, &number, &why))
		return;
	if (strcmp(field, "rate") == 0)
		rate_parse(value, &q->rate, &why);
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
	else if (strcmp(field, "keep") == 0)
		q->keep_ms = number != -1 ? number : INT64_MAX;
	else if (strcmp(field, "attempts") == 0)
		q->attempts = number;
	else if (strcmp(field, "window") == 0)
		q->window_ms = number;
	else if (strcmp(field, "backoff") == 0)
		when_range(value, &q->base_ms, &q->cap_ms, &why);
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
	    .window_ms = -1, .keys_ms = INT64_MAX, .keep_ms = SETTING_KEEP_MS };
	/* Every queue, which can only be paused, and this one: in turn, since IN would build a b-tree each time. */
	for (int own = 0; own <= 1; own++) {
		s = db_prepare(db, OF_QUEUE);
		db_text(s, ":name", own ? queue : "");
		while (db_step(s) == 1)
			if (strcmp(db_col_text(s, 0), "paused") == 0)
				q->paused = true;
			else if (own)
				take_field(q, db_col_text(s, 0), db_col_text(s, 1));
	}
	last.db = db;
	last.turn = turn;
	snprintf(last.queue, sizeof last.queue, "%s", queue);
	return q;
}
