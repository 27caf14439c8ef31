/* SPDX-License-Identifier: MIT */
/* What a control group's path says about systemd's units. Pure text. */
#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>

#include "parse.h"
#include "unit.h"

/* One component of a path; never NUL-terminated. */
typedef struct Part {
	const char *start;
	size_t len;
} Part;

/* Steps to the next component, or returns false at the end. */
static bool next_part(const char **pos, Part *ret)
{
	const char *p = *pos;

	while (*p == '/')
		p++;
	if (!*p)
		return false;
	*ret = (Part){ p, strcspn(p, "/") };
	*pos = p + ret->len;
	return true;
}

static bool part_is(Part p, const char *s)
{
	return p.len == strlen(s) && memcmp(p.start, s, p.len) == 0;
}

/* Something and then the suffix: ".slice" alone is no unit. */
static bool part_endswith(Part p, const char *suffix)
{
	size_t n = strlen(suffix);

	return p.len > n && memcmp(p.start + p.len - n, suffix, n) == 0;
}

/* The part between prefix and suffix in buf; false if it is not so, or is empty or too long. */
static bool part_middle(Part p, const char *prefix, const char *suffix, char *buf, size_t size)
{
	size_t a = strlen(prefix), b = strlen(suffix);

	if (p.len <= a + b || p.len - a - b >= size || memcmp(p.start, prefix, a) != 0 ||
	    memcmp(p.start + p.len - b, suffix, b) != 0)
		return false;
	memcpy(buf, p.start + a, p.len - a - b);
	buf[p.len - a - b] = '\0';
	return true;
}

static bool all_digits(const char *s)
{
	return *s && s[strspn(s, "0123456789")] == '\0';
}

/* The uid in a name as systemd writes it: decimal, no leading zero, never the invalid one. */
static bool part_uid(Part p, const char *prefix, const char *suffix, uid_t *ret)
{
	char text[sizeof("4294967295")];
	uint32_t uid;

	if (!part_middle(p, prefix, suffix, text, sizeof(text)) || !all_digits(text) ||
	    (text[0] == '0' && text[1]) || parse_u32(text, &uid) < 0 || uid == UNIT_UID_NONE)
		return false;
	*ret = uid;
	return true;
}

/* Finds the unit's own component. What lies above it: slices, and for a user's units
 * user.slice/user-UID.slice/user@UID.service. Returns 0, -ENOENT or -EINVAL. */
static int find_unit(const char *path, UnitPath *u, Part *ret, const char **ret_end)
{
	const char *pos = path;
	bool below_user = false; /* in user.slice */
	bool direct = false;     /* directly in user-UID.slice or in user@UID.service */
	Part p;

	for (unsigned depth = 0; next_part(&pos, &p); depth++) {
		uid_t uid;

		if (p.len > NAME_MAX)
			return -EINVAL;
		if (part_endswith(p, ".slice")) {
			direct = depth == 1 && below_user &&
				 part_uid(p, "user-", ".slice", &u->uid);
			below_user = below_user || (depth == 0 && part_is(p, "user.slice"));
			continue;
		}
		if (startswith(p.start, "user@") && part_endswith(p, ".service")) {
			if (!direct || u->user_unit || !part_uid(p, "user@", ".service", &uid))
				return -ENOENT;
			if (uid != u->uid)
				return -EINVAL;
			u->user_unit = true;
			continue;
		}
		/* The managers themselves. */
		if (part_is(p, "init.scope") && (depth == 0 || (u->user_unit && depth == 3)))
			return -ENOENT;
		if (!part_endswith(p, ".scope") && !part_endswith(p, ".service"))
			return -ENOENT;
		u->session = direct && !u->user_unit && p.len > strlen("session-.scope") &&
			     startswith(p.start, "session-") && part_endswith(p, ".scope");
		*ret = p;
		*ret_end = pos;
		return 0;
	}
	return -ENOENT;
}

