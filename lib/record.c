/*
 * record.c - a job from a JSON record (qadd --jsonl), a claim or an id from a line
 *
 * jansson judges the record and gives the values; the payload alone is taken from the bytes as they came, because a
 * parsed number has lost its digits.  An object or array there, most of most records, is not shown to jansson at all:
 * to build the tree of it took a quarter of a bulk add.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <jansson.h>

#include "json.h"
#include "q.h"

#define INT_MAX_EXACT INT64_C(9007199254740992)	/* 2^53: beyond, a real is not one integer */

enum name {
	QUEUE, TYPE, KEY, ENTITY, PRIORITY, PAYLOAD, PAYLOAD64, DUE_MS, DUE_AT, EVENT_MS, EVENT_AT,
	ZONE, TZ, AFTER, IN, AT, JITTER, ATTEMPTS, BACKOFF, CAP, WINDOW, CLAIM, ID, NAMES
};

static const char *const names[NAMES] = {
	"queue", "type", "key", "entity", "priority", "payload", "payload_base64", "due_ms", "due_at",
	"event_ms", "event_at", "zone", "tz", "after", "in", "at", "jitter",
	"attempts", "backoff_ms", "backoff_cap_ms", "window_ms", "claim", "id"
};

struct record {
	json_t *root;
	json_t *v[NAMES];		/* NULL: absent, or null */
	bool met[NAMES];
	struct span payload;		/* its source bytes */
};

static char fault[160];			/* what *why points to, unless it is a constant */

static bool refuse(const char **, const char *, ...) __attribute__((format(printf, 2, 3)));

static bool
refuse(const char **why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fault, sizeof fault, fmt, ap);
	va_end(ap);
	*why = fault;
	return false;
}

static bool
blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The name that a key stands for, however it is escaped; NAMES: none of ours. */
static enum name
name_of(struct span key)
{
	const char *p = key.p + 1;
	size_t n = key.n - 2;
	char *plain = NULL;
	enum name i;

	if (memchr(p, '\\', n) != NULL && (p = plain = json_text(key, &n)) == NULL)
		return NAMES;
	for (i = 0; i < NAMES; i++)
		if (strlen(names[i]) == n && memcmp(names[i], p, n) == 0)
			break;
	free(plain);
	return i;
}

/* Walk the members at the top: find the payload, and refuse a name that says two things. */
static bool
members(struct record *r, struct span all, const char **why)
{
	struct span key, v = { NULL, 0 };
	enum name i;

	while (json_member(all, &key, &v)) {
		if ((i = name_of(key)) == NAMES)
			continue;
		if (r->met[i])
			return refuse(why, "\"%s\" is given twice", names[i]);
		r->met[i] = true;
		if (i == PAYLOAD)
			r->payload = v;
	}
	return true;
}

/* Integers first: only as integers are they exact up to 2^63, and a payload may hold larger ones. */
static json_t *
load(const char *text, size_t n, json_error_t *e)
{
	json_t *root = json_loadb(text, n, JSON_ALLOW_NUL, e);

	if (root == NULL && json_error_code(e) == json_error_numeric_overflow)
		root = json_loadb(text, n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, e);
	return root;
}

/* The record with 0 for its payload; NULL: it is for jansson to say what is wrong. */
static json_t *
load_rest(const struct record *r, const char *text, size_t n)
{
	static char *buf;
	static size_t cap;
	size_t before = (size_t)(r->payload.p - text), behind = n - before - r->payload.n;
	json_error_t e;
	char *p;

	if (!text_utf8(r->payload.p, r->payload.n))
		return NULL;
	if (cap < before + 1 + behind) {
		if ((p = realloc(buf, before + 1 + behind)) == NULL)
			return NULL;
		buf = p;
		cap = before + 1 + behind;
	}
	memcpy(buf, text, before);
	buf[before] = '0';
	memcpy(buf + before + 1, r->payload.p + r->payload.n, behind);
	return load(buf, before + 1 + behind, &e);
}

