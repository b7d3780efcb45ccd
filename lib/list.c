/*
 * list.c - reading jobs: one whole, its attempts, lists by filter, counts.
 *
 * Lists go page by page, each page a read transaction of its own, because a reader that stays
 * keeps the log from being copied.
 */

#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "q.h"

enum { PAGE = 1000 };

static const char GET[] =
	"SELECT j.id, j.fence, j.nonce, j.priority, j.spent, j.generation,\n"
	"       j.attempts, j.base_ms, j.cap_ms, j.window_ms,\n"
	"       CASE WHEN j.lease_ms IS NOT NULL AND (SELECT value FROM q_meta WHERE name = 'boot') IS NOT :boot THEN 0 ELSE j.lease_ms END,\n"
	"       j.added_ms, j.due_ms, j.event_ms, j.claimed_ms,\n"
	"       CASE WHEN j.state = 'claimed' THEN NULL ELSE coalesce(j.finished_ms, a.finished_ms) END,\n"
	"       a.exit, a.signal, a.count,\n"
	"       CASE WHEN j.entity IS NOT NULL AND j.ready_ms IS NULL AND (j.state = 'pending' OR j.state = 'failed')\n"
	"            THEN (SELECT h.id FROM q_job h WHERE h.queue = j.queue AND h.entity = j.entity AND h.head = 1) END,\n"
	"       j.queue, nullif(j.type, ''), j.key, j.entity, j.state, j.zone, j.worker, a.outcome, a.reason, a.result, b.body\n"
	"  FROM q_job j LEFT JOIN q_attempt a ON a.id = j.last_attempt LEFT JOIN q_body b ON b.job = j.id\n"
	" WHERE j.id = :id";
enum { GET_TEXT = 20, GET_RESULT = 29, GET_BODY = 30, GET_COLUMNS = 31 };

static const char LEDGER[] =
	"SELECT prev, generation, attempt, fence, due_ms, started_ms, finished_ms, exit, signal, count,\n"
	"       outcome, state, zone, worker, reason, result\n"
	"  FROM q_attempt WHERE id = :id";
static const char NEWEST[] = "SELECT last_attempt FROM q_job WHERE id = :id";

/* What of a row matches the filter; the page goes on behind rows that do not. */
#define MATCH \
	"       (:states & CASE j.state WHEN 'pending' THEN 1 WHEN 'claimed' THEN 2 WHEN 'failed' THEN 4\n" \
	"                               WHEN 'done' THEN 8 WHEN 'dead' THEN 16 ELSE 32 END) <> 0\n" \
	"       AND (:type IS NULL OR j.type = :type) AND (:key IS NULL OR j.key = :key)\n" \
	"       AND (:entity IS NULL OR j.entity = :entity)\n" \
	"       AND (:older IS NULL OR j.added_ms < :older) AND (:newer IS NULL OR j.added_ms >= :newer)\n" \
	"       AND (:reason IS NULL OR EXISTS(SELECT 1 FROM q_attempt a\n" \
	"                                       WHERE a.id = j.last_attempt AND instr(a.reason, :reason) > 0))\n"

/*
 * The rows behind (:at, :after): first those level with it, then those beyond.  In one comparison of
 * pairs SQLite would not seek by the id, and read all that is level again for each page.
 */
#define CLAIMED_ROWS \
	"SELECT j.id, j.lease_ms, NULL, j.queue,\n" MATCH \
	"  FROM q_job j\n" \
	" WHERE j.queue = :queue AND j.lease_ms IS NOT NULL"
static const char CLAIMED[] =
	CLAIMED_ROWS " AND j.lease_ms = :at AND j.id > :after\n"
	"UNION ALL\n"
	CLAIMED_ROWS " AND j.lease_ms > :at\n"
	" ORDER BY 2, 1 LIMIT :n";

#define READY_ROWS \
	"SELECT j.id, j.ready_ms, NULL, j.queue,\n" MATCH \
	"  FROM q_job j\n" \
	" WHERE j.queue = :queue AND j.priority = :priority AND j.ready_ms IS NOT NULL"
