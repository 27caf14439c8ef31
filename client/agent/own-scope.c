/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <sys/inotify.h>
#include <sys/pidfd.h>
#include <sys/stat.h>

#include "client.h"
#include "fdinfo.h"
#include "log.h"
#include "own-scope.h"
#include "parse.h"
#include "process-ref.h"
#include "reaper-tree.h"
#include "scope.h"
#include "steam.h"

#define FOLDERS_MAX 4
#define PROCESSES_MAX 4096
#define ROUNDS_MAX 5
#define CALL_TIMEOUT_USEC (1 * USEC_PER_SEC)
/* In Game Mode Steam makes the scope itself, within the same second. */
#define STEAM_OWN_USEC (1500 * USEC_PER_MSEC)

/* When to look, after the reaper was executed: it has its name and its place in the tree soon, and a look that has seen
 * to it is the last. */
static const uint64_t looks_usec[] = { 2000, 10000, 30000, 100000, 300000, 1000000, STEAM_OWN_USEC + 100000 };

static const char *const folders[FOLDERS_MAX] = {
	".local/share/Steam/ubuntu12_32", ".steam/steam/ubuntu12_32", ".steam/root/ubuntu12_32",
	".steam/debian-installation/ubuntu12_32",
};

typedef struct Folder {
	OwnScope *owner;
	char *path;
	sd_event_source *watch;  /* for another reaper: Steam updates itself */
	sd_event_source *reaper; /* of the program itself; NULL: there is none now */
} Folder;

struct OwnScope {
	sd_event *event;
	Folder folders[FOLDERS_MAX];
	size_t n;
	sd_event_source *timer;
	size_t look;            /* the next one of looks_usec */
	uint64_t executed_usec; /* CLOCK_MONOTONIC */
	pid_t done[16];         /* reapers that were seen to, the newest ones */
	size_t n_done;
};

/* --- /proc -------------------------------------------------------------------------------------- */

/* The path behind "0::"; NULL if it cannot be read. */
static char *read_cgroup(pid_t pid)
{
	auto_free char *text = NULL;
	const char *line;

	if (process_read(pid, "cgroup", &text, NULL) < 0)
		return NULL;
	line = strstr(text, "0::/");
	return line ? strndup(line + strlen("0::"), strcspn(line + strlen("0::"), "\n")) : NULL;
}

/* Name and parent out of /proc/PID/stat. */
static int read_stat(pid_t pid, bool *ret_reaper, pid_t *ret_parent)
{
	auto_free char *text = NULL;
	char *name, *end;
	uint32_t parent;
	int r;

	r = process_read(pid, "stat", &text, NULL);
	if (r < 0)
		return r;
	name = strchr(text, '(');
	end = strrchr(text, ')');
	if (!name || !end || strlen(end) < strlen(") S 0"))
		return -EBADMSG;
	end[0] = '\0';
	end += strlen(") S ");
	end[strcspn(end, " ")] = '\0';
	if (parse_u32(end, &parent) < 0 || parent > INT_MAX)
		return -EBADMSG;
	*ret_reaper = streq(name + 1, "reaper");
	*ret_parent = (pid_t)parent;
	return 0;
}

static uint32_t reaper_appid(pid_t pid)
{
	auto_free char *cmdline = NULL;
	uint32_t appid = 0;
	size_t size;

	if (process_read(pid, "cmdline", &cmdline, &size) < 0)
		return 0;
	return steam_parse_reaper(cmdline, size, &appid) > 0 ? appid : 0;
}

static bool has_variable(pid_t pid, const char *variable)
{
	auto_free char *block = NULL;
	const char *s;
	size_t size, pos = 0;

	if (process_read(pid, "environ", &block, &size) < 0)
		return false;
	while (block_next(block, size, &pos, &s))
		if (streq(s, variable))
			return true;
	return false;
}

typedef struct Tree {
	TreeProcess *v;
	size_t n, n_alloc;
} Tree;

static void tree_done(Tree *t)
{
	free(t->v);
}

/* Every process that this user may look at; those of others have their place in the tree as well. */
static int read_tree(Tree *t)
{
	auto_closedir DIR *d = opendir("/proc");
	struct dirent *de;

	if (!d)
		return -errno;
	while ((de = readdir(d))) {
		TreeProcess p = {};
		uint32_t pid;

		if (parse_u32(de->d_name, &pid) < 0 || pid > INT_MAX)
			continue;
		p.pid = (pid_t)pid;
		if (read_stat(p.pid, &p.reaper, &p.parent) < 0)
			continue;
		p.reaper = p.reaper && reaper_appid(p.pid) > 0;
		if (t->n == PROCESSES_MAX)
			return -E2BIG;
		if (!GROW(t->v, t->n_alloc, t->n))
			return -ENOMEM;
		t->v[t->n++] = p;
	}
	return 0;
}

