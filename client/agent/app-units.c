/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/inotify.h>

#include "app-id.h"
#include "app-units.h"
#include "fileio.h"
#include "parse.h"

/* Slices within app.slice, or groups within a unit. */
#define DEPTH_MAX 4
#define PROCS_MAX (64 * KIB)

struct AppUnits {
	char *directory; /* app.slice */
	/* An own one, and not sd-event's: several sources watch the same directory, which in one loop would hang it
	 * (systemd issue 38265). */
	int inotify;
	sd_event_source *io;
	void (*changed)(void *userdata);
	void *userdata;
};

typedef struct Search {
	const AppUnits *units;
	const char *app_id;
	size_t n_found;
	pid_t pid;
} Search;

static bool is_directory(const struct dirent *de)
{
	return de->d_type == DT_DIR && de->d_name[0] != '.';
}

/* 0 = there is none, or none that we can see. */
static pid_t find_process(int parent, const char *name, unsigned depth)
{
	auto_close int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_closedir DIR *d = NULL;
	auto_free char *text = NULL;
	struct dirent *de;
	uint32_t pid = 0;

	if (fd < 0)
		return 0;
	if (read_head_at(fd, "cgroup.procs", PROCS_MAX, &text, NULL) >= 0)
		text[strcspn(text, "\n")] = '\0';
	if (text && parse_u32(text, &pid) >= 0 && pid > 0 && pid <= INT32_MAX)
		return (pid_t)pid;
	d = depth < DEPTH_MAX ? fdopendir(fd) : NULL;
	if (d)
		(void)TAKE_FD(fd);
	pid = 0;
	while (d && pid == 0 && (de = readdir(d)))
		if (is_directory(de))
			pid = (uint32_t)find_process(dirfd(d), de->d_name, depth + 1);
	return (pid_t)pid;
}

static void take_unit(Search *s, DIR *d, const char *slice, const char *name)
{
	auto_free char *path = NULL;
	pid_t pid = find_process(dirfd(d), name, 0);

	if (pid > 0) {
		s->n_found++;
		s->pid = pid;
	} else if (asprintf(&path, "%s/%s", slice, name) >= 0) {
		/* A new one gets its process a moment later, which shows in cgroup.events. */
		(void)inotify_add_watch(s->units->inotify, path, IN_MODIFY | IN_ONLYDIR | IN_ONESHOT);
	}
}

static void search_slice(Search *s, const char *path, unsigned depth)
{
	auto_closedir DIR *d = NULL;
	struct dirent *de;

	/* First, so that nothing is missed that comes after it was read; that it is watched already does no harm. */
	(void)inotify_add_watch(s->units->inotify, path, IN_CREATE | IN_DELETE | IN_ONLYDIR);
	d = opendir(path);
	while (d && (de = readdir(d))) {
		auto_free char *child = NULL;

		if (!is_directory(de))
			continue;
		if (app_id_is_of_unit(s->app_id, de->d_name))
			take_unit(s, d, path, de->d_name);
		else if (endswith(de->d_name, ".slice") && depth < DEPTH_MAX &&
			 asprintf(&child, "%s/%s", path, de->d_name) >= 0)
			search_slice(s, child, depth + 1);
	}
}

int app_units_find(AppUnits *u, const char *app_id, pid_t *ret)
{
	Search s = { .units = u, .app_id = app_id };

	search_slice(&s, u->directory, 0);
	if (s.n_found != 1)
		return s.n_found == 0 ? -ENOENT : -ENOTUNIQ;
	*ret = s.pid;
	return 0;
}

static int on_inotify(sd_event_source *s _unused_, int fd, uint32_t revents _unused_, void *userdata)
{
	AppUnits *u = userdata;
	char events[4096];

	while (read(fd, events, sizeof(events)) > 0)
		;
	u->changed(u->userdata);
	return 0;
}

int app_units_new(sd_event *event, void (*changed)(void *userdata), void *userdata, AppUnits **ret)
{
	AppUnits *u = calloc(1, sizeof(*u));
	unsigned uid = getuid();
	int r = 0;

	if (!u)
		return -ENOMEM;
	u->changed = changed;
	u->userdata = userdata;
	u->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (u->inotify < 0)
		r = -errno;
	else if (asprintf(&u->directory, "/sys/fs/cgroup/user.slice/user-%u.slice/user@%u.service/app.slice", uid,
			  uid) < 0)
		r = -ENOMEM;
	if (r >= 0)
		r = sd_event_add_io(event, &u->io, u->inotify, EPOLLIN, on_inotify, u);
	if (r < 0) {
		app_units_free(u);
		return r;
	}
	*ret = u;
	return 0;
}

AppUnits *app_units_free(AppUnits *u)
{
	if (!u)
		return NULL;
	sd_event_source_disable_unref(u->io);
	close_fd(u->inotify);
	free(u->directory);
	free(u);
	return NULL;
}
