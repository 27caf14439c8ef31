/* SPDX-License-Identifier: MIT */
/* Layer 4. The one object that owns the loop, the bus and every table. Events change tables; a change
 * asks for an update; the update builds a world, lets policy make a plan, applies it, and tells the bus
 * what was decided (manager-update.c). */
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <systemd/sd-login.h>

#include "apply.h"
#include "focus.h"
#include "hold.h"
#include "identify.h"
#include "polkit.h"
#include "region.h"
#include "unit.h"

#define GAMES_PER_UID 128

typedef struct Manager Manager;
typedef struct Game Game;
typedef struct Evictions Evictions;

typedef enum ManagerState {
	STATE_UNSUPPORTED, /* no dmem here; `reason` says why */
	STATE_IDLE,
	STATE_PROTECTING,
	STATE_PAUSED,      /* switched off by the configuration, or the system sleeps */
	_STATE_MAX,
} ManagerState;
const char *manager_state_to_string(ManagerState s);

/* --- Games (game.c) -------------------------------------------------------------------------- */

/* A process of a game, or a compositor: watched until it ends. Shared by reports and holds through
 * its Process, which it references. */
typedef struct Tracked {
	Manager *manager;
	Process *process;
	sd_event_source *exit;
	sd_event_source *recheck; /* looks once or twice whether it moved to another unit */
	bool rechecked;
	bool named;               /* a client named it again: look where it is, once the values are written */
	bool moved;               /* its control group is another one than game's */
	Game *game;               /* the unit that it is in, if it is a game's */
} Tracked;

/* A unit with a game in it. Several processes may have led to it; a launcher's unit may hold two. */
struct Game {
	Manager *manager;
	uint64_t id;        /* for its object path; never used twice */
	UnitPath unit;
	uid_t uid;
	GameIdentity identity;
	pid_t known_by;     /* the process that identity is of; 0 = none yet */
	bool named;         /* its unit says by itself that it is a game: lives as long as the unit */
	bool announced;     /* on the bus */
	bool room_asked;    /* for MakeRoom= */
	bool left;          /* a process of it moved to another unit */
	bool ended;         /* closed at the end of the present update */
	GroupRole role;     /* ROLE_FRONT, ROLE_BACKGROUND, or _ROLE_MAX: none */
	GroupRole shown_role; /* as the bus was told; _ROLE_MAX: not protected */
	Cgroup *group;
	Easing *easing;     /* [regions.n] while it is looked at (sampler.c), else NULL */
	Evictions *evictions; /* while it is protected, where the kernel counts (evictions.c); else NULL */
};

/* Finds or makes the game of a process. -ENOENT: it is in no unit that could be protected; -EDQUOT. */
int manager_track_game(Manager *m, Process *p, uint32_t appid, Game **ret);
/* The process is what is played, whatever else, like a launcher, was found in its unit before. */
void manager_name_game(const Manager *m, Game *g, const Process *p);
/* Do its marks or the configuration make a game of it? */
bool manager_is_game(const Manager *m, const Process *p);
/* The game that a process, or its unit, is known as; NULL: none. */
Game *manager_known_game(const Manager *m, const Process *p);
/* Finds or makes the game that a report has in front. */
int manager_track_front(Manager *m, const FocusReport *report);
/* A pid that was listed in a group: NULL if it has ended or moved on, or was given to a process elsewhere meanwhile. */
Process *manager_open_process(const Manager *m, pid_t pid, const char *cgroup);
/* Watches a process that is no game (a compositor). */
int manager_track(Manager *m, Process *p, Tracked **ret);
Game *manager_game_of(const Manager *m, const Process *p);
Game *manager_find_game(const Manager *m, const char *cgroup);
Game *manager_game_by_id(const Manager *m, uint64_t id);
const char *game_name(const Manager *m, const Game *g);
const GameConfig *game_config(const Manager *m, const Game *g);
bool game_allowed(const Manager *m, const Game *g);
/* Finds out who moved to another unit and what nobody refers to any more: such games are marked as ended, and
 * closed once everything about them was told. */
void manager_refresh_games(Manager *m);
void manager_close_ended_games(Manager *m);
/* Why a game is not protected any more, when it was marked as ended. */
const char *game_end_reason(const Game *g);
/* After the configuration changed: other units are games by their name now. */
void manager_refresh_names(Manager *m);
/* For the next game that is one by its name, and that no room was asked for yet. */
void manager_ask_for_room(Manager *m);
void manager_unit_event(UnitEvent event, const char *path, void *userdata);
void manager_free_games(Manager *m);

