/* SPDX-License-Identifier: MIT */
/* inih splits lines into section, key and value; the rest is the table below. Since inih tells its
 * handler no line number, cuts long lines and section names, and reports no more than one bad line,
 * it reads from read_line(), which knows the line and looks at what inih would pass over in
 * silence. */
#include <ctype.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ini.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "config.h"

#define FILE_SIZE_MAX MIB
#define SECTION_NAME_MAX 49 /* inih: MAX_SECTION less the NUL; what is longer is cut */
#define UNIT_NAME_CHARS \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.@\\"
#define WORDS_MAX 512 /* of a list */
#define GAMES_MAX 1024
#define SERVICES_MAX 256

/* --- Types of values ------------------------------------------------------------------------- */

typedef struct Key Key;

typedef struct KeyType {
	/* -EINVAL, -ERANGE, -E2BIG, -ENOMEM; *target is as before then. */
	int (*parse)(const Key *key, const char *value, bool append, void *target);
	void (*print)(FILE *f, const void *target);
	const char *expects;
	bool list; /* takes continuation lines; empty is a value and not "the default" */
} KeyType;

typedef enum SectionKind {
	SECTION_POLICY,
	SECTION_COMPOSITOR,
	SECTION_MENU,
	SECTION_BACKGROUND,
	SECTION_USER,
	SECTION_GAME,    /* [game ID], into a GameConfig */
	SECTION_SERVICE, /* [service NAME], into a ServiceConfig */
	_SECTION_MAX,
} SectionKind;

static const char *const section_names[_SECTION_MAX] = {
	[SECTION_POLICY] = "policy",         [SECTION_COMPOSITOR] = "compositor",
	[SECTION_MENU] = "menu",             [SECTION_BACKGROUND] = "background",
	[SECTION_USER] = "user",             [SECTION_GAME] = "game",
	[SECTION_SERVICE] = "service",
};

struct Key {
	SectionKind section;
	const char *name;
	const KeyType *type;
	size_t offset;
	const char *fallback; /* the default, as one would write it */
	uint64_t max;         /* of numbers and times; 0 = no bound */
};

static int parse_key_bool(const Key *key _unused_, const char *value, bool append _unused_,
			  void *target)
{
	return parse_bool(value, target);
}

static void print_bool(FILE *f, const void *target)
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

static int parse_key_ownership(const Key *key _unused_, const char *value, bool append _unused_,
			       void *target)
{
	for (size_t i = 0; i < ARRAY_SIZE(ownerships); i++)
		if (streq(ownerships[i], value)) {
			*(Ownership *)target = (Ownership)i;
			return 0;
		}
	return -EINVAL;
}

