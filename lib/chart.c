/* chart.c - trend lines, histograms and pictures of lateness; see chart.h */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

const int64_t CHART_STEPS[] = { 10, 30, 100, 300, 1 * SECOND, 3 * SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 5 * MINUTE,
	15 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR, DAY, 3 * DAY, 7 * DAY, 30 * DAY, 365 * DAY, LATE_MS_MAX };
const int CHART_NSTEPS = sizeof CHART_STEPS / sizeof *CHART_STEPS;

bool
chart_utf8(void)
{
	static const char *const NAMES[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	const char *s = NULL;

	for (int i = 0; i < 3 && (s == NULL || *s == '\0'); i++)
		s = getenv(NAMES[i]);
	return s != NULL && (strstr(s, "UTF-8") != NULL || strstr(s, "utf8") != NULL || strstr(s, "utf-8") != NULL);
}

/* ---- trend ---- */

char *
chart_trend(char buf[CHART_TREND], const int64_t *v, int n, int64_t target_ms, bool utf8)
{
	static const char *const ASCII[] = { "_", ".", ":", "+", "=", "*", "#" };
	static const char *const BLOCKS[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	const char *const *signs = utf8 ? BLOCKS : ASCII;
	int top = utf8 ? 7 : 6, level;
	int64_t most = target_ms;

	buf[0] = '\0';
	for (int i = 0; target_ms == -1 && i < n; i++)
		most = v[i] > most ? v[i] : most;
	for (int i = 0; i < n; i++) {
		level = v[i] <= 0 ? 0 : v[i] > most ? top : (int)((double)v[i] / (double)most * top);
		if (level == top && v[i] == target_ms)		/* not over it */
			level--;
		strcat(buf, v[i] == -1 ? "-" : signs[level]);
	}
	return buf;
}

/* ---- histogram ---- */

/* The step that a value belongs to. */
static int
step_of(int64_t ms)
{
	int i = 0;

	while (i < CHART_NSTEPS - 1 && CHART_STEPS[i] < ms)
		i++;
	return i;
}

static char *
step_text(char buf[WHEN_TEXT], int i)
{
	if (i == CHART_NSTEPS - 1)
		snprintf(buf, WHEN_TEXT, "more");
	else
		when_span(buf, CHART_STEPS[i]);
	return buf;
}

static void
bar(FILE *f, size_t n, size_t most, int room, bool utf8)
{
	static const char *const EIGHTHS[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	size_t eighths = most == 0 ? 0 : (size_t)((double)n / (double)most * room * 8);

	if (n > 0 && eighths < (utf8 ? 1 : 8))	/* few are not none */
		eighths = utf8 ? 1 : 8;
	for (size_t i = 0; i < eighths / 8; i++)
		fputs(utf8 ? "█" : "#", f);
	if (utf8)
		fputs(EIGHTHS[eighths % 8], f);
}

static void
rule(FILE *f, const struct values *v, const struct slo *slo, int room)
{
	char span[WHEN_TEXT];
	size_t in = ledger_upto(v, slo->target_ms);
	int used;

	used = fprintf(f, "  %s target %s: %.2f%% of them, wanted %.2f%% ", "------", when_span(span, slo->target_ms),
	    (double)(in * 10000 / v->n) / 100, (double)slo->ppm / 10000);
	for (; used < room - 1; used++)
		putc('-', f);
	putc('\n', f);
}

void
chart_hist(FILE *f, const struct values *v, const struct slo *slo, int room, bool utf8)
{
	enum { LEFT = 27 };
	size_t n[sizeof CHART_STEPS / sizeof *CHART_STEPS] = { 0 }, most = 0, before = 0;
	int first, last, bars = (room < 40 ? 40 : room > 120 ? 120 : room) - LEFT;
	bool ruled = slo->target_ms == -1;
	char label[WHEN_TEXT];

	if (v->n == 0)
		return;
	for (int i = 0; i < CHART_NSTEPS; i++) {
		size_t upto = i == CHART_NSTEPS - 1 ? v->n : ledger_upto(v, CHART_STEPS[i]);

		n[i] = upto - before;
		before = upto;
		most = n[i] > most ? n[i] : most;
	}
	for (first = 0; n[first] == 0; first++)
		;
	for (last = CHART_NSTEPS - 1; n[last] == 0; last--)
		;
	fprintf(f, "%8s %8s %7s\n", "UP TO", "STARTS", "CUM%");
	before = 0;
	for (int i = first; i <= last; i++) {
		if (!ruled && CHART_STEPS[i] > slo->target_ms) {	/* it stands in the row that begins below it */
			rule(f, v, slo, bars + LEFT);
			ruled = true;
		}
		before += n[i];
		fprintf(f, "%8s %8zu %7.2f%s", step_text(label, i), n[i], (double)(before * 10000 / v->n) / 100, n[i] > 0 ? "  " : "");
		bar(f, n[i], most, bars, utf8);
		putc('\n', f);
	}
	if (!ruled)
		rule(f, v, slo, bars + LEFT);
}

/* ---- picture ---- */

enum { LEFT_PX = 64, RIGHT_PX = 16, WIDE_PX = 960, HEAD_PX = 56, TITLE_PX = 26, PANEL_PX = 96, GAP_PX = 34 };

/* XML: what is no character of it, or a control, as text_show() has it. */
static void
xml(FILE *f, const char *p, size_t n)
{
	for (size_t k; n > 0; p += k, n -= k) {
		for (k = 0; k < n && p[k] != '\0' && strchr("<>&\"", p[k]) != NULL; k++)
			fputs(p[k] == '<' ? "&lt;" : p[k] == '>' ? "&gt;" : p[k] == '&' ? "&amp;" : "&quot;", f);
		p += k;
		n -= k;
		for (k = 0; k < n && (p[k] == '\0' || strchr("<>&\"", p[k]) == NULL); k++)
			;
		text_show(f, p, k, 80);
	}
}

struct axis { int low, high; };		/* steps at the foot and the top of a panel */

/* How high a value stands, in px: each step of the axis takes the same room, so it is about logarithmic. */
static double
height(const struct axis *a, int64_t ms)
{
	int i = step_of(ms);
	double part;

	if (i <= a->low || ms <= CHART_STEPS[a->low])
		return ms > 0 ? 2 : 1;
	if (i > a->high)
		return PANEL_PX;
	part = (double)(ms - CHART_STEPS[i - 1]) / (double)(CHART_STEPS[i] - CHART_STEPS[i - 1]);
	return 2 + (i - 1 - a->low + part) * (PANEL_PX - 2) / (a->high - a->low);
}

static void
panel(FILE *f, const struct report *r, const struct ledger_want *w, int y)
{
	int64_t p95[LATE_CELLS], max[LATE_CELLS], most = r->slo.target_ms;
	double cell = (double)(WIDE_PX - LEFT_PX - RIGHT_PX) / w->cells, at;
	char a[WHEN_TEXT], b[WHEN_TEXT], label[WHEN_TEXT];
	int foot = y + TITLE_PX + PANEL_PX;
	struct axis axis;

	ledger_trend(&r->late, 95, w->cells, p95);
	ledger_trend(&r->late, 100, w->cells, max);
	for (int i = 0; i < w->cells; i++)
		most = max[i] > most ? max[i] : most;
	axis.low = 2;
	axis.high = step_of(most) < 6 ? 6 : step_of(most);
	if (r->slo.target_ms != -1 && step_of(r->slo.target_ms) == axis.high && axis.high < CHART_NSTEPS - 1)
		axis.high++;			/* room for its label */
	fprintf(f, "<text x=\"%d\" y=\"%d\" class=\"name\">", LEFT_PX, y + 16);
	xml(f, r->queue, r->queue_len);
	if (r->type_len > 0) {
		fputs(" / ", f);
		xml(f, r->type, r->type_len);
	}
	fprintf(f, "</text>\n<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%zu starts", WIDE_PX - RIGHT_PX, y + 16, r->late.n);
	if (r->late.n > 0)
		fprintf(f, ", p95 %s, max %s", when_brief(a, ledger_rank(&r->late, 95)), when_brief(b, ledger_rank(&r->late, 100)));
	if (r->waiting > 0)
		fprintf(f, "; %" PRId64 " wait, the oldest %s%s%s", r->waiting, when_brief(a, r->oldest_ms), *r->why != '\0' ? ": " : "", r->why);
	fputs("</text>\n", f);
	for (int i = axis.low; i <= axis.high; i += axis.high - axis.low > 6 ? 2 : 1) {
		at = foot - height(&axis, CHART_STEPS[i]);
		fprintf(f, "<path d=\"M%d %.1fH%d\" class=\"grid\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT_PX, at,
		    WIDE_PX - RIGHT_PX, LEFT_PX - 6, at + 4, step_text(label, i));
	}
	for (int i = 0; i < w->cells; i++) {
		if (p95[i] == -1)
			continue;
		fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"%s/>", LEFT_PX + i * cell + 1,
		    foot - height(&axis, p95[i]), cell - 2, height(&axis, p95[i]),
		    r->slo.target_ms != -1 && p95[i] > r->slo.target_ms ? " class=\"over\"" : "");
		fprintf(f, "<path d=\"M%.1f %.1fh%.1f\" class=\"max\"/>\n", LEFT_PX + i * cell + 1, foot - height(&axis, max[i]), cell - 2);
	}
	if (r->slo.target_ms != -1) {
		at = foot - height(&axis, r->slo.target_ms);
		fprintf(f, "<path d=\"M%d %.1fH%d\" class=\"target\"/><text x=\"%d\" y=\"%.1f\" class=\"goal\">target %s for %g%%, ", LEFT_PX, at,
		    WIDE_PX - RIGHT_PX, LEFT_PX + 4, at - 4, when_span(label, r->slo.target_ms), (double)r->slo.ppm / 10000);
		if (r->on.all > 0)
			fprintf(f, "%.2f%% were in time</text>\n", (double)((r->on.all - r->on.late) * 10000 / r->on.all) / 100);
		else
			fputs("nothing was due</text>\n", f);
	}
}

void
chart_svg(FILE *f, const struct ledger *l, const struct ledger_want *w, const char *title)
{
	int tall = HEAD_PX + l->n * (TITLE_PX + PANEL_PX + GAP_PX) + 8;
	char a[WHEN_TEXT];

	fprintf(f, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\">\n<title>", WIDE_PX, tall,
	    WIDE_PX, tall);
	xml(f, title, strlen(title));
	fputs("</title>\n<style>text{font:12px sans-serif;fill:#444}.head{font-size:16px;fill:#111}.name{font-size:14px;fill:#111}"
	    "rect{fill:#4a7fb5}.over{fill:#c0392b}path{fill:none}.grid{stroke:#e4e4e4}.max{stroke:#999;stroke-width:2}"
	    ".target{stroke:#c0392b;stroke-dasharray:6 3}.goal{fill:#c0392b}</style>\n", f);
	fprintf(f, "<rect width=\"%d\" height=\"%d\" style=\"fill:#fff\"/>\n<text x=\"%d\" y=\"24\" class=\"head\">", WIDE_PX, tall, LEFT_PX);
	xml(f, title, strlen(title));
	fprintf(f, "</text>\n<text x=\"%d\" y=\"42\">bars: 95 of 100 started by then; grey: the latest; %s</text>\n", LEFT_PX,
	    l->n == 0 ? "no attempts, nothing waits" : "red: past the target");
	for (int i = 0; i < l->n; i++) {
		int y = HEAD_PX + i * (TITLE_PX + PANEL_PX + GAP_PX), foot = y + TITLE_PX + PANEL_PX;

		panel(f, l->rows[i], w, y);
		for (int k = 0; k <= 4; k++)
			fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">%.16sZ</text>\n", LEFT_PX + k * (WIDE_PX - LEFT_PX - RIGHT_PX) / 4,
			    foot + 16, k == 0 ? "start" : k == 4 ? "end" : "middle",
			    when_text(a, w->from_ms + (w->now - w->from_ms) / 4 * k, false));
	}
	fputs("</svg>\n", f);
}
