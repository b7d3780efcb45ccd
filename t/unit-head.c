/*
 * unit-head.c - heads, each as hex digits on a line of standard input; t/84-qhook-head.t
 *
 * A line of output each: where it ends (0: not yet; the same if it is looked at byte by byte, else "differs"), the status, and
 * why, or METHOD TARGET minor length chunked|- and NAME=VALUE|... of its fields.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "head.h"

static size_t
unhex(const char *line, char *text)
{
	size_t n = 0;
	unsigned byte;

	for (; sscanf(line, "%2x", &byte) == 1; line += 2)
		text[n++] = (char)byte;
	return n;
}

int
main(void)
{
	static char line[4 * HEAD_MAX + 8];

	while (fgets(line, sizeof line, stdin) != NULL) {
		char *text = malloc(strlen(line) / 2 + 1);	/* as long as it is, for the sanitizers */
		size_t n = unhex(line, text), end = head_end(text, n, 0), slow = 0;
		struct head h;
		const char *why;
		int status;

		for (size_t i = 1; i <= n && slow == 0; i++)
			slow = head_end(text, i, i - 1);
		printf("%zu%s", end, slow != end ? " differs" : "");
		if (end > 0 && (status = head_read(text, end, &h, &why)) != 0)
			printf(" %d %s", status, why);
		else if (end > 0) {
			printf(" 0 %s %s %d %" PRId64 " %s ", h.method, h.target, h.minor, h.length, h.chunked ? "chunked" : "-");
			for (int i = 0; i < h.nfields; i++)
				printf("%s%s=%s", i > 0 ? "|" : "", h.fields[i].name, h.fields[i].value);
		}
		putchar('\n');
		free(text);
	}
	return 0;
}
