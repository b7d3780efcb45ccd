/*
 * fuzz.c - what reads text of others, given anything: it must not crash, and what it says must hold together
 *
 *	fuzz TARGET RUNS SEED CORPUS	the cases of the corpus, then RUNS of them changed a little; SEED says how
 *	fuzz -l				the targets
 *
 * With libFuzzer (-DFUZZ) the target is $FUZZ.  CORPUS (t/fuzz/corpus) says how its lines look.  A property that does not hold is
 * an abort with the input as the corpus has it.  lib/http.c is in here, so that an answer can be given to it without a network.
 */
#define _GNU_SOURCE
#include "http.h"
#define http_fetch http_fetch_net
#undef _DEFAULT_SOURCE
int http_fetch_net(struct http *, const struct http_ask *, struct http_budget *, struct http_answer *);
#include "../../lib/http.c"
#undef http_fetch

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "cron.h"
#include "head.h"
#include "hook.h"
#include "json.h"
#include "late.h"
#include "q.h"
#include "sign.h"
#include "source.h"

#define NOW INT64_C(1780401600000)		/* 2026-06-02T12:00:00Z, as Q_NOW */
#define LONGEST (INT64_C(3650) * 86400 * 1000)	/* 3650d */
#define CHECK(x) ((x) ? (void)0 : failed(#x, __LINE__))

static const char *input;
static size_t input_len;
static const char *target_name = "";

/* ---- the input ---- */

_Noreturn static void
failed(const char *what, int line)
{
	fprintf(stderr, "fuzz: %s: line %d: not true: %s\n", target_name, line, what);
#ifdef FUZZ
	fprintf(stderr, "%s\t", target_name);
	text_tsv(stderr, input, input_len);
	fputs("\n", stderr);
#endif
	abort();
}

static void *kept[64];				/* freed after each input */
static int nkept;

static void *
keep(void *p)
{
	if (p == NULL || nkept == 64)
		failed("memory", __LINE__);
	return kept[nkept++] = p;
}

/* A copy without a byte behind it, so that a reader that goes too far is seen; as a string it ends at its first NUL. */
static char *
exactly(const char *p, size_t n)
{
	return memcpy(keep(malloc(n > 0 ? n : 1)), p, n);
}

static char *
string(const char *p, size_t n)
{
	return keep(strndup(p, n));
}

/* Takes what stands before `end`, or all of it. */
static char *
cut(const char **p, size_t *n, char end)
{
	const char *at = memchr(*p, end, *n);
	size_t len = at != NULL ? (size_t)(at - *p) : *n;
	char *s = string(*p, len);

	len += at != NULL;
	*p += len;
	*n -= len;
	return s;
}

/* Takes a byte, below `most`. */
static unsigned
choose(const char **p, size_t *n, unsigned most)
{
	unsigned c = *n > 0 ? (unsigned char)**p : 0;

	*p += *n > 0;
	*n -= *n > 0;
	return c % most;
}

static int64_t
take_int(const char **p, size_t *n)
{
	int64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = (int64_t)((uint64_t)v << 8 | choose(p, n, 256));
	return v;
}

static struct { FILE *f; char *p; size_t n; } out;

static FILE *
open_out(void)
{
	return (out.f = open_memstream(&out.p, &out.n)) != NULL ? out.f : (failed("memory", __LINE__), NULL);
}

static char *
close_out(void)
{
	CHECK(fclose(out.f) == 0);
	return keep(out.p);
}

static void
spew(const char *name, const char *p, size_t n)
{
	FILE *f = unlink(name) == 0 || errno == ENOENT ? fopen(name, "w") : NULL;	/* to cut a file short makes some disks wait */

	CHECK(f != NULL && fwrite(p, 1, n, f) == n && fclose(f) == 0);
	chmod(name, 0600);
}

static bool
is_plain_text(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f)
			return false;
	return text_utf8(p, n);
}

/* ---- when.c ---- */

static const char *const ZONES[] = { NULL, "UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Australia/Lord_Howe", "Africa/Monrovia" };
enum { NZONES = sizeof ZONES / sizeof *ZONES };

static void
duration(const char *p, size_t n)
{
	char buf[WHEN_TEXT], *s = string(p, n);
	int64_t ms = -1, again = -1, to;
	const char *fault = NULL;

	if (when_duration(s, &ms, &fault)) {
		CHECK(ms >= 0 && ms <= LONGEST);
		CHECK(when_duration(when_span(buf, ms), &again, &fault) && again == ms);
		CHECK(strlen(when_brief(buf, ms)) < 12);
	} else
		CHECK(ms == -1 && fault != NULL);
	if (when_range(s, &ms, &to, &fault))
		CHECK(ms >= 0 && ms <= to && to > 0 && to <= LONGEST);
	else
		CHECK(fault != NULL);
	ms = take_int(&p, &n);
	to = take_int(&p, &n);
	CHECK(strlen(when_relative(buf, ms, to)) < WHEN_TEXT);
	CHECK(strlen(when_span(buf, ms)) < WHEN_TEXT);
	CHECK(strlen(when_text(buf, ms, true)) < WHEN_TEXT);
	if (ms >= 0)
		CHECK(strlen(when_brief(buf, ms)) < WHEN_TEXT);
}

static void
instant(const char *p, size_t n)
{
	const char *zone = ZONES[choose(&p, &n, NZONES)], *fault = NULL;
	char buf[WHEN_TEXT], *s = string(p, n);
	struct when_due due = { .base = NOW, .at = s, .zone = zone };
	int64_t ms = -1, again = -1, edges[64];
	int k;

	if (when_instant(s, zone, NOW, &ms, &fault)) {
		CHECK(ms >= 0 && ms <= WHEN_MAX);
		CHECK(when_instant(when_text(buf, ms, true), NULL, 0, &again, &fault) && again == ms);
		if (zone != NULL && ms < WHEN_MAX - LONGEST)
			CHECK(when_instant(when_local(buf, ms, zone), NULL, 0, &again, &fault) && again == ms / 1000 * 1000);
		if (zone != NULL && ms < WHEN_MAX - LONGEST) {
			k = when_edges(ms, ms + 30 * INT64_C(3600000), zone, true, edges, 64);
			CHECK(k > 0 && k < 64 && edges[0] == ms);
			for (int i = 1; i < k; i++)
				CHECK(edges[i] > edges[i - 1] && edges[i] - edges[i - 1] <= 3600000);
		}
	} else
		CHECK(ms == -1 && fault != NULL);
	if (when_due(&due, &ms, &fault)) {
		CHECK(ms >= 0 && ms <= WHEN_MAX);
		if (strlen(s) == 5)		/* HH:MM: from the base on, and not later than a day that a zone left out */
			CHECK(strcmp(s, "today") != 0 && (s[2] != ':' || (ms >= NOW && ms <= NOW + 3 * INT64_C(86400000))));
	}
}

static void
zone(const char *p, size_t n)
{
	char *s = string(p, n), buf[WHEN_TEXT];
	const char *fault = NULL;
	int64_t ms;

	if (!when_zone(s, &fault)) {
		CHECK(fault != NULL);
		return;
	}
	CHECK(strlen(s) <= 64 && *s != '/' && *s != '.');
	when_local(buf, NOW, s);
	CHECK(when_instant(buf, NULL, 0, &ms, &fault) && ms == NOW);
	if (when_enter(s, &fault)) {
		int64_t wall = when_wall(NOW / 1000), shown = when_shown(wall);

		CHECK(shown <= NOW / 1000 && when_wall(shown) == wall);
		when_leave();
	}
}

/* ---- cron.c ---- */

/* Does an entry want what the wall shows? */
static bool
wanted(const struct cron *c, int64_t wall)
{
	time_t t = (time_t)wall;
	struct tm tm;
	bool dom, dow;

	gmtime_r(&t, &tm);
	dom = c->days >> tm.tm_mday & 1;
	dow = c->weekdays >> tm.tm_wday & 1;
	return tm.tm_sec == 0 && (c->minutes >> tm.tm_min & 1) && (c->hours >> tm.tm_hour & 1) && (c->months >> (tm.tm_mon + 1) & 1) &&
	    (c->by_day && c->by_weekday ? dom || dow : dom && dow);
}

