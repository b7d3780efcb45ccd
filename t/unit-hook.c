/*
 * unit-hook.c - lib/sign.c and lib/hook.c by lines of standard input: a verb and its fields, separated by tabs; %NN is a byte
 *
 *	schemes				their names
 *	sign SCHEME SECRETS SIGNATURE ID TS URL BODY	which of the secrets (with "|" between) it is, or "no: WHY"; "(none)": absent
 *	secret SCHEME TEXT		its key in hex, or "no: WHY"
 *	age UNIT TS			its ms, or "no"; UNIT: 0 none, 1 s, 2 ms, 3 RFC 3339
 *	table FILE			"ok" and the paths that take anything, or "STATUS MESSAGE"
 *	head FILE METHOD TARGET [NAME: VALUE]...	the status, what is allowed, the size allowed
 *	ask FILE NOW METHOD TARGET BODY [NAME: VALUE]...	the verdict: each field that says something, as NAME=VALUE
 *	again ...			the same, then of what it keeps, without its age
 *	mutate SEED N ...		as ask; N requests a little different: how many of them were accepted, or the first that may not be.
 *					A header with "!" before its name must not change, with "*" its digits must not, and no body may
 *
 * Bytes but 0x21 to 0x7e are printed as %NN.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "hook.h"
#include "sign.h"

enum { FIELDS = 32 };

static void
print(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf((unsigned char)p[i] <= 0x20 || (unsigned char)p[i] > 0x7e || p[i] == '%' ? "%%%02x" : "%c", (unsigned char)p[i]);
}

static size_t
decode(char *s)
{
	char *to = s, two[3] = "";

	for (char *p = s; *p != '\0'; p++)
		if (*p == '%') {
			memcpy(two, p + 1, 2);
			*to++ = (char)strtol(two, NULL, 16);
			p += 2;
		} else
			*to++ = *p;
	*to = '\0';
	return (size_t)(to - s);
}

/* No byte behind it, so that a reader that goes too far is seen. */
static void *
exactly(const char *s, size_t n)
{
	char *p = malloc(n > 0 ? n : 1);

	if (p == NULL)
		exit(70);
	memcpy(p, s, n);
	return p;
}

static const char *
absent(const char *s)
{
	return strcmp(s, "(none)") == 0 ? NULL : s;
}

static void
sign(char **f, size_t nbody)
{
	const struct sign_scheme *s = sign_scheme(f[0]);
	static struct sign_secret k[8];
	struct sign_parts in = { absent(f[2]), absent(f[3]), absent(f[4]), absent(f[5]), exactly(f[6], nbody), nbody };
	const char *why = "";
	int n = 0, got;

	for (char *t = strtok(f[1], "|"); t != NULL; t = strtok(NULL, "|"))
		if (!sign_secret(s, t, &k[n++], &why)) {
			printf("no: the secret %s\n", why);
			free((void *)in.body);
			return;
		}
	got = sign_verify(s, k, n, &in, &why);
	free((void *)in.body);
	if (got >= 0)
		printf("%d\n", got);
	else
		printf("no: %s\n", why);
}

static void
secret(char **f)
{
	static struct sign_secret k;
	const char *why;

	if (!sign_secret(sign_scheme(f[0]), f[1], &k, &why)) {
		printf("no: %s\n", why);
		return;
	}
	for (size_t i = 0; i < k.n; i++)
		printf("%02x", k.bytes[i]);
	puts("");
}

static void
say(const char *name, const char *value)
{
	if (value == NULL || *value == '\0')
		return;
	printf(" %s=", name);
	print(value, strlen(value));
}

static void
show(const struct hook_verdict *v)
{
	printf("%d", v->status);
	say("why", v->why);
	say("answer", v->answer);
	say("answer_type", v->answer_type);
	if (v->event) {
		say("queue", v->queue);
		say("path", v->path);
		say("scheme", v->scheme);
		say("secret", v->secret);
		say("source", v->source);
		say("id", v->id);
		say("key", v->key);
		say("type", v->type);
		say("entity", v->entity);
		printf(" ms=%" PRId64 "%s", v->event_ms, v->no_id ? " no_id" : "");
		say("headers", v->headers);
	}
}

static struct hook_request
request(char **f, int n, size_t nbody, struct hook_field *fields)
{
	struct hook_request r = { f[0], f[1], fields, 0, exactly(f[2], nbody), nbody };

	for (int i = 3; i < n; i++) {
		char *colon = strstr(f[i], ": ");

		*colon = '\0';
		fields[r.nfields++] = (struct hook_field){ f[i], colon + 2 };
	}
	return r;
}

