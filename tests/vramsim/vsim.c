/* SPDX-License-Identifier: MIT */
/* vsim: a client of the vramsim module. It holds buffers as a game does, or takes VRAM from others as
 * a rival does, and prints where its buffers are. */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <time.h>

#include <xf86drm.h>

#include "node.h"
#include "vramsim_uapi.h"

#include "parse.h"
#include "util.h"

typedef struct Options {
	const char *device;	/* node, PCI address, or NULL: the first one */
	uint64_t size;		/* bytes of a buffer */
	uint32_t count;		/* buffers */
	uint32_t flags;		/* VRAMSIM_BO_* */
	uint32_t every_ms;	/* submit that often; 0: only on SIGUSR1 */
	bool once;
	bool submit;
	bool show;		/* the first buffer is on the screen, and so is pinned */
} Options;

typedef struct Holder {
	int fd;
	uint32_t *handles;
	uint32_t n;
} Holder;

static int fail(int r, const char *what)
{
	fprintf(stderr, "vsim: %s: %s\n", what, strerror(-r));
	return r;
}

static int vsim_ioctl(int fd, unsigned long request, void *arg)
{
	return drmIoctl(fd, request, arg) < 0 ? -errno : 0;
}

static bool device_is(const drmDevice *dev, const char *address)
{
	char buf[32];

	if (dev->bustype != DRM_BUS_PCI || !(dev->available_nodes & (1 << DRM_NODE_RENDER)))
		return false;
	if (!address)
		return true;
	snprintf(buf, sizeof(buf), "%04x:%02x:%02x.%u", dev->businfo.pci->domain,
		 dev->businfo.pci->bus, dev->businfo.pci->dev, dev->businfo.pci->func);
	return streq(buf, address);
}

/* The device with that PCI address, or the first that is vramsim's. */
static int open_address(const char *address, int *ret_fd)
{
	drmDevice *devices[64];
	int n, i, r = -ENODEV;

	n = drmGetDevices2(0, devices, ARRAY_SIZE(devices));
	if (n < 0)
		return n;
	n = MIN(n, (int)ARRAY_SIZE(devices));
	for (i = 0; i < n && r == -ENODEV; i++)
		if (device_is(devices[i], address))
			r = vramsim_open(devices[i]->nodes[DRM_NODE_RENDER], ret_fd);
	drmFreeDevices(devices, n);
	return r;
}

static int open_device(const char *device, int *ret_fd)
{
	int r;

	r = device && device[0] == '/' ? vramsim_open(device, ret_fd) : open_address(device, ret_fd);
	return r < 0 ? fail(r, device ? device : "no vramsim device") : 0;
}

static int print_state(const Holder *h, const struct drm_vramsim_submit *submit)
{
	uint64_t resident = 0, spilled = 0, evictions = 0;
	uint32_t i;
	int r;

	for (i = 0; i < h->n; i++) {
		struct drm_vramsim_bo_info info = { .handle = h->handles[i] };

		r = vsim_ioctl(h->fd, DRM_IOCTL_VRAMSIM_BO_INFO, &info);
		if (r < 0)
			return fail(r, "cannot query a buffer");
		if (info.mem_type == VRAMSIM_MEM_VRAM)
			resident += info.size;
		else
			spilled += info.size;
		evictions += info.evictions;
	}
	/* What the submission saw may be past already; its own word counts. */
	if (submit) {
		resident = submit->resident;
		spilled = submit->spilled;
	}
	printf("resident_mib=%.10g spilled_mib=%.10g moved_mib=%.10g evictions=%" PRIu64 "\n",
	       (double)resident / (double)MIB, (double)spilled / (double)MIB,
	       submit ? (double)submit->moved / (double)MIB : 0.0, evictions);
	return fflush(stdout) == EOF ? -errno : 0;
}

static int submit_all(const Holder *h)
{
	struct drm_vramsim_submit submit = {
		.handles = (uintptr_t)h->handles,
		.n = h->n,
	};
	int r;

	r = vsim_ioctl(h->fd, DRM_IOCTL_VRAMSIM_SUBMIT, &submit);
	if (r < 0)
		return fail(r, "submit failed");
	return print_state(h, &submit);
}

static int create_all(Holder *h, const Options *o)
{
	int r;

	h->handles = calloc(o->count, sizeof(*h->handles));
	if (!h->handles)
		return fail(-ENOMEM, "cannot create buffers");
	for (; h->n < o->count; h->n++) {
		struct drm_vramsim_create create = { .size = o->size, .flags = o->flags };

		r = vsim_ioctl(h->fd, DRM_IOCTL_VRAMSIM_CREATE, &create);
		if (r < 0) {
			fprintf(stderr, "vsim: buffer %" PRIu32 " of %" PRIu32 ": %s\n", h->n + 1,
				o->count, strerror(-r));
			return r;
		}
		h->handles[h->n] = create.handle;
	}
	return 0;
}

