/* SPDX-License-Identifier: MIT */
/* vramctl run: the child waits at a gate until it is in its own scope and held, then becomes COMMAND;
 * vramctl stays beside it to keep the hold, pass signals on and return its exit status. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "keep.h"
#include "parse.h"
#include "scope.h"
#include "verb.h"

/* As env(1), nohup(1) and timeout(1) have it. */
enum { RUN_FAILED = 125, RUN_NOT_EXECUTABLE = 126, RUN_NOT_FOUND = 127 };

#define RUN_CALL_TIMEOUT_USEC (3 * USEC_PER_SEC)

/* vramd answers after 3 s at the latest, and what that leaves of a wait is for a busy machine. */
#define RUN_ROOM_TIMEOUT_USEC (6 * USEC_PER_SEC)

static struct {
	const char *scope_name, *slice, *make_room;
	bool no_scope, require;
} args = { .slice = "app.slice" };

static const int forwarded[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 };

/* --- The child ------------------------------------------------------------------------------- */

_Noreturn static void child_main(int gate, const sigset_t *mask, char **argv)
{
	int saved;
	char go;

	(void)sigprocmask(SIG_SETMASK, mask, NULL);
	if (TEMP_FAILURE_RETRY(read(gate, &go, 1)) != 1)
		_exit(RUN_FAILED); /* the parent gave up, or died */
	(void)execvp(argv[0], argv);
	saved = errno;
	complain("cannot run \"%s\": %s", argv[0], strerror(saved));
	_exit(saved == ENOENT ? RUN_NOT_FOUND : RUN_NOT_EXECUTABLE);
}

/* Blocks what is passed on, for the parent only. Returns the child's pid; *ret_gate lets it go. */
static pid_t start_child(char **argv, int *ret_gate)
{
	sigset_t block, before;
	int gate[2];
	pid_t pid;

	(void)sigemptyset(&block);
	(void)sigaddset(&block, SIGCHLD);
	for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
		(void)sigaddset(&block, forwarded[i]);
	if (pipe2(gate, O_CLOEXEC) < 0)
		return -1;
	(void)sigprocmask(SIG_BLOCK, &block, &before);
	pid = fork();
	if (pid == 0) {
		(void)close(gate[1]);
		child_main(gate[0], &before, argv);
	}
	close_fd(gate[0]);
	if (pid < 0)
		close_fd(gate[1]);
	else
		*ret_gate = gate[1];
	return pid;
}

/* --- Scope and hold --------------------------------------------------------------------------- */

/* False if the command must not run. */
static bool give_scope(const char *program, pid_t pid, int pidfd)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	auto_free char *name = NULL, *description = NULL;
	int r;

	if (args.no_scope || (!args.scope_name && scope_is_own()))
		return true;
	name = args.scope_name ? strdup(args.scope_name) :
				 scope_name(program, getenv("SteamAppId"), pid);
	if (!name || asprintf(&description, "%s, started by vramctl", program) < 0) {
		description = NULL;
		return false;
	}
	r = scope_start(&(Scope){ name, args.slice, description, &(ScopeProcess){ pid, pidfd }, 1 }, &error);
	if (r >= 0)
		return true;
	if (r == -ENOTCONN)
		complain("there is no systemd of this user, so no scope of its own for \"%s\"", program);
	else
		complain("no scope \"%s\": %s", name,
			 *strempty(error.message) ? error.message : strerror(-r));
	return !args.require;
}

static void tell_room(sd_bus_message *reply)
{
	char text[FORMAT_BYTES_MAX];
	Amounts freed = {};
	int done;

	if (amounts_read(reply, &freed) < 0)
		return;
	if (sd_bus_message_read(reply, "b", &done) >= 0) {
		if (freed.n == 0 && !done)
			complain("no room could be made");
		for (size_t i = 0; i < freed.n; i++)
			complain("made room: %s of %s%s", format_bytes(text, freed.v[i].bytes), freed.v[i].region,
				 done ? "" : ", and no more could be");
	}
	amounts_done(&freed);
}

/* Unless it was asked for here, nothing is said: then the configuration has the word, and perhaps nothing to say. */
static void make_room(sd_bus *bus, int pidfd)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	auto_message sd_bus_message *m = NULL, *reply = NULL;
	int r;

	r = sd_bus_message_new_method_call(bus, &m, VRAMD_BUS_NAME, VRAMD_PATH, VRAMD_IFACE_MANAGER, "MakeRoom");
	if (r >= 0)
		r = sd_bus_message_append(m, "hsa{sv}", pidfd, strempty(args.make_room), 0);
	if (r >= 0)
		r = sd_bus_call(bus, m, RUN_ROOM_TIMEOUT_USEC, &error, &reply);
	if (!args.make_room || error_is_absent(&error))
		return; /* that vramd is not there is said by who takes the hold */
	if (r < 0)
		(void)client_fail(&error, r);
	else
		tell_room(reply);
}

