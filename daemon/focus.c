/* SPDX-License-Identifier: MIT */
#include "focus.h"

typedef struct Entry {
	FocusReport *report;
	uint64_t order;     /* rises with each report: the newest of two equals wins */
	uint64_t gone_usec; /* when the sender left; 0 = it is here */
} Entry;

typedef struct FocusUser {
	Focus *focus;
	uid_t uid;
	Entry entries[FOCUS_REPORTS_PER_UID];
	size_t n;
	FocusReport *shown; /* what counts; owned by its entry, or by `kept` */
	FocusReport *kept;  /* the shown report, after its entry has gone and while debounce runs */
	sd_event_source *debounce;
	sd_event_source *grace;
} FocusUser;

struct Focus {
	sd_event *event;
	focus_cb changed;
	focus_judge judge;
	void *userdata;
	uint64_t debounce_usec, grace_usec, order;
	FocusUser **users;
	size_t n_users, n_alloc;
};

/* Known by name; anything else ranks with the compositors (1). */
static const struct {
	const char *source;
	unsigned rank;
} source_ranks[] = {
	{ "manual", 0 },           { "gamescope", 1 }, { "kwin", 2 },     { "sway", 2 }, { "hyprland", 2 },
	{ "gnome", 3 },            { "x11", 4 },       { "gamemode", 6 }, { "units", 7 },
	{ "foreign-toplevel", 5 },
};

unsigned focus_source_rank(const char *source)
{
	for (size_t i = 0; i < ARRAY_SIZE(source_ranks); i++)
		if (streq(source_ranks[i].source, source))
			return source_ranks[i].rank;
	return 2;
}

FocusReport *focus_report_free(FocusReport *r)
{
	if (!r)
		return NULL;
	free(r->sender);
	free(r->source);
	process_unref(r->game);
	process_unref(r->compositor);
	for (size_t i = 0; i < r->n_running; i++)
		process_unref(r->running[i]);
	free(r->running);
	free(r);
	return NULL;
}

static bool same_process(const Process *a, const Process *b)
{
	return a == b || (a && b && a->pid == b->pid && a->uid == b->uid && process_is_alive(a));
}

static bool same_report(const FocusReport *a, const FocusReport *b)
{
	if (!streq(a->source, b->source) || a->appid != b->appid || a->menu != b->menu || a->window != b->window ||
	    !same_process(a->game, b->game) || !same_process(a->compositor, b->compositor) ||
	    a->n_running != b->n_running)
		return false;
	for (size_t i = 0; i < a->n_running; i++)
		if (!same_process(a->running[i], b->running[i]))
			return false;
	return true;
}

static FocusUser *find_user(const Focus *f, uid_t uid)
{
	for (size_t i = 0; i < f->n_users; i++)
		if (f->users[i]->uid == uid)
			return f->users[i];
	return NULL;
}

static FocusUser *user_free(FocusUser *u)
{
	for (size_t i = 0; i < u->n; i++)
		focus_report_free(u->entries[i].report);
	focus_report_free(u->kept);
	sd_event_source_disable_unref(u->debounce);
	sd_event_source_disable_unref(u->grace);
	free(u);
	return NULL;
}

static int get_user(Focus *f, uid_t uid, FocusUser **ret)
{
	FocusUser *u = find_user(f, uid);

	if (!u) {
		if (!GROW(f->users, f->n_alloc, f->n_users))
			return -ENOMEM;
		u = calloc(1, sizeof(*u));
		if (!u)
			return -ENOMEM;
		u->focus = f;
		u->uid = uid;
		f->users[f->n_users++] = u;
	}
	*ret = u;
	return 0;
}

static Entry *find_entry(FocusUser *u, const char *sender)
{
	for (size_t i = 0; i < u->n; i++)
		if (streq(u->entries[i].report->sender, sender))
			return &u->entries[i];
	return NULL;
}

static Entry *find_gone(FocusUser *u, const char *source)
{
	for (size_t i = 0; i < u->n; i++)
		if (u->entries[i].gone_usec > 0 && streq(u->entries[i].report->source, source))
			return &u->entries[i];
	return NULL;
}

static bool has_game(const FocusUser *u, const FocusReport *r)
{
	return r && r->game && process_is_alive(r->game) &&
	       (!r->window || u->focus->judge(r->game, u->focus->userdata));
}

/* A person's word is about one game: once that has ended, the compositors' words count again. */
static bool has_a_say(const FocusUser *u, const FocusReport *r)
{
	return has_game(u, r) || focus_source_rank(r->source) > 0;
}

