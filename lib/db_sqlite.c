/*
 * db_sqlite.c - the SQLite driver behind db.h, and the only file that knows SQLite.
 *
 * Debian 12's SQLite, like all before 3.51.3, can lose committed work when two connections
 * checkpoint and write at once (sqlite.org/wal.html#walresetbug).  So nobody checkpoints on their
 * own here: no autocheckpoint, none on close, and one function, checkpoint(), that runs while this
 * process holds the write lock.  It runs before the program's own write, because "this log is
 * copied" is forgotten with the last process: the write that follows restarts the log.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "q.h"

enum {
	FRAME = 4120,			/* bytes of one page in the log */
	ONCE_FRAMES = 150,		/* a one-shot program copies the log at this length */
	STAY_FRAMES = 100,		/* a long-lived one at this, or after STAY_COMMITS like its last, at STAY_MOST at the latest */
	STAY_COMMITS = 8,
	STAY_MOST = 200,
	LOG_FRAMES = 254,		/* a megabyte: a log that was longer is cut */
	LONG_FRAMES = DB_LOG_LONG / FRAME,	/* a log that some reader keeps from being copied */
	STMTS = 48,
	NAMES = 16,			/* parameters of a statement whose numbers are kept */
	BUSY_MS = 10000,
	RESERVE = DB_RESERVE,
	RESERVE_LOW = 256 << 10,	/* free bytes below which the reserve is given up */
	APPLICATION_ID = 0x71756575,	/* of files that are ours alone */
	FLOOR = 16 << 20		/* free bytes below which adds are refused, on small disks a quarter */
};

extern const char db_schema[], db_outbox[], db_poll[], db_hook[], db_cron[], db_once[], db_purge[], db_late[];

struct stmt {
	const char *sql, *names[NAMES];
	sqlite3_stmt *st;
	struct db *db;
};

struct db {
	sqlite3 *a, *b;			/* a works; b only checkpoints */
	sqlite3_stmt *undo;		/* ROLLBACK, ready for when memory runs out */
	enum db_mode mode;
	char *path, *wal;
	int turn[2];			/* turnstile descriptors, -1: not there */
	bool opened_turn, in_tx, waiting, shrink, upgrading;
	bool synced;			/* what was in the log when it was opened is on disk */
	int64_t turns;			/* transactions so far */
	int frames;			/* in the log after our last commit */
	int due;			/* how many of them are too many for one that stays */
	int64_t copied;			/* file_time() then, if they were that many */
	int64_t busy_ms, deadline;	/* by when_elapsed() */
	dev_t dev;			/* which file it was when it was opened */
	ino_t ino;
	int watch;
	int nstmt, status;
	struct stmt stmts[STMTS];
	char msg[1024], note[256];
};

static const char VERSION[] = "SELECT value FROM q_meta WHERE name = 'version'";
static const char HAS_OUTBOX[] = "SELECT 1 FROM sqlite_schema WHERE name = 'q_outbox'";

/* What only files that need it have, in the order of enum db_tables. */
static const struct { const char *has, *sql; } TABLES[] = {
	{ "SELECT 1 FROM sqlite_schema WHERE name = 'q_poll'", db_poll },
	{ "SELECT 1 FROM sqlite_schema WHERE name = 'q_hook'", db_hook },
	{ "SELECT 1 FROM sqlite_schema WHERE name = 'q_cron'", db_cron },
	{ "SELECT 1 FROM sqlite_schema WHERE name = 'q_once'", db_once },
	{ "SELECT 1 FROM sqlite_schema WHERE name = 'q_purge'", db_purge },
	{ "SELECT 1 FROM sqlite_schema WHERE name = 'q_told'", db_late },
};
static const char HAS_OURS[] = "SELECT substr(type || ' ' || name, 1, 31) FROM sqlite_schema WHERE name GLOB 'q_*'";
static const char DATA_VERSION[] = "PRAGMA data_version";
/* Of a backup: what it must hold, and what it holds if nobody writes meanwhile. */
static const char NEWEST[] = "SELECT coalesce(max(id), 0) FROM q_job";
static const char HOLDS[] =
	"SELECT (SELECT count(*) FROM q_job) || ' jobs, ' || (SELECT count(*) FROM q_body) || ' payloads, '\n"
	"    || (SELECT count(*) FROM q_key) || ' keys, ' || (SELECT count(*) FROM q_attempt) || ' attempts'";

/* ---- errors ---- */

int
db_status(const struct db *db)
{
	return db->status;
}

const char *
db_message(const struct db *db)
{
	return db->msg;
}

const char *
db_note(const struct db *db)
{
	return db->note;
}

void
db_clear(struct db *db)
{
	db->status = Q_OK;
	db->msg[0] = '\0';
}

int
db_fail(struct db *db, int status, const char *fmt, ...)
{
	va_list ap;

	if (db->status != Q_OK)
		return db->status;	/* the first failure is the cause */
	db->status = status;
	va_start(ap, fmt);
	vsnprintf(db->msg, sizeof db->msg, fmt, ap);
	va_end(ap);
	return status;
}

/* The name of a file beside ours; it fits, as handle_new() has seen. */
static char *
side_name(const struct db *db, const char *suffix, char buf[PATH_MAX])
{
	snprintf(buf, PATH_MAX, "%s%s", db->path, suffix);
	return buf;
}

/* Which of the files cannot be opened, and why: SQLite does not say.  Even a reader needs those beside it. */
static int
forbidden(struct db *db)
{
	static const char *const SIDE[] = { "", "-wal", "-shm" };
	char name[PATH_MAX], readonly[PATH_MAX] = "";

	for (size_t i = 0; i < sizeof SIDE / sizeof *SIDE; i++) {
		if (access(side_name(db, SIDE[i], name), R_OK) == 0) {
			if (readonly[0] == '\0' && access(name, W_OK) == -1)
				memcpy(readonly, name, sizeof name);
			continue;
		}
		if (errno == ENOENT)	/* a copy that was put back, or nobody has opened it since it was made */
			return db_fail(db, Q_PERM, "%s: not there, and you may not make it; next: qinit '%s', by somebody who may write to it",
			    name, db->path);
		return db_fail(db, Q_PERM, "%s: %s; check owner and mode of the file and its folder", name, strerror(errno));
	}
	return db_fail(db, Q_PERM, "%s: no permission to write; check its owner and mode, and the mount", readonly[0] != '\0' ? readonly : db->path);
}

/* Does a table of the application need a thing that it alone has registered? */
static bool
foreign(const struct db *db)
{
	static const char *const THINGS[] = { "no such collation sequence: ", "no such module: ", "unknown function: " };

	for (size_t i = 0; i < sizeof THINGS / sizeof *THINGS; i++)
		if (strncmp(sqlite3_errmsg(db->a), THINGS[i], strlen(THINGS[i])) == 0)
			return true;
	return false;
}

/* May this process write the file, and what is or comes beside it? */
static bool
may_write(const struct db *db)
{
	static const char *const SIDE[] = { "", "-wal", "-shm" };
	char name[PATH_MAX], folder[PATH_MAX], *slash;
	bool may = true;

	snprintf(folder, sizeof folder, "%s", db->path);
	if ((slash = strrchr(folder, '/')) == NULL)
		return false;
	slash[slash == folder] = '\0';
	for (size_t i = 0; i < sizeof SIDE / sizeof *SIDE; i++)
		if (access(side_name(db, SIDE[i], name), R_OK | W_OK) == -1 && (errno != ENOENT || access(folder, W_OK | X_OK) == -1) &&
		    (errno == EACCES || errno == EPERM || errno == EROFS))
			may = false;
	return may;
}

/* What an SQLite result code means to the programs. */
static int
fail_sqlite(struct db *db, int rc)
{
	const char *path = db->path;
	int err;

	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
		return db_fail(db, Q_TEMP, "%s: busy for %lldms; another program holds it; try again later",
		    path, (long long)db->busy_ms);
	case SQLITE_NOMEM:
		return db_fail(db, Q_TEMP, "%s: out of memory", path);
	case SQLITE_FULL:
		return db_fail(db, Q_IO, "%s: no space left; nothing was changed; make room and try again", path);
	case SQLITE_IOERR:
		return db_fail(db, Q_IO, "%s: %s (%d); see dmesg and the disk", path, sqlite3_errstr(rc), rc);
	case SQLITE_CORRUPT:
		return db_fail(db, Q_IO, "%s: the file is damaged; next: go back to a copy, as qbackup(1) says", path);
	case SQLITE_NOTADB:
		return db_fail(db, Q_CONFIG, "%s: not an SQLite database; see -d and Q_DB; if it was a queue file: go back to a copy, as qbackup(1) says", path);
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
		err = db->a != NULL ? sqlite3_system_errno(db->a) : 0;
		if (err == EMFILE || err == ENFILE)
			return db_fail(db, Q_TEMP, "%s: %s; see ulimit -n", path, strerror(err));
		if (may_write(db))	/* so it is not permission; but what it was, SQLite does not always know */
			return db_fail(db, Q_TEMP, "%s: cannot be opened now: %s; see ulimit -n and the disk", path,
			    err != 0 ? strerror(err) : sqlite3_errstr(rc));
		/* fall through */
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return forbidden(db);
	case SQLITE_TOOBIG:
		return db_fail(db, Q_DATA, "%s: value too big", path);
	case SQLITE_ERROR:		/* what a statement needs is not there, or a format that SQLite does not know */
		if (foreign(db))
			return db_fail(db, Q_CONFIG, "%s: %s, which only the application of the file has", path, sqlite3_errmsg(db->a));
		return db_fail(db, Q_CONFIG, "%s: %s; somebody else has changed the file, or it is damaged; next: qcheck",
		    path, sqlite3_errmsg(db->a));
	case SQLITE_CONSTRAINT:		/* rows that do not go together, which no statement writes */
	case SQLITE_MISMATCH:
		return db_fail(db, Q_IO, "%s: %s; somebody else has changed the file, or it is damaged; next: qcheck",
		    path, sqlite3_errmsg(db->a));
	default:
		return db_fail(db, Q_BUG, "%s: %s (%d)", path, sqlite3_errmsg(db->a), rc);
	}
}

