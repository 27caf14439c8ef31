/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dmem.h"
#include "room.h"

static uint64_t freed(const RoomUnit *units, size_t n, uint64_t level)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t ceiling = room_ceiling(&units[i], level);

		if (ceiling != DMEM_UNLIMITED)
			sum += units[i].use - ceiling;
	}
	return sum;
}

static void test_big_ones_first(void **state _unused_)
{
	const RoomUnit units[] = { { .use = 1000 }, { .use = 300 }, { .use = 100 } };

	assert_int_equal(room_level(units, 3, 500), 500);
	assert_int_equal(room_ceiling(&units[0], 500), 500);
	assert_true(room_ceiling(&units[1], 500) == DMEM_UNLIMITED);
	assert_int_equal(room_level(units, 3, 900), 200);
	assert_int_equal(room_level(units, 3, 1400), 0);
	assert_int_equal(room_ceiling(&units[2], 0), 0);
}

static void test_not_enough(void **state _unused_)
{
	const RoomUnit units[] = { { .use = 1000, .keep = 400 }, { .use = 300, .keep = 500 } };

	assert_int_equal(room_level(units, 2, UINT64_MAX), 0);
	assert_int_equal(room_ceiling(&units[0], 0), 400);
	/* Below what it may keep it is left alone. */
	assert_true(room_ceiling(&units[1], 0) == DMEM_UNLIMITED);
	assert_int_equal(room_level(NULL, 0, 1), 0);
}

static void test_what_one_keeps_another_gives(void **state _unused_)
{
	const RoomUnit units[] = { { .use = 1000, .keep = 900 }, { .use = 1000 } };
	uint64_t level = room_level(units, 2, 600);

	assert_int_equal(level, 500);
	assert_int_equal(room_ceiling(&units[0], level), 900);
	assert_int_equal(room_ceiling(&units[1], level), 500);
}

static void test_no_overflow(void **state _unused_)
{
	const RoomUnit units[] = { { .use = UINT64_MAX }, { .use = UINT64_MAX, .keep = UINT64_MAX } };

	assert_true(room_level(units, 2, 1) == UINT64_MAX - 1);
	assert_int_equal(room_level(units, 2, UINT64_MAX), 0);
}

/* Enough is freed, and one byte higher would not be. */
static void test_any(void **state _unused_)
{
	uint32_t seed = 1;

	for (unsigned round = 0; round < 2000; round++) {
		RoomUnit units[8];
		uint64_t need, level;

		for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
			seed = seed * 1664525 + 1013904223;
			units[i] = (RoomUnit){ seed >> 16, round % 2 ? seed >> 24 : 0 };
		}
		seed = seed * 1664525 + 1013904223;
		need = 1 + (seed >> 15);
		level = room_level(units, ARRAY_SIZE(units), need);
		if (level > 0)
			assert_true(freed(units, ARRAY_SIZE(units), level) >= need);
		assert_true(freed(units, ARRAY_SIZE(units), level + 1) < need);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_big_ones_first),
		cmocka_unit_test(test_not_enough),
		cmocka_unit_test(test_what_one_keeps_another_gives),
		cmocka_unit_test(test_no_overflow),
		cmocka_unit_test(test_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
