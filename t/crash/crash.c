/*
 * crash.c - power cuts: what programs write is recorded, cut off at each point that matters, and what a disk could then hold is judged
 *
 * A round is some 25 programs on one queue file, each in a process of its own with its real main(): qinit, qadd, qclaim, qrenew, qdone,
 * qfail, qcancel, qreplay, qset, qpurge, qonce, qcron, qbackup, and for qhook and qpoll, which need a network, the calls by which they
 * store.  Some are killed in the middle of it.  Then, for each sync, each change of a name and each end of a program, and at some writes
 * between, disks are made as a power cut at that point could leave them, and looked at as a program would: db_open(), then
 * integrity_check, then all rows.  The next round begins with one of these disks, and after another boot.
 *
 * Right is what the file held at some point since the last program that ended, and at or before the cut, for somebody who reads without
 * a cut ("held"): so nothing that a program had answered is lost, nothing is there by half, and no claim is given twice.  What is wrong:
 *	lost	what was answered is not there any more
 *	odd	it holds what it never held
 *	damaged	it cannot be opened, or SQLite finds it corrupt
 * The same for a copy of qbackup, which besides must hold what the file held at some point.
 *
 * What is modelled: a disk that has all that was synced and of the rest any part: each write is there or not, whatever came before or after
 * it; or it is there in part, torn between blocks of 512 bytes, with noise in some.  Likewise sizes and, until the folder is synced, names:
 * either those up to some point, as a journal keeps them, or any subset.
 * What is not: bytes beside those that were written are never harmed (SQLite relies on it: powersafe overwrite); a disk that forgets what
 * it was told to sync, bits that rot; two programs at one instant (t/62-storm.t, and kills there); a link(2) where renameat2(2) is missing; the
 * making of the default folder.
 *
 * usage: crash [-kov] [-s SEED] [-r ROUNDS] [-n DISKS] [-b BETWEEN] [-c LIE] SCHEMA DIR
 *	-k		other rounds: programs killed before each of their syncs, and run again
 *	-o		begin with a file of version 1
 *	-n DISKS	random disks a point (default 3)
 *	-b BETWEEN	percent of the writes that are a point (default 10)
 *	SCHEMA		lib/schema.sql of version 1: every other file begins as one of that version and is upgraded
 *	DIR		an empty folder; with a fault DIR/cut is left as the disk was
 *	-c LIE		the control: normal, off, folder: these syncs do nothing (see record.h)
 * Exit: 0 nothing is wrong, 1 something is, 2 it could not be tried.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "inbox.h"
#include "record.h"
#include "sync.h"

enum {
	PROGRAMS = 25,			/* of a round */
	LIFE = 4,			/* rounds of one file */
	BLOCK = 512,
	SIZE = 8 << 20,			/* of a file at most */
	HELD = 64
};

int qinit_main(int, char **), qadd_main(int, char **), qclaim_main(int, char **), qrenew_main(int, char **), qdone_main(int, char **),
    qfail_main(int, char **), qcancel_main(int, char **), qreplay_main(int, char **), qset_main(int, char **), qpurge_main(int, char **),
    qonce_main(int, char **), qcron_main(int, char **), qbackup_main(int, char **);
static int hooks(int, char **), poll(int, char **);

static const struct { const char *name; int (*main)(int, char **); } MAINS[] = {
	{ "qinit", qinit_main }, { "qadd", qadd_main }, { "qclaim", qclaim_main }, { "qrenew", qrenew_main }, { "qdone", qdone_main },
	{ "qfail", qfail_main }, { "qcancel", qcancel_main }, { "qreplay", qreplay_main }, { "qset", qset_main }, { "qpurge", qpurge_main },
	{ "qonce", qonce_main }, { "qcron", qcron_main }, { "qbackup", qbackup_main }, { "hooks", hooks }, { "poll", poll }
};
static const char *const JUDGED[] = { "q.db", "copy.db" };
enum { FILES = 2 };

static uint64_t seed = 1, rng;
static int kill_at = -1;			/* the operation (with -k the sync) at which the next program is killed, 0: it is not; -1: at random */
static int boot, disks = 3, between = 10;
static enum lie lie;
static bool verbose, killed;
static int64_t now = INT64_C(1780401600000);	/* 2026-06-02 12:00 */
static char live[PATH_MAX], cut_folder[PATH_MAX];	/* where programs work; where disks are made */
static char said[1 << 16];			/* by the last program, standard output */
static struct { int64_t programs, killed, acks, states, cuts, lost, odd, damaged; } n;

