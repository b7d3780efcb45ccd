/* page.c - one page of what an API lists: asked for, judged, and taken apart (rules R5, R6, R9, R10, R12) */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <openssl/evp.h>

#include "source.h"

enum { STEP_MS = 200, UNHINTED_MS = 60 * 1000, HEADERS_MAX = 32 };

static int say(struct pager *, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* "NAME: ..." into the message; returns status. */
static int
say(struct pager *p, int status, const char *fmt, ...)
{
	int n = snprintf(p->message, sizeof p->message, "%s: ", p->src->name);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->message + n, sizeof p->message - (size_t)n, fmt, ap);
	va_end(ap);
	if (p->src->secret != NULL)
		p->message[http_hide(p->message, strlen(p->message), p->src->secret)] = '\0';
	return status;
}

/* The first bytes of an answer, at most `most`, without the secret, which the server may quote; until the next call. */
static const char *
begins(const struct pager *p, const char *text, size_t n, size_t most)
{
	static char buf[4096];		/* a secret that is cut off could not be found */

	n = n < sizeof buf ? n : sizeof buf - 1;
	memcpy(buf, text, n);
	if (p->src->secret != NULL)
		n = http_hide(buf, n, p->src->secret);
	buf[n < most ? n : most] = '\0';
	return buf;
}

/* ---- what is asked ---- */

struct places { const char *v[9]; char number[2][24]; };	/* in the order of NAMES; NULL: unset */

static const char *const NAMES[] = { "cursor", "token", "page", "offset", "size", "start", "from", "to", "sync" };

static void
fill(const struct pager *p, const char *query, const char *pointer, struct places *at)
{
	const struct source *s = p->src;

	memset(at, 0, sizeof *at);
	at->v[0] = query;
	if (s->next == NEXT_TOKEN || s->next == NEXT_LAST)
		at->v[1] = pointer;
	if (s->next == NEXT_PAGE) {
		snprintf(at->number[0], sizeof at->number[0], "%" PRId64, s->first_page);
		at->v[2] = pointer != NULL ? pointer : at->number[0];
	}
	if (s->next == NEXT_OFFSET)
		at->v[3] = pointer != NULL ? pointer : "0";
	if (s->size > 0) {
		snprintf(at->number[1], sizeof at->number[1], "%" PRId64, s->size);
		at->v[4] = at->number[1];
	}
	at->v[5] = pointer == NULL && p->sync == NULL ? p->start : NULL;
	at->v[6] = p->from;
	at->v[7] = p->to;
	at->v[8] = p->sync;
}

/* The place that a '{' begins; -1: none. */
static int
place(const char *brace, size_t *len)
{
	const char *word = brace + 1 + (brace[1] == '#');

	for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
		size_t n = strlen(NAMES[i]);

		if (strncmp(word, NAMES[i], n) == 0 && word[n] == '}') {
			*len = (size_t)(word - brace) + n + 1;
			return (int)i;
		}
	}
	return -1;
}

/* A text with its places filled; the caller frees.  NULL: one of them is unset (*unset), or out of memory. */
static char *
expand(const char *text, const struct places *at, bool *unset)
{
	char *buf = NULL;
	size_t n, len;
	FILE *f = text_memory(&buf, &n);
	int i;

	*unset = false;
	if (f == NULL)
		return NULL;
	for (; *text != '\0'; text++)
		if (*text != '{' || (i = place(text, &len)) == -1)
			putc(*text, f);
		else {
			*unset |= at->v[i] == NULL;
			fputs(at->v[i] != NULL ? at->v[i] : "", f);
			text += len - 1;
		}
	if (fclose(f) != 0 || *unset) {
		free(buf);
		return NULL;
	}
	return buf;
}

/* ?name=value or &name=value */
static bool
add_query(char **url, const char *name, const char *value)
{
	char *n = http_escape(name, strlen(name)), *v = http_escape(value, strlen(value)), *longer = NULL;
	size_t len = strlen(*url);

	if (n != NULL && v != NULL && (longer = realloc(*url, len + strlen(n) + strlen(v) + 3)) != NULL) {
		sprintf(longer + len, "%c%s=%s", strchr(longer, '?') != NULL ? '&' : '?', n, v);
		*url = longer;
	}
	free(n);
	free(v);
	return longer != NULL;
}

