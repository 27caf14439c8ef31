/* SPDX-License-Identifier: MIT */
#include "system-bus.h"
#include "util.h"

#define DEFAULT_ADDRESS "unix:path=/run/dbus/system_bus_socket"

int system_bus_new(sd_bus **ret)
{
	_cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
	const char *address = secure_getenv("DBUS_SYSTEM_BUS_ADDRESS");
	int r;

	r = sd_bus_new(&bus);
	if (r >= 0)
		r = sd_bus_set_address(bus, address ? address : DEFAULT_ADDRESS);
	if (r >= 0)
		r = sd_bus_set_bus_client(bus, true);
	if (r >= 0)
		r = sd_bus_set_watch_bind(bus, true);
	if (r >= 0)
		r = sd_bus_negotiate_fds(bus, true);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(bus);
	return 0;
}
