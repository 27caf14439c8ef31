/* SPDX-License-Identifier: MIT */
/* What compositors' sources have in common that name one window in front: the process of that window, and the
 * compositor, which is who listens on the socket. */
#pragma once

#include "process-ref.h"
#include "source.h"

typedef struct DesktopView {
	Front front;
	pid_t pid; /* with FRONT_PROCESS; > 1 */
	uint32_t appid;
	const char *why; /* with FRONT_UNKNOWN, for people: a literal; may be NULL */
} DesktopView;

typedef struct Desktop {
	Source *source;
	void (*look)(void *userdata);
	void *userdata;
	sd_event_source *debounce;
	ProcessSet processes;
	ProcessRef compositor;
	bool said;
	DesktopView view;
	State state;
} Desktop;

void desktop_init(Desktop *d, Source *source, void (*look)(void *userdata), void *userdata);
void desktop_done(Desktop *d);
void desktop_set_compositor(Desktop *d, pid_t pid);

/* Something may be different: look() is called in a moment, once for all that came until then. */
void desktop_look_later(Desktop *d);
/* What it has just been told. The same again is no news. */
void desktop_say(Desktop *d, const DesktopView *v);
