/* listen.c - a socket to listen on, on this machine alone: another one is reached through a proxy that knows TLS */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "door.h"
#include "q.h"

enum { HANDED = 3, BACKLOG = 1024 };	/* the first descriptor that is handed over */

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

static int handed;
static struct sockaddr_un made;		/* the file that is ours, and which it was */
static ino_t made_ino;

int
door_handed(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	int64_t p, n;

	if (pid != NULL && fds != NULL && text_int(pid, 1, INT32_MAX, &p) && p == getpid() && text_int(fds, 1, 1000, &n)) {
		handed = (int)n;
		for (int fd = HANDED; fd < HANDED + handed; fd++)
			fcntl(fd, F_SETFD, FD_CLOEXEC);
	}
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return handed;
}

static int __attribute__((format(printf, 5, 6)))
fail(int *status, int as, char *message, size_t size, const char *fmt, ...)
{
	va_list ap;

	*status = as;
	va_start(ap, fmt);
	vsnprintf(message, size, fmt, ap);
	va_end(ap);
	return -1;
}

static bool
listens(int fd)
{
	int yes = 0;
	socklen_t len = sizeof yes;

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) == 0 && yes == 1;
}

static int
inherit(int *status, char *message, size_t size)
{
	struct stat st;

	if (handed == 0 && fstat(STDIN_FILENO, &st) == 0 && S_ISSOCK(st.st_mode))
		return fail(status, Q_CONFIG, message, size, "standard input is a socket, which is not looked at; next: a .socket unit "
		    "with Accept=no, and no StandardInput=socket");
	if (handed == 0)
		return fail(status, Q_USAGE, message, size, "no -L, and no socket was handed over; next: -L 127.0.0.1:PORT, "
		    "or a .socket unit");
	if (handed > 1)
		return fail(status, Q_CONFIG, message, size, "%d sockets were handed over; give it one", handed);
	if (!listens(HANDED))
		return fail(status, Q_CONFIG, message, size, "what was handed over is no listening socket; next: Accept=no, ListenStream=");
	fcntl(HANDED, F_SETFL, fcntl(HANDED, F_GETFL) | O_NONBLOCK);
	return HANDED;
}

/* A file that a dead qhook left is taken away; whose owner answers stays. */
static bool
stale(const union address *a, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;
	bool dead = lstat(a->un.sun_path, &st) == 0 && S_ISSOCK(st.st_mode) && connect(fd, &a->any, len) == -1 && errno == ECONNREFUSED;

	close(fd);
	return dead && unlink(a->un.sun_path) == 0;
}

/* "127.0.0.1:80", "[::1]:80": its address, which may be one that others reach.  False: it is none. */
static bool
parse(const char *addr, union address *a, socklen_t *len, bool *loopback)
{
	const char *colon = strrchr(addr, ':');
	char host[64];
	int64_t port;

	if (colon == NULL || !text_int(colon + 1, 0, 65535, &port) || snprintf(host, sizeof host, "%.*s", (int)(colon - addr), addr) >= (int)sizeof host)
		return false;
	memset(a, 0, sizeof *a);
	if (inet_pton(AF_INET, host, &a->in.sin_addr) == 1) {
		a->in.sin_family = AF_INET;
		a->in.sin_port = htons((uint16_t)port);
		*len = sizeof a->in;
		*loopback = ntohl(a->in.sin_addr.s_addr) >> 24 == 127;
		return true;
	}
	if (host[0] != '[' || host[strlen(host) - 1] != ']')
		return false;
	host[strlen(host) - 1] = '\0';
	a->in6.sin6_family = AF_INET6;
	a->in6.sin6_port = htons((uint16_t)port);
	*len = sizeof a->in6;
	if (inet_pton(AF_INET6, host + 1, &a->in6.sin6_addr) != 1)
		return false;
	*loopback = IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr);
	return true;
}

static int
listen_unix(const char *path, int *status, char *message, size_t size)
{
	union address a = { .un = { .sun_family = AF_UNIX } };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (*path == '\0' || strlen(path) >= sizeof a.un.sun_path)
		return fail(status, Q_USAGE, message, size, "-L: '%s' is no path of 1 to %zu bytes", path, sizeof a.un.sun_path - 1);
	strcpy(a.un.sun_path, path);
	if (fd == -1 || (bind(fd, &a.any, sizeof a.un) == -1 && (errno != EADDRINUSE || !stale(&a, sizeof a.un) || bind(fd, &a.any, sizeof a.un) == -1)) ||
	    listen(fd, BACKLOG) == -1)
		return fail(status, errno == EADDRINUSE ? Q_TEMP : errno == EACCES ? Q_PERM : Q_CREATE, message, size, "%s: %s", path,
		    errno == EADDRINUSE ? "there already, and somebody listens on it, or it is no socket" : strerror(errno));
	if (lstat(path, &st) == 0) {
		made = a.un;
		made_ino = st.st_ino;
	}
	return fd;
}

int
door_listen(const char *addr, int *port, int *status, char *message, size_t size)
{
	union address a;
	socklen_t len;
	int fd, on = 1;
	bool loopback = false;

	*port = 0;
	if (addr == NULL)
		return inherit(status, message, size);
	if (handed > 0)
		return fail(status, Q_USAGE, message, size, "-L, and a socket was handed over: only one of them");
	if (strncmp(addr, "unix:", 5) == 0)
		return listen_unix(addr + 5, status, message, size);
	if (!parse(addr, &a, &len, &loopback))
		return fail(status, Q_USAGE, message, size, "-L: '%s' is no address; write 127.0.0.1:PORT, [::1]:PORT or unix:PATH", addr);
	if (!loopback)
		return fail(status, Q_USAGE, message, size, "-L: '%s' can be reached from outside; listen on 127.0.0.1 and let a proxy with TLS pass requests on", addr);
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == -1 || bind(fd, &a.any, len) == -1 || listen(fd, BACKLOG) == -1)
		return fail(status, errno == EADDRINUSE ? Q_TEMP : errno == EACCES ? Q_PERM : Q_CREATE, message, size, "%s: %s", addr, strerror(errno));
	if (strcmp(strrchr(addr, ':'), ":0") == 0 && getsockname(fd, &a.any, &len) == 0)
		*port = ntohs(a.any.sa_family == AF_INET ? a.in.sin_port : a.in6.sin6_port);
	return fd;
}

void
door_unlink(void)
{
	struct stat st;

	if (made.sun_path[0] != '\0' && lstat(made.sun_path, &st) == 0 && st.st_ino == made_ino)
		unlink(made.sun_path);
}
