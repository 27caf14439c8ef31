/* SPDX-License-Identifier: MIT */
/* Room for a game that is about to open the GPU: what programs in the background hold beyond a common level is moved
 * out of video memory by a ceiling that passes. The ceilings are claims in the plan like any other, so they are in
 * the journal before they are written, and go when the plan does not name them any more. Only the waiting is done by
 * a child (apply-enforce.c), and not for longer than ROOM_USEC. */
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "log.h"
#include "manager.h"
#include "room.h"

/* A game that starts waits for it: 8 GiB over a PCIe 4.0 x4 link take a second and a half. */
#define ROOM_USEC (3 * USEC_PER_SEC)
/* A child that does not die is within the kernel, moving one buffer more. */
#define KILL_USEC (500 * USEC_PER_MSEC)
#define ROOM_UNITS_MAX 256
#define SLICE_DEPTH_MAX 4

struct Room {
	Manager *manager;
	char *unit;              /* for whom; control group */
	room_cb cb;              /* NULL: nobody waits */
	void *userdata;
	char **paths;            /* who makes room */
	size_t n, n_paths_alloc;
	char **regions;          /* their names when it began: they may come and go */
	size_t n_regions;
	RoomUnit *units;         /* [n_regions][ROOM_UNITS_MAX] */
	uint64_t *before;        /* [n][n_regions] use when it began */
	uint64_t *old;           /* [n][n_regions] dmem.max that was there */
	uint64_t *ceilings;      /* [n][n_regions] */
	pid_t pid;               /* 0: no child */
	int pidfd;
	sd_event_source *ended, *timer;
	bool killed;
	bool over;               /* not to be in the plan any more */
};

static Room *room_free(Room *room)
{
	if (!room)
		return NULL;
	sd_event_source_disable_unref(room->ended);
	sd_event_source_disable_unref(room->timer);
	close_fd(room->pidfd);
	for (size_t i = 0; i < room->n; i++)
		free(room->paths[i]);
	free(room->paths);
	strv_free(room->regions);
	free(room->unit);
	free(room->units);
	free(room->before);
	free(room->old);
	free(room->ceilings);
	free(room);
	return NULL;
}
DEFINE_CLEANUP(Room *, room_free)

static uint64_t *cell(const Room *room, uint64_t *table, size_t unit, size_t region)
{
	return &table[unit * room->n_regions + region];
}

static RoomUnit *unit_of(const Room *room, size_t unit, size_t region)
{
	return &room->units[region * ROOM_UNITS_MAX + unit];
}

size_t manager_room_count(const Manager *m)
{
	return m->room && !m->room->over ? m->room->n : 0;
}

const char *manager_room_get(const Manager *m, size_t i, const uint64_t **ret_ceilings)
{
	*ret_ceilings = cell(m->room, m->room->ceilings, i, 0);
	return m->room->paths[i];
}

/* --- Who makes room ------------------------------------------------------------------------------- */

typedef struct Search {
	Manager *m;
	Room *room;
	uid_t uid;
	char *own[3]; /* groups of the game, of who asks, and of the compositor; NULL: not known */
} Search;

static void search_done(Search *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->own); i++)
		free(s->own[i]);
}

static bool is_promised(const Plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->n_groups; i++) {
		const PlanGroup *g = &plan->groups[i];

		for (size_t r = 0; r < plan->n_regions && cgroup_path_is_below(g->path, path); r++)
			if (g->limits[r].value[DMEM_LOW] > 0)
				return true;
	}
	return false;
}

/* Games, who draws them, who asks, and whoever has a promise are left alone, also where they lie within a slice. */
static bool is_spared(const Search *s, const char *path)
{
	const Manager *m = s->m;

	for (size_t i = 0; i < ARRAY_SIZE(s->own); i++)
		if (s->own[i] && cgroup_path_is_below(s->own[i], path))
			return true;
	for (size_t i = 0; i < m->n_games; i++)
		if (cgroup_path_is_below(m->games[i]->unit.cgroup, path) && game_allowed(m, m->games[i]))
			return true;
	for (size_t i = 0; i < m->n_units; i++)
		if (unit_matches(m->units[i].name, m->config->compositor_units) &&
		    cgroup_path_is_below(m->units[i].path, path))
			return true;
	return is_promised(&m->plan, path);
}

