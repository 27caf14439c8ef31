/* SPDX-License-Identifier: MIT */
/* What the companion kernel series gives, by what is there, and what its absence costs. The figures are what
 * tests/bench/contention/run --kernel patched prints: a simulated GPU, where 1 MiB stands for 32. */
#include "doctor.h"

#define SERIES_ADVICE "Nothing, or try the companion kernel series: man 7 vramd-kernel."

typedef struct SeriesAbility {
	const char *name;
	Knob knob;
	const char *have, *lack;
} SeriesAbility;

static const SeriesAbility abilities[] = {
	{ "throttle", KNOB_THROTTLE_SOFT,
	  "a game that lost memory does not fight for it in each frame",
	  "a game and somebody who needs memory for a moment evict each other in each frame. With a burst of 2 GiB the "
	  "slowest hundredth of the frames took 283 ms, and 39 ms where the kernel throttles. vramd's Easing= does a "
	  "part of that" },
	{ "reclaim-backoff", KNOB_RECLAIM_BACKOFF,
	  "a search for memory that found nothing is not repeated at once",
	  "a game that may claim memory and finds none searches again for each buffer. A submission of 9,000 buffers took "
	  "507 to 661 ms of processor time in User-Mode Linux, and 1.5 to 2.9 ms with it" },
	{ "contig-window", KNOB_CONTIG_WINDOW,
	  "an image for the screen evicts one range of memory",
	  "an image for the screen, which is in one piece, may sweep the card: 200 MiB of 256 were evicted for one "
	  "of 1 MiB, and 1 MiB with it" },
	{ "evict-priority", KNOB_EVICT_PRIORITY,
	  "a game's buffers are evicted in the order that it asks for",
	  "chance decides which of a game's buffers are evicted, whatever it said of them" },
	{ "displace-lower", KNOB_DISPLACE_LOWER,
	  "a game's buffers make room for those that matter more to it",
	  "what a game made last stays outside, however much it matters. A game that used 9/8 of the card took 24.6 ms a "
	  "frame, and 14.6 ms with it" },
};

static void check_knob(Doctor *d, const SeriesAbility *a)
{
	if (!kernel_has(d->kernel, a->knob))
		doctor_add(d, LEVEL_NOTE, "ability", SERIES_ADVICE, "%s is missing: %s.", a->name, a->lack);
	else if (kernel_value(d->kernel, a->knob) == 0)
		doctor_add(d, LEVEL_NOTE, "ability", "\"vramctl tune\" says why.", "%s is there, and off: %s.", a->name,
			   a->lack);
	else
		doctor_add(d, LEVEL_OK, "ability", NULL, "%s: %s.", a->name, a->have);
}

bool doctor_protects_below_root(const Doctor *d)
{
	if (!d->snapshot)
		return false;
	return manager_has(&d->snapshot->manager, "dmem-events") || kernel_has(d->kernel, KNOB_RECLAIM_BACKOFF);
}

static void check_root(Doctor *d)
{
	if (doctor_protects_below_root(d))
		doctor_add(d, LEVEL_OK, "ability", NULL,
			   "root-protection is probably there: a game is protected from the system's services as well. It "
			   "cannot be seen; the rest of the series is there.");
	else
		doctor_add(d, LEVEL_NOTE, "ability", SERIES_ADVICE,
			   "root-protection is probably missing: a service of the system's evicts a protected game of a user's. "
			   "In a test it lost 96 of 96 buffers, and none with it. It cannot be seen; the rest of the series is "
			   "missing.");
}

/* Which of these functions the kernel has. */
static void find_symbols(const char *proc, const char *const *names, bool *found, size_t n)
{
	auto_free char *path = NULL, *line = NULL;
	auto_fclose FILE *f = NULL;
	size_t size = 0;

	if (asprintf(&path, "%s/kallsyms", proc) < 0) {
		path = NULL;
		return;
	}
	f = fopen(path, "re");
	while (f && getline(&line, &size, f) > 0) {
		char *save = NULL, *name;

		if (!strtok_r(line, " \t\n", &save) || !strtok_r(NULL, " \t\n", &save) ||
		    !(name = strtok_r(NULL, " \t\n", &save)))
			continue;
		for (size_t i = 0; i < n; i++)
			found[i] = found[i] || streq(name, names[i]);
	}
}

static void check_backoff(Doctor *d)
{
	static const char *const names[] = { "drm_exec_backoff", "drm_exec_init" };
	bool found[ARRAY_SIZE(names)] = {};

	find_symbols(d->proc, names, found, ARRAY_SIZE(names));
	if (found[0])
		doctor_add(d, LEVEL_OK, "ability", NULL,
			   "lock-backoff: drivers can try again when two submissions want each other's buffers.");
	else if (found[1])
		doctor_add(d, LEVEL_NOTE, "ability", SERIES_ADVICE,
			   "lock-backoff is missing: a submission fails when two want each other's buffers. With four programs "
			   "that need twice the card, 78 %% of them did, and none with it.");
	else
		doctor_add(d, LEVEL_NOTE, "ability", NULL,
			   "lock-backoff cannot be seen: the module drm_exec is not loaded, or /proc/kallsyms cannot be read.");
}

void doctor_check_series(Doctor *d)
{
	check_root(d);
	for (size_t i = 0; i < ARRAY_SIZE(abilities); i++)
		check_knob(d, &abilities[i]);
	check_backoff(d);
}
