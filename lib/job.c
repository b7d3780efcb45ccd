/*
 * job.c - every transition of a job, once.
 *
 * Each is one UPDATE whose WHERE names the state and the token it needs, inside a write
 * transaction of the caller; so whatever is read before it cannot change in between.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "q.h"

enum {
	PRIORITIES = 10,
	BASE_MS = 5 * 1000,		/* default retry policy, with JOB_ATTEMPTS */
	CAP_MS = 10 * 60 * 1000,
	LOST_MAX = 3,			/* lost claims in a row: the job kills its workers */
	RESCUE_MAX = 100,		/* ended leases that one claim takes back */
	DEFER_MS = 24 * 60 * 60 * 1000	/* how long "not now" costs no attempt */
};

/* A key is taken while it is remembered, or its job is unfinished. */
static const char KEY[] =
	"SELECT k.job, j.state, b.body IS :body\n"
	"  FROM q_key k\n"
	"  LEFT JOIN q_job j ON j.id = k.job\n"
	"  LEFT JOIN q_body b ON b.job = k.job\n"
	" WHERE k.queue = :queue AND k.key = :key\n"
	"   AND (k.until_ms > :now OR (j.id IS NOT NULL AND j.finished_ms IS NULL))";

static const char JOB[] =
	"INSERT INTO q_job(queue, type, key, entity, event_ms, priority, due_ms, zone, ready_ms,\n"
	"                  attempts, base_ms, cap_ms, window_ms, until_ms, added_ms)\n"
	"VALUES(:queue, :type, :key, :entity, :event, :priority, :due, :zone, :ready,\n"
	"       :attempts, :base, :cap, :window, :until, :now)";

static const char BODY[] = "INSERT INTO q_body VALUES(:id, :body)";

static const char KEYPUT[] =
	"INSERT INTO q_key VALUES(:queue, :key, :id, :until)\n"
	"    ON CONFLICT(queue, key) DO UPDATE SET job = excluded.job, until_ms = excluded.until_ms";

static const char REPLACE[] =
	"UPDATE q_job\n"
	"   SET due_ms = :due, event_ms = :event, zone = :zone,\n"
	"       ready_ms = CASE WHEN ready_ms IS NOT NULL THEN :due END,\n"
	"       until_ms = :due + window_ms\n"
	" WHERE id = :id AND (state = 'pending' OR state = 'failed')\n"
	"RETURNING entity";

static const char REBODY[] = "UPDATE q_body SET body = :body WHERE job = :id";

/* An entity's later, unclaimed head steps back ... */
static const char BACK[] =
	"UPDATE q_job\n"
	"   SET head = NULL, ready_ms = NULL\n"
	" WHERE queue = :queue AND entity = :entity AND head = 1 AND ready_ms IS NOT NULL\n"
	"   AND id <> (SELECT id FROM q_job\n"
	"               WHERE queue = :queue AND entity = :entity AND finished_ms IS NULL\n"
	"               ORDER BY event_ms, id LIMIT 1)";

/* ... and where there is no head, the first in order becomes it. */
static const char FRONT[] =
	"UPDATE q_job\n"
	"   SET head = 1, ready_ms = due_ms\n"
	" WHERE id = (SELECT id FROM q_job\n"
	"              WHERE queue = :queue AND entity = :entity AND finished_ms IS NULL\n"
	"              ORDER BY event_ms, id LIMIT 1)\n"
	"   AND NOT EXISTS(SELECT 1 FROM q_job WHERE queue = :queue AND entity = :entity AND head = 1)";

static const char BOOT[] = "SELECT value FROM q_meta WHERE name = 'boot'";
static const char BOOTPUT[] =
	"INSERT INTO q_meta VALUES('boot', :boot) ON CONFLICT(name) DO UPDATE SET value = excluded.value";
static const char REBOOT[] = "UPDATE q_job SET lease_ms = 0 WHERE lease_ms IS NOT NULL";	/* live claims only */

static const char EXPIRED[] =
	"SELECT id, fence, nonce FROM q_job\n"
	" WHERE queue = :queue AND lease_ms <= :boot\n"
	" ORDER BY lease_ms LIMIT :n";

