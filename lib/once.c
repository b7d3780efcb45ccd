/*
 * once.c - what qonce remembers: a row for each key, and while its command runs a hold of the kind "once".  The row alone says
 * "started"; whether that still goes on or nobody knows what became of it, the hold says.
 */
#include <stdlib.h>
#include <string.h>

#include "job.h"

/* One statement, so that row and hold are of one moment. */
static const char LOOK[] =
	"SELECT state, fence, runs, started_ms, finished_ms, exit, output_len, worker, reason, output,\n"
	"       (SELECT h.lease_ms - :boot FROM q_hold h\n"
	"         WHERE h.kind = 'once' AND h.name = o.key AND h.fence = o.fence AND h.lease_ms > :boot\n"
	"           AND (SELECT value FROM q_meta WHERE name = 'boot') = :id)\n"
	"  FROM q_once o WHERE key = :key";

static const char OPEN[] = "SELECT min(key) FROM q_once WHERE state = 'started' AND key > :last";

static const char START[] =
	"INSERT INTO q_once(key, state, fence, runs, started_ms, worker) VALUES(:key, 'started', :fence, 1, :now, :worker)\n"
	"    ON CONFLICT(key) DO UPDATE SET state = 'started', fence = excluded.fence, runs = runs + 1, started_ms = excluded.started_ms,\n"
	"       worker = excluded.worker, finished_ms = NULL, exit = NULL, reason = NULL, output = NULL, output_len = NULL";

static const char END[] =
	"UPDATE q_once SET state = :state, finished_ms = :now, exit = :exit, reason = :reason, output = :output, output_len = :len\n"
	" WHERE key = :key AND fence = :fence AND state = 'started'";

static const char HAPPENED[] =
	"UPDATE q_once SET state = 'done', finished_ms = :now, worker = :worker, reason = NULL, output = NULL, output_len = NULL WHERE key = :key";

static const char FORGET[] = "DELETE FROM q_once WHERE key = :key";

static struct stmt *
of(struct db *db, const char *sql, const char *key)
{
	struct stmt *s = db_prepare(db, sql);

	db_text(s, ":key", key);
	return s;
}

static const char *
kept(char *buf, size_t size, const char *text)
{
	if (text != NULL)
		snprintf(buf, size, "%s", text);
	return text != NULL ? buf : NULL;
}

/* Into memory of ours: a statement that is left open would hold up checkpoints while its reader waits. */
static void
read_row(struct stmt *s, struct once *o)
{
	static char output[ONCE_OUTPUT_MAX], worker[256], reason[8192];
	const char *state = db_col_text(s, 0);
	const void *p = db_col_blob(s, 9, &o->output_len);

	o->fence = db_col_int(s, 1);
	o->runs = db_col_int(s, 2);
	o->started_ms = db_col_int(s, 3);
	o->finished_ms = db_col_int(s, 4);
	o->exit = db_col_int(s, 5);
	o->output_total = db_col_int(s, 6);
	if (p == NULL)
		o->output_len = 0;
	else if (o->output_len > sizeof output)
		o->output_len = sizeof output;
	if (o->output_len > 0)
		memcpy(output, p, o->output_len);
	o->output = output;
	o->worker = kept(worker, sizeof worker, db_col_opt(s, 7));
	o->reason = kept(reason, sizeof reason, db_col_opt(s, 8));
	o->left_ms = db_col_int(s, 10);
	o->state = strcmp(state, "done") == 0 ? ONCE_DONE : strcmp(state, "failed") == 0 ? ONCE_FAILED :
	    o->left_ms > 0 ? ONCE_RUNNING : ONCE_UNKNOWN;
}

int
once_look(struct db *db, const char *key, struct once *o)
{
	char id[40];
	int64_t boot = job_clock(db, id);
	struct stmt *s;

	*o = (struct once){ .key = key, .state = ONCE_ABSENT };
	if (boot == -1)
		return db_status(db);
	if (!db_has(db, FOR_QONCE))
		return db_status(db);
	s = of(db, LOOK, key);
	db_int(s, ":boot", boot);
	db_text(s, ":id", id);
	if (db_step(s) == 1)
		read_row(s, o);
	db_reset(s);
	return db_status(db);
}

