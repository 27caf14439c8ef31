#!/bin/bash
# SPDX-License-Identifier: MIT
# A GPU is pulled while buffers of it are on the screen, mapped and exported.
# shellcheck disable=SC2317 # functions are called by wait_until()
set -euo pipefail
# shellcheck source=tests/vramsim/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

node=/dev/dri/by-path/pci-$GPU0-render
no_region() { [ "$(region_count "$REGION0")" = 0 ]; }

# drain: throws out what can be thrown out, and lets all in again
drain() {
	echo "$REGION0 0" > $CGROUP/vsim/dmem.max || true
	echo "$REGION0 max" > $CGROUP/vsim/dmem.max
}

# unplug TEXT COMMAND...: a new user, and the device goes by that command
unplug() {
	local text=$1
	shift
	echo "--- $text"
	wait_until 15 test -e "$node" || fail "no $node"
	: > "$WORK/user"
	(
		echo "$BASHPID" > $CGROUP/vsim/cgroup.procs
		exec "$BUILD/tests/vramsim/vsim-unplug" "$node" > "$WORK/user" 2> "$WORK/user.err"
	) &
	pid[user]=$!
	check "failed at start" 0 "$(field "$(line user 1)" started)"
	check "charged MiB" 3 "$(current vsim)"
	drain
	check "charged MiB after dmem.max=0: the one on the screen stays" 1 "$(current vsim)"

	"$@"
	check "charged MiB" 1 "$(current vsim)"
	drain
	check "charged MiB after dmem.max=0: nothing is on a screen" 0 "$(current vsim)"
	kill -USR1 "${pid[user]}"
	check "failed without the device" 0 "$(field "$(line user 2)" failed)"
	grep FAIL "$WORK/user" || true
	check "regions while there is an export" 1 "$(region_count "$REGION0")"
	kill -USR1 "${pid[user]}"
	wait "${pid[user]}" || check "exit status" 0 1
	wait_until 15 no_region || check "regions" 0 "$(region_count "$REGION0")"
}

remove() { echo 1 > "/sys/bus/pci/devices/$GPU0/remove"; }
unbind() { echo "$GPU0" > /sys/bus/pci/drivers/vramsim/unbind; }

lab-load-vramsim vram_mb=16,16 copy=1
echo +dmem > $CGROUP/cgroup.subtree_control
mkdir $CGROUP/vsim
unplug "removed from the bus" remove
echo 1 > /sys/bus/pci/rescan
unplug "unbound from the driver" unbind
echo "$GPU0" > /sys/bus/pci/drivers/vramsim/bind
unplug "again" remove
rmdir $CGROUP/vsim
rmmod vramsim
check_dmesg
exit $failed
