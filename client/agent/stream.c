/* SPDX-License-Identifier: MIT */
#include <sys/epoll.h>

#include "source.h"
#include "stream.h"

#define PIECE_SIZE (64 * KIB)
#define PIECES_AT_ONCE 16

struct Stream {
	int fd;
	pid_t peer;
	char *data;
	size_t n, size, max;
	sd_event_source *io, *deadline;
	const StreamCallbacks *callbacks;
	void *userdata;
	bool ended;
};

static void end(Stream *s, int error)
{
	if (s->ended)
		return;
	s->ended = true;
	(void)sd_event_source_set_enabled(s->io, SD_EVENT_OFF);
	(void)sd_event_source_set_enabled(s->deadline, SD_EVENT_OFF);
	s->callbacks->ended(s, error, s->data, s->n, s->userdata);
}

static int make_room(Stream *s)
{
	size_t size = s->n + PIECE_SIZE;
	char *data;

	if (size <= s->size)
		return 0;
	data = realloc(s->data, size);
	if (!data)
		return -ENOMEM;
	s->data = data;
	s->size = size;
	return 0;
}

/* 1: more may be there; 0: that was all; else the end: -ECONNRESET = closed. */
static int read_piece(Stream *s)
{
	int r = make_room(s);
	ssize_t k;

	if (r < 0)
		return r;
	k = recv(s->fd, s->data + s->n, PIECE_SIZE, MSG_DONTWAIT);
	if (k < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	s->n += (size_t)k;
	return k > 0 ? 1 : -ECONNRESET;
}

static int hand_over(Stream *s)
{
	ssize_t taken = s->n > 0 ? s->callbacks->received(s, s->data, s->n, s->userdata) : 0;

	if (taken < 0)
		return (int)taken;
	s->n -= (size_t)taken;
	memmove(s->data, s->data + taken, s->n);
	return s->n > s->max ? -EMSGSIZE : 0;
}

static int on_readable(sd_event_source *io _unused_, int fd _unused_, uint32_t revents _unused_, void *userdata)
{
	Stream *s = userdata;
	int r = 1, k;

	for (int i = 0; r > 0 && i < PIECES_AT_ONCE; i++)
		r = read_piece(s);
	k = hand_over(s);
	if (k < 0)
		end(s, k);
	else if (r < 0)
		end(s, r == -ECONNRESET ? 0 : r);
	return 0;
}

static int on_deadline(sd_event_source *timer _unused_, uint64_t usec _unused_, void *userdata)
{
	end(userdata, -ETIMEDOUT);
	return 0;
}

static int attach(Stream *s, sd_event *event)
{
	int r;

	r = sd_event_add_io(event, &s->io, s->fd, EPOLLIN, on_readable, s);
	if (r >= 0)
		r = sd_event_source_set_ratelimit(s->io, SOURCE_STORM_INTERVAL_USEC, SOURCE_STORM_BURST);
	if (r >= 0)
		r = sd_event_add_time(event, &s->deadline, CLOCK_MONOTONIC, 0, 0, on_deadline, s);
	if (r >= 0)
		r = sd_event_source_set_enabled(s->deadline, SD_EVENT_OFF);
	return r;
}

int stream_open(sd_event *event, const char *path, size_t max, const StreamCallbacks *callbacks, void *userdata,
		Stream **ret)
{
	struct ucred peer;
	Stream *s;
	int fd, r;

	fd = unix_socket_connect(path, &peer);
	if (fd < 0)
		return fd;
	s = calloc(1, sizeof(*s));
	if (!s) {
		close_fd(fd);
		return -ENOMEM;
	}
	*s = (Stream){ .fd = fd, .peer = peer.pid, .max = max, .callbacks = callbacks, .userdata = userdata };
	r = peer.uid == getuid() ? attach(s, event) : -ENODEV;
	if (r < 0) {
		stream_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

Stream *stream_close(Stream *s)
{
	if (!s)
		return NULL;
	sd_event_source_disable_unref(s->io);
	sd_event_source_disable_unref(s->deadline);
	close_fd(s->fd);
	free(s->data);
	free(s);
	return NULL;
}

pid_t stream_get_peer(const Stream *s)
{
	return s->peer;
}

int stream_ask(Stream *s, const void *data, size_t n)
{
	ssize_t k = send(s->fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	int r;

	if (k < 0)
		return -errno;
	if ((size_t)k != n)
		return -EAGAIN;
	r = sd_event_source_set_time_relative(s->deadline, SOURCE_ANSWER_MAX_USEC);
	return r < 0 ? r : sd_event_source_set_enabled(s->deadline, SD_EVENT_ONESHOT);
}

void stream_answered(Stream *s)
{
	(void)sd_event_source_set_enabled(s->deadline, SD_EVENT_OFF);
}
