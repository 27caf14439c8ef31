/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <pwd.h>

#include "parse.h"
#include "show.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

char *region_label(const Region *r)
{
	const char *name = strempty(r->name);
	char *label;

	if (!*strempty(r->device))
		return strdup(startswith(name, "drm/") ? name + strlen("drm/") : name);
	return asprintf(&label, "%s/%s", base_name(r->device), base_name(name)) < 0 ? NULL : label;
}

char *user_label(uint32_t uid)
{
	const struct passwd *pw = getpwuid(uid);
	char *label;

	if (pw)
		return strdup(pw->pw_name);
	return asprintf(&label, "%u", uid) < 0 ? NULL : label;
}

static Style state_style(const char *state)
{
	if (streq(state, "protecting"))
		return STYLE_GOOD;
	if (streq(state, "unsupported"))
		return STYLE_BAD;
	return streq(state, "paused") ? STYLE_WARN : STYLE_PLAIN;
}

void show_headline(const Output *o, const Snapshot *s)
{
	const Manager *m = &s->manager;
	const Game *front = snapshot_foreground(s);
	auto_free char *label = front ? game_label(front) : NULL;
	auto_free char *text = NULL;

	(void)fputs("vramd ", o->f);
	(void)text_put(o->f, strempty(m->version), 20);
	(void)fputs("  ", o->f);
	output_style(o, state_style(strempty(m->state)));
	(void)text_put(o->f, strempty(m->state), 20);
	output_style(o, STYLE_PLAIN);
	if (*strempty(m->reason)) {
		(void)fputs("\n          ", o->f);
		output_wrap(o, m->reason, 10);
	} else {
		(void)fputc('\n', o->f);
	}
	(void)fputs("In front  ", o->f);
	if (!front) {
		(void)fputs("nobody\n", o->f);
		return;
	}
	if (asprintf(&text, "%s, menu %s%s%s", strempty(label), *strempty(m->menu) ? m->menu : "unknown",
		     *strempty(m->source) ? ", says " : "", strempty(m->source)) < 0)
		text = NULL;
	output_wrap(o, strempty(text), 10);
}

/* "6.9 GiB of 8 GiB used, 7.6 GiB protected" and what the device is. The caller frees. */
static char *region_text(const Region *r)
{
	char used[FORMAT_BYTES_MAX], whole[FORMAT_BYTES_MAX], kept[FORMAT_BYTES_MAX];
	bool driver = *strempty(r->driver), pci = *strempty(r->pci);
	char speed[40] = "", *text;

	if (r->bandwidth)
		(void)snprintf(speed, sizeof(speed), ", %.1f GB/s", (double)r->bandwidth / 1e9);
	if (asprintf(&text, "%s of %s used, %s protected%s%s%s%s%s%s", format_bytes(used, r->current),
		     format_bytes(whole, r->capacity), format_bytes(kept, r->protected),
		     driver ? ", " : "", strempty(r->driver), pci ? " at " : "", strempty(r->pci), speed,
		     r->integrated ? "; integrated: nothing to gain" : "") < 0)
		return NULL;
	return text;
}

void show_regions(const Output *o, const Snapshot *s)
{
	enum { LABEL = 16, PERCENT = 7 };

	for (size_t i = 0; i < s->n_regions; i++) {
		const Region *r = &s->regions[i];
		auto_free char *label = region_label(r), *text = region_text(r);
		unsigned width = MIN(o->columns - LABEL - PERCENT, 100u);

		output_left(o, strempty(label), LABEL - 1);
		output_bar(o, r->current, r->protected, r->capacity, width);
		(void)fprintf(o->f, " %3.0f%%\n  ",
			      r->capacity ? (double)r->current * 100 / (double)r->capacity : 0.0);
		output_wrap(o, strempty(text), 2);
	}
	if (!s->n_regions)
		(void)fputs("No region of video memory is known.\n", o->f);
}

/* --- Games ----------------------------------------------------------------------------------- */

/* Widths of the columns behind the name, which gets the rest. */
enum { WIDTH_ROLE = 10, WIDTH_REGION = 11, WIDTH_BYTES = 10 };

static unsigned name_width(const Output *o, bool regions)
{
	unsigned rest = 3 + WIDTH_ROLE + 1 + 3 * (WIDTH_BYTES + 1) + (regions ? WIDTH_REGION + 1 : 0);

	return CLAMP(o->columns > rest ? o->columns - rest : 0, 12u, 40u);
}

static void show_bytes(const Output *o, uint64_t bytes, Style style)
{
	char buf[FORMAT_BYTES_MAX];

	output_style(o, style);
	output_right(o, bytes ? format_bytes(buf, bytes) : "-", WIDTH_BYTES);
	output_style(o, STYLE_PLAIN);
}

static void show_game_row(const Output *o, const Game *g, const Region *r, bool first, bool regions)
{
	auto_free char *name = game_label(g), *label = region_label(r);
	uint64_t spilled = amounts_get(&g->spilled, r->name);
	unsigned width = name_width(o, regions);

	(void)fputs(first && g->foreground ? "* " : "  ", o->f);
	output_style(o, first && g->foreground ? STYLE_BOLD : STYLE_PLAIN);
	output_left(o, first ? strempty(name) : "", width);
	output_style(o, STYLE_PLAIN);
	output_left(o, first ? strempty(g->role) : "", WIDTH_ROLE);
	if (regions)
		output_left(o, strempty(label), WIDTH_REGION);
	show_bytes(o, amounts_get(&g->current, r->name), STYLE_PLAIN);
	/* min is part of what low promises: the kernel looks at the larger one. */
	show_bytes(o, MAX(amounts_get(&g->low, r->name), amounts_get(&g->min, r->name)), STYLE_PLAIN);
	show_bytes(o, spilled, spilled ? STYLE_WARN : STYLE_PLAIN);
	(void)fputc('\n', o->f);
}

