/*
 * json.h - values inside a JSON text, by their place in its bytes
 *
 * A parsed number has lost its digits (1.10, ids of 20 digits), so what an API sent is never parsed and written
 * again: a value is the span of bytes that holds it.  What is to be built or configured goes through jansson.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct span { const char *p; size_t n; };	/* p NULL: no value */

/*
 * The one value of a JSON text (RFC 8259; a byte order mark is passed over), without blanks around it.  False: *why, a constant,
 * and *at, the byte where it stops being JSON.  The other functions want spans that come from here.
 */
bool json_read(const char *text, size_t n, struct span *, const char **why, size_t *at);

char json_kind(struct span);		/* '{' '[' '"' '0' (a number) 't' 'f' 'n'; 0: no value */

bool json_pointer(const char *);	/* Is it an RFC 6901 pointer: "" or "/a/b~1c/0"? */
struct span json_at(struct span, const char *pointer);	/* p NULL: nothing there */

/* The next element of an array; begin with *element = (struct span){ NULL }.  False: that was the last. */
bool json_next(struct span array, struct span *element);

/* The next member of an object; begin with *value = (struct span){ NULL }.  False: that was the last. */
bool json_member(struct span object, struct span *key, struct span *value);

/*
 * What a string means, or the source text of any other value, with a NUL behind it; the caller frees.  Half of a surrogate
 * pair becomes U+FFFD.  NULL: out of memory.
 */
char *json_text(struct span, size_t *len);

/* On one line, its literals untouched. */
void json_line(FILE *, struct span);

/*
 * A value in a form that does not depend on blanks, the order of members or how a string is escaped; members at one
 * of the pointers are left out.  The caller frees; NULL: out of memory.
 */
char *json_canon(struct span, const char *const *except, int nexcept, size_t *len);

#endif
