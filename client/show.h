/* SPDX-License-Identifier: MIT */
/* The parts that status, games and top share. */
#pragma once

#include "client.h"
#include "output.h"

/* "card0/vram0": the DRM node and the region's own name; without a device the region's full name. */
char *region_label(const Region *r);
/* The user's name, or the number. */
char *user_label(uint32_t uid);

void show_headline(const Output *o, const Snapshot *s);
void show_regions(const Output *o, const Snapshot *s);
/* A line per game and region; details adds what is known of each game below it. */
void show_games(const Output *o, const Snapshot *s, bool details);
void show_holds(const Output *o, const Snapshot *s);
