/* hook.c - the table of qhook, and what a request is worth by it */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "hook.h"
#include "json.h"
#include "q.h"
#include "secret.h"
#include "sign.h"

enum { FILE_MAX = 1 << 20, WORDS = 64, HOOKS = 1000, KEEP = 16, PATH_BYTES = 128, SECRET_MIN = 16, CHALLENGE_MAX = 4096,
	TOLERANCE_MS = 5 * 60 * 1000 };

struct hook {
	const char *path;
	int line;
	bool health;
	struct sign_scheme scheme, also;	/* with what the line says otherwise; also.name NULL: none */
	struct sign_secret *secrets;
	const char *secret_names[SIGN_SECRETS];
	int nsecrets;
	const char *queue, *entity, *url;
	char *verify;				/* token of a GET handshake */
	int64_t past_ms, future_ms;		/* 0: its age does not matter */
	size_t max;
	bool by_body;				/* the body's digest is the id */
	const char *keep[KEEP];
	int nkeep;
};

struct hook_table {
	char *text;			/* of the file, cut into words */
	struct hook *hooks;
	int n;
};

/* ---- reading the table ---- */

struct fault { const char *file; int line, status; char *message; size_t size; };

__attribute__((format(printf, 3, 4))) static bool
bad(struct fault *f, int status, const char *fmt, ...)
{
	va_list ap;
	int n = f->line > 0 ? snprintf(f->message, f->size, "%s:%d: ", f->file, f->line) : snprintf(f->message, f->size, "%s: ", f->file);

	f->status = status;
	va_start(ap, fmt);
	if (n >= 0 && (size_t)n < f->size)
		vsnprintf(f->message + n, f->size - (size_t)n, fmt, ap);
	va_end(ap);
	return false;
}

/* A word that is none of these. */
static bool
unknown(struct fault *f, const char *word, const char *what, const char *const *names)
{
	const char *near = text_nearest(word, names);

	return near == NULL ? bad(f, Q_CONFIG, "%s: unknown %s", word, what) :
	    bad(f, Q_CONFIG, "%s: unknown %s; did you mean \"%s\"?", word, what, near);
}

