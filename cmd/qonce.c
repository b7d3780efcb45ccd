/* qonce - run a command once per key, and remember that it happened */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

static const char HELP[] =
"usage: qonce [-hV] [-d FILE] [-n | -w DUR] [-l LEASE] [-u POLICY]\n"
"             (KEY | --job PREFIX) -- CMD...\n"
"       qonce [-hVj] [-d FILE] (--show KEY | --list)\n"
"       qonce [-hV] [-d FILE] (--done KEY | --forget KEY)\n"
"Run CMD, unless a CMD has exited 0 under this KEY before: then print what that\n"
"had written, and exit 0.  CMD finds Q_ONCE_KEY, to be passed to the other side.\n"
"  qonce welcome-17 -- ./send-mail ana\n"
"  qwork charges -- qonce --job charge -- ./charge\n"
"  --job PREFIX       KEY is PREFIX:$Q_KEY, or PREFIX#$Q_ID for a job without key\n"
"  -n, --nowait       if it runs just now, do not wait: exit 75\n"
"  -w, --wait DUR     wait that long at most (default: as long as it takes)\n"
"  -l, --lease LEASE  how long it counts as running after kill -9 of qonce\n"
"                     (default 1m); renewed at a third of it\n"
"  -u, --unknown POLICY  if a run was cut short, so that it may have happened:\n"
"                     fail (exit 69, the default), rerun, or probe:CMD, whose\n"
"                     exit says: 0 it happened, 1 it did not\n"
"  --show, --list     how KEY stands; what runs or is unknown; -j, --json\n"
"  --done, --forget   you found out: it happened; or it did not, so run it again\n"
"Exit: as CMD; 69 unknown, 74 output lost (but on record), 75 not now, 76 the\n"
"lease was lost and CMD ended.\n";

