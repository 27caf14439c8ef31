/* SPDX-License-Identifier: MIT */
/* What vramctl doctor finds out. The checks read procfs and cgroupfs, and write nothing. */
#pragma once

#include "client.h"

typedef enum Level {
	LEVEL_OK,
	LEVEL_NOTE,    /* good to know, nothing is wrong */
	LEVEL_WARNING, /* works, but less well than it could */
	LEVEL_PROBLEM, /* vramd cannot do its job */
} Level;
const char *level_to_string(Level level);

typedef struct Finding {
	Level level;
	const char *check; /* static: a stable name, see vramctl(1) */
	char *text;        /* what is the case */
	const char *advice; /* static: what to do about it; NULL = nothing */
} Finding;

typedef struct Doctor {
	char *proc, *cgroup; /* where the two file systems are */
	Finding *findings;
	size_t n, n_alloc;
	const Snapshot *snapshot; /* NULL: the daemon could not be asked */
	const Kernel *kernel;     /* NULL as well then */
	bool dmem;                /* the kernel has it; set by doctor_check_kernel() */
} Doctor;

#define DOCTOR_SERIES_ADVICE "Nothing, or try the companion kernel series: man 7 vramd-kernel."

/* advice may be NULL. */
void doctor_add(Doctor *d, Level level, const char *check, const char *advice, const char *format, ...)
	_printf_(5, 6);

/* The first patch of the companion series only takes lines away, so nobody can see it: probably, if others are there. */
bool doctor_protects_below_root(const Doctor *d);

/* The kernel and its control groups, without the daemon's help. */
void doctor_check_kernel(Doctor *d);
/* System services that hold video memory. */
void doctor_check_services(Doctor *d);
/* Other programs that write the same values. */
void doctor_check_rivals(Doctor *d);
/* What the companion kernel series would give. */
void doctor_check_series(Doctor *d);
/* Who sees which game is in front. */
void doctor_check_focus(Doctor *d);
/* What the daemon says: state, abilities, regions, and whether its values still stand. */
void doctor_check_daemon(Doctor *d);
