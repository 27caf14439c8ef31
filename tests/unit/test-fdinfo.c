/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "fdinfo.h"
#include "remove-tree.h"

#define PDEV "0000:03:00.0"
#define HEAD(driver, id) "pos:\t0\nflags:\t02100002\ndrm-driver:\t" driver "\n" \
	"drm-client-id:\t" id "\ndrm-pdev:\t" PDEV "\n"

typedef struct Case {
	const char *what, *text;
	int r;
	uint64_t client;
	FdinfoSum sum;
} Case;

static const Case cases[] = {
	{ "amdgpu 6.13: evicted counts, not total - resident",
	  HEAD("amdgpu", "12")
	  "drm-total-cpu:\t0\ndrm-total-gtt:\t20 MiB\ndrm-total-vram:\t1 MiB\n"
	  "drm-resident-gtt:\t3 MiB\ndrm-resident-vram:\t900 KiB\ndrm-shared-vram:\t8 MiB\n"
	  "drm-memory-vram:\t900 KiB\ndrm-memory-gtt: \t3 MiB\ndrm-memory-cpu: \t5 KiB\n"
	  "amd-evicted-vram:\t7 KiB\namd-memory-visible-vram:\t1 KiB\namd-requested-vram:\t1 MiB\n",
	  1, 12, { 900 * KIB, 7 * KIB, 3 * MIB + 5 * KIB } },
	{ "amdgpu 6.1: legacy keys only",
	  HEAD("amdgpu", "3") "drm-memory-vram:\t64 KiB\ndrm-memory-gtt:\t1 KiB\n",
	  1, 3, { 64 * KIB, 0, KIB } },
	{ "xe: two VRAM regions, stolen is neither",
	  HEAD("xe", "9") "drm-total-system:\t5 KiB\ndrm-resident-system:\t4 KiB\n"
	  "drm-total-vram0:\t10 MiB\ndrm-resident-vram0:\t8 MiB\n"
	  "drm-total-vram1:\t10\ndrm-resident-vram1:\t4\n"
	  "drm-total-gtt:\t1\ndrm-resident-gtt:\t1\n"
	  "drm-total-stolen:\t9\ndrm-resident-stolen:\t9\n",
	  1, 9, { 8 * MIB + 4, 2 * MIB + 6, 4 * KIB + 1 } },
	{ "i915",
	  HEAD("i915", "1") "drm-total-local0:\t3 KiB\ndrm-resident-local0:\t1 KiB\n"
	  "drm-total-system0:\t9 KiB\ndrm-resident-system0:\t9 KiB\n",
	  1, 1, { KIB, 2 * KIB, 9 * KIB } },
	{ "vramsim",
	  HEAD("vramsim", "4") "drm-total-vram0:\t100 MiB\ndrm-resident-vram0:\t60 MiB\n"
	  "vramsim-evicted-vram0:\t40 MiB\n",
	  1, 4, { 60 * MIB, 40 * MIB, 0 } },
	{ "total without resident says nothing of spilled bytes",
	  HEAD("x", "5") "drm-total-vram:\t8 MiB\n", 1, 5, { 0, 0, 0 } },
	{ "resident zero is given: all of it is spilled",
	  HEAD("x", "5") "drm-total-vram:\t8 MiB\ndrm-resident-vram:\t0\n",
	  1, 5, { 0, 8 * MIB, 0 } },
	{ "resident over total is no underflow",
	  HEAD("x", "5") "drm-total-vram:\t1\ndrm-resident-vram:\t2\n", 1, 5, { 2, 0, 0 } },
	{ "resident wins over its legacy alias, in any order",
	  HEAD("x", "5") "drm-resident-vidmem:\t7\ndrm-memory-vidmem:\t5\n", 1, 5, { 7, 0, 0 } },
	{ "bad values are skipped",
	  HEAD("x", "5") "drm-resident-vram:\t1 GiB\ndrm-resident-vram0:\t-4\n"
	  "drm-resident-vram1:\t18446744073709551615 KiB\ndrm-resident-vram2:\t\n"
	  "drm-resident-vram3:\t1KiB\ndrm-resident-:\t5\ndrm-resident-vram4\n",
	  1, 5, { 0, 0, 0 } },
	{ "sums saturate",
	  HEAD("x", "5") "drm-resident-vram0:\t18446744073709551615\ndrm-resident-vram1:\t2\n",
	  1, 5, { UINT64_MAX, 0, 0 } },
	{ "no final newline",
	  HEAD("x", "5") "drm-resident-vram0:\t2 KiB", 1, 5, { 2 * KIB, 0, 0 } },
	{ "a plain file", "pos:\t0\nflags:\t02\nmnt_id:\t12\nino:\t7\n", 0 },
	{ "empty", "", 0 },
	{ "no client id", "drm-driver:\tamdgpu\ndrm-pdev:\t" PDEV "\n", 0 },
	{ "bad client id", HEAD("amdgpu", "x1"), 0 },
	{ "no driver", "drm-client-id:\t1\ndrm-pdev:\t" PDEV "\n", 0 },
	{ "another device",
	  "drm-driver:\tamdgpu\ndrm-client-id:\t1\ndrm-pdev:\t0000:03:00.1\n", 0 },
	{ "no device", "drm-driver:\tpanfrost\ndrm-client-id:\t1\n", 0 },
};

