// SPDX-License-Identifier: GPL-2.0-only
/*
 * Module parameters, and what may be in them
 */

#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/printk.h>

#include <kunit/visibility.h>

#include "vramsim.h"

#define VRAMSIM_MAX_MB	(1024 * 1024)

struct vramsim_params vramsim_params = {
	.devices = 2,
	.vram_mb = { 256, 128, 128, 128, 128, 128, 128, 128 },
	.bus = { 0x03, 0x0c, 0x15, 0x1e, 0x27, 0x30, 0x39, 0x42 },
	.gtt_mb = 4096,
};

module_param_named(devices, vramsim_params.devices, uint, 0444);
MODULE_PARM_DESC(devices, "Number of GPUs, 1 to 8 (default: 2)");
module_param_array_named(vram_mb, vramsim_params.vram_mb, uint, NULL, 0444);
MODULE_PARM_DESC(vram_mb, "VRAM of each GPU in MiB (default: 256,128,128...)");
module_param_array_named(bus, vramsim_params.bus, uint, NULL, 0444);
MODULE_PARM_DESC(bus, "PCI bus number of each GPU (default: 0x03,0x0c,0x15...)");
module_param_named(gtt_mb, vramsim_params.gtt_mb, uint, 0444);
MODULE_PARM_DESC(gtt_mb, "System RAM that each GPU can map, in MiB (default: 4096)");
module_param_named(copy, vramsim_params.copy, bool, 0444);
MODULE_PARM_DESC(copy, "Put memory behind VRAM: buffers have contents (default: no)");
module_param_named(bw_mib_per_ms, vramsim_params.bw_mib_per_ms, uint, 0644);
MODULE_PARM_DESC(bw_mib_per_ms,
		 "Link to VRAM in MiB/ms: moves sleep that long, locks held (default: 0, no time)");

/* The Makefile looks into the kernel's headers for these three. */
static const unsigned int features =
	(VRAMSIM_HAVE_PRIORITY ? VRAMSIM_FEATURE_PRIORITY : 0) |
	(VRAMSIM_HAVE_BACKOFF ? VRAMSIM_FEATURE_BACKOFF : 0) |
	(VRAMSIM_HAVE_WINDOW ? VRAMSIM_FEATURE_WINDOW : 0);

static int vramsim_features_set(const char *val, const struct kernel_param *kp)
{
	pr_err("vramsim: features cannot be set\n");
	return -EPERM;
}

static int vramsim_features_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%u\n", features);
}

static const struct kernel_param_ops vramsim_features_ops = {
	.set = vramsim_features_set,
	.get = vramsim_features_get,
};
module_param_cb(features, &vramsim_features_ops, NULL, 0444);
MODULE_PARM_DESC(features, "What the kernel underneath can do, VRAMSIM_FEATURE_* (read-only)");

static bool vramsim_in_range(const char *name, unsigned int value, unsigned int min,
			     unsigned int max)
{
	if (value >= min && value <= max)
		return true;
	pr_err("vramsim: %s=%u is not in %u..%u\n", name, value, min, max);
	return false;
}

static bool vramsim_bus_ok(const struct vramsim_params *params, unsigned int index)
{
	unsigned int i;

	if (!vramsim_in_range("bus", params->bus[index], 0, 0xff))
		return false;
	for (i = 0; i < index; i++) {
		if (params->bus[i] == params->bus[index]) {
			pr_err("vramsim: GPUs %u and %u are both on bus=%#x\n", i, index,
			       params->bus[index]);
			return false;
		}
	}
	return true;
}

/**
 * vramsim_params_check() - can the module work with these parameters?
 * @params: the parameters
 * @ram_mb: the machine's RAM
 *
 * Return: 0, or -EINVAL after the log was told what is wrong.
 */
int vramsim_params_check(const struct vramsim_params *params, u64 ram_mb)
{
	u64 vram_mb = 0;
	unsigned int i;

	if (!vramsim_in_range("devices", params->devices, 1, VRAMSIM_MAX_DEVICES) ||
	    !vramsim_in_range("gtt_mb", params->gtt_mb, 1, VRAMSIM_MAX_MB))
		return -EINVAL;
	for (i = 0; i < params->devices; i++) {
		if (!vramsim_in_range("vram_mb", params->vram_mb[i], 1, VRAMSIM_MAX_MB) ||
		    !vramsim_bus_ok(params, i))
			return -EINVAL;
		vram_mb += params->vram_mb[i];
	}
	if (params->copy && vram_mb > ram_mb / 2) {
		pr_err("vramsim: copy=1 would take %llu MiB, more than half of the RAM\n", vram_mb);
		return -EINVAL;
	}
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(vramsim_params_check);
