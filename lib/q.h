/*
 * q.h - libq: everything two programs share.
 *
 * Status: functions that can fail return an enum q_status; the message of a
 * failure that concerns the file is kept in its handle (db_message).  Nothing
 * declared here exits or prints, because qwork and qhook must survive a busy
 * file; lib/prog.h is the layer that turns a status into a message and an exit.
 * Time: int64_t milliseconds since 1970 UTC ("ms"), only from when_now();
 * leases alone use the boot clock.  Sizes are bytes.
 * Memory: "borrowed" pointers belong to libq and live until the call named
 * beside them; what the caller must free is said where it is returned.
 */
#ifndef Q_H
#define Q_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "db.h"

#define Q_VERSION "0.1.0"

/* Also the exit status of every program; q(7) tells people what each means. */
enum q_status {
	Q_OK = 0,
	Q_NO = 1,		/* a clean no */
	Q_USAGE = 64,
	Q_DATA = 65,		/* bad input; nothing was stored */
	Q_NOINPUT = 66,		/* no such file, job */
	Q_UNKNOWN = 69,		/* may have happened */
	Q_BUG = 70,
	Q_CREATE = 73,
	Q_IO = 74,		/* disk, damage, output not written; nothing happened */
	Q_TEMP = 75,		/* not now */
	Q_LOST = 76,		/* the claim is somebody else's */
	Q_PERM = 77,
	Q_CONFIG = 78
};

/* ---- when.c: durations, instants, zones, clocks -------------------------- */

#define WHEN_MAX INT64_C(253402300799999)	/* 9999-12-31T23:59:59.999Z */
#define WHEN_TEXT 32				/* bytes that when_text() needs */

/* The wall clock in ms.  Q_NOW (RFC 3339) freezes it; a bad Q_NOW gives -1. */
int64_t when_now(void);

/*
 * The boot clock: ms since boot, suspended time included, unmoved by clock steps;
 * id names the boot ("" where the system has none).  Q_BOOT=ID:MS replaces both.
 * Returns ms, or -1: cannot tell (a bad Q_BOOT, no such clock, a boot id that cannot be read).
 */
int64_t when_boot(char id[40]);

/* ms on a clock that no step of the wall clock moves and no variable freezes: for waiting. */
int64_t when_elapsed(void);

/*
 * From now on a call that blocks is interrupted (EINTR, or a part done) every ms, until when_nudge(0): for
 * calls that know no time limit.  Uses SIGRTMIN, so that an alarm(2) of the caller's stays as it is.
 */
void when_nudge(int64_t ms);

/*
 * "500ms", "10s", "1h30m", "2d", "1w": parts from the largest unit to the smallest,
 * each at most once, whole numbers; a bare "0" is allowed, no other bare number.
 * At most 3650d.  False: *why says what is wrong (a constant).
 */
bool when_duration(const char *s, int64_t *ms, const char **why);

/* "5s..10m": two durations, the second not smaller and not 0.  False: *why. */
bool when_range(const char *s, int64_t *from, int64_t *to, const char **why);

/*
 * One instant, in ms: RFC 3339 (blank or T; seconds and fraction optional), "@SECONDS[.fff]",
 * "now", "+DUR" (after base); and with a zone (an IANA name, else NULL) also
 * "YYYY-MM-DD HH:MM[:SS]", "today HH:MM", "tomorrow HH:MM" (today is base's date in the zone).
 * A local time without a zone is refused.  A local time that a clock change skips is refused; one that
 * comes twice is the first of the two.  False: *why says what is wrong (a constant).
 */
bool when_instant(const char *s, const char *zone, int64_t base, int64_t *ms, const char **why);

/*
 * When a job is due: base + in, or `at`.  at as in when_instant() (then in must be 0), or "HH:MM":
 * the date of base+in in the zone at that time, the next day if that is already past; a minute
 * that a clock change skips is the first one after it.  jitter_ms and share (0 <= share < 1) add
 * share*jitter_ms at the end.  NULL at: base + in.
 */
struct when_due {
	int64_t base, in, jitter_ms;
	const char *at, *zone;
	double share;
};
bool when_due(const struct when_due *, int64_t *ms, const char **why);