static Entry *best_entry(FocusUser *u)
{
	Entry *best = NULL;

	for (size_t i = 0; i < u->n; i++) {
		Entry *e = &u->entries[i];
		unsigned rank = focus_source_rank(e->report->source), best_rank;

		if (!has_a_say(u, e->report))
			continue;
		if (!best) {
			best = e;
			continue;
		}
		best_rank = focus_source_rank(best->report->source);
		if (rank < best_rank || (rank == best_rank && e->order > best->order))
			best = e;
	}
	return best;
}

static void show(FocusUser *u, FocusReport *report)
{
	u->debounce = sd_event_source_disable_unref(u->debounce);
	u->shown = report;
	if (u->kept != report)
		u->kept = focus_report_free(u->kept);
	u->focus->changed(u->uid, u->focus->userdata);
}

static int on_debounce(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	FocusUser *u = userdata;
	Entry *best = best_entry(u);

	show(u, best ? best->report : NULL);
	return 0;
}

/* Decides anew what counts, after any report has changed; news = the shown one itself changed in place. Games that
 * only others name have a share, too: so whoever asked hears of those as well. */
static void settle(FocusUser *u, bool news)
{
	Entry *best = best_entry(u);
	FocusReport *next = best ? best->report : NULL;
	int r;

	if (has_game(u, u->shown) && !has_game(u, next) && u->focus->debounce_usec > 0) {
		if (u->debounce) {
			u->focus->changed(u->uid, u->focus->userdata); /* what others say */
			return;
		}
		r = sd_event_add_time_relative(u->focus->event, &u->debounce, CLOCK_MONOTONIC,
					       u->focus->debounce_usec, 10 * USEC_PER_MSEC, on_debounce, u);
		if (r >= 0) {
			(void)sd_event_source_set_description(u->debounce, "focus-debounce");
			return;
		}
		/* Without a timer it is better to be early than never to end. */
	}
	if (next != u->shown || news) {
		show(u, next);
		return;
	}
	u->debounce = sd_event_source_disable_unref(u->debounce);
	u->focus->changed(u->uid, u->focus->userdata);
}

/* Takes an entry out. If its report is the one that counts, it is kept until the debounce is over. */
static void remove_entry(FocusUser *u, Entry *e)
{
	if (u->shown == e->report) {
		if (u->kept != e->report)
			focus_report_free(u->kept);
		u->kept = e->report;
	} else {
		focus_report_free(e->report);
	}
	*e = u->entries[--u->n];
}

static bool remove_sender(FocusUser *u, const char *sender)
{
	Entry *e = find_entry(u, sender);

	if (e)
		remove_entry(u, e);
	return e;
}

/* A sender says one thing at a time: what it said about another user is over. */
static void forget_elsewhere(Focus *f, uid_t uid, const char *sender)
{
	if (!*sender)
		return;
	for (size_t i = 0; i < f->n_users; i++)
		if (f->users[i]->uid != uid && remove_sender(f->users[i], sender))
			settle(f->users[i], false);
}

int focus_report(Focus *f, uid_t uid, FocusReport *report)
{
	auto_focus_report FocusReport *fresh = report;
	FocusUser *u;
	Entry *e;
	int r;

	r = get_user(f, uid, &u);
	if (r < 0)
		return r;
	forget_elsewhere(f, uid, fresh->sender);
	e = find_entry(u, fresh->sender);
	if (e) {
		/* Persistent ones have no sender, so their numbers are of different ones. */
		if (*fresh->sender && fresh->seq > 0 && fresh->seq <= e->report->seq)
			return 0;
		if (same_report(e->report, fresh)) {
			e->report->seq = fresh->seq;
			e->gone_usec = 0;
			return 0;
		}
	} else {
		/* The source is back under a new name: its old word has no grace any more. */
		e = find_gone(u, fresh->source);
		if (!e && u->n == FOCUS_REPORTS_PER_UID)
			return -EDQUOT;
	}
	if (e)
		remove_entry(u, e);
	u->entries[u->n++] = (Entry){ .report = TAKE_PTR(fresh), .order = ++f->order };
	settle(u, false);
	return 1;
}

int focus_withdraw(Focus *f, uid_t uid, const char *sender)
{
	bool own = false, any = false;

	for (size_t i = 0; i < f->n_users; i++)
		own = own || find_entry(f->users[i], sender);
	for (size_t i = 0; i < f->n_users; i++) {
		FocusUser *u = f->users[i];

		if (!own && uid != FOCUS_ALL_USERS && uid != u->uid)
			continue;
		if (remove_sender(u, own ? sender : "")) {
			settle(u, false);
			any = true;
		}
	}
	return any;
}

