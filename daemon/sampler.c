/* SPDX-License-Identifier: MIT */
/* Easing needs eyes where the kernel tells nothing: one timer looks at what the games in front use, one pread(2) a game
 * and look. It is off while there is no such game, or nothing to gain for it. Where the kernel tells of evictions, the
 * timer only ends what they began. */
#include "knobs.h"
#include "log.h"
#include "manager.h"

#define ACCURACY_USEC (1 * USEC_PER_MSEC)

static bool is_wanted(const Manager *m, const Game *g)
{
	const GameConfig *c = game_config(m, g);

	return !m->sleeping && !m->sampler.throttled && m->config->easing_usec > 0 && (!c || c->easing);
}

const Easing *manager_easing(const Manager *m, const Game *g)
{
	return g->easing && g->role == ROLE_FRONT && is_wanted(m, g) ? g->easing : NULL;
}

uint64_t manager_eased_left(const Manager *m, const Game *g)
{
	const Easing *e = manager_easing(m, g);
	uint64_t now, until = 0;

	(void)sd_event_now(m->event, CLOCK_MONOTONIC, &now);
	for (size_t i = 0; e && i < m->regions.n; i++)
		if (easing_is_on(&e[i]))
			until = MAX(until, e[i].until_usec);
	return until > now ? until - now : 0;
}

static void forget(Game *g)
{
	free(g->easing);
	g->easing = NULL;
}

void manager_forget_easing(Manager *m)
{
	for (size_t i = 0; i < m->n_games; i++)
		forget(m->games[i]);
}

/* --- Looking ------------------------------------------------------------------------------------ */

static int on_look(sd_event_source *s, uint64_t usec, void *userdata);

static void set_timer(Manager *m, uint64_t usec)
{
	Sampler *s = &m->sampler;
	int r;

	if (!s->timer) {
		r = sd_event_add_time(m->event, &s->timer, CLOCK_MONOTONIC, usec, ACCURACY_USEC, on_look, m);
		if (r >= 0)
			(void)sd_event_source_set_description(s->timer, "sampler");
	} else {
		r = sd_event_source_set_time(s->timer, usec);
		if (r >= 0)
			r = sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
	}
	if (r < 0)
		log_debug_errno(r, "Cannot set the timer of easing, ignoring: %m");
}

static bool timer_is_on(const Manager *m)
{
	return m->sampler.timer && sd_event_source_get_enabled(m->sampler.timer, NULL) > 0;
}

static bool kernel_throttles(Manager *m)
{
	m->sampler.throttled = knobs_throttle_active(&m->roots);
	if (m->sampler.throttled)
		manager_queue_update(m, "the kernel throttles by itself");
	return m->sampler.throttled;
}

/* How full the regions are: the root group is charged for everybody. They fill up in seconds, so the games'
 * quick looks need not know it each time. */
static void look_at_regions(Manager *m, uint64_t now)
{
	auto_dmem_table DmemTable table = { 0 };
	Sampler *s = &m->sampler;

	s->regions_usec = now + EASING_SLOW_USEC;
	(void)kernel_throttles(m);
	if (!s->root && cgroup_open(&m->hierarchy, "/", &s->root) < 0)
		return;
	if (cgroup_read_current(s->root, &table) < 0)
		return;
	for (size_t i = 0; i < m->regions.n; i++) {
		uint64_t used = 0;

		(void)dmem_table_get(&table, m->regions.items[i].name, &used);
		s->near_full[i] = easing_is_near_full(used, m->regions.items[i].capacity);
	}
}

/* What one look at a region decided is told after the update that it asks for. */
static void note_news(Manager *m, Easing *e, EasingNews news)
{
	if (news == EASING_SAME)
		return;
	e->untold = news;
	/* What follows depends on whether the region is still full, and the last look at that is old. */
	m->sampler.regions_usec = 0;
	manager_queue_update(m, news == EASING_OVER ? "Easing= is over" : "the game in front lost memory");
}

