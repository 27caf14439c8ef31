/* SPDX-License-Identifier: MIT */
#include "apply-internal.h"
#include "log.h"

#define REASSERT_LIMIT_DEFAULT 6

/* A group that goes away in the middle is looked for again; a tree in which that happens more often is
 * left to the events. */
#define ROUNDS_MAX 3

/* A value that is going to be written. */
typedef struct Change {
	ApplyGroup *group;
	Record *record;
	uint64_t from, to;
	bool put_back; /* the record goes when it is written */
	bool written;
} Change;

typedef struct Round {
	Apply *apply;
	const Plan *plan;
	Change *changes; /* by path */
	size_t n, n_alloc;
	int error;       /* the first one */
	bool again;      /* a group went away: look whether it has come back */
} Round;

void apply_keep_error(int *first, int r)
{
	if (r < 0 && *first >= 0 && !apply_is_gone(r))
		*first = r;
}

/* --- One value ------------------------------------------------------------------------------- */

int apply_write(ApplyGroup *g, const Record *record, uint64_t from, uint64_t to)
{
	Apply *a = g->apply;
	int r;

	if (!a->dry_run) {
		r = cgroup_set_limit(g->cgroup, record->limit, record->region, to);
		if (r < 0)
			return r;
		if (g->css_inode == 0)
			apply_group_note_css(g);
	}
	if (a->hooks.written)
		a->hooks.written(g->path, record->region, record->limit, from, to, a->userdata);
	return 0;
}

/* The present value, from memory if that is safe. record may be NULL. */
static int value_now(const ApplyGroup *g, const Record *record, const char *region, DmemLimit limit,
		uint64_t *ret)
{
	if (record && record->known)
		*ret = record->ours;
	else if (g->css_pending)
		*ret = dmem_limit_default(limit);
	else
		return cgroup_get_limit(g->cgroup, limit, region, ret);
	return 0;
}

int apply_must_put_back(const ApplyGroup *g, const Record *record, uint64_t *ret)
{
	uint64_t now;
	int r;

	if (record->yielded)
		return 0;
	r = value_now(g, record, record->region, record->limit, &now);
	if (apply_is_gone(r) || r == -ENXIO)
		return 0;
	if (r < 0)
		return r;
	if (now == record->old || (now != record->ours && now != record->ours_before))
		return 0;
	*ret = now;
	return 1;
}

/* --- Owners ---------------------------------------------------------------------------------- */

static FileOwner owner_of_ours(void)
{
	return (FileOwner) { .uid = geteuid(), .gid = getegid(), .mode = 0644 };
}

int apply_give_owner_back(ApplyGroup *g, const Record *record)
{
	FileOwner now;
	int r;

	if (g->apply->dry_run)
		return 0;
	r = cgroup_get_owner(g->cgroup, &now);
	/* There are three files; a kill between them may have left this one as it was. */
	if (r >= 0 && (now.uid == geteuid() || now.uid == record->owner.uid))
		r = cgroup_set_owner(g->cgroup, &record->owner);
	g->owner_checked = false;
	return apply_is_gone(r) ? 0 : r;
}

static int owner_record(ApplyGroup *g, const FileOwner *now)
{
	Journal *j = &g->apply->journal;
	Record *record = journal_find(j, RECORD_OWNER, g->path, NULL, 0);
	int r;

	if (!record) {
		r = journal_add(j, RECORD_OWNER, g->path, NULL, 0, &record);
		if (r < 0)
			return r;
		record->inode = g->cgroup->inode;
	}
	record->owner = *now;
	record->claimed = true;
	journal_touch(j, record);
	return 0;
}

/* Are the group's files to be ours? */
static bool wants_owner(const ApplyGroup *g)
{
	const Apply *a = g->apply;

	return a->ownership == OWNERSHIP_EXCLUSIVE && !a->chown_refused && !a->dry_run && g->plan && !g->plan->ancestor;
}

