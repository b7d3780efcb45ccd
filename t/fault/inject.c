/* inject.c - calls that fail when they are told to */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "inject.h"

const char *const INJECT[INJECTS] = { "read", "short", "end", "write", "full", "sync", "many", "open", "map", "lock", "size", "sizefull",
    "close", "name", "stat", "fork", "memory" };
static const int ERRNO[INJECTS] = { EIO, 0, 0, EIO, ENOSPC, EIO, EMFILE, EIO, ENOMEM, ENOLCK, EIO, ENOSPC, EIO, EIO, EIO, EAGAIN, ENOMEM };

void (*inject_synced)(void);
bool inject_armed;
static bool lie;
static struct { _Atomic int64_t count[INJECTS], failed; enum inject what; int64_t nth; bool on; } *shared;	/* with forked children */

void
inject_lie(bool on)
{
	lie = on;
}

int64_t
inject_count(enum inject what)
{
	return shared->count[what];
}

int64_t
inject_failed(void)
{
	return shared->failed;
}

static bool
hit(enum inject what)
{
	int64_t at;

	if (!inject_armed)
		return false;
	at = ++shared->count[what];
	if (what != shared->what || shared->nth == 0 || at < shared->nth || (!shared->on && at > shared->nth + (what == WRITE_FULL)))
		return false;
	shared->failed++;
	errno = ERRNO[what];
	return true;
}

