/* SPDX-License-Identifier: MIT */
/* Layer 1. Which game a process belongs to, by ranked marks:
 * the unit's name, Steam's reaper among its ancestors, the environment, the flatpak's id.
 * Reads /proc only; costs the depth of the process tree. */
#pragma once

#include "process.h"
#include "unit.h"

typedef enum GameMark {
	MARK_NONE,
	MARK_SCOPE,   /* app-steam-app<appid>-<pid>.scope */
	MARK_REAPER,  /* reaper SteamLaunch AppId=<appid> */
	MARK_ENVIRON, /* SteamAppId, SteamGameId, UMU_ID, HEROIC_APP_NAME, LUTRIS_GAME_UUID, BOTTLE */
	MARK_FLATPAK,
	_MARK_MAX,
} GameMark;
const char *game_mark_to_string(GameMark mark);

typedef struct GameIdentity {
	GameMark mark;
	uint32_t appid; /* 0 = none */
	char *name;     /* what to show: the launcher's name for it, or the program's */
	char *exe;      /* file name of the program: the .exe under Wine, else of /proc/PID/exe */
} GameIdentity;

/* unit: what p's control group says, or NULL. -ESRCH if the process ended meanwhile. MARK_NONE with
 * a name is a success: some program. All texts are valid UTF-8 without control characters, at most
 * 255 bytes. */
int game_identify(const Roots *roots, const Process *p, const UnitPath *unit, GameIdentity *ret);
void game_identity_done(GameIdentity *g);

/* The best mark in an environment, as /proc has it (block_next()): 1 and all but exe, or 0. Non-Steam shortcuts have
 * 64-bit ids: their appid is the upper half. -ENOMEM. */
int game_parse_environ(const char *block, size_t size, GameIdentity *ret);
