/* SPDX-License-Identifier: MIT */
/* The policy's table row by row, then random worlds against what must hold in each. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy.h"

#define USER "/user.slice/user-1000.slice/user@1000.service"
#define GAME USER "/app.slice/app-steam-app10-1.scope"
#define OTHER USER "/app.slice/app-steam-app20-2.scope"
#define STEAM USER "/app.slice/steam-launcher.service"
#define KWIN USER "/session.slice/plasma-kwin_wayland.service"
#define SEAT "/user.slice/user-1000.slice/session-2.scope"
#define GAME2 "/user.slice/user-1001.slice/user@1001.service/app.slice/app-steam-app30-3.scope"
#define OLLAMA "/system.slice/ollama.service"

#define C (8 * GIB)
#define NO DMEM_UNLIMITED
#define REGIONS_MAX 3
#define GROUPS_MAX 16
#define ROWS_MAX 8

/* --- Helpers --------------------------------------------------------------------------------- */

static const PlanGroup *must_find(const Plan *plan, const char *path)
{
	const PlanGroup *g = plan_find(plan, path);

	if (!g)
		print_error("%s is not in the plan\n", path);
	assert_non_null(g);
	return g;
}

static bool is_below(const char *path, const char *ancestor)
{
	const char *rest = startswith(path, ancestor);

	return rest && *rest == '/';
}

static bool is_child(const char *path, const char *parent)
{
	return is_below(path, parent) && !strchr(path + strlen(parent) + 1, '/');
}

/* What holds in each plan, looked at one group against all others. */
static void check_group(const Plan *plan, const World *world, size_t i, size_t r, uint64_t top[2])
{
	const PlanGroup *g = &plan->groups[i];
	const uint64_t *v = g->limits[r].value;
	uint64_t sum[2] = { 0, 0 };
	bool has_children = false, has_parent = false;

	for (size_t k = 0; k < plan->n_groups; k++) {
		if (is_child(g->path, plan->groups[k].path)) {
			assert_true(k < i);
			has_parent = true;
		}
		if (!is_child(plan->groups[k].path, g->path))
			continue;
		has_children = true;
		sum[0] += plan->groups[k].limits[r].value[DMEM_MIN];
		sum[1] += plan->groups[k].limits[r].value[DMEM_LOW];
	}
	assert_int_equal(has_children, g->ancestor);
	assert_int_equal(has_parent, strchr(g->path + 1, '/') != NULL);
	for (DmemLimit l = DMEM_MIN; l <= DMEM_LOW; l++) {
		assert_true(v[l] >= sum[l]);
		if (g->reason == PLAN_ANCESTOR)
			assert_int_equal(v[l], sum[l]);
		assert_true(v[l] <= world->regions[r].capacity);
		if (!has_parent)
			top[l] += v[l];
	}
	assert_true(v[DMEM_MIN] <= v[DMEM_LOW]);
	if (v[DMEM_LOW] > 0 || g->reason == PLAN_ANCESTOR)
		assert_int_equal(v[DMEM_MAX], DMEM_UNLIMITED);
	if (i > 0)
		assert_true(plan_find(plan, g->path) == g);
}

static void check_plan(const Plan *plan, const World *world)
{
	assert_int_equal(plan->n_regions, world->n_regions);
	for (size_t r = 0; r < plan->n_regions; r++) {
		uint64_t top[2] = { 0, 0 };

		assert_string_equal(plan->regions[r], world->regions[r].name);
		for (size_t i = 0; i < plan->n_groups; i++)
			check_group(plan, world, i, r, top);
		assert_true(top[0] <= world->regions[r].capacity);
		assert_true(top[1] <= world->regions[r].capacity);
	}
}

static void decide(const World *world, const Config *config, Plan *ret)
{
	assert_int_equal(policy_decide(world, config, ret), 0);
	check_plan(ret, world);
}

static Config *config_from(const char *text)
{
	Config *config;

	assert_int_equal(config_new(&config), 0);
	assert_int_equal(config_parse_text(config, "test", strempty(text), NULL, NULL), 0);
	return config;
}

/* --- The table, one region ------------------------------------------------------------------- */

typedef struct Group {
	const char *path;
	GroupRole role;
	uint64_t current;
} Group;

typedef struct Row {
	const char *path;
	PlanReason reason;
	uint64_t min, low, max;
} Row;

typedef struct Case {
	const char *name;
	const char *config;
	MenuState menu;
	bool inactive;
	uint64_t capacity; /* 0: C */
	Group groups[ROWS_MAX];
	Row rows[ROWS_MAX]; /* all groups with a claim; what is not here is an ancestor */
} Case;

#define FLOOR (C / 32)
#define FRONT_LOW (C - C / 16)
/* What cuts the game in front beside a floor of C/8 and a low of all of C. */
#define BESIDE_FLOOR (C - C / 8)

