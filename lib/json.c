/* json.c - values inside a JSON text, by their place in its bytes */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "q.h"

enum { DEPTH_MAX = 200 };

/* ---- grammar ---- */

struct scan { const char *p, *end, *why; };

static void
blanks(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
		s->p++;
}

static bool
stop(struct scan *s, const char *why)
{
	s->why = why;
	return false;
}

static bool
is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool
string(struct scan *s)
{
	for (s->p++; s->p < s->end && *s->p != '"'; s->p++) {
		if ((unsigned char)*s->p < 0x20)
			return stop(s, "a control byte in a string");
		if (*s->p != '\\')
			continue;
		if (++s->p == s->end || strchr("\"\\/bfnrtu", *s->p) == NULL || *s->p == '\0')
			return stop(s, "an unknown escape");
		for (int i = 0; *s->p == 'u' && i < 4; i++)
			if (s->end - s->p < 5 || !is_hex(s->p[1 + i]))
				return stop(s, "an unknown escape");
	}
	if (s->p == s->end)
		return stop(s, "it is cut off");
	s->p++;
	return true;
}

static bool
digits(struct scan *s)
{
	const char *from = s->p;

	while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
		s->p++;
	return s->p > from || stop(s, s->p == s->end ? "it is cut off" : "not a number");
}

static bool
number(struct scan *s)
{
	s->p += *s->p == '-';
	if (s->p < s->end && *s->p == '0')
		s->p++;
	else if (!digits(s))
		return false;
	if (s->p < s->end && *s->p == '.' && (s->p++, !digits(s)))
		return false;
	if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
		s->p++;
		s->p += s->p < s->end && (*s->p == '+' || *s->p == '-');
		return digits(s);
	}
	return true;
}

static bool
word(struct scan *s, const char *w)
{
	size_t n = strlen(w), left = (size_t)(s->end - s->p);

	if (memcmp(s->p, w, left < n ? left : n) != 0)
		return stop(s, "not JSON");
	if (left < n)
		return stop(s, "it is cut off");
	s->p += n;
	return true;
}

static bool value(struct scan *, int depth);

/* Members or elements, after the opening bracket. */
static bool
inside(struct scan *s, char close, int depth)
{
	s->p++;
	blanks(s);
	if (s->p < s->end && *s->p == close) {
		s->p++;
		return true;
	}
	for (;;) {
		blanks(s);
		if (close == '}') {
			if (s->p == s->end || *s->p != '"')
				return stop(s, s->p == s->end ? "it is cut off" : "a member without a name");
			if (!string(s))
				return false;
			blanks(s);
			if (s->p == s->end || *s->p != ':')
				return stop(s, s->p == s->end ? "it is cut off" : "a member without a colon");
			s->p++;
			blanks(s);
		}
		if (!value(s, depth))
			return false;
		blanks(s);
		if (s->p == s->end)
			return stop(s, "it is cut off");
		if (*s->p == close) {
			s->p++;
			return true;
		}
		if (*s->p != ',')
			return stop(s, "no comma between values");
		s->p++;
	}
}

static bool
value(struct scan *s, int depth)
{
	if (s->p == s->end)
		return stop(s, "it is cut off");
	if (depth == DEPTH_MAX && (*s->p == '{' || *s->p == '['))
		return stop(s, "nested deeper than 200");
	switch (*s->p) {
	case '{': return inside(s, '}', depth + 1);
	case '[': return inside(s, ']', depth + 1);
	case '"': return string(s);
	case 't': return word(s, "true");
	case 'f': return word(s, "false");
	case 'n': return word(s, "null");
	default:
		if (*s->p != '-' && (*s->p < '0' || *s->p > '9'))
			return stop(s, "not JSON");
		return number(s);
	}
}

bool
json_read(const char *text, size_t n, struct span *v, const char **why, size_t *at)
{
	struct scan s = { text, text + n, NULL };

	*v = (struct span){ NULL, 0 };
	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		s.p += 3;
	blanks(&s);
	v->p = s.p;
	if (s.p == s.end)
		stop(&s, "it is empty");
	else if (value(&s, 0)) {
		v->n = (size_t)(s.p - v->p);
		blanks(&s);
		if (s.p < s.end)
			stop(&s, "something follows the JSON value");
	}
	*why = s.why;
	*at = (size_t)(s.p - text);
	return s.why == NULL;
}

/* ---- finding ---- */

static const char *
skip_blanks(const char *p)
{
	while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
		p++;
	return p;
}

/* The end of the value at p, which is known to be good. */
static const char *
after(const char *p, const char *end)
{
	int depth = 0;

	if (*p != '"' && *p != '{' && *p != '[') {
		while (p < end && strchr(",]} \t\n\r", *p) == NULL)
			p++;
		return p;
	}
	do {
		if (*p == '"') {
			while (*++p != '"')
				p += *p == '\\';
		} else
			depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
		p++;
	} while (depth > 0);
	return p;
}

