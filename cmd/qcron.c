/* qcron - turn the due slots of a schedule into jobs */

#define _DEFAULT_SOURCE		/* strsep */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cron.h"
#include "prog.h"

static const char HELP[] =
"usage: qcron [-hVv] [-d FILE] [--force] TABLE\n"
"       qcron [-hVj] [-d FILE] -n FROM TO TABLE\n"
"       qcron [-hVj] [-d FILE] --next [-c N] TABLE\n"
"One pass over the schedules in TABLE, qcron(5): every slot since the last pass\n"
"becomes a job, once, or is dropped as its line says.  It runs no command.\n"
"  * * * * *  qcron /etc/q/table; qwork reports -- /srv/report\n"
"  qcron -n 2026-10-25T00:00:00Z 2026-10-26T00:00:00Z /etc/q/table\n"
"  qcron --next -c 3 /etc/q/table\n"
"  -n, --dry-run    print the slots from FROM up to TO, which is not in it, as\n"
"                   UTC, local time, ID; the queue file is not looked at\n"
"  --next           print the next slot of each line, in the same way\n"
"  -c, --count N    the next N of each\n"
"  -j, --json       one object a slot\n"
"  -v, --verbose    tell what was done with each slot, on standard error\n"
"  --force          go on, though the clock is far from where it was\n"
"A table, one line each:\n"
"  nightly 30 2 * * *  tz=Europe/Berlin reports {\"kind\":\"all\"}\n"
"  sync    @after 5m   orders\n"
"Exit: 0 done, 66 no file, 75 busy, or the clock is far from where it was, 78 a\n"
"line of TABLE is wrong, and nothing of it was used.\n";

enum { NEXT = 256, FORCE, TABLE_MAX = 16 << 20 };
static const struct option LONGS[] = {
	{ "dry-run", 0, NULL, 'n' }, { "count", 1, NULL, 'c' }, { "json", 0, NULL, 'j' }, { "verbose", 0, NULL, 'v' },
	{ "next", 0, NULL, NEXT }, { "force", 0, NULL, FORCE }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qcron", .help = HELP, .shorts = "nc:jv", .longs = LONGS };

static struct cron_table table;
static bool json;

/* ---- the table ----------------------------------------------------------- */

static void
bad(int line, const char *why, void *unused)
{
	(void)unused;
	prog_warn("%s:%d: %s", table.file, line, why);
}

static void
read_table(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), rc;
	struct reader r;
	char *text, *copy;
	size_t n;

	if (fd == -1)
		prog_die(errno == ENOENT || errno == ENOTDIR ? Q_NOINPUT : errno == EACCES ? Q_PERM : errno == EMFILE || errno == ENFILE ? Q_TEMP : Q_IO,
		    "%s: %s", path, strerror(errno));
	reader_init(&r, fd, -1, TABLE_MAX);
	if ((rc = reader_next(&r, &text, &n)) == Q_DATA)
		prog_die(Q_CONFIG, "%s: longer than %d MiB; is it a schedule table?", path, TABLE_MAX >> 20);
	if (rc != Q_OK)
		prog_die(errno == EISDIR ? Q_NOINPUT : Q_IO, "%s: %s", path, strerror(errno));
	close(fd);
	if ((copy = malloc(n + 1)) == NULL)
		prog_die(Q_TEMP, "out of memory");
	memcpy(copy, text, n);
	table.file = path;
	if ((rc = cron_read(copy, n, &table, bad, NULL)) == Q_TEMP)
		prog_die(rc, "out of memory");
	if (rc != Q_OK)
		prog_exit(rc);
}

/* ---- looking ahead ------------------------------------------------------- */

/* "2026-06-02T14:01:00+02:00", in the zone that is entered. */
static char *
local_text(char buf[WHEN_TEXT + 8], int64_t ms)
{
	char text[WHEN_TEXT];
	int64_t off = when_wall(ms / 1000) - ms / 1000, min = (off < 0 ? -off : off) / 60;

	when_text(text, ms + off * 1000, false);
	text[strlen(text) - 1] = '\0';
	snprintf(buf, WHEN_TEXT + 8, "%s%c%02d:%02d", text, off < 0 ? '-' : '+', (int)(min / 60), (int)(min % 60));
	return buf;
}

static void
print(const struct cron *c, int64_t slot, int64_t now)
{
	static int tty = -1;
	char utc[WHEN_TEXT], local[WHEN_TEXT + 8], due[WHEN_TEXT], rel[WHEN_TEXT], key[CRON_KEY];
	const char *why;
	int64_t due_ms = cron_job(c, slot, key);

	if (!when_enter(c->zone, &why))
		prog_die(Q_CONFIG, "%s: zone %s: %s", c->id, c->zone, why);
	when_text(utc, slot, false);
	local_text(local, slot);
	if (tty == -1 && (tty = isatty(STDOUT_FILENO)) && !json)
		printf("%-20s  %-25s  %-12s  %s\n", "UTC", "LOCAL", "IN", "ID");
	if (json)
		printf("{\"id\":\"%s\",\"queue\":\"%s\",\"key\":\"%s\",\"slot_at\":\"%s\",\"slot_ms\":%" PRId64 ",\"zone\":\"%s\",\"local_at\":\"%s\","
		    "\"due_at\":\"%s\",\"due_ms\":%" PRId64 "}\n", c->id, c->queue, key, utc, slot, c->zone, local, when_text(due, due_ms, false), due_ms);
	else if (tty)
		printf("%-20s  %-25s  %-12s  %s\n", utc, local, when_relative(rel, slot, now), c->id);
	else
		printf("%s\t%s\t%s\n", utc, local, c->id);
	if (ferror(stdout))
		prog_exit(Q_OK);	/* which says so */
}

