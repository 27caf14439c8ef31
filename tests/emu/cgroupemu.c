// SPDX-License-Identifier: MIT
/*
 * cgroupemu: a cgroup2 tree with the dmem controller, as a FUSE file system.
 *
 * For tests and demos on kernels without CONFIG_CGROUP_DMEM. Files, errors and rejected inputs are
 * those of Linux 7.3; test_emu.py holds the table. README.md says what is not emulated.
 *
 * One thread serves everything. A forked helper writes to cgroup.events of a group whose
 * "populated" changed, because only a write through the mount gives watchers the IN_MODIFY that the
 * kernel would send; the same helper unmounts when the main process is killed.
 */
#define FUSE_USE_VERSION 35
#define _GNU_SOURCE

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/queue.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MAX_REGIONS	16
#define MAX_WRITE	4096			/* kernfs: longer writes are E2BIG */
#define COUNTER_MAX	(INT64_MAX / 4096)	/* the kernel's PAGE_COUNTER_MAX, shown as "max" */
#define GROUP_BUCKETS	(1 << 16)
#define PID_BUCKETS	(1 << 10)

enum { VALUE_MIN, VALUE_LOW, VALUE_MAX, VALUE_CURRENT, VALUE_PEAK, N_VALUES };

typedef struct Group Group;

typedef struct Region {
	char name[128];
	uint64_t capacity;
} Region;

/* One region's numbers in one group, in bytes. */
typedef struct Pool {
	uint64_t value[N_VALUES];
	uint64_t own;			/* the part of "current" not charged by children */
} Pool;

/* A file or directory. It outlives its removal until the kernel forgets it. */
typedef struct Node {
	const struct FileType *type;	/* NULL: a directory, embedded in a Group */
	Group *group;			/* NULL once removed */
	uint64_t ino;
	uint64_t nlookup;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	LIST_ENTRY(Node) all;
} Node;

typedef struct FileType {
	const char *name;
	mode_t mode;
	unsigned int flags;
	int value;			/* dmem files: which value */
	void (*show)(const Group *g, int value, FILE *out);
	int (*write)(Group *g, int value, char *text, const struct fuse_ctx *by);
} FileType;

/* HELPED: our helper writes to it, and is not root when we are not. */
enum { IN_ROOT = 1, IN_GROUPS = 2, DMEM = 4, HIDDEN = 8, HELPED = 16 };

typedef struct Process {
	pid_t pid;
	int pidfd;
	Group *group;
	LIST_ENTRY(Process) by_pid;
	TAILQ_ENTRY(Process) in_group;
} Process;

#define MAX_FILES 16

struct Group {
	Node node;			/* first: a directory's Node is its Group */
	Group *parent;
	char *name;
	Node *files[MAX_FILES];		/* indexed like file_types */
	Pool *pools;			/* per region; NULL without the dmem controller */
	unsigned int subtree_control;
	unsigned int n_children;
	unsigned int n_populated;	/* own processes + populated children */
	TAILQ_HEAD(, Process) processes;
	TAILQ_HEAD(, Group) children;
	TAILQ_ENTRY(Group) sibling;
	LIST_ENTRY(Group) by_name;
};

static const char *const controllers[] = { "cpu", "io", "memory", "pids", "dmem" };
#define CONTROLLER_DMEM	(1U << 4)
#define CONTROLLERS_ALL	((1U << ARRAY_SIZE(controllers)) - 1)

static Region regions[MAX_REGIONS];
static unsigned int n_regions;
static Group *root;
static uint64_t last_ino;
static LIST_HEAD(, Node) all_nodes;
static LIST_HEAD(, Group) groups_by_name[GROUP_BUCKETS];
static LIST_HEAD(, Process) processes_by_pid[PID_BUCKETS];
static int epoll_fd = -1;
static int helper_fd = -1;

/* ---- text ---- */

static unsigned int digit_value(char c)
{
	if (isdigit((unsigned char)c))
		return c - '0';
	return isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10U : UINT_MAX;
}

/* Takes what the kernel's memparse() takes, also a bare suffix (0); too large saturates. */
static uint64_t parse_number(const char *s, const char **ret_end)
{
	static const char units[] = "kmgtpe";
	const char *unit;
	unsigned int base = 10, digit;
	uint64_t n = 0;

	if (s[0] == '0')
		base = tolower((unsigned char)s[1]) == 'x' && digit_value(s[2]) < 16 ? 16 : 8;
	if (base == 16)
		s += 2;
	for (; (digit = digit_value(*s)) < base; s++)
		if (__builtin_mul_overflow(n, base, &n) || __builtin_add_overflow(n, digit, &n))
			n = UINT64_MAX;

	unit = *s ? strchr(units, tolower((unsigned char)*s)) : NULL;
	if (unit) {
		unsigned int shift = 10 * (unit - units + 1);

		n = n > UINT64_MAX >> shift ? UINT64_MAX : n << shift;
		s++;
	}
	*ret_end = s;
	return n;
}

