/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <sys/inotify.h>

#include "agent.h"
#include "log.h"

#define RETRY_FIRST_USEC (250 * USEC_PER_MSEC)
#define RETRY_MAX_USEC (30 * USEC_PER_SEC)
/* A socket is there a moment before somebody listens; where nobody does after this, it is a left-over. */
#define REFUSED_MAX_USEC (4 * USEC_PER_SEC)

static const SourceType *const types[] = {
	&source_gamescope, &source_kwin, &source_sway, &source_hyprland, &source_x11, &source_toplevel,
	&source_gamemode,
};

typedef enum Phase {
	PHASE_IDLE,
	PHASE_STARTED,
	PHASE_ENDED,   /* said that it is over; still to be stopped */
	PHASE_RESTING, /* waits for its timer, or for news of its directories */
} Phase;

struct Source {
	const SourceType *type;
	Agent *agent;
	char *place;
	void *data; /* of start() */
	Phase phase;
	bool found;  /* by the last probe */
	bool spoken; /* since it was started */
	int error;
	const char *why;
	uint64_t delay_usec; /* before the next try */
	sd_event_source *retry;
};

typedef struct Watch {
	char *directory;
	char *awaited; /* the only name in it that matters; NULL = all */
	sd_event_source *source;
} Watch;

struct Agent {
	sd_event *event;
	AgentOptions options;
	Source **sources; /* in the order of their ranks */
	size_t n, n_alloc;
	Watch *watches;
	size_t n_watches, watches_alloc;
	sd_event_source *settle;
	bool probe_due;
	const Source *winner;
};

struct Probe {
	Agent *agent;
	const SourceType *type;
};

static void settle_soon(Agent *a)
{
	(void)sd_event_source_set_enabled(a->settle, SD_EVENT_ONESHOT);
}

/* --- Places ------------------------------------------------------------------------------------- */

static Source *source_free(Source *s)
{
	if (s->phase == PHASE_STARTED || s->phase == PHASE_ENDED)
		s->type->stop(s->data);
	sd_event_source_disable_unref(s->retry);
	free(s->place);
	free(s);
	return NULL;
}

static Source *find_source(const Agent *a, const SourceType *type, const char *place)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->sources[i]->type == type && streq(a->sources[i]->place, place))
			return a->sources[i];
	return NULL;
}

static int add_source(Agent *a, const SourceType *type, const char *place)
{
	Source *s;
	size_t i = 0;

	if (!GROW(a->sources, a->n_alloc, a->n))
		return -ENOMEM;
	s = calloc(1, sizeof(*s));
	if (s)
		s->place = strdup(place);
	if (!s || !s->place) {
		free(s);
		return -ENOMEM;
	}
	s->type = type;
	s->agent = a;
	s->found = true;
	while (i < a->n && a->sources[i]->type->rank <= type->rank)
		i++;
	memmove(&a->sources[i + 1], &a->sources[i], (a->n - i) * sizeof(*a->sources));
	a->sources[i] = s;
	a->n++;
	return 0;
}

int probe_found(Probe *p, const char *place)
{
	Source *s = find_source(p->agent, p->type, place);

	if (!s)
		return add_source(p->agent, p->type, place);
	s->found = true;
	return 0;
}

/* --- Directories -------------------------------------------------------------------------------- */

static void watch_done(Watch *w)
{
	sd_event_source_disable_unref(w->source);
	free(w->directory);
	free(w->awaited);
}

static int on_directory(sd_event_source *s, const struct inotify_event *event, void *userdata)
{
	Agent *a = userdata;

	for (size_t i = 0; i < a->n_watches; i++) {
		Watch *w = &a->watches[i];

		if (w->source != s)
			continue;
		if (w->awaited && event->len > 0 && !streq(w->awaited, event->name))
			return 0;
		/* The directory is gone, or is there now: the probe watches what there is. */
		if (w->awaited || event->mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF)) {
			watch_done(w);
			*w = a->watches[--a->n_watches];
		}
		a->probe_due = true;
		settle_soon(a);
		return 0;
	}
	return 0;
}

static bool is_watched(const Agent *a, const char *directory, const char *awaited)
{
	for (size_t i = 0; i < a->n_watches; i++)
		if (streq(a->watches[i].directory, directory) && streq_ptr(a->watches[i].awaited, awaited))
			return true;
	return false;
}

/* One watch a directory, whatever the number of sources: two in one loop hang it (systemd issue 38265). */
static int add_watch(Agent *a, const char *directory, const char *awaited)
{
	Watch w = {};
	int r;

	if (is_watched(a, directory, awaited))
		return 0;
	if (!GROW(a->watches, a->watches_alloc, a->n_watches))
		return -ENOMEM;
	w.directory = strdup(directory);
	w.awaited = awaited ? strdup(awaited) : NULL;
	if (!w.directory || (awaited && !w.awaited)) {
		watch_done(&w);
		return -ENOMEM;
	}
	r = sd_event_add_inotify(a->event, &w.source, directory,
				 IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF |
					 IN_ONLYDIR,
				 on_directory, a);
	if (r < 0) {
		watch_done(&w);
		return r;
	}
	a->watches[a->n_watches++] = w;
	return 0;
}

