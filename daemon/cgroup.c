/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <libcgroup.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "cgroup.h"
#include "log.h"

#define CONTROL_TEXT_MAX (64 * KIB)
#define OPEN_TEXT_MAX 4096 /* longer ones are read the long way */

/* --- Finding the hierarchy ------------------------------------------------------------------- */

/* True if word is one of the blank-separated words of text. */
static bool has_word(const char *text, const char *word)
{
	static const char blanks[] = " \t\n";
	size_t len = strlen(word);

	for (const char *s = text + strspn(text, blanks); *s; s += strspn(s, blanks)) {
		size_t n = strcspn(s, blanks);

		if (n == len && memcmp(s, word, n) == 0)
			return true;
		s += n;
	}
	return false;
}

/* The line of dmem in /proc/cgroups: name, v1 hierarchy (0: none), number of groups, enabled (0,
 * 1). */
static bool find_dmem_line(const char *cgroups, bool *ret_on_v1, bool *ret_enabled)
{
	for (const char *line = cgroups; line; line = strchr(line, '\n')) {
		const char *rest;

		line += *line == '\n';
		rest = startswith(line, "dmem\t");
		if (!rest)
			continue;
		*ret_on_v1 = rest[0] != '0';
		*ret_enabled = strchrnul(rest, '\n')[-1] != '0';
		return true;
	}
	return false;
}

/* Which kinds of hierarchy are mounted. A named v1 hierarchy carries no controller. */
static void scan_mounts(const char *mounts, bool *ret_v2, bool *ret_v1)
{
	auto_fclose FILE *f = fmemopen((char *)mounts, strlen(mounts), "r");
	char buf[4096];
	struct mntent m;

	*ret_v2 = *ret_v1 = false;
	while (f && getmntent_r(f, &m, buf, sizeof(buf))) {
		if (streq(m.mnt_type, "cgroup2"))
			*ret_v2 = true;
		else if (streq(m.mnt_type, "cgroup") && !strstr(m.mnt_opts, "name="))
			*ret_v1 = true;
	}
}

const char *hierarchy_explain(const char *mounts, const char *cgroups)
{
	bool v2, v1, known, on_v1 = false, enabled = false;

	scan_mounts(mounts, &v2, &v1);
	known = find_dmem_line(cgroups, &on_v1, &enabled);
	if (!v2)
		return v1 ? "the control groups are legacy ones (v1), and only cgroup2 is supported"
			  : "no control group hierarchy (cgroup2) is mounted";
	if (!known)
		return v1 ? "the kernel has no dmem controller (CONFIG_CGROUP_DMEM), and the "
			    "control groups are a hybrid of v1 and v2"
			  : "the kernel has no dmem controller (CONFIG_CGROUP_DMEM, Linux 6.14 or "
			    "later)";
	if (!enabled)
		return "the dmem controller is switched off on the kernel's command line "
		       "(cgroup_disable=)";
	if (on_v1)
		return "the dmem controller is bound to a legacy (v1) hierarchy";
	return "the dmem controller is not handed down to this part of the hierarchy "
	       "(a container?)";
}

static const char *explain_running_system(void)
{
	auto_free char *mounts = NULL, *cgroups = NULL;

	if (read_file_at(AT_FDCWD, "/proc/self/mounts", 4 * MIB, &mounts, NULL) < 0)
		return "/proc/self/mounts cannot be read";
	if (read_file_at(AT_FDCWD, "/proc/cgroups", CONTROL_TEXT_MAX, &cgroups, NULL) < 0)
		return "the kernel has no control groups";
	return hierarchy_explain(mounts, cgroups);
}

