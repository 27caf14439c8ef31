/* SPDX-License-Identifier: MIT */
/* For LD_PRELOAD: lets gamescope run on lavapipe, Mesa's Vulkan driver without a GPU, on a kernel without udmabuf.
 *
 * gamescope wants its images as dma-bufs. lavapipe makes them with /dev/udmabuf, out of a memfd; where that device is
 * missing vkAllocateMemory() fails, and gamescope ends. Faked here, and nothing else:
 *
 *   open("/dev/udmabuf")        an empty memfd, which stands for the device
 *   ioctl(UDMABUF_CREATE)       the memfd that was to become a dma-buf, once more: it can be mapped and passed on
 *   ioctl(DMA_BUF_IOCTL_SYNC)   done: memory that only CPUs touch is always in sync
 *   epoll_ctl(ADD) of such one  waits for the frame to be finished. A memfd cannot be waited for (EPERM), and lavapipe
 *                               has finished when it hands it out: an eventfd that is readable takes its place
 *
 * No pixel is right or wrong by this: gamescope's choice of who is in front does not depend on what is drawn. */
#undef _FILE_OFFSET_BITS /* or there is no open() beside open64() */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/udmabuf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICE "/dev/udmabuf"
#define EXPORT __attribute__((visibility("default")))

/* The next definition of a function; void * is no function pointer in C, but both are one word. */
#define NEXT(name)                                         \
	({                                                 \
		static __typeof__(&name) next_;            \
		if (!next_)                                \
			*(void **)&next_ = dlsym(RTLD_NEXT, #name); \
		next_;                                     \
	})

#define WRAP_OPEN(name)                                                                  \
	EXPORT int name(const char *path, int flags, ...)                                \
	{                                                                                \
		va_list arguments;                                                       \
		mode_t mode;                                                             \
                                                                                         \
		va_start(arguments, flags);                                              \
		mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0; \
		va_end(arguments);                                                       \
		if (strcmp(path, DEVICE) == 0)                                           \
			return memfd_create(DEVICE, MFD_CLOEXEC);                        \
		return NEXT(name)(path, flags, mode);                                    \
	}

WRAP_OPEN(open)
WRAP_OPEN(open64)

static int create_dma_buf(const struct udmabuf_create *create)
{
	struct stat st;

	/* A part of a memfd could not be told from the whole. */
	if (create->offset != 0 || fstat((int)create->memfd, &st) < 0 || (__u64)st.st_size < create->size) {
		errno = EINVAL;
		return -1;
	}
	return fcntl((int)create->memfd, F_DUPFD_CLOEXEC, 3);
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (request == UDMABUF_CREATE)
		return create_dma_buf(argument);
	if (request == DMA_BUF_IOCTL_SYNC)
		return 0;
	return NEXT(ioctl)(fd, request, argument);
}

EXPORT int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	int r = NEXT(epoll_ctl)(epoll, operation, fd, event), ready;

	if (r >= 0 || errno != EPERM || operation != EPOLL_CTL_ADD)
		return r;
	ready = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ready < 0 || dup3(ready, fd, O_CLOEXEC) < 0)
		return -1;
	(void)close(ready);
	return NEXT(epoll_ctl)(epoll, operation, fd, event);
}
