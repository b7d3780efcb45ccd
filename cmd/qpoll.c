/* qpoll - read what is new from an API, by a cursor over its data */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "sync.h"
#include "prog.h"

static const char HELP[] =
"usage: qpoll [-hVn] [-d FILE] [--accept] SOURCE [-- CMD...]\n"
"       qpoll [-hVj] [-d FILE] --check | --status | --history | --set-cursor VALUE |\n"
"             --reset SOURCE\n"
"Ask the API that the file SOURCE describes (qpoll(5)) for what is new, until there\n"
"is no more.  Each new item becomes a job, in the transaction that moves the cursor.\n"
"  */5 * * * *  qpoll orders.json && qwork orders -- ./import\n"
"  qpoll orders.json -- ./load     # a page of items, one a line, to ./load; no jobs\n"
"  -n, --dry-run        print the new items of the first page, and to standard error\n"
"                       the cursor; store nothing\n"
"  --accept             the source file was changed, and the cursor still fits\n"
"  --check              ask for the credential and one page; store nothing\n"
"  --status, --history  what is known; the runs, the newest first (-j: JSON Lines)\n"
"  --set-cursor VALUE   begin there at the next run\n"
"  --reset              forget the cursor; the next run begins at \"start\"\n"
"Exit: 0 also if nothing was new; 65 the answer cannot be right, 69 no answer, 75 asked\n"
"to wait or another run was quicker, 77 credentials, 78 the source file; as CMD if\n"
"that failed; the cursor stays where it was; q(7).\n";