/* A stranger's promise is a promise, and where his ceiling is lower already there is nothing to do. */
static bool may_lower(const Cgroup *g, const char *region, uint64_t *ret_max)
{
	uint64_t min, low;

	return cgroup_get_limit(g, DMEM_MIN, region, &min) >= 0 && min == 0 &&
	       cgroup_get_limit(g, DMEM_LOW, region, &low) >= 0 && low == 0 &&
	       cgroup_get_limit(g, DMEM_MAX, region, ret_max) >= 0;
}

static bool region_counts(const Manager *m, size_t region)
{
	return !m->regions.items[region].integrated || m->config->force;
}

/* What a unit uses, by region; true if it is anything. */
static bool measure(const Search *s, Cgroup *g, const Size *keep, size_t at)
{
	auto_dmem_table DmemTable table = { 0 };
	bool found = false;

	if (cgroup_read_current(g, &table) < 0)
		return false;
	for (size_t r = 0; r < s->room->n_regions; r++) {
		const Region *region = &s->m->regions.items[r];
		RoomUnit *unit = unit_of(s->room, at, r);
		uint64_t use = 0;

		*unit = (RoomUnit){ 0 };
		*cell(s->room, s->room->old, at, r) = DMEM_UNLIMITED;
		(void)dmem_table_get(&table, region->name, &use);
		*cell(s->room, s->room->before, at, r) = use;
		if (use == 0 || !region_counts(s->m, r) ||
		    !may_lower(g, region->name, cell(s->room, s->room->old, at, r)))
			continue;
		unit->use = use;
		unit->keep = keep ? size_resolve(keep, region->capacity, 0) : 0;
		found = true;
	}
	return found;
}

/* Takes path over. */
static int add_unit(Search *s, char *path, const Size *keep)
{
	auto_free char *mine = path;
	auto_cgroup Cgroup *g = NULL;
	Room *room = s->room;

	for (size_t i = 0; i < room->n; i++)
		if (streq(room->paths[i], path))
			return 0;
	if (room->n == ROOM_UNITS_MAX || is_spared(s, path) || cgroup_open(&s->m->hierarchy, path, &g) < 0)
		return 0;
	if (!measure(s, g, keep, room->n))
		return 0;
	if (!GROW(room->paths, room->n_paths_alloc, room->n))
		return -ENOMEM;
	room->paths[room->n++] = TAKE_PTR(mine);
	return 0;
}

/* Does what is in a slice have books of its own? */
static bool is_divided(const Search *s, const char *path)
{
	auto_cgroup Cgroup *g = NULL;

	return endswith(path, ".slice") && cgroup_open(&s->m->hierarchy, path, &g) >= 0 &&
	       cgroup_has_dmem_children(g) > 0;
}

static int add_slice(Search *s, const char *slice, unsigned depth)
{
	auto_strv char **children = NULL;
	int r;

	r = cgroup_children(&s->m->hierarchy, slice, &children);
	if (r < 0)
		return cgroup_is_gone(r) ? 0 : r;
	for (char **c = children; *c && r >= 0; c++) {
		char *path;

		if (asprintf(&path, "%s/%s", slice, *c) < 0)
			return -ENOMEM;
		if (depth < SLICE_DEPTH_MAX && is_divided(s, path)) {
			r = add_slice(s, path, depth + 1);
			free(path);
		} else {
			r = add_unit(s, path, NULL);
		}
	}
	return r;
}

/* Services with a ceiling come down to that, and not further: his own ones and, while he plays, the system's. */
static int add_services(Search *s)
{
	const Manager *m = s->m;
	int r = 0;

	for (size_t i = 0; i < m->config->n_services; i++) {
		const ServiceConfig *service = &m->config->services[i];

		for (size_t k = 0; k < m->n_units && r >= 0; k++) {
			const KnownUnit *u = &m->units[k];
			char *path;

			if (service->max.kind == SIZE_UNSET || !unit_matches(u->name, (char *[]){ service->unit, NULL }))
				continue;
			if (u->uid != s->uid && (u->uid != UNIT_UID_NONE || !manager_user_active(m, s->uid)))
				continue;
			path = strdup(u->path);
			r = path ? add_unit(s, path, &service->max) : -ENOMEM;
		}
	}
	return r;
}

static int add_units(Search *s)
{
	auto_free char *slice = NULL;
	int r;

	r = add_services(s);
	if (r < 0)
		return r;
	if (asprintf(&slice, "/user.slice/user-%u.slice/user@%u.service/app.slice", (unsigned)s->uid,
		     (unsigned)s->uid) < 0) {
		slice = NULL;
		return -ENOMEM;
	}
	return add_slice(s, slice, 0);
}

