/*
 * window.c - is a commit lost that falls into the beginning of a checkpoint?
 *
 * SQLite before 3.51.3 (sqlite.org/wal.html#walresetbug): a checkpoint reads the head of the log, N pages, and then compares N with
 * how much of the log has been copied.  If all was, and somebody commits in between, he begins the log anew, N is taken for its
 * length, and what he wrote counts as copied.  Between the two the library lets go of its mapped pages, if the head is new to it,
 * through the VFS: so a VFS can wait there, and make of microseconds as many milliseconds as it likes.  Nothing else is changed.
 */

#define _GNU_SOURCE
#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>		/* lib/ must not: a VFS is how a test stands between SQLite and the disk */

#include "q.h"

static const char USAGE[] =
"usage: window HOW SEED COMMITS FILE\n"
"  q         programs of q, and an application that leaves the log to them\n"
"  unlocked  applications that copy the log as q does, but without the write lock\n"
"  auto      applications with SQLite's defaults\n"
"FILE is a new queue with q_outbox.  Exit: 0 all is sound and there, 1 not.\n";

enum { WRITERS = 4, PAUSE_US = 3000, PAGES = 100, CHECKPOINT_LOCK = 1 };

static const char ADD[] = "INSERT INTO q_outbox(queue, payload) VALUES('w', ?1)";

static struct shared {
	int begun, done[WRITERS];		/* commits begun by all, acknowledged to each */
	int writes, restarts;			/* of the log, so far */
	int windows, written_in, restarted_in;	/* how often one was open, and somebody wrote meanwhile, or began the log anew */
	int broken;				/* a writer was told that the file is damaged */
} *shared;

static enum { Q, UNLOCKED, AUTO } how;
static int commits;
static const char *file;

/* ---- the VFS ---- */

static sqlite3_vfs vfs, *real;
static struct wrapped { sqlite3_io_methods now, before; } main_file, log_file;

static void
nap(void)
{
	usleep((useconds_t)(random() % PAUSE_US));
}

/* Who is about to copy the log may be late, and find that somebody else just has. */
static int
shm_lock(sqlite3_file *f, int at, int n, int flags)
{
	if (at == CHECKPOINT_LOCK && flags == (SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE))
		nap();
	return main_file.before.xShmLock(f, at, n, flags);
}

/* With nothing mapped it is called at one place only. */
static int
unfetch(sqlite3_file *f, sqlite3_int64 at, void *page)
{
	int writes = shared->writes, restarts = shared->restarts;

	if (page == NULL) {
		nap();
		__atomic_fetch_add(&shared->windows, 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&shared->written_in, shared->writes > writes, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&shared->restarted_in, shared->restarts > restarts, __ATOMIC_SEQ_CST);
	}
	return main_file.before.xUnfetch(f, at, page);
}

static int
log_write(sqlite3_file *f, const void *data, int n, sqlite3_int64 at)
{
	__atomic_fetch_add(&shared->writes, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&shared->restarts, at == 0, __ATOMIC_SEQ_CST);
	return log_file.before.xWrite(f, data, n, at);
}

static void
wrap(sqlite3_file *f, struct wrapped *w)
{
	w->now = w->before = *f->pMethods;
	w->now.xShmLock = shm_lock;
	w->now.xUnfetch = unfetch;
	if (w == &log_file)
		w->now.xWrite = log_write;
	f->pMethods = &w->now;
}

static int
file_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
	int rc = real->xOpen(v, name, f, flags, out);

	if (rc == SQLITE_OK && (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)))
		wrap(f, flags & SQLITE_OPEN_WAL ? &log_file : &main_file);
	return rc;
}

static int
acknowledged(void)
{
	int n = 0;

	for (int i = 0; i < WRITERS; i++)
		n += shared->done[i];
	return n;
}

/* ---- writers ---- */

/* Commits are numbered by all, so that the run ends when there are enough.  Between them there must be time for a log to be copied whole. */
static bool
more(void)
{
	if (random() % 4 == 0)
		nap();
	return !shared->broken && __atomic_fetch_add(&shared->begun, 1, __ATOMIC_SEQ_CST) < commits;
}

/* The payload says which writer, and which of its commits. */
static char *
payload(int me)
{
	static char text[32];

	snprintf(text, sizeof text, "%d.%d", me, shared->done[me] + 1);
	return text;
}

/* As programs do: some leave after a write or two, some stay. */
static void
by_libq(int me)
{
	struct job_new job = { .queue = "w", .priority = -1, .event_ms = -1, .attempts = -1, .window_ms = -1, .base_ms = -1, .cap_ms = -1 };
	enum job_added added;
	struct db *db = NULL;
	int64_t id;
	int left = 0;

	for (; more(); left--) {
		if (left == 0) {
			db_close(db);
			left = 1 + (int)(random() % (me % 2 == 0 ? 2 : 200));
			if (db_open(&db, file, left > 2 ? DB_STAY : DB_ONCE) != Q_OK)
				break;
		}
		job.payload = payload(me);
		job.payload_len = strlen(job.payload);
		if (db_begin(db, true) != Q_OK || job_add(db, &job, 0, &id, &added) != Q_OK || db_commit(db) != Q_OK)
			break;
		shared->done[me]++;
	}
	if (db_status(db) != Q_OK) {
		warnx("writer %d: %s", me, db_message(db));
		shared->broken = 1;
	}
	db_close(db);
}