/* Is this a zone the system knows ("Europe/Berlin", "UTC")?  False: *why. */
bool when_zone(const char *zone, const char **why);

/*
 * A zone for many calls: until when_leave(), or another zone, the two functions after it are about it.  To enter it again costs
 * nothing.  False: *why.
 */
bool when_enter(const char *zone, const char **why);
void when_leave(void);
/*
 * What the wall shows at an instant, and the first instant at which it shows that or, if a clock change skips it, more.  Both in
 * seconds since 1970; those of the wall as if it were UTC.
 */
int64_t when_wall(int64_t sec);
int64_t when_shown(int64_t local);

/* "2026-06-02T12:01:00Z" (whole seconds) or, with millis, "...:00.123Z", into buf; returns buf. */
char *when_text(char buf[WHEN_TEXT], int64_t ms, bool millis);

/* "2026-06-02T14:01:00+02:00" in a zone that when_zone() knows, into buf; returns buf. */
char *when_local(char buf[WHEN_TEXT], int64_t ms, const char *zone);

/*
 * Where the hours or days of a zone begin from `from` on and before `to`: from itself, then each midnight, or each hour on the way
 * to it.  At most max; returns how many there would be.
 */
int when_edges(int64_t from, int64_t to, const char *zone, bool hours, int64_t *edges, int max);

/* "in 2d3h", "4m12s ago", "now": two units at most, for people; returns buf. */
char *when_relative(char buf[WHEN_TEXT], int64_t ms, int64_t now);

/* "1m30s", "250ms": a duration for people and messages, exact; returns buf. */
char *when_span(char buf[WHEN_TEXT], int64_t ms);

/* "350ms", "2.5s", "42s", "1m03s", "2h05m", "3d04h", "120d": for a column of a table, the rest cut off, ms >= 0; returns buf. */
char *when_brief(char buf[WHEN_TEXT], int64_t ms);

/* ---- text.c: names, numbers, UTF-8, escaping ----------------------------- */

bool text_utf8(const void *, size_t);		/* valid UTF-8 (RFC 3629), NUL allowed */
bool text_queue(const char *);			/* [A-Za-z0-9_][A-Za-z0-9._-]{0,63}, not all digits */
bool text_repeated(char *const *words, int i);	/* does words[i] stand before i, too? */
const char *text_name_fault(const char *);	/* type, key, entity: NULL, or what is wrong: empty, over 255 bytes, control bytes, not UTF-8 */
bool text_int(const char *, int64_t lo, int64_t hi, int64_t *);	/* decimal digits only */

/*
 * A stream into memory: as open_memstream(3), whose loss of what memory ran out for nobody is told; here fclose(3) fails, and
 * *text, which the caller frees in any case, and *len are good only after it.
 */
FILE *text_memory(char **text, size_t *len);

/* JSON: a string literal; bytes that are not UTF-8 become U+FFFD. */
void text_json(FILE *, const char *, size_t);
/* JSON members behind another: ,"name":VALUE; NULL and -1 are null; a time is ,"name_at":TEXT,"name_ms":NUMBER. */
void text_json_text(FILE *, const char *name, const char *);
void text_json_int(FILE *, const char *name, int64_t);
void text_json_time(FILE *, const char *name, int64_t ms);

/*
 * JSON member(s) for bytes that may be anything: "name":VALUE where a JSON object or array
 * appears as itself on one line with its literals untouched, other UTF-8 text as a string, and
 * other bytes as "name_base64".  NULL p gives null.  JSON that common readers refuse (deeper than
 * 200, 1e999, half a surrogate pair) is text, so that one payload cannot stop a pipe into jq.
 */
void text_json_bytes(FILE *, const char *name, const void *p, size_t n);

/* Is it one JSON text (any value)? */
bool text_is_json(const void *, size_t);

/*
 * For people: control bytes, bidi marks, invisible characters and broken UTF-8 made visible as
 * \xNN or \u{NNNN}; cut to at most `width` columns, "..." included, if width > 0.  Returns the columns used.
 */
int text_show(FILE *, const void *, size_t, int width);