enum {
	JOB = 256, SHOW, LIST, DONE, FORGET,	/* options without a letter */
	SLICE_MS = 1000,		/* a wait does not end sooner because the machine slept, a lease does */
	SETTLE_MS = 60 * 1000,		/* how long the end is tried to be written down */
	SIGNALS = 64			/* a shell's 128 + N */
};
static const struct option LONGS[] = {
	{ "job", 1, NULL, JOB }, { "nowait", 0, NULL, 'n' }, { "wait", 1, NULL, 'w' }, { "lease", 1, NULL, 'l' },
	{ "unknown", 1, NULL, 'u' }, { "json", 0, NULL, 'j' }, { "show", 0, NULL, SHOW }, { "list", 0, NULL, LIST },
	{ "done", 0, NULL, DONE }, { "forget", 0, NULL, FORGET }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qonce", .help = HELP, .shorts = "+nw:l:u:j", .longs = LONGS };

static int renew(struct db *, void *);

static struct run run = { .strict = true, .lease_ms = 60 * 1000, .renew = renew, .spec.spool = true };
static char *asked[] = { (char []){ "/bin/sh" }, (char []){ "-c" }, NULL, NULL };	/* the probe */
static struct child_spec ask_spec = { .argv = asked, .kill_ms = 5000 };
static struct minder asker = { .fd = -1 };
static bool rerun, json, tty;
static const char *key;
static int64_t wait_ms = INT64_MAX, fence;
static struct once_end how;
static struct db *db;
static int spool;

static const char NEXT[] = "next: find out, then tell: qonce --done KEY or qonce --forget KEY";

/* ---- output -------------------------------------------------------------- */

static bool
put(int fd, const char *p, size_t n)
{
	ssize_t done;

	for (; n > 0; p += done, n -= (size_t)done)
		if ((done = write(fd, p, n)) == -1)
			return false;
	return true;
}

/* What the command has written, all of it; without a spool what was kept.  False with errno. */
static bool
pass_on(int fd)
{
	static char buf[64 * 1024];
	struct stat st;
	ssize_t n = 0;

	if (fstat(spool, &st) == -1 || st.st_size < (off_t)run.end.out_len)
		return put(fd, run.end.out, run.end.out_len);
	for (off_t at = 0; (n = pread(spool, buf, sizeof buf, at)) > 0; at += n)
		if (!put(fd, buf, (size_t)n))
			return false;
	return n == 0;
}

static void
output_lost(void)
{
	prog_die(Q_IO, "%s: standard output: %s; it is done and on record, and the same command prints this again", key, strerror(errno));
}

/* It happened before. */
static _Noreturn void
again(const struct once *o)
{
	prog_uncatch();
	if (!put(STDOUT_FILENO, o->output, o->output_len))
		output_lost();
	if (o->output_total > (int64_t)o->output_len)
		prog_warn("%s: of %" PRId64 " bytes of output the first %zu were kept", key, o->output_total, o->output_len);
	prog_exit(Q_OK);
}

/* ---- may it run? --------------------------------------------------------- */

/* The environment of a command; the caller frees. */
static char *
environment(int64_t around, size_t *len)
{
	char *env = NULL;
	FILE *f = text_memory(&env, len);

	if (f != NULL) {
		fprintf(f, "Q_ONCE_KEY=%s%c", key, 0);
		if (around != 0)
			lock_env_fences(db, around, f);
		fprintf(f, "Q_DB=%s%c", db_path(db), 0);
	}
	if (f == NULL || fclose(f) == EOF)
		prog_die(Q_TEMP, "out of memory");
	return env;
}

/* Ask the outside world: 0 it happened, 1 it did not. */
static int
ask(void)
{
	static struct child_end end;
	struct pollfd p = { asker.fd, POLLIN, 0 };
	char reason[CHILD_REASON_MAX];
	size_t len;
	char *env = environment(0, &len);

	minder_run(&asker, env, len, "", 0);
	free(env);
	while (prog_poll(&p, 1, -1) <= 0)
		if (prog_signal != 0) {
			minder_stop(&asker);
			prog_killed(prog_signal);
		}
	minder_end(&asker, &end);
	if (child_exit(&end) > 1)
		prog_die(Q_UNKNOWN, "%s: the probe cannot tell whether it happened: %s", key,
		    child_headline(child_reason(reason, &end, &ask_spec)));
	return child_exit(&end);
}

static void
happened(const struct once *seen)
{
	int64_t before = seen->fence;
	struct once o;

	prog_check(db, db_begin(db, false));
	prog_check(db, once_look(db, key, &o));
	if (o.state == ONCE_UNKNOWN && o.fence == before)
		prog_check(db, once_happened(db, key, prog_worker(), prog_now()));
	prog_check(db, db_commit(db));
}

/* A run was cut short.  True: run it. */
static bool
decide(const struct once *o)
{
	char at[WHEN_TEXT];

	if (asker.fd != -1) {
		if (ask() == 1)
			return true;
		happened(o);
		return false;
	}
	if (!rerun)
		prog_die(Q_UNKNOWN, "%s: it may have happened: the run of %s %s%s; %s", key, when_text(at, o->started_ms, false),
		    o->reason != NULL ? "was cut short: " : "never told its end", o->reason != NULL ? child_headline(o->reason) : "", NEXT);
	return true;
}

/* While it runs elsewhere. */
static void
wait_for(const struct once *o, int64_t version, int64_t end)
{
	int64_t left = end - when_elapsed();

	if (lock_under(db, o->fence))
		prog_die(Q_TEMP, "%s: started by a qonce that this runs under, and would wait for itself", key);
	if (left <= 0)
		prog_exit(Q_TEMP);
	left = left < o->left_ms ? left : o->left_ms;
	prog_nap(db, version, left < SLICE_MS ? left : SLICE_MS);
	if (prog_signal != 0)
		prog_killed(prog_signal);
}

static int
settle(struct db *file, void *unused)
{
	(void)unused;
	return once_end(file, key, fence, &how, when_now());
}

/* On disk before the command begins.  *at: when the lease had not begun.  False: something has changed. */
static bool
start(const struct once *seen, int64_t *at)
{
	int rc, sig;

	prog_check(db, db_tables(db, FOR_QONCE));
	*at = when_elapsed();
	prog_check(db, db_begin(db, true));
	if ((rc = once_start(db, seen, run.lease_ms, prog_worker(), prog_now(), &fence)) == Q_NO) {
		db_rollback(db);
		return false;
	}
	prog_check(db, rc);
	prog_poll(NULL, 0, 0);
	if (prog_signal != 0)			/* while the file was busy; nothing has happened */
		prog_killed(prog_signal);
	prog_check(db, db_commit(db));
	prog_poll(NULL, 0, 0);
	if ((sig = prog_signal) != 0) {
		how = (struct once_end){ .state = ONCE_FAILED, .exit = 128 + sig, .reason = "interrupted before it began" };
		prog_signal = 0;
		run_settle(db, RUN_SETTLE_MS, settle, NULL);
		prog_killed(sig);
	}
	return true;
}

/* Start it, or end the program.  What start() says of time. */
static int64_t
begin(void)
{
	int64_t end = wait_ms == INT64_MAX ? INT64_MAX : when_elapsed() + wait_ms, version, at;
	struct once o;

	for (;;) {
		if ((version = db_data_version(db)) == -1)
			prog_check(db, db_status(db));
		prog_check(db, once_look(db, key, &o));
		if (o.state == ONCE_DONE) {
			prog_check(db, db_sync(db));
			again(&o);
		} else if (o.state == ONCE_RUNNING)
			wait_for(&o, version, end);
		else if ((o.state != ONCE_UNKNOWN || decide(&o)) && start(&o, &at))
			return at;
	}
}

/* ---- running it ---------------------------------------------------------- */

static int
renew(struct db *file, void *unused)
{
	(void)unused;
	return once_renew(file, key, fence, run.lease_ms);
}

/* What its end means.  Unless it says so itself, a command that was cut short does not know how far it came. */
static enum once_state
judge(const struct child_end *end)
{
	int status = child_exit(end);

	if (end->exec_errno != 0)
		return ONCE_FAILED;
	if (status == 0)
		return ONCE_DONE;
	/* 124: timeout(1) ended it.  255: ssh(1) lost the connection. */
	if (end->told || end->lapsed || end->gone || status == Q_UNKNOWN || status == Q_LOST || status == 124 || status == 255 ||
	    (status > 128 && status <= 128 + SIGNALS))
		return ONCE_UNKNOWN;
	return ONCE_FAILED;
}

/* Why it is unknown or failed, for who looks later. */
static char *
why(char buf[CHILD_REASON_MAX])
{
	if (run.caught == 0 || !run.end.told)
		return child_reason(buf, &run.end, &run.spec);
	snprintf(buf, CHILD_REASON_MAX, "interrupted by signal %d", run.caught);
	return buf;
}

/* What settle() said. */
static int
record(void)
{
	static char reason[CHILD_REASON_MAX];
	int rc;

	how.state = judge(&run.end);
	how.exit = child_exit(&run.end);
	if (how.state != ONCE_DONE)
		how.reason = why(reason);
	how.output_total = run.end.out_total;
	if (how.state != ONCE_FAILED) {
		how.output = run.end.out;
		how.output_len = run.end.out_len;
	}
	if ((rc = run_settle(db, 0, settle, NULL)) == Q_IO)
		how.output_len = 0;		/* that it happened matters more than what it wrote */
	return rc == Q_OK || rc == Q_LOST ? rc : run_settle(db, SETTLE_MS, settle, NULL);
}

/* Nobody is to act on output of which nothing is on record; but the record may be all that is lost. */
static _Noreturn void
unrecorded(int rc)
{
	prog_uncatch();
	pass_on(STDERR_FILENO);
	if (rc == Q_LOST)
		prog_die(Q_LOST, "%s: the lease was over, and another run or a decision came first; this run (exit status %d) is not on record",
		    key, child_exit(&run.end));
	prog_die(Q_UNKNOWN, "%s: the command ended with exit status %d, which cannot be written down: %s; %s", key, child_exit(&run.end),
	    db_message(db), NEXT);
}

static _Noreturn void
once(void)
{
	int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), rc;
	int64_t at;
	size_t len;
	char *env;

	if (out == -1 || (spool = spool_file()) == -1)
		prog_die(Q_CREATE, "cannot make a temporary file for the output: %s; is TMPDIR right?", strerror(errno));
	run.what = key;
	dup2(spool, STDOUT_FILENO);		/* the minder's own standard output */
	run_start(&run);
	if (asked[2] != NULL && minder_start(&asker, &ask_spec, &run.minder, 1) == -1)
		prog_die(Q_TEMP, "cannot start a process: %s; see ulimit -u", strerror(errno));
	dup2(out, STDOUT_FILENO);
	close(out);
	db = prog_open(DB_ONCE);
	at = begin();
	minder_stop(&asker);
	env = environment(fence, &len);
	run_begin(&run, at, env, len);
	run_watch(&run, db);
	if ((rc = record()) != Q_OK)
		unrecorded(rc);
	prog_uncatch();
	if (!pass_on(STDOUT_FILENO) && how.state == ONCE_DONE)
		output_lost();
	if (run.end.lost[0] != 0 && run.end.out_total > (int64_t)run.end.out_len && how.state == ONCE_DONE)
		prog_die(Q_IO, "%s: the temporary file of its output: %s; it is done and on record, and its output is not complete", key,
		    strerror(run.end.lost[0]));
	run.end.lost[0] = 0;
	if (how.state == ONCE_UNKNOWN)
		prog_warn("%s: it may have happened: %s%s%s", key, child_headline(how.reason), rerun || asked[2] != NULL ? "" : "; ",
		    rerun || asked[2] != NULL ? "" : NEXT);
	if (how.state == ONCE_UNKNOWN && (run.end.lapsed || run.lost))
		prog_die(Q_LOST, "%s: the lease could not be renewed in time, and the command was ended", key);
	prog_exit(run_exit(&run));
}

