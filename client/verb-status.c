/* SPDX-License-Identifier: MIT */
#include "json.h"
#include "show.h"
#include "verb.h"

static void show_status(const Output *o, const Snapshot *s)
{
	show_headline(o, s);
	(void)fputc('\n', o->f);
	show_regions(o, s);
	(void)fputc('\n', o->f);
	show_games(o, s, false);
	if (s->n_holds)
		(void)fputc('\n', o->f);
	show_holds(o, s);
}

static int load(Snapshot *ret)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	auto_bus sd_bus *bus = NULL;
	int r;

	if (client_open(&bus) < 0)
		return STATUS_FAILURE;
	r = client_load(bus, ret, &error);
	return r < 0 ? client_fail(&error, r) : STATUS_OK;
}

static int run_status(Context *c, int argc _unused_, char **argv _unused_)
{
	auto_snapshot Snapshot s = {};
	int status = load(&s);

	if (status != STATUS_OK)
		return status;
	if (c->json) {
		auto_json json_object *json = json_from_snapshot(&s);

		json_print(stdout, json, false);
	} else {
		show_status(&c->out, &s);
	}
	return STATUS_OK;
}

static int run_games(Context *c, int argc _unused_, char **argv _unused_)
{
	auto_snapshot Snapshot s = {};
	int status = load(&s);

	if (status != STATUS_OK)
		return status;
	if (c->json) {
		auto_json json_object *json = json_from_games(&s);

		json_print(stdout, json, false);
	} else {
		show_games(&c->out, &s, true);
	}
	return STATUS_OK;
}

const Verb verb_status = {
	.name = "status",
	.args = "",
	.summary = "regions, who is in front and why, games (default)",
	.description = "Shows the regions of video memory with what is used and protected, who is in\n"
		       "front and who says so, what each game holds, and the holds. In a bar the\n"
		       "line marks how much of the region is protected.",
	.json = true,
	.run = run_status,
};

const Verb verb_games = {
	.name = "games",
	.args = "",
	.summary = "each game in detail",
	.description = "Lists the games that vramd knows: unit, user, how each was recognised, and its\n"
		       "bytes by region. PROTECTED is what vramd promises, SPILLED what lies in system\n"
		       "memory although it is meant to be in video memory.",
	.json = true,
	.run = run_games,
};
