/*
 * cover.c - for `make cover` alone: programs that end by _exit(2), or become another, tell what they reached before
 */
#define _GNU_SOURCE
#include <unistd.h>

void __gcov_dump(void);
void __wrap__exit(int) __attribute__((noreturn));
void __real__exit(int) __attribute__((noreturn));
int __wrap_execvp(const char *, char *const []);
int __real_execvp(const char *, char *const []);

void
__wrap__exit(int status)
{
	__gcov_dump();
	__real__exit(status);
}

int
__wrap_execvp(const char *file, char *const argv[])
{
	__gcov_dump();
	return __real_execvp(file, argv);
}
