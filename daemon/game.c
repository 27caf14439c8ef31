/* SPDX-License-Identifier: MIT */
/* Games and the processes that lead to them. */
#include <sys/epoll.h>
#include <sys/pidfd.h>

#include "log.h"
#include "manager.h"

/* Steam moves a game into its scope shortly after it started it, and the move itself gives no event in
 * the old unit: look again, twice, after a process became known. */
#define RECHECK_FIRST_USEC (1 * USEC_PER_SEC)
#define RECHECK_SECOND_USEC (4 * USEC_PER_SEC)

static void game_close(Manager *m, Game *g)
{
	if (g->announced && m->hooks)
		m->hooks->game_removed(m, g);
	unit_path_done(&g->unit);
	game_identity_done(&g->identity);
	cgroup_close(g->group);
	free(g->easing);
	manager_close_evictions(g);
	free(g);
}

static void tracked_free(Tracked *t)
{
	t->process->watched = false;
	sd_event_source_disable_unref(t->exit);
	sd_event_source_disable_unref(t->recheck);
	process_unref(t->process);
	free(t);
}

Game *manager_find_game(const Manager *m, const char *cgroup)
{
	for (size_t i = 0; i < m->n_games; i++)
		if (streq(m->games[i]->unit.cgroup, cgroup))
			return m->games[i];
	return NULL;
}

Game *manager_game_by_id(const Manager *m, uint64_t id)
{
	for (size_t i = 0; i < m->n_games; i++)
		if (m->games[i]->id == id)
			return m->games[i];
	return NULL;
}

Game *manager_game_of(const Manager *m, const Process *p)
{
	for (size_t i = 0; i < m->n_tracked; i++)
		if (m->tracked[i]->process == p)
			return m->tracked[i]->game;
	return NULL;
}

const GameConfig *game_config(const Manager *m, const Game *g)
{
	return config_find_game(m->config, g->identity.appid, g->identity.exe, g->unit.name);
}

const char *game_name(const Manager *m, const Game *g)
{
	const GameConfig *c = game_config(m, g);

	if (c && c->name)
		return c->name;
	return g->identity.name ? g->identity.name : g->unit.name;
}

bool game_allowed(const Manager *m, const Game *g)
{
	const GameConfig *c = game_config(m, g);

	if (c && !c->protect)
		return false;
	return config_user_allowed(m->config, g->uid) &&
	       config_game_allowed(m->config, g->identity.appid, g->identity.exe, g->unit.name, game_name(m, g));
}

static size_t count_games(const Manager *m, uid_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_games; i++)
		if (m->games[i]->uid == uid)
			n++;
	return n;
}

/* Takes over what a process says of its game; true if that is another program than before. What an earlier one
 * said of the game stays where this one says nothing: a child may have lost its environment. */
static bool game_learn(const Manager *m, Game *g, const Process *p)
{
	GameIdentity fresh = { 0 };
	bool changed;

	if (game_identify(&m->roots, p, &g->unit, &fresh) < 0)
		return false;
	changed = !streq_ptr(fresh.exe, g->identity.exe);
	if (fresh.mark == MARK_NONE)
		fresh.mark = g->identity.mark;
	if (fresh.appid == 0)
		fresh.appid = g->identity.appid;
	game_identity_done(&g->identity);
	g->identity = fresh;
	g->known_by = p->pid;
	return changed;
}

void manager_name_game(const Manager *m, Game *g, const Process *p)
{
	if (g->known_by != p->pid)
		(void)game_learn(m, g, p);
}

/* Takes unit over on success. */
static int game_new(Manager *m, UnitPath *unit, uid_t uid, Game **ret)
{
	Game *g;
	int r;

	if (count_games(m, uid) >= GAMES_PER_UID)
		return -EDQUOT;
	if (!GROW(m->games, m->n_games_alloc, m->n_games))
		return -ENOMEM;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	r = cgroup_open(&m->hierarchy, unit->cgroup, &g->group);
	if (r < 0) {
		free(g);
		return r;
	}
	g->manager = m;
	g->id = ++m->last_game_id;
	g->unit = *unit;
	*unit = (UnitPath){ 0 };
	g->uid = uid;
	g->role = g->shown_role = _ROLE_MAX;
	m->games[m->n_games++] = g;
	*ret = g;
	return 0;
}

