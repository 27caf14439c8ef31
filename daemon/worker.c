/* SPDX-License-Identifier: MIT */
/* Workers: vramd-agent as a service of the system, for a user who has no agent.
 *
 * vramd has no right to become another user, and its sandbox shows it neither /tmp nor /run/user. So systemd does it:
 * vramd may start and stop the instances of one template, vramd-agent@UID.service, and polkit no more than that. The
 * service ends with vramd and with the user's manager, and systemd starts it again when it fails. */
#include "log.h"
#include "manager.h"

#define UID_FIRST 1000 /* below are users of the system: greeters play nothing */
/* The user's own agent comes with the graphical session, a while after the user. */
#define DELAY_FIRST_USEC (5 * USEC_PER_SEC)
#define DELAY_MAX_USEC (300 * USEC_PER_SEC)

struct Worker {
	Manager *manager;
	uid_t uid;
	bool may_run; /* it was started, and not stopped */
	bool refused; /* that was said */
	sd_event_source *timer;
	uint64_t delay_usec; /* before the next start */
	sd_bus_slot *call;
	sd_bus_slot *watch;  /* of its unit */
};

static void worker_free(Worker *w)
{
	sd_event_source_disable_unref(w->timer);
	sd_bus_slot_unref(w->call);
	sd_bus_slot_unref(w->watch);
	free(w);
}

/* --- Is it wanted? ------------------------------------------------------------------------------ */

typedef struct Search {
	const Manager *m;
	uid_t uid;
	bool found;
} Search;

static const Client *find_client(const Manager *m, const char *name)
{
	for (size_t i = 0; i < m->n_clients; i++)
		if (streq(m->clients[i]->name, name))
			return m->clients[i];
	return NULL;
}

static void on_report(uid_t uid, const FocusReport *report, bool wins _unused_, bool gone, void *userdata)
{
	Search *s = userdata;
	const Client *client = find_client(s->m, report->sender);

	/* What a person says by hand is about one game, and who has left may not come back. */
	if (uid == s->uid && !gone && focus_source_rank(report->source) > 0 && !(client && client->is_worker))
		s->found = true;
}

static bool has_agent(const Manager *m, uid_t uid)
{
	Search s = { m, uid, false };

	/* An agent that knows nothing says nothing: its unit shows that it is there. */
	for (size_t i = 0; i < m->n_units; i++)
		if (m->units[i].uid == uid && streq(m->units[i].name, MANAGER_AGENT_UNIT))
			return true;
	focus_each(m->focus, on_report, &s);
	return s.found;
}

/* A worker would start it again, whoever stopped it. */
static bool has_service_manager(const Manager *m, uid_t uid)
{
	auto_cgroup Cgroup *group = NULL;
	char path[96];

	(void)snprintf(path, sizeof(path), "/user.slice/user-%u.slice/user@%u.service", (unsigned)uid, (unsigned)uid);
	return cgroup_open(&m->hierarchy, path, &group) >= 0;
}

static bool is_wanted(const Manager *m, uid_t uid)
{
	return m->config->worker && m->config->enabled && uid >= UID_FIRST && manager_user_active(m, uid) &&
	       config_user_allowed(m->config, uid) && has_service_manager(m, uid) && !has_agent(m, uid);
}

/* --- systemd ------------------------------------------------------------------------------------ */

#define NAME_MAX_SIZE sizeof("vramd-agent@4294967295.service")

static void name_of(uid_t uid, char buf[static NAME_MAX_SIZE])
{
	(void)snprintf(buf, NAME_MAX_SIZE, "vramd-agent@%u.service", (unsigned)uid);
}

bool manager_is_worker(uid_t uid, pid_t pid)
{
	auto_free char *unit = NULL;
	char name[NAME_MAX_SIZE];

	name_of(uid, name);
	return sd_pid_get_unit(pid, &unit) >= 0 && streq(unit, name);
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error _unused_)
{
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	Worker *w = userdata;
	char name[NAME_MAX_SIZE];

	w->call = sd_bus_slot_unref(w->call);
	if (!error)
		return 0;
	name_of(w->uid, name);
	/* Where the agent is not installed there is nothing to complain about. */
	if (sd_bus_error_has_name(error, "org.freedesktop.systemd1.NoSuchUnit"))
		log_debug("'%s' is not installed: %s", name, strempty(error->message));
	else
		(void)log_full(w->refused ? LOG_DEBUG : LOG_WARNING, 0, "Cannot start '%s': %s", name,
			       strempty(error->message));
	w->refused = true;
	w->may_run = false;
	return 0;
}

static int ask_systemd(Worker *w, const char *method, sd_bus_message_handler_t answered)
{
	char name[NAME_MAX_SIZE];
	int r;

	name_of(w->uid, name);
	log_debug("%s of '%s'", method, name);
	w->call = sd_bus_slot_unref(w->call);
	r = sd_bus_call_method_async(w->manager->bus, answered ? &w->call : NULL, "org.freedesktop.systemd1",
				     "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", method, answered,
				     w, "ss", name, "replace");
	if (r < 0)
		log_debug_errno(r, "Cannot ask systemd for %s of '%s', ignoring: %m", method, name);
	return r;
}

static void stop(Worker *w)
{
	w->timer = sd_event_source_disable_unref(w->timer);
	if (w->may_run)
		(void)ask_systemd(w, "StopUnit", NULL);
	w->may_run = false;
	w->delay_usec = DELAY_FIRST_USEC;
}

