/* SPDX-License-Identifier: MIT */
/* bench-reaction: from a compositor's ReportFocus() to the last value that vramd writes for it.
 *
 * Two games take turns in front. Once that is steady, the difference between the two states of the tree
 * is the list of writes that a change needs; a plain loop over open files does the same ones for the floor
 * while vramd is stopped (SIGSTOP). The end of a change is heard by inotify from the one directory that
 * is written last. All values are then compared; one that came later would fail the benchmark. What hearing it
 * costs is measured too, on another process that does the floor's writes. README.md says what the figures mean. */
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>

#include <stdarg.h>
#include <systemd/sd-bus.h>

#include "bus-names.h"
#include "figures.h"
#include "fileio.h"
#include "parse.h"
#include "vramd.h"

#define TEXT_MAX 4096
#define BATCHES 5           /* reactions and floor take turns, so that a busy host disturbs both */
/* What vramd still has to do after a change must not count for what is measured next. Two of these make
 * less than 20 changes a second, which is all that vramd applies for a user. */
#define REST_USEC 30000
#define SETTLE_USEC 100000
#define LOST_MSEC 3000
#define CONNECT_MSEC 2000 /* silence after which the connection has been made */
#define QUIET_MSEC 20

static const char *const limit_files[] = { "dmem.min", "dmem.low", "dmem.max" };

typedef struct File {
	char *dir;
	int fd;
} File;

/* One value that differs between the two states. */
typedef struct Write {
	size_t file;
	char line[2][128]; /* by the side that is in front */
} Write;

typedef struct Samples {
	double *usec;
	size_t n, n_alloc;
} Samples;

typedef struct Bench {
	const char *cgroup;
	const char *unit;   /* for SetUnitProperties; NULL: left out */
	const char *dirs[2];
	int pidfd[2];
	pid_t daemon;
	uint32_t rounds;
	uint32_t uid;
	bool terse;

	vramd *compositor; /* reports, as that user */
	sd_bus *root;
	File *files;
	size_t n_files, n_files_alloc;
	Write *writes;
	size_t n_writes, n_writes_alloc;
	const char *last_dir[2]; /* where the last write shows, by side */
	const Write **order[2];  /* [n_writes] with that directory's at the end, by side */
	int inotify[2];
	int front;
	Samples reaction, call, round_trip, driver, properties, floor, heard;

	int writer;           /* a byte makes it write that side's values */
	double *writer_start; /* when it began, shared with it */
} Bench;

_printf_(1, 2) static _Noreturn void die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fputs("bench-reaction: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(EXIT_FAILURE);
}

static void check(int r, const char *what)
{
	if (r < 0)
		die("%s: %s", what, strerror(-r));
}

/* --- Figures ------------------------------------------------------------------------------------ */

static void sample(Samples *s, double usec)
{
	if (!GROW(s->usec, s->n_alloc, s->n))
		die("out of memory");
	s->usec[s->n++] = usec;
}

static double sample_quantile(const Samples *s, double q)
{
	return quantile(s->usec, s->n, q);
}

static double median(const Samples *s)
{
	return sample_quantile(s, 0.5);
}

static bool print_mark(const char *name, double ratio)
{
	bool ok = ratio <= 1.0;

	printf("%s: %.2f x (mark: <= 1.00) %s\n", name, ratio, ok ? "ok" : "short");
	return ok;
}

static bool print_figures(const Bench *b)
{
	double reaction = median(&b->reaction), floor, trip, hearing;
	bool ok;

	if (b->terse)
		return printf("%.1f\n", reaction) > 0;
	floor = median(&b->floor);
	trip = median(&b->round_trip);
	hearing = median(&b->heard) - floor;
	printf("reaction as heard: %.1f us (median of %zu; 90 %% within %.1f us)\n", reaction, b->reaction.n,
	       sample_quantile(&b->reaction, 0.9));
	printf("reaction hearing: %.1f us (the floor's writes by another process, as heard: %.1f us)\n", hearing,
	       hearing + floor);
	reaction -= hearing;
	printf("reaction: %.1f us (without the hearing)\n", reaction);
	printf("reaction call: %.1f us (vramd_report_focus() itself)\n", median(&b->call));
	printf("reaction floor: %.1f us (the same %zu writes by a C loop)\n", floor, b->n_writes);
	printf("reaction round trip: %.1f us (Ping to vramd; GetId of the bus itself: %.1f us)\n", trip,
	       median(&b->driver));
	ok = print_mark("reaction / (3 floors + 1 round trip)", reaction / (3 * floor + trip));
	if (b->unit) {
		printf("reaction SetUnitProperties: %.1f us\n", median(&b->properties));
		ok = print_mark("reaction / SetUnitProperties", reaction / median(&b->properties)) && ok;
	}
	return ok;
}

