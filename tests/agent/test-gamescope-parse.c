/* SPDX-License-Identifier: MIT */
/* The bytes that gamescope 3.16.24 writes, and what they mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gamescope-parse.h"

/* Little-endian items of 32 bits, as they were on the wire. */
#define STEAM "\x01\x03\x00\x00"
#define GAME "\xac\xa7\x10\x00" /* 1091500 */
#define OTHER "\x26\x51\x05\x00" /* 348454 */
#define OVERLAY "\xd7\x14\x00\x00" /* 5335 */
#define SHORTCUT "\x35\xd1\x24\xbc" /* 3156529461: what is not of Steam's shop is above 2^31 */
#define ZERO "\x00\x00\x00\x00"
#define XID "\x00\x00\x40\x00" /* the first window of any client of any server */
#define XID2 "\x00\x00\x60\x00"
#define PID(n) n "\x01\x00\x00" /* 256 + n */
#define ABSENT NULL, 0
#define ITEMS(s) s, (sizeof(s) - 1) / 4

#define UNKNOWN FRONT_UNKNOWN
#define NOBODY FRONT_NOBODY
#define PROCESS FRONT_PROCESS
#define OPEN VRAMD_MENU_OPEN
#define CLOSED VRAMD_MENU_CLOSED
#define NO_IDEA VRAMD_MENU_UNKNOWN

typedef struct Bytes {
	const char *bytes;
	size_t n;
} Bytes;

static const struct {
	const char *text;
	Bytes gfx, app, window, windows;
	Front front;
	pid_t pid;
	uint32_t appid;
	vramd_menu menu;
	pid_t running[4];
} cases[] = {
	{ "nothing written yet", { ABSENT }, { ABSENT }, { ABSENT }, { ABSENT }, UNKNOWN, 0, 0, NO_IDEA, {} },

	/* --- the truth table, --steam */
	{ "game in front", { ITEMS(GAME) }, { ITEMS(GAME) }, { ITEMS(XID) },
	  { ITEMS(XID2 STEAM PID("\x10") XID GAME PID("\x20")) }, PROCESS, 0x120, 1091500, CLOSED, {} },
	{ "menu open", { ITEMS(GAME) }, { ITEMS(STEAM) }, { ITEMS(XID) },
	  { ITEMS(XID GAME PID("\x20")) }, PROCESS, 0x120, 1091500, OPEN, {} },
	{ "Steam's home, the game runs on", { ITEMS(STEAM) }, { ITEMS(STEAM) }, { ITEMS(XID2) },
	  { ITEMS(XID2 STEAM PID("\x10") XID GAME PID("\x20")) }, NOBODY, 0, 0, CLOSED, { 0x120 } },
	{ "another overlay has the input", { ITEMS(GAME) }, { ITEMS(OVERLAY) }, { ITEMS(XID) },
	  { ITEMS(XID GAME PID("\x20")) }, PROCESS, 0x120, 1091500, OPEN, {} },
	{ "the app ended", { ITEMS("") }, { ITEMS("") }, { ITEMS("") },
	  { ITEMS(XID2 STEAM PID("\x10")) }, NOBODY, 0, 0, CLOSED, {} },
	{ "nobody has the input", { ITEMS(GAME) }, { ITEMS("") }, { ITEMS(XID) },
	  { ITEMS(XID GAME PID("\x20")) }, PROCESS, 0x120, 1091500, NO_IDEA, {} },
	{ "nobody is said to have the input", { ITEMS(GAME) }, { ABSENT }, { ITEMS(XID) },
	  { ITEMS(XID GAME PID("\x20")) }, PROCESS, 0x120, 1091500, NO_IDEA, {} },

	/* --- which process */
	{ "a shortcut", { ITEMS(SHORTCUT) }, { ITEMS(SHORTCUT) }, { ITEMS(XID) },
	  { ITEMS(XID SHORTCUT PID("\x20")) }, PROCESS, 0x120, 3156529461, CLOSED, {} },
	{ "the same XID on two servers", { ITEMS(GAME) }, { ITEMS(GAME) }, { ITEMS(XID) },
	  { ITEMS(XID STEAM PID("\x10") XID GAME PID("\x20")) }, PROCESS, 0x120, 1091500, CLOSED, {} },
	{ "several windows: the one in front", { ITEMS(GAME) }, { ITEMS(GAME) }, { ITEMS(XID2) },
	  { ITEMS(XID GAME PID("\x20") XID2 GAME PID("\x30")) }, PROCESS, 0x130, 1091500, CLOSED, {} },
	{ "a window that is not listed: any of its app", { ITEMS(GAME) }, { ITEMS(GAME) }, { ITEMS(XID2) },
	  { ITEMS(XID GAME PID("\x20")) }, PROCESS, 0x120, 1091500, CLOSED, {} },
	{ "no window of it is listed (a Wayland client)", { ITEMS(GAME) }, { ITEMS(GAME) }, { ITEMS(XID) },
	  { ITEMS(XID STEAM PID("\x10")) }, UNKNOWN, 0, 1091500, CLOSED, {} },
	{ "no list", { ITEMS(GAME) }, { ITEMS(GAME) }, { ITEMS(XID) }, { ABSENT }, UNKNOWN, 0, 1091500, CLOSED, {} },
	{ "a pid that is none", { ITEMS(GAME) }, { ITEMS(GAME) }, { ITEMS(XID) },
	  { ITEMS(XID GAME "\xff\xff\xff\xff" XID GAME ZERO XID GAME "\x01\x00\x00\x00") },
	  UNKNOWN, 0, 1091500, CLOSED, {} },
	{ "not of Steam's", { ITEMS(ZERO) }, { ITEMS(ZERO) }, { ITEMS(XID) },
	  { ITEMS(XID2 ZERO PID("\x10") XID ZERO PID("\x20")) }, PROCESS, 0x120, 0, CLOSED, {} },
	{ "not of Steam's, and which of two cannot be known", { ITEMS(ZERO) }, { ITEMS(ZERO) }, { ITEMS(XID) },
	  { ITEMS(XID ZERO PID("\x10") XID ZERO PID("\x20")) }, UNKNOWN, 0, 0, CLOSED, {} },
	{ "a list that is cut off", { ITEMS(GAME) }, { ITEMS(GAME) }, { ITEMS(XID) },
	  { ITEMS(XID GAME PID("\x20") XID GAME) }, PROCESS, 0x120, 1091500, CLOSED, {} },

	/* --- what else runs */
	{ "two games, each once", { ITEMS(GAME) }, { ITEMS(GAME) }, { ITEMS(XID) },
	  { ITEMS(XID GAME PID("\x20") XID2 OTHER PID("\x30") XID OTHER PID("\x31") XID2 STEAM PID("\x10")) },
	  PROCESS, 0x120, 1091500, CLOSED, { 0x130 } },
	{ "two games behind Steam", { ITEMS(STEAM) }, { ITEMS(STEAM) }, { ITEMS(XID) },
	  { ITEMS(XID GAME PID("\x20") XID2 OTHER PID("\x30") XID2 ZERO PID("\x40")) },
	  NOBODY, 0, 0, CLOSED, { 0x120, 0x130 } },

	/* --- without --steam an appid is the XID */
	{ "plain: a game", { ABSENT }, { ABSENT }, { ITEMS(XID) }, { ITEMS(XID XID PID("\x20")) },
	  PROCESS, 0x120, 0, NO_IDEA, {} },
	{ "plain: nothing", { ABSENT }, { ABSENT }, { ITEMS("") }, { ITEMS("") }, NOBODY, 0, 0, NO_IDEA, {} },
	{ "plain: not listed", { ABSENT }, { ABSENT }, { ITEMS(XID) }, { ITEMS(XID2 XID2 PID("\x20")) },
	  UNKNOWN, 0, 0, NO_IDEA, {} },
	{ "plain: which of two cannot be known", { ABSENT }, { ABSENT }, { ITEMS(XID) },
	  { ITEMS(XID XID PID("\x20") XID XID PID("\x30")) }, UNKNOWN, 0, 0, NO_IDEA, {} },
	{ "plain: two windows of one process", { ABSENT }, { ABSENT }, { ITEMS(XID) },
	  { ITEMS(XID XID PID("\x20") XID XID PID("\x20")) }, PROCESS, 0x120, 0, NO_IDEA, {} },
};

