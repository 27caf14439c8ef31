/* SPDX-License-Identifier: MIT */
#include "apply-internal.h"
#include "log.h"

/* Opens everything that a record names, and trusts nothing that was known about it. */
static int restore_open(Apply *a, int *first)
{
	ApplyGroup *g;
	int r;

	for (size_t i = 0; i < a->journal.n; i++) {
		r = apply_group_get(a, a->journal.records[i]->path, &g);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < a->n_groups; i++) {
		g = a->groups[i];
		g->planned = g->inner = g->gone = g->css_pending = false;
		g->plan = NULL;
		g->suspect = true;
		r = apply_group_refresh(g);
		g->broken = r < 0;
		apply_keep_error(first, r);
	}
	return 0;
}

/* The three below return 1 when the record has had its day. */

static int restore_value(ApplyGroup *g, Record *record)
{
	uint64_t now;
	int r;

	r = apply_must_put_back(g, record, &now);
	if (r <= 0)
		return r < 0 ? r : 1;
	r = apply_write(g, record, now, record->old);
	return r >= 0 || apply_is_gone(r) || r == -ENXIO ? 1 : r;
}

static int restore_owner(ApplyGroup *g, Record *record)
{
	int r = apply_give_owner_back(g, record);

	return r < 0 ? r : 1;
}

/* What "-dmem" in its parent would take from a group: a file's name, or NULL. */
static const char *group_would_lose(const Cgroup *g)
{
	for (DmemLimit limit = 0; limit < _DMEM_LIMIT_MAX; limit++) {
		auto_dmem_table DmemTable table = {};

		if (cgroup_read_table(g, dmem_limit_to_file(limit), &table) < 0)
			continue;
		for (size_t i = 0; i < table.n; i++)
			if (table.entries[i].value != dmem_limit_default(limit))
				return dmem_limit_to_file(limit);
	}

	auto_dmem_table DmemTable current = {};

	if (cgroup_read_table(g, "dmem.current", &current) < 0)
		return NULL;
	for (size_t i = 0; i < current.n; i++)
		if (current.entries[i].value > 0)
			return "dmem.current";
	return NULL;
}

/* 1 if a child would lose something. */
static int children_would_lose(const ApplyGroup *g)
{
	auto_strv char **names = NULL;
	int r;

	r = cgroup_children(g->apply->hierarchy, g->path, &names);
	if (r < 0)
		return r;
	for (char **name = names; *name; name++) {
		auto_free char *path = NULL;
		auto_cgroup Cgroup *child = NULL;
		const char *file;

		if (asprintf(&path, "%s/%s", streq(g->path, "/") ? "" : g->path, *name) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		r = cgroup_open(g->apply->hierarchy, path, &child);
		if (apply_is_gone(r))
			continue;
		if (r < 0)
			return r;
		file = group_would_lose(child);
		if (file) {
			log_info("Leaving dmem enabled in \"%s\": \"%s\" has a %s.", g->path, path, file);
			return 1;
		}
	}
	return 0;
}

static int restore_dmem(ApplyGroup *g, Record *record _unused_)
{
	int r;

	if (g->apply->dry_run)
		return 1;
	r = cgroup_has_dmem_children(g->cgroup);
	if (r == 0 || apply_is_gone(r))
		return 1;
	if (r > 0)
		r = children_would_lose(g);
	if (r != 0)
		return r > 0 ? 0 : r;
	r = cgroup_set_dmem_children(g->cgroup, false);
	if (r == -EBUSY) {
		log_info("Leaving dmem enabled in \"%s\": a group in it distributes it.", g->path);
		return 0;
	}
	return r >= 0 || apply_is_gone(r) ? 1 : r;
}

/* One kind, children before their parents. */
static void restore_kind(Apply *a, RecordKind kind, int (*restore)(ApplyGroup *, Record *), int *first)
{
	for (size_t i = a->journal.n; i-- > 0;) {
		Record *record = a->journal.records[i];
		ApplyGroup *g;
		int r;

		if (record->kind != kind)
			continue;
		g = apply_group_find(a, record->path);
		if (g->broken)
			continue;
		r = g->cgroup ? restore(g, record) : 1;
		if (r > 0)
			journal_remove(&a->journal, record);
		apply_keep_error(first, r);
	}
}

int apply_restore(Apply *a)
{
	int first = 0, r;

	r = restore_open(a, &first);
	if (r < 0)
		return r;
	restore_kind(a, RECORD_VALUE, restore_value, &first);
	restore_kind(a, RECORD_OWNER, restore_owner, &first);
	restore_kind(a, RECORD_DMEM, restore_dmem, &first);
	apply_restore_knobs(a, &first);
	apply_groups_prune(a);
	r = journal_sync(&a->journal);
	return first < 0 ? first : r;
}
