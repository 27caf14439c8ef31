/* SPDX-License-Identifier: MIT */
/* Layer 1. The text of the dmem controller's files, and nothing else: no file is opened here.
 *
 * dmem.capacity, .current, .peak, .min, .low and .max hold one "region value" line per region; the
 * value is bytes or "max". A write takes exactly one such pair since Linux 7.3 (7296004bd2ce), and
 * one pair is right for every older kernel too.
 * Source: Documentation/admin-guide/cgroup-v2.rst, "DMEM"; kernel/cgroup/dmem.c.
 * dmem.events is new with our companion series (kernel/): one "region key=value ..." line per region. */
#pragma once

#include "util.h"

#define DMEM_UNLIMITED UINT64_MAX /* "max" */
#define DMEM_REGION_MAX 128       /* bytes of a region's name that we accept, NUL included */
#define DMEM_REGIONS_MAX 64       /* regions that we track at once */
#define DMEM_TEXT_MAX (64 * KIB)  /* longest dmem file that we read */

/* The limits that can be written. Order: the stronger promise first. */
typedef enum DmemLimit {
	DMEM_MIN,
	DMEM_LOW,
	DMEM_MAX,
	_DMEM_LIMIT_MAX,
	_DMEM_LIMIT_INVALID = -EINVAL,
} DmemLimit;

const char *dmem_limit_to_file(DmemLimit limit);   /* "dmem.min", ... */
DmemLimit dmem_limit_from_file(const char *name);  /* _DMEM_LIMIT_INVALID if it is none */
uint64_t dmem_limit_default(DmemLimit limit);      /* 0, 0, DMEM_UNLIMITED */

typedef struct DmemEntry {
	char *region;
	uint64_t value;
} DmemEntry;

typedef struct DmemTable {
	DmemEntry *entries;
	size_t n;
	bool ambiguous; /* a name is there twice: the first counts, and is the one that writes reach */
} DmemTable;

/* Parses a whole file. -EBADMSG for a line that is not "region value", a name longer than
 * DMEM_REGION_MAX, or more than DMEM_REGIONS_MAX lines; -ENOMEM. A name is twice there while a device has
 * come back and somebody still has the old one open. An empty
 * text is an empty table (a kernel with no region registered). */
int dmem_parse(const char *text, DmemTable *ret);
void dmem_table_done(DmemTable *table);
#define auto_dmem_table _cleanup_(dmem_table_done)

/* The value of one region; -ENXIO if the table does not have it. */
int dmem_table_get(const DmemTable *table, const char *region, uint64_t *ret);

/* The value of one region straight from a file's text, without allocation; -ENXIO if the region
 * has no line, -EBADMSG if its line is malformed. */
int dmem_find(const char *text, const char *region, uint64_t *ret);

/* What dmem.events counts for one region. */
typedef struct DmemEvents {
	uint64_t evictions; /* buffers that were moved out */
	uint64_t evicted_bytes;
	uint64_t foreign_evictions; /* those for a buffer of somebody outside of the group */
} DmemEvents;

/* The counters of one region; errors as dmem_find(). Keys may come in any order, those that we do not know are left
 * out, and those that are not there are 0. */
int dmem_find_events(const char *text, const char *region, DmemEvents *ret);

/* How many buffers were evicted for others since the last call, and their bytes; *seen moves on by these. The kernel
 * counts the bytes of all evictions together: with some of a group's own among them, the bytes are a share by number.
 * It does not count all at once either: what is half counted in one text is taken with the next. Counters that are
 * below those seen began anew. */
uint64_t dmem_events_take(DmemEvents *seen, const DmemEvents *now, uint64_t *ret_bytes);

/* The text of one write: "region value", no newline. -EINVAL for a name that could be taken for
 * more than one token, -ENAMETOOLONG. */
#define DMEM_LINE_MAX (DMEM_REGION_MAX + 24)
int dmem_format(char buf[static DMEM_LINE_MAX], const char *region, uint64_t value);

/* The PCI address in a DRM region's name: "drm/0000:03:00.0/vram0" gives "0000:03:00.0". -ENXIO
 * if the name has none. */
#define DMEM_PCI_MAX 16
int dmem_region_pci(const char *region, char ret[static DMEM_PCI_MAX]);
