/* SPDX-License-Identifier: MIT */
/* Whole-file reads and single writes, relative to a directory fd. */
#pragma once

#include <sys/types.h>

#include "util.h"

/* Where the outside world lies. "" for each is the running system; tests and --root put a folder in
 * front. The strings are owned by whoever filled the struct. */
typedef struct Roots {
	char *proc;   /* "/proc" */
	char *cgroup; /* "/sys/fs/cgroup", or where the cgroup2 hierarchy is mounted */
	char *etc;    /* "/etc", "/run", "/usr/lib" and "/sys/module" have this prefix: "" or the --root folder */
	bool relocated;
} Roots;

/* Reads a file of at most max bytes into a fresh NUL-terminated string. -E2BIG when it is longer.
 * ret_size may be NULL. The caller frees. */
int read_file_at(int dir_fd, const char *name, size_t max, char **ret, size_t *ret_size);

/* The same of a file of any length, where the first max bytes are enough. */
int read_head_at(int dir_fd, const char *name, size_t max, char **ret, size_t *ret_size);

/* The same for a file whose text the kernel makes in one piece, as for the files of a process or a control group:
 * all of it with one read(2). */
int read_piece_at(int dir_fd, const char *name, size_t max, char **ret);

/* Writes text with one write(2) to an existing file; neither created nor truncated. For cgroupfs
 * and procfs, where each write is one command. flags: more of them for open(2). -EIO on a short
 * write. */
int write_once_at(int dir_fd, const char *name, const char *text, int flags);

/* Replaces a file atomically: written beside it, then renamed over it. ret_fd, which may be NULL, is open for writing
 * at the end of the new file. */
int write_atomic_at(int dir_fd, const char *name, const char *data, size_t size, mode_t mode, int *ret_fd);
