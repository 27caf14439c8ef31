/* SPDX-License-Identifier: MIT */
/* The walk has two back ends: libcgroup for the running system, whose mounts are all that it
 * knows, and plain directories for a hierarchy below --root. */
#include <fcntl.h>
#include <libcgroup.h>
#include <limits.h>

#include "cgroup.h"
#include "parse.h"

#define PROCS_TEXT_MAX (16 * MIB)
#define DMEM "dmem"

static int from_libcgroup(int r)
{
	switch (r) {
	case 0:
		return 0;
	case ECGROUPNOTEXIST:
		return -ENOENT;
	case ECGROUPNOTOWNER:
	case ECGROUPNOTALLOWED:
		return -EPERM;
	case ECGOTHER:
		return cgroup_get_last_errno() > 0 ? -cgroup_get_last_errno() : -EIO;
	default:
		return -EIO;
	}
}

/* libcgroup builds paths in buffers of FILENAME_MAX bytes, and cuts off what does not fit. */
static int check_length(const Hierarchy *h, const char *path)
{
	size_t room = strlen("//cgroup.procs") + NAME_MAX;

	return strlen(h->mount_point) + strlen(path) + room < FILENAME_MAX ? 0 : -ENAMETOOLONG;
}

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

/* Not by libcgroup's cgroup_get_procs(): when the group goes between its open and its read, it takes the error
 * for a short buffer, and doubles that until memory ends. */
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

/* --- The tree -------------------------------------------------------------------------------- */

static int walk_plain(const Hierarchy *h, const char *path, cgroup_walk_cb cb, void *userdata)
{
	auto_strv char **names = NULL;
	int r;

	r = cgroup_children(h, path, &names);
	if (r < 0)
		return r;
	for (char **name = names; *name; name++) {
		auto_free char *child = NULL;

		if (asprintf(&child, "%s/%s", path[1] ? path : "", *name) < 0) {
			child = NULL;
			return -ENOMEM;
		}
		r = cb(child, userdata);
		if (r < 0)
			return r;
		r = walk_plain(h, child, cb, userdata);
		if (r < 0 && !cgroup_is_gone(r))
			return r;
	}
	return 0;
}

/* libcgroup gives "MOUNT/path/", with doubled slashes in 3.x: the path as we write it, fresh. */
static char *relative_path(const Hierarchy *h, const char *full)
{
	const char *s = startswith(full, h->mount_point);
	char *path, *p;

	if (!s)
		return NULL;
	p = path = malloc(strlen(s) + 2);
	if (!path)
		return NULL;
	*p++ = '/';
	for (; *s; s++)
		if (*s != '/' || p[-1] != '/')
			*p++ = *s;
	if (p > path + 1 && p[-1] == '/')
		p--;
	*p = '\0';
	return path;
}

static int walk_one(const Hierarchy *h, const char *base, const struct cgroup_file_info *info,
		    cgroup_walk_cb cb, void *userdata)
{
	auto_free char *path = NULL;

	if (info->type != CGROUP_FILE_TYPE_DIR)
		return 0;
	path = relative_path(h, info->full_path);
	if (!path)
		return -ENOMEM;
	return streq(path, base) ? 0 : cb(path, userdata);
}

static int walk_libcgroup(const Hierarchy *h, const char *base, cgroup_walk_cb cb, void *userdata)
{
	struct cgroup_file_info info;
	void *handle = NULL;
	int level, q, r;

	r = check_length(h, base);
	if (r < 0)
		return r;
	q = cgroup_walk_tree_begin(DMEM, base, 0, &handle, &info, &level);
	while (q == 0) {
		r = walk_one(h, base, &info, cb, userdata);
		if (r < 0)
			break;
		q = cgroup_walk_tree_next(0, &handle, &info, level);
	}
	/* After a begin that failed there is nothing to end, and it would crash. */
	if (handle)
		(void)cgroup_walk_tree_end(&handle);
	if (r < 0)
		return r;
	return q == ECGEOF ? 0 : from_libcgroup(q);
}

int cgroup_walk(const Hierarchy *h, const char *path, cgroup_walk_cb cb, void *userdata)
{
	auto_cgroup Cgroup *g = NULL;
	int r;

	/* libcgroup finds nothing in a group that is not there, and calls that success. */
	r = cgroup_open(h, path, &g);
	if (r < 0)
		return r;
	if (h->relocated)
		return walk_plain(h, path, cb, userdata);
	return walk_libcgroup(h, path, cb, userdata);
}
