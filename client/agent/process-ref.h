/* SPDX-License-Identifier: MIT */
/* Numbers of processes, as X has them -> pidfds that are certainly of the processes that were meant. */
#pragma once

#include "state.h"

/* Opens it if it is this user's and was there before since_usec (CLOCK_BOOTTIME), when its number was told: one that
 * began later only has the number of the one that was meant. -ESRCH if it has ended or is such a one, -EPERM if it
 * is somebody else's. comm, if not NULL, is what its name must begin with; else -ESRCH. */
int process_ref_open(pid_t pid, uint64_t since_usec, const char *comm, ProcessRef *ret);

/* Those of one source, kept open for as long as it names them. */
typedef struct ProcessSet {
	ProcessRef *v;
	bool *used;
	size_t n, n_alloc, used_alloc;
} ProcessSet;

void process_set_done(ProcessSet *s);
void process_set_begin(ProcessSet *s);
/* From the set, or opened; the set owns it. A number that was named without a break stays that of the process that
 * had it first: -ESRCH once that one has ended. */
int process_set_get(ProcessSet *s, pid_t pid, uint64_t since_usec, ProcessRef *ret);
/* Closes those that were not asked for since process_set_begin(). */
void process_set_end(ProcessSet *s);

uint64_t boottime_usec(void);
/* A file of /proc/PID, by number: whoever must be sure whose it is looks at a pidfd afterwards. -ESRCH: it has ended.
 * The caller frees; ret_size may be NULL. */
int process_read(pid_t pid, const char *file, char **ret, size_t *ret_size);
/* Did the process's environment, as it began, have this variable? */
bool process_ref_has_environ(const ProcessRef *p, const char *name);
/* Its control groups, as the kernel lists them: only to be compared with those of others. */
int process_ref_get_cgroup(const ProcessRef *p, char **ret);
/* Is this compositor a window of another one, by the environment that it began with? */
bool process_ref_is_nested(const ProcessRef *compositor);
/* Its name, for people; "?" if it cannot be read. */
void process_ref_get_comm(const ProcessRef *p, char buf[static 16]);
