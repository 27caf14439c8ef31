/* SPDX-License-Identifier: MIT */
/* A dmem file: what was parsed is found again, and written back as one line that parses to the
 * same. */
#include "dmem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_entry(const char *text, const DmemEntry *e)
{
	auto_dmem_table DmemTable again = {};
	char line[DMEM_LINE_MAX], pci[DMEM_PCI_MAX];
	uint64_t value;

	require(dmem_find(text, e->region, &value) == 0 && value == e->value);
	require(dmem_format(line, e->region, e->value) == 0);
	require(dmem_parse(line, &again) == 0 && again.n == 1);
	require(streq(again.entries[0].region, e->region) && again.entries[0].value == e->value);
	if (dmem_region_pci(e->region, pci) == 0)
		require(strstr(e->region, pci) != NULL);
}

/* Two looks: what is in the text, and then all that there can be. Nothing is taken twice. */
static void check_events(const char *text, const char *region)
{
	const DmemEvents all = { UINT64_MAX, UINT64_MAX, UINT64_MAX };
	DmemEvents now, seen = {};
	uint64_t n, bytes;

	if (dmem_find_events(text, region, &now) < 0)
		return;
	n = dmem_events_take(&seen, &now, &bytes);
	require(n <= now.evictions && n <= now.foreign_evictions && bytes <= now.evicted_bytes);
	require(seen.evictions == n && seen.evicted_bytes == bytes && seen.foreign_evictions == n);
	if (n == now.foreign_evictions)
		require(dmem_events_take(&seen, &now, &bytes) == 0 && bytes == 0);
	(void)dmem_events_take(&seen, &all, &bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_dmem_table DmemTable table = {};
	auto_free char *text = strndup((const char *)data, size);
	char line[DMEM_LINE_MAX], pci[DMEM_PCI_MAX];
	uint64_t value;

	if (!text)
		return 0;
	if (dmem_parse(text, &table) == 0)
		for (size_t i = 0; i < table.n; i++)
			check_entry(text, &table.entries[i]);
	/* The text as a name: of a region, of a file. */
	(void)dmem_find(text, text, &value);
	if (dmem_format(line, text, 7) == 0)
		require(dmem_find(line, text, &value) == 0 && value == 7);
	if (dmem_region_pci(text, pci) == 0)
		require(strlen(pci) >= strlen("0000:00:00.0"));
	(void)dmem_limit_from_file(text);
	check_events(text, "r");
	check_events(text, text);
	return 0;
}