/* One seek for each priority: what is not due yet lies behind the cut. */
static const char PICK[] =
	"SELECT id, ready_ms, fence FROM q_job\n"
	" WHERE queue = :queue AND priority = :priority AND ready_ms <= :now\n"
	" ORDER BY ready_ms, id LIMIT :n";
static const char PICK_TYPE[] =
	"SELECT id, ready_ms, fence FROM q_job\n"
	" WHERE queue = :queue AND type = :type AND type <> '' AND priority = :priority AND ready_ms <= :now\n"
	" ORDER BY ready_ms, id LIMIT :n";

static const char TAKE[] =
	"UPDATE q_job\n"
	"   SET state = 'claimed', ready_ms = NULL, lease_ms = :lease, fence = fence + 1, nonce = :nonce,\n"
	"       claimed_ms = :now, worker = :worker\n"
	" WHERE id = :id AND ready_ms IS NOT NULL";

static const char NEXT[] =
	"SELECT min(ready_ms) FROM q_job WHERE queue = :queue AND priority = :priority AND ready_ms IS NOT NULL";
static const char NEXT_TYPE[] =
	"SELECT min(ready_ms) FROM q_job\n"
	" WHERE queue = :queue AND type = :type AND type <> '' AND priority = :priority AND ready_ms IS NOT NULL";
static const char NEXT_LEASE[] = "SELECT min(lease_ms) FROM q_job WHERE queue = :queue AND lease_ms IS NOT NULL";

static const char RENEW[] =
	"UPDATE q_job SET lease_ms = :lease\n"
	" WHERE id = :id AND fence = :fence AND nonce = :nonce AND state = 'claimed'";

static const char HELD[] =
	"SELECT j.state, j.queue, j.entity, j.spent, j.lost, j.deferred, j.defer_from_ms, j.due_ms,\n"
	"       j.attempts, j.base_ms, j.cap_ms, j.until_ms, a.outcome, a.fence\n"
	"  FROM q_job j LEFT JOIN q_attempt a ON a.id = j.last_attempt\n"
	" WHERE j.id = :id AND j.fence = :fence AND j.nonce = :nonce";

static const char WHO[] = "SELECT state, fence, worker FROM q_job WHERE id = :id";

static const char ATTEMPT[] =
	"INSERT INTO q_attempt(job, prev, generation, attempt, fence, queue, type, due_ms, zone, started_ms,\n"
	"                      finished_ms, outcome, state, exit, signal, worker, count, reason, result)\n"
	"SELECT id, last_attempt, generation, spent + 1, fence, queue, type, due_ms, zone, claimed_ms,\n"
	"       :now, :outcome, :state, :exit, :signal, worker, :count, :reason, :result\n"
	"  FROM q_job\n"
	" WHERE id = :id AND fence = :fence AND nonce = :nonce AND state = 'claimed'";

static const char SETTLE[] =
	"UPDATE q_job\n"
	"   SET state = :state, due_ms = :due,\n"
	"       ready_ms = CASE WHEN :open AND entity IS NULL THEN :due END,\n"
	"       lease_ms = NULL, head = NULL, nonce = CASE WHEN :void THEN NULL ELSE nonce END,\n"
	"       spent = :spent, lost = :lost, deferred = :deferred, defer_from_ms = :from,\n"
	"       last_attempt = :attempt, finished_ms = CASE WHEN :open THEN NULL ELSE :now END\n"
	" WHERE id = :id AND fence = :fence AND nonce = :nonce AND state = 'claimed'";

static const char *const OUTCOMES[] = { "done", "failed", "deferred", "released", "lost" };

/* ---- adding ---- */

