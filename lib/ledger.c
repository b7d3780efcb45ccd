/*
 * ledger.c - reports: what became of the attempts of a window, how late they began, what waits now.
 *
 * The ledger has no index but its id: a second one would cost each settlement a page.  It is append-only and
 * in the order of finished_ms, but for clock steps, so it is read backwards from its end.  What reports
 * count is decided in one place, count().
 */

#define _GNU_SOURCE		/* tdestroy */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "late.h"

enum {
	PAGE = 1000,			/* rows of one read transaction: a reader that stays keeps the log from being copied */
	PRIORITIES = 10,
	MANY = 1000,			/* values for which a sort by bytes is quicker */
	NEAR = 256,			/* a power of 2 */
	FRESH_MS = 60 * 1000,		/* a worker that a crontab starts each minute may be about to come */
	STEP_MS = 25 * 60 * 60 * 1000	/* the ledger is in order but for clock steps up to this */
};

static const char LEDGER[] =
	"SELECT id, queue, type, attempt, due_ms, started_ms, finished_ms, outcome, state = 'dead'\n"
	"  FROM q_attempt WHERE id < :before\n"
	" ORDER BY id DESC LIMIT :n";

static const char FINISHED[] = "SELECT finished_ms FROM q_attempt WHERE id < :before ORDER BY id DESC LIMIT 1";

/* Queues with something claimable or delayed; claimed; of entities. */
static const char NEXT_QUEUE[] = "SELECT min(queue) FROM q_job WHERE ready_ms IS NOT NULL AND queue > :last";
static const char NEXT_CLAIMED[] = "SELECT min(queue) FROM q_job WHERE lease_ms IS NOT NULL AND queue > :last";
static const char NEXT_ENTITY[] = "SELECT min(queue) FROM q_job WHERE entity IS NOT NULL AND finished_ms IS NULL AND queue > :last";

static const char WAITING[] =
	"SELECT count(*), min(ready_ms) FROM q_job\n"
	" WHERE queue = :queue AND priority = :priority AND ready_ms <= :now";

static const char CLAIMED[] = "SELECT due_ms, claimed_ms, type FROM q_job WHERE queue = :queue AND lease_ms IS NOT NULL";

/* Is anything due that waits for its entity?  Among the first so many. */
static const char BLOCKED[] =
	"SELECT 1 FROM (SELECT due_ms, ready_ms, lease_ms FROM q_job\n"
	"                WHERE queue = :queue AND entity IS NOT NULL AND finished_ms IS NULL LIMIT :n)\n"
	" WHERE ready_ms IS NULL AND lease_ms IS NULL AND due_ms <= :now LIMIT 1";

/* One by one, for their types: those level with the last one, then those beyond. */
#define WAITING_ROWS \
	"SELECT id, ready_ms, type FROM q_job\n" \
	" WHERE queue = :queue AND priority = :priority AND ready_ms IS NOT NULL"
static const char WAITING_TYPES[] =
	WAITING_ROWS " AND ready_ms = :at AND id > :after\n"
	"UNION ALL\n"
	WAITING_ROWS " AND ready_ms > :at AND ready_ms <= :now\n"
	" ORDER BY 2, 1 LIMIT :n";

struct collect {
	struct db *db;
	const struct ledger_want *want;
	struct ledger *to;
	void *tree;			/* of its rows, by name */
	struct report *near[NEAR];	/* rows met lately, by a hash of their names */
	int64_t burn_ms[BURNS];		/* where the windows begin, */
	int64_t from_ms;		/* ... and the first of all */
};

/* ---- rows ---- */

static int
compare(const char *a, size_t an, const char *b, size_t bn)
{
	int c = memcmp(a, b, an < bn ? an : bn);

	return c != 0 ? c : (an > bn) - (an < bn);
}

static int
by_name(const void *a, const void *b)
{
	const struct report *x = a, *y = b;
	int c = compare(x->queue, x->queue_len, y->queue, y->queue_len);

	if (c == 0)
		c = y->whole - x->whole;
	if (c == 0)
		c = compare(x->type, x->type_len, y->type, y->type_len);
	return c != 0 ? c : (x->bin > y->bin) - (x->bin < y->bin);
}

