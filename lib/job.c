/*
 * job.c - every transition of a job, once (but for claiming, which is claim.c).
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

#include "job.h"

enum {
	BASE_MS = 5 * 1000,		/* default retry policy, with JOB_ATTEMPTS */
	CAP_MS = 10 * 60 * 1000,
	LOST_MAX = 3,			/* lost claims in a row: the job kills its workers */
	DEFER_MS = 24 * 60 * 60 * 1000	/* how long "not now" costs no attempt */
};

/* A key is taken while it is remembered, or its job is unfinished.  What is purged has no payload to differ from. */
static const char KEY[] =
	"SELECT k.job, j.state, j.id IS NULL OR b.body IS :body\n"
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

/* The window of a job that gets a new due time: its own, or what its queue has now. */
#define WINDOW \
	"coalesce(window_ms, (SELECT number FROM q_setting\n" \
	"                      WHERE kind = 'queue' AND name = queue AND field = 'window'\n" \
	"                        AND number BETWEEN 1 AND 315360000000))\n"

static const char REPLACE[] =
	"UPDATE q_job\n"
	"   SET due_ms = :due, event_ms = :event, zone = :zone,\n"
	"       ready_ms = CASE WHEN ready_ms IS NOT NULL THEN :due END,\n"
	"       until_ms = :due + " WINDOW
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

static const char MARK[] =
	"INSERT INTO q_entity SELECT queue, entity, event_ms FROM q_job WHERE id = :id\n"
	"    ON CONFLICT(queue, entity) DO UPDATE SET event_ms = excluded.event_ms WHERE excluded.event_ms > event_ms";

static const char RENEW[] =
	"UPDATE q_job SET lease_ms = :lease\n"
	" WHERE id = :id AND fence = :fence AND nonce = :nonce AND state = 'claimed'";

static const char HELD[] =
	"SELECT j.state, j.queue, j.entity, j.spent, j.lost, j.deferred, j.defer_from_ms, j.due_ms,\n"
	"       j.attempts, j.base_ms, j.cap_ms, j.until_ms, a.outcome, a.fence\n"
	"  FROM q_job j LEFT JOIN q_attempt a ON a.id = j.last_attempt\n"
	" WHERE j.id = :id AND j.fence = :fence AND j.nonce = :nonce";

static const char WHO[] = "SELECT state, fence, generation, queue FROM q_job WHERE id = :id";

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

static const char CANCEL[] =
	"UPDATE q_job\n"
	"   SET state = 'cancelled', ready_ms = NULL, head = NULL, finished_ms = :now\n"
	" WHERE id = :id AND (state = 'pending' OR state = 'failed' OR state = 'dead')\n"
	"RETURNING queue, entity";

static const char DEAD[] =
	"SELECT id FROM q_job WHERE queue = :queue AND state = 'dead' AND id > :after AND type = :type ORDER BY id LIMIT 1";

static const char REPLAY[] =
	"UPDATE q_job\n"
	"   SET state = 'pending', due_ms = :due, ready_ms = CASE WHEN entity IS NULL THEN :due END, finished_ms = NULL,\n"
	"       nonce = NULL, generation = generation + 1, spent = 0, lost = 0, deferred = 0, defer_from_ms = NULL,\n"
	"       until_ms = :due + " WINDOW
	" WHERE id = :id AND (state = 'dead' OR state = 'done' OR state = 'cancelled')\n"
	"RETURNING queue, entity";

/* Who has the key of a job; and the key of a job that runs again is taken again, if it was forgotten. */
static const char HOLDER[] =
	"SELECT k.job FROM q_job j JOIN q_key k ON k.queue = j.queue AND k.key = j.key WHERE j.id = :id";
static const char REKEY[] =
	"INSERT INTO q_key SELECT queue, key, id, 0 FROM q_job WHERE id = :id AND key IS NOT NULL\n"
	"    ON CONFLICT(queue, key) DO NOTHING";

