/*
 * nodl.c - no loading of libraries, for statically linked programs only.
 *
 * SQLite can load extensions, which q never asks for.  In a static program that could not work,
 * and the linker warns of it; so these programs are linked with --wrap=dlopen, and SQLite's
 * call of dlopen(3) comes here.
 */
#include <stddef.h>

void *__wrap_dlopen(const char *, int);

void *
__wrap_dlopen(const char *file, int mode)
{
	(void)file;
	(void)mode;
	return NULL;
}
