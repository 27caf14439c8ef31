/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <signal.h>
#include <sys/epoll.h>
#include <termios.h>
#include <time.h>

#include "json.h"
#include "show.h"
#include "verb.h"

static struct {
	uint32_t frames; /* 0 = until told */
	uint64_t delay;
} args = { 0, USEC_PER_SEC };

#define DELAY_MIN_USEC (100 * USEC_PER_MSEC)

typedef struct Top {
	Context *context;
	sd_bus *bus;
	sd_event *event;
	sd_event_source *timer;
	uint32_t shown;
	bool screen; /* we draw over the whole terminal */
	struct termios before;
} Top;

/* --- The terminal ---------------------------------------------------------------------------- */

/* Alternate screen, no cursor, no wrapping: a line that is too long is cut, never folded. */
static void screen_enter(Top *t)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &t->before) >= 0) {
		raw = t->before;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	}
	(void)fputs("\033[?1049h\033[?25l\033[?7l", stdout);
	(void)fflush(stdout);
}

static void screen_leave(Top *t)
{
	(void)fputs("\033[?7h\033[?25h\033[?1049l", stdout);
	(void)fflush(stdout);
	if (isatty(STDIN_FILENO))
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &t->before);
}

/* Draws over what is there, so that nothing flickers; the last row stays free. A row is cleared first:
 * behind a full one the cursor still stands on its last character. */
static void screen_draw(const Top *t, const char *text)
{
	unsigned rows = MAX(t->context->out.rows, 2u) - 1;

	(void)fputs("\033[H", stdout);
	for (unsigned row = 0; *text && row < rows; row++) {
		size_t n = strcspn(text, "\n");

		(void)printf("\033[K%.*s\n", (int)n, text);
		text += n + (text[n] != '\0');
	}
	(void)fputs("\033[J", stdout);
	(void)fflush(stdout);
}

/* --- Frames ---------------------------------------------------------------------------------- */

static void show_frame(const Output *o, const Snapshot *s)
{
	time_t now = time(NULL);
	struct tm tm = {};
	char clock[32];

	(void)localtime_r(&now, &tm);
	(void)strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	(void)fprintf(o->f, "%s  ", clock);
	show_headline(o, s);
	(void)fputc('\n', o->f);
	show_regions(o, s);
	(void)fputc('\n', o->f);
	show_games(o, s, false);
}

static char *frame_text(const Top *t, const Snapshot *s)
{
	Output o = t->context->out;
	char *text = NULL;
	size_t size = 0;

	o.f = open_memstream(&text, &size);
	if (!o.f)
		return NULL;
	if (s)
		show_frame(&o, s);
	else
		(void)fputs("vramd is not running; waiting for it (q ends).\n", o.f);
	(void)fclose(o.f);
	return text;
}

/* 0, or the exit status at which to give up. */
static int draw(Top *t)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	auto_snapshot Snapshot s = {};
	auto_free char *text = NULL;
	int r;

	r = client_load(t->bus, &s, &error);
	/* On a terminal we wait for a daemon that restarts; a script must hear of it. */
	if (r < 0 && !(t->screen && error_is_absent(&error))) {
		if (t->screen)
			screen_leave(t); /* or the message goes with the screen */
		t->screen = false;
		return client_fail(&error, r);
	}
	if (t->context->json) {
		auto_json json_object *json = json_from_snapshot(&s);

		json_print(stdout, json, true);
	} else {
		text = frame_text(t, r < 0 ? NULL : &s);
		if (t->screen)
			screen_draw(t, strempty(text));
		else
			(void)printf("%s%s", t->shown ? "\n" : "", strempty(text));
	}
	(void)fflush(stdout);
	t->shown++;
	return STATUS_OK;
}

/* --- Events ---------------------------------------------------------------------------------- */

static int draw_or_exit(Top *t)
{
	int status = draw(t);

	if (status != STATUS_OK || (args.frames && t->shown >= args.frames))
		return sd_event_exit(t->event, status);
	return 0;
}

