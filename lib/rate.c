/*
 * rate.c - token buckets, shared by all processes through the file
 *
 * The generic cell rate algorithm: the bucket is one number, the time at which it would be full
 * again, so nothing has to refill it and no process has to be alive for it.  It runs on the boot clock, as
 * leases do: setting the clock neither opens nor closes it.
 */
#include <stdlib.h>
#include <string.h>

#include "job.h"

enum { MARK_MS = 2000 };		/* how long a waiting mark outlives the moment for which it waits */
#define BLOCK_MAX INT64_C(315360000000)	/* 10 years */

static const char BLOCKS[] = "SELECT name, blocked_ms FROM q_rate WHERE kind = 'rate' AND blocked_ms > :now ORDER BY name";
static const char LOOK[] = "SELECT full_us, blocked_ms FROM q_rate WHERE kind = :kind AND name = :name";

static const char TAKE[] =
	"INSERT INTO q_rate(kind, name, full_us) VALUES(:kind, :name, :full)\n"
	"    ON CONFLICT(kind, name) DO UPDATE SET full_us = excluded.full_us";

/* An empty bucket of long ago is full, so that a new row needs no clock. */
static const char BLOCK[] =
	"INSERT INTO q_rate(kind, name, full_us, blocked_ms) VALUES('rate', :name, 0, :until)\n"
	"    ON CONFLICT(kind, name) DO UPDATE SET blocked_ms = excluded.blocked_ms\n"
	" WHERE blocked_ms < excluded.blocked_ms";
static const char UNBLOCK[] = "UPDATE q_rate SET blocked_ms = 0 WHERE kind = 'rate' AND name = :name";

static const char REFILL[] = "UPDATE q_rate SET full_us = 0 WHERE kind = :kind AND name = :name";
static const char REBOOT[] = "UPDATE q_rate SET full_us = 0";	/* buckets in use, once a boot */

bool
rate_parse(const char *s, struct rate *r, const char **why)
{
	const char *slash = strchr(s, '/'), *plus = strchr(s, '+'), *unit;
	int64_t n, ms;
	char count[20], per[32];
	size_t len;

	*why = "is not a rate such as 10/s, 600/m+20 (burst 20) or 1/90s";
	if (slash == NULL || (plus != NULL && plus < slash))
		return false;
	unit = slash + 1;
	len = plus != NULL ? (size_t)(plus - unit) : strlen(unit);
	if (slash - s >= (int)sizeof count || len + 2 > sizeof per || len == 0)
		return false;
	memcpy(count, s, (size_t)(slash - s));
	count[slash - s] = '\0';
	per[0] = '1';			/* "/s" is "/1s" */
	memcpy(per + (strchr("0123456789", *unit) == NULL), unit, len);
	per[len + (strchr("0123456789", *unit) == NULL)] = '\0';
	r->burst = 1;
	if (!text_int(count, 1, 1000000, &n) || !when_duration(per, &ms, &(const char *){ NULL }) || ms == 0 ||
	    (plus != NULL && !text_int(plus + 1, 1, 1000000, &r->burst)))
		return false;
	r->period_us = n <= ms * 1000 ? (ms * 1000 + n - 1) / n : 0;	/* rounded so that it is never exceeded */
	*why = "is more than a million a second, or its burst lasts longer than 10 years";
	return r->period_us > 0 && r->burst <= INT64_C(315360000000000) / r->period_us;
}

/* When the bucket is full again, on the boot clock; never further off than an empty one is, whatever the limit was before. */
static int64_t
full_at(struct db *db, const char *kind, const char *name, const struct rate *r, int64_t boot_us, int64_t *blocked_ms)
{
	struct stmt *s = db_prepare(db, LOOK);
	int64_t full = boot_us, empty = boot_us + r->burst * r->period_us;

	*blocked_ms = 0;
	db_text(s, ":kind", kind);
	db_text(s, ":name", name);
	if (db_step(s) == 1) {
		full = db_col_int(s, 0);
		*blocked_ms = db_col_int(s, 1);
	}
	db_reset(s);
	return full < boot_us ? boot_us : full > empty ? empty : full;
}

/* How many tokens there are now; *at: when there are `need` of them. */
static int64_t
tokens(struct db *db, const char *kind, const char *name, const struct rate *r, int64_t boot, int64_t now, int64_t need, int64_t *at)
{
	int64_t blocked, full = full_at(db, kind, name, r, boot * 1000, &blocked);
	int64_t wait = full - (r->burst - need) * r->period_us - boot * 1000;	/* us */

	*at = now + (wait > 0 ? (wait + 999) / 1000 : 0);
	if (*at < blocked)
		*at = blocked;
	if (blocked > now)
		return 0;
	return r->period_us == 0 ? INT64_MAX : r->burst - (full - boot * 1000 + r->period_us - 1) / r->period_us;
}