static char *
url_of(const struct pager *p, const char *pointer, const struct places *at)
{
	const struct source *s = p->src;
	bool whole = pointer != NULL && (s->next == NEXT_LINK || s->next == NEXT_URL);
	char *url = strdup(whole ? pointer : s->url), *value;
	const char *name;
	json_t *v;
	bool unset, good = url != NULL;

	if (!whole)
		json_object_foreach(s->query, name, v) {
			value = expand(json_string_value(v), at, &unset);
			good = good && (value != NULL ? add_query(&url, name, value) : unset);
			free(value);
		}
	if (good && s->secret_query != NULL && s->secret != NULL)
		good = add_query(&url, s->secret_query, s->secret);
	if (good)
		return url;
	free(url);
	return NULL;
}

/* The body with its places filled; members whose place is unset are left out.  NULL: so is this one. */
static json_t *
filled(json_t *v, const struct places *at)
{
	json_t *to, *one;
	const char *key, *text;
	char *full;
	size_t i, len;
	bool unset;
	int n;

	if (json_is_object(v)) {
		to = json_object();
		json_object_foreach(v, key, one)
			json_object_set_new(to, key, filled(one, at));	/* refuses NULL */
		return to;
	}
	if (json_is_array(v)) {
		to = json_array();
		json_array_foreach(v, i, one)
			json_array_append_new(to, filled(one, at));
		return to;
	}
	if (!json_is_string(v))
		return json_incref(v);
	text = json_string_value(v);
	full = expand(text, at, &unset);
	if (full == NULL)
		return NULL;
	/* {#cursor}, alone, is a number; one that jansson cannot hold is sent as text, never left out. */
	n = *text == '{' && text[1] == '#' ? place(text, &len) : -1;
	to = n != -1 && text[len] == '\0' ? json_loads(full, JSON_DECODE_ANY, NULL) : NULL;
	if (to == NULL)
		to = json_string(full);
	free(full);
	return to;
}

struct ask { struct http_ask http; struct http_header headers[HEADERS_MAX]; char *url, *body, *values[HEADERS_MAX]; };

static void
ask_free(struct ask *a)
{
	free(a->url);
	free(a->body);
	for (int i = 0; i < a->http.nheaders; i++)
		free(a->values[i]);
}

/* False: there is no value. */
static bool
add_header(struct ask *a, const char *name, char *value, bool secret)
{
	if (value == NULL || a->http.nheaders == HEADERS_MAX) {
		free(value);
		return value != NULL;
	}
	a->values[a->http.nheaders] = value;
	a->headers[a->http.nheaders++] = (struct http_header){ name, value, secret };
	return true;
}

static bool
prepare(struct pager *p, const char *url, const char *query, const char *pointer, struct ask *a)
{
	const struct source *s = p->src;
	struct places at;
	const char *name;
	json_t *v, *body;
	bool unset, typed = false;

	memset(a, 0, sizeof *a);
	fill(p, query, pointer, &at);
	a->url = url != NULL ? strdup(url) : url_of(p, pointer, &at);
	a->http = (struct http_ask){ .url = a->url, .method = url == NULL ? s->method : NULL, .headers = a->headers,
	    .insecure = s->insecure_http, .follow = s->redirects, .timeout_ms = s->timeout_ms, .max_body = (size_t)s->max_body, .stopped = p->broken };
	if (a->url == NULL)
		return false;
	if (url != NULL && s->secret_query != NULL && s->secret != NULL && !add_query(&a->url, s->secret_query, s->secret))
		return false;
	a->http.url = a->url;
	a->http.secret = s->secret_query != NULL ? s->secret : NULL;
	json_object_foreach(s->headers, name, v) {
		typed |= strcasecmp(name, "Content-Type") == 0;
		if (!add_header(a, name, expand(json_string_value(v), &at, &unset), false) && !unset)
			return false;
	}
	if (s->secret_header != NULL && s->secret != NULL && !add_header(a, s->secret_header, strdup(s->secret), true))
		return false;		/* others may be shown less */
	if (p->etag != NULL)
		add_header(a, "If-None-Match", strdup(p->etag), false);
	if (p->modified != NULL)
		add_header(a, "If-Modified-Since", strdup(p->modified), false);
	if (s->body == NULL || url != NULL)
		return true;
	if (!typed)
		add_header(a, "Content-Type", strdup("application/json"), false);
	body = filled(s->body, &at);
	a->body = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
	json_decref(body);
	a->http.body = a->body;
	a->http.len = a->body != NULL ? strlen(a->body) : 0;
	return a->body != NULL;
}

