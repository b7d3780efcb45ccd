/* qbackfill - walk through history on purpose: in windows, at a pace, to be stopped and gone on with */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backfill.h"
#include "child.h"
#include "prog.h"
#include "sync.h"
#include "walk.h"

static const char HELP[] =
"usage: qbackfill [-hVv] [-d FILE] [--from VALUE] [--to VALUE] [--step STEP]\n"
"                 [--newest-first] [--reserve N] [--max-depth N] [--retry-failed]\n"
"                 SOURCE | --name NAME -- CMD...\n"
"       qbackfill [-hVj] [-d FILE] --plan | --status | --pause | --resume | --stop |\n"
"                 --drop SOURCE | --name NAME\n"
"Fetch what the API of SOURCE (qpoll(5)) holds from VALUE on, one window of STEP after\n"
"the other; or run CMD for each, with Q_FROM and Q_TO.  Run it again to go on.\n"
"  qbackfill --from 2025-01-01 --step 1d orders.json\n"
"  qbackfill --name tax --from 2025-01-01 --to 2026-01-01 --step 7d -- ./recompute\n"
"  --from, --to VALUE   the range, without the end; --to: where the cursor of qpoll is\n"
"  --step STEP          a duration, or a number if the values are numbers\n"
"  --newest-first       begin with the last window\n"
"  --reserve N          leave N tokens of the rate to others (half of its burst)\n"
"  --max-depth N        wait while N jobs of the queue are ready\n"
"  --retry-failed       also those windows that failed before\n"
"  --plan, --status     the windows (-j: JSON Lines)    -v  a line of progress a minute\n"
"  --pause, --resume    wait before the next request; go on     --stop  end there\n"
"  --drop               forget the plan\n"
"Exit: 0 all is done, 65 some windows failed, 75 stopped, limited or another run is\n"
"under way, 77 credentials, 78 the source file or the plan; q(7).\n";