/* In the order of the operands, then by name. */
static int
by_place(const void *a, const void *b)
{
	const struct report *x = *(struct report *const *)a, *y = *(struct report *const *)b;

	return x->place != y->place ? (x->place > y->place) - (x->place < y->place) : by_name(x, y);
}

/* Which operand a queue is; -1: none, and there are some. */
static int
place_of(const struct ledger_want *w, struct name queue)
{
	for (int i = 0; i < w->nqueues; i++)
		if (strlen(w->queues[i]) == queue.n && memcmp(w->queues[i], queue.p, queue.n) == 0)
			return i;
	return w->nqueues == 0 ? 0 : -1;
}

static struct report *
new_row(struct collect *c, const struct report *like)
{
	struct ledger *to = c->to;
	struct report **rows, *r, **slot = NULL;
	char *names;

	if ((to->n & (to->n - 1)) == 0) {
		if ((rows = realloc(to->rows, (to->n == 0 ? 1 : 2 * (size_t)to->n) * sizeof *rows)) == NULL)
			return NULL;
		to->rows = rows;
	}
	if ((r = malloc(sizeof *r + like->queue_len + like->type_len + 2)) == NULL)
		return NULL;
	*r = *like;
	names = (char *)(r + 1);
	r->queue = memcpy(names, like->queue, like->queue_len);
	names[like->queue_len] = '\0';
	names += like->queue_len + 1;
	r->type = memcpy(names, like->type, like->type_len);
	names[like->type_len] = '\0';
	if ((slot = tsearch(r, &c->tree, by_name)) == NULL) {
		free(r);
		return NULL;
	}
	to->rows[to->n++] = r;
	return r;
}

/* The target of a row: that of its type, else of its queue. */
static void
set_slo(struct db *db, struct report *r)
{
	char name[SETTING_NAME];

	r->slo.target_ms = -1;
	if (memchr(r->queue, '\0', r->queue_len) != NULL || memchr(r->type, '\0', r->type_len) != NULL)
		return;
	if (r->type_len > 0 && snprintf(name, sizeof name, "%s/%s", r->queue, r->type) < (int)sizeof name)
		r->own_slo = setting_slo(db, name, &r->slo) == Q_OK;
	if (!r->own_slo && setting_slo(db, r->queue, &r->slo) == Q_OK)
		r->own_slo = r->type_len == 0;
}

static unsigned
hash(const struct report *r)
{
	unsigned h = (unsigned)r->bin * 2 + r->whole;

	for (size_t i = 0; i < r->queue_len; i++)
		h = (h ^ (unsigned char)r->queue[i]) * 16777619u;
	for (size_t i = 0; i < r->type_len; i++)
		h = (h ^ (unsigned char)r->type[i]) * 16777619u;
	return h ^ h >> 16;
}

/* The row of a queue and type; whole: that of the queue. */
static struct report *
row_of(struct collect *c, struct name queue, struct name type, int bin, bool whole)
{
	struct report like = { .queue = queue.p, .queue_len = queue.n, .type = "", .bin = bin, .whole = whole, .oldest_ms = -1,
	    .why = "", .started_ms = INT64_MIN }, *r, **slot, **near;

	if (!whole && (c->want->by_type || c->want->by_both)) {
		like.type = type.p;
		like.type_len = type.n;
	}
	near = &c->near[hash(&like) % NEAR];
	if (*near != NULL && by_name(&like, *near) == 0)
		return *near;
	if ((slot = tfind(&like, &c->tree, by_name)) != NULL)
		return *near = *slot;
	like.place = place_of(c->want, queue);
	if ((r = new_row(c, &like)) == NULL) {
		db_fail(c->db, Q_TEMP, "out of memory");
		return NULL;
	}
	set_slo(c->db, r);
	return *near = r;
}

static void
add_value(struct collect *c, struct values *v, int64_t ms, int64_t cell)
{
	int64_t *p;

	if (c->want->by_both)
		return;
	if (v->n == v->cap) {
		if ((p = realloc(v->v, (v->cap == 0 ? 8 : 2 * v->cap) * sizeof *p)) == NULL) {
			db_fail(c->db, Q_TEMP, "out of memory");
			return;
		}
		v->v = p;
		v->cap = v->cap == 0 ? 8 : 2 * v->cap;
	}
	v->v[v->n++] = (ms < LATE_MS_MAX ? ms : LATE_MS_MAX) * LATE_CELLS + cell;
}

