/* SPDX-License-Identifier: MIT */
/* Gives a game that Steam starts in a unit which it shares with others a scope of its own, as Steam itself does in Game
 * Mode. vramd.conf(5) may say no: OwnScope=never.
 *
 * A game has to be there before it opens the GPU, since what it has allocated stays charged to where it was. Its start is
 * heard of by an inotify watch on Steam's reaper, the program that each game is started by: an event when it is executed,
 * and none otherwise. Which process that is the event does not say; /proc does, a few milliseconds later. */
#pragma once

#include <systemd/sd-event.h>

#include "util.h"

typedef struct OwnScope OwnScope;

/* home: where the user's Steam is looked for. -ENOENT: there is none. */
int own_scope_new(sd_event *event, const char *home, OwnScope **ret);
OwnScope *own_scope_free(OwnScope *o);
DEFINE_CLEANUP(OwnScope *, own_scope_free)
#define auto_own_scope _cleanup_(own_scope_freep)
