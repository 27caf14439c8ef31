/* SPDX-License-Identifier: MIT */
/* bench-report: how long libvramd keeps a compositor that makes the two calls of client/GAMESCOPE.md. Two games take turns
 * in front, with a menu over one of them; then the same is said once more. */
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "figures.h"
#include "parse.h"
#include "vramd.h"

#define ROUNDS 1000
#define PAUSE_MSEC 2      /* between two: vramd and the bus are done with the last one */
#define CONNECT_MSEC 2000 /* silence after which the connection has been made */
#define MESSAGE_SIZE 400  /* about what a report has */

_printf_(1, 2) static _Noreturn void die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fputs("bench-report: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(EXIT_FAILURE);
}

static void check(int r, const char *what)
{
	if (r < 0)
		die("%s: %s", what, strerror(-r));
}

static void process_for(vramd *v, int msec)
{
	struct pollfd p = { .fd = vramd_get_fd(v), .events = POLLIN };

	while (poll(&p, 1, msec) > 0) {
		int r = vramd_process(v);

		if (r < 0)
			die("vramd_process: %s", r == -EREMOTEIO ? vramd_get_error(v) : strerror(-r));
	}
}

static double tell(vramd *v, int pidfd, vramd_menu menu)
{
	double start = now_usec();
	int r = vramd_set_menu(v, menu);

	if (r >= 0)
		r = vramd_report_focus(v, pidfd, 0);
	start = now_usec() - start;
	check(r, "vramd_report_focus");
	return start;
}

/* What nobody can do without: a copy of the descriptor, and one message with it. */
static double send_bare(const int fds[2], int pidfd)
{
	static char text[MESSAGE_SIZE];
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec iov = { text, sizeof(text) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	double usec = now_usec();
	int copy = dup(pidfd);

	memcpy(CMSG_DATA(&control.header), &copy, sizeof(copy));
	if (copy < 0 || sendmsg(fds[0], &m, MSG_NOSIGNAL) < 0)
		die("sendmsg: %m");
	(void)close(copy);
	usec = now_usec() - usec;
	if (recv(fds[1], text, sizeof(text), 0) < 0) /* without room for it, the descriptor is closed */
		die("recv: %m");
	return usec;
}

static void print(const char *name, double *usec)
{
	double p50 = quantile(usec, ROUNDS, 0.5), p99 = quantile(usec, ROUNDS, 0.99);

	printf("report %s: %.1f us p50, %.1f us p99, %.1f us at most\n", name, p50, p99, usec[ROUNDS - 1]);
}

int main(int argc, char **argv)
{
	static double changed[ROUNDS], same[ROUNDS], bare[ROUNDS];
	int pidfd[2], fds[2];
	uint32_t uid, pid;
	vramd *v;

	if (argc != 4)
		die("UID PID PID");
	for (int i = 0; i < 2; i++) {
		check(parse_u32(argv[2 + i], &pid), argv[2 + i]);
		pidfd[i] = pidfd_open((pid_t)pid, 0);
		if (pidfd[i] < 0)
			die("process %s: %m", argv[2 + i]);
	}
	check(parse_u32(argv[1], &uid), argv[1]);
	if (seteuid(uid) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		die("cannot become user %s: %m", argv[1]);
	check(vramd_open("gamescope", &v), "vramd_open");
	process_for(v, CONNECT_MSEC);
	for (size_t i = 0; i < ROUNDS; i++) {
		vramd_menu menu = i % 2 ? VRAMD_MENU_OPEN : VRAMD_MENU_CLOSED;

		changed[i] = tell(v, pidfd[i % 2], menu);
		process_for(v, PAUSE_MSEC);
		same[i] = tell(v, pidfd[i % 2], menu);
		bare[i] = send_bare(fds, pidfd[i % 2]);
	}
	print("call", changed);
	print("call that changes nothing", same);
	print("floor", bare);
	vramd_close(v);
	return EXIT_SUCCESS;
}