static void print_ownership(FILE *f, const void *target)
{
	fputs(ownership_to_string(*(const Ownership *)target), f);
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

static void print_number(FILE *f, const void *target)
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

static void print_time(FILE *f, const void *target)
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

static void print_size(FILE *f, const void *target)
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

static void print_percent(FILE *f, const void *target)
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

static void print_string(FILE *f, const void *target)
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
static void print_list(FILE *f, const void *target)
{
	for (char *const *s = *(char **const *)target; s && *s; s++)
		fprintf(f, "\n\t%s", *s);
}

static const KeyType type_bool = {
	.parse = parse_key_bool, .print = print_bool, .expects = "yes or no",
};
static const KeyType type_ownership = {
	.parse = parse_key_ownership, .print = print_ownership, .expects = "exclusive or share",
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

/* --- The keys -------------------------------------------------------------------------------- */

#define CONFIG_KEY(kind, key, type, field, ...) \
	{ SECTION_##kind, key, &type_##type, offsetof(Config, field), __VA_ARGS__ }
#define GAME_KEY(key, type, field, ...) \
	{ SECTION_GAME, key, &type_##type, offsetof(GameConfig, field), __VA_ARGS__ }
#define SERVICE_KEY(key, type, field, ...) \
	{ SECTION_SERVICE, key, &type_##type, offsetof(ServiceConfig, field), __VA_ARGS__ }

static const Key keys[] = {
	CONFIG_KEY(POLICY, "Enabled", bool, enabled, "yes"),
	CONFIG_KEY(POLICY, "Force", bool, force, "no"),
	CONFIG_KEY(POLICY, "Ownership", ownership, ownership, "exclusive"),
	CONFIG_KEY(POLICY, "ReassertLimit", number, reassert_limit, "6", 600),
	CONFIG_KEY(POLICY, "Reserve", size, reserve, ""),
	CONFIG_KEY(POLICY, "GameLow", size, game_low, ""),
	CONFIG_KEY(POLICY, "GameMin", size, game_min, "0"),
	CONFIG_KEY(POLICY, "Debounce", time, debounce_usec, "250ms", 60 * USEC_PER_SEC),
	CONFIG_KEY(POLICY, "Grace", time, grace_usec, "10s", 3600 * USEC_PER_SEC),
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
	CONFIG_KEY(USER, "Allow", list, allow_users, ""),
	CONFIG_KEY(USER, "Deny", list, deny_users, ""),
	GAME_KEY("Name", string, name, ""),
	GAME_KEY("Min", size, min, ""),
	GAME_KEY("Low", size, low, ""),
	GAME_KEY("Protect", bool, protect, "yes"),
	SERVICE_KEY("Low", size, low, ""),
	SERVICE_KEY("Max", size, max, ""),
};

/* Sets a key of an object (the Config, or one GameConfig or ServiceConfig in it). */
static int key_set(const Key *key, void *object, const char *value, bool append)
{
	if (!*value && !key->type->list)
		value = key->fallback;
	return key->type->parse(key, value, append, (char *)object + key->offset);
}

static int set_defaults(SectionKind first, SectionKind last, void *object)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		int r;

		if (keys[i].section < first || keys[i].section > last)
			continue;
		r = key_set(&keys[i], object, keys[i].fallback, false);
		if (r < 0)
			return r;
	}
	return 0;
}

int config_new(Config **ret)
{
	auto_config Config *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	r = set_defaults(SECTION_POLICY, SECTION_USER, c);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(c);
	return 0;
}

static void game_done(GameConfig *game)
{
	free(game->pattern);
	free(game->name);
}

Config *config_free(Config *c)
{
	if (!c)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].type->list)
			strv_free(*(char ***)((char *)c + keys[i].offset));
	for (size_t i = 0; i < c->n_games; i++)
		game_done(&c->games[i]);
	for (size_t i = 0; i < c->n_services; i++)
		free(c->services[i].unit);
	free(c->games);
	free(c->services);
	free(c);
	return NULL;
}

/* --- One file -------------------------------------------------------------------------------- */

typedef struct Parser {
	Config *config;
	const char *file;
	config_warn_cb warn;
	void *userdata;

	const char *rest; /* of the text */
	unsigned line;    /* the one that inih has now */
	bool owed;        /* inih must call handle_key() for it, or it is neither key nor section */
	bool overlong;
	bool indented;    /* continues the key before it, if there is one */
	bool in_key;      /* a key came since the section began */
	bool refused;     /* that key was bad, and so is what continues it */
	size_t line_max;
	int n_bad;
	bool oom;
} Parser;

/* Returns -EINVAL, so that a caller may complain and return in one statement. */
static int _printf_(2, 3) complain(Parser *p, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	for (char *s = text; *s; s++)
		if (iscntrl((unsigned char)*s))
			*s = '?';
	if (p->warn)
		p->warn(p->file, p->line, text, p->userdata);
	p->n_bad++;
	return -EINVAL;
}

/* Makes room for one more element with defaults; the arrays only grow while a file is read. */
static int array_add(void **array, size_t *n, size_t size, SectionKind kind)
{
	char *p = reallocarray(*array, *n + 1, size);
	int r;

	if (!p)
		return -ENOMEM;
	*array = p;
	memset(p + *n * size, 0, size);
	r = set_defaults(kind, kind, p + *n * size);
	if (r >= 0)
		(*n)++;
	return r;
}

/* The ID of [game ID]; the pattern is borrowed from id. */
static int game_parse_id(char *id, GameConfig *ret)
{
	GameConfig game = { .by = GAME_BY_APPID };
	const char *value;

	if ((value = startswith(id, "exe=")))
		game.by = GAME_BY_EXE;
	else if ((value = startswith(id, "unit=")))
		game.by = GAME_BY_UNIT;
	if (value) {
		if (!*value || (game.by == GAME_BY_EXE && strchr(value, '/')))
			return -EINVAL;
		game.pattern = id + (value - id);
	} else if (parse_u32(id, &game.appid) < 0 || game.appid == 0) {
		return -EINVAL;
	}
	*ret = game;
	return 0;
}

static void game_format_id(const GameConfig *g, char *buf, size_t size)
{
	static const char *const prefixes[] = { [GAME_BY_EXE] = "exe=", [GAME_BY_UNIT] = "unit=" };

	if (g->by == GAME_BY_APPID)
		(void)snprintf(buf, size, "%" PRIu32, g->appid);
	else
		(void)snprintf(buf, size, "%s%s", prefixes[g->by], g->pattern);
}

static bool game_is_same(const GameConfig *a, const GameConfig *b)
{
	if (a->by != b->by)
		return false;
	if (a->by == GAME_BY_APPID)
		return a->appid == b->appid;
	return a->by == GAME_BY_EXE ? strcasecmp(a->pattern, b->pattern) == 0 :
				      streq(a->pattern, b->pattern);
}

static int game_get(Parser *p, char *id, void **ret)
{
	Config *c = p->config;
	auto_free char *pattern = NULL;
	GameConfig want;
	int r;

	if (game_parse_id(id, &want) < 0)
		return complain(
			p, "[game %s] names no game: an appid, exe=FILE or unit=PATTERN is needed",
			id);
	for (size_t i = 0; i < c->n_games; i++)
		if (game_is_same(&c->games[i], &want)) {
			*ret = &c->games[i];
			return 0;
		}
	if (c->n_games == GAMES_MAX)
		return complain(p, "[game %s] is one section too many, at most %d are read", id,
				GAMES_MAX);
	if (want.pattern && !(pattern = strdup(want.pattern)))
		return -ENOMEM;
	r = array_add((void **)&c->games, &c->n_games, sizeof(*c->games), SECTION_GAME);
	if (r < 0)
		return r;
	c->games[c->n_games - 1].by = want.by;
	c->games[c->n_games - 1].appid = want.appid;
	c->games[c->n_games - 1].pattern = TAKE_PTR(pattern);
	*ret = &c->games[c->n_games - 1];
	return 0;
}

/* As systemctl(1) does: a name without the suffix of a unit that has a control group is a service.
 */
static const char *unit_suffix(const char *name)
{
	static const char *const suffixes[] = { ".service", ".scope", ".slice",
						".socket",  ".mount", ".swap" };

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (endswith(name, suffixes[i]))
			return "";
	return ".service";
}

static int service_get(Parser *p, const char *name, void **ret)
{
	Config *c = p->config;
	auto_free char *unit = NULL;
	int r;

	if (!*name || name[strspn(name, UNIT_NAME_CHARS)])
		return complain(p, "[service %s] is not the name of a unit", name);
	if (asprintf(&unit, "%s%s", name, unit_suffix(name)) < 0) {
		unit = NULL;
		return -ENOMEM;
	}
	for (size_t i = 0; i < c->n_services; i++)
		if (streq(c->services[i].unit, unit)) {
			*ret = &c->services[i];
			return 0;
		}
	if (c->n_services == SERVICES_MAX)
		return complain(p, "[service %s] is one section too many, at most %d are read",
				name, SERVICES_MAX);
	r = array_add((void **)&c->services, &c->n_services, sizeof(*c->services), SECTION_SERVICE);
	if (r < 0)
		return r;
	c->services[c->n_services - 1].unit = TAKE_PTR(unit);
	*ret = &c->services[c->n_services - 1];
	return 0;
}

static int section_find(Parser *p, const char *name, const char *key, SectionKind *ret)
{
	if (!*name)
		return complain(p, "'%s=' is in no section", key);
	for (SectionKind k = 0; k < _SECTION_MAX; k++)
		if (streq(section_names[k], name)) {
			*ret = k;
			return 0;
		}
	for (SectionKind k = 0; k < _SECTION_MAX; k++)
		if (strcasecmp(section_names[k], name) == 0)
			return complain(p,
					"'%s=' is in the unknown section [%s]: did you mean [%s]?",
					key, name, section_names[k]);
	return complain(p, "'%s=' is in the unknown section [%s]", key, name);
}

static int key_find(Parser *p, SectionKind section, const char *name, const Key **ret)
{
	const Key *elsewhere = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const Key *k = &keys[i];

		if (k->section == section && streq(k->name, name)) {
			*ret = k;
			return 0;
		}
		if (k->section == section && strcasecmp(k->name, name) == 0)
			return complain(p, "unknown key '%s=' in [%s]: did you mean '%s='?", name,
					section_names[section], k->name);
		if (streq(k->name, name))
			elsewhere = k;
	}
	if (elsewhere)
		return complain(p, "unknown key '%s=' in [%s]: there is one in [%s]", name,
				section_names[section], section_names[elsewhere->section]);
	return complain(p, "unknown key '%s=' in [%s]", name, section_names[section]);
}

