// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contents of buffers, with the module parameter copy: moved, summed, and mapped. Without it these
 * functions do nothing, for VRAM has no memory.
 */

#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include <drm/ttm/ttm_kmap_iter.h>
#include <drm/ttm/ttm_tt.h>

#include "vramsim.h"

#define FNV_OFFSET	0xcbf29ce484222325ULL
#define FNV_PRIME	0x100000001b3ULL

/**
 * struct vramsim_vram_iter - walks the pages of a piece of VRAM
 * @base: what TTM sees
 * @vram: the VRAM
 * @res: the piece
 * @block: where the walk is
 * @first: index of the first page of @block
 */
struct vramsim_vram_iter {
	struct ttm_kmap_iter base;
	struct vramsim_vram *vram;
	struct vramsim_vram_res *res;
	struct gpu_buddy_block *block;
	pgoff_t first;
};

union vramsim_iter {
	struct ttm_kmap_iter base;
	struct ttm_kmap_iter_tt tt;
	struct vramsim_vram_iter vram;
};

static void vramsim_vram_iter_map(struct ttm_kmap_iter *base, struct iosys_map *map, pgoff_t page)
{
	struct vramsim_vram_iter *iter = container_of(base, struct vramsim_vram_iter, base);
	pgoff_t pages;

	if (!iter->block || page < iter->first) {
		iter->block = list_first_entry(&iter->res->blocks, struct gpu_buddy_block, link);
		iter->first = 0;
	}
	for (;;) {
		pages = gpu_buddy_block_size(&iter->vram->mm, iter->block) >> PAGE_SHIFT;
		if (page < iter->first + pages)
			break;
		iter->first += pages;
		iter->block = list_next_entry(iter->block, link);
	}
	iosys_map_set_vaddr(map, iter->vram->mem + gpu_buddy_block_offset(iter->block) +
			    ((page - iter->first) << PAGE_SHIFT));
}

static const struct ttm_kmap_iter_ops vramsim_vram_iter_ops = {
	.map_local = vramsim_vram_iter_map,
};

static void vramsim_iter_init(union vramsim_iter *iter, struct vramsim_bo *bo,
			      struct ttm_resource *res)
{
	if (res->mem_type != TTM_PL_VRAM) {
		ttm_kmap_iter_tt_init(&iter->tt, bo->tbo.ttm);
		return;
	}
	iter->vram = (struct vramsim_vram_iter) {
		.base.ops = &vramsim_vram_iter_ops,
		.vram = &ttm_to_vramsim(bo->tbo.bdev)->vram,
		.res = to_vramsim_res(res),
	};
}

/**
 * vramsim_copy_move() - fill a new place of a buffer from its present one
 * @bo: the buffer, reserved
 * @new: the new place, in VRAM or with pages; a buffer without a present place becomes zero
 */
void vramsim_copy_move(struct vramsim_bo *bo, struct ttm_resource *new)
{
	struct ttm_resource *old = bo->tbo.resource;
	union vramsim_iter src, dst;

	if (!ttm_to_vramsim(bo->tbo.bdev)->vram.mem)
		return;
	vramsim_iter_init(&dst, bo, new);
	/* The source is not read when there is none. */
	vramsim_iter_init(&src, bo, old ? old : new);
	ttm_move_memcpy(!old, PFN_UP(bo->tbo.base.size), &dst.base, &src.base);
}

static u64 fnv1a(u64 hash, const u8 *data, size_t len)
{
	while (len--)
		hash = (hash ^ *data++) * FNV_PRIME;
	return hash;
}

/**
 * vramsim_copy_checksum() - read all of a buffer where it is
 * @bo: the buffer, reserved
 * @ret_checksum: its FNV-1a hash
 *
 * Return: 0, -EOPNOTSUPP if buffers have no contents, or another negative error number.
 */
int vramsim_copy_checksum(struct vramsim_bo *bo, u64 *ret_checksum)
{
	struct ttm_operation_ctx ctx = { .interruptible = true, .gfp_retry_mayfail = true };
	pgoff_t page, pages = PFN_UP(bo->tbo.base.size);
	union vramsim_iter iter;
	u64 hash = FNV_OFFSET;
	int ret;

	if (!ttm_to_vramsim(bo->tbo.bdev)->vram.mem)
		return -EOPNOTSUPP;
	/* TTM may have swapped it out. */
	ret = ttm_bo_populate(&bo->tbo, &ctx);
	if (ret)
		return ret;
	vramsim_iter_init(&iter, bo, bo->tbo.resource);
	for (page = 0; page < pages; page++) {
		const struct ttm_kmap_iter_ops *ops = iter.base.ops;
		struct iosys_map map;

		ops->map_local(&iter.base, &map, page);
		hash = fnv1a(hash, map.vaddr, PAGE_SIZE);
		if (ops->unmap_local)
			ops->unmap_local(&iter.base, &map);
		cond_resched();
	}
	*ret_checksum = hash;
	return 0;
}

/**
 * vramsim_copy_pfn() - the memory behind a page of a buffer in VRAM
 * @tbo: the buffer, reserved
 * @page: index of the page
 *
 * Return: a page frame number.
 */
unsigned long vramsim_copy_pfn(struct ttm_buffer_object *tbo, unsigned long page)
{
	union vramsim_iter iter;
	struct iosys_map map;

	vramsim_iter_init(&iter, tbo_to_vramsim(tbo), tbo->resource);
	vramsim_vram_iter_map(&iter.base, &map, page);
	return vmalloc_to_pfn(map.vaddr);
}