static void show_detail(const Output *o, const char *key, const char *value)
{
	if (!*strempty(value))
		return;
	(void)fputs("    ", o->f);
	output_left(o, key, 8);
	(void)text_put(o->f, value, MAX(o->columns, 40u) - 13);
	(void)fputc('\n', o->f);
}

/* "card0/vram0 6.5 GiB, card1/vram0 1 GiB". The caller frees. */
static char *amounts_text(const Amounts *a, const Snapshot *s)
{
	char *text = NULL, buf[FORMAT_BYTES_MAX];
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	bool any = false;

	if (!f)
		return NULL;
	for (size_t i = 0; i < s->n_regions; i++) {
		auto_free char *label = region_label(&s->regions[i]);
		uint64_t bytes = amounts_get(a, s->regions[i].name);

		if (!bytes)
			continue;
		(void)fprintf(f, "%s%s %s", any ? ", " : "", strempty(label), format_bytes(buf, bytes));
		any = true;
	}
	(void)fclose(f);
	return text;
}

static void show_amounts(const Output *o, const char *key, const Amounts *a, const Snapshot *s)
{
	auto_free char *text = amounts_text(a, s);

	show_detail(o, key, text);
}

/* "card0/vram0 5.2 GiB, for 1.3 s yet" */
static void show_easing(const Output *o, const Game *g, const Snapshot *s)
{
	auto_free char *amounts = amounts_text(&g->eased, s), *text = NULL;

	if (!*strempty(amounts))
		return;
	if (asprintf(&text, "%s, for %.1f s yet", amounts, (double)g->eased_usec / (double)USEC_PER_SEC) < 0)
		text = NULL;
	show_detail(o, "eased", text);
}

/* "card0/vram0 64 MiB, 12 buffers" */
static void show_evicted(const Output *o, const Game *g, const Snapshot *s)
{
	auto_free char *amounts = amounts_text(&g->evicted, s), *text = NULL;
	uint64_t buffers = 0;

	if (!*strempty(amounts))
		return;
	for (size_t i = 0; i < g->evictions.n; i++)
		buffers += g->evictions.v[i].bytes;
	if (asprintf(&text, "%s, %" PRIu64 " buffers", amounts, buffers) < 0)
		text = NULL;
	show_detail(o, "evicted", text);
}

static void show_game_details(const Output *o, const Game *g, const Snapshot *s)
{
	static const struct {
		const char *mark, *text;
	} marks[] = {
		{ "scope", "by the name of its unit" },
		{ "reaper", "by Steam's reaper" },
		{ "environ", "by its environment" },
		{ "flatpak", "by its flatpak" },
	};
	auto_free char *user = user_label(g->uid);
	const char *known = g->mark;

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (streq(strempty(g->mark), marks[i].mark))
			known = marks[i].text;
	show_detail(o, "unit", g->unit);
	show_detail(o, "user", user);
	show_detail(o, "known", known);
	show_amounts(o, "min", &g->min, s);
	show_amounts(o, "peak", &g->peak, s);
}

static bool game_uses(const Game *g, const char *region)
{
	return amounts_get(&g->current, region) || amounts_get(&g->low, region) ||
	       amounts_get(&g->min, region) || amounts_get(&g->spilled, region);
}

static void show_game(const Output *o, const Game *g, const Snapshot *s, bool regions)
{
	static const Region nowhere = { .name = (char *)"" };
	bool first = true;

	for (size_t i = 0; i < s->n_regions; i++) {
		if (!game_uses(g, s->regions[i].name))
			continue;
		show_game_row(o, g, &s->regions[i], first, regions);
		first = false;
	}
	if (first)
		show_game_row(o, g, &nowhere, true, regions);
}

void show_games(const Output *o, const Snapshot *s, bool details)
{
	bool regions = s->n_regions > 1;

	if (!s->n_games) {
		(void)fputs("No games.\n", o->f);
		return;
	}
	output_style(o, STYLE_BOLD);
	(void)fputs("  ", o->f);
	output_left(o, "GAME", name_width(o, regions));
	output_left(o, "ROLE", WIDTH_ROLE);
	if (regions)
		output_left(o, "REGION", WIDTH_REGION);
	output_right(o, "USED", WIDTH_BYTES);
	output_right(o, "PROTECTED", WIDTH_BYTES);
	output_right(o, "SPILLED", WIDTH_BYTES);
	output_style(o, STYLE_PLAIN);
	(void)fputc('\n', o->f);
	for (size_t i = 0; i < s->n_games; i++) {
		show_game(o, &s->games[i], s, regions);
		show_easing(o, &s->games[i], s);
		show_evicted(o, &s->games[i], s);
		if (details)
			show_game_details(o, &s->games[i], s);
	}
}

void show_holds(const Output *o, const Snapshot *s)
{
	for (size_t i = 0; i < s->n_holds; i++) {
		const Hold *h = &s->holds[i];
		auto_free char *user = user_label(h->uid), *text = NULL;

		if (asprintf(&text, "%s (process %u of %s): %s", strempty(h->who), h->pid,
			     strempty(user), *strempty(h->why) ? h->why : "no reason given") < 0)
			text = NULL;
		(void)fputs("Hold      ", o->f);
		output_wrap(o, strempty(text), 10);
	}
}
