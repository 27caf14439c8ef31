/* SPDX-License-Identifier: MIT */
/* Any X server with a window manager: _NET_ACTIVE_WINDOW, and the server's own word for whose window that is.
 *
 * _NET_WM_PID is not asked: it is what the client says, and that is a number of its own sandbox's pid namespace or of
 * another machine where it differs from what the server says. */
#include <glob.h>

#include "app-id.h"
#include "process-ref.h"
#include "source.h"
#include "x-place.h"
#include "xserver.h"

#define CLASS_WORDS_MAX 32 /* of the window's two names, 128 bytes */

/* Window managers say "none" for a moment at each switch; the daemon waits longer before it believes it. */
#define DEBOUNCE_USEC (10 * USEC_PER_MSEC)

enum { ATOM_ACTIVE, ATOM_MANAGER, ATOM_GAMESCOPE, _ATOM_MAX };

static const char *const atom_names[_ATOM_MAX] = {
	[ATOM_ACTIVE] = "_NET_ACTIVE_WINDOW",
	[ATOM_MANAGER] = "_NET_SUPPORTING_WM_CHECK",
	[ATOM_GAMESCOPE] = "GAMESCOPE_XWAYLAND_SERVER_ID",
};

typedef struct X11 {
	Source *source;
	XServer *x;
	xcb_atom_t atoms[_ATOM_MAX];
	enum { PHASE_ATOMS, PHASE_ACTIVE, PHASE_PID } phase; /* what was asked last */
	bool dirty;
	sd_event_source *debounce;
	ProcessSet processes;
	State state;
} X11;

static bool is_wayland(void)
{
	return *strempty(getenv("WAYLAND_DISPLAY")) || streq(strempty(getenv("XDG_SESSION_TYPE")), "wayland");
}

/* --- Where -------------------------------------------------------------------------------------- */

static int x11_probe(Probe *p)
{
	/* There vramd reads the shell's own marks, and to ask Xwayland would only start it. */
	if (is_wayland() && strstr(strempty(getenv("XDG_CURRENT_DESKTOP")), "GNOME"))
		return 0;
	/* Any Xwayland of a desktop may be such a one. */
	if (is_wayland() && !getenv("DISPLAY"))
		return 0;
	return getenv("DISPLAY") ? x_place_probe_own(p) : x_places_probe(p);
}

static int add_file(char **list, size_t n, size_t max, const char *path)
{
	if (n + 1 >= max)
		return (int)n;
	list[n] = strdup(path);
	return list[n] ? (int)n + 1 : -ENOMEM;
}

/* A user's service often lacks the session's XAUTHORITY=, so the places of the display managers are looked at. */
static int find_cookies(char **list, size_t max)
{
	static const char *const patterns[] = { "xauth_*", ".mutter-Xwaylandauth.*", "gdm/Xauthority" };
	const char *own = getenv("XAUTHORITY"), *home = getenv("HOME"), *runtime_dir = getenv("XDG_RUNTIME_DIR");
	int n = 0;

	if (own)
		n = add_file(list, 0, max, own);
	for (size_t i = 0; n >= 0 && runtime_dir && i < ARRAY_SIZE(patterns); i++) {
		auto_free char *pattern = NULL;
		glob_t g = {};

		if (asprintf(&pattern, "%s/%s", runtime_dir, patterns[i]) < 0)
			return -ENOMEM;
		if (glob(pattern, 0, NULL, &g) == 0)
			for (size_t k = 0; n >= 0 && k < g.gl_pathc; k++)
				n = add_file(list, (size_t)n, max, g.gl_pathv[k]);
		globfree(&g);
	}
	if (n >= 0 && home) {
		auto_free char *path = NULL;

		if (asprintf(&path, "%s/.Xauthority", home) < 0)
			return -ENOMEM;
		n = add_file(list, (size_t)n, max, path);
	}
	return n;
}

/* --- State -------------------------------------------------------------------------------------- */

static void set_state(X11 *g, Front front, pid_t pid, uint32_t appid)
{
	g->state = (State){ .front = front, .appid = appid, .game.pidfd = -EBADF, .compositor.pidfd = -EBADF };
	process_set_begin(&g->processes);
	if (front == FRONT_PROCESS && process_set_get(&g->processes, pid, boottime_usec(), &g->state.game) < 0)
		g->state = (State){ .game.pidfd = -EBADF, .compositor.pidfd = -EBADF };
	process_set_end(&g->processes);
	source_changed(g->source);
}

static void ask_active(X11 *g)
{
	xcb_window_t root = xserver_get_root(g->x);

	g->dirty = false;
	g->phase = PHASE_ACTIVE;
	for (size_t i = 0; i < _ATOM_MAX; i++)
		xserver_ask_property(g->x, root, g->atoms[i], 1);
	xserver_send(g->x);
}

/* Some window managers leave the name of a window that is gone, and without a word when it goes. It is watched each
 * time: the next one may have its number. */
static void ask_pid(X11 *g, xcb_window_t window)
{
	g->phase = PHASE_PID;
	xserver_watch_window(g->x, window);
	xserver_ask_pid(g->x, window);
	xserver_ask_property(g->x, window, XCB_ATOM_WM_CLASS, CLASS_WORDS_MAX);
	xserver_send(g->x);
}

