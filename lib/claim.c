/*
 * claim.c - claiming: take back what is lost, obey what is set, pick in order, take.
 *
 * All of it happens inside a write transaction of the caller, so that no two claimers see the same
 * job, place or token free.
 */

#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

enum {
	PRIORITIES = 10,
	RESCUE_MAX = 100,		/* ended leases that one claim takes back */
	SKIP_MAX = 1000			/* superseded jobs that one claim settles */
};

static const char EXPIRED[] =
	"SELECT id, fence, nonce FROM q_job\n"
	" WHERE queue = :queue AND lease_ms <= :boot\n"
	" ORDER BY lease_ms LIMIT :n";

/* What is locked stays: for when anything is. */
#define UNLOCKED \
	"   AND NOT EXISTS(SELECT 1 FROM q_hold WHERE kind = 'lock' AND name = entity AND q_hold.lease_ms > :boot)\n"

/* One seek for each priority: what is not due yet lies behind the cut. */
static const char PICK[] =
	"SELECT id, ready_ms, fence FROM q_job\n"
	" WHERE queue = :queue AND priority = :priority AND ready_ms <= :now\n"
	" ORDER BY ready_ms, id LIMIT :n";
static const char PICK_TYPE[] =
	"SELECT id, ready_ms, fence FROM q_job\n"
	" WHERE queue = :queue AND type = :type AND type <> '' AND priority = :priority AND ready_ms <= :now\n"
	" ORDER BY ready_ms, id LIMIT :n";

static const char PICK_UNLOCKED[] =
	"SELECT id, ready_ms, fence FROM q_job\n"
	" WHERE queue = :queue AND priority = :priority AND ready_ms <= :now\n"
	UNLOCKED
	" ORDER BY ready_ms, id LIMIT :n";
static const char PICK_TYPE_UNLOCKED[] =
	"SELECT id, ready_ms, fence FROM q_job\n"
	" WHERE queue = :queue AND type = :type AND type <> '' AND priority = :priority AND ready_ms <= :now\n"
	UNLOCKED
	" ORDER BY ready_ms, id LIMIT :n";

static const char TAKE[] =
	"UPDATE q_job\n"
	"   SET state = 'claimed', ready_ms = NULL, lease_ms = :lease, fence = fence + 1, nonce = :nonce,\n"
	"       claimed_ms = :now, worker = :worker\n"
	" WHERE id = :id AND ready_ms IS NOT NULL";

/* stale=skip: what came later than a newer event of its entity was done. */
static const char STALE[] =
	"SELECT j.entity FROM q_job j JOIN q_entity e ON e.queue = j.queue AND e.entity = j.entity\n"
	" WHERE j.id = :id AND j.event_ms < e.event_ms";

static const char SKIPPED[] =
	"INSERT INTO q_attempt(job, prev, generation, attempt, fence, queue, type, due_ms, zone, started_ms,\n"
	"                      finished_ms, outcome, state, worker, reason)\n"
	"SELECT id, last_attempt, generation, spent + 1, fence, queue, type, due_ms, zone, :now,\n"
	"       :now, 'superseded', 'done', :worker, 'a newer event of its entity was done before'\n"
	"  FROM q_job WHERE id = :id";

static const char SKIP[] =
	"UPDATE q_job\n"
	"   SET state = 'done', ready_ms = NULL, head = NULL, last_attempt = :attempt, finished_ms = :now\n"
	" WHERE id = :id AND ready_ms IS NOT NULL";

/* Live claims, as far as they matter; one whose lease is over is none, though nobody has taken it back yet. */
static const char LIVE[] = "SELECT count(*) FROM (SELECT 1 FROM q_job WHERE queue = :queue AND lease_ms > :boot LIMIT :n)";

static const char SHARING[] = "SELECT name FROM q_setting WHERE kind = 'queue' AND field = 'limit' AND value = :limit";

static const char NEXT_END[] = "SELECT min(lease_ms) FROM q_job WHERE queue = :queue AND lease_ms > :boot";

static const char NEXT[] =
	"SELECT min(ready_ms) FROM q_job WHERE queue = :queue AND priority = :priority AND ready_ms IS NOT NULL";

