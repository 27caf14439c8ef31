/* SPDX-License-Identifier: MIT */
/* Compositors with wlr-foreign-toplevel-management (labwc, niri, wayfire, cosmic, ...): which windows there are, what
 * each calls its application, and which one is activated. No processes: so the application's name counts where exactly
 * one of the user's units is of that application, and else nothing is known. Windows of X are the source x11's. */
#include <sys/epoll.h>
#include <wayland-client.h>

#include "app-id.h"
#include "app-units.h"
#include "desktop.h"
#include "log.h"
#include "parse.h"
#include "unix-socket.h"
#include "wlr-foreign-toplevel-management-unstable-v1-client-protocol.h"

#define VERSION_MAX 3

typedef struct zwlr_foreign_toplevel_handle_v1 Handle;
typedef struct zwlr_foreign_toplevel_manager_v1 Manager;

/* What was said of it counts when the compositor says that this was all. */
typedef struct WindowState {
	char *app_id;
	bool activated;
} WindowState;

typedef struct Toplevel Toplevel;

typedef struct Window {
	struct wl_list link;
	Toplevel *owner;
	Handle *handle;
	WindowState next, now;
} Window;

struct Toplevel {
	Desktop desktop;
	AppUnits *units;
	struct wl_display *display;
	struct wl_registry *registry;
	struct wl_callback *sync;
	Manager *manager;
	struct wl_list windows;
	sd_event_source *io, *deadline; /* the latter until all windows are known */
	bool bound;  /* the windows were asked for */
	bool listed; /* and all are known that were there at first */
	bool ended;
};

static void fail(Toplevel *t, int error, const char *text)
{
	if (t->ended)
		return;
	t->ended = true;
	(void)sd_event_source_set_enabled(t->io, SD_EVENT_OFF);
	t->deadline = sd_event_source_disable_unref(t->deadline);
	source_failed(t->desktop.source, error, text);
}

/* --- Where -------------------------------------------------------------------------------------- */

static int probe_name(Probe *p, int runtime_dir, const char *name)
{
	const char *number = startswith(name, "wayland-");
	uint32_t n;

	if (!number || parse_u32(number, &n) < 0 || !unix_socket_is_own(runtime_dir, name))
		return 0;
	return probe_found(p, name);
}

static int toplevel_probe(Probe *p)
{
	const char *runtime_dir = getenv("XDG_RUNTIME_DIR"), *own = strempty(getenv("WAYLAND_DISPLAY"));
	auto_closedir DIR *d = NULL;
	struct dirent *de;
	int r;

	if (!runtime_dir)
		return 0;
	r = probe_watch(p, runtime_dir);
	d = opendir(runtime_dir);
	while (r >= 0 && d && (de = readdir(d)))
		r = probe_name(p, dirfd(d), de->d_name);
	/* By another name, or in another place. */
	if (r >= 0 && d && *own && unix_socket_is_own(dirfd(d), own))
		r = probe_found(p, own);
	return r;
}

/* --- State -------------------------------------------------------------------------------------- */

/* -ENOTUNIQ: several, of which nobody knows which one has the focus. */
static int find_activated(Toplevel *t, const char **ret_app_id)
{
	const char *app_id = NULL;
	Window *w;

	wl_list_for_each(w, &t->windows, link) {
		if (!w->now.activated)
			continue;
		if (app_id && !streq(app_id, strempty(w->now.app_id)))
			return -ENOTUNIQ;
		app_id = strempty(w->now.app_id);
	}
	*ret_app_id = app_id;
	return 0;
}

static void look(void *userdata)
{
	Toplevel *t = userdata;
	DesktopView v = {};
	const char *app_id;
	int r;

	r = find_activated(t, &app_id);
	if (r < 0) {
		v.why = "it says that several windows are in front";
	} else if (!app_id) {
		v.front = FRONT_NOBODY;
	} else {
		r = app_units_find(t->units, app_id, &v.pid);
		v.front = r < 0 ? FRONT_UNKNOWN : FRONT_PROCESS;
		v.why = r == -ENOTUNIQ ? "the window in front may be of several units" :
					 "the window in front is of no unit that is known by its name";
		v.appid = app_id_get_steam(app_id);
	}
	desktop_say(&t->desktop, &v);
}

static void look_later(void *userdata)
{
	Toplevel *t = userdata;

	if (t->listed)
		desktop_look_later(&t->desktop);
}

/* --- One window --------------------------------------------------------------------------------- */

static void window_free(Window *w)
{
	wl_list_remove(&w->link);
	zwlr_foreign_toplevel_handle_v1_destroy(w->handle);
	free(w->next.app_id);
	free(w->now.app_id);
	free(w);
}

