/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "knobs.h"
#include "parse.h"

#define PARAMETER_TEXT_MAX 64

static int knob_path(const Roots *roots, Knob knob, char **ret)
{
	const KnobInfo *info = &knob_infos[knob];

	if (asprintf(ret, "%s/sys/module/%s/parameters/%s", strempty(roots->etc), info->module, info->parameter) < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* The kernel prints a switch as Y or N. */
static int parse_text(KnobKind kind, char *text, uint32_t *ret)
{
	text[strcspn(text, "\n")] = '\0';
	if (kind != KNOB_SWITCH)
		return parse_u32(text, ret) < 0 ? -EBADMSG : 0;
	if (!streq(text, "Y") && !streq(text, "N") && !streq(text, "1") && !streq(text, "0"))
		return -EBADMSG;
	*ret = *text == 'Y' || *text == '1';
	return 0;
}

int knob_read(const Roots *roots, Knob knob, uint32_t *ret, uint64_t *ret_inode)
{
	auto_free char *path = NULL, *text = NULL;
	struct stat st;
	int r;

	r = knob_path(roots, knob, &path);
	if (r < 0)
		return r;
	if (stat(path, &st) < 0)
		return -errno;
	r = read_piece_at(AT_FDCWD, path, PARAMETER_TEXT_MAX, &text);
	if (r >= 0)
		r = parse_text(knob_infos[knob].kind, text, ret);
	if (r >= 0 && ret_inode)
		*ret_inode = st.st_ino;
	return r == -E2BIG ? -EBADMSG : r;
}

int knob_write(const Roots *roots, Knob knob, uint32_t value)
{
	auto_free char *path = NULL;
	char text[16];
	int r;

	r = knob_path(roots, knob, &path);
	if (r < 0)
		return r;
	(void)snprintf(text, sizeof(text), "%" PRIu32 "\n", value);
	return write_once_at(AT_FDCWD, path, text, 0);
}

bool knobs_throttle_active(const Roots *roots)
{
	uint32_t msec;

	return (knob_read(roots, KNOB_THROTTLE_HARD, &msec, NULL) >= 0 && msec > 0) ||
	       (knob_read(roots, KNOB_THROTTLE_SOFT, &msec, NULL) >= 0 && msec > 0);
}
