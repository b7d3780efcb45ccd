/*
 * client.c - a worker for the storms: adds, claims, renews, settles and abandons jobs at random, and writes
 * down what it asked for and what it was told, for t/storm/check to judge.
 *
 * The history is one line before each request and one after the answer, each in one write(2), so that a
 * worker killed at any instant leaves at most its last line torn.  A request without an answer may have
 * happened or not.  Times are microseconds of the boot clock, the clock of the leases.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "q.h"

static const char USAGE[] =
"usage: client [-x] [-d FILE] [-H DIR] [-w NAME] [-s SEED] [-n TOTAL] [-l LEASE]\n"
"              [-k PERCENT] [-p PERCENT] [-m mixed|add|claim|drain]\n"
"  -n TOTAL    stop when all workers of DIR together have made so many requests\n"
"  -l LEASE    of the claims, in ms\n"
"  -x          through the programs, found in PATH, and not through libq\n"
"  -k PERCENT  of the programs are killed at some instant\n"
"  -p PERCENT  of the claims: stop the worker itself (SIGSTOP), settle late\n";

enum {
	UNANSWERED = -1,
	HELD_MAX = 40, OLD_MAX = 32, BATCH_MAX = 20,
	TEXT = 96,			/* bytes of a token, key or entity */
	NEAR = 8			/* keys and entities in use at a time */
};

struct work {				/* a job to add */
	char token[TEXT], key[TEXT], entity[TEXT], *payload;
	struct job_new job;
	int64_t id;
	char how[10];
};

struct held {				/* a claim, and how it is to be settled */
	struct claim claim;
	enum job_outcome outcome;
	bool dead;
	int status;
	char state[12];
};

static const char *const OUT[] = { "done", "failed", "deferred", "released" };
static char q0[] = "q0", q1[] = "q1", q2[] = "q2", *const QUEUES[] = { q0, q1, q2 };

static const char *name = "w", *file, *mix = "mixed";
static uint64_t rng = 1;
static int64_t lease = 100, total = 1000, seq;
static int kill_percent, stop_percent, history = -1;
static bool programs;
static int64_t *counter;		/* requests of all workers, a shared page */
static volatile sig_atomic_t asked_to_end;
static struct db *db;

static struct held held[HELD_MAX], old[OLD_MAX];	/* old: settled or abandoned */
static int nheld, nold;

static void
die(const char *what)
{
	fprintf(stderr, "client %s: %s: %s\n", name, what, errno != 0 ? strerror(errno) : "");
	exit(2);
}

static uint64_t
rnd(uint64_t below)
{
	rng ^= rng >> 12;
	rng ^= rng << 25;
	rng ^= rng >> 27;
	return rng * UINT64_C(2685821657736338717) / 7 % below;
}

static bool
percent(int p)
{
	return (int)rnd(100) < p;
}

/* ---- the history ---- */

static char out[256 * 1024], err[64 * 1024];	/* what the last program said */

static char line[64 * 1024];
static size_t used;

