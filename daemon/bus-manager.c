/* SPDX-License-Identifier: MIT */
/* io.github.vramd1.Manager. Each method: parse, validate, authorise, check limits, only then change. */
#include <fcntl.h>
#include <sys/mman.h>

#include "abilities.h"
#include "build-config.h"
#include "bus.h"
#include "dump.h"
#include "log.h"

int bus_process_error(sd_bus_error *error, int r, const char *what)
{
	switch (r) {
	case -EBADF:
		return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "'%s' is not a pidfd", what);
	case -ESRCH:
		return sd_bus_error_setf(error, VRAMD_ERROR_NO_SUCH_PROCESS, "The process of '%s' has ended", what);
	case -ENOENT:
	case -ENODEV:
		return sd_bus_error_setf(error, VRAMD_ERROR_NO_UNIT,
					 "The process of '%s' is in no unit that can be protected", what);
	case -EDQUOT:
		return sd_bus_error_setf(error, SD_BUS_ERROR_LIMITS_EXCEEDED, "Too many games, holds or reports");
	case -EBUSY:
		return sd_bus_error_setf(error, VRAMD_ERROR_BUSY, "vramd has too many clients now");
	default:
		return sd_bus_error_set_errno(error, r);
	}
}

static int check_supported(Manager *m, sd_bus_error *error)
{
	if (m->state == STATE_UNSUPPORTED)
		return sd_bus_error_setf(error, VRAMD_ERROR_UNAVAILABLE, "%s", m->reason);
	return 0;
}

/* --- ReportFocus ------------------------------------------------------------------------------ */

/* Peer = process = user slice of its unit; anything else is for polkit to allow. */
static bool owns_process(uid_t uid, const Process *p)
{
	auto_unit_path UnitPath unit = { 0 };

	if (p->uid != uid)
		return false;
	return unit_path_parse(p->cgroup, &unit) < 0 || unit.uid == uid;
}

static bool owns_report(uid_t uid, const FocusReport *report)
{
	for (size_t i = 0; i < report->n_running; i++)
		if (!owns_process(uid, report->running[i]))
			return false;
	return (!report->game || owns_process(uid, report->game)) &&
	       (!report->compositor || owns_process(uid, report->compositor));
}

/* Whose session a report is about: that of the processes it names; with none, the one that this client
 * spoke of before. */
static uid_t report_uid(const Client *client, const FocusReport *report)
{
	if (report->game)
		return report->game->uid;
	if (report->compositor)
		return report->compositor->uid;
	return report->n_running > 0 ? report->running[0]->uid : client->about;
}

static bool may_report(const Client *client, const FocusReport *report)
{
	if (client->uid == 0 || client->may_report)
		return true;
	return report_uid(client, report) == client->uid && owns_report(client->uid, report);
}

/* The answer says that the values are written. */
static void finish_update(Manager *m)
{
	manager_flush_update(m);
	manager_recheck_named(m);
	manager_flush_update(m);
}

static int finish_report(Manager *m, sd_bus_message *message, Client *client, FocusReport *report,
			 sd_bus_error *error)
{
	int r;

	client->about = report_uid(client, report);
	r = manager_report(m, client->about, report);
	if (r < 0)
		return bus_process_error(error, r, "game");
	finish_update(m);
	return sd_bus_reply_method_return(message, NULL);
}

int bus_reply_denied(sd_bus_message *message, int verdict, const char *action)
{
	if (verdict == -EAGAIN)
		return sd_bus_reply_method_errorf(message, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
						  "'%s' needs authentication", action);
	return sd_bus_reply_method_errorf(message, VRAMD_ERROR_NOT_PERMITTED,
					  verdict < 0 ? "'%s' is not permitted, and polkit cannot be asked"
						      : "'%s' is not permitted",
					  action);
}

