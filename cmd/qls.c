/* qls - list and inspect jobs */

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "prog.h"

static const char HELP[] =
"usage: qls [-hVj] [-d FILE] [--state S] [-t TYPE] [-k KEY] [-e ENTITY]\n"
"           [--older-than DUR] [--newer-than DUR] [--reason TEXT] [--limit N]\n"
"           [--exists] [QUEUE...]\n"
"       qls [-hVj] [-d FILE] ID\n"
"       qls [-hV] [-d FILE] --raw ID\n"
"       qls [-hVj] [-d FILE] --counts [QUEUE...]\n"
"List open jobs: claimed, then in the order of claims, then those that wait.\n"
"  qls mail                      qls --state dead --reason refused\n"
"  qls 42                        one job with all its attempts\n"
"  qls --raw 42 | jq .           its payload, byte for byte\n"
"  --state S       pending, claimed, failed, done, dead, cancelled, open, all;\n"
"                  several joined by commas (default open)\n"
"  -t, -k, -e      only this type, key, entity\n"
"  --older-than, --newer-than DUR   by the time of adding\n"
"  --reason TEXT   the last reason has this text in it\n"
"  --limit N       at most N (default: 20 on a terminal, else all)\n"
"  --counts        how many jobs are in each state, by queue\n"
"  --exists        no output; exit 1 if there is none\n"
"  -j, --json      job records, one a line\n"
"Piped: fields parted by tabs, no head.\n"
"Exit: 0 listed, 1 --exists: there is none, 66 no such job.\n";

