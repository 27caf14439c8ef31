/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <limits.h>
#include <strings.h>
#include <sys/stat.h>

#include "identify.h"
#include "log.h"
#include "parse.h"
#include "steam.h"

#define ANCESTORS_MAX 64
#define BLOCK_MAX (64 * KIB) /* of a command line or an environment; the rest is not looked at */
#define NAME_BYTES_MAX 255   /* of a name that goes to the bus */

const char *game_mark_to_string(GameMark mark)
{
	static const char *const names[_MARK_MAX] = {
		[MARK_NONE] = "none",	    [MARK_SCOPE] = "scope",	[MARK_REAPER] = "reaper",
		[MARK_ENVIRON] = "environ", [MARK_FLATPAK] = "flatpak",
	};

	return mark >= 0 && mark < _MARK_MAX ? names[mark] : NULL;
}

void game_identity_done(GameIdentity *g)
{
	free(g->name);
	free(g->exe);
	*g = (GameIdentity){};
}

/* --- Text ------------------------------------------------------------------------------------- */

/* Bytes of the character at s; 0 if it is malformed or a control character. */
static size_t utf8_char(const unsigned char *s, size_t size)
{
	uint32_t c, min;
	size_t n;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	if ((s[0] & 0xe0) == 0xc0) {
		n = 2;
		c = s[0] & 0x1f;
		min = 0xa0; /* below: overlong, or a control character */
	} else if ((s[0] & 0xf0) == 0xe0) {
		n = 3;
		c = s[0] & 0x0f;
		min = 0x800;
	} else if ((s[0] & 0xf8) == 0xf0) {
		n = 4;
		c = s[0] & 0x07;
		min = 0x10000;
	} else {
		return 0;
	}
	if (n > size)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	return c >= min && c <= 0x10ffff && (c & 0xfffff800) != 0xd800 ? n : 0;
}

/* A copy that may go to the bus and to a terminal: valid UTF-8 without control characters, "?" for
 * each byte that is neither, cut between characters. */
static char *clean_text(const char *s)
{
	char buf[NAME_BYTES_MAX + 1];
	size_t size = strlen(s), in = 0, out = 0;

	while (in < size) {
		size_t n = utf8_char((const unsigned char *)s + in, size - in);

		if (out + MAX(n, 1U) > NAME_BYTES_MAX)
			break;
		if (n == 0)
			buf[out++] = '?';
		for (size_t i = 0; i < n; i++)
			buf[out++] = s[in + i];
		in += MAX(n, 1U);
	}
	buf[out] = '\0';
	return strdup(buf);
}

/* The last component of a Unix or Windows path. */
static const char *file_name(const char *path)
{
	const char *name = path;

	for (const char *p = path; *p; p++)
		if (*p == '/' || *p == '\\')
			name = p + 1;
	return name;
}

/* --- Marks ------------------------------------------------------------------------------------ */

/* What an environment says, before it is weighed. */
typedef struct Environ {
	uint32_t steam_appid, umu_appid;
	uint64_t steam_game;
	const char *name;
	const char *bottle;
	bool launcher; /* one that gives no Steam id */
	bool wine;
} Environ;

static void take_variable(Environ *e, const char *var)
{
	const char *value;

	if ((value = startswith(var, "SteamAppId=")))
		(void)parse_u32(value, &e->steam_appid);
	else if ((value = startswith(var, "SteamGameId=")))
		(void)parse_u64(value, &e->steam_game); /* "heroic-..." is no number */
	else if ((value = startswith(var, "UMU_ID=umu-")))
		(void)parse_u32(value, &e->umu_appid); /* "default" is none either */
	else if ((value = startswith(var, "HEROIC_APP_NAME=")) && *value)
		e->name = value;
	else if ((value = startswith(var, "BOTTLE=")) && *value)
		e->bottle = value;
	else if (startswith(var, "WINEPREFIX="))
		e->wine = true;

	e->launcher = e->launcher || e->name || startswith(var, "UMU_ID=") ||
		      startswith(var, "LUTRIS_GAME_UUID=");
}