/* evicted: what the kernel told of since the last look, by region; NULL: nothing. */
static void look_at_game(Manager *m, const Game *g, uint64_t now, const uint64_t *evicted, uint64_t *next)
{
	const PlanGroup *planned = plan_find(&m->plan, g->unit.cgroup);
	auto_dmem_table DmemTable table = { 0 };

	/* Without dmem, or gone: that is heard of elsewhere, and an easing still has to end. */
	(void)cgroup_read_current(g->group, &table);
	for (size_t i = 0; i < m->regions.n; i++) {
		Easing *e = &g->easing[i];
		EasingLook look = { now, e->use, m->regions.items[i].capacity, 0, m->sampler.near_full[i] };

		(void)dmem_table_get(&table, m->regions.items[i].name, &look.use);
		if (planned)
			look.low = planned->limits[i].value[DMEM_LOW];
		if (look.low == 0)
			continue; /* nothing to gain there */
		if (g->evictions) {
			note_news(m, e, easing_evicted(e, &look, evicted ? evicted[i] : 0, m->config->easing_usec));
			*next = MIN(*next, easing_is_on(e) ? e->until_usec : UINT64_MAX);
		} else {
			note_news(m, e, easing_look(e, &look, m->config->easing_usec));
			*next = MIN(*next, easing_next_usec(e, &look));
		}
	}
}

static int on_look(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	Manager *m = userdata;
	uint64_t now, next = UINT64_MAX;

	(void)sd_event_now(m->event, CLOCK_MONOTONIC, &now);
	if (now >= m->sampler.regions_usec)
		look_at_regions(m, now);
	for (size_t i = 0; i < m->n_games; i++) {
		if (!m->games[i]->easing)
			continue;
		if (!m->games[i]->evictions)
			next = MIN(next, now + EASING_SLOW_USEC);
		look_at_game(m, m->games[i], now, NULL, &next);
	}
	if (next < UINT64_MAX)
		set_timer(m, next);
	return 0;
}

void manager_ease_evicted(Manager *m, const Game *g, const uint64_t *bytes)
{
	uint64_t now, planned, next = UINT64_MAX;

	if (!g->easing || kernel_throttles(m))
		return;
	(void)sd_event_now(m->event, CLOCK_MONOTONIC, &now);
	look_at_game(m, g, now, bytes, &next);
	if (timer_is_on(m) && sd_event_source_get_time(m->sampler.timer, &planned) >= 0)
		next = MIN(next, planned);
	if (next < UINT64_MAX)
		set_timer(m, next);
}

/* --- After an update ------------------------------------------------------------------------------ */

static void tell(Manager *m, const Game *g, size_t region, const char *reason)
{
	Easing *e = &g->easing[region];
	const char *name = m->regions.items[region].name;
	EasingNews news = reason && easing_is_on(e) ? EASING_OVER : e->untold;
	const char *const reasons[] = {
		[EASING_BEGUN] = g->evictions ? "others needed room" : "its use fell at once",
		[EASING_LOWERED] = "its use fell further",
		[EASING_AGAIN] = "it got nothing back",
	};

	e->untold = EASING_SAME;
	if (news == EASING_SAME || !m->hooks)
		return;
	if (news == EASING_OVER)
		m->hooks->restored(m, g, name, reason ? reason : "Easing= is over");
	else
		m->hooks->eased(m, g, name, e->lost, reasons[news]);
}

static bool start(const Manager *m, Game *g)
{
	if (g->easing)
		return false;
	g->easing = calloc(m->regions.n + 1, sizeof(*g->easing));
	for (size_t i = 0; g->easing && i < m->regions.n; i++)
		g->easing[i] = EASING_NEW;
	return g->easing;
}

static bool has_something_to_gain(const Manager *m, const Game *g)
{
	const PlanGroup *planned = plan_find(&m->plan, g->unit.cgroup);

	for (size_t i = 0; planned && i < m->plan.n_regions; i++)
		if (planned->limits[i].value[DMEM_LOW] > 0)
			return true;
	return false;
}

void manager_settle_easing(Manager *m, const char *reason)
{
	bool any = false, fresh = false;

	for (size_t i = 0; i < m->n_games; i++) {
		Game *g = m->games[i];
		bool front = g->shown_role == ROLE_FRONT && has_something_to_gain(m, g), wanted;

		if (front && !any && !timer_is_on(m))
			m->sampler.throttled = knobs_throttle_active(&m->roots);
		wanted = front && is_wanted(m, g);
		for (size_t k = 0; g->easing && k < m->regions.n; k++)
			tell(m, g, k, wanted ? NULL : reason);
		if (wanted)
			fresh |= start(m, g);
		else
			forget(g);
		any |= wanted;
	}
	if (!any && m->sampler.timer)
		(void)sd_event_source_set_enabled(m->sampler.timer, SD_EVENT_OFF);
	if (!fresh)
		return;
	/* At once: the first look is what the next one is compared with. */
	m->sampler.regions_usec = 0;
	set_timer(m, 0);
}