/* One TSV field: tab, newline, carriage return, backslash as \t \n \r \\; each byte of what text_show() makes visible as \xNN. */
void text_tsv(FILE *, const void *, size_t);

/* Edit distance search: the nearest of `names` (NULL-terminated), or NULL if none is near. */
const char *text_nearest(const char *word, const char *const *names);

/* ---- job.c, claim.c: every state transition, once --------------------------------- */

#define JOB_PAYLOAD_MAX (1 << 20)	/* bytes */
#define JOB_EVENT_MAX (25 << 20)	/* likewise, of a webhook */
#define JOB_LEASE_MS (5 * 60 * 1000)	/* default lease */
#define JOB_ATTEMPTS 20	/* default retry policy: about an hour in all */
#define JOB_CLAIM_MAX 10000		/* jobs in one claim */
#define JOB_ID_MAX ((INT64_C(1) << 53) - 1)	/* what a JSON reader that knows only doubles still tells apart */
#define JOB_CLAIM_TEXT 64		/* bytes that claim_text() needs */

enum job_dup { DUP_KEEP, DUP_STRICT, DUP_REPLACE };

struct job_new {			/* absent text is NULL, absent number -1 */
	const char *queue, *type, *key, *entity, *zone;
	int64_t priority;		/* 0 to 9, smaller first */
	int64_t due_ms, event_ms;	/* event_ms -1: the due time */
	int64_t attempts, window_ms, base_ms, cap_ms;	/* retry policy of its own */
	const void *payload;
	size_t payload_len;
	size_t payload_max;		/* 0: JOB_PAYLOAD_MAX */
	enum job_dup dup;
};

enum job_added { ADD_NEW, ADD_KNOWN, ADD_DIFFERS, ADD_REPLACED };	/* DIFFERS: known, other payload */

/* Add one job, inside db_begin()..db_commit().  Q_DATA: refused (strict, names, size). */
int job_add(struct db *, const struct job_new *, int64_t now, int64_t *id, enum job_added *);

/* What job_add() would do and say, by reading alone; *id 0: a new job. */
int job_plan(struct db *, const struct job_new *, int64_t now, int64_t *id, enum job_added *);

/* The part of it that looks at the job alone: names, numbers, sizes.  Q_DATA. */
int job_check(struct db *, const struct job_new *);

/* A claim: the word that people and scripts hold, "ID.FENCE.NONCE" (nonce: 8 hex digits). */
struct claim { int64_t id, fence, nonce; };
bool claim_parse(const char *, struct claim *);		/* both in record.c */
char *claim_text(char buf[JOB_CLAIM_TEXT], const struct claim *);

struct job_dead { int n; int64_t id[16]; };	/* n may be more than are named */

struct job_want {			/* what to claim */
	char *const *queues;
	int nqueues;
	const char *type;		/* NULL: any */
	int64_t lease_ms;
	const char *worker;
	int n;				/* at most this many, <= JOB_CLAIM_MAX */
	bool more;			/* set by job_claim(): it stopped early; ask again before you say that nothing is there */
	struct job_dead *dead;		/* adds the jobs whose claim was lost once too often; or NULL */
};

/*
 * Take due jobs in the order priority (aged where that is set), due time, id, as far as pause, rates and
 * concurrency let them through; first take back the claims whose lease is over.  Inside db_begin()..db_commit(): the claims hold only after db_commit() said Q_OK.
 */
int job_claim(struct db *, struct job_want *, int64_t now, struct claim *, int *got);

/*
 * Begin a run (qjob): take back the claims of new->queue whose lease is over; then, unless a job of that queue and
 * type is claimed or the queue is paused (Q_NO), add this one, due by now and without key or entity, and claim it,
 * whatever rates and concurrency say.  Of want lease_ms, worker and dead count.  Inside db_begin()..db_commit().
 */
int job_start(struct db *, const struct job_new *, const struct job_want *, int64_t now, struct claim *);

/*
 * When the next job of these queues can become claimable by itself (due time, end of a lease or a lock, rate), as a wall ms;
 * INT64_MAX: not by time.  *limited: something is due and waits only for its rate; NULL: do not care.
 */
int job_next(struct db *, const struct job_want *, int64_t now, int64_t *at, bool *limited);

