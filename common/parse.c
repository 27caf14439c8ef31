/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <limits.h>

#include "parse.h"

/* Reads decimal digits at *s; moves *s behind them. */
static int take_u64(const char **s, uint64_t *ret)
{
	const char *p = *s;
	uint64_t v = 0;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return -ERANGE;
	*s = p;
	*ret = v;
	return 0;
}

int parse_u64(const char *s, uint64_t *ret)
{
	uint64_t v;
	int r;

	r = take_u64(&s, &v);
	if (r < 0)
		return r;
	if (*s)
		return -EINVAL;
	*ret = v;
	return 0;
}

int parse_u32(const char *s, uint32_t *ret)
{
	uint64_t v;
	int r;

	r = parse_u64(s, &v);
	if (r < 0)
		return r;
	if (v > UINT32_MAX)
		return -ERANGE;
	*ret = (uint32_t)v;
	return 0;
}

int parse_bool(const char *s, bool *ret)
{
	static const char *const names[] = { "no", "yes", "false", "true", "off", "on", "0", "1" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (streq(s, names[i])) {
			*ret = i & 1;
			return 0;
		}
	return -EINVAL;
}

int parse_bytes(const char *s, uint64_t *ret)
{
	static const char units[] = "KMGT";
	const char *unit;
	uint64_t v;
	int r;

	if (streq(s, "max")) {
		*ret = UINT64_MAX;
		return 0;
	}
	r = take_u64(&s, &v);
	if (r < 0)
		return r;
	if (*s) {
		unit = strchr(units, *s);
		if (!unit || s[1])
			return -EINVAL;
		if (__builtin_mul_overflow(v, UINT64_C(1) << (10 * (unit - units + 1)), &v))
			return -ERANGE;
	}
	*ret = v;
	return 0;
}

int parse_usec(const char *s, uint64_t *ret)
{
	static const struct {
		const char *suffix;
		uint64_t usec;
	} units[] = {
		{ "", USEC_PER_SEC },      { "s", USEC_PER_SEC },        { "ms", USEC_PER_MSEC },
		{ "us", 1 },               { "min", 60 * USEC_PER_SEC }, { "h", 3600 * USEC_PER_SEC },
	};
	uint64_t v;
	int r;

	r = take_u64(&s, &v);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!streq(s, units[i].suffix))
			continue;
		if (__builtin_mul_overflow(v, units[i].usec, &v))
			return -ERANGE;
		*ret = v;
		return 0;
	}
	return -EINVAL;
}

int parse_percent(const char *s, unsigned *ret)
{
	uint64_t v;
	int r;

	r = take_u64(&s, &v);
	if (r < 0)
		return r;
	if (!streq(s, "%"))
		return -EINVAL;
	if (v > 100)
		return -ERANGE;
	*ret = (unsigned)v;
	return 0;
}

int parse_size(const char *s, Size *ret)
{
	unsigned percent;
	uint64_t bytes;
	int r;

	if (endswith(s, "%")) {
		r = parse_percent(s, &percent);
		if (r < 0)
			return r;
		*ret = (Size){ SIZE_PERCENT, percent };
		return 0;
	}
	r = parse_bytes(s, &bytes);
	if (r < 0)
		return r;
	*ret = (Size){ SIZE_BYTES, bytes };
	return 0;
}

uint64_t size_resolve(const Size *size, uint64_t whole, uint64_t fallback)
{
	switch (size->kind) {
	case SIZE_BYTES:
		return MIN(size->value, whole);
	case SIZE_PERCENT:
		return percent_of(whole, (unsigned)size->value);
	case SIZE_UNSET:
		break;
	}
	return fallback;
}

char *format_bytes(char buf[static FORMAT_BYTES_MAX], uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	uint64_t unit = 1;
	size_t i = 0;

	if (bytes == UINT64_MAX) {
		(void)snprintf(buf, FORMAT_BYTES_MAX, "max");
		return buf;
	}
	while (i + 1 < ARRAY_SIZE(units) && bytes / unit >= 1024) {
		unit *= 1024;
		i++;
	}
	if (bytes % unit == 0)
		(void)snprintf(buf, FORMAT_BYTES_MAX, "%" PRIu64 " %s", bytes / unit, units[i]);
	else
		(void)snprintf(buf, FORMAT_BYTES_MAX, "%.1f %s", (double)bytes / (double)unit, units[i]);
	return buf;
}

bool block_next(const char *block, size_t size, size_t *pos, const char **ret)
{
	const char *end = *pos < size ? memchr(block + *pos, '\0', size - *pos) : NULL;

	if (!end)
		return false;
	*ret = block + *pos;
	*pos = (size_t)(end - block) + 1;
	return true;
}
