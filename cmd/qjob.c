/* qjob - run a command as a job: one at a time, on a leash, with a row in the ledger */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

static const char HELP[] =
"usage: qjob [-hV] [-d FILE] [-l LEASE] [--limit DUR] [--lock NAME]\n"
"            [--count-from-stdout] NAME -- CMD...\n"
"Run CMD as a job of the queue NAME; for any crontab line.  Its output, input and\n"
"exit status are as without qjob.  While a run of NAME is under way, or NAME is\n"
"paused, the next one is skipped: exit 75, silent.\n"
"  30 2 * * *   qjob nightly-export -- /opt/export\n"
"  */5 * * * *  qjob --limit 4m --count-from-stdout import -- /opt/import\n"
"  -l, --lease LEASE    how long a run whose qjob was killed blocks the next one\n"
"                       (default 5m); renewed at a third of it\n"
"  --limit DUR          end CMD after this long: TERM, 5 seconds later KILL\n"
"  --lock NAME          hold this lock of qlock, too; not free: skipped\n"
"  --count-from-stdout  what CMD produced is the last line of its output that is\n"
"                       a whole number\n"
"Exit: as CMD, 128+N if a signal ended it; 74 its output or its end could not be\n"
"written, 75 skipped, 76 claim or lock was lost and CMD ended, 126 and 127 CMD\n"
"cannot be run.\n";

