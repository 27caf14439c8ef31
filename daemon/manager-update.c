/* SPDX-License-Identifier: MIT */
/* The update: tables -> world -> plan -> writes -> what the bus is told. */
#include "log.h"
#include "manager.h"

#define WORLD_SESSIONS_MAX 32

/* Everything that a World borrows, for the time of one update. */
typedef struct Builder {
	Manager *m;
	WorldRegion *regions;
	WorldSession sessions[WORLD_SESSIONS_MAX];
	size_t n_sessions;
	WorldGroup *groups;
	size_t n_groups, n_alloc;
	char **paths; /* those that no table keeps */
	size_t n_paths, n_paths_alloc;
} Builder;

static void builder_done(Builder *b)
{
	free(b->regions);
	for (size_t i = 0; i < b->n_groups; i++)
		free((void *)b->groups[i].current);
	free(b->groups);
	for (size_t i = 0; i < b->n_paths; i++)
		free(b->paths[i]);
	free(b->paths);
}

/* --- World ------------------------------------------------------------------------------------ */

/* What a group uses now; zeros where dmem is not on yet. */
static int read_current(Builder *b, const char *path, Cgroup *known, uint64_t **ret)
{
	auto_cgroup Cgroup *opened = NULL;
	auto_dmem_table DmemTable table = { 0 };
	const Regions *regions = &b->m->regions;
	uint64_t *current;

	current = calloc(MAX(regions->n, (size_t)1), sizeof(*current));
	if (!current)
		return -ENOMEM;
	*ret = current;
	if (!known)
		known = apply_get_cgroup(b->m->apply, path);
	if (!known) {
		if (cgroup_open(&b->m->hierarchy, path, &opened) < 0)
			return 0;
		known = opened;
	}
	if (cgroup_read_current(known, &table) < 0)
		return 0;
	for (size_t i = 0; i < regions->n; i++)
		(void)dmem_table_get(&table, regions->items[i].name, &current[i]);
	return 0;
}

/* Policy wants to know the use of only some roles; reading is left out for the rest. */
static bool role_needs_current(GroupRole role)
{
	return role == ROLE_COMPOSITOR || role == ROLE_BACKGROUND;
}

static int add_group(Builder *b, const char *path, GroupRole role, const WorldSession *session,
		     const Game *game, const ServiceConfig *service)
{
	uint64_t *current = NULL;
	int r;

	if (!GROW(b->groups, b->n_alloc, b->n_groups))
		return -ENOMEM;
	if (role_needs_current(role))
		r = read_current(b, path, game ? game->group : NULL, &current);
	else
		r = (current = calloc(MAX(b->m->regions.n, (size_t)1), sizeof(*current))) ? 0 : -ENOMEM;
	if (r < 0)
		return r;
	b->groups[b->n_groups++] = (WorldGroup){
		.path = path,
		.role = role,
		.session = session,
		.game = game ? game_config(b->m, game) : NULL,
		.service = service,
		.current = current,
		.easing = role == ROLE_FRONT ? manager_easing(b->m, game) : NULL,
	};
	return 0;
}

/* A path that lives as long as the builder. */
static int keep_path(Builder *b, char **path, const char **ret)
{
	if (!GROW(b->paths, b->n_paths_alloc, b->n_paths))
		return -ENOMEM;
	b->paths[b->n_paths++] = *path;
	*ret = TAKE_PTR(*path);
	return 0;
}

static int add_compositor(Builder *b, const WorldSession *session, const Process *p)
{
	auto_unit_path UnitPath unit = { 0 };
	const char *path;
	int r;

	if (unit_path_parse(p->cgroup, &unit) < 0)
		return 0;
	r = keep_path(b, &unit.cgroup, &path);
	if (r < 0)
		return r;
	return add_group(b, path, ROLE_COMPOSITOR, session, NULL, NULL);
}

static int add_user_units(Builder *b, const WorldSession *session, bool compositor_known)
{
	const Manager *m = b->m;
	int r = 0;

	for (size_t i = 0; i < m->n_units && r >= 0; i++) {
		const KnownUnit *u = &m->units[i];

		if (u->uid != session->uid || manager_find_game(m, u->path))
			continue;
		if (!compositor_known && unit_matches(u->name, m->config->compositor_units))
			r = add_group(b, u->path, ROLE_COMPOSITOR, session, NULL, NULL);
		else if (unit_matches(u->name, m->config->menu_units))
			r = add_group(b, u->path, ROLE_OVERLAY, session, NULL, NULL);
	}
	return r;
}

