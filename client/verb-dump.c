/* SPDX-License-Identifier: MIT */
#include <fcntl.h>

#include "verb.h"

/* On a terminal each line is cleaned; a file or pipe gets the bytes as they came. */
static int copy(FILE *from, const Output *o, bool clean)
{
	auto_free char *line = NULL;
	size_t size = 0;
	ssize_t n;

	while ((n = getline(&line, &size, from)) > 0) {
		if (!clean) {
			(void)fwrite(line, 1, (size_t)n, o->f);
			continue;
		}
		line[strcspn(line, "\n")] = '\0';
		(void)text_put(o->f, line, UINT32_MAX);
		(void)fputc('\n', o->f);
	}
	return ferror(from) ? -EIO : 0;
}

static int run_dump(Context *c, int argc _unused_, char **argv _unused_)
{
	auto_bus_error sd_bus_error error = SD_BUS_ERROR_NULL;
	auto_message sd_bus_message *reply = NULL;
	auto_bus sd_bus *bus = NULL;
	auto_fclose FILE *f = NULL;
	auto_close int copied = -EBADF;
	int fd, r;

	if (client_open(&bus) < 0)
		return STATUS_FAILURE;
	r = sd_bus_call_method(bus, VRAMD_BUS_NAME, VRAMD_PATH, VRAMD_IFACE_MANAGER,
			       "DumpByFileDescriptor", &error, &reply, "");
	if (r >= 0)
		r = sd_bus_message_read(reply, "h", &fd);
	if (r < 0)
		return client_fail(&error, r);
	/* The message owns its descriptor. */
	copied = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	f = copied < 0 ? NULL : fdopen(copied, "r");
	if (!f) {
		complain("cannot read the dump: %s", strerror(errno));
		return STATUS_FAILURE;
	}
	(void)TAKE_FD(copied);
	if (copy(f, &c->out, isatty(STDOUT_FILENO)) < 0) {
		complain("the dump broke off");
		return STATUS_FAILURE;
	}
	return STATUS_OK;
}

const Verb verb_dump = {
	.name = "dump",
	.args = "",
	.summary = "vramd's state as text, for a bug report",
	.description = "Prints a text dump of vramd's live state, for people and for bug reports. Its\n"
		       "form may change with each release; scripts use \"vramctl status --json\".",
	.run = run_dump,
};