/* The claim's lease ends lease_ms from now on the boot clock.  Q_LOST: not held any more. */
int job_renew(struct db *, const struct claim *, int64_t lease_ms);

enum job_outcome { OUT_DONE, OUT_FAILED, OUT_DEFERRED, OUT_RELEASED, OUT_LOST };

struct job_settle {
	enum job_outcome outcome;
	bool dead;			/* OUT_FAILED: no retry */
	int64_t due_ms;			/* next due time if failed or deferred; -1: by the backoff */
	int64_t count;			/* what the run produced; -1: not said */
	int exit, signal;		/* of the handler; -1: none */
	const char *reason;		/* or NULL */
	const void *result;		/* or NULL */
	size_t result_len;
};

/*
 * Settle a claim, inside db_begin()..db_commit().  Settling again with the token that settled
 * it, to the same outcome, is Q_OK.  Q_LOST: stale, nothing changed; db_message() says why.
 * *state, if not NULL, is set to the state the job is in now (a constant).
 */
int job_settle(struct db *, const struct claim *, const struct job_settle *, int64_t now, const char **state);

/*
 * Cancel a job that is not running: pending, failed or dead.  Q_OK: it is cancelled (*was: what it was before, a
 * constant; "cancelled" if it was that already); Q_NO: too late, it is claimed or done; Q_NOINPUT: no such job.
 */
int job_cancel(struct db *, int64_t id, int64_t now, const char **was);

/* Cancel the dead jobs of a queue and type, the oldest first, at most so many. */
int job_cancel_dead(struct db *, const char *queue, const char *type, int most, int64_t now);

/*
 * Put a dead, done or cancelled job back: pending, due at due_ms, one generation on, its attempts unspent.
 * Q_NO: it is live, or its key belongs to a later job; Q_NOINPUT: no such job.
 */
int job_replay(struct db *, int64_t id, int64_t due_ms);
/* What job_replay() would say, by reading alone. */
int job_replayable(struct db *, int64_t id);

/* What can change between choosing a job and doing something to it.  Q_NOINPUT: no such job. */
struct job_look { const char *state; int64_t generation; char queue[65]; };	/* state: a constant */
int job_look(struct db *, int64_t id, struct job_look *);

/*
 * The jobs of a queue that a replay with a pace has left: how many are due after now and were not tried since their replay,
 * and when the last of them is due.
 */
int job_paced(struct db *, const char *queue, int64_t now, int64_t *n, int64_t *last_ms);

/*
 * What keeps the claimable jobs of a queue from being claimed now, by reading alone: it is paused, the entities of all of them are
 * locked, its rate or a shared one has no token or is blocked, or all places under a concurrency are taken.
 */
enum job_held { HELD_NOT, HELD_PAUSED, HELD_LOCK, HELD_RATE, HELD_BUSY };
int job_held(struct db *, const char *queue, int64_t now, enum job_held *);

/* The job that holds a key.  Q_NOINPUT: none. */
int job_of_key(struct db *, const char *queue, const char *key, int64_t *id);

/* Calls each(id) for the unfinished jobs of an entity, in their order.  Stops like job_list(). */
int job_of_entity(struct db *, const char *queue, const char *entity, int (*each)(int64_t id, void *), void *);

/* ---- rate.c: token buckets, shared by all processes through the file ------ */

struct rate { int64_t period_us, burst; };	/* one token every period, at most burst at once; period 0: only blocks limit it */

/* "10/s", "600/m+20", "1/90s": how many in what time, and +BURST (default 1).  False: *why, a constant. */
bool rate_parse(const char *, struct rate *, const char **why);

/*
 * How many tokens the bucket (kind "queue" or "rate", and its name) has now (boot: the boot clock, now: the wall,
 * ms), and *at: the wall ms at which there will be one, if there is none now.
 */
int rate_look(struct db *, const char *kind, const char *name, const struct rate *, int64_t boot, int64_t now, int64_t *n, int64_t *at);
/* Take n of them, inside the transaction that looked. */
int rate_take(struct db *, const char *kind, const char *name, const struct rate *, int64_t boot, int64_t n);
/* The bucket is full now; a block stays. */
int rate_refill(struct db *, const char *kind, const char *name);
/* At the first claim after a boot: all buckets are full. */
int rate_reboot(struct db *);