static uint64_t
rnd(uint64_t below)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (rng * UINT64_C(0x2545f4914f6cdd1d) >> 20) % below;
}

static bool
percent(uint64_t p)
{
	return rnd(100) < p;
}

static void
empty(const char *folder)
{
	char path[PATH_MAX + 300];
	struct dirent *e;
	DIR *d = opendir(folder);

	if (d == NULL)
		err(2, "%s", folder);
	while ((e = readdir(d)) != NULL) {
		snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		if (e->d_name[0] != '.' && unlink(path) == -1)
			err(2, "%s", path);
	}
	closedir(d);
}

/* ---- programs ---- */

static char file[PATH_MAX + 16];		/* the queue */

/* What qhook does with requests that came together, several times on one handle; each time is an answer. */
static int
hooks(int argc, char **argv)
{
	static const char *const BODY = "{\"event\":\"paid\"}";
	struct hook_request request = { .method = "POST", .target = "/pay", .body = BODY, .len = strlen(BODY) };
	struct hook_verdict verdict = { .status = 200, .event = true, .queue = "q1", .path = "/pay", .scheme = "none", .secret = "s",
	    .source = "unsigned", .event_ms = -1 };
	struct inbox in = { .request = &request, .verdict = &verdict };
	struct db *db;

	(void)argc;
	if (db_open(&db, NULL, DB_STAY) != Q_OK || db_tables(db, FOR_QHOOK) != Q_OK)
		return db_status(db);
	for (int i = 0; i < 4; i++) {
		if (db_begin(db, true) != Q_OK)
			return db_status(db);
		for (int k = 0; k < 3; k++) {
			snprintf(verdict.id, sizeof verdict.id, "%.32s-%d-%d", argv[1], i, k);
			snprintf(verdict.key, sizeof verdict.key, "/pay/%.64s", verdict.id);
			if (inbox_add(db, &in, when_now()) != Q_OK) {
				db_rollback(db);
				return db_status(db);
			}
		}
		if (db_commit(db) != Q_OK)
			return db_status(db);
		record_ack();
	}
	return Q_OK;
}

/* What qpoll does with two pages: the items become jobs, and the cursor moves, in one transaction a page. */
static int
poll(int argc, char **argv)
{
	const struct source src = { .name = "orders", .queue = "q1", .order = ORDER_ASC, .spec = { .type = CURSOR_INT }, .priority = -1,
	    .max_seen = 1000, .config = "c" };
	const struct pager pager = { .src = &src };
	struct item items[3] = { 0 };
	struct page page = { .items = items, .n = 3 };
	char text[3][32];
	const char *why;
	struct sync sync;
	struct db *db;

	(void)argc;
	if (db_open(&db, NULL, DB_ONCE) != Q_OK || sync_read(&sync, db, &src, &pager) != Q_OK)
		return db_status(db);
	sync.run.started_ms = when_now();
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 3; k++) {
			snprintf(text[k], sizeof text[k], "%s%d%d", argv[1], i, k);
			items[k] = (struct item){ .raw = { text[k], strlen(text[k]) }, .id = text[k], .cursor = text[k] };
			memcpy(items[k].ver, text[k], strlen(text[k]) < 16 ? strlen(text[k]) : 16);
			if (!cursor_key(&src.spec, text[k], &items[k].key, &why))
				return Q_BUG;
		}
		if (sync_fresh(&sync, &page) != Q_OK ||
		    sync_step(&sync, &(struct sync_step){ .page = &page, .cursor = text[2], .outcome = i == 1 ? "done" : NULL }, when_now()) != Q_OK)
			return db_status(db);
		record_ack();
	}
	return Q_OK;
}

