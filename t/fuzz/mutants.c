/*
 * mutants.c - queue files that are damaged in some way, by the thousand, and what the programs make of each
 *
 * Each program must end by itself and soon, with a status of q(7) that is not "a bug here", and a line that says why; what it prints as
 * JSON must be that; and a file that it calls damaged, or only reads, must be as it was.
 */

#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "q.h"

static const char USAGE[] =
"usage: mutants SEED N GOOD\n"
"N of them, of the files plain.db and log.db (which has a -wal and a -shm) in the folder GOOD, numbered from SEED: each can be had\n"
"again alone.  Works in the current folder; what was not borne stays there as mutant-SEED.*.  Exit: 0 all were, 1 not.\n";

enum {
	PAGE = 4096, FRAME = 4120, LOG_HEAD = 32,
	SHM_USERS = 128,		/* the byte of -shm that who has it open has locked */
	CPU_S = 5, WALL_S = 60,
	SAID = 1 << 20
};

struct file { unsigned char *at; size_t n; };

static struct file plain, with_log, its_log, its_shm;

/* ---- choices ---- */

static uint64_t state;

static uint64_t
any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * UINT64_C(0x2545f4914f6cdd1d);
}

static size_t
below(size_t n)
{
	return n == 0 ? 0 : (size_t)(any() >> 16) % n;
}

/* ---- files ---- */

static struct file
load(const char *folder, const char *name)
{
	char path[PATH_MAX];
	struct file f = { NULL, 0 };
	struct stat st;
	int fd;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1 || fstat(fd, &st) == -1 || (f.at = malloc((size_t)st.st_size + 1)) == NULL ||
	    read(fd, f.at, (size_t)st.st_size) != (ssize_t)st.st_size)
		err(2, "%s", path);
	f.n = (size_t)st.st_size;
	close(fd);
	return f;
}

/* Whether a file is what it was: -1, no file, is an empty one. */
static bool
is_still(const char *name, const struct file *f)
{
	static unsigned char buf[1 << 20];
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd != -1 ? read(fd, buf, sizeof buf) : 0;

	close(fd);
	return (size_t)n == f->n && memcmp(buf, f->at, f->n) == 0;
}

static void
put(const char *name, const struct file *f)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd == -1 || write(fd, f->at, f->n) != (ssize_t)f->n)
		err(2, "%s", name);
	close(fd);
}

static void
copy(struct file *to, const struct file *from)
{
	free(to->at);
	to->n = from->n;
	if ((to->at = malloc(to->n + 1)) == NULL)
		err(2, "memory");
	memcpy(to->at, from->at, to->n);
}

/* ---- damage ---- */

/* The beginning of some block of the file, as long as the last is whole; in the log of the page that a frame holds. */
static unsigned char *
block(const struct file *f, size_t head, size_t size, size_t skip)
{
	size_t n = f->n > head ? (f->n - head) / size : 0;

	return f->at + (n > 0 ? head + size * below(n) + skip : 0);
}

static unsigned char *
page(const struct file *f, bool log)
{
	return log ? block(f, LOG_HEAD, FRAME, FRAME - PAGE) : block(f, 0, PAGE, 0);
}

static void
random_bytes(unsigned char *at, size_t n)
{
	while (n-- > 0)
		*at++ = (unsigned char)any();
}