static int find_or_make_game(Manager *m, const Process *p, uint32_t appid, Game **ret)
{
	auto_unit_path UnitPath unit = { 0 };
	Game *g;
	int r;

	r = unit_path_parse(p->cgroup, &unit);
	if (r < 0)
		return r == -EINVAL ? -ENOENT : r;
	g = manager_find_game(m, unit.cgroup);
	if (!g) {
		r = game_new(m, &unit, p->uid, &g);
		if (r < 0)
			return r;
	}
	g->left = false;
	if (g->known_by == 0)
		(void)game_learn(m, g, p);
	if (g->identity.appid == 0)
		g->identity.appid = appid;
	*ret = g;
	return 0;
}

static void untrack(Manager *m, size_t i)
{
	Tracked *t = m->tracked[i];

	m->tracked[i] = m->tracked[--m->n_tracked];
	tracked_free(t);
}

static int on_exit_event(sd_event_source *s, int fd _unused_, uint32_t events _unused_, void *userdata)
{
	Tracked *t = userdata;

	(void)sd_event_source_set_enabled(s, SD_EVENT_OFF);
	t->process->ended = true;
	focus_process_gone(t->manager->focus, t->process);
	manager_report_marked(t->manager, t->process->uid); /* another one in the unit may be the game */
	manager_queue_user_update(t->manager, t->process->uid, "a process ended");
	return 0;
}

static void arm_recheck(Tracked *t, uint64_t usec);

static int on_recheck(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	Tracked *t = userdata;
	bool first = !t->rechecked;

	t->recheck = sd_event_source_disable_unref(t->recheck);
	t->rechecked = true;
	if (process_refresh(&t->manager->roots, t->process) == 1) {
		t->moved = true;
		manager_queue_user_update(t->manager, t->process->uid, "the game moved to another unit");
	}
	/* Launchers become the game. */
	if (t->game && t->game->known_by == t->process->pid && game_learn(t->manager, t->game, t->process))
		manager_queue_user_update(t->manager, t->process->uid, "the game is another program now");
	if (first)
		arm_recheck(t, RECHECK_SECOND_USEC);
	return 0;
}

static void arm_recheck(Tracked *t, uint64_t usec)
{
	if (sd_event_add_time_relative(t->manager->event, &t->recheck, CLOCK_MONOTONIC, usec, 0, on_recheck, t) >= 0)
		(void)sd_event_source_set_description(t->recheck, "unit-recheck");
}

int manager_track(Manager *m, Process *p, Tracked **ret)
{
	Tracked *t;
	int r;

	for (size_t i = 0; i < m->n_tracked; i++)
		if (m->tracked[i]->process == p) {
			*ret = m->tracked[i];
			return 0;
		}
	if (!GROW(m->tracked, m->n_tracked_alloc, m->n_tracked))
		return -ENOMEM;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->manager = m;
	t->process = process_ref(p);
	r = sd_event_add_io(m->event, &t->exit, p->pidfd, EPOLLIN, on_exit_event, t);
	if (r < 0) {
		tracked_free(t);
		return r;
	}
	(void)sd_event_source_set_description(t->exit, "process-exit");
	p->watched = true;
	m->tracked[m->n_tracked++] = t;
	*ret = t;
	return 0;
}

int manager_track_game(Manager *m, Process *p, uint32_t appid, Game **ret)
{
	Tracked *t;
	Game *g;
	int r;

	r = find_or_make_game(m, p, appid, &g);
	if (r < 0)
		return r;
	r = manager_track(m, p, &t);
	if (r < 0)
		return r;
	if (t->game != g) {
		t->game = g;
		if (!t->recheck && !t->rechecked)
			arm_recheck(t, RECHECK_FIRST_USEC);
	}
	*ret = g;
	return 0;
}

