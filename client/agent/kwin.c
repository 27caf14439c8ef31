/* SPDX-License-Identifier: MIT */
/* KWin, by a script of ours that runs inside of it (kwin-focus.js) and calls us when another window becomes active.
 *
 * KWin knows one script of a name, and nobody tells who loaded it. So only whoever owns a name of ours on the session
 * bus loads it: of two agents the newer one, and when that ends the bus gives the name back to the older one. */
#include <sys/mman.h>

#include "app-id.h"
#include "bus-names.h"
#include "kwin-focus.h"
#include "process-ref.h"
#include "session-bus.h"

#define OUR_NAME VRAMD_BUS_NAME ".KWin"
#define OUR_PATH VRAMD_PATH "/kwin"
#define SCRIPT "vramd-agent"
#define SCRIPTING "/Scripting", "org.kde.kwin.Scripting"

/* From one window to the next KWin says "none" for some 2 ms. */
#define DEBOUNCE_USEC (10 * USEC_PER_MSEC)
/* From the first call to the script's first word, by a KWin that has just started. */
#define SCRIPT_WAIT_USEC (10 * USEC_PER_SEC)

typedef struct KWin {
	Source *source;
	sd_bus *bus;
	BusName kwin, ours;
	sd_bus_slot *call; /* the one whose answer is waited for */
	int script_fd;     /* KWin may read it until it has spoken */
	sd_event_source *timer; /* debounce, or the wait for the script */
	sd_event_source *exit;
	ProcessSet processes;
	State state; /* owns the compositor */
} KWin;

static void fail(KWin *k, int error, const char *text)
{
	source_failed(k->source, error, text);
}

static void set_state(KWin *k, Front front, pid_t pid, uint32_t appid)
{
	State s = { .front = front, .appid = appid, .game.pidfd = -EBADF, .compositor = k->state.compositor };

	process_set_begin(&k->processes);
	if (front == FRONT_PROCESS && process_set_get(&k->processes, pid, boottime_usec(), &s.game) < 0)
		s = (State){ .game.pidfd = -EBADF, .compositor = k->state.compositor };
	process_set_end(&k->processes);
	k->state = s;
	source_changed(k->source);
}

static void set_compositor(KWin *k, ProcessRef p)
{
	close_fd(k->state.compositor.pidfd);
	k->state.compositor = p;
}

static void set_timer(KWin *k, uint64_t usec, sd_event_time_handler_t handler)
{
	int r;

	k->timer = sd_event_source_disable_unref(k->timer);
	r = sd_event_add_time_relative(source_get_event(k->source), &k->timer, CLOCK_MONOTONIC, usec, USEC_PER_MSEC,
				       handler, k);
	if (r < 0)
		fail(k, r, "no timer");
}

/* --- What the script says ----------------------------------------------------------------------- */

static int on_nobody(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	KWin *k = userdata;

	k->timer = sd_event_source_disable_unref(k->timer);
	set_state(k, FRONT_NOBODY, 0, 0);
	return 0;
}

/* Anybody on the session bus can call this. */
static int method_activated(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	KWin *k = userdata;
	const char *class;
	int any, pid, r;

	if (!streq_ptr(sd_bus_message_get_sender(m), k->kwin.owner))
		return sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED, "This is for KWin's script only");
	r = sd_bus_message_read(m, "bis", &any, &pid, &class);
	if (r < 0)
		return r;
	k->script_fd = close_fd(k->script_fd);
	if (any) {
		k->timer = sd_event_source_disable_unref(k->timer);
		if (pid > 0)
			set_state(k, FRONT_PROCESS, pid, app_id_get_steam(class));
		else
			set_state(k, FRONT_UNKNOWN, 0, 0);
	} else {
		set_timer(k, DEBOUNCE_USEC, on_nobody);
	}
	return sd_bus_reply_method_return(m, NULL);
}

static const sd_bus_vtable vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD_WITH_ARGS("Activated", SD_BUS_ARGS("b", any, "i", pid, "s", class), SD_BUS_NO_RESULT, method_activated,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END,
};

/* --- Loading it --------------------------------------------------------------------------------- */

static int call(KWin *k, const char *member, sd_bus_message_handler_t answered, const char *types, const char *a,
		const char *b)
{
	int r;

	k->call = sd_bus_slot_unref(k->call);
	r = sd_bus_call_method_async(k->bus, &k->call, k->kwin.owner, SCRIPTING, member, answered, k, types, a, b);
	if (r < 0)
		fail(k, r, "KWin cannot be asked");
	return r;
}

static bool is_answer(KWin *k, sd_bus_message *reply)
{
	if (!sd_bus_message_is_method_error(reply, NULL))
		return true;
	fail(k, -sd_bus_message_get_errno(reply), "KWin runs no scripts");
	return false;
}

static int on_started(sd_bus_message *reply, void *userdata, sd_bus_error *error _unused_)
{
	(void)is_answer(userdata, reply);
	return 0;
}

static int on_loaded(sd_bus_message *reply, void *userdata, sd_bus_error *error _unused_)
{
	KWin *k = userdata;
	int id;

	if (!is_answer(k, reply))
		return 0;
	if (sd_bus_message_read(reply, "i", &id) < 0 || id < 0)
		fail(k, -EBUSY, "KWin does not load the script");
	else
		(void)call(k, "start", on_started, "", NULL, NULL);
	return 0;
}

/* KWin is given a path, and reads it when it likes. So that nothing is left behind when we are killed, it is no
 * file's. */