static const char READY[] =
	READY_ROWS " AND j.ready_ms = :at AND j.id > :after\n"
	"UNION ALL\n"
	READY_ROWS " AND j.ready_ms > :at\n"
	" ORDER BY 2, 1 LIMIT :n";

#define BLOCKED_ROWS \
	"SELECT j.id, j.event_ms, j.entity, j.queue,\n" MATCH \
	"       AND j.ready_ms IS NULL AND j.lease_ms IS NULL\n" \
	"  FROM q_job j\n" \
	" WHERE j.queue = :queue AND j.entity IS NOT NULL AND j.finished_ms IS NULL"
static const char BLOCKED[] =
	BLOCKED_ROWS " AND j.entity = :group AND j.event_ms = :at AND j.id > :after\n"
	"UNION ALL\n"
	BLOCKED_ROWS " AND (j.entity, j.event_ms) > (:group, :at)\n"
	" ORDER BY 3, 2, 1 LIMIT :n";

static const char DEAD[] =
	"SELECT j.id, 0, NULL, j.queue,\n" MATCH
	"  FROM q_job j\n"
	" WHERE j.queue = :queue AND j.state = 'dead' AND j.id > :after\n"
	" ORDER BY j.id LIMIT :n";
static const char BY_ID[] =				/* done and cancelled: no index, the whole history is read */
	"SELECT j.id, 0, NULL, j.queue,\n" MATCH
	"  FROM q_job j\n"
	" WHERE j.id > :after\n"
	" ORDER BY j.id LIMIT :n";

static const char NEXT_QUEUE[] =
	"SELECT min(queue) FROM\n"
	"  (SELECT min(queue) AS queue FROM q_job WHERE ready_ms IS NOT NULL AND queue > :last\n"
	"   UNION ALL SELECT min(queue) FROM q_job WHERE lease_ms IS NOT NULL AND queue > :last\n"
	"   UNION ALL SELECT min(queue) FROM q_job WHERE entity IS NOT NULL AND finished_ms IS NULL AND queue > :last\n"
	"   UNION ALL SELECT min(queue) FROM q_count WHERE queue > :last)";

static const char COUNTS[] =
	"SELECT (SELECT count(*) FROM q_job WHERE queue = :queue AND ready_ms IS NOT NULL),\n"
	"       (SELECT count(*) FROM q_job WHERE queue = :queue AND lease_ms IS NOT NULL),\n"
	"       (SELECT count(*) FROM q_job WHERE queue = :queue AND state = 'failed'),\n"
	"       (SELECT count(*) FROM q_job WHERE queue = :queue AND entity IS NOT NULL AND finished_ms IS NULL)\n"
	"         - (SELECT count(*) FROM q_job WHERE queue = :queue AND head = 1),\n"
	"       (SELECT n FROM q_count WHERE queue = :queue AND state = 'done'),\n"
	"       (SELECT n FROM q_count WHERE queue = :queue AND state = 'dead'),\n"
	"       (SELECT n FROM q_count WHERE queue = :queue AND state = 'cancelled')";

static const char KNOWN[] =
	"SELECT 1 FROM q_job WHERE queue = :queue AND ready_ms IS NOT NULL\n"
	"UNION ALL SELECT 1 FROM q_job WHERE queue = :queue AND lease_ms IS NOT NULL\n"
	"UNION ALL SELECT 1 FROM q_job WHERE queue = :queue AND entity IS NOT NULL AND finished_ms IS NULL\n"
	"UNION ALL SELECT 1 FROM q_count WHERE queue = :queue\n"
	"UNION ALL SELECT 1 FROM q_setting WHERE kind = 'queue' AND name = :queue AND field <> 'paused'\n"
	" LIMIT 1";

/* ---- one job ---- */

