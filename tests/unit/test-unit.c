/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "unit.h"
#include "remove-tree.h"

/* --- Paths ------------------------------------------------------------------------------------ */

#define U1000 "/user.slice/user-1000.slice/user@1000.service"

typedef struct PathCase {
	const char *path;
	int error;
	size_t cut; /* bytes of path that are behind the unit */
	const char *name;
	uid_t uid;
	bool user_unit, session;
	uint32_t appid;
	const char *flatpak;
} PathCase;

static const PathCase path_cases[] = {
	/* games and other units of a user */
	{ U1000 "/app.slice/app-steam-app1091500-4242.scope", 0, 0,
	  "app-steam-app1091500-4242.scope", 1000, true, false, 1091500 },
	{ U1000 "/app.slice/app-steam-app1091500-4242.scope/a/b.service", 0, strlen("/a/b.service"),
	  "app-steam-app1091500-4242.scope", 1000, true, false, 1091500 },
	{ U1000 "/app.slice/app-foo.slice/app-foo-bar.slice/x.service", 0, 0, "x.service", 1000,
	  true },
	{ U1000 "/dbus.socket.service", 0, 0, "dbus.socket.service", 1000, true },
	{ U1000 "/session.slice/gamescope-session.service/init", 0, strlen("/init"),
	  "gamescope-session.service", 1000, true },
	{ U1000 "/app.slice/app-dbus\\x2d:1.2\\x2dorg.foo.slice/dbus-:1.2-org.foo@0.service", 0, 0,
	  "dbus-:1.2-org.foo@0.service", 1000, true },
	{ U1000 "/app.slice/app-gnome-steam\\x2dlauncher-99.scope", 0, 0,
	  "app-gnome-steam\\x2dlauncher-99.scope", 1000, true },
	{ U1000 "/session-3.scope", 0, 0, "session-3.scope", 1000, true },
	/* outside of the user's manager */
	{ "/user.slice/user-1000.slice/session-3.scope", 0, 0, "session-3.scope", 1000, false,
	  true },
	{ "/user.slice/user-1000.slice/session-c1.scope/x", 0, 2, "session-c1.scope", 1000, false,
	  true },
	{ "/user.slice/user-1000.slice/session-.scope", 0, 0, "session-.scope", 1000 },
	{ "/user.slice/user-1000.slice/session-3.service", 0, 0, "session-3.service", 1000 },
	{ "/user.slice/user-1000.slice/user-runtime-dir@1000.service", 0, 0,
	  "user-runtime-dir@1000.service", 1000 },
	{ "/user.slice/user-0.slice/session-1.scope", 0, 0, "session-1.scope", 0, false, true },
	{ "/user.slice/user-1000.slice/user-1000-x.slice/session-3.scope", 0, 0, "session-3.scope",
	  1000 },
	{ "/system.slice/ollama.service", 0, 0, "ollama.service", UNIT_UID_NONE },
	{ "/system.slice/system-foo.slice/foo@x.service", 0, 0, "foo@x.service", UNIT_UID_NONE },
	{ "/machine.slice/libpod-0123abcd.scope/container/init.scope", 0,
	  strlen("/container/init.scope"), "libpod-0123abcd.scope", UNIT_UID_NONE },
	{ "/machine.slice/systemd-nspawn@deb.service/payload/user.slice/user-1000.slice/"
	  "session-1.scope",
	  0, strlen("/payload/user.slice/user-1000.slice/session-1.scope"),
	  "systemd-nspawn@deb.service", UNIT_UID_NONE },
	/* no slice of a user, whatever it looks like */
	{ "/user-1000.slice/session-1.scope", 0, 0, "session-1.scope", UNIT_UID_NONE },
	{ "/x.slice/user-1000.slice/session-1.scope", 0, 0, "session-1.scope", UNIT_UID_NONE },
	{ "/user.slice/user-99999999999.slice/session-1.scope", 0, 0, "session-1.scope",
	  UNIT_UID_NONE },
	{ "/user.slice/user-4294967295.slice/session-1.scope", 0, 0, "session-1.scope",
	  UNIT_UID_NONE },
	{ "/user.slice/user-01000.slice/session-1.scope", 0, 0, "session-1.scope", UNIT_UID_NONE },
	{ "/user.slice/user--1.slice/session-1.scope", 0, 0, "session-1.scope", UNIT_UID_NONE },
	{ "/user.slice/user-.slice/session-1.scope", 0, 0, "session-1.scope", UNIT_UID_NONE },
	{ "/user.slice/user-4294967294.slice/session-1.scope", 0, 0, "session-1.scope", 4294967294,
	  false, true },
	/* Steam's names */
	{ "/a.slice/app-steam-app-5.scope", 0, 0, "app-steam-app-5.scope", UNIT_UID_NONE },
	{ "/a.slice/app-steam-app5-.scope", 0, 0, "app-steam-app5-.scope", UNIT_UID_NONE },
	{ "/a.slice/app-steam-app5.scope", 0, 0, "app-steam-app5.scope", UNIT_UID_NONE },
	{ "/a.slice/app-steam-app5-6-7.scope", 0, 0, "app-steam-app5-6-7.scope", UNIT_UID_NONE },
	{ "/a.slice/app-steam-app5-6x.scope", 0, 0, "app-steam-app5-6x.scope", UNIT_UID_NONE },
	{ "/a.slice/app-steam-app+5-6.scope", 0, 0, "app-steam-app+5-6.scope", UNIT_UID_NONE },
	{ "/a.slice/app-steam-app5-6.service", 0, 0, "app-steam-app5-6.service", UNIT_UID_NONE },
	{ "/a.slice/app-steam-app4294967295-6.scope", 0, 0, "app-steam-app4294967295-6.scope",
	  UNIT_UID_NONE, false, false, 4294967295 },
	{ "/a.slice/app-steam-app4294967296-6.scope", 0, 0, "app-steam-app4294967296-6.scope",
	  UNIT_UID_NONE },
	{ "/a.slice/app-steam@autostart.service", 0, 0, "app-steam@autostart.service",
	  UNIT_UID_NONE },
	/* flatpaks */
	{ U1000 "/app.slice/app-flatpak-com.valvesoftware.Steam-123.scope", 0, 0,
	  "app-flatpak-com.valvesoftware.Steam-123.scope", 1000, true, false, 0,
	  "com.valvesoftware.Steam" },
	{ "/a.slice/app-flatpak-org.foo.a\\x2db-1.scope", 0, 0,
	  "app-flatpak-org.foo.a\\x2db-1.scope", UNIT_UID_NONE, false, false, 0, "org.foo.a-b" },
	{ "/a.slice/app-flatpak-org.foo.a-b-1.scope", 0, 0, "app-flatpak-org.foo.a-b-1.scope",
	  UNIT_UID_NONE, false, false, 0, "org.foo.a-b" },
	{ "/a.slice/app-flatpak-org.foo.scope", 0, 0, "app-flatpak-org.foo.scope", UNIT_UID_NONE },
	{ "/a.slice/app-flatpak-org.foo-x.scope", 0, 0, "app-flatpak-org.foo-x.scope",
	  UNIT_UID_NONE },
	{ "/a.slice/app-flatpak-foo-1.scope", 0, 0, "app-flatpak-foo-1.scope", UNIT_UID_NONE },
	{ "/a.slice/app-flatpak-a.b\\x2-1.scope", 0, 0, "app-flatpak-a.b\\x2-1.scope",
	  UNIT_UID_NONE },
	{ "/a.slice/app-flatpak-a.b\\x0a-1.scope", 0, 0, "app-flatpak-a.b\\x0a-1.scope",
	  UNIT_UID_NONE },
	{ "/a.slice/app-flatpak-a.b\\-1.scope", 0, 0, "app-flatpak-a.b\\-1.scope", UNIT_UID_NONE },
	/* in no unit */
	{ "/", -ENOENT },
	{ "/init.scope", -ENOENT },
	{ "/user.slice", -ENOENT },
	{ "/user.slice/user-1000.slice", -ENOENT },
	{ U1000, -ENOENT },
	{ U1000 "/init.scope", -ENOENT },
	{ U1000 "/app.slice", -ENOENT },
	{ U1000 "/app.slice/evade", -ENOENT },
	{ U1000 "/app.slice/evade/app-steam-app5-6.scope", -ENOENT },
	{ U1000 "/app.slice/user@1000.service", -ENOENT },
	{ U1000 "/user@1000.service/x.scope", -ENOENT },
	{ "/docker/0123abcd", -ENOENT },
	{ "/machine.slice", -ENOENT },
	{ "/dev-hugepages.mount", -ENOENT },
	{ "/system.slice/foo.socket", -ENOENT },
	{ "/system.slice/user@1000.service/x.scope", -ENOENT },
	{ "/user.slice/user-99999999999.slice/user@99999999999.service/x.scope", -ENOENT },
	{ "/user.slice/user-1000.slice/user@.service/x.scope", -ENOENT },
	{ "/a.slice/.scope", -ENOENT },
	{ "/a.slice/.service", -ENOENT },
	{ "/.slice/x.scope", -ENOENT },
	/* malformed */
	{ "/user.slice/user-1000.slice/user@1001.service/x.scope", -EINVAL },
	{ "", -EINVAL },
	{ "user.slice", -EINVAL },
	{ "/a.slice//x.scope", -EINVAL },
	{ "/a.slice/../x.scope", -EINVAL },
	{ "/a.slice/x\n.scope", -EINVAL },
};