/* --- Users (session.c) ----------------------------------------------------------------------- */

/* A user who is logged in, by what logind says. */
typedef struct User {
	uid_t uid;
	bool active; /* has the active session of a seat */
	uint64_t rate_usec; /* until when its share of changes is used up */
} User;

/* Units of a user, or of the system, that the configuration or their name makes interesting. */
typedef struct KnownUnit {
	char *path;
	char *name; /* points into path */
	uid_t uid;  /* UNIT_UID_NONE: a system unit */
} KnownUnit;

int manager_start_sessions(Manager *m);
int manager_refresh_users(Manager *m);
void manager_free_users(Manager *m);
/* Patterns that the unit monitor must report; again after the configuration changed. */
int manager_watch_units(Manager *m);
void manager_forget_units(Manager *m);
User *manager_find_user(const Manager *m, uid_t uid); /* NULL: not logged in */
bool manager_user_active(const Manager *m, uid_t uid);

/* --- Workers (worker.c) ---------------------------------------------------------------------- */

/* An agent that vramd has started for a user who has none. */
typedef struct Worker Worker;

#define MANAGER_AGENT_UNIT "vramd-agent.service" /* a user's own */
/* After each update: starts and stops them, as users and their agents come and go. */
void manager_update_workers(Manager *m);
/* The process is the worker of that user. */
bool manager_is_worker(uid_t uid, pid_t pid);
/* The bus is gone, and with it the answers to what was asked. */
void manager_forget_worker_calls(Manager *m);
void manager_free_workers(Manager *m);

/* --- Easing (sampler.c) ---------------------------------------------------------------------- */

typedef struct Sampler {
	sd_event_source *timer;
	Cgroup *root;           /* its dmem.current: how full the regions are */
	uint64_t regions_usec;  /* when to look at that again */
	bool near_full[DMEM_REGIONS_MAX];
	bool throttled;         /* the kernel does it by itself */
} Sampler;

/* [regions.n] for a game in front that may be eased; else NULL. */
const Easing *manager_easing(const Manager *m, const Game *g);
/* How long it takes until none of its regions is eased any more; 0: none is. */
uint64_t manager_eased_left(const Manager *m, const Game *g);
/* After each update: tells what was decided since the last one, and who is looked at from now on. */
void manager_settle_easing(Manager *m, const char *reason);
/* Other regions: what was seen before says nothing any more. */
void manager_forget_easing(Manager *m);
/* So many bytes, by region, of a game were evicted for others: the kernel told. */
void manager_ease_evicted(Manager *m, const Game *g, const uint64_t *bytes);

/* --- Evictions (evictions.c) ------------------------------------------------------------------- */

#define RIVALS_MAX 16

/* Somebody whom we know, and who may have come in when a game lost memory. */
typedef struct Rival {
	Cgroup *group;
	uint64_t use[DMEM_REGIONS_MAX];   /* at the last look */
	uint64_t grown[DMEM_REGIONS_MAX]; /* from the one before it to the last */
} Rival;

typedef struct Rivals {
	Rival *items[RIVALS_MAX];
	size_t n;
	sd_event_source *timer; /* when to tell of what was evicted */
	uint64_t next_usec;     /* not before */
} Rivals;

/* After each update: the protected games are watched. */
void manager_settle_evictions(Manager *m);
/* What others evicted of a game since it came in front; values[n_regions], UINT64_MAX where the kernel does not count.
 * Either may be NULL. */
void manager_evicted(const Manager *m, const Game *g, uint64_t *ret_buffers, uint64_t *ret_bytes);
void manager_close_evictions(Game *g);
/* Of all games: other regions, or the end. */
void manager_forget_evictions(Manager *m);

/* --- The kernel's knobs (tuning.c) --------------------------------------------------------------- */

/* Whose value a knob has. */
typedef enum KnobOrigin {
	KNOB_ORIGIN_KERNEL,        /* nobody's here: vramd leaves it alone */
	KNOB_ORIGIN_CONFIGURATION, /* [kernel] */
	KNOB_ORIGIN_GAME,          /* [game ID] of the one in front */
	KNOB_ORIGIN_HAND,
	KNOB_ORIGIN_STRANGER,      /* another program's, which wrote it after vramd */
	_KNOB_ORIGIN_MAX,
} KnobOrigin;
const char *knob_origin_to_string(KnobOrigin o);