static bool take_hold(Keep *k)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	int r;

	if (client_open(&k->bus) < 0)
		return !args.require;
	make_room(k->bus, k->pidfd);
	r = keep_start(k, &error);
	if (r < 0)
		(void)client_fail(&error, r);
	return r >= 0 || !args.require;
}

/* --- The parent's loop ------------------------------------------------------------------------ */

static int on_child(sd_event_source *s, const siginfo_t *si, void *userdata _unused_)
{
	int status = si->si_code == CLD_EXITED ? si->si_status : 128 + si->si_status;

	return sd_event_exit(sd_event_source_get_event(s), status);
}

/* Ctrl-C reaches the whole foreground group by itself; only what was sent to us alone is passed on. */
static int on_signal(sd_event_source *s _unused_, const struct signalfd_siginfo *si, void *userdata)
{
	const int *pidfd = userdata;

	if (si->ssi_code != SI_KERNEL)
		(void)pidfd_send_signal(*pidfd, (int)si->ssi_signo, NULL, 0);
	return 0;
}

static int wait_child(pid_t pid, int pidfd, Keep *k)
{
	auto_event sd_event *event = NULL;
	int r;

	r = sd_event_new(&event);
	if (r >= 0)
		r = sd_event_add_child(event, NULL, pid, WEXITED, on_child, NULL);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(forwarded); i++)
		r = sd_event_add_signal(event, NULL, forwarded[i], on_signal, &pidfd);
	if (r >= 0 && k->bus)
		(void)sd_bus_attach_event(k->bus, event, SD_EVENT_PRIORITY_NORMAL);
	if (r >= 0)
		r = sd_event_loop(event);
	if (r < 0)
		complain("cannot wait for the command: %s", strerror(-r));
	return r < 0 ? RUN_FAILED : r;
}

static int run_run(Context *c _unused_, int argc _unused_, char **argv)
{
	Keep k = {
		.make = keep_make_hold,
		.what = "hold",
		.timeout = RUN_CALL_TIMEOUT_USEC,
		.fd = -EBADF,
		.who = "vramctl run",
		.why = argv[0],
	};
	auto_close int gate = -EBADF, pidfd = -EBADF;
	pid_t pid;
	int status;

	if (args.make_room && parse_size(args.make_room, &(Size){ 0 }) < 0) {
		complain("--make-room=\"%s\": not a size such as 2G, 50%% or max", args.make_room);
		return STATUS_USAGE;
	}
	pid = start_child(argv, &gate);
	if (pid > 0)
		pidfd = pidfd_open(pid, 0);
	if (pidfd < 0) {
		complain("cannot start a process: %s", strerror(errno));
		return RUN_FAILED;
	}
	k.pidfd = pidfd;
	if (give_scope(argv[0], pid, pidfd) && take_hold(&k))
		(void)TEMP_FAILURE_RETRY(write(gate, "", 1));
	gate = close_fd(gate); /* without a byte the child ends with RUN_FAILED */
	status = wait_child(pid, pidfd, &k);
	keep_done(&k);
	sd_bus_flush_close_unref(k.bus);
	return status;
}

static const Option options[] = {
	{ "scope-name", 0, OPTION_STRING, "NAME", "name of the scope, with \".scope\"", &args.scope_name },
	{ "slice", 0, OPTION_STRING, "SLICE", "where the scope goes (app.slice)", &args.slice },
	{ "make-room", 0, OPTION_CHOICE, "SIZE", "first move others out: 2G, 50%, max (max)", &args.make_room, "max" },
	{ "no-scope", 0, OPTION_FLAG, NULL, "stay in the present control group", &args.no_scope },
	{ "require", 0, OPTION_FLAG, NULL, "do not run it without scope and hold", &args.require },
	{},
};

const Verb verb_run = {
	.name = "run",
	.args = "-- COMMAND...",
	.summary = "start a game in its own scope, and protect it",
	.description =
		"Starts COMMAND in a scope of its own, so that all its video memory is charged\n"
		"there, and holds its memory until it ends. As launch option of a game in Steam:\n"
		"    vramctl run -- %command%\n"
		"Exit status, signals and terminal are COMMAND's own; 125 if vramctl failed, 126\n"
		"and 127 if COMMAND cannot be run or found. Without vramd or a systemd of the\n"
		"user, COMMAND runs after a warning.",
	.options = options,
	.command = true,
	.min_args = 1,
	.max_args = UINT_MAX,
	.run = run_run,
};
