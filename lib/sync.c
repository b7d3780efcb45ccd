/*
 * sync.c - what the queue file knows of a source: cursor, items seen, runs
 *
 * Items and cursor move in one transaction, and only if nobody else has moved them since they were read (the number gen):
 * of two runs at once one loses, and stores nothing.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sync.h"

static const char READ[] =
	"SELECT gen, config, cursor, cursor_key, seen_key, walk, etag, modified, unmodified, shown_ms, probed_ms, hidden, pointed\n"
	"  FROM q_poll WHERE name = :name";

static const char GEN[] = "SELECT gen FROM q_poll WHERE name = :name";

static const char WRITE[] =
	"INSERT OR REPLACE INTO q_poll(name, gen, config, cursor, cursor_key, seen_key, walk, etag, modified,\n"
	"                              unmodified, shown_ms, probed_ms, hidden, pointed)\n"
	"VALUES(:name, :gen, :config, :cursor, :key, :seen, :walk, :etag, :modified, :unmodified, :shown, :probed, :hidden, :pointed)";

static const char SEEN[] = "SELECT 1 FROM q_seen WHERE name = :name AND key = :key AND ver = :ver";
static const char REMEMBER[] = "INSERT OR IGNORE INTO q_seen(name, key, ver) VALUES(:name, :key, :ver)";
static const char FORGET[] = "DELETE FROM q_seen WHERE name = :name AND key > x'' AND key < :key";
static const char FORGET_ALL[] = "DELETE FROM q_seen WHERE name = :name";
static const char CROWD[] = "SELECT count(*) FROM (SELECT 1 FROM q_seen WHERE name = :name LIMIT :most)";

static const char RUN[] =
	"INSERT OR REPLACE INTO q_poll_run(id, name, started_ms, finished_ms, outcome, exit, http, pages, items, fresh,\n"
	"                                  repeated, late, future, bytes, waited_ms, before, after, note)\n"
	"VALUES(:id, :name, :started, :finished, :outcome, :exit, :http, :pages, :items, :fresh,\n"
	"       :repeated, :late, :future, :bytes, :waited, :before, :after, :note)";

static const char RUNS[] =
	"SELECT started_ms, finished_ms, outcome, exit, http, pages, items, fresh, repeated, late, future, bytes,\n"
	"       waited_ms, before, after, note\n"
	"  FROM q_poll_run WHERE name = :name ORDER BY id DESC";

static char *
keep(struct db *db, const char *text)
{
	char *copy = text != NULL ? strdup(text) : NULL;

	if (text != NULL && copy == NULL)
		db_fail(db, Q_TEMP, "out of memory");
	return copy;
}

static void
get_key(struct stmt *s, int column, struct cursor_key *k)
{
	size_t n;
	const void *p = db_col_blob(s, column, &n);

	k->n = p != NULL && n <= sizeof k->b ? n : 0;
	memcpy(k->b, p != NULL ? p : "", k->n);
}

static void
put_key(struct stmt *s, const char *name, const struct cursor_key *k)
{
	db_blob(s, name, k->n > 0 ? k->b : NULL, k->n);
}

int
sync_read(struct sync *p, struct db *db, const struct source *src, const struct pager *pager)
{
	struct stmt *s;

	memset(p, 0, sizeof *p);
	p->db = db;
	p->src = src;
	p->pager = pager;
	p->shown_ms = p->probed_ms = -1;
	snprintf(p->config, sizeof p->config, "%s", src->config);
	if (db_tables(db, FOR_QPOLL) != Q_OK)
		return db_status(db);
	s = db_prepare(db, READ);
	db_text(s, ":name", src->name);
	if (db_step(s) == 1) {
		p->gen = db_col_int(s, 0);
		snprintf(p->config, sizeof p->config, "%s", db_col_text(s, 1));
		p->cursor = keep(db, db_col_opt(s, 2));
		get_key(s, 3, &p->key);
		get_key(s, 4, &p->seen_from);
		p->walk = keep(db, db_col_opt(s, 5));
		p->etag = keep(db, db_col_opt(s, 6));
		p->modified = keep(db, db_col_opt(s, 7));
		p->unmodified = db_col_int(s, 8);
		p->shown_ms = db_col_int(s, 9);
		p->probed_ms = db_col_int(s, 10);
		p->hidden = db_col_int(s, 11);
		p->pointed = db_col_int(s, 12) == 1;
	}
	db_reset(s);
	snprintf(p->run.before, sizeof p->run.before, "%s", p->cursor != NULL ? p->cursor : "");
	return db_status(db);
}

int
sync_room(struct sync *p)
{
	struct stmt *s = db_prepare(p->db, CROWD);

	db_text(s, ":name", p->src->name);
	db_int(s, ":most", p->src->max_seen + 1);
	if (db_only(s) > p->src->max_seen)
		db_fail(p->db, Q_DATA, "%s: more than %" PRId64 " items are remembered as seen; next: raise \"max_seen\", or lower \"lookback\"",
		    p->src->name, p->src->max_seen);
	return db_status(p->db);
}

void
sync_free(struct sync *p)
{
	free(p->cursor);
	free(p->walk);
	free(p->etag);
	free(p->modified);
}

/* ---- items ---- */

