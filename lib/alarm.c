/*
 * alarm.c - what is wrong in a queue file: what nobody would see otherwise, because it is silent.
 *
 * Each problem is looked for by its own function; what each counts as a problem is in qlate(1).  All by reading alone, by seeks
 * and a bounded part of the ledger, so that it can run each minute.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "late.h"

#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

enum {
	DEAD_LOOKED = 1000,		/* dead jobs of a queue whose times are looked at */
	HEADS_LOOKED = 5000,		/* entities of a queue, */
	BEHIND_LOOKED = 100,		/* ... and jobs of each */
	BEYOND = 100000,		/* attempts before what is expected, to tell of the last success */
	SERIES = 3000,			/* runs of a source or a queue */
	STREAK = 3,			/* as many in a row are no accident */
	NEWEST = 20000,			/* attempts that first-attempt success is taken from, */
	SAMPLES = 100,			/* ... and the pages */
	SAMPLE = 100,			/* ... of rows before them that it is compared with */
	TALLIES = 1024			/* queues in that comparison, a power of 2 */
};
#define STALE_MS (15 * MINUTE)		/* due and not started, or a lease over and nobody came */
#define NOBODY_MS (2 * MINUTE)		/* the same in a queue that nobody claimed from */
#define BLOCKED_MS HOUR			/* likewise, behind its entity: about as long as the default of all retries lasts */
#define LOCK_MS DAY
#define LOG_MAX (INT64_C(256) << 20)
#define FREE_LEAST (INT64_C(64) << 20)	/* and a twentieth of the disk, but no more than */
#define FREE_MOST (INT64_C(1) << 30)

static const char NEXT_DEAD[] = "SELECT min(queue) FROM q_job WHERE state = 'dead' AND queue > :last";
static const char DEAD[] =
	"SELECT count(*), min(finished_ms), max(id) FROM\n"
	"       (SELECT id, finished_ms FROM q_job WHERE queue = :queue AND state = 'dead' LIMIT :n)";
static const char DEAD_COUNT[] = "SELECT count(*) FROM q_job WHERE queue = :queue AND state = 'dead'";
static const char REASON[] = "SELECT a.reason, j.type FROM q_job j JOIN q_attempt a ON a.id = j.last_attempt WHERE j.id = :id";

static const char FAILED[] = "SELECT job, reason FROM q_attempt WHERE id = :id";

static const char ENDED[] = "SELECT n FROM q_count WHERE queue = :queue AND state > 'cancelled' LIMIT 1";
static const char RETRIED[] = "SELECT 1 FROM q_job WHERE queue = :queue AND state = 'failed' LIMIT 1";
static const char HELD[] = "SELECT 1 FROM q_job WHERE queue = :queue AND lease_ms IS NOT NULL LIMIT 1";
static const char PUT_BACK[] =
	"SELECT 1 FROM (SELECT fence FROM q_job WHERE queue = :queue AND ready_ms IS NOT NULL LIMIT 1000) WHERE fence > 0 LIMIT 1";
static const char EXPECTED[] =
	"SELECT 1 FROM q_setting WHERE kind = 'expect' AND name = :queue\n"
	"UNION ALL SELECT 1 FROM q_setting WHERE kind = 'expect' AND name > :queue || '/' AND name < :queue || '0'\n"
	" LIMIT 1";
static const char NAMES[] = "SELECT queue FROM q_count WHERE queue > :last ORDER BY queue LIMIT 1";

static const char BLOCK[] = "SELECT blocked_ms FROM q_rate WHERE kind = 'rate' AND name = :queue";

static const char NEXT_HEAD[] = "SELECT min(queue) FROM q_job WHERE head = 1 AND queue > :last";
static const char HEADS[] =
	"SELECT id, entity, due_ms, lease_ms FROM\n"
	"       (SELECT id, entity, due_ms, ready_ms, lease_ms FROM q_job WHERE queue = :queue AND head = 1 LIMIT :n)\n"
	" WHERE ready_ms > :now OR lease_ms <= :boot";
static const char BEHIND[] =
	"SELECT count(*), min(due_ms) FROM\n"
	"       (SELECT due_ms FROM q_job WHERE queue = :queue AND entity = :entity AND finished_ms IS NULL AND head IS NULL LIMIT :n)\n"
	" WHERE due_ms <= :now";

static const char NEXT_CLAIMED[] = "SELECT min(queue) FROM q_job WHERE lease_ms IS NOT NULL AND queue > :last";
static const char OVER[] =
	"SELECT count(*), min(claimed_ms), max(id) FROM\n"
	"       (SELECT id, claimed_ms FROM q_job WHERE queue = :queue AND lease_ms <= :boot LIMIT :n)";

static const char SOURCE[] = "SELECT name FROM q_poll WHERE name > :last ORDER BY name LIMIT 1";
static const char RUNS[] =
	"SELECT started_ms, outcome, fresh, note FROM q_poll_run WHERE name = :name ORDER BY id DESC LIMIT :n";

static const char REFUSED[] = "SELECT path FROM q_refused WHERE path > :last ORDER BY path LIMIT 1";
static const char REFUSALS[] = "SELECT n, since_ms, last_ms, status, why FROM q_refused WHERE path = :queue";

static const char NEXT_COUNTS[] = "SELECT min(queue) FROM q_attempt WHERE count IS NOT NULL AND queue > :last";
static const char NEXT_TYPE[] = "SELECT min(type) FROM q_attempt WHERE count IS NOT NULL AND queue = :queue AND type > :last";
static const char FIRST_TYPE[] = "SELECT min(type) FROM q_attempt WHERE count IS NOT NULL AND queue = :queue";
static const char COUNTS[] =
	"SELECT finished_ms, count FROM q_attempt\n"
	" WHERE queue = :queue AND type = :type AND count IS NOT NULL AND finished_ms <= :now\n"
	" ORDER BY finished_ms DESC LIMIT :n";