/* From one instant to another, 0 if that lies before; rows of other programs may hold any number. */
static int64_t
apart(int64_t from, int64_t to)
{
	uint64_t ms = to > from ? (uint64_t)to - (uint64_t)from : 0;

	return ms < INT64_MAX ? (int64_t)ms : INT64_MAX;
}

/* ---- what counts ---- */

/*
 * Lateness is for how long work could have been claimed before somebody took it, so each attempt counts that
 * began.  A deferred one does, since its next attempt counts from a new due time, and the wait before it would
 * be forgotten; a released one does not, as its due time stays and all of the wait counts when it begins.
 * Time at work is that of attempts which ran to an end: nobody knows when a lost one ended, and a deferred
 * one did not work.  An attempt is spent if its job has one less left, or is done.
 */
static const struct outcome { const char *word; bool began, ended, spent; } OUTCOMES[] = {
	{ "done",	true,	true,	true },
	{ "failed",	true,	true,	true },
	{ "lost",	true,	false,	true },
	{ "deferred",	true,	false,	false },
	{ "released",	false,	false,	false },
	{ "superseded",	false,	false,	false }
};
enum { DONE, FAILED, LOST, DEFERRED, RELEASED, SUPERSEDED, NOUTCOMES };

/* Against the target: an attempt, or what runs or waits, as if it were one that ends now. */
static void
judge(struct collect *c, struct report *r, int64_t late, int64_t finished, int64_t n)
{
	bool over = late > r->slo.target_ms;

	if (r->slo.target_ms == -1)
		return;
	if (finished >= c->want->from_ms) {
		r->on.all += n;
		r->on.late += over ? n : 0;
	}
	for (int i = 0; c->want->burn > 0 && i <= c->want->burn; i++)
		if (finished >= c->burn_ms[i]) {
			r->burn[i].all += n;
			r->burn[i].late += over ? n : 0;
		}
}

/* Which part of the window; -1: it begins later. */
static int
bin_of(const struct ledger_want *w, int64_t ms)
{
	int lo = 0, hi = w->nedges;

	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;

		if (w->edges[mid] <= ms)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo - 1;
}

static void
count(struct collect *c, struct report *r, const struct line *e, int o)
{
	const struct ledger_want *w = c->want;
	int64_t late = apart(e->due, e->started);

	if (r == NULL)
		return;
	if (e->started > r->started_ms)
		r->started_ms = e->started;
	if (OUTCOMES[o].began)
		judge(c, r, late, e->finished, 1);
	if (e->finished < w->from_ms)
		return;
	r->seen = true;
	switch (o) {
	case DONE:
		r->done++;
		break;
	case LOST:
		r->lost++;
		/* fall through */
	case FAILED:
		++*(e->dead ? &r->dead : &r->failed);
		break;
	case DEFERRED:
		r->deferred++;
		break;
	case RELEASED:
		r->released++;
		break;
	case SUPERSEDED:
		r->superseded++;
		break;
	}
	/* Of a job's life (generation) one attempt is spent as the first, so this counts jobs. */
	if (OUTCOMES[o].spent && e->attempt == 1) {
		r->first++;
		r->first_done += o == DONE;
	}
	if (OUTCOMES[o].began)
		add_value(c, &r->late, late, w->cells == 0 ? 0 : (e->finished - w->from_ms) * w->cells / (w->now - w->from_ms + 1));
	if (OUTCOMES[o].ended)
		add_value(c, &r->run, apart(e->started, e->finished), 0);
}

static int
count_line(const struct line *e, void *arg)
{
	struct collect *c = arg;
	const struct ledger_want *w = c->want;
	int o = 0, bin = 0;

	if (e->finished < c->from_ms || e->finished > w->now)
		return Q_OK;
	while (o < NOUTCOMES && strcmp(e->outcome, OUTCOMES[o].word) != 0)
		o++;
	if (o == NOUTCOMES || place_of(w, e->queue) == -1 || (w->nedges > 0 && (bin = bin_of(w, e->finished)) == -1))
		return Q_OK;
	count(c, row_of(c, e->queue, e->type, bin, false), e, o);
	if (w->by_both)
		count(c, row_of(c, e->queue, e->type, bin, true), e, o);
	return db_status(c->db);
}