int
rate_look(struct db *db, const char *kind, const char *name, const struct rate *r, int64_t boot, int64_t now, int64_t *n, int64_t *at)
{
	*n = tokens(db, kind, name, r, boot, now, 1, at);
	return db_status(db);
}

int
rate_take(struct db *db, const char *kind, const char *name, const struct rate *r, int64_t boot, int64_t n)
{
	int64_t blocked, full = full_at(db, kind, name, r, boot * 1000, &blocked);
	struct stmt *s = db_prepare(db, TAKE);

	db_text(s, ":kind", kind);
	db_text(s, ":name", name);
	db_int(s, ":full", full + n * r->period_us);
	db_run(s);
	return db_status(db);
}

int
rate_refill(struct db *db, const char *kind, const char *name)
{
	struct stmt *s = db_prepare(db, REFILL);

	db_text(s, ":kind", kind);
	db_text(s, ":name", name);
	db_run(s);
	return db_status(db);
}

int
rate_reboot(struct db *db)
{
	db_run(db_prepare(db, REBOOT));
	return db_status(db);
}

/* ---- blocks -------------------------------------------------------------- */

int
rate_block(struct db *db, const char *name, int64_t until_ms)
{
	int64_t last = when_now() + BLOCK_MAX;
	struct stmt *s = db_prepare(db, BLOCK);

	db_text(s, ":name", name);
	db_int(s, ":until", until_ms < last ? until_ms : last);
	db_run(s);
	return db_status(db);
}

int
rate_unblock(struct db *db, const char *name)
{
	struct stmt *s = db_prepare(db, UNBLOCK);

	db_text(s, ":name", name);
	db_run(s);
	return db_status(db);
}

int
rate_blocks(struct db *db, int64_t now, int (*each)(const char *, int64_t, void *), void *arg)
{
	struct stmt *s = db_prepare(db, BLOCKS);
	int rc = Q_OK;

	db_int(s, ":now", now);
	while (rc == Q_OK && db_step(s) == 1)
		rc = each(db_col_text(s, 0), db_col_int(s, 1), arg);
	db_reset(s);
	return db_status(db) != Q_OK ? db_status(db) : rc;
}

/* ---- users that are no claims -------------------------------------------- */

struct limits { struct rate rate; int64_t places; };	/* period 0, places -1: not set */

static int
limits(struct db *db, const char *name, struct limits *l)
{
	struct setting set = { .kind = "rate" };
	const char *value, *why;
	int64_t when;

	*l = (struct limits){ .places = -1 };
	snprintf(set.name, sizeof set.name, "%s", name);
	/* A value that qset would refuse, of another program's making, is none. */
	if (setting_get(db, &set, &value, &when) == Q_OK && !rate_parse(value, &l->rate, &why))
		l->rate.period_us = 0;
	strcpy(set.field, "concurrency");
	if (setting_get(db, &set, &value, &when) == Q_OK && !text_int(value, 1, 1000000, &l->places))
		l->places = -1;
	if (db_status(db) == Q_OK && l->rate.period_us == 0 && l->places == -1)
		db_fail(db, Q_CONFIG, "rate %s is not set; next: qset rate.%s=10/s", name, name);
	return db_status(db);
}

int
rate_known(struct db *db, const char *name)
{
	struct limits l;

	return limits(db, name, &l);
}

int
rate_burst(struct db *db, const char *name, int64_t *burst)
{
	struct limits l;
	int rc = limits(db, name, &l);

	*burst = rc == Q_OK && l.rate.period_us > 0 ? l.rate.burst : 0;
	return rc;
}

static void
later(int64_t *at, int64_t t)
{
	if (t > *at)
		*at = t;
}

/* Is there a token, and a place?  settle: inside a transaction, so that claims whose lease is over can be taken back. */
static bool
free_now(struct db *db, struct rate_user *u, const struct limits *l, int64_t boot, int64_t now, bool settle, int64_t *at)
{
	static const struct job_want NOBODY = { .worker = NULL };
	int64_t burst = l->rate.burst, need = 1, end;
	bool yes, more = false;

	if (u->reserve > 0 && l->rate.period_us > 0)
		need += u->reserve < burst ? u->reserve : burst - 1;
	yes = tokens(db, "rate", u->name, &l->rate, boot, now, need, at) >= need;
	if (u->reserve > 0 && (end = hold_next_end(db, "poll", u->name, boot)) != -1) {
		yes = false;
		later(at, now + end - boot);
	}
	u->crowded = u->fence == 0 && l->places != -1 &&
	    job_places(db, u->name, l->places, boot, now, settle ? &NOBODY : NULL, &more) == l->places;
	if (u->crowded) {
		yes = false;
		end = job_places_end(db, u->name, boot);
		later(at, end == INT64_MAX ? end : now + end - boot);
	}
	return yes;
}