int probe_watch(Probe *p, const char *directory)
{
	const char *name = strrchr(directory, '/');
	auto_free char *parent = NULL;
	int r;

	r = add_watch(p->agent, directory, NULL);
	if (r != -ENOENT || !name || name == directory)
		return r == -ENOENT ? 0 : r;
	parent = strndup(directory, (size_t)(name - directory));
	if (!parent)
		return -ENOMEM;
	r = add_watch(p->agent, parent, name + 1);
	return r == -ENOENT ? 0 : r;
}

/* --- Life of a source --------------------------------------------------------------------------- */

sd_event *source_get_event(Source *s)
{
	return s->agent->event;
}

void source_changed(Source *s)
{
	s->spoken = true;
	settle_soon(s->agent);
}

void source_failed(Source *s, int error, const char *text)
{
	if (s->phase == PHASE_STARTED)
		s->phase = PHASE_ENDED;
	s->error = error;
	s->why = text;
	settle_soon(s->agent);
}

static int on_retry(sd_event_source *timer _unused_, uint64_t usec _unused_, void *userdata)
{
	Source *s = userdata;

	s->retry = sd_event_source_disable_unref(s->retry);
	s->phase = PHASE_IDLE;
	settle_soon(s->agent);
	return 0;
}

static void rest(Source *s)
{
	bool hopeless = s->error == -ENODEV ||
			(s->error == -ECONNREFUSED && s->delay_usec >= REFUSED_MAX_USEC);
	int r;

	log_debug("%s %s: %s%s", s->type->name, s->place, s->why, hopeless ? "" : "; will try again");
	s->phase = PHASE_RESTING;
	if (hopeless)
		return;
	s->delay_usec = s->delay_usec > 0 ? MIN(2 * s->delay_usec, RETRY_MAX_USEC) : RETRY_FIRST_USEC;
	r = sd_event_add_time_relative(s->agent->event, &s->retry, CLOCK_MONOTONIC, s->delay_usec, 0, on_retry, s);
	if (r < 0)
		log_warning_errno(r, "Cannot try %s %s again: %m", s->type->name, s->place);
}

static const char *explain(int error)
{
	switch (error) {
	case -ENODEV:
		return "somebody else's";
	case -ECONNREFUSED:
		return "nobody listens";
	case -EAGAIN:
		return "it does not answer";
	case -EACCES:
		return "it does not let us in";
	default:
		return strerror(-error);
	}
}

static void start(Source *s)
{
	int r;

	s->spoken = false;
	s->why = NULL;
	r = s->type->start(s, s->place, &s->data);
	if (r >= 0) {
		s->phase = PHASE_STARTED;
		return;
	}
	s->error = r;
	s->why = explain(r);
	rest(s);
}

static void stop(Source *s)
{
	s->type->stop(s->data);
	s->data = NULL;
	s->phase = PHASE_IDLE;
	s->spoken = false;
}

static void stop_ended(Agent *a)
{
	for (size_t i = 0; i < a->n; i++) {
		Source *s = a->sources[i];

		if (s->phase != PHASE_ENDED)
			continue;
		stop(s);
		rest(s);
	}
}

/* --- Probing ------------------------------------------------------------------------------------ */

static void forget_lost(Agent *a)
{
	for (size_t i = a->n; i-- > 0;) {
		Source *s = a->sources[i];

		/* A socket may be gone while we are still connected: the connection's end is what counts. */
		if (s->found || s->phase == PHASE_STARTED)
			continue;
		source_free(s);
		a->n--;
		memmove(&a->sources[i], &a->sources[i + 1], (a->n - i) * sizeof(*a->sources));
	}
}

static bool is_used(const Agent *a, const SourceType *type)
{
	return !a->options.only || streq(a->options.only, type->name);
}

