// SPDX-License-Identifier: MIT
/* What the files say and take: as in Linux 7.3, see test_emu.py. */

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tree.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MAX_REGIONS	16
#define COUNTER_MAX	(INT64_MAX / 4096)	/* the kernel's PAGE_COUNTER_MAX, shown as "max" */
#define GROUP_BUCKETS	(1 << 16)
#define PID_BUCKETS	(1 << 10)

enum { VALUE_MIN, VALUE_LOW, VALUE_MAX, VALUE_CURRENT, VALUE_PEAK, N_VALUES };
enum { EVENT_EVICTIONS, EVENT_BYTES, EVENT_FOREIGN, N_EVENTS };

typedef struct Region {
	char name[128];
	uint64_t capacity;
} Region;

/* One region's numbers in one group, in bytes. */
typedef struct Pool {
	uint64_t value[N_VALUES];
	uint64_t own;			/* the part of "current" not charged by children */
	uint64_t event[N_EVENTS];
	uint64_t own_event[N_EVENTS];	/* those of the group's own memory */
} Pool;

static const char *const controllers[] = { "cpu", "io", "memory", "pids", "dmem" };
#define CONTROLLER_DMEM	(1U << 4)
#define CONTROLLERS_ALL	((1U << ARRAY_SIZE(controllers)) - 1)

static Region regions[MAX_REGIONS];
static unsigned int n_regions;
Group *tree_root;
bool with_series;
static uint64_t last_ino;
static LIST_HEAD(, Node) all_nodes;
static LIST_HEAD(, Group) groups_by_name[GROUP_BUCKETS];
static LIST_HEAD(, Process) processes_by_pid[PID_BUCKETS];

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
int parse_word(const char *word, uint64_t max, uint64_t *ret)
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
		      const Caller *by)
{
	*n = (Node) {
		.type = type, .group = g, .ino = ++last_ino, .mode = mode,
		.uid = by->uid, .gid = by->gid,
	};
	LIST_INIT(&n->opened);
	LIST_INSERT_HEAD(&all_nodes, n, all);
}

void node_release(Node *n)
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

Group *group_find_child(const Group *parent, const char *name)
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
	Group *g = tree_root;
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

