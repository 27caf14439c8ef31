/* SPDX-License-Identifier: MIT */
/* The knobs on a folder, without control groups. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "apply.h"
#include "module.h"
#include "remove-tree.h"

#define STEPS_MAX 100000

typedef struct Machine {
	char dir[40], run[48];
	Roots roots;
	Hierarchy hierarchy;
	Apply *apply;
	KnobWish wishes[_KNOB_MAX];
	int results[_KNOB_MAX];
	unsigned written, yielded;
} Machine;

static void on_written(_unused_ Knob knob, _unused_ uint32_t old, _unused_ uint32_t value, void *userdata)
{
	((Machine *)userdata)->written++;
}

static void on_yielded(_unused_ Knob knob, _unused_ uint32_t ours, _unused_ uint32_t theirs, void *userdata)
{
	((Machine *)userdata)->yielded++;
}

static const ApplyHooks hooks = { .knob_written = on_written, .knob_yielded = on_yielded };

static void begin(Machine *m, bool dry_run)
{
	m->apply = apply_free(m->apply);
	assert_int_equal(apply_new(&m->hierarchy, &m->roots, m->run, dry_run, NULL, &hooks, m, &m->apply), 0);
}

static void put_stock(const Machine *m)
{
	for (Knob k = 0; k < _KNOB_MAX; k++)
		put_parameter(&m->roots, k, knob_infos[k].kind == KNOB_SWITCH ? "N\n" : "7\n");
}

static int setup(void **state)
{
	Machine *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->hierarchy.root_fd = -EBADF;
	(void)strcpy(m->dir, "/tmp/test-apply-knobs-XXXXXX");
	assert_non_null(mkdtemp(m->dir));
	(void)snprintf(m->run, sizeof(m->run), "%s/run", m->dir);
	m->roots = (Roots){ .proc = m->dir, .etc = m->dir, .relocated = true };
	for (Knob k = 0; k < _KNOB_MAX; k++)
		m->wishes[k] = (KnobWish){ KNOB_SET, knob_infos[k].kind == KNOB_SWITCH ? 1 : 8 };
	put_stock(m);
	begin(m, false);
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	Machine *m = *state;

	apply_free(m->apply);
	remove_tree(m->dir);
	free(m);
	return 0;
}

static uint32_t value(const Machine *m, Knob k)
{
	uint32_t v;

	assert_int_equal(knob_read(&m->roots, k, &v, NULL), 0);
	return v;
}

static void assert_stock(const Machine *m)
{
	for (Knob k = 0; k < _KNOB_MAX; k++)
		assert_int_equal(value(m, k), knob_infos[k].kind == KNOB_SWITCH ? 0 : 7);
}

static void make_so(Machine *m)
{
	assert_int_equal(apply_knobs(m->apply, m->wishes, m->results), 0);
}

static void keep_all(Machine *m)
{
	memset(m->wishes, 0, sizeof(m->wishes));
}

static bool has_journal(const Machine *m)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, m->run);
	return access(path, F_OK) == 0;
}

static void test_set_and_restore(void **state)
{
	Machine *m = *state;

	make_so(m);
	assert_int_equal(m->written, _KNOB_MAX);
	for (Knob k = 0; k < _KNOB_MAX; k++) {
		assert_int_equal(value(m, k), m->wishes[k].value);
		assert_int_equal(m->results[k], 0);
		assert_true(apply_knob_is_ours(m->apply, k));
	}
	assert_true(has_journal(m));
	make_so(m);
	assert_int_equal(m->written, _KNOB_MAX);
	assert_int_equal(apply_restore(m->apply), 0);
	assert_stock(m);
	assert_false(has_journal(m));
}

/* What is right already is nobody's business. */
static void test_nothing_to_do(void **state)
{
	Machine *m = *state;

	for (Knob k = 0; k < _KNOB_MAX; k++)
		m->wishes[k].value = value(m, k);
	make_so(m);
	assert_int_equal(m->written, 0);
	assert_false(has_journal(m));
	keep_all(m);
	make_so(m);
	assert_int_equal(m->written, 0);
}

static void test_keep_puts_back(void **state)
{
	Machine *m = *state;

	make_so(m);
	m->wishes[KNOB_THROTTLE_SOFT].kind = KNOB_KEEP;
	make_so(m);
	assert_int_equal(value(m, KNOB_THROTTLE_SOFT), 7);
	assert_int_equal(value(m, KNOB_THROTTLE_HARD), 8);
	assert_false(apply_knob_is_ours(m->apply, KNOB_THROTTLE_SOFT));
	keep_all(m);
	make_so(m);
	assert_stock(m);
	assert_false(has_journal(m));
}

