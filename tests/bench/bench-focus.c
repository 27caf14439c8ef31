/* SPDX-License-Identifier: MIT */
/* bench-focus: from the properties that gamescope writes to dmem.low of the game that is now in front.
 *
 * It is gamescope itself, on a server of the user's, and the games take turns. The end of a change is heard by inotify
 * in the game's control group. Beside it, in the same round, the floor: a second connection to the same server hears
 * of the change and reads the properties, which is the least that anybody who watches has to do. */
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <xcb/xcb.h>

#include "figures.h"
#include "fileio.h"
#include "parse.h"

#define XID 0x400000
#define APPID 1000
#define STEAM 769
#define WAIT_MSEC 3000
/* A change is one report: this is below the 20 a second that vramd applies. */
#define REST_USEC 110000

enum { APP, APP_GFX, WINDOW, DISPLAY, APPS, WINDOWS, _PROPERTY_MAX };
static const char *const names[_PROPERTY_MAX] = {
	[APP] = "GAMESCOPE_FOCUSED_APP",
	[APP_GFX] = "GAMESCOPE_FOCUSED_APP_GFX",
	[WINDOW] = "GAMESCOPE_FOCUSED_WINDOW",
	[DISPLAY] = "GAMESCOPE_FOCUS_DISPLAY",
	[APPS] = "GAMESCOPE_FOCUSABLE_APPS",
	[WINDOWS] = "GAMESCOPE_FOCUSABLE_WINDOWS",
};

typedef struct Game {
	uint32_t pid;
	int dir;
	int inotify;
} Game;

static struct {
	xcb_connection_t *writer, *watcher;
	xcb_window_t root;
	xcb_atom_t atoms[_PROPERTY_MAX];
	Game games[2];
	uint32_t rounds, debounce_msec;
	bool by_floor; /* the mark: where a system call costs a multiple, milliseconds say nothing */
	double *reaction, *floor;
} bench = { .rounds = 1000, .debounce_msec = 10 };

static _Noreturn void die(const char *text, const char *what)
{
	(void)fprintf(stderr, "bench-focus: %s %s\n", text, what);
	exit(EXIT_FAILURE);
}

/* --- gamescope ---------------------------------------------------------------------------------- */

static xcb_connection_t *connect_to(const char *display)
{
	xcb_connection_t *c = xcb_connect(display, NULL);

	if (xcb_connection_has_error(c))
		die("no X server", display);
	return c;
}

static xcb_atom_t atom_of(const char *name)
{
	xcb_intern_atom_reply_t *reply = xcb_intern_atom_reply(
		bench.writer, xcb_intern_atom(bench.writer, 0, (uint16_t)strlen(name), name), NULL);
	xcb_atom_t atom;

	if (!reply)
		die("no atom", name);
	atom = reply->atom;
	free(reply);
	return atom;
}

static void put(xcb_atom_t atom, uint32_t n, const uint32_t *v)
{
	xcb_change_property(bench.writer, XCB_PROP_MODE_REPLACE, bench.root, atom, XCB_ATOM_CARDINAL, 32, n, v);
}

static void become_gamescope(const char *display)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint32_t id = 0, pid = (uint32_t)getpid(), mask = XCB_EVENT_MASK_PROPERTY_CHANGE;

	(void)prctl(PR_SET_NAME, "gamescope-wl");
	bench.writer = connect_to(display);
	bench.watcher = connect_to(display);
	bench.root = xcb_setup_roots_iterator(xcb_get_setup(bench.writer)).data->root;
	for (size_t i = 0; i < _PROPERTY_MAX; i++)
		bench.atoms[i] = atom_of(names[i]);
	put(atom_of("GAMESCOPE_XWAYLAND_SERVER_ID"), 1, &id);
	put(atom_of("GAMESCOPE_PID"), 1, &pid);
	(void)xcb_flush(bench.writer);
	xcb_change_window_attributes(bench.watcher, bench.root, XCB_CW_EVENT_MASK, &mask);
	(void)xcb_flush(bench.watcher);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/gamescope-0", getenv("XDG_RUNTIME_DIR"));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0)
		die("cannot make", address.sun_path);
}

static void show(int side)
{
	const uint32_t app = APPID + (uint32_t)side, window = XID + (uint32_t)side, display[] = { 12346, 0xdead, 0xbeef };
	const uint32_t apps[] = { APPID, APPID + 1 };
	const uint32_t windows[] = { XID, APPID, bench.games[0].pid, XID + 1, APPID + 1, bench.games[1].pid };

	put(bench.atoms[APPS], ARRAY_SIZE(apps), apps);
	put(bench.atoms[WINDOWS], ARRAY_SIZE(windows), windows);
	put(bench.atoms[APP], 1, &app);
	put(bench.atoms[APP_GFX], 1, &app);
	put(bench.atoms[WINDOW], 1, &window);
	put(bench.atoms[DISPLAY], ARRAY_SIZE(display), display);
	(void)xcb_flush(bench.writer);
}

/* --- Hearing ------------------------------------------------------------------------------------ */

static void parse_game(char *arg, const char *cgroup, Game *g)
{
	char *group = arg, path[4096];

	if (parse_u32(strsep(&group, ":"), &g->pid) < 0 || !group)
		die("not PID:GROUP:", arg);
	(void)snprintf(path, sizeof(path), "%s%s", cgroup, group);
	g->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	g->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (g->dir < 0 || inotify_add_watch(g->inotify, path, IN_MODIFY) < 0)
		die("cannot watch", path);
}

