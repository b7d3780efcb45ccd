/*
 * total.c - counters that only grow.
 *
 * Each attempt of the ledger is counted once, in the order of its id, and the sums are kept, so that a counter neither falls when
 * qpurge deletes rows nor costs a reading of the whole history.  Who may not write gets the same numbers, at the cost of reading what is
 * not in the sums yet.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "late.h"

enum { PAGE = 1000, TRIES = 5 };

static const char MAX[] = "SELECT max(id) FROM q_attempt";
static const char STORED[] = "SELECT queue, name, n FROM q_total ORDER BY queue, name";
static const char UPTO[] = "SELECT n FROM q_total WHERE queue = '' AND name = 'upto'";
static const char PUT[] =
	"INSERT INTO q_total VALUES(:queue, :name, :n) ON CONFLICT(queue, name) DO UPDATE SET n = excluded.n";
static const char NEW[] =
	"SELECT id, queue, due_ms, started_ms, finished_ms, outcome, state FROM q_attempt\n"
	" WHERE id > :after ORDER BY id LIMIT :n";
static const char TOLD[] = "SELECT digest, told_ms FROM q_told WHERE id = :id";
static const char TELL[] =
	"INSERT INTO q_told VALUES(:id, :digest, :now) ON CONFLICT(id) DO UPDATE SET digest = excluded.digest, told_ms = excluded.told_ms";

const int64_t TOTAL_LE_MS[TOTAL_BUCKETS - 1] = { 100, 300, 1000, 3000, 10000, 30000, 60000, 120000, 300000, 900000, 3600000, 14400000, 86400000 };
const char *const TOTAL_OUTCOMES[TOTAL_NOUTCOMES] = { "done", "failed", "lost", "dead", "deferred", "released", "superseded" };

static void
name_of(char buf[16], int i)
{
	if (i < TOTAL_NOUTCOMES)
		snprintf(buf, 16, "%s", TOTAL_OUTCOMES[i]);
	else if (i < TOTAL_WAIT)
		snprintf(buf, 16, "%s", i == TOTAL_LATE ? "late" : i == TOTAL_WAIT_MS ? "wait_ms" : "run_ms");
	else
		snprintf(buf, 16, "%s_%d", i < TOTAL_RUN ? "wait" : "run", i < TOTAL_RUN ? i - TOTAL_WAIT : i - TOTAL_RUN);
}

static int
by_queue(const void *a, const void *b)
{
	const struct total *x = *(struct total *const *)a, *y = *(struct total *const *)b;

	return strcmp(x->queue, y->queue);
}

/* The counters of a queue; NULL: out of memory. */
static struct total *
total_of(struct db *db, struct totals *t, const char *queue)
{
	struct total **more, *one;
	struct setting set = { .kind = "queue" };

	if (t->last != NULL && strcmp(t->last->queue, queue) == 0)
		return t->last;
	for (int i = 0; i < t->n; i++)
		if (strcmp(t->v[i]->queue, queue) == 0)
			return t->last = t->v[i];
	if ((t->n & (t->n - 1)) == 0) {
		if ((more = realloc(t->v, (t->n == 0 ? 1 : 2 * (size_t)t->n) * sizeof *more)) == NULL)
			goto memory;
		t->v = more;
	}
	if ((one = calloc(1, sizeof *one + strlen(queue) + 1)) == NULL)
		goto memory;
	strcpy(one->queue, queue);
	if (strlen(queue) >= sizeof set.name || setting_slo(db, queue, &one->slo) != Q_OK)
		one->slo.target_ms = -1;
	return t->last = t->v[t->n++] = one;
memory:
	db_fail(db, Q_TEMP, "out of memory");
	return NULL;
}

static int
bucket(int64_t ms)
{
	int i = 0;

	while (i < TOTAL_BUCKETS - 1 && TOTAL_LE_MS[i] < ms)
		i++;
	return i;
}

static void
add(struct total *t, int sum, int first, int64_t ms)
{
	ms = ms < 0 ? 0 : ms > 3650 * INT64_C(86400000) ? 3650 * INT64_C(86400000) : ms;
	t->n[sum] += ms;
	t->n[first + bucket(ms)]++;
}

/* What began and what ran to an end is as in ledger.c. */
static void
count(struct total *t, struct stmt *s)
{
	int64_t due = db_col_int(s, 2), started = db_col_int(s, 3), finished = db_col_int(s, 4), late;
	const char *outcome = db_col_text(s, 5);
	bool dead = strcmp(db_col_text(s, 6), "dead") == 0, failed = strcmp(outcome, "failed") == 0, lost = strcmp(outcome, "lost") == 0;
	bool done = strcmp(outcome, "done") == 0;

	if (dead && (failed || lost))
		t->n[TOTAL_DEAD]++;
	for (int i = 0; i < TOTAL_NOUTCOMES; i++)
		if (i != TOTAL_DEAD && !(dead && (failed || lost)) && strcmp(outcome, TOTAL_OUTCOMES[i]) == 0)
			t->n[i]++;
	if (done || failed || lost || strcmp(outcome, "deferred") == 0) {
		late = started > due ? (int64_t)((uint64_t)started - (uint64_t)due) : 0;
		add(t, TOTAL_WAIT_MS, TOTAL_WAIT, late < 0 ? INT64_MAX : late);
		t->n[TOTAL_LATE] += t->slo.target_ms != -1 && late > t->slo.target_ms;
	}
	if (done || failed)
		add(t, TOTAL_RUN_MS, TOTAL_RUN, finished > started ? (int64_t)((uint64_t)finished - (uint64_t)started) : 0);
	t->changed = true;
}

