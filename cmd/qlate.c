/* qlate - how late work began, what became of it, what waits now and why */

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chart.h"
#include "prog.h"
#include "table.h"

static const char HELP[] =
"usage: qlate [-hVj] [-d FILE] [--since DUR] [--types] [--wide] [--by hour|day]\n"
"             [--tz ZONE] [QUEUE...]\n"
"       qlate [-hV] [-d FILE] [--since DUR] [--tz ZONE] --hist QUEUE[/TYPE]\n"
"       qlate [-hV] [-d FILE] [--since DUR] [--types] --svg FILE [QUEUE...]\n"
"       qlate [-hV] [-d FILE] --prom [-o FILE]\n"
"       qlate [-hV] [-d FILE] --check [--every DUR --id NAME] [QUEUE...]\n"
"How late work began, what became of it, what waits and why; what is wrong.\n"
"  qlate --since 1h --types mail  one queue, a row for each type\n"
"  * * * * * qlate --check --every 6h --id me   a mail when something is wrong\n"
"  --since DUR   attempts that finished in the last DUR (default 24h)\n"
"  --by PART     a row for each hour or day, of the zone of --tz (default UTC)\n"
"  --wide        all columns, as in a pipe, not just those that fit\n"
"  --hist, --svg, --prom   a histogram, a picture, Prometheus text; -o, --output\n"
"  --check       nothing, or a block for each problem; with --every not again\n"
"                before DUR, unless others come; -j, --json: one object a row\n"
"WAIT OLDEST WHY  jobs that could be claimed now; since when; what holds them up\n"
"DONE FAIL DEAD   attempts: done; to be tried again; failed or lost for good\n"
"FIRST% FINAL%    share of the first attempts, and of the last ones, that were\n"
"                 done: retries hide a failing dependency from the second alone\n"
"P50 P95 P99 MAX  lateness: the time from due to start.  RUN: time at work\n"
"ONTIME% B1H SLO  against the target of qset queue.Q.slo=30s/99%; burn rates\n"
"Exit: 0 told, 1 --check: something is wrong, 66 no file, or no such queue.\n";

