/* hold.c - leases on names, with a fence that never goes back: locks, places under a shared concurrency, waiting marks */
#include "job.h"

static const char CLEAR[] = "DELETE FROM q_hold WHERE lease_ms <= :boot";
static const char FENCE[] =
	"INSERT INTO q_meta VALUES('fence', '1') ON CONFLICT(name) DO UPDATE SET value = CAST(value AS INTEGER) + 1";
static const char FENCE_NOW[] = "SELECT CAST(value AS INTEGER) FROM q_meta WHERE name = 'fence'";
static const char TAKE[] =
	"INSERT INTO q_hold(kind, name, fence, lease_ms, since_ms, worker) VALUES(:kind, :name, :fence, :lease, :now, :worker)";
static const char RENEW[] =
	"UPDATE q_hold SET lease_ms = :lease WHERE kind = :kind AND name = :name AND fence = :fence AND lease_ms > :boot";
static const char END[] = "DELETE FROM q_hold WHERE kind = :kind AND name = :name AND fence = :fence";
static const char COUNT[] = "SELECT count(*) FROM q_hold WHERE kind = :kind AND name = :name AND lease_ms > :boot";
static const char NEXT_END[] = "SELECT min(lease_ms) FROM q_hold WHERE kind = :kind AND name = :name AND lease_ms > :boot";
static const char REBOOT[] = "DELETE FROM q_hold";

static struct stmt *
of(struct db *db, const char *sql, const char *kind, const char *name)
{
	struct stmt *s = db_prepare(db, sql);

	db_text(s, ":kind", kind);
	db_text(s, ":name", name);
	return s;
}

int
hold_take(struct db *db, const char *kind, const char *name, int64_t lease_ms, const char *worker, int64_t now, int64_t *fence)
{
	int64_t boot = job_boot(db);
	struct stmt *s = db_prepare(db, CLEAR);

	db_int(s, ":boot", boot);
	db_run(s);
	db_run(db_prepare(db, FENCE));
	*fence = db_only(db_prepare(db, FENCE_NOW));
	s = of(db, TAKE, kind, name);
	db_int(s, ":fence", *fence);
	db_int(s, ":lease", boot + lease_ms);
	db_int(s, ":now", now);
	db_text(s, ":worker", worker);
	db_run(s);
	return db_status(db);
}

int
hold_renew(struct db *db, const char *kind, const char *name, int64_t fence, int64_t lease_ms)
{
	int64_t boot = job_boot(db);
	struct stmt *s = of(db, RENEW, kind, name);

	db_int(s, ":fence", fence);
	db_int(s, ":boot", boot);
	db_int(s, ":lease", boot + lease_ms);
	return db_run(s) == 0 ? db_fail(db, Q_LOST, "%s: the lease of the hold is over", name) : db_status(db);
}

int
hold_end(struct db *db, const char *kind, const char *name, int64_t fence)
{
	struct stmt *s = of(db, END, kind, name);

	db_int(s, ":fence", fence);
	return db_run(s) == 0 ? Q_NO : db_status(db);
}

int64_t
hold_count(struct db *db, const char *kind, const char *name, int64_t boot)
{
	struct stmt *s = of(db, COUNT, kind, name);

	db_int(s, ":boot", boot);
	return db_only(s);
}

int64_t
hold_next_end(struct db *db, const char *kind, const char *name, int64_t boot)
{
	struct stmt *s = of(db, NEXT_END, kind, name);

	db_int(s, ":boot", boot);
	return db_only(s);
}

int
hold_reboot(struct db *db)
{
	db_run(db_prepare(db, REBOOT));
	return db_status(db);
}
