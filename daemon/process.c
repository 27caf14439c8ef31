/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "cgroup.h"
#include "parse.h"
#include "pidfd.h"
#include "process.h"

#define PROC_TEXT_MAX (64 * KIB)

/* struct pidfd_info of linux/pidfd.h, which Debian 12 does not have. */
typedef struct PidfdInfo {
	uint64_t mask, cgroupid;
	uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
	int32_t exit_code;
} PidfdInfo;
#define GET_PIDFD_INFO _IOWR(0xff, 11, PidfdInfo)
#define PIDFD_INFO_WITH_CREDS (UINT64_C(1) << 1)

/* The value of a "Key:\tvalue..." line, up to the first blank; -ENOENT if there is no such line. */
static int proc_field(const char *text, const char *key, uint64_t *ret)
{
	size_t len = strlen(key);
	char buf[24];

	for (const char *line = text; line; line = strchr(line, '\n')) {
		size_t n;

		line += *line == '\n';
		if (strncmp(line, key, len) != 0)
			continue;
		line += len;
		line += strspn(line, "\t ");
		n = strcspn(line, "\t \n");
		if (n >= sizeof(buf))
			return -EBADMSG;
		memcpy(buf, line, n);
		buf[n] = '\0';
		return parse_u64(buf, ret) < 0 ? -EBADMSG : 0;
	}
	return -ENOENT;
}

/* 0 if the process has not ended, else -ESRCH. Zombies have ended. */
static int pidfd_check(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	while (poll(&p, 1, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (p.revents & POLLNVAL)
		return -EBADF;
	return p.revents ? -ESRCH : 0;
}

/* An fd's own line is always in the real /proc. */
static int read_pid(int pidfd, pid_t *ret)
{
	auto_free char *text = NULL;
	char path[sizeof("/proc/self/fdinfo/") + 11];
	uint64_t pid;
	int r;

	if (pidfd < 0)
		return -EBADF;
	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	r = read_piece_at(AT_FDCWD, path, PROC_TEXT_MAX, &text);
	if (r == -ENOENT)
		return -EBADF;
	if (r < 0)
		return r;
	r = proc_field(text, "Pid:", &pid);
	if (r == -ENOENT)
		return -EBADF;
	if (r < 0 || pid == 0) /* -1: it was reaped; 0: it is not in our pid namespace */
		return -ESRCH;
	if (pid > INT32_MAX)
		return -ERANGE;
	*ret = (pid_t)pid;
	return 0;
}

int process_get_id(int pidfd, uint64_t *ret)
{
	static dev_t pidfs = (dev_t)-1;
	pid_t pid;
	int r;

	if (pidfs == (dev_t)-1)
		pidfs = pidfs_device();
	if (pidfs != 0)
		return pidfs_get_inode(pidfs, pidfd, ret);
	r = read_pid(pidfd, &pid);
	if (r >= 0)
		*ret = (uint64_t)pid;
	return r;
}

static int read_proc(const Roots *roots, pid_t pid, const char *file, char **ret)
{
	auto_free char *path = NULL;
	int r;

	if (asprintf(&path, "%s/%d/%s", roots->proc, pid, file) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = read_piece_at(AT_FDCWD, path, PROC_TEXT_MAX, ret);
	return r == -ENOENT ? -ESRCH : r;
}

/* Of a fd that is certainly a pidfd: ioctl(2) on another one could do anything. A folder that stands in for
 * /proc, or a kernel before 6.13, leaves it to the file. */
static int read_uid(const Roots *roots, int pidfd, pid_t pid, uid_t *ret)
{
	PidfdInfo info = { .mask = PIDFD_INFO_WITH_CREDS };
	auto_free char *text = NULL;
	uint64_t uid;
	int r;

	if (!roots->relocated && ioctl(pidfd, GET_PIDFD_INFO, &info) >= 0 && info.mask & PIDFD_INFO_WITH_CREDS) {
		*ret = info.ruid;
		return 0;
	}
	r = read_proc(roots, pid, "status", &text);
	if (r < 0)
		return r;
	r = proc_field(text, "Uid:", &uid);
	if (r < 0 || uid > UINT32_MAX)
		return -EBADMSG;
	*ret = (uid_t)uid;
	return 0;
}

static int read_cgroup(const Roots *roots, pid_t pid, char **ret)
{
	auto_free char *text = NULL;
	int r;

	r = read_proc(roots, pid, "cgroup", &text);
	if (r < 0)
		return r;
	return process_parse_cgroup(text, ret);
}

int process_new(const Roots *roots, int pidfd, Process **ret)
{
	auto_process Process *p = NULL;
	int r;

	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->n_ref = 1;
	p->pidfd = fcntl(pidfd, F_DUPFD_CLOEXEC, 3);
	if (p->pidfd < 0)
		return -errno;
	r = read_pid(p->pidfd, &p->pid);
	if (r >= 0)
		r = process_get_id(p->pidfd, &p->id);
	if (r < 0)
		return r;
	r = read_uid(roots, p->pidfd, p->pid, &p->uid);
	if (r >= 0)
		r = read_cgroup(roots, p->pid, &p->cgroup);
	/* Only now is it certain that what was read is about this process. */
	if (pidfd_check(p->pidfd) < 0)
		return -ESRCH;
	if (r < 0)
		return r;
	*ret = TAKE_PTR(p);
	return 0;
}

Process *process_ref(Process *p)
{
	p->n_ref++;
	return p;
}

Process *process_unref(Process *p)
{
	if (!p || --p->n_ref > 0)
		return NULL;
	close_fd(p->pidfd);
	free(p->cgroup);
	free(p);
	return NULL;
}

int process_refresh(const Roots *roots, Process *p)
{
	auto_free char *path = NULL;
	int r;

	r = read_cgroup(roots, p->pid, &path);
	if (pidfd_check(p->pidfd) < 0)
		return -ESRCH;
	if (r < 0)
		return r;
	if (streq(path, p->cgroup))
		return 0;
	free(p->cgroup);
	p->cgroup = TAKE_PTR(path);
	return 1;
}

bool process_check_alive(const Process *p)
{
	return !p->ended && pidfd_check(p->pidfd) == 0;
}

bool process_is_alive(const Process *p)
{
	return p->watched ? !p->ended : process_check_alive(p);
}

int process_parse_cgroup(const char *text, char **ret)
{
	auto_free char *path = NULL;
	const char *line = text;
	int r;

	while (!startswith(line, "0::")) {
		line = strchr(line, '\n');
		if (!line)
			return -EBADMSG;
		line++;
	}
	line += strlen("0::");
	/* The kernel refuses group names with a newline, so the line is the path. */
	path = strndup(line, strcspn(line, "\n"));
	if (!path)
		return -ENOMEM;
	r = cgroup_path_check(path);
	if (r < 0)
		return -EBADMSG;
	if (endswith(path, " (deleted)"))
		return -ENOENT;
	*ret = TAKE_PTR(path);
	return 0;
}
