/* qpoll - read what is new from an API, by a cursor over its data */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "prog.h"
#include "sync.h"
#include "walk.h"

static const char HELP[] =
"usage: qpoll [-hVn] [-d FILE] [--accept] SOURCE [-- CMD...]\n"
"       qpoll [-hVj] [-d FILE] --check | --status | --history |\n"
"             --set-cursor VALUE | --reset SOURCE\n"
"Ask the API that the file SOURCE describes (qpoll(5)) for what is new, until\n"
"there is no more.  Each new item becomes a job, in the transaction that moves\n"
"the cursor.\n"
"  */5 * * * *  qpoll orders.json; qwork orders -- ./import\n"
"  qpoll orders.json -- ./load  # a page of items, one a line, to ./load; no jobs\n"
"  -n, --dry-run        print the new items of the first page, and to standard\n"
"                       error the cursor; store nothing\n"
"  --accept             the source file was changed, and the cursor still fits\n"
"  --check              ask for the credential and one page; store nothing\n"
"  --status, --history  what is known; the runs, newest first (-j: JSON Lines)\n"
"  --set-cursor VALUE   begin there at the next run\n"
"  --reset              forget the cursor; the next run begins at \"start\"\n"
"Exit: 0 also if nothing was new; 65 the answer cannot be right, 69 no answer, 75\n"
"asked to wait or another run was quicker, 77 credentials, 78 the source file; as\n"
"CMD if that failed; the cursor stays where it was.\n";

