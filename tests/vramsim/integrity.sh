#!/bin/bash
# SPDX-License-Identifier: MIT
# Four processes fight for VRAM with buffers of all kinds; afterwards every byte is right. The second time
# TTM swaps out what is in system RAM as well. Moves take time, so that the processes meet.
set -euo pipefail
# shellcheck source=tests/vramsim/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

node=/dev/dri/by-path/pci-$GPU0-render

more() { [ "$1" -gt "$2" ] && echo yes || echo "$1 is not more than $2"; }
shmem() { awk '$1 == "Shmem:" { print $2 }' /proc/meminfo; }

# storm TEXT: sets peak to the most KiB that were in shmem, which is where TTM swaps to
storm() {
	local i now
	echo "--- $1"
	for i in 1 2 3 4; do
		"$BUILD/tests/vramsim/vsim-storm" "$node" "$RANDOM" 16 800 > "$WORK/$i" 2>&1 &
	done
	peak=0
	while [ -n "$(jobs -r)" ]; do
		now=$(shmem)
		[ "$now" -le "$peak" ] || peak=$now
		sleep 0.05
	done
	for i in 1 2 3 4; do
		grep FAIL "$WORK/$i" | head -n 5 || true
		echo "    $(tail -n1 "$WORK/$i")"
		check "wrong in process $i" 0 "$(field "$(tail -n1 "$WORK/$i")" failed)"
	done
	wait_until 15 vram_empty $GPU0 || check "VRAM in use" 0 "$(vram_used $GPU0)"
}

# Repeated by hand with SEED=N.
RANDOM=${SEED:-1}
lab-load-vramsim devices=1 vram_mb=16 gtt_mb=24 copy=1 bw_mib_per_ms=256
wait_until 15 test -e "$node" || fail "no $node"
storm "four times as much as VRAM holds"
stats=$("$VSIM" stats --device $GPU0)
echo "    $stats"
check "evictions, more than 1000" yes "$(more "$(field "$stats" evictions)" 1000)"

echo $((20 * 256)) > /sys/module/ttm/parameters/pages_limit
before=$(shmem)
storm "with 20 MiB of system RAM for what is not in VRAM"
check "MiB swapped out at a time, more than 4" yes "$(more $(((peak - before) / 1024)) 4)"

rmmod vramsim
check_dmesg
exit $failed
