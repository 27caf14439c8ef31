/* SPDX-License-Identifier: MIT */
/* A folder that stands for /sys/module. */
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include "knobs.h"

/* Sets a parameter as the kernel would show it; its file and module are made if need be. */
static inline void put_parameter(const Roots *roots, Knob knob, const char *text)
{
	const char *const folders[] = { "sys", "module", knob_infos[knob].module, "parameters" };
	char path[256];
	int n, fd;

	n = snprintf(path, sizeof(path), "%s", roots->etc);
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		n += snprintf(path + n, sizeof(path) - (size_t)n, "/%s", folders[i]);
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
	}
	(void)snprintf(path + n, sizeof(path) - (size_t)n, "/%s", knob_infos[knob].parameter);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
}
