/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "dmem.h"
#include "parse.h"

static const char *const limit_files[_DMEM_LIMIT_MAX] = {
	[DMEM_MIN] = "dmem.min",
	[DMEM_LOW] = "dmem.low",
	[DMEM_MAX] = "dmem.max",
};

const char *dmem_limit_to_file(DmemLimit limit)
{
	return limit_files[limit];
}

DmemLimit dmem_limit_from_file(const char *name)
{
	for (DmemLimit l = 0; l < _DMEM_LIMIT_MAX; l++)
		if (streq(name, limit_files[l]))
			return l;
	return _DMEM_LIMIT_INVALID;
}

uint64_t dmem_limit_default(DmemLimit limit)
{
	return limit == DMEM_MAX ? DMEM_UNLIMITED : 0;
}

/* Bytes of the region's name at the start of s: graphic ASCII, as D-Bus and a terminal can show. */
static size_t region_span(const char *s)
{
	size_t n = 0;

	while (s[n] > ' ' && s[n] < 0x7f)
		n++;
	return n;
}

static int parse_value(const char *s, size_t n, uint64_t *ret)
{
	char buf[24];

	if (n >= sizeof(buf))
		return -EBADMSG;
	memcpy(buf, s, n);
	buf[n] = '\0';
	if (streq(buf, "max")) {
		*ret = DMEM_UNLIMITED;
		return 0;
	}
	return parse_u64(buf, ret) < 0 ? -EBADMSG : 0;
}

/* Splits the line at *text, which is moved to the next one. The name is not terminated. */
static int take_line(const char **text, const char **ret_region, size_t *ret_len,
		     uint64_t *ret_value)
{
	const char *line = *text, *end = strchrnul(line, '\n');
	size_t len = region_span(line);
	int r;

	*text = *end ? end + 1 : end;
	if (len == 0 || len >= DMEM_REGION_MAX || line[len] != ' ')
		return -EBADMSG;
	r = parse_value(line + len + 1, (size_t)(end - line) - len - 1, ret_value);
	if (r < 0)
		return r;
	*ret_region = line;
	*ret_len = len;
	return 0;
}

static int table_add(DmemTable *table, size_t *n_alloc, const char *region, size_t len,
		     uint64_t value)
{
	char *name;

	if (table->n >= DMEM_REGIONS_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < table->n; i++)
		if (strncmp(table->entries[i].region, region, len) == 0 &&
		    !table->entries[i].region[len]) {
			table->ambiguous = true;
			return 0;
		}
	if (!GROW(table->entries, *n_alloc, table->n))
		return -ENOMEM;
	name = strndup(region, len);
	if (!name)
		return -ENOMEM;
	table->entries[table->n++] = (DmemEntry){ name, value };
	return 0;
}

int dmem_table_get(const DmemTable *table, const char *region, uint64_t *ret)
{
	for (size_t i = 0; i < table->n; i++)
		if (streq(table->entries[i].region, region)) {
			*ret = table->entries[i].value;
			return 0;
		}
	return -ENXIO;
}

int dmem_parse(const char *text, DmemTable *ret)
{
	auto_dmem_table DmemTable table = {};
	size_t n_alloc = 0;

	while (*text) {
		const char *region;
		uint64_t value;
		size_t len;
		int r;

		r = take_line(&text, &region, &len, &value);
		if (r >= 0)
			r = table_add(&table, &n_alloc, region, len, value);
		if (r < 0)
			return r;
	}
	*ret = table;
	table = (DmemTable){};
	return 0;
}

void dmem_table_done(DmemTable *table)
{
	for (size_t i = 0; i < table->n; i++)
		free(table->entries[i].region);
	free(table->entries);
	*table = (DmemTable){};
}

int dmem_find(const char *text, const char *region, uint64_t *ret)
{
	size_t want = strlen(region);

	while (*text) {
		const char *line = text, *name;
		size_t len;
		uint64_t value;
		int r;

		r = take_line(&text, &name, &len, &value);
		if (region_span(line) != want || strncmp(line, region, want) != 0)
			continue;
		if (r < 0)
			return r;
		*ret = value;
		return 0;
	}
	return -ENXIO;
}

