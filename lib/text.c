/*
 * text.c - names, numbers, UTF-8, escaping
 *
 * Text is UTF-8 whatever the locale says: a cron job has none, and a report must
 * look the same in both places.
 */
#define _GNU_SOURCE		/* fopencookie */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "json.h"
#include "q.h"

/* jq 1.6 gives up on a whole line at depth 256, and a payload may be inside a record inside a record. */
#define DEPTH_MAX 200

#define WORD_MAX 64		/* longest word that text_nearest() looks at */

struct range { uint32_t lo, hi; };

/* Marks that join the character before them, in the scripts met most; others count 1, which only cuts early. */
static const struct range joining[] = {
	{ 0x300, 0x36f }, { 0x483, 0x489 }, { 0x591, 0x5bd }, { 0x5bf, 0x5bf }, { 0x5c1, 0x5c2 },
	{ 0x5c4, 0x5c5 }, { 0x5c7, 0x5c7 }, { 0x610, 0x61a }, { 0x64b, 0x65f }, { 0x670, 0x670 },
	{ 0x6d6, 0x6dc }, { 0x6df, 0x6e4 }, { 0x6e7, 0x6e8 }, { 0x6ea, 0x6ed }, { 0x900, 0x902 },
	{ 0x93c, 0x93c }, { 0x941, 0x948 }, { 0x94d, 0x94d }, { 0xe31, 0xe31 }, { 0xe34, 0xe3a },
	{ 0xe47, 0xe4e }, { 0x1ab0, 0x1ace }, { 0x1dc0, 0x1dff }, { 0x20d0, 0x20f0 }, { 0x302a, 0x302d },
	{ 0x3099, 0x309a }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f },
};

/* Two columns: East Asian scripts and pictographs. */
static const struct range wide[] = {
	{ 0x1100, 0x115f }, { 0x231a, 0x231b }, { 0x2329, 0x232a }, { 0x23e9, 0x23ec }, { 0x23f0, 0x23f0 },
	{ 0x23f3, 0x23f3 }, { 0x25fd, 0x25fe }, { 0x2614, 0x2615 }, { 0x2648, 0x2653 }, { 0x267f, 0x267f },
	{ 0x2693, 0x2693 }, { 0x26a1, 0x26a1 }, { 0x26aa, 0x26ab }, { 0x26bd, 0x26be }, { 0x26c4, 0x26c5 },
	{ 0x26ce, 0x26ce }, { 0x26d4, 0x26d4 }, { 0x26ea, 0x26ea }, { 0x26f2, 0x26f3 }, { 0x26f5, 0x26f5 },
	{ 0x26fa, 0x26fa }, { 0x26fd, 0x26fd }, { 0x2705, 0x2705 }, { 0x270a, 0x270b }, { 0x2728, 0x2728 },
	{ 0x274c, 0x274c }, { 0x274e, 0x274e }, { 0x2753, 0x2755 }, { 0x2757, 0x2757 }, { 0x2795, 0x2797 },
	{ 0x27b0, 0x27b0 }, { 0x27bf, 0x27bf }, { 0x2b1b, 0x2b1c }, { 0x2b50, 0x2b50 }, { 0x2b55, 0x2b55 },
	{ 0x2e80, 0x303e }, { 0x3040, 0xa4cf }, { 0xa960, 0xa97f }, { 0xac00, 0xd7a3 }, { 0xf900, 0xfaff },
	{ 0xfe10, 0xfe1f }, { 0xfe30, 0xfe6f }, { 0xff00, 0xff60 }, { 0xffe0, 0xffe6 }, { 0x16fe0, 0x1b2ff },
	{ 0x1f004, 0x1f004 }, { 0x1f0cf, 0x1f0cf }, { 0x1f18e, 0x1f18e }, { 0x1f191, 0x1f19a }, { 0x1f200, 0x1f320 },
	{ 0x1f32d, 0x1f64f }, { 0x1f680, 0x1f6ff }, { 0x1f7e0, 0x1f7ff }, { 0x1f900, 0x1f9ff }, { 0x1fa70, 0x1faff },
	{ 0x20000, 0x3fffd },
};

/*
 * What a terminal obeys or a reader cannot see: C1 controls, soft hyphen, zero-width
 * characters, bidi controls, separators, byte order mark, tags.
 */
