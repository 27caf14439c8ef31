#!/bin/bash
# SPDX-License-Identifier: MIT
# dmem.low, written by hand, decides who keeps VRAM: the same game and the same rival, without
# protection (the game must lose, or this test shows nothing) and with it.
set -euo pipefail
# shellcheck source=tests/vramsim/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# 96 buffers of 2 MiB for the game, 256 MiB for the rival, on 256 MiB of VRAM.
game_mib=192
rival_mib=256

protect() {
	local group
	# From the top: below_low of the game looks at all ancestors. And never the root cgroup as
	# the only common ancestor of game and rival, for there the kernel ignores protection.
	for group in vsim vsim/game; do
		echo "$REGION0 $1" > $CGROUP/$group/dmem.low
	done
}

# fdinfo PID KEY: MiB, from the process's render node
fdinfo() {
	awk -v key="$2:" '$1 == key && $3 == "MiB" { print $2; found = 1 } $1 == key && !$3 { print $2 }' \
		/proc/"$1"/fdinfo/* | head -n1
}

# where NAME N WANT-RESIDENT WANT-SPILLED: compares all three books with what is expected
where() {
	local text
	text=$(line "$1" "$2")
	echo "    $1: $text, dmem.current $(current "vsim/$1") MiB"
	check "$1 resident MiB" "$3" "$(field "$text" resident_mib)"
	check "$1 spilled MiB" "$4" "$(field "$text" spilled_mib)"
	check "$1 dmem.current MiB" "$3" "$(current "vsim/$1")"
	check "$1 fdinfo resident" "$3" "$(fdinfo "${pid[$1]}" drm-resident-vram0)"
	check "$1 fdinfo total" $(($3 + $4)) "$(fdinfo "${pid[$1]}" drm-total-vram0)"
}

# arm TEXT LOW-BYTES GAME-KEEPS-MIB
arm() {
	echo "--- $1"
	mkdir $CGROUP/vsim/game $CGROUP/vsim/rival
	protect "$2"
	holder game vsim/game --device $GPU0 --size 2M --count $((game_mib / 2))
	where game 1 $game_mib 0
	# The rival only creates: a submission would ask for all of its buffers at once, and a
	# VRAM-only one may break low protection (not min) as its last resort.
	holder rival vsim/rival --device $GPU0 --size 2M --count $((rival_mib / 2)) \
		--vram-only --no-submit
	where rival 1 $((256 - $3)) $((rival_mib - 256 + $3))
	kill -USR2 "${pid[game]}"
	where game 2 "$3" $((game_mib - $3))
}

end_arm() {
	end "${pid[game]}"
	end "${pid[rival]}"
	wait_until 5 vram_empty $GPU0 || check "VRAM in use after all have gone" 0 "$(vram_used $GPU0)"
	protect 0
	rmdir $CGROUP/vsim/game $CGROUP/vsim/rival
}

lab-load-vramsim
echo +dmem > $CGROUP/cgroup.subtree_control
mkdir $CGROUP/vsim
echo +dmem > $CGROUP/vsim/cgroup.subtree_control

arm "unprotected: the rival takes the game's VRAM" 0 0

echo "--- protected afterwards: the game's next frame takes it back"
protect $((game_mib << 20))
kill -USR1 "${pid[game]}"
where game 3 $game_mib 0

echo "--- dmem.max below the use: the kernel drains the game"
echo "$REGION0 $((64 << 20))" > $CGROUP/vsim/game/dmem.max
kill -USR2 "${pid[game]}"
where game 4 64 $((game_mib - 64))
echo "$REGION0 max" > $CGROUP/vsim/game/dmem.max
end_arm

arm "protected: the game keeps its VRAM" $((game_mib << 20)) $game_mib
end_arm

rmdir $CGROUP/vsim
rmmod vramsim
check_dmesg
exit $failed
