/*
 * door.h - where requests come in: sockets, connections, deadlines, bodies.  One thread, one request a connection.  Knows nothing
 * of webhooks and of the database.
 *
 * A connection is taken from the socket and its head watched and checked here (head.h), so that one that is idle or slow costs a
 * descriptor and a few words; only then GNU libmicrohttpd gets it, which reads the body.
 */
#ifndef DOOR_H
#define DOOR_H

#include "head.h"

enum {
	DOOR_HEAD_MS = 5 * 1000,	/* from the accept until the head is there, */
	DOOR_ALL_MS = 10 * 1000,	/* until the body is there, too */
	DOOR_HELD = 64 << 20,		/* bytes of all bodies at a time, but for small ones */
	DOOR_RETRY = 5			/* seconds, in Retry-After of 503 */
};

struct call {				/* a request */
	struct head head;
	char *body;
	size_t len, max;		/* at most max bytes; set by begin() */
	void *arg;			/* of who serves */

	int status;			/* of the answer; 503 gets a Retry-After */
	const char *why;		/* of a refusal, a constant, for people on this side */
	const char *allow;		/* of 405 */
	const char *text, *type;	/* body of the answer, or NULL, and its Content-Type; until end() */

	size_t room, chunks;		/* these are door.c's */
	struct conn *conn;
};

struct door {
	/* The head is there: 0, and at most call->max bytes are read; else the status to answer with at once. */
	int (*begin)(struct call *);
	/* These are complete: sets their status. */
	void (*serve)(struct call **, size_t n);
	/* The call is answered, refused (status and why) or gone (status 0): release what begin() and serve() attached. */
	void (*end)(struct call *);
};

/*
 * listen.c: a listening socket.  addr: "127.0.0.1:PORT", "[::1]:PORT", "unix:PATH"; port 0 takes a free one, which *port is set to
 * (else 0).  NULL: the one that the service manager handed over (LISTEN_FDS), or door_handed().  -1: *status and the message.
 */
int door_listen(const char *addr, int *port, int *status, char *message, size_t size);
/* How many sockets were handed over; once, before anything else: they are not passed on. */
int door_handed(void);
/* The file of a unix socket that door_listen() made goes. */
void door_unlink(void);

/* From now on take requests from the socket.  Q_OK, Q_TEMP. */
int door_start(const struct door *, int fd);
/* Take no more; who has sent no head yet has a second for it. */
void door_stop(void);
/* Wait for requests, until a signal (as prog_poll()), and serve what is there.  False: all connections have ended. */
bool door_turn(void);

#endif
