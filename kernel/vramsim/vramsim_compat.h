/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What only a patched TTM can do. On a stock kernel all of it is there and does nothing, so that
 * nobody else has to ask; VRAMSIM_HAVE_* are 0 or 1 and come from the Makefile.
 */
#ifndef VRAMSIM_COMPAT_H
#define VRAMSIM_COMPAT_H

#include <linux/errno.h>
#include <linux/limits.h>

#include <drm/drm_exec.h>
#include <drm/ttm/ttm_bo.h>
#include <drm/ttm/ttm_resource.h>

#if VRAMSIM_HAVE_PRIORITY
static inline void vramsim_set_evict_priority(struct ttm_buffer_object *tbo, u32 priority)
{
	ttm_bo_set_evict_priority(tbo, priority);
}

/* Without a limit, unlike amdgpu. */
static inline void vramsim_may_displace(struct ttm_operation_ctx *ctx)
{
	ctx->displace_budget = U64_MAX;
}
#else
static inline void vramsim_set_evict_priority(struct ttm_buffer_object *tbo, u32 priority)
{
}

static inline void vramsim_may_displace(struct ttm_operation_ctx *ctx)
{
}
#endif

#if VRAMSIM_HAVE_BACKOFF
static inline void vramsim_may_back_off(struct ttm_operation_ctx *ctx,
					struct ttm_buffer_object **contended)
{
	ctx->contended = contended;
}

/* After an -EDEADLK of TTM; the loop has to be tried again. */
static inline int vramsim_back_off(struct drm_exec *exec, struct ttm_buffer_object **contended)
{
	int ret = drm_exec_backoff(exec, (*contended)->base.resv);

	ttm_bo_fini(*contended);
	*contended = NULL;
	return ret;
}
#else
static inline void vramsim_may_back_off(struct ttm_operation_ctx *ctx,
					struct ttm_buffer_object **contended)
{
}

static inline int vramsim_back_off(struct drm_exec *exec, struct ttm_buffer_object **contended)
{
	return -EOPNOTSUPP;
}
#endif

#if VRAMSIM_HAVE_WINDOW
#define VRAMSIM_WALK_BLOCKS(fn)	.walk_blocks = fn
#else
struct ttm_window_search;

#define VRAMSIM_WALK_BLOCKS(fn)

static inline void ttm_window_search_add(struct ttm_window_search *search,
					 struct ttm_resource *res, unsigned long first,
					 unsigned long pages)
{
}
#endif

#endif