/* Parse the record in text[n]; the caller drops r->root, which is NULL if this fails. */
static bool
record_read(struct record *r, const char *text, size_t n, const char **why)
{
	const char *nul = memchr(text, '\0', n), *unused;
	struct span all;
	json_error_t e;
	size_t at;
	bool read;

	memset(r, 0, sizeof *r);
	if (nul != NULL)		/* which jansson overlooks behind a number */
		return refuse(why, "a NUL byte at byte %zu", (size_t)(nul - text) + 1);
	read = json_read(text, n, &all, &unused, &at) && json_kind(all) == '{';
	if (read && !members(r, all, why))
		return false;
	if (json_kind(r->payload) == '{' || json_kind(r->payload) == '[')
		r->root = load_rest(r, text, n);
	if (r->root == NULL)
		r->root = load(text, n, &e);
	if (r->root == NULL)
		switch (json_error_code(&e)) {
		case json_error_numeric_overflow:
			return refuse(why, "a number is out of range at byte %d", e.position);
		case json_error_stack_overflow:
			return refuse(why, "JSON nested too deep at byte %d", e.position);
		case json_error_invalid_utf8:
			return refuse(why, "not UTF-8 at byte %d", e.position);
		case json_error_null_byte_in_key:
			return refuse(why, "NUL in a name at byte %d", e.position);
		case json_error_premature_end_of_input:
			return refuse(why, "JSON ends too early");
		case json_error_unknown:
		case json_error_out_of_memory:
			return refuse(why, "out of memory");
		default:
			return refuse(why, "not JSON at byte %d", e.position);
		}
	if (!read)			/* it may be deeper than json_read() goes */
		all.n = n - (size_t)(all.p - text);
	if (!json_is_object(r->root))
		refuse(why, "not a JSON object");
	else if (read || members(r, all, why)) {
		for (enum name i = 0; i < NAMES; i++) {
			r->v[i] = r->met[i] ? json_object_get(r->root, names[i]) : NULL;
			if (json_is_null(r->v[i]))
				r->v[i] = NULL;
		}
		return true;
	}
	json_decref(r->root);
	r->root = NULL;
	return false;
}

/* An absent member leaves *s as it is. */
static bool
get_text(const struct record *r, enum name i, const char **s, const char **why)
{
	if (r->v[i] == NULL)
		return true;
	if (!json_is_string(r->v[i]))
		return refuse(why, "\"%s\" must be a string", names[i]);
	*s = json_string_value(r->v[i]);
	if (strlen(*s) != json_string_length(r->v[i]))
		return refuse(why, "\"%s\" has a NUL byte", names[i]);
	return true;
}

static bool
get_int(const struct record *r, enum name i, int64_t lo, int64_t hi, int64_t *n, const char **why)
{
	int64_t x = lo - 1;
	double d;

	if (r->v[i] == NULL)
		return true;
	if (json_is_integer(r->v[i]))
		x = json_integer_value(r->v[i]);
	else if (json_is_real(r->v[i])) {
		d = json_real_value(r->v[i]);
		if (d >= -(double)INT_MAX_EXACT && d <= (double)INT_MAX_EXACT && d == (double)(int64_t)d)
			x = (int64_t)d;
	}
	if (x < lo || x > hi)
		return refuse(why, "\"%s\" must be a whole number from %lld to %lld", names[i], (long long)lo, (long long)hi);
	*n = x;
	return true;
}

static int
digit64(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *p = c == '\0' ? NULL : strchr(digits, c);

	return p == NULL ? -1 : (int)(p - digits);
}

/* RFC 4648 with its padding and no stray bits: one text for one value. */
static bool
decode64(const char *s, size_t n, unsigned char *out, size_t *len)
{
	size_t i, pad = 0;
	uint32_t v = 0;
	int d;

	if (n % 4 != 0)
		return false;
	while (pad < 2 && pad < n && s[n - 1 - pad] == '=')
		pad++;
	*len = 0;
	for (i = 0; i < n - pad; i++) {
		if ((d = digit64(s[i])) == -1)
			return false;
		v = v << 6 | (uint32_t)d;
		if (i % 4 > 0)
			out[(*len)++] = (unsigned char)(v >> (6 - 2 * (i % 4)));
	}
	return pad == 0 || (v & (pad == 1 ? 3 : 15)) == 0;
}

