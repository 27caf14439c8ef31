/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>

#include "config.h"
#include "remove-tree.h"

/* --- Helpers --------------------------------------------------------------------------------- */

/* Complaints as "file:line: text", one a line. */
typedef struct Log {
	char text[8192];
	unsigned n;
} Log;

static void collect(const char *file, unsigned line, const char *text, void *userdata)
{
	Log *log = userdata;
	size_t n = strlen(log->text);
	const char *name = strrchr(file, '/');

	(void)snprintf(log->text + n, sizeof(log->text) - n, "%s:%u: %s\n", name ? name + 1 : file,
		       line, text);
	log->n++;
}

static int parse(Config **ret, Log *log, const char *text)
{
	*log = (Log){ 0 };
	assert_int_equal(config_new(ret), 0);
	return config_parse_text(*ret, "f", text, collect, log);
}

static char *print(const Config *c)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	config_print(c, f);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void assert_list(char *const *list, const char *words)
{
	char joined[512] = "";

	for (; list && *list; list++) {
		assert_true(strlen(joined) + strlen(*list) + 2 < sizeof(joined));
		if (*joined)
			strcat(joined, " ");
		strcat(joined, *list);
	}
	assert_string_equal(joined, words);
}

/* Takes out comments, empty lines and the suffix that a service's name may go without. */
static void strip(char *text)
{
	char *to = text, *suffix;

	while ((suffix = strstr(text, ".service]")))
		memmove(suffix, suffix + strlen(".service"),
			strlen(suffix + strlen(".service")) + 1);
	for (const char *s = text, *end; *s; s = end) {
		end = strchrnul(s, '\n');
		end += *end == '\n';
		if (*s == '#' || *s == '\n')
			continue;
		memmove(to, s, (size_t)(end - s));
		to += end - s;
	}
	*to = '\0';
}

static void assert_same_config(const Config *a, const Config *b)
{
	auto_free char *x = print(a), *y = print(b);

	assert_string_equal(x, y);
}

static void assert_size(Size size, int kind, uint64_t value)
{
	assert_int_equal(size.kind, kind);
	assert_int_equal(size.value, value);
}

static void assert_knob(const KnobWish *knobs, Knob knob, int kind, uint32_t value)
{
	assert_int_equal(knobs[knob].kind, kind);
	assert_int_equal(knobs[knob].value, value);
}

/* --- Values ---------------------------------------------------------------------------------- */

static void test_defaults(void **state)
{
	auto_config Config *c = NULL;

	(void)state;
	assert_int_equal(config_new(&c), 0);
	assert_true(c->enabled);
	assert_false(c->force);
	assert_int_equal(c->ownership, OWNERSHIP_EXCLUSIVE);
	assert_int_equal(c->reassert_limit, 6);
	assert_size(c->reserve, SIZE_UNSET, 0);
	assert_size(c->game_low, SIZE_UNSET, 0);
	assert_size(c->game_min, SIZE_BYTES, 0);
	assert_int_equal(c->debounce_usec, 250 * USEC_PER_MSEC);
	assert_int_equal(c->grace_usec, 10 * USEC_PER_SEC);
	assert_int_equal(c->easing_usec, 2 * USEC_PER_SEC);
	assert_size(c->compositor_floor, SIZE_UNSET, 0);
	assert_string_equal(c->compositor_units[0], "gamescope-session.service");
	assert_size(c->menu_share, SIZE_PERCENT, 10);
	assert_string_equal(c->menu_units[0], "steam-launcher.service");
	assert_int_equal(c->background_share, 50);
	assert_size(c->background_max, SIZE_UNSET, 0);
	assert_list(c->background_units, "*");
	assert_knob(c->knobs, KNOB_THROTTLE_HARD, KNOB_SET, 50);
	assert_knob(c->knobs, KNOB_THROTTLE_SOFT, KNOB_SET, 2000);
	assert_knob(c->knobs, KNOB_THROTTLE_LEVELS, KNOB_SET, 1);
	assert_knob(c->knobs, KNOB_RECLAIM_BACKOFF, KNOB_SET, 20);
	assert_knob(c->knobs, KNOB_CONTIG_WINDOW, KNOB_SET, 1);
	assert_knob(c->knobs, KNOB_EVICT_PRIORITY, KNOB_SET, 1);
	assert_knob(c->knobs, KNOB_DISPLACE_LOWER, KNOB_SET, 1);
	assert_knob(c->knobs, KNOB_GFXOFF_DELAY, KNOB_KEEP, 0);
	assert_true(c->worker);
	assert_list(c->allow_users, "");
	assert_list(c->deny_users, "");
	assert_list(c->allow_games, "");
	assert_list(c->deny_games, "");
	assert_int_equal(c->n_games, 0);
	assert_int_equal(c->n_services, 0);
}

