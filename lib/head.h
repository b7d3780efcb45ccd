/*
 * head.h - the head of a request of HTTP/1.0 or 1.1, read strictly: what two readers could take for two things is refused.  Pure.
 */
#ifndef HEAD_H
#define HEAD_H

#include "hook.h"

enum { HEAD_MAX = 16 * 1024, HEAD_FIELDS = 64 };	/* bytes with the empty line at the end; header fields */

struct head {
	const char *method, *target;
	int minor;			/* HTTP/1.minor */
	struct hook_field fields[HEAD_FIELDS];
	int nfields;
	int64_t length;			/* Content-Length; -1: none */
	bool chunked;
};

/*
 * Where the head that text begins with ends: behind the first empty line; 0: it is not there yet.  The first `seen` bytes were
 * looked at before.
 */
size_t head_end(const char *text, size_t n, size_t seen);

/*
 * Read the n bytes of a head, which become strings and must live as long as *head.  0, or the status to refuse it with (400, 417,
 * 431) and *why, a constant.
 */
int head_read(char *text, size_t n, struct head *head, const char **why);

#endif
