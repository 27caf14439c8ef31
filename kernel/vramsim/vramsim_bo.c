// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers: where they may be placed, and what a move costs
 */

#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include <drm/drm_prime.h>
#include <drm/ttm/ttm_tt.h>

#include "vramsim.h"
#include "vramsim_compat.h"

#define CREATE_TRACE_POINTS
#include "vramsim_trace.h"

static struct kmem_cache *vramsim_bo_cache;

int vramsim_bo_cache_init(void)
{
	vramsim_bo_cache = KMEM_CACHE(vramsim_bo, SLAB_HWCACHE_ALIGN);
	return vramsim_bo_cache ? 0 : -ENOMEM;
}

void vramsim_bo_cache_fini(void)
{
	kmem_cache_destroy(vramsim_bo_cache);
}

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

/* A high-resolution timer, so that the time is exact, also in virtual time. */
static void vramsim_link_sleep(u64 bytes)
{
	unsigned int bw = READ_ONCE(vramsim_params.bw_mib_per_ms);
	ktime_t timeout;

	if (!bw)
		return;
	timeout = ns_to_ktime(div64_u64(bytes * NSEC_PER_MSEC, (u64)bw * SZ_1M));
	set_current_state(TASK_UNINTERRUPTIBLE);
	schedule_hrtimeout(&timeout, HRTIMER_MODE_REL);
}

static void vramsim_account_move(struct vramsim_bo *bo, u32 from, u32 to, bool evict)
{
	struct vramsim_device *vdev = ttm_to_vramsim(bo->tbo.bdev);
	u64 size = bo->tbo.base.size;

	if (from == to) {
		atomic64_add(size, &vdev->bytes_within);
		return;
	}
	atomic64_add(size, to == TTM_PL_VRAM ? &vdev->bytes_in : &vdev->bytes_out);
	if (evict && from == TTM_PL_VRAM) {
		atomic64_inc(&vdev->evictions);
		atomic64_inc(&bo->evictions);
	}
	vramsim_link_sleep(size);
}

static int vramsim_move(struct ttm_buffer_object *tbo, bool evict, struct ttm_operation_ctx *ctx,
			struct ttm_resource *new, struct ttm_place *hop)
{
	struct vramsim_bo *bo = tbo_to_vramsim(tbo);
	struct ttm_resource *old = tbo->resource;
	bool link;
	int ret;

	if (!old) {
		if (new->mem_type == TTM_PL_VRAM)
			vramsim_copy_move(bo, new);
		WRITE_ONCE(bo->mem_type, new->mem_type);
		ttm_bo_move_null(tbo, new);
		return 0;
	}

	/* The link reaches only pages that are mapped for the GPU. */
	link = old->mem_type == TTM_PL_VRAM || new->mem_type == TTM_PL_VRAM;
	if (link && (old->mem_type == TTM_PL_SYSTEM || new->mem_type == TTM_PL_SYSTEM)) {
		*hop = (struct ttm_place) {
			.mem_type = TTM_PL_TT,
			.flags = TTM_PL_FLAG_TEMPORARY,
		};
		return -EMULTIHOP;
	}

	ret = ttm_bo_wait_ctx(tbo, ctx);
	if (ret)
		return ret;
	trace_vramsim_bo_move(bo, old->mem_type, new->mem_type, evict);
	WRITE_ONCE(bo->mem_type, new->mem_type);
	if (link) {
		vramsim_copy_move(bo, new);
		vramsim_account_move(bo, old->mem_type, new->mem_type, evict);
		ttm_bo_move_sync_cleanup(tbo, new);
	} else {
		ttm_bo_move_null(tbo, new);
	}
	return 0;
}

/* With memory behind it, VRAM is mapped by page frame; system RAM needs nothing. */
static int vramsim_io_mem_reserve(struct ttm_device *bdev, struct ttm_resource *res)
{
	res->bus.is_iomem = res->mem_type == TTM_PL_VRAM;
	return 0;
}

