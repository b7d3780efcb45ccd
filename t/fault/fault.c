/*
 * fault.c - each call of the system and of the allocator that programs make fails once, or from then on, and what they make of it is judged
 *
 * A case is a command line of a program, run in a process of its own with its real main().  Once it runs without a fault: that tells which
 * calls it makes, what it prints, what files it leaves, and what the queue file holds at each of its syncs and at its end.  Then the nth
 * call fails, for each n and each kind of inject.h.  Right is
 *	- to end as without a fault, and then with the same output, the same files and the same rows;
 *	- or to end with 69, 73, 74 or 75 (without memory 75 or 69) and a line that says why, and then nothing has happened; with 69 also
 *	  something that the run without a fault has on its way; or what the case says of work that is done in several steps;
 *	- and always: no signal, no process left, no more than 5 seconds after the fault, which lasts one, integrity_check says ok;
 *	- and then to do the same without a fault as if nothing had been, and leave no other files.
 * Who judges has no part in it: SQLite alone, after the program is gone.
 *
 * usage: fault [-lv] [-c] [-s SEED] [-n INJECTIONS] [-p PROGRAM] [-k KIND] [-t NTH] TOP DIR
 *	-c		the control: failed writes say that all is well
 *	-p PROGRAM	its cases alone, or one, given whole
 *	-k, -t		this kind, this call alone
 *	-l		list the programs
 *	-n INJECTIONS	about so many in all, at random (default: each)
 *	-v		each message of a program, once for each kind
 *	TOP		the folder of cmd/ and t/
 *	DIR		an empty folder
 * Exit: 0 nothing is wrong, 1 something is, 2 it could not be tried.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <sqlite3.h>

#include "q.h"
#include "inject.h"

int qinit_main(int, char **), qadd_main(int, char **), qclaim_main(int, char **), qrenew_main(int, char **), qdone_main(int, char **),
	qfail_main(int, char **), qcancel_main(int, char **), qreplay_main(int, char **), qls_main(int, char **), qwork_main(int, char **),
	qjob_main(int, char **), qlate_main(int, char **), qset_main(int, char **), qpause_main(int, char **), qpoll_main(int, char **),
	qrate_main(int, char **), qlock_main(int, char **), qonce_main(int, char **), qcall_main(int, char **), qbackfill_main(int, char **),
	qbackup_main(int, char **), qcron_main(int, char **), qhook_main(int, char **), qcheck_main(int, char **), qpurge_main(int, char **);
#define MAIN(name) { #name, name##_main }
static const struct { const char *name; int (*main)(int, char **); } MAINS[] = {
	MAIN(qinit), MAIN(qadd), MAIN(qclaim), MAIN(qrenew), MAIN(qdone), MAIN(qfail), MAIN(qcancel), MAIN(qreplay), MAIN(qls), MAIN(qwork),
	MAIN(qjob), MAIN(qlate), MAIN(qset), MAIN(qpause), MAIN(qpoll), MAIN(qrate), MAIN(qlock), MAIN(qonce), MAIN(qcall), MAIN(qbackfill),
	MAIN(qbackup), MAIN(qcron), MAIN(qhook), MAIN(qcheck), MAIN(qpurge)
};

/* What a run leaves; the same for a program that does nothing. */
struct left {
	int status;			/* 128 + N: a signal; -1: it did not end, -2: a process was left */
	uint64_t rows, files, out;
	bool allowed;			/* what the case says of the rows */
	char damage[200];
};

struct example {
	const char *line;		/* words parted by blanks */
	const char *setup;		/* of sh; standard input is ./in if it makes one */
	const char *holds;		/* SQL that tells what matters, where times are not the same each time */
	const char *allowed;		/* SQL: is this right, if it ended with trouble? */
	const char *again;		/* how it may end the second time if something had happened, besides as the first time */
};

#define CLAIMED "qinit && qadd -q mail one && qadd -q mail two && qclaim -c 2 mail >in"
#define DEAD "qinit && qset queue.mail.dead_to=stuck && qadd -q mail one && qadd -q mail two && qclaim -c 2 mail | qfail --dead -m refused -"
#define MANY "qinit && qset queue.mail.slo=30s/99% && seq 40 | qadd -q --lines mail && qclaim -c 20 mail | qdone -r fine --count 3 - && " \
	"qclaim -c 9 mail | qfail --dead -m refused -"
#define SOURCE(next) "qinit && printf '{\"name\":\"s\",\"url\":\"%s/items\",\"insecure_http\":true,\"queue\":\"in\",\"retries\":0,\"items\":\"/items\"," \
	"\"id\":\"/id\",\"cursor\":\"/updated_at\",\"start\":\"all\",\"order\":\"asc\",\"query\":{\"since\":\"{cursor}\",\"order\":\"asc\",\"limit\":3%s}," \
	"\"size\":3,\"next\":\"link\"}' \"$url\" '" next "' >s.json"