const char *
db_version(void)
{
	static char text[32];

	snprintf(text, sizeof text, "SQLite %s", sqlite3_libversion());
	return text;
}

bool
db_exposed(void)
{
	int v = sqlite3_libversion_number();

	return v < 3044006 || (v >= 3045000 && v < 3050007) || (v >= 3051000 && v < 3051003);
}

/* ---- waiting ---- */

/*
 * SQLite's own handler backs off to 100 ms and so lets late comers pass; this one asks each
 * millisecond or so.  It matters only for writers that do not take the turnstile.
 */
static int
busy(void *arg, int n)
{
	struct db *db = arg;
	struct timespec ts = { 0, 1000000 };
	unsigned jitter;

	if (n == 0 && !db->waiting)
		db->deadline = when_elapsed() + db->busy_ms;
	if (when_elapsed() >= db->deadline)
		return 0;
	sqlite3_randomness(sizeof jitter, &jitter);
	ts.tv_nsec -= jitter % 500000;
	nanosleep(&ts, NULL);
	return 1;
}

/* When the database itself, not its log, was last written: by a checkpoint, whoever ran it. */
static int64_t
file_time(const struct db *db)
{
	struct stat st;

	return stat(db->path, &st) == 0 ? (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec : 0;
}

static int
log_length(void *arg, sqlite3 *a, const char *name, int frames)
{
	struct db *db = arg;
	int ours = 0, unused;

	(void)name;
	db->synced = true;
	db->frames = frames;
	if (db->mode != DB_STAY)
		return SQLITE_OK;
	/* Copying takes three syncs: with STAY_FRAMES alone, a server of large commits would do it before two of three. */
	sqlite3_db_status(a, SQLITE_DBSTATUS_CACHE_WRITE, &ours, &unused, 1);
	ours *= STAY_COMMITS;
	db->due = ours < STAY_FRAMES ? STAY_FRAMES : ours < STAY_MOST ? ours : STAY_MOST;
	if (frames >= db->due)
		db->copied = file_time(db);
	return SQLITE_OK;
}

/*
 * The turnstile: writers queue on two locks of a side file, so that the one who leaves cannot
 * pass the one who waits (with SQLite's busy handler alone one process starved seven).  Wait for
 * 0; holding it wait for 1; let go of 0.  The kernel frees both when a holder dies.  OFD locks, since
 * POSIX ones vanish with any close of the file.
 */
static int
turn_op(int fd, int byte, bool lock, bool wait)
{
#ifdef F_OFD_SETLK
	struct flock fl = { .l_type = lock ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	return fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &fl);
#else
	(void)byte;
	return flock(fd, lock ? LOCK_EX | (wait ? 0 : LOCK_NB) : LOCK_UN);
#endif
}

/* A holder that was stopped must not stop everybody: at give_up BEGIN IMMEDIATE alone decides. */
static void
turn_wait(struct db *db, int byte, int64_t give_up)
{
	if (db->turn[byte] == -1 || turn_op(db->turn[byte], byte, true, false) == 0)
		return;
	when_nudge(100);
	while (turn_op(db->turn[byte], byte, true, true) == -1 && errno == EINTR && when_elapsed() < give_up)
		;
	when_nudge(0);
}

/* A side file takes owner and mode from the database. */
static int
side_open(const struct db *db, const char *suffix)
{
	char name[PATH_MAX];
	struct stat st;
	int fd, tries;

	side_name(db, suffix, name);
	for (tries = 0; tries < 3; tries++) {
		fd = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		if (fd != -1 || errno != ENOENT || stat(db->path, &st) == -1)
			return fd;
		fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, st.st_mode & 0666);
		if (fd != -1) {
			if (fchown(fd, st.st_uid, st.st_gid) == -1)
				(void)!fchown(fd, (uid_t)-1, st.st_gid);
			fchmod(fd, st.st_mode & 0666);
			return fd;
		}
	}
	return -1;
}

static void
turn_take(struct db *db)
{
	int64_t half_time = when_elapsed() + db->busy_ms / 2;

	if (!db->opened_turn) {
		db->opened_turn = true;
		db->turn[0] = side_open(db, "-lock");
#ifdef F_OFD_SETLK
		db->turn[1] = db->turn[0];
#else
		db->turn[1] = side_open(db, "-lock2");
#endif
	}
	turn_wait(db, 0, half_time);
	turn_wait(db, 1, half_time);
	if (db->turn[0] != -1)
		turn_op(db->turn[0], 0, false, false);
}

static void
turn_leave(struct db *db)
{
	if (db->turn[1] != -1)
		turn_op(db->turn[1], 1, false, false);
}

/* ---- room on the disk ---- */

int64_t
db_room(const struct db *db, int64_t *floor_bytes)
{
	struct statfs fs;
	int64_t quarter;

	if (statfs(db->path, &fs) == -1)
		return INT64_MAX;
	quarter = (int64_t)fs.f_blocks * fs.f_bsize / 4;
	*floor_bytes = quarter < FLOOR ? quarter : FLOOR;
	return (int64_t)fs.f_bavail * fs.f_bsize;
}

int
db_sizes(struct db *db, struct db_size *z)
{
	struct statfs fs;
	struct stat st;

	if (stat(db->path, &st) == -1 || statfs(db->path, &fs) == -1)
		return db_fail(db, Q_IO, "%s: %s", db->path, strerror(errno));
	*z = (struct db_size){ .file = st.st_size, .free = (int64_t)fs.f_bavail * fs.f_bsize, .disk = (int64_t)fs.f_blocks * fs.f_bsize };
	if (stat(db->wal, &st) == 0)
		z->log = st.st_size;
	return Q_OK;
}

/* Blocks kept back so that work can still be settled on a full disk. */
static void
reserve_make(struct db *db)
{
	int64_t low = 0, left = db_room(db, &low);
	char name[PATH_MAX];
	struct stat st;
	int fd;

	if (left == INT64_MAX || left < low + 2 * (int64_t)RESERVE ||
	    (lstat(side_name(db, "-reserve", name), &st) == 0 && st.st_blocks * 512 >= RESERVE))
		return;
	if ((fd = side_open(db, "-reserve")) == -1)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1)
		(void)!posix_fallocate(fd, 0, RESERVE);
	close(fd);
}

/* cut: the log is, or may be, about to be cut, and so is room, too: one add that did not fit must not refuse all that do. */
static int
room_check(struct db *db, bool adds, bool cut)
{
	int64_t low = 0, left = db_room(db, &low);
	char name[PATH_MAX];
	struct stat st;
	int fd;

	if (adds && left < low && cut && stat(db->wal, &st) == 0)
		left += st.st_size;
	if (adds && left < low)
		return db_fail(db, Q_IO, "%s: disk nearly full (%lld KiB left); adds are refused below %lld KiB so that "
		    "running work can settle; make room", db->path, (long long)left / 1024, (long long)low / 1024);
	/* No link is followed and no pipe waited for: others of the group can put one there. */
	if (!adds && left < RESERVE_LOW &&
	    (fd = open(side_name(db, "-reserve", name), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) != -1) {
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1)
			(void)!ftruncate(fd, 0);
		close(fd);
	}
	return Q_OK;
}

/* ---- opening ---- */

static int
no_directory(const char *path, int *fd)
{
	(void)path;
	*fd = -1;
	return SQLITE_CANTOPEN;		/* unixSync() takes this for "nothing to sync" */
}

/*
 * SQLite syncs the folder at each process's first commit, as it opens the log with O_CREAT.  A log
 * that already holds a page had that sync, after its head of 32 bytes, by whoever wrote to it first.
 */
static void
skip_directory_sync(const struct db *db)
{
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	struct stat st;

	if (vfs != NULL && vfs->iVersion >= 3 && stat(db->wal, &st) == 0 && st.st_size >= FRAME)
		vfs->xSetSystemCall(vfs, "openDirectory", (sqlite3_syscall_ptr)no_directory);
}

