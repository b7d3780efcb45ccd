/*
 * table.h - aligned tables for people: fitted to a width, or whole.  Knows nothing of the database.
 */
#ifndef TABLE_H
#define TABLE_H

#include <stddef.h>
#include <stdio.h>

enum table_kind { TABLE_NUMBER, TABLE_NAME, TABLE_REST };	/* right-aligned; left and cut where room is short; the last one, never padded */
struct table_col {
	const char *head;
	int drop;			/* 1 leaves first where room is short, then 2 ...; 0: stays */
	enum table_kind kind;
	int least;			/* of TABLE_REST: columns that it needs at least, if it is not empty */
};

struct table;
struct table *table_new(const struct table_col *, int ncols);	/* NULL: out of memory; so are the others then, and table_print() says -1 */
void table_hide(struct table *, int col);
/* The next cell, row by row; it is made safe for a terminal when it is shown. */
void table_bytes(struct table *, const void *, size_t);
void table_text(struct table *, const char *);
/* Frees it.  room 0: whole.  -1: out of memory. */
int table_print(struct table *, FILE *, int room);

#endif
