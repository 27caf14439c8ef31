/* SPDX-License-Identifier: MIT */
/* The parameters of the kernel's modules that vramd tunes: their names in vramd.conf(5), on the bus and in sysfs, and
 * how their values are written by people. vramd-kernel(7) says what each does. */
#pragma once

#include "util.h"

typedef enum Knob {
	KNOB_THROTTLE_HARD,
	KNOB_THROTTLE_SOFT,
	KNOB_THROTTLE_LEVELS,
	KNOB_RECLAIM_BACKOFF,
	KNOB_CONTIG_WINDOW,
	KNOB_EVICT_PRIORITY,
	KNOB_DISPLACE_LOWER,
	KNOB_GFXOFF_DELAY,
	_KNOB_MAX,
} Knob;

typedef enum KnobKind { KNOB_MSEC, KNOB_COUNT, KNOB_SWITCH } KnobKind;

typedef struct KnobInfo {
	const char *name;      /* "ThrottleHard" */
	const char *module;    /* "ttm" */
	const char *parameter; /* "throttle_hard_ms" */
	KnobKind kind;
	uint32_t max;          /* what may be set; a stranger may have written more */
	Knob needs;            /* does harm while that one is 0; _KNOB_MAX: none */
} KnobInfo;

extern const KnobInfo knob_infos[_KNOB_MAX];

Knob knob_from_name(const char *name); /* _KNOB_MAX: there is none */

/* "50ms", "2", "yes": milliseconds, a number, or 0 and 1. -EINVAL, -ERANGE. */
int knob_parse(Knob knob, const char *s, uint32_t *ret);
/* What knob_parse() expects. */
const char *knob_expects(KnobKind kind);

#define KNOB_TEXT_MAX 16
char *knob_format(char buf[static KNOB_TEXT_MAX], KnobKind kind, uint32_t value); /* returns buf */
