/* sign.c - signatures of webhooks, by libcrypto */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "q.h"
#include "sign.h"

enum { KEY_MIN = 24, MAC_MAX = 64, BASE64_MAX = 88 };	/* 88 digits for 64 bytes */

/* ---- how the senders sign ---- */

static const struct sign_scheme SCHEMES[] = {
	{ .name = "github", .signature = "header:X-Hub-Signature-256", .form = SIGN_PREFIX, .word = "sha256=", .alg = SIGN_SHA256,
	  .secret = SIGN_PHRASE, .message = "{body}", .id = "header:X-GitHub-Delivery", .type = "header:X-GitHub-Event",
	  .large = true },
	{ .name = "stripe", .signature = "header:Stripe-Signature", .form = SIGN_PAIRS, .word = "v1", .sep = ',', .alg = SIGN_SHA256,
	  .message = "{ts}.{body}", .ts = "pair:t", .unit = SIGN_S, .id = "json:/id", .time = "json:/created", .type = "json:/type" },
	{ .name = "slack", .signature = "header:X-Slack-Signature", .form = SIGN_PREFIX, .word = "v0=", .alg = SIGN_SHA256,
	  .message = "v0:{ts}:{body}", .ts = "header:X-Slack-Request-Timestamp", .unit = SIGN_S, .id = "json:/event_id",
	  .time = "json:/event_time", .type = "json:/event/type", .handshake = SIGN_SLACK },
	{ .name = "shopify", .signature = "header:X-Shopify-Hmac-SHA256", .code = SIGN_BASE64, .alg = SIGN_SHA256, .message = "{body}",
	  .id = "header:X-Shopify-Webhook-Id", .time = "header:X-Shopify-Triggered-At", .type = "header:X-Shopify-Topic" },
	{ .name = "standard", .also = "svix", .signature = "header:webhook-signature", .form = SIGN_VERSIONS, .code = SIGN_BASE64,
	  .alg = SIGN_SHA256, .secret = SIGN_WHSEC, .message = "{id}.{ts}.{body}", .ts = "header:webhook-timestamp", .unit = SIGN_S,
	  .id = "header:webhook-id", .time = "json:/timestamp", .type = "json:/type" },
	{ .name = "svix", .signature = "header:svix-signature", .form = SIGN_VERSIONS, .code = SIGN_BASE64,
	  .alg = SIGN_SHA256, .secret = SIGN_WHSEC, .message = "{id}.{ts}.{body}", .ts = "header:svix-timestamp", .unit = SIGN_S,
	  .id = "header:svix-id", .time = "json:/timestamp", .type = "json:/type" },
	{ .name = "gitlab", .signature = "header:X-Gitlab-Token", .alg = SIGN_TOKEN, .secret = SIGN_PHRASE, .message = "",
	  .id = "header:Idempotency-Key", .type = "header:X-Gitlab-Event" },
	{ .name = "gitlab-signed", .signature = "header:webhook-signature", .form = SIGN_VERSIONS, .code = SIGN_BASE64,
	  .alg = SIGN_SHA256, .secret = SIGN_WHSEC, .message = "{id}.{ts}.{body}", .ts = "header:webhook-timestamp", .unit = SIGN_S,
	  .id = "header:webhook-id", .type = "header:X-Gitlab-Event" },
	{ .name = "zoom", .signature = "header:x-zm-signature", .form = SIGN_PREFIX, .word = "v0=", .alg = SIGN_SHA256,
	  .message = "v0:{ts}:{body}", .ts = "header:x-zm-request-timestamp", .unit = SIGN_S, .time = "json:/event_ts",
	  .type = "json:/event", .handshake = SIGN_ZOOM },
	{ .name = "square", .signature = "header:x-square-hmacsha256-signature", .code = SIGN_BASE64, .alg = SIGN_SHA256,
	  .message = "{url}{body}", .id = "json:/event_id", .time = "json:/created_at", .type = "json:/type", .url = true },
	{ .name = "paddle", .signature = "header:Paddle-Signature", .form = SIGN_PAIRS, .word = "h1", .sep = ';', .alg = SIGN_SHA256,
	  .message = "{ts}:{body}", .ts = "pair:ts", .unit = SIGN_S, .id = "json:/event_id", .time = "json:/occurred_at",
	  .type = "json:/event_type" },
	{ .name = "linear", .signature = "header:Linear-Signature", .alg = SIGN_SHA256, .message = "{body}",
	  .ts = "json:/webhookTimestamp", .unit = SIGN_MS, .id = "header:Linear-Delivery", .time = "json:/createdAt", .type = "json:/type" },
	{ .name = "zendesk", .signature = "header:X-Zendesk-Webhook-Signature", .code = SIGN_BASE64, .alg = SIGN_SHA256,
	  .message = "{ts}{body}", .ts = "header:X-Zendesk-Webhook-Signature-Timestamp", .unit = SIGN_RFC3339,
	  .id = "header:X-Zendesk-Webhook-Invocation-Id", .time = "json:/time", .type = "json:/type" },
	/* Of the event nothing is signed: the id is what can be used once. */
	{ .name = "mailgun", .signature = "json:/signature/signature", .alg = SIGN_SHA256, .message = "{ts}{id}",
	  .ts = "json:/signature/timestamp", .unit = SIGN_S, .id = "json:/signature/token", .time = "json:/event-data/timestamp",
	  .type = "json:/event-data/event", .refused = 406 },
	{ .name = "meta", .signature = "header:X-Hub-Signature-256", .form = SIGN_PREFIX, .word = "sha256=", .alg = SIGN_SHA256,
	  .message = "{body}", .time = "json:/entry/0/time", .type = "json:/object", .handshake = SIGN_META },
	{ .name = "discord", .signature = "header:X-Signature-Ed25519", .alg = SIGN_ED25519, .secret = SIGN_KEY_HEX,
	  .message = "{ts}{body}", .ts = "header:X-Signature-Timestamp", .unit = SIGN_S, .time = "json:/event/timestamp",
	  .type = "json:/event/type", .handshake = SIGN_DISCORD, .accepted = 204 },
	{ .name = "twilio", .signature = "header:X-Twilio-Signature", .code = SIGN_BASE64, .alg = SIGN_SHA1,
	  .message = "{url}{form}", .url = true },
	{ .name = "hmac", .alg = SIGN_SHA256, .secret = SIGN_PHRASE, .message = "{body}" },
	{ .name = "insecure-none", .alg = SIGN_NONE, .message = "" },
};