/* ---- asking, with waits ---- */

static bool
nap(struct pager *p, int64_t ms)
{
	int64_t until = when_elapsed() + ms, left;

	while ((left = until - when_elapsed()) > 0) {
		if (p->stopped != NULL && p->stopped())
			return false;
		left = left < STEP_MS ? left : STEP_MS;
		nanosleep(&(struct timespec){ left / 1000, (left % 1000) * 1000000 }, NULL);
	}
	p->waited_ms += ms > 0 ? ms : 0;
	return p->stopped == NULL || !p->stopped();
}

static void
sleeper(int64_t ms, void *arg)
{
	nap(arg, ms);
}

/* Before each request: a token, if there is a rate. */
static int
token(void *arg)
{
	struct pager *p = arg;
	int64_t at, now, from = when_elapsed();
	char span[WHEN_TEXT];
	int rc;

	if (p->stopped != NULL && p->stopped())
		return say(p, Q_TEMP, "interrupted");
	if (p->db == NULL || p->src->rate == NULL)
		return Q_OK;
	p->rate.name = p->src->rate;
	while ((rc = rate_try(p->db, &p->rate, now = when_now(), &at)) == Q_NO) {
		int64_t wait = at == INT64_MAX || p->rate.crowded ? 1000 : at - now, spent = when_elapsed() - from;

		if (wait + spent > p->src->max_wait_ms) {
			p->limited = true;
			if (p->rate.crowded)
				return say(p, Q_TEMP, "all places under rate.%s.concurrency are taken", p->src->rate);
			return say(p, Q_TEMP, "rate %s lets nothing through for %s", p->src->rate, when_span(span, wait));
		}
		if (!nap(p, wait < 1 ? 1 : wait < 1000 ? wait : 1000))
			return say(p, Q_TEMP, "interrupted");
	}
	if (rc != Q_OK)
		say(p, rc, "%s", db_message(p->db));
	return rc;
}

/* Does the document say one of these: {"/error": "ratelimited"}? */
static bool
says(json_t *map, struct span doc)
{
	const char *pointer;
	size_t len;
	bool same = false;
	json_t *v;
	char *text, *want;

	json_object_foreach(map, pointer, v) {
		struct span at = json_at(doc, pointer);

		if (at.p == NULL || (text = json_text(at, &len)) == NULL)
			continue;
		want = json_is_string(v) ? strdup(json_string_value(v)) : json_dumps(v, JSON_ENCODE_ANY);
		same |= want != NULL && strcmp(text, want) == 0;
		free(text);
		free(want);
	}
	return same;
}

static bool
is_gone(const struct source *s, int status)
{
	json_t *v;
	size_t i;

	if (s->gone == NULL)
		return status == 410;
	json_array_foreach(s->gone, i, v)
		if (json_integer_value(v) == status)
			return true;
	return false;
}

/* What a failed answer means (4.6). */
static int
failed(struct pager *p, const struct http_answer *a, bool resuming)
{
	if (resuming && is_gone(p->src, a->status))
		return say(p, Q_NO, "%s", a->why);
	if (a->kind == HTTP_DENIED)
		return say(p, Q_PERM, "credentials refused: %s", a->why);
	return say(p, Q_UNKNOWN, "%s", a->why);
}

