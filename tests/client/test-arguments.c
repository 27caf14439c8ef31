/* SPDX-License-Identifier: MIT */
/* What libvramd refuses by itself, before anybody is asked. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include <cmocka.h>

#include <vramd.h>

#define MOST_RUNNING 14

typedef struct Fixture {
	vramd *v;
	int self, file; /* a pidfd and none */
} Fixture;

static int set_up(void **state)
{
	static Fixture f;

	*state = &f;
	f.self = pidfd_open(getpid(), 0);
	f.file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return f.self < 0 || f.file < 0 ? -1 : vramd_open("test", &f.v);
}

static int tear_down(void **state)
{
	Fixture *f = *state;

	vramd_close(f->v);
	close(f->self);
	close(f->file);
	return 0;
}

static void test_open(void **state)
{
	char name[256 + 1] = {};
	vramd *v = NULL;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	assert_int_equal(vramd_open(NULL, &v), -EINVAL);
	assert_int_equal(vramd_open("", &v), -EINVAL);
	assert_int_equal(vramd_open(name, &v), -EINVAL);
	assert_null(v);
	assert_int_equal(vramd_open(name + 1, &v), 0);
	assert_null(vramd_close(v));
	assert_null(vramd_close(NULL));
}

static void test_no_pidfd(void **state)
{
	Fixture *f = *state;

	assert_int_equal(vramd_report_focus(f->v, f->file, 10), -EBADF);
	assert_int_equal(vramd_report_window(f->v, f->file, 10), -EBADF);
	assert_int_equal(vramd_set_compositor(f->v, f->file), -EBADF);
	assert_int_equal(vramd_set_running(f->v, &f->file, 1), -EBADF);
	assert_int_equal(vramd_hold(f->v, f->file, "test", "a file"), -EBADF);
	assert_int_equal(vramd_hold(f->v, -1, "test", "nothing"), -EBADF);
	assert_null(vramd_get_error(f->v));
}

static void test_menu(void **state)
{
	Fixture *f = *state;

	assert_int_equal(vramd_set_menu(f->v, VRAMD_MENU_OPEN), 0);
	assert_int_equal(vramd_set_menu(f->v, VRAMD_MENU_OPEN + 1), -EINVAL);
	assert_int_equal(vramd_set_menu(f->v, (vramd_menu)-1), -EINVAL);
}

/* A bus with its default limits throws out whoever sends more, again and again. */
static void test_running(void **state)
{
	Fixture *f = *state;
	int running[MOST_RUNNING + 1];

	for (size_t i = 0; i <= MOST_RUNNING; i++)
		running[i] = f->self;
	assert_int_equal(vramd_set_running(f->v, running, MOST_RUNNING), 0);
	assert_int_equal(vramd_set_running(f->v, running, MOST_RUNNING + 1), -E2BIG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_open, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_pidfd, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_menu, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_running, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
