/* qset - settings: limits, retry policy, retention, targets */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prog.h"

static const char HELP[] =
"usage: qset [-hV] [-d FILE] [NAME=VALUE...]\n"
"       qset [-hV] [-d FILE] NAME\n"
"       qset [-hV] [-d FILE] -f FILE\n"
"Set, all or nothing; print one; without operands print all.\n"
"  qset queue.mail.rate=10/s+20 queue.mail.concurrency=4\n"
"  qset queue.mail.rate=      unset it\n"
"  qset >now; qset -f now     what is printed can be read\n"
"  -f, --file FILE            a NAME=VALUE a line, and comments with #; '-' is\n"
"                             stdin.  What it does not name stays as it is\n"
"  queue.Q.rate=10/s+20       claims of a queue; +BURST at once\n"
"  queue.Q.concurrency=4      claims at the same time\n"
"  queue.Q.limit=R            both as rate.R=10/s+20 and rate.R.concurrency=5 say\n"
"  queue.Q.attempts=20        retry policy, with .backoff=5s..10m and .window=2d\n"
"  queue.Q.keys=30d           how long keys are remembered; settled, forever\n"
"  queue.Q.age=5m             who waits so long gains a step of priority\n"
"  queue.Q.stale=skip         do not run what is older than what was done\n"
"  queue.Q.dead_to=Q2         add a job there for each that goes dead\n"
"  queue.Q.keep=30d .slo=30s/99%, queue.Q/TYPE.slo, expect.NAME=26h,\n"
"  credential.C.expires=2027-01-31 .owner .for   kept for reports\n"
"Exit: 0 done, 1 NAME is not set, 65 a bad name or value: nothing was set.\n";

enum { LINE_MAX_BYTES = 4096, FAULTS_MAX = 20 };
static const struct option LONGS[] = { { "file", 1, NULL, 'f' }, { NULL, 0, NULL, 0 } };
static struct prog self = { .name = "qset", .help = HELP, .shorts = "f:", .longs = LONGS };

struct change {
	struct setting set;
	char *value;
	int64_t line;			/* where it stands in the file; 0: an operand */
};

static struct db *db;
static const char *file;		/* for messages; NULL: operands */
static struct change *changes;
static size_t nchanges;
static int faults;

static void
fault(int64_t line, const char *what)
{
	if (file != NULL)
		prog_warn("%s:%" PRId64 ": %s", file, line, what);
	else
		prog_warn("%s", what);
	db_clear(db);
	if (++faults == FAULTS_MAX)
		prog_die(Q_DATA, "%d faults; the rest was not looked at; nothing was changed", FAULTS_MAX);
}

/* ---- setting ---- */

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void
add(char *text, int64_t line)
{
	char *equals = strchr(text, '=');
	struct change c = { .line = line };

	if (equals == NULL) {
		db_fail(db, Q_DATA, "'%s' is not NAME=VALUE", text);
	} else if (is_blank(*text) || (equals > text && is_blank(equals[-1])) || is_blank(equals[1]) || is_blank(text[strlen(text) - 1])) {
		db_fail(db, Q_DATA, "'%s': a name or value has a blank at its beginning or end", text);
	} else {
		*equals = '\0';
		c.value = equals + 1;
		if (setting_parse(db, text, &c.set) == Q_OK)
			setting_value(db, &c.set, c.value);
	}
	for (size_t i = 0; i < nchanges && db_status(db) == Q_OK; i++)
		if (memcmp(&changes[i].set, &c.set, sizeof c.set) == 0)
			db_fail(db, Q_DATA, "%s is given twice", text);
	if (db_status(db) != Q_OK) {
		fault(line, db_message(db));
		return;
	}
	if ((c.value = strdup(c.value)) == NULL ||
	    ((nchanges & (nchanges - 1)) == 0 &&
	     (changes = realloc(changes, (nchanges == 0 ? 1 : 2 * nchanges) * sizeof *changes)) == NULL))
		prog_die(Q_TEMP, "out of memory");
	changes[nchanges++] = c;
}

/* A line of the file, without its newline. */
static void
add_line(char *text, size_t n, int64_t number)
{
	char copy[LINE_MAX_BYTES + 1];
	size_t blanks = 0;

	while (blanks < n && is_blank(text[blanks]))
		blanks++;
	if (memchr(text, '\0', n) != NULL)
		fault(number, "a NUL byte");
	else if (n > 0 && text[n - 1] == '\r')
		fault(number, "the line ends with a carriage return; lines end with a newline alone");
	else if (blanks < n && text[blanks] != '#') {
		memcpy(copy, text, n);
		copy[n] = '\0';
		add(copy, number);
	}
}

