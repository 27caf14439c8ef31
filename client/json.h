/* SPDX-License-Identifier: MIT */
/* What the daemon tells, as json-c objects with the keys that vramctl(1) promises. Each function gives
 * a new object that the caller owns, NULL without memory (json-c prints that as null). */
#pragma once

#include "client.h"
#include "json-read.h"

void json_add(json_object *o, const char *key, json_object *value); /* takes value */
void json_add_string(json_object *o, const char *key, const char *s);
void json_add_u64(json_object *o, const char *key, uint64_t v);
void json_add_bool(json_object *o, const char *key, bool v);

json_object *json_from_amounts(const Amounts *a);
json_object *json_from_game(const Game *g);
json_object *json_from_games(const Snapshot *s);
json_object *json_from_snapshot(const Snapshot *s);

/* As one line if compact, else indented; with a newline. */
void json_print(FILE *f, json_object *o, bool compact);
