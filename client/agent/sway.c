/* SPDX-License-Identifier: MIT */
/* sway, by its IPC socket: events say that something moved, the tree says who is in front now. Of events alone an
 * empty workspace would not be seen.
 *
 * i3's sockets are not looked for: its tree names windows of X and no processes, and the active one of them is what
 * the source x11 hears of, with its process. */
#include "parse.h"
#include "stream.h"
#include "sway-parse.h"

#define EVENTS "[\"window\",\"workspace\"]"

typedef struct Sway {
	Desktop desktop;
	Stream *stream;
	bool asked, dirty; /* dirty: something moved since the tree was asked for */
} Sway;

/* --- Where -------------------------------------------------------------------------------------- */

/* "sway-ipc.UID.PID.sock" */
static bool is_socket_name(const char *name)
{
	return startswith(name, "sway-ipc.") && endswith(name, ".sock");
}

static int probe_directory(Probe *p, const char *runtime_dir)
{
	auto_closedir DIR *d = opendir(runtime_dir);
	struct dirent *de;
	int r;

	r = probe_watch(p, runtime_dir);
	while (r >= 0 && d && (de = readdir(d))) {
		auto_free char *path = NULL;

		if (!is_socket_name(de->d_name) || !unix_socket_is_own(dirfd(d), de->d_name))
			continue;
		if (asprintf(&path, "%s/%s", runtime_dir, de->d_name) < 0)
			return -ENOMEM;
		r = probe_found(p, path);
	}
	return r;
}

static int sway_probe(Probe *p)
{
	const char *runtime_dir = getenv("XDG_RUNTIME_DIR"), *own = getenv("SWAYSOCK");
	int r = 0;

	if (runtime_dir)
		r = probe_directory(p, runtime_dir);
	if (r >= 0 && own && unix_socket_is_own(AT_FDCWD, own))
		r = probe_found(p, own);
	return r;
}

/* --- Conversation ------------------------------------------------------------------------------- */

static int ask_tree(Sway *w, bool subscribe)
{
	char text[SWAY_MESSAGE_SIZE(EVENTS) + SWAY_MESSAGE_SIZE("")];
	size_t n = 0;

	if (subscribe)
		n = sway_put_message(text, SWAY_SUBSCRIBE, EVENTS);
	n += sway_put_message(text + n, SWAY_GET_TREE, "");
	w->asked = true;
	w->dirty = false;
	return stream_ask(w->stream, text, n);
}

static void look(void *userdata)
{
	Sway *w = userdata;
	int r = ask_tree(w, false);

	if (r < 0)
		source_failed(w->desktop.source, r, "it does not take questions");
}

static int take_tree(Sway *w, const SwayMessage *m)
{
	DesktopView v;
	int r = sway_parse_tree(m, &v);

	if (r < 0)
		return r;
	stream_answered(w->stream);
	w->asked = false;
	desktop_say(&w->desktop, &v);
	return 0;
}

static int take_message(Sway *w, const SwayMessage *m)
{
	int r = 0;

	if (m->type == SWAY_GET_TREE)
		r = take_tree(w, m);
	else if (m->type == SWAY_SUBSCRIBE)
		r = sway_is_success(m) ? 0 : -EPROTO;
	else
		w->dirty = w->dirty || sway_is_move(m);
	if (w->dirty && !w->asked)
		desktop_look_later(&w->desktop);
	return r;
}

static ssize_t on_received(Stream *s _unused_, const char *data, size_t n, void *userdata)
{
	Sway *w = userdata;
	size_t taken = 0;
	SwayMessage m;
	ssize_t k;
	int r;

	while ((k = sway_parse_message(data + taken, n - taken, &m)) > 0) {
		r = take_message(w, &m);
		if (r < 0)
			return r;
		taken += (size_t)k;
	}
	return k < 0 ? k : (ssize_t)taken;
}

static void on_ended(Stream *s _unused_, int error, const char *data _unused_, size_t n _unused_, void *userdata)
{
	Sway *w = userdata;

	if (error == 0)
		source_failed(w->desktop.source, -ECONNRESET, "sway has ended");
	else
		source_failed(w->desktop.source, error,
			      error == -ETIMEDOUT ? "it does not answer" : "what it says makes no sense");
}

/* --- Life --------------------------------------------------------------------------------------- */

static void sway_stop(void *data)
{
	Sway *w = data;

	stream_close(w->stream);
	desktop_done(&w->desktop);
	free(w);
}

static int sway_start(Source *s, const char *place, void **ret_data)
{
	static const StreamCallbacks callbacks = { on_received, on_ended };
	Sway *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	desktop_init(&w->desktop, s, look, w);
	r = stream_open(source_get_event(s), place, SWAY_HEADER_SIZE + SWAY_MESSAGE_MAX, &callbacks, w, &w->stream);
	if (r >= 0)
		r = ask_tree(w, true);
	if (r < 0) {
		sway_stop(w);
		return r;
	}
	desktop_set_compositor(&w->desktop, stream_get_peer(w->stream));
	*ret_data = w;
	return 0;
}

static void sway_read(void *data, State *ret)
{
	const Sway *w = data;

	*ret = w->desktop.state;
}

const SourceType source_sway = {
	.name = "sway",
	.rank = 2,
	.any_window = true,
	.probe = sway_probe,
	.start = sway_start,
	.read = sway_read,
	.stop = sway_stop,
};
