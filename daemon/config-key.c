/* SPDX-License-Identifier: MIT */
/* How each type of value is read and printed, and the table of the keys. */
#include <inttypes.h>

#include "config-internal.h"

const char *const config_sections[_SECTION_MAX] = {
	[SECTION_POLICY] = "policy",         [SECTION_COMPOSITOR] = "compositor",
	[SECTION_MENU] = "menu",             [SECTION_BACKGROUND] = "background",
	[SECTION_KERNEL] = "kernel",         [SECTION_FOCUS] = "focus",
	[SECTION_USER] = "user",             [SECTION_GAME] = "game",
	[SECTION_SERVICE] = "service",
};

/* --- Types of values ------------------------------------------------------------------------- */

static int parse_key_bool(const Key *key _unused_, const char *value, bool append _unused_,
			  void *target)
{
	return parse_bool(value, target);
}

static void print_bool(FILE *f, const Key *key _unused_, const void *target)
{
	fputs(*(const bool *)target ? "yes" : "no", f);
}

static const char *const ownerships[_OWNERSHIP_MAX] = {
	[OWNERSHIP_EXCLUSIVE] = "exclusive",
	[OWNERSHIP_SHARE] = "share",
};

const char *ownership_to_string(Ownership o)
{
	return o < _OWNERSHIP_MAX ? ownerships[o] : NULL;
}

static const char *const own_scopes[_OWN_SCOPE_MAX] = {
	[OWN_SCOPE_AUTO] = "auto",
	[OWN_SCOPE_NEVER] = "never",
};

const char *own_scope_to_string(OwnScope o)
{
	return o < _OWN_SCOPE_MAX ? own_scopes[o] : NULL;
}

/* The target is an enumeration whose values are the places of the words. */
static int parse_key_word(const Key *key, const char *value, bool append _unused_, void *target)
{
	for (unsigned i = 0; i < key->type->n_words; i++)
		if (streq(key->type->words[i], value)) {
			*(unsigned *)target = i;
			return 0;
		}
	return -EINVAL;
}

static void print_word(FILE *f, const Key *key, const void *target)
{
	fputs(key->type->words[*(const unsigned *)target], f);
}

static int parse_key_number(const Key *key, const char *value, bool append _unused_, void *target)
{
	uint32_t v;
	int r = parse_u32(value, &v);

	if (r >= 0 && key->max && v > key->max)
		r = -ERANGE;
	if (r >= 0)
		*(unsigned *)target = v;
	return r;
}

static void print_number(FILE *f, const Key *key _unused_, const void *target)
{
	fprintf(f, "%u", *(const unsigned *)target);
}

static int parse_key_time(const Key *key, const char *value, bool append _unused_, void *target)
{
	uint64_t v;
	int r = parse_usec(value, &v);

	if (r >= 0 && key->max && v > key->max)
		r = -ERANGE;
	if (r >= 0)
		*(uint64_t *)target = v;
	return r;
}

static void print_time(FILE *f, const Key *key _unused_, const void *target)
{
	uint64_t v = *(const uint64_t *)target;

	if (v % USEC_PER_SEC == 0)
		fprintf(f, "%" PRIu64 "s", v / USEC_PER_SEC);
	else if (v % USEC_PER_MSEC == 0)
		fprintf(f, "%" PRIu64 "ms", v / USEC_PER_MSEC);
	else
		fprintf(f, "%" PRIu64 "us", v);
}

static int parse_key_size(const Key *key _unused_, const char *value, bool append _unused_,
			  void *target)
{
	if (!*value) {
		*(Size *)target = (Size){ SIZE_UNSET, 0 };
		return 0;
	}
	return parse_size(value, target);
}

