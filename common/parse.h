/* SPDX-License-Identifier: MIT */
/* Text to numbers, strictly: the whole string must match, nothing is guessed, no locale. All return 0
 * or -EINVAL (not such a thing), -ERANGE (does not fit); *ret is set only on success. */
#pragma once

#include "util.h"

int parse_u64(const char *s, uint64_t *ret); /* decimal */
int parse_u32(const char *s, uint32_t *ret);
int parse_bool(const char *s, bool *ret); /* yes/no, true/false, on/off, 1/0 */

/* Bytes: decimal with an optional K, M, G or T (powers of 1024), or "max" = UINT64_MAX. */
int parse_bytes(const char *s, uint64_t *ret);

/* "250ms", "2s", "1min", "1h", or a bare number of seconds; result in microseconds. */
int parse_usec(const char *s, uint64_t *ret);

/* "0%" to "100%" */
int parse_percent(const char *s, unsigned *ret);

/* A size that is absolute or relative to something known only later. */
typedef struct Size {
	enum { SIZE_UNSET, SIZE_BYTES, SIZE_PERCENT } kind;
	uint64_t value; /* bytes, or percent 0..100 */
} Size;

int parse_size(const char *s, Size *ret); /* "512M", "10%", "max" */

/* The size in bytes, at most whole (what 100 % means); unset gives fallback. */
uint64_t size_resolve(const Size *size, uint64_t whole, uint64_t fallback);

/* "7.5 GiB", "512 KiB", "0 B"; "max" for UINT64_MAX. Returns buf. */
#define FORMAT_BYTES_MAX 24
char *format_bytes(char buf[static FORMAT_BYTES_MAX], uint64_t bytes);

/* Steps through a block of NUL-terminated strings, as /proc has command lines and environments. A last one without its
 * NUL was cut, and does not count. */
bool block_next(const char *block, size_t size, size_t *pos, const char **ret);