static const Case cases[] = {
	{ "nobody plays: compositor and overlay get nothing", .menu = MENU_OPEN,
	  .groups = { { KWIN, ROLE_COMPOSITOR, GIB }, { STEAM, ROLE_OVERLAY, GIB } } },
	{ "game in front, compositor not known", .groups = { { GAME, ROLE_FRONT, 0 } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, FRONT_LOW, NO } } },
	{ "game in front, small compositor: C/16 and C/32",
	  .groups = { { GAME, ROLE_FRONT, 0 }, { KWIN, ROLE_COMPOSITOR, 10 * MIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, FRONT_LOW, NO },
		    { KWIN, PLAN_COMPOSITOR_FLOOR, FLOOR, FLOOR, NO } } },
	{ "compositor's use decides: 1.25 of it for both, and C/32 for others",
	  .groups = { { GAME, ROLE_FRONT, 0 }, { KWIN, ROLE_COMPOSITOR, 800 * MIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, C - 1000 * MIB - C / 32, NO },
		    { KWIN, PLAN_COMPOSITOR_FLOOR, 1000 * MIB, 1000 * MIB, NO } } },
	{ "a huge compositor: floor C/8, reserve C/4",
	  .groups = { { GAME, ROLE_FRONT, 0 }, { KWIN, ROLE_COMPOSITOR, 6 * GIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, C - C / 4, NO },
		    { KWIN, PLAN_COMPOSITOR_FLOOR, C / 8, C / 8, NO } } },
	{ "the same compositor listed twice counts once",
	  .groups = { { KWIN, ROLE_COMPOSITOR, 800 * MIB },
		      { GAME, ROLE_FRONT, 0 },
		      { KWIN, ROLE_COMPOSITOR, 800 * MIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, C - 1000 * MIB - C / 32, NO },
		    { KWIN, PLAN_COMPOSITOR_FLOOR, 1000 * MIB, 1000 * MIB, NO } } },
	{ "Reserve= and Floor= are taken as they are",
	  .config = "[policy]\nReserve=1G\n[compositor]\nFloor=16M\n",
	  .groups = { { GAME, ROLE_FRONT, 0 }, { KWIN, ROLE_COMPOSITOR, 800 * MIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, C - GIB, NO },
		    { KWIN, PLAN_COMPOSITOR_FLOOR, 16 * MIB, 16 * MIB, NO } } },
	{ "Floor=0 gives the compositor none, Floor=max at most C/8",
	  .config = "[compositor]\nFloor=0\n",
	  .groups = { { GAME, ROLE_FRONT, 0 }, { KWIN, ROLE_COMPOSITOR, 10 * MIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, FRONT_LOW, NO } } },
	{ "a floor is at most C/8", .config = "[compositor]\nFloor=max\n",
	  .groups = { { GAME, ROLE_FRONT, 0 }, { KWIN, ROLE_COMPOSITOR, 10 * MIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, BESIDE_FLOOR, NO },
		    { KWIN, PLAN_COMPOSITOR_FLOOR, C / 8, C / 8, NO } } },
	{ "GameLow= and GameMin= for all", .config = "[policy]\nGameLow=50%\nGameMin=1G\n",
	  .groups = { { GAME, ROLE_FRONT, 0 } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, GIB, C / 2, NO } } },
	{ "a min above low raises low", .config = "[policy]\nGameLow=1G\nGameMin=2G\n",
	  .groups = { { GAME, ROLE_FRONT, 0 } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 2 * GIB, 2 * GIB, NO } } },
	{ "overlay, menu closed", .menu = MENU_CLOSED,
	  .groups = { { GAME, ROLE_FRONT, 0 }, { STEAM, ROLE_OVERLAY, GIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, FRONT_LOW, NO } } },
	{ "overlay, menu not known: no share", .menu = MENU_UNKNOWN,
	  .groups = { { GAME, ROLE_FRONT, 0 }, { STEAM, ROLE_OVERLAY, GIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, FRONT_LOW, NO } } },
	{ "overlay, menu open: what game and floor leave", .menu = MENU_OPEN,
	  .groups = { { GAME, ROLE_FRONT, 0 },
		      { KWIN, ROLE_COMPOSITOR, 10 * MIB },
		      { STEAM, ROLE_OVERLAY, GIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, FRONT_LOW, NO },
		    { KWIN, PLAN_COMPOSITOR_FLOOR, FLOOR, FLOOR, NO },
		    { STEAM, PLAN_MENU_SHARE, 0, C / 16 - FLOOR, NO } } },
	{ "overlay, menu open, room for all of its share", .menu = MENU_OPEN,
	  .config = "[policy]\nGameLow=50%\n[menu]\nShare=5%\n",
	  .groups = { { GAME, ROLE_FRONT, 0 }, { STEAM, ROLE_OVERLAY, GIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, C / 2, NO },
		    { STEAM, PLAN_MENU_SHARE, 0, C / 100 * 5 + C % 100 * 5 / 100, NO } } },
	{ "the menu's share is at most C/8", .menu = MENU_OPEN,
	  .config = "[policy]\nGameLow=50%\n[menu]\nShare=max\n",
	  .groups = { { GAME, ROLE_FRONT, 0 }, { STEAM, ROLE_OVERLAY, GIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, C / 2, NO },
		    { STEAM, PLAN_MENU_SHARE, 0, C / 8, NO } } },
	{ "menu open over Steam's home screen: a share is only lent over a game", .menu = MENU_OPEN,
	  .groups = { { OTHER, ROLE_BACKGROUND, 4 * GIB }, { STEAM, ROLE_OVERLAY, GIB } },
	  .rows = { { OTHER, PLAN_BACKGROUND_SHARE, 0, 2 * GIB, NO } } },
	{ "game in the background keeps half, and the compositor its floor",
	  .groups = { { OTHER, ROLE_BACKGROUND, 3 * GIB }, { KWIN, ROLE_COMPOSITOR, 0 } },
	  .rows = { { OTHER, PLAN_BACKGROUND_SHARE, 0, 3 * GIB / 2, NO },
		    { KWIN, PLAN_COMPOSITOR_FLOOR, FLOOR, FLOOR, NO } } },
	{ "[background] Share=", .config = "[background]\nShare=100%\n",
	  .groups = { { OTHER, ROLE_BACKGROUND, 3 * GIB } },
	  .rows = { { OTHER, PLAN_BACKGROUND_SHARE, 0, 3 * GIB, NO } } },
	{ "a game in the background that uses nothing needs nothing",
	  .groups = { { OTHER, ROLE_BACKGROUND, 0 } } },
	{ "beside a game in front the background gets what is left",
	  .groups = { { GAME, ROLE_FRONT, 0 }, { OTHER, ROLE_BACKGROUND, 4 * GIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, FRONT_LOW, NO },
		    { OTHER, PLAN_BACKGROUND_SHARE, 0, C / 16, NO } } },
	{ "never more than the game in front asks for", .config = "[policy]\nGameLow=1G\n",
	  .groups = { { GAME, ROLE_FRONT, 0 }, { OTHER, ROLE_BACKGROUND, 4 * GIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, GIB, NO },
		    { OTHER, PLAN_BACKGROUND_SHARE, 0, GIB, NO } } },
	{ "service while nobody plays: its low", .config = "[service ollama]\nLow=6G\nMax=2G\n",
	  .groups = { { OLLAMA, ROLE_SERVICE, 0 } },
	  .rows = { { OLLAMA, PLAN_SERVICE_CLAIM, 0, 6 * GIB, NO } } },
	{ "service beside a game in the background: still its low",
	  .config = "[service ollama]\nLow=1G\nMax=2G\n",
	  .groups = { { OLLAMA, ROLE_SERVICE, 0 }, { OTHER, ROLE_BACKGROUND, GIB } },
	  .rows = { { OLLAMA, PLAN_SERVICE_CLAIM, 0, GIB, NO },
		    { OTHER, PLAN_BACKGROUND_SHARE, 0, GIB / 2, NO } } },
	{ "service while a game is in front: its ceiling",
	  .config = "[service ollama]\nLow=6G\nMax=25%\n",
	  .groups = { { OLLAMA, ROLE_SERVICE, 0 }, { GAME, ROLE_FRONT, 0 } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, FRONT_LOW, NO },
		    { OLLAMA, PLAN_SERVICE_CEILING, 0, 0, C / 4 } } },
	{ "service without Max= while a game is in front: nothing",
	  .config = "[service ollama]\nLow=6G\n",
	  .groups = { { OLLAMA, ROLE_SERVICE, 0 }, { GAME, ROLE_FRONT, 0 } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, FRONT_LOW, NO } } },
	{ "Max=0 is a ceiling", .config = "[service ollama]\nMax=0\n",
	  .groups = { { OLLAMA, ROLE_SERVICE, 0 }, { GAME, ROLE_FRONT, 0 } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, FRONT_LOW, NO },
		    { OLLAMA, PLAN_SERVICE_CEILING, 0, 0, 0 } } },
	{ "a ceiling of all there is, is none", .config = "[service ollama]\nMax=max\n",
	  .groups = { { OLLAMA, ROLE_SERVICE, 0 }, { GAME, ROLE_FRONT, 0 } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, FRONT_LOW, NO } } },
	{ "others beside the game: off by default",
	  .groups = { { GAME, ROLE_FRONT, 0 }, { OTHER, ROLE_SIBLING, GIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, FRONT_LOW, NO } } },
	{ "others beside the game: [background] Max=", .config = "[background]\nMax=1G\n",
	  .groups = { { GAME, ROLE_FRONT, 0 }, { OTHER, ROLE_SIBLING, GIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, FRONT_LOW, NO },
		    { OTHER, PLAN_BACKGROUND_CEILING, 0, 0, GIB } } },
	{ "[background] Max= only while a game is in front", .config = "[background]\nMax=1G\n",
	  .groups = { { OTHER, ROLE_SIBLING, GIB } } },
	{ "a ceiling never lands on what is protected", .menu = MENU_OPEN,
	  .config = "[background]\nMax=1M\n",
	  .groups = { { GAME, ROLE_FRONT, 0 },
		      { STEAM, ROLE_OVERLAY, 0 },
		      { STEAM, ROLE_SIBLING, 0 },
		      { USER "/app.slice", ROLE_SIBLING, 0 } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, FRONT_LOW, NO },
		    { STEAM, PLAN_MENU_SHARE, 0, C / 16, NO },
		    { USER "/app.slice", PLAN_BACKGROUND_CEILING, 0, C, NO } } },
	{ "room for a game that starts: the ceiling that was found, in any session",
	  .groups = { { OTHER, ROLE_BACKGROUND, GIB }, { STEAM, ROLE_ROOM, 100 * MIB }, { OLLAMA, ROLE_ROOM, 0 } },
	  .rows = { { OTHER, PLAN_BACKGROUND_SHARE, 0, GIB / 2, NO },
		    { STEAM, PLAN_ROOM, 0, 0, 100 * MIB },
		    { OLLAMA, PLAN_ROOM, 0, 0, 0 } } },
	{ "room: the lower one of two ceilings, and none on what is protected",
	  .config = "[background]\nMax=1G\n",
	  .groups = { { GAME, ROLE_FRONT, 0 }, { GAME, ROLE_ROOM, 0 },
		      { STEAM, ROLE_SIBLING, GIB }, { STEAM, ROLE_ROOM, 100 * MIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, FRONT_LOW, NO },
		    { STEAM, PLAN_BACKGROUND_CEILING, 0, 0, 100 * MIB } } },
	{ "over-commitment: the game in front gives way to the floor only", .menu = MENU_OPEN,
	  .config = "[policy]\nGameLow=max\n[compositor]\nFloor=1G\n",
	  .groups = { { GAME, ROLE_FRONT, 0 },
		      { KWIN, ROLE_COMPOSITOR, 0 },
		      { STEAM, ROLE_OVERLAY, GIB },
		      { OTHER, ROLE_BACKGROUND, GIB } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, 7 * GIB, NO },
		    { KWIN, PLAN_COMPOSITOR_FLOOR, GIB, GIB, NO } } },
	{ "over-commitment: min goes before low",
	  .config = "[policy]\nGameLow=max\nGameMin=max\n[compositor]\nFloor=1G\n",
	  .groups = { { GAME, ROLE_FRONT, 0 }, { KWIN, ROLE_COMPOSITOR, 0 } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 7 * GIB, 7 * GIB, NO },
		    { KWIN, PLAN_COMPOSITOR_FLOOR, GIB, GIB, NO } } },
	{ "over-commitment: equals share in proportion to what they ask for",
	  .config = "[background]\nShare=100%\n",
	  .groups = { { GAME, ROLE_BACKGROUND, 8 * GIB },
		      { OTHER, ROLE_BACKGROUND, 8 * GIB },
		      { GAME2, ROLE_BACKGROUND, 4 * GIB } },
	  .rows = { { GAME, PLAN_BACKGROUND_SHARE, 0, C * 2 / 5, NO },
		    { OTHER, PLAN_BACKGROUND_SHARE, 0, C * 2 / 5, NO },
		    { GAME2, PLAN_BACKGROUND_SHARE, 0, C / 5, NO } } },
	{ "over-commitment: the service is cut first",
	  .config = "[background]\nShare=100%\n[service ollama]\nLow=6G\n",
	  .groups = { { OTHER, ROLE_BACKGROUND, 5 * GIB }, { OLLAMA, ROLE_SERVICE, 0 } },
	  .rows = { { OTHER, PLAN_BACKGROUND_SHARE, 0, 5 * GIB, NO },
		    { OLLAMA, PLAN_SERVICE_CLAIM, 0, 3 * GIB, NO } } },
	{ "one unit for game and compositor: the more of each",
	  .groups = { { SEAT, ROLE_FRONT, 0 }, { SEAT, ROLE_COMPOSITOR, 400 * MIB } },
	  .rows = { { SEAT, PLAN_COMPOSITOR_FLOOR, 500 * MIB, C - 500 * MIB - C / 32, NO } } },
	{ "two games in one unit, one of them behind",
	  .groups = { { STEAM, ROLE_BACKGROUND, GIB }, { STEAM, ROLE_FRONT, GIB } },
	  .rows = { { STEAM, PLAN_GAME_IN_FRONT, 0, FRONT_LOW, NO } } },
	{ "a claim of an inner node below that of its children is met by theirs",
	  .config = "[service app.slice]\nLow=1G\n",
	  .groups = { { USER "/app.slice", ROLE_SERVICE, 0 }, { OTHER, ROLE_BACKGROUND, 6 * GIB } },
	  .rows = { { USER "/app.slice", PLAN_SERVICE_CLAIM, 0, 3 * GIB, NO },
		    { OTHER, PLAN_BACKGROUND_SHARE, 0, 3 * GIB, NO } } },
	{ "a claim of an inner node above that of its children stands",
	  .config = "[service app.slice]\nLow=4G\n",
	  .groups = { { USER "/app.slice", ROLE_SERVICE, 0 }, { OTHER, ROLE_BACKGROUND, 6 * GIB } },
	  .rows = { { USER "/app.slice", PLAN_SERVICE_CLAIM, 0, 4 * GIB, NO },
		    { OTHER, PLAN_BACKGROUND_SHARE, 0, 3 * GIB, NO } } },
	{ "an inactive session protects nothing", .inactive = true, .menu = MENU_OPEN,
	  .groups = { { GAME, ROLE_FRONT, 0 },
		      { KWIN, ROLE_COMPOSITOR, GIB },
		      { STEAM, ROLE_OVERLAY, GIB },
		      { OTHER, ROLE_BACKGROUND, GIB } } },
	{ "a game in front of an inactive session takes nothing from a service", .inactive = true,
	  .config = "[service ollama]\nLow=1G\nMax=2G\n",
	  .groups = { { GAME, ROLE_FRONT, 0 }, { OLLAMA, ROLE_SERVICE, 0 } },
	  .rows = { { OLLAMA, PLAN_SERVICE_CLAIM, 0, GIB, NO } } },
	{ "Enabled=no", .config = "[policy]\nEnabled=no\n",
	  .groups = { { GAME, ROLE_FRONT, 0 }, { KWIN, ROLE_COMPOSITOR, GIB } } },
	{ "a capacity too small to divide", .capacity = 3,
	  .groups = { { GAME, ROLE_FRONT, 0 }, { KWIN, ROLE_COMPOSITOR, 1 } },
	  .rows = { { GAME, PLAN_GAME_IN_FRONT, 0, 3, NO } } },
	{ "paths that are no unit's are left alone", .groups = { { "/", ROLE_FRONT, 0 },
								 { "", ROLE_FRONT, 0 },
								 { "a/b", ROLE_FRONT, 0 },
								 { "/a//b", ROLE_FRONT, 0 },
								 { "/a/", ROLE_FRONT, 0 } } },
};