/* Splits "game 1091500" into its two words; both stay inside buf. */
static char *split_section(char *buf)
{
	char *argument = buf + strcspn(buf, " \t");

	if (*argument)
		*argument++ = '\0';
	return argument + strspn(argument, " \t");
}

static int object_get(Parser *p, SectionKind kind, char *argument, void **ret)
{
	if (kind == SECTION_GAME)
		return game_get(p, argument, ret);
	if (kind == SECTION_SERVICE)
		return service_get(p, argument, ret);
	if (*argument)
		return complain(p, "section [%s] takes no name: '%s'", section_names[kind],
				argument);
	*ret = p->config;
	return 0;
}

static int set_value(Parser *p, const char *section, const char *name, const char *value, bool more)
{
	char word[SECTION_NAME_MAX + 1], *argument;
	SectionKind kind = _SECTION_MAX;
	const Key *key = NULL;
	void *object = NULL;
	int r;

	(void)snprintf(word, sizeof(word), "%s", section);
	argument = split_section(word);
	r = section_find(p, word, name, &kind);
	if (r >= 0)
		r = key_find(p, kind, name, &key);
	if (r >= 0)
		r = object_get(p, kind, argument, &object);
	if (r < 0)
		return r;
	if (more && !key->type->list)
		return complain(p, "'%s=' takes one value, and '%s' is indented as if it went on",
				name, value);
	r = key_set(key, object, value, more);
	if (r == -E2BIG)
		return complain(p, "'%s=' in [%s] has more than %d words", name, section,
				WORDS_MAX);
	if (r == -ERANGE)
		return complain(p, "'%s=%s' in [%s] is out of range", name, value, section);
	if (r == -EINVAL)
		return complain(p, "'%s=%s' in [%s] is not %s", name, value, section,
				key->type->expects);
	return r;
}