static const char NEXT_TYPE[] =
	"SELECT min(ready_ms) FROM q_job\n"
	" WHERE queue = :queue AND type = :type AND type <> '' AND priority = :priority AND ready_ms IS NOT NULL";

static const char NEXT_UNLOCKED[] =
	"SELECT ready_ms FROM q_job\n"
	" WHERE queue = :queue AND priority = :priority AND ready_ms IS NOT NULL\n"
	UNLOCKED
	" ORDER BY ready_ms LIMIT 1";
static const char NEXT_TYPE_UNLOCKED[] =
	"SELECT ready_ms FROM q_job\n"
	" WHERE queue = :queue AND type = :type AND type <> '' AND priority = :priority AND ready_ms IS NOT NULL\n"
	UNLOCKED
	" ORDER BY ready_ms LIMIT 1";

/* What is locked is claimable when it is due and the lock is over. */
static const char NEXT_LOCKED[] =
	"SELECT min(max(j.ready_ms, :now + h.lease_ms - :boot))\n"
	"  FROM q_hold h CROSS JOIN q_job j\n"
	" WHERE h.kind = 'lock' AND h.lease_ms > :boot\n"
	"   AND j.queue = :queue AND j.entity = h.name AND j.head = 1 AND j.ready_ms IS NOT NULL AND (:type IS NULL OR j.type = :type)";

static const char NEXT_LEASE[] = "SELECT min(lease_ms) FROM q_job WHERE queue = :queue AND lease_ms IS NOT NULL";

static const char RUNS[] =
	"SELECT id FROM q_job WHERE queue = :queue AND lease_ms > :boot AND type = :type LIMIT 1";

const struct hot claim_hot[] = {
	{ "EXPIRED", EXPIRED }, { "PICK", PICK }, { "PICK_TYPE", PICK_TYPE }, { "PICK_UNLOCKED", PICK_UNLOCKED },
	{ "PICK_TYPE_UNLOCKED", PICK_TYPE_UNLOCKED }, { "TAKE", TAKE }, { "NEXT", NEXT }, { "NEXT_TYPE", NEXT_TYPE },
	{ "NEXT_LEASE", NEXT_LEASE }, { NULL, NULL }
};

/* ---- claims that are over ---- */

void
job_take_back(struct db *db, const struct claim *c, int64_t now, struct job_dead *dead)
{
	static const struct job_settle LOST = { .outcome = OUT_LOST, .due_ms = -1, .count = -1, .exit = -1, .signal = -1,
	    .reason = "the lease ended before the job was settled" };
	const char *state = NULL;

	if (job_settle(db, c, &LOST, now, &state) != Q_OK || strcmp(state, "dead") != 0 || dead == NULL)
		return;
	if (dead->n < (int)(sizeof dead->id / sizeof *dead->id))
		dead->id[dead->n] = c->id;
	dead->n++;
}

/*
 * Claims whose lease is over are taken back here, by whoever claims next, so nothing else must run.
 * True: there may be more of them.
 */
static bool
rescue(struct db *db, const struct job_want *w, const char *queue, int64_t boot, int64_t now)
{
	struct claim ended[RESCUE_MAX];
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
		job_take_back(db, &ended[i], now, w->dead);
	return n == RESCUE_MAX;
}

/* ---- what lets only so many through ---- */

static const char OWN[] = "queue", SHARED[] = "rate";	/* kinds of buckets */

struct gate {
	const char *kind;		/* OWN, SHARED: a bucket; NULL: a number of live claims */
	char name[66];			/* of the bucket, or whose claims are counted */
	struct rate rate;
	int64_t left, taken;
	int64_t at;			/* when there is more, if there is none left (wall ms); INT64_MAX: not by time */
	int64_t lease;			/* shared claims: when the first of their leases ends (boot ms); INT64_MAX: own, or some left */
};

struct lane {				/* one queue of a claim */
	const char *queue;
	bool paused, skip_stale;
	int64_t age_ms;
	int ngates;
	struct gate *gate[4];
};

struct lanes {
	struct lane *lane;
	struct gate *gates;
	int n, ngates;
	int64_t boot;
	const struct job_want *claimer;	/* NULL: nothing is claimed, it only looks */
	bool more;			/* there may be more claims to take back */
	bool locks;			/* there are any */
};

