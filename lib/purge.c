/*
 * purge.c - retention: mark what is too old, delete it a grace time later.
 *
 * A mark is no column of a job but a row a queue and run, with its cutoff: a job that finished before it is marked, unless it was
 * replayed since.  So marking writes next to nothing, and undoing it drops that row.  The job goes with its payload and attempts,
 * and with its key, unless that is to be remembered.  The newest job and the newest attempt stay, as ids are never given again.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "purge.h"

enum {
	PAGE = 1000,			/* rows of one read transaction */
	UNITS = 200,			/* rows of one write transaction, */
	BYTES = 256 << 10,		/* ... and payload */
	PAUSE_MS = 5,			/* between two, at least; and twice as long as the last one took */
	LOOK = 1000,			/* so many jobs of a queue may be marked when there is no usual yet, or less */
	USUAL = 10,			/* ... then so many times the usual */
	RUNS_KEPT = 100,		/* of each source of qpoll, */
	RUNS_DAYS = 90,			/* ... and those of so many days */
	PURGES_DAYS = 400		/* of qpurge itself */
};
#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)
#define SKEW_MS (INT64_C(25) * 60 * 60 * 1000)	/* as in ledger.c: how far the clock is set back at most */

static const char WALK[] =
	"SELECT id, queue, finished_ms, added_ms, state = 'done' OR state = 'cancelled' FROM q_job\n"
	" WHERE id > :after ORDER BY id LIMIT :n";
/* They stay, so that no id is given twice. */
static const char NEWEST[] =
	"SELECT (SELECT max(id) FROM q_job),\n"
	"       (SELECT job FROM q_attempt WHERE id = (SELECT max(id) FROM q_attempt))";

static const char JOB[] =
	"DELETE FROM q_job\n"
	" WHERE id = :id AND finished_ms < :cutoff AND (state = 'done' OR state = 'cancelled')\n"
	"   AND id <> (SELECT max(id) FROM q_job) AND last_attempt IS NOT (SELECT coalesce(max(id), 0) FROM q_attempt)\n"
	"RETURNING last_attempt, key";
static const char BODY[] = "DELETE FROM q_body WHERE job = :id RETURNING length(body)";
static const char ATTEMPT[] = "DELETE FROM q_attempt WHERE id = :attempt AND job = :id RETURNING prev";
static const char KEY[] = "DELETE FROM q_key WHERE queue = :queue AND key = :key AND job = :id AND until_ms <= :now";
static const char HOOK[] = "DELETE FROM q_hook WHERE job = :id";
static const char DELETED[] = "UPDATE q_purge SET deleted = deleted + :n WHERE queue = :queue AND as_of_ms = :as_of AND done_ms IS NULL";

static const char OPEN[] =
	"SELECT queue, as_of_ms, cutoff_ms, marked_ms, marked - deleted FROM q_purge\n"
	" WHERE done_ms IS NULL AND as_of_ms >= 0 ORDER BY as_of_ms, queue";
/* cutoff_ms becomes what was really deleted, if the queue keeps longer now: the rest is marked again when it is its time. */
static const char DONE[] =
	"UPDATE q_purge SET done_ms = :now, cutoff_ms = min(cutoff_ms, :cutoff) WHERE queue = :queue AND as_of_ms = :as_of";
/* What a run marked whose clock was far ahead is not marked for us: its grace would be over when that time comes. */
static const char LAST[] = "SELECT max(cutoff_ms) FROM q_purge WHERE queue = :queue AND as_of_ms <= :soon";
static const char USUALLY[] =
	"SELECT marked FROM (SELECT marked FROM q_purge WHERE queue = :queue ORDER BY as_of_ms DESC LIMIT 30) ORDER BY marked";
