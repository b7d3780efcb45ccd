/* record.c - see record.h */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>		/* lib/ must not: a VFS is how a test stands between SQLite and the disk */

#include "record.h"

enum { OPS = 1 << 17, ROOM = 192 << 20 };

static struct record {		/* shared */
	char folder[PATH_MAX];
	int nops, base, nfiles;
	size_t used;
	struct name { char name[32]; ino_t ino; int file; } names[64];	/* as they are now; file -1: a free place */
	struct op ops[OPS];
	unsigned char room[ROOM];
} *record;

static enum lie lie;
static bool on;			/* in this process */
static bool inside;		/* SQLite's VFS is at work: its system calls are not libq's */
static int left;		/* operations, or syncs, until this process ends, 0: it does not */
static bool only_syncs;

/* ---- the list ---- */

/* An operation is about to be done. */
static void
point(bool sync)
{
	if (on && (sync || !only_syncs) && left > 0 && --left == 0)
		_exit(RECORD_KILLED);
}

static struct op *
add(enum op_kind kind, int file)
{
	struct op *op;

	if (record->nops == OPS)
		errx(2, "more than %d operations in one round", OPS);
	op = &record->ops[record->nops++];
	*op = (struct op){ .kind = kind, .file = file };
	return op;
}

static void
add_write(int file, const void *data, int64_t offset, size_t n)
{
	struct op *op = add(OP_WRITE, file);

	if (record->used + n > ROOM)
		errx(2, "more than %d bytes in one round", ROOM);
	op->offset = offset;
	op->size = (int64_t)n;
	op->data = memcpy(record->room + record->used, data, n);
	record->used += n;
}

static void
add_sync(int file)
{
	add(lie == LIE_OFF ? OP_POINT : OP_SYNC, file);
}

static void
add_folder(void)
{
	add(lie == LIE_OFF || lie == LIE_FOLDER ? OP_POINT : OP_FOLDER, -1);
}

/* ---- names ---- */

