/* qcall - a handler for qwork: the HTTP request that a payload describes */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <jansson.h>

#include "http.h"
#include "json.h"
#include "prog.h"
#include "secret.h"
#include "sign.h"
#include "source.h"

static const char HELP[] =
"usage: qcall [-hV] [-d FILE] [--rate NAME] [--auth NAME=FILE@PREFIX]...\n"
"             [--allow PREFIX]... [--insecure-http] [--follow] [--sign FILE]\n"
"             [--timeout DUR]\n"
"Make the HTTP request that the JSON object on standard input describes: url,\n"
"method, headers, body, timeout, auth.  The answer's body goes to standard\n"
"output.  Under qwork, a server that says 'later' is obeyed: the job is deferred.\n"
"With qadd and qwork this is an HTTP scheduler:\n"
"  qadd web '{\"url\":\"https://api.example.com/v1/poke\",\"body\":{\"a\":1}}'\n"
"  * * * * *  flock -n -o web.lock qwork -P 8 web -- qcall\n"
"  qwork web -- qcall --auth partner=key@https://api.example.com/v1/\n"
"  --auth NAME=FILE@PREFIX  for \"auth\":\"NAME\" send the secret in FILE, if the URL\n"
"                    is at or below PREFIX\n"
"  --allow PREFIX    ask nothing but URLs at or below a PREFIX\n"
"  --rate NAME       take tokens of rate.NAME; default: the queue's limit\n"
"  --follow          follow redirects of GET and HEAD to the same origin\n"
"  --sign FILE       sign as Standard Webhooks do, with the whsec_ secret in FILE\n"
"  --timeout DUR     the most a request may take (default 2m)\n"
"  --insecure-http   http is allowed, too\n"
"Exit: 0 answered with 2xx, 65 refused for good, or a bad payload, 69 no answer,\n"
"or 5xx, 75 deferred, 77 credential refused.\n";

