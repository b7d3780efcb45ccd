/*
 * http.h - HTTP requests whose end is told apart honestly.  libcurl stands in http.c alone, and only
 * programs that speak HTTP use it.  Nothing here knows the database.
 */
#ifndef HTTP_H
#define HTTP_H

#include "q.h"

#define HTTP_BODY_MAX (64 << 20)	/* default limit of an answer, bytes after decoding */
#define HTTP_TIMEOUT_MS (120 * 1000)	/* default limit of a request, everything counted */
#define HTTP_WHY_MAX 640

struct http;				/* keeps connections between requests; one request at a time */
struct http *http_open(void);		/* NULL: out of memory */
void http_close(struct http *);

struct http_header { const char *name, *value; bool secret; };	/* secret: goes to the origin of the request's url only */

struct http_ask {
	const char *method;		/* NULL: GET, with a body POST */
	const char *url;		/* https, or http if insecure; no userinfo */
	const struct http_header *headers;
	int nheaders;
	const char *secret;		/* stands in the url, and is to stay out of messages; NULL: none */
	const void *body;		/* NULL: none */
	size_t len;
	bool insecure;			/* http is allowed */
	bool follow;			/* of GET and HEAD redirects to the same origin, at most 5; else a 3xx is an answer like others */
	bool (*stopped)(void);		/* asked while it waits, each second or so; true: the request ends without an answer */
	int (*may)(const char *url, void *arg);	/* Q_OK, Q_NO or Q_TEMP, asked before each redirect; NULL: the origin is enough */
	void *arg;
	int64_t timeout_ms;		/* 0: HTTP_TIMEOUT_MS */
	size_t max_body;		/* 0: HTTP_BODY_MAX */
};

enum http_kind {			/* rules/poll.md 4.6 */
	HTTP_OK,			/* 2xx, complete */
	HTTP_SAME,			/* 304 */
	HTTP_LIMITED,			/* 429; 403 with Retry-After or nothing remaining */
	HTTP_LATER,			/* no answer, or not all of it; 408 425 500 502 503 504 520-524 529 */
	HTTP_DENIED,			/* 401, other 403 */
	HTTP_REFUSED			/* the rest: for good */
};

struct http_answer {
	enum http_kind kind;
	int status;			/* 0: none came */
	int64_t wait_ms;		/* what the server asks to wait, from now on; -1: it does not say */
	int64_t date_ms;		/* its Date header; -1: none */
	int64_t remaining;		/* requests it still lets through, the least of all it names; -1: it does not say */
	const char *url;		/* where the answer came from, after redirects */
	const char *body;		/* decoded; NUL behind it */
	size_t len;
	/* One line for people unless HTTP_OK or HTTP_SAME: URL without secrets, status or cause, first printable bytes. */
	char why[HTTP_WHY_MAX];
};

/* One request, one try.  What *answer points to is borrowed until the next request. */
void http_once(struct http *, const struct http_ask *, struct http_answer *);

struct http_budget {
	int tries;			/* all in all; 0: 5 */
	int64_t max_wait_ms;		/* a wait longer than this ends it at once; 0: 5 min */
	/* Called before each try; not Q_OK: end with that.  NULL: nothing to ask. */
	int (*before)(void *);
	void (*sleep)(int64_t ms, void *);	/* instead of sleeping; NULL: nanosleep(2) */
	void *arg;
	int64_t waited_ms;		/* set: what was slept */
};
/* HTTP_LATER is tried again, after a random time up to 1 s, 2 s, 4 s ... 60 s, or what the server asks.  Q_OK, or what before() said. */
int http_fetch(struct http *, const struct http_ask *, struct http_budget *, struct http_answer *);

/* A header of the last answer, the nth of this name (from 0), in any case; NULL: none.  Borrowed until the next request. */
const char *http_header(const struct http *, const char *name, int nth);

/*
 * What is told of URLs is Q_OK, Q_NO, or Q_TEMP: out of memory, which must not pass for a no.
 *
 * The target of the Link header with this rel (RFC 8288: unquoted rels, several in one value, parameters in any order,
 * several headers), resolved against the answer's URL, or as it stands if that may not be asked (http_resolve()); the caller frees.
 * Q_NO: none.
 */
int http_link(const struct http *, const char *rel, char **url);

/* ref resolved against base (RFC 3986); the caller frees.  Q_NO, and NULL: no URL, with userinfo, or neither https nor http. */
int http_resolve(const char *base, const char *ref, char **url);

/* Same scheme, host (any case) and port? */
int http_same_origin(const char *a, const char *b);

/* Is url at or below prefix: same origin, and path segments that begin with its segments?  Dots and escapes in the path are read first. */
int http_within(const char *url, const char *prefix);

/* Stars instead of a secret, and of what follows its first blank ("Bearer ..."), wherever they stand in n bytes; returns how many are left. */
size_t http_hide(char *text, size_t n, const char *secret);

/* A URL that may be asked: https (or http), a host, no userinfo.  Not Q_OK: *why, a constant. */
int http_url(const char *url, bool insecure, const char **why);

/* "https://host/path", without userinfo, query and fragment, for messages; returns buf. */
char *http_shown(char *buf, size_t size, const char *url);

/*
 * Retry-After: seconds, seconds with a fraction (rounded up), or one of the three dates of RFC 9110 relative to date_ms (-1: to now);
 * past: 0.  False: neither.
 */
bool http_retry_after(const char *value, int64_t date_ms, int64_t now, int64_t *wait_ms);
/* A reset time: seconds from now, epoch seconds, epoch ms, or an ISO instant (rule R9); past: 0.  False: none of these. */
bool http_reset(const char *value, int64_t date_ms, int64_t now, int64_t *wait_ms);

/* Percent-encoded for a query: all but A-Z a-z 0-9 - . _ ~; the caller frees. */
char *http_escape(const char *, size_t);

#endif