/* Minute by minute, as nobody would count slots: the slot is one, and the day before it has no other behind `after`. */
static void
judge_slot(const struct cron *c, int64_t after, int64_t slot)
{
	int64_t wall = when_wall(slot), from = after > slot - 90000 ? after + 1 : slot - 90000;
	bool skipped = false;

	if (!wanted(c, wall)) {		/* the clock change that skipped it ends here */
		CHECK(!c->each_hour);
		for (int64_t w = when_wall(slot - 1) + 1; w < wall && !skipped; w++)
			skipped = wanted(c, w);
		CHECK(skipped);
	} else
		CHECK(c->each_hour || when_shown(wall) == slot);
	for (int64_t t = from; t < slot; t += 60 - wall % 60) {
		wall = when_wall(t);
		CHECK(!wanted(c, wall) || (!c->each_hour && when_shown(wall) != t));
	}
}

static void
cron(const char *p, size_t n)
{
	static const int64_t FROM[] = { NOW, INT64_C(1774746000000) /* 2026-03-29T01:00Z */, INT64_C(1792890000000) /* 2026-10-25T01:00Z */,
	    0, INT64_C(1325239200000) /* 2011-12-30T10:00Z, which Apia left out */ };
	const unsigned which = choose(&p, &n, 256), nfrom = sizeof FROM / sizeof *FROM;
	char *line = string(p, n), *again, key[CRON_KEY];
	int64_t slot, slot2, at = FROM[which % nfrom] + which / nfrom * INT64_C(46800000), due;
	const char *fault = NULL;
	struct cron c, c2;
	int rc = cron_parse(line, &c, &fault);

	CHECK(rc == Q_OK || rc == Q_NO || (rc == Q_CONFIG && fault != NULL));
	if (rc != Q_OK)
		return;
	keep(c.spec);
	CHECK(text_queue(c.id) && text_queue(c.queue) && c.keep >= 1 && c.keep <= CRON_KEEP_MAX);
	CHECK(c.jitter_ms >= 0 && c.jitter_ms <= LONGEST && (c.late_ms == -1 || c.late_ms >= 1000));
	if (c.kind == CRON_AFTER)
		return;
	/* Schedule and zone are enough to write the entry again. */
	if (c.kind == CRON_CLOCK) {
		const char *tz = strrchr(c.spec, ' ');

		CHECK(tz != NULL && strcmp(tz + 1, c.zone) == 0);
		CHECK(asprintf(&again, "a %.*s tz=%s b", (int)(tz - c.spec), c.spec, tz + 1) > 0);
	} else
		CHECK(asprintf(&again, "a %s b", c.spec) > 0);
	CHECK(cron_parse(keep(again), &c2, &fault) == Q_OK);
	keep(c2.spec);
	CHECK(strcmp(c.spec, c2.spec) == 0 && c.minutes == c2.minutes && c.hours == c2.hours && c.days == c2.days &&
	    c.months == c2.months && c.weekdays == c2.weekdays && c.step_ms == c2.step_ms);
	for (int i = 0; i < 3; i++, at = slot) {
		CHECK(cron_next(&c, at, &slot, &fault) && slot > at);
		if (slot == CRON_NEVER)
			break;
		CHECK(slot % 1000 == 0 && slot <= WHEN_MAX && (c.kind == CRON_EVERY ? slot - at <= c.step_ms : slot - at <= INT64_C(3655) * 86400000));
		CHECK(cron_next(&c, slot - 1, &slot2, &fault) && slot2 == slot);	/* it is one, and none lies between */
		CHECK(cron_next(&c, at + (slot - at) / 2, &slot2, &fault) && slot2 == slot);
		if (c.kind == CRON_CLOCK)
			judge_slot(&c, at / 1000, slot / 1000);
		due = cron_job(&c, slot, key);
		CHECK(due >= slot && due <= slot + c.jitter_ms && strlen(key) < CRON_KEY - 1);
	}
	when_leave();
}

static int told;

static void
count(int line, const char *fault, void *arg)
{
	(void)arg;
	CHECK(line > 0 && fault != NULL && *fault != '\0');
	told++;
}

static void
crontab(const char *p, size_t n)
{
	char *text = keep(malloc(n + 1));
	struct cron_table t;
	int rc;

	memcpy(text, p, n);
	told = 0;
	rc = cron_read(text, n, &t, count, NULL);
	CHECK(rc == (told > 0 ? Q_CONFIG : Q_OK));
	for (size_t i = 0; i < t.n; i++) {
		for (size_t k = 0; k < i && told == 0; k++)
			CHECK(strcmp(t.list[i].id, t.list[k].id) != 0);
		free(t.list[i].spec);
	}
	free(t.list);
}

/* ---- json.c against jansson ---- */

/* Deeper than common readers go, or with an escape that is half of a pair: json.c and jansson differ there, and know it. */
static bool
deep(const char *p, size_t n)
{
	int depth = 0, most = 0;

	for (size_t i = 0; i < n; i++) {
		depth += (p[i] == '[' || p[i] == '{') - (p[i] == ']' || p[i] == '}');
		most = depth > most ? depth : most;
	}
	return most > 200;
}

/* Numbers as jansson would write them again, no name twice, nothing that stands for what is none of a character? */
static bool
exact(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '"') {
			while (p[++i] != '"')
				i += p[i] == '\\';
			continue;
		}
		if (p[i] == '.' || p[i] == '-' || ((p[i] | 32) == 'e' && i > 0 && p[i - 1] >= '0' && p[i - 1] <= '9') ||
		    (p[i] == 'E' && i > 0))
			return false;
	}
	return memmem(p, n, "\xef\xbf\xbd", 3) == NULL;
}

static json_t *
load(const char *p, size_t n, size_t flags)
{
	json_error_t e;

	return json_loadb(p, n, flags | JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
}

/* Walk both: the same values in the same places. */
static void
agree(struct span v, json_t *j)
{
	struct span key, at = { NULL, 0 };
	size_t len, n = 0;
	char *text;

	switch (json_kind(v)) {
	case '{':
		CHECK(json_is_object(j));
		while (json_member(v, &key, &at)) {
			CHECK((text = json_text(key, &len)) != NULL && strlen(text) == len);
			CHECK(json_object_get(j, text) != NULL);
			free(text);
			n++;
		}
		CHECK(json_object_size(j) <= n);
		if (json_object_size(j) == n)
			for (at = (struct span){ NULL, 0 }; json_member(v, &key, &at);) {
				text = json_text(key, &len);
				agree(at, json_object_get(j, text));
				free(text);
			}
		break;
	case '[':
		CHECK(json_is_array(j));
		while (json_next(v, &at))
			agree(at, json_array_get(j, n++));
		CHECK(json_array_size(j) == n);
		break;
	case '"':
		CHECK(json_is_string(j) && (text = json_text(v, &len)) != NULL);
		CHECK(json_string_length(j) == len && memcmp(json_string_value(j), text, len) == 0);
		free(text);
		break;
	case '0': CHECK(json_is_number(j)); break;
	case 't': CHECK(json_is_true(j)); break;
	case 'f': CHECK(json_is_false(j)); break;
	default: CHECK(json_kind(v) == 'n' && json_is_null(j));
	}
}

/* A canonical form is JSON but for a comma behind each value. */
static char *
without_commas(const char *p, size_t n, size_t *len)
{
	char *to = keep(malloc(n + 1)), *start = to;

	for (size_t i = 0; i < n; i++) {
		if (p[i] == '"')
			do {
				if (p[i] == '\\')
					*to++ = p[i++];
				*to++ = p[i++];
			} while (p[i] != '"');
		if (p[i] == ',' && i + 1 < n && (p[i + 1] == ']' || p[i + 1] == '}'))
			continue;
		*to++ = p[i];
	}
	*len = (size_t)(to - start);
	return start;
}

static void
json(const char *p, size_t n)
{
	const char *text = exactly(p, n), *fault = NULL;
	size_t at, len, len2, line_len;
	json_t *j, *j2;
	struct span v, v2;
	json_error_t e;
	char *c, *c2, *dump, *plain, *line;
	bool good = json_read(text, n, &v, &fault, &at);

	CHECK(at <= n && good == (fault == NULL));
	if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
		return;
	CHECK(!text_is_json(text, n) || good || memchr(text, '\0', n) != NULL || deep(text, n));
	j = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &e);
	if (j != NULL && !good)
		CHECK(memchr(text, '\0', n) != NULL || deep(text, n));
	if (j == NULL && good)
		CHECK(!text_utf8(text, n) || json_error_code(&e) == json_error_numeric_overflow || json_error_code(&e) == json_error_null_byte_in_key ||
		    memmem(text, n, "\\u", 2) != NULL);
	if (!good) {
		json_decref(j);
		return;
	}
	CHECK(v.p >= text && v.p + v.n <= text + n);
	if (j != NULL)
		agree(v, j);
	json_decref(j);

	json_line(open_out(), v);
	line = close_out();
	line_len = out.n;
	CHECK(json_read(line, line_len, &v2, &fault, &at) && v2.n == line_len);
	CHECK((c = json_canon(v, NULL, 0, &len)) != NULL && (c2 = json_canon(v2, NULL, 0, &len2)) != NULL);
	CHECK(len == len2 && memcmp(c, c2, len) == 0);
	free(c2);
	plain = without_commas(c, len, &len2);
	CHECK(json_read(plain, len2, &v2, &fault, &at));
	CHECK((c2 = json_canon(v2, NULL, 0, &len2)) != NULL && len == len2 && memcmp(c, c2, len) == 0);
	free(c2);
	/* Written by jansson in another way, it has the same form. */
	if ((j = load(text, n, JSON_REJECT_DUPLICATES)) != NULL && exact(v.p, v.n)) {
		CHECK((dump = json_dumps(j, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_INDENT(1) | JSON_SORT_KEYS | JSON_ESCAPE_SLASH)) != NULL);
		CHECK(json_read(dump, strlen(dump), &v2, &fault, &at));
		CHECK((c2 = json_canon(v2, NULL, 0, &len2)) != NULL);
		if (strstr(dump, "\\uFFFD") == NULL)
			CHECK(len == len2 && memcmp(c, c2, len) == 0);
		free(c2);
		free(dump);
		plain = without_commas(c, len, &len2);
		CHECK((j2 = load(plain, len2, 0)) != NULL && json_equal(j, j2));
		json_decref(j2);
	}
	json_decref(j);
	free(c);
}

