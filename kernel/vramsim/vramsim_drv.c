// SPDX-License-Identifier: GPL-2.0-only
/*
 * vramsim: a DRM/TTM driver with software VRAM, for tests of VRAM management and of the dmem
 * control group controller on machines without a GPU.
 */

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pm.h>
#include <linux/sizes.h>

#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_ioctl.h>
#include <drm/drm_managed.h>
#include <drm/drm_print.h>
#include <drm/ttm/ttm_range_manager.h>

#include "vramsim.h"

#define VRAMSIM_IOCTL(name, func)	DRM_IOCTL_DEF_DRV(VRAMSIM_##name, func, DRM_RENDER_ALLOW)

static const struct drm_ioctl_desc vramsim_ioctls[] = {
	VRAMSIM_IOCTL(CREATE, vramsim_ioctl_create),
	VRAMSIM_IOCTL(SUBMIT, vramsim_ioctl_submit),
	VRAMSIM_IOCTL(BO_INFO, vramsim_ioctl_bo_info),
	VRAMSIM_IOCTL(STATS, vramsim_ioctl_stats),
	VRAMSIM_IOCTL(FLIP, vramsim_ioctl_flip),
	VRAMSIM_IOCTL(SET_PRIORITY, vramsim_ioctl_set_priority),
	VRAMSIM_IOCTL(MMAP, vramsim_ioctl_mmap),
};

/*
 * As in amdgpu, a buffer counts in the total of the region where it wants to be, and as resident
 * in the one where it is: total - resident of vram0 is what was spilled.
 */
static void vramsim_show_fdinfo(struct drm_printer *p, struct drm_file *file)
{
	struct drm_memory_stats vram = {}, gtt = {};
	struct drm_gem_object *obj;
	int id;

	spin_lock(&file->table_lock);
	idr_for_each_entry(&file->object_idr, obj, id) {
		if (drm_gem_object_is_shared_for_memory_stats(obj))
			vram.shared += obj->size;
		else
			vram.private += obj->size;
		if (READ_ONCE(gem_to_vramsim(obj)->mem_type) == TTM_PL_VRAM)
			vram.resident += obj->size;
		else
			gtt.resident += obj->size;
	}
	spin_unlock(&file->table_lock);

	drm_print_memory_stats(p, &vram, DRM_GEM_OBJECT_RESIDENT, "vram0");
	drm_print_memory_stats(p, &gtt, DRM_GEM_OBJECT_RESIDENT, "gtt");
	drm_fdinfo_print_size(p, VRAMSIM_DRIVER_NAME, "evicted", "vram0", gtt.resident);
}

static const struct file_operations vramsim_fops = {
	.owner = THIS_MODULE,
	DRM_GEM_FOPS,
	.show_fdinfo = drm_show_fdinfo,
};

static const struct drm_driver vramsim_driver = {
	.driver_features = DRIVER_GEM | DRIVER_RENDER,
	.open = vramsim_vm_open,
	.postclose = vramsim_vm_close,
	.fops = &vramsim_fops,
	.ioctls = vramsim_ioctls,
	.num_ioctls = ARRAY_SIZE(vramsim_ioctls),
	.show_fdinfo = vramsim_show_fdinfo,
	.name = VRAMSIM_DRIVER_NAME,
	.desc = "GPU with simulated VRAM",
	.major = 1,
	.minor = 0,
};

static void vramsim_gtt_fini(struct drm_device *dev, void *arg)
{
	ttm_range_man_fini(arg, TTM_PL_TT);
}

static void vramsim_ttm_fini(struct drm_device *dev, void *arg)
{
	ttm_device_fini(arg);
}

