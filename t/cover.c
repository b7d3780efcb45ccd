/*
 * cover.c - for `make cover` alone: programs that end by _exit(2), or become another, tell what they reached before;
 * and each appends its name and its status to the file SEEN
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef SEEN			/* as lint reads it */
#define SEEN "seen"
#endif

void __gcov_dump(void);
void __gcov_reset(void);
void __wrap__exit(int) __attribute__((noreturn));
void __real__exit(int) __attribute__((noreturn));
int __wrap_execvp(const char *, char *const []);
int __real_execvp(const char *, char *const []);
extern bool inject_armed __attribute__((weak));		/* of t/fault/inject.c, if it is there */

static void
seen(int status, void *unused)
{
	char line[64];
	int n = snprintf(line, sizeof line, "%.40s %d\n", program_invocation_short_name, status);
	int fd = open(SEEN, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

	(void)unused;
	if (fd >= 0) {
		(void)!write(fd, line, (size_t)n);
		close(fd);
	}
}

/* Nothing is to fail here. */
static bool
arm(bool armed)
{
	bool was = &inject_armed != NULL && inject_armed;

	if (&inject_armed != NULL)
		inject_armed = armed;
	return was;
}

/* Where a test limits the size of files, nothing is told; and another user cannot write to the folder of the first. */
static void
dump(void)
{
	const char *prefix = getenv("GCOV_PREFIX");
	bool armed = arm(false);
	struct rlimit size;
	char own[4096];

	if (getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_cur != RLIM_INFINITY)
		return;
	if (prefix != NULL && geteuid() != 0) {
		snprintf(own, sizeof own, "%s.%u", prefix, (unsigned)geteuid());
		setenv("GCOV_PREFIX", own, 1);
	}
	__gcov_dump();
	arm(armed);
}

static void __attribute__((constructor))
watch(void)
{
	on_exit(seen, NULL);
}

void
__wrap__exit(int status)
{
	arm(false);
	seen(status, NULL);
	dump();
	__real__exit(status);
}

/* Who lives on after that tells what follows at its end. */
int
__wrap_execvp(const char *file, char *const argv[])
{
	int failed;

	dump();
	__real_execvp(file, argv);
	failed = errno;
	__gcov_reset();
	errno = failed;
	return -1;
}