static void check_path_case(const PathCase *c)
{
	auto_unit_path UnitPath u = {};
	int r = unit_path_parse(c->path, &u);

	if (r != c->error)
		fail_msg("\"%s\": %d instead of %d", c->path, r, c->error);
	if (r < 0)
		return;
	if (strlen(u.cgroup) != strlen(c->path) - c->cut || !startswith(c->path, u.cgroup))
		fail_msg("\"%s\": cgroup \"%s\"", c->path, u.cgroup);
	if (!streq(u.name, c->name) || u.uid != c->uid || u.appid != c->appid)
		fail_msg("\"%s\": name \"%s\", uid %u, appid %u", c->path, u.name, u.uid, u.appid);
	if (u.user_unit != c->user_unit || u.session != c->session)
		fail_msg("\"%s\": user_unit %d, session %d", c->path, u.user_unit, u.session);
	if (!streq_ptr(u.flatpak, c->flatpak))
		fail_msg("\"%s\": flatpak \"%s\"", c->path, strempty(u.flatpak));
}

static void test_path(_unused_ void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(path_cases); i++)
		check_path_case(&path_cases[i]);
}

/* A name as long as a file's may be, and one byte longer. */
static void test_path_long(_unused_ void **state)
{
	auto_unit_path UnitPath u = {};
	char path[NAME_MAX + 32];
	int n = snprintf(path, sizeof(path), "/a.slice/%0*d.scope",
			 NAME_MAX - (int)strlen(".scope"), 1);

	assert_int_equal(n, strlen("/a.slice/") + NAME_MAX);
	assert_int_equal(unit_path_parse(path, &u), 0);
	assert_int_equal(strlen(u.name), NAME_MAX);
	unit_path_done(&u);
	(void)snprintf(path, sizeof(path), "/a.slice/%0*d.scope",
		       NAME_MAX + 1 - (int)strlen(".scope"), 1);
	assert_int_equal(unit_path_parse(path, &u), -EINVAL);
}

