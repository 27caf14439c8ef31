/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "journal.h"

#define BOOT "0123456789abcdef0123456789abcdef"
#define HEAD "vramd-journal 1 " BOOT "\n"
#define REGION "drm/0000:03:00.0/vram0"

static Journal memory_journal(void)
{
	return (Journal) { .dir_fd = -EBADF, .file_fd = -EBADF, .boot_id = BOOT };
}

static Record *add_value(Journal *j, const char *path, DmemLimit limit, uint64_t ours)
{
	Record *r;

	assert_int_equal(journal_add(j, RECORD_VALUE, path, REGION, limit, &r), 0);
	r->inode = 7;
	r->ours = ours;
	return r;
}

static void test_parse(void **state _unused_)
{
	static const struct {
		const char *text;
		size_t n;
		unsigned bad;
	} cases[] = {
		{ "", 0, 1 },
		{ "vramd-journal 1 " BOOT, 0, 1 },
		{ "vramd-journal 2 " BOOT "\n", 0, 1 },
		{ HEAD, 0, 0 },
		{ "vramd-journal 1 ffffffffffffffffffffffffffffffff\ndmem\t/a\t1\n", 0, 0 },
		{ HEAD "dmem\t/a\t1\n", 1, 0 },
		{ HEAD "dmem\t/\t1\n", 1, 0 },
		{ HEAD "dmem\t/a\t1", 0, 1 },
		{ HEAD "dmem\t/a\t1\t\n", 0, 1 },
		{ HEAD "dmem\t/a\n", 0, 1 },
		{ HEAD "dmem\ta\t1\n", 0, 1 },
		{ HEAD "dmem\t/a/../b\t1\n", 0, 1 },
		{ HEAD "dmem\t/a\t-1\n", 0, 1 },
		{ HEAD "dmem\t/a\t1\ndmem\t/a\t2\n", 1, 0 },
		{ HEAD "\n", 0, 1 },
		{ HEAD "what\t/a\t1\n", 0, 1 },
		{ HEAD "owner\t/a\t1\t1000\t1000\t0644\n", 1, 0 },
		{ HEAD "owner\t/a\t1\t1000\t1000\t0888\n", 0, 1 },
		{ HEAD "owner\t/a\t1\t1000\t1000\t00644\n", 0, 1 },
		{ HEAD "owner\t/a\t1\t1000\t1000\t\n", 0, 1 },
		{ HEAD "owner\t/a\t1\t4294967295\t1000\t0644\n", 0, 1 },
		{ HEAD "value\t/a\t1\t" REGION "\tdmem.low\t0\t5\t4\n", 1, 0 },
		{ HEAD "value\t/a\t1\t" REGION "\tdmem.low\t0\t5\n", 0, 1 },
		{ HEAD "value\t/a\t1\t" REGION "\tdmem.low\t0\t5\t4\t3\n", 0, 1 },
		{ HEAD "value\t/a\t1\t" REGION "\tdmem.peak\t0\t5\t4\n", 0, 1 },
		{ HEAD "value\t/a\t1\ttwo words\tdmem.low\t0\t5\t4\n", 0, 1 },
		{ HEAD "value\t/a\t1\t\tdmem.low\t0\t5\t4\n", 0, 1 },
		{ HEAD "value\t/a\t1\t" REGION "\tdmem.low\t0\t99999999999999999999\t4\n", 0, 1 },
		{ HEAD "knob\tttm/throttle_hard_ms\t9\t0\t50\t0\n", 0, 0 },
		{ HEAD "knob\tttm/throttle_hard_ms\t9\t0\t50\n", 0, 1 },
		{ HEAD "knob\tttm/throttle_hard_ms\t9\t0\t50\t0\t0\n", 0, 1 },
		{ HEAD "knob\tttm/throttle_hard_m\t9\t0\t50\t0\n", 0, 1 },
		{ HEAD "knob\tttm.throttle_hard_ms\t9\t0\t50\t0\n", 0, 1 },
		{ HEAD "knob\t/../../etc/passwd\t9\t0\t50\t0\n", 0, 1 },
		{ HEAD "knob\tttm/throttle_hard_ms\t9\t0\t4294967296\t0\n", 0, 1 },
		{ HEAD "knob\tttm/throttle_hard_ms\t9\t0\t50\t0", 0, 1 },
		{ HEAD "knob\n", 0, 1 },
		{ HEAD "junk\ndmem\t/a\t1\njunk\ndmem\t/b\t1\ntail", 2, 3 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		Journal j = memory_journal();
		unsigned bad = 77;

		print_message("case %zu\n", i);
		assert_int_equal(journal_parse(&j, cases[i].text, &bad), 0);
		assert_int_equal(bad, cases[i].bad);
		assert_int_equal(j.n, cases[i].n);
		journal_done(&j);
	}
}

static void test_round_trip(void **state _unused_)
{
	static const char text[] = HEAD
		"dmem\t/\t1\n"
		"value\t/a b\t2\t" REGION "\tdmem.min\t1\t2\t3\n"
		"value\t/a b\t2\t" REGION "\tdmem.max\t18446744073709551615\t0\t5\n"
		"owner\t/a b\t2\t1000\t1001\t0640\n"
		"value\t/a b/\\x2d\t18446744073709551615\tr\tdmem.low\t0\t0\t0\n";
	Journal j = memory_journal();
	auto_free char *out = NULL;
	const Record *r;
	unsigned bad;
	size_t size;

	assert_int_equal(journal_parse(&j, text, &bad), 0);
	assert_int_equal(bad, 0);
	r = journal_find(&j, RECORD_VALUE, "/a b", REGION, DMEM_MAX);
	assert_non_null(r);
	assert_int_equal(r->inode, 2);
	assert_true(r->old == DMEM_UNLIMITED && r->ours == 0 && r->ours_before == 5);
	r = journal_find(&j, RECORD_OWNER, "/a b", NULL, 0);
	assert_non_null(r);
	assert_true(r->owner.uid == 1000 && r->owner.gid == 1001 && r->owner.mode == 0640);
	assert_int_equal(journal_format(&j, &out, &size), 0);
	assert_int_equal(size, strlen(text));
	assert_string_equal(out, text);
	journal_done(&j);
}

static void test_knobs(void **state _unused_)
{
	static const char text[] = HEAD "knob\tttm/throttle_hard_ms\t9\t0\t50\t0\n"
					"knob\tamdgpu/gfxoff_delay_ms\t8\t100\t200\t150\n"
					"knob\tttm/throttle_hard_ms\t10\t1\t60\t50\n";
	_cleanup_(journal_done) Journal a = memory_journal();
	auto_free char *printed = NULL;
	unsigned bad;
	size_t n;

	assert_int_equal(journal_parse(&a, text, &bad), 0);
	assert_int_equal(bad, 0);
	assert_true(a.knobs[KNOB_THROTTLE_HARD].used);
	assert_int_equal(a.knobs[KNOB_THROTTLE_HARD].inode, 10);
	assert_int_equal(a.knobs[KNOB_THROTTLE_HARD].old, 1);
	assert_int_equal(a.knobs[KNOB_THROTTLE_HARD].ours, 60);
	assert_int_equal(a.knobs[KNOB_THROTTLE_HARD].ours_before, 50);
	assert_false(a.knobs[KNOB_THROTTLE_SOFT].used);
	assert_int_equal(a.knobs[KNOB_GFXOFF_DELAY].old, 100);
	journal_set_knob(&a, KNOB_THROTTLE_HARD, (KnobRecord){ 0 });
	assert_int_equal(journal_format(&a, &printed, &n), 0);
	assert_string_equal(printed, HEAD "knob\tamdgpu/gfxoff_delay_ms\t8\t100\t200\t150\n");
}

static void test_table(void **state _unused_)
{
	static const char *const paths[] = { "/b", "/a/c", "/", "/a-x", "/a", "/a/b" };
	static const char *const sorted[] = { "/", "/a", "/a-x", "/a/b", "/a/c", "/b" };
	Journal j = memory_journal();
	Record *r;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		add_value(&j, paths[i], DMEM_LOW, i);
		add_value(&j, paths[i], DMEM_MIN, i);
	}
	assert_int_equal(j.n, 12);
	for (size_t i = 0; i < j.n; i++)
		assert_string_equal(j.records[i]->path, sorted[i / 2]);
	assert_int_equal(journal_first(&j, "/a"), 2);
	assert_int_equal(journal_first(&j, "/zzz"), 12);
	assert_int_equal(journal_add(&j, RECORD_VALUE, "/a", REGION, DMEM_LOW, &r), -EEXIST);
	assert_int_equal(journal_add(&j, RECORD_DMEM, "/a\tb", NULL, 0, &r), -EINVAL);
	assert_int_equal(journal_add(&j, RECORD_VALUE, "/a", "a b", DMEM_LOW, &r), -EINVAL);
	r = journal_find(&j, RECORD_VALUE, "/a-x", REGION, DMEM_MIN);
	assert_non_null(r);
	journal_remove(&j, r);
	assert_null(journal_find(&j, RECORD_VALUE, "/a-x", REGION, DMEM_MIN));
	assert_non_null(journal_find(&j, RECORD_VALUE, "/a-x", REGION, DMEM_LOW));
	assert_null(journal_find(&j, RECORD_OWNER, "/a", NULL, 0));
	assert_int_equal(j.n, 11);
	journal_done(&j);
}