/* A log needs memory that all processes share coherently; remote file systems only pretend to. */
static const char *
remote_fs(const char *path)
{
	static const struct { unsigned long magic; const char *name; } REMOTE[] = {
		{ 0x6969, "NFS" }, { 0x517b, "SMB" }, { 0xfe534d42, "SMB" }, { 0xff534d42, "CIFS" },
		{ 0x01021997, "9p" }, { 0x65735546, "FUSE or virtiofs" }, { 0x73757245, "Coda" },
		{ 0x5346414f, "AFS" }, { 0x00c36400, "Ceph" }
	};
	struct statfs fs;

	if (statfs(path, &fs) == -1)
		return NULL;
	for (size_t i = 0; i < sizeof REMOTE / sizeof *REMOTE; i++)
		if (REMOTE[i].magic == ((unsigned long)fs.f_type & 0xffffffff))
			return REMOTE[i].name;
	return NULL;
}

static int
exec_sql(struct db *db, sqlite3 *conn, const char *sql)
{
	int rc;

	if (db->status != Q_OK)		/* what was to come may have been rolled back already */
		return db->status;
	rc = sqlite3_exec(conn, sql, NULL, NULL, NULL);
	return rc == SQLITE_OK ? Q_OK : fail_sqlite(db, rc);
}

static int
connect_sql(struct db *db, sqlite3 **conn, int flags)
{
	int rc, on = -1;

	rc = sqlite3_open_v2(db->path, conn, flags | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc != SQLITE_OK)
		return fail_sqlite(db, rc);
	sqlite3_extended_result_codes(*conn, 1);
	sqlite3_busy_handler(*conn, busy, db);	/* before the first statement: another process may be recovering the log */
	if (sqlite3_db_config(*conn, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, &on) != SQLITE_OK || on != 1 ||
	    sqlite3_db_config(*conn, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, &on) != SQLITE_OK || on != 0 ||
	    sqlite3_db_config(*conn, SQLITE_DBCONFIG_ENABLE_FKEY, 0, &on) != SQLITE_OK || on != 0)
		return db_fail(db, Q_CONFIG, "%s is too old, or built without what q needs; next: SQLite 3.37 or later", db_version());
	sqlite3_wal_autocheckpoint(*conn, 0);
	exec_sql(db, *conn, "PRAGMA synchronous=FULL; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0");
	/* KiB, taken as needed: with the default of 2000 a bulk add with keys in random order writes its pages many times. */
	if (db->mode == DB_ONCE)
		exec_sql(db, *conn, "PRAGMA cache_size=-16000");
	return db->status;
}

