/* SPDX-License-Identifier: MIT */
/* What was decided -> vramd, under the name of the source that knows it. */
#pragma once

#include <systemd/sd-event.h>

#include "state.h"

typedef struct Report Report;

int report_new(sd_event *event, Report **ret);
/* Ends the connection: the last word stays for vramd's Grace=. */
Report *report_free(Report *r);
DEFINE_CLEANUP(Report *, report_free)
#define auto_report _cleanup_(report_freep)

/* source: NULL if nobody knows who is in front: the last word stays for vramd's Grace=. */
int report_update(Report *r, const char *source, const State *state);