static void check_rows(const Case *c, const Plan *plan)
{
	size_t n_rows = 0, n_claims = 0;

	for (; n_rows < ROWS_MAX && c->rows[n_rows].path; n_rows++) {
		const Row *row = &c->rows[n_rows];
		const PlanGroup *g = must_find(plan, row->path);
		const uint64_t *v = g->limits[0].value;

		if (v[DMEM_MIN] != row->min || v[DMEM_LOW] != row->low || v[DMEM_MAX] != row->max ||
		    g->reason != row->reason)
			print_error("%s: min %" PRIu64 " low %" PRIu64 " max %" PRIu64 " (%s)\n",
				    row->path, v[DMEM_MIN], v[DMEM_LOW], v[DMEM_MAX],
				    plan_reason_to_string(g->reason));
		assert_int_equal(v[DMEM_MIN], row->min);
		assert_int_equal(v[DMEM_LOW], row->low);
		assert_int_equal(v[DMEM_MAX], row->max);
		assert_int_equal(g->reason, row->reason);
	}
	for (size_t i = 0; i < plan->n_groups; i++)
		n_claims += plan->groups[i].reason != PLAN_ANCESTOR;
	assert_int_equal(n_claims, n_rows);
}

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const Case *c = &cases[i];
		auto_config Config *config = config_from(c->config);
		WorldRegion region = { "drm/0000:03:00.0/vram0", c->capacity ? c->capacity : C,
				       false };
		WorldSession session = { 1000, !c->inactive, c->menu };
		WorldGroup groups[ROWS_MAX];
		World world = { &region, 1, groups, 0 };
		auto_plan Plan plan = { 0 };

		print_message("  %s\n", c->name);
		for (; world.n_groups < ROWS_MAX && c->groups[world.n_groups].path;
		     world.n_groups++) {
			const Group *g = &c->groups[world.n_groups];
			bool service = g->role == ROLE_SERVICE;

			groups[world.n_groups] = (WorldGroup){ g->path, g->role,
				service ? NULL : &session, NULL,
				service ? &config->services[0] : NULL, &g->current, NULL, &g->current };
		}
		decide(&world, config, &plan);
		check_rows(c, &plan);
	}
}