/* Text of a one-value query into buf; the SQLite code. */
static int
one_text(sqlite3 *conn, const char *sql, char *buf, size_t size)
{
	sqlite3_stmt *st;
	const char *text;
	int rc = sqlite3_prepare_v2(conn, sql, -1, &st, NULL);

	buf[0] = '\0';
	if (rc != SQLITE_OK)
		return rc;
	if ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		if ((text = (const char *)sqlite3_column_text(st, 0)) != NULL)
			snprintf(buf, size, "%s", text);
		else if (sqlite3_errcode(conn) == SQLITE_NOMEM)
			rc = SQLITE_NOMEM;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The same for the connection that works; false also if it failed. */
static bool
found_text(struct db *db, const char *sql, char *buf, size_t size)
{
	int rc = db->status == Q_OK ? one_text(db->a, sql, buf, size) : SQLITE_OK;

	if (rc != SQLITE_OK)
		fail_sqlite(db, rc);
	return db->status == Q_OK && buf[0] != '\0';
}

/* Is the file's schema this program's?  (An upgrade may start from an older one.) */
static int
check_version(struct db *db, const char *value)
{
	int version = atoi(value);

	if (version > DB_SCHEMA)
		return db_fail(db, Q_CONFIG, "%s: made by a newer q (schema %s, this program knows %d); next: install that q",
		    db->path, value, DB_SCHEMA);
	if (version < 1 && db->upgrading)
		return db_fail(db, Q_CONFIG, "%s: schema '%s' is none that this q can upgrade from", db->path, value);
	if (version < DB_SCHEMA && !db->upgrading)
		return db_fail(db, Q_CONFIG, "%s: made by an older q (schema '%s', this program needs %d); next: qinit --upgrade '%s'",
		    db->path, value, DB_SCHEMA, db->path);
	return Q_OK;
}

static int
check_identity(struct db *db)
{
	char value[32];
	int rc;

	rc = one_text(db->a, VERSION, value, sizeof value);
	if (rc == SQLITE_ERROR)		/* no such table */
		return db_fail(db, Q_CONFIG, "%s: no queue tables in this database; next: qinit --into '%s', or see -d and Q_DB",
		    db->path, db->path);
	if (rc != SQLITE_OK)
		return fail_sqlite(db, rc);
	if (check_version(db, value) != Q_OK)
		return db->status;
	if (db->mode == DB_READ)
		return Q_OK;
	if (sqlite3_db_readonly(db->a, "main") == 1)
		return fail_sqlite(db, SQLITE_READONLY);
	if ((rc = one_text(db->a, "PRAGMA synchronous", value, sizeof value)) != SQLITE_OK)
		return fail_sqlite(db, rc);
	if (strcmp(value, "2") != 0)
		return db_fail(db, Q_CONFIG, "%s: SQLite does not keep synchronous=FULL", db->path);
	if ((rc = one_text(db->a, "PRAGMA journal_mode", value, sizeof value)) != SQLITE_OK)
		return fail_sqlite(db, rc);
	if (strcmp(value, "wal") != 0)
		return db_fail(db, Q_CONFIG, "%s: journal mode is %s, q needs WAL; next: sqlite3 '%s' 'PRAGMA journal_mode=WAL'",
		    db->path, value, db->path);
	return Q_OK;
}

char *
db_default_path(const char **why)
{
	const char *q = getenv("Q_DB"), *base = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *path = NULL;
	int n;

	*why = "out of memory";
	if (q != NULL && *q != '\0')
		return strdup(q);
	if (base != NULL && *base == '/')
		n = asprintf(&path, "%s/q/q.db", base);
	else if (home != NULL && *home == '/')
		n = asprintf(&path, "%s/.local/state/q/q.db", home);
	else {
		*why = "no queue file: neither Q_DB nor HOME is set; next: export Q_DB=/path/to/q.db";
		return NULL;
	}
	return n == -1 ? NULL : path;
}

/* An absolute name with symbolic links followed, so that side files and turnstile are one for all. */
static char *
absolute(const char *path)
{
	char *real = realpath(path, NULL), *dir, *out = NULL, *slash;
	const char *base;

	if (real != NULL)
		return real;
	if ((dir = strdup(path)) == NULL)
		return NULL;
	slash = strrchr(dir, '/');
	base = slash != NULL ? path + (slash - dir) + 1 : path;
	if (slash == dir)
		slash[1] = '\0';
	else if (slash != NULL)
		*slash = '\0';
	real = realpath(slash != NULL ? dir : ".", NULL);
	if (real == NULL)
		out = strdup(path);
	else if (asprintf(&out, "%s%s%s", real, strcmp(real, "/") == 0 ? "" : "/", base) == -1)
		out = NULL;
	free(real);
	free(dir);
	return out;
}

/* A handle with its names, not yet connected. */
static int
handle_new(struct db **out, const char *path, enum db_mode mode)
{
	struct db *db = calloc(1, sizeof *db);
	const char *why = "out of memory", *wait = getenv("Q_BUSY_TIMEOUT");
	char *given;

	*out = db;
	if (db == NULL)
		return Q_TEMP;
	db->mode = mode;
	db->turn[0] = db->turn[1] = db->watch = -1;
	db->busy_ms = BUSY_MS;
	given = path != NULL ? strdup(path) : db_default_path(&why);
	if (given == NULL)
		return db_fail(db, strcmp(why, "out of memory") == 0 ? Q_TEMP : Q_CONFIG, "%s", why);
	if (*given == '\0')
		db_fail(db, Q_NOINPUT, "the name of the queue file is empty; see -d and Q_DB");
	db->path = absolute(given);
	free(given);
	if (db->path == NULL || asprintf(&db->wal, "%s-wal", db->path) == -1)
		return db_fail(db, Q_TEMP, "out of memory");
	if (wait != NULL && !when_duration(wait, &db->busy_ms, &why))
		return db_fail(db, Q_CONFIG, "Q_BUSY_TIMEOUT: '%s' %s", wait, why);
	if (strlen(db->path) + sizeof "-reserve" > PATH_MAX)
		db_fail(db, Q_CONFIG, "the name of the queue file is too long: %s", db->path);
	return db->status;
}

/* Once per process, before the first connection. */
static void
configure(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	sqlite3_config(SQLITE_CONFIG_URI, 0);		/* "file:x?mode=memory" is a file name here */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	/* Pages one by one: of the 20 that it would take at once, an add uses nine. */
	sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
	/* A statement journal would take and give back 64 KiB at each statement that has triggers. */
	sqlite3_config(SQLITE_CONFIG_STMTJRNL_SPILL, -1);
}

/* Side files without their database would be replayed into whatever is put there next. */
static int
missing(struct db *db)
{
	static const char *const SIDE[] = { "-wal", "-journal" };
	char name[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < sizeof SIDE / sizeof *SIDE; i++)
		if (lstat(side_name(db, SIDE[i], name), &st) == 0)
			return db_fail(db, Q_CONFIG, "%s: gone, but its log %s is there; "
			    "put the file back, or move the log away", db->path, name);
	return db_fail(db, Q_NOINPUT, "%s: no such queue file; next: qinit '%s' for a new one, or see -d and Q_DB; if it was "
	    "there, bring it or a copy back, as qbackup(1) says", db->path, db->path);
}

static int
check_file(struct db *db)
{
	const char *fs;
	struct stat st;

	if (lstat(db->path, &st) == -1) {
		if (errno == ENOENT || errno == ENOTDIR)
			return missing(db);
		return errno != EACCES && errno != EPERM ? db_fail(db, Q_IO, "%s: %s", db->path, strerror(errno)) :
		    db_fail(db, Q_PERM, "%s: %s; check owner and mode of the file and its folder", db->path, strerror(errno));
	}
	if (!S_ISREG(st.st_mode))
		return db_fail(db, Q_CONFIG, "%s: %s, not a queue file; see -d and Q_DB", db->path,
		    S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
	if (st.st_nlink > 1)		/* two names would have two logs */
		return db_fail(db, Q_CONFIG, "%s: has %ju names (hard links), and each would have a log of its own; "
		    "next: qinit '%s' ends a broken creation, else remove the other name", db->path, (uintmax_t)st.st_nlink, db->path);
	if ((fs = remote_fs(db->path)) != NULL)
		return db_fail(db, Q_CONFIG, "%s: on %s, where SQLite's log is not safe; put it on a local disk", db->path, fs);
	if (st.st_size == 0)		/* SQLite would take it for a new one, and delete its log */
		return db_fail(db, Q_CONFIG, "%s: empty; see -d and Q_DB; if it was a queue file: go back to a copy, as qbackup(1) says; "
		    "if it is to be one: rm it, then qinit", db->path);
	db->dev = st.st_dev;
	db->ino = st.st_ino;
	return Q_OK;
}

/* What is written to a file that has lost its name is lost with it. */
static int
same_file(struct db *db)
{
	struct stat st;

	errno = 0;
	if (stat(db->path, &st) == 0 && st.st_dev == db->dev && st.st_ino == db->ino)
		return Q_OK;
	if (errno != 0 && errno != ENOENT && errno != ENOTDIR)
		return db_fail(db, Q_IO, "%s: %s", db->path, strerror(errno));
	return db_fail(db, Q_CONFIG, "%s: removed or replaced while it was open; nothing was changed; start again", db->path);
}

static int
open_checked(struct db *db)
{
	configure();
	skip_directory_sync(db);
	if (connect_sql(db, &db->a, SQLITE_OPEN_READWRITE) != Q_OK)
		return db->status;
	sqlite3_wal_hook(db->a, log_length, db);
	return check_identity(db);
}

int
db_open(struct db **out, const char *path, enum db_mode mode)
{
	int status = handle_new(out, path, mode);

	if (status != Q_OK || (status = check_file(*out)) != Q_OK)
		return status;
	return open_checked(*out);
}

void
db_close(struct db *db)
{
	if (db == NULL)
		return;
	for (int i = 0; i < db->nstmt; i++)
		sqlite3_finalize(db->stmts[i].st);
	sqlite3_finalize(db->undo);
	sqlite3_close(db->b);
	sqlite3_close(db->a);
	if (db->turn[1] != db->turn[0] && db->turn[1] != -1)
		close(db->turn[1]);
	if (db->turn[0] != -1)
		close(db->turn[0]);
	if (db->watch != -1)
		close(db->watch);
	free(db->path);
	free(db->wal);
	free(db);
}

const char *
db_path(const struct db *db)
{
	return db->path;
}

/* ---- transactions ---- */

static bool
log_is_long(const struct db *db)
{
	struct stat st;

	if (db->mode == DB_STAY && db->frames > 0)	/* eight workers see the same long log: one copies it */
		return db->frames >= db->due && file_time(db) == db->copied;
	return stat(db->wal, &st) == 0 && st.st_size >= (off_t)ONCE_FRAMES * FRAME;
}

/*
 * Copies the log into the file while a holds the write lock; was it all?  Failure is no reason to
 * stop: the next writer tries again.
 */
static bool
checkpoint(struct db *db)
{
	int total = -1, copied = -1;
	struct stat st;
	char unused[32];

	if (db->b == NULL && connect_sql(db, &db->b, SQLITE_OPEN_READWRITE) == Q_OK)
		one_text(db->b, "PRAGMA user_version", unused, sizeof unused);	/* only then it is in WAL mode */
	if (db->b != NULL && db->status == Q_OK)
		sqlite3_wal_checkpoint_v2(db->b, "main", SQLITE_CHECKPOINT_PASSIVE, &total, &copied);
	db_clear(db);
	if (total > LONG_FRAMES && copied < total)
		snprintf(db->note, sizeof db->note, "the log has %d pages and a reader keeps %d of them from being copied; "
		    "end long-running readers", total, total - copied);
	db->shrink = db->mode == DB_ONCE || (stat(db->wal, &st) == 0 && st.st_size > (off_t)LOG_FRAMES * FRAME);
	db->frames = 0;
	return total >= 0 && copied == total;
}

/* The file may have been upgraded since it was opened. */
static void
still_ours(struct db *db)
{
	struct stmt *s = db_prepare(db, VERSION);

	if (db_step(s) == 1)
		check_version(db, db_col_text(s, 0));
	else
		db_fail(db, Q_CONFIG, "%s: no queue tables in this database any more", db->path);
	db_reset(s);
}

int64_t
db_turn(const struct db *db)
{
	return db->in_tx ? db->turns : 0;
}

int
db_begin(struct db *db, bool adds)
{
	bool cut;
	int rc = SQLITE_OK;

	if (sqlite3_get_autocommit(db->a) == 0)		/* it could not even be undone */
		db_rollback(db);
	db_clear(db);
	if (db->undo == NULL)
		rc = sqlite3_prepare_v2(db->a, "ROLLBACK", -1, &db->undo, NULL);
	if (rc != SQLITE_OK)
		return fail_sqlite(db, rc);
	db->deadline = when_elapsed() + db->busy_ms;
	if (room_check(db, adds, log_is_long(db)) != Q_OK)
		return db->status;
	db->waiting = true;
	turn_take(db);
	if (exec_sql(db, db->a, "BEGIN IMMEDIATE") == Q_OK && same_file(db) == Q_OK && log_is_long(db)) {
		cut = checkpoint(db);
		reserve_make(db);
		exec_sql(db, db->a, "ROLLBACK");
		if (db->shrink)
			exec_sql(db, db->a, "PRAGMA journal_size_limit=0");
		if (room_check(db, adds, cut) == Q_OK)	/* copying takes some */
			exec_sql(db, db->a, "BEGIN IMMEDIATE");
	}
	db->waiting = false;
	db->in_tx = sqlite3_get_autocommit(db->a) == 0;
	db->turns++;
	if (db->status == Q_OK)
		still_ours(db);
	if (db->status != Q_OK)
		db_rollback(db);
	return db->status;
}

static void
end_statements(struct db *db)
{
	for (int i = 0; i < db->nstmt; i++)
		sqlite3_reset(db->stmts[i].st);
}

void
db_rollback(struct db *db)
{
	end_statements(db);
	if (sqlite3_get_autocommit(db->a) == 0) {
		sqlite3_step(db->undo);
		sqlite3_reset(db->undo);
	}
	if (db->status == Q_IO || db->status == Q_CONFIG)	/* a page that was read wrong would stay in memory, and who tries again would see it again */
		sqlite3_db_release_memory(db->a);
	db->in_tx = false;
	turn_leave(db);
}

/* After a failed sync nobody knows what the disk holds. */
static int
unknown(struct db *db, int rc)
{
	return db_fail(db, Q_UNKNOWN, "%s: %s (%d) in commit; it may have happened: look with qls before you repeat",
	    db->path, sqlite3_errstr(rc), rc);
}

static void
commit_sql(struct db *db)
{
	int rc = sqlite3_exec(db->a, "COMMIT", NULL, NULL, NULL);

	/* A failed write ended before the commit mark. */
	if ((rc & 0xff) == SQLITE_IOERR && rc != SQLITE_IOERR_WRITE)
		unknown(db, rc);
	else if (rc != SQLITE_OK)
		fail_sqlite(db, rc);
}

/*
 * Who opens a log that nobody has open finds in it also the last commit of a process that was killed between
 * write and sync.
 */
int
db_sync(struct db *db)
{
	sqlite3_file *log = NULL;
	int rc;

	if (db->synced || db->status != Q_OK)
		return db->status;
	rc = sqlite3_file_control(db->a, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
	if (rc == SQLITE_OK && log != NULL && log->pMethods != NULL)
		rc = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
	if (rc != SQLITE_OK)
		return unknown(db, rc);
	db->synced = true;
	return Q_OK;
}

int
db_commit(struct db *db)
{
	if (db->status == Q_OK && !db->in_tx)
		db_fail(db, Q_BUG, "commit without a transaction");
	end_statements(db);
	if (db->status == Q_OK)
		commit_sql(db);
	db_rollback(db);		/* ends the turn; rolls back only what is still open */
	db_sync(db);			/* if nothing was written: somebody is told that it was there before */
	if (db->shrink && db->status == Q_OK) {
		db->shrink = false;
		if (db->mode == DB_STAY)
			exec_sql(db, db->a, "PRAGMA journal_size_limit=-1");
	}
	return db->status;
}

/* ---- statements ---- */

struct stmt *
db_prepare(struct db *db, const char *sql)
{
	struct stmt *s;
	int i, rc;

	for (i = 0; i < db->nstmt && db->stmts[i].sql != sql; i++)
		;
	if (i == STMTS) {
		db_fail(db, Q_BUG, "more than %d statements", STMTS);
		return &db->stmts[0];
	}
	s = &db->stmts[i];
	if (i < db->nstmt && s->st != NULL) {	/* NULL: there was no memory, or the file was busy; perhaps now it is not */
		sqlite3_reset(s->st);
		sqlite3_clear_bindings(s->st);
		return s;
	}
	if (i == db->nstmt)
		db->nstmt++;
	s->sql = sql;
	s->db = db;
	rc = sqlite3_prepare_v3(db->a, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->st, NULL);
	if (rc != SQLITE_OK)
		fail_sqlite(db, rc);
	return s;
}

static int
place(struct stmt *s, const char *name)
{
	int i;

	for (i = 1; i < NAMES; i++)	/* by address: SQLite compares text, which took 6 % of a bulk add */
		if (s->names[i] == name)
			return i;
	i = sqlite3_bind_parameter_index(s->st, name);
	if (i > 0 && i < NAMES)
		s->names[i] = name;
	if (i == 0)
		db_fail(s->db, Q_BUG, "no parameter %s in: %s", name, s->sql);
	return i;
}

static void
bound(struct stmt *s, int rc)
{
	if (rc != SQLITE_OK)
		fail_sqlite(s->db, rc);
}

void
db_int(struct stmt *s, const char *name, int64_t v)
{
	bound(s, sqlite3_bind_int64(s->st, place(s, name), v));
}

void
db_opt(struct stmt *s, const char *name, int64_t v)
{
	if (v != -1)
		db_int(s, name, v);
}

void
db_text(struct stmt *s, const char *name, const char *v)
{
	if (v != NULL)
		bound(s, sqlite3_bind_text(s->st, place(s, name), v, -1, SQLITE_STATIC));
}

void
db_blob(struct stmt *s, const char *name, const void *v, size_t n)
{
	if (v != NULL)
		bound(s, sqlite3_bind_blob64(s->st, place(s, name), v, n, SQLITE_STATIC));
}

int
db_step(struct stmt *s)
{
	int rc;

	if (s->db->status != Q_OK)
		return -1;
	rc = sqlite3_step(s->st);
	if (rc == SQLITE_ROW)
		return 1;
	if (rc == SQLITE_DONE) {
		sqlite3_reset(s->st);
		return 0;
	}
	fail_sqlite(s->db, rc);
	sqlite3_reset(s->st);
	return -1;
}

int64_t
db_run(struct stmt *s)
{
	int rc;

	while ((rc = db_step(s)) == 1)
		;
	return rc == -1 ? -1 : sqlite3_changes64(s->db->a);
}

int64_t
db_only(struct stmt *s)
{
	int64_t v = db_step(s) == 1 ? db_col_int(s, 0) : -1;

	db_reset(s);
	return v;
}

char *
db_next(struct stmt *s, const char *last)
{
	char *copy = NULL;
	const char *name;
	size_t n;

	if (last != NULL)
		db_text(s, ":last", last);
	if (db_step(s) == 1 && (name = db_col_blob(s, 0, &n)) != NULL) {
		if (memchr(name, '\0', n) != NULL)
			db_fail(s->db, Q_IO, "%s: something has a name that no program of q writes", db_path(s->db));
		else if ((copy = strndup(name, n)) == NULL)
			db_fail(s->db, Q_TEMP, "out of memory");
	}
	db_reset(s);
	return copy;
}

void
db_reset(struct stmt *s)
{
	sqlite3_reset(s->st);
}

int64_t
db_last_id(struct db *db)
{
	return sqlite3_last_insert_rowid(db->a);
}

int64_t
db_col_int(struct stmt *s, int i)
{
	int64_t v = sqlite3_column_int64(s->st, i);

	return v == 0 && sqlite3_column_type(s->st, i) == SQLITE_NULL ? -1 : v;
}

/* No value: is it NULL, or was there no memory for it?  Then it is empty, and the failure sticks. */
static bool
column_lost(struct stmt *s)
{
	return sqlite3_errcode(s->db->a) == SQLITE_NOMEM && fail_sqlite(s->db, SQLITE_NOMEM) != Q_OK;
}

const char *
db_col_opt(struct stmt *s, int i)
{
	const char *p = (const char *)sqlite3_column_text(s->st, i);

	return p == NULL && column_lost(s) ? "" : p;
}

const char *
db_col_text(struct stmt *s, int i)
{
	const char *p = db_col_opt(s, i);

	if (p == NULL)
		fail_sqlite(s->db, SQLITE_CORRUPT);
	return p != NULL ? p : "";
}

const void *
db_col_blob(struct stmt *s, int i, size_t *n)
{
	const void *p = sqlite3_column_blob(s->st, i);

	if (p == NULL)
		column_lost(s);
	*n = (size_t)sqlite3_column_bytes(s->st, i);
	return p == NULL && sqlite3_column_type(s->st, i) != SQLITE_NULL ? "" : p;
}

/* ---- wake-up ---- */

int64_t
db_data_version(struct db *db)
{
	struct stmt *s = db_prepare(db, DATA_VERSION);
	int64_t v = db_step(s) == 1 ? db_col_int(s, 0) : -1;

	db_reset(s);
	return same_file(db) == Q_OK ? v : -1;	/* who only waits would wait for ever: nobody finds that file any more */
}

int
db_watch(struct db *db)
{
	if (db->watch == -1) {
		db->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
		if (db->watch != -1 && inotify_add_watch(db->watch, db->wal, IN_MODIFY) == -1) {
			close(db->watch);
			db->watch = -1;
		}
	}
	return db->watch;
}

void
db_watch_drain(struct db *db)
{
	char buf[4096];

	while (db->watch != -1 && read(db->watch, buf, sizeof buf) > 0)
		;
}

/* ---- creating (qinit) ---- */

static int
sync_path(struct db *db, const char *path, int status)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd == -1)
		return db_fail(db, status, "%s: %s", path, strerror(errno));
	if (fsync(fd) == -1)
		db_fail(db, status, "%s: sync: %s", path, strerror(errno));
	close(fd);
	return db->status;
}

static int
cannot(int err)
{
	return err == EACCES || err == EPERM ? Q_PERM : err == EMFILE || err == ENFILE ? Q_TEMP : Q_CREATE;
}

/* What errno says of a file or folder that is to be made or looked into. */
static int
cannot_make(struct db *db, const char *path)
{
	return db_fail(db, cannot(errno), "%s: %s%s", path, strerror(errno), cannot(errno) == Q_PERM ? "; check owner and mode of the folder" : "");
}

/* The folder of a file that is to be made; it must be there. */
static int
folder_of(struct db *db, const char *path, char buf[PATH_MAX])
{
	char *slash;
	struct stat st;

	snprintf(buf, PATH_MAX, "%s", path);
	if ((slash = strrchr(buf, '/')) == NULL)
		return db_fail(db, Q_CREATE, "%s: no such folder", path);
	slash[slash == buf] = '\0';
	if (stat(buf, &st) == -1)
		return errno == ENOENT ? db_fail(db, Q_CREATE, "%s: no such folder; next: mkdir -p '%s'", buf, buf) :
		    cannot_make(db, buf);
	return Q_OK;
}

static int
tables(struct db *db, const struct db_create *c)
{
	char found[64];
	int rc;

	if (exec_sql(db, db->a, "BEGIN IMMEDIATE") == Q_OK && (rc = one_text(db->a, HAS_OURS, found, sizeof found)) != SQLITE_OK)
		fail_sqlite(db, rc);
	if (db->status == Q_OK) {
		if (found[0] == '\0' && exec_sql(db, db->a, db_schema) == Q_OK && c->outbox)
			exec_sql(db, db->a, db_outbox);
		else if (found[0] != '\0' && one_text(db->a, VERSION, found + 32, 32) != SQLITE_OK)	/* else another qinit was quicker */
			db_fail(db, Q_CONFIG, "%s: it has a %s, and names that begin with q_ are q's; next: rename that", db->path, found);
	}
	if (db->status == Q_OK)
		commit_sql(db);
	if (db->status != Q_OK)
		sqlite3_exec(db->a, "ROLLBACK", NULL, NULL, NULL);
	return db->status;
}

/* What not every file has: run sql unless `has` finds it. */
static int
extra(struct db *db, const char *has, const char *sql)
{
	char found[32];
	int rc = one_text(db->a, has, found, sizeof found);

	if (rc != SQLITE_OK)
		return fail_sqlite(db, rc);
	if (found[0] != '\0')
		return Q_OK;
	if (db_begin(db, false) == Q_OK && exec_sql(db, db->a, sql) != Q_OK)
		db_rollback(db);
	return db->status != Q_OK ? db->status : db_commit(db);
}

static int
outbox(struct db *db)
{
	return extra(db, HAS_OUTBOX, db_outbox);
}

int
db_tables(struct db *db, enum db_tables which)
{
	return extra(db, TABLES[which].has, TABLES[which].sql);
}

bool
db_has(struct db *db, enum db_tables which)
{
	char found[32];
	int rc = one_text(db->a, TABLES[which].has, found, sizeof found);

	if (rc != SQLITE_OK)
		fail_sqlite(db, rc);
	return rc == SQLITE_OK && found[0] != '\0';
}

/* One transaction, so that other programs see the old schema or the new one. */
static int
upgrade(struct db *db)
{
	char found[32];

	if (db_begin(db, false) != Q_OK)
		return db->status;
	db->upgrading = false;
	if (found_text(db, VERSION, found, sizeof found) && atoi(found) == DB_SCHEMA) {
		return db_commit(db);
	}
	exec_sql(db, db->a, db_schema);
	if (found_text(db, HAS_OUTBOX, found, sizeof found))
		exec_sql(db, db->a, db_outbox);
	for (size_t i = 0; i < sizeof TABLES / sizeof *TABLES; i++)
		if (found_text(db, TABLES[i].has, found, sizeof found))
			exec_sql(db, db->a, TABLES[i].sql);
	if (found_text(db, "PRAGMA application_id", found, sizeof found) && atoi(found) == APPLICATION_ID)
		exec_sql(db, db->a, "PRAGMA user_version=3");	/* = DB_SCHEMA */
	return db_commit(db);
}

/* The tables into the file of an application, which must already be in WAL mode: switching is its owner's act. */
static int
create_into(struct db *db, const struct db_create *c)
{
	struct stat st;
	char value[32];
	int rc;

	configure();
	if (lstat(db->path, &st) == -1 && errno == ENOENT)
		return db_fail(db, Q_NOINPUT, "%s: no such file; the application that owns it creates it", db->path);
	if (check_file(db) != Q_OK || connect_sql(db, &db->a, SQLITE_OPEN_READWRITE) != Q_OK)
		return db->status;
	rc = one_text(db->a, "PRAGMA journal_mode", value, sizeof value);
	if (rc != SQLITE_OK)
		return fail_sqlite(db, rc);
	if (strcmp(value, "wal") != 0)
		return db_fail(db, Q_CONFIG, "%s: journal mode is %s, q needs WAL; next: sqlite3 '%s' 'PRAGMA journal_mode=WAL'",
		    db->path, value, db->path);
	rc = one_text(db->a, VERSION, value, sizeof value);
	if (rc == SQLITE_OK)
		return check_identity(db) != Q_OK || (c->upgrade && upgrade(db) != Q_OK) || outbox(db) != Q_OK ?
		    db->status : db_sync(db);
	if (rc != SQLITE_ERROR || (rc = one_text(db->a, "PRAGMA encoding", value, sizeof value)) != SQLITE_OK)
		return fail_sqlite(db, rc);
	if (strcmp(value, "UTF-8") != 0)
		return db_fail(db, Q_CONFIG, "%s: its text is %s, q needs UTF-8; next: qinit a file of its own", db->path, value);
	turn_take(db);
	db_clear(db);
	if (tables(db, c) == Q_OK)
		reserve_make(db);
	turn_leave(db);
	return db->status;
}

static int
owner_and_mode(struct db *db, int fd, const struct db_create *c)
{
	struct group *gr = NULL;
	int64_t gid = -1;

	if (c->group != NULL && (gr = getgrnam(c->group)) != NULL)
		gid = gr->gr_gid;
	else if (c->group != NULL && !text_int(c->group, 0, INT32_MAX, &gid))
		return db_fail(db, Q_CONFIG, "no group '%s' here", c->group);
	if (c->group != NULL && fchown(fd, (uid_t)-1, (gid_t)gid) == -1)
		return db_fail(db, Q_PERM, "group %s: %s; who makes the file must be in it, or root", c->group, strerror(errno));
	if (fchmod(fd, c->mode != 0 ? c->mode : 0600) == -1)
		return db_fail(db, Q_CREATE, "%s: mode: %s", db->path, strerror(errno));
	return Q_OK;
}

/*
 * Close the only connection to a file whose log nobody will find.  That is to copy the log into the file and remove it; if it cannot,
 * SQLite does not say so, nor why, and the log stays.
 */
static void
close_whole(struct db *db, sqlite3 *conn, const char *path, int status)
{
	char name[PATH_MAX];
	struct stat st;
	int rc = sqlite3_close(conn);

	if (rc == SQLITE_OK && (snprintf(name, sizeof name, "%s-wal", path) >= PATH_MAX || lstat(name, &st) == 0 || errno != ENOENT))
		rc = SQLITE_IOERR;
	if (rc != SQLITE_OK)
		db_fail(db, status, "%s: its log cannot be copied in: out of memory, or see dmesg and the disk", path);
}

static int
fill(struct db *db, const struct db_create *c, const char *final)
{
	char value[16];
	int rc;

	if (exec_sql(db, db->a, "PRAGMA page_size=4096; PRAGMA application_id=0x71756575") != Q_OK ||
	    exec_sql(db, db->a, "PRAGMA user_version=3") != Q_OK)	/* = DB_SCHEMA */
		return db->status;
	if ((rc = one_text(db->a, "PRAGMA journal_mode=WAL", value, sizeof value)) != SQLITE_OK)
		return fail_sqlite(db, rc);
	if (strcmp(value, "wal") != 0)
		return db_fail(db, Q_CREATE, "%s: WAL mode is not to be had here; choose a folder on a local disk", final);
	return tables(db, c);
}

/* The complete file under a temporary name. */
static int
build(struct db *db, const char *temp, const struct db_create *c)
{
	char *final = db->path;
	int fd, rc;

	fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd == -1)
		return cannot_make(db, temp);
	rc = owner_and_mode(db, fd, c);
	close(fd);
	if (rc != Q_OK)
		return rc;
	/* Once to write it, once to see what came of it: SQLite takes some failures on the way lightly. */
	for (int pass = 0; pass < 2 && db->status == Q_OK; pass++) {
		db->path = (char *)temp;	/* for connection and messages */
		if (connect_sql(db, &db->a, SQLITE_OPEN_READWRITE) == Q_OK && (pass == 0 ? fill(db, c, final) : check_identity(db)) == Q_OK)
			sqlite3_db_config(db->a, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);	/* nobody else knows the name */
		close_whole(db, db->a, temp, Q_CREATE);
		db->a = NULL;
		db->path = final;
		if (pass == 1 && db->status == Q_CONFIG) {
			db_clear(db);
			db_fail(db, Q_CREATE, "%s: what was written is not what can be read; see dmesg and the disk", final);
		}
	}
	return db->status != Q_OK ? db->status : sync_path(db, temp, Q_IO);
}

