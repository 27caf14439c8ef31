/* SPDX-License-Identifier: MIT */
#include <sys/epoll.h>
#include <time.h>

#include "keep.h"
#include "verb.h"

static struct {
	const char *who, *why;
	uint64_t duration;
} args = { "vramctl hold", "asked for by hand", 0 };

static int on_ended(sd_event_source *s, int fd _unused_, uint32_t events _unused_,
		    void *userdata _unused_)
{
	(void)puts("The process ended.");
	return sd_event_exit(sd_event_source_get_event(s), STATUS_OK);
}

static int on_time(sd_event_source *s, uint64_t usec _unused_, void *userdata _unused_)
{
	return sd_event_exit(sd_event_source_get_event(s), STATUS_OK);
}

static int hold_until_told(sd_event *event, Keep *k)
{
	int r;

	r = sd_event_add_io(event, NULL, k->pidfd, EPOLLIN, on_ended, NULL);
	if (r >= 0 && args.duration)
		r = sd_event_add_time_relative(event, NULL, CLOCK_BOOTTIME, args.duration, 0, on_time,
					       NULL);
	if (r >= 0)
		r = sd_event_loop(event);
	if (r < 0)
		complain("cannot wait: %s", strerror(-r));
	return r < 0 ? STATUS_FAILURE : r;
}

static int run_hold(Context *c _unused_, int argc _unused_, char **argv)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	auto_event sd_event *event = NULL;
	auto_bus sd_bus *bus = NULL;
	auto_close int pidfd = -EBADF;
	Keep k = { .make = keep_make_hold, .what = "hold", .interactive = true, .fd = -EBADF };
	int r, status;

	status = pidfd_from_arg(argv[0], &pidfd);
	if (status != STATUS_OK)
		return status;
	if (client_open(&bus) < 0)
		return STATUS_FAILURE;
	k.bus = bus;
	k.pidfd = pidfd;
	k.who = args.who;
	k.why = args.why;
	r = client_loop(bus, &event); /* first: from now on Ctrl-C ends it in order */
	if (r >= 0)
		r = keep_start(&k, &error);
	if (r < 0)
		return client_fail(&error, r);
	(void)printf("Holding the memory of process %s%s.\n", argv[0],
		     args.duration ? "" : " until Ctrl-C or its end");
	(void)fflush(stdout);
	status = hold_until_told(event, &k);
	keep_done(&k);
	return status;
}

static const Option options[] = {
	{ "who", 0, OPTION_STRING, "TEXT", "who holds, as \"vramctl status\" shows it", &args.who },
	{ "why", 0, OPTION_STRING, "TEXT", "for which reason", &args.why },
	{ "for", 0, OPTION_USEC, "TIME", "end after that: 30s, 5min, 2h", &args.duration },
	{},
};

const Verb verb_hold = {
	.name = "hold",
	.args = "PID",
	.summary = "protect a process's unit until Ctrl-C",
	.description = "Protects the unit of a process, whoever is in front, until Ctrl-C, the end of\n"
		       "the process or --for TIME. The hold returns by itself when vramd restarts.",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.run = run_hold,
};
