/* qadd - add jobs to a queue */

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prog.h"

static const char HELP[] =
"usage: qadd [-hVjnq] [-d FILE] [-k KEY] [-t TYPE] [-e ENTITY] [-p N] [--in DUR]\n"
"            [--at WHEN] [--after T] [--tz ZONE] [--jitter DUR] [--event-time T]\n"
"            [--attempts N] [--window DUR] [--backoff BASE..CAP]\n"
"            [--replace | --strict] [--check-json] [--empty]\n"
"            [-0 | --lines | --jsonl] [--batch N] [--expect N]\n"
"            QUEUE [PAYLOAD | -]\n"
"Add jobs; print one id a job. Without PAYLOAD standard input is one payload.\n"
"  qadd mail '{\"to\":\"ana\"}'                  qadd -k order-7 --in 1h remind 7\n"
"  jq -c '.[]' list.json | qadd --lines mail   qls -j old | qadd --jsonl new\n"
"  -k, --key KEY     add once: a key that is known gives its first id again\n"
"  --replace, --strict   known key: new payload and time; refuse another payload\n"
"  -t, -e, -p        type; entity (never two at once); priority 0 to 9, 0 first\n"
"  --in, --at        10m; RFC 3339, @EPOCH, 'tomorrow 09:00', 10:00 (with --tz)\n"
"  --after, --jitter count from T and not from now; spread over DUR\n"
"  --event-time T    order within the entity (default: the due time)\n"
"  --attempts, --window, --backoff   retry policy (20, none, 5s..10m)\n"
"  --lines, -0, --jsonl   a job a line, a NUL-ended record, a JSON record\n"
"  --batch N, --expect N  commit every N; refuse any other number of jobs\n"
"  --empty, --check-json  take an empty payload; refuse what is not JSON\n"
"  -n, -j, -q        show and add nothing; ids as JSON; no output\n"
"Exit: 0 added or known, 65 bad data (nothing added), 74 disk or output.\n";

