/* door.c - connections, from accept to close */
#define _GNU_SOURCE
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "door.h"
#include "prog.h"

#ifndef DOOR_BATCH
#define DOOR_BATCH 1024			/* requests served together */
#endif

enum {
	CONNS = 2000,
	SPARE = 48,			/* descriptors for everything else */
	LINGER_MS = 1000,		/* how long a client that has its answer may still send */
	TICK_MS = 100,
	EVENTS = 256,
	STUCK_MS = 10,
	SMALL = 16 * 1024,		/* bytes that each body may have, however large the others are */
	POOL = 32 * 1024,		/* of libmicrohttpd, a connection: the head, its table, the answer */
	CHUNKS = 10 * 1000		/* in addition to one for each 8 bytes */
};

/* HEAD: ours, until the head is there; then libmicrohttpd's: BODY; READY: suspended, until it is served; ANSWERED: of either. */
enum where { HEAD, BODY, READY, ANSWERED };

struct conn {
	struct conn *prev, *next;	/* by age */
	enum where where;
	int fd;
	bool watched;			/* by poller */
	int64_t end;			/* its deadline, by when_elapsed() */
	size_t seen;			/* bytes of the head that were looked at */
	struct call *call;		/* from the head on */
	struct MHD_Connection *mhd;	/* from BODY on */
	char *text;			/* what call->head points into */
};

static const struct door *door;
static struct MHD_Daemon *http;
static struct conn first = { .prev = &first, .next = &first }, *adding;
static struct call *ready[CONNS + 1];
static size_t nready, nconns, limit, held;
static int poller = -1, listener = -1, http_fd;
static bool full;			/* the socket is not looked at */
static bool moved;			/* libmicrohttpd has called */
static int64_t now, swept;

static void
watch(int op, int fd, uint32_t events, void *what)
{
	struct epoll_event e = { .events = events, .data.ptr = what };

	epoll_ctl(poller, op, fd, &e);
}

static void
call_free(struct conn *c)
{
	if (c->call == NULL)
		return;
	if (c->where == BODY) {		/* libmicrohttpd does not say which */
		c->call->status = 408;
		c->call->why = "the connection ended before the body, or the form of it is wrong";
	}
	door->end(c->call);
	held -= c->call->room;
	free(c->call->body);
	free(c->call);
	free(c->text);
	c->call = NULL;
}

/* Edge-triggered: what is there already is told at once, and then only what comes. */
static void
wait_for_more(struct conn *c)
{
	if (!c->watched)
		watch(EPOLL_CTL_ADD, c->fd, EPOLLIN | EPOLLRDHUP | EPOLLET, c);
	c->watched = true;
}

/* The descriptor is closed by who has it. */
static void
conn_free(struct conn *c)
{
	call_free(c);
	c->prev->next = c->next;
	c->next->prev = c->prev;
	free(c);
	nconns--;
	if (full && listener != -1)
		watch(EPOLL_CTL_MOD, listener, EPOLLIN, &listener);
	full = false;
}

/* The rest waits in the backlog of the socket, at the latest until the next sweep. */
static void
wait_for_room(void)
{
	watch(EPOLL_CTL_MOD, listener, 0, &listener);
	full = true;
}

static void
conn_close(struct conn *c)
{
	if (c->mhd != NULL) {		/* which then sees its end, and tells closed() */
		shutdown(c->fd, SHUT_RDWR);
		return;
	}
	close(c->fd);
	conn_free(c);
}

/* ---- answers ---- */

static const char *
phrase(int status)
{
	const char *p = MHD_get_reason_phrase_for((unsigned)status);

	return p != NULL ? p : "";
}

/*
 * Answer, which ends what is to be said: what still comes is read and dropped for a while, since a close would reset the
 * connection, and the answer might be lost with it.  Not left to libmicrohttpd: it has no answer before the end of a body, and
 * none for a client that has closed its half.
 */
