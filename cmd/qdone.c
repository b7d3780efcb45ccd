/* qdone - settle claims as done */

#include <string.h>

#include "prog.h"

static const char HELP[] =
"usage: qdone [-hV] [-d FILE] [-r RESULT] [--count N] CLAIM... | -\n"
"Settle claims as done, all in one transaction.  Doing it again is success.\n"
"  qdone \"$claim\"\n"
"  qdone - <claims            claims or job records, one a line\n"
"  -r, --result RESULT  kept with the attempt, at most 1 MiB\n"
"  --count N            how many things the run produced\n"
"A claim that others hold by now is named on standard error and changes nothing.\n"
"Exit: 0 done, 65 a malformed claim, 76 a claim was lost.\n";

enum { COUNT = 256 };
static const struct option LONGS[] = { { "result", 1, NULL, 'r' }, { "count", 1, NULL, COUNT }, { NULL, 0, NULL, 0 } };
static struct prog self = { .name = "qdone", .help = HELP, .shorts = "r:", .longs = LONGS };

int
main(int argc, char *argv[])
{
	struct job_settle how = { .outcome = OUT_DONE, .due_ms = -1, .count = -1, .exit = -1, .signal = -1 };
	int c;

	prog_start(&self, true);
	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case 'r':
			how.result = optarg;
			how.result_len = strlen(optarg);
			break;
		case COUNT: how.count = prog_int("--count", optarg, 0, INT64_MAX); break;
		}
	prog_claims(argc - optind, argv + optind, prog_settle, &how);
}
