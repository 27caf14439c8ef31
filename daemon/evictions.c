/* SPDX-License-Identifier: MIT */
/* What others evict of the protected games, where the kernel counts it (dmem.events): for easing, for who asks, and for
 * a signal now and then. Nobody is woken up while nothing is evicted. */
#include <inttypes.h>
#include <sys/epoll.h>

#include "log.h"
#include "manager.h"

/* The kernel tells at most each 10 ms. This is less than half of it, so that not even two seats are woken up more than
 * 100 times a second, and the first ones come at once. Behind another window, nothing is in a hurry. */
#define FRONT_INTERVAL_USEC (100 * USEC_PER_MSEC)
#define FRONT_BURST 3
#define BACK_INTERVAL_USEC (1 * USEC_PER_SEC)
#define BACK_BURST 2
/* Who comes in does so for a frame or two: what it evicts is one signal, with a figure that means something. */
#define TELL_FIRST_USEC (100 * USEC_PER_MSEC)
#define TELL_INTERVAL_USEC (1 * USEC_PER_SEC)

/* Of one game, in one region. */
typedef struct Evicted {
	DmemEvents seen;
	uint64_t buffers, bytes; /* since the game came in front */
	uint64_t untold;         /* bytes, since the last signal */
} Evicted;

struct Evictions {
	int fd;
	sd_event_source *source;
	bool front;
	Evicted regions[];
};

void manager_close_evictions(Game *g)
{
	Evictions *e = g->evictions;

	if (!e)
		return;
	sd_event_source_disable_unref(e->source);
	close_fd(e->fd);
	free(e);
	g->evictions = NULL;
}

/* --- Who may have come in ------------------------------------------------------------------------ */

static void rival_free(Rival *r)
{
	cgroup_close(r->group);
	free(r);
}

static int look_at_rival(const Manager *m, Rival *r)
{
	auto_dmem_table DmemTable table = { 0 };
	int q = cgroup_read_current(r->group, &table);

	for (size_t i = 0; i < m->regions.n; i++) {
		uint64_t use = 0;

		(void)dmem_table_get(&table, m->regions.items[i].name, &use);
		r->grown[i] = use > r->use[i] ? use - r->use[i] : 0;
		r->use[i] = use;
	}
	return q;
}

static void look_at_rivals(Manager *m)
{
	for (size_t i = m->rivals.n; i-- > 0;)
		if (cgroup_is_gone(look_at_rival(m, m->rivals.items[i]))) {
			rival_free(m->rivals.items[i]);
			m->rivals.items[i] = m->rivals.items[--m->rivals.n];
		}
}

/* The one who grew most, if that explains what was lost at least by half; else "". It can only be one that we know. */
static const char *guess_rival(const Manager *m, const Game *g, size_t region, uint64_t bytes)
{
	const Rival *best = NULL;

	for (size_t i = 0; i < m->rivals.n; i++) {
		const Rival *r = m->rivals.items[i];

		if (!streq(r->group->path, g->unit.cgroup) && r->grown[region] >= bytes / 2 && r->grown[region] > 0 &&
		    (!best || r->grown[region] > best->grown[region]))
			best = r;
	}
	return best ? strrchr(best->group->path, '/') + 1 : "";
}

static void forget_rivals(Manager *m)
{
	for (size_t i = 0; i < m->rivals.n; i++)
		rival_free(m->rivals.items[i]);
	m->rivals.n = 0;
}

static void add_rival(Manager *m, Rivals *before, const char *path)
{
	Rivals *now = &m->rivals;
	Rival *r;

	for (size_t i = 0; i < now->n; i++)
		if (streq(now->items[i]->group->path, path))
			return;
	if (now->n == RIVALS_MAX)
		return;
	for (size_t i = 0; i < before->n; i++)
		if (streq(before->items[i]->group->path, path)) {
			now->items[now->n++] = before->items[i];
			before->items[i] = before->items[--before->n];
			return;
		}
	r = calloc(1, sizeof(*r));
	if (!r || cgroup_open(&m->hierarchy, path, &r->group) < 0) {
		free(r);
		return;
	}
	now->items[now->n++] = r;
}