enum { ACCEPT = 256, CHECK, STATUS, HISTORY, SET, RESET };
static const struct option LONGS[] = {
	{ "dry-run", 0, NULL, 'n' }, { "json", 0, NULL, 'j' }, { "accept", 0, NULL, ACCEPT }, { "check", 0, NULL, CHECK },
	{ "status", 0, NULL, STATUS }, { "history", 0, NULL, HISTORY }, { "set-cursor", 1, NULL, SET }, { "reset", 0, NULL, RESET },
	{ NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qpoll", .help = HELP, .shorts = "+nj", .longs = LONGS };

enum { DAY_MS = 24 * 3600 * 1000, PLAIN_EACH = 24, PASSES_MAX = 3, LEASE_MS = 5 * 60 * 1000 };

static struct source src;
static struct pager pager;
static struct sync state;
static struct db *db;
static char *const *command;		/* NULL: items become jobs */
static struct minder minder;
static struct child_spec spec = { .kill_ms = 5000 };
static bool dry, json;
static int64_t empty;			/* pages in a row */

static bool
stopped(void)
{
	prog_poll(NULL, 0, 0);
	return prog_signal != 0;
}

static void
stop_minder(void)
{
	if (command != NULL)
		minder_stop(&minder);
}

/* ---- the end of a run ---------------------------------------------------- */

static const char *
outcome(int status)
{
	return pager.limited ? "limited" : status == Q_TEMP ? "stopped" : "failed";
}

/* Write the run down, whatever became of it, and say so. */
static _Noreturn void
fail(int status, const char *message)
{
	struct sync_step step = { .outcome = outcome(status), .exit = status };

	snprintf(state.run.note, sizeof state.run.note, "%s", message);
	prog_warn("%s", message);
	db_clear(db);
	if (!dry && sync_step(&state, &step, prog_now()) != Q_OK && db_status(db) != Q_TEMP)
		prog_warn("%s: the run is not recorded: %s", src.name, db_message(db));
	rate_leave(db, &pager.rate);
	if (prog_signal != 0 && status == Q_TEMP)
		prog_exit(Q_TEMP);
	prog_exit(status);
}

static void
check(int status)
{
	char text[1024];

	if (status == Q_OK)
		return;
	snprintf(text, sizeof text, "%s", db_message(db));
	fail(status, text);
}

static _Noreturn void
finish(const char *why)
{
	if (why != NULL)
		prog_warn("%s: %s", src.name, why);
	prog_check(db, rate_leave(db, &pager.rate));
	prog_exit(Q_OK);
}

/* ---- a page and its transaction ------------------------------------------ */

/* False: the pointer, or the token, is void. */
static bool
get(const char *query, const char *pointer, struct page *page)
{
	int rc;

	if (stopped())
		fail(Q_TEMP, "interrupted");
	rc = page_get(&pager, query, pointer, page);
	if (rc == Q_NO)
		return false;
	if (rc != Q_OK)
		fail(rc, pager.message);
	state.pointed |= page->next != NULL;
	page->doubtful &= !state.pointed;
	empty = page->n == 0 ? empty + 1 : 0;
	if (empty > src.max_empty && page->next != NULL)
		fail(Q_DATA, "too many empty pages in a row, each with a pointer to the next; see \"max_empty\"");
	return true;
}

/* What a run that ends well is called. */
static const char *
how(void)
{
	return state.run.fresh > 0 ? "new" : "nothing";
}

/* Is the run to end here, though there is more? */
static bool
enough(void)
{
	if (pager.pages < src.max_pages)
		return false;
	snprintf(state.run.note, sizeof state.run.note, "more follows: it ended after %" PRId64 " pages (\"max_pages\")", pager.pages);
	return true;
}

/* The command gets the fresh items, one a line. */
static void
give(const struct page *page)
{
	static struct child_end end;
	char *text = NULL, how[CHILD_HOW_MAX], message[CHILD_HOW_MAX + 200];
	size_t len, n = 0;
	FILE *f = open_memstream(&text, &len);

	for (size_t i = 0; i < page->n && f != NULL; i++)
		if (page->items[i].fresh) {
			json_line(f, page->items[i].raw);
			putc('\n', f);
			n++;
		}
	if (f == NULL || fclose(f) != 0)
		fail(Q_TEMP, "out of memory");
	if (n > 0) {
		if (minder_run(&minder, "", 0, text, len) == -1 || minder_end(&minder, &end) == -1)
			fail(Q_TEMP, "the process that minds the command is gone");
		if (end.status != 0) {
			snprintf(message, sizeof message, "%s: %s: %s; the cursor stays", src.name, command[0], child_how(how, &end, &spec));
			fail(child_exit(&end), message);
		}
	}
	free(text);
}

static void
print(const struct page *page)
{
	for (size_t i = 0; i < page->n; i++)
		if (page->items[i].fresh) {
			json_line(stdout, page->items[i].raw);
			putchar('\n');
		}
}

/* Store a page.  cursor NULL: it stays; walk as in sync_step; last: the run ends with it. */
static void
store(struct page *page, const char *cursor, const char *walk, bool last)
{
	struct sync_step step = { .page = page, .cursor = cursor, .walk = walk };
	struct cursor_key keep, key;
	char query[CURSOR_TEXT];
	const char *why;
	bool news = false;

	check(sync_fresh(&state, page));
	for (size_t i = 0; i < page->n; i++)
		news |= page->items[i].fresh;
	if (dry) {
		print(page);
		fflush(stdout);
		if (cursor != NULL)
			prog_warn("%s: the cursor would be %s", src.name, cursor);
		else
			prog_warn("%s: the cursor would stay", src.name);
		prog_exit(Q_OK);
	}
	if (command != NULL)
		give(page);
	if (cursor != NULL && cursor_key(&src.spec, cursor, &key, &why)) {
		cursor_bound(&src.spec, cursor, &key, true, query, &keep);
		step.keep = &keep;
	}
	if (last) {
		step.outcome = how();
		free(state.etag);
		free(state.modified);
		state.etag = page->etag != NULL ? strdup(page->etag) : NULL;
		state.modified = page->modified != NULL ? strdup(page->modified) : NULL;
		state.unmodified = 0;
	}
	if (!last && !news && walk == NULL && (cursor == NULL || (state.cursor != NULL && strcmp(cursor, state.cursor) == 0)))
		return;			/* nothing to store */
	check(sync_step(&state, &step, prog_now()));
}

/* The end of a run that comes without a page of its own. */
static _Noreturn void
close_run(const char *cursor, const char *walk, const char *how)
{
	struct page none = { .n = 0 };
	struct sync_step step = { .page = &none, .cursor = cursor, .walk = walk, .outcome = how };
	struct cursor_key keep, key;
	char query[CURSOR_TEXT];
	const char *why;

	if (cursor != NULL && cursor_key(&src.spec, cursor, &key, &why)) {
		cursor_bound(&src.spec, cursor, &key, true, query, &keep);
		step.keep = &keep;
	}
	check(sync_step(&state, &step, prog_now()));
	finish(NULL);
}

/* ---- the control query (R14) ---------------------------------------------- */

/* Nothing new came: is that so, or does the credential see nothing, or the filter hide it? */
static void
control(const char *query)
{
	struct page page, again;
	bool newer = false;
	int64_t now = prog_now();
	int rc;

	if (src.probe == NULL || state.run.fresh > 0 || (state.probed_ms != -1 && now - state.probed_ms < DAY_MS && state.hidden == 0))
		return;
	if ((rc = page_probe(&pager, src.probe, &page)) != Q_OK)
		fail(rc, pager.message);
	state.probed_ms = now;
	if (page.n == 0)
		fail(Q_PERM, "blind: the control query shows no item at all; has the credential lost its rights?");
	check(sync_fresh(&state, &page));
	for (size_t i = 0; i < page.n; i++)
		newer |= page.items[i].fresh && !page.items[i].future && state.key.n > 0 && cursor_compare(&page.items[i].key, &state.key) > 0;
	state.run.items = state.run.fresh = state.run.repeated = state.run.late = state.run.future = 0;	/* none of it is stored */
	page_free(&page);
	if (newer) {
		get(query, NULL, &again);
		check(sync_fresh(&state, &again));
		newer = state.run.fresh == 0;
		state.run.items = state.run.fresh = state.run.repeated = state.run.late = state.run.future = 0;
		page_free(&again);
	}
	state.hidden = newer ? state.hidden + 1 : 0;
	if (state.hidden > 1)
		fail(Q_DATA, "the filter hides data: twice the control query showed newer items that the query does not");
}

/* ---- ascending (R3, R4) --------------------------------------------------- */

struct ask { bool set; char text[CURSOR_TEXT]; struct cursor_key key; };	/* what is asked with */

static const char *
text_of(const struct ask *q)
{
	return q->set ? q->text : NULL;
}

/* Where a run begins. */
static void
first_ask(struct ask *q)
{
	struct cursor_key key;
	char text[600];
	const char *why;

	q->set = true;
	if (state.cursor != NULL) {
		cursor_bound(&src.spec, state.cursor, &state.key, true, q->text, &q->key);
		/* A lookback that was made longer: what lies below was forgotten, and must not come again. */
		if (cursor_compare(&q->key, &state.seen_from) < 0)
			cursor_bound(&src.spec, state.cursor, &state.key, false, q->text, &q->key);
	} else if (src.start != NULL && strcmp(src.start, "all") != 0 && strcmp(src.start, "newest") != 0) {
		if (!cursor_key(&src.spec, src.start, &key, &why)) {
			snprintf(text, sizeof text, "%s: \"start\": '%.100s' %s", src.name, src.start, why);
			fail(Q_CONFIG, text);
		}
		cursor_bound(&src.spec, src.start, &key, false, q->text, &q->key);
	} else
		q->set = false;
}

static void
ask_at(struct ask *q, const struct item *it)
{
	q->set = true;
	cursor_bound(&src.spec, it->cursor, &it->key, false, q->text, &q->key);
}

static bool
same_ask(const struct ask *a, const struct ask *b)
{
	return a->set == b->set && (!a->set || cursor_compare(&a->key, &b->key) == 0);
}

/* The item with the largest value that does not lie in the future; NULL: none. */
static const struct item *
largest(const struct page *page)
{
	const struct item *m = NULL;

	for (size_t i = 0; i < page->n; i++)
		if (page->items[i].cursor != NULL && !page->items[i].future &&
		    (m == NULL || cursor_compare(&page->items[i].key, &m->key) > 0))
			m = &page->items[i];
	return m;
}

/* Values that fall, or lie below what was asked for: the API ignores its sort or filter parameter. */
static void
check_order(const struct page *page, const struct ask *q)
{
	const struct item *last = NULL;
	char text[600];

	for (size_t i = 0; i < page->n; i++) {
		const struct item *it = &page->items[i];

		if (it->cursor == NULL)
			continue;
		if (q->set && cursor_compare(&it->key, &q->key) < 0) {
			snprintf(text, sizeof text, "%s: filter ignored: %.60s came (id %.60s), though only what is from %.60s on was asked for",
			    src.name, it->cursor, it->id, q->text);
			fail(Q_DATA, text);
		}
		if (last != NULL && cursor_compare(&it->key, &last->key) < 0) {
			snprintf(text, sizeof text, "%s: not in ascending order: %.60s (id %.60s) comes after %.60s (id %.60s)", src.name,
			    it->cursor, it->id, last->cursor, last->id);
			fail(Q_DATA, text);
		}
		last = it;
	}
}

static bool
has_future(const struct page *page)
{
	return page->n > 0 && page->items[page->n - 1].future;
}

/* The greater of the cursor and an item's value, as a text; NULL: it stays. */
static const char *
ahead(const struct item *m)
{
	return m != NULL && (state.cursor == NULL || cursor_compare(&m->key, &state.key) > 0) ? m->cursor : NULL;
}

/* One pass: how each of its pages is asked for, and what it held. */
struct rows { size_t n; unsigned char (*ver)[16]; };
struct pass { struct ask *q; char **pointer; struct rows *rows; size_t n, cap; };

static void
pass_clear(struct pass *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->pointer[i]);
		free(p->rows[i].ver);
	}
	p->n = 0;
}

