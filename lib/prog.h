/*
 * prog.h - what every main() does the same way: descriptors, options, help, messages,
 * the exit.  Unlike libq these functions print and exit.
 */
#ifndef PROG_H
#define PROG_H

#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "q.h"

struct prog {
	const char *name;	/* "qadd" */
	const char *help;	/* starts with "usage: ", ends with "Exit: ", fits a screen; what all share is added */
	const char *shorts;	/* getopt string, "+" first if a command follows; without hVd */
	const struct option *longs;	/* without help, version, database */
	bool quiet;
	bool stays;		/* it lives on when memory runs out in the midst of JSON; others end there (75), before that looks like bad JSON */
	const char *database;	/* -d */
};
extern struct prog *prog;	/* the running program, set by prog_start */

/* First act of main: descriptors 0-2 plugged, SIGPIPE and SIGXFSZ ignored (read-only programs: SIGPIPE default). */
void prog_start(struct prog *, bool changes_file);

/* Next option as getopt_long(3) gives it, -1 at the end.  -h and -V act and exit, -d is kept.
 * Unknown, abbreviated and argument-less options exit 64 with one line. */
int prog_option(int argc, char *argv[]);

/* "prog: what: why" on stderr, one line, control bytes escaped. */
void prog_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void prog_die(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void prog_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));	/* 64, names --help */

/* Open the queue file of -d or die. */
struct db *prog_open(enum db_mode);
/* Die with the handle's message unless status is Q_OK. */
void prog_check(struct db *, int status);
/* Queue names of the command line, at least `least` of them, or die. */
void prog_queues(char *const *queues, int n, int least);
/*
 * The main() of qdone, qfail and qrenew: the claims are the operands, or with "-" the lines of standard input
 * (words or job records; a malformed one is named, the rest is done).  each() runs for all in one
 * transaction; a Q_LOST of it is named and the others go on.  Exits with the worst status.
 */
_Noreturn void prog_claims(int n, char *const *operands,
    int (*each)(struct db *, const struct claim *, void *), void *arg);
/*
 * Ids of jobs from the operands, or with "-" from the lines of standard input (ids or job records); each once, in the order
 * given.  A malformed one is named and makes *worst Q_DATA; the caller frees.
 */
size_t prog_ids(int n, char *const *operands, int64_t **ids, int *worst);
/*
 * Runs each() for i from 0 to n-1, in transactions of at most batch; adds as in db_begin().  When one is on disk, ids[i] is printed
 * (not with -q, nor if ids is NULL) for what was Q_OK, and what was Q_NO, Q_NOINPUT or Q_LOST is named; other failures of
 * each() undo the transaction and end the program, as does output that is lost.  Returns the largest of the statuses.
 */
enum { PROG_SAME = -1 };	/* each(): it is so already, print nothing */
int prog_each(struct db *, size_t n, size_t batch, bool adds, int (*each)(struct db *, size_t i, void *), void *arg, const int64_t *ids);
/* An each() that settles; arg is a struct job_settle. */
int prog_settle(struct db *, const struct claim *, void *how);
/* Option values, or die with 64 naming the option. */
int64_t prog_int(const char *option, const char *value, int64_t lo, int64_t hi);
int64_t prog_duration(const char *option, const char *value);
int64_t prog_now(void);
/* How wide a table on standard output may be: $COLUMNS, what the terminal says, or 80. */
int prog_columns(void);
/* A type, key or entity to look for, or die with 65: an unset variable must not look like "nothing there". */
const char *prog_name(const char *what, const char *value);

/*
 * The filter of qls and qreplay.  PROG_FILTERS stands in their options, "t:k:e:" in their letters, and what
 * prog_option() gives goes to prog_filter() first: true if it was one of these.
 */
enum { PROG_STATE = 512, PROG_OLDER, PROG_NEWER, PROG_REASON };
#define PROG_FILTERS \
	{ "state", 1, NULL, PROG_STATE }, { "type", 1, NULL, 't' }, { "key", 1, NULL, 'k' }, { "entity", 1, NULL, 'e' }, \
	{ "older-than", 1, NULL, PROG_OLDER }, { "newer-than", 1, NULL, PROG_NEWER }, { "reason", 1, NULL, PROG_REASON }
bool prog_filter(int option, struct job_filter *);

/*
 * From now on INT, TERM and HUP do not kill: they are held back, arrive only in prog_poll(), and set prog_signal, so that
 * none is missed between a look and a wait.  One that was ignored at the start stays ignored.
 */
extern volatile sig_atomic_t prog_signal;
void prog_catch(void);
/* From now on they kill again, also one that has come since: all that is left to do is output, which nobody may be reading. */
void prog_uncatch(void);
/* poll(2), at most ms (-1: no limit), during which signals arrive. */
int prog_poll(struct pollfd *, nfds_t, int64_t ms);
/* Wait for a commit that is not in `version` (db_data_version()), a signal, or at most ms. */
void prog_nap(struct db *, int64_t version, int64_t ms);

/* End as a signal that was caught would have it: by SIGINT, so that a shell sees it and stops, too; else 128 + sig. */
_Noreturn void prog_killed(int sig);

/* "host:pid", who claims. */
const char *prog_worker(void);

/* If not NULL, called when the program ends by one of these functions: what it started is not to outlive it. */
extern void (*prog_last)(void);

/* Last act: stdout flushed, closed and checked (74 if lost, unless status is already worse), then _exit. */
_Noreturn void prog_exit(int status);

#endif
