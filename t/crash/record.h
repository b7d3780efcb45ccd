/*
 * record.h - what programs do to the files of one folder, in order
 *
 * SQLite's files by a VFS around its own; what libq does by itself to names and folders by the linker's --wrap.  Not recorded:
 * -shm, which no boot survives, and -lock and -reserve, in which nothing is kept.  The record is shared with forked children.
 */
#ifndef RECORD_H
#define RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum op_kind {
	OP_WRITE,		/* bytes of a file */
	OP_SIZE,		/* it is cut, or made longer with zeros */
	OP_SYNC,		/* what came before for this file is on disk */
	OP_NAME,		/* a new file gets the name `to` */
	OP_RENAME,		/* `from` becomes `to` */
	OP_UNLINK,		/* `from` is gone */
	OP_FOLDER,		/* sync of the folder: the names are on disk */
	OP_POINT,		/* nothing, but a point of interest: a sync that was not done, a program that was killed */
	OP_ACK			/* somebody was told that all before is done */
};

struct op {
	enum op_kind kind;
	int file;		/* -1: none */
	int64_t offset, size;	/* size: of what is written, or the new one of the file */
	const unsigned char *data;
	char from[32], to[32];
};

enum { RECORD_FILES = 256 };

/* Which syncs are not what they should be: for controls. */
enum lie { LIE_NONE, LIE_NORMAL, LIE_OFF, LIE_FOLDER };

void record_setup(enum lie);	/* once, when SQLite is configured: the VFS becomes the default one */
void record_start(const char *folder);	/* absolute; forget everything, begin with what is there, as if on disk */
/* Before a program, in its process: everything from here on is recorded; the nth operation, or the nth sync, ends the process before it is done (0: none). */
void record_program(int nth, bool syncs);
void record_point(void);
void record_ack(void);
const struct op *record_ops(int *n, int *base);	/* the first `base` of them are what was there at the start */

enum { RECORD_KILLED = 199 };	/* exit status of a process that record_program() ended */

#endif