/* Until there is an answer worth judging, or none is to be had.  *doc is its body as JSON, if it is that. */
static int
ask(struct pager *p, struct ask *q, bool resuming, struct http_answer *a, struct span *doc)
{
	struct http_budget budget = { .tries = (int)p->src->retries + 1, .max_wait_ms = p->src->max_wait_ms, .before = token,
	    .sleep = sleeper, .arg = p };
	int64_t wait, spent = 0;
	char span[WHEN_TEXT];
	const char *why;
	size_t at;
	int rc, refused = 0;

	for (;;) {
		if ((rc = http_fetch(p->http, &q->http, &budget, a)) != Q_OK)
			return rc;
		if (p->broken != NULL && p->broken())
			return say(p, Q_TEMP, "interrupted");
		p->status = a->status;
		http_shown(p->where, sizeof p->where, a->url);
		p->bytes += (int64_t)a->len;
		*doc = (struct span){ NULL, 0 };
		if (a->kind != HTTP_SAME && a->len > 0 && !json_read(a->body, a->len, doc, &why, &at))
			*doc = (struct span){ NULL, 0 };
		if (doc->p != NULL && says(p->src->denied, *doc))
			return say(p, Q_PERM, "credentials refused: %.200s", a->body);
		if ((doc->p != NULL && says(p->src->limited, *doc)) ||
		    (a->status >= 400 && p->src->limited_text != NULL && strstr(a->body, p->src->limited_text) != NULL))
			a->kind = HTTP_LIMITED;
		if (a->kind == HTTP_OK || a->kind == HTTP_SAME)
			return Q_OK;
		if (a->kind == HTTP_LATER && a->wait_ms > p->src->max_wait_ms)
			a->kind = HTTP_LIMITED;		/* it says when to come again */
		if (a->kind != HTTP_LIMITED)
			return failed(p, a, resuming);
		wait = a->wait_ms >= 0 ? a->wait_ms : (int64_t)UNHINTED_MS << (refused < 10 ? refused : 10);
		refused++;
		if (p->db != NULL && p->src->rate != NULL && db_begin(p->db, false) == Q_OK &&
		    rate_block(p->db, p->src->rate, when_now() + wait) == Q_OK)
			db_commit(p->db);
		if (spent + wait > p->src->max_wait_ms) {
			p->limited = true;
			return say(p, Q_TEMP, "limited: status %d asks to wait %s", a->status, when_span(span, wait));
		}
		spent += wait;
		if (!nap(p, wait))
			return say(p, Q_TEMP, "interrupted");
	}
}

int
page_ask(struct pager *p, const char *url)
{
	struct http_answer a;
	struct span doc;
	struct ask q;
	int rc;

	p->limited = false;
	rc = prepare(p, url, NULL, NULL, &q) ? ask(p, &q, false, &a, &doc) : say(p, Q_TEMP, "out of memory");
	ask_free(&q);
	return rc;
}

/* What is wrong with an answer is said with its URL. */
static int
at_url(struct pager *p, int status)
{
	size_t n = strlen(p->src->name) + 2;
	char rest[sizeof p->message];

	if (status == Q_DATA && strstr(p->message, p->where) == NULL) {
		snprintf(rest, sizeof rest, "%s", p->message + n);
		say(p, status, "%s: %s", p->where, rest);
	}
	return status;
}

/* ---- judging ---- */

static char *
dup_header(const struct pager *p, const char *name)
{
	const char *v = http_header(p->http, name, 0);

	return v != NULL && strlen(v) <= 512 ? strdup(v) : NULL;
}

static bool
is_json_type(const char *type)
{
	size_t n;

	if (type == NULL)
		return false;
	n = strcspn(type, "; \t");
	return (n == 16 && strncasecmp(type, "application/json", n) == 0) || (n > 5 && strncasecmp(type + n - 5, "+json", 5) == 0) ||
	    (n == 9 && strncasecmp(type, "text/json", n) == 0);
}

/* "", [], {} */
static bool
is_empty(struct span v)
{
	struct span in = { v.p + 1, v.n - 2 };

	if (json_kind(v) == '"')
		return v.n == 2;
	if (json_kind(v) != '{' && json_kind(v) != '[')
		return false;
	while (in.n > 0 && strchr(" \t\r\n", in.p[in.n - 1]) != NULL)
		in.n--;
	return in.n == 0;
}

