/* SPDX-License-Identifier: MIT */
/* Layer 1. The knobs as they are now: /sys/module/MODULE/parameters/. What is there is probed each time, never by
 * version: a module may be loaded later, and one that is loaded anew has its old values again. */
#pragma once

#include "fileio.h"
#include "knob.h"

/* inode, which may be NULL, is another one when the module was loaded anew. -ENOENT: this kernel has no such knob, or
 * its module is not loaded; -EBADMSG: its text is none of ours. */
int knob_read(const Roots *roots, Knob knob, uint32_t *ret, uint64_t *ret_inode);
/* -EROFS: the module came after vramd's sandbox was made. */
int knob_write(const Roots *roots, Knob knob, uint32_t value);

/* Does the kernel by itself keep somebody who lost memory from fighting for it? Then nobody else has to. */
bool knobs_throttle_active(const Roots *roots);
