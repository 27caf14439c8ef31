/* SPDX-License-Identifier: MIT */
/* A lowered dmem.max takes effect at once, but with O_NONBLOCK nothing is moved out for it, and without it write(2)
 * waits for that: up to seconds. So a short-lived child says once more, and waits, what apply has written and the journal
 * knows. It has no descriptor of ours but those that it writes to: not the journal's lock, not the bus. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>

#include "apply-internal.h"

typedef struct Order {
	int fd;
	size_t size;
	char line[DMEM_LINE_MAX];
} Order;

typedef struct Orders {
	Order *v;
	size_t n, n_alloc;
} Orders;

static void orders_done(Orders *o)
{
	for (size_t i = 0; i < o->n; i++)
		close_fd(o->v[i].fd);
	free(o->v);
}

static int order_compare(const void *a, const void *b)
{
	return ((const Order *)a)->fd - ((const Order *)b)->fd;
}

static int add_order(Orders *o, const ApplyGroup *g, const Record *record)
{
	Order *order;
	int r;

	if (!GROW(o->v, o->n_alloc, o->n))
		return -ENOMEM;
	order = &o->v[o->n];
	r = dmem_format(order->line, record->region, record->ours);
	if (r < 0)
		return r;
	order->size = strlen(order->line);
	order->fd = openat(g->cgroup->dir_fd, dmem_limit_to_file(DMEM_MAX), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	if (order->fd < 0)
		return -errno;
	o->n++;
	return 0;
}

static int add_orders(Orders *o, const Apply *a, const char *path)
{
	const ApplyGroup *g = apply_group_find(a, path);
	const Journal *j = &a->journal;
	int r = 0;

	if (!g || !g->cgroup)
		return 0;
	for (size_t i = journal_first(j, path); i < j->n && streq(j->records[i]->path, path) && r >= 0; i++) {
		const Record *record = j->records[i];

		if (record->kind == RECORD_VALUE && record->limit == DMEM_MAX && record->held && !record->yielded)
			r = add_order(o, g, record);
	}
	return apply_is_gone(r) ? 0 : r;
}

/* All but the orders', which are sorted. */
static void close_others(const Orders *o)
{
	unsigned first = STDERR_FILENO + 1;

	for (size_t i = 0; i < o->n; i++) {
		unsigned fd = (unsigned)o->v[i].fd;

		if (fd > first)
			(void)close_range(first, fd - 1, 0);
		first = fd + 1;
	}
	(void)close_range(first, ~0U, 0);
}

/* A stranger's value, written since, is not to be lost. */
static bool is_still_ours(const Order *o)
{
	char text[DMEM_REGIONS_MAX * DMEM_LINE_MAX + 1];
	ssize_t n = pread(o->fd, text, sizeof(text) - 1, 0);
	const char *line;

	if (n <= 0)
		return false;
	text[n] = '\0';
	line = strstr(text, o->line);
	return line && (line[o->size] == '\n' || line[o->size] == '\0');
}

/* Nothing here may allocate or log. */
_Noreturn static void child_main(const Orders *o, pid_t parent)
{
	sigset_t none;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	close_others(o);
	for (size_t i = 0; i < o->n; i++)
		if (is_still_ours(&o->v[i]) && pwrite(o->v[i].fd, o->v[i].line, o->v[i].size, 0) < 0)
			continue; /* its group is gone, or there was nothing more to move */
	_exit(EXIT_SUCCESS);
}

int apply_enforce_max(const Apply *a, char *const *paths, size_t n, pid_t *ret)
{
	_cleanup_(orders_done) Orders o = { 0 };
	pid_t parent = getpid(), pid;
	int r = 0;

	for (size_t i = 0; i < n && r >= 0 && !a->dry_run; i++)
		r = add_orders(&o, a, paths[i]);
	if (r < 0)
		return r;
	if (o.n == 0)
		return 0;
	qsort(o.v, o.n, sizeof(*o.v), order_compare);
	pid = fork();
	if (pid == 0)
		child_main(&o, parent);
	if (pid < 0)
		return -errno;
	*ret = pid;
	return 1;
}
