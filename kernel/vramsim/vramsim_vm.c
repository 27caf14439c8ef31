// SPDX-License-Identifier: GPL-2.0-only
/*
 * The address space of a file: its private buffers, which share one lock and one place in the LRU,
 * and the buffer that it shows on the screen.
 */

#include <linux/list.h>
#include <linux/slab.h>

#include <drm/drm_exec.h>
#include <drm/drm_file.h>

#include "vramsim.h"
#include "vramsim_compat.h"

static void vramsim_vm_free(struct drm_gem_object *root)
{
	struct vramsim_vm *vm = container_of(root, struct vramsim_vm, root);

	ttm_lru_bulk_move_fini(&to_vramsim_device(root->dev)->ttm, &vm->bulk);
	drm_gem_object_release(root);
	mutex_destroy(&vm->lock);
	kfree(vm);
}

static const struct drm_gem_object_funcs vramsim_vm_funcs = {
	.free = vramsim_vm_free,
};

int vramsim_vm_open(struct drm_device *dev, struct drm_file *file)
{
	struct vramsim_vm *vm = kzalloc_obj(*vm);

	if (!vm)
		return -ENOMEM;
	vm->root.funcs = &vramsim_vm_funcs;
	drm_gem_private_object_init(dev, &vm->root, 0);
	ttm_lru_bulk_move_init(&vm->bulk);
	INIT_LIST_HEAD(&vm->bos);
	mutex_init(&vm->lock);
	file->driver_priv = vm;
	return 0;
}

void vramsim_vm_close(struct drm_device *dev, struct drm_file *file)
{
	struct vramsim_vm *vm = file->driver_priv;

	vramsim_vm_hide(vm);
	drm_gem_object_put(&vm->root);
}

/**
 * vramsim_vm_join() - a buffer gets a handle; the first one makes a private buffer part of the VM
 * @obj: the buffer
 * @file: who gets the handle
 *
 * Return: 0, or -EPERM for the private buffer of another file.
 */
int vramsim_vm_join(struct drm_gem_object *obj, struct drm_file *file)
{
	struct vramsim_bo *bo = gem_to_vramsim(obj);
	struct vramsim_vm *vm = bo->vm;

	if (!vm)
		return 0;
	if (vm != file->driver_priv)
		return -EPERM;
	dma_resv_lock(obj->resv, NULL);
	if (!bo->handles++) {
		list_add_tail(&bo->vm_link, &vm->bos);
		ttm_bo_set_bulk_move(&bo->tbo, &vm->bulk);
	}
	dma_resv_unlock(obj->resv);
	return 0;
}

/**
 * vramsim_vm_leave() - a handle of a buffer is closed
 * @obj: the buffer
 * @file: who had the handle
 */
void vramsim_vm_leave(struct drm_gem_object *obj, struct drm_file *file)
{
	struct vramsim_bo *bo = gem_to_vramsim(obj);

	if (!bo->vm)
		return;
	dma_resv_lock(obj->resv, NULL);
	if (!--bo->handles) {
		list_del(&bo->vm_link);
		ttm_bo_set_bulk_move(&bo->tbo, NULL);
	}
	dma_resv_unlock(obj->resv);
}

/* What was shown before stays pinned if this fails. */
static int vramsim_vm_flip(struct vramsim_vm *vm, struct vramsim_bo *bo, bool back_off,
			   struct ttm_operation_ctx *ctx)
{
	struct vramsim_bo *both[] = { bo, vm->shown };
	struct ttm_buffer_object *contended = NULL;
	struct drm_exec exec;
	unsigned int i;
	int ret = 0;

	if (back_off)
		vramsim_may_back_off(ctx, &contended);
	drm_exec_init(&exec, DRM_EXEC_INTERRUPTIBLE_WAIT | DRM_EXEC_IGNORE_DUPLICATES, 2);
	drm_exec_until_all_locked(&exec) {
		for (i = 0; i < ARRAY_SIZE(both); i++) {
			if (!both[i])
				continue;
			ret = drm_exec_prepare_obj(&exec, &both[i]->tbo.base, 1);
			drm_exec_retry_on_contention(&exec);
			if (ret)
				goto out;
		}
		ret = bo ? vramsim_bo_pin(bo, ctx) : 0;
		if (ret == -EDEADLK && contended)
			ret = vramsim_back_off(&exec, &contended);
		drm_exec_retry_on_contention(&exec);
		if (ret)
			goto out;
	}
	if (vm->shown)
		ttm_bo_unpin(&vm->shown->tbo);
out:
	drm_exec_fini(&exec);
	return ret;
}

/**
 * vramsim_vm_show() - put a buffer on the screen
 * @vm: whose screen
 * @bo: the buffer, or NULL to show nothing
 * @back_off: wait for locks instead of failing, where TTM can
 * @ctx: the operation, which collects the bytes moved
 *
 * Return: 0 or a negative error number.
 */
int vramsim_vm_show(struct vramsim_vm *vm, struct vramsim_bo *bo, bool back_off,
		    struct ttm_operation_ctx *ctx)
{
	struct vramsim_bo *before;
	int ret;

	ret = mutex_lock_interruptible(&vm->lock);
	if (ret)
		return ret;
	before = vm->shown;
	ret = vramsim_vm_flip(vm, bo, back_off, ctx);
	if (!ret) {
		if (bo)
			drm_gem_object_get(&bo->tbo.base);
		vm->shown = bo;
	}
	mutex_unlock(&vm->lock);
	if (!ret && before)
		drm_gem_object_put(&before->tbo.base);
	return ret;
}

/**
 * vramsim_vm_hide() - show nothing any more
 * @vm: whose screen
 */
void vramsim_vm_hide(struct vramsim_vm *vm)
{
	struct vramsim_bo *before;

	mutex_lock(&vm->lock);
	before = vm->shown;
	vm->shown = NULL;
	mutex_unlock(&vm->lock);
	if (!before)
		return;
	dma_resv_lock(before->tbo.base.resv, NULL);
	ttm_bo_unpin(&before->tbo);
	dma_resv_unlock(before->tbo.base.resv);
	drm_gem_object_put(&before->tbo.base);
}
