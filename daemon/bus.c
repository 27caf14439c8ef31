/* SPDX-License-Identifier: MIT */
/* The manager's hooks: each becomes a signal or a change of properties. */
#include "bus.h"
#include "log.h"
#include "parse.h"

static void warn_if(int r, const char *signal)
{
	if (r < 0 && r != -ENOTCONN)
		log_warning_errno(r, "Cannot send the signal '%s', ignoring: %m", signal);
}

static void emit_game_changed(Manager *m, const Game *g)
{
	auto_free char *path = bus_game_path(g);

	if (path)
		warn_if(sd_bus_emit_properties_changed(m->bus, path, VRAMD_IFACE_GAME, "Foreground", "Low",
						       "Min", "Eased", NULL),
			"PropertiesChanged");
}

static void on_state_changed(Manager *m)
{
	if (m->bus)
		warn_if(sd_bus_emit_properties_changed(m->bus, VRAMD_PATH, VRAMD_IFACE_MANAGER, "State",
						       "Reason", NULL),
			"PropertiesChanged");
}

static void on_knobs_changed(Manager *m)
{
	if (m->bus)
		warn_if(bus_emit_knobs(m), "PropertiesChanged");
}

static void on_limits_changed(Manager *m, const Game *g)
{
	if (m->bus)
		emit_game_changed(m, g);
}

static void on_focus_changed(Manager *m, const Game *front, const char *reason)
{
	auto_free char *path = bus_game_path(front);

	log_info("%s%s%s (menu %s, source %s): %s", front ? "'" : "", front ? game_name(m, front) : "Nobody",
		 front ? "' is in front" : " is in front", menu_state_to_string(m->menu),
		 m->focus_source && *m->focus_source ? m->focus_source : "none", reason);
	if (!path || !m->bus)
		return;
	warn_if(sd_bus_emit_signal(m->bus, VRAMD_PATH, VRAMD_IFACE_MANAGER, "FocusChanged", "osss", path,
				   menu_state_to_string(m->menu), strempty(m->focus_source), reason),
		"FocusChanged");
	warn_if(sd_bus_emit_properties_changed(m->bus, VRAMD_PATH, VRAMD_IFACE_MANAGER, "ForegroundGame", "Menu",
					       "FocusSource", NULL),
		"PropertiesChanged");
}

static int send_protected(Manager *m, const Game *g, const char *path, const char *reason)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *signal = NULL;
	uint64_t low[DMEM_REGIONS_MAX];
	int r;

	bus_game_limits(m, g, DMEM_LOW, low);
	r = sd_bus_message_new_signal(m->bus, &signal, VRAMD_PATH, VRAMD_IFACE_MANAGER, "Protected");
	if (r >= 0)
		r = sd_bus_message_append(signal, "os", path, g->unit.name);
	if (r >= 0)
		r = bus_append_sizes(signal, &m->regions, low);
	if (r >= 0)
		r = sd_bus_message_append(signal, "s", reason);
	return r < 0 ? r : sd_bus_send(m->bus, signal, NULL);
}

static void on_protected(Manager *m, const Game *g, const char *reason)
{
	auto_free char *path = bus_game_path(g);

	log_info("Protecting '%s' in %s as the game %s", game_name(m, g), g->unit.name,
		 g->shown_role == ROLE_FRONT ? "in front" : "in the background");
	if (!path || !m->bus)
		return;
	warn_if(send_protected(m, g, path, reason), "Protected");
	emit_game_changed(m, g);
}

static void on_released(Manager *m, const Game *g, const char *reason)
{
	auto_free char *path = bus_game_path(g);

	log_info("No longer protecting '%s': %s", game_name(m, g), reason);
	if (!path || !m->bus)
		return;
	warn_if(sd_bus_emit_signal(m->bus, VRAMD_PATH, VRAMD_IFACE_MANAGER, "Released", "oss", path, g->unit.name,
				   reason),
		"Released");
	emit_game_changed(m, g);
}

static void on_contested(Manager *m, const char *path, const char *region, DmemLimit limit, uint64_t ours,
			 uint64_t theirs, const char *reason)
{
	if (m->bus)
		warn_if(sd_bus_emit_signal(m->bus, VRAMD_PATH, VRAMD_IFACE_MANAGER, "Contested", "ssstts",
					   path, region, dmem_limit_to_file(limit), ours, theirs, reason),
			"Contested");
}

static void on_eased(Manager *m, const Game *g, const char *region, uint64_t lost, const char *reason)
{
	auto_free char *path = bus_game_path(g);
	char bytes[FORMAT_BYTES_MAX];

	log_debug("Easing '%s', which lost %s of %s: %s", game_name(m, g), format_bytes(bytes, lost), region, reason);
	if (!path || !m->bus)
		return;
	warn_if(sd_bus_emit_signal(m->bus, VRAMD_PATH, VRAMD_IFACE_MANAGER, "Eased", "osts", path, region, lost,
				   reason),
		"Eased");
}

