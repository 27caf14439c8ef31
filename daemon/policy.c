/* SPDX-License-Identifier: MIT */
/* Four steps: claim() says what each group asks for in each region, fit() cuts that to what the region
 * has, ease() lowers a game that lost memory, build() adds the ancestors. */
#include "policy.h"

static const PlanLimits no_claim = { { [DMEM_MAX] = DMEM_UNLIMITED } };

/* One session that counts. */
typedef struct Seat {
	const WorldSession *session; /* NULL: the system's own services */
	bool front;                  /* a game is in front */
	bool game;                   /* there is a game at all, in front or behind */
	uint64_t *compositor_use;    /* [n_regions] */
	uint64_t *front_low; /* [n_regions] what the game in front asks for; no game: no bound */
} Seat;

/* What a path asks for in one role, and then what it gets. */
typedef struct Claim {
	const char *path;
	GroupRole role;
	PlanReason reason;
	const Easing *easing; /* [n_regions], or NULL */
	PlanLimits *limits; /* [n_regions] */
} Claim;

typedef struct Decision {
	const World *world;
	const Config *config;
	bool front;                /* a game is in front in some session */
	const WorldGroup **groups; /* those that count, by importance, then path */
	size_t n_groups;
	Seat *seats;
	size_t n_seats, n_seats_alloc;
	Claim *claims;             /* in the order of groups; then, for build(), by path */
	size_t n_claims;
} Decision;

static void decision_done(Decision *d)
{
	for (size_t i = 0; i < d->n_seats; i++) {
		free(d->seats[i].compositor_use);
		free(d->seats[i].front_low);
	}
	for (size_t i = 0; i < d->n_claims; i++)
		free(d->claims[i].limits);
	free(d->groups);
	free(d->seats);
	free(d->claims);
}

/* --- Order ----------------------------------------------------------------------------------- */

/* With the slash lowest, a group is followed by all that is below it, then by its siblings. */
static int path_byte(char c)
{
	return c == '/' ? 1 : c ? (unsigned char)c + 1 : 0;
}

static int path_compare(const char *a, const char *b)
{
	for (; *a && *a == *b; a++)
		b++;
	return path_byte(*a) - path_byte(*b);
}

