/* SPDX-License-Identifier: MIT */
/* org.freedesktop.LogControl1(5): the log level at run time (systemctl service-log-level). */
#include "bus.h"
#include "log.h"

static int get_level(sd_bus *bus _unused_, const char *path _unused_, const char *interface _unused_,
		     const char *property _unused_, sd_bus_message *reply, void *userdata _unused_,
		     sd_bus_error *error _unused_)
{
	return sd_bus_message_append(reply, "s", log_level_to_string(log_get_max_level()));
}

static int set_level(sd_bus *bus _unused_, const char *path _unused_, const char *interface _unused_,
		     const char *property _unused_, sd_bus_message *value, void *userdata _unused_,
		     sd_bus_error *error)
{
	const char *name;
	int r;

	r = sd_bus_message_read(value, "s", &name);
	if (r < 0)
		return r;
	r = log_level_from_string(name);
	if (r < 0)
		return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "'%s' is no log level", name);
	log_set_max_level(r);
	return 0;
}

/* Lines go to standard error, which the service manager takes to the journal: there is no other target. */
static int get_target(sd_bus *bus _unused_, const char *path _unused_, const char *interface _unused_,
		      const char *property _unused_, sd_bus_message *reply, void *userdata _unused_,
		      sd_bus_error *error _unused_)
{
	return sd_bus_message_append(reply, "s", "console");
}

static int set_target(sd_bus *bus _unused_, const char *path _unused_, const char *interface _unused_,
		      const char *property _unused_, sd_bus_message *value, void *userdata _unused_,
		      sd_bus_error *error)
{
	const char *name;
	int r;

	r = sd_bus_message_read(value, "s", &name);
	if (r < 0)
		return r;
	if (!streq(name, "console") && !streq(name, "auto"))
		return sd_bus_error_setf(error, SD_BUS_ERROR_NOT_SUPPORTED, "vramd only logs to 'console'");
	return 0;
}

static int get_identifier(sd_bus *bus _unused_, const char *path _unused_, const char *interface _unused_,
			  const char *property _unused_, sd_bus_message *reply, void *userdata _unused_,
			  sd_bus_error *error _unused_)
{
	return sd_bus_message_append(reply, "s", program_invocation_short_name);
}

static const sd_bus_vtable log_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_WRITABLE_PROPERTY("LogLevel", "s", get_level, set_level, 0, 0),
	SD_BUS_WRITABLE_PROPERTY("LogTarget", "s", get_target, set_target, 0, 0),
	SD_BUS_PROPERTY("SyslogIdentifier", "s", get_identifier, 0, 0),
	SD_BUS_VTABLE_END,
};

int bus_register_log(Manager *m)
{
	return sd_bus_add_object_vtable(m->bus, NULL, "/org/freedesktop/LogControl1", "org.freedesktop.LogControl1",
					log_vtable, m);
}
