/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "process.h"
#include "remove-tree.h"

static const Roots real = { .proc = (char *)"/proc" };

/* A child that waits to be killed, and a /proc of our own that describes it. */
typedef struct Fixture {
	pid_t pid;
	int pidfd;
	char root[32];
	Roots roots;
} Fixture;

static int setup(void **state)
{
	Fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	strcpy(f->root, "/tmp/test-process-XXXXXX");
	if (!mkdtemp(f->root))
		return -1;
	f->roots = (Roots){ .proc = f->root, .relocated = true };
	f->pid = fork();
	if (f->pid == 0) {
		for (;;)
			pause();
	}
	f->pidfd = f->pid > 0 ? pidfd_open(f->pid, 0) : -1;
	*state = f;
	return f->pidfd < 0 ? -1 : 0;
}

static void reap(Fixture *f)
{
	if (f->pid > 0) {
		(void)kill(f->pid, SIGKILL);
		(void)waitpid(f->pid, NULL, 0);
	}
	f->pid = 0;
}

static int teardown(void **state)
{
	Fixture *f = *state;

	reap(f);
	close_fd(f->pidfd);
	remove_tree(f->root);
	free(f);
	return 0;
}

static void put(const Fixture *f, const char *file, const char *text)
{
	char path[128];
	FILE *out;

	(void)snprintf(path, sizeof(path), "%s/%d", f->root, f->pid);
	(void)mkdir(path, 0755);
	(void)snprintf(path, sizeof(path), "%s/%d/%s", f->root, f->pid, file);
	out = fopen(path, "we");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

static void test_parse_cgroup(_unused_ void **state)
{
	static const struct {
		const char *text;
		int r;
		const char *path;
	} cases[] = {
		{ "0::/\n", 0, "/" },
		{ "0::/user.slice/app.slice/a.scope\n", 0, "/user.slice/app.slice/a.scope" },
		{ "0::/a b", 0, "/a b" },
		{ "9:name=systemd:/x\n4:memory:/y\n0::/z\n", 0, "/z" },
		{ "0::/z\n1:cpu:/x\n", 0, "/z" },
		{ "0::/system.slice/gone.service (deleted)\n", -ENOENT },
		{ "0::/deleted\n", 0, "/deleted" },
		{ "10::/x\n", -EBADMSG },
		{ "1:cpu:/x\n", -EBADMSG },
		{ "x0::/y\n", -EBADMSG },
		{ "", -EBADMSG },
		{ "0::\n", -EBADMSG },
		{ "0::", -EBADMSG },
		{ "0::relative\n", -EBADMSG },
		{ "0::/../../other\n", -EBADMSG },
		{ "0::/a//b\n", -EBADMSG },
		{ "0::/a/\n", -EBADMSG },
		{ "0::/a\tb\n", -EBADMSG },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_free char *path = NULL;
		int r = process_parse_cgroup(cases[i].text, &path);

		if (r != cases[i].r)
			fail_msg("\"%s\": %d instead of %d", cases[i].text, r, cases[i].r);
		if (r >= 0)
			assert_string_equal(path, cases[i].path);
		else
			assert_null(path);
	}
}

static void test_real_process(void **state)
{
	Fixture *f = *state;
	auto_process Process *p = NULL, *again = NULL;
	auto_free char *text = NULL, *expected = NULL;

	assert_int_equal(read_file_at(AT_FDCWD, "/proc/self/cgroup", 4096, &text, NULL), 0);
	assert_int_equal(process_parse_cgroup(text, &expected), 0);

	assert_int_equal(process_new(&real, f->pidfd, &p), 0);
	/* It has its own fd. */
	assert_int_not_equal(p->pidfd, f->pidfd);
	assert_true(fcntl(p->pidfd, F_GETFD) & FD_CLOEXEC);
	f->pidfd = close_fd(f->pidfd);
	assert_int_equal(p->pid, f->pid);
	assert_int_equal(p->uid, getuid());
	assert_string_equal(p->cgroup, expected);
	assert_true(process_is_alive(p));
	assert_int_equal(process_refresh(&real, p), 0);

	/* A zombie has ended, though its /proc is still there. */
	assert_int_equal(kill(f->pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)f->pid, &(siginfo_t){}, WEXITED | WNOWAIT), 0);
	assert_false(process_is_alive(p));
	assert_int_equal(process_refresh(&real, p), -ESRCH);
	assert_int_equal(process_new(&real, p->pidfd, &again), -ESRCH);

	reap(f);
	assert_false(process_is_alive(p));
	assert_int_equal(process_refresh(&real, p), -ESRCH);
	assert_int_equal(process_new(&real, p->pidfd, &again), -ESRCH);
	assert_null(again);
	assert_string_equal(p->cgroup, expected);
}

