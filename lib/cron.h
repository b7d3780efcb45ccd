/*
 * cron.h - schedules: a table of entries, their slots, and the jobs that they become.
 *
 * cron.c knows nothing of the file: it reads a table and counts slots.  schedule.c turns those that are due into jobs.
 * Slots are whole seconds, given in ms.
 */
#ifndef CRON_H
#define CRON_H

#include "q.h"

#define CRON_NEVER INT64_MAX
#define CRON_KEEP_MAX 1000		/* missed=all:N */

enum cron_kind { CRON_CLOCK, CRON_EVERY, CRON_AFTER };
enum cron_overlap { OVERLAP_SKIP, OVERLAP_ALLOW, OVERLAP_REPLACE };

struct cron {				/* an entry; its texts lie in those of the table */
	int line;
	const char *id, *zone, *queue, *payload;
	char *spec;			/* schedule and zone, in one form */
	enum cron_kind kind;
	enum cron_overlap overlap;
	int64_t step_ms;		/* of @every and @after */
	uint64_t minutes;		/* of clock times: a bit for each that is in it */
	uint32_t hours, days, months, weekdays;
	bool each_hour, by_day, by_weekday;	/* HOUR is *; DOM, DOW is not */
	int keep;			/* of missed slots, the newest so many */
	int64_t late_ms;		/* none that is older; -1: however old */
	int64_t jitter_ms;
	bool twice;			/* set by schedule_pass(): changed, and within 5 minutes before, too */
};

struct cron_table {
	struct cron *list;
	size_t n;
	const char *file;		/* for schedule_pass(): which table it is */
	int64_t ahead_ms;		/* set by it: the last pass, if by the clock that is yet to come, else -1 */
};

/*
 * Takes apart one line of a table, which is changed and kept.  Q_OK; Q_NO: it has no entry; Q_CONFIG: *why says what is wrong
 * (borrowed until the next call); Q_TEMP: no memory.
 */
int cron_parse(char *line, struct cron *, const char **why);

/* All lines of a table of n bytes, text[n] is there.  bad() is told each that is wrong, and the status is then Q_CONFIG. */
int cron_read(char *text, size_t n, struct cron_table *, void (*bad)(int line, const char *why, void *), void *arg);

/*
 * The first slot after an instant, CRON_NEVER if there is none within ten years.  Not for @after.  False: *why, the zone cannot
 * be used any more.  Leaves the zone entered: when_leave().
 */
bool cron_next(const struct cron *, int64_t after_ms, int64_t *slot_ms, const char **why);

/*
 * What a pass at now_ms does with the slots in (mark, now] of an entry that is no @after: *n of them are kept, in at[], and
 * *missed before these are not, from *first on.  False: as cron_next().
 */
bool cron_due(const struct cron *, int64_t mark_ms, int64_t now_ms, int64_t at[CRON_KEEP_MAX], int *n, int64_t *missed, int64_t *first,
    const char **why);

#define CRON_KEY 96			/* bytes */
/* The job of a slot: its key, and when it is due. */
int64_t cron_job(const struct cron *, int64_t slot_ms, char key[CRON_KEY]);

/* ---- schedule.c ---- */

/*
 * One pass: every slot up to now becomes a job, or is dropped as its entry says, in one transaction.  log, if not NULL, gets a
 * line for each thing that is done.  Q_TEMP also: the clock is far from where it was, and force would go on.
 */
int schedule_pass(struct db *, struct cron_table *, int64_t now, bool force, FILE *log);

#endif