/* --- How far -------------------------------------------------------------------------------------- */

/* What of `want` is not free; all of it counts as free where the kernel does not tell. */
static uint64_t missing(const Manager *m, const DmemTable *used, size_t region, uint64_t want)
{
	uint64_t capacity = m->regions.items[region].capacity, use = 0, left;

	(void)dmem_table_get(used, m->regions.items[region].name, &use);
	left = capacity > use ? capacity - use : 0;
	return want > left ? want - left : 0;
}

static int set_ceilings(Room *room, const Size *size)
{
	const Manager *m = room->manager;
	auto_dmem_table DmemTable used = { 0 };
	auto_cgroup Cgroup *root = NULL;
	int r;

	r = cgroup_open(&m->hierarchy, "/", &root);
	if (r >= 0)
		r = cgroup_read_table(root, "dmem.current", &used);
	if (r < 0)
		return r;
	for (size_t k = 0; k < room->n_regions; k++) {
		uint64_t need = missing(m, &used, k, size_resolve(size, m->regions.items[k].capacity, 0));
		uint64_t level = need > 0 ? room_level(unit_of(room, 0, k), room->n, need) : DMEM_UNLIMITED;

		for (size_t i = 0; i < room->n; i++) {
			uint64_t ceiling = room_ceiling(unit_of(room, i, k), level);

			*cell(room, room->ceilings, i, k) =
				ceiling < *cell(room, room->old, i, k) ? ceiling : DMEM_UNLIMITED;
		}
	}
	return 0;
}

static bool has_ceiling(const Room *room)
{
	for (size_t i = 0; i < room->n * room->n_regions; i++)
		if (room->ceilings[i] != DMEM_UNLIMITED)
			return true;
	return false;
}

/* --- The end -------------------------------------------------------------------------------------- */

/* What became free, by region; false if somebody is still above his ceiling. */
static bool measure_freed(const Room *room, uint64_t *freed)
{
	const Manager *m = room->manager;
	bool done = true;

	for (size_t i = 0; i < room->n; i++) {
		auto_cgroup Cgroup *g = NULL;
		auto_dmem_table DmemTable table = { 0 };

		/* Of one that has ended nothing is left. */
		if (cgroup_open(&m->hierarchy, room->paths[i], &g) >= 0)
			(void)cgroup_read_current(g, &table);
		for (size_t k = 0; k < room->n_regions; k++) {
			uint64_t before = *cell(room, room->before, i, k), use = 0;

			if (*cell(room, room->ceilings, i, k) == DMEM_UNLIMITED)
				continue;
			(void)dmem_table_get(&table, room->regions[k], &use);
			freed[k] += before > use ? before - use : 0;
			done = done && use <= *cell(room, room->ceilings, i, k);
		}
	}
	return done;
}

static void tell_end(const Room *room, const uint64_t *freed, bool done)
{
	char text[FORMAT_BYTES_MAX];

	for (size_t k = 0; k < room->n_regions; k++)
		if (freed[k] > 0)
			log_info("Made room for '%s': %s of %s moved out%s", strrchr(room->unit, '/') + 1,
				 format_bytes(text, freed[k]), room->regions[k],
				 done ? "" : ", and no more could be");
}

/* Whoever waits for its end is told once. */
static void room_answer(Room *room, const uint64_t *freed, bool done)
{
	room_cb cb = room->cb;

	room->cb = NULL;
	if (cb)
		cb(room->manager, freed, done, room->userdata);
}

/* A child that lives is no room any more, but is waited for. */
static void room_leave(Manager *m, Room *room)
{
	m->room = NULL;
	if (room->pid > 0)
		m->stray_room = room;
	else
		room_free(room);
}

void manager_cancel_room(Manager *m)
{
	Room *room = m->room;

	if (!room)
		return;
	if (room->pid > 0)
		(void)pidfd_send_signal(room->pidfd, SIGKILL, NULL, 0);
	room->timer = sd_event_source_disable_unref(room->timer);
	room_answer(room, NULL, false);
	room_leave(m, room);
}

