/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <poll.h>
#include <sys/pidfd.h>
#include <time.h>

#include "fileio.h"
#include "parse.h"
#include "process-ref.h"

#define PROC_TEXT_MAX (128 * KIB)

int process_read(pid_t pid, const char *file, char **ret, size_t *ret_size)
{
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	r = read_head_at(AT_FDCWD, path, PROC_TEXT_MAX, ret, ret_size);
	return r == -ENOENT ? -ESRCH : r;
}

static int parse_word(const char *text, uint64_t *ret)
{
	char word[24];
	size_t n = strcspn(text, " \t\n");

	if (n >= sizeof(word))
		return -EBADMSG;
	memcpy(word, text, n);
	word[n] = '\0';
	return parse_u64(word, ret);
}

/* Real uid; the owner of /proc/PID says less: it is root's while a process may not be dumped. */
static int read_uid(pid_t pid, uid_t *ret)
{
	auto_free char *text = NULL;
	const char *line;
	uint64_t uid;
	int r;

	r = process_read(pid, "status", &text, NULL);
	if (r < 0)
		return r;
	line = strstr(text, "\nUid:\t");
	if (!line || parse_word(line + strlen("\nUid:\t"), &uid) < 0 || uid > UINT32_MAX)
		return -EBADMSG;
	*ret = (uid_t)uid;
	return 0;
}

/* Field 22 of /proc/PID/stat, in microseconds, rounded down. */
static int read_start(pid_t pid, uint64_t *ret)
{
	auto_free char *text = NULL;
	const char *s;
	uint64_t ticks;
	int r;

	r = process_read(pid, "stat", &text, NULL);
	if (r < 0)
		return r;
	s = strrchr(text, ')'); /* the name before it may hold anything */
	for (int field = 2; s && field < 22; field++) {
		s = strchr(s, ' ');
		s = s ? s + 1 : NULL;
	}
	if (!s || parse_word(s, &ticks) < 0)
		return -EBADMSG;
	*ret = ticks * USEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	return 0;
}

static bool is_alive(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

static int check_process(pid_t pid, uint64_t since_usec, const char *comm)
{
	auto_free char *name = NULL;
	uint64_t start;
	uid_t uid;
	int r;

	r = read_uid(pid, &uid);
	if (r >= 0)
		r = read_start(pid, &start);
	if (r >= 0 && comm)
		r = process_read(pid, "comm", &name, NULL);
	if (r < 0)
		return r;
	if (uid != getuid())
		return -EPERM;
	return start > since_usec || (comm && !startswith(name, comm)) ? -ESRCH : 0;
}

int process_ref_open(pid_t pid, uint64_t since_usec, const char *comm, ProcessRef *ret)
{
	auto_close int fd = pidfd_open(pid, 0);
	int r;

	if (fd < 0)
		return errno == EINVAL ? -ESRCH : -errno;
	r = check_process(pid, since_usec, comm);
	/* Only of a process that has not ended until now was /proc read. */
	if (!is_alive(fd))
		return -ESRCH;
	if (r < 0)
		return r;
	*ret = (ProcessRef){ pid, TAKE_FD(fd) };
	return 0;
}

void process_set_begin(ProcessSet *s)
{
	for (size_t i = 0; i < s->n; i++)
		s->used[i] = false;
}

int process_set_get(ProcessSet *s, pid_t pid, uint64_t since_usec, ProcessRef *ret)
{
	ProcessRef p;
	int r;

	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].pid != pid)
			continue;
		s->used[i] = true;
		if (!is_alive(s->v[i].pidfd))
			return -ESRCH;
		*ret = s->v[i];
		return 0;
	}
	if (!GROW(s->v, s->n_alloc, s->n) || !GROW(s->used, s->used_alloc, s->n))
		return -ENOMEM;
	r = process_ref_open(pid, since_usec, NULL, &p);
	if (r < 0)
		return r;
	s->used[s->n] = true;
	s->v[s->n++] = p;
	*ret = p;
	return 0;
}

void process_set_end(ProcessSet *s)
{
	for (size_t i = s->n; i-- > 0;) {
		if (s->used[i])
			continue;
		close_fd(s->v[i].pidfd);
		s->n--;
		s->v[i] = s->v[s->n];
		s->used[i] = s->used[s->n];
	}
}

void process_set_done(ProcessSet *s)
{
	process_set_begin(s);
	process_set_end(s);
	free(s->v);
	free(s->used);
	*s = (ProcessSet){};
}

uint64_t boottime_usec(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / 1000;
}

bool process_ref_has_environ(const ProcessRef *p, const char *name)
{
	size_t size, pos = 0, length = strlen(name);
	auto_free char *block = NULL;
	const char *s;

	if (process_read(p->pid, "environ", &block, &size) < 0 || !is_alive(p->pidfd))
		return false;
	while (block_next(block, size, &pos, &s))
		if (strncmp(s, name, length) == 0 && s[length] == '=' && s[length + 1])
			return true;
	return false;
}

int process_ref_get_cgroup(const ProcessRef *p, char **ret)
{
	auto_free char *text = NULL;
	int r;

	r = process_read(p->pid, "cgroup", &text, NULL);
	if (r < 0)
		return r;
	if (!is_alive(p->pidfd))
		return -ESRCH;
	*ret = TAKE_PTR(text);
	return 0;
}

bool process_ref_is_nested(const ProcessRef *compositor)
{
	return process_ref_has_environ(compositor, "WAYLAND_DISPLAY") ||
	       process_ref_has_environ(compositor, "DISPLAY");
}

void process_ref_get_comm(const ProcessRef *p, char buf[static 16])
{
	auto_free char *text = NULL;

	(void)strcpy(buf, "?");
	if (process_read(p->pid, "comm", &text, NULL) < 0 || !is_alive(p->pidfd))
		return;
	text[strcspn(text, "\n")] = '\0';
	(void)snprintf(buf, 16, "%s", text);
}
