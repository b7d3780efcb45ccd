/* child.c - commands on a leash; see child.h */

#define _GNU_SOURCE		/* pipe2, ppoll */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "child.h"

#define LINGER_MS 500		/* `exec > >(tee log)`: what outlives the command may finish its output */
#define SWEEP_MS 50		/* between two looks for what is left, if no SIGCHLD comes first */
#define GIVEUP_MS 5000		/* then a process that KILL does not end (a dead disk) is left behind */
#define REAP_MAX 1000		/* the dead that are collected before something else is looked at */
#define NUDGE_MS 100		/* how long one write to somebody else's pipe may block */
#define REST_READS 64		/* of what a pipe still holds at the end: a megabyte at most */
#define LEASE_LOOK_MS 1000	/* a wait does not end sooner because the machine slept, a lease does */
#define NEVER INT64_MAX

/* Master to minder: a signal for the command, (sig 0) the next job, followed by both blocks, or (KEEP) its new lease. */
#define KEEP (-1)
struct lease { int64_t term_at, kill_at; };	/* by when_elapsed(), NEVER: none */
struct order {
	int sig;
	size_t env_len, len;
	struct lease lease;
};

struct stream {			/* standard output or standard error of a command */
	int from;		/* our end of its pipe, -1 when closed */
	int to;			/* where it is passed on, -1: nowhere */
	size_t at, len;		/* what of buf is not passed on yet */
	int64_t number;		/* the line that is being read, if it is one so far; EMPTY, OTHER */
	char *buf;
};
#define EMPTY (-1)
#define OTHER (-2)

struct run {			/* the minder's view of one command */
	const struct child_spec *spec;
	struct child_end *end;
	pid_t pid, group;	/* 0: it has ended; its group */
	int in, exec;		/* our ends of its pipes, -1 when closed */
	struct stream stream[2];	/* its standard output and error */
	bool same;		/* both are passed on to one place */
	const char *input;
	size_t left;
	bool killed;
	int64_t term_at, kill_at, sweep_at, giveup_at;	/* on the monotonic clock */
	int64_t stop_at;	/* passing on its output */
};

static bool leash;		/* descendants come to us, and we can find them */
static struct lease lease = { NEVER, NEVER };	/* of the minder */
static sigset_t all_open;	/* the mask while waiting: nothing blocked */

/* Time asleep does not count against a command. */
static int64_t
monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static bool
get(int fd, void *p, size_t n)
{
	ssize_t got;

	for (; n > 0; p = (char *)p + got, n -= (size_t)got) {
		while ((got = read(fd, p, n)) == -1 && errno == EINTR)
			;
		if (got <= 0)
			return false;
	}
	return true;
}

static bool
put(int fd, const void *p, size_t n)
{
	ssize_t done;

	for (; n > 0; p = (const char *)p + done, n -= (size_t)done) {
		while ((done = write(fd, p, n)) == -1 && errno == EINTR)
			;
		if (done == -1)
			return false;
	}
	return true;
}

static void
shut(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

/* ---- the minder ---------------------------------------------------------- */

/* The child's part between fork and exec. */
static _Noreturn void
command(const struct child_spec *spec, pid_t minder, char *env, size_t env_len, const int fd[3], int exec)
{
	int i, why;
	char *e;

	setpgid(0, 0);
#ifdef __linux__
	prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
	if (getppid() != minder)	/* it died before the line above */
		_exit(126);
	for (i = 0; i < 3; i++)
		dup2(fd[i], i);
	for (i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigprocmask(SIG_SETMASK, &all_open, NULL);
	for (e = env; e < env + env_len; e += strlen(e) + 1)
		putenv(e);
	execvp(spec->argv[0], spec->argv);
	why = errno;
	put(exec, &why, sizeof(why));
	_exit(why == ENOENT || why == ENOTDIR ? 127 : 126);
}

/* Pipes and a process; false with errno. */
static bool
start(struct run *r, char *env, size_t env_len)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 }, exec[2] = { -1, -1 }, why;
	/* Only its foreground group may read a terminal: any other is stopped. */
	bool own = r->spec->pass && !isatty(STDIN_FILENO);
	pid_t minder = getpid();

	if (pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0 &&
	    pipe2(exec, O_CLOEXEC) == 0 && (r->pid = fork()) == 0)
		command(r->spec, minder, env, env_len, (int[3]){ own ? STDIN_FILENO : in[0], out[1], err[1] }, exec[1]);
	why = errno;
	shut(&in[0]);
	shut(&out[1]);
	shut(&err[1]);
	shut(&exec[1]);
	r->in = in[1];
	r->stream[0].from = out[0];
	r->stream[1].from = err[0];
	r->exec = exec[0];
	errno = why;
	if (r->pid <= 0)
		return false;
	r->group = r->pid;
	setpgid(r->pid, r->pid);	/* on both sides: whoever comes first */
	return fcntl(r->in, F_SETFL, O_NONBLOCK) == 0 && fcntl(out[0], F_SETFL, O_NONBLOCK) == 0 &&
	    fcntl(err[0], F_SETFL, O_NONBLOCK) == 0 && fcntl(r->exec, F_SETFL, O_NONBLOCK) == 0;
}