static void
child(const char *const argv[], const char *input, int nth)
{
	char at[WHEN_TEXT], clock[64];
	char *words[16] = { NULL };
	int in[2], argc;
	size_t i;

	if (pipe(in) == -1 || write(in[1], input, strlen(input)) == -1 || dup2(in[0], 0) == -1)
		err(2, "pipe");
	close(in[0]);
	close(in[1]);
	if (freopen("../out", "w", stdout) == NULL || freopen("../err", "w", stderr) == NULL)
		_exit(2);
	snprintf(clock, sizeof clock, "boot%d:%" PRId64, boot, now % INT64_C(100000000));
	setenv("Q_NOW", when_text(at, now, true), 1);
	setenv("Q_BOOT", clock, 1);
	setenv("Q_DB", file, 1);
	for (i = 0; strcmp(MAINS[i].name, argv[0]) != 0; i++)
		;
	for (argc = 0; argv[argc] != NULL; argc++)	/* programs may write into them */
		if (argc == 15 || (words[argc] = strdup(argv[argc])) == NULL)
			_exit(2);
	record_program(nth, killed);
	exit(MAINS[i].main(argc, words));
}

static char *
contents(const char *name, char *buf, size_t size)
{
	FILE *f = fopen(name, "r");

	if (f == NULL)
		err(2, "%s", name);
	buf[fread(buf, 1, size - 1, f)] = '\0';
	fclose(f);
	return buf;
}

/* Its exit status, RECORD_KILLED if it was killed; what it answered is a promise. */
static int
run(const char *const argv[], const char *input)
{
	int status, nth = kill_at != -1 ? kill_at : percent(30) ? 1 + (int)rnd(30) : 0;
	char why[1024];
	pid_t pid;

	fflush(NULL);
	if ((pid = fork()) == -1)
		err(2, "fork");
	if (pid == 0)
		child(argv, input, nth);
	if (waitpid(pid, &status, 0) == -1)
		err(2, "wait");
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	n.programs++;
	now += 60000 + (int64_t)rnd(1800000);
	contents("../out", said, sizeof said);
	if (status == RECORD_KILLED) {
		n.killed++;
		record_point();
		return status;
	}
	n.acks++;
	record_ack();
	if (verbose)
		printf("  %s %s: %d\n", argv[0], argv[1], status);
	/* A no is an answer; trouble is none that can come here. */
	if (status != Q_OK && status != Q_NO && status != Q_NOINPUT && status != Q_LOST && status != Q_CREATE && !(status == Q_TEMP && strcmp(argv[0], "qcron") == 0))
		errx(2, "seed %" PRIu64 ": %s %s: exit %d: %s", seed, argv[0], argv[1], status, contents("../err", why, sizeof why));
	return status;
}
#define RUN(input, ...) run((const char *[]){ __VA_ARGS__, NULL }, input)

/* ---- one program, at random ---- */

static char held[HELD][JOB_CLAIM_TEXT];		/* claims that were printed */
static int nheld;
static int64_t newest;				/* id */

static void
remember_claims(void)
{
	for (char *p = said; (p = strstr(p, "\"claim\":\"")) != NULL; ) {
		p += strlen("\"claim\":\"");
		snprintf(held[nheld < HELD ? nheld++ : (int)rnd(HELD)], JOB_CLAIM_TEXT, "%.*s", (int)strcspn(p, "\""), p);
	}
}