static void
answer(struct conn *c, int status, const char *why)
{
	struct call *call = c->call;
	const char *text = call != NULL && call->text != NULL ? call->text : "";
	char head[512];
	struct iovec parts[2] = { { .iov_base = head }, { .iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text) } };
	struct msghdr whole = { .msg_iov = parts, .msg_iovlen = 2 };
	time_t seconds = time(NULL);
	struct tm tm;
	int n;

	n = snprintf(head, sizeof head, "HTTP/1.1 %d %s\r\n", status, phrase(status));
	if (gmtime_r(&seconds, &tm) != NULL)
		n += (int)strftime(head + n, sizeof head - (size_t)n, "Date: %a, %d %b %Y %T GMT\r\n", &tm);
	if (status != 204)		/* which has none, by RFC 9110 */
		n += snprintf(head + n, sizeof head - (size_t)n, "Content-Length: %zu\r\n", parts[1].iov_len);
	n += snprintf(head + n, sizeof head - (size_t)n, "Connection: close\r\n");
	if (call != NULL && call->type != NULL)
		n += snprintf(head + n, sizeof head - (size_t)n, "Content-Type: %.100s\r\n", call->type);
	if (status == 405 && call != NULL && call->allow != NULL)
		n += snprintf(head + n, sizeof head - (size_t)n, "Allow: %.100s\r\n", call->allow);
	if (status == 503)
		n += snprintf(head + n, sizeof head - (size_t)n, "Retry-After: %d\r\n", DOOR_RETRY);
	n += snprintf(head + n, sizeof head - (size_t)n, "\r\n");
	parts[0].iov_len = (size_t)n;
	(void)!sendmsg(c->fd, &whole, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (c->where != READY)		/* it is closed at once */
		shutdown(c->fd, SHUT_WR);
	c->where = ANSWERED;
	c->end = now + LINGER_MS;
	if (c->mhd == NULL)
		wait_for_more(c);
	if (call == NULL)
		return;
	call->status = status;
	call->why = why;
	call_free(c);
}

/* A head that is none has no path that could be told. */
static void
refuse_head(struct conn *c, int status, const char *why)
{
	struct call none = { .status = status, .why = why };

	door->end(&none);
	answer(c, status, why);
}

/* ---- bodies: libmicrohttpd calls these ---- */

/* 0, or the status to refuse it with. */
static int
take(struct call *call, const char *data, size_t n, const char **why)
{
	size_t room = call->room > 0 ? call->room : 4096;
	char *body;

	*why = "the body is longer than max=";
	if (n > call->max - call->len)
		return 413;
	/* A fragment may be half a chunk, so this errs, but not by much: whole ones would be larger. */
	*why = "the body comes in too many tiny chunks";
	if (call->head.chunked && ++call->chunks > CHUNKS + call->len / 8)
		return 400;
	while (room < call->len + n)	/* not what was declared: that may never come */
		room *= 2;
	if (room > call->max)
		room = call->max;
	if (room > call->room) {
		*why = "too many bodies at a time";
		if ((room > SMALL && held + room - call->room > DOOR_HELD) || (body = realloc(call->body, room)) == NULL)
			return 503;
		held += room - call->room;
		call->body = body;
		call->room = room;
	}
	memcpy(call->body + call->len, data, n);
	call->len += n;
	return 0;
}

static enum MHD_Result
handle(void *unused, struct MHD_Connection *mhd, const char *url, const char *method, const char *version, const char *data, size_t *n, void **state)
{
	struct conn *c = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
	const char *why;
	int status;

	(void)unused, (void)url, (void)method, (void)version;
	moved = true;
	if (*state == NULL) {		/* the head, which was checked */
		*state = c;
		return MHD_YES;
	}
	if (*n > 0) {
		if (c->where == BODY && (status = take(c->call, data, *n, &why)) != 0)
			answer(c, status, why);
		*n = 0;
		return MHD_YES;
	}
	if (c->where != BODY)
		return MHD_NO;
	MHD_suspend_connection(mhd);
	c->where = READY;
	ready[nready++] = c->call;
	return MHD_YES;
}