static void
feed(struct run *r)
{
	ssize_t n = write(r->in, r->input, r->left);

	if (n > 0) {
		r->input += n;
		r->left -= (size_t)n;
	}
	if (r->left == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))	/* EPIPE: it does not want to read */
		shut(&r->in);
}

/* The last line that is a whole number, wherever it stands. */
static void
tally(struct stream *s, struct child_end *end, const char *p, size_t n)
{
	for (; n > 0; n--, p++)
		if (*p == '\n') {
			if (s->number >= 0)
				end->count = s->number;
			s->number = EMPTY;
		} else if (!isdigit((unsigned char)*p) || s->number == OTHER || s->number > (INT64_MAX - 9) / 10)
			s->number = OTHER;
		else
			s->number = (s->number == EMPTY ? 0 : 10 * s->number) + *p - '0';
}

static void
keep_first(struct child_end *end, const char *p, size_t n)
{
	end->out_total += (int64_t)n;
	if (n > CHILD_OUT_MAX - end->out_len)
		n = CHILD_OUT_MAX - end->out_len;
	memcpy(end->out + end->out_len, p, n);
	end->out_len += n;
}

static void
keep_last(struct child_end *end, const char *p, size_t n)
{
	size_t keep, most = n < CHILD_ERR_MAX ? n : CHILD_ERR_MAX;

	keep = end->err_len < CHILD_ERR_MAX - most ? end->err_len : CHILD_ERR_MAX - most;
	memmove(end->err, end->err + end->err_len - keep, keep);
	memcpy(end->err + keep, p + n - most, most);
	end->err_len = keep + most;
}

/* One read, when all of the last has been passed on; false if there was nothing (now, or any more). */
static bool
take(struct run *r, struct stream *s)
{
	ssize_t got;

	if (s->from == -1)
		return false;
	got = read(s->from, s->buf, CHILD_OUT_MAX);
	if (got == 0 || (got == -1 && errno != EAGAIN && errno != EINTR))
		shut(&s->from);
	if (got <= 0)
		return false;
	if (s == r->stream) {
		keep_first(r->end, s->buf, (size_t)got);
		tally(s, r->end, s->buf, (size_t)got);
	} else
		keep_last(r->end, s->buf, (size_t)got);
	s->at = 0;
	s->len = s->to != -1 ? (size_t)got : 0;
	return true;
}

/* What cannot be passed on is lost, and the command is told by SIGPIPE, as if it had written there itself; not if that is only a spool. */
static void
lose(struct run *r, struct stream *s, int why)
{
	r->end->lost[s - r->stream] = why;
	s->at = s->len;
	s->to = -1;
	if (!(r->spec->spool && s == r->stream))
		shut(&s->from);
}

/* One write of what waits.  Others may write there, too, so it can block though there was room. */
static void
give(struct run *r, struct stream *s)
{
	size_t n = s->len - s->at < PIPE_BUF ? s->len - s->at : PIPE_BUF;
	ssize_t done;
	int why;

	when_nudge(NUDGE_MS);
	done = write(s->to, s->buf + s->at, n);
	why = errno;
	when_nudge(0);
	if (done >= 0)
		s->at += (size_t)done;
	else if (why != EAGAIN && why != EINTR)
		lose(r, s, why);
}

static bool
waits(const struct stream *s)
{
	return s->at < s->len;
}