enum {
	RATE = 256, AUTH, ALLOW, INSECURE, FOLLOW, SIGN, TIMEOUT,	/* options without a letter */
	BINDINGS_MAX = 64, HEADERS_MAX = 64,
	PAYLOAD_MAX = 16 << 20, HEAD_MAX = 256 << 10,
	UNSAID_MS = 60 * 1000,		/* "later", but not when */
	CROWDED_MS = 5 * 1000,		/* who holds a place may be done long before its lease ends */
	LEAST_MS = 1000,		/* a server that says "now" is not asked without a break */
	PLACE_MS = 60 * 1000		/* how long a place under a rate's concurrency outlives the time limit */
};
static const struct option LONGS[] = {
	{ "rate", 1, NULL, RATE }, { "auth", 1, NULL, AUTH }, { "allow", 1, NULL, ALLOW }, { "insecure-http", 0, NULL, INSECURE },
	{ "follow", 0, NULL, FOLLOW }, { "sign", 1, NULL, SIGN }, { "timeout", 1, NULL, TIMEOUT }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qcall", .help = HELP, .shorts = "", .longs = LONGS };

static struct binding { char *name, *prefix, *bearer; } bindings[BINDINGS_MAX];
static const char *allowed[BINDINGS_MAX];
static int nbindings, nallowed;
static bool signs;
static struct sign_key key;
static int64_t most_ms = HTTP_TIMEOUT_MS;

static struct http_header headers[HEADERS_MAX + 8];
static struct http_ask ask = { .headers = headers };
static const char *prefix;			/* of the secret that is sent; NULL: none is */

static struct db *db;
static const char *rate = "";
static bool own_limit;				/* the claim has taken its token */
static struct rate_user user;

/* ---- options ------------------------------------------------------------- */

/* False: Q_NO.  Nothing was sent, so whoever has no memory tries again. */
static bool
yes(int rc)
{
	if (rc == Q_TEMP)
		prog_die(Q_TEMP, "out of memory");
	return rc == Q_OK;
}

static const char *
prefix_option(const char *option, const char *url)
{
	const char *why = NULL;

	if (!yes(http_url(url, ask.insecure, &why)))
		prog_usage("%s: %s", option, why);
	if (strpbrk(url, "?#") != NULL)
		prog_usage("%s: a prefix ends before ? and #", option);
	return url;
}

static char *
secret(const char *option, const char *file)
{
	const char *why = NULL;
	int status;
	char *s = secret_read(file, &status, &why);

	if (s == NULL)
		prog_die(status, "%s: %s: %s", option, file, why);
	return s;
}

/* NAME=FILE@PREFIX: the first @ before a URL ends FILE, so that a secret goes to no other place than is read here. */
static void
bind_secret(char *text)
{
	struct binding *b = &bindings[nbindings];
	char *file = strchr(text, '='), *at = file;
	size_t size;
	char *s;

	if (nbindings++ == BINDINGS_MAX)
		prog_usage("--auth: at most %d", BINDINGS_MAX);
	while (at != NULL && (at = strchr(at + 1, '@')) != NULL)
		if (strncasecmp(at + 1, "https://", 8) == 0 || strncasecmp(at + 1, "http://", 7) == 0)
			break;
	if (at == NULL || file == text || at == file + 1)
		prog_usage("--auth: write NAME=FILE@https://HOST/PATH/");
	*file++ = *at++ = '\0';
	b->name = text;
	b->prefix = at;
	prefix_option("--auth", b->prefix);
	s = secret("--auth", file);
	size = strlen(s) + 8;
	if ((b->bearer = malloc(size)) == NULL)
		prog_die(Q_TEMP, "out of memory");
	snprintf(b->bearer, size, "Bearer %s", s);
}

static void
options(int argc, char *argv[])
{
	char *auth[BINDINGS_MAX], *sign = NULL;
	const char *why;
	int nauth = 0, c;

	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case RATE: rate = optarg; break;
		case AUTH:
			if (nauth == BINDINGS_MAX)
				prog_usage("--auth: at most %d", BINDINGS_MAX);
			auth[nauth++] = optarg;
			break;
		case ALLOW:
			if (nallowed == BINDINGS_MAX)
				prog_usage("--allow: at most %d", BINDINGS_MAX);
			allowed[nallowed++] = optarg;
			break;
		case INSECURE: ask.insecure = true; break;
		case FOLLOW: ask.follow = true; break;
		case SIGN: sign = optarg; break;
		case TIMEOUT: most_ms = prog_duration("--timeout", optarg); break;
		}
	if (optind < argc)
		prog_usage("unexpected operand '%s'; the request is read from standard input", argv[optind]);
	if (most_ms == 0 || most_ms > INT64_C(24) * 3600 * 1000)
		prog_usage("--timeout: from 1ms to 1d");
	for (int i = 0; i < nallowed; i++)	/* now that --insecure-http is known */
		prefix_option("--allow", allowed[i]);
	for (int i = 0; i < nauth; i++)
		bind_secret(auth[i]);
	if (sign != NULL && !(signs = sign_key(secret("--sign", sign), &key, &why)))
		prog_die(Q_CONFIG, "--sign: %s: %s", sign, why);
	if (*rate != '\0' && !text_queue(rate))
		prog_die(Q_DATA, "bad rate name '%s'; a name is 1 to 64 of A-Z a-z 0-9 . _ -, does not begin with . or -, and is not a number", rate);
	prog_now();			/* a bad Q_NOW is told before anything is done */
}

/* ---- the payload --------------------------------------------------------- */

static _Noreturn void refuse(const char *, ...) __attribute__((format(printf, 1, 2)));

static _Noreturn void
refuse(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	prog_die(Q_DATA, "payload: %s; nothing was sent", text);
}

/* A member that is text, or NULL. */
static const char *
text_member(json_t *root, const char *name)
{
	json_t *v = json_object_get(root, name);

	if (v == NULL || json_is_null(v))
		return NULL;
	if (!json_is_string(v))
		refuse("\"%s\" must be a string", name);
	if (strlen(json_string_value(v)) != json_string_length(v))
		refuse("\"%s\" has a NUL byte", name);
	return json_string_value(v);
}

