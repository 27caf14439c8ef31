// SPDX-License-Identifier: MIT
/*
 * cgroupemu: a cgroup2 tree with the dmem controller, as a FUSE file system.
 *
 * For tests and demos on kernels without CONFIG_CGROUP_DMEM. Files, errors and rejected inputs are
 * those of Linux 7.3; test_emu.py holds the table. README.md says what is not emulated.
 *
 * One thread serves everything. A forked helper writes to cgroup.events of a group whose
 * "populated" changed, because only a write through the mount gives watchers the IN_MODIFY that the
 * kernel would send; the same helper unmounts when the main process is killed.
 */
#define FUSE_USE_VERSION 35

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tree.h"

#define MAX_WRITE	4096	/* kernfs: longer writes are E2BIG */
#define MAX_EVENTS	64
#define MAX_WAITING	64

static int epoll_fd = -1;
static int helper_fd = -1;

/* ---- FUSE: a node's number is its address, the root's is FUSE_ROOT_ID ---- */

static Node *node_from(fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? &tree_root->node : (Node *)(uintptr_t)ino;
}

static Caller caller(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	return (Caller) { .uid = ctx->uid, .gid = ctx->gid, .pid = ctx->pid };
}

static void node_stat(const Node *n, struct stat *ret)
{
	*ret = (struct stat) {
		.st_ino = n->ino, .st_mode = n->mode, .st_uid = n->uid, .st_gid = n->gid,
		.st_nlink = n->group ? 1 : 0,
	};
	if (!n->type && n->group)
		ret->st_nlink = 2 + n->group->n_children;
}

static void reply_node(fuse_req_t req, Node *n)
{
	struct fuse_entry_param e = { .ino = (uintptr_t)n, .generation = n->ino };

	node_stat(n, &e.attr);
	if (fuse_reply_entry(req, &e) == 0)
		n->nlookup++;
}

static void emu_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	Group *dir = node_from(parent)->group, *g;

	for (size_t i = 0; dir && i < n_file_types; i++)
		if (dir->files[i] && strcmp(file_types[i].name, name) == 0) {
			reply_node(req, dir->files[i]);
			return;
		}
	g = dir ? group_find_child(dir, name) : NULL;
	if (g)
		reply_node(req, &g->node);
	else
		fuse_reply_err(req, ENOENT);
}

static void emu_forget(fuse_req_t req, fuse_ino_t ino, uint64_t nlookup)
{
	Node *n = node_from(ino);

	if (n != &tree_root->node) {
		n->nlookup -= nlookup;
		node_release(n);
	}
	fuse_reply_none(req);
}

static void emu_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;

	(void)fi;
	node_stat(node_from(ino), &st);
	fuse_reply_attr(req, &st, 0);
}

static void emu_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int set,
			struct fuse_file_info *fi)
{
	Node *n = node_from(ino);

	/* Sizes and times are accepted and ignored, as the kernel does for O_TRUNC. */
	if (set & FUSE_SET_ATTR_MODE)
		n->mode = (n->mode & S_IFMT) | (attr->st_mode & 07777);
	if (set & FUSE_SET_ATTR_UID)
		n->uid = attr->st_uid;
	if (set & FUSE_SET_ATTR_GID)
		n->gid = attr->st_gid;
	emu_getattr(req, ino, fi);
}

static void emu_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	Group *dir = node_from(parent)->group, *g;
	Caller by = caller(req);
	int r;

	(void)mode;	/* kernfs: always 0755 */
	if (!dir)
		r = -ENODEV;
	else if (strchr(name, '\n'))
		r = -EINVAL;
	else
		r = group_new(dir, name, &by, &g);
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		reply_node(req, &g->node);
}

static void emu_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	Group *dir = node_from(parent)->group;
	Group *g = dir ? group_find_child(dir, name) : NULL;
	int error = 0;

	if (!g)
		error = ENOENT;
	else if (g->n_populated || g->n_children)
		error = EBUSY;
	else
		group_remove(g);
	fuse_reply_err(req, error);
}

static void emu_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	(void)parent, (void)name;
	fuse_reply_err(req, EPERM);
}

static void emu_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		       const char *new_name, unsigned int flags)
{
	(void)parent, (void)name, (void)new_parent, (void)new_name, (void)flags;
	fuse_reply_err(req, EPERM);
}

static void emu_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		       struct fuse_file_info *fi)
{
	(void)parent, (void)name, (void)mode, (void)fi;
	fuse_reply_err(req, EACCES);
}