static int replace(char **s, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		return -ENOMEM;
	free(*s);
	*s = copy;
	return 0;
}

static void on_app_id(void *data, Handle *handle _unused_, const char *app_id)
{
	Window *w = data;

	if (replace(&w->next.app_id, app_id) < 0)
		fail(w->owner, -ENOMEM, "out of memory");
}

static void on_state(void *data, Handle *handle _unused_, struct wl_array *states)
{
	Window *w = data;
	const uint32_t *state = states->data;

	w->next.activated = false;
	for (size_t i = 0; i < states->size / sizeof(*state); i++)
		if (state[i] == ZWLR_FOREIGN_TOPLEVEL_HANDLE_V1_STATE_ACTIVATED)
			w->next.activated = true;
}

static void on_done(void *data, Handle *handle _unused_)
{
	Window *w = data;
	bool same = w->now.activated == w->next.activated && streq_ptr(w->now.app_id, w->next.app_id);

	if (same)
		return; /* its title, mostly */
	w->now.activated = w->next.activated;
	if (replace(&w->now.app_id, w->next.app_id) < 0)
		fail(w->owner, -ENOMEM, "out of memory");
	look_later(w->owner);
}

static void on_closed(void *data, Handle *handle _unused_)
{
	Window *w = data;
	Toplevel *t = w->owner;

	window_free(w);
	look_later(t);
}

static void on_title(void *data _unused_, Handle *handle _unused_, const char *title _unused_)
{
}

static void on_output(void *data _unused_, Handle *handle _unused_, struct wl_output *output _unused_)
{
}

static void on_parent(void *data _unused_, Handle *handle _unused_, Handle *parent _unused_)
{
}

static const struct zwlr_foreign_toplevel_handle_v1_listener window_listener = {
	.title = on_title,
	.app_id = on_app_id,
	.output_enter = on_output,
	.output_leave = on_output,
	.state = on_state,
	.done = on_done,
	.closed = on_closed,
	.parent = on_parent,
};

/* --- All windows -------------------------------------------------------------------------------- */

static void on_toplevel(void *data, Manager *manager _unused_, Handle *handle)
{
	Toplevel *t = data;
	Window *w = calloc(1, sizeof(*w));

	if (!w) {
		zwlr_foreign_toplevel_handle_v1_destroy(handle);
		fail(t, -ENOMEM, "out of memory");
		return;
	}
	w->owner = t;
	w->handle = handle;
	wl_list_insert(&t->windows, &w->link);
	(void)zwlr_foreign_toplevel_handle_v1_add_listener(handle, &window_listener, w);
}

static void on_finished(void *data, Manager *manager _unused_)
{
	fail(data, -ECONNRESET, "it lists its windows no more");
}

static const struct zwlr_foreign_toplevel_manager_v1_listener manager_listener = {
	.toplevel = on_toplevel,
	.finished = on_finished,
};

static void on_global(void *data, struct wl_registry *registry, uint32_t name, const char *interface, uint32_t version)
{
	Toplevel *t = data;

	if (t->manager || !streq(interface, zwlr_foreign_toplevel_manager_v1_interface.name))
		return;
	t->manager = wl_registry_bind(registry, name, &zwlr_foreign_toplevel_manager_v1_interface,
				      MIN(version, VERSION_MAX));
	if (t->manager)
		(void)zwlr_foreign_toplevel_manager_v1_add_listener(t->manager, &manager_listener, t);
	else
		fail(t, -ENOMEM, "out of memory");
}

static void on_global_remove(void *data _unused_, struct wl_registry *registry _unused_, uint32_t name _unused_)
{
}

static const struct wl_registry_listener registry_listener = {
	.global = on_global,
	.global_remove = on_global_remove,
};

/* --- Conversation ------------------------------------------------------------------------------- */

static int ask_sync(Toplevel *t);

/* After the first one all globals are known, after the second one all windows. */
static void on_sync(void *data, struct wl_callback *callback, uint32_t serial _unused_)
{
	Toplevel *t = data;

	wl_callback_destroy(callback);
	t->sync = NULL;
	if (!t->manager) {
		fail(t, -ENODEV, "it does not list its windows");
	} else if (t->bound) {
		t->deadline = sd_event_source_disable_unref(t->deadline);
		t->listed = true;
		look(t);
	} else {
		t->bound = true;
		if (ask_sync(t) < 0)
			fail(t, -ENOMEM, "out of memory");
	}
}

