/* walk.c - through the pages of a source, so that nothing is missed while they move */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

enum { PASSES_MAX = 3, CUT_MAX = 7 };	/* in a run; in all, if each is too long for one */

static int wrong(struct walk *, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Into the pager's message; returns status. */
static int
wrong(struct walk *w, int status, const char *fmt, ...)
{
	size_t size = sizeof w->pager->message;
	int n = snprintf(w->pager->message, size, "%s: %s: ", w->src->name, w->pager->where);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->pager->message + n, size - (size_t)n, fmt, ap);
	va_end(ap);
	return status;
}

static int
memory(struct walk *w)
{
	return wrong(w, Q_TEMP, "out of memory");
}

/* ---- a page ---------------------------------------------------------------- */

/* Q_NO: the pointer, or the token, is void, or before() says that it is enough: then *enough. */
static int
get(struct walk *w, const char *query, const char *pointer, struct page *page, bool *enough)
{
	int rc = w->before(w);

	memset(page, 0, sizeof *page);
	*enough = rc == Q_NO;
	if (rc != Q_OK || (rc = page_get(w->pager, query, pointer, page)) != Q_OK)
		return rc;
	w->pointed |= page->next != NULL;
	page->doubtful &= !w->pointed;
	w->empty = page->n == 0 ? w->empty + 1 : 0;
	if (w->empty > w->src->max_empty && page->next != NULL) {
		page_free(page);
		return wrong(w, Q_DATA, "more than %" PRId64 " empty pages in a row, each with a pointer to the next (\"max_empty\")", w->src->max_empty);
	}
	if (!w->proving)
		w->depth = (pointer != NULL ? w->depth : 0) + (int64_t)page->n;
	w->cut = w->src->cap > 0 && w->depth >= w->src->cap && page->end;
	for (size_t i = 0; i < page->n && w->until.n > 0; i++)
		if (page->items[i].cursor != NULL && cursor_compare(&page->items[i].key, &w->until) >= 0) {
			page->items[i].old = true;
			w->cut &= w->src->order != ORDER_ASC;
		}
	return Q_OK;
}

static int
store(struct walk *w, struct page *page, const char *cursor, const char *position, bool last)
{
	w->closed |= last;
	return w->store(w, page, cursor, position, last);
}

/* The walk is complete; what there was is stored already. */
static int
complete(struct walk *w, const char *cursor, const char *position)
{
	return store(w, &(struct page){ .n = 0 }, cursor, position, true);
}

static const char *
text_of(const struct ask *q)
{
	return q->set ? q->text : NULL;
}

static void
ask_at(const struct walk *w, const struct item *it, struct ask *q)
{
	q->set = true;
	cursor_bound(&w->src->spec, it->cursor, &it->key, false, q->text, &q->key);
}

/* Would asking from it on not get ahead of q?  With a shift it may even go back. */
static bool
inside(const struct walk *w, const struct item *it, const struct ask *q)
{
	struct ask at;

	ask_at(w, it, &at);
	return q->set && cursor_compare(&at.key, &q->key) <= 0;
}

const struct item *
walk_largest(const struct page *page)
{
	const struct item *m = NULL;

	for (size_t i = 0; i < page->n; i++) {
		const struct item *it = &page->items[i];

		if (it->cursor != NULL && !it->future && !it->old && (m == NULL || cursor_compare(&it->key, &m->key) > 0))
			m = it;
	}
	return m;
}

static int
below(struct walk *w, const struct item *it, const struct ask *q)
{
	return wrong(w, Q_DATA, "filter ignored: %.60s came (id %.60s), though only what is from %.60s on was asked for", it->cursor, it->id, q->text);
}

static int
disorder(struct walk *w, const char *way, const struct item *it, const struct item *last)
{
	return wrong(w, Q_DATA, "not in %s order: %.60s (id %.60s) comes after %.60s (id %.60s)", way, it->cursor, it->id, last->cursor, last->id);
}

static int
only_one(struct walk *w)
{
	return wrong(w, Q_DATA, "the first page is full and has no pointer to the next: is \"next\" right?");
}

/* ---- ascending (R3, R4) --------------------------------------------------- */