static void test_matches(_unused_ void **state)
{
	char *const patterns[] = { (char *)"app-steam-app*.scope",
				   (char *)"gamescope-session*.service", NULL };

	assert_true(unit_matches("app-steam-app5-6.scope", patterns));
	assert_true(unit_matches("gamescope-session-plus@steam.service", patterns));
	assert_false(unit_matches("app-steam-app5-6.service", patterns));
	assert_false(unit_matches("xapp-steam-app5-6.scope", patterns));
	assert_false(unit_matches("x", NULL));
}

/* --- Monitor ---------------------------------------------------------------------------------- */

#define TIMEOUT (5 * USEC_PER_SEC)
#define TOP "/user.slice/user-1000.slice"
#define APP U1000 "/app.slice"
#define GAME APP "/app-steam-app5-6.scope"

/* A hierarchy of plain directories, and what the monitor said, one line each: "+/a.slice". */
typedef struct Fixture {
	char root[64];
	Hierarchy h;
	sd_event *event;
	UnitMonitor *monitor;
	char *news[128];
	size_t n_news;
	bool remove_on_news;

	/* a private bus with a systemd on it, for some tests */
	pid_t daemon;
	sd_bus *client, *systemd;
	unsigned n_subscribed, n_pongs;
} Fixture;

static char *const interest[] = { (char *)"app-steam-app*.scope", (char *)"session-*.scope", NULL };

static void on_unit_news(UnitEvent event, const char *path, void *userdata)
{
	static const char signs[] = { '+', '~', '-', '*', '!' };
	Fixture *f = userdata;

	assert_true(f->n_news < ARRAY_SIZE(f->news));
	assert_true(asprintf(&f->news[f->n_news++], "%c%s", signs[event], strempty(path)) > 0);
	if (f->remove_on_news)
		unit_monitor_remove_user(f->monitor, 1000);
}

