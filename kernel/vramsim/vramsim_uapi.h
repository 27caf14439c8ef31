/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * vramsim: user space interface of the simulated GPU
 *
 * All structures are 64-bit aligned. Unknown flags and non-zero padding are refused with -EINVAL,
 * so that both can get a meaning later; DRM's ioctl dispatcher zero-extends structures, so that
 * members may be added at their end. Buffers are shared between processes by PRIME.
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
/* CREATE: can be scanned out: contiguous and never outside VRAM. */
#define VRAMSIM_BO_SCANOUT	0x2
/*
 * CREATE: belongs to the address space of the file that creates it: shares its lock, moves through
 * the LRU in bulk with the others, and is part of each SUBMIT with VRAMSIM_SUBMIT_ALL_PRIVATE.
 * Cannot be exported.
 */
#define VRAMSIM_BO_PRIVATE	0x4
#define VRAMSIM_BO_FLAGS	(VRAMSIM_BO_VRAM_ONLY | VRAMSIM_BO_SCANOUT | VRAMSIM_BO_PRIVATE)

/* Levels of SET_PRIORITY and CREATE; what is lower is evicted first, on kernels that know it. */
#define VRAMSIM_PRIORITY_MAX	3

/* SUBMIT: all private buffers of this file, besides those that are listed. */
#define VRAMSIM_SUBMIT_ALL_PRIVATE	0x1
/*
 * SUBMIT: wait for locks and start again instead of failing. A hint, ignored where the kernel has
 * no VRAMSIM_FEATURE_BACKOFF.
 */
#define VRAMSIM_SUBMIT_BACKOFF		0x2
/* SUBMIT: private buffers keep their place in the LRU. */
#define VRAMSIM_SUBMIT_NO_BULK		0x4
#define VRAMSIM_SUBMIT_FLAGS \
	(VRAMSIM_SUBMIT_ALL_PRIVATE | VRAMSIM_SUBMIT_BACKOFF | VRAMSIM_SUBMIT_NO_BULK)

/* FLIP: the same. */
#define VRAMSIM_FLIP_BACKOFF		0x1

/* The longest time that a SUBMIT may hold its locks on purpose. */
#define VRAMSIM_HOLD_US_MAX	1000000

/* BO_INFO: where a buffer is. */
#define VRAMSIM_MEM_SYSTEM	0	/* system RAM, not mapped by the GPU */
#define VRAMSIM_MEM_GTT		1	/* system RAM, mapped by the GPU */
#define VRAMSIM_MEM_VRAM	2

/* BO_INFO: read the whole buffer for @checksum; else it is 0. -EOPNOTSUPP without copy=1. */
#define VRAMSIM_BO_INFO_CHECKSUM	0x1

/* Bits of the read-only module parameter "features": what the kernel underneath can do. */
#define VRAMSIM_FEATURE_PRIORITY	0x1	/* TTM orders bulk moves by priority */
#define VRAMSIM_FEATURE_BACKOFF		0x2	/* TTM hands contended locks to the driver */
#define VRAMSIM_FEATURE_WINDOW		0x4	/* TTM evicts a window for contiguous buffers */

/**
 * struct drm_vramsim_create - create a buffer
 * @size: in: bytes, 1 to the size of VRAM; rounded up to whole pages
 * @flags: in: VRAMSIM_BO_*
 * @handle: out: GEM handle, closed with DRM_IOCTL_GEM_CLOSE
 * @priority: in: 0 to VRAMSIM_PRIORITY_MAX
 * @pad: in: must be zero
 *
 * The buffer is placed into VRAM if there is room, or if the caller's control group is protected
 * and room can be made; else into system RAM. VRAM is charged to the caller's control group.
 */
struct drm_vramsim_create {
	__u64 size;
	__u32 flags;
	__u32 handle;
	__u32 priority;
	__u32 pad;
};

/**
 * struct drm_vramsim_submit - use buffers, as a frame of a game does
 * @handles: in: user pointer to @n GEM handles (__u32); a handle may be listed twice
 * @n: in: 0 to VRAMSIM_SUBMIT_MAX; 0 only with VRAMSIM_SUBMIT_ALL_PRIVATE
 * @flags: in: VRAMSIM_SUBMIT_*
 * @moved: out: bytes that were moved for this call, evictions of other buffers included
 * @resident: out: bytes of the buffers that are now in VRAM
 * @spilled: out: bytes of the buffers that are now in system RAM
 * @hold_us: in: microseconds to keep the locks before anything is validated, 0 to
 *	VRAMSIM_HOLD_US_MAX
 * @retries: out: how often all locks were dropped and taken again
 * @wait_ns: out: longest time that one attempt took
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
	__u32 hold_us;
	__u32 retries;
	__u64 wait_ns;
};

/**
 * struct drm_vramsim_flip - show a buffer on the screen of this file
 * @handle: in: GEM handle, also of an imported buffer; 0 shows nothing
 * @flags: in: VRAMSIM_FLIP_BACKOFF or 0
 * @moved: out: bytes that were moved for this call, evictions of other buffers included
 *
 * The buffer is brought into VRAM in one piece and pinned there; the one shown before is unpinned.
 * A VRAMSIM_BO_SCANOUT buffer is in one piece anyway; another one, say a game's that is scanned
 * out directly, may have to be moved. The last one is unpinned when the file is closed, or when the
 * device goes.
 */
