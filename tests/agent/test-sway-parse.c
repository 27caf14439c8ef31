/* SPDX-License-Identifier: MIT */
/* What sway 1.7 wrote on its IPC socket, whole, and what it means. The argument is where the recordings are. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fileio.h"
#include "sway-parse.h"

#define UNKNOWN FRONT_UNKNOWN
#define NOBODY FRONT_NOBODY
#define PROCESS FRONT_PROCESS
#define FOOT { PROCESS, 24715, 0 }
#define XTERM { PROCESS, 24951, 1091500 }

static const char *recordings;

static const struct {
	const char *file;
	size_t n_trees, n_moves;
	DesktopView trees[4]; /* as they come */
} records[] = {
	{ "foot", 2, 2, { { NOBODY }, FOOT } },
	{ "xterm", 3, 2, { FOOT, XTERM, XTERM } }, /* by Xwayland; its class is Proton's */
	{ "workspace", 2, 2, { FOOT, { NOBODY } } },
	{ "parent", 3, 0, { FOOT, FOOT, FOOT } }, /* in a container that has the focus itself */
	{ "outputs", 3, 3, { FOOT, FOOT, { NOBODY } } },
	{ "scratchpad", 3, 3, { FOOT, FOOT, XTERM } }, /* a floating one, which is then put away */
};

static void check_tree(const char *file, const SwayMessage *m, const DesktopView *want)
{
	DesktopView v;

	assert_int_equal(sway_parse_tree(m, &v), 0);
	if (v.front != want->front || v.pid != want->pid || v.appid != want->appid)
		fail_msg("%s: front %d pid %d appid %u", file, v.front, v.pid, v.appid);
}

static void replay(size_t i)
{
	auto_free char *path = NULL, *data = NULL;
	size_t size, used = 0, n_trees = 0, n_moves = 0;
	SwayMessage m;
	ssize_t k;

	assert_true(asprintf(&path, "%s/%s", recordings, records[i].file) > 0);
	assert_int_equal(read_file_at(AT_FDCWD, path, MIB, &data, &size), 0);
	while ((k = sway_parse_message(data + used, size - used, &m)) > 0) {
		if (m.type == SWAY_GET_TREE)
			check_tree(records[i].file, &m, &records[i].trees[n_trees++]);
		else if (m.type == SWAY_SUBSCRIBE)
			assert_true(sway_is_success(&m));
		else
			n_moves += sway_is_move(&m);
		used += (size_t)k;
	}
	assert_int_equal(k, 0);
	assert_int_equal(used, size);
	assert_int_equal(n_trees, records[i].n_trees);
	if (n_moves != records[i].n_moves)
		fail_msg("%s: %zu moves", records[i].file, n_moves);
}

static void test_recordings(void **s _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(records); i++)
		replay(i);
}

#define ROOT(inside) "{\"type\":\"root\",\"focus\":[1],\"nodes\":[" inside "]}"
#define CON(inside) ROOT("{\"id\":1,\"type\":\"con\"," inside "}")

static const struct {
	const char *json;
	int r;
	Front front;
} trees[] = {
	{ ROOT("{\"id\":1,\"type\":\"workspace\",\"focus\":[]}"), 0, NOBODY },
	{ CON("\"pid\":77"), 0, PROCESS },
	{ CON("\"pid\":77") " \n", 0, PROCESS },
	/* i3: a window of X, and no process */
	{ CON("\"window\":4194316"), 0, UNKNOWN },
	{ CON("\"pid\":0"), 0, UNKNOWN },
	{ CON("\"pid\":1"), 0, UNKNOWN },
	{ CON("\"pid\":-7"), 0, UNKNOWN },
	{ CON("\"pid\":4294967373"), 0, UNKNOWN },
	{ CON("\"pid\":7.5"), 0, UNKNOWN },
	{ CON("\"pid\":\"77\""), 0, UNKNOWN },
	{ CON("\"pid\":77,\"app_id\":7,\"window_properties\":[]"), 0, PROCESS },
	{ ROOT(""), 0, UNKNOWN },
	{ ROOT("7, null, [], {\"id\":\"1\"}, {\"id\":2,\"pid\":77}"), 0, UNKNOWN },
	{ "{\"type\":\"root\",\"focus\":[\"1\"],\"nodes\":[{\"id\":1,\"pid\":77}]}", 0, UNKNOWN },
	{ "{\"type\":\"root\",\"focus\":{},\"nodes\":7}", 0, UNKNOWN },
	{ "{\"type\":\"root\"}", 0, UNKNOWN },
	{ "{\"type\":\"con\",\"pid\":77}", -EBADMSG, 0 },
	{ "{}", -EBADMSG, 0 },
	{ "[]", -EBADMSG, 0 },
	{ "7", -EBADMSG, 0 },
	{ "", -EBADMSG, 0 },
	{ "{\"type\":\"root\"", -EBADMSG, 0 },
	{ "{\"type\":\"root\"} x", -EBADMSG, 0 },
};

static void test_trees(void **s _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
		SwayMessage m = { SWAY_GET_TREE, trees[i].json, strlen(trees[i].json) };
		DesktopView v = { UNKNOWN, 0, 0 };
		int r = sway_parse_tree(&m, &v);

		if (r != trees[i].r || v.front != trees[i].front || (v.front == PROCESS && v.pid != 77))
			fail_msg("%s: %d, front %d, pid %d", trees[i].json, r, v.front, v.pid);
	}
}

/* However it is cut, it is a message only when it is whole. */
static void test_pieces(void **s _unused_)
{
	char text[SWAY_MESSAGE_SIZE("{}") + SWAY_MESSAGE_SIZE("")];
	size_t n = sway_put_message(text, SWAY_SUBSCRIBE, "{}");
	uint32_t too_long = SWAY_MESSAGE_MAX + 1;
	SwayMessage m;

	assert_int_equal(sway_put_message(text + n, SWAY_GET_TREE, ""), SWAY_HEADER_SIZE);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(sway_parse_message(text, i, &m), 0);
	assert_int_equal(sway_parse_message(text, sizeof(text), &m), n);
	assert_int_equal(m.type, SWAY_SUBSCRIBE);
	assert_int_equal(m.size, 2);
	assert_memory_equal(m.payload, "{}", 2);
	assert_int_equal(sway_parse_message(text + n, sizeof(text) - n, &m), SWAY_HEADER_SIZE);
	assert_int_equal(m.size, 0);
	memcpy(text + 6, &too_long, sizeof(too_long));
	assert_int_equal(sway_parse_message(text, SWAY_HEADER_SIZE, &m), -EMSGSIZE);
	text[2] = '_';
	assert_int_equal(sway_parse_message(text, 2, &m), 0);
	assert_int_equal(sway_parse_message(text, 3, &m), -EBADMSG);
}

static void test_deep(void **s _unused_)
{
	static char text[200000];
	SwayMessage m = { SWAY_GET_TREE, text, sizeof(text) };
	DesktopView v;

	memset(text, '[', sizeof(text));
	assert_int_equal(sway_parse_tree(&m, &v), -EBADMSG);
	for (size_t i = 0; i + 5 <= sizeof(text); i += 5)
		memcpy(text + i, "{\"a\":", 5);
	assert_int_equal(sway_parse_tree(&m, &v), -EBADMSG);
}

int main(int argc _unused_, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recordings),
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_deep),
	};

	recordings = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