static void stop_waiting(Opened *o)
{
	if (o->waiting)
		fuse_pollhandle_destroy(o->waiting);
	o->waiting = NULL;
}

static void opened_free(Opened *o)
{
	if (!o)
		return;
	stop_waiting(o);
	LIST_REMOVE(o, of_node);
	free(o);
}

static void emu_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	Node *n = node_from(ino);
	Opened *o = NULL;

	if (!n->group) {
		fuse_reply_err(req, ENODEV);
		return;
	}
	if (n->type->flags & POLLED) {
		o = calloc(1, sizeof(*o));
		if (!o) {
			fuse_reply_err(req, ENOMEM);
			return;
		}
		LIST_INSERT_HEAD(&n->opened, o, of_node);
	}
	fi->fh = (uintptr_t)o;
	fi->direct_io = 1;
	if (fuse_reply_open(req, fi) < 0)
		opened_free(o);
}

static void emu_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	opened_free((Opened *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}

void emu_close_all(Node *n)
{
	while (!LIST_EMPTY(&n->opened))
		opened_free(LIST_FIRST(&n->opened));
}

void emu_file_changed(Node *n)
{
	Opened *o;

	n->n_events++;
	LIST_FOREACH(o, &n->opened, of_node) {
		if (o->waiting)
			fuse_lowlevel_notify_poll(o->waiting);
		stop_waiting(o);
	}
}

/* As kernfs: always ready to be read, and POLLPRI until it is read after a change. The kernel asks again after each
 * notification, and for that one it gives a handle. */
static void emu_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct fuse_pollhandle *handle)
{
	Opened *o = (Opened *)(uintptr_t)fi->fh;
	Node *n = node_from(ino);

	if (o && handle) {
		stop_waiting(o);
		o->waiting = handle;
	} else if (handle) {
		fuse_pollhandle_destroy(handle);
	}
	fuse_reply_poll(req, POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM |
			(o && (!n->group || o->seen != n->n_events) ? POLLPRI | POLLERR : 0));
}

static void reply_slice(fuse_req_t req, const char *data, size_t len, size_t size, off_t off)
{
	if ((size_t)off >= len)
		fuse_reply_buf(req, NULL, 0);
	else
		fuse_reply_buf(req, data + off, len - off < size ? len - off : size);
}

static void emu_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	Node *n = node_from(ino);
	char *text = NULL;
	size_t len = 0;
	FILE *out;

	if (!n->group || !n->type->show) {
		fuse_reply_err(req, n->group ? EINVAL : ENODEV);
		return;
	}
	out = open_memstream(&text, &len);
	if (!out) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	if (fi->fh)
		((Opened *)(uintptr_t)fi->fh)->seen = n->n_events;
	n->type->show(n, out);
	if (fclose(out) != 0)
		fuse_reply_err(req, ENOMEM);
	else
		reply_slice(req, text, len, size, off);
	free(text);
}

/* Writes that were done, and wait to be answered. */
static struct {
	fuse_req_t req;
	size_t size;
} waiting[MAX_WAITING];
static size_t n_waiting;
static bool is_slow;

void emu_slow(bool slow)
{
	is_slow = slow;
	while (!slow && n_waiting > 0) {
		n_waiting--;
		fuse_reply_write(waiting[n_waiting].req, waiting[n_waiting].size);
	}
}

static void emu_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
		      struct fuse_file_info *fi)
{
	Node *n = node_from(ino);
	Caller by = caller(req);
	char text[MAX_WRITE + 1];
	int r;

	(void)off;
	if (!n->group)
		r = -ENODEV;
	else if (size > MAX_WRITE)
		r = -E2BIG;
	else if (!n->type->write)
		r = -EINVAL;
	else {
		memcpy(text, buf, size);
		text[size] = '\0';
		r = n->type->write(n, text, &by);
	}
	if (r < 0) {
		fuse_reply_err(req, -r);
	} else if (is_slow && n->type->flags & SLOW && !(fi->flags & O_NONBLOCK) && n_waiting < MAX_WAITING) {
		waiting[n_waiting].req = req;
		waiting[n_waiting++].size = size;
	} else {
		fuse_reply_write(req, size);
	}
}

/* A directory is listed once, when it is read from its start. */
typedef struct Listing {
	char *data;
	size_t len;
} Listing;

static void emu_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	Listing *l = calloc(1, sizeof(*l));

	(void)ino;
	fi->fh = (uintptr_t)l;
	if (!l)
		fuse_reply_err(req, ENOMEM);
	else if (fuse_reply_open(req, fi) < 0)
		free(l);
}

