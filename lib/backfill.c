/* backfill.c - plans of qbackfill: windows of history, and how far each is */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "backfill.h"
#include "job.h"
#include "sync.h"

static const char READ[] = "SELECT kind, start, stop, step, config, flag FROM q_backfill WHERE name = :name";
static const char MAKE[] =
	"INSERT OR REPLACE INTO q_backfill(name, kind, start, stop, step, config, made_ms)\n"
	"VALUES(:name, :kind, :start, :stop, :step, :config, :now)";
static const char WINDOW[] =
	"INSERT OR REPLACE INTO q_window(name, start, stop, state, pages, items, fresh)\n"
	"VALUES(:name, :start, :stop, 'todo', :pages, :items, :fresh)";
static const char DROP[] = "DELETE FROM q_backfill WHERE name = :name";
static const char DROP_WINDOWS[] = "DELETE FROM q_window WHERE name = :name";
static const char FLAG[] = "UPDATE q_backfill SET flag = :flag WHERE name = :name";
static const char RETRY[] = "UPDATE q_window SET state = 'todo', walk = NULL, items = 0, note = NULL WHERE name = :name AND state = 'failed'";
static const char GO_ON[] = "UPDATE q_backfill SET flag = NULL WHERE name = :name AND flag = 'stop'";
static const char COUNT[] =
	"SELECT count(*) FILTER (WHERE state = 'todo' OR state = 'doing'), count(*) FILTER (WHERE state = 'done'),\n"
	"       count(*) FILTER (WHERE state = 'failed'), coalesce(sum(items), 0), coalesce(sum(fresh), 0), coalesce(sum(pages), 0)\n"
	"  FROM q_window WHERE name = :name";
static const char EACH[] =
	"SELECT start, stop, state, walk, pages, items, fresh, note FROM q_window WHERE name = :name ORDER BY start";
/* Each start is >= 0; said, so that the index of open windows is preferred to all of the plan. */
static const char FIRST[] =
	"SELECT start, stop, state, walk, pages, items, fresh, note FROM q_window\n"
	" WHERE name = :name AND state = :state AND state <> 'done' AND start >= 0 ORDER BY start LIMIT 1";
static const char LAST[] =
	"SELECT start, stop, state, walk, pages, items, fresh, note FROM q_window\n"
	" WHERE name = :name AND state = :state AND state <> 'done' AND start >= 0 ORDER BY start DESC LIMIT 1";
static const char SAVE[] =
	"UPDATE q_window SET stop = :stop, state = :state, walk = :walk, pages = :pages, items = :items, fresh = :fresh,\n"
	"       finished_ms = :now, note = :note\n"
	" WHERE name = :name AND start = :start";
static const char OWNER[] =
	"SELECT fence, worker FROM q_hold WHERE kind = 'backfill' AND name = :name AND lease_ms > :boot ORDER BY fence DESC LIMIT 1";
/* Those that may be claimed by their time, and those behind another of their entity. */
static const char DEPTH[] =
	"SELECT count(*) FROM (SELECT 1 FROM q_job WHERE queue = :queue AND ready_ms IS NOT NULL\n"
	" UNION ALL SELECT 1 FROM q_job WHERE queue = :queue AND entity IS NOT NULL AND finished_ms IS NULL AND ready_ms IS NULL LIMIT :most)";

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
	if (db_tables(db, FOR_QPOLL) != Q_OK)
		return db_status(db);
	s = of(db, READ, name);
	if ((found = db_step(s) == 1)) {
		p->time = strcmp(db_col_text(s, 0), "time") == 0;
		p->start = db_col_int(s, 1);
		p->stop = db_col_int(s, 2);
		p->step = db_col_int(s, 3);
		snprintf(p->config, sizeof p->config, "%s", db_col_text(s, 4));
		snprintf(p->flag, sizeof p->flag, "%s", db_col_opt(s, 5) != NULL ? db_col_opt(s, 5) : "");
	}
	db_reset(s);
	return db_status(db) != Q_OK ? db_status(db) : found ? Q_OK : Q_NO;
}

/* ---- values ---- */

char *
plan_value(const struct plan *p, int64_t v, char buf[WHEN_TEXT])
{
	if (p->time)
		return when_text(buf, v, v % 1000 != 0);
	snprintf(buf, WHEN_TEXT, "%" PRId64, v);
	return buf;
}

