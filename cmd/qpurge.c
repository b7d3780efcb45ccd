/* qpurge - retention: delete finished jobs by rule, in two stages */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "prog.h"
#include "purge.h"

static const char HELP[] =
"usage: qpurge [-hVjnq] [-d FILE] [--as-of TIME] [--grace DUR] [--limit N]\n"
"              [--ids FILE]\n"
"       qpurge [-hVjq] [-d FILE] --undo\n"
"Delete the done and cancelled jobs that are older than their queue keeps them\n"
"(queue.NAME.keep, 30d if not set): this run marks them, one a grace time later\n"
"deletes them.  Dead jobs stay.  Prints what it did, queue, jobs, cutoff.\n"
"  3 3 * * * qpurge -q                each night\n"
"  qpurge -n                          what would happen now, and what waits\n"
"  -j, --json     one object a line\n"
"  -n, --dry-run  show, change nothing\n"
"  -q, --quiet    no output but problems\n"
"  --as-of TIME   count ages from TIME, the name of the run (default now)\n"
"  --grace DUR    between mark and deletion (default 20h)\n"
"  --limit N      mark up to N jobs of a queue (default: ten times the usual of\n"
"                 earlier runs, or 1000 if that is more)\n"
"  --ids FILE     append ID and queue of each job that is deleted to FILE\n"
"  --undo         forget all marks: nothing that is marked now is deleted\n"
"Exit: 0 done, 1 a queue has more to go than the limit and was left out.\n";

enum { AS_OF = 256, GRACE, LIMIT, IDS, UNDO };
static const struct option LONGS[] = {
	{ "json", 0, NULL, 'j' }, { "dry-run", 0, NULL, 'n' }, { "quiet", 0, NULL, 'q' }, { "as-of", 1, NULL, AS_OF },
	{ "grace", 1, NULL, GRACE }, { "limit", 1, NULL, LIMIT }, { "ids", 1, NULL, IDS }, { "undo", 0, NULL, UNDO },
	{ NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qpurge", .help = HELP, .shorts = "jnq", .longs = LONGS };

static bool json, dry;

static void
print(const struct purge_line *l, void *unused)
{
	static const char *const WORDS[] = { "deleted", "marked", "waiting", "refused", "spared" };
	char at[WHEN_TEXT];

	(void)unused;
	when_text(at, l->cutoff_ms, false);
	if (l->what == PURGE_REFUSED) {
		prog_warn("%s: %" PRId64 " jobs finished before %s, and more than %" PRId64 " are unusual; left alone; "
		    "next: if they are to go, qpurge --limit %" PRId64, l->queue, l->jobs, at, l->limit, l->jobs + l->jobs / 10);
		if (!json)
			return;
	}
	if (self.quiet)
		return;
	if (json) {
		printf("{\"did\":\"%s\",\"queue\":", WORDS[l->what]);
		text_json(stdout, l->queue, strlen(l->queue));
		printf(",\"jobs\":%" PRId64 ",\"cutoff_at\":\"%s\",\"cutoff_ms\":%" PRId64 ",\"dry\":%s}\n", l->jobs, at, l->cutoff_ms,
		    dry ? "true" : "false");
		return;
	}
	printf("%s\t", WORDS[l->what]);
	text_tsv(stdout, l->queue, strlen(l->queue));
	printf("\t%" PRId64 "\t%s\n", l->jobs, at);
}

static bool
pause_for(int64_t ms)
{
	prog_poll(NULL, 0, ms);
	return prog_signal != 0;
}

static FILE *
ids_file(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	FILE *f = fd == -1 ? NULL : fdopen(fd, "a");

	if (f == NULL)
		prog_die(Q_CREATE, "--ids: %s: %s; nothing was changed", name, strerror(errno));
	return f;
}

static _Noreturn void
undo(void)
{
	int64_t now = prog_now();
	struct db *db = prog_open(DB_ONCE);

	prog_check(db, purge_undo(db, now, print, NULL));
	prog_exit(Q_OK);
}

int
main(int argc, char *argv[])
{
	struct purge p = { .grace_ms = INT64_C(20) * 60 * 60 * 1000, .limit = -1, .pause = pause_for };
	const char *as_of = NULL, *why;
	bool undoes = false, others = false;
	struct db *db;
	int c, rc;

	prog_start(&self, true);
	while ((c = prog_option(argc, argv)) != -1) {
		others |= c != UNDO && c != 'q' && c != 'j';
		switch (c) {
		case 'j': json = true; break;
		case 'n': dry = true; break;
		case 'q': self.quiet = true; break;
		case AS_OF: as_of = optarg; break;
		case GRACE: p.grace_ms = prog_duration("--grace", optarg); break;
		case LIMIT: p.limit = prog_int("--limit", optarg, 0, INT64_MAX); break;
		case IDS: p.ids_name = optarg; break;
		default: undoes = true;
		}
	}
	if (optind < argc)
		prog_usage("no operand is taken: what goes is set with qset queue.NAME.keep");
	if (undoes && others)
		prog_usage("--undo goes with -j and -q alone");
	if (undoes)
		undo();
	p.now = p.as_of = prog_now();
	if (as_of != NULL && !when_instant(as_of, NULL, p.now, &p.as_of, &why))
		prog_usage("--as-of: '%s' %s", as_of, why);
	if (p.as_of > p.now)
		prog_usage("--as-of: '%s' is in the future", as_of);
	p.dry = dry;
	prog_catch();
	db = prog_open(dry ? DB_READ : DB_STAY);
	if (p.ids_name != NULL)
		p.ids = ids_file(p.ids_name);
	rc = purge_run(db, &p, print, NULL);
	if (p.ids != NULL && fclose(p.ids) == EOF && rc <= Q_NO)
		prog_die(Q_IO, "--ids: %s: %s", p.ids_name, strerror(errno));
	if (prog_signal != 0 && rc == Q_TEMP) {
		fflush(stdout);
		prog_killed(prog_signal);
	}
	if (rc != Q_NO)
		prog_check(db, rc);
	prog_exit(rc);
}
