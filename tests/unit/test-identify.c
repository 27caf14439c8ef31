/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "identify.h"
#include "remove-tree.h"
#include "steam.h"

/* A block of NUL-terminated strings, as /proc has them. */
#define BLOCK(s) (s "\0"), sizeof(s "\0") - 1

/* --- Reaper ----------------------------------------------------------------------------------- */

static void test_reaper(_unused_ void **state)
{
	static const struct {
		const char *block;
		size_t size;
		uint32_t appid; /* 0: no reaper */
	} cases[] = {
		{ BLOCK("/home/a/.steam/ubuntu12_32/reaper\0SteamLaunch\0AppId=348550\0--\0/x/"
			"proton"),
		  348550 },
		{ BLOCK("reaper\0SteamLaunch\0AppId=730\0--\0x"), 730 },
		{ BLOCK("steam-launch-wrapper\0reaper\0SteamLaunch\0AppId=730\0--"), 730 },
		{ BLOCK("reaper\0SteamLaunch\0AppId=2891404929"), 2891404929 },
		{ BLOCK("reaper\0AppId=1\0SteamLaunch\0AppId=2"), 2 },
		{ BLOCK("reaper\0SteamLaunch"), 0 },
		{ BLOCK("reaper\0AppId=1"), 0 },
		{ BLOCK("reaper\0--\0SteamLaunch\0AppId=1"), 0 },
		{ BLOCK("reaper\0SteamLaunch\0--\0AppId=1"), 0 },
		{ BLOCK("reaper\0SteamLaunch\0AppId="), 0 },
		{ BLOCK("reaper\0SteamLaunch\0AppId=0"), 0 },
		{ BLOCK("reaper\0SteamLaunch\0AppId=-5"), 0 },
		{ BLOCK("reaper\0SteamLaunch\0AppId=5x"), 0 },
		{ BLOCK("reaper\0SteamLaunch\0AppId=4294967296"), 0 },
		{ BLOCK("reaper\0SteamLaunch\0xAppId=5"), 0 },
		{ "reaper\0SteamLaunch\0AppId=109", sizeof("reaper\0SteamLaunch\0AppId=109") - 1,
		  0 },
		{ "", 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t appid = 7;
		int r = steam_parse_reaper(cases[i].block, cases[i].size, &appid);

		if (r != (cases[i].appid != 0) || appid != (cases[i].appid ? cases[i].appid : 7))
			fail_msg("case %zu: %d, appid %u", i, r, appid);
	}
}

/* --- Environment ------------------------------------------------------------------------------ */

static void test_environ(_unused_ void **state)
{
	static const struct {
		const char *block;
		size_t size;
		int mark;
		uint32_t appid;
		const char *name;
	} cases[] = {
		{ BLOCK("HOME=/\0SteamAppId=1091500\0SteamGameId=1091500"), 1, 1091500 },
		{ BLOCK("SteamGameId=1091500"), 1, 1091500 },
		/* a shortcut: 0xac57a101 << 32 | 0x02000000 */
		{ BLOCK("SteamAppId=0\0SteamGameId=12418571523198025728"), 1, 2891424001 },
		{ BLOCK("SteamGameId=4294967295"), 1, 4294967295 },
		{ BLOCK("SteamGameId=4294967296"), 1, 1 },
		{ BLOCK("SteamGameId=99999999999999999999"), 0 },
		{ BLOCK("SteamAppId=0\0SteamGameId=0"), 0 },
		{ BLOCK("SteamAppId=\0SteamGameId="), 0 },
		{ BLOCK("SteamAppId=12a"), 0 },
		{ BLOCK("XSteamAppId=12\0SteamAppId"), 0 },
		{ BLOCK("UMU_ID=umu-391540"), 1, 391540 },
		{ BLOCK("UMU_ID=umu-default"), 1, 0 },
		{ BLOCK("UMU_ID=umu-0\0SteamAppId=0"), 1, 0 },
		{ BLOCK("UMU_ID=umu-5\0SteamAppId=6"), 1, 6 },
		{ BLOCK("SteamGameId=heroic-abc\0SteamAppId=0\0HEROIC_APP_NAME=abc"), 1, 0, "abc" },
		{ BLOCK("HEROIC_APP_NAME=a\x1b[31m\xff\xc3\xa9\xc2\x9bz"), 1, 0,
		  "a?[31m?\xc3\xa9??z" },
		{ BLOCK("HEROIC_APP_NAME="), 0 },
		{ BLOCK("LUTRIS_GAME_UUID=0b5e"), 1, 0 },
		{ BLOCK("WINEPREFIX=/b/Games\0BOTTLE=Games\0WINEARCH=win64"), 1, 0, "Games" },
		{ BLOCK("BOTTLE=Games\0WINEPREFIX=/b/Games\0UMU_ID=umu-7"), 1, 7, "Games" },
		{ BLOCK("BOTTLE=of wine"), 0 },
		{ BLOCK("BOTTLE=\0WINEPREFIX=/b"), 0 },
		/* What each launcher puts there, in its order. */
		{ BLOCK("HEROIC_APP_NAME=Quail\0HEROIC_APP_RUNNER=legendary\0GAMEID=umu-0\0HEROIC_APP_SOURCE=epic\0"
			"STORE=egs\0SteamGameId=heroic-Quail\0SteamAppId=0\0UMU_ID=umu-0"),
		  1, 0, "Quail" },
		{ BLOCK("HEROIC_APP_NAME=1207658924\0HEROIC_APP_RUNNER=gog\0UMU_ID=umu-292030"), 1, 292030,
		  "1207658924" },
		{ BLOCK("LUTRIS_GAME_UUID=0b5e\0GAMEID=umu-default\0UMU_ID=umu-default\0SteamAppId=0\0SteamGameId=0"),
		  1, 0 },
		{ BLOCK("SteamGameId=13510798882145042432\0SteamAppId=0\0SteamOverlayGameId=13510798882145042432"), 1,
		  3145728000 },
		{ BLOCK("PATH=/bin\0\0LANG=C"), 0 },
		{ "SteamAppId=109", sizeof("SteamAppId=109") - 1, 0 }, /* cut: not 1091500 */
		{ "", 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(game_identity_done) GameIdentity g = {};
		int r = game_parse_environ(cases[i].block, cases[i].size, &g);

		if (r != cases[i].mark || g.mark != (r ? MARK_ENVIRON : MARK_NONE))
			fail_msg("case %zu: %d, mark %d", i, r, g.mark);
		if (g.appid != cases[i].appid || !streq_ptr(g.name, cases[i].name))
			fail_msg("case %zu: appid %u, name \"%s\"", i, g.appid, strempty(g.name));
	}
}

/* Each malformed UTF-8 byte becomes one "?", and a name is cut between characters. */
static void test_text(_unused_ void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "\xf0\x9f\x8e\xae", "\xf0\x9f\x8e\xae" }, { "\xef\xbf\xbf", "\xef\xbf\xbf" },
		{ "\xc0\x80", "??" },			    { "\xe0\x80\xaf", "???" },
		{ "\xed\xa0\x80", "???" },		    { "\xf4\x90\x80\x80", "????" },
		{ "\xf8", "?" },			    { "\xe2\x82", "??" },
		{ "\xe2\x82x", "??x" },			    { "\x7f\t\n", "???" },
		{ "\xc2\xa0", "\xc2\xa0" },
	};
	char block[512];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(game_identity_done) GameIdentity g = {};
		int n = snprintf(block, sizeof(block), "HEROIC_APP_NAME=%s", cases[i].in);

		assert_int_equal(game_parse_environ(block, (size_t)n + 1, &g), 1);
		assert_string_equal(g.name, cases[i].out);
	}
	for (unsigned i = 0; i < 2; i++) {
		_cleanup_(game_identity_done) GameIdentity g = {};
		int n = snprintf(block, sizeof(block), "HEROIC_APP_NAME=%s", i ? "x" : "");

		for (unsigned k = 0; k < 140; k++)
			n += snprintf(block + n, sizeof(block) - (size_t)n, "\xc3\xa9");
		assert_int_equal(game_parse_environ(block, (size_t)n + 1, &g), 1);
		assert_int_equal(strlen(g.name), i ? 255 : 254);
	}
}