/* --- The tree ------------------------------------------------------------------------------------- */

static void read_text(const File *f, char ret[static TEXT_MAX])
{
	ssize_t n = pread(f->fd, ret, TEXT_MAX - 1, 0);

	if (n < 0)
		die("cannot read in %s: %m", f->dir);
	ret[n] = '\0';
}

static void add_files(Bench *b, const char *dir)
{
	for (size_t i = 0; i < b->n_files; i++)
		if (streq(b->files[i].dir, dir))
			return;
	for (size_t i = 0; i < ARRAY_SIZE(limit_files); i++) {
		auto_free char *path = NULL;
		File f;

		if (asprintf(&path, "%s/%s", dir, limit_files[i]) < 0 ||
		    !GROW(b->files, b->n_files_alloc, b->n_files))
			die("out of memory");
		f = (File){ strdup(dir), open(path, O_RDWR | O_CLOEXEC) };
		if (f.fd < 0)
			die("cannot open %s: %m", path);
		b->files[b->n_files++] = f;
	}
}

/* A game's group and those above it, but for the root, which has no limits. */
static void add_chain(Bench *b, const char *group)
{
	auto_free char *dir = strdup(group);
	size_t root = strlen(b->cgroup);

	while (dir && strlen(dir) > root) {
		add_files(b, dir);
		*strrchr(dir, '/') = '\0';
	}
}

static char *read_state(const Bench *b)
{
	char *state = malloc(b->n_files * TEXT_MAX);

	if (!state)
		die("out of memory");
	for (size_t i = 0; i < b->n_files; i++)
		read_text(&b->files[i], state + i * TEXT_MAX);
	return state;
}

static bool same_state(const Bench *b, const char *x, const char *y)
{
	for (size_t i = 0; i < b->n_files; i++)
		if (!streq(x + i * TEXT_MAX, y + i * TEXT_MAX))
			return false;
	return true;
}

/* The state after vramd has had time to finish. */
static char *settled_state(const Bench *b)
{
	for (;;) {
		auto_free char *before = read_state(b);
		char *after;

		usleep(SETTLE_USEC);
		after = read_state(b);
		if (same_state(b, before, after))
			return after;
		free(after);
	}
}

/* The lines ("region value") of one file that differ. The kernel prints regions in one order. */
static void add_writes(Bench *b, size_t file, char *x, char *y)
{
	char *line_x, *line_y;

	while ((line_x = strsep(&x, "\n")) && (line_y = strsep(&y, "\n"))) {
		Write *w;

		if (streq(line_x, line_y))
			continue;
		if (!GROW(b->writes, b->n_writes_alloc, b->n_writes))
			die("out of memory");
		w = &b->writes[b->n_writes++];
		w->file = file;
		(void)snprintf(w->line[0], sizeof(w->line[0]), "%s", line_x);
		(void)snprintf(w->line[1], sizeof(w->line[1]), "%s", line_y);
	}
}

static bool has_line(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	return at && (at == text || at[-1] == '\n') && at[strlen(line)] == '\n';
}

static bool all_written(const Bench *b, int side)
{
	char text[TEXT_MAX];

	for (size_t i = 0; i < b->n_writes; i++) {
		const Write *w = &b->writes[i];

		if (i == 0 || w->file != w[-1].file)
			read_text(&b->files[w->file], text);
		if (!has_line(text, w->line[side]))
			return false;
	}
	return true;
}

/* --- The bus ---------------------------------------------------------------------------------------- */

static void process(Bench *b)
{
	int r = vramd_process(b->compositor);

	if (r < 0)
		die("ReportFocus: %s", r == -EREMOTEIO ? vramd_get_error(b->compositor) : strerror(-r));
}