/* The shape: a document of the type that was promised, without the marks of an error, and with a list where one is meant to be. */
static int
judge(struct pager *p, const struct http_answer *a, struct span doc, struct span *list)
{
	const struct source *s = p->src;
	const char *type = http_header(p->http, "Content-Type", 0), *why, *pointer;
	char shown[256];
	json_t *v;
	size_t at, len;
	struct span found;
	char *text;

	http_shown(shown, sizeof shown, a->url);
	if (a->status != 200)	/* also a 304 that nobody asked for */
		return say(p, Q_DATA, "%s: status %d, where only 200 has a page", shown, a->status);
	if (!s->any_type && !is_json_type(type))
		return say(p, Q_DATA, "%s: the answer is %.80s, not JSON: %s", shown, type != NULL ? type : "of no type", begins(p, a->body, a->len, 120));
	if (doc.p == NULL) {
		json_read(a->body, a->len, &doc, &why, &at);
		return say(p, Q_DATA, "%s: the answer is no JSON document: at byte %zu of %zu %s", shown, at, a->len, why);
	}
	json_object_foreach(s->ok, pointer, v) {
		json_t *one = json_pack("{s:O}", pointer, v);
		bool good = says(one, doc);

		json_decref(one);
		if (!good)
			return say(p, Q_DATA, "%s: the answer is an error: %s is not what \"ok\" wants: %s", shown, pointer, begins(p, a->body, a->len, 200));
	}
	if (s->error != NULL) {
		found = json_at(doc, s->error);
		if (found.p != NULL && json_kind(found) != 'n' && json_kind(found) != 'f' && !is_empty(found)) {
			text = json_text(found, &len);
			say(p, Q_DATA, "%s: the answer is an error: %s", shown, text != NULL ? begins(p, text, len, 200) : "");
			free(text);
			return Q_DATA;
		}
	}
	*list = json_at(doc, s->items);
	if (json_kind(*list) != '[')
		return say(p, Q_DATA, "%s: no array at \"%s\" but %s: %s", shown, s->items, list->p == NULL ? "nothing" : "another value",
		    begins(p, a->body, a->len, 120));
	return Q_OK;
}

/* ---- items ---- */

static int
scalar(struct pager *p, struct span item, const char *pointer, const char *what, int64_t number, char **text)
{
	struct span at = json_at(item, pointer);
	char kind = json_kind(at);
	size_t len;

	*text = NULL;
	if (kind == 0 || kind == 'n' || (kind == '"' && at.n == 2))
		return Q_NO;
	if (kind != '"' && kind != '0')
		return say(p, Q_DATA, "item %" PRId64 ": the %s at \"%s\" is neither a text nor a number: %s", number, what, pointer,
		    begins(p, at.p, at.n, 120));
	if ((*text = json_text(at, &len)) == NULL)
		return say(p, Q_TEMP, "out of memory");
	if (strlen(*text) != len)
		return say(p, Q_DATA, "item %" PRId64 ": the %s at \"%s\" holds a NUL", number, what, pointer);
	return Q_OK;
}

static int
read_id(struct pager *p, struct span raw, int64_t number, struct item *it)
{
	char *part, *longer;
	int rc = Q_OK;

	for (int i = 0; i < p->src->nid && rc == Q_OK; i++) {
		if ((rc = scalar(p, raw, p->src->id[i], "id", number, &part)) == Q_NO)
			return say(p, Q_DATA, "item %" PRId64 " has no id at \"%s\": %s", number, p->src->id[i], begins(p, raw.p, raw.n, 120));
		if (rc == Q_OK && it->id != NULL) {
			if ((longer = realloc(it->id, strlen(it->id) + strlen(part) + 2)) == NULL)
				rc = say(p, Q_TEMP, "out of memory");
			else {
				it->id = longer;
				strcat(strcat(it->id, "/"), part);
			}
		} else if (rc == Q_OK) {
			it->id = part;
			continue;
		}
		free(part);
	}
	return rc;
}

static bool
digest(const struct source *s, struct item *it)
{
	static EVP_MD *sha256;		/* EVP_sha256() would be looked up at each use: as dear as the digest itself */
	const char *except[16];
	unsigned char hash[EVP_MAX_MD_SIZE];
	int n = 0;
	size_t i, len;
	unsigned hashed;
	json_t *v;
	char *text, *all;
	bool good;

	if (sha256 == NULL && (sha256 = EVP_MD_fetch(NULL, "SHA256", NULL)) == NULL)
		return false;
	json_array_foreach(s->ignore, i, v)
		except[n++] = json_string_value(v);
	if ((text = json_canon(it->raw, except, n, &len)) == NULL)
		return false;
	if ((all = realloc(text, len + strlen(it->id) + 1)) == NULL) {
		free(text);
		return false;
	}
	memcpy(all + len, it->id, strlen(it->id));
	good = EVP_Digest(all, len + strlen(it->id), hash, &hashed, sha256, NULL) == 1;
	free(all);
	memcpy(it->ver, hash, sizeof it->ver);
	return good;
}