static void test_every_key(void **state)
{
	static const char text[] =
		"\xef\xbb\xbf# a comment\n"
		"[policy]\nEnabled=no\nForce=yes\nOwnership=share\nReassertLimit=2\r\n"
		"Reserve=1G\nGameLow = 80% ; why\nGameMin: 512M\nDebounce=1s\nGrace=1min\n"
		"Easing=1500ms\nAllowGames=10 foo*\nDenyGames=20\n"
		"[compositor]\nFloor=100M\nUnits=a.service\tb@*.service\n"
		"[menu]\nShare=1048576\nUnits=\n"
		"[background]\nShare=25%\nMax=2G\nUnits=x.scope\n"
		"[kernel]\nThrottleHard=0\nThrottleSoft=1min\nThrottleLevels=3\nReclaimBackoff=5ms\n"
		"ContigWindow=no\nEvictPriority=keep\nDisplaceLower=off\nGfxoffDelay=200ms\n"
		"[focus]\nWorker=no\n"
		"[user]\nAllow=1000 alice\nDeny=0\n"
		"[game 1091500]\nName=A Game\nMin=1G\nLow=max\nProtect=no\nEasing=no\n"
		"ThrottleHard=1s\nThrottleSoft=0\nThrottleLevels=8\nReclaimBackoff=keep\nContigWindow=yes\n"
		"EvictPriority=yes\nDisplaceLower=yes\nGfxoffDelay=0\n"
		"[game exe=Some Game.exe]\nLow=4G\n"
		"[game unit=app-lutris-*.scope]\nMin=1K\n"
		"[service ollama]\nLow=6G\nMax=2G\n"
		"[service x@1.scope]\nMax=0";
	auto_config Config *c = NULL;
	Log log;

	(void)state;
	assert_int_equal(parse(&c, &log, text), 0);
	assert_string_equal(log.text, "");
	assert_false(c->enabled);
	assert_true(c->force);
	assert_int_equal(c->ownership, OWNERSHIP_SHARE);
	assert_int_equal(c->reassert_limit, 2);
	assert_size(c->reserve, SIZE_BYTES, GIB);
	assert_size(c->game_low, SIZE_PERCENT, 80);
	assert_size(c->game_min, SIZE_BYTES, 512 * MIB);
	assert_int_equal(c->debounce_usec, USEC_PER_SEC);
	assert_int_equal(c->grace_usec, 60 * USEC_PER_SEC);
	assert_int_equal(c->easing_usec, 1500 * USEC_PER_MSEC);
	assert_list(c->allow_games, "10 foo*");
	assert_list(c->deny_games, "20");
	assert_size(c->compositor_floor, SIZE_BYTES, 100 * MIB);
	assert_list(c->compositor_units, "a.service b@*.service");
	assert_size(c->menu_share, SIZE_BYTES, MIB);
	assert_list(c->menu_units, "");
	assert_int_equal(c->background_share, 25);
	assert_size(c->background_max, SIZE_BYTES, 2 * GIB);
	assert_list(c->background_units, "x.scope");
	assert_knob(c->knobs, KNOB_THROTTLE_HARD, KNOB_SET, 0);
	assert_knob(c->knobs, KNOB_THROTTLE_SOFT, KNOB_SET, 60000);
	assert_knob(c->knobs, KNOB_THROTTLE_LEVELS, KNOB_SET, 3);
	assert_knob(c->knobs, KNOB_RECLAIM_BACKOFF, KNOB_SET, 5);
	assert_knob(c->knobs, KNOB_CONTIG_WINDOW, KNOB_SET, 0);
	assert_knob(c->knobs, KNOB_EVICT_PRIORITY, KNOB_KEEP, 0);
	assert_knob(c->knobs, KNOB_DISPLACE_LOWER, KNOB_SET, 0);
	assert_knob(c->knobs, KNOB_GFXOFF_DELAY, KNOB_SET, 200);
	assert_false(c->worker);
	assert_list(c->allow_users, "1000 alice");
	assert_list(c->deny_users, "0");

	assert_int_equal(c->n_games, 3);
	assert_int_equal(c->games[0].by, GAME_BY_APPID);
	assert_int_equal(c->games[0].appid, 1091500);
	assert_string_equal(c->games[0].name, "A Game");
	assert_size(c->games[0].min, SIZE_BYTES, GIB);
	assert_size(c->games[0].low, SIZE_BYTES, UINT64_MAX);
	assert_false(c->games[0].protect);
	assert_false(c->games[0].easing);
	assert_knob(c->games[0].knobs, KNOB_THROTTLE_HARD, KNOB_SET, 1000);
	assert_knob(c->games[0].knobs, KNOB_THROTTLE_SOFT, KNOB_SET, 0);
	assert_knob(c->games[0].knobs, KNOB_THROTTLE_LEVELS, KNOB_SET, 8);
	assert_knob(c->games[0].knobs, KNOB_RECLAIM_BACKOFF, KNOB_KEEP, 0);
	assert_knob(c->games[0].knobs, KNOB_CONTIG_WINDOW, KNOB_SET, 1);
	assert_knob(c->games[0].knobs, KNOB_EVICT_PRIORITY, KNOB_SET, 1);
	assert_knob(c->games[0].knobs, KNOB_DISPLACE_LOWER, KNOB_SET, 1);
	assert_knob(c->games[0].knobs, KNOB_GFXOFF_DELAY, KNOB_SET, 0);
	assert_knob(c->games[1].knobs, KNOB_THROTTLE_HARD, KNOB_UNSET, 0);
	assert_int_equal(c->games[1].by, GAME_BY_EXE);
	assert_string_equal(c->games[1].pattern, "Some Game.exe");
	assert_null(c->games[1].name);
	assert_size(c->games[1].min, SIZE_UNSET, 0);
	assert_true(c->games[1].protect);
	assert_true(c->games[1].easing);
	assert_int_equal(c->games[2].by, GAME_BY_UNIT);
	assert_size(c->games[2].min, SIZE_BYTES, KIB);

	assert_int_equal(c->n_services, 2);
	assert_string_equal(c->services[0].unit, "ollama.service");
	assert_size(c->services[0].low, SIZE_BYTES, 6 * GIB);
	assert_size(c->services[0].max, SIZE_BYTES, 2 * GIB);
	assert_string_equal(c->services[1].unit, "x@1.scope");
	assert_size(c->services[1].low, SIZE_UNSET, 0);
}