static bool
is_header(const char *s)
{
	return *s != '\0' && s[strspn(s, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '\0';
}

static const char *
place_fault(const char *s)
{
	if (strncmp(s, "header:", 7) == 0)
		return is_header(s + 7) ? NULL : "is not the name of a header";
	if (strncmp(s, "json:", 5) == 0)
		return s[5] == '/' && json_pointer(s + 5) ? NULL : "is not a JSON pointer, as in json:/data/id";
	if (strncmp(s, "form:", 5) == 0 || strncmp(s, "query:", 6) == 0)
		return strchr(s, ':')[1] != '\0' ? NULL : "names no field";
	return "is no place: write header:NAME, json:/POINTER, form:FIELD or query:NAME";
}

/* Is what stands there under the signature? */
static bool
is_signed(const struct sign_scheme *s, const char *place)
{
	if (s->alg == SIGN_TOKEN || s->alg == SIGN_NONE)
		return false;
	if (place == s->id && sign_covers(s, "{id}"))
		return true;
	if (*place == 'q')
		return sign_covers(s, "{form}");
	return (*place == 'j' || *place == 'f') && (sign_covers(s, "{body}") || sign_covers(s, "{form}"));
}

static bool
read_path(struct fault *f, const struct hook_table *t, char *path)
{
	if (*path != '/')
		return bad(f, Q_CONFIG, "%s: a path begins with /", path);
	if (strlen(path) > PATH_BYTES)
		return bad(f, Q_CONFIG, "%.40s...: the path is longer than %d bytes", path, PATH_BYTES);
	if (strchr(path, '?') != NULL)
		return bad(f, Q_CONFIG, "%s: a path has no query", path);
	for (const char *p = path; *p != '\0'; p++)
		if (strchr("-._~!$&'()*+,;=:@/0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", *p) == NULL)
			return bad(f, Q_CONFIG, "%s: a byte that a path here cannot have", path);
	if (strstr(path, "//") != NULL || strstr(path, "/./") != NULL || strstr(path, "/../") != NULL)
		return bad(f, Q_CONFIG, "%s: proxies rewrite // /./ and /../", path);
	for (int i = 0; i < t->n; i++)
		if (strcmp(t->hooks[i].path, path) == 0)
			return bad(f, Q_CONFIG, "%s: line %d has this path already", path, t->hooks[i].line);
	return true;
}

/* The secret that is in a file named relative to the table's folder; NULL: told. */
static char *
read_file(struct fault *f, const char *name)
{
	const char *slash = strrchr(f->file, '/'), *why;
	size_t dir = *name == '/' || slash == NULL ? 0 : (size_t)(slash - f->file) + 1;
	char *path = malloc(dir + strlen(name) + 1), *secret;
	int status;

	if (path == NULL) {
		bad(f, Q_TEMP, "out of memory");
		return NULL;
	}
	memcpy(path, f->file, dir);
	strcpy(path + dir, name);
	secret = secret_read(path, &status, &why);
	free(path);
	if (secret == NULL)
		bad(f, status, "%s%s %s", name, *why >= 'A' && *why <= 'Z' ? ":" : "", why);	/* the system's begin so */
	return secret;
}

static void
forget(char *secret)
{
	if (secret != NULL)
		OPENSSL_cleanse(secret, strlen(secret));
	free(secret);
}

static bool
read_secrets(struct fault *f, struct hook *h, char *names)
{
	if ((h->secrets = calloc(SIGN_SECRETS, sizeof *h->secrets)) == NULL)
		return bad(f, Q_TEMP, "out of memory");
	for (char *next; names != NULL; names = next) {
		struct sign_secret *k = &h->secrets[h->nsecrets];
		const char *why = NULL;
		char *text;

		if ((next = strchr(names, ',')) != NULL)
			*next++ = '\0';
		if (*names == '\0')
			return bad(f, Q_CONFIG, "the name of a secret file is empty");
		for (int i = 0; i < h->nsecrets; i++)
			if (strcmp(h->secret_names[i], names) == 0)
				return bad(f, Q_CONFIG, "%s: named twice", names);
		if (h->nsecrets == SIGN_SECRETS)
			return bad(f, Q_CONFIG, "more than %d secrets", SIGN_SECRETS);
		if ((text = read_file(f, names)) == NULL)
			return false;
		if (sign_secret(&h->scheme, text, k, &why) && k->n < SECRET_MIN)
			why = "is shorter than 16 bytes: it could be found by trying";
		forget(text);
		if (why != NULL)
			return bad(f, Q_CONFIG, "%s %s", names, why);
		h->secret_names[h->nsecrets++] = names;
	}
	return true;
}

static bool
read_tolerance(struct fault *f, struct hook *h, char *value)
{
	char *slash = strchr(value, '/');
	const char *why;

	if (h->scheme.ts == NULL || h->scheme.unit == SIGN_UNTIMED)
		return bad(f, Q_CONFIG, "tolerance: %s signs no time", h->scheme.name);
	if (slash != NULL)
		*slash++ = '\0';
	if (!when_duration(value, &h->past_ms, &why))
		return bad(f, Q_CONFIG, "tolerance: %s: %s", value, why);
	h->future_ms = h->past_ms;
	if (slash != NULL && !when_duration(slash, &h->future_ms, &why))
		return bad(f, Q_CONFIG, "tolerance: %s: %s", slash, why);
	if (slash != NULL && (h->past_ms == 0 || h->future_ms == 0))
		return bad(f, Q_CONFIG, "tolerance: 0 stands alone, for no limit");
	return true;
}

static bool
read_url(struct fault *f, struct hook *h, const char *value)
{
	const char *host = strncmp(value, "https://", 8) == 0 ? value + 8 : strncmp(value, "http://", 7) == 0 ? value + 7 : "";

	if (strchr("/?#", *host) != NULL || strpbrk(value, "#@") != NULL)
		return bad(f, Q_CONFIG, "url: %s: not a whole URL, as the sender knows it", value);
	if (!h->scheme.url && !sign_covers(&h->scheme, "{url}"))
		return bad(f, Q_CONFIG, "url: %s signs no URL", h->scheme.name);
	if (sign_covers(&h->scheme, "{form}") && strchr(value, '?') != NULL)
		return bad(f, Q_CONFIG, "url: %s: without a query: that of the request is taken", value);
	h->url = value;
	return true;
}

static bool
read_keep(struct fault *f, struct hook *h, char *value)
{
	for (char *next; value != NULL; value = next) {
		if ((next = strchr(value, ',')) != NULL)
			*next++ = '\0';
		if (!is_header(value))
			return bad(f, Q_CONFIG, "keep: %s: not the name of a header", *value == '\0' ? "(empty)" : value);
		if (h->scheme.alg == SIGN_TOKEN && strcasecmp(value, strchr(h->scheme.signature, ':') + 1) == 0)
			return bad(f, Q_CONFIG, "keep: %s: it is the secret itself", value);
		if (h->nkeep == KEEP)
			return bad(f, Q_CONFIG, "keep: more than %d headers", KEEP);
		h->keep[h->nkeep++] = value;
	}
	return true;
}

/* One of words; its index, or -1: told. */
static int
choice(struct fault *f, const char *key, const char *value, const char *const *words)
{
	char all[128] = "";

	for (int i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], value) == 0)
			return i;
		snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i == 0 ? "" : " ", words[i]);
	}
	bad(f, Q_CONFIG, "%s: %s: not one of %s", key, value, all);
	return -1;
}

static const char *
message_fault(const char *s)
{
	static const char *const parts[] = { "{id}", "{ts}", "{body}", "{url}", "{form}" };
	bool any = false;
	size_t i;

	for (; (s = strpbrk(s, "{}")) != NULL; s += strlen(parts[i]), any = true) {
		for (i = 0; i < 5; i++)
			if (strncmp(s, parts[i], strlen(parts[i])) == 0)
				break;
		if (i == 5)
			return "has braces that are none of {id} {ts} {body} {url} {form}";
	}
	return any ? NULL : "signs nothing of the request";
}

static const char *const KEYS[] = { "queue", "id", "time", "type", "entity", "tolerance", "max", "url", "verify", "keep", "dedup",
	"sig", "prefix", "list", "enc", "alg", "key", "msg", "ts", "unit", NULL };
enum { QUEUE, ID, TIME, TYPE, ENTITY, TOLERANCE, MAX, URL, VERIFY, KEEPS, DEDUP, SIG, PREFIX, LIST, ENC, ALG, KEY, MSG, TS, UNIT, NKEYS };

