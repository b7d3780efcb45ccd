/*
 * floor.c - what no program can do without: with no operand it starts and ends; with one it
 * appends 200 bytes to a file and waits for the disk.
 */
#include <fcntl.h>
#include <unistd.h>

int
main(int argc, char *argv[])
{
	char line[200] = "floor";
	int fd;

	if (argc < 2)
		_exit(0);
	if ((fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)) == -1 ||
	    write(fd, line, sizeof line) != sizeof line || fdatasync(fd) == -1)
		_exit(1);
	_exit(0);
}
