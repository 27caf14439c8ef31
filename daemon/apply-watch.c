/* SPDX-License-Identifier: MIT */
/* Directories are watched, since a watch on a file dies without a word when dmem is switched off and on.
 * Our own writes are heard too; every handler reads first and finds nothing to do then.
 * A group's end is heard from its parent: with its directory held open, the directory itself says nothing. */
#include <sys/epoll.h>
#include <sys/inotify.h>

#include "apply-internal.h"
#include "log.h"

#define WATCH_MASK (IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_ONLYDIR)

static void tell_lost(const Apply *a, const char *path)
{
	if (a->hooks.lost)
		a->hooks.lost(path, a->userdata);
}

/* --- Values ---------------------------------------------------------------------------------- */

/* Counts one reassertion; false if the minute has had its share. */
static bool may_reassert(ApplyGroup *g)
{
	const Apply *a = g->apply;
	uint64_t now;

	if (sd_event_now(a->event, CLOCK_MONOTONIC, &now) < 0)
		return false;
	if (g->reasserts == 0 || now - g->window_usec >= REASSERT_WINDOW_USEC) {
		g->window_usec = now;
		g->reasserts = 0;
	}
	if (g->reasserts >= a->reassert_limit)
		return false;
	g->reasserts++;
	return true;
}

/* Someone wrote theirs over ours. The journal needs no change: ours is still ours. */
static int value_contested(ApplyGroup *g, Record *record, uint64_t theirs)
{
	const Apply *a = g->apply;
	int r = 0;

	/* What is ours for a moment is his for longer. */
	if (!(g->passing && record->limit == DMEM_MAX) && may_reassert(g))
		r = apply_write(g, record, theirs, record->ours);
	else
		record->yielded = true;
	record->known = !record->yielded && r >= 0;
	/* Then the next plan reads what there is, and tries again. */
	if (r < 0)
		return log_debug_errno(r, "Failed to reassert %s of \"%s\": %m",
				dmem_limit_to_file(record->limit), g->path);
	if (a->hooks.contested)
		a->hooks.contested(g->path, record->region, record->limit, record->ours, theirs,
				record->yielded, a->userdata);
	return 0;
}

static int group_check_values(ApplyGroup *g, DmemLimit limit)
{
	const Journal *j = &g->apply->journal;
	size_t i = journal_first(j, g->path);
	int r;

	for (; i < j->n && streq(j->records[i]->path, g->path); i++) {
		Record *record = j->records[i];
		uint64_t now;

		if (record->kind != RECORD_VALUE || record->limit != limit || !record->known)
			continue;
		r = cgroup_get_limit(g->cgroup, limit, record->region, &now);
		if (apply_is_gone(r))
			return r;
		/* A region that is not there any more is the next plan's business. */
		if (r < 0 || now == record->ours)
			continue;
		r = value_contested(g, record, now);
		if (r < 0)
			return r;
	}
	return 0;
}

static void on_limit_changed(ApplyGroup *g, DmemLimit limit)
{
	if (g->suspect)
		return; /* said already; the next plan reads everything */
	if (!apply_group_css_changed(g) && group_check_values(g, limit) >= 0)
		return;
	g->suspect = true;
	tell_lost(g->apply, g->path);
}

/* --- Controllers and groups ------------------------------------------------------------------ */

static bool is_child(const ApplyGroup *g, const ApplyGroup *of)
{
	return apply_group_parent(g) == of;
}

static void on_subtree_control_changed(ApplyGroup *g)
{
	const Apply *a = g->apply;
	bool lost;

	if (!g->inner)
		return;
	g->dmem_on = cgroup_has_dmem_children(g->cgroup) > 0;
	lost = !g->dmem_on;
	for (size_t i = 0; i < a->n_groups; i++) {
		ApplyGroup *child = a->groups[i];

		if (!child->cgroup || !is_child(child, g) || !apply_group_css_changed(child))
			continue;
		child->suspect = true;
		lost = true;
	}
	if (lost)
		tell_lost(a, g->path);
}

/* A child's directory came or went: is the group with this path another one now? */
static void on_child_changed(ApplyGroup *g, const char *name)
{
	Apply *a = g->apply;
	auto_free char *path = NULL;
	ApplyGroup *child;
	uint64_t before;

	/* The first group in it: now it may want dmem. */
	if (g->childless) {
		g->childless = false;
		tell_lost(a, g->path);
	}
	if (asprintf(&path, "%s/%s", streq(g->path, "/") ? "" : g->path, name) < 0) {
		path = NULL;
		return;
	}
	child = apply_group_find(a, path);
	if (!child)
		return;
	before = child->cgroup ? child->cgroup->inode : 0;
	child->suspect = true;
	if (apply_group_refresh(child) < 0)
		return;
	(void)journal_sync(&a->journal);
	if (child->planned && child->cgroup && child->cgroup->inode != before)
		tell_lost(a, child->path);
}

void apply_distrust(Apply *a)
{
	for (size_t i = 0; i < a->n_groups; i++)
		a->groups[i]->suspect = true;
}

static void on_overflow(Apply *a)
{
	apply_distrust(a);
	tell_lost(a, "/");
}

static int on_event(sd_event_source *s _unused_, const struct inotify_event *ev, void *userdata)
{
	ApplyGroup *g = userdata;
	const char *name = ev->len > 0 ? ev->name : "";
	DmemLimit limit = dmem_limit_from_file(name);

	if (ev->mask & IN_Q_OVERFLOW)
		on_overflow(g->apply);
	else if (ev->mask & (IN_DELETE_SELF | IN_IGNORED | IN_UNMOUNT))
		apply_group_forget(g);
	else if (ev->mask & IN_ISDIR && ev->mask & (IN_CREATE | IN_DELETE))
		on_child_changed(g, name);
	else if (ev->mask & IN_ATTRIB && limit >= 0)
		g->owner_checked = false;
	else if (ev->mask & IN_MODIFY && limit >= 0)
		on_limit_changed(g, limit);
	else if (ev->mask & IN_MODIFY && streq(name, "cgroup.subtree_control"))
		on_subtree_control_changed(g);
	return 0;
}

static int on_nested(sd_event_source *s _unused_, int fd _unused_, uint32_t events _unused_, void *userdata)
{
	Apply *a = userdata;
	int r;

	while ((r = sd_event_run(a->event, 0)) > 0)
		;
	return r;
}

/* Before systemd 258 sd-event spins for ever when two sources with different masks share a directory in one
 * loop (systemd issue 38265), and unit-monitor.c watches some of the same ones: so these have a loop, and with
 * it an inotify instance, of their own. */
int apply_watch_init(Apply *a, sd_event *loop)
{
	int r;

	r = sd_event_new(&a->event);
	if (r < 0)
		return r;
	r = sd_event_add_io(loop, &a->nested, sd_event_get_fd(a->event), EPOLLIN, on_nested, a);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(a->nested, "apply-watch");
	return 0;
}

int apply_watch_start(ApplyGroup *g)
{
	return sd_event_add_inotify_fd(g->apply->event, &g->watch, g->cgroup->dir_fd, WATCH_MASK, on_event, g);
}
