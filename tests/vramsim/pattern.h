/* SPDX-License-Identifier: MIT */
/* Contents that can be made, recognised and summed without having been kept. */
#pragma once

#include "client.h"

/* Never the same for two words of a buffer or for two seeds; seed 0 is all zero, as a new buffer. */
static inline uint64_t pattern_word(uint64_t seed, uint64_t index)
{
	uint64_t word = (seed << 32 ^ index) * UINT64_C(0x9e3779b97f4a7c15);

	return seed ? word ^ word >> 29 : 0;
}

static inline void pattern_fill(uint64_t *memory, uint64_t size, uint64_t seed)
{
	uint64_t i;

	for (i = 0; i < size / sizeof(*memory); i++)
		memory[i] = pattern_word(seed, i);
}

/* The first word that is not as it should be, or -1. */
static inline int64_t pattern_mismatch(const uint64_t *memory, uint64_t size, uint64_t seed)
{
	uint64_t i;

	for (i = 0; i < size / sizeof(*memory); i++)
		if (memory[i] != pattern_word(seed, i))
			return (int64_t)i;
	return -1;
}

/* What BO_INFO should say: FNV-1a, 64 bits. */
static inline uint64_t pattern_checksum(uint64_t size, uint64_t seed)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325), i, word;
	int byte;

	for (i = 0; i < size / sizeof(word); i++) {
		word = pattern_word(seed, i);
		for (byte = 0; byte < 64; byte += 8)
			hash = (hash ^ (word >> byte & 0xff)) * UINT64_C(0x100000001b3);
	}
	return hash;
}