/* The only game whose unit says that it is one, where no source knows the focus. */
static Game *only_named_game(const Manager *m, uid_t uid)
{
	Game *found = NULL;

	for (size_t i = 0; i < m->n_games; i++) {
		Game *g = m->games[i];

		if (g->uid != uid || !g->named || g->ended)
			continue;
		if (found)
			return NULL;
		found = g;
	}
	return found;
}

static Game *front_game(const Manager *m, uid_t uid, const FocusReport *report, const char **ret_source)
{
	const Hold *hold;
	Game *g = NULL;

	*ret_source = report ? report->source : "";
	if (report)
		return report->game ? manager_known_game(m, report->game) : NULL;
	hold = hold_newest(m->holds, uid);
	if (hold)
		g = manager_game_of(m, hold->process);
	if (g) {
		*ret_source = "hold";
		return g;
	}
	g = only_named_game(m, uid);
	if (g)
		*ret_source = "units";
	return g;
}

static int add_siblings(Builder *b, const WorldSession *session, const Game *front)
{
	auto_free char *parent = NULL;
	auto_strv char **children = NULL;
	int r;

	if (b->m->config->background_max.kind == SIZE_UNSET)
		return 0;
	r = cgroup_path_parent(front->unit.cgroup, &parent);
	if (r < 0)
		return r;
	r = cgroup_children(&b->m->hierarchy, parent, &children);
	if (r < 0)
		return cgroup_is_gone(r) ? 0 : r;
	for (char **c = children; *c && r >= 0; c++) {
		char *path = NULL;
		const char *kept;

		if (streq(*c, front->unit.name) || !unit_matches(*c, b->m->config->background_units))
			continue;
		if (asprintf(&path, "%s/%s", parent, *c) < 0)
			r = -ENOMEM;
		else if (manager_find_game(b->m, path))
			free(path);
		else
			r = keep_path(b, &path, &kept) < 0 ? -ENOMEM
							   : add_group(b, kept, ROLE_SIBLING, session, NULL, NULL);
	}
	return r;
}

static int add_games(Builder *b, const WorldSession *session, const Game *front)
{
	Manager *m = b->m;
	int r = 0;

	for (size_t i = 0; i < m->n_games && r >= 0; i++) {
		Game *g = m->games[i];

		if (g->uid != session->uid || g->ended || !game_allowed(m, g))
			continue;
		g->role = g == front ? ROLE_FRONT : ROLE_BACKGROUND;
		r = add_group(b, g->unit.cgroup, g->role, session, g, NULL);
	}
	return r;
}

/* What the session of one user adds; the first active one with somebody in front is what the bus shows. */
static int add_session(Builder *b, uid_t uid, Game **front, const FocusReport **shown, const char **source)
{
	const FocusReport *report = focus_get(b->m->focus, uid);
	bool compositor = report && report->compositor && process_is_alive(report->compositor);
	WorldSession *session;
	const char *my_source;
	Game *g;
	int r;

	if (b->n_sessions == WORLD_SESSIONS_MAX)
		return 0;
	session = &b->sessions[b->n_sessions++];
	*session = (WorldSession){ uid, true, report ? report->menu : MENU_UNKNOWN };
	g = front_game(b->m, uid, report, &my_source);
	if (!*front && (g || !*shown)) {
		*front = g;
		*shown = report;
		*source = my_source;
	}
	r = add_games(b, session, g);
	if (r >= 0 && compositor)
		r = add_compositor(b, session, report->compositor);
	if (r >= 0)
		r = add_user_units(b, session, compositor);
	if (r >= 0 && g)
		r = add_siblings(b, session, g);
	return r;
}

/* A unit of a user counts while its user does; the system's own always. */
static bool unit_counts(const Manager *m, const KnownUnit *u)
{
	return u->uid == UNIT_UID_NONE ||
	       (manager_user_active(m, u->uid) && config_user_allowed(m->config, u->uid));
}

static int add_services(Builder *b)
{
	const Manager *m = b->m;
	int r = 0;

	for (size_t i = 0; i < m->config->n_services; i++) {
		const ServiceConfig *service = &m->config->services[i];

		for (size_t k = 0; k < m->n_units && r >= 0; k++)
			if (unit_counts(m, &m->units[k]) &&
			    unit_matches(m->units[k].name, (char *[]){ service->unit, NULL }))
				r = add_group(b, m->units[k].path, ROLE_SERVICE, NULL, NULL, service);
	}
	return r;
}

