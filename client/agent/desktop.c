/* SPDX-License-Identifier: MIT */
#include "desktop.h"

/* A move of the focus is several events. */
#define DEBOUNCE_USEC (10 * USEC_PER_MSEC)

void desktop_init(Desktop *d, Source *source, void (*look)(void *userdata), void *userdata)
{
	*d = (Desktop){
		.source = source,
		.look = look,
		.userdata = userdata,
		.compositor.pidfd = -EBADF,
		.state.game.pidfd = -EBADF,
		.state.compositor.pidfd = -EBADF,
	};
}

void desktop_done(Desktop *d)
{
	sd_event_source_disable_unref(d->debounce);
	process_set_done(&d->processes);
	close_fd(d->compositor.pidfd);
}

void desktop_set_compositor(Desktop *d, pid_t pid)
{
	if (pid > 0 && process_ref_open(pid, boottime_usec(), NULL, &d->compositor) >= 0)
		d->state.nested = process_ref_is_nested(&d->compositor);
	d->state.compositor = d->compositor;
}

static int on_debounce(sd_event_source *timer _unused_, uint64_t usec _unused_, void *userdata)
{
	Desktop *d = userdata;

	d->debounce = sd_event_source_disable_unref(d->debounce);
	d->look(d->userdata);
	return 0;
}

void desktop_look_later(Desktop *d)
{
	int r;

	if (d->debounce)
		return;
	r = sd_event_add_time_relative(source_get_event(d->source), &d->debounce, CLOCK_MONOTONIC, DEBOUNCE_USEC,
				       USEC_PER_MSEC, on_debounce, d);
	if (r < 0)
		source_failed(d->source, r, "no timer");
}

static bool same_view(const DesktopView *a, const DesktopView *b)
{
	return a->front == b->front && a->pid == b->pid && a->appid == b->appid && a->why == b->why;
}

void desktop_say(Desktop *d, const DesktopView *v)
{
	State *s = &d->state;

	if (d->said && same_view(&d->view, v))
		return;
	process_set_begin(&d->processes);
	s->front = v->front;
	s->game = (ProcessRef){ 0, -EBADF };
	if (v->front == FRONT_PROCESS && process_set_get(&d->processes, v->pid, boottime_usec(), &s->game) < 0)
		s->front = FRONT_UNKNOWN;
	s->appid = s->front == FRONT_PROCESS ? v->appid : 0;
	s->why = v->why;
	process_set_end(&d->processes);
	d->view = *v;
	d->said = s->front == v->front; /* else the next look may know more */
	source_changed(d->source);
}