/* The bus believes in the effective user of the moment when the connection is made. */
static void open_compositor(Bench *b)
{
	struct pollfd p = { .events = POLLIN };

	if (seteuid(b->uid) < 0)
		die("cannot become user %u: %m", (unsigned)b->uid);
	check(vramd_open("gamescope", &b->compositor), "vramd_open");
	check(vramd_set_menu(b->compositor, VRAMD_MENU_CLOSED), "vramd_set_menu");
	p.fd = vramd_get_fd(b->compositor);
	while (poll(&p, 1, CONNECT_MSEC) > 0)
		process(b);
	if (seteuid(0) < 0)
		die("cannot become root again: %m");
}

static void call(sd_bus *bus, const char *name, const char *path, const char *interface, const char *member)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

	if (sd_bus_call_method(bus, name, path, interface, member, &error, NULL, NULL) < 0)
		die("%s: %s", member, error.message);
}

static void set_unit_properties(Bench *b)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	uint64_t value = (b->front ? 8 : 16) * MIB; /* never the one it has */

	if (sd_bus_call_method(b->root, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
			       "org.freedesktop.systemd1.Manager", "SetUnitProperties", &error, NULL, "sba(sv)",
			       b->unit, true, 1, "MemoryLow", "t", value) < 0)
		die("SetUnitProperties: %s", error.message);
}

static void report(Bench *b, int side)
{
	check(vramd_report_focus(b->compositor, b->pidfd[side], 0), "vramd_report_focus");
	b->front = side;
}

/* --- Hearing the last write ---------------------------------------------------------------------------- */

/* Reads what there is; the watch of the last event, or -1. */
static int drain(int fd)
{
	char buf[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	int wd = -1;
	ssize_t n;

	do {
		n = read(fd, buf, sizeof(buf));
		for (char *at = buf; at < buf + n;) {
			const struct inotify_event *ev = (const struct inotify_event *)at;

			wd = ev->wd;
			at += sizeof(*ev) + ev->len;
		}
	} while (n > (ssize_t)sizeof(buf) / 2);
	return wd;
}

static int watch(const char *dir, int fd)
{
	int wd = inotify_add_watch(fd, dir, IN_MODIFY | IN_ONLYDIR);

	if (wd < 0)
		die("cannot watch %s: %m", dir);
	return wd;
}

static int new_inotify(void)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	if (fd < 0)
		die("inotify_init1: %m");
	return fd;
}

static void order_writes(Bench *b, int side)
{
	size_t n = 0;

	b->order[side] = calloc(b->n_writes, sizeof(*b->order[side]));
	if (!b->order[side])
		die("out of memory");
	for (int last = 0; last < 2; last++)
		for (size_t i = 0; i < b->n_writes; i++)
			if (streq(b->files[b->writes[i].file].dir, b->last_dir[side]) == last)
				b->order[side][n++] = &b->writes[i];
}

/* Lets each side come to the front once and notes which directory is written last. */
static void learn_last(Bench *b)
{
	auto_close int all = new_inotify();
	int *wds = calloc(b->n_files, sizeof(*wds));

	if (!wds)
		die("out of memory");
	for (size_t i = 0; i < b->n_files; i++)
		wds[i] = watch(b->files[i].dir, all);
	for (int side = 0; side < 2; side++) {
		int last;

		report(b, side);
		do
			free(settled_state(b));
		while (!all_written(b, side));
		last = drain(all);
		b->inotify[side] = new_inotify();
		for (size_t i = 0; i < b->n_files; i++)
			if (wds[i] == last) {
				b->last_dir[side] = b->files[i].dir;
				(void)watch(b->last_dir[side], b->inotify[side]);
				order_writes(b, side);
			}
	}
	free(wds);
}

static void wait_written(Bench *b, int side, double *ret_end)
{
	struct pollfd p = { .fd = b->inotify[side], .events = POLLIN };

	do {
		int n = poll(&p, 1, LOST_MSEC);

		if (n <= 0)
			die("a value was not written within %d ms, or later than those in %s", LOST_MSEC,
			    b->last_dir[side]);
		/* Nothing else is done in between: with one CPU vramd waits for us. */
		for (; n > 0; n = poll(&p, 1, QUIET_MSEC)) {
			*ret_end = now_usec();
			(void)drain(p.fd);
		}
	} while (!all_written(b, side)); /* a busy host may stop anybody for that long */
}