static void
step(void)
{
	static char payload[20000], name[32], id[32], claim[2][JOB_CLAIM_TEXT];
	static const char *const HOW[] = { "--dead", "--release", "-mbroken", "--in=5m" };
	const char *queue = percent(70) ? "q0" : "q1";
	size_t size = percent(15) ? rnd(sizeof payload - 1) : 1 + rnd(60);

	memset(payload, 'a' + (int)rnd(26), size);
	payload[size] = '\0';
	snprintf(name, sizeof name, "n%d", (int)rnd(1000000));
	snprintf(id, sizeof id, "%" PRId64, 1 + (int64_t)rnd((uint64_t)newest + 1));
	for (int i = 0; i < 2; i++)
		strcpy(claim[i], nheld > 0 ? held[(nheld - 1 - (int)rnd(nheld < 6 ? (uint64_t)nheld : 6))] : "1.1.00000000");
	switch (rnd(24)) {
	case 0: case 1: case 2:
		RUN("", "qadd", "-k", name, queue, payload);
		break;
	case 3: case 4:
		RUN("", "qadd", "-e", percent(50) ? "ana" : "bob", queue, payload);
		break;
	case 5:
		RUN("one\ntwo\nthree\nfour\nfive\n", "qadd", "--lines", "q1");
		break;
	case 6:
		RUN("", "qadd", "--replace", "-k", "again", "--in", "1m", "q0", payload);
		break;
	case 7: case 8: case 9: case 10:
		RUN("", "qclaim", "-c", percent(50) ? "1" : "4", "q0", "q1");
		remember_claims();
		return;
	case 11:
		RUN("", "qrenew", "-l", "10m", claim[0]);
		break;
	case 12: case 13: case 14:
		RUN("", "qdone", "-r", "fine", claim[0]);
		break;
	case 15:
		RUN("", "qdone", claim[0], claim[1]);
		break;
	case 16: case 17:
		RUN("", "qfail", HOW[rnd(4)], claim[0]);
		break;
	case 18:
		RUN("", "qcancel", id);
		break;
	case 19:
		RUN("", "qreplay", id);
		break;
	case 20:
		RUN("", "qpurge", "--grace", "1h");
		break;
	case 21:
		RUN("", "qonce", name, "--", percent(70) ? "true" : "false");
		break;
	case 22:
		percent(50) ? RUN("", "hooks", name) : RUN("", "qcron", "../table");
		break;
	case 23:
		percent(50) || access(JUDGED[1], F_OK) == 0 ? RUN("", "poll", name + 1) : RUN("", "qbackup", JUDGED[1]);
		break;
	}
	if (atoll(said) > newest)
		newest = atoll(said);
}

/*
 * Programs killed before each of their syncs in turn, and run again: who finds that it was done before says so, and
 * that is a promise, too.
 */
static void
again(void)
{
	static const char *const WHAT[] = { "qadd", "qdone", "qonce", "hooks" };
	char name[32];
	int status;

	for (int i = 0; i < 4; i++) {
		status = RECORD_KILLED;
		for (int nth = 1; status == RECORD_KILLED; nth++) {
			kill_at = 0;
			snprintf(name, sizeof name, "n%d", nth);
			if (i == 1) {
				nheld = 0;
				RUN("", "qclaim", "q0");
				remember_claims();
			}
			for (int k = 0; k < 2; k++) {
				kill_at = k == 0 ? nth : 0;
				int got = i == 0 ? RUN("", WHAT[i], "-k", name, "q0", "x") : i == 1 ? RUN("", WHAT[i], held[0]) :
				    i == 2 ? RUN("", WHAT[i], "-u", "rerun", name, "--", "true") : RUN("", WHAT[i], name);

				status = k == 0 ? got : status;
			}
		}
	}
	kill_at = -1;
}

