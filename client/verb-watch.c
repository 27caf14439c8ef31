/* SPDX-License-Identifier: MIT */
#include <time.h>

#include "json.h"
#include "parse.h"
#include "verb.h"

/* Names of games by object path, kept since a released game is gone by the time we could ask. */
typedef struct Label {
	char *object, *label;
} Label;

typedef struct Watch {
	const Output *out;
	bool json;
	sd_bus *bus;
	Label *labels;
	size_t n_labels, labels_alloc;
} Watch;

/* One decision, in the form that both outputs need. */
typedef struct Event {
	const char *kind, *game, *label, *unit, *region, *menu, *source, *file, *state, *by, *reason;
	uint64_t bytes, ours, theirs;
	bool has_bytes;
	Amounts low;
} Event;

static const char *label_of(Watch *w, const char *object)
{
	Label *l;

	if (streq(object, "/"))
		return "nobody";
	for (size_t i = 0; i < w->n_labels; i++)
		if (streq(w->labels[i].object, object))
			return w->labels[i].label;
	if (!GROW(w->labels, w->labels_alloc, w->n_labels))
		return object;
	l = &w->labels[w->n_labels];
	*l = (Label){ strdup(object), client_game_label(w->bus, object) };
	if (!l->object || !l->label) {
		free(l->object);
		free(l->label);
		return object;
	}
	w->n_labels++;
	return l->label;
}

/* A game that is gone, or with NULL all of them: another vramd may use the same ids for others. */
static void forget(Watch *w, const char *object)
{
	for (size_t i = w->n_labels; i-- > 0;) {
		if (object && !streq(w->labels[i].object, object))
			continue;
		free(w->labels[i].object);
		free(w->labels[i].label);
		w->labels[i] = w->labels[--w->n_labels];
	}
}

/* --- Output ---------------------------------------------------------------------------------- */

static void print_json(const Event *e, const struct timespec *t)
{
	auto_json json_object *o = json_object_new_object();
	const struct {
		const char *key, *value;
	} strings[] = {
		{ "game", e->game },     { "name", e->label }, { "unit", e->unit },
		{ "region", e->region }, { "menu", e->menu },  { "source", e->source },
		{ "file", e->file },     { "state", e->state }, { "by", e->by },
	};

	json_add_u64(o, "time", (uint64_t)t->tv_sec * USEC_PER_SEC + (uint64_t)t->tv_nsec / 1000);
	json_add_string(o, "event", e->kind);
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		if (strings[i].value)
			json_add_string(o, strings[i].key, strings[i].value);
	if (streq(e->kind, "protected"))
		json_add(o, "low", json_from_amounts(&e->low));
	if (streq(e->kind, "contested")) {
		json_add_u64(o, "ours", e->ours);
		json_add_u64(o, "theirs", e->theirs);
	}
	if (e->has_bytes)
		json_add_u64(o, "bytes", e->bytes);
	json_add_string(o, "reason", e->reason);
	json_print(stdout, o, true);
}

static char *low_text(const Amounts *low)
{
	char *text = NULL, buf[FORMAT_BYTES_MAX];
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	for (size_t i = 0; f && i < low->n; i++)
		(void)fprintf(f, "%s%s of %s", i ? ", " : "", format_bytes(buf, low->v[i].bytes),
			      low->v[i].region);
	if (f)
		(void)fclose(f);
	return text;
}

/* What happened, without time, kind and reason. The caller frees. */
static char *event_text(const Event *e)
{
	char ours[FORMAT_BYTES_MAX], theirs[FORMAT_BYTES_MAX], *text = NULL;
	auto_free char *low = NULL;
	int r = -1;

	if (streq(e->kind, "focus")) {
		r = asprintf(&text, "%s, menu %s%s%s", e->label, e->menu, *e->source ? ", says " : "",
			     e->source);
	} else if (streq(e->kind, "protected")) {
		low = low_text(&e->low);
		r = asprintf(&text, "%s in %s: %s", e->label, e->unit, strempty(low));
	} else if (streq(e->kind, "released")) {
		r = asprintf(&text, "%s in %s", e->label, e->unit);
	} else if (streq(e->kind, "contested")) {
		r = asprintf(&text, "%s %s of %s: %s became %s", e->file, e->region, e->unit,
			     format_bytes(ours, e->ours), format_bytes(theirs, e->theirs));
	} else if (streq(e->kind, "restored")) {
		r = asprintf(&text, "%s has %s of %s again", e->label, format_bytes(ours, e->bytes), e->region);
	} else if (e->has_bytes) { /* eased, evicted */
		r = asprintf(&text, "%s lost %s of %s%s%s", e->label, format_bytes(ours, e->bytes), e->region,
			     *strempty(e->by) ? " to " : "", strempty(e->by));
	} else {
		return strdup(strempty(e->state)); /* the reason says the rest */
	}
	return r < 0 ? NULL : text;
}

