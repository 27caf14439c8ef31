#!/bin/bash
# SPDX-License-Identifier: MIT
# GPUs come and go while their buffers are in use; nothing leaks and the kernel does not complain.
# shellcheck disable=SC2317 # functions are called by wait_until()
set -euo pipefail
# shellcheck source=tests/vramsim/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pci=/sys/bus/pci

remove() { echo 1 > "$pci/devices/$1/remove"; }
rescan() { echo 1 > $pci/rescan; }
has_device() { "$VSIM" stats --device "$1" > "$WORK/stats" 2>&1; }
gone() { ! kill -0 "$1" 2> /dev/null; }
no_region() { [ "$(region_count "$1")" = 0 ]; }
has_regions() { [ "$(region_count "$1")" = "$2" ]; }

capacity() { awk -v region="drm/$1/vram0" '$1 == region { print $2 / 1048576 }' $CGROUP/dmem.capacity; }

lab-load-vramsim
echo +dmem > $CGROUP/cgroup.subtree_control
mkdir $CGROUP/vsim

echo "--- two GPUs"
check "capacity of $GPU0" 256 "$(capacity $GPU0)"
check "capacity of $GPU1" 128 "$(capacity $GPU1)"
wait_until 15 has_device $GPU0 || fail "no $GPU0: $(cat "$WORK/stats")"
wait_until 15 has_device $GPU1 || fail "no $GPU1: $(cat "$WORK/stats")"

echo "--- removed while one client submits and one only holds"
holder busy vsim --device $GPU0 --size 1M --count 300 --submit-every 1
holder idle vsim --device $GPU0 --size 1M --count 40 --vram-only
line busy 3 > /dev/null
line idle 1 > /dev/null
remove $GPU0
wait_until 15 gone "${pid[busy]}" || check "the busy client ends" yes no
check "the busy client's error" "No such device" "$(sed 's/.*: //' "$WORK/busy.err")"
check "$GPU0 is found" no "$(has_device $GPU0 && echo yes || echo no)"
check "$GPU1 is found" yes "$(has_device $GPU1 && echo yes || echo no)"
check "regions of $GPU0 while the idle client lives" 1 "$(region_count "$REGION0")"
check "charged MiB" 40 "$(current vsim)"

echo "--- back again beside the old instance, which goes with its last client"
rescan
wait_until 15 has_device $GPU0 || check "$GPU0 is found" yes no
check "regions of $GPU0" 2 "$(region_count "$REGION0")"
holder new vsim --device $GPU0 --size 1M --count 50
check "new client resident" 50 "$(field "$(line new 1)" resident_mib)"
end "${pid[idle]}"
wait_until 15 has_regions "$REGION0" 1 || check "regions of $GPU0" 1 "$(region_count "$REGION0")"
check "charged MiB" 50 "$(current vsim)"

echo "--- the module stays while a client lives"
check "rmmod" refused "$(rmmod vramsim 2> /dev/null && echo unloaded || echo refused)"
end "${pid[new]}"
wait_until 15 vram_empty $GPU0 || check "VRAM in use" 0 "$(vram_used $GPU0)"

echo "--- unbind and bind"
echo $GPU1 > $pci/drivers/vramsim/unbind
wait_until 15 no_region "drm/$GPU1/vram0" || check "regions of $GPU1" 0 1
echo $GPU1 > $pci/drivers/vramsim/bind
wait_until 15 has_device $GPU1 || check "$GPU1 is found" yes no

echo "--- 15 times, both GPUs in use"
for i in $(seq 15); do
	holder busy vsim --device $GPU0 --size 4M --count 70 --submit-every 1
	holder other vsim --device $GPU1 --size 4M --count 33 --submit-every 1
	line busy 1 > /dev/null
	line other 1 > /dev/null
	remove $GPU0
	[ $((i % 2)) = 0 ] || remove $GPU1
	end "${pid[busy]}"
	end "${pid[other]}"
	rescan
	wait_until 15 has_device $GPU0 || fail "round $i: $(cat "$WORK/stats")"
	wait_until 15 has_device $GPU1 || fail "round $i: $(cat "$WORK/stats")"
done
check "regions of $GPU0" 1 "$(region_count "$REGION0")"
check "charged MiB" 0 "$(current vsim)"

echo "--- unloaded and loaded 100 times, with other parameters"
rmmod vramsim
check "regions left" 0 "$(grep -c ^drm/ $CGROUP/dmem.capacity || true)"
for parameters in devices=0 devices=9 vram_mb=0 "bus=3,3"; do
	# shellcheck disable=SC2086 # a list
	check "load with $parameters" refused \
		"$(lab-load-vramsim $parameters 2> /dev/null && echo loaded || echo refused)"
done
for i in $(seq 100); do
	lab-load-vramsim devices=3 vram_mb=64,32,16
	[ "$i" -gt 1 ] || check "capacity of the third" 16 "$(capacity 0000:15:00.0)"
	rmmod vramsim
done
check "regions left" 0 "$(grep -c ^drm/ $CGROUP/dmem.capacity || true)"
rmdir $CGROUP/vsim
check_dmesg
exit $failed
