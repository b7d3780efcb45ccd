/* qlate - how late work began, what became of it, and what waits now */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prog.h"

static const char HELP[] =
"usage: qlate [-hVj] [-d FILE] [--since DUR] [--types] [QUEUE...]\n"
"Report how late work began, what became of it, and what waits now.\n"
"  qlate                          each queue, over the last 24 hours\n"
"  qlate --since 1h --types mail  one queue, a row for each type\n"
"  --since DUR   attempts that finished in the last DUR (default 24h)\n"
"  --types       a row for each type of a queue\n"
"  -j, --json    one object a row\n"
"WAIT OLDEST     jobs that could be claimed now, and since when the oldest is due\n"
"DONE FAIL DEAD DEFER   attempts: done; failed or lost with a retry to come;\n"
"                failed or lost for good; deferred\n"
"FIRST% FINAL%   share of the first attempts, and of the last ones, that were\n"
"                done: retries hide a failing dependency from the second alone\n"
"P50 P95 P99 MAX lateness: the time from due to start\n"
"RUN RUN95       time at work that half, and 95 of 100, did not exceed\n"
"Piped: fields parted by tabs, times in ms, no head.  Exit: 0, 66 no file; q(7).\n";

enum { SINCE = 256, TYPE };
static const struct option LONGS[] = {
	{ "since", 1, NULL, SINCE }, { "types", 0, NULL, TYPE }, { "json", 0, NULL, 'j' }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qlate", .help = HELP, .shorts = "j", .longs = LONGS };

/* The columns between the names and the note. */
enum { WAIT, OLDEST, DONE, FAIL, DEAD, DEFER, FIRST, FINAL, P50, P95, P99, MAX, RUN, RUN95, COLUMNS };
static const char *const HEADS[COLUMNS] =
    { "WAIT", "OLDEST", "DONE", "FAIL", "DEAD", "DEFER", "FIRST%", "FINAL%", "P50", "P95", "P99", "MAX", "RUN", "RUN95" };
/* Those that a narrow terminal goes without, the first one first. */
static const int SPARE[] = { RUN95, DEFER, RUN, P50, P99, FIRST, FINAL, MAX, P95, DONE };

static const char EXPLAIN[] = "; P50 to MAX: lateness; RUN: time at work";
enum {
	NAME_ROOM = 16,			/* names are cut to this before columns are left out, */
	NAME_LEAST = 6,			/* and to this after it */
	NOTE_LEAST = 6,			/* "paused" */
	NOTE_REASON = 16		/* from here on some of the reason says something */
};

static struct db *db;
static struct ledger_want want;
static struct ledger ledger;

/* Why a queue is paused; "": no reason was given. */
static const char *
pause_reason(const struct report *r)
{
	struct setting set = { .kind = "queue", .field = "paused" };
	const char *why = "";
	int64_t when;

	snprintf(set.name, sizeof set.name, "%s", r->queue);
	setting_get(db, &set, &why, &when);
	if (*why == '\0') {		/* or all are */
		set.name[0] = '\0';
		setting_get(db, &set, &why, &when);
	}
	return why;
}

/* "paused: why", or ""; borrowed until the next call. */
static const char *
note(const struct report *r)
{
	static char text[1100];
	const char *why = r->paused ? pause_reason(r) : "";

	snprintf(text, sizeof text, "%s%s%s", r->paused ? "paused" : "", *why != '\0' ? ": " : "", why);
	return text;
}

/* "98.7", cut and not rounded, so that only all of them are 100.0; or none if there is nothing to divide by. */
static void
percent(char buf[WHEN_TEXT], int64_t part, int64_t all, const char *none)
{
	int64_t tenths = all > 0 ? part * 1000 / all : 0;

	if (all > 0)
		snprintf(buf, WHEN_TEXT, "%" PRId64 ".%" PRId64, tenths / 10, tenths % 10);
	else
		snprintf(buf, WHEN_TEXT, "%s", none);
}

/* A duration: for people, in ms, or none if it is -1. */
static void
span(char buf[WHEN_TEXT], int64_t ms, bool people, const char *none)
{
	if (ms == -1)
		snprintf(buf, WHEN_TEXT, "%s", none);
	else if (people)
		when_brief(buf, ms);
	else
		snprintf(buf, WHEN_TEXT, "%" PRId64, ms);
}

static void
fill(const struct report *r, char cell[COLUMNS][WHEN_TEXT], bool people)
{
	const int64_t counts[] = { [WAIT] = r->waiting, [DONE] = r->done, [FAIL] = r->failed, [DEAD] = r->dead, [DEFER] = r->deferred };
	const struct { int column, percent; const struct values *of; } ranks[] = {
		{ P50, 50, &r->late }, { P95, 95, &r->late }, { P99, 99, &r->late }, { MAX, 100, &r->late },
		{ RUN, 50, &r->run }, { RUN95, 95, &r->run }
	};
	const char *none = people ? "-" : "";

	for (int i = WAIT; i <= DEFER; i++)
		snprintf(cell[i], WHEN_TEXT, "%" PRId64, counts[i]);
	span(cell[OLDEST], r->oldest_ms, people, none);
	percent(cell[FIRST], r->first_done, r->first, none);
	percent(cell[FINAL], r->done, r->done + r->dead, none);
	for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
		span(cell[ranks[i].column], ledger_rank(ranks[i].of, ranks[i].percent), people, none);
}

/* ---- for pipes ---- */

static void
print_fields(const struct report *r)
{
	char cell[COLUMNS][WHEN_TEXT];
	const char *why = note(r);

	fill(r, cell, false);
	text_tsv(stdout, r->queue, r->queue_len);
	putchar('\t');
	text_tsv(stdout, r->type, r->type_len);
	for (int i = 0; i < COLUMNS; i++)
		printf("\t%s", cell[i]);
	putchar('\t');
	text_tsv(stdout, why, strlen(why));
	putchar('\n');
}

static void
print_name(const char *member, const char *name, size_t n)
{
	printf("%s\"%s\":", strcmp(member, "queue") == 0 ? "{" : ",", member);
	if (n > 0)
		text_json(stdout, name, n);
	else
		fputs("null", stdout);
}

static void
print_json(const struct report *r)
{
	static const char *const NAMES[COLUMNS] = { "waiting", "oldest_wait_ms", "done", "failed", "dead", "deferred", "first_percent",
	    "final_percent", "late_p50_ms", "late_p95_ms", "late_p99_ms", "late_max_ms", "run_p50_ms", "run_p95_ms" };
	char cell[COLUMNS][WHEN_TEXT], at[WHEN_TEXT];
	const char *why = r->paused ? pause_reason(r) : "";

	fill(r, cell, false);
	print_name("queue", r->queue, r->queue_len);
	print_name("type", r->type, r->type_len);
	printf(",\"since_at\":\"%s\",\"since_ms\":%" PRId64, when_text(at, want.from_ms, false), want.from_ms);
	printf(",\"now_at\":\"%s\",\"now_ms\":%" PRId64, when_text(at, want.now, false), want.now);
	for (int i = 0; i < COLUMNS; i++) {
		printf(",\"%s\":%s", NAMES[i], cell[i][0] != '\0' ? cell[i] : "null");
		if (i == DEFER)
			printf(",\"lost\":%" PRId64 ",\"released\":%" PRId64 ",\"superseded\":%" PRId64 ",\"first_attempts\":%" PRId64
			    ",\"first_done\":%" PRId64, r->lost, r->released, r->superseded, r->first, r->first_done);
	}
	printf(",\"late_count\":%zu,\"run_count\":%zu,\"paused\":%s", r->late.n, r->run.n, r->paused ? "true" : "false");
	print_name("pause_reason", why, strlen(why));
	puts("}");
}

/* ---- for people ---- */

struct layout { int queue, type, note, width[COLUMNS]; };	/* 0: left out */

/* How many columns a name takes when it is made safe. */
static int
shown(const char *name, size_t n)
{
	FILE *null = fopen("/dev/null", "w");
	int width = null != NULL ? text_show(null, name, n, 0) : (int)n;

	if (null != NULL)
		fclose(null);
	return width;
}

static void
at_least(int *width, int n)
{
	if (*width < n)
		*width = n;
}

static int
total(const struct layout *l)
{
	int sum = l->queue + (l->type > 0) + l->type + (l->note > 0) + l->note;

	for (int i = 0; i < COLUMNS; i++)
		sum += (l->width[i] > 0) + l->width[i];
	return sum;
}

/* Cut a name by what is too much, to no less than `least`. */
static void
shrink(const struct layout *l, int *name, int least, int room)
{
	int too_much = total(l) - room;

	if (too_much > 0 && *name > least)
		*name = *name - too_much > least ? *name - too_much : least;
}

/* What there is room for: names are cut a little, then columns left out, then names cut to what remains. */
static void
lay_out(struct layout *l, int room)
{
	char cell[COLUMNS][WHEN_TEXT];

	*l = (struct layout){ .queue = (int)strlen("QUEUE"), .type = want.by_type ? (int)strlen("TYPE") : 0 };
	for (int i = 0; i < COLUMNS; i++)
		l->width[i] = (int)strlen(HEADS[i]);
	for (int k = 0; k < ledger.n; k++) {
		const struct report *r = ledger.rows[k];

		fill(r, cell, true);
		for (int i = 0; i < COLUMNS; i++)
			at_least(&l->width[i], (int)strlen(cell[i]));
		at_least(&l->queue, shown(r->queue, r->queue_len));
		at_least(&l->type, shown(r->type, r->type_len));
		if (r->paused)
			l->note = NOTE_LEAST;
	}
	shrink(l, &l->type, NAME_ROOM, room);
	shrink(l, &l->queue, NAME_ROOM, room);
	for (size_t i = 0; i < sizeof SPARE / sizeof *SPARE && total(l) > room; i++)
		l->width[SPARE[i]] = 0;
	shrink(l, &l->type, NAME_LEAST, room);
	shrink(l, &l->queue, NAME_LEAST, room);
	if (l->note > 0 && total(l) < room)
		l->note += room - total(l);
}

static void
print_row(const struct layout *l, const struct report *r)
{
	char cell[COLUMNS][WHEN_TEXT];
	const char *why = note(r);

	fill(r, cell, true);
	printf("%*s", l->queue - text_show(stdout, r->queue, r->queue_len, l->queue), "");
	if (l->type > 0) {
		putchar(' ');
		printf("%*s", l->type - text_show(stdout, r->type_len > 0 ? r->type : "-", r->type_len > 0 ? r->type_len : 1, l->type), "");
	}
	for (int i = 0; i < COLUMNS; i++)
		if (l->width[i] > 0)
			printf(" %*s", l->width[i], cell[i]);
	if (*why != '\0') {
		putchar(' ');
		text_show(stdout, why, l->note < NOTE_REASON ? strlen("paused") : strlen(why), l->note);
	}
	putchar('\n');
}

static void
print_table(const char *since, int room)
{
	char at[WHEN_TEXT];
	struct layout l;
	int used;

	used = printf("%s to %s", since, when_text(at, want.now, false));
	if (ledger.n == 0) {
		puts(": no attempts, nothing waits");
		return;
	}
	if (used + (int)sizeof EXPLAIN <= room)
		fputs(EXPLAIN, stdout);
	lay_out(&l, room);
	printf("\n%-*s", l.queue, "QUEUE");
	if (l.type > 0)
		printf(" %-*s", l.type, "TYPE");
	for (int i = 0; i < COLUMNS; i++)
		if (l.width[i] > 0)
			printf(" %*s", l.width[i], HEADS[i]);
	puts(l.note > 0 ? " NOTE" : "");
	for (int k = 0; k < ledger.n; k++)
		print_row(&l, ledger.rows[k]);
}

int
main(int argc, char *argv[])
{
	const char *since = "24h";
	bool json = false;
	int c;

	prog_start(&self, false);
	want.now = prog_now();
	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case SINCE: since = optarg; break;
		case TYPE: want.by_type = true; break;
		case 'j': json = true; break;
		}
	want.from_ms = want.now - prog_duration("--since", since);
	if (want.from_ms == want.now)
		prog_usage("--since: no attempt fits into '%s'", since);
	want.queues = argv + optind;
	want.nqueues = argc - optind;
	prog_queues(want.queues, want.nqueues, 0);
	db = prog_open(DB_READ);
	prog_check(db, ledger_read(db, &want, &ledger));
	if (!json && isatty(STDOUT_FILENO))
		print_table(since, prog_columns());
	else
		for (int k = 0; k < ledger.n; k++)
			(json ? print_json : print_fields)(ledger.rows[k]);
	ledger_free(&ledger);
	prog_exit(Q_OK);
}