static const struct example EXAMPLES[] = {
	{ "qinit", "true", NULL, "SELECT count(*) = 1 FROM q_meta WHERE name = 'version'", NULL },
	{ "qinit --upgrade", "sqlite3 q.db 'PRAGMA journal_mode=WAL; PRAGMA application_id=0x71756575; PRAGMA user_version=1; PRAGMA wal_autocheckpoint=0' "
	    "\".read $top/t/schema-1.sql\" >log && rm log", NULL, NULL, NULL },
	{ "qinit --into", "sqlite3 q.db 'PRAGMA journal_mode=WAL; CREATE TABLE orders(id INTEGER PRIMARY KEY)' >log && rm log", NULL, NULL, NULL },
	{ "qadd -k k1 -t welcome -e ana --at 10:00 --tz Europe/Berlin mail hello", "qinit", NULL, NULL, NULL },
	{ "qadd --lines --tz Europe/Berlin --in 1h mail", "qinit && seq 5 >in", NULL, NULL, NULL },
	{ "qadd --jsonl mail", "qinit && printf '%s\\n' '{\"payload\":{\"a\":1},\"key\":\"k1\"}' '{\"payload\":\"two\",\"at\":\"10:00\",\"tz\":\"Europe/Berlin\"}' >in",
	    NULL, NULL, NULL },
	{ "qadd --replace -k k1 -j mail other", "qinit && qadd -q -k k1 mail hello", NULL, NULL, NULL },
	{ "qclaim -c 2 mail", "qinit && qset queue.mail.rate=10/s && qadd -q mail one && qadd -q -e ana mail two", NULL,
	    "SELECT count(*) = 0 FROM q_job WHERE state = 'claimed'", NULL },
	{ "qrenew -l 10m -", CLAIMED, NULL, NULL, NULL },
	{ "qdone -r fine --count 3 -", CLAIMED, NULL, NULL, NULL },
	{ "qfail --in 1h -m refused -", CLAIMED, NULL, NULL, NULL },
	{ "qfail --dead -m refused -", CLAIMED " && qset queue.mail.dead_to=stuck", NULL, NULL, NULL },
	{ "qcancel 1 2", "qinit && qadd -q mail one && qadd -q mail two", NULL, NULL, NULL },
	{ "qcancel -k k1 mail", "qinit && qadd -q -k k1 mail one", NULL, NULL, NULL },
	{ "qreplay mail", DEAD, NULL, NULL, "66" },
	{ "qls --json --state all mail", MANY, NULL, NULL, NULL },
	{ "qls 1", MANY, NULL, NULL, NULL },
	{ "qls --raw 7", MANY, NULL, NULL, NULL },
	{ "qls --counts", MANY, NULL, NULL, NULL },
	{ "qwork -c 3 mail -- ./handler", "qinit && qadd -q mail one && qadd -q -e ana mail two && printf '#!/bin/sh\\ncat\\n' >handler && chmod +x handler",
	    "SELECT j.id, j.state, a.outcome, a.result FROM q_job j LEFT JOIN q_attempt a ON a.job = j.id AND a.outcome = 'done' ORDER BY j.id",
	    "SELECT count(*) = 2 AND sum(state IN ('pending', 'claimed', 'done')) = 2 FROM q_job", NULL },
	{ "qjob --lock export nightly -- echo fine", "qinit", NULL, "SELECT count(*) <= 1 FROM q_job", NULL },
	{ "qlate --types", MANY, NULL, NULL, NULL },
	{ "qlate --prom -o prom", MANY, "SELECT * FROM q_job", NULL, NULL },
	{ "qlate --svg picture.svg", MANY, NULL, NULL, NULL },
	{ "qlate --check --every 6h --id me", MANY " && qset expect.nightly=26h", NULL, "SELECT count(*) = 40 FROM q_job", NULL },
	{ "qset -f in", "qinit && printf 'queue.mail.rate=10/s+20\\nrate.partner=5/s\\nqueue.mail.keep=30d\\n' >in", NULL, NULL, NULL },
	{ "qset", "qinit && qset queue.mail.rate=10/s rate.partner=5/s queue.mail.keep=30d", NULL, NULL, NULL },
	{ "qpause mail reason", "qinit", NULL, NULL, NULL },
	{ "qpoll s.json", SOURCE(""), "SELECT queue, key, (SELECT cursor FROM q_poll) FROM q_job", "SELECT count(*) = count(DISTINCT key) FROM q_job", NULL },
	{ "qpoll s.json -- cat", SOURCE(""), "SELECT cursor FROM q_poll WHERE cursor IS NOT NULL", "SELECT count(*) <= 1 FROM q_poll", NULL },
	{ "qrate partner -- echo fine", "qinit && qset rate.partner=10/s rate.partner.concurrency=2", NULL, "SELECT count(*) <= 1 FROM q_hold", NULL },
	{ "qrate --block 10s partner", "qinit && qset rate.partner=10/s", NULL, NULL, NULL },
	{ "qlock export -- echo fine", "qinit", NULL, "SELECT count(*) <= 1 FROM q_hold", NULL },
	{ "qonce k1 -- echo fine", "qinit", NULL, "SELECT count(*) = 1 FROM q_once WHERE (state = 'done' AND exit = 0) OR state = 'failed'", "69" },
	{ "qcall --insecure-http", "qinit && printf '{\"url\":\"%s/poke\",\"body\":{\"a\":1}}' \"$url\" >in", NULL, NULL, NULL },
	{ "qbackfill --name n --from 1 --to 3 --step 1 -- echo fine", "qinit", "SELECT start, state FROM q_window", "SELECT count(*) <= 2 FROM q_window", NULL },
	{ "qbackfill --from 2026-03-01T00:00:00Z --to 2026-03-01T00:00:06Z --step 4s s.json", SOURCE(",\"until\":\"{to}\""),
	    "SELECT start, state, (SELECT group_concat(key) FROM q_job) FROM q_window", "SELECT count(*) = count(DISTINCT key) FROM q_job", NULL },
	{ "qbackup copy.db", MANY, NULL, NULL, "73" },
	{ "qcron table", "qinit && echo 'nightly 30 2 * * * tz=Europe/Berlin jitter=20m reports {\"a\":1}' >table && Q_NOW=2026-06-01T00:00:00Z qcron table",
	    NULL, NULL, NULL },
	{ "qhook -q -L unix:socket table", "qinit && printf 'a secret of the tests\\n' >key && chmod 600 key && "
	    "echo '/gh github key queue=hooks max=1000' >table", "SELECT queue, key, body FROM q_job JOIN q_body ON job = id", NULL, NULL },
	{ "qcheck", MANY, NULL, "SELECT count(*) = 40 FROM q_job", NULL },
	{ "qpurge --grace 1h", MANY " && qset queue.mail.keep=1h", NULL, "SELECT count(*) = 40 FROM q_job", NULL },
};

