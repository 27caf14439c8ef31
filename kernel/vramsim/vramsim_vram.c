// SPDX-License-Identifier: GPL-2.0-only
/*
 * The VRAM manager: TTM resources on top of the GPU buddy allocator, and the dmem region that
 * TTM charges them to.
 */

#include <linux/cgroup_dmem.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>
#include <drm/drm_managed.h>
#include <drm/drm_print.h>

#include "vramsim.h"

struct vramsim_vram_res {
	struct ttm_resource base;
	struct list_head blocks;
};

#define to_vram(manager)	container_of(manager, struct vramsim_vram, man)
#define to_vram_res(res)	container_of(res, struct vramsim_vram_res, base)

static u64 place_end(const struct vramsim_vram *vram, const struct ttm_place *place)
{
	if (!place->lpfn)
		return vram->mm.size;
	return min_t(u64, place->lpfn << PAGE_SHIFT, vram->mm.size);
}

static int vramsim_vram_alloc(struct ttm_resource_manager *man, struct ttm_buffer_object *bo,
			      const struct ttm_place *place, struct ttm_resource **ret_res)
{
	struct vramsim_vram *vram = to_vram(man);
	struct vramsim_vram_res *res;
	u64 start = place->fpfn << PAGE_SHIFT;
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
	struct vramsim_vram *vram = to_vram(man);
	struct vramsim_vram_res *res = to_vram_res(base);

	/* Off the LRU first: its walkers look at the blocks. */
	ttm_resource_fini(man, base);
	mutex_lock(&vram->lock);
	gpu_buddy_free_list(&vram->mm, &res->blocks, 0);
	mutex_unlock(&vram->lock);
	kfree(res);
}

static bool vramsim_vram_intersects(struct ttm_resource_manager *man, struct ttm_resource *base,
				    const struct ttm_place *place, size_t size)
{
	struct vramsim_vram *vram = to_vram(man);
	u64 start = place->fpfn << PAGE_SHIFT;
	u64 end = place_end(vram, place);
	struct gpu_buddy_block *block;

	list_for_each_entry(block, &to_vram_res(base)->blocks, link) {
		u64 first = gpu_buddy_block_offset(block);

		if (first < end && first + gpu_buddy_block_size(&vram->mm, block) > start)
			return true;
	}
	return false;
}

static bool vramsim_vram_compatible(struct ttm_resource_manager *man, struct ttm_resource *base,
				    const struct ttm_place *place, size_t size)
{
	struct vramsim_vram *vram = to_vram(man);
	u64 start = place->fpfn << PAGE_SHIFT;
	u64 end = place_end(vram, place);
	struct gpu_buddy_block *block;

	list_for_each_entry(block, &to_vram_res(base)->blocks, link) {
		u64 first = gpu_buddy_block_offset(block);

		if (first < start || first + gpu_buddy_block_size(&vram->mm, block) > end)
			return false;
	}
	return true;
}

static const struct ttm_resource_manager_func vramsim_vram_funcs = {
	.alloc = vramsim_vram_alloc,
	.free = vramsim_vram_free,
	.intersects = vramsim_vram_intersects,
	.compatible = vramsim_vram_compatible,
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
}

/**
 * vramsim_vram_init() - give the device its VRAM and the dmem region for it
 * @vdev: the device, with TTM set up
 * @size: bytes
 *
 * Undone when the last reference to the DRM device is dropped.
 *
 * Return: 0 or a negative error number.
 */
int vramsim_vram_init(struct vramsim_device *vdev, u64 size)
{
	struct vramsim_vram *vram = &vdev->vram;
	struct dmem_cgroup_init init = {
		.size = size,
		.ops = &vramsim_vram_dmem_ops,
		.reclaim_priv = &vram->man,
	};
	struct dmem_cgroup_region *region;
	int ret;

	ret = drmm_mutex_init(&vdev->drm, &vram->lock);
	if (ret)
		return ret;
	ret = gpu_buddy_init(&vram->mm, size, PAGE_SIZE);
	if (ret)
		return ret;
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