/* --- More than one of something -------------------------------------------------------------- */

static void test_ancestors_are_exact(void **state)
{
	auto_config Config *config = config_from(NULL);
	WorldRegion region = { "r", C, false };
	WorldSession session = { 1000, true, MENU_CLOSED };
	uint64_t kwin = 10 * MIB;
	WorldGroup groups[] = { { GAME, ROLE_FRONT, &session, NULL, NULL, &kwin },
				{ KWIN, ROLE_COMPOSITOR, &session, NULL, NULL, &kwin } };
	World world = { &region, 1, groups, 2 };
	static const struct {
		const char *path;
		uint64_t min, low;
	} expected[] = {
		{ "/user.slice", FLOOR, FRONT_LOW + FLOOR },
		{ "/user.slice/user-1000.slice", FLOOR, FRONT_LOW + FLOOR },
		{ USER, FLOOR, FRONT_LOW + FLOOR },
		{ USER "/app.slice", 0, FRONT_LOW },
		{ GAME, 0, FRONT_LOW },
		{ USER "/session.slice", FLOOR, FLOOR },
		{ KWIN, FLOOR, FLOOR },
	};
	auto_plan Plan plan = { 0 };

	(void)state;
	decide(&world, config, &plan);
	assert_int_equal(plan.n_groups, ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_string_equal(plan.groups[i].path, expected[i].path);
		assert_int_equal(plan.groups[i].limits[0].value[DMEM_MIN], expected[i].min);
		assert_int_equal(plan.groups[i].limits[0].value[DMEM_LOW], expected[i].low);
	}
	assert_null(plan_find(&plan, "/system.slice"));
	assert_null(plan_find(&plan, USER "/app.slice/app"));
}

