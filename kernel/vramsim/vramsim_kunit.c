// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of the VRAM manager and of the module parameters
 */

#include <kunit/test.h>

#include <linux/module.h>
#include <linux/sizes.h>

#include <drm/drm_kunit_helpers.h>
#include <drm/drm_managed.h>

#include "vramsim.h"

#define VRAM_SIZE	SZ_1M
#define VRAM_PAGES	(VRAM_SIZE >> PAGE_SHIFT)
#define MAX_PIECES	16

/**
 * struct vram_test - a GPU that nobody can open, and what was allocated from its VRAM
 * @vdev: the GPU
 * @bo: stands for all buffers; the manager looks at nothing but its size
 */
struct vram_test {
	struct vramsim_device *vdev;
	struct ttm_buffer_object bo;
};

static const struct ttm_device_funcs vram_test_funcs = {};

static void vram_test_ttm_fini(struct drm_device *dev, void *arg)
{
	ttm_device_fini(arg);
}

static int vram_test_init(struct kunit *test)
{
	struct vram_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct device *dev;
	struct drm_device *drm;

	KUNIT_ASSERT_NOT_NULL(test, t);
	dev = drm_kunit_helper_alloc_device(test);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dev);
	t->vdev = drm_kunit_helper_alloc_drm_device(test, dev, struct vramsim_device, drm,
						    DRIVER_GEM);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, t->vdev);
	drm = &t->vdev->drm;
	KUNIT_ASSERT_EQ(test, 0,
			ttm_device_init(&t->vdev->ttm, &vram_test_funcs, dev,
					drm->anon_inode->i_mapping, drm->vma_offset_manager, 0));
	KUNIT_ASSERT_EQ(test, 0, drmm_add_action_or_reset(drm, vram_test_ttm_fini, &t->vdev->ttm));
	KUNIT_ASSERT_EQ(test, 0, vramsim_vram_init(t->vdev, VRAM_SIZE, false));
	t->bo.bdev = &t->vdev->ttm;
	test->priv = t;
	return 0;
}

static int vram_alloc(struct kunit *test, u64 size, struct ttm_place place,
		      struct ttm_resource **ret)
{
	struct vram_test *t = test->priv;
	struct ttm_resource_manager *man = &t->vdev->vram.man;

	t->bo.base.size = size;
	place.mem_type = TTM_PL_VRAM;
	return man->func->alloc(man, &t->bo, &place, ret);
}

static void vram_free(struct kunit *test, struct ttm_resource *res)
{
	struct vram_test *t = test->priv;
	struct ttm_resource_manager *man = &t->vdev->vram.man;

	man->func->free(man, res);
}

static u64 vram_used(struct kunit *test)
{
	struct vram_test *t = test->priv;

	return VRAM_SIZE - t->vdev->vram.mm.avail;
}

static u64 vram_start(struct ttm_resource *res)
{
	u64 start;
	u32 pieces;

	vramsim_vram_locate(res, &start, &pieces);
	return start;
}

static u32 vram_pieces(struct ttm_resource *res)
{
	u64 start;
	u32 pieces;

	vramsim_vram_locate(res, &start, &pieces);
	return pieces;
}

/* Fills VRAM with 64 KiB pieces, by rising address, and frees the odd ones. */
static void vram_fragment(struct kunit *test, struct ttm_resource **res)
{
	unsigned int i;

	for (i = 0; i < MAX_PIECES; i++) {
		struct ttm_place place = {
			.fpfn = i * (SZ_64K >> PAGE_SHIFT),
			.lpfn = (i + 1) * (SZ_64K >> PAGE_SHIFT),
		};

		KUNIT_ASSERT_EQ(test, 0, vram_alloc(test, SZ_64K, place, &res[i]));
	}
	for (i = 1; i < MAX_PIECES; i += 2)
		vram_free(test, res[i]);
}

static void vram_unfragment(struct kunit *test, struct ttm_resource **res)
{
	unsigned int i;

	for (i = 0; i < MAX_PIECES; i += 2)
		vram_free(test, res[i]);
	KUNIT_EXPECT_EQ(test, 0, vram_used(test));
}

