/*
 * http.c - HTTP requests through libcurl, and what their answers mean
 *
 * libcurl carries bytes and checks certificates.  Redirects, limits and the meaning of headers are done here: 7.88 sends
 * custom headers on to other hosts, does not count what it decodes, and reads a Retry-After in the past as a negative time.
 */
#define _DEFAULT_SOURCE		/* timegm(3), getentropy(3) */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>
#include <curl/mprintf.h>

#include "http.h"

enum {
	HEADERS_MAX = 256 << 10,	/* of one answer, bytes */
	REDIRECTS_MAX = 5,
	TRIES = 5,
	CONNECT_MS = 10 * 1000,
	STALL_S = 30,			/* less than a byte a second for so long */
	SHOWN_MAX = 200			/* columns of a URL, a body, a cause */
};
#define WAIT_MAX (INT64_C(3650) * 86400 * 1000)		/* ms; longer ones are this */
#define FETCH_WAIT_MS (5 * 60 * 1000)

static const char TOKEN[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

struct http {
	CURL *curl;
	char *headers;			/* NAME NUL VALUE NUL ... */
	size_t headers_len;
	bool headed;			/* the headers are complete: what comes later are trailers */
	int status;
	char *body, *url;
	size_t len, cap, max;
	enum { GOOD, TOO_LONG, TOO_MANY, NO_MEMORY } broke;	/* why a callback stopped the transfer */
	char error[CURL_ERROR_SIZE];
};

struct http *
http_open(void)
{
	struct http *h;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || (h = calloc(1, sizeof *h)) == NULL)
		return NULL;
	h->curl = curl_easy_init();
	h->headers = malloc(HEADERS_MAX);
	if (h->curl != NULL && h->headers != NULL)
		return h;
	http_close(h);
	return NULL;
}

void
http_close(struct http *h)
{
	if (h == NULL)
		return;
	curl_easy_cleanup(h->curl);
	free(h->headers);
	free(h->body);
	free(h->url);
	free(h);
}

/* ---- URLs ---------------------------------------------------------------- */

static int
status_of(CURLUcode code)
{
	return code == CURLUE_OK ? Q_OK : code == CURLUE_OUT_OF_MEMORY ? Q_TEMP : Q_NO;
}

/* Q_NO: it has none, and *s is NULL; Q_TEMP: out of memory. */
static int
part(CURLU *u, CURLUPart what, unsigned flags, char **s)
{
	*s = NULL;
	return status_of(curl_url_get(u, what, s, flags));
}

static bool
ascii(const char *s, size_t n)
{
	while (n > 0 && (unsigned char)s[n - 1] < 0x80)
		n--;
	return n == 0;
}

/* As http_url(); Q_OK: *u is the parsed URL, which the caller cleans up, as he may if it is not Q_OK. */
static int
parse(CURLU **u, const char *url, bool insecure, const char **why)
{
	size_t skip = strncasecmp(url, "https://", 8) == 0 ? 8 : strncasecmp(url, "http://", 7) == 0 ? 7 : 0;
	const unsigned char *p;
	char *host;
	int rc;

	*u = NULL;
	for (p = (const unsigned char *)url; *p > ' ' && *p != 0x7f && *p != '\\'; p++)
		;
	if (*p != '\0')
		*why = "a URL has no blanks, control bytes and backslashes";
	else if (skip == 0)
		*why = "not a URL: write https://HOST/PATH";
	else if (skip == 7 && !insecure)
		*why = "http is not allowed: everybody on the way could read and change it; if that is meant: insecure_http of qpoll(5), --insecure-http of qcall(1)";
	else if (memchr(url + skip, '@', strcspn(url + skip, "/?#")) != NULL)
		*why = "no user name or password in a URL";
	else if (strchr("/?#", url[skip]) != NULL)	/* libcurl overlooks a slash too many */
		*why = "no host in the URL";
	else if (!ascii(url + skip, strcspn(url + skip, "/?#")))	/* libcurl can translate only what the locale can write */
		*why = "a host is written in ASCII: xn--...";
	else {
		rc = (*u = curl_url()) == NULL ? Q_TEMP : status_of(curl_url_set(*u, CURLUPART_URL, url, CURLU_DISALLOW_USER));
		if (rc == Q_OK && (rc = part(*u, CURLUPART_HOST, 0, &host)) == Q_OK) {
			rc = *host != '\0' ? Q_OK : Q_NO;
			curl_free(host);
		}
		*why = rc == Q_TEMP ? "out of memory" : rc == Q_NO ? "not a URL: its host or port cannot be" : NULL;
		return rc;
	}
	return Q_NO;
}

int
http_url(const char *url, bool insecure, const char **why)
{
	CURLU *u;
	int rc = parse(&u, url, insecure, why);

	curl_url_cleanup(u);
	return rc;
}

/* Two URLs that may be asked and have the same origin; the caller cleans both up in any case. */
static int
parse_two(CURLU **a, CURLU **b, const char *one, const char *other)
{
	static const CURLUPart ORIGIN[] = { CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_ZONEID, CURLUPART_PORT };
	const char *why;
	char *x, *y;
	int rc, rx, ry;

	*b = NULL;
	if ((rc = parse(a, one, true, &why)) == Q_OK)
		rc = parse(b, other, true, &why);
	for (size_t i = 0; rc == Q_OK && i < sizeof ORIGIN / sizeof *ORIGIN; i++) {
		rx = part(*a, ORIGIN[i], CURLU_DEFAULT_PORT, &x);
		ry = part(*b, ORIGIN[i], CURLU_DEFAULT_PORT, &y);
		if (rx == Q_TEMP || ry == Q_TEMP)
			rc = Q_TEMP;
		else if (rx != ry || (rx == Q_OK && strcasecmp(x, y) != 0))
			rc = Q_NO;
		curl_free(x);
		curl_free(y);
	}
	return rc;
}

