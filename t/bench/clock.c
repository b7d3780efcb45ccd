/*
 * clock.c - the stop watch of run.
 *
 *	clock turn [-n ROUNDS] [-p SHELL] [-i STDIN] [-a LINES] CMD... [:: CMD...]...
 *		The commands in turn, ROUNDS times, after SHELL (not timed).  A line for each: median ms, median of its
 *		ratios to the first in the same round, largest resident KiB, failures, median ms of processor.  An argument @ is the next of LINES.
 *	clock loops [-P N] [-s SECONDS] CMD...
 *		N loops of CMD side by side: runs/s, p50 ms, p99, max, least loop / busiest loop, failures.
 *	clock jobs [-P N] [-s SECONDS | -n JOBS] [-b BATCH] [-k new|same|random] FILE QUEUE add|one|two
 *		The same for N processes that add jobs (-k: with keys), or claim and settle them in one commit or in two, through libq;
 *		counts jobs, times commits (of two: both).
 *	clock redis|beanstalkd [-P N] [-s SECONDS | -n JOBS] SOCKET add|work
 *		The same for N clients of such a server, one job at a time.
 *	clock stamp FILE
 *		A handler: appends to FILE how many ms ago the instant was that standard input names (ns since 1970).
 *	clock hold FILE
 *		Holds the file open as a worker does, until it is killed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "q.h"

enum { COMMANDS = 16, LOOPS = 64, TIMES = 1 << 18, BATCH_MAX = 10000 };

struct loop { double ms[TIMES]; int64_t times, jobs, failed; };

extern char **environ;
static int rounds = 50, nloops = 1, batch = 1;
static double seconds = 2;
static int64_t limit = INT64_MAX;
static const char *prepare, *input = "/dev/null", *keys;
static bool beanstalkd;
static FILE *lines;

static double
clock_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static _Noreturn void
die(const char *what)
{
	fprintf(stderr, "clock: %s\n", what);
	exit(1);
}

static int
less(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Sorts v. */
static double
quantile(double *v, size_t n, double q)
{
	if (n == 0)
		return 0;
	qsort(v, n, sizeof *v, less);
	return v[(size_t)(q * (double)(n - 1) + 0.5)];
}