/* Replayed, due later, and not tried since: those that can be claimed by time alone, and those that wait for their entity. */
#define PACED \
	"SELECT count(*), max(j.due_ms) FROM q_job j\n" \
	" WHERE j.queue = :queue AND j.generation > 1 AND j.due_ms > :now AND j.state = 'pending'\n" \
	"   AND NOT EXISTS(SELECT 1 FROM q_attempt a WHERE a.id = j.last_attempt AND a.generation = j.generation)\n"
static const char PACED_READY[] = PACED "   AND j.ready_ms IS NOT NULL";
static const char PACED_BLOCKED[] = PACED "   AND j.ready_ms IS NULL AND j.entity IS NOT NULL AND j.finished_ms IS NULL";

static const char OF_KEY[] = "SELECT job FROM q_key WHERE queue = :queue AND key = :key";
/* As in list.c: a comparison of pairs would read all that is level again each time. */
#define ENTITY_ROWS \
	"SELECT j.id, j.event_ms FROM q_job j\n" \
	" WHERE j.queue = :queue AND j.entity = :entity AND j.finished_ms IS NULL"
static const char OF_ENTITY[] =
	ENTITY_ROWS " AND j.event_ms = :event AND j.id > :id\n"
	"UNION ALL\n"
	ENTITY_ROWS " AND j.event_ms > :event\n"
	" ORDER BY 2, 1 LIMIT 1";

const struct hot job_hot[] = {
	{ "KEY", KEY }, { "BACK", BACK }, { "FRONT", FRONT }, { "RENEW", RENEW }, { "HELD", HELD }, { "ATTEMPT", ATTEMPT },
	{ "SETTLE", SETTLE }, { "DEAD", DEAD }, { NULL, NULL }
};

static const char *const STATES[] = { "pending", "failed", "claimed", "done", "dead", "cancelled" };
static const char *const OUTCOMES[] = { "done", "failed", "deferred", "released", "lost" };

/* ---- adding ---- */

int
job_check(struct db *db, const struct job_new *j)
{
	const struct { const char *what, *value; } names[] =
	    { { "type", j->type }, { "key", j->key }, { "entity", j->entity } };
	size_t max = j->payload_max != 0 ? j->payload_max : JOB_PAYLOAD_MAX;
	const char *fault;

	if (j->queue == NULL || !text_queue(j->queue))
		return db_fail(db, Q_DATA, "bad queue name '%s'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, "
		    "does not begin with . or -, and is not a number", j->queue != NULL ? j->queue : "");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].value != NULL && (fault = text_name_fault(names[i].value)) != NULL)
			return db_fail(db, Q_DATA, "the %s %s", names[i].what, fault);
	if (j->payload_len > max)
		return db_fail(db, Q_DATA, "the payload has %zu bytes, the limit is %zu; store it elsewhere and queue its name",
		    j->payload_len, max);
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
void
job_entity_order(struct db *db, const char *queue, const char *entity)
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
	if (db_step(s) == 1 && db_col_opt(s, 0) != NULL && (entity = strdup(db_col_opt(s, 0))) == NULL)
		db_fail(db, Q_TEMP, "out of memory");
	db_reset(s);
	s = db_prepare(db, REBODY);
	db_int(s, ":id", id);
	db_blob(s, ":body", j->payload, j->payload_len);
	db_run(s);
	job_entity_order(db, j->queue, entity);
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
		state = db_col_opt(s, 1);
		*open = state != NULL && (strcmp(state, "pending") == 0 || strcmp(state, "failed") == 0);
		*same = db_col_int(s, 2) == 1;
	}
	db_reset(s);
	return db_status(db);
}

