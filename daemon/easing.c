/* SPDX-License-Identifier: MIT */
#include "easing.h"

/* Never to nothing: a game without any promise counts as released. */
#define LOWEST (4 * KIB)

static void lower(Easing *e, const EasingLook *look, uint64_t drop, uint64_t duration_usec)
{
	e->low = MAX(look->use, LOWEST);
	e->lost = drop;
	e->until_usec = add_sat(look->usec, duration_usec);
}

/* What an eased game took beyond its low it holds as anybody would: losing that again is no news, and keeps nobody
 * from having his low back in time. So only what is below the present low counts, and also without easing: a game
 * that uses more than its low has no promise that could be lowered. */
EasingNews easing_look(Easing *e, const EasingLook *look, uint64_t duration_usec)
{
	uint64_t drop = e->use > look->use ? e->use - look->use : 0;
	bool on = easing_is_on(e);

	e->use = look->use;
	if (drop > look->capacity / EASING_DROP_DIVISOR && look->use < (on ? e->low : look->low)) {
		lower(e, look, drop, duration_usec);
		return on ? EASING_LOWERED : EASING_BEGUN;
	}
	if (!on || look->usec < e->until_usec)
		return EASING_SAME;
	e->low = EASING_NOT;
	return EASING_OVER;
}

uint64_t easing_next_usec(const Easing *e, const EasingLook *look, bool near_full)
{
	/* Who holds less than a drop takes cannot lose one. */
	bool quick = near_full && e->use > look->capacity / EASING_DROP_DIVISOR;
	uint64_t next = add_sat(look->usec, quick ? EASING_QUICK_USEC : EASING_SLOW_USEC);

	return easing_is_on(e) ? MIN(next, e->until_usec) : next;
}

bool easing_is_near_full(uint64_t used, uint64_t capacity)
{
	return used > percent_of(capacity, EASING_NEAR_FULL_PERCENT);
}