struct drm_vramsim_flip {
	__u32 handle;
	__u32 flags;
	__u64 moved;
};

/**
 * struct drm_vramsim_set_priority - say how much a buffer matters to its application
 * @handle: in: GEM handle
 * @priority: in: 0 to VRAMSIM_PRIORITY_MAX
 *
 * Kept and reported by BO_INFO on every kernel. With VRAMSIM_FEATURE_PRIORITY, private buffers with
 * a lower one are evicted first, and make room for others of a submission; those that can only be
 * in VRAM count as if they had the highest one.
 */
struct drm_vramsim_set_priority {
	__u32 handle;
	__u32 priority;
};

/**
 * struct drm_vramsim_mmap - map a buffer
 * @handle: in: GEM handle
 * @pad: in: must be zero
 * @offset: out: for mmap(2) on the device's file
 *
 * A mapping stays valid when the buffer moves. -EOPNOTSUPP without the module parameter copy=1, for
 * then buffers have no contents.
 */
struct drm_vramsim_mmap {
	__u32 handle;
	__u32 pad;
	__u64 offset;
};

/**
 * struct drm_vramsim_bo_info - where a buffer is, without touching it
 * @handle: in: GEM handle
 * @mem_type: out: VRAMSIM_MEM_*; must be zero on entry
 * @size: out: bytes
 * @evictions: out: how often it was thrown out of VRAM
 * @start: out: lowest address in VRAM, or 0
 * @blocks: out: pieces that it is in, 0 outside VRAM
 * @priority: out: as set
 * @checksum: out: FNV-1a of all bytes, read where they are, with VRAMSIM_BO_INFO_CHECKSUM
 * @flags: in: VRAMSIM_BO_INFO_*
 * @pad: in: must be zero
 */
struct drm_vramsim_bo_info {
	__u32 handle;
	__u32 mem_type;
	__u64 size;
	__u64 evictions;
	__u64 start;
	__u32 blocks;
	__u32 priority;
	__u64 checksum;
	__u32 flags;
	__u32 pad;
};

/**
 * struct drm_vramsim_stats - counters of the device since it was probed
 * @vram_size: out: bytes of VRAM
 * @vram_used: out: bytes of VRAM in use now
 * @in: out: bytes moved into VRAM (a new buffer's first placement is no move)
 * @out: out: bytes moved out of VRAM
 * @evictions: out: buffers thrown out of VRAM
 * @submits: out: SUBMIT and FLIP calls
 * @failed: out: SUBMIT and FLIP calls that failed
 * @within: out: bytes moved within VRAM, to put a buffer into one piece
 * @backoffs: out: retries of all submissions
 */
struct drm_vramsim_stats {
	__u64 vram_size;
	__u64 vram_used;
	__u64 in;
	__u64 out;
	__u64 evictions;
	__u64 submits;
	__u64 failed;
	__u64 within;
	__u64 backoffs;
};

#define DRM_VRAMSIM_CREATE		0x00
#define DRM_VRAMSIM_SUBMIT		0x01
#define DRM_VRAMSIM_BO_INFO		0x02
#define DRM_VRAMSIM_STATS		0x03
#define DRM_VRAMSIM_FLIP		0x04
#define DRM_VRAMSIM_SET_PRIORITY	0x05
#define DRM_VRAMSIM_MMAP		0x06

#define DRM_IOCTL_VRAMSIM_CREATE \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_VRAMSIM_CREATE, struct drm_vramsim_create)
#define DRM_IOCTL_VRAMSIM_SUBMIT \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_VRAMSIM_SUBMIT, struct drm_vramsim_submit)
#define DRM_IOCTL_VRAMSIM_BO_INFO \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_VRAMSIM_BO_INFO, struct drm_vramsim_bo_info)
#define DRM_IOCTL_VRAMSIM_STATS \
	DRM_IOR(DRM_COMMAND_BASE + DRM_VRAMSIM_STATS, struct drm_vramsim_stats)
#define DRM_IOCTL_VRAMSIM_FLIP \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_VRAMSIM_FLIP, struct drm_vramsim_flip)
#define DRM_IOCTL_VRAMSIM_SET_PRIORITY \
	DRM_IOW(DRM_COMMAND_BASE + DRM_VRAMSIM_SET_PRIORITY, struct drm_vramsim_set_priority)
#define DRM_IOCTL_VRAMSIM_MMAP \
	DRM_IOWR(DRM_COMMAND_BASE + DRM_VRAMSIM_MMAP, struct drm_vramsim_mmap)

#if defined(__cplusplus)
}
#endif

#endif