/* --- /proc ------------------------------------------------------------------------------------ */

typedef struct Fixture {
	char proc[32];
	Roots roots;
	Process process;
} Fixture;

static int setup(void **state)
{
	Fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->proc, "/tmp/test-identify.XXXXXX");
	assert_non_null(mkdtemp(f->proc));
	f->roots = (Roots){ .proc = f->proc, .relocated = true };
	/* A pidfd of somebody alive; its pid is only looked up in the fixture. */
	f->process = (Process){ .n_ref = 1, .pid = 100, .uid = getuid() };
	f->process.pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	assert_true(f->process.pidfd >= 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	Fixture *f = *state;

	(void)close_fd(f->process.pidfd);
	remove_tree(f->proc);
	free(f);
	return 0;
}

static void put(const Fixture *f, int pid, const char *name, const char *data, size_t size)
{
	char path[128];
	auto_close int fd = -EBADF;

	(void)snprintf(path, sizeof(path), "%s/%d/%s", f->proc, pid, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
}

static void add_process(const Fixture *f, int pid, int parent, const char *comm,
			const char *cmdline, size_t size)
{
	char text[128];
	int n;

	(void)snprintf(text, sizeof(text), "%s/%d", f->proc, pid);
	assert_int_equal(mkdir(text, 0755), 0);
	n = snprintf(text, sizeof(text), "%d (%s) S %d 1 1 0 -1 4194560\n", pid, comm, parent);
	put(f, pid, "stat", text, (size_t)n);
	put(f, pid, "cmdline", cmdline, size);
}

static void add_link(const Fixture *f, int pid, const char *target)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%d/exe", f->proc, pid);
	assert_int_equal(symlink(target, path), 0);
}