static void
read_stored(struct db *db, struct totals *t)
{
	struct stmt *s = db_prepare(db, STORED);
	struct total *one;
	char name[16];

	while (db_step(s) == 1) {
		if (*db_col_text(s, 0) == '\0') {
			t->upto = db_col_int(s, 2);
			continue;
		}
		if ((one = total_of(db, t, db_col_text(s, 0))) == NULL)
			break;
		for (int i = 0; i < TOTAL_NUMBERS; i++) {
			name_of(name, i);
			if (strcmp(name, db_col_text(s, 1)) == 0)
				one->n[i] = db_col_int(s, 2);
		}
	}
	db_reset(s);
}

static void
read_new(struct db *db, struct totals *t)
{
	int64_t max = db_only(db_prepare(db, MAX));
	struct total *one;
	struct stmt *s;
	int n;

	t->stored = t->upto;
	if (t->upto > max)		/* the newest were deleted, so that their ids come again */
		t->upto = max > 0 ? max : 0;
	do {
		s = db_prepare(db, NEW);
		db_int(s, ":after", t->upto);
		db_int(s, ":n", PAGE);
		for (n = 0; db_step(s) == 1; n++) {
			if ((one = total_of(db, t, db_col_text(s, 1))) == NULL)
				break;
			count(one, s);
			t->upto = db_col_int(s, 0);
		}
		db_reset(s);
	} while (n == PAGE && db_status(db) == Q_OK);
}

static void
put(struct db *db, const char *queue, const char *name, int64_t n)
{
	struct stmt *s = db_prepare(db, PUT);

	db_text(s, ":queue", queue);
	db_text(s, ":name", name);
	db_int(s, ":n", n);
	db_run(s);
}

/* False: somebody else counted meanwhile. */
static bool
store(struct db *db, const struct totals *t)
{
	int64_t upto;
	char name[16];

	if (db_tables(db, FOR_QLATE) != Q_OK || db_begin(db, false) != Q_OK)
		return true;
	upto = db_only(db_prepare(db, UPTO));
	if ((upto == -1 ? 0 : upto) != t->stored) {
		db_rollback(db);
		return false;
	}
	for (int k = 0; k < t->n; k++)
		for (int i = 0; t->v[k]->changed && i < TOTAL_NUMBERS; i++)
			if (t->v[k]->n[i] > 0) {
				name_of(name, i);
				put(db, t->v[k]->queue, name, t->v[k]->n[i]);
			}
	put(db, "", "upto", t->upto);
	if (db_status(db) == Q_OK)
		db_commit(db);
	else
		db_rollback(db);
	return true;
}

void
total_free(struct totals *t)
{
	for (int i = 0; i < t->n; i++)
		free(t->v[i]);
	free(t->v);
	*t = (struct totals){ .n = 0 };
}

int
total_read(struct db *db, bool writes, struct totals *t)
{
	for (int i = 0; i < TRIES; i++) {
		*t = (struct totals){ .n = 0 };
		if (db_has(db, FOR_QLATE))
			read_stored(db, t);
		read_new(db, t);
		/* What was read in part is not all, and store() would forget that it failed. */
		if (db_status(db) != Q_OK || !writes || t->upto == t->stored || store(db, t))
			break;
		total_free(t);
	}
	if (t->n > 0)
		qsort(t->v, (size_t)t->n, sizeof *t->v, by_queue);
	return db_status(db);
}

/* ---- what was told ---- */

char *
told_last(struct db *db, const char *id, int64_t *told_ms)
{
	struct stmt *s;
	char *digest = NULL;

	if (!db_has(db, FOR_QLATE))
		return NULL;
	s = db_prepare(db, TOLD);
	db_text(s, ":id", id);
	if (db_step(s) == 1) {
		*told_ms = db_col_int(s, 1);
		if ((digest = strdup(db_col_text(s, 0))) == NULL)
			db_fail(db, Q_TEMP, "out of memory");
	}
	db_reset(s);
	return digest;
}

int
told_now(struct db *db, const char *id, const char *digest, int64_t now)
{
	struct stmt *s;

	if (db_tables(db, FOR_QLATE) != Q_OK || db_begin(db, false) != Q_OK)
		return db_status(db);
	s = db_prepare(db, TELL);
	db_text(s, ":id", id);
	db_text(s, ":digest", digest);
	db_int(s, ":now", now);
	db_run(s);
	return db_commit(db);
}