/* For our own commands: the whole word must be a number. */
static int parse_word(const char *word, uint64_t max, uint64_t *ret)
{
	const char *end;
	uint64_t n;

	if (!word || !isdigit((unsigned char)word[0]))
		return -EINVAL;
	n = parse_number(word, &end);
	if (*end || n > max)
		return -EINVAL;
	*ret = n;
	return 0;
}

static char *strip(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	for (n = strlen(s); n > 0 && isspace((unsigned char)s[n - 1]); n--)
		s[n - 1] = '\0';
	return s;
}

/* ---- nodes and groups ---- */

static void node_init(Node *n, const FileType *type, Group *g, mode_t mode,
		      const struct fuse_ctx *by)
{
	*n = (Node) {
		.type = type, .group = g, .ino = ++last_ino, .mode = mode,
		.uid = by->uid, .gid = by->gid,
	};
	LIST_INSERT_HEAD(&all_nodes, n, all);
}

static void node_release(Node *n)
{
	if (n->group || n->nlookup > 0)
		return;
	LIST_REMOVE(n, all);
	if (!n->type) {
		free(((Group *)n)->name);
		free(((Group *)n)->pools);
	}
	free(n);
}

static unsigned int name_bucket(const Group *parent, const char *name)
{
	uint64_t h = parent->node.ino;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3U;
	return (h ^ h >> 32) % GROUP_BUCKETS;
}

static Group *group_find_child(const Group *parent, const char *name)
{
	Group *g;

	LIST_FOREACH(g, &groups_by_name[name_bucket(parent, name)], by_name)
		if (g->parent == parent && strcmp(g->name, name) == 0)
			return g;
	return NULL;
}

/* Takes a path from the root of the tree, with or without a leading slash; cuts it up. */
static Group *group_find(char *path)
{
	Group *g = root;
	char *part;

	while (g && (part = strsep(&path, "/")))
		if (*part)
			g = group_find_child(g, part);
	return g;
}

/* Depth first, parents before children. */
static Group *group_next(Group *g)
{
	if (!TAILQ_EMPTY(&g->children))
		return TAILQ_FIRST(&g->children);
	while (g && !TAILQ_NEXT(g, sibling))
		g = g->parent;
	return g ? TAILQ_NEXT(g, sibling) : NULL;
}

/* Ask the helper to write to the group's cgroup.events. */
static void group_events_changed(const Group *g)
{
	char line[PIPE_BUF];
	size_t at = sizeof(line);

	line[--at] = '\n';
	for (; g->parent; g = g->parent) {
		size_t len = strlen(g->name);

		if (at < len + 1)
			return;
		at -= len;
		memcpy(line + at, g->name, len);
		line[--at] = '/';
	}
	/* A full pipe means thousands of events unread: the watcher re-reads anyway. */
	if (at < sizeof(line) - 1 && write(helper_fd, line + at, sizeof(line) - at) < 0)
		fprintf(stderr, "cgroupemu: event lost: %m\n");
}

static void group_populate(Group *g, int delta)
{
	for (; g; g = g->parent) {
		bool before = g->n_populated > 0;

		g->n_populated += delta;
		if (before == (g->n_populated > 0))
			return;
		group_events_changed(g);
	}
}

static void group_charge(Group *g, unsigned int region, uint64_t own)
{
	uint64_t delta = own - g->pools[region].own;	/* may wrap, as the sums do */

	g->pools[region].own = own;
	for (; g && g->pools; g = g->parent) {
		uint64_t *value = g->pools[region].value;

		value[VALUE_CURRENT] += delta;
		if (value[VALUE_PEAK] < value[VALUE_CURRENT])
			value[VALUE_PEAK] = value[VALUE_CURRENT];
	}
}

static void pool_reset(Pool *p)
{
	*p = (Pool) { .value[VALUE_MAX] = COUNTER_MAX };
}

/* ---- files of a group ---- */

static const FileType file_types[];
static const size_t n_file_types;