static void put(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void
put(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	used += (size_t)vsnprintf(line + used, sizeof line - used, fmt, ap);
	va_end(ap);
	if (used >= sizeof line)
		die("history line too long");
}

static void
write_down(void)
{
	put("\n");
	if (write(history, line, used) != (ssize_t)used)
		die("history");
	used = 0;
}

static int64_t
boot_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void
ask(const char *kind)
{
	put("i\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%s", ++seq, boot_us(), when_now(), kind);
}

static void
answer(int status)
{
	put("r\t%" PRId64 "\t%" PRId64 "\t", seq, boot_us());
	if (status == UNANSWERED)
		put("?");
	else
		put("%d", status);
	if (status != Q_OK && status != Q_LOST && status != Q_DATA && status != UNANSWERED)
		fprintf(stderr, "client %s: status %d: %s\n", name, status, programs ? err : db_message(db));
}

/* ---- requests through libq ---- */

static int
lib_add(struct work *w, int n)
{
	static const char *const HOW[] = { "new", "known", "differs", "replaced" };
	enum job_added added;
	int rc = db_begin(db, true);

	for (int i = 0; i < n && rc == Q_OK; i++) {
		if ((rc = job_add(db, &w[i].job, when_now(), &w[i].id, &added)) == Q_OK)
			snprintf(w[i].how, sizeof w[i].how, "%s", HOW[added]);
		else
			db_rollback(db);
	}
	return rc == Q_OK ? db_commit(db) : rc;
}

static int
lib_claim(struct job_want *want, struct claim *claims, int *got)
{
	int rc = db_begin(db, false);

	if (rc == Q_OK && (rc = job_claim(db, want, when_now(), claims, got)) != Q_OK)
		db_rollback(db);
	return rc == Q_OK ? db_commit(db) : rc;
}

/* What is delivered, as a handler would see it. */
static void
lib_payload(const struct claim *c, char *token, size_t size)
{
	struct job job;
	size_t n;

	if (job_get(db, c->id, &job) != Q_OK) {
		snprintf(token, size, "-,0");
		db_clear(db);
		return;
	}
	for (n = 0; n < job.payload_len && ((const char *)job.payload)[n] != '.'; n++)
		;
	snprintf(token, size, "%.*s,%zu", (int)n, (const char *)job.payload, job.payload_len);
}

static int
lib_settle(struct held *h, int n)
{
	struct job_settle how = { .due_ms = -1, .count = -1, .exit = -1, .signal = -1 };
	const char *state;
	int rc = db_begin(db, false);

	for (int i = 0; i < n && rc == Q_OK; i++) {
		how.outcome = h[i].outcome;
		how.dead = h[i].dead;
		how.due_ms = h[i].outcome == OUT_DEFERRED ? when_now() + (int64_t)rnd(60) : -1;
		state = "-";
		h[i].status = job_settle(db, &h[i].claim, &how, when_now(), &state);
		snprintf(h[i].state, sizeof h[i].state, "%s", state);
		if (h[i].status == Q_LOST)
			db_clear(db);
		else if ((rc = h[i].status) != Q_OK)
			db_rollback(db);
	}
	return rc == Q_OK ? db_commit(db) : rc;
}

static int
lib_renew(const struct claim *c)
{
	int rc = db_begin(db, false);

	if (rc != Q_OK)
		return rc;
	if ((rc = job_renew(db, c, lease)) != Q_OK) {
		db_rollback(db);
		return rc;
	}
	return db_commit(db);
}

/* ---- requests through the programs ---- */

extern char **environ;

static void
slurp(int fd, char *buf, size_t size)
{
	size_t n = 0;
	ssize_t got;

	while ((got = read(fd, buf + n, size - 1 - n)) > 0)
		n += (size_t)got;
	buf[n] = '\0';
	close(fd);
}

/* A file without a name, for standard input and error of the programs. */
static int
scratch(const char *text)
{
	int fd = memfd_create("storm", MFD_CLOEXEC);

	if (fd == -1 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || lseek(fd, 0, SEEK_SET) != 0)
		die("scratch");
	return fd;
}

/* Runs a program; its status, or UNANSWERED if it was killed. */
static int
run(char *const argv[], const char *input)
{
	struct timespec nap = { 0, 0 };
	posix_spawn_file_actions_t fa;
	int in = scratch(input), e = scratch(""), p[2], status;
	bool doomed = percent(kill_percent);
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) == -1)
		die("pipe");
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, in, 0);
	posix_spawn_file_actions_adddup2(&fa, p[1], 1);
	posix_spawn_file_actions_adddup2(&fa, e, 2);
	if ((errno = posix_spawnp(&pid, argv[0], &fa, NULL, argv, environ)) != 0)
		die(argv[0]);
	posix_spawn_file_actions_destroy(&fa);
	close(p[1]);
	close(in);
	if (doomed) {
		nap.tv_nsec = (long)rnd(4000000);
		nanosleep(&nap, NULL);
		kill(pid, SIGKILL);
	}
	slurp(p[0], out, sizeof out);
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	lseek(e, 0, SEEK_SET);
	slurp(e, err, sizeof err);
	if (!WIFEXITED(status))
		return UNANSWERED;
	if (WEXITSTATUS(status) == Q_OK && err[0] != '\0' && strstr(err, "another payload") == NULL)
		fprintf(stderr, "client %s: %s\n", name, err);
	return WEXITSTATUS(status);
}

