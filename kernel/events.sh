#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# events.sh   in the lab: protection across the root group, dmem.events, throttling; on the stock kernel only what
#             becomes of the protection
set -euo pipefail
# shellcheck source=tests/vramsim/lib.sh
. /lab/src/tests/vramsim/lib.sh

KNOBS=/sys/module/ttm/parameters

# low and min of both groups on the way down to the game: LIMIT BYTES
limit() {
	local group
	for group in a a/game; do
		echo "$REGION0 $2" > "$CGROUP/$group/dmem.$1"
	done
}

# counts GROUP[/FILE]: evictions, bytes and foreign evictions
counts() {
	local file=$CGROUP/$1/dmem.events text
	[ -e "$file" ] || file=$CGROUP/$1
	text=$(grep "^$REGION0 " "$file")
	echo "$(field "$text" evictions) $(field "$text" evicted_bytes) $(field "$text" foreign_evictions)"
}

# Waits for the file to change; prints how often it did until it was quiet for a second.
watch_events() {
	python3 - "$1" <<-'END'
		import select, sys
		with open(sys.argv[1]) as file:
		    file.read()
		    poll = select.poll()
		    poll.register(file, select.POLLPRI)
		    print("ready", flush=True)
		    wakes, timeout = 0, 30000
		    while poll.poll(timeout):
		        wakes, timeout = wakes + 1, 1000
		        file.seek(0)
		        file.read()
		    print(f"wakes={wakes}")
	END
}

lab-load-vramsim
[ -e $KNOBS/throttle_hard_ms ] && patched=yes || patched=no
if [ "$patched" = yes ]; then
	for knob in reclaim_backoff_ms throttle_{hard,soft}_ms throttle_levels; do
		check "$knob" 0 "$(< "$KNOBS/$knob")"
	done
	for knob in contig_window evict_priority displace_lower; do
		check "$knob" N "$(< "$KNOBS/$knob")"
	done
fi

# Nothing but the root group is common to game and rival.
echo +dmem > "$CGROUP/cgroup.subtree_control"
mkdir "$CGROUP/a" "$CGROUP/b"
echo +dmem > "$CGROUP/a/cgroup.subtree_control"
mkdir "$CGROUP/a/game"
holder game a/game --device $GPU0 --size 2M --count 96
line game 1 > /dev/null

for kind in min low; do
	limit $kind $((192 << 20))
	holder rival b --device $GPU0 --size 2M --count 128 --vram-only --no-submit
	wait_until 30 has_lines "$WORK/rival" 1
	[ "$patched" = yes ] || skip "without the series, the game keeps $(current a/game) of 192 MiB under dmem.$kind"
	check "game after the rival, with dmem.$kind, MiB" 192 "$(current a/game)"
	check "its events" "0 0 0" "$(counts a/game)"
	end "${pid[rival]}"
	limit $kind 0
	rm "$WORK/rival"
done
check "the rival evicts itself, which is not foreign" 0 "$(counts b | cut -d' ' -f3)"

watch_events "$CGROUP/a/game/dmem.events" > "$WORK/watch" &
watch=$!
wait_until 10 has_lines "$WORK/watch" 1
echo 600000 > $KNOBS/throttle_hard_ms
holder rival b --device $GPU0 --size 2M --count 64 --vram-only --no-submit
line rival 1 > /dev/null
wait $watch
wakes=$(field "$(sed -n 2p "$WORK/watch")" wakes)
check "woken up, less often than 32 times" yes "$([ "$wakes" -gt 0 ] && [ "$wakes" -lt 32 ] && echo yes || echo "$wakes")"
check "evictions, bytes, foreign ones of the game" "32 $((64 << 20)) 32" "$(counts a/game)"
check "and of its parent" "32 $((64 << 20)) 32" "$(counts a)"
check "itself" "0 0 0" "$(counts a/dmem.events.local)"
end "${pid[rival]}"

kill -USR1 "${pid[game]}"
check "spilled MiB in the hard phase, with free VRAM" 64 "$(field "$(line game 2)" spilled_mib)"
echo 0 > $KNOBS/throttle_hard_ms
echo 600000 > $KNOBS/throttle_soft_ms
kill -USR1 "${pid[game]}"
check "spilled MiB in the soft phase" 0 "$(field "$(line game 3)" spilled_mib)"
echo 0 > $KNOBS/throttle_soft_ms

# A buffer that a limit holds up is charged to nobody, and what goes for it isn't told from what the group did itself.
mkdir "$CGROUP/a/other"
echo "$REGION0 $((192 << 20))" > "$CGROUP/a/dmem.max"
holder other a/other --device $GPU0 --size 2M --count 8 --vram-only --no-submit
line other 1 > /dev/null
check "evictions, bytes, foreign ones of the game, with dmem.max above both" "40 $((80 << 20)) 32" "$(counts a/game)"
end "${pid[other]}"

end "${pid[game]}"
exit $failed