static void touch(int dir_fd, const char *name)
{
	auto_close int fd = openat(dir_fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
}

/* Makes a directory with the files that the kernel would put there. */
static void make(Fixture *f, const char *path)
{
	auto_close int fd = -EBADF;

	assert_int_equal(mkdirat(f->h.root_fd, path + 1, 0755), 0);
	fd = openat(f->h.root_fd, path + 1, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	touch(fd, "cgroup.procs");
	touch(fd, "cgroup.events");
}

static void drop(Fixture *f, const char *path)
{
	char file[PATH_MAX];
	static const char *const files[] = { "cgroup.procs", "cgroup.events" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		(void)snprintf(file, sizeof(file), "%s/%s", path + 1, files[i]);
		assert_int_equal(unlinkat(f->h.root_fd, file, 0), 0);
	}
	assert_int_equal(unlinkat(f->h.root_fd, path + 1, AT_REMOVEDIR), 0);
}

static void put(Fixture *f, const char *file)
{
	assert_int_equal(write_once_at(f->h.root_fd, file + 1, "1", 0), 0);
}

/* Takes every event there is; then what was told must be these lines in this order. The loop must
 * come to rest by itself well before the time is out. */
static void expect(Fixture *f, const char *const *lines, size_t n)
{
	uint64_t start, now;

	assert_true(sd_event_now(f->event, CLOCK_MONOTONIC, &start) >= 0);
	while (sd_event_run(f->event, 0) > 0) {
		assert_true(sd_event_now(f->event, CLOCK_MONOTONIC, &now) >= 0);
		assert_true(now < start + TIMEOUT);
	}
	for (size_t i = 0; i < MAX(n, f->n_news); i++) {
		const char *is = i < f->n_news ? f->news[i] : "nothing",
			   *should = i < n ? lines[i] : "nothing";

		if (!streq(is, should))
			fail_msg("news %zu of %zu: %s instead of %s", i, f->n_news, is, should);
	}
	while (f->n_news > 0)
		free(f->news[--f->n_news]);
}
#define EXPECT(f, ...)                                                                             \
	expect(f, (const char *const[]){ __VA_ARGS__ },                                            \
	       ARRAY_SIZE(((const char *const[]){ __VA_ARGS__ })))
#define EXPECT_NOTHING(f) expect(f, NULL, 0)

static int setup(void **state)
{
	Fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	/* In memory if possible: one test makes thousands of directories. */
	(void)snprintf(f->root, sizeof(f->root), "%s/test-unit.XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(f->root));
	f->h.mount_point = f->root;
	f->h.root_fd = open(f->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	f->h.relocated = true;
	assert_true(f->h.root_fd >= 0);
	assert_true(sd_event_new(&f->event) >= 0);
	assert_int_equal(unit_monitor_new(f->event, NULL, &f->h, on_unit_news, f, &f->monitor), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	Fixture *f = *state;

	unit_monitor_free(f->monitor);
	sd_event_unref(f->event);
	(void)close_fd(f->h.root_fd);
	remove_tree(f->root);
	while (f->n_news > 0)
		free(f->news[--f->n_news]);
	free(f);
	return 0;
}

static void make_session(Fixture *f)
{
	make(f, "/user.slice");
	make(f, TOP);
	make(f, U1000);
	make(f, APP);
}

/* What mutter does. False: this file system has no such attributes. */
static bool mark(Fixture *f, const char *path, const char *value)
{
	auto_free char *full = NULL;

	assert_true(asprintf(&full, "%s%s", f->root, path) > 0);
	if (setxattr(full, "user.xdg.inactive-since", value, strlen(value), 0) < 0) {
		assert_int_equal(errno, ENOTSUP);
		return false;
	}
	return true;
}

static void expect_marked(const Fixture *f, int n, const char *path)
{
	const char *marked = NULL;

	assert_int_equal(unit_monitor_get_marked(f->monitor, 1000, &marked), n);
	if (n == 1)
		assert_string_equal(marked, path);
}

static void test_marked(void **state)
{
	static const char other[] = APP "/app-gnome-browser-1.scope";
	Fixture *f = *state;

	make_session(f);
	make(f, GAME);
	make(f, other);
	expect_marked(f, -ENODATA, NULL);
	assert_int_equal(unit_monitor_add_user(f->monitor, 1000, interest), 0);
	EXPECT(f, "+/user.slice", "+" TOP, "+" U1000, "+" APP, "+" GAME);
	expect_marked(f, -ENODATA, NULL);
	if (!mark(f, GAME, "-1"))
		skip();
	EXPECT(f, "*" TOP);
	expect_marked(f, 1, GAME);
	assert_true(mark(f, other, "-1"));
	EXPECT(f, "*" TOP);
	expect_marked(f, 2, NULL);
	assert_true(mark(f, GAME, "12345"));
	EXPECT(f, "*" TOP);
	expect_marked(f, 1, other);
	assert_true(mark(f, other, "-1")); /* another window of it */
	EXPECT(f, "*" TOP);
	assert_true(mark(f, GAME, "23456"));
	EXPECT_NOTHING(f);
	drop(f, other);
	EXPECT(f, "*" TOP);
	expect_marked(f, 0, NULL);
	assert_true(mark(f, GAME, "-1, and so on, more than any number has digits"));
	assert_true(mark(f, APP, "-1"));
	EXPECT_NOTHING(f);

	/* What is there at the start is found. */
	assert_true(mark(f, GAME, "-1"));
	unit_monitor_remove_user(f->monitor, 1000);
	expect_marked(f, -ENODATA, NULL);
	assert_int_equal(unit_monitor_add_user(f->monitor, 1000, interest), 0);
	EXPECT(f, "+/user.slice", "+" TOP, "+" U1000, "+" APP, "+" GAME, "*" TOP);
	expect_marked(f, 1, GAME);
}

static void test_initial(void **state)
{
	Fixture *f = *state;

	make_session(f);
	make(f, GAME);
	make(f, APP "/other.service");
	make(f, APP "/evade");
	make(f, APP "/app-foo.slice");
	make(f, APP "/app-foo.slice/app-steam-app7-8.scope");
	make(f, TOP "/session-3.scope");
	make(f, "/user.slice/user-1001.slice");
	make(f, "/system.slice");
	assert_int_equal(unit_monitor_add_user(f->monitor, 1000, interest), 0);
	assert_int_equal(f->n_news, 0); /* never from within the call */
	EXPECT(f, "+/user.slice", "+" TOP, "+" TOP "/session-3.scope", "+" U1000, "+" APP,
	       "+" APP "/app-foo.slice", "+" GAME, "+" APP "/app-foo.slice/app-steam-app7-8.scope");
}

/* The user logs in after he is watched: even user.slice comes later. */
static void test_later(void **state)
{
	Fixture *f = *state;

	assert_int_equal(unit_monitor_add_user(f->monitor, 1000, interest), 0);
	EXPECT_NOTHING(f);
	make(f, "/user.slice");
	EXPECT(f, "+/user.slice");
	make(f, "/user.slice/user-1001.slice");
	EXPECT_NOTHING(f);
	/* All at once: only the first directory's event can be seen, the others are found by
	 * listing. */
	make(f, TOP);
	make(f, U1000);
	make(f, APP);
	make(f, GAME);
	EXPECT(f, "+" TOP, "+" U1000, "+" APP, "+" GAME);
	make(f, APP "/other.service");
	make(f, APP "/x.slice");
	EXPECT(f, "+" APP "/x.slice");
	make(f, TOP "/session-3.scope");
	EXPECT(f, "+" TOP "/session-3.scope");
}

static void test_changed(void **state)
{
	Fixture *f = *state;

	make_session(f);
	make(f, GAME);
	make(f, APP "/other.service");
	assert_int_equal(unit_monitor_add_user(f->monitor, 1000, interest), 0);
	EXPECT(f, "+/user.slice", "+" TOP, "+" U1000, "+" APP, "+" GAME);
	put(f, GAME "/cgroup.procs");
	EXPECT(f, "~" GAME);
	put(f, GAME "/cgroup.events");
	EXPECT(f, "~" GAME);
	put(f, APP "/other.service/cgroup.procs");
	put(f, APP "/cgroup.procs");
	EXPECT_NOTHING(f);
}

static void test_removed(void **state)
{
	Fixture *f = *state;

	make_session(f);
	make(f, GAME);
	make(f, APP "/other.service");
	assert_int_equal(unit_monitor_add_user(f->monitor, 1000, interest), 0);
	EXPECT(f, "+/user.slice", "+" TOP, "+" U1000, "+" APP, "+" GAME);
	drop(f, APP "/other.service");
	EXPECT_NOTHING(f);
	drop(f, GAME);
	EXPECT(f, "-" GAME);
	make(f, GAME);
	EXPECT(f, "+" GAME);
	drop(f, GAME); /* replaced: its values are lost, so this must not go unseen */
	make(f, GAME);
	EXPECT(f, "-" GAME, "+" GAME);
	/* a restart of the user's manager */
	drop(f, GAME);
	drop(f, APP);
	drop(f, U1000);
	make(f, U1000);
	make(f, APP);
	EXPECT(f, "-" GAME, "-" APP, "-" U1000, "+" U1000, "+" APP);
	make(f, GAME); /* came and went unseen: nothing to tell */
	drop(f, GAME);
	EXPECT_NOTHING(f);
}

/* Of no interest any more before anybody was told that it is there. */
static void test_untold(void **state)
{
	Fixture *f = *state;

	make_session(f);
	make(f, GAME);
	assert_int_equal(unit_monitor_add_user(f->monitor, 1000, interest), 0);
	assert_true(sd_event_run(f->event, 0) > 0);
	assert_int_equal(f->n_news, 1);
	assert_int_equal(unit_monitor_add_user(f->monitor, 1000, NULL), 0);
	EXPECT(f, "+/user.slice", "+" TOP, "+" U1000, "+" APP);
}

static void test_users(void **state)
{
	Fixture *f = *state;
	char *const other[] = { (char *)"other.service", NULL };

	make_session(f);
	make(f, GAME);
	make(f, APP "/other.service");
	make(f, "/user.slice/user-1001.slice");
	assert_int_equal(unit_monitor_add_user(f->monitor, 1000, interest), 0);
	EXPECT(f, "+/user.slice", "+" TOP, "+" U1000, "+" APP, "+" GAME);
	assert_int_equal(unit_monitor_add_user(f->monitor, 1001, NULL), 0);
	EXPECT(f, "+/user.slice", "+/user.slice/user-1001.slice");
	/* new patterns: only what differs */
	assert_int_equal(unit_monitor_add_user(f->monitor, 1000, other), 0);
	EXPECT(f, "-" GAME, "+" APP "/other.service");
	unit_monitor_remove_user(f->monitor, 1000);
	unit_monitor_remove_user(f->monitor, 1000);
	drop(f, GAME);
	make(f, "/user.slice/user-1001.slice/a.slice");
	EXPECT(f, "+/user.slice/user-1001.slice/a.slice");
}

static void test_system(void **state)
{
	Fixture *f = *state;
	char *const services[] = { (char *)"ollama*.service", NULL };

	make_session(f);
	make(f, GAME);
	make(f, "/system.slice");
	make(f, "/system.slice/ollama.service");
	make(f, "/system.slice/cron.service");
	assert_int_equal(unit_monitor_add_user(f->monitor, UNIT_UID_NONE, services), 0);
	EXPECT(f, "+/system.slice", "+/system.slice/ollama.service");
	make(f, "/system.slice/system-ollama.slice");
	make(f, "/system.slice/system-ollama.slice/ollama@x.service");
	EXPECT(f, "+/system.slice/system-ollama.slice",
	       "+/system.slice/system-ollama.slice/ollama@x.service");
	drop(f, "/system.slice/ollama.service");
	EXPECT(f, "-/system.slice/ollama.service");
}

/* The callback ends what it is told of, in the middle of the news. */
static void test_reentry(void **state)
{
	Fixture *f = *state;

	make_session(f);
	assert_int_equal(unit_monitor_add_user(f->monitor, 1000, interest), 0);
	f->remove_on_news = true;
	EXPECT(f, "+/user.slice");
}

/* A user fills his tree: the watches end, the daemon goes on. */
static void test_limit(void **state)
{
	Fixture *f = *state;
	char path[PATH_MAX];
	size_t n = 0;

	make_session(f);
	for (int i = 0; i < UNIT_WATCHES_PER_USER + 50; i++) {
		(void)snprintf(path, sizeof(path), APP "/%d.slice", i);
		make(f, path);
	}
	assert_int_equal(unit_monitor_add_user(f->monitor, 1000, interest), 0);
	while (sd_event_run(f->event, 0) > 0)
		while (f->n_news > 0) {
			free(f->news[--f->n_news]);
			n++;
		}
	assert_int_equal(n, UNIT_WATCHES_PER_USER - 1); /* the root is watched, not told */
}

/* More events at once than the kernel keeps: nothing may be lost but the count. */
static void test_overflow(void **state)
{
	Fixture *f = *state;
	auto_fclose FILE *limit = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	char path[PATH_MAX];
	long max = 0;

	if (!limit || fscanf(limit, "%ld", &max) != 1 || max > 100000)
		skip(); /* it would take too long */
	make_session(f);
	make(f, GAME);
	assert_int_equal(unit_monitor_add_user(f->monitor, 1000, interest), 0);
	EXPECT(f, "+/user.slice", "+" TOP, "+" U1000, "+" APP, "+" GAME);
	for (long i = 0; i < max + 16; i++) {
		(void)snprintf(path, sizeof(path), APP "/%ld", i % 8);
		assert_int_equal(i % 16 < 8 ? mkdirat(f->h.root_fd, path + 1, 0755) :
					      unlinkat(f->h.root_fd, path + 1, AT_REMOVEDIR), 0);
	}
	drop(f, GAME);
	make(f, GAME);
	make(f, APP "/app-steam-app9-9.scope");
	EXPECT(f, "-" GAME, "+" GAME, "+" APP "/app-steam-app9-9.scope");
}

static void test_without_bus(void **state)
{
	Fixture *f = *state;

	assert_int_equal(unit_monitor_has_device_memory(f->monitor), 0);
	EXPECT_NOTHING(f);
}

/* --- systemd on a bus ------------------------------------------------------------------------- */

#define SYSTEMD "org.freedesktop.systemd1"
#define OBJECTS "/org/freedesktop/systemd1"

static int on_subscribe(sd_bus_message *call, void *userdata, _unused_ sd_bus_error *error)
{
	Fixture *f = userdata;

	f->n_subscribed++;
	return sd_bus_reply_method_return(call, "");
}

static int get_low(sd_bus *bus _unused_, const char *path _unused_, const char *interface _unused_,
		   const char *property _unused_, sd_bus_message *reply, void *userdata _unused_,
		   sd_bus_error *error _unused_)
{
	return sd_bus_message_append(reply, "a(st)", 0);
}

static const sd_bus_vtable manager_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("Subscribe", "", "", on_subscribe, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_SIGNAL("Reloading", "b", 0),
	SD_BUS_VTABLE_END,
};
static const sd_bus_vtable slice_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_PROPERTY("DeviceMemoryLow", "a(st)", get_low, 0, 0),
	SD_BUS_VTABLE_END,
};

/* Starts a bus of our own, which starts no services; its address comes through a pipe. */
static pid_t start_daemon(const Fixture *f, char *address, size_t size)
{
	static const char conf[] =
		"<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen><auth>EXTERNAL</"
		"auth>"
		"<policy context='default'><allow send_destination='*'/><allow eavesdrop='false'/>"
		"<allow own='*'/></policy></busconfig>";
	auto_close int from = -EBADF, to = -EBADF;
	char file[128], print[32];
	int fds[2];
	pid_t pid;
	ssize_t n;

	(void)snprintf(file, sizeof(file), "--config-file=%s/bus.conf", f->root);
	assert_int_equal(write_atomic_at(f->h.root_fd, "bus.conf", conf, strlen(conf), 0644, NULL), 0);
	assert_int_equal(pipe(fds), 0);
	from = fds[0];
	to = fds[1];
	(void)snprintf(print, sizeof(print), "--print-address=%d", to);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close_fd(from);
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		execlp("dbus-daemon", "dbus-daemon", file, "--nofork", "--nopidfile", print, NULL);
		_exit(127);
	}
	to = close_fd(to);
	n = read(from, address, size - 1);
	address[MAX(n, 0)] = '\0';
	address[strcspn(address, "\n")] = '\0';
	return pid;
}

static sd_bus *connect_bus(sd_event *event, const char *address)
{
	sd_bus *bus;

	assert_true(sd_bus_new(&bus) >= 0);
	assert_true(sd_bus_set_address(bus, address) >= 0);
	assert_true(sd_bus_set_bus_client(bus, true) >= 0);
	assert_true(sd_bus_start(bus) >= 0);
	assert_true(sd_bus_attach_event(bus, event, SD_EVENT_PRIORITY_NORMAL) >= 0);
	return bus;
}

static int setup_bus(void **state)
{
	char address[512];
	Fixture *f;

	assert_int_equal(setup(state), 0);
	f = *state;
	f->daemon = start_daemon(f, address, sizeof(address));
	if (!address[0])
		return 0; /* no dbus-daemon here */
	f->client = connect_bus(f->event, address);
	f->systemd = connect_bus(f->event, address);
	assert_true(sd_bus_add_object_vtable(f->systemd, NULL, OBJECTS, SYSTEMD ".Manager",
					     manager_vtable, f) >= 0);
	unit_monitor_free(f->monitor);
	f->monitor = NULL;
	return 0;
}

static int teardown_bus(void **state)
{
	Fixture *f = *state;
	pid_t daemon = f->daemon;

	f->monitor = unit_monitor_free(f->monitor);
	sd_bus_flush_close_unref(f->client);
	sd_bus_flush_close_unref(f->systemd);
	(void)kill(daemon, SIGTERM);
	(void)waitpid(daemon, NULL, 0);
	return teardown(state);
}

/* Runs the loop until *counter is n; the test fails if it takes too long. */
static void run_until(Fixture *f, const unsigned *counter, unsigned n)
{
	uint64_t start, now;

	assert_true(sd_event_now(f->event, CLOCK_MONOTONIC, &start) >= 0);
	while (*counter < n) {
		assert_true(sd_event_run(f->event, USEC_PER_SEC) >= 0);
		assert_true(sd_event_now(f->event, CLOCK_MONOTONIC, &now) >= 0);
		assert_true(now < start + TIMEOUT);
	}
	assert_int_equal(*counter, n);
}

static int on_pong(_unused_ sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *error)
{
	Fixture *f = userdata;

	f->n_pongs++;
	return 0;
}

/* A round trip from the monitor's connection to systemd's: behind it, the monitor has handled what
 * systemd sent before, and the answers to its calls. An answer that there is no systemd serves too.
 */
static void settle(Fixture *f)
{
	f->n_pongs = 0;
	assert_true(sd_bus_call_method_async(f->client, NULL, SYSTEMD, OBJECTS,
					     "org.freedesktop.DBus.Peer", "Ping", on_pong, f,
					     "") >= 0);
	run_until(f, &f->n_pongs, 1);
}

static void start_monitor(Fixture *f)
{
	assert_int_equal(unit_monitor_new(f->event, f->client, &f->h, on_unit_news, f, &f->monitor),
			 0);
}

static void appear(Fixture *f)
{
	assert_true(sd_bus_request_name(f->systemd, SYSTEMD, 0) >= 0);
}

static void reload(Fixture *f, bool active)
{
	assert_true(sd_bus_emit_signal(f->systemd, OBJECTS, SYSTEMD ".Manager", "Reloading", "b",
				       active) >= 0);
}

/* Waits for the news that systemd reloaded, and that it is the only one. */
static void expect_reloaded(Fixture *f)
{
	unsigned n = 0;

	while (f->n_news == 0 && n++ < 50)
		assert_true(sd_event_run(f->event, USEC_PER_SEC / 10) >= 0);
	EXPECT(f, "!");
}

static void test_reload(void **state)
{
	Fixture *f = *state;

	if (!f->client)
		skip();
	appear(f);
	start_monitor(f);
	run_until(f, &f->n_subscribed, 1);
	reload(f, true);
	settle(f);
	EXPECT_NOTHING(f);
	reload(f, false);
	expect_reloaded(f);
	assert_int_equal(unit_monitor_has_device_memory(f->monitor), 0);
}

/* systemd comes late, and again: each time it must be told to send signals. */
static void test_owner(void **state)
{
	Fixture *f = *state;

	if (!f->client)
		skip();
	start_monitor(f);
	settle(f);
	EXPECT_NOTHING(f);
	appear(f);
	run_until(f, &f->n_subscribed, 1);
	expect_reloaded(f);
	assert_true(sd_bus_release_name(f->systemd, SYSTEMD) >= 0);
	assert_true(sd_bus_add_object_vtable(f->systemd, NULL, OBJECTS "/unit/_2d_2eslice",
					     SYSTEMD ".Slice", slice_vtable, NULL) >= 0);
	appear(f);
	run_until(f, &f->n_subscribed, 2);
	expect_reloaded(f);
	settle(f);
	assert_int_equal(unit_monitor_has_device_memory(f->monitor), 1);
}

/* Freed while its calls are under way: nobody hears of their answers, or of a reload. */
static void test_freed(void **state)
{
	Fixture *f = *state;

	if (!f->client)
		skip();
	appear(f);
	start_monitor(f);
	f->monitor = unit_monitor_free(f->monitor);
	reload(f, false);
	settle(f);
	EXPECT_NOTHING(f);
}

#define BUS_TEST(t) cmocka_unit_test_setup_teardown(t, setup_bus, teardown_bus)
#define MONITOR_TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path),   cmocka_unit_test(test_path_long),
		cmocka_unit_test(test_matches), MONITOR_TEST(test_marked), MONITOR_TEST(test_initial),
		MONITOR_TEST(test_later),      MONITOR_TEST(test_changed),
		MONITOR_TEST(test_removed),    MONITOR_TEST(test_untold),
		MONITOR_TEST(test_users),
		MONITOR_TEST(test_system),     MONITOR_TEST(test_reentry),
		MONITOR_TEST(test_limit),      MONITOR_TEST(test_overflow),
		MONITOR_TEST(test_without_bus), BUS_TEST(test_reload),
		BUS_TEST(test_owner),          BUS_TEST(test_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