static const char SHORTEST[] = "SELECT min(number) FROM q_setting WHERE kind = 'queue' AND field = 'keep'";
static const char MARK[] =
	"INSERT INTO q_purge(queue, as_of_ms, cutoff_ms, marked_ms, marked, done_ms)\n"
	"VALUES(:queue, :as_of, :cutoff, :now, :n, CASE WHEN :n = 0 THEN :now END)\n"
	"    ON CONFLICT(queue, as_of_ms) DO UPDATE SET marked = marked + excluded.marked, cutoff_ms = excluded.cutoff_ms,\n"
	"        marked_ms = excluded.marked_ms, done_ms = NULL WHERE excluded.marked > 0";
static const char OLD_RUNS[] = "DELETE FROM q_purge WHERE as_of_ms < :cutoff AND done_ms IS NOT NULL";

static const char SPARED[] =
	"SELECT queue, marked - deleted, cutoff_ms FROM q_purge\n"
	" WHERE done_ms IS NULL AND as_of_ms >= 0 AND queue <> '' ORDER BY as_of_ms";
static const char UNMARK[] = "DELETE FROM q_purge WHERE done_ms IS NULL AND as_of_ms >= 0 AND queue <> '' AND deleted = 0";
static const char STOPPED[] = "UPDATE q_purge SET done_ms = :now, cutoff_ms = CASE queue WHEN '' THEN cutoff_ms ELSE 0 END WHERE done_ms IS NULL AND as_of_ms >= 0";

/* With || char(1) also what somebody else wrote with a NUL byte, and is seen here only up to that, is passed. */
static const char KEYS[] =
	"SELECT k.key, k.until_ms <= :now AND j.id IS NULL FROM q_key k LEFT JOIN q_job j ON j.id = k.job\n"
	" WHERE k.queue = :queue AND k.key >= :after || char(1) ORDER BY k.key LIMIT :n";
static const char KEYS_QUEUE[] = "SELECT min(queue) FROM q_key WHERE queue >= :last || char(1)";
static const char OLD_KEY[] =
	"DELETE FROM q_key WHERE queue = :queue AND key = :key AND until_ms <= :now AND NOT EXISTS(SELECT 1 FROM q_job WHERE id = job)";

static const char SOURCE[] = "SELECT min(name) FROM q_poll_run WHERE name >= :last || char(1)";
static const char POLL_RUNS[] =
	"DELETE FROM q_poll_run WHERE id IN\n"
	"  (SELECT id FROM q_poll_run WHERE name = :name\n"
	"      AND id < (SELECT id FROM q_poll_run WHERE name = :name ORDER BY id DESC LIMIT 1 OFFSET :kept)\n"
	"      AND finished_ms < :cutoff ORDER BY id LIMIT :n)";

struct mark {				/* what a run has marked in a queue and may be deleted now */
	struct mark *next;		/* the next run's */
	struct queue *queue;
	int64_t as_of, cutoff;		/* cutoff: earlier than it was marked, if the queue keeps longer now */
	int64_t deleted, pending;	/* pending: in the transaction under way */
};

struct queue {
	char *name;
	int64_t cutoff;			/* as_of less what it keeps */
	int64_t last;			/* marked up to here by earlier runs */
	int64_t jobs, limit;		/* to be marked; limit: that is more than so many, else -1 */
	int64_t waits;			/* marked, and the grace is not over */
	struct mark *marks;		/* the earliest first */
};

struct work {
	struct db *db;
	const struct purge *p;
	void (*each)(const struct purge_line *, void *);
	void *arg;
	struct queue **queues;		/* by name */
	size_t nqueues, recent;		/* recent: the last one that was asked for */
	struct queue *run;		/* '', whose marks are the runs */
	int64_t latest;			/* of the cutoffs that matter to the walk under way */
	struct mark *touched[UNITS];	/* by the transaction under way */
	int ntouched;
	int64_t units, bytes, since;	/* of it; since: when_elapsed(), 0: there is none */
	bool has, hooks, stopped, refused;
	int64_t marked;			/* in all */
};

/* ---- queues ---- */

