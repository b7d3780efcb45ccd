/* backfill.c - plans of qbackfill: windows of history, and how far each is */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "backfill.h"
#include "job.h"

static const char READ[] = "SELECT kind, start, stop, step, config, flag FROM q_backfill WHERE name = :name";
static const char MAKE[] =
	"INSERT OR REPLACE INTO q_backfill(name, kind, start, stop, step, config, made_ms)\n"
	"VALUES(:name, :kind, :start, :stop, :step, :config, :now)";
static const char WINDOW[] = "INSERT INTO q_window(name, start, stop, state) VALUES(:name, :start, :stop, 'todo')";
static const char DROP[] = "DELETE FROM q_backfill WHERE name = :name";
static const char DROP_WINDOWS[] = "DELETE FROM q_window WHERE name = :name";
static const char DROP_ONE[] = "DELETE FROM q_window WHERE name = :name AND start = :start";
static const char FLAG[] = "UPDATE q_backfill SET flag = :flag WHERE name = :name";
static const char RETRY[] = "UPDATE q_window SET state = 'todo', note = NULL WHERE name = :name AND state = 'failed'";
static const char COUNT[] =
	"SELECT count(*) FILTER (WHERE state = 'todo' OR state = 'doing'), count(*) FILTER (WHERE state = 'done'),\n"
	"       count(*) FILTER (WHERE state = 'failed'), coalesce(sum(items), 0), coalesce(sum(fresh), 0), coalesce(sum(pages), 0)\n"
	"  FROM q_window WHERE name = :name";
static const char EACH[] =
	"SELECT start, stop, state, walk, pages, items, fresh, note FROM q_window WHERE name = :name ORDER BY start";
static const char FIRST[] =
	"SELECT start, stop, state, walk, pages, items, fresh, note FROM q_window\n"
	" WHERE name = :name AND state = :state AND state <> 'done' ORDER BY start LIMIT 1";
static const char LAST[] =
	"SELECT start, stop, state, walk, pages, items, fresh, note FROM q_window\n"
	" WHERE name = :name AND state = :state AND state <> 'done' ORDER BY start DESC LIMIT 1";
static const char SAVE[] =
	"UPDATE q_window SET stop = :stop, state = :state, walk = :walk, pages = :pages, items = :items, fresh = :fresh,\n"
	"       finished_ms = :now, note = :note\n"
	" WHERE name = :name AND start = :start";
static const char OWNER[] =
	"SELECT fence, worker FROM q_hold WHERE kind = 'backfill' AND name = :name AND lease_ms > :boot ORDER BY fence DESC LIMIT 1";
static const char DEPTH[] =
	"SELECT count(*) FROM (SELECT 1 FROM q_job WHERE queue = :queue AND ready_ms IS NOT NULL LIMIT :most)";

static struct stmt *
of(struct db *db, const char *sql, const char *name)
{
	struct stmt *s = db_prepare(db, sql);

	db_text(s, ":name", name);
	return s;
}

int
plan_read(struct db *db, const char *name, struct plan *p)
{
	struct stmt *s;
	bool found;

	memset(p, 0, sizeof *p);
	p->name = name;
	if (db_poll_tables(db) != Q_OK)
		return db_status(db);
	s = of(db, READ, name);
	if ((found = db_step(s) == 1)) {
		p->time = strcmp(db_col_text(s, 0), "time") == 0;
		p->start = db_col_int(s, 1);
		p->stop = db_col_int(s, 2);
		p->step = db_col_int(s, 3);
		snprintf(p->config, sizeof p->config, "%s", db_col_text(s, 4));
		snprintf(p->flag, sizeof p->flag, "%s", db_col_text(s, 5) != NULL ? db_col_text(s, 5) : "");
	}
	db_reset(s);
	return db_status(db) != Q_OK ? db_status(db) : found ? Q_OK : Q_NO;
}

static void
put_window(struct db *db, const char *name, int64_t start, int64_t stop)
{
	struct stmt *s = of(db, WINDOW, name);

	db_int(s, ":start", start);
	db_int(s, ":stop", stop);
	db_run(s);
}

int
plan_make(struct db *db, const struct plan *p, int64_t now)
{
	struct stmt *s = of(db, DROP_WINDOWS, p->name);

	db_run(s);
	s = of(db, MAKE, p->name);
	db_text(s, ":kind", p->time ? "time" : "int");
	db_int(s, ":start", p->start);
	db_int(s, ":stop", p->stop);
	db_int(s, ":step", p->step);
	db_text(s, ":config", p->config);
	db_int(s, ":now", now);
	db_run(s);
	for (int64_t at = p->start; at < p->stop && db_status(db) == Q_OK; at += p->step)
		put_window(db, p->name, at, p->step < p->stop - at ? at + p->step : p->stop);
	return db_status(db);
}

int
plan_drop(struct db *db, const char *name)
{
	db_run(of(db, DROP_WINDOWS, name));
	return db_run(of(db, DROP, name)) == 0 ? Q_NO : db_status(db);
}

int
plan_flag(struct db *db, const char *name, const char *flag)
{
	struct stmt *s = of(db, FLAG, name);

	db_text(s, ":flag", flag);
	return db_run(s) == 0 ? Q_NO : db_status(db);
}

