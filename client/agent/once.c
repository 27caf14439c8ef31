/* SPDX-License-Identifier: MIT */
#include <json-c/json.h>

#include "once.h"
#include "process-ref.h"

typedef struct Printer {
	json_object *list; /* NULL: a table */
	int source_width, place_width;
	bool known;
} Printer;

static const char *const menu_names[] = {
	[VRAMD_MENU_UNKNOWN] = "unknown",
	[VRAMD_MENU_CLOSED] = "closed",
	[VRAMD_MENU_OPEN] = "open",
};
static const char *const front_names[] = {
	[FRONT_UNKNOWN] = "unknown",
	[FRONT_NOBODY] = "nobody",
	[FRONT_PROCESS] = "process",
};

/* A program names itself: nothing of it may reach the terminal but plain letters. */
static void make_plain(char *s)
{
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = '?';
}

static void measure_line(const AgentLine *l, void *userdata)
{
	Printer *p = userdata;

	p->source_width = MAX(p->source_width, (int)strlen(l->source));
	p->place_width = MAX(p->place_width, (int)strlen(strempty(l->place)));
}

static void print_line(const Printer *p, const AgentLine *l)
{
	const State *s = &l->state;
	char who[40] = "-", appid[16] = "-", comm[16];

	(void)printf("%c %-*s %-*s ", l->counts ? '*' : ' ', p->source_width, l->source, p->place_width,
		     l->place ? l->place : "-");
	if (l->why) {
		(void)printf("%s\n", l->why);
		return;
	}
	if (s->front == FRONT_PROCESS) {
		process_ref_get_comm(&s->game, comm);
		make_plain(comm);
		(void)snprintf(who, sizeof(who), "%d (%s)", s->game.pid, comm);
	} else {
		(void)strcpy(who, "nobody");
	}
	if (s->appid > 0)
		(void)snprintf(appid, sizeof(appid), "%u", s->appid);
	(void)printf("%-26s %-10s %-8s %zu%s\n", who, appid, menu_names[s->menu], s->n_running,
		     s->nested ? " nested" : "");
}

static void add_pid(json_object *o, const char *key, const ProcessRef *p)
{
	(void)json_object_object_add(o, key, p->pid > 0 ? json_object_new_int(p->pid) : NULL);
}

static void add_string(json_object *o, const char *key, const char *s)
{
	(void)json_object_object_add(o, key, s ? json_object_new_string(s) : NULL);
}

static json_object *line_to_json(const AgentLine *l)
{
	json_object *o = json_object_new_object(), *running = json_object_new_array();
	const State *s = &l->state;

	add_string(o, "source", l->source);
	add_string(o, "place", l->place);
	(void)json_object_object_add(o, "counts", json_object_new_boolean(l->counts));
	add_string(o, "front", front_names[s->front]);
	add_string(o, "why", l->why);
	add_pid(o, "pid", &s->game);
	(void)json_object_object_add(o, "window", json_object_new_boolean(s->window));
	(void)json_object_object_add(o, "appid", json_object_new_int64(s->appid));
	add_string(o, "menu", menu_names[s->menu]);
	add_pid(o, "compositor", &s->compositor);
	(void)json_object_object_add(o, "nested", json_object_new_boolean(s->nested));
	for (size_t i = 0; i < s->n_running; i++)
		(void)json_object_array_add(running, json_object_new_int(s->running[i].pid));
	(void)json_object_object_add(o, "running", running);
	return o;
}

static void on_line(const AgentLine *l, void *userdata)
{
	Printer *p = userdata;

	p->known = p->known || l->counts;
	if (p->list)
		(void)json_object_array_add(p->list, line_to_json(l));
	else
		print_line(p, l);
}

bool once_print(Agent *a, bool json)
{
	Printer p = {
		.list = json ? json_object_new_array() : NULL,
		.source_width = strlen("SOURCE"),
		.place_width = strlen("PLACE"),
	};

	agent_each(a, measure_line, &p);
	if (!json)
		(void)printf("  %-*s %-*s %-26s %-10s %-8s %s\n", p.source_width, "SOURCE", p.place_width, "PLACE",
			     "IN FRONT", "APPID", "MENU", "RUNNING");
	agent_each(a, on_line, &p);
	if (json) {
		(void)puts(json_object_to_json_string_ext(p.list, JSON_C_TO_STRING_PRETTY |
									  JSON_C_TO_STRING_NOSLASHESCAPE));
		(void)json_object_put(p.list);
	}
	return p.known;
}