/* libcgroup's own logger prints to stdout. */
_printf_(3, 0)
static void log_libcgroup(_unused_ void *userdata, _unused_ int level, const char *format,
			  va_list ap)
{
	auto_free char *text = NULL;

	if (vasprintf(&text, format, ap) < 0) {
		text = NULL;
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	log_debug("libcgroup: %s", text);
}

/* The mount point of the hierarchy with dmem, or NULL and the reason. */
static char *find_mount_point(const char **ret_reason)
{
	auto_free char *path = NULL;
	struct statfs fs;
	int r;

	cgroup_set_logger(log_libcgroup, CGROUP_LOG_WARNING, NULL);
	r = cgroup_init();
	if (r == 0)
		r = cgroup_get_subsys_mount_point("dmem", &path);
	if (r != 0) {
		log_debug("libcgroup finds no dmem controller: %s", cgroup_strerror(r));
		*ret_reason = explain_running_system();
		return NULL;
	}
	if (statfs(path, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC) {
		*ret_reason = "the dmem controller is bound to a legacy (v1) hierarchy";
		return NULL;
	}
	return TAKE_PTR(path);
}

static int check_relocated(int root_fd, const char **ret_reason)
{
	auto_free char *text = NULL;
	int r;

	r = read_file_at(root_fd, "cgroup.controllers", CONTROL_TEXT_MAX, &text, NULL);
	if (r == -ENOENT) {
		*ret_reason = "there is no cgroup2 hierarchy below the given root";
		return -EOPNOTSUPP;
	}
	if (r < 0)
		return r;
	if (!has_word(text, "dmem")) {
		*ret_reason = "the hierarchy below the given root has no dmem controller";
		return -EOPNOTSUPP;
	}
	return 0;
}

int hierarchy_open(const Roots *roots, Hierarchy *ret, const char **ret_reason)
{
	auto_hierarchy Hierarchy h = { .root_fd = -EBADF, .relocated = roots->relocated };
	int r;

	if (h.relocated) {
		h.mount_point = strdup(roots->cgroup);
		if (!h.mount_point)
			return -ENOMEM;
	} else {
		h.mount_point = find_mount_point(ret_reason);
		if (!h.mount_point)
			return -EOPNOTSUPP;
	}
	h.root_fd = open(h.mount_point, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (h.root_fd < 0 && errno == ENOENT) {
		*ret_reason = "there is no cgroup2 hierarchy below the given root";
		return -EOPNOTSUPP;
	}
	if (h.root_fd < 0)
		return -errno;
	if (h.relocated) {
		r = check_relocated(h.root_fd, ret_reason);
		if (r < 0)
			return r;
	}
	*ret = h;
	h = (Hierarchy){ .root_fd = -EBADF };
	return 0;
}

void hierarchy_done(Hierarchy *h)
{
	free(h->mount_point);
	close_fd(h->root_fd);
	*h = (Hierarchy){ .root_fd = -EBADF };
}

/* --- One group ------------------------------------------------------------------------------- */

int cgroup_open(const Hierarchy *h, const char *path, Cgroup **ret)
{
	auto_cgroup Cgroup *g = NULL;
	struct stat st;
	int r;

	r = cgroup_path_check(path);
	if (r < 0)
		return r;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->dir_fd = g->current_fd = -EBADF;
	for (DmemLimit l = 0; l < _DMEM_LIMIT_MAX; l++)
		g->limit_fds[l] = -EBADF;
	g->path = strdup(path);
	if (!g->path)
		return -ENOMEM;
	g->dir_fd = openat(h->root_fd, path[1] ? path + 1 : ".",
			   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (g->dir_fd < 0)
		return -errno;
	if (fstat(g->dir_fd, &st) < 0)
		return -errno;
	g->inode = st.st_ino;
	*ret = TAKE_PTR(g);
	return 0;
}

Cgroup *cgroup_close(Cgroup *g)
{
	if (!g)
		return NULL;
	free(g->path);
	for (DmemLimit l = 0; l < _DMEM_LIMIT_MAX; l++)
		close_fd(g->limit_fds[l]);
	close_fd(g->current_fd);
	close_fd(g->dir_fd);
	free(g);
	return NULL;
}

/* A missing file means that the group is gone, or that it is there without that file: every group
 * that lives has cgroup.procs. */
static int check_gone(const Cgroup *g, int r)
{
	if (r == -ENOENT && faccessat(g->dir_fd, "cgroup.procs", F_OK, 0) >= 0)
		return -EOPNOTSUPP;
	return r;
}

static int read_control(const Cgroup *g, const char *file, char **ret)
{
	return check_gone(g, read_piece_at(g->dir_fd, file, DMEM_TEXT_MAX, ret));
}

int cgroup_read_table(const Cgroup *g, const char *file, DmemTable *ret)
{
	auto_free char *text = NULL;
	int r;

	r = read_control(g, file, &text);
	if (r < 0)
		return r;
	return dmem_parse(text, ret);
}

/* From a file that is open. The kernel makes its text in one piece, so one read gets all that fits. */
static bool read_open(int fd, char ret[static OPEN_TEXT_MAX])
{
	ssize_t k = fd < 0 ? -1 : pread(fd, ret, OPEN_TEXT_MAX, 0);

	if (k < 0 || k == OPEN_TEXT_MAX)
		return false;
	ret[k] = '\0';
	return true;
}

int cgroup_read_current(Cgroup *g, DmemTable *ret)
{
	char buf[OPEN_TEXT_MAX];

	if (g->current_fd < 0)
		g->current_fd = openat(g->dir_fd, "dmem.current", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	if (read_open(g->current_fd, buf))
		return dmem_parse(buf, ret);
	/* ENODEV from an old one: dmem was switched off meanwhile, and may be on again. */
	g->current_fd = close_fd(g->current_fd);
	return cgroup_read_table(g, "dmem.current", ret);
}

int cgroup_open_events(const Cgroup *g)
{
	int fd = openat(g->dir_fd, "dmem.events", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);

	return fd < 0 ? check_gone(g, -errno) : fd;
}

int cgroup_read_events(int fd, char **ret)
{
	auto_free char *text = malloc(DMEM_TEXT_MAX + 1);
	ssize_t k;

	if (!text)
		return -ENOMEM;
	k = pread(fd, text, DMEM_TEXT_MAX, 0);
	if (k < 0)
		return -errno;
	text[k] = '\0';
	*ret = TAKE_PTR(text);
	return 0;
}

int cgroup_get_events(const Cgroup *g, char **ret)
{
	return read_control(g, "dmem.events", ret);
}

int cgroup_get_limit(const Cgroup *g, DmemLimit limit, const char *region, uint64_t *ret)
{
	auto_free char *text = NULL;
	char buf[OPEN_TEXT_MAX];
	int r;

	if (read_open(g->limit_fds[limit], buf))
		return dmem_find(buf, region, ret);
	r = read_control(g, dmem_limit_to_file(limit), &text);
	if (r < 0)
		return r;
	return dmem_find(text, region, ret);
}

int cgroup_is_populated(const Cgroup *g)
{
	auto_free char *text = NULL;
	int r;

	r = read_control(g, "cgroup.events", &text);
	if (r == -EOPNOTSUPP && streq(g->path, "/"))
		return 1; /* only the root has no such file, and it is never empty */
	if (r < 0)
		return r;
	if (startswith(text, "populated 1\n") || strstr(text, "\npopulated 1\n"))
		return 1;
	if (startswith(text, "populated 0\n") || strstr(text, "\npopulated 0\n"))
		return 0;
	return -EBADMSG;
}

int cgroup_has_dmem_children(const Cgroup *g)
{
	auto_free char *text = NULL;
	int r;

	r = read_control(g, "cgroup.subtree_control", &text);
	if (r < 0)
		return r;
	return has_word(text, "dmem");
}

/* --- Writing --------------------------------------------------------------------------------- */

static int open_limit(const Cgroup *g, DmemLimit limit)
{
	/* Since 7.3 a lowered dmem.max evicts before write(2) returns, unless with O_NONBLOCK. */
	int fd = openat(g->dir_fd, dmem_limit_to_file(limit),
			O_RDWR | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | (limit == DMEM_MAX ? O_NONBLOCK : 0));

	return fd < 0 ? -errno : fd;
}

/* The file stays open, since the values of one group change again and again. -ENODEV from an old one: dmem
 * was switched off meanwhile, and may be on again. */
static int write_limit(Cgroup *g, DmemLimit limit, const char *line)
{
	int *fd = &g->limit_fds[limit];
	size_t size = strlen(line);
	bool old;
	ssize_t k;

	do {
		old = *fd >= 0;
		if (!old)
			*fd = open_limit(g, limit);
		if (*fd < 0)
			return *fd;
		do
			k = pwrite(*fd, line, size, 0);
		while (k < 0 && errno == EINTR);
		if (k < 0 && errno == ENODEV)
			*fd = close_fd(*fd);
	} while (old && *fd < 0);
	if (k < 0)
		return -errno;
	return (size_t)k == size ? 0 : -EIO;
}

int cgroup_set_limit(Cgroup *g, DmemLimit limit, const char *region, uint64_t value)
{
	char line[DMEM_LINE_MAX];
	uint64_t now;
	int r, q;

	r = dmem_format(line, region, value);
	if (r < 0)
		return r;
	r = check_gone(g, write_limit(g, limit, line));
	if (r != -EINVAL)
		return r;
	/* So says the kernel of a region that it does not know. */
	q = cgroup_get_limit(g, limit, region, &now);
	return q < 0 ? q : r;
}

int cgroup_check_limit(const Cgroup *g, DmemLimit limit, const char *region, uint64_t value)
{
	uint64_t now;
	int r = cgroup_get_limit(g, limit, region, &now);

	if (r < 0)
		return r;
	return now == value ? 0 : -ESTALE;
}

int cgroup_set_dmem_children(const Cgroup *g, bool enable)
{
	int r;

	/* ENOENT also means that the group itself has no dmem to hand down. */
	r = write_once_at(g->dir_fd, "cgroup.subtree_control", enable ? "+dmem" : "-dmem", 0);
	return check_gone(g, r);
}

int cgroup_get_owner(const Cgroup *g, FileOwner *ret)
{
	struct stat st;

	if (fstatat(g->dir_fd, dmem_limit_to_file(DMEM_LOW), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return check_gone(g, -errno);
	*ret = (FileOwner){ st.st_uid, st.st_gid, st.st_mode & 07777 };
	return 0;
}

int cgroup_set_owner(const Cgroup *g, const FileOwner *owner)
{
	for (DmemLimit l = 0; l < _DMEM_LIMIT_MAX; l++) {
		const char *file = dmem_limit_to_file(l);

		if (fchownat(g->dir_fd, file, owner->uid, owner->gid, AT_SYMLINK_NOFOLLOW) < 0 ||
		    fchmodat(g->dir_fd, file, owner->mode, 0) < 0)
			return check_gone(g, -errno);
	}
	return 0;
}

/* --- Paths: pure text ------------------------------------------------------------------------ */

unsigned cgroup_path_depth(const char *path)
{
	unsigned n = 0;

	for (const char *p = path; *p; p++)
		n += p[0] == '/' && p[1] && p[1] != '/';
	return n;
}

int cgroup_path_check(const char *path)
{
	size_t size = strlen(path);

	if (path[0] != '/' || size >= PATH_MAX)
		return -EINVAL;
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)path[i] < ' ' || path[i] == 0x7f)
			return -EINVAL;
	if (size == 1)
		return 0;
	for (const char *p = path; *p;) {
		size_t n = strcspn(++p, "/");

		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return -EINVAL;
		p += n;
	}
	return 0;
}

int cgroup_path_parent(const char *path, char **ret)
{
	const char *slash = strrchr(path, '/');
	char *parent;

	if (!slash || !slash[1])
		return -ENOENT;
	parent = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	if (!parent)
		return -ENOMEM;
	*ret = parent;
	return 0;
}

bool cgroup_path_is_below(const char *path, const char *ancestor)
{
	const char *rest;

	if (streq(ancestor, "/"))
		return path[0] == '/';
	rest = startswith(path, ancestor);
	return rest && (!*rest || *rest == '/');
}