/* The name of a path in the folder, NULL if it is elsewhere. */
static const char *
local(const char *path)
{
	size_t n;

	if (!on || path == NULL)
		return NULL;
	n = strlen(record->folder);
	return strncmp(path, record->folder, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

static struct name *
find(const char *name)
{
	for (size_t i = 0; i < sizeof record->names / sizeof *record->names; i++)
		if (record->names[i].file != -1 && strcmp(record->names[i].name, name) == 0)
			return &record->names[i];
	return NULL;
}

static void
call(struct name *n, const char *name)
{
	if (snprintf(n->name, sizeof n->name, "%s", name) >= (int)sizeof n->name)
		errx(2, "%s: the name is too long", name);
}

/* The file that has this name now; one that was not seen before is new. */
static int
file_of(const char *name, ino_t ino)
{
	struct name *n = find(name);

	if (n != NULL && n->ino == ino)
		return n->file;
	if (n == NULL)
		for (n = record->names; n->file != -1; n++)
			;
	if (record->nfiles == RECORD_FILES)
		errx(2, "more than %d files in one round", RECORD_FILES);
	call(n, name);
	n->ino = ino;
	n->file = record->nfiles++;
	strcpy(add(OP_NAME, n->file)->to, n->name);
	return n->file;
}

static void
unlinked(const char *name)
{
	struct name *n = name != NULL ? find(name) : NULL;

	if (n == NULL)
		return;
	strcpy(add(OP_UNLINK, n->file)->from, n->name);
	n->file = -1;
}

static int
file_of_fd(int fd, bool *folder)
{
	struct stat st, there;

	*folder = false;
	if (!on || inside || fstat(fd, &st) == -1)
		return -1;
	*folder = S_ISDIR(st.st_mode) && stat(record->folder, &there) == 0 && st.st_ino == there.st_ino;
	for (size_t i = 0; i < sizeof record->names / sizeof *record->names; i++)
		if (record->names[i].file != -1 && record->names[i].ino == st.st_ino)
			return record->names[i].file;
	return -1;
}

/* ---- what libq does itself ---- */

int __real_unlink(const char *), __real_fsync(int), __real_ftruncate(int, off_t), __real_link(const char *, const char *);
int __real_renameat2(int, const char *, int, const char *, unsigned);
int __wrap_unlink(const char *), __wrap_fsync(int), __wrap_ftruncate(int, off_t), __wrap_link(const char *, const char *);
int __wrap_renameat2(int, const char *, int, const char *, unsigned);

int
__wrap_unlink(const char *path)
{
	int rc;

	if (inside || local(path) == NULL)
		return __real_unlink(path);
	point(false);
	if ((rc = __real_unlink(path)) == 0)
		unlinked(local(path));
	return rc;
}

int
__wrap_link(const char *from, const char *to)
{
	if (!inside && local(to) != NULL)
		errx(2, "link: this file system has no renameat2(2), and that is not recorded");
	return __real_link(from, to);
}

int
__wrap_renameat2(int fd, const char *from, int fd2, const char *to, unsigned flags)
{
	struct name *n;
	struct op *op;
	int rc;

	point(false);
	if ((rc = __real_renameat2(fd, from, fd2, to, flags)) == 0 && local(to) != NULL && (n = find(local(from))) != NULL) {
		op = add(OP_RENAME, n->file);
		strcpy(op->from, n->name);
		call(n, local(to));
		strcpy(op->to, n->name);
	}
	return rc;
}

int
__wrap_fsync(int fd)
{
	bool folder;
	int file, rc;

	point(true);
	if ((rc = __real_fsync(fd)) == 0) {
		if ((file = file_of_fd(fd, &folder)) != -1)
			add_sync(file);
		if (folder)
			add_folder();
	}
	return rc;
}

int
__wrap_ftruncate(int fd, off_t size)
{
	bool folder;
	int file, rc;

	point(false);
	if ((rc = __real_ftruncate(fd, size)) == 0 && (file = file_of_fd(fd, &folder)) != -1)
		add(OP_SIZE, file)->size = size;
	return rc;
}

/* ---- what SQLite does ---- */

struct file {
	sqlite3_file base;
	sqlite3_file *real;	/* right behind */
	int id;			/* -1: not recorded */
	bool log, frames;	/* frames: the last write was none of the log's head */
};
static struct file *ours(sqlite3_file *f) { return (struct file *)f; }
static sqlite3_file *real_of(sqlite3_file *f) { return ours(f)->real; }
static const sqlite3_io_methods *to(sqlite3_file *f) { return real_of(f)->pMethods; }

static sqlite3_vfs *real;
static int (*open_folder)(const char *, int *);

static int x_close(sqlite3_file *f) { return to(f)->xClose(real_of(f)); }
static int x_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at) { return to(f)->xRead(real_of(f), p, n, at); }
static int x_size(sqlite3_file *f, sqlite3_int64 *n) { return to(f)->xFileSize(real_of(f), n); }
static int x_lock(sqlite3_file *f, int how) { return to(f)->xLock(real_of(f), how); }
static int x_unlock(sqlite3_file *f, int how) { return to(f)->xUnlock(real_of(f), how); }
static int x_check(sqlite3_file *f, int *out) { return to(f)->xCheckReservedLock(real_of(f), out); }
static int x_control(sqlite3_file *f, int what, void *arg) { return to(f)->xFileControl(real_of(f), what, arg); }
static int x_sector(sqlite3_file *f) { return to(f)->xSectorSize(real_of(f)); }
static int x_device(sqlite3_file *f) { return to(f)->xDeviceCharacteristics(real_of(f)); }
static int x_map(sqlite3_file *f, int i, int n, int more, void volatile **p) { return to(f)->xShmMap(real_of(f), i, n, more, p); }
static int x_shm_lock(sqlite3_file *f, int at, int n, int how) { return to(f)->xShmLock(real_of(f), at, n, how); }
static void x_barrier(sqlite3_file *f) { to(f)->xShmBarrier(real_of(f)); }
static int x_unmap(sqlite3_file *f, int gone) { return to(f)->xShmUnmap(real_of(f), gone); }

static int
x_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
	int rc;

	if (ours(f)->id != -1)
		point(false);
	if ((rc = to(f)->xWrite(real_of(f), p, n, at)) == SQLITE_OK && ours(f)->id != -1) {
		add_write(ours(f)->id, p, at, (size_t)n);
		ours(f)->frames = at > 0;
	}
	return rc;
}

static int
x_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	int rc;

	if (ours(f)->id != -1)
		point(false);
	inside = true;
	rc = to(f)->xTruncate(real_of(f), size);
	inside = false;
	if (rc == SQLITE_OK && ours(f)->id != -1)
		add(OP_SIZE, ours(f)->id)->size = size;
	return rc;
}

