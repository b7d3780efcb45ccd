/*
 * unit-source.c - lib/json.c and lib/cursor.c by lines of standard input: a verb and its fields, separated by tabs; %NN is a byte
 *
 *	read TEXT			the span of its value, or "no AT: WHY"
 *	cut TEXT			read of each beginning of it: how many were refused, and the lengths of the others
 *	kind TEXT, text TEXT, line TEXT
 *	list TEXT			its elements, with | between them
 *	pointer P			yes or no
 *	at TEXT P			the span there, or "nothing"
 *	canon TEXT [P]...		without what is at P
 *	same TEXT TEXT			have they one canonical form?
 *	key SPEC VALUE			its ms since 1970, "ok" for other types, or "no: WHY"
 *	order SPEC VALUE...		each with < = > between it and the next
 *	bound SPEC VALUE [back]		what is asked with, and < = > between its key and the value's
 *	instant SPEC MS			its text
 *	spec SPEC			"ok", or why not
 *
 * SPEC: TYPE[,format=TEXT][,zone=TEXT][,granularity=MS][,shift=MS][,lookback=MS].  Bytes but 0x21 to 0x7e are printed as %NN.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "source.h"

struct text { char *p; size_t n; };	/* no byte behind it, so that a reader that goes too far is seen */

static void
print(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf((unsigned char)p[i] <= 0x20 || (unsigned char)p[i] > 0x7e ? "%%%02x" : "%c", (unsigned char)p[i]);
}

static char *
decoded(char *s, size_t *n)
{
	char *to = s, two[3] = "";

	for (char *p = s; *p != '\0'; p++)
		if (*p == '%') {
			memcpy(two, p + 1, 2);
			*to++ = (char)strtol(two, NULL, 16);
			p += 2;
		} else
			*to++ = *p;
	*n = (size_t)(to - s);
	*to = '\0';
	return s;
}

static struct text
exactly(const char *s, size_t n)
{
	struct text t = { malloc(n > 0 ? n : 1), n };

	if (t.p == NULL)
		exit(70);
	memcpy(t.p, s, n);
	return t;
}

static struct span
value(struct text t)
{
	struct span v;
	const char *why;
	size_t at;

	return json_read(t.p, t.n, &v, &why, &at) ? v : (struct span){ NULL, 0 };
}

static void
read_text(struct text t)
{
	struct span v;
	const char *why;
	size_t at;

	if (json_read(t.p, t.n, &v, &why, &at))
		print(v.p, v.n);
	else
		printf("no %zu: %s", at, why);
}

static void
cut(const char *s, size_t n)
{
	size_t refused = 0;

	for (size_t i = 0; i < n; i++) {
		struct text t = exactly(s, i);

		if (value(t).p != NULL)
			printf("%zu ", i);
		else
			refused++;
		free(t.p);
	}
	printf("refused %zu of %zu", refused, n);
}

static void
list(struct span v)
{
	struct span e = { NULL, 0 };

	for (bool first = true; json_next(v, &e); first = false) {
		if (!first)
			putchar('|');
		print(e.p, e.n);
	}
}

static void
json(int n, char *f[], const size_t len[])
{
	struct text a = exactly(f[1], len[1]), b = exactly(n > 2 ? f[2] : "", n > 2 ? len[2] : 0);
	struct span v = value(a), w = value(b);
	char *x = NULL, *y = NULL;
	size_t xlen = 0, ylen = 0;

	if (strcmp(f[0], "read") == 0)
		read_text(a);
	else if (strcmp(f[0], "cut") == 0)
		cut(f[1], len[1]);
	else if (v.p == NULL || (strcmp(f[0], "same") == 0 && w.p == NULL))
		printf("not JSON");
	else if (strcmp(f[0], "kind") == 0)
		putchar(json_kind(v));
	else if (strcmp(f[0], "text") == 0 && (x = json_text(v, &xlen)) != NULL)
		print(x, xlen);
	else if (strcmp(f[0], "line") == 0) {
		FILE *m = open_memstream(&x, &xlen);

		json_line(m, v);
		fclose(m);
		print(x, xlen);
	} else if (strcmp(f[0], "list") == 0)
		list(v);
	else if (strcmp(f[0], "at") == 0) {
		w = json_at(v, f[2]);
		if (w.p == NULL)
			printf("nothing");
		else
			print(w.p, w.n);
	} else if (strcmp(f[0], "canon") == 0) {
		x = json_canon(v, (const char *const *)f + 2, n - 2, &xlen);
		print(x, xlen);
	} else if (strcmp(f[0], "same") == 0) {
		x = json_canon(v, NULL, 0, &xlen);
		y = json_canon(w, NULL, 0, &ylen);
		printf(xlen == ylen && memcmp(x, y, xlen) == 0 ? "yes" : "no");
	}
	putchar('\n');
	free(x);
	free(y);
	free(a.p);
	free(b.p);
}