static const char *
number(int64_t v)
{
	static char text[16][24];
	static int k;

	k = (k + 1) % 16;
	snprintf(text[k], sizeof text[k], "%" PRId64, v);
	return text[k];
}

/* One job by options, many as records. */
static int
prog_add(struct work *w, int n)
{
	char *records = NULL, *p, at[32], event[32], backoff[48];
	const char *argv[32] = { "qadd", "-d", file, "-j" };
	int a = 4, rc;
	size_t size;
	FILE *f;

	if (n == 1) {
		snprintf(at, sizeof at, "@%" PRId64 ".%03d", w->job.due_ms / 1000, (int)(w->job.due_ms % 1000));
		snprintf(backoff, sizeof backoff, "%" PRId64 "ms..%" PRId64 "ms", w->job.base_ms, w->job.cap_ms);
		argv[a++] = "--at", argv[a++] = at;
		argv[a++] = "--backoff", argv[a++] = backoff;
		argv[a++] = "-p", argv[a++] = number(w->job.priority);
		argv[a++] = "--attempts", argv[a++] = number(w->job.attempts);
		if (w->job.key != NULL)
			argv[a++] = "-k", argv[a++] = w->key;
		if (w->job.entity != NULL)
			argv[a++] = "-e", argv[a++] = w->entity;
		if (w->job.event_ms != -1) {
			snprintf(event, sizeof event, "@%" PRId64 ".%03d", w->job.event_ms / 1000, (int)(w->job.event_ms % 1000));
			argv[a++] = "--event-time", argv[a++] = event;
		}
		if (w->job.dup != DUP_KEEP)
			argv[a++] = w->job.dup == DUP_STRICT ? "--strict" : "--replace";
		argv[a++] = w->job.queue;
		argv[a++] = "-";
		rc = run((char *const *)argv, w->payload);
	} else {
		argv[a++] = "--backoff", argv[a++] = "1ms..20ms";
		argv[a++] = "--jsonl", argv[a++] = w->job.queue;
		if ((f = open_memstream(&records, &size)) == NULL)
			die("memory");
		for (int i = 0; i < n; i++) {
			fprintf(f, "{\"payload\":\"%s\",\"priority\":%" PRId64 ",\"due_ms\":%" PRId64, w[i].payload, w[i].job.priority, w[i].job.due_ms);
			if (w[i].job.key != NULL)
				fprintf(f, ",\"key\":\"%s\"", w[i].key);
			if (w[i].job.entity != NULL)
				fprintf(f, ",\"entity\":\"%s\"", w[i].entity);
			fprintf(f, "}\n");
		}
		fclose(f);
		rc = run((char *const *)argv, records);
		free(records);
	}
	p = out;
	for (int i = 0; i < n && rc == Q_OK; i++) {
		char new[8];

		if (sscanf(p, "{\"id\":%" SCNd64 ",\"new\":%7[a-z]}", &w[i].id, new) != 2 || (p = strchr(p, '\n')) == NULL)
			return Q_BUG;
		p++;
		snprintf(w[i].how, sizeof w[i].how, "%s", strcmp(new, "true") == 0 ? "new" : "known");
	}
	return rc;
}

static int
prog_claim(const struct job_want *want, struct claim *claims, int *got, char tokens[][TEXT])
{
	char ms[32];
	const char *argv[16] = { "qclaim", "-d", file, "-l", ms, "-c", number(want->n) };
	char *p = out, word[JOB_CLAIM_TEXT], *dot;
	int a = 7, rc;

	snprintf(ms, sizeof ms, "%" PRId64 "ms", want->lease_ms);
	for (int i = 0; i < want->nqueues; i++)
		argv[a++] = want->queues[i];
	*got = 0;
	if ((rc = run((char *const *)argv, "")) != Q_OK)
		return rc;
	while ((p = strstr(p, "\"claim\":\"")) != NULL && *got < want->n) {
		if (sscanf(p, "\"claim\":\"%63[^\"]", word) != 1 || !claim_parse(word, &claims[*got]) ||
		    (p = strstr(p, "\"payload\":\"")) == NULL || sscanf(p, "\"payload\":\"%80[^\"]", tokens[*got]) != 1)
			return Q_BUG;
		p += strlen("\"payload\":\"");
		dot = strchr(tokens[*got], '.');
		snprintf(dot != NULL ? dot : tokens[*got], 16, ",%zu", strcspn(p, "\""));
		++*got;
	}
	return rc;
}

