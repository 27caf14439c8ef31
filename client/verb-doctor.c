/* SPDX-License-Identifier: MIT */
#include <stdarg.h>

#include "doctor.h"
#include "json.h"
#include "verb.h"

static struct {
	const char *root;
} args = { .root = "" };

static const char *const level_names[] = {
	[LEVEL_OK] = "ok",
	[LEVEL_NOTE] = "note",
	[LEVEL_WARNING] = "warning",
	[LEVEL_PROBLEM] = "problem",
};

const char *level_to_string(Level level)
{
	return level_names[level];
}

void doctor_add(Doctor *d, Level level, const char *check, const char *advice, const char *format, ...)
{
	char *text;
	va_list ap;
	int r;

	va_start(ap, format);
	r = vasprintf(&text, format, ap);
	va_end(ap);
	if (r < 0)
		return;
	if (!GROW(d->findings, d->n_alloc, d->n)) {
		free(text);
		return;
	}
	d->findings[d->n++] = (Finding){ level, check, text, advice };
}

static void doctor_done(Doctor *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->findings[i].text);
	free(d->findings);
	free(d->proc);
	free(d->cgroup);
}

/* --- Output ---------------------------------------------------------------------------------- */

static size_t count(const Doctor *d, Level level)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n; i++)
		n += d->findings[i].level == level;
	return n;
}

static void print_text(const Output *o, const Doctor *d)
{
	static const Style styles[] = {
		[LEVEL_OK] = STYLE_GOOD,
		[LEVEL_NOTE] = STYLE_PLAIN,
		[LEVEL_WARNING] = STYLE_WARN,
		[LEVEL_PROBLEM] = STYLE_BAD,
	};

	for (size_t i = 0; i < d->n; i++) {
		const Finding *f = &d->findings[i];

		output_style(o, styles[f->level]);
		output_left(o, level_to_string(f->level), 8);
		output_style(o, STYLE_PLAIN);
		output_wrap(o, f->text, 9);
		if (!f->advice)
			continue;
		output_style(o, STYLE_DIM);
		(void)fputs("         -> ", o->f);
		output_wrap(o, f->advice, 12);
		output_style(o, STYLE_PLAIN);
	}
	(void)fprintf(o->f, "\nProblems: %zu, warnings: %zu, notes: %zu\n", count(d, LEVEL_PROBLEM),
		      count(d, LEVEL_WARNING), count(d, LEVEL_NOTE));
}

static void print_json(const Doctor *d)
{
	auto_json json_object *o = json_object_new_object();
	json_object *a = json_object_new_array();

	for (size_t i = 0; i < d->n; i++) {
		const Finding *f = &d->findings[i];
		json_object *item = json_object_new_object();

		json_add_string(item, "level", level_to_string(f->level));
		json_add_string(item, "check", f->check);
		json_add_string(item, "text", f->text);
		json_add_string(item, "advice", f->advice);
		(void)json_object_array_add(a, item);
	}
	json_add(o, "findings", a);
	json_add_u64(o, "problems", count(d, LEVEL_PROBLEM));
	json_add_u64(o, "warnings", count(d, LEVEL_WARNING));
	json_print(stdout, o, false);
}

/* --- The verb -------------------------------------------------------------------------------- */

static void ask_daemon(Doctor *d, Snapshot *ret, Kernel *ret_kernel)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	auto_bus sd_bus *bus = NULL;
	int r;

	r = sd_bus_open_system_with_description(&bus, "vramctl");
	if (r < 0) {
		doctor_add(d, LEVEL_PROBLEM, "daemon", "Start dbus.service.",
			   "The system bus cannot be reached (%s).", strerror(-r));
		return;
	}
	if (client_running(bus) == 0) {
		doctor_add(d, LEVEL_PROBLEM, "daemon",
			   "Start it: systemctl enable --now vramd.service", "vramd is not running.");
		return;
	}
	r = client_load(bus, ret, &error);
	if (r >= 0)
		r = client_load_kernel(bus, ret_kernel, &error);
	if (r >= 0) {
		d->snapshot = ret;
		d->kernel = ret_kernel;
	} else {
		doctor_add(d, LEVEL_PROBLEM, "daemon", "Look at: journalctl -u vramd.service",
			   "vramd does not answer as it should: %s",
			   *strempty(error.message) ? error.message : strerror(-r));
	}
}

static int run_doctor(Context *c, int argc _unused_, char **argv _unused_)
{
	auto_snapshot Snapshot s = {};
	auto_kernel Kernel kernel = {};
	Doctor d = {};
	int status = STATUS_FAILURE;

	if (asprintf(&d.proc, "%s/proc", args.root) < 0)
		d.proc = NULL;
	if (asprintf(&d.cgroup, "%s/sys/fs/cgroup", args.root) < 0)
		d.cgroup = NULL;
	if (d.proc && d.cgroup) {
		doctor_check_kernel(&d);
		ask_daemon(&d, &s, &kernel);
		if (d.snapshot)
			doctor_check_daemon(&d);
		doctor_check_focus(&d);
		doctor_check_services(&d);
		doctor_check_rivals(&d);
		if (c->json)
			print_json(&d);
		else
			print_text(&c->out, &d);
		status = count(&d, LEVEL_PROBLEM) ? STATUS_FAILURE : STATUS_OK;
	}
	doctor_done(&d);
	return status;
}

static const Option options[] = {
	{ "root", 0, OPTION_STRING, "DIR", "look at DIR/proc and DIR/sys (for tests)", &args.root },
	{},
};

const Verb verb_doctor = {
	.name = "doctor",
	.args = "",
	.summary = "what stands in the way, and what to do",
	.description = "Looks at the kernel, vramd, who sees which game is in front, other programs that\n"
		       "steer video memory, and system services that hold some, and says what to do\n"
		       "about each. Changes nothing.\n"
		       "Exit status 1 if there is a problem; warnings and notes do not count.",
	.options = options,
	.json = true,
	.run = run_doctor,
};