static void expect(const Fixture *f, const UnitPath *unit, GameMark mark, uint32_t appid,
		   const char *name, const char *exe)
{
	_cleanup_(game_identity_done) GameIdentity g = {};

	assert_int_equal(game_identify(&f->roots, &f->process, unit, &g), 0);
	assert_string_equal(game_mark_to_string(g.mark), game_mark_to_string(mark));
	assert_int_equal(g.appid, appid);
	assert_string_equal(g.name, name);
	assert_string_equal(g.exe, exe);
}

#define REAPER BLOCK("/s/reaper\0SteamLaunch\0AppId=5\0--\0/s/proton")

/* Each mark is beaten by the one before it. */
static void test_rank(void **state)
{
	Fixture *f = *state;
	UnitPath scope = { .appid = 4 }, flatpak = { .flatpak = (char *)"org.foo.Bar" }, plain = {};

	add_process(f, 100, 90, "game) S 1 (x", BLOCK("/opt/game\0-x"));
	add_link(f, 100, "/opt/bin/the game (deleted)");
	expect(f, &plain, MARK_NONE, 0, "the game", "the game");
	expect(f, NULL, MARK_NONE, 0, "the game", "the game");
	expect(f, &flatpak, MARK_FLATPAK, 0, "org.foo.Bar", "the game");
	put(f, 100, "environ", BLOCK("SteamAppId=6\0HEROIC_APP_NAME=Quail"));
	expect(f, &flatpak, MARK_ENVIRON, 6, "Quail", "the game");
	add_process(f, 90, 80, "sh", BLOCK("sh"));
	add_process(f, 80, 1, "reaper", REAPER);
	expect(f, &flatpak, MARK_REAPER, 5, "the game", "the game");
	expect(f, &scope, MARK_SCOPE, 4, "the game", "the game");
}

static void test_no_reaper(void **state)
{
	Fixture *f = *state;

	add_process(f, 100, 90, "game", BLOCK("game"));
	add_process(f, 90, 80, "reaper", BLOCK("reaper\0--\0SteamLaunch\0AppId=5"));
	add_process(f, 80, 1, "reaper2", REAPER);
	expect(f, NULL, MARK_NONE, 0, "game", "game");
}

/* What another user's process says of itself does not count, nor does an endless chain hang. */
static void test_foreign(void **state)
{
	Fixture *f = *state;

	add_process(f, 100, 90, "game", BLOCK("game"));
	put(f, 100, "environ", BLOCK("SteamAppId=6"));
	add_process(f, 90, 100, "reaper", REAPER);
	expect(f, NULL, MARK_REAPER, 5, "game", "game");
	f->process.uid = getuid() + 1;
	expect(f, NULL, MARK_NONE, 0, "game", "game");
}

static void test_depth(void **state)
{
	Fixture *f = *state;

	for (int i = 100; i < 163; i++)
		add_process(f, i, i + 1, "sh", BLOCK("sh"));
	add_process(f, 163, 164, "reaper", REAPER); /* the 64th */
	expect(f, NULL, MARK_REAPER, 5, "sh", "sh");
	add_process(f, 99, 100, "sh", BLOCK("sh"));
	f->process.pid = 99;
	expect(f, NULL, MARK_NONE, 0, "sh", "sh");
}

