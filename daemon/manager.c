/* SPDX-License-Identifier: MIT */
/* The manager's life, its bus connection, and when it updates. */
#include <inttypes.h>
#include <stdarg.h>

#include "bus-names.h"
#include "log.h"
#include "manager.h"
#include "system-bus.h"

#define CLIENTS_MAX 1024
#define CLIENTS_PER_UID 128
/* A bus that is gone comes back when its socket does; ask again at this distance if it does not. */
#define RECONNECT_USEC (250 * USEC_PER_MSEC)

static const char *const state_names[_STATE_MAX] = {
	[STATE_UNSUPPORTED] = "unsupported",
	[STATE_IDLE] = "idle",
	[STATE_PROTECTING] = "protecting",
	[STATE_PAUSED] = "paused",
};

const char *manager_state_to_string(ManagerState s)
{
	return state_names[s];
}

void manager_set_state(Manager *m, ManagerState state, const char *format, ...)
{
	char *reason = NULL;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&reason, format, ap);
	va_end(ap);
	if (n < 0)
		return;
	if (m->state == state && streq_ptr(m->reason, reason)) {
		free(reason);
		return;
	}
	m->state = state;
	free(m->reason);
	m->reason = reason;
	if (m->hooks)
		m->hooks->state_changed(m);
}

/* --- When to update --------------------------------------------------------------------------- */

static bool same_regions(const Regions *a, const Regions *b)
{
	bool same = a->n == b->n;

	for (size_t i = 0; same && i < a->n; i++)
		same = streq(a->items[i].name, b->items[i].name);
	return same;
}

static int refresh_regions(Manager *m)
{
	Regions before = m->regions, fresh;
	int r;

	r = regions_read(&m->hierarchy, &fresh);
	if (r < 0)
		return r;
	m->regions = fresh;
	if (!same_regions(&before, &fresh)) {
		manager_forget_easing(m);
		manager_forget_evictions(m);
		manager_cancel_room(m);
	}
	if (m->hooks)
		m->hooks->regions_changed(m, &before);
	regions_done(&before);
	return 0;
}

/* Has the old region gone meanwhile? Then the new one holds nothing of what was written. */
static void refresh_ambiguous(Manager *m)
{
	int r;

	r = refresh_regions(m);
	if (r < 0)
		log_warning_errno(r, "Cannot read the regions, ignoring: %m");
	apply_distrust(m->apply);
}

static int on_update(sd_event_source *s _unused_, void *userdata)
{
	Manager *m = userdata;
	const char *reason = m->update_reason;
	int r;

	m->update_reason = NULL;
	if (m->regions.ambiguous)
		refresh_ambiguous(m);
	r = manager_update(m, reason ? reason : "asked for");
	if (r < 0)
		log_error_errno(r, "Cannot decide anew, what holds stays: %m");
	return 0;
}

void manager_queue_update(Manager *m, const char *reason)
{
	if (!m->update_source || m->state == STATE_UNSUPPORTED)
		return;
	if (!m->update_reason)
		m->update_reason = reason;
	(void)sd_event_source_set_enabled(m->update_source, SD_EVENT_ONESHOT);
}

void manager_flush_update(Manager *m)
{
	if (!m->update_source || sd_event_source_get_enabled(m->update_source, NULL) <= 0)
		return;
	(void)sd_event_source_set_enabled(m->update_source, SD_EVENT_OFF);
	(void)on_update(m->update_source, m);
}

static int on_rate(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	Manager *m = userdata;

	m->rate_source = sd_event_source_disable_unref(m->rate_source);
	manager_queue_update(m, "changes came faster than they are applied");
	return 0;
}

/* True if the user may cause one more change now; else a timer is armed. A second's changes may come at once,
 * and from then on one each 50 ms: whatever a user's units do, a report never waits for longer. */
