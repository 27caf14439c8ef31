/* SPDX-License-Identifier: MIT */
/* What a window calls its application (app_id of Wayland, class of X) -> which game, which unit. Pure.
 *
 * Sources: systemd, docs/DESKTOP_ENVIRONMENTS.md (names of units); steam_app_ is Proton's. */
#pragma once

#include "util.h"

/* Steam's number; 0 = it is none of Steam's. */
uint32_t app_id_get_steam(const char *app_id);

/* Is the unit, by its name, one of that application? "app[-LAUNCHER]-APPLICATION[@RANDOM].service",
 * "app[-LAUNCHER]-APPLICATION-RANDOM.scope", or Steam's "app-steam-appNUMBER-PID.scope". */
bool app_id_is_of_unit(const char *app_id, const char *unit);
