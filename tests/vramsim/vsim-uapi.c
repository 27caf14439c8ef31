/* SPDX-License-Identifier: MIT */
/* vsim-uapi RENDER-NODE PRIMARY-NODE: does vramsim refuse what its interface forbids, and count right what it allows? */
#include <fcntl.h>

#include <xf86drm.h>

#include "client.h"

#define BAD_HANDLE UINT32_C(0x7fffffff)
#define HIGH_BIT (UINT32_C(1) << 31)

static void test_create(int fd, uint64_t vram)
{
	struct drm_vramsim_create args;
	uint32_t handle = 0, bit;

	CHECK(create(fd, 0, 0, NULL), -EINVAL);
	CHECK(create(fd, vram + 1, 0, NULL), -EINVAL);
	CHECK(create(fd, UINT64_MAX, 0, NULL), -EINVAL);
	for (bit = VRAMSIM_BO_FLAGS + 1; bit; bit <<= 1)
		CHECK(create(fd, 4096, bit, NULL), -EINVAL);
	args = (struct drm_vramsim_create){ .size = 4096, .priority = VRAMSIM_PRIORITY_MAX + 1 };
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_CREATE, &args), -EINVAL);
	args = (struct drm_vramsim_create){ .size = 4096, .pad = 1 };
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_CREATE, &args), -EINVAL);
	CHECK(stats(fd).vram_used, 0);

	for (bit = 0; bit <= VRAMSIM_BO_FLAGS; bit++) {
		CHECK(create(fd, 1, bit, &handle), 0);
		CHECK(stats(fd).vram_used, 4096);
		CHECK(drmCloseBufferHandle(fd, handle), 0);
		CHECK(stats(fd).vram_used, 0);
	}
	CHECK(create(fd, vram, VRAMSIM_BO_VRAM_ONLY, &handle), 0);
	CHECK(stats(fd).vram_used, vram);
	CHECK(drmCloseBufferHandle(fd, handle), 0);
}

static void test_submit_refuses(int fd, uint32_t handle)
{
	uint32_t handles[2] = { handle }, bit;
	struct drm_vramsim_submit args = {
		.handles = (uintptr_t)handles,
		.n = 1,
		.hold_us = VRAMSIM_HOLD_US_MAX + 1,
	};

	CHECK(call(fd, DRM_IOCTL_VRAMSIM_SUBMIT, &args), -EINVAL);
	CHECK(submit(fd, handles, 0, 0, NULL), -EINVAL);
	CHECK(submit(fd, handles, 0, VRAMSIM_SUBMIT_NO_BULK, NULL), -EINVAL);
	CHECK(submit(fd, handles, VRAMSIM_SUBMIT_MAX + 1, 0, NULL), -EINVAL);
	for (bit = VRAMSIM_SUBMIT_FLAGS + 1; bit; bit <<= 1)
		CHECK(submit(fd, handles, 1, bit, NULL), -EINVAL);
	CHECK(submit(fd, NULL, 1, 0, NULL), -EFAULT);
	CHECK(submit(fd, handles, 2, 0, NULL), -ENOENT);
	handles[1] = BAD_HANDLE;
	CHECK(submit(fd, handles, 2, 0, NULL), -ENOENT);
}

static void test_submit(int fd, uint64_t vram)
{
	uint32_t handles[3] = {}, evicted = 0;
	struct drm_vramsim_submit s = {};
	struct drm_vramsim_stats before;

	CHECK(create(fd, 4096, 0, &handles[0]), 0);
	test_submit_refuses(fd, handles[0]);
	CHECK(submit(fd, NULL, 0, VRAMSIM_SUBMIT_ALL_PRIVATE, &s), 0);
	CHECK(s.resident + s.spilled + s.moved, 0);

	handles[1] = handles[2] = handles[0];
	CHECK(submit(fd, handles, 3, VRAMSIM_SUBMIT_FLAGS, &s), 0);
	CHECK(s.resident, 4096);
	CHECK(s.spilled, 0);
	CHECK(s.moved, 0);
	CHECK(s.retries, 0);

	/* All of VRAM for one buffer: the other goes out, and comes back when there is room again. */
	CHECK(create(fd, vram, VRAMSIM_BO_VRAM_ONLY, &evicted), 0);
	CHECK(submit(fd, handles, 1, 0, &s), 0);
	CHECK(s.spilled, 4096);
	before = stats(fd);
	CHECK(before.evictions, 1);
	CHECK(before.out, 4096);
	CHECK(drmCloseBufferHandle(fd, evicted), 0);
	CHECK(submit(fd, handles, 1, 0, &s), 0);
	CHECK(s.resident, 4096);
	CHECK(s.moved, 4096);
	CHECK(stats(fd).in - before.in, 4096);

	/* Two that cannot be in VRAM together. */
	CHECK(create(fd, vram, VRAMSIM_BO_VRAM_ONLY, &handles[1]), 0);
	CHECK(create(fd, vram, VRAMSIM_BO_VRAM_ONLY, &handles[2]), 0);
	before = stats(fd);
	CHECK(submit(fd, handles + 1, 2, 0, NULL), -ENOMEM);
	CHECK(stats(fd).failed - before.failed, 1);
	CHECK(stats(fd).submits - before.submits, 1);
}

