/* SPDX-License-Identifier: MIT */
/* Layer 3. The only writer to cgroupfs: makes the tree look like a plan, and puts everything back.
 *
 * Rises go top-down (an ancestor must promise before its child can), falls go bottom-up after them, so
 * that nobody who stays protected has a gap. What already holds is not written. A region is one
 * write(2), read back. Groups that vanish are dropped without a word. The kernel's knobs, which are no part of the
 * tree, have the same journal and the same rules. */
#pragma once

#include <systemd/sd-event.h>

#include "journal.h"
#include "policy.h"

typedef struct Apply Apply;

/* Any may be NULL. A hook must not call into apply again: it notes what there is to do. */
typedef struct ApplyHooks {
	/* A value was written (or, in a dry run, would have been). */
	void (*written)(const char *path, const char *region, DmemLimit limit, uint64_t old, uint64_t value,
			void *userdata);
	/* A stranger wrote one of our values; yielded: we stopped writing it again. Called from the loop,
	 * after ours was written again. */
	void (*contested)(const char *path, const char *region, DmemLimit limit, uint64_t ours, uint64_t theirs,
			  bool yielded, void *userdata);
	/* Something under a group that we hold changed so that the plan must be applied anew: dmem was
	 * switched off, a group was made anew. Called from the loop. */
	void (*lost)(const char *path, void *userdata);
	/* A parameter of the kernel's was written (or would have been). */
	void (*knob_written)(Knob knob, uint32_t old, uint32_t value, void *userdata);
	/* A stranger wrote another value than ours, which stays. */
	void (*knob_yielded)(Knob knob, uint32_t ours, uint32_t theirs, void *userdata);
} ApplyHooks;

/* Opens (or, after a crash, takes over) the journal in runtime_dir. event may be NULL (--restore): then
 * nothing is watched, and each value is read before it is trusted. With dry_run the journal is neither read
 * nor written, nothing is watched, and what would have been written counts as written. h must outlive it;
 * hooks is copied. */
int apply_new(const Hierarchy *h, const Roots *roots, const char *runtime_dir, bool dry_run, sd_event *event,
	      const ApplyHooks *hooks, void *userdata, Apply **ret);
Apply *apply_free(Apply *a); /* does not put anything back: call apply_restore() for that */
DEFINE_CLEANUP(Apply *, apply_free)
#define auto_apply _cleanup_(apply_freep)

/* Takes effect with the next plan. reassert_limit: times a minute, for one group. At first exclusive and 6. */
void apply_set_ownership(Apply *a, Ownership ownership, unsigned reassert_limit);

/* Makes the tree look like the plan; records that the plan does not name are put back. Errors on single
 * groups do not stop the rest: the first one is returned at the end (never for a group that is gone).
 * A region named in the records and not in the plan's regions has vanished: its records are dropped.
 * +dmem is never taken away here, only by apply_restore(): the next game needs it again. -ENOSPC: more than
 * JOURNAL_RECORDS_MAX values. When the journal cannot be written nothing else is either. */
int apply_plan(Apply *a, const Plan *plan);

/* Inner groups whose children's memory is to be charged to each of them: every plan switches dmem on in and above
 * these, whether or not it claims anything there. Takes paths (NULL-terminated) over. */
void apply_set_charged(Apply *a, char **paths);

/* Starts a child that waits until what is above our ceilings (dmem.max) in these groups has been moved out, which
 * the writes of a plan do not: 1 and its pid, or 0 where there is none, and in a dry run. Whoever kills it knows only
 * once it has ended that it writes no more. */
int apply_enforce_max(const Apply *a, char *const *paths, size_t n, pid_t *ret);
/* A value that such a child may have written after it was put back: the next plan looks, and puts it back again. */
int apply_expect_max(Apply *a, const char *path, const char *region, uint64_t old, uint64_t ours);

/* What was read or written before is not trusted any more: the next plan reads everything again. After
 * sleep, and when systemd reloaded. */
void apply_distrust(Apply *a);

/* Puts back every knob, value, owner and subtree_control that is still ours, bottom-up. +dmem stays (and so does
 * its record, for the next run) where a child below holds a value that is not ours or still has device
 * memory charged: taking it away would lose both. That is no error. */
int apply_restore(Apply *a);

/* Makes the knobs what is wished: SET writes, anything else puts back. One whose value a stranger wrote stays his.
 * A knob that needs another one is only on while that one is. results: -ENOENT, the kernel has no such knob (any more),
 * or why it could not be read or written. Negative when the journal could not be written. */
int apply_knobs(Apply *a, const KnobWish wishes[static _KNOB_MAX], int results[static _KNOB_MAX]);
/* The next call may write over a stranger's value, which is then the one that is put back. */
void apply_take_knob(Apply *a, Knob knob);
bool apply_knob_is_ours(const Apply *a, Knob knob);
bool apply_knob_is_yielded(const Apply *a, Knob knob);

/* What holds now: our value of one group, or -ENOENT (also when a stranger has won it, or it could not be
 * written). */
int apply_get(const Apply *a, const char *path, const char *region, DmemLimit limit, uint64_t *ret);

/* A group that is held open anyway, or NULL; valid until the next call that may change it. */
Cgroup *apply_get_cgroup(const Apply *a, const char *path);

/* Calls back for every value that is ours now, parents first. */
typedef void (*apply_each_cb)(const Record *record, void *userdata);
void apply_each(const Apply *a, apply_each_cb cb, void *userdata);