/* A file of version 1. */
static void
old_file(const char *schema)
{
	static char sql[1 << 16];
	sqlite3 *c;

	if (sqlite3_open_v2(file, &c, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "unix") != SQLITE_OK ||
	    sqlite3_exec(c, "PRAGMA journal_mode=WAL; PRAGMA application_id=0x71756575; PRAGMA user_version=1", NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(c, contents(schema, sql, sizeof sql), NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(c, "INSERT INTO q_job(queue, event_ms, due_ms, ready_ms, added_ms) VALUES('q0', 1, 1, 1, 1), ('q0', 2, 2, 2, 2);"
	    "INSERT INTO q_body VALUES(1, x'31'), (2, x'32')", NULL, NULL, NULL) != SQLITE_OK)
		errx(2, "%s: %s", schema, sqlite3_errmsg(c));
	sqlite3_close(c);
}

static void
work(void)
{
	int status = RECORD_KILLED;

	for (int i = 1; status != Q_OK; i++) {
		kill_at = killed ? i : -1;
		status = access(file, F_OK) == 0 ? RUN("", "qinit", "--upgrade") : RUN("", "qinit", "--outbox");
		if (i == 30 || (status != Q_OK && status != RECORD_KILLED))
			errx(2, "seed %" PRIu64 ": qinit: exit %d", seed, status);
	}
	for (int i = 0; i < 2; i++) {
		kill_at = !killed ? -1 : i == 0 ? 1 : 0;
		RUN("", "qset", "queue.q0.keep=1h", "queue.q1.keep=2h", "queue.q0.dead_to=q2");
	}
	if (killed)
		again();
	else
		for (int i = 0; i < PROGRAMS; i++)
			step();
}

/* ---- what a file holds ---- */

static uint64_t
hash(uint64_t h, const void *p, size_t len)
{
	for (const unsigned char *b = p; len > 0; b++, len--)
		h = (h ^ *b) * UINT64_C(0x100000001b3);
	return h;
}

/* The rows of a query; 0: they cannot be read. */
static uint64_t
hash_rows(sqlite3 *c, const char *sql, uint64_t h)
{
	sqlite3_stmt *s;
	int rc = sqlite3_prepare_v2(c, sql, -1, &s, NULL), type;

	while (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(s); i++) {
			type = sqlite3_column_type(s, i);
			h = hash(h, &type, sizeof type);
			h = hash(h, sqlite3_column_blob(s, i), (size_t)sqlite3_column_bytes(s, i));
		}
		rc = SQLITE_OK;
	}
	sqlite3_finalize(s);
	return rc == SQLITE_DONE ? h : 0;
}

/* All that a file holds, in one snapshot, after integrity_check.  0: it is damaged. */
static uint64_t
hash_file(sqlite3 *c, uint64_t h, char *why, size_t size)
{
	static const char TABLES[] = "SELECT 'SELECT * FROM \"' || name || '\"' FROM sqlite_schema WHERE type = 'table' ORDER BY name";
	sqlite3_stmt *s = NULL;

	snprintf(why, size, "cannot be read");
	if (sqlite3_exec(c, "BEGIN", NULL, NULL, NULL) != SQLITE_OK || sqlite3_prepare_v2(c, "PRAGMA integrity_check", -1, &s, NULL) != SQLITE_OK ||
	    sqlite3_step(s) != SQLITE_ROW)
		h = 0;
	else if (strcmp((const char *)sqlite3_column_text(s, 0), "ok") != 0) {
		snprintf(why, size, "%s", (const char *)sqlite3_column_text(s, 0));
		h = 0;
	} else
		h = hash_rows(c, "SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2", h);
	sqlite3_finalize(s);
	if (h != 0 && sqlite3_prepare_v2(c, TABLES, -1, &s, NULL) == SQLITE_OK) {
		while (h != 0 && sqlite3_step(s) == SQLITE_ROW)
			h = hash_rows(c, (const char *)sqlite3_column_text(s, 0), h);
		if (sqlite3_finalize(s) != SQLITE_OK)
			h = 0;
	}
	return h;
}

/* What a program finds that opens it.  0: damaged, why says how; 1: it is not there. */
static uint64_t
look(const char *where, const char *name, char *why, size_t size)
{
	char path[PATH_MAX + 32];
	sqlite3 *c = NULL;
	struct db *db;
	int status;
	uint64_t h = 0;

	snprintf(path, sizeof path, "%s/%s", where, name);
	status = db_open(&db, path, DB_ONCE);
	snprintf(why, size, "%s", db_message(db));
	if (status == Q_NOINPUT)
		h = 1;
	else if (status == Q_OK || strstr(why, "next: qinit --upgrade") != NULL) {
		h = hash(UINT64_C(0xcbf29ce484222325), &status, sizeof status);
		h = sqlite3_open_v2(path, &c, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK ? hash_file(c, h, why, size) : 0;
		sqlite3_close(c);
	}
	db_close(db);
	return h;
}

/* ---- disks ---- */

static struct image { unsigned char *b; int64_t size; int from; } image[RECORD_FILES], torn[RECORD_FILES];	/* from: the first operation not in it */
static struct { char name[32]; int file; } names[64], some[64];
static int nnames, nsome, names_from;

static void
put(struct image *m, int64_t offset, const unsigned char *p, int64_t size)
{
	if (m->b == NULL && (m->b = calloc(1, SIZE)) == NULL)
		err(2, "memory");
	if (offset + size > SIZE)
		errx(2, "a file is larger than %d bytes", SIZE);
	memcpy(m->b + offset, p, (size_t)size);
	if (offset + size > m->size)
		m->size = offset + size;
}

static void
resize(struct image *m, int64_t size)
{
	if (size < m->size)
		memset(m->b + size, 0, (size_t)(m->size - size));
	m->size = size;
}

static void
do_name(const struct op *op, void *to, int *count)
{
	struct { char name[32]; int file; } *list = to;
	const char *gone = op->kind == OP_NAME ? op->to : op->from, *new = op->kind == OP_UNLINK ? NULL : op->to;
	int i;

	for (i = 0; i < *count; i++)
		if (strcmp(list[i].name, gone) == 0 || (new != NULL && strcmp(list[i].name, new) == 0))
			list[i--] = list[--*count];
	if (new != NULL) {
		if (*count == 64)
			errx(2, "more than 64 names");
		strcpy(list[*count].name, new);
		list[(*count)++].file = op->file;
	}
}

static bool
is_name(const struct op *op)
{
	return op->kind == OP_NAME || op->kind == OP_RENAME || op->kind == OP_UNLINK;
}

/* Operation i is a sync: what it makes sure of goes into the image. */
static void
settle(const struct op *ops, int i)
{
	struct image *m;

	if (ops[i].kind == OP_FOLDER)
		for (; names_from < i; names_from++)
			if (is_name(&ops[names_from]))
				do_name(&ops[names_from], names, &nnames);
	if (ops[i].kind != OP_SYNC)
		return;
	for (m = &image[ops[i].file]; m->from < i; m->from++)
		if (ops[m->from].file == ops[i].file && ops[m->from].kind == OP_WRITE)
			put(m, ops[m->from].offset, ops[m->from].data, ops[m->from].size);
		else if (ops[m->from].file == ops[i].file && ops[m->from].kind == OP_SIZE)
			resize(m, ops[m->from].size);
}

/* A write of which each block may be there, or not, or be noise. */
static void
put_torn(struct image *m, const struct op *op)
{
	unsigned char noise[BLOCK];
	int64_t size;

	for (int64_t at = 0; at < op->size; at += size) {
		size = BLOCK - (op->offset + at) % BLOCK;
		if (size > op->size - at)
			size = op->size - at;
		for (int i = 0; i < BLOCK; i++)
			noise[i] = (unsigned char)rnd(256);
		if (percent(50))
			put(m, op->offset + at, op->data + at, size);
		else if (percent(10))
			put(m, op->offset + at, noise, size);
	}
}

static void
write_file(const char *name, const struct image *m)
{
	char path[PATH_MAX + 40];
	int fd;

	snprintf(path, sizeof path, "%s/%s", cut_folder, name);
	if ((fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600)) == -1 || (m->size > 0 && write(fd, m->b, (size_t)m->size) != m->size) || close(fd) == -1)
		err(2, "%s", path);
}

/*
 * The disk after a cut before operation `cut`, in cut_folder.  keep: percent of the unsynced writes that are there, 100: all of
 * everything.  False: nothing was unsynced.
 */
static bool
make_disk(const struct op *ops, int cut, uint64_t keep)
{
	int names_to = names_from;
	bool journal = percent(50), any = false;

	for (int i = 0; i < nnames; i++)
		some[i] = names[i];
	nsome = nnames;
	for (int f = 0; f < RECORD_FILES; f++) {
		torn[f].size = 0;
		if (image[f].size > 0)
			put(&torn[f], 0, image[f].b, image[f].size);
		torn[f].from = image[f].from;
	}
	for (int i = names_from; i < cut; i++)
		if (percent(keep))
			names_to = i + 1;
	for (int i = 0; i < cut; i++) {
		const struct op *op = &ops[i];
		struct image *m = op->file != -1 ? &torn[op->file] : NULL;

		if (is_name(op) && i >= names_from) {
			any = true;
			if (keep == 100 || (journal ? i < names_to : percent(keep)))
				do_name(op, some, &nsome);
		} else if ((op->kind == OP_WRITE || op->kind == OP_SIZE) && i >= m->from) {
			any = true;
			if (keep < 100 && !percent(keep))
				continue;
			if (op->kind == OP_SIZE)
				resize(m, op->size);
			else if (keep < 100 && percent(25))
				put_torn(m, op);
			else
				put(m, op->offset, op->data, op->size);
		}
	}
	empty(cut_folder);
	for (int i = 0; i < nsome; i++)
		write_file(some[i].name, &torn[some[i].file]);
	return any;
}

/* ---- the verdict ---- */

static struct held { uint64_t h[FILES]; } state[1 << 13];	/* what the files held, one after the other */
static int nstates, legal;		/* legal: those from here on are right now */

static const char *
told(const struct op *op)
{
	static const char *const WORDS[] = { "write", "size", "sync", "name", "rename", "unlink", "sync of the folder", "nothing", "answer" };
	static char text[160];

	snprintf(text, sizeof text, "%s, file %d, %" PRId64 "+%" PRId64 " %s %s", WORDS[op->kind], op->file, op->offset, op->size, op->from, op->to);
	return text;
}

/* What the disk in cut_folder holds is wrong. */
static void
wrong(const struct op *ops, int nops, int base, int cut, int64_t *count, const char *name, const char *word, const char *why)
{
	if (++*count > 3 && !verbose)
		return;
	printf("seed %" PRIu64 ", operation %d of %d..%d, before %s: %s is %s%s%s\n", seed, cut, base, nops,
	    cut < nops ? told(&ops[cut]) : "the end", name, word, *why != '\0' ? ": " : "", why);
	if (lie != LIE_NONE)
		return;
	for (int i = cut < 40 ? 0 : cut - 40; i < cut; i++)
		printf("  %d %s\n", i, told(&ops[i]));
	exit(1);
}

static bool
among(uint64_t h, int file_no, int from, int to)
{
	for (; from < to; from++)
		if (state[from].h[file_no] == h)
			return true;
	return false;
}

static void
judge_disk(const struct op *ops, int nops, int base, int cut)
{
	char why[300];
	uint64_t h;

	n.cuts++;
	for (int f = 0; f < FILES; f++) {
		h = look(cut_folder, JUDGED[f], why, sizeof why);
		if (h == 0)
			wrong(ops, nops, base, cut, &n.damaged, JUDGED[f], "damaged", why);
		else if (among(h, f, legal, nstates))
			continue;
		else if (among(h, f, 0, legal))
			wrong(ops, nops, base, cut, &n.lost, JUDGED[f], "as it was before what was answered", "");
		else
			wrong(ops, nops, base, cut, &n.odd, JUDGED[f], "as it never was", "");
	}
}

/* With everything there that was written before the cut: what somebody who reads at that moment sees. */
static void
hold(const struct op *ops, int nops, int base, int cut)
{
	struct held *s = &state[nstates++];
	char why[300];

	if (nstates == sizeof state / sizeof *state)
		errx(2, "more than %d states in a round", nstates);
	make_disk(ops, cut, 100);
	for (int f = 0; f < FILES; f++)
		if ((s->h[f] = look(cut_folder, JUDGED[f], why, sizeof why)) == 0)
			wrong(ops, nops, base, cut, &n.damaged, JUDGED[f], "damaged", why);
	if (s->h[1] > 1 && !among(s->h[1], 0, 0, nstates))
		wrong(ops, nops, base, cut, &n.odd, JUDGED[1], "what the file never was", "");
	n.states++;
}

static void
move(const char *from, const char *to)
{
	char a[PATH_MAX + 300], b[PATH_MAX + 300];
	struct dirent *e;
	DIR *d = opendir(from);

	empty(to);
	while (d != NULL && (e = readdir(d)) != NULL) {
		snprintf(a, sizeof a, "%s/%s", from, e->d_name);
		snprintf(b, sizeof b, "%s/%s", to, e->d_name);
		if (e->d_name[0] != '.' && rename(a, b) == -1)
			err(2, "%s", a);
	}
	if (d == NULL || closedir(d) == -1)
		err(2, "%s", from);
}

/* All cuts of a round.  One of the disks is left in next, for the round after it. */
static void
judge(const char *next)
{
	static const uint64_t KEEP[] = { 0, 10, 50, 90, 99 };
	int nops, base, last;
	const struct op *ops = record_ops(&nops, &base);
	bool changed = true;
	char why[300];

	last = base + (int)rnd((uint64_t)(nops - base) + 1);
	for (int f = 0; f < RECORD_FILES; f++)
		image[f].size = image[f].from = 0;
	nnames = names_from = nstates = legal = 0;
	for (int cut = 0; cut <= nops; cut++) {
		enum op_kind before = cut > 0 ? ops[cut - 1].kind : OP_WRITE, after = cut < nops ? ops[cut].kind : OP_SYNC;

		changed |= before == OP_WRITE || before == OP_SIZE || (cut > 0 && is_name(&ops[cut - 1]));
		if (cut >= base && after != OP_ACK &&
		    (cut == base || (before != OP_WRITE && before != OP_SIZE) || (after != OP_WRITE && after != OP_SIZE) || percent((uint64_t)between))) {
			if (changed)
				hold(ops, nops, base, cut);
			changed = false;
			if (before == OP_ACK)
				legal = nstates - 1;
			for (int i = 0; i < disks && make_disk(ops, cut, KEEP[rnd(5)]); i++)
				judge_disk(ops, nops, base, cut);
		}
		if (cut == last) {
			make_disk(ops, cut, KEEP[rnd(5)]);
			move(cut_folder, next);
		}
		if (cut < nops)
			settle(ops, cut);
	}
	for (int f = 0; f < FILES; f++)
		if (look(live, JUDGED[f], why, sizeof why) != state[nstates - 1].h[f])
			errx(2, "seed %" PRIu64 ": %s is not what was recorded", seed, JUDGED[f]);
}

static void
folder(char *buf, const char *dir, const char *name)
{
	if (snprintf(buf, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX || mkdir(buf, 0700) == -1)
		err(2, "%s/%s", dir, name);
}

int
main(int argc, char *argv[])
{
	static const char *const LIES[] = { "none", "normal", "off", "folder" };
	char *dir, *schema, next[PATH_MAX];
	int rounds = 4, old = 0, c;
	struct db *db;
	FILE *f;

	while ((c = getopt(argc, argv, "kovs:r:n:b:c:")) != -1)
		switch (c) {
		case 'k': killed = true; break;
		case 'o': old = 1; break;
		case 'v': verbose = true; break;
		case 's': seed = strtoull(optarg, NULL, 10); break;
		case 'r': rounds = atoi(optarg); break;
		case 'n': disks = atoi(optarg); break;
		case 'b': between = atoi(optarg); break;
		case 'c':
			for (lie = LIE_FOLDER; lie > LIE_NONE && strcmp(LIES[lie], optarg) != 0; lie--)
				;
			break;
		default: return 2;
		}
	if (argc - optind != 2 || (schema = realpath(argv[optind], NULL)) == NULL || (dir = realpath(argv[optind + 1], NULL)) == NULL)
		errx(2, "usage: crash [-kov] [-s SEED] [-r ROUNDS] [-n DISKS] [-b BETWEEN] [-c normal|off|folder] SCHEMA DIR");
	optind = 0;			/* getopt(3) begins anew in the programs */
	folder(live, dir, "live");
	folder(cut_folder, dir, "cut");
	folder(next, dir, "next");
	snprintf(file, sizeof file, "%s/q.db", live);
	if (chdir(live) == -1 || (f = fopen("../table", "w")) == NULL || fputs("tick @every 1h q1 {\"a\":1}\n", f) == EOF || fclose(f) == EOF)
		err(2, "%s", live);
	/* SQLite takes its settings before the first VFS is registered: as in every program, libq makes them. */
	if (db_create(&db, &(struct db_create){ .path = file }) != Q_OK)
		errx(2, "%s", db_message(db));
	db_close(db);
	record_setup(lie);
	for (int round = 0; round < rounds; round++) {
		rng = (seed + (uint64_t)round) * UINT64_C(0x9e3779b97f4a7c15) | 1;
		boot++;
		if (round % LIFE == 0 || lie != LIE_NONE) {	/* a new file, or one of version 1 */
			empty(live);
			nheld = 0;
			newest = 0;
			if ((round / LIFE + old) % 2 == 1)
				old_file(schema);
		} else
			move(next, live);
		unlink("copy.db");
		record_start(live);
		work();
		judge(next);
	}
	printf("crash: seed %" PRIu64 ", rounds %d, programs %" PRId64 ", killed %" PRId64 ", states %" PRId64 ", cuts %" PRId64 "; lost %" PRId64
	    ", odd %" PRId64 ", damaged %" PRId64 "\n", seed, rounds, n.programs, n.killed, n.states, n.cuts, n.lost, n.odd, n.damaged);
	return n.lost + n.odd + n.damaged > 0;
}