/* Memory outlives the PCI device: open files keep their buffers, and the region its charges. */
static int vramsim_memory_init(struct vramsim_device *vdev, u64 vram_size)
{
	u64 gtt_size = (u64)vramsim_params.gtt_mb * SZ_1M;
	struct drm_device *dev = &vdev->drm;
	int ret;

	ret = ttm_device_init(&vdev->ttm, &vramsim_ttm_funcs, dev->dev,
			      dev->anon_inode->i_mapping, dev->vma_offset_manager, 0);
	if (ret)
		return ret;
	ret = drmm_add_action_or_reset(dev, vramsim_ttm_fini, &vdev->ttm);
	if (ret)
		return ret;

	ret = ttm_range_man_init(&vdev->ttm, TTM_PL_TT, true, gtt_size >> PAGE_SHIFT);
	if (ret)
		return ret;
	ret = drmm_add_action_or_reset(dev, vramsim_gtt_fini, &vdev->ttm);
	if (ret)
		return ret;

	return vramsim_vram_init(vdev, vram_size, vramsim_params.copy);
}

static int vramsim_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct vramsim_device *vdev;
	int ret;

	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	vdev = devm_drm_dev_alloc(&pdev->dev, &vramsim_driver, struct vramsim_device, drm);
	if (IS_ERR(vdev))
		return PTR_ERR(vdev);
	pci_set_drvdata(pdev, vdev);

	ret = vramsim_memory_init(vdev, vramsim_pci_vram_size(pdev));
	if (ret)
		return ret;
	/* Last: its uevent tells user space that the dmem region is there. */
	return drm_dev_register(&vdev->drm, 0);
}

static void vramsim_remove(struct pci_dev *pdev)
{
	struct vramsim_device *vdev = pci_get_drvdata(pdev);
	struct drm_file *file;

	/* Afterwards there is no call left that could show another buffer. */
	drm_dev_unplug(&vdev->drm);
	mutex_lock(&vdev->drm.filelist_mutex);
	list_for_each_entry(file, &vdev->drm.filelist, lhead)
		vramsim_vm_hide(file->driver_priv);
	mutex_unlock(&vdev->drm.filelist_mutex);
}

/* VRAM has no power while the machine sleeps. What is on the screen stays: nobody pins it again. */
static int vramsim_suspend(struct device *dev)
{
	struct vramsim_device *vdev = dev_get_drvdata(dev);

	return ttm_resource_manager_evict_all(&vdev->ttm, &vdev->vram.man);
}

static DEFINE_SIMPLE_DEV_PM_OPS(vramsim_pm_ops, vramsim_suspend, NULL);

static const struct pci_device_id vramsim_ids[] = {
	{ PCI_DEVICE(VRAMSIM_PCI_VENDOR, VRAMSIM_PCI_DEVICE) },
	{}
};
MODULE_DEVICE_TABLE(pci, vramsim_ids);

static struct pci_driver vramsim_pci_driver = {
	.name = VRAMSIM_DRIVER_NAME,
	.id_table = vramsim_ids,
	.probe = vramsim_probe,
	.remove = vramsim_remove,
	.driver.pm = pm_sleep_ptr(&vramsim_pm_ops),
};

static int __init vramsim_init(void)
{
	int ret;

	ret = vramsim_params_check(&vramsim_params, (u64)totalram_pages() * PAGE_SIZE / SZ_1M);
	if (ret)
		return ret;
	ret = vramsim_bo_cache_init();
	if (ret)
		return ret;
	ret = pci_register_driver(&vramsim_pci_driver);
	if (ret)
		goto err_cache;
	ret = vramsim_pci_add_roots();
	if (ret)
		goto err_driver;
	return 0;

err_driver:
	pci_unregister_driver(&vramsim_pci_driver);
err_cache:
	vramsim_bo_cache_fini();
	return ret;
}

static void __exit vramsim_exit(void)
{
	vramsim_pci_remove_roots();
	pci_unregister_driver(&vramsim_pci_driver);
	vramsim_bo_cache_fini();
}

module_init(vramsim_init);
module_exit(vramsim_exit);

MODULE_DESCRIPTION("DRM/TTM driver with simulated VRAM, for tests");
MODULE_LICENSE("GPL");