/* All with the outcome of the first; who lost is named on standard error. */
static int
prog_settle(struct held *h, int n)
{
	const char *argv[BATCH_MAX + 8];
	char words[BATCH_MAX][JOB_CLAIM_TEXT], wait[32];
	int a = 0, rc;

	argv[a++] = h->outcome == OUT_DONE ? "qdone" : "qfail";
	argv[a++] = "-d", argv[a++] = file;
	if (h->outcome == OUT_RELEASED)
		argv[a++] = "--release";
	else if (h->outcome == OUT_DEFERRED) {
		snprintf(wait, sizeof wait, "%dms", (int)rnd(60));
		argv[a++] = "--defer", argv[a++] = wait;
	} else if (h->dead)
		argv[a++] = "--dead";
	for (int i = 0; i < n; i++)
		argv[a++] = claim_text(words[i], &h[i].claim);
	argv[a] = NULL;
	rc = run((char *const *)argv, "");
	for (int i = 0; i < n; i++) {
		h[i].status = rc == Q_LOST && strstr(err, words[i]) == NULL ? Q_OK : rc;
		h[i].outcome = h->outcome;
		h[i].dead = h->dead;
		snprintf(h[i].state, sizeof h[i].state, "-");
	}
	return rc == Q_LOST ? Q_OK : rc;
}

static int
prog_renew(const struct claim *c)
{
	char word[JOB_CLAIM_TEXT], ms[32];
	const char *argv[] = { "qrenew", "-d", file, "-l", ms, claim_text(word, c), NULL };

	snprintf(ms, sizeof ms, "%" PRId64 "ms", lease);
	return run((char *const *)argv, "");
}

/* ---- what a worker does ---- */

/* Names that several workers use at the same time, and then no more. */
static int
shared(int every)
{
	return (int)(*counter / every + (int64_t)rnd(NEAR));
}

static void
invent(struct work *w, int k)
{
	int64_t now = when_now();
	size_t head, len;

	memset(w, 0, sizeof *w);
	snprintf(w->token, sizeof w->token, "%s/%" PRId64 "/%d", name, seq + 1, k);
	head = strlen(w->token);
	len = head + 1 + (percent(3) ? rnd(20000) : rnd(60));
	if ((w->payload = malloc(len + 1)) == NULL)
		die("memory");
	memcpy(w->payload, w->token, head);
	memset(w->payload + head, '.', len - head);
	w->payload[len] = '\0';
	w->job = (struct job_new){ .queue = QUEUES[0], .priority = percent(60) ? 5 : (int64_t)rnd(10), .event_ms = -1, .window_ms = -1,
	    .due_ms = now + (percent(20) ? (int64_t)rnd(300) : 0), .attempts = percent(10) ? 3 : 20, .base_ms = 1, .cap_ms = 20,
	    .payload = w->payload, .payload_len = len };
	if (strcmp(mix, "mixed") != 0)
		return;
	if (percent(25)) {		/* one at a time, in order of their event time */
		w->job.queue = QUEUES[1];
		snprintf(w->entity, sizeof w->entity, "e%d", shared(30));
		w->job.entity = w->entity;
		if (percent(50))
			w->job.event_ms = now - (int64_t)rnd(2000);
	} else if (percent(20)) {
		w->job.queue = QUEUES[2];
		snprintf(w->key, sizeof w->key, "k%d", shared(60));
		w->job.key = w->key;
		w->job.dup = percent(20) ? DUP_STRICT : DUP_KEEP;
	} else if (percent(5)) {
		w->job.queue = QUEUES[2];
		snprintf(w->key, sizeof w->key, "r%d", shared(60));
		w->job.key = w->key;
		w->job.dup = DUP_REPLACE;
	}
}