int
job_check(struct db *db, const struct job_new *j)
{
	const struct { const char *what, *value; } names[] =
	    { { "type", j->type }, { "key", j->key }, { "entity", j->entity } };
	const char *fault;

	if (j->queue == NULL || !text_queue(j->queue))
		return db_fail(db, Q_DATA, "bad queue name '%s'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, "
		    "does not begin with . or -, and is not a number", j->queue != NULL ? j->queue : "");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].value != NULL && (fault = text_name_fault(names[i].value)) != NULL)
			return db_fail(db, Q_DATA, "the %s %s", names[i].what, fault);
	if (j->payload_len > JOB_PAYLOAD_MAX)
		return db_fail(db, Q_DATA, "the payload has %zu bytes, the limit is %d; store it elsewhere and queue its name",
		    j->payload_len, JOB_PAYLOAD_MAX);
	if (j->priority < -1 || j->priority > 9)
		return db_fail(db, Q_DATA, "priority %" PRId64 " is not from 0 to 9", j->priority);
	if (j->base_ms != -1 && j->cap_ms != -1 && j->base_ms > j->cap_ms)
		return db_fail(db, Q_DATA, "the first backoff is longer than the longest");
	if (j->due_ms < 0 || j->due_ms > WHEN_MAX || j->event_ms < -1 || j->event_ms > WHEN_MAX)
		return db_fail(db, Q_DATA, "the time lies outside the years 1970 to 9999");
	return Q_OK;
}

static void
bind_entity(struct stmt *s, const char *queue, const char *entity)
{
	db_text(s, ":queue", queue);
	db_text(s, ":entity", entity);
	db_run(s);
}

/* After anything that changes who is first of an entity. */
static void
entity_order(struct db *db, const char *queue, const char *entity)
{
	if (entity == NULL)
		return;
	bind_entity(db_prepare(db, BACK), queue, entity);
	bind_entity(db_prepare(db, FRONT), queue, entity);
}

static int
replace(struct db *db, const struct job_new *j, int64_t id)
{
	struct stmt *s = db_prepare(db, REPLACE);
	char *entity = NULL;

	db_int(s, ":id", id);
	db_int(s, ":due", j->due_ms);
	db_int(s, ":event", j->event_ms != -1 ? j->event_ms : j->due_ms);
	db_text(s, ":zone", j->zone);
	if (db_step(s) == 1 && db_col_text(s, 0) != NULL && (entity = strdup(db_col_text(s, 0))) == NULL)
		db_fail(db, Q_TEMP, "out of memory");
	db_reset(s);
	s = db_prepare(db, REBODY);
	db_int(s, ":id", id);
	db_blob(s, ":body", j->payload, j->payload_len);
	db_run(s);
	entity_order(db, j->queue, entity);
	free(entity);
	return db_status(db);
}

/* The job that holds the key: *id 0 if none; *open: it may still be replaced; *same: equal payload. */
static int
key_holder(struct db *db, const struct job_new *j, int64_t now, int64_t *id, bool *open, bool *same)
{
	struct stmt *s = db_prepare(db, KEY);
	const char *state;

	*id = 0;
	db_text(s, ":queue", j->queue);
	db_text(s, ":key", j->key);
	db_int(s, ":now", now);
	db_blob(s, ":body", j->payload, j->payload_len);
	if (db_step(s) == 1) {
		*id = db_col_int(s, 0);
		state = db_col_text(s, 1);
		*open = state != NULL && (strcmp(state, "pending") == 0 || strcmp(state, "failed") == 0);
		*same = db_col_int(s, 2) == 1;
	}
	db_reset(s);
	return db_status(db);
}

static void
insert(struct db *db, const struct job_new *j, int64_t now, int64_t *id)
{
	struct stmt *s = db_prepare(db, JOB);

	db_text(s, ":queue", j->queue);
	db_text(s, ":type", j->type != NULL ? j->type : "");
	db_text(s, ":key", j->key);
	db_text(s, ":entity", j->entity);
	db_int(s, ":event", j->event_ms != -1 ? j->event_ms : j->due_ms);
	db_int(s, ":priority", j->priority != -1 ? j->priority : 5);
	db_int(s, ":due", j->due_ms);
	db_text(s, ":zone", j->zone);
	db_opt(s, ":ready", j->entity == NULL ? j->due_ms : -1);
	db_opt(s, ":attempts", j->attempts);
	db_opt(s, ":base", j->base_ms);
	db_opt(s, ":cap", j->cap_ms);
	db_opt(s, ":window", j->window_ms);
	db_opt(s, ":until", j->window_ms != -1 ? j->due_ms + j->window_ms : -1);
	db_int(s, ":now", now);
	if (db_run(s) == -1)
		return;
	*id = db_last_id(db);
	if (*id > JOB_ID_MAX)
		db_fail(db, Q_CONFIG, "ids have reached 2^53; start a new file");
	s = db_prepare(db, BODY);
	db_int(s, ":id", *id);
	db_blob(s, ":body", j->payload, j->payload_len);
	db_run(s);
	if (j->key != NULL) {
		s = db_prepare(db, KEYPUT);
		db_text(s, ":queue", j->queue);
		db_text(s, ":key", j->key);
		db_int(s, ":id", *id);
		db_int(s, ":until", INT64_MAX);
		db_run(s);
	}
	entity_order(db, j->queue, j->entity);
}

