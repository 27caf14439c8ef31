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

/**
 * struct vramsim_vram - the VRAM of one device: addresses without memory behind them
 * @man: what TTM sees
 * @mm: the free address space
 * @lock: protects @mm
 */
struct vramsim_vram {
	struct ttm_resource_manager man;
	struct gpu_buddy mm;
	struct mutex lock;	/* protects @mm */
};

/**
 * struct vramsim_device - one simulated GPU, alive until the last reference to @drm is dropped
 * @drm: the DRM device
 * @ttm: the TTM device
 * @vram: its VRAM
 * @bytes_in: bytes moved into VRAM
 * @bytes_out: bytes moved out of VRAM
 * @evictions: buffers thrown out of VRAM
 * @submits: SUBMIT calls; also the serial number of each
 * @failed: SUBMIT calls that failed
 */
struct vramsim_device {
	struct drm_device drm;
	struct ttm_device ttm;
	struct vramsim_vram vram;
	atomic64_t bytes_in;
	atomic64_t bytes_out;
	atomic64_t evictions;
	atomic64_t submits;
	atomic64_t failed;
};

/**
 * struct vramsim_bo - a buffer
 * @tbo: the TTM and GEM object
 * @flags: VRAMSIM_BO_*
 * @mem_type: TTM_PL_* of the last move; readable without the reservation, unlike @tbo.resource
 * @evictions: how often it was thrown out of VRAM
 * @serial: the last submission that counted it, under the reservation
 */
struct vramsim_bo {
	struct ttm_buffer_object tbo;
	u32 flags;
	u32 mem_type;
	atomic64_t evictions;
	s64 serial;
};

#define to_vramsim_device(dev)	container_of(dev, struct vramsim_device, drm)
#define ttm_to_vramsim(bdev)	container_of(bdev, struct vramsim_device, ttm)
#define tbo_to_vramsim(bo)	container_of(bo, struct vramsim_bo, tbo)
#define gem_to_vramsim(obj)	container_of(obj, struct vramsim_bo, tbo.base)

/* vramsim_bo.c */
extern const struct ttm_device_funcs vramsim_ttm_funcs;
struct vramsim_bo *vramsim_bo_create(struct vramsim_device *vdev, u64 size, u32 flags);
int vramsim_bo_validate(struct vramsim_bo *bo, struct ttm_operation_ctx *ctx);

/* vramsim_ioctl.c */
int vramsim_ioctl_create(struct drm_device *dev, void *data, struct drm_file *file);
int vramsim_ioctl_submit(struct drm_device *dev, void *data, struct drm_file *file);
int vramsim_ioctl_bo_info(struct drm_device *dev, void *data, struct drm_file *file);
int vramsim_ioctl_stats(struct drm_device *dev, void *data, struct drm_file *file);

/* vramsim_pci.c */
int vramsim_pci_add_roots(void);
void vramsim_pci_remove_roots(void);
u64 vramsim_pci_vram_size(struct pci_dev *pdev);

/* vramsim_vram.c */
int vramsim_vram_init(struct vramsim_device *vdev, u64 size);

#endif
