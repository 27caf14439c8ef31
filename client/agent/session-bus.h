/* SPDX-License-Identifier: MIT */
/* The session bus as a place of sources: a source finds its program there by name, and never starts it. */
#pragma once

#include <systemd/sd-bus.h>

#include "source.h"

int session_bus_probe(Probe *p);
/* Waits for nothing. The source fails when the bus ends. */
int session_bus_open(Source *s, sd_bus **ret);

/* Who has a name, from the first answer of the bus on. */
typedef struct BusName {
	const char *name;
	char *owner; /* unique name; NULL = nobody */
	bool known;  /* the bus has answered */
	void (*changed)(void *userdata);
	void *userdata;
} BusName;

/* Fill in name, changed and userdata first. To call owner by this name never starts anything. */
int bus_name_watch(sd_bus *bus, BusName *n);
void bus_name_done(BusName *n);