static void
insert(struct db *db, const struct job_new *j, int64_t now, int64_t *id)
{
	const struct queue_set *set = setting_queue(db, j->queue);
	int64_t window = j->window_ms != -1 ? j->window_ms : set->window_ms, keys = set->keys_ms;
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
	db_opt(s, ":until", window != -1 ? j->due_ms + window : -1);
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
		db_int(s, ":until", keys == 0 || keys == INT64_MAX ? keys : now + keys);
		db_run(s);
	}
	job_entity_order(db, j->queue, j->entity);
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
		db_fail(db, Q_LOST, "claim %s: no such job in %s; nothing changed; see -d and Q_DB", word, db_path(db));
	else if (db_col_int(s, 1) != c->fence)
		db_fail(db, Q_LOST, "claim %s: lost; job %" PRId64 " is %s, its last claim is number %" PRId64 "; nothing changed; see qls %" PRId64,
		    word, c->id, db_col_text(s, 0), db_col_int(s, 1), c->id);
	else
		db_fail(db, Q_LOST, "claim %s: not held; job %" PRId64 " is %s; nothing changed; see qls %" PRId64,
		    word, c->id, db_col_text(s, 0), c->id);
	db_reset(s);
	return db_status(db);
}

/* ---- leases ---- */

uint64_t
job_random(void)
{
	uint64_t r = 0;

	while (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r && errno == EINTR)
		;
	return r;
}

int64_t
job_clock(struct db *db, char id[40])
{
	int64_t ms;

	errno = 0;
	if ((ms = when_boot(id)) != -1)
		return ms;
	if (errno == EMFILE || errno == ENFILE)
		db_fail(db, Q_TEMP, "the boot clock cannot be read: %s; see ulimit -n", strerror(errno));
	else
		db_fail(db, Q_CONFIG, "the boot clock cannot be read, or Q_BOOT is not ID:MS; next: unset Q_BOOT, or mount /proc");
	return -1;
}

/* The same; *same: the leases in the file are of it, too. */
static int64_t
boot_of(struct db *db, char id[40], bool *same)
{
	struct stmt *s;
	int64_t ms;

	*same = true;
	if ((ms = job_clock(db, id)) == -1)
		return -1;
	s = db_prepare(db, BOOT);
	*same = db_step(s) == 1 && strcmp(db_col_text(s, 0), id) == 0;
	db_reset(s);
	return ms;
}

int64_t
job_boot_look(struct db *db, bool *rebooted)
{
	char id[40];
	bool same;
	int64_t ms = boot_of(db, id, &same);

	*rebooted = !same;
	return ms;
}

/* At the first claim after a boot all earlier leases end at once. */
int64_t
job_boot(struct db *db)
{
	char id[40];
	bool same;
	int64_t ms = boot_of(db, id, &same);
	struct stmt *s;

	if (!same && db_status(db) == Q_OK) {
		db_run(db_prepare(db, REBOOT));
		rate_reboot(db);
		hold_reboot(db);
		s = db_prepare(db, BOOTPUT);
		db_text(s, ":boot", id);
		db_run(s);
	}
	return ms;
}

int
job_renew(struct db *db, const struct claim *c, int64_t lease_ms)
{
	int64_t boot = job_boot(db), rows;
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
	int64_t base = h->base, cap = h->cap, max;

	max = tries > 40 || base > cap >> (tries - 1) ? cap : base << (tries - 1);
	return max < 1 ? 0 : 1 + (int64_t)(job_random() % (uint64_t)max);
}

