/* SPDX-License-Identifier: MIT */
/* The machine's devices are replaced: this program's drm*() and sd_device_*() functions take the
 * place of the shared libraries' ones for everything that is linked into it. */
#include <amdgpu_drm.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <systemd/sd-device.h>
#include <xf86drm.h>

#include <cmocka.h>

#include "region.h"
#include "remove-tree.h"

/* --- A machine -------------------------------------------------------------------------------- */

/* A PCI device of sysfs; an attribute that is not set is NULL. */
struct sd_device {
	const char *subsystem, *name, *driver;
	const char *speed, *width; /* max_link_speed, current_link_width */
	const char *runtime_status, *vram;
	sd_device *parent;
	sd_device_action_t action;
	unsigned n_wakes; /* reads that would wake it */
};

static sd_device root_bus = {
	.subsystem = "platform", .name = "pci0000:00", .speed = "2.5 GT/s PCIe", .width = "1"
};
static sd_device root_port = { .subsystem = "pci", .name = "0000:00:01.1", .driver = "pcieport",
			       .speed = "16.0 GT/s PCIe", .width = "8", .parent = &root_bus };
static sd_device upstream = { .subsystem = "pci", .name = "0000:01:00.0", .driver = "pcieport",
			      .speed = "16.0 GT/s PCIe", .width = "8", .parent = &root_port };
static sd_device downstream = { .subsystem = "pci", .name = "0000:02:00.0", .driver = "pcieport",
				.speed = "16.0 GT/s PCIe", .width = "16", .parent = &upstream };
static sd_device card = { .subsystem = "pci", .name = "0000:03:00.0", .driver = "amdgpu",
			  .speed = "32.0 GT/s PCIe", .width = "16", .vram = "8573157376",
			  .runtime_status = "active", .parent = &downstream };
static sd_device intel = { .subsystem = "pci",
			   .name = "0000:0c:00.0",
			   .driver = "xe",
			   .speed = "2.5 GT/s PCIe",
			   .width = "1",
			   .vram = "1",
			   .runtime_status = "active",
			   .parent = &root_bus };
static sd_device unbound = { .subsystem = "pci", .name = "0000:0d:00.0", .speed = "8.0 GT/s PCIe",
			     .width = "4", .parent = &root_bus };
static sd_device *const machine[] = { &root_port, &upstream, &downstream, &card, &intel, &unbound };

static drmPciBusInfo bus_card = { .bus = 3 }, bus_intel = { .bus = 12 };
static char node_card0[] = "/dev/dri/card0", node_render[] = "/dev/null",
	    node_card1[] = "/dev/dri/card1";
static char *nodes_card[DRM_NODE_MAX] = {
	[DRM_NODE_PRIMARY] = node_card0, [DRM_NODE_RENDER] = node_render
};
static char *nodes_intel[DRM_NODE_MAX] = { [DRM_NODE_PRIMARY] = node_card1 };
static drmDevice drm_platform = { .bustype = DRM_BUS_PLATFORM };
static drmDevice drm_card = { .bustype = DRM_BUS_PCI, .businfo.pci = &bus_card, .nodes = nodes_card,
			      .available_nodes = 1 << DRM_NODE_PRIMARY | 1 << DRM_NODE_RENDER };
static drmDevice drm_intel = { .bustype = DRM_BUS_PCI,
			       .businfo.pci = &bus_intel,
			       .nodes = nodes_intel,
			       .available_nodes = 1 << DRM_NODE_PRIMARY };

static int drm_error;     /* what drmGetDevices2() returns, if negative */
static int n_listed;      /* devices that libdrm gave out and did not get back */
static uint64_t ids_flags; /* what the GPU says of itself */
static int info_error;

int drmGetDevices2(uint32_t flags, drmDevicePtr devices[], int max_devices)
{
	assert_int_equal(flags, 0);
	assert_true(max_devices >= 3);
	if (drm_error < 0)
		return drm_error;
	devices[0] = &drm_platform;
	devices[1] = &drm_intel;
	devices[2] = &drm_card;
	n_listed += 3;
	return 3;
}

void drmFreeDevices(_unused_ drmDevicePtr devices[], int count)
{
	n_listed -= count;
}