char
json_kind(struct span v)
{
	if (v.p == NULL)
		return 0;
	return strchr("{[\"tfn", *v.p) != NULL ? *v.p : '0';
}

/* The next member of an object or element of an array; *v NULL: the first. */
static bool
next(struct span in, struct span *key, struct span *v)
{
	const char *end = in.p + in.n, *p = v->p == NULL ? in.p + 1 : v->p + v->n;

	p = skip_blanks(p);
	if (*p == ',')
		p = skip_blanks(p + 1);
	if (*p == '}' || *p == ']')
		return false;
	if (key != NULL) {
		key->p = p;
		key->n = (size_t)(after(p, end) - p);
		p = skip_blanks(skip_blanks(p + key->n) + 1);	/* the colon */
	}
	v->p = p;
	v->n = (size_t)(after(p, end) - p);
	return true;
}

bool
json_member(struct span object, struct span *key, struct span *v)
{
	return next(object, key, v);
}

bool
json_next(struct span array, struct span *element)
{
	return next(array, NULL, element);
}

bool
json_pointer(const char *s)
{
	if (*s != '\0' && *s != '/')
		return false;
	for (; *s != '\0'; s++)
		if (*s == '~' && s[1] != '0' && s[1] != '1')
			return false;
	return true;
}

/* Is this the key that the pointer's next token, up to stop, stands for? */
static bool
is_key(struct span key, const char *token, const char *token_end)
{
	size_t n, i = 0;
	char *plain = NULL;
	const char *k = key.p + 1;
	bool same;

	n = key.n - 2;
	if (memchr(k, '\\', n) != NULL) {
		if ((plain = json_text(key, &n)) == NULL)
			return false;
		k = plain;
	}
	for (; token < token_end && i < n; token++, i++) {
		char c = *token == '~' ? (*++token == '0' ? '~' : '/') : *token;

		if (k[i] != c)
			break;
	}
	same = token == token_end && i == n;
	free(plain);
	return same;
}

struct span
json_at(struct span v, const char *pointer)
{
	static const struct span NOTHING = { NULL, 0 };
	struct span key, at, found;
	const char *end;
	int64_t index;
	char number_text[20];

	for (; *pointer == '/' && v.p != NULL; pointer = end) {
		pointer++;
		end = pointer + strcspn(pointer, "/");
		found = at = NOTHING;
		if (json_kind(v) == '{') {
			while (next(v, &key, &at))	/* of a name given twice the last counts, as most readers have it */
				if (is_key(key, pointer, end))
					found = at;
		} else if (json_kind(v) == '[' && (size_t)(end - pointer) < sizeof number_text) {
			memcpy(number_text, pointer, (size_t)(end - pointer));
			number_text[end - pointer] = '\0';
			if ((number_text[0] != '0' || number_text[1] == '\0') && text_int(number_text, 0, INT32_MAX, &index)) {
				while (index >= 0 && next(v, NULL, &at))
					index--;
				if (index < 0)
					found = at;
			}
		}
		v = found;
	}
	return v;
}

/* ---- what values mean ---- */

static unsigned
hex4(const char *p)
{
	char four[5];

	memcpy(four, p, 4);
	four[4] = '\0';
	return (unsigned)strtoul(four, NULL, 16);
}

static char *
put_rune(char *to, unsigned c)
{
	if (c < 0x80)
		*to++ = (char)c;
	else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	}
	return to;
}

