/* SPDX-License-Identifier: MIT */
/* Layer 3. Asks polkit, without waiting: a round trip costs milliseconds, sometimes a password.
 * Source: org.freedesktop.PolicyKit1.Authority, CheckAuthorization(). */
#pragma once

#include <systemd/sd-bus.h>

#include "util.h"

typedef struct Polkit Polkit;

int polkit_new(sd_bus *bus, Polkit **ret);
/* Drops the questions that are still open; their callers get no answer. */
Polkit *polkit_free(Polkit *p);

/* The answer: 1 = yes, 0 = no, -EAGAIN = only interactively, and the caller did not allow that, other
 * negative errno = polkit could not be asked. The callback replies to the call itself. */
typedef void (*polkit_cb)(sd_bus_message *call, int verdict, void *userdata);

/* Asks whether the sender of a method call, of user uid, may do an action. Holds a reference on the call until
 * the answer is there. -EBUSY: the user has too many questions open, or all have together. */
int polkit_check(Polkit *p, sd_bus_message *call, uid_t uid, const char *action, polkit_cb cb, void *userdata);
