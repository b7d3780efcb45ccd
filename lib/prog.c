/* prog.c - what every main() does the same way; the one place where a status becomes a message and an exit */

#define _GNU_SOURCE		/* ppoll */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "prog.h"

struct prog *prog;
volatile sig_atomic_t prog_signal;
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
	fputs(prog->help, stdout);
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

static void __attribute__((format(printf, 1, 0)))
say(const char *fmt, va_list ap, const char *tail)
{
	struct pollfd err = { .fd = STDERR_FILENO, .events = POLLOUT };
	char text[2048];

	/* Whoever holds claims must not wait for a reader of its messages: the leases would end. */
	if (catching && poll(&err, 1, 1000) != 1)
		return;
	vsnprintf(text, sizeof text, fmt, ap);
	fprintf(stderr, "%s: ", prog->name);
	text_show(stderr, text, strlen(text), 0);
	fprintf(stderr, "%s\n", tail);
}

void
prog_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap, "");
	va_end(ap);
}

void
prog_die(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap, "");
	va_end(ap);
	prog_exit(status);
}

void
prog_usage(const char *fmt, ...)
{
	char tail[64];
	va_list ap;

	snprintf(tail, sizeof tail, "; see '%s --help'", prog->name);
	va_start(ap, fmt);
	say(fmt, ap, tail);
	va_end(ap);
	prog_exit(Q_USAGE);
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

static void
add_claim(struct claim **claims, size_t *n, const struct claim *c)
{
	if ((*n & (*n - 1)) == 0 && (*claims = realloc(*claims, (*n == 0 ? 1 : 2 * *n) * sizeof **claims)) == NULL)
		prog_die(Q_TEMP, "out of memory");
	(*claims)[(*n)++] = *c;
}

/* All of standard input first: nothing is locked while it is slow. */
static int
read_claims(struct claim **claims, size_t *n)
{
	struct reader r;
	struct claim c;
	int rc, worst = Q_OK;
	char *line;
	size_t len;

	reader_init(&r, STDIN_FILENO, '\n', 8 * JOB_PAYLOAD_MAX);
	while ((rc = reader_next(&r, &line, &len)) == Q_OK || rc == Q_DATA) {
		if (rc == Q_OK && len == 0)
			continue;
		if (rc == Q_OK && record_claim(line, len, &c)) {
			add_claim(claims, n, &c);
		} else {
			prog_warn("stdin:%lld: neither a claim such as 42.3.9f1c2ab0 nor a job record with one", (long long)r.number);
			worst = Q_DATA;
		}
	}
	if (rc != Q_NO)
		prog_die(Q_IO, "standard input: %s; nothing was changed", strerror(errno));
	return worst;
}

void
prog_claims(int n, char *const *operands, int (*each)(struct db *, const struct claim *, void *), void *arg)
{
	struct claim *claims = NULL, c;
	char (*lost)[256] = NULL;
	size_t count = 0, nlost = 0;
	int worst = Q_OK, rc;
	struct db *db;

	if (n == 0)
		prog_usage("no CLAIM; '-' reads them from standard input");
	db = prog_open(DB_ONCE);
	if (n == 1 && strcmp(operands[0], "-") == 0)
		worst = read_claims(&claims, &count);
	else
		for (int i = 0; i < n; i++)
			if (claim_parse(operands[i], &c)) {
				add_claim(&claims, &count, &c);
			} else {
				prog_warn("'%s' is not a claim such as 42.3.9f1c2ab0", operands[i]);
				worst = Q_DATA;
			}
	if (count == 0)
		prog_exit(worst);
	prog_check(db, db_begin(db, false));
	for (size_t i = 0; i < count; i++) {
		if ((rc = each(db, &claims[i], arg)) == Q_OK)
			continue;
		if (rc != Q_LOST) {
			db_rollback(db);
			prog_check(db, rc);
		}
		if ((lost = realloc(lost, (nlost + 1) * sizeof *lost)) == NULL)
			prog_die(Q_TEMP, "out of memory");
		snprintf(lost[nlost++], sizeof *lost, "%s", db_message(db));
		db_clear(db);
	}
	prog_check(db, db_commit(db));
	for (size_t i = 0; i < nlost; i++)	/* told only now: standard error may block */
		prog_warn("%s", lost[i]);
	prog_exit(nlost > 0 ? Q_LOST : worst);
}

int
prog_settle(struct db *db, const struct claim *c, void *how)
{
	return job_settle(db, c, how, prog_now(), NULL);
}

static void
caught(int sig)
{
	prog_signal = sig;
}

void
prog_catch(void)
{
	static const int SIGNALS[] = { SIGINT, SIGTERM, SIGHUP };
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

int
prog_poll(struct pollfd *p, nfds_t n, int64_t ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
	sigset_t none;

	sigemptyset(&none);
	return ppoll(p, n, ms == -1 ? NULL : &ts, &none);
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
prog_exit(int status)
{
	bool lost = ferror(stdout) != 0;

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
