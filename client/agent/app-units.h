/* SPDX-License-Identifier: MIT */
/* The units of applications that the user's service manager has now, by their control groups. */
#pragma once

#include <systemd/sd-event.h>

#include "util.h"

typedef struct AppUnits AppUnits;

/* changed: one came or went, so another answer may be right. */
int app_units_new(sd_event *event, void (*changed)(void *userdata), void *userdata, AppUnits **ret);
AppUnits *app_units_free(AppUnits *u);

/* A process of the only unit of that application; which one of it is as good as another, as all are protected as one.
 * -ENOENT: there is no such unit, -ENOTUNIQ: there are several, and nobody knows which one it is. */
int app_units_find(AppUnits *u, const char *app_id, pid_t *ret);