/* inih's handler: once for each key, and for each line that continues one. */
static int handle_key(void *userdata, const char *section, const char *name, const char *value)
{
	Parser *p = userdata;
	bool more = p->in_key && p->indented;
	int r;

	p->owed = false;
	p->in_key = *name;
	if (more && p->refused)
		r = complain(p, "'%s' continues '%s=', which was not accepted", value, name);
	else if (p->overlong)
		r = complain(p, "'%s=' in [%s] is longer than %zu bytes", name, section,
			     p->line_max);
	else
		r = set_value(p, section, name, value, more);
	p->refused = r < 0;
	if (r == -ENOMEM)
		p->oom = true;
	return 1;
}

/* What follows a bad section line must not land in the section before it. */
static void begin_section(Parser *p, char *buf, const char *s)
{
	const char *end = s + strcspn(s, "];"), *behind = *end ? end + 1 : end;

	p->owed = p->in_key = p->refused = false;
	behind += strspn(behind, " \t\r\v\f");
	if (*end != ']')
		complain(p, "'%s' has no ']' at its end", s);
	else if (end - s - 1 > SECTION_NAME_MAX)
		complain(p, "'%s' is longer than %d bytes", s, SECTION_NAME_MAX);
	else if (*behind && *behind != ';' && *behind != '#')
		complain(p, "'%s' has something behind the ']'", s);
	else
		return;
	memcpy(buf, "[]", sizeof("[]"));
}