static bool take_rate(Manager *m, User *u)
{
	const uint64_t step = USEC_PER_SEC / USER_UPDATES_PER_SEC, ahead = USEC_PER_SEC - step;
	uint64_t now, paid;

	/* What is queued already does this one too. */
	if (m->update_reason)
		return true;
	(void)sd_event_now(m->event, CLOCK_MONOTONIC, &now);
	paid = MAX(u->rate_usec, now);
	if (paid - now <= ahead) {
		u->rate_usec = paid + step;
		return true;
	}
	if (!m->rate_source && sd_event_add_time(m->event, &m->rate_source, CLOCK_MONOTONIC, paid - ahead,
						 10 * USEC_PER_MSEC, on_rate, m) >= 0) {
		u->rate_usec = paid + step;
		(void)sd_event_source_set_description(m->rate_source, "update-rate");
	}
	return !m->rate_source;
}

void manager_queue_user_update(Manager *m, uid_t uid, const char *reason)
{
	User *u = manager_find_user(m, uid);

	/* Somebody without a session cannot be in front, but may have left something to clear up. */
	if (take_rate(m, u ? u : &m->nobody))
		manager_queue_update(m, reason);
}

/* --- News from the layers below ----------------------------------------------------------------- */

static void on_focus(uid_t uid, void *userdata)
{
	manager_queue_user_update(userdata, uid, "the focus changed");
}

static bool is_known_game(const Process *p, void *userdata)
{
	return manager_known_game(userdata, p);
}

static void on_hold_released(const Hold *hold, void *userdata)
{
	manager_queue_user_update(userdata, hold->process->uid, "a hold was released");
}

/* Why a group has its values now; one that the plan does not name gets its old ones back. */
static const char *reason_of(const Manager *m, const char *path)
{
	const PlanGroup *g = plan_find(&m->plan, path);

	return g ? plan_reason_to_string(g->reason) : "put back";
}

static void format_value(char buf[static 24], uint64_t value)
{
	if (value == DMEM_UNLIMITED)
		(void)snprintf(buf, 24, "max");
	else
		(void)snprintf(buf, 24, "%" PRIu64, value);
}

static void on_written(const char *path, const char *region, DmemLimit limit, uint64_t old, uint64_t value,
		       void *userdata)
{
	Manager *m = userdata;
	char from[24], to[24];

	format_value(from, old);
	format_value(to, value);
	(void)log_full(m->dry_run ? LOG_INFO : LOG_DEBUG, 0, "%s: %s %s %s %s -> %s (%s)",
		       m->dry_run ? "would write" : "wrote", path, region, dmem_limit_to_file(limit), from, to,
		       reason_of(m, path));
}

static void on_contested(const char *path, const char *region, DmemLimit limit, uint64_t ours, uint64_t theirs,
			 bool yielded, void *userdata)
{
	Manager *m = userdata;
	const char *reason = yielded ? "written too often, vramd leaves it alone now"
				     : "vramd wrote its own value again";

	(void)log_full(yielded ? LOG_WARNING : LOG_NOTICE, 0, "Another program writes %s of '%s' (%s): %s",
		       dmem_limit_to_file(limit), path, region, reason);
	if (m->hooks)
		m->hooks->contested(m, path, region, limit, ours, theirs, reason);
}

static void on_lost(const char *path, void *userdata)
{
	log_debug("Values at or below '%s' were lost", path);
	manager_queue_user_update(userdata, unit_path_uid(path), "values were lost");
}

static void on_knob_written(Knob knob, uint32_t old, uint32_t value, void *userdata)
{
	const KnobInfo *info = &knob_infos[knob];
	const Manager *m = userdata;

	(void)log_full(m->dry_run ? LOG_INFO : LOG_DEBUG, 0, "%s: %s.%s %" PRIu32 " -> %" PRIu32,
		       m->dry_run ? "would write" : "wrote", info->module, info->parameter, old, value);
}