/* "-" sorts before "/" in ASCII, so a plain sort would tear a subtree apart. */
static void test_order_of_siblings(void **state)
{
	auto_config Config *config = config_from("[background]\nShare=100%\n");
	WorldRegion region = { "r", C, false };
	WorldSession session = { 1000, true, MENU_CLOSED };
	uint64_t use = GIB;
	WorldGroup groups[] = { { "/a-b/x", ROLE_BACKGROUND, &session, NULL, NULL, &use },
				{ "/a/y", ROLE_BACKGROUND, &session, NULL, NULL, &use },
				{ "/a", ROLE_BACKGROUND, &session, NULL, NULL, &use },
				{ "/a\xc3\xa4", ROLE_BACKGROUND, &session, NULL, NULL, &use },
				{ "/a/x", ROLE_BACKGROUND, &session, NULL, NULL, &use } };
	static const char *const order[] = { "/a", "/a/x", "/a/y", "/a-b", "/a-b/x", "/a\xc3\xa4" };
	World world = { &region, 1, groups, ARRAY_SIZE(groups) };
	auto_plan Plan plan = { 0 };

	(void)state;
	decide(&world, config, &plan);
	assert_int_equal(plan.n_groups, ARRAY_SIZE(order));
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		assert_string_equal(plan.groups[i].path, order[i]);
	assert_int_equal(plan.groups[0].limits[0].value[DMEM_LOW], 2 * GIB);
}

static void test_regions(void **state)
{
	auto_config Config *config = config_from(NULL),
			   *force = config_from("[policy]\nForce=yes\n");
	WorldRegion regions[] = { { "big", 16 * GIB, false }, { "apu", 512 * MIB, true },
				  { "gone", 0, false }, { "small", 4 * GIB, false } };
	WorldSession session = { 1000, true, MENU_CLOSED };
	uint64_t game[] = { 1, 1, 1, 1 }, kwin[] = { 2 * GIB, 0, 1, 0 };
	WorldGroup groups[] = { { GAME, ROLE_FRONT, &session, NULL, NULL, game },
				{ KWIN, ROLE_COMPOSITOR, &session, NULL, NULL, kwin } };
	World world = { regions, ARRAY_SIZE(regions), groups, 2 };
	auto_plan Plan plan = { 0 }, forced = { 0 };
	const PlanLimits *l;

	(void)state;
	decide(&world, config, &plan);
	l = must_find(&plan, GAME)->limits;
	assert_int_equal(l[0].value[DMEM_LOW], 16 * GIB - 5 * GIB / 2 - GIB / 2);
	assert_int_equal(l[1].value[DMEM_LOW], 0);
	assert_int_equal(l[2].value[DMEM_LOW], 0);
	assert_int_equal(l[3].value[DMEM_LOW], 4 * GIB - 256 * MIB);
	l = must_find(&plan, KWIN)->limits;
	assert_int_equal(l[0].value[DMEM_MIN], 2 * GIB);
	assert_int_equal(l[1].value[DMEM_MIN], 0);
	assert_int_equal(l[3].value[DMEM_MIN], 128 * MIB);

	decide(&world, force, &forced);
	assert_int_equal(must_find(&forced, GAME)->limits[1].value[DMEM_LOW], 480 * MIB);
	assert_int_equal(must_find(&forced, GAME)->limits[2].value[DMEM_LOW], 0);
}

static void test_no_regions_no_groups(void **state)
{
	auto_config Config *config = config_from(NULL);
	WorldSession session = { 1000, true, MENU_CLOSED };
	WorldGroup group = { GAME, ROLE_FRONT, &session, NULL, NULL, NULL };
	WorldRegion region = { "r", C, false };
	World no_regions = { NULL, 0, &group, 1 }, no_groups = { &region, 1, NULL, 0 };
	auto_plan Plan a = { 0 }, b = { 0 };

	(void)state;
	decide(&no_regions, config, &a);
	assert_int_equal(a.n_groups, 0);
	decide(&no_groups, config, &b);
	assert_int_equal(b.n_groups, 0);
	assert_null(plan_find(&b, GAME));
}

static void test_per_game(void **state)
{
	auto_config Config *config =
		config_from("[game 10]\nMin=1G\nLow=25%\n[game 20]\nProtect=no\n"
			    "[game 30]\nLow=3G\n[service ollama]\nLow=1G\nMax=1M\n");
	WorldRegion region = { "r", C, false };
	WorldSession session = { 1000, true, MENU_OPEN };
	uint64_t use = GIB;
	WorldGroup groups[] = { { GAME, ROLE_FRONT, &session, &config->games[0], NULL, &use },
				{ STEAM, ROLE_OVERLAY, &session, NULL, NULL, &use },
				{ OLLAMA, ROLE_SERVICE, NULL, NULL, &config->services[0], &use } };
	World world = { &region, 1, groups, ARRAY_SIZE(groups) };
	auto_plan Plan plan = { 0 }, unprotected = { 0 }, third = { 0 };

	(void)state;
	decide(&world, config, &plan);
	assert_int_equal(must_find(&plan, GAME)->limits[0].value[DMEM_MIN], GIB);
	assert_int_equal(must_find(&plan, GAME)->limits[0].value[DMEM_LOW], C / 4);
	assert_int_equal(must_find(&plan, OLLAMA)->limits[0].value[DMEM_MAX], MIB);

	/* Protect=no: as if it were any program. */
	groups[0].game = &config->games[1];
	decide(&world, config, &unprotected);
	assert_null(plan_find(&unprotected, GAME));
	assert_null(plan_find(&unprotected, STEAM));
	assert_int_equal(must_find(&unprotected, OLLAMA)->limits[0].value[DMEM_LOW], GIB);

	groups[0].game = &config->games[2];
	decide(&world, config, &third);
	assert_int_equal(must_find(&third, GAME)->limits[0].value[DMEM_MIN], 0);
	assert_int_equal(must_find(&third, GAME)->limits[0].value[DMEM_LOW], 3 * GIB);
}

