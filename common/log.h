/* SPDX-License-Identifier: MIT */
/* Log lines for the journal (sd-daemon(3) "<N>" prefixes) or a terminal. One call, one line. */
#pragma once

#include <stdarg.h>
#include <syslog.h>

#include "util.h"

/* The highest syslog(3) priority that is shown; LOG_INFO at first. Set from VRAMD_LOG_LEVEL=,
 * --verbose, or at run time through org.freedesktop.LogControl1. */
void log_set_max_level(int level);
int log_get_max_level(void);

/* "debug", "info", ... as LogControl1 spells them; -EINVAL for anything else. */
int log_level_from_string(const char *name);
const char *log_level_to_string(int level);

/* Logs at a level; error 0, or a negative errno that %m then names. Returns the error unchanged,
 * so that a caller may log and return in one statement. errno is preserved. */
int log_full(int level, int error, const char *format, ...) _printf_(3, 4);

#define log_debug(...) ((void)log_full(LOG_DEBUG, 0, __VA_ARGS__))
#define log_info(...) ((void)log_full(LOG_INFO, 0, __VA_ARGS__))
#define log_notice(...) ((void)log_full(LOG_NOTICE, 0, __VA_ARGS__))
#define log_warning(...) ((void)log_full(LOG_WARNING, 0, __VA_ARGS__))
#define log_error(...) ((void)log_full(LOG_ERR, 0, __VA_ARGS__))
#define log_debug_errno(error, ...) log_full(LOG_DEBUG, error, __VA_ARGS__)
#define log_warning_errno(error, ...) log_full(LOG_WARNING, error, __VA_ARGS__)
#define log_error_errno(error, ...) log_full(LOG_ERR, error, __VA_ARGS__)
#define log_oom() log_full(LOG_ERR, -ENOMEM, "Out of memory")