static void on_knob_yielded(Knob knob, uint32_t ours, uint32_t theirs, void *userdata _unused_)
{
	const KnobInfo *info = &knob_infos[knob];

	log_notice("Another program set %s.%s to %" PRIu32 ", where vramd had %" PRIu32 ": it stays so",
		   info->module, info->parameter, theirs, ours);
}

static const ApplyHooks apply_hooks = {
	.written = on_written,
	.contested = on_contested,
	.lost = on_lost,
	.knob_written = on_knob_written,
	.knob_yielded = on_knob_yielded,
};

static void on_regions(void *userdata)
{
	Manager *m = userdata;
	int r;

	r = refresh_regions(m);
	if (r < 0)
		log_warning_errno(r, "Cannot read the regions, ignoring: %m");
	/* A region that is back has lost every value, and a module that is back as well. */
	apply_distrust(m->apply);
	manager_doubt_knobs(m);
	manager_queue_update(m, "a graphics device came or went");
}

static int on_sleep(sd_bus_message *message, void *userdata, sd_bus_error *error _unused_)
{
	Manager *m = userdata;
	int start, r;

	r = sd_bus_message_read(message, "b", &start);
	if (r < 0)
		return r;
	m->sleeping = start;
	if (!start)
		apply_distrust(m->apply);
	manager_queue_update(m, start ? "the system goes to sleep" : "the system woke up");
	return 0;
}

/* --- Clients ------------------------------------------------------------------------------------ */

static void client_free(Client *c)
{
	sd_bus_track_unref(c->track);
	free(c->name);
	free(c);
}

static int on_client_gone(sd_bus_track *track _unused_, void *userdata)
{
	Client *c = userdata;
	Manager *m = c->manager;

	for (size_t i = 0; i < m->n_clients; i++)
		if (m->clients[i] == c) {
			m->clients[i] = m->clients[--m->n_clients];
			break;
		}
	focus_sender_gone(m->focus, c->name);
	client_free(c);
	return 1; /* with 0 the track, which is gone, would be queued again */
}

static bool may_connect(const Manager *m, uid_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_clients; i++)
		if (m->clients[i]->uid == uid)
			n++;
	return n < CLIENTS_PER_UID && m->n_clients < CLIENTS_MAX;
}

static int client_new(Manager *m, sd_bus_message *message, Client **ret)
{
	_cleanup_(sd_bus_creds_unrefp) sd_bus_creds *creds = NULL;
	const char *sender = sd_bus_message_get_sender(message);
	Client *c;
	int r;

	if (!sender)
		return -EINVAL;
	if (!GROW(m->clients, m->n_clients_alloc, m->n_clients))
		return -ENOMEM;
	r = sd_bus_query_sender_creds(message, SD_BUS_CREDS_EUID | SD_BUS_CREDS_PID, &creds);
	if (r < 0)
		return r;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->manager = m;
	c->name = strdup(sender);
	r = c->name ? sd_bus_creds_get_euid(creds, &c->uid) : -ENOMEM;
	if (r >= 0 && !may_connect(m, c->uid))
		r = -EBUSY;
	if (r >= 0 && sd_bus_creds_get_pid(creds, &c->pid) < 0)
		c->pid = 0;
	c->is_worker = c->pid > 0 && manager_is_worker(c->uid, c->pid);
	c->about = c->uid;
	if (r >= 0)
		r = sd_bus_track_new(m->bus, &c->track, on_client_gone, c);
	if (r >= 0)
		r = sd_bus_track_add_name(c->track, sender);
	if (r < 0) {
		client_free(c);
		return r;
	}
	m->clients[m->n_clients++] = c;
	*ret = c;
	return 0;
}

int manager_get_client(Manager *m, sd_bus_message *message, Client **ret)
{
	const char *sender = sd_bus_message_get_sender(message);

	for (size_t i = 0; i < m->n_clients; i++)
		if (streq_ptr(m->clients[i]->name, sender)) {
			*ret = m->clients[i];
			return 0;
		}
	return client_new(m, message, ret);
}