#define NSCHEMES (sizeof SCHEMES / sizeof *SCHEMES)

const char *
sign_name(size_t n)
{
	return n < NSCHEMES ? SCHEMES[n].name : NULL;
}

const struct sign_scheme *
sign_scheme(const char *name)
{
	for (size_t i = 0; i < NSCHEMES; i++)
		if (strcmp(SCHEMES[i].name, name) == 0)
			return &SCHEMES[i];
	return NULL;
}

bool
sign_covers(const struct sign_scheme *s, const char *part)
{
	return strstr(s->message, part) != NULL;
}

/* ---- digits ---- */

static int
hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* How many bytes; -1: it is not hex, or more than size. */
static int
from_hex(const char *digits, size_t n, unsigned char *to, size_t size)
{
	if (n % 2 != 0 || n / 2 > size)
		return -1;
	for (size_t i = 0; i < n; i += 2) {
		int hi = hex_digit(digits[i]), lo = hex_digit(digits[i + 1]);

		if (hi < 0 || lo < 0)
			return -1;
		to[i / 2] = (unsigned char)(hi << 4 | lo);
	}
	return (int)(n / 2);
}

static int
base64_digit(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : c >= '0' && c <= '9' ? c - '0' + 52 :
	    c == '+' ? 62 : c == '/' ? 63 : -1;
}

/*
 * Base64.  Strictly it has its padding and no bits left over; else, as the libraries of Standard Webhooks read a secret, it
 * need not.  How many bytes; -1: it is not that, or more than size.
 */
