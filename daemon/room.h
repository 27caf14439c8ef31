/* SPDX-License-Identifier: MIT */
/* Layer 2. Room for a game that is about to start: how far the programs in the background come down, so that as
 * much as was asked for is free. Pure. */
#pragma once

#include "util.h"

/* One of them, in one region. */
typedef struct RoomUnit {
	uint64_t use;
	uint64_t keep; /* what it has in any case */
} RoomUnit;

/* The highest level that frees `need` when nobody holds more than that, or than what he keeps: so who uses little
 * loses nothing. 0 if all of them together do not have as much. */
uint64_t room_level(const RoomUnit *units, size_t n, uint64_t need);

/* The ceiling at a level: at least what the unit keeps. DMEM_UNLIMITED if it is below that already. */
uint64_t room_ceiling(const RoomUnit *unit, uint64_t level);
