/* SPDX-License-Identifier: MIT */
#include <X11/Xauth.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <xcb/res.h>
#include <xcb/xcbext.h>

#include "source.h"
#include "unix-socket.h"
#include "xserver.h"

#define GREETING_MAX_SEC 2
#define COOKIE_NAME "MIT-MAGIC-COOKIE-1"

typedef struct Answer {
	unsigned sequence;
	void *reply; /* NULL: an error */
} Answer;

struct XServer {
	xcb_connection_t *connection;
	xcb_window_t root;
	struct ucred peer;
	sd_event_source *io;
	sd_event_source *deadline; /* of the batch's answers */
	const XCallbacks *callbacks;
	void *userdata;
	Answer batch[X_BATCH_MAX];
	size_t n, n_answered;
	bool delivered; /* the batch was: the next request begins a new one */
	bool ended;
};

/* --- The greeting --------------------------------------------------------------------------- */

/* A connection to a server that has not greeted in time. It is kept until the server does, as that will still read what
 * we sent: when its first client leaves, one that was started with -terminate ends, as gamescope's are. */
typedef struct Unanswered {
	unsigned display;
	int fd; /* 0 = none, as there is none that we open */
} Unanswered;

static Unanswered unanswered[8];
static volatile sig_atomic_t greeting_fd = -1, dead_fd = -1, was_late;

static Unanswered *find_unanswered(unsigned display, int fd)
{
	for (size_t i = 0; i < ARRAY_SIZE(unanswered); i++)
		if (fd > 0 ? unanswered[i].fd == 0 : unanswered[i].fd > 0 && unanswered[i].display == display)
			return &unanswered[i];
	return NULL;
}

static void keep_unanswered(unsigned display, int fd)
{
	Unanswered *u = find_unanswered(display, fd);

	if (u)
		*u = (Unanswered){ display, fd };
	else
		close_fd(fd);
}

/* Has it greeted, or ended? */
static bool is_answered(const Unanswered *u)
{
	struct pollfd p = { .fd = u->fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static void forget_unanswered(Unanswered *u)
{
	close_fd(u->fd);
	*u = (Unanswered){};
}

static void on_alarm(int sig _unused_)
{
	int saved = errno;

	was_late = true;
	(void)dup3(dead_fd, greeting_fd, O_CLOEXEC);
	errno = saved;
}

/* xcb waits for the greeting without end. A server that is stopped would stop us too, so after a while another socket,
 * of which nobody has the other end, takes the place of the server's under its hands. */
static xcb_connection_t *greet_in_time(int fd, xcb_auth_info_t *auth)
{
	struct itimerval limit = { .it_value.tv_sec = GREETING_MAX_SEC }, none = {};
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART }, old;
	xcb_connection_t *c;

	was_late = false;
	greeting_fd = fd;
	(void)sigaction(SIGALRM, &action, &old);
	(void)setitimer(ITIMER_REAL, &limit, NULL);
	c = xcb_connect_to_fd(fd, auth); /* owns fd from now on */
	(void)setitimer(ITIMER_REAL, &none, NULL);
	(void)sigaction(SIGALRM, &old, NULL);
	greeting_fd = -1;
	return c;
}

static int make_dead_socket(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	close_fd(fds[1]);
	return fds[0];
}

/* xcb itself writes to standard error that a server refuses, at each try. */
static xcb_connection_t *greet(int fd, xcb_auth_info_t *auth)
{
	auto_close int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	xcb_connection_t *c;

	if (saved >= 0 && null >= 0)
		(void)dup2(null, STDERR_FILENO);
	c = greet_in_time(fd, auth);
	if (saved >= 0 && null >= 0)
		(void)dup2(saved, STDERR_FILENO);
	return c;
}

static int greet_or_keep(int fd, unsigned display, xcb_auth_info_t *auth, XServer *x)
{
	auto_close int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3), dead = make_dead_socket();
	int error;

	if (copy < 0 || dead < 0) {
		close_fd(fd);
		return -EMFILE;
	}
	dead_fd = dead;
	x->connection = greet(fd, auth);
	error = xcb_connection_has_error(x->connection);
	if (!error)
		return 0;
	xcb_disconnect(x->connection);
	x->connection = NULL;
	if (!was_late)
		return error == XCB_CONN_CLOSED_MEM_INSUFFICIENT ? -ENOMEM : -EACCES;
	keep_unanswered(display, TAKE_FD(copy));
	return -EAGAIN;
}