static void
ask(struct hook_table *t, char **f, int n, size_t nbody, bool again)
{
	struct hook_field fields[FIELDS];
	struct hook_request r = request(f + 1, n - 1, nbody, fields);
	struct hook_verdict v, w;
	const struct hook *h;
	const char *allow;
	size_t max;
	int status = hook_head(t, &r, &h, &max, &allow);

	if (status != 0) {
		printf("%d%s%s", status, allow != NULL ? " allow=" : "", allow != NULL ? allow : "");
	} else {
		if (!hook_judge(h, &r, strtoll(f[0], NULL, 10), &v))
			exit(70);
		show(&v);
		if (again && v.event) {
			char *text = strdup(v.headers);

			r.nfields = hook_fields(text, fields, FIELDS);
			if (r.nfields < 0 || !hook_judge(h, &r, -1, &w))
				exit(70);
			printf(" again=%d %s", w.status, w.status >= 300 ? w.why : strcmp(v.key, w.key) == 0 && strcmp(v.headers, w.headers) == 0 &&
			    v.event_ms == w.event_ms ? "same" : "differs");
			free(text);
			hook_done(&w);
		}
		hook_done(&v);
	}
	free((void *)r.body);
	puts("");
}

static void
head(struct hook_table *t, char **f, int n)
{
	struct hook_field fields[FIELDS];
	struct hook_request r = { f[0], f[1], fields, 0, NULL, 0 };
	const struct hook *h;
	const char *allow;
	size_t max;
	int status;

	for (int i = 2; i < n; i++) {
		char *colon = strstr(f[i], ": ");

		*colon = '\0';
		fields[r.nfields++] = (struct hook_field){ f[i], colon + 2 };
	}
	status = hook_head(t, &r, &h, &max, &allow);
	printf("%d%s%s", status, allow != NULL ? " " : "", allow != NULL ? allow : "");
	printf(status == 0 ? " %zu\n" : "\n", max);
}

/* ---- mutation ---- */

static uint64_t state;

static unsigned
random_below(unsigned n)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(state >> 33) % n;
}

/* Change, insert, remove or repeat some bytes of p, which has room for as many again; the length. */
static size_t
change(char *p, size_t n, bool text)
{
	static const char usual[] = "0aAfFzZ=,; ./+v1\"{}";
	char c;

	for (unsigned times = 1 + random_below(3); times > 0; times--) {
		size_t at = n > 0 ? random_below((unsigned)n) : 0;

		c = random_below(2) ? usual[random_below(sizeof usual - 1)] : (char)random_below(256);
		if (text && (c == '\0' || c == '\r' || c == '\n'))
			c = '0';
		switch (random_below(5)) {
		case 0: if (n > 0) p[at] = c; break;
		case 1: if (n > 0) p[at] = (char)(p[at] ^ (1 << random_below(text ? 5 : 8))); break;
		case 2: memmove(p + at + 1, p + at, n - at); p[at] = c; n++; break;
		case 3: if (n > 0) { memmove(p + at, p + at + 1, n - at - 1); n--; } break;
		default: n = at;
		}
	}
	if (text) {
		for (size_t i = 0; i < n; i++)
			if (p[i] == '\0' || p[i] == '\r' || p[i] == '\n')
				p[i] = '0';
		p[n] = '\0';
	}
	return n;
}

static char *
trimmed(char *s)
{
	size_t n;

	s += strspn(s, " \t");
	for (n = strlen(s); n > 0 && strchr(" \t", s[n - 1]) != NULL; )
		s[--n] = '\0';
	return s;
}

