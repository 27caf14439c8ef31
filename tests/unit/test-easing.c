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
} Step;

static void play(const char *name, const Step *steps, size_t n)
{
	Easing e = EASING_NEW;

	for (size_t i = 0; i < n; i++) {
		EasingLook look = { START + steps[i].msec * USEC_PER_MSEC, steps[i].use, C, LOW };
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
	EasingLook look = { 0, 0, 0, 0 };

	assert_int_equal(easing_look(&none, &look, DURATION), EASING_SAME);
	look = (EasingLook){ UINT64_MAX - 1, UINT64_MAX, UINT64_MAX, UINT64_MAX };
	assert_int_equal(easing_look(&huge, &look, DURATION), EASING_SAME);
	look.use = 0;
	assert_int_equal(easing_look(&huge, &look, DURATION), EASING_BEGUN);
	assert_int_equal(huge.until_usec, UINT64_MAX);
	assert_int_equal(easing_next_usec(&huge, &look, false), UINT64_MAX);
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
		EasingLook look = { START, cases[i].use, C, LOW };
		Easing e = EASING_NEW;

		e.use = cases[i].use;
		if (cases[i].eased_for) {
			e.low = 5 * GIB;
			e.until_usec = START + cases[i].eased_for;
		}
		assert_int_equal(easing_next_usec(&e, &look, cases[i].near_full), START + cases[i].wait);
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
		cmocka_unit_test(test_near_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