/* The axes of a scheme, which only hmac has open. */
static bool
read_axes(struct fault *f, struct hook *h, char *const *values)
{
	static const char *const encs[] = { "hex", "base64", NULL }, *const algs[] = { "sha1", "sha256", "sha512", "ed25519", NULL };
	static const char *const keys[] = { "raw", "base64", "hex", NULL }, *const units[] = { "s", "ms", "rfc3339", "none", NULL };
	static const enum sign_secret_form forms[] = { SIGN_PHRASE, SIGN_KEY_BASE64, SIGN_KEY_HEX };
	static const enum sign_unit times[] = { SIGN_S, SIGN_MS, SIGN_RFC3339, SIGN_UNTIMED };
	struct sign_scheme *s = &h->scheme;
	const char *why;
	int i;

	if (strcmp(s->name, "hmac") != 0) {
		for (i = SIG; i < NKEYS; i++)
			if (values[i] != NULL)
				return bad(f, Q_CONFIG, "%s: %s knows it; only hmac is told", KEYS[i], s->name);
		return true;
	}
	if (values[SIG] == NULL)
		return bad(f, Q_CONFIG, "sig: missing: where is the signature? write sig=header:NAME");
	if ((why = place_fault(values[SIG])) != NULL)
		return bad(f, Q_CONFIG, "sig: %s %s", values[SIG], why);
	s->signature = values[SIG];
	if (values[PREFIX] != NULL && values[LIST] != NULL)
		return bad(f, Q_CONFIG, "list: goes without prefix");
	if (values[PREFIX] != NULL) {
		s->form = SIGN_PREFIX;
		s->word = values[PREFIX];
	}
	if (values[LIST] != NULL) {
		char *comma = values[LIST] + strcspn(values[LIST], ",;");

		if (comma == values[LIST] || strchr(values[LIST], '=') != NULL || (*comma != '\0' && comma[1] != '\0'))
			return bad(f, Q_CONFIG, "list: %s: write list=NAME, or list=NAME; where semicolons are between", values[LIST]);
		s->form = SIGN_PAIRS;
		s->sep = *comma == ';' ? ';' : ',';
		*comma = '\0';
		s->word = values[LIST];
	}
	if (values[ALG] != NULL) {
		if ((i = choice(f, "alg", values[ALG], algs)) == -1)
			return false;
		s->alg = (enum sign_alg)i;
	}
	if (values[ENC] != NULL) {
		if ((i = choice(f, "enc", values[ENC], encs)) == -1)
			return false;
		s->code = (enum sign_code)i;
	}
	if (values[KEY] != NULL) {
		if ((i = choice(f, "key", values[KEY], keys)) == -1)
			return false;
		s->secret = forms[i];
	}
	if (s->alg == SIGN_ED25519 && s->secret == SIGN_PHRASE)
		return bad(f, Q_CONFIG, "alg: ed25519 needs key=hex or key=base64");
	if (values[MSG] != NULL) {
		if ((why = message_fault(values[MSG])) != NULL)
			return bad(f, Q_CONFIG, "msg: %s %s", values[MSG], why);
		s->message = values[MSG];
	}
	if (values[TS] != NULL) {
		if (strncmp(values[TS], "pair:", 5) == 0 && s->form == SIGN_PAIRS && values[TS][5] != '\0')
			why = NULL;
		else
			why = place_fault(values[TS]);
		if (why != NULL)
			return bad(f, Q_CONFIG, "ts: %s %s", values[TS], why);
		s->ts = values[TS];
		s->unit = SIGN_S;
	}
	if (values[UNIT] != NULL) {
		if (s->ts == NULL)
			return bad(f, Q_CONFIG, "unit: there is no ts");
		if ((i = choice(f, "unit", values[UNIT], units)) == -1)
			return false;
		s->unit = times[i];
	}
	if (sign_covers(s, "{ts}") != (s->ts != NULL) && !(s->ts != NULL && *s->ts == 'j' && sign_covers(s, "{body}")))
		return bad(f, Q_CONFIG, s->ts == NULL ? "ts: missing, and msg has {ts}" : "ts: %s is not signed: msg has no {ts}", s->ts);
	if (sign_covers(s, "{id}") && values[ID] == NULL)
		return bad(f, Q_CONFIG, "id: missing, and msg has {id}");
	if (sign_covers(s, "{url}") && values[URL] == NULL)
		return bad(f, Q_CONFIG, "url: missing, and msg has {url}");
	return true;
}

static bool
read_places(struct fault *f, struct hook *h, char *const *values)
{
	const char **to[] = { &h->scheme.id, &h->scheme.time, &h->scheme.type, &h->entity };
	bool fixed = strcmp(h->scheme.name, "hmac") != 0 && sign_covers(&h->scheme, "{id}");
	const char *why;

	if (fixed && (values[ID] != NULL || values[DEDUP] != NULL))
		return bad(f, Q_CONFIG, "%s: %s signs the id at %s, and it is taken", values[ID] != NULL ? "id" : "dedup", h->scheme.name, h->scheme.id);
	for (int i = 0; i < 4; i++)
		if (values[ID + i] != NULL) {
			if ((why = place_fault(values[ID + i])) != NULL)
				return bad(f, Q_CONFIG, "%s: %s %s", KEYS[ID + i], values[ID + i], why);
			*to[i] = values[ID + i];
		}
	if (values[DEDUP] != NULL) {
		if (strcmp(values[DEDUP], "body") != 0)
			return bad(f, Q_CONFIG, "dedup: %s: only body", values[DEDUP]);
		if (values[ID] != NULL)
			return bad(f, Q_CONFIG, "dedup: goes without id");
		h->by_body = true;
	}
	return true;
}

