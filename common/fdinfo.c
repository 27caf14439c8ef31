/* SPDX-License-Identifier: MIT */
#include <fcntl.h>

#include "fdinfo.h"
#include "parse.h"

#define FDINFO_TEXT_MAX (64 * KIB)
#define FDINFO_NAME_MAX 32    /* bytes of a memory region's or device's name, NUL included */
#define FDINFO_REGIONS_MAX 16 /* memory regions of one client */

/* A piece of the text, not terminated. */
typedef struct Span {
	const char *s;
	size_t n;
} Span;

typedef struct Memory {
	char name[FDINFO_NAME_MAX];
	uint64_t total, resident, legacy, evicted;
	bool has_total, has_resident, has_legacy, has_evicted;
} Memory;

typedef struct Client {
	char pdev[FDINFO_NAME_MAX]; /* "" when the driver names none */
	uint64_t id;
	bool has_driver, has_id;
	Memory memory[FDINFO_REGIONS_MAX];
	size_t n_memory;
} Client;

static bool span_is(Span a, const char *b)
{
	return a.n == strlen(b) && memcmp(a.s, b, a.n) == 0;
}

static bool span_take_prefix(Span *a, const char *prefix)
{
	size_t n = strlen(prefix);

	if (a->n < n || memcmp(a->s, prefix, n) != 0)
		return false;
	a->s += n;
	a->n -= n;
	return true;
}

/* Names longer than the buffer are of no device or region that we know. */
static bool span_copy(Span a, char *buf, size_t size)
{
	if (a.n >= size)
		return false;
	memcpy(buf, a.s, a.n);
	buf[a.n] = '\0';
	return true;
}

/* "1234", "12 KiB", "1 MiB" */
static bool parse_memory(Span value, uint64_t *ret)
{
	static const struct {
		const char *suffix;
		uint64_t factor;
	} units[] = { { " KiB", KIB }, { " MiB", MIB }, { "", 1 } };
	char buf[FDINFO_NAME_MAX];
	uint64_t v;

	if (!span_copy(value, buf, sizeof(buf)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		char *unit = (char *)endswith(buf, units[i].suffix);

		if (!unit)
			continue;
		*unit = '\0';
		return parse_u64(buf, &v) >= 0 && !__builtin_mul_overflow(v, units[i].factor, ret);
	}
	return false;
}

static Memory *client_memory(Client *c, Span region)
{
	Memory *m;

	for (size_t i = 0; i < c->n_memory; i++)
		if (span_is(region, c->memory[i].name))
			return &c->memory[i];
	if (c->n_memory >= ARRAY_SIZE(c->memory))
		return NULL;
	m = &c->memory[c->n_memory];
	if (region.n == 0 || !span_copy(region, m->name, sizeof(m->name)))
		return NULL;
	c->n_memory++;
	return m;
}

/* A driver's own "amd-evicted-vram": moves the key to the region's name. */
static bool take_evicted(Span *key)
{
	static const char infix[] = "-evicted-";
	const char *p = memmem(key->s, key->n, infix, strlen(infix));

	if (!p || p == key->s)
		return false;
	p += strlen(infix);
	*key = (Span){ p, key->n - (size_t)(p - key->s) };
	return true;
}

static void client_add_memory(Client *c, Span key, Span value)
{
	enum { TOTAL, RESIDENT, LEGACY, EVICTED } what;
	uint64_t v;
	Memory *m;

	if (span_take_prefix(&key, "drm-total-"))
		what = TOTAL;
	else if (span_take_prefix(&key, "drm-resident-"))
		what = RESIDENT;
	else if (span_take_prefix(&key, "drm-memory-"))
		what = LEGACY;
	else if (take_evicted(&key))
		what = EVICTED;
	else
		return;
	if (!parse_memory(value, &v))
		return;
	m = client_memory(c, key);
	if (!m)
		return;
	switch (what) {
	case TOTAL:
		m->total = v;
		m->has_total = true;
		break;
	case RESIDENT:
		m->resident = v;
		m->has_resident = true;
		break;
	case LEGACY:
		m->legacy = v;
		m->has_legacy = true;
		break;
	case EVICTED:
		m->evicted = v;
		m->has_evicted = true;
		break;
	}
}

static void client_add_line(Client *c, Span key, Span value)
{
	char buf[24];

	if (span_is(key, "drm-driver"))
		c->has_driver = value.n > 0;
	else if (span_is(key, "drm-pdev"))
		(void)span_copy(value, c->pdev, sizeof(c->pdev));
	else if (span_is(key, "drm-client-id"))
		c->has_id = span_copy(value, buf, sizeof(buf)) && parse_u64(buf, &c->id) >= 0;
	else
		client_add_memory(c, key, value);
}

/* False if the text is of no DRM client. Lines that we do not know are skipped. */
static bool client_parse(const char *text, Client *ret)
{
	*ret = (Client){};
	while (*text) {
		const char *end = strchrnul(text, '\n');
		const char *colon = memchr(text, ':', (size_t)(end - text));

		if (colon) {
			Span key = { text, (size_t)(colon - text) };
			Span value = { colon + 1, (size_t)(end - colon) - 1 };

			while (value.n > 0 && (*value.s == ' ' || *value.s == '\t')) {
				value.s++;
				value.n--;
			}
			client_add_line(ret, key, value);
		}
		text = *end ? end + 1 : end;
	}
	return ret->has_driver && ret->has_id;
}

static bool starts_with_any(const char *name, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (startswith(name, prefixes[i]))
			return true;
	return false;
}

static FdinfoSum client_sum(const Client *c)
{
	static const char *const device[] = { "vram", "local", "vidmem" };
	static const char *const host[] = { "gtt", "system", "cpu" };
	FdinfoSum sum = {};

	for (size_t i = 0; i < c->n_memory; i++) {
		const Memory *m = &c->memory[i];
		uint64_t resident = m->has_resident ? m->resident : m->legacy;

		if (starts_with_any(m->name, host, ARRAY_SIZE(host))) {
			sum.other = add_sat(sum.other, resident);
		} else if (starts_with_any(m->name, device, ARRAY_SIZE(device))) {
			sum.vram = add_sat(sum.vram, resident);
			if (m->has_evicted)
				sum.spilled = add_sat(sum.spilled, m->evicted);
			else if (m->has_total && (m->has_resident || m->has_legacy))
				sum.spilled = add_sat(sum.spilled,
						      m->total - MIN(resident, m->total));
		}
	}
	return sum;
}

static bool client_is_on(const Client *c, const char *pdev)
{
	return !pdev || streq(c->pdev, pdev);
}

int fdinfo_parse(const char *text, const char *pdev, uint64_t *ret_client, FdinfoSum *ret)
{
	Client c;

	if (!client_parse(text, &c) || !client_is_on(&c, pdev))
		return 0;
	*ret_client = c.id;
	*ret = client_sum(&c);
	return 1;
}

/* Client ids are unique within a device at least: drm-usage-stats.rst. */
typedef struct Seen {
	char pdev[FDINFO_NAME_MAX];
	uint64_t id;
} Seen;

typedef struct SeenList {
	Seen *list;
	size_t n, n_alloc;
} SeenList;

static void seen_done(SeenList *s)
{
	free(s->list);
}

/* 1 if it is new, 0 if it was there. */
static int seen_add(SeenList *s, const Client *c)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].id == c->id && streq(s->list[i].pdev, c->pdev))
			return 0;
	if (!GROW(s->list, s->n_alloc, s->n))
		return -ENOMEM;
	s->list[s->n].id = c->id;
	memcpy(s->list[s->n].pdev, c->pdev, sizeof(c->pdev));
	s->n++;
	return 1;
}