enum { CASES = sizeof EXAMPLES / sizeof *EXAMPLES, MIDDLES = 64, FEW = 60 };

static const char *top;
static char dir[PATH_MAX], work[PATH_MAX + 8], base[PATH_MAX + 8];
static char out[1 << 16], said[1 << 16];
static bool verbose, control;
static const struct example *ex;
static struct left judged, start, ref;	/* start: before the run */
static uint64_t middles[MIDDLES];
static int nmiddles, *copies;

/* ---- files ---- */

static void
copy(const char *from, const char *to)
{
	char buf[1 << 16];
	struct stat st;
	ssize_t n;
	int in = open(from, O_RDONLY | O_CLOEXEC), o;

	if (in == -1 || fstat(in, &st) == -1 || (o = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, st.st_mode & 0777)) == -1)
		err(2, "%s to %s", from, to);
	while ((n = read(in, buf, sizeof buf)) > 0)
		if (write(o, buf, (size_t)n) != n)
			err(2, "%s", to);
	close(in);
	close(o);
}

/* each() for every name in a folder but the dotted ones. */
static void
names(const char *folder, void (*each)(const char *folder, const char *name, void *), void *arg)
{
	struct dirent **list;
	int n = scandir(folder, &list, NULL, alphasort);

	if (n == -1)
		err(2, "%s", folder);
	for (int i = 0; i < n; i++) {
		if (list[i]->d_name[0] != '.')
			each(folder, list[i]->d_name, arg);
		free(list[i]);
	}
	free(list);
}

static void
drop(const char *folder, const char *name, void *arg)
{
	char path[PATH_MAX + 300];

	(void)arg;
	snprintf(path, sizeof path, "%s/%s", folder, name);
	if (unlink(path) == -1)
		err(2, "%s", path);
}

static const char *const OURS[] = { "q.db-shm", "q.db-lock", "q.db-reserve", "q.db-wal", "q.db" };
enum { KEPT = 3 };			/* of these, those in which nothing is kept */

static bool
kept(const char *name)
{
	for (int i = 0; i < KEPT; i++)
		if (strcmp(name, OURS[i]) == 0)
			return false;
	return true;
}

