/* SPDX-License-Identifier: MIT */
/* What every source says now, as a table or as JSON. */
#pragma once

#include "agent.h"

/* Prints it to stdout; true if one of them knows who is in front. */
bool once_print(Agent *a, bool json);
