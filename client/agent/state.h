/* SPDX-License-Identifier: MIT */
/* What one source knows of who is in front. Plain data: whoever fills it in owns the descriptors. */
#pragma once

#include <sys/types.h>

#include "util.h"
#include "vramd.h"

/* A dbus-daemon passes no more than 16 descriptors with a message, and two of them are game and compositor. */
#define STATE_RUNNING_MAX 12

typedef struct ProcessRef {
	pid_t pid; /* 0 = none */
	int pidfd;
} ProcessRef;

typedef enum Front {
	FRONT_UNKNOWN, /* the source cannot say: the next one may */
	FRONT_NOBODY,
	FRONT_PROCESS,
} Front;

typedef struct State {
	Front front;
	const char *why; /* with FRONT_UNKNOWN: for people, a literal; NULL: it does not say who is in front */
	ProcessRef game; /* with FRONT_PROCESS */
	bool window;     /* it is whoever's window has the focus: whether that is a game, vramd finds out */
	uint32_t appid;  /* Steam's number of it, 0 = not known */
	vramd_menu menu;
	ProcessRef compositor;
	bool nested; /* the compositor is itself a window of another one */
	ProcessRef running[STATE_RUNNING_MAX]; /* games that are not in front */
	size_t n_running;
} State;