int manager_get_process(Manager *m, int pidfd, Process **ret)
{
	uint64_t id;
	int r;

	r = process_get_id(pidfd, &id);
	if (r < 0)
		return r;
	for (size_t i = 0; i < m->n_tracked; i++) {
		Process *known = m->tracked[i]->process;

		if (known->id != id || !process_check_alive(known))
			continue;
		m->tracked[i]->named = true;
		*ret = process_ref(known);
		return 0;
	}
	return process_new(&m->roots, pidfd, ret);
}

void manager_recheck_named(Manager *m)
{
	for (size_t i = 0; i < m->n_tracked; i++) {
		Tracked *t = m->tracked[i];

		if (!t->named)
			continue;
		t->named = false;
		if (process_refresh(&m->roots, t->process) != 1)
			continue;
		t->moved = true;
		manager_queue_user_update(m, t->process->uid, "the game moved to another unit");
	}
}

/* --- Windows ------------------------------------------------------------------------------------ */

bool manager_is_game(const Manager *m, const Process *p)
{
	auto_unit_path UnitPath unit = { 0 };
	bool has_unit = unit_path_parse(p->cgroup, &unit) >= 0, is;
	GameIdentity identity = { 0 };

	if (game_identify(&m->roots, p, has_unit ? &unit : NULL, &identity) < 0)
		return false;
	/* A flatpak can be anything. */
	is = (identity.mark != MARK_NONE && identity.mark != MARK_FLATPAK) ||
	     config_find_game(m->config, identity.appid, identity.exe, strempty(unit.name));
	game_identity_done(&identity);
	return is;
}

Game *manager_known_game(const Manager *m, const Process *p)
{
	auto_unit_path UnitPath unit = { 0 };
	Game *g = manager_game_of(m, p);

	/* A unit that comes back under its name is not that of a process that has ended. */
	if (!g && process_is_alive(p) && unit_path_parse(p->cgroup, &unit) >= 0)
		g = manager_find_game(m, unit.cgroup);
	return g && !g->ended ? g : NULL;
}

int manager_track_front(Manager *m, const FocusReport *report)
{
	Game *g;
	int r;

	r = manager_track_game(m, report->game, report->appid, &g);
	if (r >= 0)
		manager_name_game(m, g, report->game);
	return r;
}

static void judge_again(uid_t uid _unused_, const FocusReport *report, bool wins _unused_, bool gone _unused_,
			void *userdata)
{
	Manager *m = userdata;

	if (report->window && report->game && process_is_alive(report->game) && manager_is_game(m, report->game))
		(void)manager_track_front(m, report);
}

/* --- Clearing up ------------------------------------------------------------------------------ */

static void follow_move(Manager *m, Tracked *t)
{
	Game *before = t->game, *g;

	t->moved = false;
	t->game = NULL;
	if (!before)
		return;
	before->left = true;
	if (find_or_make_game(m, t->process, before->identity.appid, &g) < 0)
		return;
	t->game = g;
	/* Who told what the game is does so in its new unit, too, where only Steam's reaper may be known. */
	if (before->known_by == t->process->pid)
		manager_name_game(m, g, t->process);
}

static bool game_in_use(const Manager *m, const Game *g)
{
	for (size_t i = 0; i < m->n_tracked; i++)
		if (m->tracked[i]->game == g)
			return true;
	return g->named && cgroup_is_populated(g->group) > 0;
}

const char *game_end_reason(const Game *g)
{
	if (g->left)
		return "the game moved to another unit";
	return cgroup_is_populated(g->group) > 0 ? "nobody calls it a game any more" : "the game ended";
}

/* By itself, or by the configuration. */
static bool says_it_is_a_game(const Manager *m, const Game *g)
{
	return (g->identity.mark != MARK_NONE && g->identity.mark != MARK_FLATPAK) || g->identity.appid > 0 ||
	       game_config(m, g);
}

typedef struct Naming {
	const Process *process;
	bool found;
} Naming;