int
http_same_origin(const char *a, const char *b)
{
	CURLU *x, *y;
	int rc = parse_two(&x, &y, a, b);

	curl_url_cleanup(x);
	curl_url_cleanup(y);
	return rc;
}

static int
hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Undo percent-encoding in place.  False: a NUL, which no path has. */
static bool
decode(char *s, bool *changed)
{
	char *to = s;
	int c;

	for (*changed = false; *s != '\0'; s++)
		if (*s == '%' && hex(s[1]) != -1 && hex(s[2]) != -1) {
			if ((c = hex(s[1]) << 4 | hex(s[2])) == 0)
				return false;
			*to++ = (char)c;
			s += 2;
			*changed = true;
		} else
			*to++ = *s;
	*to = '\0';
	return true;
}

/* Has it a segment that some server reads as a way up?  "..;x" is one for those that know path parameters, "..?" for those that parse again. */
static bool
climbs(const char *path)
{
	size_t n, dots;

	for (;; path += n + 1) {
		n = strcspn(path, "/\\");
		dots = strspn(path, ".");
		if (dots > 0 && dots <= 2 && (dots == n || strchr(";?# ", path[dots]) != NULL || iscntrl((unsigned char)path[dots])))
			return true;
		if (path[n] == '\0')
			return false;
	}
}

/* Is path, decoded, at or below the decoded prefix, whoever reads it? */
static bool
below(char *path, char *prefix)
{
	size_t n;
	bool changed;

	if (!decode(prefix, &changed) || climbs(prefix) || !decode(path, &changed))
		return false;
	n = strlen(prefix);
	while (n > 0 && prefix[n - 1] == '/')
		n--;
	if (strncmp(path, prefix, n) != 0 || (path[n] != '\0' && path[n] != '/'))
		return false;
	for (int i = 0; changed; i++)		/* a server behind a proxy may decode once more */
		if (climbs(path) || !text_utf8(path, strlen(path)) || i > 4 || !decode(path, &changed))
			return false;
	return !climbs(path);
}

int
http_within(const char *url, const char *prefix)
{
	CURLU *u, *p;
	char *path = NULL, *top = NULL;
	int rc = parse_two(&u, &p, url, prefix);

	if (rc == Q_OK && strpbrk(prefix, "?#") != NULL)
		rc = Q_NO;
	if (rc == Q_OK && (rc = part(u, CURLUPART_PATH, 0, &path)) == Q_OK &&	/* without the dots that are not encoded, as it is sent */
	    (rc = part(p, CURLUPART_PATH, 0, &top)) == Q_OK)
		rc = below(path, top) ? Q_OK : Q_NO;
	curl_free(path);
	curl_free(top);
	curl_url_cleanup(u);
	curl_url_cleanup(p);
	return rc;
}

