/* SPDX-License-Identifier: MIT */
/* Layer 2. Easing: the game in front does not fight at once for memory that it lost. Pure: no file, no clock; whoever
 * looks brings time and figures.
 *
 * When what a game uses of a region drops by more than 1/80 of it from one look to the next, somebody came in in spite
 * of the game's low, with buffers that can be nowhere else. If low stayed as it is, the game would take all of it back
 * in its next frame, lose it again in the one after, and so on. So its low becomes what it uses now, for a moment.
 *
 * A game that frees memory by itself, between two levels, looks the same, and that does no harm: all that it uses
 * stays protected, and it grows into the room that it made.
 *
 * Once its low is whole again, a game takes back what it lost. If whoever came in is still there, both then evict each
 * other in every frame, and looks that always come when the game has just lost see no drop. They see a game that got
 * nothing back, and that is eased again. As a game that freed memory by itself looks like this too, it is not more than
 * EASING_AGAIN_MAX times in a row.
 *
 * Where the kernel counts evictions (dmem.events) there is nothing to look for: what counts is what was evicted for
 * others, and it is told in time. */
#pragma once

#include "util.h"

#define EASING_NOT UINT64_MAX

/* Less is what any game frees and takes in passing; a burst of a few frames is more. */
#define EASING_DROP_DIVISOR 80
/* Where somebody may have to come in soon, looks are close enough together that a burst costs a frame or two. A
 * region with room takes everybody, so there the looks only have to notice that it fills up. */
#define EASING_NEAR_FULL_PERCENT 85
#define EASING_QUICK_USEC (50 * USEC_PER_MSEC)
#define EASING_SLOW_USEC (2 * USEC_PER_SEC)
/* Two looks: a game takes back what it lost in its next frame, and few games take longer for one. */
#define EASING_PROOF_USEC (2 * EASING_QUICK_USEC)
#define EASING_AGAIN_MAX 4

typedef enum EasingNews {
	EASING_SAME,
	EASING_BEGUN,
	EASING_LOWERED, /* one more drop: further down, and the time starts again */
	EASING_AGAIN,   /* it was over, but the game got nothing back */
	EASING_OVER,
} EasingNews;

/* One game in one region. EASING_NEW before the first look. */
typedef struct Easing {
	uint64_t use;        /* at the last look */
	uint64_t low;        /* what low is lowered to; EASING_NOT: it is not */
	uint64_t lost;       /* bytes of the last drop that counted */
	uint64_t until_usec; /* when low is whole again; then: when it must be seen that the game has more again */
	uint64_t held;       /* what low was lowered to, until the game has more again; 0: it has */
	unsigned n_again;    /* times in a row */
	uint64_t evicted;    /* bytes, from since_usec on; only where the kernel counts */
	uint64_t since_usec;
	EasingNews untold;   /* for whoever tells it to the world */
} Easing;
#define EASING_NEW ((Easing){ .low = EASING_NOT })

/* What there is to see. */
typedef struct EasingLook {
	uint64_t usec;
	uint64_t use, capacity;
	uint64_t low;   /* the game's present one */
	bool near_full; /* the region */
} EasingLook;

EasingNews easing_look(Easing *e, const EasingLook *look, uint64_t duration_usec);
/* When to look again. */
uint64_t easing_next_usec(const Easing *e, const EasingLook *look);
/* Where the kernel counts: so many bytes of the game were evicted for others since the last time. Between such news
 * nobody has to look but once, at until_usec, with 0 bytes. */
EasingNews easing_evicted(Easing *e, const EasingLook *look, uint64_t bytes, uint64_t duration_usec);
bool easing_is_near_full(uint64_t used, uint64_t capacity);

static inline bool easing_is_on(const Easing *e)
{
	return e->low != EASING_NOT;
}