/* ---- reading ---- */

static struct name
col_name(struct stmt *s, int column)
{
	struct name name;

	if ((name.p = db_col_blob(s, column, &name.n)) == NULL)
		name.p = "";
	return name;
}

static struct line
line_of(struct stmt *s)
{
	return (struct line){ .queue = col_name(s, 1), .type = col_name(s, 2), .id = db_col_int(s, 0), .attempt = db_col_int(s, 3),
	    .due = db_col_int(s, 4), .started = db_col_int(s, 5), .finished = db_col_int(s, 6),
	    .outcome = db_col_text(s, 7), .dead = db_col_int(s, 8) == 1 };
}

/*
 * Backwards until a page's worth in a row finished before the window and a slack: so the cost is that of the window and
 * the slack, whatever the history, and a clock that was wrong for so long hides nothing.
 */
int
ledger_each(struct db *db, int64_t from_ms, int64_t slack_ms, int (*each)(const struct line *, void *), void *arg)
{
	int64_t before = INT64_MAX;
	struct line e;
	struct stmt *s;
	int n, old = 0, rc = Q_OK;

	do {
		s = db_prepare(db, LEDGER);
		db_int(s, ":before", before);
		db_int(s, ":n", PAGE);
		for (n = 0; rc == Q_OK && db_step(s) == 1; n++) {
			e = line_of(s);
			before = e.id;
			old = e.finished < from_ms - slack_ms ? old + 1 : 0;
			rc = each(&e, arg);
		}
		db_reset(s);
	} while (n == PAGE && old < PAGE && rc == Q_OK && db_status(db) == Q_OK);
	return db_status(db) != Q_OK ? db_status(db) : rc;
}

/* When the last attempt before an id finished; -1: there is none. */
static int64_t
finished_before(struct db *db, int64_t id)
{
	struct stmt *s = db_prepare(db, FINISHED);

	db_int(s, ":before", id);
	return db_only(s);
}

int
ledger_sample(struct db *db, int64_t from_ms, int64_t before, int pages, int rows, int (*each)(const struct line *, void *), void *arg)
{
	int64_t lo = 0, hi = before, mid, stride, last = INT64_MAX;
	struct line e;
	struct stmt *s;
	int rc = Q_OK;

	while (hi - lo > 1) {		/* what is in order but for clock steps */
		mid = lo + (hi - lo) / 2;
		if (finished_before(db, mid) < from_ms)
			lo = mid;
		else
			hi = mid;
	}
	stride = (before - lo) / pages > rows ? (before - lo) / pages : rows;
	for (int64_t at = before; at > lo && rc == Q_OK && db_status(db) == Q_OK; at -= stride) {
		s = db_prepare(db, LEDGER);
		db_int(s, ":before", at < last ? at : last);
		db_int(s, ":n", rows);
		while (rc == Q_OK && db_step(s) == 1) {
			e = line_of(s);
			last = e.id;
			if (e.finished >= from_ms)
				rc = each(&e, arg);
		}
		db_reset(s);
	}
	return db_status(db) != Q_OK ? db_status(db) : rc;
}

/* ---- what waits and what runs ---- */

static struct report *
queue_row(struct collect *c, const char *queue, struct name type, bool whole)
{
	struct report *r = row_of(c, (struct name){ queue, strlen(queue) }, type, 0, whole);

	if (r != NULL)
		r->seen = true;
	return r;
}

static void
wait_in(struct collect *c, struct report *r, int64_t n, int64_t oldest)
{
	if (r == NULL)
		return;
	r->waiting += n;
	oldest = apart(oldest, c->want->now);
	if (oldest > r->oldest_ms)
		r->oldest_ms = oldest;
}

