/* SPDX-License-Identifier: MIT */
/* The argument of ReportFocus(): bytes choose keys, types and values, right and wrong ones; the message is real.
 * What is accepted goes through the ranking as well. */
#include <sys/pidfd.h>
#include <sys/socket.h>

#include "bus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Input {
	const uint8_t *data;
	size_t size;
} Input;

static uint8_t take(Input *in)
{
	if (in->size == 0)
		return 0;
	in->size--;
	return *in->data++;
}

/* Up to 31 bytes; D-Bus only carries text without NUL that is UTF-8, and sd-bus refuses the rest itself. */
static const char *take_text(Input *in, char buf[static 32])
{
	size_t n = take(in) % 32;

	for (size_t i = 0; i < n; i++)
		buf[i] = (char)(take(in) & 0x7f);
	buf[n] = '\0';
	return buf;
}

static int append_value(sd_bus_message *m, Input *in, int pidfd)
{
	char text[32];
	int fds[] = { pidfd, STDIN_FILENO };

	switch (take(in) % 8) {
	case 0:
		return sd_bus_message_append(m, "v", "s", take_text(in, text));
	case 1:
		return sd_bus_message_append(m, "v", "t", (uint64_t)take(in));
	case 2:
		return sd_bus_message_append(m, "v", "u", (uint32_t)take(in) << 16);
	case 3:
		return sd_bus_message_append(m, "v", "h", fds[take(in) % 2]);
	case 4:
		return sd_bus_message_append(m, "v", "b", take(in) % 2);
	case 5:
		return sd_bus_message_append(m, "v", "ah", 2, fds[take(in) % 2], pidfd);
	case 6:
		return sd_bus_message_append(m, "v", "as", 1, "x");
	default:
		return sd_bus_message_append(m, "v", "s",
					     (const char *[]){ "open", "closed", "unknown", "ajar" }[take(in) % 4]);
	}
}

static int append_report(sd_bus_message *m, Input *in, int pidfd)
{
	static const char *const keys[] = { "source", "seq", "game", "appid", "menu", "compositor", "running",
					    "persist", "later" };
	int r;

	r = sd_bus_message_open_container(m, 'a', "{sv}");
	for (unsigned n = take(in) % 16; n > 0 && r >= 0; n--) {
		r = sd_bus_message_open_container(m, 'e', "sv");
		if (r >= 0)
			r = sd_bus_message_append_basic(m, 's', keys[take(in) % ARRAY_SIZE(keys)]);
		if (r >= 0)
			r = append_value(m, in, pidfd);
		if (r >= 0)
			r = sd_bus_message_close_container(m);
	}
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	return r < 0 ? r : sd_bus_message_seal(m, 1, 0);
}

/* A connection that never gets further than its hello: enough to make messages. */
static sd_bus *new_bus(void)
{
	sd_bus *bus = NULL;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0 || sd_bus_new(&bus) < 0 ||
	    sd_bus_set_fd(bus, fds[0], fds[0]) < 0 || sd_bus_negotiate_fds(bus, 1) < 0 || sd_bus_start(bus) < 0)
		abort();
	return bus;
}

static void on_focus(uid_t uid _unused_, void *userdata _unused_)
{
}

static bool is_game(const Process *p _unused_, void *userdata _unused_)
{
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static Manager m = { .roots = { .proc = (char *)"/proc" } };
	static int pidfd = -EBADF;
	static sd_bus *bus;
	Input in = { data, size };

	if (!bus) {
		bus = new_bus();
		pidfd = pidfd_open(getpid(), 0);
		if (sd_event_new(&m.event) < 0)
			abort();
	}
	if (focus_new(m.event, on_focus, is_game, NULL, &m.focus) < 0)
		abort();
	while (in.size > 0) {
		_cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
		_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
		FocusReport *report;

		if (sd_bus_message_new_method_call(bus, &call, VRAMD_BUS_NAME, VRAMD_PATH, VRAMD_IFACE_MANAGER,
						   "ReportFocus") < 0)
			abort();
		if (append_report(call, &in, pidfd) < 0)
			break;
		if (bus_read_report(&m, call, &report, &error) < 0)
			continue;
		if (!report->source || strlen(report->source) > VRAMD_TEXT_MAX)
			abort();
		(void)focus_report(m.focus, 1000 + (report->seq & 1), report);
	}
	m.focus = focus_free(m.focus);
	return 0;
}
