/* SPDX-License-Identifier: MIT */
/* What Hyprland's sockets say -> who is in front. Pure: knows neither sockets nor processes.
 *
 * Source: hyprwm/Hyprland, src/managers/EventManager.cpp (events), src/debug/HyprCtl.cpp (j/activewindow). */
#pragma once

#include "desktop.h"

/* Hyprland cuts what an event says at 1024 bytes. */
#define HYPRLAND_EVENTS_MAX (64 * KIB)
#define HYPRLAND_ANSWER_MAX (64 * KIB)

/* The window of the last event, by its address in hexadecimal; "" = none. */
typedef struct HyprlandActive {
	char address[20];
} HyprlandActive;

/* Takes the whole lines of what has come, and says how many bytes these are. *moved is set when one of them names
 * another active window than the one before it did; the active window's title may change all the time. */
size_t hyprland_parse_events(const char *data, size_t n, HyprlandActive *active, bool *moved);

/* The answer to "j/activewindow". -EBADMSG: it is none. */
int hyprland_parse_window(const char *text, size_t n, DesktopView *ret);