static void group_populate(Group *g, int delta)
{
	for (; g; g = g->parent) {
		bool before = g->n_populated > 0;

		g->n_populated += delta;
		if (before == (g->n_populated > 0))
			return;
		emu_populated_changed(g);
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

static int group_add_files(Group *g, unsigned int dmem, const Caller *by)
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

		if (!(t->flags & where) || (t->flags & DMEM) != dmem || (t->flags & SERIES && !with_series))
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
		emu_file_changed(g->files[i]);	/* kernfs: a dead file is always ready */
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

void group_remove(Group *g)
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

int group_new(Group *parent, const char *name, const Caller *by, Group **ret)
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
	if (!parent) {
		tree_root = g;
	} else {
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

void process_remove(Process *p)
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

	if (!p)
		return -ENOMEM;
	p->pid = pid;
	p->pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (p->pidfd < 0 || emu_watch(p->pidfd, p) < 0) {
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

static void show_controllers(const Node *node, FILE *out)
{
	print_controllers(group_controllers(node->group), out);
}

static void show_subtree_control(const Node *node, FILE *out)
{
	print_controllers(node->group->subtree_control, out);
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

static int write_subtree_control(const Node *node, char *text, const Caller *by)
{
	unsigned int enable, disable;
	Group *g = node->group, *child;
	int r;

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

static void show_procs(const Node *node, FILE *out)
{
	const Process *p;

	TAILQ_FOREACH(p, &node->group->processes, in_group)
		fprintf(out, "%d\n", p->pid);
}

static int write_procs(const Node *node, char *text, const Caller *by)
{
	Group *g = node->group;
	uint64_t pid;
	int r;

	r = parse_word(strip(text), INT_MAX, &pid);
	if (r < 0)
		return r;
	if (g->parent && g->subtree_control)
		return -EBUSY;		/* no internal processes */
	return process_move(pid ? (pid_t)pid : by->pid, g);
}

static void show_events(const Node *node, FILE *out)
{
	fprintf(out, "populated %d\nfrozen 0\n", node->group->n_populated > 0);
}

/* The kernel refuses this. Here it lets the helper raise IN_MODIFY. */
static int write_events(const Node *node, char *text, const Caller *by)
{
	(void)node, (void)text, (void)by;
	return 0;
}

static void show_type(const Node *node, FILE *out)
{
	(void)node;
	fputs("domain\n", out);
}

static unsigned int count_descendants(const Group *g)
{
	unsigned int n = g->n_children;
	const Group *child;

	TAILQ_FOREACH(child, &g->children, sibling)
		n += count_descendants(child);
	return n;
}

static void show_stat(const Node *node, FILE *out)
{
	fprintf(out, "nr_descendants %u\nnr_dying_descendants 0\n",
		count_descendants(node->group));
}

/* ---- dmem.* ---- */

static int region_find(const char *name)
{
	for (unsigned int i = 0; i < n_regions; i++)
		if (strcmp(regions[i].name, name) == 0)
			return i;
	return -EINVAL;
}

int region_add(const char *name, uint64_t capacity)
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
	for (Group *g = tree_root; g; g = group_next(g)) {
		if (!g->pools)
			continue;
		memmove(&g->pools[i], &g->pools[i + 1], (n_regions - i) * sizeof(g->pools[0]));
		pool_reset(&g->pools[n_regions]);
	}
	return 0;
}

static void show_capacity(const Node *node, FILE *out)
{
	(void)node;
	for (unsigned int i = 0; i < n_regions; i++)
		fprintf(out, "%s %llu\n", regions[i].name,
			(unsigned long long)regions[i].capacity);
}

static void show_dmem(const Node *node, FILE *out)
{
	for (unsigned int i = 0; i < n_regions; i++) {
		uint64_t n = node->group->pools[i].value[node->type->value];

		if (n < COUNTER_MAX)
			fprintf(out, "%s %llu\n", regions[i].name, (unsigned long long)n);
		else
			fprintf(out, "%s max\n", regions[i].name);
	}
}

static void show_dmem_events(const Node *node, FILE *out)
{
	static const char *const names[N_EVENTS] = { "evictions", "evicted_bytes", "foreign_evictions" };

	for (unsigned int i = 0; i < n_regions; i++) {
		const Pool *p = &node->group->pools[i];

		fputs(regions[i].name, out);
		for (unsigned int e = 0; e < N_EVENTS; e++)
			fprintf(out, " %s=%llu", names[e],
				(unsigned long long)(node->type->value ? p->own_event[e] : p->event[e]));
		fputc('\n', out);
	}
}

static void group_evicted(Group *g, unsigned int region, uint64_t bytes, const Group *for_whom)
{
	for (Group *up = g; up && up->pools; up = up->parent) {
		const Group *within = for_whom;

		while (within && within != up)
			within = within->parent;
		for (unsigned int e = 0; e < N_EVENTS; e++) {
			uint64_t n = e == EVENT_BYTES ? bytes : e == EVENT_FOREIGN ? !within : 1;

			up->pools[region].event[e] += n;
			if (up == g)
				up->pools[region].own_event[e] += n;
		}
		for (size_t i = 0; i < n_file_types; i++)
			if (file_types[i].flags & POLLED && up->files[i] && (up == g || !file_types[i].value))
				emu_file_changed(up->files[i]);
	}
}

/* One "region value" per write; exactly one blank between them. */
static int write_dmem(const Node *node, char *text, const Caller *by)
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
	node->group->pools[i].value[node->type->value] = n;
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

/* One buffer of "from" goes, for one of "by". */
static int control_evict(char *from, const char *region, const char *bytes, char *by)
{
	Group *g = group_find(from), *for_whom = group_find(by);
	uint64_t n;
	int i, r = parse_word(bytes, INT64_MAX, &n);

	if (r < 0)
		return r;
	if (!g || !g->pools || !for_whom)
		return -ENOENT;
	i = region_find(region);
	if (i < 0)
		return i;
	group_charge(g, i, g->pools[i].own > n ? g->pools[i].own - n : 0);
	group_evicted(g, i, n, for_whom);
	return 0;
}

static int write_control(const Node *node, char *text, const Caller *by)
{
	char *word[5];
	Process *p;
	uint64_t n;
	int count = 0;

	(void)node, (void)by;
	for (text = strip(text); text && count < 5; count++)
		word[count] = strsep(&text, " ");
	if (text)
		return -EINVAL;
	if (count == 4 && strcmp(word[0], "charge") == 0)
		return control_charge(word[1], word[2], word[3]);
	if (count == 5 && strcmp(word[0], "evict") == 0)
		return control_evict(word[1], word[2], word[3], word[4]);
	if (count == 4 && strcmp(word[0], "region") == 0 && strcmp(word[1], "+") == 0)
		return parse_word(word[3], INT64_MAX, &n) < 0 ? -EINVAL : region_add(word[2], n);
	if (count == 3 && strcmp(word[0], "region") == 0 && strcmp(word[1], "-") == 0)
		return region_remove(word[2]);
	if (count == 2 && strcmp(word[0], "slow") == 0) {
		if (strcmp(word[1], "on") != 0 && strcmp(word[1], "off") != 0)
			return -EINVAL;
		emu_slow(word[1][1] == 'n');
		return 0;
	}
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
const FileType file_types[] = {
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
	{ "dmem.max", 0644, IN_GROUPS | DMEM | SLOW, VALUE_MAX, show_dmem, write_dmem },
	{ "dmem.events", 0444, IN_GROUPS | DMEM | SERIES | POLLED, 0, show_dmem_events, NULL },
	{ "dmem.events.local", 0444, IN_GROUPS | DMEM | SERIES | POLLED, 1, show_dmem_events, NULL },
	{ "emu.control", 0600, IN_ROOT | HIDDEN, 0, NULL, write_control },
};
const size_t n_file_types = ARRAY_SIZE(file_types);
_Static_assert(ARRAY_SIZE(file_types) <= MAX_FILES, "Group.files is too short");

/* For leak checkers. The kernel has forgotten every node with the mount. */
void tree_free(void)
{
	Node *n;

	for (size_t i = 0; i < PID_BUCKETS; i++)
		while (!LIST_EMPTY(&processes_by_pid[i]))
			process_remove(LIST_FIRST(&processes_by_pid[i]));
	while ((n = LIST_FIRST(&all_nodes))) {
		emu_close_all(n);
		n->group = NULL;
		n->nlookup = 0;
		node_release(n);
	}
}
