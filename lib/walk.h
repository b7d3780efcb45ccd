/*
 * walk.h - through the pages of a source, so that nothing is missed while they move
 *
 * What qpoll and qbackfill share: rules R3 to R7, R10 and R13 of qpoll(1).  Nothing here knows the database.
 */
#ifndef WALK_H
#define WALK_H

#include "source.h"

struct ask { bool set; char text[CURSOR_TEXT]; struct cursor_key key; };	/* what is asked with; not set: with no value */

struct walk {
	const struct source *src;
	struct pager *pager;
	struct ask from;
	struct cursor_key until;	/* what is at or above it is not wanted; n 0: no such bound */
	char *pointer, *high;		/* desc, any: where an earlier walk stopped, and its highest value; Freed by walk_run() */
	int64_t pass;			/* how many passes over the pages came before, in this walk */
	char *known;			/* the highest value before this pass: what lies below and changed since is above it now */
	char *token;			/* opaque: the cursor.  Freed likewise */
	bool pointed;			/* the source has shown a pointer, now or earlier: a page without one is the last */

	/* Called before each request.  Q_OK; Q_NO: end here, though there may be more; else the walk ends with it. */
	int (*before)(struct walk *);
	/*
	 * Store a page.  Sets fresh for its new items, and adds them to w->fresh.  cursor: everything up to this value (or token) is
	 * stored with it; NULL: not known.  position: where to go on after a restart, "": from the start, NULL: as before.
	 * last: the walk is complete with this.  page may be empty.  Not Q_OK: the walk ends with it.
	 */
	int (*store)(struct walk *, struct page *page, const char *cursor, const char *position, bool last);
	void *arg;

	int64_t fresh;
	bool closed;			/* set: store() was called with last */
	bool unmodified;		/* set: the first page is what it was (304) */
	bool unsettled;			/* set: it changed each time it was read, so the cursor lags behind */
	bool cut;			/* set: the last page ended where the API ends each query ("cap") */
	int64_t depth;			/* rows that the query gave, page after page; to go on at a pointer: those before it */
	int64_t empty;			/* its own */
	bool proving;
};

/* Q_OK: complete; Q_NO: before() ended it; else pager->message says why. */
int walk_run(struct walk *);

/* position as walk_run() gives it, taken apart into w->pointer and w->high. */
void walk_resume(struct walk *, const char *position);

/* Is the page, asked for from w->from on, in order and within what was asked for?  Q_OK, or Q_DATA. */
int walk_judge(struct walk *, struct page *);

/* The item with the largest value that is wanted and does not lie in the future; NULL: none. */
const struct item *walk_largest(const struct page *);

#endif
