/* SPDX-License-Identifier: MIT */
/* vsim-memory NODE: where buffers are, what is in them, and who else sees them. NODE: an unused vramsim
 * with copy=1, 16 MiB of VRAM and 8 MiB of GTT, so that some of what is evicted is not mapped by the GPU. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <xf86drm.h>

#include "client.h"
#include "pattern.h"

#define PIECE (64 * KIB)

static const char *node;

static uint32_t created(int fd, uint64_t size, uint32_t flags)
{
	uint32_t handle = 0;

	CHECK(create(fd, size, flags, &handle), 0);
	return handle;
}

static struct drm_vramsim_bo_info where(int fd, uint32_t handle)
{
	struct drm_vramsim_bo_info i = { .mem_type = UINT32_MAX };

	CHECK(info(fd, handle, VRAMSIM_BO_INFO_CHECKSUM, &i), 0);
	return i;
}

/* A buffer that is as large as VRAM: everything that is not pinned makes room, whether it fits or not. */
static void evict_all(int fd)
{
	uint32_t handle = 0;

	if (create(fd, stats(fd).vram_size, VRAMSIM_BO_VRAM_ONLY, &handle) == 0)
		CHECK(drmCloseBufferHandle(fd, handle), 0);
}

/* Fills VRAM with small buffers and frees every second one; returns those that are left. */
static uint32_t fragment(int fd, uint32_t *ret_handles)
{
	uint32_t n = (uint32_t)(stats(fd).vram_size / PIECE), i;

	for (i = 0; i < n; i++)
		ret_handles[i] = created(fd, PIECE, 0);
	CHECK(stats(fd).vram_used, stats(fd).vram_size);
	for (i = 0; i < n / 2; i++) {
		CHECK(drmCloseBufferHandle(fd, ret_handles[2 * i]), 0);
		ret_handles[i] = ret_handles[2 * i + 1];
	}
	return n / 2;
}

/* What was in VRAM before does not show in a new buffer, wherever it is. */
static void test_new_is_zero(void)
{
	auto_close int fd = open_or_exit(node);
	uint64_t size = stats(fd).vram_size;
	uint32_t dirty = created(fd, size, VRAMSIM_BO_VRAM_ONLY), clean, spilled;
	uint64_t *memory = map(fd, dirty, size);

	pattern_fill(memory, size, 1);
	CHECK(where(fd, dirty).checksum, pattern_checksum(size, 1));
	munmap(memory, size);
	CHECK(drmCloseBufferHandle(fd, dirty), 0);
	clean = created(fd, size, 0);
	spilled = created(fd, MIB, 0);
	CHECK(where(fd, clean).mem_type, VRAMSIM_MEM_VRAM);
	CHECK(where(fd, clean).checksum, pattern_checksum(size, 0));
	CHECK(where(fd, spilled).mem_type, VRAMSIM_MEM_GTT);
	CHECK(where(fd, spilled).checksum, pattern_checksum(MIB, 0));
}

/* One mapping sees the same bytes in VRAM, in mapped and in unmapped system RAM, and back in VRAM. */
static void test_moves(void)
{
	auto_close int fd = open_or_exit(node);
	uint32_t handles[6], types[3] = {}, i;
	uint64_t *maps[ARRAY_SIZE(handles)];
	struct drm_vramsim_submit s = {};

	for (i = 0; i < ARRAY_SIZE(handles); i++) {
		handles[i] = created(fd, 2 * MIB, i % 2 ? VRAMSIM_BO_PRIVATE : 0);
		maps[i] = map(fd, handles[i], 2 * MIB);
		pattern_fill(maps[i], 2 * MIB, i + 1);
	}
	evict_all(fd);
	for (i = 0; i < ARRAY_SIZE(handles); i++) {
		CHECK(pattern_mismatch(maps[i], 2 * MIB, i + 1), -1);
		CHECK(where(fd, handles[i]).checksum, pattern_checksum(2 * MIB, i + 1));
		CHECK(where(fd, handles[i]).evictions, 1);
		types[where(fd, handles[i]).mem_type % ARRAY_SIZE(types)]++;
		pattern_fill(maps[i], 2 * MIB, i + 11);
	}
	CHECK(types[VRAMSIM_MEM_GTT], 4);
	CHECK(types[VRAMSIM_MEM_SYSTEM], 2);
	/* One by one: the way from unmapped RAM leads through the GTT, which those that are locked fill. */
	for (i = 0; i < ARRAY_SIZE(handles); i++)
		CHECK(submit(fd, &handles[i], 1, 0, NULL), 0);
	CHECK(submit(fd, handles, ARRAY_SIZE(handles), 0, &s), 0);
	CHECK(s.resident, ARRAY_SIZE(handles) * 2 * MIB);
	CHECK(s.moved, 0);
	for (i = 0; i < ARRAY_SIZE(handles); i++) {
		CHECK(where(fd, handles[i]).mem_type, VRAMSIM_MEM_VRAM);
		CHECK(where(fd, handles[i]).checksum, pattern_checksum(2 * MIB, i + 11));
		CHECK(pattern_mismatch(maps[i], 2 * MIB, i + 11), -1);
		munmap(maps[i], 2 * MIB);
	}
}