static const char PURGES[] =
	"SELECT as_of_ms, marked FROM q_purge WHERE queue = '' AND as_of_ms <= :now ORDER BY as_of_ms DESC LIMIT :n";

struct check {
	struct db *db;
	int64_t now;
	int (*each)(const struct problem *, void *);
	void *arg;
	int rc;				/* what each() said */
	char what[1024], detail[1500], next[1024], name[SETTING_NAME];
};

/* ---- telling ---- */

static void __attribute__((format(printf, 2, 3)))
what(struct check *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->what, sizeof c->what, fmt, ap);
	va_end(ap);
	c->detail[0] = c->next[0] = '\0';
}

static void __attribute__((format(printf, 2, 3)))
detail(struct check *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->detail, sizeof c->detail, fmt, ap);
	va_end(ap);
}

static void __attribute__((format(printf, 2, 3)))
next(struct check *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->next, sizeof c->next, fmt, ap);
	va_end(ap);
}

static void
tell(struct check *c, const char *kind, const char *name, const char *queue, int64_t since_ms)
{
	const struct problem p = { .kind = kind, .name = name, .queue = queue, .what = c->what, .since_ms = since_ms,
	    .detail = c->detail, .next = c->next };

	if (c->rc == Q_OK && db_status(c->db) == Q_OK)
		c->rc = c->each(&p, c->arg);
}

/* Room for n things of that size; NULL: there is none, and the check fails. */
static void *
room(struct check *c, size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (p == NULL)
		db_fail(c->db, Q_TEMP, "out of memory");
	return p;
}

/* The least text after `last` by the statement, for the caller to free; NULL at the end. */
static char *
after(struct db *db, const char *sql, const char *queue, const char *last)
{
	struct stmt *s = db_prepare(db, sql);

	if (queue != NULL)
		db_text(s, ":queue", queue);
	return db_next(s, last);
}

static struct stmt *
of_queue(struct check *c, const char *sql, const char *queue)
{
	struct stmt *s = db_prepare(c->db, sql);

	db_text(s, ":queue", queue);
	return s;
}

/* ---- dead jobs ---- */

static void
dead(struct check *c, const char *queue)
{
	struct stmt *s = of_queue(c, DEAD, queue);
	int64_t n, since, id;
	const char *why;

	db_int(s, ":n", DEAD_LOOKED);
	if (db_step(s) != 1)
		return;
	since = db_col_int(s, 1);
	id = db_col_int(s, 2);
	db_reset(s);
	n = db_only(of_queue(c, DEAD_COUNT, queue));
	what(c, "%" PRId64 " %s", n, n == 1 ? "job is dead" : "jobs are dead");
	next(c, "qls --state dead %s; mend the cause; qreplay %s, or qcancel what is to be dropped", queue, queue);
	s = db_prepare(c->db, REASON);
	db_int(s, ":id", id);
	if (db_step(s) == 1) {
		if ((why = db_col_opt(s, 0)) != NULL)
			detail(c, "job %" PRId64 ": %.300s", id, why);
		if (strcmp(db_col_text(s, 1), "qjob") == 0)	/* nobody would take it if it were replayed */
			next(c, "qls %" PRId64 "; mend the cause; start the crontab line again, or wait: its next success cancels this", id);
	}
	db_reset(s);
	tell(c, "DEAD", queue, queue, since);
}

/* ---- due and not started ---- */

/* That something ended, waits for a retry, is claimed, or was claimed and put off or released, shows that somebody claimed. */
static bool
ever_claimed(struct check *c, const char *queue)
{
	static const char *const SIGNS[] = { ENDED, RETRIED, HELD, PUT_BACK };
	bool ever = false;

	for (int i = 0; i < 4 && !ever; i++) {
		struct stmt *s = of_queue(c, SIGNS[i], queue);

		ever = db_step(s) == 1;
		db_reset(s);
	}
	return ever;
}

/* A queue in which something ended, with a name like this one. */
static const char *
like(struct db *db, const char *queue)
{
	static char best[65];
	const char *names[2] = { NULL, NULL };
	char *name = strdup(""), *more;		/* a hint may fail */

	best[0] = '\0';
	for (int i = 0; i < 1000 && name != NULL && best[0] == '\0' && (more = after(db, NAMES, NULL, name)) != NULL; i++) {
		free(name);
		names[0] = name = more;
		if (strcmp(name, queue) != 0 && text_nearest(queue, names) != NULL)
			snprintf(best, sizeof best, "%s", name);
	}
	free(name);
	return best;
}

/* Is it the queue that is paused, and not all?  *why: the reason, or "". */
static bool
pause_of(struct check *c, const struct report *r, const char **why)
{
	struct setting set = { .kind = "queue", .field = "paused" };
	int64_t when;

	snprintf(set.name, sizeof set.name, "%s", r->queue);
	if (setting_get(c->db, &set, why, &when) == Q_OK)
		return true;
	set.name[0] = '\0';
	if (setting_get(c->db, &set, why, &when) != Q_OK)
		*why = "";
	return false;
}

/* The shared rate of a queue, if it is blocked, and until when; NULL: it is not. */
static const char *
block_of(struct check *c, const struct report *r, int64_t *until)
{
	const char *rate = setting_queue(c->db, r->queue)->limit;

	*until = *rate != '\0' && strcmp(r->why, "rate") == 0 ? db_only(of_queue(c, BLOCK, rate)) : -1;
	return *until > c->now ? rate : NULL;
}

