/*
 * inject.h - calls of the system and of the allocator that fail when they are told to
 *
 * The functions stand in the program itself, before those of the C library, so that SQLite, jansson, curl and libq call them alike.
 * What the C library does within itself is not reached, but for standard output and the files of fopen(3) and fdopen(3), whose
 * streams are given other ends here.  Counted are regular files and standard input and output, not pipes and sockets.
 */
#ifndef INJECT_H
#define INJECT_H

#include <stdbool.h>
#include <stdint.h>

/* What fails, and how. */
enum inject {
	READ_EIO, READ_SHORT,	/* half of it comes, and the rest the next time */
	READ_END,		/* pread(2): the file ends there */
	WRITE_EIO, WRITE_FULL,	/* half of it, then ENOSPC */
	SYNC_EIO, OPEN_MANY,	/* EMFILE, of all that makes descriptors */
	OPEN_EIO, MAP_NOMEM, LOCK_NONE, SIZE_EIO, SIZE_FULL, CLOSE_EIO, NAME_EIO, STAT_EIO, FORK_AGAIN, MEMORY,
	INJECTS
};
extern const char *const INJECT[INJECTS];

/* A control: a failed write says that all is well, and has done nothing. */
void inject_lie(bool);
/* The nth of these calls is to fail, or that and all after it; nth 0: none, they are counted. */
void inject_set(enum inject, int64_t nth, bool on);
void inject_stop(void);		/* from now on nothing fails, in whichever process */
/*
 * From now on they do, in this process and those that it forks.  Standard output of this process is changed as above, and what is
 * random becomes the same each time.
 */
void inject_arm(void);
extern bool inject_armed;		/* in this process */
/* Since inject_set(), by whichever process: how many there were; how many failed. */
int64_t inject_count(enum inject);
int64_t inject_failed(void);
/* When a file was synced, in this process alone; NULL: nothing. */
extern void (*inject_synced)(void);

#endif