static int
from_base64(const char *digits, size_t n, bool strict, unsigned char *to, size_t size)
{
	unsigned bits = 0, have = 0;
	size_t len = 0, pad = 0;

	while (n > 0 && pad < 2 && digits[n - 1] == '=')
		pad++, n--;
	if (n % 4 == 1 || (pad > 0 ? (n + pad) % 4 != 0 : strict && n % 4 != 0))
		return -1;
	for (size_t i = 0; i < n; i++) {
		int d = base64_digit(digits[i]);

		if (d < 0)
			return -1;
		bits = (bits << 6 | (unsigned)d) & 0xffff;
		if ((have += 6) >= 8) {
			have -= 8;
			if (len == size)
				return -1;
			to[len++] = (unsigned char)(bits >> have);
		}
	}
	return strict && (bits & ((1u << have) - 1)) != 0 ? -1 : (int)len;
}

/* ---- secrets ---- */

bool
sign_key(const char *text, struct sign_key *k, const char **why)
{
	unsigned char bytes[64];
	int got;

	*why = "does not begin with whsec_";
	if (strncmp(text, "whsec_", 6) != 0)
		return false;
	*why = "is not whsec_ and the base64 of 24 to 64 bytes";
	got = from_base64(text + 6, strlen(text + 6), true, bytes, sizeof bytes);
	if (got >= KEY_MIN) {
		memcpy(k->bytes, bytes, (size_t)got);
		k->n = (size_t)got;
		*why = NULL;
	}
	OPENSSL_cleanse(bytes, sizeof bytes);
	return *why == NULL;
}

bool
sign_secret(const struct sign_scheme *s, const char *text, struct sign_secret *k, const char **why)
{
	size_t n = strlen(text);
	int got = -1;

	k->public = s->alg == SIGN_ED25519;
	*why = "is empty";
	if (n == 0)
		return false;
	switch (s->secret) {
	case SIGN_RAW:
		*why = "has a blank in it";
		if (strpbrk(text, " \t") != NULL)
			return false;
		/* FALLTHROUGH */
	case SIGN_PHRASE:
		*why = "begins or ends with a blank";
		if (strchr(" \t", text[0]) != NULL || strchr(" \t", text[n - 1]) != NULL)
			return false;
		*why = "is longer than 1024 bytes";
		if (n <= sizeof k->bytes) {
			memcpy(k->bytes, text, n);
			got = (int)n;
		}
		break;
	case SIGN_KEY_BASE64:
		*why = "is not base64 of at most 1024 bytes";
		got = from_base64(text, n, false, k->bytes, sizeof k->bytes);
		break;
	case SIGN_KEY_HEX:
		*why = k->public ? "is not a public key of 64 hex digits" : "is not hex of at most 1024 bytes";
		got = from_hex(text, n, k->bytes, sizeof k->bytes);
		break;
	case SIGN_WHSEC:
		k->public = strncmp(text, "whpk_", 5) == 0;
		*why = k->public ? "is not whpk_ and the base64 of 32 bytes" : "is not whsec_ and base64";
		if (k->public || strncmp(text, "whsec_", 6) == 0)
			text += k->public ? 5 : 6;
		got = from_base64(text, strlen(text), false, k->bytes, sizeof k->bytes);
		break;
	}
	k->n = got > 0 ? (size_t)got : 0;
	if (k->public && k->n != 32)
		return false;
	if (got == 0)
		*why = "is empty";
	if (got > 0)
		*why = NULL;
	return got > 0;
}

/* ---- what is signed ---- */

struct text { char *p; size_t n, cap; bool bad; };

static void
add(struct text *t, const void *p, size_t n)
{
	char *more;

	if (n > t->cap - t->n && !t->bad) {
		if ((more = realloc(t->p, 2 * (t->n + n) + 64)) == NULL)
			t->bad = true;
		else {
			t->p = more;
			t->cap = 2 * (t->n + n) + 64;
		}
	}
	if (t->bad || n == 0)
		return;
	memcpy(t->p + t->n, p, n);
	t->n += n;
}

