#!/bin/bash
# SPDX-License-Identifier: MIT
# dmem.events on the patched kernel: vramd is woken up when a game loses memory, soon, not too often, and never
# otherwise; what it counts is what the kernel counts. The kernel's own tracepoints say when it was woken up.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

TRACING=/sys/kernel/tracing
game_mib=232 burst_mib=64 storm_seconds=5 # of 256 MiB

# shellcheck disable=SC2317 # called by name
{
playing() { [ "$(current "$GAME_UNIT")" = $game_mib ]; }
eased() { value "$GAME_UNIT" dmem.low $REGION0; [ "$VALUE" -lt $((240 * MIB)) ]; }
}

trace() {
	echo > $TRACING/trace
	echo 1 > $TRACING/tracing_on
}

# wakes: how often vramd was woken up since "trace"
wakes() {
	echo 0 > $TRACING/tracing_on
	grep -c 'sched_waking: comm=vramd ' $TRACING/trace || true
}

# reaction: ms from the first eviction of the trace until vramd was woken up
reaction() {
	awk '{ match($0, / [0-9]+\.[0-9]+: /); t = substr($0, RSTART + 1, RLENGTH - 3) }
		/vramsim_bo_move: .* from=vram .* evict=1$/ && !first { first = t }
		/sched_waking: comm=vramd / && first { printf "%.1f\n", (t - first) * 1000; exit }' $TRACING/trace
}

# moments: in how many hundredths of a second of the trace something was evicted
moments() {
	awk '/vramsim_bo_move: .* from=vram .* evict=1$/ && match($0, / [0-9]+\.[0-9][0-9]/) {
		seen[substr($0, RSTART, RLENGTH)] } END { print length(seen) }' $TRACING/trace
}

# kernel_counts: evictions, bytes and foreign evictions of the game
kernel_counts() {
	local text
	text=$(grep "^$REGION0 " "$CGROUP$GAME_UNIT/dmem.events")
	echo "$(field "$text" evictions) $(field "$text" evicted_bytes) $(field "$text" foreign_evictions)"
}

# vramd_counts KEY...: of the game in front, as vramctl has them
vramd_counts() {
	vramctl --json | python3 -c '
import json, sys
game = next(g for g in json.load(sys.stdin)["games"] if g["foreground"])
print(*(game[key].get(sys.argv[1]) for key in sys.argv[2:]))' $REGION0 "$@"
}

# burst: begins anew when a submission fails, which happens where two programs take each other's buffers
burst() {
	start_scope deck "app-burst-1" bash -c 'while :; do "$@"; sleep 0.1; done' - "$VSIM" hold --device $GPU0 \
		--size 2M --count $((burst_mib / 2)) --vram-only --submit-every 1 > "$WORK/burst" 2>&1
	BURST=$SCOPE_CGROUP
}

mkdir -p /etc/systemd/system/vramd.service.d
printf '[Service]\nWatchdogSec=0\n' > /etc/systemd/system/vramd.service.d/events.conf # it wakes up for that, too
mkdir -p /etc/vramd
printf '%s\n' '[kernel]' ThrottleHard=0 ThrottleSoft=0 > /etc/vramd/vramd.conf # or the kernel eases by itself
setup_vramd
mountpoint -q $TRACING || mount -t tracefs tracefs $TRACING
echo mono > $TRACING/trace_clock
echo 1 > $TRACING/events/vramsim/vramsim_bo_move/enable
echo 'comm == "vramd"' > $TRACING/events/sched/sched_waking/filter
echo 1 > $TRACING/events/sched/sched_waking/enable

start_seat_session deck
start_game deck 200 --device $GPU0 --size 2M --count $((burst_mib / 2)) --vram-only
rival=$GAME_UNIT
start_game deck 100 --device $GPU0 --size 2M --count $((game_mib / 2))
front deck "$GAME_PID"
must "the game is protected" wait_until 10 protected "$GAME_UNIT"
[ -e "$CGROUP$GAME_UNIT/dmem.events" ] || skip "needs --kernel patched"
open_gpu 100
must "it has all of its buffers" wait_until 20 playing
vramctl watch > "$WORK/watch" &
watch=$!
wait_until 5 has_lines "$WORK/watch" 1
sleep 6 # it looks twice at a process that is new
check "evictions of it, by the kernel" "0 0 0" "$(kernel_counts)"
check "by vramd" "0 0" "$(vramd_counts evictions evicted)"

trace
sleep 5
check "times that vramd was woken up in 5 s in which nothing was evicted" 0 "$(wakes)"

echo "--- another game comes in"
trace
open_gpu 200
line 200 1 > /dev/null
wait_until 5 eased || fail "the game was not eased"
ok "the game was eased"
[ "$(wakes)" -gt 0 ] || fail "vramd was not woken up"
ms=$(reaction)
awk -v ms="$ms" 'BEGIN { exit !(ms != "" && ms <= 30) }' || fail "vramd was woken up after $ms ms, want 30"
ok "vramd was woken up $ms ms after the first eviction"
sleep 1
read -r evictions bytes foreign <<< "$(kernel_counts)"
[ "$foreign" -gt 0 ] || fail "nothing was evicted: this test shows nothing"
check "all of them for others" "$evictions" "$foreign"
check "evictions and bytes, by vramd" "$foreign $bytes" "$(vramd_counts evictions evicted)"
wait_until 5 grep -q " evicted .* lost .* of $REGION0 to app-steam-app200-1.scope - others needed room$" "$WORK/watch" ||
	fail "watch did not tell of it: $(cat "$WORK/watch")"
grep ' evicted ' "$WORK/watch"
check "what the signals say, and the kernel, MiB" $((bytes / MIB)) \
	"$(sed -n 's/.* evicted .* lost \([0-9]*\) MiB .*/\1/p' "$WORK/watch" | awk '{ n += $1 } END { print n + 0 }')"
vramctl status | grep -q "^    evicted  *card0/vram0 .* MiB, $foreign buffers$" || fail "status does not say so"
end_game "$rival"
end_game "$GAME_UNIT"

echo "--- a storm"
printf '%s\n' '[policy]' Easing=0 >> /etc/vramd/vramd.conf
vramctl reload
start_game deck 101 --device $GPU0 --size 2M --count $((game_mib / 2)) --submit-every 1
front deck "$GAME_PID"
must "another game is protected" wait_until 10 protected "$GAME_UNIT"
open_gpu 101
must "it has all of its buffers" wait_until 20 playing
burst
sleep 1
read -r before _ <<< "$(kernel_counts)"
trace
sleep $storm_seconds
per_second=$(($(wakes) / storm_seconds))
read -r evictions _ <<< "$(kernel_counts)"
evictions=$((evictions - before)) moments=$(moments)
end_game "$BURST"
sleep 1
[ "$moments" -gt $((20 * storm_seconds)) ] || fail "$evictions evictions in only $moments moments: no storm"
if [ $per_second -eq 0 ] || [ $per_second -gt 100 ]; then
	fail "$per_second wake-ups a second, want 1 to 100"
fi
ok "$evictions evictions in $moments moments of $storm_seconds s, $per_second wake-ups a second"
read -r _ _ foreign <<< "$(kernel_counts)"
check "evictions for others, by vramd" "$foreign" "$(vramd_counts evictions)"

kill $watch
echo "figures: woken up $ms ms after the first eviction; $per_second times a second in a storm; never without"