static void
earlier(int64_t *at, int64_t t)
{
	if (t != -1 && t < *at)
		*at = t;
}

static int64_t
live(struct db *db, const char *queue, int64_t boot, int64_t most)
{
	struct stmt *s = db_prepare(db, LIVE);

	db_text(s, ":queue", queue);
	db_int(s, ":boot", boot);
	db_int(s, ":n", most);
	return db_only(s);
}

int64_t
job_places(struct db *db, const char *name, int64_t most, int64_t boot, int64_t now, const struct job_want *w, bool *more)
{
	struct stmt *s = db_prepare(db, SHARING);
	int64_t n = hold_count(db, "rate", name, boot);

	db_text(s, ":limit", name);
	while (n < most && db_step(s) == 1) {
		if (w != NULL)		/* or a late renewal would make one too many of it */
			*more |= rescue(db, w, db_col_text(s, 0), boot, now);
		n += live(db, db_col_text(s, 0), boot, most);
	}
	db_reset(s);
	return n < most ? n : most;
}

int64_t
job_places_end(struct db *db, const char *name, int64_t boot)
{
	struct stmt *s = db_prepare(db, SHARING), *next;
	int64_t at = INT64_MAX;

	earlier(&at, hold_next_end(db, "rate", name, boot));
	db_text(s, ":limit", name);
	while (db_step(s) == 1) {
		next = db_prepare(db, NEXT_END);
		db_text(next, ":queue", db_col_text(s, 0));
		db_int(next, ":boot", boot);
		earlier(&at, db_only(next));
	}
	return at;
}

/* The gate of this kind and name, shared by the lanes that meet it. */
static void
add_gate(struct db *db, struct lanes *ls, struct lane *l, const char *kind, const char *name, const struct rate *rate, int64_t most, int64_t now)
{
	struct gate *g = ls->gates;

	while (g < ls->gates + ls->ngates && (g->kind != kind || strcmp(g->name, name) != 0))
		g++;
	l->gate[l->ngates++] = g;
	if (g < ls->gates + ls->ngates)
		return;
	ls->ngates++;
	*g = (struct gate){ .kind = kind, .left = most, .at = INT64_MAX, .lease = INT64_MAX };
	snprintf(g->name, sizeof g->name, "%s", name);
	if (rate != NULL) {
		g->rate = *rate;
		rate_look(db, kind, name, rate, ls->boot, now, &g->left, &g->at);
	} else if (strcmp(name, l->queue) == 0) {
		g->left -= live(db, name, ls->boot, most);
	} else {
		g->left -= job_places(db, name + 1, most, ls->boot, now, ls->claimer, &ls->more);
		if (g->left == 0 && ls->claimer == NULL)
			g->lease = job_places_end(db, name + 1, ls->boot);
	}
}

static void
add_shared(struct db *db, struct lanes *ls, struct lane *l, const char *limit, int64_t now)
{
	struct setting set = { .kind = "rate" };
	char name[66];
	const char *value, *why;
	struct rate rate = { .period_us = 0 };
	int64_t when, most;

	snprintf(set.name, sizeof set.name, "%s", limit);
	if (setting_get(db, &set, &value, &when) != Q_OK || !rate_parse(value, &rate, &why))
		rate.period_us = 0;	/* it can be blocked all the same */
	add_gate(db, ls, l, SHARED, limit, &rate, 0, now);
	strcpy(set.field, "concurrency");
	snprintf(name, sizeof name, "/%s", limit);	/* no queue has such a name */
	if (setting_get(db, &set, &value, &when) == Q_OK && text_int(value, 1, 1000000, &most))
		add_gate(db, ls, l, NULL, name, NULL, most, now);
}

static void
lanes_free(struct lanes *ls)
{
	free(ls->lane);
	free(ls->gates);
}