static bool
get_payload(const struct record *r, struct job_new *job, const char **why)
{
	static unsigned char *bytes;
	unsigned char *p;
	json_t *v = r->v[PAYLOAD], *v64 = r->v[PAYLOAD64];

	if (v != NULL && v64 != NULL)
		return refuse(why, "\"payload\" and \"payload_base64\" are both given");
	if (v64 != NULL) {
		if (!json_is_string(v64))
			return refuse(why, "\"payload_base64\" must be a string");
		if ((p = realloc(bytes, json_string_length(v64) + 1)) == NULL)
			return refuse(why, "out of memory");
		bytes = p;
		if (!decode64(json_string_value(v64), json_string_length(v64), bytes, &job->payload_len))
			return refuse(why, "\"payload_base64\" is not base64");
		job->payload = bytes;
	} else if (json_is_string(v)) {
		job->payload = json_string_value(v);
		job->payload_len = json_string_length(v);
	} else if (v != NULL) {
		job->payload = r->payload.p;
		job->payload_len = r->payload.n;
	}
	return true;
}

static bool
instant(enum name i, const char *s, const char *zone, int64_t base, int64_t *ms, const char **why)
{
	const char *w;

	return when_instant(s, zone, base, ms, &w) || refuse(why, "\"%s\": %s", names[i], w);
}

static bool
duration(enum name i, const char *s, int64_t *ms, const char **why)
{
	const char *w;

	return s == NULL || when_duration(s, ms, &w) || refuse(why, "\"%s\": %s", names[i], w);
}

static bool
get_times(const struct record *r, int64_t now, struct job_new *job, const char **why)
{
	struct when_due due = { .base = now };
	const char *due_at = NULL, *event_at = NULL, *zone = NULL, *tz = NULL;
	const char *after = NULL, *in = NULL, *jitter = NULL, *w;
	int64_t due_ms = -1, event_ms = -1;

	if (!get_int(r, DUE_MS, 0, WHEN_MAX, &due_ms, why) || !get_text(r, DUE_AT, &due_at, why) ||
	    !get_int(r, EVENT_MS, 0, WHEN_MAX, &event_ms, why) || !get_text(r, EVENT_AT, &event_at, why) ||
	    !get_text(r, ZONE, &zone, why) || !get_text(r, TZ, &tz, why) || !get_text(r, AFTER, &after, why) ||
	    !get_text(r, IN, &in, why) || !get_text(r, AT, &due.at, why) || !get_text(r, JITTER, &jitter, why))
		return false;
	if (tz != NULL && !when_zone(tz, &w))
		return refuse(why, "\"tz\": %s", w);
	if (zone != NULL && (w = text_name_fault(zone)) != NULL)
		return refuse(why, "\"zone\" %s", w);

	if (event_ms == -1 && event_at != NULL && !instant(EVENT_AT, event_at, NULL, now, &event_ms, why))
		return false;
	if (event_ms != -1)
		job->event_ms = event_ms;

	due.zone = tz != NULL ? tz : job->zone;
	if (tz != NULL || zone != NULL)
		job->zone = tz != NULL ? tz : zone;
	if (due_ms == -1 && due_at != NULL && !instant(DUE_AT, due_at, NULL, now, &due_ms, why))
		return false;
	if (due_ms == -1 && (after != NULL || in != NULL || due.at != NULL || jitter != NULL)) {
		if ((after != NULL && !instant(AFTER, after, due.zone, now, &due.base, why)) ||
		    !duration(IN, in, &due.in, why) || !duration(JITTER, jitter, &due.jitter_ms, why))
			return false;
		if (due.jitter_ms > 0)
			due.share = job_share(job->queue, job->key);
		if (!when_due(&due, &due_ms, &w))
			return due.at != NULL ? refuse(why, "\"at\": %s", w) : refuse(why, "%s", w);
		if (due.zone != NULL)
			job->zone = due.zone;		/* the one it was read in */
	}
	if (due_ms != -1)
		job->due_ms = due_ms;
	return true;
}

bool
record_parse(const char *text, size_t n, int64_t now, struct job_new *job, const char **why)
{
	static struct record r;
	const char *queue = NULL, *type = NULL;

	json_decref(r.root);
	if (!record_read(&r, text, n, why) ||
	    !get_text(&r, QUEUE, &queue, why) || !get_text(&r, TYPE, &type, why) ||
	    !get_text(&r, KEY, &job->key, why) || !get_text(&r, ENTITY, &job->entity, why) ||
	    !get_int(&r, PRIORITY, 0, 9, &job->priority, why) || !get_int(&r, ATTEMPTS, 1, 1000000, &job->attempts, why) ||
	    !get_int(&r, BACKOFF, 0, WHEN_MAX, &job->base_ms, why) || !get_int(&r, CAP, 1, WHEN_MAX, &job->cap_ms, why) ||
	    !get_int(&r, WINDOW, 0, WHEN_MAX, &job->window_ms, why) || !get_payload(&r, job, why))
		return false;
	if (job->queue == NULL)
		job->queue = queue;
	if (type != NULL && *type != '\0')
		job->type = type;
	return get_times(&r, now, job, why);
}