static Front nobody(void)
{
	/* Under Wayland it may be a window that X does not know. */
	return is_wayland() ? FRONT_UNKNOWN : FRONT_NOBODY;
}

static void take_active(X11 *g)
{
	const uint32_t *active, *words;
	size_t n;

	if (xserver_get_words(g->x, ATOM_GAMESCOPE, &words, &n)) {
		source_failed(g->source, -ENODEV, "gamescope's, which says more itself");
	} else if (xserver_get_words(g->x, ATOM_ACTIVE, &active, &n) && n > 0 && active[0] != XCB_WINDOW_NONE) {
		ask_pid(g, active[0]);
	} else {
		/* Without a window manager it is never said. */
		set_state(g, xserver_get_words(g->x, ATOM_MANAGER, &words, &n) ? nobody() : FRONT_UNKNOWN, 0, 0);
	}
}

/* Steam's number in WM_CLASS, which is instance and class, each with a 0 behind it. */
static uint32_t get_appid(const X11 *g)
{
	const char *text, *class;
	char name[4 * CLASS_WORDS_MAX];
	size_t size;

	if (!xserver_get_text(g->x, 1, &text, &size))
		return 0;
	class = memchr(text, '\0', size);
	if (!class || size > sizeof(name))
		return 0;
	class++;
	size -= (size_t)(class - text);
	memcpy(name, class, size);
	name[size] = '\0'; /* there is room: the instance's 0 is not copied */
	return app_id_get_steam(name);
}

static void take_pid(X11 *g)
{
	pid_t pid = xserver_get_pid(g->x, 0);

	if (xserver_is_error(g->x, 1))
		set_state(g, nobody(), 0, 0);
	else if (pid > 0)
		set_state(g, FRONT_PROCESS, pid, get_appid(g));
	else
		set_state(g, FRONT_UNKNOWN, 0, 0);
}

static void take_atoms(X11 *g)
{
	for (size_t i = 0; i < _ATOM_MAX; i++)
		g->atoms[i] = xserver_get_atom(g->x, i);
	xserver_watch(g->x); /* first: no change after what is read now is missed */
	ask_active(g);
}

/* --- Conversation ------------------------------------------------------------------------------- */

static int on_debounce(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	X11 *g = userdata;

	xserver_resume(g->x);
	g->debounce = sd_event_source_disable_unref(g->debounce);
	ask_active(g);
	return 0;
}

static void ask_later(X11 *g)
{
	int r;

	if (g->debounce)
		return;
	r = sd_event_add_time_relative(source_get_event(g->source), &g->debounce, CLOCK_MONOTONIC, DEBOUNCE_USEC,
				       USEC_PER_MSEC, on_debounce, g);
	if (r < 0)
		source_failed(g->source, r, "no timer");
	xserver_pause(g->x);
}

static void on_answered(XServer *x, void *userdata)
{
	X11 *g = userdata;

	if (g->phase == PHASE_ATOMS)
		take_atoms(g);
	else if (g->phase == PHASE_ACTIVE)
		take_active(g);
	else
		take_pid(g);
	if (g->dirty && !xserver_is_waiting(x))
		ask_later(g);
}

static bool is_of_interest(const X11 *g, xcb_atom_t atom)
{
	for (size_t i = 0; i < _ATOM_MAX; i++)
		if (g->atoms[i] == atom)
			return true;
	return atom == XCB_ATOM_NONE;
}

static void on_changed(XServer *x, xcb_atom_t atom, void *userdata)
{
	X11 *g = userdata;

	if (g->phase == PHASE_ATOMS || !is_of_interest(g, atom))
		return;
	g->dirty = true;
	if (!xserver_is_waiting(x))
		ask_later(g);
}

static void on_ended(XServer *x _unused_, void *userdata)
{
	X11 *g = userdata;

	source_failed(g->source, -ECONNRESET, "the X server has ended, or does not answer");
}

/* --- Life --------------------------------------------------------------------------------------- */

static void x11_stop(void *data)
{
	X11 *g = data;

	sd_event_source_disable_unref(g->debounce);
	xserver_close(g->x);
	process_set_done(&g->processes);
	free(g);
}

static int x11_start(Source *s, const char *place, void **ret_data)
{
	static const XCallbacks callbacks = { on_answered, on_changed, on_ended };
	auto_strv char **files = calloc(16, sizeof(*files));
	X11 *g = calloc(1, sizeof(*g));
	int r = -ENOMEM;

	if (files && g) {
		g->source = s;
		g->state.game.pidfd = g->state.compositor.pidfd = -EBADF;
		r = find_cookies(files, 16);
	}
	if (r >= 0)
		r = x_place_open(source_get_event(s), place, files, &callbacks, g, &g->x);
	if (r < 0) {
		free(g);
		return r;
	}
	for (size_t i = 0; i < _ATOM_MAX; i++)
		xserver_ask_atom(g->x, atom_names[i]);
	xserver_send(g->x);
	*ret_data = g;
	return 0;
}

static void x11_read(void *data, State *ret)
{
	const X11 *g = data;

	*ret = g->state;
}

const SourceType source_x11 = {
	.name = "x11",
	.rank = 4,
	.any_window = true,
	.last_resort = true,
	.probe = x11_probe,
	.start = x11_start,
	.read = x11_read,
	.stop = x11_stop,
};
