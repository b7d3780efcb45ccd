/* read.c - records from a stream */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "q.h"

#define CHUNK (64 * 1024)

void
reader_init(struct reader *r, int fd, int delim, size_t max)
{
	memset(r, 0, sizeof *r);
	r->fd = fd;
	r->delim = delim;
	r->max = max;
}

/* Read more behind what is there; the buffer never needs more than a record and its delimiter. */
static int
fill(struct reader *r)
{
	size_t most = r->max < CHUNK ? CHUNK : r->max + 1, cap;
	struct pollfd pfd = { .fd = r->fd, .events = POLLIN };
	ssize_t got;
	char *p;

	if (r->start > 0 && (r->start == r->end || r->end == r->cap)) {
		memmove(r->buf, r->buf + r->start, r->end - r->start);
		r->end -= r->start;
		r->start = 0;
	}
	if (r->end == r->cap) {
		cap = r->cap == 0 ? CHUNK : r->cap > most / 2 ? most : 2 * r->cap;
		if ((p = realloc(r->buf, cap)) == NULL)
			return Q_IO;
		r->buf = p;
		r->cap = cap;
	}
	/* Another program may have made the terminal or pipe that we share non-blocking. */
	while ((got = read(r->fd, r->buf + r->end, r->cap - r->end)) == -1 && (errno == EAGAIN || errno == EWOULDBLOCK))
		if (poll(&pfd, 1, -1) == -1)
			break;
	if (got == -1)
		return errno == EINTR ? Q_TEMP : Q_IO;
	r->eof = got == 0;
	r->end += (size_t)got;
	return Q_OK;
}

int
reader_next(struct reader *r, char **rec, size_t *n)
{
	size_t seen = 0, len;		/* seen: bytes known to hold no delimiter */
	char *p;
	int e;

	for (;;) {
		len = r->end - r->start;
		p = r->delim >= 0 && len > seen ? memchr(r->buf + r->start + seen, r->delim, len - seen) : NULL;
		if (p != NULL)
			len = (size_t)(p - (r->buf + r->start));
		if (!r->skip && (p != NULL || r->eof || len > r->max))
			break;
		if (r->skip) {		/* the rest of a record that was refused */
			r->start += p != NULL ? len + 1 : len;
			r->skip = p == NULL && !r->eof;
			seen = 0;
			if (p != NULL || r->eof)
				continue;
		} else
			seen = len;
		if ((e = fill(r)) != Q_OK)
			return e;
	}
	if (p == NULL && len == 0 && (r->delim >= 0 || r->number > 0))
		return Q_NO;
	r->number++;
	if (len > r->max) {
		r->skip = true;
		return Q_DATA;
	}
	r->terminated = p != NULL;
	*rec = r->buf + r->start;
	*n = len;
	r->start += len + (p != NULL);
	return Q_OK;
}
