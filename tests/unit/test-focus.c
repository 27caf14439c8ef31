/* SPDX-License-Identifier: MIT */
/* Who is believed, and for how long. Real processes, a real event loop, short times. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "focus.h"

#define UID 1000
#define DEBOUNCE (20 * USEC_PER_MSEC)
#define GRACE (60 * USEC_PER_MSEC)

typedef struct State {
	sd_event *event;
	Focus *focus;
	Process *game, *other;
	unsigned changes;
} State;

static Process *new_process(void)
{
	Process *p = calloc(1, sizeof(*p));
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_non_null(p);
	*p = (Process){ .n_ref = 1, .pid = pid, .uid = UID, .pidfd = pidfd_open(pid, 0), .cgroup = strdup("/x") };
	assert_true(p->pidfd >= 0);
	return p;
}

static void end_process(Process *p)
{
	(void)kill(p->pid, SIGKILL);
	(void)waitpid(p->pid, NULL, 0);
}

static bool is_game(const Process *p, void *userdata)
{
	return p == ((State *)userdata)->game;
}

static void on_change(uid_t uid, void *userdata)
{
	State *s = userdata;

	assert_int_equal(uid, UID);
	s->changes++;
}

static int setup(void **state)
{
	State *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	assert_true(sd_event_new(&s->event) >= 0);
	assert_int_equal(focus_new(s->event, on_change, is_game, s, &s->focus), 0);
	focus_set_times(s->focus, DEBOUNCE, GRACE);
	s->game = new_process();
	s->other = new_process();
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	State *s = *state;

	focus_free(s->focus);
	end_process(s->game);
	end_process(s->other);
	process_unref(s->game);
	process_unref(s->other);
	sd_event_unref(s->event);
	free(s);
	return 0;
}

static FocusReport *new_report(const char *sender, const char *source, Process *game)
{
	FocusReport *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	*r = (FocusReport){ .sender = strdup(sender), .source = strdup(source), .menu = MENU_CLOSED,
			    .game = game ? process_ref(game) : NULL };
	return r;
}

static int report(State *s, const char *sender, const char *source, Process *game)
{
	return focus_report(s->focus, UID, new_report(sender, source, game));
}

static const Process *front(State *s)
{
	const FocusReport *r = focus_get(s->focus, UID);

	return r ? r->game : NULL;
}

/* Lets the loop run for so long. */
static void run_for(State *s, uint64_t usec)
{
	uint64_t start, now;

	assert_true(sd_event_now(s->event, CLOCK_MONOTONIC, &start) >= 0);
	for (now = start; now < start + usec;) {
		(void)sd_event_run(s->event, start + usec - now);
		assert_true(sd_event_now(s->event, CLOCK_MONOTONIC, &now) >= 0);
	}
}

static void test_ranks(void **state)
{
	static const char *const order[] = { "manual", "gamescope", "kwin", "gnome", "x11", "foreign-toplevel",
					     "gamemode", "units" };

	(void)state;
	for (size_t i = 1; i < ARRAY_SIZE(order); i++)
		assert_true(focus_source_rank(order[i - 1]) < focus_source_rank(order[i]));
	assert_int_equal(focus_source_rank("my-own-compositor"), focus_source_rank("kwin"));
}

static void test_newest_of_equals_wins(void **state)
{
	State *s = *state;

	assert_int_equal(report(s, ":1.1", "kwin", s->game), 1);
	assert_ptr_equal(front(s), s->game);
	assert_int_equal(report(s, ":1.2", "sway", s->other), 1);
	assert_ptr_equal(front(s), s->other);
	assert_int_equal(report(s, ":1.3", "x11", s->game), 1);
	assert_ptr_equal(front(s), s->other);
	assert_int_equal(report(s, ":1.4", "manual", s->game), 1);
	assert_ptr_equal(front(s), s->game);
	assert_int_equal(focus_withdraw(s->focus, UID, ":1.4"), 1);
	assert_ptr_equal(front(s), s->other);
}