struct field { char *name, *value; size_t nname, nvalue; };

/* What a piece of a form means, in its own place. */
static size_t
plain(char *s, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n; i++) {
		int hi = s[i] == '%' && n - i > 2 ? hex_digit(s[i + 1]) : -1, lo = hi >= 0 ? hex_digit(s[i + 2]) : -1;

		if (lo >= 0) {
			s[to++] = (char)(hi << 4 | lo);
			i += 2;
		} else
			s[to++] = s[i] == '+' ? ' ' : s[i];
	}
	return to;
}

static int
order(const char *a, size_t n, const char *b, size_t m)
{
	int d = memcmp(a, b, n < m ? n : m);

	return d != 0 ? d : (n > m) - (n < m);
}

static int
by_field(const void *a, const void *b)
{
	const struct field *x = a, *y = b;
	int d = order(x->name, x->nname, y->name, y->nname);

	return d != 0 ? d : order(x->value, x->nvalue, y->value, y->nvalue);
}

/* Name and value of each field of a form, by name and value, each once. */
static void
add_form(struct text *t, const void *body, size_t len)
{
	char *copy = malloc(len + 1), *p, *end, *stop;
	struct field *f = NULL, *more;
	size_t n = 0;

	if (copy == NULL) {
		t->bad = true;
		return;
	}
	if (len > 0)
		memcpy(copy, body, len);
	for (p = copy, end = copy + len; p < end && !t->bad; p = stop + 1) {
		char *equals;

		if ((stop = memchr(p, '&', (size_t)(end - p))) == NULL)
			stop = end;
		if (stop == p)
			continue;
		if ((n & (n - 1)) == 0) {
			if ((more = realloc(f, (n == 0 ? 1 : 2 * n) * sizeof *f)) == NULL) {
				t->bad = true;
				break;
			}
			f = more;
		}
		if ((equals = memchr(p, '=', (size_t)(stop - p))) == NULL)
			equals = stop;
		f[n].name = p;
		f[n].nname = plain(p, (size_t)(equals - p));
		f[n].value = equals < stop ? equals + 1 : stop;
		f[n].nvalue = plain(f[n].value, (size_t)(stop - f[n].value));
		n++;
	}
	if (n > 1)
		qsort(f, n, sizeof *f, by_field);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || by_field(&f[i - 1], &f[i]) != 0) {
			add(t, f[i].name, f[i].nname);
			add(t, f[i].value, f[i].nvalue);
		}
	free(f);
	free(copy);
}

/* False: *why, a part is absent. */
static bool
compose(struct text *t, const char *message, const struct sign_parts *in, const char **why)
{
	const struct { const char *name, *text, *why; } parts[] = {
		{ "{id}", in->id, "the id that is signed is absent" },
		{ "{ts}", in->ts, "the time of signing is absent" },
		{ "{url}", in->url, "no URL" },
	};

	while (*message != '\0') {
		size_t n = strcspn(message + 1, "{") + 1, i;

		if (*message == '{') {
			for (i = 0; i < 3; i++)
				if (strncmp(message, parts[i].name, strlen(parts[i].name)) == 0)
					break;
			n = strcspn(message, "}") + 1;
			if (i < 3) {
				*why = parts[i].why;
				if (parts[i].text == NULL || *parts[i].text == '\0')
					return false;
				add(t, parts[i].text, strlen(parts[i].text));
			} else if (strncmp(message, "{form}", 6) == 0)
				add_form(t, in->body, in->len);
			else
				add(t, in->body, in->len);
		} else
			add(t, message, n);
		message += n;
	}
	return true;
}

/* ---- verifying ---- */

struct candidate { unsigned char bytes[MAC_MAX]; bool public; };

static size_t
width(enum sign_alg alg)
{
	return alg == SIGN_SHA1 ? 20 : alg == SIGN_SHA256 ? 32 : 64;
}

