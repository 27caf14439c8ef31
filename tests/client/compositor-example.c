/* SPDX-License-Identifier: MIT */
/* How a compositor uses libvramd: copy what is between main() and its loop into yours. Here the windows are lines on
 * standard input: "front PID [APPID [MENU]]", "front -" for nobody, "menu open|closed|unknown", "hold PID", "withdraw". */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include <vramd.h>

static int complain(const char *what, int r)
{
	if (r < 0)
		printf("%s: %s\n", what, strerror(-r));
	return r;
}

static vramd_menu menu(const char *word)
{
	return strcmp(word, "open") == 0     ? VRAMD_MENU_OPEN
	       : strcmp(word, "closed") == 0 ? VRAMD_MENU_CLOSED
					     : VRAMD_MENU_UNKNOWN;
}

/* Where your focus changes. A pidfd may be closed at once; keep one per client and no pid can be mistaken. */
static void on_line(vramd *v, char *line)
{
	const char *word = strtok(line, " \n"), *arg = strtok(NULL, " \n"), *appid = strtok(NULL, " \n");
	const char *over = strtok(NULL, " \n");
	int pidfd = arg ? pidfd_open(atoi(arg), 0) : -1;

	if (word && strcmp(word, "front") == 0) {
		if (over)
			complain("menu", vramd_set_menu(v, menu(over)));
		complain("front", vramd_report_window(v, pidfd, appid ? (uint32_t)strtoul(appid, NULL, 10) : 0));
	} else if (word && arg && strcmp(word, "menu") == 0)
		complain("menu", vramd_set_menu(v, menu(arg)));
	else if (word && strcmp(word, "hold") == 0 && complain("hold", vramd_hold(v, pidfd, "example", "a test")) >= 0)
		puts("held");
	else if (word && strcmp(word, "withdraw") == 0)
		complain("withdraw", vramd_withdraw(v));
	if (pidfd >= 0)
		close(pidfd);
}

int main(void)
{
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .events = POLLIN } };
	char line[256];
	vramd *v;

	if (complain("vramd_open", vramd_open("example", &v)) < 0)
		return EXIT_FAILURE;
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	fds[1].fd = vramd_get_fd(v);
	while (poll(fds, 2, -1) > 0) {
		if (fds[1].revents && complain("vramd", vramd_process(v)) < 0 && vramd_get_error(v))
			printf("refused: %s\n", vramd_get_error(v));
		if (fds[0].revents && !fgets(line, sizeof(line), stdin))
			break;
		if (fds[0].revents)
			on_line(v, line);
	}
	vramd_close(v);
	return EXIT_SUCCESS;
}