/* synchronous=NORMAL would sync the log's head, and before a checkpoint the log, which another connection wrote. */
static int
x_sync(sqlite3_file *f, int flags)
{
	int rc;

	if (ours(f)->id != -1)
		point(true);
	inside = true;
	rc = to(f)->xSync(real_of(f), flags);
	inside = false;
	if (rc == SQLITE_OK && ours(f)->id != -1 && lie == LIE_NORMAL && ours(f)->log && ours(f)->frames)
		add(OP_POINT, -1);
	else if (rc == SQLITE_OK && ours(f)->id != -1)
		add_sync(ours(f)->id);
	return rc;
}

static int
x_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *f, int flags, int *out)
{
	static const sqlite3_io_methods METHODS = { 2, x_close, x_read, x_write, x_truncate, x_sync, x_size, x_lock, x_unlock, x_check,
	    x_control, x_sector, x_device, x_map, x_shm_lock, x_barrier, x_unmap, NULL, NULL };
	struct stat st;
	int rc;

	(void)vfs;
	*ours(f) = (struct file){ .real = (sqlite3_file *)(ours(f) + 1), .id = -1, .log = (flags & SQLITE_OPEN_WAL) != 0 };
	if (local(path) != NULL)
		point(false);
	rc = real->xOpen(real, path, real_of(f), flags, out);
	if (real_of(f)->pMethods != NULL)
		f->pMethods = &METHODS;
	if (rc == SQLITE_OK && local(path) != NULL && stat(path, &st) == 0)
		ours(f)->id = file_of(local(path), st.st_ino);
	return rc;
}

static int
x_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
	int rc;

	(void)vfs;
	if (local(path) != NULL)
		point(false);
	if (access(path, F_OK) == 0)
		unlinked(local(path));
	inside = true;
	rc = real->xDelete(real, path, sync);
	inside = false;
	return rc;
}

/* SQLite opens a folder in order to sync it. */
static int
x_open_folder(const char *path, int *fd)
{
	int rc = open_folder(path, fd);

	if (rc == SQLITE_OK && local(path) != NULL)
		add_folder();
	return rc;
}

/* ---- in and out ---- */

void
record_setup(enum lie which)
{
	static sqlite3_vfs vfs;

	lie = which;
	record = mmap(NULL, sizeof *record, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (record == MAP_FAILED || (real = sqlite3_vfs_find("unix")) == NULL)
		err(2, "setup");
	open_folder = (int (*)(const char *, int *))real->xGetSystemCall(real, "openDirectory");
	vfs = *real;		/* what it does to names and system calls stays SQLite's */
	vfs.zName = "record";
	vfs.szOsFile += (int)sizeof(struct file);
	vfs.xOpen = x_open;
	vfs.xDelete = x_delete;
	if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK)
		errx(2, "the VFS is refused");
}

void
record_start(const char *folder)
{
	static char buf[1 << 22];
	char path[PATH_MAX];
	struct dirent *e;
	struct stat st;
	DIR *d;
	FILE *f;
	int file;

	snprintf(record->folder, sizeof record->folder, "%s", folder);
	record->nops = record->nfiles = 0;
	record->used = 0;
	for (size_t i = 0; i < sizeof record->names / sizeof *record->names; i++)
		record->names[i].file = -1;
	if ((d = opendir(folder)) == NULL)
		err(2, "%s", folder);
	while ((e = readdir(d)) != NULL) {
		snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		if (stat(path, &st) == -1 || !S_ISREG(st.st_mode) || strstr(e->d_name, "-shm") != NULL || strstr(e->d_name, "-lock") != NULL ||
		    strstr(e->d_name, "-reserve") != NULL)
			continue;
		if ((f = fopen(path, "r")) == NULL)
			err(2, "%s", path);
		file = file_of(e->d_name, st.st_ino);
		add_write(file, buf, 0, fread(buf, 1, sizeof buf, f));
		add(OP_SYNC, file);
		fclose(f);
	}
	closedir(d);
	add(OP_FOLDER, -1);
	record->base = record->nops;
}

void
record_program(int nth, bool syncs)
{
	/* skip_directory_sync() of db_sqlite.c, which is for the rest of a process, may have been called in this one's parent. */
	real->xSetSystemCall(real, "openDirectory", (sqlite3_syscall_ptr)x_open_folder);
	left = nth;
	only_syncs = syncs;
	on = true;
}

void
record_point(void)
{
	add(OP_POINT, -1);
}

void
record_ack(void)
{
	add(OP_ACK, -1);
}

const struct op *
record_ops(int *n, int *base)
{
	*n = record->nops;
	*base = record->base;
	return record->ops;
}