static bool listing_add(fuse_req_t req, Listing *l, const char *name, const Node *n)
{
	size_t len = fuse_add_direntry(req, NULL, 0, name, NULL, 0);
	char *data = realloc(l->data, l->len + len);
	struct stat st;

	if (!data)
		return false;
	node_stat(n, &st);
	fuse_add_direntry(req, data + l->len, len, name, &st, l->len + len);
	l->data = data;
	l->len += len;
	return true;
}

static bool listing_fill(fuse_req_t req, Listing *l, const Group *dir)
{
	const Group *up = dir->parent ? dir->parent : dir, *g;
	bool ok;

	l->len = 0;
	ok = listing_add(req, l, ".", &dir->node) && listing_add(req, l, "..", &up->node);
	for (size_t i = 0; i < n_file_types; i++)
		if (dir->files[i] && !(file_types[i].flags & HIDDEN))
			ok = ok && listing_add(req, l, file_types[i].name, dir->files[i]);
	TAILQ_FOREACH(g, &dir->children, sibling)
		ok = ok && listing_add(req, l, g->name, &g->node);
	return ok;
}

static void emu_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			struct fuse_file_info *fi)
{
	Listing *l = (Listing *)(uintptr_t)fi->fh;
	Group *dir = node_from(ino)->group;

	if (off == 0 && dir && !listing_fill(req, l, dir))
		fuse_reply_err(req, ENOMEM);
	else
		reply_slice(req, l->data, l->len, size, off);
}

static void emu_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	Listing *l = (Listing *)(uintptr_t)fi->fh;

	(void)ino;
	free(l->data);
	free(l);
	fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops operations = {
	.lookup = emu_lookup,
	.forget = emu_forget,
	.getattr = emu_getattr,
	.setattr = emu_setattr,
	.mkdir = emu_mkdir,
	.rmdir = emu_rmdir,
	.unlink = emu_unlink,
	.rename = emu_rename,
	.create = emu_create,
	.open = emu_open,
	.release = emu_release,
	.poll = emu_poll,
	.read = emu_read,
	.write = emu_write,
	.opendir = emu_opendir,
	.readdir = emu_readdir,
	.releasedir = emu_releasedir,
};

/* ---- helper process ---- */

/* Each line is a group's path. The first, empty one says that the mount is there. */
static _Noreturn void helper_run(int fd, const char *mount_point)
{
	FILE *in = fdopen(fd, "r");
	char *line = NULL, *path;
	bool mounted = false;
	size_t size = 0;
	ssize_t len;

	while (in && (len = getline(&line, &size, in)) > 0) {
		mounted = true;
		line[len - 1] = '\0';
		if (!*line || asprintf(&path, "%s%s/cgroup.events", mount_point, line) < 0)
			continue;
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0) {
			(void)!write(fd, "\n", 1);
			close(fd);
		}
		free(path);
	}
	/* The main process kills us before it exits: end of file means that it crashed. */
	if (mounted && umount2(mount_point, MNT_DETACH) < 0)
		execlp("fusermount3", "fusermount3", "-uzq", "--", mount_point, NULL);
	_exit(0);
}

/* Before mounting: a copy of the FUSE descriptor would keep a dead mount alive. Gives the pid. */
static pid_t helper_start(const char *mount_point)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close(fds[1]);
		helper_run(fds[0], mount_point);
	}
	close(fds[0]);
	helper_fd = fds[1];
	/* Never wait for the helper: it waits for us. */
	if (fcntl(helper_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	(void)fcntl(helper_fd, F_SETPIPE_SZ, 1 << 20);
	return pid;
}

/* Ask the helper to write to the group's cgroup.events. */
void emu_populated_changed(const Group *g)
{
	char line[PIPE_BUF];
	size_t at = sizeof(line);

	line[--at] = '\n';
	for (; g->parent; g = g->parent) {
		size_t len = strlen(g->name);

		if (at < len + 1)
			return;
		at -= len;
		memcpy(line + at, g->name, len);
		line[--at] = '/';
	}
	/* A full pipe means thousands of events unread: the watcher re-reads anyway. */
	if (at < sizeof(line) - 1 && write(helper_fd, line + at, sizeof(line) - at) < 0)
		fprintf(stderr, "cgroupemu: event lost: %s\n", strerror(errno));
}

/* ---- main ---- */

int emu_watch(int fd, void *ptr)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = ptr };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* Exits are handled before requests: who has seen a process end must see its group empty. */
static int serve(struct fuse_session *se, int signal_fd)
{
	struct fuse_buf buf = { 0 };
	int r = emu_watch(signal_fd, &signal_fd);

	if (r == 0)
		r = emu_watch(fuse_session_fd(se), se);
	while (r == 0 && !fuse_session_exited(se)) {
		struct epoll_event ev[MAX_EVENTS];
		bool request = false;
		int n = epoll_wait(epoll_fd, ev, MAX_EVENTS, -1);

		if (n < 0 && errno != EINTR)
			r = -errno;
		for (int i = 0; i < n; i++) {
			if (ev[i].data.ptr == se)
				request = true;
			else if (ev[i].data.ptr == &signal_fd)
				fuse_session_exit(se);
			else
				process_remove(ev[i].data.ptr);
		}
		if (!request || n == MAX_EVENTS)
			continue;
		n = fuse_session_receive_buf(se, &buf);
		if (n > 0)
			fuse_session_process_buf(se, &buf);
		else if (n < 0 && n != -EINTR && n != -EAGAIN)
			r = n;
	}
	free(buf.mem);
	return r;
}

