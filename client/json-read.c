/* SPDX-License-Identifier: MIT */
#include <ctype.h>

#include "json-read.h"

/* Each container in a container takes two. */
#define DEPTH_MAX 256

json_object *json_read(const char *text, size_t n)
{
	json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
	auto_json json_object *o = NULL;
	size_t end;

	if (!tokener || n > INT32_MAX) {
		json_tokener_free(tokener);
		return NULL;
	}
	o = json_tokener_parse_ex(tokener, text, (int)n);
	end = json_tokener_get_parse_end(tokener);
	json_tokener_free(tokener);
	while (end < n && isspace((unsigned char)text[end]))
		end++;
	return end == n && json_object_is_type(o, json_type_object) ? TAKE_PTR(o) : NULL;
}

json_object *json_get(json_object *o, const char *key, json_type type)
{
	json_object *value;

	if (!json_object_is_type(o, json_type_object) || !json_object_object_get_ex(o, key, &value))
		return NULL;
	return json_object_is_type(value, type) ? value : NULL;
}

const char *json_get_text(json_object *o, const char *key)
{
	json_object *value = json_get(o, key, json_type_string);

	return value ? json_object_get_string(value) : "";
}

bool json_get_pid(json_object *o, const char *key, pid_t *ret)
{
	json_object *value = json_get(o, key, json_type_int);
	int64_t pid = value ? json_object_get_int64(value) : 0;

	if (pid <= 1 || pid > INT32_MAX)
		return false;
	*ret = (pid_t)pid;
	return true;
}
