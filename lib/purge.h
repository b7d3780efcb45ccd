/* purge.h - retention: mark what is too old, delete it a grace time later */
#ifndef PURGE_H
#define PURGE_H

#include "q.h"

struct purge {
	int64_t now, as_of;		/* wall ms; ages are counted from as_of */
	int64_t grace_ms;
	int64_t limit;			/* at most so many jobs a queue are marked; -1: ten times the usual */
	bool dry;			/* by reading alone */
	FILE *ids;			/* gets "ID<TAB>QUEUE" of all that is deleted, before it is; dry: also of what would be marked; or NULL */
	const char *ids_name;		/* its name, for messages */
	/* Called between transactions, to let others go on for ms.  True: stop. */
	bool (*pause)(int64_t ms);
};

struct purge_line {
	enum { PURGE_DELETED, PURGE_MARKED, PURGE_WAITS, PURGE_REFUSED, PURGE_SPARED } what;
	const char *queue;
	int64_t jobs, cutoff_ms;
	int64_t limit;			/* of PURGE_REFUSED: at most so many */
};

/*
 * Delete what runs marked whose grace is over, then mark what is older than the queues keep, as a run of the name as_of.  Each
 * transaction is short, and counts what it deletes: a run that is stopped goes on when it is run again.  each() is called for
 * each queue and run, at the end of each part.  Q_NO: some queue was refused; Q_TEMP: pause() said stop, or another run came between.
 */
int purge_run(struct db *, const struct purge *, void (*each)(const struct purge_line *, void *), void *);

/* Forget all marks that are not yet carried out; each() is called for each of them. */
int purge_undo(struct db *, int64_t now, void (*each)(const struct purge_line *, void *), void *arg);

#endif
