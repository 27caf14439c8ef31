/* SPDX-License-Identifier: MIT */
/* What ReportFocus() carries, strictly read: nothing is known to anybody else before all of it is right. */
#include "bus.h"

/* It is shown to people and logged. */
int bus_check_text(sd_bus_error *error, const char *name, const char *text)
{
	size_t n = strlen(text);

	if (n == 0 || n > VRAMD_TEXT_MAX)
		return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "'%s' must have 1 to %d bytes", name,
					 VRAMD_TEXT_MAX);
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
						 "'%s' must not have control characters", name);
	return 0;
}

typedef struct ReportCall {
	FocusReport *report;
	bool persist;
} ReportCall;

static int wrong_type(sd_bus_error *error, const char *key, const char *type)
{
	return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "Key '%s' must be of type '%s'", key, type);
}

static int read_process(Manager *m, sd_bus_message *message, const char *key, Process **ret, sd_bus_error *error)
{
	int fd, r;

	if (*ret)
		return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "Key '%s' is there twice", key);
	r = sd_bus_message_read_basic(message, 'h', &fd);
	if (r < 0)
		return r;
	r = manager_get_process(m, fd, ret);
	return r < 0 ? bus_process_error(error, r, key) : 0;
}

/* One that has ended meanwhile is left out: the next report will do so too. */
static int read_running(Manager *m, sd_bus_message *message, FocusReport *report, sd_bus_error *error)
{
	size_t n_alloc = 0;
	int fd, r;

	if (report->running)
		return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "Key 'running' is there twice");
	r = sd_bus_message_enter_container(message, 'a', "h");
	if (r < 0)
		return r;
	while ((r = sd_bus_message_read_basic(message, 'h', &fd)) > 0) {
		Process *p = NULL;

		if (report->n_running == VRAMD_RUNNING_MAX)
			return sd_bus_error_setf(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
						 "'running' names more than %d processes", VRAMD_RUNNING_MAX);
		if (!GROW(report->running, n_alloc, report->n_running))
			return -ENOMEM;
		r = manager_get_process(m, fd, &p);
		if (r == -ESRCH)
			continue;
		if (r < 0)
			return bus_process_error(error, r, "running");
		report->running[report->n_running++] = p;
	}
	return r < 0 ? r : sd_bus_message_exit_container(message);
}

static int read_string(sd_bus_message *message, const char *key, char **ret, sd_bus_error *error)
{
	const char *s;
	int r;

	r = sd_bus_message_read_basic(message, 's', &s);
	if (r < 0)
		return r;
	r = bus_check_text(error, key, s);
	if (r < 0)
		return r;
	free(*ret);
	*ret = strdup(s);
	return *ret ? 0 : -ENOMEM;
}

static int read_menu(sd_bus_message *message, MenuState *ret, sd_bus_error *error)
{
	const char *s;
	int r;

	r = sd_bus_message_read_basic(message, 's', &s);
	if (r < 0)
		return r;
	*ret = menu_state_from_string(s);
	if (*ret < 0)
		return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS,
					 "Key 'menu' must be 'open', 'closed' or 'unknown'");
	return 0;
}

/* The value of one key; the message stands in the variant. */
static int read_key(Manager *m, sd_bus_message *message, const char *key, ReportCall *call, sd_bus_error *error)
{
	FocusReport *report = call->report;
	int b, r;

	if (streq(key, "source"))
		return read_string(message, key, &report->source, error);
	if (streq(key, "seq"))
		return sd_bus_message_read_basic(message, 't', &report->seq);
	if (streq(key, "appid"))
		return sd_bus_message_read_basic(message, 'u', &report->appid);
	if (streq(key, "menu"))
		return read_menu(message, &report->menu, error);
	if (streq(key, "game"))
		return read_process(m, message, key, &report->game, error);
	if (streq(key, "compositor"))
		return read_process(m, message, key, &report->compositor, error);
	if (streq(key, "running"))
		return read_running(m, message, report, error);
	r = sd_bus_message_read_basic(message, 'b', &b);
	if (r < 0)
		return r;
	*(streq(key, "window") ? &report->window : &call->persist) = b;
	return 0;
}

static const struct {
	const char *key, *type;
} report_keys[] = {
	{ "source", "s" }, { "seq", "t" },        { "game", "h" },     { "appid", "u" },
	{ "menu", "s" },   { "compositor", "h" }, { "running", "ah" }, { "persist", "b" },
	{ "window", "b" },
};

static int read_entry(Manager *m, sd_bus_message *message, ReportCall *call, sd_bus_error *error)
{
	const char *key, *contents;
	char type;
	int r;

	r = sd_bus_message_read_basic(message, 's', &key);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(report_keys); i++) {
		if (!streq(report_keys[i].key, key))
			continue;
		r = sd_bus_message_peek_type(message, &type, &contents);
		if (r < 0)
			return r;
		if (!streq_ptr(contents, report_keys[i].type))
			return wrong_type(error, key, report_keys[i].type);
		r = sd_bus_message_enter_container(message, 'v', report_keys[i].type);
		if (r >= 0)
			r = read_key(m, message, key, call, error);
		return r < 0 ? r : sd_bus_message_exit_container(message);
	}
	/* A newer agent may know more than we do. */
	return sd_bus_message_skip(message, "v");
}

static int read_entries(Manager *m, sd_bus_message *message, ReportCall *call, sd_bus_error *error)
{
	int r;

	r = sd_bus_message_enter_container(message, 'a', "{sv}");
	if (r < 0)
		return r;
	while ((r = sd_bus_message_enter_container(message, 'e', "sv")) > 0) {
		r = read_entry(m, message, call, error);
		if (r < 0)
			return r;
		r = sd_bus_message_exit_container(message);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	return sd_bus_message_exit_container(message);
}

int bus_read_report(Manager *m, sd_bus_message *message, FocusReport **ret, sd_bus_error *error)
{
	auto_focus_report FocusReport *report = calloc(1, sizeof(*report));
	ReportCall call = { .report = report };
	const char *sender = sd_bus_message_get_sender(message);
	int r;

	if (!report)
		return -ENOMEM;
	r = read_entries(m, message, &call, error);
	if (r < 0)
		return r;
	if (!report->source)
		return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "Key 'source' is missing");
	if (call.persist && !report->game)
		return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "A persistent report needs 'game'");
	report->sender = strdup(call.persist ? "" : strempty(sender));
	if (!report->sender)
		return -ENOMEM;
	*ret = TAKE_PTR(report);
	return 0;
}