/* Copy text into buf, cut between characters. */
static char *
fit(char *buf, size_t size, const char *text)
{
	size_t n = strlen(text);

	if (n >= size)
		for (n = size - 1; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
			;
	memcpy(buf, text, n);
	buf[n] = '\0';
	return buf;
}

char *
http_shown(char *buf, size_t size, const char *url)
{
	CURLU *u;
	const char *why;
	char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL, *raw, *text = NULL;
	size_t len;
	FILE *f;

	if (parse(&u, url, true, &why) == Q_OK) {
		part(u, CURLUPART_SCHEME, 0, &scheme);
		part(u, CURLUPART_HOST, 0, &host);
		part(u, CURLUPART_PORT, 0, &port);
		part(u, CURLUPART_PATH, 0, &path);
	}
	fit(buf, size, "(no URL)");
	if (scheme != NULL && host != NULL && path != NULL &&
	    (raw = curl_maprintf("%s://%s%s%s%s", scheme, host, port != NULL ? ":" : "", port != NULL ? port : "", path)) != NULL) {
		if ((f = text_memory(&text, &len)) != NULL) {
			text_show(f, raw, strlen(raw), SHOWN_MAX);
			if (fclose(f) == 0)
				fit(buf, size, text);
			free(text);
		}
		curl_free(raw);
	}
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_free(path);
	curl_url_cleanup(u);
	return buf;
}

/* RFC 3986 5.2.4: the path of a URL, which begins at s, in place. */
static void
remove_dots(char *s)
{
	char *from = s, *to = s, *end = s + strcspn(s, "?#");
	size_t n;

	while (from < end) {			/* at a slash */
		n = 1 + strcspn(from + 1, "/?#");
		if ((n == 2 && from[1] == '.') || (n == 3 && from[1] == '.' && from[2] == '.')) {
			if (n == 3)
				while (to > s && *--to != '/')
					;
			if (from + n == end)
				*to++ = '/';
		} else {
			memmove(to, from, n);
			to += n;
		}
		from += n;
	}
	memmove(to, end, strlen(end) + 1);
}

int
http_resolve(const char *base, const char *ref, char **resolved)
{
	size_t head = strcspn(base, ":"), net, path, dir, scheme = strspn(ref, "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-."), n = strcspn(ref, "?#");
	const char *why = NULL;
	char *url;
	int rc;

	*resolved = NULL;
	if ((rc = http_url(base, true, &why)) != Q_OK)
		return rc;
	net = head + 3 + strcspn(base + head + 3, "/?#");	/* the end of the host */
	path = net + strcspn(base + net, "?#");
	for (dir = path; dir > net && base[dir - 1] != '/'; dir--)
		;
	if ((url = malloc(strlen(base) + strlen(ref) + 2)) == NULL)
		return Q_TEMP;
	if (ref[scheme] == ':' && scheme > 0) {			/* a URL */
		strcpy(url, ref);
		n = 0;
	} else if (ref[0] == '/' && ref[1] == '/')
		sprintf(url, "%.*s:%s", (int)head, base, ref);
	else if (ref[0] == '/')
		sprintf(url, "%.*s%s", (int)net, base, ref);
	else if (n > 0)
		sprintf(url, "%.*s%s%s", (int)dir, base, dir == net ? "/" : "", ref);
	else if (ref[0] == '?')
		sprintf(url, "%.*s%s", (int)path, base, ref);
	else
		sprintf(url, "%.*s%s", (int)(path + strcspn(base + path, "#")), base, ref);
	if (n > 0) {				/* a path of its own */
		path = head + 3;
		path += strcspn(url + path, "/?#");
		remove_dots(url + path);
	}
	if ((rc = http_url(url, true, &why)) == Q_OK)
		*resolved = url;
	else
		free(url);
	return rc;
}

char *
http_escape(const char *s, size_t n)
{
	char *text = malloc(3 * n + 1), *to = text;

	for (size_t i = 0; text != NULL && i < n; i++)
		if (s[i] != '\0' && strchr("-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", s[i]) != NULL)
			*to++ = s[i];
		else
			to += sprintf(to, "%%%02X", (unsigned)(unsigned char)s[i]);
	if (text != NULL)
		*to = '\0';
	return text;
}

/* ---- times in headers ---------------------------------------------------- */

static const char *const MONTHS[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", NULL };
static const char *const DAYS[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", NULL };
static const char *const LONG_DAYS[] = { "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", NULL };

/* Which of the names begins at *s, which moves behind it; -1: none. */
static int
one_of(const char **s, const char *const *list)
{
	for (int i = 0; list[i] != NULL; i++)
		if (strncasecmp(*s, list[i], strlen(list[i])) == 0) {
			*s += strlen(list[i]);
			return i;
		}
	return -1;
}

/* n digits at *s; -1: there are not so many. */
static int
digits(const char **s, int n)
{
	int v = 0;

	for (; n > 0; n--, (*s)++) {
		if (**s < '0' || **s > '9')
			return -1;
		v = v * 10 + (**s - '0');
	}
	return v;
}

/* One form of a date: a, A days of the week, d, e day (e: blank-padded), b month, y, Y year (y: two digits), h time; the rest stands for itself. */
static bool
date_form(const char *s, const char *form, int64_t now, int64_t *ms)
{
	struct tm t = { 0 }, want;
	time_t seconds, year_now = (time_t)(now / 1000);
	int got = 0, leap;

	for (; *form != '\0'; form++) {
		switch (*form) {
		case 'a': got = one_of(&s, DAYS); break;
		case 'A': got = one_of(&s, LONG_DAYS); break;
		case 'b': got = t.tm_mon = one_of(&s, MONTHS); break;
		case 'e':
			if (*s == ' ') {
				s++;
				got = t.tm_mday = digits(&s, 1);
				break;
			}
			/* FALLTHROUGH */
		case 'd': got = t.tm_mday = digits(&s, 2); break;
		case 'Y': got = digits(&s, 4); t.tm_year = got - 1900; break;
		case 'y':		/* RFC 9110 5.6.7: more than 50 years ahead is of the last century */
			got = digits(&s, 2);
			gmtime_r(&year_now, &want);
			t.tm_year = want.tm_year / 100 * 100 + got;
			if (t.tm_year > want.tm_year + 50)
				t.tm_year -= 100;
			break;
		case 'h':
			t.tm_hour = digits(&s, 2);
			if (*s++ != ':')
				return false;
			t.tm_min = digits(&s, 2);
			if (*s++ != ':')
				return false;
			got = t.tm_sec = digits(&s, 2);
			if (t.tm_hour < 0 || t.tm_hour > 23 || t.tm_min < 0 || t.tm_min > 59 || t.tm_sec > 60)
				return false;
			break;
		default:
			if (*s++ != *form)
				return false;
			continue;
		}
		if (got == -1)
			return false;
	}
	leap = t.tm_sec == 60;
	t.tm_sec -= leap;
	want = t;
	seconds = timegm(&t) + leap;
	if (*s != '\0' || t.tm_mon != want.tm_mon || t.tm_mday != want.tm_mday)
		return false;
	*ms = (int64_t)seconds * 1000;
	return true;
}

/* A date of RFC 9110, in one of its three forms. */
static bool
http_date(const char *s, int64_t now, int64_t *ms)
{
	return date_form(s, "a, d b Y h GMT", now, ms) || date_form(s, "A, d-b-y h GMT", now, ms) || date_form(s, "a b e h Y", now, ms);
}

/* Digits, perhaps with a fraction, rounded up.  The rest of a number beyond 10^17 does not count. */
static bool
number(const char *s, int64_t *n)
{
	size_t whole = strspn(s, "0123456789"), fraction = s[whole] == '.' ? strspn(s + whole + 1, "0123456789") : 0;
	int64_t v = 0;

	if (whole == 0 || s[whole + (fraction > 0 ? fraction + 1 : 0)] != '\0')
		return false;
	for (size_t i = 0; i < whole; i++)
		if (v < INT64_C(100000000000000000))
			v = v * 10 + (s[i] - '0');
	*n = v + (fraction > 0 && strspn(s + whole + 1, "0") < fraction);
	return true;
}

/* From base to then, in whole seconds, rounded up. */
static int64_t
until(int64_t then, int64_t base)
{
	int64_t ms = then > base ? (then - base + 999) / 1000 * 1000 : 0;

	return ms < WAIT_MAX ? ms : WAIT_MAX;
}

bool
http_retry_after(const char *value, int64_t date_ms, int64_t now, int64_t *wait_ms)
{
	int64_t n;

	if (number(value, &n))		/* first: 8 digits could be read as a date */
		*wait_ms = n < WAIT_MAX / 1000 ? n * 1000 : WAIT_MAX;
	else if (http_date(value, now, &n))
		*wait_ms = until(n, date_ms != -1 ? date_ms : now);
	else
		return false;
	return true;
}

bool
http_reset(const char *value, int64_t date_ms, int64_t now, int64_t *wait_ms)
{
	int64_t base = date_ms != -1 ? date_ms : now, n;
	const char *why;

	if (number(value, &n)) {
		if (n >= INT64_C(100000000000000))
			return false;
		if (n < 1000000000)
			*wait_ms = n < WAIT_MAX / 1000 ? n * 1000 : WAIT_MAX;
		else
			*wait_ms = until(n < INT64_C(100000000000) ? n * 1000 : n, base);
		return true;
	}
	if (strspn(value, "0123456789") != 4 || value[4] != '-' || !when_instant(value, NULL, now, &n, &why))
		return false;
	*wait_ms = until(n, base);
	return true;
}

/* ---- the headers of an answer -------------------------------------------- */

const char *
http_header(const struct http *h, const char *name, int nth)
{
	const char *p = h->headers, *end = p + h->headers_len, *value;

	for (; p < end; p = value + strlen(value) + 1) {
		value = p + strlen(p) + 1;
		if (strcasecmp(p, name) == 0 && nth-- == 0)
			return value;
	}
	return NULL;
}

static const char *
after_blanks(const char *p)
{
	return p + strspn(p, " \t");
}

/* Does the word stand in a list with blanks between? */
static bool
in_list(const char *p, size_t n, const char *word)
{
	size_t len = strlen(word), i, k;

	for (i = 0; i < n; i += k + 1) {
		for (k = 0; i + k < n && p[i + k] != ' ' && p[i + k] != '\t'; k++)
			;
		if (k == len && strncasecmp(p + i, word, len) == 0)
			return true;
	}
	return false;
}

/*
 * One parameter, at a semicolon: its name and value into buf, unquoted; returns what follows.  NULL: there is none.
 */
static const char *
parameter(const char *p, char *buf, size_t size, const char **name, const char **value)
{
	char *to = buf, *end = buf + size - 1;
	size_t n;

	if (*(p = after_blanks(p)) != ';')
		return NULL;
	p = after_blanks(p + 1);
	n = strspn(p, TOKEN);
	if (n + 2 > size)
		return NULL;
	memcpy(to, p, n);
	*name = buf;
	to += n;
	*to++ = '\0';
	*value = to;
	p = after_blanks(p + n);
	if (*p == '=') {
		p = after_blanks(p + 1);
		if (*p == '"') {
			for (p++; *p != '"'; p++) {
				if (*p == '\\')
					p++;
				if (*p == '\0')
					return NULL;
				if (to < end)
					*to++ = *p;
			}
			p++;
		} else
			for (; *p != '\0' && strchr(",; \t", *p) == NULL; p++)
				if (to < end)
					*to++ = *p;
	}
	*to = '\0';
	return p;
}

/* The next item of a list behind a comma that is not quoted; NULL: no more. */
static const char *
next_item(const char *p)
{
	bool quoted = false;

	for (; *p != '\0' && (quoted || *p != ','); p++)
		if (*p == '"')
			quoted = !quoted;
		else if (*p == '\\' && quoted && p[1] != '\0')
			p++;
	return *p == ',' ? p + 1 : NULL;
}

/* The target in this header's value, as it stands there; the caller frees.  Q_NO: none; Q_TEMP: out of memory. */
static int
link_target(const char *p, const char *rel, char **found_target)
{
	char buf[1024];
	const char *name, *value, *target, *q;
	size_t len;
	bool met, found;

	for (; p != NULL; p = next_item(p)) {
		p += strspn(p, " \t,");
		if (*p != '<')
			continue;
		target = p + 1;
		len = strcspn(target, ">");
		if (target[len] == '\0')
			return Q_NO;
		p = target + len + 1;
		met = found = false;
		for (; (q = parameter(p, buf, sizeof buf, &name, &value)) != NULL; p = q)
			if (strcasecmp(name, "anchor") == 0) {	/* what it links is not this answer */
				met = true;
				found = false;
			} else if (strcasecmp(name, "rel") == 0 && !met) {	/* later ones do not count: RFC 8288 3.3 */
				met = true;
				found = in_list(value, strlen(value), rel);
			}
		if (found)
			return (*found_target = strndup(target, len)) != NULL ? Q_OK : Q_TEMP;
	}
	return Q_NO;
}

int
http_link(const struct http *h, const char *rel, char **url)
{
	const char *value;
	char *target = NULL;
	int rc = Q_NO;

	*url = NULL;
	for (int i = 0; rc == Q_NO && (value = http_header(h, "Link", i)) != NULL; i++)
		rc = link_target(value, rel, &target);
	if (rc != Q_OK)
		return rc;
	if ((rc = http_resolve(h->url, target, url)) == Q_NO) {
		*url = target;		/* no end of the list: the caller is to see it */
		return Q_OK;
	}
	free(target);
	return rc;
}

/* What one source says: how many requests are left, and when there are more. */
struct quota { int64_t remaining, wait_ms; };

static void
least(struct quota *q, int64_t remaining, int64_t wait_ms)
{
	bool less = remaining != -1 && (q->remaining == -1 || remaining < q->remaining);

	if (less || (remaining == q->remaining && wait_ms > q->wait_ms)) {
		q->remaining = remaining;
		q->wait_ms = wait_ms;
	}
}

/* RateLimit: "name";r=10;t=30, "other";r=2;t=600 */
static void
rate_limit(const char *p, struct quota *quota)
{
	char buf[256];
	const char *name, *value, *q;
	int64_t r, t;

	for (; p != NULL; p = next_item(p)) {
		r = t = -1;
		p = after_blanks(p);
		p += *p == '"' ? 1 + strcspn(p + 1, "\"") : strcspn(p, ",;");
		p += *p == '"';
		for (; (q = parameter(p, buf, sizeof buf, &name, &value)) != NULL; p = q)
			if (strcmp(name, "r") == 0 && !text_int(value, 0, INT64_MAX, &r))
				r = -1;
			else if (strcmp(name, "t") == 0 && !text_int(value, 0, INT64_MAX, &t))
				t = -1;
		if (r != -1)
			least(quota, r, t == -1 ? -1 : t < WAIT_MAX / 1000 ? t * 1000 : WAIT_MAX);
	}
}

static struct quota
quotas(const struct http *h, int64_t date_ms, int64_t now)
{
	static const char *const families[] = { "X-RateLimit", "X-Rate-Limit", "RateLimit", "X-Sentry-Rate-Limit" };
	struct quota q = { -1, -1 };
	const char *value, *age = http_header(h, "Age", 0);
	char name[64];
	int64_t remaining, wait;

	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		remaining = wait = -1;
		snprintf(name, sizeof name, "%s-Remaining", families[i]);
		if ((value = http_header(h, name, 0)) != NULL && *value == '-')
			remaining = 0;
		else if (value != NULL && !text_int(value, 0, INT64_MAX, &remaining))
			remaining = -1;
		snprintf(name, sizeof name, "%s-Reset", families[i]);
		if ((value = http_header(h, name, 0)) != NULL && !http_reset(value, date_ms, now, &wait))
			wait = -1;
		least(&q, remaining, wait);
	}
	if (age == NULL || strspn(age, "0") == strlen(age))	/* else it is what a cache was told */
		for (int i = 0; (value = http_header(h, "RateLimit", i)) != NULL; i++)
			rate_limit(value, &q);
	return q;
}

/* ---- one request --------------------------------------------------------- */

static size_t
take_header(char *line, size_t size, size_t n, void *arg)
{
	struct http *h = arg;
	size_t len = size * n, name, i, k;
	const char *colon;
	char *to = h->headers + h->headers_len;

	while (len > 0 && strchr("\r\n \t", line[len - 1]) != NULL)
		len--;
	if (len > 5 && memcmp(line, "HTTP/", 5) == 0 && (h->status == 0 || (h->headed && h->status < 200))) {
		h->headed = false;
		h->headers_len = 0;
		for (i = 5; i < len && line[i] != ' '; i++)
			;
		h->status = i + 3 < len ? atoi(line + i) : 1;
		return size * n;
	}
	if (len == 0)
		h->headed = true;
	if (h->headed || memchr(line, '\0', len) != NULL)	/* which would end the text; newer libcurls refuse it themselves */
		return size * n;
	if (h->headers_len + len + 2 > HEADERS_MAX) {
		h->broke = TOO_MANY;
		return 0;
	}
	if ((*line == ' ' || *line == '\t') && h->headers_len > 0) {	/* goes on from the line before */
		for (i = 0; line[i] == ' ' || line[i] == '\t'; i++)
			;
		to[-1] = ' ';
		memcpy(to, line + i, len - i);
		to[len - i] = '\0';
		h->headers_len += len - i + 1;
	} else if ((colon = memchr(line, ':', len)) != NULL) {
		name = k = (size_t)(colon - line);
		for (i = name + 1; i < len && (line[i] == ' ' || line[i] == '\t'); i++)
			;
		while (k > 0 && (line[k - 1] == ' ' || line[k - 1] == '\t'))
			k--;
		memcpy(to, line, k);
		to[k] = '\0';
		memcpy(to + k + 1, line + i, len - i);
		to[k + 1 + len - i] = '\0';
		h->headers_len += k + 1 + len - i + 1;
	}
	return size * n;
}

static size_t
take_body(char *p, size_t size, size_t n, void *arg)
{
	struct http *h = arg;
	size_t len = size * n, cap = h->cap > 0 ? h->cap : 16384;
	char *grown;

	if (len > h->max - h->len) {
		h->broke = TOO_LONG;
		len = h->max - h->len;
	}
	while (cap < h->len + len + 1)
		cap *= 2;
	if (cap > h->cap) {
		if ((grown = realloc(h->body, cap)) == NULL) {
			h->broke = NO_MEMORY;
			return 0;
		}
		h->body = grown;
		h->cap = cap;
	}
	memcpy(h->body + h->len, p, len);
	h->len += len;
	return h->broke == GOOD ? size * n : 0;
}

/* Replace a secret by stars wherever it stands in text; a server may quote what it was sent. */
static void
hide(char *text, size_t *n, const char *secret)
{
	size_t len = strlen(secret), i;

	for (i = 0; len >= 4 && i + len <= *n; i++)
		if (memcmp(text + i, secret, len) == 0) {
			memmove(text + i + 3, text + i + len, *n - i - len);
			memcpy(text + i, "***", 3);
			*n -= len - 3;
		}
}

size_t
http_hide(char *text, size_t n, const char *secret)
{
	const char *word = strchr(secret, ' ');

	hide(text, &n, secret);
	if (word != NULL)		/* without "Bearer" */
		hide(text, &n, after_blanks(word));
	return n;
}

/* Without what the server was sent in confidence; what was it may be cut off at the end of text, and is not found there. */
static void
hide_secrets(const struct http_ask *ask, char *text, size_t *n)
{
	for (int i = 0; i < ask->nheaders; i++)
		if (ask->headers[i].secret)
			*n = http_hide(text, *n, ask->headers[i].value);
	if (ask->secret != NULL)
		*n = http_hide(text, *n, ask->secret);
}

/* The first bytes of a text for people, on one line. */
static void
excerpt(FILE *f, const struct http_ask *ask, const char *p, size_t len)
{
	enum { MORE = 8192 };		/* a secret that is cut off could not be found */
	char *text = malloc(MORE + 1);
	size_t n = len < MORE ? len : MORE, to = 0;

	if (text == NULL)
		return;
	memcpy(text, p, n);
	hide_secrets(ask, text, &n);
	for (size_t i = 0; i < n; i++) {
		bool blank = strchr(" \t\r\n", text[i]) != NULL && text[i] != '\0';

		if (!blank)
			text[to++] = text[i];
		else if (to > 0 && text[to - 1] != ' ')
			text[to++] = ' ';
	}
	while (to > 0 && text[to - 1] == ' ')
		to--;
	text_show(f, text, to, SHOWN_MAX);
	free(text);
}

/* http_shown() of a URL that a server may have made of a secret. */
static char *
shown_url(const struct http_ask *ask, char *buf, size_t size, const char *url)
{
	char *copy = strdup(url != NULL ? url : "");
	size_t n = copy != NULL ? strlen(copy) : 0;

	if (copy != NULL) {
		hide_secrets(ask, copy, &n);
		copy[n] = '\0';
	}
	http_shown(buf, size, copy != NULL ? copy : "");
	free(copy);
	return buf;
}

static void why(struct http *, const struct http_ask *, struct http_answer *, const char *, ...)
    __attribute__((format(printf, 4, 5)));

/* Fill a->why: where, the status if there is one, the cause or else what the body says. */
static void
why(struct http *h, const struct http_ask *ask, struct http_answer *a, const char *fmt, ...)
{
	char shown[4 * SHOWN_MAX], *text = NULL, *cause = NULL;
	size_t len;
	FILE *f = text_memory(&text, &len);
	va_list ap;

	fit(a->why, sizeof a->why, "out of memory");
	if (f == NULL)
		return;
	fputs(shown_url(ask, shown, sizeof shown, h->url != NULL ? h->url : ask->url), f);
	if (a->status != 0)
		fprintf(f, ": status %d", a->status);
	if (fmt != NULL) {
		va_start(ap, fmt);
		cause = curl_mvaprintf(fmt, ap);
		va_end(ap);
	}
	if (cause != NULL || h->len > 0) {
		fputs(": ", f);
		excerpt(f, ask, cause != NULL ? cause : h->body, cause != NULL ? strlen(cause) : h->len);
	}
	curl_free(cause);
	if (fclose(f) == 0)
		fit(a->why, sizeof a->why, text);
	free(text);
}

static bool
append(struct curl_slist **list, const char *line)
{
	struct curl_slist *more = curl_slist_append(*list, line);

	if (more != NULL)
		*list = more;
	return more != NULL;
}

/* The headers for libcurl: the caller's, and none that it would add on its own.  False: *fault, or out of memory if NULL. */
static bool
set_headers(const struct http_ask *ask, struct curl_slist **list, const char **fault)
{
	bool type = false, expect = false, good = true;

	for (int i = 0; i < ask->nheaders && good; i++) {
		const char *name = ask->headers[i].name, *value = ask->headers[i].value;
		char *line;

		*fault = "a header's name has other bytes than letters, digits and -";
		if (*name == '\0' || strspn(name, TOKEN) != strlen(name))
			return false;
		*fault = "a header's value has a control byte";
		for (const char *p = value; *p != '\0'; p++)
			if (((unsigned char)*p < ' ' && *p != '\t') || *p == 0x7f)
				return false;
		*fault = NULL;
		type |= strcasecmp(name, "Content-Type") == 0;
		expect |= strcasecmp(name, "Expect") == 0;
		value += strspn(value, " \t");
		line = curl_maprintf(*value == '\0' ? "%s;%s" : "%s: %s", name, value);	/* "NAME;": sent, and empty */
		good = line != NULL && append(list, line);
		curl_free(line);
	}
	return good && (type || append(list, "Content-Type:")) && (expect || append(list, "Expect:"));
}

static int
stop(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct http_ask *ask = arg;

	(void)a, (void)b, (void)c, (void)d;
	return ask->stopped();
}

static void
set_options(struct http *h, const struct http_ask *ask, const char *method, struct curl_slist *list, int64_t left_ms)
{
	CURL *c = h->curl;
	const char *ca = getenv("SSL_CERT_FILE");	/* which the tools of a host with a CA of its own look at; libcurl does not */
	bool head = strcmp(method, "HEAD") == 0, sends = !head &&
	    (ask->body != NULL || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0);

	curl_easy_reset(c);
	curl_easy_setopt(c, CURLOPT_URL, h->url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, ask->insecure ? "https,http" : "https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
	curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_ACCEPT_ENCODING, "");
	curl_easy_setopt(c, CURLOPT_USERAGENT, "q/" Q_VERSION);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)STALL_S);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)left_ms);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, h->error);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, h);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, h);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, list);
	if (ca != NULL && *ca != '\0')
		curl_easy_setopt(c, CURLOPT_CAINFO, ca);
	if (ask->stopped != NULL) {
		curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
		curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, stop);
		curl_easy_setopt(c, CURLOPT_XFERINFODATA, (void *)ask);
	}
	if (sends) {
		curl_easy_setopt(c, CURLOPT_POST, 1L);
		curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(ask->body != NULL ? ask->len : 0));
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, ask->body != NULL ? ask->body : "");
	}
	if (head)
		curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
	else
		curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method);
}

