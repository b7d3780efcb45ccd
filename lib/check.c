/*
 * check.c - is a queue file, and what is around it, as it should be?
 *
 * By reading alone.  What stands beside the file is looked at with stat(2), never opened: closing any descriptor of
 * a database drops the locks of the process on it.  The statements read whole tables, on purpose.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "check.h"
#include "job.h"

enum { CLOCK_MS = 60 * 1000, SHOWN = 5 };	/* how far the clock may be behind; damaged places that are named */

static const char INTEGRITY[] = "PRAGMA integrity_check";
static const char OUR_INTEGRITY[] =			/* where the application's tables cannot be read without it */
	"SELECT i.integrity_check FROM sqlite_schema t, pragma_integrity_check(t.name) i WHERE t.type = 'table' AND t.name LIKE 'q\\_%' ESCAPE '\\'";
static const char MODE[] = "PRAGMA journal_mode";

/* The last thing that was written down, by the clock of then. */
static const char LATEST[] =
	"SELECT max(coalesce((SELECT added_ms FROM q_job ORDER BY id DESC LIMIT 1), 0),\n"
	"           coalesce((SELECT finished_ms FROM q_attempt ORDER BY id DESC LIMIT 1), 0))";

/* Each says how many there are, and which is the first. */
static const char PAYLOADS[] =
	"SELECT count(*), 'job ' || min(j.id) FROM q_job j LEFT JOIN q_body b ON b.job = j.id WHERE b.job IS NULL";
static const char ORPHANS[] =
	"SELECT count(*), 'job ' || min(b.job) FROM q_body b LEFT JOIN q_job j ON j.id = b.job WHERE j.id IS NULL";
static const char COUNTS[] =
	"WITH real AS (SELECT queue, state, count(*) AS n FROM q_job WHERE finished_ms IS NOT NULL GROUP BY queue, state)\n"
	"SELECT count(DISTINCT queue || ' ' || state), min(queue || ' ' || state) FROM\n"
	"  (SELECT * FROM (SELECT * FROM real EXCEPT SELECT queue, state, n FROM q_count)\n"
	"   UNION SELECT * FROM (SELECT queue, state, n FROM q_count WHERE n <> 0 EXCEPT SELECT * FROM real))";
static const char CLAIMS[] =
	"SELECT count(*), 'job ' || min(id) FROM q_job WHERE state = 'claimed'\n"
	"   AND (nonce IS NULL OR claimed_ms IS NULL OR fence < 1 OR lease_ms < 0 OR (entity IS NOT NULL AND head IS NULL))";
static const char LEASES[] =				/* of this boot: no lease is longer than ten years */
	"SELECT count(*), 'job ' || min(id) FROM q_job WHERE lease_ms > :longest\n"
	"   AND (SELECT value FROM q_meta WHERE name = 'boot') = :boot";
static const char HEADLESS[] =
	"SELECT count(DISTINCT queue || char(0) || entity), 'job ' || min(id) FROM q_job j WHERE entity IS NOT NULL AND finished_ms IS NULL\n"
	"   AND NOT EXISTS(SELECT 1 FROM q_job h WHERE h.queue = j.queue AND h.entity = j.entity AND h.head = 1)";
static const char HEADS[] =
	"SELECT count(*), 'job ' || min(h.id) FROM q_job h WHERE h.head = 1 AND h.state <> 'claimed'\n"
	"   AND (h.ready_ms IS NULL\n"
	"        OR h.id <> (SELECT j.id FROM q_job j WHERE j.queue = h.queue AND j.entity = h.entity AND j.finished_ms IS NULL\n"
	"                     ORDER BY j.event_ms, j.id LIMIT 1))";
static const char KEYLESS[] =
	"SELECT count(*), 'job ' || min(j.id) FROM q_job j WHERE j.key IS NOT NULL AND j.finished_ms IS NULL\n"
	"   AND NOT EXISTS(SELECT 1 FROM q_key k WHERE k.queue = j.queue AND k.key = j.key)";
static const char KEYS[] =
	"SELECT count(*), 'job ' || min(k.job) FROM q_key k LEFT JOIN q_job j ON j.id = k.job\n"
	" WHERE k.job < 1 OR k.job > (SELECT max(id) FROM q_job) OR (j.id IS NOT NULL AND (j.queue <> k.queue OR j.key IS NOT k.key))";