static int write_script(KWin *k)
{
	const char *name;
	int r;

	r = sd_bus_get_unique_name(k->bus, &name);
	if (r < 0)
		return r;
	close_fd(k->script_fd);
	k->script_fd = memfd_create("kwin-focus.js", MFD_CLOEXEC);
	if (k->script_fd < 0)
		return -errno;
	return dprintf(k->script_fd, "const agent = \"%s\";\n%s", name, KWIN_FOCUS_JS) < 0 ? -EIO : 0;
}

static int on_unloaded(sd_bus_message *reply, void *userdata, sd_bus_error *error _unused_)
{
	KWin *k = userdata;
	char path[64];
	int r;

	if (!is_answer(k, reply))
		return 0;
	r = write_script(k);
	if (r < 0) {
		fail(k, r, "the script cannot be written");
		return 0;
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), k->script_fd);
	(void)call(k, "loadScript", on_loaded, "ss", path, SCRIPT);
	return 0;
}

static int on_pid(sd_bus_message *reply, void *userdata, sd_bus_error *error _unused_)
{
	KWin *k = userdata;
	ProcessRef p;
	uint32_t pid;

	/* kwin_wayland or kwin_x11; whoever else took the name draws nothing. */
	if (!sd_bus_message_is_method_error(reply, NULL) && sd_bus_message_read(reply, "u", &pid) >= 0 &&
	    process_ref_open((pid_t)pid, boottime_usec(), "kwin_", &p) >= 0)
		set_compositor(k, p);
	/* One that an agent left which was killed. */
	(void)call(k, "unloadScript", on_unloaded, "s", SCRIPT, NULL);
	return 0;
}

static int on_silence(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	fail(userdata, -ETIMEDOUT, "KWin's script does not speak");
	return 0;
}

static bool is_ours(const KWin *k)
{
	const char *name;

	return k->ours.owner && sd_bus_get_unique_name(k->bus, &name) >= 0 && streq(k->ours.owner, name);
}

static void on_name(void *userdata)
{
	KWin *k = userdata;
	int r;

	if (!k->kwin.known)
		return;
	k->call = sd_bus_slot_unref(k->call);
	if (!k->kwin.owner) {
		k->timer = sd_event_source_disable_unref(k->timer);
		set_compositor(k, (ProcessRef){ 0, -EBADF });
		set_state(k, FRONT_UNKNOWN, 0, 0);
		k->state.why = "KWin is not there";
		return;
	}
	/* While a newer agent has it, the last word stands. */
	if (!is_ours(k))
		return;
	set_timer(k, SCRIPT_WAIT_USEC, on_silence);
	r = sd_bus_call_method_async(k->bus, &k->call, "org.freedesktop.DBus", "/org/freedesktop/DBus",
				     "org.freedesktop.DBus", "GetConnectionUnixProcessID", on_pid, k, "s",
				     k->kwin.owner);
	if (r < 0)
		fail(k, r, "the session bus cannot be asked");
}

/* --- Life --------------------------------------------------------------------------------------- */

static void unload(KWin *k)
{
	if (k->kwin.owner && is_ours(k))
		(void)sd_bus_call_method_async(k->bus, NULL, k->kwin.owner, SCRIPTING, "unloadScript", NULL, NULL, "s",
					       SCRIPT);
}

/* When the loop ends, sd-bus closes the connection before anybody else is asked. */
static int on_exit_loop(sd_event_source *s _unused_, void *userdata)
{
	unload(userdata);
	return 0;
}

static void kwin_stop(void *data)
{
	KWin *k = data;

	unload(k);
	sd_event_source_disable_unref(k->exit);
	sd_event_source_disable_unref(k->timer);
	sd_bus_slot_unref(k->call);
	sd_bus_flush_close_unref(k->bus);
	bus_name_done(&k->kwin);
	bus_name_done(&k->ours);
	close_fd(k->script_fd);
	process_set_done(&k->processes);
	set_compositor(k, (ProcessRef){ 0, -EBADF });
	free(k);
}

static int open_bus(KWin *k)
{
	int r;

	r = session_bus_open(k->source, &k->bus);
	if (r >= 0)
		r = sd_event_add_exit(source_get_event(k->source), &k->exit, on_exit_loop, k);
	if (r >= 0)
		r = sd_event_source_set_priority(k->exit, SD_EVENT_PRIORITY_IMPORTANT);
	if (r >= 0)
		r = sd_bus_add_object_vtable(k->bus, NULL, OUR_PATH, OUR_NAME, vtable, k);
	if (r >= 0)
		r = bus_name_watch(k->bus, &k->kwin);
	if (r >= 0)
		r = bus_name_watch(k->bus, &k->ours);
	if (r >= 0)
		r = sd_bus_request_name_async(k->bus, NULL, OUR_NAME,
					      SD_BUS_NAME_REPLACE_EXISTING | SD_BUS_NAME_ALLOW_REPLACEMENT |
						      SD_BUS_NAME_QUEUE,
					      NULL, NULL);
	return r;
}

static int kwin_start(Source *s, const char *place _unused_, void **ret_data)
{
	KWin *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	*k = (KWin){
		.source = s,
		.kwin = { .name = "org.kde.KWin", .changed = on_name, .userdata = k },
		.ours = { .name = OUR_NAME, .changed = on_name, .userdata = k },
		.script_fd = -EBADF,
		.state = { .game.pidfd = -EBADF, .compositor.pidfd = -EBADF },
	};
	r = open_bus(k);
	if (r < 0) {
		kwin_stop(k);
		return r;
	}
	*ret_data = k;
	return 0;
}

static void kwin_read(void *data, State *ret)
{
	const KWin *k = data;

	*ret = k->state;
}

const SourceType source_kwin = {
	.name = "kwin",
	.rank = 2,
	.any_window = true,
	.probe = session_bus_probe,
	.start = kwin_start,
	.read = kwin_read,
	.stop = kwin_stop,
};
