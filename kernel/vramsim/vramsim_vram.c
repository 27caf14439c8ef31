// SPDX-License-Identifier: GPL-2.0-only
/*
 * The VRAM manager: TTM resources on top of the GPU buddy allocator, and the dmem region that
 * TTM charges them to.
 */

#include <linux/cgroup_dmem.h>
#include <linux/export.h>
#include <linux/list_sort.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <drm/drm_drv.h>
#include <drm/drm_managed.h>
#include <drm/drm_print.h>

#include <kunit/visibility.h>

#include "vramsim.h"
#include "vramsim_compat.h"

static u64 place_start(const struct ttm_place *place)
{
	return (u64)place->fpfn << PAGE_SHIFT;
}

static u64 place_end(const struct vramsim_vram *vram, const struct ttm_place *place)
{
	if (!place->lpfn)
		return vram->mm.size;
	return min((u64)place->lpfn << PAGE_SHIFT, vram->mm.size);
}

static int block_cmp(void *priv, const struct list_head *a, const struct list_head *b)
{
	u64 first = gpu_buddy_block_offset(list_entry(a, struct gpu_buddy_block, link));
	u64 second = gpu_buddy_block_offset(list_entry(b, struct gpu_buddy_block, link));

	return first < second ? -1 : first > second;
}

static int vramsim_vram_alloc(struct ttm_resource_manager *man, struct ttm_buffer_object *bo,
			      const struct ttm_place *place, struct ttm_resource **ret_res)
{
	struct vramsim_vram *vram = to_vramsim_vram(man);
	struct vramsim_vram_res *res;
	u64 start = place_start(place);
	u64 end = place_end(vram, place);
	unsigned long flags = 0;
	int ret;

	/* TTM must not throw out everybody for what can never fit. */
	if (end < start || bo->base.size > end - start)
		return -E2BIG;

	res = kzalloc_obj(*res);
	if (!res)
		return -ENOMEM;
	ttm_resource_init(bo, place, &res->base);
	INIT_LIST_HEAD(&res->blocks);

	if (place->flags & TTM_PL_FLAG_TOPDOWN)
		flags |= GPU_BUDDY_TOPDOWN_ALLOCATION;
	if (place->flags & TTM_PL_FLAG_CONTIGUOUS)
		flags |= GPU_BUDDY_CONTIGUOUS_ALLOCATION;
	if (start || end != vram->mm.size)
		flags |= GPU_BUDDY_RANGE_ALLOCATION;

	mutex_lock(&vram->lock);
	ret = gpu_buddy_alloc_blocks(&vram->mm, start, end, res->base.size, PAGE_SIZE,
				     &res->blocks, flags);
	if (!ret) {
		list_sort(NULL, &res->blocks, block_cmp);
		list_add_tail(&res->node, &vram->allocated);
	}
	mutex_unlock(&vram->lock);
	if (ret) {
		ttm_resource_fini(man, &res->base);
		kfree(res);
		return ret;
	}

	*ret_res = &res->base;
	return 0;
}

static void vramsim_vram_free(struct ttm_resource_manager *man, struct ttm_resource *base)
{
	struct vramsim_vram *vram = to_vramsim_vram(man);
	struct vramsim_vram_res *res = to_vramsim_res(base);

	/* Off the list first: who walks that looks at the rest. */
	mutex_lock(&vram->lock);
	list_del(&res->node);
	gpu_buddy_free_list(&vram->mm, &res->blocks, 0);
	mutex_unlock(&vram->lock);
	ttm_resource_fini(man, base);
	kfree(res);
}

/* Bytes of the resource that are within the place */
static u64 vramsim_vram_overlap(struct ttm_resource_manager *man, struct ttm_resource *base,
				const struct ttm_place *place)
{
	struct vramsim_vram *vram = to_vramsim_vram(man);
	u64 start = place_start(place);
	u64 end = place_end(vram, place);
	struct gpu_buddy_block *block;
	u64 sum = 0;

	list_for_each_entry(block, &to_vramsim_res(base)->blocks, link) {
		u64 first = gpu_buddy_block_offset(block);
		u64 last = first + gpu_buddy_block_size(&vram->mm, block);

		first = max(first, start);
		last = min(last, end);
		if (first < last)
			sum += last - first;
	}
	return sum;
}

static bool vramsim_vram_intersects(struct ttm_resource_manager *man, struct ttm_resource *base,
				    const struct ttm_place *place, size_t size)
{
	return vramsim_vram_overlap(man, base, place) > 0;
}

static bool vramsim_vram_compatible(struct ttm_resource_manager *man, struct ttm_resource *base,
				    const struct ttm_place *place, size_t size)
{
	return vramsim_vram_overlap(man, base, place) == base->size;
}

static int __maybe_unused vramsim_vram_walk_blocks(struct ttm_resource_manager *man,
						   struct ttm_buffer_object *bo,
						   struct ttm_window_search *search)
{
	struct vramsim_vram *vram = to_vramsim_vram(man);
	struct gpu_buddy_block *block;
	struct vramsim_vram_res *res;

