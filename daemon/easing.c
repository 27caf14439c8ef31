/* SPDX-License-Identifier: MIT */
#include "easing.h"

/* Never to nothing: a game without any promise counts as released. */
#define LOWEST (4 * KIB)

static void lower(Easing *e, const EasingLook *look, uint64_t duration_usec)
{
	e->low = MAX(look->use, LOWEST);
	e->held = 0;
	e->until_usec = add_sat(look->usec, duration_usec);
}

/* What an eased game took beyond its low it holds as anybody would: losing that again is no news, and keeps nobody
 * from having his low back in time. So only what is below the present low counts, and also without easing: a game
 * that uses more than its low has no promise that could be lowered. */
static EasingNews take_drop(Easing *e, const EasingLook *look, uint64_t drop, uint64_t duration_usec)
{
	bool on = easing_is_on(e);

	if (drop <= look->capacity / EASING_DROP_DIVISOR || look->use >= (on ? e->low : look->low))
		return EASING_SAME;
	lower(e, look, duration_usec);
	e->lost = drop;
	e->n_again = 0;
	return on ? EASING_LOWERED : EASING_BEGUN;
}

static EasingNews take_time(Easing *e, const EasingLook *look)
{
	if (!easing_is_on(e) || look->usec < e->until_usec)
		return EASING_SAME;
	e->held = e->low;
	e->low = EASING_NOT;
	e->until_usec = add_sat(look->usec, EASING_PROOF_USEC);
	return EASING_OVER;
}

/* After easing: whether the game got anything back. */
static EasingNews take_proof(Easing *e, const EasingLook *look, uint64_t duration_usec)
{
	uint64_t more = add_sat(e->held, look->capacity / EASING_DROP_DIVISOR);

	if (e->held == 0)
		return EASING_SAME;
	if (look->use > more || look->low <= more || !look->near_full || e->n_again >= EASING_AGAIN_MAX) {
		e->held = 0;
		e->n_again = 0;
		return EASING_SAME;
	}
	if (look->usec < e->until_usec)
		return EASING_SAME;
	lower(e, look, duration_usec);
	e->n_again++;
	return EASING_AGAIN;
}

EasingNews easing_look(Easing *e, const EasingLook *look, uint64_t duration_usec)
{
	uint64_t drop = e->use > look->use ? e->use - look->use : 0;
	EasingNews news;

	e->use = look->use;
	news = take_drop(e, look, drop, duration_usec);
	if (news != EASING_SAME)
		return news;
	return easing_is_on(e) ? take_time(e, look) : take_proof(e, look, duration_usec);
}

uint64_t easing_next_usec(const Easing *e, const EasingLook *look)
{
	/* Who holds less than a drop takes cannot lose one. */
	bool quick = look->near_full && (e->held > 0 || e->use > look->capacity / EASING_DROP_DIVISOR);
	uint64_t next = add_sat(look->usec, quick ? EASING_QUICK_USEC : EASING_SLOW_USEC);

	return easing_is_on(e) ? MIN(next, e->until_usec) : next;
}

/* A drop is what goes in the time between two quick looks, here as well. */
EasingNews easing_evicted(Easing *e, const EasingLook *look, uint64_t bytes, uint64_t duration_usec)
{
	EasingNews news;

	e->use = look->use;
	if (look->usec - e->since_usec >= EASING_QUICK_USEC) {
		e->since_usec = look->usec;
		e->evicted = 0;
	}
	e->evicted = add_sat(e->evicted, bytes);
	news = take_drop(e, look, e->evicted, duration_usec);
	if (news != EASING_SAME)
		e->evicted = 0;
	return news != EASING_SAME ? news : take_time(e, look);
}

bool easing_is_near_full(uint64_t used, uint64_t capacity)
{
	return used > percent_of(capacity, EASING_NEAR_FULL_PERCENT);
}
