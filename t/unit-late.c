/*
 * unit-late.c - lib/slo.c and lib/chart.c on a command line: one verb a function.
 *
 *	slo TEXT			what slo_parse() makes of it: target in ms, parts of a million
 *	burning SLO MOST LATE/ALL...	which window burns, by name, of the shares over 5m 30m 1h 6h 3d
 *	trend ascii|utf8 TARGET V...	the line; -1: no target, no value
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"

int
main(int argc, char *argv[])
{
	static const char *const WINDOWS[BURNS] = { "5m", "30m", "1h", "6h", "3d" };
	struct share share[BURNS] = { { 0, 0 } };
	int64_t v[LATE_CELLS];
	char line[CHART_TREND];
	struct slo slo;
	int i, w;

	if (argc == 3 && strcmp(argv[1], "slo") == 0) {
		if (slo_parse(argv[2], &slo))
			printf("%" PRId64 " %" PRId64 "\n", slo.target_ms, slo.ppm);
		else
			puts("none");
	} else if (argc == 4 + BURNS && strcmp(argv[1], "burning") == 0 && slo_parse(argv[2], &slo)) {
		for (i = 0; i < BURNS; i++)
			if (sscanf(argv[4 + i], "%" SCNd64 "/%" SCNd64, &share[i].late, &share[i].all) != 2)
				return 64;
		w = slo_burning(&slo, share, strcmp(argv[3], "6h") == 0 ? BURN_6H : BURN_3D);
		puts(w == -1 ? "none" : WINDOWS[w]);
	} else if (argc > 4 && argc - 4 <= LATE_CELLS && strcmp(argv[1], "trend") == 0) {
		for (i = 4; i < argc; i++)
			v[i - 4] = strtoll(argv[i], NULL, 10);
		puts(chart_trend(line, v, argc - 4, strtoll(argv[3], NULL, 10), strcmp(argv[2], "utf8") == 0));
	} else {
		return 64;
	}
	return 0;
}