static bool
read_hook(struct fault *f, struct hook *h, char **words, int n)
{
	char *values[NKEYS] = { NULL };
	int64_t max;
	int i, from = 3;
	const struct sign_scheme *s;

	if (n < 2)
		return bad(f, Q_CONFIG, "%s: no scheme: a line is PATH SCHEME SECRETFILE queue=QUEUE", h->path);
	if (strcmp(words[1], "health") == 0) {
		h->health = true;
		return n == 2 || bad(f, Q_CONFIG, "%s: nothing follows health", words[2]);
	}
	if ((s = sign_scheme(words[1])) == NULL) {
		const char *names[64] = { "health" };

		for (i = 1; i < 63 && (names[i] = sign_name((size_t)i - 1)) != NULL; i++)
			;
		return unknown(f, words[1], "scheme", names);
	}
	h->scheme = *s;
	if (s->alg == SIGN_NONE)
		from = 2;
	else if (n < 3 || strchr(words[2], '=') != NULL)
		return bad(f, Q_CONFIG, "%s: no secret file: a line is PATH SCHEME SECRETFILE queue=QUEUE", h->path);
	for (i = from; i < n; i++) {
		char *equals = strchr(words[i], '=');
		int k = 0;

		if (equals == NULL)
			return bad(f, Q_CONFIG, "%s: not KEY=VALUE%s", words[i], from == 2 && i == 2 ? ": insecure-none has no secret" : "");
		*equals = '\0';
		while (KEYS[k] != NULL && strcmp(KEYS[k], words[i]) != 0)
			k++;
		if (KEYS[k] == NULL)
			return unknown(f, words[i], "key", KEYS);
		if (values[k] != NULL)
			return bad(f, Q_CONFIG, "%s: given twice", words[i]);
		if (equals[1] == '\0')
			return bad(f, Q_CONFIG, "%s: is empty", words[i]);
		values[k] = equals + 1;
	}
	if (values[QUEUE] == NULL)
		return bad(f, Q_CONFIG, "queue: missing: where do its events go? write queue=QUEUE");
	if (!text_queue(values[QUEUE]))
		return bad(f, Q_CONFIG, "queue: %s is no name of a queue", values[QUEUE]);
	h->queue = values[QUEUE];
	if (!read_axes(f, h, values) || !read_places(f, h, values))
		return false;
	h->past_ms = h->future_ms = TOLERANCE_MS;
	if (values[TOLERANCE] != NULL && !read_tolerance(f, h, values[TOLERANCE]))
		return false;
	/* What was caught on the way is taken again, under another id, for as long as its age is good. */
	if (h->past_ms == 0 && h->scheme.id != NULL && !h->by_body && !is_signed(&h->scheme, h->scheme.id))
		return bad(f, Q_CONFIG, "tolerance: 0, but the id at %s is not signed: add dedup=body", h->scheme.id);
	max = s->large ? JOB_EVENT_MAX : HOOK_BODY_MAX;
	if (values[MAX] != NULL && !text_int(values[MAX], 1, JOB_EVENT_MAX, &max))
		return bad(f, Q_CONFIG, "max: %s: bytes, from 1 to %d", values[MAX], JOB_EVENT_MAX);
	h->max = (size_t)max;
	if (values[URL] != NULL && !read_url(f, h, values[URL]))
		return false;
	if (h->scheme.url && h->url == NULL)
		return bad(f, Q_CONFIG, "url: missing: %s signs the URL: write it as the sender has it", s->name);
	if (values[KEEPS] != NULL && !read_keep(f, h, values[KEEPS]))
		return false;
	if (s->alg != SIGN_NONE && !read_secrets(f, h, words[2]))
		return false;
	if (values[VERIFY] != NULL && s->handshake != SIGN_META)
		return bad(f, Q_CONFIG, "verify: %s asks for no token", s->name);
	if (s->handshake == SIGN_META) {
		if (values[VERIFY] == NULL)
			return bad(f, Q_CONFIG, "verify: missing: the file with the token that the sender asks for when the URL is registered");
		if ((h->verify = read_file(f, values[VERIFY])) == NULL)
			return false;
	}
	if (s->also != NULL) {
		const struct sign_scheme *also = sign_scheme(s->also);

		h->also = *also;
		if (values[TIME] != NULL)
			h->also.time = values[TIME];
		if (values[TYPE] != NULL)
			h->also.type = values[TYPE];
	}
	return true;
}

static bool
read_line(struct fault *f, struct hook_table *t, char *line)
{
	char *words[WORDS], *save = NULL, *w;
	struct hook *more, *h;
	int n = 0;

	for (const char *p = line; *p != '\0'; p++)
		if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f)
			return bad(f, Q_CONFIG, *p == '\r' ? "a carriage return: the file has the line ends of another system" : "a control byte");
	if (!text_utf8(line, strlen(line)))
		return bad(f, Q_CONFIG, "not UTF-8");
	for (w = strtok_r(line, " \t", &save); w != NULL && *w != '#'; w = strtok_r(NULL, " \t", &save)) {
		if (n == WORDS)
			return bad(f, Q_CONFIG, "more than %d words", WORDS);
		words[n++] = w;
	}
	if (n == 0)
		return true;
	if (!read_path(f, t, words[0]))
		return false;
	if (t->n == HOOKS)
		return bad(f, Q_CONFIG, "more than %d lines", HOOKS);
	if ((more = realloc(t->hooks, (size_t)(t->n + 1) * sizeof *more)) == NULL)
		return bad(f, Q_TEMP, "out of memory");
	t->hooks = more;
	h = &t->hooks[t->n++];
	*h = (struct hook){ .path = words[0], .line = f->line };
	return read_hook(f, h, words, n);
}