enum { FROM = 256, TO, STEP, NAME, NEWEST, RESERVE, DEPTH, RETRY, PLAN, STATUS, PAUSE, RESUME, STOP, DROP };
static const struct option LONGS[] = {
	{ "verbose", 0, NULL, 'v' }, { "json", 0, NULL, 'j' }, { "from", 1, NULL, FROM }, { "to", 1, NULL, TO }, { "step", 1, NULL, STEP },
	{ "name", 1, NULL, NAME }, { "newest-first", 0, NULL, NEWEST }, { "reserve", 1, NULL, RESERVE }, { "max-depth", 1, NULL, DEPTH },
	{ "retry-failed", 0, NULL, RETRY }, { "plan", 0, NULL, PLAN }, { "status", 0, NULL, STATUS }, { "pause", 0, NULL, PAUSE },
	{ "resume", 0, NULL, RESUME }, { "stop", 0, NULL, STOP }, { "drop", 0, NULL, DROP }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qbackfill", .help = HELP, .shorts = "+vj", .longs = LONGS };

enum {
	LEASE_MS = 5 * 60 * 1000,	/* longer than a request can take */
	LOOK_MS = 500,			/* between two looks at what holds it up */
	FAILURES_MAX = 5,		/* windows in a row */
	LATER = 2			/* how much less urgent its jobs are than those of qpoll */
};

static struct source src;		/* unused with a command */
static struct pager pager;
static struct db *db;
static struct plan plan;
static struct plan_count count;
static const char *name, *from, *to, *step_text;
static char *const *command;
static struct minder minder;
static struct child_spec spec = { .kill_ms = 5000, .pass = true };
static bool json, newest, retry, verbose;
static int act;
static int64_t reserve = -1, depth = -1;
static int64_t fence, kept_at, began_at, told_at, done_before, requests;
static struct window win;

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

/* ---- values ---------------------------------------------------------------- */

static char *
show(char *buf, size_t size, int64_t v)
{
	char when[WHEN_TEXT];

	if (plan.time)
		snprintf(buf, size, "%s", when_text(when, v, v % 1000 != 0));
	else
		snprintf(buf, size, "%" PRId64, v);
	return buf;
}

/* As the API wants it. */
static void
render(int64_t v, char text[CURSOR_TEXT], struct cursor_key *key, bool lower)
{
	char plain[CURSOR_TEXT], *to_text = text;
	const char *why;

	if (cursor_instant(&src.spec, v, key)) {
		cursor_render(&src.spec, key, plain);
		cursor_bound(&src.spec, plain, key, false, text, key);
		if (!lower && src.spec.shift_ms > 0) {	/* which is for the lower end only */
			cursor_instant(&src.spec, v, key);
			cursor_render(&src.spec, key, to_text);
		}
		return;
	}
	snprintf(text, CURSOR_TEXT, "%" PRId64, v);
	cursor_key(&src.spec, text, key, &why);
}

/* A number, or any instant; *time says which. */
static int64_t
parse(const char *option, const char *text, bool *time)
{
	static const struct cursor_spec UTC = { .type = CURSOR_TIME, .zone = "UTC" };
	struct cursor_key key;
	const char *why;
	int64_t v;

	if (text_int(text, 0, INT64_C(1) << 53, &v)) {
		*time = command == NULL && src.spec.type <= CURSOR_EPOCH_US;
		if (*time)
			prog_usage("%s: '%s': times are given as 2026-01-31 or 2026-01-31T12:00:00Z", option, text);
		return v;
	}
	*time = true;
	if (!cursor_key(command == NULL && src.spec.zone != NULL ? &(struct cursor_spec){ .type = CURSOR_TIME, .zone = src.spec.zone } : &UTC, text, &key, &why))
		prog_usage("%s: '%s' %s", option, text, why);
	cursor_ms(&UTC, &key, &v);
	if (v < 0)
		prog_usage("%s: '%s' is before 1970", option, text);
	return v;
}

/* ---- the plan ---------------------------------------------------------------- */

/* --to unless it is given: the cursor of qpoll, so that the two meet; the next whole ms, since what comes twice is one job. */
static int64_t
cursor_of_poll(void)
{
	struct sync state;
	struct cursor_key back;
	int64_t v;

	prog_check(db, sync_read(&state, db, &src, &pager));
	if (state.cursor == NULL)
		prog_die(Q_CONFIG, "%s: qpoll has no cursor yet, where this would end; next: run qpoll first, or say --to", name);
	if (cursor_ms(&src.spec, &state.key, &v)) {
		cursor_instant(&src.spec, v, &back);
		return v + (cursor_compare(&back, &state.key) < 0);
	}
	if (!text_int(state.cursor, 0, INT64_C(1) << 53, &v))
		prog_die(Q_CONFIG, "%s: the cursor of qpoll is no number that windows can be counted to; say --to", name);
	sync_free(&state);
	return v;
}

/* What the options ask for, in plan. */
static void
want_plan(void)
{
	bool time, time_to;
	const char *why;

	if (from == NULL || step_text == NULL)
		prog_usage("no plan of '%s' yet: it needs --from and --step", name);
	plan.start = parse("--from", from, &time);
	if (command == NULL && (src.spec.type == CURSOR_DECIMAL || src.spec.type == CURSOR_NONE))
		prog_die(Q_CONFIG, "%s: \"cursor_type\": only times and whole numbers can be cut into windows", name);
	if (command == NULL && time != (src.spec.type <= CURSOR_EPOCH_US))
		prog_usage("--from: '%s' is not what the cursor of '%s' is", from, name);
	plan.time = time;
	if (to == NULL && (act == PLAN || act == 0) && command != NULL)
		prog_usage("--to is needed with a command");
	plan.stop = to != NULL ? parse("--to", to, &time_to) : cursor_of_poll();
	if (to != NULL && time_to != time)
		prog_usage("--from and --to are not of one kind");
	if (time ? !when_duration(step_text, &plan.step, &why) || plan.step < 1 : !text_int(step_text, 1, INT64_C(1) << 53, &plan.step))
		prog_usage("--step: '%s' is not %s", step_text, time ? "a duration such as 1d" : "a whole number from 1 on");
	if (plan.stop <= plan.start)
		prog_usage("--to is not after --from");
	if ((plan.stop - plan.start - 1) / plan.step >= PLAN_WINDOWS_MAX)
		prog_usage("--step: that makes more than %d windows", PLAN_WINDOWS_MAX);
	snprintf(plan.config, sizeof plan.config, "%s", command == NULL ? src.config : "");
}

/* The plan that is there goes on; another one is made only when that is done. */
static void
find_plan(void)
{
	struct plan old;
	char a[40], b[40];
	int rc = plan_read(db, name, &old);

	plan.name = name;
	if (rc != Q_NO)
		prog_check(db, rc);
	if (rc == Q_OK)
		prog_check(db, plan_count(db, name, &count));
	if (rc == Q_OK && (from == NULL || count.todo + count.failed > 0)) {
		plan = old;
		if (from != NULL) {
			want_plan();
			if (plan.start != old.start || (to != NULL && plan.stop != old.stop) || plan.step != old.step || plan.time != old.time) {
				plan = old;
				prog_die(Q_CONFIG, "%s: there is a plan from %s to %s that is not done; next: qbackfill --status, or --drop", name,
				    show(a, sizeof a, old.start), show(b, sizeof b, old.stop));
			}
			plan = old;
		}
		if (command == NULL && strcmp(old.config, src.config) != 0)
			prog_die(Q_CONFIG, "%s: the source file asks for other items than when the plan was made; next: qbackfill --drop", name);
		if ((command != NULL) != (old.config[0] == '\0'))
			prog_die(Q_CONFIG, "%s: the plan was made %s; next: qbackfill --drop", name, command != NULL ? "for a source" : "for a command");
		return;
	}
	want_plan();
	prog_check(db, db_begin(db, false));
	prog_check(db, plan_make(db, &plan, prog_now()));
	prog_check(db, db_commit(db));
	prog_check(db, plan_count(db, name, &count));
}

static int
print_window(const struct window *w, void *arg)
{
	char a[40], b[40];

	(void)arg;
	show(a, sizeof a, w->start);
	show(b, sizeof b, w->stop);
	if (!json) {
		printf("%s\t%s\t%s\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t", a, b, w->state, w->pages, w->items, w->fresh);
		if (w->note != NULL)
			text_tsv(stdout, w->note, strlen(w->note));
		putchar('\n');
		return Q_OK;
	}
	printf("{\"name\":\"%s\",\"from\":\"%s\",\"to\":\"%s\",\"state\":\"%s\",\"pages\":%" PRId64 ",\"items\":%" PRId64 ",\"new\":%" PRId64
	    ",\"note\":", name, a, b, w->state, w->pages, w->items, w->fresh);
	if (w->note != NULL)
		text_json(stdout, w->note, strlen(w->note));
	else
		fputs("null", stdout);
	puts("}");
	return Q_OK;
}

/* --plan: what would be done, or is being done. */
static _Noreturn void
print_plan(void)
{
	struct plan old;
	int rc = plan_read(db, name, &old);

	plan.name = name;
	if (rc != Q_NO)
		prog_check(db, rc);
	if (from == NULL) {
		if (rc == Q_NO)
			prog_die(Q_NOINPUT, "%s: there is no plan; with --from and --step this prints what it would be", name);
		plan = old;
		prog_check(db, plan_each(db, name, print_window, NULL));
		prog_exit(Q_OK);
	}
	want_plan();
	for (int64_t at = plan.start; at < plan.stop; at += plan.step)
		print_window(&(struct window){ .start = at, .stop = plan.step < plan.stop - at ? at + plan.step : plan.stop, .state = "todo" }, NULL);
	prog_exit(Q_OK);
}

static _Noreturn void
print_status(void)
{
	char a[40], b[40];
	int rc = plan_read(db, name, &plan);

	if (rc == Q_NO)
		prog_die(Q_NOINPUT, "%s: there is no plan", name);
	prog_check(db, rc);
	prog_check(db, plan_count(db, name, &count));
	show(a, sizeof a, plan.start);
	show(b, sizeof b, plan.stop);
	if (json)
		printf("{\"name\":\"%s\",\"from\":\"%s\",\"to\":\"%s\",\"left\":%" PRId64 ",\"done\":%" PRId64 ",\"failed\":%" PRId64
		    ",\"pages\":%" PRId64 ",\"items\":%" PRId64 ",\"new\":%" PRId64 ",\"flag\":%s%s%s}\n", name, a, b, count.todo, count.done, count.failed,
		    count.pages, count.items, count.fresh, plan.flag[0] != '\0' ? "\"" : "", plan.flag[0] != '\0' ? plan.flag : "null",
		    plan.flag[0] != '\0' ? "\"" : "");
	else
		printf("%s: %s to %s: %" PRId64 " windows done, %" PRId64 " left, %" PRId64 " failed; %" PRId64 " items, %" PRId64 " new, %" PRId64 " pages%s%s\n",
		    name, a, b, count.done, count.todo, count.failed, count.items, count.fresh, count.pages, plan.flag[0] != '\0' ? "; asked to " : "", plan.flag);
	prog_exit(Q_OK);
}

static _Noreturn void
set_flag(void)
{
	static const char *const FLAGS[] = { [PAUSE - PAUSE] = "pause", [RESUME - PAUSE] = NULL, [STOP - PAUSE] = "stop" };
	struct plan old;
	int rc = plan_read(db, name, &old);

	if (rc != Q_NO)
		prog_check(db, rc);
	prog_check(db, db_begin(db, false));
	if (rc == Q_OK)
		rc = act == DROP ? plan_drop(db, name) : plan_flag(db, name, FLAGS[act - PAUSE]);
	if (rc == Q_NO)
		prog_die(Q_NOINPUT, "%s: there is no plan", name);
	prog_check(db, rc);
	prog_check(db, db_commit(db));
	prog_exit(Q_OK);
}

/* ---- progress ---------------------------------------------------------------- */

/* On a terminal a line that is written over, else, with -v, a line a minute. */
static void
progress(const char *why, bool always)
{
	int64_t now = when_elapsed(), all = count.done + count.todo + count.failed, ran = now - began_at;
	int64_t done = count.done - done_before;
	bool terminal = isatty(STDERR_FILENO);
	char left[WHEN_TEXT] = "?";

	if ((!terminal && !verbose) || (!always && now - told_at < (terminal ? 250 : 60 * 1000)))
		return;
	told_at = now;
	if (done > 0)
		when_brief(left, ran / done * count.todo);
	fprintf(stderr, "%sqbackfill: %s: %" PRId64 "/%" PRId64 " windows, %" PRId64 " items, %" PRId64 " new, %" PRId64 " requests, %.1f/s, %s left%s%s%s",
	    terminal ? "\r\033[K" : "", name, count.done, all, count.items + win.items, count.fresh + win.fresh, requests,
	    ran > 0 ? (double)requests * 1000 / (double)ran : 0.0, left, why != NULL ? "; waits: " : "", why != NULL ? why : "", terminal ? "" : "\n");
	fflush(stderr);
}

static void
end_progress(void)
{
	if (isatty(STDERR_FILENO) && told_at > 0)
		fputs("\r\033[K", stderr);
}

static _Noreturn void
finish(int status)
{
	end_progress();
	if (fence != 0 && db_begin(db, false) == Q_OK && plan_leave(db, name, fence) != Q_BUG)
		db_commit(db);
	rate_leave(db, &pager.rate);
	prog_exit(status);
}

static _Noreturn void
give_up(int status, const char *why)
{
	end_progress();
	prog_warn("%s", why);
	finish(status);
}

static void
check(int status)
{
	char text[1024];

	if (status == Q_OK)
		return;
	snprintf(text, sizeof text, "%s", db_message(db));
	db_rollback(db);
	db_clear(db);
	give_up(status, text);
}

/* ---- before each request ------------------------------------------------------ */

/* Why it must wait; NULL: it need not. */
static const char *
held_up(void)
{
	static char why[160];
	struct plan now;
	int64_t ready;
	int rc = plan_read(db, name, &now);

	if (rc == Q_NO)
		give_up(Q_TEMP, "its plan was dropped");
	check(rc);
	if (strcmp(now.flag, "stop") == 0) {
		snprintf(why, sizeof why, "%s: stopped; next: qbackfill --resume", name);
		give_up(Q_TEMP, why);
	}
	if (strcmp(now.flag, "pause") == 0)
		return "it is paused";
	if (depth > 0 && src.queue != NULL && (ready = plan_depth(db, src.queue, depth)) >= depth) {
		snprintf(why, sizeof why, "%" PRId64 " jobs of %s are ready", ready, src.queue);
		return why;
	}
	return NULL;
}

static void
keep_plan(void)
{
	if (when_elapsed() - kept_at < LEASE_MS / 3)
		return;
	check(db_begin(db, false));
	check(plan_keep(db, name, fence, LEASE_MS));
	check(db_commit(db));
	kept_at = when_elapsed();
}

static void
wait_turn(void)
{
	const char *why;

	for (;;) {
		if (stopped())
			finish(Q_TEMP);
		keep_plan();
		if ((why = held_up()) == NULL)
			break;
		progress(why, false);
		prog_poll(NULL, 0, LOOK_MS);
	}
	progress(NULL, false);
	requests++;
}

/* ---- a window of an API --------------------------------------------------------- */

static int
before(struct walk *w)
{
	(void)w;
	wait_turn();
	return Q_OK;
}

static int
store(struct walk *w, struct page *page, const char *cursor, const char *position, bool last)
{
	int64_t priority = src.priority == -1 ? 5 + LATER : src.priority + LATER > 9 ? 9 : src.priority + LATER;
	json_t *at;
	bool new;

	check(db_begin(db, page->n > 0));
	for (size_t i = 0; i < page->n; i++)
		if (!page->items[i].old) {
			check(sync_add(db, &src, &page->items[i], priority, prog_now(), &new));
			win.items++;
			win.fresh += new;
			w->fresh += new;
		}
	win.pages += page->n > 0;
	strcpy(win.state, last ? "done" : "doing");
	if (last || cursor != NULL || position != NULL) {
		at = cursor != NULL && src.order == ORDER_ASC ? json_pack("{s:s}", "cursor", cursor) : NULL;
		free(win.walk);
		win.walk = last ? NULL : at != NULL ? json_dumps(at, JSON_COMPACT) : position != NULL && *position != '\0' ? strdup(position) : NULL;
		json_decref(at);
	}
	check(window_save(db, name, &win, prog_now()));
	check(plan_keep(db, name, fence, LEASE_MS));
	check(db_commit(db));
	kept_at = when_elapsed();
	return Q_OK;
}

/* In the middle, on a whole step of the filter; false: it is too small for that. */
static bool
split(void)
{
	int64_t least = !plan.time ? 1 : src.spec.granularity_ms > 0 ? src.spec.granularity_ms : 1000;
	int64_t mid = win.start + (win.stop - win.start) / 2;

	mid -= mid % least;
	if (mid <= win.start)
		mid += least;
	if (mid >= win.stop)
		return false;
	check(db_begin(db, false));
	check(window_split(db, name, &win, mid));
	check(db_commit(db));
	return true;
}

static int
do_source(void)
{
	struct walk w = { .src = &src, .pager = &pager, .before = before, .store = store, .pointed = true };
	char lower[CURSOR_TEXT], upper[CURSOR_TEXT];
	struct cursor_key unused, key;
	json_t *at = win.walk != NULL ? json_loads(win.walk, 0, NULL) : NULL;
	const char *cursor = json_string_value(json_object_get(at, "cursor")), *why;
	bool capped;
	int rc;

	render(win.start, lower, &w.from.key, true);
	render(win.stop, upper, &unused, false);
	if (plan.time)
		cursor_instant(&src.spec, win.stop, &w.until);
	else
		w.until = unused;
	pager.from = lower;
	pager.to = upper;
	w.from.set = true;
	snprintf(w.from.text, sizeof w.from.text, "%s", lower);
	if (cursor != NULL && cursor_key(&src.spec, cursor, &key, &why))	/* go on where it was */
		cursor_bound(&src.spec, cursor, &key, false, w.from.text, &w.from.key);
	json_decref(at);
	walk_resume(&w, win.walk);
	rc = walk_run(&w);
	capped = src.cap > 0 && (win.items >= src.cap || (rc != Q_OK && (pager.status == 400 || pager.status == 422)));
	if (capped && split())
		return Q_NO;
	if (capped && rc == Q_OK) {
		snprintf(pager.message, sizeof pager.message, "%s: %" PRId64 " items, as many as the API gives (\"cap\"), in a window that cannot be made smaller",
		    name, win.items);
		return Q_DATA;
	}
	return rc;
}

/* ---- a window for a command ------------------------------------------------------ */

static int
do_command(void)
{
	static struct child_end end;
	struct pollfd p = { .fd = minder.fd, .events = POLLIN };
	char env[128], a[40], b[40], how[CHILD_HOW_MAX];
	int n;

	wait_turn();
	n = snprintf(env, sizeof env, "Q_FROM=%s%cQ_TO=%s", show(a, sizeof a, win.start), '\0', show(b, sizeof b, win.stop)) + 1;
	strcpy(win.state, "doing");
	check(db_begin(db, false));
	check(window_save(db, name, &win, prog_now()));
	check(db_commit(db));
	minder_run(&minder, env, (size_t)n, "", 0);
	while (prog_poll(&p, 1, LEASE_MS / 6) <= 0) {
		if (prog_signal != 0) {
			minder_kill(&minder, SIGTERM);
			prog_poll(&p, 1, 4 * spec.kill_ms);
			finish(Q_TEMP);
		}
		keep_plan();
	}
	minder_end(&minder, &end);
	if (end.gone)
		give_up(Q_TEMP, "the process that minds the command is gone");
	n = child_exit(&end);
	if (n == Q_TEMP)
		finish(Q_TEMP);
	if (n == 126 || n == 127) {
		snprintf(pager.message, sizeof pager.message, "%s: %s: %s", name, command[0], child_how(how, &end, &spec));
		give_up(n, pager.message);
	}
	if (n != 0) {
		snprintf(pager.message, sizeof pager.message, "%s to %s: %s", a, b, child_how(how, &end, &spec));
		return Q_DATA;
	}
	strcpy(win.state, "done");
	check(db_begin(db, false));
	check(window_save(db, name, &win, prog_now()));
	check(db_commit(db));
	return Q_OK;
}

/* ---- all windows -------------------------------------------------------------------- */

static void
failed(const char *why)
{
	strcpy(win.state, "failed");
	win.note = why;
	check(db_begin(db, false));
	check(window_save(db, name, &win, prog_now()));
	check(db_commit(db));
	end_progress();
	prog_warn("%s", why);
}

static _Noreturn void
work(void)
{
	char why[sizeof pager.message];
	int rc, failures = 0;

	if (fence == 0) {
		check(db_begin(db, false));
		check(plan_own(db, name, prog_worker(), LEASE_MS, prog_now(), &fence));
		if (retry)
			check(plan_retry(db, name));
		check(db_commit(db));
	}
	kept_at = began_at = when_elapsed();
	check(plan_count(db, name, &count));
	done_before = count.done;
	while ((rc = plan_next(db, name, newest, &win)) == Q_OK) {
		rc = command != NULL ? do_command() : do_source();
		snprintf(why, sizeof why, "%s", pager.message);
		if (rc == Q_OK || rc == Q_NO)
			failures = 0;
		else if (rc == Q_TEMP || rc == Q_PERM || rc == Q_CONFIG)
			give_up(rc, why);	/* as it is for the others, too */
		else {
			failed(why);
			if (++failures == FAILURES_MAX) {
				snprintf(why, sizeof why, "%s: %d windows failed one after the other; next: mend that, then qbackfill --retry-failed", name, failures);
				give_up(rc, why);
			}
		}
		free(win.walk);
		win = (struct window){ .start = 0 };
		check(plan_count(db, name, &count));
	}
	if (rc != Q_NO)
		check(rc);
	progress(NULL, true);
	if (count.failed > 0) {
		snprintf(why, sizeof why, "%s: %" PRId64 " windows failed; next: qbackfill --plan, then --retry-failed", name, count.failed);
		give_up(Q_DATA, why);
	}
	finish(Q_OK);
}

/* ---- beginning ------------------------------------------------------------------------ */

static void
options(int argc, char *argv[])
{
	static const char *const ACTS[] = { "--plan", "--status", "--pause", "--resume", "--stop", "--drop" };
	int c, other = 0, at;

	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case 'v': verbose = true; break;
		case 'j': json = true; break;
		case FROM: from = optarg; break;
		case TO: to = optarg; break;
		case STEP: step_text = optarg; break;
		case NAME: name = optarg; break;
		case NEWEST: newest = true; break;
		case RESERVE: reserve = prog_int("--reserve", optarg, 0, 1000000); break;
		case DEPTH: depth = prog_int("--max-depth", optarg, 1, 1000000000); break;
		case RETRY: retry = true; break;
		default:
			other = act != 0 && act != c ? act : other;
			act = c;
		}
	if (other != 0)
		prog_usage("%s and %s exclude each other", ACTS[other - PLAN], ACTS[act - PLAN]);
	at = name == NULL ? optind + 1 : optind;
	if (at > argc)
		prog_usage("no SOURCE, the file that describes what is asked; or --name with a command");
	if (at < argc) {
		if (strcmp(argv[at - (name != NULL)], "--") != 0 && strcmp(argv[at], "--") != 0)
			prog_usage("too many operands: '%s'", argv[at]);
		if (name == NULL || act != 0)
			prog_usage("a command goes with --name, and with a run only");
		command = argv + at + (strcmp(argv[at], "--") == 0);
	}
	if (name != NULL && act == 0 && (command == NULL || *command == NULL))
		prog_usage("--name: no command after '--'");
	if (name != NULL)
		prog_queues((char *const *)&name, 1, 1);
	if (json && act != PLAN && act != STATUS)
		prog_usage("-j goes with --plan and --status");
	prog_now();
}

