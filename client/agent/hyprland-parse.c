/* SPDX-License-Identifier: MIT */
#include "hyprland-parse.h"

#include "app-id.h"
#include "json-read.h"

static bool take_line(const char *line, size_t n, HyprlandActive *active)
{
	static const char event[] = "activewindowv2>>";
	HyprlandActive fresh = {};
	const char *address = line + strlen(event);
	size_t size = n - MIN(n, strlen(event));

	if (n < strlen(event) || memcmp(line, event, strlen(event)) != 0)
		return false;
	/* Versions of 2023 say "," for none. */
	if (size > 0 && *address != ',')
		memcpy(fresh.address, address, MIN(size, sizeof(fresh.address) - 1));
	if (memcmp(&fresh, active, sizeof(fresh)) == 0)
		return false;
	*active = fresh;
	return true;
}

size_t hyprland_parse_events(const char *data, size_t n, HyprlandActive *active, bool *moved)
{
	const char *line = data, *end;

	while ((end = memchr(line, '\n', n - (size_t)(line - data)))) {
		if (take_line(line, (size_t)(end - line), active))
			*moved = true;
		line = end + 1;
	}
	return (size_t)(line - data);
}

int hyprland_parse_window(const char *text, size_t n, DesktopView *ret)
{
	auto_json json_object *o = json_read(text, n);
	DesktopView v = {};

	if (!o)
		return -EBADMSG;
	if (json_object_object_length(o) == 0) {
		v.front = FRONT_NOBODY;
	} else if (json_get_pid(o, "pid", &v.pid)) {
		v.front = FRONT_PROCESS;
		v.appid = app_id_get_steam(json_get_text(o, "class"));
	}
	*ret = v;
	return 0;
}