/* Page i of the pass is asked for like this; a pointer that was met before leads round in a circle (R6). */
static void
pass_put(struct pass *p, size_t i, const char *pointer)
{
	char text[400];

	/* The id of a last item comes again where that item has moved; only of one page to itself it is a circle. */
	for (size_t k = src.next == NEXT_LAST && i > 0 ? i - 1 : 0; k < i && k < p->n; k++)
		if ((pointer == NULL) == (p->pointer[k] == NULL) && (pointer == NULL || strcmp(pointer, p->pointer[k]) == 0)) {
			snprintf(text, sizeof text, "%s: the pages lead round in a circle: page %zu of this walk leads back to page %zu", src.name, i, k + 1);
			fail(Q_DATA, text);
		}
	while (p->n > i) {
		p->n--;
		free(p->pointer[p->n]);
		free(p->rows[p->n].ver);
	}
	if (p->n == p->cap) {
		p->cap = p->cap == 0 ? 16 : 2 * p->cap;
		p->pointer = realloc(p->pointer, p->cap * sizeof *p->pointer);
		p->rows = realloc(p->rows, p->cap * sizeof *p->rows);
		if (p->pointer == NULL || p->rows == NULL)
			fail(Q_TEMP, "out of memory");
	}
	p->pointer[p->n] = pointer != NULL ? strdup(pointer) : NULL;
	p->rows[p->n++] = (struct rows){ 0, NULL };
}

static struct rows
rows_of(const struct page *page)
{
	struct rows r = { page->n, malloc(page->n * 16 + 1) };

	if (r.ver == NULL)
		fail(Q_TEMP, "out of memory");
	for (size_t i = 0; i < page->n; i++)
		memcpy(r.ver[i], page->items[i].ver, 16);
	return r;
}

