/* job.h - what job.c and claim.c share; see q.h for what they offer */
#ifndef JOB_H
#define JOB_H

#include "q.h"

/* The boot clock in ms; at the first claim after a boot all earlier leases end at once.  -1: failed. */
int64_t job_boot(struct db *);

/* After anything that changes who is first of an entity (NULL: none). */
void job_entity_order(struct db *, const char *queue, const char *entity);

uint64_t job_random(void);

#endif