static const EVP_MD *
digest(enum sign_alg alg)
{
	return alg == SIGN_SHA1 ? EVP_sha1() : alg == SIGN_SHA512 ? EVP_sha512() : EVP_sha256();
}

static void
candidate(const struct sign_scheme *s, const char *digits, size_t n, bool public, struct candidate *c, int *count)
{
	size_t want = public ? 64 : width(s->alg);
	int got;

	if (*count >= SIGN_CANDIDATES) {
		*count = SIGN_CANDIDATES + 1;
		return;
	}
	got = s->code == SIGN_HEX ? from_hex(digits, n, c[*count].bytes, MAC_MAX) : from_base64(digits, n, true, c[*count].bytes, MAC_MAX);
	c[*count].public = public;
	*count += got == (int)want;
}

/* The signatures that the text holds, decoded: how many, SIGN_CANDIDATES + 1 if it is more than that. */
static int
candidates(const struct sign_scheme *s, const char *text, struct candidate *c)
{
	size_t nword = s->word == NULL ? 0 : strlen(s->word), n;
	int count = 0;

	switch (s->form) {
	case SIGN_PREFIX:
		if (strncmp(text, s->word, nword) != 0)
			break;
		text += nword;
		/* FALLTHROUGH */
	case SIGN_BARE:
		candidate(s, text, strlen(text), s->alg == SIGN_ED25519, c, &count);
		break;
	case SIGN_PAIRS:
		for (;; text += n + 1) {
			const char sep[] = { s->sep, '\0' };

			text += strspn(text, " ");
			n = strcspn(text, sep);
			if (n > nword && strncmp(text, s->word, nword) == 0 && text[nword] == '=')
				candidate(s, text + nword + 1, n - nword - 1, s->alg == SIGN_ED25519, c, &count);
			if (text[n] == '\0')
				break;
		}
		break;
	case SIGN_VERSIONS:
		for (;; text += n + 1) {
			n = strcspn(text, " ");
			if (strncmp(text, "v1,", 3) == 0)
				candidate(s, text + 3, n - 3, false, c, &count);
			else if (strncmp(text, "v1a,", 4) == 0)
				candidate(s, text + 4, n - 4, true, c, &count);
			if (text[n] == '\0')
				break;
		}
		break;
	}
	return count;
}

static bool
ed25519(const struct sign_secret *k, const unsigned char signature[64], const struct text *message)
{
	EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, k->bytes, k->n);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool good = key != NULL && ctx != NULL && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1 &&
	    EVP_DigestVerify(ctx, signature, 64, (const unsigned char *)message->p, message->n) == 1;

	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(key);
	return good;
}

bool
sign_same(const char *a, const char *b)
{
	unsigned char x[32], y[32];

	/* Digests have one length, whatever the texts have. */
	return EVP_Digest(a, strlen(a), x, NULL, EVP_sha256(), NULL) == 1 && EVP_Digest(b, strlen(b), y, NULL, EVP_sha256(), NULL) == 1 &&
	    CRYPTO_memcmp(x, y, sizeof x) == 0;
}

static int
token(const struct sign_secret *k, int n, const char *text, const char **why)
{
	char secret[SIGN_SECRET_MAX + 1];
	int found = -1;

	for (int i = 0; i < n; i++) {
		memcpy(secret, k[i].bytes, k[i].n);
		secret[k[i].n] = '\0';
		if (sign_same(secret, text) && found == -1)
			found = i;
	}
	OPENSSL_cleanse(secret, sizeof secret);
	*why = "the token is none of the secrets";
	return found;
}