void manager_forget_permissions(Manager *m)
{
	for (size_t i = 0; i < m->n_clients; i++)
		m->clients[i]->may_report = false;
}

/* Their bus is gone, so they are; their last words have grace. */
void manager_free_clients(Manager *m)
{
	for (size_t i = 0; i < m->n_clients; i++) {
		focus_sender_gone(m->focus, m->clients[i]->name);
		client_free(m->clients[i]);
	}
	m->n_clients = 0;
}

static int take_report(Manager *m, uid_t uid, FocusReport *report)
{
	auto_focus_report FocusReport *fresh = report;
	Game *g;
	Tracked *t;
	int r;

	if (fresh->game) {
		r = fresh->window && fresh->appid == 0 && !manager_is_game(m, fresh->game)
			    ? manager_track(m, fresh->game, &t)
			    : manager_track_front(m, fresh);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < fresh->n_running; i++)
		if (manager_track_game(m, fresh->running[i], 0, &g) < 0)
			log_debug("Process %d that was reported as a game is in no unit, ignoring",
				  (int)fresh->running[i]->pid);
	if (fresh->compositor) {
		r = manager_track(m, fresh->compositor, &t);
		if (r < 0)
			return r;
	}
	return focus_report(m->focus, uid, TAKE_PTR(fresh));
}

int manager_report(Manager *m, uid_t uid, FocusReport *report)
{
	size_t tracked = m->n_tracked, games = m->n_games;
	int r;

	r = take_report(m, uid, report);
	/* What was tracked for it is cleared up by the next update. And one that says the same again may name a process
	 * that is known as a game only now. */
	if (r <= 0 && (m->n_tracked > tracked || m->n_games > games))
		manager_queue_user_update(m, uid, "a report was not taken");
	return r;
}

int manager_hold(Manager *m, uid_t uid, pid_t caller, const char *who, const char *why, Process *p, int *ret_fd)
{
	Hold *hold;
	Game *g;
	int r;

	r = hold_check_limits(m->holds, uid);
	if (r < 0)
		return r;
	r = manager_track_game(m, p, 0, &g);
	if (r < 0)
		return r;
	manager_name_game(m, g, p);
	r = hold_new(m->holds, uid, caller, who, why, p, ret_fd, &hold);
	if (r < 0)
		return r;
	manager_queue_user_update(m, p->uid, "a hold was taken");
	return 0;
}

/* --- The bus ------------------------------------------------------------------------------------ */

static int connect_bus(Manager *m);

static int on_reconnect(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	Manager *m = userdata;
	int r;

	m->reconnect_source = sd_event_source_disable_unref(m->reconnect_source);
	r = connect_bus(m);
	if (r < 0) {
		log_error_errno(r, "Cannot connect to the system bus again: %m");
		(void)sd_event_exit(m->event, r);
	}
	return 0;
}

static void drop_bus(Manager *m)
{
	if (m->focus)
		manager_free_clients(m);
	manager_forget_worker_calls(m);
	m->polkit = polkit_free(m->polkit);
	m->unit_monitor = unit_monitor_free(m->unit_monitor);
	m->bus = sd_bus_close_unref(m->bus);
	/* Nobody tells now whether the system wakes up. */
	m->sleeping = false;
}

static int on_disconnected(sd_bus_message *message _unused_, void *userdata, sd_bus_error *error _unused_)
{
	Manager *m = userdata;

	log_warning("The system bus went away; what is protected stays so until it is back");
	if (!m->reconnect_source)
		(void)sd_event_add_time_relative(m->event, &m->reconnect_source, CLOCK_MONOTONIC, RECONNECT_USEC, 0,
						 on_reconnect, m);
	return 0;
}

static int open_bus(sd_bus **ret)
{
	_cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
	int r = system_bus_new(&bus);

	if (r >= 0)
		r = sd_bus_start(bus);
	if (r >= 0)
		*ret = TAKE_PTR(bus);
	return r;
}

