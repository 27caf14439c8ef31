/* SPDX-License-Identifier: MIT */
/* Listing one group, without libcgroup: its cgroup_get_procs() takes the error of a group that ends between its
 * open and its read for a short buffer, and doubles that until memory ends; and its walk of the tree reads the
 * status of every file there is. */
#include <fcntl.h>

#include "cgroup.h"
#include "parse.h"

#define PROCS_TEXT_MAX (16 * MIB)

/* --- Processes ------------------------------------------------------------------------------- */

/* The kernel counts its processes as those of its domain. */
static int check_threaded(const Cgroup *g)
{
	auto_free char *type = NULL;
	int r;

	r = read_file_at(g->dir_fd, "cgroup.type", 64, &type, NULL);
	if (r == -ENOENT)
		return 0; /* the root, or gone: the next call finds out */
	if (r < 0)
		return r;
	return startswith(type, "threaded") ? -EOPNOTSUPP : 0;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static int read_procs(const Cgroup *g, pid_t **ret, size_t *ret_n)
{
	auto_free char *text = NULL;
	auto_free pid_t *pids = NULL;
	size_t n = 0, n_alloc = 0;
	char *rest, *line;
	int r;

	r = read_file_at(g->dir_fd, "cgroup.procs", PROCS_TEXT_MAX, &text, NULL);
	if (r < 0)
		return r;
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		uint32_t pid;

		if (!*line)
			continue;
		r = parse_u32(line, &pid);
		if (r < 0 || pid > INT32_MAX)
			return -EBADMSG;
		if (!GROW(pids, n_alloc, n))
			return -ENOMEM;
		pids[n++] = (pid_t)pid;
	}
	if (n > 0)
		qsort(pids, n, sizeof(*pids), compare_pids);
	*ret = TAKE_PTR(pids);
	*ret_n = n;
	return 0;
}

int cgroup_procs(const Hierarchy *h, const char *path, pid_t **ret, size_t *ret_n)
{
	auto_cgroup Cgroup *g = NULL;
	int r;

	r = cgroup_open(h, path, &g);
	if (r < 0)
		return r;
	r = check_threaded(g);
	if (r < 0)
		return r;
	return read_procs(g, ret, ret_n);
}

/* --- Children -------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_group(int dir_fd, const struct dirent *de)
{
	auto_close int fd = -EBADF;

	if (de->d_name[0] == '.' && (!de->d_name[1] || streq(de->d_name, "..")))
		return false;
	if (de->d_type != DT_UNKNOWN)
		return de->d_type == DT_DIR;
	fd = openat(dir_fd, de->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0;
}

int cgroup_children(const Hierarchy *h, const char *path, char ***ret)
{
	auto_cgroup Cgroup *g = NULL;
	auto_closedir DIR *d = NULL;
	auto_strv char **names = NULL;
	size_t n = 0, n_alloc = 0;
	struct dirent *de;
	int r;

	r = cgroup_open(h, path, &g);
	if (r < 0)
		return r;
	d = fdopendir(g->dir_fd);
	if (!d)
		return -errno;
	TAKE_FD(g->dir_fd);
	for (;;) {
		if (!GROW(names, n_alloc, n))
			return -ENOMEM;
		names[n] = NULL;
		errno = 0;
		de = readdir(d);
		if (!de && errno)
			return -errno;
		if (!de)
			break;
		if (!is_group(dirfd(d), de))
			continue;
		names[n] = strdup(de->d_name);
		if (!names[n])
			return -ENOMEM;
		n++;
	}
	qsort(names, n, sizeof(*names), compare_names);
	*ret = TAKE_PTR(names);
	return 0;
}