static const char *
keep(char **at, const void *p, size_t n)
{
	char *copy = *at;

	if (p == NULL)
		return NULL;
	memcpy(copy, p, n);
	copy[n] = '\0';
	*at += n + 1;
	return copy;
}

/* Copies a row's text and blobs out, so that no read transaction stays open behind them. */
static char *
room_for(struct db *db, struct stmt *s, int from, int to, char **buf, size_t *cap)
{
	size_t need = 0, n;
	char *p;

	for (int i = from; i < to; i++) {
		db_col_blob(s, i, &n);
		need += n + 1;
	}
	if (need <= *cap)
		return *buf;
	if ((p = realloc(*buf, need)) == NULL) {
		db_fail(db, Q_TEMP, "out of memory");
		return NULL;
	}
	*buf = p;
	*cap = need;
	return p;
}

int
job_get(struct db *db, int64_t id, struct job *j)
{
	static char *buf;
	static size_t cap;
	struct stmt *s = db_prepare(db, GET);
	const char **text[] = { &j->queue, &j->type, &j->key, &j->entity, &j->state, &j->zone, &j->worker, &j->outcome, &j->reason };
	int64_t *number[] = { &j->id, &j->fence, &j->nonce, &j->priority, &j->spent, &j->generation, &j->attempts,
	    &j->base_ms, &j->cap_ms, &j->window_ms, &j->lease_ms,
	    &j->added_ms, &j->due_ms, &j->event_ms, &j->claimed_ms, &j->settled_ms, &j->exit, &j->signal, &j->count, &j->blocked_by };
	const void *p;
	char *at, boot[40];
	size_t n;

	when_boot(boot);
	db_int(s, ":id", id);
	db_text(s, ":boot", boot);
	if (db_step(s) != 1)
		return db_fail(db, Q_NOINPUT, "no job %" PRId64 " in %s; see qls --state all, -d and Q_DB", id, db_path(db));
	for (int i = 0; i < GET_TEXT; i++)
		*number[i] = db_col_int(s, i);
	if ((at = room_for(db, s, GET_TEXT, GET_COLUMNS, &buf, &cap)) == NULL)
		return db_status(db);
	for (int i = GET_TEXT; i < GET_RESULT; i++) {
		p = db_col_blob(s, i, &n);
		*text[i - GET_TEXT] = keep(&at, p, n);
	}
	p = db_col_blob(s, GET_RESULT, &j->result_len);
	j->result = keep(&at, p, j->result_len);
	p = db_col_blob(s, GET_BODY, &j->payload_len);
	j->payload = keep(&at, p, j->payload_len);
	db_reset(s);
	if (j->queue == NULL || j->state == NULL || j->payload == NULL)
		return db_fail(db, Q_IO, "%s: job %" PRId64 " has lost its %s; the file is damaged; next: go back to a copy, as qbackup(1) says",
		    db_path(db), id, j->payload == NULL ? "payload" : "queue or state");
	return db_status(db);
}

void
job_print(FILE *f, const struct job *j)
{
	job_print_open(f, j);
	fputs("}\n", f);
}