static int group_add_files(Group *g, unsigned int dmem, const struct fuse_ctx *by)
{
	unsigned int where = g->parent ? IN_GROUPS : IN_ROOT;

	if (dmem) {
		g->pools = calloc(MAX_REGIONS, sizeof(*g->pools));
		if (!g->pools)
			return -ENOMEM;
		for (unsigned int i = 0; i < MAX_REGIONS; i++)
			pool_reset(&g->pools[i]);
	}
	for (size_t i = 0; i < n_file_types; i++) {
		const FileType *t = &file_types[i];
		bool writable = t->flags & HELPED && geteuid() != 0;

		if (!(t->flags & where) || (t->flags & DMEM) != dmem)
			continue;
		g->files[i] = malloc(sizeof(Node));
		if (!g->files[i])
			return -ENOMEM;
		node_init(g->files[i], t, g, S_IFREG | t->mode | (writable ? 0200 : 0), by);
	}
	return 0;
}

static void group_remove_files(Group *g, unsigned int dmem)
{
	for (size_t i = 0; i < n_file_types; i++) {
		if (!g->files[i] || (file_types[i].flags & DMEM) != dmem)
			continue;
		g->files[i]->group = NULL;
		node_release(g->files[i]);
		g->files[i] = NULL;
	}
	if (dmem && g->pools) {
		for (unsigned int i = 0; i < n_regions; i++)
			group_charge(g, i, 0);
		free(g->pools);
		g->pools = NULL;
	}
}

static void group_remove(Group *g)
{
	group_remove_files(g, DMEM);
	group_remove_files(g, 0);
	if (g->parent) {
		TAILQ_REMOVE(&g->parent->children, g, sibling);
		LIST_REMOVE(g, by_name);
		g->parent->n_children--;
	}
	g->node.group = NULL;
	node_release(&g->node);
}

static int group_new(Group *parent, const char *name, const struct fuse_ctx *by, Group **ret)
{
	Group *g = calloc(1, sizeof(*g));
	int r;

	if (!g || !(g->name = strdup(name))) {
		free(g);
		return -ENOMEM;
	}
	node_init(&g->node, NULL, g, S_IFDIR | 0755, by);
	TAILQ_INIT(&g->processes);
	TAILQ_INIT(&g->children);
	g->parent = parent;
	if (parent) {
		TAILQ_INSERT_TAIL(&parent->children, g, sibling);
		LIST_INSERT_HEAD(&groups_by_name[name_bucket(parent, name)], g, by_name);
		parent->n_children++;
	}
	r = group_add_files(g, 0, by);
	if (r == 0 && (!parent || parent->subtree_control & CONTROLLER_DMEM))
		r = group_add_files(g, DMEM, by);
	if (r < 0) {
		group_remove(g);
		return r;
	}
	*ret = g;
	return 0;
}

/* ---- processes ---- */

static Process *process_find(pid_t pid)
{
	Process *p;

	LIST_FOREACH(p, &processes_by_pid[pid % PID_BUCKETS], by_pid)
		if (p->pid == pid)
			return p;
	return NULL;
}

static void process_remove(Process *p)
{
	TAILQ_REMOVE(&p->group->processes, p, in_group);
	LIST_REMOVE(p, by_pid);
	group_populate(p->group, -1);
	close(p->pidfd);		/* also takes it out of the epoll set */
	free(p);
}

/* The group is set by the caller. */
static int process_new(pid_t pid, Process **ret)
{
	Process *p = calloc(1, sizeof(*p));
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = p };

	if (!p)
		return -ENOMEM;
	p->pid = pid;
	p->pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (p->pidfd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, p->pidfd, &ev) < 0) {
		if (p->pidfd >= 0)
			close(p->pidfd);
		free(p);
		return -ESRCH;
	}
	LIST_INSERT_HEAD(&processes_by_pid[pid % PID_BUCKETS], p, by_pid);
	*ret = p;
	return 0;
}

static int process_move(pid_t pid, Group *to)
{
	Process *p = process_find(pid);
	Group *from;

	if (!p) {
		int r = process_new(pid, &p);

		if (r < 0)
			return r;
	}
	from = p->group;
	if (from)
		TAILQ_REMOVE(&from->processes, p, in_group);
	TAILQ_INSERT_TAIL(&to->processes, p, in_group);
	p->group = to;
	/* Arrive before leaving: common ancestors stay populated and stay silent. */
	group_populate(to, 1);
	if (from)
		group_populate(from, -1);
	return 0;
}

/* ---- cgroup.* ---- */

static void print_controllers(unsigned int set, FILE *out)
{
	const char *separator = "";

	for (size_t i = 0; i < ARRAY_SIZE(controllers); i++) {
		if (!(set & 1U << i))
			continue;
		fprintf(out, "%s%s", separator, controllers[i]);
		separator = " ";
	}
	fputc('\n', out);
}

static unsigned int group_controllers(const Group *g)
{
	return g->parent ? g->parent->subtree_control : CONTROLLERS_ALL;
}

static void show_controllers(const Group *g, int value, FILE *out)
{
	(void)value;
	print_controllers(group_controllers(g), out);
}