static int
by_version(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;
	int d = memcmp(x->ver, y->ver, sizeof x->ver);

	return d != 0 ? d : (x > y) - (x < y);
}

/* Marks what comes twice in the page, but for the first of them. */
static void
mark_repeated(struct db *db, struct page *page)
{
	struct item **all = malloc(page->n * sizeof *all + 1);

	if (all == NULL) {
		db_fail(db, Q_TEMP, "out of memory");
		return;
	}
	for (size_t i = 0; i < page->n; i++)
		all[i] = &page->items[i];
	qsort(all, page->n, sizeof *all, by_version);
	for (size_t i = 1; i < page->n; i++)
		all[i]->twice = memcmp(all[i - 1]->ver, all[i]->ver, sizeof all[i]->ver) == 0;
	free(all);
}

int
sync_fresh(struct sync *p, struct page *page)
{
	bool opaque = p->src->order == ORDER_OPAQUE;	/* its token says what was seen */
	struct stmt *open = db_prepare(p->db, GEN);

	mark_repeated(p->db, page);
	db_text(open, ":name", p->src->name);
	db_step(open);			/* and left so: else each look at an item would lock and unlock the log */
	for (size_t i = 0; i < page->n && db_status(p->db) == Q_OK; i++) {
		struct item *it = &page->items[i];
		struct stmt *s = db_prepare(p->db, SEEN);

		if (it->old)
			continue;
		p->run.items++;
		db_text(s, ":name", p->src->name);
		db_blob(s, ":key", it->key.b, it->key.n);
		db_blob(s, ":ver", it->ver, sizeof it->ver);
		it->fresh = (opaque || db_only(s) == -1) && !it->twice;
		if (!it->fresh)
			p->run.repeated++;
		else {
			p->run.fresh++;
			p->run.future += it->future;
			p->run.late += it->key.n > 0 && p->key.n > 0 && cursor_compare(&it->key, &p->key) < 0;
		}
	}
	db_reset(open);
	return db_status(p->db);
}

/* NAME/ID/DIGEST; of an id that no key may hold the digest alone. */
static void
job_key(const struct source *src, const struct item *it, char key[256])
{
	static const char DIGITS[] = "0123456789abcdef";
	char hex[33] = "";

	for (int i = 0; i < 16; i++) {
		hex[2 * i] = DIGITS[it->ver[i] >> 4];
		hex[2 * i + 1] = DIGITS[it->ver[i] & 15];
	}
	if (snprintf(key, 256, "%s/%s/%s", src->name, it->id, hex) >= 256 || text_name_fault(key) != NULL)
		snprintf(key, 256, "%s/%s", src->name, hex);
}

int
sync_add(struct db *db, const struct source *src, const struct item *it, int64_t priority, int64_t now, bool *new)
{
	struct job_new job = { .queue = src->queue, .type = src->type, .priority = priority, .due_ms = now, .event_ms = -1,
	    .attempts = -1, .window_ms = -1, .base_ms = -1, .cap_ms = -1, .payload = it->raw.p, .payload_len = it->raw.n };
	struct span at = src->entity != NULL ? json_at(it->raw, src->entity) : (struct span){ NULL, 0 };
	char kind = json_kind(at), key[256], why[400], *entity = NULL;
	enum job_added added;
	int64_t id, ms;
	size_t len;

	job_key(src, it, key);
	job.key = key;
	if (cursor_ms(&src->spec, &it->key, &ms) && ms >= 0 && ms <= WHEN_MAX)
		job.event_ms = ms;
	if ((kind == '"' || kind == '0') && (entity = json_text(at, &len)) != NULL && text_name_fault(entity) == NULL)
		job.entity = entity;
	if (job_add(db, &job, now, &id, &added) == Q_DATA) {
		snprintf(why, sizeof why, "%s", db_message(db));
		db_clear(db);
		db_fail(db, Q_DATA, "%s: item with id %.80s: %s", src->name, it->id, why);
	}
	*new = added == ADD_NEW;
	free(entity);
	return db_status(db);
}