static int match_signals(Manager *m)
{
	int r;

	r = sd_bus_match_signal_async(m->bus, NULL, "org.freedesktop.DBus.Local", NULL, "org.freedesktop.DBus.Local",
				      "Disconnected", on_disconnected, NULL, m);
	if (r < 0)
		return r;
	if (!m->apply)
		return 0;
	return sd_bus_match_signal_async(m->bus, NULL, "org.freedesktop.login1", "/org/freedesktop/login1",
					 "org.freedesktop.login1.Manager", "PrepareForSleep", on_sleep, NULL, m);
}

static int connect_bus(Manager *m)
{
	int r;

	drop_bus(m);
	r = open_bus(&m->bus);
	if (r < 0)
		return r;
	r = sd_bus_attach_event(m->bus, m->event, SD_EVENT_PRIORITY_NORMAL);
	if (r < 0)
		return r;
	r = match_signals(m);
	if (r < 0)
		return r;
	r = polkit_new(m->bus, &m->polkit);
	if (r < 0)
		return r;
	if (m->state != STATE_UNSUPPORTED) {
		r = unit_monitor_new(m->event, m->bus, &m->hierarchy, manager_unit_event, m, &m->unit_monitor);
		if (r < 0)
			return r;
		/* A fresh monitor tells what is there, but not what went while there was none. */
		manager_forget_units(m);
		r = manager_watch_units(m);
		if (r < 0)
			log_warning_errno(r, "Cannot watch all units, ignoring: %m");
		manager_queue_update(m, "connected to the system bus");
	}
	return m->hooks ? m->hooks->connected(m) : 0;
}

/* --- Life ----------------------------------------------------------------------------------------- */

static void log_config_warning(const char *file, unsigned line, const char *text, void *userdata _unused_)
{
	if (line > 0)
		log_warning("%s:%u: %s, ignoring", file, line, text);
	else
		log_warning("%s: %s, ignoring", file, text);
}

static void use_config(Manager *m, Config *c)
{
	config_free(m->config);
	m->config = c;
	if (m->focus)
		focus_set_times(m->focus, c->debounce_usec, c->grace_usec);
	if (m->apply)
		apply_set_ownership(m->apply, c->ownership, c->reassert_limit);
}

int manager_reload(Manager *m, config_warn_cb warn, void *userdata)
{
	Config *fresh;
	unsigned bad;
	int r;

	r = config_load(&m->roots, m->config_file, warn ? warn : log_config_warning, userdata, &fresh, &bad);
	if (r < 0)
		return r;
	use_config(m, fresh);
	manager_refresh_names(m);
	manager_doubt_knobs(m);
	if (m->unit_monitor) {
		r = manager_watch_units(m);
		if (r < 0)
			log_warning_errno(r, "Cannot watch all units, ignoring: %m");
	}
	manager_queue_update(m, "the configuration was read again");
	return (int)bad;
}

static int start_tables(Manager *m)
{
	int r;

	r = focus_new(m->event, on_focus, is_known_game, m, &m->focus);
	if (r < 0)
		return r;
	r = hold_table_new(m->event, on_hold_released, m, &m->holds);
	if (r < 0)
		return r;
	r = sd_event_add_defer(m->event, &m->update_source, on_update, m);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(m->update_source, "update");
	return sd_event_source_set_enabled(m->update_source, SD_EVENT_OFF);
}

