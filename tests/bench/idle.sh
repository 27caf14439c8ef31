#!/bin/bash
# SPDX-License-Identifier: MIT
# idle [SECONDS]: how often vramd wakes up when nothing happens
set -euo pipefail
# shellcheck source=tests/bench/lab.sh
. /lab/src/tests/bench/lab.sh

seconds=${1:-60}

switches() { awk '/ctxt_switches/ { n += $2 } END { print n }' "/proc/$(vramd_pid)/status"; }

# wakeups: sets WAKEUPS, after all that was going on has ended
wakeups() {
	sleep 7
	WAKEUPS=$(switches)
	sleep "$seconds"
	WAKEUPS=$(($(switches) - WAKEUPS))
}

setup_bench
start_seat_session deck
wakeups
mark "idle in $seconds s, a user but no game" $WAKEUPS wake-ups 0
start_game deck 100 --device $GPU0 --size 2M --count 24
open_gpu 100
line 100 1 > /dev/null
front deck "$GAME_PID"
wait_until 10 protected "$GAME_UNIT"
wakeups
figure "idle in $seconds s, a game in front, its region $((100 * 48 / 256)) % full" $WAKEUPS "wake-ups (for the watchdog)"
exit $SHORT