enum { AT = 256, IN, AFTER, TZ, JITTER, EVENT, ATTEMPTS, WINDOW, BACKOFF, REPLACE, STRICT, CHECK, EMPTY, LINES, JSONL, BATCH, EXPECT };
static const struct option LONGS[] = {
	{ "key", 1, NULL, 'k' }, { "type", 1, NULL, 't' }, { "entity", 1, NULL, 'e' }, { "priority", 1, NULL, 'p' },
	{ "at", 1, NULL, AT }, { "in", 1, NULL, IN }, { "after", 1, NULL, AFTER }, { "tz", 1, NULL, TZ },
	{ "jitter", 1, NULL, JITTER }, { "event-time", 1, NULL, EVENT }, { "attempts", 1, NULL, ATTEMPTS },
	{ "window", 1, NULL, WINDOW }, { "backoff", 1, NULL, BACKOFF }, { "replace", 0, NULL, REPLACE },
	{ "strict", 0, NULL, STRICT }, { "check-json", 0, NULL, CHECK }, { "empty", 0, NULL, EMPTY },
	{ "null", 0, NULL, '0' }, { "lines", 0, NULL, LINES }, { "jsonl", 0, NULL, JSONL }, { "batch", 1, NULL, BATCH },
	{ "expect", 1, NULL, EXPECT }, { "json", 0, NULL, 'j' }, { "dry-run", 0, NULL, 'n' }, { "quiet", 0, NULL, 'q' },
	{ NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qadd", .help = HELP, .shorts = "k:t:e:p:0jnq", .longs = LONGS };

enum { BULK_MAX = 100000, TOLD_MAX = 10, EARLY_IDS = 4096, RECORD_MAX = 8 * JOB_PAYLOAD_MAX };

static struct job_new job = { .priority = -1, .due_ms = -1, .event_ms = -1, .attempts = -1, .window_ms = -1, .base_ms = -1, .cap_ms = -1 };
static struct when_due due;		/* what the options say of the time */
static bool dry, json, check_json, allow_empty, after;	/* after: times count from --after */
static int mode;			/* 0: one payload, else '0', LINES, JSONL */
static int64_t now, expect = -1, batch = -1, added;	/* added: by earlier batches */
static struct db *db;

static struct { int64_t id, line; enum job_added added; } *results;

static const char *
where(int64_t line)
{
	static char text[40];

	if (mode == 0)
		return "";
	snprintf(text, sizeof text, "stdin:%" PRId64 ": ", line);
	return text;
}

/* The end of a refusal. */
static const char *
kept(const char *none)
{
	static char text[64];

	if (added == 0)
		return none;
	snprintf(text, sizeof text, "; %" PRId64 " jobs of earlier batches were added", added);
	return text;
}

static void
once(const char *what)
{
	if (mode != 0)
		prog_usage("%s: only one of --lines, -0, --jsonl", what);
}

static void
options(int argc, char *argv[])
{
	const char *why, *from = NULL, *event = NULL;
	int c;

	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case 'k': job.key = optarg; break;
		case 't': job.type = optarg; break;
		case 'e': job.entity = optarg; break;
		case 'p': job.priority = prog_int("-p", optarg, 0, 9); break;
		case 'j': json = true; break;
		case 'n': dry = true; break;
		case 'q': self.quiet = true; break;
		case AT: due.at = optarg; break;
		case IN: due.in = prog_duration("--in", optarg); break;
		case AFTER: from = optarg; break;
		case TZ: due.zone = job.zone = optarg; break;
		case JITTER: due.jitter_ms = prog_duration("--jitter", optarg); break;
		case EVENT: event = optarg; break;
		case ATTEMPTS: job.attempts = prog_int("--attempts", optarg, 1, 1000000); break;
		case WINDOW: job.window_ms = prog_duration("--window", optarg); break;
		case BACKOFF:
			if (!when_range(optarg, &job.base_ms, &job.cap_ms, &why))
				prog_usage("--backoff: '%s' %s", optarg, why);
			break;
		case REPLACE:
		case STRICT:
			if (job.dup != DUP_KEEP)
				prog_usage("only one of --replace, --strict");
			job.dup = c == REPLACE ? DUP_REPLACE : DUP_STRICT;
			break;
		case CHECK: check_json = true; break;
		case EMPTY: allow_empty = true; break;
		case '0': once("-0"); mode = '0'; break;
		case LINES: once("--lines"); mode = LINES; break;
		case JSONL: once("--jsonl"); mode = JSONL; break;
		case BATCH: batch = prog_int("--batch", optarg, 1, BULK_MAX); break;
		case EXPECT: expect = prog_int("--expect", optarg, 0, INT64_MAX); break;
		}
	now = due.base = prog_now();
	if (due.zone != NULL && !when_zone(due.zone, &why))
		prog_usage("--tz: '%s' %s", due.zone, why);
	after = from != NULL;
	if (after && !when_instant(from, due.zone, now, &due.base, &why))
		prog_usage("--after: '%s' %s", from, why);
	if (event != NULL && !when_instant(event, due.zone, now, &job.event_ms, &why))
		prog_usage("--event-time: '%s' %s", event, why);
	if (!when_due(&due, &job.due_ms, &why))		/* at once, before any input is read */
		prog_usage("%s: '%s' %s", due.at != NULL ? "--at" : "--in", due.at != NULL ? due.at : "", why);
	if (mode != 0 && job.key != NULL)
		prog_usage("-k with many jobs would make them one; give keys in --jsonl records");
	if (dry)
		signal(SIGPIPE, SIG_DFL);	/* changes nothing: a reader that had enough is no failure */
	if (mode == 0 && (batch != -1 || expect != -1))
		prog_usage("--batch and --expect are for --lines, -0 and --jsonl");
}

/* ---- reading: nothing is locked while standard input is slow ---- */

static bool
is_blank(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strchr(" \t\r", p[i]) == NULL || p[i] == '\0')
			return false;
	return true;
}

