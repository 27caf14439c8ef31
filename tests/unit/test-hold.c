/* SPDX-License-Identifier: MIT */
/* Holds live as long as a copy of their descriptor does. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/pidfd.h>

#include <cmocka.h>

#include "bus-names.h"
#include "hold.h"

#define UID 1000

typedef struct State {
	sd_event *event;
	HoldTable *table;
	Process *self;
	unsigned released;
} State;

static void on_released(const Hold *hold, void *userdata)
{
	State *s = userdata;

	assert_string_equal(hold->who, "test");
	s->released++;
}

static int setup(void **state)
{
	State *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	assert_true(sd_event_new(&s->event) >= 0);
	assert_int_equal(hold_table_new(s->event, on_released, s, &s->table), 0);
	s->self = calloc(1, sizeof(*s->self));
	assert_non_null(s->self);
	*s->self = (Process){ .n_ref = 1, .pid = getpid(), .uid = UID, .pidfd = pidfd_open(getpid(), 0) };
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	State *s = *state;

	hold_table_free(s->table);
	assert_int_equal(s->self->n_ref, 1);
	process_unref(s->self);
	sd_event_unref(s->event);
	free(s);
	return 0;
}

static int take(State *s, uid_t uid, int *ret_fd)
{
	Hold *h;

	return hold_new(s->table, uid, getpid(), "test", "because", s->self, ret_fd, &h);
}

static void test_closing_releases(void **state)
{
	State *s = *state;
	int fd;

	assert_int_equal(take(s, UID, &fd), 0);
	assert_int_equal(hold_count(s->table), 1);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(sd_event_run(s->event, 0), 0);
	close_fd(fd);
	assert_true(sd_event_run(s->event, USEC_PER_SEC) > 0);
	assert_int_equal(s->released, 1);
	assert_int_equal(hold_count(s->table), 0);
}

static void test_a_copy_keeps_it(void **state)
{
	State *s = *state;
	int fd, copy;

	assert_int_equal(take(s, UID, &fd), 0);
	copy = dup(fd);
	close_fd(fd);
	assert_int_equal(sd_event_run(s->event, 10 * USEC_PER_MSEC), 0);
	assert_int_equal(hold_count(s->table), 1);
	close_fd(copy);
	assert_true(sd_event_run(s->event, USEC_PER_SEC) > 0);
	assert_int_equal(hold_count(s->table), 0);
}

static void test_limits(void **state)
{
	State *s = *state;
	int fds[VRAMD_HOLDS_TOTAL], fd = -EBADF;
	size_t n = 0;

	for (uid_t uid = 0; uid < VRAMD_HOLDS_TOTAL / VRAMD_HOLDS_PER_UID; uid++) {
		for (int i = 0; i < VRAMD_HOLDS_PER_UID; i++)
			assert_int_equal(take(s, uid, &fds[n++]), 0);
		assert_int_equal(take(s, uid, &fd), -EDQUOT);
	}
	assert_int_equal(fd, -EBADF);
	assert_int_equal(n, VRAMD_HOLDS_TOTAL);
	assert_int_equal(take(s, 99999, &fd), -EDQUOT);
	close_fd(fds[0]);
	while (hold_count(s->table) == VRAMD_HOLDS_TOTAL)
		assert_true(sd_event_run(s->event, USEC_PER_SEC) > 0);
	assert_int_equal(take(s, 99999, &fds[0]), 0);
	for (size_t i = 0; i < n; i++)
		close_fd(fds[i]);
}

static void test_newest(void **state)
{
	State *s = *state;
	int a, b;

	assert_null(hold_newest(s->table, UID));
	assert_int_equal(take(s, UID, &a), 0);
	assert_int_equal(take(s, 0, &b), 0);
	/* Whose process it is counts, not who pays for the hold. */
	assert_ptr_equal(hold_newest(s->table, UID), hold_at(s->table, 1));
	assert_null(hold_newest(s->table, 0));
	close_fd(a);
	close_fd(b);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(test_closing_releases),
		TEST(test_a_copy_keeps_it),
		TEST(test_limits),
		TEST(test_newest),
	};

	(void)alarm(20);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
