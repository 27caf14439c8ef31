/* SPDX-License-Identifier: MIT */
/* vsim-unplug NODE: uses a vramsim with copy=1 in every way, says so, and is told by SIGUSR1 that the device
 * has gone: then everything must still be there to be closed, and nothing may work or crash. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#include <xf86drm.h>

#include "client.h"
#include "pattern.h"

typedef struct Use {
	int fd, dmabuf;
	uint32_t handles[3];
	uint64_t *touched, *untouched, *shared;
} Use;

static void start(Use *u, const char *node)
{
	u->fd = open_or_exit(node);
	CHECK(create(u->fd, MIB, VRAMSIM_BO_SCANOUT, &u->handles[0]), 0);
	CHECK(create(u->fd, MIB, VRAMSIM_BO_PRIVATE, &u->handles[1]), 0);
	CHECK(create(u->fd, MIB, 0, &u->handles[2]), 0);
	CHECK(flip(u->fd, u->handles[0], NULL), 0);
	u->touched = map(u->fd, u->handles[1], MIB);
	u->untouched = map(u->fd, u->handles[2], MIB);
	CHECK(u->touched && u->untouched, 1);
	pattern_fill(u->touched, MIB, 1);
	CHECK(drmPrimeHandleToFD(u->fd, u->handles[2], DRM_CLOEXEC | DRM_RDWR, &u->dmabuf), 0);
	u->shared = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, u->dmabuf, 0);
	CHECK(u->shared != MAP_FAILED, 1);
	pattern_fill(u->shared, MIB, 2);
}

/* The contents have gone with the device, but the memory can still be touched. */
static void check_memory(uint64_t *memory)
{
	memory[0] = 1;
	memory[MIB / sizeof(*memory) - 1] = 2;
	CHECK(memory[0] != 0, 1);
	CHECK(munmap(memory, MIB), 0);
}

static void check_gone(Use *u)
{
	struct drm_vramsim_bo_info i;

	CHECK(create(u->fd, 4096, 0, NULL), -ENODEV);
	CHECK(submit(u->fd, u->handles, 1, 0, NULL), -ENODEV);
	CHECK(flip(u->fd, u->handles[0], NULL), -ENODEV);
	CHECK(info(u->fd, u->handles[0], 0, &i), -ENODEV);
	check_memory(u->touched);
	check_memory(u->untouched);
	check_memory(u->shared);
}

static void wait_for(int signal)
{
	sigset_t signals;
	int got = 0;

	sigemptyset(&signals);
	sigaddset(&signals, signal);
	CHECK(sigwait(&signals, &got), 0);
}

int main(int argc, char *argv[])
{
	Use u = { .dmabuf = -EBADF };
	sigset_t signals;

	if (argc != 2) {
		fprintf(stderr, "vsim-unplug: needs a node\n");
		return 2;
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	start(&u, argv[1]);
	printf("started=%d\n", failures);
	fflush(stdout);
	wait_for(SIGUSR1);
	check_gone(&u);
	/* The export holds the device without the file. */
	close(u.fd);
	printf("failed=%d\n", failures);
	fflush(stdout);
	wait_for(SIGUSR1);
	close(u.dmabuf);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
