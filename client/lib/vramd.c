/* SPDX-License-Identifier: MIT */
/* An event loop of its own, whose descriptor the caller polls, holds the connection and the timer that makes it anew.
 * What is to be said is kept in full, so connecting again means saying it again. */
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <time.h>

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "bus-names.h"
#include "pidfd.h"
#include "system-bus.h"
#include "util.h"
#include "vramd.h"

#define RETRY_FIRST_USEC (250 * USEC_PER_MSEC)
#define RETRY_LAST_USEC (30 * USEC_PER_SEC)
/* dbus-daemon(1) disconnects who sends more descriptors in a message than max_message_unix_fds, by default 16; the game
 * and the compositor are two. */
#define RUNNING_MAX (16 - 2)

/* A process that was named. */
typedef struct Process {
	int pidfd;   /* -EBADF: none */
	uint64_t id; /* of the process; 0: not to be told, see process_id() */
} Process;

typedef struct Report {
	Process game, compositor;
	Process running[RUNNING_MAX];
	size_t n_running;
	uint32_t appid;
	bool window; /* game is whoever's window has the focus */
	vramd_menu menu;
} Report;

struct vramd {
	char *source;
	sd_event *event;
	sd_bus *bus;
	bool connected;          /* messages with descriptors can be sent */
	sd_event_source *retry;
	uint64_t retry_usec;     /* how long it waits next */
	sd_bus_slot *answer;     /* to the last report; older answers are not heard */
	char *error;
	bool refused;            /* vramd_process() has not told yet */
	bool processing;
	dev_t pidfs;             /* file system of pidfds; 0 before Linux 6.9 */
	uint64_t seq;
	bool reported;           /* there is a report to be kept up */
	bool unsent;             /* the report was changed since */
	int unsent_fd;           /* eventfd: has the next vramd_process() send it */
	Report report;
};

static const char *const menus[] = {
	[VRAMD_MENU_UNKNOWN] = "unknown",
	[VRAMD_MENU_CLOSED] = "closed",
	[VRAMD_MENU_OPEN] = "open",
};

static void connect_bus(vramd *v);

/* The last round finds nothing, and leaves timers and descriptors armed for poll(2). */
static int run(vramd *v)
{
	int r;

	v->processing = true;
	do
		r = sd_event_run(v->event, 0);
	while (r > 0);
	v->processing = false;
	return r;
}

/* --- Processes ----------------------------------------------------------------------------------- */

/* 0: any two pidfds may name different ones, as they did before Linux 6.9. */
static int process_id(const vramd *v, int pidfd, uint64_t *ret)
{
	if (v->pidfs != 0)
		return pidfs_get_inode(v->pidfs, pidfd, ret);
	if (pidfd_send_signal(pidfd, 0, NULL, 0) < 0 && errno == EBADF)
		return -EBADF;
	*ret = 0;
	return 0;
}

/* Keeps a copy, of -1 nothing. 1 if another process is named now, 0 if the same. */
static int process_set(const vramd *v, Process *p, int pidfd)
{
	Process fresh = { .pidfd = -EBADF };
	int r;

	if (pidfd < 0 && p->pidfd < 0)
		return 0;
	if (pidfd >= 0) {
		r = process_id(v, pidfd, &fresh.id);
		if (r < 0)
			return r;
		if (p->pidfd >= 0 && fresh.id != 0 && fresh.id == p->id)
			return 0;
		fresh.pidfd = fcntl(pidfd, F_DUPFD_CLOEXEC, 3);
		if (fresh.pidfd < 0)
			return -errno;
	}
	close_fd(p->pidfd);
	*p = fresh;
	return 1;
}

static void processes_close(Process *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close_fd(p[i].pidfd);
}

/* --- The report ---------------------------------------------------------------------------------- */