/*
 * Nobody takes a token or a new place of rate.NAME before until_ms (wall; more than 10 years ahead is 10 years); a longer
 * block stays.  Both inside db_begin()..db_commit().
 */
int rate_block(struct db *, const char *name, int64_t until_ms);
int rate_unblock(struct db *, const char *name);
/* The shared rates that are blocked now, by name; stops like job_list(). */
int rate_blocks(struct db *, int64_t now, int (*each)(const char *name, int64_t until_ms, void *), void *);

/*
 * Who takes tokens of rate.NAME and is no claim: qrate, qpoll, qbackfill, qcall.  With a concurrency it also holds a
 * place under it, from the first token to rate_leave(), as long as it asks within lease_ms.
 */
struct rate_user {
	const char *name, *worker;
	int64_t lease_ms, fence;	/* fence: of its place; 0: no place held */
	int64_t reserve;		/* this many tokens must stay in the bucket, for others */
	bool first;			/* while it waits (asks within 2 s of *at) nobody with a reserve is let through */
	bool crowded;			/* set: all places are taken, and *at is when the first lease would end; mostly one is free sooner */
	int64_t place_end, mark, mark_end;	/* rate_try()'s own, 0 at first: ends of leases (boot ms), fence of the waiting mark */
};
/*
 * Take a token, in a transaction of its own.  Q_NO: there is none before *at (wall ms), unless something in the file
 * changes; then mostly nothing was written, nor waited for.  Q_CONFIG: rate.NAME is not set, nor its concurrency.
 */
int rate_try(struct db *, struct rate_user *, int64_t now, int64_t *at);
/* Give back what it holds, in a transaction of its own. */
int rate_leave(struct db *, struct rate_user *);
/*
 * Its place, if it holds one, lasts lease_ms from now, inside db_begin()..db_commit().  *late: its lease was over; it has
 * one again, whoever has come meanwhile, so that no more come.
 */
int rate_renew(struct db *, struct rate_user *, int64_t now, bool *late);
/* Q_CONFIG: rate.NAME is not set, nor its concurrency. */
int rate_known(struct db *, const char *name);
int rate_burst(struct db *, const char *name, int64_t *burst);	/* also that; 0: it has a concurrency alone */

/* ---- hold.c: leases on names, with a fence that never goes back ----------- */

/*
 * Kinds: "lock", "once", "rate", "poll", "backfill" (lib/schema.sql).  All inside db_begin()..db_commit(), leases in ms on the boot clock.
 * hold_take() asks nobody: the caller has counted.
 */
int hold_take(struct db *, const char *kind, const char *name, int64_t lease_ms, const char *worker, int64_t now, int64_t *fence);
int hold_renew(struct db *, const char *kind, const char *name, int64_t fence, int64_t lease_ms);	/* Q_LOST: its lease is over */
int hold_end(struct db *, const char *kind, const char *name, int64_t fence);	/* Q_NO: it was over */
/* How many are live; boot: the boot clock now. */
int64_t hold_count(struct db *, const char *kind, const char *name, int64_t boot);
int64_t hold_next_end(struct db *, const char *kind, const char *name, int64_t boot);	/* of the live ones, boot ms; -1: none */
int hold_reboot(struct db *);	/* at the first claim after a boot */

/* ---- lock.c: locks on names ----------------------------------------------- */

/*
 * A lock is a hold of the kind "lock".  It and the claims of jobs whose entity has its name, in whatever queue, keep each
 * other out; but for the claim that it is taken under, so that a job can lock its own entity.
 */
struct lock {
	const char *name, *worker;	/* as text_name_fault() wants it */
	int64_t lease_ms;
	struct claim inside;		/* the claim it is taken under; id 0: none */
	struct job_dead *dead;		/* adds what lock_take() found lost once too often; or NULL */
	int64_t fence;			/* set by lock_take() */
};
struct lock_held { const char *name, *worker; int64_t fence, since_ms, left_ms; };	/* left_ms: of its lease */