static int ask_sync(Toplevel *t)
{
	static const struct wl_callback_listener listener = { on_sync };

	t->sync = wl_display_sync(t->display);
	if (!t->sync)
		return -ENOMEM;
	(void)wl_callback_add_listener(t->sync, &listener, t);
	return 0;
}

static int on_readable(sd_event_source *s _unused_, int fd _unused_, uint32_t revents _unused_, void *userdata)
{
	Toplevel *t = userdata;

	while (wl_display_prepare_read(t->display) < 0)
		if (wl_display_dispatch_pending(t->display) < 0)
			break;
	if (wl_display_get_error(t->display) == 0) {
		(void)wl_display_read_events(t->display);
		(void)wl_display_dispatch_pending(t->display);
		(void)wl_display_flush(t->display);
	}
	if (wl_display_get_error(t->display) != 0)
		fail(t, -ECONNRESET, "the compositor has ended");
	return 0;
}

static int on_deadline(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	fail(userdata, -ETIMEDOUT, "it does not answer");
	return 0;
}

_printf_(1, 0) static void on_log(const char *format, va_list arguments)
{
	char text[256];

	(void)vsnprintf(text, sizeof(text), format, arguments);
	text[strcspn(text, "\n")] = '\0';
	log_debug("libwayland: %s", text);
}

/* --- Life --------------------------------------------------------------------------------------- */

static void toplevel_stop(void *data)
{
	Toplevel *t = data;
	Window *w, *next;

	sd_event_source_disable_unref(t->io);
	sd_event_source_disable_unref(t->deadline);
	wl_list_for_each_safe(w, next, &t->windows, link)
		window_free(w);
	if (t->manager)
		zwlr_foreign_toplevel_manager_v1_destroy(t->manager);
	if (t->sync)
		wl_callback_destroy(t->sync);
	if (t->registry)
		wl_registry_destroy(t->registry);
	if (t->display)
		wl_display_disconnect(t->display);
	app_units_free(t->units);
	desktop_done(&t->desktop);
	free(t);
}

static int connect_place(Toplevel *t, const char *place)
{
	const char *runtime_dir = getenv("XDG_RUNTIME_DIR");
	auto_free char *path = NULL;
	auto_close int fd = -EBADF;
	struct ucred peer;

	if (place[0] == '/')
		path = strdup(place);
	else if (runtime_dir && asprintf(&path, "%s/%s", runtime_dir, place) < 0)
		path = NULL;
	if (!path)
		return -ENOMEM;
	fd = unix_socket_connect(path, &peer);
	if (fd < 0)
		return fd;
	if (peer.uid != getuid())
		return -ENODEV;
	t->display = wl_display_connect_to_fd(fd);
	if (!t->display)
		return -ENOMEM;
	(void)TAKE_FD(fd);
	desktop_set_compositor(&t->desktop, peer.pid);
	return 0;
}

static int attach(Toplevel *t, sd_event *event)
{
	int r;

	t->registry = wl_display_get_registry(t->display);
	if (!t->registry)
		return -ENOMEM;
	(void)wl_registry_add_listener(t->registry, &registry_listener, t);
	r = ask_sync(t);
	if (r >= 0)
		r = sd_event_add_io(event, &t->io, wl_display_get_fd(t->display), EPOLLIN, on_readable, t);
	if (r >= 0)
		r = sd_event_source_set_ratelimit(t->io, SOURCE_STORM_INTERVAL_USEC, SOURCE_STORM_BURST);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &t->deadline, CLOCK_MONOTONIC, SOURCE_ANSWER_MAX_USEC, 0,
					       on_deadline, t);
	if (r >= 0 && wl_display_flush(t->display) < 0)
		r = -errno;
	return r;
}

static int toplevel_start(Source *s, const char *place, void **ret_data)
{
	sd_event *event = source_get_event(s);
	Toplevel *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	wl_log_set_handler_client(on_log);
	wl_list_init(&t->windows);
	desktop_init(&t->desktop, s, look, t);
	r = app_units_new(event, look_later, t, &t->units);
	if (r >= 0)
		r = connect_place(t, place);
	if (r >= 0)
		r = attach(t, event);
	if (r < 0) {
		toplevel_stop(t);
		return r;
	}
	*ret_data = t;
	return 0;
}

static void toplevel_read(void *data, State *ret)
{
	const Toplevel *t = data;

	*ret = t->desktop.state;
}

const SourceType source_toplevel = {
	.name = "foreign-toplevel",
	.rank = 5,
	.any_window = true,
	.probe = toplevel_probe,
	.start = toplevel_start,
	.read = toplevel_read,
	.stop = toplevel_stop,
};