int
job_plan(struct db *db, const struct job_new *j, int64_t now, int64_t *id, enum job_added *added)
{
	bool open = false, same = false;

	*added = ADD_NEW;
	*id = 0;
	if (job_check(db, j) != Q_OK || j->key == NULL || key_holder(db, j, now, id, &open, &same) != Q_OK || *id == 0)
		return db_status(db);
	*added = same ? ADD_KNOWN : ADD_DIFFERS;
	if (j->dup == DUP_STRICT && !same)
		return db_fail(db, Q_DATA, "key '%s' already holds job %" PRId64 " with another payload", j->key, *id);
	if (j->dup == DUP_REPLACE && open)
		*added = ADD_REPLACED;
	else if (j->dup == DUP_REPLACE) {	/* claimed or settled: the update must not be swallowed */
		*added = ADD_NEW;
		*id = 0;
	}
	return db_status(db);
}

int
job_add(struct db *db, const struct job_new *j, int64_t now, int64_t *id, enum job_added *added)
{
	if (job_plan(db, j, now, id, added) != Q_OK)
		return db_status(db);
	if (*added == ADD_REPLACED)
		return replace(db, j, *id);
	if (*added == ADD_NEW)
		insert(db, j, now, id);
	return db_status(db);
}

/* ---- claims ---- */

static void
bind_claim(struct stmt *s, const struct claim *c)
{
	db_int(s, ":id", c->id);
	db_int(s, ":fence", c->fence);
	db_int(s, ":nonce", c->nonce);
}

/* Why a claim is not held: for the message of Q_LOST. */
static int
stale(struct db *db, const struct claim *c)
{
	struct stmt *s = db_prepare(db, WHO);
	char word[JOB_CLAIM_TEXT];

	claim_text(word, c);
	db_int(s, ":id", c->id);
	if (db_step(s) != 1)
		db_fail(db, Q_LOST, "claim %s: no such job in this file; nothing changed", word);
	else if (db_col_int(s, 1) != c->fence)
		db_fail(db, Q_LOST, "claim %s: lost; job %" PRId64 " is %s, its last claim is number %" PRId64 "; nothing changed",
		    word, c->id, db_col_text(s, 0), db_col_int(s, 1));
	else
		db_fail(db, Q_LOST, "claim %s: not held; job %" PRId64 " is %s; nothing changed; see qls %" PRId64,
		    word, c->id, db_col_text(s, 0), c->id);
	db_reset(s);
	return db_status(db);
}

/* ---- leases ---- */

static uint64_t
random_bits(void)
{
	uint64_t r = 0;

	while (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r && errno == EINTR)
		;
	return r;
}

/* The boot clock; at the first claim after a boot all earlier leases end at once. */
static int64_t
boot_clock(struct db *db)
{
	char id[40];
	struct stmt *s;
	int64_t ms;
	bool same;

	errno = 0;
	if ((ms = when_boot(id)) == -1) {
		if (errno == EMFILE || errno == ENFILE)
			db_fail(db, Q_TEMP, "the boot clock cannot be read: %s; see ulimit -n", strerror(errno));
		else
			db_fail(db, Q_CONFIG, "the boot clock cannot be read, or Q_BOOT is not ID:MS");
		return -1;
	}
	s = db_prepare(db, BOOT);
	same = db_step(s) == 1 && strcmp(db_col_text(s, 0), id) == 0;
	db_reset(s);
	if (!same && db_status(db) == Q_OK) {
		db_run(db_prepare(db, REBOOT));
		s = db_prepare(db, BOOTPUT);
		db_text(s, ":boot", id);
		db_run(s);
	}
	return ms;
}

