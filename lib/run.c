/* run.c - run one command under something that is leased; see run.h */

#include <errno.h>
#include <string.h>

#include "run.h"

enum {
	KILL_MS = 5000,			/* between TERM and KILL */
	GIVEUP_MS = 4 * KILL_MS,	/* after a signal: then what does not end is left behind */
	GRACE_MS = 10 * 1000		/* before the end of a lease: TERM, and KILL after half of it; of short leases a third */
};

static struct run *running;

static void
stop(void)
{
	minder_stop(&running->minder);
}

void
run_start(struct run *r)
{
	r->spec.kill_ms = KILL_MS;
	r->spec.pass = true;
	if (minder_start(&r->minder, &r->spec, NULL, 0) == -1)	/* a process that has the file open must not fork */
		prog_die(Q_TEMP, "cannot start a process: %s; see ulimit -u", strerror(errno));
	running = r;
	prog_last = stop;
	prog_catch();
}

/* The lease lasts, from `at` on. */
static void
keep(struct run *r, int64_t at)
{
	int64_t grace = r->lease_ms / 3 < GRACE_MS ? r->lease_ms / 3 : GRACE_MS;

	r->renew_at = at + r->lease_ms / 3;
	if (r->strict)
		minder_keep(&r->minder, at + r->lease_ms - grace, at + r->lease_ms - grace / 2);
}

void
run_begin(struct run *r, int64_t taken_at, const char *env, size_t len)
{
	keep(r, taken_at);
	minder_run(&r->minder, env, len, "", 0);	/* if the minder is gone, its descriptor will say so */
}

/* A busy or ill file is tried again: it is ours until somebody takes it, or the minder ends the command. */
static void
renew(struct run *r, struct db *db)
{
	int64_t at = when_elapsed();
	int rc = db_begin(db, false);

	if (rc == Q_OK && (rc = r->renew(db, r->arg)) == Q_OK)
		rc = db_commit(db);
	if (rc != Q_OK && rc != Q_LOST && rc != Q_NO && !r->ill)
		prog_warn("%s: %s; still trying", r->what, db_message(db));
	r->ill = rc != Q_OK;
	db_rollback(db);
	if (rc == Q_OK) {
		keep(r, at);
	} else if (rc == Q_LOST || rc == Q_NO) {
		r->renew_at = INT64_MAX;
		r->lost = rc == Q_LOST;
	} else {
		r->renew_at = when_elapsed() + RUN_RETRY_MS;
	}
	if (r->lost)
		minder_kill(&r->minder, SIGKILL);
}

void
run_watch(struct run *r, struct db *db)
{
	struct pollfd p = { r->minder.fd, POLLIN, 0 };
	int64_t now, at, giveup_at = INT64_MAX;

	while ((now = when_elapsed()) < giveup_at) {
		at = r->renew_at < giveup_at ? r->renew_at : giveup_at;
		if (prog_poll(&p, 1, at == INT64_MAX ? -1 : at > now ? at - now : 0) > 0)
			break;
		if (prog_signal != 0) {
			minder_kill(&r->minder, r->caught == 0 ? SIGTERM : SIGKILL);
			r->caught = r->caught == 0 ? prog_signal : r->caught;
			prog_signal = 0;
			giveup_at = when_elapsed() + GIVEUP_MS;
		}
		if (when_elapsed() >= r->renew_at)
			renew(r, db);
	}
	if (now >= giveup_at)		/* it does not end */
		stop();
	minder_end(&r->minder, &r->end);
	if (!r->again)
		stop();
}

int
run_settle(struct db *db, int64_t ms, int (*fn)(struct db *, void *), void *arg)
{
	int64_t until = when_elapsed() + ms;
	int rc;

	for (;;) {
		if ((rc = db_begin(db, false)) == Q_OK && (rc = fn(db, arg)) == Q_OK)
			rc = db_commit(db);
		db_rollback(db);
		if (rc == Q_OK || rc == Q_LOST || when_elapsed() >= until || prog_signal != 0)
			return rc;
		prog_poll(NULL, 0, RUN_RETRY_MS);
	}
}

int
run_exit(const struct run *r)
{
	const struct child_end *end = &r->end;
	int status = child_exit(end);
	char why[CHILD_HOW_MAX];

	if (r->caught != 0)
		prog_killed(r->caught);
	if (end->exec_errno != 0 || end->gone || end->timed_out || (status == 0 && (end->lost[0] != 0 || end->lost[1] != 0)))
		prog_warn("%s: %s", end->exec_errno != 0 ? r->spec.argv[0] : r->what, child_how(why, end, &r->spec));
	if (status != 0)
		return status;
	return end->timed_out ? 128 + SIGTERM : end->lost[0] != 0 || end->lost[1] != 0 ? Q_IO : Q_OK;
}