static void on_restored(Manager *m, const Game *g, const char *region, const char *reason)
{
	auto_free char *path = bus_game_path(g);
	uint64_t low;

	log_debug("No longer easing '%s' in %s: %s", game_name(m, g), region, reason);
	if (!path || !m->bus)
		return;
	if (apply_get(m->apply, g->unit.cgroup, region, DMEM_LOW, &low) < 0)
		low = 0;
	warn_if(sd_bus_emit_signal(m->bus, VRAMD_PATH, VRAMD_IFACE_MANAGER, "Restored", "osts", path, region, low,
				   reason),
		"Restored");
}

static void on_evicted(Manager *m, const Game *g, const char *region, uint64_t bytes, const char *by,
		       const char *reason)
{
	auto_free char *path = bus_game_path(g);
	char text[FORMAT_BYTES_MAX];

	log_debug("'%s' lost %s of %s to %s: %s", game_name(m, g), format_bytes(text, bytes), region,
		  *by ? by : "somebody", reason);
	if (!path || !m->bus)
		return;
	warn_if(sd_bus_emit_signal(m->bus, VRAMD_PATH, VRAMD_IFACE_MANAGER, "Evicted", "ostss", path, region, bytes,
				   by, reason),
		"Evicted");
}

static void on_game_added(Manager *m, const Game *g)
{
	auto_free char *path = bus_game_path(g);

	if (path && m->bus)
		warn_if(sd_bus_emit_object_added(m->bus, path), "InterfacesAdded");
}

static void on_game_removed(Manager *m, const Game *g)
{
	auto_free char *path = bus_game_path(g);

	if (path && m->bus)
		warn_if(sd_bus_emit_interfaces_removed(m->bus, path, VRAMD_IFACE_GAME, NULL), "InterfacesRemoved");
}

static void emit_region(Manager *m, const Region *region, bool added)
{
	auto_free char *path = NULL;

	if (sd_bus_path_encode(VRAMD_PATH_REGION, region->name, &path) < 0)
		return;
	warn_if(added ? sd_bus_emit_object_added(m->bus, path)
		      : sd_bus_emit_interfaces_removed(m->bus, path, VRAMD_IFACE_REGION, NULL),
		added ? "InterfacesAdded" : "InterfacesRemoved");
}

static void on_regions_changed(Manager *m, const Regions *before)
{
	if (!m->bus)
		return;
	for (size_t i = 0; i < before->n; i++)
		if (!regions_find(&m->regions, before->items[i].name))
			emit_region(m, &before->items[i], false);
	for (size_t i = 0; i < m->regions.n; i++)
		if (!regions_find(before, m->regions.items[i].name))
			emit_region(m, &m->regions.items[i], true);
}

static int on_name(sd_bus_message *reply, void *userdata, sd_bus_error *error _unused_)
{
	Manager *m = userdata;
	uint32_t result;
	int r;

	/* A bus that restarts may end the connection of which it took the first calls: it is made anew. */
	if (sd_bus_is_open(m->bus) <= 0)
		return 0;
	if (sd_bus_message_is_method_error(reply, NULL)) {
		r = -sd_bus_message_get_errno(reply);
		log_error("Cannot own the bus name '%s': %s", VRAMD_BUS_NAME,
			  sd_bus_message_get_error(reply)->message);
		return sd_event_exit(m->event, r);
	}
	r = sd_bus_message_read(reply, "u", &result);
	if (r < 0)
		return sd_event_exit(m->event, r);
	/* 1 = owner, 4 = already ours */
	if (result != 1 && result != 4) {
		log_error("The bus name '%s' is taken: another vramd is running", VRAMD_BUS_NAME);
		return sd_event_exit(m->event, -EEXIST);
	}
	m->hooks->ready(m);
	return 0;
}

static int on_connected(Manager *m)
{
	int r;

	r = bus_register_manager(m);
	if (r >= 0)
		r = bus_register_games(m);
	if (r >= 0)
		r = bus_register_regions(m);
	if (r >= 0)
		r = bus_register_kernel(m);
	if (r >= 0)
		r = bus_register_log(m);
	if (r < 0)
		return r;
	return sd_bus_request_name_async(m->bus, NULL, VRAMD_BUS_NAME, 0, on_name, m);
}

void bus_init(Manager *m, void (*ready)(Manager *m))
{
	static ManagerHooks hooks = {
		.focus_changed = on_focus_changed,
		.protected = on_protected,
		.released = on_released,
		.contested = on_contested,
		.eased = on_eased,
		.restored = on_restored,
		.evicted = on_evicted,
		.game_added = on_game_added,
		.game_removed = on_game_removed,
		.regions_changed = on_regions_changed,
		.limits_changed = on_limits_changed,
		.state_changed = on_state_changed,
		.knobs_changed = on_knobs_changed,
		.connected = on_connected,
	};

	hooks.ready = ready;
	m->hooks = &hooks;
}
