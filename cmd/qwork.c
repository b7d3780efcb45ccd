/* qwork - run a command for each due job, with heartbeat, time limit and drain */

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "prog.h"

static const char HELP[] =
"usage: qwork [-hVv] [-d FILE] [-P N] [-l LEASE] [-t TYPE] [--limit DUR]\n"
"             [--grace DUR] [--follow] [-c MAX] QUEUE... -- CMD...\n"
"Run CMD for each due job, the payload on its standard input, and end when no\n"
"more is due.  CMD's exit status settles the job: 0 done, its output is the\n"
"result; 75 not now; 65 dead at once; 126 and 127 CMD is broken, stop at once;\n"
"anything else failed, what it wrote last to standard error is the reason.\n"
"  qwork -P 4 --limit 1m mail -- ./send-mail\n"
"  * * * * *  flock -n -o /run/lock/mail qwork mail -- /opt/send-mail\n"
"  -P, --parallel N  jobs at the same time, 1 to 256 (default 1)\n"
"  -l, --lease LEASE length of a claim, renewed at a third of it (default 5m)\n"
"  -t, --type TYPE   only jobs of this type\n"
"  -c, --count MAX   at most this many jobs\n"
"  --limit DUR       end a command after this long: TERM, 5 seconds later KILL\n"
"  --grace DUR       on TERM, INT, HUP let commands run this long (default 30s)\n"
"  --follow          wait for more jobs instead of ending\n"
"  -v, --verbose     one line for each job on standard error\n"
"Exit: 0 done, 1 a job went dead, 75 interrupted, 126 and 127 as CMD.\n";

