/* SPDX-License-Identifier: MIT */
/* vsim-storm NODE SEED MIB ROUNDS [bound] [backoff] [blind]: buffers of all kinds and sizes, moved around by random calls,
 * also of other vsim-storms at the same time; every byte must stay right. With "bound" no buffer can be outside VRAM, with
 * "backoff" each submission and flip backs off from locks, else by chance, and with "blind" contents are left alone. Ends
 * early, without an error, when the GPU is taken away. Prints what it did as KEY=VALUE. */
#include <sys/mman.h>

#include <xf86drm.h>

#include "client.h"
#include "parse.h"
#include "pattern.h"

#define MAX_BUFFERS 512

typedef struct Buffer {
	uint32_t handle;
	uint32_t flags;
	uint64_t size;
	uint64_t seed;		/* of its pattern */
	uint64_t *memory;
} Buffer;

typedef struct Storm {
	int fd;
	uint64_t random;
	uint64_t next_seed;
	Buffer buffers[MAX_BUFFERS];
	uint32_t n;
	uint64_t bytes;
	uint64_t checked, submits, refused;
	uint32_t retries;	/* the most of one submission */
	uint64_t wait_ns;	/* the longest attempt of one */
	bool bound, backoff, blind;
} Storm;

static uint64_t random_below(Storm *s, uint64_t limit)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random % limit;
}

/* VRAM is contended: there may be no room for what must be there. Anything else is a failure. */
static bool worked(Storm *s, int r)
{
	if (r == -ENOMEM)
		s->refused++;
	else
		CHECK(r, 0);
	return r == 0;
}

static void fill(Storm *s, Buffer *b)
{
	if (s->blind)
		return;
	b->seed = s->next_seed++;
	pattern_fill(b->memory, b->size, b->seed);
}

/* 4 KiB to 2 MiB, as many small as large ones; few are bound to VRAM, unless all are to be. */
static void add(Storm *s)
{
	static const uint32_t kinds[] = {
		0, 0, 0, VRAMSIM_BO_PRIVATE, VRAMSIM_BO_PRIVATE, VRAMSIM_BO_PRIVATE, VRAMSIM_BO_VRAM_ONLY,
		VRAMSIM_BO_SCANOUT, VRAMSIM_BO_PRIVATE | VRAMSIM_BO_SCANOUT,
	};
	Buffer *b = &s->buffers[s->n];
	uint64_t pages = UINT64_C(1) << random_below(s, 9);

	*b = (Buffer){
		.flags = kinds[random_below(s, ARRAY_SIZE(kinds))],
		.size = (pages + random_below(s, pages)) * 4 * KIB,
	};
	if (b->flags & (VRAMSIM_BO_SCANOUT | VRAMSIM_BO_VRAM_ONLY))
		b->size = MIN(b->size, 128 * KIB);
	if (s->bound)
		b->flags |= VRAMSIM_BO_VRAM_ONLY;
	if (!worked(s, create(s->fd, b->size, b->flags, &b->handle)))
		return;
	if (!s->blind) {
		b->memory = map(s->fd, b->handle, b->size);
		CHECK(b->memory != NULL, 1);
		if (!b->memory)
			return;
		CHECK(pattern_mismatch(b->memory, b->size, 0), -1);
		fill(s, b);
	}
	s->bytes += b->size;
	s->n++;
}

static void drop(Storm *s, uint32_t i)
{
	Buffer *b = &s->buffers[i];

	if (b->memory)
		munmap(b->memory, b->size);
	CHECK(drmCloseBufferHandle(s->fd, b->handle), 0);
	s->bytes -= b->size;
	*b = s->buffers[--s->n];
}

static void verify(Storm *s, const Buffer *b, bool by_mapping)
{
	struct drm_vramsim_bo_info i = {};

	if (s->blind)
		return;
	if (by_mapping) {
		CHECK(pattern_mismatch(b->memory, b->size, b->seed), -1);
	} else {
		CHECK(info(s->fd, b->handle, VRAMSIM_BO_INFO_CHECKSUM, &i), 0);
		CHECK(i.checksum, pattern_checksum(b->size, b->seed));
	}
	s->checked += b->size;
}