static void test_same_again_is_no_news(void **state)
{
	State *s = *state;
	unsigned before;

	assert_int_equal(report(s, ":1.1", "kwin", s->game), 1);
	before = s->changes;
	assert_int_equal(report(s, ":1.1", "kwin", s->game), 0);
	assert_int_equal(s->changes, before);
}

static void test_old_number_is_ignored(void **state)
{
	State *s = *state;
	FocusReport *r = new_report(":1.1", "kwin", s->game);

	r->seq = 7;
	assert_int_equal(focus_report(s->focus, UID, r), 1);
	r = new_report(":1.1", "kwin", s->other);
	r->seq = 6;
	assert_int_equal(focus_report(s->focus, UID, r), 0);
	assert_ptr_equal(front(s), s->game);
}

static void test_short_nobody_is_ignored(void **state)
{
	State *s = *state;

	assert_int_equal(report(s, ":1.1", "kwin", s->game), 1);
	assert_int_equal(report(s, ":1.1", "kwin", NULL), 1);
	assert_ptr_equal(front(s), s->game);
	/* The same one again, as gamescope's own code gets wrong. */
	assert_int_equal(report(s, ":1.1", "kwin", s->game), 1);
	run_for(s, 3 * DEBOUNCE);
	assert_ptr_equal(front(s), s->game);
	assert_int_equal(report(s, ":1.1", "kwin", NULL), 1);
	run_for(s, 3 * DEBOUNCE);
	assert_null(front(s));
}

static int report_window(State *s, const char *sender, Process *p)
{
	FocusReport *r = new_report(sender, "kwin", p);

	r->window = true;
	return focus_report(s->focus, UID, r);
}

/* To the debounce, any other window is nobody. */
static void test_windows(void **state)
{
	State *s = *state;

	assert_int_equal(report_window(s, ":1.1", s->game), 1);
	assert_int_equal(report_window(s, ":1.1", s->other), 1);
	assert_ptr_equal(front(s), s->game);
	assert_int_equal(report_window(s, ":1.1", s->game), 1);
	run_for(s, 3 * DEBOUNCE);
	assert_ptr_equal(front(s), s->game);
	assert_int_equal(report_window(s, ":1.1", s->other), 1);
	run_for(s, 3 * DEBOUNCE);
	assert_ptr_equal(front(s), s->other);
	/* The same process as a game is news. */
	assert_int_equal(report(s, ":1.1", "kwin", s->other), 1);
}

static void test_last_word_has_grace(void **state)
{
	State *s = *state;

	assert_int_equal(report(s, ":1.1", "kwin", s->game), 1);
	(void)sd_event_run(s->event, 0);
	focus_sender_gone(s->focus, ":1.1");
	run_for(s, GRACE / 3);
	assert_ptr_equal(front(s), s->game);
	run_for(s, GRACE + 3 * DEBOUNCE);
	assert_null(focus_get(s->focus, UID));
}

static void test_source_back_ends_grace(void **state)
{
	State *s = *state;

	assert_int_equal(report(s, ":1.1", "kwin", s->game), 1);
	(void)sd_event_run(s->event, 0);
	focus_sender_gone(s->focus, ":1.1");
	assert_int_equal(report(s, ":1.9", "kwin", s->other), 1);
	assert_ptr_equal(front(s), s->other);
	run_for(s, GRACE + 3 * DEBOUNCE);
	assert_ptr_equal(front(s), s->other);
}

/* A loser's games have a share as well. */
static void test_news_of_a_loser(void **state)
{
	State *s = *state;
	unsigned before;

	assert_int_equal(report(s, ":1.1", "gamescope", s->game), 1);
	before = s->changes;
	assert_int_equal(report(s, ":1.2", "x11", s->other), 1);
	assert_int_equal(s->changes, before + 1);
	assert_int_equal(focus_withdraw(s->focus, UID, ":1.2"), 1);
	assert_int_equal(s->changes, before + 2);
	assert_ptr_equal(front(s), s->game);
}