static int
read_item(struct pager *p, struct span raw, int64_t number, const struct cursor_key *horizon, struct item *it)
{
	const struct source *s = p->src;
	const char *why;
	int rc;

	memset(it, 0, sizeof *it);
	it->raw = raw;
	if ((rc = read_id(p, raw, number, it)) != Q_OK)
		return rc;
	if (s->cursor != NULL) {
		if ((rc = scalar(p, raw, s->cursor, "cursor", number, &it->cursor)) == Q_NO && !s->emit_missing)
			return say(p, Q_DATA, "item %" PRId64 ", id %.80s, has no cursor at \"%s\"", number, it->id, s->cursor);
		if (rc != Q_OK && rc != Q_NO)
			return rc;
		if (it->cursor != NULL && !cursor_key(&s->spec, it->cursor, &it->key, &why))
			return say(p, Q_DATA, "item %" PRId64 ", id %.80s: the cursor '%.60s' %s", number, it->id, it->cursor, why);
		it->future = it->cursor != NULL && horizon->n > 0 && cursor_compare(&it->key, horizon) > 0;
	}
	return digest(s, it) ? Q_OK : say(p, Q_TEMP, "out of memory");
}

static int
read_items(struct pager *p, struct span list, struct page *page)
{
	const struct source *s = p->src;
	struct cursor_key horizon = { .n = 0 };
	struct span at = { NULL, 0 };
	struct item *more;
	int rc;

	/* The server's clock, not ours: a wrong one here must not change what is fetched. */
	if (page->date_ms >= 0)
		cursor_instant(&s->spec, page->date_ms + s->max_skew_ms, &horizon);
	while (json_next(list, &at)) {
		if ((page->n & (page->n - 1)) == 0) {
			if ((more = realloc(page->items, (page->n == 0 ? 1 : 2 * page->n) * sizeof *more)) == NULL)
				return say(p, Q_TEMP, "out of memory");
			page->items = more;
		}
		page->n++;
		if ((rc = read_item(p, at, (int64_t)page->n, &horizon, &page->items[page->n - 1])) != Q_OK)
			return rc;
	}
	return Q_OK;
}

/* ---- the way on ---- */

/* A boolean that must be there. */
static int
flag(struct pager *p, struct span doc, const char *pointer, bool *v)
{
	char kind = json_kind(json_at(doc, pointer));

	*v = kind == 't';
	return kind == 't' || kind == 'f' ? Q_OK : say(p, Q_DATA, "neither true nor false at \"%s\", which says whether more follows", pointer);
}

/* The text of a pointer in the body: absent, null, false and "" are none. */
static int
pointer_text(struct pager *p, struct span doc, const char *where, char **text)
{
	char kind = json_kind(json_at(doc, where));

	int rc;

	*text = NULL;
	if (kind == 'f')
		return Q_OK;
	rc = scalar(p, doc, where, "pointer to the next page", 0, text);
	return rc == Q_NO ? Q_OK : rc;
}

static int
same_origin(struct pager *p, const char *base, char **url)
{
	char *full, shown[256];
	int rc = http_resolve(base, *url, &full);

	if (rc == Q_OK)
		rc = http_same_origin(full, p->src->url);
	if (rc != Q_OK) {
		rc = rc == Q_TEMP ? say(p, Q_TEMP, "out of memory") :
		    say(p, Q_DATA, "the next page is said to be at another place, %s; it is not asked, since the credential would go there",
		    http_shown(shown, sizeof shown, full != NULL ? full : *url));
		free(full);
		return rc;
	}
	free(*url);
	*url = full;
	return Q_OK;
}

/* A URL without one of its parameters. */
static void
without(char *url, const char *name)
{
	size_t n = strlen(name);
	char *at = strchr(url, '?'), *end;

	for (at += at != NULL; at != NULL; at = *end == '&' ? end + 1 : NULL) {
		end = at + strcspn(at, "&#");
		while (strncmp(at, name, n) == 0 && at[n] == '=' && *end == '&') {
			memmove(at, end + 1, strlen(end));
			end = at + strcspn(at, "&#");
		}
		if (strncmp(at, name, n) == 0 && at[n] == '=') {
			memmove(at - 1, end, strlen(end) + 1);
			return;
		}
	}
}