static int add_room(Builder *b)
{
	const Manager *m = b->m;
	int r = 0;

	for (size_t i = 0; i < manager_room_count(m) && r >= 0; i++) {
		const uint64_t *ceilings;
		const char *path = manager_room_get(m, i, &ceilings);

		r = add_group(b, path, ROLE_ROOM, NULL, NULL, NULL);
		if (r >= 0)
			b->groups[b->n_groups - 1].ceiling = ceilings;
	}
	return r;
}

static int add_regions(Builder *b)
{
	const Regions *regions = &b->m->regions;

	b->regions = calloc(MAX(regions->n, (size_t)1), sizeof(*b->regions));
	if (!b->regions)
		return -ENOMEM;
	for (size_t i = 0; i < regions->n; i++)
		b->regions[i] = (WorldRegion){
			.name = regions->items[i].name,
			.capacity = regions->items[i].capacity,
			.nothing_to_gain = regions->items[i].integrated,
		};
	return 0;
}

static void forget_roles(Manager *m)
{
	for (size_t i = 0; i < m->n_games; i++)
		m->games[i]->role = _ROLE_MAX;
}

static int build_world(Builder *b, World *ret, Game **front, const FocusReport **report, const char **source)
{
	Manager *m = b->m;
	int r;

	forget_roles(m);
	r = add_regions(b);
	/* Switched off is a world in which nobody is. */
	for (size_t i = 0; i < m->n_users && m->config->enabled && r >= 0; i++)
		if (m->users[i].active && config_user_allowed(m->config, m->users[i].uid))
			r = add_session(b, m->users[i].uid, front, report, source);
	if (m->config->enabled && r >= 0)
		r = add_services(b);
	if (m->config->enabled && r >= 0)
		r = add_room(b);
	if (r < 0)
		return r;
	*ret = (World){ b->regions, m->regions.n, b->groups, b->n_groups };
	return 0;
}

/* --- Whose memory is charged to whom ------------------------------------------------------------ */

static int add_charged_slices(uid_t uid, char **paths, size_t *n)
{
	static const char *const slices[] = { "app.slice", "session.slice" };

	for (size_t i = 0; i < ARRAY_SIZE(slices); i++) {
		if (asprintf(&paths[*n], "/user.slice/user-%u.slice/user@%u.service/%s", (unsigned)uid, (unsigned)uid,
			     slices[i]) < 0) {
			paths[*n] = NULL;
			return -ENOMEM;
		}
		(*n)++;
	}
	return 0;
}

/* Compositor and launcher open the GPU long before a game is in front. What a program takes while dmem is off
 * above its unit stays charged to a group further up, where no floor and no share of the unit's reaches it. */
static int set_charged(Manager *m)
{
	auto_strv char **paths = calloc(2 * m->n_users + m->n_units + 1, sizeof(*paths));
	size_t n = 0;
	int r = paths ? 0 : -ENOMEM;

	for (size_t i = 0; i < m->n_users && m->config->enabled && r >= 0; i++)
		if (m->users[i].active && config_user_allowed(m->config, m->users[i].uid))
			r = add_charged_slices(m->users[i].uid, paths, &n);
	for (size_t i = 0; i < m->n_units && m->config->enabled && r >= 0; i++) {
		const KnownUnit *u = &m->units[i];

		if (!unit_counts(m, u))
			continue;
		r = cgroup_path_parent(u->path, &paths[n]);
		n += r >= 0;
	}
	if (r >= 0)
		apply_set_charged(m->apply, TAKE_PTR(paths));
	return r;
}

/* --- What was decided --------------------------------------------------------------------------- */

/* By what holds, not by what was planned: a value may have been refused, or a stranger may have won it. */
static bool is_protected(const Manager *m, const Game *g)
{
	uint64_t value;

	for (size_t i = 0; i < m->plan.n_regions; i++)
		for (DmemLimit l = DMEM_MIN; l <= DMEM_LOW; l++)
			if (apply_get(m->apply, g->unit.cgroup, m->plan.regions[i], l, &value) >= 0 && value > 0)
				return true;
	return false;
}