/* inih's reader, once a line: like fgets(3), but from memory, and an overlong line is cut for good.
 */
static char *read_line(char *buf, int size, void *userdata)
{
	Parser *p = userdata;
	const char *s;
	size_t n;

	if (p->owed && p->overlong)
		complain(p, "the line is longer than %zu bytes", p->line_max);
	else if (p->owed)
		complain(p, "'%s' is neither a [section] nor Key=value", buf);
	if (!*p->rest || p->oom)
		return NULL;

	n = strcspn(p->rest, "\n");
	p->line++;
	p->line_max = (size_t)size - 1;
	p->overlong = n > p->line_max;
	(void)snprintf(buf, (size_t)size, "%.*s", (int)MIN(n, p->line_max), p->rest);
	p->rest += n + (p->rest[n] == '\n');

	s = buf + strspn(buf, " \t\r\v\f");
	p->indented = s > buf;
	p->owed = *s && *s != ';' && *s != '#';
	if (*s == '[' && !(p->indented && p->in_key))
		begin_section(p, buf, s);
	return buf;
}

int config_parse_text(Config *c, const char *file, const char *text, config_warn_cb warn,
		      void *userdata)
{
	const char *behind_bom = startswith(text, "\xef\xbb\xbf");
	Parser p = {
		.config = c,
		.file = file,
		.warn = warn,
		.userdata = userdata,
		.rest = behind_bom ? behind_bom : text,
	};
	int r;

	r = ini_parse_stream(read_line, &p, handle_key, &p);
	return p.oom || r == -2 ? -ENOMEM : p.n_bad;
}

/* --- All files ------------------------------------------------------------------------------- */

/* Sets *ret_text to NULL for a file that says nothing: /dev/null, which hides one of the same name.
 * -EINVAL for one that no configuration could be, with the reason told. */
static int read_config_file(Parser *p, char **ret_text)
{
	auto_free char *text = NULL;
	struct stat st;
	size_t size;
	int r;

	if (stat(p->file, &st) < 0)
		return -errno;
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) {
		*ret_text = NULL;
		return 0;
	}
	if (!S_ISREG(st.st_mode))
		return complain(p, "not a regular file");
	r = read_file_at(AT_FDCWD, p->file, FILE_SIZE_MAX, &text, &size);
	if (r == -E2BIG)
		return complain(p, "larger than 1 MiB");
	if (r < 0)
		return r;
	if (strlen(text) != size)
		return complain(p, "has a NUL byte: not a text file");
	*ret_text = TAKE_PTR(text);
	return 0;
}

/* Reads one file on top of c, which is left as it was when the file cannot be used. */
static int load_file(Config *c, const char *file, config_warn_cb warn, void *userdata,
		     unsigned *n_bad)
{
	Parser p = { .file = file, .warn = warn, .userdata = userdata };
	auto_free char *text = NULL;
	int r;

	r = read_config_file(&p, &text);
	if (r < 0 && r != -ENOENT && r != -ENOMEM && p.n_bad == 0)
		complain(&p, "cannot be read: %s", strerror(-r));
	*n_bad += (unsigned)p.n_bad;
	if (r < 0 || !text)
		return r;
	r = config_parse_text(c, file, text, warn, userdata);
	if (r > 0)
		*n_bad += (unsigned)r;
	return MIN(r, 0);
}

typedef struct DropIns {
	char **paths;
	size_t n, n_alloc;
} DropIns;

static void drop_ins_done(DropIns *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->paths[i]);
	free(d->paths);
}

static const char *file_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

static int drop_in_compare(const void *a, const void *b)
{
	return strcmp(file_name(*(char *const *)a), file_name(*(char *const *)b));
}

