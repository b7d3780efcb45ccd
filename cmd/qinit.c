/* qinit - create a queue file */

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "prog.h"

static const char HELP[] =
"usage: qinit [-hV] [-d FILE] [-m MODE] [-g GROUP] [--outbox] [--into]\n"
"             [--upgrade] [FILE]\n"
"Create a queue file; an existing good one is left as it is.\n"
"FILE: else -d, else $Q_DB, else ~/.local/state/q/q.db\n"
"  qinit                          your own queue\n"
"  qinit -m 0660 -g ops /srv/q/q.db   one that a group shares (setgid folder)\n"
"  -m, --mode MODE    permissions, octal (default 0600)\n"
"  -g, --group GROUP  owning group\n"
"  --outbox           add the view q_outbox: jobs by plain SQL\n"
"  --into             put the tables into an application's own file (WAL)\n"
"  --upgrade          bring an older file to this program's schema\n"
"Exit: 0 there, 73 cannot create, 77 permission, 78 wrong kind of file.\n";

enum { OUTBOX = 256, INTO, UPGRADE };
static const struct option LONGS[] = {
	{ "mode", 1, NULL, 'm' }, { "group", 1, NULL, 'g' }, { "outbox", 0, NULL, OUTBOX },
	{ "into", 0, NULL, INTO }, { "upgrade", 0, NULL, UPGRADE }, { NULL, 0, NULL, 0 }
};
static struct prog self = { .name = "qinit", .help = HELP, .shorts = "m:g:", .longs = LONGS };

static unsigned
mode_of(const char *arg)
{
	char *end;
	unsigned long m = strtoul(arg, &end, 8);

	if (*arg < '0' || *arg > '7' || *end != '\0' || m > 0666 || (m & 0600) != 0600 || (m & 0111) != 0)
		prog_usage("-m: '%s' is not a mode such as 0600, 0640 or 0660", arg);
	return (unsigned)m;
}

/* SQLite's side files take the folder's group only if it says so. */
static void
check_folder(const char *file)
{
	char folder[PATH_MAX];
	struct stat st;

	snprintf(folder, sizeof folder, "%s", file);
	*strrchr(folder, '/') = '\0';
	if (stat(*folder != '\0' ? folder : "/", &st) == 0 && (st.st_mode & S_ISGID) == 0)
		prog_warn("the folder has no setgid bit, so files beside the queue may get another group; next: chmod g+s '%s'",
		    *folder != '\0' ? folder : "/");
}

int
main(int argc, char *argv[])
{
	struct db_create c = { .path = NULL };
	struct db *db;
	int o, status;

	prog_start(&self, true);
	while ((o = prog_option(argc, argv)) != -1)
		switch (o) {
		case 'm': c.mode = mode_of(optarg); break;
		case 'g': c.group = optarg; break;
		case OUTBOX: c.outbox = true; break;
		case INTO: c.into = c.outbox = true; break;
		case UPGRADE: c.upgrade = true; break;
		}
	if (argc - optind > 1)
		prog_usage("too many operands: '%s'", argv[optind + 1]);
	c.path = argc > optind ? argv[optind] : self.database;
	if (c.into && (c.mode != 0 || c.group != NULL))
		prog_usage("--into: mode and group of an application's file are its own; -m and -g do not apply");
	status = db_create(&db, &c);
	if (db == NULL)
		prog_die(Q_TEMP, "out of memory");
	prog_check(db, status);
	if (c.group != NULL)
		check_folder(db_path(db));
	prog_exit(Q_OK);
}
