/* check.h - what qcheck looks at */
#ifndef CHECK_H
#define CHECK_H

#include "q.h"

struct check {			/* one finding; valid during the call */
	const char *name;	/* "payloads": what was looked at */
	bool ok;
	bool warning;		/* nothing is wrong yet */
	const char *detail;	/* why; of a good one what is worth knowing, or NULL */
	const char *next;	/* what to do, or NULL */
};

/*
 * Looks at the file, changing nothing; each() gets one finding or more for each check.  quick: without what reads the whole
 * file.  Q_OK: all is well, Q_NO: something is not; else it could not be looked at.
 */
int check_file(struct db *, bool quick, int64_t now, void (*each)(const struct check *, void *), void *);

#endif