static bool limits_differ(const Plan *a, const Plan *b, const char *path)
{
	const PlanGroup *x = plan_find(a, path), *y = plan_find(b, path);

	if (!x || !y || a->n_regions != b->n_regions)
		return x != y;
	return memcmp(x->limits, y->limits, a->n_regions * sizeof(*x->limits)) != 0;
}

static void tell_game(Manager *m, Game *g, const Plan *before, const char *reason)
{
	GroupRole role = !g->ended && is_protected(m, g) ? g->role : _ROLE_MAX;
	bool changed = role != g->shown_role;

	g->shown_role = role;
	if (!m->hooks)
		return;
	if (changed && role != _ROLE_MAX)
		m->hooks->protected(m, g, reason);
	else if (changed)
		m->hooks->released(m, g, g->ended ? game_end_reason(g) : reason);
	else if (!g->ended && limits_differ(before, &m->plan, g->unit.cgroup))
		m->hooks->limits_changed(m, g);
}

/* An empty scope is being filled right now: it is shown as soon as somebody is in it. */
static void announce_games(Manager *m)
{
	for (size_t i = 0; i < m->n_games; i++) {
		Game *g = m->games[i];

		if (g->announced || g->ended || !m->hooks || (!g->identity.exe && g->role == _ROLE_MAX))
			continue;
		g->announced = true;
		m->hooks->game_added(m, g);
	}
}

static void tell_games(Manager *m, const Plan *before, const char *reason)
{
	for (size_t i = 0; i < m->n_games; i++)
		tell_game(m, m->games[i], before, reason);
	manager_close_ended_games(m);
}

void manager_tell_stop(Manager *m)
{
	for (size_t i = 0; i < m->n_games; i++)
		tell_game(m, m->games[i], &m->plan, "vramd stops");
}

static void tell_focus(Manager *m, const Game *front, const FocusReport *report, const char *source,
		       const char *reason)
{
	uint64_t id = front ? front->id : 0;
	MenuState menu = report ? report->menu : MENU_UNKNOWN;
	bool changed = id != m->front_game || menu != m->menu || !streq_ptr(source, m->focus_source);

	m->front_game = id;
	m->menu = menu;
	if (!streq_ptr(source, m->focus_source)) {
		free(m->focus_source);
		m->focus_source = strdup(source);
	}
	if (changed && m->hooks)
		m->hooks->focus_changed(m, front, reason);
}

static void tell_state(Manager *m, const Game *front)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_games; i++)
		n += m->games[i]->shown_role != _ROLE_MAX;
	if (m->sleeping)
		manager_set_state(m, STATE_PAUSED, "the system sleeps; what is protected stays so");
	else if (!m->config->enabled)
		manager_set_state(m, STATE_PAUSED, "switched off by Enabled=no in the configuration");
	else if (m->regions.n == 0)
		manager_set_state(m, STATE_IDLE, "no driver has registered a dmem region");
	else if (front && front->shown_role != _ROLE_MAX)
		manager_set_state(m, STATE_PROTECTING, "%s is in front", game_name(m, front));
	else if (n > 0)
		manager_set_state(m, STATE_PROTECTING, "no game is in front, %zu in the background", n);
	else
		manager_set_state(m, STATE_IDLE,
				  front ? "the game in front is not to be protected, or there is nothing to gain"
					: "no game is in front");
}

/* The same trouble is told once, not with every update. */
static void apply(Manager *m)
{
	int r = apply_plan(m->apply, &m->plan);

	if (r < 0 && r != m->apply_error)
		log_warning_errno(r, "Cannot write all values, ignoring: %m");
	m->apply_error = r;
}

int manager_update(Manager *m, const char *reason)
{
	_cleanup_(builder_done) Builder b = { .m = m };
	const FocusReport *report = NULL;
	const char *source = "";
	Game *front = NULL;
	World world = { 0 };
	Plan plan = { 0 }, before;
	int r;

	manager_refresh_games(m);
	r = build_world(&b, &world, &front, &report, &source);
	if (r < 0)
		return r;
	r = set_charged(m);
	if (r >= 0)
		r = policy_decide(&world, m->config, &plan);
	if (r < 0)
		return r;
	before = m->plan;
	m->plan = plan;
	apply(m);
	announce_games(m);
	tell_focus(m, front, report, source, reason);
	tell_games(m, &before, reason);
	tell_state(m, front);
	manager_settle_knobs(m, front);
	manager_settle_easing(m, reason);
	manager_settle_evictions(m);
	manager_update_workers(m);
	plan_done(&before);
	return 0;
}
