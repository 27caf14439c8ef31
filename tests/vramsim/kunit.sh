#!/bin/bash
# SPDX-License-Identifier: MIT
# The module's KUnit tests. The kernel must be booted with kunit.enable=1.
set -euo pipefail
# shellcheck source=tests/vramsim/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# ktap: what KUnit has reported to the kernel's log, without the time stamps
ktap() { dmesg | sed -n 's/^\[[^]]*\] //; /^ *\(not \)\?ok [0-9]/p; /^ *# .*\(EXPECT\|ASSERT\)/p'; }

module=/lab/vramsim/vramsim_kunit.ko
[ -e $module ] || fail "no $module"
lab-load-vramsim
for needed in $(modinfo -F depends $module | tr , ' '); do
	[ "$needed" = vramsim ] || modprobe "$needed"
done
insmod $module
ktap
for suite in vramsim_vram vramsim_params; do
	check "suite $suite" ok "$(ktap | sed -n "s/^\(.*\) [0-9]* $suite\$/\1/p")"
done
check "tests that failed" 0 "$(ktap | grep -c 'not ok' || true)"
check "tests that were skipped" 0 "$(ktap | grep -c '# SKIP' || true)"
check "at least 7 tests and 16 parameter sets passed" yes \
	"$([ "$(ktap | grep -c '^ .*ok')" -ge 23 ] && echo yes || echo no)"
rmmod vramsim_kunit vramsim
check_dmesg
exit $failed