static void vram_test_alloc(struct kunit *test)
{
	struct ttm_resource *res, *whole;
	struct ttm_place any = {};

	KUNIT_ASSERT_EQ(test, 0, vram_alloc(test, 3 * PAGE_SIZE, any, &res));
	KUNIT_EXPECT_EQ(test, 3 * PAGE_SIZE, vram_used(test));
	KUNIT_EXPECT_EQ(test, -ENOSPC, vram_alloc(test, VRAM_SIZE, any, &whole));
	KUNIT_EXPECT_EQ(test, 3 * PAGE_SIZE, vram_used(test));
	vram_free(test, res);
	KUNIT_EXPECT_EQ(test, 0, vram_used(test));

	KUNIT_ASSERT_EQ(test, 0, vram_alloc(test, VRAM_SIZE, any, &whole));
	KUNIT_EXPECT_EQ(test, 1, vram_pieces(whole));
	KUNIT_EXPECT_EQ(test, -ENOSPC, vram_alloc(test, PAGE_SIZE, any, &res));
	vram_free(test, whole);
	/* For what can never fit, nobody has to go. */
	KUNIT_EXPECT_EQ(test, -E2BIG, vram_alloc(test, VRAM_SIZE + PAGE_SIZE, any, &whole));
}

static void vram_test_topdown(struct kunit *test)
{
	struct ttm_place top = { .flags = TTM_PL_FLAG_TOPDOWN };
	struct ttm_place top_of_half = { .flags = TTM_PL_FLAG_TOPDOWN, .lpfn = VRAM_PAGES / 2 };
	struct ttm_resource *first, *second, *half;

	KUNIT_ASSERT_EQ(test, 0, vram_alloc(test, PAGE_SIZE, top, &first));
	KUNIT_ASSERT_EQ(test, 0, vram_alloc(test, PAGE_SIZE, top, &second));
	KUNIT_ASSERT_EQ(test, 0, vram_alloc(test, PAGE_SIZE, top_of_half, &half));
	KUNIT_EXPECT_EQ(test, VRAM_SIZE - PAGE_SIZE, vram_start(first));
	KUNIT_EXPECT_EQ(test, VRAM_SIZE - 2 * PAGE_SIZE, vram_start(second));
	KUNIT_EXPECT_LT(test, vram_start(half), VRAM_SIZE / 2);
	vram_free(test, first);
	vram_free(test, second);
	vram_free(test, half);
}

static void vram_test_contiguous(struct kunit *test)
{
	struct ttm_place contiguous = { .flags = TTM_PL_FLAG_CONTIGUOUS };
	struct ttm_resource *res[MAX_PIECES], *one, *more;
	struct ttm_place any = {};

	vram_fragment(test, res);
	KUNIT_EXPECT_EQ(test, -ENOSPC, vram_alloc(test, SZ_128K, contiguous, &one));
	KUNIT_ASSERT_EQ(test, 0, vram_alloc(test, SZ_64K, contiguous, &one));
	KUNIT_EXPECT_EQ(test, 1, vram_pieces(one));
	KUNIT_ASSERT_EQ(test, 0, vram_alloc(test, 3 * SZ_64K, any, &more));
	KUNIT_EXPECT_EQ(test, 3, vram_pieces(more));
	vram_free(test, one);
	vram_free(test, more);
	vram_unfragment(test, res);

	/* Several blocks of the buddy allocator, but they touch. */
	KUNIT_ASSERT_EQ(test, 0, vram_alloc(test, 7 * SZ_64K, contiguous, &one));
	KUNIT_EXPECT_EQ(test, 1, vram_pieces(one));
	vram_free(test, one);
}

/* Contents follow the order of the blocks; so it must not depend on how they were found. */
static void vram_test_sorted(struct kunit *test)
{
	struct ttm_resource *res[MAX_PIECES], *scattered;
	struct gpu_buddy_block *block;
	struct ttm_place any = {};
	u64 last = 0, size = 0;

	vram_fragment(test, res);
	KUNIT_ASSERT_EQ(test, 0, vram_alloc(test, SZ_512K, any, &scattered));
	list_for_each_entry(block, &to_vramsim_res(scattered)->blocks, link) {
		struct vram_test *t = test->priv;

		KUNIT_EXPECT_GT(test, gpu_buddy_block_offset(block), last);
		last = gpu_buddy_block_offset(block);
		size += gpu_buddy_block_size(&t->vdev->vram.mm, block);
	}
	KUNIT_EXPECT_EQ(test, SZ_512K, size);
	vram_free(test, scattered);
	vram_unfragment(test, res);
}