/* Before the answer the old ceilings are back. */
static void room_end(Manager *m, Room *room)
{
	uint64_t freed[DMEM_REGIONS_MAX] = { 0 };
	bool done = measure_freed(room, freed);

	room->over = true;
	manager_queue_update(m, "room was made");
	manager_flush_update(m);
	if (m->room != room)
		return; /* called off meanwhile: the regions are others now */
	tell_end(room, freed, done);
	room_answer(room, freed, done);
	room_leave(m, room);
}

/* One that was given up wrote perhaps once more after the old ceilings were back. */
static void check_stray(Manager *m, const Room *room)
{
	for (size_t i = 0; i < room->n; i++)
		for (size_t k = 0; k < room->n_regions; k++)
			if (*cell(room, room->ceilings, i, k) != DMEM_UNLIMITED)
				(void)apply_expect_max(m->apply, room->paths[i], room->regions[k],
						       *cell(room, room->old, i, k),
						       *cell(room, room->ceilings, i, k));
	manager_queue_update(m, "who made room has ended");
}

static int on_ended(sd_event_source *s _unused_, int fd, uint32_t events _unused_, void *userdata)
{
	Room *room = userdata;
	Manager *m = room->manager;

	(void)waitid(P_PIDFD, (id_t)fd, &(siginfo_t){ 0 }, WEXITED | WNOHANG);
	room->pid = 0;
	if (m->room == room) {
		room_end(m, room);
	} else {
		check_stray(m, room);
		m->stray_room = room_free(m->stray_room);
	}
	manager_ask_for_room(m); /* who had to wait for this one */
	return 0;
}

/* The first time its time is over, the second time it has not even died of that. */
static int on_late(sd_event_source *s, uint64_t usec _unused_, void *userdata)
{
	Room *room = userdata;
	Manager *m = room->manager;

	if (!room->killed) {
		room->killed = true;
		(void)pidfd_send_signal(room->pidfd, SIGKILL, NULL, 0);
		if (sd_event_source_set_time_relative(s, KILL_USEC) >= 0 &&
		    sd_event_source_set_enabled(s, SD_EVENT_ONESHOT) >= 0)
			return 0;
	}
	log_debug("The kernel still moves buffers out for '%s', not waiting for it", room->unit);
	room_end(m, room);
	return 0;
}

/* --- The beginning -------------------------------------------------------------------------------- */

static int watch_child(Room *room)
{
	sd_event *event = room->manager->event;
	int r;

	room->pidfd = pidfd_open(room->pid, 0);
	if (room->pidfd < 0)
		return -errno;
	r = sd_event_add_io(event, &room->ended, room->pidfd, EPOLLIN, on_ended, room);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &room->timer, CLOCK_MONOTONIC, ROOM_USEC, 0, on_late, room);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(room->ended, "room-ended");
	(void)sd_event_source_set_description(room->timer, "room-late");
	return 0;
}

static void kill_child(Room *room)
{
	if (room->pid <= 0)
		return;
	(void)kill(room->pid, SIGKILL);
	(void)waitpid(room->pid, NULL, 0);
	room->pid = 0;
}

/* The ceilings are written: now somebody has to wait for their effect. */
static void room_start(Manager *m, Room *room)
{
	int r;

	m->room = room;
	manager_queue_update(m, "room for a game that starts");
	manager_flush_update(m);
	if (m->room != room)
		return;
	r = apply_enforce_max(m->apply, room->paths, room->n, &room->pid);
	if (r > 0)
		r = watch_child(room);
	if (r == 0 && room->pid > 0)
		return;
	if (r < 0)
		log_warning_errno(r, "Cannot wait for others to make room, ignoring: %m");
	kill_child(room);
	room_end(m, room);
}

static int room_new(Manager *m, const char *unit, room_cb cb, void *userdata, Room **ret)
{
	_cleanup_(room_freep) Room *room = calloc(1, sizeof(*room));
	size_t n = m->regions.n;

	if (!room)
		return -ENOMEM;
	room->manager = m;
	room->pidfd = -EBADF;
	room->cb = cb;
	room->userdata = userdata;
	room->n_regions = n;
	room->unit = strdup(unit);
	room->regions = calloc(n + 1, sizeof(*room->regions));
	for (size_t k = 0; k < n && room->regions; k++) {
		room->regions[k] = strdup(m->regions.items[k].name);
		if (!room->regions[k])
			return -ENOMEM;
	}
	room->units = calloc(n * ROOM_UNITS_MAX + 1, sizeof(*room->units));
	room->before = calloc(n * ROOM_UNITS_MAX + 1, sizeof(*room->before));
	room->old = calloc(n * ROOM_UNITS_MAX + 1, sizeof(*room->old));
	room->ceilings = calloc(n * ROOM_UNITS_MAX + 1, sizeof(*room->ceilings));
	if (!room->unit || !room->regions || !room->units || !room->before || !room->old || !room->ceilings)
		return -ENOMEM;
	*ret = TAKE_PTR(room);
	return 0;
}

