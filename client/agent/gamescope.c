/* SPDX-License-Identifier: MIT */
/* gamescope, by the properties of the root window of its first Xwayland server. */
#include <sys/epoll.h>

#include "gamescope-parse.h"
#include "parse.h"
#include "process-ref.h"
#include "source.h"
#include "x-place.h"
#include "xserver.h"

/* The properties are written one by one, and again with each look at the focus, whether or not they changed. */
#define DEBOUNCE_USEC (10 * USEC_PER_MSEC)
/* After a look that showed nothing new; only for so long, as one such look follows each change. */
#define DEBOUNCE_STORM_USEC (50 * USEC_PER_MSEC)
#define STORM_USEC (200 * USEC_PER_MSEC)
/* A server that is not marked may become gamescope's: it marks them a moment after it started them. To be the first
 * client to leave would end such a server (-terminate), and gamescope with it. */
#define MARK_WAIT_USEC (10 * USEC_PER_SEC)
#define WINDOWS_MAX 1024

enum { ATOM_SERVER_ID, ATOM_PID, ATOM_APP, ATOM_APP_GFX, ATOM_WINDOW, ATOM_WINDOWS, _ATOM_MAX };

static const char *const atom_names[_ATOM_MAX] = {
	[ATOM_SERVER_ID] = "GAMESCOPE_XWAYLAND_SERVER_ID",
	[ATOM_PID] = "GAMESCOPE_PID",
	[ATOM_APP] = "GAMESCOPE_FOCUSED_APP",
	[ATOM_APP_GFX] = "GAMESCOPE_FOCUSED_APP_GFX",
	[ATOM_WINDOW] = "GAMESCOPE_FOCUSED_WINDOW",
	[ATOM_WINDOWS] = "GAMESCOPE_FOCUSABLE_WINDOWS",
};

typedef struct Gamescope {
	Source *source;
	XServer *x;
	xcb_atom_t atoms[_ATOM_MAX];
	enum { PHASE_ATOMS, PHASE_MARK, PHASE_FOCUS } phase;
	bool dirty; /* something was written since the last look began */
	uint64_t in_vain_usec; /* when a look last showed nothing new (CLOCK_BOOTTIME) */
	sd_event_source *timer; /* debounce, or the wait for the mark */
	ProcessSet processes;
	ProcessRef compositor;
	uint32_t compositor_told; /* the number that its property had, 0 = none */
	sd_event_source *compositor_end;
	bool looked;
	GamescopeView view;
	State state;
} Gamescope;

/* --- Where -------------------------------------------------------------------------------------- */

static bool is_gamescope_socket(const char *name)
{
	const char *number = startswith(name, "gamescope-");
	uint32_t n;

	return number && parse_u32(number, &n) >= 0;
}

/* To connect to an Xwayland that is not there yet starts it. So without any gamescope of this user's, which is seen by
 * its own socket, no X server is asked. */
static int has_gamescope(const char *runtime_dir)
{
	auto_closedir DIR *d = opendir(runtime_dir);
	struct dirent *de;

	while (d && (de = readdir(d)))
		if (is_gamescope_socket(de->d_name))
			return 1;
	return 0;
}

static int gamescope_probe(Probe *p)
{
	const char *runtime_dir = getenv("XDG_RUNTIME_DIR");
	int r;

	if (!runtime_dir)
		return 0;
	r = probe_watch(p, runtime_dir);
	if (r < 0 || !has_gamescope(runtime_dir))
		return r;
	return x_places_probe(p);
}

/* --- State -------------------------------------------------------------------------------------- */

static Cardinals get_cardinals(const Gamescope *g, size_t place)
{
	Cardinals c = {};

	c.present = xserver_get_words(g->x, place, &c.v, &c.n);
	return c;
}

static int on_compositor_end(sd_event_source *s _unused_, int fd _unused_, uint32_t revents _unused_, void *userdata)
{
	Gamescope *g = userdata;

	(void)sd_event_source_set_enabled(g->compositor_end, SD_EVENT_OFF);
	source_failed(g->source, -ECONNRESET, "gamescope has ended");
	return 0;
}

