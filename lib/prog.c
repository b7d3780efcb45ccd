/* prog.c - what every main() does the same way; the one place where a status becomes a message and an exit */

#define _GNU_SOURCE		/* ppoll */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <jansson.h>

#include "prog.h"

struct prog *prog;
volatile sig_atomic_t prog_signal;
void (*prog_last)(void);
static bool catching;			/* prog_catch() was called */

static struct option longs[64];
static char shorts[128];
static struct db *opened;

/*
 * A closed descriptor would be given to the next file opened.  It is plugged the wrong way round, so that
 * what cannot be read or written fails instead of vanishing.
 */
static void
plug(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) == -1)
			(void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

static void *
json_memory(size_t n)
{
	void *p = malloc(n);

	if (p == NULL)
		prog_die(Q_TEMP, "out of memory");
	return p;
}

void
prog_start(struct prog *p, bool changes_file)
{
	static const struct option COMMON[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ "database", required_argument, NULL, 'd' },
		{ NULL, 0, NULL, 0 }
	};
	static char line[BUFSIZ];	/* a message is one write: those of several programs do not mix, nor does one stop half way */
	sigset_t none;
	size_t n = 0;
	bool stop = *p->shorts == '+';

	prog = p;
	plug();
	if (!p->stays)
		json_set_alloc_funcs(json_memory, free);
	setvbuf(stderr, line, _IOLBF, sizeof line);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, changes_file ? SIG_IGN : SIG_DFL);
	while (p->longs != NULL && p->longs[n].name != NULL && n < 56) {
		longs[n] = p->longs[n];
		n++;
	}
	memcpy(longs + n, COMMON, sizeof COMMON);
	snprintf(shorts, sizeof shorts, "%s:hVd:%s", stop ? "+" : "", p->shorts + stop);
	opterr = 0;
}

static _Noreturn void
unknown_long(const char *word)
{
	const char *names[64], *near = NULL;
	char typed[64];
	int n = (int)strcspn(word + 2, "="), k;

	snprintf(typed, sizeof typed, "%.*s", n, word + 2);
	for (k = 0; longs[k].name != NULL; k++) {
		names[k] = longs[k].name;
		if (n > 1 && strncmp(longs[k].name, typed, (size_t)n) == 0)
			near = longs[k].name;
	}
	names[k] = NULL;
	if (near == NULL)
		near = text_nearest(typed, names);
	if (near != NULL)
		prog_usage("unknown option '--%s'; did you mean '--%s'?", typed, near);
	prog_usage("unknown option '--%s'", typed);
}

/* Is it "--name=value" of an option that has one?  An unknown name ends here. */
static bool
takes_value(const char *word)
{
	size_t n = strcspn(word + 2, "=");

	for (int i = 0; longs[i].name != NULL; i++)
		if (strlen(longs[i].name) == n && strncmp(longs[i].name, word + 2, n) == 0)
			return longs[i].has_arg != no_argument;
	unknown_long(word);
}

static _Noreturn void
version(void)
{
	printf("%s (q) %s\n%s, schema %d\n", prog->name, Q_VERSION, db_version(), DB_SCHEMA);
	prog_exit(Q_OK);
}

static _Noreturn void
help(void)
{
	printf("%s-d FILE: the queue file, else $Q_DB; -V: versions.  See man %s, man 7 q.\n", prog->help, prog->name);
	prog_exit(Q_OK);
}

int
prog_option(int argc, char *argv[])
{
	int at = -1, c = getopt_long(argc, argv, shorts, longs, &at);
	const char *word = optind > 0 && optind <= argc ? argv[optind - 1] : "";
	bool is_long = strncmp(word, "--", 2) == 0 && word[2] != '\0';

	if (at != -1 && c != '?' && c != ':') {
		/* getopt_long takes any unique beginning of a name; a new option would then break old scripts. */
		if (optarg == word)
			word = argv[optind - 2];
		if (strlen(longs[at].name) != strcspn(word + 2, "="))
			unknown_long(word);
	}
	switch (c) {
	case 'h':
		help();
	case 'V':
		version();
	case 'd':
		prog->database = optarg;
		return prog_option(argc, argv);
	case ':':
		if (is_long)
			prog_usage("option '%s' needs a value", word);
		prog_usage("option '-%c' needs a value", optopt);
	case '?':
		if (optopt == 0)
			unknown_long(word);
		/* A letter amid others leaves the word before them here, which was understood. */
		if (is_long && strchr(word, '=') != NULL && !takes_value(word))
			prog_usage("option '%.*s' takes no value", (int)strcspn(word, "="), word);
		prog_usage("unknown option '-%c'", optopt);
	default:
		return c;
	}
}