static void print_size(FILE *f, const Key *key _unused_, const void *target)
{
	const Size *size = target;
	const char *unit = "KMGT";
	uint64_t v = size->value;

	if (size->kind == SIZE_UNSET)
		return;
	if (size->kind == SIZE_PERCENT) {
		fprintf(f, "%" PRIu64 "%%", v);
	} else if (v == UINT64_MAX) {
		fputs("max", f);
	} else if (v == 0 || v % KIB) {
		fprintf(f, "%" PRIu64, v);
	} else {
		for (v /= KIB; v % KIB == 0 && unit[1]; v /= KIB)
			unit++;
		fprintf(f, "%" PRIu64 "%c", v, *unit);
	}
}

static int parse_key_percent(const Key *key _unused_, const char *value, bool append _unused_,
			     void *target)
{
	return parse_percent(value, target);
}

static void print_percent(FILE *f, const Key *key _unused_, const void *target)
{
	fprintf(f, "%u%%", *(const unsigned *)target);
}

static int parse_key_string(const Key *key _unused_, const char *value, bool append _unused_,
			    void *target)
{
	char *copy = NULL;

	if (*value) {
		copy = strdup(value);
		if (!copy)
			return -ENOMEM;
	}
	free(*(char **)target);
	*(char **)target = copy;
	return 0;
}

static void print_string(FILE *f, const Key *key _unused_, const void *target)
{
	fputs(strempty(*(char *const *)target), f);
}

/* Appends the words of value to a fresh list, which always ends with NULL. */
static int list_add_words(char ***list, const char *value)
{
	static const char blanks[] = " \t\r\v\f";

	for (const char *s = value + strspn(value, blanks); *s; s += strspn(s, blanks)) {
		size_t length = strcspn(s, blanks), n = strv_length(*list);
		char **p;

		/* A comment, which inih 55 leaves in a continuation line, later ones do not. */
		if (*s == ';')
			break;
		/* Printed with a word a line, it would be a comment. */
		if (*s == '#')
			return -EINVAL;
		if (n >= WORDS_MAX)
			return -E2BIG;
		p = reallocarray(*list, n + 2, sizeof(*p));
		if (!p)
			return -ENOMEM;
		*list = p;
		p[n + 1] = NULL;
		p[n] = strndup(s, length);
		if (!p[n])
			return -ENOMEM;
		s += length;
	}
	return 0;
}

static int parse_key_list(const Key *key _unused_, const char *value, bool append, void *target)
{
	auto_strv char **list = calloc(1, sizeof(*list));
	char ***old = target;
	int r = list ? 0 : -ENOMEM;

	for (char **s = append ? *old : NULL; r >= 0 && s && *s; s++)
		r = list_add_words(&list, *s);
	if (r >= 0)
		r = list_add_words(&list, value);
	if (r < 0)
		return r;
	strv_free(*old);
	*old = TAKE_PTR(list);
	return 0;
}

/* A word a line, so that no list is too long for a line. */
static void print_list(FILE *f, const Key *key _unused_, const void *target)
{
	for (char *const *s = *(char **const *)target; s && *s; s++)
		fprintf(f, "\n\t%s", *s);
}

/* Keys of knobs are called as these are. */
static int parse_key_knob(const Key *key, const char *value, bool append _unused_, void *target)
{
	KnobWish wish = { KNOB_SET, 0 };
	int r = 0;

	if (!*value)
		wish.kind = KNOB_UNSET;
	else if (streq(value, "keep"))
		wish.kind = KNOB_KEEP;
	else
		r = knob_parse(knob_from_name(key->name), value, &wish.value);
	if (r >= 0)
		*(KnobWish *)target = wish;
	return r;
}

static void print_knob(FILE *f, const Key *key, const void *target)
{
	const KnobWish *wish = target;
	char text[KNOB_TEXT_MAX];

	if (wish->kind != KNOB_UNSET)
		fputs(wish->kind == KNOB_KEEP ? "keep" :
						knob_format(text, knob_infos[knob_from_name(key->name)].kind, wish->value),
		      f);
}