void bus_reply_if_error(sd_bus_message *message, int r, sd_bus_error *error)
{
	if (r < 0 && !sd_bus_error_is_set(error))
		(void)sd_bus_error_set_errno(error, r);
	if (sd_bus_error_is_set(error))
		(void)sd_bus_reply_method_error(message, error);
}

int bus_ask(Manager *m, sd_bus_message *message, const char *action, polkit_cb cb, sd_bus_error *error)
{
	Client *client;
	int r;

	r = manager_get_client(m, message, &client);
	if (r >= 0 && client->uid == 0)
		return 0;
	if (r >= 0)
		r = polkit_check(m->polkit, message, client->uid, action, cb, m);
	return r < 0 ? bus_process_error(error, r, "sender") : 1;
}

static void on_report_verdict(sd_bus_message *message, int verdict, void *userdata)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	auto_focus_report FocusReport *report = NULL;
	Manager *m = userdata;
	Client *client;
	int r;

	if (verdict <= 0) {
		(void)bus_reply_denied(message, verdict, VRAMD_ACTION_SET_FOCUS);
		return;
	}
	/* Read again: the processes may have ended while somebody typed a password. */
	r = sd_bus_message_rewind(message, true);
	if (r >= 0)
		r = bus_read_report(m, message, &report, &error);
	if (r >= 0)
		r = manager_get_client(m, message, &client);
	if (r >= 0) {
		client->may_report = true;
		r = finish_report(m, message, client, TAKE_PTR(report), &error);
	}
	bus_reply_if_error(message, r, &error);
}

static int method_report_focus(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	Manager *m = userdata;
	auto_focus_report FocusReport *report = NULL;
	Client *client;
	int r;

	r = check_supported(m, error);
	if (r < 0)
		return r;
	r = bus_read_report(m, message, &report, error);
	if (r < 0)
		return r;
	r = manager_get_client(m, message, &client);
	if (r < 0)
		return bus_process_error(error, r, "sender");
	if (!may_report(client, report)) {
		r = polkit_check(m->polkit, message, client->uid, VRAMD_ACTION_SET_FOCUS, on_report_verdict, m);
		return r < 0 ? bus_process_error(error, r, "sender") : 1;
	}
	return finish_report(m, message, client, TAKE_PTR(report), error);
}

static int method_withdraw(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	Manager *m = userdata;
	Client *client;
	int r;

	r = check_supported(m, error);
	if (r < 0)
		return r;
	r = manager_get_client(m, message, &client);
	if (r < 0)
		return bus_process_error(error, r, "sender");
	(void)focus_withdraw(m->focus, client->uid == 0 ? FOCUS_ALL_USERS : client->uid, client->name);
	return sd_bus_reply_method_return(message, NULL);
}

/* --- Hold and MakeRoom: for a process, by those who may speak for it ---------------------------- */

typedef struct ProcessCall {
	const Client *client;
	Process *process;
	const char *who, *why; /* of the message; of Hold() */
	Size size;             /* of MakeRoom() */
} ProcessCall;

typedef struct ProcessMethod {
	const char *member;
	/* Its arguments but for the options. */
	int (*read)(sd_bus_message *message, int *ret_pidfd, ProcessCall *ret, sd_bus_error *error);
	int (*run)(Manager *m, sd_bus_message *message, const ProcessCall *call, sd_bus_error *error);
} ProcessMethod;

static int read_hold(sd_bus_message *message, int *ret_pidfd, ProcessCall *ret, sd_bus_error *error)
{
	int r;

	r = sd_bus_message_read(message, "hss", ret_pidfd, &ret->who, &ret->why);
	if (r >= 0)
		r = bus_check_text(error, "who", ret->who);
	return r < 0 ? r : bus_check_text(error, "why", ret->why);
}

