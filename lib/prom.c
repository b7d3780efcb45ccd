/* prom.c - a report as Prometheus text (format 0.0.4): HELP and TYPE once a name, texts that never change, samples in order */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "late.h"

static const char SOURCES[] = "SELECT name FROM q_poll WHERE name > :last ORDER BY name LIMIT 1";
static const char SUCCESS[] =
	"SELECT started_ms FROM q_poll_run\n"
	" WHERE name = :name AND outcome IN ('new', 'nothing', 'unmodified') ORDER BY id DESC LIMIT 1";

struct prom { FILE *f; struct db *db; const char *file; const char *metric; };

static void
head(struct prom *p, const char *metric, const char *type, const char *help)
{
	fprintf(p->f, "# HELP %s %s\n# TYPE %s %s\n", metric, help, metric, type);
	p->metric = metric;
}

/* A label's value: what text_show() makes of it, which is UTF-8 without control bytes. */
static void
label(struct prom *p, const char *name, const char *value, char before)
{
	char *safe = NULL;
	size_t n;
	FILE *m = text_memory(&safe, &n);

	if (m != NULL)
		text_show(m, value, strlen(value), 0);
	if (m == NULL || fclose(m) == EOF) {
		db_fail(p->db, Q_TEMP, "out of memory");
		free(safe);
		return;
	}
	fprintf(p->f, "%c%s=\"", before, name);
	for (const char *s = safe; *s != '\0'; s++)
		if (*s == '\\' || *s == '"')
			fprintf(p->f, "\\%c", *s);
		else
			putc(*s, p->f);
	putc('"', p->f);
	free(safe);
}

/* NULL name: no such label. */
static void
begin(struct prom *p, const char *suffix, const char *name, const char *value, const char *name2, const char *value2)
{
	fprintf(p->f, "%s%s", p->metric, suffix);
	label(p, "db", p->file, '{');
	if (name != NULL)
		label(p, name, value, ',');
	if (name2 != NULL)
		label(p, name2, value2, ',');
	fputs("} ", p->f);
}

static void
number(struct prom *p, const char *name, const char *value, const char *name2, const char *value2, int64_t n)
{
	begin(p, "", name, value, name2, value2);
	fprintf(p->f, "%" PRId64 "\n", n);
}

/* ms as seconds, exact */
static void
seconds(struct prom *p, const char *name, const char *value, int64_t ms)
{
	begin(p, "", name, value, NULL, NULL);
	fprintf(p->f, "%" PRId64 ".%03" PRId64 "\n", ms / 1000, ms % 1000);
}

static void
histogram(struct prom *p, const struct totals *t, const char *metric, const char *help, int sum, int first)
{
	char le[32];
	int64_t n;

	head(p, metric, "histogram", help);
	for (int k = 0; k < t->n; k++) {
		const struct total *one = t->v[k];

		n = 0;
		for (int i = 0; i < TOTAL_BUCKETS; i++) {
			n += one->n[first + i];
			snprintf(le, sizeof le, "%g", i < TOTAL_BUCKETS - 1 ? (double)TOTAL_LE_MS[i] / 1000 : 0);
			begin(p, "_bucket", "queue", one->queue, "le", i < TOTAL_BUCKETS - 1 ? le : "+Inf");
			fprintf(p->f, "%" PRId64 "\n", n);
		}
		begin(p, "_sum", "queue", one->queue, NULL, NULL);
		fprintf(p->f, "%" PRId64 ".%03" PRId64 "\n", one->n[sum] / 1000, one->n[sum] % 1000);
		begin(p, "_count", "queue", one->queue, NULL, NULL);
		fprintf(p->f, "%" PRId64 "\n", n);
	}
}

static int
states(const struct job_count *n, void *arg)
{
	struct prom *p = arg;

	number(p, "queue", n->queue, "state", "cancelled", n->cancelled);
	number(p, "queue", n->queue, "state", "claimed", n->claimed);
	number(p, "queue", n->queue, "state", "dead", n->dead);
	number(p, "queue", n->queue, "state", "done", n->done);
	number(p, "queue", n->queue, "state", "failed", n->failed);
	number(p, "queue", n->queue, "state", "pending", n->pending);
	return Q_OK;
}