/* Values that fall, or lie below what was asked for: the API ignores its sort or filter parameter. */
static int
check_order(struct walk *w, const struct page *page, const struct ask *q)
{
	const struct item *last = NULL;

	for (size_t i = 0; i < page->n; i++) {
		const struct item *it = &page->items[i];

		if (it->cursor == NULL)
			continue;
		if (q->set && cursor_compare(&it->key, &q->key) < 0)
			return below(w, it, q);
		if (last != NULL && cursor_compare(&it->key, &last->key) < 0)
			return disorder(w, "ascending", it, last);
		last = it;
	}
	return Q_OK;
}

/* Behind these there is nothing that is wanted now, or nothing that would not come again. */
static bool
has_future(const struct page *page)
{
	return page->n > 0 && page->items[page->n - 1].future;
}

static bool
has_until(const struct page *page)
{
	for (size_t i = 0; i < page->n; i++)
		if (page->items[i].old)
			return true;
	return false;
}

struct rows { size_t n; unsigned char (*ver)[16]; };

/* One pass over the pages at one value: how each is asked for, and what it held. */
struct pass { const struct ask *q; char **pointer; struct rows *rows; size_t n, cap; };

static void
pass_cut(struct pass *p, size_t n)
{
	while (p->n > n) {
		p->n--;
		free(p->pointer[p->n]);
		free(p->rows[p->n].ver);
	}
}

static void
pass_free(struct pass *p)
{
	pass_cut(p, 0);
	free(p->pointer);
	free(p->rows);
}

/* Page i of the pass is asked for like this (NULL: the first); a pointer that was met before leads round in a circle (R6). */
static int
pass_put(struct walk *w, struct pass *p, size_t i, const char *pointer)
{
	char **more_pointers;
	struct rows *more_rows;

	/* The id of a last item comes again where that item has moved; only of one page to itself it is a circle. */
	for (size_t k = w->src->next == NEXT_LAST && i > 0 ? i - 1 : 0; k < i && k < p->n; k++)
		if (pointer != NULL && p->pointer[k] != NULL && strcmp(pointer, p->pointer[k]) == 0)
			return wrong(w, Q_DATA, "the pages lead round in a circle: page %zu of this walk leads back to page %zu", i, k + 1);
	pass_cut(p, i);
	if (p->n == p->cap) {
		p->cap = p->cap == 0 ? 16 : 2 * p->cap;
		if ((more_pointers = realloc(p->pointer, p->cap * sizeof *p->pointer)) == NULL)
			return memory(w);
		p->pointer = more_pointers;
		if ((more_rows = realloc(p->rows, p->cap * sizeof *p->rows)) == NULL)
			return memory(w);
		p->rows = more_rows;
	}
	p->rows[p->n] = (struct rows){ 0, NULL };
	p->pointer[p->n++] = pointer != NULL ? strdup(pointer) : NULL;
	return pointer != NULL && p->pointer[p->n - 1] == NULL ? memory(w) : Q_OK;
}

/* What is kept of a page that was stored. */
struct done { char *next; bool end, future, beyond, until; char cursor[CURSOR_MAX + 1]; struct rows rows; };

static void
done_free(struct done *d)
{
	free(d->next);
	free(d->rows.ver);
	*d = (struct done){ .next = NULL };
}

/* Page i of the pass, judged and stored, with the cursor held inside the group of values that the pass asks for. */
static int
pass_get(struct walk *w, struct pass *p, size_t i, struct done *d, bool *enough)
{
	const struct item *m, *in = NULL;
	struct page page;
	int rc = get(w, text_of(p->q), p->pointer[i], &page, enough);

	done_free(d);
	if (rc == Q_NO && !*enough)
		return wrong(w, Q_TEMP, "the pointer to the next page became void; the next run begins again at the cursor");
	if (rc != Q_OK || (rc = check_order(w, &page, p->q)) != Q_OK) {
		page_free(&page);
		return rc;
	}
	for (size_t k = 0; k < page.n; k++)
		if (page.items[k].cursor != NULL && !page.items[k].future && inside(w, &page.items[k], p->q))
			in = &page.items[k];
	m = walk_largest(&page);
	d->future = has_future(&page);
	d->until = has_until(&page);
	d->end = page.end && !page.doubtful;
	d->beyond = d->until || (m != NULL && !inside(w, m, p->q));
	if (m != NULL)
		snprintf(d->cursor, sizeof d->cursor, "%s", m->cursor);
	if ((d->rows.ver = malloc(page.n * 16 + 1)) == NULL)
		rc = memory(w);
	else for (size_t k = 0; k < page.n; k++, d->rows.n++)
		memcpy(d->rows.ver[k], page.items[k].ver, 16);
	if (rc == Q_OK)
		rc = store(w, &page, in != NULL && !in->old ? in->cursor : NULL, NULL, d->end && !d->beyond);
	d->next = page.next;
	page.next = NULL;
	page_free(&page);
	return rc;
}