static int run_hold(Manager *m, sd_bus_message *message, const ProcessCall *call, sd_bus_error *error)
{
	auto_close int fd = -EBADF;
	int r;

	r = manager_hold(m, call->client->uid, call->client->pid, call->who, call->why, call->process, &fd);
	if (r == -EDQUOT)
		return sd_bus_error_setf(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
					 "At most %d holds a user and %d in all", VRAMD_HOLDS_PER_UID,
					 VRAMD_HOLDS_TOTAL);
	if (r < 0)
		return bus_process_error(error, r, "pidfd");
	finish_update(m);
	return sd_bus_reply_method_return(message, "h", fd);
}

static int read_room(sd_bus_message *message, int *ret_pidfd, ProcessCall *ret, sd_bus_error *error)
{
	const char *size;
	int r;

	r = sd_bus_message_read(message, "hs", ret_pidfd, &size);
	if (r < 0)
		return r;
	if (*size && parse_size(size, &ret->size) < 0)
		return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
					 "'size' must be empty, or a size such as 2G, 50%% or max");
	return 0;
}

static int reply_room(Manager *m, sd_bus_message *message, const uint64_t *freed, bool done)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	uint64_t values[DMEM_REGIONS_MAX];
	int r;

	if (!freed)
		return sd_bus_reply_method_errorf(message, SD_BUS_ERROR_FAILED,
						  "vramd stops, or a graphics device came or went");
	for (size_t i = 0; i < m->regions.n; i++)
		values[i] = freed[i] > 0 ? freed[i] : UINT64_MAX;
	r = sd_bus_message_new_method_return(message, &reply);
	if (r >= 0)
		r = bus_append_sizes(reply, &m->regions, values);
	if (r >= 0)
		r = sd_bus_message_append(reply, "b", done);
	return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static void on_room_made(Manager *m, const uint64_t *freed, bool done, void *userdata)
{
	sd_bus_message *message = userdata;
	int r = reply_room(m, message, freed, done);

	if (r < 0)
		log_debug_errno(r, "Cannot answer MakeRoom(), ignoring: %m");
	sd_bus_message_unref(message);
}

static int run_room(Manager *m, sd_bus_message *message, const ProcessCall *call, sd_bus_error *error)
{
	auto_unit_path UnitPath unit = { 0 };
	int r;

	if (unit_path_parse(call->process->cgroup, &unit) < 0)
		return bus_process_error(error, -ENOENT, "pidfd");
	r = manager_make_room(m, &(RoomWish){ &unit, call->process->uid, NULL, call->client->pid, call->size },
			      on_room_made, sd_bus_message_ref(message));
	if (r >= 0)
		return 1;
	sd_bus_message_unref(message);
	if (r == -EBUSY)
		return sd_bus_error_setf(error, VRAMD_ERROR_BUSY, "Room is being made for another game now");
	return bus_process_error(error, r, "pidfd");
}

static const ProcessMethod process_methods[] = {
	{ "Hold", read_hold, run_hold },
	{ "MakeRoom", read_room, run_room },
};

static const ProcessMethod *find_process_method(sd_bus_message *message)
{
	const char *member = sd_bus_message_get_member(message);
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(process_methods) && !streq(process_methods[i].member, member))
		i++;
	return &process_methods[i];
}

static int read_process_call(Manager *m, sd_bus_message *message, ProcessCall *ret, sd_bus_error *error)
{
	Client *client;
	int pidfd, r;

	r = find_process_method(message)->read(message, &pidfd, ret, error);
	/* No option is known yet; what a newer client asks for beyond it is not promised. */
	if (r >= 0)
		r = sd_bus_message_skip(message, "a{sv}");
	if (r < 0)
		return r;
	r = manager_get_client(m, message, &client);
	if (r < 0)
		return bus_process_error(error, r, "sender");
	ret->client = client;
	r = manager_get_process(m, pidfd, &ret->process);
	return r < 0 ? bus_process_error(error, r, "pidfd") : 0;
}

