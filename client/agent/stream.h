/* SPDX-License-Identifier: MIT */
/* A connection to a Unix socket that never waits: what comes is kept until it makes a whole message. */
#pragma once

#include <systemd/sd-event.h>

#include "unix-socket.h"

typedef struct Stream Stream;

typedef struct StreamCallbacks {
	/* Called with all that was not taken yet, whenever there is more. Returns how many of the bytes it took, or
	 * a negative errno: they make no sense, and the stream ends with that. Must not close the stream. */
	ssize_t (*received)(Stream *s, const char *data, size_t n, void *userdata);
	/* Once: 0 = the other side closed it, and data is what was not taken; else a negative errno: -ETIMEDOUT,
	 * -EMSGSIZE, ... May close the stream. */
	void (*ended)(Stream *s, int error, const char *data, size_t n, void *userdata);
} StreamCallbacks;

/* max: how many bytes may come without one being taken. The caller's own user must listen: -ENODEV. */
int stream_open(sd_event *event, const char *path, size_t max, const StreamCallbacks *callbacks, void *userdata,
		Stream **ret);
Stream *stream_close(Stream *s);

/* The process that listens. */
pid_t stream_get_peer(const Stream *s);

/* Sends it whole, at once, or fails: requests are small, and nobody makes one before the last was answered. With the
 * same call begins the time in which an answer must come, until stream_answered(). */
int stream_ask(Stream *s, const void *data, size_t n);
void stream_answered(Stream *s);