static const char CHAINS[] =
	"SELECT count(*), 'job ' || min(j.id) FROM q_job j LEFT JOIN q_attempt a ON a.id = j.last_attempt\n"
	" WHERE (j.last_attempt IS NULL AND (j.state = 'done' OR j.state = 'dead'))\n"
	"    OR (j.last_attempt IS NOT NULL\n"
	"        AND (a.id IS NULL OR a.job <> j.id OR a.fence > j.fence OR ((j.state = 'done' OR j.state = 'dead') AND a.state <> j.state)))";
static const char JOBLESS[] =
	"SELECT count(*), 'job ' || min(a.job) FROM q_attempt a LEFT JOIN q_job j ON j.id = a.job WHERE j.id IS NULL";
static const char LINKS[] =
	"SELECT count(*), 'job ' || min(a.job) FROM q_attempt a LEFT JOIN q_attempt p ON p.id = a.prev\n"
	" WHERE a.prev IS NOT NULL AND (p.id IS NULL OR p.job <> a.job OR p.id >= a.id)";
static const char NUMBERS[] =
	"SELECT count(*), 'job ' || min(id) FROM q_job\n"
	" WHERE id < 1 OR id > :id OR due_ms NOT BETWEEN 0 AND :ms OR event_ms NOT BETWEEN 0 AND :ms OR added_ms NOT BETWEEN 0 AND :ms\n"
	"    OR finished_ms NOT BETWEEN 0 AND :ms OR fence < 0 OR generation < 1 OR spent < 0";
static const char FENCES[] =
	"SELECT count(*), min(kind || ' ' || name) FROM q_hold\n"
	" WHERE fence > coalesce((SELECT CAST(value AS INTEGER) FROM q_meta WHERE name = 'fence'), 0)";

static const struct invariant {
	const char *name, *sql, *wrong, *next;
} INVARIANTS[] = {
	{ "payloads", PAYLOADS, "jobs without their payload, which no program can work on", NULL },
	{ "payloads", ORPHANS, "payloads of jobs that are gone, which take room", NULL },
	{ "counts", COUNTS, "counts of finished jobs that are not what the rows say", "qcheck(1) says how to count again" },
	{ "claims", CLAIMS, "claimed jobs without what a claim has", NULL },
	{ "claims", LEASES, "claims whose lease ends in more than ten years", "take them back: qls --state claimed" },
	{ "entities", HEADLESS, "entities with open jobs of which none can be claimed", "adding a job to the entity puts it in order" },
	{ "entities", HEADS, "entities whose next job is not the first in their order", "adding a job to the entity puts it in order" },
	{ "keys", KEYLESS, "open jobs whose key is not remembered, so that it can be added twice", NULL },
	{ "keys", KEYS, "keys that point to another job than theirs", NULL },
	{ "ledger", CHAINS, "jobs that do not agree with their last attempt", NULL },
	{ "ledger", JOBLESS, "attempts whose job is gone, though qpurge deletes both together", NULL },
	{ "ledger", LINKS, "attempts whose one before is missing, or another job's", NULL },
	{ "numbers", NUMBERS, "jobs with ids, times or counts out of range", NULL },
	{ "fences", FENCES, "holds with a fence that is still to come", NULL },
};
static const char BY_HAND[] = "something else than q has changed the file, or it is damaged: keep a copy (qbackup), find out who writes to it, "
	"and go back to a good backup if work is missing";

struct look {
	struct db *db;
	void (*each)(const struct check *, void *);
	void *arg;
	bool bad;
	int status;		/* why it could not be looked at */
};

/* ---- findings ---- */

static void
good(struct look *l, const char *name, const char *detail)
{
	l->each(&(struct check){ .name = name, .ok = true, .detail = detail }, l->arg);
}

static void __attribute__((format(printf, 5, 6)))
bad(struct look *l, const char *name, bool warning, const char *next, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	l->bad = true;
	l->each(&(struct check){ .name = name, .warning = warning, .detail = text, .next = next }, l->arg);
}

