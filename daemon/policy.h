/* SPDX-License-Identifier: MIT */
/* Layer 2. From a world and a configuration to a plan. Pure: no file, no clock, no loop, no log; the same
 * input gives the same plan.
 *
 * For a region of capacity C:
 *   compositor  min = low = its use + 25 %, at least C/32, at most C/8: its scanout buffers are never the
 *               ones evicted, since their forced return is what sweeps a card
 *   game in front  low = C - reserve, reserve = max(C/16, compositor's use x 1.25 + C/32) and at most C/4:
 *               with low = C game and compositor evict each other every frame
 *               while it is eased (easing.h): no more than that, and nobody else gets the difference
 *   menu open   low of its owner = menu_share, at most C/8, from what is left: never from the game
 *   game behind low = background_share of what it uses now
 *   service     low while no game is in front; else its ceiling
 *   room        the ceiling that room.h found, for a moment
 * and for each ancestor exactly the sum of its protected children: with slack in an ancestor the
 * kernel hands the rest to the unprotected siblings, which then evict the game. The sums never promise
 * more than C: min first, then low is cut from the least important group up; equals share in
 * proportion. Nothing is planned for a compositor or an overlay in whose session no game is. */
#pragma once

#include "world.h"

typedef struct PlanLimits {
	uint64_t value[_DMEM_LIMIT_MAX]; /* min, low: 0 = no claim; max: DMEM_UNLIMITED = no ceiling */
} PlanLimits;

typedef enum PlanReason {
	PLAN_GAME_IN_FRONT,
	PLAN_GAME_EASED,
	PLAN_COMPOSITOR_FLOOR,
	PLAN_MENU_SHARE,
	PLAN_BACKGROUND_SHARE,
	PLAN_SERVICE_CLAIM,
	PLAN_SERVICE_CEILING,
	PLAN_BACKGROUND_CEILING,
	PLAN_ROOM,
	PLAN_ANCESTOR, /* exact sum of its protected children */
	_PLAN_REASON_MAX,
} PlanReason;
/* A phrase for a log line: "the game in front", "sum of its protected children". */
const char *plan_reason_to_string(PlanReason reason);

typedef struct PlanGroup {
	char *path;
	PlanReason reason; /* of the most important claim */
	bool ancestor;     /* an inner node: its children must have dmem */
	bool passing;      /* its ceiling is there for a moment: a stranger's later one is not fought */
	PlanLimits *limits; /* [n_regions] */
} PlanGroup;

typedef struct Plan {
	char **regions; /* names, as in the world */
	size_t n_regions;
	PlanGroup *groups; /* parents before their children; siblings by name */
	size_t n_groups;
} Plan;

/* -ENOMEM only. */
int policy_decide(const World *world, const Config *config, Plan *ret);
void plan_done(Plan *plan);
#define auto_plan _cleanup_(plan_done)
const PlanGroup *plan_find(const Plan *plan, const char *path);
