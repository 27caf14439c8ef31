/* SPDX-License-Identifier: MIT */
/* Who is in front on GNOME, which needs nobody in the session: mutter marks the unit whose window has the focus. It
 * marks all programs alike, so here it is found out whether that one is a game. */
#include "manager.h"

#define SENDER "gnome" /* no name on the bus looks like that */
#define PROCESSES_MAX 64

/* The process that makes a game of the unit, or NULL. */
static Process *find_game(const Manager *m, const char *path)
{
	auto_free pid_t *pids = NULL;
	size_t n;

	if (cgroup_procs(&m->hierarchy, path, &pids, &n) < 0)
		return NULL;
	for (size_t i = 0; i < n && i < PROCESSES_MAX; i++) {
		auto_process Process *p = manager_open_process(m, pids[i], path);

		if (p && manager_is_game(m, p))
			return TAKE_PTR(p);
	}
	return NULL;
}

void manager_report_marked(Manager *m, uid_t uid)
{
	auto_focus_report FocusReport *report = NULL;
	const char *path = NULL;
	int n;

	n = m->unit_monitor ? unit_monitor_get_marked(m->unit_monitor, uid, &path) : -ENODATA;
	if (n < 0)
		return;
	report = calloc(1, sizeof(*report));
	if (!report)
		return;
	report->menu = MENU_UNKNOWN; /* nobody outside of the game sees Steam's overlay on a desktop */
	report->sender = strdup(SENDER);
	report->source = strdup("gnome");
	if (!report->sender || !report->source)
		return;
	if (n == 1)
		report->game = find_game(m, path);
	(void)manager_report(m, uid, TAKE_PTR(report));
}
