/*
 * db.h - the only door to a database.
 *
 * db_sqlite.c is the driver behind it; no other file knows SQLite.  Statements are
 * constants with named parameters (":id"), prepared once per handle and found again
 * by their address.  Errors stick: after a failed prepare or bind, db_step() says -1,
 * and db_status()/db_message() tell the first reason, so callers check once, at the end.
 */
#ifndef DB_H
#define DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;
struct stmt;

enum db_mode {
	DB_READ,		/* queries; works without write permission */
	DB_ONCE,		/* a program that writes once or twice and leaves */
	DB_STAY			/* a long-lived writer: keeps the log file's blocks */
};

#define DB_SCHEMA 3		/* version of lib/schema.sql */

/*
 * Open an existing queue file.  path NULL: $Q_DB, else $XDG_STATE_HOME/q/q.db, else
 * ~/.local/state/q/q.db.  *db is set even on failure (for db_message()), unless memory ran out.
 * Q_NOINPUT, Q_CONFIG, Q_PERM, Q_IO, Q_TEMP.  Never creates a queue.
 */
int db_open(struct db **, const char *path, enum db_mode);

/*
 * Close.  Leaving without it is safe, and quicker: one-shot programs just exit.
 */
void db_close(struct db *);

/* The absolute name of the file, borrowed. */
const char *db_path(const struct db *);

/* What a path option of NULL means; NULL with *why if there is neither Q_DB nor HOME.  The caller frees. */
char *db_default_path(const char **why);

/*
 * A write transaction: waits for its turn (turnstile, then the file's own lock, 10 s in all or
 * Q_BUSY_TIMEOUT), runs a due checkpoint first.  Q_TEMP: busy, nothing happened.
 * `adds`: refused with Q_IO when the disk is below the floor that lets running work settle.
 */
int db_begin(struct db *, bool adds);

/* The number of the transaction, 0 outside: what was read under the same number still holds. */
int64_t db_turn(const struct db *);

/* Q_OK: on disk.  Q_UNKNOWN: may have happened.  Else nothing happened. */
int db_commit(struct db *);
/*
 * Before somebody is told by reading alone that a thing was done before: it is on disk, too.  db_commit() does it if nothing was
 * written.  Costs a sync once a handle.  Q_UNKNOWN.
 */
int db_sync(struct db *);
void db_rollback(struct db *);

struct stmt *db_prepare(struct db *, const char *sql);	/* reset and without bindings */
void db_int(struct stmt *, const char *name, int64_t);
void db_opt(struct stmt *, const char *name, int64_t);	/* -1 binds NULL */
void db_text(struct stmt *, const char *name, const char *);	/* NULL binds NULL; the text must live until db_step() */
void db_blob(struct stmt *, const char *name, const void *, size_t);	/* NULL binds NULL */

/* 1: a row, 0: the end (and reset), -1: failed (see db_status). */
int db_step(struct stmt *);
/* Runs to the end; rows changed, or -1. */
int64_t db_run(struct stmt *);
/* The only column of the only row; -1 if there is none. */
int64_t db_only(struct stmt *);
/*
 * The only column of the first row, a name after `last` (:last; NULL: the statement has no such), for the caller to free.  NULL at
 * the end, or failed: Q_IO is a name with a NUL byte, after which the next could not be asked for.
 */
char *db_next(struct stmt *, const char *last);
void db_reset(struct stmt *);		/* a query that is left before its end */
int64_t db_last_id(struct db *);

int64_t db_col_int(struct stmt *, int);			/* NULL gives -1 */
const char *db_col_opt(struct stmt *, int);		/* borrowed until the next step; NULL gives NULL */
const char *db_col_text(struct stmt *, int);		/* likewise, of what is never NULL: else the file is damaged, and it gives "" */
const void *db_col_blob(struct stmt *, int, size_t *);	/* likewise; an empty blob is not NULL */

int db_status(const struct db *);	/* of the first failure since the last db_begin()/db_clear() */
const char *db_message(const struct db *);
int db_fail(struct db *, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));	/* notes it, returns status */
void db_clear(struct db *);
const char *db_note(const struct db *);	/* something worth telling once at the end, or "" */

/* A number that changes when another connection commits; -1 on failure. */
int64_t db_data_version(struct db *);
/* A descriptor that becomes readable after a commit by anybody (a hint; drain it with db_watch_drain), or -1. */
int db_watch(struct db *);
void db_watch_drain(struct db *);

/*
 * Create a complete queue file under a temporary name and publish it; an existing good
 * one is Q_OK (the reserve is made anew if it is gone).  mode 0: 0600; group NULL: the caller's.
 * into: add the tables to an existing application's file instead.  outbox: install the q_outbox view.
 * upgrade: an older file is brought to this schema.
 */
struct db_create { const char *path, *group; unsigned mode; bool into, outbox, upgrade; };
int db_create(struct db **, const struct db_create *);

/*
 * A copy of the file of `path` (as in db_open(), though its schema may be older) under the new name `to`, mode 0600: one snapshot,
 * while others write.  It has its name only when it is whole, verified and on disk.  Q_CREATE: also if there is a `to`.
 * db_backup_drop() removes what is unfinished; a signal handler may call it.
 */
int db_backup(struct db **, const char *path, const char *to);
void db_backup_drop(void);

/*
 * The tables of some programs (lib/poll.sql, hook.sql, ...), made at their first use in a transaction of its own: each table
 * costs every start a little, so files that need none have none.
 */
enum db_tables { FOR_QPOLL, FOR_QHOOK, FOR_QCRON, FOR_QONCE, FOR_QPURGE, FOR_QLATE };
int db_tables(struct db *, enum db_tables);
bool db_has(struct db *, enum db_tables);	/* by reading alone; false also if that failed */

/* Bytes: of the file, of its log, that are free on its disk for us, and of the disk.  Q_IO. */
struct db_size { int64_t file, log, free, disk; };
int db_sizes(struct db *, struct db_size *);

const char *db_version(void);		/* "SQLite 3.40.1" */
bool db_exposed(void);			/* ... which can lose commits if two connections checkpoint and write at once */

/* For qcheck.  Bytes that may be used on the disk of the file, and below how many adds are refused. */
int64_t db_room(const struct db *, int64_t *low);
enum { DB_RESERVE = 1 << 20, DB_LOG_LONG = 4000 * 4120 };	/* bytes of FILE-reserve; of a log that cannot be copied */
/* What of our tables, indexes and triggers is missing, changed or somebody else's. */
int db_faults(struct db *, void (*each)(const char *what, void *), void *);
/* Is this line of integrity_check about the file?  False: there was no memory to look at it, and the handle has failed. */
bool db_looked(struct db *, const char *line);
/* Does a statement find its rows by indexes alone in this file?  Q_NO: why. */
int db_seeks(struct db *, const char *sql, char *why, size_t);

#endif