int
plan_retry(struct db *db, const char *name)
{
	db_run(of(db, RETRY, name));
	return db_status(db);
}

int
plan_count(struct db *db, const char *name, struct plan_count *c)
{
	struct stmt *s = of(db, COUNT, name);

	memset(c, 0, sizeof *c);
	if (db_step(s) == 1)
		*c = (struct plan_count){ db_col_int(s, 0), db_col_int(s, 1), db_col_int(s, 2), db_col_int(s, 3), db_col_int(s, 4), db_col_int(s, 5) };
	db_reset(s);
	return db_status(db);
}

/* Borrowed from the row, until the next step. */
static void
get_window(struct stmt *s, struct window *w)
{
	*w = (struct window){ .start = db_col_int(s, 0), .stop = db_col_int(s, 1), .walk = (char *)db_col_text(s, 3), .pages = db_col_int(s, 4),
	    .items = db_col_int(s, 5), .fresh = db_col_int(s, 6), .note = db_col_text(s, 7) };
	snprintf(w->state, sizeof w->state, "%s", db_col_text(s, 2));
}

int
plan_each(struct db *db, const char *name, int (*each)(const struct window *, void *), void *arg)
{
	struct stmt *s = of(db, EACH, name);
	struct window w;
	int rc = Q_OK;

	while (rc == Q_OK && db_step(s) == 1) {
		get_window(s, &w);
		rc = each(&w, arg);
	}
	db_reset(s);
	return db_status(db) != Q_OK ? db_status(db) : rc;
}

int
plan_next(struct db *db, const char *name, bool newest, struct window *w)
{
	static const char *const STATES[] = { "doing", "todo" };
	struct stmt *s;
	bool found = false;

	for (int i = 0; i < 2 && !found; i++) {
		s = of(db, newest ? LAST : FIRST, name);
		db_text(s, ":state", STATES[i]);
		if ((found = db_step(s) == 1)) {
			get_window(s, w);
			w->note = NULL;
			if (w->walk != NULL && (w->walk = strdup(w->walk)) == NULL)
				db_fail(db, Q_TEMP, "out of memory");
		}
		db_reset(s);
	}
	return db_status(db) != Q_OK ? db_status(db) : found ? Q_OK : Q_NO;
}

int
window_save(struct db *db, const char *name, const struct window *w, int64_t now)
{
	struct stmt *s = of(db, SAVE, name);

	db_int(s, ":start", w->start);
	db_int(s, ":stop", w->stop);
	db_text(s, ":state", w->state);
	db_text(s, ":walk", w->walk);
	db_int(s, ":pages", w->pages);
	db_int(s, ":items", w->items);
	db_int(s, ":fresh", w->fresh);
	db_opt(s, ":now", strcmp(w->state, "done") == 0 || strcmp(w->state, "failed") == 0 ? now : -1);
	db_text(s, ":note", w->note);
	if (db_run(s) == 0)
		db_fail(db, Q_TEMP, "%s: its plan was dropped", name);
	return db_status(db);
}

int
window_split(struct db *db, const char *name, const struct window *w, int64_t mid)
{
	struct stmt *s = of(db, DROP_ONE, name);

	db_int(s, ":start", w->start);
	db_run(s);
	put_window(db, name, w->start, mid);
	put_window(db, name, mid, w->stop);
	return db_status(db);
}

/* ---- one process ---- */

/* "host:pid" of this host, whose process is gone. */
static bool
is_dead(const char *worker, const char *mine)
{
	const char *colon = worker != NULL ? strrchr(worker, ':') : NULL, *own = strrchr(mine, ':');
	int64_t pid;

	return colon != NULL && own != NULL && colon - worker == own - mine && strncmp(worker, mine, (size_t)(own - mine)) == 0 &&
	    text_int(colon + 1, 1, INT32_MAX, &pid) && kill((pid_t)pid, 0) == -1 && errno == ESRCH;
}

int
plan_own(struct db *db, const char *name, const char *worker, int64_t lease_ms, int64_t now, int64_t *fence)
{
	struct stmt *s = of(db, OWNER, name);
	char other[300] = "";
	int64_t old = -1;

	db_int(s, ":boot", job_boot(db));
	if (db_step(s) == 1) {
		old = db_col_int(s, 0);
		snprintf(other, sizeof other, "%s", db_col_text(s, 1) != NULL ? db_col_text(s, 1) : "");
	}
	db_reset(s);
	if (old != -1 && !is_dead(other, worker))
		return db_fail(db, Q_TEMP, "%s: another run is under way (%s)", name, other);
	if (old != -1)
		hold_end(db, "backfill", name, old);
	return hold_take(db, "backfill", name, lease_ms, worker, now, fence);
}

int
plan_keep(struct db *db, const char *name, int64_t fence, int64_t lease_ms)
{
	return hold_renew(db, "backfill", name, fence, lease_ms);
}

int
plan_leave(struct db *db, const char *name, int64_t fence)
{
	return hold_end(db, "backfill", name, fence);
}

int64_t
plan_depth(struct db *db, const char *queue, int64_t most)
{
	struct stmt *s = db_prepare(db, DEPTH);

	db_text(s, ":queue", queue);
	db_int(s, ":most", most);
	return db_only(s);
}
