/* qfail - settle claims as failed, dead, deferred or released */

#include "prog.h"

static const char HELP[] =
"usage: qfail [-hV] [-d FILE] [-m REASON] [--in DUR | --at WHEN [--tz ZONE] |\n"
"             --dead | --defer DUR | --release] CLAIM... | -\n"
"Settle claims that did not succeed, all in one transaction.\n"
"  qfail -m 'connection refused' \"$claim\"     retry with backoff\n"
"  trap 'qfail --release - <claims.left' EXIT  give back what was not reached\n"
"  -m, --message REASON  why, kept with the attempt\n"
"  --in, --at            retry after DUR, at WHEN (--tz: in that zone)\n"
"  --dead                no retry: a person must look\n"
"  --defer DUR           not now, try again after DUR; spends no attempt\n"
"  --release             as if never claimed; spends no attempt\n"
"A claim that others hold by now is named on standard error and changes nothing.\n"
"Exit: 0 settled, 65 a malformed claim, 76 a claim was lost.\n";

enum { IN = 256, AT, TZ, DEAD, DEFER, RELEASE };
static const struct option LONGS[] = {
	{ "message", 1, NULL, 'm' }, { "in", 1, NULL, IN }, { "at", 1, NULL, AT }, { "tz", 1, NULL, TZ },
	{ "dead", 0, NULL, DEAD }, { "defer", 1, NULL, DEFER }, { "release", 0, NULL, RELEASE }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qfail", .help = HELP, .shorts = "m:", .longs = LONGS };

static int64_t
later(const char *option, const char *span, int64_t now)
{
	int64_t at = now + prog_duration(option, span);

	if (at > WHEN_MAX)
		prog_usage("%s: '%s' ends after the year 9999", option, span);
	return at;
}

int
main(int argc, char *argv[])
{
	struct job_settle how = { .outcome = OUT_FAILED, .due_ms = -1, .count = -1, .exit = -1, .signal = -1 };
	const char *at = NULL, *zone = NULL, *why;
	int64_t now;
	int c, ways = 0;

	prog_start(&self, true);
	now = prog_now();
	while ((c = prog_option(argc, argv)) != -1) {
		ways += c >= IN && c != TZ;
		switch (c) {
		case 'm': how.reason = optarg; break;
		case IN: how.due_ms = later("--in", optarg, now); break;
		case AT: at = optarg; break;
		case TZ: zone = optarg; break;
		case DEAD: how.dead = true; break;
		case DEFER:
			how.outcome = OUT_DEFERRED;
			how.due_ms = later("--defer", optarg, now);
			break;
		case RELEASE: how.outcome = OUT_RELEASED; break;
		}
	}
	if (ways > 1)
		prog_usage("only one of --in, --at, --dead, --defer, --release");
	if (zone != NULL && at == NULL)
		prog_usage("--tz goes with --at");
	if (zone != NULL && !when_zone(zone, &why))
		prog_usage("--tz: '%s' %s", zone, why);
	if (at != NULL && !when_instant(at, zone, now, &how.due_ms, &why))
		prog_usage("--at: '%s' %s", at, why);
	prog_claims(argc - optind, argv + optind, prog_settle, &how);
}
