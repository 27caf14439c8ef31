/* SPDX-License-Identifier: MIT */
/* Sockets of this machine that lie in the file system. */
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include "util.h"

/* Is there a socket of this user's at the path? */
bool unix_socket_is_own(int dir_fd, const char *path);

/* A connection to it that does not block, made without waiting: one whose queue is full is as good as one that is not
 * there (-EAGAIN). ret_peer: who listens, by the kernel's word. */
int unix_socket_connect(const char *path, struct ucred *ret_peer);