/* What is set for the queues of a claim, and how many each gate lets through now. */
static int
lanes_read(struct db *db, const struct job_want *w, bool claims, int64_t boot, int64_t now, struct lanes *ls)
{
	const struct queue_set *set;
	char limit[65];

	*ls = (struct lanes){ .lane = calloc((size_t)w->nqueues, sizeof *ls->lane),
	    .gates = calloc((size_t)w->nqueues * 4, sizeof *ls->gates), .boot = boot, .claimer = claims ? w : NULL };
	if (ls->lane == NULL || ls->gates == NULL)
		db_fail(db, Q_TEMP, "out of memory");
	ls->locks = lock_any(db, boot);
	for (int i = 0; i < w->nqueues && db_status(db) == Q_OK; i++) {
		struct lane *l = &ls->lane[ls->n];

		if (text_repeated(w->queues, i))
			continue;
		ls->n++;
		l->queue = w->queues[i];
		set = setting_queue(db, l->queue);
		l->paused = set->paused;
		l->skip_stale = set->skip_stale;
		l->age_ms = set->age_ms;
		if (set->rate.period_us > 0)
			add_gate(db, ls, l, OWN, l->queue, &set->rate, 0, now);
		if (set->concurrency != -1)
			add_gate(db, ls, l, NULL, l->queue, NULL, set->concurrency, now);
		snprintf(limit, sizeof limit, "%s", set->limit);
		if (limit[0] != '\0')
			add_shared(db, ls, l, limit, now);
	}
	return db_status(db);
}

/* How many more of this queue may be taken. */
static int64_t
room(const struct lane *l)
{
	int64_t left = l->paused ? 0 : JOB_CLAIM_MAX;

	for (int i = 0; i < l->ngates; i++)
		if (l->gate[i]->left < left)
			left = l->gate[i]->left;
	return left > 0 ? left : 0;
}

struct candidate { int64_t rank, ready, id, fence; struct lane *lane; };

static int
sooner(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->ready != y->ready)
		return x->ready < y->ready ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

struct candidates { struct candidate *v; size_t n, cap; };

static void
add_candidate(struct db *db, struct candidates *found, const struct candidate *c)
{
	struct candidate *v;

	if (found->n == found->cap) {
		if ((v = realloc(found->v, (found->cap == 0 ? 16 : 2 * found->cap) * sizeof *v)) == NULL) {
			db_fail(db, Q_TEMP, "out of memory");
			return;
		}
		found->v = v;
		found->cap = found->cap == 0 ? 16 : 2 * found->cap;
	}
	found->v[found->n++] = *c;
}

/* The oldest of one priority in one queue: with ageing, too, its best. */
static void
pick(struct db *db, const struct job_want *w, const struct lanes *ls, struct lane *l, int priority, int64_t now, int64_t n,
    struct candidates *found)
{
	struct stmt *s;

	if (ls->locks) {
		s = db_prepare(db, w->type != NULL ? PICK_TYPE_UNLOCKED : PICK_UNLOCKED);
		db_int(s, ":boot", ls->boot);
	} else {
		s = db_prepare(db, w->type != NULL ? PICK_TYPE : PICK);
	}
	db_text(s, ":queue", l->queue);
	if (w->type != NULL)
		db_text(s, ":type", w->type);
	db_int(s, ":priority", priority);
	db_int(s, ":now", now);
	db_int(s, ":n", n);
	while (db_step(s) == 1) {
		struct candidate c = { .rank = priority, .id = db_col_int(s, 0), .ready = db_col_int(s, 1),
		    .fence = db_col_int(s, 2), .lane = l };

		if (l->age_ms > 0)
			c.rank -= (now - c.ready) / l->age_ms;
		if (c.rank < 0)
			c.rank = 0;
		add_candidate(db, found, &c);
	}
}

static void
take(struct db *db, const struct job_want *w, const struct candidate *found, int64_t lease, int64_t now, struct claim *c)
{
	struct stmt *s = db_prepare(db, TAKE);

	c->id = found->id;
	c->fence = found->fence + 1;	/* RETURNING would make a table for it, at each run */
	c->nonce = (int64_t)(job_random() & 0xffffffff);
	db_int(s, ":id", c->id);
	db_int(s, ":lease", lease);
	db_int(s, ":nonce", c->nonce);
	db_int(s, ":now", now);
	db_text(s, ":worker", w->worker);
	if (db_run(s) != 1)
		db_fail(db, Q_IO, "%s: job %" PRId64 " is not as its index says; the file is damaged; next: go back to a copy, as qbackup(1) says",
		    db_path(db), c->id);
	for (int i = 0; i < found->lane->ngates; i++) {
		found->lane->gate[i]->left--;
		found->lane->gate[i]->taken++;
	}
}