/* The control group of a process that is only to be spared; NULL if it has ended. */
static char *group_of(const Manager *m, pid_t pid)
{
	auto_process Process *p = pid > 0 ? manager_open_process(m, pid, "/") : NULL;
	auto_unit_path UnitPath unit = { 0 };

	if (!p || unit_path_parse(p->cgroup, &unit) < 0)
		return NULL;
	return TAKE_PTR(unit.cgroup);
}

static int room_prepare(Manager *m, const RoomWish *wish, const Size *size, Room *room)
{
	_cleanup_(search_done) Search s = { .m = m, .room = room, .uid = wish->uid };
	const FocusReport *report = focus_get(m->focus, wish->uid);
	auto_unit_path UnitPath compositor = { 0 };
	int r;

	s.own[0] = strdup(wish->unit->cgroup);
	if (!s.own[0])
		return -ENOMEM;
	s.own[1] = group_of(m, wish->caller);
	if (report && report->compositor && unit_path_parse(report->compositor->cgroup, &compositor) >= 0)
		s.own[2] = TAKE_PTR(compositor.cgroup);
	r = add_units(&s);
	return r < 0 ? r : set_ceilings(room, size);
}

int manager_make_room(Manager *m, const RoomWish *wish, room_cb cb, void *userdata)
{
	const GameConfig *game = config_find_game(m->config, wish->unit->appid, wish->exe, wish->unit->name);
	const Size *size = wish->size.kind == SIZE_UNSET && game ? &game->make_room : &wish->size;
	_cleanup_(room_freep) Room *room = NULL;
	uint64_t nothing[DMEM_REGIONS_MAX] = { 0 };
	int r;

	/* Its unit asked for it already, by the name that it has. */
	if (m->room && !m->room->cb && streq(m->room->unit, wish->unit->cgroup)) {
		m->room->cb = cb;
		m->room->userdata = userdata;
		return 0;
	}
	if (size->kind != SIZE_UNSET && m->config->enabled && (m->room || m->stray_room))
		return -EBUSY;
	r = room_new(m, wish->unit->cgroup, cb, userdata, &room);
	if (r >= 0 && size->kind != SIZE_UNSET && m->config->enabled)
		r = room_prepare(m, wish, size, room);
	if (r < 0)
		return r;
	if (room->n > 0 && has_ceiling(room))
		room_start(m, TAKE_PTR(room));
	else if (cb)
		cb(m, nothing, true, userdata);
	return 0;
}

bool manager_wants_room(const Manager *m, const Game *g)
{
	const GameConfig *game = game_config(m, g);

	return m->config->enabled && game && game->make_room.kind != SIZE_UNSET && !m->room && !m->stray_room &&
	       manager_user_active(m, g->uid) && game_allowed(m, g);
}

void manager_make_room_for_unit(Manager *m, const Game *g)
{
	auto_dmem_table DmemTable table = { 0 };
	const RoomWish wish = { .unit = &g->unit, .uid = g->uid, .exe = g->identity.exe };
	int r;

	/* Whoever has opened the GPU already has begun without it: so it is after a restart of vramd. */
	(void)cgroup_read_current(g->group, &table);
	for (size_t i = 0; i < table.n; i++)
		if (table.entries[i].value > 0)
			return;
	r = manager_make_room(m, &wish, NULL, NULL);
	if (r < 0)
		log_debug_errno(r, "Cannot make room for '%s', ignoring: %m", g->unit.name);
}

void manager_stop_room(Manager *m)
{
	struct pollfd p = { .events = POLLIN };

	manager_cancel_room(m);
	if (!m->stray_room)
		return;
	/* Nobody else is served any more: what is put back now is not to be written again. */
	p.fd = m->stray_room->pidfd;
	(void)poll(&p, 1, (int)(KILL_USEC / USEC_PER_MSEC));
}

void manager_free_room(Manager *m)
{
	manager_cancel_room(m);
	m->stray_room = room_free(m->stray_room);
}