static void show_subtree_control(const Group *g, int value, FILE *out)
{
	(void)value;
	print_controllers(g->subtree_control, out);
}

static int parse_controllers(char *text, unsigned int *ret_enable, unsigned int *ret_disable)
{
	unsigned int enable = 0, disable = 0;
	char *word;

	text = strip(text);
	while ((word = strsep(&text, " "))) {
		unsigned int bit = 0;

		if (!*word)
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(controllers); i++)
			if (strcmp(word + 1, controllers[i]) == 0)
				bit = 1U << i;
		if (!bit || (*word != '+' && *word != '-'))
			return -EINVAL;
		enable = *word == '+' ? enable | bit : enable & ~bit;
		disable = *word == '-' ? disable | bit : disable & ~bit;
	}
	*ret_enable = enable;
	*ret_disable = disable;
	return 0;
}

static int write_subtree_control(Group *g, int value, char *text, const struct fuse_ctx *by)
{
	unsigned int enable, disable;
	Group *child;
	int r;

	(void)value;
	r = parse_controllers(text, &enable, &disable);
	if (r < 0)
		return r;
	enable &= ~g->subtree_control;
	disable &= g->subtree_control;
	if (enable & ~group_controllers(g))
		return -ENOENT;
	TAILQ_FOREACH(child, &g->children, sibling)
		if (child->subtree_control & disable)
			return -EBUSY;
	if (enable && g->parent && !TAILQ_EMPTY(&g->processes))
		return -EBUSY;

	g->subtree_control = (g->subtree_control | enable) & ~disable;
	TAILQ_FOREACH(child, &g->children, sibling) {
		if (disable & CONTROLLER_DMEM)
			group_remove_files(child, DMEM);
		if (enable & CONTROLLER_DMEM && group_add_files(child, DMEM, by) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void show_procs(const Group *g, int value, FILE *out)
{
	const Process *p;

	(void)value;
	TAILQ_FOREACH(p, &g->processes, in_group)
		fprintf(out, "%d\n", p->pid);
}

static int write_procs(Group *g, int value, char *text, const struct fuse_ctx *by)
{
	uint64_t pid;
	int r;

	(void)value;
	r = parse_word(strip(text), INT_MAX, &pid);
	if (r < 0)
		return r;
	if (g->parent && g->subtree_control)
		return -EBUSY;		/* no internal processes */
	return process_move(pid ? (pid_t)pid : by->pid, g);
}

static void show_events(const Group *g, int value, FILE *out)
{
	(void)value;
	fprintf(out, "populated %d\nfrozen 0\n", g->n_populated > 0);
}

/* The kernel refuses this. Here it lets the helper raise IN_MODIFY. */
static int write_events(Group *g, int value, char *text, const struct fuse_ctx *by)
{
	(void)g, (void)value, (void)text, (void)by;
	return 0;
}

static void show_type(const Group *g, int value, FILE *out)
{
	(void)g, (void)value;
	fputs("domain\n", out);
}

static void show_stat(const Group *g, int value, FILE *out)
{
	unsigned int n = 0;
	const Group *d;

	(void)value;
	/* Everything between g and the next group that does not descend from it. */
	for (d = group_next((Group *)g); d; d = group_next((Group *)d)) {
		const Group *up = d;

		while (up && up != g)
			up = up->parent;
		if (!up)
			break;
		n++;
	}
	fprintf(out, "nr_descendants %u\nnr_dying_descendants 0\n", n);
}

/* ---- dmem.* ---- */

static int region_find(const char *name)
{
	for (unsigned int i = 0; i < n_regions; i++)
		if (strcmp(regions[i].name, name) == 0)
			return i;
	return -EINVAL;
}

static int region_add(const char *name, uint64_t capacity)
{
	if (!*name || strlen(name) >= sizeof(regions[0].name) || n_regions == MAX_REGIONS)
		return -EINVAL;
	if (region_find(name) >= 0)
		return -EEXIST;
	strcpy(regions[n_regions].name, name);
	regions[n_regions++].capacity = capacity;
	return 0;
}

/* Pools are kept in the order of regions, so that the last one is always fresh. */
static int region_remove(const char *name)
{
	int i = region_find(name);

	if (i < 0)
		return i;
	n_regions--;
	memmove(&regions[i], &regions[i + 1], (n_regions - i) * sizeof(regions[0]));
	for (Group *g = root; g; g = group_next(g)) {
		if (!g->pools)
			continue;
		memmove(&g->pools[i], &g->pools[i + 1], (n_regions - i) * sizeof(g->pools[0]));
		pool_reset(&g->pools[n_regions]);
	}
	return 0;
}

static void show_capacity(const Group *g, int value, FILE *out)
{
	(void)g, (void)value;
	for (unsigned int i = 0; i < n_regions; i++)
		fprintf(out, "%s %llu\n", regions[i].name,
			(unsigned long long)regions[i].capacity);
}

static void show_dmem(const Group *g, int value, FILE *out)
{
	for (unsigned int i = 0; i < n_regions; i++) {
		uint64_t n = g->pools[i].value[value];

		if (n < COUNTER_MAX)
			fprintf(out, "%s %llu\n", regions[i].name, (unsigned long long)n);
		else
			fprintf(out, "%s max\n", regions[i].name);
	}
}

/* One "region value" per write; exactly one blank between them. */
static int write_dmem(Group *g, int value, char *text, const struct fuse_ctx *by)
{
	uint64_t n = COUNTER_MAX;
	const char *name;
	int i;

	(void)by;
	text = strip(text);
	name = strsep(&text, " \t");
	if (!text)
		return -EINVAL;
	i = region_find(name);
	if (i < 0)
		return i;
	if (strcmp(text, "max") != 0) {
		const char *end;

		n = parse_number(text, &end);
		if (*end)
			return -EINVAL;
	}
	g->pools[i].value[value] = n;
	return 0;
}

/* ---- emu.control ---- */

static int control_charge(char *path, const char *region, const char *bytes)
{
	uint64_t n;
	int i, r = parse_word(bytes, INT64_MAX, &n);
	Group *g;

	if (r < 0)
		return r;
	g = group_find(path);
	if (!g || !g->pools)
		return -ENOENT;
	i = region_find(region);
	if (i < 0)
		return i;
	group_charge(g, i, n);
	return 0;
}

static int write_control(Group *g, int value, char *text, const struct fuse_ctx *by)
{
	char *word[4];
	Process *p;
	uint64_t n;
	int count = 0;

	(void)g, (void)value, (void)by;
	for (text = strip(text); text && count < 4; count++)
		word[count] = strsep(&text, " ");
	if (text)
		return -EINVAL;
	if (count == 4 && strcmp(word[0], "charge") == 0)
		return control_charge(word[1], word[2], word[3]);
	if (count == 4 && strcmp(word[0], "region") == 0 && strcmp(word[1], "+") == 0)
		return parse_word(word[3], INT64_MAX, &n) < 0 ? -EINVAL : region_add(word[2], n);
	if (count == 3 && strcmp(word[0], "region") == 0 && strcmp(word[1], "-") == 0)
		return region_remove(word[2]);
	if (count == 2 && strcmp(word[0], "exit") == 0) {
		if (parse_word(word[1], INT_MAX, &n) < 0)
			return -EINVAL;
		p = process_find(n);
		if (!p)
			return -ESRCH;
		process_remove(p);
		return 0;
	}
	return -EINVAL;
}

#define BOTH (IN_ROOT | IN_GROUPS)
static const FileType file_types[] = {
	{ "cgroup.controllers", 0444, BOTH, 0, show_controllers, NULL },
	{ "cgroup.subtree_control", 0644, BOTH, 0, show_subtree_control, write_subtree_control },
	{ "cgroup.procs", 0644, BOTH, 0, show_procs, write_procs },
	{ "cgroup.stat", 0444, BOTH, 0, show_stat, NULL },
	{ "cgroup.type", 0644, IN_GROUPS, 0, show_type, NULL },
	{ "cgroup.events", 0444, IN_GROUPS | HELPED, 0, show_events, write_events },
	{ "dmem.capacity", 0444, IN_ROOT | DMEM, 0, show_capacity, NULL },
	{ "dmem.current", 0444, BOTH | DMEM, VALUE_CURRENT, show_dmem, NULL },
	{ "dmem.peak", 0444, IN_GROUPS | DMEM, VALUE_PEAK, show_dmem, NULL },
	{ "dmem.min", 0644, IN_GROUPS | DMEM, VALUE_MIN, show_dmem, write_dmem },
	{ "dmem.low", 0644, IN_GROUPS | DMEM, VALUE_LOW, show_dmem, write_dmem },
	{ "dmem.max", 0644, IN_GROUPS | DMEM, VALUE_MAX, show_dmem, write_dmem },
	{ "emu.control", 0600, IN_ROOT | HIDDEN, 0, NULL, write_control },
};
static const size_t n_file_types = ARRAY_SIZE(file_types);
_Static_assert(ARRAY_SIZE(file_types) <= MAX_FILES, "Group.files is too short");

/* ---- FUSE: a node's number is its address, the root's is FUSE_ROOT_ID ---- */

static Node *node_from(fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? &root->node : (Node *)(uintptr_t)ino;
}

static void node_stat(const Node *n, struct stat *ret)
{
	*ret = (struct stat) {
		.st_ino = n->ino, .st_mode = n->mode, .st_uid = n->uid, .st_gid = n->gid,
		.st_nlink = n->group ? 1 : 0,
	};
	if (!n->type && n->group)
		ret->st_nlink = 2 + n->group->n_children;
}

static void reply_node(fuse_req_t req, Node *n)
{
	struct fuse_entry_param e = { .ino = (uintptr_t)n, .generation = n->ino };

	node_stat(n, &e.attr);
	if (fuse_reply_entry(req, &e) == 0)
		n->nlookup++;
}

static void emu_init(void *userdata, struct fuse_conn_info *conn)
{
	(void)userdata;
	/* O_TRUNC as a separate request, so that watchers get the kernel's second IN_MODIFY. */
	conn->want &= ~FUSE_CAP_ATOMIC_O_TRUNC;
}

static void emu_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	Group *dir = node_from(parent)->group, *g;

	for (size_t i = 0; dir && i < n_file_types; i++)
		if (dir->files[i] && strcmp(file_types[i].name, name) == 0) {
			reply_node(req, dir->files[i]);
			return;
		}
	g = dir ? group_find_child(dir, name) : NULL;
	if (g)
		reply_node(req, &g->node);
	else
		fuse_reply_err(req, ENOENT);
}

static void emu_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	Node *n = node_from(ino);

	if (n != &root->node) {
		n->nlookup -= nlookup;
		node_release(n);
	}
	fuse_reply_none(req);
}

static void emu_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;

	(void)fi;
	node_stat(node_from(ino), &st);
	fuse_reply_attr(req, &st, 0);
}

