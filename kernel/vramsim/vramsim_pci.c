// SPDX-License-Identifier: GPL-2.0-only
/*
 * The virtual PCI side: a root bus for each GPU, with one device on it whose configuration space
 * is a table in memory. Remove and rescan work as on real buses, because a rescan reads it again.
 */

#include <linux/array_size.h>
#include <linux/pci.h>
#include <linux/sizes.h>
#include <linux/unaligned.h>

#include "vramsim.h"

#define VRAMSIM_CLASS		(PCI_CLASS_DISPLAY_OTHER << 8)

/**
 * struct vramsim_root - a virtual root bus and the function on it
 * @sd: what the architecture expects behind &pci_bus.sysdata; must come first
 * @bus: the root bus
 * @busn: its bus numbers
 * @config: the function's configuration space, under the PCI core's lock
 * @index: number of the GPU
 */
struct vramsim_root {
#ifdef CONFIG_X86
	struct pci_sysdata sd;
#endif
	struct pci_bus *bus;
	struct resource busn;
	u8 config[PCI_CFG_SPACE_SIZE];
	unsigned int index;
};

#ifdef CONFIG_X86
static_assert(offsetof(struct vramsim_root, sd) == 0);
#endif

static struct vramsim_root roots[VRAMSIM_MAX_DEVICES];

static int vramsim_config_read(struct pci_bus *pbus, unsigned int devfn, int where, int size,
			       u32 *val)
{
	const struct vramsim_root *root = pbus->sysdata;

	if (devfn || where + size > PCI_CFG_SPACE_SIZE)
		return PCIBIOS_DEVICE_NOT_FOUND;
	switch (size) {
	case 1:
		*val = root->config[where];
		break;
	case 2:
		*val = get_unaligned_le16(&root->config[where]);
		break;
	default:
		*val = get_unaligned_le32(&root->config[where]);
		break;
	}
	return PCIBIOS_SUCCESSFUL;
}

/* Everything but the command register is read-only; so there are no BARs. */
static int vramsim_config_write(struct pci_bus *pbus, unsigned int devfn, int where, int size,
				u32 val)
{
	struct vramsim_root *root = pbus->sysdata;

	if (devfn || where + size > PCI_CFG_SPACE_SIZE)
		return PCIBIOS_DEVICE_NOT_FOUND;
	if (where == PCI_COMMAND && size >= 2)
		put_unaligned_le16(val, &root->config[PCI_COMMAND]);
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops vramsim_config_ops = {
	.read = vramsim_config_read,
	.write = vramsim_config_write,
};

static int vramsim_root_add(struct vramsim_root *root, unsigned int index)
{
	unsigned int busn = vramsim_params.bus[index];
	LIST_HEAD(windows);

	root->index = index;
	put_unaligned_le16(VRAMSIM_PCI_VENDOR, &root->config[PCI_VENDOR_ID]);
	put_unaligned_le16(VRAMSIM_PCI_DEVICE, &root->config[PCI_DEVICE_ID]);
	put_unaligned_le32(VRAMSIM_CLASS << 8, &root->config[PCI_CLASS_REVISION]);
	put_unaligned_le16(VRAMSIM_PCI_VENDOR, &root->config[PCI_SUBSYSTEM_VENDOR_ID]);
	put_unaligned_le16(index, &root->config[PCI_SUBSYSTEM_ID]);
#ifdef CONFIG_X86
	root->sd.node = NUMA_NO_NODE;
#endif
	root->busn = (struct resource) {
		.name = "vramsim busn",
		.start = busn,
		.end = busn,
		.flags = IORESOURCE_BUS,
	};
	pci_add_resource(&windows, &root->busn);

	pci_lock_rescan_remove();
	root->bus = pci_scan_root_bus(NULL, busn, &vramsim_config_ops, root, &windows);
	if (root->bus)
		pci_bus_add_devices(root->bus);
	pci_unlock_rescan_remove();

	if (!root->bus) {
		pci_free_resource_list(&windows);
		pr_err("vramsim: PCI bus %#04x is taken or cannot be added\n", busn);
		return -EBUSY;
	}
	return 0;
}

static void vramsim_root_remove(struct vramsim_root *root)
{
	pci_lock_rescan_remove();
	pci_stop_root_bus(root->bus);
	pci_remove_root_bus(root->bus);
	pci_unlock_rescan_remove();
	root->bus = NULL;
}

/**
 * vramsim_pci_remove_roots() - remove all buses and with them the GPUs
 */
void vramsim_pci_remove_roots(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(roots); i++)
		if (roots[i].bus)
			vramsim_root_remove(&roots[i]);
}

/**
 * vramsim_pci_add_roots() - add the buses that the module parameters ask for
 *
 * Return: 0 or a negative error number, with nothing added.
 */
int vramsim_pci_add_roots(void)
{
	unsigned int i;
	int ret;

	for (i = 0; i < vramsim_params.devices; i++) {
		ret = vramsim_root_add(&roots[i], i);
		if (ret) {
			vramsim_pci_remove_roots();
			return ret;
		}
	}
	return 0;
}

/**
 * vramsim_pci_vram_size() - the VRAM that a GPU was given by the module parameters
 * @pdev: a device on one of our buses
 *
 * Return: bytes.
 */
u64 vramsim_pci_vram_size(struct pci_dev *pdev)
{
	const struct vramsim_root *root = pdev->bus->sysdata;

	return (u64)vramsim_params.vram_mb[root->index] * SZ_1M;
}
