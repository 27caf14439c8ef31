/* SPDX-License-Identifier: MIT */
/* vsim-storm NODE SEED MIB ROUNDS: buffers of all kinds and sizes, moved around by random calls, also of
 * other vsim-storms at the same time; every byte must stay right. Prints what it did as KEY=VALUE. */
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
	b->seed = s->next_seed++;
	pattern_fill(b->memory, b->size, b->seed);
}

/* 4 KiB to 2 MiB, as many small as large ones; few are bound to VRAM. */
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
	if (!worked(s, create(s->fd, b->size, b->flags, &b->handle)))
		return;
	b->memory = map(s->fd, b->handle, b->size);
	if (!b->memory) {
		fprintf(stderr, "vsim-storm: cannot map a buffer\n");
		exit(EXIT_FAILURE);
	}
	CHECK(pattern_mismatch(b->memory, b->size, 0), -1);
	fill(s, b);
	s->bytes += b->size;
	s->n++;
}

static void drop(Storm *s, uint32_t i)
{
	Buffer *b = &s->buffers[i];

	munmap(b->memory, b->size);
	CHECK(drmCloseBufferHandle(s->fd, b->handle), 0);
	s->bytes -= b->size;
	*b = s->buffers[--s->n];
}

static void verify(Storm *s, const Buffer *b, bool by_mapping)
{
	struct drm_vramsim_bo_info i = {};

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
	uint32_t handles[MAX_BUFFERS], n = 0, i;
	uint32_t flags = (uint32_t)random_below(s, VRAMSIM_SUBMIT_FLAGS + 1);

	for (i = 0; i < s->n; i++)
		if (random_below(s, 3) == 0)
			handles[n++] = s->buffers[i].handle;
	if (n == 0)
		flags |= VRAMSIM_SUBMIT_ALL_PRIVATE;
	if (worked(s, submit(s->fd, handles, n, flags, NULL)))
		s->submits++;
}

static void act(Storm *s, uint64_t limit)
{
	Buffer *b = s->n ? &s->buffers[random_below(s, s->n)] : NULL;

	if (!b || (s->n < MAX_BUFFERS && s->bytes < limit && random_below(s, 2)))
		add(s);
	else
		switch (random_below(s, 8)) {
		case 0:
			drop(s, (uint32_t)(b - s->buffers));
			break;
		case 1:
			fill(s, b);
			break;
		case 2:
			if (b->size <= 128 * KIB)
				worked(s, flip(s->fd, b->handle, NULL));
			break;
		case 3:
			verify(s, b, true);
			break;
		case 4:
			verify(s, b, false);
			break;
		default:
			submit_some(s);
		}
}

int main(int argc, char *argv[])
{
	Storm *s = calloc(1, sizeof(*s));
	uint64_t seed, limit;
	uint32_t rounds, i;

	if (!s || argc != 5 || parse_u64(argv[2], &seed) < 0 || parse_u64(argv[3], &limit) < 0 ||
	    parse_u32(argv[4], &rounds) < 0) {
		fprintf(stderr, "vsim-storm: needs NODE SEED MIB ROUNDS\n");
		return 2;
	}
	s->fd = open_or_exit(argv[1]);
	s->random = seed * 2 + 1;
	s->next_seed = seed << 20 | 1;
	for (i = 0; i < rounds; i++)
		act(s, limit * MIB);
	for (i = 0; i < s->n; i++) {
		verify(s, &s->buffers[i], true);
		verify(s, &s->buffers[i], false);
	}
	printf("failed=%d buffers=%" PRIu32 " checked_mib=%" PRIu64 " submits=%" PRIu64 " refused=%" PRIu64 "\n",
	       failures, s->n, s->checked / MIB, s->submits, s->refused);
	close(s->fd);
	free(s);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