/* What a statement said is wrong: damage is a finding, and there may be more; a busy file is none. */
static bool
failed(struct look *l, const char *name)
{
	const char *text, *mark;

	if (db_status(l->db) == Q_OK)
		return false;
	if (db_status(l->db) == Q_IO || db_status(l->db) == Q_CONFIG || db_status(l->db) == Q_BUG) {
		text = db_message(l->db);
		if ((mark = strstr(text, "; next: ")) != NULL)
			bad(l, name, false, mark + 8, "%.*s", (int)(mark - text), text);
		else
			bad(l, name, false, NULL, "%s", text);
		db_clear(l->db);
	} else if (l->status == Q_OK)
		l->status = db_status(l->db);
	return true;
}

/* ---- what is around the file ---- */

static void
mount(struct look *l)
{
	struct statfs fs;

	if (statfs(db_path(l->db), &fs) == -1) {
		bad(l, "mount", true, "see dmesg and the disk", "its file system cannot be looked at: %s", strerror(errno));
		return;
	}
	switch ((unsigned long)fs.f_type & 0xffffffff) {
	case 0x01021994: case 0x858458f6:
		bad(l, "mount", true, "put the file on a disk", "it is in memory (tmpfs), and gone with the next boot");
		break;
	case 0x794c7630:
		good(l, "mount", "an overlay: if it is a container's own, the file is gone with the container");
		break;
	default:
		good(l, "mount", NULL);
	}
}

enum { NEXT = 2 * PATH_MAX + 64 };

/* What gives a file beside it the owner and mode of the file. */
static char *
mend(char next[NEXT], const char *name, const struct stat *st, const struct stat *side)
{
	bool chown = st->st_uid != side->st_uid || st->st_gid != side->st_gid, chmod = ((side->st_mode ^ st->st_mode) & 0664) != 0;
	int n = 0;

	if (chown)
		n = snprintf(next, NEXT, "chown %ju:%ju '%s'%s", (uintmax_t)st->st_uid, (uintmax_t)st->st_gid, name, chmod ? " && " : "");
	if (chmod)
		snprintf(next + n, NEXT - (size_t)n, "chmod %04o '%s'", st->st_mode & 0664, name);
	return next;
}

static void
files(struct look *l)
{
	static const char *const SIDE[] = { "-wal", "-shm", "-lock", "-reserve" };
	char name[PATH_MAX], next[NEXT];
	struct stat st, side, folder;
	bool before = l->bad;

	l->bad = false;
	if (stat(db_path(l->db), &st) == -1) {
		bad(l, "files", false, NULL, "%s", strerror(errno));
		return;
	}
	if ((st.st_mode & S_IWOTH) != 0) {
		snprintf(next, sizeof next, "chmod o-w '%s'*", db_path(l->db));
		bad(l, "files", false, next, "everybody may write to it (mode %04o)", st.st_mode & 07777);
	}
	for (size_t i = 0; i < sizeof SIDE / sizeof *SIDE; i++) {
		snprintf(name, sizeof name, "%s%s", db_path(l->db), SIDE[i]);
		if (lstat(name, &side) == -1)
			continue;
		if (!S_ISREG(side.st_mode))
			bad(l, "files", false, "end all programs and move it away", "%s is no regular file", name);
		else if ((side.st_gid != st.st_gid && (st.st_mode & 0060) != 0) || ((side.st_mode ^ st.st_mode) & 0664) != 0 ||
		    (side.st_uid != st.st_uid && (st.st_mode & 0060) != 0060))
			bad(l, "files", false, mend(next, name, &st, &side), "%s has owner %ju:%ju and mode %04o, the file %ju:%ju and %04o, so not all who use one can use the other",
			    name, (uintmax_t)side.st_uid, (uintmax_t)side.st_gid, side.st_mode & 07777,
			    (uintmax_t)st.st_uid, (uintmax_t)st.st_gid, st.st_mode & 07777);
	}
	snprintf(name, sizeof name, "%s-journal", db_path(l->db));
	if (lstat(name, &side) == 0)
		bad(l, "files", false, "end all programs and move it away", "%s is there, of a file that had this name before", name);
	snprintf(name, sizeof name, "%s", db_path(l->db));
	strrchr(name, '/')[strrchr(name, '/') == name] = '\0';
	if (stat(name, &folder) == 0) {
		if ((folder.st_mode & (S_IWOTH | S_ISVTX)) == S_IWOTH) {
			snprintf(next, sizeof next, "chmod o-w '%s'", name);
			bad(l, "files", false, next, "everybody may replace it, since they may write to %s", name);
		}
		if ((st.st_mode & S_IWGRP) != 0 && (folder.st_mode & S_ISGID) == 0 && folder.st_gid != st.st_gid) {
			snprintf(next, sizeof next, "chgrp %ju '%s' && chmod g+s '%s'", (uintmax_t)st.st_gid, name, name);
			bad(l, "files", true, next, "the group shares it, but new files beside it get another group in %s", name);
		}
	}
	if (!l->bad)
		good(l, "files", NULL);
	l->bad |= before;
}

