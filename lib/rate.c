/*
 * rate.c - token buckets, shared by all processes through the file
 *
 * The generic cell rate algorithm: the bucket is one number, the time at which it would be full
 * again, so nothing has to refill it and no process has to be alive for it.  It runs on the boot clock, as
 * leases do: setting the clock neither opens nor closes it.
 */
#include <stdlib.h>
#include <string.h>

#include "q.h"

static const char LOOK[] = "SELECT full_us, blocked_ms FROM q_rate WHERE kind = :kind AND name = :name";

static const char TAKE[] =
	"INSERT INTO q_rate(kind, name, full_us) VALUES(:kind, :name, :full)\n"
	"    ON CONFLICT(kind, name) DO UPDATE SET full_us = excluded.full_us";

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

int
rate_look(struct db *db, const char *kind, const char *name, const struct rate *r, int64_t boot, int64_t now, int64_t *n, int64_t *at)
{
	int64_t blocked, full = full_at(db, kind, name, r, boot * 1000, &blocked);
	int64_t one = full - (r->burst - 1) * r->period_us - boot * 1000;	/* until there is a token, us */

	*n = blocked > now ? 0 : r->burst - (full - boot * 1000 + r->period_us - 1) / r->period_us;
	*at = now + (one > 0 ? (one + 999) / 1000 : 0);
	if (*at < blocked)
		*at = blocked;
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
