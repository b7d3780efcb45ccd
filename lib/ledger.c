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

#include "q.h"

enum {
	PAGE = 1000,			/* rows of one read transaction: a reader that stays keeps the log from being copied */
	PRIORITIES = 10,
	STEP_MS = 25 * 60 * 60 * 1000	/* the ledger is in order but for clock steps up to this */
};

static const char LEDGER[] =
	"SELECT id, queue, type, attempt, due_ms, started_ms, finished_ms, outcome, state\n"
	"  FROM q_attempt WHERE id < :before\n"
	" ORDER BY id DESC LIMIT :n";

static const char NEXT_QUEUE[] = "SELECT min(queue) FROM q_job WHERE ready_ms IS NOT NULL AND queue > :last";

static const char WAITING[] =
	"SELECT count(*), min(ready_ms) FROM q_job\n"
	" WHERE queue = :queue AND priority = :priority AND ready_ms <= :now";

/* One by one, for their types: those level with the last one, then those beyond. */
#define WAITING_ROWS \
	"SELECT id, ready_ms, type FROM q_job\n" \
	" WHERE queue = :queue AND priority = :priority AND ready_ms IS NOT NULL"
static const char WAITING_TYPES[] =
	WAITING_ROWS " AND ready_ms = :at AND id > :after\n"
	"UNION ALL\n"
	WAITING_ROWS " AND ready_ms > :at AND ready_ms <= :now\n"
	" ORDER BY 2, 1 LIMIT :n";

struct name { const char *p; size_t n; };	/* a foreign program may have written a NUL into it */

struct line {				/* an attempt, as far as reports look at it; borrowed from its row */
	struct name queue, type;
	int64_t attempt, due, started, finished;
	const char *outcome, *state;
};

struct collect {
	struct db *db;
	const struct ledger_want *want;
	struct ledger *to;
	void *tree;			/* of its rows, by name */
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

