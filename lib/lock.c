/*
 * lock.c - locks: a hold of the kind "lock" on a name, which keeps out who else wants to lock it and the claims of jobs
 * whose entity it is, as these keep out the lock
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

static const char ANY[] = "SELECT 1 FROM q_hold WHERE kind = 'lock' AND lease_ms > :boot LIMIT 1";

static const char HOLDER[] =
	"SELECT fence, lease_ms, since_ms, worker FROM q_hold\n"
	" WHERE kind = 'lock' AND name = :name AND lease_ms > :boot\n"
	" ORDER BY fence DESC LIMIT 1";

static const char NEXT[] = "SELECT min(name) FROM q_hold WHERE kind = 'lock' AND name > :last";

static const char CHECK[] =
	"SELECT 1 FROM q_hold WHERE kind = 'lock' AND name = :name AND fence = :fence AND lease_ms > :boot";

static const char BREAK[] = "DELETE FROM q_hold WHERE kind = 'lock' AND name = :name";

/* The queues that have claims, one after the other, and in each the claim on an entity. */
static const char BUSY[] = "SELECT min(queue) FROM q_job WHERE lease_ms IS NOT NULL AND queue > :last";
static const char CLAIMED[] =
	"SELECT id, fence, nonce, lease_ms FROM q_job\n"
	" WHERE queue = :queue AND entity = :name AND head = 1 AND lease_ms IS NOT NULL";

static const char BOOT[] = "SELECT value FROM q_meta WHERE name = 'boot'";

/* The boot clock without writing; INT64_MAX: all leases of the file are of an earlier boot.  -1: failed. */
static int64_t
boot_now(struct db *db)
{
	char id[40];
	int64_t ms = job_clock(db, id);
	struct stmt *s;

	if (ms == -1)
		return -1;
	s = db_prepare(db, BOOT);
	if (db_step(s) != 1 || strcmp(db_col_text(s, 0), id) != 0)
		ms = INT64_MAX;
	db_reset(s);
	return ms;
}

bool
lock_any(struct db *db, int64_t boot)
{
	struct stmt *s = db_prepare(db, ANY);

	db_int(s, ":boot", boot);
	return db_only(s) == 1;
}

static bool
holder(struct db *db, const char *name, int64_t boot, struct lock_held *h)
{
	static char worker[256];
	struct stmt *s = db_prepare(db, HOLDER);
	bool held;

	db_text(s, ":name", name);
	db_int(s, ":boot", boot);
	if ((held = db_step(s) == 1)) {
		*h = (struct lock_held){ .name = name, .fence = db_col_int(s, 0), .left_ms = db_col_int(s, 1) - boot,
		    .since_ms = db_col_int(s, 2), .worker = worker };
		snprintf(worker, sizeof worker, "%s", db_col_opt(s, 3) != NULL ? db_col_opt(s, 3) : "");
	}
	db_reset(s);
	return held;
}

/*
 * The claims on jobs of this entity but for the one inside: *left is set to the longest of their leases, if it is longer; true and
 * *ended: one whose lease is over, though nobody has taken it back yet.
 */
static bool
claims(struct db *db, const struct lock *l, int64_t boot, int64_t *left, struct claim *ended)
{
	const struct claim *in = &l->inside;
	char *queue, *next;
	bool found = false;
	int64_t lease;

	for (queue = db_next(db_prepare(db, BUSY), ""); queue != NULL; queue = next) {
		struct stmt *s = db_prepare(db, CLAIMED);
		struct claim c;

		db_text(s, ":queue", queue);
		db_text(s, ":name", l->name);
		if (db_step(s) == 1) {
			c = (struct claim){ db_col_int(s, 0), db_col_int(s, 1), db_col_int(s, 2) };
			lease = db_col_int(s, 3);
			if (lease <= boot) {
				*ended = c;
				found = true;
			} else if ((in->id != c.id || in->fence != c.fence || in->nonce != c.nonce) && lease - boot > *left) {
				*left = lease - boot;
			}
		}
		db_reset(s);
		next = db_next(db_prepare(db, BUSY), queue);
		free(queue);
	}
	return found;
}

void
lock_inside(struct lock *l)
{
	const char *word = getenv("Q_CLAIM");

	if (word == NULL || !claim_parse(word, &l->inside))
		l->inside.id = 0;
}

/* The fences of the locks around us; of another file's they would mean something else. */
static const char *
around(struct db *db)
{
	const char *file = getenv("Q_DB"), *fences = getenv("Q_LOCKS");

	return fences != NULL && file != NULL && strcmp(file, db_path(db)) == 0 ? fences : "";
}

