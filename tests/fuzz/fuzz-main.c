/* SPDX-License-Identifier: MIT */
/* Replays corpora without libFuzzer: each argument is a file, or a folder of files. */
#include <fcntl.h>
#include <sys/stat.h>

#include "fileio.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(int dir_fd, const char *name)
{
	auto_free char *data = NULL;
	auto_free uint8_t *exact = NULL;
	size_t size;
	int r;

	r = read_file_at(dir_fd, name, 16 * MIB, &data, &size);
	if (r < 0)
		return r;
	/* A copy without the closing NUL, so that a read behind the end is seen by ASan. */
	exact = malloc(size ? size : 1);
	if (!exact)
		return -ENOMEM;
	memcpy(exact, data, size);
	(void)LLVMFuzzerTestOneInput(exact, size);
	return 1;
}

static int replay_dir(const char *path)
{
	auto_closedir DIR *d = opendir(path);
	struct dirent *de;
	int n = 0, r;

	if (!d)
		return errno == ENOTDIR ? replay_file(AT_FDCWD, path) : -errno;
	while ((de = readdir(d))) {
		if (de->d_name[0] == '.')
			continue;
		r = replay_file(dirfd(d), de->d_name);
		if (r < 0)
			return r;
		n += r;
	}
	return n;
}

int main(int argc, char **argv)
{
	int n = 0;

	for (int i = 1; i < argc; i++) {
		int r = replay_dir(argv[i]);

		if (r < 0) {
			fprintf(stderr, "%s: %s\n", argv[i], strerror(-r));
			return EXIT_FAILURE;
		}
		n += r;
	}
	printf("%d inputs replayed\n", n);
	return n > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