enum { SINCE = 256, TYPES, WIDE, BY, TZ, HIST, SVG, PROM, CHECK, EVERY, ID };
static const struct option LONGS[] = {
	{ "since", 1, NULL, SINCE }, { "types", 0, NULL, TYPES }, { "wide", 0, NULL, WIDE }, { "by", 1, NULL, BY }, { "tz", 1, NULL, TZ },
	{ "hist", 1, NULL, HIST }, { "svg", 1, NULL, SVG }, { "prom", 0, NULL, PROM }, { "output", 1, NULL, 'o' },
	{ "check", 0, NULL, CHECK }, { "every", 1, NULL, EVERY }, { "id", 1, NULL, ID }, { "json", 0, NULL, 'j' }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qlate", .help = HELP, .shorts = "jo:", .longs = LONGS };

static const char EXPLAIN[] = "; P50 to MAX: lateness; RUN: time at work";
enum { PARTS_MAX = 10000, TREND = 8, SVG_CELLS = 48 };

/* Numbers first, then what is made of them; those with a name in JSON are printed there as they are. */
enum { QUEUE, TYPE, FROM, WAIT, OLDEST, CLAIMED, DONE, FAIL, DEAD, DEFER, FIRST, FINAL, P50, P95, P99, MAX, RUN, RUN95, PACE, TARGET, LATE,
	ONTIME, B1H, B6H, LINE, STATE, WHY, COLUMNS };
static const struct table_col COLS[COLUMNS] = {		/* 1 is the first to go where room is short */
	[QUEUE] = { "QUEUE", 0, TABLE_NAME, 0 }, [TYPE] = { "TYPE", 0, TABLE_NAME, 0 }, [FROM] = { "FROM", 0, TABLE_NUMBER, 0 },
	[WAIT] = { "WAIT", 0, TABLE_NUMBER, 0 }, [OLDEST] = { "OLDEST", 0, TABLE_NUMBER, 0 }, [CLAIMED] = { "CLAIMED", 5, TABLE_NUMBER, 0 },
	[DONE] = { "DONE", 17, TABLE_NUMBER, 0 }, [FAIL] = { "FAIL", 16, TABLE_NUMBER, 0 }, [DEAD] = { "DEAD", 0, TABLE_NUMBER, 0 },
	[DEFER] = { "DEFER", 4, TABLE_NUMBER, 0 }, [FIRST] = { "FIRST%", 14, TABLE_NUMBER, 0 }, [FINAL] = { "FINAL%", 15, TABLE_NUMBER, 0 },
	[P50] = { "P50", 9, TABLE_NUMBER, 0 }, [P95] = { "P95", 19, TABLE_NUMBER, 0 }, [P99] = { "P99", 12, TABLE_NUMBER, 0 },
	[MAX] = { "MAX", 10, TABLE_NUMBER, 0 }, [RUN] = { "RUN", 8, TABLE_NUMBER, 0 }, [RUN95] = { "RUN95", 3, TABLE_NUMBER, 0 },
	[PACE] = { "DONE/H", 2, TABLE_NUMBER, 0 }, [TARGET] = { "TARGET", 13, TABLE_NUMBER, 0 }, [LATE] = { "LATE", 7, TABLE_NUMBER, 0 },
	[ONTIME] = { "ONTIME%", 18, TABLE_NUMBER, 0 }, [B1H] = { "B1H", 11, TABLE_NUMBER, 0 }, [B6H] = { "B6H", 6, TABLE_NUMBER, 0 },
	[LINE] = { "TREND", 1, TABLE_NUMBER, 0 }, [STATE] = { "SLO", 0, TABLE_NUMBER, 0 }, [WHY] = { "WHY", 0, TABLE_REST, 9 }
};
static const char *const NAMES[COLUMNS] = { [WAIT] = "waiting", [OLDEST] = "oldest_wait_ms", [CLAIMED] = "claimed", [DONE] = "done",
	[FAIL] = "failed", [DEAD] = "dead", [DEFER] = "deferred", [FIRST] = "first_percent", [FINAL] = "final_percent", [P50] = "late_p50_ms",
	[P95] = "late_p95_ms", [P99] = "late_p99_ms", [MAX] = "late_max_ms", [RUN] = "run_p50_ms", [RUN95] = "run_p95_ms", [PACE] = "done_per_hour",
	[LATE] = "late", [ONTIME] = "ontime_percent", [B1H] = "burn_1h", [B6H] = "burn_6h" };

static struct db *db;
static struct ledger_want want;
static struct ledger ledger;
static int64_t edges[PARTS_MAX];
static const char UTC[] = "UTC", *zone = UTC;

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

/* When the part of a row begins and ends. */
static int64_t
begin_of(const struct report *r)
{
	return want.edges != NULL ? edges[r->bin] : want.from_ms;
}

static int64_t
end_of(const struct report *r)
{
	return want.edges != NULL && r->bin + 1 < want.nedges ? edges[r->bin + 1] - 1 : want.now;
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
rate(char buf[WHEN_TEXT], double v, const char *none)
{
	if (v < 0)
		snprintf(buf, WHEN_TEXT, "%s", none);
	else
		snprintf(buf, WHEN_TEXT, "%.1f", v);
}

/* LATE is for now, missed for the window. */
static const char *
state(const struct report *r)
{
	if (r->slo.target_ms == -1)
		return NULL;
	if ((r->waiting > 0 && r->oldest_ms > 3 * r->slo.target_ms) || slo_burning(&r->slo, r->burn, want.burn) != -1)
		return "LATE";
	return r->on.all == 0 ? NULL : slo_missed(&r->slo, &r->on) ? "missed" : "met";
}

/* The cells that are numbers. */
static void
fill(const struct report *r, char cell[COLUMNS][WHEN_TEXT], bool people)
{
	const struct { int column; int64_t n; } counts[] = { { WAIT, r->waiting }, { CLAIMED, r->claimed }, { DONE, r->done },
	    { FAIL, r->failed }, { DEAD, r->dead }, { DEFER, r->deferred } };
	const struct { int column, percent; const struct values *of; } ranks[] = {
		{ P50, 50, &r->late }, { P95, 95, &r->late }, { P99, 99, &r->late }, { MAX, 100, &r->late },
		{ RUN, 50, &r->run }, { RUN95, 95, &r->run }
	};
	const char *none = people ? "-" : "";
	bool target = r->slo.target_ms != -1;

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		snprintf(cell[counts[i].column], WHEN_TEXT, "%" PRId64, counts[i].n);
	span(cell[OLDEST], r->oldest_ms, people, none);
	percent(cell[FIRST], r->first_done, r->first, none);
	percent(cell[FINAL], r->done, r->done + r->dead, none);
	for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
		span(cell[ranks[i].column], ledger_rank(ranks[i].of, ranks[i].percent), people, none);
	rate(cell[PACE], people && r->done == 0 ? -1 : (double)r->done * 3600000 / (double)(end_of(r) - begin_of(r) + 1), none);
	snprintf(cell[LATE], WHEN_TEXT, "%.*" PRId64 "%s", target ? 1 : 0, target ? r->on.late : 0, target ? "" : none);
	percent(cell[ONTIME], r->on.all - r->on.late, target ? r->on.all : 0, none);
	rate(cell[B1H], target ? slo_burn(&r->slo, &r->burn[BURN_1H]) : -1, none);
	rate(cell[B6H], target ? slo_burn(&r->slo, &r->burn[BURN_6H]) : -1, none);
}

/* ---- JSON ---- */

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
print_time(const char *member, int64_t ms)
{
	char at[WHEN_TEXT];

	printf(",\"%s_at\":\"%s\",\"%s_ms\":%" PRId64, member, when_text(at, ms, false), member, ms);
}

static void
print_json(const struct report *r)
{
	char cell[COLUMNS][WHEN_TEXT];
	const char *why = r->paused ? pause_reason(r) : "", *slo = state(r);

	fill(r, cell, false);
	print_name("queue", r->queue, r->queue_len);
	print_name("type", r->type, r->type_len);
	print_time("since", begin_of(r));
	print_time("now", end_of(r));
	for (int i = 0; i < COLUMNS; i++) {
		if (NAMES[i] == NULL)
			continue;
		printf(",\"%s\":%s", NAMES[i], cell[i][0] != '\0' ? cell[i] : "null");
		if (i == DEFER)
			printf(",\"lost\":%" PRId64 ",\"released\":%" PRId64 ",\"superseded\":%" PRId64 ",\"first_attempts\":%" PRId64
			    ",\"first_done\":%" PRId64, r->lost, r->released, r->superseded, r->first, r->first_done);
	}
	printf(",\"late_count\":%zu,\"run_count\":%zu", r->late.n, r->run.n);
	if (r->slo.target_ms != -1)
		printf(",\"target_ms\":%" PRId64 ",\"target_percent\":%g,\"target_count\":%" PRId64, r->slo.target_ms, (double)r->slo.ppm / 10000,
		    r->on.all);
	else
		fputs(",\"target_ms\":null,\"target_percent\":null,\"target_count\":null", stdout);
	print_name("slo", slo != NULL ? slo : "", slo != NULL ? strlen(slo) : 0);
	print_name("why", r->why, strlen(r->why));
	printf(",\"paused\":%s", r->paused ? "true" : "false");
	print_name("pause_reason", why, strlen(why));
	puts("}");
}

/* ---- for people ---- */

/* What is late comes first, unless there is an order. */
static struct report *
nth(int k)
{
	if (want.nqueues > 0 || want.edges != NULL)
		return ledger.rows[k];
	for (int late = 1; late >= 0; late--)
		for (int i = 0; i < ledger.n; i++) {
			const char *s = state(ledger.rows[i]);

			if ((s != NULL && strcmp(s, "LATE") == 0) == late && k-- == 0)
				return ledger.rows[i];
		}
	return NULL;
}

static void
add_row(struct table *t, const struct report *r)
{
	char cell[COLUMNS][WHEN_TEXT], line[CHART_TREND], why[1100], limit[WHEN_TEXT], target[2 * WHEN_TEXT] = "-";
	const char *slo = state(r), *reason = r->paused ? pause_reason(r) : "";
	int64_t trend[TREND];

	fill(r, cell, true);
	ledger_trend(&r->late, 95, TREND, trend);
	chart_trend(line, trend, TREND, r->slo.target_ms, chart_utf8());
	when_local(cell[FROM], begin_of(r), zone);
	cell[FROM][10] = ' ';
	memmove(cell[FROM] + 16, cell[FROM] + 19, strlen(cell[FROM] + 19) + 1);		/* without seconds */
	if (r->slo.target_ms != -1)
		snprintf(target, sizeof target, "%s/%g%%", when_span(limit, r->slo.target_ms), (double)r->slo.ppm / 10000);
	snprintf(why, sizeof why, "%s%s%s", r->why, *reason != '\0' ? ": " : "", reason);
	table_bytes(t, r->queue, r->queue_len);
	table_bytes(t, r->type_len > 0 ? r->type : "-", r->type_len > 0 ? r->type_len : 1);
	for (int i = FROM; i < LINE; i++)
		table_text(t, i == TARGET ? target : cell[i]);
	table_text(t, line);
	table_text(t, slo != NULL ? slo : "-");
	table_text(t, why);
}

static void
hide(struct table *t, int from, int to)
{
	for (int i = from; i <= to; i++)
		table_hide(t, i);
}

static void
print_table(const char *since, int room)
{
	struct table *t = table_new(COLS, COLUMNS);
	char at[WHEN_TEXT];
	bool target = false;
	int late = 0, used;

	for (int k = 0; k < ledger.n; k++) {
		const char *s = state(ledger.rows[k]);

		late += s != NULL && strcmp(s, "LATE") == 0;
		target |= ledger.rows[k]->slo.target_ms != -1;
	}
	used = printf("%s to %s", since, when_local(at, want.now, zone));
	if (ledger.n == 0)
		fputs(": no attempts, nothing waits", stdout);
	else if (late > 0)
		used += printf(": %d of %d LATE", late, ledger.n);
	if (ledger.n > 0 && (room == 0 || used + (int)sizeof EXPLAIN <= room))
		fputs(EXPLAIN, stdout);
	putchar('\n');
	if (ledger.n == 0)
		return;
	if (!want.by_type)
		table_hide(t, TYPE);
	if (!target)
		hide(t, TARGET, B6H), table_hide(t, STATE);
	if (want.edges != NULL) {		/* what is so now is no part of these */
		hide(t, WAIT, CLAIMED);
		hide(t, B1H, LINE);
	} else {
		table_hide(t, FROM);
	}
	for (int k = 0; k < ledger.n; k++)
		add_row(t, nth(k));
	if (table_print(t, stdout, room) == -1)
		prog_die(Q_TEMP, "out of memory");
}

static void
print_hist(const char *name, const char *since, int room)
{
	static const struct report NONE = { .slo = { .target_ms = -1 } };
	static const int RANKS[] = { 50, 95, 99, 100 };
	const char *type = want.by_type ? strchr(name, '/') + 1 : "";
	const struct report *r = &NONE;
	char at[WHEN_TEXT], p[4][WHEN_TEXT];

	for (int k = 0; k < ledger.n; k++)
		if (strcmp(ledger.rows[k]->type, type) == 0)
			r = ledger.rows[k];
	text_show(stdout, name, strlen(name), 0);
	printf(", %s to %s: ", since, when_local(at, want.now, zone));
	for (int i = 0; i < 4; i++)
		span(p[i], ledger_rank(&r->late, RANKS[i]), true, "-");
	if (r->late.n == 0)
		puts("no attempts");
	else
		printf("%zu starts\nlateness p50 %s, p95 %s, p99 %s, max %s\n", r->late.n, p[0], p[1], p[2], p[3]);
	chart_hist(stdout, &r->late, &r->slo, room == 0 ? 80 : room, chart_utf8());
	if (r->waiting > 0)
		printf("%" PRId64 " wait now, the oldest for %s\n", r->waiting, when_brief(at, r->oldest_ms));
}

/* ---- files ---- */

/* Through a temporary file beside it, so that nobody sees half of it; others can read it. */
static void
replace(const char *name, const char *text, size_t n)
{
	char *path, temp[PATH_MAX];
	FILE *f;
	int fd, err;

	if ((path = realpath(name, NULL)) == NULL && (path = strdup(name)) == NULL)	/* through a link to what is there */
		prog_die(Q_TEMP, "out of memory");
	if (snprintf(temp, sizeof temp, "%s.XXXXXX", path) >= (int)sizeof temp)
		prog_die(Q_CREATE, "%s: the name is too long", name);
	if ((fd = mkstemp(temp)) == -1 || (f = fdopen(fd, "w")) == NULL) {
		err = errno;
		if (fd != -1)
			unlink(temp);
		prog_die(Q_CREATE, "%s: cannot be made: %s; its folder must be there, and yours to write to", name, strerror(err));
	}
	if (fwrite(text, 1, n, f) < n || fflush(f) == EOF || fchmod(fd, 0644) == -1 || fsync(fd) == -1 || fclose(f) == EOF || rename(temp, path) == -1) {
		err = errno;
		unlink(temp);
		prog_die(Q_IO, "%s: %s; what was there is left as it was", name, strerror(err));
	}
	free(path);
}

/* NULL or "-": standard output. */
static void
write_file(const char *name, void (*print)(FILE *))
{
	bool out = name == NULL || strcmp(name, "-") == 0;
	struct stat st;
	char *text;
	size_t n;
	FILE *f = text_memory(&text, &n);

	if (f == NULL)
		prog_die(Q_TEMP, "out of memory");
	print(f);
	if (fclose(f) == EOF)
		prog_die(Q_TEMP, "out of memory");
	if (out) {
		fwrite(text, 1, n, stdout);
	} else if (stat(name, &st) == -1 || S_ISREG(st.st_mode)) {
		replace(name, text, n);
	} else {			/* a device, a pipe */
		if ((f = fopen(name, "w")) == NULL)
			prog_die(Q_CREATE, "%s: %s", name, strerror(errno));
		if (fwrite(text, 1, n, f) < n || fclose(f) == EOF)
			prog_die(Q_IO, "%s: %s", name, strerror(errno));
	}
	free(text);
}

static void
print_svg(FILE *f)
{
	char title[3 * WHEN_TEXT], a[WHEN_TEXT], b[WHEN_TEXT];

	snprintf(title, sizeof title, "Lateness, %s to %s", when_text(a, want.from_ms, false), when_text(b, want.now, false));
	chart_svg(f, &ledger, &want, title);
}

/* ---- */

static struct totals totals;

static void
print_prom(FILE *f)
{
	prog_check(db, prom_print(f, db, &ledger, &totals));
}

/* Who may write remembers what is counted; for who may not it is counted again. */
static void
prom(const char *out)
{
	bool writes = db_open(&db, self.database, DB_ONCE) == Q_OK;
	char **names;

	if (!writes) {
		if (db != NULL)
			db_close(db);
		db = prog_open(DB_READ);
	}
	if (total_read(db, writes, &totals) != Q_OK && writes) {	/* busy, or its disk is full: the numbers are the same */
		prog_warn("%s; not remembered", db_message(db));
		db_clear(db);
		total_free(&totals);
		total_read(db, false, &totals);
	}
	prog_check(db, db_status(db));
	if ((names = calloc((size_t)totals.n + 1, sizeof *names)) == NULL)
		prog_die(Q_TEMP, "out of memory");
	for (int i = 0; i < totals.n; i++)
		names[i] = totals.v[i]->queue;
	want.open_only = true;
	want.also = names;		/* what is counted has its other numbers, too */
	want.nalso = totals.n;
	prog_check(db, ledger_read(db, &want, &ledger));
	write_file(out, print_prom);
}

/* ---- what is wrong ---- */

/* What is told: first what is new to who is told, then the rest.  Each problem has a line of its own among those remembered. */
struct text { char *p; size_t n; FILE *f; };
static struct {
	struct text fresh, rest, lines;
	char *before;			/* the lines of the last time; NULL: nothing is remembered */
	int64_t at;			/* ... and when that was */
	int count;
} told;

static bool
asked_for(const char *queue)
{
	for (int i = 0; i < want.nqueues; i++)
		if (queue != NULL && strcmp(want.queues[i], queue) == 0)
			return true;
	return want.nqueues == 0;
}

static void
text_open(struct text *t)
{
	if ((t->f = text_memory(&t->p, &t->n)) == NULL)
		prog_die(Q_TEMP, "out of memory");
}

static void
text_close(struct text *t)
{
	if (fclose(t->f) == EOF)
		prog_die(Q_TEMP, "out of memory");
}

static int
tell(const struct problem *p, void *arg)
{
	const bool *marks = arg;
	char at[WHEN_TEXT], span_[WHEN_TEXT];
	struct text line;
	bool fresh;
	FILE *f;

	if (!asked_for(p->queue))
		return Q_OK;
	text_open(&line);
	fprintf(line.f, "\n%s ", p->kind);
	text_show(line.f, p->name, strlen(p->name), 0);
	putc('\n', line.f);
	text_close(&line);
	fresh = *marks && (told.before == NULL || strstr(told.before, line.p) == NULL);
	f = fresh ? told.fresh.f : told.rest.f;
	told.count++;
	fputs(line.p, told.lines.f);
	free(line.p);
	fprintf(f, "qlate: %s%s ", fresh ? "new: " : "", p->kind);
	text_show(f, p->name, strlen(p->name), 0);
	fputs(": ", f);
	text_show(f, p->what, strlen(p->what), 0);
	if (p->since_ms != -1)
		fprintf(f, "\n  since %s (%s)", when_text(at, p->since_ms, false), when_brief(span_, want.now > p->since_ms ? want.now - p->since_ms : 0));
	if (p->detail[0] != '\0') {
		fputs(p->since_ms != -1 ? "; " : "\n  ", f);
		text_show(f, p->detail, strlen(p->detail), 0);
	}
	fputs("\n  next: ", f);
	text_show(f, p->next, strlen(p->next), 0);
	putc('\n', f);
	return Q_OK;
}

/* What was told and is not there any more, while something else is. */
static void
print_gone(void)
{
	for (char *line = told.before, *end, last; line != NULL && *line == '\n' && (end = strchr(line + 1, '\n')) != NULL; line = end + 1) {
		last = end[1];
		end[1] = '\0';
		if (strstr(told.lines.p, line) == NULL)
			printf("qlate: over: %s", line + 1);
		end[1] = last;
	}
}

/* Is this just what was told, and not long ago? */
static bool
told_lately(int64_t every)
{
	return told.before != NULL && strcmp(told.before, told.lines.p) == 0 && (told.count == 0 || (want.now >= told.at && want.now - told.at < every));
}

static void
check_names(void)
{
	const char *near;

	for (int i = 0; i < want.nqueues; i++)
		if (!alarm_queue(db, want.queues[i], &near)) {
			prog_check(db, db_status(db));
			prog_die(Q_NOINPUT, "no queue '%s': it never had a job, and nothing is set or expected for it%s%s%s", want.queues[i],
			    *near != '\0' ? "; was '" : "", near, *near != '\0' ? "' meant?" : "");
		}
}

/*
 * Nothing and 0, or a block for each problem and 1; with an id they are printed again only if they are others, or after a time.  Who
 * may not write is told each time, rather than nothing.
 */
_Noreturn static void
check(const char *id, int64_t every)
{
	bool remembers = id != NULL && db_open(&db, self.database, DB_ONCE) == Q_OK;
	struct text who;
	char at[WHEN_TEXT], why[PATH_MAX + 200] = "";

	if (!remembers) {
		if (db != NULL) {
			snprintf(why, sizeof why, "%s", db_message(db));
			db_close(db);
		}
		db = prog_open(DB_READ);
	}
	check_names();
	text_open(&who);		/* what is wrong in other queues is not over because nobody asked */
	fputs(id != NULL ? id : "", who.f);
	for (int i = 0; i < want.nqueues; i++)
		fprintf(who.f, "\n%s", want.queues[i]);
	text_close(&who);
	if (remembers)
		told.before = told_last(db, who.p, &told.at);
	text_open(&told.fresh);
	text_open(&told.rest);
	text_open(&told.lines);
	prog_check(db, alarm_all(db, want.now, tell, &remembers));
	text_close(&told.fresh);
	text_close(&told.rest);
	text_close(&told.lines);
	if (told_lately(every) || (told.count == 0 && told.before == NULL))
		prog_exit(told.count > 0 ? Q_NO : Q_OK);
	fwrite(told.fresh.p, 1, told.fresh.n, stdout);
	if (told.count > 0)
		print_gone();
	fwrite(told.rest.p, 1, told.rest.n, stdout);
	if (told.count == 0)
		printf("qlate: over: nothing is left of what was told last, at %s\n", when_text(at, told.at, false));
	if (fflush(stdout) == EOF)
		prog_exit(Q_OK);	/* which says so */
	if (id != NULL && !remembers)
		prog_warn("%s; until then this is not remembered, and told each time", why);
	else if (id != NULL)
		prog_check(db, told_now(db, who.p, told.lines.p, want.now));
	prog_exit(told.count > 0 ? Q_NO : Q_OK);
}

/* ---- */

/* QUEUE or QUEUE/TYPE, as the one thing to read about. */
static void
one_queue(const char *name)
{
	static char queue[SETTING_NAME];
	static char *list[] = { queue };
	const char *slash = strchr(name, '/');

	snprintf(queue, sizeof queue, "%.*s", slash != NULL ? (int)(slash - name) : (int)sizeof queue - 1, name);
	if (slash != NULL)
		prog_name("--hist", slash + 1);
	want.queues = list;
	want.nqueues = 1;
	want.by_type = slash != NULL;
}

static void
parts_of(const char *by)
{
	if (strcmp(by, "hour") != 0 && strcmp(by, "day") != 0)
		prog_usage("--by: '%s' is not hour or day", by);
	want.edges = edges;
	want.nedges = when_edges(want.from_ms, want.now, zone, *by == 'h', edges, PARTS_MAX);
	if (want.nedges > PARTS_MAX)
		prog_usage("--by: more than %d parts; take a shorter --since, or days", PARTS_MAX);
}

/* Which of the outputs are asked for: one at most, and nothing with it that it would not heed. */
static void
one_of(bool json, const char *by, const char *hist, const char *svg, bool prom_, bool check_, const char *out, const char *every, const char *id,
    bool wide, bool tz, bool since)
{
	bool table = hist == NULL && svg == NULL && !prom_ && !check_;

	if ((by != NULL) + (hist != NULL) + (svg != NULL) + prom_ + check_ > 1)
		prog_usage("--by, --hist, --svg, --prom and --check go one at a time");
	if (json && !table)
		prog_usage("--json goes with a table alone");
	if (wide && (json || !table))
		prog_usage("--wide goes with a table for people alone");
	if (want.by_type && !table && svg == NULL)
		prog_usage("--types goes with a table or --svg");
	if (tz && (json ? by == NULL : !table && hist == NULL))
		prog_usage("--tz goes with a table for people, --by or --hist");
	if (since && (prom_ || check_))
		prog_usage("--since goes with a table, --hist or --svg");
	if (out != NULL && !prom_)
		prog_usage("-o goes with --prom");
	if ((every != NULL || id != NULL) && (!check_ || every == NULL || id == NULL))
		prog_usage("--every and --id go with --check, and with each other");
	if (id != NULL && text_name_fault(id) != NULL)
		prog_usage("--id %s", text_name_fault(id));
}

int
main(int argc, char *argv[])
{
	const char *since = NULL, *by = NULL, *hist = NULL, *svg = NULL, *out = NULL, *every = NULL, *id = NULL, *why;
	bool json = false, wide = false, proms = false, checks = false;
	int c, room;

	prog_start(&self, false);
	want.now = prog_now();
	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case SINCE: since = optarg; break;
		case TYPES: want.by_type = true; break;
		case WIDE: wide = true; break;
		case BY: by = optarg; break;
		case TZ: zone = optarg; break;
		case HIST: hist = optarg; break;
		case SVG: svg = optarg; break;
		case PROM: proms = true; break;
		case 'o': out = optarg; break;
		case CHECK: checks = true; break;
		case EVERY: every = optarg; break;
		case ID: id = optarg; break;
		case 'j': json = true; break;
		}
	one_of(json, by, hist, svg, proms, checks, out, every, id, wide, zone != UTC, since != NULL);
	since = since != NULL ? since : "24h";
	want.from_ms = want.now - prog_duration("--since", since);
	if (want.from_ms == want.now)
		prog_usage("--since: no attempt fits into '%s'", since);
	if (!when_zone(zone, &why))
		prog_usage("--tz: '%s' %s", zone, why);
	want.queues = argv + optind;
	want.nqueues = argc - optind;
	if (want.nqueues > 0 && (hist != NULL || proms))
		prog_usage("'%s': %s", argv[optind], proms ? "--prom tells of all queues" : "--hist has its queue");
	if (hist != NULL)
		one_queue(hist);
	prog_queues(want.queues, want.nqueues, 0);
	if (by != NULL)
		parts_of(by);
	want.burn = by == NULL ? BURN_6H : 0;
	want.cells = svg != NULL ? SVG_CELLS : TREND;
	room = isatty(STDOUT_FILENO) && !wide ? prog_columns() : 0;
	if (checks)
		check(id, every != NULL ? prog_duration("--every", every) : 0);
	if (proms) {
		prom(out);
		prog_exit(Q_OK);
	}
	db = prog_open(DB_READ);
	prog_check(db, ledger_read(db, &want, &ledger));
	if (svg != NULL)
		write_file(svg, print_svg);
	else if (hist != NULL)
		print_hist(hist, since, room);
	else if (json)
		for (int k = 0; k < ledger.n; k++)
			print_json(ledger.rows[k]);
	else
		print_table(since, room);
	ledger_free(&ledger);
	prog_exit(Q_OK);
}
