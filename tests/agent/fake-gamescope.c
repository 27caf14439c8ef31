/* SPDX-License-Identifier: MIT */
/* fake-gamescope [--old] [--late] DISPLAY...: marks X servers as gamescope does and writes the properties that tell of
 * the focus, with all the quirks of the real one. Commands on standard input, one a line; each is answered by
 * "ok NANOSECONDS": CLOCK_MONOTONIC before the properties were sent. "-" is an empty property.
 *
 *   steam GFX APP WINDOW DISPLAY [XID:APPID:PID]...   as with --steam
 *   plain WINDOW DISPLAY [XID:APPID:PID]...           as without
 *   again N MICROSECONDS                              the same values N times more, so far apart
 *   noise N MICROSECONDS                              what changes with each input
 *   raw NAME FORMAT HEX                               any value of any kind
 *   mark                                              what --late left out: the marks
 *   forget                                            deletes what tells of the focus
 *   window DISPLAY                                    shows its own window there, as a nested one does
 *
 * --old: no GAMESCOPE_PID. Quirks: values are written one by one and anew although they are equal, empty properties
 * instead of none, the display's name in items of 32 bits with stray memory behind. test_recorded.py
 * compares with what the real one wrote. */
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <xcb/xcb.h>

#include "parse.h"

#define SERVERS_MAX 4
#define WORDS_MAX 512

typedef struct Server {
	xcb_connection_t *connection;
	xcb_window_t root;
} Server;

typedef struct Words {
	uint32_t v[WORDS_MAX];
	uint32_t n;
	bool set;
} Words;

static Server servers[SERVERS_MAX];
static size_t n_servers;
static struct {
	Words app, gfx, window, display, apps, windows;
} now;
static const char *const focus_names[] = {
	"GAMESCOPE_FOCUSABLE_APPS",  "GAMESCOPE_FOCUSABLE_WINDOWS", "GAMESCOPE_FOCUSED_APP",
	"GAMESCOPE_FOCUSED_APP_GFX", "GAMESCOPE_FOCUSED_WINDOW",    "GAMESCOPE_FOCUS_DISPLAY",
};

static _Noreturn void die(const char *text)
{
	(void)fprintf(stderr, "fake-gamescope: %s\n", text);
	exit(EXIT_FAILURE);
}