static void probe_all(Agent *a)
{
	for (size_t i = 0; i < a->n; i++) {
		Source *s = a->sources[i];

		s->found = false;
		/* Something came or went: whoever rests may be what came. */
		if (s->phase == PHASE_RESTING) {
			s->retry = sd_event_source_disable_unref(s->retry);
			s->delay_usec = 0;
			s->phase = PHASE_IDLE;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		Probe p = { a, types[i] };
		int r = is_used(a, types[i]) ? types[i]->probe(&p) : 0;

		if (r < 0)
			log_warning_errno(r, "Cannot look for %s, ignoring: %m", types[i]->name);
	}
	forget_lost(a);
}

/* --- Deciding ----------------------------------------------------------------------------------- */

static void read_state(const Source *s, State *ret)
{
	s->type->read(s->data, ret);
	ret->window = s->type->any_window && ret->front == FRONT_PROCESS;
}

/* The best source whose word counts; its state, with what is nested in it. */
static const Source *decide(const Agent *a, State *ret)
{
	auto_free Candidate *candidates = calloc(a->n + 1, sizeof(*candidates));
	auto_free const Source **who = calloc(a->n + 1, sizeof(*who));
	size_t n = 0;
	int best;

	if (!candidates || !who) {
		log_oom();
		return NULL;
	}
	for (size_t i = 0; i < a->n; i++) {
		Source *s = a->sources[i];

		if (s->phase != PHASE_STARTED || !s->spoken)
			continue;
		candidates[n] = (Candidate){ .source = s->type->name, .rank = s->type->rank };
		read_state(s, &candidates[n].state);
		if (candidates[n].state.front != FRONT_UNKNOWN)
			s->delay_usec = 0;
		who[n++] = s;
	}
	best = merge_candidates(candidates, n, ret);
	return best < 0 ? NULL : who[best];
}

/* Everybody who was asked, of those ranked above. */
static bool have_spoken(const Agent *a, unsigned rank)
{
	for (size_t i = 0; i < a->n && a->sources[i]->type->rank < rank; i++)
		if (a->sources[i]->phase == PHASE_STARTED && !a->sources[i]->spoken)
			return false;
	return true;
}

bool agent_is_settled(const Agent *a)
{
	return have_spoken(a, UINT_MAX);
}

static bool has_turn(const Agent *a, const Source *s)
{
	return !s->type->last_resort || a->options.all_at_once || have_spoken(a, s->type->rank);
}

/* Those whose word cannot count need not run: all that are ranked below the one that counts. The word of one that is
 * nested only counts where nobody else has one, so then everybody runs. True if somebody was stopped. */
static bool start_and_stop(Agent *a, const State *state)
{
	bool limited = a->winner && !state->nested && !a->options.all_at_once;
	bool stopped = false;

	for (size_t i = 0; i < a->n; i++) {
		Source *s = a->sources[i];
		bool wanted = !limited || s->type->rank <= a->winner->type->rank;

		if (wanted && s->phase == PHASE_IDLE && has_turn(a, s)) {
			start(s);
		} else if (!wanted && s->phase == PHASE_STARTED) {
			stop(s);
			stopped = true;
		}
	}
	return stopped;
}

static int on_settle(sd_event_source *defer _unused_, void *userdata)
{
	Agent *a = userdata;
	State state = {};

	stop_ended(a);
	if (a->probe_due) {
		a->probe_due = false;
		probe_all(a);
	}
	a->winner = decide(a, &state);
	/* The state may have had a part of one that was nested, whose descriptors are closed now. */
	if (start_and_stop(a, &state))
		a->winner = decide(a, &state);
	/* While somebody who was just started may know, the last word stands. */
	if (a->winner || agent_is_settled(a))
		a->options.decided(a->winner ? a->winner->type->name : NULL, &state, a->options.userdata);
	return 0;
}

/* --- For people --------------------------------------------------------------------------------- */

static void line_of(const Agent *a, Source *s, AgentLine *l)
{
	l->place = s->place;
	l->why = s->why;
	l->counts = s == a->winner;
	if (s->phase != PHASE_STARTED || !s->spoken) {
		l->why = l->why ? l->why : "no answer yet";
		return;
	}
	read_state(s, &l->state);
	l->why = NULL;
	if (l->state.front == FRONT_UNKNOWN)
		l->why = l->state.why ? l->state.why : "it does not say who is in front";
}

void agent_each(Agent *a, agent_line_cb cb, void *userdata)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		bool any = false;

		if (!is_used(a, types[i]))
			continue;
		for (size_t k = 0; k < a->n; k++) {
			AgentLine l = { .source = types[i]->name };

			if (a->sources[k]->type != types[i])
				continue;
			line_of(a, a->sources[k], &l);
			cb(&l, userdata);
			any = true;
		}
		if (!any)
			cb(&(AgentLine){ .source = types[i]->name, .why = "not there" }, userdata);
	}
}

const char *agent_source_name(size_t i)
{
	return i < ARRAY_SIZE(types) ? types[i]->name : NULL;
}

/* --- Life --------------------------------------------------------------------------------------- */

int agent_new(sd_event *event, const AgentOptions *options, Agent **ret)
{
	auto_agent Agent *a = NULL;
	bool known = !options->only;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		known = known || streq(options->only, types[i]->name);
	if (!known)
		return -EINVAL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->event = sd_event_ref(event);
	a->options = *options;
	a->probe_due = true;
	r = sd_event_add_defer(event, &a->settle, on_settle, a); /* oneshot, and enabled */
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(a->settle, "settle");
	*ret = TAKE_PTR(a);
	return 0;
}

Agent *agent_free(Agent *a)
{
	if (!a)
		return NULL;
	while (a->n > 0)
		source_free(a->sources[--a->n]);
	while (a->n_watches > 0)
		watch_done(&a->watches[--a->n_watches]);
	free(a->sources);
	free(a->watches);
	sd_event_source_disable_unref(a->settle);
	sd_event_unref(a->event);
	free(a);
	return NULL;
}