int drmCommandWrite(int fd, unsigned long index, void *data, unsigned long size)
{
	struct drm_amdgpu_info *request = data;
	struct drm_amdgpu_info_device *info = (void *)(uintptr_t)request->return_pointer;

	assert_true(fd >= 0);
	assert_int_equal(index, DRM_AMDGPU_INFO);
	assert_int_equal(size, sizeof(*request));
	assert_int_equal(request->query, AMDGPU_INFO_DEV_INFO);
	assert_int_equal(request->return_size, sizeof(*info));
	card.n_wakes++;
	if (info_error < 0)
		return info_error;
	info->ids_flags = ids_flags;
	return 0;
}

int sd_device_new_from_subsystem_sysname(sd_device **ret, const char *subsystem,
					 const char *sysname)
{
	for (size_t i = 0; i < ARRAY_SIZE(machine); i++)
		if (streq(machine[i]->subsystem, subsystem) && streq(machine[i]->name, sysname)) {
			*ret = machine[i];
			return 0;
		}
	return -ENODEV;
}

sd_device *sd_device_unref(_unused_ sd_device *device)
{
	return NULL;
}

static int give(const char *value, const char **ret)
{
	if (!value)
		return -ENOENT;
	*ret = value;
	return 0;
}

int sd_device_get_driver(sd_device *device, const char **ret)
{
	return give(device->driver, ret);
}

int sd_device_get_subsystem(sd_device *device, const char **ret)
{
	return give(device->subsystem, ret);
}

int sd_device_get_parent(sd_device *child, sd_device **ret)
{
	if (!child->parent)
		return -ENOENT;
	*ret = child->parent;
	return 0;
}

int sd_device_get_sysattr_value(sd_device *device, const char *attr, const char **ret)
{
	if (streq(attr, "max_link_speed") || streq(attr, "current_link_width")) {
		device->n_wakes++;
		return give(attr[0] == 'm' ? device->speed : device->width, ret);
	}
	if (streq(attr, "power/runtime_status"))
		return give(device->runtime_status, ret);
	if (streq(attr, "mem_info_vram_total"))
		return give(device->vram, ret);
	fail_msg("attribute \"%s\" is not part of this machine", attr);
	return -ENOENT;
}

/* A monitor that hands out what the test says. */
struct sd_device_monitor {
	sd_event *event;
	sd_event_source *source;
	sd_device_monitor_handler_t handler;
	void *userdata;
	int fds[2];
	bool drm_minor, pci;
};
static sd_device_monitor *live_monitor;

int sd_device_monitor_new(sd_device_monitor **ret)
{
	sd_device_monitor *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	assert_int_equal(pipe2(m->fds, O_CLOEXEC | O_NONBLOCK | O_DIRECT), 0);
	*ret = live_monitor = m;
	return 0;
}

sd_device_monitor *sd_device_monitor_unref(sd_device_monitor *m)
{
	if (m) {
		sd_event_source_disable_unref(m->source);
		(void)close_fd(m->fds[0]);
		(void)close_fd(m->fds[1]);
		free(m);
		live_monitor = NULL;
	}
	return NULL;
}

int sd_device_monitor_filter_add_match_subsystem_devtype(sd_device_monitor *m,
							 const char *subsystem, const char *devtype)
{
	m->drm_minor = m->drm_minor || (streq(subsystem, "drm") && streq_ptr(devtype, "drm_minor"));
	m->pci = m->pci || (streq(subsystem, "pci") && !devtype);
	return 0;
}

int sd_device_monitor_attach_event(sd_device_monitor *m, sd_event *event)
{
	m->event = event;
	return 0;
}

static int on_pipe(_unused_ sd_event_source *s, int fd, _unused_ uint32_t events, void *userdata)
{
	sd_device_monitor *m = userdata;
	sd_device *dev;

	assert_int_equal(read(fd, &dev, sizeof(dev)), sizeof(dev));
	return m->handler(m, dev, m->userdata);
}

int sd_device_monitor_start(sd_device_monitor *m, sd_device_monitor_handler_t callback,
			    void *userdata)
{
	m->handler = callback;
	m->userdata = userdata;
	return sd_event_add_io(m->event, &m->source, m->fds[0], EPOLLIN, on_pipe, m);
}

sd_event_source *sd_device_monitor_get_event_source(sd_device_monitor *m)
{
	return m->source;
}

int sd_device_get_action(sd_device *device, sd_device_action_t *ret)
{
	*ret = device->action;
	return 0;
}

/* --- Reading ---------------------------------------------------------------------------------- */

