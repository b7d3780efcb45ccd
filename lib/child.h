/*
 * child.h - commands on a leash: a process group, limits, and no survivors.
 *
 * A minder is a process of its own that runs one command at a time for its master.  It is
 * forked before the queue file is opened (a process with an open SQLite handle must not
 * fork), adopts what its commands leave behind (subreaper), and when the master dies, by
 * kill -9 too, kills the command and ends.  It ignores INT, TERM, HUP and QUIT: a terminal sends them
 * to the master's whole process group, and what they mean is the master's decision.
 *
 * Where the system has no subreaper (or no /proc), what left the command's process group stays.
 */
#ifndef CHILD_H
#define CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "q.h"

#define CHILD_OUT_MAX (64 * 1024)	/* bytes of standard output that are kept (the first) */
#define CHILD_ERR_MAX 4096		/* bytes of standard error that are kept (the last) */

struct minder {
	pid_t pid;
	int fd;			/* readable when the command has ended, or the minder has */
};

/*
 * What every command of the minder gets: argv (execvp(3)), and a time limit (0: none) after which its group
 * is sent TERM, then KILL kill_ms later.  In the command all signals have their defaults and none is blocked.
 *
 * pass: its output goes on to the minder's own standard output and error as it comes, however slow they are, and its
 * input is that of the minder (empty if that is a terminal).  If they cannot be written, its next write gets SIGPIPE.
 * What nobody has read kill_ms after both its end and the time limit, or minder_kill(), is lost.
 *
 * spool, with pass: the minder's standard output is a file that its master reads later; if that cannot be written, the
 * command runs on.
 */
struct child_spec {
	char *const *argv;
	int64_t limit_ms, kill_ms;
	bool pass, spool;
};

/*
 * Start a minder.  Descriptors 0-2 must be open and SIGPIPE ignored.  From now on a child that is stopped (commands
 * can do that to their parent) is let go on, by a handler of SIGCHLD, which interrupts poll(2).  `others` are the
 * earlier minders, whose fds it must not keep open.  0, or -1 with errno.
 */
int minder_start(struct minder *, const struct child_spec *, const struct minder *others, int nothers);

/*
 * Run the command.  env is a block of "NAME=value" strings, each with its NUL, set in the command's environment;
 * input is its standard input (it need not read it).  Only when no command runs.  0, or -1: the minder is gone.
 */
int minder_run(struct minder *, const char *env, size_t env_len, const void *input, size_t len);

/* Signal the command's group: SIGTERM (and SIGKILL kill_ms later) or SIGKILL.  Harmless when nothing runs any more. */
void minder_kill(struct minder *, int sig);

/*
 * What the command runs under is leased: its group gets TERM at term_at and KILL at kill_at (by when_elapsed()), whatever
 * has become of the master by then, unless another call has moved them.  Also before minder_run().
 */
void minder_keep(struct minder *, int64_t term_at, int64_t kill_at);

struct child_end {
	int status;		/* as waitpid(2) gives it; 126 or 127 if it could not be run, 75 if no process could be made */
	int exec_errno;		/* why the command could not be run, else 0 */
	bool timed_out;		/* it was still running at the time limit */
	bool told;		/* ... or when minder_kill() reached it */
	bool lapsed;		/* ... or at the term_at of minder_keep() */
	bool gone;		/* its minder was killed, and so it was */
	int lost[2];		/* pass: errno, if not all of its output, its errors could be passed on; ETIMEDOUT: nobody read it */
	int64_t out_total;	/* bytes the command wrote to standard output, kept or not */
	int64_t count;		/* the last line of standard output that is a whole number, -1: none */
	size_t out_len, err_len;
	char out[CHILD_OUT_MAX];
	/* As text: NUL-terminated UTF-8 (a byte that is not becomes '?'), white space at the end removed. */
	char err[CHILD_ERR_MAX + 1];
};

/* Read the end of the command; call when fd is readable.  0, or -1: the minder is gone, as *end says, too. */
int minder_end(struct minder *, struct child_end *);

/* End the minder and whatever still runs under it, and reap it; fd becomes -1. */
void minder_stop(struct minder *);

#define CHILD_HOW_MAX 256
/*
 * How it ended, for people: "time limit 30s", "exit status N", "signal N", why it could not be run, or which output
 * is not complete.  Returns buf.
 */
char *child_how(char buf[CHILD_HOW_MAX], const struct child_end *, const struct child_spec *);

/* Why it did not succeed: the tail of its standard error, behind child_how() unless it ended by itself; else that alone.  Returns buf. */
#define CHILD_REASON_MAX (CHILD_ERR_MAX + CHILD_HOW_MAX + 4)
char *child_reason(char buf[CHILD_REASON_MAX], const struct child_end *, const struct child_spec *);

/* Its exit status, or 128 + N if signal N ended it. */
int child_exit(const struct child_end *);

/*
 * The line of a reason that says most: the last of what the command wrote, or the first if that names the
 * time limit.  NULL gives "".  Borrowed until the next call.
 */
const char *child_headline(const char *reason);

/* ---- commands that handle a job ------------------------------------------ */

/* The words of a command as a JSON array; the caller frees.  NULL: out of memory. */
char *child_words(char *const *argv, size_t *len);

/* The environment of the command for a claimed job, as minder_run() takes it; the caller frees.  NULL: out of memory. */
char *child_env(const struct job *, const char *db_path, size_t *len);

/*
 * What the command's end means for its job: 0 done with its output as the result, 75 deferred, 65 dead, 126 and
 * 127 released (true is returned: the command itself is broken), as is one that was told to end; else failed, also
 * if its output is lost.
 * how->result and how->reason are borrowed from the two others.
 */
bool child_settle(struct job_settle *how, const struct child_end *, const struct child_spec *, char reason[CHILD_REASON_MAX]);

#endif
