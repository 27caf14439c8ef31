/* SPDX-License-Identifier: MIT */
/* Layer 0. What Steam's processes say of the game that they run. */
#pragma once

#include "util.h"

/* The AppId= of a reaper's command line: 1 and *ret_appid, or 0. Parsing stops at "--". Compatible with gamescope's
 * own rule (pull request 2190). */
int steam_parse_reaper(const char *cmdline, size_t size, uint32_t *ret_appid);