struct ahead { const struct cron *cron; int64_t slot, left; };

static void
advance(struct ahead *a)
{
	const char *why;

	if (a->left-- == 0)
		a->slot = CRON_NEVER;
	else if (!cron_next(a->cron, a->slot, &a->slot, &why))
		prog_die(Q_CONFIG, "%s: zone %s: %s", a->cron->id, a->cron->zone, why);
}

/* Slots of all entries in the order of time: those before `end`, and of each at most so many. */
static _Noreturn void
look_ahead(int64_t from, int64_t end, int64_t most)
{
	struct ahead *list = calloc(table.n + 1, sizeof *list), *first;
	int64_t now = prog_now();
	size_t n = 0;

	if (list == NULL)
		prog_die(Q_TEMP, "out of memory");
	for (size_t i = 0; i < table.n; i++)
		if (table.list[i].kind == CRON_AFTER) {
			prog_warn("%s: @after: its slots follow its runs, and are not known before", table.list[i].id);
		} else {
			list[n] = (struct ahead){ &table.list[i], from - 1, most };
			advance(&list[n++]);
		}
	while (n > 0) {
		first = list;
		for (size_t i = 1; i < n; i++)
			if (list[i].slot < first->slot)
				first = &list[i];
		if (first->slot >= end)
			break;
		print(first->cron, first->slot, now);
		advance(first);
	}
	prog_exit(Q_OK);
}

static int64_t
instant(const char *what, const char *text)
{
	const char *why;
	int64_t ms;

	if (!when_instant(text, NULL, prog_now(), &ms, &why))
		prog_usage("%s: '%s': %s", what, text, why);
	return ms;
}

/* ---- a pass -------------------------------------------------------------- */

static _Noreturn void
pass(const char *path, bool force, bool verbose)
{
	struct db *db = prog_open(DB_ONCE);
	char *text = NULL, *line, *rest, *real;
	char last[WHEN_TEXT];
	FILE *log = NULL;
	size_t len;

	if (verbose && (log = text_memory(&text, &len)) == NULL)
		prog_die(Q_TEMP, "out of memory");
	/* What has no name of its own, such as a pipe, was read all the same; other failures must not make another table of this one. */
	if ((real = realpath(path, NULL)) == NULL && errno != ENOENT)
		prog_die(errno == ENOMEM ? Q_TEMP : Q_IO, "%s: %s", path, strerror(errno));
	table.file = real != NULL ? real : path;
	prog_check(db, schedule_pass(db, &table, prog_now(), force, log));
	if (log != NULL && fclose(log) == 0)
		for (rest = text; (line = strsep(&rest, "\n")) != NULL && rest != NULL;)
			prog_warn("%s", line);
	for (size_t i = 0; i < table.n; i++)
		if (table.list[i].twice)
			prog_warn("%s:%d: %s has changed twice within 5 minutes, and begins anew each time; is there one in another table?", path,
			    table.list[i].line, table.list[i].id);
	if (table.ahead_ms != -1)
		prog_warn("the last pass was at %s, which is yet to come: slots up to then are decided; if the clock is right now, next: qcron --force",
		    when_text(last, table.ahead_ms, false));
	prog_exit(Q_OK);
}

int
main(int argc, char *argv[])
{
	bool dry = false, next = false, force = false, verbose = false;
	int64_t count = 0, from, to;
	int c, n;

	prog_start(&self, true);
	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case 'n': dry = true; break;
		case 'c': count = prog_int("-c", optarg, 1, 1000000); break;
		case 'j': json = true; break;
		case 'v': verbose = true; break;
		case NEXT: next = true; break;
		case FORCE: force = true; break;
		}
	n = argc - optind;
	argv += optind;
	if (dry && next)
		prog_usage("-n and --next exclude each other");
	if (count > 0 && !next)
		prog_usage("-c goes with --next");
	if (json && !dry && !next)
		prog_usage("-j goes with -n and --next");
	if ((force || verbose) && (dry || next))
		prog_usage("--force and -v go with a pass");
	if (dry && n != 3)
		prog_usage("-n takes FROM, TO and a TABLE");
	if (!dry && n != 1)
		prog_usage(n == 0 ? "no TABLE" : "one TABLE");
	if (dry) {
		from = instant("FROM", argv[0]);
		if ((to = instant("TO", argv[1])) <= from)
			prog_usage("TO is not after FROM");
		read_table(argv[2]);
		look_ahead(from, to, INT64_MAX);
	}
	from = prog_now();
	read_table(argv[0]);
	if (next)
		look_ahead(from + 1, CRON_NEVER, count > 0 ? count : 1);
	pass(argv[0], force, verbose);
}
