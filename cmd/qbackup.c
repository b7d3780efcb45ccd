/* qbackup - a verified copy of a live queue file */

#include <signal.h>
#include <unistd.h>

#include "prog.h"

static const char HELP[] =
"usage: qbackup [-hV] [-d FILE] COPY\n"
"Copy the queue file, as it is at one instant, while others go on.  COPY is a\n"
"queue file of its own, mode 0600; it has its name only when it is whole, on\n"
"disk and verified.  It never replaces anything.\n"
"  qbackup /backup/q-$(date +%F).db\n"
"  qbackup -d app.db app.copy && qls -d app.copy\n"
"Exit: 0 it is there, 73 something of that name is, or it cannot be made, 74\n"
"disk full, or the file is damaged: nothing is left.\n";

static struct prog self = { .name = "qbackup", .help = HELP, .shorts = "" };

static void
interrupted(int sig)
{
	db_backup_drop();
	signal(sig, SIG_DFL);
	raise(sig);
}

int
main(int argc, char *argv[])
{
	static const int SIGNALS[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa = { .sa_handler = interrupted, .sa_flags = SA_NODEFER }, old;
	struct db *db;
	int status;

	prog_start(&self, true);
	while (prog_option(argc, argv) != -1)
		;
	if (argc - optind != 1)
		prog_usage(optind == argc ? "no COPY, the name of the backup" : "one COPY at a time");
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++)
		if (sigaction(SIGNALS[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(SIGNALS[i], &sa, NULL);
	status = db_backup(&db, self.database, argv[optind]);
	if (db == NULL)
		prog_die(Q_TEMP, "out of memory");
	prog_check(db, status);
	prog_exit(Q_OK);
}
