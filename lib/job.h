/* job.h - what job.c and claim.c share; see q.h for what they offer */
#ifndef JOB_H
#define JOB_H

#include "q.h"

/* The boot clock in ms, and which boot it is of, without a look at the file.  -1: failed. */
int64_t job_clock(struct db *, char id[40]);
/* The boot clock in ms; at the first claim after a boot all earlier leases end at once.  -1: failed. */
int64_t job_boot(struct db *);
/* The same by reading alone; *rebooted: job_boot() would end them now. */
int64_t job_boot_look(struct db *, bool *rebooted);

/*
 * How many places of rate.NAME.concurrency are in use, of claims and of holds, counted up to `most`.  w not NULL: claims
 * whose lease is over are taken back before; *more: there may be more of them.
 */
int64_t job_places(struct db *, const char *name, int64_t most, int64_t boot, int64_t now, const struct job_want *, bool *more);
/* When the first lease on one of them ends, on the boot clock; INT64_MAX: none is in use. */
int64_t job_places_end(struct db *, const char *name, int64_t boot);

/* After anything that changes who is first of an entity (NULL: none). */
void job_entity_order(struct db *, const char *queue, const char *entity);

/* Settle a claim whose lease is over as lost; *dead, if not NULL, gets the job if it is dead now. */
void job_take_back(struct db *, const struct claim *, int64_t now, struct job_dead *dead);

/* Is any name locked?  boot: the boot clock now. */
bool lock_any(struct db *, int64_t boot);

uint64_t job_random(void);

/* The statements of every add, claim and settlement, each with its name, for qcheck; ends with a NULL name. */
struct hot { const char *name, *sql; };
extern const struct hot job_hot[], claim_hot[];

#endif
