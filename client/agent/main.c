/* SPDX-License-Identifier: MIT */
/* vramd-agent: arguments, signals, readiness. */
#include <getopt.h>
#include <signal.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-login.h>

#include "agent.h"
#include "build-config.h"
#include "log.h"
#include "once.h"
#include "own-scope.h"
#include "report.h"

/* vramd-agent(1) documents them. */
enum { STATUS_OK = 0, STATUS_FAILURE = 1, STATUS_USAGE = 2, STATUS_UNKNOWN = 3 };

#define ONCE_MAX_USEC (3 * USEC_PER_SEC)

typedef struct Options {
	const char *source;
	bool once, json;
} Options;

typedef struct Run {
	sd_event *event;
	Agent *agent;
	Report *report;
	bool ready;
} Run;

static void print_help(void)
{
	(void)puts("vramd-agent [OPTION...]\n\n"
		   "Tells vramd which game is in front, as the desktop or gamescope shows it.\n\n"
		   "      --once         print what every source says now, and exit\n"
		   "  -j, --json         with --once: as JSON\n"
		   "      --source NAME  use this source only\n"
		   "  -v, --verbose      log each decision\n"
		   "  -h, --help         show this\n"
		   "      --version      show the version\n\n"
		   "Sources:");
	for (size_t i = 0; agent_source_name(i); i++)
		(void)printf("%s%s", i ? ", " : "  ", agent_source_name(i));
	(void)puts("\n\nExit status: 0 done, 1 failed, 2 wrong usage, 3 no source knows (--once).\n"
		   "See vramd-agent(1).");
}

static int refuse(const char *text, const char *what)
{
	log_error("vramd-agent: %s '%s'; see: vramd-agent --help", text, what);
	return -EINVAL;
}

/* 1: done, print nothing more. */
static int parse_argv(int argc, char **argv, Options *o)
{
	enum { ARG_ONCE = 256, ARG_SOURCE, ARG_VERSION };
	static const struct option options[] = {
		{ "once", no_argument, NULL, ARG_ONCE },     { "json", no_argument, NULL, 'j' },
		{ "source", required_argument, NULL, ARG_SOURCE }, { "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },	     { "version", no_argument, NULL, ARG_VERSION },
		{},
	};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":jvh", options, NULL)) >= 0)
		switch (c) {
		case ARG_ONCE:
			o->once = true;
			break;
		case 'j':
			o->json = true;
			break;
		case ARG_SOURCE:
			o->source = optarg;
			break;
		case 'v':
			log_set_max_level(LOG_DEBUG);
			break;
		case 'h':
			print_help();
			return 1;
		case ARG_VERSION:
			(void)puts("vramd-agent " VRAMD_VERSION);
			return 1;
		default:
			return refuse(c == ':' ? "a value is missing for" : "there is no option", argv[optind - 1]);
		}
	if (optind < argc)
		return refuse("there is no argument", argv[optind]);
	if (o->json && !o->once)
		return refuse("only with --once:", "--json");
	return 0;
}

/* --- Running ------------------------------------------------------------------------------------ */

static void tell_systemd(Run *run, const char *source, const State *s)
{
	char text[80] = "Nobody knows who is in front";

	if (source && s->front == FRONT_PROCESS)
		(void)snprintf(text, sizeof(text), "%s: process %d is in front", source, s->game.pid);
	else if (source)
		(void)snprintf(text, sizeof(text), "%s: no game is in front", source);
	(void)sd_notifyf(false, "%sSTATUS=%s", run->ready ? "" : "READY=1\n", text);
	run->ready = true;
	log_debug("%s%s", text, s->menu == VRAMD_MENU_OPEN ? ", below a menu" : "");
}

static void on_decided(const char *source, const State *state, void *userdata)
{
	Run *run = userdata;
	int r;

	if (run->report) {
		r = report_update(run->report, source, state);
		if (r < 0)
			log_warning_errno(r, "Cannot report who is in front: %m");
		tell_systemd(run, source, state);
	} else if (agent_is_settled(run->agent)) {
		(void)sd_event_exit(run->event, 0);
	}
}

static int add_signals(sd_event *event)
{
	sigset_t set;
	int r;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	/* Without a handler the loop ends, with the userdata as its exit code. */
	r = sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_signal(event, NULL, SIGINT, NULL, NULL);
	return r;
}

static int run_once(Run *run, const Options *o)
{
	int r;

	r = sd_event_add_time_relative(run->event, NULL, CLOCK_MONOTONIC, ONCE_MAX_USEC, 0, NULL, NULL);
	if (r >= 0)
		r = sd_event_loop(run->event);
	if (r < 0) {
		log_error_errno(r, "Cannot wait: %m");
		return STATUS_FAILURE;
	}
	return once_print(run->agent, o->json) ? STATUS_OK : STATUS_UNKNOWN;
}

static int run_on(Run *run)
{
	int r = sd_event_loop(run->event);

	(void)sd_notify(false, "STOPPING=1");
	if (r < 0)
		log_error_errno(r, "Cannot go on: %m");
	return r < 0 ? STATUS_FAILURE : STATUS_OK;
}

/* A service may not have been told of what kind the session is, and one of the system is not. */
static void learn_session(void)
{
	auto_free char *session = NULL, *type = NULL;

	if (sd_uid_get_display(getuid(), &session) >= 0 && sd_session_get_type(session, &type) >= 0)
		(void)setenv("XDG_SESSION_TYPE", type, false);
}

static int start_own_scope(sd_event *event, OwnScope **ret)
{
	const char *home = getenv("HOME");
	int r = home ? own_scope_new(event, home, ret) : -ENOENT;

	if (r < 0 && r != -ENOENT)
		log_warning_errno(r, "Cannot hear of games that Steam starts, ignoring: %m");
	return r == -ENOMEM ? r : 0;
}

static int run_with(const Options *o)
{
	_cleanup_(sd_event_unrefp) sd_event *event = NULL;
	auto_report Report *report = NULL;
	auto_agent Agent *agent = NULL;
	auto_own_scope OwnScope *own_scope = NULL;
	Run run = {};
	AgentOptions options = { o->source, o->once, on_decided, &run };
	int r;

	r = sd_event_new(&event);
	if (r >= 0)
		r = add_signals(event);
	if (r >= 0 && !o->once)
		r = report_new(event, &report);
	if (r >= 0)
		r = agent_new(event, &options, &agent);
	if (r == -EINVAL && o->source) {
		(void)refuse("there is no source", o->source);
		return STATUS_USAGE;
	}
	if (r >= 0 && !o->once)
		r = start_own_scope(event, &own_scope);
	if (r < 0) {
		log_error_errno(r, "Cannot start: %m");
		return STATUS_FAILURE;
	}
	run.event = event;
	run.agent = agent;
	run.report = report;
	return o->once ? run_once(&run, o) : run_on(&run);
}

int main(int argc, char **argv)
{
	const char *level = getenv("VRAMD_LOG_LEVEL");
	Options o = {};
	int r;

	if (level && log_level_from_string(level) >= 0)
		log_set_max_level(log_level_from_string(level));
	r = parse_argv(argc, argv, &o);
	if (r != 0)
		return r < 0 ? STATUS_USAGE : STATUS_OK;
	learn_session();
	return run_with(&o);
}
