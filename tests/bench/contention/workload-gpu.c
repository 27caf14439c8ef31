/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <time.h>

#include <xf86drm.h>

#include "node.h"
#include "vramsim_uapi.h"

#include "workload.h"

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Counts the time, and what was refused for want of memory (1). */
static int gpu_ioctl(Gpu *gpu, unsigned long request, void *arg)
{
	uint64_t begin = now_ns(), took;
	int r = drmIoctl(gpu->fd, request, arg) < 0 ? -errno : 0;

	took = now_ns() - begin;
	gpu->report.ioctl_ns += took;
	if (request == DRM_IOCTL_VRAMSIM_SUBMIT)
		gpu->report.stall_ns = MAX(gpu->report.stall_ns, took);
	/* -EBUSY and -EDEADLK: what would have to go is locked by somebody else. */
	if (r != -ENOMEM && r != -ENOSPC && r != -EBUSY && r != -EDEADLK)
		return r;
	gpu->report.failed++;
	return 1;
}

int gpu_open(Gpu *gpu, const char *path)
{
	return vramsim_open(path, &gpu->fd);
}

int gpu_create(Gpu *gpu, uint64_t size, uint32_t flags, uint32_t *ret_handle)
{
	struct drm_vramsim_create create = { .size = size, .flags = flags };
	int r = gpu_ioctl(gpu, DRM_IOCTL_VRAMSIM_CREATE, &create);

	if (r >= 0)
		*ret_handle = r == 0 ? create.handle : 0;
	return r < 0 ? r : 0;
}

int gpu_use(Gpu *gpu, uint32_t handle)
{
	Buffers *used = &gpu->used;

	if (!GROW(used->handles, used->n_alloc, used->n))
		return -ENOMEM;
	used->handles[used->n++] = handle;
	return 0;
}

int gpu_close(Gpu *gpu, uint32_t handle)
{
	Buffers *used = &gpu->used;

	for (size_t i = used->n; i-- > 0;)
		if (used->handles[i] == handle) {
			memmove(&used->handles[i], &used->handles[i + 1], (used->n - i - 1) * sizeof(handle));
			used->n--;
		}
	return drmCloseBufferHandle(gpu->fd, handle) < 0 ? -errno : 0;
}

int gpu_submit(Gpu *gpu)
{
	struct drm_vramsim_submit submit = {
		.handles = (uintptr_t)gpu->used.handles,
		.n = (uint32_t)gpu->used.n,
		.flags = VRAMSIM_SUBMIT_ALL_PRIVATE | (gpu->backoff ? VRAMSIM_SUBMIT_BACKOFF : 0),
		.hold_us = gpu->hold_us,
	};
	int r = gpu_ioctl(gpu, DRM_IOCTL_VRAMSIM_SUBMIT, &submit);

	if (r == 0) {
		gpu->report.resident = submit.resident;
		gpu->report.spilled = submit.spilled;
		gpu->report.retries = MAX(gpu->report.retries, submit.retries);
		gpu->report.submits++;
	}
	return r < 0 ? r : 0;
}

int gpu_set_priority(Gpu *gpu, uint32_t handle, uint32_t priority)
{
	struct drm_vramsim_set_priority set = { .handle = handle, .priority = priority };

	return drmIoctl(gpu->fd, DRM_IOCTL_VRAMSIM_SET_PRIORITY, &set) < 0 ? -errno : 0;
}

int gpu_in_vram(Gpu *gpu, uint32_t handle, bool *ret)
{
	struct drm_vramsim_bo_info info = { .handle = handle };

	if (drmIoctl(gpu->fd, DRM_IOCTL_VRAMSIM_BO_INFO, &info) < 0)
		return -errno;
	*ret = info.mem_type == VRAMSIM_MEM_VRAM;
	return 0;
}

int gpu_flip(Gpu *gpu, uint32_t handle)
{
	struct drm_vramsim_flip flip = { .handle = handle };
	int r = gpu_ioctl(gpu, DRM_IOCTL_VRAMSIM_FLIP, &flip);

	return r < 0 ? r : 0;
}

int gpu_count_moved(Gpu *gpu)
{
	struct drm_vramsim_stats stats = { 0 };

	if (drmIoctl(gpu->fd, DRM_IOCTL_VRAMSIM_STATS, &stats) < 0)
		return -errno;
	gpu->report.moved = stats.in + stats.out;
	gpu->report.out = stats.out;
	gpu->report.evictions = stats.evictions;
	return 0;
}

int gpu_export(Gpu *gpu, uint32_t handle, int *ret_fd)
{
	return drmPrimeHandleToFD(gpu->fd, handle, DRM_CLOEXEC | DRM_RDWR, ret_fd) < 0 ? -errno : 0;
}

int gpu_import(Gpu *gpu, int fd, uint32_t *ret_handle)
{
	return drmPrimeFDToHandle(gpu->fd, fd, ret_handle) < 0 ? -errno : 0;
}

void gpu_done(Gpu *gpu)
{
	gpu->fd = close_fd(gpu->fd);
	free(gpu->used.handles);
}