static void emu_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int set,
			struct fuse_file_info *fi)
{
	Node *n = node_from(ino);

	/* Sizes and times are accepted and ignored, as the kernel does for O_TRUNC. */
	if (set & FUSE_SET_ATTR_MODE)
		n->mode = (n->mode & S_IFMT) | (attr->st_mode & 07777);
	if (set & FUSE_SET_ATTR_UID)
		n->uid = attr->st_uid;
	if (set & FUSE_SET_ATTR_GID)
		n->gid = attr->st_gid;
	emu_getattr(req, ino, fi);
}

static void emu_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	Group *dir = node_from(parent)->group, *g;
	int r;

	(void)mode;	/* kernfs: always 0755 */
	if (!dir)
		r = -ENODEV;
	else if (strchr(name, '\n'))
		r = -EINVAL;
	else
		r = group_new(dir, name, fuse_req_ctx(req), &g);
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		reply_node(req, &g->node);
}

static void emu_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	Group *dir = node_from(parent)->group;
	Group *g = dir ? group_find_child(dir, name) : NULL;
	int error = 0;

	if (!g)
		error = ENOENT;
	else if (g->n_populated || g->n_children)
		error = EBUSY;
	else
		group_remove(g);
	fuse_reply_err(req, error);
}

static void emu_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	(void)parent, (void)name;
	fuse_reply_err(req, EPERM);
}