static void
put(const char *folder, const char *name, void *to)
{
	char a[PATH_MAX + 300], b[PATH_MAX + 300];

	if (!kept(name))
		return;
	snprintf(a, sizeof a, "%s/%s", folder, name);
	snprintf(b, sizeof b, "%s/%s", (const char *)to, name);
	copy(a, b);
}

static void
compare(const char *folder, const char *name, void *same)
{
	static char a[1 << 20], b[1 << 20];
	char path[PATH_MAX + 300];
	int fd[2];
	ssize_t n = 0, m = 0;

	if (!kept(name) || !*(bool *)same)
		return;
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", i == 0 ? work : base, name);
		fd[i] = open(path, O_RDONLY | O_CLOEXEC);
	}
	(void)folder;
	if (fd[0] != -1 && fd[1] != -1)
		while ((n = read(fd[0], a, sizeof a)) == (m = read(fd[1], b, sizeof b)) && n > 0 && memcmp(a, b, (size_t)n) == 0)
			;
	*(bool *)same = fd[0] != -1 && fd[1] != -1 && n == 0 && m == 0;
	close(fd[0]);
	close(fd[1]);
}

/* Are they, byte for byte, as before the run? */
static bool
untouched(void)
{
	bool same = true;

	names(base, compare, &same);
	names(work, compare, &same);
	return same;
}

static void
set_up(const char *to, const char *from)
{
	names(to, drop, NULL);
	names(from, put, (void *)to);
}

static uint64_t
hash(uint64_t h, const void *p, size_t len)
{
	for (const unsigned char *b = p; len > 0; b++, len--)
		h = (h ^ *b) * UINT64_C(0x100000001b3);
	return h;
}

static char *
contents(const char *name, char *buf, size_t size)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd == -1 ? -1 : read(fd, buf, size - 1);

	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

static void
add_file(const char *folder, const char *name, void *h)
{
	static char text[1 << 16];
	char path[PATH_MAX + 300], *rest = NULL;
	size_t n = strlen(name);

	for (size_t i = 0; i < sizeof OURS / sizeof *OURS; i++)
		if (strcmp(name, OURS[i]) == 0)
			return;
	if (n > 4 && strcmp(name + n - 4, "-shm") == 0)
		return;
	*(uint64_t *)h = hash(*(uint64_t *)h, name, n + 1);
	if (n > 3 && strcmp(name + n - 3, ".db") == 0)
		return;
	snprintf(path, sizeof path, "%s/%s", folder, name);
	contents(path, text, sizeof text);
	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		if (strstr(line, "bytes") == NULL)	/* free on the disk */
			*(uint64_t *)h = hash(*(uint64_t *)h, line, strlen(line));
}

/* ---- the judge ---- */

static uint64_t
hash_rows(sqlite3 *c, const char *sql, uint64_t h)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(c, sql, -1, &s, NULL), type;

	while (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(s); i++) {
			if (strcmp(sqlite3_column_name(s, i), "worker") == 0)
				continue;
			type = sqlite3_column_type(s, i);
			h = hash(h, &type, sizeof type);
			h = hash(h, sqlite3_column_blob(s, i), (size_t)sqlite3_column_bytes(s, i));
		}
		h = hash(h, sql, strlen(sql));
		rc = SQLITE_OK;
	}
	if (rc != SQLITE_DONE && strncmp(sqlite3_errmsg(c), "no such table", 13) != 0)	/* which is made at the first use */
		snprintf(judged.damage, sizeof judged.damage, "%s", sqlite3_errmsg(c));
	sqlite3_finalize(s);
	return h;
}

static bool
yes(sqlite3 *c, const char *sql)
{
	sqlite3_stmt *s = NULL;
	bool is = sqlite3_prepare_v2(c, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0) == 1;

	sqlite3_finalize(s);
	return is;
}