/* ---- looking and deciding ------------------------------------------------ */

static int
print(const struct once *o, void *first)
{
	const char *state = once_word(o), *who = o->worker != NULL ? o->worker : "", *reason = child_headline(o->reason);
	char started[WHEN_TEXT] = "", finished[WHEN_TEXT] = "", code[24] = "";
	int64_t now = prog_now();

	if (o->exit != -1)
		snprintf(code, sizeof code, "%" PRId64, o->exit);
	if (o->started_ms != -1)
		(tty ? when_relative(started, o->started_ms, now) : when_text(started, o->started_ms, false));
	if (o->finished_ms != -1)
		(tty ? when_relative(finished, o->finished_ms, now) : when_text(finished, o->finished_ms, false));
	if (json) {
		once_print(stdout, o, now);
	} else if (tty) {
		if (*(bool *)first)
			printf("%-24s %-8s %5s %-13s %-13s %4s %s\n", "KEY", "STATE", "RUNS", "STARTED", "ENDED", "EXIT", "WHO, WHY");
		*(bool *)first = false;
		printf("%*s ", 24 - text_show(stdout, o->key, strlen(o->key), 24), "");
		printf("%-8s %5" PRId64 " %-13s %-13s %4s ", state, o->runs, started, finished, code);
		text_show(stdout, who, strlen(who), 0);
		fputs(*reason != '\0' ? ", " : "", stdout);
		text_show(stdout, reason, strlen(reason), 0);
		putchar('\n');
	} else {
		text_tsv(stdout, o->key, strlen(o->key));
		printf("\t%s\t%" PRId64 "\t%s\t%s\t%s\t", state, o->runs, started, finished, code);
		text_tsv(stdout, who, strlen(who));
		putchar('\t');
		text_tsv(stdout, reason, strlen(reason));
		putchar('\n');
	}
	return Q_OK;
}

