/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <limits.h>

#include "doctor.h"
#include "fileio.h"
#include "parse.h"

/* The kernel keeps 15 characters of a program's name in comm. */
#define COMM_LENGTH 15

typedef struct Rival {
	const char *prefix; /* of the program's name */
	Level level;
	const char *does, *advice;
} Rival;

static const char stop_booster[] =
	"Stop and disable it: vramd protects the game and each group above it. Two that write the same "
	"file undo each other.";
static const char stop_focus[] =
	"Stop and disable it: it writes dmem.low of the window in front, as vramd does. With "
	"Ownership=exclusive vramd keeps it out; with Ownership=share they may take turns.";

static const Rival rivals[] = {
	{ "dmemcg-booster", LEVEL_WARNING, "gives every system service full protection", stop_booster },
	{ "dmemcg-openrc", LEVEL_WARNING, "moves games into a group of its own", stop_booster },
	{ "falcond", LEVEL_WARNING, "splits a game's group when its dmem_protect is on",
	  "Keep dmem_protect=false in falcond's configuration; the rest of falcond does no harm." },
	{ "gamescope-wl", LEVEL_NOTE, "writes dmem.low of its focused window from 3.16.21 on",
	  "Nothing: vramd's Ownership=exclusive (the default) keeps gamescope's writes out." },
	{ "foreground-booster", LEVEL_WARNING, "is Plasma's booster (kcgroups)", stop_focus },
	{ "plasma-foreground-booster", LEVEL_WARNING, "is Plasma's booster (kcgroups)", stop_focus },
	{ "gnome-foreground-booster", LEVEL_WARNING, "is a GNOME booster", stop_focus },
	{ "gnome-vram-booster", LEVEL_WARNING, "is a GNOME booster that also caps app.slice", stop_focus },
	{ "umbriel-vram-booster", LEVEL_WARNING, "is a booster that also caps app.slice", stop_focus },
	{ "niri-focused-booster", LEVEL_WARNING, "is niri's booster", stop_focus },
	{ "hyprland-focused-booster", LEVEL_WARNING, "is a Hyprland booster", stop_focus },
	{ "hyprland-dmemcg-boost", LEVEL_WARNING,
	  "is a Hyprland booster that never takes a boost back and has a setuid helper", stop_focus },
	{ "sway-foreground-booster", LEVEL_WARNING, "is sway's booster", stop_focus },
	{ "uresourced", LEVEL_NOTE, "writes dmem.low in its -dmemcg variant",
	  "If it is the -dmemcg variant, use the plain one; plain uresourced does no harm." },
	{ "vram-guard", LEVEL_WARNING, "caps the memory of app.slice", stop_booster },
};

/* name may be cut at the length of comm. */
static const Rival *find_rival(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(rivals); i++) {
		if (startswith(name, rivals[i].prefix))
			return &rivals[i];
		if (strlen(name) == COMM_LENGTH && startswith(rivals[i].prefix, name))
			return &rivals[i];
	}
	return NULL;
}

static const Rival *rival_by_exe(int dir_fd)
{
	char path[PATH_MAX];
	ssize_t n = readlinkat(dir_fd, "exe", path, sizeof(path) - 1);
	const char *slash;

	if (n < 0) /* another user's, or a kernel thread */
		return NULL;
	path[n] = '\0';
	slash = strrchr(path, '/');
	return find_rival(slash ? slash + 1 : path);
}

/* A script's exe is its interpreter, and its comm is its own name. */
static const Rival *rival_by_comm(int dir_fd)
{
	auto_free char *comm = NULL;

	if (read_file_at(dir_fd, "comm", 64, &comm, NULL) < 0)
		return NULL;
	comm[strcspn(comm, "\n")] = '\0';
	return find_rival(comm);
}

static void report(Doctor *d, const Rival *rival, uint32_t pid)
{
	doctor_add(d, rival->level, "rival", rival->advice, "\"%s\" runs (process %u): it %s.",
		   rival->prefix, pid, rival->does);
}

void doctor_check_rivals(Doctor *d)
{
	auto_closedir DIR *dir = opendir(d->proc);
	bool seen[ARRAY_SIZE(rivals)] = {}, any = false;
	struct dirent *e;
	uint32_t pid;

	while (dir && (e = readdir(dir))) {
		auto_close int fd = -EBADF;
		const Rival *rival;

		if (parse_u32(e->d_name, &pid) < 0)
			continue;
		fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		rival = rival_by_exe(fd);
		if (!rival)
			rival = rival_by_comm(fd);
		if (!rival || seen[rival - rivals])
			continue;
		seen[rival - rivals] = any = true;
		report(d, rival, pid);
	}
	if (dir && !any)
		doctor_add(d, LEVEL_OK, "rival", NULL, "No other program that steers dmem is running.");
}