/* By reading alone: could it be taken now?  Q_NO: no, for *left ms if nothing happens. */
int lock_look(struct db *, const struct lock *, int64_t *left);
/*
 * All inside db_begin()..db_commit(), and good only after db_commit() said Q_OK.  lock_take() takes back the claims of its
 * entity whose lease is over, first; Q_NO: not free, commit all the same.  Renew, release: Q_LOST: it was over, or broken.
 */
int lock_take(struct db *, struct lock *, int64_t now);
int lock_renew(struct db *, const struct lock *);
int lock_release(struct db *, const struct lock *);
/* Ends it, whoever has it: *h, borrowed until the next call, says who had.  Q_NO: nobody. */
int lock_break(struct db *, const char *name, struct lock_held *h);

/* Sets inside from $Q_CLAIM, if there is one in it. */
void lock_inside(struct lock *);

/*
 * $Q_LOCKS: the fences of the locks of this file under which a command runs.  lock_env() writes what the command of a lock finds,
 * "NAME=VALUE" NUL each; lock_around(): is `name` locked by one of them, so that who waits for it waits for itself?  Q_NO.
 */
void lock_env(struct db *, const struct lock *, FILE *);
int lock_around(struct db *, const char *name);
/* The same by fence, and $Q_LOCKS alone: qonce puts the fence of its run there, too. */
bool lock_under(struct db *, int64_t fence);
void lock_env_fences(struct db *, int64_t fence, FILE *);

/* Is this the fence of who has it now?  Q_NO. */
int lock_check(struct db *, const char *name, int64_t fence);
/* Who has it, borrowed until the next call.  Q_NO: nobody. */
int lock_holder(struct db *, const char *name, struct lock_held *);
/* All locks, by name, each borrowed until the next.  Stops like job_list(). */
int lock_each(struct db *, int (*each)(const struct lock_held *, void *), void *);

/* ---- once.c: what is to happen once a key ----------------------------------- */

enum once_state {
	ONCE_ABSENT,
	ONCE_RUNNING,
	ONCE_UNKNOWN,		/* it was started, and nobody knows whether it happened */
	ONCE_DONE,
	ONCE_FAILED		/* it did not happen, and may be tried again */
};
#define ONCE_OUTPUT_MAX (64 * 1024)	/* bytes that are remembered */

struct once {			/* absent text is NULL, absent number -1 */
	const char *key;
	enum once_state state;
	int64_t fence, runs, started_ms, finished_ms, left_ms;	/* left_ms: of the lease */
	int64_t exit, output_total;
	const char *worker, *reason;
	const void *output;
	size_t output_len;
};

/* How things stand with a key, by reading alone; borrowed until the next call of any of these. */
int once_look(struct db *, const char *key, struct once *);
/* Those that run or are unknown, by key, each borrowed until the next.  Stops like job_list(). */
int once_each(struct db *, int (*each)(const struct once *, void *), void *);

const char *once_word(const struct once *);	/* "running": its state */
void once_print(FILE *, const struct once *, int64_t now);	/* all of it as one line of JSON */

/*
 * The rest inside db_begin()..db_commit(), when the file has its table (db_tables(FOR_QONCE)).  once_start() begins a run, if nothing
 * has changed since *seen (its state and fence); else Q_NO.
 */
int once_start(struct db *, const struct once *seen, int64_t lease_ms, const char *worker, int64_t now, int64_t *fence);
int once_renew(struct db *, const char *key, int64_t fence, int64_t lease_ms);	/* Q_LOST: its lease is over */
/* Ends a run, also when its lease is over.  Q_LOST: another run or a decision came after it. */
struct once_end {
	enum once_state state;	/* done, failed or unknown */
	int64_t exit, output_total;
	const char *reason;
	const void *output;
	size_t output_len;
};
int once_end(struct db *, const char *key, int64_t fence, const struct once_end *, int64_t now);
/* What somebody found out: it is done; it is as if it had never been started.  Q_NO: it runs.  Q_NOINPUT: no such key. */
int once_happened(struct db *, const char *key, const char *worker, int64_t now);
int once_forget(struct db *, const char *key);

/* ---- setting.c: what people set (qset, qpause) ---------------------------- */

