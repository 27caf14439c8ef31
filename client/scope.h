/* SPDX-License-Identifier: MIT */
/* Transient scopes of the user's own systemd; see org.freedesktop.systemd1(5), StartTransientUnit(). */
#pragma once

#include <sys/types.h>
#include <systemd/sd-bus.h>

#include "util.h"

/* "app-steam-app<appid>-<pid>.scope" when Steam says which game it is, so that vramd and gamescope
 * recognise it; else "app-vramd-<program>-<pid>.scope" (systemd's DESKTOP_ENVIRONMENTS.md). The caller
 * frees; NULL without memory. steam_appid may be NULL. */
char *scope_name(const char *program, const char *steam_appid, pid_t pid);

/* 1 if this process is already alone with its game: in an app-steam-app scope. Else 0. */
int scope_is_own(void);

/* Moves the process into a new scope and waits until it is there. -ENOTCONN: there is no user manager. */
int scope_start(const char *name, const char *slice, const char *description, pid_t pid, int pidfd,
		sd_bus_error *error);
