/*
 * unit-when.c - lib/when.c on a command line: one verb a function.
 *
 *	duration TEXT			ms
 *	instant TEXT [ZONE [BASE]]	ms and the same as text
 *	due BASE IN AT ZONE [JITTER SHARE]	likewise
 *	zone NAME			ok
 *	text MS, millis MS, span MS, brief MS	what when_text(), when_span() and when_brief() say
 *	relative MS NOW
 *	now				ms and text
 *	boot				ms and id
 *	nofile CALL			the call with no file descriptor left
 *	-				a call a line from standard input, fields separated by |
 *
 * "-" stands for an absent AT or ZONE (NULL); BASE is an instant.  Every call also checks that the
 * caller's TZ is what it was, in the environment and in libc.  A refusal prints "error: WHY".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/resource.h>

#include "q.h"

static int
instant(int64_t ms)
{
	char buf[WHEN_TEXT];

	printf("%" PRId64 " %s\n", ms, when_text(buf, ms, true));
	return 0;
}

static int
refused(const char *why)
{
	printf("error: %s\n", why != NULL ? why : "(no reason)");
	return 1;
}

static const char *
opt(const char *s)
{
	return strcmp(s, "-") == 0 ? NULL : s;
}

static int
call(int n, char *v[])
{
	const char *verb = v[0], *why = NULL;
	char buf[WHEN_TEXT], id[40];
	int64_t ms = -42;

	if (strcmp(verb, "duration") == 0 && n == 2) {
		if (!when_duration(v[1], &ms, &why))
			return ms == -42 ? refused(why) : refused("touched the result");
		printf("%" PRId64 "\n", ms);
	} else if (strcmp(verb, "instant") == 0 && n >= 2 && n <= 4) {
		int64_t base = 0;

		if (n > 3 && !when_instant(v[3], NULL, 0, &base, &why))
			return refused("bad BASE");
		if (!when_instant(v[1], n > 2 ? opt(v[2]) : NULL, base, &ms, &why))
			return ms == -42 ? refused(why) : refused("touched the result");
		return instant(ms);
	} else if (strcmp(verb, "due") == 0 && (n == 5 || n == 7)) {
		struct when_due w = { .at = opt(v[3]), .zone = opt(v[4]) };

		if (!when_instant(v[1], NULL, 0, &w.base, &why))
			return refused("bad BASE");
		if (!when_duration(v[2], &w.in, &why))
			return refused("bad IN");
		if (n == 7) {
			if (!when_duration(v[5], &w.jitter_ms, &why))
				return refused("bad JITTER");
			w.share = strtod(v[6], NULL);
		}
		if (!when_due(&w, &ms, &why))
			return ms == -42 ? refused(why) : refused("touched the result");
		return instant(ms);
	} else if (strcmp(verb, "zone") == 0 && n == 2) {
		if (!when_zone(v[1], &why))
			return refused(why);
		puts("ok");
	} else if (strcmp(verb, "text") == 0 && n == 2) {
		puts(when_text(buf, strtoll(v[1], NULL, 10), false));
	} else if (strcmp(verb, "millis") == 0 && n == 2) {
		puts(when_text(buf, strtoll(v[1], NULL, 10), true));
	} else if (strcmp(verb, "span") == 0 && n == 2) {
		puts(when_span(buf, strtoll(v[1], NULL, 10)));
	} else if (strcmp(verb, "brief") == 0 && n == 2) {
		puts(when_brief(buf, strtoll(v[1], NULL, 10)));
	} else if (strcmp(verb, "relative") == 0 && n == 3) {
		puts(when_relative(buf, strtoll(v[1], NULL, 10), strtoll(v[2], NULL, 10)));
	} else if (strcmp(verb, "now") == 0 && n == 1) {
		if ((ms = when_now()) == -1)
			return refused("now");
		return instant(ms);
	} else if (strcmp(verb, "boot") == 0 && n == 1) {
		ms = when_boot(id);
		if (ms == -1)
			return refused("boot");
		printf("%" PRId64 " %s\n", ms, id);
	} else if (strcmp(verb, "nofile") == 0 && n > 1) {
		struct rlimit old, none;
		int r;

		getrlimit(RLIMIT_NOFILE, &old);
		none = old;
		none.rlim_cur = 0;
		setrlimit(RLIMIT_NOFILE, &none);
		r = call(n - 1, v + 1);
		setrlimit(RLIMIT_NOFILE, &old);
		return r;
	} else {
		fprintf(stderr, "unit-when: unknown call: %s\n", verb);
		exit(64);
	}
	return 0;
}

/* An hour in summer and one in winter, as libc shows them here. */
static void
wall_clock(char *buf, size_t size)
{
	time_t summer = 1782000000, winter = 1798000000;
	struct tm a, b;
	const char *tz = getenv("TZ");

	localtime_r(&summer, &a);
	localtime_r(&winter, &b);
	snprintf(buf, size, "%s %s %s %d %d", tz != NULL ? tz : "(none)", tzname[0], tzname[1],
	    a.tm_hour * 60 + a.tm_min, b.tm_hour * 60 + b.tm_min);
}

static int
watched(int n, char *v[])
{
	char before[256], after[256];
	int r;

	wall_clock(before, sizeof(before));
	r = call(n, v);
	wall_clock(after, sizeof(after));
	if (strcmp(before, after) != 0) {
		printf("error: TZ was %s and is %s\n", before, after);
		return 1;
	}
	return r;
}

int
main(int argc, char *argv[])
{
	char line[1024], *field[8];

	tzset();
	if (argc < 2)
		return 64;
	if (strcmp(argv[1], "-") != 0)
		return watched(argc - 1, argv + 1);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		int n = 0;

		line[strcspn(line, "\n")] = '\0';
		for (char *p = line; p != NULL && n < 8; n++) {
			field[n] = p;
			if ((p = strchr(p, '|')) != NULL)
				*p++ = '\0';
		}
		watched(n, field);
	}
	return 0;
}