static int on_time(sd_event_source *s, uint64_t usec _unused_, void *userdata)
{
	int r = sd_event_source_set_time_relative(s, args.delay);

	return r < 0 ? r : draw_or_exit(userdata);
}

static int on_resize(sd_event_source *s _unused_, const struct signalfd_siginfo *si _unused_,
		     void *userdata)
{
	Top *t = userdata;

	output_measure(&t->context->out);
	return draw_or_exit(t);
}

/* Ctrl-Z: give the terminal back before we stop. */
static int on_stop(sd_event_source *s _unused_, const struct signalfd_siginfo *si _unused_,
		   void *userdata)
{
	Top *t = userdata;

	screen_leave(t);
	(void)raise(SIGSTOP);
	screen_enter(t);
	output_measure(&t->context->out);
	return draw_or_exit(t);
}

static int on_key(sd_event_source *s, int fd, uint32_t events _unused_, void *userdata)
{
	Top *t = userdata;
	char keys[32];
	ssize_t n = read(fd, keys, sizeof(keys));

	if (n == 0) /* the terminal hung up, or Ctrl-D where nobody types */
		return sd_event_source_set_enabled(s, SD_EVENT_OFF);
	for (ssize_t i = 0; i < n; i++)
		if (keys[i] == 'q' || keys[i] == 'Q')
			return sd_event_exit(t->event, STATUS_OK);
	return 0;
}

static int add_screen_events(Top *t)
{
	sigset_t mask;
	int r;

	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGWINCH);
	(void)sigaddset(&mask, SIGTSTP);
	(void)sigprocmask(SIG_BLOCK, &mask, NULL);
	r = sd_event_add_signal(t->event, NULL, SIGWINCH, on_resize, t);
	if (r >= 0)
		r = sd_event_add_signal(t->event, NULL, SIGTSTP, on_stop, t);
	if (r >= 0 && isatty(STDIN_FILENO))
		r = sd_event_add_io(t->event, NULL, STDIN_FILENO, EPOLLIN, on_key, t);
	return r;
}

static int run_loop(Top *t)
{
	int r = 0;

	if (t->screen)
		r = add_screen_events(t);
	if (r >= 0)
		r = sd_event_add_time_relative(t->event, &t->timer, CLOCK_MONOTONIC, 0, 1, on_time, t);
	if (r >= 0)
		r = sd_event_source_set_enabled(t->timer, SD_EVENT_ON);
	if (r >= 0)
		r = sd_event_loop(t->event);
	return r;
}

static int run_top(Context *c, int argc _unused_, char **argv _unused_)
{
	auto_bus sd_bus *bus = NULL;
	auto_event sd_event *event = NULL;
	Top t = { .context = c, .screen = isatty(STDOUT_FILENO) && !c->json };
	int r;

	if (args.delay < DELAY_MIN_USEC) {
		complain("--delay: at least 100ms");
		return STATUS_USAGE;
	}
	if (client_open(&bus) < 0)
		return STATUS_FAILURE;
	r = client_loop(bus, &event);
	if (r >= 0) {
		t.bus = bus;
		t.event = event;
		if (t.screen)
			screen_enter(&t);
		r = run_loop(&t);
		if (t.screen)
			screen_leave(&t);
		sd_event_source_unref(t.timer);
	}
	if (r < 0)
		complain("cannot go on: %s", strerror(-r));
	return r < 0 ? STATUS_FAILURE : r;
}

static const Option options[] = {
	{ "frames", 'n', OPTION_U32, "N", "end after N frames", &args.frames },
	{ "delay", 'd', OPTION_USEC, "TIME", "between two frames (1s)", &args.delay },
	{},
};

const Verb verb_top = {
	.name = "top",
	.args = "",
	.summary = "live view; q ends it",
	.description = "Shows regions and games, and draws them again each second; \"q\" or Ctrl-C ends\n"
		       "it. When the output is no terminal, one frame after the other is printed, and\n"
		       "with --json one line each.",
	.options = options,
	.json = true,
	.run = run_top,
};