static void test_id(void **state)
{
	Fixture *f = *state;
	auto_close int again = pidfd_open(f->pid, 0), self = pidfd_open(getpid(), 0);
	auto_process Process *p = NULL;
	uint64_t id, other;

	assert_int_equal(process_new(&real, f->pidfd, &p), 0);
	assert_int_equal(process_get_id(again, &id), 0);
	assert_int_equal(id, p->id);
	assert_int_equal(process_get_id(self, &other), 0);
	assert_int_not_equal(id, other);
	assert_int_equal(process_get_id(-1, &id), -EBADF);
}

static void test_not_a_pidfd(_unused_ void **state)
{
	auto_close int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	auto_process Process *p = NULL;
	int fds[2];

	assert_true(file >= 0);
	assert_int_equal(process_new(&real, file, &p), -EBADF);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(process_new(&real, fds[0], &p), -EBADF);
	close_fd(fds[1]);
	close_fd(fds[0]);
	assert_int_equal(process_new(&real, fds[0], &p), -EBADF);
	assert_int_equal(process_new(&real, -1, &p), -EBADF);
	assert_null(p);
}

static void test_moves(void **state)
{
	Fixture *f = *state;
	auto_process Process *p = NULL;

	put(f, "status", "Name:\tUid:\t7\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n");
	put(f, "cgroup", "0::/user.slice/steam.scope\n");
	assert_int_equal(process_new(&f->roots, f->pidfd, &p), 0);
	assert_int_equal(p->uid, 1000);
	assert_string_equal(p->cgroup, "/user.slice/steam.scope");
	assert_int_equal(process_refresh(&f->roots, p), 0);

	put(f, "cgroup", "0::/user.slice/game.scope\n");
	assert_int_equal(process_refresh(&f->roots, p), 1);
	assert_string_equal(p->cgroup, "/user.slice/game.scope");
	assert_int_equal(process_refresh(&f->roots, p), 0);

	put(f, "cgroup", "0::/user.slice/game.scope (deleted)\n");
	assert_int_equal(process_refresh(&f->roots, p), -ENOENT);
	put(f, "cgroup", "0::/..\n");
	assert_int_equal(process_refresh(&f->roots, p), -EBADMSG);
	assert_string_equal(p->cgroup, "/user.slice/game.scope");
}

static void test_bad_proc(void **state)
{
	static const char *const bad[] = { "", "Uid:\n", "Uid:\tx\n", "Uid:\t-1\n",
					   "Uid:\t4294967296\n",
					   "Uid:\t99999999999999999999999999\n", "Gid:\t5\n" };
	Fixture *f = *state;
	auto_process Process *p = NULL;

	assert_int_equal(process_new(&f->roots, f->pidfd, &p), -ESRCH);
	put(f, "cgroup", "0::/a\n");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		put(f, "status", bad[i]);
		assert_int_equal(process_new(&f->roots, f->pidfd, &p), -EBADMSG);
	}
	put(f, "status", "Uid:\t1000\n");
	put(f, "cgroup", "0::/a (deleted)\n");
	assert_int_equal(process_new(&f->roots, f->pidfd, &p), -ENOENT);
	put(f, "cgroup", "1:cpu:/\n");
	assert_int_equal(process_new(&f->roots, f->pidfd, &p), -EBADMSG);
	assert_null(p);
	/* All the same: who has ended has ended. */
	assert_int_equal(kill(f->pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)f->pid, &(siginfo_t){}, WEXITED | WNOWAIT), 0);
	assert_int_equal(process_new(&f->roots, f->pidfd, &p), -ESRCH);
}

static void test_references(void **state)
{
	Fixture *f = *state;
	auto_process Process *p = NULL;
	int fd;

	assert_int_equal(process_new(&real, f->pidfd, &p), 0);
	fd = p->pidfd;
	assert_ptr_equal(process_ref(p), p);
	assert_null(process_unref(p));
	assert_true(process_is_alive(p));
	p = process_unref(p);
	assert_null(p);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_null(process_unref(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_cgroup),
		cmocka_unit_test_setup_teardown(test_real_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_id, setup, teardown),
		cmocka_unit_test(test_not_a_pidfd),
		cmocka_unit_test_setup_teardown(test_moves, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_proc, setup, teardown),
		cmocka_unit_test_setup_teardown(test_references, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