static int mount_and_serve(struct fuse_session *se, const char *mount_point)
{
	sigset_t signals;
	pid_t helper;
	int signal_fd, r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		return -errno;
	signal(SIGPIPE, SIG_IGN);	/* the helper may have been killed */
	signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (signal_fd < 0 || epoll_fd < 0)
		return -errno;
	helper = helper_start(mount_point);
	if (helper < 0)
		return helper;

	if (fuse_session_mount(se, mount_point) < 0)
		r = -EIO;
	else if (fcntl(fuse_session_fd(se), F_SETFL, O_NONBLOCK) < 0 ||
		 write(helper_fd, "\n", 1) < 0)
		r = -errno;
	else {
		printf("mounted %s\n", mount_point);
		fflush(stdout);
		r = serve(se, signal_fd);
	}
	/* The helper may sit in a request that only the unmount ends: wait for it last. */
	kill(helper, SIGKILL);
	fuse_session_unmount(se);
	fuse_session_destroy(se);
	waitpid(helper, NULL, 0);
	close(helper_fd);
	close(signal_fd);
	close(epoll_fd);
	return r;
}

static int parse_region_option(char *option)
{
	char *bytes = strrchr(option, '=');
	uint64_t capacity;

	if (!bytes)
		return -EINVAL;
	*bytes++ = '\0';
	if (strpbrk(option, " \t\n") || parse_word(bytes, INT64_MAX, &capacity) < 0)
		return -EINVAL;
	return region_add(option, capacity);
}

static const char *parse_options(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "region", required_argument, NULL, 'r' },
		{ "series", no_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	static const char usage[] = "Usage: cgroupemu [--series] [--region NAME=BYTES]... MOUNTPOINT\n";
	int c;

	while ((c = getopt_long(argc, argv, "r:sh", options, NULL)) >= 0) {
		if (c == 'h') {
			fputs(usage, stdout);
			exit(EXIT_SUCCESS);
		}
		if (c == 's') {
			with_series = true;
			continue;
		}
		if (c != 'r' || parse_region_option(optarg) < 0) {
			if (c == 'r')
				fprintf(stderr, "cgroupemu: bad region \"%s\"\n", optarg);
			return NULL;
		}
	}
	if (optind != argc - 1) {
		fputs(usage, stderr);
		return NULL;
	}
	return argv[optind];
}

int main(int argc, char *argv[])
{
	const char *option = parse_options(argc, argv);
	Caller self = { .uid = geteuid(), .gid = getegid() };
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *se = NULL;
	Group *root;
	char *mount_point;
	int r;

	if (!option)
		return EXIT_FAILURE;
	mount_point = realpath(option, NULL);
	if (!mount_point) {
		fprintf(stderr, "cgroupemu: %s: %s\n", option, strerror(errno));
		return EXIT_FAILURE;
	}
	if (fuse_opt_add_arg(&args, "cgroupemu") == 0 &&
	    fuse_opt_add_arg(&args, "-ofsname=cgroupemu,default_permissions") == 0 &&
	    (self.uid != 0 || fuse_opt_add_arg(&args, "-oallow_other") == 0) &&
	    group_new(NULL, "", &self, &root) == 0)
		se = fuse_session_new(&args, &operations, sizeof(operations), NULL);
	r = se ? mount_and_serve(se, mount_point) : -ENOMEM;
	if (r < 0)
		fprintf(stderr, "cgroupemu: %s: %s\n", mount_point, strerror(-r));
	tree_free();
	fuse_opt_free_args(&args);
	free(mount_point);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
