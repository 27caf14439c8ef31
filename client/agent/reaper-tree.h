/* SPDX-License-Identifier: MIT */
/* Which processes are a game's that Steam's reaper started. Pure. */
#pragma once

#include <sys/types.h>

#include "util.h"

typedef struct TreeProcess {
	pid_t pid, parent;
	bool reaper; /* of Steam, for some game */
	bool inside; /* in the control group that it is about */
	bool chosen;
} TreeProcess;

/* Chooses the reaper and what descends from it, as far as it is inside. 0, or:
 * -ESRCH     there is no such reaper (any more)
 * -EALREADY  nobody else is inside: the game has its own group
 * -EBUSY     another reaper is below or above it: whose game it is cannot be said. A child that has just been forked
 *            looks like one, until it has become another program */
int reaper_tree_choose(TreeProcess *v, size_t n, pid_t reaper);
