/* SPDX-License-Identifier: MIT */
/* vramctl: argv, the table of verbs and their help. */
#include <getopt.h>
#include <limits.h>

#include "build-config.h"
#include "parse.h"
#include "verb.h"

static const Verb *const verbs[] = {
	&verb_status, &verb_games, &verb_top,    &verb_watch,  &verb_run,  &verb_hold,
	&verb_focus,  &verb_tune,  &verb_reload, &verb_doctor, &verb_dump,
};

static struct {
	bool help, version, json, no_color;
} args;

static const Option common_options[] = {
	{ "no-color", 0, OPTION_FLAG, NULL, "no colours, even on a terminal", &args.no_color },
	{ "help", 'h', OPTION_FLAG, NULL, "show this", &args.help },
	{ "version", 0, OPTION_FLAG, NULL, "show the version", &args.version },
	{},
};

static const Option json_options[] = {
	{ "json", 'j', OPTION_FLAG, NULL, "print JSON; vramctl(1) lists its keys", &args.json },
	{},
};

/* --- Help ------------------------------------------------------------------------------------ */

static void print_options(const Option *options)
{
	for (const Option *o = options; o && o->name; o++) {
		char left[48], letter[5] = "";

		if (o->letter)
			(void)snprintf(letter, sizeof(letter), "-%c, ", o->letter);
		(void)snprintf(left, sizeof(left), o->kind == OPTION_CHOICE ? "%s--%s%s%s]" : "%s--%s%s%s", letter,
			       o->name, o->kind == OPTION_CHOICE ? "[=" : o->value ? " " : "", strempty(o->value));
		(void)printf("  %-26s %s\n", left, o->help);
	}
}

static void print_help(void)
{
	(void)puts("vramctl [OPTION...] [VERB] [ARGUMENT...]\n\n"
		   "Shows and steers vramd, which keeps the video memory of the game in front.\n\n"
		   "Verbs:");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		auto_free char *left = NULL;

		if (asprintf(&left, "%s %s", verbs[i]->name, verbs[i]->args) < 0)
			left = NULL;
		(void)printf("  %-26s %s\n", strempty(left), verbs[i]->summary);
	}
	(void)puts("\nOptions:");
	print_options(json_options);
	print_options(common_options);
	(void)puts("\n\"vramctl VERB --help\" tells more. Exit status: 0 done, 1 failed, 2 wrong usage,\n"
		   "69 vramd is not running; \"run\" ends as its command does. See vramctl(1).");
}

static void print_verb_help(const Verb *v)
{
	(void)printf("vramctl %s [OPTION...]%s%s\n\n%s\n\nOptions:\n", v->name, *v->args ? " " : "",
		     v->args, v->description);
	print_options(v->options);
	if (v->json)
		print_options(json_options);
	print_options(common_options);
}

/* --- Options --------------------------------------------------------------------------------- */

#define OPTIONS_MAX 24

typedef struct Parser {
	const Option *known[OPTIONS_MAX];
	struct option longs[OPTIONS_MAX + 1];
	char shorts[2 * OPTIONS_MAX + 4];
	int n;
} Parser;

static void parser_add(Parser *p, const Option *options)
{
	for (const Option *o = options; o && o->name && p->n < OPTIONS_MAX; o++) {
		bool value = o->kind != OPTION_FLAG;
		size_t end = strlen(p->shorts);

		p->known[p->n] = o;
		p->longs[p->n] = (struct option){
			o->name, o->kind == OPTION_CHOICE ? optional_argument : value, NULL, 256 + p->n,
		};
		if (o->letter)
			(void)snprintf(p->shorts + end, sizeof(p->shorts) - end, "%c%s", o->letter,
				       value ? ":" : "");
		p->n++;
	}
}

static const Option *parser_find(const Parser *p, int c)
{
	if (c >= 256 && c < 256 + p->n)
		return p->known[c - 256];
	for (int i = 0; i < p->n; i++)
		if (p->known[i]->letter == c)
			return p->known[i];
	return NULL;
}

