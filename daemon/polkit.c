/* SPDX-License-Identifier: MIT */
#include "polkit.h"

/* Each open question holds its call, with its descriptors. */
#define POLKIT_QUERIES_PER_UID 8
#define POLKIT_QUERIES_MAX 64
/* A person may be typing a password. */
#define POLKIT_TIMEOUT_USEC (120 * USEC_PER_SEC)

typedef struct Query {
	Polkit *polkit;
	sd_bus_message *call;
	sd_bus_slot *slot;
	uid_t uid;
	polkit_cb cb;
	void *userdata;
} Query;

struct Polkit {
	sd_bus *bus;
	Query **queries;
	size_t n, n_alloc;
};

static Query *query_free(Query *q)
{
	if (!q)
		return NULL;
	sd_bus_slot_unref(q->slot);
	sd_bus_message_unref(q->call);
	free(q);
	return NULL;
}
DEFINE_CLEANUP(Query *, query_free)

static int read_verdict(sd_bus_message *reply)
{
	int authorized, challenge, r;

	if (sd_bus_message_is_method_error(reply, NULL))
		return -sd_bus_message_get_errno(reply);
	r = sd_bus_message_enter_container(reply, SD_BUS_TYPE_STRUCT, "bba{ss}");
	if (r < 0)
		return r;
	r = sd_bus_message_read(reply, "bb", &authorized, &challenge);
	if (r < 0)
		return r;
	if (authorized)
		return 1;
	return challenge ? -EAGAIN : 0;
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error _unused_)
{
	_cleanup_(query_freep) Query *q = userdata;
	Polkit *p = q->polkit;

	for (size_t i = 0; i < p->n; i++)
		if (p->queries[i] == q) {
			p->queries[i] = p->queries[--p->n];
			break;
		}
	q->cb(q->call, read_verdict(reply), q->userdata);
	return 0;
}

static int append_query(sd_bus_message *m, sd_bus_message *call, const char *action)
{
	int r;

	r = sd_bus_message_append(m, "(sa{sv})s", "system-bus-name", 1, "name", "s",
				  sd_bus_message_get_sender(call), action);
	if (r < 0)
		return r;
	return sd_bus_message_append(m, "a{ss}us", 0,
				     sd_bus_message_get_allow_interactive_authorization(call) > 0 ? 1u : 0u, "");
}

static bool may_ask(const Polkit *p, uid_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		if (p->queries[i]->uid == uid)
			n++;
	return n < POLKIT_QUERIES_PER_UID && p->n < POLKIT_QUERIES_MAX;
}

int polkit_check(Polkit *p, sd_bus_message *call, uid_t uid, const char *action, polkit_cb cb, void *userdata)
{
	_cleanup_(query_freep) Query *q = NULL;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
	int r;

	if (!may_ask(p, uid))
		return -EBUSY;
	if (!GROW(p->queries, p->n_alloc, p->n))
		return -ENOMEM;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	*q = (Query){ .polkit = p, .call = sd_bus_message_ref(call), .uid = uid, .cb = cb, .userdata = userdata };
	r = sd_bus_message_new_method_call(p->bus, &m, "org.freedesktop.PolicyKit1",
					   "/org/freedesktop/PolicyKit1/Authority",
					   "org.freedesktop.PolicyKit1.Authority", "CheckAuthorization");
	if (r < 0)
		return r;
	r = append_query(m, call, action);
	if (r < 0)
		return r;
	r = sd_bus_call_async(p->bus, &q->slot, m, on_reply, q, POLKIT_TIMEOUT_USEC);
	if (r < 0)
		return r;
	p->queries[p->n++] = TAKE_PTR(q);
	return 0;
}

int polkit_new(sd_bus *bus, Polkit **ret)
{
	Polkit *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->bus = sd_bus_ref(bus);
	*ret = p;
	return 0;
}

Polkit *polkit_free(Polkit *p)
{
	if (!p)
		return NULL;
	for (size_t i = 0; i < p->n; i++)
		query_free(p->queries[i]);
	free(p->queries);
	sd_bus_unref(p->bus);
	free(p);
	return NULL;
}