/* Anybody may listen on the number of a server that is gone: he gets no cookie, and is not believed. */
static int connect_to_own(const char *path, struct ucred *ret_peer)
{
	auto_close int fd = unix_socket_connect(path, ret_peer);

	if (fd >= 0 && ret_peer->uid != 0 && ret_peer->uid != getuid())
		return -ENODEV;
	return TAKE_FD(fd);
}

static int connect_with(const char *path, unsigned display, xcb_auth_info_t *auth, XServer *x)
{
	Unanswered *u = find_unanswered(display, -EBADF);
	int r;

	if (u && !is_answered(u))
		return -EAGAIN;
	r = connect_to_own(path, &x->peer);
	if (r >= 0)
		r = greet_or_keep(r, display, auth, x);
	if (u)
		forget_unanswered(u);
	return r;
}

/* Is it the cookie of this display on this machine? Of another machine only by a rare chance, and then refused. */
static bool fits(const Xauth *a, unsigned display)
{
	char number[16];
	int n = snprintf(number, sizeof(number), "%u", display);

	return (a->family == FamilyLocal || a->family == FamilyWild) && a->name_length == strlen(COOKIE_NAME) &&
	       memcmp(a->name, COOKIE_NAME, a->name_length) == 0 &&
	       (a->number_length == 0 || (a->number_length == n && memcmp(a->number, number, (size_t)n) == 0));
}

static int connect_with_file(const char *path, const char *file, unsigned display, XServer *x)
{
	auto_fclose FILE *f = fopen(file, "re");
	int r = -ENOENT;
	Xauth *a;

	while (f && r < 0 && (a = XauReadAuth(f))) {
		if (fits(a, display)) {
			xcb_auth_info_t auth = { a->name_length, a->name, a->data_length, a->data };

			r = connect_with(path, display, &auth, x);
		}
		XauDisposeAuth(a);
	}
	return r;
}

static int connect_any(const char *path, unsigned display, char *const *files, XServer *x)
{
	int r;

	/* Cookies first: a server may let its owner in without, but that is its own affair. */
	for (; files && *files; files++) {
		r = connect_with_file(path, *files, display, x);
		if (r >= 0 || r == -ECONNREFUSED || r == -EAGAIN || r == -ENODEV)
			return r;
	}
	return connect_with(path, display, NULL, x);
}

/* --- Batches -------------------------------------------------------------------------------- */

static void clear_batch(XServer *x)
{
	for (size_t i = 0; i < x->n; i++)
		free(x->batch[i].reply);
	memset(x->batch, 0, sizeof(x->batch));
	x->n = x->n_answered = 0;
	x->delivered = false;
}

static Answer *next_place(XServer *x)
{
	if (x->delivered)
		clear_batch(x);
	return x->n < X_BATCH_MAX ? &x->batch[x->n++] : NULL;
}

void xserver_ask_atom(XServer *x, const char *name)
{
	Answer *a = next_place(x);

	if (a)
		a->sequence = xcb_intern_atom(x->connection, 0, (uint16_t)strlen(name), name).sequence;
}

void xserver_ask_property(XServer *x, xcb_window_t window, xcb_atom_t atom, uint32_t max_words)
{
	Answer *a = next_place(x);

	if (a)
		a->sequence = xcb_get_property(x->connection, 0, window, atom, XCB_ATOM_ANY, 0, max_words).sequence;
}

void xserver_ask_pid(XServer *x, xcb_window_t window)
{
	xcb_res_client_id_spec_t spec = { window, XCB_RES_CLIENT_ID_MASK_LOCAL_CLIENT_PID };
	Answer *a = next_place(x);

	if (a)
		a->sequence = xcb_res_query_client_ids(x->connection, 1, &spec).sequence;
}

bool xserver_is_waiting(const XServer *x)
{
	return x->n > 0 && !x->delivered;
}

bool xserver_is_error(const XServer *x, size_t place)
{
	return place >= x->n || !x->batch[place].reply;
}

