/* qlock - run a command while a name is locked */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

static const char HELP[] =
"usage: qlock [-hV] [-d FILE] [-n | -w DUR] [-l LEASE] [-E CODE] NAME -- CMD...\n"
"       qlock [-hV] [-d FILE] --check NAME FENCE\n"
"       qlock [-hVj] [-d FILE] --list\n"
"       qlock [-hV] [-d FILE] --break NAME\n"
"Run CMD while NAME is locked: no other qlock of it runs, and no job whose entity\n"
"it is.  The lock is a lease, renewed while CMD runs; CMD ends before it does.\n"
"Output, input and exit status are CMD's, which finds Q_LOCK and Q_FENCE set.\n"
"  qlock customer-17 -- ./merge customer-17\n"
"  qlock -n nightly -- ./report || [ $? = 75 ]\n"
"  -n, --nowait       do not wait for it: exit 75\n"
"  -w, --wait DUR     wait that long at most (default: as long as it takes)\n"
"  -l, --lease LEASE  how long NAME stays locked after kill -9 of qlock\n"
"                     (default 1m); renewed at a third of it\n"
"  -E, --busy CODE    exit with CODE instead of 75 if it is not free\n"
"  --check            is FENCE that of the lock now?  0 yes, 1 no\n"
"  --list             name, fence, since when, until when, who; -j, --json\n"
"  --break            end the lock, whoever has it, print who had it; 1 nobody\n"
"Exit: as CMD, 128+N if a signal ended it; 75 not free, silent, 76 the lock was\n"
"lost and CMD ended, 126 and 127 CMD cannot be run.\n";