static void on_process_verdict(sd_bus_message *message, int verdict, void *userdata)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	ProcessCall call = { 0 };
	Manager *m = userdata;
	int r;

	if (verdict <= 0) {
		(void)bus_reply_denied(message, verdict, VRAMD_ACTION_HOLD);
		return;
	}
	r = sd_bus_message_rewind(message, true);
	if (r >= 0)
		r = read_process_call(m, message, &call, &error);
	if (r >= 0)
		r = find_process_method(message)->run(m, message, &call, &error);
	process_unref(call.process);
	bus_reply_if_error(message, r, &error);
}

static int method_of_process(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	Manager *m = userdata;
	auto_process Process *p = NULL;
	ProcessCall call = { 0 };
	int r;

	r = check_supported(m, error);
	if (r < 0)
		return r;
	r = read_process_call(m, message, &call, error);
	p = call.process;
	if (r < 0)
		return r;
	if (call.client->uid != 0 && !owns_process(call.client->uid, p)) {
		r = polkit_check(m->polkit, message, call.client->uid, VRAMD_ACTION_HOLD, on_process_verdict, m);
		return r < 0 ? bus_process_error(error, r, "sender") : 1;
	}
	return find_process_method(message)->run(m, message, &call, error);
}

/* --- Lists -------------------------------------------------------------------------------------- */

static int append_sizes_entry(sd_bus_message *reply, const Manager *m, const char *key, const uint64_t *values)
{
	int r;

	r = sd_bus_message_open_container(reply, 'e', "sv");
	if (r >= 0)
		r = sd_bus_message_append_basic(reply, 's', key);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'v', "a{st}");
	if (r >= 0)
		r = bus_append_sizes(reply, &m->regions, values);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_game_details(sd_bus_message *reply, Manager *m, const Game *g)
{
	static const char *const limit_keys[] = { [DMEM_MIN] = "min", [DMEM_LOW] = "low" };
	uint64_t values[DMEM_REGIONS_MAX];
	int r;

	r = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}", "name", "s", game_name(m, g), "uid", "u",
				  (uint32_t)g->uid, "mark", "s", game_mark_to_string(g->identity.mark), "role", "s",
				  g->shown_role == _ROLE_MAX ? "idle" : group_role_to_string(g->shown_role),
				  "control-group", "s", g->unit.cgroup);
	for (size_t i = 0; i < ARRAY_SIZE(limit_keys) && r >= 0; i++) {
		bus_game_limits(m, g, (DmemLimit)i, values);
		r = append_sizes_entry(reply, m, limit_keys[i], values);
	}
	bus_game_eased(m, g, values);
	if (r >= 0)
		r = append_sizes_entry(reply, m, "eased", values);
	if (r >= 0)
		r = sd_bus_message_append(reply, "{sv}", "eased-usec", "t", manager_eased_left(m, g));
	bus_game_usage(m, g, "dmem.current", values);
	if (r >= 0)
		r = append_sizes_entry(reply, m, "current", values);
	if (r >= 0)
		r = bus_game_spilled(m, g, values);
	return r < 0 ? r : append_sizes_entry(reply, m, "spilled", values);
}

static int append_game(sd_bus_message *reply, Manager *m, const Game *g)
{
	auto_free char *path = bus_game_path(g);
	int r;

	if (!path)
		return -ENOMEM;
	r = sd_bus_message_open_container(reply, 'r', "ousba{sv}");
	if (r >= 0)
		r = sd_bus_message_append(reply, "ousb", path, g->identity.appid, g->unit.name,
					  g->shown_role == ROLE_FRONT);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "{sv}");
	if (r >= 0)
		r = append_game_details(reply, m, g);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int method_list_games(sd_bus_message *message, void *userdata, sd_bus_error *error _unused_)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	Manager *m = userdata;
	int r;

	r = sd_bus_message_new_method_return(message, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "(ousba{sv})");
	for (size_t i = 0; i < m->n_games && r >= 0; i++)
		if (m->games[i]->announced)
			r = append_game(reply, m, m->games[i]);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int method_list_holds(sd_bus_message *message, void *userdata, sd_bus_error *error _unused_)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	Manager *m = userdata;
	int r;

	r = sd_bus_message_new_method_return(message, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "(ssuua{sv})");
	for (size_t i = 0; m->holds && i < hold_count(m->holds) && r >= 0; i++) {
		const Hold *h = hold_at(m->holds, i);
		const Game *g = manager_game_of(m, h->process);
		auto_free char *path = bus_game_path(g);

		r = sd_bus_message_append(reply, "(ssuua{sv})", h->who, h->why, (uint32_t)h->uid,
					  (uint32_t)h->process->pid, 2, "unit", "s", g ? g->unit.name : "", "game", "o",
					  path ? path : "/");
	}
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