static int64_t
count_waiting(struct collect *c, const char *queue, int priority, int64_t due, int64_t *oldest)
{
	struct stmt *s = db_prepare(c->db, WAITING);
	int64_t n;

	db_text(s, ":queue", queue);
	db_int(s, ":priority", priority);
	db_int(s, ":now", due);
	n = db_step(s) == 1 ? db_col_int(s, 0) : 0;
	*oldest = n > 0 ? db_col_int(s, 1) : 0;
	db_reset(s);
	return n;
}

/* All of a queue at once, and those past the target. */
static void
read_waiting(struct collect *c, const char *queue, int priority, bool whole)
{
	int64_t oldest, n = count_waiting(c, queue, priority, c->want->now, &oldest);
	struct report *r;

	if (n == 0 || (r = queue_row(c, queue, (struct name){ "", 0 }, whole)) == NULL)
		return;
	wait_in(c, r, n, oldest);
	if (r->slo.target_ms != -1)
		judge(c, r, INT64_MAX, INT64_MAX, count_waiting(c, queue, priority, c->want->now - r->slo.target_ms - 1, &oldest));
}

static void
read_waiting_types(struct collect *c, const char *queue, int priority)
{
	int64_t at = INT64_MIN, after = 0;
	struct report *r;
	struct stmt *s;
	int n;

	do {
		s = db_prepare(c->db, WAITING_TYPES);
		db_text(s, ":queue", queue);
		db_int(s, ":priority", priority);
		db_int(s, ":now", c->want->now);
		db_int(s, ":at", at);
		db_int(s, ":after", after);
		db_int(s, ":n", PAGE);
		for (n = 0; db_step(s) == 1; n++) {
			after = db_col_int(s, 0);
			at = db_col_int(s, 1);
			r = queue_row(c, queue, col_name(s, 2), false);
			wait_in(c, r, 1, at);
			if (r != NULL && apart(at, c->want->now) > r->slo.target_ms)
				judge(c, r, INT64_MAX, INT64_MAX, 1);
		}
	} while (n == PAGE && db_status(c->db) == Q_OK);
}

static void
claimed_in(struct collect *c, struct report *r, int64_t late, int64_t started)
{
	if (r == NULL)
		return;
	r->claimed++;
	if (started > r->started_ms)
		r->started_ms = started;
	judge(c, r, late, INT64_MAX, 1);
}

static void
read_claimed(struct collect *c, const char *queue)
{
	struct stmt *s = db_prepare(c->db, CLAIMED);
	int64_t late, started;

	db_text(s, ":queue", queue);
	while (db_step(s) == 1) {
		started = db_col_int(s, 1);
		late = apart(db_col_int(s, 0), started);
		claimed_in(c, queue_row(c, queue, col_name(s, 2), false), late, started);
		if (c->want->by_both)
			claimed_in(c, queue_row(c, queue, (struct name){ "", 0 }, true), late, started);
	}
}

static bool
blocked(struct db *db, const char *queue, int64_t now)
{
	struct stmt *s = db_prepare(db, BLOCKED);

	db_text(s, ":queue", queue);
	db_int(s, ":n", PAGE);
	db_int(s, ":now", now);
	return db_only(s) == 1;
}

/* Jobs that are delayed or behind another of their entity do not wait. */
static void
read_queue(struct collect *c, const char *queue)
{
	const struct ledger_want *w = c->want;

	for (int p = 0; p < PRIORITIES && db_status(c->db) == Q_OK; p++) {
		if (w->by_type || w->by_both)
			read_waiting_types(c, queue, p);
		if (!w->by_type)
			read_waiting(c, queue, p, w->by_both);
	}
	read_claimed(c, queue);
	if (!w->by_type && !w->by_both && blocked(c->db, queue, w->now))
		queue_row(c, queue, (struct name){ "", 0 }, false);
}

/* The queue after `last` with any open job. */
static char *
next_open(struct db *db, const char *last)
{
	const char *const by[] = { NEXT_QUEUE, NEXT_CLAIMED, NEXT_ENTITY };
	char *first = NULL, *next;

	for (int i = 0; i < 3; i++)
		if ((next = db_next(db_prepare(db, by[i]), last)) != NULL && (first == NULL || strcmp(next, first) < 0)) {
			free(first);
			first = next;
		} else {
			free(next);
		}
	return first;
}