/* Why it waits, with the reason of a pause, or the block of a rate. */
static const char *
why_text(struct check *c, const struct report *r, char text[400])
{
	const char *reason = "", *rate;
	char block[200], at[WHEN_TEXT];
	int64_t until;

	if (r->paused)
		pause_of(c, r, &reason);
	if ((rate = block_of(c, r, &until)) != NULL) {
		snprintf(block, sizeof block, "%s is blocked until %s", rate, when_text(at, until, false));
		reason = block;
	}
	snprintf(text, 400, "%s%s%s", *r->why != '\0' ? r->why : "-", *reason != '\0' ? ": " : "", reason);
	return text;
}

/* What helps what waits, by why it does. */
static void
remedy(struct check *c, const struct report *r)
{
	const char *reason, *rate;
	int64_t until;

	if ((rate = block_of(c, r, &until)) != NULL)
		next(c, "wait for the end of the block, or qrate --block 0 %s", rate);
	else if (strcmp(r->why, "paused") == 0)
		next(c, "qpause -r %s when the cause is gone", pause_of(c, r, &reason) ? r->queue : "--all");
	else if (strcmp(r->why, "rate") == 0 || strcmp(r->why, "busy") == 0)
		next(c, "qlate --since 1h %s; more workers, or a higher limit: qset", r->queue);
	else if (strcmp(r->why, "lock") == 0)
		next(c, "qlock --list tells who has the locks");
	else
		next(c, "start a worker: qwork %s -- CMD, or see why the one of the crontab does not run", r->queue);
}

static void
waits(struct check *c, const struct report *r)
{
	char span[WHEN_TEXT], why[400];
	const char *near;
	bool nobody = r->oldest_ms >= NOBODY_MS && !r->paused && r->started_ms == INT64_MIN && !ever_claimed(c, r->queue);

	if (r->waiting == 0 || (!nobody && (r->oldest_ms < STALE_MS || r->slo.target_ms != -1)))
		return;
	when_brief(span, r->oldest_ms);
	if (nobody) {
		near = like(c->db, r->queue);
		what(c, "%" PRId64 " due, and nobody ever claimed from this queue%s%s%s", r->waiting, *near != '\0' ? "; was '" : "", near,
		    *near != '\0' ? "' meant?" : "");
		next(c, "start a worker: qwork %s -- CMD; or qls %s, and qcancel what went to the wrong queue", r->queue, r->queue);
		tell(c, "NOBODY", r->queue, r->queue, c->now - r->oldest_ms);
		return;
	}
	what(c, "%" PRId64 " due, the oldest for %s and not started: %s", r->waiting, span, why_text(c, r, why));
	remedy(c, r);
	tell(c, "WAITS", r->queue, r->queue, c->now - r->oldest_ms);
}

/* ---- targets ---- */

static void
late(struct check *c, const struct report *r)
{
	static const char *const WINDOWS[BURNS] = { "5m", "30m", "1h", "6h", "3d" };
	char name[SETTING_NAME + 70], span[WHEN_TEXT], old[WHEN_TEXT], why[400];
	int w = slo_burning(&r->slo, r->burn, BURN_3D), n;
	bool overdue = r->waiting > 0 && r->oldest_ms > 3 * r->slo.target_ms;
	const struct share *s = &r->burn[w == -1 ? BURN_1H : w];

	if (r->slo.target_ms == -1 || !r->own_slo || (w == -1 && !overdue))
		return;
	snprintf(name, sizeof name, "%s%s%s", r->queue, r->type_len > 0 ? "/" : "", r->type);
	n = snprintf(c->what, sizeof c->what, "%.2f%% within %s over %s, wanted %g%%", s->all > 0 ? (double)((s->all - s->late) * 10000 / s->all) / 100 : 0,
	    when_span(span, r->slo.target_ms), WINDOWS[w == -1 ? BURN_1H : w], (double)r->slo.ppm / 10000);
	if (w != -1)
		snprintf(c->what + n, sizeof c->what - (size_t)n, "; it burns %.1f times what is allowed", slo_burn(&r->slo, s));
	if (r->waiting > 0) {
		detail(c, "%" PRId64 " due, the oldest for %s: %s", r->waiting, when_brief(old, r->oldest_ms), why_text(c, r, why));
		remedy(c, r);
	} else {
		detail(c, "nothing is due now");
		next(c, "qlate --since %s --by hour%s %s tells when it was late", w == BURN_3D ? "3d" : "24h", r->type_len > 0 ? " --types" : "", r->queue);
	}
	tell(c, "LATE", name, r->queue, r->waiting > 0 ? c->now - r->oldest_ms : -1);
}

static int
has_target(const struct setting *s, const char *value, int64_t set_ms, void *arg)
{
	int *found = arg;

	(void)value;
	(void)set_ms;
	if (strcmp(s->kind, "queue") == 0 && strcmp(s->field, "slo") == 0)
		*found |= strchr(s->name, '/') != NULL ? 2 : 1;
	return Q_OK;
}

