#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# kunit.sh   in the lab: the kernel's own tests of TTM and drm_exec, as modules
set -euo pipefail
# shellcheck source=tests/lab/lib.sh
. /lab/src/tests/lab/lib.sh
# shellcheck source=kernel/ktap.sh
. /lab/src/kernel/ktap.sh

dmesg --clear
for module in ttm_device_test ttm_pool_test ttm_resource_test ttm_tt_test ttm_bo_test ttm_bo_validate_test \
	ttm_evict_test drm_exec_test; do
	modprobe $module || fail "there is no $module"
done
log=$(mktemp)
dmesg --notime > "$log"

read -r passed failed skipped warnings < <(ktap "$log")
echo "passed=$passed failed=$failed skipped=$skipped warnings=$warnings"
if [ "$failed" -ne 0 ] || [ "$skipped" -ne 0 ] || [ "$warnings" -ne 0 ] || [ "$passed" -lt 100 ]; then
	cat "$log" >&2
	fail "KUnit"
fi
# The lab fails a test when the kernel has warned.
dmesg --clear
