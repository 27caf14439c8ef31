/* SPDX-License-Identifier: MIT */
/* For teardown: removes a directory and all in it, but nothing that is mounted there. */
#pragma once

#include <ftw.h>

#include "util.h"

static int remove_one(const char *path, _unused_ const struct stat *st, _unused_ int type,
		      _unused_ struct FTW *ftw)
{
	return remove(path);
}

static inline void remove_tree(const char *path)
{
	(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