/* The longest run of digits of hex or base64: a signature. */
static const char *
digits(const char *s)
{
	static char buf[512];
	size_t best = 0;

	for (; *s != '\0'; s++) {
		size_t n = strspn(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+/");

		if (n > best && n < sizeof buf) {
			memcpy(buf, s, best = n);
			buf[n] = '\0';
		}
		if (n > 0)
			s += n - 1;
	}
	return buf;
}

/* strcasestr() is no POSIX. */
static bool
holds(const char *text, const char *part)
{
	for (size_t n = strlen(part); *text != '\0'; text++)
		if (strncasecmp(text, part, n) == 0)
			return true;
	return false;
}

static void
mutate(struct hook_table *t, long times, char **f, int n, size_t nbody)
{
	struct hook_field fields[FIELDS], now[FIELDS];
	struct hook_request r = request(f + 1, n - 1, nbody, fields), m;
	int64_t clock = strtoll(f[0], NULL, 10);
	const struct hook *h;
	struct hook_verdict v;
	const char *allow;
	char mark[FIELDS], value[8192], *body = malloc(2 * nbody + 16);
	size_t max;
	long accepted = 0;

	for (int i = 0; i < r.nfields; i++) {
		mark[i] = *fields[i].name;
		fields[i].name += mark[i] == '!' || mark[i] == '*';
	}
	if (body == NULL || hook_head(t, &r, &h, &max, &allow) != 0 || !hook_judge(h, &r, clock, &v) || !v.event) {
		printf("the first is not accepted\n");
		return;
	}
	hook_done(&v);
	for (long i = 0; i < times; i++) {
		unsigned which = random_below((unsigned)r.nfields + 1);
		bool wrong = false;

		m = r;
		memcpy(now, fields, sizeof now);
		m.fields = now;
		memcpy(body, r.body, nbody);
		if (which == (unsigned)r.nfields) {
			m.len = change(body, nbody, false);
			m.body = exactly(body, m.len);
			wrong = m.len != nbody || memcmp(body, r.body, nbody) != 0;
		} else {
			snprintf(value, sizeof value / 4, "%s", fields[which].value);
			change(value, strlen(value), true);
			now[which].value = value;
		}
		if (!hook_judge(h, &m, clock, &v))
			exit(70);
		if (v.event) {
			accepted++;
			if (which < (unsigned)r.nfields && mark[which] == '!')
				wrong = strcmp(trimmed(value), fields[which].value) != 0;
			if (which < (unsigned)r.nfields && mark[which] == '*')
				wrong = !holds(value, digits(fields[which].value));
			if (wrong) {
				printf("accepted: ");
				print(which < (unsigned)r.nfields ? value : (char *)m.body, which < (unsigned)r.nfields ? strlen(value) : m.len);
				puts("");
				exit(0);
			}
		}
		hook_done(&v);
		if (m.body != r.body)
			free((void *)m.body);
	}
	printf("%ld\n", accepted);
	free(body);
	free((void *)r.body);
}

int
main(void)
{
	char *line = NULL, *f[FIELDS];
	size_t cap = 0, len[FIELDS];
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		struct hook_table *t = NULL;
		char message[1024] = "";
		int nf = 0, status, file = 0;

		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		for (char *p = line; p != NULL && nf < FIELDS; nf++) {
			f[nf] = p;
			if ((p = strchr(p, '\t')) != NULL)
				*p++ = '\0';
		}
		for (int i = 0; i < nf; i++)
			len[i] = decode(f[i]);
		if (strcmp(f[0], "sign") == 0)
			sign(f + 1, len[7]);
		else if (strcmp(f[0], "secret") == 0)
			secret(f + 1);
		else if (strcmp(f[0], "schemes") == 0) {
			for (size_t i = 0; sign_name(i) != NULL; i++)
				printf("%s%s", i > 0 ? " " : "", sign_name(i));
			puts("");
		} else if (strcmp(f[0], "age") == 0) {
			int64_t ms;

			if (sign_time((enum sign_unit)atoi(f[1]), f[2], &ms))
				printf("%" PRId64 "\n", ms);
			else
				puts("no");
		} else {
			file = strcmp(f[0], "mutate") == 0 ? 3 : 1;
			status = hook_read(f[file], &t, message, sizeof message);
			if (status != 0 || t == NULL)
				printf("%d %s\n", status, message);
			else if (strcmp(f[0], "table") == 0) {
				printf("ok");
				for (int i = 0; hook_insecure(t, i) != NULL; i++)
					printf(" %s", hook_insecure(t, i));
				puts("");
			} else if (strcmp(f[0], "head") == 0)
				head(t, f + 2, nf - 2);
			else if (strcmp(f[0], "mutate") == 0) {
				state = strtoull(f[1], NULL, 10);
				mutate(t, strtol(f[2], NULL, 10), f + 4, nf - 4, len[7]);
			} else
				ask(t, f + 2, nf - 2, len[5], strcmp(f[0], "again") == 0);
			hook_free(t);
		}
		fflush(stdout);
	}
	free(line);
	return 0;
}
