/*
 * hook.c - senders of signed webhooks, each after its last answer
 *
 *	hook PORT PATH SECRET SENDERS N BYTES IDLE	events of the scheme github, N a sender, beside IDLE connections that send nothing
 *
 * Prints: ms in all, ms of the 50th and 99th percentile and of the slowest, answers that were not 200.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in to = { .sin_family = AF_INET };
static const char *path, *secret;
static int n, bytes, failed;
static double *took;

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int
reach(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&to, sizeof to) == -1) {
		perror("hook: connect");
		exit(69);
	}
	return fd;
}

static size_t
make(char *text, long sender, int i)
{
	char *body = malloc((size_t)bytes + 1);
	unsigned char mac[32];
	char hex[65];
	size_t len;

	for (int k = 0; k < bytes; k++)
		body[k] = (char)('a' + (k * 7 + i + sender) % 26);
	HMAC(EVP_sha256(), secret, (int)strlen(secret), (unsigned char *)body, (size_t)bytes, mac, NULL);
	for (int k = 0; k < 32; k++)
		snprintf(hex + 2 * k, 3, "%02x", mac[k]);
	len = (size_t)sprintf(text, "POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nX-GitHub-Event: push\r\n"
	    "X-GitHub-Delivery: %d-%ld-%d\r\nX-Hub-Signature-256: sha256=%s\r\nContent-Length: %d\r\n\r\n", path, (int)getpid(), sender, i, hex, bytes);
	memcpy(text + len, body, (size_t)bytes);
	free(body);
	return len + (size_t)bytes;
}

static void *
send_all(void *arg)
{
	long sender = (long)(intptr_t)arg;
	char *text = malloc((size_t)bytes + 1024), answer[1024];

	for (int i = 0; i < n; i++) {
		size_t len = make(text, sender, i), got = 0;
		double start = now();
		int fd = reach();
		ssize_t r;

		if (send(fd, text, len, MSG_NOSIGNAL) != (ssize_t)len)
			__sync_fetch_and_add(&failed, 1);
		while (got < sizeof answer && (r = recv(fd, answer + got, sizeof answer - got, 0)) > 0)
			got += (size_t)r;
		took[sender * n + i] = now() - start;
		close(fd);
		if (got < 12 || memcmp(answer + 9, "200", 3) != 0)
			__sync_fetch_and_add(&failed, 1);
	}
	return NULL;
}

static int
by_time(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

int
main(int argc, char *argv[])
{
	pthread_t *threads;
	int senders, all;
	double start;

	if (argc != 8) {
		fputs("usage: hook PORT PATH SECRET SENDERS N BYTES IDLE\n", stderr);
		return 64;
	}
	to.sin_port = htons((unsigned short)atoi(argv[1]));
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	path = argv[2];
	secret = argv[3];
	senders = atoi(argv[4]);
	n = atoi(argv[5]);
	bytes = atoi(argv[6]);
	all = senders * n;
	took = malloc((size_t)all * sizeof *took);
	threads = malloc((size_t)senders * sizeof *threads);
	for (int i = atoi(argv[7]); i > 0; i--)
		reach();
	start = now();
	for (long i = 0; i < senders; i++)
		pthread_create(&threads[i], NULL, send_all, (void *)(intptr_t)i);
	for (long i = 0; i < senders; i++)
		pthread_join(threads[i], NULL);
	start = now() - start;
	qsort(took, (size_t)all, sizeof *took, by_time);
	printf("%.1f %.2f %.2f %.2f %d\n", start, took[all / 2], took[all * 99 / 100], took[all - 1], failed);
	return 0;
}
