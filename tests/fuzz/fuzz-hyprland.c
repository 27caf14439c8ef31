/* SPDX-License-Identifier: MIT */
/* Both as lines of events and as an answer. */
#include "hyprland-parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* However it is cut into two pieces, it means the same. */
static void check_events(const char *text, size_t size)
{
	HyprlandActive whole = {}, parts = {};
	bool moved_whole = false, moved_parts = false;
	size_t taken = hyprland_parse_events(text, size, &whole, &moved_whole), first;

	must(taken <= size && memchr(text + taken, '\n', size - taken) == NULL);
	first = hyprland_parse_events(text, size / 2, &parts, &moved_parts);
	must(first <= size / 2);
	must(first + hyprland_parse_events(text + first, size - first, &parts, &moved_parts) == taken);
	must(moved_whole == moved_parts && memcmp(&whole, &parts, sizeof(whole)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	DesktopView v;

	check_events((const char *)data, size);
	if (hyprland_parse_window((const char *)data, size, &v) >= 0)
		must((v.front == FRONT_PROCESS) == (v.pid > 1) && (v.front == FRONT_PROCESS || v.appid == 0));
	return 0;
}
