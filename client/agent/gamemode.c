/* SPDX-License-Identifier: MIT */
/* Feral's GameMode: not who is in front, but which games said that they run. */
#include "process-ref.h"
#include "session-bus.h"

#define GAMEMODE "com.feralinteractive.GameMode"
#define GAMEMODE_PATH "/com/feralinteractive/GameMode"

typedef struct GameMode {
	Source *source;
	sd_bus *bus;
	BusName name;
	sd_bus_slot *call;
	bool dirty; /* a game came or went since the list was asked for */
	ProcessSet processes;
	State state;
} GameMode;

static void set_unknown(GameMode *g, const char *why)
{
	g->state.front = FRONT_UNKNOWN;
	g->state.why = why;
	source_changed(g->source);
}

/* --- The list ----------------------------------------------------------------------------------- */

static void ask(GameMode *g);

/* "gamemoderun" lets each process of a game register itself, and those before it as well: they are one game as long as
 * they are in one control group; the newest of them, which is what is played, comes first. Of several games none is
 * more in front than the other. */
static int take_list(GameMode *g, sd_bus_message *m)
{
	auto_free char *its_group = NULL;
	ProcessRef p, game = { 0, -EBADF };
	uint64_t now = boottime_usec();
	bool several = false;
	int32_t pid;
	int r;

	r = sd_bus_message_enter_container(m, 'a', "(io)");
	while (r >= 0 && (r = sd_bus_message_read(m, "(io)", &pid, NULL)) > 0) {
		auto_free char *group = NULL;

		if (pid <= 0 || process_set_get(&g->processes, pid, now, &p) < 0 ||
		    process_ref_get_cgroup(&p, &group) < 0)
			continue;
		if (game.pid > 0) {
			several = several || !streq(its_group, group);
			continue;
		}
		game = p;
		its_group = TAKE_PTR(group);
	}
	if (r < 0)
		return r;
	if (game.pid == 0 || several) {
		set_unknown(g, several ? "several games run" : "no game says that it runs");
		return 0;
	}
	g->state.front = FRONT_PROCESS;
	g->state.game = game;
	source_changed(g->source);
	return 0;
}

static int on_list(sd_bus_message *reply, void *userdata, sd_bus_error *error _unused_)
{
	GameMode *g = userdata;
	int r;

	g->call = sd_bus_slot_unref(g->call);
	if (g->dirty) {
		ask(g);
		return 0;
	}
	process_set_begin(&g->processes);
	r = sd_bus_message_is_method_error(reply, NULL) ? -sd_bus_message_get_errno(reply) : take_list(g, reply);
	process_set_end(&g->processes);
	if (r < 0)
		set_unknown(g, "it does not list the games");
	return 0;
}

static void ask(GameMode *g)
{
	int r;

	g->dirty = false;
	r = sd_bus_call_method_async(g->bus, &g->call, g->name.owner, GAMEMODE_PATH, GAMEMODE, "ListGames", on_list, g,
				     NULL);
	if (r < 0)
		source_failed(g->source, r, "GameMode cannot be asked");
}

/* Whoever sent it: it is only a reason to ask. */
static int on_game(sd_bus_message *m _unused_, void *userdata, sd_bus_error *error _unused_)
{
	GameMode *g = userdata;

	if (g->call)
		g->dirty = true;
	else if (g->name.owner)
		ask(g);
	return 0;
}

static void on_name(void *userdata)
{
	GameMode *g = userdata;

	g->call = sd_bus_slot_unref(g->call);
	if (g->name.owner)
		ask(g);
	else
		set_unknown(g, "GameMode is not there");
}

/* --- Life --------------------------------------------------------------------------------------- */

static void gamemode_stop(void *data)
{
	GameMode *g = data;

	sd_bus_slot_unref(g->call);
	sd_bus_close_unref(g->bus);
	bus_name_done(&g->name);
	process_set_done(&g->processes);
	free(g);
}

static int open_bus(GameMode *g)
{
	static const char *const signals[] = { "GameRegistered", "GameUnregistered" };
	int r;

	r = session_bus_open(g->source, &g->bus);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(signals); i++)
		r = sd_bus_match_signal_async(g->bus, NULL, GAMEMODE, GAMEMODE_PATH, GAMEMODE, signals[i], on_game,
					      NULL, g);
	return r < 0 ? r : bus_name_watch(g->bus, &g->name);
}

static int gamemode_start(Source *s, const char *place _unused_, void **ret_data)
{
	GameMode *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	*g = (GameMode){
		.source = s,
		.name = { .name = GAMEMODE, .changed = on_name, .userdata = g },
		.state = { .game.pidfd = -EBADF, .compositor.pidfd = -EBADF },
	};
	r = open_bus(g);
	if (r < 0) {
		gamemode_stop(g);
		return r;
	}
	*ret_data = g;
	return 0;
}

static void gamemode_read(void *data, State *ret)
{
	const GameMode *g = data;

	*ret = g->state;
}

const SourceType source_gamemode = {
	.name = "gamemode",
	.rank = 6,
	.probe = session_bus_probe,
	.start = gamemode_start,
	.read = gamemode_read,
	.stop = gamemode_stop,
};
