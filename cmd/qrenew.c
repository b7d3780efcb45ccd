/* qrenew - extend the lease of a claim */

#include "prog.h"

static const char HELP[] =
"usage: qrenew [-hV] [-d FILE] [-l LEASE] CLAIM... | -\n"
"Let the lease of each claim end LEASE from now: a heartbeat for scripts.\n"
"  qrenew \"$claim\"            in a loop, at a third of the lease\n"
"  qrenew -l 1h - <claims     claims or job records, one a line\n"
"  -l, --lease LEASE  default 5m\n"
"A claim that others hold by now changes nothing: stop the work.\n"
"Exit: 0 extended, 65 a malformed claim, 76 a claim is lost.\n";

static const struct option LONGS[] = { { "lease", 1, NULL, 'l' }, { NULL, 0, NULL, 0 } };
static struct prog self = { .name = "qrenew", .help = HELP, .shorts = "l:", .longs = LONGS };

static int
renew(struct db *db, const struct claim *c, void *lease)
{
	return job_renew(db, c, *(int64_t *)lease);
}

int
main(int argc, char *argv[])
{
	int64_t lease = JOB_LEASE_MS;
	int c;

	prog_start(&self, true);
	while ((c = prog_option(argc, argv)) != -1)
		if (c == 'l')
			lease = prog_duration("-l", optarg);
	if (lease == 0)
		prog_usage("-l: a lease of 0 would end at once");
	prog_claims(argc - optind, argv + optind, renew, &lease);
}
