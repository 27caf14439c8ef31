#!/bin/bash
# SPDX-License-Identifier: MIT
# What systemd, the bus and logind do in a machine's life: a second after each the protection is right
# again, and it is the same vramd all along.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

# shellcheck disable=SC2317 # called by name
{
is_right() { protected "$GAME_UNIT"; }
answers() { [ "$(property State 2> /dev/null)" = '"protecting"' ]; }

system_reload() { systemctl daemon-reload; }
system_reexec() { systemctl daemon-reexec; }
user_reload() { as deck systemctl --user daemon-reload; }
user_reexec() { as deck systemctl --user daemon-reexec; }
# Takes what others must give back: systemd writes subtree_control again when units come and go.
user_unit() { as deck systemd-run --user --quiet --collect --wait -p MemoryMax=100M true; }
slice_property() { systemctl set-property --runtime user-1000.slice MemoryLow=10M; }
bus_restart() { systemctl restart dbus.service; }
logind_restart() { systemctl restart systemd-logind.service; }
lose_everything() {
	echo -dmem > $CGROUP$DECK/app.slice/cgroup.subtree_control
	echo +dmem > $CGROUP$DECK/app.slice/cgroup.subtree_control
}
new_game() {
	[ -z "$GAME_UNIT" ] || gone "$GAME_UNIT" || end_game "$GAME_UNIT"
	start_game deck "$1"
	front deck "$GAME_PID"
}
user_service_restart() {
	systemctl restart user@1000.service
	wait_until 10 user_ready deck
	new_game 200
}
logout_login() {
	end_seat_session deck
	stop_user deck
	wait_until 10 no_low_at_all || fail "something stays protected after the logout"
	start_seat_session deck
	start_user deck
	new_game 300
}
suspend_resume() {
	systemctl suspend
	# Back from it when the job is done.
	wait_until 30 slept
}
slept() { [ "$(cat /sys/power/suspend_stats/success)" -gt "$sleeps" ] && ! systemctl --quiet is-active suspend.target; }
}

setup_vramd
start_user deck
start_seat_session deck
pid=$(vramd_pid)

new_game 100
within "a game in front" true is_right
within "systemctl daemon-reload" system_reload is_right
within "systemctl daemon-reexec" system_reexec is_right
within "systemctl --user daemon-reload" user_reload is_right
within "systemctl --user daemon-reexec" user_reexec is_right
within "a unit of the user with a memory limit" user_unit is_right
within "set-property on the user's slice" slice_property is_right
within "dmem switched off and on in app.slice" lose_everything is_right
within "restart of logind" logind_restart is_right
within "restart of the bus" bus_restart is_right
within "it is on the bus again" bus_restart answers
within "and of logind, on the new bus" logind_restart is_right
within "a focus change after it" "front deck $GAME_PID" is_right
within "restart of user@1000.service, new game" user_service_restart is_right
within "logout and login, new game" logout_login is_right
check "it is the same vramd all along" "$pid" "$(vramd_pid)"

# Real, as far as this machine goes: logind announces it, all tasks are frozen for a second, and thawed.
if [ -w /sys/power/pm_test ]; then
	echo freezer > /sys/power/pm_test
	echo 1 > /sys/module/suspend/parameters/pm_test_delay
fi
cat /sys/power/state
sleeps=$(cat /sys/power/suspend_stats/success)
within "suspend and resume" suspend_resume is_right