static void
fail(const struct held *h, const struct job_settle *how, int64_t now, struct next *n)
{
	n->spent = h->spent + 1;
	n->deferred = 0;
	n->from = -1;
	if (n->outcome == OUT_LOST) {
		n->lost = h->lost + 1;	/* the same run, begun anew: its due time stays */
	} else {
		n->lost = 0;
		n->due = how->due_ms != -1 ? how->due_ms : now + backoff(h, n->spent);
	}
	if (how->dead || n->spent >= h->attempts || n->lost >= LOST_MAX ||
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
	settled = db_col_opt(s, 12);
	if (strcmp(now_in, "claimed") == 0) {
		found = 1;
		snprintf(h->queue, sizeof h->queue, "%s", db_col_text(s, 1));
		h->entity = NULL;
		if (db_col_opt(s, 2) != NULL && (h->entity = strdup(db_col_opt(s, 2))) == NULL)
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

/* dead_to: a job in another queue, whose payload is the record of the dead one, however long that is. */
static void
pass_on(struct db *db, int64_t id, const char *to, int64_t now)
{
	char *record = NULL, *queue = strdup(to);
	struct job_new new = { .priority = -1, .due_ms = now, .event_ms = -1, .attempts = -1, .window_ms = -1, .base_ms = -1, .cap_ms = -1 };
	struct job job;
	size_t n = 0;
	FILE *f = text_memory(&record, &n);

	if (f != NULL && queue != NULL && job_get(db, id, &job) == Q_OK) {
		job_print(f, &job);
		new.queue = queue;
		new.type = job.type;
		new.entity = job.entity;
	}
	if (f == NULL || fclose(f) != 0 || queue == NULL)
		db_fail(db, Q_TEMP, "out of memory");
	new.payload = record;
	new.payload_len = n > 0 ? n - 1 : 0;	/* without its newline */
	if (db_status(db) == Q_OK)
		insert(db, &new, now, &id);
	free(record);
	free(queue);
}

int
job_settle(struct db *db, const struct claim *c, const struct job_settle *how, int64_t now, const char **state)
{
	struct held h = { .entity = NULL };
	const struct queue_set *set;
	struct next n;
	struct stmt *s;
	int64_t rows;
	bool open;
	int found = held(db, c, how, &h, state);

	if (found != 1)
		return db_status(db);
	set = setting_queue(db, h.queue);
	h.attempts = h.attempts != -1 ? h.attempts : set->attempts != -1 ? set->attempts : JOB_ATTEMPTS;
	h.base = h.base != -1 ? h.base : set->base_ms != -1 ? set->base_ms : BASE_MS;
	h.cap = h.cap != -1 ? h.cap : set->cap_ms != -1 ? set->cap_ms : CAP_MS;
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
	if (n.outcome == OUT_DONE && h.entity != NULL && set->skip_stale) {
		s = db_prepare(db, MARK);
		db_int(s, ":id", c->id);
		db_run(s);
	}
	job_entity_order(db, h.queue, h.entity);
	free(h.entity);
	if (strcmp(n.state, "dead") == 0 && set->dead_to[0] != '\0')
		pass_on(db, c->id, set->dead_to, now);
	if (state != NULL)
		*state = n.state;
	return db_status(db);
}

/* ---- cancelling and replaying ---- */

/* Runs CANCEL or REPLAY.  False: the job is in none of its states. */
static bool
move(struct db *db, struct stmt *s)
{
	char queue[65] = "", *entity = NULL;
	bool moved = db_step(s) == 1;

	if (moved) {
		snprintf(queue, sizeof queue, "%s", db_col_text(s, 0));
		if (db_col_opt(s, 1) != NULL && (entity = strdup(db_col_opt(s, 1))) == NULL)
			db_fail(db, Q_TEMP, "out of memory");
	}
	db_reset(s);
	job_entity_order(db, queue, entity);
	free(entity);
	return moved;
}

int
job_look(struct db *db, int64_t id, struct job_look *look)
{
	struct stmt *s = db_prepare(db, WHO);

	look->state = NULL;
	db_int(s, ":id", id);
	if (db_step(s) == 1) {
		for (size_t i = 0; i < sizeof STATES / sizeof *STATES; i++)
			if (strcmp(db_col_text(s, 0), STATES[i]) == 0)
				look->state = STATES[i];
		look->generation = db_col_int(s, 2);
		snprintf(look->queue, sizeof look->queue, "%s", db_col_text(s, 3));
	}
	db_reset(s);
	if (look->state == NULL)
		return db_fail(db, Q_NOINPUT, "no job %" PRId64 " in %s; see qls --state all, -d and Q_DB", id, db_path(db));
	return db_status(db);
}

int
job_cancel(struct db *db, int64_t id, int64_t now, const char **was)
{
	struct job_look look;
	struct stmt *s;

	if (job_look(db, id, &look) != Q_OK)
		return db_status(db);
	*was = look.state;
	if (strcmp(*was, "cancelled") == 0)
		return Q_OK;
	s = db_prepare(db, CANCEL);
	db_int(s, ":id", id);
	db_int(s, ":now", now);
	if (!move(db, s))
		return db_fail(db, Q_NO, "job %" PRId64 ": too late, it %s", id, strcmp(*was, "claimed") == 0 ? "runs" : "is done");
	return db_status(db);
}

int
job_cancel_dead(struct db *db, const char *queue, const char *type, int most, int64_t now)
{
	const char *was;
	int64_t id = 0;
	struct stmt *s;

	for (; most > 0 && id != -1 && db_status(db) == Q_OK; most--) {
		s = db_prepare(db, DEAD);
		db_text(s, ":queue", queue);
		db_text(s, ":type", type);
		db_int(s, ":after", id);
		if ((id = db_only(s)) != -1)
			job_cancel(db, id, now, &was);
	}
	return db_status(db);
}

int
job_replayable(struct db *db, int64_t id)
{
	struct job_look look;
	int64_t holder;
	unsigned state;
	struct stmt *s;

	if (job_look(db, id, &look) != Q_OK)
		return db_status(db);
	if (job_state(look.state, &state) && (state & ST_OPEN))
		return db_fail(db, Q_NO, "job %" PRId64 " is %s already; only dead, done and cancelled jobs are replayed", id, look.state);
	s = db_prepare(db, HOLDER);
	db_int(s, ":id", id);
	holder = db_only(s);
	if (holder != -1 && holder != id)
		return db_fail(db, Q_NO, "job %" PRId64 ": job %" PRId64 " was added later and has its key; replay that one", id, holder);
	return db_status(db);
}

int
job_replay(struct db *db, int64_t id, int64_t due_ms)
{
	struct stmt *s;

	if (job_replayable(db, id) != Q_OK)
		return db_status(db);
	s = db_prepare(db, REPLAY);
	db_int(s, ":id", id);
	db_int(s, ":due", due_ms);
	if (!move(db, s))
		return db_fail(db, Q_BUG, "job %" PRId64 " was not there to replay", id);
	s = db_prepare(db, REKEY);
	db_int(s, ":id", id);
	db_run(s);
	return db_status(db);
}

int
job_paced(struct db *db, const char *queue, int64_t now, int64_t *n, int64_t *last_ms)
{
	*n = 0;
	*last_ms = now;
	for (int blocked = 0; blocked < 2; blocked++) {
		struct stmt *s = db_prepare(db, blocked ? PACED_BLOCKED : PACED_READY);

		db_text(s, ":queue", queue);
		db_int(s, ":now", now);
		if (db_step(s) == 1) {
			*n += db_col_int(s, 0);
			if (db_col_int(s, 1) > *last_ms)
				*last_ms = db_col_int(s, 1);
		}
		db_reset(s);
	}
	return db_status(db);
}

int
job_of_key(struct db *db, const char *queue, const char *key, int64_t *id)
{
	struct stmt *s = db_prepare(db, OF_KEY);

	db_text(s, ":queue", queue);
	db_text(s, ":key", key);
	*id = db_only(s);
	return *id != -1 ? Q_OK : db_fail(db, Q_NOINPUT, "queue '%s' knows no key '%s' in %s; see qls --state all, -d and Q_DB", queue, key,
	    db_path(db));
}

int
job_of_entity(struct db *db, const char *queue, const char *entity, int (*each)(int64_t, void *), void *arg)
{
	int64_t id = 0, event = INT64_MIN;
	int rc = Q_OK;

	while (rc == Q_OK) {
		struct stmt *s = db_prepare(db, OF_ENTITY);

		db_text(s, ":queue", queue);
		db_text(s, ":entity", entity);
		db_int(s, ":event", event);
		db_int(s, ":id", id);
		id = event = -1;
		if (db_step(s) == 1) {
			id = db_col_int(s, 0);
			event = db_col_int(s, 1);
		}
		db_reset(s);
		if (id == -1)
			break;
		rc = each(id, arg);
	}
	return rc != Q_OK ? rc : db_status(db);
}
