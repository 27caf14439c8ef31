/* SPDX-License-Identifier: MIT */
#include "log.h"

static int max_level = LOG_INFO;

static const char *const level_names[] = {
	[LOG_EMERG] = "emerg",   [LOG_ALERT] = "alert",   [LOG_CRIT] = "crit", [LOG_ERR] = "err",
	[LOG_WARNING] = "warning", [LOG_NOTICE] = "notice", [LOG_INFO] = "info", [LOG_DEBUG] = "debug",
};

void log_set_max_level(int level)
{
	max_level = level;
}

int log_get_max_level(void)
{
	return max_level;
}

int log_level_from_string(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(level_names); i++)
		if (streq(level_names[i], name))
			return (int)i;
	return -EINVAL;
}

const char *log_level_to_string(int level)
{
	return level >= 0 && level < (int)ARRAY_SIZE(level_names) ? level_names[level] : NULL;
}

/* A terminal has no use for the journal's prefix; anything else may be the journal. */
static bool want_prefix(void)
{
	static int cached = -1;

	if (cached < 0)
		cached = !isatty(STDERR_FILENO);
	return cached;
}

int log_full(int level, int error, const char *format, ...)
{
	int saved = errno;
	char line[2048];
	va_list ap;
	int n = 0;

	if (level > max_level)
		return error;
	if (want_prefix())
		n = snprintf(line, sizeof(line), "<%d>", level);
	errno = error < 0 ? -error : error;
	va_start(ap, format);
	(void)vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, ap);
	va_end(ap);
	/* A newline inside would become a second entry, with a priority of the caller's choosing. */
	for (char *c = line; *c; c++)
		if (*c == '\n')
			*c = ' ';
	(void)dprintf(STDERR_FILENO, "%s\n", line);
	errno = saved;
	return error;
}