static void
add(void)
{
	struct work w[BATCH_MAX];
	int n = percent(10) ? 2 + (int)rnd(BATCH_MAX - 1) : 1, i, rc;

	for (i = 0; i < n; i++) {
		invent(&w[i], i);
		if (n > 1) {		/* what qadd --jsonl can say */
			w[i].job.attempts = 20;
			w[i].job.queue = w->job.queue;
			w[i].job.dup = DUP_KEEP;
			w[i].job.event_ms = -1;
			if (w[i].key[0] == 'r')
				w[i].job.key = NULL;
		}
	}
	ask("add");
	for (i = 0; i < n; i++)
		put("\t%s,%zu,%s,%" PRId64 ",%" PRId64 ",%s,%s,%s", w[i].token, w[i].job.payload_len, w[i].job.queue, w[i].job.priority,
		    w[i].job.due_ms, w[i].job.key != NULL ? w[i].key : "-", w[i].job.entity != NULL ? w[i].entity : "-",
		    w[i].job.dup == DUP_KEEP ? "keep" : w[i].job.dup == DUP_STRICT ? "strict" : "replace");
	write_down();
	rc = programs ? prog_add(w, n) : lib_add(w, n);
	answer(rc);
	for (i = 0; i < n && rc == Q_OK; i++)
		put("\t%" PRId64 ",%s", w[i].id, w[i].how);
	write_down();
	for (i = 0; i < n; i++)
		free(w[i].payload);
}

static void
forget(const struct held *h)
{
	old[nold++ % OLD_MAX] = *h;
}

static int
claim(int n, int64_t lease_ms, bool all)
{
	struct job_want want = { .queues = QUEUES, .nqueues = 3, .lease_ms = lease_ms, .worker = name, .n = n };
	char tokens[HELD_MAX][TEXT], word[JOB_CLAIM_TEXT];
	struct claim claims[HELD_MAX];
	int got = 0, rc;

	if (!all && percent(70)) {	/* one queue or two, so that the order over several is judged as well */
		want.nqueues = 1 + (int)rnd(2);
		want.queues += rnd((uint64_t)(4 - want.nqueues));
	}
	ask("claim");
	put("\t%d\t%" PRId64 "\t", n, lease_ms);
	for (int i = 0; i < want.nqueues; i++)
		put("%s%s", i > 0 ? "," : "", want.queues[i]);
	write_down();
	rc = programs ? prog_claim(&want, claims, &got, tokens) : lib_claim(&want, claims, &got);
	if (rc != Q_OK)
		got = 0;
	for (int i = 0; i < got && !programs; i++)
		lib_payload(&claims[i], tokens[i], TEXT);
	answer(rc);
	for (int i = 0; i < got; i++) {
		put("\t%s,%s", claim_text(word, &claims[i]), tokens[i]);
		held[nheld++] = (struct held){ .claim = claims[i] };
	}
	write_down();
	return rc == Q_OK ? got : UNANSWERED;
}

static void
settle(struct held *h, int n)
{
	char word[JOB_CLAIM_TEXT];
	int rc;

	ask("settle");
	for (int i = 0; i < n; i++)
		put("\t%s,%s,%d", claim_text(word, &h[i].claim), OUT[programs ? h->outcome : h[i].outcome], programs ? h->dead : h[i].dead);
	write_down();
	rc = programs ? prog_settle(h, n) : lib_settle(h, n);
	answer(rc);
	for (int i = 0; i < n && rc == Q_OK; i++)
		put("\t%d,%s", h[i].status, h[i].state);
	write_down();
}

static void
settle_some(int n, bool done)
{
	struct held h[BATCH_MAX];
	int i, r;

	for (i = 0; i < n && nheld > 0; i++) {
		r = done ? 100 : (int)rnd(100);
		h[i] = held[--nheld];
		h[i].outcome = r >= 38 ? OUT_DONE : r >= 20 ? OUT_FAILED : r >= 10 ? OUT_DEFERRED : OUT_RELEASED;
		h[i].dead = h[i].outcome == OUT_FAILED && percent(15);
	}
	settle(h, i);
	while (i-- > 0)
		forget(&h[i]);
}

/* With a token that was used before: the same outcome again, another one, or a nonce that nobody was given. */
static void
settle_again(void)
{
	struct held h;

	if (nold == 0)
		return;
	h = old[rnd((uint64_t)(nold < OLD_MAX ? nold : OLD_MAX))];
	if (percent(40))
		h.outcome = (enum job_outcome)rnd(4);
	h.dead = h.dead && h.outcome == OUT_FAILED;
	if (percent(10))
		h.claim.nonce ^= 1 << rnd(31);
	settle(&h, 1);
}

