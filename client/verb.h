/* SPDX-License-Identifier: MIT */
/* One verb per file. Options are tables, so that parsing and --help cannot differ. */
#pragma once

#include "client.h"
#include "output.h"

typedef enum OptionKind {
	OPTION_FLAG,   /* bool: set to true */
	OPTION_STRING, /* const char *: points into argv */
	OPTION_CHOICE, /* the same, where "=VALUE" may be left out: then it is what missing says */
	OPTION_U32,    /* uint32_t */
	OPTION_USEC,   /* uint64_t, microseconds; see parse_usec() */
} OptionKind;

typedef struct Option {
	const char *name;
	char letter; /* 0 = none */
	OptionKind kind;
	const char *value; /* what --help calls the value */
	const char *help;
	void *target;
	const char *missing;
} Option;

typedef struct Context {
	Output out;
	bool json;
} Context;

typedef struct Verb {
	const char *name;
	const char *args;        /* synopsis behind the options, "" for none */
	const char *summary;     /* one line of vramctl --help */
	const char *description; /* paragraph of vramctl VERB --help */
	const Option *options;   /* ends with {}; may be NULL */
	bool json;               /* reads something: has --json */
	bool command;            /* options end at the first argument: a command line follows */
	unsigned min_args, max_args;
	int (*run)(Context *c, int argc, char **argv); /* returns an exit status */
} Verb;

extern const Verb verb_status, verb_games, verb_top, verb_watch, verb_run, verb_hold, verb_focus,
	verb_tune, verb_reload, verb_doctor, verb_dump;