/* In fragmented VRAM: an ordinary buffer is in pieces, one for scanout is not, and FLIP puts the ordinary
 * one into one piece without changing it. */
static void test_one_piece(void)
{
	auto_close int fd = open_or_exit(node);
	uint32_t rest[256], n = fragment(fd, rest), scattered, scanout;
	struct drm_vramsim_stats before;
	uint64_t *memory, moved = 0;

	scattered = created(fd, MIB, VRAMSIM_BO_VRAM_ONLY);
	CHECK(where(fd, scattered).blocks, MIB / PIECE);
	memory = map(fd, scattered, MIB);
	pattern_fill(memory, MIB, 7);

	scanout = created(fd, MIB + PIECE, VRAMSIM_BO_SCANOUT);
	CHECK(where(fd, scanout).mem_type, VRAMSIM_MEM_VRAM);
	CHECK(where(fd, scanout).blocks, 1);
	CHECK(stats(fd).evictions > 0, 1);

	before = stats(fd);
	CHECK(flip(fd, scattered, &moved), 0);
	CHECK(moved >= MIB, 1);
	CHECK(stats(fd).within - before.within, MIB);
	CHECK(where(fd, scattered).blocks, 1);
	CHECK(where(fd, scattered).checksum, pattern_checksum(MIB, 7));
	CHECK(pattern_mismatch(memory, MIB, 7), -1);
	munmap(memory, MIB);
	CHECK(n > 0, 1);
}

/* What is shown stays where it is, whoever wants the room; what is not shown any more goes. */
static void test_pinned(void)
{
	auto_close int fd = open_or_exit(node);
	uint32_t a = created(fd, MIB, VRAMSIM_BO_SCANOUT), b = created(fd, MIB, 0), huge;
	uint64_t start;

	CHECK(flip(fd, a, NULL), 0);
	start = where(fd, a).start;
	CHECK(create(fd, stats(fd).vram_size, VRAMSIM_BO_VRAM_ONLY, NULL), -ENOMEM);
	CHECK(where(fd, a).mem_type, VRAMSIM_MEM_VRAM);
	CHECK(where(fd, a).start, start);
	CHECK(where(fd, b).mem_type, VRAMSIM_MEM_GTT);

	/* One that cannot be moved into one piece leaves the other on the screen. */
	huge = created(fd, 12 * MIB, 0);
	CHECK(flip(fd, huge, NULL), -ENOMEM);
	CHECK(drmCloseBufferHandle(fd, huge), 0);
	evict_all(fd);
	CHECK(where(fd, a).evictions, 0);

	CHECK(flip(fd, b, NULL), 0);
	CHECK(flip(fd, b, NULL), 0);
	evict_all(fd);
	CHECK(where(fd, a).evictions, 1);
	CHECK(where(fd, b).mem_type, VRAMSIM_MEM_VRAM);
	CHECK(flip(fd, 0, NULL), 0);
	evict_all(fd);
	CHECK(where(fd, b).mem_type != VRAMSIM_MEM_VRAM, 1);
	/* Shown when its file is closed. */
	CHECK(flip(fd, a, NULL), 0);
}

