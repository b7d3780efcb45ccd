/* qpause - stop queues, and let them go on */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prog.h"

static const char HELP[] =
"usage: qpause [-hV] [-d FILE] QUEUE [REASON]\n"
"       qpause [-hV] [-d FILE] --all [REASON]\n"
"       qpause [-hV] [-d FILE] -r QUEUE | --all\n"
"       qpause [-hV] [-d FILE]\n"
"Stop the claims of a queue, or of all; without operands list what is paused.\n"
"  qpause mail 'partner down, see ticket 7'\n"
"  qpause --all; qpause -r --all\n"
"  -a, --all     every queue, those to come, too\n"
"  -r, --resume  go on.  A queue goes on when neither it nor all are paused\n"
"It holds from the next claim on: what runs is finished, and jobs can be added.\n"
"Pausing again replaces the reason.\n"
"Exit: 0 done, also if it was so before; 65 a bad name or reason.\n";

static const struct option LONGS[] = { { "all", 0, NULL, 'a' }, { "resume", 0, NULL, 'r' }, { NULL, 0, NULL, 0 } };
static struct prog self = { .name = "qpause", .help = HELP, .shorts = "ar", .longs = LONGS };

static struct db *db;

/* ---- what is paused ---- */

static bool
is_pause(const struct setting *set)
{
	return strcmp(set->kind, "queue") == 0 && strcmp(set->field, "paused") == 0;
}

static int
print(const struct setting *set, const char *reason, int64_t since_ms, void *arg)
{
	const char *queue = *set->name != '\0' ? set->name : "*";	/* no queue has that name */
	char since[WHEN_TEXT];
	bool *first = arg;
	int width;

	if (!is_pause(set))
		return Q_OK;
	if (!isatty(STDOUT_FILENO)) {
		text_tsv(stdout, queue, strlen(queue));
		printf("\t%s\t", when_text(since, since_ms, false));
		text_tsv(stdout, reason, strlen(reason));
	} else {
		if (*first)
			printf("%-20s %-13s %s\n", "QUEUE", "SINCE", "REASON");
		*first = false;
		width = text_show(stdout, queue, strlen(queue), 0);
		printf("%*s %-13s ", width < 20 ? 20 - width : 0, "", when_relative(since, since_ms, prog_now()));
		text_show(stdout, *reason != '\0' ? reason : "-", *reason != '\0' ? strlen(reason) : 1, 0);
	}
	putchar('\n');
	return Q_OK;
}

static _Noreturn void
list(void)
{
	bool first = true;

	signal(SIGPIPE, SIG_DFL);
	db = prog_open(DB_READ);
	prog_check(db, setting_each(db, print, &first));
	prog_exit(Q_OK);
}

/* ---- pausing and resuming ---- */

/* queue "": all. */
static _Noreturn void
stop(const char *queue, const char *reason)
{
	bool known = true, other = false;

	prog_check(db, db_begin(db, false));
	setting_pause(db, queue, reason, prog_now());
	if (*queue != '\0' && job_queue_known(db, queue, &known) == Q_OK && text_queue(reason))
		job_queue_known(db, reason, &other);
	if (db_status(db) != Q_OK)
		db_rollback(db);
	prog_check(db, db_status(db));
	prog_check(db, db_commit(db));
	if (!known)
		prog_warn("no jobs in queue '%s' yet; it is paused all the same", queue);
	if (other)
		prog_warn("'%s' is the reason, and not paused; one queue at a time", reason);
	prog_exit(Q_OK);
}

struct left { bool all; int queues; };		/* pauses that are still there */

static int
count(const struct setting *set, const char *reason, int64_t since_ms, void *arg)
{
	struct left *left = arg;

	(void)reason;
	(void)since_ms;
	if (is_pause(set) && *set->name == '\0')
		left->all = true;
	else if (is_pause(set))
		left->queues++;
	return Q_OK;
}

static _Noreturn void
go_on(const char *queue)
{
	struct left left = { .all = false };
	struct setting set = { .kind = "queue", .field = "paused" };
	const char *reason;
	int64_t since_ms;
	bool known = true;

	snprintf(set.name, sizeof set.name, "%s", queue);
	prog_check(db, db_begin(db, false));
	if (*queue != '\0' && setting_get(db, &set, &reason, &since_ms) == Q_NO)
		job_queue_known(db, queue, &known);
	setting_pause(db, queue, NULL, prog_now());
	setting_each(db, count, &left);
	if (db_status(db) != Q_OK)
		db_rollback(db);
	prog_check(db, db_status(db));
	prog_check(db, db_commit(db));
	if (left.all)
		prog_warn("all queues are still paused; qpause -r --all lets them go on");
	else if (*queue == '\0' && left.queues > 0)
		prog_warn("queues that are still paused by themselves: %d; qpause lists them", left.queues);
	else if (!known)
		prog_warn("no jobs in queue '%s', and it was not paused; qpause lists what is", queue);
	prog_exit(Q_OK);
}

int
main(int argc, char *argv[])
{
	const char *fault, *reason = "";
	bool resume = false, all = false;
	int c, n;

	prog_start(&self, true);
	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case 'a': all = true; break;
		case 'r': resume = true; break;
		}
	n = argc - optind;
	argv += optind;
	if (n == 0 && !all && !resume)
		list();
	if (!all)
		prog_queues(argv, n > 0, 1);
	if (n > !all + !resume)
		prog_usage(resume ? "too many operands: '%s'" : "too many operands: '%s'; a reason is one word, in quotes", argv[!all + !resume]);
	if (!resume && n > !all)
		reason = argv[!all];
	if (*reason != '\0' && (fault = text_name_fault(reason)) != NULL)
		prog_die(Q_DATA, "the reason %s", fault);
	db = prog_open(DB_ONCE);
	if (resume)
		go_on(all ? "" : argv[0]);
	stop(all ? "" : argv[0], reason);
}
