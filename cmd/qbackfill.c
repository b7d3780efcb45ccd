/* qbackfill - walk through history on purpose: in windows, at a pace, to be stopped and gone on with */

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backfill.h"
#include "run.h"
#include "sync.h"

static const char HELP[] =
"usage: qbackfill [-hVv] [-d FILE] [--from VALUE] [--to VALUE] [--step STEP]\n"
"                 [--newest-first] [--reserve N] [--max-depth N] [--retry-failed]\n"
"                 SOURCE | --name NAME -- CMD...\n"
"       qbackfill [-hVj] [-d FILE] --plan | --status | --pause | --resume |\n"
"                 --stop | --drop SOURCE | --name NAME\n"
"Fetch what the API of SOURCE (qpoll(5)) holds, in windows of STEP; or run CMD\n"
"for each, with Q_FROM and Q_TO.  Run it again to go on.\n"
"  qbackfill --from 2025-01-01 --step 1d orders.json\n"
"  qbackfill --name tax --from 2025-01-01 --to 2026-01-01 --step 7d -- ./count\n"
"  --from, --to VALUE   the range, without its end: where the cursor of qpoll is\n"
"  --step STEP          a duration, or a number if the values are numbers\n"
"  --newest-first       begin with the last window\n"
"  --reserve N          leave N tokens of the rate to others (half of its burst)\n"
"  --max-depth N        wait while N jobs of the queue wait\n"
"  --retry-failed       also those windows that failed before\n"
"  --plan, --status     the windows (-j: JSON Lines)   -v  progress each minute\n"
"  --pause, --resume    wait before the next request; go on     --stop  end there\n"
"  --drop               forget the plan\n"
"Exit: 0 all is done, 65 some windows failed, 75 stopped, limited, or another run\n"
"is under way, 77 credentials, 78 the source file or the plan.\n";