/* The function of that name that comes after this one. */
#define NEXT(name) \
	static __typeof__(&name) next; \
	if (next == NULL) \
		*(void **)&next = dlsym(RTLD_NEXT, #name)

static bool
counts(int fd)
{
	struct stat st;

	NEXT(fstat);
	return inject_armed && (fd == 0 || fd == 1 || (next(fd, &st) == 0 && S_ISREG(st.st_mode)));
}

/* ---- memory ---- */

static char early[4096];		/* what dlsym(3) itself may ask for */
static size_t early_used;

static void *
first(size_t n)
{
	void *p = early + early_used;

	early_used += (n + 15) / 16 * 16;
	return early_used <= sizeof early ? p : NULL;
}

#define EARLY(name, n) \
	static __typeof__(&name) next; \
	static bool asking; \
	if (next == NULL) { \
		if (asking) \
			return first(n); \
		asking = true; \
		*(void **)&next = dlsym(RTLD_NEXT, #name); \
	}

void *
malloc(size_t n)
{
	EARLY(malloc, n)
	return hit(MEMORY) ? NULL : next(n);
}

void *
calloc(size_t n, size_t size)
{
	EARLY(calloc, n * size)
	return hit(MEMORY) ? NULL : next(n, size);
}

void *
realloc(void *p, size_t n)
{
	EARLY(realloc, n)
	return hit(MEMORY) ? NULL : next(p, n);
}

void
free(void *p)
{
	NEXT(free);
	if ((char *)p < early || (char *)p >= early + sizeof early)
		next(p);
}

/* ---- bytes ---- */

ssize_t
read(int fd, void *p, size_t n)
{
	NEXT(read);
	if (counts(fd)) {
		if (hit(READ_EIO))
			return -1;
		if (hit(READ_SHORT) && n > 1)
			n = (n + 1) / 2;
	}
	return next(fd, p, n);
}

ssize_t
pread(int fd, void *p, size_t n, off_t at)
{
	NEXT(pread);
	if (counts(fd)) {
		if (hit(READ_EIO))
			return -1;
		if (hit(READ_END))
			return 0;
		if (hit(READ_SHORT) && n > 1)
			n = (n + 1) / 2;
	}
	return next(fd, p, n, at);
}

ssize_t
write(int fd, const void *p, size_t n)
{
	NEXT(write);
	if (counts(fd)) {
		if (hit(WRITE_EIO))
			return lie ? (ssize_t)n : -1;
		if (hit(WRITE_FULL)) {
			if (n > 1 && shared->failed == 1)
				return next(fd, p, n / 2);
			errno = ENOSPC;
			return -1;
		}
	}
	return next(fd, p, n);
}

ssize_t
pwrite(int fd, const void *p, size_t n, off_t at)
{
	NEXT(pwrite);
	if (counts(fd)) {
		if (hit(WRITE_EIO))
			return lie ? (ssize_t)n : -1;
		if (hit(WRITE_FULL)) {
			if (n > 1 && shared->failed == 1)
				return next(fd, p, n / 2, at);
			errno = ENOSPC;
			return -1;
		}
	}
	return next(fd, p, n, at);
}

/* No power is cut here, so nothing is really synced. */
int
fsync(int fd)
{
	(void)fd;
	if (hit(SYNC_EIO))
		return -1;
	if (inject_armed && inject_synced != NULL)
		inject_synced();
	return 0;
}

int
fdatasync(int fd)
{
	return fsync(fd);
}

static bool
cut(int fd)
{
	return counts(fd) && (hit(SIZE_EIO) || hit(SIZE_FULL));
}

int
ftruncate(int fd, off_t n)
{
	NEXT(ftruncate);
	return cut(fd) ? -1 : next(fd, n);
}

int
posix_fallocate(int fd, off_t at, off_t n)
{
	NEXT(posix_fallocate);
	return cut(fd) ? errno : next(fd, at, n);
}

int
fchmod(int fd, mode_t mode)
{
	NEXT(fchmod);
	return cut(fd) ? -1 : next(fd, mode);
}

int
fchown(int fd, uid_t u, gid_t g)
{
	NEXT(fchown);
	return cut(fd) ? -1 : next(fd, u, g);
}

void *
mmap(void *p, size_t n, int prot, int flags, int fd, off_t at)
{
	NEXT(mmap);
	return fd != -1 && hit(MAP_NOMEM) ? MAP_FAILED : next(p, n, prot, flags, fd, at);
}

int
close(int fd)
{
	NEXT(close);
	if (!counts(fd) || !hit(CLOSE_EIO))
		return next(fd);
	next(fd);
	errno = EIO;
	return -1;
}

/* ---- descriptors ---- */

static bool
full(void)
{
	return hit(OPEN_MANY);
}

int
open(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	NEXT(open);
	va_start(ap, flags);
	mode = va_arg(ap, int);
	va_end(ap);
	return full() || hit(OPEN_EIO) ? -1 : next(path, flags, mode);
}

int
mkstemp(char *name)
{
	NEXT(mkstemp);
	return full() || hit(OPEN_EIO) ? -1 : next(name);
}

DIR *
opendir(const char *name)
{
	NEXT(opendir);
	return full() || hit(OPEN_EIO) ? NULL : next(name);
}

int
pipe2(int fd[2], int flags)
{
	NEXT(pipe2);
	return full() ? -1 : next(fd, flags);
}

int
socket(int domain, int type, int protocol)
{
	NEXT(socket);
	return full() ? -1 : next(domain, type, protocol);
}

int
socketpair(int domain, int type, int protocol, int fd[2])
{
	NEXT(socketpair);
	return full() ? -1 : next(domain, type, protocol, fd);
}

int
accept4(int fd, struct sockaddr *a, socklen_t *n, int flags)
{
	NEXT(accept4);
	return full() ? -1 : next(fd, a, n, flags);
}

int
epoll_create1(int flags)
{
	NEXT(epoll_create1);
	return full() ? -1 : next(flags);
}

int
inotify_init1(int flags)
{
	NEXT(inotify_init1);
	return full() ? -1 : next(flags);
}

int
fcntl(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	NEXT(fcntl);
	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if ((cmd == F_SETLK || cmd == F_SETLKW || cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW) && ((struct flock *)arg)->l_type != F_UNLCK && hit(LOCK_NONE))
		return -1;
	return next(fd, cmd, arg);
}

int
flock(int fd, int how)
{
	NEXT(flock);
	return (how & LOCK_UN) == 0 && hit(LOCK_NONE) ? -1 : next(fd, how);
}

pid_t
fork(void)
{
	NEXT(fork);
	return hit(FORK_AGAIN) ? -1 : next();
}

/* SQLite's own, of up to 10 seconds, where locks fail. */
int
usleep(useconds_t us)
{
	NEXT(usleep);
	return next(inject_armed ? us / 100 : us);
}

/* ---- names ---- */

int
link(const char *from, const char *to)
{
	NEXT(link);
	return hit(NAME_EIO) ? -1 : next(from, to);
}

int
rename(const char *from, const char *to)
{
	NEXT(rename);
	return hit(NAME_EIO) ? -1 : next(from, to);
}

int
renameat2(int dir, const char *from, int dir2, const char *to, unsigned flags)
{
	NEXT(renameat2);
	return hit(NAME_EIO) ? -1 : next(dir, from, dir2, to, flags);
}

int
unlink(const char *name)
{
	NEXT(unlink);
	return hit(NAME_EIO) ? -1 : next(name);
}

int
mkdir(const char *name, mode_t mode)
{
	NEXT(mkdir);
	return hit(NAME_EIO) ? -1 : next(name, mode);
}

int
stat(const char *restrict name, struct stat *restrict st)
{
	NEXT(stat);
	return hit(STAT_EIO) ? -1 : next(name, st);
}

int
lstat(const char *restrict name, struct stat *restrict st)
{
	NEXT(lstat);
	return hit(STAT_EIO) ? -1 : next(name, st);
}

int
fstat(int fd, struct stat *st)
{
	NEXT(fstat);
	return hit(STAT_EIO) ? -1 : next(fd, st);
}

int
statfs(const char *name, struct statfs *st)
{
	NEXT(statfs);
	return hit(STAT_EIO) ? -1 : next(name, st);
}

int
access(const char *name, int how)
{
	NEXT(access);
	return hit(STAT_EIO) ? -1 : next(name, how);
}

char *
realpath(const char *restrict name, char *restrict to)
{
	NEXT(realpath);
	return hit(STAT_EIO) ? NULL : next(name, to);
}

/* ---- streams ---- */

static ssize_t
io_read(void *fd, char *p, size_t n)
{
	return read((int)(intptr_t)fd, p, n);
}

static ssize_t
io_write(void *fd, const char *p, size_t n)
{
	size_t done = 0;

	for (ssize_t put; done < n && (put = write((int)(intptr_t)fd, p + done, n - done)) > 0; done += (size_t)put)
		;
	return (ssize_t)done;
}

static int
io_seek(void *fd, off64_t *at, int whence)
{
	off_t to = lseek((int)(intptr_t)fd, *at, whence);

	if (to == -1)
		return -1;
	*at = to;
	return 0;
}

static int
io_close(void *fd)
{
	return close((int)(intptr_t)fd);
}

static FILE *
stream(int fd, const char *mode)
{
	return fopencookie((void *)(intptr_t)fd, mode, (cookie_io_functions_t){ io_read, io_write, io_seek, io_close });
}

FILE *
fdopen(int fd, const char *mode)
{
	NEXT(fdopen);
	return inject_armed ? stream(fd, mode) : next(fd, mode);
}

FILE *
fopen(const char *restrict name, const char *restrict mode)
{
	int fd;
	FILE *f;

	NEXT(fopen);
	if (!inject_armed)
		return next(name, mode);
	fd = open(name, *mode == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | (*mode == 'w' ? O_TRUNC : O_APPEND), 0666);
	if (fd == -1 || (f = fdopen(fd, mode)) != NULL)
		return fd == -1 ? NULL : f;
	close(fd);
	return NULL;
}

/* ---- the same with other names, and what is random ---- */

#define ALIAS(name, type, ...) type name##64(__VA_ARGS__) __attribute__((alias(#name)))
ALIAS(pread, ssize_t, int, void *, size_t, off_t);
ALIAS(pwrite, ssize_t, int, const void *, size_t, off_t);
ALIAS(ftruncate, int, int, off_t);
ALIAS(posix_fallocate, int, int, off_t, off_t);
ALIAS(mmap, void *, void *, size_t, int, int, int, off_t);
ALIAS(open, int, const char *, int, ...);
ALIAS(mkstemp, int, char *);
ALIAS(fcntl, int, int, int, ...);
ALIAS(fopen, FILE *, const char *restrict, const char *restrict);
int stat64(const char *restrict, struct stat64 *restrict) __attribute__((alias("stat")));
int lstat64(const char *restrict, struct stat64 *restrict) __attribute__((alias("lstat")));
int fstat64(int, struct stat64 *) __attribute__((alias("fstat")));

ssize_t
getrandom(void *p, size_t n, unsigned flags)
{
	static unsigned char at;

	NEXT(getrandom);
	if (!inject_armed)
		return next(p, n, flags);
	memset(p, ++at, n);
	return (ssize_t)n;
}

void
inject_set(enum inject what, int64_t nth, bool on)
{
	if (shared == NULL && (shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) == MAP_FAILED)
		err(2, "mmap");
	for (int i = 0; i < INJECTS; i++)
		shared->count[i] = 0;
	shared->failed = 0;
	shared->what = what;
	shared->nth = nth;
	shared->on = on;
}

void
inject_stop(void)
{
	shared->nth = 0;
}

void
inject_arm(void)
{
	FILE *f = stream(1, "w");

	if (f == NULL)
		_exit(2);
	stdout = f;
	inject_armed = true;
}
