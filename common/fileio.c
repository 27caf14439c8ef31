/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <sys/stat.h>

#include "fileio.h"

static int read_all(int fd, char *buf, size_t size)
{
	size_t n = 0;

	while (n < size) {
		ssize_t k = read(fd, buf + n, size - n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -errno;
		if (k == 0)
			break;
		n += (size_t)k;
	}
	return (int)n;
}

int read_file_at(int dir_fd, const char *name, size_t max, char **ret, size_t *ret_size)
{
	auto_free char *buf = NULL;
	auto_close int fd = -EBADF;
	size_t room = 4096, n = 0;

	fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	for (;;) {
		char *p = realloc(buf, room + 1);
		int k;

		if (!p)
			return -ENOMEM;
		buf = p;
		k = read_all(fd, buf + n, room - n);
		if (k < 0)
			return k;
		n += (size_t)k;
		if (n < room)
			break;
		if (n > max)
			return -E2BIG;
		room *= 2;
	}
	if (n > max)
		return -E2BIG;
	buf[n] = '\0';
	if (ret_size)
		*ret_size = n;
	*ret = TAKE_PTR(buf);
	return 0;
}

int read_head_at(int dir_fd, const char *name, size_t max, char **ret, size_t *ret_size)
{
	auto_free char *buf = malloc(max + 1);
	auto_close int fd = -EBADF;
	char *fit;
	int n;

	if (!buf)
		return -ENOMEM;
	fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	n = read_all(fd, buf, max);
	if (n < 0)
		return n;
	buf[n] = '\0';
	fit = realloc(buf, (size_t)n + 1);
	if (fit)
		buf = fit;
	*ret = TAKE_PTR(buf);
	if (ret_size)
		*ret_size = (size_t)n;
	return 0;
}

int read_piece_at(int dir_fd, const char *name, size_t max, char **ret)
{
	auto_free char *buf = malloc(max + 1);
	auto_close int fd = -EBADF;
	ssize_t k;

	if (!buf)
		return -ENOMEM;
	fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	do
		k = read(fd, buf, max + 1);
	while (k < 0 && errno == EINTR);
	if (k < 0)
		return -errno;
	if ((size_t)k > max)
		return -E2BIG;
	buf[k] = '\0';
	*ret = TAKE_PTR(buf);
	return 0;
}

static int write_full(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t k = write(fd, data, size);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -errno;
		data += k;
		size -= (size_t)k;
	}
	return 0;
}

int write_once_at(int dir_fd, const char *name, const char *text, int flags)
{
	auto_close int fd = -EBADF;
	size_t size = strlen(text);
	ssize_t k;

	fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | flags);
	if (fd < 0)
		return -errno;
	do
		k = write(fd, text, size);
	while (k < 0 && errno == EINTR);
	if (k < 0)
		return -errno;
	return (size_t)k == size ? 0 : -EIO;
}

int write_atomic_at(int dir_fd, const char *name, const char *data, size_t size, mode_t mode, int *ret_fd)
{
	auto_free char *tmp = NULL;
	auto_close int fd = -EBADF;
	int r;

	if (asprintf(&tmp, ".%s.new", name) < 0) {
		tmp = NULL;
		return -ENOMEM;
	}
	fd = openat(dir_fd, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return -errno;
	r = write_full(fd, data, size);
	if (r >= 0 && renameat(dir_fd, tmp, dir_fd, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir_fd, tmp, 0);
	else if (ret_fd)
		*ret_fd = TAKE_FD(fd);
	return r;
}