int
job_renew(struct db *db, const struct claim *c, int64_t lease_ms)
{
	int64_t boot = boot_clock(db), rows;
	struct stmt *s = db_prepare(db, RENEW);

	bind_claim(s, c);
	db_int(s, ":lease", boot + lease_ms);
	rows = db_run(s);
	return rows == 0 ? stale(db, c) : db_status(db);
}

/* ---- settling ---- */

struct held {				/* what settling needs to know of a job */
	char queue[65], *entity;
	int64_t spent, lost, deferred, from, due, attempts, base, cap, until;
};

struct next {				/* what it becomes */
	enum job_outcome outcome;
	const char *state, *reason;
	int64_t due, spent, lost, deferred, from;
};

/* Full jitter: anywhere up to base, doubled for each try so far, so that what failed together does not return together. */
static int64_t
backoff(const struct held *h, int64_t tries)
{
	int64_t base = h->base != -1 ? h->base : BASE_MS, cap = h->cap != -1 ? h->cap : CAP_MS, max;

	max = tries > 40 || base > cap >> (tries - 1) ? cap : base << (tries - 1);
	return max < 1 ? 0 : 1 + (int64_t)(random_bits() % (uint64_t)max);
}

static void
fail(const struct held *h, const struct job_settle *how, int64_t now, struct next *n)
{
	int64_t attempts = h->attempts != -1 ? h->attempts : JOB_ATTEMPTS;

	n->spent = h->spent + 1;
	n->deferred = 0;
	n->from = -1;
	if (n->outcome == OUT_LOST) {
		n->lost = h->lost + 1;	/* the same run, begun anew: its due time stays */
	} else {
		n->lost = 0;
		n->due = how->due_ms != -1 ? how->due_ms : now + backoff(h, n->spent);
	}
	if (how->dead || n->spent >= attempts || n->lost >= LOST_MAX ||
	    (h->until != -1 && (n->due > now ? n->due : now) > h->until)) {
		n->state = "dead";
		n->due = h->due;
	} else {
		n->state = "failed";
	}
}

static void
decide(const struct held *h, const struct job_settle *how, int64_t now, struct next *n)
{
	*n = (struct next){ .outcome = how->outcome, .reason = how->reason, .due = h->due, .spent = h->spent,
	    .lost = h->lost, .deferred = h->deferred, .from = h->from, .state = "pending" };
	switch (how->outcome) {
	case OUT_DONE:
		n->state = "done";
		n->lost = n->deferred = 0;
		n->from = -1;
		break;
	case OUT_RELEASED:
		break;
	case OUT_DEFERRED:
		if (h->from != -1 && now - h->from > DEFER_MS) {
			n->outcome = OUT_FAILED;
			if (n->reason == NULL)
				n->reason = "deferred for more than 24h";
			fail(h, how, now, n);
			break;
		}
		n->deferred = h->deferred + 1;
		n->lost = 0;
		n->due = how->due_ms != -1 ? how->due_ms : now + backoff(h, n->deferred);
		n->from = h->from != -1 ? h->from : now;
		if (how->due_ms > now)	/* a wait that was asked for is not held against it */
			n->from += how->due_ms - now;
		break;
	case OUT_FAILED:
	case OUT_LOST:
		fail(h, how, now, n);
		break;
	}
}

