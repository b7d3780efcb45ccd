/* qrate - wait for a token of a shared rate, and for a place under its concurrency, then run a command */

#include <inttypes.h>
#include <string.h>

#include "run.h"

static const char HELP[] =
"usage: qrate [-hV] [-d FILE] [-n | -w DUR] NAME [-- CMD...]\n"
"       qrate [-hV] [-d FILE] --block DUR NAME\n"
"Wait until rate.NAME lets one more through, then run CMD; its output, input and\n"
"exit status are as without qrate.  Without CMD, exit 0 when it is the time.\n"
"  qset rate.partner=600/m rate.partner.concurrency=5\n"
"  qrate partner -- curl -fsS https://partner.example/v1/orders\n"
"  qrate -w 30s partner -- ./sync || [ $? = 75 ]\n"
"  qrate --block 2m partner      # the server said 'Retry-After: 120'\n"
"  -n, --nowait         exit 75 if it is not the time\n"
"  -w, --wait DUR       exit 75 if it is not the time within DUR\n"
"  --block DUR          let nobody through for so long, unless it is blocked for\n"
"                       longer already; 0 ends a block\n"
"With a concurrency CMD holds a place, and so do the live claims of queues whose\n"
"limit is NAME.  A killed qrate's place is free 30 seconds later.\n"
"Exit: as CMD, 128+N if a signal ended it; 75 not the time, or the file is busy,\n"
"78 rate.NAME is not set, 126 and 127 CMD cannot be run.\n";

enum {
	BLOCK = 256,			/* an option without a letter */
	LEASE_MS = 30 * 1000,		/* of a place */
	SLICE_MS = 1000			/* the longest between two looks */
};
static const struct option LONGS[] = {
	{ "nowait", 0, NULL, 'n' }, { "wait", 1, NULL, 'w' }, { "block", 1, NULL, BLOCK }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qrate", .help = HELP, .shorts = "+nw:", .longs = LONGS };

static int renew(struct db *, void *);
static struct run run = { .renew = renew };
static struct rate_user user = { .lease_ms = LEASE_MS };
static int64_t wait_ms = -1, block_ms = -1;	/* -1: not said */

static struct db *db;

/* ---- waiting ------------------------------------------------------------- */

static int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Wait for the token and the place, or end the program. */
static void
wait_turn(void)
{
	int64_t end = wait_ms == -1 ? INT64_MAX : when_elapsed() + wait_ms, version, at, left;
	bool ill = false;
	int rc;

	for (;;) {
		if ((version = db_data_version(db)) == -1)
			prog_check(db, db_status(db));
		if ((rc = rate_try(db, &user, prog_now(), &at)) == Q_OK)
			return;
		left = end - when_elapsed();
		if (rc == Q_NO && left <= 0)
			prog_exit(Q_TEMP);
		if (rc != Q_NO && (rc != Q_TEMP || left <= 0))
			prog_check(db, rc);
		if (rc == Q_TEMP) {
			if (!ill)
				prog_warn("%s: %s; still trying", user.name, db_message(db));
			ill = true;
			at = prog_now() + RUN_RETRY_MS;
		}
		prog_nap(db, version, least(least(at - prog_now(), left), SLICE_MS));
		if (prog_signal != 0)
			prog_killed(prog_signal);
	}
}

/* ---- while it runs ------------------------------------------------------- */

static int
renew(struct db *file, void *unused)
{
	bool late;
	int rc = rate_renew(file, &user, when_now(), &late);

	(void)unused;
	if (late)
		prog_warn("%s: its place was lost, because the machine slept or the file could not be written; the command runs on, "
		    "perhaps as one too many", user.name);
	return rc;
}

/* A place that is not given back is free when its lease is over. */
static void
leave(void)
{
	if (rate_leave(db, &user) != Q_OK)
		prog_warn("%s: %s; its place is free in 30 seconds", user.name, db_message(db));
}

/* ---- beginning and end --------------------------------------------------- */

static void
block(void)
{
	prog_check(db, db_begin(db, false));
	if (rate_known(db, user.name) == Q_OK && block_ms > 0)
		rate_block(db, user.name, prog_now() + block_ms);
	else if (db_status(db) == Q_OK)
		rate_unblock(db, user.name);
	prog_check(db, db_status(db));
	prog_check(db, db_commit(db));
	prog_exit(Q_OK);
}

static void
options(int argc, char *argv[])
{
	bool no_wait = false;
	int c;

	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case 'n': no_wait = true; break;
		case 'w': wait_ms = prog_duration("-w", optarg); break;
		case BLOCK: block_ms = prog_duration("--block", optarg); break;
		}
	if (no_wait && wait_ms != -1)
		prog_usage("-n and -w exclude each other");
	if (block_ms != -1 && (no_wait || wait_ms != -1))
		prog_usage("--block does not wait: no -n or -w");
	wait_ms = no_wait ? 0 : wait_ms;
	if (optind == argc)
		prog_usage("no NAME");
	user.name = argv[optind];
	if (block_ms != -1 && optind + 1 < argc)
		prog_usage("too many operands: '%s'", argv[optind + 1]);
	if (optind + 1 < argc && strcmp(argv[optind + 1], "--") != 0)
		prog_usage("the command follows '--' after the name");
	if (optind + 2 == argc)
		prog_usage("no command after '--'");
	if (!text_queue(user.name))
		prog_die(Q_DATA, "bad rate name '%s'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number",
		    user.name);
	if (optind + 1 < argc)
		run.spec.argv = argv + optind + 2;
	prog_now();			/* a bad Q_NOW is told before anything is done */
}

int
main(int argc, char *argv[])
{
	int64_t at;

	prog_start(&self, true);
	options(argc, argv);
	user.worker = prog_worker();
	if (run.spec.argv != NULL)
		run_start(&run);
	else
		prog_catch();
	db = prog_open(DB_ONCE);
	if (block_ms != -1)
		block();
	wait_turn();
	at = when_elapsed();
	prog_poll(NULL, 0, 0);
	if (run.spec.argv == NULL || prog_signal != 0) {
		leave();
		if (prog_signal != 0)
			prog_killed(prog_signal);
		prog_exit(Q_OK);
	}
	run.what = user.name;
	run.lease_ms = user.fence != 0 ? LEASE_MS : INT64_MAX / 2;	/* nothing to renew */
	run_begin(&run, at, "", 0);
	run_watch(&run, db);
	leave();
	prog_exit(run_exit(&run));
}
