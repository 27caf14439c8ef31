/* SPDX-License-Identifier: MIT */
/* Layer 0. What a process's DRM clients hold, from /proc/PID/fdinfo.
 * Source: Documentation/gpu/drm-usage-stats.rst. */
#pragma once

#include <sys/types.h>

#include "fileio.h"

/* Open files of one process that are looked at, so that none can hold us up by opening many. */
#define FDINFO_FDS_MAX 4096

typedef struct FdinfoSum {
	uint64_t vram;    /* bytes resident in device memory: vram*, local*, vidmem* */
	uint64_t spilled; /* bytes that want to be there and are not: the driver's own figure
			     ("amd-evicted-vram"), else total - resident of those regions; 0 if the
			     driver tells neither */
	uint64_t other;   /* bytes resident in system memory: gtt*, system*, cpu* */
} FdinfoSum;

/* Parses the text of one fdinfo file. 1 and the client's id if it is a DRM client of that device
 * (pdev may be NULL: any), 0 if not. Values are added to sum only by the caller, since one
 * client may be open in several fds. */
int fdinfo_parse(const char *text, const char *pdev, uint64_t *ret_client, FdinfoSum *ret);

/* Sums the DRM clients of some processes on one device, each client once. Processes that ended
 * or may not be read are passed over. -ENOMEM only. */
int fdinfo_sum(const Roots *roots, const pid_t *pids, size_t n_pids, const char *pdev,
	       FdinfoSum *ret);