static bool
same_rows(const struct rows *a, const struct rows *b)
{
	return a->n == b->n && memcmp(a->ver, b->ver, a->n * 16) == 0;
}

/* Does it begin with a row that pages 0 to n of the pass hold? */
static bool
begins_inside(const struct rows *r, const struct pass *p, size_t n)
{
	for (size_t i = 0; i <= n && r->n > 0; i++)
		for (size_t k = 0; k < p->rows[i].n; k++)
			if (memcmp(p->rows[i].ver[k], r->ver[0], 16) == 0)
				return true;
	return false;
}

struct seen_page { char *next; bool end, future, beyond; char cursor[CURSOR_MAX + 1]; struct rows rows; };

/* Page i of the pass, judged and stored, with the cursor held inside the group that q asks for. */
static void
pass_get(struct pass *p, size_t i, struct seen_page *s)
{
	struct page page;
	const struct item *m, *inside = NULL;
	struct ask at;

	if (!get(text_of(p->q), p->pointer[i], &page))
		fail(Q_TEMP, "the pointer to the next page became void; the next run begins again at the cursor");
	check_order(&page, p->q);
	for (size_t k = 0; k < page.n; k++)
		if (page.items[k].cursor != NULL && !page.items[k].future && (ask_at(&at, &page.items[k]), same_ask(&at, p->q)))
			inside = &page.items[k];
	m = largest(&page);
	memset(s, 0, sizeof *s);
	s->future = has_future(&page);
	s->end = page.end && !page.doubtful;
	s->beyond = m != NULL && (ask_at(&at, m), !same_ask(&at, p->q));
	if (m != NULL)
		snprintf(s->cursor, sizeof s->cursor, "%s", m->cursor);
	s->rows = rows_of(&page);
	store(&page, ahead(inside), NULL, s->end && !s->beyond);
	s->next = page.next;
	page.next = NULL;
	page_free(&page);
}

/* The rest of a walk in which nothing can be missed, or only what comes again. */
static _Noreturn void
follow(struct pass *p, struct seen_page *s)
{
	size_t i = p->n;

	while (s->next != NULL) {
		if (enough())
			close_run(NULL, NULL, how());
		pass_put(p, i, s->next);
		free(s->next);
		free(s->rows.ver);
		pass_get(p, i++, s);
		if (s->end && !s->beyond)
			finish(NULL);
	}
	close_run(NULL, NULL, how());
}

static _Noreturn void
stalled(const struct ask *q, size_t n)
{
	char text[500];

	snprintf(text, sizeof text, "%s: stalled: a whole page (%zu items) has the value %.80s, and there is no pointer to the next", src.name, n, q->text);
	fail(Q_DATA, text);
}

static void
join(struct pass *p, size_t i, struct seen_page *s)
{
	free(p->rows[i].ver);
	p->rows[i] = s->rows;
	s->rows.ver = NULL;
}

/*
 * More rows have one value than a page holds.  (a) Search for the end of the group; then (b) prove that no page shifted while it
 * was read: each page is read again after the next one, and where it changed, back to a page that begins with a row already read.
 * The pass ends with the cursor beyond the group, or the run ends here.
 */
static void
tie(struct ask *q, const struct seen_page *first, char *cursor)
{
	static struct pass p;
	struct seen_page s = *first, again;
	size_t n = 0;

	p.q = q;
	pass_clear(&p);
	pass_put(&p, 0, NULL);
	s.rows = (struct rows){ 0, NULL };
	s.next = first->next != NULL ? strdup(first->next) : NULL;
	do {
		if (s.next == NULL)
			stalled(q, first->rows.n);
		if (enough())
			close_run(NULL, NULL, how());
		pass_put(&p, ++n, s.next);
		free(s.next);
		free(s.rows.ver);
		pass_get(&p, n, &s);
		if (s.end && !s.beyond)
			finish(NULL);
		if (s.future)
			follow(&p, &s);
	} while (!s.beyond);
	free(s.next);
	free(s.rows.ver);

	pass_clear(&p);
	pass_put(&p, 0, NULL);
	pass_get(&p, 0, &s);
	join(&p, 0, &s);
	for (n = 0; !s.beyond; ) {
		if (s.end)
			finish(NULL);
		if (s.future)
			follow(&p, &s);
		if (s.next == NULL)
			stalled(q, p.rows[n].n);
		if (enough())
			close_run(NULL, NULL, how());
		pass_put(&p, n + 1, s.next);
		free(s.next);
		pass_get(&p, n + 1, &s);
		pass_get(&p, n, &again);
		if (same_rows(&again.rows, &p.rows[n])) {
			join(&p, ++n, &s);
			free(again.next);
			free(again.rows.ver);
			continue;
		}
		free(s.next);
		free(s.rows.ver);
		s = again;
		while (n > 0 && !begins_inside(&s.rows, &p, n)) {
			free(s.next);
			free(s.rows.ver);
			pass_get(&p, --n, &s);
		}
		join(&p, n, &s);
	}
	free(s.next);
	snprintf(cursor, CURSOR_MAX + 1, "%s", s.cursor);
	if (s.end)
		close_run(cursor, NULL, how());
}

