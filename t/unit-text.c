/*
 * unit-text - lib/text.c, read.c and record.c from the shell: a verb, its operands, input on stdin
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "q.h"

#define NOW INT64_C(1780401600000)	/* 2026-06-02T12:00:00Z */

static char in[8 << 20];
static size_t len;

static void
slurp(void)
{
	len = fread(in, 1, sizeof in, stdin);
}

static void
field(const char *name, const char *s)
{
	if (s == NULL)
		return;
	printf(" %s=", name);
	text_tsv(stdout, s, strlen(s));
}

static void
number(const char *name, int64_t n)
{
	if (n != -1)
		printf(" %s=%" PRId64, name, n);
}

/* Defaults as NAME=VALUE; with raw the payload's bytes alone. */
static int
record(char **defaults, bool raw)
{
	struct job_new j = { .priority = -1, .due_ms = -1, .event_ms = -1, .attempts = -1, .window_ms = -1,
	    .base_ms = -1, .cap_ms = -1 };
	const char *why;

	for (; *defaults != NULL; defaults++) {
		const char *v = strchr(*defaults, '=') + 1;

		switch (**defaults) {
		case 'q': j.queue = v; break;
		case 't': j.type = v; break;
		case 'k': j.key = v; break;
		case 'e': j.entity = v; break;
		case 'z': j.zone = v; break;
		case 'p': j.priority = atoi(v); break;
		case 'd': j.due_ms = atoll(v); break;
		case 'b': j.payload = v; j.payload_len = strlen(v); break;	/* body */
		}
	}
	if (!record_parse(in, len, NOW, &j, &why)) {
		printf("refused: %s\n", why);
		return 65;
	}
	if (raw) {
		fwrite(j.payload, 1, j.payload_len, stdout);
		return 0;
	}
	printf("job");
	field("queue", j.queue);
	field("type", j.type);
	field("key", j.key);
	field("entity", j.entity);
	field("zone", j.zone);
	number("priority", j.priority);
	number("due", j.due_ms);
	number("event", j.event_ms);
	if (j.payload != NULL) {
		printf(" payload=");
		text_tsv(stdout, j.payload, j.payload_len);
	}
	putchar('\n');
	return 0;
}

/* Out by text_json_bytes() and in by record_parse() must give the same bytes. */
static void
again(const char *p, size_t n)
{
	struct job_new j = { .due_ms = -1 };
	const char *why;
	char *out;
	size_t size;
	FILE *f = open_memstream(&out, &size);

	if (f == NULL)
		exit(71);
	putc('{', f);
	text_json_bytes(f, "payload", p, n);
	putc('}', f);
	fclose(f);
	if (memchr(out, '\n', size) != NULL)
		puts("not one line");
	if (!record_parse(out, size, NOW, &j, &why))
		printf("%s: %s\n", out, why);
	else if (j.payload_len != n || memcmp(j.payload, p, n) != 0)
		printf("%s: other bytes\n", out);
	free(out);
}

/* A child that sends stdin in messages of one byte, so that every read gives one byte. */
static int
drip(bool nonblock)
{
	int fd[2];
	size_t i;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd) == -1)
		exit(71);
	if (fork() == 0) {
		close(fd[0]);
		for (i = 0; i < len; i++)
			if (write(fd[1], in + i, 1) != 1)
				_exit(1);
		_exit(0);
	}
	close(fd[1]);
	if (nonblock)
		fcntl(fd[0], F_SETFL, O_NONBLOCK);
	return fd[0];
}

/* One line a record: number, length, T if it had its delimiter, and its start. */
static void
read_all(struct reader *r, int stop)
{
	char *rec;
	size_t n;
	int e;

	while ((e = reader_next(r, &rec, &n)) == Q_OK || e == Q_DATA) {
		if (e == Q_DATA)
			printf("%" PRId64 " too long\n", r->number);
		else {
			printf("%" PRId64 " %zu %c ", r->number, n, r->terminated ? 'T' : '-');
			text_tsv(stdout, rec, n < 60 ? n : 60);
			putchar('\n');
		}
		if (e == stop)
			break;
	}
	if (e != Q_NO)
		printf("status %d\n", e);
	else if (reader_next(r, &rec, &n) != Q_NO)
		printf("the end did not stay the end\n");
}

static void
nothing(int sig)
{
	(void)sig;
}

/* Half a record, a signal while the reader waits for the rest, then the rest. */
static void
interrupted(void)
{
	static struct reader r;
	struct sigaction sa = { .sa_handler = nothing };
	struct timespec ms = { 0, 1000000 };
	int fd[2], told[2], e;
	char *rec;
	size_t n;

	sigaction(SIGUSR1, &sa, NULL);
	if (pipe(fd) == -1 || pipe(told) == -1)
		exit(71);
	if (fork() == 0) {
		char c;

		close(fd[0]);
		close(told[1]);
		fcntl(told[0], F_SETFL, O_NONBLOCK);
		if (write(fd[1], "ab", 2) != 2)
			_exit(1);
		while (read(told[0], &c, 1) != 1) {
			kill(getppid(), SIGUSR1);
			nanosleep(&ms, NULL);
		}
		_exit(write(fd[1], "cd\n", 3) != 3);
	}
	close(fd[1]);
	reader_init(&r, fd[0], '\n', 10);
	if ((e = reader_next(&r, &rec, &n)) == Q_TEMP)
		printf("interrupted\n");
	while (write(told[1], "x", 1) != 1)
		;
	while (e == Q_TEMP)
		e = reader_next(&r, &rec, &n);
	printf("%d %.*s\n", e, (int)n, rec);
}

