/* SPDX-License-Identifier: MIT */
/* Layer 2. The world at one moment, as plain data: what policy decides on.
 * Everything is borrowed: the builder (manager.c) keeps it alive while a plan is made. */
#pragma once

#include "config.h"
#include "dmem.h"
#include "easing.h"

typedef enum MenuState {
	MENU_UNKNOWN, /* cannot be known: never treated as closed */
	MENU_CLOSED,
	MENU_OPEN,
	_MENU_STATE_MAX,
	_MENU_STATE_INVALID = -EINVAL,
} MenuState;
const char *menu_state_to_string(MenuState m);
MenuState menu_state_from_string(const char *s);

typedef struct WorldRegion {
	const char *name;
	uint64_t capacity;   /* bytes */
	bool nothing_to_gain; /* integrated memory, or a region that no driver evicts from */
} WorldRegion;

/* One user's session: who is in front there, and whether that counts. */
typedef struct WorldSession {
	uid_t uid;
	bool active;     /* on its seat: an inactive session protects nothing */
	MenuState menu;
} WorldSession;

typedef enum GroupRole {
	ROLE_COMPOSITOR, /* in order of importance: what is cut last comes first */
	ROLE_FRONT,      /* the game in front */
	ROLE_OVERLAY,    /* owner of the menu */
	ROLE_BACKGROUND, /* a game behind Steam's home screen or another window */
	ROLE_SERVICE,    /* of a [service] section */
	ROLE_SIBLING,    /* others beside the game in front: only ever a ceiling */
	ROLE_ROOM,       /* others that make room for a game that starts: a passing ceiling */
	_ROLE_MAX,
} GroupRole;
const char *group_role_to_string(GroupRole role);

/* A unit's control group and the part that it plays. One path may appear in several roles. */
typedef struct WorldGroup {
	const char *path;
	GroupRole role;
	const WorldSession *session;  /* NULL for system services */
	const GameConfig *game;       /* ROLE_FRONT: overrides, or NULL */
	const ServiceConfig *service; /* ROLE_SERVICE */
	const uint64_t *current;      /* [n_regions] bytes in use now */
	const Easing *easing;         /* ROLE_FRONT: [n_regions], or NULL */
	const uint64_t *ceiling;      /* ROLE_ROOM: [n_regions]; DMEM_UNLIMITED = none */
} WorldGroup;

typedef struct World {
	const WorldRegion *regions;
	size_t n_regions;
	const WorldGroup *groups;
	size_t n_groups;
} World;
