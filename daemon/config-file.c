/* SPDX-License-Identifier: MIT */
/* One file: inih splits its lines into section, key and value. Since inih tells its handler no line
 * number, cuts long lines and section names, and reports no more than one bad line, it reads from
 * read_line(), which knows the line and looks at what inih would pass over in silence. */
#include <ctype.h>
#include <fcntl.h>
#include <ini.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "config-internal.h"

#define FILE_SIZE_MAX MIB
#define UNIT_NAME_CHARS \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.@\\"
#define GAMES_MAX 1024
#define SERVICES_MAX 256

typedef struct Parser {
	Config *config;
	Complaints *to;

	const char *rest; /* of the text; to->line is the line that inih has now */
	bool owed;        /* inih must call handle_key() for it, or it is neither key nor section */
	bool overlong;
	bool indented;    /* continues the key before it, if there is one */
	bool in_key;      /* a key came since the section began */
	bool refused;     /* that key was bad, and so is what continues it */
	size_t line_max;
	bool oom;
} Parser;

int config_complain(Complaints *to, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	for (char *s = text; *s; s++)
		if (iscntrl((unsigned char)*s))
			*s = '?';
	if (to->warn)
		to->warn(to->file, to->line, text, to->userdata);
	to->n++;
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
	r = config_set_defaults(kind, kind, p + *n * size);
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
		return config_complain(
			p->to,
			"[game %s] names no game: an appid, exe=FILE or unit=PATTERN is needed",
			id);
	for (size_t i = 0; i < c->n_games; i++)
		if (game_is_same(&c->games[i], &want)) {
			*ret = &c->games[i];
			return 0;
		}
	if (c->n_games == GAMES_MAX)
		return config_complain(p->to,
				       "[game %s] is one section too many, at most %d are read", id,
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
		return config_complain(p->to, "[service %s] is not the name of a unit", name);
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
		return config_complain(p->to,
				       "[service %s] is one section too many, at most %d are read",
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
		return config_complain(p->to, "'%s=' is in no section", key);
	for (SectionKind k = 0; k < _SECTION_MAX; k++)
		if (streq(config_sections[k], name)) {
			*ret = k;
			return 0;
		}
	for (SectionKind k = 0; k < _SECTION_MAX; k++)
		if (strcasecmp(config_sections[k], name) == 0)
			return config_complain(
				p->to, "'%s=' is in the unknown section [%s]: did you mean [%s]?",
				key, name, config_sections[k]);
	return config_complain(p->to, "'%s=' is in the unknown section [%s]", key, name);
}

static int key_find(Parser *p, SectionKind section, const char *name, const Key **ret)
{
	const Key *elsewhere = NULL;

	FOREACH_KEY(k) {
		if (k->section == section && streq(k->name, name)) {
			*ret = k;
			return 0;
		}
		if (k->section == section && strcasecmp(k->name, name) == 0)
			return config_complain(p->to,
					       "unknown key '%s=' in [%s]: did you mean '%s='?",
					       name, config_sections[section], k->name);
		if (!elsewhere && streq(k->name, name))
			elsewhere = k;
	}
	if (elsewhere)
		return config_complain(p->to, "unknown key '%s=' in [%s]: there is one in [%s]",
				       name, config_sections[section],
				       config_sections[elsewhere->section]);
	return config_complain(p->to, "unknown key '%s=' in [%s]", name, config_sections[section]);
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
		return config_complain(p->to, "section [%s] takes no name: '%s'",
				       config_sections[kind], argument);
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
		return config_complain(
			p->to, "'%s=' takes one value, and '%s' is indented as if it went on", name,
			value);
	r = config_key_set(key, object, value, more);
	if (r == -E2BIG)
		return config_complain(p->to, "'%s=' in [%s] has more than %d words", name, section,
				       WORDS_MAX);
	if (r == -ERANGE)
		return config_complain(p->to, "'%s=%s' in [%s] is out of range", name, value,
				       section);
	if (r == -EINVAL)
		return config_complain(p->to, "'%s=%s' in [%s] is not %s", name, value, section,
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
		r = config_complain(p->to, "'%s' continues '%s=', which was not accepted", value,
				    name);
	else if (p->overlong)
		r = config_complain(p->to, "'%s=' in [%s] is longer than %zu bytes", name, section,
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
		config_complain(p->to, "'%s' has no ']' at its end", s);
	else if (end - s - 1 > SECTION_NAME_MAX)
		config_complain(p->to, "'%s' is longer than %d bytes", s, SECTION_NAME_MAX);
	else if (*behind && *behind != ';' && *behind != '#')
		config_complain(p->to, "'%s' has something behind the ']'", s);
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
		config_complain(p->to, "the line is longer than %zu bytes", p->line_max);
	else if (p->owed)
		config_complain(p->to, "'%s' is neither a [section] nor Key=value", buf);
	if (!*p->rest || p->oom)
		return NULL;

	n = strcspn(p->rest, "\n");
	p->to->line++;
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

static int parse_text(Config *c, const char *text, Complaints *to)
{
	const char *behind_bom = startswith(text, "\xef\xbb\xbf");
	Parser p = { .config = c, .to = to, .rest = behind_bom ? behind_bom : text };
	int r;

	r = ini_parse_stream(read_line, &p, handle_key, &p);
	return p.oom || r == -2 ? -ENOMEM : 0;
}

int config_parse_text(Config *c, const char *file, const char *text, config_warn_cb warn,
		      void *userdata)
{
	Complaints to = { .file = file, .warn = warn, .userdata = userdata };
	int r;

	r = parse_text(c, text, &to);
	return r < 0 ? r : (int)to.n;
}

/* Sets *ret_text to NULL for a file that says nothing: /dev/null, which hides one of the same name.
 * -EINVAL for one that no configuration could be, with the reason told. */
static int read_text(Complaints *to, char **ret_text)
{
	auto_free char *text = NULL;
	struct stat st;
	size_t size;
	int r;

	if (stat(to->file, &st) < 0)
		return -errno;
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) {
		*ret_text = NULL;
		return 0;
	}
	if (!S_ISREG(st.st_mode))
		return config_complain(to, "not a regular file");
	r = read_file_at(AT_FDCWD, to->file, FILE_SIZE_MAX, &text, &size);
	if (r == -E2BIG)
		return config_complain(to, "larger than 1 MiB");
	if (r < 0)
		return r;
	if (strlen(text) != size)
		return config_complain(to, "has a NUL byte: not a text file");
	*ret_text = TAKE_PTR(text);
	return 0;
}

int config_read_file(Config *c, const char *file, Complaints *to)
{
	auto_free char *text = NULL;
	unsigned n_before = to->n;
	int r;

	to->file = file;
	to->line = 0;
	r = read_text(to, &text);
	if (r < 0 && r != -ENOENT && r != -ENOMEM && to->n == n_before)
		config_complain(to, "cannot be read: %s", strerror(-r));
	if (r < 0 || !text)
		return r;
	return parse_text(c, text, to);
}
