// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ioctls of vramsim_uapi.h, but for SUBMIT
 */

#include <drm/drm_drv.h>
#include <drm/drm_file.h>

#include "vramsim.h"

int vramsim_ioctl_create(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct vramsim_device *vdev = to_vramsim_device(dev);
	struct drm_vramsim_create *args = data;
	struct vramsim_bo *bo;
	int idx, ret;

	if (args->flags & ~VRAMSIM_BO_FLAGS || args->priority > VRAMSIM_PRIORITY_MAX || args->pad)
		return -EINVAL;
	if (!args->size || args->size > vdev->vram.man.size)
		return -EINVAL;

	if (!drm_dev_enter(dev, &idx))
		return -ENODEV;
	bo = vramsim_bo_create(vdev, args->flags & VRAMSIM_BO_PRIVATE ? file->driver_priv : NULL,
			       PAGE_ALIGN(args->size), args->flags, args->priority);
	drm_dev_exit(idx);
	if (IS_ERR(bo))
		return PTR_ERR(bo);

	ret = drm_gem_handle_create(file, &bo->tbo.base, &args->handle);
	drm_gem_object_put(&bo->tbo.base);
	return ret;
}

int vramsim_ioctl_flip(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct ttm_operation_ctx ctx = { .interruptible = true, .gfp_retry_mayfail = true };
	struct vramsim_device *vdev = to_vramsim_device(dev);
	struct drm_vramsim_flip *args = data;
	struct drm_gem_object *obj = NULL;
	int idx, ret;

	if (args->flags & ~VRAMSIM_FLIP_BACKOFF)
		return -EINVAL;
	if (args->handle) {
		obj = drm_gem_object_lookup(file, args->handle);
		if (!obj)
			return -ENOENT;
	}

	if (drm_dev_enter(dev, &idx)) {
		atomic64_inc(&vdev->submits);
		ret = vramsim_vm_show(file->driver_priv, obj ? gem_to_vramsim(obj) : NULL,
				      args->flags & VRAMSIM_FLIP_BACKOFF, &ctx);
		if (!ret)
			args->moved = ctx.bytes_moved;
		else if (ret != -ERESTARTSYS && ret != -EINTR)
			atomic64_inc(&vdev->failed);
		drm_dev_exit(idx);
	} else {
		ret = -ENODEV;
	}
	if (obj)
		drm_gem_object_put(obj);
	return ret;
}

int vramsim_ioctl_set_priority(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct drm_vramsim_set_priority *args = data;
	struct drm_gem_object *obj;
	int ret;

	if (args->priority > VRAMSIM_PRIORITY_MAX)
		return -EINVAL;
	obj = drm_gem_object_lookup(file, args->handle);
	if (!obj)
		return -ENOENT;
	ret = dma_resv_lock_interruptible(obj->resv, NULL);
	if (!ret) {
		vramsim_bo_set_priority(gem_to_vramsim(obj), args->priority);
		dma_resv_unlock(obj->resv);
	}
	drm_gem_object_put(obj);
	return ret;
}

int vramsim_ioctl_mmap(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct vramsim_device *vdev = to_vramsim_device(dev);
	struct drm_vramsim_mmap *args = data;
	struct drm_gem_object *obj;

	if (args->pad)
		return -EINVAL;
	if (!vdev->vram.mem)
		return -EOPNOTSUPP;
	obj = drm_gem_object_lookup(file, args->handle);
	if (!obj)
		return -ENOENT;
	args->offset = drm_vma_node_offset_addr(&obj->vma_node);
	drm_gem_object_put(obj);
	return 0;
}

static int vramsim_bo_info(struct vramsim_bo *bo, struct drm_vramsim_bo_info *args)
{
	u64 start = 0, checksum = 0;
	u32 blocks = 0;
	int ret;

	ret = dma_resv_lock_interruptible(bo->tbo.base.resv, NULL);
	if (ret)
		return ret;
	if (bo->tbo.resource->mem_type == TTM_PL_VRAM)
		vramsim_vram_locate(bo->tbo.resource, &start, &blocks);
	if (args->flags & VRAMSIM_BO_INFO_CHECKSUM)
		ret = vramsim_copy_checksum(bo, &checksum);
	if (!ret) {
		args->mem_type = bo->tbo.resource->mem_type;
		args->size = bo->tbo.base.size;
		args->evictions = atomic64_read(&bo->evictions);
		args->start = start;
		args->blocks = blocks;
		args->priority = bo->priority;
		args->checksum = checksum;
	}
	dma_resv_unlock(bo->tbo.base.resv);
	return ret;
}

int vramsim_ioctl_bo_info(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct drm_vramsim_bo_info *args = data;
	struct drm_gem_object *obj;
	int ret;

	BUILD_BUG_ON(VRAMSIM_MEM_SYSTEM != TTM_PL_SYSTEM);
	BUILD_BUG_ON(VRAMSIM_MEM_GTT != TTM_PL_TT);
	BUILD_BUG_ON(VRAMSIM_MEM_VRAM != TTM_PL_VRAM);

	if (args->mem_type || args->flags & ~VRAMSIM_BO_INFO_CHECKSUM || args->pad)
		return -EINVAL;
	obj = drm_gem_object_lookup(file, args->handle);
	if (!obj)
		return -ENOENT;
	ret = vramsim_bo_info(gem_to_vramsim(obj), args);
	drm_gem_object_put(obj);
	return ret;
}

int vramsim_ioctl_stats(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct vramsim_device *vdev = to_vramsim_device(dev);
	struct drm_vramsim_stats *args = data;

	args->vram_size = vdev->vram.man.size;
	args->vram_used = ttm_resource_manager_usage(&vdev->vram.man);
	args->in = atomic64_read(&vdev->bytes_in);
	args->out = atomic64_read(&vdev->bytes_out);
	args->evictions = atomic64_read(&vdev->evictions);
	args->submits = atomic64_read(&vdev->submits);
	args->failed = atomic64_read(&vdev->failed);
	args->within = atomic64_read(&vdev->bytes_within);
	args->backoffs = atomic64_read(&vdev->backoffs);
	return 0;
}