static int64_t
last_cutoff(struct work *w, const struct queue *q)
{
	struct stmt *s;
	int64_t last;

	if (!w->has)
		return 0;
	s = db_prepare(w->db, LAST);
	db_text(s, ":queue", q->name);
	db_int(s, ":soon", w->p->now + SKEW_MS);
	last = db_only(s);
	return last > 0 ? last : 0;
}

static struct queue *
new_queue(struct work *w, const char *name)
{
	struct queue *q = calloc(1, sizeof *q), **grown = realloc(w->queues, (w->nqueues + 1) * sizeof *grown);
	int64_t keep;

	if (grown != NULL)
		w->queues = grown;
	if (q == NULL || grown == NULL || (q->name = strdup(name)) == NULL) {
		free(q);
		db_fail(w->db, Q_TEMP, "out of memory");
		return NULL;
	}
	keep = *name == '\0' ? 0 : setting_queue(w->db, name)->keep_ms;
	q->cutoff = keep > w->p->as_of ? 0 : w->p->as_of - keep;
	q->last = last_cutoff(w, q);
	q->limit = -1;
	return q;
}

static struct queue *
queue_of(struct work *w, const char *name)
{
	size_t at = 0, end = w->nqueues, mid;
	struct queue *q;
	int cmp;

	if (w->nqueues > 0 && strcmp(w->queues[w->recent]->name, name) == 0)
		return w->queues[w->recent];
	while (at < end) {
		mid = at + (end - at) / 2;
		if ((cmp = strcmp(w->queues[mid]->name, name)) == 0)
			return w->queues[w->recent = mid];
		if (cmp < 0)
			at = mid + 1;
		else
			end = mid;
	}
	if ((q = new_queue(w, name)) == NULL)
		return NULL;
	memmove(w->queues + at + 1, w->queues + at, (w->nqueues++ - at) * sizeof *w->queues);
	return w->queues[w->recent = at] = q;
}

static void
free_queues(struct work *w)
{
	for (size_t i = 0; i < w->nqueues; i++) {
		for (struct mark *m = w->queues[i]->marks, *next; m != NULL; m = next) {
			next = m->next;
			free(m);
		}
		free(w->queues[i]->name);
		free(w->queues[i]);
	}
	free(w->queues);
}

/* For all queues but '', by name. */
static void
for_queues(struct work *w, void (*fn)(struct work *, struct queue *))
{
	for (size_t i = 0; i < w->nqueues; i++)
		if (*w->queues[i]->name != '\0')
			fn(w, w->queues[i]);
}

static void
tell(struct work *w, int what, const char *queue, int64_t jobs, int64_t cutoff, int64_t limit)
{
	if (jobs > 0)
		w->each(&(struct purge_line){ .what = what, .queue = queue, .jobs = jobs, .cutoff_ms = cutoff, .limit = limit }, w->arg);
}

static void
note_id(struct work *w, int64_t id, const char *queue)
{
	if (w->p->ids == NULL)
		return;
	fprintf(w->p->ids, "%" PRId64 "\t", id);
	text_tsv(w->p->ids, queue, strlen(queue));
	putc('\n', w->p->ids);
}

/* ---- transactions, each short ---- */

static bool
begin(struct work *w)
{
	if (w->since == 0 && db_begin(w->db, false) == Q_OK) {
		w->since = when_elapsed();
		w->units = w->bytes = 0;
		w->ntouched = 0;
	}
	return db_status(w->db) == Q_OK;
}

static void
count(struct work *w, const char *queue, const struct mark *m)
{
	struct stmt *s = db_prepare(w->db, DELETED);

	db_int(s, ":n", m->pending);
	db_text(s, ":queue", queue);
	db_int(s, ":as_of", m->as_of);
	if (db_run(s) == 0)
		db_fail(w->db, Q_TEMP, "%s: a qpurge --undo, or another qpurge, came between; nothing more was deleted; run it again", m->queue->name);
}

