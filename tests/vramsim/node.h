/* SPDX-License-Identifier: MIT */
#pragma once

/* Opens a node of a simulated GPU; -ENODEV if it is another driver's, where vramsim's ioctl numbers mean something
 * else. */
int vramsim_open(const char *node, int *ret_fd);
