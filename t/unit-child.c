/*
 * unit-child.c - lib/child.c on a command line, without a database: one verb a function.
 *
 *	run LIMIT_MS KILL_MS CMD...	its end; the input is our standard input
 *	kill SIGNAL KILL_MS CMD...	signalled once ./go is there; then a signal that comes too late,
 *					and the command again, with AGAIN=yes
 *	stop CMD...			minder_stop() once ./go is there
 *	gone CMD...			the minder is killed once ./go is there
 *	nofile CMD...			the minder has no descriptor to spare
 *	many N CMD...			N times by three minders in turn; how many ended well
 *	headline TEXT			child_headline()
 *
 * An end is: wait status in hex, errno of exec, flags, reason, output.  With PASS in the environment the output is
 * passed on, standard input is left to the command, and what is told stands in ./end: instead of the output what was
 * lost (errno of standard output, error), and the count.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "child.h"

static struct child_spec spec = { .kill_ms = 5000 };
static struct minder m[3];
static struct child_end end;
static FILE *to;			/* what is told */

static void
begin(int n, char *argv[])
{
	spec.argv = argv;
	spec.pass = getenv("PASS") != NULL;
	to = spec.pass ? fopen("end", "w") : stdout;
	if (to == NULL)
		exit(2);
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < n; i++)
		if (minder_start(&m[i], &spec, m, i) == -1)
			exit(2);
}

static bool
ended(struct minder *one)
{
	struct pollfd p = { one->fd, POLLIN, 0 };

	int rc;

	while ((rc = poll(&p, 1, 30000)) == -1 && errno == EINTR)	/* a minder that ends is told by SIGCHLD */
		;
	return rc == 1 && minder_end(one, &end) == 0;
}

static int
print(struct minder *one)
{
	char reason[CHILD_REASON_MAX];

	if (!ended(one)) {
		fprintf(to, "the minder is gone\n");
		return 1;
	}
	fprintf(to, "%x %d %s%s[%s] ", (unsigned)end.status, end.exec_errno, end.timed_out ? "timed out " : "",
	    end.told ? "told " : "", child_reason(reason, &end, &spec));
	if (spec.pass)
		fprintf(to, "%d %d %lld\n", end.lost[0], end.lost[1], (long long)end.count);
	else
		fprintf(to, "%.*s\n", (int)end.out_len, end.out);
	return 0;
}

static void
wait_for_go(void)
{
	for (int i = 0; i < 3000 && access("go", F_OK) != 0; i++)
		poll(NULL, 0, 10);
}

static int
run(char *argv[])
{
	static char input[1 << 20];
	size_t n = getenv("PASS") != NULL ? 0 : fread(input, 1, sizeof input, stdin);

	spec.limit_ms = atoi(argv[0]);
	spec.kill_ms = atoi(argv[1]);
	begin(1, argv + 2);
	minder_run(m, "AGAIN=", 7, input, n);
	return print(m);
}

static int
late(char *argv[])
{
	spec.kill_ms = atoi(argv[1]);
	begin(1, argv + 2);
	minder_run(m, "AGAIN=", 7, "", 0);
	wait_for_go();
	minder_kill(m, atoi(argv[0]));
	print(m);
	minder_kill(m, SIGKILL);
	minder_run(m, "AGAIN=yes", 10, "", 0);
	return print(m);
}

static int
stop(char *argv[])
{
	begin(3, argv);
	minder_run(m, "AGAIN=", 7, "", 0);
	wait_for_go();
	minder_stop(m);
	minder_stop(m);
	fprintf(to, "%d\n", m->fd);
	for (int i = 1; i < 3; i++)
		minder_stop(&m[i]);
	return 0;
}

static int
gone(char *argv[])
{
	begin(2, argv);
	minder_run(m, "AGAIN=", 7, "", 0);
	wait_for_go();
	kill(m->pid, SIGKILL);
	print(m);
	fprintf(to, "%d\n", minder_run(m, "", 0, "", 0));
	minder_kill(m, SIGTERM);
	minder_run(&m[1], "AGAIN=yes", 10, "", 0);
	return print(&m[1]);
}

static int
nofile(char *argv[])
{
	struct rlimit few = { 8, 8 };

	for (int fd = 3; fd < 256; fd++)
		close(fd);		/* what the caller passed on */
	setrlimit(RLIMIT_NOFILE, &few);
	begin(1, argv);
	minder_run(m, "AGAIN=", 7, "", 0);
	return print(m);
}

static int
many(char *argv[])
{
	int n = atoi(argv[0]), good = 0, len;
	char number[16];

	begin(3, argv + 1);
	for (int i = 0; i < n + 3; i++) {	/* three run at any time; each gives back its number */
		struct minder *one = &m[i % 3];

		len = snprintf(number, sizeof number, "%d", i - 3);
		if (i >= 3)
			good += ended(one) && end.status == 0 && end.out_len == (size_t)len && memcmp(end.out, number, (size_t)len) == 0;
		len = snprintf(number, sizeof number, "%d", i);
		if (i < n)
			minder_run(one, "AGAIN=", 7, number, (size_t)len);
	}
	printf("%d of %d\n", good, n);
	return 0;
}

int
main(int argc, char *argv[])
{
	static const struct { const char *verb; int (*fn)(char *[]); } VERBS[] =
	    { { "run", run }, { "kill", late }, { "stop", stop }, { "gone", gone }, { "nofile", nofile }, { "many", many } };

	for (size_t i = 0; argc > 2 && i < sizeof VERBS / sizeof *VERBS; i++)
		if (strcmp(argv[1], VERBS[i].verb) == 0)
			return VERBS[i].fn(argv + 2);
	if (argc != 3 || strcmp(argv[1], "headline") != 0)
		return 2;
	puts(child_headline(argv[2]));
	return 0;
}