enum {
	COUNT = 256, LIMIT, LOCK,	/* options without a letter */
	MINUTE_MS = 60 * 1000,
	CANCEL_MAX = 1000
};
static const struct option LONGS[] = {
	{ "lease", 1, NULL, 'l' }, { "limit", 1, NULL, LIMIT }, { "lock", 1, NULL, LOCK },
	{ "count-from-stdout", 0, NULL, COUNT }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qjob", .help = HELP, .shorts = "+l:", .longs = LONGS };

static const char TYPE[] = "qjob";	/* of the runs, so that they are not taken for other jobs of the queue */

static struct job_dead lost;		/* runs before this one that were never settled */
static struct job_want want = { .dead = &lost, .lease_ms = JOB_LEASE_MS };
static struct job_settle how;
static char *name;
static bool counts;

static int renew(struct db *, void *);
static struct run run = { .renew = renew };

static struct db *db;
static struct claim claim;
static struct lock lock = { .dead = &lost };	/* name NULL: none */
static bool ours = true;		/* the claim, as far as we know */
static bool lock_lost;

/* ---- the beginning ------------------------------------------------------- */

/* The lock, if one is wanted, and the job: both or none.  Q_NO: it is not the time. */
static int
start(const struct job_new *new, int64_t now)
{
	int rc = lock.name != NULL ? lock_take(db, &lock, now) : Q_OK;

	if (rc == Q_OK && (rc = job_start(db, new, &want, now, &claim)) == Q_NO && lock.name != NULL)
		prog_check(db, lock_release(db, &lock));
	return rc;
}

/* What the command finds set; the caller frees.  NULL: out of memory. */
static char *
environment(const struct job *job, size_t *len)
{
	size_t n;
	char *of_job = child_env(job, db_path(db), &n), *env = NULL;
	FILE *f = of_job != NULL ? text_memory(&env, len) : NULL;

	if (f == NULL)
		return NULL;
	fwrite(of_job, 1, n, f);
	free(of_job);
	if (lock.name != NULL)
		lock_env(db, &lock, f);
	return fclose(f) == 0 ? env : NULL;
}

/* Add the job and claim it, and run the command; or end, if it is not the time. */
static void
begin(void)
{
	int64_t now = prog_now(), at = when_elapsed();
	struct job_new new = { .queue = name, .type = TYPE, .priority = -1, .due_ms = now - now % MINUTE_MS, .event_ms = -1,
	    .attempts = 1, .window_ms = -1, .base_ms = -1, .cap_ms = -1 };
	char *env = NULL;
	struct job job;
	size_t len;
	int rc;

	if ((new.payload = child_words(run.spec.argv, &new.payload_len)) == NULL)
		prog_die(Q_TEMP, "out of memory");
	prog_check(db, db_begin(db, true));
	rc = start(&new, now);
	if (rc == Q_OK && (rc = job_get(db, claim.id, &job)) == Q_OK && (env = environment(&job, &len)) == NULL)
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
	run_begin(&run, at, env, len);
	free(env);
}

static int
renew(struct db *file, void *unused)
{
	struct attempt own;
	int rc = ours ? job_renew(file, &claim, want.lease_ms) : Q_OK;

	(void)unused;
	if (rc == Q_LOST) {
		ours = false;
		if (!job_settled(file, &claim, &own))	/* by the command itself, which is its right */
			return Q_LOST;
		rc = Q_OK;
	}
	if (lock.name == NULL)
		return ours || rc != Q_OK ? rc : Q_NO;
	if (rc == Q_OK)
		lock_lost = (rc = lock_renew(file, &lock)) == Q_LOST;
	return rc;
}

/* ---- the end ------------------------------------------------------------- */

static void
fail(const char *reason)
{
	how.outcome = OUT_FAILED;
	how.dead = true;		/* one attempt is all it has */
	if (reason == NULL)
		return;
	how.reason = reason;
	how.result = NULL;
	how.result_len = 0;
}

/* Release and settle in one: the next run finds both free. */
static int
settle(struct db *file, void *unused)
{
	int64_t now = when_now();
	int rc = lock.name != NULL && !lock_lost ? lock_release(file, &lock) : Q_OK;

	(void)unused;
	if (rc == Q_LOST) {
		lock_lost = true;
		db_clear(file);
		rc = Q_OK;
	}
	if (lock_lost)
		fail("its lock was lost while it ran");
	if (rc == Q_OK && ours)
		rc = job_settle(file, &claim, &how, now, NULL);
	if (rc == Q_OK && ours && how.outcome == OUT_DONE)	/* the trouble that ended earlier runs is over */
		rc = job_cancel_dead(file, name, TYPE, CANCEL_MAX, now);
	return rc;
}

/* Write down what became of the run.  What settle() said; Q_LOST: it could not have settled it. */
static int
record(void)
{
	static char reason[CHILD_REASON_MAX];
	bool was_ours = ours;
	int rc;

	child_settle(&how, &run.end, &run.spec, reason);
	how.count = counts ? run.end.count : -1;
	if (how.outcome != OUT_DONE)
		fail(NULL);
	if (!ours && lock.name == NULL)
		return Q_LOST;
	if ((rc = run_settle(db, RUN_SETTLE_MS, settle, NULL)) == Q_LOST && lock.name != NULL) {
		ours = was_ours = false;
		rc = run_settle(db, RUN_SETTLE_MS, settle, NULL);
	}
	return rc == Q_OK && !was_ours ? Q_LOST : rc;
}

/* Tell what nobody would see otherwise; the exit status. */
static int
report(int rc)
{
	bool done = how.outcome == OUT_DONE, recorded = rc == Q_OK || rc == Q_LOST;
	int status = child_exit(&run.end);
	char why[CHILD_HOW_MAX];
	const char *cmd = run.end.exec_errno != 0 ? run.spec.argv[0] : "", *colon = run.end.exec_errno != 0 ? ": " : "";

	if (!recorded)
		prog_warn("%s: %s; this run is not recorded, and blocks the next until its lease is over", name, db_message(db));
	if (done && counts && run.end.count == -1)
		prog_warn("%s: no line of its output is a whole number, so it has no count; next: qls %" PRId64, name, claim.id);
	if (done)
		return recorded ? Q_OK : Q_IO;
	if (run.caught != 0)
		prog_killed(run.caught);
	/* Also if it has written something itself: cron's mail tells no exit status. */
	prog_warn("%s: %s%s%s; next: qls %" PRId64, name, cmd, colon, child_how(why, &run.end, &run.spec), claim.id);
	if (status == 0)			/* which is not how it was meant to end */
		return run.end.timed_out ? 128 + SIGTERM : Q_IO;
	return status;
}

static void
options(int argc, char *argv[])
{
	int c;

	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case 'l': want.lease_ms = prog_duration("-l", optarg); break;
		case LIMIT: run.spec.limit_ms = prog_duration("--limit", optarg); break;
		case LOCK: lock.name = prog_name("lock", optarg); break;
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
	run.spec.argv = argv + optind + 2;
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
	want.worker = lock.worker = prog_worker();
	lock.lease_ms = want.lease_ms;
	lock_inside(&lock);
	run.strict = lock.name != NULL;
	run.what = name;
	run.lease_ms = want.lease_ms;
	run_start(&run);
	db = prog_open(DB_ONCE);
	begin();
	run_watch(&run, db);
	rc = record();
	if (rc == Q_LOST && !job_settled(db, &claim, &own))
		prog_die(Q_LOST, "%s: its claim was lost while it ran; this run is not recorded; next: qls %" PRId64, name, claim.id);
	if (lock_lost || (run.end.lapsed && lock.name != NULL))
		prog_die(Q_LOST, "%s: its lock '%s' was lost while it ran, and the command ended; next: qls %" PRId64, name, lock.name, claim.id);
	prog_exit(report(rc));
}
