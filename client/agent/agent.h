/* SPDX-License-Identifier: MIT */
/* All sources: where they may be, which of them run, when they are tried again, and whose word counts. */
#pragma once

#include "merge.h"
#include "source.h"

typedef struct Agent Agent;

/* What counts has been decided anew. source: NULL if no source knows who is in front. */
typedef void (*agent_cb)(const char *source, const State *state, void *userdata);

typedef struct AgentOptions {
	const char *only; /* name of the only source that is used; NULL = all */
	bool all_at_once; /* also those whose word cannot count now */
	agent_cb decided;
	void *userdata;
} AgentOptions;

/* -EINVAL: there is no source of the name. */
int agent_new(sd_event *event, const AgentOptions *options, Agent **ret);
Agent *agent_free(Agent *a);
DEFINE_CLEANUP(Agent *, agent_free)
#define auto_agent _cleanup_(agent_freep)

/* Has every source that was started said something? */
bool agent_is_settled(const Agent *a);

/* One line of "--once": a place, or a type that has none. */
typedef struct AgentLine {
	const char *source, *place; /* place: NULL = nowhere */
	const char *why;            /* why its state is not known; NULL = it is */
	bool counts;
	State state;
} AgentLine;
typedef void (*agent_line_cb)(const AgentLine *line, void *userdata);
void agent_each(Agent *a, agent_line_cb cb, void *userdata);

/* The names of all types; NULL behind the last. */
const char *agent_source_name(size_t i);