/* The waiting mark stands until it is his turn, so that a long wait costs few writes; at most a minute, should he be killed. */
static int64_t
mark_ms(int64_t at, int64_t now)
{
	return (at - now < 60 * 1000 ? at - now : 60 * 1000) + MARK_MS;
}

static bool
mark_due(const struct rate_user *u, int64_t boot, int64_t now, int64_t at)
{
	int64_t wait = at - now < 30 * 1000 ? at - now : 30 * 1000;

	return u->first && u->mark_end < boot + wait + MARK_MS / 2;
}

static bool
place_due(const struct rate_user *u, int64_t boot)
{
	return u->fence != 0 && u->place_end - boot <= u->lease_ms - u->lease_ms / 3;
}

static int
renew_place(struct db *db, struct rate_user *u, int64_t boot)
{
	int rc = hold_renew(db, "rate", u->name, u->fence, u->lease_ms);

	if (rc == Q_LOST)
		u->fence = 0;
	u->place_end = boot + u->lease_ms;
	return rc;
}

static void
end_mark(struct db *db, struct rate_user *u)
{
	if (u->mark != 0)
		hold_end(db, "poll", u->name, u->mark);
	u->mark = u->mark_end = 0;
}

/* What is taken, inside a transaction; *wrote: nothing was, but something was written. */
static int
take(struct db *db, struct rate_user *u, int64_t now, int64_t *at, bool *wrote)
{
	struct limits l;
	bool rebooted;
	int64_t boot;

	*wrote = false;
	if (job_boot_look(db, &rebooted) == -1 || (boot = job_boot(db)) == -1 || limits(db, u->name, &l) != Q_OK)
		return db_status(db);
	*wrote = rebooted;
	if (place_due(u, boot)) {
		if (renew_place(db, u, boot) == Q_LOST)
			db_clear(db);
		*wrote = true;
	}
	if (!free_now(db, u, &l, boot, now, true, at)) {
		if (mark_due(u, boot, now, *at)) {
			if (u->mark != 0)
				hold_end(db, "poll", u->name, u->mark);
			hold_take(db, "poll", u->name, mark_ms(*at, now), u->worker, now, &u->mark);
			u->mark_end = boot + mark_ms(*at, now);
			*wrote = true;
		}
		return db_status(db) != Q_OK ? db_status(db) : Q_NO;
	}
	if (l.rate.period_us > 0)
		rate_take(db, "rate", u->name, &l.rate, boot, 1);
	if (l.places != -1 && u->fence == 0) {
		hold_take(db, "rate", u->name, u->lease_ms, u->worker, now, &u->fence);
		u->place_end = boot + u->lease_ms;
	}
	end_mark(db, u);
	return db_status(db);
}

int
rate_try(struct db *db, struct rate_user *u, int64_t now, int64_t *at)
{
	struct rate_user old = *u;
	struct limits l;
	bool rebooted, wrote;
	int64_t boot;
	int rc, end;

	/* Many may wait: they read, and only who finds something takes his turn to write. */
	db_clear(db);
	if ((boot = job_boot_look(db, &rebooted)) == -1 || limits(db, u->name, &l) != Q_OK)
		return db_status(db);
	if (!rebooted && !free_now(db, u, &l, boot, now, false, at) && !place_due(u, boot) && !mark_due(u, boot, now, *at))
		return db_status(db) != Q_OK ? db_status(db) : Q_NO;
	if ((rc = db_begin(db, false)) != Q_OK)
		return rc;
	rc = take(db, u, now, at, &wrote);
	if (rc == Q_OK || (rc == Q_NO && wrote)) {
		if ((end = db_commit(db)) == Q_OK)
			return rc;
		rc = end;
	} else
		db_rollback(db);
	*u = old;		/* a fence that is not on disk will be another's; one that is there after all ends with its lease */
	return rc;
}

int
rate_renew(struct db *db, struct rate_user *u, int64_t now, bool *late)
{
	int64_t boot;

	*late = false;
	if (u->fence == 0 || (boot = job_boot(db)) == -1 || renew_place(db, u, boot) != Q_LOST)
		return db_status(db);
	*late = true;
	db_clear(db);
	return hold_take(db, "rate", u->name, u->lease_ms, u->worker, now, &u->fence);
}

int
rate_leave(struct db *db, struct rate_user *u)
{
	int rc;

	if (u->fence == 0 && u->mark == 0)
		return Q_OK;
	if ((rc = db_begin(db, false)) != Q_OK)
		return rc;
	if (u->fence != 0)
		hold_end(db, "rate", u->name, u->fence);
	end_mark(db, u);
	u->fence = 0;
	return db_status(db) != Q_OK ? (db_rollback(db), db_status(db)) : db_commit(db);
}