static void
space(struct look *l)
{
	int64_t low = 0, left = db_room(l->db, &low);
	char name[PATH_MAX];
	struct stat st;
	bool live;

	if (left < low)
		bad(l, "room", false, "make room on the disk", "%" PRId64 " KiB are left on the disk, and below %" PRId64 " KiB adds are refused",
		    left / 1024, low / 1024);
	else if (left < 2 * low)
		bad(l, "room", true, "make room on the disk", "%" PRId64 " KiB are left on the disk; below %" PRId64 " KiB adds will be refused",
		    left / 1024, low / 1024);
	else
		good(l, "room", NULL);
	snprintf(name, sizeof name, "%s-lock", db_path(l->db));
	live = stat(name, &st) == 0;
	snprintf(name, sizeof name, "%s-reserve", db_path(l->db));
	if (stat(name, &st) == -1 && !live)
		good(l, "reserve", "none: no program has written to it here, so it is a copy; qinit makes one before work goes on with it");
	else if (stat(name, &st) == -1 || st.st_blocks * 512 < DB_RESERVE)
		bad(l, "reserve", true, "qinit makes it, when there is room", "%s is gone, or was given up: on a full disk running work cannot settle", name);
	else
		good(l, "reserve", NULL);
	snprintf(name, sizeof name, "%s-wal", db_path(l->db));
	if (stat(name, &st) == 0 && st.st_size > DB_LOG_LONG)
		bad(l, "log", true, "end long-running readers (fuser shows who has it open); the next write then shortens it",
		    "%s has %jd KiB: a reader keeps it from being copied, and each start reads all of it", name, (intmax_t)st.st_size / 1024);
	else
		good(l, "log", NULL);
}

static void
clocks(struct look *l, int64_t now)
{
	int64_t latest = db_only(db_prepare(l->db, LATEST));
	char id[40], at[WHEN_TEXT], by[WHEN_TEXT];

	if (!failed(l, "clock")) {
		if (latest > now + CLOCK_MS)
			bad(l, "clock", false, "set the clock; what is due after now waits until then", "the file was written at %s, which is in %s: the clock was "
			    "ahead then, or is behind now", when_text(at, latest, false), when_brief(by, latest - now));
		else
			good(l, "clock", NULL);
	}
	if (when_boot(id) == -1)
		bad(l, "boot", false, "mount /proc; see Q_BOOT in q(7)", "the boot clock or /proc/sys/kernel/random/boot_id cannot be read, and without them nothing can be claimed");
	else
		good(l, "boot", NULL);
}

/* ---- the file ---- */

struct faults { struct look *l; int n; };

static void
fault(const char *what, void *arg)
{
	struct faults *f = arg;

	f->n++;
	bad(f->l, "schema", false, BY_HAND, "%s", what);
}

static void
schema(struct look *l)
{
	struct faults f = { .l = l };
	struct stmt *s = db_prepare(l->db, MODE);

	if (db_step(s) == 1 && strcmp(db_col_text(s, 0), "wal") != 0)
		bad(l, "journal", false, "sqlite3 FILE 'PRAGMA journal_mode=WAL'", "its journal mode is %s, and q needs WAL", db_col_text(s, 0));
	else if (db_status(l->db) == Q_OK)
		good(l, "journal", NULL);
	db_reset(s);
	failed(l, "journal");
	if (db_faults(l->db, fault, &f) == Q_OK && f.n == 0)
		good(l, "schema", NULL);
	failed(l, "schema");
}

