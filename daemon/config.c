/* SPDX-License-Identifier: MIT */
/* The configuration as a whole: all files, questions, printing. */
#include <fnmatch.h>
#include <inttypes.h>
#include <pwd.h>

#include "config-internal.h"

int config_new(Config **ret)
{
	auto_config Config *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	r = config_set_defaults(SECTION_POLICY, SECTION_USER, c);
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
	FOREACH_KEY(key)
		if (key->type->list)
			strv_free(*(char ***)((char *)c + key->offset));
	for (size_t i = 0; i < c->n_games; i++)
		game_done(&c->games[i]);
	for (size_t i = 0; i < c->n_services; i++)
		free(c->services[i].unit);
	free(c->games);
	free(c->services);
	free(c);
	return NULL;
}

/* The ID of [game ID]. */
static void game_format_id(const GameConfig *g, char *buf, size_t size)
{
	static const char *const prefixes[] = { [GAME_BY_EXE] = "exe=", [GAME_BY_UNIT] = "unit=" };

	if (g->by == GAME_BY_APPID)
		(void)snprintf(buf, size, "%" PRIu32, g->appid);
	else
		(void)snprintf(buf, size, "%s%s", prefixes[g->by], g->pattern);
}

/* --- All files ------------------------------------------------------------------------------- */

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

static int load_drop_ins(Config *c, const char *root, Complaints *to)
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
		r = config_read_file(c, d.paths[i], to);
		if (r == -ENOMEM)
			return r;
	}
	return 0;
}

static bool size_is_above(const Size *a, const Size *b)
{
	return a->kind != SIZE_UNSET && a->kind == b->kind && a->value > b->value;
}

static void check_lists(Complaints *to, const char *section, const char *suffix, char *const *allow,
			char *const *deny)
{
	for (; allow && *allow; allow++)
		for (char *const *d = deny; d && *d; d++)
			if (streq(*allow, *d))
				config_complain(
					to,
					"[%s] Allow%s= and Deny%s= both name '%s': it is denied",
					section, suffix, suffix, *d);
}

/* Lines that are good each, but contradict each other. The policy has an answer for all of them, so
 * they do not count as bad. */
static void check_contradictions(const Config *c, Complaints *to)
{
	if (size_is_above(&c->game_min, &c->game_low))
		config_complain(to, "[policy] GameMin= is above GameLow=: low is raised to it");
	for (size_t i = 0; i < c->n_games; i++) {
		const GameConfig *g = &c->games[i];
		bool sized = g->min.kind != SIZE_UNSET || g->low.kind != SIZE_UNSET;
		char id[SECTION_NAME_MAX + 1];

		game_format_id(g, id, sizeof(id));
		if (size_is_above(&g->min, &g->low))
			config_complain(to, "[game %s] Min= is above Low=: low is raised to it",
					id);
		if (!g->protect && sized)
			config_complain(
				to, "[game %s] Protect=no leaves Min= and Low= without effect",
				id);
	}
	check_lists(to, "policy", "Games", c->allow_games, c->deny_games);
	check_lists(to, "user", "", c->allow_users, c->deny_users);
}

int config_load(const Roots *roots, const char *main_file, config_warn_cb warn, void *userdata,
		Config **ret, unsigned *ret_bad)
{
	auto_free char *etc_file = NULL;
	auto_config Config *c = NULL;
	const char *root = strempty(roots->etc), *file = main_file;
	Complaints to = { .warn = warn, .userdata = userdata };
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
	r = config_read_file(c, file, &to);
	if (r == -ENOMEM || (r < 0 && main_file))
		return r;
	r = load_drop_ins(c, root, &to);
	if (r < 0)
		return r;
	if (ret_bad)
		*ret_bad = to.n;
	to.file = file;
	to.line = 0;
	check_contradictions(c, &to);
	*ret = TAKE_PTR(c);
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
	FOREACH_KEY(key)
		if (key->section == kind) {
			fprintf(f, "%s=", key->name);
			key->type->print(f, key, (const char *)object + key->offset);
			fputc('\n', f);
		}
}

void config_print(const Config *c, FILE *f)
{
	for (SectionKind k = SECTION_POLICY; k <= SECTION_USER; k++) {
		fprintf(f, "%s[%s]\n", k > SECTION_POLICY ? "\n" : "", config_sections[k]);
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
