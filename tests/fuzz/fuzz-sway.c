/* SPDX-License-Identifier: MIT */
/* All that came from the socket. */
#include "sway-parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	SwayMessage m;
	DesktopView v;
	ssize_t k;

	while ((k = sway_parse_message(text, size, &m)) > 0) {
		must(k >= SWAY_HEADER_SIZE && (size_t)k <= size && m.payload + m.size == text + k);
		if (sway_parse_tree(&m, &v) >= 0)
			must((v.front == FRONT_PROCESS) == (v.pid > 1) && (v.front == FRONT_PROCESS || v.appid == 0));
		must(!sway_is_move(&m) || m.type < 0);
		(void)sway_is_success(&m);
		text += k;
		size -= (size_t)k;
	}
	must(k < 0 || size < SWAY_HEADER_SIZE + SWAY_MESSAGE_MAX);
	return 0;
}