/* Half of the burst, unless said otherwise. */
static int64_t
default_reserve(void)
{
	struct setting set = { .kind = "rate" };
	struct rate rate = { .burst = 1 };
	const char *value, *why;
	int64_t when;

	if (src.rate == NULL)
		return 0;
	snprintf(set.name, sizeof set.name, "%s", src.rate);
	if (setting_get(db, &set, &value, &when) == Q_OK)
		rate_parse(value, &rate, &why);
	return rate.burst > 1 ? rate.burst / 2 : 1;
}

int
main(int argc, char *argv[])
{
	char message[1024];
	int status;

	prog_start(&self, true);
	options(argc, argv);
	if (name == NULL) {
		if (!source_read(&src, argv[optind], act == 0, &status, message, sizeof message))
			prog_die(status, "%s", message);
		name = src.name;
		if (act == 0 && src.queue == NULL)
			prog_die(Q_CONFIG, "%s: \"queue\" is missing, where the items go", argv[optind]);
	}
	if (command != NULL) {
		spec.argv = command;
		if (minder_start(&minder, &spec, NULL, 0) == -1)
			prog_die(Q_TEMP, "cannot start a process: %s", strerror(errno));
		prog_last = stop_minder;
	}
	prog_catch();
	db = prog_open(DB_STAY);
	pager = (struct pager){ .src = &src, .db = db, .stopped = stopped, .http = command == NULL ? http_open() : NULL,
	    .rate = { .name = src.rate, .worker = prog_worker(), .lease_ms = LEASE_MS } };
	switch (act) {
	case PLAN: print_plan();
	case STATUS: print_status();
	case PAUSE: case RESUME: case STOP: case DROP: set_flag();
	}
	pager.rate.reserve = reserve >= 0 ? reserve : command == NULL ? default_reserve() : 0;
	find_plan();
	work();
}