/* What is gone is counted in the same transaction, and its ids are written down before. */
static void
commit(struct work *w)
{
	for (int i = 0; i < w->ntouched; i++) {
		count(w, w->touched[i]->queue->name, w->touched[i]);
		count(w, "", w->touched[i]);
	}
	if (w->p->ids != NULL && (fflush(w->p->ids) == EOF || ferror(w->p->ids)))
		db_fail(w->db, Q_IO, "--ids: %s: %s; what it does not name was not deleted", w->p->ids_name, strerror(errno));
	if (db_status(w->db) != Q_OK)
		db_rollback(w->db);
	else
		db_commit(w->db);
	for (int i = 0; i < w->ntouched; i++) {
		if (db_status(w->db) == Q_OK)
			w->touched[i]->deleted += w->touched[i]->pending;
		w->touched[i]->pending = 0;
	}
}

/* The end of a transaction, if there is one.  False: go no further. */
static bool
end(struct work *w)
{
	int64_t wait = 0;

	if (w->since != 0) {
		commit(w);
		wait = 2 * (when_elapsed() - w->since);
		wait = wait > PAUSE_MS ? wait : PAUSE_MS;
		w->since = 0;
	}
	if (db_status(w->db) == Q_OK)
		w->stopped = w->p->pause(wait);
	return db_status(w->db) == Q_OK && !w->stopped;
}

/* ---- deleting ---- */

static struct stmt *
of_job(struct work *w, const char *sql, int64_t id)
{
	struct stmt *s = db_prepare(w->db, sql);

	db_int(s, ":id", id);
	return s;
}

/* One job with all that is its own.  False: it was replayed since it was seen, or is among those that stay. */
static bool
delete_job(struct work *w, int64_t id, struct mark *m)
{
	int64_t attempt;
	struct stmt *s = of_job(w, JOB, id);
	char *key = NULL;

	db_int(s, ":cutoff", m->cutoff);
	if (db_step(s) != 1)
		return false;
	attempt = db_col_int(s, 0);
	if (db_col_opt(s, 1) != NULL && (key = strdup(db_col_opt(s, 1))) == NULL)
		db_fail(w->db, Q_TEMP, "out of memory");
	db_run(s);
	w->units++;
	w->bytes += db_only(of_job(w, BODY, id));
	for (; attempt > 0 && db_status(w->db) == Q_OK; w->units++) {
		s = of_job(w, ATTEMPT, id);
		db_int(s, ":attempt", attempt);
		attempt = db_only(s);
	}
	if (key != NULL) {
		s = of_job(w, KEY, id);
		db_text(s, ":queue", m->queue->name);
		db_text(s, ":key", key);
		db_int(s, ":now", w->p->now);
		db_run(s);
		free(key);
	}
	if (w->hooks)
		db_run(of_job(w, HOOK, id));
	if (m->pending++ == 0)
		w->touched[w->ntouched++] = m;
	return true;
}

struct seen { int64_t id, finished; struct queue *queue; };

/* The next page of jobs that are done or cancelled, copied out.  *after: where it ended, -1: nothing more can be old enough. */
static int
page(struct work *w, int64_t *after, struct seen list[PAGE])
{
	struct stmt *s = db_prepare(w->db, WALK);
	int n = 0, rows = 0;
	int64_t added = 0;

	db_int(s, ":after", *after);
	db_int(s, ":n", PAGE);
	while (db_step(s) == 1) {
		rows++;
		*after = list[n].id = db_col_int(s, 0);
		list[n].finished = db_col_int(s, 2);
		added = db_col_int(s, 3);
		if (db_col_int(s, 4) == 1 && (list[n].queue = queue_of(w, db_col_text(s, 1))) != NULL)
			n++;
	}
	db_reset(s);
	/* They were added in the order of their ids, but for steps of the clock, and none finished before it was added; a time to come says nothing. */
	if (rows < PAGE || (added > w->latest + SKEW_MS && added <= w->p->now))
		*after = -1;
	return n;
}

