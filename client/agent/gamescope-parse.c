/* SPDX-License-Identifier: MIT */
#include "gamescope-parse.h"

typedef struct Window {
	uint32_t xid, appid, pid;
} Window;

static size_t count_windows(const Cardinals *c)
{
	return c->n / 3;
}

static Window get_window(const Cardinals *c, size_t i)
{
	return (Window){ c->v[3 * i], c->v[3 * i + 1], c->v[3 * i + 2] };
}

/* Any program of the user may write these properties. */
static bool is_pid(uint32_t v)
{
	return v > 1 && v <= INT32_MAX;
}

/* The process of a window; 0 if there is none, or if it cannot be known which one. XIDs repeat across servers, and
 * the triplets do not say of which server they are: only of one appid is any process as good as the other. */
static pid_t find_pid(const GamescopeProperties *p, bool by_appid, uint32_t appid)
{
	uint32_t xid = p->window.n > 0 ? p->window.v[0] : 0, exact = 0, any = 0;

	for (size_t i = 0; i < count_windows(&p->windows); i++) {
		Window w = get_window(&p->windows, i);

		if (!is_pid(w.pid) || (by_appid && w.appid != appid))
			continue;
		if (w.xid != xid || xid == 0) {
			any = any ? any : w.pid;
			continue;
		}
		if (exact > 0 && exact != w.pid && (!by_appid || appid == 0))
			return 0;
		exact = exact ? exact : w.pid;
	}
	/* appid 0 is what programs have that Steam did not start: not one of them is the other's. */
	return (pid_t)(exact > 0 || !by_appid || appid == 0 ? exact : any);
}

static vramd_menu find_menu(const Cardinals *app, uint32_t shown)
{
	if (app->n == 0)
		return VRAMD_MENU_UNKNOWN;
	return app->v[0] == shown ? VRAMD_MENU_CLOSED : VRAMD_MENU_OPEN;
}

static bool is_listed(const GamescopeView *v, uint32_t pid)
{
	for (size_t i = 0; i < v->n_running; i++)
		if (v->running[i] == (pid_t)pid)
			return true;
	return false;
}

static bool is_first_of_its_app(const Cardinals *windows, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (get_window(windows, k).appid == get_window(windows, i).appid && is_pid(get_window(windows, k).pid))
			return false;
	return true;
}

/* Of each game one process, as they share its unit. */
static void find_running(const GamescopeProperties *p, GamescopeView *v)
{
	for (size_t i = 0; i < count_windows(&p->windows) && v->n_running < STATE_RUNNING_MAX; i++) {
		Window w = get_window(&p->windows, i);

		if (!is_pid(w.pid) || w.appid == 0 || w.appid == GAMESCOPE_APPID_STEAM || w.appid == v->appid ||
		    (pid_t)w.pid == v->pid || is_listed(v, w.pid) || !is_first_of_its_app(&p->windows, i))
			continue;
		v->running[v->n_running++] = (pid_t)w.pid;
	}
}

/* As Steam's session: windows have the numbers of their games. */
static void parse_steam(const GamescopeProperties *p, GamescopeView *v)
{
	uint32_t shown = p->app_gfx.n > 0 ? p->app_gfx.v[0] : 0;

	if (p->app_gfx.n == 0 || shown == GAMESCOPE_APPID_STEAM) {
		v->front = FRONT_NOBODY;
		v->menu = VRAMD_MENU_CLOSED; /* there is no game that it could lie over */
	} else {
		v->pid = find_pid(p, true, shown);
		v->front = v->pid > 0 ? FRONT_PROCESS : FRONT_UNKNOWN;
		v->appid = shown;
		v->menu = find_menu(&p->app, shown);
	}
	find_running(p, v);
}

/* Around a single game: what takes the place of an appid is the window's XID. */
static void parse_plain(const GamescopeProperties *p, GamescopeView *v)
{
	if (p->window.n == 0 || p->window.v[0] == 0) {
		v->front = FRONT_NOBODY;
		return;
	}
	v->pid = find_pid(p, false, 0);
	v->front = v->pid > 0 ? FRONT_PROCESS : FRONT_UNKNOWN;
}

void gamescope_parse(const GamescopeProperties *p, GamescopeView *ret)
{
	GamescopeView v = { .front = FRONT_UNKNOWN, .menu = VRAMD_MENU_UNKNOWN };

	if (p->app_gfx.present)
		parse_steam(p, &v);
	else if (p->window.present)
		parse_plain(p, &v);
	*ret = v;
}
