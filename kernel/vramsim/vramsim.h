/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef VRAMSIM_H
#define VRAMSIM_H

#include <linux/atomic.h>
#include <linux/gpu_buddy.h>
#include <linux/mutex.h>
#include <linux/types.h>

#include <drm/drm_device.h>
#include <drm/drm_gem.h>
#include <drm/ttm/ttm_bo.h>
#include <drm/ttm/ttm_device.h>
#include <drm/ttm/ttm_placement.h>
#include <drm/ttm/ttm_resource.h>

#include "vramsim_uapi.h"

struct drm_file;
struct pci_dev;

#define VRAMSIM_PCI_VENDOR	0x7673	/* assigned to nobody, so no other driver binds */
#define VRAMSIM_PCI_DEVICE	0x0001

#define VRAMSIM_MAX_DEVICES	8

/**
 * struct vramsim_params - the module parameters
 * @devices: number of GPUs
 * @vram_mb: VRAM of each
 * @bus: PCI bus number of each
 * @gtt_mb: system RAM that each can map
 * @bw_mib_per_ms: speed of the link to VRAM, or 0; may change at any time
 * @copy: there is memory behind VRAM
 */
struct vramsim_params {
	unsigned int devices;
	unsigned int vram_mb[VRAMSIM_MAX_DEVICES];
	unsigned int bus[VRAMSIM_MAX_DEVICES];
	unsigned int gtt_mb;
	unsigned int bw_mib_per_ms;
	bool copy;
};

/**
 * struct vramsim_vram - the VRAM of one device
 * @man: what TTM sees
 * @mm: the free address space
 * @lock: protects @mm, @allocated and the blocks of what is in it
 * @allocated: all pieces that are in use
 * @mem: the memory behind it, or NULL
 */
struct vramsim_vram {
	struct ttm_resource_manager man;
	struct gpu_buddy mm;
	struct mutex lock;	/* protects @mm, @allocated and the blocks of what is in it */
	struct list_head allocated;
	void *mem;
};

/**
 * struct vramsim_vram_res - a piece of VRAM
 * @base: what TTM sees
 * @blocks: where it is, by rising address
 * @node: in &vramsim_vram.allocated
 */
struct vramsim_vram_res {
	struct ttm_resource base;
	struct list_head blocks;
	struct list_head node;
};

/**
 * struct vramsim_device - one simulated GPU, alive until the last reference to @drm is dropped
 * @drm: the DRM device
 * @ttm: the TTM device
 * @vram: its VRAM
 * @bytes_in: bytes moved into VRAM
 * @bytes_out: bytes moved out of VRAM
 * @bytes_within: bytes moved within VRAM
 * @evictions: buffers thrown out of VRAM
 * @submits: SUBMIT and FLIP calls
 * @failed: those that failed
 * @backoffs: times that one dropped its locks and started again
 * @serial: number of the last attempt of a SUBMIT
 */
struct vramsim_device {
	struct drm_device drm;
	struct ttm_device ttm;
	struct vramsim_vram vram;
	atomic64_t bytes_in;
	atomic64_t bytes_out;
	atomic64_t bytes_within;
	atomic64_t evictions;
	atomic64_t submits;
	atomic64_t failed;
	atomic64_t backoffs;
	atomic64_t serial;
};

/**
 * struct vramsim_vm - the address space of one file
 * @root: its reservation is that of all private buffers, each of which has a reference to it
 * @bulk: the private buffers' place in the LRU, under the reservation
 * @bos: the private buffers that have a handle, under the reservation
 * @lock: protects @shown
 * @shown: the buffer on the screen, pinned and referenced, or NULL
 */
struct vramsim_vm {
	struct drm_gem_object root;
	struct ttm_lru_bulk_move bulk;
	struct list_head bos;
	struct mutex lock;	/* protects @shown */
	struct vramsim_bo *shown;
};

