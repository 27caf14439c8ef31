# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # used by those who source this file
# Sourced by the benchmarks that run in the lab's guest: vramd as it is shipped, and two games.

# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

# Exit status of a benchmark that misses a mark
SHORT=0

# figure NAME VALUE UNIT
figure() { echo "$1: $2 $3"; }

# mark NAME VALUE UNIT LIMIT: a figure that must not be above its limit
mark() {
	local word=ok
	awk -v a="$2" -v b="$4" 'BEGIN { exit !(a <= b) }' || word=short SHORT=3
	echo "$1: $2 $3 (mark: <= $4) $word"
}

# The tests' vramd logs at debug level, this one is like a user's.
setup_bench() {
	mkdir -p /etc/systemd/system/vramd.service.d
	printf '[Service]\nEnvironment=VRAMD_LOG_LEVEL=info\n' > /etc/systemd/system/vramd.service.d/zz-bench.conf
	# shellcheck disable=SC2119
	setup_vramd > /dev/null 2>&1
}

# setup_games: two games that hold some of the first GPU's VRAM, as different games do
setup_games() {
	start_seat_session deck
	start_game deck 100 --device $GPU0 --size 2M --count 24
	GAME_A=$GAME_PID:$GAME_UNIT PID_A=$GAME_PID UNIT_A=$GAME_UNIT
	start_game deck 200 --device $GPU0 --size 2M --count 48
	GAME_B=$GAME_PID:$GAME_UNIT PID_B=$GAME_PID UNIT_B=$GAME_UNIT
	open_gpu 100
	open_gpu 200
	line 100 1 > /dev/null
	line 200 1 > /dev/null
}

# reaction OPTION...
reaction() {
	$BUILD/tests/bench/bench-reaction --daemon="$(vramd_pid)" --uid=1000 "$@" "$GAME_A" "$GAME_B"
}

# A mark that is missed is no reason to show what vramd was doing.
finish() {
	local status=$?
	[ $status -eq 0 ] || [ $status -eq 3 ] || show_state
	# shellcheck disable=SC2046
	kill $(jobs -p) 2> /dev/null || true
	exit $status
}