static const KeyType type_bool = {
	.parse = parse_key_bool, .print = print_bool, .expects = "yes or no",
};
static const KeyType type_own_scope = {
	.parse = parse_key_word, .print = print_word, .expects = "auto or never",
	.words = own_scopes, .n_words = _OWN_SCOPE_MAX,
};
static const KeyType type_ownership = {
	.parse = parse_key_word, .print = print_word, .expects = "exclusive or share",
	.words = ownerships, .n_words = _OWNERSHIP_MAX,
};
static const KeyType type_number = {
	.parse = parse_key_number, .print = print_number, .expects = "a whole number",
};
static const KeyType type_time = {
	.parse = parse_key_time, .print = print_time, .expects = "a time such as 250ms or 10s",
};
static const KeyType type_size = {
	.parse = parse_key_size, .print = print_size, .expects = "a size such as 512M, 10% or max",
};
static const KeyType type_percent = {
	.parse = parse_key_percent,
	.print = print_percent,
	.expects = "a percentage from 0% to 100%",
};
static const KeyType type_string = {
	.parse = parse_key_string, .print = print_string, .expects = "text",
};
static const KeyType type_list = {
	.parse = parse_key_list,
	.print = print_list,
	.expects = "a list of words, none with # first",
	.list = true,
};

static const KeyType type_knob_msec = {
	.parse = parse_key_knob, .print = print_knob, .expects = "a time such as 50ms or 2s, or keep",
};
static const KeyType type_knob_count = {
	.parse = parse_key_knob, .print = print_knob, .expects = "a whole number, or keep",
};
static const KeyType type_knob_switch = {
	.parse = parse_key_knob, .print = print_knob, .expects = "yes, no or keep",
};

/* --- The keys -------------------------------------------------------------------------------- */

