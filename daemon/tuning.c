/* SPDX-License-Identifier: MIT */
/* What the kernel's knobs are to be: what was set by hand counts before what the configuration says of the game in
 * front, and that before its section for all. They are set from the start, and not only for a game: buffers take their
 * place in the order of eviction when they are made. */
#include <sysexits.h>

#include "knobs.h"
#include "log.h"
#include "manager.h"

static const char *const origin_names[_KNOB_ORIGIN_MAX] = {
	[KNOB_ORIGIN_KERNEL] = "kernel",
	[KNOB_ORIGIN_CONFIGURATION] = "configuration",
	[KNOB_ORIGIN_GAME] = "game",
	[KNOB_ORIGIN_HAND] = "hand",
	[KNOB_ORIGIN_STRANGER] = "stranger",
};

const char *knob_origin_to_string(KnobOrigin o)
{
	return origin_names[o];
}

static KnobOrigin find_wish(const Manager *m, Knob k, const GameConfig *front, KnobWish *ret)
{
	KnobOrigin origin = KNOB_ORIGIN_KERNEL;
	KnobWish wish = { KNOB_KEEP, 0 };

	if (m->tuning.by_hand[k].kind == KNOB_SET) {
		origin = KNOB_ORIGIN_HAND;
		wish = m->tuning.by_hand[k];
	} else if (m->config->enabled && front && front->knobs[k].kind != KNOB_UNSET) {
		origin = KNOB_ORIGIN_GAME;
		wish = front->knobs[k];
	} else if (m->config->enabled) {
		origin = KNOB_ORIGIN_CONFIGURATION;
		wish = m->config->knobs[k];
	}
	*ret = wish;
	return wish.kind == KNOB_SET ? origin : KNOB_ORIGIN_KERNEL;
}

/* In the unit's sandbox only those files can be written that were there when it was made. */
static bool came_later(Manager *m, Knob k)
{
	uint64_t inode;
	uint32_t value;

	return knob_read(&m->roots, k, &value, &inode) >= 0 && inode != m->tuning.first_inodes[k];
}

/* The same trouble is told once. */
static void note_results(Manager *m, const int *results)
{
	Tuning *t = &m->tuning;

	for (Knob k = 0; k < _KNOB_MAX; k++) {
		int r = results[k];

		if (r == -EROFS && came_later(m, k)) {
			if (!t->stale_sandbox)
				log_notice("The module '%s' came after vramd: what vramd sets there waits until nothing is "
					   "protected", knob_infos[k].module);
			t->stale_sandbox = true;
		} else if (r < 0 && r != -ENOENT && r != t->results[k]) {
			log_warning_errno(r, "Cannot set the parameter '%s' of '%s', ignoring: %m",
					  knob_infos[k].parameter, knob_infos[k].module);
		}
		t->results[k] = r;
	}
}

/* A new life costs nobody anything while nothing is protected, and systemd makes a new sandbox for it. */
static void leave_stale_sandbox(Manager *m)
{
	/* Asleep, vramd is paused, and what it protects stays so. */
	if (!m->tuning.stale_sandbox || m->sleeping || m->state == STATE_PROTECTING || hold_count(m->holds) > 0)
		return;
	m->tuning.stale_sandbox = false;
	log_notice("Starting anew, to be able to set the parameters of a module that came after vramd");
	(void)sd_event_exit(m->event, EX_TEMPFAIL);
}

static void note_first_inodes(Manager *m)
{
	uint32_t value;

	for (Knob k = 0; k < _KNOB_MAX; k++)
		if (knob_read(&m->roots, k, &value, &m->tuning.first_inodes[k]) < 0)
			m->tuning.first_inodes[k] = 0;
}

void manager_settle_knobs(Manager *m, const Game *front)
{
	const GameConfig *config = front ? game_config(m, front) : NULL;
	KnobOrigin origins[_KNOB_MAX];
	KnobWish wishes[_KNOB_MAX];
	int results[_KNOB_MAX], r;
	Tuning *t = &m->tuning;

	leave_stale_sandbox(m);
	for (Knob k = 0; k < _KNOB_MAX; k++)
		origins[k] = find_wish(m, k, config, &wishes[k]);
	if (t->settled && memcmp(wishes, t->wishes, sizeof(wishes)) == 0 &&
	    memcmp(origins, t->origins, sizeof(origins)) == 0)
		return;
	if (!t->started)
		note_first_inodes(m);
	r = apply_knobs(m->apply, wishes, results);
	if (r < 0)
		log_warning_errno(r, "Cannot keep the old values of the kernel's parameters, ignoring: %m");
	note_results(m, results);
	memcpy(t->wishes, wishes, sizeof(wishes));
	memcpy(t->origins, origins, sizeof(origins));
	t->settled = t->started = true;
	leave_stale_sandbox(m);
	if (m->hooks)
		m->hooks->knobs_changed(m);
}

void manager_doubt_knobs(Manager *m)
{
	m->tuning.settled = false;
}

static void settle_now(Manager *m, const char *reason)
{
	manager_doubt_knobs(m);
	manager_queue_update(m, reason);
	manager_flush_update(m);
}

int manager_check_knob(const Manager *m, Knob k, uint32_t value)
{
	Knob needs = knob_infos[k].needs;
	uint32_t present;
	int r;

	if (!m->apply)
		return -EOPNOTSUPP;
	if (value > knob_infos[k].max)
		return -ERANGE;
	r = knob_read(&m->roots, k, &present, NULL);
	if (r < 0)
		return r;
	if (value > 0 && needs != _KNOB_MAX && (knob_read(&m->roots, needs, &present, NULL) < 0 || present == 0))
		return -ENODEV;
	return 0;
}

int manager_set_knob(Manager *m, Knob k, uint32_t value)
{
	const KnobWish before = m->tuning.by_hand[k];
	int r;

	r = manager_check_knob(m, k, value);
	if (r < 0)
		return r;
	m->tuning.by_hand[k] = (KnobWish){ KNOB_SET, value };
	apply_take_knob(m->apply, k);
	settle_now(m, "a parameter of the kernel was set by hand");
	r = m->tuning.results[k];
	if (r < 0)
		m->tuning.by_hand[k] = before;
	return r;
}

int manager_reset_knobs(Manager *m)
{
	if (!m->apply)
		return -EOPNOTSUPP;
	for (Knob k = 0; k < _KNOB_MAX; k++) {
		m->tuning.by_hand[k] = (KnobWish){ 0 };
		apply_take_knob(m->apply, k);
	}
	settle_now(m, "the parameters of the kernel were reset");
	return 0;
}

int manager_get_knob(const Manager *m, Knob k, uint32_t *ret, KnobOrigin *ret_origin)
{
	KnobOrigin origin = m->tuning.origins[k];
	int r;

	r = knob_read(&m->roots, k, ret, NULL);
	if (r < 0)
		return r;
	if (m->apply && apply_knob_is_yielded(m->apply, k))
		origin = KNOB_ORIGIN_STRANGER;
	else if (origin != KNOB_ORIGIN_KERNEL && *ret != m->tuning.wishes[k].value)
		origin = KNOB_ORIGIN_KERNEL;
	*ret_origin = origin;
	return 0;
}
