/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <sys/utsname.h>

#include "doctor.h"
#include "fileio.h"
#include "parse.h"

#define FILE_MAX_SIZE (256 * 1024)

/* Memory that matters beside a game; less is a cursor or a console. */
#define SERVICE_BYTES_MIN (16 * MIB)

static char *read_below(const char *root, const char *name)
{
	auto_free char *path = NULL;
	char *text;

	if (asprintf(&path, "%s/%s", root, name) < 0) {
		path = NULL;
		return NULL;
	}
	return read_file_at(AT_FDCWD, path, FILE_MAX_SIZE, &text, NULL) < 0 ? NULL : text;
}

static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	while (*text) {
		size_t m = strcspn(text, " ,=\n");

		if (m == n && strncmp(text, word, n) == 0)
			return true;
		text += m + (text[m] != '\0');
	}
	return false;
}

static void check_dmem(Doctor *d, const char *controllers)
{
	auto_free char *capacity = NULL, *cmdline = NULL;
	struct utsname name = {};

	(void)uname(&name);
	d->dmem = has_word(controllers, "dmem");
	if (d->dmem) {
		capacity = read_below(d->cgroup, "dmem.capacity");
		if (!*strempty(capacity))
			doctor_add(d, LEVEL_PROBLEM, "dmem",
				   "Use a driver that registers its memory: amdgpu from Linux 6.15, xe from "
				   "6.14, NVIDIA's open modules from 615. Nouveau does not.",
				   "The dmem controller is there, but no driver registers a region with it.");
		else
			doctor_add(d, LEVEL_OK, "dmem", NULL,
				   "Linux %s has the dmem controller, and a driver uses it.", name.release);
		return;
	}
	cmdline = read_below(d->proc, "cmdline");
	if (cmdline && strstr(cmdline, "cgroup_disable=") && has_word(cmdline, "dmem"))
		doctor_add(d, LEVEL_PROBLEM, "dmem",
			   "Take dmem out of cgroup_disable= on the kernel's command line, and boot again.",
			   "The dmem controller is switched off on the kernel's command line.");
	else
		doctor_add(d, LEVEL_PROBLEM, "dmem",
			   "Use Linux 7.3 or newer with CONFIG_CGROUP_DMEM=y; 6.14 is the least.",
			   "Linux %s has no dmem controller.", name.release);
}

void doctor_check_kernel(Doctor *d)
{
	auto_free char *controllers = read_below(d->cgroup, "cgroup.controllers");
	auto_free char *hybrid = NULL;

	if (controllers) {
		doctor_add(d, LEVEL_OK, "cgroup", NULL, "The control group hierarchy is unified.");
		check_dmem(d, controllers);
		return;
	}
	hybrid = read_below(d->cgroup, "unified/cgroup.controllers");
	doctor_add(d, LEVEL_PROBLEM, "cgroup",
		   "Boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line.",
		   "The control group hierarchy is %s; dmem needs the unified one.",
		   hybrid ? "hybrid" : "not unified");
}

/* --- Services --------------------------------------------------------------------------------- */

/* The sum over all regions of "REGION BYTES" lines. */
static uint64_t sum_lines(char *text)
{
	uint64_t sum = 0, bytes;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *space = strrchr(line, ' ');

		if (space && parse_u64(space + 1, &bytes) >= 0)
			sum = add_sat(sum, bytes);
	}
	return sum;
}

static uint64_t group_bytes(const Doctor *d, const char *group)
{
	auto_free char *name = NULL, *text = NULL;

	if (asprintf(&name, "%s/dmem.current", group) < 0) {
		name = NULL;
		return 0;
	}
	text = read_below(d->cgroup, name);
	return text ? sum_lines(text) : 0;
}

static void report_group(Doctor *d, const char *group)
{
	uint64_t bytes = group_bytes(d, group);
	char buf[FORMAT_BYTES_MAX];

	if (bytes < SERVICE_BYTES_MIN)
		return;
	if (doctor_protects_below_root(d)) {
		doctor_add(d, LEVEL_NOTE, "service",
			   "Nothing: games are protected from it, if the kernel has the first patch of the companion "
			   "series, which cannot be seen.",
			   "The system's \"%s\" holds %s of video memory.", group, format_bytes(buf, bytes));
		return;
	}
	doctor_add(d, LEVEL_WARNING, "service",
		   "Give it Max= in a [service NAME] section of vramd.conf(5), or stop it while you "
		   "play. The kernel cannot protect a user's game from it: their only common group is "
		   "the root. The first patch of the companion series mends that.",
		   "The system's \"%s\" holds %s of video memory.", group, format_bytes(buf, bytes));
}

void doctor_check_services(Doctor *d)
{
	static const char slice[] = "system.slice";
	auto_free char *path = NULL;
	auto_closedir DIR *dir = NULL;
	size_t before = d->n;
	struct dirent *e;

	if (asprintf(&path, "%s/%s", d->cgroup, slice) < 0) {
		path = NULL;
		return;
	}
	dir = opendir(path);
	if (!dir)
		return;
	while ((e = readdir(dir))) {
		auto_free char *group = NULL;

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		if (asprintf(&group, "%s/%s", slice, e->d_name) < 0)
			group = NULL;
		else
			report_group(d, group);
	}
	/* Without dmem below the slice, all of its services are charged to the slice itself. */
	if (d->n == before)
		report_group(d, slice);
}