/* Nothing more is read while something waits; in one place neither stream may come amid a line of the other. */
static bool
may_take(const struct run *r, const struct stream *s)
{
	return !waits(s) && !(r->same && waits(&r->stream[s == r->stream]));
}

/* What to wait for; when nothing waits, does a reader still listen? */
static void
watch(const struct run *r, const struct stream *s, struct pollfd p[2])
{
	p[0] = (struct pollfd){ may_take(r, s) ? s->from : -1, POLLIN, 0 };
	p[1] = (struct pollfd){ waits(s) || s->from != -1 ? s->to : -1, waits(s) ? POLLOUT : 0, 0 };
}

static void
flow(struct run *r, struct stream *s, const struct pollfd p[2])
{
	if (p[0].revents && may_take(r, s))
		take(r, s);
	else if (p[1].revents && waits(s))
		give(r, s);
	else if (p[1].revents && !p[0].revents)
		shut(&s->from);
}

/*
 * Kill our own children, which are what the command left behind; their children come to us then.  What forks all
 * the time outruns that, but not a signal to its group: the command's, as long as one of ours is in it.
 */
static void
sweep(pid_t group)
{
	char path[64], stat[512], *p;
	long pid, parent, pgrp;
	struct dirent *d;
	ssize_t n;
	int fd;
	DIR *dir = opendir("/proc");

	while (dir != NULL && (d = readdir(dir)) != NULL) {
		if ((pid = strtol(d->d_name, &p, 10)) <= 0 || *p != '\0')
			continue;
		snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
		if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
			continue;
		n = read(fd, stat, sizeof(stat) - 1);
		close(fd);
		stat[n > 0 ? n : 0] = '\0';
		/* "PID (NAME) STATE PARENT GROUP ...", and a name may contain anything */
		if ((p = strrchr(stat, ')')) != NULL && sscanf(p, ") %*c %ld %ld", &parent, &pgrp) == 2 && parent == getpid())
			kill(pgrp == group ? -group : (pid_t)pid, SIGKILL);
	}
	if (dir != NULL)
		closedir(dir);
}

/* Collect the dead, but not for ever: some leave new ones all the time.  False when no child is left. */
static bool
reap(struct run *r, int64_t now)
{
	siginfo_t who;

	for (int i = 0; i < REAP_MAX; i++) {
		who.si_pid = 0;
		if (waitid(P_ALL, 0, &who, WEXITED | WNOHANG | WNOWAIT) == -1)
			return errno != ECHILD;
		if (who.si_pid == 0)
			return true;
		if (who.si_pid != r->pid) {
			waitpid(who.si_pid, NULL, 0);
			continue;
		}
		/* The group goes before its number is free for others; with a leash the rest may linger. */
		if (!leash || r->killed)
			kill(-r->pid, SIGKILL);
		waitpid(r->pid, &r->end->status, 0);
		r->pid = 0;
		r->term_at = r->kill_at = NEVER;
		r->sweep_at = now + (r->killed ? 0 : LINGER_MS);
		r->giveup_at = r->sweep_at + GIVEUP_MS;
	}
	return true;
}

static void
signal_command(struct run *r, int sig, int64_t now)
{
	if (sig == SIGKILL) {
		r->killed = true;
		r->kill_at = NEVER;
		if (r->sweep_at != NEVER)	/* it has ended: no lingering now */
			r->sweep_at = now;
	} else if (r->pid > 0 && r->kill_at == NEVER)
		r->kill_at = now + r->spec->kill_ms;
	if (r->pid > 0) {
		kill(-r->pid, sig);
		if (getpgid(r->pid) != r->pid)	/* it left its group */
			kill(r->pid, sig);
		kill(-r->pid, SIGCONT);		/* a stopped one would not notice */
	}
}

/* The lease is nearly over, and nobody has renewed it. */
static void
act_on_lease(struct run *r, int64_t now)
{
	int64_t elapsed = when_elapsed();

	if (elapsed >= lease.term_at) {
		lease.term_at = NEVER;
		r->end->lapsed |= r->pid > 0;
		signal_command(r, SIGTERM, now);
	}
	if (elapsed >= lease.kill_at) {
		lease.kill_at = NEVER;
		signal_command(r, SIGKILL, now);
	}
}

