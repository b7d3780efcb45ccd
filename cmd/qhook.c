/* qhook - take webhooks in: verify, store, answer */

#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "door.h"
#include "inbox.h"
#include "prog.h"

static const char HELP[] =
"usage: qhook [-hVqv] [-d FILE] [-L ADDR] TABLE\n"
"       qhook [-hV] --check TABLE\n"
"       qhook [-hV] [-d FILE] --verify TABLE ID... | -\n"
"Take webhooks over HTTP: each is verified, made a job, once however often it is\n"
"sent, and answered when it is on disk.  TABLE says which paths there are; a line\n"
"is PATH SCHEME SECRETFILE[,SECRETFILE...] queue=QUEUE and what qhook(1) lists.\n"
"  qhook -L 127.0.0.1:8090 hooks      qhook -L unix:/run/qhook/socket hooks\n"
"  -L, --listen ADDR  127.0.0.1:PORT, [::1]:PORT or unix:PATH, and a proxy with\n"
"                     TLS in front; PORT 0: a free one, printed.  Without -L\n"
"                     the socket that a service manager hands over\n"
"  --check            are TABLE and its secrets good?  0, else 77 or 78 and why\n"
"  --verify           judge stored events again, by today's secrets: a line of\n"
"                     JSON each; 0 all good, 1 some not, 66 no such event\n"
"  -q, --quiet        refused requests are not told; -v, --verbose: all are\n"
"HUP reads TABLE again: all of it is good, or the old one stays.  TERM ends it\n"
"when those who came are served.\n"
"Exit: 0 after TERM, 66 no TABLE or file, 73, 75, 77 no socket, 77 secrets that\n"
"others can read, 78 a bad TABLE.\n";