/* What a status means by itself; rules of the house: RFC 9110, and what servers do with 403, 52x and 529. */
static enum http_kind
meaning(int status, bool limited)
{
	switch (status) {
	case 304: return HTTP_SAME;
	case 401: return HTTP_DENIED;
	case 403: return limited ? HTTP_LIMITED : HTTP_DENIED;
	case 429: return HTTP_LIMITED;
	case 408: case 425: case 500: case 502: case 503: case 504:
	case 520: case 521: case 522: case 523: case 524: case 529:
		return HTTP_LATER;
	}
	return status >= 200 && status <= 299 ? HTTP_OK : HTTP_REFUSED;
}

/* Can the same request fare better another time? */
static bool
passing(CURLcode rc)
{
	switch (rc) {
	case CURLE_UNSUPPORTED_PROTOCOL: case CURLE_URL_MALFORMAT: case CURLE_NOT_BUILT_IN: case CURLE_BAD_FUNCTION_ARGUMENT:
	case CURLE_UNKNOWN_OPTION: case CURLE_LOGIN_DENIED:
	case CURLE_PEER_FAILED_VERIFICATION: case CURLE_SSL_CERTPROBLEM: case CURLE_SSL_CIPHER: case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CRL_BADFILE: case CURLE_SSL_ISSUER_ERROR: case CURLE_SSL_INVALIDCERTSTATUS: case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
		return false;
	default:
		return true;
	}
}