static int
copy_log(void *arg, sqlite3 *a, const char *name, int pages)
{
	int total, copied;

	(void)a;
	if (pages >= PAGES)
		sqlite3_wal_checkpoint_v2(arg, name, SQLITE_CHECKPOINT_PASSIVE, &total, &copied);
	return SQLITE_OK;
}

static void
by_sql(int me)
{
	sqlite3 *a = NULL, *b = NULL;
	sqlite3_stmt *add = NULL;
	int rc = SQLITE_OK;

	if (sqlite3_open_v2(file, &a, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK || sqlite3_open_v2(file, &b, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		errx(2, "%s: %s", file, sqlite3_errmsg(a));
	sqlite3_busy_timeout(a, 10000);
	sqlite3_busy_timeout(b, 10000);
	sqlite3_db_config(a, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_db_config(b, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (how != AUTO)
		sqlite3_wal_autocheckpoint(a, 0);
	if (how == UNLOCKED) {
		sqlite3_exec(b, "PRAGMA user_version", NULL, NULL, NULL);
		sqlite3_wal_hook(a, copy_log, b);
	}
	while (rc == SQLITE_OK && more()) {
		if (add == NULL && (rc = sqlite3_prepare_v2(a, ADD, -1, &add, NULL)) != SQLITE_OK)
			break;
		sqlite3_bind_text(add, 1, payload(me), -1, SQLITE_STATIC);
		sqlite3_step(add);
		if ((rc = sqlite3_reset(add)) == SQLITE_OK)
			shared->done[me]++;
		else if (rc == SQLITE_BUSY)
			rc = SQLITE_OK;		/* nothing happened */
	}
	if (rc != SQLITE_OK) {
		warnx("writer %d: %s", me, sqlite3_errmsg(a));
		shared->broken = 1;
	}
	sqlite3_finalize(add);
	sqlite3_close(b);
	sqlite3_close(a);
}

/* ---- the judge ---- */

static int
number(sqlite3 *a, const char *sql, int me)
{
	sqlite3_stmt *st = NULL;
	int n = -1;

	if (sqlite3_prepare_v2(a, sql, -1, &st, NULL) == SQLITE_OK && (sqlite3_bind_int(st, 1, me), sqlite3_step(st)) == SQLITE_ROW)
		n = sqlite3_column_int(st, 0);
	sqlite3_finalize(st);
	return n;
}

/* How many acknowledged jobs are not there; *sound: the file is. */
static int
missing(bool *sound)
{
	static const char OK[] = "SELECT count(*) = 1 AND min(integrity_check) = 'ok' FROM pragma_integrity_check WHERE ?1 IS NOT NULL";
	static const char JOBS[] = "SELECT count(DISTINCT b.body) FROM q_job j JOIN q_body b ON b.job = j.id WHERE CAST(b.body AS TEXT) GLOB ?1 || '.*'";
	sqlite3 *a = NULL;
	int lost = 0, n;

	*sound = false;
	if (sqlite3_open_v2(file, &a, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK) {
		*sound = number(a, OK, 0) == 1;
		for (int i = 0; i < WRITERS; i++)
			if ((n = number(a, JOBS, i)) < shared->done[i])
				lost += shared->done[i] - (n > 0 ? n : 0);
	}
	sqlite3_close(a);
	return lost;
}

int
main(int argc, char *argv[])
{
	static const char *const HOW[] = { "q", "unlocked", "auto" };
	int lost;
	bool sound;
	unsigned seed;

	if (argc != 5) {
		fputs(USAGE, stderr);
		return 64;
	}
	while (how <= AUTO && strcmp(argv[1], HOW[how]) != 0)
		how++;
	if (how > AUTO)
		errx(64, "no such way: %s", argv[1]);
	seed = (unsigned)atoi(argv[2]);
	commits = atoi(argv[3]);
	file = argv[4];
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		err(2, "mmap");
	sqlite3_initialize();
	real = sqlite3_vfs_find(NULL);
	vfs = *real;
	vfs.zName = "window";
	vfs.xOpen = file_open;
	sqlite3_vfs_register(&vfs, 1);
	for (int i = 0; i < WRITERS; i++)
		if (fork() == 0) {
			srandom(seed * WRITERS + (unsigned)i);
			if (how == Q && i > 0)
				by_libq(i);
			else
				by_sql(i);
			_exit(0);
		}
	while (wait(NULL) != -1)
		;
	lost = missing(&sound);
	printf("%s%s, %s: %d commits, %d windows, in %d of them the log was written to, in %d begun anew; lost %d, %s\n", db_version(), db_exposed() ? " (exposed)" : "", HOW[how],
	    acknowledged(), shared->windows, shared->written_in, shared->restarted_in, lost, sound && !shared->broken ? "sound" : "damaged");
	return lost > 0 || !sound || shared->broken || acknowledged() < commits / 2;
}
