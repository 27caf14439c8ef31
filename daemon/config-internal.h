/* SPDX-License-Identifier: MIT */
/* Private to config*.c. config-key.c knows the types of values and the keys, config-file.c reads
 * one file, config.c puts files together and answers questions about what they say. */
#pragma once

#include "config.h"

#define SECTION_NAME_MAX 49 /* inih: MAX_SECTION less the NUL; what is longer is cut */
#define WORDS_MAX 512 /* of a list */

/* --- config-key.c ---------------------------------------------------------------------------- */

typedef enum SectionKind {
	SECTION_POLICY,
	SECTION_COMPOSITOR,
	SECTION_MENU,
	SECTION_BACKGROUND,
	SECTION_KERNEL,
	SECTION_FOCUS,
	SECTION_USER,
	SECTION_GAME,    /* [game ID], into a GameConfig */
	SECTION_SERVICE, /* [service NAME], into a ServiceConfig */
	_SECTION_MAX,
} SectionKind;

extern const char *const config_sections[_SECTION_MAX];

typedef struct Key Key;

typedef struct KeyType {
	/* -EINVAL, -ERANGE, -E2BIG, -ENOMEM; *target is as before then. */
	int (*parse)(const Key *key, const char *value, bool append, void *target);
	void (*print)(FILE *f, const Key *key, const void *target);
	const char *expects;
	const char *const *words; /* the only values, where there are any */
	unsigned n_words;
	bool list; /* takes continuation lines; empty is a value and not "the default" */
} KeyType;

struct Key {
	SectionKind section;
	const char *name;
	const KeyType *type;
	size_t offset;
	const char *fallback; /* the default, as one would write it */
	uint64_t max;         /* of numbers and times; 0 = no bound */
};

extern const Key config_keys[]; /* the last has no name */
#define FOREACH_KEY(key) for (const Key *key = config_keys; key->name; key++)

/* Sets a key of an object (the Config, or one GameConfig or ServiceConfig in it). */
int config_key_set(const Key *key, void *object, const char *value, bool append);
/* All keys of these sections, which must be those of the object. */
int config_set_defaults(SectionKind first, SectionKind last, void *object);

/* --- config-file.c --------------------------------------------------------------------------- */

/* Where complaints go, and what they are about. */
typedef struct Complaints {
	const char *file;
	unsigned line; /* 0: the whole file */
	config_warn_cb warn;
	void *userdata;
	unsigned n;
} Complaints;

/* Returns -EINVAL, so that a caller may complain and return in one statement. */
int config_complain(Complaints *to, const char *format, ...) _printf_(2, 3);

/* Reads one file on top of c, which is left as it was when the file cannot be used. */
int config_read_file(Config *c, const char *file, Complaints *to);
