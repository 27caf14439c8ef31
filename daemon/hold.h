/* SPDX-License-Identifier: MIT */
/* Layer 3. Holds: protection that lasts as long as a file descriptor is open, like logind's inhibitor
 * locks (org.freedesktop.login1(5)). The client gets the writing end of a pipe; when its last copy is
 * closed, on purpose or by death, the hold is over. */
#pragma once

#include <systemd/sd-event.h>

#include "process.h"

typedef struct HoldTable HoldTable;

typedef struct Hold {
	HoldTable *table;
	uid_t uid;        /* of the caller: who pays for it */
	pid_t caller;     /* pid of the caller when it asked, for people to read */
	char *who, *why;
	Process *process; /* whose unit is protected */
	uint64_t order;   /* rises: the newest hold of a user counts as its game in front */
	int fd;           /* reading end */
	sd_event_source *source;
} Hold;

/* The holder closed its descriptor; the hold is freed right after. From the loop. */
typedef void (*hold_cb)(const Hold *hold, void *userdata);

int hold_table_new(sd_event *event, hold_cb released, void *userdata, HoldTable **ret);
HoldTable *hold_table_free(HoldTable *t);

/* -EDQUOT: VRAMD_HOLDS_PER_UID or VRAMD_HOLDS_TOTAL reached; nothing is allocated then. */
int hold_check_limits(const HoldTable *t, uid_t uid);
/* Makes a hold; *ret_fd is the caller's descriptor, owned by the caller of this function. */
int hold_new(HoldTable *t, uid_t uid, pid_t caller, const char *who, const char *why, Process *process,
	     int *ret_fd, Hold **ret);

/* Holds in the order in which they were made. */
size_t hold_count(const HoldTable *t);
const Hold *hold_at(const HoldTable *t, size_t i);
/* The newest hold on processes of a user; NULL if there is none. */
const Hold *hold_newest(const HoldTable *t, uid_t uid);