/* Runs one command to its end; false if it failed. */
static bool
run(char **argv, double *ms, double *cpu, long *rss)
{
	static posix_spawn_file_actions_t files;
	static bool told, made;
	double start;
	struct rusage use;
	int status;
	pid_t pid;

	if (!made) {
		made = true;
		posix_spawn_file_actions_init(&files);
		posix_spawn_file_actions_addopen(&files, 0, input, O_RDONLY, 0);
		posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
		posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	}
	start = clock_ms();
	if (posix_spawnp(&pid, argv[0], &files, NULL, argv, environ) != 0 || wait4(pid, &status, 0, &use) != pid)
		die(argv[0]);
	*ms = clock_ms() - start;
	*cpu = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e3 +
	    (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e3;
	if (use.ru_maxrss > *rss)
		*rss = use.ru_maxrss;
	if (status != 0 && !told) {
		told = true;
		fprintf(stderr, "clock: %s ended with status %#x\n", argv[0], (unsigned)status);
	}
	return status == 0;
}

static char *
next_line(void)
{
	char *line = NULL;
	size_t cap = 0;

	if (lines == NULL || getline(&line, &cap, lines) == -1)
		die("no more LINES");
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static int
turn(char **argv)
{
	char **command[COMMANDS];
	size_t all = (size_t)rounds * COMMANDS;
	double *ms = calloc(all, sizeof *ms), *cpu = calloc(all, sizeof *cpu), *ratio = calloc((size_t)rounds, sizeof *ratio);
	double paired[COMMANDS];
	int failed[COMMANDS] = { 0 }, n = 0, i, r;
	long rss[COMMANDS] = { 0 };

	if (ms == NULL || cpu == NULL || ratio == NULL || *argv == NULL)
		die("no command");
	for (command[n++] = argv; *argv != NULL; argv++)
		if (strcmp(*argv, "::") == 0 && n < COMMANDS) {
			*argv = NULL;
			command[n++] = argv + 1;
		}
	for (r = 0; r < rounds; r++) {
		if (prepare != NULL && system(prepare) != 0)
			die("SHELL failed");
		for (i = 0; i < n; i++) {
			char *args[64] = { NULL };

			for (int k = 0; command[i][k] != NULL && k < 63; k++)
				args[k] = strcmp(command[i][k], "@") == 0 ? next_line() : command[i][k];
			failed[i] += !run(args, &ms[i * rounds + r], &cpu[i * rounds + r], &rss[i]);
		}
	}
	for (i = 0; i < n; i++) {
		for (r = 0; r < rounds; r++)
			ratio[r] = ms[i * rounds + r] / ms[r];
		paired[i] = quantile(ratio, (size_t)rounds, 0.5);
	}
	for (i = 0; i < n; i++)
		printf("%.3f %.3f %ld %d %.3f\n", quantile(ms + i * rounds, (size_t)rounds, 0.5), paired[i], rss[i], failed[i],
		    quantile(cpu + i * rounds, (size_t)rounds, 0.5));
	return 0;
}

/* ---- side by side ---- */

static void
time_of(struct loop *l, double ms)
{
	l->ms[l->times++ % TIMES] = ms;
}

static void
processes(struct loop *l, char **argv, double end)
{
	double ms, cpu;
	long rss = 0;

	while (clock_ms() < end && l->jobs < limit) {
		l->failed += !run(argv, &ms, &cpu, &rss);
		l->jobs++;
		time_of(l, ms);
	}
}

static void
check(struct db *db, int status)
{
	if (status != Q_OK)
		die(db_message(db));
}

static struct db *
open_file(const char *path)
{
	struct db *db = NULL;
	int status = db_open(&db, path, DB_STAY);

	check(db, status);
	return db;
}

static void
settle(struct db *db, const struct claim *claims, int n)
{
	static const struct job_settle DONE = { .outcome = OUT_DONE, .due_ms = -1, .count = -1, .exit = 0, .signal = -1 };

	for (int i = 0; i < n; i++)
		check(db, job_settle(db, &claims[i], &DONE, when_now(), NULL));
}

/* By -k; random: as an order number is, anywhere among the others. */
static const char *
key(int64_t n)
{
	static char text[40];

	if (keys == NULL)
		return NULL;
	if (strcmp(keys, "same") == 0)
		return "the same";
	snprintf(text, sizeof text, strcmp(keys, "random") == 0 ? "%016llx-%d" : "order-%012lld-%d",
	    (long long)((uint64_t)n * (strcmp(keys, "random") == 0 ? UINT64_C(0x9e3779b97f4a7c15) : 1)), (int)getpid());
	return text;
}

static void
libq(struct loop *l, char **argv, double end)
{
	static struct claim claims[BATCH_MAX];
	struct job_new new = { .queue = argv[1], .priority = -1, .event_ms = -1, .attempts = -1, .window_ms = -1, .base_ms = -1,
	    .cap_ms = -1, .payload = "{\"to\":\"ana@example.org\",\"text\":\"hello\"}", .payload_len = 41 };
	struct job_want want = { .queues = argv + 1, .nqueues = 1, .lease_ms = JOB_LEASE_MS, .worker = "bench", .n = batch };
	bool adds = strcmp(argv[2], "add") == 0, two = strcmp(argv[2], "two") == 0;
	enum job_added added;
	struct db *db = open_file(argv[0]);
	int64_t id;
	int held = 0;
	double start;

	do {
		start = clock_ms();
		check(db, db_begin(db, adds));
		if (adds) {
			new.due_ms = when_now();
			for (held = 0; held < batch; held++) {
				new.key = key(l->jobs + held);
				check(db, job_add(db, &new, when_now(), &id, &added));
			}
		} else {
			settle(db, claims, two ? 0 : held);
			check(db, job_claim(db, &want, when_now(), claims, &held));
		}
		check(db, db_commit(db));
		if (two) {
			check(db, db_begin(db, false));
			settle(db, claims, held);
			check(db, db_commit(db));
		}
		l->jobs += held;
		time_of(l, clock_ms() - start);
	} while (held > 0 && l->jobs < limit && clock_ms() < end);
	if (held == 0 && limit != INT64_MAX)
		die("too few jobs");
	if (held > 0 && !two && !adds) {
		check(db, db_begin(db, false));
		settle(db, claims, held);
		check(db, db_commit(db));
	}
}

/* Sends, and reads an answer of so many lines. */
static void
talk(FILE *f, const char *text, char *answer, size_t size, int n)
{
	if (fputs(text, f) == EOF || fflush(f) == EOF)
		die("the server does not listen");
	while (n-- > 0)
		if (fgets(answer, (int)size, f) == NULL || *answer == '-')
			die(*answer == '-' ? answer : "the server has gone");
}

/* redis: a list of jobs, and one of those that run, as its pages say; beanstalkd: put, reserve, delete. */
static void
server(struct loop *l, char **argv, double end)
{
	static const char JOB[] = "{\"to\":\"ana@example.org\",\"text\":\"hello\",\"n\":";
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	bool adds = strcmp(argv[1], "add") == 0;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char text[512], payload[128], answer[256] = "";
	double start;
	FILE *f;

	snprintf(to.sun_path, sizeof to.sun_path, "%s", argv[0]);
	if (connect(fd, (struct sockaddr *)&to, sizeof to) == -1 || (f = fdopen(fd, "r+")) == NULL)
		die("no server there");
	setvbuf(f, NULL, _IOFBF, 4096);
	while (l->jobs < limit && clock_ms() < end) {
		start = clock_ms();
		snprintf(payload, sizeof payload, "%s\"%d-%lld\"}", JOB, (int)getpid(), (long long)l->jobs);
		if (adds && beanstalkd)
			snprintf(text, sizeof text, "put 0 0 120 %zu\r\n%s\r\n", strlen(payload), payload);
		else if (adds)
			snprintf(text, sizeof text, "*3\r\n$5\r\nLPUSH\r\n$1\r\nq\r\n$%zu\r\n%s\r\n", strlen(payload), payload);
		else
			strcpy(text, beanstalkd ? "reserve-with-timeout 0\r\n" : "*5\r\n$5\r\nLMOVE\r\n$1\r\nq\r\n$4\r\nruns\r\n$5\r\nRIGHT\r\n$4\r\nLEFT\r\n");
		talk(f, text, answer, sizeof answer, 1);
		if (!adds) {
			if (strncmp(answer, "TIMED_OUT", 9) == 0 || strncmp(answer, "$-1", 3) == 0)
				break;
			fgets(payload, sizeof payload, f);
			payload[strcspn(payload, "\r")] = '\0';
			if (beanstalkd)
				snprintf(text, sizeof text, "delete %lld\r\n", atoll(answer + strlen("RESERVED ")));
			else
				snprintf(text, sizeof text, "*4\r\n$4\r\nLREM\r\n$4\r\nruns\r\n$1\r\n1\r\n$%zu\r\n%s\r\n", strlen(payload), payload);
			talk(f, text, answer, sizeof answer, 1);
		}
		l->jobs++;
		time_of(l, clock_ms() - start);
	}
}

static void
stamp(char **argv)
{
	struct timespec now;
	char line[64];
	FILE *f = fopen(argv[0], "a");

	clock_gettime(CLOCK_REALTIME, &now);
	if (f == NULL || fgets(line, sizeof line, stdin) == NULL)
		die("stamp");
	fprintf(f, "%.3f\n", ((double)now.tv_sec * 1e9 + (double)now.tv_nsec - atof(line)) / 1e6);
	fclose(f);
}

static int
side_by_side(void (*work)(struct loop *, char **, double), char **argv)
{
	struct loop *loops = mmap(NULL, (size_t)nloops * sizeof *loops, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t jobs = 0, failed = 0, least = INT64_MAX, most = 0;
	double *all, start = clock_ms(), end = limit == INT64_MAX ? start + seconds * 1e3 : 1e18, p50, p99, max;
	size_t n = 0;
	int i;

	if (loops == MAP_FAILED)
		die("out of memory");
	for (i = 0; i < nloops; i++)
		switch (fork()) {
		case -1:
			die("fork");
		case 0:
			work(&loops[i], argv, end);
			_exit(0);
		}
	while (wait(&i) > 0)
		failed += i != 0;
	end = clock_ms();
	for (i = 0; i < nloops; i++)
		n += (size_t)(loops[i].times < TIMES ? loops[i].times : TIMES);
	if ((all = calloc(n + 1, sizeof *all)) == NULL)
		die("out of memory");
	for (n = 0, i = 0; i < nloops; i++) {
		size_t k = (size_t)(loops[i].times < TIMES ? loops[i].times : TIMES);

		memcpy(all + n, loops[i].ms, k * sizeof *all);
		n += k;
		jobs += loops[i].jobs;
		failed += loops[i].failed;
		least = loops[i].jobs < least ? loops[i].jobs : least;
		most = loops[i].jobs > most ? loops[i].jobs : most;
	}
	p50 = quantile(all, n, 0.5);
	p99 = quantile(all, n, 0.99);
	max = quantile(all, n, 1);
	printf("%.0f %.3f %.3f %.3f %.2f %lld\n", (double)jobs / (end - start) * 1e3, p50, p99, max,
	    most > 0 ? (double)least / (double)most : 0.0, (long long)failed);
	return failed > 0;
}

static _Noreturn void
hold(char **argv)
{
	open_file(argv[0]);
	for (;;)
		pause();
}

int
main(int argc, char *argv[])
{
	const char *what = argc > 1 ? argv[1] : "";
	int c;

	for (optind = 2; (c = getopt(argc, argv, "+n:p:i:a:P:s:b:k:")) != -1;)
		switch (c) {
		case 'n': rounds = atoi(optarg); limit = rounds; break;
		case 'p': prepare = optarg; break;
		case 'i': input = optarg; break;
		case 'a': lines = fopen(optarg, "r"); break;
		case 'P': nloops = atoi(optarg); break;
		case 's': seconds = atof(optarg); break;
		case 'b': batch = atoi(optarg); break;
		case 'k': keys = optarg; break;
		default: die("see the top of clock.c");
		}
	if (rounds < 1 || nloops < 1 || nloops > LOOPS || batch < 1 || batch > BATCH_MAX)
		die("a number is out of range");
	argv += optind;
	if (strcmp(what, "turn") == 0)
		return turn(argv);
	if (strcmp(what, "loops") == 0)
		return side_by_side(processes, argv);
	if (strcmp(what, "jobs") == 0)
		return side_by_side(libq, argv);
	beanstalkd = strcmp(what, "beanstalkd") == 0;
	if (beanstalkd || strcmp(what, "redis") == 0)
		return side_by_side(server, argv);
	if (strcmp(what, "stamp") == 0) {
		stamp(argv);
		return 0;
	}
	if (strcmp(what, "hold") == 0)
		hold(argv);
	die("see the top of clock.c");
}