static void
join(struct pass *p, size_t i, struct done *d)
{
	free(p->rows[i].ver);
	p->rows[i] = d->rows;
	d->rows = (struct rows){ 0, NULL };
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

static int
stalled(struct walk *w, const struct ask *q)
{
	return wrong(w, Q_DATA, "stalled: a whole page has the value %.80s, and there is no pointer to the next", q->text);
}

/* The rest of a walk in which nothing can be missed, or only what comes again; d is page p->n - 1. */
static int
follow(struct walk *w, struct pass *p, struct done *d, bool *enough)
{
	int rc = Q_OK;

	while (rc == Q_OK && d->next != NULL && !d->until)
		if ((rc = pass_put(w, p, p->n, d->next)) == Q_OK)
			rc = pass_get(w, p, p->n - 1, d, enough);
	return rc != Q_OK || w->closed ? rc : complete(w, NULL, NULL);
}

/*
 * (a) of R4: search for the end of the group.  Q_OK with w->closed, or with d->beyond.
 */
static int
search(struct walk *w, struct pass *p, char *next, struct done *d, bool *enough)
{
	int rc = pass_put(w, p, 0, NULL);

	d->next = next;
	while (rc == Q_OK && !d->beyond && !w->closed) {
		if (d->next == NULL)
			return stalled(w, p->q);
		if ((rc = pass_put(w, p, p->n, d->next)) == Q_OK)
			rc = pass_get(w, p, p->n - 1, d, enough);
		if (rc == Q_OK && d->future && !w->closed)
			return follow(w, p, d, enough);
	}
	return rc;
}

/*
 * (b) of R4: prove that no page shifted while it was read.  Each page is read again after the next one, and where it changed, back
 * to a page that begins with a row already read.  Q_OK with w->closed, or with d being a page beyond the group.
 */
static int
prove(struct walk *w, struct pass *p, struct done *d, bool *enough)
{
	struct done again = { .next = NULL };
	size_t n = 0;
	int rc;

	pass_cut(p, 0);
	if ((rc = pass_put(w, p, 0, NULL)) != Q_OK || (rc = pass_get(w, p, 0, d, enough)) != Q_OK)
		return rc;
	join(p, 0, d);
	while (rc == Q_OK && !d->beyond && !w->closed) {
		if (d->future)
			return follow(w, p, d, enough);
		if (d->next == NULL)
			return stalled(w, p->q);
		if ((rc = pass_put(w, p, n + 1, d->next)) != Q_OK || (rc = pass_get(w, p, n + 1, d, enough)) != Q_OK || w->closed ||
		    (rc = pass_get(w, p, n, &again, enough)) != Q_OK || w->closed)
			break;
		if (same_rows(&again.rows, &p->rows[n])) {
			join(p, ++n, d);
			continue;
		}
		done_free(d);
		*d = again;
		again = (struct done){ .next = NULL };
		while (rc == Q_OK && !w->closed && n > 0 && !begins_inside(&d->rows, p, n))
			rc = pass_get(w, p, --n, d, enough);
		join(p, n, d);
	}
	done_free(&again);
	return rc;
}

/* More rows have one value than a page holds.  Q_OK with w->closed, or with the cursor beyond the group and *q there. */
static int
tie(struct walk *w, struct ask *q, char *next, bool *enough)
{
	struct pass p = { .q = q };
	struct done d = { .next = NULL };
	struct cursor_key key;
	const char *why;
	int rc = search(w, &p, next, &d, enough);

	if (rc == Q_OK && !w->closed) {
		w->proving = true;
		rc = prove(w, &p, &d, enough);
		w->proving = false;
	}
	if (rc == Q_OK && !w->closed) {
		if (d.end || d.until)
			rc = complete(w, d.cursor[0] != '\0' ? d.cursor : NULL, NULL);
		else if ((rc = store(w, &(struct page){ .n = 0 }, d.cursor, NULL, false)) == Q_OK && cursor_key(&w->src->spec, d.cursor, &key, &why)) {
			q->set = true;
			cursor_bound(&w->src->spec, d.cursor, &key, false, q->text, &q->key);
		}
	}
	done_free(&d);
	pass_free(&p);
	return rc;
}

/* The pointer is a true position in the stream, or what follows is best effort: go on from a page to the next. */
static int
straight(struct walk *w, const struct ask *q, char *next, bool *enough)
{
	bool place = w->src->stable;	/* else the cursor stays: pages may have shifted, and the future become the present */
	struct pass p = { .q = q };
	struct page page;
	const struct item *m;
	int rc = pass_put(w, &p, 0, NULL);

	while (rc == Q_OK && next != NULL && !w->closed) {
		rc = pass_put(w, &p, p.n, next);
		free(next);
		next = NULL;
		if (rc != Q_OK || (rc = get(w, text_of(q), p.pointer[p.n - 1], &page, enough)) != Q_OK) {
			if (rc == Q_NO && !*enough)
				rc = wrong(w, Q_TEMP, "the pointer to the next page became void; the next run begins again at the cursor");
			break;
		}
		if ((rc = check_order(w, &page, q)) == Q_OK) {
			m = walk_largest(&page);
			rc = store(w, &page, place && m != NULL ? m->cursor : NULL, NULL, page.end || has_until(&page));
		}
		next = page.next;
		page.next = NULL;
		page_free(&page);
	}
	free(next);
	pass_free(&p);
	return rc != Q_OK || w->closed ? rc : complete(w, NULL, NULL);
}

static int
ascending(struct walk *w, bool *enough)
{
	struct ask q = w->from, at;
	struct page page;
	const struct item *m;
	bool moved, future;
	char *next;
	int rc = Q_OK;

	while (rc == Q_OK && !w->closed) {
		if ((rc = get(w, text_of(&q), NULL, &page, enough)) != Q_OK)
			break;
		if (page.unmodified) {
			w->unmodified = true;
			page_free(&page);
			break;
		}
		m = walk_largest(&page);
		if ((moved = m != NULL && !inside(w, m, &q)))
			ask_at(w, m, &at);
		future = has_future(&page);
		if ((rc = check_order(w, &page, &q)) == Q_OK)
			rc = store(w, &page, m != NULL ? m->cursor : NULL, NULL, (page.end && !page.doubtful) || has_until(&page));
		if (rc == Q_OK && page.doubtful && w->src->stable && !w->closed)
			rc = only_one(w);
		next = page.next;
		page.next = NULL;
		page_free(&page);
		if (rc != Q_OK || w->closed)
			free(next);
		else if (w->src->stable || future)
			rc = straight(w, &q, next, enough);
		else if (moved) {
			free(next);
			q = at;
		} else
			rc = tie(w, &q, next, enough);
	}
	return rc;
}

/* ---- descending, and in no order (R7) ------------------------------------- */

void
walk_resume(struct walk *w, const char *position)
{
	json_t *v = position != NULL ? json_loads(position, 0, NULL) : NULL;
	const char *text;

	if ((text = json_string_value(json_object_get(v, "pointer"))) != NULL)
		w->pointer = strdup(text);
	if ((text = json_string_value(json_object_get(v, "high"))) != NULL)
		w->high = strdup(text);
	if ((text = json_string_value(json_object_get(v, "known"))) != NULL)
		w->known = strdup(text);
	w->pass = json_integer_value(json_object_get(v, "pass"));
	json_decref(v);
}

/* Where a run that comes later goes on: in this pass, or if it is over at the top of another. */
static char *
position_text(const struct walk *w)
{
	int64_t pass = w->pass + (w->pointer == NULL);
	json_t *v = json_pack("{s:s*,s:s*}", "pointer", w->pointer, "high", w->high);
	char *text;

	if (pass > 0 && json_object_set_new(v, "pass", json_integer(pass)) == 0 && w->pointer != NULL && w->known != NULL)
		json_object_set_new(v, "known", json_string(w->known));
	text = v != NULL ? json_dumps(v, JSON_COMPACT) : NULL;

	json_decref(v);
	return text;
}

static void
note_high(struct walk *w, const struct item *m)
{
	struct cursor_key key;
	const char *why;

	if (m == NULL || (w->high != NULL && cursor_key(&w->src->spec, w->high, &key, &why) && cursor_compare(&m->key, &key) <= 0))
		return;
	free(w->high);
	w->high = strdup(m->cursor);
}

/* Marks what lies below the bound; *down: the walk may end with this page, since it goes down. */
static int
mark_old(struct walk *w, struct page *page, bool filtered, bool *down)
{
	const struct item *last = NULL;

	*down = false;
	for (size_t i = 0; i < page->n; i++) {
		struct item *it = &page->items[i];

		if (it->cursor == NULL)
			continue;
		if (w->src->order == ORDER_DESC && last != NULL && cursor_compare(&it->key, &last->key) > 0)
			return disorder(w, "descending", it, last);
		last = it;
		if (!w->from.set || cursor_compare(&it->key, &w->from.key) >= 0)
			continue;
		if (filtered)
			return below(w, it, &w->from);
		it->old = true;
		*down = w->src->order == ORDER_DESC;
	}
	return Q_OK;
}

/* One walk from w->pointer to its end.  *resumed: what is new at the top is not in it. */
static int
once(struct walk *w, bool filtered, bool *resumed, bool *enough)
{
	struct pass p = { .q = NULL };
	struct page page;
	bool end = false, again = false;
	char *text;
	int rc = Q_OK;

	*resumed = w->pointer != NULL;
	while (rc == Q_OK && !end) {
		if ((rc = pass_put(w, &p, p.n, w->pointer)) != Q_OK)
			break;
		rc = get(w, filtered ? text_of(&w->from) : NULL, w->pointer, &page, enough);
		if (rc == Q_NO && !*enough && again)
			rc = wrong(w, Q_TEMP, "the pointer to the next page became void, again; the next run begins anew");
		if (rc == Q_NO && !*enough && w->pointer != NULL) {	/* the pointer is void: from the top */
			again = true;
			free(w->pointer);
			w->pointer = NULL;
			pass_cut(&p, 0);
			*resumed = false;
			rc = Q_OK;
			continue;
		}
		if (rc == Q_OK && page.unmodified) {
			w->unmodified = true;
			page_free(&page);
			break;
		}
		if (rc != Q_OK || (rc = mark_old(w, &page, filtered && !*resumed, &end)) != Q_OK)
			break;
		end |= page.end;
		if (page.doubtful) {
			page_free(&page);
			rc = only_one(w);
			break;
		}
		/* Going down, what is above the first page is for the next walk; but that page may lie in the future. */
		if (w->src->order == ORDER_ANY || w->pointer == NULL || w->high == NULL)
			note_high(w, walk_largest(&page));
		free(w->pointer);
		w->pointer = end ? NULL : page.next;
		page.next = NULL;
		if (end && p.n == 1 && !*resumed)
			rc = store(w, &page, w->high, "", true);
		else if ((text = position_text(w)) == NULL)
			rc = memory(w);
		else {
			rc = store(w, &page, NULL, text, false);
			free(text);
		}
		page_free(&page);
	}
	pass_free(&p);
	return rc;
}

/*
 * Walks of several pages are repeated until one adds nothing where pages shift, or where nothing says that later pages are
 * older: only then all that is below the highest value has been seen.
 */
static int
walking(struct walk *w, bool *enough)
{
	bool filtered = source_sends(w->src, "cursor"), resumed = false, again;
	bool shifts = w->src->order == ORDER_ANY || (!w->src->stable && w->src->next != NEXT_LAST);
	struct cursor_key key;
	const char *why;
	int64_t fresh;
	int rc = Q_OK;

	for (int pass = 0; rc == Q_OK && !w->closed; pass++, w->pass++) {
		fresh = w->fresh;
		if (w->pointer == NULL) {	/* else the pass goes on that another run began */
			free(w->known);
			w->known = w->high != NULL ? strdup(w->high) : NULL;
		}
		if ((rc = once(w, filtered, &resumed, enough)) != Q_OK || w->closed || w->unmodified)
			break;
		again = shifts && (resumed || w->fresh > fresh);
		if (!again && !resumed)
			rc = complete(w, w->high, "");
		else if (again && (pass >= PASSES_MAX || (resumed && w->pass >= CUT_MAX))) {
			w->unsettled = w->src->order != ORDER_DESC;
			rc = complete(w, w->unsettled ? w->known : w->high, "");
		} else if (!again) {		/* now what came above it since it was begun */
			rc = store(w, &(struct page){ .n = 0 }, w->high, "", false);
			if (w->high != NULL && cursor_key(&w->src->spec, w->high, &w->from.key, &why)) {
				w->from.set = true;
				key = w->from.key;
				cursor_bound(&w->src->spec, w->high, &key, false, w->from.text, &w->from.key);
			}
		}
	}
	return rc;
}

/* ---- opaque tokens (R13) --------------------------------------------------- */

/*
 * The cursor is a token.  If the API wants its closing token beside those of the pages ({sync}), that is the cursor, and they are
 * positions of a walk; else each page's is.
 */
static int
opaque(struct walk *w, bool *enough)
{
	bool closing = w->src->closing;
	struct pass p = { .q = NULL };
	struct page page;
	const char *to;
	char *position = NULL;
	bool end = false;
	int rc;

	if (closing)
		w->pager->sync = w->token;
	else if (w->pointer == NULL && w->token != NULL && (w->pointer = strdup(w->token)) == NULL)
		return memory(w);
	rc = pass_put(w, &p, 0, w->pointer);
	while (rc == Q_OK && !end) {
		rc = get(w, NULL, w->pointer, &page, enough);
		if (rc == Q_NO && !*enough)
			rc = wrong(w, Q_CONFIG, "the token is void (status %d), the API wants a new beginning; next: qpoll --reset", w->pager->status);
		if (rc != Q_OK)
			break;
		end = page.end;
		to = end && page.final != NULL ? page.final : closing && end ? NULL : page.next;
		if (end && closing && to == NULL)
			rc = wrong(w, Q_DATA, "the last page has no closing token at \"%s\" (\"final\")", w->src->final);
		else if (!end)
			rc = pass_put(w, &p, p.n, to);
		free(w->pointer);
		w->pointer = rc == Q_OK && to != NULL ? strdup(to) : NULL;
		if (rc == Q_OK && closing && !end && (position = position_text(w)) == NULL)
			rc = memory(w);
		if (rc == Q_OK)
			rc = store(w, &page, closing && !end ? NULL : to, closing ? (end ? "" : position) : NULL, end);
		free(position);
		position = NULL;
		page_free(&page);
	}
	w->pager->sync = NULL;
	pass_free(&p);
	return rc;
}

int
walk_judge(struct walk *w, struct page *page)
{
	bool unused;

	if (w->src->order == ORDER_OPAQUE)
		return Q_OK;
	return w->src->order == ORDER_ASC ? check_order(w, page, &w->from) : mark_old(w, page, source_sends(w->src, "cursor"), &unused);
}

int
walk_run(struct walk *w)
{
	bool enough = false;
	int rc;

	w->closed = w->unmodified = w->unsettled = false;
	switch (w->src->order) {
	case ORDER_ASC: rc = ascending(w, &enough); break;
	case ORDER_OPAQUE: rc = opaque(w, &enough); break;
	default: rc = walking(w, &enough); break;
	}
	free(w->pointer);
	free(w->high);
	free(w->known);
	free(w->token);
	w->pointer = w->high = w->known = w->token = NULL;
	return rc;
}