enum { ACCEPT = 256, CHECK, STATUS, HISTORY, SET, RESET };
static const struct option LONGS[] = {
	{ "dry-run", 0, NULL, 'n' }, { "json", 0, NULL, 'j' }, { "accept", 0, NULL, ACCEPT }, { "check", 0, NULL, CHECK },
	{ "status", 0, NULL, STATUS }, { "history", 0, NULL, HISTORY }, { "set-cursor", 1, NULL, SET }, { "reset", 0, NULL, RESET },
	{ NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qpoll", .help = HELP, .shorts = "+nj", .longs = LONGS };

enum { DAY_MS = 24 * 3600 * 1000, PLAIN_EACH = 24, LEASE_MS = 5 * 60 * 1000, CHECK_MS = 3000 };

static struct source src;
static struct pager pager;
static struct sync state;
static struct db *db;
static char *const *command;		/* NULL: items become jobs */
static struct minder minder;
static struct child_spec spec = { .kill_ms = 5000 };
static bool dry, json;
static struct sync_run stored;		/* the counts without those of a page that is not */

static bool
stopped(void)
{
	prog_poll(NULL, 0, 0);
	return prog_signal != 0;
}

static void
stop_minder(void)
{
	if (command != NULL)
		minder_stop(&minder);
}

/* ---- the end of a run ---------------------------------------------------- */

static const char *
outcome(int status)
{
	return pager.limited ? "limited" : status == Q_TEMP ? "stopped" : "failed";
}

/* What qset knows of the credential, when that was refused. */
static void
add_credential(char *text, size_t size)
{
	static const char *const FIELDS[] = { "expires", "owner", "for" };
	bool any = false;
	struct setting set = { .kind = "credential" };
	const char *known;
	int64_t when;

	snprintf(set.name, sizeof set.name, "%s", src.credential);
	db_clear(db);
	for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++) {
		size_t n = strlen(text);

		snprintf(set.field, sizeof set.field, "%s", FIELDS[i]);
		if (setting_get(db, &set, &known, &when) == Q_OK) {
			if (any)
				snprintf(text + n, size - n, ", %s %s", FIELDS[i], known);
			else
				snprintf(text + n, size - n, "; credential %s: %s %s", src.credential, FIELDS[i], known);
			any = true;
		}
	}
}

/* Write the run down, whatever became of it, and say so. */
static _Noreturn void
fail(int status, const char *message)
{
	struct sync_step step = { .outcome = outcome(status), .exit = status };
	size_t n = strlen(src.name);
	bool named = strncmp(message, src.name, n) == 0 && message[n] == ':';

	state.run.items = stored.items;
	state.run.fresh = stored.fresh;
	state.run.repeated = stored.repeated;
	state.run.late = stored.late;
	state.run.future = stored.future;
	snprintf(state.run.note, sizeof state.run.note, "%s%s%s", named ? "" : src.name, named ? "" : ": ", message);
	if (status == Q_PERM && src.credential != NULL)
		add_credential(state.run.note, sizeof state.run.note);
	prog_warn("%s", state.run.note);
	db_clear(db);
	if (!dry && sync_step(&state, &step, prog_now()) != Q_OK && state.beaten) {
		db_clear(db);
		sync_step(&state, &step, prog_now());
	}
	if (!dry && db_status(db) != Q_OK)
		prog_warn("%s: the run is not recorded: %s", src.name, db_message(db));
	rate_leave(db, &pager.rate);
	prog_exit(status);
}

static void
check(int status)
{
	char text[1024];

	if (status == Q_OK)
		return;
	snprintf(text, sizeof text, "%s", db_message(db));
	fail(status, text);
}

/* The end of a run that comes without a page of its own. */
static _Noreturn void
close_run(const char *cursor, const char *how)
{
	struct sync_step step = { .cursor = cursor, .outcome = how };

	check(sync_step(&state, &step, prog_now()));
	prog_check(db, rate_leave(db, &pager.rate));
	prog_exit(Q_OK);
}

/* ---- a page and its transaction ------------------------------------------ */

static int
before(struct walk *w)
{
	(void)w;
	if (stopped()) {
		snprintf(pager.message, sizeof pager.message, "%s: interrupted", src.name);
		return Q_TEMP;
	}
	if (pager.pages < src.max_pages)
		return Q_OK;
	snprintf(state.run.note, sizeof state.run.note, "more follows: it ended after %" PRId64 " pages (\"max_pages\")", pager.pages);
	return Q_NO;
}

/* The command gets the fresh items, one a line. */
static void
give(const struct page *page)
{
	static struct child_end end;
	char *text = NULL, how[CHILD_HOW_MAX], message[CHILD_HOW_MAX + 500];
	struct pollfd ready = { .fd = minder.fd, .events = POLLIN };
	const char *said;
	int caught = 0;
	size_t len, n = 0;
	FILE *f = text_memory(&text, &len);

	for (size_t i = 0; i < page->n && f != NULL; i++)
		if (page->items[i].fresh) {
			json_line(f, page->items[i].raw);
			putc('\n', f);
			n++;
		}
	if (f == NULL || fclose(f) != 0)
		fail(Q_TEMP, "out of memory");
	if (n > 0) {
		if (minder_run(&minder, "", 0, text, len) == -1)
			fail(Q_TEMP, "the process that minds the command is gone");
		while (prog_poll(&ready, 1, -1) <= 0)
			if (prog_signal != 0) {		/* TERM, or at the second signal KILL */
				minder_kill(&minder, caught == 0 ? SIGTERM : SIGKILL);
				caught = prog_signal;
				prog_signal = 0;
			}
		prog_signal = caught;		/* a command that ended well has its page, and the run ends after it */
		if (minder_end(&minder, &end) == -1)
			fail(Q_TEMP, "the process that minds the command is gone");
		if (end.status != 0) {
			said = child_headline(end.err);
			snprintf(message, sizeof message, "%s: %.80s: %s%s%.200s; the cursor stays", src.name, command[0], child_how(how, &end, &spec),
			    *said != '\0' ? ": " : "", said);
			fail(caught != 0 ? Q_TEMP : child_exit(&end), message);
		}
	}
	free(text);
}

/* -n: the first page, and no more. */
static _Noreturn void
print(const struct page *page, const char *cursor)
{
	for (size_t i = 0; i < page->n; i++)
		if (page->items[i].fresh) {
			json_line(stdout, page->items[i].raw);
			putchar('\n');
		}
	fflush(stdout);
	if (cursor != NULL)
		prog_warn("%s: the cursor would be %s", src.name, cursor);
	else
		prog_warn("%s: the cursor would stay", src.name);
	prog_check(db, rate_leave(db, &pager.rate));
	prog_exit(Q_OK);
}

/* A cursor is not moved back. */
static const char *
ahead(const char *cursor)
{
	struct cursor_key key;
	const char *why;

	if (cursor == NULL || src.order == ORDER_OPAQUE)
		return cursor;
	return !cursor_key(&src.spec, cursor, &key, &why) || (state.cursor != NULL && cursor_compare(&key, &state.key) <= 0) ? NULL : cursor;
}

static int
store(struct walk *w, struct page *page, const char *cursor, const char *position, bool last)
{
	struct sync_step step = { .page = page, .cursor = ahead(cursor), .walk = position };
	int64_t fresh = state.run.fresh;

	check(sync_fresh(&state, page));
	w->fresh += state.run.fresh - fresh;
	state.pointed = w->pointed;
	if (dry)
		print(page, step.cursor);
	if (command != NULL)
		give(page);
	if (last && w->unsettled)
		snprintf(state.run.note, sizeof state.run.note, "it changed each time it was read, so the cursor lags behind");
	if (last && src.probe == NULL) {
		step.outcome = state.run.fresh > 0 ? "new" : "nothing";
		free(state.etag);
		free(state.modified);
		state.etag = page->etag != NULL && !page->full ? strdup(page->etag) : NULL;
		state.modified = page->modified != NULL && !page->full ? strdup(page->modified) : NULL;
		state.unmodified = 0;
	}
	if (step.outcome != NULL || state.run.fresh > fresh || step.cursor != NULL || position != NULL)	/* else there is nothing to store */
		check(sync_step(&state, &step, prog_now()));
	stored = state.run;
	return Q_OK;
}

/* ---- the control query (R14) ---------------------------------------------- */

/* Are there items that are new and above the cursor?  Their counts are of no run. */
static bool
has_newer(struct page *page)
{
	struct sync_run counts = state.run;
	bool newer = false;

	check(sync_fresh(&state, page));
	state.run = counts;
	for (size_t i = 0; i < page->n; i++) {
		const struct item *it = &page->items[i];

		newer |= it->fresh && !it->future && state.key.n > 0 && cursor_compare(&it->key, &state.key) > 0;
	}
	return newer;
}

/* Nothing new came: is that so, or does the credential see nothing, or the filter hide it? */
static void
control(const struct ask *from)
{
	struct page page, again;
	int64_t now = prog_now();
	bool newer;
	int rc;

	if (src.probe == NULL || state.run.fresh > 0 || (state.probed_ms != -1 && now >= state.probed_ms && now - state.probed_ms < DAY_MS && state.hidden == 0))
		return;
	if ((rc = page_probe(&pager, src.probe, &page)) != Q_OK)
		fail(rc, pager.message);
	if (page.n == 0)		/* asked again by the next run, not tomorrow */
		fail(Q_PERM, "blind: the control query shows no item at all; has the credential lost its rights?");
	state.probed_ms = now;
	newer = has_newer(&page);
	page_free(&page);
	if (newer) {
		if ((rc = page_get(&pager, from->set ? from->text : NULL, NULL, &again)) != Q_OK)
			fail(rc, pager.message);
		newer = !has_newer(&again);
		page_free(&again);
	}
	state.hidden = newer ? state.hidden + 1 : 0;
	if (state.hidden > 1)
		fail(Q_DATA, "the filter hides data: twice the control query showed newer items that the query does not");
}

/* ---- a run ------------------------------------------------------------------ */

/* Where it begins. */
static void
first_ask(struct ask *q)
{
	struct cursor_key key;
	char text[600];
	const char *why;

	q->set = true;
	if (state.cursor != NULL) {
		cursor_bound(&src.spec, state.cursor, &state.key, true, q->text, &q->key);
		/* A lookback that was made longer: what lies below was forgotten, and must not come again. */
		if (cursor_compare(&q->key, &state.seen_from) < 0)
			cursor_bound(&src.spec, state.cursor, &state.key, false, q->text, &q->key);
	} else if (src.start != NULL && strcmp(src.start, "all") != 0 && strcmp(src.start, "newest") != 0 && src.cursor != NULL) {
		if (!cursor_key(&src.spec, src.start, &key, &why)) {
			snprintf(text, sizeof text, "%s: \"start\": '%.100s' %s", src.name, src.start, why);
			fail(Q_CONFIG, text);
		}
		cursor_bound(&src.spec, src.start, &key, false, q->text, &q->key);
	} else
		q->set = false;
}

static _Noreturn void
run(void)
{
	struct walk w = { .src = &src, .pager = &pager, .before = before, .store = store, .pointed = state.pointed };
	struct ask from;
	char text[600];
	int rc;

	first_ask(&w.from);
	from = w.from;
	walk_resume(&w, state.walk);
	if (src.order == ORDER_OPAQUE)
		w.token = state.cursor != NULL ? strdup(state.cursor) : NULL;
	if (src.order == ORDER_OPAQUE && state.cursor != NULL && w.token == NULL)
		fail(Q_TEMP, "out of memory");
	if (!src.conditional || state.unmodified >= PLAIN_EACH)
		state.unmodified = 0;	/* each so many times without, for validators that are broken */
	else if (state.walk == NULL && !dry) {
		pager.etag = state.etag;
		pager.modified = state.modified;
	}
	rc = walk_run(&w);
	if (rc != Q_OK && rc != Q_NO)
		fail(rc, pager.message);
	if (w.unmodified) {
		state.unmodified++;
		close_run(NULL, "unmodified");
	}
	if (rc == Q_NO && src.order == ORDER_ASC && state.run.fresh == 0 && state.cursor != NULL && strcmp(state.cursor, state.run.before) == 0) {
		snprintf(text, sizeof text, "%s: stalled: %" PRId64 " pages (\"max_pages\") held nothing new at %.80s, and more follows; next: raise it%s",
		    src.name, pager.pages, state.cursor, src.spec.lookback_ms > 0 ? ", or lower \"lookback\"" : "");
		fail(Q_DATA, text);
	}
	if (rc == Q_OK && src.probe != NULL)
		control(&from);
	if (rc == Q_NO || src.probe != NULL)
		close_run(NULL, state.run.fresh > 0 ? "new" : "nothing");
	prog_check(db, rate_leave(db, &pager.rate));
	prog_exit(Q_OK);
}

/* The first run with "newest" (R17). */
static _Noreturn void
newest(void)
{
	struct cursor_spec plain = src.spec;
	struct cursor_key key;
	struct page page;
	const struct item *m;
	char text[CURSOR_TEXT];
	int rc = page_get(&pager, NULL, NULL, &page);

	if (rc != Q_OK)
		fail(rc, pager.message);
	if (src.order != ORDER_ASC) {
		if ((m = walk_largest(&page)) == NULL)
			fail(Q_DATA, "no item to begin after; \"start\": \"all\" begins with the first that comes");
		snprintf(text, sizeof text, "%s", m->cursor);
	} else {
		/* The first page of an ascending list is the oldest: the server's own clock says where its newest is. */
		if (page.date_ms < 0 || !cursor_instant(&src.spec, page.date_ms - src.max_skew_ms, &key))
			fail(Q_CONFIG, "\"start\": \"newest\" of an ascending list needs times, and a Date header; give a value instead");
		plain.format = NULL;	/* as items have it, not as the query does */
		cursor_render(&plain, &key, text);
	}
	page_free(&page);
	if (dry) {
		prog_warn("%s: the cursor would be %s", src.name, text);
		prog_check(db, rate_leave(db, &pager.rate));
		prog_exit(Q_OK);
	}
	close_run(text, "nothing");
}

/* ---- what is not a run ----------------------------------------------------- */

static void
print_text(const char *name, const char *text)
{
	printf(",\"%s\":", name);
	if (text == NULL)
		fputs("null", stdout);
	else
		text_json(stdout, text, strlen(text));
}

static void
print_time(const char *name, int64_t ms)
{
	char when[WHEN_TEXT];

	if (ms == -1)
		printf(",\"%s_at\":null,\"%s_ms\":null", name, name);
	else
		printf(",\"%s_at\":\"%s\",\"%s_ms\":%" PRId64, name, when_text(when, ms, false), name, ms);
}

static int
print_run(const struct sync_past *r, void *arg)
{
	char when[WHEN_TEXT], took[WHEN_TEXT];
	bool *first = arg;

	if (json) {
		printf("{\"name\":\"%s\"", src.name);
		print_time("started", r->started_ms);
		print_time("finished", r->finished_ms);
		printf(",\"outcome\":\"%s\",\"exit\":%" PRId64 ",\"http\":", r->outcome, r->exit);
		printf(r->http == -1 ? "null" : "%" PRId64, r->http);
		printf(",\"pages\":%" PRId64 ",\"items\":%" PRId64 ",\"new\":%" PRId64 ",\"repeated\":%" PRId64 ",\"late\":%" PRId64
		    ",\"future\":%" PRId64 ",\"bytes\":%" PRId64 ",\"waited_ms\":%" PRId64, r->pages, r->items, r->fresh, r->repeated, r->late,
		    r->future, r->bytes, r->waited_ms);
		print_text("before", r->before);
		print_text("after", r->after);
		print_text("note", r->note);
		puts("}");
		return Q_OK;
	}
	if (*first)
		puts("STARTED               OUTCOME     EXIT HTTP PAGES  ITEMS    NEW   TOOK  CURSOR, NOTE");
	*first = false;
	printf("%s  %-10s %5" PRId64 " %4" PRId64 " %5" PRId64 " %6" PRId64 " %6" PRId64 " %6s  ", when_text(when, r->started_ms, false), r->outcome,
	    r->exit, r->http == -1 ? 0 : r->http, r->pages, r->items, r->fresh, when_brief(took, r->finished_ms > r->started_ms ? r->finished_ms - r->started_ms : 0));
	text_show(stdout, r->after != NULL ? r->after : "-", strlen(r->after != NULL ? r->after : "-"), 60);
	if (r->note != NULL) {
		fputs("  ", stdout);
		text_show(stdout, r->note, strlen(r->note), 0);
	}
	putchar('\n');
	return Q_OK;
}

struct streak { struct sync_past last; char outcome[16], note[480]; int64_t failures; bool ended, any; };

static int
count_failures(const struct sync_past *r, void *arg)
{
	struct streak *s = arg;

	if (strcmp(r->outcome, "set") == 0)
		return Q_OK;
	if (!s->any) {
		s->last = *r;
		snprintf(s->outcome, sizeof s->outcome, "%s", r->outcome);
		snprintf(s->note, sizeof s->note, "%s", r->note != NULL ? r->note : "");
		s->any = true;
	}
	if (strcmp(r->outcome, "failed") != 0)
		return Q_NO;
	s->failures++;
	return Q_OK;
}

static _Noreturn void
status(void)
{
	struct streak s = { .failures = 0 };
	char when[WHEN_TEXT];
	int64_t now = prog_now();
	int rc = sync_runs(&state, count_failures, &s);

	if (rc != Q_NO)
		prog_check(db, rc);
	if (json) {
		printf("{\"name\":\"%s\"", src.name);
		print_text("cursor", state.cursor);
		printf(",\"walking\":%s", state.walk != NULL ? "true" : "false");
		print_time("shown", state.shown_ms);
		print_time("run", s.any ? s.last.finished_ms : -1);
		print_text("outcome", s.any ? s.outcome : NULL);
		printf(",\"failures\":%" PRId64, s.failures);
		print_text("note", s.note[0] != '\0' ? s.note : NULL);
		puts("}");
		prog_exit(Q_OK);
	}
	printf("%-10s %s\n%-10s ", "source", src.name, "cursor");
	text_show(stdout, state.cursor != NULL ? state.cursor : "none yet", strlen(state.cursor != NULL ? state.cursor : "none yet"), 0);
	printf("%s\n%-10s %s\n", state.walk != NULL ? ", in the middle of a walk" : "", "last new",
	    state.shown_ms != -1 ? when_relative(when, state.shown_ms, now) : "never");
	if (!s.any)
		printf("%-10s never\n", "last run");
	else {
		printf("%-10s %s: %s", "last run", when_relative(when, s.last.finished_ms, now), s.outcome);
		if (s.failures > 1)
			printf(", %" PRId64 " times in a row", s.failures);
		putchar('\n');
		if (s.note[0] != '\0') {
			printf("%-10s ", "note");
			text_show(stdout, s.note, strlen(s.note), 0);
			putchar('\n');
		}
	}
	prog_exit(Q_OK);
}

static _Noreturn void
history(void)
{
	bool first = true;

	prog_check(db, sync_runs(&state, print_run, &first));
	prog_exit(Q_OK);
}

/* What was there is told, for who wants it back. */
static _Noreturn void
reset(void)
{
	bool newest_only = src.start != NULL && strcmp(src.start, "newest") == 0;

	prog_check(db, sync_reset(&state, NULL, prog_now()));
	if (state.run.before[0] != '\0')
		prog_warn("%s: the cursor was at %s%s", src.name, state.run.before, newest_only ?
		    "; \"start\" is newest, so what changed since then will not come; next: qpoll --set-cursor with that, or qbackfill --from that" : "");
	prog_exit(Q_OK);
}

/* Credential and shape, moving nothing. */
static _Noreturn void
try_out(void)
{
	struct walk w = { .src = &src, .pager = &pager };
	struct page page;
	int rc;

	first_ask(&w.from);
	pager.sync = src.closing ? state.cursor : NULL;
	if ((rc = page_get(&pager, w.from.set ? w.from.text : NULL, src.order == ORDER_OPAQUE && !src.closing ? state.cursor : NULL, &page)) != Q_OK)
		fail(rc == Q_NO ? Q_CONFIG : rc, pager.message);
	if ((rc = walk_judge(&w, &page)) != Q_OK)
		fail(rc, pager.message);
	if (src.probe != NULL && ((rc = page_probe(&pager, src.probe, &page)) != Q_OK || page.n == 0))
		fail(rc != Q_OK ? rc : Q_PERM, rc != Q_OK ? pager.message : "blind: the control query shows no item at all");
	prog_check(db, rate_leave(db, &pager.rate));
	prog_exit(Q_OK);
}

/* ---- beginning -------------------------------------------------------------- */

static int act;
static const char *value;

static void
options(int argc, char *argv[])
{
	static const char *const NAMES[] = { "--accept", "--check", "--status", "--history", "--set-cursor", "--reset" };
	int c, other = 0;

	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case 'n': dry = true; break;
		case 'j': json = true; break;
		default:
			if (act != 0 && act != c)
				other = act;
			act = c;
			if (c == SET)
				value = optarg;
			break;
		}
	if (other != 0)
		prog_usage("%s and %s exclude each other", NAMES[other - ACCEPT], NAMES[act - ACCEPT]);
	if (optind == argc)
		prog_usage("no SOURCE, the file that describes what is asked");
	if (optind + 1 < argc) {
		if (strcmp(argv[optind + 1], "--") != 0)
			prog_usage("one SOURCE at a time; a command follows '--'");
		if (optind + 2 == argc)
			prog_usage("no command after '--'");
		command = argv + optind + 2;
	}
	if (json && act != STATUS && act != HISTORY)
		prog_usage("-j goes with --status and --history");
	if (command != NULL && (dry || (act != 0 && act != ACCEPT)))
		prog_usage("a command goes with a run only");
	if (dry && act != 0 && act != ACCEPT)
		prog_usage("-n goes with a run only");
	dry |= act == CHECK;		/* fail() stores nothing */
	prog_now();
}