enum { LIMIT = 256, EXISTS, RAW, COUNTS, TTY_ROWS = 20 };
static const struct option LONGS[] = {
	PROG_FILTERS, { "limit", 1, NULL, LIMIT }, { "exists", 0, NULL, EXISTS }, { "raw", 0, NULL, RAW }, { "counts", 0, NULL, COUNTS },
	{ "json", 0, NULL, 'j' }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qls", .help = HELP, .shorts = "t:k:e:j", .longs = LONGS };

static struct db *db;
static bool json, tty, exists;
static int64_t now, shown, limit = -1;
static int width;

static void
field(const char *s, bool last)
{
	if (s != NULL)
		text_tsv(stdout, s, strlen(s));
	putchar(last ? '\n' : '\t');
}

/* A cell of a table on a terminal: made safe, cut or filled to its width. */
static void
cell(const char *s, int w)
{
	if (s == NULL)
		s = "-";
	printf("%*s ", w - text_show(stdout, s, strlen(s), w), "");
}

/* How many attempts it may have: of its own, as its queue is set, by default. */
static int64_t
allowed(const struct job *j)
{
	static char queue[65];
	static int64_t of_queue;
	const struct queue_set *set;

	if (j->attempts != -1)
		return j->attempts;
	if (strcmp(queue, j->queue) != 0) {
		set = setting_queue(db, j->queue);
		of_queue = set->attempts != -1 ? set->attempts : JOB_ATTEMPTS;
		snprintf(queue, sizeof queue, "%s", j->queue);
	}
	return of_queue;
}

static void
row(const struct job *j)
{
	char id[24], tries[48], due[WHEN_TEXT];
	int room;

	snprintf(id, sizeof id, "%" PRId64, j->id);
	snprintf(tries, sizeof tries, "%" PRId64 "/%" PRId64, j->spent, allowed(j));
	if (!tty) {
		field(id, false);
		field(j->queue, false);
		field(j->state, false);
		field(when_text(due, j->due_ms, false), false);
		field(tries, false);
		field(j->key, false);
		text_tsv(stdout, j->payload, j->payload_len);
		putchar('\n');
		return;
	}
	if (shown == 0)
		printf("%-7s %-10s %-9s %-13s %-6s %-12s %s\n", "ID", "QUEUE", "STATE", "DUE", "TRIES", "KEY", "PAYLOAD");
	room = width - 55 - printf("%-7s ", id);	/* an id is not cut: it is what the next command wants */
	cell(j->queue, 10);
	cell(j->blocked_by != -1 ? "blocked" : j->state, 9);
	cell(when_relative(due, j->due_ms, now), 13);
	cell(tries, 6);
	cell(j->key, 12);
	text_show(stdout, j->payload, j->payload_len, room > 12 ? room : 12);
	putchar('\n');
}

static int
one(int64_t id, void *arg)
{
	struct job j;
	int rc;

	(void)arg;
	if (exists)
		prog_exit(Q_OK);
	if (limit != -1 && shown >= limit)
		return Q_NO;		/* more than are shown */
	if ((rc = job_get(db, id, &j)) == Q_NOINPUT) {
		db_clear(db);		/* purged since */
		return Q_OK;
	}
	if (rc != Q_OK)
		return rc;
	if (json)
		job_print(stdout, &j);
	else
		row(&j);
	shown++;
	return Q_OK;
}

/* Of those listed, or of all. */
static int
tell_pause(const struct setting *set, const char *reason, int64_t since_ms, void *filter)
{
	const struct job_filter *f = filter;
	bool listed = f->nqueues == 0 || *set->name == '\0';

	(void)since_ms;
	for (int i = 0; i < f->nqueues; i++)
		listed |= strcmp(f->queues[i], set->name) == 0;
	if (listed && strcmp(set->kind, "queue") == 0 && strcmp(set->field, "paused") == 0)
		prog_warn("paused: %s%s%s; see qpause", *set->name != '\0' ? set->name : "all queues", *reason != '\0' ? ": " : "", reason);
	return Q_OK;
}

static void
list(struct job_filter *f)
{
	bool cut = limit == -1 && tty;
	int rc;

	if (cut)
		limit = TTY_ROWS;
	rc = job_list(db, f, one, NULL);
	if (rc != Q_OK && rc != Q_NO)
		prog_check(db, rc);
	if (rc == Q_NO && cut)
		prog_warn("%d shown, there are more; --limit N shows N", TTY_ROWS);
	if (tty && !exists && (f->states & ST_OPEN))
		prog_check(db, setting_each(db, tell_pause, f));
	prog_exit(exists ? Q_NO : Q_OK);
}

/* ---- one job ---- */

static void
line(const char *name, const char *value, size_t n)
{
	if (value == NULL)
		return;
	printf("%-11s ", name);
	text_show(stdout, value, n, 0);
	putchar('\n');
}

static void
line_text(const char *name, const char *value)
{
	line(name, value, value != NULL ? strlen(value) : 0);
}

static void
line_time(const char *name, int64_t ms)
{
	char at[WHEN_TEXT], rel[WHEN_TEXT];

	if (ms != -1)
		printf("%-11s %s (%s)\n", name, when_text(at, ms, true), when_relative(rel, ms, now));
}

/* Until when a claim holds, and the word that settles it, for who knows that its holder is gone. */
static void
lease(const struct job *j)
{
	struct claim c = { j->id, j->fence, j->nonce };
	char word[JOB_CLAIM_TEXT], rel[WHEN_TEXT], boot[40];
	int64_t clock = when_boot(boot);

	if (j->lease_ms == -1 || clock == -1)
		return;
	line_text("claim", claim_text(word, &c));
	if (j->lease_ms > clock)
		printf("%-11s ends %s\n", "lease", when_relative(rel, j->lease_ms, clock));
	else
		printf("%-11s over; the next claimer takes the job\n", "lease");
}

/* Why a job that is first of its entity cannot be claimed all the same. */
static void
lock(const struct job *j)
{
	struct lock_held h;
	char left[WHEN_TEXT], text[384];
	int rc;

	if (j->entity == NULL || j->blocked_by != -1 || (strcmp(j->state, "pending") != 0 && strcmp(j->state, "failed") != 0))
		return;
	if ((rc = lock_holder(db, j->entity, &h)) == Q_OK) {
		snprintf(text, sizeof text, "lock %" PRId64 " of its entity, held by %s, for %s if not renewed", h.fence, h.worker, when_brief(left, h.left_ms));
		line_text("blocked by", text);
	} else if (rc != Q_NO) {
		prog_check(db, rc);
	}
}

static void
policy(const struct job *j)
{
	char base[WHEN_TEXT], cap[WHEN_TEXT], window[WHEN_TEXT];

	if (j->base_ms != -1 && j->cap_ms != -1)
		printf("%-11s %s..%s\n", "backoff", when_span(base, j->base_ms), when_span(cap, j->cap_ms));
	if (j->window_ms != -1)
		printf("%-11s %s\n", "window", when_span(window, j->window_ms));
}

static int
attempt_text(const struct attempt *a, void *first)
{
	char at[WHEN_TEXT], late[WHEN_TEXT], ran[WHEN_TEXT];

	if (*(bool *)first)
		puts("attempts, the newest first:");
	*(bool *)first = false;
	printf("  %" PRId64 ".%" PRId64 " ", a->generation, a->attempt);
	text_show(stdout, a->outcome, strlen(a->outcome), 0);
	fputs(" -> ", stdout);
	text_show(stdout, a->state, strlen(a->state), 0);
	printf("  %s  late %s  ran %s",
	    when_text(at, a->started_ms, true), when_span(late, a->started_ms > a->due_ms ? a->started_ms - a->due_ms : 0),
	    when_span(ran, a->finished_ms > a->started_ms ? a->finished_ms - a->started_ms : 0));
	if (a->exit != -1)
		printf("  exit %" PRId64, a->exit);
	if (a->signal != -1)
		printf("  signal %" PRId64, a->signal);
	if (a->count != -1)
		printf("  count %" PRId64, a->count);
	if (a->worker != NULL) {
		printf("  by ");
		text_show(stdout, a->worker, strlen(a->worker), 0);
	}
	putchar('\n');
	if (a->reason != NULL) {
		printf("      reason: ");
		text_show(stdout, a->reason, strlen(a->reason), 0);
		putchar('\n');
	}
	if (a->result != NULL && a->result_len > 0) {
		printf("      result: ");
		text_show(stdout, a->result, a->result_len, 200);
		putchar('\n');
	}
	return Q_OK;
}

static int
attempt_json(const struct attempt *a, void *first)
{
	if (!*(bool *)first)
		putchar(',');
	*(bool *)first = false;
	attempt_print(stdout, a);
	return Q_OK;
}

static void
detail(int64_t id)
{
	struct job j;
	bool first = true;
	char text[64];

	prog_check(db, job_get(db, id, &j));
	if (json) {
		job_print_open(stdout, &j);
		fputs(",\"history\":[", stdout);
		prog_check(db, job_attempts(db, id, attempt_json, &first));
		puts("]}");
		prog_exit(Q_OK);
	}
	snprintf(text, sizeof text, "%" PRId64, j.id);
	line_text("job", text);
	line_text("queue", j.queue);
	line_text("state", j.state);
	line_text("type", j.type);
	line_text("key", j.key);
	line_text("entity", j.entity);
	if (j.blocked_by != -1) {
		snprintf(text, sizeof text, "job %" PRId64 " of the same entity comes first", j.blocked_by);
		line_text("blocked by", text);
	}
	lock(&j);
	snprintf(text, sizeof text, "%" PRId64, j.priority);
	line_text("priority", text);
	snprintf(text, sizeof text, "%" PRId64 " of %" PRId64 " spent, generation %" PRId64, j.spent,
	    allowed(&j), j.generation);
	line_text("attempts", text);
	policy(&j);
	line_time("added", j.added_ms);
	line_time("due", j.due_ms);
	line_text("zone", j.zone);
	if (j.event_ms != j.due_ms)
		line_time("event", j.event_ms);
	line_time("claimed", j.claimed_ms);
	line_time("settled", j.settled_ms);
	line_text("worker", j.worker);
	lease(&j);
	snprintf(text, sizeof text, "(%zu bytes) ", j.payload_len);
	printf("%-11s %s", "payload", text);
	text_show(stdout, j.payload, j.payload_len, 200);
	putchar('\n');
	prog_check(db, job_attempts(db, id, attempt_text, &first));
	prog_exit(Q_OK);
}

static void
raw(int64_t id)
{
	struct job j;

	prog_check(db, job_get(db, id, &j));
	fwrite(j.payload, 1, j.payload_len, stdout);
	prog_exit(Q_OK);
}

/* ---- counts ---- */

static int
count_row(const struct job_count *c, void *filter)
{
	const struct job_filter *f = filter;
	bool wanted = f->nqueues == 0;

	for (int i = 0; i < f->nqueues; i++)
		wanted |= strcmp(f->queues[i], c->queue) == 0;
	if (!wanted)
		return Q_OK;
	if (json) {
		fputs("{\"queue\":", stdout);
		text_json(stdout, c->queue, strlen(c->queue));
		printf(",\"pending\":%" PRId64 ",\"claimed\":%" PRId64 ",\"failed\":%" PRId64 ",\"done\":%" PRId64
		    ",\"dead\":%" PRId64 ",\"cancelled\":%" PRId64 ",\"blocked\":%" PRId64 "}\n", c->pending,
		    c->claimed, c->failed, c->done, c->dead, c->cancelled, c->blocked);
		return Q_OK;
	}
	if (tty && shown++ == 0)
		printf("%-20s %9s %9s %9s %9s %9s %9s %9s\n", "QUEUE", "PENDING", "CLAIMED", "FAILED", "DONE", "DEAD",
		    "CANCELLED", "BLOCKED");
	if (tty)
		cell(c->queue, 20);
	else
		field(c->queue, false);
	printf(tty ? "%9" PRId64 " %9" PRId64 " %9" PRId64 " %9" PRId64 " %9" PRId64 " %9" PRId64 " %9" PRId64 "\n" :
	    "%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\n",
	    c->pending, c->claimed, c->failed, c->done, c->dead, c->cancelled, c->blocked);
	return Q_OK;
}

int
main(int argc, char *argv[])
{
	struct job_filter f = { .states = ST_OPEN, .older_ms = -1, .newer_ms = -1 };
	bool want_raw = false, counts = false, filtered = false;
	int64_t id = -1;
	int c;

	prog_start(&self, false);
	now = prog_now();
	while ((c = prog_option(argc, argv)) != -1) {
		filtered |= c != 'j' && c != RAW && c != COUNTS;
		if (prog_filter(c, &f))
			continue;
		switch (c) {
		case LIMIT: limit = prog_int("--limit", optarg, 0, INT64_MAX); break;
		case EXISTS: exists = true; break;
		case RAW: want_raw = true; break;
		case COUNTS: counts = true; break;
		case 'j': json = true; break;
		}
	}
	f.queues = argv + optind;
	f.nqueues = argc - optind;
	if (f.nqueues == 1 && text_int(f.queues[0], 1, INT64_MAX, &id) && (filtered || counts))
		prog_usage("a job id takes no filter and no --counts");
	if (want_raw && (id == -1 || json))
		prog_usage("--raw takes one job id");
	if (counts && filtered)
		prog_usage("--counts takes queues only");
	if (id == -1)
		prog_queues(f.queues, f.nqueues, 0);
	tty = isatty(STDOUT_FILENO);
	width = tty ? prog_columns() : 0;
	db = prog_open(DB_READ);
	if (want_raw)
		raw(id);
	if (id != -1)
		detail(id);
	if (counts) {
		prog_check(db, job_counts(db, count_row, &f));
		prog_exit(Q_OK);
	}
	list(&f);
}