xcb_atom_t xserver_get_atom(const XServer *x, size_t place)
{
	const xcb_intern_atom_reply_t *reply = place < x->n ? x->batch[place].reply : NULL;

	return reply ? reply->atom : XCB_ATOM_NONE;
}

bool xserver_get_words(const XServer *x, size_t place, const uint32_t **ret, size_t *ret_n)
{
	const xcb_get_property_reply_t *reply = place < x->n ? x->batch[place].reply : NULL;

	/* Of type None: absent. */
	if (!reply || reply->type == XCB_ATOM_NONE || reply->format != 32)
		return false;
	*ret = xcb_get_property_value(reply);
	*ret_n = MIN(reply->value_len, reply->length); /* xcb looks at no length within a reply */
	return true;
}

bool xserver_get_text(const XServer *x, size_t place, const char **ret, size_t *ret_size)
{
	const xcb_get_property_reply_t *reply = place < x->n ? x->batch[place].reply : NULL;

	if (!reply || reply->type == XCB_ATOM_NONE || reply->format != 8)
		return false;
	*ret = xcb_get_property_value(reply);
	*ret_size = MIN((size_t)reply->value_len, 4 * (size_t)reply->length);
	return true;
}

pid_t xserver_get_pid(const XServer *x, size_t place)
{
	const xcb_res_query_client_ids_reply_t *reply = place < x->n ? x->batch[place].reply : NULL;
	xcb_res_client_id_value_iterator_t i;
	const char *end;

	if (!reply)
		return 0;
	/* xcb looks at no length within a reply. */
	end = (const char *)(reply + 1) + 4 * (size_t)reply->length;
	for (i = xcb_res_query_client_ids_ids_iterator(reply);
	     i.rem > 0 && end - (const char *)i.data >= (ptrdiff_t)(sizeof(*i.data) + sizeof(uint32_t));
	     xcb_res_client_id_value_next(&i))
		if (i.data->spec.mask & XCB_RES_CLIENT_ID_MASK_LOCAL_CLIENT_PID &&
		    xcb_res_client_id_value_value_length(i.data) >= 1)
			return (pid_t)*xcb_res_client_id_value_value(i.data);
	return 0;
}

/* --- The loop ------------------------------------------------------------------------------- */

static void take_event(XServer *x, xcb_generic_event_t *event)
{
	const xcb_property_notify_event_t *p = (const void *)event;

	switch (event->response_type & 0x7f) {
	case XCB_PROPERTY_NOTIFY:
		if (p->window == x->root)
			x->callbacks->changed(x, p->atom, x->userdata);
		break;
	case XCB_DESTROY_NOTIFY:
	case XCB_UNMAP_NOTIFY:
		x->callbacks->changed(x, XCB_ATOM_NONE, x->userdata);
		break;
	}
	free(event);
}

static void take_answers(XServer *x)
{
	xcb_generic_error_t *error = NULL;

	while (x->n_answered < x->n &&
	       xcb_poll_for_reply(x->connection, x->batch[x->n_answered].sequence, &x->batch[x->n_answered].reply,
				  &error)) {
		free(error);
		error = NULL;
		x->n_answered++;
	}
	if (xserver_is_waiting(x) && x->n_answered == x->n) {
		x->delivered = true;
		(void)sd_event_source_set_enabled(x->deadline, SD_EVENT_OFF);
		x->callbacks->answered(x, x->userdata);
	}
}

static void end(XServer *x)
{
	x->ended = true;
	(void)sd_event_source_set_enabled(x->io, SD_EVENT_OFF);
	(void)sd_event_source_set_enabled(x->deadline, SD_EVENT_OFF);
	x->callbacks->ended(x, x->userdata);
}

static void check_end(XServer *x)
{
	if (!x->ended && xcb_connection_has_error(x->connection))
		end(x);
}

static int on_late(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	end(userdata);
	return 0;
}

/* Whoever sends may have to read, and leaves events in xcb's queue, for which the socket will never be readable
 * again: so the queue is looked at each time before the loop waits. */
static int on_prepare(sd_event_source *s _unused_, void *userdata)
{
	XServer *x = userdata;
	xcb_generic_event_t *event;

	if (x->ended)
		return 0;
	while ((event = xcb_poll_for_queued_event(x->connection)))
		take_event(x, event);
	take_answers(x);
	check_end(x);
	return 0;
}

