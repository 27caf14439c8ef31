/* SPDX-License-Identifier: MIT */
/* News of units: directories by inotify, systemd's reloads by D-Bus.
 *
 * Handlers only note on a watch what happened to it; one event source then tells it, one piece at a
 * time. So the callback may add and remove users, and a slow one meets the last state, not each
 * step. That source has the same priority as the others: a user who makes events without end delays
 * news, but cannot stop them. */
#include <fcntl.h>
#include <limits.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "log.h"
#include "unit.h"

#define FOCUS_XATTR "user.xdg.inactive-since"
#define FOCUS_VALUE_MAX 32

#define SYSTEMD_NAME "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER SYSTEMD_NAME ".Manager"
#define SYSTEMD_ROOT_SLICE SYSTEMD_PATH "/unit/_2d_2eslice"

typedef struct Tree Tree;

/* One directory. */
typedef struct Watch {
	Tree *tree;
	char *path;
	ino_t inode;
	bool is_unit; /* its processes count; else it is a slice and its children do */
	bool silent;  /* the root: watched, never reported */
	bool listed;  /* its children were looked at since the watch stands */
	bool told;    /* reported as added */
	bool changed; /* to be reported */
	bool gone;    /* to be reported if told, then freed */
	sd_event_source *sources[2];
} Watch;

/* What is watched for one user. */
struct Tree {
	UnitMonitor *monitor;
	uid_t uid; /* UNIT_UID_NONE: the system */
	char *top; /* "/user.slice/user-1000.slice"; NULL for the system */
	char **interest;
	bool stale; /* some of it may have changed unseen */
	Watch **watches; /* a parent before its children */
	size_t n_watches, n_watches_alloc;
	char **marked; /* paths of units that mutter marks as having the focus */
	size_t n_marked, n_marked_alloc;
	bool marks;    /* mutter marks units here */
	bool remarked; /* to be reported */
};

struct UnitMonitor {
	sd_event *event;
	sd_bus *bus;
	const Hierarchy *hierarchy;
	unit_cb cb;
	void *userdata;
	sd_event_source *news;
	bool reloaded; /* to be reported */
	Tree **trees;
	size_t n_trees, n_trees_alloc;
	sd_bus_slot *reloading, *owner, *subscribe, *probe;
	bool has_device_memory;
};

static void monitor_wake(UnitMonitor *m)
{
	int r = sd_event_source_set_enabled(m->news, SD_EVENT_ONESHOT);

	if (r < 0)
		log_debug_errno(r, "Cannot schedule news of units: %m");
}

/* --- Watches ---------------------------------------------------------------------------------- */

static Watch *watch_free(Watch *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(w->sources); i++)
		sd_event_source_disable_unref(w->sources[i]);
	free(w->path);
	free(w);
	return NULL;
}
DEFINE_CLEANUP(Watch *, watch_free)

