/* head.c - the head of a request: a subset of RFC 9112 in which there is one way to read it */
#include <string.h>
#include <strings.h>

#include "head.h"

size_t
head_end(const char *text, size_t n, size_t seen)
{
	const char *p, *end = text + n;

	/* Ended by bare LF, too: it is refused then, and not waited for. */
	for (p = text + (seen > 2 ? seen - 2 : 0); (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
		if (p == text || p[-1] == '\n' || (p[-1] == '\r' && (p == text + 1 || p[-2] == '\n')))
			return (size_t)(p - text) + 1;
	return 0;
}

static bool
token_byte(unsigned char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool
token(const char *s)
{
	const char *p = s;

	while (token_byte((unsigned char)*p))
		p++;
	return p > s && *p == '\0';
}

/* Printable ASCII, and in a value also blanks, tabs and what is beyond ASCII. */
static bool
printable(const char *s, bool value)
{
	for (; *s != '\0'; s++) {
		unsigned char c = (unsigned char)*s;

		if (c > ' ' && c < 127)
			continue;
		if (!value || (c != ' ' && c != '\t' && c < 128))
			return false;
	}
	return true;
}

static const char *
find(const struct head *h, const char *name)
{
	for (int i = 0; i < h->nfields; i++)
		if (strcasecmp(h->fields[i].name, name) == 0)
			return h->fields[i].value;
	return NULL;
}

/* Two of these could be read as one or the other. */
static bool
once(const char *name)
{
	static const char *const NAMES[] = { "Content-Length", "Transfer-Encoding", "Host", "Content-Encoding", "Content-Type", "Expect" };

	for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
		if (strcasecmp(name, NAMES[i]) == 0)
			return true;
	return false;
}

/* "METHOD TARGET HTTP/1.x" */
static const char *
request_line(char *line, struct head *h)
{
	char *target = strchr(line, ' '), *version = target != NULL ? strchr(target + 1, ' ') : NULL;

	if (version == NULL)
		return "the request line is not METHOD PATH HTTP/1.1";
	*target++ = *version++ = '\0';
	if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
		return "not HTTP/1.0 or HTTP/1.1";
	if (!token(line))
		return "the method is no word";
	if (*target != '/')
		return "the target is no path";
	if (!printable(target, false) || strchr(target, '#') != NULL)
		return "a byte in the target that must be escaped";
	h->method = line;
	h->target = target;
	h->minor = version[7] - '0';
	return NULL;
}

static const char *
field(char *line, struct head *h)
{
	char *value = strchr(line, ':'), *end;

	if (*line == ' ' || *line == '\t')
		return "a header line that is continued";
	if (value == NULL)
		return "a header line without a colon";
	*value++ = '\0';
	if (!token(line))
		return "a header name with a blank or another byte that names do not have";
	value += strspn(value, " \t");
	for (end = value + strlen(value); end > value && (end[-1] == ' ' || end[-1] == '\t'); end--)
		;
	*end = '\0';
	if (!printable(value, true))
		return "a control byte in a header";
	if (once(line) && find(h, line) != NULL)
		return "a header that is there twice";
	h->fields[h->nfields++] = (struct hook_field){ line, value };
	return NULL;
}

/* How long the body is, in the one way that it is said. */
static const char *
framing(struct head *h)
{
	const char *length = find(h, "Content-Length"), *coding = find(h, "Transfer-Encoding"), *p;

	h->length = -1;
	if (coding != NULL && length != NULL)
		return "Content-Length beside Transfer-Encoding";
	if (coding != NULL && (strcasecmp(coding, "chunked") != 0 || h->minor == 0))
		return "a Transfer-Encoding that is not chunked, or in HTTP/1.0";
	h->chunked = coding != NULL;
	if (length != NULL) {
		for (p = length, h->length = 0; *p >= '0' && *p <= '9' && p - length < 18; p++)
			h->length = 10 * h->length + (*p - '0');
		if (*p != '\0' || p == length)
			return "a Content-Length that is no number, or too large";
	}
	if (h->minor == 1 && find(h, "Host") == NULL)
		return "no Host";
	return NULL;
}

static int
pieces(const char *s, const char *sep)
{
	int n = 0;

	while (s != NULL && (s = strpbrk(s, sep)) != NULL) {
		s++;
		n++;
	}
	return n;
}

int
head_read(char *text, size_t n, struct head *h, const char **why)
{
	char *line, *end = text + n, *cr;
	const char *expect;

	memset(h, 0, sizeof *h);
	*why = "a NUL byte";
	if (memchr(text, '\0', n) != NULL)
		return 400;
	for (line = text; line < end; line = cr + 2) {
		*why = "a line that does not end with CR LF";
		if ((cr = memchr(line, '\r', (size_t)(end - line))) == NULL || cr + 1 == end || cr[1] != '\n' ||
		    memchr(line, '\n', (size_t)(cr - line)) != NULL)
			return 400;
		*cr = '\0';
		if (line == text)
			*why = request_line(line, h);
		else if (cr == line)
			break;
		else if (h->nfields == HEAD_FIELDS) {
			*why = "too many headers";
			return 431;
		} else
			*why = field(line, h);
		if (*why != NULL)
			return 400;
	}
	*why = "no empty line at the end";
	if (line >= end || cr + 2 != end || (*why = framing(h)) != NULL)
		return 400;
	*why = "too many parameters or cookies";	/* libmicrohttpd splits them, within POOL of door.c */
	if (pieces(h->target, "?&") > HEAD_FIELDS || pieces(find(h, "Cookie"), ";,") > HEAD_FIELDS)
		return 431;
	if ((expect = find(h, "Expect")) != NULL && strcasecmp(expect, "100-continue") != 0) {
		*why = "an Expect that is not 100-continue";
		return 417;
	}
	return 0;
}
