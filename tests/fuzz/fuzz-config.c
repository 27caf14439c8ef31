/* SPDX-License-Identifier: MIT */
/* A configuration is read without harm, and what is printed of it reads back as the same. */
#include "config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned n_told;

static void count(const char *file _unused_, unsigned line _unused_, const char *text,
		  void *userdata _unused_)
{
	n_told++;
	for (; *text; text++)
		if ((unsigned char)*text < ' ')
			abort();
}

static char *print(const Config *c)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		abort();
	config_print(c, f);
	if (fclose(f) != 0)
		abort();
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = strndup((const char *)data, size), *printed = NULL, *again = NULL;
	auto_config Config *a = NULL, *b = NULL;

	n_told = 0;
	if (!text || config_new(&a) < 0 || config_new(&b) < 0)
		abort();
	if (config_parse_text(a, "fuzz", text, count, NULL) != (int)n_told)
		abort();
	printed = print(a);
	if (config_parse_text(b, "printed", printed, count, NULL) != 0)
		abort();
	again = print(b);
	if (!streq(printed, again))
		abort();
	(void)config_find_game(a, 10, "a.exe", "app-a.scope");
	(void)config_game_allowed(a, 10, "a.exe", "app-a.scope", "A");
	return 0;
}
