/*
 * chart.h - trend lines, histograms and pictures of lateness.  Knows nothing of the database.
 */
#ifndef CHART_H
#define CHART_H

#include "late.h"

/* Does the locale of the environment say UTF-8?  (No locale need be installed.) */
bool chart_utf8(void);

/*
 * A line of n signs for n values: under the target in six steps (UTF-8: seven), and one for what is over it; without a target
 * (-1) against the greatest.  -1: none, '-'.
 */
#define CHART_TREND (LATE_CELLS * 3 + 1)
char *chart_trend(char buf[CHART_TREND], const int64_t *v, int n, int64_t target_ms, bool utf8);

/* How many are at most each of the steps, which are about three to a decade; bars to `room` columns, a rule at the target. */
void chart_hist(FILE *, const struct values *, const struct slo *, int room, bool utf8);

/* The steps of histograms and axes, ms, ascending. */
extern const int64_t CHART_STEPS[];
extern const int CHART_NSTEPS;

/*
 * One picture (SVG 1.1, no script, no font of its own): for each report a panel with the 95th percentile by cell, the greatest
 * above it, and its target.  The reports were read with `cells` of them.
 */
void chart_svg(FILE *, const struct ledger *, const struct ledger_want *, const char *title);

#endif