static void test_two_sessions(void **state)
{
	auto_config Config *config = config_from(NULL);
	WorldRegion region = { "r", C, false };
	WorldSession one = { 1000, true, MENU_CLOSED }, two = { 1001, false, MENU_CLOSED };
	uint64_t use = 800 * MIB;
	WorldGroup groups[] = { { GAME, ROLE_FRONT, &one, NULL, NULL, &use },
				{ KWIN, ROLE_COMPOSITOR, &one, NULL, NULL, &use },
				{ GAME2, ROLE_FRONT, &two, NULL, NULL, &use } };
	World world = { &region, 1, groups, ARRAY_SIZE(groups) };
	auto_plan Plan switched = { 0 }, both = { 0 }, alone = { 0 };
	uint64_t a, b;

	(void)state;
	/* Two users on one seat: only the one who sits there counts. */
	decide(&world, config, &switched);
	assert_null(plan_find(&switched, GAME2));
	assert_int_equal(must_find(&switched, GAME)->limits[0].value[DMEM_LOW], C - 1000 * MIB - C / 32);

	/* Two seats on one card: the first one's compositor costs only the first one's game. */
	two.active = true;
	decide(&world, config, &both);
	a = must_find(&both, GAME)->limits[0].value[DMEM_LOW];
	b = must_find(&both, GAME2)->limits[0].value[DMEM_LOW];
	assert_true(a < b && b < FRONT_LOW);
	assert_true(a + b <= C - 1000 * MIB && a + b >= C - 1000 * MIB - 16);

	/* A compositor without a game in its own session gets no floor from another's. */
	groups[0].session = &two;
	decide(&world, config, &alone);
	assert_null(plan_find(&alone, KWIN));
}

static uint64_t low_of(const Plan *plan, const char *path, size_t region)
{
	const PlanGroup *g = plan_find(plan, path);

	return g ? g->limits[region].value[DMEM_LOW] : 0;
}

/* What an eased game lets go of is nobody's: neither the one behind it nor the menu has more meanwhile, and no
 * ancestor holds more than its children. */
static void test_eased(void **state _unused_)
{
	auto_config Config *config = config_from("[game 10]\nMin=1G\n");
	WorldRegion regions[] = { { "r", C, false }, { "s", C, false } };
	WorldSession session = { 1000, true, MENU_OPEN };
	uint64_t use[] = { 6 * GIB, 6 * GIB };
	Easing easing[] = { EASING_NEW, EASING_NEW };
	WorldGroup groups[] = { { GAME, ROLE_FRONT, &session, &config->games[0], NULL, use, easing },
				{ OTHER, ROLE_BACKGROUND, &session, NULL, NULL, use, NULL },
				{ STEAM, ROLE_OVERLAY, &session, NULL, NULL, use, NULL },
				{ KWIN, ROLE_COMPOSITOR, &session, NULL, NULL, (uint64_t[]){ 0, 0 }, NULL } };
	static const struct {
		uint64_t eased, want;
	} steps[] = {
		{ EASING_NOT, FRONT_LOW },
		{ 5 * GIB, 5 * GIB },
		{ FRONT_LOW + GIB, FRONT_LOW }, /* it is never raised */
		{ 1, GIB },                     /* nor lowered below min */
	};
	World world = { regions, 2, groups, ARRAY_SIZE(groups) };

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		auto_plan Plan plan = { 0 };
		bool lowered = steps[i].want < FRONT_LOW;

		easing[0].low = steps[i].eased;
		decide(&world, config, &plan);
		assert_int_equal(low_of(&plan, GAME, 0), steps[i].want);
		assert_int_equal(low_of(&plan, GAME, 1), FRONT_LOW);
		assert_int_equal(must_find(&plan, GAME)->reason, lowered ? PLAN_GAME_EASED : PLAN_GAME_IN_FRONT);
		assert_int_equal(low_of(&plan, KWIN, 0), FLOOR);
		assert_int_equal(low_of(&plan, STEAM, 0), C / 16 - FLOOR);
		assert_int_equal(low_of(&plan, OTHER, 0), 0);
		assert_int_equal(low_of(&plan, USER "/app.slice", 0), steps[i].want + C / 16 - FLOOR);
		assert_int_equal(low_of(&plan, USER, 0), steps[i].want + C / 16);
		assert_int_equal(low_of(&plan, "/user.slice", 0), steps[i].want + C / 16);
	}
}

/* Where a product needs more than 64 bits, too: the last of three equals is not short of a byte. */
static void test_equals_get_the_same(void **state)
{
	auto_config Config *config = config_from("[background]\nShare=100%\n");
	WorldSession session = { 1000, true, MENU_CLOSED };

	(void)state;
	for (uint64_t c = 8 * GIB; c < UINT64_C(1) << 42; c *= 2) {
		WorldRegion region = { "r", c, false };
		uint64_t use = c - 1, first;
		WorldGroup groups[] = { { "/a", ROLE_BACKGROUND, &session, NULL, NULL, &use },
					{ "/b", ROLE_BACKGROUND, &session, NULL, NULL, &use },
					{ "/c", ROLE_BACKGROUND, &session, NULL, NULL, &use } };
		World world = { &region, 1, groups, ARRAY_SIZE(groups) };
		auto_plan Plan plan = { 0 };

		decide(&world, config, &plan);
		first = must_find(&plan, "/a")->limits[0].value[DMEM_LOW];
		assert_int_equal(must_find(&plan, "/b")->limits[0].value[DMEM_LOW], first);
		assert_int_equal(must_find(&plan, "/c")->limits[0].value[DMEM_LOW], first);
		assert_true(first > c / 3 - c / MIB);
	}
}