static void set_compositor(Gamescope *g, uint32_t told, uint64_t now)
{
	static const char comm[] = "gamescope";
	pid_t pid = told <= INT32_MAX ? (pid_t)told : 0;
	uid_t uid;
	int r = -ESRCH;

	g->compositor_told = told;
	g->compositor_end = sd_event_source_disable_unref(g->compositor_end);
	close_fd(g->compositor.pidfd);
	g->compositor = (ProcessRef){ 0, -EBADF };
	/* Any client may have written it; and old versions do not. Who listens for clients is gamescope too. */
	if (pid > 0)
		r = process_ref_open(pid, now, comm, &g->compositor);
	if (r < 0)
		r = process_ref_open(xserver_get_peer(g->x, &uid), now, comm, &g->compositor);
	if (r >= 0)
		r = sd_event_add_io(source_get_event(g->source), &g->compositor_end, g->compositor.pidfd, EPOLLIN,
				    on_compositor_end, g);
	g->state.nested = r >= 0 && process_ref_is_nested(&g->compositor);
}

static void set_state(Gamescope *g, const GamescopeView *v, uint64_t now)
{
	State *s = &g->state;
	ProcessRef p;

	process_set_begin(&g->processes);
	s->front = v->front;
	s->game = (ProcessRef){ 0, -EBADF };
	if (v->front == FRONT_PROCESS && process_set_get(&g->processes, v->pid, now, &s->game) < 0)
		s->front = FRONT_UNKNOWN;
	s->appid = s->front == FRONT_PROCESS ? v->appid : 0;
	s->menu = v->menu;
	s->n_running = 0;
	for (size_t i = 0; i < v->n_running; i++)
		if (process_set_get(&g->processes, v->running[i], now, &p) >= 0)
			s->running[s->n_running++] = p;
	process_set_end(&g->processes);
	s->compositor = g->compositor;
	/* A server that outlives its gamescope: what it says is of the past. */
	if (g->compositor_told > 0 && g->compositor.pid == 0)
		s->front = FRONT_UNKNOWN;
}

static void look(Gamescope *g)
{
	const GamescopeProperties p = {
		.app = get_cardinals(g, 0),
		.app_gfx = get_cardinals(g, 1),
		.window = get_cardinals(g, 2),
		.windows = get_cardinals(g, 3),
	};
	Cardinals pid = get_cardinals(g, 4);
	uint32_t told = pid.n > 0 ? pid.v[0] : 0;
	uint64_t now = boottime_usec();
	bool same = g->looked && told == g->compositor_told;
	GamescopeView v;

	gamescope_parse(&p, &v);
	if (!same)
		set_compositor(g, told, now);
	if (same && memcmp(&v, &g->view, sizeof(v)) == 0) {
		g->in_vain_usec = now;
		return;
	}
	g->looked = true;
	g->view = v;
	set_state(g, &v, now);
	source_changed(g->source);
}

/* --- Conversation ------------------------------------------------------------------------------- */

static void ask_focus(Gamescope *g)
{
	xcb_window_t root = xserver_get_root(g->x);

	g->dirty = false;
	xserver_ask_property(g->x, root, g->atoms[ATOM_APP], 1);
	xserver_ask_property(g->x, root, g->atoms[ATOM_APP_GFX], 1);
	xserver_ask_property(g->x, root, g->atoms[ATOM_WINDOW], 1);
	xserver_ask_property(g->x, root, g->atoms[ATOM_WINDOWS], 3 * WINDOWS_MAX);
	xserver_ask_property(g->x, root, g->atoms[ATOM_PID], 1);
	xserver_send(g->x);
}

static int on_debounce(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	Gamescope *g = userdata;

	xserver_resume(g->x);
	g->timer = sd_event_source_disable_unref(g->timer);
	ask_focus(g);
	return 0;
}

static int on_not_marked(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	Gamescope *g = userdata;

	source_failed(g->source, -ENODEV, "not gamescope's");
	return 0;
}

static void set_timer(Gamescope *g, uint64_t usec, sd_event_time_handler_t handler)
{
	int r;

	/* To the microsecond, as it is for once. */
	r = sd_event_add_time_relative(source_get_event(g->source), &g->timer, CLOCK_MONOTONIC, usec, 1, handler, g);
	if (r < 0)
		source_failed(g->source, r, "no timer");
}

static void ask_mark(Gamescope *g)
{
	g->dirty = false;
	xserver_ask_property(g->x, xserver_get_root(g->x), g->atoms[ATOM_SERVER_ID], 1);
	xserver_send(g->x);
}

