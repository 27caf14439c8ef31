/* SPDX-License-Identifier: MIT */
/* Layer 0. What tells processes apart by their pidfds. Source: pidfd_open(2), fs/pidfs.c of Linux 6.9. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* The file system of pidfds, where each process has an inode of its own that no later one gets; 0 before Linux 6.9.
 * It costs a few system calls: whoever asks remembers it. */
dev_t pidfs_device(void);
/* That inode, with one system call; -EBADF for a fd that is no pidfd. */
int pidfs_get_inode(dev_t pidfs, int pidfd, uint64_t *ret);