void
job_print_open(FILE *f, const struct job *j)
{
	struct claim c = { j->id, j->fence, j->nonce };
	char word[JOB_CLAIM_TEXT];

	fputs("{\"id\":", f);
	if (j->id == -1)
		fputs("null", f);
	else
		fprintf(f, "%" PRId64, j->id);
	text_json_text(f, "claim", strcmp(j->state, "claimed") == 0 ? claim_text(word, &c) : NULL);
	text_json_text(f, "queue", j->queue);
	text_json_text(f, "type", j->type);
	text_json_text(f, "key", j->key);
	text_json_text(f, "entity", j->entity);
	text_json_int(f, "priority", j->priority);
	text_json_text(f, "state", j->state);
	/* the one that runs, comes next, or was the last: a success spent none, so it is one more than were spent */
	text_json_int(f, "attempt", strcmp(j->state, "dead") == 0 || strcmp(j->state, "cancelled") == 0 ? j->spent : j->spent + 1);
	text_json_int(f, "generation", j->generation);
	text_json_int(f, "attempts", j->attempts);
	text_json_int(f, "backoff_ms", j->base_ms);
	text_json_int(f, "backoff_cap_ms", j->cap_ms);
	text_json_int(f, "window_ms", j->window_ms);
	putc(',', f);
	text_json_bytes(f, "payload", j->payload, j->payload_len);
	text_json_time(f, "added", j->added_ms);
	text_json_time(f, "due", j->due_ms);
	text_json_text(f, "zone", j->zone);
	text_json_time(f, "event", j->event_ms);
	text_json_time(f, "claimed", j->claimed_ms);
	text_json_time(f, "settled", j->settled_ms);
	text_json_text(f, "outcome", j->outcome);
	text_json_int(f, "exit", j->exit);
	text_json_int(f, "signal", j->signal);
	text_json_text(f, "worker", j->worker);
	text_json_int(f, "count", j->count);
	text_json_text(f, "reason", j->reason);
	putc(',', f);
	text_json_bytes(f, "result", j->result, j->result_len);
	text_json_int(f, "blocked_by", j->blocked_by);
}

void
attempt_print(FILE *f, const struct attempt *a)
{
	fprintf(f, "{\"generation\":%" PRId64, a->generation);
	text_json_int(f, "attempt", a->attempt);
	text_json_int(f, "fence", a->fence);
	text_json_text(f, "outcome", a->outcome);
	text_json_text(f, "state", a->state);
	text_json_time(f, "due", a->due_ms);
	text_json_text(f, "zone", a->zone);
	text_json_time(f, "started", a->started_ms);
	text_json_time(f, "finished", a->finished_ms);
	text_json_int(f, "exit", a->exit);
	text_json_int(f, "signal", a->signal);
	text_json_text(f, "worker", a->worker);
	text_json_int(f, "count", a->count);
	text_json_text(f, "reason", a->reason);
	putc(',', f);
	text_json_bytes(f, "result", a->result, a->result_len);
	putc('}', f);
}

int
job_attempts(struct db *db, int64_t id, int (*each)(const struct attempt *, void *), void *arg)
{
	static char *buf;
	static size_t cap;
	struct attempt a = {0};
	struct stmt *s = db_prepare(db, NEWEST);
	const char **text[] = { &a.outcome, &a.state, &a.zone, &a.worker, &a.reason };
	int64_t *number[] = { &a.generation, &a.attempt, &a.fence, &a.due_ms, &a.started_ms, &a.finished_ms, &a.exit, &a.signal, &a.count };
	int64_t row = -1;
	const void *p;
	char *at;
	size_t n;
	int rc = 0;

	db_int(s, ":id", id);
	if (db_step(s) == 1)
		row = db_col_int(s, 0);
	db_reset(s);
	while (row != -1 && rc == 0) {
		s = db_prepare(db, LEDGER);
		db_int(s, ":id", row);
		if (db_step(s) != 1 || (at = room_for(db, s, 10, 16, &buf, &cap)) == NULL)
			break;
		row = db_col_int(s, 0) < row ? db_col_int(s, 0) : -1;	/* always backwards, whatever the file says */
		for (int i = 0; i < 9; i++)
			*number[i] = db_col_int(s, 1 + i);
		for (int i = 0; i < 5; i++) {
			p = db_col_blob(s, 10 + i, &n);
			*text[i] = keep(&at, p, n);
		}
		p = db_col_blob(s, 15, &a.result_len);
		a.result = keep(&at, p, a.result_len);
		db_reset(s);
		if (a.outcome == NULL || a.state == NULL)
			return db_fail(db, Q_IO, "%s: job %" PRId64 " has lost an outcome; the file is damaged; next: go back to a copy, as qbackup(1) says",
			    db_path(db), id);
		rc = each(&a, arg);
	}
	return rc != 0 ? rc : db_status(db);
}