/* The pointer is a true position in the stream: follow it. */
static void
stable(struct ask *q, char *next)
{
	struct page page;
	struct pass p = { .q = q };
	size_t i = 0;

	pass_put(&p, 0, NULL);
	while (next != NULL) {
		if (enough())
			close_run(NULL, NULL, how());
		pass_put(&p, ++i, next);
		free(next);
		if (!get(text_of(q), p.pointer[i], &page))
			fail(Q_TEMP, "the pointer to the next page became void; the next run begins again at the cursor");
		check_order(&page, q);
		store(&page, ahead(largest(&page)), NULL, page.end);
		next = page.next;
		page.next = NULL;
		page_free(&page);
	}
	finish(NULL);
}

static _Noreturn void
unmodified(void)
{
	state.unmodified++;
	close_run(NULL, NULL, "unmodified");
}

/* The validators of the last first page, if this asks for the same; each so many times without, for validators that are broken. */
static void
conditional(void)
{
	if (!src.conditional || state.unmodified >= PLAIN_EACH)
		state.unmodified = 0;
	else {
		pager.etag = state.etag;
		pager.modified = state.modified;
	}
}

static _Noreturn void
ascending(void)
{
	char cursor[CURSOR_MAX + 1];
	struct ask q, at;
	struct page page;
	const struct item *m;
	bool moved;

	first_ask(&q);
	conditional();
	for (;;) {
		struct seen_page s = { .next = NULL };
		struct cursor_key key;
		const char *why;

		get(text_of(&q), NULL, &page);
		if (page.unmodified)
			unmodified();
		check_order(&page, &q);
		m = largest(&page);
		moved = m != NULL && (ask_at(&at, m), !same_ask(&at, &q));
		if (page.end && !page.doubtful) {
			check(sync_fresh(&state, &(struct page){ .n = 0 }));
			store(&page, ahead(m), NULL, src.probe == NULL);
			if (src.probe != NULL) {
				control(text_of(&q));
				close_run(NULL, NULL, how());
			}
			finish(NULL);
		}
		store(&page, ahead(m), NULL, false);
		s.next = page.next;
		page.next = NULL;
		s.rows.n = page.n;
		if (enough())
			close_run(NULL, NULL, how());
		if (src.stable)
			stable(&q, s.next);
		if (has_future(&page)) {
			struct pass p = { .q = &q };

			pass_put(&p, 0, NULL);
			follow(&p, &s);
		}
		if (moved)
			q = at;
		else {
			tie(&q, &s, cursor);
			check(sync_step(&state, &(struct sync_step){ .cursor = cursor }, prog_now()));
			if (!cursor_key(&src.spec, cursor, &key, &why))
				fail(Q_BUG, why);
			q.set = true;
			cursor_bound(&src.spec, cursor, &key, false, q.text, &q.key);
		}
		free(s.next);
		page_free(&page);
	}
}

/* ---- descending, and in no order (R7) ------------------------------------- */

struct walk { char *pointer, *high; };

static void
walk_read(struct walk *w)
{
	json_t *v = state.walk != NULL ? json_loads(state.walk, 0, NULL) : NULL;
	const char *text;

	memset(w, 0, sizeof *w);
	if ((text = json_string_value(json_object_get(v, "pointer"))) != NULL)
		w->pointer = strdup(text);
	if ((text = json_string_value(json_object_get(v, "high"))) != NULL)
		w->high = strdup(text);
	json_decref(v);
}

static char *
walk_text(const char *pointer, const char *high)
{
	json_t *v = json_pack("{s:s,s:s*}", "pointer", pointer, "high", high);
	char *text = v != NULL ? json_dumps(v, JSON_COMPACT) : NULL;

	json_decref(v);
	if (text == NULL)
		fail(Q_TEMP, "out of memory");
	return text;
}

/* Keep the greater value in *high. */
static void
note_high(char **high, const struct item *m)
{
	struct cursor_key key;
	const char *why;

	if (m == NULL || (*high != NULL && cursor_key(&src.spec, *high, &key, &why) && cursor_compare(&m->key, &key) <= 0))
		return;
	free(*high);
	*high = strdup(m->cursor);
}

/* Marks what lies below the bound; true: the walk may end, since it goes down. */
static bool
mark_old(struct page *page, const struct ask *bound, bool filtered)
{
	const struct item *last = NULL;
	bool below = false;
	char text[600];

	for (size_t i = 0; i < page->n; i++) {
		struct item *it = &page->items[i];

		if (it->cursor == NULL)
			continue;
		if (src.order == ORDER_DESC && last != NULL && cursor_compare(&it->key, &last->key) > 0) {
			snprintf(text, sizeof text, "%s: not in descending order: %.60s (id %.60s) comes after %.60s (id %.60s)", src.name,
			    it->cursor, it->id, last->cursor, last->id);
			fail(Q_DATA, text);
		}
		last = it;
		if (!bound->set || cursor_compare(&it->key, &bound->key) >= 0)
			continue;
		if (filtered) {
			snprintf(text, sizeof text, "%s: filter ignored: %.60s came (id %.60s), though only what is from %.60s on was asked for",
			    src.name, it->cursor, it->id, bound->text);
			fail(Q_DATA, text);
		}
		it->old = below = true;
	}
	return below && src.order == ORDER_DESC;
}

