/* source.c - the description of an API: reading and checking the file, and its secret */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "secret.h"
#include "source.h"

enum { FILE_MAX = 1 << 20 };

enum type { TEXT, POINTER, OBJECT, FLAG, NUMBER, SPAN, ANY };

static const struct field {
	const char *name;
	enum type type;
	size_t at;			/* in struct source; ANY: taken apart below */
	int64_t least, most, absent;	/* of numbers; of spans absent, in ms */
	bool shapes;			/* it decides which items come */
} FIELDS[] = {
#define AT(x) offsetof(struct source, x)
	{ "name", TEXT, AT(name), 0, 0, 0, false },
	{ "url", TEXT, AT(url), 0, 0, 0, true },
	{ "method", TEXT, AT(method), 0, 0, 0, true },
	{ "query", OBJECT, AT(query), 0, 0, 0, true },
	{ "headers", OBJECT, AT(headers), 0, 0, 0, false },
	{ "body", ANY, 0, 0, 0, 0, true },
	{ "auth", ANY, 0, 0, 0, 0, false },
	{ "whoami", TEXT, AT(whoami), 0, 0, 0, false },
	{ "probe", TEXT, AT(probe), 0, 0, 0, false },
	{ "insecure_http", FLAG, AT(insecure_http), 0, 0, 0, false },
	{ "redirects", FLAG, AT(redirects), 0, 0, 0, false },
	{ "timeout", SPAN, AT(timeout_ms), 0, 0, HTTP_TIMEOUT_MS, false },
	{ "max_body", NUMBER, AT(max_body), 1, INT64_C(1) << 30, HTTP_BODY_MAX, false },
	{ "any_type", FLAG, AT(any_type), 0, 0, 0, false },
	{ "items", POINTER, AT(items), 0, 0, 0, true },
	{ "id", ANY, 0, 0, 0, 0, true },
	{ "ignore", ANY, 0, 0, 0, 0, true },
	{ "entity", POINTER, AT(entity), 0, 0, 0, false },
	{ "ok", OBJECT, AT(ok), 0, 0, 0, false },
	{ "error", POINTER, AT(error), 0, 0, 0, false },
	{ "limited", OBJECT, AT(limited), 0, 0, 0, false },
	{ "limited_text", TEXT, AT(limited_text), 0, 0, 0, false },
	{ "denied", OBJECT, AT(denied), 0, 0, 0, false },
	{ "gone", ANY, 0, 0, 0, 0, false },
	{ "cursor", POINTER, AT(cursor), 0, 0, 0, true },
	{ "cursor_type", ANY, 0, 0, 0, 0, true },
	{ "cursor_format", TEXT, AT(spec.format), 0, 0, 0, true },
	{ "zone", TEXT, AT(spec.zone), 0, 0, 0, true },
	{ "granularity", SPAN, AT(spec.granularity_ms), 0, 0, 0, true },
	{ "shift", SPAN, AT(spec.shift_ms), 0, 0, 0, true },
	{ "lookback", SPAN, AT(spec.lookback_ms), 0, 0, 0, false },
	{ "missing_cursor", ANY, 0, 0, 0, 0, false },
	{ "order", ANY, 0, 0, 0, 0, true },
	{ "next", ANY, 0, 0, 0, 0, true },
	{ "size", NUMBER, AT(size), 1, 1000000, -1, false },
	{ "first_page", NUMBER, AT(first_page), 0, 1, 1, false },
	{ "more", POINTER, AT(more), 0, 0, 0, false },
	{ "done", POINTER, AT(done), 0, 0, 0, false },
	{ "final", ANY, 0, 0, 0, 0, true },
	{ "stable", FLAG, AT(stable), 0, 0, 0, false },
	{ "start", TEXT, AT(start), 0, 0, 0, false },
	{ "conditional", FLAG, AT(conditional), 0, 0, 0, false },
	{ "max_skew", SPAN, AT(max_skew_ms), 0, 0, 10 * 60 * 1000, false },
	{ "max_gap", SPAN, AT(max_gap_ms), 0, 0, 0, false },
	{ "max_pages", NUMBER, AT(max_pages), 1, INT64_C(1) << 40, 1000, false },
	{ "max_empty", NUMBER, AT(max_empty), 1, INT64_C(1) << 40, 50, false },
	{ "max_seen", NUMBER, AT(max_seen), 1, INT64_C(1) << 40, 1000000, false },
	{ "cap", NUMBER, AT(cap), 1, INT64_C(1) << 40, -1, false },
	{ "rate", TEXT, AT(rate), 0, 0, 0, false },
	{ "retries", NUMBER, AT(retries), 0, 100, 4, false },
	{ "max_wait", SPAN, AT(max_wait_ms), 0, 0, 5 * 60 * 1000, false },
	{ "queue", TEXT, AT(queue), 0, 0, 0, false },
	{ "type", TEXT, AT(type), 0, 0, 0, false },
	{ "priority", NUMBER, AT(priority), 0, 9, -1, false },
#undef AT
};
#define NFIELDS (sizeof FIELDS / sizeof *FIELDS)

