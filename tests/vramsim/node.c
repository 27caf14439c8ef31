/* SPDX-License-Identifier: MIT */
#include <fcntl.h>

#include <xf86drm.h>

#include "node.h"
#include "util.h"
#include "vramsim_uapi.h"

int vramsim_open(const char *node, int *ret_fd)
{
	auto_close int fd = open(node, O_RDWR | O_CLOEXEC);
	drmVersion *version;
	bool ours;

	if (fd < 0)
		return -errno;
	version = drmGetVersion(fd);
	ours = version && streq(version->name, VRAMSIM_DRIVER_NAME);
	drmFreeVersion(version);
	if (!ours)
		return -ENODEV;
	*ret_fd = TAKE_FD(fd);
	return 0;
}