static void test_merge_and_reset(void **state)
{
	auto_config Config *c = NULL, *untouched = NULL;
	Log log;

	(void)state;
	/* Sections of one name are one, the last value counts; another spelling of a name is the
	 * same. */
	assert_int_equal(parse(&c, &log, "[game exe=A.exe]\nMin=1G\nLow=2G\n[policy]\nForce=yes\n"
					 "[game exe=a.EXE]\nLow=3G\n[policy]\nForce=no\n"
					 "[service s]\nLow=1G\n[service s.service]\nMax=1G\n"),
			 0);
	assert_int_equal(c->n_games, 1);
	assert_size(c->games[0].min, SIZE_BYTES, GIB);
	assert_size(c->games[0].low, SIZE_BYTES, 3 * GIB);
	assert_false(c->force);
	assert_int_equal(c->n_services, 1);

	/* No value: the default again. */
	c = config_free(c);
	assert_int_equal(parse(&c, &log,
			       "[policy]\nEnabled=no\nOwnership=share\nReassertLimit=1\n"
			       "Reserve=1G\nGameMin=1G\nDebounce=9s\nDenyGames=1 2\n"
			       "[menu]\nShare=1G\n[background]\nShare=1%\n"
			       "[policy]\nEnabled=\nOwnership=\nReassertLimit=\nReserve=\n"
			       "GameMin=\nDebounce=\nDenyGames=\n[menu]\nShare=\n"
			       "[background]\nShare= ; nothing\n"),
			 0);
	assert_int_equal(config_new(&untouched), 0);
	assert_same_config(c, untouched);
}

static void test_lists(void **state)
{
	auto_config Config *c = NULL;
	Log log;

	(void)state;
	/* A key line replaces the list, an indented line goes on with it. */
	assert_int_equal(parse(&c, &log,
			       "[policy]\nDenyGames=a b\nDenyGames=c\n   d\te ; f\n\n\tg\n"
			       "  # comment\n [h]\n"),
			 0);
	assert_list(c->deny_games, "c d e g [h]");

	c = config_free(c);
	assert_int_equal(parse(&c, &log, "[policy]\nForce=yes\n  DenyGames=x\nGrace=1s\n"), 1);
	assert_string_equal(log.text,
			    "f:3: 'Force=' takes one value, and 'DenyGames=x' is indented as if it "
			    "went on\n");
	assert_true(c->force);
	assert_int_equal(c->grace_usec, USEC_PER_SEC);

	/* What continues a bad line is bad, and does not land in the list that was there before. */
	c = config_free(c);
	assert_int_equal(
		parse(&c, &log, "[policy]\nDenyGames=a\nDenyGames=#b\n\tc\n[user]\n Deny=z\n"), 2);
	assert_list(c->deny_games, "a");
	assert_string_equal(
		log.text, "f:3: 'DenyGames=#b' in [policy] is not a list of words, none with # "
			  "first\n"
			  "f:4: 'c' continues 'DenyGames=', which was not accepted\n");
	assert_list(c->deny_users, "z");
}

static void test_list_limit(void **state)
{
	auto_config Config *c = NULL;
	char text[16 + 4 * 600] = "[policy]\nDenyGames=\n";
	size_t n = strlen(text);
	Log log;

	(void)state;
	for (int i = 0; i < 513; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "\ta\n");
	assert_int_equal(parse(&c, &log, text), 1);
	assert_string_equal(log.text, "f:515: 'DenyGames=' in [policy] has more than 512 words\n");
	assert_non_null(c->deny_games[511]);
	assert_null(c->deny_games[512]);
}

/* --- Bad lines ------------------------------------------------------------------------------- */

