/* SPDX-License-Identifier: MIT */
/* workload KIND SOCKET [OPTION...]: connects to the bench and does what it says, one command a message:
 *
 *   setup                      open the GPU and make the buffers
 *   frame                      draw one
 *   grow BYTES, grow-only BYTES  use more, anywhere or only in VRAM
 *   shrink                     free what it grew by
 *   image                      make room for an image on the screen, and free it
 *   turn                       change what matters how much
 *   look                       nothing: see where buffers are
 *   export                     the answer brings the images that the game draws into
 *   import                     draw from the images that came with it; none: no more
 *   run                        draw at its own pace, until the next command
 *   stop                       do not
 *
 * Each command is answered by a report; run is followed by one more for each frame. */
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "parse.h"
#include "workload.h"

/* When the next frame begins, where the program paces itself. */
typedef struct Pace {
	uint64_t period_ns;        /* from one begin to the next; 0: as fast as it can */
	uint64_t think_ns;         /* after each submission */
	uint64_t spilled_mib_ns;   /* and for each MiB that it had to reach over the link */
} Pace;

typedef struct Program {
	Workload workload;
	const Kind *kind;
	const char *device;
	int socket;
	Pace pace;
	bool running;
} Program;

static void format_report(const Report *report, bool answer, char *text, size_t n)
{
	snprintf(text, n,
		 "begin_ns=%" PRIu64 " end_ns=%" PRIu64 " ioctl_ns=%" PRIu64 " resident=%" PRIu64 " spilled=%" PRIu64
		 " moved=%" PRIu64 " out=%" PRIu64 " evictions=%" PRIu64 " failed=%" PRIu64 " submits=%" PRIu64
		 " retries=%" PRIu64 " stall_ns=%" PRIu64 " answer=%d",
		 report->begin_ns, report->end_ns, report->ioctl_ns, report->resident, report->spilled, report->moved,
		 report->out, report->evictions, report->failed, report->submits, report->retries, report->stall_ns,
		 answer);
}

/* Appends how much of each class is where. */
static int format_places(Workload *w, char *text, size_t n)
{
	Places places;
	int r = workload_look(w, &places);

	for (size_t i = 0; r >= 0 && i < CLASSES; i++) {
		size_t length = strlen(text);

		snprintf(text + length, n - length, " in%zu=%" PRIu64 " out%zu=%" PRIu64, i, places.in[i], i,
			 places.out[i]);
	}
	return r;
}

static int send_report(Program *p, Message *m, bool answer)
{
	Report *report = &p->workload.gpu.report;
	int r;

	report->end_ns = now_ns();
	r = gpu_count_moved(&p->workload.gpu);
	if (r < 0)
		return r;
	format_report(report, answer, m->text, sizeof(m->text));
	if (p->workload.options.classes)
		r = format_places(&p->workload, m->text, sizeof(m->text));
	return r < 0 ? r : link_send(p->socket, m);
}

static int setup(Program *p)
{
	int r = gpu_open(&p->workload.gpu, p->device);

	return r < 0 ? r : p->kind->setup(&p->workload);
}

static int draw(Program *p)
{
	int r = p->kind->frame(&p->workload);

	p->workload.n_frames++;
	return r;
}

static int grow(Program *p, const char *size, bool vram_only)
{
	uint64_t bytes;
	int r = size ? parse_bytes(size, &bytes) : -EINVAL;

	return r < 0 ? r : workload_grow(&p->workload, bytes, vram_only);
}

static int obey(Program *p, Message *m, Message *answer)
{
	char *text = m->text;
	const char *command = strsep(&text, " ");

	p->running = streq(command, "run");
	if (streq(command, "setup"))
		return setup(p);
	if (streq(command, "frame"))
		return draw(p);
	if (streq(command, "grow") || streq(command, "grow-only"))
		return grow(p, text, streq(command, "grow-only"));
	if (streq(command, "shrink"))
		return workload_shrink(&p->workload);
	if (streq(command, "image"))
		return workload_image(&p->workload);
	if (streq(command, "turn"))
		return workload_turn(&p->workload);
	if (streq(command, "export"))
		return workload_export(&p->workload, answer);
	if (streq(command, "import"))
		return workload_import(&p->workload, m);
	return p->running || streq(command, "stop") || streq(command, "look") ? 0 : -EINVAL;
}

static void begin(Program *p)
{
	p->workload.gpu.report.ioctl_ns = 0;
	p->workload.gpu.report.begin_ns = now_ns();
}

/* Programs begin on a grid, so that two runs stay together, though each look at a clock, by anybody, makes a little
 * virtual time pass. */
#define GRID_NS UINT64_C(100000)

static uint64_t to_grid(uint64_t ns)
{
	return (ns + GRID_NS / 2) / GRID_NS * GRID_NS;
}