static void
remember(struct sync *p, const struct item *it)
{
	struct stmt *s = db_prepare(p->db, REMEMBER);

	db_text(s, ":name", p->src->name);
	db_blob(s, ":key", it->key.b, it->key.n);
	db_blob(s, ":ver", it->ver, sizeof it->ver);
	db_run(s);
}

/* ---- one transaction ---- */

static void
write_state(struct sync *p, const char *cursor, const struct cursor_key *key, const char *walk)
{
	struct stmt *s = db_prepare(p->db, WRITE);

	db_text(s, ":name", p->src->name);
	db_int(s, ":gen", p->gen + 1);
	db_text(s, ":config", p->config);
	db_text(s, ":cursor", cursor);
	put_key(s, ":key", key);
	put_key(s, ":seen", &p->seen_from);
	db_text(s, ":walk", walk);
	db_text(s, ":etag", p->etag);
	db_text(s, ":modified", p->modified);
	db_int(s, ":unmodified", p->unmodified);
	db_opt(s, ":shown", p->shown_ms);
	db_opt(s, ":probed", p->probed_ms);
	db_int(s, ":hidden", p->hidden);
	db_int(s, ":pointed", p->pointed);
	db_run(s);
}

static void
write_run(struct sync *p, const char *outcome, int exit, const char *cursor, int64_t now)
{
	struct stmt *s = db_prepare(p->db, RUN);
	const struct sync_run *r = &p->run;

	if (r->id > 0)
		db_int(s, ":id", r->id);
	db_text(s, ":name", p->src->name);
	db_int(s, ":started", r->started_ms);
	db_int(s, ":finished", now);
	db_text(s, ":outcome", outcome);
	db_int(s, ":exit", exit);
	db_opt(s, ":http", p->pager->status > 0 ? p->pager->status : -1);
	db_int(s, ":pages", p->pager->pages);
	db_int(s, ":items", r->items);
	db_int(s, ":fresh", r->fresh);
	db_int(s, ":repeated", r->repeated);
	db_int(s, ":late", r->late);
	db_int(s, ":future", r->future);
	db_int(s, ":bytes", p->pager->bytes);
	db_int(s, ":waited", p->pager->waited_ms);
	db_text(s, ":before", r->before[0] != '\0' ? r->before : NULL);
	db_text(s, ":after", cursor);
	db_text(s, ":note", r->note[0] != '\0' ? r->note : NULL);
	db_run(s);
	if (p->run.id == 0)
		p->run.id = db_last_id(p->db);
}

static int
begin(struct sync *p, bool adds)
{
	struct stmt *s;
	int64_t gen;

	if (db_begin(p->db, adds) != Q_OK)
		return db_status(p->db);
	s = db_prepare(p->db, GEN);
	db_text(s, ":name", p->src->name);
	gen = db_only(s);
	p->beaten = db_status(p->db) == Q_OK && (gen == -1 ? 0 : gen) != p->gen;
	if (p->beaten)
		db_fail(p->db, Q_TEMP, "%s: another run of it was quicker; this one stored nothing more", p->src->name);
	return db_status(p->db);
}

static bool
replace(struct sync *p, char **old, const char *new)
{
	char *copy = keep(p->db, new);

	free(*old);
	*old = copy;
	return copy != NULL || new == NULL;
}

/* What lies below the next query cannot come again. */
static void
forget(struct sync *p, const char *cursor, const struct cursor_key *key)
{
	struct stmt *s = db_prepare(p->db, FORGET);
	struct cursor_key bound;
	char query[CURSOR_TEXT];

	cursor_bound(&p->src->spec, cursor, key, true, query, &bound);
	if (bound.n == 0)
		return;
	db_text(s, ":name", p->src->name);
	db_blob(s, ":key", bound.b, bound.n);
	db_run(s);
	if (cursor_compare(&bound, &p->seen_from) > 0)
		p->seen_from = bound;
}