static void test_limit(void **state _unused_)
{
	Journal j = memory_journal();
	Record *r;

	for (unsigned i = 0; i < JOURNAL_RECORDS_MAX; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/%05u", i);
		assert_int_equal(journal_add(&j, RECORD_DMEM, path, NULL, 0, &r), 0);
	}
	assert_int_equal(journal_add(&j, RECORD_DMEM, "/x", NULL, 0, &r), -ENOSPC);
	journal_done(&j);
}

/* --- Files ----------------------------------------------------------------------------------- */

static int setup_dir(void **state)
{
	char *dir = strdup("/tmp/test-journal-XXXXXX");

	*state = mkdtemp(dir);
	return *state ? 0 : -1;
}

static int teardown_dir(void **state)
{
	auto_free char *dir = *state, *file = NULL, *sub = NULL;

	if (asprintf(&file, "%s/run/" JOURNAL_FILE, dir) < 0 || asprintf(&sub, "%s/run", dir) < 0)
		return -1;
	(void)unlink(file);
	(void)rmdir(sub);
	return rmdir(dir);
}

static void open_in(const char *dir, Journal *ret, unsigned expect_bad)
{
	const Roots roots = { .proc = (char *)"/proc" };
	auto_free char *run = NULL;
	unsigned bad = 77;

	assert_true(asprintf(&run, "%s/run", dir) > 0);
	assert_int_equal(journal_open(&roots, run, ret, &bad), 0);
	assert_int_equal(bad, expect_bad);
}

