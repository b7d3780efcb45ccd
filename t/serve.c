/*
 * serve.c - an HTTP service for the tests: one table of rows behind every style of paging, and every fault as a switch
 *
 *	serve			prints "PORT PORT2": two origins of 127.0.0.1 with the same rows; ends with its parent
 *	serve [-i] [-H 'Name: value']... URL [BODY]
 *				asks (BODY, or - for standard input: POST) and prints the answer's body, with -i all its bytes
 *
 * GET /items (or POST with a JSON object of the same, also below "variables") takes
 *	since, until	rows with since <= stamp < until, in the stamps' own form
 *	order		asc, desc, any, asc-pages (rising pages, falling inside); what falls together goes by id
 *	limit, offset, page (from 1), after (an id), token (what an answer gave), sync (the same, when there is no token)
 * Any other path answers {"ok":true}.  All but these control requests are counted, logged and subject to the switches:
 *	/_set, /_put	an array of rows, which replace all, or are inserted or updated
 *			{"id", "stamp" ms [now], "version" [old + 1], "more": "\"a\":1.10" [none], "text": all of it instead}
 *	/_del, /_tick	an array of ids; a number of ms by which the stamps' clock goes on
 *	/_mode, /_new	switches, merged into those in force (null: off), or instead of them
 *	/_script	an array of {"at": n [, "to": m], ...}: before the n-th (to the m-th) request from now, "tick", "put", "del"; "mode":
 *			switches for this request alone; "kill": "FILE" of a pid, "when": "after" the answer [before any], "pause" ms before that
 *	/_rows, /_log, /_state	"ID VERSION" a line, by id; a line a request: ms, port, method, target, status, headers, body; counters
 *
 * Switches:
 *	style	link (default), url, token, header (X-Next), page, offset, last, none, sync (tokens of changes; deletions come as rows)
 *	pointer	offset (default), key, none: what pointers hold; always: there is one after the last page, too ("empty": not after an empty one)
 *	shape	the body, JSON in which "{items} {token} {next} {final} {more} {done} {total}" stand for themselves; last: of the last page
 *	link	of the header: "<{next}>; rel=\"next\""; next: a pointer instead of the right one; relative: without the origin
 *	loop	so many pages, then the first again; empty: a page without rows whose pointer leads on; dup: every row twice
 *	stamp	rfc (default), epoch, ms (a number), decimal (text, seconds), day; digits, zone: of rfc; unit: rows have multiples of it;
 *		filter, shown: since and until, or what is printed, cut down to a multiple
 *	order, limit: defaults; most: rows a page; cap: rows a query, beyond it cap_status or, 0, silence;
 *	unsorted, unfiltered: the parameter is ignored; upto: until is inclusive;
 *	tombstones: deleted rows stay, with "deleted":true; number: ids are no strings
 *	etag, modified: validators; same: every conditional request gets 304; void: tokens of changes below it get 410
 *	auth "Name: value" or "query k=v", else 401, or with blind no rows; quota: requests that are let through, {left} in headers, then 429
 *	status, headers, type, body (JSON, or a string verbatim), file (its bytes), pad (blanks behind the body); paths {"/x": {switches}}
 *		in headers and body: {port} {port2} {next} {left} {imf+N} {rfc850+N} {asctime+N} {epoch+N} {ms+N} {iso+N}, in s from the Date
 *	skew	of the Date header, in s; nodate; wait: ms before the answer
 *	gzip	true, or "notrailer"; break: half (of the body), reset (likewise), short and long (wrong length), chunk (no last one), close
 *		(no length), closehalf, drip (wait ms a byte), hang (wait ms, half way), silent (no answer)
 */
#define _GNU_SOURCE
#include <sys/prctl.h>
#include <sys/socket.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "q.h"

struct row { char *id, *more, *text; int64_t stamp, seq, version; bool dead; };
struct text { char *p; size_t len; };

struct ask {				/* a request */
	char *uri, *kill;		/* kill: this pid file when the answer is out */
	bool begun;
	int port;
	int64_t pause;
	struct text body;
	json_t *mode, *args;
	struct MHD_Connection *con;
};

struct page {				/* of the answer */
	struct text items;
	char token[300], next[2000], final[40];	/* "": none */
	bool more;
	int total, status;
};

static struct row **rows;
static size_t nrows;
static const char *sorted;		/* the order in which they lie; NULL: none */
static int64_t now, seq, asked, denied;	/* now: of the stamps */
static json_t *mode, *script, *body_args;
static FILE *logged;
static char *log_text;
static size_t log_len;
static int port[2];
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;	/* one request at a time */

static void
die(const char *what)
{
	perror(what);
	exit(70);
}

