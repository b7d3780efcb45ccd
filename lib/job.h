/* job.h - what job.c and claim.c share; see q.h for what they offer */
#ifndef JOB_H
#define JOB_H

#include "q.h"

/* The boot clock in ms; at the first claim after a boot all earlier leases end at once.  -1: failed. */
int64_t job_boot(struct db *);

/* After anything that changes who is first of an entity (NULL: none). */
void job_entity_order(struct db *, const char *queue, const char *entity);

/* Settle a claim whose lease is over as lost; *dead, if not NULL, gets the job if it is dead now. */
void job_take_back(struct db *, const struct claim *, int64_t now, struct job_dead *dead);

/* Is any name locked?  boot: the boot clock now. */
bool lock_any(struct db *, int64_t boot);

uint64_t job_random(void);

#endif