/* Read what came into *a. */
static void
judge(struct http *h, const struct http_ask *ask, CURLcode rc, struct http_answer *a)
{
	int64_t now = when_now(), wait;
	const char *value = http_header(h, "Date", 0), *cause = *h->error != '\0' ? h->error : curl_easy_strerror(rc);
	struct quota q;
	char *target;

	if (strncmp(cause, "Unsupported proxy", 17) == 0)	/* libcurl quotes it, with its password */
		cause = "the proxy that the environment names cannot be used";

	a->status = h->headed ? h->status : 0;
	if (value == NULL || !http_date(value, now, &a->date_ms))
		a->date_ms = -1;
	q = quotas(h, a->date_ms, now);
	a->remaining = q.remaining;
	a->wait_ms = -1;
	for (int i = 0; (value = http_header(h, "Retry-After", i)) != NULL; i++)
		if (http_retry_after(value, a->date_ms, now, &wait) && wait > a->wait_ms)
			a->wait_ms = wait;
	a->kind = a->status == 0 ? HTTP_LATER : meaning(a->status, a->wait_ms != -1 || q.remaining == 0);
	if (a->kind == HTTP_LIMITED && a->wait_ms == -1)
		a->wait_ms = q.wait_ms;

	if (rc == CURLE_OK && a->status >= 300 && a->status <= 399 && a->status != 304 && (value = http_header(h, "Location", 0)) != NULL) {
		char shown[4 * SHOWN_MAX];

		http_resolve(h->url, value, &target);
		why(h, ask, a, "redirects to %s", shown_url(ask, shown, sizeof shown, target));
		free(target);
	} else if (rc == CURLE_OK) {
		if (a->kind != HTTP_OK && a->kind != HTTP_SAME)
			why(h, ask, a, NULL);
	} else if (h->broke == TOO_LONG) {	/* of an error the first bytes are enough */
		if (a->kind == HTTP_OK) {
			a->kind = HTTP_REFUSED;
			why(h, ask, a, "the answer is longer than %zu bytes", h->max);
		} else
			why(h, ask, a, NULL);
	} else {
		if (h->broke == TOO_MANY || (h->broke == GOOD && a->status == 0 && !passing(rc)))
			a->kind = HTTP_REFUSED;
		else if (a->kind == HTTP_OK || a->kind == HTTP_SAME || a->kind == HTTP_REFUSED)
			a->kind = HTTP_LATER;
		why(h, ask, a, "%s%s", a->status == 0 ? "no answer: " : "not all of the answer came: ",
		    h->broke == TOO_MANY ? "its headers are longer than 256 KiB" : h->broke == NO_MEMORY ? "out of memory" : cause);
	}
}

