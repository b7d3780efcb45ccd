/*
 * schedule.c - slots into jobs: one pass over a table.
 *
 * What is due is counted before the write lock is taken, from the marks as they stand then; if they have moved by the time it
 * is held, another pass was quicker, and it is counted anew.  The marks of a table move together, in one transaction with the
 * jobs.  So an entry whose mark is behind the others was not in the table at the last pass, and what it missed is not owed.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cron.h"

#define AHEAD_MS (INT64_C(31) * 24 * 3600 * 1000)	/* a clock so far ahead of the last pass is wrong, or the machine was off */
#define BEHIND_MS (INT64_C(24) * 3600 * 1000)		/* so far behind, it is wrong, or was at the last pass */
#define BACK_MS (INT64_C(5) * 60 * 1000)	/* less is no matter, and common where several machines pass */
#define TWICE_MS (INT64_C(5) * 60 * 1000)
#define LEVEL_MS 5000			/* marks so near to each other are of one pass, or of two tables read at one time */

static const char ROW[] = "SELECT mark_ms, from_ms, slot_ms, job, spec, file FROM q_cron WHERE id = :id";
static const char PUT[] =
	"INSERT INTO q_cron VALUES(:id, :spec, :file, :mark, :from, :slot, :job, :missed, :overlapped)\n"
	"    ON CONFLICT(id) DO UPDATE\n"
	"   SET spec = excluded.spec, file = excluded.file, mark_ms = excluded.mark_ms, from_ms = excluded.from_ms, slot_ms = excluded.slot_ms,\n"
	"       job = excluded.job, missed = missed + excluded.missed, overlapped = overlapped + excluded.overlapped";
static const char WAITS[] =
	"SELECT id FROM q_job WHERE queue = :queue AND entity = :id AND type = :id AND finished_ms IS NULL AND lease_ms IS NULL LIMIT 1";
static const char LAST[] = "SELECT state, finished_ms FROM q_job WHERE id = :id";

struct row {				/* what the file knows of an entry */
	bool known, changed, here;	/* changed: of another schedule or zone; here: the last time in this table, too */
	int64_t mark, from, slot, job;	/* -1: none */
};
struct plan {				/* what a pass is to do with it */
	struct row row;
	const char *news;		/* why its slots count from this pass on, or the last one; NULL: they did before */
	int64_t *at, mark, missed, first, overlapped;
	int n;
};
struct pass {
	struct db *db;
	struct cron_table *table;
	struct plan *plans;
	int64_t now, last, seen;	/* the last pass of this table, and of any that had one of its entries; -1: none */
	bool force, adds;
	FILE *log;
};

static void
read_row(const struct pass *p, const struct cron *c, struct row *r)
{
	struct stmt *s = db_prepare(p->db, ROW);

	*r = (struct row){ false, false, false, -1, -1, -1, -1 };
	db_text(s, ":id", c->id);
	if (db_step(s) == 1)
		*r = (struct row){ true, strcmp(db_col_text(s, 4), c->spec) != 0, strcmp(db_col_text(s, 5), p->table->file) == 0,
		    db_col_int(s, 0), db_col_int(s, 1), db_col_int(s, 2), db_col_int(s, 3) };
	db_reset(s);
}

/* Is its last job still to be done?  *settled: when it was not any more, -1: nobody knows. */
static bool
open_job(struct db *db, int64_t id, bool *runs, int64_t *settled)
{
	struct stmt *s = db_prepare(db, LAST);
	bool open = false;

	*settled = -1;
	*runs = false;
	db_int(s, ":id", id);
	if (id != -1 && db_step(s) == 1) {
		*settled = db_col_int(s, 1);
		open = *settled == -1;
		*runs = strcmp(db_col_text(s, 0), "claimed") == 0;
	}
	db_reset(s);
	return open;
}

/* ---- before the lock ----------------------------------------------------- */

static int
check_clock(struct pass *p)
{
	char text[WHEN_TEXT], far[WHEN_TEXT];
	int64_t ahead = p->now - p->seen;

	if (p->seen == -1 || p->force || (ahead <= AHEAD_MS && -ahead <= BEHIND_MS))
		return Q_OK;
	return db_fail(p->db, Q_TEMP, "the clock is %s %s the last pass, %s; nothing was done; if it is right, next: qcron --force",
	    when_brief(far, ahead > 0 ? ahead : -ahead), ahead > 0 ? "ahead of" : "behind", when_text(text, p->seen, false));
}

