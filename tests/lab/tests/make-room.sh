#!/bin/bash
# SPDX-License-Identifier: MIT
# A game that starts finds the room that was asked for: what others hold is moved out before, and every ceiling is back
# when the answer is there; also when vramd is killed meanwhile, and when the kernel does not manage in time.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

browser_mib=208 chat_mib=32 # of 256 MiB

# shellcheck disable=SC2317 # called by name
{
squeezed() { value "$BROWSER" dmem.max $REGION0; [ "$VALUE" != max ]; }
has_room() { [ "$(free)" -ge 128 ]; }
is_full() { [ "$(current "$BROWSER")" = $browser_mib ]; }
dead() { ! systemctl --quiet is-active vramd.service; }
as_before() { value "$BROWSER" dmem.max $REGION0; [ "$VALUE" = max ]; }
}
# free: MiB of the first GPU that nobody has
free() { value '' dmem.capacity $REGION0; local all=$VALUE; value '' dmem.current $REGION0; echo $(((all - VALUE) / MIB)); }

# holder NAME MIB [OPTION...]: a program of the user that holds so much; sets HOLDER to its group, HOLDER_PID
holder() {
	local name=$1 mib=$2
	shift 2
	start_scope deck "app-$name-1" "$VSIM" hold --device $GPU0 --size 2M --count $((mib / 2)) "$@" > "$WORK/$name" 2>&1
	HOLDER=$SCOPE_CGROUP HOLDER_PID=$SCOPE_PID
	line "$name" 1 > /dev/null
}

# refill: the browser takes all of it back
refill() { kill -USR1 "$HOLDER_PID"; wait_until 10 is_full || fail "the browser does not take it back"; }

# run_game [OPTION...]: what a launcher would start; says what it finds when it would open the GPU
run_game() {
	rm -f "$WORK/game" "$WORK/said"
	as_unit deck env SteamAppId=100 vramctl run "$@" -- \
		sh -c "cat $CGROUP/dmem.current $CGROUP$BROWSER/dmem.max > $WORK/game" > "$WORK/said" 2>&1 ||
		fail "the game failed: $(cat "$WORK/said")"
	cat "$WORK/said"
}
# at_start: MiB that were free when the game began
at_start() {
	value '' dmem.capacity $REGION0
	echo $(((VALUE - $(awk -v r=$REGION0 '$1 == r { print $2; exit }' "$WORK/game")) / MIB))
}

setup_vramd
start_seat_session deck
wait_until 10 test -e $CGROUP$DECK/app.slice/dmem.current || fail "no dmem in app.slice"

echo "--- what was asked for is free"
holder browser $browser_mib
BROWSER=$HOLDER
holder chat $chat_mib
CHAT=$HOLDER
check "of 256 MiB there are free" 16 "$(free)"
run_game
check "without --make-room a game starts with" 16 "$(at_start)"
first=$(tree_state | grep -v vramd)
run_game --make-room=128M
must "it says what was moved out" grep -q "made room: 112 MiB of $REGION0" "$WORK/said"
check "with --make-room=128M it starts with" 128 "$(at_start)"
must "and the old ceiling was back by then" grep -q "^$REGION0 max" "$WORK/game"
check "from who has most" 96 "$(current "$BROWSER")"
check "and not from who has little" $chat_mib "$(current "$CHAT")"
check "nothing else was left" "$(md5sum <<< "$first")" "$(tree_state | grep -v vramd | md5sum)"
run_game --make-room
check "without a size it starts with" 256 "$(at_start)"

echo "--- [game] MakeRoom=, by the unit that Steam makes"
end_game "$BROWSER"
end_game "$CHAT"
printf '[game 300]\nMakeRoom=50%%\n' > /etc/vramd/vramd.conf
vramctl reload
holder browser $browser_mib
BROWSER=$HOLDER
start_game deck 300 --device $GPU0 --size 2M --count 64
wait_until 10 has_room || fail "no room"
check "free before it opens the GPU" 128 "$(free)"
wait_until 10 as_before || fail "the ceiling stays"
ok "the old ceiling is back"
end_game "$GAME_UNIT"
rm /etc/vramd/vramd.conf
vramctl reload
refill