static void vram_test_range(struct kunit *test)
{
	struct ttm_place quarter = { .fpfn = VRAM_PAGES / 2, .lpfn = VRAM_PAGES * 3 / 4 };
	struct ttm_place beyond = { .fpfn = VRAM_PAGES / 2, .lpfn = VRAM_PAGES * 2 };
	struct ttm_place outside = { .fpfn = VRAM_PAGES, .lpfn = VRAM_PAGES * 2 };
	struct ttm_resource *res, *other;

	KUNIT_EXPECT_EQ(test, -E2BIG, vram_alloc(test, VRAM_SIZE / 2, quarter, &res));
	KUNIT_EXPECT_EQ(test, -E2BIG, vram_alloc(test, PAGE_SIZE, outside, &res));
	KUNIT_ASSERT_EQ(test, 0, vram_alloc(test, VRAM_SIZE / 4, quarter, &res));
	KUNIT_EXPECT_EQ(test, VRAM_SIZE / 2, vram_start(res));
	KUNIT_EXPECT_EQ(test, -ENOSPC, vram_alloc(test, PAGE_SIZE, quarter, &other));
	/* What VRAM does not have is not waited for. */
	KUNIT_EXPECT_EQ(test, -E2BIG, vram_alloc(test, VRAM_SIZE, beyond, &other));
	KUNIT_ASSERT_EQ(test, 0, vram_alloc(test, VRAM_SIZE / 4, beyond, &other));
	KUNIT_EXPECT_EQ(test, VRAM_SIZE * 3 / 4, vram_start(other));
	vram_free(test, res);
	vram_free(test, other);
}

static void vram_test_places(struct kunit *test)
{
	/* For a resource in pages 64 to 127 */
	static const struct {
		u64 fpfn, lpfn;
		bool intersects, compatible;
	} cases[] = {
		{ 0, 0, true, true },
		{ 64, 128, true, true },
		{ 0, 256, true, true },
		{ 0, 1024, true, true },
		{ 65, 128, true, false },
		{ 64, 127, true, false },
		{ 100, 101, true, false },
		{ 127, 200, true, false },
		{ 0, 65, true, false },
		{ 0, 64, false, false },
		{ 128, 0, false, false },
		{ 128, 256, false, false },
	};
	struct ttm_place here = { .fpfn = 64, .lpfn = 128 };
	struct vram_test *t = test->priv;
	struct ttm_resource_manager *man = &t->vdev->vram.man;
	struct ttm_resource *res;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, 0, vram_alloc(test, 64 * PAGE_SIZE, here, &res));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ttm_place place = { .fpfn = cases[i].fpfn, .lpfn = cases[i].lpfn };

		KUNIT_EXPECT_EQ_MSG(test, cases[i].intersects,
				    man->func->intersects(man, res, &place, PAGE_SIZE),
				    "case %u", i);
		KUNIT_EXPECT_EQ_MSG(test, cases[i].compatible,
				    man->func->compatible(man, res, &place, res->size),
				    "case %u", i);
	}
	vram_free(test, res);
}

/* A place between the pieces of a buffer is none that it is in. */
static void vram_test_places_of_pieces(struct kunit *test)
{
	struct ttm_place between = { .fpfn = 32, .lpfn = 48 }, first = { .fpfn = 16, .lpfn = 32 };
	struct ttm_place all = { .fpfn = 16, .lpfn = 0 };
	struct ttm_resource *res[MAX_PIECES], *scattered;
	struct vram_test *t = test->priv;
	struct ttm_resource_manager *man = &t->vdev->vram.man;
	struct ttm_place any = {};

	vram_fragment(test, res);
	KUNIT_ASSERT_EQ(test, 0, vram_alloc(test, SZ_512K, any, &scattered));
	KUNIT_EXPECT_FALSE(test, man->func->intersects(man, scattered, &between, PAGE_SIZE));
	KUNIT_EXPECT_TRUE(test, man->func->intersects(man, scattered, &first, PAGE_SIZE));
	KUNIT_EXPECT_FALSE(test, man->func->compatible(man, scattered, &first, SZ_512K));
	KUNIT_EXPECT_TRUE(test, man->func->compatible(man, scattered, &all, SZ_512K));
	vram_free(test, scattered);
	vram_unfragment(test, res);
}

