/* SPDX-License-Identifier: MIT */
/* What sway's IPC socket says -> who is in front. Pure: knows neither sockets nor processes.
 *
 * Source: sway-ipc(7). i3 speaks the same, but knows no process of a window. */
#pragma once

#include "desktop.h"

enum {
	SWAY_SUBSCRIBE = 2,
	SWAY_GET_TREE = 4,
	SWAY_EVENT = INT32_MIN, /* the bit that marks one */
	SWAY_EVENT_WORKSPACE = SWAY_EVENT,
	SWAY_EVENT_WINDOW = SWAY_EVENT | 3,
};

/* Trees of a thousand windows are smaller. */
#define SWAY_MESSAGE_MAX (8 * MIB)
#define SWAY_HEADER_SIZE 14

typedef struct SwayMessage {
	int32_t type;
	const char *payload;
	size_t size;
} SwayMessage;

/* The first message of what has come: how many bytes it has; 0 = it is not whole yet; -EBADMSG: that is none,
 * -EMSGSIZE: one that is too long. */
ssize_t sway_parse_message(const char *data, size_t n, SwayMessage *ret);

/* Puts a message behind another one; returns its size. */
size_t sway_put_message(char *buf, int32_t type, const char *payload);
#define SWAY_MESSAGE_SIZE(payload) (SWAY_HEADER_SIZE + sizeof(payload) - 1)

bool sway_is_success(const SwayMessage *m);
/* Is the message an event after which another window may be in front? */
bool sway_is_move(const SwayMessage *m);
/* The answer to SWAY_GET_TREE. -EBADMSG: it is none. */
int sway_parse_tree(const SwayMessage *m, DesktopView *ret);