static void emu_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		       const char *new_name, unsigned int flags)
{
	(void)parent, (void)name, (void)new_parent, (void)new_name, (void)flags;
	fuse_reply_err(req, EPERM);
}

static void emu_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		       struct fuse_file_info *fi)
{
	(void)parent, (void)name, (void)mode, (void)fi;
	fuse_reply_err(req, EACCES);
}

static void emu_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (!node_from(ino)->group) {
		fuse_reply_err(req, ENODEV);
		return;
	}
	fi->direct_io = 1;
	fuse_reply_open(req, fi);
}

static void reply_slice(fuse_req_t req, const char *data, size_t len, size_t size, off_t off)
{
	if ((size_t)off >= len)
		fuse_reply_buf(req, NULL, 0);
	else
		fuse_reply_buf(req, data + off, len - off < size ? len - off : size);
}

static void emu_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	Node *n = node_from(ino);
	char *text = NULL;
	size_t len = 0;
	FILE *out;

	(void)fi;
	if (!n->group || !n->type->show) {
		fuse_reply_err(req, n->group ? EINVAL : ENODEV);
		return;
	}
	out = open_memstream(&text, &len);
	if (!out) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	n->type->show(n->group, n->type->value, out);
	if (fclose(out) != 0)
		fuse_reply_err(req, ENOMEM);
	else
		reply_slice(req, text, len, size, off);
	free(text);
}

static void emu_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
		      struct fuse_file_info *fi)
{
	Node *n = node_from(ino);
	char text[MAX_WRITE + 1];
	int r;