/* --- One game ----------------------------------------------------------------------------------- */

typedef struct Move {
	pid_t reaper;
	uint32_t appid;
	char *from;       /* control group */
	ino_t inode;      /* its directory's, so that none of the same name passes for it; 0: not known */
	ScopeProcess *processes;
	size_t n, n_alloc;
	size_t n_moved;   /* so far */
	size_t with_gpu;  /* of those that have moved */
	uint64_t vram;    /* bytes that they held */
} Move;

static void move_clear(Move *m)
{
	while (m->n > 0)
		close_fd(m->processes[--m->n].pidfd);
}

static void move_done(Move *m)
{
	move_clear(m);
	free(m->processes);
	free(m->from);
}

static bool has_gpu_open(pid_t pid)
{
	char path[64], target[32];
	auto_closedir DIR *d = NULL;
	struct dirent *de;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	while (d && (de = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), de->d_name, target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		if (startswith(target, "/dev/dri/"))
			return true;
	}
	return false;
}

static ino_t find_inode(const char *group)
{
	auto_free char *path = NULL;
	struct stat st;

	if (asprintf(&path, "/sys/fs/cgroup%s", group) < 0) {
		path = NULL;
		return 0;
	}
	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

/* What those who move next have opened; one that has just opened the GPU may hold nothing yet. */
static void look_at_gpu(const Move *m, size_t *ret_with_gpu, uint64_t *ret_vram)
{
	static const Roots roots = { .proc = (char *)"/proc" };
	auto_free pid_t *pids = calloc(m->n + 1, sizeof(*pids));
	FdinfoSum sum = {};

	*ret_with_gpu = 0;
	for (size_t i = 0; i < m->n; i++)
		*ret_with_gpu += has_gpu_open(m->processes[i].pid);
	for (size_t i = 0; pids && i < m->n; i++)
		pids[i] = m->processes[i].pid;
	if (pids)
		(void)fdinfo_sum(&roots, pids, m->n, NULL, &sum);
	*ret_vram = sum.vram;
}

static void note_moved(Move *m, size_t with_gpu, uint64_t vram)
{
	m->n_moved += m->n;
	m->with_gpu += with_gpu;
	m->vram += vram;
}

/* A number that is still at the same place in the tree once there is a pidfd is of the process that was meant. */
static int add_process(Move *m, const TreeProcess *p)
{
	auto_close int pidfd = pidfd_open(p->pid, 0);
	bool reaper;
	pid_t parent;

	if (pidfd < 0 || read_stat(p->pid, &reaper, &parent) < 0 || parent != p->parent)
		return 0;
	if (!GROW(m->processes, m->n_alloc, m->n))
		return -ENOMEM;
	m->processes[m->n++] = (ScopeProcess){ p->pid, TAKE_FD(pidfd) };
	return 0;
}

static int choose(Move *m, const Tree *all)
{
	auto_free TreeProcess *v = calloc(all->n + 1, sizeof(*v));
	int r;

	if (!v)
		return -ENOMEM;
	memcpy(v, all->v, all->n * sizeof(*v));
	for (size_t i = 0; i < all->n; i++) {
		auto_free char *group = read_cgroup(v[i].pid);

		v[i].inside = group && streq(group, m->from);
	}
	move_clear(m);
	r = reaper_tree_choose(v, all->n, m->reaper);
	/* Once it has begun, the rest follows: whoever else is left there, and what was forked meanwhile. */
	if (m->n_moved > 0 && (r == -EALREADY || r == -EBUSY))
		r = 0;
	for (size_t i = 0; i < all->n && r >= 0; i++)
		if (v[i].chosen)
			r = add_process(m, &v[i]);
	return r;
}

/* One of the user's own, and not a sandbox's: whoever leaves that is missed by those who look after it. */
static bool is_shared_unit(const char *group)
{
	const char *unit = strrchr(group, '/');
	char user[48];

	(void)snprintf(user, sizeof(user), "/user.slice/user-%u.slice/", (unsigned)getuid());
	return startswith(group, user) && unit && !startswith(unit, "/app-steam-app") && !startswith(unit, "/app-flatpak-") &&
	       (endswith(unit, ".scope") || endswith(unit, ".service"));
}

/* Never starts vramd: whoever stopped it does not want it back with the next game. */
static bool is_allowed(void)
{
	auto_message sd_bus_message *get = NULL, *reply = NULL;
	auto_bus sd_bus *bus = NULL;
	const char *value;
	int r;

	r = sd_bus_open_system_with_description(&bus, "vramd-agent-scope");
	if (r >= 0)
		r = sd_bus_message_new_method_call(bus, &get, VRAMD_BUS_NAME, VRAMD_PATH,
						   "org.freedesktop.DBus.Properties", "Get");
	if (r >= 0)
		r = sd_bus_message_set_auto_start(get, false);
	if (r >= 0)
		r = sd_bus_message_append(get, "ss", VRAMD_IFACE_MANAGER, "OwnScope");
	if (r >= 0)
		r = sd_bus_call(bus, get, CALL_TIMEOUT_USEC, NULL, &reply);
	if (r >= 0)
		r = sd_bus_message_read(reply, "v", "s", &value);
	return r >= 0 && streq(value, "auto");
}

static void tell(const Move *m, const char *name)
{
	const char *unit = strrchr(m->from, '/') + 1;
	char vram[FORMAT_BYTES_MAX];

	if (m->with_gpu == 0)
		log_info("Moved game %u, %zu processes, out of '%s' into '%s', before it opened the GPU", m->appid, m->n_moved,
			 unit, name);
	else
		log_notice("Moved game %u, %zu processes, out of '%s' into '%s'; %zu of them had opened the GPU, and the %s that "
			   "they had of it stay charged to the former", m->appid, m->n_moved, unit, name, m->with_gpu,
			   format_bytes(vram, m->vram));
}

/* What was forked by those who had not been moved yet. What they fork afterwards is at the right place. */
static int move_rest(Move *m, const char *name, sd_bus_error *error)
{
	int r = 0;

	for (unsigned i = 0; i < ROUNDS_MAX && r >= 0; i++) {
		_cleanup_(tree_done) Tree all = {};
		uint64_t vram;
		size_t with_gpu;

		r = read_tree(&all);
		if (r >= 0)
			r = choose(m, &all);
		if (r < 0 || m->n == 0)
			break;
		look_at_gpu(m, &with_gpu, &vram);
		r = scope_attach(&(Scope){ .name = name, .processes = m->processes, .n = m->n }, error);
		if (r >= 0) {
			note_moved(m, with_gpu, vram);
		} else if (r == -ESRCH) {
			/* One has ended since; the others are tried once more. */
			sd_bus_error_free(error);
			r = 0;
		}
	}
	return r == -ESRCH ? 0 : r; /* the game has ended */
}

static int move(Move *m)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	auto_free char *name = NULL, *now = NULL;
	uint64_t vram;
	size_t with_gpu;
	int r;

	if (asprintf(&name, "app-steam-app%u-%d.scope", m->appid, m->reaper) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	/* What was read may have changed since: the last look, right before. */
	now = read_cgroup(m->reaper);
	if (!now || !streq(now, m->from) || find_inode(now) != m->inode)
		return -ESRCH;
	look_at_gpu(m, &with_gpu, &vram);
	r = scope_start(&(Scope){ name, "app.slice", "A game of Steam, moved by vramd-agent", m->processes, m->n, true },
			&error);
	if (r == -ESRCH)
		return r;
	if (r >= 0) {
		note_moved(m, with_gpu, vram);
		r = move_rest(m, name, &error);
	}
	if (r < 0)
		log_warning("Cannot give game %u a scope of its own: %s", m->appid,
			    *strempty(error.message) ? error.message : strerror(-r));
	else
		tell(m, name);
	return r;
}

/* True if this reaper needs no further look. */
static bool see_to(const OwnScope *o, const Tree *all, pid_t reaper)
{
	_cleanup_(move_done) Move m = { .reaper = reaper, .appid = reaper_appid(reaper), .from = read_cgroup(reaper) };
	uint64_t now = 0;
	int r;

	if (!m.from || m.appid == 0 || !is_shared_unit(m.from))
		return m.from && m.appid > 0;
	m.inode = find_inode(m.from);
	(void)sd_event_now(o->event, CLOCK_MONOTONIC, &now);
	if (now < o->executed_usec + STEAM_OWN_USEC && has_variable(reaper, "XDG_CURRENT_DESKTOP=gamescope"))
		return false;
	r = choose(&m, all);
	if (r < 0)
		log_debug_errno(r, "Game %u stays in '%s': %m", m.appid, m.from);
	else if (is_allowed())
		r = move(&m);
	/* A child that has just been forked looks like another one; and somebody may have ended right now. */
	return r != -EBUSY && r != -ESRCH;
}

/* --- Hearing of it ------------------------------------------------------------------------------ */

static bool was_seen_to(const OwnScope *o, pid_t pid)
{
	for (size_t i = 0; i < MIN(o->n_done, ARRAY_SIZE(o->done)); i++)
		if (o->done[i] == pid)
			return true;
	return false;
}

/* True if somebody was found, and all that were are seen to. */
static bool look(OwnScope *o)
{
	bool found = false, all_done = true;
	_cleanup_(tree_done) Tree all = {};
	int r = read_tree(&all);

	if (r < 0) {
		log_debug_errno(r, "Cannot read the processes, ignoring: %m");
		return true;
	}
	for (size_t i = 0; i < all.n; i++) {
		if (!all.v[i].reaper || was_seen_to(o, all.v[i].pid))
			continue;
		found = true;
		if (see_to(o, &all, all.v[i].pid))
			o->done[o->n_done++ % ARRAY_SIZE(o->done)] = all.v[i].pid;
		else
			all_done = false;
	}
	return found && all_done;
}

static int on_look(sd_event_source *s, uint64_t usec _unused_, void *userdata)
{
	OwnScope *o = userdata;

	if (look(o) || ++o->look == ARRAY_SIZE(looks_usec))
		return 0;
	if (sd_event_source_set_time(s, o->executed_usec + looks_usec[o->look]) < 0)
		return 0;
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

static int on_executed(sd_event_source *s _unused_, const struct inotify_event *event, void *userdata)
{
	Folder *f = userdata;
	OwnScope *o = f->owner;
	int r;

	if (event->mask & (IN_IGNORED | IN_DELETE_SELF)) {
		f->reaper = sd_event_source_disable_unref(f->reaper);
		return 0;
	}
	(void)sd_event_now(o->event, CLOCK_MONOTONIC, &o->executed_usec);
	o->look = 0;
	if (o->timer) {
		r = sd_event_source_set_time(o->timer, o->executed_usec + looks_usec[0]);
		if (r >= 0)
			r = sd_event_source_set_enabled(o->timer, SD_EVENT_ONESHOT);
	} else {
		r = sd_event_add_time(o->event, &o->timer, CLOCK_MONOTONIC, o->executed_usec + looks_usec[0], 1000, on_look, o);
	}
	if (r < 0)
		log_debug_errno(r, "Cannot look for the game that starts, ignoring: %m");
	return 0;
}

static int watch_reaper(Folder *f)
{
	auto_free char *path = NULL;

	f->reaper = sd_event_source_disable_unref(f->reaper);
	if (asprintf(&path, "%s/reaper", f->path) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return sd_event_add_inotify(f->owner->event, &f->reaper, path, IN_OPEN | IN_DELETE_SELF, on_executed, f);
}

static int on_folder(sd_event_source *s _unused_, const struct inotify_event *event, void *userdata)
{
	if (event->len > 0 && streq(event->name, "reaper"))
		(void)watch_reaper(userdata);
	return 0;
}

static int add_folder(OwnScope *o, const char *home, const char *folder)
{
	auto_free char *path = NULL;
	Folder *f = &o->folders[o->n];
	char real[PATH_MAX];
	int r;

	if (asprintf(&path, "%s/%s", home, folder) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	/* Most of them are links to one. */
	if (!realpath(path, real))
		return 0;
	for (size_t i = 0; i < o->n; i++)
		if (streq(o->folders[i].path, real))
			return 0;
	*f = (Folder){ .owner = o, .path = strdup(real) };
	if (!f->path)
		return -ENOMEM;
	o->n++;
	r = sd_event_add_inotify(o->event, &f->watch, real, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR, on_folder, f);
	if (r < 0)
		return r;
	(void)watch_reaper(f); /* there may be none yet */
	return 0;
}

int own_scope_new(sd_event *event, const char *home, OwnScope **ret)
{
	auto_own_scope OwnScope *o = calloc(1, sizeof(*o));
	int r = 0;

	if (!o)
		return -ENOMEM;
	o->event = sd_event_ref(event);
	for (size_t i = 0; i < FOLDERS_MAX && r >= 0; i++)
		r = add_folder(o, home, folders[i]);
	if (r < 0)
		return r;
	if (o->n == 0)
		return -ENOENT;
	*ret = TAKE_PTR(o);
	return 0;
}

OwnScope *own_scope_free(OwnScope *o)
{
	if (!o)
		return NULL;
	for (size_t i = 0; i < o->n; i++) {
		sd_event_source_disable_unref(o->folders[i].watch);
		sd_event_source_disable_unref(o->folders[i].reaper);
		free(o->folders[i].path);
	}
	sd_event_source_disable_unref(o->timer);
	sd_event_unref(o->event);
	free(o);
	return NULL;
}