const struct ttm_device_funcs vramsim_ttm_funcs = {
	.ttm_tt_create = vramsim_tt_create,
	.ttm_tt_destroy = vramsim_tt_destroy,
	.eviction_valuable = ttm_bo_eviction_valuable,
	.evict_flags = vramsim_evict_flags,
	.move = vramsim_move,
	.io_mem_reserve = vramsim_io_mem_reserve,
	.io_mem_pfn = vramsim_copy_pfn,
};

static void vramsim_bo_destroy(struct ttm_buffer_object *tbo)
{
	struct vramsim_bo *bo = tbo_to_vramsim(tbo);

	drm_gem_object_release(&tbo->base);
	if (bo->vm)
		drm_gem_object_put(&bo->vm->root);
	kmem_cache_free(vramsim_bo_cache, bo);
}

static void vramsim_gem_free(struct drm_gem_object *obj)
{
	ttm_bo_fini(&gem_to_vramsim(obj)->tbo);
}

/* Who shared a private buffer would share the lock of all of them. */
static struct dma_buf *vramsim_gem_export(struct drm_gem_object *obj, int flags)
{
	if (gem_to_vramsim(obj)->vm)
		return ERR_PTR(-EPERM);
	return drm_gem_prime_export(obj, flags);
}

static int vramsim_gem_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma)
{
	struct vramsim_bo *bo = gem_to_vramsim(obj);
	int ret;

	if (!ttm_to_vramsim(bo->tbo.bdev)->vram.mem)
		return -EOPNOTSUPP;
	ret = ttm_bo_mmap_obj(vma, &bo->tbo);
	if (ret)
		return ret;
	/* TTM has taken a reference of its own. */
	drm_gem_object_put(obj);
	return 0;
}

static const struct drm_gem_object_funcs vramsim_gem_funcs = {
	.free = vramsim_gem_free,
	.open = vramsim_vm_join,
	.close = vramsim_vm_leave,
	.export = vramsim_gem_export,
	.mmap = vramsim_gem_mmap,
};

/* Fills two places; system RAM is the second one, with gtt_flags. */
static void vramsim_bo_placement(const struct vramsim_bo *bo, u32 gtt_flags,
				 struct ttm_place *places, struct ttm_placement *ret_placement)
{
	bool scanout = bo->flags & VRAMSIM_BO_SCANOUT;

	/* As amdgpu does, which keeps the lower end for what must be there. */
	places[0] = (struct ttm_place) {
		.mem_type = TTM_PL_VRAM,
		.flags = scanout ? TTM_PL_FLAG_CONTIGUOUS : TTM_PL_FLAG_TOPDOWN,
	};
	places[1] = (struct ttm_place) {
		.mem_type = TTM_PL_TT,
		.flags = gtt_flags,
	};
	ret_placement->placement = places;
	ret_placement->num_placement = scanout || bo->flags & VRAMSIM_BO_VRAM_ONLY ? 1 : 2;
}

static int vramsim_bo_init(struct vramsim_bo *bo, struct vramsim_device *vdev,
			   struct dma_resv *resv)
{
	/*
	 * As in amdgpu, a new private buffer may evict others of its file. And a test that asks for
	 * too much wants an error, not the OOM killer.
	 */
	struct ttm_operation_ctx ctx = {
		.interruptible = true,
		.gfp_retry_mayfail = true,
		.allow_res_evict = true,
		.resv = resv,
	};
	struct ttm_placement placement;
	struct ttm_place places[2];
	int ret;