static void
plans(struct look *l)
{
	static const struct hot *const HOT[] = { job_hot, claim_hot };
	char why[256];
	int n = 0;

	for (size_t i = 0; i < sizeof HOT / sizeof *HOT; i++)
		for (const struct hot *h = HOT[i]; h->name != NULL; h++) {
			if (db_seeks(l->db, h->sql, why, sizeof why) == Q_NO)
				bad(l, "plans", true, "see what schema says of indexes; if statistics mislead it: DROP TABLE sqlite_stat1",
				    "%s reads rows it does not need (%s), and gets slower as the file grows", h->name, why);
			n += why[0] != '\0' || failed(l, "plans");
		}
	if (n == 0)
		good(l, "plans", NULL);
}

static void
library(struct look *l)
{
	char text[256];

	snprintf(text, sizeof text, "%s, %s", db_version(), db_exposed() ?
	    "which has the WAL-reset bug: q is safe from it, but nothing else may write here and checkpoint by itself; see q(7)" :
	    "which does not have the WAL-reset bug; another one that writes here may");
	good(l, "sqlite", text);
}

/* How many damaged places it told. */
static int
damage(struct look *l, const char *sql)
{
	struct stmt *s = db_prepare(l->db, sql);
	const char *at, *line;
	int n = 0;

	while (db_step(s) == 1)
		for (at = db_col_text(s, 0); n < SHOWN && *at != '\0'; at += at[0] == '\n') {
			line = at;
			at += strcspn(at, "\n");
			if (strncmp(line, "ok", 2) == 0 || strncmp(line, "***", 3) == 0 || !db_looked(l->db, line))
				continue;
			bad(l, "integrity", false, "keep what is there (cp of the file and its log, all programs ended), and go back to a good backup",
			    "%.*s", (int)(at - line), line);
			n++;
		}
	return n;
}

static void
integrity(struct look *l)
{
	int n = damage(l, INTEGRITY);
	char foreign[512] = "";

	if (db_status(l->db) == Q_CONFIG) {
		snprintf(foreign, sizeof foreign, "but for tables of the application: %s", db_message(l->db));
		db_clear(l->db);
		n = damage(l, OUR_INTEGRITY);
	}
	if (!failed(l, "integrity") && n == 0)
		good(l, "integrity", foreign[0] != '\0' ? foreign : NULL);
}

static bool
holds(struct look *l, const struct invariant *v)
{
	struct stmt *s = db_prepare(l->db, v->sql);
	bool ok = true;
	int64_t boot;
	char id[40];

	if (v->sql == LEASES) {
		boot = when_boot(id);
		db_int(s, ":longest", boot + INT64_C(3650) * 24 * 60 * 60 * 1000);
		db_text(s, ":boot", boot == -1 ? "" : id);
	}
	if (v->sql == NUMBERS) {
		db_int(s, ":id", JOB_ID_MAX);
		db_int(s, ":ms", WHEN_MAX);
	}
	if (db_step(s) == 1 && db_col_int(s, 0) > 0) {
		ok = false;
		bad(l, v->name, false, v->next != NULL ? v->next : BY_HAND, "%" PRId64 " %s; the first: %s", db_col_int(s, 0), v->wrong, db_col_text(s, 1));
	}
	db_reset(s);
	return !failed(l, v->name) && ok;
}

int
check_file(struct db *db, bool quick, int64_t now, void (*each)(const struct check *, void *), void *arg)
{
	struct look l = { .db = db, .each = each, .arg = arg };
	size_t n = sizeof INVARIANTS / sizeof *INVARIANTS;
	bool ok = true;

	files(&l);
	mount(&l);
	space(&l);
	clocks(&l, now);
	library(&l);
	schema(&l);
	plans(&l);
	if (!quick)
		integrity(&l);
	for (size_t i = 0; i < n && !quick && l.status == Q_OK; i++) {
		ok &= holds(&l, &INVARIANTS[i]);
		if (i + 1 == n || strcmp(INVARIANTS[i].name, INVARIANTS[i + 1].name) != 0) {
			if (ok)
				good(&l, INVARIANTS[i].name, NULL);
			ok = true;
		}
	}
	return l.status != Q_OK ? l.status : l.bad ? Q_NO : Q_OK;
}
