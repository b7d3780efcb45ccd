/* sync.h - what the queue file knows of a source: cursor, items seen, runs */
#ifndef SYNC_H
#define SYNC_H

#include "source.h"

struct sync_run {			/* counts of one run; q_poll_run says what each is */
	int64_t id, started_ms, items, fresh, repeated, late, future;
	char before[CURSOR_MAX + 1], note[480];
};

struct sync {
	struct db *db;
	const struct source *src;
	const struct pager *pager;	/* for what it counts */
	int64_t gen;			/* 0: this source is new */
	char config[65];
	char *cursor, *walk, *etag, *modified;	/* NULL: none */
	struct cursor_key key, seen_from;
	int64_t unmodified, shown_ms, probed_ms, hidden;
	bool pointed;
	bool beaten;			/* another run was quicker: a step without page and cursor writes down the run alone */
	struct sync_run run;
};

/* What is known of src; also makes the tables.  The caller frees with sync_free(). */
int sync_read(struct sync *, struct db *, const struct source *, const struct pager *);
void sync_free(struct sync *);
/* Q_DATA: more items are remembered than "max_seen" allows. */
int sync_room(struct sync *);

/* Marks the items that were not seen before, and counts. */
int sync_fresh(struct sync *, struct page *);

/* The job of an item, inside a transaction; *new: it was not there. */
int sync_add(struct db *, const struct source *, const struct item *, int64_t priority, int64_t now, bool *new);

struct sync_step {			/* what one transaction does */
	const struct page *page;	/* its fresh items become jobs and are remembered; NULL: none */
	const char *cursor;		/* it moves here; NULL: it stays */
	const char *walk;		/* "" ends the walk; NULL: as it is */
	const char *outcome;		/* NULL: the run goes on */
	int exit;
};
/* Q_TEMP also: another run of the source was quicker, nothing was stored. */
int sync_step(struct sync *, const struct sync_step *, int64_t now);

/* Forget cursor, walk and items seen; or set the cursor. */
int sync_reset(struct sync *, const char *cursor, int64_t now);

struct sync_past { int64_t started_ms, finished_ms, exit, http, pages, items, fresh, repeated, late, future, bytes, waited_ms; const char *outcome, *before, *after, *note; };
/* The runs of a source, the newest first; stops like job_list(). */
int sync_runs(struct sync *, int (*each)(const struct sync_past *, void *), void *);

#endif