static void on_naming(uid_t uid _unused_, const FocusReport *report, bool wins _unused_, bool gone _unused_,
		      void *userdata)
{
	Naming *n = userdata;

	if (report->game == n->process && (!report->window || report->appid > 0))
		n->found = true;
	for (size_t i = 0; i < report->n_running; i++)
		n->found = n->found || report->running[i] == n->process;
}

/* A window's process stays known while its report does, also when what made a game of it has gone. */
static bool is_only_a_window(const Manager *m, const Tracked *t)
{
	Naming n = { t->process, false };

	if (!t->game || t->process->n_ref == 1 || t->game->named || says_it_is_a_game(m, t->game))
		return false;
	focus_each(m->focus, on_naming, &n);
	for (size_t i = 0; i < hold_count(m->holds); i++)
		n.found = n.found || hold_at(m->holds, i)->process == t->process;
	return !n.found;
}

/* What its unit, Steam's reaper or its environment call a game stays one until it ends, also while nobody
 * names it: behind another window it still has its share. One of its processes is enough to know. */
static bool is_last_of_a_game(const Manager *m, const Tracked *t)
{
	if (!t->game || !says_it_is_a_game(m, t->game))
		return false;
	for (size_t i = 0; i < m->n_tracked; i++)
		if (m->tracked[i] != t && m->tracked[i]->game == t->game)
			return false;
	return true;
}

void manager_refresh_games(Manager *m)
{
	for (size_t i = m->n_tracked; i-- > 0;) {
		Tracked *t = m->tracked[i];

		if (m->recheck && process_refresh(&m->roots, t->process) == 1)
			t->moved = true;
		/* The last reference is ours: no report and no hold names it any more. */
		if (!process_is_alive(t->process) || (t->process->n_ref == 1 && !is_last_of_a_game(m, t)))
			untrack(m, i);
		else if (t->moved)
			follow_move(m, t);
		else if (is_only_a_window(m, t))
			t->game = NULL;
	}
	m->recheck = false;
	for (size_t i = 0; i < m->n_games; i++) {
		Game *g = m->games[i];

		g->ended = !game_in_use(m, g);
		g->left = g->left && g->ended; /* not all of it */
	}
}

void manager_close_ended_games(Manager *m)
{
	for (size_t i = m->n_games; i-- > 0;) {
		Game *g = m->games[i];

		if (!g->ended)
			continue;
		m->games[i] = m->games[--m->n_games];
		game_close(m, g);
	}
}

void manager_free_games(Manager *m)
{
	while (m->n_tracked > 0)
		untrack(m, m->n_tracked - 1);
	for (size_t i = 0; i < m->n_games; i++)
		game_close(m, m->games[i]);
	m->n_games = 0;
}

/* --- News of units ---------------------------------------------------------------------------- */

Process *manager_open_process(const Manager *m, pid_t pid, const char *cgroup)
{
	auto_close int pidfd = pidfd_open(pid, 0);
	auto_process Process *p = NULL;

	if (pidfd < 0 || process_new(&m->roots, pidfd, &p) < 0 || !cgroup_path_is_below(p->cgroup, cgroup))
		return NULL;
	return TAKE_PTR(p);
}

/* The first process of a unit tells what runs in it. */
static void learn_from_unit(Manager *m, Game *g)
{
	auto_process Process *p = NULL;
	auto_free pid_t *pids = NULL;
	size_t n;

	if (cgroup_procs(&m->hierarchy, g->unit.cgroup, &pids, &n) < 0 || n == 0)
		return;
	p = manager_open_process(m, pids[0], g->unit.cgroup);
	if (p)
		(void)game_learn(m, g, p);
}

static bool unit_names_a_game(const Manager *m, const UnitPath *unit)
{
	if (unit->appid > 0)
		return true;
	for (size_t i = 0; i < m->config->n_games; i++) {
		const GameConfig *c = &m->config->games[i];

		if (c->by == GAME_BY_UNIT && unit_matches(unit->name, (char *[]){ c->pattern, NULL }))
			return true;
	}
	return false;
}

