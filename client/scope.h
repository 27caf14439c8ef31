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

/* Whoever names a process makes sure that its number is not another one's yet, for systemd before 254. */
typedef struct ScopeProcess {
	pid_t pid;
	int pidfd;
} ScopeProcess;

typedef struct Scope {
	const char *name, *slice, *description;
	const ScopeProcess *processes;
	size_t n;
	bool delegate; /* scope_attach() may follow: systemd only lets processes into units that it has delegated */
} Scope;

/* Moves the processes into a new scope and waits until they are there. -ENOTCONN: there is no user manager. */
int scope_start(const Scope *s, sd_bus_error *error);
/* Moves more processes into one that is there; only name and processes of it count. */
int scope_attach(const Scope *s, sd_bus_error *error);