/*
 * A word that could not be looked at is not a bad one.  Who parses words gives no status, only why, and that ends the line; what a
 * person wrote stands in quotes before it.
 */
static bool
passing(const char *text)
{
	static const char *const WHY[] = { "out of memory", "the file of this zone cannot be read" };
	size_t n = strlen(text), m;

	for (size_t i = 0; i < sizeof WHY / sizeof *WHY; i++)
		if (n >= (m = strlen(WHY[i])) && strcmp(text + n - m, WHY[i]) == 0 && (n == m || text[n - m - 1] == ' '))
			return true;
	return false;
}

/* Returns the status to end with. */
static int __attribute__((format(printf, 2, 0)))
say(int status, const char *fmt, va_list ap, const char *tail)
{
	struct pollfd err = { .fd = STDERR_FILENO, .events = POLLOUT };
	char text[2048];
	int ready;

	/* Whoever holds claims must not wait for a reader of its messages: the leases would end. */
	while (catching && (ready = poll(&err, 1, 1000)) != 1)
		if (ready == 0 || errno != EINTR)
			return status;
	vsnprintf(text, sizeof text, fmt, ap);
	fprintf(stderr, "%s: ", prog->name);
	text_show(stderr, text, strlen(text), 0);
	fprintf(stderr, "%s\n", tail);
	return (status == Q_USAGE || status == Q_DATA || status == Q_CONFIG) && passing(text) ? Q_TEMP : status;
}

void
prog_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(Q_OK, fmt, ap, "");
	va_end(ap);
}

void
prog_die(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	status = say(status, fmt, ap, "");
	va_end(ap);
	prog_exit(status);
}

void
prog_usage(const char *fmt, ...)
{
	char tail[64];
	va_list ap;
	int status;

	snprintf(tail, sizeof tail, "; see '%s --help'", prog->name);
	va_start(ap, fmt);
	status = say(Q_USAGE, fmt, ap, tail);
	va_end(ap);
	prog_exit(status);
}

struct db *
prog_open(enum db_mode mode)
{
	int status = db_open(&opened, prog->database, mode);

	if (opened == NULL)
		prog_die(Q_TEMP, "out of memory");
	prog_check(opened, status);
	return opened;
}

void
prog_check(struct db *db, int status)
{
	if (status != Q_OK)
		prog_die(status, "%s", db_message(db));
}

int64_t
prog_int(const char *option, const char *value, int64_t lo, int64_t hi)
{
	int64_t v;

	if (!text_int(value, lo, hi, &v))
		prog_usage("%s: '%s' is not a whole number from %lld to %lld", option, value, (long long)lo, (long long)hi);
	return v;
}

int64_t
prog_duration(const char *option, const char *value)
{
	const char *why;
	int64_t ms;

	if (!when_duration(value, &ms, &why))
		prog_usage("%s: '%s' %s", option, value, why);
	return ms;
}

const char *
prog_name(const char *what, const char *value)
{
	const char *fault = text_name_fault(value);

	if (fault != NULL)
		prog_die(Q_DATA, "the %s %s", what, fault);
	return value;
}

int64_t
prog_now(void)
{
	int64_t now = when_now();

	if (now == -1)
		prog_die(Q_CONFIG, "Q_NOW is not an instant such as 2026-06-02T12:00:00Z");
	return now;
}

int
prog_columns(void)
{
	const char *env = getenv("COLUMNS");
	struct winsize ws;
	int64_t n;

	if (env != NULL && text_int(env, 20, 10000, &n))
		return (int)n;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col >= 20 ? ws.ws_col : 80;
}

bool
prog_filter(int option, struct job_filter *f)
{
	switch (option) {
	case PROG_STATE:
		if (!job_state(optarg, &f->states))
			prog_usage("--state: '%s' is not among pending claimed failed done dead cancelled open all", optarg);
		return true;
	case 't': f->type = prog_name("type", optarg); return true;
	case 'k': f->key = prog_name("key", optarg); return true;
	case 'e': f->entity = prog_name("entity", optarg); return true;
	case PROG_OLDER: f->older_ms = prog_now() - prog_duration("--older-than", optarg); return true;
	case PROG_NEWER: f->newer_ms = prog_now() - prog_duration("--newer-than", optarg); return true;
	case PROG_REASON: f->reason = optarg; return true;
	default: return false;
	}
}