static uint64_t now_nsec(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static xcb_atom_t atom_of(Server *s, const char *name)
{
	xcb_intern_atom_reply_t *reply =
		xcb_intern_atom_reply(s->connection, xcb_intern_atom(s->connection, 0, (uint16_t)strlen(name), name),
				      NULL);
	xcb_atom_t atom;

	if (!reply)
		die("the X server is gone");
	atom = reply->atom;
	free(reply);
	return atom;
}

static void put(Server *s, const char *name, const void *data, uint8_t format, uint32_t n)
{
	xcb_change_property(s->connection, XCB_PROP_MODE_REPLACE, s->root, atom_of(s, name), XCB_ATOM_CARDINAL, format,
			    n, data);
}

/* Every request before it has been done by the server. */
static void sync_with(Server *s)
{
	free(xcb_get_input_focus_reply(s->connection, xcb_get_input_focus(s->connection), NULL));
}

static void connect_to(const char *display)
{
	Server *s = &servers[n_servers];

	if (n_servers == SERVERS_MAX)
		die("too many servers");
	s->connection = xcb_connect(display, NULL);
	if (xcb_connection_has_error(s->connection))
		die("no X server");
	s->root = xcb_setup_roots_iterator(xcb_get_setup(s->connection)).data->root;
	/* Interned beforehand, so that "show" needs no round trips between the properties. */
	for (size_t i = 0; i < ARRAY_SIZE(focus_names); i++)
		(void)atom_of(s, focus_names[i]);
	n_servers++;
}

static void mark(bool old)
{
	uint32_t pid = (uint32_t)getpid();

	for (uint32_t i = 0; i < n_servers; i++) {
		put(&servers[i], "GAMESCOPE_XWAYLAND_SERVER_ID", &i, 32, 1);
		if (!old)
			put(&servers[i], "GAMESCOPE_PID", &pid, 32, 1);
		sync_with(&servers[i]);
	}
}

/* The socket of its Wayland server. */
static void make_socket(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const char *dir = getenv("XDG_RUNTIME_DIR");

	for (unsigned i = 0; dir && i < 10; i++) {
		(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/gamescope-%u", dir, i);
		if (bind(fd, (struct sockaddr *)&address, sizeof(address)) >= 0) {
			if (listen(fd, 8) < 0)
				break;
			return;
		}
	}
	die("no socket in XDG_RUNTIME_DIR");
}

/* --- The focus ---------------------------------------------------------------------------------- */

static uint64_t send_focus(void)
{
	const Words *all[] = { &now.apps, &now.windows, &now.app, &now.gfx, &now.window, &now.display };
	static xcb_atom_t atoms[ARRAY_SIZE(focus_names)];
	Server *s = &servers[0];
	uint64_t before;

	for (size_t i = 0; i < ARRAY_SIZE(focus_names); i++)
		atoms[i] = atoms[i] ? atoms[i] : atom_of(s, focus_names[i]);
	before = now_nsec();
	for (size_t i = 0; i < ARRAY_SIZE(focus_names); i++)
		if (all[i]->set)
			xcb_change_property(s->connection, XCB_PROP_MODE_REPLACE, s->root, atoms[i], XCB_ATOM_CARDINAL,
					    32, all[i]->n, all[i]->v);
	(void)xcb_flush(s->connection);
	return before;
}

static uint32_t number(const char *s)
{
	uint32_t v;

	if (!s || parse_u32(s, &v) < 0)
		die("a number is wrong");
	return v;
}

static void set_word(Words *w, const char *s)
{
	w->set = true;
	w->n = 0;
	if (s && !streq(s, "-"))
		w->v[w->n++] = number(s);
}

/* gamescope hands a text to a function that takes longs. */
static void set_display(const char *name)
{
	now.display.set = true;
	now.display.n = (uint32_t)strlen(name) + 1;
	for (uint32_t i = 0; i < now.display.n; i++)
		now.display.v[i] = 0xdead0000 + i;
	now.display.v[0] = 0;
	memcpy(now.display.v, name, MIN(strlen(name), sizeof(uint32_t)));
}

static void add_app(uint32_t appid)
{
	for (uint32_t i = 0; i < now.apps.n; i++)
		if (now.apps.v[i] == appid)
			return;
	now.apps.v[now.apps.n++] = appid;
}

static void set_windows(char **save)
{
	now.apps.set = now.windows.set = true;
	now.apps.n = now.windows.n = 0;
	for (char *word; (word = strtok_r(NULL, " ", save)) && now.windows.n + 3 <= WORDS_MAX;) {
		char *rest = word;

		for (int i = 0; i < 3; i++)
			now.windows.v[now.windows.n++] = number(strsep(&rest, ":"));
		add_app(now.windows.v[now.windows.n - 2]);
	}
}

static uint64_t do_focus(bool steam, char **save)
{
	if (steam) {
		set_word(&now.gfx, strtok_r(NULL, " ", save));
		set_word(&now.app, strtok_r(NULL, " ", save));
	}
	set_word(&now.window, strtok_r(NULL, " ", save));
	set_display(strempty(strtok_r(NULL, " ", save)));
	set_windows(save);
	return send_focus();
}

static uint64_t do_many(bool noise, char **save)
{
	uint32_t n = number(strtok_r(NULL, " ", save)), usec = number(strtok_r(NULL, " ", save));
	uint64_t before = now_nsec();

	for (uint32_t i = 0; i < n; i++) {
		if (noise) {
			put(&servers[0], "GAMESCOPE_INPUT_COUNTER", &i, 32, 1);
			(void)xcb_flush(servers[0].connection);
		} else {
			(void)send_focus();
		}
		if (usec > 0)
			(void)usleep(usec);
	}
	return before;
}

static uint64_t do_raw(char **save)
{
	const char *name = strtok_r(NULL, " ", save);
	uint32_t format = number(strtok_r(NULL, " ", save));
	const char *hex = strempty(strtok_r(NULL, " ", save));
	uint8_t data[256];
	uint32_t n = 0;

	for (; hex[2 * n] && hex[2 * n + 1] && n < sizeof(data); n++) {
		char byte[3] = { hex[2 * n], hex[2 * n + 1], '\0' };

		data[n] = (uint8_t)strtoul(byte, NULL, 16);
	}
	if (!name)
		die("a name is missing");
	put(&servers[0], name, data, (uint8_t)format, n * 8 / format);
	return now_nsec();
}

static uint64_t do_forget(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(focus_names); i++)
		xcb_delete_property(servers[0].connection, servers[0].root, atom_of(&servers[0], focus_names[i]));
	memset(&now, 0, sizeof(now));
	return now_nsec();
}

/* The connection is kept: the window goes with it. */
static uint64_t do_window(char **save)
{
	static const char class[] = "gamescope\0gamescope"; /* with the NUL at its end */
	xcb_connection_t *c = xcb_connect(strtok_r(NULL, " ", save), NULL);
	const xcb_screen_t *screen;
	xcb_window_t window;

	if (xcb_connection_has_error(c))
		die("no X server for the window");
	screen = xcb_setup_roots_iterator(xcb_get_setup(c)).data;
	window = xcb_generate_id(c);
	xcb_create_window(c, XCB_COPY_FROM_PARENT, window, screen->root, 0, 0, 100, 100, 0,
			  XCB_WINDOW_CLASS_INPUT_OUTPUT, screen->root_visual, 0, NULL);
	xcb_change_property(c, XCB_PROP_MODE_REPLACE, window, XCB_ATOM_WM_CLASS, XCB_ATOM_STRING, 8, sizeof(class),
			    class);
	xcb_map_window(c, window);
	free(xcb_get_input_focus_reply(c, xcb_get_input_focus(c), NULL));
	return now_nsec();
}

static void obey(char *line, bool old)
{
	char *save = NULL, *verb = strtok_r(line, " \n", &save);
	uint64_t before = now_nsec();

	if (!verb)
		return;
	line[strcspn(line, "\n")] = '\0';
	if (save)
		save[strcspn(save, "\n")] = '\0';
	if (streq(verb, "steam") || streq(verb, "plain"))
		before = do_focus(streq(verb, "steam"), &save);
	else if (streq(verb, "again") || streq(verb, "noise"))
		before = do_many(streq(verb, "noise"), &save);
	else if (streq(verb, "raw"))
		before = do_raw(&save);
	else if (streq(verb, "forget"))
		before = do_forget();
	else if (streq(verb, "window"))
		before = do_window(&save);
	else if (streq(verb, "mark"))
		mark(old);
	else
		die("no such command");
	sync_with(&servers[0]);
	(void)printf("ok %llu\n", (unsigned long long)before);
	(void)fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[4096];
	bool old = false, late = false;

	(void)prctl(PR_SET_NAME, "gamescope-wl");
	for (int i = 1; i < argc; i++) {
		if (streq(argv[i], "--old"))
			old = true;
		else if (streq(argv[i], "--late"))
			late = true;
		else
			connect_to(argv[i]);
	}
	if (n_servers == 0)
		die("which DISPLAY?");
	make_socket();
	if (!late)
		mark(old);
	(void)printf("ok 0\n");
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		obey(line, old);
	return EXIT_SUCCESS;
}
