#!/bin/bash
# SPDX-License-Identifier: MIT
# Where buffers are and what is in them: new, moved, in one piece, pinned, shared, mapped.
set -euo pipefail
# shellcheck source=tests/vramsim/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

node=/dev/dri/by-path/pci-$GPU0-render
events=/sys/kernel/tracing/events/vramsim/vramsim_bo_move

lab-load-vramsim devices=1 vram_mb=16 gtt_mb=8 copy=1
wait_until 15 test -e "$node" || fail "no $node"
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
echo 1 > $events/enable
status=0
"$BUILD/tests/vramsim/vsim-memory" "$node" || status=$?
check "exit status of vsim-memory" 0 $status
echo 0 > $events/enable

echo "--- the tracepoint"
# moves FROM TO EVICT: how many of that kind were traced
moves() { grep -c "device=$GPU0 size=[0-9]* from=$1 to=$2 evict=$3\$" /sys/kernel/tracing/trace || true; }
for kind in "vram gtt 1" "gtt system 1" "system gtt 0" "gtt vram 0" "vram vram 0"; do
	# shellcheck disable=SC2086 # words
	check "moves of the kind '$kind' were traced" yes "$([ "$(moves $kind)" -gt 0 ] && echo yes || echo no)"
done
check "moves without a hop" 0 "$(($(moves vram system 1) + $(moves system vram 0)))"

rmmod vramsim
check_dmesg
exit $failed