	return c != 0 ? c : compare(x->type, x->type_len, y->type, y->type_len);
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

/* The row that a queue and type belong to; NULL: out of memory. */
static struct report *
row_of(struct collect *c, struct name queue, struct name type)
{
	struct report like = { .queue = queue.p, .queue_len = queue.n, .type = "", .oldest_ms = -1 }, *r, **slot;

	if (c->want->by_type) {
		like.type = type.p;
		like.type_len = type.n;
	}
	if ((slot = tfind(&like, &c->tree, by_name)) != NULL)
		return *slot;
	like.place = place_of(c->want, queue);
	if ((r = new_row(c, &like)) == NULL)
		db_fail(c->db, Q_TEMP, "out of memory");
	return r;
}

static void
add_value(struct collect *c, struct values *v, int64_t ms)
{
	int64_t *p;

	if (v->n == v->cap) {
		if ((p = realloc(v->v, (v->cap == 0 ? 8 : 2 * v->cap) * sizeof *p)) == NULL) {
			db_fail(c->db, Q_TEMP, "out of memory");
			return;
		}
		v->v = p;
		v->cap = v->cap == 0 ? 8 : 2 * v->cap;
	}
	v->v[v->n++] = ms;
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

static void
count(struct collect *c, const struct line *e)
{
	struct report *r;
	int o = 0;

	while (o < NOUTCOMES && strcmp(e->outcome, OUTCOMES[o].word) != 0)
		o++;
	if (o == NOUTCOMES || place_of(c->want, e->queue) == -1 || (r = row_of(c, e->queue, e->type)) == NULL)
		return;
	switch (o) {
	case DONE:
		r->done++;
		break;
	case LOST:
		r->lost++;
		/* fall through */
	case FAILED:
		++*(strcmp(e->state, "dead") == 0 ? &r->dead : &r->failed);
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
		add_value(c, &r->late, apart(e->due, e->started));
	if (OUTCOMES[o].ended)
		add_value(c, &r->run, apart(e->started, e->finished));
}

/* ---- reading ---- */

static struct name
col_name(struct stmt *s, int column)
{
	struct name name;

	name.p = db_col_blob(s, column, &name.n);
	return name;
}

/*
 * The attempts of the window, backwards until a page's worth in a row finished a clock step's length before it:
 * so the cost is that of the window and a day, whatever the history, and a clock that was wrong for a
 * while hides nothing.
 */
static void
read_ledger(struct collect *c)
{
	int64_t before = INT64_MAX, from = c->want->from_ms, id;
	struct line e;
	struct stmt *s;
	int n, old = 0;

	do {
		s = db_prepare(c->db, LEDGER);
		db_int(s, ":before", before);
		db_int(s, ":n", PAGE);
		for (n = 0; db_step(s) == 1; n++) {
			id = db_col_int(s, 0);
			before = id;
			e = (struct line){ .queue = col_name(s, 1), .type = col_name(s, 2), .attempt = db_col_int(s, 3),
			    .due = db_col_int(s, 4), .started = db_col_int(s, 5), .finished = db_col_int(s, 6),
			    .outcome = db_col_text(s, 7), .state = db_col_text(s, 8) };
			old = e.finished < from - STEP_MS ? old + 1 : 0;
			if (e.finished >= from && e.finished <= c->want->now)
				count(c, &e);
		}
	} while (n == PAGE && old < PAGE && db_status(c->db) == Q_OK);
}

static void
add_waiting(struct collect *c, const char *queue, struct name type, int64_t n, int64_t oldest)
{
	struct report *r = row_of(c, (struct name){ queue, strlen(queue) }, type);

	if (r == NULL)
		return;
	r->waiting += n;
	oldest = apart(oldest, c->want->now);
	if (oldest > r->oldest_ms)
		r->oldest_ms = oldest;
}

static void
read_waiting_types(struct collect *c, const char *queue, int priority)
{
	int64_t at = INT64_MIN, after = 0;
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
			add_waiting(c, queue, col_name(s, 2), 1, at);
		}
	} while (n == PAGE && db_status(c->db) == Q_OK);
}

/* What can be claimed now: jobs that are delayed, claimed, or behind another of their entity do not wait. */
static void
read_waiting(struct collect *c, const char *queue)
{
	int64_t n, oldest;
	struct stmt *s;

	for (int p = 0; p < PRIORITIES && db_status(c->db) == Q_OK; p++) {
		if (c->want->by_type) {
			read_waiting_types(c, queue, p);
			continue;
		}
		s = db_prepare(c->db, WAITING);
		db_text(s, ":queue", queue);
		db_int(s, ":priority", p);
		db_int(s, ":now", c->want->now);
		n = db_step(s) == 1 ? db_col_int(s, 0) : 0;
		oldest = n > 0 ? db_col_int(s, 1) : 0;
		db_reset(s);
		if (n > 0)
			add_waiting(c, queue, (struct name){ "", 0 }, n, oldest);
	}
}

/* The queue after `last` that has claimable or delayed jobs, for the caller to free; NULL at the end. */
static char *
next_queue(struct db *db, const char *last)
{
	struct stmt *s = db_prepare(db, NEXT_QUEUE);
	char *queue = NULL;
	struct name name;

	db_text(s, ":last", last);
	if (db_step(s) == 1 && (name = col_name(s, 0)).p != NULL) {
		if (memchr(name.p, '\0', name.n) != NULL)	/* what follows it could not be asked for */
			db_fail(db, Q_IO, "%s: a queue has a name that no program of q writes", db_path(db));
		else if ((queue = strndup(name.p, name.n)) == NULL)
			db_fail(db, Q_TEMP, "out of memory");
	}
	db_reset(s);
	return queue;
}

static void
read_queues(struct collect *c)
{
	char *queue = NULL, *next;

	while ((next = next_queue(c->db, queue != NULL ? queue : "")) != NULL) {
		free(queue);
		queue = next;
		read_waiting(c, queue);
	}
	free(queue);
}

/* Of those that were asked for: what waits, and a row though there is nothing. */
static void
read_asked(struct collect *c)
{
	const struct ledger_want *w = c->want;
	bool there;

	for (int i = 0; i < w->nqueues; i++) {
		if (text_repeated(w->queues, i))
			continue;
		read_waiting(c, w->queues[i]);
		there = false;
		for (int k = 0; k < c->to->n; k++)
			there |= c->to->rows[k]->place == i;
		if (!there)
			row_of(c, (struct name){ w->queues[i], strlen(w->queues[i]) }, (struct name){ "", 0 });
	}
}

static int
by_size(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void
keep_rows(void *row)
{
	(void)row;
}

int
ledger_read(struct db *db, const struct ledger_want *want, struct ledger *to)
{
	struct collect c = { .db = db, .want = want, .to = to };

	*to = (struct ledger){ .rows = NULL };
	read_ledger(&c);
	if (want->nqueues > 0)
		read_asked(&c);
	else
		read_queues(&c);
	tdestroy(c.tree, keep_rows);
	for (int i = 0; i < to->n; i++) {
		struct report *r = to->rows[i];

		r->paused = setting_queue(db, r->queue)->paused;
		if (r->late.n > 0)
			qsort(r->late.v, r->late.n, sizeof *r->late.v, by_size);
		if (r->run.n > 0)
			qsort(r->run.v, r->run.n, sizeof *r->run.v, by_size);
	}
	if (to->n > 0)
		qsort(to->rows, (size_t)to->n, sizeof(struct report *), by_place);
	return db_status(db);
}

void
ledger_free(struct ledger *l)
{
	for (int i = 0; i < l->n; i++) {
		free(l->rows[i]->late.v);
		free(l->rows[i]->run.v);
		free(l->rows[i]);
	}
	free(l->rows);
	*l = (struct ledger){ .rows = NULL };
}

int64_t
ledger_rank(const struct values *v, int percent)
{
	size_t p = (size_t)percent;

	/* n * p / 100, rounded up, without an overflow */
	return v->n == 0 ? -1 : v->v[v->n / 100 * p + (v->n % 100 * p + 99) / 100 - 1];
}
