/*
 * source.h - an API that is read by cursor: its description (a JSON file), its values, its pages
 *
 * The rules (R1 to R17) are those of qpoll(1), section RULES.  Nothing here knows the database but page_get(), which takes
 * tokens of a rate.
 */
#ifndef SOURCE_H
#define SOURCE_H

#include <jansson.h>

#include "http.h"
#include "json.h"
#include "q.h"

/* ---- cursor.c: values that say where we are ------------------------------- */

#define CURSOR_MAX 120			/* bytes of a value */
#define CURSOR_TEXT 160			/* bytes that cursor_bound() needs */

enum cursor_type { CURSOR_TIME, CURSOR_EPOCH, CURSOR_EPOCH_MS, CURSOR_EPOCH_US, CURSOR_INT, CURSOR_DECIMAL, CURSOR_NONE };

struct cursor_spec {
	enum cursor_type type;
	const char *format;		/* of the query value: NULL as it came, "s", "ms", "us", or a text with %Y %m %d %H %M %S %L (ms) */
	const char *zone;		/* of times that name none: "UTC", "+02:00"; NULL: they are refused */
	int64_t granularity_ms, shift_ms, lookback_ms;
};

struct cursor_key { size_t n; unsigned char b[CURSOR_MAX + 4]; };	/* compares as the values do, bytewise; n 0: none */

bool cursor_spec_check(const struct cursor_spec *, const char **why);
/* The key of a value.  False: *why, a constant. */
bool cursor_key(const struct cursor_spec *, const char *text, struct cursor_key *, const char **why);
/* The key of an instant; false: the type is not a time. */
bool cursor_instant(const struct cursor_spec *, int64_t ms, struct cursor_key *);
/* What instant it is; false: the type is not a time. */
bool cursor_ms(const struct cursor_spec *, const struct cursor_key *, int64_t *ms);
int cursor_compare(const struct cursor_key *, const struct cursor_key *);

/*
 * The value to ask with so that everything from this one on comes (R2): less the shift and, with back, the lookback, floored; *query is its
 * text (CURSOR_TEXT bytes), *bound its key.  A value that is neither moved nor formatted is its own text.
 */
void cursor_bound(const struct cursor_spec *, const char *text, const struct cursor_key *, bool back, char *query, struct cursor_key *bound);

/* The value to ask with so that everything below an instant comes, of a type that is a time: rounded up; CURSOR_TEXT bytes. */
void cursor_upper(const struct cursor_spec *, int64_t ms, char *query);

/* In what steps values can be asked for, ms; 0: any. */
int64_t cursor_grain(const struct cursor_spec *);

/* The text of a key that is a time; CURSOR_TEXT bytes. */
void cursor_render(const struct cursor_spec *, const struct cursor_key *, char *text);

/* ---- source.c: the description -------------------------------------------- */

enum source_order { ORDER_ASC, ORDER_DESC, ORDER_ANY, ORDER_OPAQUE };
enum source_next { NEXT_LINK, NEXT_URL, NEXT_TOKEN, NEXT_PAGE, NEXT_OFFSET, NEXT_LAST, NEXT_NONE };

struct source {				/* qpoll(5) says what each means; absent text NULL, absent number -1 */
	const char *name, *url, *method, *items, *id[4], *cursor, *entity, *more, *done, *error, *final, *start, *limited_text;
	const char *rate, *queue, *type, *whoami, *probe, *next_at, *credential;
	json_t *query, *headers, *body, *ok, *limited, *denied, *ignore, *gone;
	enum source_order order;
	enum source_next next;
	struct cursor_spec spec;
	bool insecure_http, redirects, stable, conditional, any_type, emit_missing, final_is_url, closing;
	int nid;
	int64_t size, first_page, max_pages, max_empty, max_seen, max_body, priority, retries;
	int64_t cap, max_skew_ms, max_gap_ms, max_wait_ms, timeout_ms;
	const char *secret_header, *secret_query;	/* where the secret goes; both NULL: there is none */
	char *secret;
	char config[65];		/* digest of what decides which items come, hex */
	/* for source.c alone */
	json_t *root;
	char *text, *path, *sent;	/* sent: query and body, as JSON */
};

/*
 * Read and check a source file and, with secret, its secret; commands that give one are run, so no queue file may be open.  False: *status is
 * Q_NOINPUT, Q_CONFIG or Q_PERM, and message (of size bytes) says file, line and key.  What it holds is left to the exit.
 */
bool source_read(struct source *, const char *path, bool secret, int *status, char *message, size_t size);

/* Is there a place for it ("cursor": {cursor} or {#cursor}) in the query or the body? */
bool source_sends(const struct source *, const char *name);

/* ---- page.c: one page ------------------------------------------------------ */

struct item {
	struct span raw;		/* borrowed from the page */
	char *id, *cursor;		/* cursor NULL: it has none */
	struct cursor_key key;
	bool future;			/* its value lies ahead of the server's clock */
	bool old;			/* below what was asked for: not wanted */
	bool twice, fresh;		/* set by sync_fresh(): it came before in this page; it is new */
	unsigned char ver[16];		/* digest of id and item */
};

struct page {
	struct item *items;
	size_t n;
	char *next;			/* how to ask for the page after it; NULL: it has no pointer */
	bool end;			/* this was the last (R5) */
	bool full;			/* as many items as "size" says */
	bool doubtful;			/* ... only because it has no pointer, but it is full */
	bool unmodified;		/* 304 */
	char *final;			/* the closing token, or NULL */
	char *etag, *modified;
	int64_t date_ms;
	size_t bytes;
};

struct pager {				/* what page_get() keeps between pages, and counts */
	const struct source *src;
	struct http *http;
	struct db *db;			/* for the rate; NULL: take none */
	struct rate_user rate;
	const char *etag, *modified;	/* sent with the next request if not NULL; page_get() forgets them */
	const char *start, *from, *to, *sync;	/* what {start}, {from}, {to}, {sync} are; NULL: unset */
	char where[256];		/* the last URL that was asked, for messages */
	int status;			/* last HTTP status, 0: none */
	int64_t pages, bytes, waited_ms;
	bool limited;			/* it ended because the server, or the rate, said "later" */
	bool (*stopped)(void);		/* asked before each request, and while it waits for one */
	bool (*broken)(void);		/* asked during a request; true: it ends without an answer */
	char message[HTTP_WHY_MAX + 256];
};

/*
 * Ask for the page at a query value (NULL: {cursor} is unset) and pointer (NULL: the first).  Q_OK, with *page to be freed
 * by page_free().  Else the message says why: Q_DATA the answer is not acceptable, Q_UNKNOWN no answer or refused for good, Q_PERM credentials, Q_TEMP
 * later, Q_NO a status of "gone": the pointer or token is void.
 */
int page_get(struct pager *, const char *query, const char *pointer, struct page *);
/* What a URL lists, without what leads on. */
int page_probe(struct pager *, const char *url, struct page *);
void page_free(struct page *);
/* Ask a URL (whoami) for its status alone. */
int page_ask(struct pager *, const char *url);

#endif