static Style kind_style(const char *kind)
{
	if (streq(kind, "protected") || streq(kind, "restored"))
		return STYLE_GOOD;
	if (streq(kind, "contested") || streq(kind, "evicted") || streq(kind, "eased"))
		return STYLE_WARN;
	return streq(kind, "stopped") ? STYLE_BAD : STYLE_PLAIN;
}

static void print_line(const Output *o, const Event *e, const struct timespec *t)
{
	auto_free char *text = event_text(e);
	struct tm tm = {};
	char clock[16];

	(void)localtime_r(&t->tv_sec, &tm);
	(void)strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	(void)fprintf(o->f, "%s.%03ld ", clock, t->tv_nsec / 1000000);
	output_style(o, kind_style(e->kind));
	output_left(o, e->kind, 9);
	output_style(o, STYLE_PLAIN);
	(void)text_put(o->f, strempty(text), UINT32_MAX);
	if (*strempty(text) && *e->reason)
		(void)fputs(" - ", o->f);
	(void)text_put(o->f, e->reason, UINT32_MAX);
	(void)fputc('\n', o->f);
}

static void print_event(const Watch *w, const Event *e)
{
	struct timespec t = {};

	(void)clock_gettime(CLOCK_REALTIME, &t);
	if (w->json)
		print_json(e, &t);
	else
		print_line(w->out, e, &t);
	(void)fflush(stdout);
}

/* --- Signals --------------------------------------------------------------------------------- */

static int read_focus(Watch *w, sd_bus_message *m, Event *e)
{
	int r = sd_bus_message_read(m, "osss", &e->game, &e->menu, &e->source, &e->reason);

	e->kind = "focus";
	e->label = r < 0 ? NULL : label_of(w, e->game);
	return r;
}

static int read_protected(Watch *w, sd_bus_message *m, Event *e)
{
	int r = sd_bus_message_read(m, "os", &e->game, &e->unit);

	e->kind = "protected";
	if (r >= 0)
		r = amounts_read(m, &e->low);
	if (r >= 0)
		r = sd_bus_message_read(m, "s", &e->reason);
	e->label = r < 0 ? NULL : label_of(w, e->game);
	return r;
}

static int read_released(Watch *w, sd_bus_message *m, Event *e)
{
	int r = sd_bus_message_read(m, "oss", &e->game, &e->unit, &e->reason);

	e->kind = "released";
	e->label = r < 0 ? NULL : label_of(w, e->game);
	return r;
}

static int read_contested(Watch *w _unused_, sd_bus_message *m, Event *e)
{
	e->kind = "contested";
	return sd_bus_message_read(m, "ssstts", &e->unit, &e->region, &e->file, &e->ours, &e->theirs,
				   &e->reason);
}

static int read_bytes(Watch *w, sd_bus_message *m, Event *e, const char *kind)
{
	int r = sd_bus_message_read(m, "osts", &e->game, &e->region, &e->bytes, &e->reason);

	e->kind = kind;
	e->has_bytes = true;
	e->label = r < 0 ? NULL : label_of(w, e->game);
	return r;
}

static int read_evicted(Watch *w, sd_bus_message *m, Event *e)
{
	int r = sd_bus_message_read(m, "ostss", &e->game, &e->region, &e->bytes, &e->by, &e->reason);

	e->kind = "evicted";
	e->has_bytes = true;
	e->label = r < 0 ? NULL : label_of(w, e->game);
	return r;
}

static int read_eased(Watch *w, sd_bus_message *m, Event *e)
{
	return read_bytes(w, m, e, "eased");
}

