/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "fileio.h"
#include "remove-tree.h"

/* Each test has a fresh directory, open in *state. */
typedef struct Dir {
	char path[32];
	int fd;
} Dir;

static int setup(void **state)
{
	Dir *d = calloc(1, sizeof(*d));

	if (!d)
		return -1;
	strcpy(d->path, "/tmp/test-fileio-XXXXXX");
	if (!mkdtemp(d->path))
		return -1;
	d->fd = open(d->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	*state = d;
	return d->fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	Dir *d = *state;

	close_fd(d->fd);
	remove_tree(d->path);
	free(d);
	return 0;
}

static void put(const Dir *d, const char *name, const char *data, size_t size)
{
	auto_close int fd = openat(d->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
}

static void test_read(void **state)
{
	const Dir *d = *state;
	static const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 8192, 10000 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		auto_free char *data = malloc(sizes[i] + 1), *text = NULL;
		size_t size = 1;

		assert_non_null(data);
		for (size_t k = 0; k < sizes[i]; k++)
			data[k] = (char)('a' + k % 26);
		put(d, "f", data, sizes[i]);
		/* Exactly as long as allowed, then one byte too long. */
		assert_int_equal(read_file_at(d->fd, "f", sizes[i], &text, &size), 0);
		assert_int_equal(size, sizes[i]);
		assert_memory_equal(text, data, size);
		assert_int_equal(text[size], '\0');
		if (sizes[i] == 0)
			continue;
		assert_int_equal(read_file_at(d->fd, "f", sizes[i] - 1, &text, &size), -E2BIG);
	}
}

static void test_read_errors(void **state)
{
	const Dir *d = *state;
	char *text = NULL;

	assert_int_equal(read_file_at(d->fd, "none", 10, &text, NULL), -ENOENT);
	assert_int_equal(read_file_at(d->fd, ".", 10, &text, NULL), -EISDIR);
	assert_int_equal(read_file_at(-EBADF, "f", 10, &text, NULL), -EBADF);
	assert_null(text);
	put(d, "f", "x", 1);
	assert_int_equal(read_file_at(d->fd, "f", 10, &text, NULL), 0);
	assert_string_equal(text, "x");
	free(text);
}

static void test_read_head(void **state)
{
	const Dir *d = *state;
	char *text = NULL;
	size_t size;

	put(d, "f", "a\0bc", 4);
	for (size_t max = 0; max <= 5; max++) {
		assert_int_equal(read_head_at(d->fd, "f", max, &text, &size), 0);
		assert_int_equal(size, MIN(max, 4));
		assert_memory_equal(text, "a\0bc", size);
		assert_int_equal(text[size], '\0');
		free(text);
	}
	text = NULL;
	assert_int_equal(read_head_at(d->fd, "none", 10, &text, &size), -ENOENT);
	assert_int_equal(read_head_at(d->fd, ".", 10, &text, &size), -EISDIR);
	assert_null(text);
}

static void assert_content(const Dir *d, const char *name, const char *expected)
{
	auto_free char *text = NULL;

	assert_int_equal(read_file_at(d->fd, name, 1000, &text, NULL), 0);
	assert_string_equal(text, expected);
}

static void test_write_once(void **state)
{
	const Dir *d = *state;

	/* Neither made nor cut to size: that would be another command to the kernel. */
	assert_int_equal(write_once_at(d->fd, "f", "new", 0), -ENOENT);
	put(d, "f", "longer", 6);
	assert_int_equal(write_once_at(d->fd, "f", "new", 0), 0);
	assert_content(d, "f", "newger");
	assert_int_equal(symlinkat("f", d->fd, "link"), 0);
	assert_int_equal(write_once_at(d->fd, "link", "x", 0), -ELOOP);
	assert_content(d, "f", "newger");
	assert_int_equal(write_once_at(d->fd, ".", "x", 0), -EISDIR);
	assert_int_equal(write_once_at(AT_FDCWD, "/dev/full", "x", 0), -ENOSPC);
}

static void test_write_atomic(void **state)
{
	const Dir *d = *state;
	struct stat before, after;

	assert_int_equal(write_atomic_at(d->fd, "f", "one", 3, 0600, NULL), 0);
	assert_content(d, "f", "one");
	assert_int_equal(fstatat(d->fd, "f", &before, 0), 0);
	assert_int_equal(before.st_mode & 0777, 0600);
	assert_int_equal(write_atomic_at(d->fd, "f", "", 0, 0600, NULL), 0);
	assert_content(d, "f", "");
	assert_int_equal(fstatat(d->fd, "f", &after, 0), 0);
	assert_true(before.st_ino != after.st_ino);
	assert_int_equal(faccessat(d->fd, ".f.new", F_OK, 0), -1);
}

static void test_write_atomic_errors(void **state)
{
	const Dir *d = *state;

	/* The rename fails, and nothing stays beside the name. */
	assert_int_equal(mkdirat(d->fd, "dir", 0755), 0);
	assert_int_equal(write_atomic_at(d->fd, "dir", "x", 1, 0600, NULL), -EISDIR);
	assert_int_equal(faccessat(d->fd, ".dir.new", F_OK, 0), -1);
	/* Somebody's link in the place of our temporary file is not followed. */
	put(d, "victim", "safe", 4);
	assert_int_equal(symlinkat("victim", d->fd, ".f.new"), 0);
	assert_int_equal(write_atomic_at(d->fd, "f", "x", 1, 0600, NULL), -ELOOP);
	assert_content(d, "victim", "safe");
	assert_int_equal(write_atomic_at(d->fd, "no/f", "x", 1, 0600, NULL), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read_head, setup, teardown),
		cmocka_unit_test_setup_teardown(test_write_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_write_atomic, setup, teardown),
		cmocka_unit_test_setup_teardown(test_write_atomic_errors, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