/* --- Reload ------------------------------------------------------------------------------------- */

/* The first complaints go to the caller, all of them to the log. */
typedef struct Complaints {
	char *text;
	unsigned n;
} Complaints;

static void note_complaint(const char *file, unsigned line, const char *text, void *userdata)
{
	Complaints *c = userdata;
	char *longer;

	log_warning("%s:%u: %s, ignoring", file, line, text);
	if (++c->n > 5)
		return;
	if (asprintf(&longer, "%s%s%s:%u: %s", strempty(c->text), c->text ? "\n" : "", file, line, text) < 0)
		return;
	free(c->text);
	c->text = longer;
}

static int do_reload(Manager *m, sd_bus_message *message, sd_bus_error *error)
{
	Complaints c = { 0 };
	int r;

	r = manager_reload(m, note_complaint, &c);
	if (r < 0)
		r = sd_bus_error_setf(error, VRAMD_ERROR_INVALID_CONFIG,
				      "The configuration cannot be read, the present one stays: %s", strerror(-r));
	else if (r > 0)
		r = sd_bus_error_setf(error, VRAMD_ERROR_INVALID_CONFIG, "%d bad lines were ignored:\n%s", r,
				      strempty(c.text));
	free(c.text);
	return r < 0 ? r : sd_bus_reply_method_return(message, NULL);
}

static void on_reload_verdict(sd_bus_message *message, int verdict, void *userdata)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

	if (verdict <= 0)
		(void)bus_reply_denied(message, verdict, VRAMD_ACTION_RELOAD);
	else
		bus_reply_if_error(message, do_reload(userdata, message, &error), &error);
}

static int method_reload(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	int r = bus_ask(userdata, message, VRAMD_ACTION_RELOAD, on_reload_verdict, error);

	return r != 0 ? r : do_reload(userdata, message, error);
}

/* --- Dump --------------------------------------------------------------------------------------- */

