/* qcheck - is a queue file as it should be, and what is around it? */

#include <string.h>

#include "check.h"
#include "prog.h"

static const char HELP[] =
"usage: qcheck [-hVjv] [-d FILE] [--quick]\n"
"Look at the queue file and its surroundings, and change nothing: damage, rows\n"
"that do not agree, tables and triggers that somebody changed, plans, owner and\n"
"mode, disk, log, clock.  Silent if all is well; else a line a problem, with\n"
"what to do next.\n"
"  qcheck || echo 'see above'\n"
"  17 4 * * * qcheck -d /srv/q/q.db\n"
"  -j, --json     one object a check: check, ok, severity, detail, next\n"
"  -v, --verbose  what is well, too\n"
"  --quick        leave out what reads the whole file\n"
"Exit: 0 all is well, 1 something is not, 66 no such file, 74 it is damaged so\n"
"that it cannot be opened.\n";

enum { QUICK = 256 };
static const struct option LONGS[] = {
	{ "json", 0, NULL, 'j' }, { "verbose", 0, NULL, 'v' }, { "quick", 0, NULL, QUICK }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qcheck", .help = HELP, .shorts = "jv", .longs = LONGS };

static bool json, verbose;

static void
member(const char *name, const char *value)
{
	printf(",\"%s\":", name);
	if (value != NULL)
		text_json(stdout, value, strlen(value));
	else
		fputs("null", stdout);
}

static void
print(const struct check *c, void *unused)
{
	(void)unused;
	if (json) {
		printf("{\"check\":\"%s\",\"ok\":%s", c->name, c->ok ? "true" : "false");
		member("severity", c->ok ? NULL : c->warning ? "warning" : "error");
		member("detail", c->detail);
		member("next", c->next);
		puts("}");
	} else if (!c->ok || verbose) {
		printf("%s: ", c->name);
		if (c->ok)
			fputs("ok", stdout);
		if (c->ok && c->detail != NULL)
			fputs(", ", stdout);
		if (c->detail != NULL)
			text_show(stdout, c->detail, strlen(c->detail), 0);
		if (c->next != NULL) {
			fputs("; next: ", stdout);
			text_show(stdout, c->next, strlen(c->next), 0);
		}
		putchar('\n');
	}
}

int
main(int argc, char *argv[])
{
	struct db *db;
	bool quick = false;
	int c, rc;
	int64_t now;

	prog_start(&self, false);
	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case 'j': json = true; break;
		case 'v': verbose = true; break;
		default: quick = true;
		}
	if (optind < argc)
		prog_usage("no operand is taken; the file is that of -d");
	now = prog_now();
	db = prog_open(DB_READ);
	rc = check_file(db, quick, now, print, NULL);
	if (rc != Q_NO)
		prog_check(db, rc);
	prog_exit(rc);
}