static bool is_foreign(const FileOwner *owner)
{
	return owner->uid != 0 && owner->uid != geteuid();
}

/* By one who was killed between chown(2) and chmod(2): whose it is says the file, and the mode only the record. */
static bool is_half_given_back(const Record *record, const FileOwner *now)
{
	return record && record->owner.uid == now->uid && now->mode == owner_of_ours().mode;
}

/* Files that belong to a user are to become ours. */
static int owner_claim(ApplyGroup *g)
{
	Apply *a = g->apply;
	Record *record = journal_find(&a->journal, RECORD_OWNER, g->path, NULL, 0);
	FileOwner now;
	int r;

	if (!wants_owner(g))
		return 0;
	if (record)
		record->claimed = true;
	if (g->owner_checked || g->css_pending)
		return 0;
	r = cgroup_get_owner(g->cgroup, &now);
	if (r < 0)
		return r;
	if (!is_foreign(&now)) {
		g->owner_checked = g->watch;
		return 0;
	}
	g->owner_wanted = true;
	return is_half_given_back(record, &now) ? 0 : owner_record(g, &now);
}

static int owner_take(ApplyGroup *g)
{
	Apply *a = g->apply;
	const FileOwner ours = owner_of_ours();
	int r;

	r = cgroup_set_owner(g->cgroup, &ours);
	if (r == -EPERM) {
		if (!a->chown_refused)
			log_debug("No permission to take files over, sharing them with their owners.");
		a->chown_refused = true;
		journal_remove(&a->journal, journal_find(&a->journal, RECORD_OWNER, g->path, NULL, 0));
		return 0;
	}
	if (r >= 0)
		g->owner_checked = g->watch;
	return r;
}

/* --- What there is to do --------------------------------------------------------------------- */

static void round_note(Round *round, ApplyGroup *g, int r)
{
	if (apply_is_gone(r))
		g->gone = round->again = true;
	apply_keep_error(&round->error, r);
}

static bool region_is_planned(const Plan *plan, const char *region)
{
	for (size_t i = 0; i < plan->n_regions; i++)
		if (streq(plan->regions[i], region))
			return true;
	return false;
}

static void round_forget_regions(Round *round)
{
	Journal *j = &round->apply->journal;
	size_t i = 0;

	while (i < j->n) {
		Record *record = j->records[i];

		record->claimed = false;
		if (record->kind == RECORD_VALUE && !region_is_planned(round->plan, record->region))
			journal_remove(j, record);
		else
			i++;
	}
}

static bool plan_group_claims(const Plan *plan, const PlanGroup *pg)
{
	for (size_t i = 0; i < plan->n_regions; i++)
		for (DmemLimit limit = 0; limit < _DMEM_LIMIT_MAX; limit++)
			if (pg->limits[i].value[limit] != dmem_limit_default(limit))
				return true;
	return false;
}

/* A claim's group has dmem only if each group above distributes it. */
static int round_add_ancestors(Round *round, const char *path, bool optional)
{
	auto_free char *up = NULL;
	ApplyGroup *g;
	int r;

	for (;;) {
		char *next;

		r = cgroup_path_parent(up ? up : path, &next);
		if (r < 0)
			return r == -ENOENT ? 0 : r;
		free(up);
		up = next;
		r = apply_group_get(round->apply, up, &g);
		if (r < 0)
			return r;
		if (g->inner)
			return 0;
		g->planned = g->inner = true;
		g->optional = optional;
	}
}

static int round_add_charged(Round *round, const char *path)
{
	ApplyGroup *g;
	int r;

	r = apply_group_get(round->apply, path, &g);
	if (r < 0 || g->inner)
		return r;
	g->planned = g->inner = g->optional = true;
	return round_add_ancestors(round, path, true);
}

