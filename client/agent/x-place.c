/* SPDX-License-Identifier: MIT */
#include <sys/stat.h>

#include "parse.h"
#include "unix-socket.h"
#include "x-place.h"

#define SOCKET_DIR "/tmp/.X11-unix"

static int found_display(Probe *p, const char *number)
{
	char place[16];
	uint32_t n;

	if (parse_u32(number, &n) < 0)
		return 0;
	(void)snprintf(place, sizeof(place), ":%u", n);
	return probe_found(p, place);
}

int x_places_probe(Probe *p)
{
	auto_closedir DIR *d = opendir(SOCKET_DIR);
	struct dirent *de;
	int r;

	r = probe_watch(p, SOCKET_DIR);
	while (r >= 0 && d && (de = readdir(d)))
		if (de->d_name[0] == 'X' && unix_socket_is_own(dirfd(d), de->d_name))
			r = found_display(p, de->d_name + 1);
	return r;
}

/* ":1", ":1.0", "unix:1" */
int x_place_probe_own(Probe *p)
{
	const char *display = getenv("DISPLAY"), *number;
	auto_free char *digits = NULL, *path = NULL;
	struct stat st;
	int r;

	r = probe_watch(p, SOCKET_DIR);
	if (r < 0 || !display)
		return r;
	number = startswith(display, "unix:");
	number = number ? number : startswith(display, ":");
	if (!number)
		return 0;
	digits = strndup(number, strcspn(number, "."));
	if (!digits || asprintf(&path, SOCKET_DIR "/X%s", digits) < 0)
		return -ENOMEM;
	return stat(path, &st) >= 0 && S_ISSOCK(st.st_mode) ? found_display(p, digits) : 0;
}

int x_place_open(sd_event *event, const char *place, char *const *files, const XCallbacks *callbacks, void *userdata,
		 XServer **ret)
{
	char path[sizeof(SOCKET_DIR "/X") + 10];
	uint32_t display;

	if (place[0] != ':' || parse_u32(place + 1, &display) < 0)
		return -EINVAL;
	(void)snprintf(path, sizeof(path), SOCKET_DIR "/X%u", display);
	return xserver_open(event, path, display, files, callbacks, userdata, ret);
}