/* Reads the job under a claim.  1: held; 0: settled by this token before, and as it is asked now; -1: stale or failed. */
static int
held(struct db *db, const struct claim *c, const struct job_settle *how, struct held *h, const char **state)
{
	static const char *const STATES[] = { "pending", "failed", "done", "dead", "cancelled" };
	struct stmt *s = db_prepare(db, HELD);
	const char *now_in, *settled;
	int found = -1;

	bind_claim(s, c);
	if (db_step(s) != 1) {
		if (db_status(db) == Q_OK)
			stale(db, c);
		return -1;
	}
	now_in = db_col_text(s, 0);
	settled = db_col_text(s, 12);
	if (strcmp(now_in, "claimed") == 0) {
		found = 1;
		snprintf(h->queue, sizeof h->queue, "%s", db_col_text(s, 1));
		h->entity = NULL;
		if (db_col_text(s, 2) != NULL && (h->entity = strdup(db_col_text(s, 2))) == NULL)
			db_fail(db, Q_TEMP, "out of memory");
		h->spent = db_col_int(s, 3);
		h->lost = db_col_int(s, 4);
		h->deferred = db_col_int(s, 5);
		h->from = db_col_int(s, 6);
		h->due = db_col_int(s, 7);
		h->attempts = db_col_int(s, 8);
		h->base = db_col_int(s, 9);
		h->cap = db_col_int(s, 10);
		h->until = db_col_int(s, 11);
	} else if (settled != NULL && db_col_int(s, 13) == c->fence && strcmp(settled, OUTCOMES[how->outcome]) == 0 &&
	    !(how->dead && strcmp(now_in, "failed") == 0)) {
		found = 0;
		for (size_t i = 0; state != NULL && i < sizeof STATES / sizeof *STATES; i++)
			if (strcmp(now_in, STATES[i]) == 0)
				*state = STATES[i];
	} else {
		stale(db, c);
	}
	db_reset(s);
	return found;
}

int
job_settle(struct db *db, const struct claim *c, const struct job_settle *how, int64_t now, const char **state)
{
	struct held h = { .entity = NULL };
	struct next n;
	struct stmt *s;
	int64_t rows;
	bool open;
	int found = held(db, c, how, &h, state);

	if (found != 1)
		return db_status(db);
	decide(&h, how, now, &n);
	open = strcmp(n.state, "pending") == 0 || strcmp(n.state, "failed") == 0;
	s = db_prepare(db, ATTEMPT);
	bind_claim(s, c);
	db_int(s, ":now", now);
	db_text(s, ":outcome", OUTCOMES[n.outcome]);
	db_text(s, ":state", n.state);
	db_opt(s, ":exit", how->exit);
	db_opt(s, ":signal", how->signal);
	db_opt(s, ":count", how->count);
	db_text(s, ":reason", n.reason);
	db_blob(s, ":result", how->result, how->result_len);
	db_run(s);
	s = db_prepare(db, SETTLE);
	bind_claim(s, c);
	db_text(s, ":state", n.state);
	db_int(s, ":open", open);
	db_int(s, ":void", n.outcome == OUT_LOST);
	db_int(s, ":due", n.due);
	db_int(s, ":spent", n.spent);
	db_int(s, ":lost", n.lost);
	db_int(s, ":deferred", n.deferred);
	db_opt(s, ":from", n.from);
	db_int(s, ":attempt", db_last_id(db));
	db_int(s, ":now", now);
	rows = db_run(s);
	if (rows != 1)
		db_fail(db, Q_BUG, "settling job %" PRId64 " changed %" PRId64 " rows", c->id, rows);
	entity_order(db, h.queue, h.entity);
	free(h.entity);
	if (state != NULL)
		*state = n.state;
	return db_status(db);
}

/* ---- claiming ---- */

/* Claims whose lease is over are taken back here, by whoever claims next, so nothing else must run. */
static int
rescue(struct db *db, const struct job_want *w, const char *queue, int64_t boot, int64_t now)
{
	static const struct job_settle LOST = { .outcome = OUT_LOST, .due_ms = -1, .count = -1, .exit = -1, .signal = -1,
	    .reason = "the lease ended before the job was settled" };
	struct claim ended[RESCUE_MAX];
	const char *state = NULL;
	struct stmt *s = db_prepare(db, EXPIRED);
	int n = 0;

	db_text(s, ":queue", queue);
	db_int(s, ":boot", boot);
	db_int(s, ":n", RESCUE_MAX);
	while (db_step(s) == 1 && n < RESCUE_MAX) {
		ended[n].id = db_col_int(s, 0);
		ended[n].fence = db_col_int(s, 1);
		ended[n++].nonce = db_col_int(s, 2);
	}
	db_reset(s);
	for (int i = 0; i < n; i++)
		if (job_settle(db, &ended[i], &LOST, now, &state) == Q_OK && strcmp(state, "dead") == 0 && w->dead != NULL) {
			if (w->dead->n < (int)(sizeof w->dead->id / sizeof *w->dead->id))
				w->dead->id[w->dead->n] = ended[i].id;
			w->dead->n++;
		}
	return db_status(db);
}

