/* SPDX-License-Identifier: MIT */
#include "merge.h"

/* A nested compositor does not know whether its window is in front: it counts only where nobody else knows. */
static int best_candidate(const Candidate *c, size_t n)
{
	int best = -1;

	for (size_t i = 0; i < n; i++) {
		if (c[i].state.front == FRONT_UNKNOWN)
			continue;
		if (best < 0 || (c[best].state.nested && !c[i].state.nested) ||
		    (c[best].state.nested == c[i].state.nested && c[i].rank < c[best].rank))
			best = (int)i;
	}
	return best;
}

static vramd_menu combine_menus(vramd_menu a, vramd_menu b)
{
	if (a == VRAMD_MENU_OPEN || b == VRAMD_MENU_OPEN)
		return VRAMD_MENU_OPEN;
	return a == VRAMD_MENU_UNKNOWN ? a : b;
}

static void look_inside(State *outer, const State *inner)
{
	outer->game = inner->game;
	outer->window = inner->window;
	if (inner->appid > 0)
		outer->appid = inner->appid;
	outer->menu = combine_menus(outer->menu, inner->menu);
	for (size_t i = 0; i < inner->n_running && outer->n_running < STATE_RUNNING_MAX; i++)
		outer->running[outer->n_running++] = inner->running[i];
}

int merge_candidates(const Candidate *c, size_t n, State *ret)
{
	int best = best_candidate(c, n);
	State state;

	if (best < 0)
		return best;
	state = c[best].state;
	/* Compositors may be nested in each other, but no deeper than there are candidates. */
	for (size_t depth = 0; depth < n; depth++)
		for (size_t i = 0; i < n; i++)
			if (c[i].state.nested && c[i].state.front == FRONT_PROCESS && state.game.pid > 0 &&
			    c[i].state.compositor.pid == state.game.pid)
				look_inside(&state, &c[i].state);
	*ret = state;
	return best;
}