/* Rows of all tables; no table is the same as an empty one. */
static uint64_t
look(const char *path, const char *holds, const char *allowed)
{
	static const char TABLES[] = "SELECT 'SELECT * FROM \"' || name || '\"' FROM sqlite_schema WHERE type = 'table' ORDER BY name";
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	sqlite3_stmt *s = NULL;
	sqlite3 *c = NULL;

	if (access(path, F_OK) == -1)
		return 0;
	if (sqlite3_open_v2(path, &c, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		err(2, "%s", path);
	sqlite3_db_config(c, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (!yes(c, "SELECT integrity_check = 'ok' FROM pragma_integrity_check(1)"))
		snprintf(judged.damage, sizeof judged.damage, "integrity_check: %s", sqlite3_errmsg(c));
	else if (holds != NULL)
		h = hash_rows(c, holds, h);
	else {
		if (sqlite3_prepare_v2(c, TABLES, -1, &s, NULL) == SQLITE_OK)
			while (sqlite3_step(s) == SQLITE_ROW)
				h = hash_rows(c, (const char *)sqlite3_column_text(s, 0), h);
		sqlite3_finalize(s);
	}
	judged.allowed = allowed != NULL && yes(c, allowed);
	sqlite3_close(c);
	return h;
}

static void
judge(const char *folder)
{
	char path[PATH_MAX + 32];

	judged = (struct left){ 0 };
	names(folder, add_file, &judged.files);
	snprintf(path, sizeof path, "%s/copy.db", folder);
	judged.files ^= look(path, NULL, NULL);
	snprintf(path, sizeof path, "%s/q.db", folder);
	judged.rows = look(path, ex->holds, ex->allowed);
	sqlite3_shutdown();	/* so that programs configure it */
}

/* ---- programs ---- */

/* At a sync, in a process of its own, since closing a file frees the locks on it. */
static void
keep(void)
{
	char to[PATH_MAX + 32];
	pid_t pid;

	if (*copies == MIDDLES)
		return;
	snprintf(to, sizeof to, "%s/m%d", dir, (*copies)++);
	if ((pid = (pid_t)vfork()) == 0) {
		execl("/bin/sh", "sh", "-c", "exec cp q.db q.db-wal \"$0\" 2>/dev/null", to, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

/* Sends one event to qhook, and TERM when it is answered. */
static void
send_event(pid_t pid, pid_t client)
{
	static const char REQUEST[] = "POST /gh HTTP/1.1\r\nHost: h\r\nX-GitHub-Event: push\r\nX-GitHub-Delivery: e1\r\n"
	    "X-Hub-Signature-256: sha256=4710764b482ac5a7b8df67d132c115dead230643af8b2406eef5c05cb544c26d\r\n"
	    "Content-Type: application/json\r\nContent-Length: 7\r\nConnection: close\r\n\r\n{\"a\":1}";
	struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = "socket" };
	char answer[4096] = "";
	size_t got = 0;
	ssize_t n;
	int fd;

	(void)client;
	alarm(5);
	for (;;) {
		if ((fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) == -1)
			_exit(2);
		if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
			break;
		close(fd);
		if (kill(pid, 0) == -1)
			_exit(0);
		nanosleep(&(struct timespec){ 0, 500000 }, NULL);
	}
	if (send(fd, REQUEST, sizeof REQUEST - 1, MSG_NOSIGNAL) > 0)
		while (got < sizeof answer - 1 && (n = read(fd, answer + got, sizeof answer - 1 - got)) > 0)
			got += (size_t)n;
	kill(pid, SIGTERM);
	fd = open("../out", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	_exit(fd != -1 && dprintf(fd, "%.12s", answer) >= 0 ? 0 : 2);
}

static void
child(void)
{
	char line[512], *words[32], *state = NULL;
	int argc = 0, in = open("in", O_RDONLY);
	size_t i;

	if (in == -1)
		in = open("/dev/null", O_RDONLY);
	dup2(in, 0);
	close(in);
	for (int fd = 1; fd < 3; fd++) {
		in = open(fd == 1 ? "../out" : "../err", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
		dup2(in, fd);
		close(in);
	}
	snprintf(line, sizeof line, "%s", ex->line);
	for (char *w = strtok_r(line, " ", &state); w != NULL; w = strtok_r(NULL, " ", &state))
		words[argc++] = w;
	words[argc] = NULL;
	for (i = 0; strcmp(MAINS[i].name, words[0]) != 0; i++)
		;
	optind = 0;		/* of this program's own getopt(3) */
	inject_arm();
	exit(MAINS[i].main(argc, words));
}

static void
kill_children(void)
{
	char path[64], text[1024], *p = text;

	snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
	contents(path, text, sizeof text);
	for (long pid; (pid = strtol(p, &p, 10)) > 0; )
		kill((pid_t)pid, SIGKILL);
}

static int
run(void)
{
	const struct timespec SECOND = { 1, 0 };
	sigset_t chld;
	pid_t pid, client = -1, ended;
	int status, how = 0, waited = 0;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	if ((pid = fork()) == -1)
		err(2, "fork");
	if (pid == 0) {
		sigprocmask(SIG_UNBLOCK, &chld, NULL);
		child();
	}
	if (strncmp(ex->line, "qhook", 5) == 0 && (client = fork()) == 0)
		send_event(pid, client);
	for (;;) {
		while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
			if (ended == pid && pid != 0) {
				how = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
				pid = 0;
			}
		if (ended == -1 && errno == ECHILD)
			return how;
		/* A minder ends when its master is gone. */
		if (sigtimedwait(&chld, NULL, &SECOND) != -1 || errno != EAGAIN)
			continue;
		/* What is to be done in the end, such as to settle, is tried as long as there is time: so the fault is over after a second. */
		if (++waited == 1)
			inject_stop();
		else if (waited == 6) {
			how = pid == 0 ? -2 : -1;
			pid = 0;
			kill_children();
		}
	}
}

/* clean: what is unchanged was judged before. */
static struct left
run_and_judge(bool clean)
{
	char name[PATH_MAX + 8];
	struct left l;
	int status = run();

	snprintf(name, sizeof name, "%s/out", dir);
	contents(name, out, sizeof out);
	for (char *p = out, *end; (p = strstr(p, "\"worker\":\"")) != NULL; p += 10)	/* the process is in it */
		if ((end = strchr(p + 10, '"')) != NULL)
			memmove(p + 10, end, strlen(end) + 1);
	snprintf(name, sizeof name, "%s/err", dir);
	contents(name, said, sizeof said);
	if (clean && untouched())
		l = start;
	else {
		judge(work);
		l = judged;
	}
	l.status = status;
	l.out = hash(0, out, strlen(out));
	return l;
}

/* The clock of the second run of what had happened already: leases are over. */
static void
clock_at(bool later)
{
	setenv("Q_NOW", later ? "2026-06-02T13:00:00Z" : "2026-06-02T12:00:00Z", 1);
	setenv("Q_BOOT", later ? "b1:4600000" : "b1:1000000", 1);
}

static void
reference(void)
{
	static const char *last;
	char command[PATH_MAX + 2000], to[PATH_MAX + 32];

	clock_at(false);
	if (last == NULL || strcmp(ex->setup, last) != 0) {
		names(work, drop, NULL);
		names(base, drop, NULL);
		snprintf(command, sizeof command, "set -e\n%s", ex->setup);
		if (system(command) != 0)
			errx(2, "%s: set-up: %s", ex->line, ex->setup);
		names(work, put, base);
	} else
		set_up(work, base);
	last = ex->setup;
	judge(work);
	start = judged;
	set_up(work, base);
	*copies = 0;
	inject_set(0, 0, false);
	inject_synced = keep;
	ref = run_and_judge(false);
	inject_synced = NULL;
	if (ref.status > 1 || ref.damage[0] != '\0')
		errx(2, "%s: without a fault: exit %d: %s%s", ex->line, ref.status, said, ref.damage);
	nmiddles = 0;
	for (int i = 0; i < *copies; i++) {
		snprintf(to, sizeof to, "%s/m%d", dir, i);
		judge(to);
		middles[nmiddles++] = judged.rows;
		names(to, drop, NULL);
	}
	middles[nmiddles++] = ref.rows;
}

static bool
among(const char *statuses, int status)
{
	char word[8];

	snprintf(word, sizeof word, "%d", status);
	return statuses != NULL && strstr(statuses, word) != NULL;
}

/* What is wrong with the end of a run in which something failed; NULL: nothing. */
static const char *
fault(const struct left *l, enum inject what, bool on)
{
	static char text[300];
	bool undone = l->rows == start.rows, known = false;
	bool stays = what == STAT_EIO && strncmp(ex->line, "qhook", 5) == 0;	/* a socket that may not be its own any more */
	size_t n = strcspn(ex->line, " ");

	for (int i = 0; i < nmiddles; i++)
		known = known || l->rows == middles[i];
	if (l->status == -1 || l->status == -2)
		return l->status == -1 ? "it did not end" : "a process is left";
	if (l->damage[0] != '\0') {
		snprintf(text, sizeof text, "damaged: %s", l->damage);
		return text;
	}
	/* A server ends well; what it answered is what counts. */
	if (strncmp(ex->line, "qhook", 5) == 0 && strstr(out, " 200") == NULL && l->status == Q_OK)
		return undone || ((*out == '\0' || strstr(said, "it may have happened") != NULL) && known) ? NULL : "it has not answered 200, and something has happened";
	if (l->status == ref.status) {
		if (l->rows != ref.rows && !l->allowed)
			return undone ? "it ends well, and nothing has happened" : "it ends well, and what has happened is something else";
		return l->allowed ? NULL : l->out != ref.out ? "it ends well, and its output is not the same" : l->files != ref.files && what != NAME_EIO && !stays ? "it ends well, and its files are not the same" : NULL;
	}
	/* What cannot be read is a finding, too. */
	if (strcmp(ex->line, "qcheck") == 0 && l->status == Q_NO && *out != '\0' && (what <= READ_END || what == STAT_EIO))
		return l->allowed ? NULL : "it finds something, and something has happened";
	if (l->status != Q_UNKNOWN && l->status != Q_TEMP && l->status != Q_IO && l->status != Q_CREATE &&
	    !(l->status == Q_CONFIG && (what == READ_END || strstr(said, "cannot be read") != NULL || strstr(said, "out of memory") != NULL))) {
		snprintf(text, sizeof text, "exit %d", l->status);
		return text;
	}
	if (strncmp(said, ex->line, n) != 0 || said[n] != ':')
		return "it does not say why";
	if (what == MEMORY && l->status != Q_TEMP && strstr(said, "memory") == NULL && strstr(said, ": no answer: ") == NULL)
		return "it does not say that memory ran out";
	/* Without memory, for example, what was done in an earlier step cannot be taken back. */
	if (undone || l->allowed || (known && (l->status == Q_UNKNOWN || strstr(said, ": standard output: ") != NULL || (on && ex->allowed != NULL))))
		return NULL;
	return known ? "trouble, and something has happened" : "trouble, and something else has happened";
}

static int64_t injections, violations;

static void
tell(const char *wrong, enum inject what, int64_t nth, bool on)
{
	violations++;
	printf("wrong: %s: -k %s -t %" PRId64 "%s: %s\n  exit %d; %.*s\n", ex->line, INJECT[what], nth, on ? " on" : "", wrong,
	    judged.status, (int)strcspn(said, "\n"), said);
	fflush(stdout);
}

/* False: there are fewer calls than that. */
static bool
inject(enum inject what, int64_t nth, bool on)
{
	static char seen[1 << 20];
	struct left l, second;
	const char *wrong;
	char line[600];

	set_up(work, base);
	inject_set(what, nth, on);
	l = run_and_judge(true);
	if (inject_failed() == 0)
		return false;
	injections++;
	judged.status = l.status;
	if ((wrong = fault(&l, what, on)) != NULL)
		tell(wrong, what, nth, on);
	snprintf(line, sizeof line, "%-8s %.*s %d %.400s\n", INJECT[what], (int)strcspn(ex->line, " "), ex->line, l.status, said);
	if (verbose && strstr(seen, line) == NULL && strlen(seen) + strlen(line) < sizeof seen) {
		strcat(seen, line);
		fputs(line, stdout);
	}
	if (wrong != NULL || l.status == ref.status || untouched())
		return true;
	inject_set(what, 0, false);
	clock_at(l.rows != start.rows);
	second = run_and_judge(false);
	clock_at(false);
	judged.status = second.status;
	if (second.status != ref.status && !((l.rows != start.rows || l.files != start.files) && among(ex->again, second.status)))
		tell("the second run, without a fault, does not end well", what, nth, on);
	else if (second.damage[0] != '\0')
		tell("damaged after the second run", what, nth, on);
	else if (ex->holds != NULL && second.status == ref.status && second.rows != ref.rows)
		tell("after the second run, without a fault, something else has happened", what, nth, on);
	else if (l.rows == start.rows && (second.rows != ref.rows || (second.files != ref.files && what != NAME_EIO && second.status == ref.status)))
		tell(second.rows != ref.rows ? "the second run, without a fault, did something else" : "the second run left other files", what, nth, on);
	return true;
}

/* ---- */

static uint64_t
rnd(uint64_t *rng, uint64_t below)
{
	*rng ^= *rng << 13;
	*rng ^= *rng >> 7;
	*rng ^= *rng << 17;
	return (*rng * UINT64_C(0x2545f4914f6cdd1d) >> 20) % below;
}

static int64_t
few(int64_t calls)
{
	return calls < FEW ? calls : FEW;
}

static bool
chosen(int k, const char *kind)
{
	return kind == NULL || strcmp(kind, INJECT[k]) == 0;
}

static void
start_server(void)
{
	static const char ROWS[] = "[{\"id\":\"a\",\"stamp\":1772323200000},{\"id\":\"b\",\"stamp\":1772323201000},{\"id\":\"c\",\"stamp\":1772323202000},"
	    "{\"id\":\"d\",\"stamp\":1772323202000},{\"id\":\"e\",\"stamp\":1772323203500}]";
	char command[PATH_MAX + 600], line[64];
	FILE *f;

	snprintf(command, sizeof command, "exec \"%s/t/serve\"", top);
	if ((f = popen(command, "re")) == NULL || fgets(line, sizeof line, f) == NULL)
		errx(2, "t/serve does not start");
	snprintf(command, sizeof command, "http://127.0.0.1:%ld", strtol(line, NULL, 10));
	setenv("url", command, 1);
	snprintf(command, sizeof command, "\"$top/t/serve\" $url/_set '%s' >/dev/null", ROWS);
	if (system(command) != 0)
		errx(2, "t/serve does not answer");
}

int
main(int argc, char *argv[])
{
	int64_t wanted = 0, nth = 0, calls[INJECTS], step, next, so_far, wrong;
	const char *program = NULL, *kind = NULL;
	uint64_t rng = 1;
	char path[PATH_MAX + 100];
	sigset_t chld;
	bool list = false;
	pid_t pid;
	int c, status;

	while ((c = getopt(argc, argv, "clvs:n:p:k:t:")) != -1)
		switch (c) {
		case 'c': control = true; break;
		case 'l': list = true; break;
		case 'v': verbose = true; break;
		case 's': rng = strtoull(optarg, NULL, 10) * 2 + 1; break;
		case 'n': wanted = strtoll(optarg, NULL, 10); break;
		case 'p': program = optarg; break;
		case 'k': kind = optarg; break;
		case 't': nth = strtoll(optarg, NULL, 10); break;
		default: errx(2, "see the source");
		}
	if (list) {
		for (size_t i = 0; i < sizeof MAINS / sizeof *MAINS; i++)
			puts(MAINS[i].name);
		return 0;
	}
	if (argc - optind != 2 || (top = realpath(argv[optind], NULL)) == NULL || realpath(argv[optind + 1], dir) == NULL)
		errx(2, "see the source");
	snprintf(work, sizeof work, "%s/work", dir);
	snprintf(base, sizeof base, "%s/base", dir);
	if (mkdir(work, 0700) == -1 || mkdir(base, 0700) == -1 || chdir(work) == -1)
		err(2, "%s", dir);
	for (int i = 0; i < MIDDLES; i++) {
		snprintf(path, sizeof path, "%s/m%d", dir, i);
		if (mkdir(path, 0700) == -1)
			err(2, "%s", path);
	}
	copies = mmap(NULL, sizeof *copies, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	snprintf(path, sizeof path, "%s/cmd:%s", top, getenv("PATH"));
	setenv("PATH", path, 1);
	snprintf(path, sizeof path, "%s/q.db", work);
	setenv("Q_DB", path, 1);
	setenv("top", top, 1);
	setenv("HOME", work, 1);
	setenv("TMPDIR", work, 1);
	setenv("TZ", "UTC", 1);
	setenv("LC_ALL", "C", 1);
	setenv("Q_BUSY_TIMEOUT", "50ms", 1);
	umask(022);
	start_server();
	/* OpenSSL 3.0 crashes without memory when it is used first. */
	EVP_Digest("", 0, (unsigned char[EVP_MAX_MD_SIZE]){ 0 }, NULL, EVP_sha256(), NULL);
	/* What a program leaves behind becomes a child of this process, which has no other. */
	if ((pid = fork()) > 0)
		return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	inject_lie(control);
	for (int i = 0; i < CASES; i++) {
		ex = &EXAMPLES[i];
		if (program != NULL && (strncmp(ex->line, program, strlen(program)) != 0 || strchr(" ", ex->line[strlen(program)]) == NULL))
			continue;
		reference();
		so_far = injections;
		wrong = violations;
		for (int k = 0; k < INJECTS; k++)
			calls[k] = chosen(k, kind) ? inject_count(k) : 0;
		/* A few of all the calls, at the same distance; of thousands of one kind as few as of FEW, or they would be nearly all. */
		for (int k = step = 0; k < INJECTS; k++)
			step += 2 * few(calls[k]);
		step = wanted == 0 ? 1 : step * (program != NULL ? 2 : CASES) / wanted + 1;
		next = 1 + (int64_t)rnd(&rng, (uint64_t)step);
		for (int k = 0; k < INJECTS; k++)
			for (int on = 0; on < 2; on++) {
				if (nth != 0 && chosen(k, kind))
					inject(k, nth, on == 1);
				else if (step > 1)
					for (; next <= few(calls[k]); next += step)
						inject(k, 1 + ((next - 1) * calls[k] + (int64_t)rnd(&rng, (uint64_t)calls[k])) / few(calls[k]), on == 1);
				else if (chosen(k, kind))
					for (int64_t t = 1; inject(k, t, on == 1); t++)
						;
				next -= few(calls[k]);
			}
		printf("%s: injections %" PRId64 ", wrong %" PRId64 "\n", ex->line, injections - so_far, violations - wrong);
	}
	printf("fault: injections %" PRId64 "; violations %" PRId64 "\n", injections, violations);
	return violations != 0;
}
