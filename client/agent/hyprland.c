/* SPDX-License-Identifier: MIT */
/* Hyprland: one socket tells events, another one answers one question a connection. Of the events it is only taken that
 * another window became active; whose it is, is asked. Hyprland stands still from the moment somebody connects until he
 * has asked, so that connection is made late, used at once, and closed with the answer. */
#include "hyprland-parse.h"
#include "stream.h"

#define EVENTS_SOCKET ".socket2.sock"
#define QUESTIONS_SOCKET ".socket.sock"

typedef struct Hyprland {
	Desktop desktop;
	char *questions_path;
	Stream *events, *question;
	HyprlandActive active;
	bool dirty; /* another window became active since the question was asked */
} Hyprland;

/* --- Where -------------------------------------------------------------------------------------- */

static char *make_path(const char *instance, const char *name)
{
	const char *runtime_dir = getenv("XDG_RUNTIME_DIR");
	char *path;

	return runtime_dir && asprintf(&path, "%s/hypr/%s%s", runtime_dir, instance, name) >= 0 ? path : NULL;
}

/* A directory for each instance; sockets come to it later. */
static int probe_instance(Probe *p, const char *instance)
{
	auto_free char *directory = make_path(instance, ""), *path = make_path(instance, "/" EVENTS_SOCKET);
	int r;

	if (!directory || !path)
		return -ENOMEM;
	r = probe_watch(p, directory);
	if (r == -ENOTDIR)
		return 0;
	return r >= 0 && unix_socket_is_own(AT_FDCWD, path) ? probe_found(p, instance) : r;
}

static int hyprland_probe(Probe *p)
{
	auto_free char *directory = make_path("", "");
	auto_closedir DIR *d = NULL;
	struct dirent *de;
	int r;

	if (!directory)
		return 0;
	directory[strlen(directory) - 1] = '\0';
	r = probe_watch(p, directory);
	d = opendir(directory);
	while (r >= 0 && d && (de = readdir(d)))
		if (de->d_name[0] != '.')
			r = probe_instance(p, de->d_name);
	return r;
}

/* --- The question ------------------------------------------------------------------------------- */

static void say_failed(Hyprland *h, int error)
{
	static const char *const texts[] = { "it does not answer", "what it says makes no sense",
					     "it does not take questions" };

	source_failed(h->desktop.source, error, texts[error == -ETIMEDOUT ? 0 : error == -EBADMSG ? 1 : 2]);
}

static ssize_t on_answer_part(Stream *s _unused_, const char *data _unused_, size_t n _unused_, void *userdata _unused_)
{
	return 0; /* it is whole when the connection ends */
}

static void on_answer(Stream *s _unused_, int error, const char *data, size_t n, void *userdata)
{
	Hyprland *h = userdata;
	DesktopView v;

	if (error == 0)
		error = hyprland_parse_window(data, n, &v);
	h->question = stream_close(h->question);
	if (error < 0) {
		say_failed(h, error);
		return;
	}
	desktop_say(&h->desktop, &v);
	if (h->dirty)
		desktop_look_later(&h->desktop);
}

static int ask(Hyprland *h)
{
	static const StreamCallbacks callbacks = { on_answer_part, on_answer };
	static const char question[] = "j/activewindow";
	int r;

	h->dirty = false;
	r = stream_open(source_get_event(h->desktop.source), h->questions_path, HYPRLAND_ANSWER_MAX, &callbacks, h,
			&h->question);
	return r < 0 ? r : stream_ask(h->question, question, strlen(question));
}

static void look(void *userdata)
{
	Hyprland *h = userdata;
	int r = ask(h);

	if (r < 0)
		say_failed(h, r);
}

/* --- Events ------------------------------------------------------------------------------------- */

static ssize_t on_events(Stream *s _unused_, const char *data, size_t n, void *userdata)
{
	Hyprland *h = userdata;
	size_t taken = hyprland_parse_events(data, n, &h->active, &h->dirty);

	if (h->dirty && !h->question)
		desktop_look_later(&h->desktop);
	return (ssize_t)taken;
}

static void on_events_ended(Stream *s _unused_, int error, const char *data _unused_, size_t n _unused_, void *userdata)
{
	Hyprland *h = userdata;

	if (error == 0)
		source_failed(h->desktop.source, -ECONNRESET, "Hyprland has ended");
	else
		source_failed(h->desktop.source, error, "what it says makes no sense");
}

/* --- Life --------------------------------------------------------------------------------------- */

static void hyprland_stop(void *data)
{
	Hyprland *h = data;

	stream_close(h->question);
	stream_close(h->events);
	desktop_done(&h->desktop);
	free(h->questions_path);
	free(h);
}

static int hyprland_start(Source *s, const char *place, void **ret_data)
{
	static const StreamCallbacks callbacks = { on_events, on_events_ended };
	auto_free char *path = make_path(place, "/" EVENTS_SOCKET);
	Hyprland *h = calloc(1, sizeof(*h));
	int r = -ENOMEM;

	if (!h)
		return r;
	desktop_init(&h->desktop, s, look, h);
	h->questions_path = make_path(place, "/" QUESTIONS_SOCKET);
	if (path && h->questions_path)
		r = stream_open(source_get_event(s), path, HYPRLAND_EVENTS_MAX, &callbacks, h, &h->events);
	if (r >= 0)
		r = ask(h); /* the events are heard already */
	if (r < 0) {
		hyprland_stop(h);
		return r;
	}
	desktop_set_compositor(&h->desktop, stream_get_peer(h->events));
	*ret_data = h;
	return 0;
}

static void hyprland_read(void *data, State *ret)
{
	const Hyprland *h = data;

	*ret = h->desktop.state;
}

const SourceType source_hyprland = {
	.name = "hyprland",
	.rank = 2,
	.any_window = true,
	.probe = hyprland_probe,
	.start = hyprland_start,
	.read = hyprland_read,
	.stop = hyprland_stop,
};