#define SETTING_NAME 330	/* bytes: a queue, a slash, a type */
#define SETTING_TEXT 400	/* bytes that setting_text() needs */
#define SETTING_KEEP_MS (INT64_C(30) * 24 * 60 * 60 * 1000)	/* keep_ms where nothing is set */

/* "queue.mail/reset.slo" is kind "queue", name "mail/reset", field "slo"; "rate.partner" has the field "". */
struct setting { char kind[16], name[SETTING_NAME], field[16]; };

/* Take a name apart.  Q_DATA: not the name of a setting; the message has the nearest one that is. */
int setting_parse(struct db *, const char *text, struct setting *);
char *setting_text(char buf[SETTING_TEXT], const struct setting *);

/* Is it a value for it, or ""?  Q_DATA: the message says what would be. */
int setting_value(struct db *, const struct setting *, const char *value);
/* Set, or unset with "", inside db_begin()..db_commit().  Q_DATA as setting_value(). */
int setting_put(struct db *, const struct setting *, const char *value, int64_t now);
/* After the last setting_put(), for each that was put: does it fit the others?  Q_DATA: dead_to in a circle, a limit of no rate. */
int setting_check(struct db *, const struct setting *);

/* Value and time of one setting, borrowed until the next call.  Q_NO: not set. */
int setting_get(struct db *, const struct setting *, const char **value, int64_t *set_ms);
/* All of them, by name. */
int setting_each(struct db *, int (*each)(const struct setting *, const char *value, int64_t set_ms, void *), void *);

/*
 * A pause is a setting (field "paused", value the reason) that only qpause writes; queue "" is every queue.  reason NULL:
 * resume.  A pause that is there gets the new reason and keeps its time.
 */
int setting_pause(struct db *, const char *queue, const char *reason, int64_t now);

struct queue_set {		/* what is set for a queue; absent numbers -1, absent text "" */
	bool paused, skip_stale;	/* paused: itself, or all */
	struct rate rate;
	int64_t concurrency, age_ms, attempts, base_ms, cap_ms, window_ms;
	int64_t keys_ms;	/* how long keys are remembered: 0 until settled, INT64_MAX for ever */
	int64_t keep_ms;	/* how long done and cancelled jobs are kept, INT64_MAX for ever */
	char limit[65], dead_to[65];
};
struct slo;			/* late.h */
/* The target of a queue, or of a type in it ("QUEUE/TYPE").  Q_NO: none. */
int setting_slo(struct db *, const char *name, struct slo *);
/* Read once for each transaction.  Borrowed until the next call. */
const struct queue_set *setting_queue(struct db *, const char *queue);

/* ---- list.c: reading jobs ------------------------------------------------ */

struct job {				/* absent text is NULL, absent number -1 */
	int64_t id, fence, nonce, priority, spent, generation;
	int64_t added_ms, due_ms, event_ms, claimed_ms, settled_ms;
	int64_t attempts, base_ms, cap_ms, window_ms;	/* retry policy of its own */
	int64_t lease_ms;		/* end of the lease on the boot clock, while claimed; 0 after a boot */
	int64_t exit, signal, count, blocked_by;
	const char *queue, *type, *key, *entity, *state, *zone, *worker, *outcome, *reason;
	const void *result, *payload;
	size_t result_len, payload_len;
};

/* One job whole; what it points to is borrowed until the next job_get().  Q_NOINPUT: no such id. */
int job_get(struct db *, int64_t id, struct job *);

/* The job record (q(7)) as one line of JSON; of a claimed job with its claim word. */
void job_print(FILE *, const struct job *);
/* The same without the closing brace, for more members. */
void job_print_open(FILE *, const struct job *);

/* One attempt of the ledger; borrowed like struct job until the next callback. */
struct attempt {
	int64_t generation, attempt, fence, due_ms, started_ms, finished_ms, exit, signal, count;
	const char *outcome, *state, *zone, *worker, *reason;
	const void *result;
	size_t result_len;
};
/* One attempt as a JSON object, no newline. */
void attempt_print(FILE *, const struct attempt *);
/* All attempts of a job, the newest first. */
int job_attempts(struct db *, int64_t id, int (*each)(const struct attempt *, void *), void *);
/* The attempt in which a claim was settled by whoever holds its word; false: it was not, or it was lost. */
bool job_settled(struct db *, const struct claim *, struct attempt *);

