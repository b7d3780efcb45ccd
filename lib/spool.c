/*
 * spool.c - jobs read but not yet added, in a temporary file: input may be slow and large, and
 * neither the lock nor the memory may wait for it.
 */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "q.h"

enum { TEXTS = 5 };			/* queue, type, key, entity, zone; then the payload */

struct head {
	struct job_new job;		/* its pointers mean nothing here */
	size_t len[TEXTS + 1];		/* with the NUL, 0: absent */
	int64_t line;
};

/* Not tmpfile(3), which does not look at TMPDIR. */
int
spool_file(void)
{
	const char *dir = getenv("TMPDIR");
	char name[4096];
	int fd;

	snprintf(name, sizeof name, "%s/q.XXXXXX", dir != NULL && *dir != '\0' ? dir : "/tmp");	/* cut off: no such name */
	if ((fd = mkstemp(name)) == -1)
		return -1;
	unlink(name);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

int
spool_open(struct spool *s)
{
	static char buf[256 * 1024];	/* with stdio's own of one page, a bulk add wrote and read more often than SQLite */
	int fd = spool_file();

	s->buf = NULL;
	s->cap = 0;
	s->f = NULL;
	if (fd == -1)
		return Q_CREATE;
	if ((s->f = fdopen(fd, "w+")) == NULL) {
		close(fd);
		return Q_CREATE;
	}
	setvbuf(s->f, buf, _IOFBF, sizeof buf);
	return Q_OK;
}

void
spool_put(struct spool *s, const struct job_new *j, int64_t line)
{
	const char *text[TEXTS] = { j->queue, j->type, j->key, j->entity, j->zone };
	struct head h = { .job = *j, .line = line };

	for (int i = 0; i < TEXTS; i++)
		h.len[i] = text[i] != NULL ? strlen(text[i]) + 1 : 0;
	h.len[TEXTS] = j->payload_len;
	fwrite(&h, sizeof h, 1, s->f);
	for (int i = 0; i < TEXTS; i++)
		if (text[i] != NULL)
			fwrite(text[i], 1, h.len[i], s->f);
	fwrite(j->payload, 1, j->payload_len, s->f);
}

int
spool_rewind(struct spool *s)
{
	if (fflush(s->f) == EOF || ferror(s->f) || fseek(s->f, 0, SEEK_SET) == -1)
		return Q_IO;
	return Q_OK;
}

int
spool_get(struct spool *s, struct job_new *j, int64_t *line)
{
	const char **text[TEXTS] = { &j->queue, &j->type, &j->key, &j->entity, &j->zone };
	struct head h;
	size_t need = 1;
	char *p;

	if (fread(&h, sizeof h, 1, s->f) != 1)
		return Q_IO;
	for (int i = 0; i <= TEXTS; i++)
		need += h.len[i];
	if (need > s->cap) {
		if ((p = realloc(s->buf, need)) == NULL)
			return Q_TEMP;
		s->buf = p;
		s->cap = need;
	}
	if (fread(s->buf, 1, need - 1, s->f) != need - 1)
		return Q_IO;
	*j = h.job;
	*line = h.line;
	p = s->buf;
	for (int i = 0; i < TEXTS; i++) {
		*text[i] = h.len[i] > 0 ? p : NULL;
		p += h.len[i];
	}
	j->payload = p;
	return Q_OK;
}