static int option_set(const Option *o, const char *value)
{
	int r = 0;

	switch (o->kind) {
	case OPTION_FLAG:
		*(bool *)o->target = true;
		break;
	case OPTION_STRING:
		*(const char **)o->target = value;
		break;
	case OPTION_CHOICE:
		*(const char **)o->target = value ? value : o->missing;
		break;
	case OPTION_U32:
		r = parse_u32(value, o->target);
		break;
	case OPTION_USEC:
		r = parse_usec(value, o->target);
		break;
	}
	if (r < 0)
		complain("--%s=\"%s\": %s", o->name, value,
			 r == -ERANGE		? "the number is too large" :
			 o->kind == OPTION_USEC ? "not a time such as 30s, 5min or 250ms" :
						  "not a number");
	return r;
}

/* verb may be NULL: the options before it. Leaves optind at the first argument. */
static int parse_options(const Verb *verb, int argc, char **argv)
{
	const char *hint = verb ? verb->name : "", *space = verb ? " " : "";
	Parser p = { .shorts = ":" };
	int c;

	if (!verb || verb->command)
		(void)strcpy(p.shorts, "+:");
	parser_add(&p, common_options);
	if (!verb || verb->json)
		parser_add(&p, json_options);
	if (verb)
		parser_add(&p, verb->options);
	opterr = 0;
	optind = 0; /* glibc: start afresh, also with the order of arguments */
	while ((c = getopt_long(argc, argv, p.shorts, p.longs, NULL)) >= 0) {
		const Option *o = parser_find(&p, c);

		if (o && option_set(o, optarg) >= 0)
			continue;
		if (c == ':')
			complain("option \"%s\" needs a value; see: vramctl %s%s--help",
				 argv[optind - 1], hint, space);
		else if (!o)
			complain("there is no option \"%s\"; see: vramctl %s%s--help",
				 argv[optind - 1], hint, space);
		return -EINVAL;
	}
	return 0;
}

/* --- Verbs ----------------------------------------------------------------------------------- */

static const Verb *find_verb(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (streq(verbs[i]->name, name))
			return verbs[i];
	return NULL;
}

static bool arguments_fit(const Verb *v, int n)
{
	if ((unsigned)n >= v->min_args && (unsigned)n <= v->max_args)
		return true;
	complain("%s; usage: vramctl %s [OPTION...] %s",
		 (unsigned)n < v->min_args ? "an argument is missing" : "there are too many arguments",
		 v->name, v->args);
	return false;
}

/* Output that did not arrive (a full disk) must not look like success. */
static int finish(int status)
{
	if ((fflush(stdout) != 0 || ferror(stdout)) && status == STATUS_OK) {
		complain("cannot write the output: %s", strerror(errno));
		return STATUS_FAILURE;
	}
	return status;
}

static int print_version(void)
{
	(void)puts("vramctl " VRAMD_VERSION);
	return STATUS_OK;
}

static int run_verb(const Verb *v, Context *c, int argc, char **argv)
{
	if (parse_options(v, argc, argv) < 0)
		return STATUS_USAGE;
	if (args.version)
		return print_version();
	if (args.help) {
		print_verb_help(v);
		return STATUS_OK;
	}
	if (args.json && !v->json) {
		complain("\"%s\" has no --json", v->name);
		return STATUS_USAGE;
	}
	if (!arguments_fit(v, argc - optind))
		return STATUS_USAGE;
	c->out.color = c->out.color && !args.no_color;
	c->json = args.json;
	return v->run(c, argc - optind, argv + optind);
}

int main(int argc, char **argv)
{
	const Verb *v = &verb_status;
	Context c = {};
	int first;

	output_init(&c.out);
	if (parse_options(NULL, argc, argv) < 0)
		return STATUS_USAGE;
	if (args.version)
		return finish(print_version());
	if (args.help) {
		print_help();
		return finish(STATUS_OK);
	}
	first = optind;
	if (first == argc)
		return finish(run_verb(v, &c, 1, argv));
	v = find_verb(argv[first]);
	if (!v) {
		complain("there is no verb \"%s\"; see: vramctl --help", argv[first]);
		return STATUS_USAGE;
	}
	return finish(run_verb(v, &c, argc - first, argv + first));
}