/* The time that the locks are held is part of the time that the attempt took. */
static void test_hold(int fd)
{
	struct drm_vramsim_submit args = { .n = 1, .hold_us = 20000 };
	uint32_t handle = 0;

	CHECK(create(fd, 4096, 0, &handle), 0);
	args.handles = (uintptr_t)&handle;
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_SUBMIT, &args), 0);
	CHECK(args.wait_ns >= 20 * 1000 * 1000, 1);
	args.hold_us = 0;
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_SUBMIT, &args), 0);
	CHECK(args.wait_ns < 20 * 1000 * 1000, 1);
}

static void test_priority(int fd)
{
	struct drm_vramsim_create made = { .size = 4096, .priority = 2 };
	struct drm_vramsim_set_priority args;
	struct drm_vramsim_bo_info i = {};

	CHECK(call(fd, DRM_IOCTL_VRAMSIM_CREATE, &made), 0);
	CHECK(info(fd, made.handle, 0, &i), 0);
	CHECK(i.priority, 2);
	args = (struct drm_vramsim_set_priority){ .handle = made.handle, .priority = 3 };
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_SET_PRIORITY, &args), 0);
	CHECK(info(fd, made.handle, 0, &i), 0);
	CHECK(i.priority, 3);
	args.priority = VRAMSIM_PRIORITY_MAX + 1;
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_SET_PRIORITY, &args), -EINVAL);
	args = (struct drm_vramsim_set_priority){ .handle = BAD_HANDLE };
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_SET_PRIORITY, &args), -ENOENT);
}

static void test_bo_info(int fd)
{
	struct drm_vramsim_bo_info args = {}, i = {};
	uint32_t handle = 0, bit;

	CHECK(create(fd, 5000, 0, &handle), 0);
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_BO_INFO, &args), -ENOENT);
	args = (struct drm_vramsim_bo_info){ .handle = handle, .mem_type = 1 };
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_BO_INFO, &args), -EINVAL);
	args = (struct drm_vramsim_bo_info){ .handle = handle, .pad = 1 };
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_BO_INFO, &args), -EINVAL);
	for (bit = VRAMSIM_BO_INFO_CHECKSUM << 1; bit; bit <<= 1)
		CHECK(info(fd, handle, bit, &i), -EINVAL);
	CHECK(info(fd, handle, 0, &i), 0);
	CHECK(i.size, 8192);
	CHECK(i.mem_type, VRAMSIM_MEM_VRAM);
	CHECK(i.evictions, 0);
	CHECK(i.checksum, 0);
}

/* Without copy=1 there are no contents to read. */
static void test_no_contents(int fd)
{
	struct drm_vramsim_mmap args;
	struct drm_vramsim_bo_info i;
	uint32_t handle = 0;

	CHECK(create(fd, 4096, 0, &handle), 0);
	CHECK(info(fd, handle, VRAMSIM_BO_INFO_CHECKSUM, &i), -EOPNOTSUPP);
	args = (struct drm_vramsim_mmap){ .handle = handle, .pad = 1 };
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_MMAP, &args), -EINVAL);
	args.pad = 0;
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_MMAP, &args), -EOPNOTSUPP);
}

static void test_flip_refuses(int fd)
{
	struct drm_vramsim_flip args = {};
	struct drm_vramsim_stats before;
	uint32_t bit;

	for (bit = VRAMSIM_FLIP_BACKOFF << 1; bit; bit <<= 1) {
		args.flags = bit;
		CHECK(call(fd, DRM_IOCTL_VRAMSIM_FLIP, &args), -EINVAL);
	}
	CHECK(flip(fd, BAD_HANDLE, NULL), -ENOENT);
	before = stats(fd);
	args.flags = VRAMSIM_FLIP_BACKOFF;
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_FLIP, &args), 0);
	CHECK(stats(fd).submits - before.submits, 1);
	CHECK(stats(fd).failed - before.failed, 0);
}

/* A buffer shared with another file is there once, and lives until both have closed it. */
static void test_share(const char *node, int fd)
{
	auto_close int other = open_or_exit(node), dmabuf = -EBADF;
	uint32_t handle = 0, imported = 0;
	uint64_t used = stats(fd).vram_used;
	struct drm_vramsim_submit s = {};

	CHECK(create(fd, 4096, VRAMSIM_BO_SCANOUT, &handle), 0);
	CHECK(drmPrimeHandleToFD(fd, handle, DRM_CLOEXEC, &dmabuf), 0);
	CHECK(drmPrimeFDToHandle(other, dmabuf, &imported), 0);
	CHECK(submit(other, &imported, 1, 0, &s), 0);
	CHECK(s.resident, 4096);
	CHECK(flip(other, imported, NULL), 0);
	CHECK(drmCloseBufferHandle(fd, handle), 0);
	dmabuf = close_fd(dmabuf);
	CHECK(drmCloseBufferHandle(other, imported), 0);
	CHECK(stats(fd).vram_used, used + 4096);
	CHECK(flip(other, 0, NULL), 0);
	CHECK(stats(fd).vram_used, used);
}