static const struct {
	const char *text, *log;
} bad[] = {
	{ "Force=yes\n", "f:1: 'Force=' is in no section\n" },
	{ "[policy]\nForce=maybe\n", "f:2: 'Force=maybe' in [policy] is not yes or no\n" },
	{ "[policy]\nEnabled=YES\n", "f:2: 'Enabled=YES' in [policy] is not yes or no\n" },
	{ "[policy]\n\n# x\nOwnership=mine\n",
	  "f:4: 'Ownership=mine' in [policy] is not exclusive or share\n" },
	{ "[policy]\nReassertLimit=-1\n",
	  "f:2: 'ReassertLimit=-1' in [policy] is not a whole number\n" },
	{ "[policy]\nReassertLimit=601\n",
	  "f:2: 'ReassertLimit=601' in [policy] is out of range\n" },
	{ "[policy]\nReassertLimit=4294967296\n",
	  "f:2: 'ReassertLimit=4294967296' in [policy] is out of range\n" },
	{ "[policy]\nReserve=1GB\n",
	  "f:2: 'Reserve=1GB' in [policy] is not a size such as 512M, 10% or max\n" },
	{ "[policy]\nGameLow=101%\n", "f:2: 'GameLow=101%' in [policy] is out of range\n" },
	{ "[policy]\nGameMin=1G # one\n",
	  "f:2: 'GameMin=1G # one' in [policy] is not a size such as 512M, 10% or max\n" },
	{ "[policy]\nDebounce=250 ms\n",
	  "f:2: 'Debounce=250 ms' in [policy] is not a time such as 250ms or 10s\n" },
	{ "[policy]\nDebounce=61s\n", "f:2: 'Debounce=61s' in [policy] is out of range\n" },
	{ "[policy]\nEasing=61s\n", "f:2: 'Easing=61s' in [policy] is out of range\n" },
	{ "[policy]\nGrace=2h\n", "f:2: 'Grace=2h' in [policy] is out of range\n" },
	{ "[policy]\nAllowGames=a #b\n",
	  "f:2: 'AllowGames=a #b' in [policy] is not a list of words, none with # first\n" },
	{ "[compositor]\nFloor=-1\n",
	  "f:2: 'Floor=-1' in [compositor] is not a size such as 512M, 10% or max\n" },
	{ "[menu]\nShare=10\n%\n", "f:3: '%' is neither a [section] nor Key=value\n" },
	{ "[background]\nShare=1G\n",
	  "f:2: 'Share=1G' in [background] is not a percentage from 0% to 100%\n" },
	{ "[background]\nMax=lots\n",
	  "f:2: 'Max=lots' in [background] is not a size such as 512M, 10% or max\n" },
	{ "[kernel]\nThrottleHard=50\n", "f:2: 'ThrottleHard=50' in [kernel] is out of range\n" },
	{ "[kernel]\nThrottleHard=never\n",
	  "f:2: 'ThrottleHard=never' in [kernel] is not a time such as 50ms or 2s, or keep\n" },
	{ "[kernel]\nReclaimBackoff=1500us\n",
	  "f:2: 'ReclaimBackoff=1500us' in [kernel] is not a time such as 50ms or 2s, or keep\n" },
	{ "[kernel]\nThrottleLevels=9\n", "f:2: 'ThrottleLevels=9' in [kernel] is out of range\n" },
	{ "[kernel]\nThrottleLevels=-1\n",
	  "f:2: 'ThrottleLevels=-1' in [kernel] is not a whole number, or keep\n" },
	{ "[game 10]\nEvictPriority=2\n",
	  "f:2: 'EvictPriority=2' in [game 10] is not yes, no or keep\n" },
	{ "[game 10]\nGfxoffDelay=2min\n", "f:2: 'GfxoffDelay=2min' in [game 10] is out of range\n" },
	{ "[policy]\nContigWindow=no\n",
	  "f:2: unknown key 'ContigWindow=' in [policy]: there is one in [kernel]\n" },
	{ "[game 10]\nProtect=never\n", "f:2: 'Protect=never' in [game 10] is not yes or no\n" },
	{ "[service s]\nLow=99999999999G\n",
	  "f:2: 'Low=99999999999G' in [service s] is out of range\n" },
	/* Names */
	{ "[policy]\nforce=yes\n",
	  "f:2: unknown key 'force=' in [policy]: did you mean 'Force='?\n" },
	{ "[policy]\nFarce=yes\n", "f:2: unknown key 'Farce=' in [policy]\n" },
	{ "[menu]\nReserve=1G\n",
	  "f:2: unknown key 'Reserve=' in [menu]: there is one in [policy]\n" },
	{ "[policy]\n=yes\n", "f:2: unknown key '=' in [policy]\n" },
	{ "[Policy]\nForce=yes\n",
	  "f:2: 'Force=' is in the unknown section [Policy]: did you mean [policy]?\n" },
	{ "[poliçy]\nForce=yes\n", "f:2: 'Force=' is in the unknown section [poliçy]\n" },
	{ "[policy x]\nForce=yes\n", "f:2: section [policy] takes no name: 'x'\n" },
	{ "[game]\nLow=1G\n",
	  "f:2: [game ] names no game: an appid, exe=FILE or unit=PATTERN is needed\n" },
	{ "[game 0]\nLow=1G\n",
	  "f:2: [game 0] names no game: an appid, exe=FILE or unit=PATTERN is needed\n" },
	{ "[game doom]\nLow=1G\n",
	  "f:2: [game doom] names no game: an appid, exe=FILE or unit=PATTERN is needed\n" },
	{ "[game exe=a/b]\nLow=1G\n",
	  "f:2: [game exe=a/b] names no game: an appid, exe=FILE or unit=PATTERN is needed\n" },
	{ "[game unit=]\nLow=1G\n",
	  "f:2: [game unit=] names no game: an appid, exe=FILE or unit=PATTERN is needed\n" },
	{ "[service]\nLow=1G\n", "f:2: [service ] is not the name of a unit\n" },
	{ "[service a b]\nLow=1G\n", "f:2: [service a b] is not the name of a unit\n" },
	{ "[service a/b]\nLow=1G\n", "f:2: [service a/b] is not the name of a unit\n" },
	/* Lines that inih says nothing about */
	{ "[policy]\nForce\n", "f:2: 'Force' is neither a [section] nor Key=value\n" },
	{ "[policy]\nForce ;=yes\n", "f:2: 'Force ;=yes' is neither a [section] nor Key=value\n" },
	{ "[policy]\nForce", "f:2: 'Force' is neither a [section] nor Key=value\n" },
	{ "[menu]\n[policy\nForce=yes\n",
	  "f:2: '[policy' has no ']' at its end\nf:3: 'Force=' is in no section\n" },
	{ "[user] Allow=x\n", "f:1: '[user] Allow=x' has something behind the ']'\n" },
	{ "[game unit=app-[ab]*]\nLow=1G\n", "f:1: '[game unit=app-[ab]*]' has something behind "
					     "the ']'\nf:2: 'Low=' is in no section\n" },
	/* A key that a colour escape would hide on a terminal */
	{ "[policy]\n\x1b[2mForce=yes\n", "f:2: unknown key '?[2mForce=' in [policy]\n" },
};