static int append_running(sd_bus_message *m, const Report *report)
{
	int r;

	if (report->n_running == 0)
		return 0;
	r = sd_bus_message_open_container(m, 'e', "sv");
	if (r >= 0)
		r = sd_bus_message_append_basic(m, 's', "running");
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'v', "ah");
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "h");
	for (size_t i = 0; i < report->n_running && r >= 0; i++)
		r = sd_bus_message_append_basic(m, 'h', &report->running[i].pidfd);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_report(sd_bus_message *m, vramd *v)
{
	const Report *report = &v->report;
	int r;

	r = sd_bus_message_open_container(m, 'a', "{sv}");
	if (r >= 0)
		r = sd_bus_message_append(m, "{sv}{sv}{sv}", "source", "s", v->source, "seq", "t", ++v->seq, "menu",
					  "s", menus[report->menu]);
	if (r >= 0 && report->game.pidfd >= 0)
		r = sd_bus_message_append(m, "{sv}", "game", "h", report->game.pidfd);
	if (r >= 0 && report->game.pidfd >= 0 && report->window)
		r = sd_bus_message_append(m, "{sv}", "window", "b", true);
	if (r >= 0 && report->appid != 0)
		r = sd_bus_message_append(m, "{sv}", "appid", "u", report->appid);
	if (r >= 0 && report->compositor.pidfd >= 0)
		r = sd_bus_message_append(m, "{sv}", "compositor", "h", report->compositor.pidfd);
	if (r >= 0)
		r = append_running(m, report);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static bool is_absent(const sd_bus_error *error)
{
	return sd_bus_error_has_name(error, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
	       sd_bus_error_has_name(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER);
}

static int set_error(vramd *v, const sd_bus_error *error)
{
	char *text = strdup(error->message && *error->message ? error->message : error->name);

	if (!text)
		return -ENOMEM;
	free(v->error);
	v->error = text;
	return 0;
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error _unused_)
{
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	vramd *v = userdata;

	v->answer = sd_bus_slot_unref(v->answer);
	/* Without vramd, or with one that goes away, there is nobody who refused: it is said again when it is back. */
	if (error && sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY))
		return 0;
	v->retry_usec = RETRY_FIRST_USEC;
	if (!error || is_absent(error))
		return 0;
	v->refused = true;
	return set_error(v, error);
}

/* Whoever stopped vramd does not want it back with the next click. */
static int message_new(vramd *v, const char *member, sd_bus_message **ret)
{
	int r = sd_bus_message_new_method_call(v->bus, ret, VRAMD_BUS_NAME, VRAMD_PATH, VRAMD_IFACE_MANAGER, member);

	return r < 0 ? r : sd_bus_message_set_auto_start(*ret, false);
}

/* r: what sending returned. A connection that is just breaking says so by itself. */
static int sent(vramd *v, int r)
{
	/* What the socket did not take is waited for by the event loop, which must be told. */
	if (r >= 0 && !v->processing)
		r = sd_bus_get_events(v->bus);
	if (r > 0 && r & POLLOUT)
		r = run(v);
	return r == -ENOMEM ? r : 0;
}

static int send_report(vramd *v)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
	eventfd_t n;
	int r;

	if (!v->reported || !v->connected)
		return 0;
	r = message_new(v, "ReportFocus", &m);
	if (r >= 0)
		r = append_report(m, v);
	if (r < 0)
		return r;
	v->answer = sd_bus_slot_unref(v->answer);
	free(v->error);
	v->error = NULL;
	v->refused = false;
	v->unsent = false;
	(void)eventfd_read(v->unsent_fd, &n);
	r = sd_bus_call_async(v->bus, &v->answer, m, on_answer, v, 0);
	return sent(v, r);
}

/* Several changes at once are one report: nobody shall see the old game with the new menu. */
static void send_later(vramd *v)
{
	(void)eventfd_write(v->unsent_fd, 1);
	v->unsent = true;
}

/* --- The connection -------------------------------------------------------------------------------- */

static int on_retry(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	connect_bus(userdata);
	return 0;
}

static void retry_later(vramd *v)
{
	v->connected = false;
	(void)sd_event_source_set_time_relative(v->retry, v->retry_usec);
	(void)sd_event_source_set_enabled(v->retry, SD_EVENT_ONESHOT);
	v->retry_usec = MIN(2 * v->retry_usec, RETRY_LAST_USEC);
}

/* What could not be sent for want of memory or descriptors goes out with the next connection. An error returned from
 * here would have the event loop drop the source for good. */
static int on_unsent(sd_event_source *s _unused_, int fd, uint32_t revents _unused_, void *userdata)
{
	vramd *v = userdata;
	eventfd_t n;

	(void)eventfd_read(fd, &n);
	if (v->unsent && send_report(v) < 0)
		retry_later(v);
	return 0;
}

