/*
 * unit-rate.c - users of rate.NAME that are no claims, by lines of standard input; t/72-qrate.t
 *
 *	env NAME=VALUE			Q_NOW, Q_BOOT
 *	try USER NAME [RESERVE [first]]	USER: a letter; lease 30 s
 *	renew USER | leave USER
 *	block NAME MS | unblock NAME	MS after now
 *
 * A line of output each: the line, the status, after Q_NO when to ask again (+MS or never), "late", "place" if it holds
 * one, and "wrote" if the log of the file was written.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "q.h"

static struct db *db;
static struct rate_user users[26];
static char names[26][65];

static int64_t
written(void)
{
	char path[4096];
	struct stat st;

	snprintf(path, sizeof path, "%s-wal", db_path(db));
	return stat(path, &st) == 0 ? (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec : 0;
}

static struct rate_user *
user(const char *letter)
{
	return &users[letter[0] >= 'a' && letter[0] <= 'z' ? letter[0] - 'a' : 0];
}

static int
block(const char *name, int64_t until)
{
	int rc = db_begin(db, false);

	if (rc == Q_OK)
		rc = until == 0 ? rate_unblock(db, name) : rate_block(db, name, until);
	return rc == Q_OK ? db_commit(db) : rc;
}

static int
renew(struct rate_user *u, bool *late)
{
	int rc = db_begin(db, false);

	if (rc == Q_OK && (rc = rate_renew(db, u, when_now(), late)) == Q_OK)
		rc = db_commit(db);
	return rc;
}

int
main(void)
{
	char line[256], verb[16], a[65], b[65], c[65], d[65];
	struct rate_user *u;
	int64_t at, before;
	bool late;
	int n, rc;

	if ((rc = db_open(&db, NULL, DB_STAY)) != Q_OK)
		return rc;
	while (fgets(line, sizeof line, stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if ((n = sscanf(line, "%15s %64s %64s %64s %64s", verb, a, b, c, d)) < 2)
			continue;
		if (strcmp(verb, "env") == 0) {
			putenv(strdup(a));
			continue;
		}
		u = user(a);
		before = written();
		at = 0;
		rc = -1;
		late = false;
		if (strcmp(verb, "try") == 0) {
			snprintf(names[u - users], sizeof names[0], "%s", b);
			u->name = names[u - users];
			u->worker = "unit";
			u->lease_ms = 30000;
			u->reserve = n > 3 ? atoi(c) : 0;
			u->first = n > 4;
			rc = rate_try(db, u, when_now(), &at);
		} else if (strcmp(verb, "renew") == 0)
			rc = renew(u, &late);
		else if (strcmp(verb, "leave") == 0)
			rc = rate_leave(db, u);
		else if (strcmp(verb, "block") == 0)
			rc = block(a, when_now() + atoll(b));
		else if (strcmp(verb, "unblock") == 0)
			rc = block(a, 0);
		printf("%s: %d", line, rc);
		if (rc == Q_NO && at == INT64_MAX)
			printf(" never");
		else if (rc == Q_NO)
			printf(" +%" PRId64, at - when_now());
		printf("%s%s%s\n", late ? " late" : "", u->fence != 0 ? " place" : "", written() != before ? " wrote" : "");
	}
	return 0;
}
