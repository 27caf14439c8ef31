/* SPDX-License-Identifier: MIT */
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "pidfd.h"
#include "util.h"

/* linux/magic.h of Linux 6.9 */
#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446
#endif

dev_t pidfs_device(void)
{
	auto_close int own = pidfd_open(getpid(), 0);
	struct statfs fs;
	struct stat st;

	if (own >= 0 && fstatfs(own, &fs) >= 0 && fs.f_type == PID_FS_MAGIC && fstat(own, &st) >= 0)
		return st.st_dev;
	return 0;
}

int pidfs_get_inode(dev_t pidfs, int pidfd, uint64_t *ret)
{
	struct stat st;

	if (fstat(pidfd, &st) < 0)
		return -errno;
	if (st.st_dev != pidfs)
		return -EBADF;
	*ret = st.st_ino;
	return 0;
}
