/* secret.h - secrets from files */
#ifndef SECRET_H
#define SECRET_H

#include <stddef.h>

#define SECRET_MAX (64 * 1024)		/* bytes */

/* One line without its end, of printable ASCII, as a header needs it; the caller frees.  NULL: *why, a constant. */
char *secret_line(const char *text, size_t n, const char **why);

/*
 * A secret from a file: regular, owned by us or root, not readable by others, one line.  NULL: *status (Q_PERM, Q_CONFIG) and
 * *why, a constant.  The caller frees.
 */
char *secret_read(const char *path, int *status, const char **why);

#endif