/* It has something of each region; one that waits has its part of what it uses, and that is of one region. */
static bool is_in_front(const Game *g)
{
	auto_free char *text = NULL;
	bool any = false;

	if (read_piece_at(g->dir, "dmem.low", 64 * KIB, &text) < 0)
		return false;
	for (char *s = text; (s = strchr(s, ' ')); any = true, s++)
		if (s[1] == '0')
			return false;
	return any;
}

static void drain(const Game *g)
{
	char buf[4096];

	while (read(g->inotify, buf, sizeof(buf)) > 0)
		;
}

/* The last of the properties: then all are there to be read. */
static bool has_last_event(void)
{
	xcb_generic_event_t *event;
	bool last = false;

	while ((event = xcb_poll_for_event(bench.watcher))) {
		const xcb_property_notify_event_t *p = (const void *)event;

		last = last || (event->response_type == XCB_PROPERTY_NOTIFY && p->atom == bench.atoms[DISPLAY]);
		free(event);
	}
	return last;
}

static void read_properties(void)
{
	xcb_get_property_cookie_t cookies[_PROPERTY_MAX];

	for (size_t i = 0; i < _PROPERTY_MAX; i++)
		cookies[i] = xcb_get_property(bench.watcher, 0, bench.root, bench.atoms[i], XCB_ATOM_ANY, 0, 64);
	for (size_t i = 0; i < _PROPERTY_MAX; i++)
		free(xcb_get_property_reply(bench.watcher, cookies[i], NULL));
}

/* One change; false if it does not come to its end. */
static bool change(int side, double *ret_reaction, double *ret_floor)
{
	const Game *g = &bench.games[side];
	double start, end;

	drain(g);
	(void)has_last_event();
	*ret_reaction = *ret_floor = 0;
	start = now_usec();
	show(side);
	while (*ret_reaction == 0 || *ret_floor == 0) {
		struct pollfd p[] = { { .fd = g->inotify, .events = POLLIN },
				      { .fd = xcb_get_file_descriptor(bench.watcher), .events = POLLIN } };

		if (poll(p, 2, WAIT_MSEC) <= 0)
			return false;
		end = now_usec();
		if (p[1].revents && *ret_floor == 0 && has_last_event()) {
			read_properties();
			*ret_floor = now_usec() - start;
		}
		if (p[0].revents && *ret_reaction == 0) {
			drain(g);
			if (is_in_front(g))
				*ret_reaction = end - start;
		}
	}
	return true;
}

/* --- Figures ------------------------------------------------------------------------------------ */

static double msec(double *usec, double q)
{
	return quantile(usec, bench.rounds, q) / 1000;
}

static int print_mark(const char *what, double value, const char *unit, double limit)
{
	bool ok = value <= limit;

	(void)printf("%s: %.3f%s (mark: <= %.0f) %s\n", what, value, unit, limit, ok ? "ok" : "short");
	return ok ? EXIT_SUCCESS : EXIT_SHORT;
}

static int print(void)
{
	double floor = msec(bench.floor, 0.5), p50 = msec(bench.reaction, 0.5), p99 = msec(bench.reaction, 0.99);

	(void)printf("changes: %u\n", bench.rounds);
	(void)printf("floor p50: %.3f ms\nfloor p99: %.3f ms\n", floor, msec(bench.floor, 0.99));
	(void)printf("reaction p50: %.3f ms\n", p50);
	if (!bench.by_floor)
		return print_mark("reaction p99", p99, " ms", bench.debounce_msec + 5);
	(void)printf("reaction p99: %.3f ms\n", p99);
	return print_mark("reaction but for the debounce / floor", (p50 - bench.debounce_msec) / floor, "", 4);
}

static void usage(void)
{
	die("usage: bench-focus [--rounds=N] [--by-floor] [--cgroup=DIR] --display=D PID:GROUP", "PID:GROUP");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "by-floor", no_argument, NULL, 'f' },
		{ "cgroup", required_argument, NULL, 'c' },
		{ "display", required_argument, NULL, 'd' },
		{},
	};
	const char *cgroup = "/sys/fs/cgroup", *display = NULL;
	double first[2];
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 'c')
			cgroup = optarg;
		else if (c == 'd')
			display = optarg;
		else if (c == 'f')
			bench.by_floor = true;
		else if (c != 'r' || parse_u32(optarg, &bench.rounds) < 0 || bench.rounds == 0)
			usage();
	}
	if (argc - optind != 2 || !display)
		usage();
	bench.reaction = calloc(bench.rounds, sizeof(double));
	bench.floor = calloc(bench.rounds, sizeof(double));
	if (!bench.reaction || !bench.floor)
		die("no", "memory");
	become_gamescope(display);
	for (int i = 0; i < 2; i++)
		parse_game(argv[optind + i], cgroup, &bench.games[i]);
	/* The first ones find the agent, and switch dmem on. */
	for (int i = 0; i < 6; i++) {
		(void)change(i % 2, &first[0], &first[1]);
		(void)usleep(REST_USEC);
	}
	for (uint32_t i = 0; i < bench.rounds; i++) {
		if (!change((int)(i % 2), &bench.reaction[i], &bench.floor[i]))
			die("a change", "was lost");
		(void)usleep(REST_USEC);
	}
	return print();
}