/* Settle it as superseded, unclaimed, if a newer event of its entity is done. */
static bool
superseded(struct db *db, const struct job_want *w, const struct candidate *found, int64_t now)
{
	struct stmt *s = db_prepare(db, STALE);
	char *entity = NULL;

	db_int(s, ":id", found->id);
	if (db_step(s) == 1 && (entity = strdup(db_col_text(s, 0))) == NULL)
		db_fail(db, Q_TEMP, "out of memory");
	db_reset(s);
	if (entity == NULL)
		return false;
	s = db_prepare(db, SKIPPED);
	db_int(s, ":id", found->id);
	db_int(s, ":now", now);
	db_text(s, ":worker", w->worker);
	db_run(s);
	s = db_prepare(db, SKIP);
	db_int(s, ":id", found->id);
	db_int(s, ":attempt", db_last_id(db));
	db_int(s, ":now", now);
	db_run(s);
	job_entity_order(db, found->lane->queue, entity);
	free(entity);
	return true;
}

/* Take up to n of the priorities from .. to, in order; *skipped: jobs that were settled instead. */
static int
claim_some(struct db *db, const struct job_want *w, struct lanes *ls, int from, int to, int64_t lease, int64_t now, int n,
    struct claim *claims, int *skipped)
{
	struct candidates found = { .v = NULL };
	int got = 0;

	for (struct lane *l = ls->lane; l < ls->lane + ls->n; l++)
		for (int p = from; p < to && room(l) > 0; p++)
			pick(db, w, ls, l, p, now, room(l) < n ? room(l) : n, &found);
	if (found.n > 1 && (ls->n > 1 || to > from + 1))
		qsort(found.v, found.n, sizeof *found.v, sooner);
	for (size_t i = 0; i < found.n && got < n && db_status(db) == Q_OK; i++) {
		const struct candidate *c = &found.v[i];

		if (c->lane->skip_stale && superseded(db, w, c, now))
			++*skipped;
		else if (room(c->lane) > 0)
			take(db, w, c, lease, now, &claims[got++]);
	}
	free(found.v);
	return got;
}

int
job_claim(struct db *db, struct job_want *w, int64_t now, struct claim *claims, int *got)
{
	int64_t boot = job_boot(db);
	struct lanes ls;
	int to, skipped, all = 0;
	bool aged = false, more = false;

	*got = 0;
	w->more = false;
	for (int i = 0; i < w->nqueues; i++)
		if (!text_repeated(w->queues, i))
			more |= rescue(db, w, w->queues[i], boot, now);
	lanes_read(db, w, true, boot, now, &ls);
	for (int i = 0; i < ls.n; i++)
		aged |= ls.lane[i].age_ms > 0;
	/* What was skipped may have let a job of any priority of its entity through: begin again. */
	for (int p = 0; p < PRIORITIES && *got < w->n && all < SKIP_MAX && db_status(db) == Q_OK; p = skipped > 0 ? 0 : to) {
		to = aged ? PRIORITIES : p + 1;
		skipped = 0;
		*got += claim_some(db, w, &ls, p, to, boot + w->lease_ms, now, w->n - *got, claims + *got, &skipped);
		all += skipped;
	}
	w->more = more || ls.more || all >= SKIP_MAX;
	for (struct gate *g = ls.gates; g < ls.gates + ls.ngates; g++)
		if (g->kind != NULL && g->taken > 0 && g->rate.period_us > 0)
			rate_take(db, g->kind, g->name, &g->rate, boot, g->taken);
	lanes_free(&ls);
	return db_status(db);
}

int
job_start(struct db *db, const struct job_new *new, const struct job_want *w, int64_t now, struct claim *c)
{
	struct lane lane = { .queue = new->queue };
	struct candidate run = { .lane = &lane };
	int64_t boot = job_boot(db);
	enum job_added added;
	struct stmt *s;

	while (rescue(db, w, new->queue, boot, now) && db_status(db) == Q_OK)
		;			/* all, or a late renewal would make two of an earlier run and this one */
	s = db_prepare(db, RUNS);
	db_text(s, ":queue", new->queue);
	db_text(s, ":type", new->type);
	db_int(s, ":boot", boot);
	if (db_only(s) != -1 || setting_queue(db, new->queue)->paused)
		return db_status(db) != Q_OK ? db_status(db) : Q_NO;
	if (job_add(db, new, now, &run.id, &added) == Q_OK)
		take(db, w, &run, boot + w->lease_ms, now, c);
	return db_status(db);
}