/* The next whole ms, or this one. */
static int64_t
whole(const struct cursor_spec *spec, const struct cursor_key *key)
{
	struct cursor_key back;
	int64_t v;

	cursor_ms(spec, key, &v);
	cursor_instant(spec, v, &back);
	return v + (v >= 0 && cursor_compare(&back, key) < 0);
}

/* A number, or any time; p->time says which it must be. */
static int
value(struct db *db, const struct plan *p, const char *zone, const char *option, const char *text, int64_t *v)
{
	struct cursor_spec spec = { .type = CURSOR_TIME, .zone = zone != NULL ? zone : "UTC" };
	struct cursor_key key;
	const char *why;

	if (!p->time)
		return text_int(text, 0, INT64_C(1) << 53, v) ? Q_OK :
		    db_fail(db, Q_USAGE, "%s: '%s' is not a whole number from 0 to 2^53, as the other values are", option, text);
	if (!cursor_key(&spec, text, &key, &why))
		return db_fail(db, Q_USAGE, "%s: '%s' %s", option, text, why);
	if (strcmp(option, "--from") != 0)
		*v = whole(&spec, &key);
	else
		cursor_ms(&spec, &key, v);
	return *v < 0 ? db_fail(db, Q_USAGE, "%s: '%s' is before 1970", option, text) : Q_OK;
}

static int
cursor_of_poll(struct db *db, const struct source *src, struct plan *p)
{
	static const struct pager NONE = { .src = NULL };
	struct sync state;

	if (sync_read(&state, db, src, &NONE) == Q_OK) {
		if (state.cursor == NULL)
			db_fail(db, Q_CONFIG, "%s: qpoll has no cursor yet, where this would end; next: run qpoll first, or say --to", p->name);
		else if (p->time)
			p->stop = whole(&src->spec, &state.key);
		else if (!text_int(state.cursor, 0, INT64_C(1) << 53, &p->stop))
			db_fail(db, Q_CONFIG, "%s: the cursor of qpoll is larger than what windows can be counted to, 2^53; next: say --to", p->name);
	}
	sync_free(&state);
	return db_status(db);
}

int
plan_parse(struct db *db, const struct source *src, const char *from, const char *to, const char *step, struct plan *p)
{
	const char *why, *zone = src != NULL ? src->spec.zone : NULL;
	int64_t number;

	p->time = src != NULL ? src->spec.type <= CURSOR_EPOCH_US : !text_int(from, 0, INT64_MAX, &number);
	snprintf(p->config, sizeof p->config, "%s", src != NULL ? src->config : "");
	if (value(db, p, zone, "--from", from, &p->start) != Q_OK || (to != NULL && value(db, p, zone, "--to", to, &p->stop) != Q_OK))
		return db_status(db);
	if (p->time ? !when_duration(step, &p->step, &why) || p->step < 1 : !text_int(step, 1, INT64_C(1) << 53, &p->step))
		return db_fail(db, Q_USAGE, "--step: '%s' is not %s", step, p->time ? "a duration such as 1d" : "a whole number from 1 on");
	if (to == NULL && p->stop == 0 && cursor_of_poll(db, src, p) != Q_OK)
		return db_status(db);
	if (p->stop <= p->start)
		return db_fail(db, Q_USAGE, to != NULL ? "--to is not after --from" : "--from is not before the cursor of qpoll");
	if (src != NULL && p->time && to != NULL && p->stop > when_now())
		return db_fail(db, Q_USAGE, "--to lies in the future, and what is still to come would be missed; leave it out to end at the cursor of qpoll");
	if ((p->stop - p->start - 1) / p->step >= PLAN_WINDOWS_MAX)
		return db_fail(db, Q_USAGE, "--step: that makes more than %d windows", PLAN_WINDOWS_MAX);
	return Q_OK;
}

/* ---- plans ---- */