#define CONFIG_KEY(kind, key, type, field, ...) \
	{ SECTION_##kind, key, &type_##type, offsetof(Config, field), __VA_ARGS__ }
#define GAME_KEY(key, type, field, ...) \
	{ SECTION_GAME, key, &type_##type, offsetof(GameConfig, field), __VA_ARGS__ }
#define SERVICE_KEY(key, type, field, ...) \
	{ SECTION_SERVICE, key, &type_##type, offsetof(ServiceConfig, field), __VA_ARGS__ }

const Key config_keys[] = {
	CONFIG_KEY(POLICY, "Enabled", bool, enabled, "yes"),
	CONFIG_KEY(POLICY, "Force", bool, force, "no"),
	CONFIG_KEY(POLICY, "Ownership", ownership, ownership, "exclusive"),
	CONFIG_KEY(POLICY, "OwnScope", own_scope, own_scope, "auto"),
	CONFIG_KEY(POLICY, "ReassertLimit", number, reassert_limit, "6", 600),
	CONFIG_KEY(POLICY, "Reserve", size, reserve, ""),
	CONFIG_KEY(POLICY, "GameLow", size, game_low, ""),
	CONFIG_KEY(POLICY, "GameMin", size, game_min, "0"),
	CONFIG_KEY(POLICY, "Debounce", time, debounce_usec, "250ms", 60 * USEC_PER_SEC),
	CONFIG_KEY(POLICY, "Grace", time, grace_usec, "10s", 3600 * USEC_PER_SEC),
	CONFIG_KEY(POLICY, "Easing", time, easing_usec, "2s", 60 * USEC_PER_SEC),
	CONFIG_KEY(POLICY, "AllowGames", list, allow_games, ""),
	CONFIG_KEY(POLICY, "DenyGames", list, deny_games, ""),
	CONFIG_KEY(COMPOSITOR, "Floor", size, compositor_floor, ""),
	CONFIG_KEY(COMPOSITOR, "Units", list, compositor_units,
		   "gamescope-session.service gamescope-session-plus@*.service "
		   "plasma-kwin_wayland.service plasma-kwin_x11.service org.gnome.Shell@*.service "
		   "sway.service wayland-wm@*.service"),
	CONFIG_KEY(MENU, "Share", size, menu_share, "10%"),
	CONFIG_KEY(MENU, "Units", list, menu_units,
		   "steam-launcher.service app-steam@*.service app-*steam*.scope "
		   "app-flatpak-com.valvesoftware.Steam-*.scope"),
	CONFIG_KEY(BACKGROUND, "Share", percent, background_share, "50%"),
	CONFIG_KEY(BACKGROUND, "Max", size, background_max, ""),
	CONFIG_KEY(BACKGROUND, "Units", list, background_units, "*"),
	CONFIG_KEY(KERNEL, "ThrottleHard", knob_msec, knobs[KNOB_THROTTLE_HARD], "50ms"),
	CONFIG_KEY(KERNEL, "ThrottleSoft", knob_msec, knobs[KNOB_THROTTLE_SOFT], "2s"),
	CONFIG_KEY(KERNEL, "ThrottleLevels", knob_count, knobs[KNOB_THROTTLE_LEVELS], "1"),
	CONFIG_KEY(KERNEL, "ReclaimBackoff", knob_msec, knobs[KNOB_RECLAIM_BACKOFF], "20ms"),
	CONFIG_KEY(KERNEL, "ContigWindow", knob_switch, knobs[KNOB_CONTIG_WINDOW], "yes"),
	CONFIG_KEY(KERNEL, "EvictPriority", knob_switch, knobs[KNOB_EVICT_PRIORITY], "yes"),
	CONFIG_KEY(KERNEL, "DisplaceLower", knob_switch, knobs[KNOB_DISPLACE_LOWER], "yes"),
	CONFIG_KEY(KERNEL, "GfxoffDelay", knob_msec, knobs[KNOB_GFXOFF_DELAY], "keep"),
	CONFIG_KEY(FOCUS, "Worker", bool, worker, "yes"),
	CONFIG_KEY(USER, "Allow", list, allow_users, ""),
	CONFIG_KEY(USER, "Deny", list, deny_users, ""),
	GAME_KEY("Name", string, name, ""),
	GAME_KEY("Min", size, min, ""),
	GAME_KEY("Low", size, low, ""),
	GAME_KEY("Protect", bool, protect, "yes"),
	GAME_KEY("Easing", bool, easing, "yes"),
	GAME_KEY("MakeRoom", size, make_room, ""),
	GAME_KEY("ThrottleHard", knob_msec, knobs[KNOB_THROTTLE_HARD], ""),
	GAME_KEY("ThrottleSoft", knob_msec, knobs[KNOB_THROTTLE_SOFT], ""),
	GAME_KEY("ThrottleLevels", knob_count, knobs[KNOB_THROTTLE_LEVELS], ""),
	GAME_KEY("ReclaimBackoff", knob_msec, knobs[KNOB_RECLAIM_BACKOFF], ""),
	GAME_KEY("ContigWindow", knob_switch, knobs[KNOB_CONTIG_WINDOW], ""),
	GAME_KEY("EvictPriority", knob_switch, knobs[KNOB_EVICT_PRIORITY], ""),
	GAME_KEY("DisplaceLower", knob_switch, knobs[KNOB_DISPLACE_LOWER], ""),
	GAME_KEY("GfxoffDelay", knob_msec, knobs[KNOB_GFXOFF_DELAY], ""),
	SERVICE_KEY("Low", size, low, ""),
	SERVICE_KEY("Max", size, max, ""),
	{ .name = NULL },
};

int config_key_set(const Key *key, void *object, const char *value, bool append)
{
	if (!*value && !key->type->list)
		value = key->fallback;
	return key->type->parse(key, value, append, (char *)object + key->offset);
}

int config_set_defaults(SectionKind first, SectionKind last, void *object)
{
	FOREACH_KEY(key) {
		int r;

		if (key->section < first || key->section > last)
			continue;
		r = config_key_set(key, object, key->fallback, false);
		if (r < 0)
			return r;
	}
	return 0;
}