/* A word of the schema becomes another, or some byte of a statement or just before it, where its row says type, name and root page. */
static void
forge(struct file *f)
{
	static const struct { const char *is, *becomes; } WORDS[] = {
		{ "INTEGER", "TEXT   " }, { "UNIQUE", "      " }, { "STRICT", "      " }, { "NOT NULL", "        " },
		{ "WITHOUT ROWID", "             " }, { "PRIMARY KEY", "           " }, { "q_job", "q_jov" }, { "q_body", "q_meta" },
		{ "WHERE", "LIMIT" }, { "TRIGGER", "trigger" }, { "CREATE TABLE", "CREATE VIEW " }, { "CREATE INDEX", "CREATE TABLE" },
		{ "BEGIN", "BEGUN" }, { "DEFAULT 0", "DEFAULT 9" }, { "IGNORE", "ABORT " }, { "pending", "wending" }, { "BLOB", "TEXT" },
		{ "finished_ms", "claimed_ms " }, { "lease_ms", "\xff\xfeleases" }, { "priority", "priorit\n" }, { "nonce", "fence" },
		{ "AFTER UPDATE", "AFTER DELETE" }, { "DESC", "    " }, { "IS NOT NULL", "IS     NULL" }, { "version", "nothing" }
	};
	size_t i = below(2 * sizeof WORDS / sizeof *WORDS);
	const char *word = i < sizeof WORDS / sizeof *WORDS ? WORDS[i].is : "CREATE";
	unsigned char *at = f->at + below(f->n), *end = f->at + f->n;

	if ((at = memmem(at, (size_t)(end - at), word, strlen(word))) == NULL && (at = memmem(f->at, f->n, word, strlen(word))) == NULL)
		return;
	if (i < sizeof WORDS / sizeof *WORDS)
		memcpy(at, WORDS[i].becomes, strlen(WORDS[i].becomes));
	else if (at - f->at > 40)
		at[(ptrdiff_t)below(140) - 40] = (unsigned char)any();
}

/* Counts, sizes and places of the first page, as large or small as can be. */
static void
forge_head(struct file *f)
{
	static const uint32_t TELLING[] = { 0, 1, 2, 3, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 1000, 0x01000000 };
	uint32_t v = TELLING[below(sizeof TELLING / sizeof *TELLING)];
	size_t at = below(2) == 0 ? 16 + below(8) : 24 + 4 * below(19);

	for (size_t i = 0; i < (at < 24 ? 1 : 4) && at + i < f->n; i++)
		f->at[at + i] = (unsigned char)(v >> (24 - 8 * i));
}

static const char *
damage(struct file *f, bool log)
{
	size_t size = log ? FRAME : PAGE, n;
	unsigned char *p = page(f, log), *other;

	switch (below(16)) {
	case 0:
	case 1:
		for (n = 1 + below(8); n > 0; n--)
			f->at[below(f->n)] ^= (unsigned char)(1 << below(8));
		return "bits";
	case 2:
		memset(p, below(3) == 0 ? 0xff : 0, PAGE);
		return "a page of zeros or ones";
	case 3:
		other = page(f, log);
		memmove(p, other, PAGE);
		return "a page twice";
	case 4:
		other = page(f, log);
		for (n = 0; n < PAGE && p != other; n++) {
			unsigned char c = p[n];

			p[n] = other[n];
			other[n] = c;
		}
		return "two pages changed places";
	case 5:
		f->n = below(2) == 0 ? size * below(f->n / size) : below(f->n);
		return "cut off";
	case 6:
		random_bytes(f->at + below(log ? LOG_HEAD : 100), 1 + below(40));
		return "a torn head";
	case 7:
		memcpy(p, page(below(2) == 0 ? &plain : &with_log, false), PAGE);
		return "a page of another file";
	case 8:
		n = 512 * below(PAGE / 512);
		memcpy(p + n, page(&plain, false) + n, PAGE - n);
		return "a torn page";
	case 9:
		random_bytes(p + (p == f->at ? 100 : 0) + below(12), 1 + below(4));
		return "the head of a page";
	case 10:
		random_bytes(p + (p == f->at ? 108 : 8) + below(64), 1 + below(8));
		return "places of cells";
	case 11:
		n = 1 + below(9);
		memset(p + below(PAGE - n), 0xff, n);
		return "huge numbers";
	case 12:
		n = 1 + below(300);
		random_bytes(p + below(PAGE - n), n);
		return "some bytes";
	case 13:
	case 14:
		for (n = 1 + below(2); n > 0; n--)
			forge(f);
		return "another schema";
	default:
		if (log)
			random_bytes(f->at + LOG_HEAD + FRAME * below((f->n - LOG_HEAD) / FRAME), 8);
		else
			forge_head(f);
		return "a head with other numbers";
	}
}