static void test_changes_remember_the_first_value(void **state)
{
	Machine *m = *state;

	for (uint32_t v = 10; v < 15; v++) {
		m->wishes[KNOB_THROTTLE_HARD].value = v;
		make_so(m);
		assert_int_equal(value(m, KNOB_THROTTLE_HARD), v);
	}
	begin(m, false); /* as after a crash */
	assert_int_equal(apply_restore(m->apply), 0);
	assert_stock(m);
}

/* Set to what it was at first, then to nothing: vramd is done with it, and who writes it now is none of its rivals. */
static void test_last_value_was_the_first(void **state)
{
	Machine *m = *state;

	make_so(m);
	m->wishes[KNOB_THROTTLE_HARD].value = 7;
	make_so(m);
	assert_true(apply_knob_is_ours(m->apply, KNOB_THROTTLE_HARD));
	m->wishes[KNOB_THROTTLE_HARD].kind = KNOB_KEEP;
	make_so(m);
	assert_false(apply_knob_is_ours(m->apply, KNOB_THROTTLE_HARD));
	put_parameter(&m->roots, KNOB_THROTTLE_HARD, "30\n");
	make_so(m);
	assert_int_equal(m->yielded, 0);
	m->wishes[KNOB_THROTTLE_HARD].kind = KNOB_SET;
	m->wishes[KNOB_THROTTLE_HARD].value = 12;
	make_so(m);
	assert_int_equal(value(m, KNOB_THROTTLE_HARD), 12);
	assert_int_equal(apply_restore(m->apply), 0);
	assert_int_equal(value(m, KNOB_THROTTLE_HARD), 30);
}

static void test_needs(void **state)
{
	Machine *m = *state;

	m->wishes[KNOB_CONTIG_WINDOW].value = 0;
	make_so(m);
	assert_int_equal(value(m, KNOB_EVICT_PRIORITY), 0);
	assert_int_equal(value(m, KNOB_DISPLACE_LOWER), 0);
	/* Somebody else's window is as good. */
	m->wishes[KNOB_CONTIG_WINDOW].kind = KNOB_KEEP;
	put_parameter(&m->roots, KNOB_CONTIG_WINDOW, "Y\n");
	make_so(m);
	assert_int_equal(value(m, KNOB_EVICT_PRIORITY), 1);
	assert_int_equal(value(m, KNOB_DISPLACE_LOWER), 1);
	put_parameter(&m->roots, KNOB_CONTIG_WINDOW, "N\n");
	make_so(m);
	assert_int_equal(value(m, KNOB_EVICT_PRIORITY), 0);
	assert_int_equal(value(m, KNOB_DISPLACE_LOWER), 0);
}

static void test_strangers(void **state)
{
	Machine *m = *state;

	make_so(m);
	put_parameter(&m->roots, KNOB_THROTTLE_HARD, "99\n");
	m->wishes[KNOB_THROTTLE_HARD].value = 12;
	make_so(m);
	make_so(m);
	assert_int_equal(value(m, KNOB_THROTTLE_HARD), 99);
	assert_int_equal(m->yielded, 1);
	assert_true(apply_knob_is_yielded(m->apply, KNOB_THROTTLE_HARD));
	/* What vramd itself wrote before is a stranger's, too, once it wrote something else. */
	m->wishes[KNOB_THROTTLE_SOFT].value = 20;
	make_so(m);
	put_parameter(&m->roots, KNOB_THROTTLE_SOFT, "8\n");
	make_so(m);
	assert_int_equal(value(m, KNOB_THROTTLE_SOFT), 8);
	/* Taken over: it is what is put back. */
	apply_take_knob(m->apply, KNOB_THROTTLE_HARD);
	make_so(m);
	assert_int_equal(value(m, KNOB_THROTTLE_HARD), 12);
	/* One that has our value is ours again. */
	put_parameter(&m->roots, KNOB_THROTTLE_SOFT, "20\n");
	make_so(m);
	assert_true(apply_knob_is_ours(m->apply, KNOB_THROTTLE_SOFT));
	assert_int_equal(apply_restore(m->apply), 0);
	assert_int_equal(value(m, KNOB_THROTTLE_HARD), 99);
	assert_int_equal(value(m, KNOB_THROTTLE_SOFT), 7);
}

