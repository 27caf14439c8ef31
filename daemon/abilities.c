/* SPDX-License-Identifier: MIT */
#include <fcntl.h>

#include "abilities.h"
#include "knobs.h"

static bool top_level_has(const Hierarchy *h, const char *file)
{
	static const char *const groups[] = { "user.slice", "system.slice" };

	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		auto_free char *path = NULL;

		if (asprintf(&path, "%s/%s", groups[i], file) < 0) {
			path = NULL;
			continue;
		}
		if (faccessat(h->root_fd, path, F_OK, 0) == 0)
			return true;
	}
	return false;
}

void abilities_probe(const Roots *roots, const Hierarchy *h, const UnitMonitor *units,
		     const char *names[static _ABILITY_MAX + 1])
{
	size_t n = 0;

	if (h)
		names[n++] = "dmem";
	if (h && top_level_has(h, "dmem.peak"))
		names[n++] = "dmem-peak";
	if (h && top_level_has(h, "dmem.events"))
		names[n++] = "dmem-events";
	if (units && unit_monitor_has_device_memory(units) > 0)
		names[n++] = "device-memory-properties";
	if (knobs_throttle_active(roots))
		names[n++] = "throttle";
	names[n] = NULL;
}
