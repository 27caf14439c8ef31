#!/bin/bash
# SPDX-License-Identifier: MIT
# VRAM is empty while the machine sleeps, but for what is on a screen; afterwards all can come back.
set -euo pipefail
# shellcheck source=tests/vramsim/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ -w /sys/power/pm_test ] || skip "this kernel cannot test suspending"
lab-load-vramsim
holder game . --device $GPU0 --size 2M --count 96
check "resident MiB" 192 "$(field "$(line game 1)" resident_mib)"

# Down to the devices and back.
echo devices > /sys/power/pm_test
echo 0 > /sys/module/suspend/parameters/pm_test_delay
echo mem > /sys/power/state
kill -USR2 "${pid[game]}"
check "resident MiB after it" 0 "$(field "$(line game 2)" resident_mib)"
check "evictions" 96 "$(field "$(line game 2)" evictions)"
kill -USR1 "${pid[game]}"
check "resident MiB after the next frame" 192 "$(field "$(line game 3)" resident_mib)"

end "${pid[game]}"
rmmod vramsim
check_dmesg
exit $failed