/* One exchange with h->url, without following. */
static void
exchange(struct http *h, const struct http_ask *ask, const char *method, struct curl_slist *list, int64_t left_ms, struct http_answer *a)
{
	CURLcode rc;

	h->headers_len = h->len = 0;
	h->headed = false;
	h->status = 0;
	h->broke = GOOD;
	h->error[0] = '\0';
	h->max = ask->max_body != 0 ? ask->max_body : HTTP_BODY_MAX;
	set_options(h, ask, method, list, left_ms > 1 ? left_ms : 1);
	rc = curl_easy_perform(h->curl);
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
	if (h->body != NULL)
		h->body[h->len] = '\0';
	judge(h, ask, rc, a);
	a->url = h->url;
	a->body = h->body != NULL ? h->body : "";
	a->len = h->len;
}

static bool
redirected(const struct http *h, int status)
{
	return (status == 301 || status == 302 || status == 303 || status == 307 || status == 308) && http_header(h, "Location", 0) != NULL;
}

static void
no_memory(struct http *h, const struct http_ask *ask, struct http_answer *a)
{
	a->kind = HTTP_LATER;
	why(h, ask, a, "out of memory");
}

/* The secret headers need no other care: each hop has the origin of the first. */
static void
follow(struct http *h, const struct http_ask *ask, const char *method, struct curl_slist *list, int64_t end, struct http_answer *a)
{
	char *target, shown[4 * SHOWN_MAX];
	int same, rc;

	for (int hops = 0; redirected(h, a->status) && a->kind == HTTP_REFUSED; hops++) {
		if (hops == REDIRECTS_MAX) {
			why(h, ask, a, "more than %d redirects", REDIRECTS_MAX);
			return;
		}
		if ((same = http_resolve(h->url, http_header(h, "Location", 0), &target)) == Q_OK)
			same = http_same_origin(target, ask->url);
		rc = same == Q_OK && ask->may != NULL ? ask->may(target, ask->arg) : same;
		if (rc != Q_OK) {
			if (rc == Q_TEMP)
				no_memory(h, ask, a);
			else
				why(h, ask, a, "redirects to %s, %s: not followed", shown_url(ask, shown, sizeof shown, target),
				    same == Q_OK ? "which is not allowed" : "not the same origin");
			free(target);
			return;
		}
		free(h->url);
		h->url = target;
		exchange(h, ask, method, list, end - when_elapsed(), a);
	}
}

