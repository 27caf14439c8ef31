/* SPDX-License-Identifier: MIT */
#include <sys/epoll.h>

#include "log.h"
#include "report.h"

struct Report {
	sd_event *event;
	char *source; /* whose word vramd has; NULL = nobody's */
	vramd *v;
	sd_event_source *io;
	bool refused; /* the last report was, and that was said */
};

static void disconnect(Report *r)
{
	r->io = sd_event_source_disable_unref(r->io);
	r->v = vramd_close(r->v);
	free(r->source);
	r->source = NULL;
	r->refused = false;
}

static int on_readable(sd_event_source *s _unused_, int fd _unused_, uint32_t revents _unused_, void *userdata)
{
	Report *r = userdata;
	int k = vramd_process(r->v);

	if (k == -EREMOTEIO && !r->refused)
		log_warning("vramd refuses what is reported: %s", strempty(vramd_get_error(r->v)));
	else if (k < 0 && k != -EREMOTEIO)
		return log_error_errno(k, "Cannot talk to vramd: %m");
	r->refused = k == -EREMOTEIO;
	return 0;
}

static int connect_as(Report *r, const char *source)
{
	int k;

	r->source = strdup(source);
	if (!r->source)
		return -ENOMEM;
	k = vramd_open(source, &r->v);
	if (k >= 0)
		k = sd_event_add_io(r->event, &r->io, vramd_get_fd(r->v), EPOLLIN, on_readable, r);
	if (k < 0)
		disconnect(r);
	return k;
}

/* The focus last: it sends what was set before. */
static int tell(vramd *v, const State *s)
{
	int running[STATE_RUNNING_MAX], r;

	for (size_t i = 0; i < s->n_running; i++)
		running[i] = s->running[i].pidfd;
	r = vramd_set_menu(v, s->menu);
	if (r >= 0)
		r = vramd_set_compositor(v, s->compositor.pid > 0 ? s->compositor.pidfd : -1);
	if (r >= 0)
		r = vramd_set_running(v, running, s->n_running);
	if (r >= 0)
		r = (s->window ? vramd_report_window : vramd_report_focus)(
			v, s->front == FRONT_PROCESS ? s->game.pidfd : -1, s->appid);
	return r;
}

int report_update(Report *r, const char *source, const State *state)
{
	Report old = {};
	int k;

	if (!source) {
		disconnect(r);
		return 0;
	}
	if (!r->v || !streq(r->source, source)) {
		old = *r;
		*r = (Report){ .event = r->event };
		k = connect_as(r, source);
		if (k < 0) {
			disconnect(&old);
			return k;
		}
	}
	k = tell(r->v, state);
	/* The word of the one before ends only when its successor has spoken. */
	if (old.v && k >= 0)
		(void)vramd_withdraw(old.v);
	disconnect(&old);
	return k;
}

int report_new(sd_event *event, Report **ret)
{
	Report *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->event = sd_event_ref(event);
	*ret = r;
	return 0;
}

Report *report_free(Report *r)
{
	if (!r)
		return NULL;
	disconnect(r);
	sd_event_unref(r->event);
	free(r);
	return NULL;
}
