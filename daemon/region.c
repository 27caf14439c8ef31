/* SPDX-License-Identifier: MIT */
#include <amdgpu_drm.h>
#include <fcntl.h>
#include <systemd/sd-device.h>
#include <xf86drm.h>

#include "log.h"
#include "parse.h"
#include "region.h"

static inline void device_unrefp(sd_device **d)
{
	sd_device_unref(*d);
}
#define auto_device _cleanup_(device_unrefp)

/* What libdrm knows of. */
typedef struct Devices {
	drmDevicePtr items[DMEM_REGIONS_MAX];
	int n;
} Devices;

static void devices_done(Devices *d)
{
	drmFreeDevices(d->items, d->n);
	d->n = 0;
}

static const char *sysattr(sd_device *dev, const char *name)
{
	const char *value;

	return sd_device_get_sysattr_value(dev, name, &value) >= 0 ? value : "";
}

/* --- The link --------------------------------------------------------------------------------- */

/* Bytes per second of one link of a PCI device, at the fastest speed that the device has: a link
 * slows down while the card idles, and that is not what a buffer moves at. Its width does not
 * change. 0 if not known. */
static uint64_t hop_bandwidth(sd_device *dev)
{
	static const struct {
		const char *speed;
		uint64_t lane; /* bytes per second of payload */
	} speeds[] = {
		{ "2.5 GT/s", UINT64_C(250000000) }, /* 8b/10b */
		{ "5.0 GT/s", UINT64_C(500000000) },
		{ "8.0 GT/s", UINT64_C(984615384) }, /* 128b/130b */
		{ "16.0 GT/s", UINT64_C(1969230769) },
		{ "32.0 GT/s", UINT64_C(3938461538) },
		{ "64.0 GT/s", UINT64_C(7562500000) }, /* 242 of 256 bytes of a FLIT */
	};
	const char *speed = sysattr(dev, "max_link_speed");
	uint32_t width;

	if (parse_u32(sysattr(dev, "current_link_width"), &width) < 0 || width > 32)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(speeds); i++)
		if (startswith(speed, speeds[i].speed))
			return width * speeds[i].lane;
	return 0;
}

/* The slowest link between the device and the root: cards have switches of their own, and only the
 * one that leads to the slot counts. */
static uint64_t link_bandwidth(sd_device *dev)
{
	uint64_t slowest = 0;
	const char *subsystem;

	do {
		uint64_t hop = hop_bandwidth(dev);

		if (hop && (!slowest || hop < slowest))
			slowest = hop;
	} while (sd_device_get_parent(dev, &dev) >= 0 &&
		 sd_device_get_subsystem(dev, &subsystem) >= 0 && streq(subsystem, "pci"));
	return slowest;
}

/* --- The device ------------------------------------------------------------------------------- */

/* Reading its configuration space or opening its node would wake it. */
static bool is_asleep(sd_device *dev)
{
	return startswith(sysattr(dev, "power/runtime_status"), "suspend");
}

/* True if amdgpu says that the GPU is part of the CPU: its VRAM is a piece of system memory. */
static bool amdgpu_is_integrated(const char *render_node)
{
	struct drm_amdgpu_info_device info = {};
	struct drm_amdgpu_info request = {
		.return_pointer = (uintptr_t)&info,
		.return_size = sizeof(info),
		.query = AMDGPU_INFO_DEV_INFO,
	};
	auto_close int fd = open(render_node, O_RDWR | O_CLOEXEC);
	int r;

	r = fd < 0 ? -errno : drmCommandWrite(fd, DRM_AMDGPU_INFO, &request, sizeof(request));
	if (r < 0) {
		log_debug_errno(r, "Cannot ask %s whether it is integrated, assuming not: %m",
				render_node);
		return false;
	}
	return info.ids_flags & AMDGPU_IDS_FLAGS_FUSION;
}

static int copy_node(const drmDevice *d, int node, char **ret)
{
	char *path;

	if (!(d->available_nodes & (1 << node)))
		return 0;
	path = strdup(d->nodes[node]);
	if (!path)
		return -ENOMEM;
	*ret = path;
	return 0;
}

static int read_nodes(const Devices *devices, Region *region)
{
	for (int i = 0; i < devices->n; i++) {
		const drmDevice *d = devices->items[i];
		char pci[DMEM_PCI_MAX];
		int r;

		if (d->bustype != DRM_BUS_PCI)
			continue;
		(void)snprintf(pci, sizeof(pci), "%04x:%02x:%02x.%x", d->businfo.pci->domain,
			       d->businfo.pci->bus, d->businfo.pci->dev, d->businfo.pci->func & 7);
		if (!streq(pci, region->pci))
			continue;
		r = copy_node(d, DRM_NODE_PRIMARY, &region->primary_node);
		return r < 0 ? r : copy_node(d, DRM_NODE_RENDER, &region->render_node);
	}
	return 0;
}

static int read_device(Region *region)
{
	auto_device sd_device *dev = NULL;
	const char *driver;
	bool asleep;

	if (sd_device_new_from_subsystem_sysname(&dev, "pci", region->pci) < 0 ||
	    sd_device_get_driver(dev, &driver) < 0)
		return 0; /* the region outlived it */
	region->driver = strdup(driver);
	if (!region->driver)
		return -ENOMEM;
	asleep = is_asleep(dev);
	if (!asleep)
		region->link_bandwidth = link_bandwidth(dev);
	if (!streq(driver, "amdgpu"))
		return 0;
	if (parse_u64(sysattr(dev, "mem_info_vram_total"), &region->vram) < 0)
		region->vram = 0;
	if (!asleep && region->render_node)
		region->integrated = amdgpu_is_integrated(region->render_node);
	return 0;
}

/* --- Regions ---------------------------------------------------------------------------------- */