void
prog_queues(char *const *queues, int n, int least)
{
	if (n < least)
		prog_usage("no QUEUE");
	for (int i = 0; i < n; i++)
		if (!text_queue(queues[i]))
			prog_die(Q_DATA, "bad queue name '%s'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, "
			    "does not begin with . or -, and is not a number", queues[i]);
}

/* ---- claims and ids ---- */

/* Room for one more in an array that grows by doubling. */
static void *
grow(void *list, size_t n, size_t size)
{
	if ((n & (n - 1)) == 0 && (list = realloc(list, (n == 0 ? 1 : 2 * n) * size)) == NULL)
		prog_die(Q_TEMP, "out of memory");
	return list;
}

/* All of standard input first: nothing is locked while it is slow. */
static size_t
read_words(const char *what, bool (*parse)(const char *, size_t, struct claim *), struct claim **list, int *worst)
{
	struct reader r;
	struct claim c = { 0, 0, 0 };
	size_t n = 0, len;
	char *line;
	int rc;

	reader_init(&r, STDIN_FILENO, '\n', 8 * JOB_EVENT_MAX);
	while ((rc = reader_next(&r, &line, &len)) == Q_OK || rc == Q_DATA) {
		if (rc == Q_OK && len == 0)
			continue;
		if (rc == Q_OK && parse(line, len, &c)) {
			*list = grow(*list, n, sizeof c);
			(*list)[n++] = c;
		} else {
			prog_warn("stdin:%lld: neither %s nor a job record with one", (long long)r.number, what);
			*worst = Q_DATA;
		}
	}
	if (rc != Q_NO)
		prog_die(Q_IO, "standard input: %s; nothing was changed", strerror(errno));
	return n;
}

/* The operands, or with "-" the lines of standard input.  A malformed one is named and makes *worst Q_DATA. */
static size_t
words(int n, char *const *operands, const char *what, bool (*parse)(const char *, size_t, struct claim *), struct claim **list, int *worst)
{
	struct claim c = { 0, 0, 0 };
	size_t count = 0;

	*list = NULL;
	*worst = Q_OK;
	if (n == 1 && strcmp(operands[0], "-") == 0)
		return read_words(what, parse, list, worst);
	for (int i = 0; i < n; i++)	/* a word and nothing else: what may stand around it in a line is refused */
		if (strpbrk(operands[i], " \t\r\n{") == NULL && parse(operands[i], strlen(operands[i]), &c)) {
			*list = grow(*list, count, sizeof c);
			(*list)[count++] = c;
		} else {
			prog_warn("'%s' is not %s", operands[i], what);
			*worst = Q_DATA;
		}
	return count;
}

int
prog_each(struct db *db, size_t n, size_t batch, bool adds, int (*each)(struct db *, size_t i, void *), void *arg, const int64_t *ids)
{
	char (*why)[256] = NULL;	/* told after the commit: standard error may block */
	bool *print = calloc(n + 1, sizeof *print);
	int rc, worst = Q_OK;
	size_t i = 0, nwhy;

	if (print == NULL)
		prog_die(Q_TEMP, "out of memory");
	for (size_t from = 0; from < n; from = i) {
		nwhy = 0;
		prog_check(db, db_begin(db, adds));
		for (; i < n && i - from < batch; i++) {
			rc = each(db, i, arg);
			print[i] = rc == Q_OK;
			if (rc == Q_OK || rc == PROG_SAME)
				continue;
			if (rc != Q_NO && rc != Q_NOINPUT && rc != Q_LOST) {
				db_rollback(db);
				prog_check(db, rc);
			}
			worst = rc > worst ? rc : worst;
			why = grow(why, nwhy, sizeof *why);
			snprintf(why[nwhy++], sizeof *why, "%s", db_message(db));
			db_clear(db);
		}
		prog_check(db, db_commit(db));
		for (size_t k = from; k < i && ids != NULL && !prog->quiet; k++)
			if (print[k])
				printf("%lld\n", (long long)ids[k]);
		if (fflush(stdout) == EOF)
			prog_die(Q_IO, "standard output: %s; stopped after %zu of %zu, whose ids are not all told", strerror(errno), i, n);
		for (size_t k = 0; k < nwhy; k++)
			prog_warn("%s", why[k]);
	}
	free(print);
	free(why);
	return worst;
}

struct claims { struct claim *list; int (*each)(struct db *, const struct claim *, void *); void *arg; };

static int
each_claim(struct db *db, size_t i, void *arg)
{
	struct claims *c = arg;

	return c->each(db, &c->list[i], c->arg);
}

