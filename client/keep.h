/* SPDX-License-Identifier: MIT */
/* What lasts only as long as somebody keeps it up: a hold (until its descriptor is closed) and a focus
 * report (until the bus name goes). Both are made again when vramd comes back. */
#pragma once

#include "client.h"

typedef struct Keep Keep;
/* Makes it; negative errno and the error. */
typedef int (*keep_cb)(Keep *k, sd_bus_error *error);

struct Keep {
	sd_bus *bus;
	keep_cb make;
	const char *what; /* "hold", for messages */
	bool interactive; /* polkit may ask the user */
	uint64_t timeout; /* of a call, microseconds; 0 = sd-bus's own */
	OwnerWatch watch;
	bool made;

	/* a hold */
	int pidfd;            /* not owned */
	const char *who, *why;
	int fd;               /* owned; -EBADF = not held */

	/* a focus report */
	int compositor;       /* not owned; -EBADF = not told */
	uint32_t appid;
	const char *menu;
	bool persist;
};

int keep_make_hold(Keep *k, sd_bus_error *error);
int keep_make_focus(Keep *k, sd_bus_error *error);
/* Makes it; from then on, while the bus is attached to an event loop, makes it again whenever vramd
 * comes back, and says what happens on stderr. If the first time fails, it is still made as soon as
 * vramd appears. */
int keep_start(Keep *k, sd_bus_error *error);
void keep_done(Keep *k);
