/* SPDX-License-Identifier: MIT */
/* The states of all sources -> the one that vramd is told. Pure. */
#pragma once

#include "state.h"

typedef struct Candidate {
	const char *source;
	unsigned rank; /* the lower, the better */
	State state;
} Candidate;

/* The index of the candidate that counts; -1 if none knows who is in front. ret: its state; where the window in front
 * is a nested compositor whose own state is known, with the game in there. Of equals the first one counts. */
int merge_candidates(const Candidate *candidates, size_t n, State *ret);
