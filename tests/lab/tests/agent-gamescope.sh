#!/bin/bash
# SPDX-License-Identifier: MIT
# The whole chain: a fake gamescope's X properties, vramd-agent as the user's service, vramd, and what is in the dmem
# files of a real kernel; through an evening with a game, and with every link of the chain killed.
set -euo pipefail
# shellcheck source=tests/lab/tests/vramd.sh
. /lab/src/tests/lab/tests/vramd.sh
# shellcheck source=tests/lab/tests/gamescope.sh
. /lab/src/tests/lab/tests/gamescope.sh

COMPOSITOR=$DECK/session.slice/gamescope-session.service
STEAM=$DECK/app.slice/steam-launcher.service
grace=3

# --- values

is() { value "$1" "$2" "$3"; [ "${VALUE:-0}" -eq "$4" ]; } # GROUP FILE REGION BYTES

# state GAME COMPOSITOR STEAM, in KiB of the first card: theirs, and exact sums above them
# shellcheck disable=SC2317 # called by name
state() {
	local game=$(($1 * 1024)) compositor=$(($2 * 1024)) steam=$(($3 * 1024)) group
	is "$GAME_UNIT" dmem.low $REGION0 $game && is "$STEAM" dmem.low $REGION0 $steam &&
		is "$COMPOSITOR" dmem.low $REGION0 $compositor && is "$COMPOSITOR" dmem.min $REGION0 $compositor &&
		is $DECK/app.slice dmem.low $REGION0 $((game + steam)) &&
		is $DECK/app.slice dmem.min $REGION0 0 || return
	for group in $DECK /user.slice/user-1000.slice /user.slice; do
		is "$group" dmem.low $REGION0 $((game + steam + compositor)) &&
			is "$group" dmem.min $REGION0 $compositor || return
	done
}

# told MENU SOURCE GAME COMPOSITOR STEAM
# shellcheck disable=SC2317 # called by name
told() {
	[ "$(property Menu)" = "\"$1\"" ] && [ "$(property FocusSource)" = "\"$2\"" ] && state "$3" "$4" "$5"
}

# becomes TEXT COMMAND...
becomes() {
	local text=$1
	shift
	if ! wait_until 15 "$@"; then
		property Menu
		property FocusSource
		fail "$text"
	fi
	ok "$text: ${*:2}"
}

# 256 MiB: a 16th is nobody's, the compositor has a 32nd; Steam's tenth is cut to what those two and the game leave.
front=$((240 * 1024)) floor=$((8 * 1024)) lent=$((8 * 1024)) behind=$((48 * 1024))
in_front=(told closed gamescope "$front" "$floor" 0)
below_menu=(told open gamescope "$front" "$floor" "$lent")

mkdir -p /etc/vramd
printf '[policy]\nGrace=%ss\n' $grace > /etc/vramd/vramd.conf
setup_vramd
install_agent
start_seat_session deck
start_steam
start_game deck $APPID --device $GPU0 --size 2M --count 48

echo "--- the agent first, then gamescope"
as deck systemctl --user start vramd-agent.service
start_gamescope
show $HOME_APPID $HOME_APPID
must "no game is in front" wait_until 10 unprotected "$GAME_UNIT"

echo "--- an evening"
show $APPID $APPID
becomes "game" "${in_front[@]}"
open_gpu $APPID
line $APPID 1 > /dev/null
show $APPID $HOME_APPID
becomes "menu open" "${below_menu[@]}"
show $APPID $APPID
becomes "menu closed" "${in_front[@]}"
show $HOME_APPID $HOME_APPID
becomes "Steam's home" told closed gamescope $behind $floor 0
show $APPID $APPID
becomes "game again" "${in_front[@]}"
say again 200 1000
must "values written anew change nothing" "${in_front[@]}"

echo "--- gamescope is killed"
as deck systemctl --user kill --kill-whom=main --signal=KILL gamescope-session.service
wait_until 10 gone "$COMPOSITOR"
must "the game keeps its memory for the time of grace" is "$GAME_UNIT" dmem.low $REGION0 $((front * 1024))
becomes "after it, it is the only one that has a game's unit" told unknown units $front 0 0
start_gamescope
show $APPID $APPID
becomes "gamescope is back" "${in_front[@]}"

echo "--- the agent is killed"
agent=$(as deck systemctl --user show -P MainPID vramd-agent.service)
kill -KILL "$agent"
must "nothing is lost by it" state $front $floor 0
show $APPID $HOME_APPID
becomes "its successor hears the menu" "${below_menu[@]}"
must "it is another one" test "$agent" != "$(as deck systemctl --user show -P MainPID vramd-agent.service)"
show $APPID $APPID
becomes "menu closed" "${in_front[@]}"
sleep $((grace + 1))
must "after the time of grace of the first one, too" "${in_front[@]}"

echo "--- vramd is killed, and restarted"
agent=$(as deck systemctl --user show -P MainPID vramd-agent.service)
kill -KILL "$(vramd_pid)"
show $APPID $HOME_APPID
becomes "killed: the next one is told all of it" "${below_menu[@]}"
systemctl restart vramd.service
becomes "restarted: so is the next" "${below_menu[@]}"
check "by the same agent" "$agent" "$(as deck systemctl --user show -P MainPID vramd-agent.service)"

echo "--- the end"
end_game "$GAME_UNIT"
say steam - - - :0 "$XID:$HOME_APPID:$STEAM_PID"
must "nothing is left" wait_until 10 no_low_at_all
as deck systemctl --user stop vramd-agent.service
check "the agent ended well" success "$(as deck systemctl --user show -P Result vramd-agent.service)"
