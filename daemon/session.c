/* SPDX-License-Identifier: MIT */
/* Users, by what logind says; their units are watched while they are logged in. */
#include "log.h"
#include "manager.h"

User *manager_find_user(const Manager *m, uid_t uid)
{
	for (size_t i = 0; i < m->n_users; i++)
		if (m->users[i].uid == uid)
			return &m->users[i];
	return NULL;
}

bool manager_user_active(const Manager *m, uid_t uid)
{
	const User *u = manager_find_user(m, uid);

	return u && u->active;
}

/* --- Which units are interesting ---------------------------------------------------------------- */

typedef struct Patterns {
	char **items; /* borrowed strings, NULL-terminated */
	size_t n, n_alloc;
} Patterns;

static int add_pattern(Patterns *p, const char *pattern)
{
	if (!GROW(p->items, p->n_alloc, p->n + 1))
		return -ENOMEM;
	p->items[p->n++] = (char *)pattern;
	p->items[p->n] = NULL;
	return 0;
}

static int add_patterns(Patterns *p, char *const *patterns)
{
	int r = 0;

	for (; patterns && *patterns && r >= 0; patterns++)
		r = add_pattern(p, *patterns);
	return r;
}

static int add_service_patterns(const Config *c, Patterns *p)
{
	int r = 0;

	for (size_t i = 0; i < c->n_services && r >= 0; i++)
		r = add_pattern(p, c->services[i].unit);
	return r;
}

static int collect_patterns(const Config *c, Patterns *p)
{
	int r;

	r = add_pattern(p, "app-steam-app*.scope");
	if (r >= 0)
		r = add_pattern(p, MANAGER_AGENT_UNIT);
	if (r >= 0)
		r = add_patterns(p, c->compositor_units);
	if (r >= 0)
		r = add_patterns(p, c->menu_units);
	for (size_t i = 0; i < c->n_games && r >= 0; i++)
		if (c->games[i].by == GAME_BY_UNIT)
			r = add_pattern(p, c->games[i].pattern);
	return r;
}

/* UNIT_UID_NONE: the units of the system, of which only services matter. */
static int watch_user(Manager *m, uid_t uid)
{
	Patterns p = { 0 };
	int r = 0;

	if (uid != UNIT_UID_NONE)
		r = collect_patterns(m->config, &p);
	if (r >= 0)
		r = add_service_patterns(m->config, &p);
	if (r >= 0)
		r = unit_monitor_add_user(m->unit_monitor, uid, p.items);
	free(p.items);
	return r;
}

static void forget_units(Manager *m, uid_t uid)
{
	for (size_t i = m->n_units; i-- > 0;)
		if (m->units[i].uid == uid) {
			free(m->units[i].path);
			m->units[i] = m->units[--m->n_units];
		}
}

void manager_forget_units(Manager *m)
{
	for (size_t i = 0; i < m->n_units; i++)
		free(m->units[i].path);
	m->n_units = 0;
}

int manager_watch_units(Manager *m)
{
	int r, ret = 0;

	for (size_t i = 0; i < m->n_users; i++) {
		r = watch_user(m, m->users[i].uid);
		if (r < 0)
			ret = r;
	}
	if (m->config->n_services > 0) {
		r = watch_user(m, UNIT_UID_NONE);
		return r < 0 ? r : ret;
	}
	unit_monitor_remove_user(m->unit_monitor, UNIT_UID_NONE);
	forget_units(m, UNIT_UID_NONE);
	return ret;
}

/* --- Who is logged in --------------------------------------------------------------------------- */

static void add_user(Manager *m, uid_t uid, bool active)
{
	int r;

	if (!GROW(m->users, m->n_users_alloc, m->n_users)) {
		(void)log_oom();
		return;
	}
	m->users[m->n_users++] = (User){ .uid = uid, .active = active };
	r = watch_user(m, uid);
	if (r < 0)
		log_warning_errno(r, "Cannot watch the units of user %u, ignoring: %m", (unsigned)uid);
}

static void remove_user(Manager *m, size_t i)
{
	uid_t uid = m->users[i].uid;

	m->users[i] = m->users[--m->n_users];
	unit_monitor_remove_user(m->unit_monitor, uid);
	forget_units(m, uid);
	focus_forget_user(m->focus, uid);
}

static bool is_in(uid_t uid, const uid_t *uids, int n)
{
	for (int i = 0; i < n; i++)
		if (uids[i] == uid)
			return true;
	return false;
}

int manager_refresh_users(Manager *m)
{
	auto_free uid_t *uids = NULL;
	bool changed = false;
	int n;

	n = sd_get_uids(&uids);
	if (n < 0 && n != -ENXIO && n != -ENOENT)
		return n;
	for (size_t i = m->n_users; i-- > 0;)
		if (!is_in(m->users[i].uid, uids, n)) {
			remove_user(m, i);
			changed = true;
		}
	for (int i = 0; i < n; i++) {
		/* logind calls a session without a seat (ssh) active as well; nobody sits in front of that. */
		bool active = sd_uid_get_seats(uids[i], 1, NULL) > 0;
		User *u = manager_find_user(m, uids[i]);

		changed = changed || !u || u->active != active;
		if (u)
			u->active = active;
		else
			add_user(m, uids[i], active);
	}
	if (changed) {
		manager_forget_permissions(m);
		manager_queue_update(m, "the active session changed");
		manager_ask_for_room(m);
	}
	return 0;
}

static int on_login_event(sd_event_source *s, int fd _unused_, uint32_t revents _unused_, void *userdata)
{
	Manager *m = userdata;
	int r;

	(void)sd_login_monitor_flush(m->login_monitor);
	r = manager_refresh_users(m);
	if (r < 0)
		log_warning_errno(r, "Cannot list the users who are logged in, ignoring: %m");
	/* logind may ask for other events than before (sd_login_monitor_new(3)). */
	(void)sd_event_source_set_io_events(s, (uint32_t)sd_login_monitor_get_events(m->login_monitor));
	return 0;
}

int manager_start_sessions(Manager *m)
{
	int r;

	r = sd_login_monitor_new(NULL, &m->login_monitor);
	if (r == -ENOENT) {
		log_warning("There is no logind here: nobody's session can be in front");
		return 0;
	}
	if (r < 0)
		return r;
	r = sd_event_add_io(m->event, &m->login_source, sd_login_monitor_get_fd(m->login_monitor),
			    (uint32_t)sd_login_monitor_get_events(m->login_monitor), on_login_event, m);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(m->login_source, "logind");
	return manager_refresh_users(m);
}

void manager_free_users(Manager *m)
{
	m->login_source = sd_event_source_disable_unref(m->login_source);
	m->login_monitor = sd_login_monitor_unref(m->login_monitor);
	manager_forget_units(m);
	free(m->units);
	free(m->users);
	m->units = NULL;
	m->users = NULL;
	m->n_users = 0;
}