void
http_once(struct http *h, const struct http_ask *ask, struct http_answer *a)
{
	const char *method = ask->method != NULL ? ask->method : ask->body != NULL ? "POST" : "GET", *fault = NULL;
	int64_t end = when_elapsed() + (ask->timeout_ms != 0 ? ask->timeout_ms : HTTP_TIMEOUT_MS);
	struct curl_slist *list = NULL;
	int rc;

	*a = (struct http_answer){ .kind = HTTP_REFUSED, .wait_ms = -1, .date_ms = -1, .remaining = -1, .url = ask->url, .body = "" };
	h->headers_len = h->len = 0;
	free(h->url);
	h->url = NULL;
	if ((rc = http_url(ask->url, ask->insecure, &fault)) == Q_NO)
		why(h, ask, a, "%s", fault);
	else if (*method == '\0' || strspn(method, TOKEN) != strlen(method))
		why(h, ask, a, "no method is called that");
	else if (rc == Q_OK && !set_headers(ask, &list, &fault) && fault != NULL)
		why(h, ask, a, "%s", fault);
	else if (rc == Q_OK && fault == NULL && list != NULL && (h->url = strdup(ask->url)) != NULL) {
		exchange(h, ask, method, list, end - when_elapsed(), a);
		if (ask->follow && (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0))
			follow(h, ask, method, list, end, a);
	} else
		no_memory(h, ask, a);
	curl_slist_free_all(list);
}