static const char *const ORDERS[] = { "asc", "desc", "any", "opaque", NULL };
static const char *const TYPES[] = { "time", "epoch", "epoch_ms", "epoch_us", "int", "decimal", "none", NULL };
static const char *const NEXTS[] = { "link", "url", "token", "page", "offset", "last", "none", NULL };
static const char *const MISSING[] = { "fail", "emit", NULL };
static const char *const PLACES[] = { "cursor", "token", "page", "offset", "size", "start", "from", "to", "sync", NULL };

struct fault { int status; char *text; size_t size; const struct source *src; };

/* The line of a member of this name, of the outermost if there are several; 0: unknown. */
static int
line_of(const struct source *s, const char *key)
{
	int line = 1, depth = 0, best = 0, at = 0;
	size_t n = strlen(key);
	const char *from, *p;

	for (p = s->text; *p != '\0'; p++) {
		line += *p == '\n';
		depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
		if (*p != '"')
			continue;
		for (from = ++p; *p != '"' && *p != '\0'; p++)
			p += *p == '\\' && p[1] != '\0';
		if (*p == '\0')
			break;
		if ((size_t)(p - from) == n && memcmp(from, key, n) == 0 && p[1 + strspn(p + 1, " \t\r\n")] == ':' && (at == 0 || depth < best)) {
			best = depth;
			at = line;
		}
	}
	return at;
}