static void region_done(Region *r)
{
	free(r->name);
	free(r->driver);
	free(r->primary_node);
	free(r->render_node);
}

void regions_done(Regions *r)
{
	for (size_t i = 0; i < r->n; i++)
		region_done(&r->items[i]);
	free(r->items);
	*r = (Regions){};
}

const Region *regions_find(const Regions *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++)
		if (streq(r->items[i].name, name))
			return &r->items[i];
	return NULL;
}

/* Adds what the table says; -ENOMEM. */
static int add_regions(const DmemTable *table, Regions *ret)
{
	if (table->n == 0)
		return 0;
	ret->items = calloc(table->n, sizeof(*ret->items));
	if (!ret->items)
		return -ENOMEM;
	for (; ret->n < table->n; ret->n++) {
		Region *r = &ret->items[ret->n];

		r->name = strdup(table->entries[ret->n].region);
		if (!r->name)
			return -ENOMEM;
		r->capacity = table->entries[ret->n].value;
		if (dmem_region_pci(r->name, r->pci) < 0)
			r->pci[0] = '\0';
	}
	return 0;
}

static int add_devices(Regions *regions)
{
	_cleanup_(devices_done) Devices devices = {};
	int r;

	/* Flags 0: without the PCI revision, which is in configuration space. */
	r = drmGetDevices2(0, devices.items, ARRAY_SIZE(devices.items));
	if (r < 0)
		log_debug_errno(r, "Cannot list DRM devices, ignoring: %m");
	else
		devices.n = MIN(r, (int)ARRAY_SIZE(devices.items));

	for (size_t i = 0; i < regions->n; i++) {
		if (!regions->items[i].pci[0])
			continue;
		r = read_nodes(&devices, &regions->items[i]);
		if (r >= 0)
			r = read_device(&regions->items[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

int regions_read(const Hierarchy *h, Regions *ret)
{
	_cleanup_(regions_done) Regions regions = {};
	auto_dmem_table DmemTable table = {};
	auto_cgroup Cgroup *root = NULL;
	int r;

	r = cgroup_open(h, "/", &root);
	if (r >= 0)
		r = cgroup_read_table(root, "dmem.capacity", &table);
	if (r >= 0)
		r = add_regions(&table, &regions);
	/* A hierarchy elsewhere is not about this machine's devices. */
	if (r >= 0 && !h->relocated)
		r = add_devices(&regions);
	if (r < 0)
		return r;
	regions.ambiguous = table.ambiguous;
	*ret = regions;
	regions = (Regions){};
	return 0;
}

/* --- Hotplug ---------------------------------------------------------------------------------- */

struct RegionMonitor {
	sd_device_monitor *devices;
	sd_event_source *news;
	region_cb cb;
	void *userdata;
};

static int on_news(_unused_ sd_event_source *s, void *userdata)
{
	RegionMonitor *m = userdata;

	m->cb(m->userdata);
	return 0;
}

/* A region is there before its DRM device is announced. It goes with the last of the driver's
 * resources, after the DRM device was taken back and before the PCI device is called unbound. */
static int on_device(_unused_ sd_device_monitor *monitor, sd_device *dev, void *userdata)
{
	RegionMonitor *m = userdata;
	sd_device_action_t action;
	const char *subsystem;
	int r;

	if (sd_device_get_action(dev, &action) < 0 || sd_device_get_subsystem(dev, &subsystem) < 0)
		return 0;
	if (streq(subsystem, "drm") ? action != SD_DEVICE_ADD && action != SD_DEVICE_REMOVE :
				      action != SD_DEVICE_UNBIND)
		return 0;
	r = sd_event_source_set_enabled(m->news, SD_EVENT_ONESHOT);
	if (r < 0)
		log_debug_errno(r, "Cannot schedule news of regions: %m");
	return 0;
}

static int start_news(RegionMonitor *m, sd_event *event)
{
	int r;

	r = sd_event_add_defer(event, &m->news, on_news, m);
	if (r >= 0)
		r = sd_event_source_set_enabled(m->news, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_description(m->news, "region-news");
	return r;
}

static int start_devices(RegionMonitor *m, sd_event *event)
{
	int r;

	r = sd_device_monitor_new(&m->devices);
	if (r >= 0)
		r = sd_device_monitor_filter_add_match_subsystem_devtype(m->devices, "drm",
									 "drm_minor");
	if (r >= 0)
		r = sd_device_monitor_filter_add_match_subsystem_devtype(m->devices, "pci", NULL);
	if (r >= 0)
		r = sd_device_monitor_attach_event(m->devices, event);
	if (r >= 0)
		r = sd_device_monitor_start(m->devices, on_device, m);
	/* A card comes as several devices in a row: all that are at hand are taken before the news
	 * is told. Only root makes them, so nobody can hold it up that way. */
	if (r >= 0)
		r = sd_event_source_set_priority(sd_device_monitor_get_event_source(m->devices),
						 SD_EVENT_PRIORITY_NORMAL - 1);
	return r;
}

int region_monitor_new(sd_event *event, region_cb cb, void *userdata, RegionMonitor **ret)
{
	auto_region_monitor RegionMonitor *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->cb = cb;
	m->userdata = userdata;
	r = start_news(m, event);
	if (r >= 0)
		r = start_devices(m, event);
	if (r < 0)
		return r;
	if (access("/run/udev/control", F_OK) < 0)
		log_debug("udev is not running: nobody will tell of devices that come or go");
	*ret = TAKE_PTR(m);
	return 0;
}

RegionMonitor *region_monitor_free(RegionMonitor *m)
{
	if (!m)
		return NULL;
	sd_device_monitor_unref(m->devices);
	sd_event_source_disable_unref(m->news);
	free(m);
	return NULL;
}