static void
nap(int64_t ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* ---- switches ---- */

static bool
on(struct ask *a, const char *name)
{
	json_t *v = json_object_get(a->mode, name);

	return v != NULL && !json_is_false(v) && !json_is_null(v);
}

static const char *
word(struct ask *a, const char *name, const char *otherwise)
{
	json_t *v = json_object_get(a->mode, name);

	return json_is_string(v) ? json_string_value(v) : otherwise;
}

static bool
is(struct ask *a, const char *name, const char *value)
{
	return strcmp(word(a, name, ""), value) == 0;
}

static int64_t
number(struct ask *a, const char *name, int64_t otherwise)
{
	json_t *v = json_object_get(a->mode, name);

	return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

/* ---- rows ---- */

static int
by_stamp(const void *x, const void *y)
{
	const struct row *a = *(struct row *const *)x, *b = *(struct row *const *)y;

	return a->stamp != b->stamp ? (a->stamp > b->stamp) - (a->stamp < b->stamp) : strcmp(a->id, b->id);
}

static int
by_stamp_down(const void *x, const void *y)
{
	return -by_stamp(x, y);
}

static int
by_seq(const void *x, const void *y)
{
	const struct row *a = *(struct row *const *)x, *b = *(struct row *const *)y;

	return (a->seq > b->seq) - (a->seq < b->seq);
}

static unsigned
mixed(const char *s)
{
	unsigned h = 2166136261u;

	while (*s != '\0')
		h = (h ^ (unsigned char)*s++) * 16777619u;
	return h;
}

static int
by_chance(const void *x, const void *y)
{
	const struct row *a = *(struct row *const *)x, *b = *(struct row *const *)y;
	unsigned i = mixed(a->id), j = mixed(b->id);

	return i != j ? (i > j) - (i < j) : strcmp(a->id, b->id);
}

static void
sort(const char *order)
{
	static const struct { const char *name; int (*by)(const void *, const void *); } HOW[] = {
		{ "asc", by_stamp }, { "desc", by_stamp_down }, { "seq", by_seq }, { "any", by_chance },
	};

	for (size_t i = 0; i < sizeof HOW / sizeof *HOW; i++)
		if (strcmp(order, HOW[i].name) == 0 && sorted != HOW[i].name) {
			qsort(rows, nrows, sizeof *rows, HOW[i].by);
			sorted = HOW[i].name;
		}
}

static struct row *
find(const char *id)
{
	for (size_t i = 0; i < nrows; i++)
		if (strcmp(rows[i]->id, id) == 0)
			return rows[i];
	return NULL;
}

static void
put(json_t *list, bool replace)
{
	int64_t unit = json_integer_value(json_object_get(mode, "unit"));
	json_t *v;
	size_t i;

	for (; replace && nrows > 0; free(rows[nrows])) {
		nrows--;
		free(rows[nrows]->id);
		free(rows[nrows]->more);
		free(rows[nrows]->text);
	}
	json_array_foreach(list, i, v) {
		json_t *stamp = json_object_get(v, "stamp"), *version = json_object_get(v, "version");
		const char *id = json_string_value(json_object_get(v, "id"));
		const char *more = json_string_value(json_object_get(v, "more")), *text = json_string_value(json_object_get(v, "text"));
		struct row *r = id == NULL || replace ? NULL : find(id);

		if (r == NULL) {
			if ((nrows & (nrows - 1)) == 0 && (rows = realloc(rows, (nrows ? 2 * nrows : 1) * sizeof *rows)) == NULL)
				die("realloc");
			r = rows[nrows++] = calloc(1, sizeof *r);
			r->id = strdup(id != NULL ? id : "");
		}
		r->stamp = stamp != NULL ? json_integer_value(stamp) : now;
		if (unit > 0)
			r->stamp -= r->stamp % unit;
		r->version = version != NULL ? json_integer_value(version) : r->version + 1;
		r->seq = ++seq;
		r->dead = json_is_true(json_object_get(v, "deleted"));
		free(r->more);
		free(r->text);
		r->more = more != NULL ? strdup(more) : NULL;
		r->text = text != NULL ? strdup(text) : NULL;
	}
	sorted = NULL;
}

static void
del(json_t *list)
{
	json_t *v;
	size_t i;

	json_array_foreach(list, i, v) {
		struct row *r = find(json_string_value(v));

		if (r != NULL) {
			r->dead = true;
			r->seq = ++seq;
			r->stamp = now;
			r->version++;
		}
	}
	sorted = NULL;
}

/* ---- stamps ---- */

static void
print_stamp(FILE *f, struct ask *a, int64_t ms)
{
	const char *as = word(a, "stamp", "rfc"), *zone = word(a, "zone", "Z");
	int64_t shown = number(a, "shown", 1);
	int h = 0, m = 0;
	char buf[40];

	ms -= ms % (shown > 0 ? shown : 1);
	if (strcmp(as, "ms") == 0)
		fprintf(f, "%" PRId64, ms);
	else if (strcmp(as, "epoch") == 0)
		fprintf(f, "%" PRId64, ms / 1000);
	else if (strcmp(as, "decimal") == 0)
		fprintf(f, "\"%" PRId64 ".%06d\"", ms / 1000, (int)(ms % 1000) * 1000);
	else {
		int digits = (int)number(a, "digits", ms % 1000 != 0 ? 3 : 0);

		if (*zone != 'Z' && sscanf(zone + (*zone != '\0'), "%2d%*[:]%2d", &h, &m) < 2 && *zone != '\0')
			sscanf(zone + 1, "%2d%2d", &h, &m);
		time_t t = ms / 1000 + (*zone == '-' ? -60 : 60) * (h * 60 + m);

		strftime(buf, sizeof buf, strcmp(as, "day") == 0 ? "%Y-%m-%d" : "%Y-%m-%dT%H:%M:%S", gmtime(&t));
		fprintf(f, "\"%s", buf);
		if (strcmp(as, "day") != 0) {
			snprintf(buf, sizeof buf, ".%03d000000", (int)(ms % 1000));
			fprintf(f, "%.*s", digits > 0 ? digits + 1 : 0, buf);
			fputs(zone, f);
		}
		putc('"', f);
	}
}

static bool
read_stamp(struct ask *a, const char *s, int64_t *ms)
{
	const char *as = word(a, "stamp", "rfc"), *why;
	int64_t cut = number(a, "filter", 1);
	char *end;

	if (*s < '0' || *s > '9')
		return false;
	if (strcmp(as, "rfc") == 0 || strcmp(as, "day") == 0) {
		if (!when_instant(s, strlen(s) == 10 || is(a, "zone", "") ? "UTC" : NULL, 0, ms, &why))
			return false;
	} else {
		*ms = strtoll(s, &end, 10) * (strcmp(as, "ms") == 0 ? 1 : 1000);
		if (*end == '.')
			*ms += (int64_t)(strtod(end, &end) * 1000 + 0.5);
		if (*end != '\0')
			return false;
	}
	*ms -= *ms % (cut > 0 ? cut : 1);
	return true;
}

/* ---- a page ---- */

static const char *
arg(struct ask *a, const char *name)
{
	const char *s = MHD_lookup_connection_value(a->con, MHD_GET_ARGUMENT_KIND, name);
	json_t *v = json_object_get(a->args, name);

	if (v == NULL)
		v = json_object_get(json_object_get(a->args, "variables"), name);
	if (s != NULL || v == NULL || json_is_null(v))
		return s;
	if (json_is_string(v))
		return json_string_value(v);
	if ((s = json_dumps(v, JSON_ENCODE_ANY)) != NULL)	/* a number, kept with the arguments */
		json_object_set_new(a->args, name, json_string(s));
	free((char *)s);
	return json_string_value(json_object_get(a->args, name));
}

static void
print_row(FILE *f, struct ask *a, const struct row *r)
{
	const char *q = on(a, "number") ? "" : "\"";

	if (r->text != NULL) {
		fputs(r->text, f);
		return;
	}
	fprintf(f, "{\"id\":%s%s%s,\"updated_at\":", q, r->id, q);
	print_stamp(f, a, r->stamp);
	fprintf(f, ",\"version\":%" PRId64 "%s%s%s}", r->version, r->more != NULL ? "," : "", r->more != NULL ? r->more : "",
	    r->dead ? ",\"deleted\":true" : "");
}

/* The URL of this request with another position. */
static void
next_url(struct ask *a, struct page *p, const char *name, const char *value)
{
	static const char *const PLACE[] = { "offset=", "token=", "page=" };
	const char *query = strchrnul(a->uri, '?'), *s;
	size_t n, len;
	FILE *f = fmemopen(p->next, sizeof p->next, "w");

	if (!on(a, "relative"))
		fprintf(f, "http://127.0.0.1:%d", a->port);
	fprintf(f, "%.*s?%s=%s", (int)(query - a->uri), a->uri, name, value);
	for (s = query; *s != '\0'; s += len) {
		len = strcspn(++s, "&");
		for (n = 0; n < 3 && strncmp(s, PLACE[n], strlen(PLACE[n])) != 0; n++)
			;
		if (n == 3)
			fprintf(f, "&%.*s", (int)len, s);
	}
	fclose(f);
}

/* Which rows, and what leads to the next ones.  status 0: as the switches say. */
static void
make_page(struct ask *a, struct page *p, bool blind)
{
	bool sync = is(a, "style", "sync"), changes = false, key = false, unfiltered = on(a, "unfiltered");
	const char *order = arg(a, "order"), *s = arg(a, "token") != NULL ? arg(a, "token") : arg(a, "sync"), *id = "", *after = arg(a, "after");
	int64_t since = INT64_MIN, until = INT64_MAX, limit, offset = 0, place = 0, cap = number(a, "cap", INT64_MAX), loop;
	size_t i, from = 0, first = 0, shown = 0, *hit = NULL;
	char *end = NULL;
	FILE *f = open_memstream(&p->items.p, &p->items.len);

	if (order == NULL || on(a, "unsorted"))
		order = on(a, "unsorted") ? "seq" : word(a, "order", "asc");
	bool desc = strcmp(order, "desc") == 0, pages = strcmp(order, "asc-pages") == 0;
	limit = arg(a, "limit") != NULL ? strtoll(arg(a, "limit"), NULL, 10) : number(a, "limit", 100);
	if (limit > number(a, "most", INT64_MAX))
		limit = number(a, "most", INT64_MAX);
	p->status = 400;		/* until the request has been understood */
	if (limit < 1 || (!unfiltered && ((arg(a, "since") != NULL && !read_stamp(a, arg(a, "since"), &since)) ||
	    (arg(a, "until") != NULL && !read_stamp(a, arg(a, "until"), &until)))))
		goto out;
	sort(sync ? "seq" : pages ? "asc" : order);
	if (s != NULL && *s != '\0') {		/* oOFFSET, kSTAMP.ID, fSEQ (a full walk), qSEQ (changes), each with ~N behind */
		place = strtoll(s + 1, &end, 10);
		if (strchr(sync ? "fq" : "ok", *s) == NULL)
			goto out;
		changes = *s == 'q';
		if (*s == 'o')
			offset = place;
		else if ((key = *s == 'k'))
			id = strndupa(end + 1, strcspn(end + 1, "~"));
		if (sync && place < number(a, "void", 0)) {
			p->status = 410;
			goto out;
		}
	}
	if (arg(a, "offset") != NULL)
		offset = strtoll(arg(a, "offset"), NULL, 10);
	else if (arg(a, "page") != NULL)
		offset = (strtoll(arg(a, "page"), NULL, 10) - 1) * limit;
	if (offset < 0 || (number(a, "cap_status", 400) != 0 && offset + limit > cap)) {
		p->status = (int)number(a, "cap_status", 400);
		goto out;
	}
	if (after != NULL && *after != '\0') {
		struct row *r = find(after);

		if (r == NULL || r->dead)
			goto out;
		key = true;
		place = r->stamp;
		id = r->id;
	}
	p->status = 0;
	if (sorted[0] == 'a' && strcmp(sorted, "asc") == 0)	/* the first one at or after since */
		for (size_t to = nrows; from < to; ) {
			size_t middle = (from + to) / 2;

			if (rows[middle]->stamp < since)
				from = middle + 1;
			else
				to = middle;
		}
	hit = calloc((size_t)limit + 1, sizeof *hit);
	for (i = from; i < nrows && !blind; i++) {
		struct row *r = rows[i], *k = &(struct row){ .id = (char *)id, .stamp = place };
		int64_t n;

		if (r->dead && !on(a, "tombstones") && !changes)
			continue;
		if (r->stamp < since || r->stamp > until || (r->stamp == until && !on(a, "upto")) || (sync && r->seq <= place))
			continue;
		if (key && (strcmp(sorted, "any") == 0 ? by_chance(&r, &k) <= 0 : desc ? by_stamp(&r, &k) >= 0 : by_stamp(&r, &k) <= 0))
			continue;
		n = p->total++ - offset;
		if (p->total > cap)
			break;
		if (n >= 0 && n <= limit)
			hit[first++] = i;
		if (n >= limit && !on(a, "total"))
			break;
	}
	shown = first > (size_t)limit ? (size_t)limit : first;
	p->more = first > shown;
	if (on(a, "empty"))
		p->more = true, shown = 0;
	putc('[', f);
	for (i = 0; i < shown; i++)
		for (int twice = 0; twice < (on(a, "dup") ? 2 : 1); twice++) {
			fputs(i + (size_t)twice > 0 ? "," : "", f);
			print_row(f, a, rows[hit[pages ? shown - 1 - i : i]]);
		}
	putc(']', f);
	struct row *last = shown > 0 ? rows[hit[shown - 1]] : NULL;

	offset += (int64_t)shown;
	if (sync)
		snprintf(p->final, sizeof p->final, "q%" PRId64, p->more ? 0 : last != NULL ? last->seq : place > seq ? place : seq);
	if ((!p->more && !on(a, "always")) || (is(a, "always", "empty") && shown == 0) || is(a, "pointer", "none"))
		goto out;
	if ((loop = number(a, "loop", 0)) > 0)
		offset %= loop * limit;
	if (sync)
		snprintf(p->token, sizeof p->token, "%c%" PRId64, changes || !p->more ? 'q' : 'f', last != NULL ? last->seq : place);
	else if (is(a, "pointer", "key") && last != NULL)
		snprintf(p->token, sizeof p->token, "k%" PRId64 ".%s", last->stamp, last->id);
	else if (is(a, "pointer", "key") && key)
		snprintf(p->token, sizeof p->token, "k%" PRId64 ".%s", place, id);
	else
		snprintf(p->token, sizeof p->token, "o%" PRId64, offset);
	if (on(a, "empty"))		/* the same place, but another token */
		snprintf(p->token + strlen(p->token), 30, "~%" PRId64, asked);
	if (*p->token == 'o' && !on(a, "empty"))
		next_url(a, p, "offset", p->token + 1);
	else
		next_url(a, p, "token", p->token);
out:
	free(hit);
	fclose(f);
}

/* ---- an answer ---- */

static bool
print_time(FILE *f, const char *name, time_t t)
{
	static const char *const DAY[] = { "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday" };
	static const char MONTH[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	struct tm *tm = gmtime(&t);
	size_t len = strcspn(name, "+-");
	char buf[80];

	if (strncmp(name, "imf", len) == 0)
		strftime(buf, sizeof buf, "%a, %d %b %Y %H:%M:%S GMT", tm);
	else if (strncmp(name, "rfc850", len) == 0)
		snprintf(buf, sizeof buf, "%s, %02d-%.3s-%02d %02d:%02d:%02d GMT", DAY[tm->tm_wday], tm->tm_mday, MONTH + 3 * tm->tm_mon,
		    tm->tm_year % 100, tm->tm_hour, tm->tm_min, tm->tm_sec);
	else if (strncmp(name, "asctime", len) == 0)
		strftime(buf, sizeof buf, "%a %b %e %H:%M:%S %Y", tm);
	else if (strncmp(name, "iso", len) == 0)
		strftime(buf, sizeof buf, "%Y-%m-%dT%H:%M:%SZ", tm);
	else if (strncmp(name, "epoch", len) == 0 || strncmp(name, "ms", len) == 0)
		snprintf(buf, sizeof buf, "%lld%s", (long long)t, *name == 'm' ? "000" : "");
	else
		return false;
	fputs(buf, f);
	return true;
}

/* One name in braces; false: none of ours. */
static bool
fill(FILE *f, struct ask *a, const struct page *p, const char *name, bool json)
{
	const char *forced = word(a, "next", NULL);
	const struct { const char *name, *text; } TEXT[] = {
		{ "token", *p->token != '\0' && forced != NULL ? forced : p->token },
		{ "next", *p->next != '\0' && forced != NULL ? forced : p->next }, { "final", p->more ? "" : p->final },
	};
	const struct { const char *name; int64_t n; } INT[] = {
		{ "port", port[0] }, { "port2", port[1] }, { "left", number(a, "quota", 0) }, { "total", p->total },
	};

	for (size_t i = 0; i < sizeof TEXT / sizeof *TEXT; i++)
		if (strcmp(name, TEXT[i].name) == 0) {
			if (json && *TEXT[i].text == '\0')
				fputs("null", f);
			else if (json)
				text_json(f, TEXT[i].text, strlen(TEXT[i].text));
			else
				fputs(TEXT[i].text, f);
			return true;
		}
	for (size_t i = 0; i < sizeof INT / sizeof *INT; i++)
		if (strcmp(name, INT[i].name) == 0)
			return fprintf(f, "%" PRId64, INT[i].n) > 0;
	if (strcmp(name, "items") == 0)
		return fwrite(p->items.p, 1, p->items.len, f) > 0;
	if (strcmp(name, "more") == 0 || strcmp(name, "done") == 0)
		return fputs(p->more == (*name == 'm') ? "true" : "false", f) >= 0;
	return print_time(f, name, when_now() / 1000 + number(a, "skew", 0) + strtoll(name + strcspn(name, "+-"), NULL, 10));
}

/* Text with {names}; in JSON a string that is one name is replaced with its quotes. */
static void
expand(FILE *f, struct ask *a, const struct page *p, const char *s, bool json)
{
	char name[24];
	int n;

	for (; *s != '\0'; s++) {
		bool quoted = json && *s == '"' && s[1] == '{';

		n = 0;
		if ((quoted || *s == '{') && sscanf(s + quoted + 1, "%23[a-z0-9+-]%n", name, &n) == 1 && s[quoted + 1 + n] == '}' &&
		    (!quoted || s[quoted + 2 + n] == '"') && fill(f, a, p, name, quoted))
			s += n + 1 + 2 * quoted;
		else
			putc(*s, f);
	}
}

static char *
expanded(struct ask *a, const struct page *p, const char *s)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	expand(f, a, p, s, false);
	fclose(f);
	return text;
}

static struct text
make_body(struct ask *a, const struct page *p, json_t *shape)
{
	struct text b = { NULL, 0 };
	FILE *f = open_memstream(&b.p, &b.len), *file;
	char *s, buf[65536];
	size_t n;

	if (word(a, "file", NULL) != NULL && (file = fopen(word(a, "file", NULL), "r")) != NULL) {
		while ((n = fread(buf, 1, sizeof buf, file)) > 0)
			fwrite(buf, 1, n, f);
		fclose(file);
	} else if (json_is_string(shape))
		expand(f, a, p, json_string_value(shape), false);
	else {
		expand(f, a, p, s = json_dumps(shape, JSON_COMPACT | JSON_ENCODE_ANY), true);
		free(s);
	}
	fprintf(f, "%*s", (int)number(a, "pad", 0), "");
	fclose(f);
	return b;
}

/* As stored blocks, so that a prefix decodes to a prefix. */
static struct text
zip(struct text b, bool trailer)
{
	struct text z = { NULL, 0 };
	FILE *f = open_memstream(&z.p, &z.len);
	uint32_t crc = ~0u;
	size_t at = 0;

	fwrite("\x1f\x8b\x08\0\0\0\0\0\0\3", 1, 10, f);
	do {
		unsigned n = b.len - at > 1000 ? 1000 : (unsigned)(b.len - at);

		fprintf(f, "%c%c%c%c%c", (int)(at + n == b.len), n & 255, n >> 8, ~n & 255, ~n >> 8 & 255);
		fwrite(b.p + at, 1, n, f);
		at += n;
	} while (at < b.len);
	for (size_t i = 0; i < b.len; i++) {
		crc ^= (unsigned char)b.p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	for (int i = 0; i < 8 && trailer; i++)
		putc((int)((i < 4 ? ~crc : (uint32_t)b.len) >> i % 4 * 8 & 255), f);
	fclose(f);
	free(b.p);
	return z;
}

/* What the library would never send: the bytes go out here, and it only closes. */
static enum MHD_Result
broken(struct ask *a, int status, struct text head, struct text body)
{
	int fd = MHD_get_connection_info(a->con, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	const char *how = word(a, "break", "");
	bool half = strstr(how, "half") != NULL || strcmp(how, "reset") == 0 || strcmp(how, "hang") == 0;
	char *text;
	size_t len, at, send = half ? body.len / 2 : body.len;
	FILE *f = open_memstream(&text, &len);

	fprintf(f, "HTTP/1.1 %d Broken\r\n%.*s", status, (int)head.len, head.p);
	if (strcmp(how, "chunk") == 0)
		fprintf(f, "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", body.len);
	else if (strncmp(how, "close", 5) == 0)
		fprintf(f, "Connection: close\r\n\r\n");
	else
		fprintf(f, "Content-Length: %zu\r\n\r\n", body.len + (strcmp(how, "long") == 0 ? 10 : 0) - (strcmp(how, "short") == 0 ? 10 : 0));
	at = (size_t)ftell(f);
	fwrite(body.p, 1, send, f);
	fputs(strcmp(how, "chunk") == 0 ? "\r\n" : "", f);
	fclose(f);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	if (strcmp(how, "drip") != 0)
		at = len;
	for (size_t done = 0; done < len && strcmp(how, "silent") != 0; done = at++) {
		if (done > 0)
			nap(number(a, "wait", 10));
		if (write(fd, text + done, at - done) < 0)
			break;
	}
	if (strcmp(how, "hang") == 0)
		nap(number(a, "wait", 10));
	if (strcmp(how, "reset") == 0) {
		nap(20);		/* the reset must not overtake the bytes */
		connect(fd, &(struct sockaddr){ .sa_family = AF_UNSPEC }, sizeof(struct sockaddr));
	}
	free(text);
	return MHD_NO;
}

static enum MHD_Result
print_header(void *f, enum MHD_ValueKind kind, const char *name, const char *value)
{
	(void)kind;
	fprintf(f, "\t%s: ", name);
	text_tsv(f, value, strlen(value));
	return MHD_YES;
}

static void
note(struct ask *a, const char *method, int status)
{
	fprintf(logged, "%" PRId64 "\t%d\t%s\t%s\t%d", when_elapsed(), a->port, method, a->uri, status);
	MHD_get_connection_values(a->con, MHD_HEADER_KIND, print_header, logged);
	putc('\t', logged);
	text_tsv(logged, a->body.p != NULL ? a->body.p : "", a->body.len);
	putc('\n', logged);
}

static enum MHD_Result
answer(struct ask *a, const char *method, const char *path)
{
	static const char *const LAST[] = { "last", "shape" };
	struct page p = { .more = false };
	struct text body, head = { NULL, 0 };
	struct MHD_Response *r;
	const char *auth = word(a, "auth", NULL), *name, *same;
	char *s, etag[40], value[300];
	bool items = strcmp(path, "/items") == 0, ok = true, refused = false;
	int status = (int)number(a, "status", 200);
	json_t *shape = NULL, *v;
	FILE *f;

	if (auth != NULL && sscanf(auth, "query %299[^=]", value) == 1) {
		same = arg(a, value);
		ok = same != NULL && strcmp(same, strchrnul(auth, '=') + 1) == 0;
	} else if (auth != NULL) {
		same = MHD_lookup_connection_value(a->con, MHD_HEADER_KIND, strndupa(auth, strcspn(auth, ":")));
		ok = same != NULL && strcmp(same, strchrnul(auth, ':') + 2) == 0;
	}
	if (!ok && ++denied > 0 && !on(a, "blind"))
		status = 401, refused = true;
	if (on(a, "quota")) {
		int64_t left = number(a, "quota", 0);

		if (left == 0)
			status = 429, refused = true;
		else
			json_object_set_new(a->mode, "quota", json_integer(--left)), json_object_set_new(mode, "quota", json_integer(left));
	}
	if (items && (make_page(a, &p, !ok), p.status != 0) && !refused)
		status = p.status;
	snprintf(etag, sizeof etag, "\"v%" PRId64 "\"", seq);
	snprintf(value, sizeof value, "{imf-%" PRId64 "}", 1000000 - seq);
	char *modified = expanded(a, &p, value);
	const char *none = MHD_lookup_connection_value(a->con, MHD_HEADER_KIND, "If-None-Match");
	const char *if_since = MHD_lookup_connection_value(a->con, MHD_HEADER_KIND, "If-Modified-Since");

	if (status == 200 && (none != NULL || if_since != NULL) && (on(a, "same") || (none != NULL ? on(a, "etag") && strcmp(none, etag) == 0 :
	    on(a, "modified") && strcmp(if_since, modified) == 0)))
		status = 304;
	if ((shape = json_object_get(a->mode, "body")) == NULL) {
		for (int i = p.more; i < 2 && shape == NULL && items && status == 200; i++)
			shape = json_object_get(a->mode, LAST[i]);
		if (shape == NULL)
			shape = json_object_get(body_args, status >= 300 ? "error" : items ? "items" : "ok");
	}
	body = make_body(a, &p, shape);
	if (on(a, "gzip"))
		body = zip(body, !is(a, "gzip", "notrailer"));
	if (status == 304)
		body.len = 0;

	f = open_memstream(&head.p, &head.len);
	fprintf(f, "Content-Type: %s\r\n", word(a, "type", "application/json"));
	if (!on(a, "nodate"))
		expand(f, a, &p, "Date: {imf}\r\n", false);
	if (on(a, "gzip"))
		fputs("Content-Encoding: gzip\r\n", f);
	if (on(a, "etag"))
		fprintf(f, "ETag: %s\r\n", etag);
	if (on(a, "modified"))
		fprintf(f, "Last-Modified: %s\r\n", modified);
	if (*p.next != '\0' && strcmp(word(a, "style", "link"), "link") == 0)
		expand(f, a, &p, "Link: ", false), expand(f, a, &p, word(a, "link", "<{next}>; rel=\"next\""), false), fputs("\r\n", f);
	if (*p.token != '\0' && is(a, "style", "header"))
		expand(f, a, &p, "X-Next: {token}\r\n", false);
	json_object_foreach(json_object_get(a->mode, "headers"), name, v) {
		fprintf(f, "%s: ", name);
		expand(f, a, &p, json_string_value(v), false);
		fputs("\r\n", f);
	}
	fclose(f);
	note(a, method, status);
	if (on(a, "wait") && !is(a, "break", "drip") && !is(a, "break", "hang"))
		nap(number(a, "wait", 0));
	free(p.items.p);
	free(modified);

	enum MHD_Result rc;

	if (on(a, "break")) {
		rc = broken(a, status, head, body);
		free(body.p);
	} else {
		r = MHD_create_response_from_buffer(body.len, body.p, MHD_RESPMEM_MUST_FREE);
		for (s = head.p; *s != '\0'; s += strcspn(s, "\n") + 1) {
			size_t n = strcspn(s, ":"), len = strcspn(s + n + 2, "\r");

			MHD_add_response_header(r, strndupa(s, n), strndupa(s + n + 2, len));
		}
		rc = MHD_queue_response(a->con, (unsigned)status, r);
		MHD_destroy_response(r);
	}
	free(head.p);
	return rc;
}

/* ---- control ---- */

static void
kill_pid(const char *file, int64_t pause)
{
	FILE *f = fopen(file, "r");
	int pid = 0;

	nap(pause);
	if (f != NULL && fscanf(f, "%d", &pid) == 1 && pid > 1)
		kill(pid, SIGKILL);
	if (f != NULL)
		fclose(f);
}

/* What the script has for this request. */
static void
play(struct ask *a)
{
	json_t *e;
	size_t i;

	json_array_foreach(script, i, e) {
		int64_t at = json_integer_value(json_object_get(e, "at")), to = json_integer_value(json_object_get(e, "to"));
		const char *file = json_string_value(json_object_get(e, "kill")), *when = json_string_value(json_object_get(e, "when"));

		if (asked < at || asked > (to > at ? to : at))
			continue;
		now += json_integer_value(json_object_get(e, "tick"));
		put(json_object_get(e, "put"), false);
		del(json_object_get(e, "del"));
		json_object_update(a->mode, json_object_get(e, "mode"));
		a->pause = json_integer_value(json_object_get(e, "pause"));
		if (file != NULL && when != NULL && strcmp(when, "after") == 0)
			a->kill = strdup(file);
		else if (file != NULL)
			kill_pid(file, a->pause);
	}
}

static int
by_id(const void *x, const void *y)
{
	return strcmp((*(struct row *const *)x)->id, (*(struct row *const *)y)->id);
}

static enum MHD_Result
control(struct ask *a, const char *path)
{
	struct text b = { NULL, 0 };
	FILE *f = open_memstream(&b.p, &b.len);
	json_error_t error = { .text = "" };
	struct MHD_Response *r;
	json_t *v = a->body.len > 0 ? json_loadb(a->body.p, a->body.len, JSON_DECODE_ANY, &error) : NULL;
	enum MHD_Result rc;
	unsigned status = 200;

	if (v == NULL && a->body.len > 0) {
		fprintf(f, "%s\n", error.text);
		status = 400;
	} else if (strcmp(path, "/_set") == 0 || strcmp(path, "/_put") == 0)
		put(v, path[1] == 's' || path[2] == 's');
	else if (strcmp(path, "/_del") == 0)
		del(v);
	else if (strcmp(path, "/_tick") == 0)
		now += json_integer_value(v);
	else if (strcmp(path, "/_mode") == 0 || strcmp(path, "/_new") == 0) {
		if (path[2] == 'n')
			json_object_clear(mode);
		json_object_update(mode, v);
	} else if (strcmp(path, "/_script") == 0) {
		json_decref(script);
		script = json_incref(v);
		asked = 0;
	} else if (strcmp(path, "/_rows") == 0) {
		qsort(rows, nrows, sizeof *rows, by_id);
		sorted = NULL;
		for (size_t i = 0; i < nrows; i++)
			if (!rows[i]->dead)
				fprintf(f, "%s %" PRId64 "\n", rows[i]->id, rows[i]->version);
	} else if (strcmp(path, "/_log") == 0) {
		fflush(logged);
		fwrite(log_text, 1, log_len, f);
	} else if (strcmp(path, "/_state") == 0)
		fprintf(f, "{\"asked\":%" PRId64 ",\"denied\":%" PRId64 ",\"now\":%" PRId64 "}\n", asked, denied, now);
	else
		status = 404;
	json_decref(v);
	fclose(f);
	r = MHD_create_response_from_buffer(b.len, b.p, MHD_RESPMEM_MUST_FREE);
	rc = MHD_queue_response(a->con, status, r);
	MHD_destroy_response(r);
	return rc;
}

static enum MHD_Result
handle(void *cls, struct MHD_Connection *con, const char *path, const char *method, const char *version, const char *data, size_t *len,
    void **arg_)
{
	struct ask *a = *arg_;
	enum MHD_Result rc = MHD_NO;

	(void)version;
	a->con = con;
	a->port = *(int *)cls;
	if (!a->begun) {
		a->begun = true;
		return MHD_YES;
	}
	if (*len > 0) {
		if ((a->body.p = realloc(a->body.p, a->body.len + *len)) == NULL)
			die("realloc");
		memcpy(a->body.p + a->body.len, data, *len);
		a->body.len += *len;
		*len = 0;
		return MHD_YES;
	}
	pthread_mutex_lock(&turn);
	if (strncmp(path, "/_", 2) == 0)
		rc = control(a, path);
	else {
		asked++;
		a->mode = json_copy(mode);
		json_object_update(a->mode, json_object_get(json_object_get(mode, "paths"), path));
		if (a->body.len > 0)
			a->args = json_loadb(a->body.p, a->body.len, 0, NULL);
		play(a);
		rc = answer(a, method, path);
	}
	pthread_mutex_unlock(&turn);
	return rc;
}

static void *
begin(void *cls, const char *uri, struct MHD_Connection *con)
{
	struct ask *a = calloc(1, sizeof *a);

	(void)cls, (void)con;
	if (a == NULL)
		die("calloc");
	a->uri = strdup(uri);
	return a;
}

static void
end(void *cls, struct MHD_Connection *con, void **arg_, enum MHD_RequestTerminationCode code)
{
	struct ask *a = *arg_;

	(void)cls, (void)con, (void)code;
	if (a == NULL)
		return;
	if (a->kill != NULL)
		kill_pid(a->kill, a->pause);
	json_decref(a->mode);
	json_decref(a->args);
	free(a->body.p);
	free(a->kill);
	free(a->uri);
	free(a);
	*arg_ = NULL;
}

/* ---- the other side ---- */

static int
request(int argc, char *argv[])
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct text in = { NULL, 0 }, t;
	bool whole = false;
	char buf[65536], *path, *body = NULL;
	ssize_t n;
	int fd = socket(AF_INET, SOCK_STREAM, 0), c;
	FILE *f = open_memstream(&t.p, &t.len), *got = open_memstream(&in.p, &in.len);

	while ((c = getopt(argc, argv, "iH:")) != -1) {
		if (c == 'i')
			whole = true;
		else if (c == 'H')
			fprintf(f, "%s\r\n", optarg);
		else
			return Q_USAGE;
	}
	if (optind == argc || sscanf(argv[optind], "http://127.0.0.1:%hu", &to.sin_port) != 1)
		return Q_USAGE;
	path = strchrnul(argv[optind] + 8, '/');
	fprintf(f, "Host: 127.0.0.1:%hu\r\n", to.sin_port);
	to.sin_port = htons(to.sin_port);
	if (optind + 1 < argc && strcmp(body = argv[optind + 1], "-") == 0) {
		size_t size = 0;

		body = NULL;
		if (getdelim(&body, &size, '\0', stdin) < 0)
			die("standard input");
	}
	if (body != NULL)
		fprintf(f, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
	else
		fputs("\r\n", f);
	fclose(f);
	if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
		die("connect");
	dprintf(fd, "%s %s HTTP/1.0\r\n%.*s", body != NULL ? "POST" : "GET", *path != '\0' ? path : "/", (int)t.len, t.p);
	while ((n = read(fd, buf, sizeof buf)) > 0)
		fwrite(buf, 1, (size_t)n, got);
	if (n < 0)
		fputs("[reset]", got);
	fclose(got);
	path = whole ? in.p : memmem(in.p, in.len, "\r\n\r\n", 4);
	if (path == NULL)
		return Q_NO;
	path += whole ? 0 : 4;
	fwrite(path, 1, in.len - (size_t)(path - in.p), stdout);
	return in.len < 12 || strncmp(in.p + 8, " 2", 2) != 0;
}

int
main(int argc, char *argv[])
{
	pid_t parent = getppid();
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct MHD_Daemon *d;
	sigset_t none;

	if (argc > 1)
		return request(argc, argv);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		return Q_TEMP;
	signal(SIGPIPE, SIG_IGN);
	mode = json_object();
	body_args = json_pack("{s{ss} s{sb} s{ss}}", "items", "items", "{items}", "ok", "ok", 1, "error", "message", "no");
	logged = open_memstream(&log_text, &log_len);
	for (int i = 0; i < 2; i++) {
		at.sin_port = 0;
		d = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_SUPPRESS_DATE_NO_CLOCK, 0, NULL, NULL, handle, &port[i],
		    MHD_OPTION_SOCK_ADDR, &at, MHD_OPTION_URI_LOG_CALLBACK, begin, NULL, MHD_OPTION_NOTIFY_COMPLETED, end, NULL, MHD_OPTION_END);
		if (d == NULL)
			die("MHD_start_daemon");
		port[i] = MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port;
	}
	printf("%d %d\n", port[0], port[1]);
	fflush(stdout);
	sigemptyset(&none);
	for (;;)
		sigsuspend(&none);
}