/* --- Measuring ------------------------------------------------------------------------------------------ */

static void measure_reaction(Bench *b)
{
	int side = !b->front;
	double start, called, end;

	(void)drain(b->inotify[side]);
	start = now_usec();
	report(b, side);
	called = now_usec();
	wait_written(b, side, &end);
	sample(&b->call, called - start);
	sample(&b->reaction, end - start);
}

static void measure_bus(Bench *b)
{
	double t[4];

	t[0] = now_usec();
	call(b->root, VRAMD_BUS_NAME, "/", "org.freedesktop.DBus.Peer", "Ping"); /* sd-bus answers by itself */
	t[1] = now_usec();
	call(b->root, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetId");
	t[2] = now_usec();
	if (b->unit)
		set_unit_properties(b);
	t[3] = now_usec();
	sample(&b->round_trip, t[1] - t[0]);
	sample(&b->driver, t[2] - t[1]);
	sample(&b->properties, t[3] - t[2]);
}

static void write_values(const Bench *b, int side)
{
	for (size_t i = 0; i < b->n_writes; i++) {
		const Write *w = b->order[side][i];

		if (pwrite(b->files[w->file].fd, w->line[side], strlen(w->line[side]), 0) < 0)
			die("cannot write '%s': %m", w->line[side]);
	}
}

/* In vramd's place: without real-time priority, so that the wake-ups cost the same. */
static void start_writer(Bench *b)
{
	int fds[2];
	uint8_t side;

	b->writer_start = mmap(NULL, sizeof(*b->writer_start), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			       0);
	if (b->writer_start == MAP_FAILED || pipe2(fds, O_CLOEXEC) < 0)
		die("cannot start a writer: %m");
	b->writer = fds[1];
	switch (fork()) {
	case -1:
		die("cannot start a writer: %m");
	case 0:
		(void)close(fds[1]);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		check(sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 }), "sched_setscheduler");
		while (read(fds[0], &side, sizeof(side)) == sizeof(side)) {
			*b->writer_start = now_usec();
			write_values(b, side);
		}
		_exit(EXIT_SUCCESS);
	default:
		(void)close(fds[0]);
	}
}

static void measure_writes(Bench *b, int side)
{
	double start = now_usec();

	write_values(b, side);
	sample(&b->floor, now_usec() - start);
	if (!all_written(b, side))
		die("the floor's values do not hold");
}

static void measure_heard(Bench *b, int side)
{
	uint8_t byte = (uint8_t)side;
	double end;

	(void)drain(b->inotify[side]);
	if (write(b->writer, &byte, sizeof(byte)) != sizeof(byte))
		die("the writer is gone: %m");
	wait_written(b, side, &end);
	sample(&b->heard, end - *b->writer_start);
}

/* An even number of times: the tree ends as vramd knows it. */
static void measure_floor(Bench *b, size_t n)
{
	if (kill(b->daemon, SIGSTOP) < 0)
		die("cannot stop vramd: %m");
	for (size_t i = 0; i < n; i++) {
		measure_writes(b, !b->front);
		measure_writes(b, b->front);
		measure_heard(b, !b->front);
		measure_heard(b, b->front);
	}
	if (kill(b->daemon, SIGCONT) < 0)
		die("cannot continue vramd: %m");
	usleep(10 * REST_USEC);
}

static void warm_up(Bench *b)
{
	auto_free char *state[2] = { NULL }, *again[2] = { NULL };
	char *both[2];

	for (int side = 0; side < 2; side++) {
		report(b, side);
		usleep(5 * SETTLE_USEC); /* dmem is being switched on */
	}
	for (int side = 0; side < 2; side++)
		add_chain(b, b->dirs[side]);
	for (int i = 0; i < 4; i++) {
		report(b, i % 2);
		(i < 2 ? state : again)[i % 2] = settled_state(b);
		process(b);
	}
	for (int side = 0; side < 2; side++)
		if (!same_state(b, state[side], again[side]))
			die("the same focus gives other values the second time: no steady state");
	for (size_t i = 0; i < b->n_files; i++) {
		both[0] = again[0] + i * TEXT_MAX;
		both[1] = again[1] + i * TEXT_MAX;
		add_writes(b, i, both[0], both[1]);
	}
	if (b->n_writes == 0)
		die("a focus change changes no value");
	learn_last(b);
}