	mutex_lock(&vram->lock);
	list_for_each_entry(res, &vram->allocated, node)
		list_for_each_entry(block, &res->blocks, link)
			ttm_window_search_add(search, &res->base,
					      gpu_buddy_block_offset(block) >> PAGE_SHIFT,
					      gpu_buddy_block_size(&vram->mm, block) >> PAGE_SHIFT);
	mutex_unlock(&vram->lock);
	return 0;
}

static const struct ttm_resource_manager_func vramsim_vram_funcs = {
	.alloc = vramsim_vram_alloc,
	.free = vramsim_vram_free,
	.intersects = vramsim_vram_intersects,
	.compatible = vramsim_vram_compatible,
	VRAMSIM_WALK_BLOCKS(vramsim_vram_walk_blocks)
};

static const struct dmem_cgroup_ops vramsim_vram_dmem_ops = {
	.reclaim = ttm_resource_manager_dmem_reclaim,
};

static void vramsim_vram_fini(struct drm_device *dev, void *arg)
{
	struct vramsim_device *vdev = to_vramsim_device(dev);
	struct vramsim_vram *vram = arg;

	/* Only buffers whose deletion was delayed can be left here. */
	if (ttm_resource_manager_evict_all(&vdev->ttm, &vram->man))
		drm_err(dev, "VRAM could not be emptied\n");
	ttm_resource_manager_set_used(&vram->man, false);
	ttm_resource_manager_cleanup(&vram->man);
	ttm_set_driver_manager(&vdev->ttm, TTM_PL_VRAM, NULL);
	gpu_buddy_fini(&vram->mm);
	vfree(vram->mem);
}

/**
 * vramsim_vram_locate() - where in VRAM something is
 * @res: a piece of VRAM
 * @ret_start: its lowest address
 * @ret_pieces: number of pieces that it is in; blocks that touch are one
 */
void vramsim_vram_locate(struct ttm_resource *res, u64 *ret_start, u32 *ret_pieces)
{
	struct vramsim_device *vdev = ttm_to_vramsim(res->bo->bdev);
	struct list_head *blocks = &to_vramsim_res(res)->blocks;
	struct gpu_buddy_block *block;
	u64 end = U64_MAX;
	u32 pieces = 0;

	list_for_each_entry(block, blocks, link) {
		if (gpu_buddy_block_offset(block) != end)
			pieces++;
		end = gpu_buddy_block_offset(block) + gpu_buddy_block_size(&vdev->vram.mm, block);
	}
	*ret_start = gpu_buddy_block_offset(list_first_entry(blocks, struct gpu_buddy_block, link));
	*ret_pieces = pieces;
}
EXPORT_SYMBOL_IF_KUNIT(vramsim_vram_locate);

/**
 * vramsim_vram_init() - give the device its VRAM and the dmem region for it
 * @vdev: the device, with TTM set up
 * @size: bytes
 * @copy: put memory behind it
 *
 * Undone when the last reference to the DRM device is dropped.
 *
 * Return: 0 or a negative error number.
 */
int vramsim_vram_init(struct vramsim_device *vdev, u64 size, bool copy)
{
	struct vramsim_vram *vram = &vdev->vram;
	struct dmem_cgroup_init init = {
		.size = size,
		.ops = &vramsim_vram_dmem_ops,
		.reclaim_priv = &vram->man,
	};
	struct dmem_cgroup_region *region;
	int ret;

	INIT_LIST_HEAD(&vram->allocated);
	ret = drmm_mutex_init(&vdev->drm, &vram->lock);
	if (ret)
		return ret;
	if (copy) {
		vram->mem = __vmalloc(size, GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
		if (!vram->mem) {
			drm_err(&vdev->drm, "no %llu MiB of memory for copy=1\n", size / SZ_1M);
			return -ENOMEM;
		}
	}
	ret = gpu_buddy_init(&vram->mm, size, PAGE_SIZE);
	if (ret) {
		vfree(vram->mem);
		return ret;
	}
	gpu_buddy_driver_set_lock(&vram->mm, &vram->lock);

	vram->man.func = &vramsim_vram_funcs;
	ttm_resource_manager_init(&vram->man, &vdev->ttm, size);
	ttm_set_driver_manager(&vdev->ttm, TTM_PL_VRAM, &vram->man);
	ttm_resource_manager_set_used(&vram->man, true);

	/* Actions run last to first: the region goes, with its reclaim, before the manager. */
	ret = drmm_add_action_or_reset(&vdev->drm, vramsim_vram_fini, vram);
	if (ret)
		return ret;
	region = drmm_cgroup_register_region(&vdev->drm, "vram0", &init);
	if (IS_ERR(region))
		return PTR_ERR(region);
	ttm_resource_manager_set_dmem_region(&vram->man, region);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(vramsim_vram_init);