static bool
asks_with_cursor(void)
{
	char *query = json_dumps(src.query, JSON_COMPACT), *body = src.body != NULL ? json_dumps(src.body, JSON_COMPACT) : NULL;
	bool has = (query != NULL && strstr(query, "cursor}") != NULL) || (body != NULL && strstr(body, "cursor}") != NULL);

	free(query);
	free(body);
	return has;
}

/* One walk from w->pointer to its end; *pages: how many it was.  True: it was resumed, so what is new at the top is not in it. */
static bool
walk_once(const struct ask *bound, bool filtered, struct walk *w, size_t *pages)
{
	bool resumed = w->pointer != NULL, end;
	struct pass p = { .q = NULL };
	char *text;

	*pages = 0;
	do {
		struct page page;

		pass_put(&p, (*pages)++, w->pointer);
		if (!get(filtered ? text_of(bound) : NULL, w->pointer, &page)) {	/* the pointer is void: from the top */
			free(w->pointer);
			w->pointer = NULL;
			pass_clear(&p);
			*pages = 0;
			resumed = end = false;
			continue;
		}
		if (page.unmodified)
			unmodified();
		end = mark_old(&page, bound, filtered) || page.end;
		if (page.doubtful)
			fail(Q_DATA, "the first page is full and has no pointer to the next: is \"next\" right?");
		if (src.order == ORDER_ANY || w->pointer == NULL)	/* going down, what is above the first page is for the next walk */
			note_high(&w->high, largest(&page));
		free(w->pointer);
		w->pointer = end ? NULL : page.next;
		page.next = NULL;
		if (end && *pages == 1 && !resumed) {
			if (src.probe == NULL) {
				store(&page, w->high, "", true);
				finish(NULL);
			}
			store(&page, w->high, "", false);
			control(filtered ? text_of(bound) : NULL);
			close_run(NULL, NULL, how());
		}
		text = end ? NULL : walk_text(w->pointer, w->high);
		store(&page, NULL, text, false);
		free(text);
		page_free(&page);
		if (!end && enough())
			close_run(NULL, NULL, how());
	} while (!end);
	pass_clear(&p);
	return resumed;
}

/*
 * Walks of several pages are repeated until one adds nothing where pages shift, or where nothing says that later pages are
 * older: only then all that is below the highest value has been seen.
 */
static _Noreturn void
walking(void)
{
	bool filtered = asks_with_cursor(), resumed, again;
	bool shifts = src.order == ORDER_ANY || (!src.stable && src.next != NEXT_LAST);
	struct ask bound;
	struct walk w;
	int64_t fresh;
	size_t pages;

	walk_read(&w);
	if (w.pointer == NULL)
		conditional();
	for (int pass = 0; ; pass++) {
		first_ask(&bound);
		fresh = state.run.fresh;
		resumed = walk_once(&bound, filtered, &w, &pages);
		again = shifts && (resumed || state.run.fresh > fresh);
		if (!again && !resumed)
			close_run(w.high, "", how());
		if (again && pass >= PASSES_MAX) {
			if (src.order == ORDER_DESC)
				close_run(w.high, "", how());
			snprintf(state.run.note, sizeof state.run.note, "it changed each time it was read, so the cursor stays");
			close_run(NULL, "", how());
		}
		if (!again)		/* what came above it since it was begun */
			store(&(struct page){ .n = 0 }, w.high, "", false);
	}
}

/* ---- opaque tokens (R13) --------------------------------------------------- */

static _Noreturn void
opaque(void)
{
	char *token = state.cursor != NULL ? strdup(state.cursor) : NULL;
	struct page page;
	char text[500];
	const char *to;
	bool end;

	for (;;) {
		if (!get(NULL, token, &page)) {
			snprintf(text, sizeof text, "%s: the token is void, the API asks for a new beginning; next: qpoll --reset; %.250s", src.name, pager.message);
			fail(Q_CONFIG, text);
		}
		end = page.end;
		to = end && page.final != NULL ? page.final : page.next;
		if (!end && (to == NULL || (token != NULL && strcmp(to, token) == 0)))
			fail(Q_DATA, "the pages lead round in a circle: the token leads back to itself");
		store(&page, to, NULL, end);
		if (end)
			finish(NULL);
		free(token);
		token = strdup(to);
		page_free(&page);
		if (enough())
			close_run(NULL, NULL, how());
	}
}

/* ---- the first run with "newest" (R17) ------------------------------------- */

static void
newest(void)
{
	struct cursor_key key;
	struct page page;
	const struct item *m;
	char text[CURSOR_TEXT];

	get(NULL, NULL, &page);
	if (src.order != ORDER_ASC) {
		if ((m = largest(&page)) == NULL)
			fail(Q_DATA, "no item to begin after; \"start\": \"all\" begins with the first that comes");
		snprintf(text, sizeof text, "%s", m->cursor);
	} else {
		/* The first page of an ascending list is the oldest: the server's own clock says where its newest is. */
		if (page.date_ms < 0 || !cursor_instant(&src.spec, page.date_ms - src.max_skew_ms, &key))
			fail(Q_CONFIG, "\"start\": \"newest\" of an ascending list needs times, and a Date header; give a value instead");
		cursor_render(&src.spec, &key, text);
	}
	page_free(&page);
	if (dry) {
		prog_warn("%s: the cursor would be %s", src.name, text);
		prog_exit(Q_OK);
	}
	close_run(text, NULL, "nothing");
}

