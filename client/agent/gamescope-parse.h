/* SPDX-License-Identifier: MIT */
/* gamescope's root window properties -> who is in front. Pure: knows neither X nor processes.
 *
 * Source: ValveSoftware/gamescope, src/steamcompmgr.cpp (init_xwayland_ctx, determine_and_apply_focus). */
#pragma once

#include "state.h"

#define GAMESCOPE_APPID_STEAM 769

/* The 32-bit items of a property. An absent one and an empty one are different things. */
typedef struct Cardinals {
	bool present;
	const uint32_t *v;
	size_t n;
} Cardinals;

typedef struct GamescopeProperties {
	Cardinals app;     /* GAMESCOPE_FOCUSED_APP: who has the input; only with --steam */
	Cardinals app_gfx; /* GAMESCOPE_FOCUSED_APP_GFX: who is shown; only with --steam */
	Cardinals window;  /* GAMESCOPE_FOCUSED_WINDOW: its XID on one of the servers */
	Cardinals windows; /* GAMESCOPE_FOCUSABLE_WINDOWS: XID, appid and pid of each window of all servers */
} GamescopeProperties;

typedef struct GamescopeView {
	Front front;
	pid_t pid;
	uint32_t appid;
	vramd_menu menu;
	pid_t running[STATE_RUNNING_MAX];
	size_t n_running;
} GamescopeView;

void gamescope_parse(const GamescopeProperties *p, GamescopeView *ret);