static _Noreturn void
look(int mode)
{
	bool first = true;
	struct once o;

	tty = isatty(STDOUT_FILENO);
	prog_now();
	db = prog_open(DB_READ);
	if (mode == LIST) {
		prog_check(db, once_each(db, print, &first));
		prog_exit(Q_OK);
	}
	prog_check(db, once_look(db, key, &o));
	if (o.state == ONCE_ABSENT)
		prog_die(Q_NOINPUT, "%s: no such key in %s; nothing was ever started under it", key, db_path(db));
	print(&o, &first);
	prog_exit(Q_OK);
}

static _Noreturn void
rule(int mode)
{
	int64_t now = prog_now();
	int rc;

	db = prog_open(DB_ONCE);
	prog_check(db, db_tables(db, FOR_QONCE));
	prog_check(db, db_begin(db, false));
	rc = mode == DONE ? once_happened(db, key, prog_worker(), now) : once_forget(db, key);
	if (rc == Q_NO)
		prog_die(Q_TEMP, "%s: it runs just now; try again when that has ended", key);
	if (rc == Q_NOINPUT)
		prog_die(Q_NOINPUT, "%s: no such key in %s%s", key, db_path(db),
		    mode == DONE ? "; next: qonce --list; or qonce KEY -- true, if nothing was ever started" : "");
	prog_check(db, rc);
	prog_check(db, db_commit(db));
	prog_exit(Q_OK);
}

