/* SPDX-License-Identifier: MIT */
/* Command lines and environments: every program chooses its own. */
#include "identify.h"
#include "steam.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* No control character, and no byte that cannot be in UTF-8. */
static void check_name(const char *name)
{
	must(strlen(name) <= 255);
	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		must(*p >= 0x20 && *p != 0x7f && *p != 0xc0 && *p != 0xc1 && *p < 0xf5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(game_identity_done) GameIdentity g = {};
	uint32_t appid = 0;
	int r;

	r = steam_parse_reaper((const char *)data, size, &appid);
	must(r == 0 || (r == 1 && appid != 0 && memmem(data, size, "SteamLaunch", 11)));
	r = game_parse_environ((const char *)data, size, &g);
	must(r == 0 || r == 1);
	must((g.mark == MARK_ENVIRON) == (r == 1) && !g.exe);
	must(r == 1 || (g.appid == 0 && !g.name));
	if (g.name)
		check_name(g.name);
	return 0;
}