static int on_disconnected(sd_bus_message *m _unused_, void *userdata, sd_bus_error *error _unused_)
{
	/* It calls us: it is freed when the next one is made. */
	retry_later(userdata);
	return 0;
}

static int on_connected(sd_bus_message *m _unused_, void *userdata, sd_bus_error *error _unused_)
{
	vramd *v = userdata;

	v->connected = true;
	/* Else the answer says that this one lasts: a bus may disconnect whoever reports. */
	if (!v->reported)
		v->retry_usec = RETRY_FIRST_USEC;
	return send_report(v);
}

static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *error _unused_)
{
	const char *owner;

	if (sd_bus_message_read(m, "sss", NULL, NULL, &owner) < 0 || !*owner)
		return 0;
	return send_report(userdata);
}

static int match_signals(vramd *v)
{
	static const char local[] = "org.freedesktop.DBus.Local";
	int r;

	r = sd_bus_match_signal_async(v->bus, NULL, local, NULL, local, "Connected", on_connected, NULL, v);
	if (r >= 0)
		r = sd_bus_match_signal_async(v->bus, NULL, local, NULL, local, "Disconnected", on_disconnected, NULL, v);
	if (r >= 0)
		r = sd_bus_add_match_async(v->bus, NULL,
					   "type='signal',sender='org.freedesktop.DBus',"
					   "path='/org/freedesktop/DBus',interface='org.freedesktop.DBus',"
					   "member='NameOwnerChanged',arg0='" VRAMD_BUS_NAME "'",
					   on_owner, NULL, v);
	return r;
}

static int open_bus(vramd *v)
{
	int r = system_bus_new(&v->bus);

	if (r >= 0)
		r = sd_bus_set_connected_signal(v->bus, true);
	if (r >= 0)
		r = sd_bus_start(v->bus);
	if (r >= 0)
		r = match_signals(v);
	return r < 0 ? r : sd_bus_attach_event(v->bus, v->event, SD_EVENT_PRIORITY_NORMAL);
}

static void connect_bus(vramd *v)
{
	v->answer = sd_bus_slot_unref(v->answer);
	v->bus = sd_bus_close_unref(v->bus);
	if (open_bus(v) < 0)
		retry_later(v);
}

/* --- The interface --------------------------------------------------------------------------------- */

vramd *vramd_close(vramd *v)
{
	if (!v)
		return NULL;
	v->answer = sd_bus_slot_unref(v->answer);
	/* Before there is a connection nothing was said, and flushing would wait for one: up to 90 s. */
	v->bus = v->connected ? sd_bus_flush_close_unref(v->bus) : sd_bus_close_unref(v->bus);
	sd_event_source_disable_unref(v->retry);
	sd_event_unref(v->event);
	close_fd(v->unsent_fd);
	processes_close(&v->report.game, 1);
	processes_close(&v->report.compositor, 1);
	processes_close(v->report.running, v->report.n_running);
	free(v->source);
	free(v->error);
	free(v);
	return NULL;
}
DEFINE_CLEANUP(vramd *, vramd_close)

int vramd_open(const char *source, vramd **ret)
{
	_cleanup_(vramd_closep) vramd *v = NULL;
	int r;

	if (!source || !*source || strlen(source) > VRAMD_TEXT_MAX)
		return -EINVAL;
	v = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v->report.game = v->report.compositor = (Process){ .pidfd = -EBADF };
	v->unsent_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (v->unsent_fd < 0)
		return -errno;
	v->pidfs = pidfs_device();
	v->retry_usec = RETRY_FIRST_USEC;
	v->source = strdup(source);
	if (!v->source)
		return -ENOMEM;
	r = sd_event_new(&v->event);
	if (r >= 0)
		r = sd_event_add_time_relative(v->event, &v->retry, CLOCK_MONOTONIC, 0, 0, on_retry, v);
	if (r >= 0)
		r = sd_event_add_io(v->event, NULL, v->unsent_fd, EPOLLIN, on_unsent, v);
	if (r >= 0)
		r = run(v);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(v);
	return 0;
}

int vramd_get_fd(const vramd *v)
{
	return sd_event_get_fd(v->event);
}