echo "--- it takes too long"
# 1 MiB a millisecond, so that there is a child to be seen. Stopped while it waits for the browser's buffers, it never
# comes to those of the chat.
echo 1 > /sys/module/vramsim/parameters/bw_mib_per_ms
# stop_child VRAMD: the other process of its service, once it has moved something
stop_child() {
	local pids=()
	until value "$BROWSER" dmem.current $REGION0 && [ "$VALUE" -lt $((browser_mib * MIB)) ]; do :; done
	while [ ${#pids[@]} -lt 2 ]; do mapfile -t pids < $CGROUP/system.slice/vramd.service/cgroup.procs; done
	[ "${pids[0]}" != "$1" ] || pids=("${pids[1]}")
	kill -STOP "${pids[0]}"
}
holder later-chat $chat_mib
start=${EPOCHREALTIME/./}
stop_child "$(vramd_pid)" &
run_game --make-room
ms=$(((${EPOCHREALTIME/./} - start) / 1000))
must "it says that it was not all" grep -q 'and no more' "$WORK/said"
check "the game has what was moved out by then" $((256 - chat_mib)) "$(at_start)"
if [ $ms -lt 3000 ] || [ $ms -ge 20000 ]; then
	fail "the game waited $ms ms"
fi
ok "the game began after $ms ms"
must "the old ceiling is back" as_before
value "$HOLDER" dmem.max $REGION0
check "and the other one" max "$VALUE"
end_game "$HOLDER"

echo "--- it cannot be done"
holder screen 16 --show
end_game "$BROWSER"
BROWSER=$HOLDER
run_game --make-room
must "it says that it was not all" grep -q 'made room: 14 MiB of .* and no more' "$WORK/said"
check "what is on the screen stays" 2 "$(current "$BROWSER")"
must "and its old ceiling is back" as_before
end_game "$BROWSER"
holder browser $browser_mib
BROWSER=$HOLDER

echo "--- killed in the middle"
for restart in no yes; do
	mkdir -p /etc/systemd/system/vramd.service.d
	[ $restart = yes ] || printf '[Service]\nRestart=no\nExecStopPost=\n' > /etc/systemd/system/vramd.service.d/crash.conf
	systemctl daemon-reload
	# Or the game's hold would start it again.
	[ $restart = yes ] || systemctl mask --runtime --quiet vramd.service
	pid=$(vramd_pid)
	refill
	as_unit deck env SteamAppId=200 vramctl run --make-room=200M -- true > /dev/null 2>&1 &
	wait_until 10 squeezed || fail "nobody was squeezed"
	kill -KILL "$pid"
	if [ $restart = no ]; then
		wait_until 10 dead || fail "it is still there"
		must "kill -9: the ceiling is still there" squeezed
		rm /etc/systemd/system/vramd.service.d/crash.conf
		systemctl unmask --runtime --quiet vramd.service
		systemctl daemon-reload
		systemctl start vramd.service
	fi
	wait_until 10 as_before || fail "kill -9 leaves a ceiling"
	sleep 0.3 # a child that lived would write by now
	must "and gone when vramd is there again (ExecStopPost= and Restart=: $restart)" as_before
	wait
done

echo "--- a stranger's ceiling stays"
refill
as_unit deck env SteamAppId=200 vramctl run --make-room=200M -- true > /dev/null 2>&1 &
wait_until 10 squeezed || fail "nobody was squeezed"
echo "$REGION0 $((250 * MIB))" > "$CGROUP$BROWSER/dmem.max"
wait
value "$BROWSER" dmem.max $REGION0
check "dmem.max" $((250 * MIB)) "$VALUE"
systemctl stop vramd.service
value "$BROWSER" dmem.max $REGION0
check "also when vramd has stopped" $((250 * MIB)) "$VALUE"