/* All marks in one walk. */
static void
delete_marked(struct work *w)
{
	static struct seen list[PAGE];
	int64_t after = 0;
	struct mark *m;
	bool on = true;
	int n;

	while (on && after != -1) {
		n = page(w, &after, list);
		for (int i = 0; i < n && on; i++) {
			for (m = list[i].queue->marks; m != NULL && list[i].finished >= m->cutoff; m = m->next)
				;
			if (m == NULL)
				continue;
			if (w->p->dry)
				m->deleted++;
			if (w->p->dry || (begin(w) && delete_job(w, list[i].id, m)))
				note_id(w, list[i].id, m->queue->name);
			if (db_status(w->db) != Q_OK || w->units >= UNITS || w->bytes >= BYTES)
				on = end(w);
		}
		on = end(w);		/* nothing is locked while the next page is read */
	}
}

static void
set_done(struct work *w, struct queue *q)
{
	struct stmt *s;

	for (struct mark *m = q->marks; m != NULL && begin(w); m = m->next) {
		s = db_prepare(w->db, DONE);
		db_text(s, ":queue", q->name);
		db_int(s, ":as_of", m->as_of);
		db_int(s, ":cutoff", m->cutoff);
		db_int(s, ":now", w->p->now);
		db_run(s);
	}
}

static void
tell_deleted(struct work *w, struct queue *q)
{
	for (struct mark *m = q->marks; m != NULL; m = m->next)
		tell(w, PURGE_DELETED, q->name, m->deleted, m->cutoff, 0);
}

/* Of the open marks, those whose grace is over. */
static void
read_marks(struct work *w)
{
	struct mark **at;
	struct queue *q;
	struct stmt *s;

	if (!w->has)
		return;
	s = db_prepare(w->db, OPEN);
	while (db_step(s) == 1 && (q = queue_of(w, db_col_text(s, 0))) != NULL) {
		if (db_col_int(s, 3) + w->p->grace_ms > w->p->now) {
			q->waits += db_col_int(s, 4);
			continue;
		}
		for (at = &q->marks; *at != NULL; at = &(*at)->next)
			;
		if ((*at = calloc(1, sizeof **at)) == NULL) {
			db_fail(w->db, Q_TEMP, "out of memory");
			break;
		}
		(*at)->queue = q;
		(*at)->as_of = db_col_int(s, 1);
		(*at)->cutoff = db_col_int(s, 2) < q->cutoff ? db_col_int(s, 2) : q->cutoff;
		if (*q->name != '\0' && (*at)->cutoff > w->latest)
			w->latest = (*at)->cutoff;
	}
	db_reset(s);
}

static void
carry_out(struct work *w)
{
	struct queue *runs;

	read_marks(w);
	if (db_status(w->db) == Q_OK && w->latest > 0)
		delete_marked(w);
	if (db_status(w->db) == Q_OK && !w->stopped && !w->p->dry && (runs = queue_of(w, "")) != NULL) {
		for_queues(w, set_done);
		set_done(w, runs);
		end(w);
	}
	for_queues(w, tell_deleted);	/* also if it was cut short */
}

/* ---- marking ---- */

static void
count_old(struct work *w)
{
	static struct seen list[PAGE];
	struct stmt *s = db_prepare(w->db, NEWEST);
	int64_t after = 0, job = -1, tried = -1;
	int n;

	if (db_step(s) == 1) {
		job = db_col_int(s, 0);
		tried = db_col_int(s, 1);
	}
	db_reset(s);
	w->latest = db_only(db_prepare(w->db, SHORTEST));
	w->latest = w->p->as_of - (w->latest != -1 && w->latest < SETTING_KEEP_MS ? w->latest : SETTING_KEEP_MS);
	while (after != -1 && end(w)) {
		n = page(w, &after, list);
		for (int i = 0; i < n; i++)
			if (list[i].finished < list[i].queue->cutoff && list[i].finished >= list[i].queue->last && list[i].id != job && list[i].id != tried) {
				list[i].queue->jobs++;
				if (w->p->dry)
					note_id(w, list[i].id, list[i].queue->name);
			}
	}
}