static int
same_fence(const struct attempt *a, void *out)
{
	struct attempt *found = out;

	if (a->fence != found->fence)
		return 0;
	*found = *a;
	return 1;
}

bool
job_settled(struct db *db, const struct claim *c, struct attempt *a)
{
	db_clear(db);			/* of the refusal that raises the question */
	a->fence = c->fence;
	return job_attempts(db, c->id, same_fence, a) == 1 && strcmp(a->outcome, "lost") != 0;
}

/* ---- lists ---- */

bool
job_state(const char *words, unsigned *states)
{
	static const struct { const char *word; unsigned bit; } STATES[] = {
		{ "pending", ST_PENDING }, { "claimed", ST_CLAIMED }, { "failed", ST_FAILED }, { "done", ST_DONE },
		{ "dead", ST_DEAD }, { "cancelled", ST_CANCELLED }, { "open", ST_OPEN }, { "all", ST_ALL }
	};
	size_t i, n;

	*states = 0;
	do {
		n = strcspn(words, ",");
		for (i = 0; i < sizeof STATES / sizeof *STATES; i++)
			if (strlen(STATES[i].word) == n && memcmp(STATES[i].word, words, n) == 0)
				break;
		if (i == sizeof STATES / sizeof *STATES)
			return false;
		*states |= STATES[i].bit;
		words += n;
	} while (*words++ == ',');
	return true;
}

struct lane {				/* where a list is */
	const char *sql, *queue;
	int priority;
	int64_t at, after;
	char group[256];		/* an entity is at most 255 bytes */
};

struct hit { int64_t id; bool match; };

static bool
wanted(const struct job_filter *f, const char *queue)
{
	for (int i = 0; i < f->nqueues; i++)
		if (strcmp(f->queues[i], queue) == 0)
			return true;
	return f->nqueues == 0;
}

/* A name of a row into buf, where a longer one, or one with a NUL, would make the list begin again for ever. */
static bool
copy_name(char *buf, size_t size, struct stmt *s, int column)
{
	size_t n;
	const char *p = db_col_blob(s, column, &n);

	if (p == NULL || n >= size || memchr(p, '\0', n) != NULL)
		return false;
	memcpy(buf, p, n);
	buf[n] = '\0';
	return true;
}

/* One page into hits; its length, -1 on failure. */
static int
page(struct db *db, const struct job_filter *f, struct lane *l, unsigned states, struct hit hits[PAGE])
{
	struct stmt *s = db_prepare(db, l->sql);
	int n = 0;

	db_int(s, ":states", states);
	db_text(s, ":type", f->type);
	db_text(s, ":key", f->key);
	db_text(s, ":entity", f->entity);
	db_opt(s, ":older", f->older_ms);
	db_opt(s, ":newer", f->newer_ms);
	db_text(s, ":reason", f->reason);
	db_int(s, ":after", l->after);
	db_int(s, ":n", PAGE);
	if (l->queue != NULL)
		db_text(s, ":queue", l->queue);
	if (l->sql == READY)
		db_int(s, ":priority", l->priority);
	if (l->sql == BLOCKED)
		db_text(s, ":group", l->group);
	if (l->sql != DEAD && l->sql != BY_ID)
		db_int(s, ":at", l->at);
	while (n < PAGE && db_step(s) == 1) {
		hits[n].id = db_col_int(s, 0);
		hits[n].match = db_col_int(s, 4) == 1 && (l->queue != NULL || wanted(f, db_col_text(s, 3)));
		l->after = hits[n++].id;
		l->at = db_col_int(s, 1);
		if (l->sql == BLOCKED && !copy_name(l->group, sizeof l->group, s, 2)) {
			db_fail(db, Q_IO, "%s: job %" PRId64 " has an entity that no program of q writes", db_path(db), l->after);
			break;
		}
	}
	db_reset(s);
	return db_status(db) != Q_OK ? -1 : n;
}