	(void)off, (void)fi;
	if (!n->group)
		r = -ENODEV;
	else if (size > MAX_WRITE)
		r = -E2BIG;
	else if (!n->type->write)
		r = -EINVAL;
	else {
		memcpy(text, buf, size);
		text[size] = '\0';
		r = n->type->write(n->group, n->type->value, text, fuse_req_ctx(req));
	}
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_write(req, size);
}

/* A directory is listed once, when it is read from its start. */
typedef struct Listing {
	char *data;
	size_t len;
} Listing;

static void emu_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	Listing *l = calloc(1, sizeof(*l));

	(void)ino;
	fi->fh = (uintptr_t)l;
	if (!l)
		fuse_reply_err(req, ENOMEM);
	else if (fuse_reply_open(req, fi) < 0)
		free(l);
}

static bool listing_add(fuse_req_t req, Listing *l, const char *name, const Node *n)
{
	size_t len = fuse_add_direntry(req, NULL, 0, name, NULL, 0);
	char *data = realloc(l->data, l->len + len);
	struct stat st;

	if (!data)
		return false;
	node_stat(n, &st);
	fuse_add_direntry(req, data + l->len, len, name, &st, l->len + len);
	l->data = data;
	l->len += len;
	return true;
}

static bool listing_fill(fuse_req_t req, Listing *l, const Group *dir)
{
	const Group *up = dir->parent ? dir->parent : dir, *g;
	bool ok;

	l->len = 0;
	ok = listing_add(req, l, ".", &dir->node) && listing_add(req, l, "..", &up->node);
	for (size_t i = 0; i < n_file_types; i++)
		if (dir->files[i] && !(file_types[i].flags & HIDDEN))
			ok = ok && listing_add(req, l, file_types[i].name, dir->files[i]);
	TAILQ_FOREACH(g, &dir->children, sibling)
		ok = ok && listing_add(req, l, g->name, &g->node);
	return ok;
}

static void emu_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			struct fuse_file_info *fi)
{
	Listing *l = (Listing *)(uintptr_t)fi->fh;
	Group *dir = node_from(ino)->group;

	if (off == 0 && dir && !listing_fill(req, l, dir))
		fuse_reply_err(req, ENOMEM);
	else
		reply_slice(req, l->data, l->len, size, off);
}

static void emu_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	Listing *l = (Listing *)(uintptr_t)fi->fh;

	(void)ino;
	free(l->data);
	free(l);
	fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops operations = {
	.init = emu_init,
	.lookup = emu_lookup,
	.forget = emu_forget,
	.getattr = emu_getattr,
	.setattr = emu_setattr,
	.mkdir = emu_mkdir,
	.rmdir = emu_rmdir,
	.unlink = emu_unlink,
	.rename = emu_rename,
	.create = emu_create,
	.open = emu_open,
	.read = emu_read,
	.write = emu_write,
	.opendir = emu_opendir,
	.readdir = emu_readdir,
	.releasedir = emu_releasedir,
};

/* ---- helper process ---- */

/* Each line is a group's path. The first, empty one says that the mount is there. */
static _Noreturn void helper_run(int fd, const char *mount_point)
{
	FILE *in = fdopen(fd, "r");
	char *line = NULL, *path;
	bool mounted = false;
	size_t size = 0;
	ssize_t len;

	while (in && (len = getline(&line, &size, in)) > 0) {
		mounted = true;
		line[len - 1] = '\0';
		if (!*line || asprintf(&path, "%s%s/cgroup.events", mount_point, line) < 0)
			continue;
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0) {
			(void)!write(fd, "\n", 1);
			close(fd);
		}
		free(path);
	}
	/* The main process kills us before it exits: end of file means that it crashed. */
	if (mounted && umount2(mount_point, MNT_DETACH) < 0)
		execlp("fusermount3", "fusermount3", "-uzq", "--", mount_point, NULL);
	_exit(0);
}