/* Each is named with its line, and changes nothing. */
static void test_bad_lines(void **state)
{
	auto_config Config *untouched = NULL;

	(void)state;
	assert_int_equal(config_new(&untouched), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		auto_config Config *c = NULL;
		unsigned n_lines = 0;
		Log log;

		for (const char *s = bad[i].log; *s; s++)
			n_lines += *s == '\n';
		assert_int_equal(parse(&c, &log, bad[i].text), n_lines);
		assert_string_equal(log.text, bad[i].log);
		for (size_t k = 0; k < c->n_games; k++)
			assert_size(c->games[k].low, SIZE_UNSET, 0);
		assert_true(c->n_games == 0 || c->games[0].protect);
		c->n_games = 0; /* appid sections own nothing but the array */
		for (; c->n_services > 0; c->n_services--) {
			assert_size(c->services[0].low, SIZE_UNSET, 0);
			free(c->services[c->n_services - 1].unit);
		}
		/* The one line before a bad one that is good. */
		if (!strstr(bad[i].text, "Share=10\n"))
			assert_same_config(c, untouched);
	}
}

/* All bad lines of a file, not only the first as inih's own count would have it. */
static void test_all_bad_lines(void **state)
{
	auto_config Config *c = NULL;
	Log log;

	(void)state;
	assert_int_equal(
		parse(&c, &log,
		      "[policy]\nForce=1\nGrace=x\nDebounce=1s\n\nfoo\nReserve=y\n[z]\na=1\n"),
		4);
	assert_string_equal(log.text,
			    "f:3: 'Grace=x' in [policy] is not a time such as 250ms or 10s\n"
			    "f:6: 'foo' is neither a [section] nor Key=value\n"
			    "f:7: 'Reserve=y' in [policy] is not a size such as 512M, 10% or max\n"
			    "f:9: 'a=' is in the unknown section [z]\n");
	assert_true(c->force);
	assert_int_equal(c->debounce_usec, USEC_PER_SEC);
	assert_int_equal(c->grace_usec, 10 * USEC_PER_SEC);
}

static char *with_tail(const char *head, char fill, size_t line_length, const char *tail)
{
	const char *line = strrchr(head, '\n') ? strrchr(head, '\n') + 1 : head;
	size_t n = line_length - strlen(line);
	char *text = malloc(strlen(head) + n + strlen(tail) + 1);

	assert_non_null(text);
	memcpy(text, head, strlen(head));
	memset(text + strlen(head), fill, n);
	strcpy(text + strlen(head) + n, tail);
	return text;
}