/**
 * struct vramsim_bo - a buffer
 * @tbo: the TTM and GEM object
 * @vm: the address space of a private buffer, or NULL
 * @handles: handles of a private buffer, under the reservation
 * @priority: as user space has set it, under the reservation
 * @evictions: how often it was thrown out of VRAM
 * @vm_link: in &vramsim_vm.bos
 * @serial: the last attempt of a SUBMIT that counted it, under the reservation
 * @size: in bytes
 * @flags: VRAMSIM_BO_*
 * @mem_type: TTM_PL_* of the last move; readable without the reservation, unlike @tbo.resource
 *
 * What a SUBMIT looks at of each of its buffers is in one cache line, and buffers have a slab of
 * their own: kmalloc() rounds to a power of two, so that those lines of thousands of buffers are
 * in few sets of the cache and push each other out. It is TTM's work that is to be measured.
 */
struct vramsim_bo {
	struct ttm_buffer_object tbo;
	struct vramsim_vm *vm;
	unsigned int handles;
	u32 priority;
	atomic64_t evictions;

	struct list_head vm_link ____cacheline_aligned;
	s64 serial;
	u64 size;
	u32 flags;
	u32 mem_type;
};

#define to_vramsim_device(dev)	container_of(dev, struct vramsim_device, drm)
#define ttm_to_vramsim(bdev)	container_of(bdev, struct vramsim_device, ttm)
#define tbo_to_vramsim(bo)	container_of(bo, struct vramsim_bo, tbo)
#define gem_to_vramsim(obj)	container_of(obj, struct vramsim_bo, tbo.base)
#define to_vramsim_vram(man_)	container_of(man_, struct vramsim_vram, man)
#define to_vramsim_res(res)	container_of(res, struct vramsim_vram_res, base)

/* vramsim_bo.c */
int vramsim_bo_cache_init(void);
void vramsim_bo_cache_fini(void);
extern const struct ttm_device_funcs vramsim_ttm_funcs;
struct vramsim_bo *vramsim_bo_create(struct vramsim_device *vdev, struct vramsim_vm *vm, u64 size,
				     u32 flags, u32 priority);
void vramsim_bo_set_priority(struct vramsim_bo *bo, u32 priority);
int vramsim_bo_validate(struct vramsim_bo *bo, struct ttm_operation_ctx *ctx);
int vramsim_bo_pin(struct vramsim_bo *bo, struct ttm_operation_ctx *ctx);

/* vramsim_copy.c */
void vramsim_copy_move(struct vramsim_bo *bo, struct ttm_resource *new);
int vramsim_copy_checksum(struct vramsim_bo *bo, u64 *ret_checksum);
unsigned long vramsim_copy_pfn(struct ttm_buffer_object *tbo, unsigned long page);

/* vramsim_ioctl.c */
int vramsim_ioctl_create(struct drm_device *dev, void *data, struct drm_file *file);
int vramsim_ioctl_flip(struct drm_device *dev, void *data, struct drm_file *file);
int vramsim_ioctl_set_priority(struct drm_device *dev, void *data, struct drm_file *file);
int vramsim_ioctl_mmap(struct drm_device *dev, void *data, struct drm_file *file);
int vramsim_ioctl_bo_info(struct drm_device *dev, void *data, struct drm_file *file);
int vramsim_ioctl_stats(struct drm_device *dev, void *data, struct drm_file *file);

/* vramsim_params.c */
extern struct vramsim_params vramsim_params;
int vramsim_params_check(const struct vramsim_params *params, u64 ram_mb);

/* vramsim_pci.c */
int vramsim_pci_add_roots(void);
void vramsim_pci_remove_roots(void);
u64 vramsim_pci_vram_size(struct pci_dev *pdev);

/* vramsim_submit.c */
int vramsim_ioctl_submit(struct drm_device *dev, void *data, struct drm_file *file);

/* vramsim_vm.c */
int vramsim_vm_open(struct drm_device *dev, struct drm_file *file);
void vramsim_vm_close(struct drm_device *dev, struct drm_file *file);
int vramsim_vm_show(struct vramsim_vm *vm, struct vramsim_bo *bo, bool back_off,
		    struct ttm_operation_ctx *ctx);
void vramsim_vm_hide(struct vramsim_vm *vm);
int vramsim_vm_join(struct drm_gem_object *obj, struct drm_file *file);
void vramsim_vm_leave(struct drm_gem_object *obj, struct drm_file *file);

/* vramsim_vram.c */
int vramsim_vram_init(struct vramsim_device *vdev, u64 size, bool copy);
void vramsim_vram_locate(struct ttm_resource *res, u64 *ret_start, u32 *ret_pieces);

#endif
