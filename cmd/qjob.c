/* qjob - run a command as a job: one at a time, on a leash, with a row in the ledger */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "prog.h"

static const char HELP[] =
"usage: qjob [-hV] [-d FILE] [-l LEASE] [--limit DUR] [--count-from-stdout]\n"
"            NAME -- CMD...\n"
"Run CMD as a job of the queue NAME; for any crontab line.  Its output, input and\n"
"exit status are as without qjob.  While a run of NAME is under way, or NAME is\n"
"paused, the next one is skipped: exit 75, silent.\n"
"  30 2 * * *   qjob nightly-export -- /opt/export\n"
"  */5 * * * *  qjob --limit 4m --count-from-stdout import -- /opt/import\n"
"  -l, --lease LEASE    how long a run whose qjob was killed blocks the next one\n"
"                       (default 5m); renewed at a third of it\n"
"  --limit DUR          end CMD after this long: TERM, 5 seconds later KILL\n"
"  --count-from-stdout  what CMD produced is the last line of its output that is\n"
"                       a whole number\n"
"Exit: as CMD, 128+N if a signal ended it; 74 its output or its end could not be\n"
"written, 75 skipped, 76 the claim was lost and CMD ended, 126 and 127 CMD cannot\n"
"be run; q(7).\n";

enum {
	COUNT = 256, LIMIT,		/* options without a letter */
	KILL_MS = 5000,			/* between TERM and KILL */
	GIVEUP_MS = 4 * KILL_MS,	/* after a signal: then what does not end is left behind */
	RETRY_MS = 200,			/* after a busy or ill file */
	RECORD_MS = 10 * 1000,		/* how long the end of a run is tried to be recorded */
	MINUTE_MS = 60 * 1000,
	CANCEL_MAX = 1000
};
static const struct option LONGS[] = {
	{ "lease", 1, NULL, 'l' }, { "limit", 1, NULL, LIMIT }, { "count-from-stdout", 0, NULL, COUNT }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qjob", .help = HELP, .shorts = "+l:", .longs = LONGS };

static const char TYPE[] = "qjob";	/* of the runs, so that they are not taken for other jobs of the queue */

static struct job_dead lost;		/* runs before this one that were never settled */
static struct job_want want = { .dead = &lost, .lease_ms = JOB_LEASE_MS };
static struct child_spec spec = { .kill_ms = KILL_MS, .pass = true };
static struct minder minder;
static struct child_end end;
static struct job_settle how;
static char *name;
static bool counts;

static struct db *db;
static struct claim claim;
static bool ours = true;		/* the claim, as far as we know */
static bool ill;			/* the file is, and that was told */
static int caught;			/* the first signal */
static int64_t renew_at, giveup_at = INT64_MAX;	/* by when_elapsed() */

static void
stop_minder(void)
{
	minder_stop(&minder);
}

/* ---- the beginning ------------------------------------------------------- */

/* Add the job and claim it, and run the command; or end, if it is not the time. */
static void
begin(void)
{
	int64_t now = prog_now();
	struct job_new new = { .queue = name, .type = TYPE, .priority = -1, .due_ms = now - now % MINUTE_MS, .event_ms = -1,
	    .attempts = 1, .window_ms = -1, .base_ms = -1, .cap_ms = -1 };
	char *env = NULL;
	struct job job;
	size_t len;
	int rc;

	if ((new.payload = child_words(spec.argv, &new.payload_len)) == NULL)
		prog_die(Q_TEMP, "out of memory");
	prog_check(db, db_begin(db, true));
	rc = job_start(db, &new, &want, now, &claim);
	if (rc == Q_OK && (rc = job_get(db, claim.id, &job)) == Q_OK && (env = child_env(&job, db_path(db), &len)) == NULL)
		rc = db_fail(db, Q_TEMP, "out of memory");
	if (rc != Q_NO)
		prog_check(db, rc);
	prog_poll(NULL, 0, 0);
	if (prog_signal != 0)		/* while the file was busy; nothing has happened */
		prog_killed(prog_signal);
	prog_check(db, db_commit(db));
	for (int i = 0; i < lost.n && i < (int)(sizeof lost.id / sizeof *lost.id); i++)
		prog_warn("%s: job %" PRId64 ": dead: its claim was lost; next: qls %" PRId64, name, lost.id[i], lost.id[i]);
	if (rc == Q_NO)
		prog_exit(Q_TEMP);
	renew_at = when_elapsed() + want.lease_ms / 3;
	minder_run(&minder, env, len, "", 0);	/* if the minder is gone, its descriptor will say so */
	free(env);
}

/* ---- while it runs ------------------------------------------------------- */

/* A busy or ill file is tried again: the claim is ours until somebody takes it. */
static void
renew(void)
{
	struct attempt own;
	int rc = db_begin(db, false);

	if (rc == Q_OK && (rc = job_renew(db, &claim, want.lease_ms)) == Q_OK)
		rc = db_commit(db);
	if (rc != Q_OK && rc != Q_LOST && !ill)
		prog_warn("%s: %s; still trying", name, db_message(db));
	ill = rc != Q_OK;
	db_rollback(db);
	renew_at = when_elapsed() + (rc == Q_OK ? want.lease_ms / 3 : RETRY_MS);
	if (rc != Q_LOST)
		return;
	renew_at = INT64_MAX;
	ours = job_settled(db, &claim, &own);	/* by the command itself, which is its right */
	if (!ours)
		minder_kill(&minder, SIGKILL);
}

/* Until the command has ended, or its minder was killed. */
static void
watch(void)
{
	struct pollfd p = { minder.fd, POLLIN, 0 };
	int64_t now, at;

	while ((now = when_elapsed()) < giveup_at) {
		at = renew_at < giveup_at ? renew_at : giveup_at;
		if (prog_poll(&p, 1, at > now ? at - now : 0) > 0)
			break;
		if (prog_signal != 0) {
			minder_kill(&minder, caught == 0 ? SIGTERM : SIGKILL);
			caught = caught == 0 ? prog_signal : caught;
			prog_signal = 0;
			giveup_at = when_elapsed() + GIVEUP_MS;
		}
		if (when_elapsed() >= renew_at)
			renew();
	}
	if (now >= giveup_at)		/* it does not end */
		stop_minder();
	minder_end(&minder, &end);
	stop_minder();
}

/* ---- the end ------------------------------------------------------------- */

static int
settle(void)
{
	int64_t now = when_now();
	int rc = db_begin(db, false);

	if (rc == Q_OK)
		rc = job_settle(db, &claim, &how, now, NULL);
	if (rc == Q_OK && how.outcome == OUT_DONE)	/* the trouble that ended earlier runs is over */
		rc = job_cancel_dead(db, name, TYPE, CANCEL_MAX, now);
	if (rc == Q_OK)
		return db_commit(db);
	db_rollback(db);
	return rc;
}

/* Write down what became of the run; for a while, when the file is busy or the disk full.  What settle() said. */
static int
record(void)
{
	static char reason[CHILD_REASON_MAX];
	int64_t until = when_elapsed() + RECORD_MS;
	int rc;

	child_settle(&how, &end, &spec, reason);
	how.count = counts ? end.count : -1;
	if (how.outcome != OUT_DONE) {		/* one attempt is all it has */
		how.outcome = OUT_FAILED;
		how.dead = true;
	}
	while ((rc = ours ? settle() : Q_LOST) != Q_OK && rc != Q_LOST && when_elapsed() < until && prog_signal == 0)
		prog_poll(NULL, 0, RETRY_MS);
	return rc;
}

/* Tell what nobody would see otherwise; the exit status. */
static int
report(int rc)
{
	bool done = how.outcome == OUT_DONE, recorded = rc == Q_OK || rc == Q_LOST;
	int status = child_exit(&end);
	char why[CHILD_HOW_MAX];
	const char *cmd = end.exec_errno != 0 ? spec.argv[0] : "", *colon = end.exec_errno != 0 ? ": " : "";

	if (!recorded)
		prog_warn("%s: %s; this run is not recorded, and blocks the next until its lease is over", name, db_message(db));
	if (done && counts && end.count == -1)
		prog_warn("%s: no line of its output is a whole number, so it has no count; next: qls %" PRId64, name, claim.id);
	if (done)
		return recorded ? Q_OK : Q_IO;
	if (caught != 0)
		prog_killed(caught);
	/* Also if it has written something itself: cron's mail tells no exit status. */
	prog_warn("%s: %s%s%s; next: qls %" PRId64, name, cmd, colon, child_how(why, &end, &spec), claim.id);
	if (status == 0)			/* which is not how it was meant to end */
		return end.timed_out ? 128 + SIGTERM : Q_IO;
	return status;
}

static void
options(int argc, char *argv[])
{
	int c;

	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case 'l': want.lease_ms = prog_duration("-l", optarg); break;
		case LIMIT: spec.limit_ms = prog_duration("--limit", optarg); break;
		case COUNT: counts = true; break;
		}
	if (optind == argc)
		prog_usage("no NAME");
	name = argv[optind];
	prog_queues(&name, 1, 1);
	if (optind + 1 == argc || strcmp(argv[optind + 1], "--") != 0)
		prog_usage("the command follows '--' after the name");
	if (optind + 2 == argc)
		prog_usage("no command after '--'");
	spec.argv = argv + optind + 2;
	if (want.lease_ms < 1000)
		prog_usage("-l: a lease is at least 1s");
	prog_now();			/* a bad Q_NOW is told before anything is done */
}

int
main(int argc, char *argv[])
{
	struct attempt own;
	int rc;

	prog_start(&self, true);
	options(argc, argv);
	want.worker = prog_worker();
	if (minder_start(&minder, &spec, NULL, 0) == -1)	/* first: a process that has the file open must not fork */
		prog_die(Q_TEMP, "cannot start a process: %s", strerror(errno));
	prog_last = stop_minder;
	prog_catch();
	db = prog_open(DB_ONCE);
	begin();
	watch();
	rc = record();
	if (rc == Q_LOST && !job_settled(db, &claim, &own))
		prog_die(Q_LOST, "%s: its claim was lost while it ran; this run is not recorded; next: qls %" PRId64, name, claim.id);
	prog_exit(report(rc));
}
