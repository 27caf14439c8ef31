/* SPDX-License-Identifier: MIT */
#include <sys/epoll.h>

#include "keep.h"
#include "verb.h"

static struct {
	bool persist, clear;
	uint32_t appid;
	const char *menu, *compositor;
} args = { .menu = "unknown" };

static int on_ended(sd_event_source *s, int fd _unused_, uint32_t events _unused_,
		    void *userdata _unused_)
{
	(void)puts("The process ended.");
	return sd_event_exit(sd_event_source_get_event(s), STATUS_OK);
}

/* A report lives as long as our name on the bus. */
static int keep_until_told(sd_event *event, Keep *k)
{
	int r;

	r = sd_event_add_io(event, NULL, k->pidfd, EPOLLIN, on_ended, NULL);
	if (r >= 0)
		r = sd_event_loop(event);
	if (r < 0)
		complain("cannot wait: %s", strerror(-r));
	return r < 0 ? STATUS_FAILURE : r;
}

static int clear_focus(void)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	auto_bus sd_bus *bus = NULL;
	int r;

	if (client_open(&bus) < 0)
		return STATUS_FAILURE;
	r = sd_bus_call_method(bus, VRAMD_BUS_NAME, VRAMD_PATH, VRAMD_IFACE_MANAGER, "Withdraw",
			       &error, NULL, "");
	return r < 0 ? client_fail(&error, r) : STATUS_OK;
}

static int report_focus(const char *pid)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	auto_event sd_event *event = NULL;
	auto_bus sd_bus *bus = NULL;
	auto_close int game = -EBADF, compositor = -EBADF;
	Keep k = { .make = keep_make_focus, .what = "report", .interactive = true, .fd = -EBADF };
	int r, status;

	status = pidfd_from_arg(pid, &game);
	if (status == STATUS_OK && args.compositor)
		status = pidfd_from_arg(args.compositor, &compositor);
	if (status != STATUS_OK)
		return status;
	if (client_open(&bus) < 0)
		return STATUS_FAILURE;
	k.bus = bus;
	k.pidfd = game;
	k.compositor = compositor;
	k.appid = args.appid;
	k.menu = args.menu;
	k.persist = args.persist;
	r = client_loop(bus, &event); /* first: from now on Ctrl-C ends it in order */
	if (r >= 0)
		r = keep_start(&k, &error);
	if (r < 0)
		return client_fail(&error, r);
	if (args.persist)
		return STATUS_OK;
	(void)printf("Process %s is in front until Ctrl-C or its end.\n", pid);
	(void)fflush(stdout);
	return keep_until_told(event, &k);
}

static int run_focus(Context *c _unused_, int argc, char **argv)
{
	if (args.clear == (argc == 1)) {
		complain("give either a process id or --clear; see: vramctl focus --help");
		return STATUS_USAGE;
	}
	if (args.clear)
		return clear_focus();
	if (!streq(args.menu, "open") && !streq(args.menu, "closed") && !streq(args.menu, "unknown")) {
		complain("--menu=\"%s\": it is open, closed or unknown", args.menu);
		return STATUS_USAGE;
	}
	return report_focus(argv[0]);
}

static const Option options[] = {
	{ "appid", 0, OPTION_U32, "N", "the game's Steam appid", &args.appid },
	{ "menu", 0, OPTION_STRING, "STATE", "Steam's menu: open, closed, unknown", &args.menu },
	{ "compositor", 0, OPTION_STRING, "PID", "the process that shows it", &args.compositor },
	{ "persist", 0, OPTION_FLAG, NULL, "return at once; stays until --clear", &args.persist },
	{ "clear", 0, OPTION_FLAG, NULL, "take back what was reported", &args.clear },
	{},
};

const Verb verb_focus = {
	.name = "focus",
	.args = "PID | --clear",
	.summary = "say which game is in front",
	.description = "Tells vramd that the game of a process is in front, as a compositor would: until\n"
		       "Ctrl-C or the end of the process, or with --persist until --clear. For scripts,\n"
		       "for sessions whose compositor tells vramd nothing, and to try things out.",
	.options = options,
	.max_args = 1,
	.run = run_focus,
};
