/* SPDX-License-Identifier: MIT */
/* Layer 5. The D-Bus face: vtables, and signals out of the manager's hooks. Nothing is decided here.
 * Source: io.github.vramd1(5), dbus/io.github.vramd1.xml. */
#pragma once

#include "bus-names.h"
#include "manager.h"

/* Sets the manager's hooks; everything is registered whenever a bus connection is made, and ready is
 * called each time the bus name is ours. */
void bus_init(Manager *m, void (*ready)(Manager *m));

int bus_register_manager(Manager *m); /* bus-manager.c */
int bus_register_games(Manager *m);   /* bus-game.c */
int bus_register_regions(Manager *m); /* bus-region.c */
int bus_register_kernel(Manager *m);  /* bus-kernel.c */
int bus_register_log(Manager *m);     /* bus-log.c */

int bus_emit_knobs(Manager *m);

/* The object path of a game; "/" for none. The caller frees; NULL when memory is short. */
char *bus_game_path(const Game *g);

/* Appends a{st}: region names to bytes. values may have UINT64_MAX for "no entry". */
int bus_append_sizes(sd_bus_message *m, const Regions *regions, const uint64_t *values);
/* Fills values[n_regions] of a game. */
void bus_game_limits(const Manager *m, const Game *g, DmemLimit limit, uint64_t *values);
void bus_game_usage(const Manager *m, const Game *g, const char *file, uint64_t *values);
/* What low is lowered to, in the regions where it is. */
void bus_game_eased(const Manager *m, const Game *g, uint64_t *values);
int bus_game_spilled(Manager *m, const Game *g, uint64_t *values);

/* Reads the argument of ReportFocus() (bus-report.c). Processes are taken in, but not tracked. */
int bus_read_report(Manager *m, sd_bus_message *message, FocusReport **ret, sd_bus_error *error);
/* Text of a client: 1 to VRAMD_TEXT_MAX bytes, no control characters. */
int bus_check_text(sd_bus_error *error, const char *name, const char *text);

/* May the sender, unless it is root, do an action? 0: yes, at once; 1: polkit was asked, and cb replies. */
int bus_ask(Manager *m, sd_bus_message *message, const char *action, polkit_cb cb, sd_bus_error *error);
/* What polkit answered, which was no. */
int bus_reply_denied(sd_bus_message *message, int verdict, const char *action);
/* Answers a call that failed, from outside of sd-bus's own dispatch. */
void bus_reply_if_error(sd_bus_message *message, int r, sd_bus_error *error);

/* Turns a negative errno of the layers below into a named error that names the process or value. */
int bus_process_error(sd_bus_error *error, int r, const char *what);
