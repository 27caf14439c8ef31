/* SPDX-License-Identifier: MIT */
/* Layer 1. Control groups: found with libcgroup, held, listed and written by directory fd.
 *
 * A group's path is always relative to the hierarchy and begins with a slash: "/user.slice".
 * Functions that find a group gone return -ENOENT (by path) or -ENODEV (by fd): ask
 * cgroup_is_gone().
 * Only apply.c and journal.c may call the functions below "Writing".
 * Source: Documentation/admin-guide/cgroup-v2.rst; libcgroup.h. */
#pragma once

#include <sys/types.h>

#include "dmem.h"
#include "fileio.h"

/* --- Finding the hierarchy ------------------------------------------------------------------- */

/* The unified hierarchy, with the dmem controller in it. */
typedef struct Hierarchy {
	char *mount_point;
	int root_fd;      /* O_PATH directory of the root group */
	bool relocated;   /* below --root: libcgroup only knows the running system's mounts */
} Hierarchy;

/* Opens the hierarchy: asks libcgroup for the mount point of "dmem" on the running system, or
 * takes roots->cgroup when relocated. -EOPNOTSUPP when vramd cannot work here; *ret_reason is
 * then a static sentence, without capital and full stop, that says why (legacy or hybrid
 * hierarchy, kernel without dmem). */
int hierarchy_open(const Roots *roots, Hierarchy *ret, const char **ret_reason);
void hierarchy_done(Hierarchy *h);
#define auto_hierarchy _cleanup_(hierarchy_done)

/* Why no usable dmem controller is mounted, from the text of /proc/self/mounts and
 * /proc/cgroups. */
const char *hierarchy_explain(const char *mounts, const char *cgroups);

/* --- Listing --------------------------------------------------------------------------------- */

/* Processes directly in a group, sorted. The caller frees. -EOPNOTSUPP for a threaded group, whose
 * processes are those of its domain. */
int cgroup_procs(const Hierarchy *h, const char *path, pid_t **ret, size_t *ret_n);

/* Names of the direct child groups, sorted. The caller frees with strv_free(). */
int cgroup_children(const Hierarchy *h, const char *path, char ***ret);

/* --- One group ------------------------------------------------------------------------------- */

/* A group held open: still the same group when its path was taken by a new one. */
typedef struct Cgroup {
	char *path;
	int dir_fd;
	uint64_t inode; /* of the directory: another number = another group */
	int limit_fds[_DMEM_LIMIT_MAX]; /* open once something was written; else -EBADF */
	int current_fd;                 /* open once it was read; else -EBADF */
} Cgroup;

/* -EINVAL for a path that cgroup_path_check() refuses. */
int cgroup_open(const Hierarchy *h, const char *path, Cgroup **ret);
Cgroup *cgroup_close(Cgroup *g); /* not "free": libcgroup exports that name */
DEFINE_CLEANUP(Cgroup *, cgroup_close)
#define auto_cgroup _cleanup_(cgroup_closep)

static inline bool cgroup_is_gone(int r)
{
	return r == -ENOENT || r == -ENODEV;
}

/* All functions below that read or write a dmem file: -EOPNOTSUPP if the group lives but has no
 * such file, so its parent does not distribute dmem (or, for dmem.peak, the kernel is older than
 * 7.3). */

/* Whole tables: "dmem.current", "dmem.capacity", "dmem.peak". */
int cgroup_read_table(const Cgroup *g, const char *file, DmemTable *ret);
/* dmem.current, for those who read it again and again: the file stays open. */
int cgroup_read_current(Cgroup *g, DmemTable *ret);
/* dmem.events, open for poll(2), which says EPOLLPRI when it changed since it was read. -EOPNOTSUPP also where the
 * kernel has none. */
int cgroup_open_events(const Cgroup *g);
/* The text of an open one. The caller frees. -ENODEV: the group is gone, or dmem was switched off meanwhile. */
int cgroup_read_events(int fd, char **ret);
/* The same from the group, which leaves those alone who wait. */
int cgroup_get_events(const Cgroup *g, char **ret);
/* One limit of one region; -ENXIO when the region is not there (any more). */
int cgroup_get_limit(const Cgroup *g, DmemLimit limit, const char *region, uint64_t *ret);
/* 1 if a process lives in the group or below it, 0 if none does. */
int cgroup_is_populated(const Cgroup *g);
/* 1 if its children have dmem (dmem is in cgroup.subtree_control), else 0. */
int cgroup_has_dmem_children(const Cgroup *g);

/* --- Writing --------------------------------------------------------------------------------- */

/* One write(2); -ENXIO if the region is not there (any more). dmem.max is set without waiting for
 * what exceeds it to be evicted. */
int cgroup_set_limit(Cgroup *g, DmemLimit limit, const char *region, uint64_t value);
/* Reads back: -ESTALE if the kernel shows another value. It takes some that it then does not keep. */
int cgroup_check_limit(const Cgroup *g, DmemLimit limit, const char *region, uint64_t value);
/* "+dmem" or "-dmem" in cgroup.subtree_control. -EBUSY: it has processes of its own, or a child
 * still distributes dmem. -EOPNOTSUPP: it has no dmem itself, or is threaded. */
int cgroup_set_dmem_children(const Cgroup *g, bool enable);

/* Owner and mode of the three limit files (one owner for all three; read from dmem.low). */
typedef struct FileOwner {
	uid_t uid;
	gid_t gid;
	mode_t mode; /* permission bits */
} FileOwner;
int cgroup_get_owner(const Cgroup *g, FileOwner *ret);
int cgroup_set_owner(const Cgroup *g, const FileOwner *owner);

/* --- Paths: pure text ------------------------------------------------------------------------ */

/* Number of components: 0 for "/", 2 for "/a/b". */
unsigned cgroup_path_depth(const char *path);
/* -EINVAL unless it begins with a slash, has no empty, "." or ".." component, no control character,
 * and is shorter than PATH_MAX. */
int cgroup_path_check(const char *path);
/* The parent's path, fresh; "/" has none: -ENOENT. */
int cgroup_path_parent(const char *path, char **ret);
/* True if path is ancestor itself or below it. */
bool cgroup_path_is_below(const char *path, const char *ancestor);
