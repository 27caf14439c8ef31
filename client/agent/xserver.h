/* SPDX-License-Identifier: MIT */
/* A connection to an X server that never waits for an answer: requests are made in batches, and a batch is answered
 * by a callback. Nothing is drawn; the root window's properties are watched. */
#pragma once

#include <systemd/sd-event.h>
#include <xcb/xcb.h>

#include "util.h"

#define X_BATCH_MAX 16

typedef struct XServer XServer;

/* Set by the user. Callbacks may make requests, but must not close the connection: that is for later, when the event
 * loop has returned from them. */
typedef struct XCallbacks {
	void (*answered)(XServer *x, void *userdata); /* every request of the batch has its answer */
	/* A property of the root window was written; XCB_ATOM_NONE: a window that is watched is gone. */
	void (*changed)(XServer *x, xcb_atom_t atom, void *userdata);
	/* By itself, or because a batch had no answer within SOURCE_ANSWER_MAX_USEC. */
	void (*ended)(XServer *x, void *userdata);
} XCallbacks;

/* Connects to a server's socket, by path: names that anybody may take (abstract sockets) are not tried. files: where
 * cookies may be, ending with NULL; may itself be NULL. Waits for the server's greeting, at most 2 s, since xcb knows
 * no other way. -ECONNREFUSED: nobody listens there; -EACCES: refused; -EAGAIN: it does not greet, or its queue is full.
 * userdata goes to the callbacks. */
int xserver_open(sd_event *event, const char *socket, unsigned display, char *const *files,
		 const XCallbacks *callbacks, void *userdata, XServer **ret);
XServer *xserver_close(XServer *x);

/* The process that listens on the socket, by the kernel's word, and its uid. */
pid_t xserver_get_peer(const XServer *x, uid_t *ret_uid);
xcb_window_t xserver_get_root(const XServer *x);

/* From now on changes of the root window's properties are told. */
void xserver_watch(XServer *x);
/* And when this window goes. */
void xserver_watch_window(XServer *x, xcb_window_t window);

/* Requests; each takes the next place in the batch. The answers stay until the next batch begins. */
void xserver_ask_atom(XServer *x, const char *name);
void xserver_ask_property(XServer *x, xcb_window_t window, xcb_atom_t atom, uint32_t max_words);
/* By the server's word (XRes). A window that is gone has one too: that of whoever has its numbers now. */
void xserver_ask_pid(XServer *x, xcb_window_t window);
void xserver_send(XServer *x);
/* Hears nothing until it is resumed: what comes meanwhile costs no wake-up, and is told by xserver_resume(). */
void xserver_pause(XServer *x);
void xserver_resume(XServer *x);
bool xserver_is_waiting(const XServer *x); /* a batch is on its way: no requests now */

bool xserver_is_error(const XServer *x, size_t place);
xcb_atom_t xserver_get_atom(const XServer *x, size_t place); /* XCB_ATOM_NONE on an error */
/* The 32-bit items of a property; false if it is absent, or is not of that kind. */
bool xserver_get_words(const XServer *x, size_t place, const uint32_t **ret, size_t *ret_n);
/* The bytes of a property that is text; false if it is absent, or is not of that kind. */
bool xserver_get_text(const XServer *x, size_t place, const char **ret, size_t *ret_size);
pid_t xserver_get_pid(const XServer *x, size_t place); /* 0 if it is not known */