/* The shares of keys 0 to n-1 must fill ten equal parts about equally. */
static void
spread(int n)
{
	int part[10] = { 0 }, i;
	char key[20];
	double s;

	for (i = 0; i < n; i++) {
		snprintf(key, sizeof key, "%d", i);
		s = job_share("mail", key);
		if (s < 0 || s >= 1)
			printf("%s: %f\n", key, s);
		else
			part[(int)(s * 10)]++;
	}
	for (i = 0; i < 10; i++)
		if (part[i] < n / 12 || part[i] > n / 8)
			printf("part %d holds %d\n", i, part[i]);
}

int
main(int argc, char **argv)
{
	static struct reader r;
	const char *verb = argc > 1 ? argv[1] : "", *arg = argc > 2 ? argv[2] : "", *s;
	struct claim c;
	int64_t n;

	if (strcmp(verb, "utf8") == 0) {
		slurp();
		puts(text_utf8(in, len) ? "yes" : "no");
	} else if (strcmp(verb, "queue") == 0)
		puts(text_queue(arg) ? "yes" : "no");
	else if (strcmp(verb, "name") == 0)
		puts((s = text_name_fault(arg)) == NULL ? "good" : s);
	else if (strcmp(verb, "int") == 0 && argc == 5) {
		if (text_int(arg, strtoll(argv[3], NULL, 10), strtoll(argv[4], NULL, 10), &n))
			printf("%" PRId64 "\n", n);
		else
			puts("no");
	} else if (strcmp(verb, "json") == 0) {
		slurp();
		text_json(stdout, in, len);
	} else if (strcmp(verb, "lines") == 0) {	/* each byte of stdin as a string of its own */
		slurp();
		for (n = 0; n < (int64_t)len; n++) {
			text_json(stdout, in + n, 1);
			putchar('\n');
		}
	} else if (strcmp(verb, "bytes") == 0) {
		slurp();
		text_json_bytes(stdout, arg, in, len);
	} else if (strcmp(verb, "again") == 0) {	/* stdin, or each byte of it */
		slurp();
		if (*arg == '\0')
			again(in, len);
		else
			for (n = 0; n < (int64_t)len; n++)
				again(in + n, 1);
	} else if (strcmp(verb, "null") == 0)
		text_json_bytes(stdout, arg, NULL, 0);
	else if (strcmp(verb, "show") == 0) {
		slurp();
		printf("|%d\n", text_show(stdout, in, len, atoi(arg)));
	} else if (strcmp(verb, "tsv") == 0) {
		slurp();
		text_tsv(stdout, in, len);
	} else if (strcmp(verb, "nearest") == 0 && argc > 2)
		puts((s = text_nearest(arg, (const char *const *)argv + 3)) == NULL ? "none" : s);
	else if (strcmp(verb, "read") == 0 && argc > 3) {	/* lf, nul or all; max; drip, nonblock, stop */
		const char *how = argc > 4 ? argv[4] : "";
		int fd = 0;

		if (strcmp(how, "drip") == 0 || strcmp(how, "nonblock") == 0) {
			slurp();
			fd = drip(*how == 'n');
		}
		reader_init(&r, fd, *arg == 'l' ? '\n' : *arg == 'n' ? '\0' : -1, (size_t)atoll(argv[3]));
		read_all(&r, strcmp(how, "stop") == 0 ? Q_DATA : -1);
	} else if (strcmp(verb, "interrupted") == 0)
		interrupted();
	else if (strcmp(verb, "record") == 0 || strcmp(verb, "payload") == 0) {
		slurp();
		return record(argv + 2, *verb == 'p');
	} else if (strcmp(verb, "claim") == 0) {
		slurp();
		if (record_claim(in, len, &c))
			printf("%" PRId64 " %" PRId64 " %08" PRIx64 "\n", c.id, c.fence, (uint64_t)c.nonce);
		else
			puts("no");
	} else if (strcmp(verb, "id") == 0) {
		slurp();
		if (record_id(in, len, &n))
			printf("%" PRId64 "\n", n);
		else
			puts("no");
	} else if (strcmp(verb, "share") == 0)
		printf("%.12f\n", job_share(arg, argc > 3 ? argv[3] : NULL));
	else if (strcmp(verb, "spread") == 0)
		spread(atoi(arg));
	else {
		fprintf(stderr, "unit-text: unknown verb '%s'\n", verb);
		return 64;
	}
	return fflush(stdout) == 0 ? 0 : 74;
}
