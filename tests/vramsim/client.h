/* SPDX-License-Identifier: MIT */
/* What the test programs share: vramsim's calls as functions, and a check that counts failures. */
#pragma once

#include <inttypes.h>

#include "vramsim_uapi.h"

#include "util.h"

extern int failures;

#define CHECK(expression, want) check(__FILE__, __LINE__, #expression, (int64_t)(expression), (int64_t)(want))
void check(const char *file, int line, const char *text, int64_t got, int64_t want);

/* All return 0 or a negative errno; without drmIoctl()'s retries. */
int call(int fd, unsigned long request, void *arg);
int create(int fd, uint64_t size, uint32_t flags, uint32_t *ret_handle);
int submit(int fd, const uint32_t *handles, uint32_t n, uint32_t flags, struct drm_vramsim_submit *ret);
int flip(int fd, uint32_t handle, uint64_t *ret_moved);
int info(int fd, uint32_t handle, uint32_t flags, struct drm_vramsim_bo_info *ret);

struct drm_vramsim_stats stats(int fd);
/* Buffers may be freed by a work item, after the last close: waits until VRAM has at most `used` in use. */
uint64_t used_after_frees(int fd, uint64_t used);
/* The file of a node, or the end of the program. */
int open_or_exit(const char *node);
/* NULL if it cannot be mapped. */
uint64_t *map(int fd, uint32_t handle, uint64_t size);
