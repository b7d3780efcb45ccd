/*
 * late.h - reports on lateness: what ledger.c reads, slo.c judges, chart.c and table.c draw, prom.c and alarm.c tell.
 */
#ifndef LATE_H
#define LATE_H

#include "q.h"

/* ---- slo.c: targets; knows nothing of the database ------------------------ */

struct slo { int64_t target_ms, ppm; };	/* so many of a million start within target_ms of their due time; target_ms -1: no target */

struct share { int64_t late, all; };

/* "30s/99%"; at most 4 decimals count.  False: it is none. */
bool slo_parse(const char *, struct slo *);

/* How many times faster than allowed late work comes: 1 is the objective itself; -1: nothing to divide by. */
double slo_burn(const struct slo *, const struct share *);

/* The windows of burn rates, ending now. */
enum { BURN_5M, BURN_30M, BURN_1H, BURN_6H, BURN_3D, BURNS };
extern const int64_t SLO_WINDOW_MS[BURNS];

/*
 * Which window burns: BURN_1H (14.4 times, over 5m too), BURN_6H (6 times, over 30m too) or BURN_3D (once, over 6h too); -1: none.
 * A factor that the objective cannot reach is the objective itself, and a window with few late jobs does not burn: there must be
 * 3, and 10 or a twentieth of all.  most: the longest window that was read.
 */
int slo_burning(const struct slo *, const struct share[BURNS], int most);

/* Is less than the objective in time? */
bool slo_missed(const struct slo *, const struct share *);

/* ---- ledger.c: reading ----------------------------------------------------- */

enum { LATE_CELLS = 64 };		/* of a trend, at most */
#define LATE_MS_MAX ((INT64_C(1) << 57) - 1)

struct values { int64_t *v; size_t n, cap; };	/* by ledger_rank() and ledger_trend() alone; ascending */

struct report {				/* a queue, or a type in it: qlate(1) says what each counts */
	const char *queue, *type;	/* type "": none, or all of them */
	size_t queue_len, type_len;	/* for names of other programs */
	int place;			/* which operand */
	int bin;			/* which part of the window */
	bool whole;			/* a queue with all its types, beside which there are those of its types */
	bool seen;			/* something in the window, or now; else it has no more than a target */
	bool paused;
	const char *why;		/* why work waits, a constant; "": nothing to tell */
	struct slo slo;			/* its own, or its queue's */
	bool own_slo;			/* its own */
	int64_t waiting, oldest_ms;	/* claimable now, and for how long the oldest; -1: none waits */
	int64_t claimed;
	int64_t done, failed, dead;	/* attempts; failed and dead: failed or lost, by what became of the job */
	int64_t lost;			/* of those two */
	int64_t deferred, released, superseded;
	int64_t first, first_done;	/* jobs whose first attempt ended, and was a success */
	struct share on;		/* against the target: what began, runs, or waits past it */
	struct share burn[BURNS];	/* the same by window */
	int64_t started_ms;		/* the latest start; INT64_MIN: none */
	struct values late;		/* due to start, of the attempts that began */
	struct values run;		/* start to end, of those that ran to it */
};

#define LATE_WHY_MS (INT64_C(60) * 60 * 1000)	/* of claims so far back depends whether there is a worker; who asks why reads as much */

struct ledger_want {
	char *const *queues;		/* none: those with an attempt, something that waits or is claimed, or a target */
	int nqueues;
	char *const *also;		/* names that have a row besides, without queues */
	int nalso;
	bool by_type;
	bool open_only;			/* what waits and is claimed, without the ledger */
	int64_t slack_ms;		/* of ledger_each(); 0: a day */
	bool by_both;			/* types, and each queue as a whole; no values are kept */
	int64_t from_ms, now;		/* attempts that finished from .. now, both included */
	int burn;			/* the longest window of burn rates; 0: none is read */
	int cells;			/* of a trend */
	const int64_t *edges;		/* where the parts of the window begin, ascending; NULL: one.  With parts nothing but the ledger is read */
	int nedges;
};

