/* SPDX-License-Identifier: MIT */
/* Layer 3. Who says who is in front, and whom we believe.
 *
 * Each source sends its full state; a report lives until its sender leaves the bus (plus a grace time,
 * since compositors restart), sends another one, or withdraws it. Of a user's live reports the best
 * ranked source wins, then the newest. "Nobody in front" counts only once it has lasted for the
 * debounce time: between two windows of one game there is often a moment of nobody. */
#pragma once

#include <systemd/sd-event.h>

#include "process.h"
#include "world.h"

#define FOCUS_REPORTS_PER_UID 16

/* A report; owns what it points to. */
typedef struct FocusReport {
	char *sender;     /* unique bus name; "" for a persistent report, which has no sender */
	char *source;     /* "gamescope", "manual", ... */
	uint64_t seq;     /* rising with one sender; 0 = not numbered */
	Process *game;    /* NULL = nobody */
	bool window;      /* game is whoever's window has the focus: a game only if the judge says so */
	uint32_t appid;   /* as the source knows it; 0 = it does not */
	MenuState menu;
	Process *compositor;
	Process **running; /* games that run but are not in front */
	size_t n_running;
} FocusReport;

FocusReport *focus_report_free(FocusReport *r);
DEFINE_CLEANUP(FocusReport *, focus_report_free)
#define auto_focus_report _cleanup_(focus_report_freep)

/* Rank of a source: lower is better. A source that we do not know by name is taken for a compositor
 * that knows its own windows. */
unsigned focus_source_rank(const char *source);

typedef struct Focus Focus;
/* A report of a user changed, in whatever part: the one that counts, or another one. Called from within the calls below, and from
 * the loop when a debounce or grace time ends. */
typedef void (*focus_cb)(uid_t uid, void *userdata);
/* Does a process whose window has the focus belong to a game? */
typedef bool (*focus_judge)(const Process *p, void *userdata);

int focus_new(sd_event *event, focus_cb changed, focus_judge judge, void *userdata, Focus **ret);
Focus *focus_free(Focus *f);
void focus_set_times(Focus *f, uint64_t debounce_usec, uint64_t grace_usec);

/* Takes the report over (also on failure). 1 if it is news, 0 if it says the same again or is older than
 * what the sender said before; -EDQUOT above FOCUS_REPORTS_PER_UID senders; -ENOMEM. */
int focus_report(Focus *f, uid_t uid, FocusReport *report);
/* Ends the sender's report at once; of a sender that has none, the persistent one of a user (FOCUS_ALL_USERS:
 * of each). 0 if there was none. */
#define FOCUS_ALL_USERS ((uid_t)-1)
int focus_withdraw(Focus *f, uid_t uid, const char *sender);
/* The sender left the bus: its report lives on for the grace time. */
void focus_sender_gone(Focus *f, const char *sender);
/* A process ended: whoever named it in front is taken to say nobody, without debounce. */
void focus_process_gone(Focus *f, const Process *p);
/* The user logged out. */
void focus_forget_user(Focus *f, uid_t uid);

/* The report that counts for a user, or NULL; valid until the next call that may change it. */
const FocusReport *focus_get(const Focus *f, uid_t uid);

/* Calls back for every live report, winning one first; gone = its sender has left. */
typedef void (*focus_each_cb)(uid_t uid, const FocusReport *report, bool wins, bool gone, void *userdata);
void focus_each(const Focus *f, focus_each_cb cb, void *userdata);
