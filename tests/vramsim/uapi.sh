#!/bin/bash
# SPDX-License-Identifier: MIT
# The module's interface: bad arguments, accounting, sharing.
set -euo pipefail
# shellcheck source=tests/vramsim/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

lab-load-vramsim
node=/dev/dri/by-path/pci-$GPU1-render
wait_until 5 test -e "$node" || fail "no $node"
status=0
"${VSIM%/*}/vsim-uapi" "$node" || status=$?
check "exit status of vsim-uapi" 0 $status
rmmod vramsim
check_dmesg
exit $failed
