/* SPDX-License-Identifier: MIT */
/* Who sees which game is in front: what vramd goes by, and what vramd-agent's sources say in this session. */
#include <sys/wait.h>

#include "doctor.h"
#include "json-read.h"

#define ANSWER_MAX (256 * KIB)

static const char start_agent[] =
	"Start the agent in your session: systemctl --user enable --now vramd-agent.service";

/* --- vramd ------------------------------------------------------------------------------------ */

/* vramd's own ways to know, none of which sees a focus; else the word of a source counts. */
static bool is_guess(const char *source)
{
	return !*source || streq(source, "units") || streq(source, "hold") || streq(source, "gamemode");
}

static void check_vramd(Doctor *d, const char *source)
{
	if (!*source)
		doctor_add(d, LEVEL_NOTE, "focus", NULL,
			   "Nobody tells vramd who is in front. Until somebody does, it protects the only unit "
			   "that is named after a Steam game, and what a launcher holds.");
	else if (is_guess(source))
		doctor_add(d, LEVEL_NOTE, "focus", NULL,
			   "vramd goes by \"%s\": it knows that a game runs, but not whether it is in front.", source);
	else
		doctor_add(d, LEVEL_OK, "focus", NULL, "vramd goes by \"%s\"%s.", source,
			   streq(source, "gnome") ? ": it reads itself which unit mutter marks as being in front" : "");
}

/* --- The agent -------------------------------------------------------------------------------- */

/* -ENOENT: it is not installed; -EBADMSG: it prints something else. It gives up after 3 s by itself. */
static int ask_agent(json_object **ret)
{
	auto_free char *text = malloc(ANSWER_MAX);
	FILE *f = popen("exec vramd-agent --once --json 2>/dev/null", "re");
	auto_json json_object *lines = NULL;
	size_t n = 0;
	int status;

	if (f && text)
		n = fread(text, 1, ANSWER_MAX - 1, f);
	if (!f || !text) {
		if (f)
			(void)pclose(f);
		return -ENOMEM;
	}
	status = pclose(f);
	if (status < 0 || !WIFEXITED(status))
		return -EIO;
	if (WEXITSTATUS(status) == 127)
		return -ENOENT;
	text[n] = '\0';
	lines = json_tokener_parse(text);
	if (!json_object_is_type(lines, json_type_array))
		return -EBADMSG;
	*ret = TAKE_PTR(lines);
	return 0;
}

static bool counts(json_object *line)
{
	return json_object_get_boolean(json_get(line, "counts", json_type_boolean));
}

static void tell_known(Doctor *d, json_object *line)
{
	const char *menu = json_get_text(line, "menu"), *in_vain = counts(line) ? "" : ", but a better one knows";
	char who[32] = "nobody";

	if (streq(json_get_text(line, "front"), "process"))
		(void)snprintf(who, sizeof(who), "process %d", json_object_get_int(json_get(line, "pid", json_type_int)));
	doctor_add(d, LEVEL_OK, "focus", NULL,
		   "%s (%s) says that %s is in front%s; %s%s.", json_get_text(line, "source"), json_get_text(line, "place"),
		   who, in_vain,
		   streq(menu, "unknown") ? "a menu over a game it does not see, so Steam's is lent nothing"
					  : "the menu is ",
		   streq(menu, "unknown") ? "" : menu);
}

/* Those that are there are told one by one, the others together. */
static const char *tell_lines(Doctor *d, json_object *lines)
{
	const char *best = NULL;

	for (size_t i = 0; i < json_object_array_length(lines); i++) {
		json_object *line = json_object_array_get_idx(lines, i);

		if (!*json_get_text(line, "place"))
			continue;
		if (counts(line))
			best = json_get_text(line, "source");
		if (!*json_get_text(line, "why"))
			tell_known(d, line);
		else
			doctor_add(d, LEVEL_OK, "focus", NULL, "%s (%s) knows nothing: %s.",
				   json_get_text(line, "source"), json_get_text(line, "place"), json_get_text(line, "why"));
	}
	return best;
}

static void tell_absent(Doctor *d, json_object *lines)
{
	char names[256] = "";
	size_t n = 0;

	for (size_t i = 0; i < json_object_array_length(lines); i++) {
		json_object *line = json_object_array_get_idx(lines, i);

		if (json_object_is_type(line, json_type_object) && !*json_get_text(line, "place") && n < sizeof(names))
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
					      json_get_text(line, "source"));
	}
	if (n)
		doctor_add(d, LEVEL_OK, "focus", NULL, "Not there: %s.", names);
}

static void check_unseen(Doctor *d, const char *vramd_source)
{
	const char *desktop = strempty(getenv("XDG_CURRENT_DESKTOP"));

	/* GNOME, or a compositor that speaks for itself. */
	if (!is_guess(vramd_source))
		doctor_add(d, LEVEL_OK, "focus", NULL, "vramd-agent has nothing to tell here: vramd knows without it.");
	else if (geteuid() == 0)
		doctor_add(d, LEVEL_NOTE, "focus", "Run vramctl doctor as the user who plays.",
			   "In root's own session no source knows who is in front.");
	else if (!strstr(desktop, "GNOME"))
		doctor_add(d, LEVEL_WARNING, "focus", "See SOURCES in vramd-agent(1), or say it: vramctl focus PID",
			   "In this session no source knows who is in front.");
	else if (d->snapshot)
		doctor_add(d, LEVEL_WARNING, "focus",
			   "Look at a window that is in a unit of yours, such as a terminal's, and run this again; or "
			   "say it: vramctl focus PID",
			   "On GNOME vramd reads itself which unit mutter marks as being in front, and has seen no mark yet.");
}

static void check_sources(Doctor *d, json_object *lines, const char *vramd_source)
{
	const char *best = tell_lines(d, lines);

	tell_absent(d, lines);
	if (!best)
		check_unseen(d, vramd_source);
	else if (d->snapshot && is_guess(vramd_source))
		doctor_add(d, LEVEL_WARNING, "focus", start_agent,
			   "%s knows who is in front, but nobody tells vramd.", best);
}

void doctor_check_focus(Doctor *d)
{
	auto_json json_object *lines = NULL;
	const char *source = d->snapshot ? strempty(d->snapshot->manager.source) : "";
	int r;

	if (d->snapshot)
		check_vramd(d, source);
	r = ask_agent(&lines);
	if (r >= 0)
		check_sources(d, lines, source);
	else if (r == -ENOENT)
		doctor_add(d, is_guess(source) ? LEVEL_WARNING : LEVEL_NOTE, "focus",
			   "Install it, unless your compositor tells vramd itself.",
			   "vramd-agent is not installed: gamescope, KDE, sway and X11 are not seen.");
	else
		doctor_add(d, LEVEL_WARNING, "focus", "Look at: vramd-agent --once",
			   "vramd-agent does not say what its sources see: %s", strerror(-r));
}
