#!/bin/bash
# SPDX-License-Identifier: MIT
# The job: the game in front keeps its buffers while another program of the same user takes more VRAM
# than there is. First without vramd, where the game must lose them, or this shows nothing.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

game_mib=192 rival_mib=288 # of 256 MiB

# where APPID N: compares what vsim says of its buffers with the kernel's account, and sets resident, spilled
where() {
	local text
	text=$(line "$1" "$2")
	resident=$(field "$text" resident_mib) spilled=$(field "$text" spilled_mib)
	echo "    game: resident $resident MiB, spilled $spilled MiB, dmem.current $(current "$GAME_UNIT") MiB"
	check "dmem.current agrees with the driver" "$resident" "$(current "$GAME_UNIT")"
}

# rival NAME: takes more VRAM than there is, as a browser of the same user
rival() {
	start_scope deck "app-$1-1" "$VSIM" hold --device $GPU0 --size 2M --count $((rival_mib / 2)) \
		--vram-only --no-submit > "$WORK/$1" 2>&1
	RIVAL=$SCOPE_CGROUP
	line "$1" 1 > /dev/null
	echo "    rival: dmem.current $(current "$RIVAL") MiB of $rival_mib"
}

enable_dmem() {
	local group
	for group in '' /user.slice /user.slice/user-1000.slice $DECK $DECK/app.slice; do
		echo +dmem > "$CGROUP$group/cgroup.subtree_control"
	done
}

setup_vramd
start_seat_session deck

echo "--- without vramd"
systemctl stop vramd.service
enable_dmem
start_game deck 100 --device $GPU0 --size 2M --count $((game_mib / 2))
open_gpu 100
where 100 1
check "the game has all its buffers" "$game_mib" "$resident"
rival browser
kill -USR2 "$GAME_PID"
where 100 2
without=$resident
[ "$without" -lt $((game_mib / 2)) ] || fail "the rival takes nothing: this test shows nothing"
ok "the game lost $((game_mib - without)) of $game_mib MiB"

echo "--- vramd starts, and finds the game"
systemctl start vramd.service
front deck "$GAME_PID"
wait_until 10 protected "$GAME_UNIT" || fail "not protected"
kill -USR1 "$GAME_PID"
where 100 3
check "its next frame takes everything back" "$game_mib" "$resident"
end_game "$GAME_UNIT"
end_game "$RIVAL"
wait_until 10 no_low_at_all || fail "something stays protected after the game"

echo "--- with vramd"
start_game deck 200 --device $GPU0 --size 2M --count $((game_mib / 2))
front deck "$GAME_PID"
wait_until 10 protected "$GAME_UNIT" || fail "not protected"
open_gpu 200
where 200 1
rival browser
kill -USR2 "$GAME_PID"
where 200 2
check "the game keeps its buffers" "$game_mib" "$resident"
check "and the rival has the rest" $((256 - game_mib)) "$(current "$RIVAL")"
vramctl status
echo "figures: of $game_mib MiB the game keeps $without without vramd, $resident with it"
