/* SPDX-License-Identifier: MIT */
/* io.github.vramd1.Kernel: the knobs as properties. sd-bus answers a Set() as soon as its setter returns, and polkit
 * takes longer than that: on_call() takes those calls before sd-bus looks for a setter. */
#include "bus.h"
#include "log.h"

static int knob_error(const Manager *m, Knob k, int r, sd_bus_error *error)
{
	const KnobInfo *info = &knob_infos[k];
	char text[KNOB_TEXT_MAX];

	switch (r) {
	case -ENOENT:
		return sd_bus_error_setf(error, VRAMD_ERROR_NO_SUCH_KNOB,
					 "'%s' is not there: the kernel has no parameter '%s' of '%s', or no such module",
					 info->name, info->parameter, info->module);
	case -ERANGE:
		return sd_bus_error_setf(error, VRAMD_ERROR_OUT_OF_RANGE, "'%s' is at most %s", info->name,
					 knob_format(text, info->kind, info->max));
	case -ENODEV:
		return sd_bus_error_setf(error, VRAMD_ERROR_NEEDS_KNOB, "'%s' needs '%s', which is off", info->name,
					 knob_infos[info->needs].name);
	case -EOPNOTSUPP:
		return sd_bus_error_setf(error, VRAMD_ERROR_UNAVAILABLE, "%s", strempty(m->reason));
	default:
		return sd_bus_error_set_errnof(error, r, "'%s' cannot be set: %s", info->name, strerror(-r));
	}
}

/* --- Set -------------------------------------------------------------------------------------- */

static int read_value(sd_bus_message *message, Knob k, uint32_t *ret, sd_bus_error *error)
{
	const KnobInfo *info = &knob_infos[k];
	const char *type = info->kind == KNOB_SWITCH ? "b" : "u";
	const char *contents;
	int on, r;

	r = sd_bus_message_peek_type(message, NULL, &contents);
	if (r < 0)
		return r;
	if (!streq_ptr(contents, type))
		return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "'%s' is of type '%s'", info->name, type);
	r = sd_bus_message_enter_container(message, 'v', type);
	if (r < 0)
		return r;
	if (info->kind != KNOB_SWITCH)
		return sd_bus_message_read(message, "u", ret);
	r = sd_bus_message_read(message, "b", &on);
	if (r >= 0)
		*ret = (uint32_t)on;
	return r;
}

/* The knob that a Set() is about; _KNOB_MAX if it is about something else. */
static Knob read_knob(sd_bus_message *message)
{
	const char *interface, *property;

	if (sd_bus_message_read(message, "ss", &interface, &property) < 0 || !streq(interface, VRAMD_IFACE_KERNEL))
		return _KNOB_MAX;
	return knob_from_name(property);
}

static int read_set(Manager *m, sd_bus_message *message, Knob *ret_knob, uint32_t *ret_value, sd_bus_error *error)
{
	int r;

	*ret_knob = read_knob(message);
	r = read_value(message, *ret_knob, ret_value, error);
	if (r < 0)
		return r;
	r = manager_check_knob(m, *ret_knob, *ret_value);
	return r < 0 ? knob_error(m, *ret_knob, r, error) : 0;
}

static int do_set(Manager *m, Knob k, uint32_t value, sd_bus_message *message, sd_bus_error *error)
{
	int r = manager_set_knob(m, k, value);

	return r < 0 ? knob_error(m, k, r, error) : sd_bus_reply_method_return(message, NULL);
}

static void on_set_verdict(sd_bus_message *message, int verdict, void *userdata)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	uint32_t value;
	Knob k;
	int r;

	if (verdict <= 0) {
		(void)bus_reply_denied(message, verdict, VRAMD_ACTION_SET_KERNEL);
		return;
	}
	/* Read again: the module may have gone while somebody typed a password. */
	r = sd_bus_message_rewind(message, true);
	if (r >= 0)
		r = read_set(userdata, message, &k, &value, &error);
	if (r >= 0)
		r = do_set(userdata, k, value, message, &error);
	bus_reply_if_error(message, r, &error);
}

static int on_call(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	uint32_t value;
	Knob k;
	int r;

	if (!sd_bus_message_is_method_call(message, "org.freedesktop.DBus.Properties", "Set") ||
	    !sd_bus_message_has_signature(message, "ssv") || read_knob(message) == _KNOB_MAX)
		return 0;
	r = sd_bus_message_rewind(message, true);
	if (r >= 0)
		r = read_set(userdata, message, &k, &value, error);
	if (r >= 0)
		r = bus_ask(userdata, message, VRAMD_ACTION_SET_KERNEL, on_set_verdict, error);
	return r != 0 ? r : do_set(userdata, k, value, message, error);
}

/* --- Reset ------------------------------------------------------------------------------------ */