/* Forked before mounting: a copy of the FUSE descriptor would keep a dead mount alive. */
static int helper_start(const char *mount_point, pid_t *ret_pid)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close(fds[1]);
		helper_run(fds[0], mount_point);
	}
	close(fds[0]);
	helper_fd = fds[1];
	/* Never wait for the helper: it waits for us. */
	if (fcntl(helper_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	(void)fcntl(helper_fd, F_SETPIPE_SZ, 1 << 20);
	*ret_pid = pid;
	return 0;
}

/* ---- main ---- */

static int watch(int fd, void *ptr)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = ptr };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* Exits are handled before requests: who has seen a process end must see its group empty. */
static int serve(struct fuse_session *se, int signal_fd)
{
	struct fuse_buf buf = { 0 };
	int r = watch(signal_fd, &signal_fd);

	if (r == 0)
		r = watch(fuse_session_fd(se), se);
	while (r == 0 && !fuse_session_exited(se)) {
		struct epoll_event ev[64];
		bool request = false;
		int n = epoll_wait(epoll_fd, ev, ARRAY_SIZE(ev), -1);

		if (n < 0 && errno != EINTR)
			r = -errno;
		for (int i = 0; i < n; i++) {
			if (ev[i].data.ptr == se)
				request = true;
			else if (ev[i].data.ptr == &signal_fd)
				fuse_session_exit(se);
			else
				process_remove(ev[i].data.ptr);
		}
		if (!request)
			continue;
		n = fuse_session_receive_buf(se, &buf);
		if (n > 0)
			fuse_session_process_buf(se, &buf);
		else if (n < 0 && n != -EINTR && n != -EAGAIN)
			r = n;
	}
	free(buf.mem);
	return r;
}

static int mount_and_serve(struct fuse_session *se, const char *mount_point)
{
	sigset_t signals;
	pid_t helper = -1;
	int signal_fd, r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		return -errno;
	signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (signal_fd < 0 || epoll_fd < 0)
		return -errno;
	r = helper_start(mount_point, &helper);
	if (r < 0)
		return r;

	if (fuse_session_mount(se, mount_point) < 0)
		r = -EIO;
	else if (fcntl(fuse_session_fd(se), F_SETFL, O_NONBLOCK) < 0 ||
		 write(helper_fd, "\n", 1) < 0)
		r = -errno;
	else {
		printf("mounted %s\n", mount_point);
		fflush(stdout);
		r = serve(se, signal_fd);
	}
	/* The helper may sit in a request that only the unmount ends: wait for it last. */
	kill(helper, SIGKILL);
	fuse_session_unmount(se);
	fuse_session_destroy(se);
	waitpid(helper, NULL, 0);
	close(helper_fd);
	close(signal_fd);
	close(epoll_fd);
	return r;
}

static int parse_region_option(char *option)
{
	char *bytes = strrchr(option, '=');
	uint64_t capacity;

	if (!bytes)
		return -EINVAL;
	*bytes++ = '\0';
	if (strpbrk(option, " \t\n") || parse_word(bytes, INT64_MAX, &capacity) < 0)
		return -EINVAL;
	return region_add(option, capacity);
}

static const char *parse_options(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "region", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	static const char usage[] = "Usage: cgroupemu [--region NAME=BYTES]... MOUNTPOINT\n";
	int c;

	while ((c = getopt_long(argc, argv, "r:h", options, NULL)) >= 0) {
		if (c == 'h') {
			fputs(usage, stdout);
			exit(EXIT_SUCCESS);
		}
		if (c != 'r' || parse_region_option(optarg) < 0) {
			if (c == 'r')
				fprintf(stderr, "cgroupemu: bad region \"%s\"\n", optarg);
			return NULL;
		}
	}
	if (optind != argc - 1) {
		fputs(usage, stderr);
		return NULL;
	}
	return argv[optind];
}

/* For leak checkers. The kernel has forgotten every node with the mount. */
static void free_all(void)
{
	Node *n;

	for (size_t i = 0; i < PID_BUCKETS; i++)
		while (!LIST_EMPTY(&processes_by_pid[i]))
			process_remove(LIST_FIRST(&processes_by_pid[i]));
	while ((n = LIST_FIRST(&all_nodes))) {
		n->group = NULL;
		n->nlookup = 0;
		node_release(n);
	}
}

int main(int argc, char *argv[])
{
	const char *option = parse_options(argc, argv);
	struct fuse_ctx self = { .uid = geteuid(), .gid = getegid() };
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *se = NULL;
	char *mount_point;
	int r;

	if (!option)
		return EXIT_FAILURE;
	mount_point = realpath(option, NULL);
	if (!mount_point) {
		fprintf(stderr, "cgroupemu: %s: %m\n", option);
		return EXIT_FAILURE;
	}
	if (fuse_opt_add_arg(&args, "cgroupemu") == 0 &&
	    fuse_opt_add_arg(&args, "-ofsname=cgroupemu,default_permissions") == 0 &&
	    (self.uid != 0 || fuse_opt_add_arg(&args, "-oallow_other") == 0) &&
	    group_new(NULL, "", &self, &root) == 0)
		se = fuse_session_new(&args, &operations, sizeof(operations), NULL);
	r = se ? mount_and_serve(se, mount_point) : -ENOMEM;
	if (r < 0)
		fprintf(stderr, "cgroupemu: %s: %s\n", mount_point, strerror(-r));
	free_all();
	fuse_opt_free_args(&args);
	free(mount_point);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