static void test_parse(_unused_ void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const Case *c = &cases[i];
		FdinfoSum sum = {};
		uint64_t client = 0;
		int r = fdinfo_parse(c->text, PDEV, &client, &sum);

		if (r != c->r || client != c->client || sum.vram != c->sum.vram ||
		    sum.spilled != c->sum.spilled || sum.other != c->sum.other)
			fail_msg("%s: %d, client %ju, vram %ju, spilled %ju, other %ju", c->what, r,
				 (uintmax_t)client, (uintmax_t)sum.vram, (uintmax_t)sum.spilled,
				 (uintmax_t)sum.other);
	}
}

static void test_any_device(_unused_ void **state)
{
	static const char text[] = "drm-driver:\tpanfrost\ndrm-client-id:\t8\n";
	FdinfoSum sum;
	uint64_t client;

	assert_int_equal(fdinfo_parse(text, NULL, &client, &sum), 1);
	assert_int_equal(client, 8);
	assert_int_equal(fdinfo_parse("pos:\t0\n", NULL, &client, &sum), 0);
}

static void test_many_regions(_unused_ void **state)
{
	char text[4096], *p = text;
	FdinfoSum sum;
	uint64_t client;

	p += sprintf(p, "%s", HEAD("x", "5"));
	for (unsigned i = 0; i < 40; i++)
		p += sprintf(p, "drm-resident-vram%u:\t1\n", i);
	/* More regions than any driver has are cut off, not written over the end. */
	assert_int_equal(fdinfo_parse(text, PDEV, &client, &sum), 1);
	assert_int_equal(sum.vram, 16);
}

static void put(const char *root, unsigned pid, unsigned fd, const char *text)
{
	char path[128];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%u", root, pid);
	(void)mkdir(path, 0755);
	(void)snprintf(path, sizeof(path), "%s/%u/fdinfo", root, pid);
	(void)mkdir(path, 0755);
	(void)snprintf(path, sizeof(path), "%s/%u/fdinfo/%u", root, pid, fd);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void test_sum(_unused_ void **state)
{
	static const pid_t pids[] = { 10, 11, 12, 99 };
	char root[] = "/tmp/test-fdinfo-XXXXXX", path[128];
	Roots roots = { .proc = root, .relocated = true };
	FdinfoSum sum = { 1, 2, 3 };

	assert_non_null(mkdtemp(root));
	put(root, 10, 0, "pos:\t0\n");
	put(root, 10, 3, HEAD("xe", "1") "drm-total-vram0:\t5\ndrm-resident-vram0:\t4\n");
	/* The same again after dup(2), and in another process after fork(2). */
	put(root, 10, 4, HEAD("xe", "1") "drm-total-vram0:\t5\ndrm-resident-vram0:\t4\n");
	put(root, 10, 5, HEAD("xe", "2") "drm-resident-vram0:\t10\n");
	put(root, 11, 3, HEAD("xe", "1") "drm-total-vram0:\t5\ndrm-resident-vram0:\t4\n");
	put(root, 11, 4, "drm-driver:\txe\ndrm-client-id:\t1\ndrm-pdev:\t0000:0c:00.0\n"
			 "drm-resident-vram0:\t100\ndrm-resident-gtt:\t7\n");
	(void)snprintf(path, sizeof(path), "%s/12", root); /* a process without a readable fdinfo */
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/10/fdinfo/6", root); /* and an unreadable file */
	assert_int_equal(mkdir(path, 0755), 0);

	assert_int_equal(fdinfo_sum(&roots, pids, ARRAY_SIZE(pids), PDEV, &sum), 0);
	assert_int_equal(sum.vram, 14);
	assert_int_equal(sum.spilled, 1);
	assert_int_equal(sum.other, 0);
	/* The same id on another device is another client. */
	assert_int_equal(fdinfo_sum(&roots, pids, ARRAY_SIZE(pids), NULL, &sum), 0);
	assert_int_equal(sum.vram, 114);
	assert_int_equal(sum.other, 7);
	assert_int_equal(fdinfo_sum(&roots, NULL, 0, NULL, &sum), 0);
	assert_int_equal(sum.vram, 0);
	remove_tree(root);
}

static void test_own_process(_unused_ void **state)
{
	pid_t self = getpid();
	Roots roots = { .proc = (char *)"/proc" };
	FdinfoSum sum = { 1, 2, 3 };

	/* This program has no DRM device open. */
	assert_int_equal(fdinfo_sum(&roots, &self, 1, NULL, &sum), 0);
	assert_int_equal(sum.vram | sum.spilled | sum.other, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),        cmocka_unit_test(test_any_device),
		cmocka_unit_test(test_many_regions), cmocka_unit_test(test_sum),
		cmocka_unit_test(test_own_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
