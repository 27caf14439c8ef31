/* SPDX-License-Identifier: MIT */
/* Layer 1. dmem regions and the DRM devices that they belong to.
 *
 * The kernel says nothing when a region comes or goes; the DRM device's uevent does, so each one
 * leads to a new reading of dmem.capacity. Source: xf86drm.h, sd-device(3), amdgpu_drm.h. */
#pragma once

#include <systemd/sd-event.h>

#include "cgroup.h"

typedef struct Region {
	char *name;        /* "drm/0000:03:00.0/vram0" */
	uint64_t capacity; /* bytes */
	char pci[DMEM_PCI_MAX]; /* "" if the name has no address */
	char *driver;      /* "amdgpu"; NULL if there is no such device (any more) */
	char *primary_node; /* "/dev/dri/card0", or NULL */
	char *render_node;  /* "/dev/dri/renderD128", or NULL */
	uint64_t vram;     /* bytes that the driver tells; 0 = it does not */
	uint64_t link_bandwidth; /* bytes per second of its slowest PCIe link; 0 = not known */
	bool integrated;   /* a piece of system RAM: moving buffers out of it gains nothing */
} Region;

typedef struct Regions {
	Region *items;
	size_t n;
	bool ambiguous; /* a device is back while its old region is still open: the old one gets our writes, and
			   no event tells when it goes */
} Regions;

/* Reads dmem.capacity and looks each region's device up, without waking a suspended card: of one
 * that sleeps, link_bandwidth and integrated are not known. A relocated hierarchy has none. */
int regions_read(const Hierarchy *h, Regions *ret);
void regions_done(Regions *r);
const Region *regions_find(const Regions *r, const char *name);

typedef struct RegionMonitor RegionMonitor;
typedef void (*region_cb)(void *userdata);

/* Calls back from the event loop after DRM devices came or went; once for a burst. Needs udev:
 * without it no news comes. A region whose device is still held open by somebody leaves later,
 * unannounced. */
int region_monitor_new(sd_event *event, region_cb cb, void *userdata, RegionMonitor **ret);
RegionMonitor *region_monitor_free(RegionMonitor *m);
DEFINE_CLEANUP(RegionMonitor *, region_monitor_free)
#define auto_region_monitor _cleanup_(region_monitor_freep)