/* app-steam-app<appid>-<pid>.scope, as gamescope reads it. */
static uint32_t parse_steam_appid(const char *name)
{
	char text[NAME_MAX + 1];
	Part p = { name, strlen(name) };
	uint32_t appid;
	char *dash;

	if (!part_middle(p, "app-steam-app", ".scope", text, sizeof(text)))
		return 0;
	dash = strchr(text, '-');
	if (!dash || !all_digits(dash + 1))
		return 0;
	*dash = '\0';
	if (!all_digits(text) || parse_u32(text, &appid) < 0)
		return 0;
	return appid;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Undoes systemd's \xNN in place. False if the result is no application id: letters, digits, "_",
 * "-" and at least one ".". */
static bool unescape_app_id(char *s)
{
	const char *in = s;
	char *out = s;
	bool dot = false;

	while (*in) {
		char c = *in++;

		if (c == '\\') {
			int hi, lo;

			if (in[0] != 'x' || (hi = hex_digit(in[1])) < 0 ||
			    (lo = hex_digit(in[2])) < 0)
				return false;
			c = (char)(hi << 4 | lo);
			in += 3;
		}
		if (c == '.')
			dot = true;
		else if (!isascii((unsigned char)c) ||
			 (!isalnum((unsigned char)c) && c != '_' && c != '-'))
			return false;
		*out++ = c;
	}
	*out = '\0';
	return dot;
}

/* app-flatpak-<id>-<instance>.scope; a "-" in the id is escaped on disk, or is not. */
static int parse_flatpak(const char *name, char **ret)
{
	char text[NAME_MAX + 1];
	Part p = { name, strlen(name) };
	char *dash, *id;

	if (!part_middle(p, "app-flatpak-", ".scope", text, sizeof(text)))
		return 0;
	dash = strrchr(text, '-');
	if (!dash || !all_digits(dash + 1))
		return 0;
	*dash = '\0';
	if (!unescape_app_id(text))
		return 0;
	id = strdup(text);
	if (!id)
		return -ENOMEM;
	*ret = id;
	return 1;
}

int unit_path_parse(const char *cgroup, UnitPath *ret)
{
	auto_unit_path UnitPath u = { .uid = UNIT_UID_NONE };
	const char *end;
	Part p;
	int r;

	r = cgroup_path_check(cgroup);
	if (r < 0)
		return r;
	r = find_unit(cgroup, &u, &p, &end);
	if (r < 0)
		return r;
	/* systemd's own names are ASCII. What a user made himself must not get into D-Bus strings as it is. */
	for (const char *c = cgroup; c < end; c++)
		if ((unsigned char)*c >= 0x80)
			return -EINVAL;
	u.cgroup = strndup(cgroup, (size_t)(end - cgroup));
	u.name = strndup(p.start, p.len);
	if (!u.cgroup || !u.name)
		return -ENOMEM;
	u.appid = parse_steam_appid(u.name);
	r = parse_flatpak(u.name, &u.flatpak);
	if (r < 0)
		return r;
	*ret = u;
	u = (UnitPath){};
	return 0;
}

uid_t unit_path_uid(const char *cgroup)
{
	const char *user = startswith(cgroup, "/user.slice/"), *end;
	uid_t uid = UNIT_UID_NONE;

	if (user) {
		end = strchrnul(user, '/');
		(void)part_uid((Part){ user, (size_t)(end - user) }, "user-", ".slice", &uid);
	}
	return uid;
}

void unit_path_done(UnitPath *u)
{
	free(u->cgroup);
	free(u->name);
	free(u->flatpak);
	*u = (UnitPath){ .uid = UNIT_UID_NONE };
}

bool unit_matches(const char *name, char *const *patterns)
{
	for (; patterns && *patterns; patterns++)
		if (fnmatch(*patterns, name, 0) == 0)
			return true;
	return false;
}
