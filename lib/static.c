/*
 * static.c - what statically linked programs go without.
 *
 * The C library loads plug-ins to look a group up, and libraries for dlopen(3): in a static
 * program neither is sure to work, and the linker warns of both.  Nothing here needs them:
 * SQLite could load extensions, which q never asks for, and only qinit, which is not static,
 * asks for a group.  So these programs are linked with --wrap, and such calls come here.
 */
#include <stddef.h>

void *__wrap_dlopen(const char *, int);
void *__wrap_getgrnam(const char *);

void *
__wrap_dlopen(const char *file, int mode)
{
	(void)file;
	(void)mode;
	return NULL;
}

void *
__wrap_getgrnam(const char *name)
{
	(void)name;
	return NULL;
}