/* When the first of this queue is due that is not locked, and *locked, when one that is can be had; INT64_MAX: none. */
static int64_t
first_due(struct db *db, const struct job_want *w, const struct lanes *ls, const struct lane *l, int64_t now, int64_t *locked)
{
	int64_t due = INT64_MAX;
	struct stmt *s;

	for (int p = 0; p < PRIORITIES; p++) {
		if (ls->locks) {
			s = db_prepare(db, w->type != NULL ? NEXT_TYPE_UNLOCKED : NEXT_UNLOCKED);
			db_int(s, ":boot", ls->boot);
		} else {
			s = db_prepare(db, w->type != NULL ? NEXT_TYPE : NEXT);
		}
		db_text(s, ":queue", l->queue);
		if (w->type != NULL)
			db_text(s, ":type", w->type);
		db_int(s, ":priority", p);
		earlier(&due, db_only(s));
	}
	*locked = INT64_MAX;
	if (ls->locks) {
		s = db_prepare(db, NEXT_LOCKED);
		db_text(s, ":queue", l->queue);
		db_text(s, ":type", w->type);
		db_int(s, ":now", now);
		db_int(s, ":boot", ls->boot);
		earlier(locked, db_only(s));
	}
	return due;
}

/* When the gates that let nothing through now will all have let one through. */
static int64_t
opens(const struct lane *l)
{
	int64_t at = 0;

	for (int i = 0; i < l->ngates; i++)
		if (l->gate[i]->left <= 0 && l->gate[i]->at > at)
			at = l->gate[i]->at;
	return at;
}

int
job_next(struct db *db, const struct job_want *w, int64_t now, int64_t *at, bool *limited)
{
	char id[40];
	int64_t boot = job_clock(db, id), lease, due, locked;
	struct lanes ls;
	struct stmt *s;

	*at = INT64_MAX;
	if (limited != NULL)
		*limited = false;
	if (boot == -1)
		return db_status(db);
	lanes_read(db, w, false, boot, now, &ls);
	for (struct lane *l = ls.lane; l < ls.lane + ls.n; l++) {
		if (l->paused)
			continue;
		due = first_due(db, w, &ls, l, now, &locked);
		if (due <= now && room(l) == 0) {
			due = opens(l);
			if (limited != NULL)
				*limited |= due != INT64_MAX;
			for (int i = 0; i < l->ngates; i++)
				if (l->gate[i]->left <= 0 && l->gate[i]->lease != INT64_MAX)
					earlier(at, now + l->gate[i]->lease - boot);
		}
		earlier(at, due);
		earlier(at, locked);
		s = db_prepare(db, NEXT_LEASE);
		db_text(s, ":queue", l->queue);
		if ((lease = db_only(s)) != -1)
			earlier(at, lease <= boot ? now : now + lease - boot);
	}
	lanes_free(&ls);
	return db_status(db);
}

int
job_held(struct db *db, const char *queue, int64_t now, enum job_held *held)
{
	char id[40], name[65];
	char *queues[] = { name };
	const struct job_want w = { .queues = queues, .nqueues = 1 };
	int64_t boot = job_clock(db, id), locked;
	struct lanes ls;
	struct lane *l;

	*held = HELD_NOT;
	snprintf(name, sizeof name, "%s", queue);
	if (boot == -1)
		return db_status(db);
	if (lanes_read(db, &w, false, boot, now, &ls) == Q_OK) {
		l = &ls.lane[0];
		if (l->paused)
			*held = HELD_PAUSED;
		else if (ls.locks && first_due(db, &w, &ls, l, now, &locked) > now && locked != INT64_MAX)
			*held = HELD_LOCK;
		for (int i = 0; i < l->ngates && *held == HELD_NOT; i++)
			if (l->gate[i]->left <= 0)
				*held = l->gate[i]->kind != NULL ? HELD_RATE : HELD_BUSY;
	}
	lanes_free(&ls);
	return db_status(db);
}
