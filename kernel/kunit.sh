#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# kunit.sh   in the lab: the kernel's own tests of TTM and drm_exec, as modules
set -euo pipefail
# shellcheck source=tests/lab/lib.sh
. /lab/src/tests/lab/lib.sh

for module in ttm_device_test ttm_pool_test ttm_resource_test ttm_tt_test ttm_bo_test ttm_bo_validate_test \
	ttm_evict_test drm_exec_test; do
	modprobe $module || fail "there is no $module"
done

mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
results=$(cat /sys/kernel/debug/kunit/{ttm*,drm_exec}/results)
passed=$(grep -cE '^ {4,}ok [0-9]+ ' <<< "$results") || true
bad=$(grep -cE '^ *not ok [0-9]+ ' <<< "$results") || true
skipped=$(grep -cE '^ {4,}ok .*# SKIP' <<< "$results") || true
echo "passed=$passed failed=$bad skipped=$skipped"
if [ "$bad" -ne 0 ] || [ "$skipped" -ne 0 ] || [ "$passed" -lt 100 ]; then
	grep -E 'not ok|# SKIP|# ' <<< "$results" >&2
	fail "KUnit"
fi