static void
act_on_time(struct run *r, int64_t now)
{
	act_on_lease(r, now);
	if (now >= r->term_at) {
		r->term_at = NEVER;
		r->end->timed_out = true;
		signal_command(r, SIGTERM, now);
	}
	if (now >= r->kill_at)
		signal_command(r, SIGKILL, now);
	if (now >= r->sweep_at) {
		sweep(r->group);
		r->sweep_at = now + SWEEP_MS;
	}
}

static int64_t
earliest(const struct run *r)
{
	int64_t a = r->term_at < r->kill_at ? r->term_at : r->kill_at;
	int64_t b = r->sweep_at < r->giveup_at ? r->sweep_at : r->giveup_at;

	return a < b ? a : b;
}

/* How long to wait at most for what ends a lease. */
static int64_t
lease_wait(void)
{
	int64_t at = lease.term_at < lease.kill_at ? lease.term_at : lease.kill_at, wait;

	if (at == NEVER)
		return NEVER;
	wait = at - when_elapsed();
	return wait < 0 ? 0 : wait < LEASE_LOOK_MS ? wait : LEASE_LOOK_MS;
}

/* Mind the command until neither it nor anything of it is left.  False: the master is gone. */
static bool
mind(struct run *r, int master)
{
	struct timespec wait;
	struct order order;
	bool orphan = false;
	int64_t now, at, most;

	while (now = monotonic(), reap(r, now) && now < r->giveup_at) {
		struct pollfd p[6] = { { orphan ? -1 : master, POLLIN, 0 }, { r->in, POLLOUT, 0 } };

		watch(r, &r->stream[0], p + 2);
		watch(r, &r->stream[1], p + 4);
		act_on_time(r, now);
		at = earliest(r);
		if ((most = lease_wait()) != NEVER && at > now + most)
			at = now + most;
		wait.tv_sec = (at - now) / 1000;
		wait.tv_nsec = (at - now) % 1000 * 1000000;
		if (ppoll(p, 6, at == NEVER ? NULL : &wait, &all_open) == -1 && poll(p, 6, 0) == -1)
			continue;	/* interrupted by SIGCHLD, perhaps each time: the second look is not */
		if (p[1].revents)
			feed(r);
		flow(r, &r->stream[0], p + 2);
		flow(r, &r->stream[1], p + 4);
		if (p[0].revents && get(master, &order, sizeof(order))) {
			if (order.sig == KEEP) {
				lease = order.lease;
				continue;
			}
			r->end->told |= r->pid > 0;
			r->stop_at = monotonic() + r->spec->kill_ms;
			signal_command(r, order.sig, monotonic());
		} else if (p[0].revents) {
			orphan = true;
			r->giveup_at = monotonic() + GIVEUP_MS;
			signal_command(r, SIGKILL, monotonic());
		}
	}
	return !orphan;
}

/*
 * What the pipes still hold when nothing is left of the command, or nothing that can be ended.  Who reads it may be
 * slow, but only until stop_at.  False: the master is gone.
 */
static bool
rest(struct run *r, int master)
{
	int64_t now = monotonic(), wait;
	int reads[2] = { 0, 0 };
	struct order order;

	if (r->stop_at < now + r->spec->kill_ms)
		r->stop_at = now + r->spec->kill_ms;
	for (;;) {
		struct pollfd p[3] = { { master, POLLIN, 0 }, { -1, POLLOUT, 0 }, { -1, POLLOUT, 0 } };
		bool all = true;

		now = monotonic();
		for (int i = 0; i < 2; i++) {
			struct stream *s = &r->stream[i];

			while (may_take(r, s) && reads[i]++ < REST_READS && take(r, s))
				;
			if (waits(s) && now >= r->stop_at)
				lose(r, s, ETIMEDOUT);
			p[1 + i].fd = waits(s) ? s->to : -1;
			all &= !waits(s);
		}
		if (all)
			return true;
		wait = r->stop_at - now < INT_MAX ? r->stop_at - now : INT_MAX;
		poll(p, 3, (int)wait);
		if (p[0].revents && !get(master, &order, sizeof(order)))
			return false;
		if (p[0].revents && order.sig != KEEP)
			r->stop_at = monotonic() + (order.sig == SIGKILL ? 0 : r->spec->kill_ms);
		for (int i = 0; i < 2; i++)
			if (p[1 + i].revents)
				give(r, &r->stream[i]);
	}
}