enum { CHECK = 256, LIST, BREAK, SLICE_MS = 1000, LEASE_MS = 60 * 1000 };
static const struct option LONGS[] = {
	{ "nowait", 0, NULL, 'n' }, { "wait", 1, NULL, 'w' }, { "lease", 1, NULL, 'l' }, { "busy", 1, NULL, 'E' },
	{ "check", 0, NULL, CHECK }, { "list", 0, NULL, LIST }, { "break", 0, NULL, BREAK }, { "json", 0, NULL, 'j' },
	{ NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qlock", .help = HELP, .shorts = "+nw:l:E:j", .longs = LONGS };

static int renew(struct db *, void *);

static struct job_dead lost;		/* claims that were in the way, and never settled */
static struct lock lock = { .lease_ms = LEASE_MS, .dead = &lost };
static struct run run = { .strict = true, .renew = renew };
static struct db *db;
static int64_t wait_ms = INT64_MAX;
static int not_free = Q_TEMP;
static bool json, tty;

/* ---- taking it ----------------------------------------------------------- */

/* In the way may be the very command that this runs in: nothing would ever end that. */
static void
refuse_self(void)
{
	if (lock_around(db, lock.name) != Q_OK)
		return;
	prog_warn("%s: locked by a qlock or qjob that this runs under, and would wait for itself", lock.name);
	prog_exit(not_free);
}

/* At `at` by when_elapsed() the lease had not begun.  Q_NO: it is not free. */
static int
take(int64_t *at)
{
	int rc;

	*at = when_elapsed();
	prog_check(db, db_begin(db, false));
	rc = lock_take(db, &lock, prog_now());
	if (rc != Q_NO)
		prog_check(db, rc);
	prog_poll(NULL, 0, 0);
	if (prog_signal != 0)		/* while the file was busy; nothing has happened */
		prog_killed(prog_signal);
	prog_check(db, db_commit(db));
	return rc;
}

/* Until it may be free, at most until `end` of when_elapsed(). */
static void
wait_for(int64_t end)
{
	struct pollfd watch = { .fd = db_watch(db), .events = POLLIN };
	int64_t version, left, rest, slice, nap = SLICE_MS;

	if ((version = db_data_version(db)) == -1)
		prog_check(db, db_status(db));
	do {
		if (lock_look(db, &lock, &left) != Q_NO) {
			prog_check(db, db_status(db));
			return;
		}
		rest = end - when_elapsed();
		slice = left < nap ? left : nap;
		if (rest < slice)
			slice = rest;
		if (rest <= 0)
			return;
		/* The hint comes with a commit's first write, and so before it can be seen: look again soon. */
		nap = prog_poll(&watch, watch.fd != -1, slice) > 0 ? 1 : nap < SLICE_MS / 2 ? 2 * nap : SLICE_MS;
		if (prog_signal != 0)
			prog_killed(prog_signal);
		db_watch_drain(db);
	} while (db_data_version(db) == version);
}

/* By reading first, and then taking: those that wait do not write.  What take() says of time. */
static int64_t
lock_it(void)
{
	int64_t end = wait_ms == INT64_MAX ? INT64_MAX : when_elapsed() + wait_ms, at, left;

	refuse_self();
	for (;;) {
		if (lock_look(db, &lock, &left) == Q_OK && take(&at) == Q_OK)
			return at;
		prog_check(db, db_status(db));
		if (when_elapsed() >= end)
			prog_exit(not_free);
		wait_for(end);
	}
}

/* ---- holding it ---------------------------------------------------------- */

static int
renew(struct db *file, void *unused)
{
	(void)unused;
	return lock_renew(file, &lock);
}

static int
release(struct db *file, void *unused)
{
	(void)unused;
	return lock_release(file, &lock);
}

static _Noreturn void
locked(void)
{
	char *env = NULL;
	int64_t at;
	size_t len;
	FILE *f;
	int rc = Q_LOST, status;

	lock_inside(&lock);
	lock.worker = prog_worker();
	run.what = lock.name;
	run.lease_ms = lock.lease_ms;
	run_start(&run);
	db = prog_open(DB_ONCE);
	at = lock_it();
	for (int i = 0; i < lost.n && i < (int)(sizeof lost.id / sizeof *lost.id); i++)
		prog_warn("%s: job %" PRId64 ": dead: its claim was lost; next: qls %" PRId64, lock.name, lost.id[i], lost.id[i]);
	if ((f = text_memory(&env, &len)) != NULL) {
		lock_env(db, &lock, f);
		fprintf(f, "Q_DB=%s%c", db_path(db), 0);
	}
	if (f == NULL || fclose(f) == EOF)
		prog_die(Q_TEMP, "out of memory");
	run_begin(&run, at, env, len);
	run_watch(&run, db);
	if (!run.lost)
		rc = run_settle(db, run.end.lapsed ? 0 : RUN_SETTLE_MS, release, NULL);
	if (run.end.lapsed)
		prog_die(Q_LOST, "%s: the lease could not be renewed in time, and the command was ended", lock.name);
	if (rc == Q_LOST)
		prog_die(Q_LOST, "%s: the lock was broken, or its lease over, while the command ran", lock.name);
	if (rc != Q_OK)
		prog_warn("%s: %s; it stays locked until the lease is over", lock.name, db_message(db));
	status = run_exit(&run);
	prog_exit(status != Q_OK || rc == Q_OK ? status : Q_IO);
}

/* ---- looking at locks ---------------------------------------------------- */

static int
print(const struct lock_held *h, void *first)
{
	char since[WHEN_TEXT], until[WHEN_TEXT];
	int64_t now = prog_now();

	if (json) {
		fputs("{\"name\":", stdout);
		text_json(stdout, h->name, strlen(h->name));
		printf(",\"fence\":%" PRId64 ",\"since_at\":\"%s\",\"since_ms\":%" PRId64 ",\"until_at\":\"%s\",\"until_ms\":%" PRId64 ",\"worker\":",
		    h->fence, when_text(since, h->since_ms, false), h->since_ms, when_text(until, now + h->left_ms, false), now + h->left_ms);
		text_json(stdout, h->worker, strlen(h->worker));
		puts("}");
	} else if (tty) {
		if (*(bool *)first)
			printf("%-24s %-8s %-13s %-13s %s\n", "NAME", "FENCE", "SINCE", "UNTIL", "WHO");
		*(bool *)first = false;
		printf("%*s ", 24 - text_show(stdout, h->name, strlen(h->name), 24), "");
		printf("%-8" PRId64 " %-13s %-13s ", h->fence, when_relative(since, h->since_ms, now), when_relative(until, now + h->left_ms, now));
		text_show(stdout, h->worker, strlen(h->worker), 0);
		putchar('\n');
	} else {
		text_tsv(stdout, h->name, strlen(h->name));
		printf("\t%" PRId64 "\t%s\t%s\t", h->fence, when_text(since, h->since_ms, false), when_text(until, now + h->left_ms, false));
		text_tsv(stdout, h->worker, strlen(h->worker));
		putchar('\n');
	}
	return Q_OK;
}

static _Noreturn void
look(int mode, char *argv[])
{
	struct lock_held h;
	bool first = true;
	int64_t fence = 0;
	int rc;

	if (mode == CHECK && !text_int(argv[1], 1, INT64_MAX, &fence))
		prog_usage("--check: '%s' is not a fence, the number in Q_FENCE", argv[1]);
	tty = isatty(STDOUT_FILENO);
	prog_now();
	db = prog_open(mode == BREAK ? DB_ONCE : DB_READ);
	switch (mode) {
	case LIST:
		rc = lock_each(db, print, &first);
		break;
	case CHECK:
		rc = lock_check(db, argv[0], fence);
		break;
	default:
		prog_check(db, db_begin(db, false));
		if ((rc = lock_break(db, argv[0], &h)) == Q_OK) {
			prog_check(db, db_commit(db));
			print(&h, &first);
		} else if (rc == Q_NO) {
			db_rollback(db);
			prog_warn("%s: nobody has locked it", argv[0]);
		}
	}
	if (rc != Q_NO)
		prog_check(db, rc);
	prog_exit(rc);
}

int
main(int argc, char *argv[])
{
	static const char *const WANTS[] = { "--check takes a NAME and a FENCE", "--list takes no operand", "--break takes one NAME" };
	static const int OPERANDS[] = { 2, 0, 1 };
	bool runs = false, now_or_never = false;
	int c, n, mode = 0;

	prog_start(&self, true);
	while ((c = prog_option(argc, argv)) != -1) {
		runs |= strchr("nwlE", c) != NULL && c < CHECK;
		switch (c) {
		case 'n': now_or_never = true; break;
		case 'w': wait_ms = prog_duration("-w", optarg); break;
		case 'l': lock.lease_ms = prog_duration("-l", optarg); break;
		case 'E': not_free = (int)prog_int("-E", optarg, 0, 255); break;
		case 'j': json = true; break;
		default:
			if (mode != 0 && mode != c)
				prog_usage("--check, --list and --break exclude each other");
			mode = c;
		}
	}
	n = argc - optind;
	if (json && mode != LIST)
		prog_usage("-j goes with --list");
	if (mode != 0 && runs)
		prog_usage("-n, -w, -l and -E go with a command");
	if (mode != 0 && n != OPERANDS[mode - CHECK])
		prog_usage("%s", WANTS[mode - CHECK]);
	if (mode == 0 && n == 0)
		prog_usage("no NAME");
	if (mode == 0 && (n == 1 || strcmp(argv[optind + 1], "--") != 0))
		prog_usage("the command follows '--' after the name");
	if (mode == 0 && n == 2)
		prog_usage("no command after '--'");
	if (now_or_never && wait_ms != INT64_MAX)
		prog_usage("-n and -w exclude each other");
	if (lock.lease_ms < 1000)
		prog_usage("-l: a lease is at least 1s");
	if (n > 0)
		lock.name = prog_name("name", argv[optind]);
	if (mode != 0)
		look(mode, argv + optind);
	if (now_or_never)
		wait_ms = 0;
	run.spec.argv = argv + optind + 2;
	prog_now();			/* a bad Q_NOW is told before anything is done */
	locked();
}