static int on_readable(sd_event_source *s _unused_, int fd _unused_, uint32_t revents _unused_, void *userdata)
{
	XServer *x = userdata;
	xcb_generic_event_t *event;

	while ((event = xcb_poll_for_event(x->connection)))
		take_event(x, event);
	take_answers(x);
	check_end(x);
	return 0;
}

void xserver_pause(XServer *x)
{
	if (!x->ended)
		(void)sd_event_source_set_enabled(x->io, SD_EVENT_OFF);
}

void xserver_resume(XServer *x)
{
	if (x->ended)
		return;
	(void)sd_event_source_set_enabled(x->io, SD_EVENT_ON);
	(void)on_readable(x->io, -1, EPOLLIN, x);
}

void xserver_send(XServer *x)
{
	(void)xcb_flush(x->connection);
	(void)sd_event_source_set_time_relative(x->deadline, SOURCE_ANSWER_MAX_USEC);
	(void)sd_event_source_set_enabled(x->deadline, SD_EVENT_ONESHOT);
}

static void select_events(XServer *x, xcb_window_t window, uint32_t mask)
{
	/* Checked, and the answer not waited for: an error is none of the events then. */
	xcb_discard_reply(x->connection, xcb_change_window_attributes_checked(x->connection, window, XCB_CW_EVENT_MASK,
									       &mask).sequence);
}

void xserver_watch(XServer *x)
{
	select_events(x, x->root, XCB_EVENT_MASK_PROPERTY_CHANGE);
}

void xserver_watch_window(XServer *x, xcb_window_t window)
{
	select_events(x, window, XCB_EVENT_MASK_STRUCTURE_NOTIFY);
}

static int attach(sd_event *event, XServer *x)
{
	int r;

	r = sd_event_add_io(event, &x->io, xcb_get_file_descriptor(x->connection), EPOLLIN, on_readable, x);
	if (r >= 0)
		r = sd_event_source_set_prepare(x->io, on_prepare);
	if (r >= 0)
		r = sd_event_source_set_ratelimit(x->io, SOURCE_STORM_INTERVAL_USEC, SOURCE_STORM_BURST);
	if (r >= 0)
		r = sd_event_source_set_description(x->io, "x-server");
	if (r >= 0)
		r = sd_event_add_time_relative(event, &x->deadline, CLOCK_MONOTONIC, SOURCE_ANSWER_MAX_USEC,
					       USEC_PER_SEC, on_late, x);
	if (r >= 0)
		r = sd_event_source_set_enabled(x->deadline, SD_EVENT_OFF);
	return r;
}

int xserver_open(sd_event *event, const char *socket, unsigned display, char *const *files,
		 const XCallbacks *callbacks, void *userdata, XServer **ret)
{
	XServer *x = calloc(1, sizeof(*x));
	int r;

	if (!x)
		return -ENOMEM;
	x->callbacks = callbacks;
	x->userdata = userdata;
	r = connect_any(socket, display, files, x);
	if (r >= 0 && xcb_setup_roots_length(xcb_get_setup(x->connection)) == 0)
		r = -EPROTO;
	if (r >= 0)
		r = attach(event, x);
	if (r < 0) {
		xserver_close(x);
		return r;
	}
	x->root = xcb_setup_roots_iterator(xcb_get_setup(x->connection)).data->root;
	/* Asked for here, its answer is there long before xcb would wait for it. */
	xcb_prefetch_extension_data(x->connection, &xcb_res_id);
	*ret = x;
	return 0;
}

XServer *xserver_close(XServer *x)
{
	if (!x)
		return NULL;
	sd_event_source_disable_unref(x->io);
	sd_event_source_disable_unref(x->deadline);
	clear_batch(x);
	if (x->connection)
		xcb_disconnect(x->connection);
	free(x);
	return NULL;
}

pid_t xserver_get_peer(const XServer *x, uid_t *ret_uid)
{
	*ret_uid = x->peer.uid;
	return x->peer.pid;
}

xcb_window_t xserver_get_root(const XServer *x)
{
	return x->root;
}