static int read_restored(Watch *w, sd_bus_message *m, Event *e)
{
	return read_bytes(w, m, e, "restored");
}

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *error _unused_)
{
	static const struct {
		const char *member;
		int (*read)(Watch *w, sd_bus_message *m, Event *e);
	} signals[] = {
		{ "FocusChanged", read_focus },   { "Protected", read_protected },
		{ "Released", read_released },    { "Contested", read_contested },
		{ "Evicted", read_evicted },      { "Eased", read_eased },
		{ "Restored", read_restored },
	};
	const char *member = strempty(sd_bus_message_get_member(m));
	Watch *w = userdata;

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		Event e = {};

		if (!streq(member, signals[i].member))
			continue;
		if (signals[i].read(w, m, &e) < 0)
			complain("the signal \"%s\" does not fit this vramctl", member);
		else
			print_event(w, &e);
		amounts_done(&e.low);
	}
	return 0;
}

static int on_removed(sd_bus_message *m, void *userdata, sd_bus_error *error _unused_)
{
	const char *object;

	if (sd_bus_message_read(m, "o", &object) >= 0)
		forget(userdata, object);
	return 0;
}

static void on_owner(bool present, void *userdata)
{
	const Event e = {
		.kind = present ? "started" : "stopped",
		.reason = present ? "vramd is here" : "vramd went away",
	};

	forget(userdata, NULL);
	print_event(userdata, &e);
}

/* --- The verb -------------------------------------------------------------------------------- */

static int add_matches(Watch *w)
{
	int r;

	r = sd_bus_match_signal(w->bus, NULL, VRAMD_BUS_NAME, VRAMD_PATH, VRAMD_IFACE_MANAGER, NULL,
				on_signal, w);
	if (r >= 0)
		r = sd_bus_match_signal(w->bus, NULL, VRAMD_BUS_NAME, VRAMD_PATH,
					"org.freedesktop.DBus.ObjectManager", "InterfacesRemoved",
					on_removed, w);
	return r;
}

/* Where we begin: vramd's state, and the names of the games, which one that ends first would lack. */
static void print_start(Watch *w)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	auto_snapshot Snapshot s = {};
	Event e = { .kind = "stopped", .reason = "vramd is not running" };

	if (client_running(w->bus) != 0) {
		int r = client_load(w->bus, &s, &error);

		if (r < 0) {
			(void)client_fail(&error, r);
			return;
		}
		e = (Event){ .kind = "state",
			     .state = strempty(s.manager.state),
			     .reason = strempty(s.manager.reason) };
	}
	for (size_t i = 0; i < s.n_games; i++)
		(void)label_of(w, s.games[i].object);
	print_event(w, &e);
}

static int watch(Watch *w)
{
	OwnerWatch owner = { on_owner, w };
	auto_event sd_event *event = NULL;
	int r;

	r = client_loop(w->bus, &event);
	if (r >= 0)
		r = add_matches(w);
	if (r >= 0)
		r = client_watch_owner(w->bus, &owner);
	if (r >= 0) {
		print_start(w);
		r = sd_event_loop(event);
	}
	if (r < 0) {
		complain("cannot watch: %s", strerror(-r));
		return STATUS_FAILURE;
	}
	if (r > 0)
		complain("the system bus went away");
	return r > 0 ? STATUS_FAILURE : STATUS_OK;
}

static int run_watch(Context *c, int argc _unused_, char **argv _unused_)
{
	auto_bus sd_bus *bus = NULL;
	Watch w = { .out = &c->out, .json = c->json };
	int status;

	if (client_open(&bus) < 0)
		return STATUS_FAILURE;
	w.bus = bus;
	status = watch(&w);
	forget(&w, NULL);
	free(w.labels);
	return status;
}

const Verb verb_watch = {
	.name = "watch",
	.args = "",
	.summary = "decisions as they come, one line each",
	.description = "Prints each decision of vramd with its time and reason, until Ctrl-C: focus,\n"
		       "protected, released, contested (somebody else wrote a value of ours), evicted\n"
		       "(a game lost memory), eased (it lost some at once, and is not to fight for it\n"
		       "at once) and restored (it may again), and started or stopped when vramd comes\n"
		       "or goes. The first line tells vramd's state.",
	.json = true,
	.run = run_watch,
};