int
once_start(struct db *db, const struct once *seen, int64_t lease_ms, const char *worker, int64_t now, int64_t *fence)
{
	enum once_state state = seen->state;
	int64_t before = seen->fence;
	struct once o;
	struct stmt *s;
	int rc = once_look(db, seen->key, &o);

	if (rc != Q_OK)
		return rc;
	if (o.state != state || o.fence != before)
		return Q_NO;
	if ((rc = hold_take(db, "once", o.key, lease_ms, worker, now, fence)) != Q_OK)
		return rc;
	s = of(db, START, o.key);
	db_int(s, ":fence", *fence);
	db_int(s, ":now", now);
	db_text(s, ":worker", worker);
	db_run(s);
	return db_status(db);
}

int
once_renew(struct db *db, const char *key, int64_t fence, int64_t lease_ms)
{
	return hold_renew(db, "once", key, fence, lease_ms);
}

int
once_end(struct db *db, const char *key, int64_t fence, const struct once_end *end, int64_t now)
{
	struct stmt *s = of(db, END, key);

	db_int(s, ":fence", fence);
	db_text(s, ":state", end->state == ONCE_DONE ? "done" : end->state == ONCE_FAILED ? "failed" : "started");
	db_int(s, ":now", now);
	db_opt(s, ":exit", end->exit);
	db_text(s, ":reason", end->reason);
	db_blob(s, ":output", end->output, end->output_len);
	db_opt(s, ":len", end->output_total);
	if (db_run(s) == 0)
		return db_fail(db, Q_LOST, "%s: another run, or somebody's decision, came after this run", key);
	hold_end(db, "once", key, fence);
	return db_status(db);
}

int
once_happened(struct db *db, const char *key, const char *worker, int64_t now)
{
	struct once o;
	struct stmt *s;
	int rc = once_look(db, key, &o);

	if (rc != Q_OK || o.state == ONCE_DONE)
		return rc;
	if (o.state == ONCE_RUNNING || o.state == ONCE_ABSENT)
		return o.state == ONCE_RUNNING ? Q_NO : Q_NOINPUT;
	s = of(db, HAPPENED, key);
	db_text(s, ":worker", worker);
	db_int(s, ":now", now);
	db_run(s);
	return db_status(db);
}

int
once_forget(struct db *db, const char *key)
{
	struct once o;
	int rc = once_look(db, key, &o);

	if (rc != Q_OK)
		return rc;
	if (o.state == ONCE_ABSENT || o.state == ONCE_RUNNING)
		return o.state == ONCE_ABSENT ? Q_NOINPUT : Q_NO;
	db_run(of(db, FORGET, key));
	return db_status(db);
}

int
once_each(struct db *db, int (*each)(const struct once *, void *), void *arg)
{
	char *key = db_has(db, FOR_QONCE) ? db_next(db_prepare(db, OPEN), "") : NULL, *next;
	struct once o;
	int rc = Q_OK;

	for (; key != NULL; key = next) {
		if ((rc = once_look(db, key, &o)) == Q_OK && (o.state == ONCE_RUNNING || o.state == ONCE_UNKNOWN))
			rc = each(&o, arg);
		next = rc == Q_OK ? db_next(db_prepare(db, OPEN), key) : NULL;
		free(key);
	}
	return rc != Q_OK ? rc : db_status(db);
}

const char *
once_word(const struct once *o)
{
	static const char *const WORDS[] = { "absent", "running", "unknown", "done", "failed" };

	return WORDS[o->state];
}

void
once_print(FILE *f, const struct once *o, int64_t now)
{
	fputs("{\"key\":", f);
	text_json(f, o->key, strlen(o->key));
	text_json_text(f, "state", once_word(o));
	text_json_int(f, "runs", o->runs);
	text_json_time(f, "started", o->started_ms);
	text_json_time(f, "finished", o->finished_ms);
	text_json_time(f, "until", o->state == ONCE_RUNNING ? now + o->left_ms : -1);
	text_json_int(f, "exit", o->exit);
	text_json_text(f, "worker", o->worker);
	text_json_text(f, "reason", o->reason);
	text_json_int(f, "output_bytes", o->output_total);
	fputc(',', f);
	text_json_bytes(f, "output", o->output_total != -1 ? o->output : NULL, o->output_len);
	fputs("}\n", f);
}