static int method_dump(sd_bus_message *message, void *userdata, sd_bus_error *error _unused_)
{
	auto_free char *text = NULL;
	auto_close int fd = -EBADF;
	size_t size;
	int r;

	r = dump_state(userdata, &text, &size);
	if (r < 0)
		return r;
	fd = memfd_create("vramd-dump", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	for (size_t n = 0; n < size;) {
		ssize_t k = write(fd, text + n, size - n);

		if (k < 0)
			return -errno;
		n += (size_t)k;
	}
	if (lseek(fd, 0, SEEK_SET) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	return sd_bus_reply_method_return(message, "h", fd);
}

/* --- Properties --------------------------------------------------------------------------------- */

static int get_text(sd_bus *bus _unused_, const char *path _unused_, const char *interface _unused_,
		    const char *property, sd_bus_message *reply, void *userdata, sd_bus_error *error _unused_)
{
	Manager *m = userdata;
	const char *s = VRAMD_VERSION;

	if (streq(property, "State"))
		s = manager_state_to_string(m->state);
	else if (streq(property, "Reason"))
		s = strempty(m->reason);
	else if (streq(property, "Menu"))
		s = menu_state_to_string(m->menu);
	else if (streq(property, "OwnScope"))
		s = own_scope_to_string(m->config->enabled ? m->config->own_scope : OWN_SCOPE_NEVER);
	else if (streq(property, "FocusSource"))
		s = strempty(m->focus_source);
	return sd_bus_message_append(reply, "s", s);
}

static int get_front(sd_bus *bus _unused_, const char *path _unused_, const char *interface _unused_,
		     const char *property _unused_, sd_bus_message *reply, void *userdata,
		     sd_bus_error *error _unused_)
{
	Manager *m = userdata;
	auto_free char *path_of_game = bus_game_path(manager_game_by_id(m, m->front_game));

	return path_of_game ? sd_bus_message_append(reply, "o", path_of_game) : -ENOMEM;
}

static int get_abilities(sd_bus *bus _unused_, const char *path _unused_, const char *interface _unused_,
			 const char *property _unused_, sd_bus_message *reply, void *userdata,
			 sd_bus_error *error _unused_)
{
	Manager *m = userdata;
	const char *names[_ABILITY_MAX + 1];

	abilities_probe(&m->roots, m->state == STATE_UNSUPPORTED ? NULL : &m->hierarchy, m->unit_monitor, names);
	return sd_bus_message_append_strv(reply, (char **)names);
}

static const sd_bus_vtable manager_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD_WITH_ARGS("ReportFocus", SD_BUS_ARGS("a{sv}", report), SD_BUS_NO_RESULT, method_report_focus,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Withdraw", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_withdraw,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Hold", SD_BUS_ARGS("h", pidfd, "s", who, "s", why, "a{sv}", options),
				SD_BUS_RESULT("h", fd), method_of_process, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("MakeRoom", SD_BUS_ARGS("h", pidfd, "s", size, "a{sv}", options),
				SD_BUS_RESULT("a{st}", freed, "b", done), method_of_process, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ListGames", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(ousba{sv})", games), method_list_games,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("ListHolds", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(ssuua{sv})", holds), method_list_holds,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, method_reload,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("DumpByFileDescriptor", SD_BUS_NO_ARGS, SD_BUS_RESULT("h", fd), method_dump,
				SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_PROPERTY("Version", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("State", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("Reason", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("ForegroundGame", "o", get_front, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("Menu", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("FocusSource", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("OwnScope", "s", get_text, 0, 0),
	SD_BUS_PROPERTY("Abilities", "as", get_abilities, 0, 0),
	SD_BUS_SIGNAL_WITH_ARGS("FocusChanged", SD_BUS_ARGS("o", game, "s", menu, "s", source, "s", reason), 0),
	SD_BUS_SIGNAL_WITH_ARGS("Protected", SD_BUS_ARGS("o", game, "s", unit, "a{st}", low, "s", reason), 0),
	SD_BUS_SIGNAL_WITH_ARGS("Released", SD_BUS_ARGS("o", game, "s", unit, "s", reason), 0),
	SD_BUS_SIGNAL_WITH_ARGS("Contested",
				SD_BUS_ARGS("s", unit, "s", region, "s", file, "t", ours, "t", theirs, "s", reason), 0),
	SD_BUS_SIGNAL_WITH_ARGS("Evicted",
				SD_BUS_ARGS("o", game, "s", region, "t", bytes, "s", by, "s", reason), 0),
	SD_BUS_SIGNAL_WITH_ARGS("Eased", SD_BUS_ARGS("o", game, "s", region, "t", bytes, "s", reason), 0),
	SD_BUS_SIGNAL_WITH_ARGS("Restored", SD_BUS_ARGS("o", game, "s", region, "t", bytes, "s", reason), 0),
	SD_BUS_VTABLE_END,
};

int bus_register_manager(Manager *m)
{
	int r;

	r = sd_bus_add_object_manager(m->bus, NULL, VRAMD_PATH);
	if (r < 0)
		return r;
	return sd_bus_add_object_vtable(m->bus, NULL, VRAMD_PATH, VRAMD_IFACE_MANAGER, manager_vtable, m);
}