static uint32_t
word(const unsigned char *p, bool big)
{
	return big ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3] :
	    (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static void
sum(uint32_t s[2], const unsigned char *p, size_t n, bool big)
{
	for (; n >= 8; p += 8, n -= 8) {
		s[0] += word(p, big) + s[1];
		s[1] += word(p + 4, big) + s[0];
	}
}

static void
put_sum(unsigned char *p, const uint32_t s[2])
{
	for (int i = 0; i < 8; i++)
		p[i] = (unsigned char)(s[i / 4] >> (24 - 8 * (i % 4)));
}

/* The sums of a log made right again, so that it is read in spite of all. */
static void
sum_up(struct file *f)
{
	bool big = f->n >= 4 && (f->at[3] & 1) != 0;
	uint32_t s[2] = { 0, 0 };

	if (f->n < LOG_HEAD)
		return;
	sum(s, f->at, 24, big);
	put_sum(f->at + 24, s);
	for (size_t at = LOG_HEAD; at + FRAME <= f->n; at += FRAME) {
		memcpy(f->at + at + 8, f->at + 16, 8);		/* its salts */
		sum(s, f->at + at, 8, big);
		sum(s, f->at + at + FRAME - PAGE, PAGE, big);
		put_sum(f->at + at + 16, s);
	}
}

/* What all who have the file open share: its index of the log. */
static const char *
damage_shm(struct file *f)
{
	size_t n;

	switch (below(6)) {
	case 0:
		for (n = 1 + below(8); n > 0; n--)
			f->at[below(f->n)] ^= (unsigned char)(1 << below(8));
		return "bits";
	case 1:
		memset(f->at, 0, below(2) == 0 ? f->n : 136);
		return "zeros";
	case 2:
		random_bytes(f->at + below(136), 1 + below(48));
		return "a torn head";
	case 3:
		n = below(136);
		random_bytes(f->at + n, 1);
		f->at[n < 48 ? n + 48 : n] = f->at[n];
		return "a head that agrees with itself";
	case 4:
		random_bytes(f->at + 136 + below(f->n - 400), 256);
		return "places of pages";
	default:
		random_bytes(f->at, f->n);
		return "noise";
	}
}

/* ---- programs ---- */

enum does { READS, WRITES, STEPS };	/* in steps: what is damaged may be seen after the first of them */

struct prog {
	const char *argv[8];
	enum does does;
	int worst;			/* of the statuses below 64 that it has */
	bool json;
};

static const struct prog PROGS[] = {
	{ { "qls", "-j", "--state", "all" }, READS, 0, true },
	{ { "qcheck" }, READS, 1, false },
	{ { "qlate", "--check" }, READS, 1, false },
	{ { "qclaim", "-c", "5", "mail", "orders" }, WRITES, 0, true },
	{ { "qadd", "-k", "new", "-e", "ana", "orders", "payload" }, WRITES, 0, false },
	{ { "qpurge", "--grace", "0s" }, STEPS, 1, false },
};
/* One of these for each mutant. */
static const struct prog OTHERS[] = {
	{ { "qls", "--counts" }, READS, 0, false },
	{ { "qls", "3" }, READS, 0, false },
	{ { "qls", "--raw", "3" }, READS, 0, false },
	{ { "qlate" }, READS, 0, false },
	{ { "qlate", "--hist", "mail" }, READS, 1, false },
	{ { "qlate", "--prom" }, STEPS, 0, false },
	{ { "qbackup", "copy" }, READS, 0, false },
	{ { "qcancel", "1", "9", "17", "25" }, WRITES, 1, false },
	{ { "qreplay", "mail" }, WRITES, 1, false },
	{ { "qset", "queue.mail.rate=5/s" }, WRITES, 0, false },
	{ { "qpause", "mail" }, WRITES, 0, false },
	{ { "qwork", "-c", "1", "mail", "--", "true" }, STEPS, 1, false },
	{ { "qinit", "--outbox" }, STEPS, 0, false },
	{ { "qlock", "name", "--", "true" }, STEPS, 0, false },
};

static struct { int runs, damaged, refused, answered, faults; } n;
static char out[SAID + 1], said[SAID + 1];
static int64_t slowest;
static bool steady;			/* what is read once is read again: not if the index of the log is wrong while it is in use */

/* What comes through both pipes until both are closed, or the time is over. */
static bool
hear(const int fd[2])
{
	struct pollfd p[2] = { { fd[0], POLLIN, 0 }, { fd[1], POLLIN, 0 } };
	char *to[2] = { out, said }, unwanted[4096];
	int64_t end = when_elapsed() + WALL_S * 1000, left;
	ssize_t got;

	while (p[0].fd != -1 || p[1].fd != -1) {
		if ((left = end - when_elapsed()) <= 0 || poll(p, 2, (int)left) == 0)
			return false;
		for (int i = 0; i < 2; i++)
			if (p[i].fd != -1 && p[i].revents != 0) {
				size_t room = SAID - (size_t)(to[i] - (i == 0 ? out : said));

				got = room > 0 ? read(p[i].fd, to[i], room) : read(p[i].fd, unwanted, sizeof unwanted);
				if (got <= 0)
					p[i].fd = -1;
				else if (room > 0)
					to[i] += got;
			}
	}
	*to[0] = *to[1] = '\0';
	return true;
}

/* A line a problem, which begins with its name. */
static bool
tells(const char *name)
{
	size_t len = strlen(name);

	if (*said == '\0')
		return false;
	for (const char *line = said; *line != '\0'; line = strchr(line, '\n') + 1) {
		if (strncmp(line, name, len) != 0 || strncmp(line + len, ": ", 2) != 0 || strchr(line, '\n') == NULL)
			return false;
		for (const char *c = line; *c != '\n'; c++)
			if ((unsigned char)*c < ' ')
				return false;
	}
	return true;
}

static bool
is_json(void)
{
	bool ok = true;

	for (char *line = out, *end; ok && (end = strchr(line, '\n')) != NULL; line = end + 1) {
		json_t *v;

		*end = '\0';
		v = json_loads(line, JSON_ALLOW_NUL, NULL);
		ok = v != NULL;
		json_decref(v);
		*end = '\n';
	}
	return ok;
}

/* What is wrong with how it ended, or NULL. */
static const char *
judge(const struct prog *p, bool ended, int status, bool same)
{
	static const int DOCUMENTED[] = { 64, 65, 66, 69, 73, 74, 75, 76, 77, 78 };
	int code = WEXITSTATUS(status);
	bool known = code <= p->worst;

	for (size_t i = 0; i < sizeof DOCUMENTED / sizeof *DOCUMENTED; i++)
		known |= code == DOCUMENTED[i];
	if (!ended)
		return "does not end";
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL ? "takes too long" : "crashed";
	if (!known)
		return "has another status than it may";
	if (code > 1 && !tells(p->argv[0]))
		return "does not say why";
	if (p->does == READS && !same)
		return "has changed the file";
	if (p->does == WRITES && steady && strstr(said, "damaged") != NULL && !same)
		return "has written to a file that it calls damaged";
	if (p->json && !is_json())
		return "prints what is not JSON";
	return NULL;
}

static void
try(const struct prog *p, const char *what, uint64_t number, const struct file *db, const struct file *log)
{
	const struct rlimit cpu = { CPU_S, CPU_S + 1 };
	int outs[2], errs[2], fd[2], status = 0;
	int64_t begun = when_elapsed(), took;
	const char *fault;
	bool ended, same;
	pid_t pid;

	if (pipe2(outs, O_CLOEXEC) == -1 || pipe2(errs, O_CLOEXEC) == -1 || (pid = fork()) == -1)
		err(2, "%s", p->argv[0]);
	if (pid == 0) {
		dup2(open("/dev/null", O_RDONLY), 0);
		dup2(outs[1], 1);
		dup2(errs[1], 2);
		setrlimit(RLIMIT_CPU, &cpu);
		execvp(p->argv[0], (char *const *)p->argv);
		_exit(127);
	}
	close(outs[1]);
	close(errs[1]);
	fd[0] = outs[0];
	fd[1] = errs[0];
	if (!(ended = hear(fd)))
		kill(pid, SIGKILL);
	close(outs[0]);
	close(errs[0]);
	waitpid(pid, &status, 0);
	if ((took = when_elapsed() - begun) > slowest)
		slowest = took;
	same = is_still("q.db", db) && is_still("q.db-wal", log);
	n.runs++;
	if (WIFEXITED(status) && WEXITSTATUS(status) < 64)
		n.answered++;
	else if (strstr(said, "damaged") != NULL)
		n.damaged++;
	else
		n.refused++;
	if ((fault = judge(p, ended, status, same)) == NULL)
		return;
	n.faults++;
	printf("mutant %llu, %s: %s %s (status %#x, %lld ms)\n", (unsigned long long)number, what, p->argv[0], fault, status, (long long)took);
	for (size_t i = 1; i < 8 && p->argv[i] != NULL; i++)
		printf("%s%s", i == 1 ? "  its operands: " : " ", p->argv[i]);
	printf("\n  it said: %.300s\n", said);
	fflush(stdout);
}

static void
keep(uint64_t number, const struct file *db, const struct file *log, const struct file *shm)
{
	const struct { const char *end; const struct file *f; } ALL[] = { { "db", db }, { "db-wal", log }, { "db-shm", shm } };
	char name[64];

	for (size_t i = 0; i < 3; i++)
		if (ALL[i].f->n > 0) {
			snprintf(name, sizeof name, "mutant-%llu.%s", (unsigned long long)number, ALL[i].end);
			put(name, ALL[i].f);
		}
}

static void
mutant(uint64_t number)
{
	static unsigned char nothing[1];
	const struct file none = { nothing, 0 };
	static struct file db, log, shm;
	struct flock user = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = SHM_USERS, .l_len = 1 };
	int before = n.faults, held = -1;
	size_t target, all = sizeof PROGS / sizeof *PROGS;
	const char *how;
	char what[64];

	state = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
	for (int i = 0; i < 8; i++)
		any();
	target = below(8);
	copy(&db, target < 3 ? &plain : &with_log);
	copy(&log, target < 3 ? &none : &its_log);
	copy(&shm, target < 3 ? &none : &its_shm);
	steady = target < 7;
	if (target < 5) {
		how = damage(&db, false);
		snprintf(what, sizeof what, "file%s, %s", target < 3 ? "" : " with a log", how);
	} else if (target < 7) {
		how = damage(&log, true);
		if (below(4) > 0)
			sum_up(&log);
		snprintf(what, sizeof what, "log, %s", how);
	} else
		snprintf(what, sizeof what, "shm, %s", damage_shm(&shm));
	for (size_t i = 0; i <= all; i++) {
		const struct prog *p = i < all ? &PROGS[i] : &OTHERS[below(sizeof OTHERS / sizeof *OTHERS)];

		unlink("copy");
		unlink("q.db-wal");
		unlink("q.db-shm");
		put("q.db", &db);
		if (target >= 3) {
			put("q.db-wal", &log);
			put("q.db-shm", &shm);
		}
		/* Who comes first makes it anew; so somebody has it open. */
		if (target == 7 && ((held = open("q.db-shm", O_RDWR | O_CLOEXEC)) == -1 || fcntl(held, F_SETLK, &user) == -1))
			err(2, "q.db-shm");
		try(p, what, number, &db, &log);
		if (held != -1)
			close(held);
		held = -1;
	}
	if (n.faults > before)
		keep(number, &db, &log, &shm);
}

int
main(int argc, char *argv[])
{
	uint64_t seed, count;

	if (argc != 4) {
		fputs(USAGE, stderr);
		return 64;
	}
	seed = strtoull(argv[1], NULL, 10);
	count = strtoull(argv[2], NULL, 10);
	plain = load(argv[3], "plain.db");
	with_log = load(argv[3], "log.db");
	its_log = load(argv[3], "log.db-wal");
	its_shm = load(argv[3], "log.db-shm");
	for (uint64_t i = 0; i < count; i++)
		mutant(seed + i);
	printf("%llu mutants, %d runs: %d answered, %d called it damaged, %d refused; the slowest took %lld ms; faults: %d\n",
	    (unsigned long long)count, n.runs, n.answered, n.damaged, n.refused, (long long)slowest, n.faults);
	return n.faults > 0;
}
