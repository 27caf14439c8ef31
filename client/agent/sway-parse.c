/* SPDX-License-Identifier: MIT */
#include "sway-parse.h"

#include "app-id.h"
#include "json-read.h"

static const char magic[] = { 'i', '3', '-', 'i', 'p', 'c' };

ssize_t sway_parse_message(const char *data, size_t n, SwayMessage *ret)
{
	uint32_t size; /* in the machine's own byte order, as the type is */

	if (memcmp(data, magic, MIN(n, sizeof(magic))) != 0)
		return -EBADMSG;
	if (n < SWAY_HEADER_SIZE)
		return 0;
	memcpy(&size, data + sizeof(magic), sizeof(size));
	if (size > SWAY_MESSAGE_MAX)
		return -EMSGSIZE;
	if (n - SWAY_HEADER_SIZE < size)
		return 0;
	memcpy(&ret->type, data + sizeof(magic) + sizeof(size), sizeof(ret->type));
	ret->payload = data + SWAY_HEADER_SIZE;
	ret->size = size;
	return SWAY_HEADER_SIZE + (ssize_t)size;
}

size_t sway_put_message(char *buf, int32_t type, const char *payload)
{
	uint32_t size = (uint32_t)strlen(payload);

	memcpy(buf, magic, sizeof(magic));
	memcpy(buf + sizeof(magic), &size, sizeof(size));
	memcpy(buf + sizeof(magic) + sizeof(size), &type, sizeof(type));
	memcpy(buf + SWAY_HEADER_SIZE, payload, size);
	return SWAY_HEADER_SIZE + size;
}

bool sway_is_success(const SwayMessage *m)
{
	auto_json json_object *o = json_read(m->payload, m->size);

	return json_object_get_boolean(json_get(o, "success", json_type_boolean));
}

bool sway_is_move(const SwayMessage *m)
{
	static const char *const others[] = { "title", "mark", "urgent" };
	auto_json json_object *o = NULL;
	const char *change;

	if (m->type != SWAY_EVENT_WINDOW)
		return m->type == SWAY_EVENT_WORKSPACE;
	o = json_read(m->payload, m->size);
	change = json_get_text(o, "change");
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (streq(change, others[i]))
			return false;
	return true;
}

static json_object *find_id(json_object *con, const char *list, int64_t id)
{
	json_object *nodes = json_get(con, list, json_type_array);

	for (size_t i = 0; nodes && i < json_object_array_length(nodes); i++) {
		json_object *child = json_object_array_get_idx(nodes, i), *own = json_get(child, "id", json_type_int);

		if (own && json_object_get_int64(own) == id)
			return child;
	}
	return NULL;
}

/* The one within that has, or would have, the focus. */
static json_object *find_focused(json_object *con)
{
	json_object *order = json_get(con, "focus", json_type_array), *first, *child;

	if (!order || json_object_array_length(order) == 0)
		return NULL;
	first = json_object_array_get_idx(order, 0);
	if (!json_object_is_type(first, json_type_int))
		return NULL;
	child = find_id(con, "nodes", json_object_get_int64(first));
	return child ? child : find_id(con, "floating_nodes", json_object_get_int64(first));
}

static uint32_t get_steam(json_object *con)
{
	json_object *x = json_get(con, "window_properties", json_type_object);
	uint32_t appid = app_id_get_steam(json_get_text(con, "app_id"));

	return appid > 0 ? appid : app_id_get_steam(json_get_text(x, "class"));
}

int sway_parse_tree(const SwayMessage *m, DesktopView *ret)
{
	auto_json json_object *root = json_read(m->payload, m->size);
	json_object *con = root, *child;
	DesktopView v = {};

	if (!streq(json_get_text(root, "type"), "root"))
		return -EBADMSG;
	/* Where a container of several windows has the focus, its window of last is in front. */
	while ((child = find_focused(con)))
		con = child;
	if (json_get_pid(con, "pid", &v.pid)) {
		v.front = FRONT_PROCESS;
		v.appid = get_steam(con);
	} else if (streq(json_get_text(con, "type"), "workspace")) {
		v.front = FRONT_NOBODY;
	}
	*ret = v;
	return 0;
}