static void
connected(void *unused, struct MHD_Connection *mhd, void **context, enum MHD_ConnectionNotificationCode what)
{
	struct conn *c = *context;

	(void)unused;
	moved = true;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*context = c = adding;
		c->mhd = mhd;
		return;
	}
	if (c == adding)
		adding = NULL;
	conn_free(c);
}

/* ---- heads ---- */

/* The head is there: n bytes of it at text. */
static void
begin(struct conn *c, const char *text, size_t n)
{
	struct sockaddr_in nobody = { .sin_family = AF_INET };
	struct call *call = calloc(1, sizeof *call);
	const char *why;
	int status;

	if (call == NULL || (c->text = malloc(n)) == NULL) {
		free(call);
		refuse_head(c, 503, "out of memory");
		return;
	}
	call->conn = c;
	memcpy(c->text, text, n);
	if ((status = head_read(c->text, n, &call->head, &why)) != 0) {
		free(c->text);
		free(call);
		refuse_head(c, status, why);
		return;
	}
	c->call = call;
	status = door->begin(call);
	why = call->why;
	if (status == 0 && call->head.length > 0 && (uint64_t)call->head.length > call->max) {
		status = 413;
		why = "the body is longer than max=";
	}
	if (status != 0) {
		answer(c, status, why);
		return;
	}
	if (c->watched)
		watch(EPOLL_CTL_DEL, c->fd, 0, NULL);
	c->where = BODY;
	c->end += DOOR_ALL_MS - DOOR_HEAD_MS;
	adding = c;
	/* What it does not take it closes, and tells closed() if it had told of it. */
	if (MHD_add_connection(http, c->fd, (struct sockaddr *)&nobody, sizeof nobody) != MHD_YES && adding == c)
		conn_free(c);
	adding = NULL;
}

static void
look(struct conn *c, uint32_t events)
{
	static char text[HEAD_MAX + 1];
	ssize_t n = recv(c->fd, text, sizeof text, MSG_PEEK);
	size_t end;

	if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR)) {
		conn_close(c);
		return;
	}
	if (n == -1) {
		wait_for_more(c);
		return;
	}
	end = head_end(text, (size_t)n, c->seen);
	c->seen = (size_t)n;
	if (end > HEAD_MAX || (end == 0 && n > HEAD_MAX))
		refuse_head(c, 431, "the head is longer than 16 KiB");
	else if (end > 0)
		begin(c, text, end);
	else if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		conn_close(c);
	else
		wait_for_more(c);
}

/* After a refusal. */
static void
drop(struct conn *c)
{
	static char text[64 * 1024];
	ssize_t n;
	int turns = 16;

	while ((n = recv(c->fd, text, sizeof text, 0)) > 0 && --turns > 0)
		;
	if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR) || turns == 0)
		conn_close(c);
}

/* Who has sent no head yet has the least to lose; if there is nobody, it is who had the most time. */
static void
make_room(void)
{
	struct conn *c = first.next;

	while (c != &first && c->where != HEAD)
		c = c->next;
	if (c == &first)
		c = first.next;
	if (c->where == BODY)
		answer(c, 503, "too many connections");
	conn_close(c);
}

static void
accept_all(void)
{
	struct conn *c;
	int fd;

	for (int turns = 0; turns < EVENTS; turns++) {
		if (nconns > limit) {	/* one that is libmicrohttpd's is about to go */
			wait_for_room();
			return;
		}
		if ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) == -1) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
				wait_for_room();
			return;
		}
		if (nconns >= limit)
			make_room();
		if ((c = calloc(1, sizeof *c)) == NULL) {
			close(fd);
			return;
		}
		*c = (struct conn){ .fd = fd, .prev = first.prev, .next = &first, .end = now + DOOR_HEAD_MS };
		c->prev->next = first.prev = c;
		nconns++;
		look(c, 0);			/* most often the head is there already */
	}
}

/* ---- deadlines ---- */