static void test_strings(void **state)
{
	(void)state;
	for (PlanReason r = 0; r < _PLAN_REASON_MAX; r++)
		assert_non_null(plan_reason_to_string(r));
	assert_null(plan_reason_to_string(_PLAN_REASON_MAX));
	for (GroupRole r = 0; r < _ROLE_MAX; r++)
		assert_non_null(group_role_to_string(r));
	for (MenuState m = 0; m < _MENU_STATE_MAX; m++)
		assert_int_equal(menu_state_from_string(menu_state_to_string(m)), m);
	assert_int_equal(menu_state_from_string("Open"), _MENU_STATE_INVALID);
	assert_null(menu_state_to_string(_MENU_STATE_INVALID));
}

/* --- Random worlds --------------------------------------------------------------------------- */

#define SEED UINT64_C(0x76726d6421)
#define WORLDS 20000

static uint64_t random_state;

static uint64_t rnd(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return below ? random_state % below : 0;
}

static const char *const paths[] = {
	GAME,
	OTHER,
	STEAM,
	KWIN,
	SEAT,
	GAME2,
	OLLAMA,
	USER "/app.slice",
	USER,
	"/user.slice",
	USER "/app.slice/app-steam-app10-1.scope-x",
	GAME "/inner",
	"/a",
	"/a-b",
	"/a/b/c",
	"/system.slice/x@1.service",
};

typedef struct Random {
	Config config;
	GameConfig games[3];
	ServiceConfig service;
	WorldRegion regions[REGIONS_MAX];
	WorldSession sessions[3];
	WorldGroup groups[GROUPS_MAX];
	uint64_t current[ARRAY_SIZE(paths)][REGIONS_MAX];
	Easing easing[ARRAY_SIZE(paths)][REGIONS_MAX];
	World world;
} Random;

static Size random_size(uint64_t c)
{
	switch (rnd(6)) {
	case 0:
		return (Size){ SIZE_PERCENT, rnd(101) };
	case 1:
		return (Size){ SIZE_BYTES, rnd(c + 1) };
	case 2:
		return (Size){ SIZE_BYTES, UINT64_MAX };
	default:
		return (Size){ SIZE_UNSET, 0 };
	}
}

static uint64_t random_capacity(void)
{
	switch (rnd(8)) {
	case 0:
		return rnd(40);
	case 1:
		return UINT64_MAX - rnd(100);
	default:
		return rnd(UINT64_C(1) << (10 + rnd(30)));
	}
}

static void random_world(Random *w)
{
	const WorldSession *path_session[ARRAY_SIZE(paths)];
	uint64_t c = UINT64_C(1) << 33;

	memset(w, 0, sizeof(*w));
	w->config.enabled = rnd(20) != 0;
	w->config.force = rnd(2);
	w->config.reserve = random_size(c);
	w->config.game_low = random_size(c);
	w->config.game_min = random_size(c);
	w->config.compositor_floor = random_size(c);
	w->config.menu_share = random_size(c);
	w->config.background_share = (unsigned)rnd(101);
	w->config.background_max = random_size(c);
	w->service = (ServiceConfig){ NULL, random_size(c), random_size(c) };
	for (size_t i = 0; i < ARRAY_SIZE(w->games); i++)
		w->games[i] = (GameConfig){ .min = random_size(c),
					    .low = random_size(c),
					    .protect = rnd(4) };
	for (size_t i = 0; i < REGIONS_MAX; i++)
		w->regions[i] = (WorldRegion){ (const char *[]){ "a", "b", "c" }[i],
					       random_capacity(), rnd(5) == 0 };
	for (size_t i = 0; i < ARRAY_SIZE(w->sessions); i++)
		w->sessions[i] = (WorldSession){ 1000 + (uid_t)i, rnd(4) != 0,
						 (MenuState)rnd(_MENU_STATE_MAX) };
	w->world = (World){ w->regions, rnd(REGIONS_MAX + 1), w->groups, rnd(GROUPS_MAX + 1) };
	/* What belongs to a path is the same wherever the path is listed. */
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		path_session[i] = rnd(12) ? &w->sessions[rnd(ARRAY_SIZE(w->sessions))] : NULL;
		for (size_t r = 0; r < REGIONS_MAX; r++)
			w->current[i][r] = rnd(w->regions[r].capacity);
		for (size_t r = 0; r < REGIONS_MAX; r++)
			w->easing[i][r].low = rnd(2) ? EASING_NOT : 1 + rnd(w->regions[r].capacity);
	}
	for (size_t i = 0; i < w->world.n_groups; i++) {
		WorldGroup *g = &w->groups[i];
		size_t path = rnd(ARRAY_SIZE(paths));

		g->path = paths[path];
		g->role = (GroupRole)rnd(_ROLE_MAX);
		g->session = path_session[path];
		g->game = g->role == ROLE_FRONT && rnd(2) ? &w->games[rnd(ARRAY_SIZE(w->games))] :
							    NULL;
		g->service = g->role == ROLE_SERVICE ? &w->service : NULL;
		g->current = w->current[path];
		g->ceiling = g->role == ROLE_ROOM ? g->current : NULL;
	}
}

static void assert_same_plan(const Plan *a, const Plan *b)
{
	assert_int_equal(a->n_groups, b->n_groups);
	for (size_t i = 0; i < a->n_groups; i++) {
		assert_string_equal(a->groups[i].path, b->groups[i].path);
		assert_int_equal(a->groups[i].reason, b->groups[i].reason);
		assert_int_equal(a->groups[i].ancestor, b->groups[i].ancestor);
		assert_memory_equal(a->groups[i].limits, b->groups[i].limits,
				    a->n_regions * sizeof(PlanLimits));
	}
}

/* The same world in another order, decided again, gives the same plan. */
static void check_deterministic(Random *w, const Plan *plan)
{
	auto_plan Plan again = { 0 };

	for (size_t i = w->world.n_groups; i > 1; i--) {
		size_t k = rnd(i);
		WorldGroup g = w->groups[k];

		w->groups[k] = w->groups[i - 1];
		w->groups[i - 1] = g;
	}
	decide(&w->world, &w->config, &again);
	assert_same_plan(plan, &again);
}