int game_parse_environ(const char *block, size_t size, GameIdentity *ret)
{
	GameIdentity g = { .mark = MARK_ENVIRON };
	Environ e = {};
	const char *var;

	for (size_t pos = 0; block_next(block, size, &pos, &var);)
		take_variable(&e, var);

	/* A common word for a name: in the environment of a Windows program it is Bottles' (and its folder). */
	if (e.bottle && e.wine) {
		e.launcher = true;
		e.name = e.name ? e.name : e.bottle;
	}
	if (e.steam_appid)
		g.appid = e.steam_appid;
	else if (e.steam_game > UINT32_MAX)
		g.appid = (uint32_t)(e.steam_game >> 32);
	else if (e.steam_game)
		g.appid = (uint32_t)e.steam_game;
	else
		g.appid = e.umu_appid;
	if (!g.appid && !e.launcher)
		return 0;
	if (e.name) {
		g.name = clean_text(e.name);
		if (!g.name)
			return -ENOMEM;
	}
	*ret = g;
	return 1;
}

/* --- /proc ------------------------------------------------------------------------------------ */

/* A process's directory: what is read through it is of that process, or fails. */
static int open_proc(const Roots *roots, pid_t pid)
{
	auto_free char *path = NULL;
	int fd;

	if (asprintf(&path, "%s/%d", roots->proc, pid) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

typedef struct Stat {
	char comm[64];
	pid_t parent;
} Stat;

/* "pid (comm) state ppid ..."; comm may hold blanks and brackets of its own. */
static int parse_stat(char *text, Stat *ret)
{
	char *first = strchr(text, '('), *last = strrchr(text, ')'), *end;
	uint32_t parent;
	Stat s = {};

	if (!first || !last || last < first || (size_t)(last - first) > sizeof(s.comm) ||
	    strlen(last) < strlen(") S 0"))
		return -EBADMSG;
	memcpy(s.comm, first + 1, (size_t)(last - first) - 1);
	end = strchrnul(last + strlen(") S "), ' ');
	*end = '\0';
	if (parse_u32(last + strlen(") S "), &parent) < 0 || parent > INT32_MAX)
		return -EBADMSG;
	s.parent = (pid_t)parent;
	*ret = s;
	return 0;
}

static int read_stat(int proc_fd, Stat *ret)
{
	auto_free char *text = NULL;
	int r;

	r = read_file_at(proc_fd, "stat", 4096, &text, NULL);
	return r < 0 ? r : parse_stat(text, ret);
}

/* Only a process's own user may tell us about it by what he chose himself. */
static bool is_of_user(int proc_fd, uid_t uid)
{
	struct stat st;

	return fstat(proc_fd, &st) == 0 && st.st_uid == uid;
}

/* Looks for Steam's reaper from the process upwards: 1 and its appid, or 0. */
static int find_reaper(const Roots *roots, const Process *p, uint32_t *ret_appid)
{
	pid_t pid = p->pid;

	for (unsigned i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		auto_close int fd = open_proc(roots, pid);
		auto_free char *cmdline = NULL;
		size_t size;
		Stat s;
		int r;

		r = fd < 0 ? fd : read_stat(fd, &s);
		if (r < 0)
			return r;
		if (streq(s.comm, "reaper") && is_of_user(fd, p->uid)) {
			r = read_head_at(fd, "cmdline", BLOCK_MAX, &cmdline, &size);
			if (r >= 0)
				r = steam_parse_reaper(cmdline, size, ret_appid);
			if (r != 0)
				return r;
		}
		pid = s.parent;
	}
	return 0;
}

static int read_environ(int proc_fd, const Process *p, GameIdentity *ret)
{
	auto_free char *block = NULL;
	size_t size;
	int r;

	if (!is_of_user(proc_fd, p->uid))
		return 0;
	r = read_head_at(proc_fd, "environ", BLOCK_MAX, &block, &size);
	return r < 0 ? r : game_parse_environ(block, size, ret);
}

/* --- The program ------------------------------------------------------------------------------ */

static bool is_exe(const char *arg)
{
	size_t n = strlen(arg);

	return n > strlen(".exe") && strcasecmp(arg + n - strlen(".exe"), ".exe") == 0;
}

/* The Windows program in a command line, or NULL: the program itself, or the first one that wine or
 * proton was given. Proton goes through its own steam.exe in system32, which is never what is meant
 * if there is another. */
static const char *find_windows_program(const char *cmdline, size_t size)
{
	const char *arg, *found = NULL;
	bool wine = false;

	for (size_t pos = 0; block_next(cmdline, size, &pos, &arg);) {
		const char *name = file_name(arg);

		if (is_exe(arg) && (wine || arg == cmdline)) {
			found = name;
			if (!strcasestr(arg, "\\system32\\"))
				break;
			wine = true;
		}
		wine = wine || startswith(name, "wine") || streq(name, "proton");
	}
	return found;
}

/* The name of the file that runs: by its link, which needs the right to trace the process; else the
 * name that the kernel kept, completed from the command line where it was cut. */
static const char *native_program(int proc_fd, const Stat *s, const char *cmdline,
				  char buf[static PATH_MAX])
{
	ssize_t n = readlinkat(proc_fd, "exe", buf, PATH_MAX - 1);
	const char *name;
	char *deleted;

	if (n > 0) {
		buf[n] = '\0';
		deleted = (char *)endswith(buf, " (deleted)");
		if (deleted)
			*deleted = '\0';
		return file_name(buf);
	}
	name = file_name(cmdline);
	return strlen(s->comm) >= 15 && startswith(name, s->comm) ? name : s->comm;
}

static int read_program(int proc_fd, char **ret)
{
	auto_free char *cmdline = NULL;
	const char *name;
	char buf[PATH_MAX], *clean;
	size_t size;
	Stat s;
	int r;

	r = read_stat(proc_fd, &s);
	if (r >= 0)
		r = read_head_at(proc_fd, "cmdline", BLOCK_MAX, &cmdline, &size);
	if (r < 0)
		return r;
	name = find_windows_program(cmdline, size);
	if (!name)
		name = native_program(proc_fd, &s, cmdline, buf);
	clean = clean_text(name);
	if (!clean)
		return -ENOMEM;
	*ret = clean;
	return 0;
}

/* --- All together ----------------------------------------------------------------------------- */

/* Sets mark, appid and the launcher's name; whatever may not be read leaves no mark. */
static int find_mark(const Roots *roots, const Process *p, const UnitPath *unit, int proc_fd,
		     GameIdentity *g)
{
	int r;

	if (unit && unit->appid) {
		g->mark = MARK_SCOPE;
		g->appid = unit->appid;
		return 0;
	}
	r = find_reaper(roots, p, &g->appid);
	if (r > 0)
		g->mark = MARK_REAPER;
	else
		r = read_environ(proc_fd, p, g);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		log_debug_errno(r, "Cannot read all about process %d, ignoring: %m", p->pid);
	if (g->mark == MARK_NONE && unit && unit->flatpak) {
		g->mark = MARK_FLATPAK;
		g->name = clean_text(unit->flatpak);
		if (!g->name)
			return -ENOMEM;
	}
	return 0;
}

int game_identify(const Roots *roots, const Process *p, const UnitPath *unit, GameIdentity *ret)
{
	_cleanup_(game_identity_done) GameIdentity g = {};
	auto_close int fd = -EBADF;
	int r;

	fd = open_proc(roots, p->pid);
	if (fd == -ENOENT)
		return -ESRCH;
	if (fd < 0)
		return fd;
	r = find_mark(roots, p, unit, fd, &g);
	if (r >= 0)
		r = read_program(fd, &g.exe);
	/* Whatever went wrong, it went wrong because the process ended, if it did. */
	if (!process_is_alive(p))
		return -ESRCH;
	if (r < 0)
		return r;
	if (!g.name) {
		g.name = strdup(g.exe);
		if (!g.name)
			return -ENOMEM;
	}
	*ret = g;
	g = (GameIdentity){};
	return 0;
}
