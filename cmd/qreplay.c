/* qreplay - put dead, done or cancelled jobs back */

#include <stdlib.h>
#include <string.h>

#include "prog.h"

static const char HELP[] =
"usage: qreplay [-hVnq] [-d FILE] [--rate RATE] ID... | -\n"
"       qreplay [-hVnq] [-d FILE] [--rate RATE] [--state S] [-t TYPE] [-k KEY]\n"
"               [-e ENTITY] [--older-than DUR] [--newer-than DUR]\n"
"               [--reason TEXT] QUEUE...\n"
"Put dead jobs back, to be done anew: same id, key and history, attempts unspent.\n"
"  qreplay 42                     by id also done and cancelled ones\n"
"  qreplay -n --reason 'timed out' mail        which would it be?\n"
"  qreplay --rate 50/s --reason 'timed out' mail\n"
"  --rate RATE     let them become due at this pace: 50/s, 600/m, 1/90s\n"
"  --state S       dead (default), done, cancelled; several joined by commas\n"
"  -t, -k, -e      only this type, key, entity\n"
"  --older-than, --newer-than DUR   by the time of adding\n"
"  --reason TEXT   the last reason has this text in it\n"
"  -n, --dry-run   print the ids, with --rate when each would be due\n"
"  -q, --quiet     print no ids\n"
"Stopped half way it is simply run again.\n"
"Exit: 0 done, 1 a job is live, 65 a malformed id, 66 no such job; the largest of\n"
"these.\n";