void
lock_env_fences(struct db *db, int64_t fence, FILE *f)
{
	const char *outer = around(db);

	fprintf(f, "Q_LOCKS=%s%s%" PRId64 "%c", outer, *outer != '\0' ? " " : "", fence, 0);
}

void
lock_env(struct db *db, const struct lock *l, FILE *f)
{
	fprintf(f, "Q_LOCK=%s%cQ_FENCE=%" PRId64 "%c", l->name, 0, l->fence, 0);
	lock_env_fences(db, l->fence, f);
}

bool
lock_under(struct db *db, int64_t fence)
{
	const char *p = around(db);
	char *end;

	for (;; p = end) {
		int64_t outer = strtoll(p, &end, 10);

		if (end == p || outer == fence)
			return end != p;
	}
}

int
lock_around(struct db *db, const char *name)
{
	const char *p = around(db);
	char *end;

	for (;; p = end) {
		int64_t fence = strtoll(p, &end, 10);
		int rc = end != p ? lock_check(db, name, fence) : Q_NO;

		if (rc != Q_NO || end == p)
			return rc;
	}
}

int
lock_look(struct db *db, const struct lock *l, int64_t *left)
{
	int64_t boot = boot_now(db);
	struct lock_held h;
	struct claim ended;

	*left = 0;
	if (boot == -1)
		return db_status(db);
	if (holder(db, l->name, boot, &h))
		*left = h.left_ms;
	claims(db, l, boot, left, &ended);
	return db_status(db) != Q_OK ? db_status(db) : *left > 0 ? Q_NO : Q_OK;
}

int
lock_take(struct db *db, struct lock *l, int64_t now)
{
	int64_t boot = job_boot(db), left = 0;
	struct lock_held h;
	struct claim ended;

	l->fence = 0;
	/* Or a late renewal would bring the claim back beside the lock. */
	while (db_status(db) == Q_OK && claims(db, l, boot, &left, &ended))
		job_take_back(db, &ended, now, l->dead);
	if (db_status(db) != Q_OK)
		return db_status(db);
	if (left > 0 || holder(db, l->name, boot, &h))
		return db_status(db) != Q_OK ? db_status(db) : Q_NO;
	return hold_take(db, "lock", l->name, l->lease_ms, l->worker, now, &l->fence);
}

int
lock_renew(struct db *db, const struct lock *l)
{
	return hold_renew(db, "lock", l->name, l->fence, l->lease_ms);
}

/* One whose lease was over for a while has not kept others out, though nobody took it. */
int
lock_release(struct db *db, const struct lock *l)
{
	int rc = hold_renew(db, "lock", l->name, l->fence, l->lease_ms);

	return rc != Q_OK ? rc : hold_end(db, "lock", l->name, l->fence);
}

int
lock_check(struct db *db, const char *name, int64_t fence)
{
	int64_t boot = boot_now(db);
	struct stmt *s = db_prepare(db, CHECK);
	bool live;

	db_text(s, ":name", name);
	db_int(s, ":fence", fence);
	db_int(s, ":boot", boot);
	live = db_only(s) == 1;
	return db_status(db) != Q_OK ? db_status(db) : live ? Q_OK : Q_NO;
}

int
lock_holder(struct db *db, const char *name, struct lock_held *h)
{
	int64_t boot = boot_now(db);
	bool held = boot != -1 && holder(db, name, boot, h);

	return db_status(db) != Q_OK ? db_status(db) : held ? Q_OK : Q_NO;
}

int
lock_break(struct db *db, const char *name, struct lock_held *h)
{
	int rc = job_boot(db) != -1 ? lock_holder(db, name, h) : db_status(db);
	struct stmt *s;

	if (rc != Q_OK)
		return rc;
	s = db_prepare(db, BREAK);
	db_text(s, ":name", name);
	db_run(s);
	return db_status(db);
}

int
lock_each(struct db *db, int (*each)(const struct lock_held *, void *), void *arg)
{
	int64_t boot = boot_now(db);
	char *name = boot != -1 ? db_next(db_prepare(db, NEXT), "") : NULL, *next;
	struct lock_held h;
	int rc = Q_OK;

	for (; name != NULL; name = next) {
		if (holder(db, name, boot, &h))
			rc = each(&h, arg);
		next = rc == Q_OK ? db_next(db_prepare(db, NEXT), name) : NULL;
		free(name);
	}
	return rc != Q_OK ? rc : db_status(db);
}
