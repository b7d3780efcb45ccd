/* secret.c - secrets from files */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "q.h"
#include "secret.h"

char *
secret_line(const char *text, size_t n, const char **why)
{
	char *s;

	if (n > 0 && text[n - 1] == '\n')
		n--;
	if (n > 0 && text[n - 1] == '\r')
		n--;
	*why = "is empty";
	if (n == 0)
		return NULL;
	*why = "is not one line of printable ASCII";
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] > 0x7e)
			return NULL;
	*why = "out of memory";
	if ((s = malloc(n + 1)) != NULL) {
		memcpy(s, text, n);
		s[n] = '\0';
	}
	return s;
}

char *
secret_read(const char *path, int *status, const char **why)
{
	static char buf[SECRET_MAX + 1];
	struct stat st;
	size_t n = 0;
	ssize_t got = 0;
	char *s = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	*status = errno == EACCES ? Q_PERM : errno == EMFILE || errno == ENFILE || errno == EIO ? Q_IO : Q_CONFIG;
	*why = strerror(errno);
	if (fd == -1)
		return NULL;
	*status = Q_PERM;
	if (fstat(fd, &st) == -1) {
		*status = Q_IO;
		*why = strerror(errno);
	} else if (!S_ISREG(st.st_mode)) {
		*status = Q_CONFIG;
		*why = "is not a regular file";
	} else if (st.st_uid != geteuid() && st.st_uid != 0)
		*why = "belongs to somebody else; next: chown it to the user of this program";
	else if ((st.st_mode & 077) != 0)
		*why = "can be read or written by others; next: chmod 600";
	else {
		while (n < sizeof buf && (got = read(fd, buf + n, sizeof buf - n)) > 0)
			n += (size_t)got;
		if (got == -1) {
			*status = Q_IO;
			*why = strerror(errno);
			close(fd);
			return NULL;
		}
		*status = Q_CONFIG;
		*why = "is too large for a secret";
		s = n <= SECRET_MAX ? secret_line(buf, n, why) : NULL;
		memset(buf, 0, sizeof buf);
	}
	close(fd);
	return s;
}
