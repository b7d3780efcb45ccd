/* sign.c - signatures of webhooks, by libcrypto's HMAC */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "sign.h"

enum { KEY_MIN = 24, BASE64_MAX = 88 };	/* 88 digits for 64 bytes */

bool
sign_key(const char *text, struct sign_key *k, const char **why)
{
	unsigned char bytes[BASE64_MAX], again[BASE64_MAX + 1];
	const char *digits = text + 6;
	size_t n = strlen(text), pad = 0;
	int got;

	*why = "does not begin with whsec_";
	if (strncmp(text, "whsec_", 6) != 0)
		return false;
	*why = "is not whsec_ and the base64 of 24 to 64 bytes";
	n -= 6;
	if (n == 0 || n % 4 != 0 || n > BASE64_MAX)
		return false;
	while (pad < 2 && digits[n - 1 - pad] == '=')
		pad++;
	/* libcrypto passes over blanks and stray bits: only what it would write itself is taken. */
	got = EVP_DecodeBlock(bytes, (const unsigned char *)digits, (int)n) - (int)pad;
	if (got >= KEY_MIN && got <= (int)sizeof k->bytes && EVP_EncodeBlock(again, bytes, got) == (int)n && memcmp(again, digits, n) == 0) {
		memcpy(k->bytes, bytes, (size_t)got);
		k->n = (size_t)got;
		*why = NULL;
	}
	OPENSSL_cleanse(bytes, sizeof bytes);
	OPENSSL_cleanse(again, sizeof again);
	return *why == NULL;
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