/* ---- what is not a run ----------------------------------------------------- */

static void
print_text(const char *name, const char *text)
{
	printf(",\"%s\":", name);
	if (text == NULL)
		fputs("null", stdout);
	else
		text_json(stdout, text, strlen(text));
}

static void
print_time(const char *name, int64_t ms)
{
	char when[WHEN_TEXT];

	if (ms == -1)
		printf(",\"%s_at\":null,\"%s_ms\":null", name, name);
	else
		printf(",\"%s_at\":\"%s\",\"%s_ms\":%" PRId64, name, when_text(when, ms, false), name, ms);
}

static int
print_run(const struct sync_past *r, void *arg)
{
	char when[WHEN_TEXT], took[WHEN_TEXT];
	bool *first = arg;

	if (json) {
		printf("{\"name\":\"%s\"", src.name);
		print_time("started", r->started_ms);
		print_time("finished", r->finished_ms);
		printf(",\"outcome\":\"%s\",\"exit\":%" PRId64 ",\"http\":", r->outcome, r->exit);
		printf(r->http == -1 ? "null" : "%" PRId64, r->http);
		printf(",\"pages\":%" PRId64 ",\"items\":%" PRId64 ",\"new\":%" PRId64 ",\"repeated\":%" PRId64 ",\"late\":%" PRId64
		    ",\"future\":%" PRId64 ",\"bytes\":%" PRId64 ",\"waited_ms\":%" PRId64, r->pages, r->items, r->fresh, r->repeated, r->late,
		    r->future, r->bytes, r->waited_ms);
		print_text("before", r->before);
		print_text("after", r->after);
		print_text("note", r->note);
		puts("}");
		return Q_OK;
	}
	if (*first)
		puts("STARTED               OUTCOME     EXIT HTTP PAGES  ITEMS    NEW   TOOK  CURSOR, NOTE");
	*first = false;
	printf("%s  %-10s %5" PRId64 " %4" PRId64 " %5" PRId64 " %6" PRId64 " %6" PRId64 " %6s  ", when_text(when, r->started_ms, false), r->outcome,
	    r->exit, r->http == -1 ? 0 : r->http, r->pages, r->items, r->fresh, when_brief(took, r->finished_ms > r->started_ms ? r->finished_ms - r->started_ms : 0));
	text_show(stdout, r->after != NULL ? r->after : "-", strlen(r->after != NULL ? r->after : "-"), 60);
	if (r->note != NULL) {
		fputs("  ", stdout);
		text_show(stdout, r->note, strlen(r->note), 0);
	}
	putchar('\n');
	return Q_OK;
}

struct streak { struct sync_past last; char outcome[16], note[480]; int64_t failures; bool ended, any; };

static int
count_failures(const struct sync_past *r, void *arg)
{
	struct streak *s = arg;

	if (strcmp(r->outcome, "set") == 0)
		return Q_OK;
	if (!s->any) {
		s->last = *r;
		snprintf(s->outcome, sizeof s->outcome, "%s", r->outcome);
		snprintf(s->note, sizeof s->note, "%s", r->note != NULL ? r->note : "");
		s->any = true;
	}
	if (strcmp(r->outcome, "failed") != 0)
		return Q_NO;
	s->failures++;
	return Q_OK;
}

static _Noreturn void
status(void)
{
	struct streak s = { .failures = 0 };
	char when[WHEN_TEXT];
	int64_t now = prog_now();
	int rc = sync_runs(&state, count_failures, &s);

	if (rc != Q_NO)
		prog_check(db, rc);
	if (json) {
		printf("{\"name\":\"%s\"", src.name);
		print_text("cursor", state.cursor);
		printf(",\"walking\":%s", state.walk != NULL ? "true" : "false");
		print_time("shown", state.shown_ms);
		print_time("run", s.any ? s.last.finished_ms : -1);
		print_text("outcome", s.any ? s.outcome : NULL);
		printf(",\"failures\":%" PRId64, s.failures);
		print_text("note", s.note[0] != '\0' ? s.note : NULL);
		puts("}");
		prog_exit(Q_OK);
	}
	printf("%-10s %s\n%-10s ", "source", src.name, "cursor");
	text_show(stdout, state.cursor != NULL ? state.cursor : "none yet", strlen(state.cursor != NULL ? state.cursor : "none yet"), 0);
	printf("%s\n%-10s %s\n", state.walk != NULL ? ", in the middle of a walk" : "", "last new",
	    state.shown_ms != -1 ? when_relative(when, state.shown_ms, now) : "never");
	if (!s.any)
		printf("%-10s never\n", "last run");
	else {
		printf("%-10s %s: %s", "last run", when_relative(when, s.last.finished_ms, now), s.outcome);
		if (s.failures > 1)
			printf(", as the %" PRId64 " before it", s.failures - 1);
		putchar('\n');
		if (s.note[0] != '\0') {
			printf("%-10s ", "note");
			text_show(stdout, s.note, strlen(s.note), 0);
			putchar('\n');
		}
	}
	prog_exit(Q_OK);
}