static int
row_of_target(const struct setting *set, const char *value, int64_t set_ms, void *arg)
{
	struct collect *c = arg;
	const char *slash = strchr(set->name, '/');
	size_t n = slash != NULL ? (size_t)(slash - set->name) : strlen(set->name);
	struct name type = { slash != NULL ? slash + 1 : "", slash != NULL ? strlen(slash + 1) : 0 };
	struct slo slo;

	(void)set_ms;
	if (strcmp(set->kind, "queue") == 0 && strcmp(set->field, "slo") == 0 && slo_parse(value, &slo) &&
	    (slash == NULL || c->want->by_type || c->want->by_both))
		row_of(c, (struct name){ set->name, n }, type, 0, slash == NULL && c->want->by_both);
	return db_status(c->db);
}

static void
read_queues(struct collect *c)
{
	char *queue = NULL, *next;

	while ((next = next_open(c->db, queue != NULL ? queue : "")) != NULL) {
		free(queue);
		queue = next;
		read_queue(c, queue);
	}
	free(queue);
	for (int i = 0; i < c->want->nalso; i++)
		queue_row(c, c->want->also[i], (struct name){ "", 0 }, false);
	setting_each(c->db, row_of_target, c);
}

/* Of those that were asked for: what is open, and a row though there is nothing. */
static void
read_asked(struct collect *c)
{
	const struct ledger_want *w = c->want;
	bool there;

	for (int i = 0; i < w->nqueues; i++) {
		if (text_repeated(w->queues, i))
			continue;
		if (w->edges == NULL)
			read_queue(c, w->queues[i]);
		there = false;
		for (int k = 0; k < c->to->n; k++)
			there |= c->to->rows[k]->place == i && c->to->rows[k]->seen;
		if (!there)
			queue_row(c, w->queues[i], (struct name){ "", 0 }, w->by_both);
	}
}

/* ---- why it waits ---- */

/* From what the file holds, and no more of the ledger than every report reads; the order of these questions is that of qlate(1). */
static const char *
why(struct db *db, const struct report *r, int64_t now)
{
	static const char *const HELD[] = { [HELD_PAUSED] = "paused", [HELD_LOCK] = "lock", [HELD_RATE] = "rate", [HELD_BUSY] = "busy" };
	enum job_held held;
	int64_t since;

	if (r->paused)
		return "paused";
	if (r->waiting == 0)
		return blocked(db, r->queue, now) ? "blocked" : "";
	if (job_held(db, r->queue, now, &held) == Q_OK && held != HELD_NOT)
		return HELD[held];
	if (r->claimed > 0)
		return "busy";
	since = r->oldest_ms < LATE_WHY_MS ? r->oldest_ms : LATE_WHY_MS;
	return r->oldest_ms < FRESH_MS || r->started_ms > now - since ? "backlog" : "no worker";
}

