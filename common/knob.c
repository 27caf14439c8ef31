/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "knob.h"
#include "parse.h"

const KnobInfo knob_infos[_KNOB_MAX] = {
	[KNOB_THROTTLE_HARD] = { "ThrottleHard", "ttm", "throttle_hard_ms", KNOB_MSEC, 1000, _KNOB_MAX },
	[KNOB_THROTTLE_SOFT] = { "ThrottleSoft", "ttm", "throttle_soft_ms", KNOB_MSEC, 60000, _KNOB_MAX },
	[KNOB_THROTTLE_LEVELS] = { "ThrottleLevels", "ttm", "throttle_levels", KNOB_COUNT, 8, _KNOB_MAX },
	[KNOB_RECLAIM_BACKOFF] = { "ReclaimBackoff", "ttm", "reclaim_backoff_ms", KNOB_MSEC, 1000, _KNOB_MAX },
	[KNOB_CONTIG_WINDOW] = { "ContigWindow", "ttm", "contig_window", KNOB_SWITCH, 1, _KNOB_MAX },
	/* In that order the memory is in pieces, so that a contiguous buffer would sweep all of it. */
	[KNOB_EVICT_PRIORITY] = { "EvictPriority", "ttm", "evict_priority", KNOB_SWITCH, 1, KNOB_CONTIG_WINDOW },
	[KNOB_DISPLACE_LOWER] = { "DisplaceLower", "ttm", "displace_lower", KNOB_SWITCH, 1, KNOB_EVICT_PRIORITY },
	[KNOB_GFXOFF_DELAY] = { "GfxoffDelay", "amdgpu", "gfxoff_delay_ms", KNOB_MSEC, 60000, _KNOB_MAX },
};

Knob knob_from_name(const char *name)
{
	Knob k = 0;

	while (k < _KNOB_MAX && !streq(knob_infos[k].name, name))
		k++;
	return k;
}

static int parse_msec(const char *s, uint32_t *ret)
{
	uint64_t usec;
	int r;

	r = parse_usec(s, &usec);
	if (r < 0)
		return r;
	if (usec % USEC_PER_MSEC)
		return -EINVAL;
	if (usec / USEC_PER_MSEC > UINT32_MAX)
		return -ERANGE;
	*ret = (uint32_t)(usec / USEC_PER_MSEC);
	return 0;
}

int knob_parse(Knob knob, const char *s, uint32_t *ret)
{
	const KnobInfo *info = &knob_infos[knob];
	uint32_t value;
	bool on;
	int r;

	if (info->kind == KNOB_MSEC) {
		r = parse_msec(s, &value);
	} else if (info->kind == KNOB_COUNT) {
		r = parse_u32(s, &value);
	} else {
		r = parse_bool(s, &on);
		if (r >= 0)
			value = on;
	}
	if (r < 0)
		return r;
	if (value > info->max)
		return -ERANGE;
	*ret = value;
	return 0;
}

const char *knob_expects(KnobKind kind)
{
	static const char *const texts[] = {
		[KNOB_MSEC] = "a time such as 50ms or 2s",
		[KNOB_COUNT] = "a whole number",
		[KNOB_SWITCH] = "yes or no",
	};

	return texts[kind];
}

char *knob_format(char buf[static KNOB_TEXT_MAX], KnobKind kind, uint32_t value)
{
	if (kind == KNOB_SWITCH)
		(void)snprintf(buf, KNOB_TEXT_MAX, "%s", value ? "yes" : "no");
	else if (kind == KNOB_COUNT)
		(void)snprintf(buf, KNOB_TEXT_MAX, "%" PRIu32, value);
	else if (value > 0 && value % 1000 == 0)
		(void)snprintf(buf, KNOB_TEXT_MAX, "%" PRIu32 "s", value / 1000);
	else
		(void)snprintf(buf, KNOB_TEXT_MAX, "%" PRIu32 "ms", value);
	return buf;
}