static void
pointer(const char *p, size_t n)
{
	char *at = cut(&p, &n, '\n'), *tilde, *token, *slash;
	const char *text, *fault, *except[1];
	struct span v, found;
	size_t where, len;
	json_t *j, *here;

	if (!json_pointer(at))
		return;
	text = exactly(p, n);
	if (!json_read(text, n, &v, &fault, &where))
		return;
	except[0] = at;
	free(json_canon(v, except, 1, &len));
	found = json_at(v, at);
	CHECK(found.p == NULL || (found.p >= v.p && found.p + found.n <= v.p + v.n));
	if (found.p != NULL)
		CHECK(json_read(found.p, found.n, &v, &fault, &where) && v.n == found.n);
	/* The same way with jansson, which has the last of a name given twice, too. */
	if ((here = j = load(text, n, 0)) == NULL)
		return;
	for (token = at; *token == '/' && here != NULL; token = slash) {
		char saved;

		token++;
		slash = token + strcspn(token, "/");
		saved = *slash;
		*slash = '\0';
		if (json_is_object(here)) {
			char *plain = string(token, strlen(token)), *to = plain;

			for (tilde = token; *tilde != '\0'; tilde++)
				*to++ = *tilde != '~' ? *tilde : *++tilde == '0' ? '~' : '/';
			*to = '\0';
			here = json_object_get(here, plain);
		} else {
			int64_t i;

			here = json_is_array(here) && text_int(token, 0, INT32_MAX, &i) && (*token != '0' || token[1] == '\0') ?
			    json_array_get(here, (size_t)i) : NULL;
		}
		*slash = saved;
		if (nkept > 60)
			goto out;
	}
	CHECK((here != NULL) == (found.p != NULL));
	if (here != NULL)
		agree(found, here);
out:
	json_decref(j);
}

/* ---- text.c ---- */

/* Another reader of UTF-8: by its value, which must be one that needs so many bytes. */
static bool
utf8(const unsigned char *p, size_t n)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };

	for (size_t i = 0; i < n;) {
		size_t len = p[i] < 0x80 ? 1 : p[i] >> 5 == 6 ? 2 : p[i] >> 4 == 14 ? 3 : p[i] >> 3 == 30 ? 4 : 0;
		uint32_t c = len > 0 ? p[i] & (0xff >> (len == 1 ? 1 : len + 1)) : 0;

		if (len == 0 || n - i < len)
			return false;
		for (size_t k = 1; k < len; k++) {
			if (p[i + k] >> 6 != 2)
				return false;
			c = c << 6 | (p[i + k] & 63);
		}
		if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
			return false;
		i += len;
	}
	return true;
}

/* The bytes that a TSV field stands for. */
static size_t
from_tsv(const char *p, size_t n, char *to)
{
	static const char NAMES[] = "tnr\\", MEAN[] = "\t\n\r\\";
	char *start = to, two[3] = "";

	for (size_t i = 0; i < n; i++) {
		if (p[i] != '\\' || i + 1 == n)
			*to++ = p[i];
		else if (p[++i] == 'x' && n - i > 2) {
			memcpy(two, p + i + 1, 2);
			*to++ = (char)strtol(two, NULL, 16);
			i += 2;
		} else if (strchr(NAMES, p[i]) != NULL)
			*to++ = MEAN[strchr(NAMES, p[i]) - NAMES];
	}
	return (size_t)(to - start);
}

static void
text(const char *p, size_t n)
{
	static const char *const WORDS[] = { "missed", "overlap", "", "concurrency", NULL };
	int width = (int)choose(&p, &n, 64), used;
	const char *s = exactly(p, n), *name;
	char *shown, *again, *word;
	json_t *j, *v, *same;
	size_t len;
	int64_t i;

	CHECK(text_utf8(s, n) == utf8((const unsigned char *)s, n));
	used = text_show(open_out(), s, n, width);
	shown = close_out();
	len = out.n;
	CHECK(is_plain_text(shown, len) && used >= 0 && (width == 0 || used <= width));
	if (width == 0) {
		CHECK(text_show(open_out(), shown, len, 0) == used);
		again = close_out();
		CHECK(out.n == len && memcmp(again, shown, len) == 0);
	}

	text_tsv(open_out(), s, n);
	shown = close_out();
	CHECK(is_plain_text(shown, out.n));
	again = keep(malloc(out.n + 1));
	CHECK(from_tsv(shown, out.n, again) == n && memcmp(again, s, n) == 0);

	text_json(open_out(), s, n);
	shown = close_out();
	CHECK((j = load(shown, out.n, 0)) != NULL && json_is_string(j) && text_is_json(shown, out.n));
	CHECK(!text_utf8(s, n) || (json_string_length(j) == n && memcmp(json_string_value(j), s, n) == 0));
	json_decref(j);

	putc('{', open_out());
	text_json_bytes(out.f, "b", s, n);
	putc('}', out.f);
	shown = close_out();
	CHECK(memchr(shown, '\n', out.n) == NULL && (j = json_loadb(shown, out.n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL)) != NULL);
	if ((v = json_object_get(j, "b")) == NULL) {
		v = json_object_get(j, "b_base64");
		CHECK(json_is_string(v) && json_string_length(v) == (n + 2) / 3 * 4);
		again = keep(malloc(json_string_length(v) + 1));
		CHECK(EVP_DecodeBlock((unsigned char *)again, (const unsigned char *)json_string_value(v), (int)json_string_length(v)) >= (int)n &&
		    memcmp(again, s, n) == 0 && !text_utf8(s, n));
	} else if (json_is_string(v))
		CHECK(json_string_length(v) == n && memcmp(json_string_value(v), s, n) == 0);
	else {
		CHECK((same = json_loadb(s, n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL)) != NULL && json_equal(same, v));
		json_decref(same);
	}
	json_decref(j);

	word = string(p, n);
	name = text_nearest(word, WORDS);
	CHECK(name == NULL || strlen(name) <= strlen(word) + strlen(word) / 3 + 1);
	if (text_queue(word))
		CHECK(text_name_fault(word) == NULL && !text_int(word, 0, INT64_MAX, &i));
	if (text_int(word, 5, 5000, &i))
		CHECK(i >= 5 && i <= 5000 && strspn(word, "0123456789") == strlen(word));
}

/* ---- record.c ---- */

static void
field(FILE *f, const char *name, const char *v)
{
	if (v != NULL)
		text_json_text(f, name, v);
}

