/* SPDX-License-Identifier: MIT */
/* What the companion kernel series gives, by what is there, and what its absence costs. The figures are what
 * tests/bench/contention/run --kernel patched prints: a simulated GPU, where 1 MiB stands for 32. */
#include "doctor.h"

typedef struct SeriesAbility {
	const char *name;
	Knob knob;
	const char *have, *lack;
} SeriesAbility;

static const SeriesAbility abilities[] = {
	{ "throttle", KNOB_THROTTLE_SOFT,
	  "a game that lost memory does not fight for it in each frame",
	  "a game and somebody who needs memory for a moment evict each other in each frame. With a burst of 2 GiB the "
	  "slowest hundredth of the frames took 283 ms, and 38.5 ms where the kernel throttles; beside a browser 46.0 "
	  "ms, and 27.0 ms. A game that wants 9/8 of the card moved 10.8 MiB in each frame, and 0.67 MiB. vramd's "
	  "Easing= does a part of that" },
	{ "reclaim-backoff", KNOB_RECLAIM_BACKOFF,
	  "a search for memory that found nothing is not repeated at once",
	  "a game that may claim memory and finds none searches again for each buffer. A submission of 9,000 buffers "
	  "took 507 to 661 ms of processor time in User-Mode Linux, and 1.5 to 2.9 ms with it" },
	{ "contig-window", KNOB_CONTIG_WINDOW,
	  "an image for the screen evicts one range of memory",
	  "an image for the screen, which is in one piece, may sweep the card: for one of 1 MiB 200 of 256 MiB were "
	  "evicted, 223 at worst, and 1 MiB with it. Where a game's buffers are in the order of its priorities, 250 "
	  "MiB moved in each frame, and 4.05 MiB with it" },
	{ "evict-priority", KNOB_EVICT_PRIORITY,
	  "a game's buffers are evicted in the order that it asks for",
	  "chance decides which of a game's buffers are evicted, whatever it said of them. What mattered more went out "
	  "first 4 of 4 times, and never with it: all was in order after 1 frame, and after 2 when the priorities "
	  "changed" },
	{ "displace-lower", KNOB_DISPLACE_LOWER,
	  "a game's buffers make room for those that matter more to it",
	  "what a game made last stays outside, however much it matters. A game that wants 9/8 of the card took 24.6 "
	  "ms a frame, and 14.6 ms with it and evict-priority; one that wants 10/8, 32.1 ms and 16.2 ms" },
};

static void check_knob(Doctor *d, const SeriesAbility *a)
{
	if (!kernel_has(d->kernel, a->knob))
		doctor_add(d, LEVEL_NOTE, "ability", DOCTOR_SERIES_ADVICE, "%s is missing: %s.", a->name, a->lack);
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
			   "root-protection is probably there: a game is protected from the system's services as well. "
			   "It cannot be seen; the rest of the series is there.");
	else
		doctor_add(d, LEVEL_NOTE, "ability", DOCTOR_SERIES_ADVICE,
			   "root-protection is probably missing: a service of the system's evicts a protected game of "
			   "a user's. In a test it lost 96 of 96 buffers, and none with it. It cannot be seen; the "
			   "rest of the series is missing.");
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
		doctor_add(d, LEVEL_NOTE, "ability", DOCTOR_SERIES_ADVICE,
			   "lock-backoff is missing: a submission fails when two want each other's buffers. With four "
			   "programs that need twice the card, 78 %% of 7201 did, and none of 10693 with it. With a "
			   "game that wants 9/8 of the card 942 did in 30 s, and the slowest hundredth of the "
			   "compositor's frames took 98 ms; with the whole series none did, they took 1.2 ms, and the "
			   "game had 1.67 times the frames.");
	else
		doctor_add(d, LEVEL_NOTE, "ability", NULL,
			   "lock-backoff cannot be seen: the module drm_exec is not loaded, or /proc/kallsyms cannot be read.");
}

/* --- amdgpu --------------------------------------------------------------------------------------- */

static bool has_driver(const Doctor *d, const char *driver)
{
	for (size_t i = 0; i < d->snapshot->n_regions; i++)
		if (streq(strempty(d->snapshot->regions[i].driver), driver))
			return true;
	return false;
}

/* One patch gives both, and only its parameter can be seen. There are no figures: it has not been run on a card. */
static void check_amdgpu(Doctor *d)
{
	if (!has_driver(d, "amdgpu"))
		return;
	if (kernel_has(d->kernel, KNOB_GFXOFF_DELAY)) {
		doctor_add(d, LEVEL_OK, "ability", NULL,
			   "gfxoff-delay: for how long an idle amdgpu stays switched on can be set (GfxoffDelay=).");
		doctor_add(d, LEVEL_OK, "ability", NULL,
			   "set-priority is probably there: amdgpu takes the priorities that a game gives its buffers. "
			   "It cannot be seen; the other half of its patch is there.");
		return;
	}
	doctor_add(d, LEVEL_NOTE, "ability", DOCTOR_SERIES_ADVICE,
		   "gfxoff-delay is missing: amdgpu may switch off what has been idle for 100 ms, and a frame that "
		   "comes after such a gap waits for it. Not measured: that needs a card.");
	doctor_add(d, LEVEL_NOTE, "ability", DOCTOR_SERIES_ADVICE,
		   "set-priority is probably missing: amdgpu does not take the priorities that a game gives its "
		   "buffers, so evict-priority and displace-lower have nothing to go by. It cannot be seen; the other "
		   "half of its patch is missing. SteamOS's kernel has it alone.");
}

void doctor_check_series(Doctor *d)
{
	check_root(d);
	for (size_t i = 0; i < ARRAY_SIZE(abilities); i++)
		check_knob(d, &abilities[i]);
	check_backoff(d);
	check_amdgpu(d);
}