static bool
one_place(void)
{
	struct stat out, err;

	return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

/* The command could not even be started: not now. */
static void
not_started(struct child_end *end, int why)
{
	end->exec_errno = why;
	end->status = Q_TEMP << 8;	/* as wait(2) would give it */
}

/* Run one command to its end.  False: the master is gone. */
static bool
job(int master, const struct child_spec *spec, struct child_end *end, char *env, size_t env_len, const char *input, size_t len)
{
	static char buf[2][CHILD_OUT_MAX];
	struct run r = { .spec = spec, .end = end, .input = input, .left = len,
		.term_at = NEVER, .kill_at = NEVER, .sweep_at = NEVER, .giveup_at = NEVER, .stop_at = NEVER };
	bool ok = true;

	r.same = spec->pass && one_place();
	for (int i = 0; i < 2; i++)
		r.stream[i] = (struct stream){ .to = spec->pass ? 1 + i : -1, .number = EMPTY, .buf = buf[i] };
	if (spec->limit_ms > 0) {
		r.term_at = monotonic() + spec->limit_ms;
		r.stop_at = r.term_at + spec->kill_ms;
	}
	if (!start(&r, env, env_len))
		not_started(end, errno);
	else {
		ok = mind(&r, master);
		if (read(r.exec, &end->exec_errno, sizeof(int)) != sizeof(int))
			end->exec_errno = 0;
	}
	ok = ok && rest(&r, master);
	tally(r.stream, end, "\n", 1);
	shut(&r.in);
	shut(&r.stream[0].from);
	shut(&r.stream[1].from);
	shut(&r.exec);
	return ok;
}

/* Without memory an order is read all the same, as the next one follows.  False: the master is gone. */
static bool
skip(int master, struct child_end *end, size_t n)
{
	char unused[4096];
	size_t k;

	for (; n > 0; n -= k) {
		k = n < sizeof(unused) ? n : sizeof(unused);
		if (!get(master, unused, k))
			return false;
	}
	not_started(end, ENOMEM);
	return true;
}

static void
wake(int sig)
{
	(void)sig;
}

static _Noreturn void
minder(int master, const struct child_spec *spec)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP };
	static struct child_end end;
	struct sigaction sa = { .sa_handler = wake };
	struct order o;
	sigset_t mask;
	char *body;
	size_t i;

	for (i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		signal(ignored[i], SIG_IGN);
	sigaction(SIGCHLD, &sa, NULL);
	sigemptyset(&all_open);
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_SETMASK, &mask, NULL);
#ifdef __linux__
	leash = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && access("/proc/self/stat", R_OK) == 0;
#endif
	while (get(master, &o, sizeof(o))) {
		if (o.sig == KEEP)
			lease = o.lease;
		if (o.sig != 0)		/* for a command that has ended */
			continue;
		memset(&end, 0, offsetof(struct child_end, out));
		end.count = -1;
		body = malloc(o.env_len + o.len + 1);
		if ((body == NULL ? !skip(master, &end, o.env_len + o.len) : !get(master, body, o.env_len + o.len) ||
		    !job(master, spec, &end, body, o.env_len, body + o.env_len, o.len)) || !put(master, &end, offsetof(struct child_end, out)) ||
		    !put(master, end.out, end.out_len) || !put(master, end.err, end.err_len))
			break;
		free(body);
	}
	_exit(0);
}

/* ---- the master ---------------------------------------------------------- */

/* Some commands stop their parent: without a minder that goes on there is no time limit. */
static void
go_on(int sig)
{
	siginfo_t who = { .si_pid = 0 };
	int saved = errno;

	(void)sig;
	while (waitid(P_ALL, 0, &who, WSTOPPED | WNOHANG) == 0 && who.si_pid > 0) {
		kill(who.si_pid, SIGCONT);
		who.si_pid = 0;
	}
	errno = saved;
}

int
minder_start(struct minder *m, const struct child_spec *spec, const struct minder *others, int nothers)
{
	struct sigaction sa = { .sa_handler = go_on, .sa_flags = SA_RESTART };
	sigset_t child;
	int pair[2], i;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (sigaction(SIGCHLD, &sa, NULL) == -1 || sigprocmask(SIG_UNBLOCK, &child, NULL) == -1)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == -1)
		return -1;
	if ((m->pid = fork()) == 0) {
		for (i = 0; i < nothers; i++)
			if (others[i].fd != -1)
				close(others[i].fd);
		close(pair[0]);
		minder(pair[1], spec);
	}
	close(pair[1]);
	m->fd = pair[0];
	if (m->pid == -1)
		shut(&m->fd);
	return m->fd == -1 ? -1 : 0;
}

