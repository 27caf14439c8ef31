/* SPDX-License-Identifier: MIT */
#include <sys/stat.h>

#include "session-bus.h"

#define DRIVER "org.freedesktop.DBus"
#define DRIVER_PATH "/org/freedesktop/DBus"

int session_bus_probe(Probe *p)
{
	const char *runtime_dir = getenv("XDG_RUNTIME_DIR");
	auto_free char *path = NULL;
	struct stat st;
	int r;

	if (getenv("DBUS_SESSION_BUS_ADDRESS"))
		return probe_found(p, "bus");
	if (!runtime_dir)
		return 0;
	if (asprintf(&path, "%s/bus", runtime_dir) < 0)
		return -ENOMEM;
	r = probe_watch(p, runtime_dir);
	return r >= 0 && stat(path, &st) >= 0 && S_ISSOCK(st.st_mode) ? probe_found(p, "bus") : r;
}

static int on_disconnected(sd_bus_message *m _unused_, void *userdata, sd_bus_error *error _unused_)
{
	source_failed(userdata, -ECONNRESET, "the session bus has ended");
	return 0;
}

int session_bus_open(Source *s, sd_bus **ret)
{
	static const char local[] = "org.freedesktop.DBus.Local";
	_cleanup_(sd_bus_close_unrefp) sd_bus *bus = NULL;
	int r;

	r = sd_bus_open_user_with_description(&bus, "vramd-agent");
	if (r >= 0)
		r = sd_bus_match_signal_async(bus, NULL, local, NULL, local, "Disconnected", on_disconnected, NULL, s);
	if (r >= 0)
		r = sd_bus_attach_event(bus, source_get_event(s), SD_EVENT_PRIORITY_NORMAL);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(bus);
	return 0;
}

/* --- Names -------------------------------------------------------------------------------------- */

static int set_owner(BusName *n, const char *owner)
{
	bool first = !n->known;
	char *fresh = NULL;

	n->known = true;
	if (!first && streq(strempty(n->owner), owner))
		return 0;
	if (*owner) {
		fresh = strdup(owner);
		if (!fresh)
			return -ENOMEM;
	}
	free(n->owner);
	n->owner = fresh;
	n->changed(n->userdata);
	return 0;
}

static int on_owner_changed(sd_bus_message *m, void *userdata, sd_bus_error *error _unused_)
{
	const char *owner;
	int r = sd_bus_message_read(m, "sss", NULL, NULL, &owner);

	return r < 0 ? r : set_owner(userdata, owner);
}

static int on_owner(sd_bus_message *reply, void *userdata, sd_bus_error *error _unused_)
{
	const char *owner = "";
	int r = 0;

	if (!sd_bus_message_is_method_error(reply, NULL))
		r = sd_bus_message_read(reply, "s", &owner);
	return r < 0 ? r : set_owner(userdata, owner);
}

int bus_name_watch(sd_bus *bus, BusName *n)
{
	auto_free char *match = NULL;
	int r;

	if (asprintf(&match, "type='signal',sender='" DRIVER "',path='" DRIVER_PATH "',interface='" DRIVER
			     "',member='NameOwnerChanged',arg0='%s'", n->name) < 0)
		return -ENOMEM;
	r = sd_bus_add_match_async(bus, NULL, match, on_owner_changed, NULL, n);
	if (r >= 0)
		r = sd_bus_call_method_async(bus, NULL, DRIVER, DRIVER_PATH, DRIVER, "GetNameOwner", on_owner, n, "s",
					     n->name);
	return r;
}

void bus_name_done(BusName *n)
{
	free(n->owner);
	n->owner = NULL;
}
