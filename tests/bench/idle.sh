#!/bin/bash
# SPDX-License-Identifier: MIT
# idle [SECONDS]: how often vramd wakes up when nothing happens, and what easing costs while a game is in front
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

# percent: how full the first GPU is
percent() {
	value '' dmem.current $REGION0
	echo $((VALUE * 100 / (256 * MIB)))
}

# limit LOOKS_PER_SECOND: wake-ups in $seconds, with those for the watchdog, and two for late timers
limit() { awk "BEGIN { print int($seconds * $1 + $seconds / 7.5 + 2) }"; }

# in_front NAME [LOOKS_PER_SECOND]
in_front() {
	local text
	wakeups
	text="idle in $seconds s, a game in front, its region $(percent) % full, $1"
	if [ $# -gt 1 ]; then
		mark "$text" $WAKEUPS wake-ups "$(limit "$2")"
	else
		figure "$text" $WAKEUPS "wake-ups (for the watchdog)"
	fi
}

set_easing() {
	printf '[policy]\nEasing=%s\n' "$1" > /etc/vramd/vramd.conf
	vramctl reload
}

# play MIB: a game in front that holds so much
play() {
	start_game deck "$1" --device $GPU0 --size 2M --count $(($1 / 2))
	open_gpu "$1"
	line "$1" 1 > /dev/null
	front deck "$GAME_PID"
	wait_until 10 protected "$GAME_UNIT"
}

setup_bench
start_seat_session deck
wakeups
mark "idle in $seconds s, a user but no game" $WAKEUPS wake-ups 0
play 48
set_easing 0
in_front "no easing"
set_easing 2s
in_front "easing" 0.5
end_game "$GAME_UNIT"
play 232
in_front "easing" 20
end_game "$GAME_UNIT"
wakeups
mark "idle in $seconds s, after the games" $WAKEUPS wake-ups 0
exit $SHORT
