/* SPDX-License-Identifier: MIT */
/* Names of applications and of units, as launchers make them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "app-id.h"

static const struct {
	const char *app_id, *unit;
	bool fits;
} cases[] = {
	/* --- as systemd's document has them */
	{ "foot", "app-foot-4711.scope", true },
	{ "foot", "app-sway-foot-4711.scope", true },
	{ "foot", "app-foot.service", true },
	{ "foot", "app-foot@d9f3.service", true },
	{ "foot", "app-gnome-foot@d9f3.service", true },
	{ "org.kde.konsole", "app-org.kde.konsole@0a1b2c.service", true },
	{ "com.valvesoftware.Steam", "app-flatpak-com.valvesoftware.Steam-1234567.scope", true },
	{ "firefox-esr", "app-gnome-firefox\\x2desr-2021.scope", true },
	{ "a/b", "app-a\\x2fb-1.scope", true },
	{ "steam", "app-steam@autostart.service", true },

	/* --- Steam's own, in Game Mode */
	{ "steam_app_1091500", "app-steam-app1091500-4711.scope", true },
	{ "steam_app_3156562597", "app-steam-app3156562597-4711.scope", true },
	{ "steam_app_1091500", "app-steam_app_1091500-1.scope", true },
	{ "steam_app_109150", "app-steam-app1091500-4711.scope", false },
	{ "steam_app_0", "app-steam-app0-4711.scope", false },
	{ "steam_app_default", "app-steam-appdefault-4711.scope", false },
	{ "steam_app_1091500", "app-steam-app1091500.slice", false },

	/* --- only the whole name counts */
	{ "foot", "app-footclient-4711.scope", false },
	{ "foot", "app-barefoot-4711.scope", false },
	{ "foot", "app-foot-client-4711.scope", false },
	{ "foot", "app-bare\\x2dfoot-4711.scope", false },
	{ "Foot", "app-foot-4711.scope", false },
	{ "4711", "app-foot-4711.scope", false },
	{ "foot", "app-foot.scope", false },
	{ "foot", "app-foot-4711.slice", false },
	{ "foot", "foot.service", false },
	{ "foot", "run-foot-4711.scope", false },
	{ "", "app--4711.scope", false },
	{ "", "app-.service", false },
	{ "foot", "app-", false },
	{ "foot", "", false },
	{ "x", "app-\\x78-1.scope", true },
	{ "\\x7", "app-\\x7-1.scope", true },
	{ "x", "app-\\x7-1.scope", false },
	{ "foo", "app-foo\\x00-1.scope", false },
	{ "*", "app-foot-4711.scope", false },
};

static void test_units(void **s _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (app_id_is_of_unit(cases[i].app_id, cases[i].unit) != cases[i].fits)
			fail_msg("\"%s\" and %s", cases[i].app_id, cases[i].unit);
}

static void test_steam(void **s _unused_)
{
	assert_int_equal(app_id_get_steam("steam_app_1091500"), 1091500);
	assert_int_equal(app_id_get_steam("steam_app_4294967295"), 4294967295);
	assert_int_equal(app_id_get_steam("steam_app_4294967296"), 0);
	assert_int_equal(app_id_get_steam("steam_app_-1"), 0);
	assert_int_equal(app_id_get_steam("steam_app_1x"), 0);
	assert_int_equal(app_id_get_steam("steam_app_"), 0);
	assert_int_equal(app_id_get_steam("steam"), 0);
	assert_int_equal(app_id_get_steam(""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_steam),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
