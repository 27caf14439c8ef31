// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers: where they may be placed, and what a move costs. A move takes its time and is
 * accounted, but VRAM has no memory behind it, so no contents are copied.
 */

#include <linux/delay.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include <drm/ttm/ttm_tt.h>

#include "vramsim.h"

static unsigned int bw_mib_per_ms;
module_param(bw_mib_per_ms, uint, 0644);
MODULE_PARM_DESC(bw_mib_per_ms,
		 "Link to VRAM in MiB/ms: moves sleep that long, locks held (default: 0, no time)");

static struct ttm_tt *vramsim_tt_create(struct ttm_buffer_object *tbo, u32 flags)
{
	struct ttm_tt *tt = kzalloc_obj(*tt);

	if (!tt)
		return NULL;
	if (ttm_tt_init(tt, tbo, flags, ttm_cached, 0)) {
		kfree(tt);
		return NULL;
	}
	return tt;
}

static void vramsim_tt_destroy(struct ttm_device *bdev, struct ttm_tt *tt)
{
	ttm_tt_fini(tt);
	kfree(tt);
}

static void vramsim_evict_flags(struct ttm_buffer_object *tbo, struct ttm_placement *ret_placement)
{
	static const struct ttm_place gtt = { .mem_type = TTM_PL_TT };
	static const struct ttm_place sys = { .mem_type = TTM_PL_SYSTEM };

	ret_placement->num_placement = 1;
	ret_placement->placement = tbo->resource->mem_type == TTM_PL_VRAM ? &gtt : &sys;
}

static void vramsim_account_move(struct vramsim_bo *bo, bool evict, bool out)
{
	struct vramsim_device *vdev = ttm_to_vramsim(bo->tbo.bdev);
	unsigned int bw = READ_ONCE(bw_mib_per_ms);

	atomic64_add(bo->tbo.base.size, out ? &vdev->bytes_out : &vdev->bytes_in);
	if (evict && out) {
		atomic64_inc(&vdev->evictions);
		atomic64_inc(&bo->evictions);
	}
	if (bw)
		fsleep(div64_u64(bo->tbo.base.size * USEC_PER_MSEC, (u64)bw * SZ_1M));
}

static int vramsim_move(struct ttm_buffer_object *tbo, bool evict, struct ttm_operation_ctx *ctx,
			struct ttm_resource *new, struct ttm_place *hop)
{
	struct vramsim_bo *bo = tbo_to_vramsim(tbo);
	struct ttm_resource *old = tbo->resource;
	int ret;

	if (!old || (old->mem_type != TTM_PL_VRAM && new->mem_type != TTM_PL_VRAM) ||
	    (old->mem_type == TTM_PL_SYSTEM && !tbo->ttm)) {
		ret = old ? ttm_bo_wait_ctx(tbo, ctx) : 0;
		if (ret)
			return ret;
		WRITE_ONCE(bo->mem_type, new->mem_type);
		ttm_bo_move_null(tbo, new);
		return 0;
	}

	/* The link reaches only pages that are mapped for the GPU. */
	if (old->mem_type == TTM_PL_SYSTEM || new->mem_type == TTM_PL_SYSTEM) {
		*hop = (struct ttm_place) {
			.mem_type = TTM_PL_TT,
			.flags = TTM_PL_FLAG_TEMPORARY,
		};
		return -EMULTIHOP;
	}

	ret = ttm_bo_wait_ctx(tbo, ctx);
	if (ret)
		return ret;
	if (old->mem_type != new->mem_type)
		vramsim_account_move(bo, evict, old->mem_type == TTM_PL_VRAM);
	WRITE_ONCE(bo->mem_type, new->mem_type);
	ttm_bo_move_sync_cleanup(tbo, new);
	return 0;
}

const struct ttm_device_funcs vramsim_ttm_funcs = {
	.ttm_tt_create = vramsim_tt_create,
	.ttm_tt_destroy = vramsim_tt_destroy,
	.eviction_valuable = ttm_bo_eviction_valuable,
	.evict_flags = vramsim_evict_flags,
	.move = vramsim_move,
};

static void vramsim_bo_destroy(struct ttm_buffer_object *tbo)
{
	drm_gem_object_release(&tbo->base);
	kfree(tbo_to_vramsim(tbo));
}

static void vramsim_gem_free(struct drm_gem_object *obj)
{
	ttm_bo_fini(&gem_to_vramsim(obj)->tbo);
}

static const struct drm_gem_object_funcs vramsim_gem_funcs = {
	.free = vramsim_gem_free,
};

/* Fills two places; system RAM is the second one, with gtt_flags. */
static void vramsim_bo_placement(const struct vramsim_bo *bo, u32 gtt_flags,
				 struct ttm_place *places, struct ttm_placement *ret_placement)
{
	places[0] = (struct ttm_place) {
		.mem_type = TTM_PL_VRAM,
		.flags = TTM_PL_FLAG_TOPDOWN,
	};
	places[1] = (struct ttm_place) {
		.mem_type = TTM_PL_TT,
		.flags = gtt_flags,
	};
	ret_placement->placement = places;
	ret_placement->num_placement = bo->flags & VRAMSIM_BO_VRAM_ONLY ? 1 : 2;
}

/**
 * vramsim_bo_create() - create and place a buffer
 * @vdev: the device
 * @size: bytes, a positive multiple of PAGE_SIZE
 * @flags: VRAMSIM_BO_*
 *
 * Return: the buffer with one GEM reference, or an ERR_PTR.
 */
struct vramsim_bo *vramsim_bo_create(struct vramsim_device *vdev, u64 size, u32 flags)
{
	/* A test that asks for too much wants an error, not the OOM killer. */
	struct ttm_operation_ctx ctx = { .interruptible = true, .gfp_retry_mayfail = true };
	struct ttm_placement placement;
	struct ttm_place places[2];
	struct vramsim_bo *bo;
	int ret;

	bo = kzalloc_obj(*bo);
	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->flags = flags;
	bo->tbo.base.funcs = &vramsim_gem_funcs;
	drm_gem_private_object_init(&vdev->drm, &bo->tbo.base, size);
	vramsim_bo_placement(bo, 0, places, &placement);

	/* On failure this drops the buffer. */
	ret = ttm_bo_init_reserved(&vdev->ttm, &bo->tbo, ttm_bo_type_device, &placement, 0, &ctx,
				   NULL, NULL, vramsim_bo_destroy);
	if (ret)
		return ERR_PTR(ret);
	ttm_bo_unreserve(&bo->tbo);
	return bo;
}

/**
 * vramsim_bo_validate() - bring a buffer to where the GPU wants it
 * @bo: the buffer, reserved
 * @ctx: the operation, which collects the bytes moved
 *
 * VRAM is tried first. Outside VRAM is good enough for a buffer that is mapped by the GPU already:
 * it does not evict, unless its control group is protected.
 *
 * Return: 0 or a negative error number.
 */
int vramsim_bo_validate(struct vramsim_bo *bo, struct ttm_operation_ctx *ctx)
{
	struct ttm_placement placement;
	struct ttm_place places[2];

	vramsim_bo_placement(bo, TTM_PL_FLAG_FALLBACK, places, &placement);
	return ttm_bo_validate(&bo->tbo, &placement, ctx);
}