static int
read_next(struct pager *p, const struct http_answer *a, struct span doc, const char *pointer, struct page *page)
{
	const struct source *s = p->src;
	bool more = false, done = false, on = false, said = s->more != NULL || s->done != NULL;
	char number[24];
	int64_t at;
	int rc = Q_OK;

	page->full = s->size > 0 && page->n >= (size_t)s->size;
	if ((s->more != NULL && (rc = flag(p, doc, s->more, &more)) != Q_OK) || (s->done != NULL && (rc = flag(p, doc, s->done, &done)) != Q_OK))
		return rc;
	if (s->done != NULL)
		more = s->more != NULL ? more && !done : !done;
	switch (s->next) {
	case NEXT_LINK:
		if ((rc = http_link(p->http, "next", &page->next)) == Q_OK)
			rc = same_origin(p, a->url, &page->next);
		else
			rc = rc == Q_NO ? Q_OK : say(p, Q_TEMP, "out of memory");
		break;
	case NEXT_URL:
		if ((rc = pointer_text(p, doc, s->next_at, &page->next)) == Q_OK && page->next != NULL)
			rc = same_origin(p, a->url, &page->next);
		break;
	case NEXT_TOKEN:
		rc = pointer_text(p, doc, s->next_at, &page->next);
		break;
	case NEXT_LAST:
		if ((on = page->n > 0 && (said ? more : s->size < 0 || page->full)))
			page->next = strdup(page->items[page->n - 1].id);
		break;
	case NEXT_PAGE: case NEXT_OFFSET:
		if (!(on = page->n > 0 && (said ? more : s->size < 0 || page->full)))
			break;
		at = pointer != NULL ? strtoll(pointer, NULL, 10) : s->next == NEXT_PAGE ? s->first_page : 0;
		snprintf(number, sizeof number, "%" PRId64, at + (s->next == NEXT_PAGE ? 1 : (int64_t)page->n));
		page->next = strdup(number);
		break;
	case NEXT_NONE:
		break;
	}
	if (rc != Q_OK)
		return rc;
	if (on && page->next == NULL)	/* which would be the end */
		return say(p, Q_TEMP, "out of memory");
	if (page->next != NULL && s->secret_query != NULL && (s->next == NEXT_LINK || s->next == NEXT_URL))
		without(page->next, s->secret_query);	/* it is added to each request, and not to be stored */
	if (said && more && page->next == NULL)
		return say(p, Q_DATA, "the answer says that more follows, and has no pointer to it");
	page->end = said ? !more : page->next == NULL;
	page->doubtful = page->end && !said && page->full && s->next != NEXT_PAGE && s->next != NEXT_OFFSET;
	if (page->end && s->order != ORDER_OPAQUE) {
		free(page->next);
		page->next = NULL;
	}
	if (s->final != NULL && (rc = pointer_text(p, doc, s->final, &page->final)) == Q_OK && page->final != NULL && s->final_is_url)
		rc = same_origin(p, a->url, &page->final);
	return rc;
}

static int
get(struct pager *p, const char *url, const char *query, const char *pointer, struct page *page)
{
	struct http_answer a;
	struct span doc, list;
	struct ask q;
	bool conditional = p->etag != NULL || p->modified != NULL;
	int rc;

	memset(page, 0, sizeof *page);
	p->limited = false;
	p->pages++;
	rc = prepare(p, url, query, pointer, &q) ? ask(p, &q, pointer != NULL || p->sync != NULL, &a, &doc) : say(p, Q_TEMP, "out of memory");
	p->etag = p->modified = NULL;
	if (rc == Q_OK) {
		page->unmodified = a.kind == HTTP_SAME && conditional;
		page->date_ms = a.date_ms;
		page->bytes = a.len;
		if (p->src->conditional && pointer == NULL) {
			page->etag = dup_header(p, "ETag");
			page->modified = dup_header(p, "Last-Modified");
		}
		if (!page->unmodified && (rc = judge(p, &a, doc, &list)) == Q_OK && (rc = read_items(p, list, page)) == Q_OK)
			rc = url == NULL ? read_next(p, &a, doc, pointer, page) : Q_OK;
	}
	ask_free(&q);
	if (rc != Q_OK)
		page_free(page);
	return at_url(p, rc);
}

int
page_get(struct pager *p, const char *query, const char *pointer, struct page *page)
{
	return get(p, NULL, query, pointer, page);
}

int
page_probe(struct pager *p, const char *url, struct page *page)
{
	return get(p, url, NULL, NULL, page);
}

void
page_free(struct page *page)
{
	for (size_t i = 0; i < page->n; i++) {
		free(page->items[i].id);
		free(page->items[i].cursor);
	}
	free(page->items);
	free(page->next);
	free(page->final);
	free(page->etag);
	free(page->modified);
	memset(page, 0, sizeof *page);
}