int
minder_run(struct minder *m, const char *env, size_t env_len, const void *input, size_t len)
{
	struct order o = { .env_len = env_len, .len = len };

	return put(m->fd, &o, sizeof(o)) && put(m->fd, env, env_len) && put(m->fd, input, len) ? 0 : -1;
}

static void
wake_minder(const struct minder *m)
{
	if (m->fd != -1)
		kill(m->pid, SIGCONT);
}

void
minder_kill(struct minder *m, int sig)
{
	struct order o = { .sig = sig };

	put(m->fd, &o, sizeof(o));	/* if it fails the minder is gone, as minder_end() will say */
	wake_minder(m);
}

void
minder_keep(struct minder *m, int64_t term_at, int64_t kill_at)
{
	struct order o = { .sig = KEEP, .lease = { term_at, kill_at } };

	put(m->fd, &o, sizeof(o));
}

/* Make the tail of what a command wrote a string that can be stored and shown. */
static void
as_text(struct child_end *end)
{
	char *s = end->err;
	size_t n = end->err_len, cut = 0, i, k;

	while (n == CHILD_ERR_MAX && cut < 3 && ((unsigned char)s[cut] & 0xc0) == 0x80)
		cut++;			/* the rest of a character whose start is gone */
	while (n > cut && isspace((unsigned char)s[n - 1]))
		n--;
	memmove(s, s + cut, n -= cut);
	for (i = 0; i < n; i += k) {
		for (k = 1; k <= 4 && i + k <= n && !text_utf8(s + i, k); k++)
			;
		if (k > 4 || i + k > n || s[i] == '\0')
			s[i] = '?', k = 1;
	}
	s[n] = '\0';
	end->err_len = n;
}

int
minder_end(struct minder *m, struct child_end *end)
{
	if (!get(m->fd, end, offsetof(struct child_end, out)) ||
	    !get(m->fd, end->out, end->out_len) || !get(m->fd, end->err, end->err_len)) {
		memset(end, 0, offsetof(struct child_end, out));
		end->status = SIGKILL;	/* as wait(2) would give it */
		end->count = -1;
		end->gone = true;
		return -1;
	}
	as_text(end);
	return 0;
}

void
minder_stop(struct minder *m)
{
	int64_t giveup_at = monotonic() + 2 * GIVEUP_MS;

	if (m->fd == -1)
		return;
	wake_minder(m);
	shut(&m->fd);
	when_nudge(1000);
	while (waitpid(m->pid, NULL, 0) == -1 && errno == EINTR)
		kill(m->pid, monotonic() < giveup_at ? SIGCONT : SIGKILL);
	when_nudge(0);
}

static bool
output_lost(const struct child_end *end)
{
	return end->lost[0] != 0 || end->lost[1] != 0;
}

char *
child_how(char buf[CHILD_HOW_MAX], const struct child_end *end, const struct child_spec *spec)
{
	int why = end->lost[0] != 0 ? end->lost[0] : end->lost[1];
	char limit[WHEN_TEXT];

	if (end->exec_errno != 0)
		snprintf(buf, CHILD_HOW_MAX, "%s", strerror(end->exec_errno));
	else if (end->timed_out)
		snprintf(buf, CHILD_HOW_MAX, "time limit %s", when_span(limit, spec->limit_ms));
	else if (end->lapsed)
		snprintf(buf, CHILD_HOW_MAX, "its lease could not be renewed");
	else if (end->told)
		snprintf(buf, CHILD_HOW_MAX, "its worker was stopped");
	else if (end->gone)
		snprintf(buf, CHILD_HOW_MAX, "its minder was killed");
	else if (WIFSIGNALED(end->status))
		snprintf(buf, CHILD_HOW_MAX, "signal %d", WTERMSIG(end->status));
	else if (WEXITSTATUS(end->status) != 0 || !output_lost(end))
		snprintf(buf, CHILD_HOW_MAX, "exit status %d", WEXITSTATUS(end->status));
	else
		snprintf(buf, CHILD_HOW_MAX, "standard %s: %s; it is not complete", end->lost[0] != 0 ? "output" : "error",
		    why == ETIMEDOUT ? "nobody reads it" : strerror(why));
	return buf;
}

