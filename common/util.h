/* SPDX-License-Identifier: MIT */
/* Small helpers that every layer uses: cleanup attributes, hand-over, sizes. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define CLAMP(v, lo, hi) MIN(MAX(v, lo), hi)

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

#define USEC_PER_MSEC UINT64_C(1000)
#define USEC_PER_SEC UINT64_C(1000000)

#define _printf_(f, a) __attribute__((format(printf, f, a)))
#define _unused_ __attribute__((unused))
#define _cleanup_(f) __attribute__((cleanup(f)))

/* Gives a pointer (or fd) away: the variable is left empty, so its cleanup does nothing. */
#define TAKE_PTR(p) \
	({ \
		typeof(p) *_pp = &(p), _v = *_pp; \
		*_pp = NULL; \
		_v; \
	})
#define TAKE_FD(fd) \
	({ \
		int *_fdp = &(fd), _fd = *_fdp; \
		*_fdp = -EBADF; \
		_fd; \
	})

/* Defines the cleanup function for a destructor that takes and returns a pointer. */
#define DEFINE_CLEANUP(type, func) \
	static inline void func##p(type *p) \
	{ \
		if (*p) \
			*p = func(*p); \
	}

static inline void freep(void *p)
{
	free(*(void **)p);
}
#define auto_free _cleanup_(freep)

/* A list of strings that ends with NULL, all of it allocated; NULL is an empty one. */
static inline char **strv_free(char **list)
{
	for (char **s = list; s && *s; s++)
		free(*s);
	free(list);
	return NULL;
}
DEFINE_CLEANUP(char **, strv_free)
#define auto_strv _cleanup_(strv_freep)
static inline size_t strv_length(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

/* Closes and returns -EBADF; errno survives, so an error path may still report it. */
static inline int close_fd(int fd)
{
	if (fd >= 0) {
		int saved = errno;

		(void)close(fd);
		errno = saved;
	}
	return -EBADF;
}
static inline void close_fdp(int *fd)
{
	*fd = close_fd(*fd);
}
#define auto_close _cleanup_(close_fdp)

static inline void fclosep(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}
#define auto_fclose _cleanup_(fclosep)

static inline void closedirp(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}
#define auto_closedir _cleanup_(closedirp)

static inline bool streq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* Like streq(), where either may be NULL; NULL equals only NULL. */
static inline bool streq_ptr(const char *a, const char *b)
{
	return a && b ? streq(a, b) : a == b;
}

static inline const char *strempty(const char *s)
{
	return s ? s : "";
}

/* The text behind the prefix, or NULL. */
static inline const char *startswith(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

/* The place where the suffix begins, or NULL. */
static inline const char *endswith(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && streq(s + n - m, suffix) ? s + n - m : NULL;
}

/* Makes room for one more element (doubling); false when memory is short. *n_alloc counts elements. */
static inline bool grow_array(void **array, size_t *n_alloc, size_t n, size_t size)
{
	size_t want;
	void *p;

	if (n < *n_alloc)
		return true;
	want = *n_alloc ? *n_alloc * 2 : 8;
	p = reallocarray(*array, want, size);
	if (!p)
		return false;
	*array = p;
	*n_alloc = want;
	return true;
}
#define GROW(array, n_alloc, n) grow_array((void **)&(array), &(n_alloc), (n), sizeof(*(array)))

/* Saturating addition: sums of limits never wrap. */
static inline uint64_t add_sat(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* b percent of a, without overflow for any a. */
static inline uint64_t percent_of(uint64_t a, unsigned percent)
{
	return a / 100 * percent + a % 100 * percent / 100;
}
