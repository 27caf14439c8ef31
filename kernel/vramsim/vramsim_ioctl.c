// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ioctls of vramsim_uapi.h
 */

#include <drm/drm_drv.h>
#include <drm/drm_exec.h>
#include <drm/drm_file.h>

#include "vramsim.h"

int vramsim_ioctl_create(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct vramsim_device *vdev = to_vramsim_device(dev);
	struct drm_vramsim_create *args = data;
	struct vramsim_bo *bo;
	int idx, ret;

	if (args->flags & ~VRAMSIM_BO_FLAGS)
		return -EINVAL;
	if (!args->size || args->size > vdev->vram.man.size)
		return -EINVAL;

	if (!drm_dev_enter(dev, &idx))
		return -ENODEV;
	bo = vramsim_bo_create(vdev, PAGE_ALIGN(args->size), args->flags);
	drm_dev_exit(idx);
	if (IS_ERR(bo))
		return PTR_ERR(bo);

	ret = drm_gem_handle_create(file, &bo->tbo.base, &args->handle);
	drm_gem_object_put(&bo->tbo.base);
	return ret;
}

/* All buffers are locked. Counts each once, though it may be listed more often. */
static int vramsim_submit_validate(struct drm_vramsim_submit *args, struct drm_gem_object **objs,
				   s64 serial)
{
	struct ttm_operation_ctx ctx = { .interruptible = true, .gfp_retry_mayfail = true };
	u64 resident = 0, spilled = 0;
	u32 i;
	int ret;

	for (i = 0; i < args->n; i++) {
		ret = vramsim_bo_validate(gem_to_vramsim(objs[i]), &ctx);
		if (ret)
			return ret;
	}
	for (i = 0; i < args->n; i++) {
		struct vramsim_bo *bo = gem_to_vramsim(objs[i]);

		if (bo->serial == serial)
			continue;
		bo->serial = serial;
		if (bo->mem_type == TTM_PL_VRAM)
			resident += objs[i]->size;
		else
			spilled += objs[i]->size;
	}

	args->moved = ctx.bytes_moved;
	args->resident = resident;
	args->spilled = spilled;
	return 0;
}

static void vramsim_submit_touch(struct vramsim_device *vdev, struct drm_gem_object **objs, u32 n)
{
	u32 i;

	spin_lock(&vdev->ttm.lru_lock);
	for (i = 0; i < n; i++)
		ttm_bo_move_to_lru_tail(&gem_to_vramsim(objs[i])->tbo);
	spin_unlock(&vdev->ttm.lru_lock);
}

static int vramsim_submit(struct vramsim_device *vdev, struct drm_vramsim_submit *args,
			  struct drm_gem_object **objs)
{
	s64 serial = atomic64_inc_return(&vdev->submits);
	struct drm_exec exec;
	int ret = 0;
	u32 i;

	drm_exec_init(&exec, DRM_EXEC_INTERRUPTIBLE_WAIT | DRM_EXEC_IGNORE_DUPLICATES, args->n);
	drm_exec_until_all_locked(&exec) {
		for (i = 0; i < args->n; i++) {
			ret = drm_exec_prepare_obj(&exec, objs[i], 1);
			drm_exec_retry_on_contention(&exec);
			if (ret)
				goto out;
		}
		/*
		 * Inside the loop: TTM locks its victims with our ticket, which is not allowed any
		 * more once the loop has declared that all locks are taken.
		 */
		ret = vramsim_submit_validate(args, objs, serial);
		if (ret)
			goto out;
	}
	vramsim_submit_touch(vdev, objs, args->n);
out:
	drm_exec_fini(&exec);
	if (ret && ret != -ERESTARTSYS && ret != -EINTR)
		atomic64_inc(&vdev->failed);
	return ret;
}

int vramsim_ioctl_submit(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct drm_vramsim_submit *args = data;
	struct drm_gem_object **objs;
	int idx, ret;
	u32 i;

	if (args->flags || !args->n || args->n > VRAMSIM_SUBMIT_MAX)
		return -EINVAL;
	ret = drm_gem_objects_lookup(file, u64_to_user_ptr(args->handles), args->n, &objs);
	if (ret)
		return ret;

	/* Removal waits for the submissions under way. */
	if (drm_dev_enter(dev, &idx)) {
		ret = vramsim_submit(to_vramsim_device(dev), args, objs);
		drm_dev_exit(idx);
	} else {
		ret = -ENODEV;
	}

	for (i = 0; i < args->n; i++)
		drm_gem_object_put(objs[i]);
	kvfree(objs);
	return ret;
}

int vramsim_ioctl_bo_info(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct drm_vramsim_bo_info *args = data;
	struct drm_gem_object *obj;
	struct vramsim_bo *bo;

	BUILD_BUG_ON(VRAMSIM_MEM_SYSTEM != TTM_PL_SYSTEM);
	BUILD_BUG_ON(VRAMSIM_MEM_GTT != TTM_PL_TT);
	BUILD_BUG_ON(VRAMSIM_MEM_VRAM != TTM_PL_VRAM);

	if (args->mem_type)
		return -EINVAL;
	obj = drm_gem_object_lookup(file, args->handle);
	if (!obj)
		return -ENOENT;
	bo = gem_to_vramsim(obj);
	args->mem_type = READ_ONCE(bo->mem_type);
	args->size = obj->size;
	args->evictions = atomic64_read(&bo->evictions);
	drm_gem_object_put(obj);
	return 0;
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
	return 0;
}
