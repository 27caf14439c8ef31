/* SPDX-License-Identifier: MIT */
/* Three kinds of trees: plain files in a directory for what is only read; an emulated cgroup2 tree
 * (CGROUPEMU=, the program) for what the kernel answers; and, in a mount namespace of our own where
 * /proc/self/mounts names them, both a directory and the real cgroup2 hierarchy for libcgroup. */
#include <fcntl.h>
#include <libcgroup.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "cgroup.h"
#include "remove-tree.h"

#define R0 "drm/0000:03:00.0/vram0"
#define R1 "drm/0000:0c:00.0/vram0"

typedef struct Tree {
	char root[32];
	pid_t emulator; /* 0: plain files */
	Hierarchy h;
} Tree;

/* --- Trees ----------------------------------------------------------------------------------- */

static char *in_tree(const Tree *t, const char *path)
{
	static char buf[4][PATH_MAX];
	static unsigned next;
	char *s = buf[next++ % ARRAY_SIZE(buf)];

	(void)snprintf(s, sizeof(buf[0]), "%s/%s", t->root, path);
	return s;
}

static void put(const Tree *t, const char *path, const char *text)
{
	int flags = t->emulator ? O_WRONLY : O_WRONLY | O_CREAT | O_TRUNC;
	auto_close int fd = open(in_tree(t, path), flags | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void make(const Tree *t, const char *path)
{
	assert_int_equal(mkdir(in_tree(t, path), 0755), 0);
}

static int attach(Tree *t)
{
	Roots roots = { .cgroup = t->root, .relocated = true };
	const char *reason = NULL;

	return hierarchy_open(&roots, &t->h, &reason);
}

static Tree *new_tree(void)
{
	Tree *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	strcpy(t->root, "/tmp/test-cgroup-XXXXXX");
	t->h.root_fd = -EBADF;
	return mkdtemp(t->root) ? t : NULL;
}

/* A group of plain files, with processes. */
static void plain_group(const Tree *t, const char *path, const char *procs)
{
	char name[PATH_MAX];

	if (*path)
		make(t, path);
	(void)snprintf(name, sizeof(name), "%s/cgroup.procs", path);
	put(t, name, procs);
	(void)snprintf(name, sizeof(name), "%s/cgroup.controllers", path);
	put(t, name, "cpu memory dmem\n");
	if (!*path)
		return;
	(void)snprintf(name, sizeof(name), "%s/cgroup.type", path);
	put(t, name, "domain\n");
	(void)snprintf(name, sizeof(name), "%s/dmem.low", path);
	put(t, name, R0 " 4096\n" R1 " 0\n");
}

static int setup_plain(void **state)
{
	Tree *t = new_tree();

	if (!t)
		return -1;
	plain_group(t, "", "");
	plain_group(t, "user.slice", "");
	plain_group(t, "user.slice/b.scope", "30\n7\n1000\n");
	plain_group(t, "user.slice/a.scope", "");
	plain_group(t, "user.slice/a.scope/inner", "5\n");
	plain_group(t, "system.slice", "12");
	*state = t;
	return attach(t);
}

static int setup_emulated(void **state)
{
	const char *program = getenv("CGROUPEMU");
	Tree *t;
	int fds[2];
	char line[64];

	*state = NULL;
	if (!program)
		return 0; /* need_emulator() skips the test */
	t = new_tree();
	if (!t || pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	t->emulator = fork();
	if (t->emulator == 0) {
		(void)dup2(fds[1], STDOUT_FILENO);
		execl(program, program, "--region", R0 "=8589934592", "--region", R1 "=1073741824",
		      t->root, NULL);
		_exit(127);
	}
	close_fd(fds[1]);
	if (read(fds[0], line, sizeof(line)) <= 0) {
		(void)fprintf(stderr, "%s does not start\n", program);
		return -1;
	}
	close_fd(fds[0]);
	*state = t;
	return attach(t);
}

static Tree *need_emulator(void **state)
{
	if (!*state)
		skip();
	return *state;
}

static int teardown(void **state)
{
	Tree *t = *state;

	if (!t)
		return 0;
	hierarchy_done(&t->h);
	if (t->emulator > 0) {
		(void)kill(t->emulator, SIGTERM);
		(void)waitpid(t->emulator, NULL, 0);
	}
	remove_tree(t->root);
	free(t);
	return 0;
}

static Cgroup *group(const Tree *t, const char *path)
{
	Cgroup *g = NULL;

	assert_int_equal(cgroup_open(&t->h, path, &g), 0);
	assert_string_equal(g->path, path);
	return g;
}

/* --- Paths ----------------------------------------------------------------------------------- */

static void test_path_check(_unused_ void **state)
{
	static const char *const good[] = { "/", "/a", "/a/b", "/a b", "/.hidden", "/...",
					    "/a\\x2db", "/\xc3\xa4" };
	static const char *const bad[] = { "", "a", "a/b", "//", "/a/", "/a//b", "/.", "/..",
					   "/a/..", "/../a", "/./a", "/a/./b", "/a\n",
					   "/\x01a", "/a\x7f" };
	char path[PATH_MAX + 1];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (cgroup_path_check(good[i]) != 0)
			fail_msg("\"%s\" is refused", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (cgroup_path_check(bad[i]) != -EINVAL)
			fail_msg("\"%s\" is taken", bad[i]);
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[PATH_MAX] = '\0';
	assert_int_equal(cgroup_path_check(path), -EINVAL);
	path[PATH_MAX - 1] = '\0';
	assert_int_equal(cgroup_path_check(path), 0);
}

static void test_path_parts(_unused_ void **state)
{
	static const struct {
		const char *path;
		unsigned depth;
		const char *parent;
	} cases[] = {
		{ "/", 0, NULL },
		{ "/a", 1, "/" },
		{ "/a/b", 2, "/a" },
		{ "/aa/bb/cc", 3, "/aa/bb" },
	};
	static const struct {
		const char *path, *ancestor;
		bool below;
	} pairs[] = {
		{ "/", "/", true },        { "/a", "/", true },     { "/a/b", "/a", true },
		{ "/a", "/a", true },      { "/ab", "/a", false },  { "/a", "/a/b", false },
		{ "/b/a", "/a", false },   { "/", "/a", false },    { "/a-b/c", "/a", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_free char *parent = NULL;
		int r = cgroup_path_parent(cases[i].path, &parent);

		assert_int_equal(cgroup_path_depth(cases[i].path), cases[i].depth);
		assert_int_equal(r, cases[i].parent ? 0 : -ENOENT);
		if (cases[i].parent)
			assert_string_equal(parent, cases[i].parent);
	}
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		if (cgroup_path_is_below(pairs[i].path, pairs[i].ancestor) != pairs[i].below)
			fail_msg("%s, %s", pairs[i].path, pairs[i].ancestor);
}

/* --- The hierarchy --------------------------------------------------------------------------- */

#define V1_MEMORY "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
#define V1_NAMED "cgroup /sys/fs/cgroup/systemd cgroup rw,xattr,name=systemd 0 0\n"
#define V2 "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n"
#define OTHERS "tmpfs /sys/fs/cgroup tmpfs rw 0 0\nproc /proc proc rw 0 0\n"
#define COLUMNS "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t0\t9\t1\n"

static void test_explain(_unused_ void **state)
{
	static const struct {
		const char *mounts, *cgroups, *says;
	} cases[] = {
		{ "", COLUMNS "dmem\t0\t1\t1\n", "is mounted" },
		{ OTHERS V1_NAMED, COLUMNS, "is mounted" },
		{ OTHERS V1_MEMORY, COLUMNS "dmem\t0\t1\t1\n", "legacy ones" },
		{ V2, COLUMNS, "CONFIG_CGROUP_DMEM, Linux" },
		{ V2 V1_NAMED, COLUMNS, "CONFIG_CGROUP_DMEM, Linux" },
		{ OTHERS V1_MEMORY V2, COLUMNS, "hybrid" },
		{ V2, COLUMNS "xdmem\t0\t1\t1\ndmemx\t0\t1\t1\n", "CONFIG_CGROUP_DMEM, Linux" },
		{ V2, COLUMNS "dmem\t0\t1\t0\n", "command line" },
		{ V1_MEMORY V2, COLUMNS "dmem\t7\t1\t1\n", "bound to a legacy" },
		{ V2, COLUMNS "dmem\t0\t1\t1", "container" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *reason = hierarchy_explain(cases[i].mounts, cases[i].cgroups);

		if (!strstr(reason, cases[i].says))
			fail_msg("%zu: %s", i, reason);
	}
}

static void test_open_relocated(void **state)
{
	Tree *t = *state;
	Roots roots = { .cgroup = t->root, .relocated = true };
	Hierarchy h = { .root_fd = 12345 };
	const char *reason = NULL;

	assert_string_equal(t->h.mount_point, t->root);
	assert_true(t->h.relocated);
	assert_true(t->h.root_fd >= 0);
	assert_true(fcntl(t->h.root_fd, F_GETFD) & FD_CLOEXEC);

	put(t, "cgroup.controllers", "cpu dmemory\n");
	assert_int_equal(hierarchy_open(&roots, &h, &reason), -EOPNOTSUPP);
	assert_non_null(strstr(reason, "no dmem controller"));
	assert_int_equal(unlink(in_tree(t, "cgroup.controllers")), 0);
	assert_int_equal(hierarchy_open(&roots, &h, &reason), -EOPNOTSUPP);
	assert_non_null(strstr(reason, "no cgroup2 hierarchy"));
	roots.cgroup = (char *)"/nonexistent/cgroup";
	reason = NULL;
	assert_int_equal(hierarchy_open(&roots, &h, &reason), -EOPNOTSUPP);
	assert_non_null(reason);
	roots.cgroup = in_tree(t, "cgroup.procs");
	assert_int_equal(hierarchy_open(&roots, &h, &reason), -ENOTDIR);
	assert_int_equal(h.root_fd, 12345);
}

/* Whatever this machine is: either it has dmem, or the reason is the one its files give. */
static void test_open_running_system(_unused_ void **state)
{
	Roots roots = { .cgroup = (char *)"/nonexistent" };
	Hierarchy h = { .root_fd = -EBADF };
	auto_free char *mounts = NULL, *cgroups = NULL;
	const char *reason = NULL;
	int r = hierarchy_open(&roots, &h, &reason);

	if (r == 0) {
		assert_int_equal(faccessat(h.root_fd, "dmem.capacity", F_OK, 0), 0);
		hierarchy_done(&h);
		return;
	}
	assert_int_equal(r, -EOPNOTSUPP);
	assert_int_equal(read_file_at(AT_FDCWD, "/proc/self/mounts", MIB, &mounts, NULL), 0);
	assert_int_equal(read_file_at(AT_FDCWD, "/proc/cgroups", MIB, &cgroups, NULL), 0);
	assert_string_equal(reason, hierarchy_explain(mounts, cgroups));
}

/* --- Reading --------------------------------------------------------------------------------- */

static void test_open_group(void **state)
{
	static const char *const bad[] = { "", "user.slice", "/user.slice/..", "/..",
					   "//user.slice" };
	const Tree *t = *state;
	auto_cgroup Cgroup *root = group(t, "/"), *g = group(t, "/user.slice");
	Cgroup *none = NULL;
	struct stat st;

	assert_int_equal(stat(in_tree(t, "user.slice"), &st), 0);
	assert_int_equal(g->inode, st.st_ino);
	assert_int_equal(stat(t->root, &st), 0);
	assert_int_equal(root->inode, st.st_ino);
	assert_int_equal(cgroup_open(&t->h, "/nobody", &none), -ENOENT);
	assert_int_equal(cgroup_open(&t->h, "/user.slice/cgroup.procs", &none), -ENOTDIR);
	assert_int_equal(symlink("user.slice", in_tree(t, "link")), 0);
	assert_int_equal(cgroup_open(&t->h, "/link", &none), -ENOTDIR);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(cgroup_open(&t->h, bad[i], &none), -EINVAL);
	assert_null(none);
}

static void test_read(void **state)
{
	const Tree *t = *state;
	auto_cgroup Cgroup *root = group(t, "/"), *g = group(t, "/user.slice");
	auto_dmem_table DmemTable table = {};
	uint64_t v = 77;

	assert_int_equal(cgroup_read_table(g, "dmem.low", &table), 0);
	assert_int_equal(table.n, 2);
	assert_string_equal(table.entries[1].region, R1);
	assert_int_equal(cgroup_get_limit(g, DMEM_LOW, R0, &v), 0);
	assert_int_equal(v, 4096);
	assert_int_equal(cgroup_get_limit(g, DMEM_LOW, "drm/0000:03:00.0/vram", &v), -ENXIO);
	/* The group lives: that is not "gone". */
	assert_int_equal(cgroup_get_limit(g, DMEM_MIN, R0, &v), -EOPNOTSUPP);
	assert_int_equal(cgroup_get_limit(root, DMEM_LOW, R0, &v), -EOPNOTSUPP);
	assert_int_equal(v, 4096);
	put(t, "user.slice/dmem.low", "broken\n");
	assert_int_equal(cgroup_get_limit(g, DMEM_LOW, "broken", &v), -EBADMSG);
	assert_int_equal(cgroup_read_table(g, "dmem.low", &table), -EBADMSG);
	assert_int_equal(table.n, 2);

	assert_int_equal(cgroup_is_populated(root), 1);
	assert_int_equal(cgroup_is_populated(g), -EOPNOTSUPP);
	put(t, "user.slice/cgroup.events", "populated 1\nfrozen 0\n");
	assert_int_equal(cgroup_is_populated(g), 1);
	put(t, "user.slice/cgroup.events", "frozen 1\npopulated 0\n");
	assert_int_equal(cgroup_is_populated(g), 0);
	put(t, "user.slice/cgroup.events", "frozen 1\n");
	assert_int_equal(cgroup_is_populated(g), -EBADMSG);

	put(t, "user.slice/cgroup.subtree_control", "cpu dmem memory\n");
	assert_int_equal(cgroup_has_dmem_children(g), 1);
	put(t, "user.slice/cgroup.subtree_control", "d dme xdmem dmemx\n");
	assert_int_equal(cgroup_has_dmem_children(g), 0);
	put(t, "user.slice/cgroup.subtree_control", "\n");
	assert_int_equal(cgroup_has_dmem_children(g), 0);
}

/* The fd stays with its group when another one takes the path. */
static void test_fd_survives(void **state)
{
	const Tree *t = *state;
	auto_cgroup Cgroup *old = group(t, "/system.slice"), *new = NULL;
	uint64_t v;

	assert_int_equal(rename(in_tree(t, "system.slice"), in_tree(t, "moved")), 0);
	plain_group(t, "system.slice", "");
	put(t, "moved/dmem.low", R0 " 1\n");
	put(t, "system.slice/dmem.low", R0 " 2\n");
	assert_int_equal(cgroup_get_limit(old, DMEM_LOW, R0, &v), 0);
	assert_int_equal(v, 1);
	new = group(t, "/system.slice");
	assert_int_equal(cgroup_get_limit(new, DMEM_LOW, R0, &v), 0);
	assert_int_equal(v, 2);
	assert_true(old->inode != new->inode);
}

/* --- Listing --------------------------------------------------------------------------------- */

static void check_listing(const Hierarchy *h)
{
	auto_free pid_t *pids = NULL, *one = NULL, *none = NULL;
	auto_strv char **names = NULL, **leaf = NULL;
	char **names_none = NULL;
	size_t n = 99;

	assert_int_equal(cgroup_procs(h, "/user.slice/b.scope", &pids, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(pids[0], 7);
	assert_int_equal(pids[1], 30);
	assert_int_equal(pids[2], 1000);
	assert_int_equal(cgroup_procs(h, "/system.slice", &one, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(one[0], 12);
	assert_int_equal(cgroup_procs(h, "/user.slice", &none, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(cgroup_procs(h, "/nobody", &none, &n), -ENOENT);
	assert_int_equal(cgroup_procs(h, "nobody", &none, &n), -EINVAL);

	assert_int_equal(cgroup_children(h, "/user.slice", &names), 0);
	assert_string_equal(names[0], "a.scope");
	assert_string_equal(names[1], "b.scope");
	assert_null(names[2]);
	assert_int_equal(cgroup_children(h, "/system.slice", &leaf), 0);
	assert_null(leaf[0]);
	assert_int_equal(cgroup_children(h, "/nobody", &names_none), -ENOENT);
}

static void check_threaded(const Tree *t, const Hierarchy *h)
{
	pid_t *pids = NULL;
	size_t n;

	put(t, "system.slice/cgroup.type", "threaded\n");
	assert_int_equal(cgroup_procs(h, "/system.slice", &pids, &n), -EOPNOTSUPP);
	put(t, "system.slice/cgroup.type", "domain threaded\n");
	assert_int_equal(cgroup_procs(h, "/system.slice", &pids, &n), 0);
	free(pids);
}

static void test_listing(void **state)
{
	static const char *const bad[] = { "7\nx\n", "-7\n", "4294967295\n", "7 8\n" };
	const Tree *t = *state;
	pid_t *pids = NULL;
	size_t n;

	check_listing(&t->h);
	check_threaded(t, &t->h);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		put(t, "system.slice/cgroup.procs", bad[i]);
		assert_int_equal(cgroup_procs(&t->h, "/system.slice", &pids, &n), -EBADMSG);
	}
	assert_null(pids);
}

/* --- libcgroup ------------------------------------------------------------------------------- */

/* Puts text in the place of a file, for this process and its mount namespace only. */
static void cover(const Tree *t, const char *name, const char *text, const char *target)
{
	put(t, name, text);
	assert_int_equal(mount(in_tree(t, name), target, NULL, MS_BIND, NULL), 0);
}

static void own_mounts(void)
{
	static bool done;

	if (done)
		return;
	if (unshare(CLONE_NEWNS) < 0)
		skip(); /* not root */
	assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	done = true;
}

static void test_libcgroup_is_not_enough(void **state)
{
	Tree *t = *state;
	Roots roots = { .cgroup = (char *)"" };
	char mounts[128];
	Hierarchy h;
	const char *reason = NULL;

	own_mounts();
	(void)snprintf(mounts, sizeof(mounts), "cgroup2 %s cgroup2 rw 0 0\n", t->root);
	cover(t, "mounts", mounts, "/proc/self/mounts");
	/* libcgroup believes in it; the file system's own word is another one. */
	assert_int_equal(hierarchy_open(&roots, &h, &reason), -EOPNOTSUPP);
	assert_non_null(strstr(reason, "legacy"));
	assert_int_equal(umount2("/proc/self/mounts", MNT_DETACH), 0);
}

/* The mount point of a real cgroup2 file system, or NULL. */
static char *find_real_cgroup2(void)
{
	static char path[PATH_MAX];
	auto_fclose FILE *f = fopen("/proc/self/mounts", "re");
	char line[PATH_MAX + 256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %4095s cgroup2 ", path) == 1 && strstr(line, " cgroup2 "))
			return path;
	return NULL;
}

/* The kernel's own hierarchy, made to look as if it had dmem. */
static void test_libcgroup_opens(void **state)
{
	Tree *t = *state;
	Roots roots = { .cgroup = (char *)"/nonexistent" };
	auto_hierarchy Hierarchy h = { .root_fd = -EBADF };
	auto_free pid_t *pids = NULL;
	char controllers[PATH_MAX + 32], mounts[PATH_MAX + 64];
	const char *reason = NULL, *real = find_real_cgroup2();
	size_t n = 0;
	int r;

	if (!real)
		skip();
	own_mounts();
	(void)snprintf(mounts, sizeof(mounts), "cgroup2 %s cgroup2 rw 0 0\n", real);
	(void)snprintf(controllers, sizeof(controllers), "%s/cgroup.controllers", real);
	cover(t, "controllers", "memory dmem\n", controllers);
	cover(t, "mounts", mounts, "/proc/self/mounts");
	r = hierarchy_open(&roots, &h, &reason);
	assert_int_equal(umount2("/proc/self/mounts", MNT_DETACH), 0);
	assert_int_equal(umount2(controllers, MNT_DETACH), 0);
	assert_int_equal(r, 0);
	assert_string_equal(h.mount_point, real);
	assert_false(h.relocated);
	assert_int_equal(cgroup_procs(&h, "/", &pids, &n), 0);
	for (size_t i = 1; i < n; i++)
		assert_true(pids[i - 1] <= pids[i]);
}

/* --- What the kernel answers ----------------------------------------------------------------- */

static void enable(const Tree *t, const char *path)
{
	auto_cgroup Cgroup *g = group(t, path);

	assert_int_equal(cgroup_set_dmem_children(g, true), 0);
	assert_int_equal(cgroup_has_dmem_children(g), 1);
}

static void test_set_limit(void **state)
{
	static const uint64_t values[] = { 0, 1, 4095, 4096, 8 * GIB, 64 * GIB, DMEM_UNLIMITED };
	Tree *t = need_emulator(state);
	auto_cgroup Cgroup *g = NULL, *root = NULL;
	uint64_t v;

	make(t, "a");
	enable(t, "/");
	g = group(t, "/a");
	root = group(t, "/");
	for (DmemLimit l = 0; l < _DMEM_LIMIT_MAX; l++)
		for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
			assert_int_equal(cgroup_set_limit(g, l, R0, values[i]), 0);
			assert_int_equal(cgroup_check_limit(g, l, R0, values[i]), 0);
			assert_int_equal(cgroup_check_limit(g, l, R0, values[i] ^ 1), -ESTALE);
			assert_int_equal(cgroup_get_limit(g, l, R0, &v), 0);
			assert_int_equal(v, values[i]);
			assert_int_equal(cgroup_get_limit(g, l, R1, &v), 0);
			assert_int_equal(v, dmem_limit_default(l));
		}
	/* Past the kernel's counter it becomes "max", which is not what was asked for. */
	assert_int_equal(cgroup_set_limit(g, DMEM_LOW, R0, UINT64_MAX - 1), 0);
	assert_int_equal(cgroup_check_limit(g, DMEM_LOW, R0, UINT64_MAX - 1), -ESTALE);
	assert_int_equal(cgroup_set_limit(g, DMEM_LOW, "drm/0000:03:00.0/vram", 1), -ENXIO);
	assert_int_equal(cgroup_set_limit(g, DMEM_LOW, R0 " 1\n" R1, 1), -EINVAL);
	assert_int_equal(cgroup_set_limit(g, DMEM_LOW, "", 1), -EINVAL);
	assert_int_equal(cgroup_set_limit(root, DMEM_LOW, R0, 1), -EOPNOTSUPP);

	put(t, "emu.control", "region - " R0);
	assert_int_equal(cgroup_get_limit(g, DMEM_LOW, R0, &v), -ENXIO);
	assert_int_equal(cgroup_set_limit(g, DMEM_LOW, R0, 1), -ENXIO);
	assert_int_equal(cgroup_check_limit(g, DMEM_LOW, R0, 1), -ENXIO);
	put(t, "emu.control", "region + " R0 " 8589934592");
	assert_int_equal(cgroup_get_limit(g, DMEM_LOW, R0, &v), 0);
	assert_int_equal(v, 0);
}

static void test_tables(void **state)
{
	Tree *t = need_emulator(state);
	auto_dmem_table DmemTable capacity = {}, current = {};
	auto_cgroup Cgroup *root = group(t, "/"), *g = NULL;

	assert_int_equal(cgroup_read_table(root, "dmem.capacity", &capacity), 0);
	assert_int_equal(capacity.n, 2);
	assert_string_equal(capacity.entries[0].region, R0);
	assert_int_equal(capacity.entries[0].value, 8 * GIB);
	make(t, "a");
	enable(t, "/");
	g = group(t, "/a");
	put(t, "emu.control", "charge /a " R1 " 3000");
	assert_int_equal(cgroup_read_table(g, "dmem.current", &current), 0);
	assert_int_equal(current.entries[0].value, 0);
	assert_int_equal(current.entries[1].value, 3000);
	assert_int_equal(cgroup_read_table(g, "dmem.capacity", &current), -EOPNOTSUPP);
	for (int i = 0; i < 2; i++) {
		auto_dmem_table DmemTable again = {};

		put(t, "emu.control", i == 0 ? "charge /a " R1 " 1000" : "charge /a " R1 " 2000");
		assert_int_equal(cgroup_read_current(g, &again), 0);
		assert_int_equal(again.entries[1].value, i == 0 ? 1000 : 2000);
	}
}

static void test_subtree_control(void **state)
{
	Tree *t = need_emulator(state);
	auto_cgroup Cgroup *root = group(t, "/"), *a = NULL, *b = NULL;
	auto_dmem_table DmemTable table = {};
	pid_t child;
	uint64_t v;
	char pid[16];

	make(t, "a");
	make(t, "a/b");
	a = group(t, "/a");
	b = group(t, "/a/b");
	assert_int_equal(cgroup_has_dmem_children(root), 0);
	assert_int_equal(cgroup_get_limit(b, DMEM_LOW, R0, &v), -EOPNOTSUPP);
	assert_int_equal(cgroup_set_limit(b, DMEM_LOW, R0, 1), -EOPNOTSUPP);
	/* Not before its parent has handed it down. */
	assert_int_equal(cgroup_set_dmem_children(a, true), -EOPNOTSUPP);
	enable(t, "/");
	enable(t, "/a");
	enable(t, "/a");
	assert_int_equal(cgroup_set_limit(b, DMEM_LOW, R0, 1), 0);
	assert_int_equal(cgroup_read_current(b, &table), 0);
	dmem_table_done(&table);
	assert_int_equal(cgroup_set_dmem_children(root, false), -EBUSY);
	assert_int_equal(cgroup_set_dmem_children(a, false), 0);
	assert_int_equal(cgroup_has_dmem_children(a), 0);
	assert_int_equal(cgroup_set_limit(b, DMEM_LOW, R0, 1), -EOPNOTSUPP);
	assert_int_equal(cgroup_read_current(b, &table), -EOPNOTSUPP);
	/* The file that was open then is not the one that there is now. */
	enable(t, "/a");
	put(t, "emu.control", "charge /a/b " R0 " 7");
	assert_int_equal(cgroup_read_current(b, &table), 0);
	assert_int_equal(table.entries[0].value, 7);
	assert_int_equal(cgroup_set_dmem_children(a, false), 0);

	child = fork();
	if (child == 0) {
		for (;;)
			pause();
	}
	(void)snprintf(pid, sizeof(pid), "%d", child);
	assert_int_equal(cgroup_is_populated(a), 0);
	put(t, "a/cgroup.procs", pid);
	assert_int_equal(cgroup_is_populated(a), 1);
	assert_int_equal(cgroup_set_dmem_children(a, true), -EBUSY);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
}

static void test_gone(void **state)
{
	Tree *t = need_emulator(state);
	auto_cgroup Cgroup *old = NULL, *new = NULL;
	FileOwner owner = {};
	DmemTable table = {};
	uint64_t v;

	make(t, "a");
	enable(t, "/");
	old = group(t, "/a");
	assert_int_equal(rmdir(in_tree(t, "a")), 0);
	assert_true(cgroup_is_gone(cgroup_get_limit(old, DMEM_LOW, R0, &v)));
	assert_true(cgroup_is_gone(cgroup_set_limit(old, DMEM_LOW, R0, 1)));
	assert_true(cgroup_is_gone(cgroup_set_limit(old, DMEM_MAX, R0, 1)));
	assert_true(cgroup_is_gone(cgroup_read_table(old, "dmem.current", &table)));
	assert_true(cgroup_is_gone(cgroup_is_populated(old)));
	assert_true(cgroup_is_gone(cgroup_has_dmem_children(old)));
	assert_true(cgroup_is_gone(cgroup_set_dmem_children(old, true)));
	assert_true(cgroup_is_gone(cgroup_get_owner(old, &owner)));
	assert_true(cgroup_is_gone(cgroup_set_owner(old, &owner)));

	make(t, "a");
	new = group(t, "/a");
	assert_true(new->inode != old->inode);
	assert_int_equal(cgroup_set_limit(new, DMEM_LOW, R0, 5), 0);
	assert_true(cgroup_is_gone(cgroup_set_limit(old, DMEM_LOW, R0, 6)));
	assert_int_equal(cgroup_get_limit(new, DMEM_LOW, R0, &v), 0);
	assert_int_equal(v, 5);
}

static void test_owner(void **state)
{
	static const char *const files[] = { "a/dmem.min", "a/dmem.low", "a/dmem.max" };
	Tree *t = need_emulator(state);
	auto_cgroup Cgroup *g = NULL;
	FileOwner before, now, deck = { 1000, 1001, 0600 };
	struct stat st;

	make(t, "a");
	g = group(t, "/a");
	assert_int_equal(cgroup_get_owner(g, &before), -EOPNOTSUPP);
	assert_int_equal(cgroup_set_owner(g, &deck), -EOPNOTSUPP);
	enable(t, "/");
	assert_int_equal(cgroup_get_owner(g, &before), 0);
	assert_int_equal(before.uid, getuid());
	assert_int_equal(before.mode, 0644);
	if (getuid() != 0)
		skip();
	assert_int_equal(cgroup_set_owner(g, &deck), 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		assert_int_equal(stat(in_tree(t, files[i]), &st), 0);
		assert_int_equal(st.st_uid, 1000);
		assert_int_equal(st.st_gid, 1001);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
	assert_int_equal(stat(in_tree(t, "a/dmem.current"), &st), 0);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(cgroup_set_owner(g, &before), 0);
	assert_int_equal(cgroup_get_owner(g, &now), 0);
	assert_memory_equal(&now, &before, sizeof(now));
}

#define PLAIN(f) cmocka_unit_test_setup_teardown(f, setup_plain, teardown)
#define EMULATED(f) cmocka_unit_test_setup_teardown(f, setup_emulated, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path_check),
		cmocka_unit_test(test_path_parts),
		cmocka_unit_test(test_explain),
		cmocka_unit_test(test_open_running_system),
		PLAIN(test_open_relocated),
		PLAIN(test_open_group),
		PLAIN(test_read),
		PLAIN(test_fd_survives),
		PLAIN(test_listing),
		EMULATED(test_set_limit),
		EMULATED(test_tables),
		EMULATED(test_subtree_control),
		EMULATED(test_gone),
		EMULATED(test_owner),
		PLAIN(test_libcgroup_is_not_enough),
		PLAIN(test_libcgroup_opens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
