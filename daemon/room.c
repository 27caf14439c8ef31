/* SPDX-License-Identifier: MIT */
#include "dmem.h"
#include "room.h"

static uint64_t freed_at(const RoomUnit *units, size_t n, uint64_t level)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t left = MAX(level, units[i].keep);

		if (units[i].use > left)
			sum = add_sat(sum, units[i].use - left);
	}
	return sum;
}

uint64_t room_level(const RoomUnit *units, size_t n, uint64_t need)
{
	uint64_t low = 0, high = 0; /* low frees enough, or is all that there is; high + 1 does not */

	for (size_t i = 0; i < n; i++)
		high = MAX(high, units[i].use);
	while (low < high) {
		uint64_t middle = high - (high - low) / 2;

		if (freed_at(units, n, middle) >= need)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

uint64_t room_ceiling(const RoomUnit *unit, uint64_t level)
{
	uint64_t ceiling = MAX(level, unit->keep);

	return unit->use > ceiling ? ceiling : DMEM_UNLIMITED;
}
