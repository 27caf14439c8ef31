/* SPDX-License-Identifier: MIT */
/* /proc/PID/cgroup, and the paths in it: whoever owns a part of the tree chooses the names. */
#include <limits.h>

#include "process.h"
#include "unit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void fuzz_unit(const char *path)
{
	auto_unit_path UnitPath u = {}, again = {};

	if (unit_path_parse(path, &u) < 0)
		return;
	must(cgroup_path_check(u.cgroup) == 0);
	must(cgroup_path_is_below(path, u.cgroup));
	must(streq(strrchr(u.cgroup, '/') + 1, u.name));
	must(strlen(u.name) <= NAME_MAX);
	must(endswith(u.name, ".scope") || endswith(u.name, ".service"));
	must(!u.user_unit || u.uid != UNIT_UID_NONE);
	must(!(u.session && u.user_unit));
	must(!(u.appid && u.flatpak));
	must(!u.flatpak || strspn(u.flatpak, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					     "0123456789._-") == strlen(u.flatpak));
	/* What was cut out is itself that unit. */
	must(unit_path_parse(u.cgroup, &again) == 0);
	must(streq(again.cgroup, u.cgroup) && again.uid == u.uid && again.session == u.session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = strndup((const char *)data, size), *path = NULL;

	must(text != NULL);
	fuzz_unit(text);
	if (process_parse_cgroup(text, &path) == 0) {
		must(cgroup_path_check(path) == 0);
		fuzz_unit(path);
	}
	return 0;
}
