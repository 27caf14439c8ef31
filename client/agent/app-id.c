/* SPDX-License-Identifier: MIT */
#include "app-id.h"

#include "parse.h"

uint32_t app_id_get_steam(const char *app_id)
{
	const char *number = startswith(app_id, "steam_app_");
	uint32_t n;

	return number && parse_u32(number, &n) >= 0 ? n : 0;
}

static int unhex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The next character of a name that systemd-escape(1) wrote, and *s behind it. */
static char next_char(const char **s, const char *end)
{
	const char *c = *s;

	if (end - c >= 4 && c[0] == '\\' && c[1] == 'x' && unhex(c[2]) >= 0 && unhex(c[3]) >= 0) {
		*s = c + 4;
		return (char)(unhex(c[2]) << 4 | unhex(c[3]));
	}
	*s = c + 1;
	return *c;
}

static bool is_escaped(const char *plain, const char *s, const char *end)
{
	while (*plain && s < end)
		if (next_char(&s, end) != *plain++)
			return false;
	return !*plain && s == end;
}

static const char *find_last(const char *s, const char *end, char c)
{
	return memrchr(s, c, (size_t)(end - s));
}

/* The application's part of a unit's name; dashes within are escaped. */
static bool find_application(const char *unit, const char **ret_begin, const char **ret_end)
{
	const char *begin = startswith(unit, "app-"), *end, *cut, *dash;
	bool scope;

	if (!begin)
		return false;
	end = endswith(begin, ".scope");
	scope = end;
	end = end ? end : endswith(begin, ".service");
	if (!end)
		return false;
	cut = scope ? find_last(begin, end, '-') : memchr(begin, '@', (size_t)(end - begin));
	if (!cut && scope)
		return false;
	end = cut ? cut : end;
	dash = find_last(begin, end, '-');
	*ret_begin = dash ? dash + 1 : begin;
	*ret_end = end;
	return true;
}

bool app_id_is_of_unit(const char *app_id, const char *unit)
{
	uint32_t steam = app_id_get_steam(app_id);
	const char *begin, *end;
	char prefix[40];

	if (!*app_id || !find_application(unit, &begin, &end))
		return false;
	(void)snprintf(prefix, sizeof(prefix), "app-steam-app%u-", steam);
	return is_escaped(app_id, begin, end) || (steam > 0 && startswith(unit, prefix));
}