static void arm_grace(FocusUser *u);

static int on_grace(sd_event_source *s _unused_, uint64_t now _unused_, void *userdata)
{
	FocusUser *u = userdata;
	uint64_t usec;

	u->grace = sd_event_source_disable_unref(u->grace);
	(void)sd_event_now(u->focus->event, CLOCK_MONOTONIC, &usec);
	for (size_t i = u->n; i-- > 0;)
		if (u->entries[i].gone_usec > 0 && u->entries[i].gone_usec + u->focus->grace_usec <= usec)
			remove_entry(u, &u->entries[i]);
	settle(u, false);
	arm_grace(u);
	return 0;
}

/* One timer a user, for the report whose grace ends first. */
static void arm_grace(FocusUser *u)
{
	uint64_t first = UINT64_MAX;
	int r;

	for (size_t i = 0; i < u->n; i++)
		if (u->entries[i].gone_usec > 0)
			first = MIN(first, u->entries[i].gone_usec);
	u->grace = sd_event_source_disable_unref(u->grace);
	if (first == UINT64_MAX)
		return;
	r = sd_event_add_time(u->focus->event, &u->grace, CLOCK_MONOTONIC, first + u->focus->grace_usec,
			      10 * USEC_PER_MSEC, on_grace, u);
	if (r >= 0)
		(void)sd_event_source_set_description(u->grace, "focus-grace");
}

void focus_sender_gone(Focus *f, const char *sender)
{
	uint64_t usec;

	(void)sd_event_now(f->event, CLOCK_MONOTONIC, &usec);
	for (size_t i = 0; i < f->n_users; i++) {
		Entry *e = find_entry(f->users[i], sender);

		if (!e)
			continue;
		e->gone_usec = MAX(usec, UINT64_C(1));
		arm_grace(f->users[i]);
	}
}

void focus_process_gone(Focus *f, const Process *p)
{
	for (size_t i = 0; i < f->n_users; i++) {
		FocusUser *u = f->users[i];
		bool shown = u->shown && (u->shown->game == p || u->shown->compositor == p);
		Entry *persistent = find_entry(u, "");

		if (persistent && persistent->report->game == p)
			remove_entry(u, persistent);
		/* settle() sees by itself that the process of the shown report has ended. */
		if (shown)
			settle(u, true);
	}
}

void focus_forget_user(Focus *f, uid_t uid)
{
	for (size_t i = 0; i < f->n_users; i++) {
		if (f->users[i]->uid != uid)
			continue;
		user_free(f->users[i]);
		f->users[i] = f->users[--f->n_users];
		f->changed(uid, f->userdata);
		return;
	}
}

const FocusReport *focus_get(const Focus *f, uid_t uid)
{
	FocusUser *u = find_user(f, uid);

	return u ? u->shown : NULL;
}

/* The kept one has no entry any more. */
static bool has_left(const FocusUser *u, const FocusReport *report)
{
	for (size_t i = 0; i < u->n; i++)
		if (u->entries[i].report == report)
			return u->entries[i].gone_usec > 0;
	return true;
}

void focus_each(const Focus *f, focus_each_cb cb, void *userdata)
{
	for (size_t i = 0; i < f->n_users; i++) {
		FocusUser *u = f->users[i];

		if (u->shown)
			cb(u->uid, u->shown, true, has_left(u, u->shown), userdata);
		for (size_t k = 0; k < u->n; k++)
			if (u->entries[k].report != u->shown)
				cb(u->uid, u->entries[k].report, false, has_left(u, u->entries[k].report), userdata);
	}
}

void focus_set_times(Focus *f, uint64_t debounce_usec, uint64_t grace_usec)
{
	f->debounce_usec = debounce_usec;
	f->grace_usec = grace_usec;
}

int focus_new(sd_event *event, focus_cb changed, focus_judge judge, void *userdata, Focus **ret)
{
	Focus *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->event = sd_event_ref(event);
	f->changed = changed;
	f->judge = judge;
	f->userdata = userdata;
	*ret = f;
	return 0;
}

Focus *focus_free(Focus *f)
{
	if (!f)
		return NULL;
	for (size_t i = 0; i < f->n_users; i++)
		user_free(f->users[i]);
	free(f->users);
	sd_event_unref(f->event);
	free(f);
	return NULL;
}