static void measure(Bench *b)
{
	warm_up(b);
	start_writer(b);
	for (int batch = 0; batch < BATCHES; batch++) {
		for (uint32_t i = 0; i < b->rounds / BATCHES; i++) {
			usleep(REST_USEC);
			if (!b->terse)
				measure_bus(b);
			usleep(REST_USEC);
			measure_reaction(b);
			usleep(REST_USEC);
			process(b);
		}
		if (!b->terse)
			measure_floor(b, b->rounds / BATCHES / 2);
	}
}

/* --- Arguments --------------------------------------------------------------------------------------------- */

static void print_help(void)
{
	puts("bench-reaction [OPTIONS] --daemon=PID GAME GAME\n"
	     "\n"
	     "Lets two games take turns in front of vramd. A GAME is PID:CGROUP.\n"
	     "\n"
	     "  --daemon=PID   vramd's process\n"
	     "  --cgroup=DIR   root of the tree (/sys/fs/cgroup)\n"
	     "  --uid=UID      the user who reports the focus (0)\n"
	     "  --unit=UNIT    also measure SetUnitProperties() on this unit\n"
	     "  --rounds=N     focus changes to measure (200)\n"
	     "  --terse        print the median in microseconds and nothing else");
}

static uint32_t number(const char *text)
{
	uint32_t n;

	check(parse_u32(text, &n), text);
	return n;
}

static void parse_game(Bench *b, int side, char *text)
{
	const char *pid = strsep(&text, ":");
	char *dir;

	if (!text)
		die("'%s' is not PID:CGROUP", pid);
	b->pidfd[side] = pidfd_open((pid_t)number(pid), 0);
	if (b->pidfd[side] < 0)
		die("process %s: %m", pid);
	if (asprintf(&dir, "%s%s", b->cgroup, text) < 0)
		die("out of memory");
	b->dirs[side] = dir;
}

static void parse_argv(Bench *b, int argc, char **argv)
{
	static const struct option options[] = {
		{ "daemon", required_argument, NULL, 'd' }, { "cgroup", required_argument, NULL, 'c' },
		{ "uid", required_argument, NULL, 'u' },    { "unit", required_argument, NULL, 'n' },
		{ "rounds", required_argument, NULL, 'r' }, { "terse", no_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },         { 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0) {
		switch (c) {
		case 'd':
			b->daemon = (pid_t)number(optarg);
			break;
		case 'c':
			b->cgroup = optarg;
			break;
		case 'u':
			b->uid = number(optarg);
			break;
		case 'n':
			b->unit = optarg;
			break;
		case 'r':
			b->rounds = number(optarg);
			break;
		case 't':
			b->terse = true;
			break;
		case 'h':
			print_help();
			exit(EXIT_SUCCESS);
		default:
			exit(2);
		}
	}
	if (argc - optind != 2 || b->daemon <= 0 || b->rounds < 2 * BATCHES)
		die("two games, --daemon, and at least %d rounds are needed; see --help", 2 * BATCHES);
	for (int side = 0; side < 2; side++)
		parse_game(b, side, argv[optind + side]);
}

/* On one CPU the write wakes us up, but we would not run before vramd and everybody whom it told about the
 * change had gone to sleep. */
static void run_at_once(void)
{
	const struct sched_param p = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO, &p) < 0)
		die("cannot get real-time priority: %m");
}

int main(int argc, char **argv)
{
	Bench b = { .cgroup = "/sys/fs/cgroup", .rounds = 200 };

	parse_argv(&b, argc, argv);
	open_compositor(&b);
	check(sd_bus_open_system(&b.root), "cannot connect to the system bus");
	run_at_once();
	measure(&b);
	return print_figures(&b) ? EXIT_SUCCESS : EXIT_SHORT;
}