static void
sources(struct prom *p)
{
	char *name = strdup(""), *more;
	struct stmt *s;
	int64_t at;

	head(p, "q_poll_last_success_timestamp_seconds", "gauge", "Unix time of the last run of a source that was no failure.");
	if (name == NULL)
		db_fail(p->db, Q_TEMP, "out of memory");
	while (name != NULL && db_status(p->db) == Q_OK) {
		more = db_next(db_prepare(p->db, SOURCES), name);
		free(name);
		if ((name = more) == NULL)
			break;
		s = db_prepare(p->db, SUCCESS);
		db_text(s, ":name", name);
		if ((at = db_only(s)) != -1)
			seconds(p, "name", name, at);
	}
	free(name);
}

static int
expires(const struct setting *s, const char *value, int64_t set_ms, void *arg)
{
	char day[32];
	const char *why;
	int64_t at;

	(void)set_ms;
	snprintf(day, sizeof day, "%.10s 00:00", value);
	if (strcmp(s->kind, "credential") == 0 && strcmp(s->field, "expires") == 0 &&
	    (when_instant(value, NULL, 0, &at, &why) || when_instant(day, "UTC", 0, &at, &why)))
		seconds(arg, "name", s->name, at);
	return Q_OK;
}

int
prom_print(FILE *f, struct db *db, const struct ledger *l, const struct totals *t)
{
	struct prom p = { .f = f, .db = db, .file = db_path(db) };
	struct db_size z = { 0 };

	head(&p, "q_attempts_total", "counter", "Attempts by outcome; failed and lost had a retry to come, dead had none.");
	for (int k = 0; k < t->n; k++)
		for (int i = 0; i < TOTAL_NOUTCOMES; i++)
			number(&p, "queue", t->v[k]->queue, "outcome", TOTAL_OUTCOMES[i], t->v[k]->n[i]);
	head(&p, "q_build_info", "gauge", "Constant 1, with the version of q.");
	number(&p, "version", Q_VERSION, NULL, NULL, 1);
	head(&p, "q_credential_expires_timestamp_seconds", "gauge", "Unix time at which a credential ends.");
	setting_each(db, expires, &p);
	db_sizes(db, &z);
	head(&p, "q_db_bytes", "gauge", "Size of the queue file.");
	number(&p, NULL, NULL, NULL, NULL, z.file);
	head(&p, "q_jobs", "gauge", "Jobs by state.");
	job_counts(db, states, &p);
	head(&p, "q_jobs_due", "gauge", "Jobs that could be claimed now.");
	for (int k = 0; k < l->n; k++)
		number(&p, "queue", l->rows[k]->queue, NULL, NULL, l->rows[k]->waiting);
	head(&p, "q_late_total", "counter", "Attempts that started after the target.");
	for (int k = 0; k < t->n; k++)
		number(&p, "queue", t->v[k]->queue, NULL, NULL, t->v[k]->n[TOTAL_LATE]);
	head(&p, "q_log_bytes", "gauge", "Size of the log of the queue file.");
	number(&p, NULL, NULL, NULL, NULL, z.log);
	head(&p, "q_objective_ratio", "gauge", "Wanted share of attempts that start within the target.");
	for (int k = 0; k < l->n; k++)
		if (l->rows[k]->slo.target_ms != -1) {
			begin(&p, "", "queue", l->rows[k]->queue, NULL, NULL);
			fprintf(f, "%g\n", (double)l->rows[k]->slo.ppm / 1e6);
		}
	head(&p, "q_oldest_due_seconds", "gauge", "Time since the oldest job that could be claimed now was due, 0 if there is none.");
	for (int k = 0; k < l->n; k++)
		seconds(&p, "queue", l->rows[k]->queue, l->rows[k]->oldest_ms > 0 ? l->rows[k]->oldest_ms : 0);
	if (db_has(db, FOR_QPOLL))
		sources(&p);
	head(&p, "q_queue_paused", "gauge", "1 if the queue is paused.");
	for (int k = 0; k < l->n; k++)
		number(&p, "queue", l->rows[k]->queue, NULL, NULL, l->rows[k]->paused);
	histogram(&p, t, "q_run_seconds", "Time from start to end, per attempt that ran to it.", TOTAL_RUN_MS, TOTAL_RUN);
	head(&p, "q_target_seconds", "gauge", "Target for the time from due to start.");
	for (int k = 0; k < l->n; k++)
		if (l->rows[k]->slo.target_ms != -1)
			seconds(&p, "queue", l->rows[k]->queue, l->rows[k]->slo.target_ms);
	histogram(&p, t, "q_wait_seconds", "Time from due to start, per attempt.", TOTAL_WAIT_MS, TOTAL_WAIT);
	return db_status(db);
}