/* What the group itself was given: it has one role only, and nothing of it is its children's. */
static bool has_only_role(const Random *w, const Plan *plan, const char *path, GroupRole role)
{
	const PlanGroup *found = plan_find(plan, path);

	for (size_t i = 0; i < w->world.n_groups; i++)
		if (streq(w->groups[i].path, path) && w->groups[i].role != role)
			return false;
	return !found || !found->ancestor;
}

static bool is_front(const WorldGroup *g)
{
	return g->role == ROLE_FRONT && (!g->game || g->game->protect) &&
	       (!g->session || g->session->active);
}

static bool listed_once(const Random *w, const char *path)
{
	size_t n = 0;

	for (size_t i = 0; i < w->world.n_groups; i++)
		n += streq(w->groups[i].path, path);
	return n == 1;
}

static size_t check_front_above_background(const Random *w, const Plan *plan)
{
	size_t n = 0;

	for (size_t i = 0; i < w->world.n_groups; i++)
		for (size_t k = 0; k < w->world.n_groups; k++) {
			const WorldGroup *front = &w->groups[i], *behind = &w->groups[k];

			if (!is_front(front) || behind->role != ROLE_BACKGROUND ||
			    front->session != behind->session || !listed_once(w, behind->path) ||
			    !has_only_role(w, plan, behind->path, ROLE_BACKGROUND))
				continue;
			for (size_t r = 0; r < plan->n_regions; r++)
				assert_true(low_of(plan, front->path, r) >=
					    low_of(plan, behind->path, r));
			n++;
		}
	return n;
}

/* Opening the menu leaves the game in front at least what it had, and does nothing to the
 * compositor; "unknown" is no more than "closed". */
static size_t check_menu(Random *w)
{
	auto_plan Plan closed = { 0 }, open = { 0 }, unknown = { 0 };
	Plan *plans[] = { [MENU_UNKNOWN] = &unknown, [MENU_CLOSED] = &closed, [MENU_OPEN] = &open };
	size_t n = 0;

	for (MenuState m = 0; m < _MENU_STATE_MAX; m++) {
		for (size_t i = 0; i < ARRAY_SIZE(w->sessions); i++)
			w->sessions[i].menu = m;
		decide(&w->world, &w->config, plans[m]);
	}
	assert_same_plan(&closed, &unknown);
	for (size_t i = 0; i < w->world.n_groups; i++) {
		const WorldGroup *g = &w->groups[i];

		if ((g->role != ROLE_FRONT && g->role != ROLE_COMPOSITOR) ||
		    !has_only_role(w, &open, g->path, g->role) ||
		    !has_only_role(w, &closed, g->path, g->role))
			continue;
		for (size_t r = 0; r < open.n_regions; r++)
			assert_int_equal(low_of(&open, g->path, r), low_of(&closed, g->path, r));
		n++;
	}
	return n;
}

/* Easing lowers, and only what a game in front has, and only low; each ancestor goes down by the sum. */
static size_t check_eased(Random *w, const Plan *whole)
{
	auto_plan Plan plan = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < w->world.n_groups; i++)
		for (size_t k = 0; w->groups[i].role == ROLE_FRONT && k < ARRAY_SIZE(paths); k++)
			if (w->groups[i].path == paths[k])
				w->groups[i].easing = w->easing[k];
	decide(&w->world, &w->config, &plan);
	check_deterministic(w, &plan);
	assert_int_equal(plan.n_groups, whole->n_groups);
	for (size_t i = 0; i < plan.n_groups; i++)
		for (size_t r = 0; r < plan.n_regions; r++) {
			const uint64_t *a = plan.groups[i].limits[r].value, *b = whole->groups[i].limits[r].value;

			assert_int_equal(a[DMEM_MIN], b[DMEM_MIN]);
			assert_int_equal(a[DMEM_MAX], b[DMEM_MAX]);
			assert_true(a[DMEM_LOW] <= b[DMEM_LOW]);
		}
	for (size_t i = 0; i < w->world.n_groups; i++) {
		const WorldGroup *g = &w->groups[i];

		if (!has_only_role(w, &plan, g->path, g->role))
			continue;
		for (size_t r = 0; r < plan.n_regions; r++) {
			uint64_t low = low_of(whole, g->path, r), want = low;

			if (g->easing) {
				const PlanGroup *found = plan_find(&plan, g->path);

				want = MIN(low, g->easing[r].low);
				want = MAX(want, found ? found->limits[r].value[DMEM_MIN] : 0);
				n += want < low;
			}
			assert_int_equal(low_of(&plan, g->path, r), want);
		}
	}
	return n;
}

static void test_random_worlds(void **state)
{
	size_t n_groups = 0, n_pairs = 0, n_menus = 0, n_eased = 0;

	(void)state;
	random_state = SEED;
	for (size_t i = 0; i < WORLDS; i++) {
		static Random w;
		auto_plan Plan plan = { 0 };

		random_world(&w);
		decide(&w.world, &w.config, &plan);
		check_deterministic(&w, &plan);
		n_groups += plan.n_groups;
		n_pairs += check_front_above_background(&w, &plan);
		n_eased += check_eased(&w, &plan);
		n_menus += check_menu(&w);
	}
	print_message("  seed %#" PRIx64
		      ": %d worlds, %zu groups planned, %zu pairs of games, %zu menus, %zu eased\n",
		      SEED, WORLDS, n_groups, n_pairs, n_menus, n_eased);
	assert_true(n_groups > WORLDS && n_pairs > WORLDS / 10 && n_menus > WORLDS / 10 &&
		    n_eased > WORLDS / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_ancestors_are_exact),
		cmocka_unit_test(test_order_of_siblings),
		cmocka_unit_test(test_regions),
		cmocka_unit_test(test_no_regions_no_groups),
		cmocka_unit_test(test_per_game),
		cmocka_unit_test(test_two_sessions),
		cmocka_unit_test(test_eased),
		cmocka_unit_test(test_equals_get_the_same),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_random_worlds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