typedef struct Tuning {
	KnobWish by_hand[_KNOB_MAX];
	KnobWish wishes[_KNOB_MAX]; /* that were applied last */
	KnobOrigin origins[_KNOB_MAX]; /* of these */
	int results[_KNOB_MAX];
	bool settled;               /* nothing has happened since */
	bool started;
	uint64_t first_inodes[_KNOB_MAX]; /* when vramd started; 0: there was none */
	bool stale_sandbox;
} Tuning;

/* Part of each update: makes the knobs what they are to be, with this game in front (of two seats, that of the bus). */
void manager_settle_knobs(Manager *m, const Game *front);
/* A module may have come or gone: the next update reads all of them again. */
void manager_doubt_knobs(Manager *m);
/* -ENOENT: this kernel has none; -ERANGE; -ENODEV: it needs another one, which is off; -EOPNOTSUPP. */
int manager_check_knob(const Manager *m, Knob knob, uint32_t value);
/* Until reset, or until vramd ends. The same errors, and those of write(2). */
int manager_set_knob(Manager *m, Knob knob, uint32_t value);
/* Forgets what was set by hand, and what strangers wrote. */
int manager_reset_knobs(Manager *m);
int manager_get_knob(const Manager *m, Knob knob, uint32_t *ret, KnobOrigin *ret_origin);

/* --- Room for a game that starts (make-room.c) ------------------------------------------------ */

typedef struct Room Room;

typedef struct RoomWish {
	const UnitPath *unit; /* of the game */
	uid_t uid;
	const char *exe;      /* its program, if known: for [game exe=] */
	pid_t caller;         /* whose unit is spared; 0: nobody's */
	Size size;            /* what is to be free in each region; SIZE_UNSET: as MakeRoom= says, else nothing */
} RoomWish;

/* It is over, and every ceiling is what it was. freed: bytes, [regions.n]; done: all came down as far as they should.
 * NULL: it was called off. */
typedef void (*room_cb)(Manager *m, const uint64_t *freed, bool done, void *userdata);
/* cb comes once, at the earliest from within this call; never after an error. -EBUSY: for another game, now. */
int manager_make_room(Manager *m, const RoomWish *wish, room_cb cb, void *userdata);
/* The same for a unit that is a game by its name, and that nobody spoke of yet; is there such a wish, and can it be
 * fulfilled now? */
bool manager_wants_room(const Manager *m, const Game *g);
void manager_make_room_for_unit(Manager *m, const Game *g);
/* Who makes room now, and up to which ceilings ([regions.n]). */
size_t manager_room_count(const Manager *m);
const char *manager_room_get(const Manager *m, size_t i, const uint64_t **ret_ceilings);
/* The regions are others now. */
void manager_cancel_room(Manager *m);
/* vramd stops: after it nobody writes a ceiling any more. */
void manager_stop_room(Manager *m);
void manager_free_room(Manager *m);

/* --- The bus (bus-*.c set these up; layer 5 calls down only) ----------------------------------- */

/* A connection that reported or asked for something: who it is, and what it may. */
typedef struct Client {
	char *name;       /* unique bus name */
	uid_t uid;
	pid_t pid;
	uid_t about;      /* whose session its last report was about; its own at first */
	bool is_worker;   /* vramd has started it */
	bool may_report;  /* polkit said yes once; forgotten when sessions change */
	sd_bus_track *track; /* tells when it leaves the bus */
	Manager *manager;
} Client;

/* What layer 5 wants to hear; all may be NULL. */
typedef struct ManagerHooks {
	void (*focus_changed)(Manager *m, const Game *front, const char *reason);
	void (*protected)(Manager *m, const Game *g, const char *reason);
	void (*released)(Manager *m, const Game *g, const char *reason);
	void (*contested)(Manager *m, const char *path, const char *region, DmemLimit limit, uint64_t ours,
			  uint64_t theirs, const char *reason);
	/* Its low was lowered in a region where it lost so many bytes; is what it was before. */
	void (*eased)(Manager *m, const Game *g, const char *region, uint64_t lost, const char *reason);
	void (*restored)(Manager *m, const Game *g, const char *region, const char *reason);
	/* So many bytes of it were evicted for others; by: the unit that probably came in, or "". */
	void (*evicted)(Manager *m, const Game *g, const char *region, uint64_t bytes, const char *by,
			const char *reason);
	void (*game_added)(Manager *m, const Game *g);
	void (*game_removed)(Manager *m, const Game *g);
	void (*regions_changed)(Manager *m, const Regions *before);
	void (*limits_changed)(Manager *m, const Game *g);
	void (*state_changed)(Manager *m);
	void (*knobs_changed)(Manager *m);
	/* A bus connection was made, at the start or again: register everything on it. */
	int (*connected)(Manager *m);
	/* The bus name is ours. */
	void (*ready)(Manager *m);
} ManagerHooks;