static struct kunit_case vram_cases[] = {
	KUNIT_CASE(vram_test_alloc),
	KUNIT_CASE(vram_test_topdown),
	KUNIT_CASE(vram_test_contiguous),
	KUNIT_CASE(vram_test_sorted),
	KUNIT_CASE(vram_test_range),
	KUNIT_CASE(vram_test_places),
	KUNIT_CASE(vram_test_places_of_pieces),
	{}
};

static struct kunit_suite vram_suite = {
	.name = "vramsim_vram",
	.init = vram_test_init,
	.test_cases = vram_cases,
};

struct params_case {
	const char *name;
	int want;
	struct vramsim_params params;
};

#define PARAMS(devices_, vram0, vram1, bus0, bus1, gtt, copy_) { \
	.devices = devices_, .vram_mb = { vram0, vram1 }, .bus = { bus0, bus1 }, .gtt_mb = gtt, \
	.bw_mib_per_ms = UINT_MAX, .copy = copy_ }

/* On a machine with 1 GiB of RAM */
static const struct params_case params_table[] = {
	{ "good", 0, PARAMS(2, 256, 128, 3, 12, 4096, false) },
	{ "no devices", -EINVAL, PARAMS(0, 256, 128, 3, 12, 4096, false) },
	{ "nine devices", -EINVAL, PARAMS(9, 256, 128, 3, 12, 4096, false) },
	{ "no VRAM", -EINVAL, PARAMS(2, 256, 0, 3, 12, 4096, false) },
	{ "no VRAM of no device", 0, PARAMS(1, 256, 0, 3, 12, 4096, false) },
	{ "1 MiB of VRAM", 0, PARAMS(2, 1, 1, 3, 12, 4096, false) },
	{ "1 TiB of VRAM", 0, PARAMS(2, 1024 * 1024, 1, 3, 12, 4096, false) },
	{ "more", -EINVAL, PARAMS(2, 1024 * 1024 + 1, 1, 3, 12, 4096, false) },
	{ "first and last bus", 0, PARAMS(2, 256, 128, 0, 255, 4096, false) },
	{ "no bus", -EINVAL, PARAMS(2, 256, 128, 0, 256, 4096, false) },
	{ "one bus for two", -EINVAL, PARAMS(2, 256, 128, 12, 12, 4096, false) },
	{ "no GTT", -EINVAL, PARAMS(2, 256, 128, 3, 12, 0, false) },
	{ "too much GTT", -EINVAL, PARAMS(2, 256, 128, 3, 12, UINT_MAX, false) },
	{ "half of the RAM", 0, PARAMS(2, 384, 128, 3, 12, 4096, true) },
	{ "more than half", -EINVAL, PARAMS(2, 384, 129, 3, 12, 4096, true) },
	{ "not without copy", 0, PARAMS(2, 384, 129, 3, 12, 4096, false) },
};

static void params_name(const struct params_case *c, char *name)
{
	strscpy(name, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(params, params_table, params_name);

static void params_test_check(struct kunit *test)
{
	const struct params_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, c->want, vramsim_params_check(&c->params, 1024));
}

static struct kunit_case params_cases[] = {
	KUNIT_CASE_PARAM(params_test_check, params_gen_params),
	{}
};

static struct kunit_suite params_suite = {
	.name = "vramsim_params",
	.test_cases = params_cases,
};

kunit_test_suites(&vram_suite, &params_suite);

MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
MODULE_DESCRIPTION("KUnit tests of vramsim");
MODULE_LICENSE("GPL");
