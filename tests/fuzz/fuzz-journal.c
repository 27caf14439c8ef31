/* SPDX-License-Identifier: MIT */
/* Whatever the journal file holds: no crash, and what is taken from it is written the same way again. */
#include "journal.h"

#define BOOT "0123456789abcdef0123456789abcdef"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(journal_done) Journal a = { .dir_fd = -EBADF, .file_fd = -EBADF, .boot_id = BOOT };
	_cleanup_(journal_done) Journal b = { .dir_fd = -EBADF, .file_fd = -EBADF, .boot_id = BOOT };
	auto_free char *text = NULL, *first = NULL, *second = NULL;
	size_t n, m;
	unsigned bad;

	text = strndup((const char *)data, size);
	if (!text || journal_parse(&a, text, &bad) < 0)
		return 0;
	if (journal_format(&a, &first, &n) < 0 || journal_parse(&b, first, &bad) < 0 ||
			journal_format(&b, &second, &m) < 0)
		return 0;
	if (bad != 0 || n != m || memcmp(first, second, n) != 0)
		abort();
	return 0;
}