static void submit_some(Storm *s)
{
	uint32_t handles[MAX_BUFFERS], i;
	struct drm_vramsim_submit args = {
		.handles = (uintptr_t)handles,
		.flags = (uint32_t)random_below(s, VRAMSIM_SUBMIT_FLAGS + 1),
		.hold_us = random_below(s, 4) ? 0 : (uint32_t)random_below(s, 1000),
	};

	for (i = 0; i < s->n; i++)
		if (random_below(s, 3) == 0)
			handles[args.n++] = s->buffers[i].handle;
	if (args.n == 0)
		args.flags |= VRAMSIM_SUBMIT_ALL_PRIVATE;
	if (s->backoff)
		args.flags |= VRAMSIM_SUBMIT_BACKOFF;
	if (!worked(s, call(s->fd, DRM_IOCTL_VRAMSIM_SUBMIT, &args)))
		return;
	s->submits++;
	s->retries = MAX(s->retries, args.retries);
	s->wait_ns = MAX(s->wait_ns, args.wait_ns);
}

static void show(Storm *s, const Buffer *b)
{
	struct drm_vramsim_flip args = {
		.handle = b->handle,
		.flags = s->backoff || random_below(s, 2) ? VRAMSIM_FLIP_BACKOFF : 0,
	};

	if (b->size <= 128 * KIB)
		worked(s, call(s->fd, DRM_IOCTL_VRAMSIM_FLIP, &args));
}

static void prioritise(Storm *s, const Buffer *b)
{
	struct drm_vramsim_set_priority args = {
		.handle = b->handle,
		.priority = (uint32_t)random_below(s, VRAMSIM_PRIORITY_MAX + 1),
	};

	CHECK(call(s->fd, DRM_IOCTL_VRAMSIM_SET_PRIORITY, &args), 0);
}

static void act(Storm *s, uint64_t limit)
{
	Buffer *b = s->n ? &s->buffers[random_below(s, s->n)] : NULL;

	if (!b || (s->n < MAX_BUFFERS && s->bytes < limit && random_below(s, 2)))
		add(s);
	else
		switch (random_below(s, 9)) {
		case 0:
			drop(s, (uint32_t)(b - s->buffers));
			break;
		case 1:
			fill(s, b);
			break;
		case 2:
			show(s, b);
			break;
		case 3:
			verify(s, b, true);
			break;
		case 4:
			verify(s, b, false);
			break;
		case 5:
			prioritise(s, b);
			break;
		default:
			submit_some(s);
		}
}

static void verify_all(Storm *s)
{
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		verify(s, &s->buffers[i], true);
		verify(s, &s->buffers[i], false);
	}
}

static bool gone(Storm *s)
{
	struct drm_vramsim_stats ignored;

	return call(s->fd, DRM_IOCTL_VRAMSIM_STATS, &ignored) == -ENODEV;
}

static void rage(Storm *s, uint64_t limit, uint32_t rounds)
{
	uint32_t i;
	int before;

	for (i = 0; i <= rounds; i++) {
		before = failures;
		if (i < rounds)
			act(s, limit);
		else
			verify_all(s);
		/* Nothing holds for a GPU that was taken away, so that what has just failed does not count. */
		if (failures > before && gone(s)) {
			failures = before;
			return;
		}
	}
}

static bool parse_words(Storm *s, char *words[])
{
	for (; *words; words++) {
		if (streq(*words, "bound"))
			s->bound = true;
		else if (streq(*words, "backoff"))
			s->backoff = true;
		else if (streq(*words, "blind"))
			s->blind = true;
		else
			return false;
	}
	return true;
}

int main(int argc, char *argv[])
{
	Storm *s = calloc(1, sizeof(*s));
	uint64_t seed, limit;
	uint32_t rounds;

	if (!s || argc < 5 || parse_u64(argv[2], &seed) < 0 || parse_u64(argv[3], &limit) < 0 ||
	    parse_u32(argv[4], &rounds) < 0 || !parse_words(s, argv + 5)) {
		fprintf(stderr, "vsim-storm: needs NODE SEED MIB ROUNDS [bound] [backoff] [blind]\n");
		return 2;
	}
	s->fd = open_or_exit(argv[1]);
	s->random = seed * 2 + 1;
	s->next_seed = seed << 20 | 1;
	rage(s, limit * MIB, rounds);
	printf("failed=%d buffers=%" PRIu32 " checked_mib=%" PRIu64 " submits=%" PRIu64 " refused=%" PRIu64
	       " retries=%" PRIu32 " wait_ms=%" PRIu64 "\n",
	       failures, s->n, s->checked / MIB, s->submits, s->refused, s->retries, s->wait_ns / 1000000);
	close(s->fd);
	free(s);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
