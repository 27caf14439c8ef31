/* SPDX-License-Identifier: MIT */
/* Whose word counts, of any set of sources. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "merge.h"

#define GS "gamescope", 1
#define KWIN "kwin", 2
#define SWAY "sway", 2
#define X11 "x11", 4
#define UNKNOWN FRONT_UNKNOWN
#define NOBODY FRONT_NOBODY
#define GAME FRONT_PROCESS
#define OPEN VRAMD_MENU_OPEN
#define CLOSED VRAMD_MENU_CLOSED
#define NO_IDEA VRAMD_MENU_UNKNOWN
#define NESTED true
#define OUTER false

typedef struct Row {
	const char *source;
	unsigned rank;
	Front front;
	int pid;
	uint32_t appid;
	vramd_menu menu;
	int compositor;
	bool nested;
} Row;

static const struct {
	const char *text;
	Row rows[5];
	int winner;
	Front front;
	int pid;
	uint32_t appid;
	vramd_menu menu;
	int compositor;
} cases[] = {
	{ "no source at all", {}, -1, UNKNOWN, 0, 0, NO_IDEA, 0 },
	{ "nobody knows", { { GS, UNKNOWN, 0, 0, NO_IDEA, 1, OUTER }, { X11, UNKNOWN, 0, 0, NO_IDEA, 0, OUTER } },
	  -1, UNKNOWN, 0, 0, NO_IDEA, 0 },
	{ "the best rank counts, whatever the order",
	  { { X11, GAME, 30, 0, NO_IDEA, 0, OUTER }, { GS, GAME, 20, 7, CLOSED, 9, OUTER } },
	  1, GAME, 20, 7, CLOSED, 9 },
	{ "one that does not know leaves it to the next",
	  { { GS, UNKNOWN, 0, 0, NO_IDEA, 9, OUTER }, { X11, GAME, 30, 0, NO_IDEA, 0, OUTER } },
	  1, GAME, 30, 0, NO_IDEA, 0 },
	{ "nobody in front is an answer",
	  { { GS, NOBODY, 0, 0, CLOSED, 9, OUTER }, { X11, GAME, 30, 0, NO_IDEA, 0, OUTER } },
	  0, NOBODY, 0, 0, CLOSED, 9 },
	{ "of equals the first",
	  { { SWAY, GAME, 40, 0, NO_IDEA, 4, OUTER }, { KWIN, GAME, 50, 0, NO_IDEA, 5, OUTER } },
	  0, GAME, 40, 0, NO_IDEA, 4 },
	{ "a nested one does not know whether it is in front",
	  { { GS, GAME, 20, 7, CLOSED, 9, NESTED }, { KWIN, GAME, 50, 0, NO_IDEA, 5, OUTER } },
	  1, GAME, 50, 0, NO_IDEA, 5 },
	{ "nor whether somebody else is",
	  { { GS, GAME, 20, 7, CLOSED, 9, NESTED }, { KWIN, NOBODY, 0, 0, NO_IDEA, 5, OUTER } },
	  1, NOBODY, 0, 0, NO_IDEA, 5 },
	{ "it is: its game, on the outer compositor",
	  { { GS, GAME, 20, 7, CLOSED, 9, NESTED }, { KWIN, GAME, 9, 0, NO_IDEA, 5, OUTER } },
	  1, GAME, 20, 7, NO_IDEA, 5 },
	{ "it is, and has no game yet",
	  { { GS, NOBODY, 0, 0, CLOSED, 9, NESTED }, { KWIN, GAME, 9, 0, NO_IDEA, 5, OUTER } },
	  1, GAME, 9, 0, NO_IDEA, 5 },
	{ "nobody else knows: better than nothing",
	  { { GS, GAME, 20, 7, CLOSED, 9, NESTED }, { X11, UNKNOWN, 0, 0, NO_IDEA, 0, OUTER } },
	  0, GAME, 20, 7, CLOSED, 9 },
	{ "gamescope in gamescope: the menu of the outer one lies over the game of the inner one",
	  { { GS, GAME, 9, 7, OPEN, 8, OUTER }, { GS, GAME, 20, 0, NO_IDEA, 9, NESTED } },
	  0, GAME, 20, 7, OPEN, 8 },
	{ "two of them in each other, in any order",
	  { { GS, GAME, 30, 3, CLOSED, 20, NESTED }, { GS, GAME, 20, 2, CLOSED, 9, NESTED },
	    { KWIN, GAME, 9, 0, CLOSED, 5, OUTER } },
	  2, GAME, 30, 3, CLOSED, 5 },
	{ "two that name each other: whatever, but it ends",
	  { { GS, GAME, 9, 3, CLOSED, 20, NESTED }, { GS, GAME, 20, 2, CLOSED, 9, NESTED } },
	  0, GAME, 20, 2, CLOSED, 20 },
	{ "an unknown compositor is nobody's window",
	  { { GS, GAME, 20, 7, CLOSED, 0, NESTED }, { KWIN, GAME, 50, 0, CLOSED, 5, OUTER } },
	  1, GAME, 50, 0, CLOSED, 5 },
};

static void test_table(void **s _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		Candidate c[5] = {};
		State got = {};
		size_t n = 0;
		int winner;

		for (; n < ARRAY_SIZE(c) && cases[i].rows[n].source; n++) {
			const Row *r = &cases[i].rows[n];

			c[n] = (Candidate){ r->source, r->rank,
					    { .front = r->front, .game = { r->pid, r->pid }, .appid = r->appid,
					      .menu = r->menu, .compositor = { r->compositor, r->compositor },
					      .nested = r->nested } };
		}
		winner = merge_candidates(c, n, &got);
		if (winner != cases[i].winner || got.front != cases[i].front || got.game.pid != cases[i].pid ||
		    got.game.pidfd != cases[i].pid || got.appid != cases[i].appid || got.menu != cases[i].menu ||
		    got.compositor.pid != cases[i].compositor)
			fail_msg("%s: winner %d front %d pid %d appid %u menu %d compositor %d", cases[i].text, winner,
				 got.front, got.game.pid, got.appid, got.menu, got.compositor.pid);
	}
}

static void test_running_of_both(void **s _unused_)
{
	Candidate c[2] = {
		{ GS, { .front = GAME, .game = { 20, 20 }, .compositor = { 9, 9 }, .nested = true } },
		{ KWIN, { .front = GAME, .game = { 9, 9 }, .running = { { 40, 40 } }, .n_running = 1 } },
	};
	State got;

	for (int i = 0; i < STATE_RUNNING_MAX; i++)
		c[0].state.running[i] = (ProcessRef){ 100 + i, 100 + i };
	c[0].state.n_running = STATE_RUNNING_MAX;
	assert_int_equal(merge_candidates(c, 2, &got), 1);
	assert_int_equal(got.n_running, STATE_RUNNING_MAX);
	assert_int_equal(got.running[0].pid, 40);
	assert_int_equal(got.running[STATE_RUNNING_MAX - 1].pid, 100 + STATE_RUNNING_MAX - 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_running_of_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
