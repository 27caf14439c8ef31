/* SPDX-License-Identifier: MIT */
/* Layer 1. From control groups to systemd units, and news of units from systemd.
 *
 * systemd's system manager only knows user@UID.service of what runs below it, so units of users are
 * found by their directories: named by systemd, watched with inotify. Source: systemd.unit(5),
 * org.freedesktop.systemd1(5), systemd's docs/CGROUP_DELEGATION.md, DESKTOP_ENVIRONMENTS.md. */
#pragma once

#include <sys/types.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "cgroup.h"

#define UNIT_UID_NONE ((uid_t)-1)

/* What the path of a control group says. */
typedef struct UnitPath {
	char *cgroup;     /* the unit's own directory: the path cut behind the unit */
	char *name;       /* "app-steam-app1091500-4242.scope", unescaped as on disk */
	uid_t uid;        /* of the user slice; UNIT_UID_NONE for a system unit */
	bool user_unit;   /* below user@UID.service: systemd --user owns it */
	bool session;     /* session-N.scope: everything of a login shares it */
	uint32_t appid;   /* from app-steam-app<appid>-<pid>.scope, else 0 */
	char *flatpak;    /* application id of app-flatpak-<id>-<instance>.scope, else NULL */
} UnitPath;

/* Cuts at the first .scope or .service below user@UID.service, or of the system. -EINVAL for a path
 * that is malformed, -ENOENT for one that is in no unit (the root, a bare slice, user@UID.service
 * itself or its init.scope: these must never be protected as if they were a game). */
int unit_path_parse(const char *cgroup, UnitPath *ret);
void unit_path_done(UnitPath *u);
#define auto_unit_path _cleanup_(unit_path_done)

/* The user in whose slice a group lies, UNIT_UID_NONE for others; any group, not only a unit's. */
uid_t unit_path_uid(const char *cgroup);

/* True if name matches one of the fnmatch(3) patterns. */
bool unit_matches(const char *name, char *const *patterns);

/* --- News ------------------------------------------------------------------------------------- */

typedef struct UnitMonitor UnitMonitor;

typedef enum UnitEvent {
	UNIT_ADDED,    /* a unit's directory appeared, or was there at the start */
	UNIT_CHANGED,  /* a process entered or left it for good (cgroup.procs, cgroup.events) */
	UNIT_REMOVED,  /* comes only for what was reported as added */
	UNIT_MARKED,   /* unit_monitor_get_marked() of the user of this slice says something else now */
	UNIT_RELOADED, /* systemd reloaded or re-executed: path is NULL, trust nothing */
} UnitEvent;

/* path: control group of the unit; "/user.slice/user-1000.slice/user@1000.service" and slices are
 * reported too, so that whoever set values above a unit hears of their loss. A unit that was
 * replaced by a new one of the same name comes as removed, then as added. */
typedef void (*unit_cb)(UnitEvent event, const char *path, void *userdata);

/* Hears of systemd's reloads over bus, which may be NULL, and works without systemd on it too. The
 * callback comes from the event loop, never from within a call, and may do what it likes with the
 * monitor. h stays the caller's and must outlive it. */
int unit_monitor_new(sd_event *event, sd_bus *bus, const Hierarchy *h, unit_cb cb, void *userdata,
		     UnitMonitor **ret);
UnitMonitor *unit_monitor_free(UnitMonitor *m);
DEFINE_CLEANUP(UnitMonitor *, unit_monitor_free)
#define auto_unit_monitor _cleanup_(unit_monitor_freep)

/* Directories watched for one user. A user owns his part of the tree and may fill it. */
#define UNIT_WATCHES_PER_USER 512

/* Starts watching the slices of a user, or with UNIT_UID_NONE those of the system (all but
 * user.slice); what is there already comes as UNIT_ADDED from the event loop. Watches slices,
 * user@UID.service, and unit directories that match one of interest (fnmatch patterns, copied;
 * NULL: none): never the whole tree. Again for the same user: takes the new patterns, and reports
 * what they add or take away. */
int unit_monitor_add_user(UnitMonitor *m, uid_t uid, char *const *interest);
/* Ends it, without news. */
void unit_monitor_remove_user(UnitMonitor *m, uid_t uid);

/* Units of a user whose windows mutter marks as having the focus: -ENODATA if it marks no unit at all, so is not there;
 * else how many, with the path of one in *ret if there is any, which is valid until the event loop runs again. More than
 * one says as little as none. Source: mutter's meta_display_update_focus_window(), which keeps the extended attribute
 * user.xdg.inactive-since on the directories of users' units: "-1", or since when they have no focus. */
int unit_monitor_get_marked(const UnitMonitor *m, uid_t uid, const char **ret);

/* 1 if this systemd has DeviceMemoryLow= (pull request 37079), else 0; known once the loop ran. */
int unit_monitor_has_device_memory(const UnitMonitor *m);
