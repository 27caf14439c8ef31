/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "reaper-tree.h"

/* systemd 1, Steam 100 with a helper 101, the reaper 200, its game 201 - 203. */
static const TreeProcess desk[] = {
	{ 1, 0, false, false, false },	   { 100, 1, false, true, false },   { 101, 100, false, true, false },
	{ 200, 100, true, true, false },   { 201, 200, false, true, false }, { 202, 201, false, true, false },
	{ 203, 202, false, false, false }, { 300, 1, false, false, false },
};

typedef struct Desk {
	TreeProcess v[ARRAY_SIZE(desk) + 2];
	size_t n;
} Desk;

static Desk desk_new(void)
{
	Desk d = { .n = ARRAY_SIZE(desk) };

	memcpy(d.v, desk, sizeof(desk));
	return d;
}

static bool chosen(const Desk *d, pid_t pid)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->v[i].pid == pid)
			return d->v[i].chosen;
	fail_msg("no process %d", pid);
	return false;
}

static void test_the_game_and_nobody_else(void **state _unused_)
{
	Desk d = desk_new();

	assert_int_equal(reaper_tree_choose(d.v, d.n, 200), 0);
	assert_true(chosen(&d, 200) && chosen(&d, 201) && chosen(&d, 202));
	assert_false(chosen(&d, 1) || chosen(&d, 100) || chosen(&d, 101) || chosen(&d, 300));
	/* One that went elsewhere already stays there. */
	assert_false(chosen(&d, 203));
}

static void test_its_own_already(void **state _unused_)
{
	Desk d = desk_new();

	d.v[1].inside = d.v[2].inside = false;
	assert_int_equal(reaper_tree_choose(d.v, d.n, 200), -EALREADY);
}

static void test_not_there(void **state _unused_)
{
	Desk d = desk_new();

	assert_int_equal(reaper_tree_choose(d.v, d.n, 999), -ESRCH);
	assert_int_equal(reaper_tree_choose(d.v, d.n, 100), -ESRCH); /* no reaper */
	assert_int_equal(reaper_tree_choose(NULL, 0, 200), -ESRCH);
}

/* What it forked while it was moved is still inside. */
static void test_left_behind(void **state _unused_)
{
	Desk d = desk_new();

	d.v[3].inside = false;
	assert_int_equal(reaper_tree_choose(d.v, d.n, 200), 0);
	assert_true(chosen(&d, 201) && chosen(&d, 202));
	assert_false(chosen(&d, 200) || chosen(&d, 100));
}

static void test_two_reapers(void **state _unused_)
{
	Desk d = desk_new();

	/* A second game of Steam beside it is no trouble, one below it is. */
	d.v[d.n++] = (TreeProcess){ 400, 100, true, true, false };
	assert_int_equal(reaper_tree_choose(d.v, d.n, 200), 0);
	assert_false(chosen(&d, 400));
	d.v[d.n++] = (TreeProcess){ 401, 202, true, true, false };
	assert_int_equal(reaper_tree_choose(d.v, d.n, 200), -EBUSY);
	/* As far as it goes, also then: for who has begun. */
	assert_true(chosen(&d, 200) && chosen(&d, 401));
	/* A child of the reaper's that is not the game's program yet. */
	assert_int_equal(reaper_tree_choose(d.v, d.n, 401), -EBUSY);
	assert_int_equal(reaper_tree_choose(d.v, d.n, 400), 0);
}

static void test_a_parent_that_goes_round(void **state _unused_)
{
	Desk d = desk_new();

	d.v[d.n++] = (TreeProcess){ 500, 501, false, true, false };
	d.v[d.n++] = (TreeProcess){ 501, 500, false, true, false };
	assert_int_equal(reaper_tree_choose(d.v, d.n, 200), 0);
	assert_false(chosen(&d, 500));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_game_and_nobody_else), cmocka_unit_test(test_its_own_already),
		cmocka_unit_test(test_not_there),		 cmocka_unit_test(test_two_reapers),
		cmocka_unit_test(test_left_behind),
		cmocka_unit_test(test_a_parent_that_goes_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