void
prog_claims(int n, char *const *operands, int (*each)(struct db *, const struct claim *, void *), void *arg)
{
	struct claims c = { .each = each, .arg = arg };
	int worst, rc;
	struct db *db;
	size_t count;

	if (n == 0)
		prog_usage("no CLAIM; '-' reads them from standard input");
	db = prog_open(DB_ONCE);
	count = words(n, operands, "a claim such as 42.3.9f1c2ab0", record_claim, &c.list, &worst);
	rc = prog_each(db, count, count, false, each_claim, &c, NULL);
	prog_exit(rc > worst ? rc : worst);
}

static bool
parse_id(const char *line, size_t n, struct claim *c)
{
	return record_id(line, n, &c->id);
}

/* Here the fence of a claim holds the place of an id in its list. */
static int
by_id(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->fence < y->fence ? -1 : x->fence > y->fence;
}

static int
by_place(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	return x->fence < y->fence ? -1 : x->fence > y->fence;
}

size_t
prog_ids(int n, char *const *operands, int64_t **ids, int *worst)
{
	struct claim *list;
	size_t count = words(n, operands, "a job id such as 42", parse_id, &list, worst), once = 0;

	for (size_t i = 0; i < count; i++)
		list[i].fence = (int64_t)i;
	if (count > 0)
		qsort(list, count, sizeof *list, by_id);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || list[i].id != list[i - 1].id)
			list[once++] = list[i];
	if (count > 0)
		qsort(list, once, sizeof *list, by_place);
	if ((*ids = malloc((once + 1) * sizeof **ids)) == NULL)
		prog_die(Q_TEMP, "out of memory");
	for (size_t i = 0; i < once; i++)
		(*ids)[i] = list[i].id;
	free(list);
	return once;
}

int
prog_settle(struct db *db, const struct claim *c, void *how)
{
	return job_settle(db, c, how, prog_now(), NULL);
}

static void
caught(int sig)
{
	if (sig != SIGHUP || prog_signal == 0)	/* which a server takes for "read your table", and the others are an end */
		prog_signal = sig;
}

static const int SIGNALS[] = { SIGINT, SIGTERM, SIGHUP };

void
prog_catch(void)
{
	struct sigaction sa = { .sa_handler = caught }, old;
	sigset_t set;

	catching = true;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++) {
		sigaddset(&set, SIGNALS[i]);
		if (sigaction(SIGNALS[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)	/* nohup, and & in a script */
			sigaction(SIGNALS[i], &sa, NULL);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
}

void
prog_uncatch(void)
{
	struct sigaction old;
	sigset_t none;

	for (size_t i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++)
		if (sigaction(SIGNALS[i], NULL, &old) == 0 && old.sa_handler == caught)
			signal(SIGNALS[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int
prog_poll(struct pollfd *p, nfds_t n, int64_t ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
	sigset_t none;

	sigemptyset(&none);
	return ppoll(p, n, ms == -1 ? NULL : &ts, &none);
}

void
prog_nap(struct db *db, int64_t version, int64_t ms)
{
	struct pollfd hint = { .fd = db_watch(db), .events = POLLIN };
	int64_t end = when_elapsed() + ms, left, most = ms;

	while (db_data_version(db) == version && prog_signal == 0 && (left = end - when_elapsed()) > 0) {
		/* The hint comes with a commit's first write, and so before it can be seen: look again soon. */
		most = prog_poll(&hint, hint.fd != -1, most < left ? most : left) > 0 ? 1 : 2 * most;
		db_watch_drain(db);
	}
}

const char *
prog_worker(void)
{
	static char worker[128];
	struct utsname host = { .nodename = "" };

	uname(&host);
	snprintf(worker, sizeof worker, "%s:%ld", host.nodename, (long)getpid());
	return worker;
}

void
prog_killed(int sig)
{
	if (sig == SIGINT) {
		if (prog_last != NULL)
			prog_last();
		signal(SIGINT, SIG_DFL);
		raise(SIGINT);
		prog_poll(NULL, 0, 0);
	}
	prog_exit(128 + sig);
}

void
prog_exit(int status)
{
	bool lost = ferror(stdout) != 0;

	if (prog_last != NULL)
		prog_last();
	errno = 0;
	if (fflush(stdout) == EOF || (close(STDOUT_FILENO) == -1 && errno != EINTR))
		lost = true;
	if (lost && status < Q_IO) {
		fprintf(stderr, "%s: standard output: %s; the output is not complete\n", prog->name,
		    strerror(errno != 0 ? errno : EIO));
		status = Q_IO;
	}
	if (opened != NULL && db_note(opened)[0] != '\0')
		prog_warn("%s", db_note(opened));
	fflush(stderr);
	_exit(status);
}