/* What one record says, on top of the options. */
static void
read_job(struct job_new *j, const char *rec, size_t n, int64_t line)
{
	struct when_due d = due;
	const char *why;

	now = prog_now();		/* input may have been slow: a delay counts from here */
	if (!after)
		d.base = now;
	*j = job;
	if (mode == JSONL) {
		j->due_ms = -1;
		if (!record_parse(rec, n, now, j, &why))
			prog_die(Q_DATA, "%s%s%s", where(line), why, kept(""));
		if (j->queue == NULL)
			prog_die(Q_DATA, "%sno queue; name it in the record or as operand%s", where(line), kept(""));
	} else {
		j->payload = rec;
		j->payload_len = n;
	}
	d.share = due.jitter_ms != 0 ? job_share(j->queue, j->key) : 0;
	if ((mode != JSONL || j->due_ms == -1) && !when_due(&d, &j->due_ms, &why))
		prog_die(Q_DATA, "%s%s%s", where(line), why, kept(""));
	if ((j->payload == NULL || j->payload_len == 0) && !allow_empty)
		prog_die(Q_DATA, "%sthe payload is empty; did its producer fail? --empty allows it%s", where(line), kept(""));
	if (j->payload == NULL)
		j->payload = "";
	if (check_json && !text_is_json(j->payload, j->payload_len))
		prog_die(Q_DATA, "%sthe payload is not JSON%s", where(line), kept(""));
	if (job_check(db, j) != Q_OK)
		prog_die(Q_DATA, "%s%s%s", where(line), db_message(db), kept(""));
}

/* Read at most `limit` jobs into the spool; how many. */
static int64_t
read_jobs(struct reader *r, struct spool *spool, int64_t limit)
{
	struct job_new j;
	int64_t n = 0;
	size_t len;
	char *rec;
	int rc = Q_OK;

	while (n < limit && (rc = reader_next(r, &rec, &len)) == Q_OK) {
		if (mode == '0' && !r->terminated)
			prog_die(Q_DATA, "%sthe last record has no NUL at its end; was its producer cut off?%s", where(r->number), kept(""));
		if (mode != '0' && is_blank(rec, len))
			continue;
		read_job(&j, rec, len, r->number);
		spool_put(spool, &j, r->number);
		n++;
	}
	if (rc == Q_DATA)
		prog_die(Q_DATA, "%sthe record has more than %zu bytes%s", where(r->number), r->max, kept(""));
	if (rc == Q_IO || rc == Q_TEMP)
		prog_die(Q_IO, "standard input: %s%s", strerror(errno), kept("; nothing was added"));
	if (spool_rewind(spool) != Q_OK)
		prog_die(Q_IO, "temporary file: %s; see TMPDIR%s", strerror(errno), kept("; nothing was added"));
	return n;
}

/* ---- adding ---- */

/* What is printed of n jobs, which the caller frees; NULL: out of memory. */
static char *
ids(int64_t n, size_t *len)
{
	char *text = NULL;
	FILE *f = text_memory(&text, len);

	for (int64_t i = 0; f != NULL && i < n && !self.quiet; i++)
		if (json)
			fprintf(f, "{\"id\":%" PRId64 ",\"new\":%s}\n", results[i].id, results[i].added == ADD_NEW ? "true" : "false");
		else
			fprintf(f, "%" PRId64 "\n", results[i].id);
	return f != NULL && fclose(f) == 0 ? text : NULL;
}

/* To standard output what goes there without waiting; how much, or -1 with errno. */
static ssize_t
tell_early(const char *text, size_t len)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
	size_t done = 0;
	ssize_t n = 0;

	when_nudge(100);		/* a terminal or a shared pipe may be ready for less than this */
	while (n != -1 && done < len && poll(&out, 1, 0) == 1)
		if ((n = write(STDOUT_FILENO, text + done, len - done)) > 0)
			done += (size_t)n;
	when_nudge(0);
	return n == -1 && errno != EINTR && errno != EAGAIN ? -1 : (ssize_t)done;
}

