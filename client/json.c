/* SPDX-License-Identifier: MIT */
#include "json.h"

void json_add(json_object *o, const char *key, json_object *value)
{
	(void)json_object_object_add(o, key, value);
}

void json_add_string(json_object *o, const char *key, const char *s)
{
	json_add(o, key, json_object_new_string(strempty(s)));
}

void json_add_u64(json_object *o, const char *key, uint64_t v)
{
	json_add(o, key, json_object_new_uint64(v));
}

void json_add_bool(json_object *o, const char *key, bool v)
{
	json_add(o, key, json_object_new_boolean(v));
}

json_object *json_from_amounts(const Amounts *a)
{
	json_object *o = json_object_new_object();

	for (size_t i = 0; i < a->n; i++)
		json_add_u64(o, a->v[i].region, a->v[i].bytes);
	return o;
}

static json_object *from_region(const Region *r)
{
	json_object *o = json_object_new_object();

	json_add_string(o, "name", r->name);
	json_add_string(o, "device", r->device);
	json_add_string(o, "pci", r->pci);
	json_add_string(o, "driver", r->driver);
	json_add_bool(o, "integrated", r->integrated);
	json_add_u64(o, "capacity", r->capacity);
	json_add_u64(o, "current", r->current);
	json_add_u64(o, "protected", r->protected);
	json_add_u64(o, "link_bandwidth", r->bandwidth);
	return o;
}

json_object *json_from_game(const Game *g)
{
	json_object *o = json_object_new_object();

	json_add_string(o, "object", g->object);
	json_add_u64(o, "appid", g->appid);
	json_add_string(o, "name", g->name);
	json_add_string(o, "unit", g->unit);
	json_add_string(o, "control_group", g->control_group);
	json_add_u64(o, "uid", g->uid);
	json_add_string(o, "mark", g->mark);
	json_add_string(o, "role", g->role);
	json_add_bool(o, "foreground", g->foreground);
	json_add(o, "current", json_from_amounts(&g->current));
	json_add(o, "peak", json_from_amounts(&g->peak));
	json_add(o, "low", json_from_amounts(&g->low));
	json_add(o, "min", json_from_amounts(&g->min));
	json_add(o, "eased", json_from_amounts(&g->eased));
	json_add(o, "spilled", json_from_amounts(&g->spilled));
	json_add(o, "evicted", json_from_amounts(&g->evicted));
	json_add(o, "evictions", json_from_amounts(&g->evictions));
	json_add_u64(o, "eased_usec", g->eased_usec);
	return o;
}

json_object *json_from_games(const Snapshot *s)
{
	json_object *a = json_object_new_array();

	for (size_t i = 0; i < s->n_games; i++)
		(void)json_object_array_add(a, json_from_game(&s->games[i]));
	return a;
}

static json_object *from_regions(const Snapshot *s)
{
	json_object *a = json_object_new_array();

	for (size_t i = 0; i < s->n_regions; i++)
		(void)json_object_array_add(a, from_region(&s->regions[i]));
	return a;
}

static json_object *from_holds(const Snapshot *s)
{
	json_object *a = json_object_new_array();

	for (size_t i = 0; i < s->n_holds; i++) {
		const Hold *h = &s->holds[i];
		json_object *o = json_object_new_object();

		json_add_string(o, "who", h->who);
		json_add_string(o, "why", h->why);
		json_add_u64(o, "uid", h->uid);
		json_add_u64(o, "pid", h->pid);
		json_add_string(o, "unit", h->unit);
		json_add_string(o, "game", h->game);
		(void)json_object_array_add(a, o);
	}
	return a;
}

json_object *json_from_snapshot(const Snapshot *s)
{
	json_object *o = json_object_new_object(), *abilities = json_object_new_array();
	const Manager *m = &s->manager;

	for (char **a = m->abilities; a && *a; a++)
		(void)json_object_array_add(abilities, json_object_new_string(*a));
	json_add_string(o, "version", m->version);
	json_add_string(o, "state", m->state);
	json_add_string(o, "reason", m->reason);
	json_add(o, "foreground",
		 snapshot_foreground(s) ? json_object_new_string(m->foreground) : NULL);
	json_add_string(o, "menu", m->menu);
	json_add_string(o, "focus_source", m->source);
	json_add(o, "abilities", abilities);
	json_add(o, "regions", from_regions(s));
	json_add(o, "games", json_from_games(s));
	json_add(o, "holds", from_holds(s));
	return o;
}

void json_print(FILE *f, json_object *o, bool compact)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;

	flags |= compact ? JSON_C_TO_STRING_PLAIN : JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED;
	(void)fprintf(f, "%s\n", json_object_to_json_string_ext(o, flags));
}