#define CAPACITY \
	"drm/0000:03:00.0/vram 8573157376\n" \
	"drm/0000:0c:00.0/vram0 4294967296\n" \
	"drm/0000:0d:00.0/vram 1024\n" \
	"drm/0000:0e:00.0/vram 2048\n" \
	"other/vidmem 4096\n"

typedef struct Fixture {
	char root[32];
	Hierarchy h;
} Fixture;

static void put_capacity(const Fixture *f, const char *text)
{
	auto_close int fd = openat(f->h.root_fd, "dmem.capacity",
				   O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static int setup(void **state)
{
	Fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->root, "/tmp/test-region.XXXXXX");
	assert_non_null(mkdtemp(f->root));
	f->h = (Hierarchy){ .mount_point = f->root };
	f->h.root_fd = open(f->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->h.root_fd >= 0);
	put_capacity(f, CAPACITY);
	drm_error = info_error = 0;
	ids_flags = 0;
	card.runtime_status = "active";
	card.n_wakes = 0;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	Fixture *f = *state;

	(void)close_fd(f->h.root_fd);
	remove_tree(f->root);
	free(f);
	return n_listed; /* all given back */
}

/* GiB/s and nodes of the card behind its own switch, in a slot of eight lanes. */
static void test_devices(void **state)
{
	Fixture *f = *state;
	_cleanup_(regions_done) Regions r = {};
	const Region *region;

	assert_int_equal(regions_read(&f->h, &r), 0);
	assert_int_equal(r.n, 5);

	region = regions_find(&r, "drm/0000:03:00.0/vram");
	assert_non_null(region);
	assert_int_equal(region->capacity, 8573157376);
	assert_string_equal(region->pci, "0000:03:00.0");
	assert_string_equal(region->driver, "amdgpu");
	assert_string_equal(region->primary_node, node_card0);
	assert_string_equal(region->render_node, node_render);
	assert_int_equal(region->vram, 8573157376);
	assert_int_equal(region->link_bandwidth, 8 * UINT64_C(1969230769));
	assert_false(region->integrated);

	region = regions_find(&r, "drm/0000:0c:00.0/vram0");
	assert_string_equal(region->driver, "xe");
	assert_string_equal(region->primary_node, node_card1);
	assert_null(region->render_node);
	assert_int_equal(region->vram, 0);
	assert_int_equal(region->link_bandwidth, 250000000);

	assert_null(regions_find(&r, "drm/0000:03:00.0"));
}

/* Regions without a device: no driver, no such address, no address at all. */
static void test_orphans(void **state)
{
	static const char *const names[] = { "drm/0000:0d:00.0/vram", "drm/0000:0e:00.0/vram",
					     "other/vidmem" };
	Fixture *f = *state;
	_cleanup_(regions_done) Regions r = {};

	assert_int_equal(regions_read(&f->h, &r), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const Region *region = regions_find(&r, names[i]);

		assert_non_null(region);
		assert_int_equal(region->capacity, 1024 << i);
		assert_null(region->driver);
		assert_null(region->primary_node);
		assert_int_equal(region->link_bandwidth, 0);
		assert_int_equal(region->pci[0] == '\0', i == 2);
	}
}

static void test_integrated(void **state)
{
	Fixture *f = *state;

	for (unsigned i = 0; i < 3; i++) {
		_cleanup_(regions_done) Regions r = {};

		ids_flags = i == 0 ? AMDGPU_IDS_FLAGS_TMZ : AMDGPU_IDS_FLAGS_FUSION;
		info_error = i == 2 ? -EACCES : 0;
		assert_int_equal(regions_read(&f->h, &r), 0);
		assert_int_equal(r.items[0].integrated, i == 1);
		assert_false(r.items[1].integrated);
	}
}

static void test_asleep(void **state)
{
	Fixture *f = *state;
	_cleanup_(regions_done) Regions r = {};

	card.runtime_status = "suspended";
	ids_flags = AMDGPU_IDS_FLAGS_FUSION;
	assert_int_equal(regions_read(&f->h, &r), 0);
	assert_int_equal(card.n_wakes, 0);
	assert_string_equal(r.items[0].driver, "amdgpu");
	assert_int_equal(r.items[0].vram, 8573157376);
	assert_int_equal(r.items[0].link_bandwidth, 0);
	assert_false(r.items[0].integrated);
}

static void test_bandwidth(void **state)
{
	static const struct {
		const char *speed, *width;
		uint64_t bandwidth;
	} cases[] = {
		{ "2.5 GT/s PCIe", "16", 4000000000 },
		{ "5.0 GT/s PCIe", "1", 500000000 },
		{ "8.0 GT/s PCIe", "4", 3938461536 },
		{ "32.0 GT/s PCIe", "16", 63015384608 },
		{ "64.0 GT/s PCIe", "16", 121000000000 },
		{ "Unknown", "16", 0 },
		{ "16.0 GT/s PCIe", "0", 0 },
		{ "16.0 GT/s PCIe", "255", 0 },
		{ "16.0 GT/s PCIe", "x", 0 },
		{ NULL, NULL, 0 },
	};
	Fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(regions_done) Regions r = {};

		intel.speed = cases[i].speed;
		intel.width = cases[i].width;
		assert_int_equal(regions_read(&f->h, &r), 0);
		assert_int_equal(regions_find(&r, "drm/0000:0c:00.0/vram0")->link_bandwidth,
				 cases[i].bandwidth);
	}
}