/* A private buffer stays with its file. */
static void test_private(const char *node, int fd)
{
	auto_close int other = open_or_exit(node), dmabuf = -EBADF;
	struct drm_vramsim_submit s = {};
	uint32_t handles[3] = {};

	CHECK(create(fd, 4096, VRAMSIM_BO_PRIVATE, &handles[0]), 0);
	CHECK(create(fd, 8192, VRAMSIM_BO_PRIVATE, &handles[1]), 0);
	CHECK(create(fd, 16384, 0, &handles[2]), 0);
	CHECK(drmPrimeHandleToFD(fd, handles[0], DRM_CLOEXEC, &dmabuf), -EPERM);

	CHECK(submit(fd, NULL, 0, VRAMSIM_SUBMIT_ALL_PRIVATE, &s), 0);
	CHECK(s.resident, 4096 + 8192);
	CHECK(submit(other, NULL, 0, VRAMSIM_SUBMIT_ALL_PRIVATE, &s), 0);
	CHECK(s.resident, 0);
	/* Each counts once, and private ones share a lock. */
	CHECK(submit(fd, handles, 3, 0, &s), 0);
	CHECK(s.resident, 4096 + 8192 + 16384);
	CHECK(submit(fd, handles, 3, VRAMSIM_SUBMIT_ALL_PRIVATE, &s), 0);
	CHECK(s.resident, 4096 + 8192 + 16384);
	CHECK(drmCloseBufferHandle(fd, handles[0]), 0);
	CHECK(submit(fd, NULL, 0, VRAMSIM_SUBMIT_ALL_PRIVATE, &s), 0);
	CHECK(s.resident, 8192);
}

/* Names of buffers are no way around that; and each handle of a file counts. */
static void test_private_by_name(const char *primary)
{
	auto_close int fd = open_or_exit(primary), other = open_or_exit(primary);
	struct drm_gem_flink flink = {};
	struct drm_gem_open again = {};
	struct drm_vramsim_submit s = {};

	CHECK(create(fd, 4096, VRAMSIM_BO_PRIVATE, &flink.handle), 0);
	CHECK(call(fd, DRM_IOCTL_GEM_FLINK, &flink), 0);
	again.name = flink.name;
	CHECK(call(other, DRM_IOCTL_GEM_OPEN, &again), -EPERM);
	CHECK(call(fd, DRM_IOCTL_GEM_OPEN, &again), 0);
	CHECK(again.handle != flink.handle, 1);
	CHECK(drmCloseBufferHandle(fd, flink.handle), 0);
	CHECK(submit(fd, NULL, 0, VRAMSIM_SUBMIT_ALL_PRIVATE, &s), 0);
	CHECK(s.resident, 4096);
	CHECK(drmCloseBufferHandle(fd, again.handle), 0);
	CHECK(submit(fd, NULL, 0, VRAMSIM_SUBMIT_ALL_PRIVATE, &s), 0);
	CHECK(s.resident, 0);
}

/* As many as a large game has: when all are in VRAM, a submission only has to see that. */
static void test_many_private(int fd)
{
	const uint64_t limit = 5 * 1000 * 1000;
	uint64_t best = UINT64_MAX;
	int i;

	for (i = 0; i < 9000; i++)
		CHECK(create(fd, 4096, VRAMSIM_BO_PRIVATE, NULL), 0);
	for (i = 0; i < 10; i++) {
		struct drm_vramsim_submit s = { .flags = VRAMSIM_SUBMIT_ALL_PRIVATE };

		CHECK(call(fd, DRM_IOCTL_VRAMSIM_SUBMIT, &s), 0);
		CHECK(s.resident, 9000 * 4096);
		best = MIN(best, s.wait_ns);
	}
	printf("SUBMIT of 9000 private buffers in VRAM: %" PRIu64 " us\n", best / 1000);
	CHECK(best < limit, 1);
}

int main(int argc, char *argv[])
{
	uint64_t vram;
	int fd;

	if (argc != 3) {
		fprintf(stderr, "vsim-uapi: needs the nodes of an unused vramsim\n");
		return 2;
	}
	fd = open_or_exit(argv[1]);
	vram = stats(fd).vram_size;
	CHECK(vram > 0, 1);
	test_create(fd, vram);
	test_submit(fd, vram);
	close(fd);

	/* A file's buffers go with it. */
	fd = open_or_exit(argv[1]);
	CHECK(used_after_frees(fd, 0), 0);
	test_hold(fd);
	test_priority(fd);
	test_bo_info(fd);
	test_no_contents(fd);
	test_flip_refuses(fd);
	test_share(argv[1], fd);
	test_private(argv[1], fd);
	test_private_by_name(argv[2]);
	close(fd);

	fd = open_or_exit(argv[1]);
	test_many_private(fd);
	close(fd);

	printf("vsim-uapi: %d failed\n", failures);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