static int
plan(struct pass *p, const struct cron *c, struct plan *plan)
{
	static int64_t at[CRON_KEEP_MAX];
	const struct row r = plan->row;
	const char *why;
	int64_t settled, from = r.mark;
	bool runs;

	free(plan->at);
	*plan = (struct plan){ .row = r };
	if (!r.known || r.changed)
		plan->news = r.known ? "changed" : "new";
	else if (r.here && r.mark < p->last - LEVEL_MS)
		plan->news = "back";
	if (plan->news != NULL)
		from = p->last;
	plan->mark = p->now > from || p->force ? p->now : from;
	if (!r.known || r.changed)
		return Q_OK;		/* nothing fires at once */
	if (c->kind != CRON_AFTER) {
		if (from < p->now && !cron_due(c, from, p->now, at, &plan->n, &plan->missed, &plan->first, &why))
			return db_fail(p->db, Q_TEMP, "%s: zone %s: %s", c->id, c->zone, why);
	} else if (plan->news == NULL && !open_job(p->db, r.job, &runs, &settled)) {
		settled = settled > r.slot ? settled : r.slot;
		settled = settled > r.from ? settled : r.from;
		at[0] = (settled + 999) / 1000 * 1000 + c->step_ms;
		plan->n = at[0] <= p->now;
	}
	if (plan->n > 0 && (plan->at = malloc((size_t)plan->n * sizeof *at)) == NULL)
		return db_fail(p->db, Q_TEMP, "out of memory");
	if (plan->n > 0)
		memcpy(plan->at, at, (size_t)plan->n * sizeof *at);
	p->adds |= plan->n > 0;
	return db_status(p->db);
}

static int
plan_all(struct pass *p)
{
	const struct cron_table *t = p->table;

	p->last = p->seen = -1;
	p->adds = false;
	for (size_t i = 0; i < t->n; i++) {
		struct row *r = &p->plans[i].row;

		read_row(p, &t->list[i], r);
		p->seen = r->mark > p->seen ? r->mark : p->seen;
		p->last = r->here && r->mark > p->last ? r->mark : p->last;
	}
	if (db_status(p->db) != Q_OK || check_clock(p) != Q_OK)
		return db_status(p->db);
	for (size_t i = 0; i < t->n; i++)
		if (plan(p, &t->list[i], &p->plans[i]) != Q_OK)
			break;
	when_leave();
	return db_status(p->db);
}

/* ---- under it ------------------------------------------------------------ */

/* Does everything stand as it was when it was counted? */
static bool
stands(struct pass *p)
{
	bool runs;
	int64_t settled;

	for (size_t i = 0; i < p->table->n; i++) {
		const struct cron *c = &p->table->list[i];
		const struct plan *plan = &p->plans[i];
		struct row r;

		read_row(p, c, &r);
		if (r.known != plan->row.known || r.changed != plan->row.changed || r.mark != plan->row.mark || r.job != plan->row.job ||
		    (c->kind == CRON_AFTER && plan->n > 0 && open_job(p->db, r.job, &runs, &settled)))
			return false;
	}
	return true;
}

