/* SPDX-License-Identifier: MIT */
#include "json.h"
#include "verb.h"

static struct {
	bool reset;
} args;

/* --- What is ---------------------------------------------------------------------------------- */

static const char *origin_text(const char *origin)
{
	static const struct {
		const char *origin, *text;
	} texts[] = {
		{ "kernel", "left alone" },
		{ "configuration", "the configuration" },
		{ "game", "the game in front" },
		{ "hand", "set by hand" },
		{ "stranger", "another program, after vramd" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (streq(origin, texts[i].origin))
			return texts[i].text;
	return origin;
}

static void show_row(const Output *o, const char *name, const char *value, const char *why, const char *parameter)
{
	output_left(o, name, 15);
	output_left(o, value, 8);
	output_left(o, parameter, 26);
	(void)text_put(o->f, why, 28);
	(void)fputc('\n', o->f);
}

static void show_kernel(const Output *o, const Kernel *kernel)
{
	output_style(o, STYLE_BOLD);
	show_row(o, "NAME", "VALUE", "BECAUSE OF", "PARAMETER");
	output_style(o, STYLE_PLAIN);
	for (Knob k = 0; k < _KNOB_MAX; k++) {
		const KnobInfo *info = &knob_infos[k];
		auto_free char *parameter = NULL;
		char value[KNOB_TEXT_MAX];

		if (asprintf(&parameter, "%s.%s", info->module, info->parameter) < 0)
			parameter = NULL;
		if (kernel_has(kernel, k))
			show_row(o, info->name, knob_format(value, info->kind, kernel_value(kernel, k)),
				 origin_text(kernel_origin(kernel, k)), strempty(parameter));
		else
			show_row(o, info->name, "-", "this kernel has none", strempty(parameter));
	}
}

static json_object *json_from_knob(const Kernel *kernel, Knob k)
{
	const KnobInfo *info = &knob_infos[k];
	json_object *o = json_object_new_object();
	bool there = kernel_has(kernel, k);

	json_add_string(o, "name", info->name);
	json_add_string(o, "module", info->module);
	json_add_string(o, "parameter", info->parameter);
	json_add_bool(o, "available", there);
	if (!there)
		json_add(o, "value", NULL);
	else if (info->kind == KNOB_SWITCH)
		json_add_bool(o, "value", kernel_value(kernel, k));
	else
		json_add_u64(o, "value", kernel_value(kernel, k));
	json_add_string(o, "unit", info->kind == KNOB_MSEC ? "ms" : "");
	json_add_string(o, "origin", kernel_origin(kernel, k));
	return o;
}

static int show(Context *c, sd_bus *bus)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	auto_kernel Kernel kernel = {};
	auto_json json_object *a = NULL;
	int r;

	r = client_load_kernel(bus, &kernel, &error);
	if (r < 0)
		return client_fail(&error, r);
	if (!c->json) {
		show_kernel(&c->out, &kernel);
		return STATUS_OK;
	}
	a = json_object_new_array();
	for (Knob k = 0; k < _KNOB_MAX; k++)
		(void)json_object_array_add(a, json_from_knob(&kernel, k));
	json_print(stdout, a, false);
	return STATUS_OK;
}

/* --- What is to be ---------------------------------------------------------------------------- */

typedef struct Wish {
	bool set;
	uint32_t value;
} Wish;

static int read_argument(const char *arg, Wish *wishes)
{
	const char *value = strchr(arg, '=');
	auto_free char *name = value ? strndup(arg, (size_t)(value - arg)) : NULL;
	char most[KNOB_TEXT_MAX];
	Knob k;
	int r;

	if (!value) {
		complain("\"%s\" is not NAME=VALUE; see: vramctl tune --help", arg);
		return STATUS_USAGE;
	}
	k = name ? knob_from_name(name) : _KNOB_MAX;
	if (k == _KNOB_MAX) {
		complain("there is no \"%s\"; \"vramctl tune\" lists the names", strempty(name));
		return STATUS_USAGE;
	}
	r = knob_parse(k, value + 1, &wishes[k].value);
	if (r == -ERANGE)
		complain("\"%s\": at most %s", arg, knob_format(most, knob_infos[k].kind, knob_infos[k].max));
	else if (r < 0)
		complain("\"%s\": not %s", arg, knob_expects(knob_infos[k].kind));
	wishes[k].set = true;
	return r < 0 ? STATUS_USAGE : STATUS_OK;
}

static int call(sd_bus *bus, sd_bus_message *m)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	int r;

	r = sd_bus_message_set_allow_interactive_authorization(m, true);
	if (r >= 0)
		r = sd_bus_call(bus, m, 0, &error, NULL);
	return r < 0 ? client_fail(&error, r) : STATUS_OK;
}

static int set(sd_bus *bus, Knob k, uint32_t value)
{
	auto_message sd_bus_message *m = NULL;
	int r;

	r = sd_bus_message_new_method_call(bus, &m, VRAMD_BUS_NAME, VRAMD_PATH, "org.freedesktop.DBus.Properties",
					   "Set");
	if (r >= 0)
		r = sd_bus_message_append(m, "ssv", VRAMD_IFACE_KERNEL, knob_infos[k].name,
					  knob_infos[k].kind == KNOB_SWITCH ? "b" : "u", value);
	return r < 0 ? client_fail(&SD_BUS_ERROR_NULL, r) : call(bus, m);
}

static int reset(sd_bus *bus)
{
	auto_message sd_bus_message *m = NULL;
	int r;

	r = sd_bus_message_new_method_call(bus, &m, VRAMD_BUS_NAME, VRAMD_PATH, VRAMD_IFACE_KERNEL, "Reset");
	return r < 0 ? client_fail(&SD_BUS_ERROR_NULL, r) : call(bus, m);
}

/* Nothing is set if one of the arguments is wrong. */
static int run_tune(Context *c, int argc, char **argv)
{
	Wish wishes[_KNOB_MAX] = {};
	auto_bus sd_bus *bus = NULL;
	int status = STATUS_OK;

	if (args.reset && argc > 0) {
		complain("--reset takes no \"%s\"", argv[0]);
		return STATUS_USAGE;
	}
	for (int i = 0; i < argc && status == STATUS_OK; i++)
		status = read_argument(argv[i], wishes);
	if (status != STATUS_OK)
		return status;
	if (client_open(&bus) < 0)
		return STATUS_FAILURE;
	if (args.reset)
		status = reset(bus);
	/* In the order of the table: what others need comes first. */
	for (Knob k = 0; k < _KNOB_MAX && status == STATUS_OK; k++)
		if (wishes[k].set)
			status = set(bus, k, wishes[k].value);
	if (status != STATUS_OK || ((args.reset || argc > 0) && !c->json))
		return status;
	return show(c, bus);
}

static const Option options[] = {
	{ "reset", 0, OPTION_FLAG, NULL, "what the configuration says counts again", &args.reset },
	{},
};

const Verb verb_tune = {
	.name = "tune",
	.args = "[NAME=VALUE...]",
	.summary = "show and set parameters of the kernel",
	.description = "Shows the parameters of the kernel that vramd sets, and why they are what they\n"
		       "are, or sets some: until --reset, or until vramd ends. vramd-kernel(7) says\n"
		       "what each does. For example: vramctl tune ThrottleHard=80ms ContigWindow=no",
	.options = options,
	.json = true,
	.max_args = 2 * _KNOB_MAX,
	.run = run_tune,
};