static _Noreturn void
history(void)
{
	bool first = true;

	prog_check(db, sync_runs(&state, print_run, &first));
	prog_exit(Q_OK);
}

/* Credential and shape, moving nothing. */
static _Noreturn void
try_out(void)
{
	struct page page;
	struct ask q;
	int rc;

	dry = true;			/* fail() stores nothing */
	first_ask(&q);
	get(text_of(&q), NULL, &page);
	if (src.order == ORDER_ASC)
		check_order(&page, &q);
	if (src.probe != NULL && ((rc = page_probe(&pager, src.probe, &page)) != Q_OK || page.n == 0))
		fail(rc != Q_OK ? rc : Q_PERM, rc != Q_OK ? pager.message : "blind: the control query shows no item at all");
	prog_exit(Q_OK);
}

/* ---- beginning -------------------------------------------------------------- */

static int act;
static const char *value;

static void
options(int argc, char *argv[])
{
	static const char *const NAMES[] = { "--accept", "--check", "--status", "--history", "--set-cursor", "--reset" };
	int c, other = 0;

	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case 'n': dry = true; break;
		case 'j': json = true; break;
		default:
			if (act != 0 && act != c)
				other = act;
			act = c;
			if (c == SET)
				value = optarg;
			break;
		}
	if (other != 0)
		prog_usage("%s and %s exclude each other", NAMES[other - ACCEPT], NAMES[act - ACCEPT]);
	if (optind == argc)
		prog_usage("no SOURCE, the file that describes what is asked");
	if (optind + 1 < argc) {
		if (strcmp(argv[optind + 1], "--") != 0)
			prog_usage("one SOURCE at a time; a command follows '--'");
		if (optind + 2 == argc)
			prog_usage("no command after '--'");
		command = argv + optind + 2;
	}
	if (json && act != STATUS && act != HISTORY)
		prog_usage("-j goes with --status and --history");
	if (command != NULL && (dry || (act != 0 && act != ACCEPT)))
		prog_usage("a command goes with a run only");
	if (dry && act != 0 && act != ACCEPT)
		prog_usage("-n goes with a run only");
	prog_now();
}

/* What must hold before anything is asked. */
static void
ready(void)
{
	char text[600];
	int64_t ms;
	int rc;

	if (strcmp(state.config, src.config) != 0) {
		if (act != ACCEPT && state.cursor != NULL) {
			snprintf(text, sizeof text, "%s: the source file asks for other items than when the cursor was stored; next: qpoll --accept, "
			    "if the cursor still fits, or qpoll --reset", src.name);
			fail(Q_CONFIG, text);
		}
		snprintf(state.config, sizeof state.config, "%s", src.config);
	}
	if (src.max_gap_ms > 0 && state.cursor != NULL && cursor_ms(&src.spec, &state.key, &ms) && ms < prog_now() - src.max_gap_ms) {
		snprintf(text, sizeof text, "%s: the cursor %.80s is older than \"max_gap\", so the API may have forgotten what follows it; "
		    "next: qpoll --reset, and qbackfill the gap", src.name, state.cursor);
		fail(Q_CONFIG, text);
	}
	if (src.whoami != NULL && (rc = page_ask(&pager, src.whoami)) != Q_OK)
		fail(rc, pager.message);
}

int
main(int argc, char *argv[])
{
	char message[1024];
	int status_code;

	prog_start(&self, true);
	options(argc, argv);
	if (!source_read(&src, argv[optind], &status_code, message, sizeof message))
		prog_die(status_code, "%s", message);
	if (src.queue == NULL && command == NULL && act == 0 && !dry)
		prog_die(Q_CONFIG, "%s: \"queue\" is missing, where the items go; or give a command", argv[optind]);
	if (command != NULL) {
		src.queue = NULL;
		spec.argv = command;
		if (minder_start(&minder, &spec, NULL, 0) == -1)
			prog_die(Q_TEMP, "cannot start a process: %s", strerror(errno));
		prog_last = stop_minder;
	}
	prog_catch();
	db = prog_open(DB_STAY);
	prog_check(db, sync_read(&state, db, &src, &pager));
	state.run.started_ms = prog_now();
	pager = (struct pager){ .src = &src, .db = db, .stopped = stopped, .start = src.start, .http = http_open(),
	    .rate = { .name = src.rate, .worker = prog_worker(), .lease_ms = LEASE_MS, .first = true } };
	if (pager.http == NULL)
		prog_die(Q_TEMP, "out of memory");
	switch (act) {
	case STATUS: status();
	case HISTORY: history();
	case SET:
		prog_check(db, sync_reset(&state, value, prog_now()));
		prog_exit(Q_OK);
	case RESET:
		prog_check(db, sync_reset(&state, NULL, prog_now()));
		prog_exit(Q_OK);
	}
	ready();
	if (act == CHECK)
		try_out();
	if (src.start != NULL && strcmp(src.start, "newest") == 0 && state.cursor == NULL && state.walk == NULL)
		newest();
	switch (src.order) {
	case ORDER_ASC: ascending();
	case ORDER_OPAQUE: opaque();
	default: walking();
	}
}