int
sync_step(struct sync *p, const struct sync_step *step, int64_t now)
{
	const char *cursor = step->cursor != NULL ? step->cursor : p->cursor, *why;
	const char *walk = step->walk == NULL ? p->walk : *step->walk == '\0' ? NULL : step->walk;
	struct cursor_key key = p->key;
	size_t fresh = 0;
	bool new, alone = p->beaten && step->page == NULL && step->cursor == NULL;

	for (size_t i = 0; step->page != NULL && i < step->page->n; i++)
		fresh += step->page->items[i].fresh;
	if (step->cursor != NULL && !cursor_key(&p->src->spec, step->cursor, &key, &why))
		return db_fail(p->db, Q_BUG, "%s: the cursor '%s' %s", p->src->name, step->cursor, why);
	if ((alone ? db_begin(p->db, false) : begin(p, fresh > 0)) == Q_OK) {
		for (size_t i = 0; fresh > 0 && i < step->page->n && db_status(p->db) == Q_OK; i++)
			if (step->page->items[i].fresh) {
				if (p->src->queue != NULL)
					sync_add(p->db, p->src, &step->page->items[i], p->src->priority, now, &new);
				if (p->src->order != ORDER_OPAQUE)
					remember(p, &step->page->items[i]);
			}
		if (step->cursor != NULL)
			forget(p, step->cursor, &key);
		if (fresh > 0)
			p->shown_ms = now;
		if (!alone)
			write_state(p, cursor, &key, walk);
		write_run(p, step->outcome != NULL ? step->outcome : "unfinished", step->outcome != NULL ? step->exit : Q_TEMP, cursor, now);
	}
	if (db_status(p->db) != Q_OK) {
		db_rollback(p->db);
		return db_status(p->db);
	}
	if (db_commit(p->db) != Q_OK)
		return db_status(p->db);
	p->gen++;
	p->key = key;
	if ((cursor != p->cursor && !replace(p, &p->cursor, cursor)) || (walk != p->walk && !replace(p, &p->walk, walk)))
		return db_status(p->db);
	return Q_OK;
}

int
sync_reset(struct sync *p, const char *cursor, int64_t now)
{
	struct cursor_key key = { .n = 0 };
	const char *why;
	struct stmt *s;

	if (cursor != NULL && !cursor_key(&p->src->spec, cursor, &key, &why))
		return db_fail(p->db, Q_DATA, "'%s' %s", cursor, why);
	if (begin(p, false) == Q_OK) {
		if (cursor == NULL) {
			s = db_prepare(p->db, FORGET_ALL);
			db_text(s, ":name", p->src->name);
			db_run(s);
			p->seen_from.n = 0;
		} else if (cursor_compare(&key, &p->seen_from) < 0)
			p->seen_from = key;	/* what lies between comes again, on purpose */
		replace(p, &p->etag, NULL);	/* what is to come again must not be "not modified" */
		replace(p, &p->modified, NULL);
		p->hidden = 0;
		snprintf(p->config, sizeof p->config, "%s", p->src->config);
		write_state(p, cursor, &key, NULL);
		p->run.started_ms = now;
		snprintf(p->run.note, sizeof p->run.note, "%s", cursor != NULL ? "the cursor was set" : "the cursor was reset");
		write_run(p, "set", Q_OK, cursor, now);
	}
	if (db_status(p->db) == Q_OK)
		return db_commit(p->db);
	db_rollback(p->db);
	return db_status(p->db);
}

int
sync_runs(struct sync *p, int (*each)(const struct sync_past *, void *), void *arg)
{
	struct stmt *s = db_prepare(p->db, RUNS);
	int rc = Q_OK;

	db_text(s, ":name", p->src->name);
	while (rc == Q_OK && db_step(s) == 1) {
		struct sync_past r = { .started_ms = db_col_int(s, 0), .finished_ms = db_col_int(s, 1), .outcome = db_col_text(s, 2),
		    .exit = db_col_int(s, 3), .http = db_col_int(s, 4), .pages = db_col_int(s, 5), .items = db_col_int(s, 6),
		    .fresh = db_col_int(s, 7), .repeated = db_col_int(s, 8), .late = db_col_int(s, 9), .future = db_col_int(s, 10),
		    .bytes = db_col_int(s, 11), .waited_ms = db_col_int(s, 12), .before = db_col_opt(s, 13), .after = db_col_opt(s, 14),
		    .note = db_col_opt(s, 15) };

		rc = each(&r, arg);
	}
	db_reset(s);
	return db_status(p->db) != Q_OK ? db_status(p->db) : rc;
}
