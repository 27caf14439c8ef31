#!/bin/bash
# SPDX-License-Identifier: MIT
# The compositor opens the GPU long before the first game: what it takes must be charged to its own unit,
# or its floor protects nothing. Its VRAM must outlive a rival that takes all that it can get.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh

compositor=$DECK/session.slice/gamescope-session.service
# shellcheck disable=SC2317 # called by name
{
has_floor() { value $compositor dmem.min $REGION0; [ "${VALUE:-0}" -ge $((16 * MIB)) ]; }
charged() { value $compositor dmem.current $REGION0; [ "${VALUE:-0}" = $((16 * MIB)) ]; }
in_front() { value "$GAME_UNIT" dmem.low $REGION0; [ "${VALUE:-0}" -gt $((200 * MIB)) ]; }
all_back() { [ "$(tree_state | grep -v /session.slice/)" = "$first" ]; }
}

setup_vramd
systemctl stop vramd.service
start_seat_session deck
first=$(tree_state | grep -v /session.slice/)
systemctl start vramd.service
wait_until 5 test -e $CGROUP$DECK/app.slice/dbus.socket/dmem.low || fail "dmem is off in app.slice while nobody plays"

as deck systemd-run --user --quiet --collect --slice=session.slice --unit=gamescope-session.service \
	"$VSIM" hold --device $GPU0 --size 2M --count 8
must "the compositor's 16 MiB are charged to its unit, before any game" wait_until 10 charged
start_game deck 100 --device $GPU0 --size 2M --count 96
front deck "$GAME_PID"
must "a game comes to the front" wait_until 10 in_front
must "the compositor's floor is no less than its use" wait_until 10 has_floor
open_gpu 100
line 100 1 > /dev/null
start_scope deck app-browser-1 "$VSIM" hold --device $GPU0 --size 2M --count 160 --vram-only --no-submit \
	> "$WORK/browser" 2>&1
line browser 1 > /dev/null
check "the compositor keeps its buffers, MiB" 16 "$(current $compositor)"
check "and the game its own, MiB" 192 "$(current "$GAME_UNIT")"
end_game "$GAME_UNIT"
end_game "$SCOPE_CGROUP"
as deck systemctl --user stop gamescope-session.service
systemctl stop vramd.service
must "all is as at first" all_back