static void
renew(const struct claim *c)
{
	char word[JOB_CLAIM_TEXT];

	ask("renew");
	put("\t%s\t%" PRId64, claim_text(word, c), lease);
	write_down();
	answer(programs ? prog_renew(c) : lib_renew(c));
	write_down();
}

static void
mixed(void)
{
	struct timespec nap = { 0, 0 };
	int r = (int)rnd(100), before = nheld;

	if (r < 26)
		add();
	else if (r < 52 && nheld + 8 < HELD_MAX) {
		claim(1 + (int)rnd(8), lease, false);
		if (nheld > before && percent(stop_percent)) {
			raise(SIGSTOP);
			settle_some(nheld - before < BATCH_MAX ? nheld - before : BATCH_MAX, true);
		}
	} else if (r < 80 && nheld > 0)
		settle_some(percent(50) ? 1 : 1 + (int)rnd(BATCH_MAX / 2), false);
	else if (r < 86 && nheld > 0)
		renew(&held[rnd((uint64_t)nheld)].claim);
	else if (r < 93)
		settle_again();
	else if (r < 97 && nheld > 0)	/* abandoned */
		forget(&held[--nheld]);
	else {
		nap.tv_nsec = (long)rnd(20000000);
		nanosleep(&nap, NULL);
	}
}

/* Until nothing can become claimable any more. */
static void
drain(void)
{
	struct job_want want = { .queues = QUEUES, .nqueues = 3, .lease_ms = 30000, .worker = name };
	struct timespec nap = { 0, 2000000 };
	int64_t next;

	for (;;) {
		if (claim(BATCH_MAX, 30000, true) > 0) {
			while (nheld > 0)
				settle_some(BATCH_MAX, true);
			continue;
		}
		if (job_next(db, &want, when_now(), &next, NULL) != Q_OK)
			die(db_message(db));
		if (next == INT64_MAX)
			return;
		nanosleep(&nap, NULL);
	}
}

static void
end(int sig)
{
	asked_to_end = sig;
}

static void
start(const char *folder)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	history = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
	if (history == -1)
		die(path);
	snprintf(path, sizeof path, "%s/.total", folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd == -1 || ftruncate(fd, sizeof *counter) == -1)
		die(path);
	counter = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (counter == MAP_FAILED)
		die(path);
	close(fd);
	put("s\t%s\t%" PRId64 "\t%" PRId64 "\t%s", name, boot_us(), when_now(), programs ? "programs" : "libq");
	write_down();
}

int
main(int argc, char *argv[])
{
	const char *folder = ".";
	int c;

	while ((c = getopt(argc, argv, "xd:H:w:s:n:l:k:p:m:")) != -1)
		switch (c) {
		case 'x': programs = true; break;
		case 'd': file = optarg; break;
		case 'H': folder = optarg; break;
		case 'w': name = optarg; break;
		case 's': rng = strtoull(optarg, NULL, 10) * 2 + 1; break;
		case 'n': total = atoll(optarg); break;
		case 'l': lease = atoll(optarg); break;
		case 'k': kill_percent = atoi(optarg); break;
		case 'p': stop_percent = atoi(optarg); break;
		case 'm': mix = optarg; break;
		default:
			fputs(USAGE, stderr);
			return Q_USAGE;
		}
	for (c = 0; c < 20; c++)
		rnd(2);
	if (file == NULL)
		file = getenv("Q_DB");
	signal(SIGTERM, end);
	start(folder);
	if (!programs || strcmp(mix, "drain") == 0)
		if (db_open(&db, file, DB_STAY) != Q_OK) {
			errno = 0;
			die(db_message(db));
		}
	if (strcmp(mix, "drain") == 0) {
		drain();
		return 0;
	}
	while (!asked_to_end && __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED) < total) {
		if (strcmp(mix, "add") == 0)
			add();
		else if (strcmp(mix, "claim") == 0) {
			if (claim(1 + (int)rnd(20), lease, true) == 0)
				break;
			while (nheld > 0)
				settle_some(BATCH_MAX, true);
		} else
			mixed();
	}
	return 0;
}
