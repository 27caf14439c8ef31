/* SPDX-License-Identifier: MIT */
#include "client.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

int failures;

void check(const char *file, int line, const char *text, int64_t got, int64_t want)
{
	if (got == want)
		return;
	printf("FAIL: %s:%d: %s = %" PRId64 ", want %" PRId64 "\n", file, line, text, got, want);
	failures++;
}

int call(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

int create(int fd, uint64_t size, uint32_t flags, uint32_t *ret_handle)
{
	struct drm_vramsim_create args = { .size = size, .flags = flags };
	int r = call(fd, DRM_IOCTL_VRAMSIM_CREATE, &args);

	if (r == 0 && ret_handle)
		*ret_handle = args.handle;
	return r;
}

int submit(int fd, const uint32_t *handles, uint32_t n, uint32_t flags, struct drm_vramsim_submit *ret)
{
	struct drm_vramsim_submit args = {
		.handles = (uintptr_t)handles,
		.n = n,
		.flags = flags,
	};
	int r = call(fd, DRM_IOCTL_VRAMSIM_SUBMIT, &args);

	if (r == 0 && ret)
		*ret = args;
	return r;
}

int flip(int fd, uint32_t handle, uint64_t *ret_moved)
{
	struct drm_vramsim_flip args = { .handle = handle };
	int r = call(fd, DRM_IOCTL_VRAMSIM_FLIP, &args);

	if (r == 0 && ret_moved)
		*ret_moved = args.moved;
	return r;
}

int info(int fd, uint32_t handle, uint32_t flags, struct drm_vramsim_bo_info *ret)
{
	struct drm_vramsim_bo_info args = { .handle = handle, .flags = flags };
	int r = call(fd, DRM_IOCTL_VRAMSIM_BO_INFO, &args);

	if (r == 0)
		*ret = args;
	return r;
}

struct drm_vramsim_stats stats(int fd)
{
	struct drm_vramsim_stats s = {};

	CHECK(call(fd, DRM_IOCTL_VRAMSIM_STATS, &s), 0);
	return s;
}

uint64_t used_after_frees(int fd, uint64_t used)
{
	const struct timespec moment = { .tv_nsec = 10 * 1000 * 1000 };
	int i;

	for (i = 0; i < 500 && stats(fd).vram_used > used; i++)
		nanosleep(&moment, NULL);
	return stats(fd).vram_used;
}

int open_or_exit(const char *node)
{
	int fd = open(node, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		fprintf(stderr, "%s: %m\n", node);
		exit(EXIT_FAILURE);
	}
	return fd;
}

uint64_t *map(int fd, uint32_t handle, uint64_t size)
{
	struct drm_vramsim_mmap args = { .handle = handle };
	void *memory;

	if (call(fd, DRM_IOCTL_VRAMSIM_MMAP, &args) < 0)
		return NULL;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)args.offset);
	return memory == MAP_FAILED ? NULL : memory;
}