/* The ledger is read only as far as somebody set a target or something waits, and 3 days of it only if 6 hours burn. */
static void
queues(struct check *c)
{
	struct ledger_want want = { .from_ms = c->now, .now = c->now, .open_only = true, .slack_ms = MINUTE };
	struct ledger l;
	int targets = 0;
	bool stale = false, burns = false;

	setting_each(c->db, has_target, &targets);
	if (targets == 0) {
		ledger_read(c->db, &want, &l);
		for (int i = 0; i < l.n; i++)
			stale |= l.rows[i]->oldest_ms >= NOBODY_MS;
		ledger_free(&l);
		if (!stale)
			return;
		want.from_ms = c->now - LATE_WHY_MS;
	} else {
		want.by_both = (targets & 2) != 0;
		want.burn = BURN_6H;
	}
	want.open_only = false;
	want.slack_ms = 10 * MINUTE;
	ledger_read(c->db, &want, &l);
	for (int i = 0; i < l.n; i++)
		burns |= l.rows[i]->slo.target_ms != -1 && slo_burn(&l.rows[i]->slo, &l.rows[i]->burn[BURN_6H]) >= 1;
	if (burns) {
		ledger_free(&l);
		want.burn = BURN_3D;
		ledger_read(c->db, &want, &l);
	}
	for (int i = 0; i < l.n; i++)
		if (memchr(l.rows[i]->queue, '\0', l.rows[i]->queue_len) == NULL) {
			if (!want.by_both || l.rows[i]->whole)
				waits(c, l.rows[i]);
			if (!want.by_both || l.rows[i]->whole || l.rows[i]->type_len > 0)
				late(c, l.rows[i]);
		}
	ledger_free(&l);
}

/* ---- leases that are over ---- */

static void
lost(struct check *c, const char *queue)
{
	struct stmt *s = of_queue(c, OVER, queue);
	bool rebooted;
	int64_t boot = job_boot_look(c->db, &rebooted), n, since, id;

	/* After a boot all of them are over, since then at least. */
	db_int(s, ":boot", !rebooted ? boot - STALE_MS : boot >= STALE_MS ? INT64_MAX : INT64_MIN);
	db_int(s, ":n", DEAD_LOOKED);
	if (db_step(s) != 1)
		return;
	n = db_col_int(s, 0);
	since = db_col_int(s, 1);
	id = db_col_int(s, 2);
	db_reset(s);
	if (n == 0)
		return;
	what(c, "%" PRId64 " claimed, their leases are over, and nobody has come to take them back", n);
	detail(c, "claimed then; job %" PRId64 " is one", id);
	next(c, "start a worker: qwork %s -- CMD takes them back", queue);
	tell(c, "LOST", queue, queue, since);
}

/* ---- due, and behind a job of the entity that is neither settled nor running ---- */

static void
behind(struct check *c, const char *queue)
{
	struct stmt *heads = of_queue(c, HEADS, queue), *s;
	bool rebooted, lost = false;
	int64_t boot = job_boot_look(c->db, &rebooted), n, since, most = 0, first = c->now - BLOCKED_MS + 1, id = 0, due = 0;
	char entity[260] = "", at[WHEN_TEXT], span[WHEN_TEXT];
	int held = 0;

	db_int(heads, ":n", HEADS_LOOKED);
	db_int(heads, ":now", c->now);
	db_int(heads, ":boot", rebooted ? INT64_MAX : boot);
	while (db_step(heads) == 1) {
		s = of_queue(c, BEHIND, queue);
		db_text(s, ":entity", db_col_text(heads, 1));
		db_int(s, ":n", BEHIND_LOOKED);
		db_int(s, ":now", c->now);
		n = db_step(s) == 1 ? db_col_int(s, 0) : 0;
		since = n > 0 ? db_col_int(s, 1) : c->now;
		db_reset(s);
		held += since <= c->now - BLOCKED_MS;
		if (since >= first)
			continue;
		first = since;
		most = n;
		id = db_col_int(heads, 0);
		due = db_col_int(heads, 2);
		lost = db_col_int(heads, 3) != -1;
		snprintf(entity, sizeof entity, "%s", db_col_text(heads, 1));
	}
	if (held == 0)
		return;
	what(c, "%" PRId64 " due, the oldest for %s, behind job %" PRId64 " of entity %s, %s%s", most, when_brief(span, c->now - first), id, entity,
	    lost ? "whose lease is over" : "which is not due before ", lost ? "" : when_text(at, due, false));
	if (held > 1)
		detail(c, "%d entities are held up like this", held);
	if (lost)
		next(c, "start a worker: qwork %s -- CMD takes it back", queue);
	else
		next(c, "qls %" PRId64 " tells why; qcancel %" PRId64 " lets the others go; qreplay %" PRId64 " after that tries it again at once", id, id, id);
	tell(c, "BLOCKED", queue, queue, first);
}

static void
each_queue(struct check *c, const char *sql, void (*look)(struct check *, const char *))
{
	char *queue = NULL, *more;

	while (c->rc == Q_OK && (more = after(c->db, sql, NULL, queue != NULL ? queue : "")) != NULL) {
		free(queue);
		queue = more;
		look(c, queue);
	}
	free(queue);
}

/* ---- series of counts ---- */

struct point { int64_t ms, n; };	/* the newest first */

static int
by_count(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	return (x->n > y->n) - (x->n < y->n);
}

/* The median of those not before from_ms, of n; -1: none.  Changes their order. */
static int64_t
median(struct point *p, int n, int64_t from_ms)
{
	int k = 0;

	while (k < n && p[k].ms >= from_ms)
		k++;
	if (k == 0)
		return -1;
	qsort(p, (size_t)k, sizeof *p, by_count);
	return p[(k - 1) / 2].n;
}

/*
 * Several zeros in a row, where the 30 days before them were busy, and on as many days, or for twice as long as there ever was
 * nothing: what runs each minute has quiet nights.  *since: the first; returns how many, 0: it is as usual.
 */