static void
read_file(const char *name)
{
	int fd = STDIN_FILENO, rc;
	struct reader r;
	char *text;
	size_t n;

	file = name;
	if (strcmp(name, "-") == 0)
		file = "stdin";
	else if ((fd = open(name, O_RDONLY | O_CLOEXEC)) == -1)
		prog_die(errno == EACCES ? Q_PERM : errno == ENOENT || errno == ENOTDIR ? Q_NOINPUT : Q_IO, "%s: %s", name, strerror(errno));
	reader_init(&r, fd, '\n', LINE_MAX_BYTES);
	while ((rc = reader_next(&r, &text, &n)) == Q_OK || rc == Q_DATA)
		if (rc == Q_OK)
			add_line(text, n, r.number);
		else
			fault(r.number, "the line is longer than 4096 bytes");
	if (rc != Q_NO)
		prog_die(Q_IO, "%s: %s; nothing was changed", file, strerror(errno));
}

static _Noreturn void
apply(void)
{
	int64_t now = prog_now();
	size_t i;

	if (faults > 0)
		prog_exit(Q_DATA);
	prog_check(db, db_begin(db, false));
	for (i = 0; i < nchanges && db_status(db) == Q_OK; i++)
		setting_put(db, &changes[i].set, changes[i].value, now);
	for (i = 0; i < nchanges && setting_check(db, &changes[i].set) == Q_OK; i++)
		;
	if (db_status(db) != Q_OK)
		db_rollback(db);
	if (db_status(db) == Q_DATA) {
		fault(changes[i].line, db_message(db));
		prog_exit(Q_DATA);
	}
	prog_check(db, db_status(db));
	prog_check(db, db_commit(db));
	prog_exit(Q_OK);
}

/* ---- printing ---- */

/* As it is into a file or pipe, and made visible for people; so is what only others can have put there. */
static void
show(const char *text, bool good)
{
	if (good && !isatty(STDOUT_FILENO))
		fputs(text, stdout);
	else
		text_show(stdout, text, strlen(text), 0);
}

/* Not a setting, but without it one asks in vain why nothing moves. */
static int
print_block(const char *name, int64_t until_ms, void *arg)
{
	char until[WHEN_TEXT];

	(void)arg;
	fputs("# rate.", stdout);
	show(name, false);
	printf(" lets nothing through until %s; see qrate --block\n", when_text(until, until_ms, false));
	return Q_OK;
}

/* One line that can be read back.  Pauses are comments, and so is what qset would refuse. */
static int
print(const struct setting *set, const char *value, int64_t set_ms, void *arg)
{
	char name[SETTING_TEXT], since[WHEN_TEXT];
	bool pause = strcmp(set->kind, "queue") == 0 && strcmp(set->field, "paused") == 0;
	struct setting again;
	bool good;

	(void)arg;
	setting_text(name, set);
	good = !pause && *value != '\0' && strchr(name, '=') == NULL && setting_parse(db, name, &again) == Q_OK &&
	    setting_value(db, &again, value) == Q_OK;
	db_clear(db);
	if (pause) {
		printf("# paused since %s: ", when_text(since, set_ms, false));
		show(*set->name != '\0' ? set->name : "all queues", false);
		fputs(*value != '\0' ? ": " : "", stdout);
	} else {
		fputs(good ? "" : "# not a setting: ", stdout);
		show(name, good);
		putchar('=');
	}
	show(value, good);
	putchar('\n');
	return Q_OK;
}

static _Noreturn void
query(const char *name)
{
	struct setting set;
	const char *value;
	int64_t when;
	int rc;

	prog_check(db, setting_parse(db, name, &set));
	if ((rc = setting_get(db, &set, &value, &when)) == Q_NO)
		prog_exit(Q_NO);
	prog_check(db, rc);
	show(value, setting_value(db, &set, value) == Q_OK);
	putchar('\n');
	prog_exit(Q_OK);
}

int
main(int argc, char *argv[])
{
	const char *from = NULL, *name = NULL;
	int c;

	prog_start(&self, true);
	while ((c = prog_option(argc, argv)) != -1)
		from = optarg;
	for (int i = optind; i < argc; i++)
		if (strchr(argv[i], '=') == NULL)
			name = argv[i];
	if (from != NULL && optind < argc)
		prog_usage("-f takes no operand, such as '%s'", argv[optind]);
	if (name != NULL && argc - optind > 1)
		prog_usage("'%s' is not NAME=VALUE, and one NAME is printed at a time", name);
	if (name != NULL || (from == NULL && optind == argc)) {
		signal(SIGPIPE, SIG_DFL);
		db = prog_open(DB_READ);
		if (name != NULL)
			query(name);
		prog_check(db, setting_each(db, print, NULL));
		prog_check(db, rate_blocks(db, prog_now(), print_block, NULL));
		prog_exit(Q_OK);
	}
	db = prog_open(DB_ONCE);
	if (from != NULL)
		read_file(from);
	for (int i = optind; i < argc; i++)
		add(argv[i], 0);
	apply();
}
