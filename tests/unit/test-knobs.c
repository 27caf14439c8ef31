/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "module.h"
#include "remove-tree.h"

typedef struct Machine {
	char dir[32];
	Roots roots;
} Machine;

static int setup(void **state)
{
	Machine *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	(void)strcpy(m->dir, "/tmp/test-knobs-XXXXXX");
	assert_non_null(mkdtemp(m->dir));
	m->roots = (Roots){ .etc = m->dir, .relocated = true };
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	Machine *m = *state;

	remove_tree(m->dir);
	free(m);
	return 0;
}

static void test_names(_unused_ void **state)
{
	for (Knob k = 0; k < _KNOB_MAX; k++) {
		assert_int_equal(knob_from_name(knob_infos[k].name), k);
		/* What is needed is set before it. */
		assert_true(knob_infos[k].needs == _KNOB_MAX || knob_infos[k].needs < k);
	}
	assert_int_equal(knob_from_name("throttlehard"), _KNOB_MAX);
	assert_int_equal(knob_from_name(""), _KNOB_MAX);
}

static void test_parse(_unused_ void **state)
{
	static const struct {
		Knob knob;
		const char *text;
		int r;
		uint32_t value;
	} cases[] = {
		{ KNOB_THROTTLE_HARD, "50ms", 0, 50 },
		{ KNOB_THROTTLE_HARD, "0", 0, 0 },
		{ KNOB_THROTTLE_HARD, "1s", 0, 1000 },
		{ KNOB_THROTTLE_HARD, "1001ms", -ERANGE },
		{ KNOB_THROTTLE_HARD, "50", -ERANGE }, /* seconds */
		{ KNOB_THROTTLE_HARD, "1500us", -EINVAL },
		{ KNOB_THROTTLE_HARD, "9999999999h", -ERANGE },
		{ KNOB_THROTTLE_HARD, "", -EINVAL },
		{ KNOB_THROTTLE_HARD, "-1ms", -EINVAL },
		{ KNOB_THROTTLE_HARD, "yes", -EINVAL },
		{ KNOB_THROTTLE_SOFT, "1min", 0, 60000 },
		{ KNOB_THROTTLE_LEVELS, "8", 0, 8 },
		{ KNOB_THROTTLE_LEVELS, "9", -ERANGE },
		{ KNOB_THROTTLE_LEVELS, "1ms", -EINVAL },
		{ KNOB_CONTIG_WINDOW, "yes", 0, 1 },
		{ KNOB_CONTIG_WINDOW, "off", 0, 0 },
		{ KNOB_CONTIG_WINDOW, "1", 0, 1 },
		{ KNOB_CONTIG_WINDOW, "2", -EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[KNOB_TEXT_MAX];
		uint32_t value = 77, again;

		assert_int_equal(knob_parse(cases[i].knob, cases[i].text, &value), cases[i].r);
		if (cases[i].r < 0) {
			assert_int_equal(value, 77);
			continue;
		}
		assert_int_equal(value, cases[i].value);
		knob_format(text, knob_infos[cases[i].knob].kind, value);
		assert_int_equal(knob_parse(cases[i].knob, text, &again), 0);
		assert_int_equal(again, value);
	}
}

static void test_format(_unused_ void **state)
{
	char text[KNOB_TEXT_MAX];

	assert_string_equal(knob_format(text, KNOB_MSEC, 0), "0ms");
	assert_string_equal(knob_format(text, KNOB_MSEC, 2000), "2s");
	assert_string_equal(knob_format(text, KNOB_MSEC, UINT32_MAX), "4294967295ms");
	assert_string_equal(knob_format(text, KNOB_COUNT, 3), "3");
	assert_string_equal(knob_format(text, KNOB_SWITCH, 0), "no");
	assert_string_equal(knob_format(text, KNOB_SWITCH, 1), "yes");
}

static void test_read(void **state)
{
	static const struct {
		Knob knob;
		const char *text;
		int r;
		uint32_t value;
	} cases[] = {
		{ KNOB_THROTTLE_HARD, "50\n", 0, 50 },
		{ KNOB_THROTTLE_HARD, "4294967295\n", 0, UINT32_MAX },
		{ KNOB_THROTTLE_HARD, "4294967296\n", -EBADMSG },
		{ KNOB_THROTTLE_HARD, "-1\n", -EBADMSG },
		{ KNOB_THROTTLE_HARD, "", -EBADMSG },
		{ KNOB_THROTTLE_HARD, "Y\n", -EBADMSG },
		{ KNOB_EVICT_PRIORITY, "Y\n", 0, 1 },
		{ KNOB_EVICT_PRIORITY, "N\n", 0, 0 },
		{ KNOB_EVICT_PRIORITY, "2\n", -EBADMSG },
		{ KNOB_EVICT_PRIORITY, "Yes\n", -EBADMSG },
		{ KNOB_THROTTLE_HARD,
		  "00000000000000000000000000000000000000000000000000000000000000000000001\n", -EBADMSG },
	};
	const Machine *m = *state;
	uint32_t value = 77;
	uint64_t inode = 0;

	assert_int_equal(knob_read(&m->roots, KNOB_THROTTLE_HARD, &value, &inode), -ENOENT);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		put_parameter(&m->roots, cases[i].knob, cases[i].text);
		inode = 0;
		assert_int_equal(knob_read(&m->roots, cases[i].knob, &value, &inode), cases[i].r);
		if (cases[i].r == 0)
			assert_int_equal(value, cases[i].value);
		assert_int_equal(inode > 0, cases[i].r == 0);
	}
}

static void test_write(void **state)
{
	const Machine *m = *state;
	uint32_t value;

	assert_int_equal(knob_write(&m->roots, KNOB_THROTTLE_SOFT, 1), -ENOENT);
	put_parameter(&m->roots, KNOB_THROTTLE_SOFT, "0\n");
	assert_int_equal(knob_write(&m->roots, KNOB_THROTTLE_SOFT, 2000), 0);
	assert_int_equal(knob_read(&m->roots, KNOB_THROTTLE_SOFT, &value, NULL), 0);
	assert_int_equal(value, 2000);
}

static void test_throttle_active(void **state)
{
	const Machine *m = *state;

	assert_false(knobs_throttle_active(&m->roots));
	put_parameter(&m->roots, KNOB_THROTTLE_HARD, "0\n");
	assert_false(knobs_throttle_active(&m->roots));
	put_parameter(&m->roots, KNOB_THROTTLE_HARD, "50\n");
	assert_true(knobs_throttle_active(&m->roots));
	put_parameter(&m->roots, KNOB_THROTTLE_HARD, "0\n");
	put_parameter(&m->roots, KNOB_THROTTLE_SOFT, "2000\n");
	assert_true(knobs_throttle_active(&m->roots));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_format),
		cmocka_unit_test_setup_teardown(test_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_write, setup, teardown),
		cmocka_unit_test_setup_teardown(test_throttle_active, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
