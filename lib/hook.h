/*
 * hook.h - the table of qhook: which paths take webhooks, and what a request is worth.  Knows nothing of sockets and of the
 * database; sign.h knows the signatures.
 */
#ifndef HOOK_H
#define HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HOOK_BODY_MAX = 1 << 20,	/* bytes of a body, unless the line says otherwise, at most JOB_EVENT_MAX */
	HOOK_NAME = 256			/* bytes of a name with its NUL: id, type, entity */
};

struct hook_table;			/* the whole file */
struct hook;				/* one line of it */

/*
 * Read a table and the secrets it names.  All of it is good, or *table is NULL and message says what is not, with the line:
 * Q_NOINPUT, Q_PERM (a file that others can read), Q_CONFIG.  Files are named relative to the table's folder.
 * hook_free() wipes the secrets.
 */
int hook_read(const char *file, struct hook_table **table, char *message, size_t size);
void hook_free(struct hook_table *);

struct hook_field { const char *name, *value; };	/* a header */

/* A request, as it came, framing already checked.  A header that the line reads and that is there twice is refused here, with 400. */
struct hook_request {
	const char *method, *target;	/* target: path, and what follows '?' */
	const struct hook_field *fields;
	int nfields;
	const void *body;
	size_t len;
};

/*
 * What can be said when the head is there and the body is not: 0 (*hook is the line, go on with at most *max bytes), or the
 * status to answer with: 404, 405 (*allow is set), 415.  A path with the scheme `health` gives 200: the caller knows whether
 * all is well.
 */
int hook_head(const struct hook_table *, const struct hook_request *, const struct hook **hook, size_t *max, const char **allow);

struct hook_verdict {
	int status;			/* to answer with: 200 and the like, or a refusal (401, 403, 406, 400) */
	const char *why;		/* of a refusal, a constant for the operator: never sent to the client */
	bool event;			/* it is to be stored; else it was a handshake, or refused */
	char *answer;			/* body of the answer, or NULL; hook_done() frees */
	const char *answer_type;	/* its Content-Type */

	/* Of an event.  Text that is absent is "". */
	const char *queue, *path, *scheme, *secret;	/* of the table: valid as long as it is; secret: the file's name */
	const char *source;		/* of the id: "signed", "unsigned", "body" */
	char id[HOOK_NAME], key[HOOK_NAME];		/* key: PATH/ID, shortened by a digest if it were too long */
	char type[HOOK_NAME], entity[HOOK_NAME];
	int64_t event_ms;		/* the provider's time of the event; -1: not said */
	bool no_id;			/* an id was to be found and was not */
	unsigned char digest[32];	/* SHA-256 of the body */
	char *headers;			/* as q_hook keeps them; hook_done() frees */
};

/*
 * Verify first, then judge its age, then read it.  now: the wall clock, ms; -1: an event that was stored, whose age says nothing.
 * False: out of memory.  hook_done() in any case.
 */
bool hook_judge(const struct hook *, const struct hook_request *, int64_t now, struct hook_verdict *);
void hook_done(struct hook_verdict *);

/*
 * The headers of a verdict as fields again, for hook_judge(): text is cut into pieces, which the fields borrow.  How many,
 * at most max; -1: it is no such text.
 */
int hook_fields(char *text, struct hook_field *, int max);

/* Paths that take what anybody sends (scheme insecure-none), to be told at the start; the nth, from 0, NULL: no more. */
const char *hook_insecure(const struct hook_table *, int nth);

#endif
