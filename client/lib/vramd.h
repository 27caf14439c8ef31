/* SPDX-License-Identifier: MIT */
/* libvramd: tells vramd who is in front. For compositors, launchers and other focus sources; see vramd(3).
 *
 * One object is one focus source with a connection of its own to the system bus. It may be used by one thread at
 * a time, several objects by several threads; there is no global state and no thread. No call waits for anybody but
 * vramd_hold(). Poll vramd_get_fd() for POLLIN and call vramd_process() then: the object connects again by
 * itself when bus or vramd come back, and repeats what it has to say.
 *
 * All functions return a negative errno on failure and leave everything as it was, except where another thing is said.
 * Descriptors that are passed in stay the caller's; they may be closed when the call has returned. Processes are named
 * by pidfd_open(2). */
#ifndef VRAMD_H
#define VRAMD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vramd vramd;

typedef enum vramd_menu {
	VRAMD_MENU_UNKNOWN, /* cannot be known: never the same as closed */
	VRAMD_MENU_CLOSED,
	VRAMD_MENU_OPEN,    /* an overlay lies over the game and takes its input */
} vramd_menu;

/* source: the name that vramd ranks by and shows, such as "gamescope"; 1 to 255 bytes. Returns at once: neither the
 * bus nor vramd need be there yet. -EINVAL, -ENOMEM, -EMFILE. */
int vramd_open(const char *source, vramd **ret);
/* Ends the connection. What was reported lives on for vramd's Grace=, so that a source that is started anew does not
 * cost a game its memory; vramd_withdraw() ends it at once. Takes NULL; returns NULL. */
vramd *vramd_close(vramd *v);

/* One descriptor for the object's whole life. */
int vramd_get_fd(const vramd *v);
/* Does what is to be done, without waiting. -EREMOTEIO: vramd refused the last report; vramd_get_error() says why.
 * Any other error is this process's own trouble (-ENOMEM); what it keeps from being sent is tried again with back-off.
 * Not having a bus or a vramd is none. */
int vramd_process(vramd *v);
/* What vramd said when it refused the last report or hold, a sentence for people: valid until the next call with v.
 * NULL: it was taken, or there is no answer yet. */
const char *vramd_get_error(const vramd *v);

/* The game in front: a process of it (-1: no game is in front) and its Steam number (0: not known). Sent to vramd at
 * once and in full, with what the setters below said; not sent again if nothing changed, so it may be called at every
 * focus change of the compositor. -EBADF: no pidfd. -ENOMEM, -EMFILE: perhaps not sent; the next call does it. */
int vramd_report_focus(vramd *v, int pidfd, uint32_t appid);
/* The same from who knows which window has the focus, but not whether that is a game's: vramd finds out by the marks
 * that launchers leave, its configuration and what others call a game (vramd-launchers(7)). appid: where the window
 * has it in its name, as Proton's steam_app_N do; it makes the window a game's. */
int vramd_report_window(vramd *v, int pidfd, uint32_t appid);
/* These add to the report and go out with the next of the two above; once there was one, also with the next
 * vramd_process(), for which the descriptor polls as readable. So what changes together is told together. */
int vramd_set_menu(vramd *v, vramd_menu menu);
int vramd_set_compositor(vramd *v, int pidfd); /* -1: not told */
int vramd_set_running(vramd *v, const int *pidfds, size_t n); /* games that run and are not in front; -E2BIG: over 14 */
/* Ends the report; the next of the two above makes a new one. */
int vramd_withdraw(vramd *v);

/* Protects the unit of a process until the returned descriptor and all its copies are closed, also by the end of their
 * holders. Waits for vramd's answer (at most 25 s), starting vramd if it can be started. who and why are shown to
 * people, at most 255 bytes each. -EBADF: no pidfd; -ENOENT: there is no vramd; -EREMOTEIO: it refused,
 * vramd_get_error() says why; -ETIMEDOUT: no answer; any other: this process's own trouble, as -EMFILE.
 * When vramd restarts the hold is gone; the descriptor then polls as broken (POLLERR). */
int vramd_hold(vramd *v, int pidfd, const char *who, const char *why);

#ifdef __cplusplus
}
#endif

#endif
