/*
 * unit-fs.c - how a file is received on a file system that is not here: the driver, over a statfs(2)
 * that says so.  usage: unit-fs MAGIC FILE; prints the message, exits with the status.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/statfs.h>

static unsigned long magic;

static int
fake_statfs(const char *path, struct statfs *fs)
{
	int rc = statfs(path, fs);

	fs->f_type = (__typeof__(fs->f_type))magic;
	return rc;
}

#define statfs(path, fs) fake_statfs(path, fs)
#include "../lib/db_sqlite.c"

int
main(int argc, char *argv[])
{
	struct db *db;
	int status;

	if (argc != 3)
		return Q_USAGE;
	magic = strtoul(argv[1], NULL, 16);
	status = db_open(&db, argv[2], DB_ONCE);
	puts(db_message(db));
	return status;
}