static void test_long_lines(void **state)
{
	static const struct {
		const char *head;
		size_t length;
		const char *tail, *log, *deny, *allow;
	} lines[] = {
		{ "[policy]\nDenyGames=", 199, "\nAllowGames=b\n", "", NULL, "b" },
		{ "[policy]\nDenyGames=", 200, "\nAllowGames=b\n",
		  "f:2: 'DenyGames=' in [policy] is longer than 199 bytes\n", "", "b" },
		{ "[policy]\nDenyGames=", 5000, "\nAllowGames=b\n",
		  "f:2: 'DenyGames=' in [policy] is longer than 199 bytes\n", "", "b" },
		/* A continuation of it must not land in what came before. */
		{ "[policy]\nDenyGames=c\nDenyGames=", 201, "\n d\nAllowGames=b\n",
		  "f:3: 'DenyGames=' in [policy] is longer than 199 bytes\n"
		  "f:4: 'd' continues 'DenyGames=', which was not accepted\n",
		  "c", "b" },
		{ "[policy]\n", 201, "=x\nAllowGames=b\n",
		  "f:2: the line is longer than 199 bytes\n", "", "b" },
		{ "[policy]\n#", 1000, "\nAllowGames=b\n", "", "", "b" },
		{ "[user]\n[policy]", 250, "\nAllowGames=b\n", NULL, "", "" },
		{ "[service ", 59, "]\nLow=1G\n", NULL, "", "" },
		{ "[service ", 50, "]\nLow=1G\n", "", "", "" },
		{ "[service ", 51, "]\nLow=1G\n", NULL, "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		auto_free char *text =
			with_tail(lines[i].head, 'a', lines[i].length, lines[i].tail);
		auto_config Config *c = NULL;
		Log log;

		assert_int_equal(parse(&c, &log, text) > 0, !lines[i].log || *lines[i].log);
		if (lines[i].log)
			assert_string_equal(log.text, lines[i].log);
		else
			assert_int_equal(log.n, 2); /* the section and the key in it */
		if (lines[i].deny)
			assert_list(c->deny_games, lines[i].deny);
		assert_list(c->allow_games, lines[i].allow);
		assert_int_equal(c->n_services, i == 8);
	}
}

static void test_section_limit(void **state)
{
	auto_free char *text = calloc(1, 64 * 1100);
	auto_config Config *c = NULL;
	char *s = text;
	Log log;

	(void)state;
	assert_non_null(text);
	for (int i = 1; i <= 1025; i++)
		s += sprintf(s, "[game %d]\nLow=1G\n", i);
	for (int i = 1; i <= 257; i++)
		s += sprintf(s, "[service s%d]\nLow=1G\n", i);
	assert_int_equal(parse(&c, &log, text), 2);
	assert_string_equal(
		log.text, "f:2050: [game 1025] is one section too many, at most 1024 are read\n"
			  "f:2564: [service s257] is one section too many, at most 256 are read\n");
	assert_int_equal(c->n_games, 1024);
	assert_int_equal(c->n_services, 256);
}

/* --- Files ----------------------------------------------------------------------------------- */

static char root[] = "/tmp/test-config-XXXXXX";

static int setup(void **state)
{
	char *path = root;

	(void)state;
	memcpy(root + strlen(root) - 6, "XXXXXX", 6);
	return mkdtemp(path) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	remove_tree(root);
	return 0;
}

static const char *in_root(const char *path)
{
	static char buf[512];

	(void)snprintf(buf, sizeof(buf), "%s%s", root, path);
	return buf;
}

static void make_parents(const char *path)
{
	char copy[512];

	(void)snprintf(copy, sizeof(copy), "%s", path);
	for (char *s = copy + strlen(root) + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		(void)mkdir(copy, 0755);
	}
}

static void put_data(const char *path, const char *data, size_t size)
{
	FILE *f;

	make_parents(in_root(path));
	f = fopen(in_root(path), "we");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static void put(const char *path, const char *text)
{
	put_data(path, text, strlen(text));
}

static Config *load(Log *log, unsigned n_bad_expected)
{
	Roots roots = { .etc = root };
	unsigned n_bad = 99;
	Config *c = NULL;

	*log = (Log){ 0 };
	assert_int_equal(config_load(&roots, NULL, collect, log, &c, &n_bad), 0);
	assert_int_equal(n_bad, n_bad_expected);
	return c;
}

#define ETC "/etc/vramd/vramd.conf.d/"
#define RUN "/run/vramd/vramd.conf.d/"
#define LIB "/usr/lib/vramd/vramd.conf.d/"

static void test_no_files(void **state)
{
	auto_config Config *c = NULL, *untouched = NULL;
	Log log;

	(void)state;
	c = load(&log, 0);
	assert_int_equal(log.n, 0);
	assert_int_equal(config_new(&untouched), 0);
	assert_same_config(c, untouched);
}

static void test_precedence(void **state)
{
	auto_config Config *c = NULL;
	Log log;

	(void)state;
	/* The main file is the weakest; drop-ins go by name, wherever they lie. */
	put("/etc/vramd/vramd.conf",
	    "[policy]\nReassertLimit=1\nGrace=1s\nDebounce=1s\nReserve=1G\n");
	put(LIB "20-a.conf", "[policy]\nReassertLimit=20\nGrace=20s\nDebounce=20s\n");
	put(ETC "10-b.conf", "[policy]\nReassertLimit=10\nGrace=10s\n");
	put(RUN "30-c.conf", "[policy]\nReassertLimit=30\n");
	/* One name in two folders: /etc hides /run hides /usr/lib, and nothing of the hidden is
	 * read. */
	put(LIB "40.conf", "[user]\nAllow=lib\nDeny=lib\n");
	put(RUN "40.conf", "[user]\nAllow=run\n");
	put(LIB "50.conf", "[menu]\nUnits=lib\n");
	put(RUN "50.conf", "[menu]\nUnits=run\n");
	put(ETC "50.conf", "[menu]\nUnits=etc\n");
	/* Not read at all. */
	put(ETC "60.conf~", "rubbish");
	put(ETC ".70.conf", "rubbish");
	put(ETC "README", "rubbish");

	c = load(&log, 0);
	assert_string_equal(log.text, "");
	assert_int_equal(c->reassert_limit, 30);
	assert_int_equal(c->grace_usec, 20 * USEC_PER_SEC);
	assert_int_equal(c->debounce_usec, 20 * USEC_PER_SEC);
	assert_size(c->reserve, SIZE_BYTES, GIB);
	assert_list(c->allow_users, "run");
	assert_list(c->deny_users, "");
	assert_list(c->menu_units, "etc");
}

static void test_masking(void **state)
{
	auto_config Config *c = NULL;
	Log log;

	(void)state;
	put(LIB "10.conf", "[policy]\nForce=yes\n");
	put(LIB "20.conf", "[policy]\nEnabled=no\n");
	put(ETC "20.conf", "");
	make_parents(in_root(ETC "10.conf"));
	assert_int_equal(symlink("/dev/null", in_root(ETC "10.conf")), 0);
	c = load(&log, 0);
	assert_string_equal(log.text, "");
	assert_false(c->force);
	assert_true(c->enabled);
}

/* One bad file is told in a line, and the rest of the configuration stands. */
static void test_bad_files(void **state)
{
	auto_free char *big = calloc(1, MIB + 2);
	auto_config Config *c = NULL;
	Log log;

	(void)state;
	assert_non_null(big);
	memset(big, '#', MIB + 1);
	put("/etc/vramd/vramd.conf", "[policy]\nForce=yes\nGrace=x\n");
	put_data(ETC "10-nul.conf", "[policy]\nForce=no\n\0\n", 20);
	put(ETC "20-big.conf", big);
	put(ETC "50-fine.conf", "[policy]\nDebounce=1s\nForse=no\n");
	assert_int_equal(mkdir(in_root(ETC "30-folder.conf"), 0755), 0);
	assert_int_equal(mkfifo(in_root(ETC "40-fifo.conf"), 0600), 0);
	assert_int_equal(symlink("nowhere", in_root(ETC "60-dangling.conf")), 0);
	assert_int_equal(symlink("70-loop.conf", in_root(ETC "70-loop.conf")), 0);

	c = load(&log, 7);
	assert_string_equal(
		log.text, "vramd.conf:3: 'Grace=x' in [policy] is not a time such as 250ms or 10s\n"
			  "10-nul.conf:0: has a NUL byte: not a text file\n"
			  "20-big.conf:0: larger than 1 MiB\n"
			  "30-folder.conf:0: not a regular file\n"
			  "40-fifo.conf:0: not a regular file\n"
			  "50-fine.conf:3: unknown key 'Forse=' in [policy]\n"
			  "70-loop.conf:0: cannot be read: Too many levels of symbolic links\n");
	assert_true(c->force);
	assert_int_equal(c->debounce_usec, USEC_PER_SEC);
}

static void test_bad_main_file(void **state)
{
	auto_config Config *c = NULL;
	Log log;

	(void)state;
	put(ETC "50.conf", "[policy]\nForce=yes\n");
	assert_int_equal(mkdir(in_root("/etc/vramd/vramd.conf"), 0755), 0);
	c = load(&log, 1);
	assert_string_equal(log.text, "vramd.conf:0: not a regular file\n");
	assert_true(c->force);
}

static void test_named_file(void **state)
{
	auto_config Config *c = NULL;
	Roots roots = { .etc = root };
	unsigned n_bad;
	Log log = { 0 };

	(void)state;
	put("/etc/vramd/vramd.conf", "[policy]\nEnabled=no\n");
	put("/my.conf", "[policy]\nForce=yes\nGrace=5s\n");
	put(ETC "50.conf", "[policy]\nGrace=7s\n");
	assert_int_equal(config_load(&roots, in_root("/my.conf"), collect, &log, &c, &n_bad), 0);
	assert_true(c->enabled);
	assert_true(c->force);
	assert_int_equal(c->grace_usec, 7 * USEC_PER_SEC);

	/* One that was asked for must be there; what the caller has stays his. */
	assert_int_equal(config_load(&roots, in_root("/none.conf"), collect, &log, &c, &n_bad),
			 -ENOENT);
	put_data("/my.conf", "\0", 1);
	assert_int_equal(config_load(&roots, in_root("/my.conf"), collect, &log, &c, &n_bad),
			 -EINVAL);
	assert_true(c->force);
}

/* A reload makes a new struct, in which nothing of the old one is left. */
static void test_reload(void **state)
{
	auto_config Config *old = NULL, *new = NULL, *untouched = NULL;
	Log log;

	(void)state;
	put("/etc/vramd/vramd.conf",
	    "[policy]\nForce=yes\nDenyGames=a\n[game 10]\nLow=1G\n[service s]\nLow=1\n");
	old = load(&log, 0);
	put("/etc/vramd/vramd.conf", "rubbish\n");
	new = load(&log, 1);
	assert_int_equal(config_new(&untouched), 0);
	assert_same_config(new, untouched);
	assert_true(old->force);
	assert_int_equal(old->n_games, 1);
}

static void test_contradictions(void **state)
{
	auto_config Config *c = NULL;
	Log log;

	(void)state;
	put("/etc/vramd/vramd.conf",
	    "[policy]\nGameMin=2G\nGameLow=1G\nAllowGames=10 20\nDenyGames=20\n"
	    "[user]\nAllow=alice\nDeny=bob alice\n"
	    "[game 10]\nMin=20%\nLow=10%\n[game exe=x]\nProtect=no\nLow=1G\n"
	    "[game 30]\nMin=2G\nLow=10%\n[game 40]\nMin=1G\nLow=1G\n");
	c = load(&log, 0);
	assert_string_equal(
		log.text,
		"vramd.conf:0: [policy] GameMin= is above GameLow=: low is raised to it\n"
		"vramd.conf:0: [game 10] Min= is above Low=: low is raised to it\n"
		"vramd.conf:0: [game exe=x] Protect=no leaves Min= and Low= without effect\n"
		"vramd.conf:0: [policy] AllowGames= and DenyGames= both name '20': it is denied\n"
		"vramd.conf:0: [user] Allow= and Deny= both name 'alice': it is denied\n");
}

/* --- Questions ------------------------------------------------------------------------------- */

static void test_find_game(void **state)
{
	auto_config Config *c = NULL;
	Log log;

	(void)state;
	assert_int_equal(
		parse(&c, &log,
		      "[game unit=app-steam-app10-*.scope]\nLow=1\n[game exe=Doom.exe]\nLow=2\n"
		      "[game 10]\nLow=3\n[game unit=app-*]\nLow=4\n"),
		0);
	assert_int_equal(config_find_game(c, 10, "doom.EXE", "app-steam-app10-1.scope")->low.value,
			 3);
	assert_int_equal(config_find_game(c, 11, "doom.EXE", "app-steam-app10-1.scope")->low.value,
			 2);
	assert_int_equal(config_find_game(c, 0, "quake.exe", "app-steam-app10-1.scope")->low.value,
			 1);
	assert_int_equal(config_find_game(c, 0, NULL, "app-x.scope")->low.value, 4);
	assert_null(config_find_game(c, 0, NULL, NULL));
	assert_null(config_find_game(c, 0, "doom", "x.scope"));
}

static void test_game_lists(void **state)
{
	auto_config Config *all = NULL, *some = NULL;
	Log log;

	(void)state;
	assert_int_equal(parse(&all, &log,
			       "[policy]\nDenyGames=10 firefox* app-launcher.scope Elden?Ring\n"),
			 0);
	assert_true(config_game_allowed(all, 11, "doom", "app-x.scope", "Doom"));
	assert_true(config_game_allowed(all, 0, NULL, NULL, NULL));
	assert_false(config_game_allowed(all, 10, "doom", "app-x.scope", "Doom"));
	assert_false(config_game_allowed(all, 0, "Firefox-bin", NULL, NULL));
	assert_false(config_game_allowed(all, 0, NULL, "app-launcher.scope", NULL));
	assert_true(config_game_allowed(all, 0, NULL, "App-Launcher.scope", NULL));
	assert_false(config_game_allowed(all, 0, NULL, NULL, "ELDEN RING"));

	assert_int_equal(parse(&some, &log, "[policy]\nAllowGames=10 20\nDenyGames=20\n"), 0);
	assert_true(config_game_allowed(some, 10, NULL, NULL, NULL));
	assert_false(config_game_allowed(some, 20, NULL, NULL, NULL));
	assert_false(config_game_allowed(some, 30, "doom", NULL, NULL));
}

static void test_user_lists(void **state)
{
	auto_config Config *all = NULL, *some = NULL, *denied = NULL;
	const struct passwd *me = getpwuid(getuid());
	char text[512] = "";
	Log log;

	(void)state;
	if (me) /* a static buffer, which the next look-up overwrites */
		(void)snprintf(text, sizeof(text), "[user]\nAllow=%u\nDeny=%s\n",
			       (unsigned)me->pw_uid, me->pw_name);
	assert_int_equal(parse(&all, &log, "[user]\nDeny=4000000001 no-such-user\n"), 0);
	assert_true(config_user_allowed(all, 4000000000));
	assert_false(config_user_allowed(all, 4000000001));
	assert_int_equal(parse(&some, &log, "[user]\nAllow=4000000001\n"), 0);
	assert_true(config_user_allowed(some, 4000000001));
	assert_false(config_user_allowed(some, 4000000000));
	if (!me)
		return;
	assert_int_equal(parse(&denied, &log, text), 0);
	assert_false(config_user_allowed(denied, getuid()));
}

static void test_print_round_trip(void **state)
{
	static const char *const texts[] = {
		"",
		"[policy]\nEnabled=no\nOwnership=share\nReserve=1025\nGameLow=3M\nGameMin="
		"max\nDebounce=1us\n"
		"Grace=1001ms\nDenyGames=a\n b\n[compositor]\nFloor=0\nUnits=\n[menu]\nShare=5T\n"
		"[background]\nShare=0%\nMax=100%\n[kernel]\nThrottleHard=keep\nThrottleSoft=1500ms\n"
		"ThrottleLevels=8\nContigWindow=no\nGfxoffDelay=0\n[focus]\nWorker=no\n[user]\nAllow=x y z\n[game 5]\nName=x=y "
		"[z]\nMin=1K\nThrottleHard=0\nEvictPriority=keep\n"
		"[game exe=A b]\nProtect=no\n[game unit=*]\nLow=1\n[service a.slice]\nMax=0\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		auto_config Config *a = NULL, *b = NULL;
		auto_free char *text = NULL;
		Log log;

		assert_int_equal(parse(&a, &log, texts[i]), 0);
		text = print(a);
		assert_int_equal(parse(&b, &log, text), 0);
		assert_string_equal(log.text, "");
		assert_same_config(a, b);
		assert_int_equal(b->n_games, a->n_games);
	}
}

/* conf/vramd.conf shows all keys, in their sections, with the defaults: taken out of its comments
 * it changes nothing. __FILE__ is relative to the build folder, where meson runs tests. */
static void test_shipped_file(void **state)
{
	auto_free char *path = NULL, *text = NULL, *bare = NULL, *expected = NULL, *shown = NULL;
	auto_config Config *c = NULL, *defaults = NULL;
	const char *slash = strrchr(__FILE__, '/');
	Log log;
	char *d;

	(void)state;
	assert_true(asprintf(&path, "%.*s/../../conf/vramd.conf", (int)(slash - __FILE__),
			     __FILE__) > 0);
	assert_int_equal(read_file_at(AT_FDCWD, path, MIB, &text, NULL), 0);
	d = bare = malloc(strlen(text) + 1);
	assert_non_null(bare);
	for (const char *s = text; *s; s++)
		if (*s != '#' || (s > text && s[-1] != '\n') || s[1] == ' ' || s[1] == '\n')
			*d++ = *s;
	*d = '\0';
	assert_int_equal(parse(&c, &log, bare), 0);
	assert_string_equal(log.text, "");

	assert_int_equal(parse(&defaults, &log, "[game 1091500]\nName=\n[service ollama]\nLow=\n"),
			 0);
	assert_same_config(c, defaults);
	/* Nothing is missing either: without comments and empty lines both are the same text. */
	expected = print(defaults);
	shown = strdup(bare);
	strip(expected);
	strip(shown);
	assert_string_equal(shown, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_key),
		cmocka_unit_test(test_merge_and_reset),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_list_limit),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_all_bad_lines),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_section_limit),
		cmocka_unit_test_setup_teardown(test_no_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_precedence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_masking, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_main_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_named_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reload, setup, teardown),
		cmocka_unit_test_setup_teardown(test_contradictions, setup, teardown),
		cmocka_unit_test(test_find_game),
		cmocka_unit_test(test_game_lists),
		cmocka_unit_test(test_user_lists),
		cmocka_unit_test(test_print_round_trip),
		cmocka_unit_test(test_shipped_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
