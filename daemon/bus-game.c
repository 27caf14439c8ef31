/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "bus.h"
#include "fdinfo.h"
#include "parse.h"

char *bus_game_path(const Game *g)
{
	char *path;

	if (!g)
		return strdup("/");
	return asprintf(&path, VRAMD_PATH_GAME "/%" PRIu64, g->id) < 0 ? NULL : path;
}

int bus_append_sizes(sd_bus_message *m, const Regions *regions, const uint64_t *values)
{
	int r;

	r = sd_bus_message_open_container(m, 'a', "{st}");
	for (size_t i = 0; i < regions->n && r >= 0; i++)
		if (values[i] != UINT64_MAX)
			r = sd_bus_message_append(m, "{st}", regions->items[i].name, values[i]);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

void bus_game_limits(const Manager *m, const Game *g, DmemLimit limit, uint64_t *values)
{
	for (size_t i = 0; i < m->regions.n; i++)
		if (apply_get(m->apply, g->unit.cgroup, m->regions.items[i].name, limit, &values[i]) < 0 ||
		    values[i] == 0)
			values[i] = UINT64_MAX;
}

void bus_game_usage(const Manager *m, const Game *g, const char *file, uint64_t *values)
{
	auto_dmem_table DmemTable table = { 0 };

	/* A group without dmem (yet) has nothing to show; that is no error. */
	(void)cgroup_read_table(g->group, file, &table);
	for (size_t i = 0; i < m->regions.n; i++)
		if (dmem_table_get(&table, m->regions.items[i].name, &values[i]) < 0)
			values[i] = UINT64_MAX;
}

void bus_game_eased(const Manager *m, const Game *g, uint64_t *values)
{
	const Easing *e = manager_easing(m, g);

	bus_game_limits(m, g, DMEM_LOW, values);
	for (size_t i = 0; i < m->regions.n; i++)
		if (!e || !easing_is_on(&e[i]))
			values[i] = UINT64_MAX;
}

int bus_game_spilled(Manager *m, const Game *g, uint64_t *values)
{
	auto_free pid_t *pids = NULL;
	size_t n = 0;
	int r;

	for (size_t i = 0; i < m->regions.n; i++)
		values[i] = UINT64_MAX;
	r = cgroup_procs(&m->hierarchy, g->unit.cgroup, &pids, &n);
	/* Gone, or made unreadable by its owner: one game must not hide the others. */
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	for (size_t i = 0; i < m->regions.n; i++) {
		const Region *region = &m->regions.items[i];
		FdinfoSum sum;

		if (!region->pci[0])
			continue;
		r = fdinfo_sum(&m->roots, pids, n, region->pci, &sum);
		if (r < 0)
			return r;
		values[i] = sum.spilled;
	}
	return 0;
}

/* --- Properties ------------------------------------------------------------------------------- */

static int get_property(sd_bus *bus _unused_, const char *path _unused_, const char *interface _unused_,
			const char *property, sd_bus_message *reply, void *userdata, sd_bus_error *error _unused_)
{
	const Game *g = userdata;

	if (streq(property, "AppID"))
		return sd_bus_message_append(reply, "u", g->identity.appid);
	if (streq(property, "User"))
		return sd_bus_message_append(reply, "u", (uint32_t)g->uid);
	if (streq(property, "Foreground"))
		return sd_bus_message_append(reply, "b", g->shown_role == ROLE_FRONT);
	if (streq(property, "Name"))
		return sd_bus_message_append(reply, "s", game_name(g->manager, g));
	if (streq(property, "Unit"))
		return sd_bus_message_append(reply, "s", g->unit.name);
	return sd_bus_message_append(reply, "s", g->unit.cgroup);
}

static int get_sizes(sd_bus *bus _unused_, const char *path _unused_, const char *interface _unused_,
		     const char *property, sd_bus_message *reply, void *userdata, sd_bus_error *error _unused_)
{
	const Game *g = userdata;
	Manager *m = g->manager;
	uint64_t values[DMEM_REGIONS_MAX];
	int r = 0;

	if (streq(property, "Low"))
		bus_game_limits(m, g, DMEM_LOW, values);
	else if (streq(property, "Min"))
		bus_game_limits(m, g, DMEM_MIN, values);
	else if (streq(property, "Eased"))
		bus_game_eased(m, g, values);
	else if (streq(property, "Current"))
		bus_game_usage(m, g, "dmem.current", values);
	else if (streq(property, "Peak"))
		bus_game_usage(m, g, "dmem.peak", values);
	else if (streq(property, "Spilled"))
		r = bus_game_spilled(m, g, values);
	else if (streq(property, "Evictions"))
		manager_evicted(m, g, values, NULL);
	else
		manager_evicted(m, g, NULL, values);
	return r < 0 ? r : bus_append_sizes(reply, &m->regions, values);
}

static const sd_bus_vtable game_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_PROPERTY("AppID", "u", get_property, 0, 0),
	SD_BUS_PROPERTY("Name", "s", get_property, 0, 0),
	SD_BUS_PROPERTY("Unit", "s", get_property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("ControlGroup", "s", get_property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("User", "u", get_property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("Foreground", "b", get_property, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("Low", "a{st}", get_sizes, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("Min", "a{st}", get_sizes, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("Eased", "a{st}", get_sizes, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("Current", "a{st}", get_sizes, 0, 0),
	SD_BUS_PROPERTY("Peak", "a{st}", get_sizes, 0, 0),
	SD_BUS_PROPERTY("Spilled", "a{st}", get_sizes, 0, 0),
	SD_BUS_PROPERTY("Evicted", "a{st}", get_sizes, 0, 0),
	SD_BUS_PROPERTY("Evictions", "a{st}", get_sizes, 0, 0),
	SD_BUS_VTABLE_END,
};

static int find_game(sd_bus *bus _unused_, const char *path, const char *interface _unused_, void *userdata,
		     void **ret, sd_bus_error *error _unused_)
{
	const char *id_text = startswith(path, VRAMD_PATH_GAME "/");
	uint64_t id;

	if (!id_text || parse_u64(id_text, &id) < 0)
		return 0;
	*ret = manager_game_by_id(userdata, id);
	return *ret ? 1 : 0;
}

static int list_games(sd_bus *bus _unused_, const char *prefix _unused_, void *userdata, char ***ret,
		      sd_bus_error *error _unused_)
{
	Manager *m = userdata;
	char **paths;
	size_t n = 0;

	paths = calloc(m->n_games + 1, sizeof(*paths));
	if (!paths)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_games; i++) {
		if (!m->games[i]->announced)
			continue;
		paths[n] = bus_game_path(m->games[i]);
		if (paths[n])
			n++;
	}
	*ret = paths;
	return 0;
}

int bus_register_games(Manager *m)
{
	int r;

	r = sd_bus_add_fallback_vtable(m->bus, NULL, VRAMD_PATH_GAME, VRAMD_IFACE_GAME, game_vtable, find_game, m);
	if (r < 0)
		return r;
	return sd_bus_add_node_enumerator(m->bus, NULL, VRAMD_PATH_GAME, list_games, m);
}
