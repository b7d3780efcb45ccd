/* sign.h - signatures of webhooks.  Knows nothing of HTTP and of the database. */
#ifndef SIGN_H
#define SIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIGN_TEXT 48			/* bytes that sign_standard() needs */

struct sign_key { unsigned char bytes[64]; size_t n; };

/* A secret of Standard Webhooks: "whsec_" and the base64, with its padding, of 24 to 64 bytes.  False: *why, a constant. */
bool sign_key(const char *text, struct sign_key *, const char **why);

/*
 * The signature of Standard Webhooks 1.0, "v1,BASE64", into buf: HMAC-SHA256 over ID.SECONDS.BODY.  An id with a dot would
 * make the borders between the three unclear, so the caller has none.  False: out of memory.
 */
bool sign_standard(const struct sign_key *, const char *id, int64_t seconds, const void *body, size_t n, char buf[SIGN_TEXT]);

#endif