double
job_share(const char *queue, const char *key)
{
	uint64_t h = UINT64_C(14695981039346656037);	/* FNV-1a; any fixed hash does */
	const char *p;

	if (key == NULL) {
		if (getentropy(&h, sizeof h) == -1)
			h = (uint64_t)when_now() ^ (uint64_t)getpid() << 32;
	} else {
		for (p = queue == NULL ? "" : queue; *p != '\0'; p++)
			h = (h ^ (unsigned char)*p) * UINT64_C(1099511628211);
		h *= UINT64_C(1099511628211);		/* the NUL between them */
		for (p = key; *p != '\0'; p++)
			h = (h ^ (unsigned char)*p) * UINT64_C(1099511628211);
	}
	/* Short keys differ in the low bits alone: spread them over the high ones. */
	h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
	h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	h ^= h >> 33;
	return (double)(h >> 11) / 9007199254740992.0;
}

/* The length of a line without what may stand behind its word. */
static size_t
trimmed(const char *s, size_t n)
{
	while (n > 0 && blank(s[n - 1]))
		n--;
	return n;
}

/* Is it a record (then read it), and not a word? */
static bool
is_record(const char *line, size_t n)
{
	while (n > 0 && blank(*line)) {
		line++;
		n--;
	}
	return n > 0 && *line == '{';
}

/* The word in a line, with its NUL, into buf; false if it does not fit or is not one. */
static bool
word(const char *line, size_t n, char buf[JOB_CLAIM_TEXT])
{
	n = trimmed(line, n);
	if (n >= JOB_CLAIM_TEXT || memchr(line, '\0', n) != NULL)
		return false;
	memcpy(buf, line, n);
	buf[n] = '\0';
	return true;
}

/* ---- claim words ---- */

bool
claim_parse(const char *word, struct claim *c)
{
	char id[20], fence[20];
	const char *dot = strchr(word, '.'), *dot2 = dot != NULL ? strchr(dot + 1, '.') : NULL;

	if (dot2 == NULL || dot - word >= (int)sizeof id || dot2 - dot > (int)sizeof fence || strlen(dot2 + 1) != 8 ||
	    strspn(dot2 + 1, "0123456789abcdef") != 8)
		return false;
	snprintf(id, sizeof id, "%.*s", (int)(dot - word), word);
	snprintf(fence, sizeof fence, "%.*s", (int)(dot2 - dot - 1), dot + 1);
	c->nonce = (int64_t)strtoull(dot2 + 1, NULL, 16);
	return text_int(id, 1, JOB_ID_MAX, &c->id) && text_int(fence, 1, JOB_ID_MAX, &c->fence);
}

char *
claim_text(char buf[JOB_CLAIM_TEXT], const struct claim *c)
{
	snprintf(buf, JOB_CLAIM_TEXT, "%" PRId64 ".%" PRId64 ".%08" PRIx64, c->id, c->fence, (uint64_t)c->nonce);
	return buf;
}

bool
record_claim(const char *line, size_t n, struct claim *c)
{
	char buf[JOB_CLAIM_TEXT];
	const char *s = NULL, *why;
	struct record r;
	bool good;

	if (!is_record(line, n))
		return word(line, n, buf) && claim_parse(buf, c);
	if (!record_read(&r, line, n, &why))
		return false;
	good = get_text(&r, CLAIM, &s, &why) && s != NULL && claim_parse(s, c);
	json_decref(r.root);
	return good;
}

bool
record_id(const char *line, size_t n, int64_t *id)
{
	char buf[JOB_CLAIM_TEXT];
	int64_t v = -1;
	const char *why;
	struct record r;
	bool good;

	if (!is_record(line, n))
		return word(line, n, buf) && text_int(buf, 1, INT_MAX_EXACT - 1, id);
	if (!record_read(&r, line, n, &why))
		return false;
	good = get_int(&r, ID, 1, INT_MAX_EXACT - 1, &v, &why) && v != -1;
	if (good)
		*id = v;
	json_decref(r.root);
	return good;
}