static bool
same(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void
record(const char *p, size_t n)
{
	const struct job_new none = { .priority = -1, .due_ms = -1, .event_ms = -1, .attempts = -1, .window_ms = -1, .base_ms = -1, .cap_ms = -1 };
	struct job_new j = none, j2 = none;
	const char *s = exactly(p, n), *fault = NULL;
	char *again, *b64, *q, *t, *k, *e, *z, *body;
	size_t len;
	int64_t id;

	if (record_id(s, n, &id))
		CHECK(id >= 1 && id <= JOB_ID_MAX);
	if (!record_parse(s, n, NOW, &j, &fault)) {
		CHECK(fault != NULL && *fault != '\0');
		return;
	}
	CHECK(j.priority >= -1 && j.priority <= 9 && j.due_ms >= -1 && j.due_ms <= WHEN_MAX && j.event_ms >= -1 && j.event_ms <= WHEN_MAX);
	CHECK(j.attempts == -1 || (j.attempts >= 1 && j.attempts <= 1000000));
	CHECK((j.type == NULL || *j.type != '\0') && (j.zone == NULL || text_name_fault(j.zone) == NULL));
	/* What it says, written anew, is the same job. */
	q = j.queue != NULL ? string(j.queue, strlen(j.queue)) : NULL;
	t = j.type != NULL ? string(j.type, strlen(j.type)) : NULL;
	k = j.key != NULL ? string(j.key, strlen(j.key)) : NULL;
	e = j.entity != NULL ? string(j.entity, strlen(j.entity)) : NULL;
	z = j.zone != NULL ? string(j.zone, strlen(j.zone)) : NULL;
	body = exactly(j.payload != NULL ? j.payload : "", j.payload_len);
	fputs("{\"x\":1", open_out());
	field(out.f, "queue", q);
	field(out.f, "type", t);
	field(out.f, "key", k);
	field(out.f, "entity", e);
	field(out.f, "zone", z);
	text_json_int(out.f, "priority", j.priority);
	text_json_int(out.f, "attempts", j.attempts);
	text_json_int(out.f, "backoff_ms", j.base_ms);
	text_json_int(out.f, "backoff_cap_ms", j.cap_ms);
	text_json_int(out.f, "window_ms", j.window_ms);
	text_json_time(out.f, "due", j.due_ms);
	text_json_time(out.f, "event", j.event_ms);
	if (j.payload != NULL) {
		b64 = keep(malloc((j.payload_len + 2) / 3 * 4 + 1));
		EVP_EncodeBlock((unsigned char *)b64, (const unsigned char *)body, (int)j.payload_len);
		fprintf(out.f, ",\"payload_base64\":\"%s\"", b64);
	}
	fputs("}", out.f);
	again = close_out();
	len = out.n;
	CHECK(record_parse(again, len, NOW, &j2, &fault));
	CHECK(same(q, j2.queue) && same(t, j2.type) && same(k, j2.key) && same(e, j2.entity) && same(z, j2.zone));
	CHECK(j.priority == j2.priority && j.attempts == j2.attempts && j.base_ms == j2.base_ms && j.cap_ms == j2.cap_ms &&
	    j.window_ms == j2.window_ms && j.due_ms == j2.due_ms && j.event_ms == j2.event_ms);
	CHECK((j.payload == NULL) == (j2.payload == NULL) && j.payload_len == j2.payload_len && memcmp(body, j2.payload != NULL ? j2.payload : "", j.payload_len) == 0);
}

static void
claim(const char *p, size_t n)
{
	char buf[JOB_CLAIM_TEXT];
	const char *s = exactly(p, n);
	struct claim c, c2;

	if (record_claim(s, n, &c) || claim_parse(string(p, n), &c)) {
		CHECK(c.id >= 1 && c.id <= JOB_ID_MAX && c.fence >= 1 && c.fence <= JOB_ID_MAX && c.nonce >= 0 && c.nonce <= UINT32_MAX);
		CHECK(claim_parse(claim_text(buf, &c), &c2) && c.id == c2.id && c.fence == c2.fence && c.nonce == c2.nonce);
	}
	c.id = 1 + (int64_t)((uint64_t)take_int(&p, &n) % JOB_ID_MAX);
	c.fence = 1 + (int64_t)((uint64_t)take_int(&p, &n) % JOB_ID_MAX);
	c.nonce = take_int(&p, &n) & UINT32_MAX;
	claim_text(buf, &c);
	CHECK(record_claim(buf, strlen(buf), &c2) && c.id == c2.id && c.fence == c2.fence && c.nonce == c2.nonce);
}

/* ---- http.c ---- */

static void
retry(const char *p, size_t n)
{
	int64_t wait = -2, date = choose(&p, &n, 2) == 0 ? -1 : NOW - 86400000;
	char *s = string(p, n), date_of[3][64];
	time_t at;
	struct tm tm;

	if (http_retry_after(s, date, NOW, &wait))
		CHECK(wait >= 0 && wait <= LONGEST && wait % 1000 == 0);
	else
		CHECK(wait == -2);
	wait = -2;
	if (http_reset(s, date, NOW, &wait))
		CHECK(wait >= 0 && wait <= LONGEST);
	else
		CHECK(wait == -2);
	/* Any instant of the next 40 years, in all forms of a date. */
	at = (time_t)(NOW / 1000 + (int64_t)((uint64_t)take_int(&p, &n) % (40 * INT64_C(31556952))));
	gmtime_r(&at, &tm);
	strftime(date_of[0], sizeof date_of[0], "%a, %d %b %Y %H:%M:%S GMT", &tm);
	n = strftime(date_of[1], sizeof date_of[1], "%A, %d-%b-", &tm);
	snprintf(date_of[1] + n, sizeof date_of[1] - n, "%02d%s", tm.tm_year % 100, strchr(date_of[0], ':') - 3);
	strftime(date_of[2], sizeof date_of[2], "%a %b %e %H:%M:%S %Y", &tm);
	for (int i = 0; i < 3; i++) {
		CHECK(http_retry_after(date_of[i], NOW, NOW, &wait));
		CHECK(wait == ((int64_t)at * 1000 - NOW < LONGEST ? (int64_t)at * 1000 - NOW : LONGEST));
	}
}

/* Is escaped what n bytes at p are, percent-encoded? */
static bool
is_escaped(const char *escaped, const char *p, size_t n)
{
	char two[3] = "";

	for (; n > 0; n--, p++, escaped += *escaped == '%' ? 3 : 1) {
		if (*escaped == '%')
			memcpy(two, escaped + 1, 2);
		if (*escaped == '%' ? strtol(two, NULL, 16) != (unsigned char)*p : *escaped != *p)
			return false;
	}
	return *escaped == '\0';
}

static void
url(const char *p, size_t n)
{
	char *base = cut(&p, &n, '\n'), *ref = cut(&p, &n, '\n'), *full, *again, shown[256], *escaped, *loose;
	const char *fault = NULL;
	size_t len;

	CHECK(strlen(http_shown(shown, sizeof shown, base)) < sizeof shown && is_plain_text(shown, strlen(shown)) && strpbrk(shown, "?#") == NULL);
	if (http_url(base, false, &fault) == Q_OK)
		CHECK(strncasecmp(base, "https://", 8) == 0);
	if (http_url(base, true, &fault) == Q_OK) {
		CHECK(http_same_origin(base, base) == Q_OK);
		/* A page may have come from there: what is resolved stays a URL that may be asked. */
		if (http_resolve(base, ref, &full) == Q_OK) {
			CHECK(http_url(full, true, &fault) == Q_OK);
			CHECK(http_resolve(base, full, &again) == Q_OK && strcmp(full, again) == 0);
			free(again);
			if (*ref == '?' || *ref == '#' || *ref == '\0')
				CHECK(http_same_origin(base, full) == Q_OK);
			free(full);
		}
		if (http_within(ref, base) == Q_OK)
			CHECK(http_same_origin(ref, base) == Q_OK);
	} else {
		CHECK(fault != NULL && http_resolve(base, ref, &full) == Q_NO && full == NULL);
	}
	CHECK((escaped = http_escape(p, n)) != NULL && strspn(escaped, "%-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(escaped));
	CHECK(is_escaped(escaped, p, n));
	free(escaped);
	loose = exactly(p, n);
	len = http_hide(loose, n, "Bearer sekrit42");
	CHECK(len <= n && memmem(loose, len, "sekrit42", 8) == NULL);
}

/* Give an answer to http.c as libcurl would: header lines, an empty line, the body. */
static void
receive(struct http *h, const struct http_ask *ask, const char *p, size_t n, struct http_answer *a)
{
	int most = nkept + 25;
	size_t len;
	char *line;

	*a = (struct http_answer){ .kind = HTTP_REFUSED, .wait_ms = -1, .date_ms = -1, .remaining = -1 };
	h->headers_len = h->len = 0;
	h->headed = false;
	h->status = 0;
	h->broke = GOOD;
	h->error[0] = '\0';
	h->max = ask->max_body != 0 ? ask->max_body : 1 << 20;
	free(h->url);
	CHECK((h->url = strdup(ask->url)) != NULL);
	while (n > 0) {
		const char *end = memchr(p, '\n', n);
		bool empty = *p == '\n' || (*p == '\r' && n > 1 && p[1] == '\n');

		len = end != NULL ? (size_t)(end - p) + 1 : n;
		line = memcpy(keep(malloc(len + (end == NULL))), p, len);
		if (end == NULL)		/* libcurl gives whole lines */
			line[len] = '\n';
		if (take_header(line, 1, len + (end == NULL), h) == 0) {
			CHECK(h->broke != GOOD);
			break;
		}
		p += len;
		n -= len;
		if (empty || nkept > most)
			break;
	}
	if (!h->headed)
		take_header(string("\r\n", 2), 1, 2, h);
	take_body(exactly(p, n), 1, n, h);
	if (h->body != NULL)
		h->body[h->len] = '\0';
	judge(h, ask, h->broke == GOOD ? CURLE_OK : CURLE_WRITE_ERROR, a);
	a->url = h->url;
	a->body = h->body != NULL ? h->body : "";
	a->len = h->len;
}

static struct http *wire;

static void
answer(const char *p, size_t n)
{
	static const struct http_header SECRET = { "Authorization", "Bearer sekrit42", true };
	struct http_ask ask = { .url = "https://api.example/v1/items?page=1", .headers = &SECRET, .nheaders = 1 };
	const char *target, *end, *fault, *title;
	struct http_answer a;
	char *link, *line;
	size_t used;

	receive(wire, &ask, p, n, &a);
	CHECK(a.wait_ms >= -1 && a.wait_ms <= LONGEST && a.remaining >= -1);
	CHECK(a.kind == HTTP_OK || a.kind == HTTP_SAME ? a.why[0] == '\0' : a.why[0] != '\0');
	CHECK(strlen(a.why) < sizeof a.why && is_plain_text(a.why, strlen(a.why)) && strstr(a.why, "sekrit42") == NULL);
	for (target = wire->headers, end = target + wire->headers_len, used = 0; target < end; used++)
		target += strlen(target) + 1;
	CHECK(target == end && used % 2 == 0);
	if (http_link(wire, "next", &link) == Q_OK) {
		CHECK(http_header(wire, "Link", 0) != NULL && (http_url(link, true, &fault) == Q_OK || memchr(p, '<', n) != NULL));
		free(link);
	}
	/* The right one is found, whatever is quoted before it. */
	title = string(p, n);
	fputs("<https://api.example/a>; title=\"", open_out());
	for (const char *s = title; *s != '\0'; s++)
		if ((unsigned char)*s >= ' ')
			fprintf(out.f, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
	fputs("\"; rel=prev, </b?p=2> ; rel = \"x next\" , <c>;rel=next", out.f);
	line = close_out();
	CHECK(link_target(line, "next", &link) == Q_OK && strcmp(link, "/b?p=2") == 0);
	free(link);
}

/* ---- source.c, cursor.c, page.c ---- */

static void
free_source(struct source *s)
{
	json_decref(s->root);
	free(s->text);
	free(s->path);
	free(s->sent);
	free(s->secret);
}

static void
source(const char *p, size_t n)
{
	struct source s, s2;
	char message[512] = "";
	const char *fault;
	int status = Q_OK;

	spew("source", p, n);
	if (source_read(&s, "source", false, &status, message, sizeof message)) {
		CHECK(text_queue(s.name) && s.nid >= 1 && s.nid <= 4 && json_pointer(s.items) && http_url(s.url, s.insecure_http, &fault) == Q_OK);
		CHECK(cursor_spec_check(&s.spec, &fault) && s.timeout_ms >= 0 && s.max_wait_ms >= 0 && s.retries >= 0);
		CHECK(source_read(&s2, "source", false, &status, message, sizeof message) && strcmp(s.config, s2.config) == 0 && strlen(s.config) == 64);
		free_source(&s2);
	} else
		CHECK((status == Q_CONFIG || status == Q_PERM) && strncmp(message, "source", 6) == 0 && strlen(message) > 10);
	free_source(&s);
}

static void
cursor(const char *p, size_t n)
{
	static const char *const FORMATS[] = { NULL, "s", "ms", "us", "%Y-%m-%dT%H:%M:%S.%LZ", "%Y%m%d", "%d.%m.%Y %H:%M" };
	static const char *const EAST[] = { NULL, "UTC", "+02:00", "-11:30" };
	struct cursor_spec spec = { .type = (enum cursor_type)choose(&p, &n, 6), .format = FORMATS[choose(&p, &n, 7)], .zone = EAST[choose(&p, &n, 4)] };
	unsigned steps = choose(&p, &n, 64);
	char *a = cut(&p, &n, '\n'), *b = cut(&p, &n, '\n'), query[CURSOR_TEXT];
	const char *fault = NULL;
	struct cursor_key ka, kb, bound, lower;
	int64_t ms_a, ms_b;

	spec.granularity_ms = steps & 1 ? 60000 : 0;
	spec.shift_ms = steps & 2 ? 1500 : 0;
	spec.lookback_ms = steps & 4 ? 3600000 : 0;
	if (!cursor_spec_check(&spec, &fault) || !cursor_key(&spec, a, &ka, &fault)) {
		CHECK(fault != NULL);
		return;
	}
	CHECK(ka.n > 0 && ka.n <= sizeof ka.b && cursor_compare(&ka, &ka) == 0);
	cursor_bound(&spec, a, &ka, true, query, &bound);
	CHECK(strlen(query) < CURSOR_TEXT && cursor_compare(&bound, &ka) <= 0);
	cursor_bound(&spec, a, &ka, false, query, &lower);
	CHECK(cursor_compare(&lower, &ka) <= 0 && cursor_compare(&bound, &lower) <= 0);
	if (spec.type <= CURSOR_EPOCH_US) {
		CHECK(cursor_ms(&spec, &ka, &ms_a));
		cursor_render(&spec, &ka, query);
		CHECK(strlen(query) < CURSOR_TEXT);
		/* What is asked with, read again, is not above the value: nothing is passed over. */
		if (spec.format == NULL && ms_a >= 0 && ms_a <= 2 * NOW) {	/* later ones may get a digit too many */
			CHECK(cursor_key(&spec, query, &lower, &fault) && cursor_compare(&lower, &ka) == 0);
			cursor_upper(&spec, ms_a, query);
			CHECK(cursor_key(&spec, query, &lower, &fault) && cursor_ms(&spec, &lower, &ms_b) && ms_b >= ms_a);
		}
	}
	if (!cursor_key(&spec, b, &kb, &fault))
		return;
	CHECK(cursor_compare(&ka, &kb) == -cursor_compare(&kb, &ka) || (cursor_compare(&ka, &kb) < 0) == (cursor_compare(&kb, &ka) > 0));
	if (spec.type <= CURSOR_EPOCH_US) {
		CHECK(cursor_ms(&spec, &kb, &ms_b));
		CHECK(cursor_compare(&ka, &kb) < 0 ? ms_a <= ms_b : ms_a >= ms_b);
	} else if (strlen(a) < 15 && strlen(b) < 15) {
		double x = strtod(a, NULL), y = strtod(b, NULL);

		CHECK((cursor_compare(&ka, &kb) > 0) - (cursor_compare(&ka, &kb) < 0) == (x > y) - (x < y));
	}
}

static const char *const SOURCES[] = {
	"{\"name\":\"s\",\"url\":\"https://api.example/v1/items\",\"items\":\"/data\",\"id\":\"/id\",\"cursor\":\"/at\",\"cursor_type\":\"time\","
	"\"zone\":\"UTC\",\"start\":\"all\",\"order\":\"asc\",\"query\":{\"since\":\"{cursor}\"},\"next\":\"link\",\"error\":\"/error\"}",
	"{\"name\":\"s\",\"url\":\"https://api.example/v1/items\",\"items\":\"\",\"id\":[\"/id\",\"/v\"],\"order\":\"any\",\"next\":\"url:/next\","
	"\"ignore\":[\"/seen\"],\"more\":\"/more\",\"ok\":{\"/ok\":true},\"limited\":{\"/code\":\"slow\"}}",
	"{\"name\":\"s\",\"url\":\"https://api.example/v1/items\",\"items\":\"/a/0/b\",\"id\":\"/id\",\"cursor\":\"/n\",\"cursor_type\":\"int\","
	"\"start\":\"0\",\"order\":\"desc\",\"query\":{\"p\":\"{token}\"},\"next\":\"token:/next\",\"missing_cursor\":\"emit\",\"any_type\":true}",
	"{\"name\":\"s\",\"url\":\"https://api.example/v1/items\",\"items\":\"/data\",\"id\":\"/id\",\"order\":\"any\",\"query\":{\"o\":\"{offset}\"},"
	"\"next\":\"offset\",\"size\":2,\"denied\":{\"/code\":\"denied\"},\"done\":\"/done\"}",
};
enum { NSOURCES = sizeof SOURCES / sizeof *SOURCES };
static struct source sources[NSOURCES];
static const char *page_bytes;
static size_t page_len;

int
http_fetch(struct http *h, const struct http_ask *ask, struct http_budget *b, struct http_answer *a)
{
	b->waited_ms = 0;
	receive(h, ask, page_bytes, page_len, a);
	return Q_OK;
}

static bool
always(void)
{
	return true;
}

static void
page(const char *p, size_t n)
{
	const struct source *s = &sources[choose(&p, &n, NSOURCES)];
	struct pager pager = { .src = s, .http = wire, .stopped = always };
	struct page one, two;
	int rc;

	page_bytes = p;
	page_len = n;
	rc = page_get(&pager, NULL, NULL, &one);
	CHECK(rc == Q_OK || rc == Q_DATA || rc == Q_UNKNOWN || rc == Q_PERM || rc == Q_TEMP || rc == Q_NO);
	if (rc != Q_OK) {
		CHECK(strlen(pager.message) > 2 && strlen(pager.message) < sizeof pager.message);
		return;
	}
	for (size_t i = 0; i < one.n; i++) {
		struct span v;
		const char *fault;
		size_t at;

		CHECK(one.items[i].id != NULL && *one.items[i].id != '\0');
		CHECK(json_read(one.items[i].raw.p, one.items[i].raw.n, &v, &fault, &at));
		CHECK(one.items[i].cursor == NULL || one.items[i].key.n > 0);
	}
	CHECK(one.next == NULL || (s->next != NEXT_URL && s->next != NEXT_LINK) || http_same_origin(one.next, s->url) == Q_OK);
	CHECK(one.end || one.next != NULL || one.unmodified);
	/* The same answer is the same page. */
	CHECK(page_get(&pager, NULL, NULL, &two) == Q_OK && one.n == two.n && one.end == two.end && same(one.next, two.next));
	for (size_t i = 0; i < one.n; i++)
		CHECK(memcmp(one.items[i].ver, two.items[i].ver, sizeof one.items[i].ver) == 0);
	page_free(&one);
	page_free(&two);
}

/* ---- head.c, hook.c, sign.c ---- */

static void
head(const char *p, size_t n)
{
	const char *fault = NULL, *s = exactly(p, n);
	static struct head h, h2;
	size_t end = head_end(s, n, 0), end2, seen = n / 2;
	char *copy, *again;
	int status;

	CHECK(end <= n && head_end(s, n, end > 0 && end - 1 < seen ? end - 1 : seen) == end);
	if (end > 0)
		CHECK(head_end(s, end - 1, 0) == 0);
	copy = exactly(p, end > 0 ? end : n);
	status = head_read(copy, end > 0 ? end : n, &h, &fault);
	CHECK(status == 0 ? end > 0 : fault != NULL && (status == 400 || status == 417 || status == 431));
	if (status != 0)
		return;
	CHECK(*h.target == '/' && h.nfields <= HEAD_FIELDS && h.length >= -1 && !(h.chunked && h.length != -1));
	/* Written anew, it says the same. */
	fprintf(open_out(), "%s %s HTTP/1.%d\r\n", h.method, h.target, h.minor);
	for (int i = 0; i < h.nfields; i++)
		fprintf(out.f, "%s: %s\r\n", h.fields[i].name, h.fields[i].value);
	fputs("\r\n", out.f);
	again = close_out();
	end2 = out.n;
	CHECK(head_end(again, end2, 0) == end2 && head_read(again, end2, &h2, &fault) == 0);
	CHECK(h.nfields == h2.nfields && h.length == h2.length && h.chunked == h2.chunked && strcmp(h.method, h2.method) == 0 && strcmp(h.target, h2.target) == 0);
	for (int i = 0; i < h.nfields; i++)
		CHECK(strcmp(h.fields[i].name, h2.fields[i].name) == 0 && strcmp(h.fields[i].value, h2.fields[i].value) == 0);
}

static void
table(const char *p, size_t n)
{
	struct hook_table *t;
	char message[512] = "";
	const struct hook *h;
	const char *allow;
	size_t max;
	int rc;

	spew("hooks", p, n);
	rc = hook_read("hooks", &t, message, sizeof message);
	CHECK(rc == Q_OK ? t != NULL && message[0] == '\0' : t == NULL && strlen(message) > 8);
	if (rc != Q_OK) {
		CHECK(rc == Q_CONFIG || rc == Q_NOINPUT || rc == Q_PERM);
		return;
	}
	rc = hook_head(t, &(struct hook_request){ .method = "POST", .target = "/a?b" }, &h, &max, &allow);
	CHECK(rc == 0 ? h != NULL && max > 0 : rc == 404 || rc == 405);
	if (rc == 0) {
		struct hook_request r = { .method = "POST", .target = "/a?b", .body = "{}", .len = 2 };
		struct hook_verdict v;

		CHECK(hook_judge(h, &r, NOW, &v));
		CHECK(!v.event || strcmp(v.scheme, "insecure-none") == 0);	/* nothing signed it */
		hook_done(&v);
	}
	hook_insecure(t, 0);
	hook_free(t);
}

#define BODY "{\"id\":\"evt_1\",\"type\":\"t\",\"created\":1780401600,\"event_id\":\"e\",\"webhookTimestamp\":1780401600000}"
static const char SECRET[] = "0123456789abcdefghijklmnop", KEY64[] = "whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3A=";

/* Requests that are good, in all that is signed; % in a head: the digits of the signature. */
static const struct { const char *scheme, *message, *head; bool base64; } REQUESTS[] = {
	{ "github", BODY, "X-Hub-Signature-256: sha256=%\r\nX-GitHub-Delivery: d1\r\nX-GitHub-Event: push\r\n", false },
	{ "stripe", "1780401600." BODY, "Stripe-Signature: t=1780401600,v1=%\r\n", false },
	{ "slack", "v0:1780401600:" BODY, "X-Slack-Signature: v0=%\r\nX-Slack-Request-Timestamp: 1780401600\r\n", false },
	{ "shopify", BODY, "X-Shopify-Hmac-SHA256: %\r\nX-Shopify-Webhook-Id: w1\r\n", true },
	{ "standard", "m1.1780401600." BODY, "webhook-signature: v1,%\r\nwebhook-id: m1\r\nwebhook-timestamp: 1780401600\r\n", true },
	{ "zoom", "v0:1780401600:" BODY, "x-zm-signature: v0=%\r\nx-zm-request-timestamp: 1780401600\r\n", false },
	{ "square", "https://h.example/square" BODY, "x-square-hmacsha256-signature: %\r\n", true },
	{ "paddle", "1780401600:" BODY, "Paddle-Signature: ts=1780401600;h1=%\r\n", false },
	{ "linear", BODY, "Linear-Signature: %\r\nLinear-Delivery: l1\r\n", false },
	{ "zendesk", "2026-06-02T12:00:00Z" BODY, "X-Zendesk-Webhook-Signature: %\r\nX-Zendesk-Webhook-Signature-Timestamp: 2026-06-02T12:00:00Z\r\n", true },
};
enum { NREQUESTS = sizeof REQUESTS / sizeof *REQUESTS };
static struct hook_table *hooks;
static char digits_of[NREQUESTS][72], request_of[NREQUESTS][1024];

static void
make_requests(void)
{
	char lines[4096] = "", message[512], head_text[768];
	const char *at;
	struct hook_table *t;

	spew("s1", SECRET, strlen(SECRET));
	spew("s2", KEY64, strlen(KEY64));
	for (int i = 0; i < NREQUESTS; i++) {
		unsigned char mac[32];

		HMAC(EVP_sha256(), SECRET, (int)strlen(SECRET), (const unsigned char *)REQUESTS[i].message, strlen(REQUESTS[i].message), mac, NULL);
		if (REQUESTS[i].base64)
			EVP_EncodeBlock((unsigned char *)digits_of[i], mac, 32);
		else
			for (int k = 0; k < 32; k++)
				sprintf(digits_of[i] + 2 * k, "%02x", mac[k]);
		at = strchr(REQUESTS[i].head, '%');
		snprintf(head_text, sizeof head_text, "%.*s%s%s", (int)(at - REQUESTS[i].head), REQUESTS[i].head, digits_of[i], at + 1);
		snprintf(request_of[i], sizeof request_of[i], "POST /%s HTTP/1.1\r\nHost: h.example\r\n%sContent-Type: application/json\r\n\r\n%s",
		    REQUESTS[i].scheme, head_text, BODY);
		snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "/%s %s %s queue=q%s\n", REQUESTS[i].scheme, REQUESTS[i].scheme,
		    strcmp(REQUESTS[i].scheme, "standard") == 0 ? "s2" : "s1", strcmp(REQUESTS[i].scheme, "square") == 0 ? " url=https://h.example/square" : "");
	}
	strcat(lines, "/event insecure-none queue=q id=json:/id type=json:/t/0 time=json:/at entity=header:X-E keep=X-A,X-B\n"
	    "/form insecure-none queue=q id=form:id type=query:t time=header:X-T entity=form:e\n"
	    "/twilio twilio s1 queue=q url=https://h.example/twilio\n/slack2 slack s1 queue=q\n");
	spew("good", lines, strlen(lines));
	if (hook_read("good", &t, message, sizeof message) != Q_OK)
		failed(message, __LINE__);
	hooks = t;
}

/* Is it accepted?  *body: what came with it. */
static bool
accepted(char *text_of, size_t n, const char **body, size_t *len)
{
	static struct head h;
	struct hook_request r;
	struct hook_verdict v;
	const struct hook *line;
	const char *fault, *allow;
	size_t end = head_end(text_of, n, 0), max;
	bool event;

	if (end == 0 || head_read(text_of, end, &h, &fault) != 0)
		return false;
	*body = text_of + end;
	*len = n - end;
	r = (struct hook_request){ h.method, h.target, h.fields, h.nfields, *body, *len };
	if (hook_head(hooks, &r, &line, &max, &allow) != 0)
		return false;
	CHECK(hook_judge(line, &r, NOW, &v));
	CHECK(v.event ? v.status >= 200 && v.status <= 204 && v.why == NULL : v.status >= 200);
	CHECK(v.event || v.why != NULL || v.answer != NULL);
	CHECK(!v.event || (strlen(v.id) < HOOK_NAME && v.id[0] != '\0' && text_name_fault(v.key) == NULL && strncmp(v.key, v.path + 1, 3) == 0) ||
	    v.key[0] == '/');
	event = v.event;
	hook_done(&v);
	return event;
}

/* A good request, and then bytes of it set, put in and taken out: it may pass only with the body that was signed. */
static void
hook(const char *p, size_t n)
{
	unsigned which = choose(&p, &n, NREQUESTS);
	size_t len = strlen(request_of[which]), got;
	char *r = keep(malloc(2048));
	bool untouched = n == 0;
	const char *body;

	memcpy(r, request_of[which], len);
	for (int i = 0; i < 8 && n > 0; i++) {
		unsigned how = choose(&p, &n, 3);
		size_t at = (choose(&p, &n, 256) << 8 | choose(&p, &n, 256)) % len;

		if (how == 0)
			r[at] = (char)choose(&p, &n, 256);
		else if (how == 1 && len < 2048) {
			memmove(r + at + 1, r + at, len++ - at);
			r[at] = (char)choose(&p, &n, 256);
		} else if (len > 1)
			memmove(r + at, r + at + 1, --len - at);
	}
	r = exactly(r, len);
	if (accepted(r, len, &body, &got))
		CHECK(got == strlen(BODY) && memcmp(body, BODY, got) == 0);
	else
		CHECK(!untouched);
}

/* A request that nobody signed: what is read out of it is short, clean text, and is read again out of what is kept of it. */
static void
event(const char *p, size_t n)
{
	static struct head h;
	struct hook_field kept_fields[HEAD_FIELDS];
	struct hook_request r;
	struct hook_verdict v, again;
	const struct hook *line;
	const char *fault, *allow, *body;
	char *s = exactly(p, n), *headers;
	size_t end = head_end(s, n, 0), max;

	if (end == 0 || head_read(s, end, &h, &fault) != 0)
		return;
	body = exactly(s + end, n - end);
	r = (struct hook_request){ h.method, h.target, h.fields, h.nfields, body, n - end };
	if (hook_head(hooks, &r, &line, &max, &allow) != 0)
		return;
	CHECK(hook_judge(line, &r, NOW, &v));
	if (v.event) {
		CHECK(strcmp(v.scheme, "insecure-none") == 0);
		CHECK(text_name_fault(v.id) == NULL && text_name_fault(v.key) == NULL && strncmp(v.key, v.path, strlen(v.path)) == 0);
		CHECK((*v.type == '\0' || text_name_fault(v.type) == NULL) && (*v.entity == '\0' || text_name_fault(v.entity) == NULL));
		CHECK(v.event_ms == -1 || (v.event_ms > 0 && v.event_ms <= WHEN_MAX));
		headers = string(v.headers, strlen(v.headers));
		CHECK((r.nfields = hook_fields(headers, kept_fields, HEAD_FIELDS)) >= 0);
		r.fields = kept_fields;
		CHECK(hook_judge(line, &r, -1, &again) && again.event && strcmp(v.headers, again.headers) == 0);
		CHECK(strcmp(v.id, again.id) == 0 && strcmp(v.type, again.type) == 0 && strcmp(v.entity, again.entity) == 0 && v.event_ms == again.event_ms);
		hook_done(&again);
	} else
		CHECK(v.status >= 200 && (v.why != NULL || v.answer != NULL));
	hook_done(&v);
}

/* Any text as a signature, '%' in it being the right digits: good only if they are in it. */
static void
signature(const char *p, size_t n)
{
	unsigned which = choose(&p, &n, NREQUESTS);
	const struct sign_scheme *s = sign_scheme(REQUESTS[which].scheme);
	struct sign_secret k;
	struct sign_parts parts = { .id = "m1", .ts = strcmp(s->name, "zendesk") == 0 ? "2026-06-02T12:00:00Z" : "1780401600",
	    .url = "https://h.example/square", .body = BODY, .len = strlen(BODY) };
	const char *fault = NULL;
	char *sig, buf[128];
	struct sign_key key;
	int64_t ms;
	int rc;

	open_out();
	for (size_t i = 0; i < n && p[i] != '\0'; i++)
		if (p[i] == '%')
			fputs(digits_of[which], out.f);
		else
			putc(p[i], out.f);
	sig = close_out();
	parts.signature = sig;
	CHECK(sign_secret(s, s->secret == SIGN_WHSEC ? KEY64 : SECRET, &k, &fault));
	rc = sign_verify(s, &k, 1, &parts, &fault);
	CHECK(rc == 0 || (rc == -1 && fault != NULL));
	if (rc == 0)
		CHECK((REQUESTS[which].base64 ? strstr : strcasestr)(sig, digits_of[which]) != NULL);
	CHECK(sign_verify(sign_scheme("twilio"), &k, 1, &(struct sign_parts){ .signature = "AAAAAAAAAAAAAAAAAAAAAAAAAAA=", .url = "https://h", .body = p, .len = n }, &fault) == -1);
	if (strcmp(sig, digits_of[which]) == 0 && s->form == SIGN_BARE)
		CHECK(rc == 0);

	sig = string(p, n);
	if (sign_key(sig, &key, &fault))
		CHECK(key.n >= 24 && key.n <= 64);
	for (size_t i = 0; sign_name(i) != NULL; i++)
		if (sign_secret(sign_scheme(sign_name(i)), sig, &k, &fault))
			CHECK(k.n >= 1 && k.n <= sizeof k.bytes && (!k.public || k.n == 32));
		else
			CHECK(fault != NULL);
	if (sign_time(SIGN_S, sig, &ms) || sign_time(SIGN_MS, sig, &ms) || sign_time(SIGN_RFC3339, sig, &ms))
		CHECK(ms >= 0 && ms <= WHEN_MAX);
	if (sign_pair(sig, ',', "t", buf, sizeof buf))
		CHECK(strlen(buf) < sizeof buf && strstr(sig, buf) != NULL && strchr(buf, ',') == NULL);
	CHECK(sign_same(sig, sig));
}

/* ---- setting.c, rate.c, slo.c ---- */

static struct db *unopened;			/* no file: it keeps messages */

static void
setting(const char *p, size_t n)
{
	char *name = cut(&p, &n, '='), *value = string(p, n), buf[SETTING_TEXT];
	struct setting s, s2;
	int rc;

	db_clear(unopened);
	rc = setting_parse(unopened, name, &s);
	CHECK(rc == db_status(unopened) && (rc == Q_OK || (rc == Q_DATA && strlen(db_message(unopened)) > 10)));
	if (rc == Q_OK) {
		CHECK(strcmp(setting_text(buf, &s), name) == 0);
		CHECK(setting_parse(unopened, buf, &s2) == Q_OK && memcmp(&s, &s2, sizeof s) == 0);
		rc = setting_value(unopened, &s, value);
		CHECK(rc == db_status(unopened) && (rc == Q_OK || (rc == Q_DATA && strlen(db_message(unopened)) > 10)));
		CHECK(rc != Q_OK || *value == '\0' || text_name_fault(value) == NULL);
	}
}

static void
rate(const char *p, size_t n)
{
	char *s = string(p, n);
	const char *fault = NULL;
	struct share share[BURNS];
	struct rate r = { 0 };
	struct slo slo;
	int which;

	if (rate_parse(s, &r, &fault))
		CHECK(r.period_us >= 1 && r.burst >= 1 && r.burst <= 1000000 && r.burst <= INT64_C(315360000000000) / r.period_us);
	else
		CHECK(fault != NULL);
	if (!slo_parse(s, &slo))
		return;
	CHECK(slo.target_ms > 0 && slo.target_ms <= LONGEST && slo.ppm >= 1 && slo.ppm < 1000000);
	for (int i = 0; i < BURNS; i++) {
		share[i].all = choose(&p, &n, 256);
		share[i].late = share[i].all * choose(&p, &n, 256) / 255;
		CHECK(slo_burn(&slo, &share[i]) >= -1 && (share[i].late > 0 || !slo_missed(&slo, &share[i])));
	}
	which = slo_burning(&slo, share, BURN_3D);
	CHECK(which == -1 || which == BURN_1H || which == BURN_6H || which == BURN_3D);
	CHECK(which == -1 || share[which].late >= 3);
}

/* The control, which is not true: a fault that must be found. */
static void
planted(const char *p, size_t n)
{
	const char *fault;
	int64_t ms;

	if (when_duration(string(p, n), &ms, &fault))
		CHECK(ms < 5 * INT64_C(86400000) || ms % 3600000 == 0);
}

/* ---- running ---- */

static const struct target { const char *name; void (*run)(const char *, size_t); } TARGETS[] = {
	{ "duration", duration }, { "instant", instant }, { "zone", zone }, { "cron", cron }, { "crontab", crontab },
	{ "json", json }, { "pointer", pointer }, { "text", text }, { "record", record }, { "claim", claim },
	{ "retry", retry }, { "url", url }, { "answer", answer }, { "source", source }, { "cursor", cursor }, { "page", page },
	{ "head", head }, { "table", table }, { "hook", hook }, { "event", event }, { "signature", signature }, { "setting", setting }, { "rate", rate },
	{ "planted", planted },
};
enum { NTARGETS = sizeof TARGETS / sizeof *TARGETS };
static const struct target *target;

static void
run(const char *p, size_t n)
{
	input = p;
	input_len = n;
	target->run(p, n);
	while (nkept > 0)
		free(kept[--nkept]);
}

/* All works in the current directory. */
static void
begin(const char *name)
{
	char message[512];
	int status;

	for (int i = 0; i < NTARGETS; i++)
		if (strcmp(TARGETS[i].name, name) == 0)
			target = &TARGETS[i];
	if (target == NULL) {
		fprintf(stderr, "fuzz: no target '%s'; fuzz -l lists them\n", name);
		exit(64);
	}
	target_name = name;
	setenv("Q_NOW", "2026-06-02T12:00:00Z", 1);
	setenv("TZ", "UTC", 1);
	db_open(&unopened, "none", DB_READ);
	if (unopened == NULL || (wire = http_open()) == NULL)
		failed("memory", __LINE__);
	make_requests();
	for (int i = 0; i < NSOURCES; i++) {
		spew("source", SOURCES[i], strlen(SOURCES[i]));
		if (!source_read(&sources[i], "source", false, &status, message, sizeof message))
			failed(message, __LINE__);
	}
}

#ifdef FUZZ
int LLVMFuzzerInitialize(int *, char ***);
int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	begin(getenv("FUZZ") != NULL ? getenv("FUZZ") : "");
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	run((const char *)p, n);
	return 0;
}
#else
enum { CASES = 2048, INPUT_MAX = 4096 };
static struct span cases[CASES], words[CASES];
static int ncases, nwords;
static uint64_t state;

static size_t
any(size_t most)			/* below it; xorshift64* */
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return most == 0 ? 0 : (size_t)((state * UINT64_C(2685821657736338717)) >> 33) % most;
}

static void
read_corpus(const char *file)
{
	FILE *f = fopen(file, "r");
	char *line = NULL, *at, *bytes;
	size_t cap = 0, n = strlen(target_name);
	ssize_t len;

	if (f == NULL) {
		fprintf(stderr, "fuzz: %s: %s\n", file, strerror(errno));
		exit(66);
	}
	while ((len = getline(&line, &cap, f)) > 0) {
		bool word = *line == '+';

		len -= line[len - 1] == '\n';
		at = line + word;
		if (strncmp(at, target_name, n) != 0 || at[n] != '\t' || (word ? nwords : ncases) == CASES)
			continue;
		at += n + 1;
		if ((bytes = malloc((size_t)len + 1)) == NULL)
			failed("memory", __LINE__);
		(word ? words : cases)[word ? nwords++ : ncases++] = (struct span){ bytes, from_tsv(at, (size_t)(line + len - at), bytes) };
	}
	free(line);
	fclose(f);
}

/* A byte, a bit, a word, a part of itself or of another case: somewhere. */
static size_t
change(char *p, size_t n)
{
	static const char ODD[] = "\0\n\r\t \"\\%/.:;,-+=<>[]{}0179aZ\x7f\x80\xc3\xe2\xff";
	size_t at = any(n + 1), len;
	struct span from;

	switch (any(7)) {
	case 0:
		if (at < n)
			p[at] ^= (char)(1 << any(8));
		return n;
	case 1:
		if (at < n)
			p[at] = ODD[any(sizeof ODD - 1)];
		return n;
	case 2:
		if (at < n)
			p[at] = (char)any(256);
		return n;
	case 3:				/* take out */
		len = any(n - at + 1);
		len = len > 8 && any(4) != 0 ? 1 + any(8) : len;
		memmove(p + at, p + at + len, n - at - len);
		return n - len;
	case 4:
		from = (struct span){ &ODD[any(sizeof ODD - 1)], 1 };
		break;
	case 5:
		from = nwords > 0 ? words[any((size_t)nwords)] : (struct span){ &ODD[any(sizeof ODD - 1)], 1 };
		break;
	default:
		from = cases[any((size_t)ncases)];
		len = any(from.n + 1);
		from = (struct span){ from.p + any(from.n - len + 1), len };
	}
	if (n + from.n > INPUT_MAX)
		return n;
	memmove(p + at + from.n, p + at, n - at);
	memcpy(p + at, from.p, from.n);
	return n + from.n;
}

static void
tell(int sig)
{
	fprintf(stderr, "fuzz: %s: signal %d with the input\n%s\t", target_name, sig, target_name);
	text_tsv(stderr, input, input_len);
	fputs("\n", stderr);
	fflush(stderr);
	signal(sig, SIG_DFL);
	raise(sig);
}

int
main(int argc, char *argv[])
{
	static char buf[INPUT_MAX];
	struct span from;
	long runs;
	size_t n;

	if (argc == 2 && strcmp(argv[1], "-l") == 0) {
		for (int i = 0; i < NTARGETS; i++)
			puts(TARGETS[i].name);
		return 0;
	}
	if (argc != 5) {
		fputs("usage: fuzz TARGET RUNS SEED CORPUS\n", stderr);
		return 64;
	}
	begin(argv[1]);
	runs = strtol(argv[2], NULL, 10);
	for (const char *s = argv[1]; *s != '\0'; s++)
		state = state * 31 + (unsigned char)*s;
	state = (state + strtoull(argv[3], NULL, 10)) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	read_corpus(argv[4]);
	if (ncases == 0)
		failed("the target has a case in the corpus", __LINE__);
	for (size_t i = 0; i < 5; i++)
		signal((int[]){ SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGALRM }[i], tell);
	for (int i = 0; i < ncases; i++) {
		alarm(20);
		run(cases[i].p, cases[i].n);
	}
	for (long i = 0; i < runs; i++) {
		if (i % 1000 == 0)
			alarm(60);
		from = cases[any((size_t)ncases)];
		n = from.n < INPUT_MAX ? from.n : INPUT_MAX;
		memcpy(buf, from.p, n);
		for (size_t k = 1 + any(4); k > 0; k--)
			n = change(buf, n);
		run(buf, n);
	}
	printf("%s: %d cases, %ld runs, seed %s\n", target_name, ncases, runs, argv[3]);
	return 0;
}
#endif
