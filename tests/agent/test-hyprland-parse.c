/* SPDX-License-Identifier: MIT */
/* Lines and answers as Hyprland's source writes them, and what they mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hyprland-parse.h"

/* 0.53: a terminal opens. */
#define OPENED \
	"windowtitle>>59daae69e360\nwindowtitlev2>>59daae69e360,foot\nopenwindow>>59daae69e360,1,foot,foot\n" \
	"activewindow>>foot,foot\nactivewindowv2>>59daae69e360\n"
/* It gets another title while it is active. */
#define TITLE \
	"windowtitle>>59daae69e360\nwindowtitlev2>>59daae69e360,a > b\nactivewindow>>foot,a > b\n" \
	"activewindowv2>>59daae69e360\n"
#define EMPTY "workspace>>2\nworkspacev2>>2,2\nactivewindow>>,\nactivewindowv2>>\n"
#define EMPTY_2023 "workspace>>2\nactivewindow>>,\nactivewindowv2>>,\n"

static const struct {
	const char *before, *lines;
	size_t left;
	bool moved;
	const char *after;
} events[] = {
	{ "", OPENED, 0, true, "59daae69e360" },
	{ "59daae69e360", TITLE, 0, false, "59daae69e360" },
	{ "59daae69e360", EMPTY, 0, true, "" },
	{ "59daae69e360", EMPTY_2023, 0, true, "" },
	{ "", EMPTY, 0, false, "" },
	/* There and back is a move: another window may have the same address. */
	{ "59daae69e360", EMPTY OPENED, 0, true, "59daae69e360" },
	{ "", "activewindowv2>>59da", 20, false, "" },
	{ "", "activewindowv2>>", 16, false, "" },
	{ "", "activewindowv2>>a\nactivewin", 9, true, "a" },
	{ "", "activewindowv2>>0123456789abcdef0123456789abcdef\n", 0, true, "0123456789abcdef012" },
	{ "", "activewindowv2\nactivewindowv2>\nxactivewindowv2>>a\n\n>>\n", 0, false, "" },
	{ "", "", 0, false, "" },
};

static void test_events(void **s _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		HyprlandActive a = {};
		bool moved = false;
		size_t n = strlen(events[i].lines);

		(void)strcpy(a.address, events[i].before);
		assert_int_equal(hyprland_parse_events(events[i].lines, n, &a, &moved), n - events[i].left);
		if (moved != events[i].moved || !streq(a.address, events[i].after))
			fail_msg("case %zu: %d, \"%s\"", i, moved, a.address);
	}
}

static const struct {
	const char *text;
	int r;
	DesktopView v;
} answers[] = {
	{ "{\n    \"address\": \"0x59daae69e360\",\n    \"mapped\": true,\n    \"hidden\": false,\n    \"at\": [22, 62],\n"
	  "    \"size\": [1236, 636],\n    \"workspace\": {\n        \"id\": 1,\n        \"name\": \"1\"\n    },\n"
	  "    \"floating\": false,\n    \"monitor\": 0,\n    \"class\": \"foot\",\n    \"title\": \"a \\\"b\\\"\",\n"
	  "    \"initialClass\": \"foot\",\n    \"initialTitle\": \"foot\",\n    \"pid\": 1438,\n    \"xwayland\": false,\n"
	  "    \"pinned\": false,\n    \"fullscreen\": 0,\n    \"grouped\": [],\n    \"tags\": [],\n"
	  "    \"swallowing\": \"0x0\",\n    \"focusHistoryID\": 0\n}", 0, { FRONT_PROCESS, 1438, 0 } },
	{ "{\"class\": \"steam_app_1091500\", \"pid\": 77}", 0, { FRONT_PROCESS, 77, 1091500 } },
	{ "{}", 0, { FRONT_NOBODY, 0, 0 } },
	{ "{}\n", 0, { FRONT_NOBODY, 0, 0 } },
	{ "{\"class\": \"foot\", \"pid\": -1}", 0, { FRONT_UNKNOWN, 0, 0 } },
	{ "{\"class\": \"foot\"}", 0, { FRONT_UNKNOWN, 0, 0 } },
	{ "{\"class\": 7, \"pid\": 77}", 0, { FRONT_PROCESS, 77, 0 } },
	{ "unknown request", -EBADMSG, {} },
	{ "Invalid", -EBADMSG, {} },
	{ "{\"pid\": 77", -EBADMSG, {} },
	{ "[]", -EBADMSG, {} },
	{ "", -EBADMSG, {} },
};

static void test_answers(void **s _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		const DesktopView *want = &answers[i].v;
		DesktopView v = {};

		assert_int_equal(hyprland_parse_window(answers[i].text, strlen(answers[i].text), &v), answers[i].r);
		if (v.front != want->front || v.pid != want->pid || v.appid != want->appid)
			fail_msg("%s: front %d pid %d appid %u", answers[i].text, v.front, v.pid, v.appid);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