static int
walk(struct db *db, const struct job_filter *f, const char *sql, const char *queue, int priority, unsigned states,
    int (*each)(int64_t, void *), void *arg)
{
	struct lane l = { .sql = sql, .queue = queue, .priority = priority, .at = INT64_MIN };
	struct hit hits[PAGE];
	int n, rc;

	do {
		if ((n = page(db, f, &l, states, hits)) == -1)
			return db_status(db);
		for (int i = 0; i < n; i++)
			if (hits[i].match && (rc = each(hits[i].id, arg)) != 0)
				return rc;
	} while (n == PAGE);
	return Q_OK;
}

static int
list_queue(struct db *db, const struct job_filter *f, const char *queue, int (*each)(int64_t, void *), void *arg)
{
	unsigned open = f->states & (ST_PENDING | ST_FAILED);
	int rc = Q_OK;

	if (f->states & ST_CLAIMED)
		rc = walk(db, f, CLAIMED, queue, 0, ST_CLAIMED, each, arg);
	for (int p = 0; p < 10 && rc == Q_OK && open != 0; p++)
		rc = walk(db, f, READY, queue, p, open, each, arg);
	if (rc == Q_OK && open != 0)
		rc = walk(db, f, BLOCKED, queue, 0, open, each, arg);
	if (rc == Q_OK && (f->states & ST_DEAD))
		rc = walk(db, f, DEAD, queue, 0, ST_DEAD, each, arg);
	return rc;
}

/* The queue after `last` in the alphabet, into it; false at the end. */
static bool
next_queue(struct db *db, char last[65])
{
	struct stmt *s = db_prepare(db, NEXT_QUEUE);
	bool more;

	db_text(s, ":last", last);
	more = db_step(s) == 1 && db_col_opt(s, 0) != NULL;
	if (more && !(more = copy_name(last, 65, s, 0)))
		db_fail(db, Q_IO, "%s: something has a name that no program of q writes", db_path(db));
	db_reset(s);
	return more;
}

int
job_list(struct db *db, const struct job_filter *f, int (*each)(int64_t, void *), void *arg)
{
	char queue[65] = "";
	int rc = Q_OK;

	for (int i = 0; i < f->nqueues && rc == Q_OK; i++)
		if (!text_repeated(f->queues, i))
			rc = list_queue(db, f, f->queues[i], each, arg);
	while (f->nqueues == 0 && rc == Q_OK && next_queue(db, queue))
		rc = list_queue(db, f, queue, each, arg);
	if (rc == Q_OK && (f->states & (ST_DONE | ST_CANCELLED)))
		rc = walk(db, f, BY_ID, NULL, 0, f->states & (ST_DONE | ST_CANCELLED), each, arg);
	return rc != Q_OK ? rc : db_status(db);
}

int
job_queue_known(struct db *db, const char *queue, bool *known)
{
	struct stmt *s = db_prepare(db, KNOWN);

	db_text(s, ":queue", queue);
	*known = db_step(s) == 1;
	db_reset(s);
	return db_status(db);
}

int
job_counts(struct db *db, int (*each)(const struct job_count *, void *), void *arg)
{
	struct job_count c;
	char queue[65] = "";
	int64_t v[7], ready;
	struct stmt *s;
	int rc = Q_OK;

	while (rc == Q_OK && next_queue(db, queue)) {
		s = db_prepare(db, COUNTS);
		db_text(s, ":queue", queue);
		if (db_step(s) != 1)
			break;
		for (int i = 0; i < 7; i++)
			v[i] = db_col_int(s, i) == -1 ? 0 : db_col_int(s, i);
		db_reset(s);
		ready = v[0];
		c = (struct job_count){ .queue = queue, .pending = ready + v[3] - v[2], .claimed = v[1], .failed = v[2],
		    .blocked = v[3], .done = v[4], .dead = v[5], .cancelled = v[6] };
		rc = each(&c, arg);
	}
	return rc != Q_OK ? rc : db_status(db);
}