/* Adds the files of a folder whose names are not there yet. */
static int drop_ins_add(DropIns *d, const char *root, const char *folder)
{
	auto_closedir DIR *dir = NULL;
	auto_free char *path = NULL;
	size_t n_before = d->n;
	struct dirent *de;

	if (asprintf(&path, "%s%s/vramd/vramd.conf.d", root, folder) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	dir = opendir(path);
	if (!dir)
		return errno == ENOMEM ? -ENOMEM : 0;
	while ((de = readdir(dir))) {
		bool hidden = false;

		if (de->d_name[0] == '.' || !endswith(de->d_name, ".conf"))
			continue;
		for (size_t i = 0; i < n_before && !hidden; i++)
			hidden = streq(file_name(d->paths[i]), de->d_name);
		if (hidden)
			continue;
		if (!GROW(d->paths, d->n_alloc, d->n))
			return -ENOMEM;
		if (asprintf(&d->paths[d->n], "%s/%s", path, de->d_name) < 0)
			return -ENOMEM;
		d->n++;
	}
	return 0;
}

static int load_drop_ins(Config *c, const char *root, config_warn_cb warn, void *userdata,
			 unsigned *n_bad)
{
	static const char *const folders[] = { "/etc", "/run", "/usr/lib" };
	_cleanup_(drop_ins_done) DropIns d = { 0 };
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		r = drop_ins_add(&d, root, folders[i]);
		if (r < 0)
			return r;
	}
	if (d.n > 0)
		qsort(d.paths, d.n, sizeof(*d.paths), drop_in_compare);
	for (size_t i = 0; i < d.n; i++) {
		r = load_file(c, d.paths[i], warn, userdata, n_bad);
		if (r == -ENOMEM)
			return r;
	}
	return 0;
}

static bool size_is_above(const Size *a, const Size *b)
{
	return a->kind != SIZE_UNSET && a->kind == b->kind && a->value > b->value;
}

static void check_lists(Parser *p, const char *section, const char *suffix, char *const *allow,
			char *const *deny)
{
	for (; allow && *allow; allow++)
		for (char *const *d = deny; d && *d; d++)
			if (streq(*allow, *d))
				complain(p,
					 "[%s] Allow%s= and Deny%s= both name '%s': it is denied",
					 section, suffix, suffix, *d);
}

/* Lines that are good each, but contradict each other. The policy has an answer for all of them, so
 * they do not count as bad. */
static void check_contradictions(const Config *c, const char *file, config_warn_cb warn,
				 void *userdata)
{
	Parser p = { .file = file, .warn = warn, .userdata = userdata };

	if (size_is_above(&c->game_min, &c->game_low))
		complain(&p, "[policy] GameMin= is above GameLow=: low is raised to it");
	for (size_t i = 0; i < c->n_games; i++) {
		const GameConfig *g = &c->games[i];
		bool sized = g->min.kind != SIZE_UNSET || g->low.kind != SIZE_UNSET;
		char id[SECTION_NAME_MAX + 1];

		game_format_id(g, id, sizeof(id));
		if (size_is_above(&g->min, &g->low))
			complain(&p, "[game %s] Min= is above Low=: low is raised to it", id);
		if (!g->protect && sized)
			complain(&p, "[game %s] Protect=no leaves Min= and Low= without effect",
				 id);
	}
	check_lists(&p, "policy", "Games", c->allow_games, c->deny_games);
	check_lists(&p, "user", "", c->allow_users, c->deny_users);
}

int config_load(const Roots *roots, const char *main_file, config_warn_cb warn, void *userdata,
		Config **ret, unsigned *ret_bad)
{
	auto_free char *etc_file = NULL;
	auto_config Config *c = NULL;
	const char *root = strempty(roots->etc), *file = main_file;
	unsigned n_bad = 0;
	int r;

	if (!file) {
		if (asprintf(&etc_file, "%s/etc/vramd/vramd.conf", root) < 0) {
			etc_file = NULL;
			return -ENOMEM;
		}
		file = etc_file;
	}
	r = config_new(&c);
	if (r < 0)
		return r;
	r = load_file(c, file, warn, userdata, &n_bad);
	if (r == -ENOMEM || (r < 0 && main_file))
		return r;
	r = load_drop_ins(c, root, warn, userdata, &n_bad);
	if (r < 0)
		return r;
	check_contradictions(c, file, warn, userdata);
	*ret = TAKE_PTR(c);
	if (ret_bad)
		*ret_bad = n_bad;
	return 0;
}

