/* SPDX-License-Identifier: MIT */
/* JSON that another program wrote, by json-c: whatever is missing or of another type is simply not there. */
#pragma once

#include <json-c/json.h>
#include <sys/types.h>

#include "util.h"

static inline void json_putp(json_object **o)
{
	(void)json_object_put(*o);
}
#define auto_json _cleanup_(json_putp)

/* One whole object, with nothing behind it; else NULL. The caller puts it. */
json_object *json_read(const char *text, size_t n);

/* Of the object, which may be NULL; the object owns it. */
json_object *json_get(json_object *o, const char *key, json_type type);
const char *json_get_text(json_object *o, const char *key); /* "" if there is none */
bool json_get_pid(json_object *o, const char *key, pid_t *ret); /* of a process that may be in front: > 1 */