/* What needs dmem. First of all, whatever a crash left is put back. */
static int start_protecting(Manager *m)
{
	int r;

	r = apply_new(&m->hierarchy, &m->roots, m->runtime_dir, m->dry_run, m->event, &apply_hooks, m, &m->apply);
	if (r == -EBUSY)
		return log_error_errno(r, "Another vramd is at work in '%s'", m->runtime_dir);
	if (r < 0)
		return log_error_errno(r, "Cannot open the journal in '%s': %m", m->runtime_dir);
	r = apply_restore(m->apply);
	if (r < 0)
		log_warning_errno(r, "Cannot put back all that an earlier run left, ignoring: %m");
	apply_set_ownership(m->apply, m->config->ownership, m->config->reassert_limit);
	r = refresh_regions(m);
	if (r < 0)
		return log_error_errno(r, "Cannot read the regions: %m");
	if (m->roots.relocated)
		return 0;
	r = region_monitor_new(m->event, on_regions, m, &m->region_monitor);
	if (r < 0)
		log_warning_errno(r, "Graphics devices that come or go will not be noticed: %m");
	return 0;
}

int manager_start(Manager *m)
{
	const char *reason;
	int r;

	r = manager_reload(m, NULL, NULL);
	if (r < 0)
		return log_error_errno(r, "Cannot read the configuration '%s': %m", strempty(m->config_file));
	r = start_tables(m);
	if (r < 0)
		return log_error_errno(r, "Cannot set up the event loop: %m");
	use_config(m, TAKE_PTR(m->config));
	r = hierarchy_open(&m->roots, &m->hierarchy, &reason);
	if (r == -EOPNOTSUPP)
		manager_set_state(m, STATE_UNSUPPORTED, "%s", reason);
	else if (r < 0)
		return log_error_errno(r, "Cannot open the control group hierarchy: %m");
	else
		manager_set_state(m, STATE_IDLE, "no game is in front");
	if (m->state != STATE_UNSUPPORTED) {
		r = start_protecting(m);
		if (r < 0)
			return r;
	}
	r = connect_bus(m);
	if (r < 0)
		return log_error_errno(r, "Cannot connect to the system bus: %m");
	if (m->state == STATE_UNSUPPORTED)
		return 0;
	r = manager_start_sessions(m);
	if (r < 0)
		return log_error_errno(r, "Cannot follow the sessions of logind: %m");
	manager_queue_update(m, "vramd started");
	return 0;
}

int manager_stop(Manager *m)
{
	int r;

	if (!m->apply)
		return 0;
	manager_stop_room(m);
	/* Nobody is to be protected any more: that is also the reason that the log gives for each value. */
	plan_done(&m->plan);
	r = apply_restore(m->apply);
	manager_tell_stop(m);
	(void)sd_bus_flush(m->bus);
	return r;
}

int manager_new(Manager **ret)
{
	_cleanup_(manager_freep) Manager *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->hierarchy.root_fd = -EBADF;
	m->menu = MENU_UNKNOWN;
	m->focus_source = strdup("");
	if (!m->focus_source)
		return -ENOMEM;
	r = sd_event_default(&m->event);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(m);
	return 0;
}

Manager *manager_free(Manager *m)
{
	if (!m)
		return NULL;
	/* Layer 5 must not hear of what is only being taken down. */
	m->hooks = NULL;
	manager_free_room(m);
	drop_bus(m);
	region_monitor_free(m->region_monitor);
	manager_free_games(m);
	manager_free_workers(m);
	manager_free_users(m);
	sd_event_source_disable_unref(m->reconnect_source);
	sd_event_source_disable_unref(m->update_source);
	sd_event_source_disable_unref(m->rate_source);
	sd_event_source_disable_unref(m->sampler.timer);
	cgroup_close(m->sampler.root);
	manager_forget_evictions(m);
	m->update_source = NULL;
	hold_table_free(m->holds);
	focus_free(m->focus);
	apply_free(m->apply);
	plan_done(&m->plan);
	regions_done(&m->regions);
	hierarchy_done(&m->hierarchy);
	config_free(m->config);
	free(m->games);
	free(m->tracked);
	free(m->clients);
	free(m->focus_source);
	free(m->reason);
	free(m->roots.proc);
	free(m->roots.cgroup);
	free(m->roots.etc);
	free(m->config_file);
	free(m->runtime_dir);
	sd_event_unref(m->event);
	free(m);
	return NULL;
}
