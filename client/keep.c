/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <time.h>

#include "keep.h"
#include "output.h"

static int new_call(Keep *k, const char *member, sd_bus_message **ret)
{
	int r;

	r = sd_bus_message_new_method_call(k->bus, ret, VRAMD_BUS_NAME, VRAMD_PATH,
					   VRAMD_IFACE_MANAGER, member);
	if (r >= 0)
		r = sd_bus_message_set_allow_interactive_authorization(*ret, k->interactive);
	return r;
}

int keep_make_hold(Keep *k, sd_bus_error *error)
{
	auto_message sd_bus_message *m = NULL, *reply = NULL;
	int fd, r;

	r = new_call(k, "Hold", &m);
	if (r >= 0)
		r = sd_bus_message_append(m, "hssa{sv}", k->pidfd, k->who, k->why, 0);
	if (r >= 0)
		r = sd_bus_call(k->bus, m, k->timeout, error, &reply);
	if (r >= 0)
		r = sd_bus_message_read(reply, "h", &fd);
	if (r < 0)
		return r;
	/* The message owns its descriptor. */
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return -errno;
	close_fd(k->fd);
	k->fd = fd;
	return 0;
}

/* Grows with each report, also across a suspend and over restarts of vramctl. */
static uint64_t sequence(void)
{
	struct timespec t = {};

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * USEC_PER_SEC + (uint64_t)t.tv_nsec / 1000;
}

int keep_make_focus(Keep *k, sd_bus_error *error)
{
	auto_message sd_bus_message *m = NULL;
	int r;

	r = new_call(k, "ReportFocus", &m);
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "{sv}");
	if (r >= 0)
		r = sd_bus_message_append(m, "{sv}{sv}{sv}{sv}", "source", "s", "manual", "seq", "t",
					  sequence(), "game", "h", k->pidfd, "menu", "s", k->menu);
	if (r >= 0 && k->appid)
		r = sd_bus_message_append(m, "{sv}", "appid", "u", k->appid);
	if (r >= 0 && k->compositor >= 0)
		r = sd_bus_message_append(m, "{sv}", "compositor", "h", k->compositor);
	if (r >= 0 && k->persist)
		r = sd_bus_message_append(m, "{sv}", "persist", "b", true);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	if (r >= 0)
		r = sd_bus_call(k->bus, m, k->timeout, error, NULL);
	return r;
}

static void on_owner(bool present, void *userdata)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	Keep *k = userdata;
	int r;

	if (!present) {
		if (k->made)
			complain("vramd went away; the %s will be made again when it is back", k->what);
		k->fd = close_fd(k->fd);
		k->made = false;
		return;
	}
	if (k->made) /* our own call activated it */
		return;
	r = k->make(k, &error);
	k->made = r >= 0;
	if (r < 0)
		(void)client_fail(&error, r);
	else
		complain("vramd is back, and so is the %s", k->what);
}

int keep_start(Keep *k, sd_bus_error *error)
{
	int r;

	/* First, or a restart right behind our call would be missed. */
	k->watch = (OwnerWatch){ on_owner, k };
	r = client_watch_owner(k->bus, &k->watch);
	if (r >= 0)
		r = k->make(k, error);
	k->made = r >= 0;
	return r;
}

void keep_done(Keep *k)
{
	k->fd = close_fd(k->fd);
}