static void
sweep(void)
{
	struct conn *c, *next;

	for (c = first.next; c != &first; c = next) {
		next = c->next;
		if (c->end > now || c->where == READY)
			continue;
		if (c->where == BODY) {
			answer(c, 408, "the body did not come in time");
			continue;
		}
		c->end = now + LINGER_MS;
		conn_close(c);
	}
	if (full && listener != -1 && nconns <= limit) {
		full = false;
		watch(EPOLL_CTL_MOD, listener, EPOLLIN, &listener);
	}
	swept = now;
}

/* ---- turns ---- */

static void
run_http(void)
{
	MHD_UNSIGNED_LONG_LONG wait;

	moved = true;
	for (int i = 0; moved && i < 16; i++) {	/* more of what is there already comes into this batch */
		moved = false;
		MHD_run(http);
		if (MHD_get_timeout(http, &wait) != MHD_YES || wait > 0)
			return;
	}
}

static void
serve(void)
{
	size_t i, j, n;

	for (i = 0; i < nready; i += n) {
		n = nready - i < DOOR_BATCH ? nready - i : DOOR_BATCH;
		door->serve(ready + i, n);
		now = when_elapsed();
		for (j = i; j < i + n; j++) {
			struct conn *c = ready[j]->conn;

			answer(c, ready[j]->status, ready[j]->why);
			MHD_resume_connection(c->mhd);
		}
	}
	nready = 0;
	MHD_run(http);
}

bool
door_turn(void)
{
	struct epoll_event events[EVENTS];
	struct pollfd p = { .fd = poller, .events = POLLIN };
	MHD_UNSIGNED_LONG_LONG wait;
	bool more = MHD_get_timeout(http, &wait) == MHD_YES && wait == 0;
	int n;

	/* More, but it cannot use it: a line about a chunk is longer than its buffer. */
	prog_poll(&p, 1, more ? moved ? 0 : STUCK_MS : nconns > 0 || full ? TICK_MS : listener == -1 ? 0 : -1);
	n = epoll_wait(poller, events, EVENTS, 0);
	now = when_elapsed();
	for (int i = 0; i < n; i++) {
		struct conn *c = events[i].data.ptr;

		if (events[i].data.ptr == &listener || events[i].data.ptr == &http_fd)
			continue;
		if (c->where == HEAD)
			look(c, events[i].events);
		else
			drop(c);
	}
	for (int i = 0; i < n; i++)	/* after the others: it may close one of them */
		if (events[i].data.ptr == &listener && listener != -1)
			accept_all();
	run_http();
	if (nready > 0)
		serve();
	if (now - swept >= TICK_MS)
		sweep();
	return nconns > 0;
}

int
door_start(const struct door *d, int fd)
{
	struct rlimit files = { 1024, 1024 };

	door = d;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
		getrlimit(RLIMIT_NOFILE, &files);
	}
	limit = files.rlim_cur > CONNS + SPARE ? CONNS : files.rlim_cur > 2 * SPARE ? (size_t)files.rlim_cur - SPARE : SPARE;
	http = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, NULL,
	    MHD_OPTION_NOTIFY_CONNECTION, connected, NULL, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNS + 1,
	    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL, MHD_OPTION_CONNECTION_TIMEOUT, 0U, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	poller = epoll_create1(EPOLL_CLOEXEC);
	if (http == NULL || poller == -1)
		return Q_TEMP;
	http_fd = MHD_get_daemon_info(http, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	listener = fd;
	watch(EPOLL_CTL_ADD, http_fd, EPOLLIN, &http_fd);
	watch(EPOLL_CTL_ADD, listener, EPOLLIN, &listener);
	return Q_OK;
}

void
door_stop(void)
{
	struct conn *c;

	if (listener == -1)
		return;
	accept_all();			/* what is in the backlog would be reset */
	watch(EPOLL_CTL_DEL, listener, 0, NULL);	/* close does not do it: others may have the socket, too */
	close(listener);
	listener = -1;
	for (c = first.next; c != &first; c = c->next)
		if (c->where == HEAD && c->end > now + LINGER_MS)
			c->end = now + LINGER_MS;
}
