/* SPDX-License-Identifier: MIT */
/* Layer 1. vramd.conf(5): a table of keys, inih, drop-ins.
 *
 * Files are read in this order, later values win: /etc/vramd/vramd.conf, then the drop-ins
 * vramd/vramd.conf.d/<name>.conf of /usr/lib, /run and /etc together, sorted by file name, where a
 * name in /etc hides the same one in /run, and that the one in /usr/lib (as in systemd.conf(5)).
 * Every bad line is reported with file, line and key, and leaves the value as it was. */
#pragma once

#include <sys/types.h>

#include "fileio.h"
#include "knob.h"
#include "parse.h"

/* Does vramd-agent give games that Steam starts in its own unit one of their own? */
typedef enum OwnScope { OWN_SCOPE_AUTO, OWN_SCOPE_NEVER, _OWN_SCOPE_MAX } OwnScope;
const char *own_scope_to_string(OwnScope o);

typedef enum Ownership { OWNERSHIP_EXCLUSIVE, OWNERSHIP_SHARE, _OWNERSHIP_MAX } Ownership;
const char *ownership_to_string(Ownership o);

/* What a knob of the kernel is to be. */
typedef struct KnobWish {
	enum {
		KNOB_UNSET, /* of a game: as [kernel] says */
		KNOB_KEEP,  /* never touched */
		KNOB_SET,
	} kind;
	uint32_t value;
} KnobWish;

/* [game ID]: what is different for one game while it is in front. */
typedef struct GameConfig {
	enum { GAME_BY_APPID, GAME_BY_EXE, GAME_BY_UNIT } by;
	uint32_t appid;
	char *pattern;  /* exe: file name without case; unit: fnmatch(3) */
	char *name;     /* Name=, shown instead of the program's */
	Size min, low;  /* SIZE_UNSET: as [policy] says */
	bool protect;   /* Protect=no: never protect it */
	bool easing;    /* Easing=no: it fights at once */
	Size make_room; /* MakeRoom=: what is to be free when it starts; SIZE_UNSET: as it comes */
	KnobWish knobs[_KNOB_MAX];
} GameConfig;

/* [service NAME]: a unit with a claim of its own (an AI job, a stream). */
typedef struct ServiceConfig {
	char *unit;     /* system unit, or a user's unit of that name */
	Size low;       /* while no game is in front */
	Size max;       /* ceiling while one is; SIZE_UNSET = none */
} ServiceConfig;

typedef struct Config {
	/* [policy] */
	bool enabled;            /* Enabled=no: touch nothing, State=paused */
	bool force;              /* Force=yes: also regions with nothing to gain */
	Ownership ownership;
	OwnScope own_scope;
	unsigned reassert_limit; /* times a minute that a contested value is written again */
	Size reserve;            /* unset = max(C/16, compositor's use x 1.25), at most C/4 */
	Size game_low;           /* unset = C - reserve */
	Size game_min;           /* 0 */
	uint64_t debounce_usec;  /* "nobody in front" shorter than this is ignored */
	uint64_t grace_usec;     /* a source that vanished keeps its last word for so long */
	uint64_t easing_usec;    /* how long the game in front does not fight for what it lost; 0 = at once */

	/* [compositor] */
	Size compositor_floor;   /* unset = its use + 25 %, at least C/32, at most C/8 */
	char **compositor_units; /* fnmatch patterns, for sources that do not name the compositor */

	/* [menu] */
	Size menu_share;         /* of C, at most C/8 */
	char **menu_units;       /* fnmatch patterns of who draws the menu: Steam's own units */

	/* [background] */
	unsigned background_share; /* percent of what a game in the background uses */
	Size background_max;     /* ceiling on siblings of the game in front; SIZE_UNSET = none */
	char **background_units; /* which siblings: fnmatch patterns, "*" */

	/* [kernel] */
	KnobWish knobs[_KNOB_MAX];

	/* [focus] */
	bool worker;             /* start an agent for users who have none */

	/* [user] */
	char **allow_users;      /* names or numbers; empty = all */
	char **deny_users;
	char **deny_games;       /* fnmatch on unit, exe or name, or an appid: never protected */
	char **allow_games;      /* empty = all; else only these */

	GameConfig *games;
	size_t n_games;
	ServiceConfig *services;
	size_t n_services;
} Config;

/* One complaint; line 0 if the whole file is meant. Text is for one log line, values in quotes. */
typedef void (*config_warn_cb)(const char *file, unsigned line, const char *text, void *userdata);

/* The built-in defaults. */
int config_new(Config **ret);
Config *config_free(Config *c);
DEFINE_CLEANUP(Config *, config_free)
#define auto_config _cleanup_(config_freep)

/* Defaults plus all files. main_file NULL means /etc/vramd/vramd.conf, which may be missing; one
 * that was named (--config) must exist. Bad lines are counted in *ret_bad and told to warn.
 * Negative only when nothing could be built: -ENOMEM, or a named file that cannot be read. */
int config_load(const Roots *roots, const char *main_file, config_warn_cb warn, void *userdata,
		Config **ret, unsigned *ret_bad);

/* One file's text on top of *c, for tests and the fuzzer. Returns the number of bad lines. */
int config_parse_text(Config *c, const char *file, const char *text, config_warn_cb warn,
		      void *userdata);

/* The first [game] section that fits: by appid, then exe, then unit; NULL = none. */
const GameConfig *config_find_game(const Config *c, uint32_t appid, const char *exe,
				   const char *unit);
/* False if allow and deny lists rule a game out (a deny always wins). */
bool config_game_allowed(const Config *c, uint32_t appid, const char *exe, const char *unit,
			 const char *name);
bool config_user_allowed(const Config *c, uid_t uid);

/* Prints every key with its present value, as a file that could be read back. */
void config_print(const Config *c, FILE *f);