/* What must hold before anything is asked. */
static void
ready(void)
{
	char text[600];
	const char *why;
	int64_t ms;
	int rc;

	check(sync_room(&state));
	if (strcmp(state.config, src.config) != 0 && act != CHECK) {
		if (act != ACCEPT && state.cursor != NULL) {
			snprintf(text, sizeof text, "%s: the source file asks for other items than when the cursor was stored; next: qpoll --accept, "
			    "if the cursor still fits, or qpoll --reset", src.name);
			fail(Q_CONFIG, text);
		}
		if (state.cursor != NULL && !cursor_key(&src.spec, state.cursor, &state.key, &why)) {
			snprintf(text, sizeof text, "%s: the stored cursor '%.80s' %s; next: qpoll --set-cursor or --reset", src.name, state.cursor, why);
			fail(Q_CONFIG, text);
		}
		/* Validators and pointers belong to the requests that were. */
		free(state.etag);
		free(state.modified);
		free(state.walk);
		state.etag = state.modified = state.walk = NULL;
		snprintf(state.config, sizeof state.config, "%s", src.config);
	}
	if (src.max_gap_ms > 0 && state.cursor != NULL && cursor_ms(&src.spec, &state.key, &ms) && ms < prog_now() - src.max_gap_ms) {
		snprintf(text, sizeof text, "%s: the cursor %.80s is older than \"max_gap\", so the API may have forgotten what follows it; "
		    "next: qpoll --reset, and qbackfill the gap", src.name, state.cursor);
		fail(Q_CONFIG, text);
	}
	if (src.whoami != NULL && (rc = page_ask(&pager, src.whoami)) != Q_OK)
		fail(rc, pager.message);
}