static uint64_t evictions(int fd, const uint32_t *handles, uint32_t n)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		sum += where(fd, handles[i]).evictions;
	return sum;
}

/* Whose buffers were used last is evicted last; private ones go to the end of the LRU together. */
static void test_lru(void)
{
	auto_close int fd = open_or_exit(node);
	uint32_t private[4], other[4], i, rival;

	for (i = 0; i < 4; i++) {
		private[i] = created(fd, 2 * MIB, VRAMSIM_BO_PRIVATE);
		other[i] = created(fd, 2 * MIB, 0);
	}
	CHECK(submit(fd, other, 4, 0, NULL), 0);
	CHECK(submit(fd, NULL, 0, VRAMSIM_SUBMIT_ALL_PRIVATE, NULL), 0);
	rival = created(fd, 4 * MIB, VRAMSIM_BO_VRAM_ONLY);
	CHECK(evictions(fd, other, 4), 2);
	CHECK(evictions(fd, private, 4), 0);
	CHECK(drmCloseBufferHandle(fd, rival), 0);

	CHECK(submit(fd, private, 4, 0, NULL), 0);
	CHECK(submit(fd, other, 4, 0, NULL), 0);
	CHECK(submit(fd, private, 4, VRAMSIM_SUBMIT_ALL_PRIVATE | VRAMSIM_SUBMIT_NO_BULK, NULL), 0);
	rival = created(fd, 4 * MIB, VRAMSIM_BO_VRAM_ONLY);
	CHECK(evictions(fd, other, 4), 2);
	CHECK(evictions(fd, private, 4), 2);
}

static void send_fd(int socket, int fd)
{
	union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } control = {};
	struct iovec iov = { .iov_base = (char[]){ 0 }, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	control.header = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof(int)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	};
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	CHECK(sendmsg(socket, &message, 0), 1);
}