/* How many may be marked: ten times the usual, which is the middle of the last 30 runs that marked any. */
static int64_t
most(struct work *w, const struct queue *q)
{
	int64_t list[30], n = 0, limit;
	struct stmt *s;

	if (w->p->limit != -1)
		return w->p->limit;
	if (!w->has)
		return LOOK;
	s = db_prepare(w->db, USUALLY);
	db_text(s, ":queue", q->name);
	while (n < 30 && db_step(s) == 1)
		list[n++] = db_col_int(s, 0);
	db_reset(s);
	limit = n > 0 ? USUAL * list[n / 2] : 0;
	return limit > LOOK ? limit : LOOK;
}

static void
mark(struct work *w, const char *queue, int64_t cutoff, int64_t jobs)
{
	struct stmt *s = db_prepare(w->db, MARK);

	db_text(s, ":queue", queue);
	db_int(s, ":as_of", w->p->as_of);
	db_int(s, ":cutoff", cutoff);
	db_int(s, ":now", w->p->now);
	db_int(s, ":n", jobs);
	db_run(s);
}

static void
mark_queue(struct work *w, struct queue *q)
{
	int64_t limit = most(w, q);

	if (q->jobs > limit) {
		q->limit = limit;
		w->refused = true;
		return;
	}
	if (q->jobs > 0 && !w->p->dry) {
		if (last_cutoff(w, q) > q->last)
			db_fail(w->db, Q_TEMP, "%s: another qpurge has marked meanwhile; nothing was marked; run it again", q->name);
		mark(w, q->name, q->cutoff, q->jobs);
	}
	w->marked += q->jobs;
}

static void
tell_marked(struct work *w, struct queue *q)
{
	tell(w, q->limit != -1 ? PURGE_REFUSED : PURGE_MARKED, q->name, q->jobs, q->cutoff, q->limit);
}

static void
tell_waiting(struct work *w, struct queue *q)
{
	tell(w, PURGE_WAITS, q->name, q->waits, q->last, 0);
}

static void
mark_old(struct work *w)
{
	struct stmt *s;

	count_old(w);
	if (db_status(w->db) != Q_OK || w->stopped || (!w->p->dry && !begin(w)))
		return;
	for_queues(w, mark_queue);
	if (!w->p->dry) {
		mark(w, "", w->p->as_of, w->marked);
		s = db_prepare(w->db, OLD_RUNS);
		db_int(s, ":cutoff", w->p->now - PURGES_DAYS * DAY_MS);
		db_run(s);
		end(w);
	}
	if (db_status(w->db) == Q_OK) {
		for_queues(w, tell_marked);
		for_queues(w, tell_waiting);
	}
}

/* ---- what else gets old ---- */

/* The smallest name after `last`, copied; false: there is none. */
static bool
next_name(struct work *w, const char *sql, char **last)
{
	struct stmt *s = db_prepare(w->db, sql);
	char *name = NULL;

	db_text(s, ":last", *last != NULL ? *last : "");
	if (db_step(s) == 1 && db_col_opt(s, 0) != NULL && (name = strdup(db_col_opt(s, 0))) == NULL)
		db_fail(w->db, Q_TEMP, "out of memory");
	db_reset(s);
	free(*last);
	*last = name;
	return name != NULL;
}

/* The keys of a page that are remembered no longer and whose job is gone.  The last one looked at goes into *after; false: no more. */
static bool
forget_page(struct work *w, const char *queue, char **after)
{
	struct stmt *s = db_prepare(w->db, KEYS);
	char *old[UNITS], *last = NULL;
	int n = 0, rows = 0;

	db_text(s, ":queue", queue);
	db_text(s, ":after", *after);
	db_int(s, ":now", w->p->now);
	db_int(s, ":n", PAGE);
	while (n < UNITS && db_step(s) == 1) {
		rows++;
		free(last);
		if ((last = strdup(db_col_text(s, 0))) == NULL || (db_col_int(s, 1) == 1 && (old[n++] = strdup(last)) == NULL)) {
			db_fail(w->db, Q_TEMP, "out of memory");
			break;
		}
	}
	db_reset(s);
	for (int i = 0; i < n; i++) {
		if (old[i] != NULL && begin(w)) {
			s = db_prepare(w->db, OLD_KEY);
			db_text(s, ":queue", queue);
			db_text(s, ":key", old[i]);
			db_int(s, ":now", w->p->now);
			db_run(s);
		}
		free(old[i]);
	}
	free(*after);
	*after = last;
	return end(w) && (n == UNITS || rows == PAGE);
}