/* Never over an existing file.  Q_OK, Q_NO: there is one now. */
static int
publish(struct db *db, const char *temp, const char *to)
{
	char folder[PATH_MAX];

#ifdef RENAME_NOREPLACE
	if (renameat2(AT_FDCWD, temp, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return folder_of(db, to, folder) != Q_OK ? db->status : sync_path(db, folder, Q_UNKNOWN);
	if (errno == EEXIST)
		return Q_NO;
#endif
	if (link(temp, to) == -1)
		return errno == EEXIST ? Q_NO : db_fail(db, Q_CREATE, "%s: %s", to, strerror(errno));
	unlink(temp);
	return folder_of(db, to, folder) != Q_OK ? db->status : sync_path(db, folder, Q_UNKNOWN);
}

/* The default place may not exist yet: its folders are made, private; others are not. */
static int
make_folders(struct db *db)
{
	char folder[PATH_MAX], *p;

	for (p = strchr(db->path + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(db->path, 0700) == 0 && folder_of(db, db->path, folder) == Q_OK)
			sync_path(db, folder, Q_UNKNOWN);
		else if (errno != EEXIST)
			cannot_make(db, db->path);
		*p = '/';
	}
	return db->status;
}

/* A creation by link(2) that died between link and unlink left two names: finish it. */
static void
finish_link(const char *to, const char *temp)
{
	struct stat a, b;

	if (lstat(to, &a) == 0 && lstat(temp, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev)
		unlink(temp);
}

static void
clear(const char *temp)
{
	static const char *const SIDE[] = { "", "-journal", "-wal", "-shm" };
	char name[PATH_MAX];

	for (size_t i = 0; i < sizeof SIDE / sizeof *SIDE; i++)
		if (snprintf(name, sizeof name, "%s%s", temp, SIDE[i]) < PATH_MAX)
			unlink(name);
}

int
db_create(struct db **out, const struct db_create *c)
{
	char temp[PATH_MAX], folder[PATH_MAX];
	const char *fs, *given = getenv("Q_DB");
	struct stat st;
	struct db *db;
	int lock, status = handle_new(out, c->path, DB_ONCE);

	db = *out;
	if (status != Q_OK)
		return status;
	db->upgrading = c->upgrade;
	if (c->into)
		return create_into(db, c);
	if (c->upgrade && lstat(db->path, &st) == -1 && check_file(db) != Q_OK)	/* a mistyped name is no new queue */
		return db->status;
	if (c->path == NULL && (given == NULL || *given == '\0') && make_folders(db) != Q_OK)
		return db->status;
	if (folder_of(db, db->path, folder) != Q_OK)
		return db->status;
	if ((fs = remote_fs(folder)) != NULL)
		return db_fail(db, Q_CONFIG, "%s: on %s, where SQLite's log is not safe; choose a local disk", db->path, fs);
	if (snprintf(temp, sizeof temp, "%s-qinit", db->path) >= (int)sizeof temp - 10)
		return db_fail(db, Q_CREATE, "%s: name too long", db->path);
	/*
	 * One temporary name, and creators take turns on the folder, so that a dead creator's
	 * remains are known for what they are and cleared by the next.
	 */
	if ((lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) == -1)
		return cannot_make(db, folder);
	db->deadline = when_elapsed() + db->busy_ms;
	while (flock(lock, LOCK_EX | LOCK_NB) == -1) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return cannot_make(db, folder);
		if (when_elapsed() >= db->deadline)
			return db_fail(db, Q_TEMP, "%s: locked by another program (flock); try again later", folder);
		nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
	}
	finish_link(db->path, temp);
	status = Q_NO;
	if (lstat(db->path, &st) == -1) {
		if (errno != ENOENT)
			cannot_make(db, db->path);
		else if (missing(db) == Q_NOINPUT) {
			db_clear(db);
			configure();
			clear(temp);
			if (build(db, temp, c) == Q_OK)
				status = publish(db, temp, db->path);
			if (status != Q_OK)
				clear(temp);
		}
	}
	close(lock);
	if (db->status != Q_OK)
		return db->status;
	if (check_file(db) != Q_OK || open_checked(db) != Q_OK || (c->upgrade && upgrade(db) != Q_OK) ||
	    (c->outbox && outbox(db) != Q_OK))
		return db->status;
	reserve_make(db);
	return db_sync(db);		/* the folder, too: whoever published the file may have been killed before that */
}

/* ---- a copy (qbackup) ---- */

static char unfinished[4][PATH_MAX];	/* the names of a copy that is being made */

void
db_backup_drop(void)
{
	for (size_t i = 0; i < sizeof unfinished / sizeof *unfinished; i++)
		if (unfinished[i][0] != '\0')
			unlink(unfinished[i]);
}

/* The temporary file, empty and nobody else's: by its lock the work of a live backup is told from the remains of a dead one. */
static int
backup_temp(struct db *db, const char *temp)
{
	struct stat st, there;
	int fd = open(temp, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

	if (fd == -1) {
		db_fail(db, cannot(errno), "%s: %s; no backup was made; choose a folder that you may write to", temp, strerror(errno));
		return -1;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) == -1 && errno != EWOULDBLOCK)
		db_fail(db, Q_CREATE, "%s: lock: %s", temp, strerror(errno));
	else if (fstat(fd, &st) == -1 || lstat(temp, &there) == -1 || st.st_ino != there.st_ino || st.st_dev != there.st_dev ||
	    flock(fd, LOCK_EX | LOCK_NB) == -1)
		db_fail(db, Q_TEMP, "%s: another backup is being written there; wait for its end", temp);
	else if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_uid != geteuid())
		db_fail(db, Q_CREATE, "%s: in the way, and not what a backup of yours left; next: move it away", temp);
	else if (fchmod(fd, 0600) == -1 || ftruncate(fd, 0) == -1)
		db_fail(db, Q_CREATE, "%s: %s", temp, strerror(errno));
	else
		return fd;
	close(fd);
	return -1;
}

static int
backup_failed(struct db *db, const char *to, int rc)
{
	if ((rc & 0xff) == SQLITE_FULL)
		return db_fail(db, Q_IO, "%s: no space left; no backup was made; make room or choose another disk", to);
	if ((rc & 0xff) == SQLITE_IOERR)
		return db_fail(db, Q_IO, "%s: %s (%d), there or in %s; no backup was made; see dmesg and the disks", to, sqlite3_errstr(rc),
		    rc, db->path);
	if ((rc & 0xff) == SQLITE_ERROR && strstr(sqlite3_errmsg(db->a), "output file") != NULL)	/* which is there, since we made it, and empty: its size was not to be had */
		return db_fail(db, Q_IO, "%s: the copy cannot be begun; no backup was made; see dmesg and the disks", to);
	if ((rc & 0xff) == SQLITE_ERROR)	/* collations and functions of an application */
		return db_fail(db, Q_CONFIG, "%s: %s, which only the application of the file has; no backup was made; next: sqlite3 '%s' '.backup COPY'",
		    db->path, sqlite3_errmsg(db->a), db->path);
	return fail_sqlite(db, rc);
}

/* Would the copy be used as something beside the file? */
static bool
backup_beside(const struct db *db, const char *to)
{
	static const char *const SIDE[] = { "-journal", "-wal", "-shm", "-lock", "-reserve" };
	size_t len = strlen(db->path);

	for (size_t i = 0; i < sizeof SIDE / sizeof *SIDE; i++)
		if (strncmp(to, db->path, len) == 0 && strcmp(to + len, SIDE[i]) == 0)
			return true;
	return false;
}

static int
backup_room(struct db *db, const char *folder, const char *to)
{
	int64_t low = 0, left;
	struct statfs fs;
	struct stat st;
	char pages[32], unused[32], size[32];
	int64_t need;
	int rc = one_text(db->a, "PRAGMA page_count", pages, sizeof pages);

	if (rc == SQLITE_OK)
		rc = one_text(db->a, "PRAGMA freelist_count", unused, sizeof unused);
	if (rc == SQLITE_OK)
		rc = one_text(db->a, "PRAGMA page_size", size, sizeof size);
	if (rc != SQLITE_OK)
		return fail_sqlite(db, rc);
	need = (atoll(pages) - atoll(unused)) * atoll(size);
	if (statfs(folder, &fs) == -1 || stat(folder, &st) == -1)
		return cannot_make(db, folder);
	left = (int64_t)fs.f_bavail * fs.f_bsize;
	if (st.st_dev == db->dev)	/* a backup must not stop the adds of the queue itself */
		db_room(db, &low);
	if (left - low >= need)
		return Q_OK;
	return db_fail(db, Q_IO, "%s: takes %lld KiB, and only %lld KiB may be used there; no backup was made; make room or choose another disk",
	    to, (long long)need / 1024, (long long)(left > low ? left - low : 0) / 1024);
}

/* Of a line of integrity_check: why it could not look, which it says only there; damage is what it looks for. */
static int
unlooked(const char *line)
{
	const char *code = strstr(line, "error code");
	int rc = code != NULL ? atoi(code + strlen("error code=")) : SQLITE_OK;

	return (rc & 0xff) == SQLITE_CORRUPT ? SQLITE_OK : rc;
}

static int
check_text(sqlite3 *conn, const char *sql, char *buf, size_t size)
{
	int rc = one_text(conn, sql, buf, size);

	return rc == SQLITE_OK ? unlooked(buf) : rc;
}

/* One snapshot, read while others write. */
static int
backup_copy(struct db *db, const char *temp, const char *to)
{
	sqlite3_stmt *st = NULL;
	char got[256];
	int rc = check_text(db->a, "PRAGMA quick_check(1)", got, sizeof got);	/* for VACUUM copies a lost page as zeros */

	if (rc != SQLITE_OK)
		return backup_failed(db, to, rc);
	if (strcmp(got, "ok") != 0)
		return db_fail(db, Q_IO, "%s: the file is damaged; no backup was made; next: qcheck", db->path);
	rc = sqlite3_prepare_v2(db->a, "VACUUM INTO ?1", -1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(st, 1, temp, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		sqlite3_step(st);
	rc = rc != SQLITE_OK ? rc : sqlite3_finalize(st);
	return rc == SQLITE_OK ? Q_OK : backup_failed(db, to, rc);
}

/* Is the copy whole, and ready to take the place of the file?  quiet: nobody has written since before it was made. */
static int
backup_verify(struct db *db, const char *temp, const char *to, int64_t newest, bool *quiet, int64_t version)
{
	static const char *const SAME[] = { VERSION, HOLDS };
	char *path = db->path, text[2][256], got[256] = "";
	int rc = SQLITE_OK;

	for (int i = 0; i < 2 && rc == SQLITE_OK; i++)
		if (i == 0 || *quiet)
			rc = one_text(db->a, SAME[i], text[i], sizeof *text);
	if (rc != SQLITE_OK)
		return fail_sqlite(db, rc);
	*quiet = *quiet && db_data_version(db) == version;
	db->path = (char *)temp;	/* for connection and messages */
	/* Locked as a whole it needs no shared memory, which not every place for backups has. */
	if (db->status == Q_OK && connect_sql(db, &db->b, SQLITE_OPEN_READWRITE) == Q_OK &&
	    exec_sql(db, db->b, "PRAGMA locking_mode=EXCLUSIVE") == Q_OK) {
		sqlite3_db_config(db->b, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);	/* nobody else knows the name */
		rc = one_text(db->b, "PRAGMA journal_mode=WAL", got, sizeof got);
		if (rc == SQLITE_OK && strcmp(got, "wal") == 0 && (rc = check_text(db->b, "PRAGMA integrity_check", got, sizeof got)) == SQLITE_OK &&
		    strcmp(got, "ok") == 0 && (rc = one_text(db->b, NEWEST, got, sizeof got)) == SQLITE_OK && atoll(got) >= newest) {
			got[0] = '\0';
			for (int i = 0; i < (*quiet ? 2 : 1) && rc == SQLITE_OK && got[0] == '\0'; i++)
				if ((rc = one_text(db->b, SAME[i], got, sizeof got)) == SQLITE_OK && strcmp(got, text[i]) == 0)
					got[0] = '\0';
		}
		if (rc != SQLITE_OK)
			backup_failed(db, to, rc);
		else if (got[0] != '\0')
			db_fail(db, Q_IO, "%s: the copy is not what it should be (%s); no backup was made; next: qcheck", to, got);
	}
	close_whole(db, db->b, temp, Q_IO);
	db->b = NULL;
	db->path = path;
	return db->status;
}

int
db_backup(struct db **out, const char *path, const char *given)
{
	static const char *const SIDE[] = { "", "-journal", "-wal", "-shm" };
	char folder[PATH_MAX], newest[32], *to;
	struct stat st;
	struct db *db;
	int status = handle_new(out, path, DB_READ), fd, rc;
	int64_t version;
	bool quiet;

	db = *out;
	if (status != Q_OK)
		return status;
	db->upgrading = true;		/* before an upgrade is the best time for a backup */
	if (check_file(db) != Q_OK || open_checked(db) != Q_OK)
		return db->status;
	if ((to = absolute(given)) == NULL)
		return db_fail(db, Q_TEMP, "out of memory");
	if (*given == '\0')
		return db_fail(db, Q_CREATE, "the name of the backup is empty");
	if (backup_beside(db, to))
		return db_fail(db, Q_CREATE, "%s: that name belongs to the queue file; choose another name", to);
	if (strlen(strrchr(to, '/') != NULL ? strrchr(to, '/') : to) > NAME_MAX - strlen("-qbackup-journal"))
		return db_fail(db, Q_CREATE, "the name of the backup is too long: %s", to);
	for (int i = 0; i < 4; i++) {
		if (snprintf(unfinished[i], PATH_MAX, "%s%s", to, SIDE[i]) > PATH_MAX - 32)
			db_fail(db, Q_CREATE, "the name of the backup is too long: %s", to);
		else if (lstat(unfinished[i], &st) == 0)	/* a log would be replayed into what is put there */
			db_fail(db, Q_CREATE, "%s: there is something of that name; a backup replaces nothing; choose another name", unfinished[i]);
		unfinished[i][0] = '\0';
	}
	if (db->status != Q_OK || folder_of(db, to, folder) != Q_OK || backup_room(db, folder, to) != Q_OK)
		return db->status;
	snprintf(folder, sizeof folder, "%s-qbackup", to);
	finish_link(to, folder);
	if ((fd = backup_temp(db, folder)) == -1)
		return db->status;
	for (int i = 3; i >= 0; i--) {
		snprintf(unfinished[i], PATH_MAX, "%s-qbackup%s", to, SIDE[i]);
		if (i > 0)
			unlink(unfinished[i]);
	}
	version = db_data_version(db);
	rc = one_text(db->a, NEWEST, newest, sizeof newest);
	if (rc != SQLITE_OK)
		fail_sqlite(db, rc);
	else if (version != -1 && backup_copy(db, unfinished[0], to) == Q_OK) {
		quiet = db_data_version(db) == version;
		if (backup_verify(db, unfinished[0], to, atoll(newest), &quiet, version) == Q_OK && db_sync(db) == Q_OK && sync_path(db, unfinished[0], Q_IO) == Q_OK &&
		    publish(db, unfinished[0], to) == Q_NO)
			db_fail(db, Q_CREATE, "%s: there is something of that name now; a backup replaces nothing; choose another name", to);
	}
	db_backup_drop();
	close(fd);
	free(to);
	return db->status;
}

/* ---- what is wrong with the schema and its plans (qcheck) ---- */

/* Without comments, and one blank for many: an older file has the same tables with other words beside them. */
static void
squeeze(char *s)
{
	char *to = s;

	for (; *s != '\0'; s++) {
		if (s[0] == '-' && s[1] == '-')
			s += strcspn(s, "\n") - 1;
		else if (strchr(" \t\n", *s) == NULL)
			*to++ = *s;
		else if (to[-1] != ' ')
			*to++ = ' ';
	}
	*to = '\0';
}

bool
db_looked(struct db *db, const char *line)
{
	return (unlooked(line) & 0xff) != SQLITE_NOMEM || fail_sqlite(db, SQLITE_NOMEM) == Q_OK;
}

static const char OBJECTS[] =
	"SELECT type, name, sql FROM sqlite_schema WHERE tbl_name GLOB 'q_*' AND sql IS NOT NULL ORDER BY 1, 2";
static const char OBJECT[] = "SELECT sql FROM sqlite_schema WHERE type = ?1 AND name = ?2";

/* Whatever `from` has and `to` has not, or (changed) not as it is there. */
static int
compare(sqlite3 *from, sqlite3 *to, const char *missing, const char *changed, void (*each)(const char *, void *), void *arg)
{
	sqlite3_stmt *all = NULL, *one = NULL;
	char what[256], *a, *b;
	int rc = sqlite3_prepare_v2(from, OBJECTS, -1, &all, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(to, OBJECT, -1, &one, NULL);
	while (rc == SQLITE_OK && (rc = sqlite3_step(all)) == SQLITE_ROW) {
		if (sqlite3_bind_value(one, 1, sqlite3_column_value(all, 0)) == SQLITE_OK &&
		    sqlite3_bind_value(one, 2, sqlite3_column_value(all, 1)) == SQLITE_OK)
			rc = sqlite3_step(one);
		else
			rc = SQLITE_NOMEM;
		a = strdup((const char *)sqlite3_column_text(all, 2));
		b = rc == SQLITE_ROW ? strdup((const char *)sqlite3_column_text(one, 0)) : NULL;
		if (a == NULL || (rc == SQLITE_ROW && b == NULL)) {	/* else it would be a finding */
			rc = SQLITE_NOMEM;
		} else if (rc == SQLITE_ROW) {
			squeeze(a);
			squeeze(b);
		}
		snprintf(what, sizeof what, "%s %s %s", (const char *)sqlite3_column_text(all, 0), (const char *)sqlite3_column_text(all, 1),
		    rc == SQLITE_DONE ? missing : changed);
		if (rc == SQLITE_DONE || (rc == SQLITE_ROW && changed != NULL && strcmp(a, b) != 0))
			each(what, arg);
		free(a);
		free(b);
		rc = rc == SQLITE_DONE || rc == SQLITE_ROW ? sqlite3_reset(one) : rc;
	}
	sqlite3_finalize(one);
	sqlite3_finalize(all);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int
db_faults(struct db *db, void (*each)(const char *, void *), void *arg)
{
	sqlite3 *ours = NULL;
	char found[32];
	int rc = sqlite3_open(":memory:", &ours);

	if (rc == SQLITE_OK)
		rc = sqlite3_exec(ours, db_schema, NULL, NULL, NULL);
	if (rc == SQLITE_OK && (rc = one_text(db->a, HAS_OUTBOX, found, sizeof found)) == SQLITE_OK && found[0] != '\0')
		rc = sqlite3_exec(ours, db_outbox, NULL, NULL, NULL);
	for (size_t i = 0; i < sizeof TABLES / sizeof *TABLES && rc == SQLITE_OK; i++)
		if ((rc = one_text(db->a, TABLES[i].has, found, sizeof found)) == SQLITE_OK && found[0] != '\0')
			rc = sqlite3_exec(ours, TABLES[i].sql, NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = compare(ours, db->a, "is missing", "is not as q made it", each, arg);
	if (rc == SQLITE_OK)
		rc = compare(db->a, ours, "is not of q", NULL, each, arg);
	sqlite3_close(ours);
	return rc == SQLITE_OK ? Q_OK : fail_sqlite(db, rc);
}

int
db_seeks(struct db *db, const char *sql, char *why, size_t size)
{
	static const char *const SLOW[] = { "SCAN", "TEMP B-TREE", "AUTOMATIC" };
	sqlite3_stmt *st = NULL;
	const char *detail;
	char *text = NULL;
	int rc = asprintf(&text, "EXPLAIN QUERY PLAN %s", sql) == -1 ? SQLITE_NOMEM : sqlite3_prepare_v2(db->a, text, -1, &st, NULL);

	why[0] = '\0';
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		detail = (const char *)sqlite3_column_text(st, 3);
		for (size_t i = 0; i < sizeof SLOW / sizeof *SLOW; i++)
			if (detail != NULL && why[0] == '\0' && strstr(detail, SLOW[i]) != NULL)
				snprintf(why, size, "%s", detail);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	free(text);
	if (rc != SQLITE_DONE)
		return fail_sqlite(db, rc);
	return why[0] == '\0' ? Q_OK : Q_NO;
}
