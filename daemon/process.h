/* SPDX-License-Identifier: MIT */
/* Layer 1. A process that somebody named by pidfd, and the unit that it lives in.
 *
 * Pids are only ever used together with a pidfd that is checked again after /proc was read, so
 * that a recycled pid is never taken for the process that was meant.
 * Source: pidfd_open(2), proc(5). */
#pragma once

#include <sys/types.h>

#include "fileio.h"

typedef struct Process {
	unsigned n_ref;
	int pidfd;   /* owned */
	uint64_t id; /* process_get_id() */
	pid_t pid;
	uid_t uid;   /* real uid when it was opened */
	char *cgroup; /* path of its control group when last asked; changed by process_refresh() */
	bool watched; /* somebody waits for its end in an event loop, and then sets ended */
	bool ended;
} Process;

/* A number that no other living process has: of two pidfds with the same one both name one process. One system
 * call since Linux 6.9. Errors as of process_new(). */
int process_get_id(int pidfd, uint64_t *ret);

/* Takes a duplicate of pidfd. -ESRCH if the process has ended or lives in a pid namespace that
 * we cannot see into, -EBADF if the fd is no pidfd, -EACCES or -EPERM if /proc hides it; further
 * errors of process_parse_cgroup(). */
int process_new(const Roots *roots, int pidfd, Process **ret);
Process *process_ref(Process *p);
Process *process_unref(Process *p);
DEFINE_CLEANUP(Process *, process_unref)
#define auto_process _cleanup_(process_unrefp)

/* Reads its control group again: 1 if it moved, 0 if not, -ESRCH if it has ended; errors of
 * process_parse_cgroup(). On an error p->cgroup is what it was. */
int process_refresh(const Roots *roots, Process *p);
/* Has it ended? Of a process that is watched this is what the event loop has seen: no system call. */
bool process_is_alive(const Process *p);
/* Asks the kernel in any case. */
bool process_check_alive(const Process *p);

/* The control group of "0::" in the text of /proc/PID/cgroup, fresh. -ENOENT if the group was
 * removed (" (deleted)"), -EBADMSG if there is no such line or the path is malformed. */
int process_parse_cgroup(const char *text, char **ret);