enum {
	LIMIT = 256, GRACE, FOLLOW,	/* options without a letter */
	PARALLEL_MAX = 256,
	KILL_MS = 5000,			/* between TERM and KILL */
	GIVEUP_MS = KILL_MS + 5000,	/* then what KILL does not end is left behind */
	SLOW_MS = 1000,			/* look at least this often: hints may be lost */
	RETRY_MS = 200			/* after a busy file, which has been waited for */
};
#define NEVER INT64_MAX
static const struct option LONGS[] = {
	{ "parallel", 1, NULL, 'P' }, { "lease", 1, NULL, 'l' }, { "type", 1, NULL, 't' }, { "count", 1, NULL, 'c' },
	{ "limit", 1, NULL, LIMIT }, { "grace", 1, NULL, GRACE }, { "follow", 0, NULL, FOLLOW },
	{ "verbose", 0, NULL, 'v' }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qwork", .help = HELP, .shorts = "+vP:l:t:c:", .longs = LONGS, .stays = true };

static struct slot {			/* one job at a time */
	enum { IDLE, RUNS, ENDED, GONE } stage;
	bool ours;			/* the claim, as far as we know */
	struct claim claim;
	int64_t started;
	const char *state;		/* what settling or renewing said, for after the commit */
	struct job_settle how;
	struct child_end end;
	char reason[CHILD_REASON_MAX];
} slots[PARALLEL_MAX];
static struct minder minders[PARALLEL_MAX];
static int nslots = 1;
#define EACH_SLOT(s) struct slot *s = slots; s < slots + nslots; s++
#define MINDER(s) (&minders[(s) - slots])

static const char STALE[] = "stale";	/* a slot's state: the claim is not held */
static const struct job_settle NOT_RUN = { .outcome = OUT_RELEASED, .due_ms = -1, .count = -1, .exit = -1, .signal = -1 };

static struct job_dead lost;
static struct job_want want = { .dead = &lost, .lease_ms = JOB_LEASE_MS };
static struct child_spec spec = { .kill_ms = KILL_MS };
static int64_t left = NEVER, grace_ms = 30 * 1000;
static bool follow, verbose;

static struct db *db;
static int status;			/* of the exit, when it is known early */
static bool went_dead, busy;
static bool closing;			/* claim no more */
static int closed_by;			/* the signal that said so */
static bool look = true;		/* a claim may find something */
static bool limited;			/* something is due, and waits only for its rate */
static int64_t next_due = -1, version, nap = SLOW_MS;
static int64_t renew_at, retry_at, grace_at = NEVER, giveup_at = NEVER;	/* by when_elapsed() */

static void
stop_minders(void)
{
	for (EACH_SLOT(s))
		minder_stop(MINDER(s));
}

/* ---- one job's way through a slot ---------------------------------------- */

/* Claimed, and on disk: run the command. */
static void
start(struct slot *s, const struct claim *claim)
{
	struct job job;
	size_t len;
	char *env = NULL;
	int rc = job_get(db, claim->id, &job);

	if (rc == Q_OK && (job.fence != claim->fence || job.nonce != claim->nonce))
		return;			/* the lease is over already, and another has it */
	s->claim = *claim;
	s->ours = true;
	s->started = when_elapsed();
	if (rc == Q_OK && (env = child_env(&job, db_path(db), &len)) != NULL) {
		s->stage = RUNS;	/* if the minder is gone, its descriptor will say so */
		minder_run(MINDER(s), env, len, job.payload, job.payload_len);
	} else if (rc == Q_OK || rc == Q_TEMP) {	/* give it back, try again soon */
		s->stage = ENDED;
		s->how = NOT_RUN;
		s->how.reason = "out of memory, or the file was busy";
		retry_at = when_elapsed() + RETRY_MS;
	} else
		prog_check(db, rc);	/* the file fails for good: claims stay and are taken over after their lease */
	free(env);
}

/* A minder's descriptor is readable: the command has ended, or the minder. */
static void
finish(struct slot *s)
{
	bool broken;

	if (minder_end(MINDER(s), &s->end) == -1) {
		minder_stop(MINDER(s));
		if (s->stage == IDLE)
			s->stage = GONE;
		if (s->stage != RUNS)
			return;
	}
	broken = child_settle(&s->how, &s->end, &spec, s->reason);
	s->stage = s->ours ? ENDED : MINDER(s)->fd != -1 ? IDLE : GONE;
	if (broken && !closing) {
		prog_warn("%s: %s; claiming stopped, job %" PRId64 " is given back", spec.argv[0], child_headline(s->how.reason), s->claim.id);
		status = WEXITSTATUS(s->end.status);
		closing = true;
	}
}

/* After a commit, tell what became of the job.  False: its claim was lost. */
static bool
report(const struct slot *s)
{
	static const char *const WORD[] = { "done", "failed", "deferred", "released" };
	struct attempt told = { .state = s->state, .reason = s->how.reason };
	bool own = s->state == STALE;	/* settled by the command itself, which is its right, or taken over? */
	int64_t ms = when_elapsed() - s->started, id = s->claim.id;
	const char *line;

	if ((own || strcmp(s->state, "dead") == 0) && !job_settled(db, &s->claim, &told) && own) {
		prog_warn("job %" PRId64 ": its claim was lost while it ran; this run is not recorded; next: qls %" PRId64, id, id);
		return false;
	}
	line = child_headline(told.reason);
	if (strcmp(told.state, "dead") == 0) {
		went_dead = true;
		prog_warn("job %" PRId64 ": dead: %s; next: qls %" PRId64, id, line, id);
	} else if (verbose)
		prog_warn("job %" PRId64 ": %s in %d.%ds%s%s", id, own ? "settled by the command itself" : WORD[s->how.outcome],
		    (int)(ms / 1000), (int)(ms / 100 % 10), *line != '\0' ? ": " : "", line);
	return true;
}

/* ---- the file ------------------------------------------------------------ */

/* Settle what ended, renew what runs, claim up to n: one transaction, one commit. */
static int
transact(bool renew, int n, struct claim *claims, int *got)
{
	int64_t now = when_now();
	int rc = db_begin(db, false);

	renew |= when_elapsed() >= renew_at;	/* the wait may have been long, and the claim below must not find our own leases over */
	*got = 0;
	for (EACH_SLOT(s)) {
		s->state = NULL;
		if (rc == Q_OK && s->stage == ENDED)
			rc = job_settle(db, &s->claim, &s->how, now, &s->state);
		else if (rc == Q_OK && renew && s->stage == RUNS && s->ours)
			rc = job_renew(db, &s->claim, want.lease_ms);
		if (rc == Q_LOST) {
			s->state = STALE;
			db_clear(db);
			rc = Q_OK;
		}
	}
	want.n = n;
	if (rc == Q_OK && n > 0)
		rc = job_claim(db, &want, now, claims, got);
	if (rc == Q_OK)
		return db_commit(db);
	db_rollback(db);
	return rc;
}

static int
count(int stage)
{
	int n = 0;

	for (EACH_SLOT(s))
		n += (int)s->stage == stage;
	return n;
}

static void
ask_next(void)
{
	if (job_next(db, &want, when_now(), &next_due, &limited) != Q_OK) {
		next_due = -1;
		limited = true;
	}
}

/* One turn with the file.  When it is busy nothing is forgotten, and the next turn tries again. */
static void
turn(bool renew, int n)
{
	static struct claim claims[PARALLEL_MAX];
	int got, next = 0, rc;

	lost.n = 0;
	version = db_data_version(db);	/* before the claim, so that no commit is missed */
	if ((rc = transact(renew, n, claims, &got)) == Q_TEMP && (follow || count(RUNS) + count(ENDED) > 0)) {
		if (!busy)
			prog_warn("%s; still trying", db_message(db));
		busy = true;
		retry_at = when_elapsed() + RETRY_MS;
		return;
	}
	prog_check(db, rc);
	busy = false;
	for (int i = 0; i < lost.n && i < (int)(sizeof lost.id / sizeof *lost.id); i++)
		prog_warn("job %" PRId64 ": dead: its claim was lost once too often; next: qls %" PRId64, lost.id[i], lost.id[i]);
	went_dead |= lost.n > 0;
	if (renew || count(RUNS) == 0)
		renew_at = when_elapsed() + want.lease_ms / 3;
	for (EACH_SLOT(s))
		if (s->stage == ENDED) {
			report(s);
			s->stage = MINDER(s)->fd != -1 ? IDLE : GONE;
		} else if (s->state == STALE) {
			s->ours = false;
			if (!report(s))
				minder_kill(MINDER(s), SIGKILL);
		}
	for (EACH_SLOT(s))
		if (s->stage == IDLE && next < got)
			start(s, &claims[next++]);
	left -= got;
	next_due = -1;
	if (n > 0 && !(look = got == n || want.more)) {
		ask_next();		/* what became due, or got a token, since the claim looked is no reason to end */
		look = next_due != -1 && when_now() >= next_due;
	}
}

/* ---- waiting ------------------------------------------------------------- */

/* How many jobs can be claimed; what has ended is settled in the same transaction. */
static int
room(void)
{
	int n = 0;

	for (EACH_SLOT(s))
		n += (s->stage == IDLE || s->stage == ENDED) && MINDER(s)->fd != -1;
	return closing ? 0 : n < left ? n : (int)left;
}

static void
kill_all(int sig)
{
	for (EACH_SLOT(s))
		if (s->stage == RUNS)
			minder_kill(MINDER(s), sig);
	grace_at = NEVER;
	giveup_at = when_elapsed() + GIVEUP_MS;
}

static int64_t
min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Has somebody else committed something?  Then what is due next may have changed too. */
static bool
changed(void)
{
	int64_t was = version;

	version = db_data_version(db);
	if (version != was || next_due == -1)
		ask_next();
	return version != was;
}

/* Until a command ends, a signal comes, it is time to renew, or there may be a job for a free slot. */
static void
rest(void)
{
	struct pollfd p[PARALLEL_MAX + 1];
	bool watch = room() > 0 && !look;
	int64_t now = when_elapsed(), wall = when_now(), at = min(grace_at, giveup_at);
	int hints = watch ? db_watch(db) : -1, ready;

	if (retry_at > now)
		at = min(at, retry_at);
	else if (look && room() > 0)	/* the claim stopped early */
		at = now;
	if (count(RUNS) > 0)
		at = min(at, now + renew_at - when_elapsed());
	if (watch && !changed())
		at = min(at, now + (next_due > wall ? min(next_due - wall, nap) : nap));
	else if (watch)
		at = now;
	for (int i = 0; i < nslots; i++)
		p[i] = (struct pollfd){ .fd = minders[i].fd, .events = POLLIN };
	p[nslots] = (struct pollfd){ .fd = hints, .events = POLLIN };
	if ((ready = prog_poll(p, (nfds_t)nslots + 1, at > now ? at - now : 0)) > 0)
		for (EACH_SLOT(s))
			if (p[s - slots].revents != 0) {
				finish(s);
				look = true;
			}
	if (watch) {			/* the hint comes with a commit's first write, and so before it can be seen */
		nap = p[nslots].revents != 0 ? 1 : min(2 * nap, SLOW_MS);
		db_watch_drain(db);
		if (!changed() && ready == 0)
			ask_next();	/* rates and leases run on the boot clock: the wall may have been set, or stand still */
		look |= when_now() >= next_due;
	}
	if (prog_signal != 0 && closed_by != 0)
		kill_all(SIGKILL);
	else if (prog_signal != 0) {
		closed_by = prog_signal;
		closing = true;
		grace_at = when_elapsed() + grace_ms;
	}
	prog_signal = 0;
	if (when_elapsed() >= grace_at)
		kill_all(SIGTERM);
}

static void
work(void)
{
	bool renew;

	while (when_elapsed() < giveup_at) {
		renew = count(RUNS) > 0 && when_elapsed() >= renew_at;
		if (when_elapsed() >= retry_at && (count(ENDED) > 0 || renew || (look && room() > 0)))
			turn(renew, look ? room() : 0);
		if (count(IDLE) + count(GONE) == nslots && (room() == 0 || (!follow && !look && !limited)))
			return;
		rest();
	}
}

/* ---- beginning and end --------------------------------------------------- */

static void
options(int argc, char *argv[])
{
	int c, end;

	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case 'P': nslots = (int)prog_int("-P", optarg, 1, PARALLEL_MAX); break;
		case 'l': want.lease_ms = prog_duration("-l", optarg); break;
		case 't': want.type = prog_name("type", optarg); break;
		case 'c': left = prog_int("-c", optarg, 1, WHEN_MAX); break;
		case LIMIT: spec.limit_ms = prog_duration("--limit", optarg); break;
		case GRACE: grace_ms = prog_duration("--grace", optarg); break;
		case FOLLOW: follow = true; break;
		case 'v': verbose = true; break;
		}
	for (end = optind; end < argc && strcmp(argv[end], "--") != 0; end++)
		;
	if (end == argc && strcmp(argv[optind - 1], "--") != 0)
		prog_usage("the command follows '--' after the queues");
	want.queues = argv + optind;
	want.nqueues = end < argc ? end - optind : 0;
	prog_queues(want.queues, want.nqueues, 1);
	if (end == argc - 1)
		prog_usage("no command after '--'");
	spec.argv = argv + end + 1;
	if (want.lease_ms < 1000)
		prog_usage("-l: a lease is at least 1s");
	prog_now();			/* a bad Q_NOW is told before anything is done */
}

int
main(int argc, char *argv[])
{
	prog_start(&self, true);
	options(argc, argv);
	want.worker = prog_worker();
	for (int i = 0; i < nslots; i++)	/* first: a process that has the file open must not fork */
		if (minder_start(&minders[i], &spec, minders, i) == -1)
			prog_die(Q_TEMP, "cannot start a process: %s; see ulimit -u", strerror(errno));
	prog_last = stop_minders;
	prog_catch();
	db = prog_open(DB_STAY);
	work();
	stop_minders();
	for (EACH_SLOT(s)) {
		if (s->stage != RUNS && s->stage != ENDED)
			continue;
		prog_warn("job %" PRId64 ": %s; it is taken over when its lease is over", s->claim.id,
		    s->stage == RUNS ? "its command does not end" : "the file stayed busy, so its end is not recorded");
		status = Q_TEMP;
	}
	if (status == Q_OK && count(GONE) == nslots) {
		prog_warn("all minders were killed; try again");
		status = Q_TEMP;
	}
	if (status == Q_OK && closed_by == SIGINT)
		prog_killed(closed_by);
	if (status == Q_OK && !follow)
		status = closed_by != 0 ? Q_TEMP : went_dead ? Q_NO : Q_OK;
	prog_exit(status);
}