enum { RATE = 256, BATCH = 100 };	/* jobs in one transaction: others get their turn */
static const struct option LONGS[] = {
	PROG_FILTERS, { "rate", 1, NULL, RATE }, { "dry-run", 0, NULL, 'n' }, { "quiet", 0, NULL, 'q' }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qreplay", .help = HELP, .shorts = "t:k:e:nq", .longs = LONGS };

static struct db *db;
static struct job_filter filter = { .states = ST_DEAD, .older_ms = -1, .newer_ms = -1 };
static int64_t now;

static struct chosen { const char *state; int64_t generation; } *chosen;	/* what the filter found, beside ids */
static int64_t *ids;
static size_t n;

static struct rate rate;
static int64_t start;			/* when the pace begins, and how many more are due at once then */
static size_t burst;

static int
choose(int64_t id, void *arg)
{
	struct job_look look;
	unsigned state;
	int rc = job_look(db, id, &look);

	(void)arg;
	if (rc == Q_NOINPUT) {
		db_clear(db);		/* purged since it was listed */
		return Q_OK;
	}
	if (rc != Q_OK)
		return rc;
	if (!job_state(look.state, &state) || !(state & filter.states))
		return Q_OK;
	if ((n & (n - 1)) == 0) {
		ids = realloc(ids, (n == 0 ? 1 : 2 * n) * sizeof *ids);
		chosen = realloc(chosen, (n == 0 ? 1 : 2 * n) * sizeof *chosen);
		if (ids == NULL || chosen == NULL)
			prog_die(Q_TEMP, "out of memory");
	}
	chosen[n] = (struct chosen){ look.state, look.generation };
	ids[n++] = id;
	return Q_OK;
}

/* The pace goes on behind what an earlier run of this queue has left, as far as those jobs, one a period, reach from now. */
static void
follow(const char *queue)
{
	int64_t left, last, ahead;

	prog_check(db, job_paced(db, queue, now, &left, &last));
	if (left == 0)
		return;
	if (last > WHEN_MAX)		/* of another program */
		last = WHEN_MAX;
	ahead = (last - now) * 1000 + rate.period_us;
	if (left < ahead / rate.period_us)
		ahead = (left + 1) * rate.period_us;
	if (now + ahead / 1000 > start)
		start = now + ahead / 1000;
}

/* From when on, and how many at once; queues: none if there are only ids. */
static void
pace(int nqueues, char *const *queues)
{
	char (*seen)[65] = NULL;
	struct job_look look;
	size_t nseen = 0, k;

	for (int i = 0; i < nqueues; i++)
		follow(queues[i]);
	for (size_t i = 0; i < n && nqueues == 0; i++) {
		if (job_look(db, ids[i], &look) != Q_OK) {
			db_clear(db);
			continue;
		}
		for (k = 0; k < nseen && strcmp(seen[k], look.queue) != 0; )
			k++;
		if (k < nseen)
			continue;
		if ((seen = realloc(seen, (nseen + 1) * sizeof *seen)) == NULL)
			prog_die(Q_TEMP, "out of memory");
		memcpy(seen[nseen++], look.queue, sizeof look.queue);
		follow(look.queue);
	}
	free(seen);
	burst = start == now ? (size_t)rate.burst - 1 : 0;
	if (start > WHEN_MAX || (n > burst && (int64_t)(n - burst - 1) > (WHEN_MAX - start) / 1000 * 1000000 / rate.period_us))
		prog_usage("--rate: the last of %zu jobs would be due after the year 9999", n);
}

static int64_t
due(size_t i)
{
	return rate.period_us == 0 || i <= burst ? start : start + (int64_t)(i - burst) * rate.period_us / 1000;
}

static int
replay(struct db *d, size_t i, void *arg)
{
	struct job_look look;
	int rc;

	(void)arg;
	if (chosen != NULL) {		/* another run, a worker or a person has had it meanwhile */
		if ((rc = job_look(d, ids[i], &look)) == Q_NOINPUT)
			db_clear(d);
		else if (rc != Q_OK)
			return rc;
		else if (strcmp(look.state, chosen[i].state) == 0 && look.generation == chosen[i].generation)
			return job_replay(d, ids[i], due(i));
		return PROG_SAME;
	}
	return job_replay(d, ids[i], due(i));
}

static int
dry_run(void)
{
	char at[WHEN_TEXT];
	int rc, worst = Q_OK;

	for (size_t i = 0; i < n; i++) {
		rc = job_replayable(db, ids[i]);
		if (rc != Q_OK && rc != Q_NO && rc != Q_NOINPUT)
			prog_check(db, rc);
		if (rc != Q_OK) {
			prog_warn("%s", db_message(db));
			db_clear(db);
			worst = rc > worst ? rc : worst;
		} else if (!self.quiet && rate.period_us > 0)
			printf("%lld\t%s\n", (long long)ids[i], when_text(at, due(i), true));
		else if (!self.quiet)
			printf("%lld\n", (long long)ids[i]);
	}
	return worst;
}

int
main(int argc, char *argv[])
{
	bool filtered = false, dry = false, by_id;
	int c, rc, worst = Q_OK;
	int64_t id;
	const char *why;

	prog_start(&self, true);
	now = start = prog_now();
	while ((c = prog_option(argc, argv)) != -1) {
		if (prog_filter(c, &filter)) {
			filtered = true;
			continue;
		}
		switch (c) {
		case RATE:
			if (!rate_parse(optarg, &rate, &why))
				prog_usage("--rate: '%s' %s", optarg, why);
			break;
		case 'n': dry = true; break;
		case 'q': self.quiet = true; break;
		}
	}
	argc -= optind;
	argv += optind;
	if (filter.states & ST_OPEN)
		prog_usage("--state: only dead, done and cancelled jobs are replayed");
	if (argc == 0)
		prog_usage(filtered ? "no QUEUE" : "no ID and no QUEUE; '-' reads ids from standard input");
	by_id = strcmp(argv[0], "-") == 0 || text_int(argv[0], 0, INT64_MAX, &id);
	if (by_id && filtered)
		prog_usage("job ids take no filter");
	if (!by_id)
		prog_queues(argv, argc, 1);
	filter.queues = argv;
	filter.nqueues = argc;
	db = prog_open(dry ? DB_READ : DB_ONCE);
	if (by_id)
		n = prog_ids(argc, argv, &ids, &worst);
	else
		prog_check(db, job_list(db, &filter, choose, NULL));
	if (rate.period_us > 0)
		pace(by_id ? 0 : argc, argv);
	rc = dry ? dry_run() : prog_each(db, n, BATCH, true, replay, NULL, ids);
	prog_exit(rc > worst ? rc : worst);
}
