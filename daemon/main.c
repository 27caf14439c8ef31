/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <signal.h>
#include <systemd/sd-daemon.h>

#include "build-config.h"
#include "bus.h"
#include "log.h"

/* A vramd that cannot help stays for so long to tell who asks, and leaves. */
#define UNSUPPORTED_LINGER_USEC (10 * USEC_PER_SEC)
#define DEFAULT_RUNTIME_DIR "/run/vramd"

typedef struct Options {
	const char *root;
	const char *config;
	const char *runtime_dir;
	bool dry_run;
	bool restore;
} Options;

static void print_help(void)
{
	puts("vramd [OPTIONS]\n"
	     "\n"
	     "Keeps the video memory of the game in front.\n"
	     "\n"
	     "  -c, --config=FILE    read FILE instead of /etc/vramd/vramd.conf\n"
	     "  -n, --dry-run        decide, but write nothing: say what would be written\n"
	     "  -R, --restore        put back what an earlier run left, and exit\n"
	     "      --root=DIR       take DIR/proc, DIR/sys/fs/cgroup and DIR/etc for the\n"
	     "                       system's own (for tests)\n"
	     "      --runtime-dir=DIR  keep the journal there instead of " DEFAULT_RUNTIME_DIR "\n"
	     "  -v, --verbose        log each decision and each value written\n"
	     "  -h, --help           print this, and exit\n"
	     "      --version        print the version, and exit\n"
	     "\n"
	     "See vramd(8), vramd.conf(5), vramctl(1).");
}

/* 0: go on; 1: all done; negative: usage error. */
static int parse_argv(int argc, char **argv, Options *o)
{
	enum { OPT_ROOT = 256, OPT_RUNTIME_DIR, OPT_VERSION };
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "dry-run", no_argument, NULL, 'n' },
		{ "restore", no_argument, NULL, 'R' },
		{ "root", required_argument, NULL, OPT_ROOT },
		{ "runtime-dir", required_argument, NULL, OPT_RUNTIME_DIR },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "c:nRvh", options, NULL)) >= 0) {
		switch (c) {
		case 'c':
			o->config = optarg;
			break;
		case 'n':
			o->dry_run = true;
			break;
		case 'R':
			o->restore = true;
			break;
		case OPT_ROOT:
			o->root = optarg;
			break;
		case OPT_RUNTIME_DIR:
			o->runtime_dir = optarg;
			break;
		case 'v':
			log_set_max_level(LOG_DEBUG);
			break;
		case 'h':
			print_help();
			return 1;
		case OPT_VERSION:
			puts("vramd " VRAMD_VERSION);
			return 1;
		default:
			return -EINVAL;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "vramd: unexpected argument '%s'\n", argv[optind]);
		return -EINVAL;
	}
	return 0;
}

static int set_roots(Roots *roots, const char *root)
{
	roots->relocated = root;
	if (asprintf(&roots->proc, "%s/proc", strempty(root)) < 0 ||
	    asprintf(&roots->cgroup, "%s/sys/fs/cgroup", strempty(root)) < 0)
		return -ENOMEM;
	roots->etc = strdup(strempty(root));
	return roots->etc ? 0 : -ENOMEM;
}

static int use_options(Manager *m, const Options *o)
{
	int r;

	r = set_roots(&m->roots, o->root);
	if (r < 0)
		return r;
	m->dry_run = o->dry_run;
	if (o->config) {
		m->config_file = strdup(o->config);
		if (!m->config_file)
			return -ENOMEM;
	}
	if (o->runtime_dir)
		m->runtime_dir = strdup(o->runtime_dir);
	else if (asprintf(&m->runtime_dir, "%s" DEFAULT_RUNTIME_DIR, strempty(o->root)) < 0)
		m->runtime_dir = NULL;
	return m->runtime_dir ? 0 : -ENOMEM;
}

/* --- Restore ---------------------------------------------------------------------------------- */

static int restore(Manager *m)
{
	auto_apply Apply *a = NULL;
	const char *reason;
	int r;

	r = hierarchy_open(&m->roots, &m->hierarchy, &reason);
	if (r == -EOPNOTSUPP) {
		/* Not louder: systemd runs this whenever the daemon, which has said it, leaves. */
		log_debug("Nothing to put back: %s", reason);
		return 0;
	}
	if (r < 0)
		return log_error_errno(r, "Cannot open the control group hierarchy: %m");
	r = apply_new(&m->hierarchy, &m->roots, m->runtime_dir, m->dry_run, NULL, NULL, NULL, &a);
	if (r == -EBUSY)
		return log_error_errno(r, "A vramd is at work in '%s': stop it, and it puts everything back",
				       m->runtime_dir);
	if (r < 0)
		return log_error_errno(r, "Cannot open the journal in '%s': %m", m->runtime_dir);
	r = apply_restore(a);
	if (r < 0)
		return log_error_errno(r, "Cannot put everything back: %m");
	return 0;
}