static int round_add_groups(Round *round)
{
	Apply *a = round->apply;
	ApplyGroup *g;
	int r;

	for (size_t i = 0; i < a->n_groups; i++) {
		g = a->groups[i];
		g->planned = g->inner = g->passing = g->broken = g->gone = false;
		g->dmem_wanted = g->css_pending = g->owner_wanted = false;
		g->plan = NULL;
	}
	for (size_t i = 0; i < round->plan->n_groups; i++) {
		const PlanGroup *pg = &round->plan->groups[i];

		if (!plan_group_claims(round->plan, pg))
			continue;
		r = apply_group_get(a, pg->path, &g);
		if (r >= 0)
			r = round_add_ancestors(round, pg->path, false);
		if (r < 0)
			return r;
		g->planned = true;
		g->passing = pg->passing;
		g->plan = pg;
	}
	for (char **path = a->charged; path && *path; path++) {
		r = round_add_charged(round, *path);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < a->journal.n; i++) {
		if (a->journal.records[i]->kind == RECORD_DMEM)
			continue;
		r = apply_group_get(a, a->journal.records[i]->path, &g);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The kernel lets no process into a group that distributes a controller: a unit that is being started would
 * be locked out of its own. Slices, and a user's service manager that runs, hold groups and no process. */
static int is_inner(ApplyGroup *g)
{
	auto_strv char **children = NULL;
	auto_free pid_t *pids = NULL;
	size_t n;
	int r;

	if (streq(g->path, "/"))
		return true;
	r = cgroup_children(g->apply->hierarchy, g->path, &children);
	if (r < 0)
		return r;
	if (!children[0]) {
		g->childless = g->watch;
		return false;
	}
	r = cgroup_procs(g->apply->hierarchy, g->path, &pids, &n);
	return r < 0 ? r : n == 0;
}

static int dmem_claim(ApplyGroup *g)
{
	Journal *j = &g->apply->journal;
	Record *record;
	int r;

	if (!g->inner || g->dmem_on || (g->optional && g->childless))
		return 0;
	r = cgroup_has_dmem_children(g->cgroup);
	if (r != 0) {
		g->dmem_on = r > 0;
		return r;
	}
	r = is_inner(g);
	if (r == 0)
		return g->optional ? 0 : -EBUSY;
	if (r < 0)
		return r;
	g->dmem_wanted = true;
	if (g->apply->dry_run || journal_find(j, RECORD_DMEM, g->path, NULL, 0))
		return 0;
	r = journal_add(j, RECORD_DMEM, g->path, NULL, 0, &record);
	if (r < 0)
		return r;
	record->inode = g->cgroup->inode;
	return 0;
}

static int round_add_change(Round *round, ApplyGroup *g, Record *record, uint64_t from, uint64_t to,
		bool put_back)
{
	if (!GROW(round->changes, round->n_alloc, round->n))
		return -ENOMEM;
	round->changes[round->n++] = (Change) {
		.group = g,
		.record = record,
		.from = from,
		.to = to,
		.put_back = put_back,
	};
	return 0;
}

static int record_new_value(ApplyGroup *g, const char *region, DmemLimit limit, uint64_t now, Record **ret)
{
	int r;

	r = journal_add(&g->apply->journal, RECORD_VALUE, g->path, region, limit, ret);
	if (r < 0)
		return r;
	(*ret)->inode = g->cgroup->inode;
	(*ret)->old = (*ret)->ours = (*ret)->ours_before = now;
	(*ret)->claimed = true;
	return 0;
}

static int value_claim(Round *round, ApplyGroup *g, const char *region, DmemLimit limit, uint64_t want)
{
	Journal *j = &round->apply->journal;
	Record *record = journal_find(j, RECORD_VALUE, g->path, region, limit);
	uint64_t now, before;
	int r;

	if (record) {
		record->claimed = true;
		if (record->yielded || (record->known && record->ours == want))
			return 0;
	}
	r = value_now(g, record, region, limit, &now);
	if (r == -ENXIO) {
		if (record)
			journal_remove(j, record);
		return 0;
	}
	if (r >= 0 && !record)
		r = record_new_value(g, region, limit, now, &record);
	if (r < 0)
		return r;

	/* Until the write has happened the present value is as much ours as the new one; a stranger's
	 * is not, and stays if we are killed before. */
	before = now == record->ours || now == record->ours_before || now == record->old ? now : want;
	if (record->ours != want || record->ours_before != before) {
		record->ours = want;
		record->ours_before = before;
		journal_touch(j, record);
	}
	record->held = now == want;
	record->known = now == want && (g->watch || round->apply->dry_run);
	return now == want ? 0 : round_add_change(round, g, record, now, want, false);
}

static int values_claim(Round *round, ApplyGroup *g)
{
	int first = 0;

	for (size_t i = 0; i < round->plan->n_regions; i++) {
		for (DmemLimit limit = 0; limit < _DMEM_LIMIT_MAX; limit++) {
			uint64_t want = g->plan->limits[i].value[limit];
			int r;

			if (want == dmem_limit_default(limit))
				continue;
			r = value_claim(round, g, round->plan->regions[i], limit, want);
			if (apply_is_gone(r))
				return r;
			apply_keep_error(&first, r);
		}
	}
	return first;
}

/* Values that the plan does not name any more. */
static int values_release(Round *round, ApplyGroup *g)
{
	Journal *j = &round->apply->journal;
	size_t i = journal_first(j, g->path);
	int first = 0;

	for (; i < j->n && streq(j->records[i]->path, g->path); i++) {
		Record *record = j->records[i];
		uint64_t now;
		int r;

		if (record->kind != RECORD_VALUE || record->claimed)
			continue;
		r = apply_must_put_back(g, record, &now);
		if (r == 0) {
			journal_remove(j, record);
			i--;
			continue;
		}
		if (r > 0) {
			r = round_add_change(round, g, record, now, record->old, true);
			/* Not known again before it is written or read. */
			record->known = record->known && round->apply->dry_run;
		}
		apply_keep_error(&first, r);
	}
	return first;
}

static void round_collect(Round *round)
{
	Apply *a = round->apply;

	for (size_t i = 0; i < a->n_groups; i++) {
		ApplyGroup *g = a->groups[i], *parent = apply_group_parent(g);
		int r = apply_group_refresh(g);

		g->broken = r < 0;
		if (r >= 0 && g->cgroup) {
			g->css_pending = parent && parent->dmem_wanted;
			r = dmem_claim(g);
		}
		round_note(round, g, r);
	}
	for (size_t i = 0; i < a->n_groups; i++) {
		ApplyGroup *g = a->groups[i];

		if (!g->cgroup || g->broken || g->gone)
			continue;
		if (g->plan) {
			round_note(round, g, owner_claim(g));
			if (!g->gone)
				round_note(round, g, values_claim(round, g));
		}
		if (!g->gone)
			round_note(round, g, values_release(round, g));
	}
}

/* --- Doing it -------------------------------------------------------------------------------- */

static void round_enable_dmem(Round *round)
{
	Apply *a = round->apply;

	for (size_t i = 0; i < a->n_groups; i++) {
		ApplyGroup *g = a->groups[i], *parent;
		int r;

		if (g->css_pending) {
			parent = apply_group_parent(g);
			/* Its parent could not be had, and that was said: there is nothing here to write. */
			g->gone = g->gone || !parent->dmem_on;
		}
		if (!g->dmem_wanted || g->gone)
			continue;
		r = a->dry_run ? 0 : cgroup_set_dmem_children(g->cgroup, true);
		g->dmem_on = r >= 0;
		if (r < 0 && !apply_is_gone(r))
			journal_remove(&a->journal, journal_find(&a->journal, RECORD_DMEM, g->path, NULL, 0));
		round_note(round, g, r);
	}
}

/* Files that came with our "+dmem" are ours, unless their user was quicker with his: then they are claimed in the next
 * round, as the journal has to know of it first. */
static void round_check_new_files(Round *round)
{
	const Apply *a = round->apply;
	FileOwner now;

	for (size_t i = 0; i < a->n_groups; i++) {
		const ApplyGroup *g = a->groups[i];

		if (g->css_pending && !g->gone && wants_owner(g) && cgroup_get_owner(g->cgroup, &now) >= 0 &&
		    is_foreign(&now))
			round->again = true;
	}
}

static void round_take_owners(Round *round)
{
	for (size_t i = 0; i < round->apply->n_groups; i++) {
		ApplyGroup *g = round->apply->groups[i];

		if (g->owner_wanted && !g->gone)
			round_note(round, g, owner_take(g));
	}
}

/* A ceiling goes up before, and comes down after, everything else: in between nobody is squeezed who
 * would not be at both ends. */
enum { PHASE_MAX_UP, PHASE_UP, PHASE_DOWN, PHASE_MAX_DOWN, _PHASE_MAX };

static int change_phase(const Change *c)
{
	bool up = c->to > c->from;

	if (c->record->limit == DMEM_MAX)
		return up ? PHASE_MAX_UP : PHASE_MAX_DOWN;
	return up ? PHASE_UP : PHASE_DOWN;
}

static void round_write(Round *round, Change *c)
{
	Apply *a = round->apply;
	ApplyGroup *g = c->group;
	int r;

	r = apply_write(g, c->record, c->from, c->to);
	c->written = r >= 0;
	if (r == -ENXIO)
		journal_remove(&a->journal, TAKE_PTR(c->record));
	else
		round_note(round, g, r);
}

static void round_read_back(Round *round, Change *c)
{
	Apply *a = round->apply;
	ApplyGroup *g = c->group;
	Record *record = c->record;
	int r = 0;

	if (!a->dry_run)
		r = cgroup_check_limit(g->cgroup, record->limit, record->region, c->to);
	/* Another value right behind ours is a stranger's: his write is heard of as such. */
	if (r == -ESTALE)
		r = 0;
	if (r >= 0) {
		record->held = true;
		record->known = g->watch || a->dry_run;
	}
	if (r >= 0 ? c->put_back : r == -ENXIO)
		journal_remove(&a->journal, TAKE_PTR(c->record));
	else
		round_note(round, g, r);
}

static void round_write_all(Round *round)
{
	for (int phase = 0; phase < _PHASE_MAX; phase++) {
		bool top_down = phase <= PHASE_UP;

		for (size_t i = 0; i < round->n; i++) {
			Change *c = &round->changes[top_down ? i : round->n - 1 - i];

			if (c->record && !c->group->gone && change_phase(c) == phase)
				round_write(round, c);
		}
	}
	/* Who has come to the front does not wait for that. */
	for (size_t i = 0; i < round->n; i++)
		if (round->changes[i].written && !round->changes[i].group->gone)
			round_read_back(round, &round->changes[i]);
}

/* Gives back what the plan does not need to be ours. */
static void round_release_owners(Round *round)
{
	Journal *j = &round->apply->journal;

	for (size_t i = 0; i < j->n; i++) {
		Record *record = j->records[i];
		ApplyGroup *g;
		int r;

		if (record->kind != RECORD_OWNER || record->claimed)
			continue;
		g = apply_group_find(round->apply, record->path);
		if (!g || !g->cgroup || g->broken || g->gone)
			continue;
		r = apply_give_owner_back(g, record);
		if (r < 0)
			round_note(round, g, r);
		else {
			journal_remove(j, record);
			i--;
		}
	}
}

static void round_forget_gone(Round *round)
{
	Apply *a = round->apply;

	for (size_t i = 0; i < a->n_groups; i++) {
		ApplyGroup *g = a->groups[i], *parent;

		if (!g->gone)
			continue;
		/* Perhaps it is still there and only dmem is not: look again. */
		parent = apply_group_parent(g);
		if (parent)
			parent->dmem_on = false;
		apply_group_forget(g);
	}
}

static int round_run(Round *round)
{
	Apply *a = round->apply;
	int r;

	round_forget_regions(round);
	r = round_add_groups(round);
	if (r < 0)
		return r;
	round_collect(round);
	r = journal_append(&a->journal);
	if (r < 0)
		return log_debug_errno(r, "Failed to write the journal, changing nothing: %m");
	round_enable_dmem(round);
	round_take_owners(round);
	round_write_all(round);
	round_check_new_files(round);
	round_release_owners(round);
	round_forget_gone(round);
	apply_groups_prune(a);
	return journal_sync(&a->journal);
}

/* --- The interface --------------------------------------------------------------------------- */

int apply_plan(Apply *a, const Plan *plan)
{
	int first = 0;

	for (unsigned i = 0; i < ROUNDS_MAX; i++) {
		Round round = { .apply = a, .plan = plan };
		int r = round_run(&round);

		free(round.changes);
		if (first >= 0)
			first = round.error < 0 ? round.error : r;
		if (!round.again || r < 0)
			break;
	}
	return first;
}

int apply_new(const Hierarchy *h, const Roots *roots, const char *runtime_dir, bool dry_run, sd_event *event,
		const ApplyHooks *hooks, void *userdata, Apply **ret)
{
	auto_apply Apply *a = NULL;
	unsigned bad;
	int r;

	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->journal.dir_fd = a->journal.file_fd = -EBADF;
	r = journal_open(roots, dry_run ? NULL : runtime_dir, &a->journal, &bad);
	if (r < 0)
		return r;
	if (bad > 0)
		log_warning("%s/" JOURNAL_FILE ": %u damaged lines, ignoring.", runtime_dir, bad);
	a->hierarchy = h;
	a->roots = roots;
	a->dry_run = dry_run;
	if (hooks)
		a->hooks = *hooks;
	a->userdata = userdata;
	apply_set_ownership(a, OWNERSHIP_EXCLUSIVE, REASSERT_LIMIT_DEFAULT);
	if (event && !dry_run) {
		r = apply_watch_init(a, event);
		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(a);
	return 0;
}

Apply *apply_free(Apply *a)
{
	if (!a)
		return NULL;
	apply_groups_free(a);
	journal_done(&a->journal);
	strv_free(a->charged);
	sd_event_source_disable_unref(a->nested);
	sd_event_unref(a->event);
	free(a);
	return NULL;
}

void apply_set_ownership(Apply *a, Ownership ownership, unsigned reassert_limit)
{
	a->ownership = ownership;
	a->reassert_limit = reassert_limit;
	a->chown_refused = false;
	for (size_t i = 0; i < a->n_groups; i++)
		a->groups[i]->owner_checked = false;
}

int apply_expect_max(Apply *a, const char *path, const char *region, uint64_t old, uint64_t ours)
{
	ApplyGroup *g;
	Record *record;
	int r;

	r = apply_group_get(a, path, &g);
	if (r >= 0)
		r = apply_group_refresh(g);
	if (r < 0 || !g->cgroup || journal_find(&a->journal, RECORD_VALUE, path, region, DMEM_MAX))
		return r;
	r = journal_add(&a->journal, RECORD_VALUE, path, region, DMEM_MAX, &record);
	if (r < 0)
		return r;
	record->inode = g->cgroup->inode;
	record->old = old;
	record->ours = record->ours_before = ours;
	return 0;
}

void apply_set_charged(Apply *a, char **paths)
{
	strv_free(a->charged);
	a->charged = paths;
}

int apply_get(const Apply *a, const char *path, const char *region, DmemLimit limit, uint64_t *ret)
{
	const Record *record = journal_find(&a->journal, RECORD_VALUE, path, region, limit);

	if (!record || record->yielded || !record->held)
		return -ENOENT;
	*ret = record->ours;
	return 0;
}

void apply_each(const Apply *a, apply_each_cb cb, void *userdata)
{
	for (size_t i = 0; i < a->journal.n; i++) {
		const Record *record = a->journal.records[i];

		if (record->kind == RECORD_VALUE && !record->yielded)
			cb(record, userdata);
	}
}