/* ---- again --------------------------------------------------------------- */

/* A random time up to 1 s, 2 s, 4 s ... 60 s. */
static int64_t
jitter(int tried)
{
	int64_t cap = tried < 6 ? INT64_C(1000) << tried : 60000;
	uint32_t r;

	if (getentropy(&r, sizeof r) == -1)
		r = (uint32_t)when_elapsed() * 2654435761u ^ (uint32_t)getpid();
	return (int64_t)((double)r / 4294967296.0 * (double)(cap + 1));
}

int
http_fetch(struct http *h, const struct http_ask *ask, struct http_budget *b, struct http_answer *a)
{
	int tries = b->tries != 0 ? b->tries : TRIES, rc;
	int64_t most = b->max_wait_ms != 0 ? b->max_wait_ms : FETCH_WAIT_MS, wait;

	b->waited_ms = 0;
	for (int i = 0;; i++) {
		if (b->before != NULL && (rc = b->before(b->arg)) != Q_OK)
			return rc;
		http_once(h, ask, a);
		if (a->kind != HTTP_LATER || i + 1 >= tries)
			return Q_OK;
		wait = a->wait_ms != -1 ? a->wait_ms : jitter(i);
		if (wait > most)
			return Q_OK;
		if (b->sleep != NULL)
			b->sleep(wait, b->arg);
		else
			nanosleep(&(struct timespec){ .tv_sec = (time_t)(wait / 1000), .tv_nsec = (long)(wait % 1000) * 1000000 }, NULL);
		b->waited_ms += wait;
	}
}