static int on_due(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	Worker *w = userdata;

	w->timer = sd_event_source_disable_unref(w->timer);
	w->delay_usec = MIN(2 * w->delay_usec, DELAY_MAX_USEC);
	w->may_run = ask_systemd(w, "StartUnit", on_answer) >= 0;
	return 0;
}

static void start_later(Worker *w)
{
	int r;

	if (w->timer)
		return;
	r = sd_event_add_time_relative(w->manager->event, &w->timer, CLOCK_MONOTONIC, w->delay_usec, USEC_PER_SEC,
				       on_due, w);
	if (r < 0)
		log_warning_errno(r, "Cannot start an agent for user %u, ignoring: %m", (unsigned)w->uid);
}

/* What ActiveState is now: systemd sends it along with whatever changed; else NULL. */
static int read_state(sd_bus_message *message, const char **ret)
{
	const char *interface, *property;
	int r;

	*ret = NULL;
	r = sd_bus_message_read(message, "s", &interface);
	if (r >= 0)
		r = sd_bus_message_enter_container(message, 'a', "{sv}");
	while (r >= 0 && (r = sd_bus_message_enter_container(message, 'e', "sv")) > 0) {
		r = sd_bus_message_read(message, "s", &property);
		if (r >= 0 && streq(property, "ActiveState"))
			return sd_bus_message_read(message, "v", "s", ret);
		if (r >= 0)
			r = sd_bus_message_skip(message, "v");
		if (r >= 0)
			r = sd_bus_message_exit_container(message);
	}
	return r;
}

/* systemd starts one again only if it failed, and not always then. */
static int on_unit_changed(sd_bus_message *message, void *userdata, sd_bus_error *ret_error _unused_)
{
	Worker *w = userdata;
	const char *state;
	int r;

	r = read_state(message, &state);
	if (r < 0)
		return log_debug_errno(r, "Malformed PropertiesChanged signal, ignoring: %m");
	if (!state)
		return 0;
	if (streq(state, "active") || streq(state, "activating"))
		w->timer = sd_event_source_disable_unref(w->timer);
	else if (w->may_run && (streq(state, "inactive") || streq(state, "failed")))
		start_later(w);
	return 0;
}

static int on_watched(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error _unused_)
{
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	Worker *w = userdata;

	if (error)
		log_debug("The bus refuses a match for an agent, ignoring: %s", strempty(error->message));
	/* It may have ended while nobody listened; to start what runs does nothing. */
	else if (w->may_run)
		start_later(w);
	return 0;
}

static void watch_unit(Worker *w)
{
	auto_free char *path = NULL, *match = NULL;
	char name[NAME_MAX_SIZE];
	int r;

	if (w->watch || !w->manager->bus)
		return;
	name_of(w->uid, name);
	r = sd_bus_path_encode("/org/freedesktop/systemd1/unit", name, &path);
	if (r >= 0 && asprintf(&match, "type='signal',sender='org.freedesktop.systemd1',path='%s',"
			       "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',"
			       "arg0='org.freedesktop.systemd1.Unit'", path) < 0) {
		match = NULL;
		r = -ENOMEM;
	}
	if (r >= 0)
		r = sd_bus_add_match_async(w->manager->bus, &w->watch, match, on_unit_changed, on_watched, w);
	if (r < 0)
		log_debug_errno(r, "Cannot watch '%s', ignoring: %m", name);
}

/* --- All users ---------------------------------------------------------------------------------- */

static int add_worker(Manager *m, uid_t uid, bool may_run)
{
	Worker *w;

	for (size_t i = 0; i < m->n_workers; i++)
		if (m->workers[i]->uid == uid)
			return 0;
	if (!GROW(m->workers, m->n_workers_alloc, m->n_workers))
		return -ENOMEM;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	*w = (Worker){ .manager = m, .uid = uid, .may_run = may_run, .delay_usec = DELAY_FIRST_USEC };
	m->workers[m->n_workers++] = w;
	return 0;
}

static int add_workers(Manager *m)
{
	int r = 0;

	/* One that came with vramd's restart is only known by what it says. */
	for (size_t i = 0; i < m->n_clients && r >= 0; i++)
		if (m->clients[i]->is_worker)
			r = add_worker(m, m->clients[i]->uid, true);
	for (size_t i = 0; i < m->n_users && r >= 0; i++)
		if (is_wanted(m, m->users[i].uid))
			r = add_worker(m, m->users[i].uid, false);
	return r;
}

void manager_update_workers(Manager *m)
{
	if (add_workers(m) < 0)
		(void)log_oom();
	for (size_t i = m->n_workers; i-- > 0;) {
		Worker *w = m->workers[i];

		if (!is_wanted(m, w->uid))
			stop(w);
		else if (!w->may_run)
			start_later(w);
		watch_unit(w);
		if (manager_find_user(m, w->uid))
			continue;
		worker_free(w);
		m->workers[i] = m->workers[--m->n_workers];
	}
}

void manager_forget_worker_calls(Manager *m)
{
	for (size_t i = 0; i < m->n_workers; i++) {
		Worker *w = m->workers[i];

		/* To start what runs already does nothing. */
		w->may_run = w->may_run && !w->call;
		w->call = sd_bus_slot_unref(w->call);
		w->watch = sd_bus_slot_unref(w->watch);
	}
}

void manager_free_workers(Manager *m)
{
	for (size_t i = 0; i < m->n_workers; i++)
		worker_free(m->workers[i]);
	free(m->workers);
	m->workers = NULL;
	m->n_workers = m->n_workers_alloc = 0;
}