enum { FROM = 256, TO, STEP, NAME, NEWEST, RESERVE, DEPTH, RETRY, PLAN, STATUS, PAUSE, RESUME, STOP, DROP };
static const struct option LONGS[] = {
	{ "verbose", 0, NULL, 'v' }, { "json", 0, NULL, 'j' }, { "from", 1, NULL, FROM }, { "to", 1, NULL, TO }, { "step", 1, NULL, STEP },
	{ "name", 1, NULL, NAME }, { "newest-first", 0, NULL, NEWEST }, { "reserve", 1, NULL, RESERVE }, { "max-depth", 1, NULL, DEPTH },
	{ "retry-failed", 0, NULL, RETRY }, { "plan", 0, NULL, PLAN }, { "status", 0, NULL, STATUS }, { "pause", 0, NULL, PAUSE },
	{ "resume", 0, NULL, RESUME }, { "stop", 0, NULL, STOP }, { "drop", 0, NULL, DROP }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qbackfill", .help = HELP, .shorts = "+vj", .longs = LONGS };

enum {
	LOOK_MS = 500,			/* between two looks at what holds it up */
	FAILURES_MAX = 5,		/* windows in a row */
	LATER = 2			/* how much less urgent its jobs are than those of qpoll */
};

static struct source src;
static const struct source *api = &src;	/* NULL: a command */
static struct pager pager;
static struct run command = { .strict = true, .again = true };
static struct db *db;
static struct plan plan;
static struct plan_count count;
static struct window win;
static struct window_ask range;
static const char *name, *from, *to, *step;
static bool json, newest, retry, verbose, pointed, told_to_end;
static int act;
static int64_t reserve = -1, depth = -1, lease_ms = 5 * 60 * 1000, fence, kept_at, began_at, told_at, begun_with;

/* ---- progress, and the end ---- */

/* On a terminal a line that is written over, else, with -v, a line a minute. */
static void
progress(const char *why)
{
	int64_t now = when_elapsed(), ran = now - began_at, done = count.done - begun_with;
	bool terminal = isatty(STDERR_FILENO);
	char left[WHEN_TEXT] = "?", line[512];

	if ((!terminal && !verbose) || now - told_at < (terminal ? 250 : 60 * 1000))
		return;
	told_at = now;
	if (done > 0)
		when_brief(left, ran / done * count.todo);
	snprintf(line, sizeof line, "qbackfill: %s: %" PRId64 "/%" PRId64 " windows, %" PRId64 " items, %" PRId64 " new, %" PRId64 " requests, %.1f/s, %s left%s%s",
	    name, count.done, count.done + count.todo + count.failed, count.items, count.fresh, pager.pages,
	    ran > 0 ? (double)pager.pages * 1000 / (double)ran : 0.0, left, why != NULL ? "; waits: " : "", why != NULL ? why : "");
	if (terminal)
		fprintf(stderr, "\r\033[K%.*s", prog_columns() - 1, line);	/* one that wraps could not be written over */
	else
		fprintf(stderr, "%s\n", line);
}

static void
complain(const char *why)
{
	if (told_at > 0 && isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	if (why != NULL)
		prog_warn("%s", why);
}

/* Give back what is held, so that nobody waits for the end of a lease. */
static _Noreturn void
end(int status, const char *why)
{
	complain(why);
	db_rollback(db);
	db_clear(db);
	if (fence != 0 && db_begin(db, false) == Q_OK && plan_leave(db, name, fence) == Q_OK)
		db_commit(db);
	db_rollback(db);
	rate_leave(db, &pager.rate);
	prog_exit(status);
}

static _Noreturn void end_with(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "NAME: ..." */
static _Noreturn void
end_with(int status, const char *fmt, ...)
{
	char text[sizeof pager.message];
	int n = snprintf(text, sizeof text, "%s: ", name);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
	va_end(ap);
	end(status, text);
}

static void
check(int status)
{
	char text[1024];

	if (status == Q_OK)
		return;
	snprintf(text, sizeof text, "%s", db_message(db));
	end(status, text);
}

/* ---- what is asked of it while it works ---- */

static int
renew(struct db *file, void *arg)
{
	(void)arg;
	kept_at = when_elapsed();
	return plan_keep(file, name, fence, lease_ms);
}

/* Why it must wait; NULL: it need not. */
static const char *
held_up(void)
{
	static char why[160];
	struct plan now;
	int64_t waiting;
	int rc = plan_read(db, name, &now);

	if (rc == Q_NO)
		end_with(Q_TEMP, "its plan was dropped");
	check(rc);
	if (strcmp(now.flag, "stop") == 0)
		end_with(Q_TEMP, "it was stopped; next: qbackfill --resume, or --retry-failed");
	if (strcmp(now.flag, "pause") == 0)
		return "it is paused";
	if (depth > 0 && (waiting = plan_depth(db, src.queue, depth)) >= depth) {
		snprintf(why, sizeof why, "%" PRId64 " jobs of %s wait", waiting, src.queue);
		return why;
	}
	check(db_status(db));
	return NULL;
}

/* During a request: the first signal lets it end, so that its page is kept, the second does not. */
static bool
broken(void)
{
	prog_poll(NULL, 0, 0);
	if (prog_signal != 0 && !told_to_end) {
		told_to_end = true;
		prog_signal = 0;
	}
	return prog_signal != 0;
}

/* Before each request and each window, and while it waits; true: a signal came. */
static bool
stopped(void)
{
	static int64_t asked = -1;
	const char *why, *waits = asked == pager.pages && api != NULL ? "the rate, or the server" : NULL;

	for (;;) {
		prog_poll(NULL, 0, 0);
		if (told_to_end || prog_signal != 0)
			return true;
		if (when_elapsed() - kept_at > lease_ms / 3) {
			check(db_begin(db, false));
			check(renew(db, NULL));
			check(db_commit(db));
		}
		if ((why = held_up()) == NULL)
			break;
		check(rate_leave(db, &pager.rate));	/* others can use the place */
		progress(why);
		prog_poll(NULL, 0, LOOK_MS);
	}
	progress(waits);
	asked = pager.pages;
	return false;
}

/* ---- windows ---- */

/* In the transaction that was begun, and ends. */
static void
save(struct window *w, const char *state)
{
	snprintf(w->state, sizeof w->state, "%s", state);
	check(window_save(db, name, w, prog_now()));
	check(renew(db, NULL));
	check(db_commit(db));
	count.todo -= strcmp(state, "doing") != 0;
	count.done += strcmp(state, "done") == 0;
	count.failed += strcmp(state, "failed") == 0;
}

/* An empty answer looks the same if the credential has lost its rights. */
static void
trust(void)
{
	struct page page;
	int rc = src.whoami != NULL ? page_ask(&pager, src.whoami) : Q_OK;

	if (rc == Q_OK && src.probe != NULL && (rc = page_probe(&pager, src.probe, &page)) == Q_OK) {
		if (page.n == 0)
			end_with(Q_PERM, "blind: the control query shows no item at all; has the credential lost its rights?");
		page_free(&page);
	}
	if (rc != Q_OK)
		end(rc, pager.message);
}

static int
before(struct walk *w)
{
	(void)w;
	return Q_OK;			/* the pager asks stopped() */
}

static int
store(struct walk *w, struct page *page, const char *cursor, const char *position, bool last)
{
	int64_t priority = (src.priority == -1 ? 5 : src.priority) + LATER;
	struct window next = win;
	int rc;

	if (last && win.items + window_wants(&range, page) == 0)
		trust();
	check(db_begin(db, page->n > 0));
	if ((rc = window_add(db, &src, &range, page, priority < 9 ? priority : 9, prog_now(), &next)) == Q_DATA) {
		snprintf(pager.message, sizeof pager.message, "%s", db_message(db));
		db_rollback(db);
		return rc;		/* no job can be made of an item: this window fails */
	}
	check(rc);
	window_go_on(&src, cursor, position, last, &next);
	save(&next, last && !w->cut ? "done" : "doing");
	if (next.walk != win.walk)
		free(win.walk);
	w->fresh += next.fresh - win.fresh;
	count.items += next.items - win.items;
	count.fresh += next.fresh - win.fresh;
	count.pages += next.pages - win.pages;
	win = next;
	return Q_OK;
}

/* Q_NO: it has become two. */
static int
do_source(void)
{
	struct walk w = { .src = &src, .pager = &pager, .before = before, .store = store, .pointed = pointed };
	int rc;

	window_ask(&plan, &src, &win, &range, &w);
	pager.from = range.from;
	pager.to = range.to;
	rc = walk_run(&w);
	pointed = w.pointed;
	if (rc != Q_OK ? rc != Q_UNKNOWN || src.cap <= 0 || win.pages == 0 || (pager.status != 400 && pager.status != 422) : !w.cut)
		return rc;
	check(db_begin(db, false));
	if (window_split(db, &plan, &src, &win) == Q_OK) {
		check(renew(db, NULL));
		check(db_commit(db));
		count.todo++;
		return Q_NO;
	}
	check(db_status(db));
	db_rollback(db);
	if (rc != Q_OK)
		return rc;
	snprintf(pager.message, sizeof pager.message, "%s: from %s to %s: as many items as the API gives (\"cap\"), in a window that cannot be made smaller",
	    name, range.from, range.to);
	return Q_DATA;
}

static int
do_command(void)
{
	char env[128], a[WHEN_TEXT], b[WHEN_TEXT], how[CHILD_HOW_MAX];
	int n, status;
	bool lost;

	if (stopped())
		end_with(Q_TEMP, "interrupted");
	n = snprintf(env, sizeof env, "Q_FROM=%s%cQ_TO=%s", plan_value(&plan, win.start, a), '\0', plan_value(&plan, win.stop, b)) + 1;
	check(db_begin(db, false));
	save(&win, "doing");
	run_begin(&command, kept_at, env, (size_t)n);
	run_watch(&command, db);
	if (command.lost)
		end_with(Q_LOST, "another run works on the plan now; the command was killed");
	if (command.caught != 0)
		end_with(Q_TEMP, "interrupted");
	status = child_exit(&command.end);
	lost = status == 0 && (command.end.lost[0] != 0 || command.end.lost[1] != 0);
	if (lost)
		status = Q_IO;
	if (status != 0)
		snprintf(pager.message, sizeof pager.message, "%s: from %s to %s: %s: %s", name, a, b, command.spec.argv[0],
		    child_how(how, &command.end, &command.spec));
	if (command.end.gone || lost || status == Q_TEMP || status == 126 || status == 127)	/* as it would be for the others, too */
		end(command.end.gone ? Q_TEMP : status, pager.message);
	if (status != 0)
		return Q_DATA;
	check(db_begin(db, false));
	save(&win, "done");
	return Q_OK;
}

static _Noreturn void
work(void)
{
	int rc, failures = 0;

	began_at = when_elapsed();
	begun_with = count.done;
	while ((rc = plan_next(db, name, newest, &win)) == Q_OK) {
		rc = api != NULL ? do_source() : do_command();
		if (rc == Q_TEMP || rc == Q_PERM || rc == Q_CONFIG || (rc == Q_UNKNOWN && pager.status == 0))
			end(rc, pager.message);		/* as it is for the others, too */
		failures = rc == Q_OK ? 0 : rc == Q_NO ? failures : failures + 1;
		if (rc != Q_OK && rc != Q_NO) {
			win.note = pager.message;
			check(db_begin(db, false));
			if (failures == FAILURES_MAX)
				check(plan_flag(db, name, "stop"));
			save(&win, "failed");
			complain(pager.message);
		}
		if (failures == FAILURES_MAX)
			end_with(rc, "%d windows failed one after the other; next: mend that, then qbackfill --retry-failed", failures);
		free(win.walk);
		progress(NULL);
	}
	if (rc != Q_NO)
		check(rc);
	if (count.failed > 0)
		end_with(Q_DATA, "%" PRId64 " windows failed; next: qbackfill --plan, then --retry-failed", count.failed);
	end(Q_OK, NULL);
}

/* ---- the plan ---- */

static void
parse(struct plan *p)
{
	int rc = plan_parse(db, api, from, to, step, p);

	if (rc == Q_USAGE)
		prog_usage("%s", db_message(db));
	prog_check(db, rc);
}

/* The one that is there; Q_NO: none. */
static int
read_plan(void)
{
	int rc = plan_read(db, name, &plan);

	if (rc == Q_OK)
		rc = plan_count(db, name, &count);
	if (rc != Q_NO)
		prog_check(db, rc);
	return rc;
}

/* What can be asked for in windows at all. */
static void
check_source(void)
{
	if (src.order == ORDER_OPAQUE || src.spec.type > CURSOR_INT)
		prog_die(Q_CONFIG, "%s: only a list by time or by whole number can be cut into windows (\"order\", \"cursor_type\")", name);
	if (src.order != ORDER_ASC && !source_sends(&src, "to"))
		prog_die(Q_CONFIG, "%s: nothing in \"query\" or \"body\" asks up to {to}, so each window would read all that is newer", name);
}

/* The plan that is there goes on; one with other bounds is made only when it is done. */
static void
find_plan(void)
{
	char a[WHEN_TEXT], b[WHEN_TEXT];
	bool there = read_plan() == Q_OK;
	struct plan want = plan;

	if (!there && from == NULL)
		prog_usage("no plan of '%s' yet: it needs --from and --step", name);
	if (from != NULL)
		parse(&want);
	if (there && from != NULL && (want.time != plan.time || want.start != plan.start || want.stop != plan.stop || want.step != plan.step)) {
		if (count.todo + count.failed > 0)
			prog_die(Q_CONFIG, "%s: there is a plan from %s to %s that is not done; next: qbackfill --status, or --drop", name,
			    plan_value(&plan, plan.start, a), plan_value(&plan, plan.stop, b));
		there = false;
		want.stop = 0;
		parse(&want);
	}
	if (there && (api == NULL) != (plan.config[0] == '\0'))
		prog_die(Q_CONFIG, "%s: the plan was made for a %s; next: qbackfill --drop", name, api != NULL ? "command" : "source");
	if (there && api != NULL && strcmp(plan.config, src.config) != 0)
		prog_die(Q_CONFIG, "%s: the source file asks for other items than when the plan was made; next: qbackfill --drop", name);
	if (there)
		return;
	plan = want;
	prog_check(db, plan_make(db, &plan, prog_now()));
}

static int
print_window(const struct window *w, void *arg)
{
	char a[WHEN_TEXT], b[WHEN_TEXT];

	(void)arg;
	plan_value(&plan, w->start, a);
	plan_value(&plan, w->stop, b);
	printf(json ? "{\"name\":\"%s\",\"from\":\"%s\",\"to\":\"%s\",\"state\":\"%s\",\"pages\":%" PRId64 ",\"items\":%" PRId64 ",\"new\":%" PRId64 ",\"note\":" :
	    "%.0s%s\t%s\t%s\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t", name, a, b, w->state, w->pages, w->items, w->fresh);
	if (!json)
		text_tsv(stdout, w->note != NULL ? w->note : "", w->note != NULL ? strlen(w->note) : 0);
	else if (w->note != NULL)
		text_json(stdout, w->note, strlen(w->note));
	else
		fputs("null", stdout);
	puts(json ? "}" : "");
	return Q_OK;
}

/* What would be done, or is being done. */
static void
print_plan(void)
{
	if (from == NULL) {
		prog_check(db, plan_each(db, name, print_window, NULL));
		return;
	}
	plan = (struct plan){ .name = name };
	parse(&plan);
	for (int64_t at = plan.start; at < plan.stop; at += plan.step)
		print_window(&(struct window){ .start = at, .stop = plan.step < plan.stop - at ? at + plan.step : plan.stop, .state = "todo" }, NULL);
}

static void
print_status(void)
{
	const char *quote = plan.flag[0] != '\0' ? "\"" : "";
	char a[WHEN_TEXT], b[WHEN_TEXT];

	plan_value(&plan, plan.start, a);
	plan_value(&plan, plan.stop, b);
	if (json)
		printf("{\"name\":\"%s\",\"from\":\"%s\",\"to\":\"%s\",\"left\":%" PRId64 ",\"done\":%" PRId64 ",\"failed\":%" PRId64
		    ",\"pages\":%" PRId64 ",\"items\":%" PRId64 ",\"new\":%" PRId64 ",\"flag\":%s%s%s}\n", name, a, b, count.todo, count.done, count.failed,
		    count.pages, count.items, count.fresh, quote, *quote != '\0' ? plan.flag : "null", quote);
	else
		printf("%s: %s to %s: %" PRId64 " windows done, %" PRId64 " left, %" PRId64 " failed; %" PRId64 " items, %" PRId64 " new, %" PRId64 " pages%s%s\n",
		    name, a, b, count.done, count.todo, count.failed, count.items, count.fresh, count.pages, *quote != '\0' ? "; asked to " : "", plan.flag);
}

/* All but a run. */
static _Noreturn void
do_act(void)
{
	static const char *const FLAGS[] = { "pause", NULL, "stop" };

	if (read_plan() == Q_NO && (act != PLAN || from == NULL))
		prog_die(Q_NOINPUT, "%s: there is no plan; one is made with --from and --step", name);
	if (act == PLAN)
		print_plan();
	else if (act == STATUS)
		print_status();
	else {
		prog_check(db, db_begin(db, false));
		prog_check(db, act == DROP ? plan_drop(db, name) : plan_flag(db, name, FLAGS[act - PAUSE]));
		prog_check(db, db_commit(db));
	}
	prog_exit(Q_OK);
}

/* ---- beginning ---- */

static void
options(int argc, char *argv[])
{
	static const char *const ACTS[] = { "--plan", "--status", "--pause", "--resume", "--stop", "--drop" };
	int c, other = 0;

	while ((c = prog_option(argc, argv)) != -1)
		switch (c) {
		case 'v': verbose = true; break;
		case 'j': json = true; break;
		case FROM: from = optarg; break;
		case TO: to = optarg; break;
		case STEP: step = optarg; break;
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
	if (name != NULL) {
		api = NULL;
		prog_queues((char *const *)&name, 1, 1);
		if (act == 0 && (optind == argc || strcmp(argv[optind - 1], "--") != 0))
			prog_usage("--name: no command after '--'");
		command.spec.argv = argv + optind;
	} else if (optind == argc)
		prog_usage("no SOURCE, the file that describes what is asked; or --name with a command");
	if (optind + (api != NULL) < argc && (act != 0 || api != NULL))
		prog_usage("too many operands: '%s'%s", argv[optind + (api != NULL)], act == 0 ? "; a command goes with --name" : "");
	if ((from == NULL) != (step == NULL) || (from == NULL && to != NULL))
		prog_usage("--from and --step go together, and --to with them");
	if (api == NULL && from != NULL && to == NULL)
		prog_usage("--to is needed with a command");
	if ((act > PLAN && from != NULL) || (act != 0 && (verbose || newest || retry || reserve != -1 || depth != -1)))
		prog_usage("%s goes without the options of a run", ACTS[act - PLAN]);
	if (api == NULL && (reserve != -1 || depth != -1))
		prog_usage("--reserve and --max-depth go with a SOURCE");
	if (json && act != PLAN && act != STATUS)
		prog_usage("-j goes with --plan and --status");
	prog_now();
}

static void
open_source(const char *path)
{
	char message[1024];
	int status;

	if (!source_read(&src, path, act == 0, &status, message, sizeof message))
		prog_die(status, "%s", message);
	name = src.name;
	if (act == 0 && src.queue == NULL)
		prog_die(Q_CONFIG, "%s: \"queue\" is missing, where the items go", path);
	if (act == 0 || act == PLAN)
		check_source();
	lease_ms += src.timeout_ms;
}

int
main(int argc, char *argv[])
{
	struct sync state;
	int64_t burst;

	prog_start(&self, true);
	options(argc, argv);
	if (api != NULL)
		open_source(argv[optind]);
	command.what = name;
	command.lease_ms = lease_ms;
	command.renew = renew;
	if (api == NULL && act == 0)
		run_start(&command);
	else
		prog_catch();
	db = prog_open(DB_STAY);
	if (act != 0)
		do_act();
	pager = (struct pager){ .src = &src, .db = db, .stopped = stopped, .broken = broken, .rate = { .name = src.rate, .worker = prog_worker(), .lease_ms = lease_ms } };
	prog_check(db, db_tables(db, FOR_QPOLL));
	if (api != NULL) {
		prog_check(db, sync_read(&state, db, &src, &pager));
		pointed = state.pointed;
		sync_free(&state);
		if (src.rate != NULL && (pager.rate.reserve = reserve) == -1) {	/* with 1, too, a poller that waits goes first */
			prog_check(db, rate_burst(db, src.rate, &burst));
			pager.rate.reserve = burst > 1 ? burst / 2 : 1;
		}
		if ((pager.http = http_open()) == NULL)
			prog_die(Q_TEMP, "out of memory");
	}
	prog_check(db, db_begin(db, false));
	prog_check(db, plan_own(db, name, prog_worker(), lease_ms, prog_now(), &fence));
	find_plan();
	if (retry)
		prog_check(db, plan_retry(db, name));
	prog_check(db, plan_count(db, name, &count));
	prog_check(db, db_commit(db));
	kept_at = when_elapsed();
	if (api != NULL && count.todo > 0)
		trust();
	work();
}
