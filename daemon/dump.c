/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "build-config.h"
#include "dump.h"

static const char *yes_no(bool b)
{
	return b ? "yes" : "no";
}

static void dump_regions(const Manager *m, FILE *f)
{
	char size[FORMAT_BYTES_MAX];

	fputs("\nRegions:\n", f);
	for (size_t i = 0; i < m->regions.n; i++) {
		const Region *r = &m->regions.items[i];

		fprintf(f, "  %s: %s, driver %s, node %s%s\n", r->name, format_bytes(size, r->capacity),
			r->driver ? r->driver : "unknown", r->primary_node ? r->primary_node : "none",
			r->integrated ? ", integrated: nothing to gain" : "");
	}
}

static void dump_users(const Manager *m, FILE *f)
{
	fputs("\nUsers:\n", f);
	for (size_t i = 0; i < m->n_users; i++)
		fprintf(f, "  %u: %s\n", (unsigned)m->users[i].uid, m->users[i].active ? "active" : "not active");
	fputs("\nUnits of interest:\n", f);
	for (size_t i = 0; i < m->n_units; i++)
		fprintf(f, "  %s\n", m->units[i].path);
}

static void dump_easing(const Manager *m, const Game *g, FILE *f)
{
	const Easing *e = manager_easing(m, g);
	char low[FORMAT_BYTES_MAX], lost[FORMAT_BYTES_MAX];

	for (size_t i = 0; e && i < m->regions.n; i++)
		if (easing_is_on(&e[i]))
			fprintf(f, "      eased to %s of %s, after it lost %s; %" PRIu64 " ms are left\n",
				format_bytes(low, e[i].low), m->regions.items[i].name,
				format_bytes(lost, e[i].lost), manager_eased_left(m, g) / USEC_PER_MSEC);
}

static void dump_evictions(const Manager *m, const Game *g, FILE *f)
{
	uint64_t buffers[DMEM_REGIONS_MAX], bytes[DMEM_REGIONS_MAX];
	char text[FORMAT_BYTES_MAX];

	manager_evicted(m, g, buffers, bytes);
	for (size_t i = 0; i < m->regions.n; i++)
		if (buffers[i] != UINT64_MAX && buffers[i] > 0)
			fprintf(f, "      others evicted %s in %" PRIu64 " buffers of %s\n", format_bytes(text, bytes[i]),
				buffers[i], m->regions.items[i].name);
}

static void dump_games(const Manager *m, FILE *f)
{
	fputs("\nGames:\n", f);
	for (size_t i = 0; i < m->n_games; i++) {
		const Game *g = m->games[i];

		fprintf(f,
			"  %" PRIu64 ": %s, appid %" PRIu32 ", user %u, known by %s, role %s, allowed %s\n      %s\n",
			g->id, game_name(m, g), g->identity.appid, (unsigned)g->uid,
			game_mark_to_string(g->identity.mark),
			g->shown_role == _ROLE_MAX ? "none" : group_role_to_string(g->shown_role),
			yes_no(game_allowed(m, g)), g->unit.cgroup);
		dump_easing(m, g, f);
		dump_evictions(m, g, f);
	}
	fputs("\nProcesses watched:\n", f);
	for (size_t i = 0; i < m->n_tracked; i++)
		fprintf(f, "  %d of user %u in %s\n", (int)m->tracked[i]->process->pid,
			(unsigned)m->tracked[i]->process->uid, m->tracked[i]->process->cgroup);
}

static void dump_report(uid_t uid, const FocusReport *r, bool wins, bool gone, void *userdata)
{
	FILE *f = userdata;

	fprintf(f, "  user %u, %s from %s: %s %d, menu %s, compositor %d, %zu running%s%s\n", (unsigned)uid,
		r->source, *r->sender ? r->sender : "(persistent)", r->window ? "window" : "game", r->game ? (int)r->game->pid : 0,
		menu_state_to_string(r->menu), r->compositor ? (int)r->compositor->pid : 0, r->n_running,
		wins ? ", counts" : "", gone ? ", sender gone" : "");
}

static void dump_holds(const Manager *m, FILE *f)
{
	fputs("\nHolds:\n", f);
	for (size_t i = 0; i < hold_count(m->holds); i++) {
		const Hold *h = hold_at(m->holds, i);

		fprintf(f, "  process %d for '%s' of user %u: %s\n", (int)h->process->pid, h->who,
			(unsigned)h->uid, h->why);
	}
}

static void dump_record(const Record *r, void *userdata)
{
	FILE *f = userdata;
	char a[FORMAT_BYTES_MAX], b[FORMAT_BYTES_MAX];

	if (r->kind == RECORD_VALUE)
		fprintf(f, "  %s %s %s: %s, was %s%s\n", r->path, dmem_limit_to_file(r->limit), r->region,
			format_bytes(a, r->ours), format_bytes(b, r->old), r->yielded ? ", given up" : "");
	else if (r->kind == RECORD_OWNER)
		fprintf(f, "  %s: owner was %u:%u\n", r->path, (unsigned)r->owner.uid, (unsigned)r->owner.gid);
	else
		fprintf(f, "  %s: dmem switched on for its children\n", r->path);
}

static void dump_plan(const Manager *m, FILE *f)
{
	fputs("\nPlan:\n", f);
	for (size_t i = 0; i < m->plan.n_groups; i++) {
		const PlanGroup *g = &m->plan.groups[i];

		fprintf(f, "  %s (%s)\n", g->path, plan_reason_to_string(g->reason));
		for (size_t k = 0; k < m->plan.n_regions; k++) {
			char text[_DMEM_LIMIT_MAX][FORMAT_BYTES_MAX];

			for (int l = 0; l < _DMEM_LIMIT_MAX; l++)
				format_bytes(text[l], g->limits[k].value[l]);
			fprintf(f, "    %s: min %s, low %s, max %s\n", m->plan.regions[k], text[DMEM_MIN],
				text[DMEM_LOW], text[DMEM_MAX]);
		}
	}
}

static void dump_knobs(const Manager *m, FILE *f)
{
	fputs("\nParameters of the kernel:\n", f);
	for (Knob k = 0; k < _KNOB_MAX; k++) {
		const KnobInfo *info = &knob_infos[k];
		char text[KNOB_TEXT_MAX];
		KnobOrigin origin;
		uint32_t value;

		if (manager_get_knob(m, k, &value, &origin) >= 0)
			fprintf(f, "  %s.%s: %s, because of %s\n", info->module, info->parameter,
				knob_format(text, info->kind, value), knob_origin_to_string(origin));
	}
}

int dump_state(Manager *m, char **ret, size_t *ret_size)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f;

	f = open_memstream(&text, &size);
	if (!f)
		return -errno;
	fprintf(f, "vramd %s\nState: %s: %s\n", VRAMD_VERSION, manager_state_to_string(m->state), strempty(m->reason));
	if (m->state != STATE_UNSUPPORTED) {
		fprintf(f, "Hierarchy: %s\nJournal: %s\n", m->hierarchy.mount_point, m->runtime_dir);
		dump_regions(m, f);
		dump_users(m, f);
		dump_games(m, f);
		fputs("\nFocus reports:\n", f);
		focus_each(m->focus, dump_report, f);
		dump_holds(m, f);
		dump_plan(m, f);
		fputs("\nWritten by vramd:\n", f);
		apply_each(m->apply, dump_record, f);
		dump_knobs(m, f);
	}
	fputs("\nConfiguration:\n", f);
	config_print(m->config, f);
	if (fclose(f) != 0) {
		free(text);
		return -ENOMEM;
	}
	*ret = text;
	*ret_size = size;
	return 0;
}
