/*
 * unit-cron.c - lib/cron.c on a command line: a call a line from standard input, fields separated by |
 *
 *	slots FROM TO LINE	the slots from FROM up to TO, without it, in seconds, of a line of a table
 *	due MARK NOW LINE	what a pass keeps: how many were missed, the first of them, and the slots
 *	spec LINE		schedule and zone in one form
 *
 * Times are seconds.  A refusal prints "error: WHY"; a line without an entry "none".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cron.h"

static void
slots(const struct cron *c, int64_t from, int64_t to)
{
	int64_t slot = from * 1000 - 1;
	const char *why;

	for (;;) {
		if (!cron_next(c, slot, &slot, &why)) {
			printf("error: %s\n", why);
			return;
		}
		if (slot >= to * 1000)
			break;
		printf("%" PRId64 " ", slot / 1000);
	}
	putchar('\n');
}

static void
due(const struct cron *c, int64_t mark, int64_t now)
{
	static int64_t at[CRON_KEEP_MAX];
	int64_t missed, first = 0;
	const char *why;
	int n;

	if (!cron_due(c, mark * 1000, now * 1000, at, &n, &missed, &first, &why)) {
		printf("error: %s\n", why);
		return;
	}
	printf("%" PRId64 " %" PRId64 ":", missed, missed > 0 ? first / 1000 : 0);
	for (int i = 0; i < n; i++)
		printf(" %" PRId64, at[i] / 1000);
	putchar('\n');
}

int
main(void)
{
	static char line[1 << 21];
	const char *tz = "Asia/Tokyo";

	setenv("TZ", tz, 1);

	while (fgets(line, sizeof line, stdin) != NULL) {
		char *verb = line, *v[3] = { NULL, NULL, NULL }, *p = line;
		const char *why;
		struct cron c;
		int rc, n = strncmp(line, "spec", 4) == 0 ? 1 : 3;

		line[strcspn(line, "\n")] = '\0';
		for (int i = 0; i < n && p != NULL; i++) {
			if ((p = strchr(p, '|')) == NULL)
				break;
			*p++ = '\0';
			v[i] = p;
		}
		if (p == NULL) {
			fprintf(stderr, "unit-cron: %s: too few fields\n", verb);
			return 2;
		}
		rc = cron_parse(p, &c, &why);
		if (rc != Q_OK)
			printf("%s%s\n", rc == Q_NO ? "none" : "error: ", rc == Q_NO ? "" : why);
		else if (n == 1)
			puts(c.spec);
		else if (strcmp(verb, "slots") == 0)
			slots(&c, atoll(v[0]), atoll(v[1]));
		else
			due(&c, atoll(v[0]), atoll(v[1]));
		if (rc == Q_OK)
			free(c.spec);
		fflush(stdout);
	}
	when_leave();
	if (getenv("TZ") == NULL || strcmp(getenv("TZ"), tz) != 0) {
		puts("TZ was not put back");
		return 1;
	}
	return 0;
}