static void test_program(void **state)
{
	static const struct {
		const char *comm, *cmdline;
		size_t size;
		const char *exe;
	} cases[] = {
		{ "Game.exe", BLOCK("Z:\\home\\a\\Game.exe\0-dx12"), "Game.exe" },
		{ "Game.exe", BLOCK("/home/a/My Game.EXE"), "My Game.EXE" },
		{ "wine64-preload",
		  BLOCK("/usr/bin/wine64-preloader\0/usr/bin/wine64\0C:\\G.exe\0a.exe"), "G.exe" },
		{ "wine64", BLOCK("/p/wine64\0c:\\windows\\system32\\steam.exe\0Z:\\g\\Game.exe"),
		  "Game.exe" },
		{ "steam.exe", BLOCK("C:\\Windows\\System32\\steam.exe\0Z:\\g\\Game.exe"),
		  "Game.exe" },
		{ "services.exe", BLOCK("C:\\windows\\system32\\services.exe"), "services.exe" },
		{ "python3", BLOCK("python3\0/p/proton\0waitforexitandrun\0/g/Game.exe"),
		  "Game.exe" },
		{ "less", BLOCK("less\0/g/Game.exe"), "less" },
		{ "x", BLOCK(".exe"), "x" },
		{ "a-name-that-is-", BLOCK("/opt/a-name-that-is-longer\0x"),
		  "a-name-that-is-longer" },
		{ "a-name-that-is-", BLOCK("/opt/another"), "a-name-that-is-" },
		{ "short", BLOCK("/opt/shorter"), "short" },
		{ "kernel", "", 0, "kernel" },
	};
	Fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		f->process.pid = 200 + (pid_t)i;
		add_process(f, f->process.pid, 1, cases[i].comm, cases[i].cmdline, cases[i].size);
		expect(f, NULL, MARK_NONE, 0, cases[i].exe, cases[i].exe);
	}
}

/* A mark behind the first 64 KiB does not count, and costs nothing. */
static void test_long_environ(void **state)
{
	Fixture *f = *state;
	static char block[70000];

	memset(block, 'x', sizeof(block));
	block[65000] = '\0';
	memcpy(block + 65001, BLOCK("SteamAppId=6"));
	add_process(f, 100, 1, "game", BLOCK("game"));
	put(f, 100, "environ", block, sizeof(block));
	expect(f, NULL, MARK_ENVIRON, 6, "game", "game");
	memset(block + 65000, 'x', 100);
	block[66000] = '\0';
	memcpy(block + 66001, BLOCK("SteamAppId=6"));
	put(f, 100, "environ", block, sizeof(block));
	expect(f, NULL, MARK_NONE, 0, "game", "game");
}

static void test_gone(void **state)
{
	Fixture *f = *state;
	GameIdentity g;
	pid_t pid;

	assert_int_equal(game_identify(&f->roots, &f->process, NULL, &g), -ESRCH);
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_true(pid > 0);
	(void)close_fd(f->process.pidfd);
	f->process.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_true(f->process.pidfd >= 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	add_process(f, 100, 1, "game", BLOCK("game"));
	assert_int_equal(game_identify(&f->roots, &f->process, NULL, &g), -ESRCH);
}

/* The running kernel's /proc: this very program. */
static void test_self(_unused_ void **state)
{
	Roots roots = { .proc = (char *)"/proc" };
	_cleanup_(game_identity_done) GameIdentity g = {};
	Process p = { .n_ref = 1, .pid = getpid(), .uid = getuid() };

	p.pidfd = (int)syscall(SYS_pidfd_open, p.pid, 0);
	assert_true(p.pidfd >= 0);
	assert_int_equal(game_identify(&roots, &p, NULL, &g), 0);
	assert_string_equal(g.exe, program_invocation_short_name);
	(void)close_fd(p.pidfd);
}

#define PROC_TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reaper), cmocka_unit_test(test_environ),
		cmocka_unit_test(test_text),   PROC_TEST(test_rank),
		PROC_TEST(test_no_reaper),     PROC_TEST(test_foreign),
		PROC_TEST(test_depth),         PROC_TEST(test_program),
		PROC_TEST(test_long_environ),  PROC_TEST(test_gone),
		cmocka_unit_test(test_self),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