struct candidate { int64_t ready, id, fence; };

static int
sooner(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->ready != y->ready)
		return x->ready < y->ready ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* The candidates of one priority in all the queues, at most n of each, in claim order. */
static int
pick(struct db *db, const struct job_want *w, int priority, int64_t now, int n, struct candidate *found)
{
	int k = 0;

	for (int i = 0; i < w->nqueues; i++) {
		struct stmt *s;

		if (text_repeated(w->queues, i))
			continue;
		s = db_prepare(db, w->type != NULL ? PICK_TYPE : PICK);
		db_text(s, ":queue", w->queues[i]);
		if (w->type != NULL)
			db_text(s, ":type", w->type);
		db_int(s, ":priority", priority);
		db_int(s, ":now", now);
		db_int(s, ":n", n);
		while (db_step(s) == 1) {
			found[k].id = db_col_int(s, 0);
			found[k].ready = db_col_int(s, 1);
			found[k++].fence = db_col_int(s, 2);
		}
	}
	if (w->nqueues > 1)
		qsort(found, (size_t)k, sizeof *found, sooner);
	return k;
}

static void
take(struct db *db, const struct job_want *w, const struct candidate *found, int64_t lease, int64_t now, struct claim *c)
{
	struct stmt *s = db_prepare(db, TAKE);

	c->id = found->id;
	c->fence = found->fence + 1;	/* RETURNING would make a table for it, at each run */
	c->nonce = (int64_t)(random_bits() & 0xffffffff);
	db_int(s, ":id", c->id);
	db_int(s, ":lease", lease);
	db_int(s, ":nonce", c->nonce);
	db_int(s, ":now", now);
	db_text(s, ":worker", w->worker);
	if (db_run(s) != 1)
		db_fail(db, Q_BUG, "job %" PRId64 " was not there to take", c->id);
}

int
job_claim(struct db *db, const struct job_want *w, int64_t now, struct claim *claims, int *got)
{
	struct candidate *found = calloc((size_t)w->n * (size_t)w->nqueues, sizeof *found);
	int64_t boot = boot_clock(db);
	int p, i, k;

	*got = 0;
	if (found == NULL)
		return db_fail(db, Q_TEMP, "out of memory");
	for (i = 0; i < w->nqueues; i++)
		if (!text_repeated(w->queues, i))
			rescue(db, w, w->queues[i], boot, now);
	for (p = 0; p < PRIORITIES && *got < w->n && db_status(db) == Q_OK; p++) {
		k = pick(db, w, p, now, w->n - *got, found);
		for (i = 0; i < k && *got < w->n && db_status(db) == Q_OK; i++)
			take(db, w, &found[i], boot + w->lease_ms, now, &claims[(*got)++]);
	}
	free(found);
	return db_status(db);
}

static void
earlier(int64_t *at, int64_t t)
{
	if (t != -1 && t < *at)
		*at = t;
}

/* The only column of the only row. */
static int64_t
only(struct stmt *s)
{
	int64_t v = db_step(s) == 1 ? db_col_int(s, 0) : -1;

	db_reset(s);
	return v;
}

int
job_next(struct db *db, const struct job_want *w, int64_t now, int64_t *at)
{
	char id[40];
	int64_t boot = when_boot(id), lease;
	struct stmt *s;

	*at = INT64_MAX;
	if (boot == -1)
		return db_fail(db, Q_CONFIG, "the boot clock cannot be read, or Q_BOOT is not ID:MS");
	for (int i = 0; i < w->nqueues; i++) {
		for (int p = 0; p < PRIORITIES; p++) {
			s = db_prepare(db, w->type != NULL ? NEXT_TYPE : NEXT);
			db_text(s, ":queue", w->queues[i]);
			if (w->type != NULL)
				db_text(s, ":type", w->type);
			db_int(s, ":priority", p);
			earlier(at, only(s));
		}
		s = db_prepare(db, NEXT_LEASE);
		db_text(s, ":queue", w->queues[i]);
		if ((lease = only(s)) != -1)
			earlier(at, lease <= boot ? now : now + lease - boot);
	}
	return db_status(db);
}
