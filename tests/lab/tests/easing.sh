#!/bin/bash
# SPDX-License-Identifier: MIT
# Easing on the real kernel: a program beside the game in front needs buffers that can be nowhere but in VRAM, and gets
# them in spite of the game's low. First without easing, where both must move buffers in every frame, or this shows
# nothing.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

game_mib=232 burst_mib=64 seconds=4 # of 256 MiB
protected_mib=240

# shellcheck disable=SC2317 # called by name
{
lowered() { value "$GAME_UNIT" dmem.low $REGION0; [ "$VALUE" -lt $((protected_mib * MIB)) ]; }
says_so() { vramctl status | grep "^    eased  *card0/vram0 [0-9.]* MiB, for [0-9.]* s yet"; }
playing() { [ "$(current "$GAME_UNIT")" = $game_mib ]; }
# by_itself GROUP...: each has the same low as the game, and that is what the game uses
by_itself() {
	local group want
	value "$GAME_UNIT" dmem.current $REGION0
	want=$VALUE
	for group; do
		value "$group" dmem.low $REGION0
		[ "$VALUE" = "$want" ] || return
	done
}
}

ancestors() {
	local group=$1
	while [ -n "$group" ]; do
		echo "$group"
		group=${group%/*}
	done
}

# burst: begins anew when a submission fails, which happens where two programs take each other's buffers
burst() {
	start_scope deck "app-burst-1" bash -c 'while :; do "$@"; sleep 0.1; done' - "$VSIM" hold --device $GPU0 \
		--size 2M --count $((burst_mib / 2)) --vram-only --submit-every 16 > "$WORK/burst" 2>&1
	BURST=$SCOPE_CGROUP
}

# moved SECONDS: sets MOVED, the MiB that the game's frames had to move
moved() {
	local first
	first=$(wc -l < "$WORK/100")
	sleep "$1"
	MOVED=$(tail -n +$((first + 1)) "$WORK/100" | sed 's/.*moved_mib=\([^ ]*\).*/\1/' |
		awk '{ n += $1 } END { print n + 0 }')
}

setup_vramd
start_seat_session deck
start_game deck 100 --device $GPU0 --size 2M --count $((game_mib / 2)) --submit-every 16
front deck "$GAME_PID"
must "the game is protected" wait_until 10 protected "$GAME_UNIT"
open_gpu 100
must "it has all of its buffers" wait_until 20 playing
mapfile -t groups < <(ancestors "$GAME_UNIT")

echo "--- without easing"
throttle=$'[kernel]\nThrottleHard=0\nThrottleSoft=0' # or a patched kernel does it
printf '%s\n' "$throttle" '[policy]' Easing=0 > /etc/vramd/vramd.conf
vramctl reload
burst
moved $seconds
without=$MOVED
must "low is as it was" protected "$GAME_UNIT"
[ "$without" -gt $((game_mib * seconds)) ] || fail "only $without MiB moved: this test shows nothing"
ok "the game's frames moved $without MiB in $seconds s"
end_game "$BURST"
must "it has all of its buffers" wait_until 10 playing

echo "--- with easing"
echo "$throttle" > /etc/vramd/vramd.conf
vramctl reload
sleep 2.5 # until vramd knows that the region is full
vramctl watch > "$WORK/watch" &
watch=$!
wait_until 5 has_lines "$WORK/watch" 1
burst
must "low is lowered" wait_until 3 lowered
must "to what the game uses, on each group above too" wait_until 3 by_itself "${groups[@]}"
must "status says so" wait_until 3 says_so
moved $seconds
ok "the game's frames moved $MOVED MiB in $seconds s"
[ "$MOVED" -lt $((without / 3)) ] || fail "that is not a third of $without MiB"
end_game "$BURST"
must "low is restored" wait_until 3 protected "$GAME_UNIT"
must "and the game has all of its buffers" wait_until 3 playing
kill $watch
grep -E ' (eased|restored) ' "$WORK/watch" | head -n 4
grep -q ' eased .* lost .* of drm/' "$WORK/watch" || fail "watch did not tell of it"
grep -q ' restored .* has 240 MiB of drm/.* again' "$WORK/watch" || fail "watch did not tell of its end"
echo "figures: of 64 MiB that come in, the game's frames move $without MiB in $seconds s without easing, $MOVED with it"