/* A known key, met by another payload. */
static void
tell_differs(int64_t id, int64_t line)
{
	prog_warn("%sthe key already holds job %" PRId64 " with another payload, which was kept; see --replace, --strict", where(line), id);
}

/* What adding would leave in the file. */
static void
show(const struct job_new *j, int64_t line)
{
	struct job view = { .id = -1, .priority = j->priority != -1 ? j->priority : 5, .generation = 1, .added_ms = now,
	    .due_ms = j->due_ms, .event_ms = j->event_ms != -1 ? j->event_ms : j->due_ms, .claimed_ms = -1, .settled_ms = -1,
	    .exit = -1, .signal = -1, .count = -1, .blocked_by = -1, .queue = j->queue, .type = j->type, .key = j->key,
	    .entity = j->entity, .state = "pending", .zone = j->zone, .payload = j->payload, .payload_len = j->payload_len,
	    .attempts = j->attempts, .base_ms = j->base_ms, .cap_ms = j->cap_ms, .window_ms = j->window_ms };
	enum job_added what;
	int64_t id;
	int rc;

	if ((rc = job_plan(db, j, now, &id, &what)) != Q_OK)
		prog_die(rc, "%s%s", rc == Q_DATA ? where(line) : "", db_message(db));
	if (what == ADD_KNOWN || what == ADD_DIFFERS)
		prog_check(db, job_get(db, id, &view));
	else if (id != 0)
		view.id = id;
	job_print(stdout, &view);
	if (what == ADD_DIFFERS && job.dup == DUP_KEEP)
		tell_differs(id, line);
}

/* Adds n jobs of the spool (NULL: the one in `single`) in one transaction. */
static void
add(struct spool *spool, const struct job_new *single, int64_t n)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
	struct job_new j;
	int64_t line = 1, i;
	size_t len = 0;
	ssize_t told = 0;
	char *text;
	int rc;

	if (!self.quiet)
		poll(&out, 1, -1);
	now = prog_now();
	if ((rc = db_begin(db, true)) != Q_OK)
		prog_die(rc, "%s%s", db_message(db), kept(""));
	for (i = 0; i < n; i++) {
		if (spool == NULL)
			j = *single;
		else if ((rc = spool_get(spool, &j, &line)) != Q_OK) {
			db_rollback(db);
			prog_die(rc, "temporary file: %s%s", strerror(errno), kept("; nothing was added"));
		}
		results[i].line = line;
		if ((rc = job_add(db, &j, now, &results[i].id, &results[i].added)) != Q_OK) {
			db_rollback(db);
			prog_die(rc, "%s%s%s", rc == Q_DATA ? where(line) : "", db_message(db), kept(""));
		}
	}
	/* Output that cannot be written stores nothing; but nothing that could block happens under the lock. */
	if ((text = ids(n, &len)) == NULL || (len <= EARLY_IDS && (told = tell_early(text, len)) == -1)) {
		rc = errno;
		db_rollback(db);
		prog_die(Q_IO, "standard output: %s%s", strerror(rc), kept("; nothing was added"));
	}
	if ((rc = db_commit(db)) != Q_OK)
		prog_die(rc, "%s%s", db_message(db), kept(""));
	if (fwrite(text + told, 1, len - (size_t)told, stdout) != len - (size_t)told || fflush(stdout) == EOF)
		prog_die(Q_IO, "standard output: %s; %" PRId64 " jobs were added, their ids are not all told",
		    strerror(errno), added + n);
	free(text);
	for (i = line = 0; i < n; i++)
		if (mode != 0 && job.dup == DUP_KEEP && results[i].added == ADD_DIFFERS && line++ < TOLD_MAX)
			tell_differs(results[i].id, results[i].line);
	if (line > TOLD_MAX)
		prog_warn("... and %" PRId64 " more keys that hold another payload", line - TOLD_MAX);
}

