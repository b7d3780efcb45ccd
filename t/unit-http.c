/*
 * unit-http.c - lib/http.c on a command line: one verb a function.
 *
 *	url URL [http]			ok, or "error: WHY"
 *	origin A B			yes or no
 *	within URL PREFIX		yes or no
 *	shown URL, resolve BASE REF, escape TEXT
 *	after VALUE DATE NOW		Retry-After: ms or "no"; DATE and NOW in ms, DATE -1 for none
 *	reset VALUE DATE NOW		likewise
 *	-				a call a line from standard input, fields separated by |
 *	ask [OPTION]... URL...		requests, one after the other through one handle
 *
 * Options of ask: -m METHOD -H 'NAME: VALUE' -S 'NAME: VALUE' (secret) -b BODY -t TIMEOUT_MS -x MAX_BODY
 * -i (http) -f (follow) -r TRIES (http_fetch; sleeps are printed, not slept) -w MAX_WAIT_MS
 * -l REL (link) -h NAME (header) -q (no body).  Each answer is a line
 * KIND STATUS wait WAIT date DATE remaining N url URL len LEN, then its body, why and what was asked for.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http.h"

static void
number_or_no(bool good, int64_t n)
{
	if (good)
		printf("%" PRId64 "\n", n);
	else
		puts("no");
}

static void
text_or_no(char *s)
{
	puts(s != NULL ? s : "no");
	free(s);
}

static int
call(int n, char *v[])
{
	const char *verb = v[0], *why = NULL;
	int64_t ms = -42;
	char buf[700], *url;
	bool good;

	if (strcmp(verb, "url") == 0 && n >= 2) {
		if (http_url(v[1], n > 2, &why) == Q_OK)
			puts("ok");
		else
			printf("error: %s\n", why);
	} else if (strcmp(verb, "origin") == 0 && n == 3)
		puts(http_same_origin(v[1], v[2]) == Q_OK ? "yes" : "no");
	else if (strcmp(verb, "within") == 0 && n == 3)
		puts(http_within(v[1], v[2]) == Q_OK ? "yes" : "no");
	else if (strcmp(verb, "shown") == 0 && n == 2)
		puts(http_shown(buf, sizeof buf, v[1]));
	else if (strcmp(verb, "resolve") == 0 && n == 3) {
		http_resolve(v[1], v[2], &url);
		text_or_no(url);
	} else if (strcmp(verb, "escape") == 0 && n == 2)
		text_or_no(http_escape(v[1], strlen(v[1])));
	else if (strcmp(verb, "after") == 0 && n == 4) {
		good = http_retry_after(v[1], atoll(v[2]), atoll(v[3]), &ms);
		number_or_no(good, ms);
	} else if (strcmp(verb, "reset") == 0 && n == 4) {
		good = http_reset(v[1], atoll(v[2]), atoll(v[3]), &ms);
		number_or_no(good, ms);
	} else {
		printf("unknown call: %s\n", verb);
		return 64;
	}
	return 0;
}

static int
before(void *arg)
{
	int *left = arg;

	return (*left)-- == 0 ? Q_TEMP : Q_OK;
}

static void
slept(int64_t ms, void *arg)
{
	(void)arg;
	printf("sleep %" PRId64 "\n", ms);
}

static void
tell(struct http *h, const struct http_answer *a, bool quiet, const char *rel, const char *header)
{
	static const char *const KIND[] = { "OK", "SAME", "LIMITED", "LATER", "DENIED", "REFUSED" };
	const char *value;
	char *url;

	printf("%s %d wait %" PRId64 " date %" PRId64 " remaining %" PRId64 " url %s len %zu\n", KIND[a->kind], a->status,
	    a->wait_ms, a->date_ms, a->remaining, a->url, a->len);
	if (a->len > 0 && !quiet)
		printf("body %s\n", a->body);
	if (strlen(a->body) < a->len && !quiet)
		puts("NUL in the body");
	if (a->kind != HTTP_OK && a->kind != HTTP_SAME)
		printf("why %s\n", a->why);
	if (rel != NULL) {
		printf("link ");
		http_link(h, rel, &url);
		text_or_no(url);
	}
	for (int i = 0; header != NULL && (value = http_header(h, header, i)) != NULL; i++)
		printf("header %s\n", value);
}

static int
ask(int argc, char *argv[])
{
	struct http_header headers[16];
	struct http_ask a = { .headers = headers };
	struct http_budget b = { .sleep = slept, .before = before };
	struct http_answer answer;
	struct http *h = http_open();
	const char *rel = NULL, *header = NULL;
	int left = 1000, c, rc;
	bool quiet = false;
	char *colon;

	while ((c = getopt(argc, argv, "m:H:S:b:t:x:ifr:w:a:l:h:q")) != -1)
		switch (c) {
		case 'm': a.method = optarg; break;
		case 'H': case 'S':
			colon = strchr(optarg, ':');
			*colon = '\0';
			headers[a.nheaders++] = (struct http_header){ optarg, colon + 1 + (colon[1] == ' '), c == 'S' };
			break;
		case 'b': a.body = optarg; a.len = strlen(optarg); break;
		case 't': a.timeout_ms = atoll(optarg); break;
		case 'x': a.max_body = (size_t)atoll(optarg); break;
		case 'i': a.insecure = true; break;
		case 'f': a.follow = true; break;
		case 'r': b.tries = atoi(optarg); break;
		case 'w': b.max_wait_ms = atoll(optarg); break;
		case 'a': left = atoi(optarg); break;
		case 'l': rel = optarg; break;
		case 'h': header = optarg; break;
		case 'q': quiet = true; break;
		default: return 64;
		}
	b.arg = &left;
	for (; optind < argc; optind++) {
		a.url = argv[optind];
		if (b.tries == 0)
			http_once(h, &a, &answer);
		else if ((rc = http_fetch(h, &a, &b, &answer)) != Q_OK) {
			printf("before said %d\n", rc);
			continue;
		} else
			printf("waited %" PRId64 "\n", b.waited_ms);
		tell(h, &answer, quiet, rel, header);
	}
	http_close(h);
	return 0;
}

int
main(int argc, char *argv[])
{
	char line[2048], *field[8];

	if (argc < 2)
		return 64;
	if (strcmp(argv[1], "ask") == 0)
		return ask(argc - 1, argv + 1);
	if (strcmp(argv[1], "-") != 0)
		return call(argc - 1, argv + 1);
	while (fgets(line, sizeof line, stdin) != NULL) {
		int n = 0;

		line[strcspn(line, "\n")] = '\0';
		for (char *p = line; p != NULL && n < 8; n++) {
			field[n] = p;
			if ((p = strchr(p, '|')) != NULL)
				*p++ = '\0';
		}
		call(n, field);
	}
	return 0;
}