static void note(struct pass *, const struct cron *, int64_t slot, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static void
note(struct pass *p, const struct cron *c, int64_t slot, const char *fmt, ...)
{
	char text[WHEN_TEXT];
	va_list ap;

	if (p->log == NULL)
		return;
	fprintf(p->log, "%s: %s: ", c->id, when_text(text, slot, false));
	va_start(ap, fmt);
	vfprintf(p->log, fmt, ap);
	va_end(ap);
	putc('\n', p->log);
}

static bool
cancel(struct pass *p, const struct cron *c, struct plan *plan, int64_t slot, int64_t job)
{
	const char *was;

	if (job == -1 || job_cancel(p->db, job, p->now, &was) != Q_OK)
		return false;
	note(p, c, slot, "replaces job %" PRId64, job);
	plan->overlapped++;
	return true;
}

/* One that is retried when a later one waits already. */
static int64_t
waiting(struct db *db, const struct cron *c)
{
	struct stmt *s = db_prepare(db, WAITS);

	db_text(s, ":queue", c->queue);
	db_text(s, ":id", c->id);
	return db_only(s);
}

/* One slot, to a job or not. */
static int
fill(struct pass *p, const struct cron *c, struct plan *plan, int64_t slot)
{
	char key[CRON_KEY];
	struct job_new new = { .queue = c->queue, .type = c->id, .key = key, .zone = c->zone, .priority = -1, .event_ms = slot,
	    .attempts = -1, .window_ms = -1, .base_ms = -1, .cap_ms = -1, .payload = c->payload, .payload_len = strlen(c->payload) };
	enum job_added added;
	bool runs;
	int64_t settled;

	if (c->overlap != OVERLAP_ALLOW && open_job(p->db, plan->row.job, &runs, &settled)) {
		if (c->overlap == OVERLAP_SKIP) {
			note(p, c, slot, "dropped, job %" PRId64 " is not settled", plan->row.job);
			plan->overlapped++;
			return Q_OK;
		}
		if (!runs)
			cancel(p, c, plan, slot, plan->row.job);
	}
	while (c->overlap == OVERLAP_REPLACE && cancel(p, c, plan, slot, waiting(p->db, c)))
		continue;
	new.due_ms = cron_job(c, slot, key);
	if (c->overlap == OVERLAP_REPLACE)	/* behind the one that runs, not beside it */
		new.entity = c->id;
	if (job_add(p->db, &new, p->now, &plan->row.job, &added) == Q_OK) {
		plan->row.slot = slot;
		note(p, c, slot, "%sjob %" PRId64, added == ADD_NEW ? "" : "was there, ", plan->row.job);
	}
	return db_status(p->db);
}

static int
apply(struct pass *p, const struct cron *c, struct plan *plan)
{
	struct row *r = &plan->row;
	struct stmt *s;

	if (plan->news != NULL)
		note(p, c, plan->mark, "%s, its slots count from here", plan->news);
	if (plan->missed == 1)
		note(p, c, plan->first, "missed");
	else if (plan->missed > 1)
		note(p, c, plan->first, "missed, and %" PRId64 " after it", plan->missed - 1);
	for (int i = 0; i < plan->n && db_status(p->db) == Q_OK; i++)
		fill(p, c, plan, plan->at[i]);
	s = db_prepare(p->db, PUT);
	db_text(s, ":id", c->id);
	db_text(s, ":spec", c->spec);
	db_text(s, ":file", p->table->file);
	db_int(s, ":mark", plan->mark);
	db_int(s, ":from", plan->news != NULL || r->from > plan->mark ? plan->mark : r->from);
	db_opt(s, ":slot", r->slot);
	db_opt(s, ":job", r->job);
	db_int(s, ":missed", plan->missed);
	db_int(s, ":overlapped", plan->overlapped);
	db_run(s);
	return db_status(p->db);
}

static int
apply_all(struct pass *p, bool *again)
{
	if (db_begin(p->db, p->adds) != Q_OK)
		return db_status(p->db);
	*again = !stands(p) && db_status(p->db) == Q_OK;
	for (size_t i = 0; i < p->table->n && !*again && db_status(p->db) == Q_OK; i++)
		apply(p, &p->table->list[i], &p->plans[i]);
	if (*again || db_status(p->db) != Q_OK) {
		db_rollback(p->db);
		return db_status(p->db);
	}
	return db_commit(p->db);
}

int
schedule_pass(struct db *db, struct cron_table *t, int64_t now, bool force, FILE *log)
{
	struct pass p = { .db = db, .table = t, .plans = calloc(t->n + 1, sizeof *p.plans), .now = now, .force = force, .log = log };
	bool again = true;
	int rc = Q_OK;

	if (p.plans == NULL)
		return db_fail(db, Q_TEMP, "out of memory");
	if (t->n > 0)
		rc = db_tables(db, FOR_QCRON);
	while (rc == Q_OK && t->n > 0 && again)
		if ((rc = plan_all(&p)) == Q_OK)
			rc = apply_all(&p, &again);
	for (size_t i = 0; i < t->n; i++) {
		const struct row *r = &p.plans[i].row;

		t->list[i].twice = r->known && r->changed && now - r->from < TWICE_MS;
		free(p.plans[i].at);
	}
	t->ahead_ms = t->n > 0 && !force && p.seen - now > BACK_MS ? p.seen : -1;
	free(p.plans);
	return rc;
}
