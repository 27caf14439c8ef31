/* SPDX-License-Identifier: MIT */
/* Properties of the root window: every client of the server may write them. */
#include "gamescope-parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* A byte says how many items: 0xff = no property. What is left is the list of windows. */
static Cardinals take(const uint32_t *words, size_t n, size_t *used, uint8_t want)
{
	Cardinals c = { want != 0xff, words + *used, 0 };

	c.n = c.present ? MIN(want, n - *used) : 0;
	*used += c.n;
	return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = size < 3 ? 0 : (size - 3) / 4, used = 0;
	auto_free uint32_t *words = calloc(n + 1, sizeof(*words));
	GamescopeProperties p;
	GamescopeView v;

	if (size < 3 || !words)
		return 0;
	memcpy(words, data + 3, n * sizeof(*words));
	p.app = take(words, n, &used, data[0]);
	p.app_gfx = take(words, n, &used, data[1]);
	p.window = take(words, n, &used, data[2]);
	p.windows = (Cardinals){ used < n, words + used, n - used };
	gamescope_parse(&p, &v);
	must((v.front == FRONT_PROCESS) == (v.pid > 1));
	must(v.n_running <= STATE_RUNNING_MAX);
	must(p.app_gfx.present || v.appid == 0);
	for (size_t i = 0; i < v.n_running; i++)
		must(v.running[i] > 1 && v.running[i] != v.pid);
	return 0;
}