static int receive_fd(int socket)
{
	union { struct cmsghdr header; char space[CMSG_SPACE(sizeof(int))]; } control = {};
	struct iovec iov = { .iov_base = (char[]){ 0 }, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int fd = -EBADF;

	CHECK(recvmsg(socket, &message, MSG_CMSG_CLOEXEC), 1);
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return fd;
}

/* The game's side: a swapchain image, drawn into when the compositor has shown it. */
static void share_game(int socket)
{
	auto_close int fd = open_or_exit(node), dmabuf = -EBADF;
	uint32_t handle = created(fd, MIB, 0);
	uint64_t *memory = map(fd, handle, MIB);
	char byte = 0;

	pattern_fill(memory, MIB, 21);
	CHECK(drmPrimeHandleToFD(fd, handle, DRM_CLOEXEC | DRM_RDWR, &dmabuf), 0);
	send_fd(socket, dmabuf);
	CHECK(read(socket, &byte, 1), 1);
	CHECK(where(fd, handle).blocks, 1);
	CHECK(create(fd, stats(fd).vram_size, VRAMSIM_BO_VRAM_ONLY, NULL), -ENOMEM);
	CHECK(where(fd, handle).mem_type, VRAMSIM_MEM_VRAM);
	pattern_fill(memory, MIB, 22);
	munmap(memory, MIB);
}

static void share_compositor(int socket)
{
	auto_close int fd = open_or_exit(node), dmabuf = receive_fd(socket);
	uint32_t handle = 0, again = 0;
	uint64_t *memory, *direct;

	CHECK(drmPrimeFDToHandle(fd, dmabuf, &handle), 0);
	CHECK(drmPrimeFDToHandle(fd, dmabuf, &again), 0);
	CHECK(again, handle);
	CHECK(where(fd, handle).checksum, pattern_checksum(MIB, 21));
	CHECK(flip(fd, handle, NULL), 0);
	memory = map(fd, handle, MIB);
	direct = mmap(NULL, MIB, PROT_READ, MAP_SHARED, dmabuf, 0);
	CHECK(direct != MAP_FAILED, 1);
	CHECK(pattern_mismatch(memory, MIB, 21), -1);
	CHECK(pattern_mismatch(direct, MIB, 21), -1);
	CHECK(write(socket, "", 1), 1);

	/* The game ends; its image stays, on the screen. */
	CHECK(read(socket, &(char){ 0 }, 1), 0);
	CHECK(pattern_mismatch(memory, MIB, 22), -1);
	CHECK(flip(fd, 0, NULL), 0);
	evict_all(fd);
	CHECK(where(fd, handle).mem_type != VRAMSIM_MEM_VRAM, 1);
	CHECK(pattern_mismatch(memory, MIB, 22), -1);
	CHECK(pattern_mismatch(direct, MIB, 22), -1);
	munmap(memory, MIB);
	munmap(direct, MIB);
}

static void test_share(void)
{
	int sockets[2], status = -1;
	pid_t game;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	fflush(stdout);
	game = fork();
	if (game == 0) {
		close(sockets[0]);
		failures = 0;
		share_game(sockets[1]);
		fflush(stdout);
		_exit(failures ? EXIT_FAILURE : EXIT_SUCCESS);
	}
	close(sockets[1]);
	share_compositor(sockets[0]);
	close(sockets[0]);
	CHECK(waitpid(game, &status, 0), game);
	CHECK(status, 0);
}

/* Mappings have their bounds, and no private copies. */
static void test_mmap_refuses(void)
{
	auto_close int fd = open_or_exit(node), other = open_or_exit(node);
	uint32_t handle = created(fd, 8 * KIB, 0);
	struct drm_vramsim_mmap args = { .handle = handle };
	int prot = PROT_READ | PROT_WRITE;

	CHECK(call(fd, DRM_IOCTL_VRAMSIM_MMAP, &args), 0);
	CHECK(mmap(NULL, 12 * KIB, prot, MAP_SHARED, fd, (off_t)args.offset) == MAP_FAILED, 1);
	CHECK(errno, EINVAL);
	CHECK(mmap(NULL, 8 * KIB, prot, MAP_PRIVATE, fd, (off_t)args.offset) == MAP_FAILED, 1);
	CHECK(errno, EINVAL);
	CHECK(mmap(NULL, 8 * KIB, prot, MAP_SHARED, other, (off_t)args.offset) == MAP_FAILED, 1);
	CHECK(errno, EACCES);
	args.handle++;
	CHECK(call(fd, DRM_IOCTL_VRAMSIM_MMAP, &args), -ENOENT);
}

/* A mapping keeps its buffer, but not the place that a private one had in its file's address space. */
static void test_mapping_outlives_handle(void)
{
	auto_close int fd = open_or_exit(node);
	uint32_t handle = created(fd, MIB, VRAMSIM_BO_PRIVATE);
	uint64_t *memory = map(fd, handle, MIB);
	struct drm_vramsim_submit s = {};

	pattern_fill(memory, MIB, 5);
	CHECK(drmCloseBufferHandle(fd, handle), 0);
	CHECK(submit(fd, NULL, 0, VRAMSIM_SUBMIT_ALL_PRIVATE, &s), 0);
	CHECK(s.resident, 0);
	evict_all(fd);
	CHECK(pattern_mismatch(memory, MIB, 5), -1);
	CHECK(stats(fd).vram_used, 0);
	fd = close_fd(fd);
	CHECK(pattern_mismatch(memory, MIB, 5), -1);
	munmap(memory, MIB);
}

int main(int argc, char *argv[])
{
	static void (*const tests[])(void) = {
		test_new_is_zero, test_moves, test_one_piece, test_pinned, test_lru, test_share,
		test_mmap_refuses, test_mapping_outlives_handle,
	};
	size_t i;
	int fd;

	if (argc != 2) {
		fprintf(stderr, "vsim-memory: needs the node of an unused vramsim\n");
		return 2;
	}
	node = argv[1];
	fd = open_or_exit(node);
	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		tests[i]();
		CHECK(used_after_frees(fd, 0), 0);
	}
	close(fd);
	printf("vsim-memory: %d failed\n", failures);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