/* For openat(): the path below the root's directory fd. */
static const char *relative(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static Watch *tree_find(const Tree *t, const char *path)
{
	for (size_t i = 0; i < t->n_watches; i++)
		if (!t->watches[i]->gone && streq(t->watches[i]->path, path))
			return t->watches[i];
	return NULL;
}

/* Notes that a directory is gone; each one below it has its own event. */
static void watch_lose(Watch *w)
{
	w->gone = !w->silent;
	for (size_t i = 0; i < ARRAY_SIZE(w->sources); i++)
		w->sources[i] = sd_event_source_disable_unref(w->sources[i]);
	monitor_wake(w->tree->monitor);
}

static int watch_path(char buf[static PATH_MAX], const Watch *parent, const char *name)
{
	int n = snprintf(buf, PATH_MAX, "%s/%s", parent->silent ? "" : parent->path, name);

	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

typedef enum ChildKind { CHILD_OTHER, CHILD_SLICE, CHILD_UNIT } ChildKind;

/* What a directory below a slice is to us. A user's tree is reached through user.slice only, and
 * the system's tree ends there. */
static ChildKind child_kind(const Tree *t, const Watch *parent, const char *name)
{
	char service[sizeof("user@4294967295.service")];
	bool in_user_slice = streq(parent->path, "/user.slice");

	if (t->uid == UNIT_UID_NONE) {
		if (parent->silent && streq(name, "user.slice"))
			return CHILD_OTHER;
	} else if (parent->silent) {
		return streq(name, "user.slice") ? CHILD_SLICE : CHILD_OTHER;
	} else if (in_user_slice) {
		return streq(name, strrchr(t->top, '/') + 1) ? CHILD_SLICE : CHILD_OTHER;
	} else if (streq(parent->path, t->top)) {
		(void)snprintf(service, sizeof(service), "user@%u.service", t->uid);
		if (streq(name, service))
			return CHILD_SLICE;
	}
	if (endswith(name, ".slice"))
		return CHILD_SLICE;
	return unit_matches(name, t->interest) ? CHILD_UNIT : CHILD_OTHER;
}

/* --- Focus ------------------------------------------------------------------------------------ */

static void tree_drop_mark(Tree *t, const char *path)
{
	for (size_t i = 0; i < t->n_marked; i++) {
		if (!streq(t->marked[i], path))
			continue;
		free(t->marked[i]);
		t->marked[i] = t->marked[--t->n_marked];
		t->remarked = true;
	}
}

static void tree_forget_marks(Tree *t)
{
	for (size_t i = 0; i < t->n_marked; i++)
		free(t->marked[i]);
	t->remarked |= t->n_marked > 0;
	t->n_marked = 0;
}

static void tree_add_mark(Tree *t, const char *path)
{
	t->remarked = true; /* marked once more: another window of it has the focus */
	for (size_t i = 0; i < t->n_marked; i++)
		if (streq(t->marked[i], path))
			return;
	if (t->n_marked >= UNIT_WATCHES_PER_USER || !GROW(t->marked, t->n_marked_alloc, t->n_marked))
		return;
	t->marked[t->n_marked] = strdup(path);
	if (t->marked[t->n_marked])
		t->n_marked++;
}

/* The user owns these directories, so a mark says no more than a program of his would. */
static void tree_read_mark(Tree *t, const char *path)
{
	char full[2 * PATH_MAX], value[FOCUS_VALUE_MAX];
	ssize_t n;

	if (t->uid == UNIT_UID_NONE || !(endswith(path, ".scope") || endswith(path, ".service")))
		return;
	(void)snprintf(full, sizeof(full), "%s%s", t->monitor->hierarchy->mount_point, path);
	n = lgetxattr(full, FOCUS_XATTR, value, sizeof(value));
	t->remarked |= n >= 0 && !t->marks;
	t->marks |= n >= 0;
	if (n == 2 && memcmp(value, "-1", 2) == 0)
		tree_add_mark(t, path);
	else
		tree_drop_mark(t, path);
	if (t->remarked)
		monitor_wake(t->monitor);
}

static void tree_overflow(UnitMonitor *m)
{
	for (size_t i = 0; i < m->n_trees; i++)
		m->trees[i]->stale = true;
	monitor_wake(m);
}

static void tree_add(Tree *t, const char *path, ChildKind kind);

static int on_slice(_unused_ sd_event_source *s, const struct inotify_event *ev, void *userdata)
{
	Watch *w = userdata;
	Tree *t = w->tree;
	Watch *child;
	char path[PATH_MAX];

	if (ev->mask & IN_Q_OVERFLOW) {
		log_debug("Lost news of control groups, looking at all of them again");
		tree_overflow(t->monitor);
	} else if (ev->mask & (IN_IGNORED | IN_UNMOUNT)) {
		watch_lose(w);
	} else if ((ev->mask & IN_ISDIR) && ev->len > 0) {
		ChildKind kind = child_kind(t, w, ev->name);

		if (watch_path(path, w, ev->name) < 0)
			return 0;
		if (ev->mask & (IN_ATTRIB | IN_DELETE))
			tree_read_mark(t, path);
		if (kind == CHILD_OTHER || ev->mask & IN_ATTRIB)
			return 0;
		child = tree_find(t, path);
		if (ev->mask & IN_CREATE)
			tree_add(t, path, kind);
		else if (child)
			watch_lose(child);
	}
	return 0;
}

static int on_unit(_unused_ sd_event_source *s, const struct inotify_event *ev, void *userdata)
{
	Watch *w = userdata;

	if (ev->mask & IN_Q_OVERFLOW) {
		tree_overflow(w->tree->monitor);
	} else if (ev->mask & (IN_IGNORED | IN_UNMOUNT)) {
		watch_lose(w);
	} else {
		w->changed = true;
		monitor_wake(w->tree->monitor);
	}
	return 0;
}

/* A process that is moved in is a write to cgroup.procs; one that is born in, and the last one to
 * leave, show in cgroup.events. The files themselves are watched: the kernel tells of cgroup.events
 * only while somebody holds its inode. */
static int watch_unit(Watch *w, int dir_fd)
{
	static const char *const files[] = { "cgroup.procs", "cgroup.events" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		auto_close int fd = openat(dir_fd, files[i], O_PATH | O_CLOEXEC | O_NOFOLLOW);
		int r;

		if (fd < 0)
			return -errno;
		r = sd_event_add_inotify_fd(w->tree->monitor->event, &w->sources[i], fd, IN_MODIFY,
					    on_unit, w);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Watches a directory; by fd, so that inode and watch are of the same one. */
static int watch_new(Tree *t, const char *path, ChildKind kind, Watch **ret)
{
	_cleanup_(watch_freep) Watch *w = calloc(1, sizeof(*w));
	auto_close int fd = -EBADF;
	struct stat st;
	int r;

	if (!w)
		return -ENOMEM;
	w->tree = t;
	w->is_unit = kind == CHILD_UNIT;
	w->path = strdup(path);
	if (!w->path)
		return -ENOMEM;
	fd = openat(t->monitor->hierarchy->root_fd, relative(path),
		    O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	w->inode = st.st_ino;
	if (w->is_unit)
		r = watch_unit(w, fd);
	else
		r = sd_event_add_inotify_fd(t->monitor->event, &w->sources[0], fd,
					    IN_CREATE | IN_DELETE | IN_ATTRIB | IN_ONLYDIR, on_slice, w);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(w);
	return 0;
}

static int tree_try_add(Tree *t, const char *path, ChildKind kind)
{
	int r;

	if (t->n_watches >= UNIT_WATCHES_PER_USER)
		return -EDQUOT;
	if (!GROW(t->watches, t->n_watches_alloc, t->n_watches))
		return -ENOMEM;
	r = watch_new(t, path, kind, &t->watches[t->n_watches]);
	if (r < 0)
		return r;
	t->n_watches++;
	monitor_wake(t->monitor);
	return 0;
}

static void tree_add(Tree *t, const char *path, ChildKind kind)
{
	int r;

	if (tree_find(t, path))
		return;
	r = tree_try_add(t, path, kind);
	if (r < 0 && !cgroup_is_gone(r))
		log_debug_errno(r, "Cannot watch control group \"%s\", ignoring it: %m", path);
}

/* --- Trees ------------------------------------------------------------------------------------ */

static int names_copy(char *const *names, char ***ret)
{
	auto_strv char **copy = NULL;
	size_t n = strv_length(names);

	copy = calloc(n + 1, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		copy[i] = strdup(names[i]);
		if (!copy[i])
			return -ENOMEM;
	}
	*ret = TAKE_PTR(copy);
	return 0;
}

/* Still the same directory, and still of interest? */
static bool watch_holds(const Watch *w)
{
	struct stat st;

	if (w->is_unit && !unit_matches(strrchr(w->path, '/') + 1, w->tree->interest))
		return false;
	return fstatat(w->tree->monitor->hierarchy->root_fd, relative(w->path), &st,
		       AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == w->inode;
}

static void watch_list(Watch *w)
{
	auto_strv char **names = NULL;
	char path[PATH_MAX];
	int r;

	w->listed = true;
	r = cgroup_children(w->tree->monitor->hierarchy, w->path, &names);
	if (r < 0) {
		if (!cgroup_is_gone(r))
			log_debug_errno(r, "Cannot list control group \"%s\", ignoring it: %m",
					w->path);
		return;
	}
	for (char **name = names; *name; name++) {
		ChildKind kind = child_kind(w->tree, w, *name);

		if (watch_path(path, w, *name) < 0)
			continue;
		tree_read_mark(w->tree, path);
		if (kind != CHILD_OTHER)
			tree_add(w->tree, path, kind);
	}
}

/* Brings the watches up to date with what is there. The list grows while it is walked; a slice is
 * listed only after it is watched, so that no child falls between the two. */
static void tree_refresh(Tree *t)
{
	if (t->stale) {
		t->stale = false;
		tree_forget_marks(t);
		for (size_t i = 0; i < t->n_watches; i++) {
			Watch *w = t->watches[i];

			w->listed = false;
			if (!w->gone && !watch_holds(w))
				watch_lose(w);
		}
	}
	for (size_t i = 0; i < t->n_watches; i++) {
		Watch *w = t->watches[i];

		if (!w->gone && !w->is_unit && !w->listed)
			watch_list(w);
	}
}

static Tree *tree_free(Tree *t)
{
	for (size_t i = 0; i < t->n_watches; i++)
		watch_free(t->watches[i]);
	free(t->watches);
	tree_forget_marks(t);
	free(t->marked);
	strv_free(t->interest);
	free(t->top);
	free(t);
	return NULL;
}
DEFINE_CLEANUP(Tree *, tree_free)

static int tree_new(UnitMonitor *m, uid_t uid, Tree **ret)
{
	_cleanup_(tree_freep) Tree *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->monitor = m;
	t->uid = uid;
	if (uid != UNIT_UID_NONE && asprintf(&t->top, "/user.slice/user-%u.slice", uid) < 0) {
		t->top = NULL;
		return -ENOMEM;
	}
	r = tree_try_add(t, "/", CHILD_SLICE);
	if (r < 0)
		return r;
	t->watches[0]->silent = true;
	*ret = TAKE_PTR(t);
	return 0;
}

/* --- Telling ---------------------------------------------------------------------------------- */

static void tree_drop(Tree *t, size_t i)
{
	watch_free(t->watches[i]);
	t->n_watches--;
	memmove(&t->watches[i], &t->watches[i + 1], (t->n_watches - i) * sizeof(t->watches[0]));
}

/* Takes one piece of news: losses first, the lowest directory first; then the rest, the highest
 * first. The path is copied, since the callback may end the watch. */
static bool tree_take_news(Tree *t, UnitEvent *ret_event, char ret_path[static PATH_MAX])
{
	for (size_t i = t->n_watches; i-- > 0;) {
		Watch *w = t->watches[i];
		bool told = w->told;

		if (!w->gone)
			continue;
		strcpy(ret_path, w->path);
		tree_drop(t, i);
		if (told) {
			*ret_event = UNIT_REMOVED;
			return true;
		}
	}
	for (size_t i = 0; i < t->n_watches; i++) {
		Watch *w = t->watches[i];

		if (w->silent || (w->told && !w->changed))
			continue;
		*ret_event = w->told ? UNIT_CHANGED : UNIT_ADDED;
		w->told = true;
		w->changed = false;
		strcpy(ret_path, w->path);
		return true;
	}
	if (t->remarked) {
		t->remarked = false;
		*ret_event = UNIT_MARKED;
		strcpy(ret_path, t->top);
		return true;
	}
	return false;
}

static int on_news(_unused_ sd_event_source *s, void *userdata)
{
	UnitMonitor *m = userdata;
	char path[PATH_MAX];
	UnitEvent event;

	if (m->reloaded) {
		m->reloaded = false;
		monitor_wake(m);
		m->cb(UNIT_RELOADED, NULL, m->userdata);
		return 0;
	}
	for (size_t i = 0; i < m->n_trees; i++) {
		tree_refresh(m->trees[i]);
		if (tree_take_news(m->trees[i], &event, path)) {
			monitor_wake(m);
			m->cb(event, path, m->userdata);
			return 0; /* m may be gone */
		}
	}
	return 0;
}

/* --- systemd on the bus ----------------------------------------------------------------------- */

static int on_subscribed(sd_bus_message *reply, _unused_ void *userdata,
			 _unused_ sd_bus_error *error)
{
	const sd_bus_error *e = sd_bus_message_get_error(reply);

	if (e)
		log_debug("systemd does not tell of its reloads, ignoring: %s",
			  strempty(e->message));
	return 0;
}

static int on_probe(sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *error)
{
	UnitMonitor *m = userdata;

	m->has_device_memory = !sd_bus_message_is_method_error(reply, NULL);
	return 0;
}

/* Makes systemd send signals, and finds out what it can do. Again for each owner of its name. */
static int greet_systemd(UnitMonitor *m)
{
	int r;

	m->subscribe = sd_bus_slot_unref(m->subscribe);
	m->probe = sd_bus_slot_unref(m->probe);
	r = sd_bus_call_method_async(m->bus, &m->subscribe, SYSTEMD_NAME, SYSTEMD_PATH,
				     SYSTEMD_MANAGER, "Subscribe", on_subscribed, m, "");
	if (r < 0)
		return r;
	return sd_bus_call_method_async(m->bus, &m->probe, SYSTEMD_NAME, SYSTEMD_ROOT_SLICE,
					"org.freedesktop.DBus.Properties", "Get", on_probe, m, "ss",
					SYSTEMD_NAME ".Slice", "DeviceMemoryLow");
}

static void note_reload(UnitMonitor *m)
{
	m->reloaded = true;
	monitor_wake(m);
}

static int on_reloading(sd_bus_message *msg, void *userdata, _unused_ sd_bus_error *error)
{
	int active, r;

	r = sd_bus_message_read(msg, "b", &active);
	if (r < 0)
		(void)log_debug_errno(r, "Malformed Reloading signal, ignoring: %m");
	else if (!active)
		note_reload(userdata);
	return 0;
}

/* A new owner is a systemd that was re-executed: it has forgotten who subscribed. */
static int on_owner(sd_bus_message *msg, void *userdata, _unused_ sd_bus_error *error)
{
	UnitMonitor *m = userdata;
	const char *name, *before, *now;
	int r;

	r = sd_bus_message_read(msg, "sss", &name, &before, &now);
	if (r < 0 || !*now)
		return 0;
	r = greet_systemd(m);
	if (r < 0)
		log_debug_errno(r, "Cannot call systemd, ignoring: %m");
	note_reload(m);
	return 0;
}

/* Without an answer there is nothing to match; without an own handler sd-bus would end the loop. */
static int on_match(sd_bus_message *reply, _unused_ void *userdata, _unused_ sd_bus_error *error)
{
	const sd_bus_error *e = sd_bus_message_get_error(reply);

	if (e)
		log_debug("The bus refuses a match for systemd, ignoring: %s",
			  strempty(e->message));
	return 0;
}

static int start_bus(UnitMonitor *m)
{
	int r;

	r = sd_bus_match_signal_async(m->bus, &m->reloading, SYSTEMD_NAME, SYSTEMD_PATH,
				      SYSTEMD_MANAGER, "Reloading", on_reloading, on_match, m);
	if (r < 0)
		return r;
	r = sd_bus_add_match_async(m->bus, &m->owner,
				   "type='signal',sender='org.freedesktop.DBus',"
				   "path='/org/freedesktop/DBus',interface='org.freedesktop.DBus',"
				   "member='NameOwnerChanged',arg0='" SYSTEMD_NAME "'",
				   on_owner, on_match, m);
	if (r < 0)
		return r;
	return greet_systemd(m);
}

int unit_monitor_has_device_memory(const UnitMonitor *m)
{
	return m->has_device_memory;
}

/* --- The monitor ------------------------------------------------------------------------------ */

int unit_monitor_new(sd_event *event, sd_bus *bus, const Hierarchy *h, unit_cb cb, void *userdata,
		     UnitMonitor **ret)
{
	auto_unit_monitor UnitMonitor *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->event = sd_event_ref(event);
	m->bus = sd_bus_ref(bus);
	m->hierarchy = h;
	m->cb = cb;
	m->userdata = userdata;
	r = sd_event_add_defer(event, &m->news, on_news, m);
	if (r < 0)
		return r;
	(void)sd_event_source_set_description(m->news, "unit-news");
	r = sd_event_source_set_enabled(m->news, SD_EVENT_OFF);
	if (r < 0)
		return r;
	if (bus) {
		r = start_bus(m);
		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(m);
	return 0;
}

UnitMonitor *unit_monitor_free(UnitMonitor *m)
{
	if (!m)
		return NULL;
	sd_bus_slot_unref(m->reloading);
	sd_bus_slot_unref(m->owner);
	sd_bus_slot_unref(m->subscribe);
	sd_bus_slot_unref(m->probe);
	for (size_t i = 0; i < m->n_trees; i++)
		tree_free(m->trees[i]);
	free(m->trees);
	sd_event_source_disable_unref(m->news);
	sd_bus_unref(m->bus);
	sd_event_unref(m->event);
	free(m);
	return NULL;
}

static Tree *find_tree(const UnitMonitor *m, uid_t uid)
{
	for (size_t i = 0; i < m->n_trees; i++)
		if (m->trees[i]->uid == uid)
			return m->trees[i];
	return NULL;
}

int unit_monitor_add_user(UnitMonitor *m, uid_t uid, char *const *interest)
{
	auto_strv char **copy = NULL;
	Tree *t = find_tree(m, uid);
	int r;

	r = names_copy(interest, &copy);
	if (r < 0)
		return r;
	if (!t) {
		if (!GROW(m->trees, m->n_trees_alloc, m->n_trees))
			return -ENOMEM;
		r = tree_new(m, uid, &t);
		if (r < 0)
			return r;
		m->trees[m->n_trees++] = t;
	}
	strv_free(t->interest);
	t->interest = TAKE_PTR(copy);
	t->stale = true;
	monitor_wake(m);
	return 0;
}

int unit_monitor_get_marked(const UnitMonitor *m, uid_t uid, const char **ret)
{
	const Tree *t = find_tree(m, uid);

	if (!t || !t->marks)
		return -ENODATA;
	if (t->n_marked > 0)
		*ret = t->marked[0];
	return (int)t->n_marked;
}

void unit_monitor_remove_user(UnitMonitor *m, uid_t uid)
{
	for (size_t i = 0; i < m->n_trees; i++) {
		if (m->trees[i]->uid != uid)
			continue;
		tree_free(m->trees[i]);
		m->n_trees--;
		memmove(&m->trees[i], &m->trees[i + 1], (m->n_trees - i) * sizeof(m->trees[0]));
		return;
	}
}
