/*
 * sign.h - signatures of webhooks: how the senders make them, and checking one.  Knows nothing of HTTP and of the database.
 */
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

/* ---- schemes: each is a row of these ---- */

enum sign_alg { SIGN_SHA1, SIGN_SHA256, SIGN_SHA512, SIGN_ED25519,
	SIGN_TOKEN,			/* the signature is the secret itself */
	SIGN_NONE };			/* nothing is checked */
enum sign_form {			/* what stands around the digits */
	SIGN_BARE,			/* nothing */
	SIGN_PREFIX,			/* `word` */
	SIGN_PAIRS,			/* NAME=VALUE, with `sep` between; those named `word` */
	SIGN_VERSIONS };		/* "v1,DIGITS v1a,DIGITS", blanks between; the second for ed25519 */
enum sign_code { SIGN_HEX, SIGN_BASE64 };	/* hex in any case; base64 with its padding */
enum sign_secret_form {			/* how the secret in a file becomes a key */
	SIGN_RAW,			/* its characters, none of them blank: somebody's machine made it */
	SIGN_PHRASE,			/* its characters, blanks inside allowed: a person may have made it */
	SIGN_KEY_BASE64, SIGN_KEY_HEX,
	SIGN_WHSEC };			/* base64 after whsec_, padded or not; after whpk_ the public key of ed25519 */
enum sign_unit { SIGN_UNTIMED, SIGN_S, SIGN_MS, SIGN_RFC3339 };
enum sign_handshake { SIGN_NO_HANDSHAKE, SIGN_SLACK, SIGN_ZOOM, SIGN_META, SIGN_DISCORD };

/* A place is text: "header:Name", "json:/pointer", "form:field", "query:name", or "pair:name" of the signature's own list. */
struct sign_scheme {
	const char *name;
	const char *also;		/* the scheme to go by where this one's signature is absent; NULL: none */
	const char *signature;		/* its place */
	enum sign_form form;
	const char *word;
	char sep;
	enum sign_code code;
	enum sign_alg alg;
	enum sign_secret_form secret;
	const char *message;		/* what is signed: text with {id} {ts} {body} {url} {form} */
	const char *ts;			/* place of the time of signing; NULL: none */
	enum sign_unit unit;

	/* The rest is for the reader of what was signed; a place that is NULL: none. */
	const char *id, *time, *type;
	enum sign_handshake handshake;
	int accepted, refused;		/* statuses; 0: 200 and 401 */
	bool url;			/* {url} is needed */
	bool large;			/* its events can have up to 25 MB, and are sent once */
};

/* By name; NULL: there is none. */
const struct sign_scheme *sign_scheme(const char *name);
const char *sign_name(size_t n);	/* of the nth, from 0; NULL: no more */

enum { SIGN_SECRETS = 4, SIGN_SECRET_MAX = 1024, SIGN_CANDIDATES = 16 };

struct sign_secret { unsigned char bytes[SIGN_SECRET_MAX]; size_t n; bool public; };

/* False: *why, a constant.  It is wiped by OPENSSL_cleanse() when it is done with. */
bool sign_secret(const struct sign_scheme *, const char *text, struct sign_secret *, const char **why);

/* What a signature is over; NULL: absent. */
struct sign_parts {
	const char *signature, *id, *ts, *url;
	const void *body;
	size_t len;
};

/*
 * Which of n secrets made the signature; all are tried with all signatures, each compared in a time that does not depend on it.
 * Its index, or -1: none, *why, a constant.  -2: out of memory.
 */
int sign_verify(const struct sign_scheme *, const struct sign_secret *, int n, const struct sign_parts *, const char **why);

/* The time of signing, strictly in the scheme's unit, in ms.  False: it is none. */
bool sign_time(enum sign_unit, const char *ts, int64_t *ms);

/* The value of `name` in a list of pairs, into buf.  False: absent, there twice, or longer than size. */
bool sign_pair(const char *list, char sep, const char *name, char *buf, size_t size);

/* Does the message contain this part, such as "{id}"? */
bool sign_covers(const struct sign_scheme *, const char *part);

/* The HMAC-SHA256 of text in hex, into buf. */
bool sign_hex(const struct sign_secret *, const char *text, char buf[65]);

/* Are two texts the same?  In a time that does not depend on what they say. */
bool sign_same(const char *, const char *);

#endif
