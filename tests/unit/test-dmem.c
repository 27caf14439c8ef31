/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "dmem.h"

#define R0 "drm/0000:03:00.0/vram0"
#define R1 "drm/0000:0c:00.0/vram0"

static void test_limits(_unused_ void **state)
{
	static const char *const files[] = { "dmem.min", "dmem.low", "dmem.max" };
	static const char *const none[] = { "", "dmem", "dmem.", "dmem.current",
					    "memory.low", "dmem.low " };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		DmemLimit l = dmem_limit_from_file(files[i]);

		assert_int_equal(l, i);
		assert_string_equal(dmem_limit_to_file(l), files[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_int_equal(dmem_limit_from_file(none[i]), _DMEM_LIMIT_INVALID);
	assert_int_equal(dmem_limit_default(DMEM_MIN), 0);
	assert_int_equal(dmem_limit_default(DMEM_LOW), 0);
	assert_int_equal(dmem_limit_default(DMEM_MAX), DMEM_UNLIMITED);
}

static void test_parse(_unused_ void **state)
{
	static const struct {
		const char *text;
		int r;
		size_t n;
		uint64_t first;
	} cases[] = {
		{ "", 0, 0, 0 },
		{ R0 " 4096\n", 0, 1, 4096 },
		{ R0 " 4096", 0, 1, 4096 },
		{ R0 " max\n" R1 " 0\n", 0, 2, DMEM_UNLIMITED },
		{ R0 " 18446744073709551615\n", 0, 1, UINT64_MAX },
		{ "a 1\naa 2\naaa 3\n", 0, 3, 1 },
		{ "aaa 1\naa 2\na 3\n", 0, 3, 1 },
		{ R0 " 18446744073709551616\n", -EBADMSG },
		{ R0 "\n", -EBADMSG },
		{ R0 " \n", -EBADMSG },
		{ R0 "  1\n", -EBADMSG },
		{ R0 " 1 \n", -EBADMSG },
		{ R0 " 1 2\n", -EBADMSG },
		{ R0 "\t1\n", -EBADMSG },
		{ R0 " 1G\n", -EBADMSG },
		{ R0 " -1\n", -EBADMSG },
		{ R0 " Max\n", -EBADMSG },
		{ R0 " maxi\n", -EBADMSG },
		{ R0 " 000000000000000000000000001\n", -EBADMSG },
		{ " 1\n", -EBADMSG },
		{ "\n", -EBADMSG },
		{ R0 " 1\n\n", -EBADMSG },
		{ "dr\x7fm 1\n", -EBADMSG },
		{ "dr\xc3\xa4m 1\n", -EBADMSG },
		{ "dr\x01m 1\n", -EBADMSG },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_dmem_table DmemTable t = {};
		int r = dmem_parse(cases[i].text, &t);

		if (r != cases[i].r)
			fail_msg("\"%s\": %d instead of %d", cases[i].text, r, cases[i].r);
		assert_int_equal(t.n, cases[i].n);
		if (t.n > 0)
			assert_int_equal(t.entries[0].value, cases[i].first);
	}
}

static void test_parse_names(_unused_ void **state)
{
	auto_dmem_table DmemTable t = {};

	assert_int_equal(dmem_parse(R0 " 1\n" R1 " max", &t), 0);
	assert_string_equal(t.entries[0].region, R0);
	assert_string_equal(t.entries[1].region, R1);
	assert_int_equal(t.entries[1].value, DMEM_UNLIMITED);
	dmem_table_done(&t);
	assert_null(t.entries);
	assert_int_equal(t.n, 0);
}

/* After a hot-unplug and return with the old device still open; the kernel lists the old region first. */
static void test_parse_twice(_unused_ void **state)
{
	auto_dmem_table DmemTable t = {};

	assert_int_equal(dmem_parse(R0 " 7\n" R1 " 1\n" R0 " 0\n", &t), 0);
	assert_true(t.ambiguous);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.entries[0].value, 7);
	dmem_table_done(&t);
	assert_int_equal(dmem_parse(R0 " 7\n" R1 " 1\n", &t), 0);
	assert_false(t.ambiguous);
}

static void test_parse_limits(_unused_ void **state)
{
	for (unsigned lines = DMEM_REGIONS_MAX; lines <= DMEM_REGIONS_MAX + 1; lines++) {
		auto_dmem_table DmemTable t = {};
		char text[DMEM_REGIONS_MAX * 16 + 16], *p = text;

		for (unsigned i = 0; i < lines; i++)
			p += sprintf(p, "r%u %u\n", i, i);
		assert_int_equal(dmem_parse(text, &t), lines > DMEM_REGIONS_MAX ? -EBADMSG : 0);
		assert_int_equal(t.n, lines > DMEM_REGIONS_MAX ? 0 : lines);
	}
	for (unsigned len = DMEM_REGION_MAX - 1; len <= DMEM_REGION_MAX; len++) {
		auto_dmem_table DmemTable t = {};
		char text[DMEM_REGION_MAX + 8], line[DMEM_LINE_MAX];
		bool ok = len < DMEM_REGION_MAX;

		memset(text, 'x', len);
		strcpy(text + len, " 5\n");
		assert_int_equal(dmem_parse(text, &t), ok ? 0 : -EBADMSG);
		text[len] = '\0';
		assert_int_equal(dmem_format(line, text, UINT64_MAX - 1), ok ? 0 : -ENAMETOOLONG);
	}
}

static void test_find(_unused_ void **state)
{
	static const struct {
		const char *text, *region;
		int r;
		uint64_t value;
	} cases[] = {
		{ "drm/a/vram 1\ndrm/a/vram0 2\n", "drm/a/vram", 0, 1 },
		{ "drm/a/vram 1\ndrm/a/vram0 2\n", "drm/a/vram0", 0, 2 },
		{ "drm/a/vram0 2\ndrm/a/vram 1\n", "drm/a/vram", 0, 1 },
		{ "drm/a/vram0 2\ndrm/a/vram 1", "drm/a/vram", 0, 1 },
		{ "drm/a/vram0 max", "drm/a/vram0", 0, DMEM_UNLIMITED },
		{ "drm/a/vram0 2\n", "drm/a/vram", -ENXIO },
		{ "drm/a/vram 2\n", "drm/a/vram0", -ENXIO },
		{ "xdrm/a/vram 2\n", "drm/a/vram", -ENXIO },
		{ "b 1\n", "1", -ENXIO },
		{ "", "drm/a/vram", -ENXIO },
		{ "drm/a/vram", "drm/a/vram", -EBADMSG },
		{ "drm/a/vram \n", "drm/a/vram", -EBADMSG },
		{ "drm/a/vram x\n", "drm/a/vram", -EBADMSG },
		{ "broken\ndrm/a/vram 3\n", "drm/a/vram", 0, 3 },
		{ "drm/a/vram 3\nbroken", "drm/a/vram", 0, 3 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t v = 77;
		int r = dmem_find(cases[i].text, cases[i].region, &v);

		if (r != cases[i].r)
			fail_msg("\"%s\": %d instead of %d", cases[i].text, r, cases[i].r);
		assert_int_equal(v, r < 0 ? 77 : cases[i].value);
	}
}

static void test_format(_unused_ void **state)
{
	static const char *const bad[] = { "", " ", "a b", " a", "a ", "a\n", "\n", "a\tb",
					   "a\x01", "a\x7f", "\xc3\xa4" };
	char line[DMEM_LINE_MAX];

	assert_int_equal(dmem_format(line, R0, 4096), 0);
	assert_string_equal(line, R0 " 4096");
	assert_int_equal(dmem_format(line, R0, 0), 0);
	assert_string_equal(line, R0 " 0");
	assert_int_equal(dmem_format(line, R0, DMEM_UNLIMITED), 0);
	assert_string_equal(line, R0 " max");
	assert_int_equal(dmem_format(line, R0, UINT64_MAX - 1), 0);
	assert_string_equal(line, R0 " 18446744073709551614");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(dmem_format(line, bad[i], 1), -EINVAL);
}

static void test_find_events(_unused_ void **state)
{
	static const struct {
		const char *text;
		int r;
		DmemEvents events;
	} cases[] = {
		{ R0 " evictions=3 evicted_bytes=6291456 foreign_evictions=2\n", 0, { 3, 6291456, 2 } },
		{ R1 " evictions=9\n" R0 " evictions=1 evicted_bytes=2 foreign_evictions=3", 0, { 1, 2, 3 } },
		/* As the whole series prints it, in another order, with keys that nobody knows yet. */
		{ R0 " evictions=1 evicted_bytes=2 foreign_evictions=3 claim_failed=4 throttled_hard=5 throttled_soft=6\n",
		  0, { 1, 2, 3 } },
		{ R0 " foreign_evictions=3 x=y evictions_of=7 evicted_bytes=2 =\n", 0, { 0, 2, 3 } },
		{ R0 "\n", 0, { 0, 0, 0 } },
		{ R0 " evictions=18446744073709551615\n", 0, { UINT64_MAX, 0, 0 } },
		{ "", -ENXIO, { 0 } },
		{ "\n\n", -ENXIO, { 0 } },
		{ R1 " evictions=1\n", -ENXIO, { 0 } },
		{ R0 "x evictions=1\n", -ENXIO, { 0 } },
		{ "x\n" R1 " bad\n" R0 " evictions=1\n", 0, { 1, 0, 0 } },
		{ R0 " evictions=\n", -EBADMSG, { 0 } },
		{ R0 " evictions\n", -EBADMSG, { 0 } },
		{ R0 " evictions=-1\n", -EBADMSG, { 0 } },
		{ R0 " evictions=1x\n", -EBADMSG, { 0 } },
		{ R0 " evictions=18446744073709551616\n", -EBADMSG, { 0 } },
		{ R0 " evictions=000000000000000000000000000000001\n", -EBADMSG, { 0 } },
		{ R0 " 5\n", -EBADMSG, { 0 } },
		{ R0 "  evictions=1\n", -EBADMSG, { 0 } },
		{ R0 " evictions=1 \n", -EBADMSG, { 0 } },
		{ R0 "\tevictions=1\n", -EBADMSG, { 0 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		DmemEvents events = { 0 };

		if (dmem_find_events(cases[i].text, R0, &events) != cases[i].r ||
		    memcmp(&events, &cases[i].events, sizeof(events)) != 0)
			fail_msg("\"%s\": %" PRIu64 " %" PRIu64 " %" PRIu64, cases[i].text, events.evictions,
				 events.evicted_bytes, events.foreign_evictions);
	}
}

/* One look after another: what is taken. */
static void test_take_events(_unused_ void **state)
{
	static const struct {
		DmemEvents now;
		uint64_t n, bytes;
	} steps[] = {
		{ { 10, 1000, 5 }, 5, 500 },
		{ { 10, 1000, 5 }, 0, 0 },
		{ { 12, 1500, 7 }, 2, 285 }, /* of 1000 bytes in 7 buffers, 5 of which were its own */
		/* The region came back: all counts from there. */
		{ { 4, 400, 4 }, 4, 400 },
		/* Half counted: what is missing comes with the next. */
		{ { 5, 400, 4 }, 0, 0 },
		{ { 5, 500, 4 }, 0, 0 },
		{ { 5, 500, 5 }, 1, 100 },
		{ { 5, 600, 6 }, 0, 0 },
		{ { 6, 600, 6 }, 1, 100 },
		{ { 6, UINT64_MAX, 6 }, 0, 0 },
		{ { UINT64_MAX, UINT64_MAX, UINT64_MAX }, UINT64_MAX - 6, UINT64_MAX - 600 },
		{ { 0, 0, 0 }, 0, 0 },
	};
	DmemEvents seen = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		uint64_t bytes, n = dmem_events_take(&seen, &steps[i].now, &bytes);

		if (n != steps[i].n || bytes != steps[i].bytes)
			fail_msg("step %zu: %" PRIu64 " buffers, %" PRIu64 " bytes", i, n, bytes);
	}
}

static void test_pci(_unused_ void **state)
{
	static const struct {
		const char *region, *pci;
	} cases[] = {
		{ "drm/0000:03:00.0/vram0", "0000:03:00.0" },
		{ "drm/0000:c6:00.0/vram", "0000:c6:00.0" },
		{ "drm/10000:01:1f.7/vram0", "10000:01:1f.7" },
		{ "0000:03:00.0", "0000:03:00.0" },
		{ "drm//0000:03:00.0", "0000:03:00.0" },
		{ "drm/vram0", NULL },
		{ "", NULL },
		{ "/", NULL },
		{ "drm/000:03:00.0/vram", NULL },
		{ "drm/0000:03:00/vram", NULL },
		{ "drm/0000:03:00.0x/vram", NULL },
		{ "drm/x0000:03:00.0/vram", NULL },
		{ "drm/0000:03:00.00/vram", NULL },
		{ "drm/0000:g3:00.0/vram", NULL },
		{ "drm/0000000:03:00.0/vram", NULL },
		{ "drm/0000:", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char pci[DMEM_PCI_MAX] = "-";
		int r = dmem_region_pci(cases[i].region, pci);

		if (r != (cases[i].pci ? 0 : -ENXIO))
			fail_msg("\"%s\": %d", cases[i].region, r);
		assert_string_equal(pci, cases[i].pci ? cases[i].pci : "-");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits),      cmocka_unit_test(test_parse),
		cmocka_unit_test(test_parse_names), cmocka_unit_test(test_parse_limits),
		cmocka_unit_test(test_find),        cmocka_unit_test(test_format),
		cmocka_unit_test(test_pci),         cmocka_unit_test(test_parse_twice),
		cmocka_unit_test(test_find_events), cmocka_unit_test(test_take_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
