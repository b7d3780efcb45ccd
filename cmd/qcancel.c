/* qcancel - cancel jobs that are not running */

#include <stdlib.h>
#include <string.h>

#include "prog.h"

static const char HELP[] =
"usage: qcancel [-hVq] [-d FILE] ID... | -\n"
"       qcancel [-hVq] [-d FILE] -k KEY QUEUE\n"
"       qcancel [-hVq] [-d FILE] -e ENTITY QUEUE\n"
"Cancel jobs that do not run: pending, failed or dead.  The ids of those that it\n"
"cancelled are printed.  Doing it again is success.\n"
"  qcancel 42 43               qcancel - <dropped     ids or records, one a line\n"
"  qcancel -k order-7 mail     the job that has this key\n"
"  qcancel -e ana mail         all open jobs of this entity\n"
"  -k, --key KEY\n"
"  -e, --entity ENTITY\n"
"  -q, --quiet     print no ids\n"
"A job that runs or is done is named on standard error; the others are cancelled.\n"
"Exit: 0 they are cancelled, 1 one was too late, 65 a malformed id, 66 no such\n"
"job; the largest of these.\n";

enum { BATCH = 10000 };
static const struct option LONGS[] = { { "key", 1, NULL, 'k' }, { "entity", 1, NULL, 'e' }, { "quiet", 0, NULL, 'q' }, { NULL, 0, NULL, 0 } };
static struct prog self = { .name = "qcancel", .help = HELP, .shorts = "k:e:q", .longs = LONGS };

static const char *key, *queue;
static int64_t *ids;
static size_t n;
static int64_t now;

static int
collect(int64_t id, void *arg)
{
	(void)arg;
	if ((n & (n - 1)) == 0 && (ids = realloc(ids, (n == 0 ? 1 : 2 * n) * sizeof *ids)) == NULL)
		prog_die(Q_TEMP, "out of memory");
	ids[n++] = id;
	return Q_OK;
}

static int
cancel(struct db *db, size_t i, void *arg)
{
	const char *was;
	int rc;

	(void)arg;
	/* Looked up here, where nobody can give the key to another job. */
	if (key != NULL && (rc = job_of_key(db, queue, key, &ids[i])) != Q_OK)
		return rc;
	rc = job_cancel(db, ids[i], now, &was);
	return rc == Q_OK && strcmp(was, "cancelled") == 0 ? PROG_SAME : rc;
}

int
main(int argc, char *argv[])
{
	const char *entity = NULL;
	int c, rc, worst = Q_OK;
	struct db *db;

	prog_start(&self, true);
	now = prog_now();
	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case 'k': key = prog_name("key", optarg); break;
		case 'e': entity = prog_name("entity", optarg); break;
		case 'q': self.quiet = true; break;
		}
	argc -= optind;
	argv += optind;
	if (key != NULL && entity != NULL)
		prog_usage("only one of -k and -e");
	if (key != NULL || entity != NULL) {
		if (argc > 1)
			prog_usage("too many operands: '%s'", argv[1]);
		prog_queues(argv, argc, 1);
		queue = argv[0];
	} else if (argc == 0)
		prog_usage("no ID; '-' reads them from standard input");
	db = prog_open(DB_ONCE);
	if (key != NULL)
		collect(0, NULL);
	else if (entity != NULL)
		prog_check(db, job_of_entity(db, queue, entity, collect, NULL));
	else
		n = prog_ids(argc, argv, &ids, &worst);
	rc = prog_each(db, n, BATCH, false, cancel, NULL, ids);
	prog_exit(rc > worst ? rc : worst);
}