static void
put_window(struct db *db, const char *name, const struct window *w)
{
	struct stmt *s = of(db, WINDOW, name);

	db_int(s, ":start", w->start);
	db_int(s, ":stop", w->stop);
	db_int(s, ":pages", w->pages);
	db_int(s, ":items", w->items);
	db_int(s, ":fresh", w->fresh);
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
		put_window(db, p->name, &(struct window){ .start = at, .stop = p->step < p->stop - at ? at + p->step : p->stop });
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
	db_run(of(db, GO_ON, name));
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
	*w = (struct window){ .start = db_col_int(s, 0), .stop = db_col_int(s, 1), .walk = (char *)db_col_opt(s, 3), .pages = db_col_int(s, 4),
	    .items = db_col_int(s, 5), .fresh = db_col_int(s, 6), .note = db_col_opt(s, 7) };
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
window_split(struct db *db, const struct plan *p, const struct source *src, const struct window *w)
{
	int64_t grain = cursor_grain(&src->spec), mid = w->start + (w->stop - w->start) / 2;
	struct window first = *w, second = { .stop = w->stop };

	if (!p->time || grain == 0)	/* texts of times are mostly read in whole seconds */
		grain = p->time && src->spec.type <= CURSOR_EPOCH ? 1000 : 1;
	mid -= mid % grain;
	if (mid <= w->start)
		mid += grain;
	if (mid >= w->stop)
		return Q_NO;
	first.stop = second.start = mid;
	put_window(db, p->name, &first);
	put_window(db, p->name, &second);
	return db_status(db);
}

void
window_ask(const struct plan *p, const struct source *src, const struct window *win, struct window_ask *a, struct walk *w)
{
	json_t *at = win->walk != NULL ? json_loads(win->walk, 0, NULL) : NULL;
	const char *cursor = json_string_value(json_object_get(at, "cursor")), *why;
	char plain[CURSOR_TEXT];
	struct cursor_key key;

	if (p->time) {
		cursor_instant(&src->spec, win->start, &a->start);
		cursor_render(&src->spec, &a->start, plain);
		cursor_bound(&src->spec, plain, &a->start, false, a->from, &w->from.key);
		cursor_upper(&src->spec, win->stop, a->to);
		cursor_instant(&src->spec, win->stop, &w->until);
	} else {
		snprintf(a->from, sizeof a->from, "%" PRId64, win->start);
		snprintf(a->to, sizeof a->to, "%" PRId64, win->stop);
		cursor_key(&src->spec, a->from, &a->start, &why);
		cursor_key(&src->spec, a->to, &w->until, &why);
		w->from.key = a->start;
	}
	w->from.set = true;
	snprintf(w->from.text, sizeof w->from.text, "%s", a->from);
	if (cursor != NULL && cursor_key(&src->spec, cursor, &key, &why))
		cursor_bound(&src->spec, cursor, &key, false, w->from.text, &w->from.key);
	json_decref(at);
	walk_resume(w, win->walk);
	w->depth = w->pointer != NULL ? win->items : 0;
	w->pointed |= w->pointer != NULL;
}

static bool
wanted(const struct window_ask *a, const struct item *it)
{
	return !it->old && (it->key.n == 0 || cursor_compare(&it->key, &a->start) >= 0);
}

int64_t
window_wants(const struct window_ask *a, const struct page *page)
{
	int64_t n = 0;

	for (size_t i = 0; i < page->n; i++)
		n += wanted(a, &page->items[i]);
	return n;
}

int
window_add(struct db *db, const struct source *src, const struct window_ask *a, const struct page *page, int64_t priority, int64_t now, struct window *w)
{
	bool new;

	for (size_t i = 0; i < page->n && db_status(db) == Q_OK; i++)
		if (wanted(a, &page->items[i]) && sync_add(db, src, &page->items[i], priority, now, &new) == Q_OK) {
			w->items++;
			w->fresh += new;
		}
	w->pages += page->n > 0;
	return db_status(db);
}

void
window_go_on(const struct source *src, const char *cursor, const char *position, bool last, struct window *w)
{
	json_t *at;

	if (last)
		w->walk = NULL;
	else if (src->order != ORDER_ASC && position != NULL)
		w->walk = *position != '\0' ? strdup(position) : NULL;
	else if (src->order == ORDER_ASC && cursor != NULL) {
		at = json_pack("{s:s}", "cursor", cursor);
		w->walk = json_dumps(at, JSON_COMPACT);
		json_decref(at);
	}
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
		snprintf(other, sizeof other, "%s", db_col_opt(s, 1) != NULL ? db_col_opt(s, 1) : "");
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
