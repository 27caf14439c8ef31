#!/bin/bash
# SPDX-License-Identifier: MIT
# Checks the lab itself: run with  tests/lab/run tests/lab/smoke.sh
set -euo pipefail
# shellcheck source=tests/lab/lib.sh
. /lab/src/tests/lab/lib.sh

check() {
	local what=$1
	shift
	"$@" || fail "$what"
	ok "$what"
}

kernel_version() { [[ $(uname -r) == 7.3.* ]]; }
has_dmem() { grep -qw dmem "$CGROUP/cgroup.controllers"; }
is_systemd() { [ "$(cat /proc/1/comm)" = systemd ]; }
sources_protected() { ! touch "$SRC/lab-was-here" 2> /dev/null; }
root_is_overlay() { [ "$(findmnt -no FSTYPE /)" = overlay ]; }
polkit_answers() { pkcheck --action-id org.freedesktop.login1.power-off --process $$; }
user_unit() { [ "$(as_unit deck id -un)" = deck ]; }
user_is_active() { loginctl show-session "$(seat_session deck)" -p Active --value | grep -qx yes; }
uevent_processed() { udevadm info /sys/class/mem/null | grep -q '^E: DEVNAME=/dev/null'; }

check "kernel is Linux 7.3 ($(uname -r))" kernel_version
check "the root controller list has dmem" has_dmem
check "process 1 is systemd ($(systemctl --version | head -n1))" is_systemd
check "the root is an overlay" root_is_overlay
check "the sources cannot be written" sources_protected
check "udevd runs" systemctl --quiet is-active systemd-udevd.service
check "udev knows a device" uevent_processed
check "polkit answers" polkit_answers

check "deck's user manager starts" start_user deck
check "a user unit runs" user_unit
start_scope deck app-steam-app1091500-4242 sleep 1000
check "a game's scope exists" grep -qx "0::$SCOPE_CGROUP" "/proc/$SCOPE_PID/cgroup"

before=$(tree_state)
for dir in '' /user.slice /user.slice/user-1000.slice /user.slice/user-1000.slice/user@1000.service \
	/user.slice/user-1000.slice/user@1000.service/app.slice; do
	echo +dmem > "$CGROUP$dir/cgroup.subtree_control" || fail "cannot enable dmem in '$dir'"
done
check "dmem reaches the scope" test -e "$CGROUP$SCOPE_CGROUP/dmem.low"
after=$(tree_state)
check "tree_state shows what was enabled" grep -q '^cgroup.subtree_control:.*\<dmem\>' <<< "$after"
check "and the new files" grep -qx "${SCOPE_CGROUP#/}/dmem.low 0:0 644" <<< "$after"
[ "$before" != "$after" ] || fail "tree_state does not see the change"

check "deck gets a session on seat0" start_seat_session deck
check "which is active" user_is_active
check "and ends" end_seat_session deck
check "eve's user manager starts" start_user eve
check "and ends" stop_user eve

if [ -e /lab/vramsim.ko ]; then
	check "vramsim loads" lab-load-vramsim
	check "dmem has regions" grep -q . "$CGROUP/dmem.capacity"
	check "a render node exists" wait_until 5 test -e /dev/dri/renderD128
fi
for module in ttm drm_exec drm_buddy gpu_sched; do
	check "module $module loads" modprobe "$module"
done
