/* SPDX-License-Identifier: MIT */
#include "parse.h"
#include "steam.h"

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