static void take_mark(Gamescope *g)
{
	Cardinals id = get_cardinals(g, 0);

	if (id.n > 0 && id.v[0] != 0) {
		source_failed(g->source, -ENODEV, "a further server of gamescope's");
	} else if (id.n > 0) {
		g->timer = sd_event_source_disable_unref(g->timer);
		g->phase = PHASE_FOCUS;
		ask_focus(g);
	} else if (g->dirty) {
		ask_mark(g);
	} else if (!g->timer) {
		set_timer(g, MARK_WAIT_USEC, on_not_marked);
		source_changed(g->source); /* to say that it knows nothing */
	}
}

static void take_atoms(Gamescope *g)
{
	for (size_t i = 0; i < _ATOM_MAX; i++)
		g->atoms[i] = xserver_get_atom(g->x, i);
	g->phase = PHASE_MARK;
	xserver_watch(g->x); /* first: no change after what is read now is missed */
	ask_mark(g);
}

static void ask_later(Gamescope *g)
{
	bool storm = g->in_vain_usec + STORM_USEC > boottime_usec();

	if (g->timer)
		return;
	set_timer(g, storm ? DEBOUNCE_STORM_USEC : DEBOUNCE_USEC, on_debounce);
	xserver_pause(g->x);
}

static void on_answered(XServer *x _unused_, void *userdata)
{
	Gamescope *g = userdata;

	switch (g->phase) {
	case PHASE_ATOMS:
		take_atoms(g);
		break;
	case PHASE_MARK:
		take_mark(g);
		break;
	case PHASE_FOCUS:
		look(g);
		if (g->dirty)
			ask_later(g);
		break;
	}
}

static bool is_of_interest(const Gamescope *g, xcb_atom_t atom)
{
	for (size_t i = g->phase == PHASE_FOCUS ? ATOM_PID : ATOM_SERVER_ID; i < _ATOM_MAX; i++)
		if (g->atoms[i] == atom)
			return true;
	return false;
}

static void on_changed(XServer *x, xcb_atom_t atom, void *userdata)
{
	Gamescope *g = userdata;

	if (!is_of_interest(g, atom))
		return;
	g->dirty = true;
	if (xserver_is_waiting(x))
		return;
	if (g->phase == PHASE_FOCUS)
		ask_later(g);
	else
		ask_mark(g);
}

static void on_ended(XServer *x _unused_, void *userdata)
{
	Gamescope *g = userdata;

	source_failed(g->source, -ECONNRESET, "its X server has ended, or does not answer");
}

/* --- Life --------------------------------------------------------------------------------------- */

static void gamescope_stop(void *data)
{
	Gamescope *g = data;

	if (!g)
		return;
	sd_event_source_disable_unref(g->timer);
	sd_event_source_disable_unref(g->compositor_end);
	xserver_close(g->x);
	process_set_done(&g->processes);
	close_fd(g->compositor.pidfd);
	free(g);
}

static int gamescope_start(Source *s, const char *place, void **ret_data)
{
	static const XCallbacks callbacks = { on_answered, on_changed, on_ended };
	Gamescope *g = calloc(1, sizeof(*g));
	uid_t uid;
	int r;

	if (!g)
		return -ENOMEM;
	g->source = s;
	g->compositor.pidfd = g->state.game.pidfd = g->state.compositor.pidfd = -EBADF;
	/* gamescope's servers know no cookies: they let their own user in. */
	r = x_place_open(source_get_event(s), place, NULL, &callbacks, g, &g->x);
	if (r >= 0 && xserver_get_peer(g->x, &uid) > 0 && uid != getuid())
		r = -ENODEV;
	if (r < 0) {
		gamescope_stop(g);
		return r;
	}
	for (size_t i = 0; i < _ATOM_MAX; i++)
		xserver_ask_atom(g->x, atom_names[i]);
	xserver_send(g->x);
	*ret_data = g;
	return 0;
}

static void gamescope_read(void *data, State *ret)
{
	const Gamescope *g = data;

	*ret = g->state;
}

const SourceType source_gamescope = {
	.name = "gamescope",
	.rank = 1,
	.probe = gamescope_probe,
	.start = gamescope_start,
	.read = gamescope_read,
	.stop = gamescope_stop,
};
