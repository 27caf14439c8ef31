/* SPDX-License-Identifier: MIT */
#include "parse.h"
#include "steam.h"

bool block_next(const char *block, size_t size, size_t *pos, const char **ret)
{
	const char *end = *pos < size ? memchr(block + *pos, '\0', size - *pos) : NULL;

	if (!end)
		return false;
	*ret = block + *pos;
	*pos = (size_t)(end - block) + 1;
	return true;
}

int steam_parse_reaper(const char *cmdline, size_t size, uint32_t *ret_appid)
{
	bool launch = false;
	uint32_t appid = 0;
	const char *arg;

	for (size_t pos = 0; block_next(cmdline, size, &pos, &arg);) {
		const char *value;

		if (streq(arg, "--"))
			break;
		if (streq(arg, "SteamLaunch"))
			launch = true;
		else if (launch && (value = startswith(arg, "AppId=")) &&
			 parse_u32(value, &appid) < 0)
			return 0;
	}
	if (!launch || appid == 0)
		return 0;
	*ret_appid = appid;
	return 1;
}