char *
child_reason(char buf[CHILD_REASON_MAX], const struct child_end *end, const struct child_spec *spec)
{
	bool by_itself = !end->timed_out && !end->told && !end->lapsed && !output_lost(end);
	char how[CHILD_HOW_MAX];

	child_how(how, end, spec);
	if (end->exec_errno != 0 || end->err_len == 0)
		snprintf(buf, CHILD_REASON_MAX, "%s", how);
	else if (by_itself)
		snprintf(buf, CHILD_REASON_MAX, "%s", end->err);
	else
		snprintf(buf, CHILD_REASON_MAX, "%s: %s", how, end->err);
	return buf;
}

int
child_exit(const struct child_end *end)
{
	return WIFEXITED(end->status) ? WEXITSTATUS(end->status) : 128 + WTERMSIG(end->status);
}

const char *
child_headline(const char *reason)
{
	static char line[256];
	const char *last = reason == NULL || strncmp(reason, "time limit ", 11) == 0 ? NULL : strrchr(reason, '\n');

	last = last != NULL ? last + 1 : reason != NULL ? reason : "";
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(last, "\n"), last);
	return line;
}

/* ---- commands that handle a job ------------------------------------------ */

char *
child_words(char *const *argv, size_t *len)
{
	char *text = NULL;
	FILE *f = text_memory(&text, len);

	if (f == NULL)
		return NULL;
	for (int i = 0; argv[i] != NULL; i++) {
		fputc(i == 0 ? '[' : ',', f);
		text_json(f, argv[i], strlen(argv[i]));
	}
	fputc(']', f);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

char *
child_env(const struct job *j, const char *db_path, size_t *len)
{
	struct claim c = { j->id, j->fence, j->nonce };
	char claim[JOB_CLAIM_TEXT], due[WHEN_TEXT], event[WHEN_TEXT], *env = NULL;
	const struct { const char *name, *value; } text[] = {
		{ "CLAIM", claim_text(claim, &c) }, { "QUEUE", j->queue }, { "TYPE", j->type }, { "KEY", j->key },
		{ "ENTITY", j->entity }, { "DUE", when_text(due, j->due_ms, true) },
		{ "EVENT_TIME", when_text(event, j->event_ms, true) }, { "DB", db_path }
	};
	FILE *f = text_memory(&env, len);

	if (f == NULL)
		return NULL;
	fprintf(f, "Q_ID=%" PRId64 "%cQ_ATTEMPT=%" PRId64 "%cQ_GENERATION=%" PRId64 "%c", j->id, 0, j->spent + 1, 0,
	    j->generation, 0);
	for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++)
		fprintf(f, "Q_%s=%s%c", text[i].name, text[i].value != NULL ? text[i].value : "", 0);
	if (fclose(f) == 0)
		return env;
	free(env);
	return NULL;
}

bool
child_settle(struct job_settle *how, const struct child_end *end, const struct child_spec *spec, char reason[CHILD_REASON_MAX])
{
	int code = WIFEXITED(end->status) ? WEXITSTATUS(end->status) : -1;

	*how = (struct job_settle){ .outcome = OUT_FAILED, .due_ms = -1, .count = -1, .exit = code,
		.signal = WIFSIGNALED(end->status) && !end->gone ? WTERMSIG(end->status) : -1,
		.reason = child_reason(reason, end, spec) };
	if (end->told)
		how->outcome = OUT_RELEASED;
	else if (end->exec_errno != 0 || code == 126 || code == 127) {
		how->outcome = OUT_RELEASED;
		return true;
	} else if (end->timed_out || end->lapsed)	/* whatever it said then */
		how->outcome = OUT_FAILED;
	else if (code == 0 && !output_lost(end)) {
		how->outcome = OUT_DONE;
		how->reason = NULL;
		how->result = end->out_len > 0 ? end->out : NULL;
		how->result_len = end->out_len;
	} else if (code == Q_TEMP)
		how->outcome = OUT_DEFERRED;
	else
		how->dead = code == Q_DATA;
	return false;
}