/* Those with a part in the plan, the other games, and units that the configuration names. */
static void find_rivals(Manager *m)
{
	Rivals before = m->rivals;

	m->rivals.n = 0;
	for (size_t i = 0; i < m->plan.n_groups; i++)
		if (!m->plan.groups[i].ancestor)
			add_rival(m, &before, m->plan.groups[i].path);
	for (size_t i = 0; i < m->n_games; i++)
		add_rival(m, &before, m->games[i]->unit.cgroup);
	for (size_t i = 0; i < m->n_units; i++)
		add_rival(m, &before, m->units[i].path);
	for (size_t i = 0; i < before.n; i++)
		rival_free(before.items[i]);
}

/* --- Telling ------------------------------------------------------------------------------------ */

static int on_tell(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	Manager *m = userdata;
	uint64_t now;

	(void)sd_event_now(m->event, CLOCK_MONOTONIC, &now);
	m->rivals.next_usec = now + TELL_INTERVAL_USEC;
	look_at_rivals(m);
	for (size_t i = 0; i < m->n_games; i++) {
		Game *g = m->games[i];

		for (size_t k = 0; g->evictions && k < m->regions.n; k++) {
			Evicted *e = &g->evictions->regions[k];

			if (e->untold > 0 && m->hooks)
				m->hooks->evicted(m, g, m->regions.items[k].name, e->untold,
						  guess_rival(m, g, k, e->untold), "others needed room");
			e->untold = 0;
		}
	}
	return 0;
}

static bool telling_is_due(const Manager *m)
{
	return m->rivals.timer && sd_event_source_get_enabled(m->rivals.timer, NULL) > 0;
}

static void tell_soon(Manager *m)
{
	sd_event_source **timer = &m->rivals.timer;
	uint64_t usec;
	int r;

	if (telling_is_due(m))
		return;
	(void)sd_event_now(m->event, CLOCK_MONOTONIC, &usec);
	usec = MAX(usec + TELL_FIRST_USEC, m->rivals.next_usec);
	if (!*timer) {
		r = sd_event_add_time(m->event, timer, CLOCK_MONOTONIC, usec, 0, on_tell, m);
		if (r >= 0)
			(void)sd_event_source_set_description(*timer, "tell-evictions");
	} else {
		r = sd_event_source_set_time(*timer, usec);
		if (r >= 0)
			r = sd_event_source_set_enabled(*timer, SD_EVENT_ONESHOT);
	}
	if (r < 0)
		log_debug_errno(r, "Cannot set the timer of evictions, ignoring: %m");
}

/* --- Watching ----------------------------------------------------------------------------------- */

static void take_events(Manager *m, Game *g, const char *text)
{
	uint64_t evicted[DMEM_REGIONS_MAX] = { 0 };
	bool any = false;

	for (size_t i = 0; i < m->regions.n; i++) {
		Evicted *e = &g->evictions->regions[i];
		DmemEvents now;
		uint64_t n;

		if (dmem_find_events(text, m->regions.items[i].name, &now) < 0)
			continue;
		n = dmem_events_take(&e->seen, &now, &evicted[i]);
		if (n == 0)
			continue;
		log_debug("%s: %" PRIu64 " bytes in %" PRIu64 " buffers of %s were evicted for others",
			  g->unit.cgroup, evicted[i], n, m->regions.items[i].name);
		e->buffers += n;
		e->bytes += evicted[i];
		e->untold += evicted[i];
		any = true;
	}
	if (!any)
		return;
	tell_soon(m);
	manager_ease_evicted(m, g, evicted);
}

static int look(Manager *m, Game *g)
{
	auto_free char *text = NULL;
	int r = cgroup_read_events(g->evictions->fd, &text);

	if (r >= 0)
		take_events(m, g, text);
	return r;
}

