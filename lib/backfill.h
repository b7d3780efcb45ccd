/* backfill.h - plans of qbackfill: windows of history, and how far each is */
#ifndef BACKFILL_H
#define BACKFILL_H

#include "walk.h"

#define PLAN_WINDOWS_MAX 100000

struct plan {
	const char *name;
	bool time;			/* values are ms since 1970; else whole numbers */
	int64_t start, stop, step;
	char config[65];		/* of the source, or "" */
	char flag[8];			/* "", "pause", "stop" */
};

struct window {
	int64_t start, stop, pages, items, fresh;
	char state[8];
	char *walk;			/* where to go on; NULL: at its beginning */
	const char *note;
};

struct plan_count { int64_t todo, done, failed, items, fresh, pages; };	/* todo: also those begun */

/* A value as people write it; returns buf. */
char *plan_value(const struct plan *, int64_t, char buf[WHEN_TEXT]);

/*
 * What the texts ask for, into *p, whose name is set; src NULL: of a command.  to NULL: p->stop if that is not 0, else where the cursor
 * of qpoll is, the next whole value, since what comes twice is one job.  Q_USAGE, Q_CONFIG: db_message() says why.
 */
int plan_parse(struct db *, const struct source *src, const char *from, const char *to, const char *step, struct plan *p);

/* All of them make the tables if need be.  Q_NO: there is no such plan. */
int plan_read(struct db *, const char *name, struct plan *);
/* Make it, instead of one that is done.  Inside db_begin()..db_commit(). */
int plan_make(struct db *, const struct plan *, int64_t now);
int plan_drop(struct db *, const char *name);
int plan_flag(struct db *, const char *name, const char *flag);	/* NULL: none */
int plan_retry(struct db *, const char *name);			/* what failed is to be done again, from its beginning; ends a "stop" */
int plan_count(struct db *, const char *name, struct plan_count *);
int plan_each(struct db *, const char *name, int (*each)(const struct window *, void *), void *);

/* The window to do: one that was begun, else the first (or last) that is left.  Q_NO: none.  The caller frees walk. */
int plan_next(struct db *, const char *name, bool newest, struct window *);
int window_save(struct db *, const char *name, const struct window *, int64_t now);
/* In two, in the middle, where the API can tell the halves apart; what was counted stays with the first.  Q_NO: it is too small. */
int window_split(struct db *, const struct plan *, const struct source *, const struct window *);

struct window_ask { char from[CURSOR_TEXT], to[CURSOR_TEXT]; struct cursor_key start; };	/* {from}, {to}; items below start are not of it */
/* How an API is asked for a window, from where it was left: into *a and w. */
void window_ask(const struct plan *, const struct source *, const struct window *, struct window_ask *a, struct walk *w);

/* How many items of a page are of the window. */
int64_t window_wants(const struct window_ask *, const struct page *);
/* They become jobs, inside db_begin()..db_commit(), and *w counts them.  Q_DATA: one cannot. */
int window_add(struct db *, const struct source *, const struct window_ask *, const struct page *, int64_t priority, int64_t now, struct window *w);
/* Where to go on after a page, by what walk.h gives for it: a new w->walk, or the same. */
void window_go_on(const struct source *, const char *cursor, const char *position, bool last, struct window *w);

/* Who works on it: one process.  Q_TEMP: another one does.  A dead one's place is taken at once.  Inside db_begin()..db_commit(). */
int plan_own(struct db *, const char *name, const char *worker, int64_t lease_ms, int64_t now, int64_t *fence);
int plan_keep(struct db *, const char *name, int64_t fence, int64_t lease_ms);	/* Q_LOST */
int plan_leave(struct db *, const char *name, int64_t fence);

/* How many unfinished jobs of a queue wait, counted up to most. */
int64_t plan_depth(struct db *, const char *queue, int64_t most);

#endif