static const struct range hidden[] = {
	{ 0x80, 0x9f }, { 0xad, 0xad }, { 0x61c, 0x61c }, { 0x180e, 0x180e }, { 0x200b, 0x200f },
	{ 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb },
	{ 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
};

#define WITHIN(table, c) within(table, sizeof (table) / sizeof *(table), c)

static bool
within(const struct range *r, size_t n, uint32_t c)
{
	for (; n > 0 && c >= r->lo; r++, n--)
		if (c <= r->hi)
			return true;
	return false;
}

/* The character at p: its length in bytes, or 0 if no valid one begins there. */
static size_t
rune(const unsigned char *p, size_t n, uint32_t *c)
{
	size_t len, i;
	unsigned lo = 0x80, hi = 0xbf;

	if (p[0] < 0x80) {
		*c = p[0];
		return 1;
	}
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (n < len)
		return 0;
	switch (p[0]) {		/* overlong forms, surrogates, beyond U+10FFFF */
	case 0xe0: lo = 0xa0; break;
	case 0xed: hi = 0x9f; break;
	case 0xf0: lo = 0x90; break;
	case 0xf4: hi = 0x8f; break;
	}
	if (p[1] < lo || p[1] > hi)
		return 0;
	*c = p[0] & (0x7fu >> len);
	for (i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (p[i] & 0x3f);
	}
	return len;
}

bool
text_utf8(const void *text, size_t n)
{
	const unsigned char *p = text;
	size_t i, len;
	uint32_t c;

	for (i = 0; i < n; i += len)
		if ((len = rune(p + i, n - i, &c)) == 0)
			return false;
	return true;
}

bool
text_queue(const char *s)
{
	bool number = true;
	size_t n;

	if (*s == '.' || *s == '-')
		return false;
	for (n = 0; s[n] != '\0'; n++)	/* not by strspn(), which makes a table each time: this is asked for each job */
		if (s[n] < '0' || s[n] > '9') {
			number = false;
			if ((s[n] < 'a' || s[n] > 'z') && (s[n] < 'A' || s[n] > 'Z') && s[n] != '.' && s[n] != '_' && s[n] != '-')
				return false;
		}
	return n >= 1 && n <= 64 && !number;
}

bool
text_repeated(char *const *words, int i)
{
	for (int k = 0; k < i; k++)
		if (strcmp(words[k], words[i]) == 0)
			return true;
	return false;
}

const char *
text_name_fault(const char *s)
{
	size_t n = strlen(s);

	if (n == 0)
		return "is empty";
	if (n > 255)
		return "is longer than 255 bytes";
	if (!text_utf8(s, n))
		return "is not UTF-8";
	for (; *s != '\0'; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return "has a control byte";
	return NULL;
}

bool
text_int(const char *s, int64_t lo, int64_t hi, int64_t *v)
{
	int64_t x = 0;

	if (*s == '\0')
		return false;
	for (; *s != '\0'; s++) {
		int d = *s - '0';

		if (d < 0 || d > 9 || x > (INT64_MAX - d) / 10)
			return false;
		x = x * 10 + d;
	}
	if (x < lo || x > hi)
		return false;
	*v = x;
	return true;
}

/* How byte c is written inside a JSON string; NULL: as itself. */
static const char *
json_escape(unsigned char c, char buf[8])
{
	switch (c) {
	case '"': return "\\\"";
	case '\\': return "\\\\";
	case '\b': return "\\b";
	case '\f': return "\\f";
	case '\n': return "\\n";
	case '\r': return "\\r";
	case '\t': return "\\t";
	}
	if (c >= 0x20)
		return NULL;
	snprintf(buf, 8, "\\u%04x", (unsigned)c);
	return buf;
}

void
text_json(FILE *f, const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;
	const char *e;
	size_t i, len, from = 0;	/* from: first byte not written yet */
	uint32_t c;
	char buf[8];

	putc('"', f);
	for (i = 0; i < n; i += len) {
		if ((len = rune(p + i, n - i, &c)) == 0) {
			e = "\\ufffd";
			len = 1;
		} else if (len > 1 || (e = json_escape(p[i], buf)) == NULL)
			continue;
		fwrite(p + from, 1, i - from, f);
		fputs(e, f);
		from = i + len;
	}
	fwrite(p + from, 1, n - from, f);
	putc('"', f);
}

static bool
blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool
shallow(const char *p, size_t n)
{
	size_t i;
	int depth = 0;
	bool string = false;

	for (i = 0; i < n; i++)
		if (p[i] == '"')
			string = !string;
		else if (string)
			i += p[i] == '\\';
		else if (p[i] == '[' || p[i] == '{') {
			if (++depth > DEPTH_MAX)
				return false;
		} else if (p[i] == ']' || p[i] == '}')
			depth--;
	return true;
}

/* A JSON object or array that every reader of JSON takes. */
static bool
structured(const char *p, size_t n)
{
	json_t *v;
	size_t i;

	for (i = 0; i < n && blank(p[i]); i++)
		;
	if (i == n || (p[i] != '{' && p[i] != '[') || !shallow(p, n))
		return false;
	if (memchr(p, '\0', n) != NULL)		/* which jansson overlooks behind a number */
		return false;
	if ((v = json_loadb(p, n, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL)) == NULL)
		return false;
	json_decref(v);
	return true;
}

bool
text_is_json(const void *p, size_t n)
{
	json_t *v = shallow(p, n) ? json_loadb(p, n, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL) : NULL;
	bool valid = v != NULL;

	json_decref(v);
	return valid;
}

static void
base64(FILE *f, const unsigned char *p, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	while (n > 0) {
		char four[4];
		unsigned v = (unsigned)p[0] << 16 | (n > 1 ? (unsigned)p[1] << 8 : 0) | (n > 2 ? p[2] : 0);
		size_t take = n < 3 ? n : 3;

		four[0] = digits[v >> 18];
		four[1] = digits[v >> 12 & 63];
		four[2] = n > 1 ? digits[v >> 6 & 63] : '=';
		four[3] = n > 2 ? digits[v & 63] : '=';
		fwrite(four, 1, sizeof four, f);
		p += take;
		n -= take;
	}
}

void
text_json_text(FILE *f, const char *name, const char *v)
{
	fprintf(f, ",\"%s\":", name);
	if (v == NULL)
		fputs("null", f);
	else
		text_json(f, v, strlen(v));
}

void
text_json_int(FILE *f, const char *name, int64_t v)
{
	if (v == -1)
		fprintf(f, ",\"%s\":null", name);
	else
		fprintf(f, ",\"%s\":%" PRId64, name, v);
}

void
text_json_time(FILE *f, const char *name, int64_t ms)
{
	char text[WHEN_TEXT];

	if (ms == -1)
		fprintf(f, ",\"%s_at\":null,\"%s_ms\":null", name, name);
	else
		fprintf(f, ",\"%s_at\":\"%s\",\"%s_ms\":%" PRId64, name, when_text(text, ms, false), name, ms);
}

void
text_json_bytes(FILE *f, const char *name, const void *p, size_t n)
{
	if (p == NULL)
		fprintf(f, "\"%s\":null", name);
	else if (structured(p, n)) {
		fprintf(f, "\"%s\":", name);
		json_line(f, (struct span){ p, n });
	} else if (text_utf8(p, n)) {
		fprintf(f, "\"%s\":", name);
		text_json(f, p, n);
	} else {
		fprintf(f, "\"%s_base64\":\"", name);
		base64(f, p, n);
		putc('"', f);
	}
}

/* What is shown for the character at p, into buf, and its columns; returns the bytes it stands for. */
static size_t
show(const unsigned char *p, size_t n, char buf[16], int *cols)
{
	uint32_t c;
	size_t len = rune(p, n, &c);

	if (len == 0 || c < 0x20 || c == 0x7f) {
		*cols = snprintf(buf, 16, "\\x%02x", (unsigned)p[0]);
		return 1;
	}
	if (WITHIN(hidden, c)) {
		*cols = snprintf(buf, 16, "\\u{%04x}", (unsigned)c);
		return len;
	}
	memcpy(buf, p, len);
	buf[len] = '\0';
	*cols = WITHIN(joining, c) ? 0 : WITHIN(wide, c) ? 2 : 1;
	return len;
}

int
text_show(FILE *f, const void *text, size_t n, int width)
{
	const unsigned char *p = text;
	size_t i, len;
	char buf[16];
	int cols, used = 0, room = 0;
	bool cut = false;

	for (i = 0; width > 0 && i < n && !cut; i += len) {
		len = show(p + i, n - i, buf, &cols);
		cut = (used += cols) > width;
	}
	if (cut)
		room = width > 3 ? width - 3 : 0;
	used = 0;
	for (i = 0; i < n; i += len) {
		len = show(p + i, n - i, buf, &cols);
		if (cut && used + cols > room)
			break;
		fputs(buf, f);
		used += cols;
	}
	if (cut)
		used += fprintf(f, "%.*s", width < 3 ? width : 3, "...");
	return used;
}

void
text_tsv(FILE *f, const void *text, size_t n)
{
	const unsigned char *p = text;
	size_t i, j, len, from = 0;	/* from: first byte not written yet */
	uint32_t c;

	for (i = 0; i < n; i += len) {
		if ((len = rune(p + i, n - i, &c)) == 0) {
			c = 0;			/* shown like a control byte */
			len = 1;
		}
		if (c >= 0x20 && c != '\\' && c != 0x7f && !WITHIN(hidden, c))
			continue;
		fwrite(p + from, 1, i - from, f);
		from = i + len;
		switch (c) {
		case '\t': fputs("\\t", f); break;
		case '\n': fputs("\\n", f); break;
		case '\r': fputs("\\r", f); break;
		case '\\': fputs("\\\\", f); break;
		default:
			for (j = i; j < from; j++)	/* byte by byte, so that it can be turned back */
				fprintf(f, "\\x%02x", (unsigned)p[j]);
		}
	}
	fwrite(p + from, 1, n - from, f);
}

/* Insertions, deletions, changes and swaps of neighbours that turn a into b; both at most WORD_MAX long. */
static int
distance(const char *a, const char *b)
{
	int d[3][WORD_MAX + 1];
	int i, j, la = (int)strlen(a), lb = (int)strlen(b);

	for (j = 0; j <= lb; j++)
		d[0][j] = j;
	for (i = 1; i <= la; i++) {
		int *row = d[i % 3], *up = d[(i + 2) % 3], *up2 = d[(i + 1) % 3];

		row[0] = i;
		for (j = 1; j <= lb; j++) {
			int least = up[j - 1] + (a[i - 1] != b[j - 1]);

			if (up[j] + 1 < least)
				least = up[j] + 1;
			if (row[j - 1] + 1 < least)
				least = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && up2[j - 2] + 1 < least)
				least = up2[j - 2] + 1;
			row[j] = least;
		}
	}
	return d[la % 3][lb];
}

const char *
text_nearest(const char *word, const char *const *names)
{
	const char *best = NULL;
	size_t n = strlen(word);
	int d, least = (int)(n / 3) + 1;	/* one slip in three letters is a slip; more is another word */

	if (n > WORD_MAX)
		return NULL;
	for (; *names != NULL; names++)
		if (strlen(*names) <= WORD_MAX && (d = distance(word, *names)) < least) {
			least = d;
			best = *names;
		}
	return best;
}

/* ---- a stream into memory ---- */

struct memory { char **text; size_t *len, cap; bool lost; };

static ssize_t
memory_write(void *cookie, const char *p, size_t n)
{
	struct memory *m = cookie;
	char *more;

	if (*m->len + n >= m->cap) {
		if ((more = realloc(*m->text, 2 * (*m->len + n) + 256)) == NULL) {
			m->lost = true;
			return 0;
		}
		*m->text = more;
		m->cap = 2 * (*m->len + n) + 256;
	}
	memcpy(*m->text + *m->len, p, n);
	*m->len += n;
	(*m->text)[*m->len] = '\0';
	return (ssize_t)n;
}

static int
memory_close(void *cookie)
{
	struct memory *m = cookie;
	bool lost;

	memory_write(m, "", 0);		/* nothing at all is "" */
	lost = m->lost;
	free(m);
	if (lost)
		errno = ENOMEM;
	return lost ? -1 : 0;
}

FILE *
text_memory(char **text, size_t *len)
{
	struct memory *m = calloc(1, sizeof *m);
	FILE *f = NULL;

	*text = NULL;
	*len = 0;
	if (m != NULL) {
		*m = (struct memory){ .text = text, .len = len };
		if ((f = fopencookie(m, "w", (cookie_io_functions_t){ .write = memory_write, .close = memory_close })) == NULL)
			free(m);
	}
	return f;
}
