/* SPDX-License-Identifier: MIT */
/* X servers of this machine as places of sources: ":0" and so on. */
#pragma once

#include "source.h"
#include "xserver.h"

/* Every server whose socket this user owns. */
int x_places_probe(Probe *p);
/* The server of $DISPLAY, if it is one of this machine, whoever owns it. */
int x_place_probe_own(Probe *p);

/* Errors of xserver_open(). */
int x_place_open(sd_event *event, const char *place, char *const *files, const XCallbacks *callbacks, void *userdata,
		 XServer **ret);
