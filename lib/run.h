/*
 * run.h - run one command under something that is leased: a claim, a lock, a place.
 *
 * What qjob, qlock and qrate share.  Like prog.h these functions print and exit.
 */
#ifndef RUN_H
#define RUN_H

#include "child.h"
#include "prog.h"

struct run {
	const char *what;	/* for messages: the name of what is leased */
	struct child_spec spec;	/* argv, and a limit; run_start() sets the rest */
	int64_t lease_ms;	/* renewed at a third of it */
	bool strict;		/* if it cannot be renewed, the command is ended before the lease is */
	/*
	 * Renew, inside a transaction.  Q_OK; Q_LOST: it is somebody else's, the command is killed; Q_NO: there is nothing to renew
	 * any more, the command runs on; else it is tried again soon.
	 */
	int (*renew)(struct db *, void *arg);
	void *arg;
	bool again;		/* another command follows this one */

	struct child_end end;	/* set by run_watch() */
	int caught;		/* the first signal that ended the command, or 0 */
	bool lost;		/* renew() said Q_LOST */

	struct minder minder;	/* the rest is its own */
	bool ill;
	int64_t renew_at;
};

enum {
	RUN_RETRY_MS = 200,		/* after a busy or ill file */
	RUN_SETTLE_MS = 10 * 1000	/* how long the end is tried to be written down */
};

/* Start its minder and catch signals, before the file is opened.  One run a program. */
void run_start(struct run *);

/* Begin the command; env as in minder_run().  taken_at: when_elapsed() before the lease began. */
void run_begin(struct run *, int64_t taken_at, const char *env, size_t len);

/* Renew, pass signals on (as TERM, a second one as KILL), until nothing of the command is left. */
void run_watch(struct run *, struct db *);

/* Run fn in a transaction; if the file is busy or ill, again and again for so long, or until a signal.  What it said. */
int run_settle(struct db *, int64_t ms, int (*fn)(struct db *, void *), void *arg);

/*
 * Its exit status, or 74 if it was 0 and the output is not complete; says why the command could not be run, and whatever else
 * nobody would see.  A caught signal ends the program here.
 */
int run_exit(const struct run *);

#endif