/* Is path the group named by the first n bytes of ancestor, or below it? */
static bool path_is_within(const char *path, const char *ancestor, size_t n)
{
	return strncmp(path, ancestor, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool path_is_below(const char *path, const char *ancestor)
{
	return path_is_within(path, ancestor, strlen(ancestor));
}

/* The root has no limits, and only what systemd could have made is touched. */
static bool path_is_valid(const char *path)
{
	return path[0] == '/' && path[1] && !strstr(path, "//") && !endswith(path, "/");
}

static int group_compare(const void *a, const void *b)
{
	const WorldGroup *x = *(const WorldGroup *const *)a, *y = *(const WorldGroup *const *)b;

	return x->role != y->role ? (int)x->role - (int)y->role : path_compare(x->path, y->path);
}

static int claim_compare(const void *a, const void *b)
{
	const Claim *x = a, *y = b;
	int r = path_compare(x->path, y->path);

	return r ? r : (int)x->role - (int)y->role;
}

/* --- Survey: which groups count, and what their sessions look like --------------------------- */

static bool group_counts(const WorldGroup *g)
{
	if (!path_is_valid(g->path) || (g->session && !g->session->active))
		return false;
	return !g->game || g->game->protect;
}

static Seat *seat_find(Decision *d, const WorldSession *session)
{
	for (size_t i = 0; i < d->n_seats; i++)
		if (d->seats[i].session == session)
			return &d->seats[i];
	return NULL;
}

static int seat_get(Decision *d, const WorldSession *session, Seat **ret)
{
	size_t n = d->world->n_regions;
	Seat *seat = seat_find(d, session);

	if (!seat) {
		if (!GROW(d->seats, d->n_seats_alloc, d->n_seats))
			return -ENOMEM;
		seat = &d->seats[d->n_seats++];
		*seat = (Seat){
			.session = session,
			.compositor_use = calloc(n + 1, sizeof(uint64_t)),
			.front_low = calloc(n + 1, sizeof(uint64_t)),
		};
		if (!seat->compositor_use || !seat->front_low)
			return -ENOMEM;
		for (size_t r = 0; r < n; r++)
			seat->front_low[r] = UINT64_MAX;
	}
	*ret = seat;
	return 0;
}

/* The same unit may be listed more than once, for each process that was named in it. */
static bool group_is_repeated(const Decision *d, size_t i)
{
	return i > 0 && group_compare(&d->groups[i - 1], &d->groups[i]) == 0;
}

static int survey(Decision *d)
{
	d->groups = calloc(d->world->n_groups + 1, sizeof(*d->groups));
	if (!d->groups)
		return -ENOMEM;
	for (size_t i = 0; i < d->world->n_groups; i++)
		if (group_counts(&d->world->groups[i]))
			d->groups[d->n_groups++] = &d->world->groups[i];
	qsort(d->groups, d->n_groups, sizeof(*d->groups), group_compare);

	for (size_t i = 0; i < d->n_groups; i++) {
		const WorldGroup *g = d->groups[i];
		Seat *seat;
		int r = seat_get(d, g->session, &seat);

		if (r < 0)
			return r;
		seat->front |= g->role == ROLE_FRONT;
		seat->game |= g->role == ROLE_FRONT || g->role == ROLE_BACKGROUND;
		d->front |= g->role == ROLE_FRONT;
		if (g->role != ROLE_COMPOSITOR || group_is_repeated(d, i))
			continue;
		for (size_t k = 0; k < d->world->n_regions; k++)
			seat->compositor_use[k] = add_sat(seat->compositor_use[k], g->current[k]);
	}
	return 0;
}

/* --- Claims: the table ----------------------------------------------------------------------- */

/* A quarter on top: a floor just below what the compositor uses makes it evict its own buffers, two
 * megabytes a frame; one above it costs nothing. */
static uint64_t with_margin(uint64_t use)
{
	return add_sat(use, use / 4);
}

static uint64_t compositor_floor(const Config *config, uint64_t capacity, uint64_t use)
{
	uint64_t measured = MAX(with_margin(use), capacity / 32);

	return MIN(size_resolve(&config->compositor_floor, capacity, measured), capacity / 8);
}

/* What the game in front leaves to everybody else. */
static uint64_t reserve(const Config *config, uint64_t capacity, uint64_t compositor_use)
{
	/* Others too have buffers that can be nowhere else; with no room for them they and the game evict each other. */
	uint64_t measured = MAX(add_sat(with_margin(compositor_use), capacity / 32), capacity / 16);

	return size_resolve(&config->reserve, capacity, MIN(measured, capacity / 4));
}

static PlanLimits front_claim(const Config *config, const GameConfig *game, uint64_t capacity,
			      uint64_t compositor_use)
{
	uint64_t min = size_resolve(&config->game_min, capacity, 0);
	uint64_t low = size_resolve(&config->game_low, capacity,
				    capacity - reserve(config, capacity, compositor_use));

	if (game) {
		min = size_resolve(&game->min, capacity, min);
		low = size_resolve(&game->low, capacity, low);
	}
	return (PlanLimits){ { min, MAX(low, min), DMEM_UNLIMITED } };
}

/* A ceiling that nothing could reach is none. */
static uint64_t ceiling(const Size *max, uint64_t capacity)
{
	uint64_t value = size_resolve(max, capacity, capacity);

	return value < capacity ? value : DMEM_UNLIMITED;
}

/* One row of the table for one region. */
static PlanLimits claim_in_region(const Decision *d, const WorldGroup *g, const Seat *seat,
				  size_t region)
{
	const Config *config = d->config;
	uint64_t capacity = d->world->regions[region].capacity;
	uint64_t min = 0, low = 0, max = DMEM_UNLIMITED;

	switch (g->role) {
	case ROLE_COMPOSITOR:
		if (seat->game)
			min = low = compositor_floor(config, capacity, g->current[region]);
		break;
	case ROLE_FRONT:
		return front_claim(config, g->game, capacity, seat->compositor_use[region]);
	case ROLE_OVERLAY:
		if (seat->front && g->session && g->session->menu == MENU_OPEN)
			low = MIN(size_resolve(&config->menu_share, capacity, 0), capacity / 8);
		break;
	case ROLE_BACKGROUND:
		low = percent_of(MIN(g->current[region], capacity), config->background_share);
		low = MIN(low, seat->front_low[region]);
		break;
	case ROLE_SERVICE:
		if (d->front)
			max = ceiling(&g->service->max, capacity);
		else
			low = size_resolve(&g->service->low, capacity, 0);
		break;
	case ROLE_SIBLING:
		if (seat->front)
			max = ceiling(&config->background_max, capacity);
		break;
	case ROLE_ROOM:
		max = g->ceiling[region];
		break;
	case _ROLE_MAX:
		break;
	}
	return (PlanLimits){ { min, low, max } };
}

static PlanReason claim_reason(const Decision *d, GroupRole role)
{
	static const PlanReason reasons[_ROLE_MAX] = {
		[ROLE_COMPOSITOR] = PLAN_COMPOSITOR_FLOOR,
		[ROLE_FRONT] = PLAN_GAME_IN_FRONT,
		[ROLE_OVERLAY] = PLAN_MENU_SHARE,
		[ROLE_BACKGROUND] = PLAN_BACKGROUND_SHARE,
		[ROLE_SERVICE] = PLAN_SERVICE_CLAIM,
		[ROLE_SIBLING] = PLAN_BACKGROUND_CEILING,
		[ROLE_ROOM] = PLAN_ROOM,
	};

	return role == ROLE_SERVICE && d->front ? PLAN_SERVICE_CEILING : reasons[role];
}

static PlanLimits *limits_new(size_t n_regions)
{
	PlanLimits *limits = calloc(n_regions + 1, sizeof(*limits));

	for (size_t r = 0; limits && r < n_regions; r++)
		limits[r] = no_claim;
	return limits;
}

static void limits_merge(PlanLimits *into, const PlanLimits *other)
{
	uint64_t *v = into->value;

	v[DMEM_MIN] = MAX(v[DMEM_MIN], other->value[DMEM_MIN]);
	v[DMEM_LOW] = MAX(v[DMEM_LOW], other->value[DMEM_LOW]);
	v[DMEM_MAX] = MIN(v[DMEM_MAX], other->value[DMEM_MAX]);
}

static bool region_counts(const Decision *d, size_t region)
{
	const WorldRegion *r = &d->world->regions[region];

	return !r->nothing_to_gain || d->config->force;
}

/* In order of importance, so that the game in front has spoken before those behind it. */
static int claim(Decision *d)
{
	size_t n = d->world->n_regions;

	d->claims = calloc(d->n_groups + 1, sizeof(*d->claims));
	if (!d->claims)
		return -ENOMEM;
	for (size_t i = 0; i < d->n_groups; i++) {
		const WorldGroup *g = d->groups[i];
		Seat *seat = seat_find(d, g->session);
		Claim *c;

		if (!group_is_repeated(d, i)) {
			c = &d->claims[d->n_claims++];
			*c = (Claim){ g->path, g->role, claim_reason(d, g->role), g->easing,
				      limits_new(n) };
		}
		c = &d->claims[d->n_claims - 1];
		if (!c->limits)
			return -ENOMEM;
		for (size_t r = 0; r < n; r++) {
			PlanLimits l =
				region_counts(d, r) ? claim_in_region(d, g, seat, r) : no_claim;

			limits_merge(&c->limits[r], &l);
			if (g->role == ROLE_FRONT)
				seat->front_low[r] = MIN(seat->front_low[r], l.value[DMEM_LOW]);
		}
	}
	return 0;
}

/* --- Fit: never promise more than there is --------------------------------------------------- */

/* value * part / whole for part <= whole, rounded down. What would overflow loses its last bits: of
 * four terabytes one millionth, of a card less than a page. */
static uint64_t in_proportion(uint64_t value, uint64_t part, uint64_t whole)
{
	uint64_t product;

	while (__builtin_mul_overflow(value, part, &product)) {
		part /= 2;
		whole = whole / 2 + whole % 2;
	}
	return product / whole;
}

/* Grants min, or what low is above min, to claims of equal importance; all of it if the budget
 * allows. Once somebody was cut, nothing is left for those who matter less. */
static void grant(Claim *claims, size_t n, size_t region, DmemLimit limit, uint64_t *budget)
{
	uint64_t total = 0, left = *budget;

	for (size_t i = 0; i < n; i++) {
		const uint64_t *v = claims[i].limits[region].value;

		total = add_sat(total, limit == DMEM_LOW ? v[DMEM_LOW] - v[DMEM_MIN] : v[DMEM_MIN]);
	}
	if (total <= *budget) {
		*budget -= total;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t *v = claims[i].limits[region].value;
		uint64_t base = limit == DMEM_LOW ? v[DMEM_MIN] : 0;
		uint64_t share = MIN(in_proportion(v[limit] - base, *budget, total), left);

		v[limit] = base + share;
		left -= share;
	}
	*budget = 0;
}

/* From the most important role down, for claims that are in that order. */
static void grant_by_role(Decision *d, size_t region, DmemLimit limit, uint64_t *budget)
{
	size_t begin = 0;

	for (size_t end = 1; end <= d->n_claims; end++) {
		if (end < d->n_claims && d->claims[end].role == d->claims[begin].role)
			continue;
		grant(&d->claims[begin], end - begin, region, limit, budget);
		begin = end;
	}
}

static void fit(Decision *d)
{
	for (size_t r = 0; r < d->world->n_regions; r++) {
		uint64_t budget = d->world->regions[r].capacity;

		grant_by_role(d, r, DMEM_MIN, &budget);
		grant_by_role(d, r, DMEM_LOW, &budget);
	}
}

/* --- Ease: after everybody has got his, since nobody shall have what a game lets go of only for a moment */

static void ease(Decision *d)
{
	for (size_t i = 0; i < d->n_claims; i++) {
		Claim *c = &d->claims[i];

		for (size_t r = 0; c->easing && r < d->world->n_regions; r++) {
			uint64_t *v = c->limits[r].value;
			uint64_t low = MAX(c->easing[r].low, v[DMEM_MIN]);

			if (low >= v[DMEM_LOW])
				continue;
			v[DMEM_LOW] = low;
			c->reason = PLAN_GAME_EASED;
		}
	}
}

/* --- Build: the tree above the claims -------------------------------------------------------- */

#define NO_PARENT SIZE_MAX

static bool claim_is_empty(const Claim *c, size_t n_regions)
{
	for (size_t r = 0; r < n_regions; r++)
		if (memcmp(&c->limits[r], &no_claim, sizeof(no_claim)) != 0)
			return false;
	return true;
}

static int plan_add_group(Plan *plan, size_t *n_alloc, const char *path, size_t n)
{
	PlanGroup *g;

	if (!GROW(plan->groups, *n_alloc, plan->n_groups))
		return -ENOMEM;
	g = &plan->groups[plan->n_groups++];
	*g = (PlanGroup){
		.path = strndup(path, n),
		.reason = PLAN_ANCESTOR,
		.limits = limits_new(plan->n_regions),
	};
	return g->path && g->limits ? 0 : -ENOMEM;
}

/* Adds path behind those of its ancestors that previous, the path before it, does not have. */
static int plan_add_path(Plan *plan, size_t *n_alloc, const char *path, const char *previous)
{
	for (const char *end = path; *end;) {
		int r;

		end = strchrnul(end + 1, '/');
		if (path_is_within(previous, path, (size_t)(end - path)))
			continue;
		r = plan_add_group(plan, n_alloc, path, (size_t)(end - path));
		if (r < 0)
			return r;
	}
	return 0;
}

/* Each group gets the more of its own claim and of what its children hold. A ceiling on something
 * that is protected, or has protected children, would take back what was promised: then there is
 * none. */
static void plan_settle(Plan *plan, const size_t *parents, PlanLimits *below)
{
	size_t n = plan->n_regions;

	for (size_t i = plan->n_groups; i-- > 0;)
		for (size_t r = 0; r < n; r++) {
			uint64_t *v = plan->groups[i].limits[r].value;
			const uint64_t *children = below[i * n + r].value;

			for (DmemLimit l = DMEM_MIN; l <= DMEM_LOW; l++) {
				v[l] = MAX(v[l], children[l]);
				if (parents[i] != NO_PARENT)
					below[parents[i] * n + r].value[l] += v[l];
			}
			if (v[DMEM_LOW] > 0)
				v[DMEM_MAX] = DMEM_UNLIMITED;
		}
}

static int plan_add_ancestors(Plan *plan)
{
	auto_free size_t *parents = calloc(plan->n_groups + 1, sizeof(*parents));
	auto_free PlanLimits *below = calloc(plan->n_groups * plan->n_regions + 1, sizeof(*below));

	if (!parents || !below)
		return -ENOMEM;
	for (size_t i = 0; i < plan->n_groups; i++) {
		const char *path = plan->groups[i].path;
		size_t p = i > 0 ? i - 1 : NO_PARENT;

		/* Back from the group before, up to the one that this path lies in. */
		while (p != NO_PARENT && !path_is_below(path, plan->groups[p].path))
			p = parents[p];
		if (p != NO_PARENT)
			plan->groups[p].ancestor = true;
		parents[i] = p;
	}
	plan_settle(plan, parents, below);
	return 0;
}

static int build(Decision *d, Plan *plan)
{
	const char *previous = "";
	size_t n_alloc = 0;
	int r;

	qsort(d->claims, d->n_claims, sizeof(*d->claims), claim_compare);
	for (size_t i = 0; i < d->n_claims; i++) {
		const Claim *c = &d->claims[i];
		PlanGroup *g;

		if (claim_is_empty(c, plan->n_regions))
			continue;
		r = plan_add_path(plan, &n_alloc, c->path, previous);
		if (r < 0)
			return r;
		previous = c->path;
		g = &plan->groups[plan->n_groups - 1];
		if (g->reason == PLAN_ANCESTOR)
			g->reason = c->reason; /* the most important role came first */
		g->passing = g->passing || c->role == ROLE_ROOM;
		for (size_t k = 0; k < plan->n_regions; k++)
			limits_merge(&g->limits[k], &c->limits[k]);
	}
	return plan_add_ancestors(plan);
}

static int plan_add_regions(Plan *plan, const World *world)
{
	plan->regions = calloc(world->n_regions + 1, sizeof(*plan->regions));
	if (!plan->regions)
		return -ENOMEM;
	for (; plan->n_regions < world->n_regions; plan->n_regions++) {
		plan->regions[plan->n_regions] = strdup(world->regions[plan->n_regions].name);
		if (!plan->regions[plan->n_regions])
			return -ENOMEM;
	}
	return 0;
}

int policy_decide(const World *world, const Config *config, Plan *ret)
{
	_cleanup_(decision_done) Decision d = { .world = world, .config = config };
	auto_plan Plan plan = { 0 };
	int r;

	r = plan_add_regions(&plan, world);
	if (r >= 0 && config->enabled)
		r = survey(&d);
	if (r >= 0)
		r = claim(&d);
	if (r < 0)
		return r;
	fit(&d);
	ease(&d);
	r = build(&d, &plan);
	if (r < 0)
		return r;
	*ret = plan;
	plan = (Plan){ 0 };
	return 0;
}

void plan_done(Plan *plan)
{
	for (size_t i = 0; i < plan->n_groups; i++) {
		free(plan->groups[i].path);
		free(plan->groups[i].limits);
	}
	for (size_t i = 0; i < plan->n_regions; i++)
		free(plan->regions[i]);
	free(plan->groups);
	free(plan->regions);
	*plan = (Plan){ 0 };
}

static int plan_group_compare(const void *key, const void *group)
{
	return path_compare(key, ((const PlanGroup *)group)->path);
}

const PlanGroup *plan_find(const Plan *plan, const char *path)
{
	if (plan->n_groups == 0)
		return NULL;
	return bsearch(path, plan->groups, plan->n_groups, sizeof(*plan->groups),
		       plan_group_compare);
}

const char *plan_reason_to_string(PlanReason reason)
{
	static const char *const phrases[_PLAN_REASON_MAX] = {
		[PLAN_GAME_IN_FRONT] = "the game in front",
		[PLAN_GAME_EASED] = "the game in front, eased",
		[PLAN_COMPOSITOR_FLOOR] = "floor of the compositor",
		[PLAN_MENU_SHARE] = "share of the open menu",
		[PLAN_BACKGROUND_SHARE] = "share of a game in the background",
		[PLAN_SERVICE_CLAIM] = "claim of a service",
		[PLAN_SERVICE_CEILING] = "ceiling of a service while a game is in front",
		[PLAN_BACKGROUND_CEILING] = "ceiling beside the game in front",
		[PLAN_ROOM] = "room for a game that starts",
		[PLAN_ANCESTOR] = "sum of its protected children",
	};

	return reason < _PLAN_REASON_MAX ? phrases[reason] : NULL;
}