char *
json_text(struct span v, size_t *len)
{
	static const char NAMES[] = "\"\\/bfnrt", MEAN[] = "\"\\/\b\f\n\r\t";
	char *text = malloc(v.n + 1), *to = text;	/* no escape is shorter than what it means */
	const char *p, *end;
	unsigned c;

	if (text == NULL)
		return NULL;
	if (json_kind(v) != '"') {
		memcpy(text, v.p, v.n);
		to += v.n;
	} else for (p = v.p + 1, end = v.p + v.n - 1; p < end; p++) {
		if (*p != '\\') {
			*to++ = *p;
			continue;
		}
		if (*++p != 'u') {
			*to++ = MEAN[strchr(NAMES, *p) - NAMES];
			continue;
		}
		c = hex4(p + 1);
		p += 4;
		if (c >= 0xd800 && c < 0xdc00 && end - p > 6 && p[1] == '\\' && p[2] == 'u' &&
		    hex4(p + 3) >= 0xdc00 && hex4(p + 3) < 0xe000) {
			c = 0x10000 + ((c - 0xd800) << 10) + (hex4(p + 3) - 0xdc00);
			p += 6;
		}
		to = put_rune(to, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
	}
	*to = '\0';
	*len = (size_t)(to - text);
	return text;
}

void
json_line(FILE *f, struct span v)
{
	size_t i, from = 0;

	for (i = 0; i < v.n; i++)
		if (v.p[i] == '"') {
			while (v.p[++i] != '"')
				i += v.p[i] == '\\';
		} else if (strchr(" \t\n\r", v.p[i]) != NULL) {
			fwrite(v.p + from, 1, i - from, f);
			from = i + 1;
		}
	fwrite(v.p + from, 1, v.n - from, f);
}

struct member { struct span key, v; char *text; size_t len; };	/* text: what the key means, if it is escaped */

static int
by_key(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	const char *p = x->text != NULL ? x->text : x->key.p + 1, *q = y->text != NULL ? y->text : y->key.p + 1;
	int d = memcmp(p, q, x->len < y->len ? x->len : y->len);

	if (d == 0)
		d = (x->len > y->len) - (x->len < y->len);
	return d != 0 ? d : (x->v.p > y->v.p) - (x->v.p < y->v.p);	/* a name given twice */
}

struct canon { struct span except[16]; int n; char *buf; size_t len, cap; };

static bool
put(struct canon *c, const char *p, size_t n)
{
	char *more;

	if (n > c->cap - c->len) {
		c->cap = 2 * (c->cap + n);
		if ((more = realloc(c->buf, c->cap)) == NULL)
			return false;
		c->buf = more;
	}
	memcpy(c->buf + c->len, p, n);
	c->len += n;
	return true;
}

/* U+FFFD stands for what is none of a character, too, and is then another text. */
static bool
is_plain(const char *text, size_t n)
{
	for (size_t i = 0; i + 2 < n; i++)
		if (memcmp(text + i, "\xef\xbf\xbd", 3) == 0)
			return false;
	return text_utf8(text, n);
}

/* A string, escaped in the one way of text_json() if that keeps all of it. */
static bool
put_string(struct canon *c, struct span v)
{
	char *text, *again = NULL;
	size_t len, size;
	FILE *f;
	bool good = false;

	if (memchr(v.p, '\\', v.n) == NULL)
		return put(c, v.p, v.n);
	if ((text = json_text(v, &len)) == NULL)
		return false;
	if (!is_plain(text, len))
		good = put(c, v.p, v.n);
	else if ((f = text_memory(&again, &size)) != NULL) {
		text_json(f, text, len);
		good = fclose(f) == 0 && put(c, again, size);
	}
	free(again);
	free(text);
	return good;
}

static bool canon(struct canon *, struct span);

static bool
is_out(const struct canon *c, struct span v)
{
	for (int i = 0; i < c->n; i++)
		if (c->except[i].p == v.p)
			return true;
	return false;
}

static bool
canon_object(struct canon *c, struct span v)
{
	struct member *m = NULL, *more;
	struct span key, at = { NULL, 0 };
	size_t n = 0;
	bool good = put(c, "{", 1);

	while (good && next(v, &key, &at)) {
		if ((n & (n - 1)) == 0) {
			if ((more = realloc(m, (n == 0 ? 1 : 2 * n) * sizeof *m)) == NULL) {
				good = false;
				break;
			}
			m = more;
		}
		m[n] = (struct member){ .key = key, .v = at, .len = key.n - 2 };
		if (memchr(key.p, '\\', key.n) != NULL && (m[n].text = json_text(key, &m[n].len)) == NULL)
			good = false;
		n++;
	}
	if (n > 1)
		qsort(m, n, sizeof *m, by_key);
	for (size_t i = 0; i < n && good; i++)
		if (!is_out(c, m[i].v))
			good = put_string(c, m[i].key) && put(c, ":", 1) && canon(c, m[i].v) && put(c, ",", 1);
	for (size_t i = 0; i < n; i++)
		free(m[i].text);
	free(m);
	return good && put(c, "}", 1);
}

static bool
canon(struct canon *c, struct span v)
{
	struct span at = { NULL, 0 };
	bool good;

	switch (json_kind(v)) {
	case '{':
		return canon_object(c, v);
	case '[':
		good = put(c, "[", 1);
		while (good && next(v, NULL, &at))
			good = canon(c, at) && put(c, ",", 1);
		return good && put(c, "]", 1);
	case '"':
		return put_string(c, v);
	default:
		return put(c, v.p, v.n);
	}
}

char *
json_canon(struct span v, const char *const *except, int nexcept, size_t *len)
{
	struct canon c = { .cap = v.n + 64 };

	for (int i = 0; i < nexcept && c.n < 16; i++)
		c.except[c.n++] = json_at(v, except[i]);
	if ((c.buf = malloc(c.cap)) == NULL || !canon(&c, v)) {
		free(c.buf);
		return NULL;
	}
	*len = c.len;
	return c.buf;
}