	vramsim_bo_placement(bo, 0, places, &placement);
	if (resv) {
		ret = dma_resv_lock_interruptible(resv, NULL);
		if (ret) {
			vramsim_bo_destroy(&bo->tbo);
			return ret;
		}
	}
	/* On failure this drops the buffer. */
	ret = ttm_bo_init_reserved(&vdev->ttm, &bo->tbo, ttm_bo_type_device, &placement, 0, &ctx,
				   NULL, resv, vramsim_bo_destroy);
	if (!ret)
		vramsim_bo_set_priority(bo, bo->priority);
	if (resv)
		dma_resv_unlock(resv);
	else if (!ret)
		ttm_bo_unreserve(&bo->tbo);
	return ret;
}

/**
 * vramsim_bo_create() - create and place a buffer
 * @vdev: the device
 * @vm: the address space of a private buffer, or NULL
 * @size: bytes, a positive multiple of PAGE_SIZE
 * @flags: VRAMSIM_BO_*
 * @priority: 0 to VRAMSIM_PRIORITY_MAX
 *
 * Return: the buffer with one GEM reference, or an ERR_PTR.
 */
struct vramsim_bo *vramsim_bo_create(struct vramsim_device *vdev, struct vramsim_vm *vm, u64 size,
				     u32 flags, u32 priority)
{
	struct vramsim_bo *bo = kmem_cache_zalloc(vramsim_bo_cache, GFP_KERNEL);
	int ret;

	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->size = size;
	bo->flags = flags;
	bo->priority = priority;
	bo->tbo.base.funcs = &vramsim_gem_funcs;
	drm_gem_private_object_init(&vdev->drm, &bo->tbo.base, size);
	if (vm) {
		drm_gem_object_get(&vm->root);
		bo->vm = vm;
	}
	ret = vramsim_bo_init(bo, vdev, vm ? vm->root.resv : NULL);
	return ret ? ERR_PTR(ret) : bo;
}

/**
 * vramsim_bo_set_priority() - how much a buffer matters among those of its address space
 * @bo: the buffer, reserved
 * @priority: 0 to VRAMSIM_PRIORITY_MAX
 */
void vramsim_bo_set_priority(struct vramsim_bo *bo, u32 priority)
{
	bo->priority = priority;
	/* What can only be in VRAM must not make way for others of the same submission. */
	if (bo->flags & (VRAMSIM_BO_SCANOUT | VRAMSIM_BO_VRAM_ONLY))
		priority = VRAMSIM_PRIORITY_MAX;
	vramsim_set_evict_priority(&bo->tbo, priority);
}

static int vramsim_bo_move_to(struct vramsim_bo *bo, struct ttm_placement *placement,
			      struct ttm_operation_ctx *ctx)
{
	int ret = ttm_bo_validate(&bo->tbo, placement, ctx);

	/* TTM says -ENOMEM when there is no room, but not when there is none for the hop. */
	return ret == -ENOSPC ? -ENOMEM : ret;
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

	/* Nearly all buffers of nearly all submissions end here; TTM would find the same. */
	if (bo->mem_type == TTM_PL_VRAM && (!(bo->flags & VRAMSIM_BO_SCANOUT) ||
					    bo->tbo.resource->placement & TTM_PL_FLAG_CONTIGUOUS))
		return 0;
	vramsim_bo_placement(bo, TTM_PL_FLAG_FALLBACK, places, &placement);
	return vramsim_bo_move_to(bo, &placement, ctx);
}

/**
 * vramsim_bo_pin() - bring a buffer into VRAM in one piece, and pin it there
 * @bo: the buffer, reserved
 * @ctx: the operation, which collects the bytes moved
 *
 * Return: 0 or a negative error number.
 */
int vramsim_bo_pin(struct vramsim_bo *bo, struct ttm_operation_ctx *ctx)
{
	struct ttm_place place = {
		.mem_type = TTM_PL_VRAM,
		.flags = TTM_PL_FLAG_CONTIGUOUS,
	};
	struct ttm_placement placement = {
		.placement = &place,
		.num_placement = 1,
	};
	int ret;

	ret = vramsim_bo_move_to(bo, &placement, ctx);
	if (ret)
		return ret;
	ttm_bo_pin(&bo->tbo);
	return 0;
}