static bool bad(struct fault *, int status, const char *key, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* "FILE:LINE: "key": ..." */
static bool
bad(struct fault *f, int status, const char *key, const char *fmt, ...)
{
	int n, line = key != NULL ? line_of(f->src, key) : 0;
	char where[20] = "";
	va_list ap;

	f->status = status;
	if (line > 0)
		snprintf(where, sizeof where, ":%d", line);
	n = snprintf(f->text, f->size, "%s%s: ", f->src->path, where);
	if (key != NULL && n >= 0 && (size_t)n < f->size)
		n += snprintf(f->text + n, f->size - (size_t)n, "\"%s\": ", key);
	if (n < 0 || (size_t)n >= f->size)
		return false;
	va_start(ap, fmt);
	vsnprintf(f->text + n, f->size - (size_t)n, fmt, ap);
	va_end(ap);
	return false;
}

/* ---- secrets ---- */

static char *
secret_command(const char *command, const char **why)
{
	char buf[SECRET_MAX + 1];
	FILE *p = popen(command, "r");
	size_t n;

	*why = "cannot be run";
	if (p == NULL)
		return NULL;
	n = fread(buf, 1, sizeof buf, p);
	if (pclose(p) != 0) {
		*why = "failed";
		return NULL;
	}
	*why = "is too large for a secret";
	return n <= SECRET_MAX ? secret_line(buf, n, why) : NULL;
}

/* Where it stands, relative to the folder of the source file, since a crontab's is another. */
static char *
beside(const struct source *s, const char *path)
{
	const char *slash = strrchr(s->path, '/');
	size_t n = *path == '/' || slash == NULL ? 0 : (size_t)(slash - s->path) + 1;
	char *full = malloc(n + strlen(path) + 1);

	if (full != NULL) {
		memcpy(full, s->path, n);
		strcpy(full + n, path);
	}
	return full;
}

static char *
base64(const char *text)
{
	size_t n = strlen(text);
	char *to = malloc(4 * ((n + 2) / 3) + 1);

	if (to != NULL)
		EVP_EncodeBlock((unsigned char *)to, (const unsigned char *)text, (int)n);
	return to;
}

/* {"bearer_file": F}, {"basic_env": V}, {"header": "X-Api-Key", "command": C}, {"query": "key", "file": F}; and "credential". */
static bool
read_auth(struct source *s, json_t *auth, struct fault *f)
{
	static const char *const KEYS[] = { "bearer_file", "bearer_env", "bearer_command", "basic_file", "basic_env", "basic_command",
	    "file", "env", "command", "header", "query", "credential", NULL };
	const char *key, *from = NULL, *how, *value = NULL, *why, *near, *plain;
	char *path, *secret = NULL, *coded, *whole;
	json_t *v;
	int status = Q_CONFIG;

	if (!json_is_object(auth))
		return bad(f, Q_CONFIG, "auth", "is not an object");
	json_object_foreach(auth, key, v) {
		if (!json_is_string(v) || *json_string_value(v) == '\0')
			return bad(f, Q_CONFIG, key, "is not a text");
		if (strcmp(key, "header") == 0)
			s->secret_header = json_string_value(v);
		else if (strcmp(key, "query") == 0)
			s->secret_query = json_string_value(v);
		else if (strcmp(key, "credential") == 0)
			s->credential = json_string_value(v);
		else {
			for (int i = 0; KEYS[i] != NULL; i++)
				if (strcmp(KEYS[i], key) == 0) {
					if (from != NULL)
						return bad(f, Q_CONFIG, key, "there is \"%s\" already", from);
					from = KEYS[i];
					value = json_string_value(v);
				}
			if (from == NULL || strcmp(from, key) != 0) {
				near = text_nearest(key, KEYS);
				return bad(f, Q_CONFIG, key, "unknown in \"auth\"%s%s%s", near != NULL ? "; did you mean \"" : "",
				    near != NULL ? near : "", near != NULL ? "\"?" : "");
			}
		}
	}
	if (from == NULL)
		return s->credential != NULL || bad(f, Q_CONFIG, "auth", "says not where the secret is: \"bearer_file\" or others");
	how = strrchr(from, '_') != NULL ? strrchr(from, '_') + 1 : from;
	if (how != from && (s->secret_header != NULL || s->secret_query != NULL))
		return bad(f, Q_CONFIG, from, "goes without \"header\" and \"query\"");
	if (how == from && (s->secret_header != NULL) == (s->secret_query != NULL))
		return bad(f, Q_CONFIG, from, "needs \"header\" or \"query\", one of them");
	if (strcmp(how, "env") == 0) {
		plain = getenv(value);
		if (plain == NULL)
			return bad(f, Q_CONFIG, from, "the environment has no %s", value);
		secret = secret_line(plain, strlen(plain), &why);
	} else if (strcmp(how, "command") == 0)
		secret = secret_command(value, &why);
	else if ((path = beside(s, value)) != NULL) {
		secret = secret_read(path, &status, &why);
		free(path);
	} else
		why = strerror(errno);
	if (secret == NULL)
		return bad(f, status, from, "%s%s %s", value, *why >= 'A' && *why <= 'Z' ? ":" : "", why);	/* the system's begin so */
	s->secret = secret;
	if (how == from)
		return true;
	s->secret_header = "Authorization";
	coded = *from == 'b' && from[1] == 'a' ? base64(secret) : strdup(secret);
	whole = coded != NULL ? malloc(strlen(coded) + 8) : NULL;
	if (whole == NULL)
		return bad(f, Q_TEMP, NULL, "out of memory");
	sprintf(whole, "%s %s", from[1] == 'a' ? "Basic" : "Bearer", coded);
	free(coded);
	free(secret);
	s->secret = whole;
	return true;
}

/* ---- the file ---- */

static bool
one_of(const char *const *names, const char *word, int *i)
{
	for (*i = 0; names[*i] != NULL; ++*i)
		if (strcmp(names[*i], word) == 0)
			return true;
	return false;
}

static bool
choose(const char *key, json_t *v, const char *const *names, int *i, struct fault *f)
{
	char all[120] = "";
	size_t n = 0;

	if (json_is_string(v) && one_of(names, json_string_value(v), i))
		return true;
	for (int k = 0; names[k] != NULL && n < sizeof all; k++)
		n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", k > 0 ? ", " : "", names[k]);
	return bad(f, Q_CONFIG, key, "is not one of: %s", all);
}

/* "kind" or "kind:/pointer". */
static bool
read_next(struct source *s, json_t *v, struct fault *f)
{
	const char *text = json_string_value(v), *colon = text != NULL ? strchr(text, ':') : NULL;
	char kind[16];
	int i;

	snprintf(kind, sizeof kind, "%.*s", colon != NULL ? (int)(colon - text) : 15, text != NULL ? text : "");
	if (!one_of(NEXTS, kind, &i) || (colon != NULL) != (i == NEXT_URL || i == NEXT_TOKEN) || (colon != NULL && !json_pointer(colon + 1)))
		return bad(f, Q_CONFIG, "next", "is not one of: link, url:/POINTER, token:/POINTER, page, offset, last, none");
	s->next = (enum source_next)i;
	s->next_at = colon != NULL ? colon + 1 : NULL;
	return true;
}

static bool
read_final(struct source *s, json_t *v, struct fault *f)
{
	const char *text = json_string_value(v);

	if (text == NULL || (strncmp(text, "token:", 6) != 0 && strncmp(text, "url:", 4) != 0) || !json_pointer(strchr(text, ':') + 1))
		return bad(f, Q_CONFIG, "final", "is neither token:/POINTER nor url:/POINTER");
	s->final_is_url = *text == 'u';
	s->final = strchr(text, ':') + 1;
	return true;
}

static bool
read_ids(struct source *s, json_t *v, struct fault *f)
{
	size_t n = json_is_array(v) ? json_array_size(v) : 1;

	if (n < 1 || n > sizeof s->id / sizeof *s->id)
		return bad(f, Q_CONFIG, "id", "is one pointer, or 1 to 4 of them");
	for (size_t i = 0; i < n; i++) {
		json_t *one = json_is_array(v) ? json_array_get(v, i) : v;

		if (!json_is_string(one) || !json_pointer(json_string_value(one)))
			return bad(f, Q_CONFIG, "id", "is not a JSON pointer such as /id");
		s->id[s->nid++] = json_string_value(one);
	}
	return true;
}

static bool
read_list(json_t **list, const char *key, json_t *v, bool numbers, struct fault *f)
{
	json_t *one;
	size_t i;

	if (!json_is_array(v) || json_array_size(v) > 16)
		return bad(f, Q_CONFIG, key, "is not an array of at most 16");
	json_array_foreach(v, i, one)
		if (numbers ? !json_is_integer(one) : !json_is_string(one) || !json_pointer(json_string_value(one)))
			return bad(f, Q_CONFIG, key, numbers ? "has what is no HTTP status" : "has what is no JSON pointer");
	*list = v;
	return true;
}

static bool
read_any(struct source *s, const char *key, json_t *v, struct fault *f)
{
	int i = 0;

	if (strcmp(key, "auth") == 0)
		return true;		/* last: it may run a command */
	if (strcmp(key, "body") == 0) {
		s->body = v;
		return json_is_object(v) || json_is_array(v) || bad(f, Q_CONFIG, key, "is neither an object nor an array");
	}
	if (strcmp(key, "id") == 0)
		return read_ids(s, v, f);
	if (strcmp(key, "ignore") == 0)
		return read_list(&s->ignore, key, v, false, f);
	if (strcmp(key, "gone") == 0)
		return read_list(&s->gone, key, v, true, f);
	if (strcmp(key, "next") == 0)
		return read_next(s, v, f);
	if (strcmp(key, "final") == 0)
		return read_final(s, v, f);
	if (strcmp(key, "order") == 0 && choose(key, v, ORDERS, &i, f))
		s->order = (enum source_order)i;
	else if (strcmp(key, "cursor_type") == 0 && choose(key, v, TYPES, &i, f))
		s->spec.type = (enum cursor_type)i;
	else if (strcmp(key, "missing_cursor") == 0 && choose(key, v, MISSING, &i, f))
		s->emit_missing = i == 1;
	else
		return f->status == Q_OK;
	return true;
}

static bool
read_field(struct source *s, const struct field *d, json_t *v, struct fault *f)
{
	void *at = (char *)s + d->at;
	const char *text = json_string_value(v), *why;
	int64_t ms;

	switch (d->type) {
	case TEXT:
		if (text == NULL || *text == '\0')
			return bad(f, Q_CONFIG, d->name, "is not a text");
		*(const char **)at = text;
		return true;
	case POINTER:
		if (text == NULL || !json_pointer(text))
			return bad(f, Q_CONFIG, d->name, "is not a JSON pointer such as /items (RFC 6901)");
		*(const char **)at = text;
		return true;
	case OBJECT:
		if (!json_is_object(v))
			return bad(f, Q_CONFIG, d->name, "is not an object");
		*(json_t **)at = v;
		return true;
	case FLAG:
		if (!json_is_boolean(v))
			return bad(f, Q_CONFIG, d->name, "is neither true nor false");
		*(bool *)at = json_is_true(v);
		return true;
	case NUMBER:
		if (!json_is_integer(v) || json_integer_value(v) < d->least || json_integer_value(v) > d->most)
			return bad(f, Q_CONFIG, d->name, "is not a whole number from %lld to %lld", (long long)d->least, (long long)d->most);
		*(int64_t *)at = json_integer_value(v);
		return true;
	case SPAN:
		if (text == NULL || !when_duration(text, &ms, &why))
			return bad(f, Q_CONFIG, d->name, "is not a duration such as 5m");
		*(int64_t *)at = ms;
		return true;
	default:
		return read_any(s, d->name, v, f);
	}
}

/* {word}s that are no placeholder, in what is sent as it stands otherwise. */
static bool
check_places(const char *key, json_t *texts, struct fault *f)
{
	const char *name, *p, *end;
	char word[24];
	json_t *v;
	int i;

	json_object_foreach(texts, name, v) {
		if (json_is_integer(v)) {	/* "limit": 100 */
			json_object_set_new(texts, name, json_sprintf("%lld", (long long)json_integer_value(v)));
			v = json_object_get(texts, name);
		}
		if (!json_is_string(v))
			return bad(f, Q_CONFIG, name, "in \"%s\": is neither a text nor a whole number", key);
		for (p = strchr(json_string_value(v), '{'); p != NULL; p = strchr(p + 1, '{')) {
			end = strchr(p, '}');
			if (end == NULL || end - p > (int)sizeof word - 2)
				continue;
			snprintf(word, sizeof word, "%.*s", (int)(end - p - 1), p + 1);
			if (strspn(word, "abcdefghijklmnopqrstuvwxyz_") == strlen(word) && *word != '\0' && !one_of(PLACES, word, &i))
				return bad(f, Q_CONFIG, name, "in \"%s\": no placeholder {%s}; there are {cursor} {token} {page} {offset} "
				    "{size} {start} {from} {to} {sync}", key, word);
		}
	}
	return true;
}

bool
source_sends(const struct source *s, const char *name)
{
	char place[2][16];

	snprintf(place[0], sizeof place[0], "{%s}", name);
	snprintf(place[1], sizeof place[1], "{#%s}", name);
	return strstr(s->sent, place[0]) != NULL || strstr(s->sent, place[1]) != NULL;
}

/* url: NULL if it is not there; of those besides "url" itself the origin is the same, since the secret goes there. */
static bool
check_url(struct fault *f, const struct source *s, const char *key, const char *url)
{
	const char *why;
	int rc = url == NULL ? Q_OK : http_url(url, s->insecure_http, &why);

	if (rc == Q_OK && url != NULL && url != s->url)
		rc = http_same_origin(url, s->url);
	if (rc == Q_TEMP)
		return bad(f, Q_TEMP, NULL, "out of memory");
	return rc == Q_OK || bad(f, Q_CONFIG, key, "%s", url == s->url ? why : "is not a URL of the same origin as \"url\", where the secret goes");
}

/* What the members say together. */
static bool
check_whole(struct source *s, struct fault *f)
{
	static const char *const NEEDED[] = { "name", "url", "items", "id", "next" };
	struct cursor_key key;
	const char *why;

	for (size_t i = 0; i < sizeof NEEDED / sizeof *NEEDED; i++)
		if (json_object_get(s->root, NEEDED[i]) == NULL)
			return bad(f, Q_CONFIG, NULL, "\"%s\" is missing; see man 5 qpoll", NEEDED[i]);
	if (!text_queue(s->name))
		return bad(f, Q_CONFIG, "name", "'%s' is not a name; a name is 1 to 64 of A-Z a-z 0-9 . _ -", s->name);
	if (s->queue != NULL && !text_queue(s->queue))
		return bad(f, Q_CONFIG, "queue", "'%s' is not the name of a queue", s->queue);
	if (s->rate != NULL && !text_queue(s->rate))
		return bad(f, Q_CONFIG, "rate", "'%s' is not the name of a rate", s->rate);
	if (s->type != NULL && text_name_fault(s->type) != NULL)
		return bad(f, Q_CONFIG, "type", "%s", text_name_fault(s->type));
	if (!check_url(f, s, "url", s->url) || !check_url(f, s, "whoami", s->whoami) || !check_url(f, s, "probe", s->probe))
		return false;
	if (strchr(s->url, '{') != NULL)
		return bad(f, Q_CONFIG, "url", "placeholders stand in \"query\" or \"body\", not here");
	if (!check_places("query", s->query, f) || !check_places("headers", s->headers, f))
		return false;
	if (s->order == ORDER_OPAQUE) {
		if (s->cursor != NULL || (s->next != NEXT_TOKEN && s->next != NEXT_URL))
			return bad(f, Q_CONFIG, "order", "opaque: the token is the cursor, so \"next\" is token: or url:/POINTER and there is no \"cursor\"");
		s->spec.type = CURSOR_NONE;
	} else if (s->cursor == NULL) {
		if (s->order != ORDER_ANY)
			return bad(f, Q_CONFIG, NULL, "\"cursor\" is missing, the pointer to the value in an item that grows; a list without one is \"order\": \"any\"");
		s->spec.type = CURSOR_NONE;
	} else if (s->spec.type == CURSOR_NONE)
		return bad(f, Q_CONFIG, "cursor_type", "none: then there is no \"cursor\"");
	if (!cursor_spec_check(&s->spec, &why))
		return bad(f, Q_CONFIG, NULL, "%s", why);
	if (s->cursor != NULL && s->start == NULL)
		return bad(f, Q_CONFIG, NULL, "\"start\" is missing: a value to begin with, \"all\", or \"newest\"");
	if (s->cursor == NULL && s->start != NULL && strcmp(s->start, "newest") == 0)
		return bad(f, Q_CONFIG, "start", "newest: only a \"cursor\" says which is the newest");
	if (s->cursor != NULL && strcmp(s->start, "all") != 0 && strcmp(s->start, "newest") != 0 && !cursor_key(&s->spec, s->start, &key, &why))
		return bad(f, Q_CONFIG, "start", "'%.120s' %s; or it is \"all\" or \"newest\"", s->start, why);
	if (s->order == ORDER_ASC && !source_sends(s, "cursor"))
		return bad(f, Q_CONFIG, "order", "asc: nothing in \"query\" or \"body\" asks from the {cursor} on");
	if (s->next == NEXT_TOKEN && !source_sends(s, "token"))
		return bad(f, Q_CONFIG, "next", "nothing in \"query\" or \"body\" sends the {token}");
	if (s->next == NEXT_PAGE && !source_sends(s, "page"))
		return bad(f, Q_CONFIG, "next", "nothing in \"query\" or \"body\" sends the {page}");
	if (s->next == NEXT_OFFSET && !source_sends(s, "offset"))
		return bad(f, Q_CONFIG, "next", "nothing in \"query\" or \"body\" sends the {offset}");
	if (s->next == NEXT_LAST && !source_sends(s, "token"))
		return bad(f, Q_CONFIG, "next", "nothing in \"query\" or \"body\" sends the id of the last item, {token}");
	if (s->final != NULL && s->order != ORDER_OPAQUE)
		return bad(f, Q_CONFIG, "final", "is for \"order\": \"opaque\" only");
	s->closing = source_sends(s, "sync");
	if (s->closing && (s->final == NULL || s->final_is_url))
		return bad(f, Q_CONFIG, NULL, "{sync} is the closing token, which \"final\": \"token:/POINTER\" gives");
	return true;
}

/* False: out of memory. */
static bool
fingerprint(struct source *s)
{
	unsigned char hash[EVP_MAX_MD_SIZE];
	json_t *shape = json_object();
	int rc = 0;
	char *text;
	unsigned n;

	for (size_t i = 0; i < NFIELDS; i++)
		if (FIELDS[i].shapes && json_object_get(s->root, FIELDS[i].name) != NULL)
			rc |= json_object_set(shape, FIELDS[i].name, json_object_get(s->root, FIELDS[i].name));
	text = rc == 0 ? json_dumps(shape, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
	json_decref(shape);
	if (text != NULL && EVP_Digest(text, strlen(text), hash, &n, EVP_sha256(), NULL) == 1)
		for (unsigned i = 0; i < 32; i++)
			sprintf(s->config + 2 * i, "%02x", hash[i]);
	free(text);
	return s->config[0] != '\0';
}

static bool
load(struct source *s, bool secret, struct fault *f)
{
	const char *names[NFIELDS + 1], *key, *near;
	int fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	json_error_t e;
	json_t *v;
	size_t n = 0, i;
	ssize_t got = 0;

	if (fd == -1)
		return bad(f, errno == ENOENT ? Q_NOINPUT : errno == EACCES ? Q_PERM :
		    errno == EMFILE || errno == ENFILE || errno == EIO ? Q_IO : Q_CONFIG, NULL, "%s", strerror(errno));
	while (n < FILE_MAX && (got = read(fd, s->text + n, FILE_MAX - n)) > 0)
		n += (size_t)got;
	s->text[n] = '\0';
	close(fd);
	if (got != 0)
		return bad(f, got == -1 && errno != EISDIR ? Q_IO : Q_CONFIG, NULL, "%s", got == -1 ? strerror(errno) : "is larger than 1 MiB");
	if ((s->root = json_loadb(s->text, n, JSON_REJECT_DUPLICATES, &e)) == NULL) {
		f->status = Q_CONFIG;
		snprintf(f->text, f->size, "%s:%d: is not JSON: %s", s->path, e.line, e.text);
		return false;
	}
	if (!json_is_object(s->root))
		return bad(f, Q_CONFIG, NULL, "is not a JSON object");
	for (i = 0; i < NFIELDS; i++)
		names[i] = FIELDS[i].name;
	names[i] = NULL;
	json_object_foreach(s->root, key, v) {
		for (i = 0; i < NFIELDS && strcmp(FIELDS[i].name, key) != 0; i++)
			;
		if (i == NFIELDS) {
			near = text_nearest(key, names);
			return bad(f, Q_CONFIG, key, "unknown%s%s%s", near != NULL ? "; did you mean \"" : "; see man 5 qpoll",
			    near != NULL ? near : "", near != NULL ? "\"?" : "");
		}
		if (!read_field(s, &FIELDS[i], v, f))
			return false;
	}
	v = json_pack("[O?O?]", s->query, s->body);
	s->sent = json_dumps(v, JSON_COMPACT);
	json_decref(v);
	if (s->sent == NULL)
		return bad(f, Q_TEMP, NULL, "out of memory");
	v = json_object_get(s->root, "auth");
	return check_whole(s, f) && (v == NULL || !secret || read_auth(s, v, f));
}

bool
source_read(struct source *s, const char *path, bool secret, int *status, char *message, size_t size)
{
	struct fault f = { Q_OK, message, size, s };

	memset(s, 0, sizeof *s);
	for (size_t i = 0; i < NFIELDS; i++)
		if (FIELDS[i].type == NUMBER || FIELDS[i].type == SPAN)
			*(int64_t *)((char *)s + FIELDS[i].at) = FIELDS[i].absent;
	s->path = strdup(path);
	s->text = malloc(FILE_MAX + 1);
	if (s->path == NULL || s->text == NULL) {
		snprintf(message, size, "out of memory");
		*status = Q_TEMP;
		return false;
	}
	if (!load(s, secret, &f)) {
		*status = f.status;
		return false;
	}
	if (!fingerprint(s)) {
		snprintf(message, size, "out of memory");
		*status = Q_TEMP;
		return false;
	}
	return true;
}
