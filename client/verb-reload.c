/* SPDX-License-Identifier: MIT */
#include "verb.h"

/* The daemon names each bad line of the configuration on a line of its own. */
static void complain_lines(const char *message)
{
	while (*message) {
		size_t n = strcspn(message, "\n");

		if (n > 0)
			complain("%.*s", (int)n, message);
		message += n + (message[n] != '\0');
	}
}

static int run_reload(Context *c _unused_, int argc _unused_, char **argv _unused_)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	auto_message sd_bus_message *m = NULL;
	auto_bus sd_bus *bus = NULL;
	int r;

	if (client_open(&bus) < 0)
		return STATUS_FAILURE;
	r = sd_bus_message_new_method_call(bus, &m, VRAMD_BUS_NAME, VRAMD_PATH, VRAMD_IFACE_MANAGER,
					   "Reload");
	if (r >= 0)
		r = sd_bus_message_set_allow_interactive_authorization(m, true);
	if (r >= 0)
		r = sd_bus_call(bus, m, 0, &error, NULL);
	if (r >= 0)
		return STATUS_OK;
	if (!sd_bus_error_has_name(&error, VRAMD_ERROR_INVALID_CONFIG))
		return client_fail(&error, r);
	complain_lines(strempty(error.message));
	complain("these lines keep their defaults; everything else took effect");
	return STATUS_FAILURE;
}

const Verb verb_reload = {
	.name = "reload",
	.args = "",
	.summary = "read the configuration again",
	.description = "Makes vramd read its configuration again. Bad lines are named; they keep their\n"
		       "defaults, and everything else takes effect.",
	.run = run_reload,
};
