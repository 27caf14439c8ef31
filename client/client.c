/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <sys/pidfd.h>

#include "client.h"
#include "output.h"
#include "parse.h"

/* --- Dictionaries ---------------------------------------------------------------------------- */

/* Where a key's value goes. Unknown keys and types that differ are skipped: the daemon may be newer. */
typedef struct Field {
	const char *key, *type;
	size_t offset;
} Field;

uint64_t amounts_get(const Amounts *a, const char *region)
{
	for (size_t i = 0; i < a->n; i++)
		if (streq(a->v[i].region, region))
			return a->v[i].bytes;
	return 0;
}

void amounts_done(Amounts *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->v[i].region);
	free(a->v);
	*a = (Amounts){};
}

static int read_amounts(sd_bus_message *m, Amounts *a)
{
	const char *region;
	uint64_t bytes;
	int r;

	r = sd_bus_message_enter_container(m, 'a', "{st}");
	if (r < 0)
		return r;
	while ((r = sd_bus_message_read(m, "{st}", &region, &bytes)) > 0) {
		if (!GROW(a->v, a->n_alloc, a->n))
			return -ENOMEM;
		a->v[a->n] = (Amount){ strdup(region), bytes };
		if (!a->v[a->n].region)
			return -ENOMEM;
		a->n++;
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

int amounts_read(sd_bus_message *m, Amounts *ret)
{
	Amounts a = {};
	int r;

	r = read_amounts(m, &a);
	if (r < 0) {
		amounts_done(&a);
		return r;
	}
	*ret = a;
	return 0;
}

static int read_string(sd_bus_message *m, char type, char **target)
{
	const char *s;
	char *copy;
	int r;

	r = sd_bus_message_read_basic(m, type, &s);
	if (r < 0)
		return r;
	copy = strdup(s);
	if (!copy)
		return -ENOMEM;
	free(*target);
	*target = copy;
	return 0;
}

/* Keys and values by turns. */
static int read_pairs(sd_bus_message *m, char ***ret)
{
	auto_strv char **list = NULL;
	size_t n = 0, n_alloc = 0;
	const char *pair[2];
	int r;

	r = sd_bus_message_enter_container(m, 'a', "{ss}");
	while (r >= 0 && (r = sd_bus_message_read(m, "{ss}", &pair[0], &pair[1])) > 0)
		for (size_t i = 0; i < ARRAY_SIZE(pair); i++) {
			if (!GROW(list, n_alloc, n + 1))
				return -ENOMEM;
			list[n + 1] = NULL;
			list[n] = strdup(pair[i]);
			if (!list[n++])
				return -ENOMEM;
		}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(list);
	return sd_bus_message_exit_container(m);
}

/* One value whose signature is known to fit the field. */
static int read_value(sd_bus_message *m, const char *type, void *target)
{
	int b, r;

	if (streq(type, "s") || streq(type, "o"))
		return read_string(m, *type, target);
	if (streq(type, "as")) {
		*(char ***)target = strv_free(*(char ***)target);
		return sd_bus_message_read_strv(m, target);
	}
	if (streq(type, "a{ss}")) {
		*(char ***)target = strv_free(*(char ***)target);
		return read_pairs(m, target);
	}
	if (streq(type, "a{st}")) {
		amounts_done(target);
		return read_amounts(m, target);
	}
	if (streq(type, "b")) { /* sd-bus wants an int for it */
		r = sd_bus_message_read_basic(m, 'b', &b);
		if (r >= 0)
			*(bool *)target = b;
		return r;
	}
	return sd_bus_message_read_basic(m, *type, target);
}

static int read_dictionary(sd_bus_message *m, const Field *fields, void *target)
{
	int r;

	r = sd_bus_message_enter_container(m, 'a', "{sv}");
	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		const char *key, *type;
		const Field *f = fields;

		r = sd_bus_message_read_basic(m, 's', &key);
		if (r < 0)
			return r;
		r = sd_bus_message_peek_type(m, NULL, &type);
		if (r < 0)
			return r;
		while (f->key && !(streq(f->key, key) && streq(f->type, type)))
			f++;
		if (!f->key) {
			r = sd_bus_message_skip(m, "v");
		} else {
			r = sd_bus_message_enter_container(m, 'v', f->type);
			if (r >= 0)
				r = read_value(m, f->type, (char *)target + f->offset);
			if (r >= 0)
				r = sd_bus_message_exit_container(m);
		}
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* --- What the daemon tells -------------------------------------------------------------------- */

#define FIELD(type, member, key, signature) { key, signature, offsetof(type, member) }

static const Field manager_fields[] = {
	FIELD(Manager, version, "Version", "s"),
	FIELD(Manager, state, "State", "s"),
	FIELD(Manager, reason, "Reason", "s"),
	FIELD(Manager, foreground, "ForegroundGame", "o"),
	FIELD(Manager, menu, "Menu", "s"),
	FIELD(Manager, source, "FocusSource", "s"),
	FIELD(Manager, abilities, "Abilities", "as"),
	{},
};

static const Field region_fields[] = {
	FIELD(Region, name, "Name", "s"),
	FIELD(Region, device, "DevicePath", "s"),
	FIELD(Region, pci, "PCI", "s"),
	FIELD(Region, driver, "Driver", "s"),
	FIELD(Region, capacity, "CapacityBytes", "t"),
	FIELD(Region, bandwidth, "LinkBandwidth", "t"),
	FIELD(Region, current, "Current", "t"),
	FIELD(Region, protected, "Protected", "t"),
	FIELD(Region, integrated, "Integrated", "b"),
	{},
};

/* As the Game object has them, and as ListGames() does. */
static const Field game_fields[] = {
	FIELD(Game, appid, "AppID", "u"),
	FIELD(Game, name, "Name", "s"),
	FIELD(Game, unit, "Unit", "s"),
	FIELD(Game, control_group, "ControlGroup", "s"),
	FIELD(Game, uid, "User", "u"),
	FIELD(Game, foreground, "Foreground", "b"),
	FIELD(Game, low, "Low", "a{st}"),
	FIELD(Game, min, "Min", "a{st}"),
	FIELD(Game, eased, "Eased", "a{st}"),
	FIELD(Game, current, "Current", "a{st}"),
	FIELD(Game, peak, "Peak", "a{st}"),
	FIELD(Game, spilled, "Spilled", "a{st}"),
	FIELD(Game, evicted, "Evicted", "a{st}"),
	FIELD(Game, evictions, "Evictions", "a{st}"),
	FIELD(Game, name, "name", "s"),
	FIELD(Game, uid, "uid", "u"),
	FIELD(Game, mark, "mark", "s"),
	FIELD(Game, role, "role", "s"),
	FIELD(Game, control_group, "control-group", "s"),
	FIELD(Game, current, "current", "a{st}"),
	FIELD(Game, low, "low", "a{st}"),
	FIELD(Game, min, "min", "a{st}"),
	FIELD(Game, eased, "eased", "a{st}"),
	FIELD(Game, eased_usec, "eased-usec", "t"),
	FIELD(Game, spilled, "spilled", "a{st}"),
	{},
};

static const Field hold_fields[] = {
	FIELD(Hold, unit, "unit", "s"),
	FIELD(Hold, game, "game", "o"),
	{},
};

static void region_done(Region *r)
{
	free(r->name);
	free(r->device);
	free(r->pci);
	free(r->driver);
}

static void game_done(Game *g)
{
	free(g->object);
	free(g->name);
	free(g->unit);
	free(g->control_group);
	free(g->mark);
	free(g->role);
	amounts_done(&g->current);
	amounts_done(&g->peak);
	amounts_done(&g->low);
	amounts_done(&g->min);
	amounts_done(&g->eased);
	amounts_done(&g->spilled);
	amounts_done(&g->evicted);
	amounts_done(&g->evictions);
}

static void hold_done(Hold *h)
{
	free(h->who);
	free(h->why);
	free(h->unit);
	free(h->game);
}

static void manager_done(Manager *m)
{
	free(m->version);
	free(m->state);
	free(m->reason);
	free(m->foreground);
	free(m->menu);
	free(m->source);
	strv_free(m->abilities);
}

void snapshot_done(Snapshot *s)
{
	manager_done(&s->manager);
	for (size_t i = 0; i < s->n_regions; i++)
		region_done(&s->regions[i]);
	for (size_t i = 0; i < s->n_games; i++)
		game_done(&s->games[i]);
	for (size_t i = 0; i < s->n_holds; i++)
		hold_done(&s->holds[i]);
	free(s->regions);
	free(s->games);
	free(s->holds);
	*s = (Snapshot){};
}

const Game *snapshot_foreground(const Snapshot *s)
{
	for (size_t i = 0; i < s->n_games; i++)
		if (streq_ptr(s->games[i].object, s->manager.foreground))
			return &s->games[i];
	return NULL;
}

bool manager_has(const Manager *m, const char *ability)
{
	for (char **a = m->abilities; a && *a; a++)
		if (streq(*a, ability))
			return true;
	return false;
}

void kernel_done(Kernel *k)
{
	strv_free(k->available);
	strv_free(k->origins);
	*k = (Kernel){};
}

bool kernel_has(const Kernel *kernel, Knob knob)
{
	for (char **name = kernel->available; name && *name; name++)
		if (streq(*name, knob_infos[knob].name))
			return true;
	return false;
}

uint32_t kernel_value(const Kernel *kernel, Knob knob)
{
	return knob_infos[knob].kind == KNOB_SWITCH ? kernel->switches[knob] : kernel->numbers[knob];
}

const char *kernel_origin(const Kernel *kernel, Knob knob)
{
	for (char **pair = kernel->origins; pair && *pair; pair += 2)
		if (streq(pair[0], knob_infos[knob].name))
			return pair[1];
	return "";
}

static int get_all(sd_bus *bus, const char *path, const char *interface, sd_bus_error *error, sd_bus_message **ret)
{
	return sd_bus_call_method(bus, VRAMD_BUS_NAME, path, "org.freedesktop.DBus.Properties", "GetAll", error, ret,
				  "s", interface);
}

int client_load_kernel(sd_bus *bus, Kernel *ret, sd_bus_error *error)
{
	auto_message sd_bus_message *reply = NULL;
	auto_kernel Kernel kernel = {};
	Field fields[_KNOB_MAX + 3] = {
		[_KNOB_MAX] = FIELD(Kernel, available, "Available", "as"),
		[_KNOB_MAX + 1] = FIELD(Kernel, origins, "Origins", "a{ss}"),
	};
	int r;

	for (Knob k = 0; k < _KNOB_MAX; k++)
		fields[k] = knob_infos[k].kind == KNOB_SWITCH ?
				    (Field)FIELD(Kernel, switches[k], knob_infos[k].name, "b") :
				    (Field)FIELD(Kernel, numbers[k], knob_infos[k].name, "u");
	r = get_all(bus, VRAMD_PATH, VRAMD_IFACE_KERNEL, error, &reply);
	if (r >= 0)
		r = read_dictionary(reply, fields, &kernel);
	if (r < 0)
		return r;
	*ret = kernel;
	kernel = (Kernel){};
	return 0;
}

static int load_manager(sd_bus *bus, Manager *m, sd_bus_error *error)
{
	auto_message sd_bus_message *reply = NULL;
	int r;

	r = get_all(bus, VRAMD_PATH, VRAMD_IFACE_MANAGER, error, &reply);
	return r < 0 ? r : read_dictionary(reply, manager_fields, m);
}

static int read_game(sd_bus_message *m, Game *g)
{
	int r;

	r = read_string(m, 'o', &g->object);
	if (r >= 0)
		r = sd_bus_message_read_basic(m, 'u', &g->appid);
	if (r >= 0)
		r = read_string(m, 's', &g->unit);
	if (r >= 0)
		r = read_value(m, "b", &g->foreground);
	if (r >= 0)
		r = read_dictionary(m, game_fields, g);
	return r;
}

static int load_games(sd_bus *bus, Snapshot *s, sd_bus_error *error)
{
	auto_message sd_bus_message *reply = NULL;
	int r;

	r = sd_bus_call_method(bus, VRAMD_BUS_NAME, VRAMD_PATH, VRAMD_IFACE_MANAGER, "ListGames",
			       error, &reply, "");
	if (r >= 0)
		r = sd_bus_message_enter_container(reply, 'a', "(ousba{sv})");
	while (r >= 0 && (r = sd_bus_message_enter_container(reply, 'r', "ousba{sv}")) > 0) {
		if (!GROW(s->games, s->games_alloc, s->n_games))
			return -ENOMEM;
		s->games[s->n_games] = (Game){};
		r = read_game(reply, &s->games[s->n_games++]);
		if (r >= 0)
			r = sd_bus_message_exit_container(reply);
	}
	return r;
}

static int read_hold(sd_bus_message *m, Hold *h)
{
	int r;

	r = read_string(m, 's', &h->who);
	if (r >= 0)
		r = read_string(m, 's', &h->why);
	if (r >= 0)
		r = sd_bus_message_read(m, "uu", &h->uid, &h->pid);
	return r < 0 ? r : read_dictionary(m, hold_fields, h);
}

static int load_holds(sd_bus *bus, Snapshot *s, sd_bus_error *error)
{
	auto_message sd_bus_message *reply = NULL;
	int r;

	r = sd_bus_call_method(bus, VRAMD_BUS_NAME, VRAMD_PATH, VRAMD_IFACE_MANAGER, "ListHolds",
			       error, &reply, "");
	if (r >= 0)
		r = sd_bus_message_enter_container(reply, 'a', "(ssuua{sv})");
	while (r >= 0 && (r = sd_bus_message_enter_container(reply, 'r', "ssuua{sv}")) > 0) {
		if (!GROW(s->holds, s->holds_alloc, s->n_holds))
			return -ENOMEM;
		s->holds[s->n_holds] = (Hold){};
		r = read_hold(reply, &s->holds[s->n_holds++]);
		if (r >= 0)
			r = sd_bus_message_exit_container(reply);
	}
	return r;
}

static Game *find_game(Snapshot *s, const char *object)
{
	for (size_t i = 0; i < s->n_games; i++)
		if (streq(s->games[i].object, object))
			return &s->games[i];
	return NULL;
}

/* One {interface: properties} entry of one object. A game that came after ListGames() is left out. */
static int read_interface(sd_bus_message *m, const char *object, Snapshot *s)
{
	const char *interface;
	Game *g;
	int r;

	r = sd_bus_message_read_basic(m, 's', &interface);
	if (r < 0)
		return r;
	if (streq(interface, VRAMD_IFACE_REGION)) {
		if (!GROW(s->regions, s->regions_alloc, s->n_regions))
			return -ENOMEM;
		s->regions[s->n_regions] = (Region){};
		return read_dictionary(m, region_fields, &s->regions[s->n_regions++]);
	}
	g = find_game(s, object);
	if (g && streq(interface, VRAMD_IFACE_GAME))
		return read_dictionary(m, game_fields, g);
	return sd_bus_message_skip(m, "a{sv}");
}

static int read_object(sd_bus_message *m, Snapshot *s)
{
	const char *object;
	int r;

	r = sd_bus_message_read_basic(m, 'o', &object);
	if (r >= 0)
		r = sd_bus_message_enter_container(m, 'a', "{sa{sv}}");
	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sa{sv}")) > 0) {
		r = read_interface(m, object, s);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int load_objects(sd_bus *bus, Snapshot *s, sd_bus_error *error)
{
	auto_message sd_bus_message *reply = NULL;
	int r;

	r = sd_bus_call_method(bus, VRAMD_BUS_NAME, VRAMD_PATH, "org.freedesktop.DBus.ObjectManager",
			       "GetManagedObjects", error, &reply, "");
	if (r >= 0)
		r = sd_bus_message_enter_container(reply, 'a', "{oa{sa{sv}}}");
	while (r >= 0 && (r = sd_bus_message_enter_container(reply, 'e', "oa{sa{sv}}")) > 0) {
		r = read_object(reply, s);
		if (r >= 0)
			r = sd_bus_message_exit_container(reply);
	}
	return r;
}

static int compare_regions(const void *a, const void *b)
{
	return strcmp(strempty(((const Region *)a)->name), strempty(((const Region *)b)->name));
}

static int compare_games(const void *a, const void *b)
{
	const Game *x = a, *y = b;

	if (x->foreground != y->foreground)
		return x->foreground ? -1 : 1;
	return strcmp(strempty(x->name), strempty(y->name));
}

int client_load(sd_bus *bus, Snapshot *ret, sd_bus_error *error)
{
	auto_snapshot Snapshot s = {};
	int r;

	r = load_manager(bus, &s.manager, error);
	if (r >= 0)
		r = load_games(bus, &s, error);
	if (r >= 0)
		r = load_holds(bus, &s, error);
	if (r >= 0)
		r = load_objects(bus, &s, error);
	if (r < 0)
		return r;
	if (s.n_regions)
		qsort(s.regions, s.n_regions, sizeof(Region), compare_regions);
	if (s.n_games)
		qsort(s.games, s.n_games, sizeof(Game), compare_games);
	*ret = s;
	s = (Snapshot){};
	return 0;
}

char *game_label(const Game *g)
{
	const char *name = *strempty(g->name) ? g->name : strempty(g->unit);
	char *label;

	if (!g->appid)
		return strdup(name);
	return asprintf(&label, "%s (%u)", name, g->appid) < 0 ? NULL : label;
}

char *client_game_label(sd_bus *bus, const char *object)
{
	auto_message sd_bus_message *reply = NULL;
	const char *id = strrchr(object, '/');
	Game g = {};
	char *label = NULL;
	int r;

	r = get_all(bus, object, VRAMD_IFACE_GAME, NULL, &reply);
	if (r >= 0 && read_dictionary(reply, game_fields, &g) >= 0 &&
	    (*strempty(g.name) || *strempty(g.unit)))
		label = game_label(&g);
	game_done(&g);
	return label ? label : strdup(id && id[1] ? id + 1 : object);
}

/* --- The connection --------------------------------------------------------------------------- */

int client_open(sd_bus **ret)
{
	int r;

	r = sd_bus_open_system_with_description(ret, "vramctl");
	if (r < 0)
		complain("the system bus cannot be reached (%s); is dbus running?", strerror(-r));
	return r;
}

int client_running(sd_bus *bus)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	int r;

	r = sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
			       "org.freedesktop.DBus", "GetNameOwner", &error, NULL, "s",
			       VRAMD_BUS_NAME);
	if (r >= 0)
		return 1;
	return error_is_absent(&error) ? 0 : r;
}

bool error_is_absent(const sd_bus_error *error)
{
	static const char *const names[] = {
		SD_BUS_ERROR_SERVICE_UNKNOWN, SD_BUS_ERROR_NAME_HAS_NO_OWNER,
		"org.freedesktop.systemd1.NoSuchUnit", "org.freedesktop.systemd1.UnitMasked",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (sd_bus_error_has_name(error, names[i]))
			return true;
	/* The bus tried to activate it, and could not. */
	return error->name && startswith(error->name, "org.freedesktop.DBus.Error.Spawn.");
}

int client_fail(const sd_bus_error *error, int r)
{
	if (error_is_absent(error)) {
		complain("vramd is not running; start it with: systemctl start vramd.service");
		return STATUS_UNREACHABLE;
	}
	if (sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) || r == -ECONNRESET ||
	    r == -ENOTCONN || r == -ETIMEDOUT) {
		complain("vramd did not answer; look at: systemctl status vramd.service");
		return STATUS_UNREACHABLE;
	}
	if (sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_METHOD) ||
	    sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_INTERFACE) ||
	    (!sd_bus_error_is_set(error) && (r == -ENXIO || r == -EBADMSG))) {
		complain("vramd's answer does not fit this vramctl (%s); are both from one release?",
			 error->message ? error->message : strerror(-r));
		return STATUS_FAILURE;
	}
	complain("%s", *strempty(error->message) ? error->message : strerror(-r));
	return STATUS_FAILURE;
}