static int
silent(struct point *p, int n, int64_t now, int64_t *usual, int64_t *since)
{
	int zeros = 0, days = 0;
	int64_t day = -1, gap = 0, busy = 0;

	while (zeros < n && p[zeros].n == 0) {
		if (p[zeros].ms / DAY != day)
			days++;
		day = p[zeros++].ms / DAY;
	}
	if (zeros < STREAK || zeros == n)
		return 0;
	busy = p[zeros].ms;
	*since = p[zeros - 1].ms;
	for (int i = zeros + 1, last = zeros; i < n; i++)
		if (p[i].n > 0) {
			gap = p[last].ms - p[i].ms > gap ? p[last].ms - p[i].ms : gap;
			last = i;
		}
	*usual = median(p + zeros, n - zeros, busy - 30 * DAY);
	return *usual > 0 && (days >= STREAK || (now - busy >= HOUR && now - busy > 2 * gap)) ? zeros : 0;
}

/* Silent, or ten times the usual; by what name, and where to look. */
static void
unusual(struct check *c, const char *name, const char *queue, struct point *p, int n, const char *look)
{
	int64_t usual, since;
	int zeros;

	if ((zeros = silent(p, n, c->now, &usual, &since)) > 0) {
		what(c, "%d runs in a row produced nothing; usual is %" PRId64, zeros, usual);
		next(c, "%s; is that meant?", look);
		tell(c, "EMPTY", name, queue, since);
	} else if (n > 5 && p[0].n > 10) {
		const struct point newest = p[0];

		usual = median(p + 1, n - 1, c->now - 30 * DAY);
		if (usual > 0 && newest.n > 10 * usual) {
			what(c, "the last run produced %" PRId64 ", more than ten times the usual %" PRId64, newest.n, usual);
			next(c, "%s; is that meant?", look);
			tell(c, "COUNT", name, queue, newest.ms);
		}
	}
}

static int
points(struct stmt *s, struct point *p, int64_t now)
{
	int n = 0;

	db_int(s, ":now", now);
	db_int(s, ":n", SERIES);
	while (db_step(s) == 1) {
		p[n].ms = db_col_int(s, 0);
		p[n++].n = db_col_int(s, 1);
	}
	return n;
}

static void
counts_of(struct check *c, const char *queue, const char *type)
{
	struct point *p = room(c, SERIES, sizeof *p);
	struct stmt *s = of_queue(c, COUNTS, queue);
	char name[SETTING_NAME + 300], look[300];

	if (p == NULL)
		return;
	db_text(s, ":type", type);
	snprintf(name, sizeof name, "%.64s%s%.255s", queue, *type != '\0' ? "/" : "", type);
	snprintf(look, sizeof look, "qls --state done %.255s", queue);
	unusual(c, name, queue, p, points(s, p, c->now), look);
	free(p);
}

/* A cleanup that deletes nothing any more, or far too much: the sums of the runs of qpurge. */
static void
purges(struct check *c)
{
	struct point *p = room(c, SERIES, sizeof *p);

	if (p == NULL)
		return;
	unusual(c, "qpurge", NULL, p, points(db_prepare(c->db, PURGES), p, c->now), "qset shows what is kept how long");
	free(p);
}

static void
counts(struct check *c, const char *queue)
{
	char *type = after(c->db, FIRST_TYPE, queue, NULL), *more;

	while (type != NULL && c->rc == Q_OK) {
		counts_of(c, queue, type);
		more = after(c->db, NEXT_TYPE, queue, type);
		free(type);
		type = more;
	}
	free(type);
}

/* ---- sources ---- */

