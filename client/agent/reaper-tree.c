/* SPDX-License-Identifier: MIT */
#include "reaper-tree.h"

static TreeProcess *find(TreeProcess *v, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].pid == pid)
			return &v[i];
	return NULL;
}

/* A parent may have ended and its number be another one's: no way up is longer than there are processes. */
static bool descends_from(TreeProcess *v, size_t n, const TreeProcess *p, pid_t reaper)
{
	for (size_t steps = 0; steps <= n; steps++) {
		if (p->pid == reaper)
			return true;
		p = p->parent > 1 ? find(v, n, p->parent) : NULL;
		if (!p)
			return false;
	}
	return false;
}

int reaper_tree_choose(TreeProcess *v, size_t n, pid_t reaper)
{
	const TreeProcess *top = find(v, n, reaper);
	bool shared = false, several = false;

	if (!top || !top->reaper)
		return -ESRCH;
	for (TreeProcess *p = v; p < v + n; p++) {
		bool ours = descends_from(v, n, p, reaper);

		if (p->reaper && p != top)
			several = several || ours || descends_from(v, n, top, p->pid);
		p->chosen = ours && p->inside;
		shared = shared || (p->inside && !ours);
	}
	if (several)
		return -EBUSY;
	return shared ? 0 : -EALREADY;
}