static int
by_size(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Byte by byte from the least, where they differ: none is negative, and few have more than five. */
static void
sort(struct values *values)
{
	int64_t *v = values->v, *to = values->n < MANY ? NULL : malloc(values->n * sizeof *to), *other;
	size_t n = values->n, count[256];

	if (to == NULL) {
		if (n > 0)
			qsort(v, n, sizeof *v, by_size);
		return;
	}
	for (int shift = 0; shift < 64; shift += 8) {
		memset(count, 0, sizeof count);
		for (size_t i = 0; i < n; i++)
			count[v[i] >> shift & 255]++;
		if (count[v[0] >> shift & 255] == n)
			continue;
		for (size_t i = 0, at = 0, next; i < 256; i++, at = next) {
			next = at + count[i];
			count[i] = at;
		}
		for (size_t i = 0; i < n; i++)
			to[count[v[i] >> shift & 255]++] = v[i];
		other = v;
		v = to;
		to = other;
	}
	values->v = v;
	values->cap = n;
	free(to);
}

static void
finish(struct collect *c, struct report *r)
{
	if (memchr(r->queue, '\0', r->queue_len) == NULL && c->want->edges == NULL) {
		r->paused = setting_queue(c->db, r->queue)->paused;
		r->why = why(c->db, r, c->want->now);
	}
	sort(&r->late);
	sort(&r->run);
}

/* Parts of the window in which nothing ended. */
static void
fill_bins(struct collect *c)
{
	int n = c->to->n;

	for (int k = 0; k < n; k++)
		for (int i = 0; i < c->want->nedges; i++) {
			struct report *r = c->to->rows[k];

			row_of(c, (struct name){ r->queue, r->queue_len }, (struct name){ r->type, r->type_len }, i, false);
		}
}

static void
keep_row(void *row)
{
	(void)row;
}

static void
free_row(struct report *r)
{
	free(r->late.v);
	free(r->run.v);
	free(r);
}

/* Has another row the name of this one?  Of those up to n what is left out is gone. */
static bool
typed(const struct ledger *l, int n, int at)
{
	const struct report *r = l->rows[at];

	for (int i = 0; i < l->n; i++)
		if ((i < n || i > at) && l->rows[i]->type_len > 0 && compare(l->rows[i]->queue, l->rows[i]->queue_len, r->queue, r->queue_len) == 0 &&
		    (l->rows[i]->seen || l->rows[i]->own_slo))
			return true;
	return false;
}

int
ledger_read(struct db *db, const struct ledger_want *want, struct ledger *to)
{
	struct collect c = { .db = db, .want = want, .to = to, .from_ms = want->from_ms };
	int n = 0;

	*to = (struct ledger){ .rows = NULL };
	for (int i = 0; i < BURNS; i++)
		c.burn_ms[i] = want->now - SLO_WINDOW_MS[i];
	if (want->burn > 0 && c.burn_ms[want->burn] < c.from_ms)
		c.from_ms = c.burn_ms[want->burn];
	if (!want->open_only)
		ledger_each(db, c.from_ms, want->slack_ms > 0 ? want->slack_ms : STEP_MS, count_line, &c);
	if (want->nqueues > 0)
		read_asked(&c);
	else if (want->edges == NULL)
		read_queues(&c);
	fill_bins(&c);
	tdestroy(c.tree, keep_row);
	for (int i = 0; i < to->n; i++) {
		struct report *r = to->rows[i];

		/* What ended before the window is of no queue with a target, and a target of a queue has no row beside its types. */
		if (!r->seen && want->edges == NULL && (!r->own_slo || (want->by_type && r->type_len == 0 && typed(to, n, i)))) {
			free_row(r);
			continue;
		}
		finish(&c, r);
		to->rows[n++] = r;
	}
	to->n = n;
	if (n > 0)
		qsort(to->rows, (size_t)n, sizeof(struct report *), by_place);
	return db_status(db);
}

void
ledger_free(struct ledger *l)
{
	for (int i = 0; i < l->n; i++)
		free_row(l->rows[i]);
	free(l->rows);
	*l = (struct ledger){ .rows = NULL };
}

/* ---- values ---- */

/* n * percent / 100, rounded up, without an overflow */
static size_t
rank_of(size_t n, int percent)
{
	size_t p = (size_t)percent;

	return n / 100 * p + (n % 100 * p + 99) / 100;
}

int64_t
ledger_rank(const struct values *v, int percent)
{
	return v->n == 0 ? -1 : v->v[rank_of(v->n, percent) - 1] / LATE_CELLS;
}

size_t
ledger_upto(const struct values *v, int64_t ms)
{
	size_t lo = 0, hi = v->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (v->v[mid] / LATE_CELLS <= ms)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Values of all cells stand in one order, so the last of a rank's many of a cell is its percentile. */
void
ledger_trend(const struct values *v, int percent, int ncells, int64_t *out)
{
	size_t n[LATE_CELLS] = { 0 }, met[LATE_CELLS] = { 0 };

	for (size_t i = 0; i < v->n; i++)
		n[v->v[i] % LATE_CELLS]++;
	for (int c = 0; c < ncells; c++)
		out[c] = -1;
	for (size_t i = 0; i < v->n; i++) {
		int c = (int)(v->v[i] % LATE_CELLS);

		if (++met[c] == rank_of(n[c], percent) && c < ncells)
			out[c] = v->v[i] / LATE_CELLS;
	}
}
