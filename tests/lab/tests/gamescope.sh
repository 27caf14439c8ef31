# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034 # used by those who source this file
# Sourced after vramd.sh: a fake gamescope and a fake Steam in deck's session.

FAKE=$BUILD/tests/agent/fake-gamescope
APPID=1091500 HOME_APPID=769 XID=4194304
STEAM_PID='' answers=0

start_steam() {
	as deck systemd-run --user --quiet --collect --unit=steam-launcher sleep infinity
	STEAM_PID=$(as deck systemctl --user show -P MainPID steam-launcher.service)
}

start_gamescope() {
	[ -d /tmp/.X11-unix ] || mkdir -m 1777 /tmp/.X11-unix
	rm -f "$WORK/commands" "$WORK/answers"
	mkfifo -m 666 "$WORK/commands"
	: > "$WORK/answers"
	chmod 666 "$WORK/answers"
	as deck systemd-run --user --quiet --collect --unit=gamescope-session --slice=session.slice \
		"$SRC/tests/lab/tests/gamescope-session" "$FAKE" "$WORK/commands" "$WORK/answers"
	exec 9<> "$WORK/commands"
	answers=1
	wait_until 30 has_lines "$WORK/answers" 1
}

say() {
	echo "$*" >&9
	answers=$((answers + 1))
	wait_until 10 has_lines "$WORK/answers" $answers
}

# show GFX APP: what is shown, and who has the input
show() {
	say steam "$1" "$2" $XID :1 "$XID:$HOME_APPID:$STEAM_PID" "$XID:$APPID:$GAME_PID"
}
