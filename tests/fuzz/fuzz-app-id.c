/* SPDX-License-Identifier: MIT */
/* A window's name for its application, which is the window's own affair, and behind a zero the name of a unit. */
#include "app-id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *app_id = strndup((const char *)data, size);
	size_t length = app_id ? strlen(app_id) : 0;
	auto_free char *unit = length < size ? strndup((const char *)data + length + 1, size - length - 1) : strdup("");

	if (!app_id || !unit)
		return 0;
	if (app_id_is_of_unit(app_id, unit)) {
		must(*app_id && startswith(unit, "app-"));
		must(endswith(unit, ".scope") || endswith(unit, ".service"));
	}
	must(app_id_get_steam(app_id) == 0 || startswith(app_id, "steam_app_"));
	return 0;
}