static void test_no_devices(void **state)
{
	Fixture *f = *state;
	_cleanup_(regions_done) Regions r = {};

	drm_error = -ENODEV; /* no /dev/dri */
	assert_int_equal(regions_read(&f->h, &r), 0);
	assert_string_equal(r.items[0].driver, "amdgpu");
	assert_null(r.items[0].render_node);
	regions_done(&r);

	drm_error = 0;
	f->h.relocated = true;
	assert_int_equal(regions_read(&f->h, &r), 0);
	assert_int_equal(r.n, 5);
	assert_string_equal(r.items[0].pci, "0000:03:00.0");
	assert_null(r.items[0].driver);
}

static void test_capacity(void **state)
{
	Fixture *f = *state;
	_cleanup_(regions_done) Regions r = {};

	put_capacity(f, "");
	assert_int_equal(regions_read(&f->h, &r), 0);
	assert_int_equal(r.n, 0);
	put_capacity(f, "drm/0000:03:00.0/vram\n");
	assert_int_equal(regions_read(&f->h, &r), -EBADMSG);
	assert_int_equal(unlinkat(f->h.root_fd, "dmem.capacity", 0), 0);
	assert_int_equal(regions_read(&f->h, &r), -ENOENT);
}

/* --- Hotplug ---------------------------------------------------------------------------------- */

static void send(sd_device *dev)
{
	assert_int_equal(write(live_monitor->fds[1], &dev, sizeof(dev)), sizeof(dev));
}

static void count(void *userdata)
{
	++*(unsigned *)userdata;
}

static void run(sd_event *event)
{
	while (sd_event_run(event, 0) > 0)
		;
}

static void test_monitor(_unused_ void **state)
{
	sd_device add = { .subsystem = "drm", .action = SD_DEVICE_ADD };
	sd_device gone = { .subsystem = "drm", .action = SD_DEVICE_REMOVE };
	sd_device change = { .subsystem = "drm", .action = SD_DEVICE_CHANGE };
	sd_device unbind = { .subsystem = "pci", .action = SD_DEVICE_UNBIND };
	sd_device plugged = { .subsystem = "pci", .action = SD_DEVICE_ADD };
	_cleanup_(sd_event_unrefp) sd_event *event = NULL;
	auto_region_monitor RegionMonitor *m = NULL;
	unsigned n = 0;

	assert_true(sd_event_new(&event) >= 0);
	assert_int_equal(region_monitor_new(event, count, &n, &m), 0);
	assert_true(live_monitor->drm_minor && live_monitor->pci);
	run(event);
	assert_int_equal(n, 0);
	send(&add); /* card0 and renderD128 */
	send(&add);
	run(event);
	assert_int_equal(n, 1);
	send(&change); /* a monitor was plugged in */
	send(&plugged);
	run(event);
	assert_int_equal(n, 1);
	send(&gone);
	run(event);
	assert_int_equal(n, 2);
	send(&unbind);
	run(event);
	assert_int_equal(n, 3);
}

#define REGION_TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REGION_TEST(test_devices),    REGION_TEST(test_orphans),
		REGION_TEST(test_integrated), REGION_TEST(test_asleep),
		REGION_TEST(test_bandwidth),  REGION_TEST(test_no_devices),
		REGION_TEST(test_capacity),   cmocka_unit_test(test_monitor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
