/* qclaim - take due jobs under a lease and print them */

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "prog.h"

static const char HELP[] =
"usage: qclaim [-hV] [-d FILE] [-c N] [-l LEASE] [-t TYPE] [--wait DUR] QUEUE...\n"
"Take due jobs and print each as a line of JSON; nothing due: no output, exit 0.\n"
"A claim that is not settled before its lease ends is given to the next claimer.\n"
"  set -e; while :; do job=$(qclaim mail); [ -n \"$job\" ] || break\n"
"      c=$(jq -r .claim <<<\"$job\")\n"
"      if work \"$job\"; then qdone \"$c\"; else qfail \"$c\"; fi; done\n"
"  qclaim -c 100 -l 10m mail >claims && work <claims && qdone - <claims\n"
"  -c, --count N      at most N jobs (default 1, at most 10000)\n"
"  -l, --lease LEASE  how long the claim holds (default 5m)\n"
"  -t, --type TYPE    only jobs of this type\n"
"  --wait DUR         if nothing is due, wait that long for something\n"
"Order: priority, due time, id.  Settle with qdone or qfail, extend with qrenew.\n"
"Exit: 0 claimed or nothing due, 74 output lost (claims released).\n";

enum { WAIT = 256, SLICE_MS = 1000 };
static const struct option LONGS[] = {
	{ "count", 1, NULL, 'c' }, { "lease", 1, NULL, 'l' }, { "type", 1, NULL, 't' }, { "wait", 1, NULL, WAIT },
	{ NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qclaim", .help = HELP, .shorts = "c:l:t:", .longs = LONGS };

static struct db *db;

static int
claim(struct job_want *w, struct claim *claims)
{
	struct job job;
	int n;

	do {
		prog_check(db, db_begin(db, false));
		job_claim(db, w, prog_now(), claims, &n);
		for (int i = 0; i < n && db_status(db) == Q_OK; i++)
			job_get(db, claims[i].id, &job);	/* what cannot be read, and all beside it, must not be claimed */
		if (db_status(db) != Q_OK)
			db_rollback(db);
		prog_check(db, db_status(db));
		prog_check(db, db_commit(db));
	} while (n == 0 && w->more);
	return n;
}

/* Until something may be claimable, at most until `end` of when_elapsed(). */
static void
wait_for(const struct job_want *w, int64_t end)
{
	struct pollfd watch = { .fd = db_watch(db), .events = POLLIN };
	int64_t version, now, next, left, slice, nap = SLICE_MS;

	if ((version = db_data_version(db)) == -1)
		prog_check(db, db_status(db));
	do {
		now = prog_now();
		prog_check(db, job_next(db, w, now, &next, NULL));
		left = end - when_elapsed();
		if (left <= 0 || next <= now || prog_signal != 0)
			return;
		slice = left < nap ? left : nap;
		if (next - now < slice)
			slice = next - now;
		/* The hint comes with a commit's first write, and so before it can be seen: look again soon. */
		nap = prog_poll(&watch, watch.fd != -1, slice) > 0 ? 1 : nap < SLICE_MS / 2 ? 2 * nap : SLICE_MS;
		db_watch_drain(db);
	} while (db_data_version(db) == version);
}

/*
 * All of it, unless a signal comes or nobody reads.  Signals come only while it waits, and what is
 * ready takes this much at once, so that none is missed and no write blocks for long.
 */
static bool
tell(const char *p, size_t left)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
	ssize_t n;

	while (left > 0) {
		if (prog_poll(&out, 1, -1) == -1 && prog_signal != 0)
			return false;
		when_nudge(100);	/* a terminal or a shared pipe may be ready for less than this */
		n = write(STDOUT_FILENO, p, left < PIPE_BUF ? left : PIPE_BUF);
		when_nudge(0);
		if (n == -1 && errno != EAGAIN && errno != EINTR)
			return false;
		if (n > 0) {
			p += n;
			left -= (size_t)n;
		}
	}
	return true;
}

/* The job's record; false if it did not go out whole. */
static bool
tell_job(const struct job *job)
{
	char *line = NULL;
	size_t n;
	FILE *f = text_memory(&line, &n);
	bool told;

	if (f != NULL)
		job_print(f, job);
	if (f == NULL || fclose(f) == EOF)
		told = db_fail(db, Q_TEMP, "out of memory") == Q_OK;
	else
		told = tell(line, n);
	free(line);
	return told;
}

/* Claims that could not be told to anybody. */
static _Noreturn void
give_back(const struct claim *claims, int n)
{
	static const struct job_settle RELEASE = { .outcome = OUT_RELEASED, .due_ms = -1, .count = -1, .exit = -1, .signal = -1,
	    .reason = "the claim could not be printed" };
	int status = db_status(db) != Q_OK ? db_status(db) : prog_signal != 0 ? Q_TEMP : Q_IO;
	char why[1024];

	snprintf(why, sizeof why, "%s", db_status(db) != Q_OK ? db_message(db) : prog_signal != 0 ? "interrupted" : "standard output could not be written");
	prog_check(db, db_begin(db, false));
	for (int i = 0; i < n; i++)
		if (job_settle(db, &claims[i], &RELEASE, prog_now(), NULL) == Q_LOST)
			db_clear(db);
	prog_check(db, db_commit(db));
	prog_die(status, "%s; %d claims were released", why, n);
}

int
main(int argc, char *argv[])
{
	struct job_want w = { .n = 1, .lease_ms = JOB_LEASE_MS };
	int64_t wait_ms = 0, end;
	struct claim *claims;
	struct job job;
	int c, n, i;

	prog_start(&self, true);
	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case 'c': w.n = (int)prog_int("-c", optarg, 1, JOB_CLAIM_MAX); break;
		case 'l': w.lease_ms = prog_duration("-l", optarg); break;
		case 't': w.type = prog_name("type", optarg); break;
		case WAIT: wait_ms = prog_duration("--wait", optarg); break;
		}
	w.queues = argv + optind;
	w.nqueues = argc - optind;
	prog_queues(w.queues, w.nqueues, 1);
	if (w.lease_ms == 0)
		prog_usage("-l: a lease of 0 would end at once");
	w.worker = prog_worker();
	if ((claims = calloc((size_t)w.n, sizeof *claims)) == NULL)
		prog_die(Q_TEMP, "out of memory");
	db = prog_open(DB_ONCE);
	prog_catch();
	end = when_elapsed() + wait_ms;
	while ((n = claim(&w, claims)) == 0 && when_elapsed() < end && prog_signal == 0)
		wait_for(&w, end);
	for (i = 0; i < n; i++) {
		if (job_get(db, claims[i].id, &job) != Q_OK)
			give_back(claims + i, n - i);
		job.fence = claims[i].fence;	/* ours: if the lease is over already, the row holds another's token */
		job.nonce = claims[i].nonce;
		job.state = "claimed";
		if (!tell_job(&job))
			give_back(claims + i, n - i);
	}
	if (n == 0 && prog_signal != 0)
		prog_die(Q_TEMP, "interrupted");
	prog_exit(Q_OK);
}
