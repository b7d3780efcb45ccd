/* inbox.h - the events of webhooks in a queue file: each becomes a job, with a row of q_hook beside it */
#ifndef INBOX_H
#define INBOX_H

#include "hook.h"
#include "q.h"

struct inbox {				/* an event */
	const struct hook_request *request;
	const struct hook_verdict *verdict;
	int64_t id;			/* of its job */
	bool known;			/* it was there before, and nothing is written */
};

/* Is it there already?  By reading alone.  Q_DATA: what no job can have. */
int inbox_look(struct db *, struct inbox *, int64_t now);

/* Add it, inside db_begin()..db_commit(). */
int inbox_add(struct db *, struct inbox *, int64_t now);

/*
 * Requests of a path that were refused, n more of them; n 0: its last one was good.  Inside db_begin()..db_commit(): kept in the
 * file, so that a wrong secret is seen by who does not read the log.
 */
struct inbox_refused { const char *path, *why; int64_t n, since_ms, last_ms; int status; };
int inbox_refuse(struct db *, const struct inbox_refused *);

struct inbox_kept {			/* what is kept of an event; borrowed until the next inbox_get() */
	const char *path, *scheme, *event, *secret, *target;
	char *headers;
	const void *body;
	size_t len;
};

/* The event of a job.  Q_NOINPUT: that job is none, or is not there. */
int inbox_get(struct db *, int64_t id, struct inbox_kept *);

#endif
