/* table.c - aligned tables for people; see table.h */
#include <stdlib.h>
#include <string.h>

#include "q.h"
#include "table.h"

enum {
	NAME_ROOM = 16,			/* names are cut to this before columns are left out, */
	NAME_LEAST = 6			/* and to this after it */
};

struct cell { char *p; size_t n; int shown; };

struct table {
	const struct table_col *cols;
	int ncols, *width;		/* 0: empty; -1: hidden; below: left out */
	struct cell *cells;
	size_t n, cap;
	FILE *null;
	bool failed;
};

struct table *
table_new(const struct table_col *cols, int ncols)
{
	struct table *t = calloc(1, sizeof *t);

	if (t == NULL)
		return NULL;
	t->cols = cols;
	t->ncols = ncols;
	t->width = calloc((size_t)ncols, sizeof *t->width);
	t->null = fopen("/dev/null", "w");
	t->failed = t->width == NULL || t->null == NULL;
	for (int i = 0; i < ncols && !t->failed; i++)
		t->width[i] = cols[i].kind == TABLE_REST ? 0 : (int)strlen(cols[i].head);
	return t;
}

void
table_hide(struct table *t, int col)
{
	if (t != NULL && !t->failed)
		t->width[col] = -1;
}

void
table_bytes(struct table *t, const void *p, size_t n)
{
	struct cell *cell, *more;
	int col, width;

	if (t == NULL || t->failed)
		return;
	if (t->n == t->cap) {
		t->cap = t->cap == 0 ? 64 : 2 * t->cap;
		if ((more = realloc(t->cells, t->cap * sizeof *more)) == NULL) {
			t->failed = true;
			return;
		}
		t->cells = more;
	}
	col = (int)(t->n % (size_t)t->ncols);
	cell = &t->cells[t->n];
	if ((cell->p = malloc(n + 1)) == NULL) {
		t->failed = true;
		return;
	}
	t->n++;
	memcpy(cell->p, p, n);
	cell->p[n] = '\0';
	cell->n = n;
	cell->shown = text_show(t->null, p, n, 0);
	width = t->cols[col].kind != TABLE_REST ? cell->shown : n == 0 ? 0 : t->cols[col].least;
	if (t->width[col] != -1 && t->width[col] < width)
		t->width[col] = width;
}

void
table_text(struct table *t, const char *s)
{
	table_bytes(t, s, strlen(s));
}

static int
total(const struct table *t)
{
	int sum = -1;

	for (int i = 0; i < t->ncols; i++)
		sum += t->width[i] > 0 ? t->width[i] + 1 : 0;
	return sum;
}

/* Cut names by what is too much, the last first, to no less than `least`. */
static void
shrink(struct table *t, int least, int room)
{
	for (int i = t->ncols - 1; i >= 0; i--) {
		int too_much = total(t) - room;

		if (t->cols[i].kind == TABLE_NAME && too_much > 0 && t->width[i] > least)
			t->width[i] = t->width[i] - too_much > least ? t->width[i] - too_much : least;
	}
}

static int
col_of(const struct table *t, int drop)
{
	int i = 0;

	while (i < t->ncols && t->cols[i].drop != drop)
		i++;
	return i;
}

static void
leave_out(struct table *t, int col)
{
	if (col < t->ncols && t->width[col] > 0)
		t->width[col] = -t->width[col] - 1;
}

static void
bring_back(struct table *t, int col, int room)
{
	if (col < t->ncols && t->width[col] < -1 && total(t) - t->width[col] <= room)
		t->width[col] = -t->width[col] - 1;
}

/*
 * Names are cut a little, then columns left out, of which those that fit after all come back, the last to go first, then names
 * cut to what remains; the last column takes the rest.
 */
static void
fit(struct table *t, int room)
{
	int drop;

	shrink(t, NAME_ROOM, room);
	for (drop = 1; drop <= t->ncols && total(t) > room; drop++)
		leave_out(t, col_of(t, drop));
	while (--drop > 0)
		bring_back(t, col_of(t, drop), room);
	shrink(t, NAME_LEAST, room);
	for (int i = 0; i < t->ncols; i++)
		if (t->cols[i].kind == TABLE_REST && t->width[i] > 0 && total(t) < room)
			t->width[i] += room - total(t);
}

/* The columns after it, but for empty ones at the end of a row, decide whether a name is padded. */
static void
print_cell(const struct table *t, FILE *f, int col, const char *p, size_t n, int shown, int room, int *pending)
{
	int width = t->width[col];
	enum table_kind kind = t->cols[col].kind;

	if (width <= 0 || n == 0)
		return;
	fprintf(f, "%*s", *pending, "");
	*pending = 1;
	if (kind == TABLE_NUMBER)
		fprintf(f, "%*s%.*s", width > shown ? width - shown : 0, "", (int)n, p);
	else if (kind == TABLE_REST && width < t->cols[col].least + 7 && room > 0)	/* a word, and no stump of what explains it */
		text_show(f, p, strcspn(p, ":"), width);
	else
		*pending += width - text_show(f, p, n, room == 0 ? 0 : width);
}

int
table_print(struct table *t, FILE *f, int room)
{
	int pending, rc = t == NULL || t->failed ? -1 : 0;

	if (t == NULL)
		return -1;
	if (rc == 0) {
		if (room > 0)
			fit(t, room);
		pending = 0;
		for (int i = 0; i < t->ncols; i++)
			print_cell(t, f, i, t->cols[i].head, strlen(t->cols[i].head), (int)strlen(t->cols[i].head), 0, &pending);
		putc('\n', f);
		for (size_t k = 0; k < t->n; k++) {
			int col = (int)(k % (size_t)t->ncols);

			pending = col == 0 ? 0 : pending;
			print_cell(t, f, col, t->cells[k].p, t->cells[k].n, t->cells[k].shown, room, &pending);
			if (col == t->ncols - 1)
				putc('\n', f);
		}
	}
	for (size_t k = 0; k < t->n; k++)
		free(t->cells[k].p);
	if (t->null != NULL)
		fclose(t->null);
	free(t->cells);
	free(t->width);
	free(t);
	return rc;
}