static int
by_ms(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The median time between two starts, of the last 20; -1: there are too few to tell. */
static int64_t
interval(const int64_t *started, int n)
{
	int64_t between[20];
	int k = 0;

	for (; k < 20 && k + 1 < n; k++)
		between[k] = started[k] - started[k + 1];
	if (k < 5)
		return -1;
	qsort(between, (size_t)k, sizeof *between, by_ms);
	return between[k / 2];
}

static void
source(struct check *c, const char *name)
{
	struct point *p = room(c, SERIES, sizeof *p);
	int64_t *started = room(c, SERIES, sizeof *started), usual, since, every;
	struct stmt *s = db_prepare(c->db, RUNS);
	int n = 0, runs = 0, failed = 0, zeros;
	const char *outcome, *note;
	char why[400] = "", span[WHEN_TEXT], often[WHEN_TEXT];
	bool failing = true;
	int64_t failing_since = -1;

	if (p == NULL || started == NULL) {
		free(p);
		free(started);
		return;
	}
	db_text(s, ":name", name);
	db_int(s, ":n", SERIES);
	while (db_step(s) == 1) {
		outcome = db_col_text(s, 1);
		if (strcmp(outcome, "set") == 0)
			continue;
		started[runs++] = db_col_int(s, 0);
		if (strcmp(outcome, "failed") == 0 && failing) {
			if (failed++ == 0 && (note = db_col_opt(s, 3)) != NULL)
				snprintf(why, sizeof why, "%.300s", note);
			failing_since = db_col_int(s, 0);
		}
		if (strcmp(outcome, "new") != 0 && strcmp(outcome, "nothing") != 0 && strcmp(outcome, "unmodified") != 0)
			continue;		/* limited, stopped and unfinished say nothing about the source */
		failing = false;
		p[n].ms = db_col_int(s, 0);
		p[n++].n = db_col_int(s, 2);
	}
	every = interval(started, runs);
	if (failed >= STREAK) {
		what(c, "the last %d runs of this source failed", failed);
		detail(c, "%s", why);
		next(c, "qpoll --status FILE, with the file of this source");
		tell(c, "POLL", name, NULL, failing_since);
	} else if (every != -1 && c->now - started[0] > 5 * every && c->now - started[0] > STALE_MS) {
		what(c, "no run of this source for %s; usually there is one each %s", when_brief(span, c->now - started[0]), when_brief(often, every));
		next(c, "see why its line of the crontab does not run, or whether a run hangs");
		tell(c, "POLL", name, NULL, started[0]);
	}
	if ((zeros = silent(p, n, c->now, &usual, &since)) > 0) {
		what(c, "%d runs of this source in a row brought nothing new; usual is %" PRId64, zeros, usual);
		next(c, "ask it by hand: does it still show what it did, to this credential?");
		tell(c, "EMPTY", name, NULL, since);
	}
	free(p);
	free(started);
}

/* ---- expectations and credentials ---- */

struct wanted {
	const char *name;
	struct name queue, type;
	bool typed;
	int64_t since_ms, found_ms;	/* since when there must be one; the last, -1: none */
	int64_t oldest_ms;		/* if not all was looked at */
	int beyond;			/* how many were looked at before since_ms */
};

static int
find_success(const struct line *e, void *arg)
{
	struct wanted *w = arg;

	if (e->finished < w->since_ms && w->beyond++ == BEYOND) {
		w->oldest_ms = e->finished;
		return Q_NO;
	}
	if (strcmp(e->outcome, "done") != 0 || e->queue.n != w->queue.n || memcmp(e->queue.p, w->queue.p, e->queue.n) != 0 ||
	    (w->typed && (e->type.n != w->type.n || memcmp(e->type.p, w->type.p, e->type.n) != 0)))
		return Q_OK;
	w->found_ms = e->finished;
	return Q_NO;			/* enough */
}

/* The last success of a source that is no queue. */
static int64_t
last_poll(struct check *c, const char *name)
{
	struct stmt *s = db_prepare(c->db, RUNS);
	int64_t at = -1;
	const char *outcome;

	db_text(s, ":name", name);
	db_int(s, ":n", SERIES);
	while (at == -1 && db_step(s) == 1) {
		outcome = db_col_text(s, 1);
		if (strcmp(outcome, "new") == 0 || strcmp(outcome, "nothing") == 0 || strcmp(outcome, "unmodified") == 0)
			at = db_col_int(s, 0);
	}
	db_reset(s);
	return at;
}

/* "by 06:00 ZONE": the first such time after an instant; -1: it is not of that form. */
static int64_t
deadline_after(const char *value, int64_t ms)
{
	struct when_due due = { .base = ms };
	char at[6];
	const char *why;
	int64_t t;

	if (strncmp(value, "by ", 3) != 0 || strlen(value) < 10)
		return -1;
	snprintf(at, sizeof at, "%.5s", value + 3);
	due.at = at;
	due.zone = value + 9;
	if (!when_due(&due, &t, &why))
		return -1;
	due.base = t + 1000;
	return t > ms || when_due(&due, &t, &why) ? t : -1;
}

/* The last two of them. */
static bool
deadlines(const char *value, int64_t now, int64_t *last, int64_t *before)
{
	int64_t t = now - 73 * HOUR;

	for (*last = *before = -1; (t = deadline_after(value, t)) != -1 && t <= now;) {
		*before = *last;
		*last = t;
	}
	return *before != -1;
}

/* Since when it is missed: from its last success on, and not before it was expected. */
static int64_t
missed_since(const char *value, int64_t dur, int64_t success_ms, int64_t set_ms)
{
	int64_t by_set = dur != -1 ? set_ms + dur : deadline_after(value, set_ms), by_success = -1;

	if (success_ms != -1)		/* it was in time for the first deadline after it */
		by_success = dur != -1 ? success_ms + dur : deadline_after(value, deadline_after(value, success_ms));
	return by_success > by_set ? by_success : by_set;
}

static void
expect(struct check *c, const char *name, const char *value, int64_t set_ms)
{
	const char *slash = strchr(name, '/'), *why;
	size_t n = slash != NULL ? (size_t)(slash - name) : strlen(name);
	struct wanted w = { .name = name, .queue = { name, n }, .typed = slash != NULL, .found_ms = -1, .oldest_ms = -1 };
	int64_t dur = -1, deadline = -1, last;
	char queue[SETTING_NAME], at[WHEN_TEXT];
	bool known = true;

	if (slash != NULL)
		w.type = (struct name){ slash + 1, strlen(slash + 1) };
	if (when_duration(value, &dur, &why))
		w.since_ms = c->now - dur;
	else if (!deadlines(value, c->now, &deadline, &w.since_ms)) {
		what(c, "expected %s, of which no time can be told: its zone is not here", value);
		next(c, "install the zones, most often as tzdata, or see TZDIR in q(7)");
		tell(c, "ABSENT", name, name, -1);
		return;
	}
	if (set_ms >= (deadline != -1 ? deadline : w.since_ms))	/* nobody expected it then */
		return;
	snprintf(queue, sizeof queue, "%.*s", (int)n, name);
	job_queue_known(c->db, queue, &known);
	if (!known && slash == NULL && db_has(c->db, FOR_QPOLL))
		w.found_ms = last_poll(c, name);
	if (w.found_ms == -1)		/* it stops by itself */
		ledger_each(c->db, 0, 10 * MINUTE, find_success, &w);
	if (w.found_ms >= w.since_ms)
		return;
	last = w.found_ms != -1 ? w.found_ms : w.oldest_ms;
	if (last == -1)
		what(c, "expected %s%s, and no success is on record", deadline == -1 ? "at least every " : "", value);
	else
		what(c, "expected %s%s, the last success was %s%s", deadline == -1 ? "at least every " : "", value, w.found_ms == -1 ? "before " : "",
		    when_text(at, last, false));
	next(c, "qls --state all %s; if there is no job, see why nothing adds one", queue);
	tell(c, "ABSENT", name, queue, missed_since(value, dur, last, set_ms));
}

static void
credential(struct check *c, const char *name, const char *value)
{
	struct setting owner = { .kind = "credential", .field = "owner" }, use = { .kind = "credential", .field = "for" };
	const char *text, *why;
	char day[32], kind[8], span[WHEN_TEXT], who[300] = "", what_for[300] = "";
	int64_t at, set_ms, left;

	snprintf(day, sizeof day, "%.10s 00:00", value);
	if (!when_instant(value, NULL, 0, &at, &why) && !when_instant(day, "UTC", 0, &at, &why))
		return;
	left = at - c->now;
	if (left > 30 * DAY)
		return;
	snprintf(kind, sizeof kind, "%s", left <= 0 ? "EXPIRED" : left <= 7 * DAY ? "7 DAYS" : "30 DAYS");
	snprintf(owner.name, sizeof owner.name, "%s", name);
	snprintf(use.name, sizeof use.name, "%s", name);
	if (setting_get(c->db, &owner, &text, &set_ms) == Q_OK)
		snprintf(who, sizeof who, ", of %.255s", text);
	if (setting_get(c->db, &use, &text, &set_ms) == Q_OK)
		snprintf(what_for, sizeof what_for, ", for %.255s", text);
	if (left <= 0)
		what(c, "this credential%s%s is over", who, what_for);
	else
		what(c, "this credential%s%s ends in %s", who, what_for, when_brief(span, left));
	detail(c, "it ends %s", when_text(span, at, false));
	next(c, "renew it; then qset credential.%s.expires=DAY", name);
	tell(c, kind, name, NULL, left <= 0 ? at : -1);
}

struct copy { struct setting set; char *value; int64_t set_ms; };
struct copies { struct copy *v; int n, cap; };

static int
keep(const struct setting *s, const char *value, int64_t set_ms, void *arg)
{
	struct copies *all = arg;
	struct copy *more;

	if (strcmp(s->kind, "expect") != 0 && (strcmp(s->kind, "credential") != 0 || strcmp(s->field, "expires") != 0))
		return Q_OK;
	if (all->n == all->cap) {
		all->cap = all->cap == 0 ? 16 : 2 * all->cap;
		if ((more = realloc(all->v, (size_t)all->cap * sizeof *more)) == NULL)
			return Q_TEMP;
		all->v = more;
	}
	all->v[all->n] = (struct copy){ *s, strdup(value), set_ms };
	return all->v[all->n++].value != NULL ? Q_OK : Q_TEMP;
}

/* A copy, so that no read transaction lasts while the ledger is read. */
static void
settings(struct check *c)
{
	struct copies all = { .n = 0 };

	if (setting_each(c->db, keep, &all) == Q_TEMP)
		db_fail(c->db, Q_TEMP, "out of memory");
	for (int i = 0; i < all.n; i++) {
		if (db_status(c->db) != Q_OK)
			;
		else if (strcmp(all.v[i].set.kind, "expect") == 0)
			expect(c, all.v[i].set.name, all.v[i].value, all.v[i].set_ms);
		else
			credential(c, all.v[i].set.name, all.v[i].value);
		free(all.v[i].value);
	}
	free(all.v);
}

/* ---- first attempts ---- */

struct tally { char queue[65]; int64_t first[2], done[2], ended[2], won[2], sample; };	/* 0: before, 1: now; an attempt that failed */
struct tallies { struct tally t[TALLIES]; int n, when, lines; int64_t from_ms, last_id; };

static struct tally *
tally_of(struct tallies *all, struct name queue)
{
	uint32_t h = 2166136261u;

	if (queue.n == 0 || queue.n > 64)
		return NULL;
	for (size_t i = 0; i < queue.n; i++)
		h = (h ^ (unsigned char)queue.p[i]) * 16777619u;
	for (;; h++) {
		struct tally *t = &all->t[h % TALLIES];

		if (t->queue[0] == '\0') {
			if (all->n >= TALLIES * 3 / 4)
				return NULL;
			all->n++;
			memcpy(t->queue, queue.p, queue.n);
			return t;
		}
		if (strlen(t->queue) == queue.n && memcmp(t->queue, queue.p, queue.n) == 0)
			return t;
	}
}

static int
tally(const struct line *e, void *arg)
{
	struct tallies *all = arg;
	bool done = strcmp(e->outcome, "done") == 0, failed = strcmp(e->outcome, "failed") == 0 || strcmp(e->outcome, "lost") == 0;
	struct tally *t;

	if (all->when == 1) {
		if (e->finished < all->from_ms)
			return Q_OK;
		if (all->lines++ == NEWEST)
			return Q_NO;
		all->last_id = e->id;
	}
	if ((!done && !failed) || (t = tally_of(all, e->queue)) == NULL)
		return Q_OK;
	if (e->attempt == 1) {
		t->first[all->when]++;
		t->done[all->when] += done;
		if (failed && t->sample == 0)
			t->sample = e->id;
	}
	t->ended[all->when] += done || e->dead;
	t->won[all->when] += done;
	return Q_OK;
}

static double
percent(int64_t part, int64_t all)
{
	return all > 0 ? (double)(part * 10000 / all) / 100 : 100;
}

/* The newest attempts of 6 hours beside a sample of the 7 days before them. */
static void
firsts(struct check *c)
{
	struct tallies *all = room(c, 1, sizeof *all);
	struct stmt *s;
	const char *why;

	if (all == NULL)
		return;
	all->when = 1;
	all->from_ms = c->now - 6 * HOUR;
	ledger_each(c->db, all->from_ms, MINUTE, tally, all);
	all->when = 0;
	all->from_ms = c->now - 7 * DAY;
	if (all->lines > 0)
		ledger_sample(c->db, all->from_ms, all->last_id, SAMPLES, SAMPLE, tally, all);
	for (int i = 0; i < TALLIES; i++) {
		const struct tally *t = &all->t[i];
		double was = percent(t->done[0], t->first[0]), is = percent(t->done[1], t->first[1]);

		if (t->first[1] < 20 || t->first[0] < 50 || is > was - 10 || 100 - is < 3 * (100 - was))
			continue;
		what(c, "first attempts succeed at %.1f%%, they did at %.1f%%; in the end it is %.1f%%", is, was, percent(t->won[1], t->ended[1]));
		next(c, "what it calls is ill");
		s = db_prepare(c->db, FAILED);
		db_int(s, ":id", t->sample);
		if (db_step(s) == 1) {
			why = db_col_opt(s, 1);
			detail(c, "%" PRId64 " of the last %" PRId64 " first attempts failed, and retries hide it; job %" PRId64 "%s%.300s",
			    t->first[1] - t->done[1], t->first[1], db_col_int(s, 0), why != NULL ? ": " : " is one", why != NULL ? why : "");
			next(c, "qls %" PRId64 " shows its attempts; what it calls is ill", db_col_int(s, 0));
		}
		db_reset(s);
		tell(c, "FIRST", t->queue, t->queue, -1);
	}
	free(all);
}

/* ---- locks, log, disk ---- */

static int
lock(const struct lock_held *h, void *arg)
{
	struct check *c = arg;
	char span[WHEN_TEXT];

	if (c->now - h->since_ms < LOCK_MS)
		return Q_OK;
	what(c, "this lock is held for %s, by %s", when_brief(span, c->now - h->since_ms), h->worker != NULL ? h->worker : "nobody who said so");
	next(c, "see whether that still runs; qlock --break frees it");
	snprintf(c->name, sizeof c->name, "%s", h->name);
	tell(c, "LOCK", c->name, NULL, h->since_ms);
	return c->rc;
}

/* Strangers send something now and then; a sender whose secret is not ours goes on, and nothing good comes between. */
static void
refused(struct check *c, const char *path)
{
	struct stmt *s = of_queue(c, REFUSALS, path);
	char when[WHEN_TEXT];
	int64_t since = -1;

	if (db_step(s) == 1 && db_col_int(s, 0) >= STREAK && c->now - db_col_int(s, 2) < 7 * DAY) {
		since = db_col_int(s, 1);
		what(c, "%" PRId64 " webhooks were refused, and none was good since the first", db_col_int(s, 0));
		detail(c, "the last at %s with %" PRId64 ": %s", when_text(when, db_col_int(s, 2), false), db_col_int(s, 3), db_col_text(s, 4));
		next(c, "is the secret that of the sender? qhook(1), Is it taken?");
	}
	db_reset(s);
	if (since != -1)
		tell(c, "REFUSED", path, NULL, since);
}

static int
once(const struct once *o, void *arg)
{
	struct check *c = arg;
	int64_t since = o->finished_ms != -1 ? o->finished_ms : o->started_ms;

	if (o->state != ONCE_UNKNOWN || c->now - since < STALE_MS)
		return Q_OK;
	what(c, "qonce: nobody knows whether it happened");
	detail(c, "%s", o->reason != NULL ? o->reason : "");
	next(c, "find out, then qonce --done or --forget with this key");
	snprintf(c->name, sizeof c->name, "%s", o->key);
	tell(c, "UNKNOWN", c->name, NULL, since);
	return c->rc;
}

static void
sizes(struct check *c)
{
	struct db_size z;
	int64_t least;

	if (db_sizes(c->db, &z) != Q_OK)
		return;
	if (z.log > LOG_MAX) {
		what(c, "the log of %.900s has %" PRId64 " MiB", db_path(c->db), z.log >> 20);
		next(c, "look for a reader that does not end, such as an open sqlite3 shell; the next writer copies the log then");
		tell(c, "LOG", "file", NULL, -1);
	}
	least = z.disk / 20 < FREE_MOST ? z.disk / 20 : FREE_MOST;
	least = least > FREE_LEAST ? least : FREE_LEAST;
	if (z.free < least) {
		what(c, "the disk of %.900s has %" PRId64 " MiB left", db_path(c->db), z.free >> 20);
		next(c, "make room; new jobs are refused before running ones are");
		tell(c, "DISK", "file", NULL, -1);
	}
}

bool
alarm_queue(struct db *db, const char *queue, const char **near)
{
	struct stmt *s;
	bool known;

	if (job_queue_known(db, queue, &known) == Q_OK && !known) {
		s = db_prepare(db, EXPECTED);
		db_text(s, ":queue", queue);
		known = db_step(s) == 1;
		db_reset(s);
	}
	*near = known || db_status(db) != Q_OK ? "" : like(db, queue);
	return known;
}

int
alarm_all(struct db *db, int64_t now, int (*each)(const struct problem *, void *), void *arg)
{
	struct check c = { .db = db, .now = now, .each = each, .arg = arg };

	queues(&c);
	each_queue(&c, NEXT_DEAD, dead);
	each_queue(&c, NEXT_CLAIMED, lost);
	each_queue(&c, NEXT_HEAD, behind);
	settings(&c);
	firsts(&c);
	if (db_has(db, FOR_QPOLL))
		each_queue(&c, SOURCE, source);
	each_queue(&c, NEXT_COUNTS, counts);
	if (db_has(db, FOR_QPURGE))
		purges(&c);
	lock_each(db, lock, &c);
	if (db_has(db, FOR_QHOOK))
		each_queue(&c, REFUSED, refused);
	if (db_has(db, FOR_QONCE))
		once_each(db, once, &c);
	sizes(&c);
	return db_status(db) != Q_OK ? db_status(db) : c.rc;
}