enum { CHECK = 256, VERIFY, TOLD = 10, MINUTE = 60 * 1000 };	/* TOLD: refusals a minute */
static const struct option LONGS[] = {
	{ "listen", 1, NULL, 'L' }, { "quiet", 0, NULL, 'q' }, { "verbose", 0, NULL, 'v' }, { "check", 0, NULL, CHECK },
	{ "verify", 0, NULL, VERIFY }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qhook", .help = HELP, .shorts = "qvL:", .longs = LONGS, .stays = true };

struct table { struct hook_table *rows; int users; };	/* an old one goes with the last request that began under it */

struct event {				/* what a call is here */
	struct table *table;
	const struct hook *line;
	struct hook_request request;
	struct hook_verdict verdict;
	struct inbox in;
	bool stored;
};

static const char *file;		/* the table's */
static struct table *table;
static struct db *db;
static bool verbose, draining, reopen;
static int64_t refused, probed;		/* requests, since the file could not be written; when it was last tried */
static bool ill;

/* ---- telling ---- */

static int told, untold;
static int64_t since;

static void
tell_rest(bool end)
{
	if (!end && when_elapsed() - since < MINUTE)
		return;
	if (untold > 0)
		prog_warn("%d more requests were refused", untold);
	told = untold = 0;
	since = when_elapsed();
}

/* Nothing of a query, a header or a body: there may be secrets in it. */
static void
tell(const struct call *c)
{
	const char *target = c->head.target;
	const struct event *e = c->arg;
	int n = target != NULL ? (int)strcspn(target, "?") : 0;
	char job[32] = "";

	if (!verbose && (self.quiet || c->status < 400 || c->why == NULL))
		return;
	tell_rest(false);
	if (!verbose && ++told > TOLD) {
		untold++;
		return;
	}
	if (e != NULL && e->stored)
		snprintf(job, sizeof job, ": job %" PRId64, e->in.id);
	prog_warn("%.*s%s%d%s%s%s%s", n < 200 ? n : 200, n > 0 ? target : "", n > 0 ? ": " : "", c->status, c->why != NULL ? ": " : "", c->why != NULL ? c->why : "",
	    job, *job != '\0' && e->in.known ? ", known" : "");
}

/* ---- the file ---- */

static void
fell_ill(int status)
{
	if (!ill)
		prog_warn("%s; answering 503 until that has changed", db_message(db));
	ill = true;
	reopen |= status == Q_CONFIG || status == Q_PERM || status == Q_BUG;
}

static void
is_well(void)
{
	if (ill)
		prog_warn("%s: can be written again; %" PRId64 " requests were answered 503", db_path(db), refused);
	ill = false;
	refused = 0;
}

/* The file may have been put back, or its mode changed. */
static int
ready(void)
{
	int rc;

	if (!reopen)
		return Q_OK;
	db_close(db);
	if ((rc = db_open(&db, self.database, DB_STAY)) == Q_OK && (rc = db_tables(db, FOR_QHOOK)) == Q_OK)
		reopen = false;
	if (db == NULL)
		prog_die(Q_TEMP, "out of memory");
	return rc;
}

/* Would an event be taken?  By a look, since nobody may send one before this says so. */
static bool
healthy(void)
{
	int rc;

	if (ill && when_elapsed() - probed >= 1000) {
		probed = when_elapsed();
		if ((rc = ready()) == Q_OK && (rc = db_begin(db, true)) == Q_OK) {
			db_rollback(db);
			is_well();
		}
	}
	return !draining && !ill;
}

/* All of these, or none. */
static int
commit(struct event **events, size_t n, int64_t now)
{
	int rc = db_begin(db, true);

	for (size_t i = 0; rc == Q_OK && i < n; i++)
		rc = inbox_add(db, &events[i]->in, now);
	if (rc == Q_OK)
		return db_commit(db);
	db_rollback(db);
	return rc;
}

static void
store(struct event **events, size_t n, int64_t now)
{
	size_t each = n;
	int rc;

	for (size_t i = 0; i < n; i += each) {
		rc = commit(events + i, each, now);
		if (rc != Q_OK && rc != Q_TEMP && rc != Q_UNKNOWN && each > 1) {	/* one that cannot be stored is not to fail the others */
			each = 1;
			rc = commit(events, 1, now);
		}
		if (rc == Q_OK)
			is_well();
		else
			fell_ill(rc);
		for (size_t j = i; j < i + each; j++)
			events[j]->stored = rc == Q_OK;
	}
}

/* ---- what is refused ---- */

struct mark {				/* a path, and its requests since the last good event */
	struct mark *next;
	struct inbox_refused r;		/* n: of which the file does not know */
	enum { PERHAPS, NONE, ROW } kept;	/* in the file */
	bool due;
	char why[100], path[];
};
static struct mark *marks;
static int64_t mark_again;		/* by when_elapsed() */

static void
mark(const struct call *c)
{
	const struct event *e = c->arg;
	const char *path = c->head.target;
	size_t n = strcspn(path, "?");
	struct mark *m = marks;
	int64_t now = when_now();

	if (c->status == 0 || c->status == 408 || c->status == 503 || (c->status < 400 && !e->stored))
		return;
	while (m != NULL && (strncmp(m->path, path, n) != 0 || m->path[n] != '\0'))
		m = m->next;
	if (m == NULL) {
		if ((m = calloc(1, sizeof *m + n + 1)) == NULL)
			return;
		memcpy(m->path, path, n);
		m->r.path = m->path;
		m->r.why = m->why;
		m->next = marks;
		marks = m;
	}
	m->r.status = c->status;
	if (c->status < 400) {
		m->r.n = 0;
		return;
	}
	if (m->r.n++ == 0)
		m->r.since_ms = now;
	m->r.last_ms = now;
	snprintf(m->why, sizeof m->why, "%s", c->why != NULL ? c->why : "");
}

/* The first one of a path, and a good one after it, at once; others of a flood once a minute. */
static void
note(bool all)
{
	int64_t now = when_elapsed();
	int rc = Q_NO;

	if (ill || reopen || (now < mark_again && !all))
		return;
	all |= now - mark_again >= MINUTE;
	for (struct mark *m = marks; m != NULL; m = m->next) {
		m->due = m->r.status < 400 ? m->kept != NONE : m->r.n > 0 && (all || m->kept != ROW);
		if (m->due && rc == Q_NO)
			rc = db_begin(db, false);
		if (m->due && rc == Q_OK && (rc = inbox_refuse(db, &m->r)) != Q_OK)
			db_rollback(db);
	}
	if (rc == Q_OK)
		rc = db_commit(db);
	mark_again = rc == Q_NO ? mark_again : rc == Q_OK ? now : now + 1000;	/* it is not worth more */
	for (struct mark *m = marks; rc == Q_OK && m != NULL; m = m->next)
		if (m->due) {
			m->kept = m->r.status < 400 ? NONE : ROW;
			m->r.n = 0;
		}
}

/* ---- requests ---- */

static int
begin(struct call *c)
{
	static const struct { int status; const char *why; } WHY[] = { { 404, "no such path in the table" },
		{ 405, "not the method of this path" }, { 415, "a Content-Encoding: what was signed cannot be told" }, { 400, "a header that is there twice" } };
	struct hook_request request = { .method = c->head.method, .target = c->head.target, .fields = c->head.fields, .nfields = c->head.nfields };
	const struct hook *line;
	struct event *e;
	int status = hook_head(table->rows, &request, &line, &c->max, &c->allow);

	for (size_t i = 0; i < sizeof WHY / sizeof *WHY; i++)
		if (WHY[i].status == status)
			c->why = WHY[i].why;
	if (status == 200)
		return healthy() ? 200 : 503;
	if (status != 0)
		return status;
	if ((e = c->arg = calloc(1, sizeof *e)) == NULL) {
		c->why = "out of memory";
		return 503;
	}
	*e = (struct event){ .table = table, .line = line, .request = request };
	table->users++;
	return 0;
}

/* True: it is an event that is not there yet. */
static bool
judge(struct call *c, int64_t now)
{
	struct event *e = c->arg;
	const struct hook_verdict *v = &e->verdict;
	int rc;

	e->request.body = c->body != NULL ? c->body : "";
	e->request.len = c->len;
	if (!hook_judge(e->line, &e->request, now, &e->verdict)) {
		c->status = 503;
		c->why = "out of memory";
		return false;
	}
	c->status = v->status;
	c->why = v->why;
	if (!v->event) {
		c->text = v->answer;
		c->type = v->answer_type;
		return false;
	}
	e->in = (struct inbox){ .request = &e->request, .verdict = v };
	if ((rc = ready()) == Q_OK && (rc = inbox_look(db, &e->in, now)) == Q_OK &&
	    (!e->in.known || (rc = db_sync(db)) == Q_OK)) {
		e->stored = e->in.known;
		return !e->in.known;
	}
	if (rc == Q_DATA)
		prog_warn("%s: %s", v->path, db_message(db));
	else
		fell_ill(rc);
	return false;
}

static void
serve(struct call **calls, size_t n)
{
	struct event **events = malloc(n * sizeof *events);
	int64_t now = when_now();
	size_t new = 0;

	for (size_t i = 0; i < n; i++)
		if (judge(calls[i], now) && events != NULL)
			events[new++] = calls[i]->arg;
	store(events, new, now);
	free(events);
	for (size_t i = 0; i < n; i++) {
		struct event *e = calls[i]->arg;

		if (!e->verdict.event)
			continue;
		if (e->stored) {
			calls[i]->text = e->verdict.answer;
			calls[i]->type = e->verdict.answer_type;
		} else {
			calls[i]->status = 503;	/* our own trouble is never the client's */
			refused++;
		}
	}
}

static void
let_go(struct table *t)
{
	if (t == table || t->users > 0)
		return;
	hook_free(t->rows);
	free(t);
}

static void
end(struct call *c)
{
	struct event *e = c->arg;

	if (c->status != 0)
		tell(c);
	if (e == NULL)
		return;
	mark(c);
	hook_done(&e->verdict);
	e->table->users--;
	let_go(e->table);
	free(e);
}

/* ---- the table ---- */

static struct table *
read_table(int *status, char *message, size_t size)
{
	struct table *t = calloc(1, sizeof *t);

	if (t == NULL)
		prog_die(Q_TEMP, "out of memory");
	if ((*status = hook_read(file, &t->rows, message, size)) == Q_OK)
		return t;
	free(t);
	return NULL;
}

static void
warn_insecure(void)
{
	const char *path;

	for (int i = 0; (path = hook_insecure(table->rows, i)) != NULL; i++)
		prog_warn("%s: takes what anybody sends, unverified", path);
}

static void
reload(void)
{
	struct table *old = table, *new;
	char message[1024];
	int status;

	if ((new = read_table(&status, message, sizeof message)) == NULL) {
		prog_warn("%s; the old table stays", message);
		return;
	}
	table = new;
	let_go(old);
	warn_insecure();
}

/* ---- judging again ---- */

static int
verify(int64_t id)
{
	struct hook_field fields[HEAD_FIELDS];
	struct hook_request request = { .method = "POST", .fields = fields };
	struct hook_verdict v = { .event = false };
	struct inbox_kept kept;
	const struct hook *line;
	const char *allow, *why = NULL;
	size_t max;
	int status, rc = inbox_get(db, id, &kept);

	if (rc == Q_NOINPUT) {
		prog_warn("%" PRId64 ": no event of qhook, or its body is gone", id);
		return rc;
	}
	prog_check(db, rc);
	request.target = kept.target;
	request.body = kept.body;
	request.len = kept.len;
	if ((request.nfields = hook_fields(kept.headers, fields, HEAD_FIELDS)) == -1)
		why = "its headers are damaged";
	else if ((status = hook_head(table->rows, &request, &line, &max, &allow)) != 0)
		why = status == 404 ? "no such path in the table" : "not what this path takes";
	else if (!hook_judge(line, &request, -1, &v))
		prog_die(Q_TEMP, "out of memory");
	else if (!v.event)
		why = v.why != NULL ? v.why : "no event";
	printf("{\"id\":%" PRId64 ",\"path\":", id);
	text_json(stdout, kept.path, strlen(kept.path));
	fputs(",\"event\":", stdout);
	text_json(stdout, kept.event, strlen(kept.event));
	fputs(",\"secret\":", stdout);
	if (why == NULL)
		text_json(stdout, v.secret, strlen(v.secret));
	else
		fputs("null", stdout);
	printf(",\"good\":%s,\"why\":", why == NULL ? "true" : "false");
	if (why != NULL)
		text_json(stdout, why, strlen(why));
	else
		fputs("null", stdout);
	puts("}");
	hook_done(&v);
	return why == NULL ? Q_OK : Q_NO;
}

static _Noreturn void
verify_all(int n, char *const *operands)
{
	int worst = Q_OK, rc;
	int64_t *ids;
	size_t count = prog_ids(n, operands, &ids, &worst);

	db = prog_open(DB_READ);
	for (size_t i = 0; i < count; i++)
		if ((rc = verify(ids[i])) > worst)
			worst = rc;
	prog_exit(worst);
}

/* ---- main ---- */

static _Noreturn void
listen_on(const char *addr)
{
	static const struct door DOOR = { .begin = begin, .serve = serve, .end = end };
	int fd, port, status, sig = 0;
	char message[1024];

	unsetenv("Q_NOW");		/* the age of a signature is judged by the real clock */
	setenv("Q_BUSY_TIMEOUT", "1500ms", 0);	/* a sender waits 3 s or so */
	db = prog_open(DB_STAY);
	prog_check(db, db_tables(db, FOR_QHOOK));
	prog_catch();			/* who finds the socket may end us in an orderly way */
	prog_last = door_unlink;
	if ((fd = door_listen(addr, &port, &status, message, sizeof message)) == -1)
		prog_die(status, "%s", message);
	if (door_start(&DOOR, fd) != Q_OK)
		prog_die(Q_TEMP, "out of memory or descriptors");
	warn_insecure();
	if (port != 0)
		printf("%.*s%d\n", (int)(strrchr(addr, ':') + 1 - addr), addr, port);
	fflush(stdout);
	since = when_elapsed();
	while (door_turn() || !draining) {
		tell_rest(false);
		note(false);
		if (prog_signal == SIGHUP)
			reload();
		else if (prog_signal != 0 && !draining) {
			sig = prog_signal;
			draining = true;
			door_stop();
		}
		prog_signal = 0;
	}
	tell_rest(true);
	note(true);
	door_unlink();
	if (sig == SIGINT)
		prog_killed(sig);
	prog_exit(Q_OK);
}

int
main(int argc, char *argv[])
{
	struct rlimit none = { 0, 0 };
	const char *addr = NULL;
	char message[1024];
	int c, mode = 0, status, n;

	door_handed();
	prog_start(&self, true);
	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case 'L': addr = optarg; break;
		case 'q': self.quiet = true; break;
		case 'v': verbose = true; break;
		default:
			if (mode != 0 && mode != c)
				prog_usage("--check and --verify exclude each other");
			mode = c;
		}
	n = argc - optind;
	if (mode != 0 && (addr != NULL || self.quiet || verbose))
		prog_usage("-L, -q and -v do not go with %s", mode == CHECK ? "--check" : "--verify");
	if (self.quiet && verbose)
		prog_usage("-q and -v exclude each other");
	if (n == 0)
		prog_usage("no TABLE");
	if (mode != VERIFY && n > 1)
		prog_usage("one TABLE");
	if (mode == VERIFY && n == 1)
		prog_usage("--verify: no ID; - reads them from standard input");
	setrlimit(RLIMIT_CORE, &none);	/* there would be secrets in it */
	prctl(PR_SET_DUMPABLE, 0);
	file = argv[optind];
	if ((table = read_table(&status, message, sizeof message)) == NULL)
		prog_die(status, "%s", message);
	if (mode == CHECK)
		prog_exit(Q_OK);
	if (mode == VERIFY)
		verify_all(n - 1, argv + optind + 1);
	listen_on(addr);
}
