/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "parse.h"

#define UNTOUCHED UINT64_C(0x5a5a5a5a5a5a5a5a)

typedef struct Case {
	const char *text;
	int r;
	uint64_t value;
} Case;

static void check(const Case *cases, size_t n, int (*parse)(const char *, uint64_t *))
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v = UNTOUCHED;
		int r = parse(cases[i].text, &v);

		if (r != cases[i].r)
			fail_msg("\"%s\": %d instead of %d", cases[i].text, r, cases[i].r);
		if (v != (r < 0 ? UNTOUCHED : cases[i].value))
			fail_msg("\"%s\": value %ju", cases[i].text, (uintmax_t)v);
	}
}

static void test_u64(_unused_ void **state)
{
	static const Case cases[] = {
		{ "0", 0, 0 },
		{ "007", 0, 7 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE },
		{ "99999999999999999999999", -ERANGE },
		{ "", -EINVAL },
		{ " 1", -EINVAL },
		{ "1 ", -EINVAL },
		{ "1\n", -EINVAL },
		{ "-1", -EINVAL },
		{ "+1", -EINVAL },
		{ "0x10", -EINVAL },
		{ "1.5", -EINVAL },
		{ "max", -EINVAL },
	};

	check(cases, ARRAY_SIZE(cases), parse_u64);
}

static void test_u32(_unused_ void **state)
{
	uint32_t v = 7;

	assert_int_equal(parse_u32("4294967295", &v), 0);
	assert_int_equal(v, UINT32_MAX);
	v = 7;
	assert_int_equal(parse_u32("4294967296", &v), -ERANGE);
	assert_int_equal(parse_u32("99999999999999999999", &v), -ERANGE);
	assert_int_equal(parse_u32("1x", &v), -EINVAL);
	assert_int_equal(v, 7);
}

static void test_bool(_unused_ void **state)
{
	static const char *const yes[] = { "yes", "true", "on", "1" };
	static const char *const no[] = { "no", "false", "off", "0" };
	static const char *const bad[] = { "", "Yes", "y", "2", "yes ", "true\n" };
	bool v;

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		v = false;
		assert_int_equal(parse_bool(yes[i], &v), 0);
		assert_true(v);
	}
	for (size_t i = 0; i < ARRAY_SIZE(no); i++) {
		v = true;
		assert_int_equal(parse_bool(no[i], &v), 0);
		assert_false(v);
	}
	v = true;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parse_bool(bad[i], &v), -EINVAL);
	assert_true(v);
}

static void test_bytes(_unused_ void **state)
{
	static const Case cases[] = {
		{ "0", 0, 0 },
		{ "4096", 0, 4096 },
		{ "1K", 0, KIB },
		{ "512M", 0, 512 * MIB },
		{ "8G", 0, 8 * GIB },
		{ "2T", 0, 2048 * GIB },
		{ "max", 0, UINT64_MAX },
		{ "16777215T", 0, UINT64_C(16777215) << 40 },
		{ "16777216T", -ERANGE },
		{ "18446744073709551616", -ERANGE },
		{ "", -EINVAL },
		{ "M", -EINVAL },
		{ "1m", -EINVAL },
		{ "1MB", -EINVAL },
		{ "1 M", -EINVAL },
		{ "1.5G", -EINVAL },
		{ "-1K", -EINVAL },
		{ "Max", -EINVAL },
		{ "10%", -EINVAL },
	};

	check(cases, ARRAY_SIZE(cases), parse_bytes);
}

static void test_usec(_unused_ void **state)
{
	static const Case cases[] = {
		{ "0", 0, 0 },
		{ "2", 0, 2 * USEC_PER_SEC },
		{ "2s", 0, 2 * USEC_PER_SEC },
		{ "250ms", 0, 250 * USEC_PER_MSEC },
		{ "7us", 0, 7 },
		{ "1min", 0, 60 * USEC_PER_SEC },
		{ "1h", 0, 3600 * USEC_PER_SEC },
		{ "18446744073709s", 0, UINT64_C(18446744073709) * USEC_PER_SEC },
		{ "18446744073710s", -ERANGE },
		{ "", -EINVAL },
		{ "s", -EINVAL },
		{ "1m", -EINVAL },
		{ "1 s", -EINVAL },
		{ "1.5s", -EINVAL },
		{ "-1s", -EINVAL },
	};

	check(cases, ARRAY_SIZE(cases), parse_usec);
}

static void test_percent(_unused_ void **state)
{
	static const struct {
		const char *text;
		int r;
		unsigned value;
	} cases[] = {
		{ "0%", 0, 0 },      { "50%", 0, 50 },   { "100%", 0, 100 }, { "101%", -ERANGE },
		{ "50", -EINVAL },   { "%", -EINVAL },   { "5%%", -EINVAL }, { "-5%", -EINVAL },
		{ "5.5%", -EINVAL }, { "5 %", -EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned v = 12345;

		assert_int_equal(parse_percent(cases[i].text, &v), cases[i].r);
		assert_int_equal(v, cases[i].r < 0 ? 12345 : cases[i].value);
	}
}

static void test_size(_unused_ void **state)
{
	static const struct {
		const char *text;
		int r, kind;
		uint64_t value, resolved; /* of 8 GiB, else 1 GiB */
	} cases[] = {
		{ "512M", 0, SIZE_BYTES, 512 * MIB, 512 * MIB },
		{ "10%", 0, SIZE_PERCENT, 10, 8 * GIB / 10 },
		{ "100%", 0, SIZE_PERCENT, 100, 8 * GIB },
		{ "0", 0, SIZE_BYTES, 0, 0 },
		{ "max", 0, SIZE_BYTES, UINT64_MAX, 8 * GIB },
		{ "64G", 0, SIZE_BYTES, 64 * GIB, 8 * GIB },
		{ "101%", -ERANGE, SIZE_UNSET, 0, GIB },
		{ "", -EINVAL, SIZE_UNSET, 0, GIB },
		{ "lots", -EINVAL, SIZE_UNSET, 0, GIB },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		Size s = {};

		assert_int_equal(parse_size(cases[i].text, &s), cases[i].r);
		assert_int_equal(s.kind, cases[i].kind);
		assert_int_equal(s.value, cases[i].value);
		assert_int_equal(size_resolve(&s, 8 * GIB, GIB), cases[i].resolved);
	}
}

static void test_format_bytes(_unused_ void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1 KiB" },
		{ 1536, "1.5 KiB" },
		{ 8 * GIB, "8 GiB" },
		{ 7 * GIB + 512 * MIB, "7.5 GiB" },
		{ UINT64_MAX, "max" },
		{ UINT64_MAX - 1, "16.0 EiB" },
	};
	char buf[FORMAT_BYTES_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_ptr_equal(format_bytes(buf, cases[i].bytes), buf);
		assert_string_equal(buf, cases[i].text);
	}
}

static void test_arithmetic(_unused_ void **state)
{
	assert_int_equal(add_sat(1, 2), 3);
	assert_int_equal(add_sat(UINT64_MAX, 1), UINT64_MAX);
	assert_int_equal(percent_of(UINT64_MAX, 100), UINT64_MAX);
	assert_int_equal(percent_of(199, 50), 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),          cmocka_unit_test(test_u32),
		cmocka_unit_test(test_bool),         cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_usec),         cmocka_unit_test(test_percent),
		cmocka_unit_test(test_size),         cmocka_unit_test(test_format_bytes),
		cmocka_unit_test(test_arithmetic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