const char *vramd_get_error(const vramd *v)
{
	return v->error;
}

int vramd_process(vramd *v)
{
	int r = run(v);

	if (r < 0)
		return r;
	if (!v->refused)
		return 0;
	v->refused = false;
	return -EREMOTEIO;
}

static int report_front(vramd *v, int pidfd, uint32_t appid, bool window)
{
	int r = process_set(v, &v->report.game, pidfd);

	if (r < 0 || (r == 0 && v->reported && v->report.appid == appid && v->report.window == window && !v->unsent))
		return r;
	v->report.appid = appid;
	v->report.window = window;
	v->reported = v->unsent = true;
	return send_report(v);
}

int vramd_report_focus(vramd *v, int pidfd, uint32_t appid)
{
	return report_front(v, pidfd, appid, false);
}

int vramd_report_window(vramd *v, int pidfd, uint32_t appid)
{
	return report_front(v, pidfd, appid, pidfd >= 0);
}

int vramd_set_menu(vramd *v, vramd_menu menu)
{
	if ((size_t)menu >= ARRAY_SIZE(menus))
		return -EINVAL;
	if (v->report.menu == menu)
		return 0;
	v->report.menu = menu;
	send_later(v);
	return 0;
}

int vramd_set_compositor(vramd *v, int pidfd)
{
	int r = process_set(v, &v->report.compositor, pidfd);

	if (r > 0)
		send_later(v);
	return MIN(r, 0);
}

static bool same_running(const Report *report, const Process *processes, size_t n)
{
	if (n != report->n_running)
		return false;
	for (size_t i = 0; i < n; i++)
		if (processes[i].id == 0 || processes[i].id != report->running[i].id)
			return false;
	return true;
}

int vramd_set_running(vramd *v, const int *pidfds, size_t n)
{
	Process fresh[RUNNING_MAX];
	int r = 0;

	if (n > RUNNING_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n; i++) {
		fresh[i] = (Process){ .pidfd = -EBADF };
		r = pidfds[i] < 0 ? -EBADF : process_set(v, &fresh[i], pidfds[i]);
		if (r < 0) {
			processes_close(fresh, i);
			return r;
		}
	}
	if (same_running(&v->report, fresh, n)) {
		processes_close(fresh, n);
		return 0;
	}
	processes_close(v->report.running, v->report.n_running);
	memcpy(v->report.running, fresh, n * sizeof(*fresh));
	v->report.n_running = n;
	send_later(v);
	return 0;
}

int vramd_withdraw(vramd *v)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
	int r;

	if (!v->reported)
		return 0;
	v->reported = false;
	v->answer = sd_bus_slot_unref(v->answer);
	if (!v->connected)
		return 0;
	r = message_new(v, "Withdraw", &m);
	return r < 0 ? r : sent(v, sd_bus_send(v->bus, m, NULL));
}

/* sd-bus gives its own failures names, too. */
static bool is_refusal(const sd_bus_error *error)
{
	return sd_bus_error_is_set(error) && !startswith(error->name, "System.Error.") &&
	       !sd_bus_error_has_names(error, SD_BUS_ERROR_NO_MEMORY, SD_BUS_ERROR_NO_REPLY, SD_BUS_ERROR_TIMEOUT,
				       SD_BUS_ERROR_DISCONNECTED);
}

/* On a connection of its own: what waits here must not keep anything else from being heard. */
int vramd_hold(vramd *v, int pidfd, const char *who, const char *why)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	uint64_t id;
	int fd, r;

	r = process_id(v, pidfd, &id);
	if (r < 0)
		return r;
	r = sd_bus_open_system(&bus);
	if (r < 0)
		return r == -ECONNREFUSED ? -ENOENT : r;
	r = sd_bus_call_method(bus, VRAMD_BUS_NAME, VRAMD_PATH, VRAMD_IFACE_MANAGER, "Hold", &error, &reply, "hssa{sv}",
			       pidfd, who, why, 0);
	if (r < 0 && is_absent(&error))
		return -ENOENT;
	if (r < 0 && is_refusal(&error) && set_error(v, &error) >= 0)
		return -EREMOTEIO;
	if (r >= 0)
		r = sd_bus_message_read(reply, "h", &fd);
	if (r < 0)
		return r;
	/* The message owns its descriptor. */
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}
