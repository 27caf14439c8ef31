/* SPDX-License-Identifier: MIT */
/* vsim-uapi NODE: does vramsim refuse what its interface forbids, and count right what it allows? */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/ioctl.h>

#include <xf86drm.h>

#include "vramsim_uapi.h"

#include "util.h"

static int failures;

#define CHECK(expression, want) check(#expression, (int64_t)(expression), (int64_t)(want), __LINE__)
static void check(const char *text, int64_t got, int64_t want, int line)
{
	if (got == want)
		return;
	printf("FAIL: line %d: %s = %" PRId64 ", want %" PRId64 "\n", line, text, got, want);
	failures++;
}

/* 0 or a negative errno, without drmIoctl()'s retries. */
static int call(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

static int create(int fd, uint64_t size, uint32_t flags, uint32_t *ret_handle)
{
	struct drm_vramsim_create args = { .size = size, .flags = flags };
	int r = call(fd, DRM_IOCTL_VRAMSIM_CREATE, &args);

	if (r == 0 && ret_handle)
		*ret_handle = args.handle;
	return r;
}

static int submit(int fd, const void *handles, uint32_t n, uint32_t flags,
		  struct drm_vramsim_submit *ret)
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

static struct drm_vramsim_stats stats(int fd)
{
	struct drm_vramsim_stats s = {};

	CHECK(call(fd, DRM_IOCTL_VRAMSIM_STATS, &s), 0);
	return s;
}

static void test_create(int fd, uint64_t vram)
{
	uint32_t handle;

	CHECK(create(fd, 0, 0, NULL), -EINVAL);
	CHECK(create(fd, vram + 1, 0, NULL), -EINVAL);
	CHECK(create(fd, UINT64_MAX, 0, NULL), -EINVAL);
	CHECK(create(fd, 4096, VRAMSIM_BO_FLAGS + 1, NULL), -EINVAL);
	CHECK(create(fd, 4096, UINT32_C(1) << 31, NULL), -EINVAL);
	CHECK(stats(fd).vram_used, 0);

	CHECK(create(fd, 1, 0, &handle), 0);
	CHECK(stats(fd).vram_used, 4096);
	CHECK(drmCloseBufferHandle(fd, handle), 0);
	CHECK(stats(fd).vram_used, 0);
	CHECK(create(fd, vram, VRAMSIM_BO_VRAM_ONLY, &handle), 0);
	CHECK(stats(fd).vram_used, vram);
	CHECK(drmCloseBufferHandle(fd, handle), 0);
}

static void test_submit(int fd, uint64_t vram)
{
	uint32_t handles[3] = {}, evicted = 0;
	struct drm_vramsim_submit s = {};
	struct drm_vramsim_stats before;

	CHECK(create(fd, 4096, 0, &handles[0]), 0);
	CHECK(submit(fd, handles, 0, 0, NULL), -EINVAL);
	CHECK(submit(fd, handles, VRAMSIM_SUBMIT_MAX + 1, 0, NULL), -EINVAL);
	CHECK(submit(fd, handles, 1, 1, NULL), -EINVAL);
	CHECK(submit(fd, NULL, 1, 0, NULL), -EFAULT);
	CHECK(submit(fd, handles, 2, 0, NULL), -ENOENT);

	handles[1] = handles[2] = handles[0];
	CHECK(submit(fd, handles, 3, 0, &s), 0);
	CHECK(s.resident, 4096);
	CHECK(s.spilled, 0);
	CHECK(s.moved, 0);

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

static void test_bo_info(int fd)
{
	struct drm_vramsim_bo_info info = {};
	uint32_t handle = 0;

	CHECK(create(fd, 5000, 0, &handle), 0);
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_BO_INFO, &info), -ENOENT);
	info = (struct drm_vramsim_bo_info){ .handle = handle, .mem_type = 1 };
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_BO_INFO, &info), -EINVAL);
	info.mem_type = 0;
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_BO_INFO, &info), 0);
	CHECK(info.size, 8192);
	CHECK(info.mem_type, VRAMSIM_MEM_VRAM);
	CHECK(info.evictions, 0);
}

/* A buffer shared with another file is there once, and lives until both have closed it. */
static void test_share(const char *node, int fd)
{
	auto_close int other = open(node, O_RDWR | O_CLOEXEC), dmabuf = -EBADF;
	uint32_t handle = 0, imported = 0;
	uint64_t used = stats(fd).vram_used;
	struct drm_vramsim_submit s = {};

	CHECK(create(fd, 4096, 0, &handle), 0);
	CHECK(drmPrimeHandleToFD(fd, handle, DRM_CLOEXEC, &dmabuf), 0);
	CHECK(drmPrimeFDToHandle(other, dmabuf, &imported), 0);
	CHECK(submit(other, &imported, 1, 0, &s), 0);
	CHECK(s.resident, 4096);
	CHECK(drmCloseBufferHandle(fd, handle), 0);
	dmabuf = close_fd(dmabuf);
	CHECK(stats(fd).vram_used, used + 4096);
	CHECK(drmCloseBufferHandle(other, imported), 0);
	CHECK(stats(fd).vram_used, used);
}

int main(int argc, char *argv[])
{
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
	uint64_t vram;

	if (fd < 0) {
		fprintf(stderr, "vsim-uapi: needs the node of an unused vramsim\n");
		return 2;
	}
	vram = stats(fd).vram_size;
	CHECK(vram > 0, 1);
	test_create(fd, vram);
	test_submit(fd, vram);
	close(fd);

	/* A file's buffers go with it. */
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	CHECK(stats(fd).vram_used, 0);
	test_bo_info(fd);
	test_share(argv[1], fd);
	close(fd);

	printf("vsim-uapi: %d failed\n", failures);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
