/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <sys/stat.h>

#include "apply-internal.h"
#include "log.h"

/* --- The table ------------------------------------------------------------------------------- */

static size_t group_lower_bound(const Apply *a, const char *path)
{
	size_t lo = 0, hi = a->n_groups;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(a->groups[mid]->path, path) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

ApplyGroup *apply_group_find(const Apply *a, const char *path)
{
	size_t i = group_lower_bound(a, path);

	return i < a->n_groups && streq(a->groups[i]->path, path) ? a->groups[i] : NULL;
}

static void group_close(ApplyGroup *g)
{
	g->watch = sd_event_source_disable_unref(g->watch);
	g->cgroup = cgroup_close(g->cgroup);
	g->css_inode = 0;
	g->dmem_on = g->owner_checked = g->childless = false;
}

static ApplyGroup *group_free(ApplyGroup *g)
{
	if (!g)
		return NULL;
	group_close(g);
	free(g->path);
	free(g);
	return NULL;
}

Cgroup *apply_get_cgroup(const Apply *a, const char *path)
{
	const ApplyGroup *g = apply_group_find(a, path);

	return g && !g->suspect ? g->cgroup : NULL;
}

int apply_group_get(Apply *a, const char *path, ApplyGroup **ret)
{
	size_t i = group_lower_bound(a, path);
	ApplyGroup *g;

	if (i < a->n_groups && streq(a->groups[i]->path, path)) {
		*ret = a->groups[i];
		return 0;
	}
	if (!GROW(a->groups, a->n_alloc, a->n_groups))
		return -ENOMEM;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->apply = a;
	g->path = strdup(path);
	if (!g->path) {
		group_free(g);
		return -ENOMEM;
	}
	memmove(a->groups + i + 1, a->groups + i, (a->n_groups - i) * sizeof(*a->groups));
	a->groups[i] = g;
	a->n_groups++;
	*ret = g;
	return 0;
}

ApplyGroup *apply_group_parent(const ApplyGroup *g)
{
	auto_free char *path = NULL;

	if (cgroup_path_parent(g->path, &path) < 0)
		return NULL;
	return apply_group_find(g->apply, path);
}

static bool group_is_needed(const ApplyGroup *g)
{
	const Journal *j = &g->apply->journal;

	if (g->planned)
		return true;
	for (size_t i = journal_first(j, g->path); i < j->n && streq(j->records[i]->path, g->path); i++)
		if (j->records[i]->kind != RECORD_DMEM)
			return true;
	return false;
}

void apply_groups_prune(Apply *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n_groups; i++) {
		if (group_is_needed(a->groups[i]))
			a->groups[n++] = a->groups[i];
		else
			group_free(a->groups[i]);
	}
	a->n_groups = n;
}

void apply_groups_free(Apply *a)
{
	for (size_t i = 0; i < a->n_groups; i++)
		group_free(a->groups[i]);
	free(a->groups);
	a->groups = NULL;
	a->n_groups = a->n_alloc = 0;
}

/* --- One group ------------------------------------------------------------------------------- */

/* Drops the records of other inodes, and those that went with the controller's state if css_lost. The rest
 * has to be read again, since nobody watched. */
static void group_check_records(ApplyGroup *g, uint64_t inode, bool css_lost)
{
	Journal *j = &g->apply->journal;
	size_t i = journal_first(j, g->path);

	while (i < j->n && streq(j->records[i]->path, g->path)) {
		Record *record = j->records[i];

		if (record->inode != inode || (css_lost && record->kind != RECORD_DMEM)) {
			journal_remove(j, record);
			continue;
		}
		/* In a dry run what would have been written counts as written. */
		record->known = record->known && g->apply->dry_run;
		i++;
	}
}

void apply_group_forget(ApplyGroup *g)
{
	Journal *j = &g->apply->journal;
	size_t i = journal_first(j, g->path);

	group_close(g);
	while (i < j->n && streq(j->records[i]->path, g->path))
		journal_remove(j, j->records[i]);
}

static int group_css_inode(const ApplyGroup *g, uint64_t *ret)
{
	struct stat st;

	if (fstatat(g->cgroup->dir_fd, dmem_limit_to_file(DMEM_LOW), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	*ret = st.st_ino;
	return 0;
}

bool apply_group_css_changed(const ApplyGroup *g)
{
	uint64_t inode = 0;

	if (g->css_inode == 0 || group_css_inode(g, &inode) == -ENOMEM)
		return false;
	return inode != g->css_inode;
}

void apply_group_note_css(ApplyGroup *g)
{
	if (group_css_inode(g, &g->css_inode) < 0)
		g->css_inode = 0;
}

/* The inode of the parent, if its watch tells of the groups that come and go in it; else 0. */
static uint64_t watched_parent(const ApplyGroup *g)
{
	const ApplyGroup *parent = apply_group_parent(g);

	return parent && parent->watch ? parent->cgroup->inode : 0;
}

int apply_group_refresh(ApplyGroup *g)
{
	Apply *a = g->apply;
	auto_cgroup Cgroup *fresh = NULL;
	int r;

	if (g->cgroup && g->watch && !g->suspect)
		return 0;
	if (g->absent_in != 0 && g->absent_in == watched_parent(g) && !g->suspect)
		return 0;
	r = cgroup_open(a->hierarchy, g->path, &fresh);
	if (cgroup_is_gone(r)) {
		apply_group_forget(g);
		g->absent_in = watched_parent(g);
		g->suspect = false;
		return 0;
	}
	if (r < 0)
		return r;
	if (g->cgroup && g->cgroup->inode != fresh->inode)
		group_close(g);
	if (!g->cgroup)
		g->cgroup = TAKE_PTR(fresh);
	/* Watched first, read afterwards: what comes in between is heard. */
	if (a->event && !a->dry_run && !g->watch) {
		r = apply_watch_start(g);
		if (r < 0)
			(void)log_debug_errno(r, "Failed to watch \"%s\", reading instead: %m", g->path);
	}
	group_check_records(g, g->cgroup->inode, apply_group_css_changed(g));
	apply_group_note_css(g);
	g->suspect = g->dmem_on = g->owner_checked = g->childless = false;
	g->absent_in = 0;
	return 0;
}
