#!/bin/bash
# SPDX-License-Identifier: MIT
# The module's interface: bad arguments, accounting, sharing, the time that moves take.
set -euo pipefail
# shellcheck source=tests/vramsim/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

node=/dev/dri/by-path/pci-$GPU1

# eviction_ms: how long it takes to throw 128 MiB out of the 128 MiB of the second GPU
eviction_ms() {
	local start
	start=${EPOCHREALTIME/./}
	"$VSIM" hold --device $GPU1 --size 128M --vram-only --no-submit --once > "$WORK/evict"
	echo $(((${EPOCHREALTIME/./} - start) / 1000))
}

lab-load-vramsim
# All that the companion series adds, or nothing
[ -e /sys/module/ttm/parameters/contig_window ] && features=7 || features=0
check "features of this kernel" "$features" "$(cat /sys/module/vramsim/parameters/features)"
for kind in render card; do
	wait_until 15 test -e "$node-$kind" || fail "no $node-$kind"
done
status=0
"$BUILD/tests/vramsim/vsim-uapi" "$node-render" "$node-card" || status=$?
check "exit status of vsim-uapi" 0 $status

holder victim . --device $GPU1 --size 8M --count 16
line victim 1 > /dev/null
fast=$(eviction_ms)
kill -USR1 "${pid[victim]}"
check "back in VRAM" 128 "$(field "$(line victim 2)" resident_mib)"
echo 1 > /sys/module/vramsim/parameters/bw_mib_per_ms
slow=$(eviction_ms)
echo "    128 MiB thrown out: $fast ms, at 1 MiB/ms: $slow ms"
check "at least 128 ms at 1 MiB/ms, and longer than without" yes \
	"$([ "$slow" -ge 128 ] && [ "$slow" -gt "$fast" ] && echo yes || echo no)"
end "${pid[victim]}"

rmmod vramsim
check_dmesg
exit $failed