/* The unit came back under its name before its end was noticed: nothing of its earlier life counts. */
static void game_reopen(Manager *m, Game *g)
{
	Cgroup *fresh;

	if (cgroup_open(&m->hierarchy, g->unit.cgroup, &fresh) < 0)
		return;
	manager_close_evictions(g);
	cgroup_close(g->group);
	g->group = fresh;
	game_identity_done(&g->identity);
	g->identity.appid = g->unit.appid;
	g->known_by = 0;
	g->room_asked = false;
	free(g->easing);
	g->easing = NULL;
}

/* Once, when somebody is in it: an empty one is closed again, and comes anew with its first process. */
static void ask_for_room(Manager *m, Game *g)
{
	if (!g->named || g->room_asked || cgroup_is_populated(g->group) <= 0 || !manager_wants_room(m, g))
		return;
	g->room_asked = true;
	manager_make_room_for_unit(m, g);
}

void manager_ask_for_room(Manager *m)
{
	/* The list may change with the update that the first room brings. */
	for (size_t i = 0; i < m->n_games && !m->room; i++)
		ask_for_room(m, m->games[i]);
}

static void add_named_game(Manager *m, const char *path)
{
	auto_unit_path UnitPath unit = { 0 };
	Game *g = manager_find_game(m, path);

	if (g && cgroup_is_populated(g->group) < 0)
		game_reopen(m, g);
	if (!g) {
		if (unit_path_parse(path, &unit) < 0 || unit.uid == UNIT_UID_NONE || !unit_names_a_game(m, &unit))
			return;
		if (game_new(m, &unit, unit.uid, &g) < 0)
			return;
		g->identity.appid = g->unit.appid;
	}
	/* A source may have called one a game whose unit does not: Steam's own, while a game is still in it. */
	g->named = unit_names_a_game(m, &g->unit);
	if (!g->named)
		return;
	if (!g->identity.exe)
		learn_from_unit(m, g);
	ask_for_room(m, g);
}

void manager_refresh_names(Manager *m)
{
	for (size_t i = 0; i < m->n_games; i++)
		m->games[i]->named = m->games[i]->named && unit_names_a_game(m, &m->games[i]->unit);
	for (size_t i = 0; i < m->n_units; i++)
		add_named_game(m, m->units[i].path);
	if (m->focus)
		focus_each(m->focus, judge_again, m);
}

static int add_unit(Manager *m, const char *path)
{
	auto_unit_path UnitPath unit = { 0 };
	char *copy;

	if (unit_path_parse(path, &unit) < 0)
		return 0;
	for (size_t i = 0; i < m->n_units; i++)
		if (streq(m->units[i].path, path))
			return 0;
	if (!GROW(m->units, m->n_units_alloc, m->n_units))
		return -ENOMEM;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	m->units[m->n_units++] = (KnownUnit){ copy, strrchr(copy, '/') + 1, unit.uid };
	return 0;
}

static void remove_unit(Manager *m, const char *path)
{
	for (size_t i = 0; i < m->n_units; i++)
		if (streq(m->units[i].path, path)) {
			free(m->units[i].path);
			m->units[i] = m->units[--m->n_units];
			return;
		}
}

static void forget_named_game(Manager *m, const char *path)
{
	Game *g = manager_find_game(m, path);

	if (g)
		g->named = false;
}

void manager_unit_event(UnitEvent event, const char *path, void *userdata)
{
	Manager *m = userdata;

	switch (event) {
	case UNIT_ADDED:
		if (add_unit(m, path) < 0)
			(void)log_oom();
		add_named_game(m, path);
		break;
	case UNIT_CHANGED:
		add_named_game(m, path);
		break;
	case UNIT_REMOVED:
		remove_unit(m, path);
		forget_named_game(m, path);
		break;
	case UNIT_MARKED:
		manager_report_marked(m, unit_path_uid(path));
		return;
	case UNIT_RELOADED:
		apply_distrust(m->apply);
		manager_queue_update(m, "systemd reloaded");
		return;
	}
	/* A process may have come from elsewhere into the unit. */
	m->recheck = true;
	manager_queue_user_update(m, unit_path_uid(path), "units changed");
}