/* ---- the command line ---------------------------------------------------- */

static void
policy(char *word)
{
	rerun = strcmp(word, "rerun") == 0;
	asked[2] = strncmp(word, "probe:", 6) == 0 && word[6] != '\0' ? word + 6 : NULL;
	if (!rerun && asked[2] == NULL && strcmp(word, "fail") != 0)
		prog_usage("-u: '%s' is not fail, rerun or probe:CMD", word);
}

/* Here and not by the shell: on the command line of qwork that would be a shell that knows no job. */
static const char *
key_of_job(const char *prefix)
{
	static char buf[1024];
	const char *job = getenv("Q_KEY"), *id = getenv("Q_ID");
	bool by_id = job == NULL || *job == '\0';

	if (by_id && (id == NULL || *id == '\0'))
		prog_usage("--job: neither Q_KEY nor Q_ID is set: it is for commands of qwork or qjob");
	snprintf(buf, sizeof buf, "%s%c%s", prefix, by_id ? '#' : ':', by_id ? id : job);
	return prog_name("key", buf);
}

static _Noreturn void
run_once(char *argv[], const char *prefix, bool no_wait)
{
	char **rest = argv + optind;

	if (prefix == NULL) {
		if (*rest == NULL)
			prog_usage("no KEY");
		key = prog_name("key", *rest++);
		if (*rest == NULL || strcmp(*rest++, "--") != 0)
			prog_usage("the command follows '--' after the key");
	} else if (prefix == argv[optind - 1] || strcmp(argv[optind - 1], "--") != 0) {	/* its "--" was an option to getopt(3) */
		if (*rest != NULL && strcmp(prefix, "--") != 0)
			prog_usage("with --job there is no KEY: '--' and the command follow");
		prog_usage("the command follows '--' after the prefix");
	}
	if (*rest == NULL)
		prog_usage("no command after '--'");
	if (no_wait && wait_ms != INT64_MAX)
		prog_usage("-n and -w exclude each other");
	if (run.lease_ms < 1000)
		prog_usage("-l: a lease is at least 1s");
	if (no_wait)
		wait_ms = 0;
	if (prefix != NULL)
		key = key_of_job(prog_name("prefix", prefix));
	run.spec.argv = rest;
	prog_now();			/* a bad Q_NOW is told before anything is done */
	once();
}

int
main(int argc, char *argv[])
{
	const char *prefix = NULL;
	bool runs = false, no_wait = false;
	int c, mode = 0;

	prog_start(&self, true);
	while ((c = prog_option(argc, argv)) != -1) {
		runs |= c == JOB || (c < JOB && c != 'j');
		switch (c) {
		case 'n': no_wait = true; break;
		case 'w': wait_ms = prog_duration("-w", optarg); break;
		case 'l': run.lease_ms = prog_duration("-l", optarg); break;
		case 'u': policy(optarg); break;
		case 'j': json = true; break;
		case JOB: prefix = optarg; break;
		default:
			if (mode != 0)
				prog_usage("--show, --list, --done and --forget exclude each other");
			mode = c;
		}
	}
	if (json && mode != SHOW && mode != LIST)
		prog_usage("-j goes with --show and --list");
	if (mode == 0)
		run_once(argv, prefix, no_wait);
	if (runs)
		prog_usage("-n, -w, -l, -u and --job go with a command");
	if (mode != LIST && optind == argc)
		prog_usage("no KEY");
	if (mode != LIST)
		key = prog_name("key", argv[optind++]);
	if (optind < argc)
		prog_usage("too many operands: '%s'", argv[optind]);
	if (mode == SHOW || mode == LIST)
		look(mode);
	rule(mode);
}
