/* SPDX-License-Identifier: MIT */
/* Layer 0. A connection to the system bus that waits for nobody. */
#pragma once

#include <systemd/sd-bus.h>

/* Fresh and not started: sd_bus_start() returns at once, also where the bus is not there yet, whose socket is then
 * waited for with inotify. DBUS_SYSTEM_BUS_ADDRESS counts as in sd_bus_open_system(3), which would wait. */
int system_bus_new(sd_bus **ret);