static void replace_text(const Journal *j, const char *text)
{
	assert_int_equal(write_atomic_at(j->dir_fd, JOURNAL_FILE, text, strlen(text), 0600, NULL), 0);
}

static void test_file(void **state)
{
	struct stat st;
	Journal j;

	open_in(*state, &j, 0);
	assert_int_equal(fstat(j.dir_fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	add_value(&j, "/a", DMEM_LOW, 42);
	assert_true(j.dirty);
	assert_int_equal(journal_sync(&j), 0);
	assert_false(j.dirty);
	assert_int_equal(fstatat(j.dir_fd, JOURNAL_FILE, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);

	journal_done(&j);
	open_in(*state, &j, 0);
	assert_false(j.dirty);
	assert_int_equal(j.n, 1);
	assert_int_equal(j.records[0]->ours, 42);
	journal_remove(&j, j.records[0]);
	assert_int_equal(journal_sync(&j), 0);
	assert_int_equal(fstatat(j.dir_fd, JOURNAL_FILE, &st, 0), -1);
	assert_int_equal(errno, ENOENT);
	journal_done(&j);
}

static uint64_t file_size(const Journal *j)
{
	struct stat st;

	assert_int_equal(fstatat(j->dir_fd, JOURNAL_FILE, &st, 0), 0);
	return (uint64_t)st.st_size;
}

static void test_append(void **state)
{
	uint64_t one, both;
	Record *a, *b;
	Journal j;

	open_in(*state, &j, 0);
	a = add_value(&j, "/a", DMEM_LOW, 1);
	assert_int_equal(journal_append(&j), 0); /* the first one makes the file */
	one = file_size(&j);
	b = add_value(&j, "/b", DMEM_LOW, 2);
	assert_int_equal(journal_append(&j), 0);
	both = file_size(&j);
	assert_true(both > one);
	assert_int_equal(journal_append(&j), 0);
	assert_int_equal(file_size(&j), both);
	a->ours = 3;
	journal_touch(&j, a);
	assert_int_equal(journal_append(&j), 0);
	assert_true(file_size(&j) > both);
	/* What goes is not worth a line: nothing waits for it. */
	journal_remove(&j, b);
	assert_int_equal(journal_append(&j), 0);

	journal_done(&j);
	open_in(*state, &j, 0);
	assert_int_equal(j.n, 2);
	assert_int_equal(j.records[0]->ours, 3);
	journal_remove(&j, j.records[1]);
	assert_int_equal(journal_sync(&j), 0);
	assert_int_equal(file_size(&j), one);
	journal_done(&j);
}

/* It is replaced where it cannot be appended to. */
static void test_append_fails(void **state)
{
	Journal j;
	int fd;

	open_in(*state, &j, 0);
	add_value(&j, "/a", DMEM_LOW, 1);
	assert_int_equal(journal_append(&j), 0);
	fd = openat(j.dir_fd, JOURNAL_FILE, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close_fd(j.file_fd);
	j.file_fd = fd;
	add_value(&j, "/b", DMEM_LOW, 2);
	assert_int_equal(journal_append(&j), 0);
	journal_done(&j);
	open_in(*state, &j, 0);
	assert_int_equal(j.n, 2);
	journal_done(&j);
}

/* Two at work in one place would undo each other's work. */
static void test_locked(void **state)
{
	const Roots roots = { .proc = (char *)"/proc" };
	auto_free char *run = NULL;
	Journal j, second;
	unsigned bad;

	open_in(*state, &j, 0);
	assert_true(asprintf(&run, "%s/run", (char *)*state) > 0);
	assert_int_equal(journal_open(&roots, run, &second, &bad), -EBUSY);
	journal_done(&j);
	open_in(*state, &j, 0);
	journal_done(&j);
}

static void test_other_boot(void **state)
{
	struct stat st;
	Journal j;

	open_in(*state, &j, 0);
	replace_text(&j, HEAD "dmem\t/a\t1\n");
	journal_done(&j);
	open_in(*state, &j, 0);
	assert_int_equal(j.n, 0);
	assert_int_equal(journal_sync(&j), 0);
	assert_int_equal(fstatat(j.dir_fd, JOURNAL_FILE, &st, 0), -1);
	journal_done(&j);
}

static void test_damaged_file(void **state)
{
	auto_free char *text = NULL;
	Journal j;

	open_in(*state, &j, 0);
	assert_true(asprintf(&text, "vramd-journal 1 %s\ndmem\t/a\t1\ndmem\t/b", j.boot_id) > 0);
	replace_text(&j, text);
	journal_done(&j);
	open_in(*state, &j, 1);
	assert_int_equal(j.n, 1);

	/* a zero byte hides what follows */
	assert_int_equal(write_atomic_at(j.dir_fd, JOURNAL_FILE, "vramd\0x", 7, 0600, NULL), 0);
	journal_done(&j);
	open_in(*state, &j, 2);
	journal_done(&j);
}

static void test_sync_fails(void **state)
{
	auto_free char *run = NULL;
	Journal j;

	open_in(*state, &j, 0);
	assert_true(asprintf(&run, "%s/run", (char *)*state) > 0);
	assert_int_equal(rmdir(run), 0);
	add_value(&j, "/a", DMEM_LOW, 42);
	assert_int_equal(journal_append(&j), -ENOENT);
	assert_int_equal(journal_sync(&j), -ENOENT);
	assert_true(j.dirty);
	journal_done(&j);
}

static void test_memory_only(void **state _unused_)
{
	const Roots roots = { .proc = (char *)"/proc" }, elsewhere = { .proc = (char *)"/nowhere" },
			relocated = { .proc = (char *)"/nowhere", .relocated = true };
	unsigned bad;
	Journal j;

	assert_int_equal(journal_open(&roots, NULL, &j, &bad), 0);
	assert_int_equal(j.dir_fd, -EBADF);
	assert_int_equal(strlen(j.boot_id), 32);
	add_value(&j, "/a", DMEM_LOW, 42);
	assert_int_equal(journal_sync(&j), 0);
	journal_done(&j);
	assert_int_equal(journal_open(&elsewhere, NULL, &j, &bad), -ENOENT);
	assert_int_equal(journal_open(&relocated, NULL, &j, &bad), 0);
	journal_done(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_knobs),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_memory_only),
		cmocka_unit_test_setup_teardown(test_file, setup_dir, teardown_dir),
		cmocka_unit_test_setup_teardown(test_append, setup_dir, teardown_dir),
		cmocka_unit_test_setup_teardown(test_append_fails, setup_dir, teardown_dir),
		cmocka_unit_test_setup_teardown(test_locked, setup_dir, teardown_dir),
		cmocka_unit_test_setup_teardown(test_other_boot, setup_dir, teardown_dir),
		cmocka_unit_test_setup_teardown(test_damaged_file, setup_dir, teardown_dir),
		cmocka_unit_test_setup_teardown(test_sync_fails, setup_dir, teardown_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
