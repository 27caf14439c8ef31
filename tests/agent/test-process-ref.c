/* SPDX-License-Identifier: MIT */
/* Numbers of processes that may be those of others by now. Real processes. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "process-ref.h"

static pid_t new_process(const char *comm)
{
	int ready[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_NAME, comm);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!write(ready[1], "x", 1);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	return pid;
}

static void end_process(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static void test_open(void **s _unused_)
{
	pid_t pid = new_process("a) R 1 (b");
	ProcessRef p = { 7, 7 };

	/* The name is no trap for the fields behind it. */
	assert_int_equal(process_ref_open(pid, boottime_usec(), NULL, &p), 0);
	assert_int_equal(p.pid, pid);
	close_fd(p.pidfd);
	assert_int_equal(process_ref_open(pid, boottime_usec(), "a) R", &p), 0);
	close_fd(p.pidfd);
	p.pid = 7;
	assert_int_equal(process_ref_open(pid, boottime_usec(), "gamescope", &p), -ESRCH);
	/* It began after its number was told: it has the number of another one. */
	assert_int_equal(process_ref_open(pid, boottime_usec() - 10 * USEC_PER_SEC, NULL, &p), -ESRCH);
	end_process(pid);
	assert_int_equal(process_ref_open(pid, boottime_usec(), NULL, &p), -ESRCH);
	assert_int_equal(process_ref_open(0, boottime_usec(), NULL, &p), -ESRCH);
	assert_int_equal(process_ref_open(-1, boottime_usec(), NULL, &p), -ESRCH);
	assert_int_equal(p.pid, 7);
}

static void test_somebody_else(void **s _unused_)
{
	ProcessRef p;
	pid_t pid;

	if (getuid() != 0)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!setuid(12345);
		(void)pause();
		_exit(0);
	}
	/* It is ours until it has become the other one. */
	while (process_ref_open(pid, boottime_usec(), NULL, &p) == 0)
		close_fd(p.pidfd);
	assert_int_equal(process_ref_open(pid, boottime_usec(), NULL, &p), -EPERM);
	end_process(pid);
}

static void test_zombie(void **s _unused_)
{
	pid_t pid = new_process("zombie");
	ProcessRef p;

	(void)kill(pid, SIGKILL);
	while (process_ref_open(pid, boottime_usec(), NULL, &p) == 0)
		close_fd(p.pidfd);
	assert_int_equal(process_ref_open(pid, boottime_usec(), NULL, &p), -ESRCH);
	(void)waitpid(pid, NULL, 0);
}

static void test_set(void **s _unused_)
{
	pid_t a = new_process("a"), b = new_process("b");
	ProcessSet set = {};
	ProcessRef p, first;
	uint64_t now = boottime_usec();

	process_set_begin(&set);
	assert_int_equal(process_set_get(&set, a, now, &first), 0);
	assert_int_equal(process_set_get(&set, b, now, &p), 0);
	assert_int_equal(process_set_get(&set, a, now, &p), 0);
	process_set_end(&set);
	assert_int_equal(set.n, 2);
	assert_int_equal(p.pidfd, first.pidfd);

	/* Named again: not opened again. */
	process_set_begin(&set);
	assert_int_equal(process_set_get(&set, a, now, &p), 0);
	process_set_end(&set);
	assert_int_equal(set.n, 1);
	assert_int_equal(p.pidfd, first.pidfd);

	/* While it is named its number is nobody else's. */
	end_process(a);
	process_set_begin(&set);
	assert_int_equal(process_set_get(&set, a, now, &p), -ESRCH);
	process_set_end(&set);
	assert_int_equal(set.n, 1);
	process_set_begin(&set);
	process_set_end(&set);
	assert_int_equal(set.n, 0);
	process_set_done(&set);
	end_process(b);
}

static void test_environ(void **s _unused_)
{
	char comm[16];
	ProcessRef p;

	assert_int_equal(process_ref_open(getpid(), boottime_usec(), NULL, &p), 0);
	assert_true(process_ref_has_environ(&p, "AGENT_TEST"));
	assert_false(process_ref_has_environ(&p, "AGENT_TES"));
	assert_false(process_ref_has_environ(&p, "AGENT_EMPTY"));
	assert_false(process_ref_has_environ(&p, "1"));
	process_ref_get_comm(&p, comm);
	assert_string_equal(comm, "test-agent-proc");
	close_fd(p.pidfd);
}

int main(int argc _unused_, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),    cmocka_unit_test(test_somebody_else), cmocka_unit_test(test_zombie),
		cmocka_unit_test(test_set),     cmocka_unit_test(test_environ),
	};

	/* What was set later is not in /proc/self/environ. */
	if (!getenv("AGENT_TEST")) {
		(void)setenv("AGENT_TEST", "1", 1);
		(void)setenv("AGENT_EMPTY", "", 1);
		(void)execv("/proc/self/exe", argv);
		return EXIT_FAILURE;
	}
	(void)prctl(PR_SET_NAME, "test-agent-proc");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