struct ledger { struct report **rows; int n; };

/*
 * Reads the ledger and what waits into rows, in the order of the operands, then by name and part; a queue that was
 * asked for has one, whatever there is.  No read transaction is longer than a page or an index scan; keeps
 * 16 bytes an attempt of the window.  ledger_free() in any case.
 */
int ledger_read(struct db *, const struct ledger_want *, struct ledger *);
void ledger_free(struct ledger *);

/* The exact percentile (1 to 100), by nearest rank: the least value that so many percent are not above; -1: no values. */
int64_t ledger_rank(const struct values *, int percent);
/* How many values are at most ms. */
size_t ledger_upto(const struct values *, int64_t ms);
/* The percentile of each cell of the window, as ledger_rank(). */
void ledger_trend(const struct values *, int percent, int ncells, int64_t *out);

struct name { const char *p; size_t n; };	/* a foreign program may have written a NUL into it */
struct line {				/* an attempt, as far as reports look at it; borrowed from its row */
	struct name queue, type;
	int64_t id, attempt, due, started, finished;
	const char *outcome;
	bool dead;			/* by it */
};
/*
 * The attempts that finished at from_ms or later, the newest first, and some before them; stops like job_list().  They are in
 * order but for clock steps up to slack_ms.
 */
int ledger_each(struct db *, int64_t from_ms, int64_t slack_ms, int (*each)(const struct line *, void *), void *);
/* Of those that finished at from_ms or later and have a smaller id, about pages * rows, evenly. */
int ledger_sample(struct db *, int64_t from_ms, int64_t before, int pages, int rows, int (*each)(const struct line *, void *), void *arg);

/* ---- alarm.c: what is wrong ------------------------------------------------ */

struct problem {
	const char *kind, *name;	/* "DEAD", "mail": one problem, whatever its numbers are */
	const char *queue;		/* whose it is, or NULL */
	const char *what;		/* one line */
	int64_t since_ms;		/* -1: not known */
	const char *detail, *next;	/* or "" */
};

/* Calls each() for what is wrong in the file or with it, by reading alone; stops like job_list(). */
int alarm_all(struct db *, int64_t now, int (*each)(const struct problem *, void *), void *arg);
/* Has a queue this name, or is anything expected of it?  If not, *near is a queue with a name like it, borrowed until the next call, or "". */
bool alarm_queue(struct db *, const char *queue, const char **near);

/* ---- total.c: counters that only grow, and what was told ------------------- */

enum { TOTAL_BUCKETS = 14, TOTAL_NOUTCOMES = 7, TOTAL_DEAD = 3, TOTAL_LATE = TOTAL_NOUTCOMES, TOTAL_WAIT_MS, TOTAL_RUN_MS, TOTAL_WAIT,
	TOTAL_RUN = TOTAL_WAIT + TOTAL_BUCKETS, TOTAL_NUMBERS = TOTAL_RUN + TOTAL_BUCKETS };
extern const int64_t TOTAL_LE_MS[TOTAL_BUCKETS - 1];	/* the last bucket has the rest */
extern const char *const TOTAL_OUTCOMES[TOTAL_NOUTCOMES];	/* their place is that in total.n */

struct total { struct slo slo; bool changed; int64_t n[TOTAL_NUMBERS]; char queue[]; };
struct totals { struct total **v, *last; int n; int64_t upto, stored; };

/* By queue.  writes: what was not counted before is remembered, in a transaction of its own.  total_free() in any case. */
int total_read(struct db *, bool writes, struct totals *);
void total_free(struct totals *);

/* What told_now() was given last for that id, for the caller to free, and when; NULL: nothing yet, or it failed. */
char *told_last(struct db *, const char *id, int64_t *told_ms);
/* It is being told, in a transaction of its own. */
int told_now(struct db *, const char *id, const char *digest, int64_t now);

/* ---- prom.c ---------------------------------------------------------------- */

int prom_print(FILE *, struct db *, const struct ledger *, const struct totals *);

#endif