static void count_gone(_unused_ uid_t uid, _unused_ const FocusReport *r, _unused_ bool wins, bool gone, void *userdata)
{
	*(unsigned *)userdata += gone;
}

static unsigned n_gone(const State *s)
{
	unsigned n = 0;

	focus_each(s->focus, count_gone, &n);
	return n;
}

static void test_who_has_left(void **state)
{
	State *s = *state;

	assert_int_equal(report(s, ":1.1", "kwin", s->game), 1);
	assert_int_equal(report(s, ":1.2", "x11", s->other), 1);
	(void)sd_event_run(s->event, 0);
	assert_int_equal(n_gone(s), 0);
	/* The one that counts. */
	focus_sender_gone(s->focus, ":1.1");
	assert_int_equal(n_gone(s), 1);
	focus_sender_gone(s->focus, ":1.2");
	assert_int_equal(n_gone(s), 2);
	/* One of them has no grace any more, and is only kept. */
	assert_int_equal(report(s, ":1.9", "x11", NULL), 1);
	assert_int_equal(focus_withdraw(s->focus, UID, ":1.1"), 1);
	assert_ptr_equal(front(s), s->game);
	assert_int_equal(n_gone(s), 1);
}

static void test_dead_game_is_nobody_at_once(void **state)
{
	State *s = *state;
	Process *p = new_process();

	assert_int_equal(report(s, ":1.1", "kwin", p), 1);
	assert_int_equal(report(s, ":1.2", "x11", s->game), 1);
	end_process(p);
	focus_process_gone(s->focus, p);
	/* kwin still has the better word, and it is now: nobody. */
	assert_true(s->changes > 1);
	assert_false(process_is_alive(focus_get(s->focus, UID)->game));
	process_unref(p);
}

static void test_persistent_ends_with_its_game(void **state)
{
	State *s = *state;
	Process *p = new_process();

	assert_int_equal(report(s, ":1.1", "kwin", s->game), 1);
	assert_int_equal(report(s, "", "manual", p), 1);
	assert_ptr_equal(front(s), p);
	end_process(p);
	focus_process_gone(s->focus, p);
	assert_ptr_equal(front(s), s->game);
	process_unref(p);
}

static void test_withdraw_ends_persistent(void **state)
{
	State *s = *state;

	assert_int_equal(report(s, "", "manual", s->game), 1);
	assert_int_equal(focus_withdraw(s->focus, UID + 1, ":1.5"), 0);
	/* An agent that ends takes back what it said itself. */
	assert_int_equal(report(s, ":1.6", "kwin", s->other), 1);
	assert_int_equal(focus_withdraw(s->focus, UID, ":1.6"), 1);
	assert_ptr_equal(front(s), s->game);
	assert_int_equal(focus_withdraw(s->focus, UID, ":1.5"), 1);
	run_for(s, 3 * DEBOUNCE);
	assert_null(focus_get(s->focus, UID));
}

static void test_senders_are_limited(void **state)
{
	State *s = *state;
	char sender[16];

	for (unsigned i = 0; i < FOCUS_REPORTS_PER_UID; i++) {
		(void)snprintf(sender, sizeof(sender), ":1.%u", i);
		assert_int_equal(report(s, sender, "kwin", s->game), 1);
	}
	assert_int_equal(report(s, ":1.99", "kwin", s->game), -EDQUOT);
	assert_int_equal(report(s, ":1.3", "kwin", s->other), 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranks),
		TEST(test_newest_of_equals_wins),
		TEST(test_same_again_is_no_news),
		TEST(test_old_number_is_ignored),
		TEST(test_short_nobody_is_ignored),
		TEST(test_windows),
		TEST(test_last_word_has_grace),
		TEST(test_source_back_ends_grace),
		TEST(test_news_of_a_loser),
		TEST(test_who_has_left),
		TEST(test_dead_game_is_nobody_at_once),
		TEST(test_persistent_ends_with_its_game),
		TEST(test_withdraw_ends_persistent),
		TEST(test_senders_are_limited),
	};

	(void)alarm(20);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
