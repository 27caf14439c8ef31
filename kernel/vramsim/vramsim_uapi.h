/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * vramsim: user space interface of the simulated GPU
 *
 * All structures are 64-bit aligned. Unknown flags and non-zero padding are refused with -EINVAL,
 * so that both can get a meaning later; DRM's ioctl dispatcher zero-extends structures, so that
 * members may be added at their end.
 */

#ifndef VRAMSIM_UAPI_H
#define VRAMSIM_UAPI_H

#ifdef __KERNEL__
#include <drm/drm.h>
#else
#include <drm.h>	/* libdrm's */
#endif

#if defined(__cplusplus)
extern "C" {
#endif

#define VRAMSIM_DRIVER_NAME	"vramsim"

/* The most buffers that one SUBMIT may list. */
#define VRAMSIM_SUBMIT_MAX	65536

/* CREATE: never outside VRAM; others are evicted for it, or it fails with -ENOMEM. */
#define VRAMSIM_BO_VRAM_ONLY	0x1
#define VRAMSIM_BO_FLAGS	VRAMSIM_BO_VRAM_ONLY

/* BO_INFO: where a buffer is. */
#define VRAMSIM_MEM_SYSTEM	0	/* system RAM, not mapped by the GPU */
#define VRAMSIM_MEM_GTT		1	/* system RAM, mapped by the GPU */
#define VRAMSIM_MEM_VRAM	2

/**
 * struct drm_vramsim_create - create a buffer
 * @size: in: bytes, 1 to the size of VRAM; rounded up to whole pages
 * @flags: in: VRAMSIM_BO_*
 * @handle: out: GEM handle, closed with DRM_IOCTL_GEM_CLOSE
 *
 * The buffer is placed into VRAM if there is room, or if the caller's control group is protected
 * and room can be made; else into system RAM. VRAM is charged to the caller's control group.
 */
struct drm_vramsim_create {
	__u64 size;
	__u32 flags;
	__u32 handle;
};

/**
 * struct drm_vramsim_submit - use buffers, as a frame of a game does
 * @handles: in: user pointer to @n GEM handles (__u32); a handle may be listed twice
 * @n: in: 1 to VRAMSIM_SUBMIT_MAX
 * @flags: in: must be zero
 * @moved: out: bytes that were moved for this call, evictions of other buffers included
 * @resident: out: bytes of the listed buffers that are now in VRAM
 * @spilled: out: bytes of the listed buffers that are now in system RAM
 *
 * Each buffer is validated into VRAM by the rules of TTM, or stays in system RAM. All of them are
 * locked together, so they do not evict each other. -ENOMEM if a VRAM-only buffer found no room.
 */
struct drm_vramsim_submit {
	__u64 handles;
	__u32 n;
	__u32 flags;
	__u64 moved;
	__u64 resident;
	__u64 spilled;
};

/**
 * struct drm_vramsim_bo_info - where a buffer is, without touching it
 * @handle: in: GEM handle
 * @mem_type: out: VRAMSIM_MEM_*; must be zero on entry
 * @size: out: bytes
 * @evictions: out: how often it was thrown out of VRAM
 */
struct drm_vramsim_bo_info {
	__u32 handle;
	__u32 mem_type;
	__u64 size;
	__u64 evictions;
};

/**
 * struct drm_vramsim_stats - counters of the device since it was probed
 * @vram_size: out: bytes of VRAM
 * @vram_used: out: bytes of VRAM in use now
 * @in: out: bytes moved into VRAM (a new buffer's first placement is no move)
 * @out: out: bytes moved out of VRAM
 * @evictions: out: buffers thrown out of VRAM
 * @submits: out: SUBMIT calls
 * @failed: out: SUBMIT calls that failed
 */
struct drm_vramsim_stats {
	__u64 vram_size;
	__u64 vram_used;
	__u64 in;
	__u64 out;
	__u64 evictions;
	__u64 submits;
	__u64 failed;
};

#define DRM_VRAMSIM_CREATE	0x00
#define DRM_VRAMSIM_SUBMIT	0x01
#define DRM_VRAMSIM_BO_INFO	0x02
#define DRM_VRAMSIM_STATS	0x03

#define DRM_IOCTL_VRAMSIM_CREATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_VRAMSIM_CREATE, struct drm_vramsim_create)
#define DRM_IOCTL_VRAMSIM_SUBMIT \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_VRAMSIM_SUBMIT, struct drm_vramsim_submit)
#define DRM_IOCTL_VRAMSIM_BO_INFO \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_VRAMSIM_BO_INFO, struct drm_vramsim_bo_info)
#define DRM_IOCTL_VRAMSIM_STATS \
	DRM_IOR(DRM_COMMAND_BASE + DRM_VRAMSIM_STATS, struct drm_vramsim_stats)

#if defined(__cplusplus)
}
#endif

#endif