static void test_modules(void **state)
{
	Machine *m = *state;
	char path[128], aside[128];

	make_so(m);
	(void)snprintf(path, sizeof(path), "%s/sys/module/ttm", m->dir);
	(void)snprintf(aside, sizeof(aside), "%s/sys/module/gone", m->dir);
	assert_int_equal(rename(path, aside), 0);
	make_so(m);
	for (Knob k = 0; k < _KNOB_MAX; k++)
		assert_int_equal(m->results[k], k == KNOB_GFXOFF_DELAY ? 0 : -ENOENT);
	/* The old files are still there, so that these are others. */
	put_stock(m);
	put_parameter(&m->roots, KNOB_GFXOFF_DELAY, "8\n");
	make_so(m);
	assert_int_equal(value(m, KNOB_THROTTLE_HARD), 8);
	assert_int_equal(m->yielded, 0);
	remove_tree(aside);
	assert_int_equal(rename(path, aside), 0);
	put_stock(m);
	put_parameter(&m->roots, KNOB_THROTTLE_HARD, "8\n");
	put_parameter(&m->roots, KNOB_GFXOFF_DELAY, "8\n");
	assert_int_equal(apply_restore(m->apply), 0);
	/* It was not ours: the module is another one. */
	assert_int_equal(value(m, KNOB_THROTTLE_HARD), 8);
	put_parameter(&m->roots, KNOB_THROTTLE_HARD, "7\n");
	assert_stock(m);
}

static void test_dry_run(void **state)
{
	Machine *m = *state;

	begin(m, true);
	make_so(m);
	assert_int_equal(m->written, _KNOB_MAX);
	assert_stock(m);
	make_so(m);
	assert_int_equal(m->written, _KNOB_MAX);
	assert_int_equal(apply_restore(m->apply), 0);
	assert_int_equal(m->written, 2 * _KNOB_MAX);
	assert_stock(m);
}

/* --- Kills ------------------------------------------------------------------------------------ */

static void life(Machine *m)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0)
		_exit(1);
	if (apply_new(&m->hierarchy, &m->roots, m->run, false, NULL, NULL, NULL, &m->apply) < 0 ||
	    apply_restore(m->apply) < 0 || apply_knobs(m->apply, m->wishes, m->results) < 0)
		_exit(2);
	m->wishes[KNOB_THROTTLE_HARD].value = 9;
	m->wishes[KNOB_CONTIG_WINDOW].value = 0;
	m->wishes[KNOB_GFXOFF_DELAY].kind = KNOB_KEEP;
	if (apply_knobs(m->apply, m->wishes, m->results) < 0 || apply_restore(m->apply) < 0)
		_exit(3);
	_exit(0);
}

/* True if it came to its end before the step at which it is killed. */
static bool live_until(Machine *m, unsigned step)
{
	int status;
	pid_t pid;

	pid = fork();
	if (pid == 0)
		life(m);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (unsigned i = 0; i < step && WIFSTOPPED(status); i++) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	if (WIFEXITED(status)) {
		assert_int_equal(WEXITSTATUS(status), 0);
		return true;
	}
	assert_true(WIFSTOPPED(status));
	(void)kill(pid, SIGKILL);
	do
		assert_int_equal(waitpid(pid, &status, 0), pid);
	while (WIFSTOPPED(status));
	return false;
}

/* Before and after each system call; every other time somebody wrote a value since, which stays. */
static void test_kill_at_each_step(void **state)
{
	Machine *m = *state;
	unsigned journals = 0, step;

	m->apply = apply_free(m->apply);
	for (step = 0; step < STEPS_MAX && !live_until(m, step); step++) {
		journals += has_journal(m);
		if (step % 2)
			put_parameter(&m->roots, KNOB_RECLAIM_BACKOFF, "55\n");
		begin(m, false);
		assert_int_equal(apply_restore(m->apply), 0);
		m->apply = apply_free(m->apply);
		assert_false(has_journal(m));
		if (step % 2) {
			assert_int_equal(value(m, KNOB_RECLAIM_BACKOFF), 55);
			put_parameter(&m->roots, KNOB_RECLAIM_BACKOFF, "7\n");
		}
		assert_stock(m);
	}
	print_message("%u steps, %u with a journal\n", step, journals);
	assert_true(step < STEPS_MAX);
	assert_true(journals > 50);
	assert_stock(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_set_and_restore, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_to_do, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keep_puts_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_changes_remember_the_first_value, setup, teardown),
		cmocka_unit_test_setup_teardown(test_last_value_was_the_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_needs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strangers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_modules, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dry_run, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kill_at_each_step, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
