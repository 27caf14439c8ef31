// SPDX-License-Identifier: GPL-2.0-only
/*
 * SUBMIT: lock all buffers together, bring each to where it should be
 */

#include <linux/hrtimer.h>
#include <linux/ktime.h>

#include <drm/drm_drv.h>
#include <drm/drm_exec.h>
#include <drm/drm_file.h>

#include "vramsim.h"
#include "vramsim_compat.h"

/**
 * struct vramsim_submission - one SUBMIT under way
 * @vm: the caller's address space
 * @args: what it asked for
 * @objs: the listed buffers, a reference to each
 * @ctx: collects the bytes moved
 * @contended: whose lock TTM wanted when all have to be dropped, a reference to it
 * @serial: number of this attempt
 * @resident: bytes found in VRAM by this attempt
 * @spilled: bytes found elsewhere
 */
struct vramsim_submission {
	struct vramsim_vm *vm;
	const struct drm_vramsim_submit *args;
	struct drm_gem_object **objs;
	struct ttm_operation_ctx ctx;
	struct ttm_buffer_object *contended;
	s64 serial;
	u64 resident;
	u64 spilled;
};

static int vramsim_submit_validate(struct vramsim_submission *s, struct vramsim_bo *bo)
{
	return vramsim_bo_validate(bo, &s->ctx);
}

/* Counts each buffer once, though it may be listed more often. */
static int vramsim_submit_count(struct vramsim_submission *s, struct vramsim_bo *bo)
{
	if (bo->serial == s->serial)
		return 0;
	bo->serial = s->serial;
	if (bo->mem_type == TTM_PL_VRAM)
		s->resident += bo->size;
	else
		s->spilled += bo->size;
	return 0;
}

static int vramsim_submit_each(struct vramsim_submission *s,
			       int (*act)(struct vramsim_submission *s, struct vramsim_bo *bo))
{
	struct vramsim_bo *bo;
	u32 i;
	int ret;

	if (s->args->flags & VRAMSIM_SUBMIT_ALL_PRIVATE) {
		list_for_each_entry(bo, &s->vm->bos, vm_link) {
			ret = act(s, bo);
			if (ret)
				return ret;
		}
	}
	for (i = 0; i < s->args->n; i++) {
		ret = act(s, gem_to_vramsim(s->objs[i]));
		if (ret)
			return ret;
	}
	return 0;
}

static int vramsim_submit_hold(u32 us)
{
	ktime_t timeout = us_to_ktime(us);

	if (!us)
		return 0;
	set_current_state(TASK_INTERRUPTIBLE);
	return schedule_hrtimeout(&timeout, HRTIMER_MODE_REL) ? -ERESTARTSYS : 0;
}

/* -EDEADLK when all locks have to be dropped and taken again. */
static int vramsim_submit_attempt(struct vramsim_submission *s, struct drm_exec *exec)
{
	struct vramsim_device *vdev = to_vramsim_device(s->vm->root.dev);
	u32 i;
	int ret;

	if (s->args->flags & VRAMSIM_SUBMIT_ALL_PRIVATE) {
		ret = drm_exec_prepare_obj(exec, &s->vm->root, 1);
		if (ret)
			return ret;
	}
	for (i = 0; i < s->args->n; i++) {
		ret = drm_exec_prepare_obj(exec, s->objs[i], 1);
		if (ret)
			return ret;
	}
	ret = vramsim_submit_hold(s->args->hold_us);
	if (ret)
		return ret;
	ret = vramsim_submit_each(s, vramsim_submit_validate);
	if (ret)
		return ret;
	/* Only now: one that is validated may displace one that was before. */
	s->serial = atomic64_inc_return(&vdev->serial);
	s->resident = 0;
	s->spilled = 0;
	return vramsim_submit_each(s, vramsim_submit_count);
}