/* Waits for what is left of the frame. A frame that took too long delays the next ones. */
static int rest(const Program *p)
{
	const Report *report = &p->workload.gpu.report;
	uint64_t until = to_grid(now_ns()) + to_grid(p->pace.think_ns + report->spilled * p->pace.spilled_mib_ns / MIB);
	struct timespec t;

	until = MAX(until, to_grid(report->begin_ns) + p->pace.period_ns);
	t = (struct timespec){ .tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000) };
	return -clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static int run_frame(Program *p)
{
	Message m = { 0 };
	int r;

	begin(p);
	r = draw(p);
	if (r >= 0)
		r = rest(p);
	return r < 0 ? r : send_report(p, &m, false);
}

/* 0: the bench has gone */
static int serve_one(Program *p)
{
	_cleanup_(message_done) Message m = { 0 }, answer = { 0 };
	int r = link_receive(p->socket, p->running ? MSG_DONTWAIT : 0, &m);

	if (r == -EAGAIN) {
		r = run_frame(p);
		return r < 0 ? r : 1;
	}
	if (r <= 0)
		return r;
	begin(p);
	r = obey(p, &m, &answer);
	if (r >= 0)
		r = send_report(p, &answer, true);
	return r < 0 ? r : 1;
}

static int set_option(Program *p, int option, const char *value)
{
	Options *o = &p->workload.options;
	uint64_t usec;
	int r;

	switch (option) {
	case 'd':
		p->device = value;
		return 0;
	case 's':
		return parse_bytes(value, &o->size);
	case 'a':
		return parse_bytes(value, &o->smallest);
	case 'z':
		return parse_bytes(value, &o->largest);
	case 'c':
		return parse_bytes(value, &o->churn);
	case 'r':
		return parse_u32(value, &o->seed);
	case 'h':
		return parse_u32(value, &p->workload.gpu.hold_us);
	case 'm':
		return parse_u64(value, &p->pace.spilled_mib_ns);
	case 'b':
		return parse_bool(value, &p->workload.gpu.backoff);
	case 'o':
		return parse_bool(value, &o->vram_only);
	case 'l':
		return parse_bool(value, &o->classes);
	case 'i':
		return parse_bool(value, &o->priorities);
	case 'x':
		return parse_bool(value, &o->scattered);
	}
	r = parse_usec(value, &usec);
	if (r >= 0)
		*(option == 'p' ? &p->pace.period_ns : &p->pace.think_ns) = usec * 1000;
	return r;
}

static int parse_argv(Program *p, int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },   { "size", required_argument, NULL, 's' },
		{ "smallest", required_argument, NULL, 'a' }, { "largest", required_argument, NULL, 'z' },
		{ "churn", required_argument, NULL, 'c' },    { "seed", required_argument, NULL, 'r' },
		{ "hold-us", required_argument, NULL, 'h' },  { "spilled-mib-ns", required_argument, NULL, 'm' },
		{ "period", required_argument, NULL, 'p' },   { "think", required_argument, NULL, 't' },
		{ "backoff", required_argument, NULL, 'b' },  { "vram-only", required_argument, NULL, 'o' },
		{ "classes", required_argument, NULL, 'l' },  { "priorities", required_argument, NULL, 'i' },
		{ "scattered", required_argument, NULL, 'x' },
		{ 0 },
	};
	int c, r = 0;

	if (argc < 3)
		return -EINVAL;
	for (p->kind = kinds; p->kind->name && !streq(p->kind->name, argv[1]);)
		p->kind++;
	if (!p->kind->name)
		return -EINVAL;
	p->workload.options = p->kind->defaults;
	while (r >= 0 && (c = getopt_long(argc - 2, argv + 2, "", options, NULL)) >= 0)
		r = c == '?' ? -EINVAL : set_option(p, c, optarg);
	/* Zero would stay zero. */
	p->workload.random = UINT64_C(88172645463325252) * MAX(p->workload.options.seed, 1);
	return r;
}

int main(int argc, char **argv)
{
	Program p = { .workload.gpu.fd = -EBADF, .device = "/dev/dri/renderD128", .socket = -EBADF };
	int r = parse_argv(&p, argc, argv);

	if (r < 0) {
		fprintf(stderr, "usage: workload game|compositor|program SOCKET [OPTION...]\n");
		return 2;
	}
	(void)prctl(PR_SET_TIMERSLACK, 1);
	r = link_open(argv[2], &p.socket);
	while (r >= 0 && (r = serve_one(&p)) > 0)
		;
	close_fd(p.socket);
	workload_done(&p.workload);
	if (r < 0)
		fprintf(stderr, "workload %s: %s\n", p.kind->name, strerror(-r));
	return r < 0;
}