static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *error _unused_)
{
	OwnerWatch *watch = userdata;
	const char *owner;

	if (sd_bus_message_read(m, "sss", NULL, NULL, &owner) >= 0)
		watch->cb(*owner != '\0', watch->userdata);
	return 0;
}

int client_watch_owner(sd_bus *bus, OwnerWatch *watch)
{
	return sd_bus_add_match(bus, NULL,
				"type='signal',sender='org.freedesktop.DBus',"
				"path='/org/freedesktop/DBus',interface='org.freedesktop.DBus',"
				"member='NameOwnerChanged',arg0='" VRAMD_BUS_NAME "'",
				on_owner, watch);
}

int client_loop(sd_bus *bus, sd_event **ret)
{
	auto_event sd_event *event = NULL;
	sigset_t mask;
	int r;

	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGINT);
	(void)sigaddset(&mask, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
		return -errno;
	r = sd_event_new(&event);
	if (r >= 0)
		r = sd_event_add_signal(event, NULL, SIGINT, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL);
	if (r >= 0 && bus)
		r = sd_bus_attach_event(bus, event, SD_EVENT_PRIORITY_NORMAL);
	if (r >= 0 && bus)
		r = sd_bus_set_exit_on_disconnect(bus, true);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(event);
	return 0;
}

int pidfd_from_arg(const char *arg, int *ret_fd)
{
	uint32_t pid;
	int fd;

	if (parse_u32(arg, &pid) < 0 || pid == 0 || pid > INT32_MAX) {
		complain("\"%s\" is not a process id", arg);
		return STATUS_USAGE;
	}
	fd = pidfd_open((pid_t)pid, 0); /* close-on-exec by itself */
	if (fd < 0) {
		if (errno == ESRCH)
			complain("there is no process %u", pid);
		else if (errno == EINVAL)
			complain("%u is a thread, not a process", pid);
		else
			complain("cannot refer to process %u: %s", pid, strerror(errno));
		return STATUS_FAILURE;
	}
	*ret_fd = fd;
	return 0;
}
