/* slo.c - targets for lateness: how much of the budget burns, with rules for small numbers */
#include <stdlib.h>
#include <string.h>

#include "late.h"

#define MILLION 1000000
#define MINUTE INT64_C(60000)

const int64_t SLO_WINDOW_MS[BURNS] = { 5 * MINUTE, 30 * MINUTE, 60 * MINUTE, 360 * MINUTE, 4320 * MINUTE };

/* Both windows must burn: the long one says that it matters, the short one that it goes on. */
static const struct pair { int window, brief; double factor; } PAIRS[] = {
	{ BURN_1H, BURN_5M, 14.4 }, { BURN_6H, BURN_30M, 6 }, { BURN_3D, BURN_6H, 1 }
};

bool
slo_parse(const char *s, struct slo *slo)
{
	const char *slash = strchr(s, '/'), *why;
	char limit[32], *end;
	double p;

	if (slash == NULL || slash - s >= (int)sizeof limit || strspn(slash + 1, "0123456789.") + 1 != strlen(slash + 1))
		return false;
	snprintf(limit, sizeof limit, "%.*s", (int)(slash - s), s);
	p = strtod(slash + 1, &end);
	if (!when_duration(limit, &slo->target_ms, &why) || slo->target_ms == 0 || strcmp(end, "%") != 0 || !(p > 0 && p < 100))
		return false;
	slo->ppm = (int64_t)(p * (MILLION / 100) + 0.5);
	if (slo->ppm < 1 || slo->ppm >= MILLION)
		slo->ppm = slo->ppm < 1 ? 1 : MILLION - 1;
	return true;
}

double
slo_burn(const struct slo *slo, const struct share *s)
{
	return s->all == 0 ? -1 : (double)s->late / (double)s->all * MILLION / (double)(MILLION - slo->ppm);
}

bool
slo_missed(const struct slo *slo, const struct share *s)
{
	return s->all > 0 && (double)(s->all - s->late) * MILLION < (double)s->all * (double)slo->ppm;
}

static bool
burns(const struct slo *slo, const struct share *s, double factor)
{
	if (factor * (double)(MILLION - slo->ppm) >= MILLION)
		return slo_missed(slo, s);
	return slo_burn(slo, s) >= factor;
}

int
slo_burning(const struct slo *slo, const struct share share[BURNS], int most)
{
	for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS && PAIRS[i].window <= most; i++) {
		const struct share *s = &share[PAIRS[i].window];

		if (s->late >= 3 && (s->late >= 10 || s->late * 20 >= s->all) && burns(slo, s, PAIRS[i].factor) &&
		    burns(slo, &share[PAIRS[i].brief], PAIRS[i].factor))
			return PAIRS[i].window;
	}
	return -1;
}