int
sign_verify(const struct sign_scheme *s, const struct sign_secret *k, int n, const struct sign_parts *in, const char **why)
{
	struct candidate c[SIGN_CANDIDATES];
	struct text message = { malloc(64), 0, 64, false };
	unsigned char mac[EVP_MAX_MD_SIZE];
	int count, found = -1;

	*why = "the signature is absent";
	if (in->signature == NULL)
		goto out;
	if (s->alg == SIGN_TOKEN) {
		found = token(k, n, in->signature, why);
		goto out;
	}
	*why = "there is no signature in the form of this scheme";
	if ((count = candidates(s, in->signature, c)) == 0)
		goto out;
	*why = "there are more than 16 signatures";
	if (count > SIGN_CANDIDATES)
		goto out;
	message.bad = message.p == NULL;
	if (compose(&message, s->message, in, why)) {
		*why = "no secret of this line made the signature";
		for (int i = 0; i < n && !message.bad; i++) {
			unsigned len = 0;

			if (!k[i].public && HMAC(digest(s->alg), k[i].bytes, (int)k[i].n, (unsigned char *)message.p, message.n, mac, &len) == NULL)
				message.bad = true;
			for (int j = 0; j < count && !message.bad; j++) {
				bool same = c[j].public == k[i].public && (k[i].public ? ed25519(&k[i], c[j].bytes, &message) :
				    len == width(s->alg) && CRYPTO_memcmp(c[j].bytes, mac, len) == 0);

				if (same && found == -1)
					found = i;
			}
		}
	}
out:
	free(message.p);
	OPENSSL_cleanse(mac, sizeof mac);
	return message.bad ? -2 : found;
}

bool
sign_pair(const char *list, char sep, const char *name, char *buf, size_t size)
{
	const char ends[] = { sep, '\0' };
	size_t nname = strlen(name), n;
	int found = 0;

	for (;; list += n + 1) {
		list += strspn(list, " ");
		n = strcspn(list, ends);
		if (n > nname && strncmp(list, name, nname) == 0 && list[nname] == '=') {
			if (n - nname - 1 >= size)
				return false;
			memcpy(buf, list + nname + 1, n - nname - 1);
			buf[n - nname - 1] = '\0';
			found++;
		}
		if (list[n] == '\0')
			return found == 1;
	}
}

/* A number has the one length that it has now and for long, so that no digit can move to or from what follows it. */
bool
sign_time(enum sign_unit unit, const char *ts, int64_t *ms)
{
	const char *why;

	switch (unit) {
	case SIGN_S:
		if (strlen(ts) != 10 || !text_int(ts, 0, INT64_C(9999999999), ms))
			return false;
		*ms *= 1000;
		return true;
	case SIGN_MS:
		return strlen(ts) == 13 && text_int(ts, 0, INT64_C(9999999999999), ms);
	case SIGN_RFC3339:
		return strlen(ts) >= 17 && ts[0] >= '0' && ts[0] <= '9' && ts[4] == '-' && when_instant(ts, NULL, 0, ms, &why);
	case SIGN_UNTIMED:
		break;
	}
	return false;
}

bool
sign_hex(const struct sign_secret *k, const char *text, char buf[65])
{
	unsigned char mac[32];

	if (HMAC(EVP_sha256(), k->bytes, (int)k->n, (const unsigned char *)text, strlen(text), mac, NULL) == NULL)
		return false;
	for (int i = 0; i < 32; i++)
		sprintf(buf + 2 * i, "%02x", mac[i]);
	return true;
}

bool
sign_standard(const struct sign_key *k, const char *id, int64_t seconds, const void *body, size_t n, char buf[SIGN_TEXT])
{
	size_t size = strlen(id) + 32, head;
	unsigned char mac[EVP_MAX_MD_SIZE], *text = malloc(size + n);
	unsigned len = 0;
	bool good;

	if (text == NULL)
		return false;
	head = (size_t)snprintf((char *)text, size, "%s.%" PRId64 ".", id, seconds);
	if (n > 0)
		memcpy(text + head, body, n);
	good = HMAC(EVP_sha256(), k->bytes, (int)k->n, text, head + n, mac, &len) != NULL;
	free(text);
	if (good) {
		memcpy(buf, "v1,", 3);
		EVP_EncodeBlock((unsigned char *)buf + 3, mac, (int)len);
	}
	return good;
}