static void vramsim_submit_touch(struct vramsim_submission *s)
{
	struct vramsim_device *vdev = to_vramsim_device(s->vm->root.dev);
	bool bulk = !(s->args->flags & VRAMSIM_SUBMIT_NO_BULK);
	u32 i;

	spin_lock(&vdev->ttm.lru_lock);
	if (bulk && s->args->flags & VRAMSIM_SUBMIT_ALL_PRIVATE)
		ttm_lru_bulk_move_tail(&s->vm->bulk);
	for (i = 0; i < s->args->n; i++) {
		struct vramsim_bo *bo = gem_to_vramsim(s->objs[i]);

		if (bulk || !bo->vm)
			ttm_bo_move_to_lru_tail(&bo->tbo);
	}
	spin_unlock(&vdev->ttm.lru_lock);
}

static int vramsim_submit(struct vramsim_submission *s, u32 *ret_retries, u64 *ret_wait_ns)
{
	ktime_t start = ktime_get(), now;
	struct drm_exec exec;
	u32 attempts = 0;
	s64 wait = 0;
	int ret = 0;

	drm_exec_init(&exec, DRM_EXEC_INTERRUPTIBLE_WAIT | DRM_EXEC_IGNORE_DUPLICATES,
		      s->args->n + 1);
	drm_exec_until_all_locked(&exec) {
		now = ktime_get();
		if (attempts++)
			wait = max(wait, ktime_sub(now, start));
		start = now;
		/*
		 * With the validation inside the loop: TTM locks its victims with our ticket, which
		 * is not allowed any more once the loop has declared that all locks are taken.
		 */
		ret = vramsim_submit_attempt(s, &exec);
		if (ret == -EDEADLK && s->contended)
			ret = vramsim_back_off(&exec, &s->contended);
		drm_exec_retry_on_contention(&exec);
		if (ret)
			break;
	}
	if (!ret)
		vramsim_submit_touch(s);
	drm_exec_fini(&exec);

	*ret_wait_ns = max(wait, ktime_sub(ktime_get(), start));
	*ret_retries = attempts - 1;
	return ret;
}

static int vramsim_submit_account(struct vramsim_submission *s, struct drm_vramsim_submit *args)
{
	struct vramsim_device *vdev = to_vramsim_device(s->vm->root.dev);
	u32 retries;
	u64 wait_ns;
	int ret;

	atomic64_inc(&vdev->submits);
	ret = vramsim_submit(s, &retries, &wait_ns);
	atomic64_add(retries, &vdev->backoffs);
	if (ret) {
		if (ret != -ERESTARTSYS && ret != -EINTR)
			atomic64_inc(&vdev->failed);
		return ret;
	}
	args->moved = s->ctx.bytes_moved;
	args->resident = s->resident;
	args->spilled = s->spilled;
	args->retries = retries;
	args->wait_ns = wait_ns;
	return 0;
}

int vramsim_ioctl_submit(struct drm_device *dev, void *data, struct drm_file *file)
{
	struct drm_vramsim_submit *args = data;
	struct vramsim_submission s = {
		.vm = file->driver_priv,
		.args = args,
		.ctx = { .interruptible = true, .gfp_retry_mayfail = true },
	};
	int idx, ret;
	u32 i;

	vramsim_may_displace(&s.ctx);
	if (args->flags & VRAMSIM_SUBMIT_BACKOFF)
		vramsim_may_back_off(&s.ctx, &s.contended);
	if (args->flags & ~VRAMSIM_SUBMIT_FLAGS || args->n > VRAMSIM_SUBMIT_MAX ||
	    args->hold_us > VRAMSIM_HOLD_US_MAX)
		return -EINVAL;
	if (!args->n && !(args->flags & VRAMSIM_SUBMIT_ALL_PRIVATE))
		return -EINVAL;
	if (args->n) {
		ret = drm_gem_objects_lookup(file, u64_to_user_ptr(args->handles), args->n,
					     &s.objs);
		if (ret)
			return ret;
	}

	/* Removal waits for the submissions under way. */
	if (drm_dev_enter(dev, &idx)) {
		ret = vramsim_submit_account(&s, args);
		drm_dev_exit(idx);
	} else {
		ret = -ENODEV;
	}

	for (i = 0; i < args->n; i++)
		drm_gem_object_put(s.objs[i]);
	kvfree(s.objs);
	return ret;
}
