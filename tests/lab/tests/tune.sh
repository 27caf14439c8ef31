#!/bin/bash
# SPDX-License-Identifier: MIT
# The parameters of the companion kernel series, with "--kernel patched": set, tuned by hand and by game, put back after
# whatever ends vramd, and nothing else writable. On a stock kernel: nothing to set, and vramd says what that costs.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

TTM=/sys/module/ttm/parameters
DROP_IN=/etc/systemd/system/vramd.service.d/end.conf
STOCK='0 0 0 0 N N N' TUNED='50 2000 1 20 Y Y Y'

# shellcheck disable=SC2317 # called by name
{
knobs() {
	local name text=''
	for name in throttle_{hard,soft}_ms throttle_levels reclaim_backoff_ms contig_window evict_priority displace_lower; do
		text+=" $(< "$TTM/$name")"
	done
	echo "${text# }"
}
are() { [ "$(knobs)" = "$1" ]; }
active() { systemctl --quiet is-active vramd.service; }
restarted() { active && [ "$(vramd_pid)" != "$pid" ]; }
down() { [ "$(systemctl show -P ActiveState vramd.service)" = failed ]; }
logged() { vramd_log | grep -q "$1"; }
}
exit_of() {
	local status=0
	"$@" > "$WORK/out" 2>&1 || status=$?
	echo $status
}
found() { grep -q "^$1 .*$2" "$WORK/doctor"; }
inside() { nsenter --target "$(vramd_pid)" --mount -- "$@"; }
# end_as LINE...: what systemd does from now on when vramd ends
end_as() {
	{ echo '[Service]'; printf '%s\n' "$@"; } > $DROP_IN
	systemctl daemon-reload
}

setup_vramd
start_seat_session deck
as deck vramctl doctor > "$WORK/doctor" || fail "doctor: $(cat "$WORK/doctor")"
grep -E 'throttle|backoff|window|priority|displace|root-|dmem-events' "$WORK/doctor" | sed 's/^/    /'

if [ ! -e $TTM/throttle_hard_ms ]; then
	echo "--- a stock kernel"
	check "none is there" 8 "$(as deck vramctl tune | grep -c 'this kernel has none')"
	check "none can be set" 1 "$(exit_of vramctl tune ThrottleHard=80ms)"
	must "and vramd says why" grep -q "'throttle_hard_ms' of 'ttm'" "$WORK/out"
	for name in throttle reclaim-backoff contig-window evict-priority displace-lower lock-backoff; do
		must "doctor: $name is missing" found note "$name is missing: "
	done
	must "doctor: no protection below the root" found note 'root-protection is probably missing'
	! vramd_log | grep -E 'parameter' || fail "vramd complained"
	exit
fi

echo "--- the patched kernel"
must "set at the start" wait_until 10 are "$TUNED"
check "Abilities" 1 "$(property Abilities | grep -c '"throttle"')"
for name in throttle reclaim-backoff contig-window evict-priority displace-lower lock-backoff; do
	must "doctor: $name" found ok "$name: "
done
as deck vramctl tune | sed 's/^/    /'

echo "--- the sandbox"
must "can write these" inside sh -c "echo 1 > $TTM/throttle_levels"
for path in $TTM/pages_limit /sys/module/suspend/parameters/pm_test_delay /sys/kernel/mm/lru_gen/enabled \
		/proc/sys/kernel/printk; do
	[ ! -e "$path" ] || must "cannot write $path" inside sh -c "! echo 0 2> /dev/null > $path"
done
must "on mounts of their own" inside grep -q " $TTM/throttle_hard_ms rw" /proc/self/mountinfo

echo "--- by hand"
check "root: tune" 0 "$(exit_of vramctl tune ThrottleHard=80ms ContigWindow=no)"
check "with what needs it" '80 2000 1 20 N N N' "$(knobs)"
check "what needs it is refused" 1 "$(exit_of vramctl tune EvictPriority=yes)"
must "with a reason" grep -q "needs 'ContigWindow'" "$WORK/out"
start_user eve
check "eve may not" 1 "$(exit_of as_unit eve vramctl tune ThrottleHard=90ms)"
must "and is told so" grep -q 'set-kernel' "$WORK/out"
check "nor reset" 1 "$(exit_of as_unit eve vramctl tune --reset)"
check "root: reset" 0 "$(exit_of vramctl tune --reset)"
check "the configuration counts" "$TUNED" "$(knobs)"

echo "--- a game in front"
printf '[game 100]\nThrottleSoft=500ms\nEvictPriority=no\n' > /etc/vramd/vramd.conf
vramctl reload
start_game deck 100
front deck "$GAME_PID"
must "has its own" wait_until 10 are '50 500 1 20 Y N N'
end_game "$GAME_UNIT"
must "until it ends" wait_until 10 are "$TUNED"
rm /etc/vramd/vramd.conf
vramctl reload

echo "--- the end"
systemctl stop vramd.service
check "stopped" "$STOCK" "$(knobs)"
echo 300 > $TTM/throttle_soft_ms
systemctl start vramd.service
must "set" wait_until 10 are "$TUNED"
end_as Restart=no
kill -KILL "$(vramd_pid)"
must "killed" wait_until 10 down
check "systemd has it put back, also what was set before" '0 300 0 0 N N N' "$(knobs)"
echo 0 > $TTM/throttle_soft_ms
end_as Restart=no ExecStopPost=
systemctl restart vramd.service
must "set" wait_until 10 are "$TUNED"
kill -KILL "$(vramd_pid)"
must "killed, with nobody to put it back" wait_until 10 down
check "left" "$TUNED" "$(knobs)"
"$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' $BUILD/systemd/vramd.service)" --restore
check "vramd --restore" "$STOCK" "$(knobs)"
rm $DROP_IN
systemctl daemon-reload
systemctl start vramd.service
must "set" wait_until 10 are "$TUNED"
pid=$(vramd_pid)
kill -KILL "$pid"
must "killed: systemd starts it again" wait_until 10 restarted
must "set" wait_until 10 are "$TUNED"
echo 777 > $TTM/throttle_soft_ms
systemctl stop vramd.service
check "a stranger's value stays" '0 777 0 0 N N N' "$(knobs)"

echo "--- the module"
systemctl start vramd.service
must "set" wait_until 10 are "$TUNED"
pid=$(vramd_pid)
rmmod vramsim
modprobe -r ttm
must "gone" test ! -e $TTM
lab-load-vramsim vram_mb=256,128
must "loaded anew: vramd gets a new sandbox" wait_until 20 restarted
must "and sets it" wait_until 10 are "$TUNED"
must "as it says" logged 'Starting anew'
check "which is no failure" success "$(systemctl show -P Result vramd.service)"
systemctl stop vramd.service
check "stopped" "$STOCK" "$(knobs)"
! vramd_log | grep -E 'Cannot (set|keep|put)' || fail "vramd complained"
ok "vramd never complained of one"