/* --- Running ---------------------------------------------------------------------------------- */

static void notify_ready(Manager *m)
{
	(void)sd_notifyf(false, "READY=1\nSTATUS=%s: %s", manager_state_to_string(m->state), strempty(m->reason));
	if (m->state == STATE_UNSUPPORTED)
		log_info("Not supported here: %s", m->reason);
}

static int on_linger_over(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	Manager *m = userdata;

	return sd_event_exit(m->event, 0);
}

/* Type=notify-reload (sd_notify(3)) wants the time, so that an old READY=1 is not taken for this one. */
static int on_reload_signal(sd_event_source *s _unused_, const struct signalfd_siginfo *si _unused_, void *userdata)
{
	Manager *m = userdata;
	struct timespec now;
	int r;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	(void)sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%llu",
			 (unsigned long long)now.tv_sec * USEC_PER_SEC + (unsigned long long)now.tv_nsec / 1000);
	r = manager_reload(m, NULL, NULL);
	if (r < 0)
		log_error_errno(r, "Cannot read the configuration again, the present one stays: %m");
	notify_ready(m);
	return 0;
}

static int add_signals(Manager *m)
{
	sigset_t set;
	int r;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	/* Without a handler the loop ends, with the userdata as its exit code. */
	r = sd_event_add_signal(m->event, NULL, SIGTERM, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_signal(m->event, NULL, SIGINT, NULL, NULL);
	if (r >= 0)
		r = sd_event_add_signal(m->event, NULL, SIGHUP, on_reload_signal, m);
	return r;
}

/* A vramd that protects nothing sleeps until something happens: only while it protects does it wake up to tell
 * systemd that it lives. */
static int on_post(sd_event_source *s _unused_, void *userdata)
{
	Manager *m = userdata;
	bool want = m->state == STATE_PROTECTING;
	uint64_t usec;

	if (want == (sd_event_get_watchdog(m->event) > 0) || sd_watchdog_enabled(false, &usec) <= 0)
		return 0;
	(void)sd_notifyf(false, "WATCHDOG_USEC=%llu", want ? (unsigned long long)usec : 0);
	return sd_event_set_watchdog(m->event, want);
}

static int run(Manager *m)
{
	int r, q;

	r = add_signals(m);
	if (r >= 0)
		r = sd_event_set_watchdog(m->event, true);
	if (r >= 0)
		r = sd_event_add_post(m->event, NULL, on_post, m);
	if (r < 0)
		return log_error_errno(r, "Cannot set up the event loop: %m");
	bus_init(m, notify_ready);
	r = manager_start(m);
	if (r < 0)
		return r;
	if (m->state == STATE_UNSUPPORTED) {
		r = sd_event_add_time_relative(m->event, NULL, CLOCK_MONOTONIC, UNSUPPORTED_LINGER_USEC, 0,
					       on_linger_over, m);
		if (r < 0)
			return log_error_errno(r, "Cannot set up the event loop: %m");
	}
	r = sd_event_loop(m->event);
	(void)sd_notify(false, "STOPPING=1\nSTATUS=Putting everything back");
	q = manager_stop(m);
	if (q < 0)
		log_error_errno(q, "Cannot put everything back: %m");
	return r < 0 ? r : q < 0 ? q : r;
}

int main(int argc, char **argv)
{
	_cleanup_(manager_freep) Manager *m = NULL;
	const char *level = secure_getenv("VRAMD_LOG_LEVEL");
	Options o = { 0 };
	int r;

	if (level && log_level_from_string(level) >= 0)
		log_set_max_level(log_level_from_string(level));
	r = parse_argv(argc, argv, &o);
	if (r < 0)
		return 2;
	if (r > 0)
		return EXIT_SUCCESS;
	r = manager_new(&m);
	if (r >= 0)
		r = use_options(m, &o);
	if (r < 0) {
		log_error_errno(r, "Cannot start: %m");
		return EXIT_FAILURE;
	}
	/* What the loop was ended with is the exit status. */
	r = o.restore ? restore(m) : run(m);
	return r < 0 ? EXIT_FAILURE : r;
}
