/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "easing.h"

#define C (8 * GIB)
#define LOW (15 * GIB / 2)
#define DROP (C / EASING_DROP_DIVISOR)
#define START (1000 * USEC_PER_SEC)
#define DURATION (2 * USEC_PER_SEC)
#define WHOLE EASING_NOT

/* One look at a time, and what it must lead to. */
typedef struct Step {
	uint64_t msec; /* since the first look */
	uint64_t use;
	EasingNews news;
	uint64_t low;
	bool near_full;
} Step;

static void play(const char *name, const Step *steps, size_t n)
{
	Easing e = EASING_NEW;

	for (size_t i = 0; i < n; i++) {
		EasingLook look = { START + steps[i].msec * USEC_PER_MSEC, steps[i].use, C, LOW, steps[i].near_full };
		uint64_t before = e.use;
		EasingNews news = easing_look(&e, &look, DURATION);

		if (news != steps[i].news || e.low != steps[i].low)
			fail_msg("%s, step %zu: news %d, low %#" PRIx64 "; want %d, %#" PRIx64, name, i, (int)news, e.low,
				 (int)steps[i].news, steps[i].low);
		assert_int_equal(e.use, steps[i].use);
		if (news != EASING_BEGUN && news != EASING_LOWERED)
			continue;
		assert_int_equal(e.lost, before - steps[i].use);
		assert_int_equal(e.until_usec, look.usec + DURATION);
	}
}
#define PLAY(...) play(__func__, (const Step[]){ __VA_ARGS__ }, ARRAY_SIZE(((const Step[]){ __VA_ARGS__ })))

static void test_first_look(void **state _unused_)
{
	/* Whatever it uses, there is nothing to compare it with. */
	PLAY({ 0, 0, EASING_SAME, WHOLE });
	PLAY({ 0, 6 * GIB, EASING_SAME, WHOLE }, { 50, 6 * GIB, EASING_SAME, WHOLE });
}

static void test_threshold(void **state _unused_)
{
	const uint64_t use = 6 * GIB;

	PLAY({ 0, use, EASING_SAME, WHOLE }, { 50, use - DROP, EASING_SAME, WHOLE });
	PLAY({ 0, use, EASING_SAME, WHOLE }, { 50, use - DROP - 1, EASING_BEGUN, use - DROP - 1 });
	/* Slowly, it may shrink as far as it likes. */
	PLAY({ 0, use, EASING_SAME, WHOLE }, { 50, use - DROP, EASING_SAME, WHOLE },
	     { 100, use - 2 * DROP, EASING_SAME, WHOLE }, { 150, use - 3 * DROP, EASING_SAME, WHOLE });
	/* Growing is no drop. */
	PLAY({ 0, use, EASING_SAME, WHOLE }, { 50, use + 4 * DROP, EASING_SAME, WHOLE });
}

static void test_time(void **state _unused_)
{
	PLAY({ 0, 6 * GIB, EASING_SAME, WHOLE }, { 50, 5 * GIB, EASING_BEGUN, 5 * GIB },
	     { 100, 5 * GIB, EASING_SAME, 5 * GIB }, { 2049, 5 * GIB, EASING_SAME, 5 * GIB },
	     { 2050, 5 * GIB, EASING_OVER, WHOLE }, { 2100, 5 * GIB, EASING_SAME, WHOLE });
	/* A late look ends it too, and the next drop begins another. */
	PLAY({ 0, 6 * GIB, EASING_SAME, WHOLE }, { 50, 5 * GIB, EASING_BEGUN, 5 * GIB },
	     { 9000, 5 * GIB, EASING_OVER, WHOLE }, { 9050, 4 * GIB, EASING_BEGUN, 4 * GIB });
}

static void test_further_drop(void **state _unused_)
{
	PLAY({ 0, 6 * GIB, EASING_SAME, WHOLE }, { 50, 5 * GIB, EASING_BEGUN, 5 * GIB },
	     { 1000, 4 * GIB, EASING_LOWERED, 4 * GIB }, { 2050, 4 * GIB, EASING_SAME, 4 * GIB },
	     { 2999, 4 * GIB - DROP, EASING_SAME, 4 * GIB }, { 3000, 4 * GIB - DROP, EASING_OVER, WHOLE });
	/* Seen with the look that would have ended it. */
	PLAY({ 0, 6 * GIB, EASING_SAME, WHOLE }, { 50, 5 * GIB, EASING_BEGUN, 5 * GIB },
	     { 2050, 4 * GIB, EASING_LOWERED, 4 * GIB }, { 4050, 4 * GIB, EASING_OVER, WHOLE });
}

static void test_growth_while_eased(void **state _unused_)
{
	/* What it took meanwhile it may lose again: low stays, and the time does not start again. */
	PLAY({ 0, 6 * GIB, EASING_SAME, WHOLE }, { 50, 4 * GIB, EASING_BEGUN, 4 * GIB },
	     { 100, 6 * GIB, EASING_SAME, 4 * GIB }, { 150, 5 * GIB, EASING_SAME, 4 * GIB },
	     { 2050, 4 * GIB, EASING_OVER, WHOLE });
	/* But losing below what it is promised is one more drop. */
	PLAY({ 0, 6 * GIB, EASING_SAME, WHOLE }, { 50, 4 * GIB, EASING_BEGUN, 4 * GIB },
	     { 100, 6 * GIB, EASING_SAME, 4 * GIB }, { 150, 3 * GIB, EASING_LOWERED, 3 * GIB });
}

