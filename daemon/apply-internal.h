/* SPDX-License-Identifier: MIT */
/* Private to apply*.c. apply.c turns plans into writes, apply-restore.c puts back, apply-watch.c hears what
 * others do, apply-group.c holds the groups that are open, apply-knobs.c has the knobs.
 *
 * What is believed about the tree without reading it again (Record.known, dmem_on, owner_checked, childless,
 * absent_in, which the parent's watch would end) holds only while the group's directory is watched; an event, or having no watch, makes the group suspect, and a
 * suspect group is opened and read anew before anything is concluded from it. */
#pragma once

#include "apply.h"

#define REASSERT_WINDOW_USEC (60 * USEC_PER_SEC)

typedef struct ApplyGroup {
	Apply *apply;
	char *path;
	Cgroup *cgroup;          /* NULL: there is no such group now */
	sd_event_source *watch;  /* NULL: not watched */
	uint64_t css_inode;      /* of a dmem file; another one: dmem was off, every value is gone. 0: unknown */
	bool suspect;            /* open and read anew */
	bool planned;            /* has a claim in the last plan, or is above one that has */
	bool inner;              /* its children need dmem */
	bool optional;           /* for their charges alone: no claim waits for it */
	bool dmem_on;            /* its children have dmem */
	bool owner_checked;      /* its files are ours or root's */
	bool childless;          /* no group is in it */
	bool passing;            /* its dmem.max is ours for a moment only */
	uint64_t absent_in;      /* inode of the parent in which there was no such group; 0: not looked for */

	/* While a plan is applied: */
	const PlanGroup *plan;   /* its claims; NULL: none */
	bool broken;             /* cannot be opened: left alone */
	bool gone;               /* went away meanwhile */
	bool dmem_wanted;        /* "+dmem" is going to be written */
	bool css_pending;        /* its files will come with its parent's "+dmem" */
	bool owner_wanted;       /* its files are going to be chowned */

	uint64_t window_usec;    /* start of the minute that reasserts counts */
	unsigned reasserts;
} ApplyGroup;

struct Apply {
	const Hierarchy *hierarchy;
	const Roots *roots;
	Journal journal;
	bool dry_run;
	sd_event *event;         /* of the watches alone, within the caller's loop; NULL: nothing is watched */
	sd_event_source *nested; /* event in the caller's loop */
	ApplyHooks hooks;
	void *userdata;
	Ownership ownership;
	unsigned reassert_limit;
	char **charged;          /* paths; NULL: none */
	bool chown_refused;      /* without CAP_CHOWN exclusive is the same as share */

	ApplyGroup **groups;     /* by path, so parents come first */
	size_t n_groups, n_alloc;
};

/* The group is gone, or it is there and dmem is not: what was written there is gone in any case. */
static inline bool apply_is_gone(int r)
{
	return cgroup_is_gone(r) || r == -EOPNOTSUPP;
}

/* --- apply-group.c --------------------------------------------------------------------------- */

ApplyGroup *apply_group_find(const Apply *a, const char *path);
int apply_group_get(Apply *a, const char *path, ApplyGroup **ret);
/* NULL: the root, or one that nothing is planned in. */
ApplyGroup *apply_group_parent(const ApplyGroup *g);
/* Frees the groups that no plan and no value or owner needs; with that their watches. */
void apply_groups_prune(Apply *a);
void apply_groups_free(Apply *a);

/* Makes sure that the handle is the group which has this path now. Records of an earlier group there, or of
 * values that dmem's absence wiped out, are dropped. 0 also if there is none: then cgroup is NULL. */
int apply_group_refresh(ApplyGroup *g);
/* Drops the handle and every record. */
void apply_group_forget(ApplyGroup *g);
/* True if dmem was switched off, or off and on, since css_inode was noted. */
bool apply_group_css_changed(const ApplyGroup *g);
void apply_group_note_css(ApplyGroup *g);

/* --- apply.c --------------------------------------------------------------------------------- */

/* One value, unless dry run; tells hooks->written. */
int apply_write(ApplyGroup *g, const Record *record, uint64_t from, uint64_t to);
/* 1: the present value (*ret) is ours and has to go; 0: there is nothing to put back. */
int apply_must_put_back(const ApplyGroup *g, const Record *record, uint64_t *ret);
int apply_give_owner_back(ApplyGroup *g, const Record *record);
/* Keeps the first error, but never "it is gone". */
void apply_keep_error(int *first, int r);

/* --- apply-knobs.c --------------------------------------------------------------------------- */

void apply_restore_knobs(Apply *a, int *first);

/* --- apply-watch.c --------------------------------------------------------------------------- */

int apply_watch_init(Apply *a, sd_event *loop);
int apply_watch_start(ApplyGroup *g);
