/* SPDX-License-Identifier: MIT */
/* What a focus source is to the agent: one file each, behind four functions. */
#pragma once

#include <stdbool.h>

#include <systemd/sd-event.h>

#include "state.h"

typedef struct Source Source; /* one place that a type knows of: an X server, a socket, a bus name */
typedef struct Probe Probe;

typedef struct SourceType {
	const char *name; /* as vramd ranks it, io.github.vramd1(5) */
	unsigned rank;    /* vramd's own */
	bool any_window;  /* it knows windows, not games */
	/* To connect may start what it connects to, as with Xwayland: only once everybody ranked above has answered, and
	 * nobody's word counts. */
	bool last_resort;

	/* Says where this source might be found now, by probe_found(), and what to watch for more, by probe_watch().
	 * Talks to nobody. */
	int (*probe)(Probe *p);

	/* Connects. Afterwards it says source_changed() whenever its state may be another one, and source_failed()
	 * when it is over. May fail at once: errors are the same as of source_failed(). *ret_data: its own. */
	int (*start)(Source *s, const char *place, void **ret_data);

	/* What is known now; what the state refers to lives until the source returns to the loop. */
	void (*read)(void *data, State *ret);

	/* Takes what start() gave. */
	void (*stop)(void *data);
} SourceType;

/* --- for probe() */

int probe_found(Probe *p, const char *place);
/* Whatever comes or goes in this directory is a reason to look again; it need not exist. */
int probe_watch(Probe *p, const char *directory);

/* --- for a source that was started; never stops it before it has returned */

sd_event *source_get_event(Source *s);
void source_changed(Source *s);
/* Over: it will be stopped, and started again after a while, which is longer each time, or when something comes or
 * goes in the directories. -ENODEV: this place is not of this kind, so only then. text: why, for people; a literal. */
void source_failed(Source *s, int error, const char *text);

/* Programs say many things that nobody here asks for, such as titles that change all the time, and that must not cost a
 * wake-up each: what comes faster than this is read all at once (sd_event_source_set_ratelimit()). */
#define SOURCE_STORM_INTERVAL_USEC (50 * USEC_PER_MSEC)
#define SOURCE_STORM_BURST 8

/* Who does not answer for so long is over. Hyprland stands still for 5 s when any program asks it nothing. */
#define SOURCE_ANSWER_MAX_USEC (10 * USEC_PER_SEC)

/* --- the types, in the order of their ranks */

extern const SourceType source_gamescope, source_kwin, source_sway, source_hyprland, source_x11, source_toplevel,
	source_gamemode;