struct Manager {
	/* what main.c decided */
	Roots roots;
	char *config_file; /* --config, or NULL */
	char *runtime_dir;
	bool dry_run;

	sd_event *event;
	sd_bus *bus;
	Config *config;
	Hierarchy hierarchy;
	ManagerState state;
	char *reason;
	bool sleeping;

	Regions regions;
	RegionMonitor *region_monitor;
	UnitMonitor *unit_monitor;
	sd_login_monitor *login_monitor;
	sd_event_source *login_source;
	Apply *apply;
	Focus *focus;
	HoldTable *holds;
	Polkit *polkit;

	User *users;
	size_t n_users, n_users_alloc;
	Worker **workers;
	size_t n_workers, n_workers_alloc;
	User nobody; /* its rate is that of all who have no session */
	KnownUnit *units;
	size_t n_units, n_units_alloc;
	Game **games;
	size_t n_games, n_games_alloc;
	uint64_t last_game_id;
	bool recheck; /* a unit changed: look where each process is */
	Tracked **tracked;
	size_t n_tracked, n_tracked_alloc;
	Client **clients;
	size_t n_clients, n_clients_alloc;
	sd_event_source *reconnect_source;
	Sampler sampler;
	Rivals rivals;
	Tuning tuning;
	Room *room;       /* that is being made; NULL: none */
	Room *stray_room; /* one that was given up, and whose child has not ended */

	/* what the bus shows; set by the update */
	uint64_t front_game; /* id, 0 = nobody */
	MenuState menu;
	char *focus_source;

	/* update scheduling */
	sd_event_source *update_source; /* deferred: many changes, one update */
	sd_event_source *rate_source;   /* an update that waits until a user's second is over */
	const char *update_reason;      /* of the first change that asked; a static string */
	Plan plan;                      /* the present one */
	int apply_error;                /* of the last update, to tell it once */

	const ManagerHooks *hooks;
};

int manager_new(Manager **ret);
/* Connects, takes back what a crash left, reads the world. -EOPNOTSUPP is not an error of this call: the
 * manager then stays in STATE_UNSUPPORTED. */
int manager_start(Manager *m);
/* Puts everything back; the loop has ended. */
int manager_stop(Manager *m);
Manager *manager_free(Manager *m);
DEFINE_CLEANUP(Manager *, manager_free)

/* Reads the configuration again. Number of bad lines, told to warn; -ENOMEM and such leave the old
 * configuration in place. */
int manager_reload(Manager *m, config_warn_cb warn, void *userdata);

/* Asks for an update; reason is a static phrase for the signals that will follow. */
void manager_queue_update(Manager *m, const char *reason);
/* Does now what is queued: before a method is answered, so that the values are written first, and the one who
 * asked knows that they are. Not for callbacks of the layers below, which are in the middle of their work. */
void manager_flush_update(Manager *m);
/* The same for a change that one user caused: USER_UPDATES_PER_SEC of them a second are applied. */
#define USER_UPDATES_PER_SEC 20
void manager_queue_user_update(Manager *m, uid_t uid, const char *reason);
/* The update itself (manager-update.c). */
int manager_update(Manager *m, const char *reason);
/* All values were put back for good: tells so of each game. */
void manager_tell_stop(Manager *m);

/* Takes a client's process in: the one that is tracked already, or a new one. Error as process_new(). */
int manager_get_process(Manager *m, int pidfd, Process **ret);
/* Looks whether those that were known already are still where they were. Not before what was asked for is
 * done: it costs more than the writes do. */
void manager_recheck_named(Manager *m);
/* A report of a client: trust was checked. Takes the report over. */
int manager_report(Manager *m, uid_t uid, FocusReport *report);
/* What GNOME says of a user (gnome.c), where it says something. */
void manager_report_marked(Manager *m, uid_t uid);
/* A hold: trust was checked. *ret_fd belongs to the caller of this function. */
int manager_hold(Manager *m, uid_t uid, pid_t caller, const char *who, const char *why, Process *p, int *ret_fd);

/* The client behind a message: known, or made with the credentials that the bus tells. */
int manager_get_client(Manager *m, sd_bus_message *message, Client **ret);
void manager_forget_permissions(Manager *m);
void manager_free_clients(Manager *m);

void manager_set_state(Manager *m, ManagerState state, const char *format, ...) _printf_(3, 4);
