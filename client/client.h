/* SPDX-License-Identifier: MIT */
/* The daemon as seen over D-Bus: connection, errors, and one struct each for what it tells. The wire
 * format is io.github.vramd1(5); nothing else in this folder reads dictionaries. Functions return a
 * negative errno and fill the sd_bus_error, unless they say something else. */
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "bus-names.h"
#include "knob.h"
#include "util.h"

/* vramctl's exit statuses; vramctl(1) documents them. */
enum {
	STATUS_OK = 0,
	STATUS_FAILURE = 1,
	STATUS_USAGE = 2,
	STATUS_UNREACHABLE = 69, /* EX_UNAVAILABLE of sysexits.h: vramd is not running */
};

#define auto_bus _cleanup_(sd_bus_flush_close_unrefp)
#define auto_message _cleanup_(sd_bus_message_unrefp)
#define auto_bus_error _cleanup_(sd_bus_error_free)
#define auto_event _cleanup_(sd_event_unrefp)

/* Bytes by region. */
typedef struct Amount {
	char *region;
	uint64_t bytes;
} Amount;
typedef struct Amounts {
	Amount *v;
	size_t n, n_alloc;
} Amounts;
uint64_t amounts_get(const Amounts *a, const char *region); /* 0 if it is not there */
void amounts_done(Amounts *a);

typedef struct Region {
	char *name, *device, *pci, *driver;
	uint64_t capacity, bandwidth, current, protected;
	bool integrated;
} Region;

typedef struct Game {
	char *object, *name, *unit, *control_group, *mark, *role;
	uint32_t appid, uid;
	bool foreground;
	Amounts current, peak, low, min, eased, spilled, evicted, evictions;
	uint64_t eased_usec; /* until its low is whole again */
} Game;

typedef struct Hold {
	char *who, *why, *unit, *game;
	uint32_t uid, pid;
} Hold;

typedef struct Manager {
	char *version, *state, *reason, *foreground, *menu, *source;
	char **abilities;
} Manager;

typedef struct Snapshot {
	Manager manager;
	Region *regions; /* by name */
	Game *games;     /* the one in front first, then by name */
	Hold *holds;
	size_t n_regions, n_games, n_holds;
	size_t regions_alloc, games_alloc, holds_alloc;
} Snapshot;

void snapshot_done(Snapshot *s);
#define auto_snapshot _cleanup_(snapshot_done)
const Game *snapshot_foreground(const Snapshot *s); /* NULL if nobody is in front */
bool manager_has(const Manager *m, const char *ability);

/* The kernel's parameters, as vramd sees them. */
typedef struct Kernel {
	char **available;
	char **origins; /* names and whose values they have, by turns */
	uint32_t numbers[_KNOB_MAX];
	bool switches[_KNOB_MAX];
} Kernel;

void kernel_done(Kernel *k);
#define auto_kernel _cleanup_(kernel_done)
bool kernel_has(const Kernel *kernel, Knob knob);
uint32_t kernel_value(const Kernel *kernel, Knob knob); /* 0 if it is not there */
const char *kernel_origin(const Kernel *kernel, Knob knob); /* "" if it is not there */

/* The system bus (DBUS_SYSTEM_BUS_ADDRESS is honoured). Complains itself. */
int client_open(sd_bus **ret);
/* Everything that the daemon tells, in four calls. */
int client_load(sd_bus *bus, Snapshot *ret, sd_bus_error *error);
int client_load_kernel(sd_bus *bus, Kernel *ret, sd_bus_error *error);
/* 1 if the daemon is on the bus, 0 if not; never starts it. */
int client_running(sd_bus *bus);

/* Reads an a{st} at the message's position. */
int amounts_read(sd_bus_message *m, Amounts *ret);
/* "Cyberpunk 2077 (1091500)" for a game's object path, asked of the daemon; the last part of the path
 * if it does not know. The caller frees; NULL only without memory. */
char *client_game_label(sd_bus *bus, const char *object);
char *game_label(const Game *g);

bool error_is_absent(const sd_bus_error *error);
/* Says why a call failed, in one line, and returns the exit status. */
int client_fail(const sd_bus_error *error, int r);

/* Called with whether vramd is on the bus, each time that changes. */
typedef void (*owner_cb)(bool present, void *userdata);
typedef struct OwnerWatch {
	owner_cb cb;
	void *userdata;
} OwnerWatch;
/* watch stays the caller's and must live as long as the bus. */
int client_watch_owner(sd_bus *bus, OwnerWatch *watch);

/* An event loop with the bus attached (NULL = without), that ends with status 0 at SIGINT or SIGTERM. */
int client_loop(sd_bus *bus, sd_event **ret);

/* A pidfd for the digits of arg. Complains itself and returns an exit status, 0 if all is well. */
int pidfd_from_arg(const char *arg, int *ret_fd);