/* At or below one of the prefixes of --allow, and where the secret may go. */
static int
may(const char *url, void *unused)
{
	int rc = nallowed == 0 ? Q_OK : Q_NO;

	(void)unused;
	for (int i = 0; i < nallowed && rc == Q_NO; i++)
		rc = http_within(url, allowed[i]);
	return rc == Q_OK && prefix != NULL ? http_within(url, prefix) : rc;
}

static void
read_url(json_t *root)
{
	char shown[600];
	const char *why = NULL;

	if ((ask.url = text_member(root, "url")) == NULL)
		refuse("\"url\" is missing");
	if (!yes(http_url(ask.url, ask.insecure, &why)))
		refuse("\"url\": %s", why);
	if (!yes(may(ask.url, NULL)))
		refuse("%s is at or below no --allow", http_shown(shown, sizeof shown, ask.url));
	ask.may = may;
}

static void
read_method(json_t *root)
{
	static const char *const NEVER[] = { "CONNECT", "TRACE", "TRACK" };

	if ((ask.method = text_member(root, "method")) == NULL)
		return;
	if (*ask.method == '\0' || strlen(ask.method) > 32 || strspn(ask.method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != strlen(ask.method))
		refuse("\"method\" must be a word in capitals, as in POST");
	for (size_t i = 0; i < sizeof NEVER / sizeof *NEVER; i++)
		if (strcmp(ask.method, NEVER[i]) == 0)
			refuse("\"method\": %s is not for qcall", NEVER[i]);
}

static const char *
header(const char *name)
{
	for (int i = 0; i < ask.nheaders; i++)
		if (strcasecmp(headers[i].name, name) == 0)
			return headers[i].value;
	return NULL;
}

static void
add_header(const char *name, const char *value, bool is_secret)
{
	headers[ask.nheaders++] = (struct http_header){ name, value, is_secret };
}

/* Headers by which a payload could speak for the connection, the credential or the signature. */
static bool
reserved(const char *name, bool auth)
{
	static const char *const HOP[] = { "Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "TE", "Trailer",
	    "Upgrade", "Expect", "HTTP2-Settings", "Accept-Encoding" };

	for (size_t i = 0; i < sizeof HOP / sizeof *HOP; i++)
		if (strcasecmp(name, HOP[i]) == 0)
			return true;
	return strncasecmp(name, "Proxy-", 6) == 0 || (auth && strcasecmp(name, "Authorization") == 0) ||
	    (signs && strncasecmp(name, "webhook-", 8) == 0);
}

static void
read_headers(json_t *root, bool auth)
{
	json_t *list = json_object_get(root, "headers"), *v;
	const char *name, *p;

	if (list == NULL || json_is_null(list))
		return;
	if (!json_is_object(list))
		refuse("\"headers\" must be an object");
	if (json_object_size(list) > HEADERS_MAX)
		refuse("more than %d headers", HEADERS_MAX);
	json_object_foreach(list, name, v) {
		if (*name == '\0' || strspn(name, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != strlen(name))
			refuse("\"headers\": '%s' is not the name of a header", name);
		if (reserved(name, auth))
			refuse("\"headers\": %s is not the payload's to set", name);
		if (header(name) != NULL)
			refuse("\"headers\": %s is given twice", name);
		if (!json_is_string(v))
			refuse("\"headers\": %s must be a string", name);
		for (p = json_string_value(v); ((unsigned char)*p >= ' ' || *p == '\t') && *p != 0x7f; p++)
			;
		if (p != json_string_value(v) + json_string_length(v))
			refuse("\"headers\": %s has a control byte", name);
		add_header(name, json_string_value(v), false);
	}
}

/* An object or array is sent as it stands in the payload: 1.10 stays 1.10. */
static void
read_body(json_t *root, struct span text)
{
	json_t *v = json_object_get(root, "body");
	struct span body = json_at(text, "/body");

	if (v == NULL || json_is_null(v))
		return;
	if (json_is_string(v)) {
		ask.body = json_string_value(v);
		ask.len = json_string_length(v);
	} else if (json_is_object(v) || json_is_array(v)) {
		ask.body = body.p;
		ask.len = body.n;
		if (header("Content-Type") == NULL)
			add_header("Content-Type", "application/json", false);
	} else
		refuse("\"body\" must be a string, an object or an array");
	if (ask.method != NULL && strcmp(ask.method, "HEAD") == 0)
		refuse("HEAD has no body");
}

/* A secret goes where the operator has bound it, whatever the payload says. */
static void
read_auth(json_t *root)
{
	const char *auth = text_member(root, "auth");
	char shown[600];
	bool known = false;

	for (int i = 0; auth != NULL && i < nbindings; i++)
		if (strcmp(bindings[i].name, auth) == 0) {
			known = true;
			if (yes(http_within(ask.url, bindings[i].prefix))) {
				prefix = bindings[i].prefix;
				add_header("Authorization", bindings[i].bearer, true);
				return;
			}
		}
	if (auth != NULL && !known)	/* mostly a mistyped option, which must not kill a queue */
		prog_die(Q_CONFIG, "payload: \"auth\": no --auth has the name '%s'; nothing was sent", auth);
	if (auth != NULL)
		refuse("\"auth\": '%s' is not for %s", auth, http_shown(shown, sizeof shown, ask.url));
}

/* Who is served twice can tell: the same for all attempts of a job. */
static char *
idempotency_key(void)
{
	const char *job = getenv("Q_ID"), *queue = getenv("Q_QUEUE"), *k = getenv("Q_KEY");
	char *text;

	if (k != NULL && *k != '\0')
		return strdup(k);
	if (job == NULL || *job == '\0' || (text = malloc(strlen(job) + 80)) == NULL)
		return NULL;
	snprintf(text, strlen(job) + 80, "%.64s/%s", queue != NULL ? queue : "", job);
	return text;
}

static void
sign(const char *id)
{
	static char seconds[32], signature[SIGN_TEXT];
	int64_t now = prog_now() / 1000;
	char *plain = malloc(3 * strlen(id) + 1), *to = plain;

	if (plain == NULL)
		prog_die(Q_TEMP, "out of memory");
	for (; *id != '\0'; id++)	/* a dot is the border between the parts that are signed */
		to += sprintf(to, *id == '.' || *id == '%' ? "%%%02X" : "%c", *id);
	*to = '\0';
	snprintf(seconds, sizeof seconds, "%" PRId64, now);
	if (!sign_standard(&key, plain, now, ask.body != NULL ? ask.body : "", ask.len, signature))
		prog_die(Q_TEMP, "out of memory");
	add_header("webhook-id", plain, false);
	add_header("webhook-timestamp", seconds, false);
	add_header("webhook-signature", signature, false);
}

static void
read_payload(void)
{
	static const char *const NAMES[] = { "url", "method", "headers", "body", "timeout", "auth", NULL };
	struct reader r;
	struct span text;
	char *p;
	const char *why = NULL, *name, *near, *timeout;
	size_t n, at;
	json_error_t e;
	json_t *root, *v;
	int64_t ms;
	int rc;

	reader_init(&r, STDIN_FILENO, -1, PAYLOAD_MAX);
	if ((rc = reader_next(&r, &p, &n)) != Q_OK)
		prog_die(rc == Q_NO ? Q_DATA : rc, "payload: %s", rc == Q_DATA ? "longer than 16 MiB" : strerror(errno));
	if (!json_read(p, n, &text, &why, &at))
		refuse("not JSON at byte %zu: %s", at + 1, why);
	if (json_kind(text) != '{')
		refuse("not a JSON object");
	root = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &e);
	if (root == NULL)
		refuse("%s at byte %d", json_error_code(&e) == json_error_duplicate_key ? "a name is given twice" : "not JSON that all readers take", e.position);
	json_object_foreach(root, name, v) {
		int i = 0;

		while (NAMES[i] != NULL && strcmp(NAMES[i], name) != 0)
			i++;
		if (NAMES[i] == NULL) {
			near = text_nearest(name, NAMES);
			refuse(near != NULL ? "unknown member '%s'; the nearest is \"%s\"" : "unknown member '%s'; there are url, method, headers, "
			    "body, timeout, auth", name, near);
		}
	}
	read_url(root);
	read_method(root);
	read_auth(root);
	read_headers(root, prefix != NULL);
	read_body(root, text);
	ask.timeout_ms = most_ms;
	if ((timeout = text_member(root, "timeout")) != NULL) {
		if (!when_duration(timeout, &ms, &why) || ms == 0)
			refuse("\"timeout\": '%s' %s", timeout, ms == 0 ? "is no time at all" : why);
		if (ms < most_ms)	/* the operator's word is the last */
			ask.timeout_ms = ms;
	}
}

/* Receivers drop blanks at the ends of a header, and more than one key would be the same. */
static void
check_key(const char *what, const char *id)
{
	size_t n = strlen(id);

	for (const char *p = id; *p != '\0'; p++)
		if (((unsigned char)*p < ' ' && *p != '\t') || *p == 0x7f)
			prog_die(Q_DATA, "%s has a control byte; nothing was sent", what);
	if (n > 0 && (strchr(" \t", id[0]) != NULL || strchr(" \t", id[n - 1]) != NULL))
		prog_die(Q_DATA, "%s has a blank at its end; nothing was sent", what);
}

/* More than servers take, and libcurl sends at all. */
static void
check_size(void)
{
	size_t n = strlen(ask.url);

	for (int i = 0; i < ask.nheaders; i++)
		n += strlen(headers[i].name) + strlen(headers[i].value) + 4;
	if (n > HEAD_MAX)
		refuse("its URL and headers are longer than %d KiB", HEAD_MAX >> 10);
}

static void
mark(void)
{
	const char *id = header("Idempotency-Key");
	static char by_hand[32];

	if (id == NULL && (id = idempotency_key()) != NULL) {
		check_key("Q_KEY", id);
		add_header("Idempotency-Key", id, false);
	} else if (id != NULL) {
		check_key("payload: Idempotency-Key", id);
	}
	check_size();
	if (!signs)
		return;
	if (id == NULL) {
		snprintf(by_hand, sizeof by_hand, "msg_%" PRId64 "_%ld", prog_now(), (long)getpid());
		id = by_hand;
	}
	sign(id);
}

/* ---- the job and its rate ------------------------------------------------ */

/* Not now: our job again at `due`, nobody of the rate before `until`; ends the program. */
static _Noreturn void
defer(const char *reason, int64_t due, int64_t until)
{
	struct job_settle how = { .outcome = OUT_DEFERRED, .due_ms = due, .count = -1, .exit = Q_TEMP, .signal = -1, .reason = reason };
	const char *word = getenv("Q_CLAIM");
	struct claim claim;
	bool ours = word != NULL && claim_parse(word, &claim);
	int status = Q_TEMP;

	if (db != NULL && (ours || (*rate != '\0' && until > 0))) {
		prog_check(db, db_begin(db, false));
		if (*rate != '\0' && until > 0)
			rate_block(db, rate, until);
		if (ours && db_status(db) == Q_OK && job_settle(db, &claim, &how, prog_now(), NULL) == Q_LOST) {
			prog_warn("%s", db_message(db));	/* the server's word is good all the same */
			db_clear(db);
			status = Q_LOST;
		}
		prog_check(db, db_status(db));
		prog_check(db, db_commit(db));
	}
	prog_warn("%s", reason);
	prog_exit(status);
}

static bool
stopped(void)
{
	prog_poll(NULL, 0, 0);
	return prog_signal != 0;
}

/* The file, the rate, and its leave to go; without them the job waits. */
static void
ask_rate(void)
{
	static const struct rate NONE = { 0, 0 };	/* leaves what is blocked, and nothing else, to wait for */
	const char *word = getenv("Q_CLAIM"), *queue = getenv("Q_QUEUE");
	static char name[65], reason[160];
	int64_t now = prog_now(), at = 0, n;
	struct claim claim;
	int rc;

	if ((word == NULL || *word == '\0') && *rate == '\0')
		return;
	if (word != NULL && *word != '\0' && !claim_parse(word, &claim))
		prog_die(Q_CONFIG, "Q_CLAIM '%s' is not a claim; qwork sets it, else unset it", word);
	db = prog_open(DB_ONCE);
	if (word != NULL && *word != '\0' && queue != NULL && *queue != '\0') {
		snprintf(name, sizeof name, "%s", setting_queue(db, queue)->limit);
		prog_check(db, db_status(db));
		if (*rate == '\0')
			rate = name;
		own_limit = strcmp(rate, name) == 0;
	}
	if (*rate == '\0')
		return;
	if (own_limit) {
		prog_check(db, rate_look(db, "rate", rate, &NONE, 0, now, &n, &at));
		rc = at > now ? Q_NO : Q_OK;
	} else {
		user = (struct rate_user){ .name = rate, .worker = prog_worker(), .lease_ms = ask.timeout_ms + PLACE_MS };
		prog_catch();		/* a signal is not to leave the place taken */
		ask.stopped = stopped;
		rc = rate_try(db, &user, now, &at);
	}
	if (rc == Q_NO) {
		snprintf(reason, sizeof reason, "rate %s %s; nothing was sent", rate, own_limit ? "is blocked" : "lets nobody through now");
		if (user.crowded && at > now + CROWDED_MS)
			at = now + CROWDED_MS;
		defer(reason, at == INT64_MAX ? now + UNSAID_MS : at, 0);
	}
	prog_check(db, rc);
}

static void
leave(void)
{
	if (db != NULL && rate_leave(db, &user) != Q_OK)
		prog_warn("rate %s: %s; its place is free a minute after the time limit", rate, db_message(db));
}

/* ---- the answer ---------------------------------------------------------- */

static _Noreturn void
judge(const struct http_answer *a)
{
	int64_t wait, now = prog_now();
	char shown[600];

	if (a->kind == HTTP_OK) {
		fwrite(a->body, 1, a->len, stdout);
		prog_exit(Q_OK);
	}
	if (a->kind == HTTP_LIMITED || (a->status >= 400 && a->wait_ms != -1)) {
		wait = a->wait_ms == -1 ? UNSAID_MS : a->wait_ms < LEAST_MS ? LEAST_MS : a->wait_ms;
		wait = wait < WHEN_MAX - now ? wait : WHEN_MAX - now;
		defer(a->why, now + wait, now + wait);
	}
	if (a->kind == HTTP_SAME)	/* which is good only for those who asked for it, and a payload keeps nothing */
		prog_die(Q_DATA, "%s: status 304", http_shown(shown, sizeof shown, ask.url));
	prog_warn("%s", a->why);
	if (a->kind == HTTP_DENIED)
		prog_exit(Q_PERM);
	/* Without a status it is the network, or a certificate that somebody can renew. */
	prog_exit(a->kind == HTTP_LATER || a->status == 0 || a->status >= 500 ? Q_UNKNOWN : Q_DATA);
}

int
main(int argc, char *argv[])
{
	struct http *h;
	struct http_answer a;

	prog_start(&self, true);
	options(argc, argv);
	read_payload();
	mark();
	if ((h = http_open()) == NULL)
		prog_die(Q_TEMP, "out of memory");
	ask_rate();
	http_once(h, &ask, &a);
	leave();
	if (prog_signal != 0 && a.kind == HTTP_LATER)
		prog_killed(prog_signal);
	judge(&a);
}
