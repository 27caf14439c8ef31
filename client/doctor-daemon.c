/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <sys/stat.h>

#include "doctor.h"
#include "fileio.h"
#include "parse.h"
#include "show.h"

#define FILE_MAX_SIZE (64 * 1024)

static void check_state(Doctor *d, const Manager *m)
{
	const char *state = strempty(m->state);

	if (streq(state, "unsupported"))
		doctor_add(d, LEVEL_PROBLEM, "state", "See the other findings.",
			   "vramd %s can do nothing here: %s", strempty(m->version), strempty(m->reason));
	else if (streq(state, "paused"))
		doctor_add(d, LEVEL_NOTE, "state", NULL, "vramd %s is paused: %s", strempty(m->version),
			   strempty(m->reason));
	else
		doctor_add(d, LEVEL_OK, "state", NULL, "vramd %s runs, state %s: %s",
			   strempty(m->version), state, strempty(m->reason));
}

static void check_abilities(Doctor *d, const Manager *m)
{
	static const struct {
		const char *name;
		Level level;
		const char *have, *lack, *advice;
	} abilities[] = {
		/* Both came with Linux 7.3, and only the peak can be seen. */
		{ "dmem-peak", LEVEL_WARNING,
		  "a protected game's new buffers push out unprotected ones, and peaks are kept",
		  "dmem.low works on the way back only, new buffers of the game go to system memory "
		  "when the card is full",
		  "Use Linux 7.3 or newer." },
		{ "dmem-events", LEVEL_NOTE, "evictions come as events",
		  "the kernel does not tell of evictions, so vramd looks at what a game in front uses, 20 times a "
		  "second where the card is nearly full and each 2 s elsewhere, and cannot count. With it vramd is "
		  "woken within 1 ms of the first eviction and 39 times a second in a storm of them, and counts each",
		  DOCTOR_SERIES_ADVICE },
		{ "device-memory-properties", LEVEL_NOTE, "systemd sets the values for vramd",
		  "this systemd has no DeviceMemoryLow=, so vramd writes the files itself",
		  "Nothing: both ways do the same." },
	};

	for (size_t i = 0; i < ARRAY_SIZE(abilities); i++) {
		if (manager_has(m, abilities[i].name))
			doctor_add(d, LEVEL_OK, "ability", NULL, "%s: %s.", abilities[i].name,
				   abilities[i].have);
		else
			doctor_add(d, abilities[i].level, "ability", abilities[i].advice,
				   "%s is missing: %s.", abilities[i].name, abilities[i].lack);
	}
}

static void check_regions(Doctor *d, const Snapshot *s)
{
	char buf[FORMAT_BYTES_MAX];

	for (size_t i = 0; i < s->n_regions; i++) {
		const Region *r = &s->regions[i];
		auto_free char *label = region_label(r);

		if (r->integrated)
			doctor_add(d, LEVEL_NOTE, "region",
				   "Nothing: vramd leaves it alone, unless Force=yes is set in [policy] of vramd.conf(5).",
				   "%s is carved out of system memory: there is nothing to gain.",
				   strempty(label));
		else if (!*strempty(r->device))
			doctor_add(d, LEVEL_NOTE, "region", NULL, "%s has no DRM device, so spilled bytes "
				   "cannot be told.", strempty(label));
		else
			doctor_add(d, LEVEL_OK, "region", NULL, "%s (%s) has %s.", strempty(label),
				   strempty(r->driver), format_bytes(buf, r->capacity));
	}
	if (!s->n_regions)
		doctor_add(d, LEVEL_PROBLEM, "region", "See what is said about dmem.",
			   "vramd knows no region of video memory.");
}

/* --- Ownership -------------------------------------------------------------------------------- */

/* The value of a region in "REGION VALUE" lines; false if it has none. */
static bool find_value(const char *text, const char *region, uint64_t *ret)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		auto_free char *line = strndup(text, n);
		char *space = line ? strrchr(line, ' ') : NULL;

		if (space) {
			*space = '\0';
			if (streq(line, region) && parse_bytes(space + 1, ret) >= 0)
				return true;
		}
		text += n + (text[n] != '\0');
	}
	return false;
}

/* The kernel keeps whole pages. */
static bool same_pages(uint64_t a, uint64_t b)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return a / page == b / page;
}

static void check_owner(Doctor *d, const Game *g, const struct stat *st)
{
	auto_free char *user = NULL;

	if (st->st_uid != g->uid || g->uid == 0) {
		doctor_add(d, LEVEL_OK, "ownership", NULL, "Only vramd may write dmem.low of \"%s\".",
			   strempty(g->unit));
		return;
	}
	user = user_label(st->st_uid);
	doctor_add(d, LEVEL_NOTE, "ownership",
		   "Set Ownership=exclusive in [policy] of vramd.conf(5), unless sharing is what you want.",
		   "Programs of user %s may write dmem.low of \"%s\" as well.", strempty(user),
		   strempty(g->unit));
}

static void check_game(Doctor *d, const Game *g)
{
	auto_free char *path = NULL, *text = NULL;
	struct stat st;

	if (!g->low.n || !*strempty(g->control_group))
		return;
	if (asprintf(&path, "%s%s/dmem.low", d->cgroup, g->control_group) < 0) {
		path = NULL;
		return;
	}
	if (stat(path, &st) < 0 || read_file_at(AT_FDCWD, path, FILE_MAX_SIZE, &text, NULL) < 0) {
		doctor_add(d, LEVEL_WARNING, "ownership", "Look at: vramctl dump",
			   "\"%s\" is said to be protected, but its dmem.low cannot be read.",
			   strempty(g->unit));
		return;
	}
	check_owner(d, g, &st);
	for (size_t i = 0; i < g->low.n; i++) {
		char ours[FORMAT_BYTES_MAX], theirs[FORMAT_BYTES_MAX];
		uint64_t value = 0;

		(void)find_value(text, g->low.v[i].region, &value);
		if (!same_pages(value, g->low.v[i].bytes))
			doctor_add(d, LEVEL_WARNING, "ownership",
				   "Find out who wrote it (\"vramctl watch\" shows contested values) and "
				   "stop that program.",
				   "dmem.low of \"%s\" is %s of %s, where vramd promised %s.",
				   strempty(g->unit), format_bytes(theirs, value), g->low.v[i].region,
				   format_bytes(ours, g->low.v[i].bytes));
	}
}

void doctor_check_daemon(Doctor *d)
{
	const Snapshot *s = d->snapshot;

	check_state(d, &s->manager);
	if (!manager_has(&s->manager, "dmem"))
		return; /* the kernel's findings say why; nothing else can be expected */
	check_abilities(d, &s->manager);
	doctor_check_series(d);
	check_regions(d, s);
	for (size_t i = 0; d->dmem && i < s->n_games; i++)
		check_game(d, &s->games[i]);
}