static int add_fd(int dir_fd, const char *name, const char *pdev, SeenList *seen, FdinfoSum *sum)
{
	auto_free char *text = NULL;
	FdinfoSum one;
	Client c;
	int r;

	r = read_file_at(dir_fd, name, FDINFO_TEXT_MAX, &text, NULL);
	if (r == -ENOMEM)
		return r;
	if (r < 0 || !client_parse(text, &c) || !client_is_on(&c, pdev))
		return 0;
	r = seen_add(seen, &c);
	if (r <= 0)
		return r;
	one = client_sum(&c);
	sum->vram = add_sat(sum->vram, one.vram);
	sum->spilled = add_sat(sum->spilled, one.spilled);
	sum->other = add_sat(sum->other, one.other);
	return 0;
}

static int add_process(const Roots *roots, pid_t pid, const char *pdev, SeenList *seen,
		       FdinfoSum *sum)
{
	auto_closedir DIR *d = NULL;
	auto_free char *path = NULL;
	unsigned left = FDINFO_FDS_MAX;
	struct dirent *de;

	if (asprintf(&path, "%s/%d/fdinfo", roots->proc, pid) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	d = opendir(path);
	if (!d)
		return errno == ENOMEM ? -ENOMEM : 0;
	while (left > 0 && (de = readdir(d))) {
		int r;

		if (de->d_name[0] == '.')
			continue;
		left--;
		r = add_fd(dirfd(d), de->d_name, pdev, seen, sum);
		if (r < 0)
			return r;
	}
	return 0;
}

int fdinfo_sum(const Roots *roots, const pid_t *pids, size_t n_pids, const char *pdev,
	       FdinfoSum *ret)
{
	_cleanup_(seen_done) SeenList seen = {};
	FdinfoSum sum = {};

	for (size_t i = 0; i < n_pids; i++) {
		int r = add_process(roots, pids[i], pdev, &seen, &sum);

		if (r < 0)
			return r;
	}
	*ret = sum;
	return 0;
}