/* A run that cannot begin is one, too, as soon as it is known of which source. */
static _Noreturn void
cannot_begin(int status, const char *message)
{
	struct sync_step step = { .outcome = "failed", .exit = status };

	prog_warn("%s", message);
	if ((act == 0 || act == ACCEPT) && !dry && src.name != NULL && text_queue(src.name) &&
	    db_open(&db, self.database, DB_ONCE) == Q_OK && sync_read(&state, db, &src, &pager) == Q_OK) {
		state.run.started_ms = prog_now();
		snprintf(state.run.note, sizeof state.run.note, "%.*s", (int)sizeof state.run.note - 1, message);
		sync_step(&state, &step, prog_now());
	}
	prog_exit(status);
}

int
main(int argc, char *argv[])
{
	char message[1024];
	int status_code;

	prog_start(&self, true);
	options(argc, argv);
	if (!source_read(&src, argv[optind], act == 0 || act == ACCEPT || act == CHECK, &status_code, message, sizeof message))
		cannot_begin(status_code, message);
	if (src.queue == NULL && command == NULL && act == 0 && !dry) {
		snprintf(message, sizeof message, "%s: \"queue\" is missing, where the items go; or give a command", argv[optind]);
		cannot_begin(Q_CONFIG, message);
	}
	if (command != NULL) {
		src.queue = NULL;
		spec.argv = command;
		if (minder_start(&minder, &spec, NULL, 0) == -1)
			prog_die(Q_TEMP, "cannot start a process: %s; see ulimit -u", strerror(errno));
		prog_last = stop_minder;
	}
	prog_catch();
	db = prog_open(DB_STAY);
	prog_check(db, sync_read(&state, db, &src, &pager));
	state.run.started_ms = prog_now();
	pager = (struct pager){ .src = &src, .db = db, .stopped = stopped, .broken = stopped, .start = src.start, .http = http_open(),
	    .rate = { .name = src.rate, .worker = prog_worker(), .lease_ms = LEASE_MS, .first = true } };
	if (pager.http == NULL)
		prog_die(Q_TEMP, "out of memory");
	switch (act) {
	case STATUS: status();
	case HISTORY: history();
	case SET:
		prog_check(db, sync_reset(&state, value, prog_now()));
		prog_exit(Q_OK);
	case RESET:
		reset();
	}
	if (act == CHECK) {
		dry = true;		/* nothing is stored, whatever is found */
		src.max_wait_ms = src.max_wait_ms < CHECK_MS ? src.max_wait_ms : CHECK_MS;
		src.retries = 0;
	}
	ready();
	if (act == CHECK)
		try_out();
	if (src.start != NULL && strcmp(src.start, "newest") == 0 && state.cursor == NULL && state.walk == NULL)
		newest();
	run();
}