static Cardinals to_cardinals(const Bytes *b, uint32_t *room)
{
	if (b->n > 0)
		memcpy(room, b->bytes, b->n * sizeof(*room));
	return (Cardinals){ b->bytes != NULL, room, b->n };
}

static void test_table(void **s _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t room[4][64];
		GamescopeProperties p = {
			.app = to_cardinals(&cases[i].app, room[0]),
			.app_gfx = to_cardinals(&cases[i].gfx, room[1]),
			.window = to_cardinals(&cases[i].window, room[2]),
			.windows = to_cardinals(&cases[i].windows, room[3]),
		};
		GamescopeView v;
		size_t n = 0;

		gamescope_parse(&p, &v);
		while (n < ARRAY_SIZE(cases[i].running) && cases[i].running[n])
			n++;
		if (v.front != cases[i].front || v.pid != cases[i].pid || v.appid != cases[i].appid ||
		    v.menu != cases[i].menu || v.n_running != n ||
		    memcmp(v.running, cases[i].running, n * sizeof(pid_t)) != 0)
			fail_msg("%s: front %d pid %d appid %u menu %d, %zu run, first %d", cases[i].text, v.front, v.pid,
				 v.appid, v.menu, v.n_running, v.running[0]);
	}
}

static void test_many_windows(void **s _unused_)
{
	uint32_t windows[3 * 100], steam = GAMESCOPE_APPID_STEAM;
	GamescopeProperties p = { .app_gfx = { true, &steam, 1 }, .windows = { true, windows, ARRAY_SIZE(windows) } };
	GamescopeView v;

	for (uint32_t i = 0; i < 100; i++) {
		windows[3 * i] = i + 1;
		windows[3 * i + 1] = 1000 + i;
		windows[3 * i + 2] = 2000 + i;
	}
	gamescope_parse(&p, &v);
	assert_int_equal(v.n_running, STATE_RUNNING_MAX);
	assert_int_equal(v.running[0], 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_many_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