static void
add_one(char *const *operand)
{
	struct reader r;
	struct job_new j;
	struct job held;
	char *rec;
	size_t n;
	int rc;

	if (operand[0] != NULL && strcmp(operand[0], "-") != 0) {
		rec = operand[0];
		n = strlen(rec);
	} else {
		if (operand[0] == NULL && isatty(STDIN_FILENO))
			prog_usage("no PAYLOAD; '-' reads it from the terminal");
		reader_init(&r, STDIN_FILENO, -1, JOB_PAYLOAD_MAX);
		if ((rc = reader_next(&r, &rec, &n)) == Q_DATA)
			prog_die(Q_DATA, "the payload has more than %d bytes; store it elsewhere and queue its name", JOB_PAYLOAD_MAX);
		if (rc != Q_OK && rc != Q_NO)
			prog_die(Q_IO, "standard input: %s; nothing was added", strerror(errno));
	}
	read_job(&j, rec, n, 1);
	if (dry) {
		show(&j, 1);
		return;
	}
	add(NULL, &j, 1);
	if (results[0].added != ADD_NEW && job_get(db, results[0].id, &held) == Q_OK &&
	    (strcmp(held.state, "dead") == 0 || strcmp(held.state, "cancelled") == 0))
		prog_warn("the key holds job %" PRId64 ", which is %s and does not run; next: qreplay %" PRId64 ", or --replace",
		    held.id, held.state, held.id);
	else if (results[0].added == ADD_DIFFERS && job.dup == DUP_KEEP)
		tell_differs(results[0].id, 1);
}

static void
add_many(void)
{
	struct spool spool;
	int64_t n, k, line, limit = batch != -1 ? batch : BULK_MAX;
	struct reader r;
	struct job_new j;
	bool few;

	if (spool_open(&spool) != Q_OK) {
		few = errno == EMFILE || errno == ENFILE;
		prog_die(few ? Q_TEMP : Q_CREATE, "temporary file: %s; see %s", strerror(errno), few ? "ulimit -n" : "TMPDIR");
	}
	reader_init(&r, STDIN_FILENO, mode == '0' ? '\0' : '\n', mode == JSONL ? RECORD_MAX : JOB_PAYLOAD_MAX);
	do {
		spool_rewind(&spool);
		n = read_jobs(&r, &spool, batch == -1 ? BULK_MAX + 1 : expect != -1 ? INT64_MAX : batch);
		if (batch == -1 && n > BULK_MAX)
			prog_die(Q_DATA, "more than %d jobs are not added as one; --batch N commits every N; nothing was added", BULK_MAX);
		if (expect != -1 && n != expect)
			prog_die(Q_DATA, "%" PRId64 " jobs came, %" PRId64 " were expected; nothing was added", n, expect);
		for (k = n; dry && k > 0 && spool_get(&spool, &j, &line) == Q_OK; k--)
			show(&j, line);
		for (k = n; !dry && k > 0; k -= limit) {
			add(&spool, NULL, k < limit ? k : limit);
			added += k < limit ? k : limit;
		}
	} while (batch != -1 && expect == -1 && n == batch);
}

int
main(int argc, char *argv[])
{
	int operands;

	prog_start(&self, true);
	options(argc, argv);
	operands = argc - optind;
	if (operands == 0 && mode != JSONL)
		prog_usage("no QUEUE");
	if (operands > (mode == 0 ? 2 : 1))
		prog_usage("too many operands: '%s'", argv[optind + (mode == 0 ? 2 : 1)]);
	job.queue = argv[optind];
	prog_queues(argv + optind, job.queue != NULL, 0);
	results = calloc((size_t)(mode == 0 ? 1 : batch != -1 ? batch : BULK_MAX), sizeof *results);
	if (results == NULL)
		prog_die(Q_TEMP, "out of memory");
	db = prog_open(dry ? DB_READ : DB_ONCE);
	if (mode == 0)
		add_one(argv + optind + 1);
	else
		add_many();
	prog_exit(Q_OK);
}