static void test_nothing_promised(void **state _unused_)
{
	PLAY({ 0, C, EASING_SAME, WHOLE }, { 50, LOW, EASING_SAME, WHOLE });
	PLAY({ 0, C, EASING_SAME, WHOLE }, { 50, LOW - 1, EASING_BEGUN, LOW - 1 });
	/* It loses everything: some promise is left. */
	PLAY({ 0, 6 * GIB, EASING_SAME, WHOLE }, { 50, 0, EASING_BEGUN, 4096 }, { 100, 0, EASING_SAME, 4096 },
	     { 2050, 0, EASING_OVER, WHOLE });
}

static void test_sizes(void **state _unused_)
{
	Easing none = EASING_NEW, huge = EASING_NEW;
	EasingLook look = { 0, 0, 0, 0, false };

	assert_int_equal(easing_look(&none, &look, DURATION), EASING_SAME);
	look = (EasingLook){ UINT64_MAX - 1, UINT64_MAX, UINT64_MAX, UINT64_MAX, true };
	assert_int_equal(easing_look(&huge, &look, DURATION), EASING_SAME);
	look.use = 0;
	assert_int_equal(easing_look(&huge, &look, DURATION), EASING_BEGUN);
	assert_int_equal(huge.until_usec, UINT64_MAX);
	assert_int_equal(easing_next_usec(&huge, &look), UINT64_MAX);
}

/* It is over, and whoever came in is still there: the looks come when the game has just lost again. */
static void test_again(void **state _unused_)
{
	const uint64_t low = 5 * GIB;

	PLAY({ 0, 6 * GIB, EASING_SAME, WHOLE, true }, { 50, low, EASING_BEGUN, low, true },
	     { 2050, low, EASING_OVER, WHOLE, true }, { 2100, low - 1, EASING_SAME, WHOLE, true },
	     { 2149, low + DROP, EASING_SAME, WHOLE, true }, { 2150, low + DROP, EASING_AGAIN, low + DROP, true },
	     { 4150, low, EASING_OVER, WHOLE, true }, { 4250, low, EASING_AGAIN, low, true });
	/* It got something back, in between or at the end. */
	PLAY({ 0, 6 * GIB, EASING_SAME, WHOLE, true }, { 50, low, EASING_BEGUN, low, true },
	     { 2050, low, EASING_OVER, WHOLE, true }, { 2100, low + DROP + 1, EASING_SAME, WHOLE, true },
	     { 2150, low + 1, EASING_SAME, WHOLE, true }, { 2200, low, EASING_SAME, WHOLE, true });
	PLAY({ 0, 6 * GIB, EASING_SAME, WHOLE, true }, { 50, low, EASING_BEGUN, low, true },
	     { 2050, low, EASING_OVER, WHOLE, true }, { 2150, low + DROP + 1, EASING_SAME, WHOLE, true });
	/* There is room: it does not want it back. */
	PLAY({ 0, 6 * GIB, EASING_SAME, WHOLE, true }, { 50, low, EASING_BEGUN, low, true },
	     { 2050, low, EASING_OVER, WHOLE, true }, { 2100, low, EASING_SAME, WHOLE },
	     { 2150, low, EASING_SAME, WHOLE, true });
	/* It has next to all that it is promised. */
	PLAY({ 0, LOW + 1, EASING_SAME, WHOLE, true }, { 50, LOW - DROP, EASING_BEGUN, LOW - DROP, true },
	     { 2050, LOW - DROP, EASING_OVER, WHOLE, true }, { 2150, LOW - DROP, EASING_SAME, WHOLE, true });
	/* A drop that is seen is a drop. */
	PLAY({ 0, 6 * GIB, EASING_SAME, WHOLE, true }, { 50, low, EASING_BEGUN, low, true },
	     { 2050, low, EASING_OVER, WHOLE, true }, { 2100, 4 * GIB, EASING_BEGUN, 4 * GIB, true });
}

/* A game that does not want more looks the same, but not for ever. */
static void test_again_ends(void **state _unused_)
{
	Easing e = EASING_NEW;
	EasingLook look = { START, 6 * GIB, C, LOW, true };
	unsigned n[EASING_OVER + 1] = { 0 };

	(void)easing_look(&e, &look, DURATION);
	look.use = 5 * GIB;
	for (unsigned i = 0; i < 1000; i++) {
		look.usec += EASING_QUICK_USEC;
		n[easing_look(&e, &look, DURATION)]++;
	}
	assert_int_equal(n[EASING_BEGUN], 1);
	assert_int_equal(n[EASING_AGAIN], EASING_AGAIN_MAX);
	assert_int_equal(n[EASING_OVER], EASING_AGAIN_MAX + 1);
	/* The next drop is a new one. */
	look.use = 4 * GIB;
	assert_int_equal(easing_look(&e, &look, DURATION), EASING_BEGUN);
	look.usec = e.until_usec;
	assert_int_equal(easing_look(&e, &look, DURATION), EASING_OVER);
	look.usec = e.until_usec;
	assert_int_equal(easing_look(&e, &look, DURATION), EASING_AGAIN);
}