static struct cursor_spec
spec(char *s)
{
	static const char *const TYPES[] = { "time", "epoch", "epoch_ms", "epoch_us", "int", "decimal", "none" };
	struct cursor_spec c = { .type = CURSOR_TIME };
	char *word = strtok(s, ","), *v;

	for (int i = 0; i < 7; i++)
		if (strcmp(word, TYPES[i]) == 0)
			c.type = (enum cursor_type)i;
	while ((word = strtok(NULL, ",")) != NULL) {
		v = strchr(word, '=') + 1;
		switch (*word) {
		case 'f': c.format = v; break;
		case 'z': c.zone = v; break;
		case 'g': c.granularity_ms = atoll(v); break;
		case 's': c.shift_ms = atoll(v); break;
		case 'l': c.lookback_ms = atoll(v); break;
		}
	}
	return c;
}

static char
sign(const struct cursor_key *a, const struct cursor_key *b)
{
	int d = cursor_compare(a, b);

	return d < 0 ? '<' : d > 0 ? '>' : '=';
}

static void
cursor(int n, char *f[])
{
	struct cursor_spec c = spec(f[1]);
	struct cursor_key k, next;
	const char *why = "?";
	char text[CURSOR_TEXT];
	int64_t ms;

	if (strcmp(f[0], "spec") == 0)
		printf("%s", cursor_spec_check(&c, &why) ? "ok" : why);
	else if (strcmp(f[0], "instant") == 0) {
		if (cursor_instant(&c, atoll(f[2]), &k))
			cursor_render(&c, &k, text);
		else
			snprintf(text, sizeof text, "none");
		print(text, strlen(text));
	} else if (!cursor_key(&c, f[2], &k, &why))
		printf("no: %s", why);
	else if (strcmp(f[0], "key") == 0) {
		if (cursor_ms(&c, &k, &ms))
			printf("%" PRId64, ms);
		else
			printf("ok");
	} else if (strcmp(f[0], "order") == 0)
		for (int i = 3; i < n; i++, k = next) {
			if (!cursor_key(&c, f[i], &next, &why))
				printf("no: %s", why);
			printf("%c", sign(&k, &next));
		}
	else if (strcmp(f[0], "bound") == 0) {
		cursor_bound(&c, f[2], &k, n > 3, text, &next);
		print(text, strlen(text));
		printf(" %c", sign(&next, &k));
	}
	putchar('\n');
}

int
main(void)
{
	static const char *const CURSOR[] = { "key", "order", "bound", "instant", "spec" };
	static char line[1 << 20];
	char *f[64];
	size_t len[64];
	bool is_cursor;

	while (fgets(line, sizeof line, stdin) != NULL) {
		int n = 0;

		line[strcspn(line, "\n")] = '\0';
		for (char *p = line, *tab; p != NULL && n < 64; p = tab) {
			if ((tab = strchr(p, '\t')) != NULL)
				*tab++ = '\0';
			f[n] = decoded(p, &len[n]);
			n++;
		}
		is_cursor = false;
		for (size_t i = 0; i < sizeof CURSOR / sizeof *CURSOR; i++)
			is_cursor |= strcmp(f[0], CURSOR[i]) == 0;
		if (n == 2 && strcmp(f[0], "pointer") == 0)
			puts(json_pointer(f[1]) ? "yes" : "no");
		else if (is_cursor)
			cursor(n, f);
		else
			json(n, f, len);
	}
	return 0;
}
