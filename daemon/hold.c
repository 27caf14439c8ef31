/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <sys/epoll.h>

#include "bus-names.h"
#include "hold.h"

struct HoldTable {
	sd_event *event;
	hold_cb released;
	void *userdata;
	Hold **holds;
	size_t n, n_alloc;
	uint64_t order;
};

static Hold *hold_free(Hold *h)
{
	if (!h)
		return NULL;
	sd_event_source_disable_unref(h->source);
	close_fd(h->fd);
	process_unref(h->process);
	free(h->who);
	free(h->why);
	free(h);
	return NULL;
}
DEFINE_CLEANUP(Hold *, hold_free)

static void remove_hold(HoldTable *t, const Hold *h)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->holds[i] != h)
			continue;
		t->n--;
		memmove(t->holds + i, t->holds + i + 1, (t->n - i) * sizeof(*t->holds));
		return;
	}
}

/* Whatever comes on the pipe means its end: nobody has a reason to write to it. */
static int on_closed(sd_event_source *s _unused_, int fd _unused_, uint32_t events _unused_, void *userdata)
{
	Hold *h = userdata;
	HoldTable *t = h->table;

	remove_hold(t, h);
	t->released(h, t->userdata);
	hold_free(h);
	return 0;
}

int hold_check_limits(const HoldTable *t, uid_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->holds[i]->uid == uid)
			n++;
	return n >= VRAMD_HOLDS_PER_UID || t->n >= VRAMD_HOLDS_TOTAL ? -EDQUOT : 0;
}

int hold_new(HoldTable *t, uid_t uid, pid_t caller, const char *who, const char *why, Process *process,
	     int *ret_fd, Hold **ret)
{
	_cleanup_(hold_freep) Hold *h = NULL;
	auto_close int client = -EBADF;
	int fds[2], r;

	r = hold_check_limits(t, uid);
	if (r < 0)
		return r;
	if (!GROW(t->holds, t->n_alloc, t->n))
		return -ENOMEM;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	client = fds[1];
	h = calloc(1, sizeof(*h));
	if (!h) {
		close_fd(fds[0]);
		return -ENOMEM;
	}
	*h = (Hold){ .table = t, .uid = uid, .caller = caller, .fd = fds[0], .order = ++t->order,
		     .process = process_ref(process), .who = strdup(who), .why = strdup(why) };
	if (!h->who || !h->why)
		return -ENOMEM;
	r = sd_event_add_io(t->event, &h->source, h->fd, EPOLLIN, on_closed, h);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(h->source, "hold");
	t->holds[t->n++] = h;
	*ret_fd = TAKE_FD(client);
	*ret = TAKE_PTR(h);
	return 0;
}

size_t hold_count(const HoldTable *t)
{
	return t->n;
}

const Hold *hold_at(const HoldTable *t, size_t i)
{
	return t->holds[i];
}

const Hold *hold_newest(const HoldTable *t, uid_t uid)
{
	for (size_t i = t->n; i-- > 0;)
		if (t->holds[i]->process->uid == uid && process_is_alive(t->holds[i]->process))
			return t->holds[i];
	return NULL;
}

int hold_table_new(sd_event *event, hold_cb released, void *userdata, HoldTable **ret)
{
	HoldTable *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->event = sd_event_ref(event);
	t->released = released;
	t->userdata = userdata;
	*ret = t;
	return 0;
}

HoldTable *hold_table_free(HoldTable *t)
{
	if (!t)
		return NULL;
	for (size_t i = 0; i < t->n; i++)
		hold_free(t->holds[i]);
	free(t->holds);
	sd_event_unref(t->event);
	free(t);
	return NULL;
}
