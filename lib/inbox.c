/* inbox.c - from a verified request to a job */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "inbox.h"

static const char BEFORE[] = "SELECT 1 FROM q_hook WHERE path = :path AND digest = :digest LIMIT 1";

static const char PUT[] =
	"INSERT INTO q_hook(job, path, scheme, event, source, secret, received_ms, target, headers, digest, note)\n"
	"VALUES(:id, :path, :scheme, :event, :source, :secret, :now, :target, :headers, :digest, :note)";

static const char REFUSE[] =
	"INSERT INTO q_refused VALUES(:path, :n, :since, :last, :status, :why)\n"
	"    ON CONFLICT(path) DO UPDATE SET n = n + excluded.n, last_ms = excluded.last_ms, status = excluded.status, why = excluded.why";
static const char GOOD[] = "DELETE FROM q_refused WHERE path = :path";

static const char GET[] =
	"SELECT h.path, h.scheme, h.event, h.secret, h.target, h.headers, b.body\n"
	"  FROM q_hook h JOIN q_body b ON b.job = h.job\n"
	" WHERE h.job = :id";

static const char *
text_or_none(const char *s)
{
	return *s != '\0' ? s : NULL;
}

static struct job_new
job_of(const struct inbox *in, int64_t now)
{
	const struct hook_verdict *v = in->verdict;

	return (struct job_new){ .queue = v->queue, .type = text_or_none(v->type), .key = v->key, .entity = text_or_none(v->entity),
	    .priority = -1, .due_ms = now, .event_ms = v->event_ms, .attempts = -1, .window_ms = -1, .base_ms = -1, .cap_ms = -1,
	    .payload = in->request->body, .payload_len = in->request->len, .payload_max = JOB_EVENT_MAX };
}

/* Known or not: by its key alone, whatever the body is. */
int
inbox_look(struct db *db, struct inbox *in, int64_t now)
{
	struct job_new job = job_of(in, now);
	enum job_added added;

	db_clear(db);
	if (job_plan(db, &job, now, &in->id, &added) == Q_OK)
		in->known = added != ADD_NEW;
	return db_status(db);
}

/* The id of an event that no signature covers can be changed, and the event sent once more. */
static const char *
odd(struct db *db, const struct hook_verdict *v)
{
	struct stmt *s;

	if (v->no_id)
		return "no-id";
	if (strcmp(v->source, "unsigned") != 0)
		return NULL;
	s = db_prepare(db, BEFORE);
	db_text(s, ":path", v->path);
	db_blob(s, ":digest", v->digest, sizeof v->digest);
	return db_only(s) == 1 ? "replay?" : NULL;
}

int
inbox_add(struct db *db, struct inbox *in, int64_t now)
{
	const struct hook_verdict *v = in->verdict;
	struct job_new job = job_of(in, now);
	enum job_added added;
	struct stmt *s;
	const char *note;

	if (job_add(db, &job, now, &in->id, &added) != Q_OK)
		return db_status(db);
	in->known = added != ADD_NEW;
	if (in->known)
		return Q_OK;
	note = odd(db, v);
	s = db_prepare(db, PUT);
	db_int(s, ":id", in->id);
	db_text(s, ":path", v->path);
	db_text(s, ":scheme", v->scheme);
	db_text(s, ":event", v->id);
	db_text(s, ":source", v->source);
	db_text(s, ":secret", v->secret);
	db_int(s, ":now", now);
	db_text(s, ":target", in->request->target);
	db_text(s, ":headers", v->headers != NULL ? v->headers : "");
	db_blob(s, ":digest", v->digest, sizeof v->digest);
	db_text(s, ":note", note);
	db_run(s);
	return db_status(db);
}

int
inbox_refuse(struct db *db, const struct inbox_refused *r)
{
	struct stmt *s = db_prepare(db, r->n > 0 ? REFUSE : GOOD);

	db_text(s, ":path", r->path);
	if (r->n > 0) {
		db_int(s, ":n", r->n);
		db_int(s, ":since", r->since_ms);
		db_int(s, ":last", r->last_ms);
		db_int(s, ":status", r->status);
		db_text(s, ":why", r->why);
	}
	db_run(s);
	return db_status(db);
}

int
inbox_get(struct db *db, int64_t id, struct inbox_kept *kept)
{
	static char *text[6];
	static void *body;
	struct stmt *s;
	const void *p;

	if (!db_has(db, FOR_QHOOK))
		return db_status(db) != Q_OK ? db_status(db) : Q_NOINPUT;
	s = db_prepare(db, GET);
	db_int(s, ":id", id);
	if (db_step(s) != 1)
		return db_status(db) != Q_OK ? db_status(db) : Q_NOINPUT;
	for (int i = 0; i < 6; i++) {
		free(text[i]);
		if ((text[i] = strdup(db_col_text(s, i))) == NULL)
			db_fail(db, Q_TEMP, "out of memory");
	}
	free(body);
	p = db_col_blob(s, 6, &kept->len);
	if ((body = malloc(kept->len + 1)) == NULL)
		db_fail(db, Q_TEMP, "out of memory");
	else
		memcpy(body, p, kept->len);
	db_reset(s);
	kept->path = text[0];
	kept->scheme = text[1];
	kept->event = text[2];
	kept->secret = text[3];
	kept->target = text[4];
	kept->headers = text[5];
	kept->body = body;
	return db_status(db);
}