static int parse_counter(const char *word, size_t n, DmemEvents *events)
{
	const struct {
		const char *key;
		uint64_t *counter;
	} keys[] = {
		{ "evictions=", &events->evictions },
		{ "evicted_bytes=", &events->evicted_bytes },
		{ "foreign_evictions=", &events->foreign_evictions },
	};

	if (!memchr(word, '=', n))
		return -EBADMSG;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		size_t len = strlen(keys[i].key);
		char buf[24] = "";

		if (n < len || memcmp(word, keys[i].key, len) != 0)
			continue;
		if (n - len >= sizeof(buf))
			return -EBADMSG;
		memcpy(buf, word + len, n - len);
		return parse_u64(buf, keys[i].counter) < 0 ? -EBADMSG : 0;
	}
	return 0;
}

int dmem_find_events(const char *text, const char *region, DmemEvents *ret)
{
	size_t want = strlen(region);

	for (const char *line = text; *line; line += strspn(line, "\n")) {
		const char *end = strchrnul(line, '\n');
		DmemEvents events = {};

		if (want == 0 || region_span(line) != want || strncmp(line, region, want) != 0) {
			line = end;
			continue;
		}
		for (line += want; line < end;) {
			size_t n = strcspn(++line, " \n");

			if (line[-1] != ' ' || parse_counter(line, n, &events) < 0)
				return -EBADMSG;
			line += n;
		}
		*ret = events;
		return 0;
	}
	return -ENXIO;
}

uint64_t dmem_events_take(DmemEvents *seen, const DmemEvents *now, uint64_t *ret_bytes)
{
	uint64_t all, foreign, bytes;

	if (now->evictions < seen->evictions || now->evicted_bytes < seen->evicted_bytes ||
	    now->foreign_evictions < seen->foreign_evictions)
		*seen = (DmemEvents){};
	all = now->evictions - seen->evictions;
	foreign = MIN(now->foreign_evictions - seen->foreign_evictions, all);
	bytes = foreign > 0 ? now->evicted_bytes - seen->evicted_bytes : 0;
	if (foreign < all)
		bytes = bytes / all * foreign + bytes % all * foreign / all;
	seen->evictions += foreign;
	seen->evicted_bytes += bytes;
	seen->foreign_evictions += foreign;
	*ret_bytes = bytes;
	return foreign;
}

int dmem_format(char buf[static DMEM_LINE_MAX], const char *region, uint64_t value)
{
	size_t len = region_span(region);

	if (len == 0 || region[len])
		return -EINVAL;
	if (len >= DMEM_REGION_MAX)
		return -ENAMETOOLONG;
	if (value == DMEM_UNLIMITED)
		(void)snprintf(buf, DMEM_LINE_MAX, "%s max", region);
	else
		(void)snprintf(buf, DMEM_LINE_MAX, "%s %" PRIu64, region, value);
	return 0;
}

/* Bytes of a PCI address, "0000:03:00.0", at the start of s; 0 if there is none. Domains of virtual
 * bridges have more than four digits. */
static size_t pci_span(const char *s)
{
	static const char hex[] = "0123456789abcdefABCDEF";
	static const struct {
		unsigned min, max; /* digits */
		char end;
	} parts[] = { { 4, 6, ':' }, { 2, 2, ':' }, { 2, 2, '.' }, { 1, 1, '\0' } };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		size_t digits = strspn(s + n, hex);

		if (digits < parts[i].min || digits > parts[i].max)
			return 0;
		n += digits;
		if (!parts[i].end)
			break;
		if (s[n] != parts[i].end)
			return 0;
		n++;
	}
	return s[n] == '/' || !s[n] ? n : 0;
}

int dmem_region_pci(const char *region, char ret[static DMEM_PCI_MAX])
{
	for (const char *p = region; p; p = strchr(p, '/')) {
		size_t n;

		p += *p == '/';
		n = pci_span(p);
		if (n > 0 && n < DMEM_PCI_MAX) {
			memcpy(ret, p, n);
			ret[n] = '\0';
			return 0;
		}
	}
	return -ENXIO;
}
