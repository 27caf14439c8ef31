/* SPDX-License-Identifier: MIT */
/* One fdinfo file: a client of some device is one of its own device too, with the same sums. */
#include "fdinfo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* The device in the last "drm-pdev:" line that fits, which is the one that counts. */
static char *find_pdev(const char *text)
{
	static const char key[] = "drm-pdev:";
	char *pdev = NULL;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *value;
		size_t n;

		line += *line == '\n';
		value = startswith(line, key);
		if (!value)
			continue;
		value += strspn(value, " \t");
		n = strcspn(value, "\n");
		if (n >= 32)
			continue;
		free(pdev);
		pdev = strndup(value, n);
	}
	return pdev;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = strndup((const char *)data, size), *pdev = NULL;
	FdinfoSum any = {}, own = {};
	uint64_t client = 0, same = 0;
	int r;

	if (!text)
		return 0;
	r = fdinfo_parse(text, NULL, &client, &any);
	require(r == 0 || r == 1);
	pdev = find_pdev(text);
	if (pdev) {
		require(fdinfo_parse(text, pdev, &same, &own) == r);
		require(client == same && any.vram == own.vram && any.spilled == own.spilled &&
			any.other == own.other);
		require(fdinfo_parse(text, "no such device", &same, &own) == 0);
	}
	return 0;
}