static int do_reset(Manager *m, sd_bus_message *message, sd_bus_error *error)
{
	if (manager_reset_knobs(m) < 0)
		return sd_bus_error_setf(error, VRAMD_ERROR_UNAVAILABLE, "%s", strempty(m->reason));
	return sd_bus_reply_method_return(message, NULL);
}

static void on_reset_verdict(sd_bus_message *message, int verdict, void *userdata)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

	if (verdict <= 0)
		(void)bus_reply_denied(message, verdict, VRAMD_ACTION_SET_KERNEL);
	else
		bus_reply_if_error(message, do_reset(userdata, message, &error), &error);
}

static int method_reset(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	int r = bus_ask(userdata, message, VRAMD_ACTION_SET_KERNEL, on_reset_verdict, error);

	return r != 0 ? r : do_reset(userdata, message, error);
}

/* --- Properties ------------------------------------------------------------------------------- */

/* One that is not there is 0: an error would take the answer to GetAll() with it. */
static int get_knob(sd_bus *bus _unused_, const char *path _unused_, const char *interface _unused_,
		    const char *property, sd_bus_message *reply, void *userdata, sd_bus_error *error _unused_)
{
	Knob k = knob_from_name(property);
	KnobOrigin origin;
	uint32_t value;

	if (manager_get_knob(userdata, k, &value, &origin) < 0)
		value = 0;
	return sd_bus_message_append(reply, knob_infos[k].kind == KNOB_SWITCH ? "b" : "u", value);
}

/* on_call() has let nothing come so far. */
static int set_knob(sd_bus *bus _unused_, const char *path _unused_, const char *interface _unused_,
		    const char *property, sd_bus_message *value _unused_, void *userdata _unused_, sd_bus_error *error)
{
	return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED, "'%s' cannot be set this way", property);
}

static int get_available(sd_bus *bus _unused_, const char *path _unused_, const char *interface _unused_,
			 const char *property _unused_, sd_bus_message *reply, void *userdata,
			 sd_bus_error *error _unused_)
{
	KnobOrigin origin;
	uint32_t value;
	int r;

	r = sd_bus_message_open_container(reply, 'a', "s");
	for (Knob k = 0; k < _KNOB_MAX && r >= 0; k++)
		if (manager_get_knob(userdata, k, &value, &origin) >= 0)
			r = sd_bus_message_append(reply, "s", knob_infos[k].name);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int get_origins(sd_bus *bus _unused_, const char *path _unused_, const char *interface _unused_,
		       const char *property _unused_, sd_bus_message *reply, void *userdata,
		       sd_bus_error *error _unused_)
{
	KnobOrigin origin;
	uint32_t value;
	int r;

	r = sd_bus_message_open_container(reply, 'a', "{ss}");
	for (Knob k = 0; k < _KNOB_MAX && r >= 0; k++)
		if (manager_get_knob(userdata, k, &value, &origin) >= 0)
			r = sd_bus_message_append(reply, "{ss}", knob_infos[k].name, knob_origin_to_string(origin));
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

#define KNOB_PROPERTY(name, type) \
	SD_BUS_WRITABLE_PROPERTY(name, type, get_knob, set_knob, 0, \
				 SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE | SD_BUS_VTABLE_UNPRIVILEGED)

static const sd_bus_vtable kernel_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD_WITH_ARGS("Reset", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_reset, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_PROPERTY("Available", "as", get_available, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("Origins", "a{ss}", get_origins, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	KNOB_PROPERTY("ThrottleHard", "u"),
	KNOB_PROPERTY("ThrottleSoft", "u"),
	KNOB_PROPERTY("ThrottleLevels", "u"),
	KNOB_PROPERTY("ReclaimBackoff", "u"),
	KNOB_PROPERTY("ContigWindow", "b"),
	KNOB_PROPERTY("EvictPriority", "b"),
	KNOB_PROPERTY("DisplaceLower", "b"),
	KNOB_PROPERTY("GfxoffDelay", "u"),
	SD_BUS_VTABLE_END,
};

int bus_emit_knobs(Manager *m)
{
	char *names[_KNOB_MAX + 3] = { (char *)"Available", (char *)"Origins" };

	for (Knob k = 0; k < _KNOB_MAX; k++)
		names[k + 2] = (char *)knob_infos[k].name;
	return sd_bus_emit_properties_changed_strv(m->bus, VRAMD_PATH, VRAMD_IFACE_KERNEL, names);
}

int bus_register_kernel(Manager *m)
{
	int r;

	r = sd_bus_add_object(m->bus, NULL, VRAMD_PATH, on_call, m);
	if (r < 0)
		return r;
	return sd_bus_add_object_vtable(m->bus, NULL, VRAMD_PATH, VRAMD_IFACE_KERNEL, kernel_vtable, m);
}