static int on_event(sd_event_source *s _unused_, int fd _unused_, uint32_t events _unused_, void *userdata)
{
	Game *g = userdata;
	Manager *m = g->manager;

	if (look(m, g) >= 0)
		return 0;
	/* Gone, or dmem was switched off and perhaps on again: a file that is dead would wake us up for ever. */
	manager_close_evictions(g);
	manager_queue_update(m, "a game's dmem.events went away");
	return 0;
}

static int open_evictions(Manager *m, Game *g)
{
	Evictions *e = calloc(1, sizeof(*e) + m->regions.n * sizeof(*e->regions));
	auto_free char *text = NULL;
	int r;

	if (!e)
		return -ENOMEM;
	g->evictions = e;
	e->fd = r = cgroup_open_events(g->group);
	if (r >= 0)
		r = cgroup_read_events(e->fd, &text);
	if (r < 0)
		return r;
	for (size_t i = 0; i < m->regions.n; i++)
		(void)dmem_find_events(text, m->regions.items[i].name, &e->regions[i].seen);
	r = sd_event_add_io(m->event, &e->source, e->fd, EPOLLPRI, on_event, g);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(e->source, "dmem-events");
	return sd_event_source_set_ratelimit(e->source, BACK_INTERVAL_USEC, BACK_BURST);
}

static void set_front(const Manager *m, Evictions *e, bool front)
{
	if (front == e->front)
		return;
	e->front = front;
	(void)sd_event_source_set_ratelimit(e->source, front ? FRONT_INTERVAL_USEC : BACK_INTERVAL_USEC,
					    front ? FRONT_BURST : BACK_BURST);
	for (size_t i = 0; front && i < m->regions.n; i++)
		e->regions[i].buffers = e->regions[i].bytes = 0;
}

static void settle(Manager *m, Game *g)
{
	if (g->shown_role == _ROLE_MAX || (g->evictions && look(m, g) < 0))
		manager_close_evictions(g);
	if (g->shown_role == _ROLE_MAX)
		return;
	if (!g->evictions && open_evictions(m, g) < 0)
		manager_close_evictions(g);
	if (g->evictions)
		set_front(m, g->evictions, g->shown_role == ROLE_FRONT);
}

void manager_settle_evictions(Manager *m)
{
	bool any = false;

	for (size_t i = 0; i < m->n_games; i++) {
		settle(m, m->games[i]);
		any |= m->games[i]->evictions != NULL;
	}
	if (!any)
		forget_rivals(m);
	/* What is still to be told is compared with what was before it. */
	if (!any || telling_is_due(m))
		return;
	find_rivals(m);
	look_at_rivals(m);
}

void manager_forget_evictions(Manager *m)
{
	for (size_t i = 0; i < m->n_games; i++)
		manager_close_evictions(m->games[i]);
	forget_rivals(m);
	m->rivals.timer = sd_event_source_disable_unref(m->rivals.timer);
}

/* --- For who asks --------------------------------------------------------------------------------- */

void manager_evicted(const Manager *m, const Game *g, uint64_t *ret_buffers, uint64_t *ret_bytes)
{
	auto_free char *text = NULL;

	/* Those that are told of later are there already. */
	if (g->evictions)
		(void)cgroup_get_events(g->group, &text);
	for (size_t i = 0; i < m->regions.n; i++) {
		uint64_t n = 0, bytes = 0;
		DmemEvents seen, now;

		if (text && dmem_find_events(text, m->regions.items[i].name, &now) >= 0) {
			seen = g->evictions->regions[i].seen;
			n = dmem_events_take(&seen, &now, &bytes);
		}
		if (ret_buffers)
			ret_buffers[i] = text ? g->evictions->regions[i].buffers + n : UINT64_MAX;
		if (ret_bytes)
			ret_bytes[i] = text ? g->evictions->regions[i].bytes + bytes : UINT64_MAX;
	}
}