static void
forget_keys(struct work *w)
{
	char *queue = NULL, *after;

	while (db_status(w->db) == Q_OK && !w->stopped && next_name(w, KEYS_QUEUE, &queue)) {
		if ((after = strdup("")) == NULL)
			break;
		while (forget_page(w, queue, &after))
			;
		free(after);
	}
	free(queue);
}

static void
forget_polls(struct work *w)
{
	char *name = NULL;
	struct stmt *s;
	int64_t n;

	while (db_status(w->db) == Q_OK && !w->stopped && next_name(w, SOURCE, &name))
		do {
			n = 0;
			if (begin(w)) {
				s = db_prepare(w->db, POLL_RUNS);
				db_text(s, ":name", name);
				db_int(s, ":kept", RUNS_KEPT - 1);
				db_int(s, ":cutoff", w->p->as_of - RUNS_DAYS * DAY_MS);
				db_int(s, ":n", UNITS);
				n = db_run(s);
			}
		} while (end(w) && n == UNITS);
	free(name);
}

int
purge_run(struct db *db, const struct purge *p, void (*each)(const struct purge_line *, void *), void *arg)
{
	struct work w = { .db = db, .p = p, .each = each, .arg = arg };

	if (!p->dry && db_tables(db, FOR_QPURGE) != Q_OK)
		return db_status(db);
	w.has = db_has(db, FOR_QPURGE);
	w.hooks = db_has(db, FOR_QHOOK);
	carry_out(&w);
	if (db_status(db) == Q_OK && !w.stopped)
		mark_old(&w);
	if (db_status(db) == Q_OK && !w.stopped && !p->dry) {
		forget_keys(&w);
		if (db_has(db, FOR_QPOLL))
			forget_polls(&w);
	}
	free_queues(&w);
	if (db_status(db) == Q_OK && w.stopped)
		return db_fail(db, Q_TEMP, "stopped; run it again to go on");
	return db_status(db) != Q_OK ? db_status(db) : w.refused ? Q_NO : Q_OK;
}

int
purge_undo(struct db *db, int64_t now, void (*each)(const struct purge_line *, void *), void *arg)
{
	struct spared { char queue[65]; int64_t jobs, cutoff_ms; } *v = NULL, *more;
	int n = 0;
	struct stmt *s;

	if (!db_has(db, FOR_QPURGE) || db_begin(db, false) != Q_OK)
		return db_status(db);
	s = db_prepare(db, SPARED);
	while (db_step(s) == 1) {
		if ((more = realloc(v, (size_t)(n + 1) * sizeof *v)) == NULL) {
			db_fail(db, Q_TEMP, "out of memory");
			break;
		}
		v = more;
		snprintf(v[n].queue, sizeof v->queue, "%s", db_col_text(s, 0));
		v[n].jobs = db_col_int(s, 1);
		v[n++].cutoff_ms = db_col_int(s, 2);
	}
	db_reset(s);
	db_run(db_prepare(db, UNMARK));
	s = db_prepare(db, STOPPED);
	db_int(s, ":now", now);
	db_run(s);
	if (db_status(db) != Q_OK)
		db_rollback(db);
	else
		db_commit(db);
	for (int i = 0; i < n && db_status(db) == Q_OK; i++)
		if (v[i].jobs > 0)
			each(&(struct purge_line){ .what = PURGE_SPARED, .queue = v[i].queue, .jobs = v[i].jobs, .cutoff_ms = v[i].cutoff_ms }, arg);
	free(v);
	return db_status(db);
}