/* The kernel tells what was evicted: {msec, use, news, low} and bytes. */
static void test_evicted(void **state _unused_)
{
	static const struct {
		uint64_t msec, use, bytes;
		EasingNews news;
		uint64_t low;
	} steps[] = {
		/* How much it used before was never seen, and does not matter. */
		{ 0, 6 * GIB, DROP, EASING_SAME, WHOLE },
		{ 49, 6 * GIB, 1, EASING_BEGUN, 6 * GIB },
		/* What it has beyond its low it may lose; little in a long time is no news. */
		{ 60, 6 * GIB, GIB, EASING_SAME, 6 * GIB },
		{ 500, 6 * GIB - DROP, DROP, EASING_SAME, 6 * GIB },
		{ 550, 6 * GIB - 2 * DROP, DROP, EASING_SAME, 6 * GIB },
		{ 590, 6 * GIB - 3 * DROP, DROP, EASING_LOWERED, 6 * GIB - 3 * DROP },
		{ 599, 6 * GIB - 4 * DROP, DROP, EASING_SAME, 6 * GIB - 3 * DROP },
		{ 2589, 5 * GIB, 0, EASING_SAME, 6 * GIB - 3 * DROP },
		{ 2590, 5 * GIB, 0, EASING_OVER, WHOLE },
		/* Nothing is said of it, so it is left alone; all that it is promised is there. */
		{ 9000, 5 * GIB, 0, EASING_SAME, WHOLE },
		{ 9100, LOW, GIB, EASING_SAME, WHOLE },
		/* The clock of somebody else does no harm. */
		{ 0, 5 * GIB, GIB, EASING_BEGUN, 5 * GIB },
	};
	Easing e = EASING_NEW;

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		EasingLook look = { START + steps[i].msec * USEC_PER_MSEC, steps[i].use, C, LOW, false };
		EasingNews news = easing_evicted(&e, &look, steps[i].bytes, DURATION);

		if (news != steps[i].news || e.low != steps[i].low)
			fail_msg("step %zu: news %d, low %#" PRIx64, i, (int)news, e.low);
	}
	assert_int_equal(e.lost, GIB);
}

static void test_next(void **state _unused_)
{
	static const struct {
		uint64_t use, eased_for; /* 0: not eased */
		bool near_full;
		uint64_t wait;
	} cases[] = {
		{ 6 * GIB, 0, true, EASING_QUICK_USEC },
		{ 6 * GIB, 0, false, EASING_SLOW_USEC },
		/* Who has nothing to lose need not be looked at. */
		{ DROP + 1, 0, true, EASING_QUICK_USEC },
		{ DROP, 0, true, EASING_SLOW_USEC },
		{ 0, 0, true, EASING_SLOW_USEC },
		/* The end is not missed, nor is a further drop. */
		{ 6 * GIB, USEC_PER_SEC, false, USEC_PER_SEC },
		{ 6 * GIB, USEC_PER_SEC, true, EASING_QUICK_USEC },
		{ 6 * GIB, USEC_PER_MSEC, true, USEC_PER_MSEC },
		{ 6 * GIB, 3 * USEC_PER_SEC, false, EASING_SLOW_USEC },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		EasingLook look = { START, cases[i].use, C, LOW, cases[i].near_full };
		Easing e = EASING_NEW;

		e.use = cases[i].use;
		if (cases[i].eased_for) {
			e.low = 5 * GIB;
			e.until_usec = START + cases[i].eased_for;
		}
		assert_int_equal(easing_next_usec(&e, &look), START + cases[i].wait);
		/* Whether it gets something back is to be seen soon, also when it has next to nothing. */
		e = EASING_NEW;
		e.held = 4096;
		assert_int_equal(easing_next_usec(&e, &look),
				 START + (cases[i].near_full ? EASING_QUICK_USEC : EASING_SLOW_USEC));
	}
}

static void test_near_full(void **state _unused_)
{
	assert_false(easing_is_near_full(85 * GIB, 100 * GIB));
	assert_true(easing_is_near_full(85 * GIB + 1, 100 * GIB));
	assert_true(easing_is_near_full(UINT64_MAX, UINT64_MAX));
	assert_false(easing_is_near_full(0, 0));
	assert_false(easing_is_near_full(0, C));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_look),         cmocka_unit_test(test_threshold),
		cmocka_unit_test(test_time),               cmocka_unit_test(test_further_drop),
		cmocka_unit_test(test_growth_while_eased), cmocka_unit_test(test_nothing_promised),
		cmocka_unit_test(test_sizes),              cmocka_unit_test(test_next),
		cmocka_unit_test(test_near_full),          cmocka_unit_test(test_again),
		cmocka_unit_test(test_again_ends),         cmocka_unit_test(test_evicted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