/* The signals are blocked, so none is lost. Returns 0 on SIGTERM and SIGINT. */
static int serve(const Holder *h, const Options *o, const sigset_t *signals)
{
	const struct timespec every = {
		.tv_sec = o->every_ms / 1000,
		.tv_nsec = o->every_ms % 1000 * 1000000L,
	};
	int r = 0;

	while (r >= 0) {
		int sig = o->every_ms ? sigtimedwait(signals, NULL, &every)
				      : sigwaitinfo(signals, NULL);

		if (sig == SIGUSR2)
			r = print_state(h, NULL);
		else if (sig == SIGUSR1 || (sig < 0 && errno == EAGAIN))
			r = submit_all(h);
		else if (sig == SIGTERM || sig == SIGINT)
			return 0;
		else if (sig < 0 && errno != EINTR)
			r = -errno;
	}
	return r;
}

static int hold(const Options *o)
{
	auto_close int fd = -EBADF;
	auto_free uint32_t *handles = NULL;
	Holder h = {};
	sigset_t signals;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGUSR2);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);

	r = open_device(o->device, &fd);
	if (r < 0)
		return r;
	h.fd = fd;
	r = create_all(&h, o);
	handles = h.handles;
	if (r < 0)
		return r;
	if (o->show) {
		struct drm_vramsim_flip flip = { .handle = handles[0] };

		r = vsim_ioctl(fd, DRM_IOCTL_VRAMSIM_FLIP, &flip);
		if (r < 0)
			return fail(r, "cannot show a buffer");
	}
	r = o->submit ? submit_all(&h) : print_state(&h, NULL);
	if (r < 0 || o->once)
		return r;
	return serve(&h, o, &signals);
}

static int stats(const Options *o)
{
	struct drm_vramsim_stats s = {};
	auto_close int fd = -EBADF;
	int r;

	r = open_device(o->device, &fd);
	if (r < 0)
		return r;
	r = vsim_ioctl(fd, DRM_IOCTL_VRAMSIM_STATS, &s);
	if (r < 0)
		return fail(r, "cannot read the statistics");
	printf("vram_size=%llu vram_used=%llu in=%llu out=%llu within=%llu evictions=%llu submits=%llu "
	       "failed=%llu backoffs=%llu\n",
	       s.vram_size, s.vram_used, s.in, s.out, s.within, s.evictions, s.submits, s.failed,
	       s.backoffs);
	return 0;
}

static void help(void)
{
	printf("Usage: vsim hold --size BYTES [OPTION...]\n"
	       "       vsim stats [--device DEVICE]\n"
	       "\n"
	       "hold creates buffers, submits them and prints where they are, then waits:\n"
	       "SIGUSR1 submits and prints again, SIGUSR2 only prints, SIGTERM ends it.\n"
	       "\n"
	       "  --device DEVICE     /dev/dri/renderD... or PCI address (the first vramsim)\n"
	       "  --size BYTES        of each buffer, with K, M or G\n"
	       "  --count N           number of buffers (1)\n"
	       "  --vram-only         no buffer may be outside VRAM\n"
	       "  --show              the first buffer is on the screen, so it cannot be moved\n"
	       "  --no-submit         only create the buffers; print without a submission\n"
	       "  --submit-every MS   submit and print again and again\n"
	       "  --once              end after the first line\n");
}

static int parse_options(int argc, char *argv[], Options *o)
{
	enum { DEVICE = 1, SIZE, COUNT, VRAM_ONLY, SHOW, NO_SUBMIT, EVERY, ONCE, HELP };
	static const struct option options[] = {
		{ "device", required_argument, NULL, DEVICE },
		{ "size", required_argument, NULL, SIZE },
		{ "count", required_argument, NULL, COUNT },
		{ "vram-only", no_argument, NULL, VRAM_ONLY },
		{ "show", no_argument, NULL, SHOW },
		{ "no-submit", no_argument, NULL, NO_SUBMIT },
		{ "submit-every", required_argument, NULL, EVERY },
		{ "once", no_argument, NULL, ONCE },
		{ "help", no_argument, NULL, HELP },
		{},
	};
	int c, r = 0;

	while (r >= 0 && (c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == DEVICE)
			o->device = optarg;
		else if (c == SIZE)
			r = parse_bytes(optarg, &o->size);
		else if (c == COUNT)
			r = parse_u32(optarg, &o->count);
		else if (c == VRAM_ONLY)
			o->flags |= VRAMSIM_BO_VRAM_ONLY;
		else if (c == SHOW)
			o->show = true;
		else if (c == NO_SUBMIT)
			o->submit = false;
		else if (c == EVERY)
			r = parse_u32(optarg, &o->every_ms);
		else if (c == ONCE)
			o->once = true;
		else if (c == HELP) {
			help();
			exit(EXIT_SUCCESS);
		} else
			return -EINVAL;
		if (r < 0)
			return fail(r, optarg);
	}
	return 0;
}

int main(int argc, char *argv[])
{
	Options o = { .count = 1, .submit = true };
	const char *verb;
	int r;

	if (parse_options(argc, argv, &o) < 0)
		return 2;
	verb = optind == argc - 1 ? argv[optind] : "";
	if (streq(verb, "hold") && o.size > 0 && o.count > 0) {
		r = hold(&o);
	} else if (streq(verb, "stats")) {
		r = stats(&o);
	} else {
		fprintf(stderr, "vsim: needs hold with --size, or stats; see --help\n");
		return 2;
	}
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