/* --- Questions ------------------------------------------------------------------------------- */

static bool game_fits(const GameConfig *g, uint32_t appid, const char *exe, const char *unit)
{
	switch (g->by) {
	case GAME_BY_APPID:
		return g->appid == appid;
	case GAME_BY_EXE:
		return exe && strcasecmp(g->pattern, exe) == 0;
	case GAME_BY_UNIT:
		return unit && fnmatch(g->pattern, unit, 0) == 0;
	}
	return false;
}

const GameConfig *config_find_game(const Config *c, uint32_t appid, const char *exe,
				   const char *unit)
{
	for (int by = GAME_BY_APPID; by <= GAME_BY_UNIT; by++)
		for (size_t i = 0; i < c->n_games; i++)
			if ((int)c->games[i].by == by && game_fits(&c->games[i], appid, exe, unit))
				return &c->games[i];
	return NULL;
}

static bool list_has_game(char *const *list, uint32_t appid, const char *exe, const char *unit,
			  const char *name)
{
	for (; list && *list; list++) {
		uint32_t id;

		if (parse_u32(*list, &id) >= 0 && id == appid)
			return true;
		if ((unit && fnmatch(*list, unit, 0) == 0) ||
		    (exe && fnmatch(*list, exe, FNM_CASEFOLD) == 0) ||
		    (name && fnmatch(*list, name, FNM_CASEFOLD) == 0))
			return true;
	}
	return false;
}

bool config_game_allowed(const Config *c, uint32_t appid, const char *exe, const char *unit,
			 const char *name)
{
	if (list_has_game(c->deny_games, appid, exe, unit, name))
		return false;
	return strv_length(c->allow_games) == 0 ||
	       list_has_game(c->allow_games, appid, exe, unit, name);
}

/* The name is looked up only for a list that has names in it. */
static bool list_has_user(char *const *list, uid_t uid)
{
	const struct passwd *pw = NULL;
	uint32_t number;

	for (; list && *list; list++) {
		if (parse_u32(*list, &number) >= 0) {
			if (number == uid)
				return true;
			continue;
		}
		if (!pw && !(pw = getpwuid(uid)))
			continue;
		if (streq(pw->pw_name, *list))
			return true;
	}
	return false;
}

bool config_user_allowed(const Config *c, uid_t uid)
{
	if (list_has_user(c->deny_users, uid))
		return false;
	return strv_length(c->allow_users) == 0 || list_has_user(c->allow_users, uid);
}

/* --- Printing -------------------------------------------------------------------------------- */

static void print_keys(FILE *f, SectionKind kind, const void *object)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].section == kind) {
			fprintf(f, "%s=", keys[i].name);
			keys[i].type->print(f, (const char *)object + keys[i].offset);
			fputc('\n', f);
		}
}

void config_print(const Config *c, FILE *f)
{
	for (SectionKind k = SECTION_POLICY; k <= SECTION_USER; k++) {
		fprintf(f, "%s[%s]\n", k > SECTION_POLICY ? "\n" : "", section_names[k]);
		print_keys(f, k, c);
	}
	for (size_t i = 0; i < c->n_games; i++) {
		char id[SECTION_NAME_MAX + 1];

		game_format_id(&c->games[i], id, sizeof(id));
		fprintf(f, "\n[game %s]\n", id);
		print_keys(f, SECTION_GAME, &c->games[i]);
	}
	for (size_t i = 0; i < c->n_services; i++) {
		fprintf(f, "\n[service %s]\n", c->services[i].unit);
		print_keys(f, SECTION_SERVICE, &c->services[i]);
	}
}
