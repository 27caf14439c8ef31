/* SPDX-License-Identifier: MIT */
#include "bus.h"

static const Region *region_of(const char *path, Manager *m)
{
	auto_free char *name = NULL;

	if (sd_bus_path_decode(path, VRAMD_PATH_REGION, &name) <= 0)
		return NULL;
	return regions_find(&m->regions, name);
}

/* What the root group of the hierarchy has charged. */
static uint64_t region_current(const Manager *m, const Region *region)
{
	auto_cgroup Cgroup *root = NULL;
	auto_dmem_table DmemTable table = { 0 };
	uint64_t value = 0;

	if (cgroup_open(&m->hierarchy, "/", &root) < 0 || cgroup_read_table(root, "dmem.current", &table) < 0)
		return 0;
	(void)dmem_table_get(&table, region->name, &value);
	return value;
}

/* The top-level groups hold the sums of everything that is promised below them. */
static uint64_t region_protected(const Manager *m, const Region *region)
{
	uint64_t sum = 0;

	for (size_t k = 0; k < m->plan.n_regions; k++) {
		if (!streq(m->plan.regions[k], region->name))
			continue;
		for (size_t i = 0; i < m->plan.n_groups; i++) {
			const PlanLimits *l = &m->plan.groups[i].limits[k];

			if (cgroup_path_depth(m->plan.groups[i].path) == 1)
				sum = add_sat(sum, MAX(l->value[DMEM_MIN], l->value[DMEM_LOW]));
		}
	}
	return sum;
}

static int get_property(sd_bus *bus _unused_, const char *path, const char *interface _unused_, const char *property,
			sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	Manager *m = userdata;
	const Region *region = region_of(path, m);

	if (!region)
		return sd_bus_error_setf(error, SD_BUS_ERROR_UNKNOWN_OBJECT,
					 "There is no region '%s' (any more)", path);
	if (streq(property, "Name"))
		return sd_bus_message_append(reply, "s", region->name);
	if (streq(property, "DevicePath"))
		return sd_bus_message_append(reply, "s", strempty(region->primary_node));
	if (streq(property, "PCI"))
		return sd_bus_message_append(reply, "s", region->pci);
	if (streq(property, "Driver"))
		return sd_bus_message_append(reply, "s", strempty(region->driver));
	if (streq(property, "CapacityBytes"))
		return sd_bus_message_append(reply, "t", region->capacity);
	if (streq(property, "LinkBandwidth"))
		return sd_bus_message_append(reply, "t", region->link_bandwidth);
	if (streq(property, "Integrated"))
		return sd_bus_message_append(reply, "b", region->integrated);
	if (streq(property, "Current"))
		return sd_bus_message_append(reply, "t", region_current(m, region));
	return sd_bus_message_append(reply, "t", region_protected(m, region));
}

static const sd_bus_vtable region_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_PROPERTY("Name", "s", get_property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("DevicePath", "s", get_property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("PCI", "s", get_property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("Driver", "s", get_property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("CapacityBytes", "t", get_property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("LinkBandwidth", "t", get_property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("Integrated", "b", get_property, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("Current", "t", get_property, 0, 0),
	SD_BUS_PROPERTY("Protected", "t", get_property, 0, 0),
	SD_BUS_VTABLE_END,
};

static int find_region(sd_bus *bus _unused_, const char *path, const char *interface _unused_, void *userdata,
		       void **ret, sd_bus_error *error _unused_)
{
	if (!region_of(path, userdata))
		return 0;
	*ret = userdata;
	return 1;
}

static int list_regions(sd_bus *bus _unused_, const char *prefix _unused_, void *userdata, char ***ret,
			sd_bus_error *error _unused_)
{
	Manager *m = userdata;
	char **paths;
	size_t n = 0;

	paths = calloc(m->regions.n + 1, sizeof(*paths));
	if (!paths)
		return -ENOMEM;
	for (size_t i = 0; i < m->regions.n; i++)
		if (sd_bus_path_encode(VRAMD_PATH_REGION, m->regions.items[i].name, &paths[n]) >= 0)
			n++;
	*ret = paths;
	return 0;
}

int bus_register_regions(Manager *m)
{
	int r;

	r = sd_bus_add_fallback_vtable(m->bus, NULL, VRAMD_PATH_REGION, VRAMD_IFACE_REGION, region_vtable,
				       find_region, m);
	if (r < 0)
		return r;
	return sd_bus_add_node_enumerator(m->bus, NULL, VRAMD_PATH_REGION, list_regions, m);
}
