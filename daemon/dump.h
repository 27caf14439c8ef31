/* SPDX-License-Identifier: MIT */
/* Layer 5. The live state as text for people, for `vramctl dump` and bug reports. */
#pragma once

#include "manager.h"

/* The caller frees *ret. */
int dump_state(Manager *m, char **ret, size_t *ret_size);