enum { ST_PENDING = 1, ST_CLAIMED = 2, ST_FAILED = 4, ST_DONE = 8, ST_DEAD = 16, ST_CANCELLED = 32,
	ST_OPEN = ST_PENDING | ST_CLAIMED | ST_FAILED, ST_ALL = 63 };

struct job_filter {			/* NULL, 0, -1: any */
	char *const *queues;
	int nqueues;
	unsigned states;
	const char *type, *key, *entity, *reason;	/* reason: a part of it */
	int64_t older_ms, newer_ms;	/* added before, at or after */
};
bool job_state(const char *word, unsigned *states);	/* "dead", "open", "all", "failed,dead" */

/*
 * Calls each(id) for the jobs that match: claimed, then claimable in claim order, then blocked, then
 * finished by id.  Constant memory, no read transaction longer than a page, so a job that moves
 * while the list runs can be met twice or not at all.  Stops when each() returns non-zero and returns that.
 */
int job_list(struct db *, const struct job_filter *, int (*each)(int64_t id, void *), void *);

struct job_count { const char *queue; int64_t pending, claimed, failed, done, dead, cancelled, blocked; };
/* Has this queue a job, or had it one, or is anything but a pause set for it? */
int job_queue_known(struct db *, const char *queue, bool *known);
/* Per queue, by name; blocked counts again those pending or failed jobs that wait for their entity. */
int job_counts(struct db *, int (*each)(const struct job_count *, void *), void *);

/* ---- read.c: records from a stream --------------------------------------- */

/*
 * Records up to a delimiter (or the whole stream, delim -1: exactly one record, perhaps empty),
 * each at most max bytes, buffer reused.
 */
struct reader {
	int fd, delim;
	size_t max, start, end, cap;
	int64_t number;			/* of the last record, from 1 */
	bool eof, terminated;		/* terminated: the last record had its delimiter */
	bool skip;			/* the rest of a record that was too long comes next */
	char *buf;
};
void reader_init(struct reader *, int fd, int delim, size_t max);
/*
 * Q_OK with the record (borrowed until the next call), Q_NO at the end, Q_DATA once for a record that is
 * too long, Q_IO (errno says why), Q_TEMP (interrupted).  After Q_DATA and Q_TEMP reading can go on.
 */
int reader_next(struct reader *, char **rec, size_t *n);

/* ---- spool.c: jobs read and not yet added -------------------------------- */

int spool_file(void);			/* an unnamed file in $TMPDIR or /tmp; -1 with errno */
struct spool { FILE *f; char *buf; size_t cap; };
int spool_open(struct spool *);		/* Q_CREATE with errno */
/* Appends a job and where it came from; failures show at spool_rewind(). */
void spool_put(struct spool *, const struct job_new *, int64_t line);
/* To the start: for reading what was put, or, after that, for the next batch.  Q_IO with errno. */
int spool_rewind(struct spool *);
/* The next job, borrowed until the next call.  The caller knows how many there are: the end is Q_IO. */
int spool_get(struct spool *, struct job_new *, int64_t *line);

/* ---- record.c: a job from a JSON record (qadd --jsonl) ------------------- */

/*
 * Reads one job record into *job (queue, type, key, entity, priority, payload, times; the rest is
 * ignored).  Values already in *job are the defaults, except that a queue already there wins.  A payload
 * that is a string gives the string's bytes; an object, array, number, true or false keeps its own.
 * Names are not checked beyond their type: job_add() does.  A name given twice is refused.
 * Borrowed until the next call or until text changes.  False: *why, a constant or valid until the next call.
 */
bool record_parse(const char *text, size_t n, int64_t now, struct job_new *job, const char **why);

/* The share of its jitter that a job takes (0 <= share < 1): fixed by its queue and key, so that a repeated add agrees; random if key is NULL. */
double job_share(const char *queue, const char *key);

/* The claim in a line that is either a claim word or a job record; ids likewise. */
bool record_claim(const char *line, size_t n, struct claim *);
bool record_id(const char *line, size_t n, int64_t *id);

#endif
