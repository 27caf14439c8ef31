/* SPDX-License-Identifier: MIT */
/* Layer 1. What kernel and systemd can do here, by looking at what is there, never by version. */
#pragma once

#include "cgroup.h"
#include "unit.h"

typedef enum Ability {
	ABILITY_DMEM,           /* the controller itself (6.14) */
	ABILITY_DMEM_PEAK,      /* dmem.peak; with it, since 7.3, protected allocations evict the unprotected */
	ABILITY_DMEM_EVENTS,    /* dmem.events: evictions are counted and told */
	ABILITY_SYSTEMD_MEMORY, /* systemd's DeviceMemoryLow= */
	ABILITY_THROTTLE,       /* see knobs_throttle_active() */
	_ABILITY_MAX,
} Ability;

/* Fills names with a NULL-terminated list of static strings. The files of dmem are only there in groups
 * whose parent distributes it, so before the first game in front only the controller can be seen. h and
 * units may be NULL. */
void abilities_probe(const Roots *roots, const Hierarchy *h, const UnitMonitor *units,
		     const char *names[static _ABILITY_MAX + 1]);