/* The text of a regular file, a NUL behind it; NULL: told. */
static char *
read_text(struct fault *f)
{
	int fd = open(f->file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char *text = NULL;
	struct stat st;
	size_t n = 0;
	ssize_t got = 0;

	if (fd == -1)
		bad(f, errno == ENOENT || errno == ENOTDIR ? Q_NOINPUT : errno == EACCES ? Q_PERM :
		    errno == EMFILE || errno == ENFILE || errno == EIO ? Q_IO : Q_CONFIG, "%s", strerror(errno));
	else if (fstat(fd, &st) == -1)
		bad(f, Q_IO, "%s", strerror(errno));
	else if (!S_ISREG(st.st_mode))
		bad(f, Q_CONFIG, "is not a regular file");
	else if ((text = malloc(FILE_MAX + 1)) == NULL)
		bad(f, Q_TEMP, "out of memory");
	else {
		while (n <= FILE_MAX && (got = read(fd, text + n, FILE_MAX + 1 - n)) > 0)
			n += (size_t)got;
		if (got == -1)
			bad(f, Q_IO, "%s", strerror(errno));
		else if (n > FILE_MAX)
			bad(f, Q_CONFIG, "has more than %d bytes", FILE_MAX);
		else if (text[n] = '\0', strlen(text) != n)
			bad(f, Q_CONFIG, "a NUL in it: not a text");
		if (f->status != Q_OK) {
			free(text);
			text = NULL;
		}
	}
	if (fd != -1)
		close(fd);
	return text;
}

int
hook_read(const char *file, struct hook_table **table, char *message, size_t size)
{
	struct fault f = { file, 0, Q_OK, message, size };
	struct hook_table *t = calloc(1, sizeof *t);
	int hooks = 0;

	*table = NULL;
	if (t == NULL)
		bad(&f, Q_TEMP, "out of memory");
	else if ((t->text = read_text(&f)) != NULL)
		for (char *line = t->text, *next; line != NULL && f.status == Q_OK; line = next) {
			if ((next = strchr(line, '\n')) != NULL)
				*next++ = '\0';
			f.line++;
			read_line(&f, t, line);
		}
	for (int i = 0; t != NULL && i < t->n; i++)
		hooks += !t->hooks[i].health;
	f.line = 0;
	if (f.status == Q_OK && hooks == 0)
		bad(&f, Q_CONFIG, "no hook in it: a line is PATH SCHEME SECRETFILE queue=QUEUE");
	if (f.status == Q_OK)
		*table = t;
	else
		hook_free(t);
	return f.status;
}

void
hook_free(struct hook_table *t)
{
	if (t == NULL)
		return;
	for (int i = 0; i < t->n; i++) {
		if (t->hooks[i].secrets != NULL)
			OPENSSL_cleanse(t->hooks[i].secrets, SIGN_SECRETS * sizeof *t->hooks[i].secrets);
		free(t->hooks[i].secrets);
		forget(t->hooks[i].verify);
	}
	free(t->hooks);
	free(t->text);
	free(t);
}

const char *
hook_insecure(const struct hook_table *t, int nth)
{
	for (int i = 0; i < t->n; i++)
		if (!t->hooks[i].health && t->hooks[i].scheme.alg == SIGN_NONE && nth-- == 0)
			return t->hooks[i].path;
	return NULL;
}

/* ---- the head of a request ---- */

/* The nth of this name, from 0; NULL: none. */
static const char *
header(const struct hook_request *r, const char *name, int nth)
{
	for (int i = 0; i < r->nfields; i++)
		if (strcasecmp(r->fields[i].name, name) == 0 && nth-- == 0)
			return r->fields[i].value;
	return NULL;
}

int
hook_head(const struct hook_table *t, const struct hook_request *r, const struct hook **hook, size_t *max, const char **allow)
{
	size_t n = strcspn(r->target, "?");
	const struct hook *h = NULL;
	const char *coding;
	bool get = strcmp(r->method, "GET") == 0;

	*hook = NULL;
	*max = 0;
	*allow = NULL;
	for (int i = 0; i < t->n && h == NULL; i++)
		if (strlen(t->hooks[i].path) == n && memcmp(t->hooks[i].path, r->target, n) == 0)
			h = &t->hooks[i];
	if (h == NULL)
		return 404;
	if (h->health && (get || strcmp(r->method, "HEAD") == 0))
		return 200;
	if (h->health || (strcmp(r->method, "POST") != 0 && !(get && h->verify != NULL))) {
		*allow = h->health ? "GET, HEAD" : h->verify != NULL ? "GET, POST" : "POST";
		return 405;
	}
	for (int i = 0; (coding = header(r, "Content-Encoding", i)) != NULL; i++)
		if (strcasecmp(coding, "identity") != 0)
			return 415;
	*hook = h;
	*max = h->max;
	return 0;
}

/* ---- places ---- */

enum { FOUND_MAX = 24 };

struct look {
	const struct hook *h;
	const struct sign_scheme *s;
	const struct hook_request *r;
	const char *signature;
	bool form, read, repeated, bad;	/* read: the JSON was */
	struct span json;
	char *found[FOUND_MAX];		/* to be freed */
	int nfound;
};

static char *
own(struct look *l, const char *p, size_t n)
{
	char *s = l->nfound < FOUND_MAX ? malloc(n + 1) : NULL;

	if (s == NULL) {
		l->bad = true;
		return NULL;
	}
	memcpy(s, p, n);
	s[n] = '\0';
	return l->found[l->nfound++] = s;
}

static int
hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The first field of this name in a query or form; n bytes of it, decoded.  NULL: none. */
static char *
field(struct look *l, const char *p, size_t n, const char *name)
{
	const char *end = p + n, *stop;
	char *value;
	size_t nname = strlen(name), to = 0;

	for (; p < end; p = stop + 1) {
		if ((stop = memchr(p, '&', (size_t)(end - p))) == NULL)
			stop = end;
		if ((size_t)(stop - p) > nname && memcmp(p, name, nname) == 0 && p[nname] == '=')
			break;
	}
	if (p >= end)
		return NULL;
	p += nname + 1;
	if ((value = own(l, p, (size_t)(stop - p))) == NULL)
		return NULL;
	for (const char *v = value; *v != '\0'; v++) {
		int lo = *v == '%' && hex(v[1]) >= 0 ? hex(v[2]) : -1;

		if (lo >= 0) {
			value[to++] = (char)(hex(v[1]) << 4 | lo);
			v += 2;
		} else
			value[to++] = *v == '+' ? ' ' : *v;
	}
	value[to] = '\0';
	return value;
}

/* A text or a number of the JSON body; else NULL. */
static char *
member(struct look *l, const char *pointer)
{
	const char *why;
	char *text = NULL;
	struct span v;
	size_t n;

	if (!l->read) {
		l->read = true;
		if (l->r->len == 0 || !json_read(l->r->body, l->r->len, &l->json, &why, &n))
			l->json = (struct span){ NULL, 0 };
	}
	v = json_at(l->json, pointer);
	if (json_kind(v) != '"' && json_kind(v) != '0')
		return NULL;
	if (l->nfound == FOUND_MAX || (text = json_text(v, &n)) == NULL) {
		l->bad = true;
		return NULL;
	}
	l->found[l->nfound++] = text;
	return strlen(text) == n ? text : NULL;
}

/* What stands at a place; NULL: nothing. */
static const char *
find(struct look *l, const char *place)
{
	const char *name = place == NULL ? NULL : strchr(place, ':') + 1, *value, *query;
	char buf[64];
	size_t n;

	if (place == NULL)
		return NULL;
	switch (*place) {
	case 'h':
		if ((value = header(l->r, name, 0)) == NULL)
			return NULL;
		l->repeated |= header(l->r, name, 1) != NULL;
		value += strspn(value, " \t");
		for (n = strlen(value); n > 0 && strchr(" \t", value[n - 1]) != NULL; )
			n--;
		return own(l, value, n);
	case 'j':
		return member(l, name);
	case 'f':
		return l->form && l->r->len > 0 ? field(l, l->r->body, l->r->len, name) : NULL;
	case 'q':
		query = strchr(l->r->target, '?');
		return query == NULL ? NULL : field(l, query + 1, strlen(query + 1), name);
	default:	/* "pair:" */
		return l->signature != NULL && sign_pair(l->signature, l->s->sep, name, buf, sizeof buf) ? own(l, buf, strlen(buf)) : NULL;
	}
}

/* ---- judging ---- */

static void
digest_hex(const void *p, size_t n, const char *prefix, char *to)
{
	unsigned char d[32];

	EVP_Digest(p, n, d, NULL, EVP_sha256(), NULL);
	to += sprintf(to, "%s", prefix);
	for (size_t i = 0; i < sizeof d; i++)
		to += sprintf(to, "%02x", d[i]);
}

static bool
refuse(const struct look *l, struct hook_verdict *v, const char *why)
{
	v->status = l->s->refused != 0 ? l->s->refused : 401;
	v->why = why;
	return false;
}

/* The URL that was signed: as the table has it, and where Twilio signs it with the query of the request. */
static const char *
signed_url(struct look *l)
{
	const char *query = strchr(l->r->target, '?');
	char *url;

	if (l->h->url == NULL || query == NULL || !sign_covers(l->s, "{form}"))
		return l->h->url;
	if ((url = own(l, l->h->url, strlen(l->h->url) + strlen(query))) != NULL)
		sprintf(url, "%s%s", l->h->url, query);
	return url;
}

/* Verified and of the right age?  False: v says why not, or l->bad. */
static bool
verified(struct look *l, int64_t now, const char *id, struct hook_verdict *v)
{
	const char *ts = find(l, l->s->ts), *sum = NULL, *why;
	bool form = sign_covers(l->s, "{form}");
	struct sign_parts parts = { .signature = l->signature, .id = id, .ts = ts, .url = signed_url(l), .body = l->r->body, .len = l->r->len };
	char hash[65];
	int64_t ms, age;
	int k;

	if (form && !l->form)
		parts.len = 0;
	if (l->bad)
		return false;
	if (id != NULL && strchr(id, '.') != NULL && sign_covers(l->s, "{id}."))
		return refuse(l, v, "the id has a dot in it, so where it ends is not signed");
	if ((k = sign_verify(l->s, l->h->secrets, l->h->nsecrets, &parts, &why)) == -2) {
		l->bad = true;
		return false;
	}
	if (k < 0)
		return refuse(l, v, l->s->alg == SIGN_TOKEN && l->signature == NULL && now == -1 ?
		    "the token is not kept, since it is the secret: only the sender could show it again" : why);
	v->secret = l->h->secret_names[k];
	if (form && ((sum = find(l, "query:bodySHA256")) != NULL || !l->form) && l->r->len > 0) {
		digest_hex(l->r->body, l->r->len, "", hash);
		if (sum == NULL || strcasecmp(sum, hash) != 0)
			return refuse(l, v, sum == NULL ? "the body is not signed: it is no form, and the URL has no bodySHA256" : "the body is not the one that was signed");
	} else if (form && sum != NULL && l->r->len == 0)
		return refuse(l, v, "the body is not the one that was signed");
	if (l->s->ts == NULL || l->s->unit == SIGN_UNTIMED)
		return true;
	if (ts == NULL || !sign_time(l->s->unit, ts, &ms))
		return refuse(l, v, "the time of signing is absent or is none");
	age = now - ms;
	if (now == -1)
		return true;
	v->status = 401;	/* not 406, by which Mailgun drops the event: the clock may be wrong, and a try later right */
	v->why = "it was signed too long ago";
	if (l->h->past_ms != 0 && age > l->h->past_ms)
		return false;
	v->why = "it was signed in the future: is the clock right?";
	if (l->h->future_ms != 0 && -age > l->h->future_ms)
		return false;
	v->why = NULL;
	return true;
}

static void
answer(struct look *l, struct hook_verdict *v, int status, const char *type, const char *text)
{
	v->status = status;
	v->answer_type = type;
	if (text != NULL && (v->answer = strdup(text)) == NULL)
		l->bad = true;
}

static bool
says(const char *text, const char *what)
{
	return text != NULL && strcmp(text, what) == 0;
}

/* A request that only tries the URL, already verified. */
static bool
handshake(struct look *l, struct hook_verdict *v)
{
	const char *text;
	char sum[65] = "";
	size_t size;
	FILE *f;

	switch (l->s->handshake) {
	case SIGN_SLACK:
		if (!says(find(l, "json:/type"), "url_verification"))
			return false;
		if ((text = find(l, "json:/challenge")) == NULL || strlen(text) > CHALLENGE_MAX) {
			v->status = 400;
			v->why = "a url_verification without a challenge";
		} else
			answer(l, v, 200, "text/plain", text);
		return true;
	case SIGN_ZOOM:
		if (!says(find(l, "json:/event"), "endpoint.url_validation"))
			return false;
		if ((text = find(l, "json:/payload/plainToken")) == NULL || strlen(text) > CHALLENGE_MAX) {
			v->status = 400;
			v->why = "an endpoint.url_validation without a plainToken";
			return true;
		}
		for (int i = 0; i < l->h->nsecrets; i++)
			if (l->h->secret_names[i] == v->secret)
				l->bad |= !sign_hex(&l->h->secrets[i], text, sum);
		if (l->bad || (f = text_memory(&v->answer, &size)) == NULL) {
			l->bad = true;
			return true;
		}
		fputs("{\"plainToken\":", f);
		text_json(f, text, strlen(text));
		fprintf(f, ",\"encryptedToken\":\"%s\"}", sum);
		l->bad |= fclose(f) != 0;
		answer(l, v, 200, "application/json", NULL);
		return true;
	case SIGN_DISCORD:	/* of webhook events 0 is a ping and 1 an event, of interactions 1 is a ping */
		if (says(find(l, "json:/type"), "0"))
			answer(l, v, 204, NULL, NULL);
		else if (says(find(l, "json:/type"), "1") && json_at(l->json, "/event").p == NULL)
			answer(l, v, 200, "application/json", "{\"type\":1}");
		else
			return false;
		return true;
	case SIGN_META:
	case SIGN_NO_HANDSHAKE:
		break;
	}
	return false;
}

static void
get_handshake(struct look *l, struct hook_verdict *v)
{
	const char *token = find(l, "query:hub.verify_token"), *challenge = find(l, "query:hub.challenge");

	v->status = 403;
	v->why = "the verify token is absent or another";
	if (l->h->verify == NULL || token == NULL || !sign_same(token, l->h->verify))
		return;
	v->status = 400;
	v->why = "no hub.mode=subscribe, or no hub.challenge";
	if (!says(find(l, "query:hub.mode"), "subscribe") || challenge == NULL || strlen(challenge) > CHALLENGE_MAX)
		return;
	v->why = NULL;
	answer(l, v, 200, "text/plain", challenge);
}

/* The sender's time of an event: RFC 3339, or seconds, ms or us since 1970, as the size of the number says; -1: it is none. */
static int64_t
event_time(const char *s)
{
	int64_t n = 0, ms;
	const char *why, *p = s;
	size_t digits;

	if (s == NULL)
		return -1;
	if (strlen(s) > 4 && s[4] == '-')
		return when_instant(s, NULL, 0, &ms, &why) && ms > 0 ? ms : -1;
	digits = strspn(s, "0123456789");
	if (digits == 0 || digits > 16 || (s[digits] != '\0' && (s[digits] != '.' || s[digits + 1 + strspn(s + digits + 1, "0123456789")] != '\0')))
		return -1;
	for (; p < s + digits; p++)
		n = 10 * n + (*p - '0');
	if (n >= INT64_C(100000000000000))
		ms = n / 1000;
	else if (n >= INT64_C(100000000000))
		ms = n;
	else {
		ms = 1000 * n;
		if (*p == '.')
			for (int scale = 100; *++p != '\0' && scale > 0; scale /= 10)
				ms += scale * (*p - '0');
	}
	return ms > 0 && ms <= WHEN_MAX ? ms : -1;
}

static void
name(struct look *l, const char *place, char *to)
{
	const char *text = find(l, place);

	if (text != NULL && text_name_fault(text) == NULL)
		strcpy(to, text);
}

static void
name_event(struct look *l, const char *id, struct hook_verdict *v)
{
	const struct hook *h = l->h;

	v->source = "body";
	if (!h->by_body && l->s->id != NULL) {
		v->no_id = id == NULL || *id == '\0';
		if (!v->no_id)
			v->source = is_signed(l->s, l->s->id) ? "signed" : "unsigned";
	}
	if (*v->source == 'b')
		digest_hex(l->r->body, l->r->len, "b:", v->id);
	else if (text_name_fault(id) == NULL)
		strcpy(v->id, id);
	else
		digest_hex(id, strlen(id), "i:", v->id);
	if ((size_t)snprintf(v->key, sizeof v->key, "%s/%s", h->path, v->id) >= sizeof v->key) {
		char sum[72];

		digest_hex(v->id, strlen(v->id), "i:", sum);
		snprintf(v->key, sizeof v->key, "%s/%s", h->path, sum);
	}
}

/* The headers that judging again needs, and those that the line keeps. */
static void
keep_headers(struct look *l, struct hook_verdict *v)
{
	const char *places[] = { l->s->alg == SIGN_TOKEN ? NULL : l->s->signature, l->s->ts, l->s->id, l->s->time, l->s->type, l->h->entity };
	const char *names[6 + 1 + KEEP], *value;
	size_t size, len;
	int n = 0, i, j;
	FILE *f = text_memory(&v->headers, &size);

	if (f == NULL) {
		l->bad = true;
		return;
	}
	for (i = 0; i < 6; i++)
		if (places[i] != NULL && *places[i] == 'h')
			names[n++] = places[i] + 7;
	names[n++] = "Content-Type";
	for (i = 0; i < l->h->nkeep; i++)
		names[n++] = l->h->keep[i];
	for (i = 0; i < n; i++) {
		for (j = 0; j < i && strcasecmp(names[j], names[i]) != 0; j++)
			;
		if (j < i || (value = header(l->r, names[i], 0)) == NULL)
			continue;
		l->repeated |= header(l->r, names[i], 1) != NULL || strpbrk(value, "\r\n") != NULL;
		value += strspn(value, " \t");
		for (len = strlen(value); len > 0 && strchr(" \t", value[len - 1]) != NULL; )
			len--;
		fprintf(f, "%s: %.*s\n", names[i], (int)len, value);
	}
	l->bad |= fclose(f) != 0;
}

static void
judge(struct look *l, int64_t now, struct hook_verdict *v)
{
	const char *type = header(l->r, "Content-Type", 0), *id;
	static const char FORM[] = "application/x-www-form-urlencoded";

	l->form = type != NULL && strncasecmp(type, FORM, sizeof FORM - 1) == 0;
	if (strcmp(l->r->method, "GET") == 0 && l->s->handshake == SIGN_META) {
		get_handshake(l, v);
		return;
	}
	if (strcmp(l->r->method, "POST") != 0) {
		v->status = 405;
		v->why = "not a POST";
		return;
	}
	l->signature = find(l, l->s->signature);
	if (l->signature == NULL && l->h->also.name != NULL) {
		l->s = &l->h->also;
		l->signature = find(l, l->s->signature);
	}
	id = find(l, l->s->id);
	if (l->s->alg != SIGN_NONE && !verified(l, now, id, v))
		return;
	if (handshake(l, v))
		return;
	v->event = true;
	v->status = l->s->accepted != 0 ? l->s->accepted : 200;
	name_event(l, id, v);
	name(l, l->s->type, v->type);
	name(l, l->h->entity, v->entity);
	v->event_ms = event_time(find(l, l->s->time));
	keep_headers(l, v);
}

bool
hook_judge(const struct hook *h, const struct hook_request *r, int64_t now, struct hook_verdict *v)
{
	struct look l = { .h = h, .s = &h->scheme, .r = r };

	*v = (struct hook_verdict){ .queue = h->queue, .path = h->path, .scheme = h->scheme.name, .secret = "", .source = "", .event_ms = -1 };
	if (EVP_Digest(r->body, r->len, v->digest, NULL, EVP_sha256(), NULL) != 1)
		return false;
	judge(&l, now, v);
	for (int i = 0; i < l.nfound; i++)
		free(l.found[i]);
	if (l.repeated && !l.bad) {	/* which of the two was meant? */
		v->event = false;
		v->status = 400;
		v->why = "a header that counts is there twice, or has two lines";
		free(v->answer);
		v->answer = NULL;
		v->answer_type = NULL;
	}
	return !l.bad;
}

void
hook_done(struct hook_verdict *v)
{
	free(v->answer);
	free(v->headers);
	v->answer = v->headers = NULL;
}

int
hook_fields(char *text, struct hook_field *fields, int max)
{
	int n = 0;

	for (char *next, *colon; *text != '\0'; text = next) {
		if ((next = strchr(text, '\n')) == NULL || n == max)
			return -1;
		*next++ = '\0';
		if ((colon = strstr(text, ": ")) == NULL || colon == text)
			return -1;
		*colon = '\0';
		fields[n++] = (struct hook_field){ text, colon + 2 };
	}
	return n;
}
